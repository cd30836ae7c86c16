/* The node's ResourceSlice stays right, whatever changes it. */
#include "../server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster/kubernetes/node/publish.h"

#define NODES  "/api/v1/nodes/node1"
#define SLICES "/apis/resource.k8s.io/v1/resourceslices"
#define OURS   "node1-gpu.sluice.dev"

/* An API server of Nodes and ResourceSlices: just enough of one. */
static struct {
	json_t *slices;  /* by name */
	json_t *changes; /* lines of the watch; the last one made version `version` */
	json_int_t version;
	bool has_node, drops_policies, is_read_only;
	unsigned int conflicts; /* so many writes are refused */
} store;

static sd_event *event;
static struct sl_kube *kube;
static struct sl_kube_publisher *publisher;

static const struct sl_kube_gpu gpus[] = {
	{.uuid = "GPU-0", .shareable_bytes = 16 * SL_GIB},
	{.uuid = "GPU-1", .shareable_bytes = 16 * SL_GIB},
};

static void tell(const char *type, json_t *slice)
{
	json_t *change = json_pack("{sssO}", "type", type, "object", slice);
	char *line = json_dumps(change, JSON_COMPACT), *ended = text("%s\n", line);

	stream_push(ended);
	(void)json_array_append_new(store.changes, json_string(ended));
	free(ended);
	free(line);
	json_decref(change);
}

static void set_meta(json_t *slice, const char *key, const char *value)
{
	(void)json_object_set_new(
		json_object_get(slice, "metadata"), key, json_string(value));
}

/* Takes slice. */
static void put(json_t *slice, bool is_new)
{
	const char *name = sl_kube_text_at(slice, "metadata", "name", NULL);
	char number[32];

	(void)snprintf(number, sizeof(number), "%lld", (long long)++store.version);
	set_meta(slice, "resourceVersion", number);
	if (is_new)
		set_meta(slice, "uid", number);
	(void)json_object_set_new(store.slices, name, slice);
	tell(is_new ? "ADDED" : "MODIFIED", slice);
}

static void drop(const char *name)
{
	json_t *slice = json_incref(json_object_get(store.slices, name));
	char number[32];

	(void)snprintf(number, sizeof(number), "%lld", (long long)++store.version);
	set_meta(slice, "resourceVersion", number);
	(void)json_object_del(store.slices, name);
	tell("DELETED", slice);
	json_decref(slice);
}

static void refuse(struct exchange *x, unsigned int status, const char *reason)
{
	x->status = status;
	x->text = text(
		"{\"kind\":\"Status\",\"reason\":\"%s\",\"message\":\"no\"}", reason);
}

/* With what happened since the version, as a watch has it. */
static void serve_watch(struct exchange *x, json_int_t version)
{
	size_t missed = (size_t)(store.version - version);
	size_t all = json_array_size(store.changes);

	if (version > store.version) {
		refuse(x, 410, "Expired");
		return;
	}
	x->how = STREAM;
	x->text = text("%s", "");
	for (size_t i = all - missed; i < all; i++) {
		char *longer = text("%s%s", x->text,
			json_string_value(json_array_get(store.changes, i)));

		free(x->text);
		x->text = longer;
	}
}

static void serve_list(struct exchange *x)
{
	json_t *items = json_array(), *list, *slice;
	const char *name;

	assert_string_equal(query(x, "fieldSelector"),
		"spec.driver=gpu.sluice.dev,spec.nodeName=node1");
	if (query(x, "watch")) {
		serve_watch(x, strtoll(query(x, "resourceVersion"), NULL, 10));
		json_decref(items);
		return;
	}
	json_object_foreach(store.slices, name, slice)
	{
		if (strcmp(sl_kube_text_at(slice, "spec", "driver", NULL),
			    SL_KUBE_DRIVER) == 0)
			(void)json_array_append(items, slice);
	}
	list = json_pack("{s{so}so}", "metadata", "resourceVersion",
		json_sprintf("%lld", (long long)store.version), "items", items);
	x->text = json_dumps(list, 0);
	json_decref(list);
}

