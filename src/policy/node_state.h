/*
 * node_state - what a node knows; private to src/policy/node*.c
 *
 * Objects live in the arena and are recycled through free lists, so a steady population takes
 * no new memory. Who may touch what: node.c takes events apart, node_workloads.c changes workloads,
 * node_gpus.c GPUs and settings, node_clients.c clients and their demands, node_settle.c decides
 * who gets memory and who waits, node_resolve.c who is stopped; node_view.c only reads.
 */
#ifndef SL_POLICY_NODE_STATE_H
#define SL_POLICY_NODE_STATE_H

#include "policy/books/index.h"
#include "policy/books/pool.h"
#include "policy/node.h"
#include "policy/verdicts/deadlock.h"

/* A waiting demand is announced once after this long (design.md section 4). */
#define SL_NODE_NOTE_AFTER (1 * SL_S)
/* Retries after a driver refusal: the first soon, since a dead process' memory usually comes
 * back within tens of milliseconds; then doubling up to the second value. */
#define SL_NODE_RETRY_FIRST (20 * SL_MS)
#define SL_NODE_RETRY_MOST  (500 * SL_MS)

struct sl_node_member { /* a workload */
	struct sl_index_node index;
	struct sl_link of_node, clients; /* clients: living and dying */
	struct sl_ledger_account account;
	struct sl_deadlock_claim claim;
	uint32_t living;
	uint32_t waiting; /* demands of its clients in queues */
	int32_t priority;
	uint32_t owner, flags; /* flags: SL_WORKLOAD_* */
	sl_ns wait_max;        /* its own longest wait of a burst; 0: the node's */
	bool leaving;          /* removed, but clients of it still hold memory */
	struct sl_node_member *next_spare;
};

struct sl_node_client {
	struct sl_index_node index;
	struct sl_link of_member;
	struct sl_node_member *member;
	struct sl_ledger_holding holding;
	struct sl_deadlock_party party; /* linked while waiting > 0; waits: see settle */
	uint32_t waiting;               /* demands in queues */
	sl_ns active_at; /* last work, free, commit, grant; or when it began to wait */
	bool alive, expected;
	struct sl_node_client *next_spare;
};

/* Who holds most above its request on a GPU; [1]: the next one, for a demand of [0]'s own. */
struct sl_node_borrowers {
	uint64_t as_of; /* node->books when it was found out */
	uint64_t id[2], burst_bytes[2];
};

struct sl_node_queue { /* of one GPU */
	struct sl_link waiting;
	struct sl_demand *head; /* NULL when empty; never dangling */
	uint32_t count,
		backing_off; /* backing_off: an upper bound, see sl_node_released */
	bool degraded;
};

struct sl_node {
	struct sl_arena *arena;
	struct sl_ledger ledger;
	struct sl_pool pool;
	struct sl_node_queue queue[SL_NODE_GPUS_MAX];
	struct sl_index members, clients;
	struct sl_link all_members, parties; /* parties: clients with waiting demands */
	sl_ns wait_max, head_pass, idle_wait, recover_wait;
	uint32_t chain; /* as given by CONFIG: 0 is `wait` alone */
	sl_ns stop_idle, stop_grace, untakeable_after;
	enum sl_last_resort last_resort;
	enum sl_placement placement;
	enum sl_unmanaged unmanaged;
	uint32_t expected;   /* clients not heard of yet after a restart */
	sl_ns recover_until; /* nothing is granted before, while expected > 0 */

	/* What settle has to look at again. */
	uint32_t dirty_mask; /* GPUs whose books changed */
	bool deadlock_dirty, timers_dirty;
	sl_ns due, told_due; /* next deadline; the one last emitted as WAKE_AT */
	/* Counts up when bytes or promises may have changed: with every event and grant. What is
	 * found out by walking all workloads is kept until then. */
	uint64_t books;
	struct sl_node_borrowers borrowers[SL_NODE_GPUS_MAX];

	uint64_t next_sequence, next_epoch, next_action;
	struct sl_node_member *spare_members;
	struct sl_node_client *spare_clients;
	struct sl_link spare_demands; /* by their queue link */

	/* Of the step that is running. */
	sl_ns now;
	sl_action_fn emit;
	void *emit_context;
};

#define SL_NODE_ENTRY(index_node, type) SL_CONTAINER_OF(index_node, struct type, index)

/* Waits of CONFIG may be "for ever". */
static inline sl_ns sl_node_later(sl_ns at, sl_ns span)
{
	return span > SL_NS_NEVER - at ? SL_NS_NEVER : at + span;
}

/* --- node.c --- */
void sl_node_emit(struct sl_node *node, struct sl_action action);
void sl_node_note(struct sl_node *node, enum sl_reason reason, uint32_t gpu,
	uint64_t workload, uint64_t other, uint64_t bytes);
