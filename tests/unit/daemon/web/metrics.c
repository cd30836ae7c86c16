/*
 * metrics: the text for given books.
 *
 * `metrics docs` prints the tables of docs/metrics.md instead.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/web/metrics.h"

#define ROOM (4u << 20)

/* Names and scopes of the list, once more, for the checks. */
static const char *const names[] = {
#define SL_METRIC_SCOPE(SCOPE, labels)
#define SL_METRIC(ID, name, TYPE, UNIT, SCOPE, help) name,
#define SL_METRIC_VALUE(ID, kind, value)
#include "daemon/web/metrics.def"
#undef SL_METRIC_SCOPE
#undef SL_METRIC
#undef SL_METRIC_VALUE
};

static const struct {
	const char *metric, *kind;
} rows[] = {
#define SL_METRIC_SCOPE(SCOPE, labels)
#define SL_METRIC(ID, name, TYPE, UNIT, SCOPE, help)
#define SL_METRIC_VALUE(ID, kind, value) {#ID, #kind},
#include "daemon/web/metrics.def"
#undef SL_METRIC_SCOPE
#undef SL_METRIC
#undef SL_METRIC_VALUE
};

/* One more than have sums of their own: it is among the others. */
static struct sl_history_sums *make_sums(void)
{
	static struct sl_history_summing summing;
	struct sl_history_sums *sums;

	memset(&summing, 0, sizeof(summing));
	for (uint32_t i = 0; i < 2; i++) {
		char uuid[16];

		(void)snprintf(uuid, sizeof(uuid), "GPU-0000000%u", i);
		(void)sl_history_summing_find(&summing, SL_HISTORY_OF_GPU, uuid, uuid);
	}
	(void)sl_history_summing_find(&summing, SL_HISTORY_OF_USER, "1000", "a\"b");
	(void)sl_history_summing_find(&summing, SL_HISTORY_OF_PROJECT, "p", "p");
	sums = sl_history_sums_of(&summing);
	assert_non_null(sums);
	sums->well = true;
	sums->written_ms = 1700000000250;
	return sums;
}

static struct sl_metrics_books *make_books(uint32_t gpus, uint32_t workloads)
{
	struct sl_metrics_books *books = calloc(1, sizeof(*books));

	assert_non_null(books);
	books->users = 1;
	books->start_unix_ns = 1700000000500000000ull;
	books->longest_turn = 1500;
	books->nvml_up = true;
	strcpy(books->version, "1.2.3");
	strcpy(books->driver, "550.54.99");
	books->messages = UINT64_MAX;
	books->gpu_count = gpus;
	books->workloads = calloc(workloads + 1, sizeof(*books->workloads));
	books->uses = calloc(workloads * gpus + 1, sizeof(*books->uses));
	assert_true(books->workloads && books->uses);
	for (uint32_t i = 0; i < gpus; i++) {
		(void)snprintf(books->gpus[i].uuid, sizeof(books->gpus[i].uuid),
			"GPU-0000000%u", i);
		books->gpus[i].measured = true;
		books->gpus[i].utilisation_pct = 7;
		books->gpus[i].out_bytes_s = 8 * SL_GIB;
		books->gpus[i].measured_age = 250 * SL_MS;
		books->gpus[i].view.capacity_bytes = 1ull << 40;
	}
	for (uint32_t i = 0; i < workloads; i++) {
		books->workloads[i].id = i + 1;
		(void)snprintf(books->workloads[i].name, sizeof(books->workloads[i].name),
			"w%u", i);
		books->workloads[i].view.priority = -5;
		for (uint32_t g = 0; g < gpus; g++)
			books->uses[books->use_count++] =
				(struct sl_metrics_use){.workload = i, .gpu = g};
	}
	books->workload_count = workloads;
	books->sums = make_sums();
	books->quotas = calloc(1, sizeof(*books->quotas));
	assert_non_null(books->quotas);
	books->quotas[0] = (struct sl_metrics_quota){"p", 1500, 2000, 500, 750};
	books->quota_count = 1;
	return books;
}

/* All of it, in pieces of this size. The caller frees. */
static char *render(const struct sl_metrics_books *books, size_t piece)
{
	struct sl_metrics_cursor cursor = {0};
	char *text = malloc(ROOM), *buf = malloc(piece);
	size_t used = 0, got;

	assert_true(text && buf);
	while ((got = sl_metrics_render(books, &cursor, buf, piece)) > 0) {
		assert_true(got <= piece && used + got < ROOM);
		assert_int_equal(buf[got - 1], '\n');
		memcpy(text + used, buf, got);
		used += got;
	}
	text[used] = '\0';
	free(buf);
	return text;
}

