/*
 * cost - which tasks would have to leave one node so that a task fits there
 *
 * Two plans compete: one task whose leaving suffices, and a greedy set. The greedy set first
 * empties GPUs, the cheapest first, then frees cores and memory; tasks that prove unnecessary are
 * dropped at the end. With few tasks on the node, all sets that could be cheaper are tried, too.
 * With more tasks, the result is exact for one victim and greedy for several. Room is computed on a
 * copy.
 */
#include "policy/cluster/search.h"

#include <string.h>

#include "policy/mutant.h"

/* All sets of this many tasks are tried: about 50us at most. */
#define EXACT_MOST 9

static void add_room(struct sl_room *room, const struct sl_cl_task *task, int sign)
{
	const struct sl_need need = sl_cl_moves(task, task->place.node);

	room->cpu_milli += sign * (int64_t)need.cpu_milli;
	room->memory_mib += sign * (int64_t)need.memory_mib;
	for (uint32_t mask = task->place.gpu_mask; mask; mask &= mask - 1) {
		int16_t *left = &room->left[__builtin_ctz(mask)];

		room->whole = (int16_t)(room->whole - (*left == SL_FIT_WHOLE));
		*left = (int16_t)(*left + sign * task->place.milli);
		room->whole = (int16_t)(room->whole + (*left == SL_FIT_WHOLE));
		room->gpu_milli += sign * task->place.milli;
	}
}

uint32_t sl_search_spare(const struct sl_cl_part *part)
{
	uint32_t has = sl_cl_placed(part) + part->done;

	return has > part->least ? has - part->least : 0;
}

void sl_search_weigh(const struct sl_search *h, const struct sl_need *need,
	struct sl_search_plan *plan)
{
	bool moves = h->mode == SL_CL_CONSOLIDATE;

	plan->moves = moves;
	/* Without a need for GPUs, one is worth more than all cores of a node. */
	plan->per_gpu = moves ? 0 : need->gpus ? 1 : 1000;
	plan->per_cpu = moves || need->gpus ? 0 : 1;
}

/* Of `tasks` tasks with `each`. No sum of HERE_MOST of them overflows. */
static sl_search_cost_t cost_of(
	const struct sl_search_plan *plan, const struct sl_quantity *each, uint32_t tasks)
{
	uint64_t milli = (uint64_t)each->of[SL_RES_GPU] * plan->per_gpu +
			 (uint64_t)each->of[SL_RES_CPU] * plan->per_cpu;

	milli = sl_min_u64(milli * tasks, UINT64_C(1) << 35);
	return milli * SL_SEARCH_ONE_MILLI + tasks * SL_SEARCH_ONE_TASK;
}

sl_search_cost_t sl_search_cost(
	const struct sl_search_plan *plan, const struct sl_cl_task *task)
{
	const struct sl_cl_job *job = task->part->job;
	sl_search_cost_t rest = SL_SEARCH_ONE_TASK;
	uint32_t of_part = 0;
	bool torn = false;

	for (uint32_t i = 0; i < plan->count; i++)
		of_part += plan->task[i]->part == task->part;
	if (of_part < sl_search_spare(task->part) || (plan->moves && sl_cl_movable(job)))
		return cost_of(plan, &task->booked, 1);
	for (uint32_t p = 0; p < job->parts; p++) {
		uint32_t chosen = 0;

		for (uint32_t i = 0; i < plan->count; i++)
			chosen += plan->task[i]->part == job->part[p];
		torn |= chosen > sl_search_spare(job->part[p]);
		rest += cost_of(plan, &job->part[p]->each,
			job->part[p]->in[SL_TASK_RUNNING] - chosen);
	}
	return torn ? 0 : rest;
}

/* Smaller goes first: by the job; within a job, higher numbers first. */
static uint64_t rank_of(const struct sl_cl_task *task)
{
	return ((uint64_t)task->part->job->rank << 32) + (UINT32_MAX - task->number);
}

