/* NVML's figures of single processes: when they are asked for, which are believed, and
 * which are kept. */
#include "../../base/test.h"

#include "daemon/gpu/nvml_samples.h"

/* An NVML that answers as the test says. */
static struct {
	nvmlReturn_t result;
	nvmlProcessUtilizationSample_t rows[8];
	unsigned int count, offered, asked;
	unsigned long long since_us;
} fake;

static nvmlReturn_t answer(nvmlDevice_t device, nvmlProcessUtilizationSample_t *rows,
	unsigned int *count, unsigned long long since_us)
{
	unsigned int room = *count;

	fake.asked += rows == NULL;
	fake.since_us = since_us;
	if (fake.result != NVML_SUCCESS)
		return fake.result;
	*count = fake.offered;
	if (!rows || room < fake.offered)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(rows, fake.rows, fake.count * sizeof(rows[0]));
	*count = fake.count;
	return NVML_SUCCESS;
}

static struct sl_nvml_samples samples;

static int setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.offered = 100;
	return 0;
}

static int teardown(void **state)
{
	sl_nvml_samples_fini(&samples);
	return 0;
}

static void put(uint32_t pid, unsigned long long stamp, uint32_t pct)
{
	fake.rows[fake.count++] = (nvmlProcessUtilizationSample_t){
		.pid = pid, .timeStamp = stamp, .smUtil = pct};
}

static void ask(sl_ns now)
{
	sl_nvml_samples_ask(&samples, answer, NULL, false, now);
}

static void each_process_once(void **state)
{
	put(30, 5000, 20);
	put(10, 5100, 40);
	put(30, 5200, 25);
	put(20, 5300, 0);
	ask(SL_S);
	assert_true(samples.known);
	assert_int_equal(fake.since_us, 0);
	assert_int_equal(sl_nvml_samples_of(&samples, 10), 40);
	assert_int_equal(sl_nvml_samples_of(&samples, 30), 25);
	assert_int_equal(sl_nvml_samples_of(&samples, 20), 0);
	assert_int_equal(sl_nvml_samples_of(&samples, 99), 0);
	assert_int_equal(sl_nvml_samples_sum(&samples), 65);
}

/* Asked for since the newest sample, by NVML's own clock, and not with each reader. */
static void asked_once_a_second(void **state)
{
	put(10, 7000000, 40);
	ask(SL_S);
	ask(SL_S + SL_S / 2);
	assert_int_equal(fake.asked, 1);
	ask(2 * SL_S);
	assert_int_equal(fake.asked, 2);
	assert_int_equal(fake.since_us, 7000000);
	/* Nothing new: it still did that a second ago, but not a minute ago. */
	fake.result = NVML_ERROR_NOT_FOUND;
	assert_int_equal(sl_nvml_samples_sum(&samples), 0);
	fake.result = NVML_SUCCESS;
	fake.rows[0].timeStamp = 8000000;
	ask(3 * SL_S);
	assert_int_equal(sl_nvml_samples_sum(&samples), 40);
	fake.result = NVML_ERROR_NOT_FOUND;
	ask(4 * SL_S);
	assert_int_equal(sl_nvml_samples_sum(&samples), 40);
	ask(63 * SL_S);
	assert_true(samples.known);
	assert_int_equal(sl_nvml_samples_sum(&samples), 0);
	assert_int_equal(fake.since_us, 8000000 + 58000000);
}

/* The GPU works, and no known process does: so the figures are old. */
static void asked_sooner_where_somebody_works(void **state)
{
	ask(SL_S);
	assert_int_equal(fake.asked, 1);
	put(10, 7000000, 40);
	sl_nvml_samples_ask(&samples, answer, NULL, true, SL_S + 50 * SL_MS);
	assert_int_equal(fake.asked, 1);
	sl_nvml_samples_ask(&samples, answer, NULL, true, SL_S + 150 * SL_MS);
	assert_int_equal(sl_nvml_samples_of(&samples, 10), 40);
	sl_nvml_samples_ask(&samples, answer, NULL, true, SL_S + 300 * SL_MS);
	assert_int_equal(fake.asked, 2);
}

/* Seen of real drivers: shares beyond all reason, samples of long ago, unknown numbers. */
static void nonsense_is_passed_over(void **state)
{
	put(10, 7000000, 40);
	ask(SL_S);
	fake.count = 0;
	put(10, 7500000, 2147483632);
	put(11, 6000000, 50);
	put(0, 7500000, 50);
	put(12, 7500000, 30);
	ask(2 * SL_S);
	assert_int_equal(sl_nvml_samples_sum(&samples), 30);
	assert_int_equal(sl_nvml_samples_of(&samples, 12), 30);
	assert_int_equal(sl_nvml_samples_of(&samples, 10), 0);
	/* No room for so many can be meant. */
	fake.offered = 0x7fffffff;
	ask(3 * SL_S);
	assert_false(samples.known);
}

static void who_does_not_tell_is_not_asked_again(void **state)
{
	static const struct {
		nvmlReturn_t result;
		bool again;
	} rows[] = {
		{NVML_ERROR_NOT_SUPPORTED, false},
		{NVML_ERROR_NO_PERMISSION, false},
		{NVML_ERROR_UNKNOWN, true},
		{NVML_ERROR_GPU_IS_LOST, true},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		sl_nvml_samples_fini(&samples);
		fake.asked = 0;
		fake.result = rows[i].result;
		ask(SL_S);
		ask(10 * SL_S);
		assert_false(samples.known);
		assert_int_equal(fake.asked, rows[i].again ? 2 : 1);
	}
	sl_nvml_samples_fini(&samples);
	sl_nvml_samples_ask(&samples, NULL, NULL, false, SL_S);
	assert_false(samples.known);
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		FRESH(each_process_once),
		FRESH(asked_once_a_second),
		FRESH(asked_sooner_where_somebody_works),
		FRESH(nonsense_is_passed_over),
		FRESH(who_does_not_tell_is_not_asked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
