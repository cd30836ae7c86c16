/* DUMP: the machine as JSON, whatever its size, for readers however slow. Rows of processes. */
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../rig.h"

#define OTHER_USER 12345

static int setup(void **state)
{
	static struct rig rig;

	rig_init(&rig, 2, 16 * RIG_GIB);
	rig_start(&rig, "oom_first: yes\n");
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
	struct rig_peer self = {.fd = sl_wire_connect(rig->socket, NULL), .order = -1};
	union sl_msg msg;

	assert_true(self.fd >= 0);
	rig_hello(&self, SL_ROLE_CONTROL, 0);
	rig_expect(&self, SL_MSG_WELCOME, &msg);
	return self;
}

static void ask_dump(const struct rig_peer *peer)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_DUMP);
	rig_send(peer, &msg);
}

static json_t *take(const struct rig_peer *peer)
{
	size_t size = 0, room = 1 << 22;
	char *text = malloc(room);
	json_error_t where = {0};
	json_t *json;

	for (;;) {
		struct pollfd ready = {.fd = peer->fd, .events = POLLIN};
		union sl_msg msg;

		assert_int_equal(poll(&ready, 1, 5000), 1);
		assert_int_equal(
			sl_wire_recv(peer->fd, SL_FROM_DAEMON, &msg, NULL), SL_WIRE_OK);
		if (msg.head.type == SL_MSG_LIST_END)
			break;
		assert_int_equal(msg.head.type, SL_MSG_DUMP_ROW);
		assert_in_range(msg.dump_row.size, 1, sizeof(msg.dump_row.text));
		assert_true(size + msg.dump_row.size <= room);
		memcpy(text + size, msg.dump_row.text, msg.dump_row.size);
		size += msg.dump_row.size;
	}
	json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
	if (!json)
		fail_msg("line %d: %s\n%.*s", where.line, where.text, (int)size, text);
	free(text);
	return json;
}

static json_int_t integer(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		fail_msg("no number '%s'", key);
	return json_integer_value(value);
}

static const char *text(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_string(value))
		fail_msg("no text '%s'", key);
	return json_string_value(value);
}

static const json_t *item(const json_t *root, const char *key, size_t index, size_t count)
{
	const json_t *array = json_object_get(root, key);

	if (!json_is_array(array) || json_array_size(array) != count)
		fail_msg("%zu in '%s', want %zu", json_array_size(array), key, count);
	return count ? json_array_get(array, index) : NULL;
}

static void everything_is_in_it(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run, client, other_run, other, self;
	const json_t *object;
	json_t *root;

	run = rig_run(rig, 4 * RIG_GIB, 12 * RIG_GIB);
	client = rig_join(rig, &run);
	rig_hold(rig, &client, 1, 3 * RIG_GIB);
	other_run = rig_run(rig, 10 * RIG_GIB, 0);
	other = rig_join(rig, &other_run);
	self = control(rig);
	rig_until(rig_gpu(rig).backing_bytes == 3 * RIG_GIB);
	ask_dump(&self);
	root = take(&self);
	assert_string_equal(text(root, "version"), SL_VERSION);
	assert_int_equal(integer(root, "protocol"), SL_PROTOCOL_VERSION);
	assert_int_equal(integer(root, "pid"), rig->daemon);
	assert_string_equal(text(json_object_get(root, "options"), "oom_first"), "yes");
	assert_string_equal(
		text(json_object_get(root, "options"), "longest_wait"), "60s");
	assert_int_equal(integer(root, "recovering"), 0);
	assert_int_equal(integer(json_object_get(root, "counters"), "grants"), 1);
	assert_true(integer(json_object_get(root, "peers"), "clients") == 2);
	assert_true(integer(json_object_get(root, "events"), "kept") >= 5);
	object = item(root, "gpus", 0, 2);
	assert_int_equal(integer(object, "capacity_bytes"), 16 * RIG_GIB);
	assert_int_equal(integer(object, "backing_bytes"), 3 * RIG_GIB);
	object = item(root, "workloads", 0, 2);
	assert_int_equal(integer(object, "workload"), run.workload);
	assert_int_equal(integer(object, "request_bytes"), 4 * RIG_GIB);
	assert_int_equal(integer(object, "limit_bytes"), 12 * RIG_GIB);
	assert_int_equal(integer(object, "root_pid"), run.pid);
	assert_true(json_is_true(json_object_get(object, "oom_first")));
	object = item(object, "uses", 0, 1);
	assert_int_equal(integer(object, "backing_bytes"), 3 * RIG_GIB);
	object = item(root, "clients", 0, 2);
	assert_int_equal(integer(object, "pid"), client.pid);
	assert_string_equal(text(object, "state"), "live");
	(void)item(root, "demands", 0, 0);
	assert_int_equal(integer(root, "demands_left_out"), 0);
	json_decref(root);
	rig_peer_end(&other);
	rig_peer_end(&other_run);
	rig_nvml(rig, client.pid, 0);
	rig_peer_end(&client);
	rig_peer_end(&run);
	(void)close(self.fd);
}

