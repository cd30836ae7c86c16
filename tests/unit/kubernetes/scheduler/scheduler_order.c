/*
 * Orders to park that a node never confirms, or confirms too late. Project one has no guarantee and
 * uses all GPUs, of 80 GiB each; pod w of project two is within its guarantee.
 */
#include "stage.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cluster/kubernetes/api/parse.h"

#define WITHIN  (200 * SL_MS)
#define TRUE    "{\"type\":\"Parked\",\"status\":\"True\"}"
#define FALSE   "{\"type\":\"Parked\",\"status\":\"False\"}"
#define REFUSED "{\"type\":\"Parked\",\"status\":\"False\",\"reason\":\"Refused\"}"
#define BEGUN   "{\"type\":\"Parked\",\"status\":\"False\",\"reason\":\"Parking\"}"
/* A label that names the pod's project. */
#define OF(project) ",\"labels\":{\"sluice.dev/project\":\"" project "\"}"

/* The claim of a pod that has a GPU of the node, and the node's status of it. */
static void claim(const char *name, const char *node, unsigned int gpu,
	unsigned int version, const char *condition)
{
	stage_event(SL_KS_WATCH_CLAIMS, SL_KUBE_ADDED,
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"uid\":\"%s\","
		"\"resourceVersion\":\"%u\"},\"status\":{\"allocation\":{\"devices\":{"
		"\"results\":[{\"driver\":\"gpu.sluice.dev\",\"pool\":\"%s\",\"device\":"
		"\"gpu-%u\",\"consumedCapacity\":{\"memory\":\"80Gi\"}}]}},"
		"\"reservedFor\":[{\"uid\":\"%s\"}],\"devices\":[{\"driver\":"
		"\"gpu.sluice.dev\",\"conditions\":[%s]}]}}",
		name, name, version, node, gpu, name, condition);
}

static void runs(const char *name, const char *node, unsigned int gpu)
{
	char spec[200];

	(void)snprintf(spec, sizeof(spec),
		",\"nodeName\":\"%s\",\"resourceClaims\":[{\"name\":\"gpu\","
		"\"resourceClaimName\":\"%s\"}]",
		node, name);
	claim(name, node, gpu, 5, FALSE);
	stage_pod(SL_KUBE_ADDED, name, OF("one"), spec);
}

static void project(const char *name, unsigned int quota)
{
	stage_event(SL_KS_WATCH_PROJECTS, SL_KUBE_ADDED,
		"{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\"},\"spec\":{\"quota\":%u}}",
		name, name, quota);
}

/* So many GPUs of node a, and of b; p0, p1 ... have them. */
static void start(unsigned int on_a, unsigned int on_b)
{
	char name[8];

	stage()->options.park_within = WITHIN;
	stage()->rebuild = true;
	project("one", 0);
	project("two", on_a + on_b);
	stage_node(SL_KUBE_ADDED, "a", "", 64);
	stage_node(SL_KUBE_ADDED, "b", "", 64);
	stage_slice(SL_KUBE_ADDED, "a", on_a, 80);
	stage_slice(SL_KUBE_ADDED, "b", on_b, 80);
	for (unsigned int i = 0; i < on_a + on_b; i++) {
		(void)snprintf(name, sizeof(name), "p%u", i);
		runs(name, i < on_a ? "a" : "b", i < on_a ? i : i - on_a);
	}
	stage_settle();
}

static void add_waiting(const char *name)
{
	char spec[120];

	(void)snprintf(spec, sizeof(spec),
		",\"resourceClaims\":[{\"name\":\"gpu\",\"resourceClaimName\":\"%s\"}]",
		name);
	stage_event(SL_KS_WATCH_CLAIMS, SL_KUBE_ADDED,
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"uid\":\"%s\","
		"\"resourceVersion\":\"5\"},\"spec\":{\"devices\":{\"requests\":[{"
		"\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"gpu.sluice.dev\","
		"\"capacity\":{\"requests\":{\"memory\":\"80Gi\"}}}}]}}}",
		name, name);
	stage_pod(SL_KUBE_ADDED, name, OF("two"), spec);
	stage_settle();
}

static struct stage_call *order_of(const char *pod)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/pods/%s/status", pod);
	return stage_find_call(path);
}

static const char *condition_of(const struct stage_call *call, const char *key)
{
	return sl_kube_text_at(
		json_array_get(sl_kube_at(call->body, "status", "conditions", NULL), 0),
		key, NULL);
}

/* What the machine has of the pod's task. */
static struct sl_cluster_task_view task(const char *name)
{
	const struct sl_ks_pod *pod = stage_find_pod(name);

	return sl_cluster_task(stage()->cluster, pod->job->index.id, pod->task);
}

/* The pod is told so, and that is written. */
static void assert_ordered(const char *pod, const char *status, const char *reason)
{
	struct stage_call *call = order_of(pod);

	assert_non_null(call);
	assert_string_equal(condition_of(call, "type"), "sluice.dev/Parked");
	assert_string_equal(condition_of(call, "status"), status);
	assert_string_equal(condition_of(call, "reason"), reason);
	stage_answer(call, 200, NULL);
}

