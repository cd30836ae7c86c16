/* Rows of the option table and files good and bad. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config/config.h"

static void table_is_sound(void **state)
{
	static const char *const keys[] = {
#define SL_OPTION(key, TYPE, def, min, max, help) #key,
#include "daemon/config/options.def"
#undef SL_OPTION
	};
	static const char *const helps[] = {
#define SL_OPTION(key, TYPE, def, min, max, help) help,
#include "daemon/config/options.def"
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
	assert_int_equal(config.context_reserve, SL_CONFIG_WORD);
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
	assert_int_equal(
		config.resolvers, SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0));
	assert_true(config.host_memory == SL_CONFIG_WORD);
	assert_int_equal(config.min_share, 50);
	assert_int_equal(config.stop_idle, 600 * SL_S);
	assert_int_equal(config.stop_grace, 10 * SL_S);
	assert_int_equal(config.untakeable_after, 30 * SL_S);
	assert_int_equal(config.last_resort, SL_LAST_RESORT_FAIL);
	assert_int_equal(config.placement, SL_PLACEMENT_SPREAD);
	assert_int_equal(config.unmanaged, SL_UNMANAGED_WARN);
	assert_false(config.oom_first);
	assert_int_equal(config.events_kept, 4096);
	assert_int_equal(config.metrics.kind, SL_CONFIG_NOWHERE);
	assert_int_equal(config.bounds.count, 0);
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
				   "context_reserve: 512MiB\n"
				   "longest_wait: 5s\n"
				   "head_pass: 250ms\n"
				   "idle_wait: 2s\n"
				   "recover_wait: 0\n"
				   "measure_interval: 500ms\n"
				   "max_clients: 7\n"
				   "log_level: \"debug\"\n"
				   "resolvers: [priority, wait]\n"
				   "stop_idle: 0\n"
				   "stop_grace: 3s\n"
				   "untakeable_after: 5s\n"
				   "last_resort: stop\n"
				   "placement: pack\n"
				   "job_placement: fgd\n"
				   "unmanaged: ignore\n"
				   "oom_first: yes\n"
				   "events_kept: 100\n"
				   "metrics: 127.0.0.1:9464\n"
				   "gpu_groups:\n"
				   "  calm: {gpus: [0, H100 NVL], swap: off}\n"
				   "  rest: {gpus: a100}\n"
				   "bounds:\n"
				   "  default: {max_request: 0.5}\n"
				   "  user root:\n"
				   "    max_priority: -7\n"
				   "    max_limit: 8GiB\n"
				   "  group 12345: {max_workloads: 3}\n";
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
	assert_int_equal(config.context_reserve, 512 * SL_MIB);
	assert_int_equal(config.longest_wait, 5 * SL_S);
	assert_int_equal(config.head_pass, 250 * SL_MS);
	assert_int_equal(config.idle_wait, 2 * SL_S);
	assert_int_equal(config.recover_wait, 0);
	assert_int_equal(config.measure_interval, 500 * SL_MS);
	assert_int_equal(config.max_clients, 7);
	assert_string_equal(config.log_level.text, "debug");
	assert_int_equal(
		config.resolvers, SL_CHAIN(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT, 0));
	assert_int_equal(config.stop_idle, 0);
	assert_int_equal(config.stop_grace, 3 * SL_S);
	assert_int_equal(config.untakeable_after, 5 * SL_S);
	assert_int_equal(config.last_resort, SL_LAST_RESORT_STOP);
	assert_int_equal(config.placement, SL_PLACEMENT_PACK);
	assert_int_equal(config.job_placement, SL_PLACE_FGD);
	assert_int_equal(config.unmanaged, SL_UNMANAGED_IGNORE);
	assert_true(config.oom_first);
	assert_int_equal(config.events_kept, 100);
	assert_int_equal(config.metrics.kind, SL_CONFIG_IPV4);
	assert_int_equal(config.metrics.port, 9464);
	assert_int_equal(config.metrics.host[0], 127);
	assert_int_equal(config.gpu_groups.count, 2);
	assert_string_equal(config.gpu_groups.rows[0].name, "calm");
	assert_string_equal(config.gpu_groups.rows[0].gpus, "0,H100 NVL");
	assert_true(config.gpu_groups.rows[0].fixed);
	assert_false(config.gpu_groups.rows[1].fixed);
	assert_int_equal(config.bounds.count, 3);
	assert_int_equal(config.bounds.rows[0].subject, SL_CONFIG_DEFAULT);
	assert_int_equal(config.bounds.rows[0].bounds.request.value, 500000);
	assert_int_equal(config.bounds.rows[1].subject, SL_CONFIG_USER);
	assert_int_equal(config.bounds.rows[1].id, 0);
	assert_true(config.bounds.rows[1].bounds.has_priority);
	assert_int_equal(config.bounds.rows[1].bounds.priority, -7);
	assert_int_equal(config.bounds.rows[1].bounds.limit.value, 8 * SL_GIB);
	assert_int_equal(config.bounds.rows[2].subject, SL_CONFIG_OF_GROUP);
	assert_int_equal(config.bounds.rows[2].id, 12345);
	assert_int_equal(config.bounds.rows[2].bounds.workloads, 3);
}

/* Other ways to write a value, and their results. */
static void values_have_several_forms(void **state)
{
	static const struct {
		const char *text, *key, *shown;
	} rows[] = {
		{"resolvers: wait\n", "resolvers", "wait"},
		{"resolvers: swap\n", "resolvers", "swap"},
		{"resolvers: [priority, swap, wait]\n", "resolvers",
			"priority swap wait"},
		{"host_memory: half\n", "host_memory", "half"},
		{"host_memory: 8GiB\n", "host_memory", "8 GiB"},
		{"host_memory: 0\n", "host_memory", "0 B"},
		{"min_share: 2.5%\n", "min_share", "2.5%"},
		{"min_share: 10%\n", "min_share", "10%"},
		{"resolvers: priority\n", "resolvers", "priority"},
		{"resolvers: wait priority\n", "resolvers", "wait priority"},
		{"resolvers: \" priority,  wait \"\n", "resolvers", "priority wait"},
		{"resolvers:\n  - wait\n  - priority\n", "resolvers", "wait priority"},
		{"oom_first: on\n", "oom_first", "yes"},
		{"oom_first: true\n", "oom_first", "yes"},
		{"oom_first: off\n", "oom_first", "no"},
		{"metrics: localhost:80\n", "metrics", "localhost:80"},
		{"metrics: \"[::1]:65535\"\n", "metrics", "[::1]:65535"},
		{"metrics: /run/m.sock\n", "metrics", "/run/m.sock"},
		{"metrics: 0.0.0.0:9464\n", "metrics", "0.0.0.0:9464"},
		{"gpu_groups: {a: {gpus: h100, swap: off}}\n", "gpu_groups", "1 groups"},
		{"bounds: {}\n", "bounds", "0 rows"},
		{"bounds:\n  default: {}\n", "bounds", "1 rows"},
		{"unmanaged: stop\n", "unmanaged", "stop"},
		{"socket_mode: 0640\n", "socket_mode", "0640"},
		{"stop_idle: 90\n", "stop_idle", "90s"},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_config config;
		struct sl_error err = {0};
		char buf[1500];

		if (sl_config_parse(rows[i].text, strlen(rows[i].text), "f", &config,
			    &err) != SL_CONFIG_OK)
			fail_msg("row %zu: %s", i, err.text);
		assert_string_equal(
			sl_config_show(&config, rows[i].key, buf, sizeof(buf)),
			rows[i].shown);
	}
}

