/*
 * The scheduler stops in time if its Lease is not renewed, whatever its calls wait for. It stops
 * for good: writes that it missed are not made later.
 */
#include "stage.h"

#include <errno.h>
#include <time.h>

#define LEASE SL_S

static int open_short(void **state)
{
	stage_open_for(LEASE);
	return 0;
}

static int on_late(sd_event_source *source, uint64_t usec, void *context)
{
	(void)sd_event_exit(context, 1);
	return 0;
}

/* No answer comes, neither good nor bad. */
static void it_stops_without_an_answer(void **state)
{
	struct sl_ks *ks = stage();

	assert_int_equal(sd_event_add_time_relative(ks->loop, NULL, CLOCK_MONOTONIC,
				 20 * SL_S / SL_US, 0, on_late, ks->loop),
		0);
	assert_int_equal(sd_event_loop(ks->loop), -ETIMEDOUT);
	assert_true(sl_ks_lease_left(ks->lease) == 0);
	assert_non_null(stage_find_call("/leases"));
}

/* The answer comes in the moment between the end and the turn of its timer. */
static void a_late_renewal_is_none(void **state)
{
	const struct timespec pause = {.tv_sec = 1};
	struct sl_ks *ks = stage();
	int code = 0;

	while (!stage_find_call("/leases"))
		assert_true(sd_event_run(ks->loop, 1000) >= 0);
	stage_answer(stage_find_call("/leases"), 200,
		json_pack("{s{ss}}", "spec", "holderIdentity", "me"));
	assert_true(stage_find_call("/leases")->verb == SL_KUBE_PUT);
	assert_true(sl_ks_lease_left(ks->lease) > 0);
	(void)nanosleep(&pause, NULL);
	assert_true(sl_ks_lease_left(ks->lease) == 0);
	stage_answer(stage_find_call("/leases"), 200,
		json_pack("{s{ss}}", "metadata", "resourceVersion", "7"));
	assert_true(sl_ks_lease_left(ks->lease) == 0);
	assert_int_equal(sd_event_get_exit_code(ks->loop, &code), 0);
	assert_int_equal(code, -ETIMEDOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			it_stops_without_an_answer, open_short, stage_close),
		cmocka_unit_test_setup_teardown(
			a_late_renewal_is_none, open_short, stage_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
