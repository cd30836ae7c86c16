/*
 * jobs - jobs: in, what each wants next, out
 *
 * What a job wants next follows from its tasks alone: what its parts lack of their `least`, all at
 * once; if they lack nothing, one further task. sl_cl_job_settle finds that out after every change.
 * It puts the job into the group of those that want the same. After a failure it puts the job aside
 * until it may be retried.
 */
#include "policy/cluster/internal.h"

#include <string.h>

#include "policy/mutant.h"

/* Tasks of one part; far more than any launcher starts together. */
#define TASKS_MOST (1u << 20)

struct sl_cl_job *sl_cl_find_job(const struct sl_cluster *cl, uint64_t id)
{
	struct sl_index_node *found = sl_index_find(&cl->jobs_by_id, id);

	return found ? SL_CONTAINER_OF(found, struct sl_cl_job, index) : NULL;
}

struct sl_cl_task *sl_cl_find_task(
	const struct sl_cluster *cl, uint64_t id, uint32_t task)
{
	struct sl_cl_job *job = sl_cl_find_job(cl, id);

	for (uint32_t p = 0; job && p < job->parts; p++) {
		struct sl_cl_part *part = job->part[p];

		if (task >= part->first && task - part->first < part->tasks)
			return &part->task[task - part->first];
	}
	return NULL;
}

/* --- What a task may use, and how much that is. --- */

struct sl_need sl_cl_effective(
	const struct sl_cluster *cl, uint32_t project, const struct sl_need *asked)
{
	const uint64_t all = (1ull << SL_CL_POOLS) - 1;
	struct sl_need need = *asked;
	uint64_t pools = asked->pools ? asked->pools & all : all;
	bool no_swap = false;

	for (uint32_t i = project; i != SL_PROJECT_NONE; i = cl->tree.all[i].parent) {
		const struct sl_project_rules *rules = &cl->tree.all[i].rules;

		if (rules->pools)
			pools &= rules->pools;
		no_swap |= rules->no_swap;
	}
	if (!pools)
		need.pools = 1ull << SL_CL_POOLS;
	else if (no_swap)
		need.pools = pools;
	else
		need.pools = pools == all ? 0 : pools | pools << 32;
	return need;
}

static int64_t compute_of(const struct sl_need *need)
{
	return SL_MUTANT(
		CLUSTER_COMPUTE_FREE, (int64_t)need->gpus * need->compute_milli, 0);
}

struct sl_quantity sl_cl_quantity(const struct sl_need *need, struct sl_place place)
{
	return (struct sl_quantity){
		{[SL_RES_GPU] = (int64_t)__builtin_popcount(place.gpu_mask) * place.milli,
			[SL_RES_CPU] = need->cpu_milli,
			[SL_RES_MEMORY] = need->memory_mib,
			[SL_RES_COMPUTE] = compute_of(need)}};
}

/* Before its node is known: GPU memory counts by the smallest GPUs. */
struct sl_quantity sl_cl_guess(const struct sl_cluster *cl, const struct sl_need *need)
{
	uint64_t milli = need->gpu_milli;

	if (need->gpus && need->gpu_mib && cl->least_gpu_mib) {
		uint64_t by_mib =
			((uint64_t)SL_FIT_WHOLE * need->gpu_mib + cl->least_gpu_mib - 1) /
			cl->least_gpu_mib;

		milli = sl_min_u64(sl_max_u64(milli, by_mib), SL_FIT_WHOLE);
	}
	return (struct sl_quantity){{[SL_RES_GPU] = (int64_t)(need->gpus * milli),
		[SL_RES_CPU] = need->cpu_milli,
		[SL_RES_MEMORY] = need->memory_mib,
		[SL_RES_COMPUTE] = compute_of(need)}};
}

static struct sl_quantity times(const struct sl_quantity *each, int64_t count)
{
	struct sl_quantity sum;

	for (int r = 0; r < SL_RESOURCES; r++)
		sum.of[r] = each->of[r] * count;
	return sum;
}

/* --- What a job wants. --- */

