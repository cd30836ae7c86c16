/* Orders to move memory: the policy's are handed in, and clients answer them, lie, or die. */
#include "moving.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/loop/start.h"
#include "daemon/state/timer.h"
#include "daemon/state/workload.h"
#include "daemon/swap/hostmem.h"
#include "daemon/swap/hostpool.h"
#include "daemon/swap/hostpool_ahead.h"
#include "daemon/swap/swap.h"

/* --- success --------------------------------------------------------------------------------- */

static void looks_right(const struct given *given, uint64_t bytes)
{
	sl_cleanup(sl_freep) char *zeros = calloc(1, given->bytes);
	char *map = mmap(
		NULL, given->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, given->fd, 0);

	assert_true(given->bytes == bytes);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(memcmp(map, zeros, bytes), 0);
	assert_int_equal(
		fcntl(given->fd, F_GET_SEALS) & SL_HOSTMEM_SEALS, SL_HOSTMEM_SEALS);
	assert_true(ftruncate(given->fd, 4096) < 0);
	assert_int_equal(munmap(map, given->bytes), 0);
}

static void host_memory_comes_before_the_order(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 48 * MIB);
	struct given first, second;
	uint64_t order;
	union sl_msg msg;
	BEGIN(NO_CAUSE);

	order = order_evict(inside, &a, 16 * MIB);
	first = expect_store(inside, &a.peer);
	assert_int_equal(first.number, 1);
	/* Never more than the client has in all. */
	looks_right(&first, 48 * MIB);
	expect_evict(&a.peer, order, 16 * MIB);
	send_swapped(&a.peer, order, SL_WIRE_SWAP_OK, 16 * MIB);
	OVER(NO_CAUSE);
	assert_true(client_of(inside, &a)->workload->moved[0].out_bytes == 16 * MIB);
	/* There is room for all it had; only for more than that another file comes. */
	order = order_evict(inside, &a, 32 * MIB);
	expect_evict(&a.peer, order, 32 * MIB);
	send_swapped(&a.peer, order, SL_WIRE_SWAP_PART, 20 * MIB);
	inside_until(inside, causes(inside) == over_ + 2);
	order = order_restore(inside, &a, 20 * MIB);
	rig_expect(&a.peer, SL_MSG_RESTORE, &msg);
	assert_true(msg.restore.order == order && msg.restore.bytes == 20 * MIB);
	send_swapped(&a.peer, order, SL_WIRE_SWAP_OK, 0);
	inside_until(inside, causes(inside) == over_ + 3);
	rig_hold(&inside->rig, &a.peer, 2, 16 * MIB);
	inside_turn(inside);
	order = order_evict(inside, &a, 64 * MIB);
	second = expect_store(inside, &a.peer);
	assert_int_equal(second.number, 2);
	looks_right(&second, 16 * MIB);
	expect_evict(&a.peer, order, 64 * MIB);
	assert_true(inside->daemon.hostpool->made_bytes == 64 * MIB);
	(void)close(first.fd);
	(void)close(second.fd);
	holder_end(inside, &a);
	assert_true(inside->daemon.hostpool->made_bytes == 0);
	assert_int_equal(inside->daemon.hostpool->files, 0);
}

static void answer(const struct rig_peer *peer, uint64_t order, uint64_t moved,
	uint64_t clean, uint64_t us)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SWAPPED);
	msg.swapped.order = order;
	msg.swapped.moved_bytes = moved;
	msg.swapped.clean_bytes = clean;
	msg.swapped.drain_us = 1000;
	msg.swapped.span_us = us + 1000;
	rig_send(peer, &msg);
}

/* A chunk moves as one piece. So beside the needed bytes there is a file with space for the largest
 * chunk, if it can be had. */
