/*
 * Pods that ask for GPUs by limits: {sluice.dev/gpu: 1}. Checks the claim that is made for them,
 * and what the next scheduler does if one ends in the middle. One node with GPUs of 80 GiB.
 */
#include "store.h"

#include <stdio.h>
#include <string.h>

#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/scheduler/extended.h"

#define CLAIMS "/resourceclaims"
#define GPUS(name, count)   \
	"{\"name\":\"" name \
	"\",\"resources\":{\"requests\":{\"sluice.dev/gpu\":\"" count "\"}}}"
#define TWO ",\"containers\":[" GPUS("a", "2") "," GPUS("b", "1") "]"
#define ONE ",\"containers\":[" GPUS("a", "1") "]"

static char claim[SL_EXTENDED_NAME];

static void nodes(unsigned int gpus)
{
	stage_node(SL_KUBE_ADDED, "a", "", 64);
	stage_slice(SL_KUBE_ADDED, "a", gpus, 80);
	stage_settle();
}

/* Pod "p"; claim becomes the name of its claim. */
static void pod(const char *spec)
{
	sl_extended_name("p", "p", claim);
	stage_pod(SL_KUBE_ADDED, "p", "", spec);
	stage_settle();
}

static const json_t *result(unsigned int i)
{
	return json_array_get(sl_kube_at(store_find(claim), "status", "allocation",
				      "devices", "results", NULL),
		i);
}

static const char *why(void)
{
	static char text[256];

	(void)snprintf(text, sizeof(text), "%s", stage_find_pod("p")->trouble);
	if (!text[0])
		(void)sl_ks_pod_is_ready(stage_find_pod("p"), text, sizeof(text));
	return text;
}

/* --- Writes. ------------------------------------------------------------------------------ */

static void check_claim(const json_t *made)
{
	const json_t *meta = json_object_get(made, "metadata");
	const json_t *owner = json_array_get(json_object_get(meta, "ownerReferences"), 0);
	const json_t *requests = sl_kube_at(made, "spec", "devices", "requests", NULL);

	assert_string_equal(sl_kube_text_at(meta, "name", NULL), claim);
	assert_string_equal(
		sl_kube_text_at(meta, "annotations",
			"resource.kubernetes.io/extended-resource-claim", NULL),
		"true");
	assert_string_equal(sl_kube_text_at(owner, "kind", NULL), "Pod");
	assert_string_equal(sl_kube_text_at(owner, "uid", NULL), "p");
	assert_true(json_is_true(json_object_get(owner, "controller")));
	assert_int_equal(json_array_size(requests), 2);
	assert_string_equal(sl_kube_text_at(json_array_get(requests, 0), "exactly",
				    "deviceClassName", NULL),
		"gpu.sluice.dev");
}

static void check_status(const json_t *body)
{
	const json_t *status =
		sl_kube_at(body, "status", "extendedResourceClaimStatus", NULL);
	const json_t *mapping =
		json_array_get(json_object_get(status, "requestMappings"), 1);

	assert_string_equal(sl_kube_text_at(body, "metadata", "uid", NULL), "p");
	assert_string_equal(sl_kube_text_at(status, "resourceClaimName", NULL), claim);
	assert_string_equal(sl_kube_text_at(mapping, "containerName", NULL), "b");
	assert_string_equal(
		sl_kube_text_at(mapping, "resourceName", NULL), "sluice.dev/gpu");
	assert_string_equal(
		sl_kube_text_at(mapping, "requestName", NULL), "container-1-request-0");
}

static void a_claim_is_made_known_and_allocated(void **state)
{
	static const char *const requests[] = {"container-0-request-0",
		"container-0-request-0", "container-1-request-0"};

	nodes(4);
	pod(TWO);
	assert_int_equal(stage_count_calls("/namespaces/n/"), 1);
	check_claim(stage_find_call(CLAIMS)->body);
	store_serve(stage_find_call(CLAIMS));
	check_status(stage_find_call("/pods/p/status")->body);
	store_serve(stage_find_call("/pods/p/status"));
	assert_int_equal(stage_count_calls(CLAIMS), 1);
	store_serve(stage_find_call(CLAIMS));
	for (unsigned int i = 0; i < SL_ARRAY_LEN(requests); i++) {
		assert_row_text("request", sl_kube_text_at(result(i), "request", NULL),
			requests[i]);
		assert_row_text("memory",
			sl_kube_text_at(result(i), "consumedCapacity", "memory", NULL),
			"80Gi");
	}
	store_serve_all();
	assert_int_equal(store_bindings(), 1);
	assert_string_equal(stage_place("p"), "a");
}

/* Nothing is made for what does not fit; it is once there is room. */
static void one_that_does_not_fit_waits(void **state)
{
	nodes(1);
	store_claim("big", "big", 5, "1Gi");
	stage_pod(SL_KUBE_ADDED, "big", "",
		",\"resourceClaims\":[{\"name\":\"g\",\"resourceClaimName\":\"big\"}]");
	store_serve_all();
	pod(ONE);
	assert_int_equal(stage_count_calls(CLAIMS), 0);
	assert_int_equal(stage_find_pod("p")->believed, SL_KS_QUEUED);
	stage_pod(SL_KUBE_DELETED, "big", "", "");
	store_event(SL_KUBE_DELETED, "big");
	store_serve_all();
	assert_string_equal(store_consumed(claim), "80Gi");
	assert_int_equal(store_bindings(), 2);
}

