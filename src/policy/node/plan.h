/*
 * plan - which client should be on which GPU now, and what follows
 *
 * One pure computation from the facts: sums and looks at clients (copy.c), claims in their rank
 * (claims.c), seats on the copy (seats.c), what has none (ends.c), and the difference between seats
 * and what is there (difference.c). Nothing here is state: all of it is made anew by each plan.
 */
#ifndef SL_POLICY_NODE_PLAN_H
#define SL_POLICY_NODE_PLAN_H

#include "policy/node/internal.h"
#include "policy/verdicts/rank.h"
#include "policy/verdicts/room.h"
#include "policy/verdicts/stops.h"
#include "policy/verdicts/turns.h"

enum sl_node_verdict {
	SL_NODE_SEATED, /* or needs none */
	SL_NODE_LACKS,  /* by room: see the code */
	SL_NODE_KEPT,   /* it fits, but for what demands before it keep */
	SL_NODE_BODY,   /* a demand whose body has no seat */
	SL_NODE_TIME,   /* its time in the chain has not come */
	SL_NODE_BEHIND  /* nothing is moved for it before one whose turn comes */
};

struct sl_node_claim {
	struct sl_node_client *client;
	struct sl_node_demand *demand; /* NULL: a body, or a grace */
	struct sl_rank_facts facts;
	struct sl_rank rank;
	uint32_t gpus;
	bool entitled, is_looked, has_seat,
		with_demand; /* with_demand: its seat came with one */
	enum sl_node_verdict verdict;
	struct sl_room_verdict room;
	uint64_t lets_bytes; /* POOL, or endless for that: what of it may leave */
	bool has_endless;    /* endless was asked for */
	enum sl_endless endless;
	bool reserves, is_over; /* is_over: its demand was denied */
	bool helps; /* it may take what is kept: it has its seat, or its client has what the one
		     * needs that it is kept for */
	uint64_t reserved_bytes[SL_NODE_GPUS_MAX]; /* set aside though it has no seat */
};

/* A client. */
struct sl_node_look {
	bool answers;
	bool goes;  /* can leave now, as what is parked or warm does */
	bool stays; /* leaves for nobody now: fixed */
	bool lasts; /* and no order or answer will change that */
	bool coming; /* told to end for a demand: its bytes are counted on, and it claims nothing */
	bool is_whole, is_idle; /* idle for what moving it costs, proven */
	sl_ns cost;
	bool sits;       /* its body has a seat in this plan */
	bool is_brought; /* looked at by the difference */
	bool proves;     /* were it proven idle, it would be told to end, or go warm */
	uint32_t gpus;   /* where it has anything */
	struct sl_node_claim *body;
};

/* A workload. */
struct sl_node_sums {
	bool is_warm;       /* or is to be: idle for long, and nobody asks for it */
	bool is_within;     /* its request, on each of its GPUs */
	bool fits_together; /* all it has, beside what lasts */
	bool competes, takes_turns;
	bool asks_within; /* what it asks for is within its request, too */
	enum sl_endless endless;
	sl_ns longest_wait;
	uint32_t gpus; /* where it has something that can be moved, or asks */
	sl_ns cost, slice;
	const struct sl_rank_facts *sibling;
	struct sl_room_workload now, lasts, lasts_bursts;
};

/* A client that can leave a GPU. */
struct leaver {
	struct sl_node_client *client;
	uint32_t class; /* who leaves first */
	uint64_t key;
	uint64_t bytes, taken; /* taken: told to leave */
};

/* What workloads of a higher priority have not claimed, in one of the rooms. */
struct sl_node_above {
	bool known;
	int32_t priority;
	uint64_t bytes[SL_NODE_GPUS_MAX];
};

