/*
 * peer - sockets that can never stop the loop
 *
 * The sockets keep messages whole and in order, which makes this short: one recv is one message.
 * The queue exists for three cases: output held until the journal is written, a peer that reads
 * slowly, and a list longer than the socket's buffer. While a list is going out, nothing more is
 * read from its peer, so a queue of lists cannot build up.
 */
#include "daemon/link/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/core/user.h"
#include "daemon/link/bundle.h"
#include "daemon/link/share.h"
#include "daemon/state/client.h"
#include "daemon/state/timer.h"

/* A socket's buffer holds a few hundred messages. */
#define DRAIN_MAX 64

struct sl_peer_out {
	struct sl_peer_out *next;
	size_t size;
	struct sl_bundle *bundle; /* NULL: no descriptors */
	uint32_t first, count;    /* of the bundle's */
	_Alignas(8) unsigned char data[];
};

bool sl_peer_is_drained(const struct sl_peer *peer)
{
	return !peer->first;
}

static void out_free(struct sl_daemon *daemon, struct sl_peer_out *out)
{
	out->bundle = sl_bundle_put(daemon, out->bundle);
	free(out);
}

static void drop_queue(struct sl_peer *peer)
{
	while (peer->first) {
		struct sl_peer_out *out = peer->first;

		peer->first = out->next;
		out_free(peer->daemon, out);
	}
	peer->last = &peer->first;
	peer->queued_bytes = 0;
}

void sl_peer_list_end(struct sl_peer *peer)
{
	peer->list.active = false;
	if (peer->list.state)
		peer->list.free_state(peer->list.state);
	peer->list.state = NULL;
	sl_list_unlink(&peer->follow_link);
}

void sl_peer_doom(struct sl_peer *peer)
{
	if (peer->doomed)
		return;
	peer->doomed = true;
	peer->io = sd_event_source_disable_unref(peer->io);
	/* Unread messages may contain descriptors. */
	sl_bundle_hang_up(sl_steal_fd(&peer->fd));
	sl_closep(&peer->pidfd);
	drop_queue(peer);
	sl_peer_list_end(peer);
	peer->daemon->up->peer_gone(peer);
	sl_list_unlink(&peer->rest_link);
	sl_list_unlink(&peer->held_link);
	sl_list_unlink(&peer->link);
	sl_list_push_tail(&peer->daemon->peers->dead, &peer->link);
	peer->daemon->peers->count -= !peer->who;
	/* This may run inside an action of the policy that found the connection broken, and the
	 * node must not be stepped then. So the client's demands are withdrawn at the burial. */
	if (peer->client)
		peer->client->peer = NULL;
}

struct sl_peer *sl_peer_take_dead(struct sl_daemon *daemon)
{
	struct sl_peer *peer;

	if (!daemon->peers || sl_list_is_empty(&daemon->peers->dead))
		return NULL;
	peer = SL_LIST_ENTRY(daemon->peers->dead.next, struct sl_peer, link);
	sl_list_unlink(&peer->link);
	return peer;
}

void sl_peer_free(struct sl_peer *peer)
{
	(void)sl_user_free(peer->who);
	free(peer);
}

/* Watches for EPOLLIN unless a list is going out, a message waits for a fresh sample, or a control
 * peer has output queued; for EPOLLOUT while output may be sent or more rows can be made. A resting
 * peer is watched for its end only. */
static void watch(struct sl_peer *peer)
{
	bool more = peer->list.active && !peer->list.waits;
	bool writing = (peer->first || more) && !peer->held;
	uint32_t events = 0;

	if (peer->doomed)
		return;
	if (!peer->list.active && !peer->look && !(peer->control && peer->first))
		events |= EPOLLIN;
	if (writing)
		events |= EPOLLOUT;
	if (sl_list_is_linked(&peer->rest_link))
		events = 0;
	/* Setting the same value again costs no syscall. */
	if (sd_event_source_set_io_events(peer->io, events) < 0)
		sl_peer_doom(peer);
}

void sl_peer_rested(struct sl_peer *peer)
{
	watch(peer);
}

/* --- share of the loop's time ------------------------------------------------------------- */

