/* Requests by annotations, in both families of words, and their errors. */
#include "../../base/test.h"

#include <jansson.h>

#include "cluster/kubernetes/claims/ask.h"

#define NV(name, what) "\"nvidia.com/container." name ".gpu-memory." what "\""

/* annotations, and more of the container "main". */
static json_t *pod_of(const char *annotations, const char *more)
{
	char text[2048];
	json_t *pod;

	(void)snprintf(text, sizeof(text),
		"{\"metadata\":{\"annotations\":{%s}},\"spec\":{\"initContainers\":[{"
		"\"name\":\"set-up\"}],\"containers\":[{\"name\":\"main\"%s},{\"name\":"
		"\"side\"}]}}",
		annotations, more);
	pod = json_loads(text, 0, NULL);
	assert_non_null(pod);
	return pod;
}

struct row {
	const char *name, *annotations, *more;
	/* "list index request limit gpus [compute/limit]" of each; NULL: none. */
	const char *asks;
	const char *error; /* or a part of it */
};

static const struct row rows[] = {
	{.name = "no annotation of ours", .annotations = "\"team\":\"a\""},
	{.name = "a fraction",
		.annotations = "\"gpu-fraction\":\"0.25\"",
		.asks = "containers 0 0.25 - 1;"},
	{.name = "a fraction with a limit, as Run:ai wrote it",
		.annotations = "\"gpu-fraction\":\"0.25\",\"gpu-fraction-limit\":\"0.8\"",
		.asks = "containers 0 0.25 0.8 1;"},
	{.name = "and as KAI writes it",
		.annotations = "\"gpu-fraction\":\"0.25\",\"gpu-fraction.limit\":\"0.8\"",
		.asks = "containers 0 0.25 0.8 1;"},
	{.name = "both the same",
		.annotations = "\"gpu-fraction\":\"0.25\",\"gpu-fraction.limit\":\"0.8\","
			       "\"gpu-fraction-limit\":\"0.80\"",
		.asks = "containers 0 0.25 0.8 1;"},
	{.name = "both, and different",
		.annotations = "\"gpu-fraction\":\"0.25\",\"gpu-fraction.limit\":\"0.8\","
			       "\"gpu-fraction-limit\":\"0.9\"",
		.error = "given otherwise as well"},
	{.name = "the limit as a variable",
		.annotations = "\"gpu-fraction\":\"0.5\"",
		.more = ",\"env\":[{\"name\":\"A\",\"value\":\"1\"},{\"name\":"
			"\"RUNAI_GPU_MEMORY_LIMIT\",\"value\":\"0.95\"}]",
		.asks = "containers 0 0.5 0.95 1;"},
	{.name = "the limit of memory as a variable",
		.annotations = "\"gpu-memory\":\"1000\"",
		.more = ",\"env\":[{\"name\":\"RUNAI_GPU_MEMORY_LIMIT\",\"value\":"
			"\"2500M\"}]",
		.asks = "containers 0 1000MiB 2385MiB 1;"},
	{.name = "MiB",
		.annotations = "\"gpu-memory\":\"8192\"",
		.asks = "containers 0 8GiB - 1;"},
	{.name = "MiB and a limit",
		.annotations = "\"gpu-memory\":\"8192\",\"gpu-memory.limit\":\"16Gi\"",
		.asks = "containers 0 8GiB 16GiB 1;"},
	{.name = "a share of time",
		.annotations = "\"gpu-fraction\":\"0.25\",\"sluice.dev/compute\":\"20\","
			       "\"sluice.dev/compute-limit\":\"50\"",
		.asks = "containers 0 0.25 - 1 20/50;"},
	{.name = "a limit of time alone",
		.annotations = "\"gpu-memory\":\"8192\",\"sluice.dev/compute-limit\":"
			       "\"50\"",
		.asks = "containers 0 8GiB - 1 0/50;"},
	{.name = "a limit of time below",
		.annotations = "\"gpu-fraction\":\"0.25\",\"sluice.dev/compute\":\"20\","
			       "\"sluice.dev/compute-limit\":\"10\"",
		.error = "sluice.dev/compute-limit is below sluice.dev/compute: write at "
			 "least 20"},
	{.name = "time as a fraction",
		.annotations = "\"gpu-fraction\":\"0.25\",\"sluice.dev/compute\":\"0.2\"",
		.error = "a whole percent of each GPU's time"},
	{.name = "time and no memory",
		.annotations = "\"sluice.dev/compute\":\"20\"",
		.error = "sluice.dev/compute is given, and no request"},
	{.name = "a whole GPU as a fraction",
		.annotations = "\"gpu-fraction\":\"1\"",
		.asks = "containers 0 1.0 - 1;"},
	{.name = "several GPUs",
		.annotations =
			"\"gpu-fraction\":\"0.5\",\"gpu-fraction-num-devices\":\"2\"",
		.asks = "containers 0 0.5 - 2;"},
	{.name = "too many GPUs",
		.annotations =
			"\"gpu-fraction\":\"0.5\",\"gpu-fraction-num-devices\":\"9\"",
		.error = "a number from 1 to 8"},
	{.name = "another container",
		.annotations = "\"gpu-fraction\":\"0.5\",\"gpu-fraction-container-name\":"
			       "\"side\"",
		.asks = "containers 1 0.5 - 1;"},
	{.name = "an init container",
		.annotations = "\"gpu-memory\":\"64\",\"gpu-fraction-container-name\":"
			       "\"set-up\"",
		.asks = "initContainers 0 64MiB - 1;"},
	{.name = "a container that is not there",
		.annotations = "\"gpu-fraction\":\"0.5\",\"gpu-fraction-container-name\":"
			       "\"mian\"",
		.error = "no container \"mian\"; it has: set-up, main, side"},
	{.name = "a unit where MiB are",
		.annotations = "\"gpu-memory\":\"8G\"",
		.error = "a plain number of MiB; write \"7630\""},
	{.name = "a unit where MiB are, binary",
		.annotations = "\"gpu-memory\":\"8Gi\"",
		.error = "write \"8192\""},
	{.name = "no MiB",
		.annotations = "\"gpu-memory\":\"0\"",
		.error = "without a unit, such as \"8192\""},
	{.name = "negative MiB",
		.annotations = "\"gpu-memory\":\"-5\"",
		.error = "write a number of MiB"},
	{.name = "a percentage",
		.annotations = "\"gpu-fraction\":\"25%\"",
		.error = "gpu-fraction is \"25%\": write a part of one GPU"},
	{.name = "two GPUs as a fraction",
		.annotations = "\"gpu-fraction\":\"2\"",
		.error = "limits: {sluice.dev/gpu: N}"},
	{.name = "nothing as a fraction",
		.annotations = "\"gpu-fraction\":\"0\"",
		.error = "above 0 and at most 1"},
	{.name = "no text",
		.annotations = "\"gpu-fraction\":\"\"",
		.error = "gpu-fraction is \"\""},
	{.name = "fraction and memory",
		.annotations = "\"gpu-fraction\":\"0.5\",\"gpu-memory\":\"100\"",
		.error = "both given: keep one"},
	{.name = "a limit below",
		.annotations = "\"gpu-fraction\":\"0.5\",\"gpu-fraction-limit\":\"0.4\"",
		.error = "the limit of gpu-fraction is 0.4, below its request of 0.5"},
	{.name = "the other one's limit",
		.annotations = "\"gpu-fraction\":\"0.5\",\"gpu-memory.limit\":\"4Gi\"",
		.error = "gpu-memory.limit goes with gpu-memory"},
	{.name = "a limit alone",
		.annotations = "\"gpu-fraction-limit\":\"0.4\"",
		.error = "gpu-fraction-limit is given, and no request: write "
			 "gpu-fraction"},
	{.name = "a number of devices alone",
		.annotations = "\"gpu-fraction-num-devices\":\"2\"",
		.error = "and no request"},
	{.name = "kai-gpu-fractioning",
		.annotations =
			NV("main", "request") ":\"2Gi\"," NV("main", "limit") ":\"4Gi\"",
		.asks = "containers 0 2GiB 4GiB 1;"},
	{.name = "its request alone",
		.annotations = NV("main", "request") ":\"2Gi\"",
		.asks = "containers 0 2GiB 2GiB 1;"},
	{.name = "its limit alone",
		.annotations = NV("main", "limit") ":\"1000M\"",
		.asks = "containers 0 954MiB 954MiB 1;"},
	{.name = "several containers, in the pod's order",
		.annotations = NV("side", "request") ":\"2Gi\"," NV(
			"set-up", "limit") ":\"1Gi\"," NV("main", "limit") ":\"3Gi\"",
		.asks = "initContainers 0 1GiB 1GiB 1;containers 0 3GiB 3GiB 1;"
			"containers 1 2GiB 2GiB 1;"},
	{.name = "its container is not there",
		.annotations = NV("trainer", "request") ":\"2Gi\"",
		.error = "no container \"trainer\""},
	{.name = "its limit below",
		.annotations =
			NV("main", "request") ":\"2Gi\"," NV("main", "limit") ":\"1Gi\"",
		.error = "below its request"},
	{.name = "MiB without a unit",
		.annotations = NV("main", "request") ":\"2048\"",
		.error = "which is bytes; write \"2048Mi\""},
	{.name = "below a MiB",
		.annotations = NV("main", "request") ":\"500Ki\"",
		.error = "write 1Mi or more"},
	{.name = "no amount",
		.annotations = NV("main", "request") ":\"much\"",
		.error = "an amount with its unit"},
	{.name = "others of its words are left alone",
		.annotations = "\"nvidia.com/container.main.gpus.devices\":\"GPU-1\""},
	{.name = "both families, the same",
		.annotations = "\"gpu-memory\":\"2048\"," NV(
			"main", "request") ":\"2Gi\"," NV("main", "limit") ":\"4Gi\"",
		.asks = "containers 0 2GiB 4GiB 1;"},
	{.name = "both families, contradicting",
		.annotations =
			"\"gpu-memory\":\"2048\"," NV("main", "request") ":\"3Gi\"",
		.error = "contradict each other"},
	{.name = "both families, for different containers",
		.annotations =
			"\"gpu-memory\":\"2048\"," NV("side", "request") ":\"2Gi\"",
		.error = "gpu-memory and nvidia.com/container.... are for different "
			 "containers"},
	{.name = "a fraction, and the other family for another container",
		.annotations =
			"\"gpu-fraction\":\"0.5\"," NV("side", "request") ":\"2Gi\"",
		.error = "gpu-fraction and nvidia.com/container.... are for different "
			 "containers"},
	{.name = "a word of the other family that is no word",
		.annotations = NV("main", "requests") ":\"2Gi\"",
		.error = "nvidia.com/container.main.gpu-memory.requests says nothing: "
			 "write nvidia.com/container.NAME.gpu-memory.request or "
			 "nvidia.com/container.NAME.gpu-memory.limit"},
	{.name = "a fraction and the other family",
		.annotations =
			"\"gpu-fraction\":\"0.5\"," NV("main", "request") ":\"2Gi\"",
		.error = "are both given: keep one of them"},
	{.name = "both families, contradicting about the container",
		.annotations = "\"gpu-fraction-container-name\":\"side\"," NV(
			"main", "request") ":\"2Gi\"",
		.error = "container \"main\" asks"},
	{.name = "a whole GPU besides",
		.annotations = "\"gpu-fraction\":\"0.5\"",
		.more = ",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}",
		.error = "\"main\" asks for nvidia.com/gpu, and the pod's annotations"},
	{.name = "one of ours besides",
		.annotations = "\"gpu-fraction\":\"0.5\"",
		.more = ",\"resources\":{\"requests\":{\"sluice.dev/gpu\":1}}",
		.error = "asks for sluice.dev/gpu"},
	{.name = "units of the device plugin besides",
		.annotations = "\"gpu-fraction\":\"0.5\"",
		.more = ",\"resources\":{\"limits\":{\"sluice.dev/memory\":4}}",
		.error = "asks for sluice.dev/memory"},
	{.name = "a whole GPU alone",
		.annotations = "\"a\":\"b\"",
		.more = ",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}"},
};

