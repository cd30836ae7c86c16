/* Orders to move memory: the policy's are handed in, and clients answer them, lie, or die. */
#include "inside.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/hostmem.h"
#include "daemon/hostpool.h"
#include "daemon/swap.h"

#define MIB SL_MIB
/* Beyond what the policy of this daemon gives out by itself. */
#define FIRST_ORDER (1ull << 40)

static uint64_t next_order = FIRST_ORDER;

static int setup(void **state)
{
	static struct inside inside;

	/* `wait` alone, so that the policy orders nothing itself. */
	inside_init(&inside, "driver_reserve: 1GiB\nmeasure_interval: 20ms\n"
			     "recover_wait: 1ms\nresolvers: wait\nhost_memory: 512MiB\n");
	*state = &inside;
	return 0;
}

static int teardown(void **state)
{
	inside_fini(*state);
	return 0;
}

/* --- a client that has memory ---------------------------------------------------------------- */

struct holder {
	struct rig_peer run, peer;
};

static struct holder holder_of(struct inside *inside, uint64_t bytes)
{
	struct holder holder = {.run = rig_run(&inside->rig, 64 * MIB, 2 * RIG_GIB)};

	holder.peer = rig_join(&inside->rig, &holder.run);
	rig_hold(&inside->rig, &holder.peer, 1, bytes);
	inside_turn(inside);
	return holder;
}

static void holder_end(struct inside *inside, struct holder *holder)
{
	uint32_t others = inside->daemon.workload_count - 1;

	rig_peer_end(&holder->peer);
	rig_nvml(&inside->rig, holder->peer.pid, 0);
	rig_peer_end(&holder->run);
	inside_until(inside, inside->daemon.workload_count == others &&
				     sl_list_is_empty(&inside->daemon.dying));
}

static uint64_t order_evict(
	struct inside *inside, const struct holder *holder, uint64_t bytes)
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

static uint64_t order_restore(
	struct inside *inside, const struct holder *holder, uint64_t bytes)
{
	struct sl_action action = {.type = SL_ACTION_RESTORE,
		.id = next_order++,
		.restore = {.client = holder->peer.client,
			.bytes = bytes,
			.workload = holder->run.workload}};

	sl_swap_restore(&inside->daemon, &action);
	return action.id;
}

static void abort_order(
	struct inside *inside, const struct holder *holder, uint64_t order)
{
	struct sl_action action = {.type = SL_ACTION_ABORT,
		.id = next_order++,
		.abort = {.client = holder->peer.client, .order = order}};

	sl_swap_abort(&inside->daemon, &action);
}

static struct sl_client *client_of(struct inside *inside, const struct holder *holder)
{
	return inside_client(inside, &holder->peer);
}

/* --- messages with descriptors --------------------------------------------------------------- */

struct given {
	uint32_t number;
	int fd;
	uint64_t bytes;
};

static struct given expect_store(struct inside *inside, const struct rig_peer *peer)
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
	return (struct given){
		.number = msg.store.number, .fd = fds.fd[0], .bytes = msg.store.bytes};
}

static void send_held(const struct rig_peer *peer, const struct given *given)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_STORE_HELD);
	msg.store_held.number = given->number;
	msg.store_held.bytes = given->bytes;
	assert_int_equal(sl_wire_send_fds(peer->fd, &msg, &given->fd, 1), SL_WIRE_OK);
}

static void send_back(const struct rig_peer *peer, uint32_t number)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_STORE_BACK);
	msg.store_back.number = number;
	rig_send(peer, &msg);
}

static void send_swapped(
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

static void expect_evict(const struct rig_peer *peer, uint64_t order, uint64_t bytes)
{
	union sl_msg msg;

	rig_expect(peer, SL_MSG_EVICT, &msg);
	assert_true(msg.evict.order == order);
	assert_true(msg.evict.bytes == bytes);
	assert_int_equal(msg.evict.deadline_ms, 2000);
}

static uint64_t of_cause(const struct inside *inside, uint32_t cause)
{
	return inside->daemon.swap_causes[0][cause] +
	       inside->daemon.swap_causes[1][cause];
}

static uint64_t causes(const struct inside *inside)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < SL_SWAP_CAUSES; i++)
		sum += of_cause(inside, i);
	return sum;
}