static int on_rested(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;
	sl_ns now = sl_clock_now(), next = SL_NS_NEVER;

	sl_list_foreach_safe (link, &daemon->peers->resting) {
		struct sl_peer *peer = SL_LIST_ENTRY(link, struct sl_peer, rest_link);

		if (peer->rest_until <= now) {
			sl_list_unlink(link);
			watch(peer);
		} else {
			next = sl_min_u64(next, peer->rest_until);
		}
	}
	daemon->peers->rest_at = next;
	sl_timer_set(source, next);
	daemon->up->settle(daemon);
	return 0;
}

static void rest(struct sl_peer *peer, uint64_t over_ns)
{
	struct sl_daemon *daemon = peer->daemon;

	peer->rest_until = sl_clock_now() + over_ns / SL_SHARE_PCT * 100;
	if (!sl_list_is_linked(&peer->rest_link))
		sl_list_push_tail(&daemon->peers->resting, &peer->rest_link);
	if (peer->rest_until >= daemon->peers->rest_at)
		return;
	daemon->peers->rest_at = peer->rest_until;
	sl_timer_set(daemon->peers->rest_timer, daemon->peers->rest_at);
}

static int64_t place_of(const struct sl_peer *peer, const struct sl_share_use *use)
{
	if (use->process_ns > SL_SHARE_CLIENT_NS)
		return SL_PRIORITY_GREEDY;
	if (peer->control || !peer->greeted)
		return SL_PRIORITY_CONTROL;
	return use->user_ns > SL_SHARE_CLIENT_NS ? SL_PRIORITY_PEER + 1
						 : SL_PRIORITY_PEER;
}

/* Charges the peer, sets its priority in the loop, and lets a control peer over its share rest. */
static void place(struct sl_peer *peer, uint64_t spent_ns)
{
	struct sl_share_use use;
	uint64_t over_ns;

	if (!sl_share_charge(peer->daemon, peer->share_key, peer->uid, spent_ns, &use) ||
		peer->doomed)
		return;
	/* Setting the same value again costs nothing. */
	(void)sd_event_source_set_priority(peer->io, place_of(peer, &use));
	over_ns = sl_sub_sat(sl_max_u64(use.process_ns, peer->uid ? use.user_ns : 0),
		SL_SHARE_CONTROL_NS);
	if (over_ns && peer->control)
		rest(peer, over_ns);
}

/* Charges the time since the turn began. */
static void charge(struct sl_peer *peer, const struct sl_share_turn *turn)
{
	uint64_t spent_ns = sl_share_spent_ns(turn);

	place(peer, spent_ns);
	sl_share_note_ns(peer->daemon,
		!peer->greeted  ? SL_SHARE_GREETING
		: peer->control ? SL_SHARE_CONTROL
				: SL_SHARE_CLIENT,
		spent_ns);
}

/* --- output ------------------------------------------------------------------------------- */

static struct sl_peer_out *enqueue(struct sl_peer *peer, const union sl_msg *msg)
{
	size_t size = sl_wire_size(msg->head.type);
	struct sl_peer_out *out = NULL;

	if (peer->queued_bytes + size <= SL_PEER_QUEUE_MAX)
		out = malloc(sizeof(*out) + size);
	if (!out) {
		if (sl_peer_may_log(peer->daemon, SL_LOG_WARNING))
			sl_warning("process %d does not read its messages; dropping its "
				   "connection",
				(int)peer->pid);
		sl_peer_doom(peer);
		return NULL;
	}
	*out = (struct sl_peer_out){.size = size};
	memcpy(out->data, msg, size);
	*peer->last = out;
	peer->last = &out->next;
	peer->queued_bytes += size;
	return out;
}

void sl_peer_send(struct sl_peer *peer, union sl_msg *msg)
{
	int r = SL_WIRE_AGAIN;

	if (peer->doomed)
		return;
	if (!peer->first && !peer->held)
		r = sl_wire_send(peer->fd, msg);
	if (r == SL_WIRE_OK)
		return;
	if (r != SL_WIRE_AGAIN && r != -ENOBUFS) {
		sl_peer_doom(peer);
		return;
	}
	(void)enqueue(peer, msg);
	watch(peer);
}

/* With too many descriptors of this user in flight, sending fails and the peer is dropped, as if
 * the connection were lost. Its client asks again on its next connection. */
