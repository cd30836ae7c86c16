/*
 * usage - answers questions (history/query.h); figures by key and step of time
 *
 * SQLite adds rows up in cells, one per key and step with figures (history/read.h), and prints
 * them. Without a step length in the question, the shortest one is chosen that does not exceed the
 * bounds; begin and end of the workloads tell that beforehand. Memory is shown as the mean over the
 * requested part of a step: a user with 4 GiB for half an hour had 2 GiB in that hour, so areas
 * under curves are right.
 */
#include "daemon/history/query.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/history/answers.h"
#include "daemon/history/read.h"

static const char *const words[SL_HISTORY_BYS] = {
	"user", "project", "gpu", "workload", "program"};

/* A figure of the answer, as SQL over a cell's columns; len: seconds of the cell. For a key that is
 * a GPU, of_gpu applies if it is set, else sql over the sum of the GPU's workloads. */
static const struct field {
	const char *name, *sql, *of_gpu;
} fields[] = {
	{"request_bytes", "request / len * 1024", NULL},
	{"limit_bytes", "\"limit\" / len * 1024", NULL},
	{"backing_bytes", "backing / len * 1024", NULL},
	{"resident_bytes", "resident / len * 1024", NULL},
	{"evicted_bytes", "evicted / len * 1024", NULL},
	{"hidden_bytes", "hidden / len * 1024", NULL},
	{"most_bytes", "most * 1024", NULL},
	{"allocated_gpu_s", "allocated_us / 1e6", "gpu_allocated_us / 1e6"},
	{"used_gpu_s", "used_us / 1e6", NULL},
	{"idle_gpu_s", "idle_us / 1e6", "gpu_idle_us / 1e6"},
	{"active_ms", "active_ms", NULL},
	{"waiting_ms", "waiting_ms", NULL},
	{"waits", "waits", NULL},
	{"denials", "denials", NULL},
	{"turns", "turns", NULL},
	{"out_bytes", "\"out\" * 1024", NULL},
	{"in_bytes", "\"in\" * 1024", NULL},
	{"clean_bytes", "clean * 1024", NULL},
	{"compute_request", "round(compute_request / 1e3 / len, 4)", NULL},
	{"compute_s", "compute_us / 1e6", NULL},
	{"contested_s", "contested_ms / 1e3", NULL},
	{"shareable_bytes", NULL, "gpu_shareable / len * 1024"},
	{"unmanaged_bytes", NULL, "gpu_unmanaged / len * 1024"},
	{"free_bytes", NULL, "gpu_free / len * 1024"},
	{"by_process_ms", NULL, "gpu_by_process_ms"},
	/* Of a GPU, utilisation by NVML; else the used share of the allocation. */
	{"utilisation",
		"CASE WHEN allocated_us > 0 THEN round(1.0 * used_us / allocated_us, 4) "
		"END",
		"CASE WHEN gpu_known_ms > 0 THEN round(gpu_busy_us / 1e3 / gpu_known_ms, "
		"4) END"},
};

/* --- the question ------------------------------------------------------------------------- */

/* As fine as the levels kept for so long a time. */
static int64_t shortest_step(uint64_t span_s)
{
	return span_s <= 3600 ? 1 : span_s <= 7 * 86400 ? 60 : 3600;
}

bool sl_history_ask_complete(
	struct sl_history_ask *ask, uint64_t now_ms, struct sl_error *err)
{
	uint64_t span_s;

