/*
 * share - charges each process and user for the loop's time, and puts those over their share last
 *
 * Every turn of a peer is charged, in nanoseconds of this thread's CPU time, to its process and to
 * its user. Both have leaky buckets that drain at SL_SHARE_PCT of real time. The scheme is
 * work-conserving: a process over its share is served after all other peers with messages, but not
 * less. Only the command line's peers rest when they are over theirs, because their requests
 * (lists, dumps, searches) can wait and cost most.
 *
 * So a message waits at most one turn of each flooding peer that is not yet known as one. A turn is
 * bounded in messages, rows, and time (SL_SHARE_TURN_NS). Buckets are in a table of fixed size,
 * found by a salted hash. Two processes may share a bucket, which costs the innocent one only its
 * place in the order. O(1), no allocation after the first use. Loop's thread.
 */
#ifndef SL_DAEMON_LINK_SHARE_H
#define SL_DAEMON_LINK_SHARE_H

#include <sys/types.h>

#include "base/clock.h"

struct sl_daemon;

/* Share of real time: of one process, and of all processes of one user. */
#define SL_SHARE_PCT 20
/* The level above which a process counts as greedy; the command line may use more. */
#define SL_SHARE_CLIENT_NS  (5 * SL_MS)
#define SL_SHARE_CONTROL_NS (50 * SL_MS)
/* The highest level of a bucket. So a peer rests for at most half a second after its flood, and so
 * does another peer that shares its bucket. */
#define SL_SHARE_MOST_NS (SL_SHARE_CONTROL_NS + 100 * SL_MS)
/* Length of a turn, checked after each message and row. */
#define SL_SHARE_TURN_NS (200 * SL_US)
/* Number of longest turns kept per kind. */
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
	sl_ns begin, cpu_begin; /* clock time, and the thread's CPU time */
};

struct sl_share_turn sl_share_begin(void);
/* CPU time of the thread until now. */
uint64_t sl_share_spent_ns(const struct sl_share_turn *turn);
/* Charges a process, by a key, and its user. *use tells how much each has recently used beyond its
 * share. False: no memory; nothing is judged. */
SL_MUST_CHECK bool sl_share_charge(struct sl_daemon *daemon, uint64_t key, uid_t uid,
	uint64_t spent_ns, struct sl_share_use *use);
/* Charges the turn until now to work of this kind, which is not a peer's. */
void sl_share_note(struct sl_daemon *daemon, enum sl_share_kind kind,
	const struct sl_share_turn *turn);
/* Likewise, with the caller's own measurement. */
void sl_share_note_ns(
	struct sl_daemon *daemon, enum sl_share_kind kind, uint64_t spent_ns);
/* CPU time of the longest turn so far; that of the SL_SHARE_LONGEST-th longest; and the kind's
 * name. The second leaves out single hiccups of the machine: a virtual one that stands still for
 * some milliseconds charges them to this thread. */
uint64_t sl_share_longest_ns(const struct sl_daemon *daemon, enum sl_share_kind kind);
uint64_t sl_share_long_ns(const struct sl_daemon *daemon, enum sl_share_kind kind);
const char *sl_share_kind_name(enum sl_share_kind kind);
/* Has a turn that began then used up its time? */
bool sl_share_turn_is_over(sl_ns begin);
void sl_share_fini(struct sl_daemon *daemon);

#endif