void sl_peer_send_fds(struct sl_peer *peer, union sl_msg *msg, struct sl_bundle *bundle,
	uint32_t first, uint32_t count)
{
	struct sl_peer_out *out;
	int r = SL_WIRE_AGAIN;

	if (peer->doomed)
		return;
	if (!peer->first && !peer->held)
		r = sl_wire_send_fds(peer->fd, msg, bundle->fd + first, count);
	if (r == SL_WIRE_OK)
		return;
	if (r != SL_WIRE_AGAIN && r != -ENOBUFS) {
		sl_peer_doom(peer);
		return;
	}
	out = enqueue(peer, msg);
	if (out) {
		out->bundle = sl_bundle_ref(bundle);
		out->first = first;
		out->count = count;
	}
	watch(peer);
}

static int send_out(const struct sl_peer *peer, const struct sl_peer_out *out)
{
	const union sl_msg *msg = (const union sl_msg *)(const void *)out->data;

	return out->bundle ? sl_wire_send_fds(peer->fd, msg, out->bundle->fd + out->first,
				     out->count)
			   : sl_wire_send(peer->fd, msg);
}

/* Sends queued output as far as the kernel takes it. */
static void flush(struct sl_peer *peer)
{
	while (!peer->doomed && !peer->held && peer->first) {
		struct sl_peer_out *out = peer->first;
		int r = send_out(peer, out);

		if (r == SL_WIRE_AGAIN || r == -ENOBUFS)
			break;
		if (r != SL_WIRE_OK) {
			sl_peer_doom(peer);
			return;
		}
		peer->first = out->next;
		if (!peer->first)
			peer->last = &peer->first;
		peer->queued_bytes -= out->size;
		out_free(peer->daemon, out);
	}
	if (!peer->doomed && !peer->first)
		peer->daemon->up->peer_drained(peer);
	watch(peer);
}

void sl_peer_list_wake(struct sl_peer *peer)
{
	if (peer->doomed || peer->first || !peer->list.active)
		return;
	peer->daemon->up->peer_drained(peer);
	watch(peer);
}

void sl_peer_hold(struct sl_peer *peer)
{
	if (peer->doomed)
		return;
	/* A peer held for the writing in progress is then held for the next one, too. */
	peer->held = true;
	/* A peer held for the store of jobs comes here again afterwards. */
	if (peer->held_ticket)
		return;
	sl_list_unlink(&peer->held_link);
	sl_list_push_tail(&peer->daemon->commit.held, &peer->held_link);
}

void sl_peer_revise(
	struct sl_peer *peer, void (*fn)(struct sl_peer *peer, union sl_msg *msg))
{
	for (struct sl_peer_out *out = peer->first; out; out = out->next)
		fn(peer, (union sl_msg *)(void *)out->data);
}

void sl_peer_release(struct sl_peer *peer)
{
	peer->held = false;
	sl_list_unlink(&peer->held_link);
	flush(peer);
}

static void close_fds(struct sl_wire_fds *fds, uid_t uid)
{
	for (uint32_t i = 0; i < fds->count; i++)
		sl_bundle_close(fds->fd[i], uid);
	fds->count = 0;
}

/*
 * If a socket is closed with unread messages, the kernel reports ECONNRESET to the other end before
 * our last message. So input is stopped and what is there is read before the socket is closed.
 * Reading ends at a message with descriptors: they would have to be closed, and there may be
 * thousands.
 */
static void drain(int fd)
{
	int r = SL_WIRE_OK;

	(void)shutdown(fd, SHUT_RD);
	sl_identity_asked(fd);
	for (int i = 0; i < DRAIN_MAX && (r == SL_WIRE_OK || r == SL_WIRE_BAD ||
						 r == SL_WIRE_OTHER_VERSION);
		i++) {
		union sl_msg msg;

		if (sl_wire_brings_fds(fd))
			return;
		r = sl_wire_recv(fd, SL_FROM_CLIENT, &msg, NULL);
	}
}

void sl_peer_turn_away(int fd, enum sl_reject reason, const char *text)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_REJECT);
	msg.reject.reason = reason;
	msg.reject.daemon_version = SL_PROTOCOL_VERSION;
	sl_wire_str(msg.reject.text, sizeof(msg.reject.text), text);
	if (sl_wire_send(fd, &msg) != SL_WIRE_OK)
		sl_debug("a peer was turned away without a word: %s", text);
	drain(fd);
}

