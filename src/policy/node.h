/*
 * node - the machine that decides about the memory of one node's GPUs
 *
 * Event in, actions out, time as an argument. No clock, no I/O, no threads; memory from an
 * arena, which grows only when something is added. The daemon and tests/sim drive the same
 * code. Single-threaded.
 *
 * Accounts, per GPU (all in backing bytes):
 *   shareable = capacity - reserve - unmanaged
 *   use(w)    = backing + hidden + granted-but-uncommitted of w's living clients; limits hold for
 *             it. hidden is what the reserve does not pay of the contexts, code and stacks that
 *             were measured: first come, first paid
 *   here(w)   = use less what is on the host, and with what is coming back
 *   dying     = bytes of dead clients until RELEASED; they occupy, but are nobody's use
 *   free      = shareable - sum of here - dying
 *   unclaimed(w) = max(0, request(w) - here(w))
 * Promises (design.md section 4): I1: sum over w of max(request, fixed) <= shareable; a demand
 * that keeps use(w) within request(w) is entitled and never denied (named exceptions in
 * reason.def); a burst demand may take free - sum of others' unclaimed (+ what I2 lends: 0 without
 * a host pool, without `swap` in the chain, and to who cannot be moved); above the limit it is
 * denied at once. Grants are whole. fixed = hidden + held: held memory (exported, imported, kept by
 * the driver) can be had back by stopping its process, like all memory, and never by swap. So
 * `priority`, the last resort and the deadlock rule count on it as on any other; a resolver that
 * evicts must leave it out of its victims' bytes and of its pot. A demand for held memory stands on
 * no request but its own, whatever is lent; where requests alone leave it no room it is denied at
 * once (HELD_ON_REQUESTS).
 * Order: entitled, priority (higher first), arrival; a demand that fits may pass the head for
 * head_pass, after that freed bytes are kept for the head, except what the deadlock rule needs.
 *
 * Resolvers. A demand that does not fit is a collision. The chain says what is done, in order:
 *   wait      it waits: a burst for the longest wait at most, an entitled one without end. What
 *             stands before `wait` in the chain is tried at once, what stands after it when a
 *             burst's longest wait is over. For an entitled demand `swap` is tried at once,
 *             `priority` behind `wait` once it has waited as long. Without
 *             `wait` a burst that nothing can help is denied at once (NO_RESOLVER); an
 *             entitled one waits all the same (promise 2).
 *   priority  stops processes (verdicts/victims.h): SIGTERM, grace, SIGKILL. Only a process
 *             whose workload is above its request on that GPU, never one of the demand's own
 *             workload; and only if it has been idle for stop_idle (proven), or is of lower
 *             priority, or its workload is above its limit. The fewest that suffice together
 *             with what is free, dying or being stopped already; none if all together do not
 *             suffice. If the need goes away before SIGKILL, it is not sent, and the process is
 *             left alone for a second.
 *   swap      moves memory to the host pool: what is parked or warm, then what is idle (proven),
 *             then what ranks lowest; for an entitled demand bursts after the first part of a turn.
 *             What is within its request keeps what it has from bursts until it was idle for its
 *             idle_grace. One rank (verdicts/rank.h) has all that lacks memory: demands, and
 *             clients that want back what is on the host. A demand is not refused while its turn
 *             comes. If the pool is full (POOL_FULL), or nobody can be moved, the next resolver
 *             decides.
 * With `priority` in the chain, a burst may also stand on unclaimed requests of workloads of
 * *higher* priority, which can always take it back; never with SL_WORKLOAD_NO_SWAP.
 * OOM_FIRST: of a client's burst demands that do not fit, the first is denied; after it they
 * wait, until one was granted.
 * Untakeable: stopped, traced, silent, or busy with one piece of work for untakeable_after. While a
 * client is, its workload's limit counts as max(request, what it holds). If such a client's
 * workload holds burst that an entitled demand lacks, and nobody else could give it,
 * last_resort decides: stop it, or fail the demand (UNTAKEABLE). The same of a client that wants
 * back from the host what is within its request; but that is failed nothing, and waits.
 */
#ifndef SL_POLICY_NODE_H
#define SL_POLICY_NODE_H

#include "base/amount.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "policy/words/reason.h"
#include "policy/verdicts/bounds.h"

