/* Demands, grants, measurement and death, through the whole daemon. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

#include "policy/node.h"

static int setup(void **state)
{
	static struct rig rig;

	rig_init(&rig, 1, 16 * RIG_GIB);
	rig_start(&rig, "context_reserve: 1GiB\nmeasure_interval: 50ms\nlongest_wait: "
			"1s\nresolvers: wait\n");
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_fini(*state);
	return 0;
}

static void ask_grant_commit_free(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 4 * RIG_GIB, 8 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run);
	struct sl_msg_gpu_row gpu;
	struct sl_msg_use_row use;
	union sl_msg msg;

	gpu = rig_gpu(rig);
	assert_int_equal(gpu.capacity_bytes, 16 * RIG_GIB);
	assert_int_equal(gpu.reserve_bytes, RIG_GIB);
	assert_int_equal(gpu.shareable_bytes, 15 * RIG_GIB);
	assert_int_equal(gpu.requests_bytes, 4 * RIG_GIB);
	rig_ask(&a, 7, 3 * RIG_GIB);
	rig_expect(&a, SL_MSG_GRANT, &msg);
	assert_int_equal(msg.grant.ask, 7);
	assert_int_equal(msg.grant.bytes, 3 * RIG_GIB);
	gpu = rig_gpu(rig);
	assert_int_equal(gpu.granted_bytes, 3 * RIG_GIB);
	assert_int_equal(gpu.backing_bytes, 0);
	rig_commit(&a, msg.grant.epoch, 2 * RIG_GIB);
	rig_until(rig_gpu(rig).backing_bytes == 2 * RIG_GIB);
	assert_int_equal(rig_gpu(rig).granted_bytes, 0);
	assert_int_equal(rig_uses(rig, &use, 1), 1);
	assert_int_equal(use.backing_bytes, 2 * RIG_GIB);
	assert_int_equal(use.request_bytes, 4 * RIG_GIB);
	assert_int_equal(use.limit_bytes, 8 * RIG_GIB);
	assert_int_equal(use.clients, 1);
	assert_int_equal(use.state, SL_STATE_BOUND);
	assert_int_equal(use.pid, run.pid);
	assert_string_equal(use.command, "/usr/bin/server --fast");
	sl_wire_init(&msg, SL_MSG_FREED);
	msg.freed.bytes = RIG_GIB;
	rig_send(&a, &msg);
	rig_until(rig_gpu(rig).backing_bytes == RIG_GIB);
	/* peer-failures row 7: more freed than held saturates, and is reported. */
	msg.freed.bytes = 5 * RIG_GIB;
	rig_send(&a, &msg);
	rig_until(rig_gpu(rig).backing_bytes == 0);
	assert_true(rig_log_gets(rig, "UNDERFLOW"));
	rig_peer_end(&a);
	rig_peer_end(&run);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

static void above_the_limit_is_denied_at_once(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 2 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run);
	union sl_msg msg;

	rig_ask(&a, 1, 3 * RIG_GIB);
	rig_expect(&a, SL_MSG_DENY, &msg);
	assert_int_equal(msg.deny.ask, 1);
	assert_int_equal(msg.deny.reason, SL_REASON_OVER_LIMIT);
	rig_peer_end(&a);
	rig_peer_end(&run);
}

