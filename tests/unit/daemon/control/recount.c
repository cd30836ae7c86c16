/* Verdicts that depend on unmanaged processes use a fresh sample. The daemon's regular samples are
 * 60 s apart here, so a change that is seen in time comes from a sample made for the message. */
#include <signal.h>
#include <string.h>

#include "policy/node.h"
#include "../rig.h"

#define CONFIG "context_reserve: 1GiB\nmeasure_interval: 60s\nresolvers: wait\n"

/* A process without us has so much when the daemon starts. */
static void begin(struct rig *rig, uint64_t strangers_bytes)
{
	rig_nvml(rig, 1, strangers_bytes);
	rig_start(rig, CONFIG);
	rig_until(rig_gpu(rig).unmanaged_bytes == strangers_bytes);
}

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

static struct rig_peer control(const struct rig *rig)
{
	struct rig_peer peer = rig_peer(rig);
	union sl_msg msg;

	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	return peer;
}

static void send_set(const struct rig_peer *peer, uint64_t workload, uint32_t which)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SET);
	msg.set.workload = workload;
	msg.set.which = which;
	msg.set.limit_kind = SL_AMOUNT_FRACTION;
	msg.set.limit_value = SL_AMOUNT_WHOLE;
	msg.set.priority_biased = SL_PRIORITY_BIAS + 1;
	rig_send(peer, &msg);
}

/* The row of LIST SWAP. */
static uint32_t work_of(const struct rig *rig, uint64_t workload)
{
	struct rig_peer peer = control(rig);
	uint32_t work_pm = 0;
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_USES;
	rig_send(&peer, &msg);
	for (;;) {
		assert_int_equal(
			sl_wire_recv(peer.fd, SL_FROM_DAEMON, &msg, NULL), SL_WIRE_OK);
		if (msg.head.type == SL_MSG_LIST_END)
			break;
		if (msg.use_row.workload == workload)
			work_pm = msg.use_row.work_pm;
	}
	rig_peer_end(&peer);
	return work_pm;
}

/* --- tests ------------------------------------------------------------------------------------ */

/* Work of all processes: 60 of 80, the rest is strangers'. Where the driver does not say, or says
 * what cannot be, it is unknown. */
static void who_did_what_is_nvmls_to_say(void **state)
{
	struct rig *rig = *state;
	struct fake_gpu *gpu = &rig->nvml->gpus[0];
	struct rig_peer run, client;
	unsigned int mine = 0;

	rig_nvml(rig, 1, RIG_GIB);
	rig_start(rig, "context_reserve: 1GiB\nmeasure_interval: 50ms\n");
	run = rig_run(rig, RIG_GIB, 2 * RIG_GIB);
	client = rig_join(rig, &run);
	rig_hold(rig, &client, 1, RIG_GIB);
	while (mine < gpu->count && gpu->rows[mine].pid == 1)
		mine++;
	gpu->busy_pct = 70;
	rig_until(work_of(rig, run.workload) == UINT32_MAX);
	gpu->rows[!mine].busy_pct = 20;
	gpu->rows[mine].busy_pct = 60;
	rig_until(work_of(rig, run.workload) == 750);
	gpu->rows[mine].busy_pct = 0;
	rig_until(work_of(rig, run.workload) == 0);
	gpu->process_use = 3; /* not supported */
	rig_until(work_of(rig, run.workload) == UINT32_MAX);
	gpu->busy_pct = gpu->process_use = 0;
	rig_nvml(rig, client.pid, 0);
	rig_peer_kill(&client);
	rig_peer_end(&run);
	rig_stop(rig);
}

/* A limit above the rest beside a program that has ended. */
static void who_is_gone_takes_nothing_of_a_limit(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run;
	union sl_msg msg;

	begin(rig, 10 * RIG_GIB);
	rig_nvml(rig, 1, 0);
	run = control(rig);
	rig_send_run(&run, RIG_GIB, 14 * RIG_GIB, 1, "", NULL);
	rig_expect(&run, SL_MSG_RUN_REPLY, &msg);
	assert_true(msg.run_reply.ok);
	assert_int_equal(msg.run_reply.limit_bytes, 14 * RIG_GIB);
	assert_int_equal(rig_gpu(rig).unmanaged_bytes, 0);
	rig_peer_end(&run);
	rig_stop(rig);
}

