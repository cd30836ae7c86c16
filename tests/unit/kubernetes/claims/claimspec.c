/* Sizes of GPUs, a namespace's bounds, and the claims that come of both. */
#include "../../base/test.h"

#include <jansson.h>

#include "cluster/kubernetes/claims/claimspec.h"
#include "cluster/kubernetes/api/parse.h"

#define GIB SL_GIB

static struct sl_sizes sizes_of(const uint64_t *gibs, size_t count)
{
	struct sl_gpu_room rooms[16];
	struct sl_sizes sizes;

	for (size_t i = 0; i < count; i++)
		rooms[i] = (struct sl_gpu_room){gibs[i] * GIB, gibs[i] * GIB};
	sl_sizes_group(rooms, count, &sizes);
	return sizes;
}

static void sizes_are_grouped(void **state)
{
	struct sl_gpu_room rooms[] = {{80 * GIB, 80 * GIB}, {16 * GIB, 15 * GIB},
		{81 * GIB, 79 * GIB}, {32 * GIB, 16 * GIB}, {16 * GIB, 16 * GIB}};
	struct sl_gpu_room many[100];
	struct sl_sizes sizes;

	sl_sizes_group(rooms, 5, &sizes);
	assert_int_equal(sizes.count, 3);
	assert_true(
		sizes.of[0].least_bytes == 16 * GIB && sizes.of[0].own_bytes == 15 * GIB);
	assert_true(sizes.of[1].own_bytes == 16 * GIB);
	assert_true(sizes.of[2].least_bytes == 80 * GIB &&
		    sizes.of[2].most_bytes == 81 * GIB &&
		    sizes.of[2].own_bytes == 79 * GIB);
	for (uint64_t i = 0; i < 100; i++)
		many[i] = (struct sl_gpu_room){(i + 1) * GIB, (i + 1) * GIB};
	sl_sizes_group(many, 100, &sizes);
	assert_in_range(sizes.count, 2, SL_SIZES_MAX);
	assert_true(sizes.of[0].least_bytes == GIB);
	assert_true(sizes.of[sizes.count - 1].most_bytes == 100 * GIB);
	/* A node's published figures need not make sense. */
	for (uint64_t i = 0; i < 62; i++)
		many[i] = (struct sl_gpu_room){1ull << i, 1ull << i};
	sl_sizes_group(many, 62, &sizes);
	assert_in_range(sizes.count, 2, SL_SIZES_MAX);
	sl_sizes_group(many, 0, &sizes);
	assert_int_equal(sizes.count, 0);
}

static void rooms_are_read(void **state)
{
	json_t *slice = json_loads(
		"{\"spec\":{\"driver\":\"gpu.sluice.dev\",\"devices\":[{\"capacity\":{"
		"\"memory\":{\"value\":\"32Gi\"},\"memoryLimit\":{\"value\":\"1Pi\","
		"\"requestPolicy\":{\"validRange\":{\"max\":\"16Gi\"}}}}},{\"capacity\":{"
		"\"memory\":{\"value\":\"8Gi\"}}},{\"capacity\":{}},{}]}}",
		0, NULL);
	struct sl_gpu_room rooms[4];

	assert_int_equal(sl_gpu_rooms_read(slice, rooms, 4), 2);
	assert_true(rooms[0].memory_bytes == 32 * GIB && rooms[0].own_bytes == 16 * GIB);
	assert_true(rooms[1].memory_bytes == 8 * GIB && rooms[1].own_bytes == 8 * GIB);
	assert_int_equal(sl_gpu_rooms_read(slice, rooms, 1), 1);
	(void)json_object_set_new(
		json_object_get(slice, "spec"), "driver", json_string("net.example.com"));
	assert_int_equal(sl_gpu_rooms_read(slice, rooms, 4), 0);
	json_decref(slice);
}

struct row {
	const char *name, *request, *limit;
	uint64_t gibs[4];
	size_t gib_count;
	const char *annotations; /* of the namespace */
	/* "how selectors memory memoryLimit;" of each alternative. */
	const char *spec, *note, *error;
};

#define MAX_REQUEST(text) "\"sluice.dev/max-request\":\"" text "\""
#define MAX_LIMIT(text)   "\"sluice.dev/max-limit\":\"" text "\""
#define DEFAULT(text)     "\"sluice.dev/default-limit\":\"" text "\""