struct sl_cl_task *sl_cl_next_pending(struct sl_cl_part *part, uint32_t from)
{
	if (from < part->pending_from)
		from = part->pending_from;
	for (uint32_t i = from; i < part->tasks; i++) {
		if (part->task[i].state == SL_TASK_PENDING) {
			if (from == part->pending_from)
				part->pending_from = i;
			return &part->task[i];
		}
	}
	return NULL;
}

/* What the part lacks of its least. */
static uint32_t lacks(const struct sl_cl_part *part)
{
	uint32_t has = sl_cl_placed(part) + part->done;

	return has < part->least ? part->least - has : 0;
}

static uint32_t wants_gang(const struct sl_cl_job *job, struct sl_cl_want *want)
{
	uint32_t wants = 0;

	for (uint32_t p = 0; p < job->parts; p++) {
		uint32_t short_of = lacks(job->part[p]);

		if (!short_of)
			continue;
		if (job->part[p]->in[SL_TASK_PENDING] < short_of)
			return 0;
		want[wants++] = (struct sl_cl_want){job->part[p]->class, p,
			SL_MUTANT(CLUSTER_GANG_ONE_BY_ONE, short_of, 1)};
	}
	return wants;
}

/* The part with the fewest tasks beyond its least. */
static uint32_t wants_further(
	const struct sl_cl_job *job, struct sl_cl_want *want, uint32_t *extra)
{
	uint64_t best = UINT64_MAX;
	uint32_t further = 0;

	for (uint32_t p = 0; p < job->parts; p++) {
		const struct sl_cl_part *part = job->part[p];
		uint64_t has = sl_cl_placed(part) + part->done, ratio;

		/* First it gets what it was promised. */
		if (lacks(part) || part->in[SL_TASK_PIPELINED] || part->coming)
			return 0;
		further += (uint32_t)(has - sl_min_u64(has, part->least));
		ratio = has * 1000 / (part->least ? part->least : 1);
		if (part->in[SL_TASK_PENDING] && ratio < best) {
			best = ratio;
			want[0] = (struct sl_cl_want){part->class, p, 1};
		}
	}
	*extra = 1 + further;
	return best != UINT64_MAX;
}

uint32_t sl_cl_job_wants(
	const struct sl_cl_job *job, struct sl_cl_want *want, uint32_t *extra)
{
	uint32_t wants = wants_gang(job, want);

	*extra = 0;
	return wants ? wants : wants_further(job, want, extra);
}

/* --- Settling. --- */

static void keep_in(struct sl_link *list, struct sl_link *link, bool in)
{
	if (in && !sl_list_is_linked(link))
		sl_list_push_tail(list, link);
	else if (!in)
		sl_list_unlink(link);
}

/* The running jobs of this project and priority; a project's ranks are a list, lowest first. */
static struct sl_cl_rank *rank_of(
	struct sl_cluster *cl, uint32_t project, int32_t priority)
{
	struct sl_cl_rank **at = &cl->ranks[project], *rank;

	while (*at && (*at)->priority < priority)
		at = &(*at)->next;
	if (*at && (*at)->priority == priority)
		return *at;
	rank = sl_arena_take(cl->arena, sizeof(*rank));
	rank->priority = priority;
	rank->next = *at;
	sl_list_init(&rank->jobs);
	*at = rank;
	return rank;
}

static void settle_running(struct sl_cluster *cl, struct sl_cl_job *job)
{
	uint32_t running = 0, started = 0;
	bool below = false;

	for (uint32_t p = 0; p < job->parts; p++) {
		running += sl_cl_running(job->part[p]);
		started += job->part[p]->in[SL_TASK_RUNNING];
		below |= lacks(job->part[p]) > 0;
	}
	below = below && running;
	if (below && !sl_list_is_linked(&job->stale))
		job->stale_since = cl->now;
	keep_in(&cl->stale, &job->stale, below);
	if (!started)
		job->started = 0;
	else if (!job->started)
		job->started = cl->now ? cl->now : 1;
	/* Among the jobs that can be taken: at the end of its rank, as the youngest. */
	if (!running || !sl_cl_preemptible(job))
		sl_list_unlink(&job->running);
	else if (!sl_list_is_linked(&job->running))
		sl_list_push_tail(
			&rank_of(cl, job->project, job->priority)->jobs, &job->running);
}

