/* The device plugin's service, as the kubelet calls it, and what the kubelet is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "../caller.h"
#include "cluster/kubernetes/node/device_plugin.h"
#include "cluster/kubernetes/api/grpc_ask.h"
#include "cluster/kubernetes/node/holders.h"
#include "cluster/kubernetes/api/parse.h"

#define SERVICE "/v1beta1.DevicePlugin/"
#define A       "GPU-fef8089b-4820-abfc-e83e-94318197576e"
#define B       "GPU-00000000-4820-abfc-e83e-94318197576e"
#define KEY_A   "m-fef8089b4820abfce83e94318197576e"

static struct {
	sd_event *loop;
	struct sl_device_plugin *plugin;
	struct sl_grpc *kubelet;
	struct sl_grpc_ask *ask;
	char folder[40], registration[128], path[128], pods[128];
	char key[SL_UNITS_KEY_MAX];
	struct sl_grpc_call *started;
	bool registered, refuses;
	/* The kubelet's answers, and the results. */
	struct sl_proto_out list;
	struct sl_holders holders;
	bool silent, answered, is_list;
	char trouble[SL_ERROR_TEXT_MAX];
} t;

static bool on_allocate(void *context, const struct sl_units_gpu *gpu,
	struct sl_proto_out *out, struct sl_error *err)
{
	char key[SL_UNITS_KEY_MAX];

	if (t.refuses) {
		sl_error_set(err, "the path is too long");
		return false;
	}
	sl_proto_put_text(out, 1, sl_units_key(gpu, key));
	return true;
}

static void on_start(void *context, const char *key, struct sl_grpc_call *call)
{
	(void)snprintf(t.key, sizeof(t.key), "%s", key);
	t.started = call;
}

static void on_registered(void *context, const struct sl_error *err)
{
	t.registered = !err;
}

