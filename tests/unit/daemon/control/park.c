/* Parked and resumed by hand: from the command to the client and back, across restarts too. */
#include "../rig.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "policy/node.h"

#define MIB    SL_MIB
#define BASE   "context_reserve: 1GiB\nmeasure_interval: 50ms\nrecover_wait: 10s\n"
#define CONFIG BASE "host_memory: 512MiB\n"

static int setup(void **state)
{
	static struct rig rig;

	rig_init(&rig, 1, 16 * RIG_GIB);
	rig_start(&rig, CONFIG);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_fini(*state);
	return 0;
}

/* --- messages --------------------------------------------------------------------------------- */

static struct rig_peer control(const struct rig *rig)
{
	struct rig_peer self = {.fd = sl_wire_connect(rig->socket, NULL)};
	union sl_msg msg;

	assert_true(self.fd >= 0);
	rig_hello(&self, SL_ROLE_CONTROL, 0);
	rig_expect(&self, SL_MSG_WELCOME, &msg);
	return self;
}

static struct sl_msg_park_reply park(
	const struct rig *rig, uint64_t workload, const char *name, bool parked)
{
	struct rig_peer self = control(rig);
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_PARK);
	msg.park.workload = workload;
	msg.park.parked = parked;
	sl_wire_str(msg.park.name, sizeof(msg.park.name), name);
	rig_send(&self, &msg);
	rig_expect(&self, SL_MSG_PARK_REPLY, &msg);
	(void)close(self.fd);
	return msg.park_reply;
}

static void must(const struct sl_msg_park_reply *reply)
{
	if (!reply->ok)
		fail_msg("refused: %s", reply->text);
}

static void must_not(
	const struct sl_msg_park_reply *reply, uint32_t reason, const char *text)
{
	assert_int_equal(reply->ok, 0);
	if (reply->reason != reason || !strstr(reply->text, text))
		fail_msg("%s: '%s', not %s: '%s'", sl_reason_name(reply->reason),
			reply->text, sl_reason_name(reason), text);
}

static struct sl_msg_use_row row_of(const struct rig *rig, uint64_t workload)
{
	struct rig_peer self = control(rig);
	struct sl_msg_use_row row = {0};
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_USES;
	rig_send(&self, &msg);
	for (;;) {
		struct sl_error err = {0};

		if (sl_wire_recv(self.fd, SL_FROM_DAEMON, &msg, &err) != SL_WIRE_OK)
			fail_msg("no row: %s", err.text);
		if (msg.head.type == SL_MSG_LIST_END)
			break;
		assert_int_equal(msg.head.type, SL_MSG_USE_ROW);
		if (msg.use_row.workload == workload)
			row = msg.use_row;
	}
	(void)close(self.fd);
	return row;
}

#define is_at(rig, run, WHERE) (row_of(rig, (run)->workload).residency == SL_WIRE_##WHERE)

/* --- a client that moves its memory ----------------------------------------------------------- */

struct given {
	uint32_t number;
	uint64_t bytes;
	int fd;
};

static struct given take_store(const struct rig_peer *peer)
{
	struct sl_wire_fds fds;
	union sl_msg msg;
	int r;

	do {
		struct pollfd ready = {.fd = peer->fd, .events = POLLIN};
		struct sl_error err = {0};

		assert_int_equal(poll(&ready, 1, 5000), 1);
		r = sl_wire_recv_fds(peer->fd, SL_FROM_DAEMON, &msg, &fds, &err);
	} while (r == SL_WIRE_OK &&
		 (msg.head.type == SL_MSG_GPU || msg.head.type == SL_MSG_PROBE));
	assert_int_equal(r, SL_WIRE_OK);
	assert_int_equal(msg.head.type, SL_MSG_STORE);
	return (struct given){
		.number = msg.store.number, .bytes = msg.store.bytes, .fd = fds.fd[0]};
}

static void swapped(const struct rig_peer *peer, uint64_t order, uint64_t evicted)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SWAPPED);
	msg.swapped.order = order;
	msg.swapped.evicted_bytes = evicted;
	rig_send(peer, &msg);
}

/* NVML follows, as it does. */
static struct given go(struct rig *rig, const struct rig_peer *peer, uint64_t bytes)
{
	struct given given = take_store(peer);
	union sl_msg msg;

	rig_expect(peer, SL_MSG_EVICT, &msg);
	assert_true(msg.evict.bytes >= bytes);
	rig_nvml(rig, peer->pid, 1);
	swapped(peer, msg.evict.order, bytes);
	return given;
}

static void come_back(struct rig *rig, const struct rig_peer *peer, uint64_t bytes)
{
	union sl_msg msg;

	rig_expect(peer, SL_MSG_RESTORE, &msg);
	assert_true(msg.restore.bytes == bytes);
	rig_nvml(rig, peer->pid, bytes);
	swapped(peer, msg.restore.order, 0);
}

