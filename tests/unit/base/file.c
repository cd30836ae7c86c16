#include "test.h"

#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_replace_and_read(void **state)
{
	char dir[] = "/tmp/sluice-test-XXXXXX", path[200], deep[300];
	char *text = NULL;
	size_t bytes = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/a/b", dir);
	assert_int_equal(sl_file_make_dirs(path, 0700), 0);
	assert_int_equal(sl_file_make_dirs(path, 0700), 0);
	(void)snprintf(deep, sizeof(deep), "%s/file", path);
	assert_int_equal(sl_file_read(deep, 100, &text, &bytes), -ENOENT);
	assert_int_equal(sl_file_replace(deep, "one", 3, false), 0);
	assert_int_equal(sl_file_replace(deep, "other", 5, true), 0);
	assert_int_equal(sl_file_read(deep, 5, &text, &bytes), 0);
	assert_int_equal(bytes, 5);
	assert_string_equal(text, "other");
	sl_freep(&text);
	assert_null(text);
	assert_int_equal(sl_file_read(deep, 4, &text, &bytes), -EFBIG);
	assert_null(text);
	/* A folder that is not there: nothing is left behind. */
	(void)snprintf(deep, sizeof(deep), "%s/none/file", dir);
	assert_int_equal(sl_file_replace(deep, "x", 1, false), -ENOENT);
	(void)snprintf(deep, sizeof(deep), "rm -r %s", dir);
	assert_int_equal(system(deep), 0);
}

static void test_processes(void **state)
{
	uint64_t ours = 0, again = 0, init = 0;
	struct sl_pid_stat stat_now = {0};

	(void)state;
	assert_int_equal(sl_file_pid_start(getpid(), &ours), 0);
	assert_int_equal(sl_file_pid_start(getpid(), &again), 0);
	assert_true(ours > 0);
	assert_int_equal(ours, again);
	assert_int_equal(sl_file_pid_start(1, &init), 0);
	assert_true(init <= ours);
	assert_int_equal(sl_file_pid_parent(getpid()), getppid());
	assert_true(sl_file_pid_parent(-1) < 0);
	assert_int_equal(sl_file_pid_stat(getpid(), &stat_now), 0);
	assert_int_equal(stat_now.state, 'R');
	assert_int_equal(stat_now.parent, getppid());
	assert_int_equal(stat_now.start_ticks, ours);
	assert_false(stat_now.kernel_thread);
}

static void test_clock(void **state)
{
	sl_ns before = sl_clock_now();

	(void)state;
	sl_clock_sleep(2 * SL_MS);
	assert_true(sl_clock_now() - before >= 2 * SL_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replace_and_read),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