static const struct row rows[] = {
	{"a fraction of one size", "0.25", "0.8", {16}, 1, "",
		.spec = "exactly 0 4Gi 13106Mi;"},
	{"a fraction of two sizes", "0.5", NULL, {80, 16}, 2, "",
		.spec = "firstAvailable 1 8Gi -;firstAvailable 1 40Gi -;"},
	{"a fraction and no GPU", "0.5", NULL, {0}, 0, "",
		.error = "no node has published a GPU yet"},
	{"an amount and no GPU", "8GiB", "16GiB", {0}, 0, "",
		.spec = "exactly 0 8Gi 16Gi;"},
	{"an amount and two sizes", "8GiB", "16GiB", {80, 16}, 2, "",
		.spec = "exactly 0 8Gi 16Gi;"},
	{"an amount that no GPU has", "20GiB", NULL, {16}, 1, "",
		.spec = "exactly 0 20Gi -;", .note = "the largest has 16Gi"},
	{"a limit that no GPU has", "2GiB", "20GiB", {16}, 1, "",
		.spec = "exactly 0 2Gi 20Gi;", .note = "no GPU of the cluster has 20Gi"},
	{"a default limit", "2GiB", NULL, {16}, 1, DEFAULT("12Gi"),
		.spec = "exactly 0 2Gi 12Gi;"},
	{"a default limit in part", "2GiB", NULL, {16, 32}, 2, DEFAULT("0.5"),
		.spec = "firstAvailable 1 2Gi 8Gi;firstAvailable 1 2Gi 16Gi;"},
	{"a default limit below the request", "8GiB", NULL, {16}, 1, DEFAULT("4Gi"),
		.spec = "exactly 0 8Gi -;"},
	{"a default limit above the GPU", "2GiB", NULL, {8, 32}, 2, DEFAULT("12Gi"),
		.spec = "firstAvailable 1 2Gi 8Gi;firstAvailable 1 2Gi 12Gi;"},
	{"a default limit above the bound", "2GiB", NULL, {32}, 1,
		DEFAULT("1") "," MAX_LIMIT("12Gi"), .spec = "exactly 0 2Gi 12Gi;"},
	{"a default limit, and no GPU has the request", "20GiB", NULL, {16}, 1,
		DEFAULT("1"), .spec = "exactly 0 20Gi -;", .note = "has 20Gi now"},
	{"a default limit in part and no GPU", "2GiB", NULL, {0}, 0, DEFAULT("1"),
		.error = "no node has published"},
	{"a default limit does not count where one is given", "2GiB", "3GiB", {16}, 1,
		DEFAULT("1"), .spec = "exactly 0 2Gi 3Gi;"},
	{"a request above the bound", "8GiB", NULL, {16}, 1, MAX_REQUEST("6Gi"),
		.error = "a request of 8Gi is more than the 6Gi that namespace team "
			 "allows"},
	{"a fraction above the bound on the larger size", "0.5", NULL, {16, 80}, 2,
		MAX_REQUEST("10Gi"), .spec = "exactly 1 8Gi -;"},
	{"a fraction above the bound on all", "0.5", NULL, {32, 80}, 2,
		MAX_REQUEST("10Gi"), .error = "a request of 16Gi is more than the 10Gi"},
	{"a limit above the bound", "2GiB", "16GiB", {16}, 1, MAX_LIMIT("8Gi"),
		.error = "a limit of 16Gi is more than the 8Gi"},
	{"a bound that is none", "2GiB", NULL, {16}, 1, MAX_REQUEST("0.5"),
		.error = "annotation sluice.dev/max-request of namespace team is "
			 "\"0.5\""},
	{"a default that is none", "2GiB", NULL, {16}, 1, DEFAULT("lots"),
		.error = "sluice.dev/default-limit of namespace team is \"lots\""},
	{"a tiny fraction", "0.000001", NULL, {16}, 1, "", .spec = "exactly 0 1Mi -;"},
};