/* The whole way of a death: waiter told as soon as NVML shows the bytes gone, not before. */
static void bytes_of_the_dead_flow_when_nvml_shows_them_gone(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run_a = rig_run(rig, 0, 15 * RIG_GIB);
	struct rig_peer run_b = rig_run(rig, 10 * RIG_GIB, 10 * RIG_GIB);
	struct rig_peer a, b;
	union sl_msg msg;

	/* A may burst over what B's request leaves: 5 GiB. */
	a = rig_join(rig, &run_a);
	b = rig_join(rig, &run_b);
	rig_hold(rig, &a, 1, 5 * RIG_GIB);
	rig_hold(rig, &b, 1, 9 * RIG_GIB);
	rig_ask(&b, 2, RIG_GIB);
	rig_expect(&b, SL_MSG_GRANT, &msg);
	rig_nvml(rig, b.pid, 10 * RIG_GIB);
	rig_commit(&b, msg.grant.epoch, RIG_GIB);
	rig_ask(&a, 2, 3 * RIG_GIB); /* nothing is left: waits */
	rig_expect_silence(&a, 100);
	rig_peer_kill(&b); /* the socket stays open, as in a forked child */
	rig_until(rig_gpu(rig).dying_bytes == 10 * RIG_GIB);
	rig_expect_silence(&a, 100);
	rig_nvml(rig, b.pid, 4 * RIG_GIB); /* part of it is back */
	rig_until(rig_gpu(rig).dying_bytes == 4 * RIG_GIB);
	rig_peer_end(&run_b); /* its request goes at once */
	rig_expect(&a, SL_MSG_GRANT, &msg);
	rig_commit(&a, msg.grant.epoch, 3 * RIG_GIB);
	rig_nvml(rig, a.pid, 8 * RIG_GIB);
	rig_ask(&a, 3, 7 * RIG_GIB);
	rig_expect_silence(&a, 60);
	rig_nvml(rig, b.pid, 0);
	rig_expect(&a, SL_MSG_GRANT, &msg);
	rig_expect_closed(&b);
	(void)close(b.fd);
	rig_peer_end(&a);
	rig_peer_end(&run_a);
	rig_nvml(rig, a.pid, 0);
	rig_until(rig_gpu(rig).dying_bytes == 0 && rig_uses(rig, NULL, 0) == 0);
}

/* A driver that drops the process from its list before the memory is back. */
static void a_list_ahead_of_the_memory_is_not_believed(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 4 * RIG_GIB, 4 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run);

	rig_hold(rig, &a, 1, 4 * RIG_GIB);
	sl_clock_sleep(150 * SL_MS); /* long enough to learn what is normal */
	rig->nvml->gpus[0].unlisted_bytes = 4 * RIG_GIB;
	rig_nvml(rig, a.pid, 0);
	rig_peer_end(&a);
	rig_until(rig_gpu(rig).dying_bytes == 4 * RIG_GIB);
	sl_clock_sleep(100 * SL_MS);
	assert_int_equal(rig_gpu(rig).dying_bytes, 4 * RIG_GIB);
	rig->nvml->gpus[0].unlisted_bytes = 0;
	rig_until(rig_gpu(rig).dying_bytes == 0);
	rig_peer_end(&run);
}

/* More than one look at the GPU tells the policy of. */
static void many_that_die_at_once_are_all_released(void **state)
{
	enum { MANY = 220 };
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, RIG_GIB), peers[MANY];

	for (int i = 0; i < MANY; i++) {
		peers[i] = rig_join(rig, &run);
		rig_hold(rig, &peers[i], 1, SL_MIB);
	}
	sl_clock_sleep(150 * SL_MS); /* long enough to learn what is normal */
	rig->nvml->gpus[0].unlisted_bytes = RIG_GIB;
	for (int i = 0; i < MANY; i++) {
		rig_nvml(rig, peers[i].pid, 0);
		rig_peer_end(&peers[i]);
	}
	rig->nvml->gpus[0].unlisted_bytes = 0;
	rig_until(rig_gpu(rig).dying_bytes == 0 && rig_gpu(rig).backing_bytes == 0);
	rig_peer_end(&run);
}

static void create_failed_waits_on_under_the_same_number(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 4 * RIG_GIB, 4 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run);
	union sl_msg msg;
	uint64_t first;

	rig_ask(&a, 5, RIG_GIB);
	rig_expect(&a, SL_MSG_GRANT, &msg);
	first = msg.grant.epoch;
	sl_wire_init(&msg, SL_MSG_CREATE_FAILED);
	msg.create_failed.epoch = first;
	rig_send(&a, &msg);
	rig_expect(&a, SL_MSG_GRANT, &msg);
	assert_int_equal(msg.grant.ask, 5);
	assert_int_not_equal(msg.grant.epoch, first);
	rig_commit(&a, first, RIG_GIB); /* void by now */
	rig_commit(&a, msg.grant.epoch, RIG_GIB);
	rig_until(rig_gpu(rig).backing_bytes == RIG_GIB);
	rig_peer_end(&a);
	rig_peer_end(&run);
	rig_until(rig_gpu(rig).dying_bytes == 0);
}

