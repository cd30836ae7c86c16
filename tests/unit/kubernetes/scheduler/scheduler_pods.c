/*
 * Places of pods and owners of claims, as watches tell them: late, in any order, after a restart.
 */
#include "store.h"

#include <stdio.h>
#include <string.h>

#define CLAIM(name) \
	",\"resourceClaims\":[{\"name\":\"gpu\",\"resourceClaimName\":\"" name "\"}]"
#define CPU(count) \
	",\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"" count "\"}}}]"
#define ON_A ",\"nodeName\":\"a\""

static void pair(const char *name, const char *memory)
{
	char spec[200];

	(void)snprintf(spec, sizeof(spec),
		",\"resourceClaims\":[{\"name\":\"gpu\",\"resourceClaimName\":\"%s\"}]",
		name);
	store_claim(name, name, 5, memory);
	stage_pod(SL_KUBE_ADDED, name, "", spec);
}

/* Another one of that name. */
static void twin(const char *name, const char *meta, const char *spec)
{
	stage_event(SL_KS_WATCH_PODS, SL_KUBE_ADDED,
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"uid\":\"%s-twin\"%s"
		"},\"spec\":{\"schedulerName\":\"sluice\"%s}}",
		name, name, meta, spec);
}

static unsigned int pods_known(void)
{
	unsigned int count = 0;

	sl_list_foreach (link, &stage()->pods)
		count++;
	return count;
}

/* What the machine has of the pod's task. */
static struct sl_cluster_task_view task(const char *name)
{
	const struct sl_ks_pod *pod = stage_find_pod(name);

	assert_non_null(pod->job);
	return sl_cluster_task(stage()->cluster, pod->job->index.id, pod->task);
}

static uint32_t gpu_mask(const char *name)
{
	return stage_find_pod(name)->place.gpu_mask;
}

static void node(void)
{
	stage_node(SL_KUBE_ADDED, "a", "", 8);
	stage_slice(SL_KUBE_ADDED, "a", 1, 80);
}

static void start(void)
{
	stage_start(60 * SL_S);
	node();
}

/* --- After a restart. --------------------------------------------------------------------- */

static void a_member_is_made_anew_before_the_first_cycle(void **state)
{
	static const char gang[] =
		",\"labels\":{\"sluice.dev/gang\":\"g\",\"sluice.dev/gang-min\":\"2\"}";

	start();
	stage_pod(SL_KUBE_ADDED, "m0", gang, "");
	stage_pod(SL_KUBE_ADDED, "m1", gang, "");
	stage_pod(SL_KUBE_ADDED, "m2", gang, "");
	twin("m0", gang, "");
	stage_sync();
	assert_string_equal(stage_find_pod("m0")->facts.uid, "m0-twin");
	assert_int_equal(pods_known(), 3);
	store_serve_all();
	assert_int_equal(store_bindings(), 3);
}

/* A PodGroup and a label may have one name. */
static void a_group_is_no_gang_of_labels(void **state)
{
	start();
	stage_event(SL_KS_WATCH_GROUPS, SL_KUBE_ADDED,
		"{\"metadata\":{\"name\":\"g\",\"namespace\":\"n\"},\"spec\":{"
		"\"schedulingPolicy\":{\"gang\":{\"minCount\":2}}}}");
	stage_pod(SL_KUBE_ADDED, "grouped", "",
		",\"schedulingGroup\":{\"podGroupName\":\"g\"}");
	stage_pod(SL_KUBE_ADDED, "labelled",
		",\"labels\":{\"sluice.dev/gang\":\"g\",\"sluice.dev/gang-min\":\"1\"}",
		"");
	stage_sync();
	assert_string_equal(stage_place("labelled"), "a");
	assert_string_equal(stage_place("grouped"), "");
	stage_pod(SL_KUBE_ADDED, "second", "",
		",\"schedulingGroup\":{\"podGroupName\":\"g\"}");
	stage_settle();
	assert_string_equal(stage_place("grouped"), "a");
}

/* The pod is met before its node is known to the machine. */
static void a_share_found_half_written_stays_a_share(void **state)
{
	start();
	store_allocated("p", "10Gi", "a", "p", "");
	stage_pod(SL_KUBE_ADDED, "p", "", CLAIM("p"));
	stage_sync();
	store_serve_all();
	assert_int_equal(store_bindings(), 1);
	assert_int_equal(task("p").place.milli, 125);
	pair("q", "60Gi");
	store_serve_all();
	assert_int_equal(store_bindings(), 1);
}

