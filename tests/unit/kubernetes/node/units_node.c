/* Units of memory between a kubelet and an API server of the test's own, and a real sluiced. */
#include "../server.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../caller.h"
#include "cluster/kubernetes/api/grpc.h"
#include "cluster/kubernetes/node/holders.h"
#include "cluster/kubernetes/node/node.h"
#include "../../daemon/rig.h"

#define SERVICE "/v1beta1.DevicePlugin/"

static struct {
	struct rig rig;
	sd_event *loop;
	struct sl_kube_node *node;
	struct sl_grpc *kubelet;
	struct caller caller;
	char folder[40], uuid[SL_UNITS_UUID_MAX];
	struct sl_proto_out list; /* what the kubelet answers */
	/* Of the API server; under its lock. */
	char pods[4096], bounds[128];
	bool is_away;
} t;

static void on_kubelet(void *context, struct sl_grpc_call *call, const char *method,
	const uint8_t *message, size_t size)
{
	assert_string_equal(method, SL_HOLDERS_METHOD);
	sl_grpc_answer(call, t.list.data, t.list.size);
}

static void serve(struct exchange *x)
{
	if (strcmp(x->path, "/api/v1/namespaces/team") == 0)
		x->text = text("{\"metadata\":{\"annotations\":{%s}}}", t.bounds);
	else if (strcmp(x->path, "/api/v1/pods") != 0)
		x->text = text("{}");
	else if (query(x, "watch"))
		x->how = STREAM;
	else if (t.is_away)
		x->status = 503;
	else
		x->text =
			text("{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[%s]}",
				t.pods);
}

static void start_node(void)
{
	struct sl_kube_node_options options = {.name = "node1",
		.kubelet = t.folder,
		.cdi = t.folder,
		.library = "/nowhere/libsluice.so",
		.socket = t.rig.socket,
		.device_plugin = true};
	struct sl_error err = {0};
	char *config = text("apiVersion: v1\nkind: Config\ncurrent-context: k\n"
			    "clusters: [{name: k, cluster: {server: \"%s\", "
			    "certificate-authority: \"%s\"}}]\n"
			    "users: [{name: k, user: {token: secret}}]\n"
			    "contexts: [{name: k, context: {cluster: k, user: k}}]\n",
		server_url(), server_path("server.pem"));

	options.kubeconfig = server_file("config", config);
	free(config);
	if (sl_kube_node_new(t.loop, &options, &t.node, &err) < 0)
		fail_msg("%s", err.text);
}

/* The first unit that is listed names the GPU. */
static void find_gpu(void)
{
	struct caller_call *call =
		caller_begin(&t.caller, SERVICE "ListAndWatch", "", 0, false);
	const char *at, *end;

	caller_wait_for(&t.caller, call, 100);
	at = memmem(call->answer, call->size, "GPU-", 4);
	end = memmem(call->answer, call->size, "-0\x12", 3);
	assert_true(at && end && end - at < SL_UNITS_UUID_MAX);
	memcpy(t.uuid, at, (size_t)(end - at));
}

/* With a connection of the kubelet's to it, and its GPUs known. */
static void start_plugin(void)
{
	char path[128];

	start_node();
	(void)snprintf(
		path, sizeof(path), "%s/plugins/memory.sluice.dev/plugin.sock", t.folder);
	caller_open(&t.caller, t.loop, path);
	find_gpu();
}

static void stop_plugin(void)
{
	caller_close(&t.caller);
	t.node = sl_kube_node_free(t.node);
}

static int setup(void **state)
{
	struct sl_error err = {0};
	char path[128];

	memset(&t, 0, sizeof(t));
	rig_init(&t.rig, 1, 16 * RIG_GIB);
	rig_start(&t.rig, NULL);
	server_start(serve);
	assert_true(sd_event_new(&t.loop) >= 0);
	strcpy(t.folder, "/tmp/sluice-units-XXXXXX");
	assert_non_null(mkdtemp(t.folder));
	(void)snprintf(path, sizeof(path), "mkdir %s/pod-resources", t.folder);
	assert_int_equal(system(path), 0);
	(void)snprintf(path, sizeof(path), "%s/pod-resources/kubelet.sock", t.folder);
	assert_int_equal(
		sl_grpc_new(t.loop, path, on_kubelet, NULL, &t.kubelet, &err), 0);
	start_plugin();
	return 0;
}

static int teardown(void **state)
{
	char command[80];

	stop_plugin();
	t.kubelet = sl_grpc_free(t.kubelet);
	sl_proto_fini(&t.list);
	t.loop = sd_event_unref(t.loop);
	server_stop();
	rig_fini(&t.rig);
	(void)snprintf(command, sizeof(command), "rm -rf %s", t.folder);
	return system(command);
}