static void tell_want(const struct rig_peer *peer, uint32_t wants)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_WANT);
	msg.want.wants = wants;
	msg.want.threads = wants;
	rig_send(peer, &msg);
}

/* On a new line: all it has is on the host. */
static void report(const struct rig_peer *peer, const struct given *given, uint64_t bytes,
	uint64_t evicted)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_REPORT);
	msg.report.backing_bytes = bytes;
	rig_send(peer, &msg);
	sl_wire_init(&msg, SL_MSG_STORE_HELD);
	msg.store_held.number = given->number;
	msg.store_held.bytes = given->bytes;
	assert_int_equal(sl_wire_send_fds(peer->fd, &msg, &given->fd, 1), SL_WIRE_OK);
	sl_wire_init(&msg, SL_MSG_EVICTED);
	msg.evicted.evicted_bytes = evicted;
	rig_send(peer, &msg);
	sl_wire_init(&msg, SL_MSG_REPORTED);
	rig_send(peer, &msg);
}

static void end_both(struct rig *rig, struct rig_peer *run, struct rig_peer *client)
{
	rig_peer_end(client);
	rig_nvml(rig, client->pid, 0);
	rig_peer_end(run);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void parked_and_resumed(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 4 * RIG_GIB);
	struct rig_peer client = rig_join(rig, &run);
	struct sl_msg_park_reply reply;
	struct given given;

	rig_hold(rig, &client, 1, 64 * MIB);
	rig_until(rig_gpu(rig).backing_bytes == 64 * MIB);
	reply = park(rig, run.workload, "", true);
	must(&reply);
	assert_true(reply.workload == run.workload && reply.held_bytes == 0);
	given = go(rig, &client, 64 * MIB);
	rig_until(is_at(rig, &run, PARKED));
	rig_until(row_of(rig, run.workload).evicted_bytes == 64 * MIB);
	assert_true(rig_gpu(rig).evicted_bytes == 64 * MIB);
	assert_true(row_of(rig, run.workload).host_bytes == given.bytes);
	assert_true(rig_gpu(rig).requests_bytes == 0);
	/* What NVML lists now is its context; of what left nothing counts as hidden. */
	rig_until(rig_measured(rig) <= 1);
	assert_true(rig_gpu(rig).free_bytes >= 15 * RIG_GIB - MIB);
	/* It may want as it likes. */
	tell_want(&client, 1);
	rig_expect_silence(&client, 100);
	reply = park(rig, 0, "", false);
	must_not(&reply, SL_REASON_UNKNOWN_WORKLOAD, "there is no workload");
	reply = park(rig, run.workload, "", false);
	must(&reply);
	come_back(rig, &client, 64 * MIB);
	rig_until(is_at(rig, &run, BOUND));
	assert_true(rig_gpu(rig).requests_bytes == RIG_GIB);
	rig_until(row_of(rig, run.workload).evicted_bytes == 0);
	(void)close(given.fd);
	end_both(rig, &run, &client);
}

static void refusals(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0), other;
	struct sl_msg_park_reply reply = park(rig, run.workload, "", false);
	union sl_msg msg;

	must_not(&reply, SL_REASON_NOT_PARKED, "is not parked");
	reply = park(rig, run.workload, "", true);
	must(&reply);
	reply = park(rig, run.workload, "", true);
	must_not(&reply, SL_REASON_PARKED_ALREADY, "is parked already");
	reply = park(rig, 0, "nobody", true);
	must_not(&reply, SL_REASON_UNKNOWN_WORKLOAD, "there is no workload 'nobody'");
	if (getuid() == 0) {
		other = rig_peer_as(rig, 12345, 12345);
		rig_hello(&other, SL_ROLE_CONTROL, 0);
		rig_expect(&other, SL_MSG_WELCOME, &msg);
		sl_wire_init(&msg, SL_MSG_PARK);
		msg.park.workload = run.workload;
		rig_send(&other, &msg);
		rig_expect(&other, SL_MSG_REJECT, &msg);
		assert_int_equal(msg.reject.reason, SL_REJECT_DENIED);
		assert_non_null(strstr(msg.reject.text, "may resume it"));
		rig_peer_end(&other);
	}
	rig_peer_end(&run);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