static void assert_has(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("not rendered: %s", line);
}

static unsigned int count(const char *text, const char *word)
{
	unsigned int n = 0;

	for (; (text = strstr(text, word)); text += strlen(word))
		n++;
	return n;
}

/* --- the format, checked by a reader of its own --- */

static const char *skip_labels(const char *at)
{
	if (*at != '{')
		return at;
	do {
		at++;
		at += strspn(at, "abcdefghijklmnopqrstuvwxyz_");
		assert_memory_equal(at, "=\"", 2);
		for (at += 2; *at != '"'; at++) {
			assert_true(*at && *at != '\n');
			if (*at == '\\')
				assert_non_null(strchr("\\n\"", *++at));
		}
		at++;
	} while (*at == ',');
	assert_int_equal(*at, '}');
	return at + 1;
}

/* Each line is a title or a sample with a finite number. Returns the samples. */
static unsigned int check_format(const char *text)
{
	unsigned int samples = 0;

	while (*text) {
		const char *end = strchr(text, '\n');
		char *number_end;
		size_t length;

		assert_non_null(end);
		assert_true(end - text < SL_METRICS_LINE_MAX);
		if (*text == '#') {
			assert_true(strncmp(text, "# HELP sluice_", 14) == 0 ||
				    strncmp(text, "# TYPE sluice_", 14) == 0);
			text = end + 1;
			continue;
		}
		length = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
		assert_true(strncmp(text, "sluice_", 7) == 0 && length > 7);
		text = skip_labels(text + length);
		assert_int_equal(*text, ' ');
		assert_non_null(strchr("-0123456789", text[1]));
		(void)strtod(text + 1, &number_end);
		assert_ptr_equal(number_end, end);
		text = end + 1;
		samples++;
	}
	return samples;
}

static void every_row_appears(void **state)
{
	struct sl_metrics_books *books = make_books(2, 3);
	char *text = render(books, 65536);

	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++) {
		char line[256];

		(void)snprintf(line, sizeof(line), "# HELP %s ", names[i]);
		assert_int_equal(count(text, line), 1);
		(void)snprintf(line, sizeof(line), "# TYPE %s ", names[i]);
		assert_int_equal(count(text, line), 1);
		(void)snprintf(line, sizeof(line), "\n%s", names[i]);
		assert_has(text, line);
	}
	/* A row of a kind has a sample, one for each GPU, or for each workload on each GPU. */
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		char label[64];

		(void)snprintf(label, sizeof(label), "kind=\"%s\"", rows[i].kind);
		if (strcmp(rows[i].kind, "only") == 0)
			assert_int_equal(count(text, label), 0);
		else if (strcmp(rows[i].metric, "HOST") == 0 ||
			 strncmp(rows[i].metric, "USER_", 5) == 0 ||
			 strncmp(rows[i].metric, "PROJECT_", 8) == 0)
			assert_true(count(text, label) >= 1);
		else if (strncmp(rows[i].metric, "GPU_", 4) == 0)
			assert_true(count(text, label) >= 2);
		else
			assert_true(count(text, label) >= 6);
	}
	(void)check_format(text);
	free(text);
	(void)sl_metrics_put(books);
}

static void names_are_unique(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++) {
		for (size_t k = i + 1; k < SL_ARRAY_LEN(names); k++)
			assert_string_not_equal(names[i], names[k]);
	}
}

