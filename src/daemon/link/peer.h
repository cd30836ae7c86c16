/*
 * peer - one connection: the process at the other end, its messages, its queued output
 *
 * Reading is budgeted per turn of the loop, so that a flood delays no other peer. Sending never
 * blocks: what the kernel does not take is queued, up to a bound, and a peer beyond the bound is
 * dropped. A peer that sends too much or nonsense loses its own connection and nothing more.
 */
#ifndef SL_DAEMON_LINK_PEER_H
#define SL_DAEMON_LINK_PEER_H

#include "daemon/core/identity.h"
#include "daemon/core/stream.h"
#include "daemon/state/daemon.h"

/* Messages handled for one peer before other peers get their turn. */
#define SL_PEER_BUDGET 32
/* Bytes that may be queued for a peer that does not read: 250 grants, 20 rows. */
#define SL_PEER_QUEUE_MAX (16u * 1024)
/* Log lines per second that peers can cause. */
#define SL_PEER_LINES_PER_SECOND 50
/* Time for the first message. */
#define SL_PEER_GREETING_NS (10 * SL_S)

struct sl_bundle;
struct sl_recount;
struct sl_peer_out;
struct sl_projects_change;
struct sl_user;

/* An answer in progress that has many rows; see stream.h. */
struct sl_peer_list {
	bool active;
	bool waits; /* follows, and has sent all kept rows */
	enum sl_stream_kind kind;
	uint32_t what, rows;
	uint64_t workload; /* next row: this or the next larger id */
	uint64_t client;   /* the last one sent */
	uint32_t place;    /* GPU or ordinal of the next row */
	/* events: next serial; end of those kept at the start; events lost so far */
	uint64_t serial, until, lost;
	uint32_t last;
	bool rewinds, follows;
	bool ended; /* follower: the end of the kept ones was sent */
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
	/* False: pid, pidfd and start_ticks may be another process's. Only a HELLO was taken. */
	bool proven;
	bool asked; /* the nonce is sent, its answer awaited */
	uint8_t nonce[SL_IDENTITY_NONCE_BYTES];
	struct sl_msg_hello hello; /* its HELLO, kept until it is proven */
	struct sl_user
		*who;       /* for a thread of ours (inside.h); NULL: the socket's user */
	uint64_t entry;     /* workload whose own socket it used; 0: the daemon's */
	uint64_t share_key; /* its bucket of the loop's time (share.h) */
	sl_ns since;
	bool greeted, control, held, doomed, writing;
	struct sl_client *client; /* NULL for others, and after the client's death */
	struct sl_peer_out *first, **last;
	size_t queued_bytes;
	struct sl_peer_list list;
	struct sl_link follow_link;        /* events.c */
	struct sl_projects_change *change; /* projects/registry.c; NULL: none */
	struct sl_recount
		*look; /* control/recount.c; NULL: its messages are served at once */
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
	uint32_t count; /* counted against max_clients */
	/* Log lines within one second. */
	sl_ns lines_second;
	uint32_t lines, lines_dropped;
};

/* Takes ownership of a connected socket (in every case) and watches it. A peer that cannot be
 * served is told so. workload: owner of the socket it used (entry.h); 0: the daemon's. */
void sl_peer_accept(struct sl_daemon *daemon, int fd, uint64_t workload);
/* Takes ownership of fd and the user (in every case). fd is one end of a socket pair; a thread of
 * sluiced uses the other end. It becomes a CONTROL peer of that user, without a process of its own,
 * and not counted in max_clients. */
void sl_peer_adopt(struct sl_daemon *daemon, int fd, struct sl_user *who);
/* Sends or queues; may doom the peer. */
void sl_peer_send(struct sl_peer *peer, union sl_msg *msg);
/* Likewise, with count of the bundle's descriptors. The bundle keeps them, and is kept until they
 * are sent. */
void sl_peer_send_fds(struct sl_peer *peer, union sl_msg *msg, struct sl_bundle *bundle,
	uint32_t first, uint32_t count);
/* Tells a peer whose rows waited that there may be more. */
void sl_peer_list_wake(struct sl_peer *peer);
/* Reads from the peer again: its rest or its wait is over. */
void sl_peer_rested(struct sl_peer *peer);
/* Ends the answer in progress and frees its state. */
void sl_peer_list_end(struct sl_peer *peer);
/* Sends the reason, then dooms. */
void sl_peer_reject(struct sl_peer *peer, enum sl_reject reason, const char *format, ...)
	SL_PRINTF(3, 4);
/* Closes the connection; legal inside an action. Its client hears of it when the peer is buried. */
void sl_peer_doom(struct sl_peer *peer);
/* Queues all output from here on until sl_peer_release. */
void sl_peer_hold(struct sl_peer *peer);
void sl_peer_release(struct sl_peer *peer);
/* Changes held or queued messages in place. fn may touch only the fields of its type. */
void sl_peer_revise(
	struct sl_peer *peer, void (*fn)(struct sl_peer *peer, union sl_msg *msg));
/* Is all output sent? */
bool sl_peer_is_drained(const struct sl_peer *peer);
/* May a log line about a peer's behaviour be written? A fixed number per second are; then one line
 * says how many more there were. Logging without bound could fill the disk, or be slow. */
SL_MUST_CHECK bool sl_peer_may_log(struct sl_daemon *daemon, int level);
/* Best effort, for a socket that is not a peer yet. */
void sl_peer_turn_away(int fd, enum sl_reject reason, const char *text);
/* A doomed peer, which only its client may still refer to, for the caller to free; or NULL. */
struct sl_peer *sl_peer_take_dead(struct sl_daemon *daemon);
void sl_peer_free(struct sl_peer *peer);
/* Call before the first peer. 0 or negative errno. */
SL_MUST_CHECK int sl_peer_open(struct sl_daemon *daemon);
/* Closes and frees all peers without telling the policy. */
void sl_peer_close(struct sl_daemon *daemon);

#endif
