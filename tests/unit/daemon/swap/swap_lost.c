/* Lines that are lost and found, and daemons that end, while memory is on the host. */
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
#include "daemon/state/workload.h"
#include "daemon/swap/hostmem.h"
#include "daemon/swap/hostpool.h"
#include "daemon/swap/hostpool_ahead.h"
#include "daemon/swap/swap.h"

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

/* Out again before it could say that it wants nothing: it is wanted as often as it says so. */
static void wanted_as_often_as_it_says(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 8 * MIB);
	struct given given = evicted_once(inside, &a, 8 * MIB);
	union sl_msg msg;

	for (int again = 1;; again--) {
		uint64_t order;

		sl_wire_init(&msg, SL_MSG_WANT);
		msg.want.wants = 1;
		rig_send(&a.peer, &msg);
		rig_expect(&a.peer, SL_MSG_RESTORE, &msg);
		if (!again)
			break;
		send_swapped(&a.peer, msg.restore.order, SL_WIRE_SWAP_OK, 0);
		inside_until(inside, client_of(inside, &a)->order.state == SL_ORDER_NONE);
		order = order_evict(inside, &a, 8 * MIB);
		expect_evict(&a.peer, order, 8 * MIB);
		send_swapped(&a.peer, order, SL_WIRE_SWAP_OK, 8 * MIB);
		inside_until(inside, client_of(inside, &a)->order.state == SL_ORDER_NONE);
	}
	(void)close(given.fd);
	holder_end(inside, &a);
}

/* The process execs a program without CUDA: empty host memory does not keep the client's other
 * bytes booked. */
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

/* Nor does evicted memory, once its program is seen to be over: the memory cannot come back. While
 * the program maps it, the daemon waits. */
static void a_program_without_cuda_has_nothing_there(void **state)
{
	struct inside *inside = *state;
	int mapped = memfd_create("sluice-host", MFD_CLOEXEC);

	for (int over = 0; over < 2; over++) {
		struct holder a;
		struct given given;
		sl_ns end = sl_clock_now() + 4 * SL_S;
		char *map;

		assert_int_equal(ftruncate(mapped, 4096), 0);
		/* Its process is a child of ours. */
		map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, mapped, 0);
		assert_ptr_not_equal(map, MAP_FAILED);
		if (over)
			(void)munmap(map, 4096);
		a = holder_of(inside, 8 * MIB);
		if (!over)
			(void)munmap(map, 4096);
		given = evicted_once(inside, &a, 8 * MIB);
		inside_until(inside, client_of(inside, &a)->gpus[0].was_listed);
		rig_nvml(&inside->rig, a.peer.pid, 0);
		sl_closep(&a.peer.fd);
		if (over)
			inside_until(inside, inside->daemon.hostpool->made_bytes == 0);
		while (!over && sl_clock_now() < end)
			inside_turn(inside);
		assert_true(over || client_of(inside, &a)->host_bytes == given.bytes);
		(void)close(given.fd);
		holder_end(inside, &a);
	}
	(void)close(mapped);
}

/* A client that was never told to move anything has nothing on the host, whatever it says. */
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
	/* Not named, it may still be mapped: it counts no more, and keeps its contents. */
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

/* A daemon that ends, in whatever way, leaves living clients their memory. */
static void outlives_a_daemon_that_ends(void **state)
{
	static struct inside own;
	struct inside *before = *state;
	struct holder a;
	struct given given;
	char *map;

	inside_fini(before);
	inside_init(
		&own, "context_reserve: 1GiB\nresolvers: wait\nhost_memory: 512MiB\n");
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
	(void)moving_setup(state);
}

/* --- half of the free memory ------------------------------------------------------------------ */

