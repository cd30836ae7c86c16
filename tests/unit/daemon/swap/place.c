/*
 * place - the door of a process that is to leave its GPUs: shut first, and open again whenever it
 * does not leave
 *
 * There is no helper here: no process can leave.
 */
#include "../rig.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB SL_MIB
#define CONFIG                                                               \
	"context_reserve: 1GiB\nmeasure_interval: 50ms\nrecover_wait: 10s\n" \
	"host_memory: 512MiB\ndetach_contexts: yes\n"

static int setup(void **state)
{
	static struct rig rig;

	(void)setenv("SLUICE_MOVE", "/nonexistent", 1);
	rig_init(&rig, 1, 16 * RIG_GIB);
	rig_start(&rig, CONFIG "evict_drain: 300ms\n");
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_fini(*state);
	return 0;
}

static void park(const struct rig *rig, const struct rig_peer *run)
{
	struct rig_peer self = {.fd = sl_wire_connect(rig->socket, NULL)};
	union sl_msg msg;

	assert_true(self.fd >= 0);
	rig_hello(&self, SL_ROLE_CONTROL, 0);
	rig_expect(&self, SL_MSG_WELCOME, &msg);
	sl_wire_init(&msg, SL_MSG_PARK);
	msg.park.workload = run->workload;
	msg.park.parked = 1;
	rig_send(&self, &msg);
	rig_expect(&self, SL_MSG_PARK_REPLY, &msg);
	if (!msg.park_reply.ok)
		fail_msg("refused: %s", msg.park_reply.text);
	(void)close(self.fd);
}

/* The next GATE; PROBEs may come between. */
static struct sl_msg_gate gate(const struct rig_peer *peer)
{
	union sl_msg msg;

	do
		assert_int_equal(rig_receive(peer, 10000, &msg), SL_WIRE_OK);
	while (msg.head.type == SL_MSG_GPU || msg.head.type == SL_MSG_PROBE);
	assert_int_equal(msg.head.type, SL_MSG_GATE);
	return msg.gate;
}

static void gate_done(const struct rig_peer *peer, uint64_t order)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_GATE_DONE);
	msg.gate_done.order = order;
	msg.gate_done.closed = 1;
	rig_send(peer, &msg);
}

/* A parked process with nothing but a context: its door is to be shut. */
static uint64_t begin(struct rig *rig, struct rig_peer *run, struct rig_peer *client)
{
	struct sl_msg_gate shut;

	*run = rig_run(rig, RIG_GIB, 0);
	*client = rig_join(rig, run);
	rig_nvml(rig, client->pid, 40 * MIB);
	rig_until(rig_measured(rig) == 40 * MIB);
	park(rig, run);
	shut = gate(client);
	assert_int_equal(shut.closed, 1);
	return shut.order;
}

static void end(struct rig *rig, struct rig_peer *run, struct rig_peer *client)
{
	rig_peer_end(client);
	rig_nvml(rig, client->pid, 0);
	rig_peer_end(run);
	rig_until(rig_uses(rig, NULL, 0) == 0);
	rig_until(rig_measured(rig) == 0);
}

/* One of its threads does not leave the driver. */
static void does_not_shut(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run, client;

	(void)begin(rig, &run, &client);
	assert_int_equal(gate(&client).closed, 0);
	assert_true(rig_measured(rig) == 40 * MIB);
	end(rig, &run, &client);
}

/* Nothing can take it away: its threads must not wait. */
static void has_no_helper(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run, client;
	uint64_t order;

	order = begin(rig, &run, &client);
	gate_done(&client, order);
	assert_int_equal(gate(&client).closed, 0);
	assert_true(rig_log_gets(rig, "there is no helper for its user"));
	assert_true(rig_measured(rig) == 40 * MIB);
	end(rig, &run, &client);
}

/* Its line breaks before the door is shut; the client has opened it then. */
static void loses_its_line(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run, client;
	uint64_t order = begin(rig, &run, &client);

	rig_reconnect(rig, &client);
	rig_join_as(&client, &run, 1);
	/* An answer to what is over: the door must not stay shut. */
	gate_done(&client, order);
	assert_int_equal(gate(&client).closed, 0);
	end(rig, &run, &client);
}

/* It was shut for a daemon that died before it did anything. */
static void is_shut_for_another(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0), client = rig_join(rig, &run);

	gate_done(&client, 12345);
	assert_int_equal(gate(&client).closed, 0);
	end(rig, &run, &client);
}

/* It dies while its door is being shut, and while it is on its way. */
static void dies(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run, client;
	uint64_t order;

	(void)begin(rig, &run, &client);
	end(rig, &run, &client);
	order = begin(rig, &run, &client);
	gate_done(&client, order);
	end(rig, &run, &client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(does_not_shut),
		cmocka_unit_test(has_no_helper),
		cmocka_unit_test(loses_its_line),
		cmocka_unit_test(is_shut_for_another),
		cmocka_unit_test(dies),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
