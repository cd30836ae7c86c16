/* Events on pods: few, right, and going on where an earlier driver ended. */
#include "../server.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster/kubernetes/claims/told.h"

#define EVENTS "/api/v1/namespaces/team/events"
#define PAUSE  (50 * SL_MS)

/* An API server of Events. */
static struct {
	json_t *events; /* by name */
	unsigned int writes, busy, refused;
} store;

static sd_event *event;
static struct sl_kube *kube;
static struct sl_kube_teller *teller;

static void refuse(struct exchange *x, unsigned int status, const char *reason)
{
	x->status = status;
	x->text = text(
		"{\"kind\":\"Status\",\"reason\":\"%s\",\"message\":\"no\"}", reason);
}

static void serve_post(struct exchange *x)
{
	json_t *body = json_loads(x->body, 0, NULL);
	const char *name = sl_kube_text_at(body, "metadata", "name", NULL);

	if (json_object_get(store.events, name)) {
		refuse(x, 409, "AlreadyExists");
	} else {
		store.writes++;
		(void)json_object_set(store.events, name, body);
		x->text = json_dumps(body, 0);
	}
	json_decref(body);
}

static void serve_one(struct exchange *x, const char *name)
{
	json_t *found = json_object_get(store.events, name);

	if (!found) {
		refuse(x, 404, "NotFound");
		return;
	}
	if (strcmp(x->method, "PATCH") == 0) {
		json_t *body = json_loads(x->body, 0, NULL);

		assert_string_equal(x->content_type, "application/merge-patch+json");
		store.writes++;
		(void)json_object_update_recursive(found, body);
		json_decref(body);
	}
	x->text = json_dumps(found, 0);
}

static void serve(struct exchange *x)
{
	if (store.busy) {
		store.busy--;
		store.refused++;
		refuse(x, 429, "TooManyRequests");
	} else if (strcmp(x->path, EVENTS) == 0) {
		serve_post(x);
	} else {
		assert_memory_equal(x->path, EVENTS "/", strlen(EVENTS) + 1);
		serve_one(x, x->path + strlen(EVENTS) + 1);
	}
}

static void start(void)
{
	struct sl_kube_config config = server_config();

	assert_true(sd_event_new(&event) >= 0);
	assert_int_equal(sl_kube_new(&kube, event, &config), 0);
	assert_int_equal(sl_kube_teller_new(&teller, event, kube, "node1", PAUSE), 0);
}

static void stop(void)
{
	teller = sl_kube_teller_free(teller);
	kube = sl_kube_free(kube);
	event = sd_event_unref(event);
}

static int set_up(void **state)
{
	memset(&store, 0, sizeof(store));
	store.events = json_object();
	server_start(serve);
	start();
	return 0;
}

static int tear_down(void **state)
{
	stop();
	server_stop();
	json_decref(store.events);
	return 0;
}

static void tell(const char *pod, const char *message, uint64_t serial, bool is_earlier)
{
	sl_kube_teller_tell(teller, &(struct sl_kube_told){.namespace = "team",
					    .pod = pod,
					    .uid = "u-1",
					    .reason = "SwappedOut",
					    .message = message,
					    .is_earlier = is_earlier,
					    .serial = serial,
					    .realtime_ms = 1000 * serial});
}

static json_t *only(void)
{
	assert_int_equal(json_object_size(store.events), 1);
	return json_object_iter_value(json_object_iter(store.events));
}

/* "COUNT MESSAGE SERIAL" of the only Event. */
static bool is_so(void *context)
{
	char got[256] = "";

	server_lock();
	if (json_object_size(store.events) == 1)
		(void)snprintf(got, sizeof(got), "%lld %s %s",
			(long long)json_integer_value(json_object_get(only(), "count")),
			sl_kube_text_at(only(), "message", NULL),
			sl_kube_text_at(only(), "metadata", "annotations",
				"sluice.dev/serial", NULL));
	server_unlock();
	return strcmp(got, context) == 0;
}

static void want(const char *words)
{
	if (!run_while(event, is_so, (void *)words, 20 * SL_S))
		fail_msg("it never is '%s'", words);
}

