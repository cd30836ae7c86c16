/*
 * fit - see the header
 *
 * The sums (gpu_milli, whole) are updated with every GPU that changes, so a question about a node
 * costs at most a loop over its GPUs.
 */
#include "policy/placement/fit.h"

#include "policy/mutant.h"

bool sl_need_is_same(const struct sl_need *a, const struct sl_need *b)
{
	return a->cpu_milli == b->cpu_milli && a->memory_mib == b->memory_mib &&
	       a->gpus == b->gpus && a->gpu_milli == b->gpu_milli &&
	       a->compute_milli == b->compute_milli && a->gpu_mib == b->gpu_mib &&
	       a->models == b->models && a->pools == b->pools && a->only == b->only;
}

uint32_t sl_fit_milli(const struct sl_fit_node *node, const struct sl_need *need)
{
	uint64_t milli;

	if (!need->gpus)
		return 0;
	if (!need->gpu_mib)
		return need->gpu_milli;
	if (need->gpu_mib > node->gpu_mib)
		return SL_FIT_WHOLE + 1;
	milli = ((uint64_t)SL_FIT_WHOLE * need->gpu_mib + node->gpu_mib - 1) /
		node->gpu_mib;
	return milli > need->gpu_milli ? (uint32_t)milli : need->gpu_milli;
}

static bool allows(uint64_t mask, uint8_t bit)
{
	return !mask || (bit < 64 && (mask >> bit & 1));
}

/* What `only` allows, open or not: where GPUs are sorted (states.c), `shut` does not say which. */
static uint32_t named(const struct sl_fit_node *node, const struct sl_need *need)
{
	return SL_MUTANT(CLUSTER_ONLY_OPEN, need->only, 0) ? need->only >> node->first
							   : UINT32_MAX;
}

static uint32_t first_gpus(uint16_t count)
{
	return count < 32 ? (UINT32_C(1) << count) - 1 : UINT32_MAX;
}

uint32_t sl_fit_usable(const struct sl_fit_node *node, const struct sl_need *need)
{
	return first_gpus(node->gpus) & ~node->shut & named(node, need);
}

bool sl_fit_ever(const struct sl_fit_node *node, const struct sl_need *need)
{
	if (!allows(need->pools, node->pool) || need->cpu_milli > node->cpu_milli ||
		need->memory_mib > node->memory_mib)
		return false;
	if (!need->gpus)
		return true;
	return need->gpus <= (uint32_t)__builtin_popcount(sl_fit_usable(node, need)) &&
	       allows(need->models, node->model) &&
	       sl_fit_milli(node, need) <= SL_FIT_WHOLE;
}

bool sl_fit_in(const struct sl_fit_node *node, const struct sl_room *room,
	const struct sl_need *need)
{
	int32_t milli;
	uint16_t enough = 0;

	if (node->closed || need->cpu_milli > room->cpu_milli ||
		need->memory_mib > room->memory_mib || !sl_fit_ever(node, need))
		return false;
	if (!need->gpus)
		return true;
	milli = (int32_t)sl_fit_milli(node, need);
	if (milli == SL_FIT_WHOLE && !need->only)
		return room->whole >= need->gpus;
	for (uint16_t i = 0; i < node->gpus; i++)
		enough += room->left[i] >= milli && named(node, need) >> i & 1;
	return enough >= need->gpus;
}

/* The fullest GPU of these that suffices; of equals the lowest number. */
static uint16_t tightest(const struct sl_fit_node *node, const struct sl_room *room,
	int32_t milli, uint32_t gpus)
{
	uint16_t best = node->gpus;

	for (uint16_t i = 0; i < node->gpus; i++)
		if (gpus >> i & 1 && room->left[i] >= milli &&
			(best == node->gpus || room->left[i] < room->left[best]))
			best = i;
	return best;
}

