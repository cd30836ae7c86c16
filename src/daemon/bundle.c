/*
 * bundle - a counter, and a thread that closes
 *
 * The thread's list cannot grow beyond the descriptors that the process may have: what stands in it is open.
 */
#include "daemon/bundle.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more, done;
	bool running, busy;
	int *fds;
	size_t count, room;
} closer = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.more = PTHREAD_COND_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
};

static void *closer_main(void *arg)
{
	(void)arg;
	(void)pthread_mutex_lock(&closer.lock);
	for (;;) {
		int fd;

		while (closer.count == 0) {
			closer.busy = false;
			(void)pthread_cond_broadcast(&closer.done);
			(void)pthread_cond_wait(&closer.more, &closer.lock);
		}
		fd = closer.fds[--closer.count];
		closer.busy = true;
		(void)pthread_mutex_unlock(&closer.lock);
		(void)close(fd);
		(void)pthread_mutex_lock(&closer.lock);
	}
	return NULL;
}

/* Under the lock. */
static bool start(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;

	if (closer.running)
		return true;
	if (pthread_attr_init(&attr) != 0)
		return false;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &old);
	closer.running = pthread_create(&thread, &attr, closer_main, NULL) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	return closer.running;
}

/* Under the lock. */
static bool list(int fd)
{
	if (closer.count == closer.room) {
		size_t room = closer.room ? 2 * closer.room : 64;
		int *grown = realloc(closer.fds, room * sizeof(*grown));

		if (!grown)
			return false;
		closer.fds = grown;
		closer.room = room;
	}
	closer.fds[closer.count++] = fd;
	return true;
}

void sl_bundle_close(int fd)
{
	bool listed;

	if (fd < 0)
		return;
	(void)pthread_mutex_lock(&closer.lock);
	listed = start() && list(fd);
	if (listed)
		(void)pthread_cond_signal(&closer.more);
	(void)pthread_mutex_unlock(&closer.lock);
	if (!listed)
		(void)close(fd);
}

void sl_bundle_finish(void)
{
	struct timespec end = {0};
	int r = 0;

	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec++;
	(void)pthread_mutex_lock(&closer.lock);
	while (r == 0 && (closer.count || closer.busy))
		r = pthread_cond_timedwait(&closer.done, &closer.lock, &end);
	(void)pthread_mutex_unlock(&closer.lock);
}

struct sl_bundle *sl_bundle_new(uint32_t room)
{
	struct sl_bundle *bundle = malloc(sizeof(*bundle) + room * sizeof(bundle->fd[0]));

	if (bundle)
		*bundle = (struct sl_bundle){.users = 1, .room = room};
	return bundle;
}

struct sl_bundle *sl_bundle_ref(struct sl_bundle *bundle)
{
	bundle->users++;
	return bundle;
}

struct sl_bundle *sl_bundle_unref(struct sl_bundle *bundle)
{
	if (!bundle || --bundle->users > 0)
		return NULL;
	for (uint32_t i = 0; i < bundle->count; i++)
		sl_bundle_close(bundle->fd[i]);
	free(bundle);
	return NULL;
}

void sl_bundle_add(struct sl_bundle *bundle, const int *fds, uint32_t count)
{
	memcpy(bundle->fd + bundle->count, fds, count * sizeof(fds[0]));
	bundle->count += count;
}
