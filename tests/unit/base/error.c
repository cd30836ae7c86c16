#include "test.h"

#include "base/error.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void test_texts(void **state)
{
	struct sl_error err = {{0}};
	char longest[1000];

	(void)state;
	sl_error_set(&err, "file %s: %d", "a\nb", 7);
	assert_string_equal(err.text, "file a?b: 7");
	sl_error_wrap(&err, "config %s", "x.yaml");
	assert_string_equal(err.text, "config x.yaml: file a?b: 7");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	sl_error_wrap(&err, "%s", longest);
	assert_int_equal(strlen(err.text), SL_ERROR_TEXT_MAX - 1);
	sl_error_set(NULL, "nobody listens");
	sl_error_wrap(NULL, "nobody listens");
	assert_int_equal(sl_err_origin(-EIO), -EIO);
}

static void test_log_levels(void **state)
{
	int saved = dup(STDERR_FILENO), ends[2];
	char text[2000] = {0};

	(void)state;
	assert_false(sl_log_set_level_name("loud"));
	assert_true(sl_log_set_level_name("warning"));
	assert_int_equal(pipe(ends), 0);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	errno = EXDEV;
	sl_log_set_tag("tester");
	sl_info("not this");
	sl_warning("but this: %d", 5);
	assert_int_equal(errno, EXDEV);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	assert_row_contains("line", text, "tester warning: but this: 5\n");
	assert_null(strstr(text, "not this"));
	sl_log_set_level(SL_LOG_OFF);
	close(ends[0]);
	close(ends[1]);
	close(saved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_log_levels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
