/*
 * node - the machine that decides about the memory of one node's GPUs
 *
 * Event in, actions out, time as an argument. No clock, no I/O, no threads; memory comes from an
 * arena, which grows only when something is added. The daemon and tests/sim drive the same code.
 * Single-threaded.
 *
 * Accounts, per GPU, in backing bytes:
 *   shareable = capacity - reserve - unmanaged
 *   use(w)    = backing + hidden + granted but uncommitted bytes of w's living clients; bounded by
 *               the limit. hidden: measured contexts, code and stacks beyond what the reserve pays
 *               (first come, first paid)
 *   here(w)   = use on the GPU: without evicted bytes, with returning ones
 *   dying     = bytes of dead clients until RELEASED; on the GPU, and of no use.
 *   free      = shareable - sum of here - dying
 *   unclaimed(w) = max(0, request(w) - here(w)); fixed = hidden + held.
 * Promises (design.md section 4):
 *   I1: sum over w of max(request, fixed) <= shareable.
 *   A demand that keeps use(w) within request(w) is entitled and never denied; reason.def names the
 *   exceptions. A burst demand may take free - sum of the others' unclaimed, plus what I2 lends. I2
 *   lends nothing without a host pool or without `swap` in the chain, nor to memory that cannot be
 *   moved. Above the limit a demand is denied at once. Grants are whole.
 * Held memory (exported, imported, kept by the driver) cannot be swapped; only the end of its
 * process frees it. So rules that count on the end of processes (`priority`, the last resort, the
 * deadlock rule) also count held memory; swapping does not. A demand for held memory is never lent
 * other workloads' requests. If requests alone leave it no room, it is denied at once
 * (HELD_ON_REQUESTS).
 * Order: entitled, then priority (higher first), then arrival. A demand that fits may pass the head
 * for head_pass; then freed bytes are kept for the head, except for what the deadlock rule needs.
 *
 * Resolvers. A demand that does not fit is a collision. The chain says what to do, in order. The
 * node's chain holds for demands within a request, and for memory that comes back from the
 * host. For its demands above the request a workload may have a chain of its own: resolvers that
 * the node's lacks do not count. What is lent, and which processes may be stopped, follows from the
 * node's.
 *   wait      The demand waits: a burst for its longest wait at most, an entitled one without end.
 *             Resolvers before `wait` act at once, those after it when the longest wait of a burst
 *             is over. For an entitled demand `swap` always acts at once; `priority` behind `wait`
 *             acts after the longest wait of a burst. Without `wait` a burst that no resolver can
 *             help is denied at once (NO_RESOLVER); an entitled demand still waits (promise 2).
 *   priority  Stops processes (verdicts/stops.h): SIGTERM, grace, SIGKILL. The workload of the
 *             process must be above its request on that GPU, and not the demand's own. Besides, the
 *             process must be idle for stop_idle (proven) or of lower priority, or its workload
 *             above its limit. It stops the fewest that suffice together with what is free, dying
 *             or being stopped; none if all together do not suffice. If the need goes away before
 *             SIGKILL, the process is spared and left alone for 1s.
 *   swap      Moves memory to the host pool: parked and warm clients first, then idle ones
 *             (proven), then the lowest in rank. For an entitled demand, a burst moves after the
 *             first part of its turn. A workload within its request keeps its memory from bursts
 *             until it was idle for idle_grace. Demands, and clients that want their memory back
 *             from the host, are ranked together (verdicts/rank.h). A demand whose turn will come
 *             is not refused. If the pool is full (POOL_FULL), or nothing can be moved, the next
 *             resolver decides.
 * With `priority` in the chain, a burst may also stand on unclaimed requests of workloads of
 * *higher* priority, which can always take them back; never with SL_WORKLOAD_NO_SWAP.
 * OOM_FIRST: a client's first burst demand that does not fit is denied; later ones wait. After a
 * burst grant to the client, the next one that does not fit is denied again.
 * Untakeable: a client that is stopped, traced, silent, or busy with one piece of work for
 * untakeable_after. Until it recovers, its workload's limit counts as max(request, what it holds).
 * If its workload has burst that an entitled demand lacks, and no other workload can give it,
 * last_resort decides: stop the client, or fail the demand (UNTAKEABLE). A client that wants back
 * what is within its request has no demand that could fail. It waits, unless last_resort is stop.
 */
#ifndef SL_POLICY_NODE_H
#define SL_POLICY_NODE_H