	if (!ask->to_ms || ask->to_ms > now_ms)
		ask->to_ms = now_ms;
	if (ask->from_ms >= ask->to_ms) {
		sl_error_set(err, "the time that is asked for is empty or still to come; "
				  "let it begin before it ends");
		return false;
	}
	span_s = (ask->to_ms - ask->from_ms + 999) / 1000;
	/* Of usage, the step is chosen later, when the number of keys is known. */
	if (!ask->step_s && ask->what != SL_HISTORY_USAGE)
		ask->step_s = (uint32_t)shortest_step(span_s);
	if (ask->step_s && span_s / ask->step_s >= SL_HISTORY_ROWS_MAX) {
		sl_error_set(err,
			"steps of %u s are too short for so long a time; ask for steps "
			"of %" PRIu64 " s or more",
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

struct sl_history_cut sl_history_cut_of(const struct sl_history_ask *ask)
{
	struct sl_history_cut cut = {
		.from = (int64_t)(ask->from_ms / 1000) + ask->ahead_s,
		.to = (int64_t)((ask->to_ms + 999) / 1000) + ask->ahead_s,
		.step = ask->step_s,
		.level = sl_history_level_of(ask->step_s),
		.by_gpu = ask->by == SL_HISTORY_BY_GPU,
		.most = ask->rows_most ? ask->rows_most : SL_HISTORY_ROWS_MAX,
	};

	if (cut.from < 0)
		cut.from = 0;
	if (cut.step)
		cut.first = cut.from / cut.step * cut.step;
	return cut;
}

/* --- keys --------------------------------------------------------------------------------- */

static bool find_keys(struct sl_history_reader *reader, const struct sl_history_ask *ask,
	const struct sl_history_cut *cut)
{
	static const char *const columns[SL_HISTORY_BYS] = {
		[SL_HISTORY_BY_USER] = "CAST(uid AS TEXT) AS key, user AS name",
		[SL_HISTORY_BY_PROJECT] = "project AS key, project AS name",
		[SL_HISTORY_BY_GPU] = "uuid AS key, name",
		/* Numbers start over with the machine: all but the newest get their begin time
		 * appended. */
		[SL_HISTORY_BY_WORKLOAD] = ("CASE WHEN id IN (SELECT max(id) FROM "
					    "workloads GROUP BY number) "
					    "THEN CAST(number AS TEXT) ELSE number || "
					    "'@' || begun_ms END AS "
					    "key, name"),
		[SL_HISTORY_BY_PROGRAM] = "program AS key, program AS name",
	};

	return sl_history_reader_run(reader,
		"INSERT INTO keys SELECT id, key, ifnull(name, ''), begun, ended FROM "
		"(SELECT "
		"id, %s, %s FROM %s) WHERE key NOT NULL AND (%Q = '' OR key = %Q OR name "
		"= %Q)",
		columns[ask->by],
		cut->by_gpu
			? "0 AS begun, 1 << 60 AS ended"
			: "begun_ms / 1000 AS begun, CASE ended_ms WHEN 0 THEN 1 << 60 "
			  "ELSE ended_ms / 1000 + 1 END AS ended",
		cut->by_gpu ? "gpus" : "workloads", ask->name, ask->name, ask->name);
}

/* The most cells that there may be. */
static bool cells_of(struct sl_history_reader *reader, const struct sl_history_cut *cut,
	int64_t step, uint64_t *out)
{
	/* A row may be about all of its minute or hour. */
	sl_cleanup(sl_history_statement_end) sqlite3_stmt *statement =
		sl_history_reader_ask(reader,
			"SELECT sum((e - b + %d) / %" PRId64 " + 2) FROM (SELECT "
			"min(max(begun, %" PRId64 ")) AS b, max(min(ended, %" PRId64
			")) AS e FROM keys GROUP BY key) WHERE e > b",
			step > 60 ? 3600 : 60, step, cut->from, cut->to);

	if (!statement || sqlite3_step(statement) != SQLITE_ROW)
		return false;
	*out = (uint64_t)sqlite3_column_int64(statement, 0);
	return true;
}

/* False: SQLite says why. */
static bool choose_step(struct sl_history_reader *reader,
	const struct sl_history_ask *ask, struct sl_history_cut *cut)
{
	static const int64_t steps[] = {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
		3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600};
	int64_t span = cut->to - cut->from, step = 0;
	uint64_t most = ask->steps_most ? ask->steps_most : UINT32_MAX, cells = 0;

	for (size_t i = 0; step <= span; i++) {
		step = i < SL_ARRAY_LEN(steps) ? steps[i]
					       : 86400ll << (i - SL_ARRAY_LEN(steps));
		if (step < shortest_step((uint64_t)span) ||
			(uint64_t)((span + step - 1) / step) > most)
			continue;
		if (!cells_of(reader, cut, step, &cells))
			return false;
		if (cells <= cut->most)
			break;
	}
	cut->step = step;
	cut->first = cut->from / step * step;
	cut->level = sl_history_level_of((uint32_t)step);
	return true;
}

/* --- the answer --------------------------------------------------------------------------- */

static void put_fields(sqlite3_str *sql, bool by_gpu)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(fields); i++) {
		const char *figure =
			by_gpu && fields[i].of_gpu ? fields[i].of_gpu : fields[i].sql;

		if (figure)
			sqlite3_str_appendf(sql, ", %s AS %s", figure, fields[i].name);
	}
}

static bool print(
	struct sl_history_reader *reader, sqlite3_str *text, bool csv, FILE *out)
{
	sqlite3_stmt *statement = NULL;
	char *sql = sqlite3_str_finish(text);

