/*
 * internal - what the files of src/policy/node do for each other
 *
 * A step: handlers change facts and answer what is asked at once; then, if one of them asked for
 * it, the plan decides (plan.c). Handlers decide nothing about memory.
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
	bool plans;            /* a handler asked for the plan */
	bool changes;          /* the plan changed a seat, or what will be there */
	uint32_t degraded;     /* GPUs, as it was told */
	sl_ns due;             /* when time alone may change what the plan says */
	struct sl_action left; /* LEFT, which is said last */
};

/* --- node.c --- */
/* Returns the id of the action. */
uint64_t sl_node_emit(struct sl_node_step *step, struct sl_action action);
void sl_node_note(struct sl_node_step *step, enum sl_reason reason, uint32_t gpu,
	uint64_t workload, uint64_t other, uint64_t bytes);
void sl_node_note_because(
	struct sl_node_step *step, const struct sl_node_because *because);
struct sl_node_workload *sl_node_find_workload(const struct sl_node *node, uint64_t id);
struct sl_node_client *sl_node_find_client(const struct sl_node *node, uint64_t id);
/* now, as a moment that is told from 0, which says "never was". */
static inline sl_ns sl_node_stamp(const struct sl_node_step *step)
{
	return sl_max_u64(step->now, 1);
}
static inline void sl_node_wake(struct sl_node_step *step, sl_ns at)
{
	step->due = sl_min_u64(step->due, at);
}
/* False: the plan looks at it again then. */
static inline bool sl_node_has_come(struct sl_node_step *step, sl_ns at)
{
	if (step->now < at)
		sl_node_wake(step, at);
	return step->now >= at;
}

/* What each event changes. */
#define SL_EVENT(NAME, name, fields) \
	void sl_node_on_##name(struct sl_node_step *step, const struct sl_event *event);
#include "policy/node/event.def"
#undef SL_EVENT

/* --- workloads.c, parks.c --- */
/* Drops a workload that was removed, once no client refers to it. */
void sl_node_forget_workload(struct sl_node *node, struct sl_node_workload *workload);
void sl_node_refuse(struct sl_node_step *step, uint64_t workload, enum sl_reason reason,
	uint32_t gpu, uint64_t wanted, uint64_t available);
/* Of these, and of its others, the GPU where placement would bind it now, as a mask; 0: its request
 * fits on none. O(GPUs + workloads). */
uint32_t sl_node_place(const struct sl_node *node,
	const struct sl_node_workload *workload, uint32_t mask);
/* Stages of workloads that are due. */
void sl_node_time_workloads(struct sl_node_step *step);
/* Requests that fit again are claimed. */
void sl_node_resume(struct sl_node_step *step);
struct sl_node_because sl_node_resume_because(
	const struct sl_node *node, const struct sl_node_workload *workload);
static inline bool sl_node_is_parked(const struct sl_node_workload *workload)
{
	return workload->stage == SL_NODE_PARKED || workload->stage == SL_NODE_RESUMING;
}
/* What it was promised, or gave up until it is resumed. */
static inline uint64_t sl_node_request_of(const struct sl_node_workload *workload)
{
	return sl_node_is_parked(workload) ? workload->request_bytes
					   : workload->account.request_bytes;
}
/* What I1 leaves it for a request on the GPU. */
static inline uint64_t sl_node_request_room(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	return sl_sub_sat(sl_ledger_shareable(&node->ledger, gpu),
		node->ledger.gpu[gpu].claims_bytes -
			sl_ledger_claim(&workload->account, gpu));
}
/* Somebody asked for its end. */
static inline bool sl_node_is_stopped(const struct sl_node_workload *workload)
{
	return workload->stage >= SL_NODE_ENDING;
}
/* It is counted on to end: not for ever, if the kill did nothing. */
static inline bool sl_node_goes(const struct sl_node_workload *workload)
{
	return sl_node_is_stopped(workload) && workload->stage != SL_NODE_UNCOUNTED;
}

/* --- gpus.c --- */
/* GPUs where promise I1 is broken; that it broke, or holds again. */
uint32_t sl_node_degraded(const struct sl_node *node);
void sl_node_tell_degraded(struct sl_node_step *step);
/* Of moving so many bytes off the GPU, and onto it. */
sl_ns sl_node_cost_out(const struct sl_node *node, uint32_t gpu, uint64_t bytes);
sl_ns sl_node_cost_in(const struct sl_node *node, uint32_t gpu, uint64_t bytes);
/* The chain has this resolver. */
bool sl_node_has(const struct sl_node *node, enum sl_resolver resolver);
/* And before the second one, if it has that. */
bool sl_node_is_before(
	const struct sl_node *node, enum sl_resolver first, enum sl_resolver second);
/* Something can be moved to the host at all. */
bool sl_node_swaps(const struct sl_node *node);

