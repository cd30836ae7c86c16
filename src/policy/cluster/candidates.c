/*
 * candidates - which tasks may go, in order, and where they are
 *
 * To reclaim: jobs of other projects. Each listed job counts as taken when reclaim.h chooses the
 * project of the next one, so that the list draws on all of them. To preempt: jobs of lower
 * priority of the same project. To consolidate: tasks on the nodes with the most room left.
 */
#include "policy/cluster/search.h"
#include "policy/quota/reclaim.h"

#include "policy/mutant.h"

/* Candidates that a search collects at first: tasks, or, to consolidate, nodes. */
#define TASKS_FIRST 256
#define NODES_FIRST 64
/* Projects that a search takes from. */
#define FROM_MOST 32
/* Set in the rank of jobs that would lose their work. */
#define ENDS (1u << 31)

static sl_ns min_runtime(const struct sl_search *h, const struct sl_cl_job *job)
{
	for (uint32_t i = job->project; i != SL_PROJECT_NONE;
		i = h->cl->tree.all[i].parent) {
		const struct sl_project_rules *rules = &h->cl->tree.all[i].rules;
		sl_ns least = h->mode == SL_CL_RECLAIM ? rules->reclaim_min_runtime
						       : rules->preempt_min_runtime;

		if (least)
			return least;
	}
	return 0;
}

/* May it be taken, as far as the job itself is concerned? */
static bool is_candidate(struct sl_search *h, const struct sl_cl_job *job)
{
	struct sl_cluster *cl = h->cl;
	bool moves = sl_search_moves(h, job) && cl->move_most &&
		     !sl_list_is_linked(&job->stale);
	sl_ns least = moves ? 0 : min_runtime(h, job);

	if (h->mode == SL_CL_CONSOLIDATE && !moves)
		least = sl_max_u64(least, cl->resume_factor * job->swap_cost);
	if (job == h->job || (!sl_cl_preemptible(job) && !moves))
		return false;
	/* Its move would start it over. A job that can be parked is left to the searches that may
	 * take from it. */
	if (h->mode == SL_CL_CONSOLIDATE && !moves &&
		SL_MUTANT(CLUSTER_MOVES_PARKING, job->flags & SL_JOB_PARKS, false))
		return false;
	if (SL_MUTANT(CLUSTER_NO_MIN_RUNTIME, job->started + least > cl->now, false) &&
		!h->relaxed) {
		sl_cl_wake(cl, job->started + least);
		h->barred_until = sl_min_u64(h->barred_until, job->started + least);
		return false;
	}
	for (uint32_t p = 0; p < job->parts; p++) {
		const uint32_t *in = job->part[p]->in;

		if (in[SL_TASK_BINDING] || in[SL_TASK_RELEASING] || in[SL_TASK_PIPELINED])
			return false;
	}
	return true;
}

static void add_near(struct sl_search *h, uint32_t number)
{
	struct sl_cl_node *node = &h->cl->node[number];

	if (node->mark == h->mark)
		return;
	node->mark = h->mark;
	h->cl->near[h->nears++] = (struct sl_cl_near){.node = number};
}

/* Would it lose its work? Not if it moves, or if host memory has room for it. */
static bool would_end(const struct sl_search *h, const struct sl_cl_job *job)
{
	if (h->mode == SL_CL_CONSOLIDATE || !(job->flags & SL_JOB_PARKS))
		return h->mode != SL_CL_CONSOLIDATE;
	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->part[p]->tasks; i++) {
			const struct sl_cl_task *task = &job->part[p]->task[i];
			const struct sl_cl_node *node = &h->cl->node[task->place.node];

			if (task->state == SL_TASK_RUNNING &&
				node->parked_mib + job->park_mib > node->pool_mib)
				return true;
		}
	}
	return false;
}

/* How many lower priorities of its project are running. */
static uint32_t tier_of(const struct sl_cluster *cl, const struct sl_cl_job *job)
{
	uint32_t tier = 0;

	for (const struct sl_cl_rank *rank = cl->ranks[job->project];
		rank && rank->priority < job->priority; rank = rank->next)
		tier += !sl_list_is_empty(&rank->jobs);
	return tier;
}

/* True: enough. Jobs that would be parked come before jobs that would lose their work. */
static bool add_candidate(struct sl_search *h, struct sl_cl_job *job, uint32_t enough)
{
	bool last = SL_MUTANT(CLUSTER_POOL_LAST, would_end(h, job), !would_end(h, job));

	job->mark = h->mark;
	job->rank = h->ranks++ + (last ? ENDS : 0);
	job->tier = tier_of(h->cl, job);
	for (uint32_t p = 0; p < job->parts; p++) {
		struct sl_cl_part *part = job->part[p];

		for (uint32_t i = 0; i < part->tasks; i++) {
			if (part->task[i].state != SL_TASK_RUNNING)
				continue;
			add_near(h, part->task[i].place.node);
			h->tasks++;
		}
	}
	return h->tasks >= enough;
}

