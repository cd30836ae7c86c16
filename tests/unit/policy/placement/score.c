#include "../../base/test.h"

#include "policy/placement/score.h"
#include "policy/placement/typical.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define WHOLE SL_FIT_WHOLE
#define NODES 40

/* Kinds of task, and how many of each were seen; all of them are typical. */
static const struct {
	struct sl_need need;
	uint32_t times;
} kinds[] = {
	{{4000, 8192, 1, 500, 0, 0, 0}, 30},
	{{8000, 16384, 1, WHOLE, 0, 0, 0}, 30},
	{{2000, 4096, 1, 250, 0, 0, 0}, 13},
	{{3000, 4096, 1, 700, 0, 2, 0}, 11},
	{{32000, 65536, 4, WHOLE, 0, 0, 0}, 7},
	{{4000, 65536, 2, 300, 0, 0, 0}, 6},
	{{16000, 32768, 0, 0, 0, 0, 0}, 8},
};

/* Of typical tasks, straight from the definition. */
static double slow_fragments(const struct sl_fit_node *node)
{
	double sum = 0, all = 0;

	for (size_t k = 0; k < SL_ARRAY_LEN(kinds); k++)
		all += kinds[k].times;
	for (size_t k = 0; k < SL_ARRAY_LEN(kinds); k++) {
		struct sl_need need = kinds[k].need;
		int32_t small = 0;

		need.memory_mib = 0;
		for (uint16_t i = 0; i < node->gpus; i++)
			if (node->now.left[i] < need.gpu_milli)
				small += node->now.left[i];
		if (!need.gpus || !sl_fit_in(node, &node->now, &need))
			small = node->now.gpu_milli;
		sum += kinds[k].times / all * small;
	}
	return sum;
}

/* --- A cluster that is judged by looking at every node. --- */

struct cluster {
	struct sl_arena *arena;
	struct sl_fit_node nodes[NODES];
	uint32_t ranks[NODES];
	struct sl_placer *placer;
	struct {
		struct sl_need need;
		struct sl_place place;
		bool released;
	} tasks[400];
	uint32_t tasks_count;
};

static void cluster_init(struct cluster *c, enum sl_placement_policy policy)
{
	static const uint16_t gpus[] = {8, 2, 4, 1};

	memset(c, 0, sizeof(*c));
	c->arena = sl_arena_new();
	c->placer = sl_placer_new(c->arena, policy, c->nodes, NODES);
	for (uint32_t i = 0; i < NODES; i++) {
		sl_fit_node_init(&c->nodes[i], 64000 - 32000 * (i % 2), 262144,
			gpus[i / 2 % 4], 16384, (uint8_t)(i / 8 % 2), 0);
		c->ranks[i] = (i * 7 + 3) % NODES;
		sl_placer_changed(c->placer, i);
	}
	sl_placer_ranks(c->placer, c->ranks);
	for (size_t k = 0; k < SL_ARRAY_LEN(kinds); k++)
		sl_placer_learn(c->placer, &kinds[k].need, kinds[k].times);
}

static void fgd_try(const struct sl_fit_node *node, const struct sl_need *need,
	uint32_t mask, int *best, uint32_t *best_mask)
{
	struct sl_fit_node after = *node;
	struct sl_place place = {0, mask, (uint16_t)sl_fit_milli(node, need)};
	int score;

	sl_fit_take(&after, need, place);
	score = (int)(100 /
		      (1 + exp((slow_fragments(&after) - slow_fragments(node)) / 1000)));
	if (score > *best) {
		*best = score;
		*best_mask = mask;
	}
}

/* The score of the node, by the published formulas. */
static int slow_score(enum sl_placement_policy policy, const struct sl_fit_node *node,
	const struct sl_need *need, uint32_t *mask)
{
	uint32_t milli = sl_fit_milli(node, need);
	double left =
		(double)(node->now.cpu_milli - need->cpu_milli) / 128000 / 2 +
		(double)(node->now.gpu_milli - (int)(need->gpus * milli)) / 8000 / 2;
	int best = -1;

	*mask = sl_fit_gpus(node, &node->now, need);
	if (policy == SL_PLACE_BESTFIT)
		return (int)(100 * (1 - left));
	if (need->gpus != 1 || milli == WHOLE) {
		fgd_try(node, need, *mask, &best, mask);
		return best;
	}
	for (uint16_t i = 0; i < node->gpus; i++)
		if (node->now.left[i] >= (int32_t)milli)
			fgd_try(node, need, UINT32_C(1) << i, &best, mask);
	return best;
}

