/* The plugin's orders: given as annotations, confirmed by the claim's status, or refused. */
#include "../../kubernetes/server.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/kubectl/kubectl.h"

#define POD    "/api/v1/namespaces/team/pods/p"
#define EVENTS "/api/v1/namespaces/team/events"
#define CLAIM  "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/c"

/* A cluster of one pod with one claim. */
static struct {
	bool has_claim, is_obeyed;
	char patch[256];   /* the latest order */
	char refusal[128]; /* the node's, after an order; "": it has none */
	unsigned int refusals;
	unsigned long long limit;
	const char *parked, *parked_reason;
} cluster;

static struct kubectl k;
static char *said;
static size_t said_size;
static FILE *out, *stdout_before, *stderr_before;

static void serve_pod(struct exchange *x)
{
	if (strcmp(x->method, "PATCH") == 0) {
		(void)snprintf(cluster.patch, sizeof(cluster.patch), "%s", x->body);
		cluster.refusals += cluster.refusal[0] != '\0';
		if (cluster.is_obeyed) {
			bool parks = strstr(x->body, "\"true\"") != NULL;

			cluster.limit = 12 * SL_GIB;
			cluster.parked = parks ? "True" : "False";
			cluster.parked_reason = parks ? "MemoryOnHost" : "NotParked";
		}
	}
	x->text = text("{\"metadata\":{\"name\":\"p\",\"uid\":\"u-1\"},\"spec\":{"
		       "\"resourceClaims\":[{\"resourceClaimName\":\"%s\"}]},"
		       "\"status\":{\"phase\":\"Running\"}}",
		cluster.has_claim ? "c" : "other");
}

static void serve_claim(struct exchange *x)
{
	x->text = text(
		"{\"metadata\":{\"name\":\"c\",\"namespace\":\"team\"},\"status\":{"
		"\"reservedFor\":[{\"name\":\"p\"}],\"allocation\":{\"devices\":{"
		"\"results\":[{\"driver\":\"net.example.com\",\"pool\":\"n\"},"
		"{\"driver\":\"gpu.sluice.dev\",\"pool\":\"node1\",\"device\":\"gpu-a\"}]"
		"}},"
		"\"devices\":[{\"driver\":\"gpu.sluice.dev\",\"pool\":\"node1\","
		"\"device\":"
		"\"gpu-a\",\"data\":{\"state\":\"bound\",\"request\":%llu,\"limit\":%llu,"
		"\"resident\":1024,\"evicted\":4194304},\"conditions\":[{\"type\":"
		"\"Ready\","
		"\"status\":\"True\"},{\"type\":\"Parked\",\"status\":\"%s\",\"reason\":"
		"\"%s\"}"
		"]}]}}",
		6 * SL_GIB, cluster.limit, cluster.parked, cluster.parked_reason);
}

static void serve(struct exchange *x)
{
	if (strcmp(x->path, POD) == 0) {
		serve_pod(x);
	} else if (strcmp(x->path, CLAIM) == 0) {
		serve_claim(x);
	} else if (strcmp(x->path, EVENTS) == 0) {
		assert_string_equal(query(x, "fieldSelector"), "involvedObject.uid=u-1");
		x->text = text("{\"items\":[{\"reason\":\"LimitRefused\",\"message\":"
			       "\"%s\",\"metadata\":{\"resourceVersion\":\"%u\"},"
			       "\"source\":{\"component\":\"sluice\"}}]}",
			cluster.refusal[0] ? cluster.refusal : "an old one",
			cluster.refusals);
	} else {
		x->status = 404;
		x->text = text("{\"kind\":\"Status\",\"reason\":\"NotFound\","
			       "\"message\":\"not found\"}");
	}
}

