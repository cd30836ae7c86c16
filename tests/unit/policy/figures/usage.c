/* usage - allocated and used memory of a GPU: nothing is counted twice, and used is a
 * part of allocated */
#include "../../base/test.h"

#include "policy/figures/usage.h"

#define G SL_GIB

struct holder {
	uint64_t request, here;
	uint32_t allocated;
};

static void nothing_is_counted_twice(void **state)
{
	static const struct {
		const char *name;
		uint64_t shareable;
		struct holder holders[3];
	} rows[] = {
		{"all fits: the larger of the two", 10 * G,
			{{5 * G, G, 500000}, {G, 3 * G, 300000}, {0, 2 * G, 200000}}},
		{"what is lent is the borrower's", 10 * G,
			{{6 * G, 0, 300000}, {0, 7 * G, 700000}}},
		{"half of it is lent", 10 * G,
			{{6 * G, 2 * G, 400000}, {0, 6 * G, 600000}}},
		{"two lend, each in proportion", 10 * G,
			{{6 * G, 0, 300000}, {2 * G, 0, 100000}, {0, 6 * G, 600000}}},
		{"on the host, and lent in whole", 10 * G,
			{{6 * G, 0, 0}, {4 * G, 10 * G, 1000000}}},
		{"requests above the GPU, which is degraded", 10 * G,
			{{10 * G, 0, 500000}, {10 * G, 0, 500000}}},
		{"more there than there is", 10 * G,
			{{0, 15 * G, 750000}, {20 * G, 5 * G, 250000}}},
		{"nothing is shared", 0, {{G, G, 0}}},
		{"nobody", 10 * G, {{0, 0, 0}}},
		{"absurd figures", 10 * G,
			{{UINT64_MAX, 0, 0}, {0, UINT64_MAX, 1000000}}},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_usage_gpu gpu = {.shareable_bytes = rows[i].shareable};
		uint64_t sum = 0;

		for (size_t h = 0; h < 3; h++)
			sl_usage_add(&gpu, rows[i].holders[h].request,
				rows[i].holders[h].here);
		for (size_t h = 0; h < 3; h++) {
			const struct holder *holder = &rows[i].holders[h];
			uint32_t ppm =
				sl_usage_allocated(&gpu, holder->request, holder->here);

			assert_row_u64(rows[i].name, ppm, holder->allocated);
			sum += ppm;
		}
		assert_true(sum <= SL_USAGE_WHOLE);
	}
}

/* The same with random figures. */
static void never_above_the_gpu(void **state)
{
	uint64_t seed = 20261122;

	for (int round = 0; round < 20000; round++) {
		struct sl_usage_gpu gpu = {0};
		uint64_t values[17], sum = 0;

		for (size_t i = 0; i < SL_ARRAY_LEN(values); i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			values[i] = (seed >> 20) >> (seed % 44);
		}
		gpu.shareable_bytes = values[16];
		for (int i = 0; i < 16; i += 2)
			sl_usage_add(&gpu, values[i], values[i + 1]);
		for (int i = 0; i < 16; i += 2)
			sum += sl_usage_allocated(&gpu, values[i], values[i + 1]);
		assert_true(sum <= SL_USAGE_WHOLE);
	}
}

