#include "../../base/test.h"

#include "policy/quota/tree.h"

#define GPU  1000
#define NONE SL_PROJECT_NONE
#define ALL  SL_QUOTA_ALL
#define MOST 20

static struct sl_arena *arena;
static struct sl_tree tree;

static int open_tree(void **state)
{
	arena = sl_arena_new();
	sl_tree_init(&tree, arena, MOST);
	return 0;
}

static int close_tree(void **state)
{
	struct sl_error err = {0};

	if (sl_tree_check(&tree, &err))
		fail_msg("%s", err.text);
	arena = sl_arena_free(arena);
	return 0;
}

static struct sl_project_rules rules(int64_t quota, int64_t limit, uint32_t weight)
{
	return (struct sl_project_rules){
		.quota = {{quota, ALL, ALL}},
		.limit = {{limit, ALL, ALL}},
		.weight = {weight, 1, 1},
	};
}

static uint32_t put(
	uint64_t id, uint32_t parent, int64_t quota, int64_t limit, uint32_t weight)
{
	struct sl_project_rules now = rules(quota, limit, weight);
	uint32_t number = NONE;

	assert_int_equal(sl_tree_put(&tree, id, parent, &now, id, &number), SL_TREE_OK);
	return number;
}

static enum sl_tree_outcome try(
	uint64_t id, uint32_t parent, int64_t quota, int64_t limit)
{
	struct sl_project_rules now = rules(quota, limit, 1);
	uint32_t number = 77;
	enum sl_tree_outcome outcome = sl_tree_put(&tree, id, parent, &now, id, &number);

	if (outcome != SL_TREE_OK)
		assert_int_equal(number, 77);
	return outcome;
}

static struct sl_quantity gpus(int64_t milli)
{
	return (struct sl_quantity){{milli, 0, 0}};
}

static void book(uint32_t number, int sign, int64_t has, int64_t fixed, int64_t asks)
{
	struct sl_quantity a = gpus(has), b = gpus(fixed), c = gpus(asks);

	sl_tree_book(&tree, number, sign, &a, &b, &c);
}

static void refuses_what_is_no_tree(void **state)
{
	uint32_t a = put(1, NONE, 4 * GPU, ALL, 1), b = put(2, a, 2 * GPU, ALL, 1);
	uint32_t c = put(3, b, GPU, ALL, 1);

	assert_int_equal(try(9, 5, 0, ALL), SL_TREE_PARENT);
	assert_int_equal(try(9, MOST + 1, 0, ALL), SL_TREE_PARENT);
	assert_int_equal(try(1, a, 0, ALL), SL_TREE_CYCLE);
	assert_int_equal(try(1, c, 0, ALL), SL_TREE_CYCLE);
	assert_int_equal(try(2, c, 0, ALL), SL_TREE_CYCLE);
	/* Nothing of it was done. */
	assert_int_equal(tree.all[a].parent, NONE);
	assert_int_equal(tree.all[b].parent, a);
	assert_int_equal(tree.all[a].rules.quota.of[SL_RES_GPU], 4 * GPU);
	assert_int_equal(sl_tree_find(&tree, 9), NONE);
	assert_int_equal(sl_tree_find(&tree, 3), c);
}

static void refuses_values_that_cannot_be(void **state)
{
	assert_int_equal(try(1, NONE, -2, ALL), SL_TREE_VALUE);
	assert_int_equal(try(1, NONE, 0, -2), SL_TREE_VALUE);
	assert_int_equal(try(1, NONE, 3 * GPU, 2 * GPU), SL_TREE_VALUE);
	assert_int_equal(try(1, NONE, SL_QUOTA_MOST + 1, ALL), SL_TREE_VALUE);
	assert_int_equal(try(1, NONE, INT64_MAX, ALL), SL_TREE_VALUE);
	assert_int_equal(try(1, NONE, 0, SL_QUOTA_MOST + 1), SL_TREE_VALUE);
	assert_int_equal(try(1, NONE, SL_QUOTA_MOST, SL_QUOTA_MOST), SL_TREE_OK);
	assert_int_equal(try(2, NONE, ALL, 2 * GPU), SL_TREE_OK);
}

