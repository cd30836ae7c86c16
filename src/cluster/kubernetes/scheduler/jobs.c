/*
 * jobs - makes the machine's jobs from pods
 *
 * A job is made anew whenever its pods differ from what the machine knows, which is rare. Changes
 * by the machine's own actions do not count: events report them, and pod->believed records them.
 *
 * Tasks of equal need form a part of the job. A placed task keeps the need that it was placed with,
 * so it is found again after sizes of nodes change.
 */
#include "cluster/kubernetes/scheduler/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define PARTS 8
/* Assumed cost of parking: both ways over a link of 10 GiB/s. */
#define SWAP_MIB_PER_S 5120

struct part {
	struct sl_need need;
	bool stands;
	uint32_t count, first, filled;
};

struct sl_ks_job *sl_ks_find_job(struct sl_ks *ks, uint64_t id)
{
	struct sl_index_node *found = sl_index_find(&ks->jobs_by_id, id);

	return found ? SL_CONTAINER_OF(found, struct sl_ks_job, index) : NULL;
}

void sl_ks_job_changed(struct sl_ks *ks, struct sl_ks_job *job)
{
	if (!sl_list_is_linked(&job->changed))
		sl_list_push_tail(&ks->changed_jobs, &job->changed);
	sl_ks_awake(ks);
}

/* --- Wanted state. ------------------------------------------------------------------------ */

/* It resumes when its GPUs are free, so not before they are known. */
static bool is_parked(const struct sl_ks_pod *pod)
{
	return pod->is_parked && pod->place.gpu_mask;
}

static enum sl_ks_believed wanted(const struct sl_ks_pod *pod)
{
	char why[256];

	if (pod->place.node && !pod->place.node->in_machine)
		return SL_KS_NOTHING;
	if (pod->place.node)
		return is_parked(pod) ? SL_KS_PARKED : SL_KS_PLACED;
	return sl_ks_pod_is_ready(pod, why, sizeof(why)) ? SL_KS_QUEUED : SL_KS_NOTHING;
}

static bool is_at(const struct sl_ks_place *a, const struct sl_ks_place *b)
{
	return a->node == b->node && a->gpu_mask == b->gpu_mask && a->milli == b->milli;
}

/* Does the machine know the pod's present state? */
static bool pod_is_as_told(const struct sl_ks *ks, const struct sl_ks_pod *pod)
{
	enum sl_ks_believed should = wanted(pod);
	struct sl_need need;

	if (should != pod->believed)
		return false;
	if (should >= SL_KS_PLACED)
		return is_at(&pod->place, &pod->believed_at);
	if (should == SL_KS_NOTHING)
		return true;
	need = sl_ks_pod_need(ks, pod);
	return sl_need_is_same(&need, &pod->told_need);
}

static uint32_t flags_of(const struct sl_ks_pod *pod)
{
	return SL_JOB_PREEMPTIBLE |
	       (pod->facts.terminates ? 0 : SL_JOB_PARKS | SL_JOB_KEEPS_HOST);
}

static uint32_t least_of(struct sl_ks *ks, const struct sl_ks_job *job)
{
	uint32_t least = 0;

	if (!job->is_gang)
		return 1;
	sl_list_foreach (link, &job->pods) {
		const struct sl_ks_pod *pod =
			SL_LIST_ENTRY(link, struct sl_ks_pod, in_job);
		uint32_t says = pod->facts.group[0] ? sl_ks_group_least(ks, &pod->facts)
						    : pod->facts.gang_min;

		least = says > least ? says : least;
	}
	return least;
}

static struct sl_ks_pod *first_of(const struct sl_ks_job *job)
{
	return SL_LIST_ENTRY(job->pods.next, struct sl_ks_pod, in_job);
}

static bool is_as_told(struct sl_ks *ks, const struct sl_ks_job *job)
{
	bool ignored;

	sl_list_foreach (link, &job->pods) {
		if (!pod_is_as_told(ks, SL_LIST_ENTRY(link, struct sl_ks_pod, in_job)))
			return false;
	}
	return !job->index.id ||
	       (job->project == sl_ks_project_of(ks, &first_of(job)->facts, &ignored)
					->id &&
		       job->priority == first_of(job)->facts.priority &&
		       job->flags == flags_of(first_of(job)) &&
		       job->least == least_of(ks, job));
}

/* --- Reports to the machine. -------------------------------------------------------------- */

