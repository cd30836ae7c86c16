/*
 * internal - what the files of src/policy/node use of each other
 *
 * In a step, a handler changes facts and answers the event at once. If a handler asks for it, the
 * plan then decides about memory (plan.c); handlers never do.
 */
#ifndef SL_POLICY_NODE_INTERNAL_H
#define SL_POLICY_NODE_INTERNAL_H

#include "policy/mutant.h"
#include "policy/node/state.h"

struct sl_node_step {
	struct sl_node *node;
	sl_ns now;
	sl_action_fn emit;
	void *context;
	bool plans;        /* a handler asked for the plan */
	bool changes;      /* the plan changed a seat, or the memory that will be there */
	uint32_t degraded; /* degraded GPUs, as last told */
	sl_ns due;         /* when time alone may change the plan */
	struct sl_action left; /* LEFT, emitted last */
};

/* --- node.c --- */
/* Returns the id of the action. */
/* LEFT, if it is still to be told. */
void sl_node_tell_left(struct sl_node_step *step);
uint64_t sl_node_emit(struct sl_node_step *step, struct sl_action action);
void sl_node_note(struct sl_node_step *step, enum sl_reason reason, uint32_t gpu,
	uint64_t workload, uint64_t other, uint64_t bytes);
void sl_node_note_because(
	struct sl_node_step *step, const struct sl_node_because *because);
struct sl_node_workload *sl_node_find_workload(const struct sl_node *node, uint64_t id);
struct sl_node_client *sl_node_find_client(const struct sl_node *node, uint64_t id);
/* now, but never 0, which means "never". */
static inline sl_ns sl_node_stamp(const struct sl_node_step *step)
{
	return sl_max_u64(step->now, 1);
}
static inline void sl_node_wake(struct sl_node_step *step, sl_ns at)
{
	step->due = sl_min_u64(step->due, at);
}
/* If false, the next plan is due at `at`. */
static inline bool sl_node_has_come(struct sl_node_step *step, sl_ns at)
{
	if (step->now < at)
		sl_node_wake(step, at);
	return step->now >= at;
}

/* The handlers of events. */
#define SL_EVENT(NAME, name, fields) \
	void sl_node_on_##name(struct sl_node_step *step, const struct sl_event *event);
#include "policy/node/event.def"
#undef SL_EVENT

/* --- workloads.c, parks.c --- */
/* Drops a removed workload once no client refers to it. */
void sl_node_forget_workload(struct sl_node *node, struct sl_node_workload *workload);
void sl_node_refuse(struct sl_node_step *step, uint64_t workload, enum sl_reason reason,
	uint32_t gpu, uint64_t wanted, uint64_t available);
/* Handles stages of workloads that are due. */
void sl_node_time_workloads(struct sl_node_step *step);
/* Asks that detached workloads be resumed whose processes want to run. */
void sl_node_call(struct sl_node_step *step);
/* Asks that the workload be detached, which has had no work for long. For one without processes
 * that use a GPU, the time counts from sl_node_count_unused(). */
void sl_node_leave_idle(struct sl_node_step *step, struct sl_node_workload *workload);
void sl_node_count_unused(struct sl_node_step *step, struct sl_node_workload *workload);
/* Resumes workloads whose request fits again. */
void sl_node_resume(struct sl_node_step *step);
struct sl_node_because sl_node_resume_because(
	const struct sl_node *node, const struct sl_node_workload *workload);
static inline bool sl_node_is_parked(const struct sl_node_workload *workload)
{
	return workload->stage == SL_NODE_PARKED || workload->stage == SL_NODE_DETACHED ||
	       workload->stage == SL_NODE_RESUMING;
}
/* Parked, and not resumed yet. */
static inline bool sl_node_is_put_away(const struct sl_node_workload *workload)
{
	return workload->stage == SL_NODE_PARKED || workload->stage == SL_NODE_DETACHED;
}
/* Its request, also while it is given up for a park. */
static inline uint64_t sl_node_request_of(const struct sl_node_workload *workload)
{
	return sl_node_is_parked(workload) ? workload->request_bytes
					   : workload->account.request_bytes;
}
/* What I1 leaves for its request on the GPU. */
static inline uint64_t sl_node_request_room(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	return sl_sub_sat(sl_ledger_shareable(&node->ledger, gpu),
		node->ledger.gpu[gpu].claims_bytes -
			sl_ledger_claim(&workload->account, gpu));
}
/* Thousandths of the GPU's time that compute requests leave; that of `but` (or NULL) does not
 * count. */
