/* How much host memory is made, and for which client. */
#include "moving.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/loop/start.h"
#include "daemon/state/timer.h"
#include "daemon/state/workload.h"
#include "daemon/swap/hostpool.h"
#include "daemon/swap/hostpool_ahead.h"
#include "daemon/swap/swap.h"

/* Configured anew; 0: no bound. */
static void bound(struct inside *inside, uint64_t bytes)
{
	inside->daemon.config.host_memory_workload = bytes;
	sl_daemon_configure(&inside->daemon);
}

/* Another process of the same workload. */
static struct holder another_of(
	struct inside *inside, const struct holder *first, uint64_t bytes)
{
	struct holder holder = {.run = first->run};

	holder.peer = rig_join(&inside->rig, &holder.run);
	rig_hold(&inside->rig, &holder.peer, 1, bytes);
	inside_turn(inside);
	return holder;
}

static void moves(struct inside *inside, const struct holder *holder, uint64_t bytes,
	uint64_t evicted)
{
	uint64_t order = order_evict(inside, holder, bytes), before = causes(inside);
	struct given given = expect_store(inside, &holder->peer);

	assert_true(given.bytes == evicted);
	(void)close(given.fd);
	expect_evict(&holder->peer, order, bytes);
	send_swapped(&holder->peer, order, SL_WIRE_SWAP_OK, bytes);
	inside_until(inside, causes(inside) == before + 1);
}

/* Neither the spare for the last chunk nor the need of a second process goes beyond the bound. */
static void a_workload_has_no_more_than_its_bound(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 300 * MIB), b;

	/* Whole grains of 2 MiB. */
	bound(inside, 65 * MIB);
	moves(inside, &a, 44 * MIB, 64 * MIB);
	assert_true(client_of(inside, &a)->host_bytes == 64 * MIB);
	b = another_of(inside, &a, 16 * MIB);
	{
		BEGIN(NO_HOST);

		(void)order_evict(inside, &b, 16 * MIB);
		OVER(NO_HOST);
	}
	bound(inside, 80 * MIB);
	moves(inside, &b, 16 * MIB, 16 * MIB);
	assert_true(inside->daemon.hostpool->made_bytes == 80 * MIB);
	/* Others have their own. */
	bound(inside, 64 * MIB);
	rig_peer_end(&b.peer);
	rig_nvml(&inside->rig, b.peer.pid, 0);
	b = holder_of(inside, 16 * MIB);
	moves(inside, &b, 16 * MIB, 16 * MIB);
	bound(inside, 0);
	holder_end(inside, &b);
	holder_end(inside, &a);
}

/* A client with larger chunks is evicted all the same, and exceeds its workload's bound by one
 * chunk at most. */
static void a_chunk_beyond_the_bound(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 450 * MIB);
	struct given given;
	union sl_msg msg;
	uint64_t order;

	bound(inside, 64 * MIB);
	for (uint64_t i = 0, most = 64 * MIB; i < 8; i++, most += 68 * MIB) {
		uint64_t before = causes(inside);

		order = order_evict(inside, &a, 16 * MIB);
		if (most <= (64 + 256 + 16) * MIB) {
			given = expect_store(inside, &a.peer);
			(void)close(given.fd);
		}
		expect_evict(&a.peer, order, 16 * MIB);
		assert_true(client_of(inside, &a)->host_bytes ==
			    sl_min_u64(most, (64 + 256) * MIB));
		sl_wire_init(&msg, SL_MSG_SWAPPED);
		msg.swapped.order = order;
		msg.swapped.outcome = SL_WIRE_SWAP_REFUSED;
		msg.swapped.cause = SL_WIRE_SWAP_NO_HOST;
		rig_send(&a.peer, &msg);
		inside_until(inside, causes(inside) == before + 1);
	}
	bound(inside, 0);
	holder_end(inside, &a);
}

