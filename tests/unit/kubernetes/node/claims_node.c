/* Claims between a kubelet and an API server of the test's own, and a real sluiced. */
#include "../server.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../caller.h"
#include "cluster/kubernetes/node/cdi.h"
#include "cluster/kubernetes/node/node.h"
#include "cluster/kubernetes/api/proto.h"
#include "cluster/kubernetes/claims/slice.h"
#include "../../daemon/rig.h"

#define DRA    "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
#define CLAIMS "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/"

static struct {
	struct rig rig;
	sd_event *loop;
	struct sl_kube_node *node;
	struct caller caller;
	char folder[40], cdi[60];
	/* Of the API server; under its lock. */
	char device[SL_KUBE_DEVICE_NAME_MAX]; /* that the slice has */
	const char *claims, *pods; /* letters: names of claims, and those of pods */
	bool has_no_pods_yet, knows_no_claims, parks;
	char parked[32]; /* the reason, as of the claim's status */
	unsigned int pod_watches, factor_pct;
	uint64_t request, limit; /* of the claim whose status was written last */
} t;

/* --- the API server ------------------------------------------------------------------------ */

static void serve_slices(struct exchange *x)
{
	json_t *slice = json_loads(x->body, 0, NULL);
	const json_t *devices = sl_kube_at(slice, "spec", "devices", NULL);

	/* The pods' is the only stream. */
	if (query(x, "watch")) {
		x->how = HANG;
	} else if (strcmp(x->method, "POST") == 0) {
		sl_wire_str(t.device, sizeof(t.device),
			sl_kube_text_at(json_array_get(devices, 0), "name", NULL));
		x->text = text("%s", x->body);
	} else {
		x->text = text("{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
	}
	json_decref(slice);
}

static void serve_pods(struct exchange *x)
{
	char *items = text("%s", ""), *more;

	if (query(x, "watch")) {
		t.pod_watches++;
		x->how = STREAM;
		x->text = items;
		return;
	}
	for (const char *pod = t.pods; *pod; pod++) {
		more = text("%s%s{\"metadata\":{\"namespace\":\"team\",\"name\":\"%c\","
			    "\"uid\":\"%c\",\"annotations\":{%s}},\"spec\":{"
			    "\"resourceClaims\":["
			    "{\"resourceClaimName\":\"%c\"}]}}",
			items, *items ? "," : "", *pod, *pod,
			t.parks ? "\"sluice.dev/park\":\"true\"" : "", *pod);
		free(items);
		items = more;
	}
	x->text =
		text("{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[%s]}", items);
	x->status = t.has_no_pods_yet ? 500 : 200;
	free(items);
}

/* As sluiced has them. */
static void take_status(const char *body)
{
	json_t *patch = json_loads(body, 0, NULL);
	const json_t *device =
		json_array_get(sl_kube_at(patch, "status", "devices", NULL), 0);
	const json_t *data = json_object_get(device, "data");

	sl_wire_str(t.parked, sizeof(t.parked),
		sl_kube_text_at(json_array_get(json_object_get(device, "conditions"), 1),
			"reason", NULL));
	if (strcmp(sl_kube_text_at(data, "state", NULL), "gone") != 0) {
		t.request =
			(uint64_t)json_integer_value(json_object_get(data, "request"));
		t.limit = (uint64_t)json_integer_value(json_object_get(data, "limit"));
	}
	json_decref(patch);
}

static void serve_claim(struct exchange *x, const char *name)
{
	if (strchr(name, '/')) {
		take_status(x->body);
		x->text = text("{}");
	} else if (t.knows_no_claims) {
		x->status = 404;
		x->text = text("404 page not found");
	} else if (!strstr(t.claims, name)) {
		x->status = 404;
		x->text = text("{\"kind\":\"Status\",\"reason\":\"NotFound\"}");
	} else {
		x->text = text("{\"metadata\":{\"namespace\":\"team\",\"name\":\"%s\","
			       "\"uid\":\"uid-%s\"},\"status\":{\"allocation\":{"
			       "\"devices\":{\"results\":[{\"driver\":\"%s\",\"pool\":"
			       "\"node1\",\"device\":\"%s\",\"request\":\"gpu\","
			       "\"consumedCapacity\":{\"memory\":\"1Gi\"}}]}}}}",
			name, name, SL_KUBE_DRIVER, t.device);
	}
}

static void serve(struct exchange *x)
{
	if (strncmp(x->path, SL_KUBE_SLICES_PATH, strlen(SL_KUBE_SLICES_PATH)) == 0)
		serve_slices(x);
	else if (strcmp(x->path, "/api/v1/pods") == 0)
		serve_pods(x);
	else if (strncmp(x->path, CLAIMS, strlen(CLAIMS)) == 0)
		serve_claim(x, x->path + strlen(CLAIMS));
	else if (strcmp(x->path, "/api/v1/nodes/node1") == 0)
		x->text = text("{\"metadata\":{\"name\":\"node1\",\"uid\":\"n\"}}");
}

/* What the server has from now on. */
static void change(const char *claims, const char *pods)
{
	server_lock();
	t.claims = claims;
	t.pods = pods;
	server_unlock();
}

static void set(bool *flag, bool value)
{
	server_lock();
	*flag = value;
	server_unlock();
}

static bool has_amounts(uint64_t request, uint64_t limit)
{
	bool has;

	server_lock();
	has = t.request == request && t.limit == limit;
	server_unlock();
	return has;
}

static bool says_parked(const char *reason)
{
	bool says;

	server_lock();
	says = strcmp(t.parked, reason) == 0;
	server_unlock();
	return says;
}

static bool has_device(void)
{
	bool has;

	server_lock();
	has = t.device[0];
	server_unlock();
	return has;
}

static unsigned int pod_watches(void)
{
	unsigned int count;

	server_lock();
	count = t.pod_watches;
	server_unlock();
	return count;
}

/* --- the node ------------------------------------------------------------------------------ */

/* Turns the loop until it holds, for 20 s. */
#define turn_until(condition)                                             \
	do {                                                              \
		sl_ns end_ = sl_clock_now() + 20 * SL_S;                  \
		while (!(condition)) {                                    \
			if (sl_clock_now() > end_)                        \
				fail_msg("not within 20 s: " #condition); \
			caller_turn(&t.caller);                           \
		}                                                         \
	} while (0)

/* Lets pass what should not come. */
static void pause_ms(unsigned int ms)
{
	sl_ns end = sl_clock_now() + ms * SL_MS;

	turn_until(sl_clock_now() > end);
}

static void start_node(void)
{
	struct sl_kube_node_options options = {.name = "node1",
		.kubelet = t.folder,
		.cdi = t.cdi,
		.library = "/nowhere/libsluice.so",
		.memory_factor_pct = t.factor_pct,
		.socket = t.rig.socket};
	struct sl_error err = {0};
	char *config = text("apiVersion: v1\nkind: Config\ncurrent-context: k\n"
			    "clusters: [{name: k, cluster: {server: \"%s\", "
			    "certificate-authority: \"%s\"}}]\n"
			    "users: [{name: k, user: {token: secret}}]\n"
			    "contexts: [{name: k, context: {cluster: k, user: k}}]\n",
		server_url(), server_path("server.pem"));
	char path[128];

	options.kubeconfig = server_file("config", config);
	free(config);
	server_lock();
	t.device[0] = '\0';
	server_unlock();
	if (sl_kube_node_new(t.loop, &options, &t.node, &err) < 0)
		fail_msg("%s", err.text);
	(void)snprintf(
		path, sizeof(path), "%s/plugins/gpu.sluice.dev/dra.sock", t.folder);
	caller_open(&t.caller, t.loop, path);
	turn_until(has_device());
}

static void stop_node(void)
{
	caller_close(&t.caller);
	t.node = sl_kube_node_free(t.node);
}

/* It comes, and is compared with the claims. */
static void restart_sluiced(void)
{
	rig_stop(&t.rig);
	rig_start(&t.rig, NULL);
}

static int setup(void **state)
{
	memset(&t, 0, sizeof(t));
	t.claims = "ab";
	t.pods = "ab";
	rig_init(&t.rig, 1, 16 * RIG_GIB);
	rig_start(&t.rig, NULL);
	server_start(serve);
	assert_true(sd_event_new(&t.loop) >= 0);
	strcpy(t.folder, "/tmp/sluice-claims-XXXXXX");
	assert_non_null(mkdtemp(t.folder));
	(void)snprintf(t.cdi, sizeof(t.cdi), "%s/cdi", t.folder);
	start_node();
	return 0;
}

static int teardown(void **state)
{
	char command[80];

	stop_node();
	t.loop = sd_event_unref(t.loop);
	server_stop();
	rig_fini(&t.rig);
	(void)snprintf(command, sizeof(command), "rm -rf %s", t.folder);
	return system(command);
}

static struct caller_call *begin(const char *method, const char *name)
{
	struct sl_proto_out claim = {0}, out = {0};
	struct caller_call *call;
	char uid[16];

	(void)snprintf(uid, sizeof(uid), "uid-%s", name);
	sl_proto_put_text(&claim, 1, "team");
	sl_proto_put_text(&claim, 2, uid);
	sl_proto_put_text(&claim, 3, name);
	sl_proto_put_message(&out, 1, &claim);
	call = caller_begin(&t.caller, method, out.data, out.size, false);
	sl_proto_fini(&out);
	return call;
}

static void prepare(const char *name)
{
	struct caller_call *call = begin(DRA "NodePrepareResources", name);

	caller_wait(&t.caller, call);
	if (!memmem(call->answer, call->size, SL_CDI_KIND "=", sizeof(SL_CDI_KIND)))
		fail_msg("%s: %.*s", name, (int)call->size, call->answer);
}

static bool has_socket(const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%.*s/entries/uid-%s/sluiced.sock",
		(int)(strrchr(t.rig.socket, '/') - t.rig.socket), t.rig.socket, name);
	return access(path, F_OK) == 0;
}

static void note_file(void *context, const char *uid)
{
	strcat(strcat(context, uid), " ");
}

static void want_files(const char *uids)
{
	struct sl_error err = {0};
	char found[80] = "";

	assert_int_equal(sl_cdi_list(t.cdi, note_file, found, &err), 0);
	assert_string_equal(found, uids);
}

/* --- what becomes of claims ---------------------------------------------------------------- */

/* A claim outlives the pods that use it, where they did not make it. */
static void what_no_pod_uses_ends(void **state)
{
	prepare("a");
	prepare("b");
	assert_true(has_socket("a") && has_socket("b"));
	stop_node();
	change("ab", "b");
	start_node();
	turn_until(!has_socket("a"));
	pause_ms(300);
	assert_true(has_socket("b"));
	want_files("uid-b ");
}

static void the_watch_may_be_behind(void **state)
{
	unsigned int asked;

	change("ab", "");
	stop_node();
	start_node();
	prepare("a");
	asked = server_count("GET", CLAIMS "a");
	restart_sluiced();
	turn_until(server_count("GET", CLAIMS "a") > asked);
	pause_ms(300);
	assert_true(has_socket("a"));
	want_files("uid-a ");
}

/* As sluice cdi does. Returns its socket. */
static const char *add_cdi(void)
{
	static char path[256];
	struct rig_peer peer = rig_peer(&t.rig);
	union sl_msg msg;

	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	sl_wire_init(&msg, SL_MSG_ENTRY_ADD);
	msg.entry_add.gpu_count = 1;
	msg.entry_add.request_kind = SL_AMOUNT_BYTES;
	msg.entry_add.priority_biased = SL_PRIORITY_BIAS;
	sl_wire_str(msg.entry_add.key, sizeof(msg.entry_add.key), "cdi.train");
	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_ENTRY_REPLY, &msg);
	assert_true(msg.entry_reply.ok);
	rig_peer_end(&peer);
	(void)snprintf(path, sizeof(path), "%s/sluiced.sock", msg.entry_reply.folder);
	return path;
}

