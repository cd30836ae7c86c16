/*
 * events - what happened on this machine: kept, logged, and told to who follows
 *
 * A ring of the last `events_kept` reasons with the names and numbers of their sentences as they
 * were then; ended workloads keep theirs. Loop's thread. Adding is O(1) and never fails: what
 * cannot be kept is counted as lost. One workload gets at most SL_EVENTS_PER_SECOND ordinary events
 * kept, so that a program which is refused a thousand times a second does not push out what others
 * must know. A follower that does not read loses events (its next row says how many), never its
 * connection, and never delays anybody.
 *
 * Serials grow by one from the microsecond of the daemon's start, so they also grow from one
 * daemon to the next.
 */
#ifndef SL_DAEMON_REPORT_EVENTS_H
#define SL_DAEMON_REPORT_EVENTS_H

#include "daemon/core/stream.h"
#include "daemon/state/daemon.h"

#define SL_EVENTS_PER_SECOND 50
/* Kept events that a search looks at before others get their turn. */
#define SL_EVENTS_SCAN 2000

struct sl_event_kept {
	uint64_t serial, realtime_ms;
	struct sl_node_because because; /* client is 0 where only the pid is known */
	uint32_t pid, uid; /* uid: of the workload's user; UINT32_MAX: none */
	uint64_t lost;     /* events that were dropped right before it */
	char name[64], other_name[64];
};

/* because->client names the process, where it matters. Also writes the log line. */
void sl_events_add(struct sl_daemon *daemon, const struct sl_node_because *because);
/* What an action says to people: NOTE, PARKED, RESUMED, LEFT. */
struct sl_node_because sl_events_of_action(const struct sl_action *action);
/* The same about a process that is no client, or none any more: its number is given. */
void sl_events_add_of(
	struct sl_daemon *daemon, const struct sl_node_because *because, pid_t pid);

/* Makes the ring. 0 or -ENOMEM. */
SL_MUST_CHECK int sl_events_init(struct sl_daemon *daemon);
void sl_events_fini(struct sl_daemon *daemon);
/* Makes it as large as the configuration says; the newest stay. Without memory it stays. */
void sl_events_resize(struct sl_daemon *daemon);
/* Kept events, and the serials of the oldest of them and of the next to come. */
struct sl_events_span {
	uint64_t oldest, next;
};
struct sl_events_span sl_events_span(const struct sl_daemon *daemon);
/* The event of a serial, NULL if it is not kept. Valid until the next sl_events_add. */
const struct sl_event_kept *sl_events_at(const struct sl_daemon *daemon, uint64_t serial);
/* It is about, or has on its other side, the workload of this name or number. */
bool sl_events_concerns(const struct sl_event_kept *event, const char *name);
/* What an event would be that happened now: names and process filled in. */
struct sl_event_kept sl_events_fill(
	const struct sl_daemon *daemon, const struct sl_node_because *because, pid_t pid);
void sl_events_row(const struct sl_event_kept *event, bool current, union sl_msg *msg);

/* EVENTS came in: sets the peer's stream up. */
void sl_events_begin(struct sl_peer *peer, const struct sl_msg_events *events);
/* The stream's next row: see stream.h. */
enum sl_stream_outcome sl_events_next(struct sl_peer *peer, union sl_msg *msg);

#endif
