/* moving - see moving.h */
#include "moving.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/swap/hostmem.h"
#include "daemon/swap/hostpool.h"

uint64_t next_order = FIRST_ORDER;

int moving_setup(void **state)
{
	static struct inside inside;

	/* `wait` alone, so that the policy orders nothing itself. */
	inside_init(&inside, "context_reserve: 1GiB\nmeasure_interval: 20ms\n"
			     "recover_wait: 1ms\nresolvers: wait\nhost_memory: 512MiB\n");
	*state = &inside;
	return 0;
}

int moving_teardown(void **state)
{
	inside_fini(*state);
	return 0;
}

/* --- a client that has memory ---------------------------------------------------------------- */

struct holder holder_of(struct inside *inside, uint64_t bytes)
{
	struct holder holder = {.run = rig_run(&inside->rig, 64 * MIB, 2 * RIG_GIB)};

	holder.peer = rig_join(&inside->rig, &holder.run);
	rig_hold(&inside->rig, &holder.peer, 1, bytes);
	inside_turn(inside);
	return holder;
}

void holder_end(struct inside *inside, struct holder *holder)
{
	uint32_t others = inside->daemon.workload_count - 1;

	rig_peer_end(&holder->peer);
	rig_nvml(&inside->rig, holder->peer.pid, 0);
	rig_peer_end(&holder->run);
	inside_until(inside, inside->daemon.workload_count == others &&
				     sl_list_is_empty(&inside->daemon.dying));
}

uint64_t order_evict(struct inside *inside, const struct holder *holder, uint64_t bytes)
{
	struct sl_action action = {.type = SL_ACTION_EVICT,
		.id = next_order++,
		.evict = {.client = holder->peer.client,
			.bytes = bytes,
			.drain = 2 * SL_S,
			.workload = holder->run.workload}};

	sl_swap_evict(&inside->daemon, &action);
	return action.id;
}

uint64_t order_restore(struct inside *inside, const struct holder *holder, uint64_t bytes)
{
	struct sl_action action = {.type = SL_ACTION_RESTORE,
		.id = next_order++,
		.restore = {.client = holder->peer.client,
			.bytes = bytes,
			.workload = holder->run.workload}};

	sl_swap_restore(&inside->daemon, &action);
	return action.id;
}

void abort_order(struct inside *inside, const struct holder *holder, uint64_t order)
{
	struct sl_action action = {.type = SL_ACTION_ABORT,
		.id = next_order++,
		.abort = {.client = holder->peer.client, .order = order}};

	sl_swap_abort(&inside->daemon, &action);
}

struct sl_client *client_of(struct inside *inside, const struct holder *holder)
{
	return inside_client(inside, &holder->peer);
}

/* --- messages with descriptors --------------------------------------------------------------- */

struct given expect_store(struct inside *inside, const struct rig_peer *peer)
{
	struct sl_wire_fds fds = {0};
	sl_ns end = sl_clock_now() + 10 * SL_S;
	union sl_msg msg = {0};

	for (;;) {
		struct sl_error err = {0};
		int r;

		inside_turn(inside);
		r = recv(peer->fd, &msg, 1, MSG_PEEK | MSG_DONTWAIT) > 0
			    ? sl_wire_recv_fds(peer->fd, SL_FROM_DAEMON, &msg, &fds, &err)
			    : SL_WIRE_AGAIN;
		if (r == SL_WIRE_OK && msg.head.type != SL_MSG_GPU)
			break;
		if ((r != SL_WIRE_OK && r != SL_WIRE_AGAIN) || sl_clock_now() > end)
			fail_msg("no STORE, outcome %d", r);
	}
	assert_int_equal(msg.head.type, SL_MSG_STORE);
	assert_int_equal(fds.count, 1);
	return (struct given){.number = msg.store.number,
		.fd = fds.fd[0],
		.bytes = msg.store.bytes,
		.near = msg.store.near};
}

void send_held(const struct rig_peer *peer, const struct given *given)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_STORE_HELD);
	msg.store_held.number = given->number;
	msg.store_held.bytes = given->bytes;
	msg.store_held.near = given->near;
	assert_int_equal(sl_wire_send_fds(peer->fd, &msg, &given->fd, 1), SL_WIRE_OK);
}

void send_back(const struct rig_peer *peer, uint32_t number)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_STORE_BACK);
	msg.store_back.number = number;
	rig_send(peer, &msg);
}

void send_swapped(
	const struct rig_peer *peer, uint64_t order, uint32_t outcome, uint64_t evicted)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SWAPPED);
	msg.swapped.order = order;
	msg.swapped.outcome = outcome;
	msg.swapped.evicted_bytes = evicted;
	msg.swapped.moved_bytes = evicted;
	msg.swapped.span_us = 1000;
	rig_send(peer, &msg);
}

void expect_evict(const struct rig_peer *peer, uint64_t order, uint64_t bytes)
{
	union sl_msg msg;

	rig_expect(peer, SL_MSG_EVICT, &msg);
	assert_true(msg.evict.order == order);
	assert_true(msg.evict.bytes == bytes);
	assert_int_equal(msg.evict.deadline_ms, 2000);
}

uint64_t of_cause(const struct inside *inside, uint32_t cause)
{
	return inside->daemon.swap_causes[0][cause] +
	       inside->daemon.swap_causes[1][cause];
}

uint64_t causes(const struct inside *inside)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < SL_SWAP_CAUSES; i++)
		sum += of_cause(inside, i);
	return sum;
}

/* The order is over, once, for that cause. */
void expect_over(struct inside *inside, uint64_t before, enum sl_swap_cause cause,
	uint64_t of_before)
{
	inside_until(inside, causes(inside) == before + 1);
	assert_true(of_cause(inside, cause) == of_before + 1);
	inside_turn(inside);
	assert_true(causes(inside) == before + 1);
}

void expect_rejected(struct inside *inside, const struct rig_peer *peer, const char *text)
{
	union sl_msg msg = {0};

	rig_expect(peer, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_PROTOCOL);
	if (!strstr(msg.reject.text, text))
		fail_msg("'%s' lacks '%s'", msg.reject.text, text);
	rig_expect_closed(peer);
	inside_turn(inside);
}
