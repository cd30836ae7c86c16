#include "../../base/test.h"

#include "policy/placement/score.h"
#include "policy/placement/states.h"
#include "policy/placement/waste.h"

#define WHOLE SL_FIT_WHOLE

static const struct sl_need share = {4000, 1024, 1, 400, 0, 0, 0};
static const struct sl_need whole = {8000, 1024, 1, WHOLE, 0, 0, 0};
static const struct sl_need eight = {64000, 1024, 8, WHOLE, 0, 0, 0};
static const struct sl_need cpu_only = {8000, 1024, 0, 0, 0, 0, 0};

struct bench {
	struct sl_arena *arena;
	struct sl_typical typical;
	struct sl_waste waste;
};

static void bench_init(struct bench *b)
{
	b->arena = sl_arena_new();
	sl_typical_init(&b->typical, b->arena);
	sl_waste_init(&b->waste, b->arena, &b->typical);
}

/* With one kind of task the waste can be worked out in one's head. */
static const struct {
	const char *name;
	const struct sl_need *need;
	uint32_t cpu_milli;
	uint16_t gpus, left[4];
	int32_t wasted;
} rows[] = {
	{"shares of 400 leave 200 each", &share, 64000, 2, {1000, 1000}, 400},
	{"and holes what does not make 400", &share, 64000, 3, {900, 450, 399},
		100 + 50 + 399},
	{"CPU for two shares only", &share, 11999, 2, {1000, 1000}, 1200},
	{"no CPU for any", &share, 3999, 2, {1000, 1000}, 2000},
	{"whole ones leave what is begun", &whole, 64000, 2, {1000, 600}, 600},
	{"whole ones as CPU allows", &whole, 16000, 4, {1000, 1000, 1000, 1000}, 2000},
	{"eight never fit on four", &eight, 64000, 4, {1000, 1000, 1000, 1000}, 4000},
	{"tasks without GPUs fill nothing", &cpu_only, 64000, 2, {1000, 500}, 1500},
	{"full", &share, 64000, 2, {0, 0}, 0},
};

static void fills_nodes(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_fit_node node, made;
		struct bench b;

		bench_init(&b);
		/* Fewer would count for less: nothing is known of others. */
		sl_typical_learn(&b.typical, rows[i].need, 200);
		sl_fit_node_init(&node, rows[i].cpu_milli, 65536, rows[i].gpus, 0, 0, 0);
		for (uint16_t g = 0; g < rows[i].gpus; g++) {
			struct sl_need none = {0, 0, 1, 0, 0, 0, 0};

			sl_fit_take(&node, &none,
				(struct sl_place){0, UINT32_C(1) << g,
					(uint16_t)(WHOLE - rows[i].left[g])});
		}
		sl_state_make(&made, &node, &node.now, true);
		assert_row_u64(rows[i].name, (uint64_t)sl_waste_of(&b.waste, &made, true),
			(uint64_t)rows[i].wasted);
		/* And out of the memo. */
		assert_row_u64(rows[i].name, (uint64_t)sl_waste_of(&b.waste, &made, true),
			(uint64_t)rows[i].wasted);
		sl_arena_free(b.arena);
	}
}

/* Of a node with two GPUs with so much left, and two kinds of task in equal parts. */
static double waste_of_two(const struct sl_need *a, const struct sl_need *b,
	uint32_t cpu_milli, uint16_t left_0, uint16_t left_1)
{
	struct sl_need none = {0, 0, 1, 0, 0, 0, 0};
	struct sl_fit_node node, made;
	struct bench bench;
	double wasted;

	bench_init(&bench);
	sl_typical_learn(&bench.typical, a, 50);
	sl_typical_learn(&bench.typical, b, 50);
	sl_fit_node_init(&node, cpu_milli, 65536, 2, 0, 0, 0);
	sl_fit_take(&node, &none, (struct sl_place){0, 1, (uint16_t)(WHOLE - left_0)});
	sl_fit_take(&node, &none, (struct sl_place){0, 2, (uint16_t)(WHOLE - left_1)});
	sl_state_make(&made, &node, &node.now, true);
	wasted = sl_waste_of(&bench.waste, &made, true);
	sl_arena_free(bench.arena);
	return wasted;
}

static void takes_nothing_for_what_does_not_fit(void **state)
{
	struct sl_need small = {2000, 1, 1, 300, 0, 0, 0};
	struct sl_need large = {4000, 1, 1, 600, 0, 0, 0};

	assert_true(waste_of_two(&small, &large, 5000, 300, 0) == 0);
}

/* A task of 300 fills the hole of 300 as long as there is one. Only two such tasks in a row waste
 * 200 of the other GPU. */
static void fills_the_fullest(void **state)
{
	struct sl_need small = {1, 1, 1, 300, 0, 0, 0}, large = {1, 1, 1, 500, 0, 0, 0};
	double wasted = waste_of_two(&small, &large, 64000, 300, 500);

	assert_true(wasted > 25 && wasted < 75);
}

