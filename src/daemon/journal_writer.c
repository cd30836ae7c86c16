/*
 * journal_writer - one journal that belongs to the loop or to the thread, never to both
 *
 * The mutex guards whose it is; it is held for a few instructions only, never while the file is
 * written.
 */
#include "daemon/journal_writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/paths.h"

enum turn { LOOPS, THREADS, WRITTEN };

struct sl_journal_writer {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	/* Under the mutex. */
	enum turn turn;
	bool stop;
	int result;
	/* The loop's or the thread's, as turn says. */
	struct sl_journal journal;
	/* Constant. */
	int event_fd;
	char path[SL_PATH_MAX];
};

static void tell(struct sl_journal_writer *writer)
{
	uint64_t one = 1;

	if (write(writer->event_fd, &one, sizeof(one)) < 0)
		sl_debug("the journal's thread could not wake the loop: %s",
			strerror(errno));
}

static void *thread_main(void *argument)
{
	struct sl_journal_writer *writer = argument;

	(void)pthread_mutex_lock(&writer->mutex);
	/* What was handed over is written before the end. */
	while (writer->turn == THREADS || !writer->stop) {
		int r;

		if (writer->turn != THREADS) {
			(void)pthread_cond_wait(&writer->wake, &writer->mutex);
			continue;
		}
		(void)pthread_mutex_unlock(&writer->mutex);
		r = sl_journal_write(writer->path, &writer->journal);
		(void)pthread_mutex_lock(&writer->mutex);
		writer->result = r;
		writer->turn = WRITTEN;
		tell(writer);
	}
	(void)pthread_mutex_unlock(&writer->mutex);
	return NULL;
}

int sl_journal_writer_new(const char *path, struct sl_journal_writer **out)
{
	sl_cleanup(sl_freep) struct sl_journal_writer *writer =
		calloc(1, sizeof(*writer));
	sl_cleanup(sl_closep) int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sigset_t all, before;
	int r;

	if (!writer || fd < 0)
		return sl_err_origin(writer ? -errno : -ENOMEM);
	writer->event_fd = fd;
	sl_wire_str(writer->path, sizeof(writer->path), path);
	(void)pthread_mutex_init(&writer->mutex, NULL);
	(void)pthread_cond_init(&writer->wake, NULL);
	/* Signals are the loop's. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&writer->thread, NULL, thread_main, writer);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0)
		return sl_err_origin(-r);
	(void)sl_steal_fd(&fd);
	*out = sl_steal(&writer);
	return 0;
}

struct sl_journal_writer *sl_journal_writer_free(struct sl_journal_writer *writer)
{
	if (!writer)
		return NULL;
	(void)pthread_mutex_lock(&writer->mutex);
	writer->stop = true;
	(void)pthread_cond_signal(&writer->wake);
	(void)pthread_mutex_unlock(&writer->mutex);
	(void)pthread_join(writer->thread, NULL);
	sl_journal_fini(&writer->journal);
	(void)close(writer->event_fd);
	(void)pthread_cond_destroy(&writer->wake);
	(void)pthread_mutex_destroy(&writer->mutex);
	free(writer);
	return NULL;
}

int sl_journal_writer_fd(const struct sl_journal_writer *writer)
{
	return writer->event_fd;
}

static enum turn turn_of(struct sl_journal_writer *writer)
{
	enum turn turn;

	(void)pthread_mutex_lock(&writer->mutex);
	turn = writer->turn;
	(void)pthread_mutex_unlock(&writer->mutex);
	return turn;
}

struct sl_journal *sl_journal_writer_begin(struct sl_journal_writer *writer)
{
	return turn_of(writer) == LOOPS ? &writer->journal : NULL;
}

void sl_journal_writer_start(struct sl_journal_writer *writer)
{
	(void)pthread_mutex_lock(&writer->mutex);
	writer->turn = THREADS;
	(void)pthread_cond_signal(&writer->wake);
	(void)pthread_mutex_unlock(&writer->mutex);
}

bool sl_journal_writer_take(struct sl_journal_writer *writer, int *result)
{
	uint64_t count;
	bool over;

	if (read(writer->event_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		sl_debug("the event of the journal's thread: %s", strerror(errno));
	(void)pthread_mutex_lock(&writer->mutex);
	over = writer->turn == WRITTEN;
	if (over) {
		writer->turn = LOOPS;
		*result = writer->result;
	}
	(void)pthread_mutex_unlock(&writer->mutex);
	return over;
}

void sl_journal_writer_wait(struct sl_journal_writer *writer)
{
	struct pollfd written = {.fd = writer->event_fd, .events = POLLIN};

	while (turn_of(writer) == THREADS)
		(void)poll(&written, 1, -1);
}
