/*
 * inside - a socket pair per connection, handed to the loop through a list and an eventfd
 *
 * The thread makes the pair, so the loop only takes one end over, which cannot fail except for
 * memory. Ending the door shuts down every thread's end: a flag would not wake threads in recv or
 * send.
 */
#include "daemon/link/inside.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/link/peer.h"
#include "daemon/link/share.h"

/* Taken over before other events get their turn. */
#define TAKE_BUDGET 8

struct entry {
	struct sl_link link;
	int fd;
	struct sl_user *who;
};

struct sl_inside_door {
	struct sl_daemon *daemon;
	sd_event_source *io;
	int event_fd;
	pthread_mutex_t mutex;
	/* under the mutex */
	bool ended;
	struct sl_link waiting; /* entries */
	struct sl_link open;    /* struct sl_inside */
};

/* --- the loop's end --------------------------------------------------------------------------- */

static struct entry *entry_free(struct entry *entry)
{
	sl_closep(&entry->fd);
	(void)sl_user_free(entry->who);
	free(entry);
	return NULL;
}

/* The oldest, or NULL. *more: others wait behind it. */
static struct entry *take_entry(struct sl_inside_door *door, bool *more)
{
	struct entry *entry = NULL;

	(void)pthread_mutex_lock(&door->mutex);
	if (!sl_list_is_empty(&door->waiting)) {
		entry = SL_LIST_ENTRY(door->waiting.next, struct entry, link);
		sl_list_unlink(&entry->link);
	}
	*more = !sl_list_is_empty(&door->waiting);
	(void)pthread_mutex_unlock(&door->mutex);
	return entry;
}

static void wake(struct sl_inside_door *door)
{
	uint64_t one = 1;

	if (write(door->event_fd, &one, sizeof(one)) < 0)
		sl_debug("inside: the loop could not be woken: %s", strerror(errno));
}

static int on_waiting(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct sl_inside_door *door = context;
	struct sl_daemon *daemon = door->daemon;
	struct sl_share_turn turn = sl_share_begin();
	uint64_t count;
	bool more = true;

	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		sl_debug("inside: %s", strerror(errno));
	for (int i = 0; more && i < TAKE_BUDGET; i++) {
		struct entry *entry = take_entry(door, &more);

		if (!entry)
			break;
		sl_peer_adopt(daemon, sl_steal_fd(&entry->fd), sl_steal(&entry->who));
		(void)entry_free(entry);
	}
	if (more)
		wake(door);
	daemon->up->settle(daemon);
	sl_share_note(daemon, SL_SHARE_ACCEPT, &turn);
	return 0;
}

int sl_inside_door_new(struct sl_daemon *daemon, struct sl_inside_door **out)
{
	struct sl_inside_door *door = calloc(1, sizeof(*door));
	int r;

	if (!door)
		return sl_err_origin(-ENOMEM);
	door->daemon = daemon;
	sl_list_init(&door->waiting);
	sl_list_init(&door->open);
	(void)pthread_mutex_init(&door->mutex, NULL);
	door->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = door->event_fd < 0 ? -errno
			       : sd_event_add_io(daemon->loop, &door->io, door->event_fd,
					 EPOLLIN, on_waiting, door);
	if (r < 0) {
		(void)sl_inside_door_free(door);
		return sl_err_origin(r);
	}
	(void)sd_event_source_set_priority(door->io, SL_PRIORITY_ACCEPT);
	*out = door;
	return 0;
}

void sl_inside_door_end(struct sl_inside_door *door)
{
	if (!door)
		return;
	door->io = sd_event_source_disable_unref(door->io);
	(void)pthread_mutex_lock(&door->mutex);
	door->ended = true;
	sl_list_foreach (link, &door->open)
		(void)shutdown(
			SL_LIST_ENTRY(link, struct sl_inside, link)->fd, SHUT_RDWR);
	sl_list_foreach_safe (link, &door->waiting) {
		sl_list_unlink(link);
		(void)entry_free(SL_LIST_ENTRY(link, struct entry, link));
	}
	(void)pthread_mutex_unlock(&door->mutex);
}

struct sl_inside_door *sl_inside_door_free(struct sl_inside_door *door)
{
	if (!door)
		return NULL;
	sl_inside_door_end(door);
	sl_closep(&door->event_fd);
	(void)pthread_mutex_destroy(&door->mutex);
	free(door);
	return NULL;
}