/* Its memory is no reason to refuse either; newer memory is one, before a promise is broken. */
static void admission_is_by_what_is_there(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run, other;
	union sl_msg msg;

	begin(rig, 10 * RIG_GIB);
	rig_nvml(rig, 1, 4 * RIG_GIB);
	run = control(rig);
	rig_send_run(&run, 8 * RIG_GIB, 0, 1, "", NULL);
	rig_expect(&run, SL_MSG_RUN_REPLY, &msg);
	assert_true(msg.run_reply.ok);
	rig_nvml(rig, 1, 6 * RIG_GIB);
	other = control(rig);
	rig_send_run(&other, 3 * RIG_GIB, 0, 1, "", NULL);
	rig_expect(&other, SL_MSG_RUN_REPLY, &msg);
	assert_false(msg.run_reply.ok);
	rig_peer_end(&other);
	rig_peer_end(&run);
	rig_stop(rig);
}

/* `sluice set` is exact, too; where no amount is set, there is no look. */
static void a_change_is_judged_alike(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run, setter;
	unsigned int questions;
	union sl_msg msg;

	begin(rig, 10 * RIG_GIB);
	run = rig_run(rig, RIG_GIB, 2 * RIG_GIB);
	setter = control(rig);
	rig_nvml(rig, 1, RIG_GIB);
	send_set(&setter, run.workload, SL_SET_LIMIT);
	rig_expect(&setter, SL_MSG_SET_REPLY, &msg);
	assert_true(msg.set_reply.ok);
	assert_int_equal(msg.set_reply.limit_bytes, 14 * RIG_GIB);
	questions = rig->nvml->questions;
	send_set(&setter, run.workload, SL_SET_PRIORITY);
	rig_expect(&setter, SL_MSG_SET_REPLY, &msg);
	assert_true(msg.set_reply.ok);
	assert_int_equal(rig->nvml->questions, questions);
	rig_peer_end(&setter);
	rig_peer_end(&run);
	rig_stop(rig);
}

/* Messages behind the waiting one keep their order, and a client that goes meanwhile does no
 * harm. */
static void what_follows_waits_behind_it(void **state)
{
	struct rig *rig = *state;
	struct rig_peer gone, run;
	union sl_msg msg;

	begin(rig, 10 * RIG_GIB);
	rig->nvml->hang = 1;
	gone = control(rig);
	rig_send_run(&gone, RIG_GIB, 0, 1, "gone", NULL);
	run = control(rig);
	rig_send_run(&run, RIG_GIB, 14 * RIG_GIB, 1, "stays", NULL);
	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_GPUS;
	rig_send(&run, &msg);
	rig_expect_silence(&run, 100);
	rig_peer_end(&gone);
	rig_nvml(rig, 1, 0);
	rig->nvml->hang = 0;
	rig_expect(&run, SL_MSG_RUN_REPLY, &msg);
	assert_true(msg.run_reply.ok);
	assert_int_equal(msg.run_reply.limit_bytes, 14 * RIG_GIB);
	rig_expect(&run, SL_MSG_GPU_ROW, &msg);
	assert_int_equal(msg.gpu_row.unmanaged_bytes, 0);
	rig_expect(&run, SL_MSG_LIST_END, &msg);
	rig_peer_end(&run);
	rig_until(rig_uses(rig, NULL, 0) == 0);
	rig_stop(rig);
}

/* An NVML that does not answer decides nothing: the last figures count. */
static void a_hanging_nvml_delays_but_once(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run;
	union sl_msg msg;

	begin(rig, 10 * RIG_GIB);
	rig->nvml->hang = 1;
	for (int i = 0; i < 3; i++) {
		run = control(rig);
		rig_send_run(&run, RIG_GIB, 14 * RIG_GIB, 1, "", NULL);
		rig_expect(&run, SL_MSG_RUN_REPLY, &msg);
		assert_true(msg.run_reply.ok);
		assert_int_equal(msg.run_reply.limit_bytes, 5 * RIG_GIB);
		rig_peer_end(&run);
	}
	rig->nvml->hang = 0;
	rig_stop(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_did_what_is_nvmls_to_say),
		cmocka_unit_test(who_is_gone_takes_nothing_of_a_limit),
		cmocka_unit_test(admission_is_by_what_is_there),
		cmocka_unit_test(a_change_is_judged_alike),
		cmocka_unit_test(what_follows_waits_behind_it),
		cmocka_unit_test(a_hanging_nvml_delays_but_once),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, setup, teardown);
}
