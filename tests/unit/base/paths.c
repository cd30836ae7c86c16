#include "test.h"

#include "base/paths.h"

#include <stdlib.h>
#include <unistd.h>

static void test_socket(void **state)
{
	char path[SL_PATH_MAX], longest[200];
	struct sl_error err = {{0}};

	(void)state;
	setenv("SLUICE_SOCKET", "/some/where.sock", 1);
	assert_int_equal(sl_paths_socket(path, sizeof(path), &err), SL_PATHS_OK);
	assert_string_equal(path, "/some/where.sock");
	assert_int_equal(chdir("/tmp"), 0);
	setenv("SLUICE_SOCKET", "here.sock", 1);
	assert_int_equal(sl_paths_socket(path, sizeof(path), &err), SL_PATHS_OK);
	assert_string_equal(path, "/tmp/here.sock");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	setenv("SLUICE_SOCKET", longest, 1);
	assert_int_equal(sl_paths_socket(path, sizeof(path), &err), SL_PATHS_BAD);
	assert_row_contains("too long", err.text, "set SLUICE_SOCKET to a shorter one");
	/* 107 bytes fit, 108 do not: the terminator counts. */
	longest[107] = '\0';
	setenv("SLUICE_SOCKET", longest, 1);
	assert_int_equal(sl_paths_socket(path, sizeof(path), &err), SL_PATHS_OK);
	unsetenv("SLUICE_SOCKET");
	if (geteuid() == 0) {
		assert_int_equal(sl_paths_socket(path, sizeof(path), &err), SL_PATHS_OK);
		assert_string_equal(path, "/run/sluice/sluiced.sock");
	}
}

static void test_state_dir(void **state)
{
	char path[SL_PATH_MAX];
	struct sl_error err = {{0}};

	(void)state;
	setenv("SLUICE_STATE", "/some/state", 1);
	assert_int_equal(sl_paths_state_dir(path, sizeof(path), &err), SL_PATHS_OK);
	assert_string_equal(path, "/some/state");
	setenv("SLUICE_STATE", "state", 1);
	assert_int_equal(chdir("/tmp"), 0);
	assert_int_equal(sl_paths_state_dir(path, sizeof(path), &err), SL_PATHS_OK);
	assert_string_equal(path, "/tmp/state");
	setenv("SLUICE_STATE", "", 1);
	assert_int_equal(sl_paths_state_dir(path, sizeof(path), &err), SL_PATHS_OK);
	assert_string_not_equal(path, "");
}

static void test_program_dir(void **state)
{
	char dir[SL_PATH_MAX], tiny[4];

	(void)state;
	assert_int_equal(sl_paths_program_dir(dir, sizeof(dir)), 0);
	assert_int_equal(dir[0], '/');
	assert_int_equal(access(dir, X_OK), 0);
	assert_true(sl_paths_program_dir(tiny, sizeof(tiny)) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_socket),
		cmocka_unit_test(test_state_dir),
		cmocka_unit_test(test_program_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
