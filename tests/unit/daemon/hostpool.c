/* How much is made on the host, for whom. */
#include "moving.h"

#include <string.h>
#include <unistd.h>

#include "daemon/hostpool.h"

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

/* Neither what is to spare for the last chunk nor what a second process needs goes beyond the bound. */
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

/* One that has chunks which are larger than that leaves all the same, and takes no more beyond its bound than one of them. */
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

/* Nor what is made ahead. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_workload_has_no_more_than_its_bound),
		cmocka_unit_test(a_chunk_beyond_the_bound),
		cmocka_unit_test(nothing_is_made_ahead_beyond_it),
	};

	return cmocka_run_group_tests(tests, moving_setup, moving_teardown);
}