#include "base/amount.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "policy/words/chain.h"
#include "policy/words/reason.h"
#include "policy/verdicts/bounds.h"

#define SL_NODE_GPUS_MAX 32

/* --- choices and conditions that events carry --- */

enum sl_last_resort { SL_LAST_RESORT_FAIL = 0, SL_LAST_RESORT_STOP };
enum sl_placement { SL_PLACEMENT_SPREAD = 0, SL_PLACEMENT_PACK };
enum sl_unmanaged { SL_UNMANAGED_WARN = 0, SL_UNMANAGED_IGNORE, SL_UNMANAGED_STOP };
enum sl_stop_stage { SL_STOP_TERM = 0, SL_STOP_KILL };
/* WATCH: report when GPU work begins and ends. PROVE: also whether all submitted work is finished,
 * which costs driver calls. */
enum sl_probe { SL_PROBE_OFF = 0, SL_PROBE_WATCH, SL_PROBE_PROVE, SL_PROBES };

#define SL_WORKLOAD_NO_SWAP \
	1u /* never evicted; never stands on other workloads' requests */
#define SL_WORKLOAD_OOM_FIRST \
	2u /* its first refused burst is denied with out-of-memory, the next one waits */
#define SL_WORKLOAD_RDMA \
	4u /* with NO_SWAP: other devices may have registered its memory, so it stays */
#define SL_WORKLOAD_OBSERVED \
	8u /* only shown: it has no limit of its own and is watched */
/* Its user named no GPU: when its first process begins, another may suit better
 * (WORKLOAD_BEGINS). */
#define SL_WORKLOAD_LATE 16u
/* Its own chain of resolvers; 0: the node's. */
#define SL_WORKLOAD_CHAIN       0xffff0000u
#define SL_WORKLOAD_CHAIN_SHIFT 16
#define SL_WORKLOAD_FLAGS                                                 \
	(SL_WORKLOAD_NO_SWAP | SL_WORKLOAD_OOM_FIRST | SL_WORKLOAD_RDMA | \
		SL_WORKLOAD_OBSERVED | SL_WORKLOAD_LATE | SL_WORKLOAD_CHAIN)

#define SL_NODE_ASK_HELD 1u /* the memory made of it must not be evicted */
#define SL_NODE_ASK_THERE \
	2u /* and exists already: it only becomes held. Granted or denied at once */
/* The first context of the process on that GPU. bytes is ignored and the grant has none: the client
 * reports the context's measured size before COMMIT. */
#define SL_NODE_ASK_CONTEXT 4u
/* Granted at once while no demand lacks memory and enough is free, otherwise CANCELLED at once:
 * nothing moves, waits or is stopped for it. */
#define SL_NODE_ASK_NOW 8u

#define SL_SET_REQUEST         1u
#define SL_SET_LIMIT           2u
#define SL_SET_PRIORITY        4u
#define SL_SET_FLAGS           8u /* all of SL_WORKLOAD_*, without the chain */
#define SL_SET_WAIT            16u
#define SL_SET_WARM            32u
#define SL_SET_GRACE           64u
#define SL_SET_DETACH          128u
#define SL_SET_COMPUTE_REQUEST 256u
#define SL_SET_COMPUTE_LIMIT   512u  /* not the node's */
#define SL_SET_CHAIN           1024u /* the chain in flags */

/* The flags after a change of those that `which` names. */
static inline uint32_t sl_flags_set(uint32_t was, uint32_t which, uint32_t flags)
{
	uint32_t mask = (which & SL_SET_FLAGS ? ~SL_WORKLOAD_CHAIN : 0) |
			(which & SL_SET_CHAIN ? SL_WORKLOAD_CHAIN : 0);

	return (was & ~mask) | (flags & mask);
}

/* The outcome of an EVICT or RESTORE. */
enum sl_swap_outcome {
	SL_SWAP_OK = 0,
	SL_SWAP_PART,    /* fewer bytes than ordered; what moved has moved */
	SL_SWAP_REFUSED, /* nothing changed */
	SL_SWAP_OUTCOMES
};
enum sl_swap_cause {
	SL_SWAP_NO_CAUSE = 0,
	SL_SWAP_CAPTURE, /* a stream capture is open */
	/* Its work did not end by the deadline, or a thread stayed in the driver */
	SL_SWAP_BUSY,
	SL_SWAP_NO_HOST, /* no host memory */
	SL_SWAP_DRIVER,  /* the driver refused */
	SL_SWAP_NO_ROOM, /* a restore: the driver had no memory although the books have room */
	SL_SWAP_BROKEN,  /* a context of the client has a sticky error */
	SL_SWAP_NOTHING, /* nothing there can be moved (held, or gone meanwhile) */
	SL_SWAP_ABORTED, /* by ABORT */
	SL_SWAP_LOST,    /* the client's connection was lost; the next report tells */
	SL_SWAP_STOPPED, /* a restore: the process is stopped and was not told */
	SL_SWAP_CAUSES
};

