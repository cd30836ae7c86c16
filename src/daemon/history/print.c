/*
 * print - see the header
 *
 * Memory is shown as the mean over the requested part of a step: a user with 4 GiB for half an hour
 * had 2 GiB in that hour, so areas under curves are right.
 */
#include "daemon/history/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char *const words[SL_HISTORY_BYS] = {
	"user", "project", "gpu", "workload", "program"};

enum unit { BYTES, GPU_SECONDS, PLAIN };

/* A field of a cell. Means are over `length` seconds. */
static const struct field {
	const char *name;
	enum unit unit;
	bool mean;
	enum sl_history_use_column column;
	/* Grouped by GPU: 1 + the column of the GPU's own figure to show; 0: the sum of its
	 * workloads. */
	uint32_t of_gpu;
} fields[] = {
	{"request_bytes", BYTES, true, SL_HISTORY_USE_request},
	{"limit_bytes", BYTES, true, SL_HISTORY_USE_limit},
	{"backing_bytes", BYTES, true, SL_HISTORY_USE_backing},
	{"resident_bytes", BYTES, true, SL_HISTORY_USE_resident},
	{"evicted_bytes", BYTES, true, SL_HISTORY_USE_evicted},
	{"hidden_bytes", BYTES, true, SL_HISTORY_USE_hidden},
	{"most_bytes", BYTES, false, SL_HISTORY_USE_most},
	{"allocated_gpu_s", GPU_SECONDS, false, SL_HISTORY_USE_allocated_us,
		SL_HISTORY_GPU_allocated_us + 1},
	{"used_gpu_s", GPU_SECONDS, false, SL_HISTORY_USE_used_us},
	{"idle_gpu_s", GPU_SECONDS, false, SL_HISTORY_USE_idle_us,
		SL_HISTORY_GPU_idle_us + 1},
	{"active_ms", PLAIN, false, SL_HISTORY_USE_active_ms},
	{"waiting_ms", PLAIN, false, SL_HISTORY_USE_waiting_ms},
	{"waits", PLAIN, false, SL_HISTORY_USE_waits},
	{"denials", PLAIN, false, SL_HISTORY_USE_denials},
	{"turns", PLAIN, false, SL_HISTORY_USE_turns},
	{"out_bytes", BYTES, false, SL_HISTORY_USE_out},
	{"in_bytes", BYTES, false, SL_HISTORY_USE_in},
	{"clean_bytes", BYTES, false, SL_HISTORY_USE_clean},
};
/* Further fields, only when grouped by GPU. */
static const struct gpu_field {
	const char *name;
	enum unit unit;
	bool mean;
	enum sl_history_gpu_column column;
} gpu_fields[] = {
	{"shareable_bytes", BYTES, true, SL_HISTORY_GPU_shareable},
	{"unmanaged_bytes", BYTES, true, SL_HISTORY_GPU_unmanaged},
	{"free_bytes", BYTES, true, SL_HISTORY_GPU_free},
	{"by_process_ms", PLAIN, false, SL_HISTORY_GPU_by_process_ms},
};

static int64_t value_of(const struct sl_history_table *table,
	const struct sl_history_figures *cell, const struct field *field)
{
	return field->of_gpu && table->ask->by == SL_HISTORY_BY_GPU
		       ? cell->gpu[field->of_gpu - 1]
		       : cell->use[field->column];
}

static void print_value(
	FILE *out, int64_t value, enum unit unit, bool mean, int64_t length)
{
	if (mean)
		value = length > 0 ? value / length : 0;
	switch (unit) {
	case BYTES: (void)fprintf(out, "%" PRId64, value * 1024); break;
	case GPU_SECONDS:
		(void)fprintf(
			out, "%" PRId64 ".%06" PRId64, value / 1000000, value % 1000000);
		break;
	case PLAIN: (void)fprintf(out, "%" PRId64, value); break;
	}
}

/* Of a GPU, utilisation by NVML; else the used share of the allocation. False: not known. */
static bool utilisation(const struct sl_history_table *table,
	const struct sl_history_figures *cell, double *share)
{
	int64_t of = cell->gpu[SL_HISTORY_GPU_known_ms] * 1000;
	int64_t part = cell->gpu[SL_HISTORY_GPU_busy_us];

	if (table->ask->by != SL_HISTORY_BY_GPU) {
		of = cell->use[SL_HISTORY_USE_allocated_us];
		part = cell->use[SL_HISTORY_USE_used_us];
	}
	if (of <= 0)
		return false;
	*share = (double)part / (double)of;
	return true;
}

static void print_json_text(FILE *out, const char *name, const char *text)
{
	json_t *string = sl_text_json(text);

	(void)fprintf(out, ",\"%s\":", name);
	if (string)
		(void)json_dumpf(string, out, JSON_ENCODE_ANY);
	else
		(void)fputs("\"?\"", out);
	json_decref(string);
}

static void print_json(const struct sl_history_table *table, FILE *out,
	const struct sl_history_key *key, const struct sl_history_figures *cell,
	int64_t length)
{
	double share;

	print_json_text(out, "key", key->key);
	print_json_text(out, "name", key->name);
	for (size_t i = 0; i < SL_ARRAY_LEN(fields); i++) {
		(void)fprintf(out, ",\"%s\":", fields[i].name);
		print_value(out, value_of(table, cell, &fields[i]), fields[i].unit,
			fields[i].mean, length);
	}
	for (size_t i = 0;
		table->ask->by == SL_HISTORY_BY_GPU && i < SL_ARRAY_LEN(gpu_fields);
		i++) {
		(void)fprintf(out, ",\"%s\":", gpu_fields[i].name);
		print_value(out, cell->gpu[gpu_fields[i].column], gpu_fields[i].unit,
			gpu_fields[i].mean, length);
	}
	if (utilisation(table, cell, &share))
		(void)fprintf(out, ",\"utilisation\":%.4f}", share);
	else
		(void)fputs(",\"utilisation\":null}", out);
}

