#include "../../base/test.h"

#include "policy/placement/guests.h"

#define COUNT 4
#define GPUS  3
#define SIZE  4

/* --- small cases by name ------------------------------------------------------------------ */

static struct sl_guest guest(uint32_t home, uint32_t at, uint64_t request)
{
	return (struct sl_guest){.home = home,
		.at = at,
		.reach = 7,
		.request_bytes = request,
		.claims = true,
		.returns = true,
		.bursts = true,
		.moves = true};
}

/* GPUs that are used by these and no others. */
static void use(
	struct sl_guests_gpu gpus[32], const struct sl_guest guests[], size_t count)
{
	memset(gpus, 0, 32 * sizeof(gpus[0]));
	for (uint32_t i = 0; i < GPUS; i++) {
		gpus[i].shareable_bytes = SIZE;
		gpus[i].works = true;
	}
	for (size_t i = 0; i < count; i++) {
		for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
			if (!guests[i].claims || !(guests[i].at >> gpu & 1))
				continue;
			gpus[gpu].requests_bytes += guests[i].request_bytes;
			gpus[gpu].compute_pm += guests[i].compute_pm;
			gpus[gpu].users++;
		}
	}
}

static void one_goes_home(void **state)
{
	struct sl_guest all[] = {guest(1, 1, 2), guest(1, 2, 2)};
	struct sl_guests_gpu gpus[32];
	size_t stuck = 9;

	use(gpus, all, 2);
	assert_int_equal(sl_guests_leave(gpus, all, 2, 2, &stuck), SL_GUESTS_GO);
	assert_false(all[0].goes);
	assert_true(all[1].goes);
	/* It is leaving already, or parked. */
	all[1].claims = false;
	assert_int_equal(sl_guests_leave(gpus, all, 2, 2, &stuck), SL_GUESTS_NONE);
	all[1].claims = true;
	/* None is a guest there. */
	assert_int_equal(sl_guests_leave(gpus, all, 2, 1, &stuck), SL_GUESTS_NONE);
	assert_false(all[1].goes);
}

static void a_guest_at_its_home_goes_first(void **state)
{
	struct sl_guest all[] = {guest(1, 2, 3), guest(4, 1, 3)};
	struct sl_guests_gpu gpus[32];
	size_t stuck = 9;

	use(gpus, all, 2);
	assert_int_equal(sl_guests_leave(gpus, all, 2, 2, &stuck), SL_GUESTS_GO);
	assert_true(all[0].goes);
	assert_true(all[1].goes);
}

/* All memory fits, but its home has no time left. */
static void a_guest_that_has_its_time_goes_first(void **state)
{
	struct sl_guest all[] = {guest(1, 2, 1), guest(4, 1, 1)};
	struct sl_guests_gpu gpus[32];
	size_t stuck = 9;

	all[0].compute_pm = all[1].compute_pm = 500;
	use(gpus, all, 2);
	assert_int_equal(sl_guests_leave(gpus, all, 2, 2, &stuck), SL_GUESTS_GO);
	assert_true(all[0].goes);
	assert_false(all[1].goes);
	all[0].compute_pm = 501;
	use(gpus, all, 2);
	assert_int_equal(sl_guests_leave(gpus, all, 2, 2, &stuck), SL_GUESTS_GO);
	assert_true(all[0].goes);
	assert_true(all[1].goes);
}

static void the_one_in_the_way_is_named(void **state)
{
	struct sl_guest all[] = {guest(1, 2, 3), guest(4, 1, 3)};
	struct sl_guests_gpu gpus[32];
	size_t stuck = 9;

	use(gpus, all, 2);
	all[1].moves = false;
	assert_int_equal(sl_guests_leave(gpus, all, 2, 2, &stuck), SL_GUESTS_STUCK);
	assert_int_equal(stuck, 1);
	/* It need not move if there is room beside it. */
	all[1].request_bytes = 1;
	use(gpus, all, 2);
	assert_int_equal(sl_guests_leave(gpus, all, 2, 2, &stuck), SL_GUESTS_GO);
	assert_false(all[1].goes);
	/* A stranger fills its home. */
	gpus[0].requests_bytes = SIZE;
	all[1].at = 4;
	assert_int_equal(sl_guests_leave(gpus, all, 2, 2, &stuck), SL_GUESTS_STUCK);
	assert_int_equal(stuck, 0);
}

/* --- every small case --------------------------------------------------------------------- */

static bool fits(const struct sl_guest all[], bool at_home)
{
	uint64_t sum[GPUS] = {0};

	for (size_t i = 0; i < COUNT; i++) {
		uint32_t mask = at_home ? all[i].home : all[i].at;

		sum[__builtin_ctz(mask)] += all[i].request_bytes;
	}
	for (size_t gpu = 0; gpu < GPUS; gpu++) {
		if (sum[gpu] > SIZE)
			return false;
	}
	return true;
}

static void leave(struct sl_guest all[COUNT], uint32_t wanted)
{
	struct sl_guests_gpu gpus[32];
	size_t stuck = 0;

	use(gpus, all, COUNT);
	assert_int_not_equal(
		sl_guests_leave(gpus, all, COUNT, wanted, &stuck), SL_GUESTS_STUCK);
	for (size_t i = 0; i < COUNT; i++) {
		if (all[i].goes)
			all[i].at = all[i].home;
		assert_true(!(all[i].at & wanted) || all[i].home & wanted);
	}
	assert_true(fits(all, false));
}