/* The order is over, once, for that cause. */
static void expect_over(struct inside *inside, uint64_t before, enum sl_swap_cause cause,
	uint64_t of_before)
{
	inside_until(inside, causes(inside) == before + 1);
	assert_true(of_cause(inside, cause) == of_before + 1);
	inside_turn(inside);
	assert_true(causes(inside) == before + 1);
}

#define BEGIN(cause)                     \
	uint64_t over_ = causes(inside); \
	uint64_t of_ = of_cause(inside, SL_SWAP_##cause)
#define OVER(cause) expect_over(inside, over_, SL_SWAP_##cause, of_)

/* --- what goes well ---------------------------------------------------------------------------- */

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

/* A chunk moves as a whole: room for the largest one is there besides what is asked for, if it can be had, and in
 * a file of its own. */
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
		/* What a first move takes says nothing about the link. */
		assert_true(inside->daemon.gpus[0].link_out.measured == 0);
	}
	holder_end(inside, &holders[1]);
	holder_end(inside, &holders[0]);
}

/* --- what is learnt and told ------------------------------------------------------------------- */

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
	/* A quarter of the way to twice as much; a twentieth more is no news. */
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

/* Two that share a GPU which is getting full have files before anybody orders anything. */
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
	/* At need nothing has to be made; who was told to give some back is left alone. */
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
	self = list_of(inside, SL_LIST_SWAP);
	rig_expect(&self, SL_MSG_SWAP_ROW, &msg);
	assert_true(msg.swap_row.workload == a.run.workload);
	assert_true(msg.swap_row.host_bytes == 16 * MIB);
	assert_true(msg.swap_row.out_bytes == 12 * MIB);
	assert_true(msg.swap_row.clean_bytes == 4 * MIB);
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
	/* It kept its mapping, and has nothing of it. */
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

/* --- orders that come to nothing ----------------------------------------------------------------- */

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
	/* Where there is no room to spare the bare bytes will do. */
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
	assert_int_equal(sl_hostpool_open(daemon, root), 0);
	sl_daemon_configure(daemon);
	assert_true(daemon->hostpool->pool_bytes == 512 * MIB);
	assert_int_equal(sl_file_replace(path, little, strlen(little), false), 0);
	a = holder_of(inside, 24 * MIB);
	/* 260 MiB are there, of which 256 are not for us. */
	(void)order_evict(inside, &a, 24 * MIB);
	OVER(NO_HOST);
	assert_true(daemon->hostpool->pool_bytes == 4 * MIB);
	rig_expect_silence(&a.peer, 20);
	/* It is seen by itself when there is more again. */
	assert_int_equal(sl_file_replace(path, more, strlen(more), false), 0);
	sl_hostmem_look(daemon->hostpool->hostmem);
	inside_until(inside, daemon->hostpool->pool_bytes == 512 * MIB);
	order = order_evict(inside, &a, 24 * MIB);
	rig_expect(&a.peer, SL_MSG_STORE, &msg);
	expect_evict(&a.peer, order, 24 * MIB);
	holder_end(inside, &a);
	sl_hostpool_close(daemon);
	assert_int_equal(sl_hostpool_open(daemon, ""), 0);
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
	/* What was being made is the client's all the same. */
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
	/* An order for somebody without a line is refused, not kept. */
	(void)order_evict(inside, &a, 4 * MIB);
	inside_until(inside, causes(inside) == over_ + 2);
	(void)order_restore(inside, &a, 4 * MIB);
	inside_until(inside, causes(inside) == over_ + 3);
	assert_true(of_cause(inside, SL_SWAP_LOST) == of_ + 3);
	holder_end(inside, &a);
	assert_true(causes(inside) == over_ + 3);
}

static void older_clients_are_never_asked(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 4 * MIB);
	BEGIN(LOST);

	client_of(inside, &a)->peer->version = 3;
	(void)order_evict(inside, &a, 4 * MIB);
	OVER(LOST);
	rig_expect_silence(&a.peer, 20);
	client_of(inside, &a)->peer->version = 4;
	holder_end(inside, &a);
}

/* --- lies ------------------------------------------------------------------------------------------ */