/* --- clients.c --- */
/* NULL, and noted as STRAY, of one that is dead or was never there. */
struct sl_node_client *sl_node_living(struct sl_node_step *step, uint64_t id);
/* False, and noted as STRAY: there is no such GPU. */
bool sl_node_is_there(struct sl_node_step *step, uint32_t gpu, uint64_t bytes);
/* Its processes see other numbers on this GPU, if it has so many: one alone knows its own. */
void sl_node_tell_view(struct sl_node_step *step, const struct sl_node_workload *workload,
	uint32_t gpu, uint32_t if_living);
/* The GPU was lost: open grants there are void, dying bytes are gone. */
void sl_node_lose(struct sl_node_step *step, uint32_t gpu);
/* The reserve pays what it has room for; context.c. */
void sl_node_repay(struct sl_node_step *step, uint32_t gpu);
/* Something of it is on the host. */
bool sl_node_is_out(const struct sl_node_client *client);

/* --- demands.c --- */
void sl_node_grant(struct sl_node_step *step, struct sl_node_demand *demand);
void sl_node_deny(
	struct sl_node_step *step, struct sl_node_demand *demand, enum sl_reason reason);
void sl_node_drop_demand(struct sl_node *node, struct sl_node_demand *demand);
/* Waiting demands of the workload are denied. */
void sl_node_cancel_all(struct sl_node_step *step, struct sl_node_workload *workload);
void sl_node_void_grants(
	struct sl_node_step *step, struct sl_node_client *client, uint32_t gpu);
bool sl_node_has_open_grant(const struct sl_node_client *client);
/* For memory; NULL: none does. */
struct sl_node_demand *sl_node_first_waiting(const struct sl_node_client *client);
/* Memory of the GPU came back: creations that failed are tried again. */
void sl_node_released(struct sl_node *node, uint32_t gpu);
/* Within its request, as the last plan said; before one, beside what it uses. */
bool sl_node_is_entitled(const struct sl_node_demand *demand);

/* --- refusals.c --- */
typedef void (*sl_node_waiting_fn)(
	struct sl_node_step *step, struct sl_node_demand *demand);
/* Each that waits, as a client joined and asked; fn may end it. In a plan. */
void sl_node_each_waiting(struct sl_node_step *step, sl_node_waiting_fn fn);
/* With it, the workload would go beyond its limit. */
bool sl_node_exceeds_limit(const struct sl_node_demand *demand);
/* Above its request, beside what its workload uses. */
bool sl_node_is_burst(const struct sl_node_demand *demand);
/* What cannot be served however long it waits is denied: also during a recovery. */
void sl_node_refuse_demands(struct sl_node_step *step);
/* Demands to hold what exists already, and those for more that can never be held. */
void sl_node_answer_there(struct sl_node_step *step);
/* How much more of the GPU the workload may hold; there: of bytes that exist. */
uint64_t sl_node_holdable(const struct sl_node *node,
	const struct sl_node_workload *workload, uint32_t gpu, bool there);

/* --- slices.c --- */
/* Its slice is at least as long as it would be alone, with what it is granted without a plan. */
void sl_node_lengthen_slice(struct sl_node *node, const struct sl_node_demand *demand);
/* In its slice a grant makes that longer; outside it, one that others left for (waited) begins one,
 * and so does the first of its workload. */
void sl_node_grant_in_slice(struct sl_node_step *step, struct sl_node_demand *demand,
	bool waited, bool overdue);

/* --- orders.c --- */
void sl_node_evict(struct sl_node_step *step, struct sl_node_client *client, uint32_t gpu,
	uint64_t bytes, uint64_t other);
/* Nothing of it is on the host any more. */
void sl_node_is_back(struct sl_node_step *step, struct sl_node_client *client);
/* Since when it waits for anything: its return, or what it asks for; 0: for nothing. */
sl_ns sl_node_wanted_since(const struct sl_node_client *client);
/* Keeps room for all of it on each of its GPUs; bytes come on this one. */
void sl_node_restore(struct sl_node_step *step, struct sl_node_client *client,
	uint32_t gpu, uint64_t bytes);
/* What is worth an order of its own, beside others. */
uint64_t sl_node_least_piece(const struct sl_node *node, uint32_t gpu);
void sl_node_abort(struct sl_node_step *step, struct sl_node_client *client);
/* Refused once more: it waits twice as long as the last time, at most so long. since: of what was
 * refused, counted if it is the first in a row. */
void sl_node_back_off(struct sl_node_step *step, struct sl_node_back_off *off,
	sl_ns since, sl_ns first, sl_ns most, enum sl_reason cause);
/* A back-off that keeps it from leaving, or from coming. */
bool sl_node_must_stay(const struct sl_node_client *client, sl_ns now);
bool sl_node_must_wait(const struct sl_node_client *client, sl_ns now);
/* That the host has no memory for it is the last that was heard of it, not long ago. */
bool sl_node_is_hostless(const struct sl_node_client *client, sl_ns now);

/* --- trims.c --- */
/* Of resident chunks, in its file on the host. */
uint64_t sl_node_copies(const struct sl_node_client *client);
/* Before so many bytes of it leave. False: copies of others go first, and are waited for. */
SL_MUST_CHECK bool sl_node_trim_for(
	struct sl_node_step *step, const struct sl_node_client *client, uint64_t bytes);
