/* The ResourceSlice of a node. */
#include "../../base/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/claims/slice.h"

static const struct sl_kube_gpu well = {
	.uuid = "GPU-4A1B2C3D-0000-1111-2222-333344445555",
	.model = "NVIDIA H200",
	.driver_version = "535.054.03",
	.numa_node = 1,
	.can_swap = true,
	.shareable_bytes = 16 * SL_GIB + 1000};

static json_t *spec_of(const struct sl_kube_gpu *gpus, size_t count, unsigned int factor)
{
	const struct sl_kube_inventory inventory = {
		.gpus = gpus, .gpu_count = count, .memory_factor_pct = factor};
	json_t *spec = NULL;

	assert_int_equal(sl_kube_slice_spec(&spec, "node1", &inventory), 0);
	return spec;
}

static void the_whole_of_it(void **state)
{
	json_t *got = spec_of(&well, 1, 0);
	char *text = json_dumps(got, JSON_SORT_KEYS | JSON_COMPACT);

	assert_string_equal(text,
		"{\"devices\":[{\"allowMultipleAllocations\":true,\"attributes\":{"
		"\"driverVersion\":{\"version\":\"535.54.3\"},"
		"\"model\":{\"string\":\"NVIDIA H200\"},\"numaNode\":{\"int\":1},"
		"\"swap\":{\"bool\":true},"
		"\"uuid\":{\"string\":\"GPU-4A1B2C3D-0000-1111-2222-333344445555\"}},"
		"\"capacity\":{\"compute\":{\"requestPolicy\":{\"default\":\"0\","
		"\"validRange\":{\"max\":\"100\",\"min\":\"0\",\"step\":\"1\"}},"
		"\"value\":\"100\"},\"computeLimit\":{\"requestPolicy\":{\"default\":"
		"\"0\",\"validRange\":{\"max\":\"100\",\"min\":\"0\",\"step\":\"1\"}},"
		"\"value\":\"1M\"},\"memory\":{\"requestPolicy\":{\"default\":\"16Gi\","
		"\"validRange\":{\"max\":\"16Gi\",\"min\":\"1Mi\",\"step\":\"1Mi\"}},"
		"\"value\":\"16Gi\"},\"memoryLimit\":{\"requestPolicy\":{\"default\":"
		"\"0\","
		"\"validRange\":{\"max\":\"16Gi\",\"min\":\"0\",\"step\":\"1Mi\"}},"
		"\"value\":\"1Pi\"}},\"name\":\"gpu-4a1b2c3d-0000-1111-2222-"
		"333344445555\"}],"
		"\"driver\":\"gpu.sluice.dev\",\"nodeName\":\"node1\",\"pool\":{"
		"\"generation\":1,\"name\":\"node1\",\"resourceSliceCount\":1}}");
	free(text);
	json_decref(got);
}

static void quantities(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *want;
	} rows[] = {{0, "0"}, {1, "1"}, {1023, "1023"}, {1024, "1Ki"}, {1536, "1536"},
		{1025 * 1024, "1025Ki"}, {SL_MIB, "1Mi"}, {16383 * SL_MIB, "16383Mi"},
		{16384 * SL_MIB, "16Gi"}, {1ull << 50, "1Pi"}, {1ull << 63, "8Ei"},
		{UINT64_MAX, "18446744073709551615"}};
	char buf[SL_KUBE_QUANTITY_MAX];

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		assert_row_text(
			rows[i].want, sl_kube_quantity(rows[i].bytes, buf), rows[i].want);
}