static void serve_write(struct exchange *x, const char *name, bool is_new)
{
	json_t *slice = json_loads(x->body, 0, NULL), *device;
	json_t *old = json_object_get(store.slices, name);
	size_t i;

	assert_string_equal(sl_kube_text_at(slice, "kind", NULL), "ResourceSlice");
	if (store.is_read_only) {
		refuse(x, 403, "Forbidden");
	} else if (store.conflicts > 0) {
		store.conflicts--;
		refuse(x, 409, "Conflict");
	} else if (is_new && old) {
		refuse(x, 409, "AlreadyExists");
	} else if (!is_new && !old) {
		refuse(x, 404, "NotFound");
	} else if (!is_new &&
		   strcmp(sl_kube_text_at(slice, "metadata", "resourceVersion", NULL),
			   sl_kube_text_at(old, "metadata", "resourceVersion", NULL)) !=
			   0) {
		refuse(x, 409, "Conflict");
	} else {
		json_array_foreach(sl_kube_at(slice, "spec", "devices", NULL), i, device)
		{
			if (store.drops_policies)
				(void)json_object_del(device, "allowMultipleAllocations");
		}
		put(json_incref(slice), is_new);
		x->text = json_dumps(slice, 0);
	}
	json_decref(slice);
}

static void serve_one(struct exchange *x, const char *name)
{
	if (strcmp(x->method, "PUT") == 0) {
		serve_write(x, name, false);
	} else if (!json_object_get(store.slices, name)) {
		refuse(x, 404, "NotFound");
	} else if (strcmp(x->method, "DELETE") == 0) {
		drop(name);
	} else {
		x->text = json_dumps(json_object_get(store.slices, name), 0);
	}
}

static void serve(struct exchange *x)
{
	if (strcmp(x->path, NODES) == 0) {
		if (store.has_node)
			x->text = text(
				"{\"metadata\":{\"name\":\"node1\",\"uid\":\"n-7\"}}");
		else
			refuse(x, 404, "NotFound");
	} else if (strncmp(x->path, SLICES "/", strlen(SLICES) + 1) == 0) {
		serve_one(x, x->path + strlen(SLICES) + 1);
	} else {
		assert_string_equal(x->path, SLICES);
		if (strcmp(x->method, "POST") == 0)
			serve_write(x, OURS, true);
		else
			serve_list(x);
	}
}

static int set_up(void **state)
{
	struct sl_kube_config config;

	memset(&store, 0, sizeof(store));
	store.slices = json_object();
	store.changes = json_array();
	store.version = 100;
	store.has_node = true;
	server_start(serve);
	assert_true(sd_event_new(&event) >= 0);
	config = server_config();
	assert_int_equal(sl_kube_new(&kube, event, &config), 0);
	return 0;
}

static int tear_down(void **state)
{
	publisher = sl_kube_publisher_free(publisher);
	kube = sl_kube_free(kube);
	event = sd_event_unref(event);
	server_stop();
	json_decref(store.slices);
	json_decref(store.changes);
	return 0;
}

static void set(size_t count)
{
	assert_int_equal(
		sl_kube_publisher_set(publisher,
			&(struct sl_kube_inventory){.gpus = gpus, .gpu_count = count}),
		0);
}

static void start(void)
{
	assert_int_equal(sl_kube_publisher_new(&publisher, kube, "node1"), 0);
	set(1);
}

static bool is_current(void *context)
{
	return sl_kube_publisher_is_current(publisher);
}

/* Lets pass what should not come. */
static void pause_ms(unsigned int ms)
{
	bool never = false;

	(void)run_until(event, &never, ms * SL_MS);
}

static void settle(void)
{
	if (!run_while(event, is_current, NULL, 15 * SL_S))
		fail_msg("not current: %s", sl_kube_publisher_trouble(publisher));
	pause_ms(100);
	assert_true(sl_kube_publisher_is_current(publisher));
	assert_string_equal(sl_kube_publisher_trouble(publisher), "");
}

