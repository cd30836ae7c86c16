/*
 * Pods, claims, nodes and slices as the scheduler reads them, and what it writes: rows of objects.
 */
#include "../../base/test.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/kubernetes/api/api.h"
#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/scheduler/bodies.h"
#include "cluster/kubernetes/scheduler/extended.h"
#include "cluster/kubernetes/scheduler/facts.h"
#include "cluster/kubernetes/scheduler/match.h"
#include "cluster/kubernetes/scheduler/queue.h"

static json_t *parsed(const char *text)
{
	json_t *json = json_loads(text, 0, NULL);

	if (!json)
		fail_msg("no JSON: %s", text);
	return json;
}

/* A pod whose spec has `spec`, and whose metadata `meta`. */
static struct sl_facts_pod pod_of(const char *spec, const char *meta)
{
	char text[2048];
	struct sl_facts_pod facts;
	json_t *pod;

	(void)snprintf(text, sizeof(text),
		"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\"%s},"
		"\"spec\":{\"schedulerName\":\"sluice\",\"priority\":7%s}}",
		meta, spec);
	pod = parsed(text);
	assert_true(sl_facts_pod(pod, "sluice", &facts));
	json_decref(pod);
	return facts;
}

static void pods_take(void **state)
{
	static const struct {
		const char *name, *spec;
		uint32_t cpu_milli, memory_mib;
	} rows[] = {
		{"nothing", "", 0, 0},
		{"two containers",
			",\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"500m\","
			"\"memory\":\"1Gi\"}}},"
			"{\"resources\":{\"requests\":{\"cpu\":\"2\",\"memory\":\"1\"}}}"
			"]",
			2500, 1025},
		{"an init container that takes more",
			",\"initContainers\":[{\"resources\":{\"requests\":{\"cpu\":"
			"\"4\"}}}],"
			"\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]",
			4000, 0},
		{"one that stays, and one beside it",
			",\"initContainers\":[{\"restartPolicy\":\"Always\","
			"\"resources\":{"
			"\"requests\":{\"cpu\":\"1\"}}},{\"resources\":{\"requests\":{"
			"\"cpu\":"
			"\"3\"}}}],\"containers\":[{\"resources\":{\"requests\":{\"cpu\":"
			"\"2\"}}}]",
			4000, 0},
		{"of the pod as a whole, and overhead",
			",\"resources\":{\"requests\":{\"cpu\":\"3\"}},\"overhead\":{"
			"\"cpu\":"
			"\"250m\"},\"containers\":[{\"resources\":{\"requests\":{\"cpu\":"
			"\"1\"}}}]",
			3250, 0},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_facts_pod facts = pod_of(rows[i].spec, "");

		assert_row_u64(rows[i].name, facts.cpu_milli, rows[i].cpu_milli);
		assert_row_u64(rows[i].name, facts.memory_mib, rows[i].memory_mib);
		assert_row_u64(rows[i].name, facts.priority, 7);
	}
}

/* Orders that it cannot honour are refused in words, others not. */
#define GPU(count) \
	"\"resources\":{\"requests\":{\"cpu\":\"1\",\"sluice.dev/gpu\":\"" count "\"}}"