static void numbers_are_as_they_should(void **state)
{
	struct sl_metrics_books *books = make_books(1, 1);
	char *text;

	books->events[SL_REASON_OVER_LIMIT] = 3;
	books->events[SL_REASON_STOP_IDLE] = 4;
	books->refusals[SL_REASON_REQUESTS_TAKEN] = 5;
	books->workloads[0].compute_request_pm = 250;
	books->workloads[0].compute_had = 1500 * SL_MS;
	text = render(books, 65536);
	assert_has(text, "\nsluice_messages_total 18446744073709551615\n");
	assert_has(text, "\nsluice_daemon_start_time_seconds 1700000000.5\n");
	assert_has(text, "\nsluice_metrics_longest_turn_seconds 0.0000015\n");
	assert_has(text,
		"\nsluice_gpu_capacity_bytes{gpu=\"GPU-00000000\"} 1099511627776\n");
	assert_has(text, "\nsluice_gpu_utilisation_ratio{gpu=\"GPU-00000000\"} 0.07\n");
	assert_has(text,
		"\nsluice_gpu_measurement_age_seconds{gpu=\"GPU-00000000\"} 0.25\n");
	assert_has(text, "\nsluice_workload_priority{id=\"1\",workload=\"w0\","
			 "project=\"\",user=\"0\"} -5\n");
#define OF_USE(kind)                                                                   \
	"{id=\"1\",workload=\"w0\",project=\"\",user=\"0\",gpu=\"GPU-00000000\",kind=" \
	"\"" kind "\"} "
	assert_has(text, "\nsluice_workload_compute_gpus" OF_USE("request") "0.25\n");
	assert_has(text, "\nsluice_workload_compute_gpus" OF_USE("limit") "0\n");
	assert_has(
		text, "\nsluice_workload_compute_seconds_total" OF_USE("beside") "1.5\n");
	assert_has(text,
		"\nsluice_project_compute_gpus{project=\"p\",kind=\"quota\"} 0.5\n");
	assert_has(text, "\nsluice_denials_total{reason=\"OVER_LIMIT\"} 3\n");
	assert_has(text, "\nsluice_events_total{reason=\"OVER_LIMIT\"} 3\n");
	assert_has(text, "\nsluice_stops_total{reason=\"STOP_IDLE\"} 4\n");
	assert_has(text, "\nsluice_refusals_total{reason=\"REQUESTS_TAKEN\"} 5\n");
	assert_int_equal(count(text, "sluice_denials_total{reason=\"STOP_"), 0);
	assert_int_equal(count(text, "\"NONE\""), 0);
	assert_has(text, "\nsluice_project_gpus{project=\"p\",kind=\"quota\"} 1.5\n");
	assert_has(text, "\nsluice_project_gpus{project=\"p\",kind=\"limit\"} 2\n");
	assert_has(text, "\nsluice_user_info{user=\"1000\",name=\"a\\\"b\"} 1\n");
	assert_has(text, "\nsluice_part_up{part=\"history\"} 0\n");
	assert_has(text, "\nsluice_history_last_write_time_seconds 1700000000.25\n");
	free(text);
	(void)sl_metrics_put(books);
}

static void unknown_is_left_out(void **state)
{
	struct sl_metrics_books *books = make_books(1, 0);
	char *text;

	books->driver[0] = '\0';
	books->gpus[0].measured = false;
	books->sums = sl_history_sums_put(books->sums);
	books->quotas[0].limit = SL_METRICS_ALL;
	text = render(books, 65536);
	assert_int_equal(count(text, "\nsluice_driver_info{"), 0);
	assert_int_equal(count(text, "\nsluice_gpu_utilisation_ratio{"), 0);
	assert_int_equal(count(text, "\nsluice_gpu_measurement_age_seconds{"), 0);
	assert_int_equal(count(text, "\nsluice_workload_"), 0);
	assert_int_equal(count(text, "\nsluice_history_"), 0);
	assert_int_equal(count(text, "\nsluice_user_"), 0);
	assert_int_equal(count(text, "\nsluice_gpu_time_"), 0);
	assert_int_equal(count(text, "\nsluice_part_up{part=\"history\"}"), 0);
	assert_int_equal(count(text, "\nsluice_project_gpus{"), 1);
	(void)check_format(text);
	free(text);
	(void)sl_metrics_put(books);
}

static void pieces_make_the_same_text(void **state)
{
	struct sl_metrics_books *books = make_books(3, 40);
	char *whole = render(books, ROOM);
	size_t sizes[] = {SL_METRICS_LINE_MAX, SL_METRICS_LINE_MAX + 1, 8192, 100000};

	for (size_t i = 0; i < SL_ARRAY_LEN(sizes); i++) {
		char *text = render(books, sizes[i]);

		assert_string_equal(text, whole);
		free(text);
	}
	free(whole);
	(void)sl_metrics_put(books);
}

static void series_are_bounded(void **state)
{
	struct sl_metrics_books *small = make_books(2, 10);
	struct sl_metrics_books *large = make_books(2, 110);
	char *a = render(small, 65536), *b = render(large, 65536);

	/* Per workload: 5 of its own, and 17 on each of its 2 GPUs. */
	assert_int_equal(check_format(b) - check_format(a), 100 * (5 + 17 * 2));
	free(a);
	free(b);
	(void)sl_metrics_put(small);
	(void)sl_metrics_put(large);
}

#define BAD "\xef\xbf\xbd"