bool sl_peer_may_log(struct sl_daemon *daemon, int level)
{
	sl_ns second = sl_clock_now() / SL_S;

	if (!sl_log_on(level))
		return false;
	if (daemon->peers->lines_second != second) {
		if (daemon->peers->lines_dropped)
			sl_warning("%u more lines about connections and workloads were "
				   "left out",
				daemon->peers->lines_dropped);
		daemon->peers->lines_second = second;
		daemon->peers->lines = daemon->peers->lines_dropped = 0;
	}
	if (daemon->peers->lines++ < SL_PEER_LINES_PER_SECOND)
		return true;
	daemon->peers->lines_dropped++;
	return false;
}

void sl_peer_reject(struct sl_peer *peer, enum sl_reject reason, const char *format, ...)
{
	struct sl_error text = {0};
	char words[256];
	va_list args;
	int level;

	if (peer->doomed)
		return;
	va_start(args, format);
	(void)vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	sl_error_set(&text, "%s", words);
	level = reason == SL_REJECT_PROTOCOL ? SL_LOG_WARNING : SL_LOG_INFO;
	if (sl_peer_may_log(peer->daemon, level))
		sl_log(level, "rejecting process %d of user %u: %s", (int)peer->pid,
			(unsigned int)peer->uid, text.text);
	sl_peer_turn_away(peer->fd, reason, text.text);
	sl_peer_doom(peer);
}

/* Keeps the HELLO of an unproven process and sends the nonce. */
static void challenge(struct sl_peer *peer, const union sl_msg *msg)
{
	union sl_msg question;
	int r;

	sl_wire_init(&question, SL_MSG_CHALLENGE);
	if (msg->head.type != SL_MSG_HELLO) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL, "%s before HELLO",
			sl_wire_name(msg->head.type));
		return;
	}
	r = sl_identity_ask(peer->fd, peer->nonce);
	if (r < 0) {
		sl_peer_reject(peer, SL_REJECT_FULL,
			"sluiced cannot ask who connects (%s); try again", strerror(-r));
		return;
	}
	peer->hello = msg->hello;
	peer->asked = true;
	memcpy(question.challenge.nonce, peer->nonce, sizeof(peer->nonce));
	sl_peer_send(peer, &question);
}

static bool check_proof(struct sl_peer *peer, pid_t sender)
{
	int r = sl_identity_prove(sender, peer->pid, peer->pidfd, peer->uid);

	if (r < 0)
		sl_peer_reject(peer, SL_REJECT_FULL,
			"sluiced cannot look at process %d (%s); try again",
			(int)peer->pid, strerror(-r));
	else if (r != SL_IDENTITY_OK)
		sl_peer_reject(peer, SL_REJECT_DENIED,
			"the process that connected, %d of user %u, is not the one that "
			"answers; a process must make its own connection",
			(int)peer->pid, (unsigned int)peer->uid);
	return r == SL_IDENTITY_OK;
}

/* The first message; the first two where the kernel hands out no pidfd. */
static void take_greeting(struct sl_peer *peer, const union sl_msg *msg, pid_t sender)
{
	union sl_msg hello = {.hello = peer->hello};

	if (peer->proven) {
		peer->daemon->up->peer_greeting(peer, msg);
	} else if (!peer->asked) {
		challenge(peer, msg);
	} else if (msg->head.type != SL_MSG_PROOF ||
		   memcmp(msg->proof.nonce, peer->nonce, sizeof(peer->nonce)) != 0) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL,
			"%s instead of an answer to CHALLENGE",
			sl_wire_name(msg->head.type));
	} else if (check_proof(peer, sender)) {
		sl_identity_asked(peer->fd);
		peer->proven = true;
		peer->daemon->up->peer_greeting(peer, &hello);
	}
}

