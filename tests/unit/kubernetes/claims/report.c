/* The status of a claim, and when it is written. */
#include "../../base/test.h"

#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/claims/report.h"

#define T1 "2026-01-01T00:00:01Z"
#define T2 "2026-01-01T00:00:02Z"

static const struct sl_share share = {.uid = "u-1",
	.namespace = "team",
	.name = "c",
	.count = 2,
	.devices = {{.device = "gpu-a", .id = "s-1"}, {.device = "gpu-b"}}};

static const struct sl_kube_figures runs = {.state = "bound",
	.on = "gpu-c",
	.request_bytes = 6,
	.limit_bytes = 14,
	.resident_bytes = 9,
	.is_ready = true};

static json_t *devices_of(struct sl_kube_figures a, const json_t *before, const char *now)
{
	const struct sl_kube_figures both[] = {a, runs};
	json_t *devices = sl_kube_report_devices(&share, "node1", both, before, now);

	assert_int_equal(json_array_size(devices), 2);
	return devices;
}

static const json_t *condition(const json_t *devices, size_t device, size_t which)
{
	return json_array_get(
		json_object_get(json_array_get(devices, device), "conditions"), which);
}

static void says(const json_t *object, const char *key, const char *want)
{
	assert_row_text(key, sl_kube_text_at(object, key, NULL), want);
}

static void of_each_gpu(void **state)
{
	json_t *devices = devices_of(runs, NULL, T1);
	const json_t *one = json_array_get(devices, 0), *data;

	says(one, "driver", "gpu.sluice.dev");
	says(one, "pool", "node1");
	says(one, "device", "gpu-a");
	says(one, "shareID", "s-1");
	assert_null(json_object_get(json_array_get(devices, 1), "shareID"));
	data = json_object_get(one, "data");
	says(data, "state", "bound");
	says(data, "gpu", "gpu-c");
	assert_int_equal(json_integer_value(json_object_get(data, "request")), 6);
	assert_int_equal(json_integer_value(json_object_get(data, "limit")), 14);
	assert_int_equal(json_integer_value(json_object_get(data, "resident")), 9);
	assert_int_equal(json_integer_value(json_object_get(data, "evicted")), 0);
	says(condition(devices, 0, 0), "type", "Ready");
	says(condition(devices, 0, 0), "status", "True");
	says(condition(devices, 0, 1), "type", "Parked");
	says(condition(devices, 0, 1), "status", "False");
	says(condition(devices, 0, 1), "lastTransitionTime", T1);
	json_decref(devices);
}

static void the_same_stays_the_same(void **state)
{
	json_t *devices = devices_of(runs, NULL, T1);
	json_t *again = devices_of(runs, devices, T2);

	assert_true(json_equal(devices, again));
	assert_false(sl_kube_report_is_urgent(devices, again));
	json_decref(again);
	json_decref(devices);
}

static void a_condition_keeps_its_time_until_it_changes(void **state)
{
	struct sl_kube_figures parked = runs;
	json_t *devices = devices_of(runs, NULL, T1), *again;

	parked.park = SL_KUBE_PARKING;
	again = devices_of(parked, devices, T2);
	says(condition(again, 0, 1), "status", "False");
	says(condition(again, 0, 1), "reason", "Parking");
	says(condition(again, 0, 1), "lastTransitionTime", T1);
	json_decref(again);
	parked.park = SL_KUBE_PARK_REFUSED;
	parked.refusal = "no room on the host";
	again = devices_of(parked, devices, T2);
	says(condition(again, 0, 1), "status", "False");
	says(condition(again, 0, 1), "reason", "Refused");
	says(condition(again, 0, 1), "message", "no room on the host");
	assert_true(sl_kube_report_is_urgent(devices, again));
	json_decref(again);
	parked.refusal = NULL;
	parked.park = SL_KUBE_IS_PARKED;
	again = devices_of(parked, devices, T2);
	says(condition(again, 0, 1), "status", "True");
	says(condition(again, 0, 1), "lastTransitionTime", T2);
	says(condition(again, 0, 0), "lastTransitionTime", T1);
	says(condition(again, 1, 1), "status", "False");
	json_decref(again);
	json_decref(devices);
}

static void what_people_wait_for_is_urgent(void **state)
{
	struct sl_kube_figures other = runs;
	json_t *before = devices_of(runs, NULL, T1), *after;

#define URGENT(want)                                                             \
	do {                                                                     \
		after = devices_of(other, before, T2);                           \
		assert_false(json_equal(before, after));                         \
		assert_int_equal(sl_kube_report_is_urgent(before, after), want); \
		json_decref(after);                                              \
		other = runs;                                                    \
	} while (0)
	other.resident_bytes = 10;
	URGENT(false);
	other.state = "evicted";
	other.evicted_bytes = 9;
	URGENT(false);
	other.limit_bytes = 15;
	URGENT(true);
	other.on = "gpu-b";
	URGENT(true);
	other.park = SL_KUBE_RESUMING;
	URGENT(true);
	other.is_ready = false;
	URGENT(true);
#undef URGENT
	json_decref(before);
	before = json_array();
	after = devices_of(runs, before, T1);
	assert_true(sl_kube_report_is_urgent(before, after));
	json_decref(after);
	json_decref(before);
}

/* Entries of other drivers and nodes are neither read nor written. */
static void others_are_left_alone(void **state)
{
	json_t *claim = json_loads("{\"status\":{\"devices\":[{\"driver\":\"net.example."
				   "com\",\"pool\":\"node1\"},"
				   "{\"driver\":\"gpu.sluice.dev\",\"pool\":\"node2\"},"
				   "{\"driver\":\"gpu.sluice.dev\",\"pool\":\"node1\","
				   "\"device\":\"gpu-a\"}]}}",
		0, NULL);
	json_t *ours = sl_kube_report_read(claim, "node1"), *none, *patch;

	assert_int_equal(json_array_size(ours), 1);
	says(json_array_get(ours, 0), "device", "gpu-a");
	none = sl_kube_report_read(NULL, "node1");
	assert_int_equal(json_array_size(none), 0);
	patch = sl_kube_report_patch(&share, ours);
	says(patch, "kind", "ResourceClaim");
	assert_string_equal(sl_kube_text_at(patch, "metadata", "uid", NULL), "u-1");
	assert_true(json_equal(sl_kube_at(patch, "status", "devices", NULL), ours));
	json_decref(patch);
	json_decref(none);
	json_decref(ours);
	json_decref(claim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_each_gpu),
		cmocka_unit_test(the_same_stays_the_same),
		cmocka_unit_test(a_condition_keeps_its_time_until_it_changes),
		cmocka_unit_test(what_people_wait_for_is_urgent),
		cmocka_unit_test(others_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
