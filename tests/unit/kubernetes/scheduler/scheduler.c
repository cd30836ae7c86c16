/*
 * The complete scheduler against the test's own API server: one node, one GPU, one claim, one pod.
 * Checks which calls the scheduler makes, in which order, and what it does with empty answers.
 */
#include "../server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/scheduler/scheduler.h"

#define CLAIM "/apis/resource.k8s.io/v1/namespaces/n/resourceclaims/c"
#define POD   "/api/v1/namespaces/n/pods/p"

/* What the server has and does. */
static struct {
	int version;
	bool is_protected, is_allocated, is_bound;
	/* The pod that has the claim before the scheduler comes; NULL: none. */
	const char *others_uid;
	/* The answer to the first write of the claim's status, and whether it is done. */
	unsigned int status, again;
	bool does_it;
	/* Of the first binding. */
	unsigned int bind_status;
	unsigned int allocations, bindings;
	char memory[32];
} api;

static char *claim(void)
{
	char allocation[400] = "";

	if (api.is_allocated)
		(void)snprintf(allocation, sizeof(allocation),
			"\"allocation\":{\"devices\":{\"results\":[{\"driver\":\"gpu."
			"sluice.dev\","
			"\"pool\":\"a\",\"device\":\"gpu-0\",\"consumedCapacity\":{"
			"\"memory\":"
			"\"6Gi\"}}]}},\"reservedFor\":[{\"uid\":\"%s\"}]",
			api.others_uid ? api.others_uid : "pu");
	return text(
		"{\"metadata\":{\"name\":\"c\",\"namespace\":\"n\",\"uid\":\"cu\","
		"\"resourceVersion\":\"%d\",\"finalizers\":[%s]},\"spec\":{\"devices\":{"
		"\"requests\":[{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":"
		"\"gpu.sluice.dev\",\"capacity\":{\"requests\":{\"memory\":\"6Gi\"}}}}]}}"
		","
		"\"status\":{%s}}",
		api.version,
		api.is_protected ? "\"resource.kubernetes.io/delete-protection\"" : "",
		allocation);
}

static char *pod(void)
{
	return text(
		"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"pu\","
		"\"resourceVersion\":\"5\"},\"spec\":{\"schedulerName\":\"sluice\"%s,"
		"\"resourceClaims\":[{\"name\":\"gpu\",\"resourceClaimName\":\"c\"}]},"
		"\"status\":{\"phase\":\"Pending\"}}",
		api.is_bound ? ",\"nodeName\":\"a\"" : "");
}

static char *node(void)
{
	return text("%s",
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"nu\",\"resourceVersion\":"
		"\"2\"},\"status\":{\"allocatable\":{\"cpu\":\"8\",\"memory\":\"8Gi\","
		"\"pods\":\"9\"},\"conditions\":[{\"type\":\"Ready\",\"status\":"
		"\"True\"}]}}");
}

static char *slice(void)
{
	return text("%s",
		"{\"metadata\":{\"name\":\"a-gpu.sluice.dev\",\"uid\":\"su\","
		"\"resourceVersion\":\"3\"},\"spec\":{\"driver\":\"gpu.sluice.dev\","
		"\"nodeName\":\"a\",\"pool\":{\"name\":\"a\"},\"devices\":[{\"name\":"
		"\"gpu-0\",\"capacity\":{\"memory\":{\"value\":\"16Gi\"}}}]}}");
}

/* A list of one, or a watch of it without events. */
static void list(struct exchange *exchange, char *item)
{
	const char *watch = query(exchange, "watch");

	if (watch) {
		exchange->how = STREAM;
		exchange->text = text("%s", "");
	} else {
		exchange->text =
			text("{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[%s]}",
				item);
	}
	free(item);
}

static void take_status(struct exchange *exchange)
{
	json_t *body = json_loads(exchange->body, 0, NULL);
	const json_t *result = json_array_get(
		sl_kube_at(body, "status", "allocation", "devices", "results", NULL), 0);
	bool is_old = atoi(sl_kube_text_at(body, "metadata", "resourceVersion", NULL)) !=
		      api.version;
	unsigned int status = is_old ? 409 : api.allocations++ ? api.again : api.status;

	(void)snprintf(api.memory, sizeof(api.memory), "%s",
		sl_kube_text_at(result, "consumedCapacity", "memory", NULL));
	if (status == 200 || api.does_it) {
		api.is_allocated = true;
		api.version++;
	}
	exchange->status = status;
	exchange->text = status == 200 ? claim() : NULL;
	json_decref(body);
}

static void take_claim(struct exchange *exchange, const char *rest)
{
	if (strcmp(exchange->method, "PATCH") == 0 && strcmp(rest, "/status") == 0) {
		take_status(exchange);
		return;
	}
	if (strcmp(exchange->method, "PATCH") == 0) {
		api.is_protected = true;
		api.version++;
	}
	exchange->text = claim();
}

static void take_pod(struct exchange *exchange, const char *rest)
{
	if (strcmp(rest, "/binding") != 0) {
		exchange->text = pod();
		return;
	}
	exchange->status = api.bindings++ ? 201 : api.bind_status;
	if (exchange->status == 201)
		api.is_bound = true;
}