static void take_message(struct sl_peer *peer)
{
	unsigned int from = !peer->greeted  ? SL_FROM_CLIENT | SL_FROM_CONTROL
			    : peer->control ? SL_FROM_CONTROL
					    : SL_FROM_CLIENT;
	struct sl_error err = {0};
	struct sl_wire_fds fds = {0};
	union sl_msg msg;
	int r;

	if (sl_bundle_is_crowded(peer->uid) && sl_wire_brings_fds(peer->fd)) {
		sl_peer_reject(peer, SL_REJECT_FULL,
			"%d descriptors of user %u wait to be closed, and the files' own "
			"systems do not answer; no more are taken",
			SL_BUNDLE_STRAYS_MAX, (unsigned int)peer->uid);
		return;
	}
	r = sl_wire_recv_fds(peer->fd, from, &msg, &fds, &err);
	switch (r) {
	case SL_WIRE_OK:
		peer->daemon->messages++;
		if (!peer->greeted)
			take_greeting(peer, &msg, fds.sender);
		else
			peer->daemon->up->peer_message(peer, &msg, &fds);
		break;
	case SL_WIRE_AGAIN: break;
	case SL_WIRE_OTHER_VERSION:
		sl_peer_reject(peer, SL_REJECT_VERSION,
			"sluiced " SL_VERSION
			" speaks protocol %u, and this program %u; install sluice, "
			"sluiced and libsluice.so of one version (%s "
			"is the older)",
			SL_PROTOCOL_VERSION, msg.head.version,
			msg.head.version > SL_PROTOCOL_VERSION ? "sluiced"
							       : "the program");
		break;
	case SL_WIRE_BAD: sl_peer_reject(peer, SL_REJECT_PROTOCOL, "%s", err.text); break;
	default: sl_peer_doom(peer); break;
	}
	close_fds(&fds, peer->uid);
}

static void take_messages(struct sl_peer *peer, sl_ns begin)
{
	struct sl_daemon *daemon = peer->daemon;

	for (int i = 0; i < SL_PEER_BUDGET && !peer->doomed; i++) {
		uint64_t before = daemon->messages;

		take_message(peer);
		if (daemon->messages == before || peer->list.active || peer->look ||
			(peer->control && peer->first) || sl_share_turn_is_over(begin))
			return;
	}
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct sl_peer *peer = context;
	struct sl_daemon *daemon = peer->daemon;
	struct sl_share_turn turn = sl_share_begin();

	if (events & EPOLLOUT)
		flush(peer);
	if (!peer->doomed && (events & EPOLLIN))
		take_messages(peer, turn.begin);
	else if (!peer->doomed && (events & (EPOLLHUP | EPOLLERR)))
		sl_peer_doom(peer);
	charge(peer, &turn);
	watch(peer);
	daemon->up->settle(daemon);
	return 0;
}

/* --- accepting ---------------------------------------------------------------------------- */

static int identify(struct sl_peer *peer)
{
	struct sl_identity identity;
	int r = sl_identity_of_socket(peer->fd, &identity);

	if (r != SL_IDENTITY_OK)
		return r == SL_IDENTITY_GONE ? sl_err_origin(-ESRCH) : r;
	peer->pid = identity.pid;
	peer->uid = identity.uid;
	peer->pidfd = identity.pidfd;
	peer->start_ticks = identity.start_ticks;
	peer->proven = identity.proven;
	peer->share_key = (uint64_t)identity.pid;
	return 0;
}

/* The process is the daemon itself and need not be watched. */
static void identify_inside(struct sl_peer *peer, struct sl_user *who)
{
	static uint64_t number;

	peer->who = who;
	peer->proven = true;
	peer->uid = who->uid;
	peer->pid = getpid();
	/* Numbers beyond all pids: each such peer counts as one process of its user. */
	peer->share_key = 1ull << 32 | (number++ & UINT32_MAX);
}

/* Takes ownership of the user only on success. */
static int peer_new(
	struct sl_daemon *daemon, int fd, struct sl_user *who, struct sl_peer **out)
{
	struct sl_peer *peer = calloc(1, sizeof(*peer));
	int r = 0;

	if (!peer)
		return sl_err_origin(-ENOMEM);
	peer->daemon = daemon;
	peer->fd = fd;
	peer->pidfd = -1;
	peer->last = &peer->first;
	peer->since = sl_clock_now();
	sl_list_init(&peer->held_link);
	sl_list_init(&peer->link);
	sl_list_init(&peer->follow_link);
	sl_list_init(&peer->rest_link);
	if (who)
		identify_inside(peer, who);
	else
		r = identify(peer);
	if (r >= 0)
		r = sd_event_add_io(daemon->loop, &peer->io, fd, EPOLLIN, on_io, peer);
	if (r < 0) {
		sl_closep(&peer->pidfd);
		free(peer);
		return r;
	}
	place(peer, 0);
	*out = peer;
	return 0;
}