static int setup(void **state)
{
	const struct sl_device_plugin_handler handler = {
		NULL, on_allocate, on_start, on_registered};
	struct sl_error err = {0};

	memset(&t, 0, sizeof(t));
	strcpy(t.folder, "/tmp/sluice-plugin-XXXXXX");
	assert_non_null(mkdtemp(t.folder));
	(void)snprintf(t.registration, sizeof(t.registration),
		"%s/plugins_registry/memory.sluice.dev-reg.sock", t.folder);
	(void)snprintf(t.path, sizeof(t.path), "%s/plugins/memory.sluice.dev/plugin.sock",
		t.folder);
	(void)snprintf(t.pods, sizeof(t.pods), "%s/kubelet.sock", t.folder);
	assert_true(sd_event_new(&t.loop) >= 0);
	if (sl_device_plugin_new(t.loop, t.folder, &handler, &t.plugin, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int teardown(void **state)
{
	char command[80];

	t.plugin = sl_device_plugin_free(t.plugin);
	t.kubelet = sl_grpc_free(t.kubelet);
	sl_grpc_ask_cancel(&t.ask);
	sl_proto_fini(&t.list);
	sl_holders_fini(&t.holders);
	t.loop = sd_event_unref(t.loop);
	(void)snprintf(command, sizeof(command), "rm -rf %s", t.folder);
	return system(command);
}

static bool has(const struct caller_call *call, const char *text)
{
	return memmem(call->answer, call->size, text, strlen(text)) != NULL;
}

static void put_ids(struct sl_proto_out *out, uint32_t field, const char *uuid,
	uint32_t from, uint32_t count)
{
	char id[SL_UNITS_ID_MAX];

	for (uint32_t i = from; i < from + count; i++)
		sl_proto_put_text(out, field, sl_units_id(uuid, i, id));
}

/* One container's request. */
static struct caller_call *ask_for(struct caller *caller, const char *method,
	uint32_t of_a, uint32_t of_b, uint32_t count)
{
	struct sl_proto_out out = {0}, inner = {0};
	struct caller_call *call;

	put_ids(&inner, 1, A, 0, of_a);
	put_ids(&inner, 1, B, 0, of_b);
	if (count)
		sl_proto_put_number(&inner, 3, count);
	sl_proto_put_message(&out, 1, &inner);
	call = caller_begin(caller, method, out.data, out.size, false);
	caller_wait(caller, call);
	sl_proto_fini(&out);
	return call;
}

static void what_it_is(void **state)
{
	struct caller caller;
	struct caller_call *call;

	caller_open(&caller, t.loop, t.registration);
	call = caller_begin(
		&caller, "/pluginregistration.Registration/GetInfo", "", 0, false);
	caller_wait(&caller, call);
	assert_true(has(call, "DevicePlugin") && has(call, "sluice.dev/memory"));
	assert_true(has(call, t.path) && has(call, "v1beta1"));
	call = caller_begin(&caller,
		"/pluginregistration.Registration/NotifyRegistrationStatus", "\x08\x01",
		2, false);
	caller_wait(&caller, call);
	assert_true(t.registered);
	caller_close(&caller);
	caller_open(&caller, t.loop, t.path);
	call = caller_begin(&caller, SERVICE "GetDevicePluginOptions", "", 0, false);
	caller_wait(&caller, call);
	assert_int_equal(call->size, 4);
	assert_memory_equal(call->answer, "\x08\x01\x10\x01", 4);
	call = caller_begin(&caller, SERVICE "More", "", 0, false);
	caller_wait(&caller, call);
	assert_int_equal(call->status, SL_GRPC_UNIMPLEMENTED);
	caller_close(&caller);
}

static void units_are_listed(void **state)
{
	struct sl_device_plugin_gpu gpus[] = {{A, 2, true}, {B, 1, false}};
	struct caller caller;
	struct caller_call *call;
	size_t size;

	caller_open(&caller, t.loop, t.path);
	call = caller_begin(&caller, SERVICE "ListAndWatch", "", 0, false);
	sl_device_plugin_tell(t.plugin, gpus, 2);
	caller_wait_for(&caller, call, 5);
	assert_true(has(call, A "-0\x12\x07Healthy") && has(call, A "-1\x12\x07Healthy"));
	assert_true(has(call, B "-0\x12\x09Unhealthy"));
	assert_false(has(call, A "-2"));
	size = call->size;
	sl_device_plugin_tell(t.plugin, gpus, 2);
	for (int i = 0; i < 20; i++)
		caller_turn(&caller);
	assert_int_equal(call->size, size);
	gpus[1].is_well = true;
	sl_device_plugin_tell(t.plugin, gpus, 2);
	caller_wait_for(&caller, call, size);
	assert_true(has(call, B "-0\x12\x07Healthy"));
	caller_close(&caller);
}

static void units_are_handed_out(void **state)
{
	struct caller caller;
	struct caller_call *call;

	caller_open(&caller, t.loop, t.path);
	call = ask_for(&caller, SERVICE "GetPreferredAllocation", 3, 6, 4);
	assert_int_equal(call->status, SL_GRPC_OK);
	assert_true(has(call, B "-0") && has(call, B "-3"));
	assert_false(has(call, B "-4") || has(call, A));
	call = ask_for(&caller, SERVICE "GetPreferredAllocation", 3, 3, 4);
	assert_int_equal(call->status, SL_GRPC_INVALID_ARGUMENT);
	assert_non_null(strstr(call->text, "ask for fewer"));
	call = ask_for(&caller, SERVICE "Allocate", 4, 0, 0);
	assert_int_equal(call->status, SL_GRPC_OK);
	assert_true(has(call, KEY_A "-0-4"));
	call = ask_for(&caller, SERVICE "Allocate", 2, 2, 0);
	assert_int_equal(call->status, SL_GRPC_INVALID_ARGUMENT);
	assert_non_null(strstr(call->text, "2 GPUs"));
	t.refuses = true;
	call = ask_for(&caller, SERVICE "Allocate", 4, 0, 0);
	assert_non_null(strstr(call->text, "the path is too long"));
	call = caller_begin(&caller, SERVICE "Allocate", "\x0a\x04\x0a\x02no", 6, false);
	caller_wait(&caller, call);
	assert_non_null(strstr(call->text, "not ours"));
	call = caller_begin(&caller, SERVICE "Allocate", "\x0a", 1, false);
	caller_wait(&caller, call);
	assert_int_equal(call->status, SL_GRPC_INVALID_ARGUMENT);
	caller_close(&caller);
}

static void a_container_starts(void **state)
{
	struct sl_proto_out out = {0};
	struct caller caller;
	struct caller_call *call;

	put_ids(&out, 1, A, 7, 2);
	caller_open(&caller, t.loop, t.path);
	call = caller_begin(
		&caller, SERVICE "PreStartContainer", out.data, out.size, false);
	while (!t.started)
		caller_turn(&caller);
	assert_string_equal(t.key, KEY_A "-7-2");
	sl_grpc_answer(t.started, NULL, 0);
	caller_wait(&caller, call);
	assert_int_equal(call->status, SL_GRPC_OK);
	put_ids(&out, 1, B, 7, 1);
	call = caller_begin(
		&caller, SERVICE "PreStartContainer", out.data, out.size, false);
	caller_wait(&caller, call);
	assert_int_equal(call->status, SL_GRPC_INVALID_ARGUMENT);
	sl_proto_fini(&out);
	caller_close(&caller);
}

/* --- asking the kubelet ------------------------------------------------------------------- */

static void on_kubelet(void *context, struct sl_grpc_call *call, const char *method,
	const uint8_t *message, size_t size)
{
	if (t.silent) {
		t.started = call;
		return;
	}
	if (strcmp(method, SL_HOLDERS_METHOD) == 0)
		sl_grpc_answer(call, t.list.data, t.list.size);
	else
		sl_grpc_refuse(call, SL_GRPC_UNIMPLEMENTED, "no such method");
}

static void on_answer(
	void *context, const uint8_t *message, size_t size, const struct sl_error *err)
{
	assert_null(t.ask);
	t.answered = true;
	if (err)
		strcpy(t.trouble, err->text);
	else
		t.is_list = sl_holders_read(&t.holders, message, size);
}

static void ask_kubelet(const char *method)
{
	sl_ns end = sl_clock_now() + 20 * SL_S;
	struct sl_error err = {0};

	t.answered = t.is_list = false;
	t.trouble[0] = '\0';
	sl_holders_fini(&t.holders);
	assert_int_equal(sl_grpc_ask(t.loop, t.pods, method, NULL, 0, on_answer, NULL,
				 &t.ask, &err),
		0);
	assert_non_null(t.ask);
	while (!t.answered) {
		assert_true(sl_clock_now() < end);
		assert_true(sd_event_run(t.loop, 10000) >= 0);
		if (t.silent && t.started)
			t.kubelet = sl_grpc_free(t.kubelet);
	}
}

static void start_kubelet(void)
{
	struct sl_error err = {0};

	assert_int_equal(
		sl_grpc_new(t.loop, t.pods, on_kubelet, NULL, &t.kubelet, &err), 0);
}

static void put_container(struct sl_proto_out *pod, const char *resource,
	const char *uuid, uint32_t from, uint32_t count)
{
	struct sl_proto_out container = {0}, devices = {0};

	sl_proto_put_text(&container, 1, "main");
	sl_proto_put_text(&devices, 1, resource);
	put_ids(&devices, 2, uuid, from, count);
	sl_proto_put_message(&container, 2, &devices);
	sl_proto_put_message(pod, 3, &container);
}

static void put_pod(const char *name, struct sl_proto_out *pod)
{
	sl_proto_put_text(pod, 1, name);
	sl_proto_put_text(pod, 2, "team");
	sl_proto_put_message(&t.list, 1, pod);
}

static void containers_have_units(void **state)
{
	struct sl_proto_out pod = {0};
	const struct sl_holder *holder;

	start_kubelet();
	put_container(&pod, "sluice.dev/memory", A, 2, 3);
	put_container(&pod, "sluice.dev/memory", B, 0, 1);
	put_pod("web-0", &pod);
	put_container(&pod, "example.com/other", A, 9, 1);
	put_pod("other", &pod);
	/* 200 kB and more do not fit into one window of HTTP/2. */
	put_container(&pod, "sluice.dev/memory", B, 100, 3900);
	put_pod("large", &pod);
	ask_kubelet(SL_HOLDERS_METHOD);
	assert_string_equal(t.trouble, "");
	assert_true(t.is_list);
	assert_int_equal(t.holders.count, 3);
	holder = sl_holders_find(&t.holders, KEY_A "-2-3");
	assert_non_null(holder);
	assert_string_equal(holder->uuid, A);
	assert_string_equal(holder->pod, "web-0");
	assert_string_equal(holder->namespace, "team");
	assert_int_equal(holder->memory, 3 * SL_UNIT_BYTES);
	assert_int_equal(t.holders.all[2].memory, 3900 * SL_UNIT_BYTES);
	assert_null(sl_holders_find(&t.holders, KEY_A "-9-1"));
	ask_kubelet("/None");
	assert_non_null(strstr(t.trouble, "no such method"));
	sl_proto_fini(&t.list);
	sl_proto_put_bytes(&t.list, 1, "\x0a\x05", 2);
	ask_kubelet(SL_HOLDERS_METHOD);
	assert_true(t.answered && !t.is_list);
	t.silent = true;
	ask_kubelet(SL_HOLDERS_METHOD);
	assert_non_null(strstr(t.trouble, "the connection is lost"));
	sl_grpc_refuse(t.started, SL_GRPC_UNAVAILABLE, "");
}

static bool meet(const char *text)
{
	char *copy = strdup(text);
	json_t *pods = sl_kube_parse(copy, strlen(copy));
	bool complete;

	assert_non_null(pods);
	complete = sl_holders_meet(&t.holders, pods);
	json_decref(pods);
	free(copy);
	return complete;
}

#define POD_OF(name, annotations, phase, units)                         \
	"{\"metadata\":{\"name\":\"" name                               \
	"\",\"namespace\":\"team\",\"annotations\":{" annotations       \
	"}},\"spec\":{\"containers\":[{\"name\":\"x\"},{\"resources\":" \
	"{\"limits\":{\"sluice.dev/memory\":" units                     \
	"}}}]},\"status\":{\"phase\":\"" phase "\"}}"
#define POD(name, annotations, phase) POD_OF(name, annotations, phase, "\"3\"")
#define LIMIT(text)                   "\"sluice.dev/limit\":\"" text "\""

static void pods_add_what_their_owners_wrote(void **state)
{
	struct sl_proto_out pod = {0};
	const struct sl_holder *holder;

	put_container(&pod, "sluice.dev/memory", A, 2, 3);
	put_pod("web-0", &pod);
	assert_true(sl_holders_read(&t.holders, t.list.data, t.list.size));
	holder = t.holders.all;
	assert_false(holder->has_pod);
	/* A pod that is missing in the kubelet's list; unless it is over. */
	assert_false(meet("{\"items\":[" POD("gone", "", "Running") "]}"));
	assert_false(holder->has_pod);
	/* The kubelet never has units for a pod that asks for 0 of them. */
	assert_true(meet("{\"items\":[" POD_OF("none", "", "Running", "\"0\"") "]}"));
	assert_false(meet("{\"items\":[" POD_OF("odd", "", "Running", "3") "]}"));
	assert_true(meet("{\"items\":[" POD("gone", "", "Failed") "]}"));
	assert_true(meet("{\"items\":[" POD("gone", "", "Succeeded") "," POD(
		"web-0", "", "Pending") "]}"));
	assert_true(holder->has_pod);
	assert_string_equal(holder->limit, "");
	assert_true(meet("{\"items\":[" POD("web-0", LIMIT("2Gi"), "Running") "]}"));
	assert_string_equal(holder->limit, "2Gi");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(units_are_listed, setup, teardown),
		cmocka_unit_test_setup_teardown(units_are_handed_out, setup, teardown),
		cmocka_unit_test_setup_teardown(a_container_starts, setup, teardown),
		cmocka_unit_test_setup_teardown(containers_have_units, setup, teardown),
		cmocka_unit_test_setup_teardown(
			pods_add_what_their_owners_wrote, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
