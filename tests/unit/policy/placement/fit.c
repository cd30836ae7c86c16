#include "../../base/test.h"

#include "policy/placement/fit.h"

#include <stdlib.h>

#define WHOLE SL_FIT_WHOLE

/* 16 cores, 64 GiB, 4 GPUs of 40,960 MiB, model 2, pool 1; on them tasks of 700, 200 and 1,000. */
static struct sl_fit_node used_node(void)
{
	static const uint16_t used[] = {700, 200, 1000};
	struct sl_fit_node node;

	sl_fit_node_init(&node, 16000, 65536, 4, 40960, 2, 1);
	node.first = 3;
	for (uint32_t i = 0; i < SL_ARRAY_LEN(used); i++) {
		struct sl_need need = {1000, 1024, 1, used[i], 0, 0, 0};
		struct sl_place place = {0, 1u << i, used[i]};

		sl_fit_take(&node, &need, place);
	}
	return node;
}

/* mask: the GPUs it gets on that node; 0 with fits: it needs none. */
static const struct {
	const char *name;
	struct sl_need need;
	bool ever, fits;
	uint32_t mask;
} rows[] = {
	{"no GPU", {13000, 62464, 0, 0, 0, 0, 0}, true, true, 0},
	{"a little more CPU than is left", {13001, 0, 0, 0, 0, 0, 0}, true, false, 0},
	{"more CPU than there is", {16001, 0, 0, 0, 0, 0, 0}, false, false, 0},
	{"a little more memory than is left", {0, 62465, 0, 0, 0, 0, 0}, true, false, 0},
	{"more memory than there is", {0, 65537, 0, 0, 0, 0, 0}, false, false, 0},
	{"no GPU, but words about them", {1, 1, 0, 900, 90000, 1, 0}, true, true, 0},
	{"the fullest GPU that suffices", {1, 1, 1, 300, 0, 0, 0}, true, true, 1},
	{"the next one", {1, 1, 1, 301, 0, 0, 0}, true, true, 2},
	{"an unused one", {1, 1, 1, 801, 0, 0, 0}, true, true, 8},
	{"a whole one", {1, 1, 1, WHOLE, 0, 0, 0}, true, true, 8},
	{"two whole ones", {1, 1, 2, WHOLE, 0, 0, 0}, true, false, 0},
	{"more than a whole one", {1, 1, 1, WHOLE + 1, 0, 0, 0}, false, false, 0},
	{"shares of three", {1, 1, 3, 300, 0, 0, 0}, true, true, 1 + 2 + 8},
	{"shares of two, the fullest", {1, 1, 2, 100, 0, 0, 0}, true, true, 1 + 2},
	{"shares of three, too large", {1, 1, 3, 301, 0, 0, 0}, true, false, 0},
	{"five GPUs", {1, 1, 5, 1, 0, 0, 0}, false, false, 0},
	{"memory is a share, rounded up", {1, 1, 1, 0, 12288, 0, 0}, true, true, 1},
	{"a MiB more is a thousandth more", {1, 1, 1, 0, 12289, 0, 0}, true, true, 2},
	{"the larger of share and memory", {1, 1, 1, 301, 1, 0, 0}, true, true, 2},
	{"all memory is a whole GPU", {1, 1, 1, 0, 40960, 0, 0}, true, true, 8},
	{"more memory than a GPU has", {1, 1, 1, 0, 40961, 0, 0}, false, false, 0},
	{"this model", {1, 1, 1, 1, 0, 4, 0}, true, true, 1},
	{"this model or another", {1, 1, 1, 1, 0, 5, 0}, true, true, 1},
	{"another model", {1, 1, 1, 1, 0, 3, 0}, false, false, 0},
	{"this pool", {1, 1, 1, 1, 0, 0, 2}, true, true, 1},
	{"another pool", {1, 1, 1, 1, 0, 0, 1}, false, false, 0},
	{"another pool, no GPU", {1, 1, 0, 0, 0, 0, 1}, false, false, 0},
	/* The first GPU is bit 3. */
	{"two named GPUs, the fuller", {1, 1, 1, 100, .only = 3 << 4}, true, true, 2},
	{"a named GPU that is full", {1, 1, 1, 100, .only = 1 << 5}, true, false, 0},
	{"two of two, one is full", {1, 1, 2, 100, .only = 3 << 4}, true, false, 0},
	{"two of one", {1, 1, 2, 100, .only = 1 << 4}, false, false, 0},
	{"a whole one", {1, 1, 1, WHOLE, .only = 1 << 6}, true, true, 8},
	{"a whole one, but it is used", {1, 1, 1, WHOLE, .only = 1 << 4}, true, false, 0},
	{"GPUs of other nodes", {1, 1, 1, 100, .only = 7 | 1 << 7}, false, false, 0},
	{"GPUs of other nodes, and none needed", {1, 1, .only = 1}, true, true, 0},
};