/* What its claim names is known last. */
static void a_share_is_bound_that_was_found_before_its_node(void **state)
{
	stage_start(60 * SL_S);
	store_allocated("p", "10Gi", "a", "p", "");
	stage_pod(SL_KUBE_ADDED, "p", "", CLAIM("p"));
	node();
	stage_sync();
	store_serve_all();
	assert_int_equal(store_bindings(), 1);
	assert_int_equal(task("p").state, SL_TASK_RUNNING);
}

static void a_pod_whose_device_is_unknown_has_its_cores(void **state)
{
	stage_start(60 * SL_S);
	stage_node(SL_KUBE_ADDED, "a", "", 8);
	store_allocated("runs", "80Gi", "a", "runs", "");
	stage_pod(SL_KUBE_ADDED, "runs", "", ON_A CLAIM("runs") CPU("7"));
	stage_sync();
	stage_pod(SL_KUBE_ADDED, "q", "", CPU("7"));
	stage_settle();
	assert_string_equal(stage_place("q"), "");
	assert_int_equal(stage_find_pod("runs")->place.node->pods, 1);
	stage_slice(SL_KUBE_ADDED, "a", 1, 80);
	pair("gpu", "1Gi");
	stage_settle();
	assert_int_equal(gpu_mask("runs"), 1);
	assert_int_equal(task("runs").place.milli, SL_FIT_WHOLE);
	assert_string_equal(stage_place("gpu"), "");
}

/* One of its two GPUs is not published any more: the other one is its own all the same. */
static void a_gpu_counts_beside_one_that_is_unknown(void **state)
{
	static const char claim[] =
		"{\"metadata\":{\"name\":\"runs\",\"namespace\":\"n\",\"uid\":\"runs\","
		"\"resourceVersion\":\"5\"},\"spec\":{\"devices\":{\"requests\":[{"
		"\"name\":"
		"\"gpu\",\"exactly\":{\"deviceClassName\":\"gpu.sluice.dev\",\"count\":2}"
		"}]}"
		"},\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"driver\":"
		"\"gpu.sluice.dev\",\"pool\":\"a\",\"device\":\"gpu-0\","
		"\"consumedCapacity\":"
		"{\"memory\":\"80Gi\"}},{\"driver\":\"gpu.sluice.dev\",\"pool\":\"a\","
		"\"device\":\"gpu-1\",\"consumedCapacity\":{\"memory\":\"80Gi\"}}]}},"
		"\"reservedFor\":[{\"uid\":\"runs\"}]}}";

	start();
	stage_event(SL_KS_WATCH_CLAIMS, SL_KUBE_ADDED, "%s", claim);
	stage_pod(SL_KUBE_ADDED, "runs", "", ON_A CLAIM("runs"));
	stage_sync();
	pair("q", "1Gi");
	stage_settle();
	assert_int_equal(gpu_mask("runs"), 1);
	assert_string_equal(stage_place("q"), "");
	stage_slice(SL_KUBE_MODIFIED, "a", 2, 80);
	stage_settle();
	assert_int_equal(gpu_mask("runs"), 3);
	assert_string_equal(stage_place("q"), "");
}

/* Its claim is on one that is not the node it was bound to, and comes to be known. */
static void a_device_counts_once_its_node_is_known(void **state)
{
	stage_node(SL_KUBE_ADDED, "b", "", 8);
	store_allocated("runs", "80Gi", "a", "runs", "");
	stage_pod(SL_KUBE_ADDED, "runs", "", ",\"nodeName\":\"b\"" CLAIM("runs"));
	stage_settle();
	assert_string_equal(stage_place("runs"), "b");
	node();
	pair("q", "80Gi");
	stage_settle();
	assert_string_equal(stage_place("runs"), "a");
	assert_string_equal(stage_place("q"), "");
}

/* Its pod is another scheduler's. The node is of a kind that there is. */
static void a_claim_counts_once_its_node_is_known(void **state)
{
	stage_node(SL_KUBE_ADDED, "b", "", 8);
	stage_slice(SL_KUBE_ADDED, "a", 1, 80);
	store_allocated("strange", "80Gi", "a", "strange", "");
	pair("q", "80Gi");
	stage_settle();
	stage_node(SL_KUBE_ADDED, "a", "", 8);
	stage_settle();
	assert_string_equal(stage_place("q"), "");
}