static void put_ids(struct sl_proto_out *out, uint32_t field, uint32_t from)
{
	char id[SL_UNITS_ID_MAX];

	for (uint32_t i = from; i < from + 4; i++)
		sl_proto_put_text(out, field, sl_units_id(t.uuid, i, id));
}

/* The kubelet has a pod of team with four units. */
static void kubelet_has(const char *name, uint32_t from)
{
	struct sl_proto_out pod = {0}, container = {0}, devices = {0};

	sl_proto_put_text(&devices, 1, "sluice.dev/memory");
	put_ids(&devices, 2, from);
	sl_proto_put_message(&container, 2, &devices);
	sl_proto_put_text(&pod, 1, name);
	sl_proto_put_text(&pod, 2, "team");
	sl_proto_put_message(&pod, 3, &container);
	sl_proto_put_message(&t.list, 1, &pod);
}

/* The API server has it, too, with such a limit. */
static void server_has(const char *name, const char *limit)
{
	server_lock();
	(void)snprintf(t.pods + strlen(t.pods), sizeof(t.pods) - strlen(t.pods),
		"%s{\"metadata\":{\"name\":\"%s\",\"namespace\":\"team\",\"uid\":\"%s\","
		"\"annotations\":{\"sluice.dev/limit\":\"%s\"}},\"spec\":{\"containers\":"
		"[{\"resources\":{\"limits\":{\"sluice.dev/memory\":\"4\"}}}]},"
		"\"status\":{\"phase\":\"Running\"}}",
		t.pods[0] ? "," : "", name, name, limit);
	server_unlock();
}

static void server_is_away(bool is_away)
{
	server_lock();
	t.is_away = is_away;
	server_unlock();
}

static void nothing_is_there(void)
{
	sl_proto_fini(&t.list);
	server_lock();
	t.pods[0] = '\0';
	server_unlock();
}

static struct caller_call *call_with(const char *method, uint32_t from, bool nested)
{
	struct sl_proto_out ids = {0}, out = {0};
	struct caller_call *call;

	put_ids(&ids, 1, from);
	if (nested)
		sl_proto_put_message(&out, 1, &ids);
	else
		out = ids;
	call = caller_begin(&t.caller, method, out.data, out.size, false);
	caller_wait(&t.caller, call);
	sl_proto_fini(&out);
	return call;
}

static const struct caller_call *start(uint32_t from)
{
	return call_with(SERVICE "PreStartContainer", from, false);
}

static const char *folder_of(uint32_t from, char *buf, size_t size)
{
	char bare[SL_UNITS_UUID_MAX];
	size_t used = 0;

	for (const char *c = t.uuid + 4; *c; c++) {
		if (*c != '-')
			bare[used++] = *c;
	}
	bare[used] = '\0';
	(void)snprintf(buf, size, "%.*s/entries/m-%s-%u-4",
		(int)(strrchr(t.rig.socket, '/') - t.rig.socket), t.rig.socket, bare,
		from);
	return buf;
}

static bool has_socket(uint32_t from)
{
	char folder[256], path[300];

	(void)snprintf(path, sizeof(path), "%s/sluiced.sock",
		folder_of(from, folder, sizeof(folder)));
	return access(path, F_OK) == 0;
}

static void a_container_has_its_socket(void **state)
{
	const struct caller_call *call;
	char folder[256];

	call = call_with(SERVICE "Allocate", 0, true);
	assert_int_equal(call->status, SL_GRPC_OK);
	(void)folder_of(0, folder, sizeof(folder));
	assert_non_null(memmem(call->answer, call->size, folder, strlen(folder)));
	assert_non_null(memmem(call->answer, call->size, "/run/sluice", 11));
	/* The owner of these is unknown: an init container, perhaps. */
	call = start(0);
	assert_int_equal(call->status, SL_GRPC_UNAVAILABLE);
	assert_non_null(strstr(call->text, "init container"));
	kubelet_has("web", 0);
	call = start(0);
	assert_non_null(strstr(call->text, "does not list pod team/web"));
	assert_false(has_socket(0));
	server_has("web", "2Gi");
	assert_int_equal(start(0)->status, SL_GRPC_OK);
	assert_true(has_socket(0));
	assert_true(rig_log_has(&t.rig, "(team.web) has its own socket"));
	assert_int_equal(start(0)->status, SL_GRPC_OK);
}

