/*
 * Nodes of the scheduler: the kinds that rules of pods make of them, and when they are forgotten.
 */
#include "stage.h"

#include <stdio.h>
#include <string.h>

#define ONE_CPU   ",\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]"
#define MANY_CPUS ",\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"900\"}}}]"

/* The pod wants these CPUs, of a node with this label. */
static void pin(const char *pod, const char *label, const char *value, const char *cpus)
{
	char spec[300];

	(void)snprintf(spec, sizeof(spec), ",\"nodeSelector\":{\"%s\":\"%s\"}%s", label,
		value, cpus);
	stage_pod(SL_KUBE_ADDED, pod, "", spec);
}

static uint32_t count(const struct sl_link *list)
{
	uint32_t count = 0;

	sl_list_foreach (link, list)
		count++;
	return count;
}

/* More rules than kinds: a pod without rules gets every node, one with rules no wrong node. */
static void rules_take_no_node_from_others(void **state)
{
	char name[16], pod[16];
	uint32_t placed = 0;

	for (int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "n%02d", i);
		stage_node(SL_KUBE_ADDED, name, "", 1);
	}
	for (int i = 0; i < 35; i++) {
		(void)snprintf(name, sizeof(name), "n%02d", i);
		(void)snprintf(pod, sizeof(pod), "pin%02d", i);
		pin(pod, "host", name, MANY_CPUS);
	}
	pin("right", "host", "n03", ONE_CPU);
	pin("late", "host", "n33", ONE_CPU);
	stage_settle();
	assert_string_equal(stage_place("right"), "n03");
	assert_string_equal(stage_place("late"), "");
	for (int i = 0; i < 39; i++) {
		(void)snprintf(pod, sizeof(pod), "any%02d", i);
		stage_pod(SL_KUBE_ADDED, pod, "", ONE_CPU);
	}
	stage_settle();
	for (int i = 0; i < 39; i++) {
		(void)snprintf(pod, sizeof(pod), "any%02d", i);
		placed += stage_place(pod)[0] != '\0';
	}
	assert_int_equal(placed, 39);
}

/* No node changes its kind: there is one. */
static void a_label_of_the_only_kind_counts(void **state)
{
	stage_node(SL_KUBE_ADDED, "a", "", 8);
	pin("p", "tier", "gold", ONE_CPU);
	stage_settle();
	assert_string_equal(stage_place("p"), "");
	stage_node(SL_KUBE_MODIFIED, "a", ",\"tier\":\"gold\"", 8);
	stage_settle();
	assert_string_equal(stage_place("p"), "a");
}

static void a_label_that_is_gone_counts_no_more(void **state)
{
	stage_node(SL_KUBE_ADDED, "a", ",\"tier\":\"gold\"", 1);
	stage_pod(SL_KUBE_ADDED, "first", "", ONE_CPU);
	stage_settle();
	assert_string_equal(stage_place("first"), "a");
	pin("p", "tier", "gold", ONE_CPU);
	stage_settle();
	stage_node(SL_KUBE_MODIFIED, "a", "", 1);
	stage_settle();
	stage_node(SL_KUBE_MODIFIED, "a", "", 2);
	stage_settle();
	assert_string_equal(stage_place("p"), "");
	stage_node(SL_KUBE_MODIFIED, "a", ",\"tier\":\"gold\"", 2);
	stage_settle();
	assert_string_equal(stage_place("p"), "a");
}

/* A new rule splits a kind, and leaves all others unchanged. */
static void new_rules_split_kinds(void **state)
{
	stage_node(SL_KUBE_ADDED, "a", ",\"disk\":\"ssd\"", 1);
	stage_node(SL_KUBE_ADDED, "b", ",\"disk\":\"hdd\"", 1);
	stage_settle();
	pin("slow", "disk", "hdd", ONE_CPU);
	pin("fast", "disk", "ssd", ONE_CPU);
	stage_settle();
	assert_string_equal(stage_place("slow"), "b");
	assert_string_equal(stage_place("fast"), "a");
}