static void the_last_chunk_has_room(void **state)
{
	static const uint64_t sizes[] = {64 * MIB, 256 * MIB, 64 * MIB, 128 * MIB};
	struct inside *inside = *state;
	struct holder holders[] = {
		holder_of(inside, 448 * MIB), holder_of(inside, 448 * MIB)};

	for (size_t i = 0; i < SL_ARRAY_LEN(sizes); i++) {
		struct holder *holder = &holders[i / 2];
		uint64_t order =
			i % 2 ? next_order - 1 : order_evict(inside, holder, 16 * MIB);
		struct given given = expect_store(inside, &holder->peer);

		/* The pool has 512 MiB. */
		looks_right(&given, sizes[i]);
		(void)close(given.fd);
		if (i % 2 == 0)
			continue;
		expect_evict(&holder->peer, order, 16 * MIB);
		answer(&holder->peer, order, 128 * MIB, 0, 1000);
		inside_until(
			inside, client_of(inside, holder)->order.state == SL_ORDER_NONE);
		/* The time of a first move says nothing about the link. */
		assert_true(inside->daemon.gpus[0].link_out.measured == 0);
	}
	holder_end(inside, &holders[1]);
	holder_end(inside, &holders[0]);
}

/* --- measuring and reporting the link --------------------------------------------------------- */

/* By our clock it had the order for had_us. */
static uint64_t rate_of(struct inside *inside, struct holder *holder, uint64_t moved,
	uint64_t clean, uint64_t us, uint64_t had_us)
{
	uint64_t before = causes(inside);
	uint64_t order = order_restore(inside, holder, 0);
	union sl_msg msg;

	rig_expect(&holder->peer, SL_MSG_RESTORE, &msg);
	client_of(inside, holder)->order.sent = sl_clock_now() - had_us * SL_US;
	answer(&holder->peer, order, moved, clean, us);
	inside_until(inside, causes(inside) == before + 1);
	return inside->daemon.gpus[0].link_in.measured;
}

static uint64_t rate_after(struct inside *inside, struct holder *holder, uint64_t moved,
	uint64_t clean, uint64_t us)
{
	return rate_of(inside, holder, moved, clean, us, 2 * us);
}

static void rates_come_from_what_crossed_the_link(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 256 * MIB);
	const struct sl_moved *moved = &client_of(inside, &a)->workload->moved[0];

	inside->daemon.gpus[0].link_in = (struct sl_link_rate){0};
	/* While its files are new, what pinning them takes would count. */
	client_of(inside, &a)->host_given_at = sl_clock_now();
	assert_true(rate_after(inside, &a, 256 * MIB, 0, 250000) == 0);
	client_of(inside, &a)->host_given_at = 0;
	/* Too little, all clean, in no time, more than there is: nothing is learnt. */
	assert_true(rate_after(inside, &a, 2 * MIB, 0, 1000) == 0);
	assert_true(rate_after(inside, &a, 64 * MIB, 64 * MIB, 1000) == 0);
	assert_true(rate_after(inside, &a, 64 * MIB, 0, 0) == 0);
	assert_true(rate_after(inside, &a, SL_GIB, 0, 1000) == 0);
	assert_true(moved->in_bytes == (256 + 2 + 64 + 64 + 256) * MIB);
	assert_true(rate_after(inside, &a, 256 * MIB, 0, 250000) == SL_GIB);
	assert_true(inside->daemon.gpus[0].link_in.told == SL_GIB);
	/* A quarter of the way to twice as much; a twentieth more is not reported. */
	assert_true(rate_after(inside, &a, 256 * MIB, 0, 125000) == SL_GIB + SL_GIB / 4);
	assert_true(inside->daemon.gpus[0].link_in.told == SL_GIB + SL_GIB / 4);
	(void)rate_after(inside, &a, 256 * MIB, 0, 190000);
	assert_true(inside->daemon.gpus[0].link_in.told == SL_GIB + SL_GIB / 4);
	/* No link is as fast or slow as liars, and our clock knows better. */
	inside->daemon.gpus[0].link_in.measured = 0;
	assert_true(rate_of(inside, &a, 256 * MIB, 0, 1, 4000000) <= 256 * MIB);
	inside->daemon.gpus[0].link_in.measured = 0;
	assert_true(rate_of(inside, &a, 256 * MIB, 0, 1000000000, 100000) > 256 * MIB);
	inside->daemon.gpus[0].link_in = (struct sl_link_rate){0};
	holder_end(inside, &a);
}

