/*
 * cluster_search - who has to go so that a job finds its places
 *
 * A bounded search, tried out on the books themselves and taken back if it leads nowhere:
 *   1. collect   candidates, those that go first (project, priority, age) first, and the nodes they stand on
 *   2. build     for each task that is wanted the node on which the fewest tasks are lost; equal: the ones that
 *                go first. A job goes whole, but for what it has beyond its least.
 *   3. prune     who need not go after all, stays; the most valuable is asked first
 *   4. move      who finds another place moves there instead of being lost
 * To consolidate is the same search in which everybody has to find another place. When it fails, it is
 * repeated without the node it began with, up to search_most times.
 */
#include "policy/cluster_state.h"
#include "policy/quota/reclaim.h"

#include <string.h>

#include "policy/mutant.h"

/* Candidates that one search collects at first: tasks, or, to consolidate, nodes. */
#define TASKS_FIRST 256
#define NODES_FIRST 64
/* Tasks of a node that are looked at, and nodes that are left out after failures. */
#define HERE_MOST 96
#define BANS_MOST 64
/* Projects that one search takes from. */
#define FROM_MOST 32

/* Tasks of one node that would have to go, each with the rest of its job if it cannot spare it. */
struct plan {
	struct sl_cl_task *task[HERE_MOST];
	uint32_t at[HERE_MOST], cost[HERE_MOST]; /* while it is made */
	uint32_t count, lost;
	uint64_t rank; /* of the most valuable of them */
};

struct hunt {
	struct sl_cluster *cl;
	struct sl_cl_job *job;
	enum sl_cl_mode mode;
	struct sl_quantity rest; /* what it still wants */
	uint64_t mark;
	uint32_t nears, ranks, tasks;
	uint32_t first; /* node that was emptied first */
	bool pool_short, by_size;
	int64_t pool_wanted, pool_left;
};

/* --- Candidates. --- */

static sl_ns min_runtime(const struct hunt *h, const struct sl_cl_job *job)
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

/* May it be taken from, as far as it alone is concerned? */
static bool is_candidate(const struct hunt *h, const struct sl_cl_job *job)
{
	struct sl_cluster *cl = h->cl;
	sl_ns least = min_runtime(h, job);

	if (h->mode == SL_CL_CONSOLIDATE)
		least = sl_max_u64(least, cl->resume_factor * job->swap_cost);
	if (job == h->job || !sl_cl_preemptible(job))
		return false;
	if (SL_MUTANT(CLUSTER_NO_MIN_RUNTIME, job->started + least > cl->now, false)) {
		sl_cl_wake(cl, job->started + least);
		return false;
	}
	for (uint32_t p = 0; p < job->parts; p++) {
		const uint32_t *in = job->part[p]->in;

		if (in[SL_TASK_BINDING] || in[SL_TASK_RELEASING] || in[SL_TASK_PIPELINED])
			return false;
	}
	return true;
}

static void add_near(struct hunt *h, uint32_t number)
{
	struct sl_cl_node *node = &h->cl->node[number];

	if (node->mark == h->mark)
		return;
	node->mark = h->mark;
	h->cl->near[h->nears++] = (struct sl_cl_near){.node = number};
}

