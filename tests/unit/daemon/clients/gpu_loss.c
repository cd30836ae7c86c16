/* GPUs that are lost, in each of the ways, and come back. */
#include "../rig.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "policy/node.h"

static int setup(void **state)
{
	static struct rig rig;

	rig_init(&rig, 1, 16 * RIG_GIB);
	rig_start(
		&rig, "context_reserve: 1GiB\nmeasure_interval: 20ms\nresolvers: wait\n");
	rig_until(rig.nvml->watching > 0);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_fini(*state);
	return 0;
}

static bool is_lost(const struct rig *rig)
{
	return rig_gpu(rig).condition & SL_GPU_LOST;
}

static void report_xid(struct rig *rig, unsigned int xid)
{
	rig->nvml->xid_gpu = 0;
	rig->nvml->xid = xid;
	rig_until(rig->nvml->xid == 0);
}

/* A GPU falls off the bus: waiting clients are told, also within a request, and no new workload
 * gets the GPU. The GPU is back when it answers. */
static void lost_and_found(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run_a = rig_run(rig, 0, 15 * RIG_GIB);
	struct rig_peer run_b = rig_run(rig, 4 * RIG_GIB, 8 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run_a), b = rig_join(rig, &run_b), c;
	uint64_t shareable_bytes = rig_gpu(rig).shareable_bytes;
	struct sl_msg_status_row status;
	unsigned int before;
	union sl_msg msg;

	rig_hold(rig, &a, 1, 11 * RIG_GIB);
	rig_hold(rig, &b, 1, RIG_GIB);
	rig_ask(&b, 2, 5 * RIG_GIB);
	rig_expect_silence(&b, 50);
	rig->nvml->gpus[0].lost = 1;
	rig_until(is_lost(rig));
	/* Its requests stay, and so do their fractions. */
	assert_true(shareable_bytes > 0);
	assert_int_equal(rig_gpu(rig).shareable_bytes, shareable_bytes);
	rig_expect(&b, SL_MSG_DENY, &msg);
	assert_int_equal(msg.deny.ask, 2);
	assert_int_equal(msg.deny.reason, SL_REASON_GPU_LOST);
	rig_ask(&a, 2, RIG_GIB);
	rig_expect(&a, SL_MSG_DENY, &msg);
	assert_int_equal(msg.deny.reason, SL_REASON_GPU_LOST);
	/* The other calls of NVML are fine, and doctor names the one that is not. */
	status = rig_status(rig);
	assert_int_equal(status.nvml_ok, 1);
	assert_non_null(strstr(status.nvml_text, "is lost"));
	/* Once the driver says why, that is said; and by its first word. */
	report_xid(rig, 79);
	rig_until(strstr(rig_status(rig).nvml_text, "is lost: Xid 79, "));
	report_xid(rig, 48);
	rig_until(rig_log_gets(rig, "Xid 48"));
	assert_non_null(strstr(rig_status(rig).nvml_text, "is lost: Xid 79, "));
	/* A new workload is refused. */
	c = rig_peer(rig);
	rig_hello(&c, SL_ROLE_CONTROL, 0);
	rig_expect(&c, SL_MSG_WELCOME, &msg);
	rig_send_run(&c, 0, RIG_GIB, 1, "", NULL);
	rig_expect(&c, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 0);
	/* No busy retries. */
	before = rig->nvml->questions;
	sl_clock_sleep(300 * SL_MS);
	assert_true(rig->nvml->questions - before <= 2);
	rig->nvml->gpus[0].lost = 0;
	rig_until(!is_lost(rig));
	rig_send_run(&c, 0, RIG_GIB, 1, "", NULL);
	rig_expect(&c, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 1);
	assert_false(strstr(rig_status(rig).nvml_text, "is lost"));
	rig_nvml(rig, a.pid, 0);
	rig_nvml(rig, b.pid, 0);
	rig_peer_end(&a);
	rig_peer_end(&b);
	rig_peer_end(&c);
	rig_peer_end(&run_a);
	rig_peer_end(&run_b);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

static void one_process_error_is_only_told(void **state)
{
	struct rig *rig = *state;

	report_xid(rig, 31);
	assert_true(
		rig_log_gets(rig, "XID_OF_PROCESS: the driver reported Xid 31 on GPU 0"));
	report_xid(rig, 63);
	assert_true(rig_log_gets(rig, "XID_NOTED"));
	assert_false(is_lost(rig));
}

/* NVML still answers: lost all the same, until no client is left on it. */
static void a_fatal_xid_alone(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 2 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run);
	union sl_msg msg;

	rig_hold(rig, &a, 1, RIG_GIB);
	report_xid(rig, 48);
	rig_until(is_lost(rig));
	assert_true(rig_log_gets(rig, "XID_OF_GPU"));
	rig_ask(&a, 2, RIG_GIB);
	rig_expect(&a, SL_MSG_DENY, &msg);
	assert_int_equal(msg.deny.reason, SL_REASON_GPU_LOST);
	sl_clock_sleep(100 * SL_MS);
	assert_true(is_lost(rig));
	rig_nvml(rig, a.pid, 0);
	rig_peer_end(&a);
	rig_peer_end(&run);
	rig_until(!is_lost(rig) && rig_uses(rig, NULL, 0) == 0);
	assert_int_equal(rig_gpu(rig).free_bytes, rig_gpu(rig).shareable_bytes);
}