uint32_t sl_node_compute_room(
	const struct sl_node *node, const struct sl_node_workload *but, uint32_t gpu);
/* A person asked for its end. */
static inline bool sl_node_is_stopped(const struct sl_node_workload *workload)
{
	return workload->stage >= SL_NODE_ENDING;
}
/* The node counts on its end; not any more once a kill did nothing. */
static inline bool sl_node_goes(const struct sl_node_workload *workload)
{
	return sl_node_is_stopped(workload) && workload->stage != SL_NODE_UNCOUNTED;
}

/* --- gpus.c --- */
/* GPUs where I1 is broken; tells when it breaks and holds again. */
uint32_t sl_node_degraded(const struct sl_node *node);
void sl_node_tell_degraded(struct sl_node_step *step);
/* Time to move this many bytes off the GPU, and onto it. */
sl_ns sl_node_cost_out(const struct sl_node *node, uint32_t gpu, uint64_t bytes);
sl_ns sl_node_cost_in(const struct sl_node *node, uint32_t gpu, uint64_t bytes);
/* The node's chain has this resolver. */
bool sl_node_has(const struct sl_node *node, enum sl_resolver resolver);
/* The chain of the workload's demands above its request. */
uint32_t sl_node_chain(
	const struct sl_node *node, const struct sl_node_workload *workload);
/* Its memory is never moved: by its own choice, or because of its GPUs. */
bool sl_node_is_fixed(
	const struct sl_node *node, const struct sl_node_workload *workload);
/* Where others are moved, what never moves is not taken back: `priority` would end it. */
bool sl_node_keeps_for_good(const struct sl_node *node);
/* Nothing takes back what it has. */
bool sl_node_keeps_all(
	const struct sl_node *node, const struct sl_node_workload *workload);
/* Books whether that is so. Of a parked workload, I1 counts nothing. */
void sl_node_book_stays(struct sl_node *node, struct sl_node_workload *workload);
/* Anything can be moved to the host at all. */
bool sl_node_swaps(const struct sl_node *node);

/* --- clients.c --- */
/* NULL, noted as STRAY, if the client is dead or unknown. */
struct sl_node_client *sl_node_living(struct sl_node_step *step, uint64_t id);
/* False, noted as STRAY, if there is no such GPU. */
bool sl_node_is_there(struct sl_node_step *step, uint32_t gpu, uint64_t bytes);
/* Tells the workload's processes of a change on this GPU if it has at least if_living of them: a
 * single process knows its own changes. */
void sl_node_tell_view(struct sl_node_step *step, const struct sl_node_workload *workload,
	uint32_t gpu, uint32_t if_living);
/* The GPU was lost: voids open grants there and drops dying bytes. */
void sl_node_lose(struct sl_node_step *step, uint32_t gpu);
/* Lets the reserve pay what it has room for; contexts.c. */
void sl_node_repay(struct sl_node_step *step, uint32_t gpu);
/* Some of its memory is on the host. */
bool sl_node_is_out(const struct sl_node_client *client);

/* --- demands.c --- */
void sl_node_grant(struct sl_node_step *step, struct sl_node_demand *demand);
void sl_node_deny(
	struct sl_node_step *step, struct sl_node_demand *demand, enum sl_reason reason);
void sl_node_drop_demand(struct sl_node *node, struct sl_node_demand *demand);
/* Denies all waiting demands of the workload. */
void sl_node_cancel_all(struct sl_node_step *step, struct sl_node_workload *workload);
void sl_node_void_grants(
	struct sl_node_step *step, struct sl_node_client *client, uint32_t gpu);