static void what_has_no_claim_ends(void **state)
{
	const char *cdi = add_cdi();
	unsigned int asked;

	prepare("a");
	set(&t.knows_no_claims, true);
	asked = server_count("GET", CLAIMS "a");
	restart_sluiced();
	turn_until(server_count("GET", CLAIMS "a") > asked);
	pause_ms(300);
	/* That was no word about the claim. */
	assert_true(has_socket("a"));
	set(&t.knows_no_claims, false);
	change("b", "ab");
	restart_sluiced();
	turn_until(!has_socket("a"));
	want_files("");
	/* It is no claim of a pod. */
	assert_int_equal(access(cdi, F_OK), 0);
}

/* Also by one that follows, which compares sluiced with the claims. */
static void a_claim_is_guaranteed_its_part(void **state)
{
	t.factor_pct = 200;
	for (int i = 0; i < 2; i++) {
		stop_node();
		t.request = t.limit = 0;
		start_node();
		if (i == 0)
			prepare("a");
		else
			restart_sluiced();
		turn_until(has_amounts(512 * SL_MIB, SL_GIB));
		pause_ms(2500);
		assert_true(has_amounts(512 * SL_MIB, SL_GIB));
	}
}

/* The host has no memory to park in. A refusal is forgotten with the order. */
static void a_refused_park_is_in_the_status(void **state)
{
	prepare("a");
	stop_node();
	set(&t.parks, true);
	start_node();
	rig_stop(&t.rig);
	rig_start(&t.rig, "host_memory: 0\n");
	turn_until(says_parked("Refused"));
	server_lock();
	stream_push("{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"namespace\":"
		    "\"team\",\"name\":\"a\",\"uid\":\"a\",\"resourceVersion\":\"2\"},"
		    "\"spec\":{\"resourceClaims\":[{\"resourceClaimName\":\"a\"}]}}}\n");
	server_unlock();
	turn_until(says_parked("NotParked"));
}

/* The list of workloads is asked for, and still has it. */
static void what_is_unprepared_meanwhile_does_not_come_back(void **state)
{
	struct caller_call *call;
	unsigned int told;

	prepare("a");
	stop_node();
	set(&t.has_no_pods_yet, true);
	start_node();
	assert_int_equal(kill(t.rig.daemon, SIGSTOP), 0);
	set(&t.has_no_pods_yet, false);
	turn_until(pod_watches() == 2);
	call = begin(DRA "NodeUnprepareResources", "a");
	pause_ms(100);
	told = server_count("PATCH", CLAIMS "a/status");
	assert_int_equal(kill(t.rig.daemon, SIGCONT), 0);
	caller_wait(&t.caller, call);
	turn_until(!has_socket("a"));
	pause_ms(3000);
	want_files("");
	assert_int_equal(server_count("PATCH", CLAIMS "a/status"), told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_no_pod_uses_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(the_watch_may_be_behind, setup, teardown),
		cmocka_unit_test_setup_teardown(what_has_no_claim_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_claim_is_guaranteed_its_part, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_refused_park_is_in_the_status, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_is_unprepared_meanwhile_does_not_come_back, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