/* The next daemon keeps it parked, and knows its files as its own. */
static void parked_across_a_restart(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 4 * RIG_GIB);
	struct rig_peer client = rig_join(rig, &run);
	struct sl_msg_park_reply reply;
	uint64_t epoch = client.epoch;
	struct given given;
	char *map;

	rig_hold(rig, &client, 1, 64 * MIB);
	reply = park(rig, run.workload, "", true);
	must(&reply);
	given = go(rig, &client, 64 * MIB);
	map = mmap(NULL, given.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, given.fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	memset(map, 7, given.bytes);
	rig_until(is_at(rig, &run, PARKED));
	rig_kill_daemon(rig);
	assert_int_equal(map[0], 7);
	rig_start(rig, CONFIG);
	rig_reconnect(rig, &client);
	rig_join_as(&client, &run, epoch);
	report(&client, &given, 64 * MIB, 64 * MIB);
	rig_until(row_of(rig, run.workload).evicted_bytes == 64 * MIB);
	assert_true(is_at(rig, &run, PARKED));
	assert_true(row_of(rig, run.workload).host_bytes == given.bytes);
	assert_true(rig_gpu(rig).requests_bytes == 0);
	tell_want(&client, 1);
	rig_expect_silence(&client, 100);
	assert_int_equal(map[given.bytes - 1], 7);
	reply = park(rig, run.workload, "", false);
	must(&reply);
	come_back(rig, &client, 64 * MIB);
	rig_until(is_at(rig, &run, BOUND));
	(void)munmap(map, given.bytes);
	(void)close(given.fd);
	end_both(rig, &run, &client);
}

/* A client whose memory is on the host is believed, even if its GPU is full of other workloads'
 * memory. */
static void evicted_bytes_need_no_gpu(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 14 * RIG_GIB);
	struct rig_peer other_run = rig_run(rig, RIG_GIB, 14 * RIG_GIB);
	struct rig_peer client = rig_join(rig, &run), other;
	struct sl_msg_park_reply reply;
	uint64_t epoch = client.epoch;
	union sl_msg msg;
	struct given given;

	rig_hold(rig, &client, 1, 256 * MIB);
	reply = park(rig, run.workload, "", true);
	must(&reply);
	given = go(rig, &client, 256 * MIB);
	rig_until(row_of(rig, run.workload).evicted_bytes == 256 * MIB);
	other = rig_join(rig, &other_run);
	rig_hold(rig, &other, 1, 14 * RIG_GIB);
	rig_kill_daemon(rig);
	rig_start(rig, CONFIG);
	rig_reconnect(rig, &other);
	rig_join_as(&other, &other_run, epoch);
	sl_wire_init(&msg, SL_MSG_REPORT);
	msg.report.backing_bytes = 14 * RIG_GIB;
	rig_send(&other, &msg);
	sl_wire_init(&msg, SL_MSG_REPORTED);
	rig_send(&other, &msg);
	rig_reconnect(rig, &client);
	rig_join_as(&client, &run, epoch);
	report(&client, &given, 256 * MIB, 256 * MIB);
	rig_until(row_of(rig, run.workload).evicted_bytes == 256 * MIB);
	assert_false(rig_log_has(rig, "more than it can hold"));
	assert_true(rig_gpu(rig).backing_bytes == 14 * RIG_GIB + 256 * MIB);
	(void)close(given.fd);
	rig_peer_end(&other);
	rig_nvml(rig, other.pid, 0);
	rig_peer_end(&other_run);
	end_both(rig, &run, &client);
}

static struct sl_msg_set_reply set_warm(
	const struct rig *rig, uint64_t workload, uint64_t ms)
{
	struct rig_peer self = control(rig);
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SET);
	msg.set.workload = workload;
	msg.set.which = SL_SET_WARM;
	msg.set.warm_after_ms = ms;
	rig_send(&self, &msg);
	rig_expect(&self, SL_MSG_SET_REPLY, &msg);
	(void)close(self.fd);
	return msg.set_reply;
}

static struct sl_msg_set_reply set(
	const struct rig *rig, uint64_t workload, uint32_t which, uint64_t value)
{
	struct rig_peer self = control(rig);
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SET);
	msg.set.workload = workload;
	msg.set.which = which;
	msg.set.flags = which & SL_SET_FLAGS ? (uint32_t)value : 0;
	msg.set.request_kind = SL_AMOUNT_BYTES;
	msg.set.request_value = value;
	rig_send(&self, &msg);
	rig_expect(&self, SL_MSG_SET_REPLY, &msg);
	(void)close(self.fd);
	return msg.set_reply;
}