bool sl_search_before(const struct sl_cl_task *a, sl_search_cost_t cost_a,
	const struct sl_cl_task *b, sl_search_cost_t cost_b)
{
	if (a->part->job->tier != b->part->job->tier)
		return a->part->job->tier < b->part->job->tier;
	if (cost_a != cost_b)
		return SL_MUTANT(CLUSTER_VICTIMS_MANY, cost_a<cost_b, cost_a> cost_b);
	return rank_of(a) < rank_of(b);
}

struct scene {
	const struct sl_fit_node *fit;
	const struct sl_need *need;
	struct sl_room room;
	uint32_t gpus, usable; /* GPUs it may use: still, and at first */
	uint32_t milli;
	struct sl_cl_task *here[HERE_MOST];
	bool gone[HERE_MOST]; /* in the plan */
	uint32_t count, alone;
	struct sl_search_plan *plan;
};

static void choose(struct scene *s, uint32_t at)
{
	struct sl_search_plan *plan = s->plan;

	plan->cost[plan->count] = sl_search_cost(plan, s->here[at]);
	plan->lost += plan->cost[plan->count];
	plan->at[plan->count] = at;
	plan->task[plan->count++] = s->here[at];
	add_room(&s->room, s->here[at], 1);
	s->gone[at] = true;
}

static void unchoose(struct scene *s, uint32_t count)
{
	struct sl_search_plan *plan = s->plan;

	while (plan->count > count) {
		uint32_t at = plan->at[--plan->count];

		plan->lost -= plan->cost[plan->count];
		add_room(&s->room, s->here[at], -1);
		s->gone[at] = false;
	}
}

/* A task that may go. does: with it nothing is lacking any more. */
struct choice {
	uint32_t index;
	sl_search_cost_t cost;
	bool does;
};

/* A task that suffices comes before one that does not; then the order of victims decides. */
static void take_better(const struct scene *s, struct choice *best, struct choice other)
{
	if (best->index != UINT32_MAX &&
		(other.does != best->does
				? !other.does
				: !sl_search_before(s->here[other.index], other.cost,
					  s->here[best->index], best->cost)))
		return;
	*best = other;
}

/* Finds the cheapest way to free s->milli on this GPU; false: there is none. */
static bool empty_gpu(struct scene *s, uint32_t gpu, uint64_t *rank)
{
	*rank = 0;
	while (s->room.left[gpu] < (int32_t)s->milli) {
		struct choice best = {.index = UINT32_MAX};

		for (uint32_t i = 0; i < s->count; i++) {
			const struct sl_cl_task *task = s->here[i];
			sl_search_cost_t cost;
			bool does;

			if (s->gone[i] || !(task->place.gpu_mask >> gpu & 1))
				continue;
			cost = sl_search_cost(s->plan, task);
			does = s->room.left[gpu] + task->place.milli >= (int32_t)s->milli;
			take_better(s, &best, (struct choice){i, cost, does});
		}
		if (best.index == UINT32_MAX)
			return false;
		*rank = sl_max_u64(*rank, rank_of(s->here[best.index]));
		choose(s, best.index);
	}
	return true;
}