static bool has_promises(const struct sl_cl_job *job)
{
	for (uint32_t p = 0; p < job->parts; p++) {
		if (job->part[p]->in[SL_TASK_PIPELINED] || job->part[p]->coming)
			return true;
	}
	return false;
}

/* It has parked tasks that may be given up some day. */
static bool may_give_up(const struct sl_cl_job *job)
{
	if (!(job->flags & SL_JOB_GIVES_UP) || !job->resume_wait)
		return false;
	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->part[p]->tasks; i++) {
			if (job->part[p]->task[i].parked)
				return true;
		}
	}
	return false;
}

/* Is it true only for a time, and renewed by time? */
static bool is_timed(enum sl_pending_reason reason)
{
	return reason == SL_PENDING_BACK_OFF || reason == SL_PENDING_GIVEN_UP;
}

static struct sl_pending_because held_because(
	const struct sl_cluster *cl, const struct sl_cl_job *job)
{
	struct sl_pending_because because = {.reason = SL_PENDING_GIVEN_UP};

	if (job->giving_up)
		return because;
	because.reason = SL_PENDING_BACK_OFF;
	because.wanted = (int64_t)sl_sub_sat(job->held_until, cl->now);
	return because;
}

void sl_cl_job_settle(struct sl_cluster *cl, struct sl_cl_job *job)
{
	struct sl_cl_want want[SL_CL_PARTS];
	uint32_t extra, wants = sl_cl_job_wants(job, want, &extra);
	bool backs_off = SL_MUTANT(CLUSTER_NO_BACK_OFF, job->held_until > cl->now, false);
	bool held = wants && (backs_off || job->giving_up);

	settle_running(cl, job);
	keep_in(&cl->promised, &job->promised, has_promises(job));
	keep_in(&cl->held, &job->held, held || (wants && job->paused_until > cl->now));
	keep_in(&cl->parked, &job->parked, may_give_up(job));
	/* The last obstacle holds until the next cycle says otherwise. */
	if (job->group && job->group->because.reason)
		job->because = job->group->because;
	sl_cl_group_leave(cl, job);
	if (!wants)
		job->waits_since = 0;
	else if (!job->waits_since)
		job->waits_since = sl_max_u64(1, cl->now);
	if (!wants || is_timed(job->because.reason))
		job->because = (struct sl_pending_because){0};
	if (held)
		job->because = held_because(cl, job);
	else if (wants)
		sl_cl_group_join(cl, job, want, wants, extra);
}

bool sl_cl_job_is_promised(const struct sl_cl_job *job, uint32_t node)
{
	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->part[p]->tasks; i++) {
			const struct sl_cl_task *task = &job->part[p]->task[i];

			if (task->promised && task->next.node == node)
				return true;
		}
	}
	return false;
}

void sl_cl_job_unpromise(struct sl_cluster *cl, struct sl_cl_job *job)
{
	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->part[p]->tasks; i++) {
			if (job->part[p]->task[i].promised)
				sl_cl_task_unpromise(cl, &job->part[p]->task[i]);
		}
	}
}

/* --- In and out. --- */

static struct sl_pending_because too_much(
	enum sl_resource which, int64_t wanted, int64_t most)
{
	return (struct sl_pending_because){.reason = SL_PENDING_TOO_MUCH,
		.resource = which,
		.wanted = wanted,
		.available = most};
}

/* Numbers that no node could satisfy. */
static struct sl_pending_because judge_need(const struct sl_need *need)
{
	const struct sl_pending_because nothing = {.reason = SL_PENDING_VALUE};

