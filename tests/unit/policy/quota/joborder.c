#include "../../base/test.h"

#include "policy/quota/joborder.h"

#define GPU  1000
#define NONE SL_PROJECT_NONE
#define ALL  SL_QUOTA_ALL
#define MOST 16
#define JOBS 64

static struct sl_arena *arena;
static struct sl_tree tree;
static struct sl_joborder *order;
static struct sl_joborder_job jobs[JOBS];
static size_t used;

static int open_order(void **state)
{
	arena = sl_arena_new();
	sl_tree_init(&tree, arena, MOST);
	order = sl_joborder_new(arena, &tree);
	used = 0;
	return 0;
}

static int close_order(void **state)
{
	arena = sl_arena_free(arena);
	return 0;
}

static uint32_t put(uint64_t id, uint32_t parent, int64_t quota, int32_t priority)
{
	struct sl_project_rules rules = {
		.quota = {{quota, ALL, ALL}},
		.limit = {{ALL, ALL, ALL}},
		.weight = {1, 1, 1},
		.priority = priority,
	};
	uint32_t number = NONE;

	assert_int_equal(sl_tree_put(&tree, id, parent, &rules, id, &number), SL_TREE_OK);
	return number;
}

static struct sl_joborder_job *add(
	uint64_t id, uint32_t project, int32_t priority, sl_ns submitted, int64_t gpus)
{
	struct sl_joborder_job *job = &jobs[used++];

	*job = (struct sl_joborder_job){
		.id = id,
		.project = project,
		.priority = priority,
		.submitted = submitted,
		.wants = {{gpus}},
	};
	sl_tree_book(&tree, project, 1, NULL, NULL, &job->wants);
	sl_joborder_add(order, job);
	return job;
}

static void has(uint32_t project, int64_t gpus)
{
	struct sl_quantity amount = {{gpus}};

	sl_tree_book(&tree, project, 1, &amount, NULL, &amount);
}

/* Shares of total, then the jobs in their order; each is booked if books says so. Ids, 0 at the
 * end. */
static void expect(const char *name, int64_t total, bool books, const uint64_t *ids)
{
	struct sl_quantity all = {{total}};
	struct sl_joborder_job *job;
	size_t i = 0;

	sl_tree_share(&tree, &all);
	sl_joborder_begin(order);
	while ((job = sl_joborder_next(order))) {
		assert_row_u64(name, job->id, ids[i]);
		i++;
		if (books)
			sl_tree_book(&tree, job->project, 1, &job->wants, NULL, NULL);
	}
	assert_row_u64(name, 0, ids[i]);
}

#define EXPECT(name, total, books, ...) \
	expect(name, total, books, (const uint64_t[]){__VA_ARGS__, 0})

static void within_a_project(void **state)
{
	uint32_t a = put(1, NONE, 0, 0);
	struct sl_joborder_job *middle, *extra;

	(void)add(1, a, 50, 30, GPU);
	(void)add(2, a, 50, 10, GPU);
	(void)add(3, a, 100, 40, GPU);
	extra = add(4, a, 100, 20, GPU);
	middle = add(5, a, 50, 20, GPU);
	(void)add(7, a, 50, 30, GPU);
	sl_joborder_remove(order, extra);
	extra->extra = true;
	sl_joborder_add(order, extra);
	assert_row_u64("jobs", sl_joborder_count(order, a), 6);
	assert_row_u64("first", sl_joborder_first(order, a)->id, 3);
	EXPECT("priority, further tasks, age, id", GPU, false, 3, 4, 2, 5, 1, 7);
	EXPECT("the same again", GPU, false, 3, 4, 2, 5, 1, 7);
	sl_joborder_remove(order, middle);
	sl_joborder_remove(order, middle);
	EXPECT("without one", GPU, false, 3, 4, 2, 1, 7);
	assert_row_u64("jobs", sl_joborder_count(order, a), 5);
}