static struct sl_bounds bounds_of(
	const char *text, uint32_t uid, bool is_free, size_t gid_count)
{
	static const uint32_t gids[] = {7001, 7002, 7003};
	struct sl_config config;
	struct sl_error err = {0};

	if (sl_config_parse(text, strlen(text), "f", &config, &err) != SL_CONFIG_OK)
		fail_msg("%s", err.text);
	return sl_config_bounds_of(
		&config.bounds, uid, is_free, gids, gid_count, 10 * SL_GIB);
}

static void the_right_bounds_are_found(void **state)
{
	static const char text[] =
		"bounds:\n"
		"  default: {max_request: 0.1, max_workloads: 1}\n"
		"  user 500: {max_priority: 5}\n"
		"  user 0: {max_workloads: 9}\n"
		"  group 7002: {max_request: 0.5, max_priority: 3, max_workloads: 4}\n"
		"  group 7003: {max_request: 6GiB, max_priority: -3, max_limit: 7GiB}\n";
	struct sl_bounds bounds = bounds_of(text, 400, false, 1);

	/* no user's: the default */
	assert_int_equal(bounds.request.value, 100000);
	assert_int_equal(bounds.workloads, 1);
	assert_false(bounds.has_priority);
	/* one group */
	bounds = bounds_of(text, 400, false, 2);
	assert_int_equal(bounds.request.value, 500000);
	assert_int_equal(bounds.priority, 3);
	assert_int_equal(bounds.workloads, 4);
	/* two: of each the better; what one does not bound is not bounded */
	bounds = bounds_of(text, 400, false, 3);
	assert_int_equal(bounds.request.kind, SL_AMOUNT_BYTES);
	assert_int_equal(bounds.request.value, 6 * SL_GIB);
	assert_true(bounds.has_priority);
	assert_int_equal(bounds.priority, 3);
	assert_int_equal(bounds.workloads, 0);
	assert_int_equal(bounds.limit.kind, SL_AMOUNT_UNSET);
	/* the user's own row beats its groups */
	bounds = bounds_of(text, 500, false, 3);
	assert_int_equal(bounds.request.kind, SL_AMOUNT_UNSET);
	assert_int_equal(bounds.priority, 5);
	/* free, unless named */
	bounds = bounds_of(text, 300, true, 3);
	assert_int_equal(bounds.request.kind, SL_AMOUNT_UNSET);
	assert_int_equal(bounds.workloads, 0);
	bounds = bounds_of(text, 0, true, 3);
	assert_int_equal(bounds.workloads, 9);
}