/* Generation and number of devices of what the server has: "1/2"; "-" without it. */
static void want(const char *words)
{
	json_t *slice;
	char got[64] = "-";

	server_lock();
	slice = json_object_get(store.slices, OURS);
	if (slice)
		(void)snprintf(got, sizeof(got), "%lld/%zu",
			(long long)json_integer_value(
				sl_kube_at(slice, "spec", "pool", "generation", NULL)),
			json_array_size(sl_kube_at(slice, "spec", "devices", NULL)));
	server_unlock();
	assert_string_equal(got, words);
}

static unsigned int writes(void)
{
	return server_count("POST", SLICES) + server_count("PUT", SLICES "/" OURS) +
	       server_count("DELETE", SLICES "/" OURS);
}

/* A slice of ours by another hand. */
static json_t *slice_of(const char *name, const char *driver, const char *node)
{
	return json_pack("{sss{ss}s{ssss}}", "kind", "ResourceSlice", "metadata", "name",
		name, "spec", "driver", driver, "nodeName", node);
}

static void it_is_created(void **state)
{
	json_t *owner;

	start();
	settle();
	want("1/1");
	server_lock();
	owner = json_array_get(sl_kube_at(json_object_get(store.slices, OURS), "metadata",
				       "ownerReferences", NULL),
		0);
	assert_string_equal(sl_kube_text_at(owner, "uid", NULL), "n-7");
	assert_string_equal(sl_kube_text_at(owner, "kind", NULL), "Node");
	assert_string_equal(sl_kube_text_at(owner, "apiVersion", NULL), "v1");
	server_unlock();
	/* An unchanged object is no news. */
	set(1);
	pause_ms(200);
	assert_int_equal(writes(), 1);
}

static void one_that_is_right_stays(void **state)
{
	start();
	settle();
	publisher = sl_kube_publisher_free(publisher);
	start();
	settle();
	assert_int_equal(writes(), 1);
	want("1/1");
	/* With another inventory it is updated. */
	set(2);
	settle();
	assert_int_equal(server_count("PUT", SLICES "/" OURS), 1);
	want("2/2");
	set(0);
	settle();
	want("3/0");
}

static void deleted_ones_come_back(void **state)
{
	start();
	settle();
	server_lock();
	drop(OURS);
	server_unlock();
	pause_ms(100);
	assert_false(sl_kube_publisher_is_current(publisher));
	settle();
	want("2/1");
	assert_int_equal(server_count("POST", SLICES), 2);
}

static void changed_ones_are_set_right(void **state)
{
	json_t *slice;

	start();
	settle();
	server_lock();
	slice = json_deep_copy(json_object_get(store.slices, OURS));
	(void)json_object_set_new(
		json_object_get(slice, "spec"), "devices", json_array());
	(void)json_object_set_new(
		sl_kube_at(slice, "spec", "pool", NULL), "generation", json_integer(40));
	put(slice, false);
	server_unlock();
	pause_ms(100);
	assert_false(sl_kube_publisher_is_current(publisher));
	settle();
	want("41/1");
}

static void a_fight_is_fought_slowly(void **state)
{
	sl_ns end;

	start();
	settle();
	end = sl_clock_now() + 4 * SL_S;
	while (sl_clock_now() < end) {
		server_lock();
		if (json_object_get(store.slices, OURS))
			drop(OURS);
		server_unlock();
		pause_ms(20);
	}
	/* After 1 and 2 s more; the next is due after 7. */
	assert_in_range(server_count("POST", SLICES), 3, 3);
}

