/*
 * rank - in which order claims are considered (decision 0037, section 1)
 *
 * Pure: facts in, a rank out; no clock. Times are points in time unless called a span; 0 means
 * "not". sl_rank_of() knows the rules and fills the slots; sl_rank_compare() compares them in
 * order, smaller first, and knows no rule.
 */
#ifndef SL_POLICY_RANK_H
#define SL_POLICY_RANK_H

#include "base/clock.h"

enum sl_rank_kind {
	SL_RANK_BODY, /* a client that runs */
	SL_RANK_GRACE, /* a whole client that does not run, of a workload within its request */
	SL_RANK_DEMAND
};

enum sl_rank_class {
	SL_RANK_THERE = 1, /* entitled and there: needs no room */
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
	bool crowded; /* on one of its GPUs, the entitled claims do not all fit beside what lasts */
	bool coming; /* a body that is COMING, or a demand that is SEATED */
	/* On each of its GPUs, missing <= free + leaving bytes of clients that answer; dying bytes
	 * and those of processes being stopped do not count. */
	bool covered;
	bool backs_off;
	bool served;       /* the client's seat_as is SERVED */
	bool overdue_seat; /* and has the bit OVERDUE */
	/* A demand of the client has no seat, and the client is proven idle for 20 ms. */
	bool stalls;
	int32_t priority;
	sl_ns asked_at; /* a body: since it wants to run; a demand: arrival; a grace: 0 */
	/* The client's last slice; cost: a span, what moving its workload takes. */
	sl_ns served_at, slice_ends, cost;
	/* A span: slice / min_share while a higher priority competes; 0: none competes. */
	sl_ns patience;
	/* The oldest other waiting body of its workload that is not endless. NULL: none, or the
	 * workload never fits together. */
	const struct sl_rank_facts *sibling;
	uint64_t sequence; /* of a demand, else 0 */
	uint64_t client;
};

struct sl_rank {
	enum sl_rank_class class; /* K1 */
	int64_t second, third;    /* K2, K3: larger is later */
	uint32_t kind;            /* K4 */
	uint64_t since;           /* K5 */
	bool away;                /* K6 */
	uint64_t sequence, client;
};

/* Lowers *next to the time when the rank may change without an event, if that is earlier. */
struct sl_rank sl_rank_of(const struct sl_rank_facts *facts, sl_ns now, sl_ns *next);

/* Below 0: a is first. 0 only for the same claim. */
int sl_rank_compare(const struct sl_rank *a, const struct sl_rank *b);

#endif