	if (sql)
		(void)sqlite3_prepare_v2(reader->db, sql, -1, &statement, NULL);
	sqlite3_free(sql);
	return sl_history_print_rows(statement, csv, out);
}

/* By time, and within a step by the totals' order. */
static bool print_rows(struct sl_history_reader *reader, const struct sl_history_ask *ask,
	const struct sl_history_cut *cut, FILE *out)
{
	bool csv = ask->format == SL_HISTORY_CSV;
	sqlite3_str *sql = sqlite3_str_new(reader->db);

	sqlite3_str_appendf(sql,
		"SELECT (%lld + s * %lld) * 1000 AS t_ms, key AS %s, name",
		(long long)(cut->first - ask->ahead_s), (long long)cut->step,
		csv ? words[ask->by] : "key");
	put_fields(sql, cut->by_gpu);
	sqlite3_str_appendf(sql,
		" FROM (SELECT *, min(%lld, %lld + (s + 1) * %lld) - max(%lld, %lld + s "
		"* %lld) AS len FROM cells) JOIN (SELECT key, sum(allocated_us) AS rank "
		"FROM cells GROUP BY key) USING (key) ORDER BY s, rank DESC, key",
		(long long)cut->to, (long long)cut->first, (long long)cut->step,
		(long long)cut->from, (long long)cut->first, (long long)cut->step);
	return print(reader, sql, csv, out);
}

/* The largest allocation comes first. */
static bool print_totals(
	struct sl_history_reader *reader, const struct sl_history_cut *cut, FILE *out)
{
	sqlite3_str *sql = sqlite3_str_new(reader->db);

	sqlite3_str_appendall(sql, "SELECT len AS span_s, key, name");
	put_fields(sql, cut->by_gpu);
	sqlite3_str_appendf(sql, " FROM (SELECT key, name, %lld AS len",
		(long long)(cut->to - cut->from));
	sl_history_sql_columns(sql, SL_HISTORY_USES, ", sum(\"%s\") AS \"%s\"",
		", max(\"%s\") AS \"%s\"");
	if (cut->by_gpu)
		sl_history_sql_columns(sql, SL_HISTORY_GPUS,
			", sum(\"gpu_%s\") AS \"gpu_%s\"",
			", max(\"gpu_%s\") AS \"gpu_%s\"");
	sqlite3_str_appendall(
		sql, " FROM cells GROUP BY key) ORDER BY allocated_us DESC, key");
	return print(reader, sql, false, out);
}

static bool print_answer(struct sl_history_reader *reader,
	const struct sl_history_ask *ask, const struct sl_history_cut *cut, FILE *out)
{
	bool ok = true;

	if (ask->format == SL_HISTORY_CSV)
		return print_rows(reader, ask, cut, out);
	(void)fprintf(out,
		"{\"from_ms\":%" PRIu64 ",\"to_ms\":%" PRIu64 ",\"step_s\":%" PRId64
		",\"by\":\"%s\",\"rows\":[",
		ask->from_ms, ask->to_ms, cut->step, words[ask->by]);
	if (!ask->only_totals)
		ok = print_rows(reader, ask, cut, out);
	(void)fputs("],\"totals\":[", out);
	ok = ok && print_totals(reader, cut, out);
	(void)fputs("]}\n", out);
	return ok;
}

static int usage(struct sl_history_reader *reader, const struct sl_history_ask *ask,
	FILE *out, struct sl_error *err)
{
	struct sl_history_cut cut = sl_history_cut_of(ask);
	int r;

	if (!sl_history_cells_make(reader, cut.by_gpu) || !find_keys(reader, ask, &cut))
		return sl_history_reader_failed(reader, err);
	if (ask->only_totals) {
		/* Totals are exact with whole hours, too. */
		cut.first = cut.from;
		cut.step = cut.to - cut.from;
		cut.level = SL_HISTORY_HOURS;
	} else if (!cut.step && !choose_step(reader, ask, &cut)) {
		return sl_history_reader_failed(reader, err);
	}
	r = sl_history_cells_fill(reader, SL_HISTORY_USES, &cut, err);
	if (r == SL_HISTORY_STORE_OK && cut.by_gpu)
		r = sl_history_cells_fill(reader, SL_HISTORY_GPUS, &cut, err);
	if (r == SL_HISTORY_STORE_FULL) {
		if (ask->fault)
			*ask->fault = SL_HISTORY_FAULT_ASKED;
		return SL_HISTORY_STORE_BAD;
	}
	if (r != SL_HISTORY_STORE_OK || print_answer(reader, ask, &cut, out))
		return r;
	return sl_history_reader_failed(reader, err);
}

int sl_history_query(const char *path, const struct sl_history_ask *asked,
	uint64_t now_ms, FILE *out, struct sl_error *err)
{
	sl_cleanup(sl_history_reader_close) struct sl_history_reader reader = {0};
	struct sl_history_ask ask = *asked;
	int r;

	now_ms -= (uint64_t)(ask.ahead_s * 1000);
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