/* As its node has confirmed it. */
static void parked(const char *name)
{
	stage_event(SL_KS_WATCH_CLAIMS, SL_KUBE_ADDED,
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"uid\":\"%s\","
		"\"resourceVersion\":\"5\"},\"status\":{\"allocation\":{\"devices\":{"
		"\"results\":[{\"driver\":\"gpu.sluice.dev\",\"pool\":\"a\",\"device\":"
		"\"gpu-0\",\"consumedCapacity\":{\"memory\":\"80Gi\"}}]}},"
		"\"reservedFor\":[{\"uid\":\"%s\"}],\"devices\":[{\"driver\":"
		"\"gpu.sluice.dev\",\"conditions\":[{\"type\":\"Parked\",\"status\":"
		"\"True\"}]}]}}",
		name, name, name);
	stage_event(SL_KS_WATCH_PODS, SL_KUBE_ADDED,
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"uid\":\"%s\"},"
		"\"spec\":{\"schedulerName\":\"sluice\",\"nodeName\":\"a\","
		"\"resourceClaims\":[{\"name\":\"gpu\",\"resourceClaimName\":\"%s\"}]},"
		"\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":"
		"\"sluice.dev/Parked\",\"status\":\"True\"}]}}",
		name, name, name);
}

/* The node comes to be known before its GPUs; another pod has the one that it was on. */
static void a_parked_pod_waits_for_its_gpu_to_be_known(void **state)
{
	stage_start(60 * SL_S);
	parked("p");
	store_allocated("runs", "80Gi", "a", "runs", "");
	stage_pod(SL_KUBE_ADDED, "runs", "", ON_A CLAIM("runs"));
	stage_sync();
	stage_node(SL_KUBE_ADDED, "a", "", 8);
	stage_settle();
	assert_false(stage_find_pod("p")->resumes);
	stage_slice(SL_KUBE_ADDED, "a", 1, 80);
	stage_settle();
	assert_false(stage_find_pod("p")->resumes);
	stage_pod(SL_KUBE_DELETED, "runs", "", "");
	store_event(SL_KUBE_DELETED, "runs");
	stage_settle();
	assert_true(stage_find_pod("p")->resumes);
}

/* --- Two pods, one claim. ----------------------------------------------------------------- */

static void a_claim_is_whose_it_is_allocated_to(void **state)
{
	static const char *const rows[] = {"the claim comes first", "pods come first"};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		start();
		if (i == 0)
			store_allocated("c", "80Gi", "a", "runs", "");
		stage_pod(SL_KUBE_ADDED, "a-waits", "", CLAIM("c"));
		stage_pod(SL_KUBE_ADDED, "runs", "", ON_A CLAIM("c"));
		if (i == 1)
			store_allocated("c", "80Gi", "a", "runs", "");
		pair("late", "80Gi");
		stage_sync();
		assert_row_text(rows[i], stage_place("late"), "");
		stage_pod(SL_KUBE_DELETED, "late", "", CLAIM("late"));
		assert_row_u64(rows[i], gpu_mask("runs"), 1);
		assert_row_u64(rows[i], task("runs").state, SL_TASK_RUNNING);
		assert_row_text(rows[i], stage_place("a-waits"), "");
		/* It comes to the other one. */
		stage_pod(SL_KUBE_DELETED, "runs", "", CLAIM("c"));
		store_claim("c", "c", 9, "80Gi");
		store_serve_all();
		assert_row_u64(rows[i], store_bindings(), 1);
		assert_row_text(rows[i], stage_place("a-waits"), "a");
		store_close(state);
	}
}

static void a_claim_is_dropped_that_two_pods_named(void **state)
{
	node();
	store_claim("c", "c", 5, "90Gi");
	stage_pod(SL_KUBE_ADDED, "one", "", CLAIM("c"));
	stage_pod(SL_KUBE_ADDED, "two", "", CLAIM("c"));
	stage_settle();
	store_event(SL_KUBE_DELETED, "c");
	stage_pod(SL_KUBE_DELETED, "one", "", CLAIM("c"));
	stage_settle();
	stage_pod(SL_KUBE_MODIFIED, "two", ",\"labels\":{\"x\":\"y\"}", CLAIM("c"));
	stage_settle();
	store_claim("c", "new", 9, "80Gi");
	store_serve_all();
	assert_int_equal(store_bindings(), 1);
}

/* --- Late events. ------------------------------------------------------------------------- */

static void a_bound_pod_stays_on_its_node(void **state)
{
	node();
	stage_pod(SL_KUBE_ADDED, "p", "", CPU("7"));
	store_serve_all();
	assert_int_equal(store_bindings(), 1);
	stage_pod(SL_KUBE_MODIFIED, "p", ",\"labels\":{\"x\":\"y\"}", CPU("7"));
	stage_settle();
	assert_string_equal(stage_place("p"), "a");
	stage_pod(SL_KUBE_ADDED, "q", "", CPU("7"));
	store_serve_all();
	assert_int_equal(store_bindings(), 0);
}