static void pods_are_refused(void **state)
{
	static const struct {
		const char *name, *spec, *meta, *says;
	} rows[] = {
		{"plain", "", "", ""},
		{"preferred affinity",
			",\"affinity\":{\"podAffinity\":{"
			"\"preferredDuringSchedulingIgnoredDuringExecution\":[{}]}}",
			"", ""},
		{"affinity to pods",
			",\"affinity\":{\"podAffinity\":{"
			"\"requiredDuringSchedulingIgnoredDuringExecution\":[{}]}}",
			"", "knows no required podAffinity"},
		{"spread",
			",\"topologySpreadConstraints\":[{\"whenUnsatisfiable\":"
			"\"DoNotSchedule\"}]",
			"", "topologySpreadConstraints"},
		{"spread if it goes",
			",\"topologySpreadConstraints\":[{"
			"\"whenUnsatisfiable\":\"ScheduleAnyway\"}]",
			"", ""},
		{"a volume",
			",\"volumes\":[{\"name\":\"data\",\"persistentVolumeClaim\":{"
			"\"claimName\":\"x\"}}]",
			"", "data is a persistent one"},
		{"a folder", ",\"volumes\":[{\"name\":\"data\",\"emptyDir\":{}}]", "",
			""},
		{"a port of the host",
			",\"containers\":[{\"ports\":[{\"hostPort\":80}]}]", "",
			"hostPort"},
		{"huge pages",
			",\"containers\":[{\"resources\":{\"requests\":{\"hugepages-"
			"2Mi\":"
			"\"2Mi\"}}}]",
			"", "counts no hugepages-2Mi"},
		{"the shortest form", ",\"containers\":[{" GPU("1") "}]", "", ""},
		{"the shortest form, and a claim",
			",\"containers\":[{" GPU(
				"1") "}],\"resourceClaims\":[{\"name\":\"a\"}]",
			"", "one of the two"},
		{"more than a node has",
			",\"containers\":[{" GPU("20") "},{" GPU("13") "}]", "",
			"asks for 33 GPUs"},
		{"more to begin with",
			",\"initContainers\":[{\"name\":\"i\"," GPU(
				"2") "}],\"containers\":[{" GPU("1") "}]",
			"", "init container i asks for more"},
		{"another class",
			",\"containers\":[{\"resources\":{\"requests\":{\"deviceclass."
			"resource.kubernetes.io/nic\":\"1\"}}}]",
			"", "counts no deviceclass.resource.kubernetes.io/nic"},
		{"two claims", ",\"resourceClaims\":[{\"name\":\"a\"},{\"name\":\"b\"}]",
			"", "it has 2 claims"},
		{"reclaim", "", ",\"annotations\":{\"sluice.dev/on-reclaim\":\"stop\"}",
			"write park or terminate"},
		{"least", "",
			",\"labels\":{\"sluice.dev/gang\":\"g\",\"sluice.dev/"
			"gang-min\":\"0\"}",
			"'0', is no number from 1"},
		{"what runs already is not refused",
			",\"nodeName\":\"a\",\"containers\":[{\"ports\":[{\"hostPort\":"
			"80}]}]",
			"", ""},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_facts_pod facts = pod_of(rows[i].spec, rows[i].meta);

		if (rows[i].says[0] ? !strstr(facts.refusal.text, rows[i].says)
				    : facts.refusal.text[0])
			fail_msg("%s: '%s', not '%s'", rows[i].name, facts.refusal.text,
				rows[i].says);
	}
}

static void pods_say_who_they_belong_to(void **state)
{
	struct sl_facts_pod facts = pod_of(",\"resourceClaims\":[{\"name\":\"gpu\","
					   "\"resourceClaimTemplateName\":\"t\"}]",
		",\"labels\":{\"sluice.dev/gang\":\"g\",\"sluice.dev/gang-min\":\"3\","
		"\"sluice.dev/project\":\"label\"},\"annotations\":{\"sluice.dev/"
		"project\":"
		"\"vision\",\"sluice.dev/on-reclaim\":\"terminate\"}");

	assert_string_equal(facts.gang, "g");
	assert_int_equal(facts.gang_min, 3);
	assert_string_equal(facts.project, "vision");
	assert_true(facts.terminates);
	assert_true(facts.lacks_claim);
	facts = pod_of(
		",\"resourceClaims\":[{\"name\":\"gpu\",\"resourceClaimName\":\"c\"}],"
		"\"schedulingGroup\":{\"podGroupName\":\"pg\"}",
		"");
	assert_string_equal(facts.claim, "c");
	assert_string_equal(facts.group, "pg");
	assert_false(facts.lacks_claim);
}