static void who_is_under_its_share_comes_first(void **state)
{
	uint32_t a = put(1, NONE, 0, 9), b = put(2, NONE, 0, 0);

	has(a, 2 * GPU);
	(void)add(1, a, 50, 1, GPU);
	(void)add(2, b, 50, 2, GPU);
	(void)add(3, b, 50, 3, GPU);
	/* b has a share of 2 because a is of higher priority and wants 3 of 5. */
	EXPECT("a has 2 of its 3, b nothing of its 2", 5 * GPU, false, 1, 2, 3);
	has(a, GPU);
	/* Now a wants 4 of 5, has 3; shares are 4 and 1. Then a has all of its share, and b is
	 * before it. */
	EXPECT("both under it: priority", 5 * GPU, false, 1, 2, 3);
	has(a, GPU);
	EXPECT("a is not", 4 * GPU, false, 1, 2, 3);
}

static void shares_are_alternated(void **state)
{
	uint32_t a = put(1, NONE, 0, 0), b = put(2, NONE, 0, 0);

	for (uint64_t i = 0; i < 4; i++) {
		(void)add(10 + i, a, 50, i, GPU);
		(void)add(20 + i, b, 50, 10 + i, GPU);
	}
	EXPECT("one by one", 8 * GPU, true, 10, 20, 11, 21, 12, 22, 13, 23);
}

static void quota_comes_before_priority(void **state)
{
	uint32_t a = put(1, NONE, 0, 9), b = put(2, NONE, GPU, 0);

	(void)add(1, a, 50, 1, GPU);
	(void)add(2, a, 50, 2, GPU);
	(void)add(3, b, 50, 3, GPU);
	(void)add(4, b, 50, 4, GPU);
	EXPECT("b's first is within its quota", 4 * GPU, true, 3, 1, 2, 4);
}

static void lower_share_with_the_job_then_without(void **state)
{
	uint32_t a = put(1, NONE, 0, 0), b = put(2, NONE, 0, 0);

	has(a, 2 * GPU);
	has(b, GPU);
	(void)add(1, a, 50, 1, GPU);
	(void)add(2, b, 50, 2, 3 * GPU);
	/* Shares 3 and 4: with the job both would have all of it; without it a has 2/3, b 1/4. */
	EXPECT("equal with it: less without", 7 * GPU, false, 2, 1);
	(void)add(3, a, 50, 3, 7 * GPU);
	/* Shares 10 and 4: 3/10 with the job against 4/4. */
	EXPECT("less with it, for the second of a too", 14 * GPU, false, 1, 3, 2);
}

/* Shares are alike, and so are the jobs; a was guaranteed 3 of its 4 GPUs, b 2. */
static void furthest_below_its_quota(void **state)
{
	uint32_t b = put(2, NONE, 2 * GPU, 0), a = put(1, NONE, 3 * GPU, 0);

	(void)add(2, b, 50, 1, GPU);
	(void)add(3, b, 50, 2, 3 * GPU);
	(void)add(1, a, 50, 3, GPU);
	(void)add(4, a, 50, 4, 3 * GPU);
	EXPECT("further below its quota", 8 * GPU, false, 1, 2, 4, 3);
	has(a, GPU);
	has(b, GPU);
	EXPECT("with what they have", 8 * GPU, false, 1, 2, 4, 3);
}

static void smaller_then_older(void **state)
{
	uint32_t a = put(1, NONE, 0, 0), b = put(2, NONE, 0, 0), c = put(3, NONE, 0, 0);

	/* All want as much as they get: each has 0 of its share, and all of it with the job. */
	(void)add(1, a, 50, 1, 2 * GPU);
	(void)add(2, b, 50, 3, GPU);
	(void)add(3, c, 50, 2, GPU);
	EXPECT("smaller, then older", 4 * GPU, false, 3, 2, 1);
	jobs[1].submitted = 2;
	EXPECT("then the older project", 4 * GPU, false, 2, 3, 1);
}

