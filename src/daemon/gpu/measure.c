/*
 * measure - one thread, one mutex, one list of answers
 *
 * The mutex is held for a few instructions, never while NVML is called. If NVML hangs, the loop
 * sees answers grow old, says so, and decides on the last ones.
 */
#include "daemon/gpu/measure.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/gpu/watcher.h"

struct sl_measure {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	/* Under the mutex. */
	bool stop, want_inventory, want_reopen;
	uint32_t want_gpus; /* bit per GPU */
	char uuids[SL_MEASURE_GPUS_MAX][41];
	struct sl_measure_answer *first, **last;
	/* Constant. */
	int event_fd;
	/* Used by the thread only. */
	struct sl_nvml *nvml;
	bool nvml_failed; /* open NVML again at the next inventory */
	uint32_t listed;  /* GPUs of the last list */
	struct sl_watcher *watcher;
};

struct sl_measure_answer *sl_measure_answer_free(struct sl_measure_answer *answer)
{
	if (!answer)
		return NULL;
	free(answer->usage.processes);
	free(answer->inventory);
	free(answer);
	return NULL;
}

static void publish(struct sl_measure *measure, struct sl_measure_answer *answer)
{
	uint64_t one = 1;

	answer->end = sl_clock_now();
	(void)pthread_mutex_lock(&measure->mutex);
	*measure->last = answer;
	measure->last = &answer->next;
	(void)pthread_mutex_unlock(&measure->mutex);
	if (write(measure->event_fd, &one, sizeof(one)) < 0)
		sl_debug("the measuring thread could not wake the loop: %s",
			strerror(errno));
}

/* Memory for an answer. Without it the question is dropped, and the loop asks again later. */
static struct sl_measure_answer *answer_new(void)
{
	struct sl_measure_answer *answer = calloc(1, sizeof(*answer));

	if (answer)
		answer->begin = sl_clock_now();
	return answer;
}

/* Runs on the watcher's thread. */
static void on_xid(void *context, const char *uuid_text, uint64_t xid)
{
	struct sl_measure *measure = context;
	struct sl_measure_answer *answer = answer_new();

	if (!answer)
		return;
	answer->is_xid = true;
	answer->ok = true;
	answer->xid = xid;
	answer->gpu = 0;
	(void)pthread_mutex_lock(&measure->mutex);
	while (answer->gpu < SL_MEASURE_GPUS_MAX &&
		(!uuid_text[0] ||
			strcasecmp(measure->uuids[answer->gpu], uuid_text) != 0))
		answer->gpu++;
	(void)pthread_mutex_unlock(&measure->mutex);
	publish(measure, answer);
}

/* NVML stays open while any session is, so the watcher's is closed first. */
static void close_all(struct sl_measure *measure)
{
	sl_watcher_pause(measure->watcher);
	measure->nvml = sl_nvml_close(measure->nvml);
}

static void do_inventory(struct sl_measure *measure)
{
	struct sl_measure_answer *answer = answer_new();
	struct sl_error err = {0};

	if (!answer)
		return;
	answer->is_inventory = true;
	answer->inventory = calloc(1, sizeof(*answer->inventory));
	if (measure->nvml_failed)
		close_all(measure);
	measure->nvml_failed = false;
	answer->ok =
		answer->inventory != NULL &&
		(measure->nvml || sl_nvml_open(&measure->nvml, &err) == SL_NVML_OK) &&
		sl_nvml_list(measure->nvml, answer->inventory, &err) == SL_NVML_OK;
	if (!answer->ok) {
		measure->nvml_failed = true;
	} else {
		/* The watcher does not see GPUs that appeared after it began: restart it. */
		if (measure->listed != answer->inventory->count)
			sl_watcher_pause(measure->watcher);
		measure->listed = answer->inventory->count;
		if (measure->listed)
			sl_watcher_resume(measure->watcher);
	}
	sl_wire_str(answer->text, sizeof(answer->text), err.text);
	publish(measure, answer);
}

static void do_usage(struct sl_measure *measure, uint32_t gpu, const char *uuid_text)
{
	struct sl_measure_answer *answer = answer_new();
	struct sl_error err = {0};
	int r = SL_NVML_FAILED;

	if (!answer)
		return;
	answer->gpu = gpu;
	sl_error_set(&err, "NVML is not open");
	if (measure->nvml)
		r = sl_nvml_usage(measure->nvml, uuid_text, &answer->usage, &err);
	answer->ok = r == SL_NVML_OK;
	answer->lost = r == SL_NVML_LOST;
	answer->absent = r == SL_NVML_ABSENT;
	if (!answer->ok) {
		/* One lost GPU does not mean that NVML has failed. */
		measure->nvml_failed |= r == SL_NVML_FAILED;
		sl_wire_str(answer->text, sizeof(answer->text), err.text);
	}
	publish(measure, answer);
}