/* A setting without effect now is named with the answer. */
static void set_in_vain(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0);
	struct sl_msg_set_reply reply;
	struct sl_msg_park_reply parked;

	reply = set_warm(rig, run.workload, 5000);
	assert_true(reply.ok && !reply.text[0]);
	reply = set(rig, run.workload, SL_SET_FLAGS, SL_WORKLOAD_NO_SWAP);
	assert_true(reply.ok);
	reply = set_warm(rig, run.workload, 6000);
	assert_int_equal(reply.ok, 1);
	assert_non_null(strstr(reply.text, "never goes to the host"));
	reply = set_warm(rig, run.workload, 0);
	assert_true(reply.ok && !reply.text[0]);
	reply = set(rig, run.workload, SL_SET_FLAGS, 0);
	assert_true(reply.ok);
	reply = set(rig, run.workload, SL_SET_REQUEST, RIG_GIB / 2);
	assert_true(reply.ok && !reply.text[0]);
	parked = park(rig, run.workload, "", true);
	must(&parked);
	reply = set(rig, run.workload, SL_SET_REQUEST, RIG_GIB);
	assert_int_equal(reply.ok, 1);
	assert_non_null(strstr(reply.text, "seen when it is resumed"));
	rig_peer_end(&run);
}

static void warm_after_is_kept(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run, plain;
	struct sl_msg_set_reply reply;

	rig_configure(rig, CONFIG "warm_after: 3s\n");
	run = rig_run(rig, RIG_GIB, 0);
	plain = rig_run(rig, RIG_GIB, 0);
	assert_true(row_of(rig, run.workload).warm_after_ms == 3000);
	reply = set_warm(rig, run.workload, 1ull << 40);
	assert_int_equal(reply.ok, 0);
	assert_non_null(strstr(reply.text, "too long"));
	reply = set_warm(rig, run.workload, 5000);
	assert_int_equal(reply.ok, 1);
	assert_true(rig_log_gets(rig, "is moved to the host after 5"));
	reply = set_warm(rig, plain.workload, 0);
	assert_int_equal(reply.ok, 1);
	assert_true(rig_log_gets(rig, "only when others need its memory"));
	reply = set_warm(rig, 999, 5000);
	assert_int_equal(reply.reason, SL_REASON_UNKNOWN_WORKLOAD);
	rig_kill_daemon(rig);
	rig_start(rig, CONFIG "warm_after: 3s\n");
	assert_true(row_of(rig, run.workload).warm_after_ms == 5000);
	assert_true(row_of(rig, plain.workload).warm_after_ms == 0);
	rig_peer_end(&run);
	rig_peer_end(&plain);
	rig_configure(rig, CONFIG);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

static struct sl_msg_set_reply set_grace(
	const struct rig *rig, uint64_t workload, uint64_t ms)
{
	struct rig_peer self = control(rig);
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SET);
	msg.set.workload = workload;
	msg.set.which = SL_SET_GRACE;
	msg.set.idle_grace_ms = ms;
	rig_send(&self, &msg);
	rig_expect(&self, SL_MSG_SET_REPLY, &msg);
	(void)close(self.fd);
	return msg.set_reply;
}

static void idle_grace_is_kept(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0), plain, none;

	assert_true(row_of(rig, run.workload).idle_grace_ms == 30000);
	rig_configure(rig, CONFIG "idle_grace: 3s\nwarm_after: 7s\n");
	plain = rig_run(rig, RIG_GIB, 0);
	none = rig_run(rig, RIG_GIB, 0);
	assert_int_equal(set_grace(rig, run.workload, 1ull << 40).ok, 0);
	assert_int_equal(set_grace(rig, run.workload, 5000).ok, 1);
	assert_true(rig_log_gets(rig, "bursts only after 5"));
	assert_int_equal(set_grace(rig, none.workload, 0).ok, 1);
	rig_kill_daemon(rig);
	rig_start(rig, CONFIG);
	assert_true(row_of(rig, run.workload).idle_grace_ms == 5000);
	assert_true(row_of(rig, plain.workload).idle_grace_ms == 3000);
	assert_true(row_of(rig, plain.workload).warm_after_ms == 7000);
	assert_true(row_of(rig, none.workload).idle_grace_ms == 0);
	rig_peer_end(&run);
	rig_peer_end(&plain);
	rig_peer_end(&none);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

/* Without a pool nothing is parked, and the user who asked is told what to do about it. */
static void without_host_memory(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0);
	struct rig_peer client = rig_join(rig, &run);
	struct sl_msg_park_reply reply;

	rig_hold(rig, &client, 1, 64 * MIB);
	rig_configure(rig, BASE "host_memory: 0\n");
	reply = park(rig, run.workload, "", true);
	must_not(&reply, SL_REASON_PARK_NO_POOL, "(host_memory)");
	rig_configure(rig, CONFIG);
	end_both(rig, &run, &client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parked_and_resumed),
		cmocka_unit_test(refusals),
		cmocka_unit_test(parked_across_a_restart),
		cmocka_unit_test(evicted_bytes_need_no_gpu),
		cmocka_unit_test(set_in_vain),
		cmocka_unit_test(warm_after_is_kept),
		cmocka_unit_test(idle_grace_is_kept),
		cmocka_unit_test(without_host_memory),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
