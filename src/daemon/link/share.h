/*
 * share - how much of the loop's time each process and user takes, and what stands back for that
 *
 * Every turn of a peer is charged, in nanoseconds of this thread's time, to its process and to its
 * user: leaky buckets that drain at SL_SHARE_PCT of real time. It is work-conserving: a process
 * over its share is served after everybody else who has something to say, not less. Only the
 * command line's peers rest when they are over theirs, because what they ask (lists, dumps,
 * searches) can wait and costs most.
 *
 * So a neighbour's message waits for one turn at most of each flooding peer that is not yet known
 * as one, and a turn is bounded in messages, rows, and time (SL_SHARE_TURN_NS). Buckets are a table
 * of fixed size, found by a salted hash: two processes may share one, which can only cost the
 * innocent its place in the order. O(1), no allocation after the first use. Loop's thread.
 */
#ifndef SL_DAEMON_LINK_SHARE_H
#define SL_DAEMON_LINK_SHARE_H

#include <sys/types.h>

#include "base/clock.h"

struct sl_daemon;

/* Of real time, for one process, and for all processes of one user. */
#define SL_SHARE_PCT 20
/* What a process may use at once before it counts as greedy; the command line may use more. */
#define SL_SHARE_CLIENT_NS  (5 * SL_MS)
#define SL_SHARE_CONTROL_NS (50 * SL_MS)
/* More than that is not held against anybody: half a second after a flood all is forgiven, and who
 * shares a bucket with one rests no longer. */
#define SL_SHARE_MOST_NS (SL_SHARE_CONTROL_NS + 100 * SL_MS)
/* The end of a turn, looked at after each message and row. */
#define SL_SHARE_TURN_NS (200 * SL_US)
/* So many of the longest turns of a kind are kept. */
#define SL_SHARE_LONGEST 4

enum sl_share_kind {
#define SL_SHARE_KIND(ID, key, text) SL_SHARE_##ID,
#include "daemon/link/share.def"
#undef SL_SHARE_KIND
	SL_SHARE_KINDS
};

struct sl_share_use {
	uint64_t process_ns, user_ns;
};

struct sl_share_turn {
	sl_ns begin, cpu_begin; /* on the clock, and of the thread's time */
};

struct sl_share_turn sl_share_begin(void);
/* Of the thread's time, until now. */
uint64_t sl_share_spent_ns(const struct sl_share_turn *turn);
/* Charges a process, by a number that stands for it, and its user. *use is what each has used of
 * late beyond its share. False: there is no memory, and none is judged. */
SL_MUST_CHECK bool sl_share_charge(struct sl_daemon *daemon, uint64_t key, uid_t uid,
	uint64_t spent_ns, struct sl_share_use *use);
/* Something else than a peer had the loop until now. */
void sl_share_note(struct sl_daemon *daemon, enum sl_share_kind kind,
	const struct sl_share_turn *turn);
/* The same by a measure of the caller's own. */
void sl_share_note_ns(
	struct sl_daemon *daemon, enum sl_share_kind kind, uint64_t spent_ns);
/* The longest so far, in the thread's time; the SL_SHARE_LONGEST-th longest, which tells what the
 * loop does from what the machine did to it once (a virtual one that stands still for a few
 * milliseconds has them on this thread's account); and the kind's name. */
uint64_t sl_share_longest_ns(const struct sl_daemon *daemon, enum sl_share_kind kind);
uint64_t sl_share_long_ns(const struct sl_daemon *daemon, enum sl_share_kind kind);
const char *sl_share_kind_name(enum sl_share_kind kind);
/* Its turn is over. */
bool sl_share_turn_is_over(sl_ns begin);
void sl_share_fini(struct sl_daemon *daemon);

#endif
