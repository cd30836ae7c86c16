#include "test.h"

#include "base/paths.h"

#include <stdio.h>
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

/* What an ordinary user gets; as root we become one for a moment. */
static void test_user(void **state)
{
	uid_t saved = geteuid(), user = saved ? saved : 65534;
	char path[SL_PATH_MAX], want[100];

	(void)state;
	if (access("/run/sluice/sluiced.sock", F_OK) == 0)
		skip(); /* the system's daemon runs here, and is preferred */
	assert_int_equal(seteuid(user), 0);
	unsetenv("SLUICE_STATE");
	unsetenv("SLUICE_SOCKET");
	setenv("XDG_RUNTIME_DIR", "/run/user/none", 1);
	assert_int_equal(sl_paths_socket(path, sizeof(path), NULL), SL_PATHS_OK);
	assert_string_equal(path, "/run/user/none/sluice/sluiced.sock");
	assert_int_equal(sl_paths_state_dir(path, sizeof(path), NULL), SL_PATHS_OK);
	assert_string_equal(path, "/run/user/none/sluice");
	/* A relative one is against its own rules, and not believed. */
	setenv("XDG_RUNTIME_DIR", "none", 1);
	(void)snprintf(want, sizeof(want), "/tmp/sluice-%u", (unsigned int)user);
	assert_int_equal(sl_paths_state_dir(path, sizeof(path), NULL), SL_PATHS_OK);
	assert_string_equal(path, want);
	unsetenv("XDG_RUNTIME_DIR");
	(void)snprintf(
		want, sizeof(want), "/tmp/sluice-%u/sluiced.sock", (unsigned int)user);
	assert_int_equal(sl_paths_socket(path, sizeof(path), NULL), SL_PATHS_OK);
	assert_string_equal(path, want);
	assert_int_equal(seteuid(saved), 0);
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
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_state_dir),
		cmocka_unit_test(test_program_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