void sl_node_note_because(struct sl_node *node, const struct sl_node_because *because);
/* Bytes of this GPU changed hands. */
void sl_node_touch(struct sl_node *node, uint32_t gpu_mask);
/* Drops a leaving workload that no client refers to any more (node_workloads.c). */
void sl_node_forget_member(struct sl_node *node, struct sl_node_member *member);
struct sl_node_member *sl_node_find_member(const struct sl_node *node, uint64_t id);
struct sl_node_client *sl_node_find_client(const struct sl_node *node, uint64_t id);

/* --- node_workloads.c --- */
void sl_node_on_workload_add(struct sl_node *node, const struct sl_event *event);
void sl_node_on_workload_remove(struct sl_node *node, const struct sl_event *event);
void sl_node_on_workload_set(struct sl_node *node, const struct sl_event *event);
void sl_node_on_workload_stop(struct sl_node *node, const struct sl_event *event);

/* --- node_gpus.c --- */
void sl_node_on_config(struct sl_node *node, const struct sl_event *event);
void sl_node_on_gpu_add(struct sl_node *node, const struct sl_event *event);
void sl_node_on_gpu_lost(struct sl_node *node, const struct sl_event *event);
void sl_node_on_unmanaged(struct sl_node *node, const struct sl_event *event);
void sl_node_on_stranger(struct sl_node *node, const struct sl_event *event);

/* --- node_resolve.c --- */
void sl_node_on_pulse(struct sl_node *node, const struct sl_event *event);
void sl_node_on_condition(struct sl_node *node, const struct sl_event *event);

/* --- node_clients.c --- */
void sl_node_on_client_join(struct sl_node *node, const struct sl_event *event);
void sl_node_on_client_report(struct sl_node *node, const struct sl_event *event);
void sl_node_on_client_reported(struct sl_node *node, const struct sl_event *event);
void sl_node_on_client_exit(struct sl_node *node, const struct sl_event *event);
void sl_node_on_released(struct sl_node *node, const struct sl_event *event);
void sl_node_on_ask(struct sl_node *node, const struct sl_event *event);
void sl_node_on_cancel(struct sl_node *node, const struct sl_event *event);
void sl_node_on_commit(struct sl_node *node, const struct sl_event *event);
void sl_node_on_create_failed(struct sl_node *node, const struct sl_event *event);
void sl_node_on_freed(struct sl_node *node, const struct sl_event *event);
void sl_node_on_work(struct sl_node *node, const struct sl_event *event);
void sl_node_on_hidden(struct sl_node *node, const struct sl_event *event);
struct sl_node_client *sl_node_client_of(const struct sl_demand *demand);
/* Turns a waiting demand into a grant, or into a DENY. */
void sl_node_grant(struct sl_node *node, struct sl_demand *demand);
void sl_node_deny(struct sl_node *node, struct sl_demand *demand, enum sl_reason reason);
/* Gives the workload another priority, and its demands the places that go with it. */
void sl_node_reprioritize(
	struct sl_node *node, struct sl_node_member *member, int32_t priority);
/* Denies all that waits of a workload that is being removed. */
void sl_node_cancel_all(struct sl_node *node, struct sl_node_member *member);
/* Physical memory came back on this GPU: creations that the driver refused are worth another
 * try at once. */
void sl_node_released(struct sl_node *node, uint32_t gpu);

/* --- node_settle.c --- */
/* Decides until nothing is left to decide, then sets node->due. */
void sl_node_settle(struct sl_node *node);
bool sl_node_is_recovering(const struct sl_node *node);
uint64_t sl_node_lend(const struct sl_node *node, uint32_t gpu);
/* How far this demand may stand on unclaimed requests of others: the pool's part, and what can be
 * taken back from it by `priority`. */
uint64_t sl_node_lend_to(const struct sl_node *node, const struct sl_demand *demand);

/* --- node_waits.c --- */
/* Why this waiting demand waits now, with all numbers of the sentence. O(workloads). */
struct sl_node_because sl_node_waits_because(
	const struct sl_node *node, const struct sl_demand *demand);
/* The same for one who knows the borrowers of its GPU: O(1) when nothing is lent. */
struct sl_node_because sl_node_waits_as(const struct sl_node *node,
	const struct sl_demand *demand, const struct sl_node_borrowers *borrowers);
/* Of a waiting demand: who wants how much of what, and what there is for it; no reason yet. */
struct sl_node_because sl_node_numbers(
	const struct sl_node *node, const struct sl_demand *demand);
/* Bytes that this demand could have now at most. */
uint64_t sl_node_available(const struct sl_node *node, const struct sl_demand *demand);
void sl_node_find_borrowers(
	const struct sl_node *node, uint32_t gpu, struct sl_node_borrowers *out);
/* Found out once as long as no bytes move. */
const struct sl_node_borrowers *sl_node_borrowers_of(struct sl_node *node, uint32_t gpu);

#endif