/* Two that share a GPU which is getting full have files before any order. */
static void files_come_ahead_of_need(void **state)
{
	struct inside *inside = *state;
	struct sl_hostpool *pool = inside->daemon.hostpool;
	struct holder a = holder_of(inside, 48 * MIB), b = holder_of(inside, 300 * MIB);
	struct holder big;
	struct given given;
	uint64_t order;

	inside->daemon.config.resolvers = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0);
	sl_timer_set(pool->ahead_timer, sl_clock_now());
	rig_expect_silence(&a.peer, 600); /* there is much room */
	assert_int_equal(pool->files, 0);
	big = (struct holder){.run = rig_run(&inside->rig, 12 * RIG_GIB, 0)};
	big.peer = rig_join(&inside->rig, &big.run);
	client_of(inside, &big)->swaps = false;
	rig_hold(&inside->rig, &big.peer, 1, 12 * RIG_GIB);
	given = expect_store(inside, &a.peer);
	looks_right(&given, 48 * MIB);
	(void)close(given.fd);
	/* Only half of the pool, which is 512 MiB, goes that way. */
	inside_until(inside, pool->made_bytes == 48 * MIB && !pool->making);
	inside_turn(inside);
	assert_true(pool->made_bytes <= 256 * MIB);
	/* When it is needed nothing has to be made; a client that was told to give some
	 * back is left alone. */
	order = order_evict(inside, &a, 48 * MIB);
	assert_int_equal(client_of(inside, &a)->order.state, SL_ORDER_SENT);
	expect_evict(&a.peer, order, 48 * MIB);
	send_swapped(&a.peer, order, SL_WIRE_SWAP_REFUSED, 0);
	sl_hostpool_trimmed(client_of(inside, &a));
	send_back(&a.peer, given.number);
	inside_until(inside, client_of(inside, &a)->host_bytes == 0);
	rig_expect_silence(&a.peer, 600);
	assert_true(client_of(inside, &a)->host_bytes == 0);
	assert_true(pool->made_bytes <= 256 * MIB);
	inside->daemon.config.resolvers = SL_RESOLVER_WAIT;
	sl_timer_set(pool->ahead_timer, SL_NS_NEVER);
	holder_end(inside, &big);
	holder_end(inside, &b);
	holder_end(inside, &a);
}

static struct rig_peer list_of(struct inside *inside, uint32_t what)
{
	struct rig_peer self = {.fd = sl_wire_connect(inside->rig.socket, NULL)};
	union sl_msg msg;

	rig_hello(&self, SL_ROLE_CONTROL, 0);
	rig_expect(&self, SL_MSG_WELCOME, &msg);
	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = what;
	rig_send(&self, &msg);
	return self;
}

static void lists_tell_who_is_where(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 16 * MIB);
	uint64_t order = order_evict(inside, &a, 16 * MIB);
	struct given given = expect_store(inside, &a.peer);
	struct rig_peer self;
	union sl_msg msg;
	BEGIN(NO_CAUSE);

	expect_evict(&a.peer, order, 16 * MIB);
	answer(&a.peer, order, 12 * MIB, 4 * MIB, 1000);
	OVER(NO_CAUSE);
	self = list_of(inside, SL_LIST_USES);
	rig_expect(&self, SL_MSG_USE_ROW, &msg);
	assert_true(msg.use_row.workload == a.run.workload);
	assert_true(msg.use_row.host_bytes == 16 * MIB);
	assert_true(msg.use_row.out_bytes == 12 * MIB);
	assert_true(msg.use_row.clean_bytes == 4 * MIB);
	rig_expect(&self, SL_MSG_LIST_END, &msg);
	assert_int_equal(msg.list_end.rows, 1);
	(void)close(self.fd);
	self = list_of(inside, SL_LIST_POOL);
	rig_expect(&self, SL_MSG_POOL_ROW, &msg);
	assert_true(msg.pool_row.pool_bytes == 512 * MIB);
	assert_true(msg.pool_row.made_bytes == 16 * MIB);
	assert_true(msg.pool_row.slack_bytes == 64 * MIB);
	assert_true(msg.pool_row.available_bytes > 0);
	assert_int_equal(msg.pool_row.swap_on, 0); /* `wait` alone */
	rig_expect(&self, SL_MSG_LIST_END, &msg);
	(void)close(self.fd);
	(void)close(given.fd);
	holder_end(inside, &a);
}