static struct sl_facts_claim claim_of(const char *devices, const char *status)
{
	char text[2048];
	struct sl_facts_claim facts;
	json_t *claim;

	(void)snprintf(text, sizeof(text),
		"{\"metadata\":{\"name\":\"c\",\"namespace\":\"n\",\"uid\":\"u\","
		"\"resourceVersion\":\"42\"},\"spec\":{\"devices\":{%s}},\"status\":{%s}"
		"}",
		devices, status);
	claim = parsed(text);
	assert_true(sl_facts_claim(claim, &facts));
	json_decref(claim);
	return facts;
}

#define REQUEST(name, more) \
	"{\"name\":\"" name \
	"\",\"exactly\":{\"deviceClassName\":\"gpu.sluice.dev\"" more "}}"
#define EXACTLY(more) "\"requests\":[" REQUEST("gpu", more) "]"
#define AMOUNTS(list) ",\"capacity\":{\"requests\":{" list "}}"

static void claims_ask(void **state)
{
	static const struct {
		const char *name, *devices, *says;
		uint32_t gpus, memory_mib, limit_mib, compute_pct;
	} rows[] = {
		{"a whole one", EXACTLY(""), "", 1, 0, 0, 0},
		{"a part",
			EXACTLY(AMOUNTS("\"memory\":\"6Gi\",\"memoryLimit\":\"14Gi\","
					"\"compute\":\"20\"")),
			"", 1, 6144, 14336, 20},
		{"two", EXACTLY(",\"count\":2"), "", 2, 0, 0, 0},
		{"part of a MiB counts as one",
			EXACTLY(AMOUNTS("\"memory\":\"1048577\"")), "", 1, 2, 0, 0},
		{"upside down",
			EXACTLY(AMOUNTS("\"memory\":\"6Gi\",\"memoryLimit\":\"1Gi\"")),
			"memoryLimit is below its memory", 1, 6144, 1024, 0},
		{"nothing, which is not all", EXACTLY(AMOUNTS("\"memory\":\"0\"")),
			"memory is 0; write an amount", 1, 0, 0, 0},
		{"no amount", EXACTLY(AMOUNTS("\"memory\":\"much\"")),
			"'much', is no amount", 1, 0, 0, 0},
		{"what GPUs have not", EXACTLY(AMOUNTS("\"cores\":\"1\"")),
			"no capacity cores", 1, 0, 0, 0},
		{"too much of it", EXACTLY(AMOUNTS("\"compute\":\"101\"")),
			"percents up to 100", 1, 0, 0, 100},
		{"its limit below",
			EXACTLY(AMOUNTS("\"compute\":\"50\",\"computeLimit\":\"20\"")),
			"computeLimit is at least compute", 1, 0, 0, 50},
		{"another class",
			"\"requests\":[{\"name\":\"x\",\"exactly\":{\"deviceClassName\":"
			"\"nic\"}}]",
			"is of class nic", 1, 0, 0, 0},
		{"alternatives",
			"\"requests\":[{\"name\":\"x\",\"firstAvailable\":[{}]}]",
			"alternatives", 1, 0, 0, 0},
		{"all of them", EXACTLY(",\"allocationMode\":\"All\""), "give a count", 1,
			0, 0, 0},
		{"an expression", EXACTLY(",\"selectors\":[{\"cel\":{}}]"),
			"nodeSelector", 1, 0, 0, 0},
		{"of the administrator", EXACTLY(",\"adminAccess\":true"), "adminAccess",
			1, 0, 0, 0},
		{"two requests",
			"\"requests\":[" REQUEST("a", ",\"count\":2") "," REQUEST(
				"b", "") "]",
			"", 3, 0, 0, 0},
		{"two requests of different amounts",
			"\"requests\":[" REQUEST("a", "") "," REQUEST(
				"b", AMOUNTS("\"memory\":\"1Gi\"")) "]",
			"different amounts", 2, 0, 0, 0},
		{"more than a node has",
			"\"requests\":[" REQUEST("a", ",\"count\":32") "," REQUEST(
				"b", "") "]",
			"asks for 33 GPUs", 33, 0, 0, 0},
		{"none", "\"requests\":[]", "requests nothing", 0, 0, 0, 0},
		{"constraints", EXACTLY("") ",\"constraints\":[{}]", "has constraints", 1,
			0, 0, 0},
		{"different GPUs, as the webhook wants them",
			EXACTLY(",\"count\":2") ",\"constraints\":[{"
						"\"distinctAttribute\":"
						"\"gpu.sluice.dev/uuid\"}]",
			"", 2, 0, 0, 0},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_facts_claim facts = claim_of(rows[i].devices, "");

		if (rows[i].says[0] ? !strstr(facts.refusal.text, rows[i].says)
				    : facts.refusal.text[0])
			fail_msg("%s: '%s', not '%s'", rows[i].name, facts.refusal.text,
				rows[i].says);
		assert_row_u64(rows[i].name, facts.gpus, rows[i].gpus);
		assert_row_u64(rows[i].name, facts.memory_mib, rows[i].memory_mib);
		assert_row_u64(rows[i].name, facts.limit_mib, rows[i].limit_mib);
		assert_row_u64(rows[i].name, facts.compute_pct, rows[i].compute_pct);
		sl_facts_claim_fini(&facts);
	}
}