/* True: enough. */
static bool add_candidate(struct hunt *h, struct sl_cl_job *job, uint32_t enough)
{
	job->mark = h->mark;
	job->rank = h->ranks++;
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

static bool add_project(struct hunt *h, uint32_t project, int32_t below, uint32_t enough)
{
	uint64_t looked = 0;

	for (struct sl_cl_rank *rank = h->cl->ranks[project];
		rank && rank->priority < below; rank = rank->next) {
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

/* The next job of this project that goes first and is not among the candidates yet. */
static struct sl_cl_job *next_of(struct hunt *h, struct sl_cl_from *from)
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

static bool may_lose(const struct hunt *h, uint32_t project)
{
	const struct sl_quantity none = {{0}};

	return h->cl->ranks[project] &&
	       sl_reclaim_may(&h->cl->tree, h->job->project, &h->rest, project, &none) ==
		       SL_RECLAIM_YES;
}

/* The projects that are taken from first, FROM_MOST of them, in their order. */
static uint32_t collect_projects(struct hunt *h)
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

/* What the job has is taken off the books, or put back. */
static void pretend(struct sl_cluster *cl, const struct sl_cl_job *job, int sign)
{
	for (uint32_t p = 0; p < job->parts; p++) {
		struct sl_quantity has = job->part[p]->each;

		for (int r = 0; r < SL_RESOURCES; r++)
			has.of[r] *= sl_cl_running(job->part[p]);
		sl_tree_book(&cl->tree, job->project, sign, &has, NULL, NULL);
	}
}

/* Of other projects, as if they were taken from one job after the other: so nobody is always the first. */
static void collect_reclaim(struct hunt *h, uint32_t enough)
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
	/* Then all others of them, in case that those cannot go or do not help. */
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

/* Goes first: lower priority, then younger. In the second sweep the smaller, which find a new place more easily. */
static bool moves_before(
	const struct hunt *h, const struct sl_cl_job *a, const struct sl_cl_job *b)
{
	if (h->by_size && size_of(a) != size_of(b))
		return size_of(a) < size_of(b);
	return a->priority != b->priority ? a->priority < b->priority : a->seq > b->seq;
}

/* The nodes with most room that are not quite empty enough, and who stands there. */
static void collect_movable(struct hunt *h, const struct sl_need *need, uint32_t enough)
{
	struct sl_cluster *cl = h->cl;
	struct sl_cl_job *job[4 * NODES_FIRST];
	uint32_t jobs = 0;

	for (uint32_t i = 0; i < cl->nodes_high; i++) {
		int64_t room = need->gpus ? cl->fit[i].later.gpu_milli
					  : cl->fit[i].later.cpu_milli;
		uint32_t at = h->nears;

		if (!cl->node[i].used || cl->fit[i].closed ||
			sl_list_is_empty(&cl->node[i].tasks) ||
			!sl_fit_ever(&cl->fit[i], need))
			continue;
		if (at == enough) {
			const struct sl_room *last =
				&cl->fit[cl->near[at - 1].node].later;

			if (room <= (need->gpus ? last->gpu_milli : last->cpu_milli))
				continue;
			at--;
		} else {
			h->nears++;
		}
		for (; at; at--) {
			const struct sl_room *above =
				&cl->fit[cl->near[at - 1].node].later;

			if (room <= (need->gpus ? above->gpu_milli : above->cpu_milli))
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
			for (jobs++; at && moves_before(h, one, job[at - 1]); at--)
				job[at] = job[at - 1];
			job[at] = one;
		}
	}
	for (uint32_t i = 0; i < jobs; i++)
		job[i]->rank = i;
	h->ranks = jobs;
	cl->effort -= sl_min_u64(cl->effort, cl->nodes_high / 4 + jobs);
}

static void collect(struct hunt *h, const struct sl_need *need, uint32_t wanted)
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
			SL_MUTANT(CLUSTER_PREEMPTS_EQUALS, h->job->priority, INT32_MAX),
			enough);
	else
		collect_reclaim(h, enough);
}

/* --- What it costs to make room on a node. --- */

static void add_room(struct sl_room *room, const struct sl_cl_task *task, int sign)
{
	const struct sl_need *need = &task->part->class->need;

	room->cpu_milli += sign * (int64_t)need->cpu_milli;
	room->memory_mib += sign * (int64_t)need->memory_mib;
	for (uint32_t mask = task->place.gpu_mask; mask; mask &= mask - 1) {
		int16_t *left = &room->left[__builtin_ctz(mask)];

		room->whole = (int16_t)(room->whole - (*left == SL_FIT_WHOLE));
		*left = (int16_t)(*left + sign * task->place.milli);
		room->whole = (int16_t)(room->whole + (*left == SL_FIT_WHOLE));
		room->gpu_milli += sign * task->place.milli;
	}
}

static uint32_t spare_of(const struct sl_cl_part *part)
{
	uint32_t has = sl_cl_placed(part) + part->done;

	return has > part->least ? has - part->least : 0;
}

/* Tasks that are lost when this one goes, too, and one more for a gang that ends. */
static uint32_t cost_of(const struct plan *plan, const struct sl_cl_task *task)
{
	const struct sl_cl_job *job = task->part->job;
	uint32_t of_part = 0, of_job = 0, running = 0;
	bool torn = false;

	for (uint32_t i = 0; i < plan->count; i++) {
		of_part += plan->task[i]->part == task->part;
		of_job += plan->task[i]->part->job == job;
	}
	if (of_part < spare_of(task->part))
		return 1;
	for (uint32_t p = 0; p < job->parts; p++) {
		uint32_t chosen = 0;

		running += job->part[p]->in[SL_TASK_RUNNING];
		for (uint32_t i = 0; i < plan->count; i++)
			chosen += plan->task[i]->part == job->part[p];
		torn |= chosen > spare_of(job->part[p]);
	}
	return torn ? 0 : running - of_job + 1;
}

/* Smaller goes first: by the job; of one job the higher numbers. */
static uint64_t rank_of(const struct sl_cl_task *task)
{
	return ((uint64_t)task->part->job->rank << 32) + (UINT32_MAX - task->number);
}

/* a is lost rather than b: cheaper; else first in rank. */
static bool goes_before(const struct sl_cl_task *a, uint32_t cost_a,
	const struct sl_cl_task *b, uint32_t cost_b)
{
	if (cost_a != cost_b)
		return SL_MUTANT(CLUSTER_VICTIMS_MANY, cost_a<cost_b, cost_a> cost_b);
	return rank_of(a) < rank_of(b);
}

struct scene {
	const struct sl_fit_node *fit;
	const struct sl_need *need;
	struct sl_room room;
	uint32_t gpus; /* that may be used */
	uint32_t milli;
	struct sl_cl_task *here[HERE_MOST];
	bool gone[HERE_MOST]; /* in the plan */
	uint32_t count, alone;
	struct plan *plan;
};

static void choose(struct scene *s, uint32_t at)
{
	struct plan *plan = s->plan;

	plan->cost[plan->count] = cost_of(plan, s->here[at]);
	plan->lost += plan->cost[plan->count];
	plan->at[plan->count] = at;
	plan->task[plan->count++] = s->here[at];
	add_room(&s->room, s->here[at], 1);
	s->gone[at] = true;
}

static void unchoose(struct scene *s, uint32_t count)
{
	struct plan *plan = s->plan;

	while (plan->count > count) {
		uint32_t at = plan->at[--plan->count];

		plan->lost -= plan->cost[plan->count];
		add_room(&s->room, s->here[at], -1);
		s->gone[at] = false;
	}
}

/* The cheapest way to have s->milli on this GPU; false: there is none. */
static bool empty_gpu(struct scene *s, uint32_t gpu, uint64_t *rank)
{
	*rank = 0;
	while (s->room.left[gpu] < (int32_t)s->milli) {
		uint32_t best = UINT32_MAX, best_cost = 0;
		bool best_does = false;

		for (uint32_t i = 0; i < s->count; i++) {
			const struct sl_cl_task *task = s->here[i];
			uint32_t cost;
			bool does;

			if (s->gone[i] || !(task->place.gpu_mask >> gpu & 1))
				continue;
			cost = cost_of(s->plan, task);
			does = s->room.left[gpu] + task->place.milli >= (int32_t)s->milli;
			if (best != UINT32_MAX &&
				(does != best_does ? !does
						   : !goes_before(task, cost,
							     s->here[best], best_cost)))
				continue;
			best = i;
			best_cost = cost;
			best_does = does;
		}
		if (best == UINT32_MAX)
			return false;
		*rank = sl_max_u64(*rank, rank_of(s->here[best]));
		choose(s, best);
	}
	return true;
}

static bool empty_gpus(struct scene *s)
{
	for (uint32_t done = 0; done < s->need->gpus; done++) {
		uint32_t best = UINT32_MAX, best_gpu = 0, before = s->plan->count;
		uint64_t best_rank = 0, rank;

		for (uint32_t gpu = 0; gpu < s->fit->gpus && best; gpu++) {
			uint32_t lost = s->plan->lost;
			bool can = s->gpus >> gpu & 1 && empty_gpu(s, gpu, &rank);

			lost = s->plan->lost - lost;
			unchoose(s, before);
			if (!can || lost > best || (lost == best && rank >= best_rank))
				continue;
			best = lost;
			best_rank = rank;
			best_gpu = gpu;
		}
		if (best == UINT32_MAX || !empty_gpu(s, best_gpu, &rank))
			return false;
		s->gpus &= ~(1u << best_gpu);
	}
	return true;
}

static bool lacks_rest(const struct scene *s)
{
	return s->room.cpu_milli < s->need->cpu_milli ||
	       s->room.memory_mib < s->need->memory_mib;
}

/* Cores and memory, whoever has them. */
static bool free_rest(struct scene *s)
{
	while (lacks_rest(s)) {
		uint32_t best = UINT32_MAX, best_cost = 0;
		bool best_does = false;

		for (uint32_t i = 0; i < s->count; i++) {
			const struct sl_need *need;
			uint32_t cost;
			bool does;

			if (s->gone[i])
				continue;
			need = &s->here[i]->part->class->need;
			cost = cost_of(s->plan, s->here[i]);
			does = s->room.cpu_milli + need->cpu_milli >=
				       s->need->cpu_milli &&
			       s->room.memory_mib + need->memory_mib >=
				       s->need->memory_mib;

			if (best != UINT32_MAX &&
				(does != best_does ? !does
						   : !goes_before(s->here[i], cost,
							     s->here[best], best_cost)))
				continue;
			best = i;
			best_cost = cost;
			best_does = does;
		}
		if (best == UINT32_MAX)
			return false;
		choose(s, best);
	}
	return true;
}

static bool fits_now(const struct scene *s, const struct sl_cl_task *wanted)
{
	if (wanted->parked)
		return sl_cl_room_at(s->fit, &s->room, s->need, wanted->place);
	return sl_fit_in(s->fit, &s->room, s->need);
}

/* The one whose going alone makes room, UINT32_MAX: nobody's does. */
static uint32_t alone_suffices(
	struct scene *s, const struct sl_cl_task *wanted, uint32_t *lost)
{
	uint32_t best = UINT32_MAX;

	*lost = UINT32_MAX;
	for (uint32_t i = 0; i < s->count; i++) {
		bool does;
		uint32_t cost;

		choose(s, i);
		cost = s->plan->lost;
		does = fits_now(s, wanted);
		unchoose(s, 0);
		if (!does || (best != UINT32_MAX && !goes_before(s->here[i], cost,
							    s->here[best], *lost)))
			continue;
		best = i;
		*lost = cost;
	}
	return best;
}

/* Those that turn out not to be needed, and the price of the others. */
static void trim(struct scene *s, const struct sl_cl_task *wanted)
{
	struct plan *plan = s->plan;

	for (uint32_t i = 0; i < plan->count;) {
		add_room(&s->room, plan->task[i], -1);
		if (SL_MUTANT(CLUSTER_UNTRIMMED, fits_now(s, wanted), false)) {
			plan->task[i] = plan->task[--plan->count];
			continue;
		}
		add_room(&s->room, plan->task[i], 1);
		i++;
	}
	s->count = plan->count;
	memcpy(s->here, plan->task, plan->count * sizeof(plan->task[0]));
	plan->count = plan->lost = 0;
	plan->rank = 0;
	for (uint32_t i = 0; i < s->count; i++) {
		plan->lost += cost_of(plan, s->here[i]);
		plan->task[plan->count++] = s->here[i];
		plan->rank = sl_max_u64(plan->rank, rank_of(s->here[i]));
	}
}

/* Room in host memory, if that is where it goes. */
static bool has_pool(struct hunt *h, const struct sl_cl_task *task)
{
	const struct sl_cl_job *job = task->part->job;
	const struct sl_cl_node *node = &h->cl->node[task->place.node];

	if (!(job->flags & SL_JOB_PARKS) || h->mode == SL_CL_CONSOLIDATE ||
		!SL_MUTANT(CLUSTER_POOL_OPEN,
			node->parked_mib + job->park_mib > node->pool_mib, false))
		return true;
	h->pool_short = true;
	h->pool_wanted = (int64_t)job->park_mib;
	h->pool_left = (int64_t)sl_sub_sat(node->pool_mib, node->parked_mib);
	return false;
}

static bool evaluate(struct hunt *h, uint32_t number, const struct sl_cl_task *wanted,
	struct plan *plan)
{
	struct sl_cluster *cl = h->cl;
	struct scene s;
	uint32_t lost;
	bool greedy;

	plan->count = plan->lost = 0;
	plan->rank = 0;
	if (cl->fit[number].closed ||
		!sl_fit_ever(&cl->fit[number], &wanted->part->class->need))
		return false;
	if (wanted->parked && wanted->place.node != number)
		return false;
	s.fit = &cl->fit[number];
	s.need = &wanted->part->class->need;
	s.room = s.fit->later;
	s.gpus = wanted->parked ? wanted->place.gpu_mask : UINT32_MAX;
	s.milli = wanted->parked ? wanted->place.milli : sl_fit_milli(s.fit, s.need);
	s.count = 0;
	s.plan = plan;
	sl_list_foreach (link, &cl->node[number].tasks) {
		struct sl_cl_task *task = SL_CL_ENTRY(link, sl_cl_task, on_node);

		sl_cl_wake(cl, task->spared_until);
		if (task->state == SL_TASK_RUNNING && task->part->job->mark == h->mark &&
			task->spared_until <= cl->now && s.count < HERE_MOST &&
			has_pool(h, task)) {
			s.gone[s.count] = false;
			s.here[s.count++] = task;
		}
	}
	cl->effort -= sl_min_u64(cl->effort, 4 + s.count * (2 + s.need->gpus));
	s.alone = alone_suffices(&s, wanted, &lost);
	greedy = empty_gpus(&s) && free_rest(&s) && fits_now(&s, wanted);
	if (s.alone != UINT32_MAX &&
		(!greedy || SL_MUTANT(CLUSTER_VICTIMS_MANY, lost < plan->lost, false))) {
		unchoose(&s, 0);
		choose(&s, s.alone);
	} else if (!greedy) {
		return false;
	}
	trim(&s, wanted);
	return true;
}

/* --- Taking, and taking back. --- */

static bool reserve_pool(struct hunt *h, struct sl_cl_task *task)
{
	const struct sl_cl_job *job = task->part->job;

	if (!(job->flags & SL_JOB_PARKS) || h->mode == SL_CL_CONSOLIDATE)
		return true;
	if (!has_pool(h, task))
		return false;
	h->cl->node[task->place.node].parked_mib += job->park_mib;
	task->pooled = true;
	return true;
}

static void unreserve_pool(struct hunt *h, struct sl_cl_task *task)
{
	if (task->pooled)
		h->cl->node[task->place.node].parked_mib -= task->part->job->park_mib;
	task->pooled = false;
}

static void back_to(struct hunt *h, uint32_t evicted, uint32_t given)
{
	struct sl_cluster *cl = h->cl;

	while (cl->given.count > given)
		sl_cl_task_unpromise(cl, cl->given.task[--cl->given.count]);
	while (cl->evicted.count > evicted) {
		struct sl_cl_task *task = cl->evicted.task[--cl->evicted.count];

		if (task->promised)
			sl_cl_task_unpromise(cl, task);
		unreserve_pool(h, task);
		sl_cl_task_unrelease(cl, task);
	}
}

static bool evict_task(struct hunt *h, struct sl_cl_task *task)
{
	if (task->spared_until > h->cl->now || !reserve_pool(h, task))
		return false;
	sl_cl_task_release(h->cl, task);
	sl_cl_trail_add(h->cl, &h->cl->evicted, task);
	return true;
}

/* The task, and the rest of its job if that cannot spare it. False: it may not be; part of it may have been. */
static bool evict(struct hunt *h, struct sl_cl_task *task)
{
	struct sl_cl_job *job = task->part->job;
	bool whole = !spare_of(task->part);
	struct sl_quantity taken = {{0}};

	for (int r = 0; r < SL_RESOURCES; r++) {
		if (!whole)
			taken.of[r] = task->booked.of[r];
		for (uint32_t p = 0; whole && p < job->parts; p++)
			taken.of[r] += job->part[p]->each.of[r] *
				       job->part[p]->in[SL_TASK_RUNNING];
	}
	if (h->mode == SL_CL_RECLAIM && sl_reclaim_may(&h->cl->tree, h->job->project,
						&h->rest, job->project, &taken))
		return false;
	if (!whole)
		return evict_task(h, task);
	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->part[p]->tasks; i++) {
			struct sl_cl_task *one = &job->part[p]->task[i];

			if (one->state == SL_TASK_RUNNING && !evict_task(h, one))
				return false;
		}
	}
	return true;
}