static void describe(const struct sl_asks *asks, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < asks->count; i++) {
		const struct sl_ask *ask = &asks->of[i];
		char request[32], limit[32] = "-", time[32] = "";

		(void)sl_amount_format(&ask->request, request, sizeof(request));
		if (ask->limit.kind != SL_AMOUNT_UNSET)
			(void)sl_amount_format(&ask->limit, limit, sizeof(limit));
		if (ask->compute_pct || ask->compute_limit_pct)
			(void)snprintf(time, sizeof(time), " %u/%u", ask->compute_pct,
				ask->compute_limit_pct);
		used += (size_t)snprintf(out + used, size - used, "%s %zu %s %s %u%s;",
			ask->list, ask->index, request, limit, ask->gpus, time);
	}
}

static void each_row(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		json_t *pod = pod_of(row->annotations, row->more ? row->more : "");
		struct sl_error err = {0};
		struct sl_asks asks;
		char got[512];
		int r = sl_asks_read(pod, &asks, &err);
		int want = row->error  ? SL_ASKS_BAD
			   : row->asks ? SL_ASKS_OK
				       : SL_ASKS_NONE;

		describe(&asks, got, sizeof(got));
		if (r != want || (row->asks && strcmp(row->asks, got) != 0) ||
			(row->error && !strstr(err.text, row->error)))
			fail_msg("%s: outcome %d, wanted %d; asks \"%s\", wanted \"%s\"; "
				 "error \"%s\", wanted \"%s\"",
				row->name, r, want, got, row->asks ? row->asks : "",
				err.text, row->error ? row->error : "");
		json_decref(pod);
	}
}

