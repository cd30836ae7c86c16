/*
 * What the scheduler tells pods and Projects, and that it goes on telling whatever was deleted.
 */
#include "stage.h"

#include <stdio.h>
#include <string.h>

#define ABSENT ",\"resourceClaims\":[{\"name\":\"g\",\"resourceClaimName\":\"absent\"}]"

/* Pods that go while they are told take their calls along. */
static void others_are_told_after_pods_are_gone(void **state)
{
	char name[16];

	for (int i = 0; i < 6; i++) {
		(void)snprintf(name, sizeof(name), "w%d", i);
		stage_pod(SL_KUBE_ADDED, name, "", ABSENT);
	}
	stage_settle();
	stage_tell();
	assert_int_equal(stage_count_calls("/pods/w"), 4);
	for (int i = 0; i < 6; i++) {
		(void)snprintf(name, sizeof(name), "w%d", i);
		stage_pod(SL_KUBE_DELETED, name, "", ABSENT);
	}
	stage_settle();
	assert_int_equal(stage_count_calls("/pods/w"), 0);
	stage_pod(SL_KUBE_ADDED, "later", "", ABSENT);
	stage_settle();
	stage_tell();
	assert_int_equal(stage_count_calls("/pods/later/status"), 1);
}

/* Between the event and the cycle that makes the machine anew. */
static void a_project_that_is_gone_has_no_namespaces(void **state)
{
	struct sl_facts_pod pod = {.namespace = "n"};
	bool is_assigned;

	stage_event(SL_KS_WATCH_PROJECTS, SL_KUBE_ADDED,
		"{\"metadata\":{\"name\":\"vision\"},\"spec\":{\"quota\":1,"
		"\"namespaces\":"
		"[\"n\"]}}");
	stage_settle();
	assert_string_equal(
		sl_ks_project_of(stage(), &pod, &is_assigned)->named.key, "vision");
	assert_true(is_assigned);
	stage_event(SL_KS_WATCH_PROJECTS, SL_KUBE_DELETED,
		"{\"metadata\":{\"name\":\"vision\"}}");
	assert_ptr_equal(
		sl_ks_project_of(stage(), &pod, &is_assigned), &stage()->nameless);
	assert_false(is_assigned);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)
		TEST(others_are_told_after_pods_are_gone),
		TEST(a_project_that_is_gone_has_no_namespaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