/* Nor does memory that is made ahead. */
static void nothing_is_made_ahead_beyond_it(void **state)
{
	struct inside *inside = *state;
	struct sl_hostpool *pool = inside->daemon.hostpool;
	struct holder a = holder_of(inside, 300 * MIB), big;
	struct given given;

	bound(inside, 64 * MIB);
	inside->daemon.config.resolvers = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0);
	big = (struct holder){.run = rig_run(&inside->rig, 12 * RIG_GIB, 0)};
	big.peer = rig_join(&inside->rig, &big.run);
	client_of(inside, &big)->swaps = false;
	rig_hold(&inside->rig, &big.peer, 1, 12 * RIG_GIB);
	sl_timer_set(pool->ahead_timer, sl_clock_now());
	given = expect_store(inside, &a.peer);
	assert_true(given.bytes == 64 * MIB);
	(void)close(given.fd);
	rig_expect_silence(&a.peer, 600);
	assert_true(client_of(inside, &a)->host_bytes == 64 * MIB);
	inside->daemon.config.resolvers = SL_RESOLVER_WAIT;
	sl_timer_set(pool->ahead_timer, SL_NS_NEVER);
	bound(inside, 0);
	holder_end(inside, &big);
	holder_end(inside, &a);
}

/* --- near which GPU --------------------------------------------------------------------------- */

/* On GPUs 0 and 1, so much on each. */
static struct holder holder_of_two(struct inside *inside, uint64_t bytes)
{
	struct holder holder = {.run = rig_peer(&inside->rig)};
	union sl_msg msg;

	rig_hello(&holder.run, SL_ROLE_CONTROL, 0);
	rig_expect(&holder.run, SL_MSG_WELCOME, &msg);
	rig_send_run(&holder.run, 64 * MIB, 2 * RIG_GIB, 2, "", "0,1");
	rig_expect(&holder.run, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 1);
	holder.run.workload = msg.run_reply.workload;
	memcpy(holder.run.token, msg.run_reply.token, sizeof(holder.run.token));
	holder.peer = rig_join(&inside->rig, &holder.run);
	for (uint32_t i = 0; i < 2; i++) {
		sl_wire_init(&msg, SL_MSG_ASK);
		msg.ask.ask = 1 + i;
		msg.ask.ordinal = i;
		msg.ask.bytes = bytes;
		rig_send(&holder.peer, &msg);
		rig_expect(&holder.peer, SL_MSG_GRANT, &msg);
		rig_commit(&holder.peer, msg.grant.epoch, bytes);
	}
	inside_turn(inside);
	return holder;
}

static uint64_t order_evict_of(
	struct inside *inside, const struct holder *holder, uint32_t gpu, uint64_t bytes)
{
	struct sl_action action = {.type = SL_ACTION_EVICT,
		.id = next_order++,
		.evict = {.client = holder->peer.client,
			.gpu = gpu,
			.bytes = bytes,
			.drain = 2 * SL_S,
			.workload = holder->run.workload}};

	sl_swap_evict(&inside->daemon, &action);
	return action.id;
}

/* Gives the client an order to evict `bytes` from one GPU, and expects `made` bytes of new host
 * memory, near the GPUs in `near`. The client refuses the order, so the books stay as they were. */
static void moves_of(struct inside *inside, const struct holder *holder, uint32_t gpu,
	uint64_t bytes, uint64_t made, uint32_t near)
{
	uint64_t before = causes(inside), has = client_of(inside, holder)->host_bytes;
	uint64_t order = order_evict_of(inside, holder, gpu, bytes);
	struct given given;
	union sl_msg msg;

	if (made) {
		given = expect_store(inside, &holder->peer);
		assert_int_equal(given.bytes, made);
		assert_int_equal(given.near, near);
		(void)close(given.fd);
	}
	expect_evict(&holder->peer, order, bytes);
	assert_int_equal(client_of(inside, holder)->host_bytes, has + made);
	sl_wire_init(&msg, SL_MSG_SWAPPED);
	msg.swapped.order = order;
	msg.swapped.ordinal = gpu;
	msg.swapped.outcome = SL_WIRE_SWAP_REFUSED;
	rig_send(&holder->peer, &msg);
	inside_until(inside, causes(inside) == before + 1);
}