/* Of two pods the one with the order to park, once it is written. */
static unsigned int first_ordered(void)
{
	unsigned int first = order_of("p0") ? 0 : 1;

	assert_null(order_of(first ? "p0" : "p1"));
	assert_ordered(first ? "p1" : "p0", "True", "Reclaimed");
	return first;
}

static void wait_for(sl_ns span)
{
	const struct timespec time = {.tv_nsec = (long)span};

	(void)nanosleep(&time, NULL);
	stage_settle();
}

/* The other node's pod is parked instead. A later confirmation changes nothing: the first pod keeps
 * its GPU, and its node resumes it. */
static void another_is_parked_instead(void **state)
{
	static const char *const names[] = {"p0", "p1"}, *const nodes[] = {"a", "b"};
	unsigned int late, other;

	start(1, 1);
	add_waiting("w");
	late = first_ordered();
	other = 1 - late;
	wait_for(WITHIN + WITHIN / 4);
	assert_string_equal(condition_of(order_of(names[late]), "message"),
		late ? "it has its GPU as before: its node b did not confirm in time "
		       "that it "
		       "parks; see that sluice-kube node and sluiced run there"
		     : "it has its GPU as before: its node a did not confirm in time "
		       "that it "
		       "parks; see that sluice-kube node and sluiced run there");
	claim(names[late], nodes[late], 0, 6, TRUE);
	assert_ordered(names[late], "False", "NodeSilent");
	assert_ordered(names[other], "True", "Reclaimed");
	stage_settle();
	assert_int_equal(stage_find_pod(names[late])->believed, SL_KS_PLACED);
	assert_int_equal(task(names[late]).state, SL_TASK_RUNNING);
	assert_string_equal(stage_place("w"), "");
	claim(names[other], nodes[other], 0, 6, TRUE);
	stage_settle();
	assert_string_equal(stage_place("w"), nodes[other]);
	assert_true(stage_find_pod(names[late])->resumes);
	claim(names[late], nodes[late], 0, 7, FALSE);
	stage_settle();
	assert_false(stage_find_pod(names[late])->resumes);
	assert_int_equal(stage_find_pod(names[late])->believed, SL_KS_PLACED);
	assert_null(order_of(names[late]));
}

/* A node that has begun to park counts as alive, so another of its pods is chosen. A silent node
 * gets no second order. */
static void a_silent_node_is_left_alone(void **state)
{
	static const char *const names[] = {"p0", "p1"};
	static const struct {
		const char *name, *says;
		bool is_next;
	} rows[] = {
		{"it says nothing", FALSE, false},
		{"it has begun, and does not come to an end", BEGUN, true},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		unsigned int late;

		if (i)
			(void)stage_open(NULL);
		start(2, 0);
		add_waiting("w");
		late = first_ordered();
		claim(names[late], "a", late, 6, rows[i].says);
		wait_for(WITHIN + WITHIN / 4);
		assert_ordered(names[late], "False",
			rows[i].is_next ? "NotParked" : "NodeSilent");
		stage_settle();
		stage_settle();
		assert_row_u64(
			rows[i].name, order_of(names[1 - late]) != NULL, rows[i].is_next);
		if (i + 1 < SL_ARRAY_LEN(rows))
			(void)stage_close(NULL);
	}
}

/* No pod waits for a node that says that it cannot; another pod of it goes at once. */
static void what_is_refused_is_not_waited_for(void **state)
{
	static const char *const names[] = {"p0", "p1"};
	unsigned int refused;

	start(2, 0);
	stage()->options.park_within = 60 * SL_S;
	stage()->rebuild = true;
	add_waiting("w");
	refused = first_ordered();
	claim(names[refused], "a", refused, 6, REFUSED);
	assert_true(task(names[refused]).spared_until > sl_clock_now() + 60 * SL_S);
	assert_string_equal(condition_of(order_of(names[refused]), "message"),
		refused ? "it has its GPU as before: its node a cannot park it; kubectl "
			  "describe resourceclaim p1 says why"
			: "it has its GPU as before: its node a cannot park it; kubectl "
			  "describe resourceclaim p0 says why");
	assert_ordered(names[refused], "False", "NotParked");
	stage_settle();
	assert_int_equal(task(names[refused]).state, SL_TASK_RUNNING);
	assert_ordered(names[1 - refused], "True", "Reclaimed");
}

/* The wait goes on, and so does the time in which it is left out. */
static void a_machine_made_anew_knows_of_it(void **state)
{
	start(1, 0);
	add_waiting("w");
	assert_ordered("p0", "True", "Reclaimed");
	wait_for(WITHIN / 2);
	stage()->rebuild = true;
	wait_for(WITHIN / 2 + WITHIN / 4);
	assert_ordered("p0", "False", "NodeSilent");
	/* With nothing that waits the machine asks for no victim that it would be refused. */
	stage_pod(SL_KUBE_DELETED, "w", OF("two"), "");
	stage()->rebuild = true;
	wait_for(0);
	assert_true(task("p0").spared_until > sl_clock_now() + 60 * SL_S);
	add_waiting("x");
	assert_null(order_of("p0"));
	assert_int_equal(stage_find_pod("p0")->believed, SL_KS_PLACED);
	stage_find_pod("p0")->spared_until = 0;
	stage_find_pod("p0")->place.node->spared_until = 0;
	stage()->rebuild = true;
	wait_for(0);
	assert_ordered("p0", "True", "Reclaimed");
}