static void device_names(void **state)
{
	static const struct {
		const char *uuid, *want;
	} rows[] = {
		{"GPU-ABC-1", "gpu-abc-1"},
		{"gpu-abc-1", "gpu-abc-1"},
		{"GPU-soft_0", "gpu-soft-0-9e8916b0"},
		{"MIG-12", "gpu-mig-12-"},
		{"GPU-", "gpu--"},
		{"", "gpu--"},
		{"GPU-a-", "gpu-a--"},
		{"GPU-\xc3\xa4", "gpu----"},
		{"GPU-"
		 "0123456789012345678901234567890123456789012345678901234567890123456789",
			"gpu-01234567890123456789012345678901234567890123456789-"},
	};
	char name[SL_KUBE_DEVICE_NAME_MAX], other[SL_KUBE_DEVICE_NAME_MAX];

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		(void)sl_kube_device_name(rows[i].uuid, name);
		if (strncmp(name, rows[i].want, strlen(rows[i].want)) != 0)
			fail_msg("'%s' is called '%s'", rows[i].uuid, name);
		assert_row_u64(rows[i].uuid,
			strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-"),
			strlen(name));
		assert_true(name[strlen(name) - 1] != '-' && strlen(name) <= 63);
	}
	(void)sl_kube_device_name("GPU-a_b", name);
	(void)sl_kube_device_name("GPU-a.b", other);
	assert_string_not_equal(name, other);
}

static const char *version_of(const char *version, const char **kind)
{
	static char text[100];
	struct sl_kube_gpu gpu = well;
	json_t *spec, *attribute;

	gpu.driver_version = version;
	spec = spec_of(&gpu, 1, 0);
	attribute = sl_kube_at(json_array_get(sl_kube_at(spec, "devices", NULL), 0),
		"attributes", "driverVersion", NULL);
	*kind = json_object_get(attribute, "version") ? "version" : "string";
	(void)snprintf(text, sizeof(text), "%s", sl_kube_text_at(attribute, *kind, NULL));
	json_decref(spec);
	return text;
}

static void versions(void **state)
{
	static const struct {
		const char *version, *kind, *want;
	} rows[] = {
		{"570.86.15", "version", "570.86.15"},
		{"535.054.03", "version", "535.54.3"},
		{"550.54", "version", "550.54.0"},
		{"550", "string", "550"},
		{"1.2.3.4", "string", "1.2.3.4"},
		{"1.2.3-x", "string", "1.2.3-x"},
		{"1..3", "string", "1..3"},
		{"1-2.3", "string", "1-2.3"},
		{"soft 1", "string", "soft 1"},
		{"1.2.99999999999999999999", "string", "1.2.99999999999999999999"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3"
		 "\xa4",
			"string",
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			"a"},
	};
	const char *kind;

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		assert_row_text(rows[i].version, version_of(rows[i].version, &kind),
			rows[i].want);
		assert_row_text(rows[i].version, kind, rows[i].kind);
	}
}

/* "value default max of memory, max of memoryLimit" of the first device; "" without one. */
static const char *amounts_of(uint64_t shareable_bytes, unsigned int factor)
{
	static char text[200];
	struct sl_kube_gpu gpu = well;
	json_t *spec, *all, *memory;

	gpu.shareable_bytes = shareable_bytes;
	spec = spec_of(&gpu, 1, factor);
	all = sl_kube_at(
		json_array_get(sl_kube_at(spec, "devices", NULL), 0), "capacity", NULL);
	memory = sl_kube_at(all, "memory", NULL);
	(void)snprintf(text, sizeof(text), "%s %s %s, %s",
		sl_kube_text_at(memory, "value", NULL),
		sl_kube_text_at(memory, "requestPolicy", "default", NULL),
		sl_kube_text_at(memory, "requestPolicy", "validRange", "max", NULL),
		sl_kube_text_at(
			all, "memoryLimit", "requestPolicy", "validRange", "max", NULL));
	json_decref(spec);
	return all ? text : "";
}

static void amounts(void **state)
{
	assert_string_equal(amounts_of(16 * SL_GIB, 150), "24Gi 24Gi 24Gi, 16Gi");
	assert_string_equal(
		amounts_of(16 * SL_GIB - 1, 0), "16383Mi 16383Mi 16383Mi, 16383Mi");
	assert_string_equal(amounts_of(3 * SL_MIB + 5, 133), "3Mi 3Mi 3Mi, 3Mi");
	assert_string_equal(amounts_of(3 * SL_MIB, 134), "4Mi 4Mi 4Mi, 3Mi");
	assert_string_equal(amounts_of(2 * SL_MIB, 0), "2Mi 2Mi 2Mi, 2Mi");
	assert_string_equal(amounts_of(2 * SL_MIB - 1, 0), "");
	assert_string_equal(amounts_of(0, 0), "");
}

