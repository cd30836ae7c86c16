#include "../../base/test.h"

#include "policy/quota/retry.h"

static const struct {
	const char *name;
	struct sl_retry_facts facts;
	struct sl_retry_verdict verdict;
} rows[] = {
	{"it did what it should", {.ok = true}, {SL_RETRY_DONE, false, 0}},
	{"it failed, and may not again", {.failures = 0}, {SL_RETRY_FAILED, true, 0}},
	{"it failed the first time", {.retries = 3}, {SL_RETRY_AGAIN, true, SL_S}},
	{"it failed the third time", {.retries = 3, .failures = 2},
		{SL_RETRY_AGAIN, true, 4 * SL_S}},
	{"it failed once too often", {.retries = 3, .failures = 3},
		{SL_RETRY_FAILED, true, 0}},
	{"the pause has a bound", {.retries = 100, .failures = 99},
		{SL_RETRY_AGAIN, true, SL_RETRY_PAUSE_MOST}},
	{"somebody wanted its end", {.asked = true, .retries = 3},
		{SL_RETRY_STOPPED, false, 0}},
	{"somebody wanted its end, and it left in order", {.asked = true, .ok = true},
		{SL_RETRY_STOPPED, false, 0}},
	{"it was stopped for others", {.stopped = true}, {SL_RETRY_AGAIN, false, 0}},
	{"it was stopped for others, and left in order", {.stopped = true, .ok = true},
		{SL_RETRY_AGAIN, false, 0}},
	{"stopped for others, and for good", {.stopped = true, .asked = true},
		{SL_RETRY_STOPPED, false, 0}},
	{"it never went", {.ending = SL_RETRY_NEVER_WENT}, {SL_RETRY_AGAIN, false, 0}},
	{"it could not be started", {.ending = SL_RETRY_NOT_STARTED},
		{SL_RETRY_FAILED, true, 0}},
	{"nobody saw its end", {.ending = SL_RETRY_LOST, .retries = 1},
		{SL_RETRY_AGAIN, true, SL_S}},
	{"nobody saw its end, but that it was 0", {.ending = SL_RETRY_LOST, .ok = true},
		{SL_RETRY_FAILED, true, 0}},
	{"a reboot, and it may be stopped at any time",
		{.ending = SL_RETRY_REBOOT, .preemptible = true},
		{SL_RETRY_AGAIN, false, 0}},
	{"a reboot, and it may be tried again", {.ending = SL_RETRY_REBOOT, .retries = 1},
		{SL_RETRY_AGAIN, true, 0}},
	{"a reboot", {.ending = SL_RETRY_REBOOT}, {SL_RETRY_FAILED, true, 0}},
};

static void test_judge(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_retry_verdict verdict = sl_retry_judge(&rows[i].facts);

		if (verdict.outcome != rows[i].verdict.outcome ||
			verdict.counts != rows[i].verdict.counts ||
			verdict.pause != rows[i].verdict.pause)
			fail_msg("%s: %d, counts %d, pause %llu ns", rows[i].name,
				(int)verdict.outcome, verdict.counts,
				(unsigned long long)verdict.pause);
	}
}

static void test_hopeless(void **state)
{
	assert_false(sl_retry_is_hopeless(4, 0, 0));
	assert_true(sl_retry_is_hopeless(4, 0, 1));
	assert_false(sl_retry_is_hopeless(4, 2, 2));
	assert_true(sl_retry_is_hopeless(4, 2, 3));
	assert_true(sl_retry_is_hopeless(1, 1, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_hopeless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