static void strays_are_deleted(void **state)
{
	server_lock();
	put(slice_of("old", SL_KUBE_DRIVER, "node1"), true);
	put(slice_of("another-drivers", "gpu.nvidia.com", "node1"), true);
	/* A server that does not select is no reason to delete foreign slices. */
	put(slice_of("another-nodes", SL_KUBE_DRIVER, "node2"), true);
	server_unlock();
	start();
	settle();
	want("1/1");
	server_lock();
	assert_int_equal(json_object_size(store.slices), 3);
	assert_null(json_object_get(store.slices, "old"));
	put(slice_of("new", SL_KUBE_DRIVER, "node1"), true);
	put(slice_of("newer", SL_KUBE_DRIVER, "node1"), true);
	server_unlock();
	pause_ms(300);
	assert_int_equal(json_object_size(store.slices), 3);
}

static void namesakes_make_room(void **state)
{
	server_lock();
	put(slice_of(OURS, "gpu.nvidia.com", "node1"), true);
	server_unlock();
	start();
	settle();
	want("1/1");
}

static bool is_forbidden(void *context)
{
	return strstr(sl_kube_publisher_trouble(publisher), "403 Forbidden") != NULL;
}

static void failures_are_tried_again(void **state)
{
	store.has_node = false;
	start();
	pause_ms(300);
	want("-");
	assert_non_null(strstr(sl_kube_publisher_trouble(publisher), "404 NotFound"));
	server_lock();
	store.has_node = true;
	store.conflicts = 1;
	server_unlock();
	settle();
	want("1/1");
	server_lock();
	store.is_read_only = true;
	server_unlock();
	set(2);
	assert_true(run_while(event, is_forbidden, NULL, 12 * SL_S));
	assert_false(sl_kube_publisher_is_current(publisher));
}

static bool is_put_again(void *context)
{
	return server_count("PUT", SLICES "/" OURS) == 2;
}

/* Versions go back, and writes since the backup are gone. */
static void a_restored_etcd_is_written_to(void **state)
{
	json_t *backup;

	start();
	settle();
	server_lock();
	backup = json_deep_copy(json_object_get(store.slices, OURS));
	server_unlock();
	set(2);
	settle();
	want("2/2");
	server_lock();
	set_meta(backup, "resourceVersion", "7");
	(void)json_object_set_new(store.slices, OURS, backup);
	(void)json_array_clear(store.changes);
	store.version = 7;
	stream_end(true);
	server_unlock();
	assert_true(run_while(event, is_put_again, NULL, 12 * SL_S));
	settle();
	want("3/2");
}

static void what_the_server_drops_is_not_fought_for(void **state)
{
	store.drops_policies = true;
	start();
	settle();
	pause_ms(500);
	assert_int_equal(writes(), 1);
	server_lock();
	drop(OURS);
	server_unlock();
	pause_ms(100);
	settle();
	assert_int_equal(writes(), 2);
	set(2);
	settle();
	assert_int_equal(writes(), 3);
	want("3/2");
}

static void what_changes_meanwhile_is_written(void **state)
{
	start();
	set(2);
	settle();
	want("1/2");
	assert_int_equal(writes(), 1);
	/* The first makes a call, which the second finds under way. */
	set(1);
	set(0);
	settle();
	want("2/0");
	assert_int_equal(writes(), 2);
	assert_int_equal(sl_kube_publisher_set(
				 publisher, &(struct sl_kube_inventory){.gpus = gpus,
						    .gpu_count = SL_KUBE_GPUS_MAX + 1}),
		-E2BIG);
	settle();
	want("2/0");
}

static void bad_names(void **state)
{
	assert_int_equal(sl_kube_publisher_new(&publisher, kube, "a/b"), -EINVAL);
	assert_null(publisher);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_is_created),
		TEST(one_that_is_right_stays),
		TEST(deleted_ones_come_back),
		TEST(changed_ones_are_set_right),
		TEST(a_fight_is_fought_slowly),
		TEST(strays_are_deleted),
		TEST(namesakes_make_room),
		TEST(failures_are_tried_again),
		TEST(a_restored_etcd_is_written_to),
		TEST(what_the_server_drops_is_not_fought_for),
		TEST(what_changes_meanwhile_is_written),
		TEST(bad_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
