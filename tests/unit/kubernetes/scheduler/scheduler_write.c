/*
 * How pods are placed: which writes are made, when none is made, and what each answer leads to. One
 * node with GPUs of 80 GiB unless a test says otherwise.
 */
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/kubernetes/api/parse.h"

#define LEAVING ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"finalizers\":[\"x/y\"]"

static void node(unsigned int pods, const char *spec)
{
	stage_event(SL_KS_WATCH_NODES, SL_KUBE_MODIFIED,
		"{\"metadata\":{\"name\":\"a\"},\"spec\":{%s},\"status\":{"
		"\"allocatable\":"
		"{\"cpu\":\"64\",\"memory\":\"640Gi\",\"pods\":\"%u\"},\"conditions\":[{"
		"\"type\":\"Ready\",\"status\":\"True\"}]}}",
		spec, pods);
}

static void nodes(unsigned int gpus, unsigned int pods)
{
	node(pods, "");
	stage_slice(SL_KUBE_ADDED, "a", gpus, 80);
	stage_settle();
}

static void pod(enum sl_kube_event_kind kind, const char *name, const char *claim,
	const char *meta)
{
	char spec[200];

	(void)snprintf(spec, sizeof(spec),
		",\"resourceClaims\":[{\"name\":\"gpu\",\"resourceClaimName\":\"%s\"}]",
		claim);
	stage_pod(kind, name, meta, spec);
}

/* A pod and its claim, of the same name. */
static void pair(const char *name, const char *memory)
{
	store_claim(name, name, 5, memory);
	pod(SL_KUBE_ADDED, name, name, "");
}

static void pairs(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "p%u", i);
		pair(name, "1Gi");
	}
	stage_settle();
}

static void end_pair(const char *name)
{
	pod(SL_KUBE_DELETED, name, name, "");
	store_event(SL_KUBE_DELETED, name);
}

/* Claims are written, until only bindings are under way. */
static void serve_claims(void)
{
	struct stage_call *call;

	while ((call = stage_find_call("/resourceclaims/")))
		store_serve(call);
}

static json_t *unbound(const struct stage_call *call)
{
	char name[32] = "";

	(void)sscanf(call->path, "/api/v1/namespaces/n/pods/%31s", name);
	return json_pack("{s{ss ss ss} s{}}", "metadata", "name", name, "namespace", "n",
		"uid", name, "spec");
}

/* --- Writes. ------------------------------------------------------------------------------ */

/* There is no other place for its pod, and the finalizer keeps it. */
static void a_claim_that_is_leaving_is_bound(void **state)
{
	stage_start(60 * SL_S);
	node(110, "");
	stage_slice(SL_KUBE_ADDED, "a", 1, 80);
	store_allocated("p", "6Gi", "a", "p", LEAVING);
	pod(SL_KUBE_ADDED, "p", "p", "");
	stage_sync();
	store_serve_all();
	assert_int_equal(store_bindings(), 1);
}

static void replace_by_larger(void)
{
	store_event(SL_KUBE_DELETED, "p");
	store_claim("p", "another", 20, "80Gi");
}

static void a_claim_that_grew_before_it_was_written(void **state)
{
	nodes(1, 110);
	pair("big", "70Gi");
	store_serve_all();
	pair("p", "10Gi");
	stage_settle();
	assert_non_null(stage_find_call("/resourceclaims/p"));
	replace_by_larger();
	store_serve_all();
	assert_string_equal(store_consumed("p"), "");
	assert_int_equal(store_bindings(), 1);
	end_pair("big");
	store_serve_all();
	assert_string_equal(store_consumed("p"), "80Gi");
	assert_int_equal(store_bindings(), 1);
}

static void a_claim_that_grew_while_it_waited(void **state)
{
	nodes(1, 110);
	pair("big", "70Gi");
	pair("small", "10Gi");
	store_serve_all();
	pair("p", "10Gi");
	stage_settle();
	assert_int_equal(stage_find_pod("p")->believed, SL_KS_QUEUED);
	replace_by_larger();
	stage_settle();
	end_pair("small");
	store_serve_all();
	assert_string_equal(store_consumed("p"), "");
	end_pair("big");
	store_serve_all();
	assert_string_equal(store_consumed("p"), "80Gi");
}

static void a_node_has_no_more_pods_than_it_may(void **state)
{
	nodes(8, 5);
	pairs(12);
	store_serve_all();
	assert_int_equal(store_bindings(), 5);
}

/* A cordon counts for claims that are not allocated yet, also for those that wait for
 * their turn. */