#define RESULT(device, memory)                                                \
	"{\"driver\":\"gpu.sluice.dev\",\"pool\":\"n1\",\"device\":\"" device \
	"\",\"consumedCapacity\":{" memory "}}"
#define SAID(device, status)                                  \
	"{\"driver\":\"gpu.sluice.dev\",\"device\":\"" device \
	"\",\"conditions\":[{\"type\":\"Parked\",\"status\":\"" status "\"}]}"

static void claims_have(void **state)
{
	struct sl_facts_claim facts = claim_of(EXACTLY(""),
		"\"allocation\":{\"devices\":{\"results\":[" RESULT(
			"g0", "\"memory\":\"6Gi\"") ","
						    "{\"driver\":\"other\"}," RESULT("g1",
							    "") "]}},\"reservedFor\":[{"
								"\"uid\":\"p\"}],"
								"\"devices\":[" SAID("g0",
									"True") "]");

	assert_true(facts.is_allocated);
	assert_int_equal(facts.count, 2);
	assert_int_equal(facts.device[0].memory_mib, 6144);
	assert_true(facts.device[1].memory_mib == UINT64_MAX);
	assert_string_equal(facts.pool, "n1");
	assert_string_equal(facts.pod_uid, "p");
	assert_int_equal(facts.version, 42);
	/* One of two has confirmed it. */
	assert_false(facts.is_parked);
	assert_false(facts.says_parked);
	sl_facts_claim_fini(&facts);
	facts = claim_of(
		EXACTLY(""), "\"allocation\":{\"devices\":{\"results\":[" RESULT("g0",
				     "") "]}},\"devices\":[" SAID("g0", "True") "]");
	assert_true(facts.is_parked);
	sl_facts_claim_fini(&facts);
	facts = claim_of(
		EXACTLY(""), "\"allocation\":{\"devices\":{\"results\":[" RESULT("g0",
				     "") "]}},\"devices\":[" SAID("g0", "False") "]");
	assert_false(facts.is_parked);
	assert_true(facts.says_parked);
	sl_facts_claim_fini(&facts);
}

static void parameters_wait_for_the_allocation(void **state)
{
	struct sl_facts_claim facts =
		claim_of(EXACTLY("") ",\"config\":[{\"opaque\":{\"a\":1}}]", "");

	assert_string_equal(facts.config, "[{\"opaque\":{\"a\":1}}]");
	sl_facts_claim_fini(&facts);
	facts = claim_of(EXACTLY("") ",\"config\":[{}]",
		"\"allocation\":{\"devices\":{\"results\":[" RESULT("g0", "") "]}}");
	assert_null(facts.config);
	sl_facts_claim_fini(&facts);
}