static void host_has(struct inside *inside, char root[64], uint64_t bytes)
{
	char path[128], text[96];

	(void)snprintf(root, 64, "%.40s/root", inside->rig.dir);
	(void)snprintf(path, sizeof(path), "%s/proc", root);
	assert_int_equal(sl_file_make_dirs(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	(void)snprintf(text, sizeof(text),
		"MemTotal: 8388608 kB\nMemAvailable: %llu kB\n",
		(unsigned long long)(bytes / SL_KIB));
	assert_int_equal(sl_file_replace(path, text, strlen(text), false), 0);
}

/* The daemon's own look at the start is at the machine that the tests run on. */
static void look_at(struct inside *inside, const char *root)
{
	sl_hostpool_close(&inside->daemon);
	assert_int_equal(sl_hostpool_open(&inside->daemon, root, sl_swap_host_ready), 0);
	assert_int_equal(sl_hostpool_ahead_open(&inside->daemon), 0);
	sl_daemon_configure(&inside->daemon);
}

/* Evicted bytes of clients are not available, but are the pool's all the same. */
static void half_stays_half_over_a_restart(void **state)
{
	static struct inside own;
	char root[64];
	struct holder a;
	struct given given;
	union sl_msg msg;

	inside_fini(*state);
	inside_init(&own, "context_reserve: 1GiB\nresolvers: wait\nrecover_wait: 1ms\n");
	host_has(&own, root, 2 * RIG_GIB);
	look_at(&own, root);
	assert_true(own.daemon.hostpool->configured_bytes == RIG_GIB);
	a = holder_of(&own, 64 * MIB);
	given = evicted_once(&own, &a, 64 * MIB);
	inside_end(&own);
	host_has(&own, root, 2 * RIG_GIB - given.bytes);
	inside_begin(&own);
	look_at(&own, root);
	come_back(&own, &a);
	report(&a.peer, 64 * MIB);
	send_held(&a.peer, &given);
	sl_wire_init(&msg, SL_MSG_EVICTED);
	msg.evicted.evicted_bytes = 64 * MIB;
	rig_send(&a.peer, &msg);
	reported(&a.peer);
	inside_until(&own, client_of(&own, &a)->state == SL_CLIENT_LIVE);
	assert_true(client_of(&own, &a)->host_bytes == given.bytes);
	assert_true(client_of(&own, &a)->gpus[0].near_bytes == given.bytes);
	assert_true(own.daemon.hostpool->configured_bytes == RIG_GIB);
	assert_true(sl_node_pool(own.daemon.node).pool_bytes == RIG_GIB);
	/* And when it is given back, or read anew. */
	(void)close(given.fd);
	holder_end(&own, &a);
	sl_daemon_configure(&own.daemon);
	assert_true(own.daemon.hostpool->configured_bytes == RIG_GIB);
	inside_fini(&own);
	(void)moving_setup(state);
}

/* --- bounds of a client ----------------------------------------------------------------------- */

static void lower_limit(struct inside *inside, const struct holder *holder)
{
	struct rig_peer user = rig_peer(&inside->rig);
	union sl_msg msg;

	rig_hello(&user, SL_ROLE_CONTROL, 0);
	rig_expect(&user, SL_MSG_WELCOME, &msg);
	sl_wire_init(&msg, SL_MSG_SET);
	msg.set.workload = holder->run.workload;
	msg.set.which = SL_SET_LIMIT;
	msg.set.limit_kind = SL_AMOUNT_BYTES;
	msg.set.limit_value = 64 * MIB;
	rig_send(&user, &msg);
	rig_expect(&user, SL_MSG_SET_REPLY, &msg);
	assert_int_equal(msg.set_reply.ok, 1);
	assert_int_equal(msg.set_reply.limit_bytes, 64 * MIB);
	rig_peer_end(&user);
}

static struct sl_node_use_view come_back_with(struct inside *inside,
	struct holder *holder, const struct given *given, uint64_t bytes)
{
	union sl_msg msg;

	come_back(inside, holder);
	report(&holder->peer, bytes);
	send_held(&holder->peer, given);
	sl_wire_init(&msg, SL_MSG_EVICTED);
	msg.evicted.evicted_bytes = bytes;
	rig_send(&holder->peer, &msg);
	reported(&holder->peer);
	inside_until(inside, client_of(inside, holder)->state == SL_CLIENT_LIVE);
	return sl_node_client_use(inside->daemon.node, holder->peer.client, 0);
}

/* Lowering a limit takes nothing away. Each later daemon believes the client up to the larger
 * limit, and accepts its later reports. The limit is lowered before the restart, after it while the
 * client is not back yet, or both. */
static void what_a_larger_limit_gave(void **state)
{
	static const struct {
		bool before, between;
	} rows[] = {{true, false}, {false, true}, {true, true}};
	struct inside *inside = *state;

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct holder a = holder_of(inside, 128 * MIB);
		struct given given = evicted_once(inside, &a, 128 * MIB);

		rig_nvml(&inside->rig, a.peer.pid, 0);
		if (rows[i].before)
			lower_limit(inside, &a);
		for (int restarts = 0; restarts < 2; restarts++) {
			struct sl_node_use_view use;

			inside_end(inside);
			inside_begin(inside);
			if (rows[i].between)
				lower_limit(inside, &a);
			use = come_back_with(inside, &a, &given, 128 * MIB);
			assert_int_equal(use.backing_bytes, 128 * MIB);
			assert_int_equal(use.evicted_bytes, 128 * MIB);
			assert_false(client_of(inside, &a)->doubted);
			assert_int_equal(
				client_of(inside, &a)->workload->limit_bytes, 64 * MIB);
		}
		(void)close(given.fd);
		holder_end(inside, &a);
	}
}

/* Bytes below the limit stay there: the next daemon believes no more. */
static void a_larger_limit_is_forgotten(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 128 * MIB);
	struct given given = evicted_once(inside, &a, 128 * MIB);
	struct sl_workload *workload = client_of(inside, &a)->workload;
	union sl_msg msg;

	rig_nvml(&inside->rig, a.peer.pid, 0);
	lower_limit(inside, &a);
	assert_int_equal(workload->former_limit_bytes, 128 * MIB);
	sl_wire_init(&msg, SL_MSG_FREED);
	msg.freed.bytes = 32 * MIB;
	msg.freed.flags = SL_FREED_EVICTED;
	rig_send(&a.peer, &msg);
	inside_until(inside,
		sl_node_client_use(inside->daemon.node, a.peer.client, 0).backing_bytes ==
			96 * MIB);
	assert_int_not_equal(workload->former_limit_bytes, 0);
	rig_send(&a.peer, &msg);
	inside_until(inside, workload->former_limit_bytes == 0);
	inside_end(inside);
	inside_begin(inside);
	assert_int_equal(
		come_back_with(inside, &a, &given, 128 * MIB).evicted_bytes, 64 * MIB);
	(void)close(given.fd);
	holder_end(inside, &a);
}

