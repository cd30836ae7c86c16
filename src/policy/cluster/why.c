/*
 * why - what keeps a job from running, and what would let it
 *
 * A failed start says what is short (sl_cl_why_no_room). A failed search makes that more exact. It
 * is repeated without a passing obstacle: a minimum runtime, no host memory for a victim, the rule
 * against taking back. Or it is repeated as if the job came before those of higher priority. If the
 * repetition would succeed, what it left out is the reason. These trials stop nothing, and have a
 * budget of their own, so that explaining never takes from deciding.
 */
#include "policy/cluster/search.h"

/* --- No room. --- */

/* Tasks of this class that all empty nodes have room for. */
static uint64_t room_of_empty(struct sl_cluster *cl, struct sl_cl_class *class)
{
	const struct sl_need *need = &class->need;

	if (class->most_at == cl->nodes_version)
		return class->most;
	class->most_at = cl->nodes_version;
	class->most = 0;
	for (uint32_t i = 0; i < cl->nodes_high; i++) {
		const struct sl_fit_node *node = &cl->fit[i];
		uint64_t here = UINT32_MAX;

		if (!cl->node[i].used || !sl_fit_ever(node, need))
			continue;
		if (need->cpu_milli)
			here = node->cpu_milli / need->cpu_milli;
		if (need->memory_mib)
			here = sl_min_u64(here, node->memory_mib / need->memory_mib);
		if (need->gpus) {
			uint32_t milli = sl_fit_milli(node, need);
			uint32_t each = SL_FIT_WHOLE / (milli ? milli : 1);

			here = sl_min_u64(here, (uint64_t)(uint32_t)__builtin_popcount(
							sl_fit_usable(node, need)) *
							each / need->gpus);
		}
		class->most += here;
	}
	return class->most;
}

static struct sl_cl_lack look(const struct sl_cluster *cl, const struct sl_need *need)
{
	struct sl_need gpus = *need, cores = *need;
	struct sl_cl_lack lack = {.known = true};

	gpus.cpu_milli = gpus.memory_mib = cores.memory_mib = 0;
	for (uint32_t i = 0; i < cl->nodes_high; i++) {
		const struct sl_fit_node *node = &cl->fit[i];
		const struct sl_room *room = &node->later;

		if (!cl->node[i].used || node->closed || !sl_fit_ever(node, need))
			continue;
		for (uint32_t mask = sl_fit_usable(node, need); mask; mask &= mask - 1)
			lack.free[SL_RES_GPU] +=
				sl_fit_above_zero(room->left[__builtin_ctz(mask)]);
		if (!sl_fit_in(node, room, &gpus))
			continue;
		lack.fits[SL_RES_GPU] = true;
		lack.free[SL_RES_CPU] += room->cpu_milli;
		if (!sl_fit_in(node, room, &cores))
			continue;
		lack.fits[SL_RES_CPU] = true;
		lack.free[SL_RES_MEMORY] += room->memory_mib;
	}
	return lack;
}

/* A look costs one pass over all nodes. So in a large cluster, the answer for most kinds of tasks
 * is a few cycles old. */
static const struct sl_cl_lack *lack_of(struct sl_cluster *cl, struct sl_cl_class *class)
{
	uint64_t cost = 1 + cl->nodes_high / 4;

	if (class->lack.known && cl->lack_effort < cost)
		return &class->lack;
	cl->lack_effort -= sl_min_u64(cl->lack_effort, cost);
	class->lack = look(cl, &class->need);
	return &class->lack;
}

struct sl_pending_because sl_cl_why_no_room(
	struct sl_cluster *cl, const struct sl_cl_want *want, uint32_t most)
{
	const struct sl_need *need = &want->class->need;
	struct sl_pending_because because = {.reason = SL_PENDING_GANG};
	const struct sl_cl_lack *lack;
	int64_t wanted[SL_RESOURCES] = {0, need->cpu_milli, need->memory_mib};

	if (!sl_cl_ever(cl, want->class))
		return sl_cl_never_because(cl, need);
	because.wanted = want->count;
	because.available = (int64_t)room_of_empty(cl, want->class);
	if (because.available < because.wanted) {
		because.reason = SL_PENDING_GANG_NEVER;
		return because;
	}
	because.available = most;
	if (most && want->count > 1)
		return because;
	lack = lack_of(cl, want->class);
	wanted[SL_RES_GPU] = (int64_t)need->gpus * need->gpu_milli;
	if (need->gpu_mib && cl->least_gpu_mib)
		wanted[SL_RES_GPU] = sl_cl_guess(cl, need).of[SL_RES_GPU];
	because.resource = need->gpus && !lack->fits[SL_RES_GPU]        ? SL_RES_GPU
			   : need->cpu_milli && !lack->fits[SL_RES_CPU] ? SL_RES_CPU
									: SL_RES_MEMORY;
	/* Each resource alone would suffice: report the first, which the gang's other tasks use
	 * up. */
	if (because.resource == SL_RES_MEMORY && !need->memory_mib)
		because.resource = need->gpus ? SL_RES_GPU : SL_RES_CPU;
	because.wanted = wanted[because.resource] * want->count;
	because.available = lack->free[because.resource];
	because.reason = because.wanted <= because.available ? SL_PENDING_FRAGMENTS
							     : SL_PENDING_NO_ROOM;
	return because;
}

/* --- What a search found in its way. --- */