static void nodes_are_closed(void **state)
{
	static const struct {
		const char *name, *spec, *ready;
		bool closed;
	} rows[] = {
		{"ready", "", "True", false},
		{"not ready", "", "False", true},
		{"unknown", "", "Unknown", true},
		{"cordoned", "\"unschedulable\":true", "True", true},
		{"under pressure",
			"\"taints\":[{\"key\":\"node.kubernetes.io/"
			"disk-pressure\",\"effect\":"
			"\"NoSchedule\"}]",
			"True", true},
		{"a taint of somebody's",
			"\"taints\":[{\"key\":\"dear\",\"effect\":"
			"\"NoSchedule\"}]",
			"True", false},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_facts_node facts;
		char text[1024];
		json_t *node;

		(void)snprintf(text, sizeof(text),
			"{\"metadata\":{\"name\":\"a\"},\"spec\":{%s},\"status\":{"
			"\"allocatable\":{\"cpu\":\"7500m\",\"memory\":\"1048577Ki\","
			"\"pods\":"
			"\"110\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]"
			"}}",
			rows[i].spec, rows[i].ready);
		node = parsed(text);
		assert_true(sl_facts_node(node, &facts));
		assert_row_u64(rows[i].name, facts.is_closed, rows[i].closed);
		assert_row_u64(rows[i].name, facts.cpu_milli, 7500);
		assert_row_u64(rows[i].name, facts.memory_mib, 1024);
		assert_row_u64(rows[i].name, facts.pods, 110);
		json_decref(node);
	}
}

static void rules_match_nodes(void **state)
{
	static const char node_text[] =
		"{\"metadata\":{\"name\":\"n1\",\"labels\":{\"zone\":\"a\",\"gpus\":"
		"\"8\"}},"
		"\"spec\":{\"taints\":[{\"key\":\"dear\",\"value\":\"yes\",\"effect\":"
		"\"NoSchedule\"},{\"key\":\"node.kubernetes.io/unreachable\",\"effect\":"
		"\"NoExecute\"}]}}";
#define TOLERATES ",\"tolerations\":[{\"key\":\"dear\",\"operator\":\"Exists\"}]"
#define TERM(expression)                                                              \
	",\"affinity\":{\"nodeAffinity\":{"                                           \
	"\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[" \
	"{\"matchExpressions\":[" expression "]}]}}}"
	static const struct {
		const char *name, *spec;
		bool matches;
	} rows[] = {
		{"intolerant", "", false},
		{"tolerant", TOLERATES, true},
		{"of all", ",\"tolerations\":[{\"operator\":\"Exists\"}]", true},
		{"of another value",
			",\"tolerations\":[{\"key\":\"dear\",\"value\":\"no\"}]", false},
		{"of that value",
			",\"tolerations\":[{\"key\":\"dear\",\"value\":\"yes\"}]", true},
		{"of another effect",
			",\"tolerations\":[{\"key\":\"dear\",\"operator\":\"Exists\","
			"\"effect\":"
			"\"NoExecute\"}]",
			false},
		{"selector", TOLERATES ",\"nodeSelector\":{\"zone\":\"a\"}", true},
		{"another zone", TOLERATES ",\"nodeSelector\":{\"zone\":\"b\"}", false},
		{"in",
			TOLERATES TERM(
				"{\"key\":\"zone\",\"operator\":\"In\",\"values\":[\"b\","
				"\"a\"]}"),
			true},
		{"not in",
			TOLERATES TERM(
				"{\"key\":\"zone\",\"operator\":\"NotIn\",\"values\":"
				"[\"a\"]}"),
			false},
		{"exists", TOLERATES TERM("{\"key\":\"zone\",\"operator\":\"Exists\"}"),
			true},
		{"does not",
			TOLERATES TERM(
				"{\"key\":\"rack\",\"operator\":\"DoesNotExist\"}"),
			true},
		{"more than",
			TOLERATES TERM("{\"key\":\"gpus\",\"operator\":\"Gt\",\"values\":"
				       "[\"7\"]}"),
			true},
		{"less than",
			TOLERATES TERM("{\"key\":\"gpus\",\"operator\":\"Lt\",\"values\":"
				       "[\"8\"]}"),
			false},
		{"both of a term",
			TOLERATES TERM(
				"{\"key\":\"zone\",\"operator\":\"Exists\"},{\"key\":"
				"\"rack\",\"operator\":\"Exists\"}"),
			false},
		{"an operator of the future",
			TOLERATES TERM("{\"key\":\"zone\",\"operator\":\"Near\"}"),
			false},
		{"by its name",
			TOLERATES ",\"affinity\":{\"nodeAffinity\":{"
				  "\"requiredDuringSchedulingIgnoredDuringExecution\":{"
				  "\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":"
				  "\"metadata.name\",\"operator\":\"In\",\"values\":["
				  "\"n1\"]}]}]}}}",
			true},
	};
	json_t *object = parsed(node_text), *node = sl_match_node(object);

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		char text[1024];
		json_t *pod, *rules;

		(void)snprintf(
			text, sizeof(text), "{\"spec\":{\"x\":1%s}}", rows[i].spec);
		pod = parsed(text);
		rules = sl_match_rules(pod);
		assert_row_u64(rows[i].name, sl_match(rules, node), rows[i].matches);
		json_decref(rules);
		json_decref(pod);
	}
	json_decref(node);
	json_decref(object);
}

