/*
 * history_query - see the header
 *
 * Rows are dealt out to cells, one per key and step of time; a row that reaches over several steps gives each its part, so that
 * the cells add up to exactly what the rows have. What is shown of memory is the mean over the step (the part of it that was asked for): a
 * user who had 4 GiB for half of the hour had 2 GiB in that hour, so that areas under curves are right.
 */
#include "daemon/history_query.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/history_advice.h"
#include "daemon/history_read.h"
#include "daemon/history_series.h"
#include "daemon/map.h"

/* A step of time of one key: sums, as rows have them. */
struct cell {
	int64_t use[SL_HISTORY_USE_COLUMNS];
	int64_t gpu[SL_HISTORY_GPU_COLUMNS];
	bool any;
};

/* What one row of the answer is of. */
struct key {
	char key[128], name[128];
	struct cell *cells; /* one per step; NULL: none yet */
	struct cell total;
};

struct query {
	const struct sl_history_ask *ask;
	struct sl_error *err;
	int64_t from, to, step, first; /* seconds; first: where the first step begins */
	size_t steps, cells;
	struct key **keys;
	size_t key_count;
	struct sl_map by_id; /* numbers of the database to keys */
	bool failed, too_many;
};

static const char *const words[SL_HISTORY_BYS] = {
	"user", "project", "gpu", "workload", "program"};

/* --- what is asked ------------------------------------------------------------------------ */

bool sl_history_ask_complete(
	struct sl_history_ask *ask, uint64_t now_ms, struct sl_error *err)
{
	uint64_t span_s;

	if (!ask->to_ms || ask->to_ms > now_ms)
		ask->to_ms = now_ms;
	if (ask->from_ms >= ask->to_ms) {
		sl_error_set(err, "the time that is asked for is empty or still to come; "
				  "let it begin "
				  "before it ends");
		return false;
	}
	span_s = (ask->to_ms - ask->from_ms + 999) / 1000;
	if (!ask->step_s)
		ask->step_s = span_s <= 3600 ? 1 : span_s <= 7 * 86400 ? 60 : 3600;
	if (span_s / ask->step_s >= SL_HISTORY_ROWS_MAX) {
		sl_error_set(err,
			"steps of %u s are too short for so long a time; ask for steps "
			"of "
			"%" PRIu64 " s or more",
			ask->step_s, span_s / SL_HISTORY_ROWS_MAX + 1);
		return false;
	}
	return true;
}

enum sl_history_level sl_history_level_of(uint32_t step_s)
{
	return step_s % 3600 == 0 ? SL_HISTORY_HOURS
	       : step_s % 60 == 0 ? SL_HISTORY_MINUTES
				  : SL_HISTORY_SECONDS;
}

/* --- keys --------------------------------------------------------------------------------- */

static struct key *key_new(struct query *query, const char *key, const char *name)
{
	struct key **all, *fresh = NULL;

	for (size_t i = 0;
		query->ask->by != SL_HISTORY_BY_WORKLOAD && i < query->key_count; i++) {
		if (strcmp(query->keys[i]->key, key) == 0)
			return query->keys[i];
	}
	/* Room is doubled at powers of two. */
	all = query->keys;
	if ((query->key_count & (query->key_count - 1)) == 0)
		all = realloc(query->keys,
			sl_max_u64(1, query->key_count * 2) * sizeof(struct key *));
	if (all) {
		query->keys = all;
		fresh = calloc(1, sizeof(*fresh));
	}
	if (!fresh) {
		query->failed = true;
		return NULL;
	}
	sl_wire_str(fresh->key, sizeof(fresh->key), key);
	sl_wire_str(fresh->name, sizeof(fresh->name), name);
	query->keys[query->key_count++] = fresh;
	return fresh;
}

static bool is_asked_for(const struct query *query, const char *key, const char *name)
{
	const char *only = query->ask->name;

	return !only[0] || strcmp(only, key) == 0 || strcmp(only, name) == 0;
}

/* Rows of the statement are id, key, name. */
static bool read_keys(
	struct query *query, struct sl_history_reader *reader, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int r = SQLITE_ERROR;

	if (sqlite3_prepare_v2(reader->db, sql, -1, &statement, NULL) != SQLITE_OK)
		return false;
	while (!query->failed && (r = sqlite3_step(statement)) == SQLITE_ROW) {
		uint64_t id = (uint64_t)sqlite3_column_int64(statement, 0);
		const char *key = (const char *)sqlite3_column_text(statement, 1);
		const char *name = (const char *)sqlite3_column_text(statement, 2);
		struct key *at;

		if (!key || !name || !is_asked_for(query, key, name))
			continue;
		at = key_new(query, key, name);
		if (at && sl_map_put(&query->by_id, id, at) < 0)
			query->failed = true;
	}
	(void)sqlite3_finalize(statement);
	return query->failed || r == SQLITE_DONE;
}

