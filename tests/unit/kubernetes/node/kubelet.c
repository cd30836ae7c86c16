/* The kubelet's two services: our registration, and claims one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../caller.h"
#include "cluster/kubernetes/api/grpc.h"
#include "cluster/kubernetes/node/kubelet.h"
#include "cluster/kubernetes/api/proto.h"

#define DRA "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"

static struct {
	sd_event *loop;
	struct sl_kubelet *kubelet;
	char folder[40], registration[128], plugin[128];
	struct sl_kubelet_claim claims[8];
	struct sl_kubelet_work *works[8];
	size_t count;
	bool unprepares, registered, refused;
} t;

static void take(const struct sl_kubelet_claim *claim, struct sl_kubelet_work *work)
{
	t.claims[t.count] = *claim;
	t.works[t.count++] = work;
}

static void on_prepare(
	void *context, const struct sl_kubelet_claim *claim, struct sl_kubelet_work *work)
{
	take(claim, work);
}

static void on_unprepare(
	void *context, const struct sl_kubelet_claim *claim, struct sl_kubelet_work *work)
{
	t.unprepares = true;
	take(claim, work);
}

static void on_registered(void *context, const struct sl_error *err)
{
	t.registered = !err;
	t.refused = err && strstr(err->text, "too old");
}

static int setup(void **state)
{
	const struct sl_kubelet_handler handler = {
		NULL, on_prepare, on_unprepare, on_registered};
	struct sl_error err = {0};

	memset(&t, 0, sizeof(t));
	strcpy(t.folder, "/tmp/sluice-kubelet-XXXXXX");
	assert_non_null(mkdtemp(t.folder));
	(void)snprintf(t.registration, sizeof(t.registration),
		"%s/plugins_registry/gpu.sluice.dev-reg.sock", t.folder);
	(void)snprintf(t.plugin, sizeof(t.plugin), "%s/plugins/gpu.sluice.dev/dra.sock",
		t.folder);
	assert_true(sd_event_new(&t.loop) >= 0);
	if (sl_kubelet_new(
		    t.loop, t.folder, "gpu.sluice.dev", &handler, &t.kubelet, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int teardown(void **state)
{
	char command[80];

	t.kubelet = sl_kubelet_free(t.kubelet);
	t.loop = sd_event_unref(t.loop);
	(void)snprintf(command, sizeof(command), "rm -rf %s", t.folder);
	return system(command);
}

static void put_claim(struct sl_proto_out *out, const char *uid)
{
	struct sl_proto_out claim = {0};

	sl_proto_put_text(&claim, 1, "team");
	sl_proto_put_text(&claim, 2, uid);
	sl_proto_put_text(&claim, 3, "claim");
	sl_proto_put_message(out, 1, &claim);
}

/* The bytes are somewhere in the answer, whose maps have no order. */
static bool has(const struct caller_call *call, const char *bytes, size_t size)
{
	return memmem(call->answer, call->size, bytes, size) != NULL;
}

static void says_who_it_is(void **state)
{
	struct caller caller;
	struct caller_call *call;

	caller_open(&caller, t.loop, t.registration);
	call = caller_begin(
		&caller, "/pluginregistration.Registration/GetInfo", "", 0, false);
	caller_wait(&caller, call);
	assert_int_equal(call->status, SL_GRPC_OK);
	assert_true(has(call,
		"\x0a\x09"
		"DRAPlugin"
		"\x12\x0e"
		"gpu.sluice.dev\x1a",
		28));
	assert_true(has(call, t.plugin, strlen(t.plugin)));
	assert_true(has(call,
		"\x22\x0c"
		"v1.DRAPlugin"
		"\x22\x14"
		"v1.DRAResourceHealth",
		36));
	call = caller_begin(&caller,
		"/pluginregistration.Registration/NotifyRegistrationStatus",
		"\x12\x07"
		"too old",
		9, false);
	caller_wait(&caller, call);
	assert_true(call->status == SL_GRPC_OK && t.refused && !t.registered);
	call = caller_begin(&caller,
		"/pluginregistration.Registration/NotifyRegistrationStatus", "\x08\x01",
		2, false);
	caller_wait(&caller, call);
	assert_true(call->status == SL_GRPC_OK && t.registered);
	call = caller_begin(&caller,
		"/pluginregistration.Registration/NotifyRegistrationStatus", "\x12", 1,
		false);
	caller_wait(&caller, call);
	assert_int_equal(call->status, SL_GRPC_INVALID_ARGUMENT);
	call = caller_begin(
		&caller, "/pluginregistration.Registration/More", "", 0, false);
	caller_wait(&caller, call);
	assert_int_equal(call->status, SL_GRPC_UNIMPLEMENTED);
	caller_close(&caller);
}

