/* Where libsluice.so is looked for, and what LD_PRELOAD becomes. */
#include "../base/test.h"

#include "cli/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
	const char *row, *old, *want;
} rows[] = {
	{"unset", NULL, "/l/libsluice.so"},
	{"empty", "", "/l/libsluice.so"},
	{"kept behind", "/a.so", "/l/libsluice.so:/a.so"},
	{"blanks and colons",
		" /a.so  /b.so:/c.so:", "/l/libsluice.so:/a.so:/b.so:/c.so"},
	{"run inside run", "/l/libsluice.so:/a.so", "/l/libsluice.so:/a.so"},
	{"another build's", "/other/libsluice.so /a.so", "/l/libsluice.so:/a.so"},
	{"bare name", "libsluice.so", "/l/libsluice.so"},
	{"not ours", "/x/notlibsluice.so", "/l/libsluice.so:/x/notlibsluice.so"},
};

static void test_preload(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		char *value = sl_library_preload("/l/libsluice.so", rows[i].old);

		assert_row_text(rows[i].row, value, rows[i].want);
		free(value);
	}
}

/* SLUICE_LIBRARY may have any name. */
static void test_other_name(void **state)
{
	char *value = sl_library_preload("/l/other.so", "/l/other.so:/a.so:/l/other.so2");

	(void)state;
	assert_string_equal(value, "/l/other.so:/a.so:/l/other.so2");
	free(value);
}

static void test_environment(void **state)
{
	char dir[] = "/tmp/sluice unit XXXXXX", file[64], link[64], path[SL_PATH_MAX];
	struct sl_error err = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/libsluice.so", dir);
	fclose(fopen(file, "w"));

	setenv("SLUICE_LIBRARY", file, 1);
	assert_int_equal(sl_library_find(path, sizeof(path), &err), SL_LIBRARY_UNUSABLE);
	assert_row_contains("blank", err.text, "LD_PRELOAD cannot carry");
	/* The remedy it names works. */
	snprintf(link, sizeof(link), "/tmp/sluice-unit-%d.so", (int)getpid());
	assert_int_equal(symlink(file, link), 0);
	setenv("SLUICE_LIBRARY", link, 1);
	assert_int_equal(sl_library_find(path, sizeof(path), &err), SL_LIBRARY_OK);
	assert_string_equal(path, link);
	unlink(link);
	assert_int_equal(sl_library_find(path, sizeof(path), &err), SL_LIBRARY_MISSING);
	assert_row_contains("gone", err.text, link);
	unlink(file);
	rmdir(dir);
	unsetenv("SLUICE_LIBRARY");
}

/* Beside this test no library lies. */
static void test_missing(void **state)
{
	char path[SL_PATH_MAX], dir[SL_PATH_MAX];
	struct sl_error err = {0};

	(void)state;
	assert_int_equal(sl_paths_program_dir(dir, sizeof(dir)), 0);
	assert_int_equal(sl_library_find(path, sizeof(path), &err), SL_LIBRARY_MISSING);
	assert_row_contains("places", err.text, dir);
	assert_row_contains("remedy", err.text, "SLUICE_LIBRARY");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_preload),
		cmocka_unit_test(test_other_name),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