static int set_up(void **state)
{
	struct sl_kube_config config;

	memset(&cluster, 0, sizeof(cluster));
	cluster.has_claim = cluster.is_obeyed = true;
	cluster.limit = 8 * SL_GIB;
	cluster.parked = "False";
	cluster.parked_reason = "NotParked";
	server_start(serve);
	config = server_config();
	k = (struct kubectl){.namespace = "team", .timeout = 30 * SL_S};
	assert_true(sd_event_new(&k.loop) >= 0);
	assert_int_equal(sl_kube_new(&k.kube, k.loop, &config), 0);
	out = open_memstream(&said, &said_size);
	stdout_before = stdout;
	stderr_before = stderr;
	stdout = stderr = out;
	return 0;
}

static int tear_down(void **state)
{
	stdout = stdout_before;
	stderr = stderr_before;
	(void)fclose(out);
	free(said);
	kubectl_close(&k);
	server_stop();
	return 0;
}

/* The error text, with the output back in its place, so that a failure is seen. */
static void says(const char *want)
{
	(void)fflush(out);
	stdout = stdout_before;
	stderr = stderr_before;
	assert_row_contains("output", said, want);
}

static void a_limit_is_confirmed(void **state)
{
	k.limit = "12Gi";
	assert_int_equal(kubectl_set(&k, "p"), EXIT_SUCCESS);
	assert_non_null(strstr(cluster.patch, "\"sluice.dev/limit\":\"12Gi\""));
	says("p: request 6 GiB, limit 12 GiB");
}

/* The Event that was there before says nothing of this order. */
static void a_refusal_is_told(void **state)
{
	cluster.is_obeyed = false;
	(void)snprintf(cluster.refusal, sizeof(cluster.refusal), "above the GPU");
	k.limit = "12Gi";
	assert_int_equal(kubectl_set(&k, "p"), EXIT_FAILURE);
	says("node node1: above the GPU");
}

static void a_node_that_is_silent_is_named(void **state)
{
	cluster.is_obeyed = false;
	k.limit = "12Gi";
	k.timeout = 1;
	assert_int_equal(kubectl_set(&k, "p"), EXIT_FAILURE);
	assert_int_equal(kubectl_park(&k, "p"), EXIT_FAILURE);
	says("node node1 has not confirmed it in time (bound now); the order stands: is "
	     "sluice-kube running there?");
}

static void what_cannot_be_is_not_ordered(void **state)
{
	k.limit = "4Gi";
	assert_int_equal(kubectl_set(&k, "p"), EXIT_FAILURE);
	k.limit = "12GiB";
	assert_int_equal(kubectl_set(&k, "p"), EXIT_FAILURE);
	k.limit = NULL;
	assert_int_equal(kubectl_set(&k, "p"), EXIT_FAILURE);
	assert_int_equal(kubectl_park(&k, "q"), EXIT_FAILURE);
	cluster.has_claim = false;
	assert_int_equal(kubectl_park(&k, "p"), EXIT_FAILURE);
	assert_string_equal(cluster.patch, "");
	says("--limit 4Gi is below the request of 6 GiB");
	says("write 12Gi");
	says("set POD --limit 12Gi");
	says("there is no pod q in namespace team");
	says("pod p has no GPU memory now");
}

static void it_is_parked_and_resumed(void **state)
{
	assert_int_equal(kubectl_park(&k, "p"), EXIT_SUCCESS);
	assert_non_null(strstr(cluster.patch, "\"sluice.dev/park\":\"true\""));
	assert_int_equal(kubectl_resume(&k, "p"), EXIT_SUCCESS);
	assert_non_null(strstr(cluster.patch, "\"sluice.dev/park\":null"));
	says("p is parked with 4 MiB on the host");
	says("p is resumed: bound");
}

static void why_tells_all(void **state)
{
	assert_int_equal(kubectl_why(&k, "p"), EXIT_SUCCESS);
	says("p on gpu-a of node node1: bound; request 6 GiB, limit 8 GiB; 1 KiB on the "
	     "GPU, 4 MiB on the host.");
	says("LimitRefused: an old one.");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_limit_is_confirmed),
		TEST(a_refusal_is_told),
		TEST(a_node_that_is_silent_is_named),
		TEST(what_cannot_be_is_not_ordered),
		TEST(it_is_parked_and_resumed),
		TEST(why_tells_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