static void bounds_have_an_end(void **state)
{
	char text[8192] = "bounds:\n";
	size_t used = strlen(text);
	struct sl_config config;
	struct sl_error err = {0};

	for (int i = 0; i <= SL_CONFIG_BOUNDS_MAX; i++)
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "  user %d: {}\n", 1000 + i);
	assert_int_equal(sl_config_parse(text, used, "f", &config, &err), SL_CONFIG_BAD);
	assert_non_null(strstr(err.text, "line 66"));
	assert_non_null(strstr(err.text, "use groups"));
}

/* Errors, and what the message must have: the line, and what to do. */
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
		{"context_reserve: 0.5\n", "line 1:", "write bytes, for example 2GiB"},
		{"context_reserve: 8\n", "line 1:", "did you mean 8GiB?"},
		{"context_reserve: lots\n", "line 1:", "context_reserve"},
		{"context_reserve: 2TiB\n", "line 1:", "out of range"},
		{"max_clients: 0\n", "line 1:", "from 1 to 100000"},
		{"max_clients: ten\n", "line 1:", "digits only"},
		{"max_clients: 10x\n", "line 1:", "digits only"},
		{"max_clients: 99999999999999999999999\n", "line 1:", "from 1 to 100000"},
		{"socket_mode: 0999\n",
			"line 1:", "is not an octal mode; write for example 0660"},
		{"max_clients: -1\n", "line 1:", "is not a number; write digits only"},
		{"resolvers: swap swap\n", "line 1:", "comes twice"},
		{"host_memory: 0.5\n", "line 1:", "is a fraction; write bytes"},
		{"job_log_max: 10%\n", "line 1:", "is a fraction; write bytes"},
		{"host_memory: all\n", "line 1:", "host_memory"},
		{"host_memory: 2EiB\n", "line 1:", "half, or bytes from 0 B to 1 PiB"},
		{"min_share: 5\n", "line 1:", "write for example 5% or 2.5%"},
		{"min_share: 0%\n", "line 1:", "write a share from 0.1% to 50%"},
		{"min_share: 60%\n", "line 1:", "out of range"},
		{"min_share: 2.55%\n", "line 1:", "is not a share"},
		{"turn_max: 1ms\n", "line 1:", "write a time from 200ms to 3600s"},
		{"evict_drain: 0\n", "line 1:", "out of range"},
		{"resolvers: wait for it\n", "line 1:", "'for' is no resolver"},
		{"resolvers: wait wait\n", "line 1:", "comes twice"},
		{"resolvers: wait, fail\n",
			"line 1:", "'fail' and wait exclude each other"},
		{"resolvers: [fail, swap]\n", "line 1:", "fail must be the last"},
		{"resolvers: \"\"\n", "line 1:", "write swap, wait, priority or fail"},
		{"resolvers: []\n", "line 1:", "the list is empty"},
		{"resolvers:\n  - wait\n  - stop\n", "line 3:", "'stop' is no resolver"},
		{"resolvers: {wait: yes}\n", "line 1:", "for example swap wait"},
		{"stop_idle: never\n", "line 1:", "stop_idle"},
		{"stop_grace: 2h\n", "line 1:", "from 0s to 3600s"},
		{"last_resort: kill\n", "line 1:", "write fail or stop"},
		{"placement: random\n", "line 1:", "write spread or pack"},
		{"job_placement: random\n",
			"line 1:", "write pack, spread, bestfit or fgd"},
		{"unmanaged: kill\n", "line 1:", "write warn, ignore or stop"},
		{"unmanaged: [warn]\n", "line 1:", "for example warn"},
		{"oom_first: maybe\n", "line 1:", "write yes or no"},
		{"events_kept: 3\n", "line 1:", "from 16 to 1000000"},
		{"metrics: auto\n", "line 1:", "127.0.0.1:9464"},
		{"metrics: 9464\n", "line 1:", "has no port"},
		{"metrics: 127.0.0.1:0\n", "line 1:", "from 1 to 65535"},
		{"metrics: 127.0.0.1:99999\n", "line 1:", "from 1 to 65535"},
		{"metrics: example.org:80\n", "line 1:", "write numbers"},
		{"metrics: /" LONG_60 LONG_60 "\n", "line 1:", "107"},
		{"gpu_groups: all\n", "line 1:", "is no mapping"},
		{"gpu_groups:\n  a: 0\n", "line 2:", "for example {gpus: [0, 1]}"},
		{"gpu_groups:\n  a: {swap: off}\n", "line 2:", "a has no GPUs"},
		{"gpu_groups:\n  a: {gpus: []}\n", "line 2:", "a has no GPUs"},
		{"gpu_groups:\n  a: {gpus: [0, \"-\"]}\n", "line 2:", "names no GPU"},
		{"gpu_groups:\n  a: {gpus: 0, swap: maybe}\n",
			"line 2:", "neither on nor off"},
		{"gpu_groups:\n  a: {gpus: 0, sawp: off}\n",
			"line 2:", "unknown key 'sawp'"},
		{"gpu_groups:\n  a: {gpus: 0}\n  a: {gpus: 1}\n",
			"line 3:", "comes twice"},
		{"gpu_groups:\n  a b: {gpus: 0}\n", "line 2:", "is no name"},
		{"bounds: 0.5\n", "line 1:", "is no mapping"},
		{"bounds: [a]\n", "line 1:", "a single value"},
		{"bounds:\n  alice: {}\n",
			"line 2:", "write default, user NAME or group NAME"},
		{"bounds:\n  user no-such-user: {}\n", "line 2:", "useradd"},
		{"bounds:\n  group no-such-group: {}\n", "line 2:", "groupadd"},
		{"bounds:\n  default: 0.5\n", "line 2:", "behind 'default'"},
		{"bounds:\n  default: {}\n  default: {}\n", "line 3:", "comes twice"},
		{"bounds:\n  user root: {}\n  user 0: {}\n", "line 3:", "comes twice"},
		{"bounds:\n  default:\n    max_reqest: 1\n",
			"line 3:", "there are max_request"},
		{"bounds:\n  default:\n    max_request: lots\n",
			"line 3:", "max_request"},
		{"bounds:\n  default:\n    max_request: [1]\n", "line 3:", "max_request"},
		{"bounds: {default: {max_limit: 1MiB}}\n", "line 1:", "at least 2 MiB"},
		{"bounds: {default: {max_priority: 1001}}\n",
			"line 1:", "from -1000 to 1000"},
		{"bounds: {default: {max_workloads: 0}}\n",
			"line 1:", "from 1 to 100000"},
		{"bounds: {default: {max_workloads: 1, max_workloads: 2}}\n",
			"line 1:", "comes twice"},
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
			"line 3:", "listed twice"},
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
		cmocka_unit_test(values_have_several_forms),
		cmocka_unit_test(the_right_bounds_are_found),
		cmocka_unit_test(bounds_have_an_end),
		cmocka_unit_test(mistakes_name_line_and_remedy),
		cmocka_unit_test(missing_files_are_named),
		cmocka_unit_test(nesting_does_not_hurt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
