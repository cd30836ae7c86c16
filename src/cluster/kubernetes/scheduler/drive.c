/*
 * drive - the machine, its cycles and its actions
 *
 * Several events share a cycle: the cycle follows some milliseconds after the first event and
 * includes those that come meanwhile. Actions are carried out after the step that emitted them.
 */
#include "cluster/kubernetes/scheduler/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* From an event to its cycle. */
#define CYCLE_SOON (5 * SL_MS)
/* The pause after a cycle is this many times the cycle's length, so cycles use only a part of the
 * time. */
#define CYCLE_PART 2
/* No consolidation: moving a pod would end it. */
#define CYCLE (SL_CYCLE_ALLOCATE | SL_CYCLE_RECLAIM | SL_CYCLE_PREEMPT)

uint64_t sl_ks_new_id(struct sl_ks *ks)
{
	return ++ks->next_id;
}

static void arm(struct sl_ks *ks)
{
	sl_ns now = sl_clock_now(), at = sl_min_u64(ks->cycle_at, ks->wake_at);

	if (at == SL_NS_NEVER)
		return;
	(void)sd_event_source_set_time_relative(ks->timer, sl_sub_sat(at, now) / SL_US);
	(void)sd_event_source_set_enabled(ks->timer, SD_EVENT_ONESHOT);
}

void sl_ks_awake(struct sl_ks *ks)
{
	if (ks->cycle_at != SL_NS_NEVER)
		return;
	ks->cycle_at = sl_clock_now() + CYCLE_SOON;
	arm(ks);
}

/* --- Steps. ------------------------------------------------------------------------------- */

static void queue(struct sl_ks *ks, const struct sl_cluster_action *action)
{
	if (ks->todo_count == ks->todo_room) {
		size_t room = 2 * ks->todo_room + 64;
		struct sl_cluster_action *grown =
			realloc(ks->todo, room * sizeof(*grown));

		/* Without memory no decision is possible. */
		if (!grown)
			abort();
		ks->todo = grown;
		ks->todo_room = room;
	}
	ks->todo[ks->todo_count++] = *action;
}

static void refuse_job(struct sl_ks *ks, const struct sl_cluster_action *action)
{
	struct sl_ks_job *job = sl_ks_find_job(ks, action->refuse_job.job);

	if (!job)
		return;
	job->is_refused = true;
	job->because = (struct sl_pending_because){
		.reason = (enum sl_pending_reason)action->refuse_job.reason,
		.project = action->refuse_job.project,
		.resource = (enum sl_resource)action->refuse_job.resource,
		.wanted = action->refuse_job.wanted,
		.available = action->refuse_job.available};
}

static void on_action(void *context, const struct sl_cluster_action *action)
{
	struct sl_ks *ks = context;

	switch (action->type) {
	case SL_CLUSTER_ACTION_BIND:
	case SL_CLUSTER_ACTION_LATE:
	case SL_CLUSTER_ACTION_STOP: queue(ks, action); break;
	case SL_CLUSTER_ACTION_REFUSE_JOB: refuse_job(ks, action); break;
	case SL_CLUSTER_ACTION_REFUSE_PROJECT:
		sl_ks_refuse_project(ks, action->refuse_project.project,
			action->refuse_project.outcome);
		break;
	case SL_CLUSTER_ACTION_WAKE_AT: ks->wake_at = action->wake_at.at; break;
	case SL_CLUSTER_ACTION_PIPELINE:
	default: break;
	}
}

void sl_ks_step(struct sl_ks *ks, const struct sl_cluster_event *event)
{
	if (ks->cluster)
		sl_cluster_step(ks->cluster, sl_clock_now(), event, on_action, ks);
}

/* --- Actions. ----------------------------------------------------------------------------- */

static struct sl_ks_node *node_by_id(struct sl_ks *ks, uint64_t id)
{
	sl_list_foreach (link, &ks->nodes) {
		struct sl_ks_node *node = SL_LIST_ENTRY(link, struct sl_ks_node, link);

		if (node->id == id)
			return node;
	}
	return NULL;
}

static struct sl_ks_pod *pod_of(struct sl_ks *ks, uint64_t id, uint32_t task)
{
	struct sl_ks_job *job = sl_ks_find_job(ks, id);

	return job && task < job->tasks ? job->task[task] : NULL;
}

static void refuse_bind(struct sl_ks *ks, const struct sl_cluster_action *action)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_BIND_REFUSED};

	event.bind_refused.job = action->bind.job;
	event.bind_refused.task = action->bind.task;
	sl_ks_step(ks, &event);
}