/* Tasks placed on a kind of hardware are expected there more often, and on no other. */
static void learns_where_tasks_go(void **state)
{
	struct sl_fit_node a, b, other;
	struct bench bench;
	double before, other_before;

	bench_init(&bench);
	/* Whole ones waste nothing, shares of 600 waste 400 of each GPU. */
	struct sl_need large = {1000, 1, 1, 600, 0, 0, 0};

	sl_typical_learn(&bench.typical, &large, 100);
	sl_typical_learn(&bench.typical, &whole, 100);
	sl_fit_node_init(&a, 96000, 65536, 8, 0, 0, 0);
	sl_fit_node_init(&other, 96000, 65536, 8, 0, 1, 0);
	sl_state_make(&b, &a, &a.now, true);
	before = sl_waste_of(&bench.waste, &b, true);
	other_before = sl_waste_of(&bench.waste, &other, true);
	assert_true(before > 1000 && before < 2200);
	assert_true(before == other_before);
	/* One task is no reason to expect no others. */
	sl_waste_placed(&bench.waste, &a, &large);
	sl_waste_refresh(&bench.waste);
	assert_true(sl_waste_of(&bench.waste, &b, true) < before + 100);
	before = sl_waste_of(&bench.waste, &b, true);
	for (int i = 0; i < 498; i++)
		sl_waste_placed(&bench.waste, &a, &large);
	assert_true(sl_waste_of(&bench.waste, &b, true) == before);
	sl_waste_placed(&bench.waste, &a, &large);
	assert_true(sl_waste_of(&bench.waste, &b, true) > before + 200);
	assert_true(sl_waste_of(&bench.waste, &other, true) == other_before);
	sl_arena_free(bench.arena);
}

/* --- PACK's use of it. --- */

struct cluster {
	struct sl_arena *arena;
	struct sl_fit_node nodes[2];
	struct sl_placer *placer;
};

/* Two empty nodes of `gpus`, the first one of lower rank. */
static void cluster_init(struct cluster *c, uint16_t gpus)
{
	c->arena = sl_arena_new();
	c->placer = sl_placer_new(c->arena, SL_PLACE_PACK, c->nodes, 2);
	for (uint32_t i = 0; i < 2; i++) {
		sl_fit_node_init(&c->nodes[i], 96000, 65536, gpus, 0, 0, 0);
		sl_placer_changed(c->placer, i);
	}
}

static struct sl_place put(
	struct cluster *c, const struct sl_need *need, uint32_t node, uint32_t mask)
{
	struct sl_place place = {node, mask, need->gpus ? need->gpu_milli : 0};

	sl_fit_take(&c->nodes[node], need, place);
	sl_placer_changed(c->placer, node);
	return place;
}

static void fills_holes(void **state)
{
	struct sl_need small = {4000, 1024, 1, 600, 0, 0, 0};
	struct cluster c;
	struct sl_place place;

	cluster_init(&c, 2);
	sl_placer_learn(c.placer, &whole, 50);
	sl_placer_learn(c.placer, &small, 50);
	put(&c, &share, 1, 2);
	assert_true(sl_placer_place(c.placer, &small, false, &place));
	assert_int_equal(place.node, 1);
	assert_int_equal(place.gpu_mask, 2);
	sl_arena_free(c.arena);
}

/* Small tasks would fill either node in the end; but jobs of a whole node come, too. */
static void keeps_whole_nodes(void **state)
{
	struct cluster c;
	struct sl_place place;

	cluster_init(&c, 8);
	sl_placer_learn(c.placer, &whole, 90);
	sl_placer_learn(c.placer, &eight, 10);
	put(&c, &whole, 1, 1);
	assert_true(sl_placer_place(c.placer, &whole, false, &place));
	assert_int_equal(place.node, 1);
	sl_arena_free(c.arena);
}

/* On the second node the CPU lasts for one more share: its idle part is lost anyhow. */
static void uses_what_is_lost(void **state)
{
	struct sl_need hog = {92000, 1024, 0, 0, 0, 0, 0};
	struct cluster c;
	struct sl_place place;

	cluster_init(&c, 2);
	sl_placer_learn(c.placer, &whole, 50);
	sl_placer_learn(c.placer, &share, 50);
	put(&c, &hog, 1, 0);
	assert_true(sl_placer_place(c.placer, &share, false, &place));
	assert_int_equal(place.node, 1);
	sl_arena_free(c.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fills_nodes),
		cmocka_unit_test(takes_nothing_for_what_does_not_fit),
		cmocka_unit_test(fills_the_fullest),
		cmocka_unit_test(learns_where_tasks_go),
		cmocka_unit_test(fills_holes),
		cmocka_unit_test(keeps_whole_nodes),
		cmocka_unit_test(uses_what_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