static void nothing_is_written_to_a_node_that_closes(void **state)
{
	static const char *const closings[] = {"cordon", "taint of a GPU", "deletion"};

	for (size_t i = 0; i < SL_ARRAY_LEN(closings); i++) {
		stage_open(state);
		nodes(1, 110);
		pairs(30);
		assert_row_u64(
			closings[i], stage_count_calls("/resourceclaims/"), SL_KS_WRITES);
		if (i == 0)
			node(110, "\"unschedulable\":true");
		else if (i == 1)
			stage_slice(SL_KUBE_DELETED, "a", 0, 0);
		else
			stage_event(SL_KS_WATCH_NODES, SL_KUBE_DELETED,
				"{\"metadata\":{\"name\":\"a\"}}");
		store_serve_all();
		assert_row_u64(closings[i], store_bindings(), 0);
		assert_row_text(closings[i], store_consumed("p0"), "");
		assert_row_u64(closings[i], stage()->writing, 0);
		store_close(state);
	}
}

static void nothing_is_written_for_a_pod_that_goes(void **state)
{
	nodes(1, 110);
	pairs(22);
	pod(SL_KUBE_DELETED, "p0", "p0", "");
	pod(SL_KUBE_DELETED, "p20", "p20", "");
	pod(SL_KUBE_MODIFIED, "p21", "p21", LEAVING);
	store_serve_all();
	assert_int_equal(store_bindings(), 19);
	assert_string_equal(store_consumed("p0"), "");
	assert_string_equal(store_consumed("p20"), "");
	assert_string_equal(store_consumed("p21"), "");
	assert_null(stage_find_pod("p20"));
}

/* --- Answers. ----------------------------------------------------------------------------- */

/* It is not met again by an event that was on its way. */
static void a_pod_that_is_gone_stays_so(void **state)
{
	nodes(1, 110);
	pair("p", "10Gi");
	stage_settle();
	serve_claims();
	stage_answer(stage_find_call("/pods/p/binding"), 404, NULL);
	pod(SL_KUBE_MODIFIED, "p", "p", ",\"labels\":{\"x\":\"y\"}");
	stage_settle();
	assert_null(stage_find_pod("p"));
}

/* By a binding that was not answered, or by another scheduler. */
static void a_pod_that_is_bound_is_not_bound_again(void **state)
{
	static const struct {
		const char *name;
		bool watch_says_so;
		const char *node;
	} rows[] = {
		{"the watch says so, and a look was before it", true, "a"},
		{"a look says so", false, "b"},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct stage_call *look;
		json_t *answer;

		stage_open(state);
		nodes(0, 110);
		stage_pod(SL_KUBE_ADDED, "p", "", "");
		stage_settle();
		stage_answer(stage_find_call("/binding"), 503, NULL);
		look = stage_find_call("/pods/p");
		answer = unbound(look);
		if (rows[i].watch_says_so)
			stage_pod(SL_KUBE_MODIFIED, "p", "", ",\"nodeName\":\"a\"");
		else
			(void)json_object_set_new(json_object_get(answer, "spec"),
				"nodeName", json_string(rows[i].node));
		stage_answer(look, 200, answer);
		stage_settle();
		assert_row_u64(rows[i].name, stage_count_calls("/namespaces/n/"), 0);
		assert_row_text(rows[i].name, stage_place("p"), rows[i].node);
		if (rows[i].watch_says_so)
			assert_row_u64(rows[i].name,
				sl_cluster_task(stage()->cluster,
					stage_find_pod("p")->job->index.id, 0)
					.state,
				SL_TASK_RUNNING);
		store_close(state);
	}
}

static sl_ns held_until(const char *name)
{
	return sl_cluster_job(stage()->cluster, stage_find_pod(name)->job->index.id)
		.held_until;
}

static void a_write_that_is_refused_is_tried_later(void **state)
{
	static const struct {
		const char *name;
		bool is_protected;
		int status;
	} rows[] = {
		{"finalizer", false, 403},
		{"status", true, 422},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct stage_call *call;

		stage_open(state);
		nodes(1, 110);
		pair("p", "80Gi");
		stage_settle();
		if (rows[i].is_protected)
			store_serve(stage_find_call("/resourceclaims/p"));
		stage_answer(stage_find_call("/resourceclaims/p"), rows[i].status, NULL);
		stage_settle();
		assert_row_u64(rows[i].name, stage_count_calls("/namespaces/n/"), 0);
		assert_row_u64(rows[i].name, stage_find_pod("p")->believed, SL_KS_QUEUED);
		assert_row_u64(rows[i].name, held_until("p") > sl_clock_now(), true);
		stage_tell();
		call = stage_find_call("/pods/p/status");
		assert_non_null(call);
		assert_row_text(rows[i].name,
			sl_kube_text_at(json_array_get(sl_kube_at(call->body, "status",
							       "conditions", NULL),
						0),
				"message", NULL),
			"refused");
		stage_answer(call, 200, NULL);
		/* Another one gets the place meanwhile. */
		pair("q", "80Gi");
		stage_settle();
		assert_row_u64(rows[i].name, stage_count_calls("/resourceclaims/q"), 1);
		store_close(state);
	}
}