static void a_burst_waits_only_so_long(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run_a = rig_run(rig, 15 * RIG_GIB, 15 * RIG_GIB);
	struct rig_peer run_b = rig_run(rig, 0, 15 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run_a), b = rig_join(rig, &run_b);
	union sl_msg msg;
	sl_ns asked;

	rig_hold(rig, &a, 1, 15 * RIG_GIB);
	asked = sl_clock_now();
	rig_ask(&b, 1, RIG_GIB);
	rig_expect(&b, SL_MSG_DENY, &msg);
	assert_true(sl_clock_now() - asked >= 900 * SL_MS);
	assert_int_equal(msg.deny.reason, SL_REASON_WAITED_TOO_LONG);
	rig_peer_end(&a);
	rig_peer_end(&b);
	rig_peer_end(&run_a);
	rig_peer_end(&run_b);
	rig_nvml(rig, a.pid, 0);
	rig_until(rig_gpu(rig).dying_bytes == 0);
}

/* peer-failures row 13: contexts and code count. */
static void hidden_bytes_are_measured_on_demand(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 4 * RIG_GIB, 8 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run), b = rig_join(rig, &run);
	union sl_msg msg;

	rig_hold(rig, &a, 1, RIG_GIB);
	/* The reserve of 1 GiB pays as much of it. */
	rig_nvml(rig, a.pid, 2 * RIG_GIB + (300 << 20));
	sl_wire_init(&msg, SL_MSG_MEASURE);
	rig_send(&a, &msg);
	do {
		rig_expect(&a, SL_MSG_GPU, &msg);
	} while (msg.gpu.others_bytes != 300 << 20);
	assert_int_equal(rig_gpu(rig).hidden_bytes, 300 << 20);
	assert_int_equal(rig_gpu(rig).paid_bytes, RIG_GIB);
	/* The other process of the workload sees backing and hidden bytes of the first. */
	do {
		rig_expect(&b, SL_MSG_GPU, &msg);
	} while (msg.gpu.others_bytes != RIG_GIB + (300 << 20));
	assert_int_equal(msg.gpu.total_bytes, 8 * RIG_GIB);
	assert_int_equal(msg.gpu.limit_bytes, 8 * RIG_GIB);
	assert_int_equal(msg.gpu.request_bytes, 4 * RIG_GIB);
	/* A fall is believed too, after two looks. */
	rig_nvml(rig, a.pid, 2 * RIG_GIB + (100 << 20));
	rig_until(rig_gpu(rig).hidden_bytes == 100 << 20);
	/* With a grant open nothing can be judged; the answer comes all the same. */
	rig_ask(&a, 2, RIG_GIB);
	rig_expect(&a, SL_MSG_GRANT, &msg);
	rig_nvml(rig, a.pid, 3 * RIG_GIB + (100 << 20));
	sl_clock_sleep(200 * SL_MS);
	assert_int_equal(rig_gpu(rig).hidden_bytes, 100 << 20);
	sl_wire_init(&msg, SL_MSG_MEASURE);
	rig_send(&a, &msg);
	rig_expect(&a, SL_MSG_GPU, &msg);
	rig_peer_end(&a);
	rig_peer_end(&b);
	rig_peer_end(&run);
	rig_nvml(rig, a.pid, 0);
	rig_until(rig_gpu(rig).dying_bytes == 0);
}

/* peer-failures row 23: a process that uses the GPU without us is seen. */
static void strangers_are_unmanaged(void **state)
{
	struct rig *rig = *state;

	rig_nvml(rig, 1, 2 * RIG_GIB);
	rig_until(rig_gpu(rig).unmanaged_bytes == 2 * RIG_GIB);
	assert_int_equal(rig_gpu(rig).shareable_bytes, 13 * RIG_GIB);
	assert_true(rig_log_gets(rig, "process 1 uses 2 GiB of GPU 0 without sluice"));
	rig_nvml(rig, 1, 0);
	rig_until(rig_gpu(rig).unmanaged_bytes == 0);
}

/* While NVML hangs, grants go on, the age of its figures is shown, and dead processes are not
 * waited for without end. */