static bool empty_gpus(struct scene *s)
{
	for (uint32_t done = 0; done < s->need->gpus; done++) {
		uint32_t best_gpu = 0, before = s->plan->count;
		uint64_t best = SL_SEARCH_NEVER, best_rank = 0, rank;

		for (uint32_t gpu = 0; gpu < s->fit->gpus && best; gpu++) {
			sl_search_cost_t lost = s->plan->lost;
			bool can = s->gpus >> gpu & 1 && empty_gpu(s, gpu, &rank);

			lost = s->plan->lost - lost;
			unchoose(s, before);
			if (!can || lost > best || (lost == best && rank >= best_rank))
				continue;
			best = lost;
			best_rank = rank;
			best_gpu = gpu;
		}
		if (best == SL_SEARCH_NEVER || !empty_gpu(s, best_gpu, &rank))
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

/* Frees cores and memory, of any task. */
static bool free_rest(struct scene *s)
{
	while (lacks_rest(s)) {
		struct choice best = {.index = UINT32_MAX};

		for (uint32_t i = 0; i < s->count; i++) {
			struct sl_need need;
			sl_search_cost_t cost;
			bool does;

			if (s->gone[i])
				continue;
			need = sl_cl_moves(s->here[i], s->here[i]->place.node);
			cost = sl_search_cost(s->plan, s->here[i]);
			/* It keeps its cores and memory: its going does not help. */
			if (s->here[i]->keeps)
				continue;
			does = s->room.cpu_milli + need.cpu_milli >= s->need->cpu_milli &&
			       s->room.memory_mib + need.memory_mib >=
				       s->need->memory_mib;

			take_better(s, &best, (struct choice){i, cost, does});
		}
		if (best.index == UINT32_MAX)
			return false;
		choose(s, best.index);
	}
	return true;
}

static bool fits_now(const struct scene *s, const struct sl_cl_task *wanted)
{
	if (sl_cl_is_pinned(wanted))
		return sl_cl_room_at(s->fit, &s->room, s->need, wanted->place);
	return sl_fit_in(s->fit, &s->room, s->need);
}

/* The task whose going alone makes room; UINT32_MAX: none does. */
static uint32_t alone_suffices(
	struct scene *s, const struct sl_cl_task *wanted, sl_search_cost_t *lost)
{
	uint32_t best = UINT32_MAX;

	*lost = SL_SEARCH_NEVER;
	for (uint32_t i = 0; i < s->count; i++) {
		bool does;
		sl_search_cost_t cost;

		choose(s, i);
		cost = s->plan->lost;
		does = fits_now(s, wanted);
		unchoose(s, 0);
		if (!does || (best != UINT32_MAX && !sl_search_before(s->here[i], cost,
							    s->here[best], *lost)))
			continue;
		best = i;
		*lost = cost;
	}
	return best;
}

/* Makes the plan exactly these tasks. */
static void choose_all(struct scene *s, const uint32_t *at, uint32_t count)
{
	unchoose(s, 0);
	for (uint32_t i = 0; i < count; i++)
		choose(s, at[i]);
}

/* Sets tier and rank of the most valuable task. */
static void value(struct sl_search_plan *plan)
{
	plan->tier = 0;
	plan->rank = 0;
	for (uint32_t i = 0; i < plan->count; i++) {
		uint32_t tier = plan->task[i]->part->job->tier;

		plan->tier = tier > plan->tier ? tier : plan->tier;
		plan->rank = sl_max_u64(plan->rank, rank_of(plan->task[i]));
	}
}

/* The cheapest set so far. */
struct best {
	uint32_t at[EXACT_MOST], count, looks, tier;
	sl_search_cost_t lost;
	uint64_t rank;
};

static bool is_better(const struct sl_search_plan *plan, const struct best *best)
{
	if (plan->tier != best->tier)
		return plan->tier < best->tier;
	return plan->lost != best->lost ? plan->lost < best->lost
					: plan->rank < best->rank;
}

/* Tries all sets with the plan's tasks and some from `from` on that can still be the cheapest. At
 * most 2^EXACT_MOST. */
static void look_further(struct scene *s, const struct sl_cl_task *wanted, uint32_t from,
	struct best *best)
{
	struct sl_search_plan *plan = s->plan;

	best->looks++;
	value(plan);
	if (!is_better(plan, best))
		return;
	if (fits_now(s, wanted)) {
		best->tier = plan->tier;
		best->lost = plan->lost;
		best->rank = plan->rank;
		best->count = plan->count;
		memcpy(best->at, plan->at, plan->count * sizeof(best->at[0]));
		return;
	}
	for (uint32_t i = from; i < s->count; i++) {
		uint32_t count = plan->count;

		choose(s, i);
		look_further(s, wanted, i + 1, best);
		unchoose(s, count);
	}
}

/* Replaces the plan by a cheaper set, if there is one. Returns how many were tried. */
static uint32_t look_at_all(struct scene *s, const struct sl_cl_task *wanted)
{
	struct best best = {.count = UINT32_MAX, .tier = UINT32_MAX};
	uint32_t at[HERE_MOST], count = s->plan->count;
	bool fits;

	value(s->plan);
	if (count) {
		best.tier = s->plan->tier;
		best.lost = s->plan->lost;
		best.rank = s->plan->rank;
	}
	memcpy(at, s->plan->at, count * sizeof(at[0]));
	unchoose(s, 0);
	for (uint32_t i = 0; i < s->count; i++)
		choose(s, i);
	fits = fits_now(s, wanted);
	unchoose(s, 0);
	if (fits)
		look_further(s, wanted, 0, &best);
	if (best.count == UINT32_MAX)
		choose_all(s, at, count);
	else
		choose_all(s, best.at, best.count);
	return best.looks;
}

/* No set frees less: it is one task, and frees no more than the GPUs lack. */
static bool is_least(const struct scene *s)
{
	uint32_t shorts[SL_FIT_GPUS_MAX], count = 0;
	uint64_t sum = 0;

	value(s->plan);
	if (s->plan->count != 1 || s->plan->per_cpu || s->plan->tier)
		return false;
	for (uint32_t gpu = 0; gpu < s->fit->gpus; gpu++) {
		int32_t left = s->fit->later.left[gpu];
		uint32_t at = count, lacks;

		if (!(s->usable >> gpu & 1))
			continue;
		lacks = left < (int32_t)s->milli ? (uint32_t)((int32_t)s->milli - left)
						 : 0;
		for (count++; at && shorts[at - 1] > lacks; at--)
			shorts[at] = shorts[at - 1];
		shorts[at] = lacks;
	}
	for (uint32_t i = 0; i < s->need->gpus && i < count; i++)
		sum += shorts[i];
	return s->plan->lost / SL_SEARCH_ONE_MILLI <= sum;
}

/* Drops tasks that prove unnecessary. */
static void trim(struct scene *s, const struct sl_cl_task *wanted)
{
	struct sl_search_plan *plan = s->plan;
	uint32_t keep[HERE_MOST], count = 0, most = plan->count;

	for (uint32_t i = 0; i < most; i++) {
		add_room(&s->room, plan->task[i], -1);
		if (SL_MUTANT(CLUSTER_UNTRIMMED, fits_now(s, wanted), false))
			continue;
		add_room(&s->room, plan->task[i], 1);
		keep[count++] = plan->at[i];
	}
	for (uint32_t i = 0; i < most; i++)
		s->gone[plan->at[i]] = false;
	for (uint32_t i = 0; i < count; i++)
		add_room(&s->room, s->here[keep[i]], -1);
	plan->count = 0;
	plan->lost = 0;
	choose_all(s, keep, count);
}

/* Host memory has room for the task, if it goes there. */
bool sl_search_has_pool(struct sl_search *h, const struct sl_cl_task *task)
{
	const struct sl_cl_job *job = task->part->job;
	const struct sl_cl_node *node = &h->cl->node[task->place.node];

	if (!(job->flags & SL_JOB_PARKS) || h->relaxed ||
		!SL_MUTANT(CLUSTER_POOL_OPEN,
			node->parked_mib + job->park_mib > node->pool_mib, false))
		return true;
	if (job->flags & SL_JOB_GIVES_UP)
		return false;
	h->pool_short = true;
	h->pool_wanted = (int64_t)job->park_mib;
	h->pool_left = (int64_t)sl_sub_sat(node->pool_mib, node->parked_mib);
	return false;
}

sl_ns sl_search_spared(const struct sl_search *h, const struct sl_cl_task *task)
{
	if (h->relaxed)
		return 0;
	return sl_search_moves(h, task->part->job) ? sl_cl_stays_until(h->cl, task)
						   : task->spared_until;
}

bool sl_search_has_move(struct sl_search *h)
{
	if (h->relaxed || h->moving < sl_cl_moves_left(h->cl))
		return true;
	h->moves_short = true;
	return false;
}

static bool may_go(struct sl_search *h, const struct sl_cl_task *task)
{
	const struct sl_cl_job *job = task->part->job;
	sl_ns spared = sl_search_spared(h, task);

	if (task->state != SL_TASK_RUNNING || job->mark != h->mark)
		return false;
	if (spared > h->cl->now) {
		sl_cl_wake(h->cl, spared);
		h->barred_until = sl_min_u64(h->barred_until, spared);
		return false;
	}
	if (!sl_search_moves(h, job))
		return job->flags & SL_JOB_GIVES_UP || sl_search_has_pool(h, task);
	/* On its node it frees no cores. */
	return task->part->class->need.gpus && sl_search_has_pool(h, task) &&
	       sl_search_has_move(h);
}

/* Plans one task whose going alone makes room, or several, whichever is cheaper. False: no set was
 * found. */
static bool plan_some(struct scene *s, const struct sl_cl_task *wanted)
{
	sl_search_cost_t lost;
	bool greedy;

	s->alone = alone_suffices(s, wanted, &lost);
	greedy = empty_gpus(s) && free_rest(s) && fits_now(s, wanted);
	if (s->alone != UINT32_MAX &&
		(!greedy || SL_MUTANT(CLUSTER_VICTIMS_MANY, lost < s->plan->lost, false)))
		choose_all(s, &s->alone, 1);
	else if (!greedy)
		unchoose(s, 0);
	return s->plan->count;
}

bool sl_search_evaluate(struct sl_search *h, uint32_t number,
	const struct sl_cl_task *wanted, struct sl_search_plan *plan)
{
	struct sl_cluster *cl = h->cl;
	struct sl_need need = sl_cl_moves(wanted, number);
	struct scene s;
	uint32_t looks;
	bool pinned;

	plan->count = 0;
	plan->lost = plan->rank = 0;
	sl_search_weigh(h, &wanted->part->class->need, plan);
	if (cl->fit[number].closed ||
		!sl_fit_ever(&cl->fit[number], &wanted->part->class->need))
		return false;
	if (wanted->parked && wanted->place.node != number)
		return false;
	s.fit = &cl->fit[number];
	s.need = &need;
	s.room = s.fit->later;
	pinned = sl_cl_is_pinned(wanted);
	s.gpus = s.usable =
		pinned ? wanted->place.gpu_mask : sl_fit_usable(s.fit, s.need);
	s.milli = pinned ? wanted->place.milli : sl_fit_milli(s.fit, s.need);
	s.count = 0;
	s.plan = plan;
	sl_list_foreach (link, &cl->node[number].tasks) {
		struct sl_cl_task *task = SL_CL_ENTRY(link, sl_cl_task, on_node);

		if (may_go(h, task) && s.count < HERE_MOST) {
			s.gone[s.count] = false;
			s.here[s.count++] = task;
		}
	}
	looks = 4 + s.count * (2 + s.need->gpus);
	if (plan_some(&s, wanted))
		trim(&s, wanted);
	if (s.count <= EXACT_MOST && !is_least(&s) &&
		SL_MUTANT(CLUSTER_VICTIMS_MANY, true, false) &&
		SL_MUTANT(CLUSTER_UNTRIMMED, true, false))
		looks += 3 * look_at_all(&s, wanted);
	cl->effort -= sl_min_u64(cl->effort, looks);
	value(plan);
	return plan->count;
}