static void it_is_made_whole(void **state)
{
	tell("p", "moved", 7, false);
	want("1 moved 7");
	server_lock();
	assert_string_equal(
		sl_kube_text_at(only(), "involvedObject", "kind", NULL), "Pod");
	assert_string_equal(
		sl_kube_text_at(only(), "involvedObject", "uid", NULL), "u-1");
	assert_string_equal(sl_kube_text_at(only(), "reason", NULL), "SwappedOut");
	assert_string_equal(sl_kube_text_at(only(), "type", NULL), "Normal");
	assert_string_equal(
		sl_kube_text_at(only(), "source", "component", NULL), "sluice");
	assert_string_equal(
		sl_kube_text_at(only(), "lastTimestamp", NULL), "1970-01-01T00:00:07Z");
	server_unlock();
}

/* However often it happens it is one Event, and few writes. */
static void a_flood_is_one_event(void **state)
{
	sl_ns from = sl_clock_now();
	bool never = false;

	for (uint64_t i = 1; i <= 200; i++) {
		tell("p", i == 200 ? "last" : "m", i, false);
		(void)run_until(event, &never, SL_MS);
	}
	want("200 last 200");
	if (store.writes > 2 + (sl_clock_now() - from) / PAUSE)
		fail_msg("%u writes", store.writes);
	assert_string_equal(
		sl_kube_text_at(only(), "firstTimestamp", NULL), "1970-01-01T00:00:01Z");
}

static void it_goes_on_after_a_restart(void **state)
{
	tell("p", "a", 1, false);
	tell("p", "b", 2, false);
	want("2 b 2");
	stop();
	start();
	/* The new driver reads again what the daemon kept. */
	tell("p", "a", 1, true);
	tell("p", "b", 2, true);
	store.writes = 0;
	tell("p", "c", 3, false);
	want("3 c 3");
	stop();
	start();
	tell("p", "c", 3, true);
	store.writes = 0;
	(void)run_while(event, is_so, (void *)"never", 10 * PAUSE);
	assert_int_equal(store.writes, 0);
	tell("p", "d", 4, false);
	want("4 d 4");
}

/* Events live for an hour. */
static void one_that_is_gone_is_made_again(void **state)
{
	tell("p", "a", 1, false);
	want("1 a 1");
	server_lock();
	(void)json_object_clear(store.events);
	server_unlock();
	tell("p", "b", 2, false);
	want("2 b 2");
}

static void a_busy_server_is_asked_again(void **state)
{
	store.busy = 1;
	tell("p", "a", 1, false);
	want("1 a 1");
	assert_int_equal(store.refused, 1);
}

static void names_of_any_length(void **state)
{
	char longest[254], dashes[254];
	const char *name;

	memset(longest, 'a', 253);
	longest[253] = '\0';
	tell(longest, "a", 1, false);
	want("1 a 1");
	name = sl_kube_text_at(only(), "metadata", "name", NULL);
	assert_int_equal(strlen(name), 253);
	(void)json_object_clear(store.events);
	/* No part of a name may end with a dash. */
	memset(dashes, '-', 253);
	memset(dashes, 'b', 200);
	dashes[252] = 'b';
	dashes[253] = '\0';
	sl_kube_teller_forget(teller, "u-1");
	tell(dashes, "a", 1, false);
	want("1 a 1");
	name = sl_kube_text_at(only(), "metadata", "name", NULL);
	assert_int_equal(strlen(name), 200 + 17);
	assert_int_equal(name[200], '.');
}

static void a_pod_that_is_gone_is_told_nothing(void **state)
{
	store.busy = 1;
	tell("p", "a", 1, false);
	sl_kube_teller_forget(teller, "u-1");
	(void)run_while(event, is_so, (void *)"never", 10 * PAUSE);
	assert_int_equal(store.writes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_is_made_whole),
		TEST(a_flood_is_one_event),
		TEST(it_goes_on_after_a_restart),
		TEST(one_that_is_gone_is_made_again),
		TEST(a_busy_server_is_asked_again),
		TEST(names_of_any_length),
		TEST(a_pod_that_is_gone_is_told_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