static void describe_part(
	const char *how, const json_t *part, char *out, size_t size, size_t *used)
{
	const json_t *requests = sl_kube_at(part, "capacity", "requests", NULL);
	const char *limit = sl_kube_text_at(requests, "memoryLimit", NULL);

	assert_string_equal(
		sl_kube_text_at(part, "deviceClassName", NULL), "gpu.sluice.dev");
	*used += (size_t)snprintf(out + *used, size - *used, "%s %zu %s %s;", how,
		json_array_size(json_object_get(part, "selectors")),
		sl_kube_text_at(requests, "memory", NULL), *limit ? limit : "-");
}

static void describe(const json_t *spec, char *out, size_t size)
{
	const json_t *request =
		json_array_get(sl_kube_at(spec, "devices", "requests", NULL), 0);
	const json_t *exactly = json_object_get(request, "exactly");
	const json_t *list = json_object_get(request, "firstAvailable"), *part;
	size_t used = 0;

	out[0] = '\0';
	if (exactly)
		describe_part("exactly", exactly, out, size, &used);
	for (size_t i = 0; (part = json_array_get(list, i)); i++)
		describe_part("firstAvailable", part, out, size, &used);
}

static json_t *namespace_of(const char *annotations)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		"{\"metadata\":{\"name\":\"team\",\"annotations\":{%s}}}", annotations);
	return json_loads(text, 0, NULL);
}

static json_t *make(const struct row *row, struct sl_error *note, struct sl_error *err)
{
	struct sl_ask ask = {.list = "containers", .container = "main", .gpus = 1};
	struct sl_sizes sizes = sizes_of(row->gibs, row->gib_count);
	json_t *namespace = namespace_of(row->annotations), *spec = NULL;
	struct sl_bounds bounds;

	assert_non_null(namespace);
	assert_int_equal(sl_amount_parse(row->request, &ask.request, err), SL_AMOUNT_OK);
	if (row->limit)
		assert_int_equal(
			sl_amount_parse(row->limit, &ask.limit, err), SL_AMOUNT_OK);
	if (sl_bounds_read(namespace, &bounds, err))
		spec = sl_claimspec_new(&ask, &bounds, &sizes, note, err);
	json_decref(namespace);
	return spec;
}

static void each_row(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		struct sl_error note = {0}, err = {0};
		json_t *spec = make(row, &note, &err);
		char got[512] = "";

		if (spec)
			describe(spec, got, sizeof(got));
		if (strcmp(got, row->spec ? row->spec : "") != 0 ||
			!strstr(err.text, row->error ? row->error : "") ||
			!strstr(note.text, row->note ? row->note : "") ||
			!row->error != !err.text[0] || !row->note != !note.text[0])
			fail_msg("%s: \"%s\", wanted \"%s\"; error \"%s\"; note \"%s\"",
				row->name, got, row->spec ? row->spec : "", err.text,
				note.text);
		json_decref(spec);
	}
}

static void several_gpus_are_different_ones(void **state)
{
	struct sl_ask ask = {.request = {.kind = SL_AMOUNT_FRACTION, .value = 500000},
		.container = "main",
		.gpus = 2};
	const uint64_t gibs[] = {16, 80};
	struct sl_sizes sizes = sizes_of(gibs, 2);
	struct sl_error note = {0}, err = {0};
	struct sl_bounds bounds;
	json_t *spec;

	assert_true(sl_bounds_read(NULL, &bounds, &err));
	spec = sl_claimspec_new(&ask, &bounds, &sizes, &note, &err);
	assert_non_null(spec);
	assert_string_equal(sl_kube_text_at(json_array_get(sl_kube_at(spec, "devices",
								   "constraints", NULL),
						    0),
				    "distinctAttribute", NULL),
		"gpu.sluice.dev/uuid");
	assert_int_equal(
		json_integer_value(json_object_get(
			json_array_get(
				json_object_get(json_array_get(sl_kube_at(spec, "devices",
								       "requests", NULL),
							0),
					"firstAvailable"),
				1),
			"count")),
		2);
	json_decref(spec);
}

static const char *name_for(const char *request)
{
	static char names[4][64];
	static unsigned int turn;
	const struct row row = {
		.request = request, .gibs = {16}, .gib_count = 1, .annotations = ""};
	struct sl_error note = {0}, err = {0};
	json_t *template = sl_claimspec_template("team", make(&row, &note, &err));
	char *name = names[turn++ % 4];

	assert_string_equal(
		sl_kube_text_at(template, "kind", NULL), "ResourceClaimTemplate");
	assert_string_equal(sl_kube_text_at(template, "metadata", "labels",
				    "app.kubernetes.io/managed-by", NULL),
		"sluice");
	(void)snprintf(
		name, 64, "%s", sl_kube_text_at(template, "metadata", "name", NULL));
	json_decref(template);
	return name;
}