#define SL_NODE_GPUS_MAX 32

/* --- choices and conditions that events carry --- */

enum sl_resolver {
	SL_RESOLVER_NONE = 0,
	SL_RESOLVER_SWAP,
	SL_RESOLVER_WAIT,
	SL_RESOLVER_PRIORITY
};

/* A chain of up to four resolvers in one number, the first in the lowest four bits. */
#define SL_CHAIN(first, second, third) \
	((uint32_t)(first) | (uint32_t)(second) << 4 | (uint32_t)(third) << 8)

enum sl_last_resort { SL_LAST_RESORT_FAIL = 0, SL_LAST_RESORT_STOP };
enum sl_placement { SL_PLACEMENT_SPREAD = 0, SL_PLACEMENT_PACK };
enum sl_unmanaged { SL_UNMANAGED_WARN = 0, SL_UNMANAGED_IGNORE, SL_UNMANAGED_STOP };
enum sl_stop_stage { SL_STOP_TERM = 0, SL_STOP_KILL };
/* WATCH: tell when GPU work begins and ends. PROVE: also whether what was submitted is finished,
 * which costs calls of the driver. */
enum sl_probe { SL_PROBE_OFF = 0, SL_PROBE_WATCH, SL_PROBE_PROVE, SL_PROBES };

#define SL_WORKLOAD_NO_SWAP 1u /* never evicted; never stands on others' requests */
#define SL_WORKLOAD_OOM_FIRST \
	2u /* its first burst refusal is out-of-memory, the next waits */
#define SL_WORKLOAD_RDMA \
	4u /* with NO_SWAP: other devices may have its memory registered, so that stays */
#define SL_WORKLOAD_OBSERVED \
	8u /* for others to know: it has no limit of its own, and is only watched */
#define SL_WORKLOAD_FLAGS                                                 \
	(SL_WORKLOAD_NO_SWAP | SL_WORKLOAD_OOM_FIRST | SL_WORKLOAD_RDMA | \
		SL_WORKLOAD_OBSERVED)

#define SL_NODE_ASK_HELD 1u /* what is made of it must not be evicted */
#define SL_NODE_ASK_THERE \
	2u /* and exists already: only to become held. Granted or denied at once */
/* The first context of the process on that GPU is to be made. bytes say nothing, and the grant has
 * none: the context is measured, and is to be before COMMIT */
#define SL_NODE_ASK_CONTEXT 4u

#define SL_SET_REQUEST  1u
#define SL_SET_LIMIT    2u
#define SL_SET_PRIORITY 4u
#define SL_SET_FLAGS    8u /* all of SL_WORKLOAD_* */
#define SL_SET_WAIT     16u
#define SL_SET_WARM     32u
#define SL_SET_GRACE    64u

/* What became of an EVICT or RESTORE. */
enum sl_swap_outcome {
	SL_SWAP_OK = 0,
	SL_SWAP_PART,    /* fewer bytes than were asked; what moved has moved */
	SL_SWAP_REFUSED, /* all is as it was before */
	SL_SWAP_OUTCOMES
};
enum sl_swap_cause {
	SL_SWAP_NO_CAUSE = 0,
	SL_SWAP_CAPTURE, /* a stream capture is open */
	/* Its work did not end by the deadline, or a thread did not come out of the driver */
	SL_SWAP_BUSY,
	SL_SWAP_NO_HOST, /* no host memory */
	SL_SWAP_DRIVER,  /* the driver refused */
	SL_SWAP_NO_ROOM, /* a restore: the driver had no memory in spite of the books */
	SL_SWAP_BROKEN,  /* a context of it has a sticky error */
	SL_SWAP_NOTHING, /* nothing there can be moved (held, or gone meanwhile) */
	SL_SWAP_ABORTED, /* as told */
	SL_SWAP_LOST,    /* the client's connection was lost; the next report tells */
	SL_SWAP_STOPPED, /* a restore: its process is stopped, and was not told of it */
	SL_SWAP_CAUSES
};