static void await_greeting(struct sl_peer *peer)
{
	struct sl_daemon *daemon = peer->daemon;

	if (sl_list_is_empty(&daemon->peers->greeting))
		sl_timer_set(
			daemon->peers->greeting_timer, peer->since + SL_PEER_GREETING_NS);
	sl_list_push_tail(&daemon->peers->greeting, &peer->link);
}

void sl_peer_accept(struct sl_daemon *daemon, int fd_in, uint64_t workload)
{
	sl_cleanup(sl_closep) int fd = fd_in;
	struct sl_peer *peer = NULL;
	int r = peer_new(daemon, fd, NULL, &peer);

	if (r < 0) {
		sl_peer_turn_away(fd, r == -ESRCH ? SL_REJECT_DENIED : SL_REJECT_FULL,
			r == -ESRCH
				? "sluiced cannot see this process, or it is dead; run "
				  "both in one pid namespace, or the daemon in the "
				  "host's"
				: "sluiced has no descriptors or memory left; try again");
		sl_bundle_hang_up(sl_steal_fd(&fd));
		return;
	}
	(void)sl_steal_fd(&fd);
	peer->entry = workload;
	daemon->peers->count++;
	await_greeting(peer);
}

void sl_peer_adopt(struct sl_daemon *daemon, int fd_in, struct sl_user *who)
{
	sl_cleanup(sl_closep) int fd = fd_in;
	struct sl_peer *peer = NULL;

	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || peer_new(daemon, fd, who, &peer) < 0) {
		sl_peer_turn_away(fd, SL_REJECT_FULL,
			"sluiced has no descriptors or memory left; try again");
		(void)sl_user_free(who);
		return;
	}
	(void)sl_steal_fd(&fd);
	await_greeting(peer);
}

static int on_greeting_timeout(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;
	sl_ns now = sl_clock_now();

	while (!sl_list_is_empty(&daemon->peers->greeting)) {
		struct sl_peer *peer =
			SL_LIST_ENTRY(daemon->peers->greeting.next, struct sl_peer, link);

		if (peer->since + SL_PEER_GREETING_NS > now) {
			sl_timer_set(source, peer->since + SL_PEER_GREETING_NS);
			break;
		}
		sl_peer_reject(peer, SL_REJECT_PROTOCOL, "no HELLO within 10 s");
	}
	daemon->up->settle(daemon);
	return 0;
}

/* --- all peers ---------------------------------------------------------------------------- */

int sl_peer_open(struct sl_daemon *daemon)
{
	struct sl_peers *peers = calloc(1, sizeof(*peers));
	int r;

	if (!peers)
		return sl_err_origin(-ENOMEM);
	daemon->peers = peers;
	sl_list_init(&peers->all);
	sl_list_init(&peers->greeting);
	sl_list_init(&peers->resting);
	sl_list_init(&peers->dead);
	peers->rest_at = SL_NS_NEVER;
	r = sl_timer_new(
		daemon, SL_PRIORITY_TIMER, on_greeting_timeout, &peers->greeting_timer);
	return r < 0 ? r
		     : sl_timer_new(
			       daemon, SL_PRIORITY_TIMER, on_rested, &peers->rest_timer);
}

static void drop(const struct sl_link *list)
{
	while (!sl_list_is_empty(list)) {
		struct sl_peer *peer = SL_LIST_ENTRY(list->next, struct sl_peer, link);

		if (peer->client)
			peer->client->peer = NULL;
		peer->client = NULL; /* the policy is not told any more */
		sl_peer_doom(peer);
	}
}

void sl_peer_close(struct sl_daemon *daemon)
{
	struct sl_peers *peers = daemon->peers;
	struct sl_peer *peer;

	if (!peers)
		return;
	drop(&peers->greeting);
	drop(&peers->all);
	while ((peer = sl_peer_take_dead(daemon)))
		sl_peer_free(peer);
	peers->greeting_timer = sd_event_source_disable_unref(peers->greeting_timer);
	peers->rest_timer = sd_event_source_disable_unref(peers->rest_timer);
	daemon->peers = NULL;
	free(peers);
}
