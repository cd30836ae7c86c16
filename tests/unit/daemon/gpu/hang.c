/* NVML that hangs, lags, or answers nonsense. */
#include "../rig.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int setup(void **state)
{
	static struct rig rig;

	rig_init(&rig, 1, 16 * RIG_GIB);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_fini(*state);
	return 0;
}

/* Questions are answered all the same: grants, lists, deaths. */
static void grants_go_on_while_it_hangs(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run, a;
	union sl_msg msg;

	rig_start(rig, "context_reserve: 1GiB\nmeasure_interval: 20ms\n");
	run = rig_run(rig, RIG_GIB, 2 * RIG_GIB);
	a = rig_join(rig, &run);
	rig->nvml->hang = rig->nvml->hang_wait = 1;
	for (uint64_t ask = 1; ask <= 20; ask++) {
		rig_ask(&a, ask, RIG_GIB);
		rig_expect(&a, SL_MSG_GRANT, &msg);
		rig_commit(&a, msg.grant.epoch, 0);
	}
	/* MEASURE is answered from known figures. */
	sl_wire_init(&msg, SL_MSG_MEASURE);
	rig_send(&a, &msg);
	rig_expect(&a, SL_MSG_GPU, &msg);
	rig_peer_end(&a);
	rig_peer_end(&run);
	rig_until(rig_uses(rig, NULL, 0) == 0);
	/* SIGTERM: both threads are left behind. */
	rig_stop(rig);
	rig->nvml->hang = rig->nvml->hang_wait = 0;
}

/* The end of a process whose memory cannot be measured is believed in the end. */
static void garbage_is_no_harm(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run, a;
	union sl_msg msg;

	rig_start(rig, "context_reserve: 1GiB\nmeasure_interval: 20ms\n");
	run = rig_run(rig, RIG_GIB, 2 * RIG_GIB);
	a = rig_join(rig, &run);
	rig_hold(rig, &a, 1, RIG_GIB);
	rig->nvml->garbage = 1;
	/* Nonsense may cost the GPU its free memory, but never the daemon its wits. */
	rig_until(rig_gpu(rig).unmanaged_bytes > 0);
	assert_true(rig_gpu(rig).unmanaged_bytes <= 16 * RIG_GIB);
	assert_int_equal(rig_gpu(rig).backing_bytes, RIG_GIB);
	rig->nvml->garbage = 0;
	rig_until(rig_gpu(rig).unmanaged_bytes == 0);
	rig_ask(&a, 2, RIG_GIB);
	rig_expect(&a, SL_MSG_GRANT, &msg);
	rig_nvml(rig, a.pid, 0);
	rig_peer_end(&a);
	rig_peer_end(&run);
	rig_until(rig_uses(rig, NULL, 0) == 0 && rig_gpu(rig).dying_bytes == 0);
	rig_stop(rig);
}

/* A stop while the first list of GPUs does not come: at once, not after ten seconds. */
static void sigterm_at_a_start_that_hangs(void **state)
{
	struct rig *rig = *state;
	sl_ns begin;

	rig->nvml->hang_init = 1;
	rig->nvml->opened = 0;
	rig_spawn(rig, NULL);
	rig_until(rig->nvml->opened > 0);
	begin = sl_clock_now();
	rig_stop(rig);
	/* It would wait 10 s; this does not bound how long it takes. */
	assert_true(sl_clock_now() - begin < 9 * SL_S);
	assert_false(rig_log_has(rig, "starting without it"));
	rig->nvml->hang_init = 0;
}

/* ulimit -n 8: the driver is present. */
static void too_few_descriptors_say_so(void **state)
{
	struct rig *rig = *state;

	rig_descriptors = 8;
	assert_int_not_equal(rig_start_fails(rig, NULL), 0);
	rig_descriptors = 0;
	assert_true(rig_log_has(rig, "descriptors"));
	assert_false(rig_log_has(rig, "install the driver"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grants_go_on_while_it_hangs),
		cmocka_unit_test(garbage_is_no_harm),
		cmocka_unit_test(sigterm_at_a_start_that_hangs),
		cmocka_unit_test(too_few_descriptors_say_so),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