static void serve(struct exchange *exchange)
{
	const char *path = exchange->path;

	if (strncmp(path, CLAIM, strlen(CLAIM)) == 0)
		take_claim(exchange, path + strlen(CLAIM));
	else if (strncmp(path, POD, strlen(POD)) == 0)
		take_pod(exchange, path + strlen(POD));
	else if (strcmp(path, "/api/v1/nodes") == 0)
		list(exchange, node());
	else if (strcmp(path, "/api/v1/pods") == 0)
		list(exchange, pod());
	else if (strstr(path, "/resourceclaims"))
		list(exchange, claim());
	else if (strstr(path, "/resourceslices"))
		list(exchange, slice());
	else if (strstr(path, "/leases") && strcmp(exchange->method, "GET") != 0)
		exchange->text = text("%s", "{\"metadata\":{\"resourceVersion\":\"1\"}}");
	else
		exchange->status = 404;
}

/* It is bound, or its condition says why not. */
static bool is_done(void *context)
{
	bool is_bound;

	server_lock();
	is_bound = api.is_bound;
	server_unlock();
	return is_bound || server_count("PATCH", POD "/status");
}

static void play(const char *row)
{
	struct sl_kube_scheduler_options options = {.name = "sluice",
		.namespace = "sluice",
		.identity = "me",
		.lease = 60 * SL_S};
	sl_cleanup(sl_freep) char *kubeconfig =
		text("current-context: k\nclusters: [{name: k, cluster: {server: \"%s\", "
		     "certificate-authority: \"%s\"}}]\nusers: [{name: k, user: {token: "
		     "secret}}]\n"
		     "contexts: [{name: k, context: {cluster: k, user: k}}]\n",
			server_url(), server_path("server.pem"));
	struct sl_error err = {0};
	struct sl_ks *ks = NULL;
	sd_event *loop = NULL;

	options.kubeconfig = server_file("kubeconfig", kubeconfig);
	assert_int_equal(sd_event_new(&loop), 0);
	if (sl_kube_scheduler_new(loop, &options, &ks, &err) < 0)
		fail_msg("%s: %s", row, err.text);
	if (!run_while(loop, is_done, NULL, 60 * SL_S))
		fail_msg("%s: it does not come to an end", row);
	ks = sl_kube_scheduler_free(ks);
	loop = sd_event_unref(loop);
}

static void calls_are_made_in_order(void **state)
{
	static const struct {
		const char *name;
		unsigned int status, again, bind_status;
		bool is_protected, is_allocated, does_it;
		/* Calls that have to be made, so often. */
		unsigned int protects, allocates, binds, looks, pod_looks;
	} rows[] = {
		{"all is well", 200, 0, 201, false, false, false, 1, 1, 1, 0, 0},
		{"it is protected already", 200, 0, 201, true, false, false, 0, 1, 1, 0,
			0},
		{"one before it was killed between the two", 200, 0, 201, true, true,
			false, 0, 0, 1, 0, 0},
		{"no answer, and not done", 503, 200, 201, true, false, false, 0, 2, 1, 1,
			0},
		{"no answer, and done", 503, 0, 201, true, false, true, 0, 1, 1, 1, 0},
		{"too many requests", 429, 200, 201, true, false, false, 0, 2, 1, 1, 0},
		{"a conflict", 409, 200, 201, true, false, false, 0, 2, 1, 1, 0},
		{"the binding is not answered", 200, 0, 500, true, false, false, 0, 1, 2,
			0, 1},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		api = (typeof(api)){.version = 10,
			.status = rows[i].status,
			.again = rows[i].again,
			.bind_status = rows[i].bind_status,
			.does_it = rows[i].does_it,
			.is_protected = rows[i].is_protected,
			.is_allocated = rows[i].is_allocated};
		server_start(serve);
		play(rows[i].name);
		assert_row_u64(
			rows[i].name, server_count("PATCH", CLAIM), rows[i].protects);
		assert_row_u64(rows[i].name, server_count("PATCH", CLAIM "/status"),
			rows[i].allocates);
		assert_row_u64(rows[i].name, server_count("POST", POD "/binding"),
			rows[i].binds);
		assert_row_u64(rows[i].name, server_count("GET", CLAIM), rows[i].looks);
		assert_row_u64(rows[i].name, server_count("GET", POD), rows[i].pod_looks);
		if (rows[i].allocates)
			assert_string_equal(api.memory, "6Gi");
		server_stop();
	}
}

/* A claim that was allocated to another pod is left alone, and the pod is told. */
static void others_claims_are_left_alone(void **state)
{
	api = (typeof(api)){
		.version = 10, .is_allocated = true, .others_uid = "somebody"};
	server_start(serve);
	play("another one's");
	assert_int_equal(server_count("PATCH", CLAIM "/status"), 0);
	assert_int_equal(server_count("POST", POD "/binding"), 0);
	server_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_made_in_order),
		cmocka_unit_test(others_claims_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