static void take_out(struct sl_ks *ks, struct sl_ks_job *job)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_REMOVE};

	sl_list_foreach (link, &job->pods)
		sl_ks_believe(SL_LIST_ENTRY(link, struct sl_ks_pod, in_job),
			SL_KS_NOTHING, NULL);
	if (!job->index.id)
		return;
	event.job_remove.job = job->index.id;
	sl_ks_step(ks, &event);
	sl_index_remove(&ks->jobs_by_id, &job->index);
	job->index.id = 0;
	job->tasks = 0;
}

static struct sl_need need_of(struct sl_ks *ks, const struct sl_ks_pod *pod)
{
	struct sl_need need;
	struct sl_ks_place place = pod->place;

	if (!place.node)
		return sl_ks_pod_need(ks, pod);
	need = (struct sl_need){.cpu_milli = pod->facts.cpu_milli,
		.memory_mib = pod->facts.memory_mib,
		.gpus = (uint16_t)__builtin_popcount(place.gpu_mask),
		.gpu_milli = place.milli};
	if (!is_parked(pod)) {
		ks->is_clamped |= sl_ks_room_at(&place) < place.milli;
		need.gpu_milli = sl_ks_room_at(&place);
	}
	/* More is allocated than exists. */
	if (!need.gpu_milli)
		need.gpus = 0;
	need.memory_mib += !need.gpus && !need.cpu_milli && !need.memory_mib;
	return need;
}

/* The parts, placed ones first. 0: too many. */
static uint32_t sort_parts(struct sl_ks *ks, const struct sl_ks_job *job,
	bool standing_only, struct part part[PARTS])
{
	uint32_t parts = 0;

	for (int stands = 1; stands >= !!standing_only; stands--) {
		sl_list_foreach (link, &job->pods) {
			const struct sl_ks_pod *pod =
				SL_LIST_ENTRY(link, struct sl_ks_pod, in_job);
			struct sl_need need;
			uint32_t i = 0;

			if (wanted(pod) == SL_KS_NOTHING ||
				(pod->place.node != NULL) != stands)
				continue;
			need = need_of(ks, pod);
			while (i < parts &&
				(part[i].stands != stands ||
					!sl_need_is_same(&part[i].need, &need)))
				i++;
			if (i == PARTS)
				return 0;
			if (i == parts)
				part[parts++] =
					(struct part){.need = need, .stands = stands};
			part[i].count++;
		}
	}
	return parts;
}

static void number_tasks(struct sl_ks *ks, struct sl_ks_job *job, bool standing_only,
	struct part part[PARTS], uint32_t parts)
{
	for (uint32_t p = 0, first = 0; p < parts; first += part[p++].count)
		part[p].first = first;
	sl_list_foreach (link, &job->pods) {
		struct sl_ks_pod *pod = SL_LIST_ENTRY(link, struct sl_ks_pod, in_job);
		struct sl_need need;
		uint32_t i = 0;

		if (wanted(pod) == SL_KS_NOTHING || (standing_only && !pod->place.node))
			continue;
		pod->told_need = need = need_of(ks, pod);
		while (part[i].stands != (pod->place.node != NULL) ||
			!sl_need_is_same(&part[i].need, &need))
			i++;
		pod->task = part[i].first + part[i].filled++;
		job->task[pod->task] = pod;
	}
}

/* From the memory that one pod has, or may have. */
static sl_ns swap_cost(const struct sl_ks *ks, const struct sl_ks_pod *pod)
{
	const struct sl_facts_claim *claim = pod->claim ? &pod->claim->facts : NULL;
	uint64_t mib = claim ? claim->memory_mib : 0;

	if (claim && !mib)
		mib = pod->place.node   ? pod->place.node->told.node_put.gpu_mib
		      : ks->limit_count ? ks->limits[0]
					: 0;
	return mib * SL_S / SWAP_MIB_PER_S;
}

static void add_parts(
	struct sl_ks *ks, struct sl_ks_job *job, const struct part *part, uint32_t parts)
{
	uint32_t least = job->is_gang ? job->least : UINT32_MAX;
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};

	event.job_add.job = job->index.id;
	event.job_add.project = job->project;
	event.job_add.priority = job->priority;
	event.job_add.flags = job->flags;
	event.job_add.stale_grace = SL_NS_NEVER;
	event.job_add.swap_cost = swap_cost(ks, first_of(job));
	for (uint32_t p = 0; p < parts && !job->is_refused; p++) {
		uint32_t some = (uint32_t)sl_min_u64(least, part[p].count);

		least -= some;
		if (p == 0) {
			event.job_add.tasks = part[p].count;
			event.job_add.least = some;
			event.job_add.need = part[p].need;
		} else {
			event = (struct sl_cluster_event){
				.type = SL_CLUSTER_EVENT_TASKS_ADD};
			event.tasks_add.job = job->index.id;
			event.tasks_add.tasks = part[p].count;
			event.tasks_add.least = some ? some : SL_CLUSTER_LEAST_NONE;
			event.tasks_add.need = part[p].need;
		}
		sl_ks_step(ks, &event);
	}
}