static void names_are_contents(void **state)
{
	const char *half = name_for("0.5");

	assert_int_equal(strlen(half), strlen("sluice-") + 16);
	assert_string_equal(half, name_for("8GiB"));
	assert_string_not_equal(half, name_for("0.25"));
}

/* Shares of time stand beside the memory; what is not asked for is left out. */
static void shares_of_time_are_percents(void **state)
{
	struct sl_ask ask = {.list = "containers",
		.container = "main",
		.gpus = 1,
		.request = {.kind = SL_AMOUNT_BYTES, .value = 8 * GIB},
		.compute_pct = 20};
	struct sl_bounds bounds = {.max_request = UINT64_MAX, .max_limit = UINT64_MAX};
	struct sl_sizes sizes = {0};
	struct sl_error note = {0}, err = {0};
	json_t *spec = sl_claimspec_new(&ask, &bounds, &sizes, &note, &err);
	char *text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);

	assert_non_null(text);
	if (!strstr(text, "\"requests\":{\"compute\":\"20\",\"memory\":\"8Gi\"}"))
		fail_msg("%s", text);
	free(text);
	json_decref(spec);
	ask.compute_limit_pct = 50;
	spec = sl_claimspec_new(&ask, &bounds, &sizes, &note, &err);
	text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
	assert_non_null(text);
	if (!strstr(text, "\"compute\":\"20\",\"computeLimit\":\"50\""))
		fail_msg("%s", text);
	free(text);
	json_decref(spec);
}

/* A spec as the API server may have it. */
static const struct {
	const char *name, *spec;
	bool is_same;
} stored[] = {
	{"equal", "{\"a\":[{\"b\":\"8000\"},1]}", true},
	{"an amount as the API server writes it", "{\"a\":[{\"b\":\"8k\"},1]}", true},
	{"another amount", "{\"a\":[{\"b\":\"9k\"},1]}", false},
	{"another kind", "{\"a\":[{\"b\":8000},1]}", false},
	{"another number", "{\"a\":[{\"b\":\"8000\"},2]}", false},
	{"a member more", "{\"a\":[{\"b\":\"8000\",\"c\":true},1]}", false},
	{"another member", "{\"a\":[{\"c\":\"8000\"},1]}", false},
	{"an element more", "{\"a\":[{\"b\":\"8000\"},1,1]}", false},
	{"an element less", "{\"a\":[{\"b\":\"8000\"}]}", false},
	{"nothing", "{}", false},
	{"a list", "[]", false},
};

static void each_stored(void **state)
{
	json_t *spec = json_loads(stored[0].spec, 0, NULL);

	for (size_t i = 0; i < SL_ARRAY_LEN(stored); i++) {
		json_t *has = json_loads(stored[i].spec, 0, NULL);

		assert_non_null(has);
		if (sl_claimspec_is_same(spec, has) != stored[i].is_same)
			fail_msg("%s: wanted %d", stored[i].name, stored[i].is_same);
		json_decref(has);
	}
	assert_false(sl_claimspec_is_same(spec, NULL));
	json_decref(spec);
}

#define EXACTLY(capacity)                                                                \
	"{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"gpu.sluice.dev\"" capacity \
	"}}"
#define HAS(memory) ",\"capacity\":{\"requests\":{" memory "}}"