uint32_t sl_fit_gpus(const struct sl_fit_node *node, const struct sl_room *room,
	const struct sl_need *need)
{
	int32_t milli = (int32_t)sl_fit_milli(node, need);
	uint32_t mask = 0, may = named(node, need);

	for (uint16_t n = 0; n < need->gpus; n++) {
		uint16_t gpu = tightest(node, room, milli, may & ~mask);

		if (gpu < node->gpus)
			mask |= UINT32_C(1) << gpu;
	}
	return mask;
}

/* sign -1: the room shrinks by a task at place; 1: it grows. */
static void add(
	struct sl_room *room, const struct sl_need *need, struct sl_place place, int sign)
{
	room->cpu_milli += sign * (int64_t)need->cpu_milli;
	room->memory_mib += sign * (int64_t)need->memory_mib;
	for (uint32_t mask = place.gpu_mask; mask; mask &= mask - 1) {
		int16_t *left = &room->left[__builtin_ctz(mask)];

		room->whole = (int16_t)(room->whole - (*left == SL_FIT_WHOLE));
		room->gpu_milli -= sl_fit_above_zero(*left);
		*left = (int16_t)(*left + sign * place.milli);
		room->gpu_milli += sl_fit_above_zero(*left);
		room->whole = (int16_t)(room->whole + (*left == SL_FIT_WHOLE));
	}
}

/* A shut GPU has all of it taken once more than tasks have it. */
static void add_gpus(struct sl_fit_node *node, uint32_t gpus, int sign)
{
	const struct sl_need none = {0};
	const struct sl_place all = {.gpu_mask = gpus, .milli = SL_FIT_WHOLE};

	add(&node->now, &none, all, sign);
	add(&node->later, &none, all, sign);
}

void sl_fit_resize(struct sl_fit_node *node, uint32_t cpu_milli, uint32_t memory_mib,
	uint16_t gpus, uint32_t shut)
{
	uint32_t had = first_gpus(node->gpus), has = first_gpus(gpus);
	int64_t cpu = (int64_t)cpu_milli - node->cpu_milli;
	int64_t memory = (int64_t)memory_mib - node->memory_mib;

	node->now.cpu_milli += cpu;
	node->later.cpu_milli += cpu;
	node->now.memory_mib += memory;
	node->later.memory_mib += memory;
	node->cpu_milli = cpu_milli;
	node->memory_mib = memory_mib;
	shut = (shut & has) | (had & ~has);
	add_gpus(node, has & ~had, 1);
	add_gpus(node, shut & ~node->shut, -1);
	add_gpus(node, node->shut & ~shut, 1);
	node->gpus = (uint16_t)(gpus > node->gpus ? gpus : node->gpus);
	node->shut = shut;
}

void sl_fit_node_init(struct sl_fit_node *node, uint32_t cpu_milli, uint32_t memory_mib,
	uint16_t gpus, uint32_t gpu_mib, uint8_t model, uint8_t pool)
{
	*node = (struct sl_fit_node){.gpu_mib = gpu_mib, .model = model, .pool = pool};
	sl_fit_resize(node, cpu_milli, memory_mib, gpus, 0);
}

void sl_fit_take(
	struct sl_fit_node *node, const struct sl_need *need, struct sl_place place)
{
	add(&node->now, need, place, -1);
	add(&node->later, need, place, -1);
}

void sl_fit_give(struct sl_fit_node *node, const struct sl_need *need,
	struct sl_place place, bool released)
{
	add(&node->now, need, place, 1);
	if (!released)
		add(&node->later, need, place, 1);
}

void sl_fit_release(
	struct sl_fit_node *node, const struct sl_need *need, struct sl_place place)
{
	add(&node->later, need, place, 1);
}

void sl_fit_unrelease(
	struct sl_fit_node *node, const struct sl_need *need, struct sl_place place)
{
	add(&node->later, need, place, -1);
}

void sl_fit_pipeline(
	struct sl_fit_node *node, const struct sl_need *need, struct sl_place place)
{
	add(&node->later, need, place, -1);
}

void sl_fit_unpipeline(
	struct sl_fit_node *node, const struct sl_need *need, struct sl_place place)
{
	add(&node->later, need, place, 1);
}
