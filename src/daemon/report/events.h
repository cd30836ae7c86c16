/*
 * events - past events of this machine: kept, logged, and sent to followers
 *
 * A ring of the last `events_kept` reasons, with the names and numbers of their sentences as they
 * were then; those of ended workloads stay. Loop's thread. Adding is O(1) and never fails: an event
 * that cannot be kept is counted as lost. At most SL_EVENTS_PER_SECOND ordinary events per workload
 * are kept, so that a program refused a thousand times a second does not push out other events. A
 * follower that does not read loses events (its next row says how many), not its connection; it
 * delays no other.
 *
 * Serials grow by one from the microsecond of the daemon's start, so a later daemon's are larger.
 */
#ifndef SL_DAEMON_REPORT_EVENTS_H
#define SL_DAEMON_REPORT_EVENTS_H

#include "daemon/core/stream.h"
#include "daemon/state/daemon.h"

#define SL_EVENTS_PER_SECOND 50
/* Kept events that a search looks at before other work gets its turn. */
#define SL_EVENTS_SCAN 2000

struct sl_event_kept {
	uint64_t serial, realtime_ms;
	struct sl_node_because because; /* client is 0 if only the pid is known */
	uint32_t pid, uid; /* uid: of the workload's user; UINT32_MAX: none */
	uint64_t lost;     /* events dropped right before it */
	char name[64], other_name[64];
};

/* Adds an event and writes its log line. because->client names the process where it matters. */
void sl_events_add(struct sl_daemon *daemon, const struct sl_node_because *because);
/* Likewise, about a process that is not a client (any longer): pid names it. */
void sl_events_add_of(
	struct sl_daemon *daemon, const struct sl_node_because *because, pid_t pid);
/* The event of an action: NOTE, PARKED, RESUMED, LEFT. */
struct sl_node_because sl_events_of_action(const struct sl_action *action);

/* Makes the ring. 0 or -ENOMEM. */
SL_MUST_CHECK int sl_events_init(struct sl_daemon *daemon);
void sl_events_fini(struct sl_daemon *daemon);
/* Gives the ring its configured size; the newest events stay. Without memory it stays as it is. */
void sl_events_resize(struct sl_daemon *daemon);
/* Serials of the oldest kept event and of the next one to come. */
struct sl_events_span {
	uint64_t oldest, next;
};
struct sl_events_span sl_events_span(const struct sl_daemon *daemon);
/* The event of a serial; NULL if it is not kept. Valid until the next sl_events_add. */
const struct sl_event_kept *sl_events_at(const struct sl_daemon *daemon, uint64_t serial);
/* Does the event concern the workload of this name or number, on either side? "" matches all. */
bool sl_events_concerns(const struct sl_event_kept *event, const char *name);
/* The event as it would be kept now: names and process filled in. */
struct sl_event_kept sl_events_fill(
	const struct sl_daemon *daemon, const struct sl_node_because *because, pid_t pid);
void sl_events_row(const struct sl_event_kept *event, bool current, union sl_msg *msg);

/* An EVENTS arrived: sets up the peer's stream. */
void sl_events_begin(struct sl_peer *peer, const struct sl_msg_events *events);
/* The stream's next row: see stream.h. */
enum sl_stream_outcome sl_events_next(struct sl_peer *peer, union sl_msg *msg);

#endif