static void expect_rejected(
	struct inside *inside, const struct rig_peer *peer, const char *text)
{
	union sl_msg msg = {0};

	rig_expect(peer, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_PROTOCOL);
	if (!strstr(msg.reject.text, text))
		fail_msg("'%s' lacks '%s'", msg.reject.text, text);
	rig_expect_closed(peer);
	inside_turn(inside);
}

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

/* --- a line that is lost and found ------------------------------------------------------------------ */

static void report(struct rig_peer *peer, uint64_t backing)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_REPORT);
	msg.report.backing_bytes = backing;
	rig_send(peer, &msg);
}

static void reported(struct rig_peer *peer)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_REPORTED);
	rig_send(peer, &msg);
}

static void come_back(struct inside *inside, struct holder *holder)
{
	uint64_t epoch = holder->peer.epoch;

	rig_reconnect(&inside->rig, &holder->peer);
	rig_join_as(&holder->peer, &holder->run, epoch);
}

static struct given evicted_once(
	struct inside *inside, struct holder *holder, uint64_t bytes)
{
	uint64_t order = order_evict(inside, holder, bytes), before = causes(inside);
	struct given given = expect_store(inside, &holder->peer);

	expect_evict(&holder->peer, order, bytes);
	send_swapped(&holder->peer, order, SL_WIRE_SWAP_OK, bytes);
	inside_until(inside, causes(inside) == before + 1);
	return given;
}

/* A line that breaks while the daemon lives: it is moved and brought back as before. */
static void back_on_the_same_daemon(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 8 * MIB);
	struct given given = evicted_once(inside, &a, 8 * MIB);
	union sl_msg msg;

	come_back(inside, &a);
	report(&a.peer, 8 * MIB);
	send_held(&a.peer, &given);
	sl_wire_init(&msg, SL_MSG_EVICTED);
	msg.evicted.evicted_bytes = 8 * MIB;
	rig_send(&a.peer, &msg);
	reported(&a.peer);
	inside_until(inside, client_of(inside, &a)->state == SL_CLIENT_LIVE);
	sl_wire_init(&msg, SL_MSG_WANT);
	msg.want.wants = 1;
	rig_send(&a.peer, &msg);
	rig_expect(&a.peer, SL_MSG_RESTORE, &msg);
	(void)close(given.fd);
	holder_end(inside, &a);
}

/* exec into a program without CUDA: host memory that nothing is in does not keep the rest booked. */
static void a_program_without_cuda_keeps_no_files(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 8 * MIB);
	uint64_t order = order_evict(inside, &a, 8 * MIB);
	struct given given = expect_store(inside, &a.peer);

	expect_evict(&a.peer, order, 8 * MIB);
	send_swapped(&a.peer, order, SL_WIRE_SWAP_REFUSED, 0);
	inside_until(inside, client_of(inside, &a)->order.state == SL_ORDER_NONE &&
				     client_of(inside, &a)->gpus[0].was_listed);
	rig_nvml(&inside->rig, a.peer.pid, 0);
	sl_closep(&a.peer.fd);
	inside_until(inside, inside->daemon.hostpool->made_bytes == 0);
	(void)close(given.fd);
	holder_end(inside, &a);
}

/* Who was never told to move anything has nothing on the host, whatever it says. */
static void nobody_begins_on_the_host(void **state)
{
	struct inside *inside = *state;
	struct holder a = {.run = rig_run(&inside->rig, 64 * MIB, 2 * RIG_GIB)};
	struct given made = {.number = 1, .bytes = 8 * MIB};
	union sl_msg msg;

	made.fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(fallocate(made.fd, 0, 0, (off_t)made.bytes), 0);
	assert_int_equal(fcntl(made.fd, F_ADD_SEALS, SL_HOSTMEM_SEALS), 0);
	for (int lie = 0; lie < 2; lie++) {
		a.peer = rig_peer(&inside->rig);
		rig_join_as(&a.peer, &a.run, 1);
		report(&a.peer, 64 * MIB);
		sl_wire_init(&msg, SL_MSG_EVICTED);
		msg.evicted.evicted_bytes = 64 * MIB;
		if (lie)
			send_held(&a.peer, &made);
		else
			rig_send(&a.peer, &msg);
		expect_rejected(inside, &a.peer, lie ? "STORE_HELD" : "EVICTED");
		rig_peer_end(&a.peer);
	}
	assert_true(inside->daemon.hostpool->made_bytes == 0);
	(void)close(made.fd);
	rig_peer_end(&a.run);
}