static void children_stay_within_their_parent(void **state)
{
	uint32_t a = put(1, NONE, 4 * GPU, ALL, 1), b;

	(void)put(2, a, 3 * GPU, ALL, 1);
	assert_int_equal(try(3, a, 2 * GPU, ALL), SL_TREE_SUM);
	assert_int_equal(try(3, a, SL_QUOTA_MOST, ALL), SL_TREE_SUM);
	b = put(3, a, GPU, ALL, 1);
	assert_int_equal(try(3, a, GPU + 1, ALL), SL_TREE_SUM);
	/* The parent's side of the same rule. */
	assert_int_equal(try(1, NONE, 3 * GPU, ALL), SL_TREE_SUM);
	assert_int_equal(try(1, NONE, ALL, ALL), SL_TREE_OK);
	assert_int_equal(try(3, a, 9 * GPU, ALL), SL_TREE_OK);
	/* All that there is is no sum. */
	assert_int_equal(try(3, a, ALL, ALL), SL_TREE_OK);
	assert_int_equal(try(1, NONE, 3 * GPU, ALL), SL_TREE_OK);
	/* A branch that moves is judged at its new place. */
	assert_int_equal(try(4, NONE, GPU, ALL), SL_TREE_OK);
	assert_int_equal(try(2, sl_tree_find(&tree, 4), 3 * GPU, ALL), SL_TREE_SUM);
	tree.sums_free = true;
	assert_int_equal(try(2, sl_tree_find(&tree, 4), 3 * GPU, ALL), SL_TREE_OK);
	assert_int_equal(tree.all[b].parent, a);
}

static void has_a_deepest_level(void **state)
{
	uint32_t at = NONE, other;

	for (uint64_t id = 1; id <= SL_PROJECT_DEEP; id++)
		at = put(id, at, 0, ALL, 1);
	assert_int_equal(tree.all[at].depth, SL_PROJECT_DEEP - 1);
	assert_int_equal(try(99, at, 0, ALL), SL_TREE_DEEP);
	other = put(99, NONE, 0, ALL, 1);
	/* The whole branch would go one down. */
	assert_int_equal(try(1, other, 0, ALL), SL_TREE_DEEP);
	assert_int_equal(try(2, other, 0, ALL), SL_TREE_OK);
	assert_int_equal(tree.all[at].depth, SL_PROJECT_DEEP - 1);
	assert_int_equal(try(3, NONE, 0, ALL), SL_TREE_OK);
	assert_int_equal(tree.all[at].depth, SL_PROJECT_DEEP - 3);
}

static void numbers_are_bounded_and_reused(void **state)
{
	for (uint64_t id = 1; id <= MOST; id++)
		(void)put(id, NONE, 0, ALL, 1);
	assert_int_equal(try(99, NONE, 0, ALL), SL_TREE_FULL);
	assert_true(sl_tree_remove(&tree, sl_tree_find(&tree, 7)));
	assert_int_equal(sl_tree_find(&tree, 7), NONE);
	assert_int_equal(try(99, NONE, 0, ALL), SL_TREE_OK);
	assert_int_equal(try(98, NONE, 0, ALL), SL_TREE_FULL);
	assert_int_equal(try(1, NONE, GPU, ALL), SL_TREE_OK);
}

static void books_are_sums_and_move_along(void **state)
{
	uint32_t a = put(1, NONE, ALL, ALL, 1), b = put(2, a, ALL, ALL, 1);
	uint32_t c = put(3, b, ALL, ALL, 1), d = put(4, NONE, ALL, ALL, 1);

	book(c, 1, 2 * GPU, GPU, 5 * GPU);
	book(b, 1, GPU, 0, GPU);
	assert_int_equal(tree.all[a].has.of[SL_RES_GPU], 3 * GPU);
	assert_int_equal(tree.all[a].fixed.of[SL_RES_GPU], GPU);
	assert_int_equal(tree.all[a].asks.of[SL_RES_GPU], 6 * GPU);
	assert_int_equal(tree.all[b].own_has.of[SL_RES_GPU], GPU);
	assert_false(sl_tree_remove(&tree, a));
	assert_false(sl_tree_remove(&tree, c));
	(void)put(2, d, ALL, ALL, 1);
	assert_int_equal(tree.all[a].asks.of[SL_RES_GPU], 0);
	assert_int_equal(tree.all[d].has.of[SL_RES_GPU], 3 * GPU);
	assert_int_equal(tree.all[d].asks.of[SL_RES_GPU], 6 * GPU);
	book(c, -1, 2 * GPU, GPU, 5 * GPU);
	assert_true(sl_tree_remove(&tree, c));
	assert_true(sl_tree_remove(&tree, a));
	assert_false(sl_tree_remove(&tree, b));
}