/* The machine that was made anew believes that it runs; the refusal counts all the same. */
static void a_write_is_refused_after_the_machine_was_made_anew(void **state)
{
	nodes(1, 110);
	pair("p", "10Gi");
	stage_settle();
	stage()->rebuild = true;
	stage_settle();
	stage_answer(stage_find_call("/resourceclaims/p"), 403, NULL);
	stage_settle();
	store_serve_all();
	assert_int_equal(store_bindings(), 1);
	assert_string_equal(store_consumed("p"), "10Gi");
}

/* --- What keeps others waiting. ----------------------------------------------------------- */

static void twenty_with_bindings(void)
{
	nodes(1, 110);
	pairs(SL_KS_WRITES);
	serve_claims();
	assert_int_equal(stage_count_calls("/binding"), SL_KS_WRITES);
}

static void pods_that_are_leaving_keep_no_others_waiting(void **state)
{
	struct stage_call *call;

	twenty_with_bindings();
	for (unsigned int i = 0; i < SL_KS_WRITES; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "p%u", i);
		pod(SL_KUBE_MODIFIED, name, name, LEAVING);
	}
	while ((call = stage_find_call("/binding")))
		stage_answer(call, 409, NULL);
	for (unsigned int i = 0; i < SL_KS_WRITES; i++) {
		call = stage_find_call("/pods/p");
		stage_answer(call, 200, unbound(call));
	}
	stage_settle();
	assert_int_equal(stage_count_calls("/namespaces/n/"), 0);
	assert_int_equal(stage()->writing, 0);
	pair("q", "1Gi");
	store_serve_all();
	assert_int_equal(store_bindings(), 1);
}

static void pods_in_their_back_off_keep_no_others_waiting(void **state)
{
	struct stage_call *call;

	twenty_with_bindings();
	while ((call = stage_find_call("/binding")))
		stage_answer(call, 403, NULL);
	assert_int_equal(stage_count_calls("/pods/p"), SL_KS_WRITES);
	assert_true(stage_find_call("/pods/p0")->after > 0);
	pair("q", "1Gi");
	stage_settle();
	serve_claims();
	assert_non_null(stage_find_call("/pods/q/binding"));
	/* And they come back. */
	stage_answer(
		stage_find_call("/pods/p0"), 200, unbound(stage_find_call("/pods/p0")));
	assert_non_null(stage_find_call("/pods/p0/binding"));
}

/* It ails: not every pod has to try. */
static void a_server_that_ails_is_not_asked_for_all(void **state)
{
	struct stage_call *call;

	nodes(1, 2 * SL_KS_CALLS);
	for (unsigned int i = 0; i < SL_KS_CALLS + 50; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "p%u", i);
		stage_pod(SL_KUBE_ADDED, name, "", "");
	}
	stage_settle();
	while ((call = stage_find_call("/binding")))
		stage_answer(call, 429, NULL);
	assert_int_equal(stage_count_calls("/pods/p"), SL_KS_CALLS);
	/* The next one, when one of them is done. */
	call = stage_find_call("/pods/p");
	stage_answer(call, 404, NULL);
	assert_int_equal(stage_count_calls("/binding"), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, store_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_claim_that_is_leaving_is_bound, store_close),
		TEST(a_claim_that_grew_before_it_was_written),
		TEST(a_claim_that_grew_while_it_waited),
		TEST(a_node_has_no_more_pods_than_it_may),
		cmocka_unit_test(nothing_is_written_to_a_node_that_closes),
		TEST(nothing_is_written_for_a_pod_that_goes),
		TEST(a_pod_that_is_gone_stays_so),
		cmocka_unit_test(a_pod_that_is_bound_is_not_bound_again),
		cmocka_unit_test(a_write_that_is_refused_is_tried_later),
		TEST(a_write_is_refused_after_the_machine_was_made_anew),
		TEST(pods_that_are_leaving_keep_no_others_waiting),
		TEST(pods_in_their_back_off_keep_no_others_waiting),
		TEST(a_server_that_ails_is_not_asked_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