/* The host's own word: it has so much, of which 256 MiB are not for us. */
static void host_has(struct inside *inside, uint64_t bytes)
{
	char path[128], text[128];

	(void)snprintf(path, sizeof(path), "%s/host/proc/meminfo", inside->rig.dir);
	(void)snprintf(text, sizeof(text),
		"MemTotal: 8388608 kB\nMemAvailable: %llu kB\n",
		(unsigned long long)bytes / SL_KIB);
	assert_int_equal(sl_file_replace(path, text, strlen(text), false), 0);
}

static void with_host(struct inside *inside)
{
	static char root[96];
	char path[128];

	(void)snprintf(root, sizeof(root), "%s/host", inside->rig.dir);
	(void)snprintf(path, sizeof(path), "%s/proc", root);
	assert_int_equal(sl_file_make_dirs(path, 0755), 0);
	host_has(inside, 4 * RIG_GIB);
	sl_hostpool_close(&inside->daemon);
	assert_int_equal(sl_hostpool_open(&inside->daemon, root, sl_swap_host_ready), 0);
	assert_int_equal(sl_hostpool_ahead_open(&inside->daemon), 0);
	sl_daemon_configure(&inside->daemon);
}

static void two_gpus(struct inside *inside, int node_0, int node_1)
{
	inside_init_with(inside, 2,
		"context_reserve: 1GiB\nmeasure_interval: 20ms\n"
		"resolvers: wait\nhost_memory: 512MiB\n");
	inside->daemon.gpus[0].node = node_0;
	inside->daemon.gpus[1].node = node_1;
}

/* Memory near another GPU is no substitute, as long as more may come. */
static void each_gpu_has_memory_of_its_own_node(void **state)
{
	static struct inside inside;
	struct holder a;

	two_gpus(&inside, 0, 1);
	a = holder_of_two(&inside, 100 * MIB);
	moves_of(&inside, &a, 0, 100 * MIB, 100 * MIB, 1u << 0);
	moves_of(&inside, &a, 1, 100 * MIB, 100 * MIB, 1u << 1);
	/* Nothing twice. */
	moves_of(&inside, &a, 0, 100 * MIB, 0, 0);
	moves_of(&inside, &a, 1, 100 * MIB, 0, 0);
	assert_int_equal(client_of(&inside, &a)->gpus[0].near_bytes, 100 * MIB);
	assert_int_equal(client_of(&inside, &a)->gpus[1].near_bytes, 100 * MIB);
	/* Memory given back by one is not taken for the other's. */
	send_back(&a.peer, 1);
	inside_until(&inside, client_of(&inside, &a)->host_bytes == 100 * MIB);
	assert_int_equal(client_of(&inside, &a)->gpus[0].near_bytes, 0);
	moves_of(&inside, &a, 0, 100 * MIB, 100 * MIB, 1u << 0);
	holder_end(&inside, &a);
	inside_fini(&inside);
}

static void what_is_near_all_of_them_is_made_once(void **state)
{
	static const int nodes[][2] = {{1, 1}, {-1, -1}, {-1, 1}};
	static struct inside inside;
	struct holder a;

	for (size_t i = 0; i < SL_ARRAY_LEN(nodes); i++) {
		two_gpus(&inside, nodes[i][0], nodes[i][1]);
		a = holder_of_two(&inside, 100 * MIB);
		moves_of(&inside, &a, 0, 100 * MIB, 100 * MIB, 3);
		moves_of(&inside, &a, 1, 100 * MIB, 0, 0);
		holder_end(&inside, &a);
		inside_fini(&inside);
	}
}

