/*
 * bench - what all parts share, and main
 *
 * A figure is one line appended with O_APPEND, so the parts of one run may be separate processes.
 */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/paths.h"

const struct bench_row bench_rows[BENCH_ROWS] = {
#define SL_BENCH_ROW(ID, name, unit, budget, text) {name, unit, budget, text},
#include "rows.def"
#undef SL_BENCH_ROW
};

void bench_die(const char *format, ...)
{
	va_list args;

	(void)fputs("bench: cannot measure: ", stderr);
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fputc('\n', stderr);
	exit(1);
}

/* --- figures -------------------------------------------------------------------------- */

static void format_name(char *buf, size_t size, enum bench_row_id id, const char *variant)
{
	(void)snprintf(buf, size, "%s%s%s", bench_rows[id].name, variant ? ":" : "",
		variant ? variant : "");
}

static void append(enum bench_row_id id, const char *variant, double value, double budget,
	const char *reference)
{
	const char *path = getenv("SL_BENCH_ROWS");
	const char *on = getenv("SL_BENCH_ON");
	char name[128], limit[32] = "null", number[32] = "null", line[512];
	sl_cleanup(sl_closep) int fd = -1;
	int n;

	bench_require(path, "SL_BENCH_ROWS names no file; use make bench");
	format_name(name, sizeof(name), id, variant);
	if (budget >= 0)
		(void)snprintf(limit, sizeof(limit), "%.6g", budget);
	if (!isnan(value))
		(void)snprintf(number, sizeof(number), "%.6g", value);
	n = snprintf(line, sizeof(line),
		"{\"name\": \"%s\", \"value\": %s, \"unit\": \"%s\", \"budget\": %s, "
		"\"ratio_to\": %s%s%s, \"on\": \"%s\"}\n",
		name, number, bench_rows[id].unit, limit, reference ? "\"" : "",
		reference ? reference : "null", reference ? "\"" : "",
		on ? on : "software");
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	bench_require(fd >= 0, "%s: %s", path, strerror(errno));
	bench_require(
		sl_file_write_all(fd, line, (size_t)n) == 0, "%s: cannot write", path);
}

void bench_emit(enum bench_row_id id, const char *variant, double value)
{
	bench_require(bench_rows[id].budget != BENCH_COMPUTED, "%s: no reference",
		bench_rows[id].name);
	append(id, variant, value, bench_rows[id].budget, NULL);
}

void bench_emit_against(enum bench_row_id id, const char *variant, double value,
	enum bench_row_id reference, double budget)
{
	char name[128];

	format_name(name, sizeof(name), reference, variant);
	append(id, variant, value,
		budget == BENCH_COMPUTED ? bench_rows[id].budget : budget, name);
}

/* --- samples ---------------------------------------------------------------------------- */

struct bench_samples *bench_samples_new(void)
{
	struct bench_samples *samples = calloc(1, sizeof(*samples));

	bench_require(samples, "out of memory");
	return samples;
}

void bench_samples_add(struct bench_samples *samples, uint64_t value)
{
	bench_require(samples->count < BENCH_SAMPLES_MAX, "too many samples");
	samples->value[samples->count++] = value;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t bench_quantile(struct bench_samples *samples, unsigned int per_mille)
{
	size_t rank;

	bench_require(samples->count, "no samples");
	qsort(samples->value, samples->count, sizeof(samples->value[0]), compare_u64);
	rank = (samples->count * per_mille + 999) / 1000;
	return samples->value[rank ? rank - 1 : 0];
}

/* --- the rest ------------------------------------------------------------------------- */

bool bench_more(int round, int least, int most, sl_ns begin, sl_ns span_ns)
{
	return round < least || (round < most && sl_clock_now() - begin < span_ns);
}

char *bench_path(const char *relative)
{
	char dir[SL_PATH_MAX];
	char *path = NULL;

	bench_require(sl_paths_program_dir(dir, sizeof(dir)) == 0, "where am I?");
	bench_require(asprintf(&path, "%s/../../%s", dir, relative) > 0, "out of memory");
	bench_require(access(path, R_OK) == 0, "%s: %s", path, strerror(errno));
	return path;
}

int bench_part_rows(int argc, char **argv)
{
	(void)puts("| row | unit | at most | what |\n|---|---|---|---|");
	for (size_t i = 0; i < BENCH_ROWS; i++) {
		const struct bench_row *row = &bench_rows[i];
		char budget[32] = "";

		if (row->budget >= 0)
			(void)snprintf(budget, sizeof(budget), "%g", row->budget);
		(void)printf("| `%s` | %s | %s | %s |\n", row->name, row->unit,
			row->budget == BENCH_COMPUTED ? "computed" : budget, row->text);
	}
	return 0;
}

static const struct {
	const char *name, *text;
	int (*run)(int argc, char **argv);
} parts[] = {
#define SL_BENCH_PART(name, text) {#name, text, bench_part_##name},
#include "parts.def"
#undef SL_BENCH_PART
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < SL_ARRAY_LEN(parts); i++) {
		if (strcmp(parts[i].name, argv[1]) == 0)
			return parts[i].run(argc - 1, argv + 1);
	}
	for (size_t i = 0; i < SL_ARRAY_LEN(parts); i++)
		(void)fprintf(stderr, "bench %-8s %s\n", parts[i].name, parts[i].text);
	return 64;
}