static bool slow_place(const struct cluster *c, enum sl_placement_policy policy,
	const struct sl_need *need, struct sl_place *place)
{
	int best = -1;

	for (uint32_t i = 0; i < NODES; i++) {
		uint32_t mask;
		int score;

		if (!sl_fit_in(&c->nodes[i], &c->nodes[i].now, need))
			continue;
		score = slow_score(policy, &c->nodes[i], need, &mask);
		if (score > best ||
			(score == best && c->ranks[i] < c->ranks[place->node])) {
			best = score;
			*place = (struct sl_place){
				i, mask, (uint16_t)sl_fit_milli(&c->nodes[i], need)};
		}
	}
	return best >= 0;
}

static struct sl_need random_need(void)
{
	struct sl_need need = kinds[random() % SL_ARRAY_LEN(kinds)].need;

	if (random() % 8 == 0)
		need.cpu_milli += 1000;
	if (random() % 16 == 0 && need.gpus == 1)
		need.gpu_mib = 4000;
	return need;
}

/* Tasks come and go, nodes are closed and opened; every decision is that of the slow one. */
static void decides(enum sl_placement_policy policy)
{
	struct cluster c;
	uint32_t placed = 0, refused = 0;

	srandom(5);
	cluster_init(&c, policy);
	for (int step = 0; step < 6000; step++) {
		struct sl_need need = random_need();
		struct sl_place got = {0}, want = {0};
		uint32_t node = (uint32_t)random() % NODES;
		bool fits;

		if (random() % 50 == 0) {
			c.nodes[node].closed = !c.nodes[node].closed;
			sl_placer_changed(c.placer, node);
		}
		if (c.tasks_count && random() % 2) {
			uint32_t i = (uint32_t)random() % c.tasks_count;

			node = c.tasks[i].place.node;
			sl_fit_give(&c.nodes[node], &c.tasks[i].need, c.tasks[i].place,
				false);
			sl_placer_changed(c.placer, node);
			c.tasks[i] = c.tasks[--c.tasks_count];
			if (random() % 3)
				continue;
		}
		fits = sl_placer_place(c.placer, &need, false, &got);
		assert_int_equal(fits, slow_place(&c, policy, &need, &want));
		refused += !fits;
		if (!fits || c.tasks_count == SL_ARRAY_LEN(c.tasks))
			continue;
		assert_int_equal(got.node, want.node);
		assert_int_equal(got.gpu_mask, want.gpu_mask);
		assert_int_equal(got.milli, want.milli);
		sl_fit_take(&c.nodes[got.node], &need, got);
		sl_placer_changed(c.placer, got.node);
		c.tasks[c.tasks_count].need = need;
		c.tasks[c.tasks_count++].place = got;
		placed++;
	}
	assert_in_range(placed, 1000, 6000);
	assert_in_range(refused, 10, 6000);
	sl_arena_free(c.arena);
}

static void bestfit_as_published(void **state)
{
	decides(SL_PLACE_BESTFIT);
}

static void fgd_as_published(void **state)
{
	decides(SL_PLACE_FGD);
}

/* By every policy: a task is placed if it fits somewhere, and on GPUs where it fits. */
static void never_refuses(void **state)
{
	for (int policy = 0; policy < SL_PLACE_POLICIES; policy++) {
		struct cluster c;
		uint32_t placed = 0;

		srandom(6);
		cluster_init(&c, (enum sl_placement_policy)policy);
		for (int step = 0; step < 300; step++) {
			struct sl_need need = random_need();
			struct sl_place got = {0}, any;
			bool fits = sl_placer_place(c.placer, &need, false, &got);
			struct sl_fit_node *node = &c.nodes[got.node];

			assert_int_equal(
				fits, slow_place(&c, SL_PLACE_BESTFIT, &need, &any));
			if (!fits)
				continue;
			assert_true(sl_fit_in(node, &node->now, &need));
			assert_int_equal(__builtin_popcount(got.gpu_mask), need.gpus);
			sl_fit_take(node, &need, got);
			for (uint16_t i = 0; i < node->gpus; i++)
				assert_in_range(node->now.left[i], 0, WHOLE);
			sl_placer_changed(c.placer, got.node);
			placed++;
		}
		assert_in_range(placed, 100, 300);
		sl_arena_free(c.arena);
	}
}