/* Where a workload's memory is, as shown to people; design.md, section 2. */
enum sl_residency {
	SL_RESIDENCY_RESERVED = 0, /* its clients hold nothing */
	SL_RESIDENCY_BOUND,        /* all of it on the GPUs */
	SL_RESIDENCY_LEAVING,      /* some of it is being evicted */
	/* Some is on the host, and it wants to run: it waits for its turn */
	SL_RESIDENCY_EVICTED,
	SL_RESIDENCY_WARM, /* all that can leave is on the host, and it does not want to run */
	SL_RESIDENCY_RETURNING, /* being restored */
	SL_RESIDENCY_PARKED,    /* until RESUME */
	SL_RESIDENCY_RESUMING,  /* waits until its request fits again */
	SL_RESIDENCY_PARTIAL,   /* some is on the host, and it does not want to run */
	SL_RESIDENCY_PARKING, /* will be parked; something that can leave is still on a GPU */
	SL_RESIDENCY_DETACHED, /* parked for lack of work: its next call resumes it */
	SL_RESIDENCIES
};

/* Whether a parked workload can come back to other GPUs. */
enum sl_presence {
	SL_PRESENCE_HERE = 0, /* it is not parked, or still leaves */
	SL_PRESENCE_STAYS,    /* what is left cannot leave, or refused to */
	SL_PRESENCE_AWAY      /* nothing of it is on a GPU */
};