/* Where a workload's memory is, as a person sees it; design.md, section 2. */
enum sl_residency {
	SL_RESIDENCY_RESERVED = 0, /* its clients hold nothing */
	SL_RESIDENCY_BOUND,        /* all of it on the GPUs */
	SL_RESIDENCY_LEAVING,      /* something of it is being evicted */
	/* Something is on the host, and it wants to run: it waits for its turn */
	SL_RESIDENCY_EVICTED,
	SL_RESIDENCY_WARM, /* all that can leave is on the host, and nobody asks for it */
	SL_RESIDENCY_RETURNING, /* being restored */
	SL_RESIDENCY_PARKED,    /* until RESUME */
	SL_RESIDENCY_RESUMING,  /* waits until its request fits again */
	SL_RESIDENCY_PARTIAL,   /* something is on the host, and nobody asks for it */
	SL_RESIDENCY_PARKING, /* to be parked, and something that can leave has not yet */
	SL_RESIDENCIES
};

/* Why nobody can say how long a workload may have to wait for its turn. */
enum sl_endless {
	SL_ENDLESS_NOT = 0,
	SL_ENDLESS_STAYS, /* in its way is what nobody can move now */
	SL_ENDLESS_HOST,  /* the host has no memory for those in its way */
	SL_ENDLESS_POOL,  /* what is set aside of it has no room for them */
	SL_ENDLESS_BOUND, /* one of them may have no more there */
	SL_ENDLESS_WHOLE, /* it has more than a GPU can share */
	/* It is above its request, and others within theirs keep what they have while they work */
	SL_ENDLESS_REQUESTS,
	SL_ENDLESS_CAUSES
};

enum sl_event_type {
#define SL_EVENT(NAME, name, fields) SL_EVENT_##NAME,
#include "policy/node/event.def"
#undef SL_EVENT
	SL_EVENTS
};

struct sl_event {
	enum sl_event_type type;
	union {
#define SL_EVENT(NAME, name, fields) \
	struct {                     \
		fields               \
	} name;
#include "policy/node/event.def"
#undef SL_EVENT
	};
};

enum sl_action_type {
#define SL_ACTION(NAME, name, fields) SL_ACTION_##NAME,
#include "policy/node/action.def"
#undef SL_ACTION
	SL_ACTIONS
};

struct sl_action {
	enum sl_action_type type;
	uint64_t id;
	union {
#define SL_ACTION(NAME, name, fields) \
	struct {                      \
		fields                \
	} name;
#include "policy/node/action.def"
#undef SL_ACTION
	};
};

/* Called once per action, in order, before sl_node_step returns; must not call the node. */
typedef void (*sl_action_fn)(void *context, const struct sl_action *action);

struct sl_node;

/* Everything lives in arena, which must outlive the node; there is no free. */
struct sl_node *sl_node_new(struct sl_arena *arena);

/*
 * Takes one event. now never goes back. Every event is legal at every moment: one that names
 * something unknown, repeats itself or lies is answered (DENY, REFUSE) or ignored with a NOTE,
 * and leaves the books right.
 */
void sl_node_step(struct sl_node *node, sl_ns now, const struct sl_event *event,
	sl_action_fn emit, void *context);

/* --- What can be looked at; the answers are values, valid as of the last step. --- */

struct sl_node_gpu_view {
	bool present, degraded, lost;
	uint64_t capacity_bytes, reserve_bytes, unmanaged_bytes, shareable_bytes;
	uint64_t requests_bytes; /* sum of the requests bound here */
	uint64_t backing_bytes;  /* live, committed */
	uint64_t granted_bytes;  /* granted, not committed yet */
	uint64_t hidden_bytes, dying_bytes, free_bytes;
	uint64_t paid_bytes; /* of the reserve: what it pays */
	uint64_t held_bytes; /* of backing */
	uint64_t evicted_bytes,
		returning_bytes; /* of backing: on the host; of these, being restored */
	uint32_t workloads, waiting;
};

struct sl_node_pool_view {
	uint64_t pool_bytes, slack_bytes, evicted_bytes;
	uint64_t leaving_bytes; /* kept for EVICTs that are open */
	uint64_t copies_bytes;  /* copies of resident chunks, which go first */
	uint64_t
		overlap_bytes; /* what is lent, over all GPUs: evicted + overlap <= pool - slack */
};

