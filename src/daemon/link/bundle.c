/*
 * bundle - charges, and threads that close
 *
 * A line holds the descriptors to close for one user. It is freed with its last descriptor, so the
 * list of lines is short.
 *
 * Connections have a line of their own with more threads. Closing a connection also closes the
 * descriptors in its unread messages. They were never open in this process, so the close flushes
 * none of them. But a socket may linger on close (SO_LINGER), be it the connection or one in a
 * message. A signal ends that wait: a thread that takes long over a close gets signals, and one
 * pending signal ends all waits of that close. Emptying such sockets or setting their options first
 * would take their lock, which another process can hold.
 */
#include "daemon/link/bundle.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/state/client.h"
#include "daemon/state/daemon.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define NOBODY ((uid_t)-1) /* key of the line of connections */

#define THREADS_OF_USER 2
#define THREADS_OF_OURS 8
#define THREADS_OF_ALL  64
#define STUCK_NS        (1 * SL_S)
#define TICK_NS         (20 * SL_MS)
#define IDLE_S          1

struct item {
	int fd;
	bool stray;
};

struct line {
	struct line *next;
	uid_t uid;
	uint32_t kept, strays; /* charged ones; uncharged ones not closed yet */
	unsigned int threads, idle;
	sl_ns taken_at; /* when an item was last taken off the list */
	pthread_cond_t more;
	struct item *items;
	size_t count, room;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t done;
	struct line *lines;
	unsigned int threads;
	uint32_t kept;
	size_t open; /* in lists, or being closed */
} closer = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
};

/* --- lines; all under the lock ---------------------------------------------------------------- */

static struct line *find(uid_t uid)
{
	struct line *line = closer.lines;

	while (line && line->uid != uid)
		line = line->next;
	return line;
}

static struct line *line_of(uid_t uid)
{
	struct line *line = find(uid);

	if (line)
		return line;
	line = calloc(1, sizeof(*line));
	if (!line)
		return NULL;
	line->uid = uid;
	(void)pthread_cond_init(&line->more, NULL);
	line->next = closer.lines;
	closer.lines = line;
	return line;
}

static void forget_if_over(struct line *line)
{
	struct line **at = &closer.lines;

	if (line->threads || line->count || line->kept || line->strays)
		return;
	while (*at != line)
		at = &(*at)->next;
	*at = line->next;
	(void)pthread_cond_destroy(&line->more);
	free(line->items);
	free(line);
}

static void uncharge(struct line *line, uint32_t count)
{
	line->kept -= count;
	closer.kept -= count;
}

static bool list(struct line *line, struct item item)
{
	if (line->count == line->room) {
		size_t room = line->room ? 2 * line->room : 64;
		struct item *grown = realloc(line->items, room * sizeof(*grown));

		if (!grown)
			return false;
		line->items = grown;
		line->room = room;
	}
	line->items[line->count++] = item;
	closer.open++;
	return true;
}

/* --- threads ---------------------------------------------------------------------------------- */

static void on_tick(int number)
{
	(void)number;
}

static bool make_tick(timer_t *out)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};

	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	return timer_create(CLOCK_MONOTONIC, &event, out) == 0;
}

/* Without a timer the close may take as long as it likes, at the user's expense. */
static void close_one(int fd, const timer_t *tick)
{
	static const struct itimerspec on = {{0, TICK_NS}, {0, TICK_NS}}, off;

	if (tick)
		(void)timer_settime(*tick, 0, &on, NULL);
	(void)close(fd);
	if (tick)
		(void)timer_settime(*tick, 0, &off, NULL);
}

/* False: nothing to close for IDLE_S. */
static bool await(struct line *line)
{
	struct timespec end = {0};
	int r = 0;

	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += IDLE_S;
	line->idle++;
	while (r == 0 && line->count == 0)
		r = pthread_cond_timedwait(&line->more, &closer.lock, &end);
	line->idle--;
	return line->count > 0;
}

static void *closer_main(void *arg)
{
	struct line *line = arg;
	timer_t timer;
	bool ticks = make_tick(&timer);

	(void)pthread_mutex_lock(&closer.lock);
	while (await(line)) {
		struct item item = line->items[--line->count];

		line->taken_at = sl_clock_now();
		(void)pthread_mutex_unlock(&closer.lock);
		close_one(item.fd, ticks ? &timer : NULL);
		(void)pthread_mutex_lock(&closer.lock);
		if (item.stray)
			line->strays--;
		else if (line->uid != NOBODY)
			uncharge(line, 1);
		if (--closer.open == 0)
			(void)pthread_cond_broadcast(&closer.done);
	}
	line->threads--;
	closer.threads--;
	forget_if_over(line);
	(void)pthread_mutex_unlock(&closer.lock);
	if (ticks)
		(void)timer_delete(timer);
	return NULL;
}

/* Called under the lock. Is another thread needed and allowed? */
static bool wants_thread(const struct line *line)
{
	unsigned int most = line->uid == NOBODY ? THREADS_OF_OURS : THREADS_OF_USER;

	if (line->threads >= most || closer.threads >= THREADS_OF_ALL + THREADS_OF_OURS ||
		(line->uid != NOBODY && closer.threads >= THREADS_OF_ALL))
		return false;
	return line->threads == 0 ||
	       (line->idle == 0 && sl_clock_now() - line->taken_at > STUCK_NS);
}