static bool add_project(
	struct sl_search *h, uint32_t project, int32_t below, uint32_t enough)
{
	uint64_t looked = 0;

	for (struct sl_cl_rank *rank = h->cl->ranks[project];
		rank && rank->priority < below; rank = rank->next) {
		if (h->above && rank->priority <= h->job->priority)
			continue;
		for (struct sl_link *link = rank->jobs.prev; link != &rank->jobs;
			link = link->prev) {
			struct sl_cl_job *job = SL_CL_ENTRY(link, sl_cl_job, running);

			looked++;
			if (is_candidate(h, job) && add_candidate(h, job, enough))
				return true;
		}
	}
	h->cl->effort -= sl_min_u64(h->cl->effort, looked);
	return false;
}

/* The next job of this project that goes first and is no candidate yet. */
static struct sl_cl_job *next_of(struct sl_search *h, struct sl_cl_from *from)
{
	uint64_t looked = 0;
	struct sl_cl_job *found = NULL;

	while (from->rank && !found) {
		if (from->link == &from->rank->jobs) {
			from->rank = from->rank->next;
			from->link = from->rank ? from->rank->jobs.prev : NULL;
			continue;
		}
		found = SL_CL_ENTRY(from->link, sl_cl_job, running);
		from->link = from->link->prev;
		looked++;
		if (found->looked == h->mark || !is_candidate(h, found))
			found = NULL;
		else
			found->looked = h->mark;
	}
	h->cl->effort -= sl_min_u64(h->cl->effort, looked);
	return found;
}

static struct sl_cl_from from_start(const struct sl_cluster *cl, uint32_t project)
{
	struct sl_cl_rank *rank = cl->ranks[project];

	return (struct sl_cl_from){project, rank, rank ? rank->jobs.prev : NULL};
}

static bool may_lose(const struct sl_search *h, uint32_t project)
{
	const struct sl_quantity none = {{0}};

	return h->cl->ranks[project] &&
	       sl_reclaim_may(&h->cl->tree, h->job->project, &h->rest, project, &none) ==
		       SL_RECLAIM_YES;
}

/* The first FROM_MOST projects to take from, in order. */
static uint32_t collect_projects(struct sl_search *h)
{
	struct sl_cluster *cl = h->cl;
	uint32_t count = 0;

	for (uint32_t i = 0; i < cl->tree.high; i++) {
		uint32_t at = count;

		if (!cl->tree.all[i].used || !may_lose(h, i))
			continue;
		if (count < FROM_MOST)
			count++;
		else if (sl_reclaim_before(&cl->tree, i, cl->from[count - 1].project))
			at--;
		else
			continue;
		for (; at && sl_reclaim_before(&cl->tree, i, cl->from[at - 1].project);
			at--)
			cl->from[at] = cl->from[at - 1];
		cl->from[at] = from_start(cl, i);
	}
	cl->effort -= sl_min_u64(cl->effort, cl->tree.high);
	return count;
}

/* Takes what the job has off the books, or puts it back. */
static void pretend(struct sl_cluster *cl, const struct sl_cl_job *job, int sign)
{
	for (uint32_t p = 0; p < job->parts; p++) {
		struct sl_quantity has = job->part[p]->each;

		for (int r = 0; r < SL_RESOURCES; r++)
			has.of[r] *= sl_cl_running(job->part[p]);
		sl_tree_book(&cl->tree, job->project, sign, &has, NULL, NULL);
	}
}

/* Of other projects, as if one job after the other were taken, so that no project is always the
 * first. */
static void collect_reclaim(struct sl_search *h, uint32_t enough)
{
	struct sl_cluster *cl = h->cl;
	uint32_t count = collect_projects(h);
	uint32_t pretended = 0;
	bool full = false;

	while (count && !full && cl->effort) {
		uint32_t best = 0;
		struct sl_cl_job *job;

		for (uint32_t i = 1; i < count; i++) {
			if (sl_reclaim_before(&cl->tree, cl->from[i].project,
				    cl->from[best].project))
				best = i;
		}
		job = may_lose(h, cl->from[best].project) ? next_of(h, &cl->from[best])
							  : NULL;
		if (!job) {
			cl->from[best] = cl->from[--count];
			continue;
		}
		full = add_candidate(h, job, enough);
		pretend(cl, job, -1);
		sl_cl_trail_add(cl, &cl->pretended, &job->part[0]->task[0]);
		pretended++;
	}
	for (uint32_t i = 0; i < pretended; i++)
		pretend(cl, cl->pretended.task[i]->part->job, 1);
	cl->pretended.count = 0;
	/* Then all their other jobs, in case those cannot go or do not help. */
	count = full ? 0 : collect_projects(h);
	for (uint32_t i = 0; i < count && !full && cl->effort; i++) {
		struct sl_cl_job *job;

		while (!full && (job = next_of(h, &cl->from[i])))
			full = add_candidate(h, job, enough);
	}
}