/* It has less on the host: it may give what it could not. */
void sl_node_trim_anew(const struct sl_node_step *step, struct sl_node_client *client);

/* --- going.c --- */
struct sl_node_all_out { /* all of a workload that can be moved to the host */
	uint64_t bytes;
	uint64_t room_bytes; /* of the pool, beside what is lent */
};
struct sl_node_all_out sl_node_all_out(const struct sl_node *node,
	const struct sl_node_workload *workload, bool gives_up_request);
/* How far the GPU may be lent out. */
uint64_t sl_node_lend(const struct sl_node *node, uint32_t gpu);
/* What of it is still to leave, for a park. False: nothing. */
bool sl_node_parking_because(const struct sl_node *node,
	const struct sl_node_client *client, struct sl_node_because *because);
/* It had no work for long, and the host has no room for it to be warm. */
bool sl_node_warm_because(const struct sl_node *node,
	const struct sl_node_workload *workload, struct sl_node_because *because);

/* --- facts.c --- */
/* Since when it does nothing, if it does nothing. */
static inline sl_ns sl_node_quiet_since(const struct sl_node_client *client)
{
	return sl_max_u64(client->idle_since, client->active_at);
}
/* On a GPU, what cannot leave included. */
bool sl_node_has_memory(const struct sl_node_client *client);
/* For how long it has had no work, as far as it is known; 0: it has. */
sl_ns sl_node_idle(const struct sl_node_client *client, sl_ns now);
/* Since when it does not run, or is busy with one piece of work; 0: neither. */
sl_ns sl_node_stuck_since(const struct sl_node_client *client);
/* From when on it is untakeable, if nothing changes; SL_NS_NEVER: not. */
sl_ns sl_node_untakeable_at(
	const struct sl_node *node, const struct sl_node_client *client);
/* As of the last step. */
bool sl_node_is_untakeable(
	const struct sl_node *node, const struct sl_node_client *client);
/* It is there, runs, and can carry out an order. */
bool sl_node_answers(
	const struct sl_node *node, const struct sl_node_client *client, sl_ns now);
void sl_node_be_active(struct sl_node_step *step, struct sl_node_client *client);

/* --- stops.c --- */
/* For a demand or a return, and its end is awaited, or was to be by now. */
bool sl_node_is_told_to_end(const struct sl_node_client *client);
/* It is counted on that it ends. */
bool sl_node_ends(const struct sl_node_client *client, sl_ns now);
/* Stages of a stop that are due. */
void sl_node_time_stop(struct sl_node_step *step, struct sl_node_client *client);

/* --- strangers.c --- */
/* What is due of them; what CONFIG says may be something else now. */
void sl_node_time_strangers(struct sl_node_step *step);
/* The GPU is lost, and they have nothing on it. */
void sl_node_lose_strangers(struct sl_node *node, uint32_t gpu);

/* --- copy.c --- */
/* What the host may still take of it, by the bound of one workload; leaving: what was told to leave
 * counts as being there. */
uint64_t sl_node_part_left(const struct sl_node *node,
	const struct sl_node_workload *workload, bool leaving);

/* --- contexts.c --- */
struct sl_admit_gpu;
/* Fills in what the verdict about admission needs of the next context there. */
void sl_node_context_facts(const struct sl_node *node, uint32_t gpu, bool has_request,
	struct sl_admit_gpu *facts);
/* Those that wait, in order of arrival. */
void sl_node_contexts(struct sl_node_step *step);
/* Why it waits; reason NONE: it need not. */
struct sl_node_because sl_node_context_because(
	const struct sl_node *node, const struct sl_node_demand *demand);

/* --- free.c --- */
/* What the demand could have now. */
uint64_t sl_node_available(
	const struct sl_node *node, const struct sl_node_demand *demand);

/* --- because.c --- */
/* Off its GPUs in part, or being moved. */
bool sl_node_is_away(const struct sl_node_client *client);
struct sl_node_because sl_node_away_because(
	const struct sl_node *node, const struct sl_node_client *client);
struct sl_node_because sl_node_waits_because(
	const struct sl_node *node, const struct sl_node_demand *demand);
/* Bytes of a workload on a GPU: above its request; of that, of processes that cannot be made to
 * give it back, and that are never moved; that stay; that the host has no memory for. */
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
/* The other workload with most of that there; false: none has any. */
bool sl_node_name_most(const struct sl_node *node, struct sl_node_because *because,
	sl_node_bytes_fn bytes_of);

/* --- notes.c --- */
void sl_node_note_wait(struct sl_node_step *step, struct sl_node_demand *demand);
void sl_node_note_pool(struct sl_node_step *step);
void sl_node_note_long(struct sl_node_step *step, struct sl_node_workload *workload);

/* --- view.c --- */
/* GPUs that it has, or had, something on, or waits for. */
uint32_t sl_node_actual_mask(const struct sl_node_workload *workload);

/* --- plan.c --- */
void sl_node_plan(struct sl_node_step *step);

#endif