static void what_is_given_back_is_emptied(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 8 * MIB);
	uint64_t order = order_evict(inside, &a, 8 * MIB);
	struct given given = expect_store(inside, &a.peer);
	struct sl_action trim = {
		.type = SL_ACTION_TRIM, .trim = {.client = a.peer.client, .bytes = MIB}};
	union sl_msg msg;
	char *map;

	expect_evict(&a.peer, order, 8 * MIB);
	send_swapped(&a.peer, order, SL_WIRE_SWAP_REFUSED, 0);
	map = mmap(NULL, given.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, given.fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	memset(map, 7, given.bytes);
	sl_swap_trim(&inside->daemon, &trim);
	rig_expect(&a.peer, SL_MSG_TRIM, &msg);
	assert_true(msg.trim.bytes == MIB);
	send_back(&a.peer, given.number);
	inside_until(inside, inside->daemon.hostpool->made_bytes == 0);
	/* It kept its mapping, but has nothing of it. */
	inside_until(inside, map[0] == 0 && map[given.bytes - 1] == 0);
	(void)munmap(map, given.bytes);
	(void)close(given.fd);
	holder_end(inside, &a);
}

static void a_dead_clients_memory_is_emptied(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 8 * MIB);
	struct given given;
	char *map;
	BEGIN(LOST);

	(void)order_evict(inside, &a, 8 * MIB);
	given = expect_store(inside, &a.peer);
	map = mmap(NULL, given.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, given.fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	memset(map, 7, given.bytes);
	/* With its EVICT unanswered. */
	holder_end(inside, &a);
	OVER(LOST);
	inside_until(inside, map[0] == 0 && map[given.bytes - 1] == 0);
	(void)munmap(map, given.bytes);
	(void)close(given.fd);
}

/* --- orders that come to nothing -------------------------------------------------------------- */

static void too_much_for_the_pool(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 40 * MIB);
	uint64_t configured = inside->daemon.hostpool->configured_bytes, order;
	struct given given;
	BEGIN(NO_HOST);

	inside->daemon.hostpool->configured_bytes = 32 * MIB;
	(void)order_evict(inside, &a, 40 * MIB);
	/* Not inside the action. */
	assert_true(causes(inside) == over_);
	OVER(NO_HOST);
	rig_expect_silence(&a.peer, 20);
	/* Without a spare the bare bytes will do. */
	order = order_evict(inside, &a, 20 * MIB);
	given = expect_store(inside, &a.peer);
	assert_true(given.bytes == 20 * MIB);
	expect_evict(&a.peer, order, 20 * MIB);
	(void)close(given.fd);
	inside->daemon.hostpool->configured_bytes = configured;
	holder_end(inside, &a);
}