static void bind(struct sl_ks *ks, const struct sl_cluster_action *action)
{
	struct sl_ks_pod *pod = pod_of(ks, action->bind.job, action->bind.task);
	struct sl_ks_node *node = node_by_id(ks, action->bind.node);

	if (!pod || !node)
		return;
	if (pod->believed == SL_KS_PARKED) {
		sl_ks_believe(pod, SL_KS_PLACED, &pod->place);
		sl_ks_resume(ks, pod);
		return;
	}
	/* The machine does not count pods. */
	if (node->facts.pods && node->pods >= node->facts.pods) {
		(void)snprintf(pod->trouble, sizeof(pod->trouble),
			"node %.100s has as many pods as it may have", node->named.key);
		refuse_bind(ks, action);
		return;
	}
	pod->place =
		(struct sl_ks_place){node, action->bind.gpu_mask, action->bind.milli};
	sl_ks_believe(pod, SL_KS_PLACED, &pod->place);
	sl_ks_write(ks, pod);
	/* The next placement on this node counts it. */
	sl_ks_pod_place(ks, pod);
}

static void carry_out(struct sl_ks *ks)
{
	for (size_t i = 0; i < ks->todo_count; i++) {
		const struct sl_cluster_action action = ks->todo[i];
		struct sl_ks_pod *pod;

		if (action.type == SL_CLUSTER_ACTION_BIND) {
			bind(ks, &action);
			continue;
		}
		/* All actions on a task begin with these two fields. */
		pod = pod_of(ks, action.stop.job, action.stop.task);
		if (pod && action.type == SL_CLUSTER_ACTION_LATE)
			sl_ks_late(ks, pod);
		else if (pod)
			sl_ks_stop(ks, pod, action.stop.how,
				action.stop.other ? sl_ks_find_job(ks, action.stop.other)
						  : NULL);
	}
	ks->todo_count = 0;
}

/* --- Cycles. ------------------------------------------------------------------------------ */

static void build(struct sl_ks *ks)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CONFIG};

	sl_info("the machine is rebuilt from the API server's objects");
	ks->rebuild = false;
	ks->is_clamped = false;
	ks->arena = sl_arena_free(ks->arena);
	ks->arena = sl_arena_new();
	sl_index_init(&ks->jobs_by_id, ks->arena);
	ks->cluster = sl_cluster_new(ks->arena, SL_KS_NODES_MOST, SL_KS_PROJECTS_MOST);
	ks->wake_at = SL_NS_NEVER;
	event.config.placement = ks->options.placement;
	event.config.stop_within = ks->options.park_within;
	sl_ks_step(ks, &event);
	sl_ks_sort_nodes(ks);
	sl_ks_add_projects(ks);
	sl_ks_add_nodes(ks);
	sl_ks_add_jobs(ks);
	sl_ks_add_holders(ks);
	ks->nodes_changed = false;
	/* Taking the machine apart has set this again. */
	ks->rebuild = false;
}

static void settle(struct sl_ks *ks)
{
	if (!ks->cluster || ks->rebuild)
		build(ks);
	sl_ks_settle_nodes(ks);
	sl_ks_settle_jobs(ks);
	sl_ks_settle_claims(ks);
	if (ks->rebuild)
		build(ks);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	const struct sl_cluster_event event = {
		.type = SL_CLUSTER_EVENT_CYCLE, .cycle = {.which = CYCLE}};
	struct sl_ks *ks = context;
	sl_ns began = sl_clock_now(), took;
	bool is_due = began >= ks->wake_at;

	ks->cycle_at = SL_NS_NEVER;
	if (ks->synced != (1u << SL_KS_WATCHES) - 1 || !sl_ks_lease_left(ks->lease))
		return 0;
	if (is_due)
		ks->wake_at = SL_NS_NEVER;
	settle(ks);
	sl_ks_step(ks, &event);
	carry_out(ks);
	took = sl_clock_now() - began;
	if (took > 50 * SL_MS)
		sl_info("a cycle took %" PRIu64 " ms", (uint64_t)(took / SL_MS));
	/* Includes later events, and their consequences. */
	if (ks->cycle_at != SL_NS_NEVER)
		ks->cycle_at =
			sl_max_u64(ks->cycle_at, sl_clock_now() + CYCLE_PART * took);
	arm(ks);
	return 0;
}

int sl_ks_drive_open(struct sl_ks *ks)
{
	int r = sd_event_add_time_relative(
		ks->loop, &ks->timer, CLOCK_MONOTONIC, 0, 1000, on_timer, ks);

	ks->cycle_at = ks->wake_at = SL_NS_NEVER;
	if (r == 0)
		r = sd_event_source_set_enabled(ks->timer, SD_EVENT_OFF);
	return r;
}