/* Three sizes, three homes and three places for each of four workloads. */
static void all_can_leave_if_all_fit_at_home(void **state)
{
	const uint32_t cases = 27u * 27 * 27 * 27;
	uint32_t tried = 0;

	for (uint32_t number = 0; number < cases; number++) {
		struct sl_guest all[COUNT];
		uint32_t left = number;

		for (size_t i = 0; i < COUNT; i++, left /= 27)
			all[i] = guest(
				1u << left % 3, 1u << left / 3 % 3, 1 + left / 9 % 3);
		if (!fits(all, true) || !fits(all, false))
			continue;
		leave(all, 1u << number % GPUS);
		tried++;
	}
	assert_int_not_equal(tried, 0);
}

/* --- spreading ---------------------------------------------------------------------------- */

static void one_of_two_goes_to_the_unused(void **state)
{
	struct sl_guest all[] = {guest(1, 1, 2), guest(1, 1, 2)};
	struct sl_guests_gpu gpus[32];
	uint32_t gpu = 9;

	use(gpus, all, 2);
	assert_int_equal(sl_guests_spread(gpus, all, 2, 1, &gpu), 0);
	assert_int_equal(gpu, 1);
	/* The one that was moved longest ago, and not at once again. */
	all[0].moved = 100 * SL_S;
	assert_int_equal(sl_guests_spread(gpus, all, 2, 101 * SL_S, &gpu), 1);
	all[1].moved = 90 * SL_S;
	assert_int_equal(sl_guests_spread(gpus, all, 2, 149 * SL_S, &gpu), 2);
	assert_int_equal(sl_guests_spread(gpus, all, 2, 150 * SL_S, &gpu), 1);
	assert_int_equal(sl_guests_spread(gpus, all, 2, 200 * SL_S, &gpu), 1);
	/* Others use it, without a request. */
	gpus[1].users = 1;
	assert_int_equal(sl_guests_spread(gpus, all, 2, 200 * SL_S, &gpu), 1);
	assert_int_equal(gpu, 2);
	gpus[2].users = 1;
	assert_int_equal(sl_guests_spread(gpus, all, 2, 200 * SL_S, &gpu), 2);
}

struct spread_row {
	const char *name;
	struct sl_guest all[2];
	uint32_t broken; /* GPUs that do not work */
	size_t chosen;
};

static void spreads_as_it_should(void **state)
{
	struct spread_row rows[] = {
		{"as it is", {guest(1, 1, 1), guest(1, 1, 1)}, 0, 0},
		{"alone on its GPU", {guest(1, 1, 1), guest(2, 2, 1)}, 0, 2},
		{"no burst", {guest(1, 1, 1), guest(1, 1, 1)}, 0, 1},
		{"cannot move", {guest(1, 1, 1), guest(1, 1, 1)}, 0, 1},
		{"is not there", {guest(1, 1, 1), guest(1, 1, 1)}, 0, 2},
		{"cannot reach it", {guest(1, 1, 1), guest(1, 1, 1)}, 0, 1},
		{"all others lost", {guest(1, 1, 1), guest(1, 1, 1)}, 6, 2},
		{"homes are kept", {guest(6, 6, 1), guest(1, 1, 1)}, 0, 2},
	};

	rows[2].all[0].bursts = false;
	rows[3].all[0].moves = false;
	rows[4].all[0].claims = false;
	rows[5].all[0].reach = 1;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_guests_gpu gpus[32];
		uint32_t gpu = 9;
		size_t chosen;

		use(gpus, rows[i].all, 2);
		for (uint32_t g = 0; g < GPUS; g++)
			gpus[g].works = !(rows[i].broken >> g & 1);
		chosen = sl_guests_spread(gpus, rows[i].all, 2, 1, &gpu);
		if (chosen != rows[i].chosen)
			fail_msg(
				"%s: %zu, not %zu", rows[i].name, chosen, rows[i].chosen);
	}
}

/* A detached one comes back to its home; one that was parked for others does not. */
static void homes_of_those_that_return_are_kept(void **state)
{
	struct sl_guest all[] = {guest(1, 1, 1), guest(1, 1, 1), guest(6, 6, 1)};
	struct sl_guests_gpu gpus[32];
	uint32_t gpu = 9;

	all[2].claims = false;
	use(gpus, all, 3);
	assert_int_equal(sl_guests_spread(gpus, all, 3, 1, &gpu), 3);
	all[2].returns = false;
	assert_int_equal(sl_guests_spread(gpus, all, 3, 1, &gpu), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_goes_home),
		cmocka_unit_test(a_guest_at_its_home_goes_first),
		cmocka_unit_test(a_guest_that_has_its_time_goes_first),
		cmocka_unit_test(the_one_in_the_way_is_named),
		cmocka_unit_test(all_can_leave_if_all_fit_at_home),
		cmocka_unit_test(one_of_two_goes_to_the_unused),
		cmocka_unit_test(spreads_as_it_should),
		cmocka_unit_test(homes_of_those_that_return_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
