/*
 * plan - which client should be on which GPU now, and what follows
 *
 * One pure computation from the facts. It sums and looks at clients (copy.c), ranks claims
 * (claims.c), gives seats on the copy (seats.c) and ends claims without one (ends.c). The
 * difference between seats and reality becomes orders (difference.c). Each plan makes all of this
 * anew; nothing here is state.
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
	SL_NODE_LACKS,  /* no room: see room.code */
	SL_NODE_KEPT,   /* it fits, but earlier demands keep that memory */
	SL_NODE_BODY,   /* a demand of a client whose body has no seat */
	SL_NODE_TIME,   /* the chain does not allow it yet */
	SL_NODE_BEHIND  /* an earlier claim whose turn comes is served first */
};

struct sl_node_claim {
	struct sl_node_client *client;
	struct sl_node_demand *demand; /* NULL: a body, or a grace */
	struct sl_rank_facts facts;
	struct sl_rank rank;
	uint32_t gpus;
	bool entitled, is_looked, has_seat, with_demand; /* its seat came with a demand */
	enum sl_node_verdict verdict;
	struct sl_room_verdict room;
	uint64_t lets_bytes; /* POOL, or endless for that: what it lets leave */
	bool has_endless;    /* endless was computed */
	enum sl_endless endless;
	bool reserves, is_over; /* is_over: its demand was denied */
	/* It may take kept memory: with a seat, or with what the keeping demand lacks. */
	bool helps;
	uint64_t reserved_bytes[SL_NODE_GPUS_MAX]; /* set aside without a seat */
};

/* One client. */
struct sl_node_look {
	bool answers;
	bool goes;  /* can leave now, because it is parked or warm */
	bool stays; /* cannot leave now: fixed */
	bool lasts; /* and no order or answer will change that */
	bool coming; /* told to end for a demand: its bytes are counted on, and it claims nothing */
	bool is_whole, is_idle; /* is_idle: for as long as moving it costs, proven */
	sl_ns cost;
	bool sits;       /* its body has a seat in this plan */
	bool is_brought; /* visited by the difference */
	bool proves;     /* if its idleness were proven, it would be stopped or go warm */
	uint32_t gpus;   /* where it has memory */
	struct sl_node_claim *body;
};

/* One workload. */
struct sl_node_sums {
	bool is_left;       /* idle for so long that it is to be detached */
	bool is_warm;       /* warm, or becoming warm: idle for long, and not wanted */
	bool is_within;     /* within its request on each of its GPUs */
	bool fits_together; /* all of it fits beside memory that lasts */
	bool competes, takes_turns;
	bool asks_within; /* its demands are within its request, too */
	enum sl_endless endless;
	sl_ns longest_wait;
	uint32_t gpus; /* where it has movable memory, or asks */
	sl_ns cost, slice;
	uint64_t needs_bytes[SL_NODE_GPUS_MAX]; /* of its claims, beside what lasts */
	const struct sl_rank_facts *sibling;
	struct sl_room_workload now, lasts, lasts_bursts;
};

/* A client that can leave a GPU. */
struct leaver {
	struct sl_node_client *client;
	uint32_t class; /* order of leaving */
	uint64_t key;
	uint64_t bytes, taken; /* taken: told to leave */
};

/* Unclaimed requests of workloads of a higher priority, in one of the rooms. */
struct sl_node_above {
	bool known;
	int32_t priority;
	uint64_t bytes[SL_NODE_GPUS_MAX];
};

struct sl_node_plan {
	struct sl_room now, lasts, lasts_bursts;
	struct sl_node_above above[3]; /* for these rooms; made when a claim needs them */
	struct sl_node_claim *claims;
	struct sl_node_claim **order;
	/* All clients, those with demands, and those with open orders, as the plan began. */
	struct sl_node_client **all, **askers, **movers;
	uint32_t all_count, askers_count, movers_count;
	struct sl_room_client *clients;    /* for restores */
	struct leaver *leavers;            /* difference.c */
	struct sl_stop *stops;             /* choice.c; room for each client twice */
	struct sl_node_hopeless *hopeless; /* hopeless.c */
	/* The first demand for which free bytes of the GPU are kept; and the one whose helpers are
	 * known. */
	const struct sl_node_claim *keeper[SL_NODE_GPUS_MAX], *helped;
	uint32_t claims_count;
	/* Clients and demands: the most at once, and the room for them */
	uint32_t objects, room;
	sl_ns rank_due;   /* when time alone changes a rank */
	uint32_t refused; /* GPUs with demands in back-off */
	uint32_t blocked; /* GPUs of claims whose turn comes */
	/* GPUs where processes were stopped for the first lacking claim */
	uint32_t worked;
	uint32_t crowded;
	/* The plan counted on something that no longer holds: it denied a demand, its grants used
	 * up a limit, or it spared a process. It orders no moves and tells no waits; the next plan
	 * follows at once. */
	bool is_stale;
	bool trims; /* an EVICT may have to wait until copies of resident chunks are dropped */
	int32_t highest[SL_NODE_GPUS_MAX]; /* highest priority that claims, by set */
	/* For demands without a seat, from later ones */
	uint64_t kept_bytes[SL_NODE_GPUS_MAX];
	uint64_t asked_bytes[SL_NODE_GPUS_MAX];   /* by demands with a seat */
	uint64_t leaving_bytes[SL_NODE_GPUS_MAX]; /* of clients that answer */
	uint32_t set_of[SL_NODE_GPUS_MAX]; /* the lowest GPU that is joined with it */
};