/* --- a thread's end --------------------------------------------------------------------------- */

static int gone(struct sl_error *err)
{
	sl_error_set(err, "sluiced is ending, or was too busy to go on; try again");
	return SL_INSIDE_GONE;
}

static int system_failure(struct sl_error *err, int negative_errno)
{
	sl_error_set(
		err, "sluiced cannot talk with itself: %s", strerror(-negative_errno));
	return SL_INSIDE_SYSTEM;
}

static int late(struct sl_error *err)
{
	sl_error_set(err, "sluiced did not answer itself in time; try again");
	return SL_INSIDE_AGAIN;
}

static int receive_with(struct sl_inside *inside, union sl_msg *msg,
	struct sl_wire_fds *fds, struct sl_error *err)
{
	struct sl_error detail = {0};
	int r = fds ? sl_wire_recv_fds(inside->fd, SL_FROM_DAEMON, msg, fds, &detail)
		    : sl_wire_recv(inside->fd, SL_FROM_DAEMON, msg, &detail);

	if (r < 0 && r != -ECONNRESET && r != -EPIPE)
		return system_failure(err, r);
	if (r == SL_WIRE_AGAIN)
		return late(err);
	if (r != SL_WIRE_OK)
		return gone(err);
	if (msg->head.type != SL_MSG_REJECT)
		return SL_INSIDE_OK;
	inside->rejected = msg->reject.reason;
	sl_error_set(err, "%s", msg->reject.text);
	return SL_INSIDE_REFUSED;
}

/* A message of type want or alt. Any other means that the connection is out of step. */
static int receive(struct sl_inside *inside, uint32_t want, uint32_t alt,
	union sl_msg *msg, struct sl_error *err)
{
	int r = receive_with(inside, msg, NULL, err);

	if (r != SL_INSIDE_OK || msg->head.type == want || msg->head.type == alt)
		return r;
	return gone(err);
}

static int transmit(
	struct sl_inside *inside, const union sl_msg *msg, int file, struct sl_error *err)
{
	int r = file < 0 ? sl_wire_send(inside->fd, msg)
			 : sl_wire_send_fds(inside->fd, msg, &file, 1);

	if (r == SL_WIRE_AGAIN)
		return late(err);
	/* Even on a closed connection a REJECT may be left to read, which says why. */
	if (r >= 0 || r == -ECONNRESET || r == -EPIPE)
		return SL_INSIDE_OK;
	return system_failure(err, r);
}

/* Afterwards the loop's end is in the door's list, and *inside is among the open ones. */
static int enter(
	struct sl_inside *inside, struct sl_inside_door *door, struct entry *entry)
{
	bool ended;

	(void)pthread_mutex_lock(&door->mutex);
	ended = door->ended;
	if (!ended) {
		sl_list_push_tail(&door->waiting, &entry->link);
		sl_list_push_tail(&door->open, &inside->link);
		inside->door = door;
		wake(door);
	}
	(void)pthread_mutex_unlock(&door->mutex);
	return ended ? SL_INSIDE_GONE : SL_INSIDE_OK;
}

static int make_entry(
	const struct sl_user *who, int *fd, struct entry **out, struct sl_error *err)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	int pair[2];

	if (!entry)
		return system_failure(err, -ENOMEM);
	sl_list_init(&entry->link);
	entry->fd = -1;
	entry->who = who ? sl_user_copy(who) : sl_user_self();
	if (!entry->who || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		int r = entry->who ? -errno : -ENOMEM;

		(void)entry_free(entry);
		return system_failure(err, r);
	}
	*fd = pair[0];
	entry->fd = pair[1];
	*out = entry;
	return SL_INSIDE_OK;
}

static int greet(struct sl_inside *inside, struct sl_error *err)
{
	union sl_msg msg;
	int r;

	sl_wire_init(&msg, SL_MSG_HELLO);
	msg.hello.role = SL_ROLE_CONTROL;
	sl_wire_str(msg.hello.version, sizeof(msg.hello.version), SL_VERSION);
	r = sl_inside_call(inside, &msg, SL_MSG_WELCOME, &msg, err);
	if (r == SL_INSIDE_OK)
		inside->welcome = msg.welcome;
	return r;
}