static void each_claim_has_its_answer(void **state)
{
	const struct sl_kubelet_device device = {
		"gpu", "node1", "gpu-a", {"sluice.dev/claim=u-0", "v/g=G"}, "s"};
	struct sl_error err = {.text = "no room"};
	struct sl_proto_out out = {0};
	struct caller caller;
	struct caller_call *call;

	put_claim(&out, "u-0");
	put_claim(&out, "u-1");
	caller_open(&caller, t.loop, t.plugin);
	call = caller_begin(
		&caller, DRA "NodePrepareResources", out.data, out.size, false);
	while (t.count < 2)
		caller_turn(&caller);
	assert_string_equal(t.claims[0].uid, "u-0");
	assert_string_equal(t.claims[1].uid, "u-1");
	assert_string_equal(t.claims[1].namespace, "team");
	assert_string_equal(t.claims[1].name, "claim");
	assert_false(t.unprepares);
	sl_kubelet_done(t.works[1], NULL, 0, &err);
	for (int i = 0; i < 10; i++)
		caller_turn(&caller);
	assert_false(call->over);
	sl_kubelet_done(t.works[0], &device, 1, NULL);
	caller_wait(&caller, call);
	assert_int_equal(call->status, SL_GRPC_OK);
	assert_true(has(call,
		"\x0a\x03"
		"u-1"
		"\x12\x09\x12\x07"
		"no room",
		16));
	assert_true(has(call,
		"\x0a\x03"
		"u-0"
		"\x12\x35\x0a\x33"
		"\x0a\x03"
		"gpu"
		"\x12\x05"
		"node1"
		"\x1a\x05"
		"gpu-a"
		"\x22\x14"
		"sluice.dev/claim=u-0"
		"\x22\x05"
		"v/g=G"
		"\x2a\x01"
		"s",
		60));
	sl_proto_fini(&out);
	caller_close(&caller);
}

static void unpreparing(void **state)
{
	struct sl_error err = {.text = "not now"};
	struct sl_proto_out out = {0};
	struct caller caller;
	struct caller_call *call;

	put_claim(&out, "u-0");
	caller_open(&caller, t.loop, t.plugin);
	call = caller_begin(
		&caller, DRA "NodeUnprepareResources", out.data, out.size, false);
	while (t.count < 1)
		caller_turn(&caller);
	assert_true(t.unprepares);
	sl_kubelet_done(t.works[0], NULL, 0, &err);
	caller_wait(&caller, call);
	assert_true(has(call,
		"\x0a\x03"
		"u-0"
		"\x12\x09\x0a\x07"
		"not now",
		16));
	call = caller_begin(
		&caller, DRA "NodeUnprepareResources", out.data, out.size, false);
	while (t.count < 2)
		caller_turn(&caller);
	sl_kubelet_done(t.works[1], NULL, 0, NULL);
	caller_wait(&caller, call);
	assert_int_equal(call->size, 9);
	assert_true(has(call,
		"\x0a\x07\x0a\x03"
		"u-0"
		"\x12\x00",
		9));
	sl_proto_fini(&out);
	caller_close(&caller);
}

static void no_claims_and_no_messages(void **state)
{
	static const char *const texts[] = {"\x0a", "\x08\x01", "\x0a\x02\x0a\x05",
		"\x0a\x05\x12\x03u-0" /* without a name */};
	struct caller caller;
	struct caller_call *call;

	caller_open(&caller, t.loop, t.plugin);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		call = caller_begin(&caller, DRA "NodePrepareResources", texts[i],
			strlen(texts[i]), false);
		caller_wait(&caller, call);
		assert_int_equal(call->status, SL_GRPC_INVALID_ARGUMENT);
	}
	call = caller_begin(&caller, DRA "NodePrepareResources", "", 0, false);
	caller_wait(&caller, call);
	assert_true(call->status == SL_GRPC_OK && call->size == 0);
	assert_int_equal(t.count, 0);
	caller_close(&caller);
}

static void health(void **state)
{
	static const struct sl_kubelet_health devices[] = {
		{"node1", "gpu-a", NULL}, {"node1", "gpu-b", "it is lost"}};
	struct caller caller;
	struct caller_call *call, *old;

	caller_open(&caller, t.loop, t.plugin);
	call = caller_begin(
		&caller, "/v1.DRAResourceHealth/NodeWatchResources", "", 0, false);
	sl_kubelet_tell_health(t.kubelet, devices, 1);
	caller_wait_for(&caller, call, 5);
	assert_true(has(call,
		"\x0a\x0e\x0a\x05"
		"node1"
		"\x12\x05"
		"gpu-a"
		"\x10\x01\x18",
		19));
	sl_kubelet_tell_health(t.kubelet, &devices[1], 1);
	caller_wait_for(&caller, call, 40);
	assert_true(has(call,
		"\x12\x05"
		"gpu-b"
		"\x10\x02\x18",
		10));
	assert_true(has(call,
		"\x2a\x0a"
		"it is lost",
		12));
	old = caller_begin(
		&caller, "/v1alpha1.DRAResourceHealth/NodeWatchResources", "", 0, false);
	caller_wait_for(&caller, old, 5);
	assert_true(has(old, "it is lost", 10));
	t.kubelet = sl_kubelet_free(t.kubelet);
	caller_close(&caller);
}

/* The driver ends before the claim is done. */
static void done_after_the_end(void **state)
{
	struct sl_proto_out out = {0};
	struct caller caller;

	put_claim(&out, "u-0");
	caller_open(&caller, t.loop, t.plugin);
	(void)caller_begin(
		&caller, DRA "NodePrepareResources", out.data, out.size, false);
	while (t.count < 1)
		caller_turn(&caller);
	t.kubelet = sl_kubelet_free(t.kubelet);
	sl_kubelet_done(t.works[0], NULL, 0, NULL);
	sl_proto_fini(&out);
	caller_close(&caller);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(says_who_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(
			each_claim_has_its_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(unpreparing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			no_claims_and_no_messages, setup, teardown),
		cmocka_unit_test_setup_teardown(done_after_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(health, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
