/*
 * The project of a pod: Projects, and KAI's Queues where the API server has them.
 */
#include "stage.h"

#include <string.h>

#include "policy/quota/tree.h"

#define NONE SL_QUOTA_ALL

static void project(enum sl_kube_event_kind kind, const char *name, const char *spec)
{
	stage_event(SL_KS_WATCH_PROJECTS, kind,
		"{\"metadata\":{\"name\":\"%s\"},\"spec\":{%s}}", name, spec);
	stage_settle();
}

static void queue(enum sl_kube_event_kind kind, const char *name, const char *parent,
	const char *gpu)
{
	stage_event(SL_KS_WATCH_QUEUES, kind,
		"{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"parentQueue\":\"%s\","
		"\"resources\":{\"gpu\":{%s}}}}",
		name, parent, gpu);
	stage_settle();
}

static const char *project_of(
	const char *namespace, const char *project, const char *label)
{
	struct sl_facts_pod pod = {0};
	bool is_assigned;
	const struct sl_ks_project *found;

	(void)snprintf(pod.namespace, sizeof(pod.namespace), "%s", namespace);
	(void)snprintf(pod.project, sizeof(pod.project), "%s", project);
	(void)snprintf(pod.queue, sizeof(pod.queue), "%s", label);
	found = sl_ks_project_of(stage(), &pod, &is_assigned);
	return is_assigned ? found->named.key : "";
}

/* Its guarantee, of which nothing below it has any; the machine has taken it. */
static int64_t quota_of(const char *name)
{
	const struct sl_ks_project *found = sl_ks_find(&stage()->projects_by_name, name);

	assert_non_null(found);
	assert_string_equal(found->trouble, "");
	return found->left;
}

/* The label of a pod is read by sl_facts_pod(). */
static void a_pod_names_its_queue(void **state)
{
	project(SL_KUBE_ADDED, "ours", "\"quota\":1,\"namespaces\":[\"n\"]");
	assert_string_equal(project_of("n", "", "team"), "ours");
	queue(SL_KUBE_ADDED, "team", "", "\"quota\":2,\"limit\":-1");
	assert_string_equal(project_of("n", "", "team"), "team");
	assert_string_equal(project_of("n", "ours", "team"), "ours");
	assert_string_equal(project_of("n", "", "ours"), "ours");
	assert_string_equal(project_of("m", "", "ours"), "");
	stage_pod(
		SL_KUBE_ADDED, "p", ",\"labels\":{\"kai.scheduler/queue\":\"team\"}", "");
	assert_string_equal(stage_find_pod("p")->facts.queue, "team");
	queue(SL_KUBE_DELETED, "team", "", "");
	assert_string_equal(project_of("n", "", "team"), "ours");
}

/* Its spec counts until it is gone. */
static void our_project_of_the_same_name_wins(void **state)
{
	queue(SL_KUBE_ADDED, "team", "", "\"quota\":2,\"limit\":-1");
	assert_int_equal(quota_of("team"), 2000);
	project(SL_KUBE_ADDED, "team", "\"quota\":3");
	assert_int_equal(quota_of("team"), 3000);
	queue(SL_KUBE_MODIFIED, "team", "", "\"quota\":9,\"limit\":-1");
	assert_int_equal(quota_of("team"), 3000);
	project(SL_KUBE_DELETED, "team", "");
	assert_int_equal(quota_of("team"), 9000);
	queue(SL_KUBE_DELETED, "team", "", "");
	assert_null(sl_ks_find(&stage()->projects_by_name, "team"));
}

/* KAI only warns of it. */
static void children_share_what_their_parent_has(void **state)
{
	queue(SL_KUBE_ADDED, "lab", "", "\"quota\":3,\"limit\":-1");
	queue(SL_KUBE_ADDED, "a", "lab", "\"quota\":2,\"limit\":-1");
	queue(SL_KUBE_ADDED, "b", "lab", "\"quota\":2,\"limit\":-1");
	queue(SL_KUBE_ADDED, "c", "lab", "\"quota\":-1,\"limit\":-1");
	assert_int_equal(quota_of("a"), 2000);
	assert_int_equal(quota_of("b"), 1000);
	assert_int_equal(quota_of("c"), NONE);
	queue(SL_KUBE_MODIFIED, "lab", "", "\"quota\":-1,\"limit\":-1");
	assert_int_equal(quota_of("lab"), NONE);
	assert_int_equal(quota_of("b"), 2000);
}

/* Its status is KAI's. */
static void a_queue_is_told_nothing(void **state)
{
	queue(SL_KUBE_ADDED, "team", "absent", "\"quota\":99");
	stage_tell();
	assert_int_equal(stage_count_calls("team"), 0);
	assert_string_equal(project_of("n", "", "team"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)
		TEST(a_pod_names_its_queue),
		TEST(our_project_of_the_same_name_wins),
		TEST(children_share_what_their_parent_has),
		TEST(a_queue_is_told_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