bool sl_node_has_open_grant(const struct sl_node_client *client);
/* The first waiting demand for memory; NULL: none. */
struct sl_node_demand *sl_node_first_waiting(const struct sl_node_client *client);
/* Memory of the GPU became free: retries failed creations. */
void sl_node_released(struct sl_node *node, uint32_t gpu);
/* Within its request, by the last plan; before one, by the books. */
bool sl_node_is_entitled(const struct sl_node_demand *demand);

/* --- refusals.c --- */
typedef void (*sl_node_waiting_fn)(
	struct sl_node_step *step, struct sl_node_demand *demand);
/* Calls fn, which may end the demand, for each waiting demand: clients as they joined, demands as
 * they arrived. In a plan. */
void sl_node_each_waiting(struct sl_node_step *step, sl_node_waiting_fn fn);
/* With it, the workload would exceed its limit. */
bool sl_node_exceeds_limit(const struct sl_node_demand *demand);
/* It exceeds the request, counting what its workload uses. */
bool sl_node_is_burst(const struct sl_node_demand *demand);
/* Denies demands that can never be served; also during a recovery. */
void sl_node_refuse_demands(struct sl_node_step *step);
/* Answers demands to hold existing memory, and denies those for memory that can never be held. */
void sl_node_answer_there(struct sl_node_step *step);
/* How much more the workload may hold on the GPU; there: of existing bytes. */
uint64_t sl_node_holdable(const struct sl_node *node,
	const struct sl_node_workload *workload, uint32_t gpu, bool there);

/* --- slices.c --- */
/* Makes its slice at least as long as it would be alone with this grant, which came without a
 * plan. */
void sl_node_lengthen_slice(struct sl_node *node, const struct sl_node_demand *demand);
/* A grant within its workload's slice lengthens the slice. Any other grant begins a slice if other
 * workloads left for it (waited), or if it is the first of its workload. */
void sl_node_grant_in_slice(struct sl_node_step *step, struct sl_node_demand *demand,
	bool waited, bool overdue);

/* --- orders.c --- */
void sl_node_evict(struct sl_node_step *step, struct sl_node_client *client, uint32_t gpu,
	uint64_t bytes, uint64_t other);
/* Nothing of it is on the host any more. */
void sl_node_is_back(struct sl_node_step *step, struct sl_node_client *client);
/* Since when it has waited for its return or for a demand; 0: it does not wait. */
sl_ns sl_node_wanted_since(const struct sl_node_client *client);
/* Reserves room for all of it on each of its GPUs; `bytes` come on this one. */
void sl_node_restore(struct sl_node_step *step, struct sl_node_client *client,
	uint32_t gpu, uint64_t bytes);
/* The least that is worth an order of its own beside others. */
uint64_t sl_node_least_piece(const struct sl_node *node, uint32_t gpu);
void sl_node_abort(struct sl_node_step *step, struct sl_node_client *client);
/* Backs off after a refusal: for `first`, then twice as long each time, up to `most`. since: when
 * the refused action began; of refusals in a row, the first one's is kept. */
void sl_node_back_off(struct sl_node_step *step, struct sl_node_back_off *off,
	sl_ns since, sl_ns first, sl_ns most, enum sl_reason cause);
/* A back-off keeps it from leaving, or from coming back. */
bool sl_node_must_stay(const struct sl_node_client *client, sl_ns now);
bool sl_node_must_wait(const struct sl_node_client *client, sl_ns now);
/* Its last EVICT failed recently for lack of host memory. */
bool sl_node_is_hostless(const struct sl_node_client *client, sl_ns now);