struct sl_node_plan {
	struct sl_room now, lasts, lasts_bursts;
	struct sl_node_above above[3]; /* of these; made where a claim needs them */
	struct sl_node_claim *claims;
	struct sl_node_claim **order;
	/* All clients; those with demands, and with open orders, when it began. */
	struct sl_node_client **all, **askers, **movers;
	uint32_t all_count, askers_count, movers_count;
	struct sl_room_client *clients;    /* for the way back */
	struct leaver *leavers;            /* difference.c */
	struct sl_stop *stops;             /* choice.c; room for each client twice */
	struct sl_node_hopeless *hopeless; /* hopeless.c */
	/* The first demand that free bytes of the GPU are kept for; and for which of them it is
	 * known who helps it. */
	const struct sl_node_claim *keeper[SL_NODE_GPUS_MAX], *helped;
	uint32_t claims_count;
	uint32_t objects, room; /* clients and demands, the most at once; and room for */
	sl_ns rank_due;         /* when time alone changes a rank */
	uint32_t refused;       /* GPUs of demands that are not tried again yet */
	uint32_t blocked;       /* GPUs of claims whose turn comes */
	uint32_t
		worked; /* GPUs where a claim without a seat lacks: others end for the first one */
	uint32_t crowded;
	/* It counted on what does not hold any more: a demand that it denied, or that its
	 * grants took the limit from, or an end that it spared. Nothing leaves by it and no
	 * wait is told, and the next one comes at once. */
	bool is_stale;
	bool trims; /* an EVICT may have to wait for copies of resident chunks */
	int32_t highest[SL_NODE_GPUS_MAX]; /* priority of what claims, by set */
	uint64_t kept_bytes
		[SL_NODE_GPUS_MAX]; /* for demands without a seat, from those behind */
	uint64_t asked_bytes[SL_NODE_GPUS_MAX];   /* by demands that have a seat */
	uint64_t leaving_bytes[SL_NODE_GPUS_MAX]; /* of clients that answer */
	uint32_t set_of[SL_NODE_GPUS_MAX]; /* the lowest GPU that is joined with it */
};

/* --- plan.c --- */
/* One client or demand more: memory of the plan grows with them, and with nothing else. */
void sl_node_make_room(struct sl_node *node);
/* --- copy.c --- */
/* And lists the claims. */
void sl_node_copy(struct sl_node_step *step);
/* What its client could have to bring back. */
uint64_t sl_node_back(const struct sl_ledger_cell *cell);
/* What of a client that has no seat is on the copy there. */
struct sl_room_share sl_node_share_of(
	const struct sl_node *node, const struct sl_node_client *client, uint32_t gpu);
/* What of it is off the GPU, or on its way off, and has no room there. */
uint64_t sl_node_missing(const struct sl_ledger_cell *cell);
/* The GPUs on which something of it is on the host and has no room. What is still to leave is
 * there: it brings its room with it. */
uint32_t sl_node_away_gpus(const struct sl_node_client *client);
/* On all its GPUs. */
uint64_t sl_node_use_of(const struct sl_node_workload *workload);
/* --- claims.c --- */
/* The GPUs that take turns together have one number. */
uint32_t sl_node_set_of(
	const struct sl_node_plan *plan, const struct sl_node_workload *workload);
/* For how long it waits until a higher priority that competes gives way; 0: none does. */
sl_ns sl_node_patience_of(
	const struct sl_node *node, const struct sl_node_workload *workload);
/* Of the workload; its sums are made. */
void sl_node_list_claims(struct sl_node_step *step, struct sl_node_workload *workload);
void sl_node_rank_claims(struct sl_node_step *step);
/* Where the pool has no room for it: how much of what would have to leave it has room for. */
uint64_t sl_node_lets(const struct sl_room *room, const struct sl_room_claim *claim,
	const struct sl_room_verdict *verdict);
/* Adds what it needs where nothing is moved for it, and its body where that makes no claim. */
void sl_node_add_needs(
	const struct sl_node *node, const struct sl_node_claim *claim, uint64_t needs[]);
/* Why it never has a seat, whatever comes and goes in turns. O(GPUs) the first time. */
enum sl_endless sl_node_endless(struct sl_node *node, struct sl_node_claim *claim);
/* What it needs in `of`: the sums of its workload on the plan's copy, or of what lasts. Fills in of
 * *room the GPUs of the node, no others. */
void sl_node_room_claim(struct sl_node *node, const struct sl_node_claim *claim,
	bool with_body, struct sl_room_workload *of, struct sl_room_claim *room);
/* The sums of a workload changed on the copy. */
void sl_node_above_changes(
	struct sl_node_plan *plan, const struct sl_node_workload *workload);
/* It may stand on what a higher priority has not claimed of its request. */
bool sl_node_stands_above(const struct sl_node *node, const struct sl_node_claim *claim);
/* --- seats.c --- */
void sl_node_seat(struct sl_node_step *step);
/* What demands keep, and no body has taken, is there for nobody else: returns how much. */
uint64_t sl_node_fix_kept(struct sl_room_gpu *gpu, uint64_t kept_bytes);
/* Whether there is room for it on the copy as it is now. */
struct sl_room_verdict sl_node_room_of(
	struct sl_node_step *step, struct sl_node_claim *claim);