/* Do other projects have any of it that could be reclaimed for the project? */
static bool others_have(const struct sl_tree *tree, uint32_t project, enum sl_resource r)
{
	uint32_t parent = tree->all[project].parent;
	uint32_t i =
		parent == SL_PROJECT_NONE ? tree->roots : tree->all[parent].first_child;

	while (i != SL_PROJECT_NONE && (i == project || !tree->all[i].has.of[r]))
		i = tree->all[i].next;
	return i != SL_PROJECT_NONE;
}

/* Nothing is reclaimed for a project above its share: the reason, if that resource is short. */
static void explain_share(const struct sl_search *h, const struct sl_quantity *wants,
	struct sl_pending_because *because)
{
	const struct sl_cluster *cl = h->cl;
	enum sl_resource r = because->resource;

	if (because->reason != SL_PENDING_NO_ROOM)
		return;
	for (uint32_t i = h->job->project; i != SL_PROJECT_NONE;
		i = cl->tree.all[i].parent) {
		const struct sl_project *level = &cl->tree.all[i];

		if (level->has.of[r] + wants->of[r] <= level->share.of[r] ||
			!others_have(&cl->tree, i, r))
			continue;
		*because = (struct sl_pending_because){.reason = SL_PENDING_SHARE,
			.project = level->id,
			.resource = r,
			.wanted = wants->of[r],
			.available = level->share.of[r] - level->has.of[r]};
		return;
	}
}

/* Repeats the search without passing obstacles. */
static bool would_help(struct sl_search *h, struct sl_cl_group *group,
	const struct sl_cl_want *want, uint32_t wants, bool above,
	struct sl_cl_would *would)
{
	struct sl_cluster *cl = h->cl;
	struct sl_search trial = {.cl = cl,
		.job = h->job,
		.mode = h->mode,
		.dry = true,
		.relaxed = true,
		.above = above};
	uint64_t effort = cl->effort;
	bool helps;

	cl->dry = true;
	cl->effort = cl->why_effort;
	helps = cl->effort && sl_search_run(&trial, group, want, wants);
	cl->why_effort = cl->effort;
	cl->effort = effort;
	cl->dry = false;
	*would = trial.would;
	return helps;
}

/* Would it run if more tasks might be moved? */
static void explain_moves(struct sl_search *h, struct sl_cl_group *group,
	const struct sl_cl_want *want, uint32_t wants)
{
	struct sl_cl_would would;

	if (group->because.reason == SL_PENDING_MOVE_BUDGET)
		group->because = group->room;
	if (!h->moves_short)
		return;
	sl_cl_wake(h->cl, sl_cl_moves_again(h->cl));
	if (would_help(h, group, want, wants, false, &would))
		group->because = (struct sl_pending_because){
			.reason = SL_PENDING_MOVE_BUDGET, .available = h->cl->move_most};
}

static void explain_reclaim(struct sl_search *h, struct sl_cl_group *group,
	const struct sl_cl_want *want, uint32_t wants, bool back)
{
	struct sl_pending_because *because = &group->because;
	struct sl_cl_would would;

	if (because->reason == SL_PENDING_MOVE_BUDGET)
		return;
	*because = group->room;
	if ((!back && !h->pool_short && h->barred_until == SL_NS_NEVER) ||
		!would_help(h, group, want, wants, false, &would)) {
		explain_share(h, &group->order.wants, because);
		return;
	}
	if (h->pool_short)
		*because = (struct sl_pending_because){.reason = SL_PENDING_POOL,
			.wanted = h->pool_wanted,
			.available = h->pool_left};
	else if (!back)
		*because = (struct sl_pending_because){.reason = SL_PENDING_RUNTIME,
			.wanted = (int64_t)sl_sub_sat(h->barred_until, h->cl->now)};
	because->would_reclaim = true;
	because->other = would.from;
}

/* A preemptible job of its project has a higher priority. */
static bool has_above(const struct sl_cluster *cl, const struct sl_cl_job *job)
{
	for (const struct sl_cl_rank *rank = cl->ranks[job->project]; rank;
		rank = rank->next) {
		if (rank->priority > job->priority && !sl_list_is_empty(&rank->jobs))
			return true;
	}
	return false;
}

static void explain_preempt(struct sl_search *h, struct sl_cl_group *group,
	const struct sl_cl_want *want, uint32_t wants)
{
	struct sl_pending_because *because = &group->because;
	uint64_t project = h->cl->tree.all[h->job->project].id;
	struct sl_cl_would would;

	if (h->barred_until != SL_NS_NEVER &&
		would_help(h, group, want, wants, false, &would))
		*because = (struct sl_pending_because){.reason = SL_PENDING_RUNTIME,
			.project = project,
			.wanted = (int64_t)sl_sub_sat(h->barred_until, h->cl->now)};
	else if (has_above(h->cl, h->job) &&
		 would_help(h, group, want, wants, true, &would))
		*because = (struct sl_pending_because){.reason = SL_PENDING_PRIORITY,
			.project = project,
			.ahead = would.jobs};
}

void sl_search_explain(struct sl_search *h, struct sl_cl_group *group,
	const struct sl_cl_want *want, uint32_t wants, bool back)
{
	if (h->mode == SL_CL_CONSOLIDATE)
		explain_moves(h, group, want, wants);
	else if (h->mode == SL_CL_RECLAIM)
		explain_reclaim(h, group, want, wants, back);
	else if (h->mode == SL_CL_PREEMPT)
		explain_preempt(h, group, want, wants);
}