/* What the API server took for a claim of two GPUs; amounts in its own forms. */
static void an_allocation_is_written(void **state)
{
	const struct sl_bodies_device devices[] = {
		{"g0", "gpu", 6144, 0, 0, 0}, {"g1", "other", 6145, 14336, 20, 50}};
	json_t *config =
		parsed("[{\"requests\":[\"gpu\"],\"opaque\":{\"driver\":\"d\"}}]");
	json_t *body = sl_bodies_allocate(&(struct sl_bodies_allocation){.node = "n1",
		.pool = "n1",
		.devices = devices,
		.count = 2,
		.pod = "p",
		.pod_uid = "pu",
		.claim_uid = "cu",
		.version = 42,
		.config = config});
	struct sl_facts_claim facts;
	json_t *results, *first;

	assert_non_null(body);
	assert_string_equal(
		sl_kube_text_at(body, "metadata", "resourceVersion", NULL), "42");
	results = sl_kube_at(body, "status", "allocation", "devices", "results", NULL);
	first = json_array_get(results, 0);
	assert_string_equal(
		sl_kube_text_at(first, "consumedCapacity", "memory", NULL), "6Gi");
	assert_string_equal(
		sl_kube_text_at(first, "consumedCapacity", "memoryLimit", NULL), "0");
	assert_string_equal(sl_kube_text_at(first, "request", NULL), "gpu");
	assert_string_equal(
		sl_kube_text_at(json_array_get(results, 1), "request", NULL), "other");
	assert_string_not_equal(sl_kube_text_at(first, "shareID", NULL),
		sl_kube_text_at(json_array_get(results, 1), "shareID", NULL));
	assert_string_equal(
		sl_kube_text_at(json_array_get(sl_kube_at(body, "status", "allocation",
						       "devices", "config", NULL),
					0),
			"source", NULL),
		"FromClaim");
	assert_string_equal(sl_kube_text_at(json_array_get(results, 1),
				    "consumedCapacity", "computeLimit", NULL),
		"50");
	/* It is read back unchanged. */
	(void)json_object_set_new(
		json_object_get(body, "metadata"), "name", json_string("c"));
	assert_true(sl_facts_claim(body, &facts));
	assert_int_equal(facts.count, 2);
	assert_int_equal(facts.device[1].memory_mib, 6145);
	assert_int_equal(facts.device[1].compute_pct, 20);
	assert_string_equal(facts.pod_uid, "pu");
	sl_facts_claim_fini(&facts);
	json_decref(body);
	json_decref(config);
}