/* --- plan.c --- */
/* Called for each new client or demand: the plan's memory grows with their number only. */
void sl_node_make_room(struct sl_node *node);
/* --- copy.c --- */
/* Makes the copy and lists the claims. */
void sl_node_copy(struct sl_node_step *step);
/* How much its client could have to bring back. */
uint64_t sl_node_back(const struct sl_ledger_cell *cell);
/* What an unseated client has on the copy there. */
struct sl_room_share sl_node_share_of(
	const struct sl_node *node, const struct sl_node_client *client, uint32_t gpu);
/* Its bytes that are off the GPU or leaving, and have no reserved room there; with what its
 * contexts need beyond the reserve if its process is away. */
uint64_t sl_node_missing(
	const struct sl_node *node, const struct sl_node_client *client, uint32_t gpu);
/* GPUs where some of its evicted bytes have no reserved room, or its process is not. Leaving bytes
 * do not count: they are still there, and so is their room. */
uint32_t sl_node_away_gpus(const struct sl_node_client *client);
/* On all its GPUs. */
uint64_t sl_node_use_of(const struct sl_node_workload *workload);
/* --- claims.c --- */
/* The number of the set of GPUs that take turns together. */
uint32_t sl_node_set_of(
	const struct sl_node_plan *plan, const struct sl_node_workload *workload);
/* How long it waits until a competing higher priority gives way; 0: none competes. */
sl_ns sl_node_patience_of(
	const struct sl_node *node, const struct sl_node_workload *workload);
/* Lists the claims of the workload, whose sums are made. */
void sl_node_list_claims(struct sl_node_step *step, struct sl_node_workload *workload);
void sl_node_rank_claims(struct sl_node_step *step);
/* How many bytes of the leavers the pool has room for. */
uint64_t sl_node_lets(const struct sl_room *room, const struct sl_room_claim *claim,
	const struct sl_room_verdict *verdict);
/* Adds what the claim needs where nothing is moved for it, and what its body needs if that makes no
 * claim. */
void sl_node_add_needs(
	const struct sl_node *node, const struct sl_node_claim *claim, uint64_t needs[]);
/* Why it never gets a seat, whatever turns come. O(GPUs) the first time. */
enum sl_endless sl_node_endless(struct sl_node *node, struct sl_node_claim *claim);
/* Sets *room to what the claim needs, on the node's GPUs only. of: the sums of its workload on the
 * copy that is asked, the plan's or that of lasting memory. */
void sl_node_room_claim(struct sl_node *node, const struct sl_node_claim *claim,
	bool with_body, struct sl_room_workload *of, struct sl_room_claim *room);
/* The sums of a workload changed on the copy. */
void sl_node_above_changes(
	struct sl_node_plan *plan, const struct sl_node_workload *workload);
/* It may use unclaimed requests of workloads of a higher priority. */
bool sl_node_stands_above(const struct sl_node *node, const struct sl_node_claim *claim);
/* --- seats.c --- */
void sl_node_seat(struct sl_node_step *step);
/* Memory that demands keep and that no body took counts as fixed from now on, so that no other
 * claim gets it. Returns how much. */
uint64_t sl_node_fix_kept(struct sl_room_gpu *gpu, uint64_t kept_bytes);
/* Whether it has room on the copy as it is now. */
struct sl_room_verdict sl_node_room_of(
	struct sl_node_step *step, struct sl_node_claim *claim);
/* --- choice.c --- */
struct sl_node_choice {
	struct sl_node_step *step;
	struct sl_node_plan *plan;
	struct sl_node_claim *claim;
	uint32_t gpu;
	bool on_all;          /* the last of its GPUs: it must fit on each */
	uint64_t given_bytes; /* of what it lacks: left to others */
	uint32_t chosen;      /* in plan->stops, taken off the copy */
};
/* GPUs where it asks, or lacks room to return. */
uint32_t sl_node_lacking_gpus(
	const struct sl_node *node, const struct sl_node_claim *claim);
/* Takes clients off the copy, no more than needed, so that the claim has a seat on all its GPUs;
 * stuck: only untakeable ones. False, with the copy unchanged: none is needed, or all together do
 * not suffice. */