static void shares_go_down_the_tree(void **state)
{
	uint32_t a = put(1, NONE, 4 * GPU, ALL, 1), b = put(2, NONE, 2 * GPU, ALL, 1);
	uint32_t a1 = put(3, a, 2 * GPU, ALL, 3), a2 = put(4, a, GPU, ALL, 1);
	struct sl_quantity total = gpus(10 * GPU);

	book(a1, 1, 0, 0, 20 * GPU);
	book(a2, 1, 0, 0, 20 * GPU);
	book(b, 1, 0, 0, 2 * GPU);
	sl_tree_share(&tree, &total);
	assert_int_equal(tree.all[b].share.of[SL_RES_GPU], 2 * GPU);
	assert_int_equal(tree.all[a].share.of[SL_RES_GPU], 8 * GPU);
	/* 2 + 3/4 of 5 and 1 + 1/4 of 5: 2 + 3.75, 1 + 1.25. */
	assert_int_equal(tree.all[a1].share.of[SL_RES_GPU], 6 * GPU);
	assert_int_equal(tree.all[a2].share.of[SL_RES_GPU], 2 * GPU);
	assert_int_equal(tree.all[a2].own_share.of[SL_RES_GPU], 2 * GPU);
}

static void a_parent_asks_for_no_more_than_its_children_may_have(void **state)
{
	uint32_t a = put(1, NONE, 0, ALL, 1), b = put(2, NONE, 0, ALL, 1);
	uint32_t a1 = put(3, a, 0, GPU, 1);
	struct sl_quantity total = gpus(8 * GPU);

	book(a1, 1, 0, 0, 20 * GPU);
	book(b, 1, 0, 0, 20 * GPU);
	sl_tree_share(&tree, &total);
	assert_int_equal(tree.all[a].share.of[SL_RES_GPU], GPU);
	assert_int_equal(tree.all[b].share.of[SL_RES_GPU], 7 * GPU);
}

static void jobs_of_a_parent_are_one_more_child(void **state)
{
	uint32_t a = put(1, NONE, 4 * GPU, ALL, 1), a1 = put(2, a, 3 * GPU, ALL, 1);
	struct sl_quantity total = gpus(8 * GPU);

	book(a, 1, 0, 0, 20 * GPU);
	book(a1, 1, 0, 0, 20 * GPU);
	sl_tree_share(&tree, &total);
	/* Guaranteed 1 and 3, and half of 4 each. */
	assert_int_equal(tree.all[a].own_quota.of[SL_RES_GPU], GPU);
	assert_int_equal(tree.all[a].own_share.of[SL_RES_GPU], 3 * GPU);
	assert_int_equal(tree.all[a1].share.of[SL_RES_GPU], 5 * GPU);
}