/* The client has more than a demand could get, because it was there before another workload's
 * request. Its report is believed as far as the driver shows its memory in a sample after its
 * return. Neither the daemon's first sample, from before the memory came back to the GPU, nor a
 * missing sample decides. */
static void believed_by_a_fresh_look(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, RIG_GIB);
	struct rig_peer rest =
		rig_run(&inside->rig, 14 * RIG_GIB + RIG_GIB / 2, 15 * RIG_GIB);

	for (int sampled = 0; sampled < 2; sampled++) {
		inside_end(inside);
		rig_nvml(&inside->rig, a.peer.pid, 0);
		inside->rig.nvml->hang = !sampled;
		inside_begin(inside);
		inside_until(inside, sampled ? inside->daemon.gpus[0].measured_at > 0
					     : inside->daemon.gpus[0].asked);
		inside->rig.nvml->hang = 1;
		come_back(inside, &a);
		report(&a.peer, RIG_GIB);
		reported(&a.peer);
		inside_turn(inside);
		rig_nvml(&inside->rig, a.peer.pid, RIG_GIB);
		inside->rig.nvml->hang = 0;
		inside_until(inside, client_of(inside, &a)->state == SL_CLIENT_LIVE);
		assert_int_equal(sl_node_client_use(inside->daemon.node, a.peer.client, 0)
					 .backing_bytes,
			RIG_GIB);
		assert_false(client_of(inside, &a)->doubted);
	}
	holder_end(inside, &a);
	rig_peer_end(&rest);
	inside_until(inside, inside->daemon.workload_count == 0);
}