/* --- Building. --- */

static bool is_below(const struct sl_cl_near *a, const struct sl_cl_near *b)
{
	if (a->lost != b->lost)
		return SL_MUTANT(CLUSTER_VICTIMS_MANY, a->lost<b->lost, a->lost> b->lost);
	return a->rank < b->rank;
}

/* The node that costs least; what is known of a node is true until it changes. */
static struct sl_cl_near *cheapest(
	struct hunt *h, const struct sl_cl_task *wanted, struct plan *plan)
{
	for (;;) {
		struct sl_cl_near *best = NULL;
		uint32_t lost;
		uint64_t rank;

		for (uint32_t i = 0; i < h->nears; i++) {
			struct sl_cl_near *near = &h->cl->near[i];
			uint64_t changes = h->cl->node[near->node].changes;

			if (near->banned)
				continue;
			if (near->changes != changes + 1) {
				near->changes = changes + 1;
				near->lost = evaluate(h, near->node, wanted, plan)
						     ? plan->lost
						     : UINT32_MAX;
				near->rank = plan->rank;
			}
			if (near->lost != UINT32_MAX && (!best || is_below(near, best)))
				best = near;
		}
		if (!best)
			return NULL;
		lost = best->lost;
		rank = best->rank;
		if (!evaluate(h, best->node, wanted, plan))
			plan->lost = UINT32_MAX;
		if (plan->lost == lost && plan->rank == rank)
			return best;
		best->lost = plan->lost;
		best->rank = plan->rank;
	}
}