/* As kube-scheduler counts and names them: "REQUEST COUNT" of the claim, "CONTAINER REQUEST" of the
 * pod's status. */
static void limits_become_requests(void **state)
{
	static const struct {
		const char *name, *spec, *requests, *mappings;
		uint32_t gpus;
	} rows[] = {
		{"none", "{\"containers\":[{\"name\":\"a\"}]}", "", "", 0},
		{"none of it", "{\"containers\":[{\"name\":\"a\"," GPU("0") "}]}", "", "",
			0},
		{"one", "{\"containers\":[{\"name\":\"a\"," GPU("1") "}]}",
			"container-0-request-1 1;", "a container-0-request-1;", 1},
		{"two containers",
			"{\"containers\":[{\"name\":\"a\"," GPU(
				"2") "},{\"name\":\"b\"},"
				     "{\"name\":\"c\"," GPU("1") "}]}",
			"container-0-request-1 2;container-2-request-1 1;",
			"a container-0-request-1;c container-2-request-1;", 3},
		{"an init container uses those behind it",
			"{\"initContainers\":[{\"name\":\"i\"," GPU(
				"2") "}],\"containers\":[{"
				     "\"name\":\"a\"," GPU("1") "},{\"name\":\"b\"," GPU(
					     "1") "},"
						  "{\"name\":\"c\"," GPU("1") "}]}",
			"container-1-request-1 1;container-2-request-1 1;container-3-"
			"request-1 1;",
			"i container-1-request-1;i container-2-request-1;a container-1-"
			"request-1;b container-2-request-1;c container-3-request-1;",
			3},
		{"one that stays",
			"{\"initContainers\":[{\"name\":\"s\",\"restartPolicy\":"
			"\"Always\"," GPU("1") "}],\"containers\":[{\"name\":\"a\"," GPU(
				"1") "}]}",
			"container-0-request-1 1;container-1-request-1 1;",
			"s container-0-request-1;a container-1-request-1;", 2},
		{"as each class is called",
			"{\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{"
			"\"deviceclass.resource.kubernetes.io/"
			"gpu.sluice.dev\":\"1\"}}}]}",
			"container-0-request-0 1;", "a container-0-request-0;", 1},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_facts_refusal refusal = {0};
		char requests[256] = "", mappings[256] = "";
		json_t *spec = parsed(rows[i].spec), *read = NULL, *one;
		size_t k;

		assert_row_u64(rows[i].name, sl_extended_read(spec, &read, &refusal),
			rows[i].gpus);
		json_array_foreach(json_object_get(read, "requests"), k, one)(void)
			snprintf(requests + strlen(requests),
				sizeof(requests) - strlen(requests), "%s %lld;",
				sl_kube_text_at(one, "name", NULL),
				(long long)json_integer_value(
					sl_kube_at(one, "exactly", "count", NULL)));
		json_array_foreach(json_object_get(read, "requestMappings"), k, one)(void)
			snprintf(mappings + strlen(mappings),
				sizeof(mappings) - strlen(mappings), "%s %s;",
				sl_kube_text_at(one, "containerName", NULL),
				sl_kube_text_at(one, "requestName", NULL));
		assert_row_text(rows[i].name, requests, rows[i].requests);
		assert_row_text(rows[i].name, mappings, rows[i].mappings);
		assert_row_text(rows[i].name, refusal.text, "");
		json_decref(read);
		json_decref(spec);
	}
}