/* The known version of "c" is newer than the watch's. */
static void an_older_claim_overwrites_no_newer_one(void **state)
{
	static const char older[] =
		"{\"metadata\":{\"name\":\"c\",\"namespace\":\"n\",\"uid\":\"%s\","
		"\"resourceVersion\":\"%d\"}}";
	const struct sl_ks_claim *claim;

	store_claim("c", "new", 20, "10Gi");
	stage_pod(SL_KUBE_ADDED, "p", "", CLAIM("c"));
	claim = stage_find_pod("p")->claim;
	stage_event(SL_KS_WATCH_CLAIMS, SL_KUBE_MODIFIED, older, "old", 15);
	assert_string_equal(claim->facts.uid, "new");
	stage_event(SL_KS_WATCH_CLAIMS, SL_KUBE_DELETED, older, "old", 16);
	assert_true(claim->is_there);
	/* Nor does one come back that is gone. */
	store_event(SL_KUBE_DELETED, "c");
	store_event(SL_KUBE_MODIFIED, "c");
	assert_false(claim->is_there);
	store_claim("c", "newer", 30, "10Gi");
	assert_true(claim->is_there);
}

/* Until the last write for a pod is answered it may have been carried out, whatever pod has the
 * name now. */
static void a_write_for_a_pod_that_was_replaced_keeps_its_place(void **state)
{
	node();
	pair("p", "80Gi");
	stage_settle();
	store_serve(stage_find_call("/resourceclaims/p"));
	assert_non_null(stage_find_call("/resourceclaims/p/status"));
	twin("p", "", CLAIM("p"));
	pair("q", "10Gi");
	stage_settle();
	assert_int_equal(pods_known(), 3);
	assert_null(stage_find_call("/resourceclaims/q"));
	assert_string_equal(stage_place("p"), "");
	/* Its job is its own. */
	assert_ptr_equal(
		stage_find_pod("p")->in_job.next, stage_find_pod("p")->in_job.prev);
	stage_answer(stage_find_call("/resourceclaims/p/status"), 503, NULL);
	stage_settle();
	assert_null(stage_find_call("/resourceclaims/q"));
	/* It was not done. */
	store_serve(stage_find_call("/resourceclaims/p"));
	stage_settle();
	assert_int_equal(pods_known(), 2);
	store_serve_all();
	assert_int_equal(store_bindings(), 1);
}

/* --- Which GPU. --------------------------------------------------------------------------- */

/* Two halves share a GPU, so that a pod has a whole one; or they have one each, and it waits. */
static void halves_are_packed_or_spread(void **state)
{
	static const struct {
		const char *name;
		enum sl_placement_policy placement;
		bool apart;
	} rows[] = {
		{"packed", SL_PLACE_PACK, false},
		{"spread", SL_PLACE_SPREAD, true},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		stage_start(60 * SL_S);
		stage()->options.placement = rows[i].placement;
		stage_sync();
		stage_node(SL_KUBE_ADDED, "a", "", 8);
		stage_slice(SL_KUBE_ADDED, "a", 2, 80);
		pair("one", "40Gi");
		pair("two", "40Gi");
		store_serve_all();
		assert_row_u64(
			rows[i].name, gpu_mask("one") != gpu_mask("two"), rows[i].apart);
		pair("whole", "80Gi");
		store_serve_all();
		assert_row_u64(rows[i].name, store_bindings(), rows[i].apart ? 2 : 3);
		(void)store_close(state);
	}
}

#define TEST(name)     cmocka_unit_test_setup_teardown(name, stage_open, store_close)
#define TEST_NEW(name) cmocka_unit_test_teardown(name, store_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_NEW(a_member_is_made_anew_before_the_first_cycle),
		TEST_NEW(a_group_is_no_gang_of_labels),
		TEST_NEW(a_share_found_half_written_stays_a_share),
		TEST_NEW(a_share_is_bound_that_was_found_before_its_node),
		TEST_NEW(a_pod_whose_device_is_unknown_has_its_cores),
		TEST_NEW(a_gpu_counts_beside_one_that_is_unknown),
		TEST(a_device_counts_once_its_node_is_known),
		TEST(a_claim_counts_once_its_node_is_known),
		TEST_NEW(a_parked_pod_waits_for_its_gpu_to_be_known),
		cmocka_unit_test(a_claim_is_whose_it_is_allocated_to),
		TEST(a_claim_is_dropped_that_two_pods_named),
		TEST(a_bound_pod_stays_on_its_node),
		TEST(an_older_claim_overwrites_no_newer_one),
		TEST(a_write_for_a_pod_that_was_replaced_keeps_its_place),
		cmocka_unit_test(halves_are_packed_or_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