static bool promise(struct hunt *h, struct sl_cl_task *wanted, struct sl_place place)
{
	struct sl_quantity amount = sl_cl_quantity(&wanted->part->class->need, place);

	sl_cl_task_promise(h->cl, wanted, place);
	sl_cl_trail_add(h->cl, &h->cl->given, wanted);
	for (int r = 0; r < SL_RESOURCES; r++)
		h->rest.of[r] -=
			amount.of[r] < h->rest.of[r] ? amount.of[r] : h->rest.of[r];
	return true;
}

/* What may not be taken at first may be when another one was: as long as that helps. NULL: all went; else
 * one that may not. */
static struct sl_cl_job *evict_plan(struct hunt *h, const struct plan *plan)
{
	uint32_t left = plan->count, before;
	struct sl_cl_job *job;

	do {
		before = left;
		left = 0;
		job = NULL;
		for (uint32_t i = 0; i < plan->count; i++) {
			if (plan->task[i]->state != SL_TASK_RUNNING ||
				evict(h, plan->task[i]))
				continue;
			job = plan->task[i]->part->job;
			left++;
		}
	} while (left && left < before);
	return job;
}

static bool place_one(struct hunt *h, struct sl_cl_task *wanted, struct plan *plan)
{
	struct sl_cluster *cl = h->cl;
	struct sl_cl_near *near;
	struct sl_place place;

	if (sl_cl_find_place(cl, wanted, true, &place))
		return promise(h, wanted, place);
	while ((near = cheapest(h, wanted, plan))) {
		uint32_t evicted = cl->evicted.count;
		struct sl_cl_job *cannot = evict_plan(h, plan);

		if (!cannot && sl_cl_place_on(cl, wanted, near->node, &place)) {
			if (h->first == SL_CL_NO_NODE)
				h->first = near->node;
			return promise(h, wanted, place);
		}
		back_to(h, evicted, cl->given.count);
		near->banned = !cannot;
		if (!cannot)
			continue;
		/* Without that one, the costs are others. */
		cannot->mark = 0;
		for (uint32_t i = 0; i < h->nears; i++)
			cl->near[i].changes = 0;
	}
	return false;
}