/* The host's own word, as made-up files have it. */
static void too_little_on_the_host(void **state)
{
	static const char little[] = "MemTotal: 8388608 kB\nMemAvailable: 266240 kB\n";
	static const char more[] = "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n";
	struct inside *inside = *state;
	struct sl_daemon *daemon = &inside->daemon;
	char root[64], path[128];
	struct holder a;
	union sl_msg msg;
	uint64_t order;
	BEGIN(NO_HOST);

	(void)snprintf(root, sizeof(root), "%s/root", inside->rig.dir);
	(void)snprintf(path, sizeof(path), "%s/proc", root);
	assert_int_equal(sl_file_make_dirs(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	assert_int_equal(sl_file_replace(path, more, strlen(more), false), 0);
	sl_hostpool_close(daemon);
	assert_int_equal(sl_hostpool_open(daemon, root, sl_swap_host_ready), 0);
	assert_int_equal(sl_hostpool_ahead_open(daemon), 0);
	sl_daemon_configure(daemon);
	assert_true(daemon->hostpool->pool_bytes == 512 * MIB);
	assert_int_equal(sl_file_replace(path, little, strlen(little), false), 0);
	a = holder_of(inside, 24 * MIB);
	/* 260 MiB are there, of which 256 are not for us. */
	(void)order_evict(inside, &a, 24 * MIB);
	OVER(NO_HOST);
	assert_true(daemon->hostpool->pool_bytes == 4 * MIB);
	rig_expect_silence(&a.peer, 20);
	/* The daemon sees by itself when there is more again. */
	assert_int_equal(sl_file_replace(path, more, strlen(more), false), 0);
	sl_hostmem_look(daemon->hostpool->hostmem);
	inside_until(inside, daemon->hostpool->pool_bytes == 512 * MIB);
	order = order_evict(inside, &a, 24 * MIB);
	rig_expect(&a.peer, SL_MSG_STORE, &msg);
	expect_evict(&a.peer, order, 24 * MIB);
	holder_end(inside, &a);
	sl_hostpool_close(daemon);
	assert_int_equal(sl_hostpool_open(daemon, "", sl_swap_host_ready), 0);
	assert_int_equal(sl_hostpool_ahead_open(daemon), 0);
	sl_daemon_configure(daemon);
}

static void aborted_in_every_state(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 24 * MIB);
	union sl_msg msg;
	uint64_t order;
	BEGIN(ABORTED);

	order = order_evict(inside, &a, 24 * MIB);
	abort_order(inside, &a, order + 1); /* another's */
	abort_order(inside, &a, order);
	OVER(ABORTED);
	/* Memory that was being made is the client's all the same. */
	rig_expect(&a.peer, SL_MSG_STORE, &msg);
	order = order_evict(inside, &a, 24 * MIB);
	expect_evict(&a.peer, order, 24 * MIB);
	abort_order(inside, &a, order);
	rig_expect(&a.peer, SL_MSG_ABORT, &msg);
	assert_true(msg.abort.order == order);
	assert_true(causes(inside) == over_ + 1);
	send_swapped(&a.peer, order, SL_WIRE_SWAP_REFUSED, 0);
	inside_until(inside, causes(inside) == over_ + 2);
	abort_order(inside, &a, order); /* too late */
	rig_expect_silence(&a.peer, 20);
	holder_end(inside, &a);
}

/* It is never forced: the order stays open until the client says something, or is gone. */
static void one_that_never_answers(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 4 * MIB);
	uint64_t order;
	union sl_msg msg;
	BEGIN(LOST);

	order = order_evict(inside, &a, 4 * MIB);
	rig_expect(&a.peer, SL_MSG_STORE, &msg);
	expect_evict(&a.peer, order, 4 * MIB);
	rig_expect_silence(&a.peer, 100);
	assert_true(causes(inside) == over_);
	assert_int_equal(client_of(inside, &a)->order.state, SL_ORDER_SENT);
	(void)close(a.peer.fd);
	a.peer.fd = -1;
	OVER(LOST);
	/* An order for a client without a line is refused, not kept. */
	(void)order_evict(inside, &a, 4 * MIB);
	inside_until(inside, causes(inside) == over_ + 2);
	(void)order_restore(inside, &a, 4 * MIB);
	inside_until(inside, causes(inside) == over_ + 3);
	assert_true(of_cause(inside, SL_SWAP_LOST) == of_ + 3);
	holder_end(inside, &a);
	assert_true(causes(inside) == over_ + 3);
}

/* --- lies ------------------------------------------------------------------------------------- */

/* The liar says this after an EVICT of all it has; its books stay as they were. */
static void liar(struct inside *inside,
	void (*lie)(const struct rig_peer *, uint64_t order), const char *text)
{
	struct holder a = holder_of(inside, 4 * MIB);
	uint64_t order;
	union sl_msg msg;
	struct sl_node_use_view use;
	BEGIN(LOST);

	order = order_evict(inside, &a, 4 * MIB);
	rig_expect(&a.peer, SL_MSG_STORE, &msg);
	expect_evict(&a.peer, order, 4 * MIB);
	lie(&a.peer, order);
	expect_rejected(inside, &a.peer, text);
	OVER(LOST);
	use = sl_node_client_use(inside->daemon.node, a.peer.client, 0);
	assert_true(use.backing_bytes == 4 * MIB && use.evicted_bytes == 0);
	holder_end(inside, &a);
}

