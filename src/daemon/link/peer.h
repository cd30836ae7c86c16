/*
 * peer - one connection: who is at the other end, what comes in, what waits to go out
 *
 * Reading is budgeted per turn of the loop, so that a flood delays nobody else. Sending never
 * blocks: what the kernel does not take is queued, up to a bound, and a peer beyond it is
 * dropped; whoever sends too much or nonsense loses its own connection and nothing more.
 */
#ifndef SL_DAEMON_LINK_PEER_H
#define SL_DAEMON_LINK_PEER_H

#include "daemon/core/identity.h"
#include "daemon/core/stream.h"
#include "daemon/state/daemon.h"

/* Messages handled for one peer before the others get their turn. */
#define SL_PEER_BUDGET 32
/* Bytes that may wait for a peer that does not read: 250 grants, 20 rows. */
#define SL_PEER_QUEUE_MAX (16u * 1024)
/* Lines of the log per second that peers can cause. */
#define SL_PEER_LINES_PER_SECOND 50
/* Time for the first message. */
#define SL_PEER_GREETING_NS (10 * SL_S)

struct sl_bundle;
struct sl_recount;
struct sl_peer_out;
struct sl_projects_change;
struct sl_user;

/* What is being answered in many rows; see stream.h. */
struct sl_peer_list {
	bool active;
	bool waits; /* follows, and has told everything */
	enum sl_stream_kind kind;
	uint32_t what, rows;
	uint64_t workload; /* next row: this or the next larger id */
	uint64_t client;   /* the last one told */
	uint32_t place;    /* GPU or ordinal of the next row */
	/* events: the next serial; where the kept ones end; how many to go back for */
	uint64_t serial, until, lost;
	uint32_t last;
	bool rewinds, follows;
	bool ended; /* a follower was told where the kept ones end */
	char name[64];
	void *state; /* of why and dump */
	void (*free_state)(void *state);
};

struct sl_peer {
	struct sl_link link;      /* sl_peers.all or .greeting, later .dead */
	struct sl_link held_link; /* sl_commit.held or .held_writing, or sl_jobs.held */
	uint64_t held_ticket;     /* of sl_jobs.held; 0: not there */
	struct sl_daemon *daemon;
	int fd, pidfd;
	sd_event_source *io;
	pid_t pid;
	uint64_t
		start_ticks; /* of the process that connected; 0: /proc does not show it */
	uid_t uid;
	/* False: pid, pidfd and start_ticks may be a stranger's; only a HELLO was taken yet. */
	bool proven;
	bool asked; /* the nonce is out, and its answer is awaited */
	uint8_t nonce[SL_IDENTITY_NONCE_BYTES];
	struct sl_msg_hello hello; /* what it said before it was asked */
	struct sl_user
		*who; /* of a thread of ours (inside.h); NULL: whoever the socket says */
	uint64_t entry; /* the workload whose own socket it came by; 0: the daemon's */
	uint64_t
		share_key; /* whose share of the loop's time it uses, beside its user's */
	uint32_t version;  /* of the protocol, as its HELLO had it */
	sl_ns since;
	bool greeted, control, held, doomed, writing;
	struct sl_client *client; /* NULL for others, and after the client's death */
	struct sl_peer_out *first, **last;
	size_t queued_bytes;
	struct sl_peer_list list;
	struct sl_link follow_link;        /* events.c */
	struct sl_projects_change *change; /* projects/registry.c; NULL: none */
	struct sl_recount
		*look; /* control/recount.c; NULL: what it says is served at once */
	struct sl_link rest_link; /* sl_peers.resting: nothing is done for it */
	sl_ns rest_until;
};

struct sl_peers {
	struct sl_link all, greeting; /* greeting: no HELLO yet, by age */
	sd_event_source *greeting_timer;
	struct sl_link resting; /* rest_link, in no order */
	sd_event_source *rest_timer;
	sl_ns rest_at;
	struct sl_link dead;
	uint32_t count; /* those of max_clients */
	/* Lines of the log, of one second */
	sl_ns lines_second;
	uint32_t lines, lines_dropped;
};

/* Takes a connected socket (in every case) and watches it. A peer that cannot be had is told
 * so and closed. workload: whose own socket it came by (entry.h), 0: the daemon's. */
void sl_peer_accept(struct sl_daemon *daemon, int fd, uint64_t workload);
/* Takes over one end of a pair whose other end a thread of ours speaks at, for who (both in every
 * case): a CONTROL peer of that user, with no process of its own. It has no place in
 * max_clients. */
void sl_peer_adopt(struct sl_daemon *daemon, int fd, struct sl_user *who);
/* Sends or queues; may doom the peer. Sets the message's version to the peer's; a message that its
 * version does not have is not sent. */
void sl_peer_send(struct sl_peer *peer, union sl_msg *msg);
/* The same with count of the bundle's descriptors, which stay there; the bundle is kept until they
 * are sent. */
void sl_peer_send_fds(struct sl_peer *peer, union sl_msg *msg, struct sl_bundle *bundle,
	uint32_t first, uint32_t count);
/* There may be more to tell to a peer whose rows waited. */
void sl_peer_list_wake(struct sl_peer *peer);
/* It is listened to again: its rest, or what it waited for, is over. */
void sl_peer_rested(struct sl_peer *peer);
/* Ends what is being answered in rows, and frees what it held. */
void sl_peer_list_end(struct sl_peer *peer);
/* Tells why, then dooms. */
void sl_peer_reject(struct sl_peer *peer, enum sl_reject reason, const char *format, ...)
	SL_PRINTF(3, 4);
/* Closes the connection; legal inside an action. What follows for its client happens when the
 * peer is buried. */
void sl_peer_doom(struct sl_peer *peer);
/* Output waits from here on until sl_peer_release. */
void sl_peer_hold(struct sl_peer *peer);
void sl_peer_release(struct sl_peer *peer);
/* What is held or queued may still be changed, in place: of fn's message only the fields of its
 * type exist. */
void sl_peer_revise(
	struct sl_peer *peer, void (*fn)(struct sl_peer *peer, union sl_msg *msg));
/* Nothing waits to go out. */
bool sl_peer_is_drained(const struct sl_peer *peer);
/* Is a log line about what somebody did still to be written? So many in a second are; then how
 * many more there were is said once. A log can be a disk's end, or slow. */
SL_MUST_CHECK bool sl_peer_may_log(struct sl_daemon *daemon, int level);
/* Best effort, for a socket that is no peer. */
void sl_peer_turn_away(int fd, enum sl_reject reason, const char *text);
/* A doomed one, which nothing names any more but its client; NULL: there is none. It is to be
 * freed. */
struct sl_peer *sl_peer_take_dead(struct sl_daemon *daemon);
void sl_peer_free(struct sl_peer *peer);
/* Before the first of them. 0 or negative errno. */
SL_MUST_CHECK int sl_peer_open(struct sl_daemon *daemon);
/* Closes and frees all of them; the policy hears nothing of that. */
void sl_peer_close(struct sl_daemon *daemon);

#endif