/* Of the pod's uid: as long as the pod is the same one it is the same, and no longer. */
static void a_claim_for_limits_has_its_name(void **state)
{
	char name[SL_EXTENDED_NAME], other[SL_EXTENDED_NAME], pod[254];
	struct sl_facts_pod facts =
		pod_of(",\"containers\":[{\"name\":\"a\"," GPU("2") "}]", "");

	sl_extended_name("p", "u", name);
	assert_memory_equal(name, "p-extended-resources-", 21);
	assert_string_equal(facts.claim, name);
	assert_int_equal(facts.gpus, 2);
	assert_false(facts.knows_claim);
	sl_extended_name("p", "v", other);
	assert_string_not_equal(name, other);
	(void)memset(pod, 'x', sizeof(pod) - 1);
	pod[sizeof(pod) - 1] = '\0';
	sl_extended_name(pod, "u", other);
	assert_int_equal(strlen(other), 63);
	assert_true(sl_kube_is_name(other));
}

/* KAI's numbers; -1 is no bound, and a limit of 0 leaves the quota alone. */
static void queues_are_projects(void **state)
{
	static const struct {
		const char *name, *spec, *project;
	} rows[] = {
		{"nothing is said", "{}",
			"{\"quota\":\"0m\",\"limit\":\"0m\",\"weight\":0,\"parent\":\"\","
			"\"priority\":0}"},
		{"all is said",
			"{\"parentQueue\":\"lab\",\"priority\":200,\"resources\":{"
			"\"gpu\":{"
			"\"quota\":2,\"limit\":4,\"overQuotaWeight\":3},\"cpu\":{"
			"\"quota\":"
			"1}}}",
			"{\"quota\":\"2000m\",\"limit\":\"4000m\",\"weight\":3,"
			"\"parent\":"
			"\"lab\",\"priority\":100}"},
		{"parts",
			"{\"resources\":{\"gpu\":{\"quota\":0.3333,\"limit\":1.5,"
			"\"overQuotaWeight\":0.2}}}",
			"{\"quota\":\"334m\",\"limit\":\"1500m\",\"weight\":1,\"parent\":"
			"\"\",\"priority\":0}"},
		{"without bounds",
			"{\"resources\":{\"gpu\":{\"quota\":-1,\"limit\":-1,"
			"\"overQuotaWeight\":1}}}",
			"{\"quota\":-1,\"weight\":1,\"parent\":\"\",\"priority\":0}"},
		{"nothing beyond its quota", "{\"resources\":{\"gpu\":{\"quota\":2}}}",
			"{\"quota\":\"2000m\",\"limit\":\"2000m\",\"weight\":0,"
			"\"parent\":"
			"\"\",\"priority\":0}"},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		json_t *queue = json_pack("{s{ss}so}", "metadata", "name", "q", "spec",
			parsed(rows[i].spec));
		json_t *made = sl_queue_to_project(queue);
		json_t *expected = parsed(rows[i].project);

		assert_string_equal(sl_kube_text_at(made, "metadata", "name", NULL), "q");
		if (!json_equal(json_object_get(made, "spec"), expected))
			fail_msg("%s: %s", rows[i].name, json_dumps(made, JSON_COMPACT));
		json_decref(made);
		json_decref(queue);
		json_decref(expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queues_are_projects),
		cmocka_unit_test(limits_become_requests),
		cmocka_unit_test(a_claim_for_limits_has_its_name),
		cmocka_unit_test(pods_take),
		cmocka_unit_test(pods_are_refused),
		cmocka_unit_test(pods_say_who_they_belong_to),
		cmocka_unit_test(claims_ask),
		cmocka_unit_test(claims_have),
		cmocka_unit_test(parameters_wait_for_the_allocation),
		cmocka_unit_test(nodes_are_closed),
		cmocka_unit_test(rules_match_nodes),
		cmocka_unit_test(an_allocation_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