/* A driver that says nothing keeps no client waiting. */
static void believed_without_a_look(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 8 * MIB);

	inside_end(inside);
	inside->rig.nvml->hang = 1;
	inside_begin(inside);
	come_back(inside, &a);
	report(&a.peer, 8 * MIB);
	reported(&a.peer);
	inside_until(inside, client_of(inside, &a)->state == SL_CLIENT_LIVE);
	assert_int_equal(
		sl_node_client_use(inside->daemon.node, a.peer.client, 0).backing_bytes,
		8 * MIB);
	inside->rig.nvml->hang = 0;
	holder_end(inside, &a);
}

/* A client names more memory than the books have. It is kept if its report was cut, since it names
 * all that it has; it is dropped if its report was believed. */
static void who_was_not_believed_is_kept(void **state)
{
	struct inside *inside = *state;
	struct holder a = holder_of(inside, 8 * MIB);
	struct given given = evicted_once(inside, &a, 8 * MIB);
	uint64_t before;

	inside_end(inside);
	inside_begin(inside);
	assert_int_equal(come_back_with(inside, &a, &given, 5 * RIG_GIB).evicted_bytes,
		2 * RIG_GIB);
	assert_true(client_of(inside, &a)->doubted);
	before = causes(inside);
	send_swapped(&a.peer, order_restore(inside, &a, RIG_GIB), SL_WIRE_SWAP_PART,
		4 * RIG_GIB);
	inside_until(inside, causes(inside) == before + 1);
	assert_non_null(client_of(inside, &a)->peer);
	(void)close(given.fd);
	holder_end(inside, &a);
}

/* A daemon with fewer descriptors than the one before accepts more files from clients than it would
 * make. A client with one too many is rejected with the remedy, and can come back once another
 * client's file is gone. */
static void fewer_descriptors_than_before(void **state)
{
	struct inside *inside = *state;
	struct holder holders[3];
	struct given given[3];
	union sl_msg msg;

	for (int i = 0; i < 3; i++) {
		holders[i] = holder_of(inside, 8 * MIB);
		given[i] = evicted_once(inside, &holders[i], 8 * MIB);
	}
	inside_end(inside);
	inside_begin(inside);
	inside->daemon.hostpool->files_max = 1;
	for (int i = 0; i < 2; i++)
		assert_int_equal(come_back_with(inside, &holders[i], &given[i], 8 * MIB)
					 .evicted_bytes,
			8 * MIB);
	come_back(inside, &holders[2]);
	report(&holders[2].peer, 8 * MIB);
	send_held(&holders[2].peer, &given[2]);
	rig_expect(&holders[2].peer, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_FULL);
	assert_non_null(strstr(msg.reject.text, "LimitNOFILE="));
	rig_expect_closed(&holders[2].peer);
	holder_end(inside, &holders[0]);
	assert_int_equal(
		come_back_with(inside, &holders[2], &given[2], 8 * MIB).evicted_bytes,
		8 * MIB);
	assert_int_equal(inside->daemon.hostpool->files, 2);
	for (int i = 0; i < 3; i++)
		(void)close(given[i].fd);
	holder_end(inside, &holders[1]);
	holder_end(inside, &holders[2]);
	inside_end(inside);
	inside_begin(inside);
}

/* The held bytes in its report, which are not what it was given. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(back_on_the_same_daemon),
		cmocka_unit_test(wanted_as_often_as_it_says),
		cmocka_unit_test(a_program_without_cuda_keeps_no_files),
		cmocka_unit_test(a_program_without_cuda_has_nothing_there),
		cmocka_unit_test(nobody_begins_on_the_host),
		cmocka_unit_test(keeps_what_it_names),
		cmocka_unit_test(false_files),
		cmocka_unit_test(what_a_larger_limit_gave),
		cmocka_unit_test(a_larger_limit_is_forgotten),
		cmocka_unit_test(believed_by_a_fresh_look),
		cmocka_unit_test(believed_without_a_look),
		cmocka_unit_test(who_was_not_believed_is_kept),
		cmocka_unit_test(fewer_descriptors_than_before),
		cmocka_unit_test(outlives_a_daemon_that_ends),
		cmocka_unit_test(half_stays_half_over_a_restart),
	};

	return cmocka_run_group_tests(tests, moving_setup, moving_teardown);
}