/* A kubelet that has just started does not know its pods yet. */
static void nothing_ends_by_one_list(void **state)
{
	kubelet_has("web", 0);
	server_has("web", "2Gi");
	assert_int_equal(start(0)->status, SL_GRPC_OK);
	sl_proto_fini(&t.list);
	kubelet_has("other", 8);
	server_has("other", "2Gi");
	assert_int_equal(start(8)->status, SL_GRPC_OK);
	assert_true(has_socket(0) && has_socket(8));
	/* The API server does not have it any more, either. */
	nothing_is_there();
	kubelet_has("other", 8);
	server_has("other", "2Gi");
	kubelet_has("third", 16);
	server_has("third", "2Gi");
	assert_int_equal(start(16)->status, SL_GRPC_OK);
	assert_true(!has_socket(0) && has_socket(8));
}

/* Another pod gets the units of one that is gone before that was noticed. */
static void units_that_are_handed_out_anew(void **state)
{
	kubelet_has("old", 0);
	server_has("old", "2Gi");
	assert_int_equal(start(0)->status, SL_GRPC_OK);
	nothing_is_there();
	assert_int_equal(call_with(SERVICE "Allocate", 0, true)->status, SL_GRPC_OK);
	kubelet_has("new", 0);
	server_has("new", "2Gi");
	assert_int_equal(start(0)->status, SL_GRPC_OK);
	assert_true(rig_log_has(&t.rig, "(team.old) is over"));
	assert_true(rig_log_has(&t.rig, "(team.new) has its own socket"));
	assert_true(has_socket(0));
}

/* The plugin restarts between Allocate and PreStartContainer, and has forgotten the Allocate. */
static void units_of_a_pod_before(void **state)
{
	kubelet_has("old", 0);
	server_has("old", "2Gi");
	assert_int_equal(start(0)->status, SL_GRPC_OK);
	nothing_is_there();
	stop_plugin();
	start_plugin();
	kubelet_has("new", 0);
	server_has("new", "2Gi");
	assert_int_equal(start(0)->status, SL_GRPC_OK);
	assert_true(rig_log_has(&t.rig, "(team.old) is over"));
	assert_true(rig_log_has(&t.rig, "(team.new) has its own socket"));
	assert_true(has_socket(0));
}

/* A container that crashed starts again in the workload that it had, also while the API server or
 * the kubelet's list is away. */
static void a_container_starts_again(void **state)
{
	kubelet_has("web", 0);
	server_has("web", "2Gi");
	assert_int_equal(start(0)->status, SL_GRPC_OK);
	server_is_away(true);
	assert_int_equal(start(0)->status, SL_GRPC_OK);
	sl_proto_fini(&t.list);
	assert_int_equal(start(0)->status, SL_GRPC_UNAVAILABLE);
	kubelet_has("web", 0);
	assert_int_equal(start(0)->status, SL_GRPC_OK);
	/* The first start needs both. */
	kubelet_has("other", 8);
	assert_int_equal(start(8)->status, SL_GRPC_UNAVAILABLE);
	server_is_away(false);
	server_has("other", "2Gi");
	assert_int_equal(start(8)->status, SL_GRPC_OK);
	assert_false(rig_log_has(&t.rig, "(team.web) is over"));
}

static void limits_that_cannot_be(void **state)
{
	static const struct {
		const char *limit, *words;
	} rows[] = {{"512Mi", "is below the request"}, {"lots", "is no amount"},
		{"64Gi", "above what the GPU can share"},
		{"4Gi", "above what the namespace allows"}};

	server_lock();
	strcpy(t.bounds, "\"sluice.dev/max-limit\":\"3Gi\"");
	server_unlock();
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		const struct caller_call *call;

		nothing_is_there();
		kubelet_has("web", 0);
		server_has("web", rows[i].limit);
		call = start(0);
		assert_int_equal(call->status, SL_GRPC_UNAVAILABLE);
		assert_non_null(strstr(call->text, rows[i].words));
		assert_false(has_socket(0));
	}
}

static void without_sluiced(void **state)
{
	const struct caller_call *call;

	kubelet_has("web", 0);
	server_has("web", "2Gi");
	rig_stop(&t.rig);
	assert_int_equal(call_with(SERVICE "Allocate", 0, true)->status, SL_GRPC_OK);
	call = start(0);
	assert_int_equal(call->status, SL_GRPC_UNAVAILABLE);
	assert_non_null(strstr(call->text, "sluiced"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_container_has_its_socket, setup, teardown),
		cmocka_unit_test_setup_teardown(
			nothing_ends_by_one_list, setup, teardown),
		cmocka_unit_test_setup_teardown(
			units_that_are_handed_out_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(units_of_a_pod_before, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_container_starts_again, setup, teardown),
		cmocka_unit_test_setup_teardown(limits_that_cannot_be, setup, teardown),
		cmocka_unit_test_setup_teardown(without_sluiced, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