/* The task is placed: found so, or as reported before. */
static void place_task(struct sl_ks *ks, struct sl_ks_job *job, struct sl_ks_pod *pod)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

	if (is_parked(pod)) {
		event.type = SL_CLUSTER_EVENT_TASK_PARKED;
		event.task_parked.job = job->index.id;
		event.task_parked.task = pod->task;
		event.task_parked.node = pod->place.node->id;
		event.task_parked.gpu_mask = pod->place.gpu_mask;
		sl_ks_step(ks, &event);
		sl_ks_believe(pod, SL_KS_PARKED, &pod->place);
		return;
	}
	event.task_runs.job = job->index.id;
	event.task_runs.task = pod->task;
	event.task_runs.node = pod->place.node->id;
	event.task_runs.gpu_mask = need_of(ks, pod).gpus ? pod->place.gpu_mask : 0;
	event.task_runs.spared_for = sl_ks_spared(pod);
	sl_ks_step(ks, &event);
	sl_ks_believe(pod, SL_KS_PLACED, &pod->place);
}

static void tell_it_stops(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_STOPS};
	sl_ns now = sl_clock_now();

	if (pod->believed != SL_KS_PLACED || pod->told_stops ||
		!(pod->facts.is_leaving || (pod->wants_parked && !pod->is_parked) ||
			pod->wants_end))
		return;
	pod->told_stops = true;
	pod->stops_since = pod->stops_since ? pod->stops_since : now;
	event.task_stops.job = pod->job->index.id;
	event.task_stops.task = pod->task;
	event.task_stops.ago = now - pod->stops_since;
	sl_ks_step(ks, &event);
}

/* False: the machine refused it, or it need not be in it. */
static bool put_in(struct sl_ks *ks, struct sl_ks_job *job, bool standing_only)
{
	struct part part[PARTS];
	uint32_t parts = sort_parts(ks, job, standing_only, part), tasks = 0;
	const struct sl_ks_pod *first = first_of(job);
	bool ignored;

	for (uint32_t p = 0; p < parts; p++)
		tasks += part[p].count;
	free(job->task);
	job->task = calloc(tasks + 1, sizeof(struct sl_ks_pod *));
	if (!tasks || !job->task)
		return false;
	job->project = sl_ks_project_of(ks, &first->facts, &ignored)->id;
	job->priority = first->facts.priority;
	job->flags = flags_of(first);
	job->tasks = tasks;
	job->is_refused = false;
	job->index.id = sl_ks_new_id(ks);
	sl_index_add(&ks->jobs_by_id, &job->index);
	number_tasks(ks, job, standing_only, part, parts);
	add_parts(ks, job, part, parts);
	if (job->is_refused) {
		sl_index_remove(&ks->jobs_by_id, &job->index);
		job->index.id = 0;
		job->tasks = 0;
		return false;
	}
	for (uint32_t i = 0; i < tasks; i++) {
		if (job->task[i]->place.node)
			place_task(ks, job, job->task[i]);
		else
			sl_ks_believe(job->task[i], SL_KS_QUEUED, NULL);
	}
	return true;
}

/* Counts its members and its placed ones. */
static void look_at(const struct sl_ks_job *job, uint32_t *members, uint32_t *standing)
{
	*members = *standing = 0;
	sl_list_foreach (link, &job->pods) {
		const struct sl_ks_pod *pod =
			SL_LIST_ENTRY(link, struct sl_ks_pod, in_job);
		enum sl_ks_believed should = wanted(pod);

		*members += should != SL_KS_NOTHING;
		*standing += should >= SL_KS_PLACED;
	}
}

static void make(struct sl_ks *ks, struct sl_ks_job *job)
{
	struct part part[PARTS];
	uint32_t members, standing;

	job->why[0] = '\0';
	job->is_refused = false;
	job->least = least_of(ks, job);
	look_at(job, &members, &standing);
	if (!members)
		return;
	if (!job->least && first_of(job)->facts.group[0])
		(void)snprintf(job->why, sizeof(job->why), "there is no PodGroup %.100s",
			first_of(job)->facts.group);
	else if (!job->least)
		(void)snprintf(job->why, sizeof(job->why),
			"its gang says nowhere how many of it must run together; "
			"add " SL_FACTS_LABEL_GANG_MIN);
	else if (job->is_gang && members < job->least && !standing)
		(void)snprintf(job->why, sizeof(job->why),
			"%u of its gang must run together, and there are %u so far",
			job->least, members);
	else if (!sort_parts(ks, job, false, part))
		(void)snprintf(job->why, sizeof(job->why),
			"the pods of its gang ask for more than %d different amounts; "
			"make them "
			"more alike",
			PARTS);
	if (!job->why[0] && put_in(ks, job, false))
		return;
	/* Placed pods are always accounted for. */
	if (standing) {
		bool is_refused = job->is_refused;

		(void)put_in(ks, job, true);
		job->is_refused = is_refused;
	}
}

