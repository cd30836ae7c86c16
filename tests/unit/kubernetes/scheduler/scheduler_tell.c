/*
 * What the scheduler tells pods and Projects, and that it goes on telling whatever was deleted.
 */
#include "stage.h"

#include <stdio.h>
#include <string.h>

#include "cluster/kubernetes/api/parse.h"

#define ABSENT ",\"resourceClaims\":[{\"name\":\"g\",\"resourceClaimName\":\"absent\"}]"
#define LONG   "xéééééééééééééééééééééééééééééééééééé"

static const char *message_of(const struct stage_call *call)
{
	return sl_kube_text_at(
		json_array_get(sl_kube_at(call->body, "status", "conditions", NULL), 0),
		"message", NULL);
}

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

/* A text that was cut within a character is told all the same, once. */
static void pods_are_told_in_utf8(void **state)
{
	stage_pod(SL_KUBE_ADDED, "p",
		",\"annotations\":{\"sluice.dev/gang\":\"g\",\"sluice.dev/"
		"gang-min\":\"" LONG "\"}",
		"");
	stage_settle();
	stage_tell();
	assert_non_null(stage_find_call("/pods/p/status"));
	assert_non_null(stage_find_call("/pods/p/status")->body);
	assert_non_null(strstr(
		message_of(stage_find_call("/pods/p/status")), "is no number from 1"));
	stage_answer(stage_find_call("/pods/p/status"), 200, NULL);
	stage_tell();
	assert_null(stage_find_call("/pods/p/status"));
}

static void projects_are_told_in_utf8(void **state)
{
	struct stage_call *call;
	char *conditions;

	stage_event(SL_KS_WATCH_PROJECTS, SL_KUBE_ADDED,
		"{\"metadata\":{\"name\":\"a\"},\"spec\":{\"parent\":\"x" LONG "\"}}");
	stage_settle();
	stage_tell();
	call = stage_find_call("/projects/a/status");
	assert_non_null(call);
	assert_non_null(call->body);
	assert_non_null(strstr(message_of(call), "does not exist"));
	conditions = json_dumps(sl_kube_at(call->body, "status", NULL), 0);
	stage_answer(call, 200, NULL);
	stage_event(SL_KS_WATCH_PROJECTS, SL_KUBE_MODIFIED,
		"{\"metadata\":{\"name\":\"a\"},\"spec\":{\"parent\":\"x" LONG
		"\"},\"status\":%s}",
		conditions);
	free(conditions);
	stage_settle();
	stage_tell();
	assert_null(stage_find_call("/projects/a/status"));
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
		TEST(pods_are_told_in_utf8),
		TEST(projects_are_told_in_utf8),
		TEST(a_project_that_is_gone_has_no_namespaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