/* Why the wait of a workload for its turn has no bound. */
enum sl_endless {
	SL_ENDLESS_NOT = 0,
	SL_ENDLESS_STAYS, /* memory that cannot be moved now is in its way */
	SL_ENDLESS_HOST,  /* the host has no memory for those in its way */
	SL_ENDLESS_POOL,  /* the host pool has no room for them */
	SL_ENDLESS_BOUND, /* the pool's bound for one workload has no room for one of them */
	SL_ENDLESS_WHOLE, /* it has more than a GPU can share */
	/* It is above its request, and workloads within theirs keep their memory while they work */
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

/* Called once per action, in order, before the step returns; must not call the node. */
typedef void (*sl_action_fn)(void *context, const struct sl_action *action);

struct sl_node;

/* Everything lives in arena, which must outlive the node; there is no free. */
struct sl_node *sl_node_new(struct sl_arena *arena);

/*
 * Takes one event. now never goes back. Every event is legal at every moment: an unknown, repeated
 * or wrong one is answered (DENY, REFUSE) or ignored with a NOTE, and the books stay right.
 */
void sl_node_step(struct sl_node *node, sl_ns now, const struct sl_event *event,
	sl_action_fn emit, void *context);
/* The same for several events of one moment, in order, with one plan after all of them: planning
 * for a thousand clients takes longer than handling their events. */
void sl_node_steps(struct sl_node *node, sl_ns now, const struct sl_event events[],
	uint32_t count, sl_action_fn emit, void *context);

/* --- Views: values as of the last step. --- */

struct sl_node_gpu_view {
	bool present, degraded, lost;
	uint64_t capacity_bytes, reserve_bytes, unmanaged_bytes, shareable_bytes;
	uint64_t requests_bytes; /* sum of the requests bound here */
	uint64_t backing_bytes;  /* live, committed */
	uint64_t granted_bytes;  /* granted, not committed yet */
	uint64_t hidden_bytes, dying_bytes, free_bytes;
	uint64_t paid_bytes; /* what the reserve pays */
	uint64_t held_bytes; /* of backing */
	/* Of backing: on the host; of these, being restored */
	uint64_t evicted_bytes, returning_bytes;
	uint32_t workloads, waiting;
};

struct sl_node_pool_view {
	uint64_t pool_bytes, slack_bytes, evicted_bytes;
	uint64_t leaving_bytes; /* reserved for open EVICTs */
	uint64_t copies_bytes;  /* copies of resident chunks, dropped first */
	/* Lent, over all GPUs: evicted + overlap <= pool - slack */
	uint64_t overlap_bytes;
};

struct sl_node_workload_view {
	bool known, stopping;
	uint32_t gpu_mask, clients;
	/* GPUs its clients hold or want memory on; gpu_mask is the plan */
	uint32_t actual_mask;
	uint32_t flags, untakeable; /* untakeable: clients */
	int32_t priority;
	/* Per GPU; parked: what it will have again */
	uint64_t request_bytes, limit_bytes;
	sl_ns wait_max;
	/* Swap. Spans are as of now. */
	enum sl_residency residency;
	enum sl_presence presence;
	sl_ns warm_after, detach_after, idle_grace;
	sl_ns turn_left; /* left of its turn while others wait for its end; 0: it has no turn */
	sl_ns wants_since; /* how long it has waited to be resident; 0: it does not */
	/* Bound of that wait with the current competitors; 0: none. SL_NS_NEVER: no bound, because
	 * of `endless`. */
	sl_ns longest_wait;
	enum sl_endless endless;
	uint64_t turns; /* that it has had */
	/* Since it began: how often, and how long in total, it waited for memory or to return to
	 * its GPUs; a wait that still goes on counts. */
	uint64_t waits;
	sl_ns waited;
};

struct sl_node_client_view {
	bool known, alive, expected, waits; /* waits: as the deadlock rule counts it */
	uint64_t workload;
	enum sl_client_condition condition;
	enum sl_probe probe;
	bool stopping, killed, untakeable, proven;
	uint32_t stop_reason;
	sl_ns idle, busy; /* as of now; 0: not */
	bool swaps, wants;
	uint64_t order; /* the open EVICT or RESTORE; 0: none */
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
	uint64_t paid_bytes; /* measured beside hidden_bytes; paid by the reserve */
	uint64_t
		away_bytes; /* measured before the process left its GPUs; not there now */
	uint64_t held_bytes; /* of backing */
	/* Of backing: on the host; of these, being restored */
	uint64_t evicted_bytes, returning_bytes;
	uint64_t waiting_bytes; /* sum of its waiting demands */
	uint32_t waiting;
};

struct sl_node_gpu_view sl_node_gpu(const struct sl_node *node, uint32_t gpu);
struct sl_node_pool_view sl_node_pool(const struct sl_node *node);
/* O(its clients); the first after a step looks at all workloads. */
struct sl_node_workload_view sl_node_workload(
	const struct sl_node *node, uint64_t workload);
/* The same without turn_left and longest_wait, which depend on other workloads. O(its clients). */
struct sl_node_workload_view sl_node_workload_alone(
	const struct sl_node *node, uint64_t workload);
struct sl_node_use_view sl_node_use(
	const struct sl_node *node, uint64_t workload, uint32_t gpu);
/* Committed backing bytes of one client, and its measured bytes (hidden and paid). */
struct sl_node_use_view sl_node_client_use(
	const struct sl_node *node, uint64_t client, uint32_t gpu);

struct sl_node_client_view sl_node_client(const struct sl_node *node, uint64_t client);
/* Every demand of the node: per GPU in the order of its queue, granted ones last. */
typedef void (*sl_node_demand_fn)(
	void *context, const struct sl_node_demand_view *demand);
void sl_node_each_demand(const struct sl_node *node, sl_node_demand_fn fn, void *context);

/* A reason and the numbers of its sentence, with ids instead of names. */
struct sl_node_because {
	uint32_t reason, gpu;
	uint64_t workload, other, client;
	uint64_t bytes, available_bytes, other_bytes;
	sl_ns span;
};
typedef void (*sl_node_because_fn)(void *context, const struct sl_node_because *because);
/* Why the workload is as it is now: one entry for each waiting demand, each client being stopped or
 * untakeable, and each lost or degraded GPU. None: nothing is in its way. O(its clients x
 * workloads). */
void sl_node_why(const struct sl_node *node, uint64_t workload, sl_node_because_fn fn,
	void *context);

const char *sl_event_name(uint32_t type);
const char *sl_action_name(uint32_t type);

/*
 * Checks every invariant of the books and the rules; 0, or 1 with the broken one in err. For tests:
 * O(everything).
 */
SL_MUST_CHECK int sl_node_check(const struct sl_node *node, struct sl_error *err);

#endif