static void hostile_names_do_no_harm(void **state)
{
	static const struct {
		const char *name, *shown;
	} cases[] = {
		{"plain", "plain"},
		{"", ""},
		{"a\"b", "a\\\"b"},
		{"\"} 1\nsluice_gpus 99", "\\\"} 1\\nsluice_gpus 99"},
		{"back\\slash\\", "back\\\\slash\\\\"},
		{"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
			"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
		{"tab\there", "tab" BAD "here"},
		{"\x01\x1b[31m\x7f", BAD BAD "[31m" BAD},
		{"alone \x80", "alone " BAD},
		{"control \x01\x7f \xc2\x9b", "control " BAD BAD " " BAD},
		{"overlong \xc0\xaf", "overlong " BAD BAD},
		{"overlong \xe0\x80\xaf", "overlong " BAD BAD BAD},
		{"surrogate \xed\xa0\x80", "surrogate " BAD BAD BAD},
		{"beyond \xf4\x90\x80\x80", "beyond " BAD BAD BAD BAD},
		{"cut \xe2\x82", "cut " BAD BAD},
		{"cut \xf0\x9f\x98", "cut " BAD BAD BAD},
		{"\xff\xfe", BAD BAD},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(cases); i++) {
		struct sl_metrics_books *books = make_books(1, 1);
		char wanted[512], *text;

		strcpy(books->workloads[0].name, cases[i].name);
		strcpy(books->workloads[0].project, cases[i].name);
		text = render(books, 65536);
		(void)snprintf(wanted, sizeof(wanted),
			"\nsluice_workload_clients{id=\"1\",workload=\"%s\",project=\"%"
			"s\","
			"user=\"0\"} 0\n",
			cases[i].shown, cases[i].shown);
		assert_has(text, wanted);
		(void)check_format(text);
		free(text);
		(void)sl_metrics_put(books);
	}
}

static void the_longest_line_fits(void **state)
{
	struct sl_metrics_books *books = make_books(1, 1);
	char *text;

	memset(books->workloads[0].name, 0xff, 63);
	memset(books->workloads[0].project, 0xff, 63);
	books->workloads[0].id = UINT64_MAX;
	books->workloads[0].uid = UINT32_MAX;
	books->uses[0].view.backing_bytes = UINT64_MAX;
	memset(books->gpus[0].name, '"', 63);
	memset(books->gpus[0].uuid, '"', 47);
	text = render(books, SL_METRICS_LINE_MAX);
	(void)check_format(text);
	free(text);
	(void)sl_metrics_put(books);
}

/* However many users come, the number of series is bounded, and one series has all that the others
 * used. */
static void users_are_bounded(void **state)
{
	static struct sl_history_summing summing;
	const int64_t value[SL_HISTORY_USE_COLUMNS] = {
		[SL_HISTORY_USE_allocated_us] = 1000000};
	struct sl_metrics_books *books = make_books(1, 0);
	char *text;

	memset(&summing, 0, sizeof(summing));
	for (uint32_t i = 0; i < 1000; i++) {
		char user[16], project[64];

		(void)snprintf(user, sizeof(user), "%u", i);
		(void)snprintf(project, sizeof(project), "p%u", i);
		sl_history_summing_use(&summing,
			sl_history_summing_find(&summing, SL_HISTORY_OF_USER, user, user),
			sl_history_summing_find(
				&summing, SL_HISTORY_OF_PROJECT, project, project),
			value);
	}
	books->sums = sl_history_sums_put(books->sums);
	books->sums = sl_history_sums_of(&summing);
	text = render(books, 65536);
	assert_int_equal(
		count(text, "\nsluice_user_waits_total{"), SL_HISTORY_SUMS_MAX + 1);
	assert_int_equal(
		count(text, "\nsluice_project_waits_total{"), SL_HISTORY_SUMS_MAX + 1);
	assert_has(text,
		"\nsluice_user_gpu_seconds_total{user=\"255\",kind=\"allocated\"} 1\n");
	assert_has(text, "\nsluice_user_gpu_seconds_total{user=\"(others)\",kind="
			 "\"allocated\"} 744\n");
	assert_has(text, "\nsluice_project_gpu_seconds_total{project=\"(others)\",kind="
			 "\"allocated\"} 744\n");
	(void)check_format(text);
	free(text);
	(void)sl_metrics_put(books);
}

static void print_line(void *context, const char *line)
{
	(void)puts(line);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_appears),
		cmocka_unit_test(names_are_unique),
		cmocka_unit_test(users_are_bounded),
		cmocka_unit_test(numbers_are_as_they_should),
		cmocka_unit_test(unknown_is_left_out),
		cmocka_unit_test(pieces_make_the_same_text),
		cmocka_unit_test(series_are_bounded),
		cmocka_unit_test(hostile_names_do_no_harm),
		cmocka_unit_test(the_longest_line_fits),
	};

	if (argc > 1 && strcmp(argv[1], "docs") == 0) {
		sl_metrics_document(print_line, NULL);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