/* Quotes the text, and marks it with ' if a spreadsheet would read it as a formula. */
static void print_csv_text(FILE *out, const char *text)
{
	char tame[128];

	(void)snprintf(tame, sizeof(tame), "%s", text);
	sl_text_tame(tame);
	(void)fputs(strchr("=+-@", tame[0]) && tame[0] ? ",\"'" : ",\"", out);
	for (const char *c = tame; *c; c++) {
		if (*c == '"')
			(void)fputc('"', out);
		(void)fputc(*c, out);
	}
	(void)fputc('"', out);
}

static void print_csv_head(const struct sl_history_table *table, FILE *out)
{
	(void)fprintf(out, "t_ms,%s,name", words[table->ask->by]);
	for (size_t i = 0; i < SL_ARRAY_LEN(fields); i++)
		(void)fprintf(out, ",%s", fields[i].name);
	for (size_t i = 0;
		table->ask->by == SL_HISTORY_BY_GPU && i < SL_ARRAY_LEN(gpu_fields); i++)
		(void)fprintf(out, ",%s", gpu_fields[i].name);
	(void)fputs(",utilisation\n", out);
}

static void print_csv(const struct sl_history_table *table, FILE *out,
	const struct sl_history_key *key, const struct sl_history_figures *cell,
	int64_t t, int64_t length)
{
	double share;

	(void)fprintf(out, "%" PRId64, t * 1000);
	print_csv_text(out, key->key);
	print_csv_text(out, key->name);
	for (size_t i = 0; i < SL_ARRAY_LEN(fields); i++) {
		(void)fputc(',', out);
		print_value(out, value_of(table, cell, &fields[i]), fields[i].unit,
			fields[i].mean, length);
	}
	for (size_t i = 0;
		table->ask->by == SL_HISTORY_BY_GPU && i < SL_ARRAY_LEN(gpu_fields);
		i++) {
		(void)fputc(',', out);
		print_value(out, cell->gpu[gpu_fields[i].column], gpu_fields[i].unit,
			gpu_fields[i].mean, length);
	}
	if (utilisation(table, cell, &share))
		(void)fprintf(out, ",%.4f\n", share);
	else
		(void)fputs(",\n", out);
}

/* Length of the requested part of step i. */
static int64_t part_of(const struct sl_history_table *table, size_t i, int64_t *begin)
{
	int64_t from = table->first + (int64_t)i * table->step;
	int64_t to = from + table->step;

	*begin = from;
	from = from > table->from ? from : table->from;
	to = to < table->to ? to : table->to;
	return to - from;
}

/* The largest allocation comes first. */
static int by_allocated(const void *left, const void *right)
{
	const struct sl_history_key *a = *(struct sl_history_key *const *)left,
				    *b = *(struct sl_history_key *const *)right;
	int64_t x = a->total.use[SL_HISTORY_USE_allocated_us];
	int64_t y = b->total.use[SL_HISTORY_USE_allocated_us];

	if (x != y)
		return x < y ? 1 : -1;
	return strcmp(a->key, b->key);
}

/* By time, and within a step by rank in the totals. */
static int by_time(const void *left, const void *right)
{
	const struct sl_history_cell *a = left, *b = right;

	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	return a->key->rank < b->key->rank ? -1 : a->key->rank > b->key->rank;
}

static void sort(struct sl_history_table *table)
{
	if (table->key_count)
		qsort(table->keys, table->key_count, sizeof(struct sl_history_key *),
			by_allocated);
	for (size_t k = 0; k < table->key_count; k++)
		table->keys[k]->rank = k;
	if (table->cell_count)
		qsort(table->cells, table->cell_count, sizeof(*table->cells), by_time);
}

static void print_rows(const struct sl_history_table *table, FILE *out, bool json)
{
	for (size_t i = 0; i < table->cell_count; i++) {
		const struct sl_history_cell *cell = &table->cells[i];
		int64_t begin, length = part_of(table, cell->step, &begin);

		if (!json) {
			print_csv(table, out, cell->key, &cell->figures, begin, length);
			continue;
		}
		(void)fprintf(out, "%s{\"t_ms\":%" PRId64, i ? ",\n" : "", begin * 1000);
		print_json(table, out, cell->key, &cell->figures, length);
	}
}

static void print_totals(const struct sl_history_table *table, FILE *out)
{
	bool first = true;

	for (size_t k = 0; k < table->key_count; k++) {
		const struct sl_history_key *key = table->keys[k];

		if (!key->any)
			continue;
		(void)fprintf(out, "%s{\"span_s\":%" PRId64, first ? "" : ",\n",
			table->to - table->from);
		first = false;
		print_json(table, out, key, &key->total, table->to - table->from);
	}
}

void sl_history_print(struct sl_history_table *table, FILE *out)
{
	sort(table);
	if (table->ask->format == SL_HISTORY_CSV) {
		print_csv_head(table, out);
		print_rows(table, out, false);
		return;
	}
	(void)fprintf(out,
		"{\"from_ms\":%" PRIu64 ",\"to_ms\":%" PRIu64
		",\"step_s\":%u,\"by\":\"%s\",\"rows\":[",
		table->ask->from_ms, table->ask->to_ms, (unsigned int)table->step,
		words[table->ask->by]);
	print_rows(table, out, true);
	(void)fputs("],\"totals\":[", out);
	print_totals(table, out);
	(void)fputs("]}\n", out);
}