/* Within a project at its limit somebody has to go first, wherever he stands. */
static bool below_limit(struct hunt *h, struct sl_cl_part *part)
{
	struct sl_cluster *cl = h->cl;

	while (!sl_tree_allows(
		&cl->tree, h->job->project, &part->each, false, NULL, NULL)) {
		struct sl_cl_task *best = NULL;
		struct plan none = {.count = 0};

		for (uint32_t i = 0; i < h->nears; i++) {
			sl_list_foreach (link, &cl->node[cl->near[i].node].tasks) {
				struct sl_cl_task *task =
					SL_CL_ENTRY(link, sl_cl_task, on_node);

				if (task->state == SL_TASK_RUNNING &&
					task->part->job->mark == h->mark &&
					(!best || goes_before(task, cost_of(&none, task),
							  best, cost_of(&none, best))))
					best = task;
			}
		}
		if (h->mode != SL_CL_PREEMPT || !best || !evict(h, best))
			return false;
	}
	return true;
}

static bool build(struct hunt *h, const struct sl_cl_want *want, uint32_t wants)
{
	struct plan plan;

	for (uint32_t w = 0; w < wants; w++) {
		struct sl_cl_part *part = h->job->part[want[w].part];

		/* Costs are known for one kind of task. */
		for (uint32_t i = 0; i < h->nears; i++)
			h->cl->near[i].changes = 0;
		for (uint32_t i = 0; i < want[w].count; i++) {
			struct sl_cl_task *task = sl_cl_next_pending(part, 0);

			if (!task || !below_limit(h, part) || !place_one(h, task, &plan))
				return false;
		}
	}
	return h->cl->evicted.count;
}

