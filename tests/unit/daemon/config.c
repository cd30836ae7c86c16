/* Rows of the option table and files good and bad. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config.h"

static void table_is_sound(void **state)
{
	static const char *const keys[] = {
#define SL_OPTION(key, TYPE, def, min, max, help) #key,
#include "daemon/options.def"
#undef SL_OPTION
	};
	static const char *const helps[] = {
#define SL_OPTION(key, TYPE, def, min, max, help) help,
#include "daemon/options.def"
#undef SL_OPTION
	};
	struct sl_config config;

	for (size_t i = 0; i < SL_ARRAY_LEN(keys); i++) {
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(keys[i], keys[j]);
		assert_string_equal(sl_config_nearest(keys[i]), keys[i]);
		assert_true(strlen(helps[i]) > 10);
	}
	sl_config_defaults(&config); /* aborts on a default out of range */
}

static void defaults_are_the_documented_ones(void **state)
{
	struct sl_config config;

	sl_config_defaults(&config);
	assert_int_equal(config.driver_reserve, 2 * SL_GIB);
	assert_int_equal(config.longest_wait, 60 * SL_S);
	assert_int_equal(config.head_pass, SL_S);
	assert_int_equal(config.idle_wait, SL_S);
	assert_int_equal(config.recover_wait, 2 * SL_S);
	assert_int_equal(config.measure_interval, SL_S);
	assert_int_equal(config.socket_mode, 0666);
	assert_int_equal(config.socket_group, SL_CONFIG_GROUP_NONE);
	assert_true(config.gpus.all);
	assert_string_equal(config.log_level.text, "info");
	assert_string_equal(config.socket.text, "");
}

static void empty_files_are_defaults(void **state)
{
	static const char *const texts[] = {
		"", "\n\n", "# only a comment\n", "---\n", "--- {}\n"};

	for (size_t i = 0; i < SL_ARRAY_LEN(texts); i++) {
		struct sl_config config, defaults;
		struct sl_error err = {0};

		memset(&config, 0xaa, sizeof(config));
		memset(&defaults, 0, sizeof(defaults));
		sl_config_defaults(&defaults);
		if (sl_config_parse(texts[i], strlen(texts[i]), "f", &config, &err) !=
			SL_CONFIG_OK)
			fail_msg("row %zu: %s", i, err.text);
		assert_int_equal(config.longest_wait, defaults.longest_wait);
		assert_true(config.gpus.all);
	}
}

static void every_key_is_read(void **state)
{
	static const char text[] = "socket: /run/x/s\n"
				   "state_dir: /var/x\n"
				   "socket_mode: 0660\n"
				   "socket_group: root\n"
				   "gpus:\n"
				   "  - GPU-00112233-4455-6677-8899-aabbccddeeff\n"
				   "  - GPU-10112233-4455-6677-8899-aabbccddeeff\n"
				   "driver_reserve: 512MiB\n"
				   "longest_wait: 5s\n"
				   "head_pass: 250ms\n"
				   "idle_wait: 2s\n"
				   "recover_wait: 0\n"
				   "measure_interval: 500ms\n"
				   "max_clients: 7\n"
				   "log_level: \"debug\"\n";
	struct sl_config config;
	struct sl_error err = {0};

	if (sl_config_parse(text, strlen(text), "f", &config, &err) != SL_CONFIG_OK)
		fail_msg("%s", err.text);
	assert_string_equal(config.socket.text, "/run/x/s");
	assert_string_equal(config.state_dir.text, "/var/x");
	assert_int_equal(config.socket_mode, 0660);
	assert_int_equal(config.socket_group, 0);
	assert_false(config.gpus.all);
	assert_int_equal(config.gpus.count, 2);
	assert_int_equal(config.gpus.uuids[1][0], 0x10);
	assert_int_equal(config.driver_reserve, 512 * SL_MIB);
	assert_int_equal(config.longest_wait, 5 * SL_S);
	assert_int_equal(config.head_pass, 250 * SL_MS);
	assert_int_equal(config.idle_wait, 2 * SL_S);
	assert_int_equal(config.recover_wait, 0);
	assert_int_equal(config.measure_interval, 500 * SL_MS);
	assert_int_equal(config.max_clients, 7);
	assert_string_equal(config.log_level.text, "debug");
}