/* Called under the lock. If it fails, the next close tries again. */
static void start(struct line *line)
{
	struct sigaction action = {.sa_handler = on_tick};
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t most, old;

	if (!wants_thread(line) || pthread_attr_init(&attr) != 0)
		return;
	(void)sigaction(SIGRTMIN, &action, NULL);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)sigfillset(&most);
	(void)sigdelset(&most, SIGRTMIN);
	(void)pthread_sigmask(SIG_SETMASK, &most, &old);
	if (pthread_create(&thread, &attr, closer_main, line) == 0) {
		line->threads++;
		closer.threads++;
	}
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
}

/* Called under the lock. Without memory to list it, the descriptor stays open and charged. */
static void close_soon(struct line *line, struct item item)
{
	if (!line || !list(line, item))
		return;
	line->strays += item.stray;
	start(line);
	(void)pthread_cond_signal(&line->more);
}

void sl_bundle_close(int fd, uid_t uid)
{
	if (fd < 0)
		return;
	(void)pthread_mutex_lock(&closer.lock);
	close_soon(line_of(uid), (struct item){fd, true});
	(void)pthread_mutex_unlock(&closer.lock);
}

bool sl_bundle_is_crowded(uid_t uid)
{
	const struct line *line;
	bool crowded;

	(void)pthread_mutex_lock(&closer.lock);
	line = find(uid);
	crowded = line && line->strays >= SL_BUNDLE_STRAYS_MAX;
	(void)pthread_mutex_unlock(&closer.lock);
	return crowded;
}

void sl_bundle_hang_up(int fd)
{
	if (fd < 0)
		return;
	(void)pthread_mutex_lock(&closer.lock);
	close_soon(line_of(NOBODY), (struct item){fd, false});
	(void)pthread_mutex_unlock(&closer.lock);
}

void sl_bundle_finish(void)
{
	struct timespec end = {0};
	int r = 0;

	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec++;
	(void)pthread_mutex_lock(&closer.lock);
	while (r == 0 && closer.open)
		r = pthread_cond_timedwait(&closer.done, &closer.lock, &end);
	(void)pthread_mutex_unlock(&closer.lock);
}

/* --- bundles ---------------------------------------------------------------------------------- */

static bool charge(uid_t uid, uint32_t count)
{
	struct line *line;

	(void)pthread_mutex_lock(&closer.lock);
	line = line_of(uid);
	if (line) {
		line->kept += count;
		closer.kept += count;
	}
	(void)pthread_mutex_unlock(&closer.lock);
	return line != NULL;
}

struct sl_bundle *sl_bundle_new(uint32_t room, uid_t uid, uint64_t client)
{
	struct sl_bundle *bundle = malloc(sizeof(*bundle) + room * sizeof(bundle->fd[0]));

	if (!bundle || !charge(uid, room)) {
		free(bundle);
		return NULL;
	}
	*bundle = (struct sl_bundle){
		.users = 1, .room = room, .uid = uid, .client = client};
	return bundle;
}

struct sl_bundle *sl_bundle_ref(struct sl_bundle *bundle)
{
	bundle->users++;
	return bundle;
}

struct sl_bundle *sl_bundle_unref(struct sl_bundle *bundle)
{
	struct line *line;

	if (!bundle || --bundle->users > 0)
		return NULL;
	(void)pthread_mutex_lock(&closer.lock);
	line = find(bundle->uid); /* exists while anything is charged to it */
	uncharge(line, bundle->room - bundle->count);
	for (uint32_t i = 0; i < bundle->count; i++)
		close_soon(line, (struct item){bundle->fd[i], false});
	forget_if_over(line);
	(void)pthread_mutex_unlock(&closer.lock);
	free(bundle);
	return NULL;
}

struct sl_bundle *sl_bundle_put(struct sl_daemon *daemon, struct sl_bundle *bundle)
{
	struct sl_client *client = bundle && bundle->users == 1
					   ? sl_map_get(&daemon->clients, bundle->client)
					   : NULL;

	if (client)
		client->ipc_fds -= bundle->room;
	return sl_bundle_unref(bundle);
}

void sl_bundle_add(struct sl_bundle *bundle, const int *fds, uint32_t count)
{
	memcpy(bundle->fd + bundle->count, fds, count * sizeof(fds[0]));
	bundle->count += count;
}

uint32_t sl_bundle_kept(void)
{
	uint32_t kept;

	(void)pthread_mutex_lock(&closer.lock);
	kept = closer.kept;
	(void)pthread_mutex_unlock(&closer.lock);
	return kept;
}

uint32_t sl_bundle_kept_of(uid_t uid)
{
	const struct line *line;
	uint32_t kept;

	(void)pthread_mutex_lock(&closer.lock);
	line = find(uid);
	kept = line ? line->kept : 0;
	(void)pthread_mutex_unlock(&closer.lock);
	return kept;
}