static void taints_and_what_is_unknown(void **state)
{
	struct sl_kube_gpu gpus[] = {well, {.uuid = "GPU-2",
						   .numa_node = -1,
						   .state = SL_KUBE_GPU_LOST,
						   .shareable_bytes = SL_GIB}};
	json_t *spec = spec_of(gpus, 2, 0), *second;

	second = json_array_get(sl_kube_at(spec, "devices", NULL), 1);
	assert_null(json_object_get(
		json_array_get(sl_kube_at(spec, "devices", NULL), 0), "taints"));
	assert_int_equal(json_object_size(sl_kube_at(second, "attributes", NULL)), 2);
	second = json_array_get(sl_kube_at(second, "taints", NULL), 0);
	assert_string_equal(sl_kube_text_at(second, "key", NULL), "sluice.dev/lost");
	assert_string_equal(sl_kube_text_at(second, "effect", NULL), "NoSchedule");
	json_decref(spec);
	gpus[1].state = SL_KUBE_GPU_DEGRADED;
	spec = spec_of(gpus + 1, 1, 0);
	second = json_array_get(sl_kube_at(spec, "devices", NULL), 0);
	second = json_array_get(sl_kube_at(second, "taints", NULL), 0);
	assert_string_equal(sl_kube_text_at(second, "key", NULL), "sluice.dev/degraded");
	json_decref(spec);
}

static void what_cannot_be_said(void **state)
{
	struct sl_kube_gpu gpus[SL_KUBE_GPUS_MAX + 1] = {well, well};
	json_t *spec = NULL;

	assert_int_equal(sl_kube_slice_spec(&spec, "n",
				 &(struct sl_kube_inventory){
					 .gpus = gpus, .gpu_count = SL_ARRAY_LEN(gpus)}),
		-E2BIG);
	assert_int_equal(
		sl_kube_slice_spec(&spec, "n",
			&(struct sl_kube_inventory){.gpus = gpus, .gpu_count = 2}),
		-EEXIST);
	gpus[0].uuid = "GPU-\xff";
	assert_int_equal(
		sl_kube_slice_spec(&spec, "n",
			&(struct sl_kube_inventory){.gpus = gpus, .gpu_count = 1}),
		-EINVAL);
	assert_null(spec);
}

static void comparing(void **state)
{
	struct sl_kube_gpu gpus[] = {well, {.uuid = "GPU-2",
						   .numa_node = -1,
						   .state = SL_KUBE_GPU_LOST,
						   .shareable_bytes = SL_GIB}};
	json_t *a = spec_of(gpus, 2, 0), *b = spec_of(gpus, 2, 0), *device;

	assert_true(sl_kube_slice_is_equal(a, b));
	(void)json_object_set_new(
		json_object_get(b, "pool"), "generation", json_integer(9));
	device = json_array_get(json_object_get(b, "devices"), 1);
	(void)json_object_set_new(json_array_get(json_object_get(device, "taints"), 0),
		"timeAdded", json_string("2026-01-01T00:00:00Z"));
	assert_true(sl_kube_slice_is_equal(a, b));
	/* The compared objects are unchanged. */
	assert_int_equal(
		json_integer_value(sl_kube_at(b, "pool", "generation", NULL)), 9);
	(void)json_object_del(device, "taints");
	assert_false(sl_kube_slice_is_equal(a, b));
	json_decref(b);
	gpus[1].shareable_bytes += SL_MIB;
	b = spec_of(gpus, 2, 0);
	assert_false(sl_kube_slice_is_equal(a, b));
	assert_false(sl_kube_slice_is_equal(a, NULL));
	json_decref(a);
	json_decref(b);
	a = spec_of(NULL, 0, 0);
	b = json_deep_copy(a);
	(void)json_object_del(b, "devices");
	assert_true(sl_kube_slice_is_equal(a, b));
	json_decref(a);
	json_decref(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_whole_of_it),
		cmocka_unit_test(quantities),
		cmocka_unit_test(device_names),
		cmocka_unit_test(versions),
		cmocka_unit_test(amounts),
		cmocka_unit_test(taints_and_what_is_unknown),
		cmocka_unit_test(what_cannot_be_said),
		cmocka_unit_test(comparing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