static void limits_and_quotas_hold_at_every_level(void **state)
{
	uint32_t a = put(1, NONE, 2 * GPU, 4 * GPU, 1), b = put(2, a, GPU, 3 * GPU, 1);
	uint32_t c = put(3, a, GPU, ALL, 1), at = NONE;
	struct sl_quantity one = gpus(GPU), none = gpus(0), core = {{0, 1000, 0}};
	enum sl_resource which = SL_RESOURCES;

	book(b, 1, 2 * GPU, GPU, 2 * GPU);
	assert_true(sl_tree_allows(&tree, b, &one, false, &at, &which));
	assert_int_equal(at, NONE);
	assert_false(sl_tree_allows(&tree, b, &one, true, &at, &which));
	assert_int_equal(at, b);
	assert_int_equal(which, SL_RES_GPU);
	assert_true(sl_tree_allows(&tree, c, &one, true, NULL, NULL));
	book(c, 1, 2 * GPU, GPU, 2 * GPU);
	assert_false(sl_tree_allows(&tree, c, &one, false, &at, &which));
	assert_int_equal(at, a);
	assert_false(sl_tree_allows(&tree, c, &one, false, NULL, NULL));
	/* A project that wants no scarce resource may run. */
	assert_true(sl_tree_allows(&tree, c, &none, true, NULL, NULL));
	assert_true(sl_tree_allows(&tree, c, &core, true, NULL, NULL));
	book(b, 1, 4 * GPU, 0, 4 * GPU);
	assert_true(sl_tree_allows(&tree, b, &core, false, NULL, NULL));
}

/* Tasks on nodes count by themselves: promises do not, tasks being stopped still do. */
static void what_may_start_now_counts_what_stands(void **state)
{
	uint32_t a = put(1, NONE, 2 * GPU, 4 * GPU, 1), b = put(2, a, GPU, ALL, 1);
	uint32_t other = put(3, NONE, GPU, 4 * GPU, 1), at = NONE;
	struct sl_quantity one = gpus(GPU), three = gpus(3 * GPU);
	enum sl_resource which = SL_RESOURCES;

	sl_tree_hold(&tree, b, 1, &three, &one);
	assert_true(sl_tree_allows(&tree, b, &three, false, &at, &which));
	assert_true(sl_tree_allows_now(&tree, b, &one, false, &at, &which));
	assert_false(sl_tree_allows_now(&tree, b, &three, false, &at, &which));
	assert_int_equal(at, a);
	assert_int_equal(which, SL_RES_GPU);
	assert_false(sl_tree_allows_now(&tree, b, &one, true, &at, &which));
	assert_int_equal(at, b);
	assert_false(sl_tree_remove(&tree, b));
	/* It goes along with the branch. */
	(void)put(2, other, GPU, ALL, 1);
	assert_true(sl_tree_allows_now(&tree, a, &three, false, NULL, NULL));
	assert_false(sl_tree_allows_now(&tree, other, &three, false, NULL, NULL));
	sl_tree_hold(&tree, b, -1, &three, &one);
	assert_true(sl_tree_allows_now(&tree, other, &three, false, NULL, NULL));
	assert_true(sl_tree_remove(&tree, b));
}

static void branches_part_below_the_common_ancestor(void **state)
{
	uint32_t a = put(1, NONE, 0, ALL, 1), b = put(2, NONE, 0, ALL, 1);
	uint32_t a1 = put(3, a, 0, ALL, 1), a2 = put(4, a, 0, ALL, 1);
	uint32_t a11 = put(5, a1, 0, ALL, 1), x = NONE, y = NONE;

	assert_true(sl_tree_branches(&tree, a11, a2, &x, &y));
	assert_int_equal(x, a1);
	assert_int_equal(y, a2);
	assert_true(sl_tree_branches(&tree, b, a11, &x, &y));
	assert_int_equal(x, b);
	assert_int_equal(y, a);
	assert_false(sl_tree_branches(&tree, a, a11, &x, &y));
	assert_false(sl_tree_branches(&tree, a11, a, &x, &y));
	assert_false(sl_tree_branches(&tree, a2, a2, &x, &y));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_tree, close_tree)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(refuses_what_is_no_tree),
		TEST(refuses_values_that_cannot_be),
		TEST(children_stay_within_their_parent),
		TEST(has_a_deepest_level),
		TEST(numbers_are_bounded_and_reused),
		TEST(books_are_sums_and_move_along),
		TEST(shares_go_down_the_tree),
		TEST(a_parent_asks_for_no_more_than_its_children_may_have),
		TEST(jobs_of_a_parent_are_one_more_child),
		TEST(limits_and_quotas_hold_at_every_level),
		TEST(what_may_start_now_counts_what_stands),
		TEST(branches_part_below_the_common_ancestor),
	};

	return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
