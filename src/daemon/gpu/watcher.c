/*
 * watcher - waits in short pieces, because NVML's wait cannot be interrupted
 */
#include "daemon/gpu/watcher.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "base/log.h"

/* One piece: the longest time until a pause or an end is noticed. */
#define PIECE_MS 200
/* If NVML refuses to watch, the next try comes after this. */
#define RETRY_S 30
/* After an error of the wait itself, pause before the next. */
#define ERROR_S  1
#define CLOSED_S 1
#define END_MS   500

struct sl_watcher {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake, closed;
	sl_watcher_fn fn;
	void *context;
	/* Under the mutex. */
	bool stop, paused, open;
};

static void wait_s(pthread_cond_t *cond, pthread_mutex_t *mutex, time_t seconds)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	(void)pthread_cond_timedwait(cond, mutex, &until);
}

/* Waits with an open session until it must stop. Called without the mutex. */
static void watch(struct sl_watcher *watcher, struct sl_nvml_watch *session)
{
	for (;;) {
		struct sl_error err = {0};
		char uuid[41] = "";
		uint64_t xid = 0;
		int r = sl_nvml_watch_wait(session, PIECE_MS, uuid, &xid, &err);
		bool go_on;

		if (r == SL_NVML_OK || r == SL_NVML_LOST)
			watcher->fn(watcher->context, uuid, xid);
		(void)pthread_mutex_lock(&watcher->mutex);
		if ((r == SL_NVML_LOST || r == SL_NVML_FAILED) && !watcher->stop &&
			!watcher->paused)
			wait_s(&watcher->wake, &watcher->mutex, ERROR_S);
		go_on = !watcher->stop && !watcher->paused && r != SL_NVML_FAILED &&
			r != SL_NVML_LOST;
		(void)pthread_mutex_unlock(&watcher->mutex);
		if (!go_on)
			return;
	}
}

static void *thread_main(void *argument)
{
	struct sl_watcher *watcher = argument;

	(void)pthread_mutex_lock(&watcher->mutex);
	while (!watcher->stop) {
		struct sl_nvml_watch *session = NULL;
		struct sl_error err = {0};
		bool refused;

		if (watcher->paused) {
			(void)pthread_cond_wait(&watcher->wake, &watcher->mutex);
			continue;
		}
		watcher->open = true;
		(void)pthread_mutex_unlock(&watcher->mutex);
		refused = sl_nvml_watch_open(&session, &err) != SL_NVML_OK;
		if (refused)
			sl_debug("not watching for errors of GPUs: %s", err.text);
		else
			watch(watcher, session);
		session = sl_nvml_watch_close(session);
		(void)pthread_mutex_lock(&watcher->mutex);
		watcher->open = false;
		(void)pthread_cond_broadcast(&watcher->closed);
		if (refused && !watcher->stop && !watcher->paused)
			wait_s(&watcher->wake, &watcher->mutex, RETRY_S);
	}
	(void)pthread_mutex_unlock(&watcher->mutex);
	return NULL;
}

int sl_watcher_new(struct sl_watcher **out, sl_watcher_fn fn, void *context)
{
	sl_cleanup(sl_freep) struct sl_watcher *watcher = calloc(1, sizeof(*watcher));
	sigset_t all, before;
	int r;

	if (!watcher)
		return sl_err_origin(-ENOMEM);
	watcher->fn = fn;
	watcher->context = context;
	watcher->paused = true;
	(void)pthread_mutex_init(&watcher->mutex, NULL);
	(void)pthread_cond_init(&watcher->wake, NULL);
	(void)pthread_cond_init(&watcher->closed, NULL);
	/* The loop takes all signals. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&watcher->thread, NULL, thread_main, watcher);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0)
		return sl_err_origin(-r);
	*out = sl_steal(&watcher);
	return 0;
}

void sl_watcher_pause(struct sl_watcher *watcher)
{
	(void)pthread_mutex_lock(&watcher->mutex);
	watcher->paused = true;
	(void)pthread_cond_signal(&watcher->wake);
	if (watcher->open)
		wait_s(&watcher->closed, &watcher->mutex, CLOSED_S);
	(void)pthread_mutex_unlock(&watcher->mutex);
}

void sl_watcher_resume(struct sl_watcher *watcher)
{
	(void)pthread_mutex_lock(&watcher->mutex);
	watcher->paused = false;
	(void)pthread_cond_signal(&watcher->wake);
	(void)pthread_mutex_unlock(&watcher->mutex);
}

bool sl_watcher_free(struct sl_watcher *watcher)
{
	struct timespec until;

	if (!watcher)
		return true;
	(void)pthread_mutex_lock(&watcher->mutex);
	watcher->stop = true;
	(void)pthread_cond_signal(&watcher->wake);
	(void)pthread_mutex_unlock(&watcher->mutex);
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += END_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	if (pthread_timedjoin_np(watcher->thread, NULL, &until) != 0) {
		(void)pthread_detach(watcher->thread);
		return false;
	}
	(void)pthread_cond_destroy(&watcher->wake);
	(void)pthread_cond_destroy(&watcher->closed);
	(void)pthread_mutex_destroy(&watcher->mutex);
	free(watcher);
	return true;
}