static void *thread_main(void *argument)
{
	struct sl_measure *measure = argument;

	(void)pthread_mutex_lock(&measure->mutex);
	while (!measure->stop) {
		bool inventory = measure->want_inventory;
		uint32_t gpus = measure->want_gpus;
		char uuid[41];

		if (!inventory && !gpus) {
			(void)pthread_cond_wait(&measure->wake, &measure->mutex);
			continue;
		}
		if (inventory) {
			measure->want_inventory = false;
			measure->nvml_failed |= measure->want_reopen;
			measure->want_reopen = false;
			(void)pthread_mutex_unlock(&measure->mutex);
			do_inventory(measure);
		} else {
			uint32_t gpu = (uint32_t)__builtin_ctz(gpus);

			measure->want_gpus &= ~(1u << gpu);
			memcpy(uuid, measure->uuids[gpu], sizeof(uuid));
			(void)pthread_mutex_unlock(&measure->mutex);
			do_usage(measure, gpu, uuid);
		}
		(void)pthread_mutex_lock(&measure->mutex);
	}
	(void)pthread_mutex_unlock(&measure->mutex);
	measure->nvml = sl_nvml_close(measure->nvml);
	return NULL;
}

int sl_measure_new(struct sl_measure **out)
{
	sl_cleanup(sl_freep) struct sl_measure *measure = calloc(1, sizeof(*measure));
	sl_cleanup(sl_closep) int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sigset_t all, before;
	int r;

	if (!measure || fd < 0)
		return sl_err_origin(measure ? -errno : -ENOMEM);
	measure->event_fd = fd;
	measure->last = &measure->first;
	(void)pthread_mutex_init(&measure->mutex, NULL);
	(void)pthread_cond_init(&measure->wake, NULL);
	/* The loop takes all signals. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -sl_watcher_new(&measure->watcher, on_xid, measure);
	if (r == 0)
		r = pthread_create(&measure->thread, NULL, thread_main, measure);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0) {
		(void)!sl_watcher_free(measure->watcher);
		return sl_err_origin(-r);
	}
	(void)sl_steal_fd(&fd);
	*out = sl_steal(&measure);
	return 0;
}

struct sl_measure *sl_measure_free(struct sl_measure *measure)
{
	struct timespec until;
	struct sl_measure_answer *answer;

	if (!measure)
		return NULL;
	(void)pthread_mutex_lock(&measure->mutex);
	measure->stop = true;
	(void)pthread_cond_signal(&measure->wake);
	(void)pthread_mutex_unlock(&measure->mutex);
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 300 * 1000 * 1000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (pthread_timedjoin_np(measure->thread, NULL, &until) != 0) {
		sl_warning("NVML does not return; leaving the measuring thread behind");
		(void)pthread_detach(measure->thread);
		return NULL;
	}
	if (!sl_watcher_free(measure->watcher))
		return NULL; /* it may still publish an answer */
	while ((answer = sl_measure_take(measure)))
		(void)sl_measure_answer_free(answer);
	(void)close(measure->event_fd);
	(void)pthread_cond_destroy(&measure->wake);
	(void)pthread_mutex_destroy(&measure->mutex);
	free(measure);
	return NULL;
}

int sl_measure_fd(const struct sl_measure *measure)
{
	return measure->event_fd;
}

void sl_measure_name(struct sl_measure *measure, uint32_t gpu, const char *uuid_text)
{
	(void)pthread_mutex_lock(&measure->mutex);
	sl_wire_str(measure->uuids[gpu], sizeof(measure->uuids[gpu]), uuid_text);
	(void)pthread_mutex_unlock(&measure->mutex);
}

void sl_measure_ask_inventory(struct sl_measure *measure)
{
	(void)pthread_mutex_lock(&measure->mutex);
	measure->want_inventory = true;
	(void)pthread_cond_signal(&measure->wake);
	(void)pthread_mutex_unlock(&measure->mutex);
}

void sl_measure_reopen(struct sl_measure *measure)
{
	(void)pthread_mutex_lock(&measure->mutex);
	measure->want_reopen = true;
	(void)pthread_mutex_unlock(&measure->mutex);
}

void sl_measure_ask(struct sl_measure *measure, uint32_t gpu)
{
	(void)pthread_mutex_lock(&measure->mutex);
	measure->want_gpus |= 1u << gpu;
	(void)pthread_cond_signal(&measure->wake);
	(void)pthread_mutex_unlock(&measure->mutex);
}

struct sl_measure_answer *sl_measure_take(struct sl_measure *measure)
{
	struct sl_measure_answer *answer;
	uint64_t count;

	if (read(measure->event_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		sl_debug("the measuring thread's event: %s", strerror(errno));
	(void)pthread_mutex_lock(&measure->mutex);
	answer = measure->first;
	if (answer) {
		measure->first = answer->next;
		if (!measure->first)
			measure->last = &measure->first;
	}
	(void)pthread_mutex_unlock(&measure->mutex);
	return answer;
}