/* A bound that leaves no room for more: what there is must do, wherever it is. */
static void far_memory_is_better_than_none(void **state)
{
	static struct inside inside;
	struct holder a;

	two_gpus(&inside, 0, 1);
	a = holder_of_two(&inside, 100 * MIB);
	bound(&inside, 132 * MIB);
	moves_of(&inside, &a, 0, 100 * MIB, 100 * MIB, 1u << 0);
	moves_of(&inside, &a, 1, 100 * MIB, 32 * MIB, 1u << 1);
	moves_of(&inside, &a, 1, 100 * MIB, 0, 0);
	holder_end(&inside, &a);
	inside_fini(&inside);
	/* The same for a host that has no more. */
	two_gpus(&inside, 0, 1);
	with_host(&inside);
	a = holder_of_two(&inside, 100 * MIB);
	moves_of(&inside, &a, 0, 100 * MIB, 100 * MIB, 1u << 0);
	host_has(&inside, 300 * MIB);
	moves_of(&inside, &a, 1, 100 * MIB, 0, 0);
	assert_int_equal(inside.daemon.hostpool->failures, 1);
	holder_end(&inside, &a);
	inside_fini(&inside);
}

/* The host is short of memory. For an eviction we prefer a round figure, a spare chunk and large
 * files. Without them it goes on with the least that it needs: the client still leaves its GPU. */
static void what_is_to_spare_is_no_need(void **state)
{
	static struct inside own;
	struct inside *inside = &own;
	struct holder a;
	uint64_t failures;

	two_gpus(inside, -1, -1);
	with_host(inside);
	a = holder_of_two(inside, 300 * MIB);
	/* It has become less, which is not known yet. */
	host_has(inside, (256 + 40) * MIB);
	moves_of(inside, &a, 0, 20 * MIB, 20 * MIB, 3);
	failures = inside->daemon.hostpool->failures;
	assert_true(failures > 0);
	/* Now it is known, and nothing is tried in vain. */
	moves_of(inside, &a, 0, 40 * MIB, 20 * MIB, 3);
	/* A client that had too little in one piece gets all there is. */
	client_of(inside, &a)->host_short_bytes = 64 * MIB;
	moves_of(inside, &a, 0, 70 * MIB, 40 * MIB, 3);
	assert_int_equal(inside->daemon.hostpool->failures, failures);
	/* It needs that much, and tries. */
	host_has(inside, 256 * MIB);
	{
		BEGIN(NO_HOST);

		(void)order_evict(inside, &a, 120 * MIB);
		OVER(NO_HOST);
	}
	assert_int_equal(client_of(inside, &a)->host_bytes, 80 * MIB);
	failures = inside->daemon.hostpool->failures;
	{
		BEGIN(NO_HOST);

		(void)order_evict(inside, &a, 120 * MIB);
		OVER(NO_HOST);
	}
	assert_int_equal(inside->daemon.hostpool->failures, failures + 1);
	holder_end(inside, &a);
	inside_fini(inside);
}

/* Memory made ahead is made where it will be needed. */
static void what_is_made_ahead_is_near(void **state)
{
	static struct inside inside;
	struct given given;
	struct holder a;
	uint32_t near = 0;

	two_gpus(&inside, 0, 1);
	a = holder_of_two(&inside, 100 * MIB);
	client_of(&inside, &a)->workload->warm_after = SL_S;
	for (int i = 0; i < 2; i++) {
		sl_timer_set(inside.daemon.hostpool->ahead_timer, sl_clock_now());
		given = expect_store(&inside, &a.peer);
		assert_int_equal(given.bytes, 100 * MIB);
		near |= given.near;
		(void)close(given.fd);
	}
	assert_int_equal(near, 3);
	rig_expect_silence(&a.peer, 600);
	sl_timer_set(inside.daemon.hostpool->ahead_timer, SL_NS_NEVER);
	holder_end(&inside, &a);
	inside_fini(&inside);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_workload_has_no_more_than_its_bound),
		cmocka_unit_test(a_chunk_beyond_the_bound),
		cmocka_unit_test(nothing_is_made_ahead_beyond_it),
	};
	const struct CMUnitTest two[] = {
		cmocka_unit_test(each_gpu_has_memory_of_its_own_node),
		cmocka_unit_test(what_is_near_all_of_them_is_made_once),
		cmocka_unit_test(far_memory_is_better_than_none),
		cmocka_unit_test(what_is_to_spare_is_no_need),
		cmocka_unit_test(what_is_made_ahead_is_near),
	};

	int failed = cmocka_run_group_tests(two, NULL, NULL);

	return failed + cmocka_run_group_tests(tests, moving_setup, moving_teardown);
}