/* --- places.c --- */
/* The process is off its GPUs, and no ATTACH of it is open. */
bool sl_node_is_detached(const struct sl_node_client *client);
/* The process is leaving its GPUs, or returning. */
static inline bool sl_node_is_travelling(const struct sl_node_client *client)
{
	return client->order.id && client->order.kind >= SL_NODE_DETACH;
}
/* Its memory, or the process itself, is coming back. */
static inline bool sl_node_is_returning(const struct sl_node_client *client)
{
	return client->order.id && (client->order.kind == SL_NODE_RESTORE ||
					   client->order.kind == SL_NODE_ATTACH);
}
/* Sends the process off its GPUs if nothing of it but its contexts is there. */
void sl_node_detach(struct sl_node_step *step, struct sl_node_client *client);
/* Books its contexts again, and brings the process back. */
void sl_node_attach(struct sl_node_step *step, struct sl_node_client *client);
/* It comes back even if it does not want to run, if it is away or leaving. */
void sl_node_call_back(struct sl_node_step *step, struct sl_node_client *client);
/* I1 has no room for its contexts beside the requests of others: says on which GPU. */
bool sl_node_lacks_reserve(const struct sl_node *node,
	const struct sl_node_client *client, struct sl_node_because *because);
/* I1 has room for its contexts, and none of their GPUs is lost. */
bool sl_node_may_attach(const struct sl_node *node, const struct sl_node_client *client);

/* --- moves.c --- */
enum sl_presence sl_node_presence(
	const struct sl_node *node, const struct sl_node_workload *workload);
/* Binds the workload to GPU `to` instead of `from`, where nothing of its living clients is, and
 * says so with a NOTE of that reason. */
void sl_node_rebind(struct sl_node_step *step, struct sl_node_workload *workload,
	uint32_t from, uint32_t to, enum sl_reason reason);
/* Binds a parked workload to the GPUs of mask; 0: to those that it has. False: refused. */
SL_MUST_CHECK bool sl_node_change_gpus(
	struct sl_node_step *step, struct sl_node_workload *workload, uint32_t mask);

/* --- trims.c --- */
/* Copies of resident chunks in its host file. */
uint64_t sl_node_copies(const struct sl_node_client *client);
/* Before this many bytes of it leave. False: copies of other clients are dropped first; wait for
 * that. */
SL_MUST_CHECK bool sl_node_trim_for(
	struct sl_node_step *step, const struct sl_node_client *client, uint64_t bytes);
/* It has less on the host: try again to trim what it could not give. */
void sl_node_trim_anew(const struct sl_node_step *step, struct sl_node_client *client);

/* --- going.c --- */
struct sl_node_all_out { /* all of a workload that can be moved to the host */
	uint64_t bytes;
	uint64_t room_bytes; /* left in the pool beside lent bytes */
};
struct sl_node_all_out sl_node_all_out(const struct sl_node *node,
	const struct sl_node_workload *workload, bool gives_up_request);
/* How much of the GPU may be lent. */
uint64_t sl_node_lend(const struct sl_node *node, uint32_t gpu);
/* What a park still waits for; false: nothing. */
bool sl_node_parking_because(const struct sl_node *node,
	const struct sl_node_client *client, struct sl_node_because *because);
/* True if it should become warm, but the host has no room for it. */
bool sl_node_warm_because(const struct sl_node *node,
	const struct sl_node_workload *workload, struct sl_node_because *because);

/* --- facts.c --- */
/* The start of its present idleness, if it is idle. */
static inline sl_ns sl_node_quiet_since(const struct sl_node_client *client)
{
	return sl_max_u64(client->idle_since, client->active_at);
}
/* It has memory on a GPU, including memory that cannot leave. */
bool sl_node_has_memory(const struct sl_node_client *client);
/* How long it has been idle, as far as known; 0: it is busy. */
sl_ns sl_node_idle(const struct sl_node_client *client, sl_ns now);
/* Since when it is halted, or busy with one piece of work; 0: neither. */
sl_ns sl_node_stuck_since(const struct sl_node_client *client);
/* When it becomes untakeable if nothing changes; SL_NS_NEVER: never. */
sl_ns sl_node_untakeable_at(
	const struct sl_node *node, const struct sl_node_client *client);
/* As of the last step. */
bool sl_node_is_untakeable(
	const struct sl_node *node, const struct sl_node_client *client);