	if (!need->cpu_milli && !need->memory_mib && !need->gpus)
		return nothing;
	if (need->gpus && !need->gpu_milli && !need->gpu_mib)
		return nothing;
	if (need->gpus > SL_FIT_GPUS_MAX)
		return too_much(SL_RES_GPU, (int64_t)need->gpus * SL_FIT_WHOLE,
			(int64_t)SL_FIT_GPUS_MAX * SL_FIT_WHOLE);
	/* Of each GPU. */
	if (need->gpus && need->gpu_milli > SL_FIT_WHOLE)
		return too_much(SL_RES_GPU, (int64_t)need->gpus * need->gpu_milli,
			(int64_t)need->gpus * SL_FIT_WHOLE);
	return (struct sl_pending_because){.reason = SL_PENDING_NONE};
}

static struct sl_pending_because judge_tasks(
	const struct sl_need *need, uint32_t tasks, uint32_t least)
{
	if (!tasks)
		return (struct sl_pending_because){.reason = SL_PENDING_VALUE};
	if (tasks > TASKS_MOST || least > tasks)
		return (struct sl_pending_because){.reason = SL_PENDING_TASKS,
			.wanted = tasks > TASKS_MOST ? tasks : least,
			.available = tasks > TASKS_MOST ? TASKS_MOST : tasks};
	return judge_need(need);
}

static void book_asks(struct sl_cluster *cl, const struct sl_cl_job *job,
	const struct sl_quantity *each, uint32_t tasks, int sign)
{
	struct sl_quantity asks = times(each, tasks);

	sl_tree_book(&cl->tree, job->project, sign, NULL, NULL, &asks);
}

static void add_part(struct sl_cluster *cl, struct sl_cl_job *job,
	const struct sl_need *asked, uint32_t tasks, uint32_t least)
{
	struct sl_cl_part *part = sl_cl_spare_take(cl, &cl->spare_parts, sizeof(*part));
	struct sl_need need = sl_cl_effective(cl, job->project, asked);

	part->job = job;
	part->asked = *asked;
	part->class = sl_cl_class(cl, &need);
	sl_cl_learn(cl, part->class, tasks);
	part->each = sl_cl_guess(cl, asked);
	part->first = job->tasks;
	part->tasks = tasks;
	part->least = least == SL_CLUSTER_LEAST_NONE ? 0 : least ? least : tasks;
	while (((size_t)1 << part->bits) < tasks * sizeof(part->task[0]))
		part->bits++;
	part->task = sl_cl_block_take(cl, part->bits);
	for (uint32_t i = 0; i < tasks; i++) {
		part->task[i].part = part;
		part->task[i].number = part->first + i;
		sl_list_init(&part->task[i].on_node);
		sl_list_init(&part->task[i].leaving);
	}
	part->in[SL_TASK_PENDING] = tasks;
	cl->in[SL_TASK_PENDING] += tasks;
	cl->tasks_count += tasks;
	job->part[job->parts++] = part;
	job->tasks += tasks;
	book_asks(cl, job, &part->each, tasks, 1);
}

/* There are GPUs that it may use, and all of them are shut: which will open is not known. */
static bool all_are_shut(const struct sl_cluster *cl, const struct sl_need *need)
{
	const struct sl_need one = sl_cl_any_gpu(need);
	bool any = false;

	for (uint32_t i = 0; i < cl->nodes_high; i++) {
		struct sl_fit_node open = cl->fit[i];

		open.shut = 0;
		if (!cl->node[i].used || !sl_fit_ever(&open, &one))
			continue;
		if (sl_fit_usable(&cl->fit[i], &one))
			return false;
		any = true;
	}
	return any;
}

static bool never(struct sl_cluster *cl, uint32_t project, const struct sl_need *asked)
{
	struct sl_need need = sl_cl_effective(cl, project, asked);

	return cl->nodes && !sl_cl_ever(cl, sl_cl_class(cl, &need)) &&
	       !(asked->gpus && all_are_shut(cl, &need));
}

/* Could a node that it may use run one of its tasks if it were empty? */
static bool may_ever(struct sl_cluster *cl, uint32_t project, const struct sl_need *asked,
	struct sl_pending_because *because)
{
	struct sl_need need = sl_cl_effective(cl, project, asked);

