/* What users say to srun, sbatch and salloc, with a stand-in for Slurm. */
#include "../base/test.h"

#include <slurm/spank.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slurm/options.h"
#include "slurm/start.h"

static struct spank_option given[8];
static size_t count;
static char said[256];

spank_err_t spank_option_register(spank_t spank, struct spank_option *option)
{
	given[count++] = *option;
	return ESPANK_SUCCESS;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
	return ESPANK_ERROR;
}

void slurm_info(const char *format, ...)
{
}

void slurm_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(said, sizeof(said), format, args);
	va_end(args);
}

static int take(const char *name, const char *text)
{
	said[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		if (strcmp(given[i].name, name) == 0)
			return given[i].cb(given[i].val, text, 0);
	}
	fail_msg("no option %s", name);
	return 0;
}

static void refused(const char *name, const char *text, const char *why)
{
	assert_int_equal(take(name, text), -1);
	assert_non_null(strstr(said, name));
	assert_non_null(strstr(said, why));
}

/* State of the process, so in this order. */
static void words_of_what_was_given(void **state)
{
	const char *words[SL_OPTIONS_WORDS] = {NULL};
	char text[128];

	assert_int_equal(sl_options_register(NULL), ESPANK_SUCCESS);
	assert_int_equal(count, 3);
	assert_false(sl_options_given());
	assert_int_equal(sl_options_words(words), 0);
	sl_options_print(text, sizeof(text));
	assert_string_equal(text, "::");

	refused("sluice-gpus", "0", "from 1 to 64");
	refused("sluice-gpus", "65", "from 1 to 64");
	refused("sluice-gpus", "2x", "from 1 to 64");
	refused("sluice-gpus", "", "from 1 to 64");
	refused("sluice-request", "ten", "ten");
	refused("sluice-request", "1.5", "1.5");
	refused("sluice-limit", "10GiBs", "10GiBs");
	refused("sluice-request", "0.000000000000000000000000000000000001", "");
	assert_false(sl_options_given());

	assert_int_equal(take("sluice-request", "0.5"), 0);
	assert_int_equal(take("sluice-gpus", "2"), 0);
	assert_true(sl_options_given());
	assert_int_equal(sl_options_words(words), 4);
	assert_string_equal(words[0], "--request");
	assert_string_equal(words[1], "0.5");
	assert_string_equal(words[2], "--gpus");
	assert_string_equal(words[3], "2");
	sl_options_print(text, sizeof(text));
	assert_string_equal(text, "0.5::2");
	assert_int_equal(sl_options_check(), 0);
	assert_int_equal(take("sluice-limit", "0.25"), 0);
	assert_int_equal(sl_options_check(), -1);
	assert_non_null(strstr(said, "0.25"));
	assert_int_equal(take("sluice-limit", "1"), 0);
	assert_int_equal(sl_options_check(), 0);
	assert_int_equal(sl_options_words(words), SL_OPTIONS_WORDS);
}

static void outer_job_is_forgotten(void **state)
{
#define OUTER "SLURM_SPANK__SLURM_SPANK_OPTION_sluice_sluice_"
	(void)setenv(OUTER "request", "0.5", 1);
	(void)setenv(OUTER "gpus", "2", 1);
	(void)setenv(OUTER "other", "2", 1);
	sl_options_forget_outer();
	assert_null(getenv(OUTER "request"));
	assert_null(getenv(OUTER "gpus"));
	assert_non_null(getenv(OUTER "other"));
}

static const struct {
	const char *gpus, *changed, *own;
} own[] = {
	{NULL, NULL, NULL},
	{"0,1", NULL, "0,1"},
	/* The step was given one of the user's two. */
	{"GPU-a", "GPU-a=0,1", "0,1"},
	/* The user had none. */
	{"GPU-a", "GPU-a=", ""},
	/* Since then the user has chosen. */
	{"1", "GPU-a=0,1", "1"},
	{"GPU-a", "GPU-ab=0,1", "GPU-a"},
	{NULL, "GPU-a=0,1", NULL},
};

static void own_gpus(void **state)
{
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		const char *is = sl_start_own_gpus(own[i].gpus, own[i].changed);

		if (own[i].own)
			assert_string_equal(is, own[i].own);
		else
			assert_null(is);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_of_what_was_given),
		cmocka_unit_test(outer_job_is_forgotten),
		cmocka_unit_test(own_gpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
