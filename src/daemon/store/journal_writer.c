/*
 * journal_writer - one journal, owned in turn by the loop and the thread
 *
 * The mutex guards the turn. It is held for a few instructions, never while the file is written.
 */
#include "daemon/store/journal_writer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/paths.h"
#include "daemon/core/worker.h"

enum turn { LOOPS, THREADS, WRITTEN };

struct sl_journal_writer {
	struct sl_worker worker;
	/* Under its mutex. */
	enum turn turn;
	int result;
	/* Owned by the loop or the thread, as turn says. */
	struct sl_journal journal;
	/* Constant. */
	char path[SL_PATH_MAX];
};

static void *thread_main(void *argument)
{
	struct sl_journal_writer *writer = argument;

	(void)pthread_mutex_lock(&writer->worker.mutex);
	/* A journal that was handed over is written before the end. */
	while (writer->turn == THREADS || !writer->worker.stop) {
		int r;

		if (writer->turn != THREADS) {
			(void)pthread_cond_wait(
				&writer->worker.wake, &writer->worker.mutex);
			continue;
		}
		(void)pthread_mutex_unlock(&writer->worker.mutex);
		r = sl_journal_write(writer->path, &writer->journal);
		(void)pthread_mutex_lock(&writer->worker.mutex);
		writer->result = r;
		writer->turn = WRITTEN;
		sl_worker_tell(&writer->worker);
	}
	(void)pthread_mutex_unlock(&writer->worker.mutex);
	return NULL;
}

int sl_journal_writer_new(const char *path, struct sl_journal_writer **out)
{
	sl_cleanup(sl_freep) struct sl_journal_writer *writer =
		calloc(1, sizeof(*writer));
	int r;

	if (!writer)
		return sl_err_origin(-ENOMEM);
	sl_wire_str(writer->path, sizeof(writer->path), path);
	r = sl_worker_start(&writer->worker, thread_main, writer);
	if (r < 0)
		return r;
	*out = sl_steal(&writer);
	return 0;
}

struct sl_journal_writer *sl_journal_writer_free(struct sl_journal_writer *writer)
{
	if (!writer)
		return NULL;
	sl_worker_end(&writer->worker);
	sl_journal_fini(&writer->journal);
	free(writer);
	return NULL;
}

int sl_journal_writer_fd(const struct sl_journal_writer *writer)
{
	return writer->worker.event_fd;
}

static enum turn turn_of(struct sl_journal_writer *writer)
{
	enum turn turn;

	(void)pthread_mutex_lock(&writer->worker.mutex);
	turn = writer->turn;
	(void)pthread_mutex_unlock(&writer->worker.mutex);
	return turn;
}

struct sl_journal *sl_journal_writer_begin(struct sl_journal_writer *writer)
{
	return turn_of(writer) == LOOPS ? &writer->journal : NULL;
}

void sl_journal_writer_start(struct sl_journal_writer *writer)
{
	(void)pthread_mutex_lock(&writer->worker.mutex);
	writer->turn = THREADS;
	(void)pthread_cond_signal(&writer->worker.wake);
	(void)pthread_mutex_unlock(&writer->worker.mutex);
}

bool sl_journal_writer_take(struct sl_journal_writer *writer, int *result)
{
	bool over;

	sl_worker_hear(&writer->worker);
	(void)pthread_mutex_lock(&writer->worker.mutex);
	over = writer->turn == WRITTEN;
	if (over) {
		writer->turn = LOOPS;
		*result = writer->result;
	}
	(void)pthread_mutex_unlock(&writer->worker.mutex);
	return over;
}

void sl_journal_writer_wait(struct sl_journal_writer *writer)
{
	struct pollfd written = {.fd = writer->worker.event_fd, .events = POLLIN};

	while (turn_of(writer) == THREADS)
		(void)poll(&written, 1, -1);
}