	if (!never(cl, project, asked))
		return true;
	*because = sl_cl_never_because(cl, &need);
	return false;
}

/* May it be accepted? If not, *because says why; *project gets the number of its project. */
static bool judge_job(struct sl_cluster *cl, const struct sl_cluster_event *event,
	uint32_t *project, struct sl_pending_because *because)
{
	*because = judge_tasks(
		&event->job_add.need, event->job_add.tasks, event->job_add.least);
	*project = sl_tree_find(&cl->tree, event->job_add.project);
	if (because->reason)
		return false;
	if (sl_cl_find_job(cl, event->job_add.job))
		because->reason = SL_PENDING_DUPLICATE;
	else if (*project == SL_PROJECT_NONE)
		because->reason = SL_PENDING_NO_PROJECT;
	if (because->reason)
		return false;
	return may_ever(cl, *project, &event->job_add.need, because);
}

void sl_cl_on_job_add(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	struct sl_pending_because because;
	struct sl_cl_job *job;
	uint32_t project;

	if (!judge_job(cl, event, &project, &because)) {
		because.project = event->job_add.project;
		sl_cl_refuse_job(cl, event->job_add.job, &because);
		return;
	}
	job = sl_cl_spare_take(cl, &cl->spare_jobs, sizeof(*job));
	job->index.id = event->job_add.job;
	job->project = project;
	job->priority = event->job_add.priority;
	job->flags = event->job_add.flags &
		     ~SL_MUTANT(CLUSTER_HOST_LEFT, 0u, SL_JOB_KEEPS_HOST);
	job->park_mib = event->job_add.park_mib;
	job->swap_cost = event->job_add.swap_cost;
	job->resume_wait = event->job_add.resume_wait;
	job->preempt_delay = event->job_add.preempt_delay;
	job->stale_grace = event->job_add.stale_grace;
	job->owner = sl_cl_owner(cl, event->job_add.owner);
	job->waits_since = sl_max_u64(1, sl_sub_sat(cl->now, event->job_add.waited));
	job->submitted = cl->now;
	job->seq = event->job_add.order ? event->job_add.order : ++cl->next_seq;
	sl_list_init(&job->all);
	sl_list_init(&job->running);
	sl_list_init(&job->promised);
	sl_list_init(&job->stale);
	sl_list_init(&job->held);
	sl_list_init(&job->parked);
	sl_index_add(&cl->jobs_by_id, &job->index);
	sl_list_push_tail(&cl->jobs, &job->all);
	cl->jobs_count++;
	add_part(cl, job, &event->job_add.need, event->job_add.tasks,
		event->job_add.least);
	sl_cl_job_settle(cl, job);
}

static void drop_job(struct sl_cluster *cl, struct sl_cl_job *job)
{
	sl_cl_group_leave(cl, job);
	for (uint32_t p = 0; p < job->parts; p++) {
		struct sl_cl_part *part = job->part[p];

		for (uint32_t i = 0; i < part->tasks; i++) {
			sl_cl_task_unpark(cl, &part->task[i]);
			if (part->task[i].state != SL_TASK_ENDED)
				sl_cl_task_clear(cl, &part->task[i], SL_TASK_PENDING);
		}
		for (uint32_t s = 0; s < SL_TASK_STATES; s++)
			cl->in[s] -= part->in[s];
		book_asks(
			cl, job, &part->each, part->tasks - part->in[SL_TASK_ENDED], -1);
		cl->tasks_count -= part->tasks;
		sl_cl_block_give(cl, part->task, part->bits);
		sl_cl_spare_give(&cl->spare_parts, part);
	}
	if (job->refused_bits)
		sl_cl_block_give(cl, job->refused, job->refused_bits);
	sl_list_unlink(&job->all);
	sl_list_unlink(&job->running);
	sl_list_unlink(&job->promised);
	sl_list_unlink(&job->stale);
	sl_list_unlink(&job->held);
	sl_list_unlink(&job->parked);
	sl_index_remove(&cl->jobs_by_id, &job->index);
	cl->jobs_count--;
	sl_cl_spare_give(&cl->spare_jobs, job);
}