static void fragments_are_as_defined(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	struct sl_typical typical;

	srandom(7);
	sl_typical_init(&typical, arena);
	for (size_t k = 0; k < SL_ARRAY_LEN(kinds); k++)
		sl_typical_learn(&typical, &kinds[k].need, kinds[k].times);
	assert_true(sl_typical_refresh(&typical));
	assert_false(sl_typical_refresh(&typical));
	for (int i = 0; i < 2000; i++) {
		struct sl_fit_node node;
		struct sl_need cpu = {(uint32_t)random() % 64000, 0, 0, 0, 0, 0, 0};
		struct sl_place place = {0};
		double got, want;

		sl_fit_node_init(&node, 64000, 1, (uint16_t)(random() % 9), 0,
			(uint8_t)(random() % 3), 0);
		sl_fit_take(&node, &cpu, place);
		for (uint16_t g = 0; g < node.gpus; g++) {
			struct sl_need need = {0, 0, 1, 0, 0, 0, 0};

			place.gpu_mask = UINT32_C(1) << g;
			place.milli = random() % 3 ? (uint16_t)(random() % 1001) : 0;
			sl_fit_take(&node, &need, place);
		}
		got = sl_typical_fragments(&typical, &node);
		want = slow_fragments(&node);
		if (fabs(got - want) > 1e-6)
			fail_msg("node %d: %f, wanted %f", i, got, want);
	}
	sl_arena_free(arena);
}

/* The most frequent 95 %; a kind seen ten times more often changes that. */
static void learns_what_is_typical(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	struct sl_need often = {1000, 0, 1, 500, 0, 0, 0},
		       rare = {1000, 0, 1, 900, 0, 0, 0};
	struct sl_typical typical;

	sl_typical_init(&typical, arena);
	sl_typical_learn(&typical, &rare, 5);
	sl_typical_learn(&typical, &often, 95);
	assert_true(sl_typical_refresh(&typical));
	assert_int_equal(typical.typical, 1);
	assert_int_equal(typical.weight, 95);
	sl_typical_learn(&typical, &rare, 9);
	assert_false(sl_typical_refresh(&typical));
	sl_typical_learn(&typical, &rare, 1);
	assert_true(sl_typical_refresh(&typical));
	assert_int_equal(typical.typical, 2);
	sl_arena_free(arena);
}

/* GPUs that come free later count only when asked for. */
static void places_for_later(void **state)
{
	struct sl_need need = {1000, 1024, 1, WHOLE, 0, 0, 0};

	for (int policy = 0; policy < SL_PLACE_POLICIES; policy++) {
		struct sl_arena *arena = sl_arena_new();
		struct sl_fit_node node;
		struct sl_placer *placer;
		struct sl_place first, place;

		sl_fit_node_init(&node, 8000, 8192, 1, 0, 0, 0);
		placer = sl_placer_new(arena, (enum sl_placement_policy)policy, &node, 1);
		assert_false(sl_placer_place(placer, &need, false, &first));
		sl_placer_changed(placer, 0);
		assert_true(sl_placer_place(placer, &need, false, &first));
		sl_fit_take(&node, &need, first);
		sl_placer_changed(placer, 0);
		assert_false(sl_placer_place(placer, &need, false, &place));
		assert_false(sl_placer_place(placer, &need, true, &place));
		sl_fit_release(&node, &need, first);
		sl_placer_changed(placer, 0);
		assert_false(sl_placer_place(placer, &need, false, &place));
		assert_true(sl_placer_place(placer, &need, true, &place));
		assert_int_equal(place.gpu_mask, 1);
		sl_fit_pipeline(&node, &need, place);
		sl_fit_unrelease(&node, &need, first);
		sl_placer_changed(placer, 0);
		assert_false(sl_placer_place(placer, &need, true, &place));
		sl_arena_free(arena);
	}
}

static void spreads(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	struct sl_fit_node nodes[3];
	struct sl_placer *placer = sl_placer_new(arena, SL_PLACE_SPREAD, nodes, 3);
	struct sl_need need = {1000, 1024, 1, 100, 0, 0, 0};
	uint32_t on[3][2] = {{0}};

	for (uint32_t i = 0; i < 3; i++) {
		sl_fit_node_init(&nodes[i], 64000, 65536, 2, 0, 0, 0);
		sl_placer_changed(placer, i);
	}
	for (int i = 0; i < 12; i++) {
		struct sl_place place;

		assert_true(sl_placer_place(placer, &need, false, &place));
		sl_fit_take(&nodes[place.node], &need, place);
		sl_placer_changed(placer, place.node);
		on[place.node][place.gpu_mask >> 1]++;
	}
	for (int i = 0; i < 6; i++)
		assert_int_equal(on[i / 2][i % 2], 2);
	sl_arena_free(arena);
}

/* While few jobs are known, they must not be spread over two GPUs: as long as they fit on one
 * together, they get one, and the other stays whole. */