/* It is joined, runs, and can carry out an order. */
bool sl_node_answers(
	const struct sl_node *node, const struct sl_node_client *client, sl_ns now);
void sl_node_be_active(struct sl_node_step *step, struct sl_node_client *client);

/* --- stops.c --- */
/* Told to end for a demand or a return, and not given up yet; its grace may be over. */
bool sl_node_is_told_to_end(const struct sl_node_client *client);
/* The node counts on its end. */
bool sl_node_ends(const struct sl_node_client *client, sl_ns now);
/* Handles stages of a stop that are due. */
void sl_node_time_stop(struct sl_node_step *step, struct sl_node_client *client);

/* --- strangers.c --- */
/* Handles stages that are due, by the current CONFIG. */
void sl_node_time_strangers(struct sl_node_step *step);
/* Forgets what unmanaged processes have on the lost GPU. */
void sl_node_lose_strangers(struct sl_node *node, uint32_t gpu);

/* --- copy.c --- */
/* What the host may still take of the workload, by the bound per workload; leaving: count bytes
 * told to leave as on the host. */
uint64_t sl_node_part_left(const struct sl_node *node,
	const struct sl_node_workload *workload, bool leaving);

/* --- contexts.c --- */
struct sl_admit_gpu;
/* Fills in the facts about the next context there that admission judges. */
void sl_node_context_facts(const struct sl_node *node, uint32_t gpu, bool has_request,
	struct sl_admit_gpu *facts);
/* Handles waiting demands for contexts, in order of arrival. */
void sl_node_contexts(struct sl_node_step *step);
/* Why it waits; reason NONE: it does not have to. */
struct sl_node_because sl_node_context_because(
	const struct sl_node *node, const struct sl_node_demand *demand);

/* --- free.c --- */
/* What the demand could get now. */
uint64_t sl_node_available(
	const struct sl_node *node, const struct sl_node_demand *demand);

/* --- because.c --- */
/* Some of it is off its GPUs, or being moved. */
bool sl_node_is_away(const struct sl_node_client *client);
struct sl_node_because sl_node_away_because(
	const struct sl_node *node, const struct sl_node_client *client);
struct sl_node_because sl_node_waits_because(
	const struct sl_node *node, const struct sl_node_demand *demand);
/* Bytes of a workload on a GPU. burst_on: above its request. stuck_on, kept_on: of these, what
 * untakeable processes have, and what processes have that are never moved. lasting_on: bytes that
 * stay. hostless_on: bytes that the host has no memory for. */
typedef uint64_t (*sl_node_bytes_fn)(const struct sl_node *node,
	const struct sl_node_workload *workload, uint32_t gpu);
uint64_t sl_node_burst_on(const struct sl_node *node,
	const struct sl_node_workload *workload, uint32_t gpu);
uint64_t sl_node_stuck_on(const struct sl_node *node,
	const struct sl_node_workload *workload, uint32_t gpu);
uint64_t sl_node_kept_on(const struct sl_node *node,
	const struct sl_node_workload *workload, uint32_t gpu);
uint64_t sl_node_lasting_on(const struct sl_node *node,
	const struct sl_node_workload *workload, uint32_t gpu);
uint64_t sl_node_hostless_on(const struct sl_node *node,
	const struct sl_node_workload *workload, uint32_t gpu);
/* Names the other workload with most of these bytes; false: none has any. */
bool sl_node_name_most(const struct sl_node *node, struct sl_node_because *because,
	sl_node_bytes_fn bytes_of);

/* --- notes.c --- */
void sl_node_note_wait(struct sl_node_step *step, struct sl_node_demand *demand);
void sl_node_note_pool(struct sl_node_step *step);
void sl_node_note_long(struct sl_node_step *step, struct sl_node_workload *workload);

/* --- view.c --- */
/* GPUs where it has or had memory, or waits for some. */
uint32_t sl_node_actual_mask(const struct sl_node_workload *workload);

/* --- plan.c --- */
void sl_node_plan(struct sl_node_step *step);

#endif