bool sl_node_choose(struct sl_node_choice *choice, bool stuck);
void sl_node_take_back(struct sl_node_choice *choice);
/* --- stops.c --- */
/* Its grace is over: must it still go? */
bool sl_node_is_due(const struct sl_node_client *client, sl_ns now);
/* Stops processes for a claim without a seat. True: they are off the copy, and it has a seat. */
bool sl_node_stop_for(struct sl_node_step *step, struct sl_node_claim *claim);
/* It is no longer needed to end: stays if its grace is over. */
void sl_node_spare(struct sl_node_step *step, struct sl_node_client *client);
/* --- hopeless.c --- */
void sl_node_make_room_for_hopeless(struct sl_node *node);
void sl_node_break_deadlock(struct sl_node_step *step);
/* Kept free bytes cannot serve their demand before this claim's client gives what it has. */
bool sl_node_helps(struct sl_node_step *step, const struct sl_node_claim *claim);
/* --- ends.c --- */
void sl_node_end_demands(struct sl_node_step *step);
void sl_node_end_demand(
	struct sl_node_step *step, struct sl_node_claim *claim, enum sl_reason reason);
/* The resolvers that serve it. */
uint32_t sl_node_chain_of(const struct sl_node *node, const struct sl_node_claim *claim);
/* Others leave for it, now or at its turn. */
bool sl_node_comes(struct sl_node *node, struct sl_node_claim *claim);
/* The longest wait of its bursts: its own, or the node's. */
sl_ns sl_node_wait_max(
	const struct sl_node *node, const struct sl_node_workload *workload);
/* When its longest wait is over: for a demand as it is now, for a body since it wants to run. */
sl_ns sl_node_wait_end(const struct sl_node *node, const struct sl_node_claim *claim);
/* When a creation that the driver refused is retried. */
sl_ns sl_node_refused_until(
	const struct sl_node *node, const struct sl_node_demand *demand);
/* --- refusals.c --- */
/* Marks the plan stale if a demand exceeds its limit now. */
void sl_node_find_over_limit(struct sl_node_step *step);
/* --- difference.c --- */
void sl_node_move(struct sl_node_step *step);
/* --- going.c --- */
void sl_node_send_away(struct sl_node_step *step);
/* --- lends.c --- */
/* Once granted, its memory cannot be moved. */
static inline bool sl_node_stays_for_good(
	const struct sl_node *node, const struct sl_node_demand *demand)
{
	const struct sl_node_client *client = demand->client;

	return demand->flags & SL_NODE_DEMAND_HELD || !client->swaps ||
	       sl_node_is_fixed(node, client->workload);
}
/* The demand's client is partly on the host, and exceeds the request on another GPU: a burst comes
 * along. */
bool sl_node_brings_burst(const struct sl_node_claim *claim);
/* By the books: the demand is entitled, or I2 holds with its bytes. */
bool sl_node_can_lend(const struct sl_node *node, const struct sl_node_claim *claim);
/* By the books: this much of the workload may leave the GPU for a burst. */
bool sl_node_can_leave_for(const struct sl_node *node, const struct sl_node_claim *claim,
	const struct sl_node_workload *workload, uint32_t gpu, uint64_t bytes);
/* --- free.c --- */
/* Of what is free, or will be: set aside for the claim. */
uint64_t sl_node_set_aside(
	const struct sl_node *node, const struct sl_node_claim *claim, uint32_t gpu);
/* Unclaimed requests of other workloads that this demand may not use. */
uint64_t sl_node_promised(
	const struct sl_node *node, const struct sl_node_demand *demand);
/* What the demand may use, including memory kept for others. */
uint64_t sl_node_free_for(
	const struct sl_node *node, const struct sl_node_demand *demand);
/* --- slices.c --- */
void sl_node_begin_slices(struct sl_node_step *step, struct sl_node_workload *workload);
/* --- because.c --- */
/* The claim of a demand, or with demand NULL the client's first by rank, with which it comes back.
 * NULL: it makes none. O(claims). */
const struct sl_node_claim *sl_node_claim_of(const struct sl_node *node,
	const struct sl_node_client *client, const struct sl_node_demand *demand);
/* The pool has no room for what would have to leave for it. */
bool sl_node_waits_for_pool(const struct sl_node *node, const struct sl_node_claim *claim,
	struct sl_node_because *because);
/* --- notes.c --- */
/* Notes once per wait of its client that the pool has no room for what would have to leave. */
void sl_node_note_pool_for(struct sl_node_step *step, const struct sl_node_claim *claim);
/* --- waits.c --- */
void sl_node_measure_waits(struct sl_node *node);
/* --- probes.c --- */
void sl_node_probe(struct sl_node_step *step);

#endif