static int64_t size_of(const struct sl_cl_job *job)
{
	int64_t size = 0;

	for (uint32_t p = 0; p < job->parts; p++)
		size += job->part[p]->each.of[SL_RES_GPU] * sl_cl_running(job->part[p]);
	return size;
}

/* Order: lower priority, then younger. In the second sweep smaller first, which find a new place
 * more easily. */
static bool moves_before(
	const struct sl_search *h, const struct sl_cl_job *a, const struct sl_cl_job *b)
{
	if (h->by_size && size_of(a) != size_of(b))
		return size_of(a) < size_of(b);
	return a->priority != b->priority ? a->priority < b->priority : a->seq > b->seq;
}

/* What there will be for that need. Moves within a node free no cores, no memory and no further
 * GPUs. So nodes that lack these come last while tasks may move. */
static int64_t room_for(
	const struct sl_cluster *cl, uint32_t number, const struct sl_need *need)
{
	const struct sl_fit_node *node = &cl->fit[number];
	const struct sl_room *room = &node->later;

	if (cl->move_most && need->gpus &&
		(room->cpu_milli < need->cpu_milli ||
			room->memory_mib < need->memory_mib ||
			room->gpu_milli <
				(int64_t)(sl_fit_milli(node, need) * need->gpus)))
		return -1;
	return need->gpus ? room->gpu_milli : room->cpu_milli;
}

/* The fullest nodes that are nearly empty enough, and the tasks there. */
static void collect_movable(
	struct sl_search *h, const struct sl_need *need, uint32_t enough)
{
	struct sl_cluster *cl = h->cl;
	struct sl_cl_job *job[4 * NODES_FIRST];
	uint32_t jobs = 0;
	bool any = false;

	for (uint32_t i = 0; i < cl->nodes_high; i++) {
		int64_t room = room_for(cl, i, need);
		uint32_t at = h->nears;

		if (!cl->node[i].used || cl->fit[i].closed ||
			sl_list_is_empty(&cl->node[i].tasks) ||
			!sl_fit_ever(&cl->fit[i], need))
			continue;
		if (at == enough) {
			if (room <= room_for(cl, cl->near[at - 1].node, need))
				continue;
			at--;
		} else {
			h->nears++;
		}
		for (; at; at--) {
			if (room <= room_for(cl, cl->near[at - 1].node, need))
				break;
			cl->near[at] = cl->near[at - 1];
		}
		cl->near[at] = (struct sl_cl_near){.node = i};
	}
	for (uint32_t i = 0; i < h->nears; i++) {
		sl_list_foreach (link, &cl->node[cl->near[i].node].tasks) {
			struct sl_cl_task *task = SL_CL_ENTRY(link, sl_cl_task, on_node);
			struct sl_cl_job *one = task->part->job;
			uint32_t at = jobs;

			if (one->mark == h->mark || jobs == SL_ARRAY_LEN(job) ||
				!is_candidate(h, one))
				continue;
			one->mark = h->mark;
			any |= sl_cl_movable(one);
			for (jobs++; at && moves_before(h, one, job[at - 1]); at--)
				job[at] = job[at - 1];
			job[at] = one;
		}
	}
	for (uint32_t i = 0; i < jobs; i++) {
		job[i]->rank = i;
		/* What loses nothing goes first. */
		job[i]->tier = !sl_cl_movable(job[i]) && any;
	}
	h->ranks = jobs;
	cl->effort -= sl_min_u64(cl->effort, cl->nodes_high / 4 + jobs);
}

void sl_search_collect(struct sl_search *h, const struct sl_need *need, uint32_t wanted)
{
	uint32_t enough = TASKS_FIRST > 4 * wanted ? TASKS_FIRST : 4 * wanted;

	h->mark = ++h->cl->next_mark;
	if (h->mode == SL_CL_CONSOLIDATE)
		collect_movable(h, need,
			NODES_FIRST > 2 * wanted
				? NODES_FIRST
				: (uint32_t)sl_min_u64(2 * wanted, h->cl->nodes_most));
	else if (h->mode == SL_CL_PREEMPT)
		(void)add_project(h, h->job->project,
			h->above ? INT32_MAX
				 : SL_MUTANT(CLUSTER_PREEMPTS_EQUALS, h->job->priority,
					   INT32_MAX),
			enough);
	else
		collect_reclaim(h, enough);
}