/* Rules of pods that are gone are kept for the next ones, but not all of them for ever. */
static void rules_are_forgotten(void **state)
{
	const struct sl_ks_node *a, *b;
	char name[16];

	stage_node(SL_KUBE_ADDED, "a", "", 8);
	stage_node(SL_KUBE_ADDED, "b", ",\"tier\":\"p5\"", 8);
	for (int i = 0; i < 600; i++) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		pin(name, "tier", name, MANY_CPUS);
		stage_pod(SL_KUBE_DELETED, name, "", "");
		if (i % 50 == 49)
			stage_settle();
	}
	assert_true(count(&stage()->rules) > 0);
	assert_true(count(&stage()->rules) < 400);
	/* They tell no nodes apart any more. */
	a = sl_ks_find(&stage()->nodes_by_name, "a");
	b = sl_ks_find(&stage()->nodes_by_name, "b");
	assert_true(a->holds == b->holds);
	assert_int_equal(a->kind, b->kind);
	pin("q", "host", "a", ONE_CPU);
	stage_settle();
	assert_string_equal(stage_place("q"), "a");
}

static void nodes_are_forgotten(void **state)
{
	stage_node(SL_KUBE_ADDED, "a", "", 1);
	stage_slice(SL_KUBE_ADDED, "a", 2, 16);
	stage_node(SL_KUBE_ADDED, "b", "", 1);
	stage_pod(SL_KUBE_ADDED, "p", "", ",\"nodeName\":\"a\"" ONE_CPU);
	stage_pod(SL_KUBE_ADDED, "early", "", ",\"nodeName\":\"unseen\"" ONE_CPU);
	stage_settle();
	stage_node(SL_KUBE_DELETED, "b", "", 1);
	stage_node(SL_KUBE_DELETED, "a", "", 1);
	stage_slice(SL_KUBE_DELETED, "a", 2, 16);
	for (int i = 0; i < 2; i++) {
		stage()->nodes_changed = true;
		stage_settle();
	}
	/* Pods stand on two of them yet. */
	assert_non_null(sl_ks_find(&stage()->nodes_by_name, "unseen"));
	assert_null(sl_ks_find(&stage()->nodes_by_name, "b"));
	assert_non_null(sl_ks_find(&stage()->nodes_by_name, "a"));
	stage_pod(SL_KUBE_DELETED, "p", "", "");
	stage_pod(SL_KUBE_DELETED, "early", "", "");
	stage_settle();
	for (int i = 0; i < 2; i++) {
		stage()->nodes_changed = true;
		stage_settle();
	}
	assert_int_equal(count(&stage()->nodes), 0);
	stage_node(SL_KUBE_ADDED, "a", "", 1);
	stage_slice(SL_KUBE_ADDED, "a", 2, 16);
	stage_pod(SL_KUBE_ADDED, "q", "", ONE_CPU);
	stage_settle();
	assert_string_equal(stage_place("q"), "a");
}

/* Nodes that are gone are of no kind. */
static void nodes_that_are_gone_leave_kinds_to_others(void **state)
{
	char name[16], pod[16];

	for (int i = 0; i < 31; i++) {
		(void)snprintf(name, sizeof(name), "n%02d", i);
		(void)snprintf(pod, sizeof(pod), "pin%02d", i);
		stage_node(SL_KUBE_ADDED, name, "", 1);
		pin(pod, "host", name, MANY_CPUS);
	}
	stage_settle();
	for (int i = 0; i < 31; i++) {
		(void)snprintf(name, sizeof(name), "n%02d", i);
		stage_node(SL_KUBE_DELETED, name, "", 1);
	}
	stage_node(SL_KUBE_ADDED, "x", "", 1);
	stage_node(SL_KUBE_ADDED, "y", "", 1);
	pin("px", "host", "x", ONE_CPU);
	pin("py", "host", "y", ONE_CPU);
	stage_settle();
	assert_string_equal(stage_place("px"), "x");
	assert_string_equal(stage_place("py"), "y");
}

/* Limits of GPUs are models of the machine; a node without GPUs has none. */
static void nodes_without_gpus_have_no_limit(void **state)
{
	stage_node(SL_KUBE_ADDED, "control", "", 8);
	stage_settle();
	stage_node(SL_KUBE_ADDED, "gpus", "", 8);
	stage_slice(SL_KUBE_ADDED, "gpus", 1, 80);
	stage_settle();
	assert_int_equal(stage()->limit_count, 1);
	assert_int_equal(stage()->limits[0], 80 * 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)
		TEST(rules_take_no_node_from_others),
		TEST(a_label_of_the_only_kind_counts),
		TEST(a_label_that_is_gone_counts_no_more),
		TEST(new_rules_split_kinds),
		TEST(rules_are_forgotten),
		TEST(nodes_are_forgotten),
		TEST(nodes_that_are_gone_leave_kinds_to_others),
		TEST(nodes_without_gpus_have_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