/* --- elsewhere.c --- */
/* True: the claim's workload is bound to another GPU now, where there is a seat for it. */
bool sl_node_seat_elsewhere(struct sl_node_step *step, struct sl_node_claim *claim);
/* --- choice.c --- */
struct sl_node_choice {
	struct sl_node_step *step;
	struct sl_node_plan *plan;
	struct sl_node_claim *claim;
	uint32_t gpu;
	bool on_all;          /* the last of its GPUs: it is to fit on each */
	uint64_t given_bytes; /* of what it lacks: left to others to give */
	uint32_t chosen;      /* in plan->stops, off the copy */
};
/* Where it asks, or is away. */
uint32_t sl_node_lacking_gpus(const struct sl_node_claim *claim);
/* Takes those off the copy without whom the claim has a seat on all its GPUs; stuck: only the
 * untakeable. False: not even all together suffice, or nobody is needed; then nobody is off it. */
bool sl_node_choose(struct sl_node_choice *choice, bool stuck);
void sl_node_take_back(struct sl_node_choice *choice);
/* --- stops.c --- */
/* Its grace is over: is it still the one that has to go? */
bool sl_node_is_due(const struct sl_node_client *client, sl_ns now);
/* Others end for what has no seat. True: they are off the copy now, and it has one. */
bool sl_node_stop_for(struct sl_node_step *step, struct sl_node_claim *claim);
/* It did not have to go: if its grace is over, it stays. */
void sl_node_spare(struct sl_node_step *step, struct sl_node_client *client);
/* --- hopeless.c --- */
void sl_node_make_room_for_hopeless(struct sl_node *node);
void sl_node_break_deadlock(struct sl_node_step *step);
/* What free bytes are kept for cannot be served before this demand's client gives what it has. */
bool sl_node_helps(struct sl_node_step *step, const struct sl_node_claim *claim);
/* --- ends.c --- */
void sl_node_end_demands(struct sl_node_step *step);
void sl_node_end_demand(
	struct sl_node_step *step, struct sl_node_claim *claim, enum sl_reason reason);
/* How long its bursts wait at most: its own, or the node's. */
sl_ns sl_node_wait_max(
	const struct sl_node *node, const struct sl_node_workload *workload);
/* When its longest wait is over: of a demand as what it is now, of a body since it wants. */
sl_ns sl_node_wait_end(const struct sl_node *node, const struct sl_node_claim *claim);
/* Until then what the driver refused is not tried again. */
sl_ns sl_node_refused_until(
	const struct sl_node *node, const struct sl_node_demand *demand);
/* --- refusals.c --- */
/* Where a demand is over its limit now, the plan is stale. */
void sl_node_find_over_limit(struct sl_node_step *step);
/* --- difference.c --- */
void sl_node_move(struct sl_node_step *step);
/* --- going.c --- */
void sl_node_send_away(struct sl_node_step *step);
/* --- lends.c --- */
/* Once it is granted, what it asks for cannot be moved. */
static inline bool sl_node_stays_for_good(const struct sl_node_demand *demand)
{
	const struct sl_node_client *client = demand->client;

	return demand->flags & SL_NODE_DEMAND_HELD ||
	       client->workload->flags & SL_WORKLOAD_NO_SWAP || !client->swaps;
}
/* By the books as they are: the demand is entitled, or I2 holds with its bytes. */
bool sl_node_can_lend(const struct sl_node *node, const struct sl_node_claim *claim);
/* The same: so much of the workload may leave the GPU for a burst. */
bool sl_node_can_leave_for(const struct sl_node *node, const struct sl_node_claim *claim,
	const struct sl_node_workload *workload, uint32_t gpu, uint64_t bytes);
/* --- free.c --- */
/* Of what is free, or will be: for the claim. */
uint64_t sl_node_set_aside(const struct sl_node_claim *claim, uint32_t gpu);
/* What others requested and do not use, as far as this demand may not stand on it. */
uint64_t sl_node_promised(
	const struct sl_node *node, const struct sl_node_demand *demand);
/* For the demand, also of what is kept for others. */
uint64_t sl_node_free_for(
	const struct sl_node *node, const struct sl_node_demand *demand);
/* --- slices.c --- */
void sl_node_begin_slices(struct sl_node_step *step, struct sl_node_workload *workload);
/* --- because.c --- */
/* Of a demand, or (demand NULL) the client's first by rank: with it the client comes back. NULL: it
 * makes none. O(claims). */
const struct sl_node_claim *sl_node_claim_of(const struct sl_node *node,
	const struct sl_node_client *client, const struct sl_node_demand *demand);
/* The pool has no room for what would have to leave for it. */
bool sl_node_waits_for_pool(const struct sl_node *node, const struct sl_node_claim *claim,
	struct sl_node_because *because);
/* --- notes.c --- */
/* Once per wait of its client: the pool has no room for what would have to leave for it. */
void sl_node_note_pool_for(struct sl_node_step *step, const struct sl_node_claim *claim);
/* --- waits.c --- */
void sl_node_measure_waits(struct sl_node *node);
/* --- probes.c --- */
void sl_node_probe(struct sl_node_step *step);

#endif