/* --- Who may stay, who moves. --- */

/* The evicted job of the highest rank below `below`: the most valuable first. */
static struct sl_cl_job *next_evicted(const struct hunt *h, uint32_t below)
{
	struct sl_cl_job *best = NULL;

	for (uint32_t i = 0; i < h->cl->evicted.count; i++) {
		struct sl_cl_job *job = h->cl->evicted.task[i]->part->job;

		if (job->rank < below && (!best || job->rank > best->rank))
			best = job;
	}
	return best;
}

static bool stays(struct hunt *h, struct sl_cl_task *task)
{
	struct sl_cluster *cl = h->cl;

	if (!sl_cl_room_at(&cl->fit[task->place.node], &cl->fit[task->place.node].later,
		    &task->part->class->need, task->place))
		return false;
	if (!SL_MUTANT(CLUSTER_UNTRIMMED, true, false))
		return false;
	sl_cl_task_unrelease(cl, task);
	if (!sl_cl_is_over(cl, task->part->job)) {
		unreserve_pool(h, task);
		return true;
	}
	sl_cl_task_release(cl, task);
	return false;
}

static bool is_torn(const struct sl_cl_job *job)
{
	for (uint32_t p = 0; p < job->parts; p++) {
		if (sl_cl_placed(job->part[p]) + job->part[p]->done < job->part[p]->least)
			return true;
	}
	return false;
}

/* Those of the trail that run again are taken off it. */
static void compact(struct hunt *h)
{
	struct sl_cl_trail *trail = &h->cl->evicted;
	uint32_t count = 0;

	for (uint32_t i = 0; i < trail->count; i++) {
		if (trail->task[i]->state == SL_TASK_RELEASING)
			trail->task[count++] = trail->task[i];
	}
	trail->count = count;
}