void sl_cl_on_tasks_add(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	struct sl_cl_job *job = sl_cl_find_job(cl, event->tasks_add.job);
	uint32_t least = event->tasks_add.least;
	struct sl_pending_because because = judge_tasks(&event->tasks_add.need,
		event->tasks_add.tasks, least == SL_CLUSTER_LEAST_NONE ? 0 : least);

	if (!job)
		return;
	if (!because.reason && job->parts == SL_CL_PARTS)
		because.reason = SL_PENDING_FULL;
	if (because.reason ||
		!may_ever(cl, job->project, &event->tasks_add.need, &because)) {
		because.project = cl->tree.all[job->project].id;
		sl_cl_refuse_job(cl, job->index.id, &because);
		drop_job(cl, job);
		return;
	}
	add_part(cl, job, &event->tasks_add.need, event->tasks_add.tasks,
		event->tasks_add.least);
	sl_cl_job_settle(cl, job);
}

void sl_cl_on_job_remove(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	struct sl_cl_job *job = sl_cl_find_job(cl, event->job_remove.job);

	if (job)
		drop_job(cl, job);
}

void sl_cl_on_job_cost(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	struct sl_cl_job *job = sl_cl_find_job(cl, event->job_cost.job);

	if (!job)
		return;
	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->part[p]->tasks; i++) {
			const struct sl_cl_task *task = &job->part[p]->task[i];

			if (task->pooled)
				cl->node[task->place.node].parked_mib +=
					event->job_cost.park_mib - job->park_mib;
		}
	}
	job->park_mib = event->job_cost.park_mib;
	job->swap_cost = event->job_cost.swap_cost;
}

void sl_cl_on_job_resume(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	struct sl_cl_job *job = sl_cl_find_job(cl, event->job_resume.job);

	if (!job)
		return;
	job->paused_until = 0;
	sl_cl_job_settle(cl, job);
}

void sl_cl_on_job_unpark(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	struct sl_cl_job *job = sl_cl_find_job(cl, event->job_unpark.job);

	for (uint32_t p = 0; job && p < job->parts; p++) {
		for (uint32_t i = 0; i < job->part[p]->tasks; i++)
			sl_cl_task_unpark(cl, &job->part[p]->task[i]);
	}
	if (job)
		sl_cl_job_settle(cl, job);
}

/* Placed tasks keep their place and need; only pools change, which the accounts do not use. */
void sl_cl_reclass(struct sl_cluster *cl)
{
	sl_list_foreach (link, &cl->jobs) {
		struct sl_cl_job *job = SL_CL_ENTRY(link, sl_cl_job, all);

		for (uint32_t p = 0; p < job->parts; p++) {
			struct sl_need need =
				sl_cl_effective(cl, job->project, &job->part[p]->asked);

			struct sl_cl_class *class = sl_cl_class(cl, &need);

			/* A promised place may no longer be allowed. */
			if (class != job->part[p]->class)
				sl_cl_job_unpromise(cl, job);
			job->part[p]->class = class;
		}
		sl_cl_job_settle(cl, job);
	}
}

void sl_cl_requote(struct sl_cluster *cl)
{
	sl_list_foreach (link, &cl->jobs) {
		struct sl_cl_job *job = SL_CL_ENTRY(link, sl_cl_job, all);

		sl_cl_group_leave(cl, job);
		for (uint32_t p = 0; p < job->parts; p++) {
			struct sl_cl_part *part = job->part[p];
			uint32_t tasks = part->tasks - part->in[SL_TASK_ENDED];

			book_asks(cl, job, &part->each, tasks, -1);
			part->each = sl_cl_guess(cl, &part->asked);
			book_asks(cl, job, &part->each, tasks, 1);
		}
	}
	/* Only now, because a group has one quantity for all its jobs. */
	sl_list_foreach (link, &cl->jobs)
		sl_cl_job_settle(cl, SL_CL_ENTRY(link, sl_cl_job, all));
}