static void a_hanging_nvml_blocks_nobody(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 4 * RIG_GIB, 4 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run);
	union sl_msg msg;

	rig->nvml->hang = 1;
	sl_clock_sleep(100 * SL_MS);
	rig_hold(rig, &a, 1, 2 * RIG_GIB);
	sl_wire_init(&msg, SL_MSG_MEASURE);
	rig_send(&a, &msg);
	rig_expect(&a, SL_MSG_GPU, &msg);
	rig_peer_end(&a);
	sl_clock_sleep(2 * SL_S);
	assert_int_equal(rig_gpu(rig).dying_bytes, 2 * RIG_GIB);
	assert_true(rig_gpu(rig).measured_age_ms > 1500);
	sl_clock_sleep(2 * SL_S);
	rig_until(rig_gpu(rig).dying_bytes == 0);
	rig_until(rig_status(rig).nvml_ok == 0);
	rig->nvml->hang = 0;
	rig_nvml(rig, a.pid, 0);
	rig_until(rig_status(rig).nvml_ok == 1);
	rig_peer_end(&run);
}

static sl_ns worst_of(const struct rig_peer *peer, uint64_t first, uint64_t count)
{
	sl_ns worst = 0;

	for (uint64_t i = first; i < first + count; i++) {
		sl_ns asked = sl_clock_now();
		union sl_msg msg;

		rig_ask(peer, i, RIG_GIB / 1024);
		rig_expect(peer, SL_MSG_GRANT, &msg);
		worst = sl_max_u64(worst, sl_clock_now() - asked);
		rig_commit(peer, msg.grant.epoch, 0);
	}
	return worst;
}

/* A client that floods or does not read loses its connection and delays no other. */
static void floods_hit_only_the_flooder(void **state)
{
	enum { FLOODERS = 4 };
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 4 * RIG_GIB, 4 * RIG_GIB);
	struct rig_peer bad = rig_join(rig, &run), good = rig_join(rig, &run);
	union sl_msg msg;
	sl_ns worst;
	pid_t flooder, more[FLOODERS];

	flooder = fork();
	if (flooder == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		sl_wire_init(&msg, SL_MSG_ASK);
		msg.ask.bytes = 64 * RIG_GIB; /* denied each time, and never read */
		while (sl_wire_send(bad.fd, &msg) == SL_WIRE_OK)
			msg.ask.ask++;
		_exit(0);
	}
	worst = worst_of(&good, 1, 300);
	assert_int_equal(waitpid(flooder, NULL, 0), flooder);
	assert_true(rig_log_gets(rig, "does not read its messages"));
	rig_peer_end(&bad);
	/* What needs no answer can be sent for ever. */
	bad = rig_join(rig, &run);
	for (int i = 0; i < FLOODERS; i++) {
		more[i] = fork();
		if (more[i] == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			sl_wire_init(&msg, SL_MSG_WORK);
			for (;;)
				(void)!sl_wire_send(bad.fd, &msg);
		}
	}
	worst = sl_max_u64(worst, worst_of(&good, 1000, 300));
	for (int i = 0; i < FLOODERS; i++) {
		(void)kill(more[i], SIGKILL);
		assert_int_equal(waitpid(more[i], NULL, 0), more[i]);
	}
	print_message("a neighbour of a flood waited %llu us at most\n",
		(unsigned long long)(worst / SL_US));
	rig_peer_end(&bad);
	rig_peer_end(&good);
	rig_peer_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ask_grant_commit_free),
		cmocka_unit_test(above_the_limit_is_denied_at_once),
		cmocka_unit_test(bytes_of_the_dead_flow_when_nvml_shows_them_gone),
		cmocka_unit_test(a_list_ahead_of_the_memory_is_not_believed),
		cmocka_unit_test(many_that_die_at_once_are_all_released),
		cmocka_unit_test(create_failed_waits_on_under_the_same_number),
		cmocka_unit_test(a_burst_waits_only_so_long),
		cmocka_unit_test(hidden_bytes_are_measured_on_demand),
		cmocka_unit_test(strangers_are_unmanaged),
		cmocka_unit_test(floods_hit_only_the_flooder),
		cmocka_unit_test(a_hanging_nvml_blocks_nobody),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, setup, teardown);
}
