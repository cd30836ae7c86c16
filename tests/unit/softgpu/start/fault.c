/*
 * fault - the effect of a fault plan on each call
 *
 * A process reads its plan once, so every row runs in a child of its own. A child that does not
 * answer in time hangs, which some rows want.
 */
#include "../../base/test.h"

#include "softgpu/driver/driver.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANGS     (-1)
#define HANG_MS   200
#define ANSWER_MS 10000
#define COMPLAINT 512
#define RULES_MAX 64 /* as in fault.c */

struct row {
	const char *name, *plan, *own; /* own: the program's variable */
	enum sl_entry_id id;
	unsigned nth;
	int want;
	const char *says; /* on stderr; NULL: nothing */
};

static void child(const struct row *row, int answer, int complaint)
{
	CUresult r = CUDA_SUCCESS;

	dup2(complaint, STDERR_FILENO);
	if (row->own)
		setenv(SL_SOFTGPU_ENV_FAULTS, row->own, 1);
	else
		unsetenv(SL_SOFTGPU_ENV_FAULTS);
	sl_fault_init(row->plan);
	for (unsigned i = 0; i < row->nth; i++)
		r = sl_fault_check(row->id);
	_exit(write(answer, &r, sizeof(r)) != sizeof(r));
}

static void run(const struct row *row)
{
	int answer[2], complaint[2], got = HANGS;
	char said[COMPLAINT] = "";

	assert_int_equal(pipe(answer), 0);
	assert_int_equal(pipe(complaint), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(row, answer[1], complaint[1]);
	close(answer[1]);
	close(complaint[1]);
	struct pollfd p = {.fd = answer[0], .events = POLLIN};
	if (poll(&p, 1, row->want == HANGS ? HANG_MS : ANSWER_MS) == 1)
		assert_int_equal(read(answer[0], &got, sizeof(got)), sizeof(got));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(read(complaint[0], said, sizeof(said) - 1) >= 0);
	close(answer[0]);
	close(complaint[0]);
	assert_row_u64(row->name, (uint64_t)got, (uint64_t)row->want);
	if (row->says)
		assert_row_contains(row->name, said, row->says);
	else
		assert_row_text(row->name, said, "");
}

#define CREATE SL_E_cuMemCreate
#define MAP    SL_E_cuMemMap
#define OOM    CUDA_ERROR_OUT_OF_MEMORY

static void test_good_plans(void **state)
{
	static const struct row rows[] = {
		{"no plan", "", NULL, CREATE, 1, 0, NULL},
		{"the first", "cuMemCreate:1=oom", NULL, CREATE, 1, OOM, NULL},
		{"before the third", "cuMemCreate:3=oom", NULL, CREATE, 2, 0, NULL},
		{"the third", "cuMemCreate:3=oom", NULL, CREATE, 3, OOM, NULL},
		{"after the third", "cuMemCreate:3=oom", NULL, CREATE, 4, 0, NULL},
		{"another call", "cuMemCreate:1=oom", NULL, MAP, 1, 0, NULL},
		{"every fifth, 4", "cuMemMap:@5=unknown", NULL, MAP, 4, 0, NULL},
		{"every fifth, 5", "cuMemMap:@5=unknown", NULL, MAP, 5,
			CUDA_ERROR_UNKNOWN, NULL},
		{"every fifth, 6", "cuMemMap:@5=unknown", NULL, MAP, 6, 0, NULL},
		{"every fifth, 10", "cuMemMap:@5=unknown", NULL, MAP, 10,
			CUDA_ERROR_UNKNOWN, NULL},
		{"whole name, other case", "cuMemMap:1=Out_Of_Memory", NULL, MAP, 1, OOM,
			NULL},
		{"a number", "cuMemMap:1=719", NULL, MAP, 1, CUDA_ERROR_LAUNCH_FAILED,
			NULL},
		{"second of two", "cuMemCreate:1=oom,cuMemMap:2=700", NULL, MAP, 2,
			CUDA_ERROR_ILLEGAL_ADDRESS, NULL},
		{"empty rows", ",,cuMemMap:1=oom,", NULL, MAP, 1, OOM, NULL},
		{"the first rule that fits", "cuMemMap:2=oom,cuMemMap:@1=700", NULL, MAP,
			2, OOM, NULL},
		{"the program's own", NULL, "cuMemMap:1=oom", MAP, 1, OOM, NULL},
		{"both", "cuMemCreate:1=oom", "cuMemMap:1=700", MAP, 1,
			CUDA_ERROR_ILLEGAL_ADDRESS, NULL},
		{"a hang", "cuMemMap:2=hang", NULL, MAP, 2, HANGS, NULL},
		{"before the hang", "cuMemMap:2=hang", NULL, MAP, 1, 0, NULL},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		run(&rows[i]);
}

/* Each is told, harms no neighbour, and does nothing. */
static void test_bad_plans(void **state)
{
	static const char *const bad[] = {"cuMemMap", "cuMemMap:1", "cuMemMap=oom",
		"cuMemMap=oom:1", "cuMemMap:=oom", "cuMemMap:0=oom", "cuMemMap:@=oom",
		"cuMemMap:@0=oom", "cuMemMap:-1=oom", "cuMemMap:+1=oom",
		"cuMemMap: 1=oom", "cuMemMap:1x=oom", "cuMemMap:1=", "cuMemMap:1=-1",
		"cuMemMap:1=0", "cuMemMap:1=nonsense", "cuMemMap:1=99999999999",
		"cuMemMap:99999999999999999999=oom", "cuMemmap:1=oom", " cuMemMap:1=oom",
		":1=oom", "="};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(bad); i++) {
		char plan[160], says[200];
		struct row row = {bad[i], plan, NULL, MAP, 1, 0, says};

		snprintf(plan, sizeof(plan), "%s,cuMemCreate:1=oom", bad[i]);
		snprintf(says, sizeof(says), "'%s' not understood", bad[i]);
		run(&row);
		row.id = CREATE;
		row.want = OOM;
		run(&row);
	}
}

static void test_too_many_rules(void **state)
{
	char plan[RULES_MAX * 24 + 64] = "";
	struct row row = {"one more", plan, NULL, CREATE, 1, 0,
		"'cuMemCreate:1=oom' one rule too many"};

	(void)state;
	for (int i = 1; i <= RULES_MAX; i++)
		sprintf(plan + strlen(plan), "cuMemMap:%d=oom,", i);
	strcat(plan, "cuMemCreate:1=oom");
	run(&row);
	row = (struct row){"the last that fits", plan, NULL, MAP, RULES_MAX, OOM,
		"one rule too many"};
	run(&row);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_plans),
		cmocka_unit_test(test_bad_plans),
		cmocka_unit_test(test_too_many_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