static const struct {
	const char *name, *requests, *annotations;
	bool is_ours;
	const char *note, *error;
} claims[] = {
	{"a good one", EXACTLY(HAS("\"memory\":\"6Gi\",\"memoryLimit\":\"14Gi\"")), "",
		true},
	{"a limit below", EXACTLY(HAS("\"memory\":\"6Gi\",\"memoryLimit\":\"4Gi\"")), "",
		true, .error = "request gpu: memoryLimit 4Gi is below memory 6Gi"},
	{"shares of time", EXACTLY(HAS("\"compute\":\"20\",\"computeLimit\":\"50\"")), "",
		true},
	{"a limit of time below",
		EXACTLY(HAS("\"compute\":\"20\",\"computeLimit\":\"10\"")), "", true,
		.error = "compute is \"20\" and computeLimit \"10\""},
	{"too much time", EXACTLY(HAS("\"compute\":\"101\"")), "", true,
		.error = "percents of each GPU's time up to 100"},
	{"no memory at all", EXACTLY(HAS("\"memory\":\"0\"")), MAX_REQUEST("8Gi"), true,
		.error = "memory is 0: write an amount such as 8Gi"},
	{"less than none", EXACTLY(HAS("\"memory\":\"-6Gi\"")), "", true,
		.error = "memory is -6Gi: write an amount such as 8Gi"},
	{"a limit without memory", EXACTLY(HAS("\"memoryLimit\":\"4Gi\"")), "", true,
		.error = "memoryLimit is given without memory"},
	{"a whole GPU", EXACTLY(""), "", true},
	{"a whole GPU beyond the bound", EXACTLY(""), MAX_REQUEST("8Gi"), true,
		.error = "asks for a whole GPU, and namespace team allows 8Gi"},
	{"a whole GPU within the bound", EXACTLY(""), MAX_REQUEST("16Gi"), true},
	{"memory beyond the bound", EXACTLY(HAS("\"memory\":\"6Gi\"")),
		MAX_REQUEST("4Gi"), true, .error = "a request of 6Gi is more than"},
	{"a limit beyond the bound",
		EXACTLY(HAS("\"memory\":\"6Gi\",\"memoryLimit\":\"14Gi\"")),
		MAX_LIMIT("12Gi"), true, .error = "a limit of 14Gi is more than"},
	{"no GPU has that", EXACTLY(HAS("\"memory\":\"64Gi\"")), "", true,
		.note = "no GPU of the cluster has 64Gi now"},
	{"another class",
		"{\"name\":\"n\",\"exactly\":{\"deviceClassName\":\"net.example.com\","
		"\"capacity\":{\"requests\":{\"memory\":\"6Gi\",\"memoryLimit\":\"4Gi\"}}"
		"}}",
		"", false},
	{"an alternative",
		"{\"name\":\"gpu\",\"firstAvailable\":[{\"name\":\"a\","
		"\"deviceClassName\":\"net.example.com\"},{\"name\":\"b\","
		"\"deviceClassName\":\"gpu.sluice.dev\"" HAS(
			"\"memory\":\"6Gi\",\"memoryLimit\":\"4Gi\"") "}]}",
		"", true, .error = "is below memory"},
	{"a bound that is none", EXACTLY(""), MAX_LIMIT("some"), true,
		.error = "sluice.dev/max-limit of namespace team is \"some\""},
};

static void each_claim(void **state)
{
	const uint64_t gibs[] = {16};
	struct sl_sizes sizes = sizes_of(gibs, 1);

	for (size_t i = 0; i < SL_ARRAY_LEN(claims); i++) {
		json_t *namespace = namespace_of(claims[i].annotations);
		struct sl_error note = {0}, err = {0};
		struct sl_bounds bounds;
		char text[1024];
		json_t *spec;
		bool is_good;

		(void)snprintf(text, sizeof(text), "{\"devices\":{\"requests\":[%s]}}",
			claims[i].requests);
		spec = json_loads(text, 0, NULL);
		assert_non_null(spec);
		is_good = sl_bounds_read(namespace, &bounds, &err) &&
			  sl_claimspec_check(spec, &bounds, &sizes, &note, &err);
		if (is_good != !claims[i].error ||
			sl_claimspec_is_ours(spec) != claims[i].is_ours ||
			!strstr(err.text, claims[i].error ? claims[i].error : "") ||
			!strstr(note.text, claims[i].note ? claims[i].note : "") ||
			!claims[i].note != !note.text[0])
			fail_msg("%s: error \"%s\"; note \"%s\"", claims[i].name,
				err.text, note.text);
		json_decref(spec);
		json_decref(namespace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_grouped),
		cmocka_unit_test(rooms_are_read),
		cmocka_unit_test(each_row),
		cmocka_unit_test(several_gpus_are_different_ones),
		cmocka_unit_test(names_are_contents),
		cmocka_unit_test(shares_of_time_are_percents),
		cmocka_unit_test(each_stored),
		cmocka_unit_test(each_claim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