static void drop_gone(struct sl_ks *ks, struct sl_ks_job *job)
{
	sl_list_foreach_safe (link, &job->pods) {
		struct sl_ks_pod *pod = SL_LIST_ENTRY(link, struct sl_ks_pod, in_job);

		if (!pod->is_there && pod->step == SL_KS_IDLE && !pod->claim &&
			pod->believed == SL_KS_NOTHING)
			sl_ks_drop_pod(ks, pod);
	}
	if (sl_list_is_empty(&job->pods) && !job->index.id)
		sl_ks_drop_job(ks, job);
}

static void settle(struct sl_ks *ks, struct sl_ks_job *job)
{
	bool again = ks->retry_refused && (job->is_refused || job->why[0]);

	/* Nodes and devices may be known now. */
	sl_list_foreach (link, &job->pods) {
		struct sl_ks_pod *pod = SL_LIST_ENTRY(link, struct sl_ks_pod, in_job);

		if (pod->believed == SL_KS_NOTHING || !pod->place.gpu_mask)
			sl_ks_pod_place(ks, pod);
	}
	if (again || !is_as_told(ks, job)) {
		take_out(ks, job);
		if (!sl_list_is_empty(&job->pods))
			make(ks, job);
	}
	sl_list_foreach (link, &job->pods) {
		struct sl_ks_pod *pod = SL_LIST_ENTRY(link, struct sl_ks_pod, in_job);

		tell_it_stops(ks, pod);
		sl_ks_pod_finish(ks, pod);
	}
	drop_gone(ks, job);
}

void sl_ks_settle_jobs(struct sl_ks *ks)
{
	if (ks->retry_refused) {
		sl_list_foreach (link, &ks->jobs) {
			struct sl_ks_job *job =
				SL_LIST_ENTRY(link, struct sl_ks_job, link);

			if (!sl_list_is_linked(&job->changed))
				sl_list_push_tail(&ks->changed_jobs, &job->changed);
		}
	}
	while (!sl_list_is_empty(&ks->changed_jobs)) {
		struct sl_link *link = ks->changed_jobs.next;

		sl_list_unlink(link);
		settle(ks, SL_LIST_ENTRY(link, struct sl_ks_job, changed));
	}
	ks->retry_refused = false;
}

/* --- All jobs. ---------------------------------------------------------------------------- */

static int by_age(const void *a, const void *b)
{
	const struct sl_ks_job *left = *(struct sl_ks_job *const *)a;
	const struct sl_ks_job *right = *(struct sl_ks_job *const *)b;
	const struct sl_ks_pod *one = first_of(left), *two = first_of(right);
	int r = (one->place.node == NULL) - (two->place.node == NULL);

	if (!r)
		r = strcmp(one->facts.created, two->facts.created);
	return r ? r : strcmp(left->named.key, right->named.key);
}

/* Placed ones first, then by age: the API server's order, by name, has no meaning. */
void sl_ks_add_jobs(struct sl_ks *ks)
{
	size_t count = 0;
	sl_cleanup(sl_freep) struct sl_ks_job **all = NULL;

	sl_list_foreach (link, &ks->jobs)
		count++;
	all = calloc(count + 1, sizeof(struct sl_ks_job *));
	count = 0;
	sl_list_foreach (link, &ks->jobs) {
		struct sl_ks_job *job = SL_LIST_ENTRY(link, struct sl_ks_job, link);

		job->index.id = 0;
		job->tasks = 0;
		sl_list_unlink(&job->changed);
		sl_list_foreach (pod, &job->pods) {
			struct sl_ks_pod *one =
				SL_LIST_ENTRY(pod, struct sl_ks_pod, in_job);

			one->believed = SL_KS_NOTHING;
			one->believed_at = (struct sl_ks_place){0};
			sl_ks_pod_place(ks, one);
		}
		if (all && !sl_list_is_empty(&job->pods))
			all[count++] = job;
	}
	if (all)
		qsort(all, count, sizeof(all[0]), by_age);
	for (size_t i = 0; i < count; i++) {
		sl_list_unlink(&all[i]->changed);
		settle(ks, all[i]);
	}
}