int sl_inside_open(struct sl_inside *inside, struct sl_inside_door *door,
	const struct sl_user *who, struct sl_error *err)
{
	struct entry *entry = NULL;
	int r;

	*inside = (struct sl_inside){.fd = -1};
	sl_list_init(&inside->link);
	r = make_entry(who, &inside->fd, &entry, err);
	if (r != SL_INSIDE_OK)
		return r;
	sl_inside_set_timeout(inside, SL_INSIDE_TIMEOUT_MS);
	if (enter(inside, door, entry) != SL_INSIDE_OK) {
		(void)entry_free(entry);
		return gone(err);
	}
	return greet(inside, err);
}

void sl_inside_close(struct sl_inside *inside)
{
	if (inside->door) {
		(void)pthread_mutex_lock(&inside->door->mutex);
		sl_list_unlink(&inside->link);
		(void)pthread_mutex_unlock(&inside->door->mutex);
		inside->door = NULL;
	}
	sl_closep(&inside->fd);
	inside->fd = -1;
}

void sl_inside_set_timeout(struct sl_inside *inside, uint64_t ms)
{
	struct timeval span = {.tv_sec = (time_t)(ms / 1000),
		.tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	if (setsockopt(inside->fd, SOL_SOCKET, SO_RCVTIMEO, &span, sizeof(span)) < 0 ||
		setsockopt(inside->fd, SOL_SOCKET, SO_SNDTIMEO, &span, sizeof(span)) < 0)
		sl_debug("inside: no time limit: %s", strerror(errno));
}

int sl_inside_call(struct sl_inside *inside, const union sl_msg *ask, uint32_t want,
	union sl_msg *answer, struct sl_error *err)
{
	return sl_inside_call_giving(inside, ask, -1, want, answer, err);
}

int sl_inside_call_giving(struct sl_inside *inside, const union sl_msg *ask, int file,
	uint32_t want, union sl_msg *answer, struct sl_error *err)
{
	int r = transmit(inside, ask, file, err);

	return r == SL_INSIDE_OK ? receive(inside, want, want, answer, err) : r;
}

int sl_inside_call_taking(struct sl_inside *inside, const union sl_msg *ask,
	uint32_t want, uint32_t else_want, union sl_msg *answer, int *file,
	struct sl_error *err)
{
	struct sl_wire_fds fds = {0};
	int r = transmit(inside, ask, -1, err);

	*file = -1;
	if (r != SL_INSIDE_OK)
		return r;
	r = receive_with(inside, answer, &fds, err);
	if (r == SL_INSIDE_OK && answer->head.type != want &&
		answer->head.type != else_want)
		r = gone(err);
	if (r == SL_INSIDE_OK && fds.count) {
		*file = fds.fd[0];
		fds.fd[0] = fds.fd[--fds.count];
	} else if (r == SL_INSIDE_OK && answer->head.type == want) {
		r = system_failure(err, -EMFILE);
	}
	sl_wire_fds_close(&fds);
	return r;
}

int sl_inside_send(
	struct sl_inside *inside, const union sl_msg *msg, struct sl_error *err)
{
	return transmit(inside, msg, -1, err);
}

int sl_inside_next(struct sl_inside *inside, uint32_t row_type, union sl_msg *row,
	struct sl_error *err)
{
	int r = receive(inside, row_type, SL_MSG_LIST_END, row, err);

	return r == SL_INSIDE_OK && row->head.type == SL_MSG_LIST_END ? SL_INSIDE_END : r;
}

int sl_inside_rows(struct sl_inside *inside, const union sl_msg *ask, uint32_t row_type,
	sl_inside_row_fn fn, void *context, struct sl_error *err)
{
	union sl_msg row;
	int r = sl_inside_send(inside, ask, err);

	while (r == SL_INSIDE_OK) {
		r = sl_inside_next(inside, row_type, &row, err);
		if (r == SL_INSIDE_OK)
			fn(context, &row);
	}
	return r == SL_INSIDE_END ? SL_INSIDE_OK : r;
}

int sl_inside_list(struct sl_inside *inside, enum sl_list_what what, uint32_t row_type,
	sl_inside_row_fn fn, void *context, struct sl_error *err)
{
	union sl_msg ask;

	sl_wire_init(&ask, SL_MSG_LIST);
	ask.list.what = what;
	return sl_inside_rows(inside, &ask, row_type, fn, context, err);
}