static void used_is_a_part_of_allocated(void **state)
{
	static const struct {
		const char *name;
		uint32_t allocated, utilisation, part, used;
	} rows[] = {
		{"half of the work, and half of the GPU", 500000, 600, 500000, 300000},
		{"all of the work with a tenth of the memory", 100000, 900, 1000000,
			100000},
		{"none", 500000, 900, 0, 0},
		{"nothing is done", 500000, 0, 1000000, 0},
		{"absurd", 1000000, UINT32_MAX, UINT32_MAX, 1000000},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		assert_row_u64(rows[i].name,
			sl_usage_used(
				rows[i].allocated, rows[i].utilisation, rows[i].part),
			rows[i].used);
}

static void work_is_judged_by_what_was_said(void **state)
{
	static const struct {
		const char *name;
		struct sl_usage_look before, now;
		bool gone, told;
		enum sl_usage_work work;
	} rows[] = {
#define LOOK(here, clients_, idle, ms, pm) \
	{.here_bytes = (here),             \
		.clients = (clients_),     \
		.idle_clients = (idle),    \
		.idle_ms = (ms),           \
		.work_pm = (pm)}
#define UNTOLD SL_USAGE_UNTOLD
		{"memory there, and not idle", LOOK(G, 1, 0, 0, UNTOLD),
			LOOK(G, 1, 0, 0, UNTOLD), false, false, SL_USAGE_WORKED},
		{"idle for longer", LOOK(G, 1, 0, 0, UNTOLD), LOOK(G, 1, 1, 1000, UNTOLD),
			false, false, SL_USAGE_IDLE},
		{"idle since a moment", LOOK(G, 1, 0, 0, UNTOLD),
			LOOK(G, 1, 1, 500, UNTOLD), false, false, SL_USAGE_WORKED},
		{"one of two is idle", LOOK(G, 2, 0, 0, UNTOLD),
			LOOK(G, 2, 1, 5000, UNTOLD), false, false, SL_USAGE_WORKED},
		{"no memory there", LOOK(0, 1, 0, 0, UNTOLD), LOOK(0, 1, 0, 0, UNTOLD),
			false, false, SL_USAGE_IDLE},
		{"no process", LOOK(0, 0, 0, 0, UNTOLD), LOOK(0, 0, 0, 0, UNTOLD), false,
			false, SL_USAGE_IDLE},
		{"gone, and had work", LOOK(G, 1, 0, 0, UNTOLD), {0}, true, false,
			SL_USAGE_WORKED},
		{"gone, and was idle", LOOK(G, 1, 1, 5000, UNTOLD), {0}, true, false,
			SL_USAGE_IDLE},
		{"gone before it said anything", LOOK(0, 0, 0, 0, UNTOLD), {0}, true,
			false, SL_USAGE_UNKNOWN},
		{"its process is gone", LOOK(G, 1, 0, 0, UNTOLD),
			LOOK(0, 0, 0, 0, UNTOLD), false, false, SL_USAGE_WORKED},
		{"told that it worked", LOOK(G, 1, 1, 5000, 0), LOOK(G, 1, 1, 5000, 3),
			false, true, SL_USAGE_WORKED},
		{"told that it did nothing", LOOK(G, 1, 0, 0, 3), LOOK(G, 1, 0, 0, 0),
			false, true, SL_USAGE_IDLE},
		{"gone, and told before", LOOK(G, 1, 0, 0, 3), {0}, true, true,
			SL_USAGE_WORKED},
		{"gone, and nothing was told yet", LOOK(G, 1, 0, 0, UNTOLD), {0}, true,
			true, SL_USAGE_UNKNOWN},
#undef LOOK
#undef UNTOLD
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		assert_row_u64(rows[i].name,
			sl_usage_work(&rows[i].before, rows[i].gone ? NULL : &rows[i].now,
				rows[i].told, 1000),
			rows[i].work);
}

/* Request 20: 10 there, a burst, parked with its context left, resumed, and a request that is taken
 * away bit by bit. */
static void parking_is_no_burst(void **state)
{
	static const struct {
		uint64_t request, here;
		bool bursts;
	} steps[] = {{20, 10, false}, {20, 25, true}, {20, 20, false}, {7, 13, false},
		{0, 9, false}, {0, 2, false}, {0, 21, true}, {20, 12, false},
		{20, 20, false}, {15, 20, false}, {15, 20, true}};
	struct sl_usage_bursting so_far = {0}, fresh = {0};

	for (size_t i = 0; i < SL_ARRAY_LEN(steps); i++)
		assert_int_equal(
			sl_usage_bursts(&so_far, steps[i].request, steps[i].here),
			steps[i].bursts);
	/* One that never had a request bursts with all it has. */
	assert_true(sl_usage_bursts(&fresh, 0, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_counted_twice),
		cmocka_unit_test(never_above_the_gpu),
		cmocka_unit_test(used_is_a_part_of_allocated),
		cmocka_unit_test(parking_is_no_burst),
		cmocka_unit_test(work_is_judged_by_what_was_said),
	};

	return cmocka_run_group_tests_name("usage", tests, NULL, NULL);
}