/* What is wrong, and what the message must hold: the line, and what to do. */
static void mistakes_name_line_and_remedy(void **state)
{
#define LONG_60 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	static const struct {
		const char *text, *line, *words;
	} rows[] = {
		{"longest_wiat: 5s\n", "line 1:", "did you mean 'longest_wait'?"},
		{"head_pass: 1s\nlog-level: info\n",
			"line 2:", "did you mean 'log_level'?"},
		{"head_pass: 1s\n\nhead_pass: 2s\n", "line 3:", "was set in line 1"},
		{"head_pass: [1s]\n", "line 1:", "a single value"},
		{"head_pass: {a: b}\n", "line 1:", "a single value"},
		{"max_clients:\n  - 5\n", "line 2:", "a single value"},
		{"head_pass: soon\n", "line 1:", "head_pass"},
		{"head_pass: 2h\n", "line 1:", "from 0s to 3600s"},
		{"idle_wait: 0\n", "line 1:", "from 1ms"},
		{"longest_wait: -5s\n", "line 1:", "longest_wait"},
		{"driver_reserve: 0.5\n", "line 1:", "write bytes, for example 2GiB"},
		{"driver_reserve: 8\n", "line 1:", "did you mean 8GiB?"},
		{"driver_reserve: lots\n", "line 1:", "driver_reserve"},
		{"driver_reserve: 2TiB\n", "line 1:", "out of range"},
		{"max_clients: 0\n", "line 1:", "from 1 to 100000"},
		{"max_clients: ten\n", "line 1:", "digits only"},
		{"max_clients: 10x\n", "line 1:", "digits only"},
		{"max_clients: 99999999999999999999999\n", "line 1:", "not a number"},
		{"socket_mode: 0999\n", "line 1:", "for example 0660"},
		{"socket_mode: 07777\n", "line 1:", "out of range"},
		{"socket_group: no-such-group-here\n", "line 1:", "groupadd"},
		{"socket: run/s\n", "line 1:", "begin it with /"},
		{"socket: /" LONG_60 LONG_60 "\n", "line 1:", "107"},
		{"log_level: loud\n", "line 1:", "error, warning, info or debug"},
		{"gpus: 0\n", "line 1:", "nvidia-smi"},
		{"gpus: []\n", "line 1:", "the list is empty"},
		{"gpus: [all]\n", "line 1:", "not the UUID"},
		{"gpus: [[a]]\n", "line 1:", "not the UUID"},
		{"gpus:\n - GPU-00112233-4455-6677-8899-aabbccddeeff\n - "
		 "GPU-00112233-4455-6677-8899-aabbccddeeff\n",
			"line 2:", "listed twice"},
		{"- a\n- b\n", "line 1:", "'key: value' lines"},
		{"just words\n", "line 1:", "'key: value' lines"},
		{"a: b: c\n", "line 1:", "not YAML"},
		{"head_pass: \"1s\n", "line", "not YAML"},
		{"head_pass: 1s\n\tidle_wait: 1s\n", "line", "not YAML"},
		{"? [a]\n: b\n", "line 1:", "unknown key"},
		{"head_pass: \"1s\\0\"\n", "line 1:", "a single value"},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_config config;
		struct sl_error err = {0};

		sl_config_defaults(&config);
		config.max_clients = 1234;
		if (sl_config_parse(rows[i].text, strlen(rows[i].text), "the-file",
			    &config, &err) != SL_CONFIG_BAD)
			fail_msg("row %zu was taken: %s", i, rows[i].text);
		if (!strstr(err.text, "the-file") || !strstr(err.text, rows[i].line) ||
			!strstr(err.text, rows[i].words))
			fail_msg("row %zu: want '%s' and '%s', got '%s'", i, rows[i].line,
				rows[i].words, err.text);
		assert_int_equal(config.max_clients, 1234); /* untouched */
	}
}

static void missing_files_are_named(void **state)
{
	struct sl_config config;
	struct sl_error err = {0};

	assert_int_equal(sl_config_load("/no/such/file", &config, &err), SL_CONFIG_BAD);
	assert_non_null(strstr(err.text, "/no/such/file"));
	assert_non_null(strstr(err.text, "--config"));
	assert_int_equal(sl_config_load("/", &config, &err), SL_CONFIG_BAD);
}

static void nesting_does_not_hurt(void **state)
{
	size_t size = SL_CONFIG_FILE_MAX;
	char *text = malloc(size);
	struct sl_config config;
	struct sl_error err = {0};

	memset(text, '[', size);
	assert_int_equal(sl_config_parse(text, size, "f", &config, &err), SL_CONFIG_BAD);
	free(text);
	text = malloc(size + 1);
	memset(text, '\n', size + 1);
	assert_int_equal(sl_config_parse(text, size, "f", &config, &err), SL_CONFIG_OK);
	assert_int_equal(
		sl_config_parse(text, size + 1, "f", &config, &err), SL_CONFIG_BAD);
	assert_non_null(strstr(err.text, "at most 16384 bytes"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_sound),
		cmocka_unit_test(defaults_are_the_documented_ones),
		cmocka_unit_test(empty_files_are_defaults),
		cmocka_unit_test(every_key_is_read),
		cmocka_unit_test(mistakes_name_line_and_remedy),
		cmocka_unit_test(missing_files_are_named),
		cmocka_unit_test(nesting_does_not_hurt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