struct sl_node_workload_view {
	bool known, stopping;
	uint32_t gpu_mask, clients;
	uint32_t
		actual_mask; /* GPUs its clients hold or wait for memory on; gpu_mask is the plan */
	uint32_t flags, untakeable; /* untakeable: clients */
	int32_t priority;
	uint64_t request_bytes,
		limit_bytes; /* per GPU; of a parked one: that it will have again */
	sl_ns wait_max;
	/* Swap. Spans are as of now. */
	enum sl_residency residency;
	sl_ns warm_after, idle_grace;
	sl_ns turn_left;   /* of its turn, while others wait for it to end; 0: not */
	sl_ns wants_since; /* how long it has waited to be resident; 0: it does not */
	sl_ns longest_wait; /* bound of that wait with those that compete now; 0: nobody competes;
	                       SL_NS_NEVER: no bound, because of `endless` */
	enum sl_endless endless;
	uint64_t turns; /* it had so far */
	/* Since it began: times that it waited for memory, or to be on its GPUs again, with one
	 * that goes on, and how long that was. */
	uint64_t waits;
	sl_ns waited;
};

struct sl_node_client_view {
	bool known, alive, expected, waits; /* waits: as the deadlock rule has it */
	uint64_t workload;
	enum sl_client_condition condition;
	enum sl_probe probe;
	bool stopping, killed, untakeable, proven;
	uint32_t stop_reason;
	sl_ns idle, busy; /* as of now; 0: not */
	bool swaps, wants;
	uint64_t order; /* of the open EVICT or RESTORE; 0: none */
	uint64_t store_bytes;
};

struct sl_node_demand_view {
	uint64_t client, workload, ask, bytes, epoch; /* epoch 0: waits */
	uint32_t gpu;
	int32_t priority;
	bool entitled, head;
	sl_ns waited; /* since it arrived */
};

struct sl_node_use_view { /* one workload on one GPU */
	uint64_t backing_bytes, granted_bytes, hidden_bytes, dying_bytes;
	uint64_t paid_bytes; /* measured beside hidden_bytes; the reserve pays them */
	uint64_t held_bytes; /* of backing */
	uint64_t evicted_bytes,
		returning_bytes; /* of backing: on the host; of these, being restored */
	uint64_t waiting_bytes;  /* sum of its waiting demands */
	uint32_t waiting;
};

struct sl_node_gpu_view sl_node_gpu(const struct sl_node *node, uint32_t gpu);
struct sl_node_pool_view sl_node_pool(const struct sl_node *node);
/* O(its clients); the first after a step looks at all workloads. */
struct sl_node_workload_view sl_node_workload(
	const struct sl_node *node, uint64_t workload);
/* The same without what depends on the others: turn_left and longest_wait are 0. O(its clients). */
struct sl_node_workload_view sl_node_workload_alone(
	const struct sl_node *node, uint64_t workload);
struct sl_node_use_view sl_node_use(
	const struct sl_node *node, uint64_t workload, uint32_t gpu);
/* Committed backing bytes of one client, and what was measured of it (hidden and paid). */
struct sl_node_use_view sl_node_client_use(
	const struct sl_node *node, uint64_t client, uint32_t gpu);

struct sl_node_client_view sl_node_client(const struct sl_node *node, uint64_t client);
/* Every demand of the node, those of a GPU in the order of its queue, granted ones last. */
typedef void (*sl_node_demand_fn)(
	void *context, const struct sl_node_demand_view *demand);
void sl_node_each_demand(const struct sl_node *node, sl_node_demand_fn fn, void *context);

/* A reason and the numbers of its sentence, with ids in place of names. */
struct sl_node_because {
	uint32_t reason, gpu;
	uint64_t workload, other, client;
	uint64_t bytes, available_bytes, other_bytes;
	sl_ns span;
};
typedef void (*sl_node_because_fn)(void *context, const struct sl_node_because *because);
/* Why the workload is as it is now: one for each of its waiting demands, one for each client being
 * stopped or untakeable, one for each lost or degraded GPU of it. None: nothing is in its way.
 * O(clients of it x workloads). */
void sl_node_why(const struct sl_node *node, uint64_t workload, sl_node_because_fn fn,
	void *context);

const char *sl_event_name(uint32_t type);
const char *sl_action_name(uint32_t type);

/*
 * Checks every invariant of the books and of the rules; 0, or 1 with the broken one in err.
 * For tests and the simulation: O(everything).
 */
SL_MUST_CHECK int sl_node_check(const struct sl_node *node, struct sl_error *err);

#endif