static bool find_keys(struct query *query, struct sl_history_reader *reader)
{
	static const char *const sql[SL_HISTORY_BYS] = {
		[SL_HISTORY_BY_USER] = "SELECT id, uid, user FROM workloads",
		[SL_HISTORY_BY_PROJECT] = "SELECT id, project, project FROM workloads",
		[SL_HISTORY_BY_GPU] = "SELECT id, uuid, name FROM gpus",
		[SL_HISTORY_BY_WORKLOAD] = "SELECT id, number, name FROM workloads",
		[SL_HISTORY_BY_PROGRAM] = "SELECT id, program, program FROM workloads",
	};
	char text[192];

	if (query->ask->by == SL_HISTORY_BY_GPU)
		return read_keys(query, reader, sql[query->ask->by]);
	/* Who had ended before need not be looked at. */
	(void)snprintf(text, sizeof(text),
		"%s WHERE ended_ms = 0 OR ended_ms >= %" PRId64 " ORDER BY id",
		sql[query->ask->by], (query->from - 3600) * 1000);
	return read_keys(query, reader, text);
}

/* --- dealing out -------------------------------------------------------------------------- */

static bool have_cells(struct query *query, struct key *key)
{
	if (key->cells)
		return true;
	query->cells += query->steps;
	if (query->cells > SL_HISTORY_ROWS_MAX) {
		query->too_many = true;
		return false;
	}
	key->cells = calloc(query->steps, sizeof(*key->cells));
	query->failed |= !key->cells;
	return key->cells != NULL;
}

static void fold(int64_t *into, enum sl_history_kind kind, uint32_t column, int64_t value)
{
	if (sl_history_columns[kind].folds[column] == SL_HISTORY_SUM)
		*into += value;
	else if (value > *into)
		*into = value;
}

static void deal(struct query *query, struct key *key, enum sl_history_kind kind,
	const struct sl_history_row *row)
{
	int64_t from = row->t > query->from ? row->t : query->from;
	int64_t end = row->t + row->reach < query->to ? row->t + row->reach : query->to;

	while (from < end) {
		size_t i = (size_t)((from - query->first) / query->step);
		int64_t to = query->first + (int64_t)(i + 1) * query->step;
		struct cell *cell = &key->cells[i];

		to = to < end ? to : end;
		cell->any = key->total.any = true;
		for (uint32_t c = 0; c < sl_history_columns[kind].count; c++) {
			bool sums = sl_history_columns[kind].folds[c] == SL_HISTORY_SUM;
			int64_t value =
				sums ? sl_history_part(row, c, from, to) : row->value[c];

			fold(kind == SL_HISTORY_USES ? &cell->use[c] : &cell->gpu[c],
				kind, c, value);
			fold(kind == SL_HISTORY_USES ? &key->total.use[c]
						     : &key->total.gpu[c],
				kind, c, value);
		}
		from = to;
	}
}

static bool take_row(
	struct query *query, enum sl_history_kind kind, const struct sl_history_row *row)
{
	bool by_gpu = query->ask->by == SL_HISTORY_BY_GPU;
	struct key *key =
		sl_map_get(&query->by_id, (uint64_t)(by_gpu ? row->gpu : row->workload));

	if (key && have_cells(query, key))
		deal(query, key, kind, row);
	return !query->failed && !query->too_many;
}

static bool take_use(void *context, const struct sl_history_row *row)
{
	return take_row(context, SL_HISTORY_USES, row);
}

static bool take_gpu(void *context, const struct sl_history_row *row)
{
	return take_row(context, SL_HISTORY_GPUS, row);
}

/* --- writing ------------------------------------------------------------------------------ */

enum unit { BYTES, GPU_SECONDS, PLAIN };

/* What is shown of a cell. Means are over `length` seconds. */
static const struct field {
	const char *name;
	enum unit unit;
	bool mean;
	enum sl_history_use_column column;
	/* Of a GPU its own figure is shown: this one, less 1. 0: the sum of its workloads'. */
	uint32_t of_gpu;
} fields[] = {
	{"request_bytes", BYTES, true, SL_HISTORY_USE_request},
	{"limit_bytes", BYTES, true, SL_HISTORY_USE_limit},
	{"charged_bytes", BYTES, true, SL_HISTORY_USE_charged},
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
	{"turns", PLAIN, false, SL_HISTORY_USE_turns},
	{"out_bytes", BYTES, false, SL_HISTORY_USE_out},
	{"in_bytes", BYTES, false, SL_HISTORY_USE_in},
	{"clean_bytes", BYTES, false, SL_HISTORY_USE_clean},
};
/* Of GPUs only, besides. */
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