/* Neither in the list nor to be found by its UUID. */
static void gone_from_the_list(void **state)
{
	struct rig *rig = *state;

	rig->nvml->gpu_count = 0;
	rig_until(is_lost(rig));
	rig->nvml->gpu_count = 1;
	rig_until(!is_lost(rig));
}

/* The dump also has processes whose memory is waited for. */
static bool knows_no_client(struct rig *rig)
{
	struct rig_peer asker = rig_peer(rig);
	char text[65536] = "";
	size_t size = 0;
	union sl_msg msg;

	rig_hello(&asker, SL_ROLE_CONTROL, 0);
	rig_expect(&asker, SL_MSG_WELCOME, &msg);
	sl_wire_init(&msg, SL_MSG_DUMP);
	rig_send(&asker, &msg);
	for (;;) {
		struct pollfd ready = {.fd = asker.fd, .events = POLLIN};

		assert_int_equal(poll(&ready, 1, 5000), 1);
		assert_int_equal(
			sl_wire_recv(asker.fd, SL_FROM_DAEMON, &msg, NULL), SL_WIRE_OK);
		if (msg.head.type == SL_MSG_LIST_END)
			break;
		assert_true(size + msg.dump_row.size < sizeof(text));
		memcpy(text + size, msg.dump_row.text, msg.dump_row.size);
		size += msg.dump_row.size;
	}
	rig_peer_end(&asker);
	assert_non_null(strstr(text, "\"clients\":["));
	return strstr(text, "\"clients\":[]") != NULL;
}

/* Bytes of a dead process on a GPU that is gone do not count any more. */
static void the_dead_do_not_stay_on_it(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 2 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run);

	rig_hold(rig, &a, 1, RIG_GIB);
	rig_peer_kill(&a);
	rig_until(rig_gpu(rig).dying_bytes == RIG_GIB);
	rig->nvml->gpus[0].lost = 1;
	rig_until(is_lost(rig) && rig_gpu(rig).dying_bytes == 0);
	/* Nor do the processes, though the GPU may never come back. */
	rig_until(knows_no_client(rig));
	rig_nvml(rig, a.pid, 0);
	rig->nvml->gpus[0].lost = 0;
	rig_until(!is_lost(rig));
	(void)close(a.fd);
	rig_peer_end(&run);
	rig_until(rig_uses(rig, NULL, 0) == 0);
	assert_int_equal(rig_gpu(rig).free_bytes, rig_gpu(rig).shareable_bytes);
}

/* With several, the others keep their numbers. */
static void the_others_stay(void **state)
{
	struct rig rig;
	struct rig_peer run;
	union sl_msg msg;

	(void)state;
	rig_init(&rig, 3, 16 * RIG_GIB);
	rig_start(&rig, "measure_interval: 20ms\nresolvers: wait\n");
	rig.nvml->gpus[1].lost = 1;
	assert_true(rig_log_gets(&rig, "LOST_BEGINS: GPU 1 is lost"));
	run = rig_peer(&rig);
	rig_hello(&run, SL_ROLE_CONTROL, 0);
	rig_expect(&run, SL_MSG_WELCOME, &msg);
	rig_send_run(&run, RIG_GIB, RIG_GIB, 2, "", NULL);
	rig_expect(&run, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 1);
	assert_string_equal(msg.run_reply.visible_out, "0,2");
	rig_peer_end(&run);
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_and_found),
		cmocka_unit_test(one_process_error_is_only_told),
		cmocka_unit_test(a_fatal_xid_alone),
		cmocka_unit_test(gone_from_the_list),
		cmocka_unit_test(the_dead_do_not_stay_on_it),
		cmocka_unit_test(the_others_stay),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