static void prune(struct hunt *h)
{
	struct sl_cluster *cl = h->cl;
	struct sl_cl_job *job;

	for (uint32_t below = UINT32_MAX; (job = next_evicted(h, below));) {
		bool torn = is_torn(job);

		below = job->rank;
		for (uint32_t i = 0; i < cl->evicted.count; i++) {
			struct sl_cl_task *task = cl->evicted.task[i];

			if (task->part->job == job)
				(void)stays(h, task);
		}
		/* Not all of a gang can stay: none does. */
		for (uint32_t i = 0; i < cl->evicted.count && torn && is_torn(job); i++) {
			struct sl_cl_task *task = cl->evicted.task[i];

			if (task->part->job == job && task->state == SL_TASK_RUNNING) {
				(void)reserve_pool(h, task);
				sl_cl_task_release(cl, task);
			}
		}
		compact(h);
	}
}

/* Everybody who went finds a new place; or, if they need not all, as many jobs as do. */
static bool move(struct hunt *h, bool all)
{
	struct sl_cluster *cl = h->cl;
	struct sl_cl_job *job;

	for (uint32_t below = UINT32_MAX; (job = next_evicted(h, below));) {
		bool torn = is_torn(job), found = true;
		struct sl_place place;

		below = job->rank;
		for (uint32_t i = 0; i < cl->evicted.count; i++) {
			struct sl_cl_task *task = cl->evicted.task[i];

			if (task->part->job != job)
				continue;
			if (!sl_cl_find_place(cl, task, true, &place)) {
				found = false;
				continue;
			}
			sl_cl_task_promise(cl, task, place);
			/* What is asked for in MiB counts for more on smaller GPUs. */
			if (sl_cl_is_over(cl, job)) {
				sl_cl_task_unpromise(cl, task);
				found = false;
			}
		}
		if (all && SL_MUTANT(CLUSTER_MOVES_NOWHERE, !found, false))
			return false;
		for (uint32_t i = 0; i < cl->evicted.count && torn && !found; i++) {
			struct sl_cl_task *task = cl->evicted.task[i];

			if (task->part->job == job && task->promised)
				sl_cl_task_unpromise(cl, task);
		}
	}
	return true;
}

/* --- The end. --- */

static void tell_place(struct sl_cluster *cl, const struct sl_cl_task *task)
{
	sl_cl_emit(cl, (struct sl_cluster_action){.type = SL_CLUSTER_ACTION_PIPELINE,
			       .pipeline = {.job = task->part->job->index.id,
				       .task = task->number,
				       .node = cl->node[task->next.node].index.id,
				       .gpu_mask = task->next.gpu_mask}});
}

static void commit(struct hunt *h)
{
	struct sl_cluster *cl = h->cl;
	uint64_t done;

	for (uint32_t i = 0; i < cl->evicted.count; i++) {
		struct sl_cl_task *task = cl->evicted.task[i];
		enum sl_stop_how how = task->part->job->flags & SL_JOB_PARKS
					       ? SL_STOP_PARK
					       : SL_STOP_TERMINATE;

		if (task->promised) {
			unreserve_pool(h, task);
			how = SL_STOP_MOVE;
		}
		if (how != SL_STOP_MOVE && h->mode == SL_CL_RECLAIM)
			task->part->job->taken_at = cl->outside;
		sl_cl_task_stop(cl, task, how, h->job, h->mode == SL_CL_PREEMPT);
		if (task->promised)
			tell_place(cl, task);
	}
	for (uint32_t i = 0; i < cl->given.count; i++)
		tell_place(cl, cl->given.task[i]);
	done = ++cl->next_mark;
	for (uint32_t i = 0; i < cl->evicted.count; i++) {
		struct sl_cl_job *job = cl->evicted.task[i]->part->job;

		if (job->mark == done)
			continue;
		job->mark = done;
		sl_cl_job_settle(cl, job);
		sl_joborder_booked(cl->order, job->project);
	}
	cl->evicted.count = cl->given.count = 0;
}