/* 40 containers ask; and a pod that has none is asked for. */
static void too_many(void **state)
{
	json_t *containers = json_array(), *annotations = json_object(), *pod;
	struct sl_error err = {0};
	struct sl_asks asks;
	char name[32], key[128];

	for (int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "c%d", i);
		(void)snprintf(key, sizeof(key),
			"nvidia.com/container.%s.gpu-memory.limit", name);
		assert_int_equal(json_array_append_new(
					 containers, json_pack("{ss}", "name", name)),
			0);
		assert_int_equal(
			json_object_set_new(annotations, key, json_string("1Gi")), 0);
	}
	pod = json_pack("{s{so}s{so}}", "metadata", "annotations", annotations, "spec",
		"containers", containers);
	assert_int_equal(sl_asks_read(pod, &asks, &err), SL_ASKS_BAD);
	assert_non_null(strstr(err.text, "more than 32 containers"));
	json_decref(pod);
	pod = json_pack("{s{s{ss}}}", "metadata", "annotations", "gpu-fraction", "0.5");
	assert_int_equal(sl_asks_read(pod, &asks, &err), SL_ASKS_BAD);
	json_decref(pod);
	assert_int_equal(sl_asks_read(NULL, &asks, &err), SL_ASKS_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row),
		cmocka_unit_test(too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