/* Demands in the order of their queue, the granted ones last. */
static void demands_are_in_order(void **state)
{
	enum { WAITERS = 5 };
	struct rig *rig = *state;
	struct rig_peer run, clients[WAITERS], holder, holder_run, self;
	const json_t *first, *last;
	union sl_msg msg;
	json_t *root;

	rig_configure(rig, "oom_first: no\n");
	holder_run = rig_run(rig, RIG_GIB, 15 * RIG_GIB);
	holder = rig_join(rig, &holder_run);
	rig_hold(rig, &holder, 1, 14 * RIG_GIB);
	run = rig_run(rig, 2 * RIG_GIB, 15 * RIG_GIB);
	for (int i = 0; i < WAITERS; i++) {
		clients[i] = rig_join(rig, &run);
		rig_ask(&clients[i], 7, (i ? 3 : 2) * RIG_GIB);
	}
	rig_until(rig_gpu(rig).waiting == WAITERS);
	self = control(rig);
	ask_dump(&self);
	root = take(&self);
	first = item(root, "demands", 0, WAITERS);
	last = item(root, "demands", WAITERS - 1, WAITERS);
	assert_int_equal(integer(first, "bytes"), 2 * RIG_GIB);
	assert_true(json_is_true(json_object_get(first, "entitled")));
	assert_true(json_is_false(json_object_get(last, "granted")));
	assert_int_equal(integer(last, "client"), clients[WAITERS - 1].client);
	json_decref(root);
	/* The same as rows. */
	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_CLIENTS;
	rig_send(&self, &msg);
	rig_expect(&self, SL_MSG_CLIENT_ROW, &msg);
	assert_int_equal(msg.client_row.client, holder.client);
	assert_int_equal(msg.client_row.pid, holder.pid);
	assert_int_equal(msg.client_row.backing_bytes, 14 * RIG_GIB);
	assert_int_equal(msg.client_row.flags & SL_CLIENT_WAITS, 0);
	for (int i = 0; i < WAITERS; i++) {
		rig_expect(&self, SL_MSG_CLIENT_ROW, &msg);
		assert_int_equal(msg.client_row.client, clients[i].client);
		assert_int_equal(msg.client_row.workload, run.workload);
		assert_int_equal(msg.client_row.waiting_bytes, (i ? 3 : 2) * RIG_GIB);
		assert_int_equal(msg.client_row.flags & SL_CLIENT_WAITS, SL_CLIENT_WAITS);
	}
	rig_expect(&self, SL_MSG_LIST_END, &msg);
	assert_int_equal(msg.list_end.rows, WAITERS + 1);
	for (int i = 0; i < WAITERS; i++)
		rig_peer_end(&clients[i]);
	rig_nvml(rig, holder.pid, 0);
	rig_peer_end(&holder);
	rig_peer_end(&holder_run);
	rig_peer_end(&run);
	(void)close(self.fd);
}

/* One reader sleeps in the middle of its dump; others get theirs, and it gets all of its own. */
static void a_slow_reader_harms_nobody(void **state)
{
	enum { WORKLOADS = 300 };
	struct rig *rig = *state;
	static struct rig_peer runs[WORKLOADS];
	struct rig_peer slow, self;
	json_t *root;

	for (int i = 0; i < WORKLOADS; i++)
		runs[i] = rig_run(rig, 1 << 20, 0);
	slow = control(rig);
	ask_dump(&slow);
	self = control(rig);
	for (int i = 0; i < 3; i++) {
		ask_dump(&self);
		root = take(&self);
		(void)item(root, "workloads", 0, WORKLOADS);
		json_decref(root);
	}
	/* Half of them end meanwhile: gone from its dump, or still in it, but the dump is whole. */
	for (int i = 0; i < WORKLOADS / 2; i++)
		rig_peer_end(&runs[i]);
	rig_until(rig_uses(rig, NULL, 0) == WORKLOADS / 2);
	root = take(&slow);
	assert_in_range(json_array_size(json_object_get(root, "workloads")),
		WORKLOADS / 2, WORKLOADS);
	json_decref(root);
	for (int i = WORKLOADS / 2; i < WORKLOADS; i++)
		rig_peer_end(&runs[i]);
	(void)close(slow.fd);
	(void)close(self.fd);
}

static bool is_refused(const struct rig *rig)
{
	struct rig_peer peer = rig_peer_as(rig, OTHER_USER, OTHER_USER);
	union sl_msg msg;

	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	ask_dump(&peer);
	assert_int_equal(sl_wire_recv(peer.fd, SL_FROM_DAEMON, &msg, NULL), SL_WIRE_OK);
	rig_peer_end(&peer);
	if (msg.head.type == SL_MSG_REJECT)
		assert_int_equal(msg.reject.reason, SL_REJECT_FULL);
	return msg.head.type == SL_MSG_REJECT;
}

/* Dumps that are not read are memory, so there are few; the administrator's own come on top. */
static void unread_dumps_are_few(void **state)
{
	const struct rig *rig = *state;
	struct rig_peer deaf[16], self;
	union sl_msg msg;

	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < SL_ARRAY_LEN(deaf); i++) {
		assert_false(is_refused(rig));
		deaf[i] = rig_peer_as(rig, OTHER_USER, OTHER_USER);
		rig_hello(&deaf[i], SL_ROLE_CONTROL, 0);
		rig_expect(&deaf[i], SL_MSG_WELCOME, &msg);
		/* More than the kernel keeps for a peer that does not read. */
		for (int j = 0; j < 150; j++)
			ask_dump(&deaf[i]);
	}
	rig_until(is_refused(rig));
	self = control(rig);
	ask_dump(&self);
	json_decref(take(&self));
	rig_peer_end(&deaf[3]);
	rig_until(!is_refused(rig));
	for (size_t i = 0; i < SL_ARRAY_LEN(deaf); i++) {
		if (i != 3)
			rig_peer_end(&deaf[i]);
	}
	(void)close(self.fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(everything_is_in_it),
		TEST(demands_are_in_order),
		TEST(a_slow_reader_harms_nobody),
		TEST(unread_dumps_are_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
