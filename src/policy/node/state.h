/*
 * state - the facts of a node; private to src/policy/node
 *
 * The plan cannot compute any of these fields from the others; docs/decisions/0037-facts.md names
 * the promise that each one serves. Not counted as facts are links between objects (indexes, lists,
 * spares) and the verdicts of the last plan, which no decision reads. Objects live in the arena and
 * are recycled: a steady population takes no new memory.
 */
#ifndef SL_POLICY_NODE_STATE_H
#define SL_POLICY_NODE_STATE_H

#include "base/list.h"
#include "policy/books/index.h"
#include "policy/books/ledger.h"
#include "policy/node.h"

/* A refused thing, not tried again before `until`. */
struct sl_node_back_off {
	sl_ns until, since; /* since: the first refusal in this row */
	uint32_t times;     /* in a row */
	enum sl_reason cause;
};

enum sl_node_workload_stage {
	SL_NODE_RUNS,
	SL_NODE_PARKED,
	SL_NODE_DETACHED, /* parked for lack of work: its next call resumes it */
	SL_NODE_RESUMING, /* parked until its request fits again */
	SL_NODE_ENDING,   /* a person asked for its end: it gets no more memory */
	SL_NODE_ENDED,    /* its processes were killed */
	SL_NODE_UNCOUNTED /* the kill did nothing: the node does not count on its memory any more */
};

/* Notes about a workload that were given once. */
#define SL_NODE_TOLD_PARKED 1u
#define SL_NODE_TOLD_WARM   2u
#define SL_NODE_TOLD_LONG   4u

struct sl_node_workload {
	struct sl_index_node index;
	struct sl_link of_node, clients; /* clients: living and dying */
	struct sl_node_workload *next_spare;
	struct sl_node_sums *sums; /* of the current plan */

	int32_t priority;
	uint32_t flags; /* SL_WORKLOAD_* */
	sl_ns wait_max, warm_after, detach_after, idle_grace;
	uint64_t request_bytes; /* while parked: what it gave up */
	uint32_t compute_pm;    /* request, promised while it is not parked */
	enum sl_node_workload_stage stage;
	/* RESUMING: since; ENDING: when to kill; ENDED: when to stop counting on its end. RUNS,
	 * DETACHED: when to ask (again) that it be detached, or resumed. */
	sl_ns stage_at;
	uint32_t told;
	sl_ns served_at, slice_ends; /* of its last slice */
	uint64_t slice_bytes;        /* all it had when the slice began */
	uint64_t turns, waits;
	sl_ns waited, waits_since;        /* waits_since 0: it does not wait */
	struct sl_ledger_account account; /* last: it is large */
};

enum sl_node_client_stage {
	SL_NODE_EXPECTED,  /* known to an earlier daemon, not reported yet */
	SL_NODE_REPORTING, /* is reporting what it has: no orders before it is done */
	SL_NODE_LIVES,
	SL_NODE_DYING
};
enum sl_node_seat { SL_NODE_UNSEATED, SL_NODE_COMING, SL_NODE_SERVED };
enum sl_node_stop_stage {
	SL_NODE_UNTOLD,
	SL_NODE_TERMED,
	SL_NODE_KILLED,
	SL_NODE_STUBBORN,  /* killed, and did not end */
	SL_NODE_UNREACHED, /* could not be signalled */
	SL_NODE_SPARED     /* the need for its end went away */
};
enum sl_node_order_kind {
	SL_NODE_EVICT,
	SL_NODE_RESTORE,
	SL_NODE_ABORTED,
	SL_NODE_DETACH,
	SL_NODE_ATTACH
};

#define SL_NODE_TOLD_OOM        1u
#define SL_NODE_TOLD_HELD       2u
#define SL_NODE_TOLD_POOL       4u
#define SL_NODE_TOLD_UNTAKEABLE 8u
/* A person resumed it: it comes back even if it does not want to run. */
#define SL_NODE_COMES_BACK 16u
/* Its seat, and the slice that began with it, outrank priorities. */
#define SL_NODE_OVERDUE 32u
/* It did not report in time: what memory it has is not known. */
#define SL_NODE_UNHEARD 64u

/* The one open EVICT, RESTORE, DETACH or ATTACH of a client. */
struct sl_node_order {
	uint64_t id; /* the action; 0: no order is open */
	enum sl_node_order_kind kind;
	uint32_t gpu;
	uint64_t out_bytes; /* on the host when it was given, less what was freed since */
	sl_ns since;
	/* The workload it is for; its own: a park; 0: none, it goes warm */
	uint64_t other;
};

struct sl_node_client {
	struct sl_index_node index;
	struct sl_link of_workload, demands; /* demands: by arrival */
	struct sl_node_workload *workload;
	struct sl_node_client *next_spare;

	enum sl_node_client_stage stage;
	bool swaps;
	uint32_t told;
	enum sl_client_condition condition;
	sl_ns halted_since; /* not running; 0: it runs */
	sl_ns busy_since;   /* with one piece of work; 0: not busy, or unknown */
	sl_ns idle_since;   /* 0: busy, or unknown */
	bool proven;
	sl_ns active_at; /* last work, ask, free, commit or grant, or when it became whole */
	enum sl_probe probe;
	sl_ns probe_at;
	sl_ns wants_since; /* 0: it does not want to come back */
	enum sl_node_seat seat;
	uint64_t chunk_bytes, store_bytes, trim_bytes;
	enum sl_node_stop_stage stop_stage;
	sl_ns stop_at;
	struct sl_node_because stop;
	struct sl_node_order order;
	struct sl_node_back_off back_off; /* of orders; cause tells which direction */
	struct sl_node_back_off trim;