static void fits(void **state)
{
	struct sl_fit_node node = used_node(), closed = node;

	closed.closed = true;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		const struct sl_need *need = &rows[i].need;
		bool in = sl_fit_in(&node, &node.now, need);

		assert_row_u64(rows[i].name, sl_fit_ever(&node, need), rows[i].ever);
		assert_row_u64(rows[i].name, in, rows[i].fits);
		if (in)
			assert_row_u64(rows[i].name, sl_fit_gpus(&node, &node.now, need),
				rows[i].mask);
		assert_row_u64(
			rows[i].name, sl_fit_in(&closed, &closed.now, need), false);
		assert_row_u64(rows[i].name, sl_fit_ever(&closed, need), rows[i].ever);
	}
}

static void assert_sums(const char *at, const struct sl_fit_node *node)
{
	const struct sl_room *rooms[] = {&node->now, &node->later};

	for (size_t r = 0; r < 2; r++) {
		int64_t milli = 0, whole = 0;

		for (uint16_t i = 0; i < node->gpus; i++) {
			/* A GPU that is shut, or whose task is still leaving, has none left. */
			milli += rooms[r]->left[i] > 0 ? rooms[r]->left[i] : 0;
			whole += rooms[r]->left[i] == WHOLE;
		}
		assert_row_u64(at, (uint64_t)rooms[r]->gpu_milli, (uint64_t)milli);
		assert_row_u64(at, (uint64_t)rooms[r]->whole, (uint64_t)whole);
	}
}

/* A task is told to stop, another is promised its place and gets it. */
static void tells_now_from_later(void **state)
{
	struct sl_need need = {2000, 4096, 2, WHOLE, 0, 0, 0};
	struct sl_place place = {0, 3, WHOLE};
	struct sl_fit_node node, empty;

	sl_fit_node_init(&node, 3000, 6000, 2, 0, 0, 0);
	empty = node;
	sl_fit_take(&node, &need, place);
	assert_sums("taken", &node);
	assert_false(sl_fit_in(&node, &node.now, &need));
	assert_false(sl_fit_in(&node, &node.later, &need));

	sl_fit_release(&node, &need, place);
	assert_sums("released", &node);
	assert_false(sl_fit_in(&node, &node.now, &need));
	assert_true(sl_fit_in(&node, &node.later, &need));
	assert_int_equal(sl_fit_gpus(&node, &node.later, &need), 3);

	sl_fit_pipeline(&node, &need, place);
	assert_false(sl_fit_in(&node, &node.later, &need));

	/* It goes on all the same: the promise stands on its place until taken back. */
	sl_fit_unrelease(&node, &need, place);
	assert_sums("overlap", &node);
	assert_int_equal(node.later.gpu_milli, 0);
	assert_int_equal(node.later.left[1], -WHOLE);
	sl_fit_unpipeline(&node, &need, place);
	assert_sums("no overlap", &node);
	assert_memory_equal(&node.now, &node.later, sizeof(node.now));

	sl_fit_release(&node, &need, place);
	sl_fit_give(&node, &need, place, true);
	assert_memory_equal(&node, &empty, sizeof(node));
	sl_fit_take(&node, &need, place);
	sl_fit_give(&node, &need, place, false);
	assert_memory_equal(&node, &empty, sizeof(node));
}

/* Tasks come and go at random; the rest is always the sum, and never below zero. */
static void keeps_its_accounts(void **state)
{
	struct {
		struct sl_need need;
		struct sl_place place;
	} tasks[32];
	struct sl_fit_node node, empty;
	uint32_t count = 0, placed = 0;

	srandom(11);
	sl_fit_node_init(&node, 32000, 65536, SL_FIT_GPUS_MAX, 16384, 63, 63);
	empty = node;
	for (int step = 0; step < 20000; step++) {
		struct sl_need need = {(uint32_t)random() % 4000,
			(uint32_t)random() % 8192, (uint16_t)(random() % 5),
			(uint16_t)(1 + random() % WHOLE), (uint32_t)random() % 8192,
			UINT64_C(1) << 63, UINT64_C(1) << 63};

		if (count < SL_ARRAY_LEN(tasks) && random() % 2 &&
			sl_fit_in(&node, &node.now, &need)) {
			struct sl_place place = {0, sl_fit_gpus(&node, &node.now, &need),
				(uint16_t)sl_fit_milli(&node, &need)};

			assert_int_equal(__builtin_popcount(place.gpu_mask), need.gpus);
			sl_fit_take(&node, &need, place);
			tasks[count].need = need;
			tasks[count++].place = place;
			placed++;
		} else if (count) {
			uint32_t i = (uint32_t)random() % count;

			sl_fit_give(&node, &tasks[i].need, tasks[i].place, false);
			tasks[i] = tasks[--count];
		}
		assert_sums("random", &node);
		assert_true(node.now.cpu_milli >= 0 && node.now.memory_mib >= 0);
		for (int i = 0; i < SL_FIT_GPUS_MAX; i++)
			assert_in_range(node.now.left[i], 0, WHOLE);
	}
	while (count--)
		sl_fit_give(&node, &tasks[count].need, tasks[count].place, false);
	assert_memory_equal(&node, &empty, sizeof(node));
	assert_in_range(placed, 1000, 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fits),
		cmocka_unit_test(tells_now_from_later),
		cmocka_unit_test(keeps_its_accounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