static int64_t value_of(
	const struct query *query, const struct cell *cell, const struct field *field)
{
	return field->of_gpu && query->ask->by == SL_HISTORY_BY_GPU
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

/* Of a GPU what NVML says, of others what of their allocation was used. False: it is not known. */
static bool utilisation(const struct query *query, const struct cell *cell, double *share)
{
	int64_t of = cell->gpu[SL_HISTORY_GPU_known_ms] * 1000;
	int64_t part = cell->gpu[SL_HISTORY_GPU_busy_us];

	if (query->ask->by != SL_HISTORY_BY_GPU) {
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

static void print_json(const struct query *query, FILE *out, const struct key *key,
	const struct cell *cell, int64_t length)
{
	double share;

	print_json_text(out, "key", key->key);
	print_json_text(out, "name", key->name);
	for (size_t i = 0; i < SL_ARRAY_LEN(fields); i++) {
		(void)fprintf(out, ",\"%s\":", fields[i].name);
		print_value(out, value_of(query, cell, &fields[i]), fields[i].unit,
			fields[i].mean, length);
	}
	for (size_t i = 0;
		query->ask->by == SL_HISTORY_BY_GPU && i < SL_ARRAY_LEN(gpu_fields);
		i++) {
		(void)fprintf(out, ",\"%s\":", gpu_fields[i].name);
		print_value(out, cell->gpu[gpu_fields[i].column], gpu_fields[i].unit,
			gpu_fields[i].mean, length);
	}
	if (utilisation(query, cell, &share))
		(void)fprintf(out, ",\"utilisation\":%.4f}", share);
	else
		(void)fputs(",\"utilisation\":null}", out);
}

/* A field with anything in it that would end it is put in quotation marks, and what would be taken for a formula is not begun like one. */
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

static void print_csv_head(const struct query *query, FILE *out)
{
	(void)fprintf(out, "t_ms,%s,name", words[query->ask->by]);
	for (size_t i = 0; i < SL_ARRAY_LEN(fields); i++)
		(void)fprintf(out, ",%s", fields[i].name);
	for (size_t i = 0;
		query->ask->by == SL_HISTORY_BY_GPU && i < SL_ARRAY_LEN(gpu_fields); i++)
		(void)fprintf(out, ",%s", gpu_fields[i].name);
	(void)fputs(",utilisation\n", out);
}

static void print_csv(const struct query *query, FILE *out, const struct key *key,
	const struct cell *cell, int64_t t, int64_t length)
{
	double share;

	(void)fprintf(out, "%" PRId64, t * 1000);
	print_csv_text(out, key->key);
	print_csv_text(out, key->name);
	for (size_t i = 0; i < SL_ARRAY_LEN(fields); i++) {
		(void)fputc(',', out);
		print_value(out, value_of(query, cell, &fields[i]), fields[i].unit,
			fields[i].mean, length);
	}
	for (size_t i = 0;
		query->ask->by == SL_HISTORY_BY_GPU && i < SL_ARRAY_LEN(gpu_fields);
		i++) {
		(void)fputc(',', out);
		print_value(out, cell->gpu[gpu_fields[i].column], gpu_fields[i].unit,
			gpu_fields[i].mean, length);
	}
	if (utilisation(query, cell, &share))
		(void)fprintf(out, ",%.4f\n", share);
	else
		(void)fputs(",\n", out);
}

/* The part of step i that was asked for. */
static int64_t part_of(const struct query *query, size_t i, int64_t *begin)
{
	int64_t from = query->first + (int64_t)i * query->step;
	int64_t to = from + query->step;

	*begin = from;
	from = from > query->from ? from : query->from;
	to = to < query->to ? to : query->to;
	return to - from;
}

/* Who allocated most comes first. */
static int by_allocated(const void *left, const void *right)
{
	const struct key *a = *(struct key *const *)left,
			 *b = *(struct key *const *)right;
	int64_t x = a->total.use[SL_HISTORY_USE_allocated_us];
	int64_t y = b->total.use[SL_HISTORY_USE_allocated_us];

	if (x != y)
		return x < y ? 1 : -1;
	return strcmp(a->key, b->key);
}

static void print_rows(const struct query *query, FILE *out, bool json)
{
	bool first = true;
	int64_t begin;

	for (size_t i = 0; i < query->steps; i++) {
		int64_t length = part_of(query, i, &begin);

		for (size_t k = 0; k < query->key_count; k++) {
			const struct key *key = query->keys[k];

			if (!key->cells || !key->cells[i].any)
				continue;
			if (!json) {
				print_csv(query, out, key, &key->cells[i], begin, length);
				continue;
			}
			(void)fprintf(out, "%s{\"t_ms\":%" PRId64, first ? "" : ",\n",
				begin * 1000);
			first = false;
			print_json(query, out, key, &key->cells[i], length);
		}
	}
}

static void print_totals(const struct query *query, FILE *out)
{
	bool first = true;

	for (size_t k = 0; k < query->key_count; k++) {
		const struct key *key = query->keys[k];

		if (!key->total.any)
			continue;
		(void)fprintf(out, "%s{\"span_s\":%" PRId64, first ? "" : ",\n",
			query->to - query->from);
		first = false;
		print_json(query, out, key, &key->total, query->to - query->from);
	}
}

static void print(const struct query *query, FILE *out)
{
	if (query->ask->format == SL_HISTORY_CSV) {
		print_csv_head(query, out);
		print_rows(query, out, false);
		return;
	}
	(void)fprintf(out,
		"{\"from_ms\":%" PRIu64 ",\"to_ms\":%" PRIu64
		",\"step_s\":%u,\"by\":\"%s\",\"rows\":[",
		query->ask->from_ms, query->ask->to_ms, query->ask->step_s,
		words[query->ask->by]);
	print_rows(query, out, true);
	(void)fputs("],\"totals\":[", out);
	print_totals(query, out);
	(void)fputs("]}\n", out);
}

/* --- all of it ---------------------------------------------------------------------------- */

static void query_fini(struct query *query)
{
	for (size_t k = 0; k < query->key_count; k++) {
		free(query->keys[k]->cells);
		free(query->keys[k]);
	}
	free(query->keys);
	sl_map_fini(&query->by_id);
}

static int read_all(struct query *query, struct sl_history_reader *reader)
{
	enum sl_history_level level = sl_history_level_of(query->ask->step_s);
	int r = SL_HISTORY_STORE_OK;

	if (!find_keys(query, reader))
		return sl_history_reader_failed(reader, query->err);
	if (!query->failed)
		r = sl_history_read_rows(reader, SL_HISTORY_USES, level, query->from,
			query->to, 0, take_use, query, query->err);
	if (r == SL_HISTORY_STORE_OK && !query->failed && !query->too_many &&
		query->ask->by == SL_HISTORY_BY_GPU)
		r = sl_history_read_rows(reader, SL_HISTORY_GPUS, level, query->from,
			query->to, 0, take_gpu, query, query->err);
	if (r != SL_HISTORY_STORE_OK)
		return r;
	if (query->too_many && query->ask->fault)
		*query->ask->fault = SL_HISTORY_FAULT_ASKED;
	if (query->too_many)
		sl_error_set(query->err,
			"that would be more than %d rows; ask for longer steps, a "
			"shorter "
			"time, or one name",
			SL_HISTORY_ROWS_MAX);
	else if (query->failed)
		sl_error_set(query->err, "sluiced is out of memory; try again");
	return query->too_many || query->failed ? SL_HISTORY_STORE_BAD
						: SL_HISTORY_STORE_OK;
}

static int usage(struct sl_history_reader *reader, const struct sl_history_ask *ask,
	FILE *out, struct sl_error *err)
{
	struct query query = {.ask = ask,
		.err = err,
		.from = (int64_t)(ask->from_ms / 1000),
		.to = (int64_t)((ask->to_ms + 999) / 1000),
		.step = ask->step_s};
	int r;

	query.first = query.from / query.step * query.step;
	query.steps = (size_t)((query.to - query.first + query.step - 1) / query.step);
	r = read_all(&query, reader);
	if (r == SL_HISTORY_STORE_OK) {
		if (query.key_count)
			qsort(query.keys, query.key_count, sizeof(struct key *),
				by_allocated);
		print(&query, out);
	}
	query_fini(&query);
	return r;
}

int sl_history_query(const char *path, const struct sl_history_ask *asked,
	uint64_t now_ms, FILE *out, struct sl_error *err)
{
	sl_cleanup(sl_history_reader_close) struct sl_history_reader reader = {0};
	struct sl_history_ask ask = *asked;
	int r;

	if (ask.what != SL_HISTORY_EVENTS &&
		!sl_history_ask_complete(&ask, now_ms, err)) {
		if (ask.fault)
			*ask.fault = SL_HISTORY_FAULT_ASKED;
		return SL_HISTORY_STORE_BAD;
	}
	r = sl_history_reader_open(&reader, path, ask.cancel, err);
	if (r != SL_HISTORY_STORE_OK)
		return r;
	switch (ask.what) {
	case SL_HISTORY_USAGE: return usage(&reader, &ask, out, err);
	case SL_HISTORY_SERIES: return sl_history_series(&reader, &ask, out, err);
	case SL_HISTORY_EVENTS: return sl_history_events(&reader, &ask, out, err);
	case SL_HISTORY_ADVICE: return sl_history_advice(&reader, &ask, out, err);
	case SL_HISTORY_WHATS: break;
	}
	sl_error_set(err, "there is no such question about the history");
	return SL_HISTORY_STORE_BAD;
}