/* --- In the middle. ----------------------------------------------------------------------- */

/* The scheduler before this one was killed: what there is is found again. */
static void what_was_begun_is_ended(void **state)
{
	static const struct {
		const char *name;
		unsigned int served; /* calls before the end */
		unsigned int creates, statuses, allocations;
	} rows[] = {
		{"before the claim", 0, 1, 1, 1},
		{"before the pod's status", 1, 0, 1, 1},
		{"before the allocation", 2, 0, 1, 1},
		{"before the binding", 3, 0, 0, 0},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		unsigned int creates = 0, statuses = 0, allocations = 0;
		struct stage_call *call;

		stage_open(state);
		nodes(1);
		pod(ONE);
		for (unsigned int k = 0; k < rows[i].served; k++)
			store_serve(stage_find_call("/namespaces/n/"));
		stage_close(state);
		stage_start(60 * SL_S);
		stage_node(SL_KUBE_ADDED, "a", "", 64);
		stage_slice(SL_KUBE_ADDED, "a", 1, 80);
		stage_pod(SL_KUBE_ADDED, "p", "", ONE);
		if (store_find(claim))
			store_event(SL_KUBE_ADDED, claim);
		stage_sync();
		while ((call = stage_find_call("/namespaces/n/"))) {
			creates +=
				call->verb == SL_KUBE_POST && strstr(call->path, CLAIMS);
			statuses += strstr(call->path, "/pods/p/status") != NULL;
			allocations += call->verb == SL_KUBE_MERGE;
			store_serve(call);
			stage_settle();
		}
		assert_row_u64(rows[i].name, creates, rows[i].creates);
		assert_row_u64(rows[i].name, statuses, rows[i].statuses);
		assert_row_u64(rows[i].name, allocations, rows[i].allocations);
		assert_row_u64(rows[i].name, store_bindings(), 1);
		assert_row_text(rows[i].name, store_consumed(claim), "80Gi");
		store_close(state);
	}
}

/* No answer, or "there is one already": the claim is looked for by its name. */
static void a_claim_is_not_made_twice(void **state)
{
	static const struct {
		const char *name;
		int status;
		bool was_made;
		unsigned int creates; /* after the look */
	} rows[] = {
		{"no answer, and made", 503, true, 0},
		{"no answer, and not made", 503, false, 1},
		{"it is there", 409, true, 0},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct stage_call *call;

		stage_open(state);
		nodes(1);
		pod(ONE);
		call = stage_find_call(CLAIMS);
		if (rows[i].was_made) {
			json_t *body = json_deep_copy(call->body);

			store_serve(call);
			stage_close(state);
			stage_open(state);
			nodes(1);
			pod(ONE);
			call = stage_find_call(CLAIMS);
			assert_true(json_equal(body, call->body));
			json_decref(body);
		}
		stage_answer(call, rows[i].status, NULL);
		assert_true(stage_find_call(CLAIMS)->verb == SL_KUBE_GET);
		store_serve(stage_find_call(CLAIMS));
		call = stage_find_call(CLAIMS);
		assert_row_u64(rows[i].name, call && call->verb == SL_KUBE_POST,
			rows[i].creates);
		store_serve_all();
		assert_row_u64(rows[i].name, store_bindings(), 1);
		store_close(state);
	}
}

/* Of that name, and not made for the pod: it is not touched. */
static void a_stranger_in_its_place_is_told(void **state)
{
	nodes(1);
	sl_extended_name("p", "p", claim);
	store_claim(claim, "x", 5, "1Gi");
	pod(ONE);
	store_serve_all();
	assert_string_equal(store_consumed(claim), "");
	assert_non_null(strstr(why(), "stands where the one for its limits belongs"));
	store_event(SL_KUBE_DELETED, claim);
	stage_settle();
	assert_true(stage_find_call(CLAIMS)->verb == SL_KUBE_POST);
}

static void a_pod_that_goes_gets_nothing(void **state)
{
	nodes(1);
	pod(ONE);
	stage_pod(SL_KUBE_DELETED, "p", "", ONE);
	store_serve_all();
	assert_string_equal(store_consumed(claim), "");
	assert_int_equal(store_bindings(), 0);
	assert_null(stage_find_pod("p"));
}

/* The field is dropped: no kubelet would find the claim. */
static void a_server_that_does_not_keep_the_claim(void **state)
{
	nodes(1);
	pod(ONE);
	store_serve(stage_find_call(CLAIMS));
	stage_answer(stage_find_call("/pods/p/status"), 200,
		json_pack("{s{ss}s{}}", "metadata", "uid", "p", "status"));
	stage_settle();
	assert_int_equal(stage_count_calls("/namespaces/n/"), 0);
	assert_string_equal(store_consumed(claim), "");
	assert_non_null(strstr(why(), "DRAExtendedResource is off"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, store_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_claim_is_made_known_and_allocated),
		TEST(one_that_does_not_fit_waits),
		cmocka_unit_test(what_was_begun_is_ended),
		cmocka_unit_test(a_claim_is_not_made_twice),
		TEST(a_stranger_in_its_place_is_told),
		TEST(a_pod_that_goes_gets_nothing),
		TEST(a_server_that_does_not_keep_the_claim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
