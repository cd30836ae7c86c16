#include "../../base/test.h"

#include "policy/quota/queue.h"

/* Of at most 4 jobs, so 40 tasks, and 1000 bytes. A new job has 5 tasks and 100 bytes. */
static const struct {
	const char *name;
	struct sl_queue_share has;
	struct sl_queue_verdict verdict;
	uint64_t no_bytes; /* there is no bound of bytes */
} rows[] = {
	{"the first", {0}, {SL_QUEUE_OK, 0, 0}, 0},
	{"the last but none", {.living = 3}, {SL_QUEUE_OK, 0, 0}, 0},
	{"one too many", {.living = 4}, {.outcome = SL_QUEUE_JOBS}, 0},
	{"what has ended makes room", {.living = 1, .kept = 3}, {SL_QUEUE_OK, 1, 0}, 0},
	{"the bound was lowered", {.living = 2, .kept = 6}, {SL_QUEUE_OK, 5, 0}, 0},
	{"what has ended makes no room where all live", {.living = 4, .kept = 9},
		{.outcome = SL_QUEUE_JOBS}, 0},
	{"as many tasks as may be", {.living = 1, .tasks = 35}, {SL_QUEUE_OK, 0, 0}, 0},
	{"a task too many", {.living = 1, .tasks = 36}, {.outcome = SL_QUEUE_TASKS}, 0},
	{"as many bytes as may be", {.living = 1, .living_bytes = 900},
		{SL_QUEUE_OK, 0, 0}, 0},
	{"a byte too many", {.living = 1, .living_bytes = 901},
		{.outcome = SL_QUEUE_BYTES}, 0},
	{"bytes of what has ended make room",
		{.living = 1, .kept = 1, .living_bytes = 600, .kept_bytes = 400},
		{SL_QUEUE_OK, 0, 100}, 0},
	{"there is no bound of bytes",
		{.living = 1, .kept = 1, .living_bytes = 6000, .kept_bytes = 400},
		{SL_QUEUE_OK, 0, 0}, 1},
};

static void test_judge(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_queue_bounds bounds = {
			.jobs = 4, .bytes = rows[i].no_bytes ? 0 : 1000};
		struct sl_queue_verdict verdict =
			sl_queue_judge(&rows[i].has, &bounds, 5, 100);

		if (verdict.outcome != rows[i].verdict.outcome ||
			verdict.drop_jobs != rows[i].verdict.drop_jobs ||
			verdict.drop_bytes != rows[i].verdict.drop_bytes)
			fail_msg("%s: %d, jobs %u, bytes %llu", rows[i].name,
				(int)verdict.outcome, verdict.drop_jobs,
				(unsigned long long)verdict.drop_bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_judge)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