static void fills_a_gpu_before_it_breaks_another(void **state)
{
	static const uint16_t shares[] = {50, 100, 200, 250, 300, 500};

	srandom(8);
	for (int round = 0; round < 400; round++) {
		struct sl_arena *arena = sl_arena_new();
		struct sl_fit_node node;
		struct sl_placer *placer = sl_placer_new(arena, SL_PLACE_PACK, &node, 1);
		bool equal = random() % 2;
		uint16_t gpus = (uint16_t)(2 + random() % 7), used = 0;
		uint16_t milli = shares[random() % SL_ARRAY_LEN(shares)];
		uint32_t mask = 0;

		sl_fit_node_init(&node, 64000, 65536, gpus, 16000, 0, 0);
		sl_placer_changed(placer, 0);
		for (;;) {
			struct sl_need need = {0, 0, 1, milli, 0, 0, 0};
			struct sl_place place;

			if (random() % 2)
				need = (struct sl_need){
					.gpus = 1, .gpu_mib = 16u * milli};
			used = (uint16_t)(used + milli);
			if (used > WHOLE)
				break;
			sl_placer_learn(placer, &need, 1);
			assert_true(sl_placer_place(placer, &need, false, &place));
			sl_fit_take(&node, &need, place);
			sl_placer_changed(placer, 0);
			mask |= place.gpu_mask;
			if (!equal)
				milli = shares[random() % SL_ARRAY_LEN(shares)];
		}
		if (__builtin_popcount(mask) != 1)
			fail_msg("round %d: GPUs %#x of %u", round, mask, gpus);
		sl_arena_free(arena);
	}
}

static const struct sl_need any = {1000, 1024, 1, WHOLE, 0, 0, 0},
			    constrained = {1000, 1024, 1, WHOLE, 0, 2, 0};

static void assert_price(
	struct sl_typical *typical, const struct sl_fit_node *node, double want)
{
	double got = sl_typical_price(typical, node);

	if (fabs(got - want) > 1e-9)
		fail_msg("model %u: price %f, wanted %f", node->model, got, want);
}

/* 80 of 100 tasks run on any of 12 idle GPUs, 20 on two of them only: 80/12 for each, and 20/2
 * more. */
static void prices_are_demand_for_what_is_idle(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	struct sl_fit_node nodes[3];
	struct sl_typical typical;

	sl_typical_init(&typical, arena);
	sl_fit_node_init(&nodes[0], 64000, 65536, 8, 0, 0, 0);
	sl_fit_node_init(&nodes[1], 64000, 65536, 2, 0, 1, 0);
	sl_fit_node_init(&nodes[2], 64000, 65536, 2, 0, 0, 0);
	sl_typical_set_prices(&typical, nodes, 3);
	assert_price(&typical, &nodes[1], 1);
	sl_typical_learn(&typical, &any, 80);
	sl_typical_set_prices(&typical, nodes, 3);
	assert_price(&typical, &nodes[0], 1);
	assert_price(&typical, &nodes[1], 1);
	sl_typical_learn(&typical, &constrained, 20);
	sl_typical_set_prices(&typical, nodes, 3);
	assert_price(&typical, &nodes[0], 0.8);
	assert_price(&typical, &nodes[2], 0.8);
	assert_price(&typical, &nodes[1], 2);
	/* Closed nodes do not count. */
	nodes[1].closed = true;
	sl_typical_set_prices(&typical, nodes, 3);
	assert_price(&typical, &nodes[0], 1);
	sl_arena_free(arena);
}

/* Tasks that run anywhere leave a model alone that others need, until nothing else is left. */
static void leaves_rare_models_to_constrained_tasks(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	struct sl_fit_node nodes[12];
	struct sl_placer *placer = sl_placer_new(arena, SL_PLACE_PACK, nodes, 12);

	/* The rare ones have the lowest ranks. */
	for (uint32_t i = 0; i < 12; i++) {
		sl_fit_node_init(&nodes[i], 64000, 65536, 2, 0, i < 2, 0);
		sl_placer_changed(placer, i);
	}
	sl_placer_learn(placer, &any, 80);
	sl_placer_learn(placer, &constrained, 20);
	for (int i = 0; i < 24; i++) {
		struct sl_place place;

		assert_true(sl_placer_place(placer, &any, false, &place));
		if ((nodes[place.node].model == 1) != (i >= 20))
			fail_msg("task %d is placed on node %u", i, place.node);
		sl_fit_take(&nodes[place.node], &any, place);
		sl_placer_changed(placer, place.node);
	}
	sl_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bestfit_as_published),
		cmocka_unit_test(fgd_as_published),
		cmocka_unit_test(never_refuses),
		cmocka_unit_test(fragments_are_as_defined),
		cmocka_unit_test(learns_what_is_typical),
		cmocka_unit_test(places_for_later),
		cmocka_unit_test(spreads),
		cmocka_unit_test(fills_a_gpu_before_it_breaks_another),
		cmocka_unit_test(prices_are_demand_for_what_is_idle),
		cmocka_unit_test(leaves_rare_models_to_constrained_tasks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
