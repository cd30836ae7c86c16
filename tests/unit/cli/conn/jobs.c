/* The end of a job, as words and as an exit status, and which ends have a line in `ps`. */
#include "../../base/test.h"

#include "cli/conn/jobs.h"
#include "cli/conn/ps_jobs.h"
#include "daemon/report/tell.h"

static const struct {
	uint32_t state, exit_status;
	int exit;
	const char *says;
} rows[] = {
	{SL_JOB_QUEUED, 0, 1, "is queued"}, {SL_JOB_DONE, 0, 0, "is done"},
	{SL_JOB_FAILED, 3 << 8, 3, "failed: exit status 3"},
	{SL_JOB_FAILED, 255 << 8, 255, "failed: exit status 255"},
	{SL_JOB_FAILED, SIGKILL, 137, "failed: killed by signal 9 (Killed)"},
	{SL_JOB_FAILED, SIGSEGV | 128, 139,
		"failed: killed by signal 11"}, /* with a core */
	{SL_JOB_FAILED, 0, 1, "failed"},        /* never started */
	{SL_JOB_FAILED, SL_JOB_LOST, 1, "failed; its exit status is not known"},
	{SL_JOB_STOPPED, 0, 143, "was stopped"},
	{SL_JOB_STOPPED, SIGTERM, 143, "was stopped: killed by signal 15"},
	{SL_JOB_STOPPED, SIGKILL, 137, "was stopped: killed by signal 9"},
	{SL_JOB_STOPPED, 5 << 8, 5, "was stopped: exit status 5"},
	{SL_JOB_STATES, 0, 1, "failed"}, /* of a newer daemon */
};

static void test_endings(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		char text[96];

		sl_tell_ending(rows[i].state, rows[i].exit_status, text, sizeof(text));
		assert_row_contains(rows[i].says, text, rows[i].says);
		assert_row_u64(rows[i].says,
			(uint64_t)sl_jobs_exit(rows[i].state, rows[i].exit_status),
			(uint64_t)rows[i].exit);
	}
}

/* A workload of user 7 with id 5, and a job. Is it the workload's? */
static const struct {
	const char *use, *job;
	uint64_t workload;
	uint32_t uid, tasks, state;
	bool is;
} pairs[] = {
	{"a", "a", 5, 7, 1, SL_JOB_RUNNING, true},
	{"a", "a", 0, 7, 1, SL_JOB_QUEUED, true}, /* started since the list was made */
	{"a", "b", 5, 7, 1, SL_JOB_RUNNING, true},
	{"a", "a", 4, 8, 1, SL_JOB_RUNNING, false}, /* another user's */
	{"a", "b", 4, 7, 1, SL_JOB_RUNNING, false},
	{"a.3", "a", 4, 7, 4, SL_JOB_RUNNING, true},
	{"a.13", "a", 4, 7, 14, SL_JOB_PARKED, true},
	{"a.3", "a", 4, 7, 1, SL_JOB_RUNNING, false}, /* has no tasks */
	{"a.b", "a", 4, 7, 4, SL_JOB_RUNNING, false},
	{"ab.3", "a", 4, 7, 4, SL_JOB_RUNNING, false},
	{"a", "a", 5, 7, 1, SL_JOB_DONE, false},
};

static void test_pairs(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(pairs); i++) {
		union sl_msg use, job;
		struct sl_rows uses = {.all = &use, .count = 1};
		struct sl_rows jobs = {.all = &job, .count = 1};

		sl_wire_init(&use, SL_MSG_USE_ROW);
		sl_wire_init(&job, SL_MSG_JOB_ROW);
		use.use_row.workload = 5;
		use.use_row.uid = 7;
		sl_wire_str(use.use_row.name, sizeof(use.use_row.name), pairs[i].use);
		job.job_row.job = 1;
		job.job_row.workload = pairs[i].workload;
		job.job_row.uid = pairs[i].uid;
		job.job_row.tasks = pairs[i].tasks;
		job.job_row.state = pairs[i].state;
		sl_wire_str(job.job_row.name, sizeof(job.job_row.name), pairs[i].job);
		assert_row_u64(pairs[i].use, sl_ps_job_of(&jobs, &use.use_row) != NULL,
			pairs[i].is);
		assert_row_u64(pairs[i].use, sl_ps_job_is_alone(&job.job_row, &uses),
			!pairs[i].is && !sl_tell_job_is_over(pairs[i].state));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_endings),
		cmocka_unit_test(test_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