static void keeps_what_it_names(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 8 * MIB);
	struct given given = evicted_once(inside, &a, 8 * MIB);
	union sl_msg msg;
	char *map;

	map = mmap(NULL, given.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, given.fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	memset(map, 7, given.bytes);
	come_back(inside, &a);
	report(&a.peer, 8 * MIB);
	send_held(&a.peer, &given);
	sl_wire_init(&msg, SL_MSG_EVICTED);
	msg.evicted.evicted_bytes = 8 * MIB;
	rig_send(&a.peer, &msg);
	reported(&a.peer);
	inside_until(inside, client_of(inside, &a)->state == SL_CLIENT_LIVE);
	assert_true(client_of(inside, &a)->host_bytes == given.bytes);
	/* Not named, it may be mapped nevertheless: it counts no more, and keeps what is in it. */
	come_back(inside, &a);
	report(&a.peer, 8 * MIB);
	reported(&a.peer);
	inside_until(inside, client_of(inside, &a)->host_bytes == 0);
	for (int i = 0; i < 50; i++) {
		inside_turn(inside);
		usleep(1000);
	}
	assert_int_equal(map[0], 7);
	(void)munmap(map, given.bytes);
	(void)close(given.fd);
	holder_end(inside, &a);
}

/* A daemon that ends, in whatever way, leaves to the living what is theirs. */
static void outlives_a_daemon_that_ends(void **state)
{
	static struct inside own;
	struct inside *before = *state;
	struct holder a;
	struct given given;
	char *map;

	inside_fini(before);
	inside_init(&own, "driver_reserve: 1GiB\nresolvers: wait\nhost_memory: 512MiB\n");
	a = holder_of(&own, 8 * MIB);
	given = evicted_once(&own, &a, 8 * MIB);
	map = mmap(NULL, given.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, given.fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	memset(map, 7, given.bytes);
	inside_fini(&own);
	assert_int_equal(map[0], 7);
	assert_int_equal(map[given.bytes - 1], 7);
	(void)munmap(map, given.bytes);
	(void)close(given.fd);
	rig_peer_end(&a.peer);
	rig_peer_end(&a.run);
	(void)setup(state);
}

/* What it says to have held, and is not what it was given. */
static void false_files(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 8 * MIB), b = holder_of(inside, 8 * MIB);
	struct given mine = evicted_once(inside, &a, 8 * MIB);
	struct given others = evicted_once(inside, &b, 8 * MIB);
	struct given plain = {.number = 1, .bytes = 8 * MIB};
	struct given rows[4];

	plain.fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(plain.fd, (off_t)plain.bytes), 0);
	rows[0] = others; /* of another, under a number of its own */
	rows[0].number = mine.number;
	rows[1] = mine; /* never given */
	rows[1].number = 77;
	rows[2] = plain; /* not sealed */
	rows[3] = mine;
	rows[3].bytes = 4 * MIB;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		come_back(inside, &a);
		report(&a.peer, 8 * MIB);
		send_held(&a.peer, &rows[i]);
		expect_rejected(inside, &a.peer, "STORE_HELD");
	}
	assert_true(client_of(inside, &b)->host_bytes == others.bytes);
	assert_true(inside->daemon.hostpool->files == 2);
	(void)close(mine.fd);
	(void)close(others.fd);
	(void)close(plain.fd);
	holder_end(inside, &a);
	holder_end(inside, &b);
}

/* --- many --------------------------------------------------------------------------------------------- */

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
		cmocka_unit_test(older_clients_are_never_asked),
		cmocka_unit_test(lies_end_the_line_and_nothing_else),
		cmocka_unit_test(back_on_the_same_daemon),
		cmocka_unit_test(a_program_without_cuda_keeps_no_files),
		cmocka_unit_test(nobody_begins_on_the_host),
		cmocka_unit_test(keeps_what_it_names),
		cmocka_unit_test(false_files),
		cmocka_unit_test(two_hundred_at_once),
		cmocka_unit_test(outlives_a_daemon_that_ends),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
