/*
 * rank - in which order claims are looked at (decision 0037, section 1)
 *
 * Pure: facts in, a rank out; no clock. Times are points in time unless named a span, 0 is "not".
 * sl_rank_of() knows the rules and fills the slots; sl_rank_compare() compares them one after the
 * other, smaller first, and knows no rule.
 */
#ifndef SL_POLICY_RANK_H
#define SL_POLICY_RANK_H

#include "base/clock.h"

enum sl_rank_kind {
	SL_RANK_BODY,  /* a client that runs */
	SL_RANK_GRACE, /* a whole client that does not, of a workload within its request */
	SL_RANK_DEMAND
};

enum sl_rank_class {
	SL_RANK_THERE = 1, /* entitled and there: asks for no room */
	SL_RANK_GUARDED,
	SL_RANK_ENTITLED,
	SL_RANK_OVERDUE,
	SL_RANK_BURST
};

/* One claim and its client. */
struct sl_rank_facts {
	enum sl_rank_kind kind;
	bool entitled; /* body, grace: its workload is within its request; demand: with it */
	bool whole;    /* nothing of the client is evicted or returning */
	bool evict_open;
	bool crowded; /* not all entitled claims fit beside what lasts, on one of its GPUs */
	bool coming; /* a body that is COMING, a demand that is SEATED */
	/* On each of its GPUs missing <= free + leaving bytes of clients that answer; what is dying
	 * or told to end for a demand does not count. */
	bool covered;
	bool backs_off;
	bool served;       /* the client's seat_as is SERVED */
	bool overdue_seat; /* and has the bit OVERDUE */
	/* A demand of the client has no seat, and the client is proven idle for 20 ms. */
	bool stalls;
	int32_t priority;
	sl_ns asked_at; /* wants_since of a body, arrived of a demand; grace: 0 */
	/* Of the last slice that the client was in, and its workload's cost of moving, a span. */
	sl_ns served_at, slice_ends, cost;
	/* A span: slice / min_share while a higher priority competes. 0: none does. */
	sl_ns patience;
	/* The oldest other body of its workload that waits and is not endless. NULL: none, or the
	 * workload never fits together. */
	const struct sl_rank_facts *sibling;
	uint64_t sequence; /* of a demand, else 0 */
	uint64_t client;
};

struct sl_rank {
	enum sl_rank_class class; /* K1 */
	int64_t second, third;    /* K2, K3: what counts less is larger */
	uint32_t kind;            /* K4 */
	uint64_t since;           /* K5 */
	bool away;                /* K6 */
	uint64_t sequence, client;
};

/* *next is lowered to when time alone may change the rank, if that is earlier. */
struct sl_rank sl_rank_of(const struct sl_rank_facts *facts, sl_ns now, sl_ns *next);

/* Below 0: a is first. 0 only for the same claim. */
int sl_rank_compare(const struct sl_rank *a, const struct sl_rank *b);

#endif