/* A pod of project one from the API server, with the condition that orders it to park or cancels
 * that. The condition is so old. */
static void met(const char *name, unsigned int gpu, const char *status,
	const char *reason, int64_t age_s)
{
	time_t at = time(NULL) - age_s;
	struct tm utc;
	char when[32];

	(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &utc));
	claim(name, "a", gpu, 5, FALSE);
	stage_event(SL_KS_WATCH_PODS, SL_KUBE_ADDED,
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"uid\":\"%s\"" OF(
			"one") "},"
			       "\"spec\":{\"schedulerName\":\"sluice\",\"nodeName\":"
			       "\"a\","
			       "\"resourceClaims\":[{\"name\":\"gpu\","
			       "\"resourceClaimName\":"
			       "\"%s\"}]},\"status\":{\"phase\":\"Running\","
			       "\"conditions\":[{"
			       "\"type\":\"sluice.dev/"
			       "Parked\",\"status\":\"%s\",\"reason\":"
			       "\"%s\",\"lastTransitionTime\":\"%s\"}]}}",
		name, name, name, status, reason, when);
}

/* What the leader before it ordered and took back stands in the pods' conditions. */
static void a_new_leader_knows_of_it(void **state)
{
	static const char *const names[] = {"p0", "p1"};
	static const struct {
		const char *name, *reason;
		int64_t age_s;
		bool is_asked, is_other_asked; /* to park */
	} rows[] = {
		{"taken back a moment ago", "NotParked", 10, false, true},
		{"and its node was silent", "NodeSilent", 10, false, false},
		{"the clock was set back", "NodeSilent", -1000, false, false},
	};

	for (size_t i = 0; i < 2 * SL_ARRAY_LEN(rows); i++) {
		unsigned int late = i % 2;

		if (i)
			(void)stage_open(NULL);
		project("one", 0);
		project("two", 2);
		stage_node(SL_KUBE_ADDED, "a", "", 64);
		stage_slice(SL_KUBE_ADDED, "a", 2, 80);
		met(names[late], late, "False", rows[i / 2].reason, rows[i / 2].age_s);
		met(names[1 - late], 1 - late, "False", "Resumed", 10);
		add_waiting("w");
		stage_settle();
		assert_row_u64(rows[i / 2].name, order_of(names[late]) != NULL,
			rows[i / 2].is_asked);
		assert_row_u64(rows[i / 2].name, order_of(names[1 - late]) != NULL,
			rows[i / 2].is_other_asked);
		if (i + 1 < 2 * SL_ARRAY_LEN(rows))
			(void)stage_close(NULL);
	}
}

/* Both may be asked again after 5 minutes. */
static void nothing_is_spared_for_ever(void **state)
{
	project("one", 0);
	project("two", 2);
	stage_node(SL_KUBE_ADDED, "a", "", 64);
	stage_slice(SL_KUBE_ADDED, "a", 2, 80);
	met("p0", 0, "False", "NodeSilent", 310);
	met("p1", 1, "False", "NotParked", 310);
	add_waiting("w");
	add_waiting("x");
	stage_settle();
	assert_ordered("p0", "True", "Reclaimed");
	assert_ordered("p1", "True", "Reclaimed");
}

/* Its two minutes began when the leader before it wrote the order. */
static void the_wait_for_a_node_goes_on(void **state)
{
	stage()->options.park_within = 60 * SL_S;
	stage()->rebuild = true;
	project("one", 0);
	project("two", 1);
	stage_node(SL_KUBE_ADDED, "a", "", 64);
	stage_slice(SL_KUBE_ADDED, "a", 1, 80);
	met("p0", 0, "True", "Reclaimed", 70);
	stage_settle();
	stage_settle();
	assert_ordered("p0", "False", "NodeSilent");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			another_is_parked_instead, stage_open, stage_close),
		cmocka_unit_test_setup_teardown(
			a_silent_node_is_left_alone, stage_open, stage_close),
		cmocka_unit_test_setup_teardown(
			what_is_refused_is_not_waited_for, stage_open, stage_close),
		cmocka_unit_test_setup_teardown(
			a_machine_made_anew_knows_of_it, stage_open, stage_close),
		cmocka_unit_test_setup_teardown(
			a_new_leader_knows_of_it, stage_open, stage_close),
		cmocka_unit_test_setup_teardown(
			nothing_is_spared_for_ever, stage_open, stage_close),
		cmocka_unit_test_setup_teardown(
			the_wait_for_a_node_goes_on, stage_open, stage_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