static void swapped_of_another(const struct rig_peer *peer, uint64_t order)
{
	send_swapped(peer, order + 1, SL_WIRE_SWAP_OK, 4 * MIB);
}

static void swapped_too_much(const struct rig_peer *peer, uint64_t order)
{
	send_swapped(peer, order, SL_WIRE_SWAP_OK, 4 * MIB + 1);
}

static void swapped_elsewhere(const struct rig_peer *peer, uint64_t order)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SWAPPED);
	msg.swapped.order = order;
	msg.swapped.ordinal = 1;
	rig_send(peer, &msg);
}

static void back_of_nothing(const struct rig_peer *peer, uint64_t order)
{
	send_back(peer, 2);
}

static void back_again_and_again(const struct rig_peer *peer, uint64_t order)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_STORE_BACK);
	msg.store_back.number = 1;
	for (int i = 0; i < 3000; i++) {
		if (sl_wire_send(peer->fd, &msg) != SL_WIRE_OK)
			break;
		rig_idle();
	}
}

static void held_late(const struct rig_peer *peer, uint64_t order)
{
	struct given given = {.number = 1, .bytes = 2 * MIB};

	given.fd = memfd_create("x", MFD_CLOEXEC);
	send_held(peer, &given);
	(void)close(given.fd);
}

static void evicted_late(const struct rig_peer *peer, uint64_t order)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_EVICTED);
	msg.evicted.evicted_bytes = MIB;
	rig_send(peer, &msg);
}

static void lies_end_the_line_and_nothing_else(void **state)
{
	liar(*state, swapped_of_another, "which it does not have");
	liar(*state, swapped_too_much, "more than it has");
	liar(*state, swapped_elsewhere, "which it does not have");
	liar(*state, back_of_nothing, "STORE_BACK of file 2");
	liar(*state, back_again_and_again, "STORE_BACK of file 1");
	liar(*state, held_late, "after REPORTED");
	liar(*state, evicted_late, "more than was reported");
}

/* --- many ------------------------------------------------------------------------------------- */

#define MANY 200

static void two_hundred_at_once(void **state)
{
	struct inside *inside = *state;
	static struct holder holders[MANY];
	uint64_t orders[MANY];
	uint64_t before;
	union sl_msg msg;

	for (int i = 0; i < MANY; i++)
		holders[i] = holder_of(inside, 2 * MIB);
	before = causes(inside);
	for (int i = 0; i < MANY; i++)
		orders[i] = order_evict(inside, &holders[i], 2 * MIB);
	for (int i = 0; i < MANY; i++) {
		rig_expect(&holders[i].peer, SL_MSG_STORE, &msg);
		expect_evict(&holders[i].peer, orders[i], 2 * MIB);
		send_swapped(&holders[i].peer, orders[i], SL_WIRE_SWAP_OK, 2 * MIB);
	}
	inside_until(inside, causes(inside) == before + MANY);
	assert_true(inside->daemon.hostpool->made_bytes == MANY * 2 * MIB);
	for (int i = 0; i < MANY; i++) {
		rig_peer_end(&holders[i].peer);
		rig_nvml(&inside->rig, holders[i].peer.pid, 0);
		rig_peer_end(&holders[i].run);
	}
	inside_until(inside, inside->daemon.workload_count == 0);
	assert_true(inside->daemon.hostpool->made_bytes == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_memory_comes_before_the_order),
		cmocka_unit_test(the_last_chunk_has_room),
		cmocka_unit_test(rates_come_from_what_crossed_the_link),
		cmocka_unit_test(files_come_ahead_of_need),
		cmocka_unit_test(lists_tell_who_is_where),
		cmocka_unit_test(what_is_given_back_is_emptied),
		cmocka_unit_test(a_dead_clients_memory_is_emptied),
		cmocka_unit_test(too_much_for_the_pool),
		cmocka_unit_test(too_little_on_the_host),
		cmocka_unit_test(aborted_in_every_state),
		cmocka_unit_test(one_that_never_answers),
		cmocka_unit_test(lies_end_the_line_and_nothing_else),
		cmocka_unit_test(two_hundred_at_once),
	};

	return cmocka_run_group_tests(tests, moving_setup, moving_teardown);
}
