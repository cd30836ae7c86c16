/*
 * share - who uses how much of the loop's time, and who has to stand back for that
 *
 * Every turn of a peer is charged, in nanoseconds of this thread's time, to its process and to its user: leaky buckets that
 * drain at SL_SHARE_PCT of real time. It is work-conserving: a process over its share is served
 * after everybody else who has something to say, not less. Only the command line's peers rest when they
 * are over theirs, because what they ask (lists, dumps, searches) can wait and costs most.
 *
 * So a neighbour's message waits for one turn at most of each flooding peer that is not yet known as
 * one, and a turn is bounded in messages, rows, and time (SL_SHARE_TURN_NS). Buckets are a table of
 * fixed size, found by a salted hash: two processes may share one, which can only cost the
 * innocent its place in the order. O(1), no allocation after the first use. Loop's thread.
 */
#ifndef SL_DAEMON_SHARE_H
#define SL_DAEMON_SHARE_H

#include "daemon/peer.h"

/* Of real time, for one process, and for all processes of one user. */
#define SL_SHARE_PCT 20
/* What a process may use at once before it counts as greedy; the command line may use more. */
#define SL_SHARE_CLIENT_NS  (5 * SL_MS)
#define SL_SHARE_CONTROL_NS (50 * SL_MS)
/* The end of a turn, looked at after each message and row. */
#define SL_SHARE_TURN_NS (200 * SL_US)

struct sl_share_turn {
	sl_ns begin, cpu_begin; /* on the clock, and of the thread's time */
};

struct sl_share_turn sl_share_begin(void);
/* The peer's turn lasted until now: charges it, sets its place in the loop's order, and lets
 * a control peer over its share rest. */
void sl_share_charge(struct sl_peer *peer, const struct sl_share_turn *turn);
/* The place of a peer that was just accepted. */
void sl_share_place(struct sl_peer *peer);
/* The longest turn so far, in the thread's time: of clients, of control peers, and of those who have not
 * said who they are. */
struct sl_share_longest {
	uint64_t client_ns, control_ns, greeting_ns, commit_ns;
};
struct sl_share_longest sl_share_longest(const struct sl_daemon *daemon);
/* The journal was written in this turn. */
void sl_share_commit(struct sl_daemon *daemon, const struct sl_share_turn *turn);
/* Its turn is over. */
bool sl_share_turn_is_over(sl_ns begin);
void sl_share_fini(struct sl_daemon *daemon);

#endif