static bool hunt(struct hunt *h, struct sl_cl_group *group, const struct sl_cl_want *want,
	uint32_t wants)
{
	struct sl_cluster *cl = h->cl;
	uint64_t gains = cl->gains;
	uint32_t wanted = 0, bans[BANS_MOST], ban_count = 0;

	for (uint32_t w = 0; w < wants; w++)
		wanted += want[w].count;
	h->rest = group->order.wants;
	h->nears = h->ranks = h->tasks = 0;
	collect(h, &want[0].class->need, wanted);
	for (uint32_t tries = 0; h->nears && tries < cl->search_most && cl->effort;
		tries++) {
		bool done;

		h->rest = group->order.wants;
		h->first = SL_CL_NO_NODE;
		for (uint32_t i = 0; i < h->nears; i++) {
			cl->near[i].banned = false;
			for (uint32_t b = 0; b < ban_count; b++)
				cl->near[i].banned |= cl->near[i].node == bans[b];
		}
		done = build(h, want, wants);
		if (done)
			prune(h);
		done = done && cl->evicted.count && move(h, h->mode == SL_CL_CONSOLIDATE);
		if (done) {
			commit(h);
			return true;
		}
		back_to(h, 0, 0);
		cl->gains = gains;
		if (h->first == SL_CL_NO_NODE || ban_count == BANS_MOST)
			return false;
		bans[ban_count++] = h->first;
	}
	return false;
}

/* What keeps it from getting more by the rules, if room is all that it lacks. */
static void explain(struct hunt *h, struct sl_cl_group *group)
{
	const struct sl_cluster *cl = h->cl;
	struct sl_pending_because *because = &group->because;
	const struct sl_quantity *wants = &group->order.wants;

	if (h->pool_short) {
		*because = (struct sl_pending_because){.reason = SL_PENDING_POOL,
			.wanted = h->pool_wanted,
			.available = h->pool_left};
		return;
	}
	if (h->mode != SL_CL_RECLAIM || because->reason == SL_PENDING_GANG)
		return;
	for (uint32_t i = h->job->project; i != SL_PROJECT_NONE;
		i = cl->tree.all[i].parent) {
		const struct sl_project *level = &cl->tree.all[i];

		for (int r = 0; r < SL_RESOURCES; r++) {
			if (!wants->of[r] ||
				level->has.of[r] + wants->of[r] <= level->share.of[r])
				continue;
			*because = (struct sl_pending_because){.reason = SL_PENDING_SHARE,
				.project = level->id,
				.resource = (enum sl_resource)r,
				.wanted = wants->of[r],
				.available = level->share.of[r] - level->has.of[r]};
			return;
		}
	}
}

/*
 * What was reclaimed may not reclaim back before something has happened outside, unless it is guaranteed. Taking goes
 * by whole jobs: two projects could each take what the other has above its quota, and what of it is within, for ever.
 */
static bool takes_back(const struct hunt *h, const struct sl_quantity *wants)
{
	const struct sl_cluster *cl = h->cl;

	if (h->job->taken_at != cl->outside)
		return false;
	for (uint32_t i = h->job->project; i != SL_PROJECT_NONE;
		i = cl->tree.all[i].parent) {
		const struct sl_project *level = &cl->tree.all[i];

		for (int r = 0; r < SL_RESOURCES; r++) {
			int64_t quota = level->rules.quota.of[r];

			if (wants->of[r] && quota != SL_QUOTA_ALL &&
				level->has.of[r] + wants->of[r] > quota)
				return true;
		}
	}
	return false;
}

bool sl_cl_search(struct sl_cluster *cl, struct sl_cl_group *group, enum sl_cl_mode mode)
{
	struct sl_cl_want want[SL_CL_PARTS];
	struct hunt h = {.cl = cl, .job = group->heap[0], .mode = mode};
	uint32_t extra, wants = sl_cl_job_wants(h.job, want, &extra);
	struct sl_pending_because because;

	/* Only who stays within limit and quota; a project at its limit may still take from itself. */
	if (!sl_cl_allowed(cl, h.job, &group->order.wants, &because) &&
		(mode != SL_CL_PREEMPT || because.reason != SL_PENDING_LIMIT))
		return false;
	if (!sl_cl_preemptible(h.job) && !sl_tree_allows(&cl->tree, h.job->project,
						 &group->order.wants, true, NULL, NULL))
		return false;
	for (uint32_t w = 0; w < wants; w++) {
		if (!sl_cl_ever(cl, want[w].class))
			return false;
	}
	if (mode == SL_CL_CONSOLIDATE &&
		group->order.wants.of[SL_RES_GPU] > cl->later_gpu_milli)
		return false;
	/* Who can be moved need not be stopped. */
	if (mode == SL_CL_RECLAIM && group->tried[SL_CL_CONSOLIDATE] != cl->version &&
		sl_cl_search(cl, group, SL_CL_CONSOLIDATE))
		return true;
	if (mode == SL_CL_RECLAIM &&
		SL_MUTANT(CLUSTER_TAKES_BACK, takes_back(&h, &group->order.wants), false))
		return false;
	if (hunt(&h, group, want, wants))
		return true;
	if (mode == SL_CL_CONSOLIDATE) {
		h.by_size = true;
		return hunt(&h, group, want, wants);
	}
	explain(&h, group);
	return false;
}
