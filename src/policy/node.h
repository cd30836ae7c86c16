/*
 * node - the machine that decides about the memory of one node's GPUs
 *
 * Event in, actions out, time as an argument. No clock, no I/O, no threads; memory from an
 * arena, which grows only when something is added. The daemon and tests/sim drive the same
 * code. Single-threaded.
 *
 * Accounts, per GPU (all in backing bytes):
 *   shareable = capacity - reserve - unmanaged
 *   use(w)    = live backing + hidden + granted-but-uncommitted of w's living clients
 *   dying     = bytes of dead clients until RELEASED; they occupy, but are nobody's use
 *   free      = shareable - sum of use - dying
 *   unclaimed(w) = max(0, request(w) - use(w))
 * Promises (design.md section 4): I1: sum over w of max(request, fixed) <= shareable; a demand
 * that keeps use(w) within request(w) is entitled and never denied (named exceptions in
 * reason.def); a burst demand may take free - sum of others' unclaimed (+ what I2 lends, which
 * is 0 without a host pool); above the limit it is denied at once. Grants are whole.
 * Order: entitled, priority (higher first), arrival; a demand that fits may pass the head for
 * head_pass, after that freed bytes are kept for the head, except what the deadlock rule needs.
 */
#ifndef SL_POLICY_NODE_H
#define SL_POLICY_NODE_H

#include "base/amount.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "policy/reason.h"

#define SL_NODE_GPUS_MAX 32

enum sl_event_type {
#define SL_EVENT(NAME, name, fields) SL_EVENT_##NAME,
#include "policy/event.def"
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
#include "policy/event.def"
#undef SL_EVENT
	};
};

enum sl_action_type {
#define SL_ACTION(NAME, name, fields) SL_ACTION_##NAME,
#include "policy/action.def"
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
#include "policy/action.def"
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
	bool present, degraded;
	uint64_t capacity_bytes, reserve_bytes, unmanaged_bytes, shareable_bytes;
	uint64_t requests_bytes; /* sum of the requests bound here */
	uint64_t backing_bytes;  /* live, committed */
	uint64_t granted_bytes;  /* granted, not committed yet */
	uint64_t hidden_bytes, dying_bytes, free_bytes;
	uint32_t workloads, waiting;
};

struct sl_node_workload_view {
	bool known;
	uint32_t gpu_mask, clients;
	int32_t priority;
	uint64_t request_bytes, limit_bytes; /* per GPU */
};

struct sl_node_use_view { /* one workload on one GPU */
	uint64_t backing_bytes, granted_bytes, hidden_bytes, dying_bytes;
	uint64_t waiting_bytes; /* sum of its waiting demands */
	uint32_t waiting;
};

struct sl_node_gpu_view sl_node_gpu(const struct sl_node *node, uint32_t gpu);
struct sl_node_workload_view sl_node_workload(
	const struct sl_node *node, uint64_t workload);
struct sl_node_use_view sl_node_use(
	const struct sl_node *node, uint64_t workload, uint32_t gpu);
/* Committed backing bytes of one client, and its measured hidden bytes. */
struct sl_node_use_view sl_node_client_use(
	const struct sl_node *node, uint64_t client, uint32_t gpu);

const char *sl_event_name(uint32_t type);
const char *sl_action_name(uint32_t type);

/*
 * Checks every invariant of the books and of the rules; 0, or 1 with the broken one in err.
 * For tests and the simulation: O(everything).
 */
SL_MUST_CHECK int sl_node_check(const struct sl_node *node, struct sl_error *err);

#endif