	struct sl_node_look *look;        /* of the current plan, or of the last one */
	struct sl_ledger_holding holding; /* last: it is large */
};

#define SL_NODE_DEMAND_HELD    1u
#define SL_NODE_DEMAND_THERE   2u
#define SL_NODE_DEMAND_CONTEXT 4u
#define SL_NODE_DEMAND_VOID    8u  /* granted on a GPU that was lost later */
#define SL_NODE_DEMAND_SEATED  16u /* it had a seat, and what it lacks was coming */
#define SL_NODE_SAID_ENTITLED  1u
#define SL_NODE_SAID_BURST     2u
#define SL_NODE_SAID_REFUSED   4u
#define SL_NODE_SAID_SERVED    8u
/* It was considered as a burst that may get out-of-memory first. */
#define SL_NODE_MET 16u

struct sl_node_demand {
	struct sl_link of_client; /* spare ones: of the node's list */
	struct sl_node_client *client;

	uint64_t ask, sequence, bytes;
	uint32_t gpu, flags;
	uint64_t epoch;             /* the grant; 0: it waits */
	sl_ns arrived, burst_since; /* burst_since 0: it is entitled */
	uint32_t told;
	struct sl_node_back_off back_off; /* of creations refused by the driver */
};

enum sl_node_stranger_stage {
	SL_NODE_KNOWN,
	SL_NODE_SAID,
	SL_NODE_TOLD_TO_END,
	SL_NODE_SHOT
};

struct sl_node_stranger { /* an unmanaged process */
	struct sl_index_node index;
	struct sl_node_stranger *next_spare;

	uint64_t bytes[SL_NODE_GPUS_MAX];
	enum sl_node_stranger_stage stage;
	sl_ns stage_at;
};

struct sl_node_gpu {
	bool lost;
	uint64_t out_bytes_s, in_bytes_s; /* of the link; 0: unknown */
};

struct sl_node {
	struct sl_arena *arena;
	struct sl_ledger ledger;
	struct sl_index workloads, clients, strangers;
	struct sl_link all_workloads, spare_demands;
	struct sl_node_workload *spare_workloads;
	struct sl_node_client *spare_clients;
	struct sl_node_stranger *spare_strangers;
	struct sl_node_plan *plan; /* arrays with room for all, and the last verdicts */
	sl_ns now;                 /* of the last step, for views */

	struct sl_event config; /* the last CONFIG, with defaults filled in */
	struct sl_node_gpu gpu[SL_NODE_GPUS_MAX];
	uint64_t next_action, next_epoch; /* next_action: numbers demands, too */
	sl_ns recover_until;              /* 0: no recovery */
	sl_ns told_due;
	uint32_t lacks; /* GPUs where the last plan left something open */
	bool awaits;    /* a context waits, or something parked must still leave */
};

static inline void sl_node_set_overdue(struct sl_node_client *client, bool overdue)
{
	client->told =
		(client->told & ~SL_NODE_OVERDUE) | (overdue ? SL_NODE_OVERDUE : 0);
}

#define SL_NODE_ENTRY(index_node, type) SL_CONTAINER_OF(index_node, struct type, index)

/* For memory. */
static inline bool sl_node_is_waiting(const struct sl_node_demand *demand)
{
	return !demand->epoch && !(demand->flags & SL_NODE_DEMAND_CONTEXT);
}

/* Its request is given up, but its clients still hold memory. */
static inline bool sl_node_is_removed(const struct sl_node_workload *workload)
{
	return !workload->account.gpu_mask;
}

static inline struct sl_node_client *sl_node_client_at(const struct sl_link *link)
{
	return SL_CONTAINER_OF(link, struct sl_node_client, of_workload);
}

static inline struct sl_node_demand *sl_node_demand_at(const struct sl_link *link)
{
	return SL_CONTAINER_OF(link, struct sl_node_demand, of_client);
}

static inline struct sl_node_workload *sl_node_workload_at(const struct sl_link *link)
{
	return SL_CONTAINER_OF(link, struct sl_node_workload, of_node);
}

static inline struct sl_node_client *sl_node_client_after(
	const struct sl_node *node, const struct sl_node_client *client)
{
	struct sl_index_node *next =
		sl_index_next(&node->clients, client ? &client->index : NULL);

	return next ? SL_NODE_ENTRY(next, sl_node_client) : NULL;
}

#define sl_node_each_workload(w, node)                                   \
	for (struct sl_node_workload *w =                                \
			sl_node_workload_at((node)->all_workloads.next); \
		&w->of_node != &(node)->all_workloads;                   \
		w = sl_node_workload_at(w->of_node.next))
/* In any order. */
#define sl_node_each_client(client, node)                                              \
	for (struct sl_node_client *client = sl_node_client_after(node, NULL); client; \
		client = sl_node_client_after(node, client))
#define sl_node_each_client_of(client, w)                                          \
	for (struct sl_node_client *client = sl_node_client_at((w)->clients.next); \
		&client->of_workload != &(w)->clients;                             \
		client = sl_node_client_at(client->of_workload.next))
/* By arrival. */
#define sl_node_each_demand_of(demand, client)                                          \
	for (struct sl_node_demand *demand = sl_node_demand_at((client)->demands.next); \
		&demand->of_client != &(client)->demands;                               \
		demand = sl_node_demand_at(demand->of_client.next))

/* Spans may be SL_NS_NEVER. */
static inline sl_ns sl_node_later(sl_ns at, sl_ns span)
{
	return span > SL_NS_NEVER - at ? SL_NS_NEVER : at + span;
}

#endif
