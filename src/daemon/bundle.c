/*
 * bundle - a counter, and a thread that closes
 *
 * The list cannot grow beyond the descriptors that the process may have: what stands in it is open. Closing
 * the last reference of a socket can take as long as its owner wished (SO_LINGER), and a socket between
 * processes can have others among what nobody has read; so a socket is told not to linger, and what is
 * in it comes out first, onto the list. Should a close hang all the same, other threads take over.
 */
#include "daemon/bundle.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/wire.h"

#define THREADS_MOST 8
#define STUCK_NS     (1 * SL_S)
/* As much as a socket holds. */
#define UNREAD_MOST 4096

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more, done;
	unsigned int threads, idle;
	sl_ns taken_at; /* when the last one was taken off the list */
	int *fds;
	size_t count, room;
} closer = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.more = PTHREAD_COND_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
};

/* Messages of any kind, for what goes with them. */
static void empty(int fd)
{
	struct sl_wire_fds fds;
	union sl_msg msg;

	for (int i = 0; i < UNREAD_MOST; i++) {
		int r = sl_wire_recv_fds(fd, SL_FROM_CLIENT, &msg, &fds, NULL);

		for (uint32_t k = 0; k < fds.count; k++)
			sl_bundle_close(fds.fd[k]);
		if (r != SL_WIRE_OK && r != SL_WIRE_BAD && r != SL_WIRE_OTHER_VERSION)
			return;
	}
}

static void close_one(int fd)
{
	struct linger none = {0};
	struct stat info = {0};
	int domain = 0;
	socklen_t size = sizeof(domain);

	if (fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode)) {
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
		/* A stranger's may block; the flag is shared, and nobody of ours minds. */
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
			domain == AF_UNIX &&
			fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0)
			empty(fd);
	}
	(void)close(fd);
}

static void *closer_main(void *arg)
{
	(void)arg;
	(void)pthread_mutex_lock(&closer.lock);
	for (;;) {
		int fd;

		closer.idle++;
		while (closer.count == 0) {
			(void)pthread_cond_broadcast(&closer.done);
			(void)pthread_cond_wait(&closer.more, &closer.lock);
		}
		closer.idle--;
		fd = closer.fds[--closer.count];
		closer.taken_at = sl_clock_now();
		(void)pthread_mutex_unlock(&closer.lock);
		close_one(fd);
		(void)pthread_mutex_lock(&closer.lock);
	}
	return NULL;
}

/* Nobody has taken anything for a while, though there was something. */
static bool is_stuck(void)
{
	return closer.threads < THREADS_MOST && closer.idle == 0 && closer.count > 0 &&
	       sl_clock_now() - closer.taken_at > STUCK_NS;
}

/* Under the lock. */
static bool start(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;

	if (closer.threads > 0 && !is_stuck())
		return true;
	if (pthread_attr_init(&attr) != 0)
		return closer.threads > 0;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &old);
	closer.threads += pthread_create(&thread, &attr, closer_main, NULL) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	return closer.threads > 0;
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
	while (r == 0 && (closer.count || closer.idle < closer.threads))
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