static void top_down(void **state)
{
	uint32_t a = put(1, NONE, 2 * GPU, 0), b = put(2, NONE, 2 * GPU, 5);
	uint32_t a1 = put(3, a, GPU, 0), a2 = put(4, a, GPU, 3);

	(void)add(1, a1, 50, 1, GPU);
	(void)add(2, a2, 50, 2, GPU);
	(void)add(3, b, 50, 3, GPU);
	(void)add(4, b, 50, 4, GPU);
	(void)add(5, b, 125, 5, GPU);
	/* b is above a by its priority, a2 above a1; b's third is above its quota. */
	EXPECT("levels by themselves", 5 * GPU, true, 5, 3, 2, 1, 4);
}

static void jobs_of_a_parent_compete_with_its_children(void **state)
{
	uint32_t a = put(1, NONE, 2 * GPU, 0), a1 = put(2, a, GPU, 0);

	(void)add(1, a1, 50, 1, GPU);
	(void)add(2, a1, 50, 2, GPU);
	(void)add(3, a, 50, 3, GPU);
	EXPECT("the parent's own is within its quota", 3 * GPU, true, 1, 3, 2);
}

static void changes_within_a_cycle(void **state)
{
	uint32_t a = put(1, NONE, 0, 0), b = put(2, NONE, 0, 0);
	struct sl_quantity all = {{6 * GPU}};

	(void)add(1, a, 50, 1, GPU);
	(void)add(2, a, 50, 2, GPU);
	(void)add(3, b, 50, 3, GPU);
	(void)add(4, b, 50, 4, GPU);
	sl_tree_share(&tree, &all);
	sl_joborder_begin(order);
	assert_row_u64("first", sl_joborder_next(order)->id, 1);
	/* Books of another tree: a has more now than b. */
	has(a, GPU);
	sl_joborder_booked(order, a);
	assert_row_u64("the other", sl_joborder_next(order)->id, 3);
	/* Not looked at again in this cycle, and gone in the next. */
	sl_joborder_remove(order, &jobs[0]);
	sl_joborder_remove(order, &jobs[3]);
	(void)add(9, a, 50, 9, GPU);
	assert_row_u64("a", sl_joborder_next(order)->id, 2);
	assert_row_u64("new", sl_joborder_next(order)->id, 9);
	assert_null(sl_joborder_next(order));
	(void)add(10, b, 50, 10, GPU);
	assert_row_u64("after the end", sl_joborder_next(order)->id, 10);
	assert_null(sl_joborder_next(order));
	(void)add(11, b, 100, 11, GPU);
	assert_null(sl_joborder_next(order));
}

static void the_tree_changes_within_a_cycle(void **state)
{
	uint32_t a = put(1, NONE, 0, 0), b;

	(void)add(1, a, 50, 1, GPU);
	sl_joborder_begin(order);
	b = put(2, a, 0, 0);
	(void)add(2, b, 50, 2, GPU);
	sl_joborder_booked(order, b);
	EXPECT("both", 2 * GPU, false, 1, 2);
	for (uint64_t id = 3; id <= MOST; id++)
		(void)add(id, put(id, b, 0, 0), 50, id, GPU);
	/* b has the smaller part of its 15 with each job, but for the last, by which it has all, as
	 * a has. */
	EXPECT("as many as there may be", 99 * GPU, true, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
		12, 13, 14, 15, 1, 16);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_order, close_order)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(within_a_project),
		TEST(who_is_under_its_share_comes_first),
		TEST(shares_are_alternated),
		TEST(quota_comes_before_priority),
		TEST(lower_share_with_the_job_then_without),
		TEST(furthest_below_its_quota),
		TEST(smaller_then_older),
		TEST(top_down),
		TEST(jobs_of_a_parent_compete_with_its_children),
		TEST(changes_within_a_cycle),
		TEST(the_tree_changes_within_a_cycle),
	};

	return cmocka_run_group_tests_name("joborder", tests, NULL, NULL);
}
