/*
 * read - see the header
 *
 * Rows are in the order of time, so other workloads' rows lie between those of one workload. One
 * workload is read by a lookup for each GPU and moment at which a row may begin: those are few
 * (10,080 minutes a week) and known. An index would do it too, but would have to be written for
 * each row.
 */
#include "daemon/history/read.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

#define BUSY_MS 2000
/* SQLite instructions between two checks of the clock: some hundred microseconds. */
#define LOOK_EVERY 20000
/* Most pages of cells, 4 KiB each: 100,000 rows with long names. */
#define PAGES_MOST 16384

static int look(void *context)
{
	const struct sl_history_reader *reader = context;

	return (reader->cancel && atomic_load(reader->cancel)) ||
	       sl_clock_now() >= reader->give_up;
}

int sl_history_reader_failed(struct sl_history_reader *reader, struct sl_error *err)
{
	int code = reader->db ? sqlite3_errcode(reader->db) : SQLITE_NOMEM;

	if ((code & 0xff) == SQLITE_INTERRUPT) {
		sl_error_set(err,
			"reading the history took longer than %d s; ask for less of it: "
			"a shorter time, or longer steps",
			SL_HISTORY_READ_MS / 1000);
		return SL_HISTORY_STORE_BUSY;
	}
	sl_error_set(err, "cannot read the history in %.200s: %.150s", reader->path,
		reader->db ? sqlite3_errmsg(reader->db) : "no memory");
	switch (code & 0xff) {
	case SQLITE_BUSY: return SL_HISTORY_STORE_BUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB: return SL_HISTORY_STORE_DAMAGED;
	default: return SL_HISTORY_STORE_BAD;
	}
}

void sl_history_statement_end(sqlite3_stmt **statement)
{
	(void)sqlite3_finalize(*statement);
	*statement = NULL;
}

static bool run(struct sl_history_reader *reader, char *sql)
{
	bool ok = sql && sqlite3_exec(reader->db, sql, NULL, NULL, NULL) == SQLITE_OK;

	sqlite3_free(sql);
	return ok;
}

bool sl_history_reader_run(struct sl_history_reader *reader, const char *format, ...)
{
	va_list args;
	char *sql;

	va_start(args, format);
	sql = sqlite3_vmprintf(format, args);
	va_end(args);
	return run(reader, sql);
}

sqlite3_stmt *sl_history_reader_ask(
	struct sl_history_reader *reader, const char *format, ...)
{
	sqlite3_stmt *statement = NULL;
	va_list args;
	char *sql;

	va_start(args, format);
	sql = sqlite3_vmprintf(format, args);
	va_end(args);
	if (sql)
		(void)sqlite3_prepare_v2(reader->db, sql, -1, &statement, NULL);
	sqlite3_free(sql);
	return statement;
}

/* --- levels ------------------------------------------------------------------------------- */

/* A level begins with the unit of its first row; one without rows begins where the next coarser one
 * ends. */
static bool find_levels(struct sl_history_reader *reader)
{
	sl_cleanup(sl_history_statement_end) sqlite3_stmt *statement =
		sl_history_reader_ask(reader,
			"WITH d(minutes, hours) AS (SELECT sum(done * (level = 1)), "
			"sum(done * (level = 2)) FROM meta) SELECT minutes, hours, "
			"(SELECT "
			"ifnull(min(t) / 60 * 60, minutes) FROM (SELECT min(t) AS t FROM "
			"seconds UNION SELECT min(t) FROM gpu_seconds)), (SELECT "
			"ifnull(min(t) / 3600 * 3600, hours) FROM (SELECT min(t) AS t "
			"FROM "
			"minutes UNION SELECT min(t) FROM gpu_minutes)) FROM d");

	if (!statement || sqlite3_step(statement) != SQLITE_ROW)
		return false;
	reader->done[SL_HISTORY_MINUTES] = sqlite3_column_int64(statement, 0);
	reader->done[SL_HISTORY_HOURS] = sqlite3_column_int64(statement, 1);
	reader->from[SL_HISTORY_SECONDS] = sqlite3_column_int64(statement, 2);
	reader->from[SL_HISTORY_MINUTES] = sqlite3_column_int64(statement, 3);
	return true;
}

int sl_history_reader_open(struct sl_history_reader *reader, const char *path,
	const atomic_bool *cancel, struct sl_error *err)
{
	*reader = (struct sl_history_reader){
		.cancel = cancel, .give_up = sl_clock_now() + SL_HISTORY_READ_MS * SL_MS};
	(void)sl_wire_str(reader->path, sizeof(reader->path), path);
	if (sqlite3_open_v2(path, &reader->db,
		    SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
		    NULL) != SQLITE_OK)
		return sl_history_reader_failed(reader, err);
	(void)sqlite3_busy_timeout(reader->db, BUSY_MS);
	sqlite3_progress_handler(reader->db, LOOK_EVERY, look, reader);
	if (!sl_history_reader_run(reader, "PRAGMA temp_store = MEMORY; BEGIN") ||
		!find_levels(reader))
		return sl_history_reader_failed(reader, err);
	return SL_HISTORY_STORE_OK;
}

void sl_history_reader_close(struct sl_history_reader *reader)
{
	(void)sqlite3_close(reader->db);
	reader->db = NULL;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t largest(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Adds the parts of [from, to) that `at` and finer levels answer. */
static size_t divide(const struct sl_history_reader *reader, enum sl_history_level finest,
	enum sl_history_level at, int64_t from, int64_t to, struct sl_history_part *out)
{
	int64_t unit = sl_history_grains[at], begin = from, end = from;
	size_t count = 0;

	if (from >= to)
		return 0;
	if (at == SL_HISTORY_SECONDS) {
		*out = (struct sl_history_part){at, from, to};
		return 1;
	}
	if (at <= finest) {
		begin = (from + unit - 1) / unit * unit;
		end = least(to, reader->done[at]) / unit * unit;
	}
	/* The next level no longer has what is older. */
	if (from < reader->from[at - 1]) {
		begin = from;
		end = largest(end, least(to, reader->from[at - 1]));
	}
	if (begin >= end)
		return divide(reader, finest, at - 1, from, to, out);
	count = divide(reader, finest, at - 1, from, begin, out);
	out[count++] = (struct sl_history_part){at, begin, end};
	return count + divide(reader, finest, at - 1, end, to, out + count);
}

size_t sl_history_parts(const struct sl_history_reader *reader,
	enum sl_history_level level, int64_t from, int64_t to,
	struct sl_history_part out[SL_HISTORY_PARTS_MAX])
{
	return divide(reader, level, SL_HISTORY_HOURS, from, to, out);
}

/* --- cells -------------------------------------------------------------------------------- */

bool sl_history_cells_make(struct sl_history_reader *reader, bool by_gpu)
{
	sqlite3_str *sql = sqlite3_str_new(reader->db);

	sqlite3_str_appendf(sql,
		"PRAGMA temp.max_page_count = %d; CREATE TEMP TABLE n (i INTEGER PRIMARY "
		"KEY); CREATE TEMP TABLE keys (id INTEGER PRIMARY KEY, key TEXT, name "
		"TEXT, begun INTEGER, ended INTEGER); CREATE TEMP TABLE cells (s "
		"INTEGER, "
		"key TEXT, name TEXT, covered INTEGER DEFAULT 0",
		PAGES_MOST);
	sl_history_sql_columns(sql, SL_HISTORY_USES, ", \"%s\" INTEGER DEFAULT 0",
		", \"%s\" INTEGER DEFAULT 0");
	if (by_gpu)
		sl_history_sql_columns(sql, SL_HISTORY_GPUS,
			", \"gpu_%s\" INTEGER DEFAULT 0",
			", \"gpu_%s\" INTEGER DEFAULT 0");
	sqlite3_str_appendall(sql, ", PRIMARY KEY (s, key)) WITHOUT ROWID");
	return run(reader, sqlite3_str_finish(sql));
}

/* Rows of a part, with lo and hi: where they begin and end in it. */
static void put_source(sqlite3_str *sql, enum sl_history_kind kind,
	const struct sl_history_cut *cut, const struct sl_history_part *part)
{
	static const char *const reaches[] = {"r.span", "60", "3600"};
	static const int units[] = {1, 60, 3600};
	const char *reach = reaches[part->level];
	const char *table = sl_history_tables[kind][part->level];
	/* A row lies within a minute (hour). */
	int64_t grain = sl_history_grains[part->level];
	long long first = part->from / grain * grain;

	if (cut->only)
		sqlite3_str_appendf(sql,
			"WITH RECURSIVE m(t) AS (SELECT %lld UNION ALL SELECT t + %d "
			"FROM m "
			"WHERE t + %d < %lld) ",
			first, units[part->level], units[part->level],
			(long long)part->to);
	sqlite3_str_appendf(sql,
		"SELECT r.*, %s AS reach, max(r.t, %lld) AS lo, min(r.t + %s, %lld) AS "
		"hi "
		"FROM ",
		reach, (long long)part->from, reach, (long long)part->to);
	if (cut->only)
		sqlite3_str_appendf(sql,
			"m CROSS JOIN gpus g CROSS JOIN %s r ON r.t = m.t AND r.gpu = "
			"g.id "
			"AND r.workload = %lld WHERE",
			table, (long long)cut->only);
	else
		sqlite3_str_appendf(sql, "%s r WHERE r.t >= %lld AND r.t < %lld AND",
			table, first, (long long)part->to);
	sqlite3_str_appendf(
		sql, " r.span > 0 AND r.t + %s > %lld", reach, (long long)part->from);
}

/* Whether each row of the part lies within it and within one step. */
static bool is_whole(const struct sl_history_cut *cut, const struct sl_history_part *part)
{
	int64_t grain = sl_history_grains[part->level];

	return cut->first % grain == 0 && cut->step % grain == 0 &&
	       part->from % grain == 0 && part->to % grain == 0;
}

/* Rows that lie within one step each. */
static void put_whole(sqlite3_str *sql, enum sl_history_kind kind,
	const struct sl_history_cut *cut, const struct sl_history_part *part)
{
	sqlite3_str_appendf(sql, ") SELECT (lo - %lld) / %lld, key, name, hi - lo",
		(long long)cut->first, (long long)cut->step);
	sl_history_sql_columns(sql, kind, ", \"%s\"", ", \"%s\"");
	sqlite3_str_appendall(sql, " FROM (");
	put_source(sql, kind, cut, part);
	sqlite3_str_appendall(sql, ") CROSS JOIN keys");
}

/* Splits a row into one for each step that it spans, each with its part. LIMIT -1 has SQLite
 * compute the columns of a subquery once, and not wherever they are used. */
static void put_pieces(sqlite3_str *sql, enum sl_history_kind kind,
	const struct sl_history_cut *cut, const struct sl_history_part *part)
{
	long long first = cut->first, step = cut->step;

	sqlite3_str_appendall(sql, ") SELECT s, key, name, q - p");
	sl_history_sql_columns(
		sql, kind, ", \"%s\" * q / reach - \"%s\" * p / reach", ", \"%s\"");
	sqlite3_str_appendf(sql,
		" FROM (SELECT *, max(lo, %lld + s * %lld) - t AS p, min(hi, %lld + (s + "
		"1) * %lld) - t AS q FROM (SELECT *, (lo - %lld) / %lld + i AS s FROM (",
		first, step, first, step, first, step);
	put_source(sql, kind, cut, part);
	sqlite3_str_appendf(sql,
		" LIMIT -1) CROSS JOIN n ON n.i <= (hi - 1 - %lld) / %lld - (lo - %lld) "
		"/ "
		"%lld LIMIT -1) LIMIT -1) CROSS JOIN keys",
		first, step, first, step);
}

static bool fill_part(struct sl_history_reader *reader, enum sl_history_kind kind,
	const struct sl_history_cut *cut, const struct sl_history_part *part)
{
	bool is_use = kind == SL_HISTORY_USES;
	const char *name = is_use ? ", \"%s\"" : ", \"gpu_%s\"";
	sqlite3_str *sql = sqlite3_str_new(reader->db);

	sqlite3_str_appendall(sql, "INSERT INTO cells (s, key, name, covered");
	sl_history_sql_columns(sql, kind, name, name);
	(is_whole(cut, part) ? put_whole : put_pieces)(sql, kind, cut, part);
	sqlite3_str_appendf(sql,
		" ON keys.id = %s WHERE true ON CONFLICT (s, key) DO UPDATE SET covered "
		"= "
		"covered + excluded.covered",
		cut->by_gpu || cut->only ? "gpu" : "workload");
	sl_history_sql_columns(sql, kind,
		is_use ? ", \"%s\" = \"%s\" + excluded.\"%s\""
		       : ", \"gpu_%s\" = \"gpu_%s\" + excluded.\"gpu_%s\"",
		is_use ? ", \"%s\" = max(\"%s\", excluded.\"%s\")"
		       : ", \"gpu_%s\" = max(\"gpu_%s\", excluded.\"gpu_%s\")");
	return run(reader, sqlite3_str_finish(sql));
}

/* Whether there are more than `most`; also if SQLite ran out of pages for them. */
static bool are_too_many(
	struct sl_history_reader *reader, const struct sl_history_cut *cut, bool *ok)
{
	sl_cleanup(sl_history_statement_end) sqlite3_stmt *statement = NULL;

	if (!*ok)
		return (sqlite3_errcode(reader->db) & 0xff) == SQLITE_FULL;
	statement = sl_history_reader_ask(reader, "SELECT count(*) FROM cells");
	*ok = statement && sqlite3_step(statement) == SQLITE_ROW;
	return *ok && (uint64_t)sqlite3_column_int64(statement, 0) > cut->most;
}

int sl_history_cells_fill(struct sl_history_reader *reader, enum sl_history_kind kind,
	const struct sl_history_cut *cut, struct sl_error *err)
{
	struct sl_history_part parts[SL_HISTORY_PARTS_MAX];
	size_t count = sl_history_parts(reader, cut->level, cut->from, cut->to, parts);
	/* A row may be about all of an hour. */
	uint64_t most = sl_max_u64(cut->steps, 3600 / (uint64_t)cut->step + 2);
	bool ok = sl_history_reader_run(reader,
		"INSERT OR IGNORE INTO n WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL "
		"SELECT i + 1 FROM c WHERE i < %" PRIu64 ") SELECT i FROM c",
		most);

	for (size_t i = 0; ok && i < count; i++) {
		ok = fill_part(reader, kind, cut, &parts[i]);
		if (!are_too_many(reader, cut, &ok))
			continue;
		sl_error_set(err,
			"that would be more than %" PRIu64 " rows; ask for longer steps, "
			"a shorter time, or one name",
			cut->most);
		return SL_HISTORY_STORE_FULL;
	}
	return ok ? SL_HISTORY_STORE_OK : sl_history_reader_failed(reader, err);
}

/* --- printing ----------------------------------------------------------------------------- */

/* Quotes the text, and marks it with ' if a spreadsheet would read it as a formula. */
static void print_csv_text(FILE *out, const char *text)
{
	char tame[128];

	sl_wire_str(tame, sizeof(tame), text);
	sl_text_tame(tame);
	(void)fputs(tame[0] && strchr("=+-@", tame[0]) ? "\"'" : "\"", out);
	for (const char *c = tame; *c; c++) {
		if (*c == '"')
			(void)fputc('"', out);
		(void)fputc(*c, out);
	}
	(void)fputc('"', out);
}

static void print_value(sqlite3_stmt *statement, int column, bool csv, FILE *out)
{
	const char *text = (const char *)sqlite3_column_text(statement, column);
	json_t *string;

	switch (sqlite3_column_type(statement, column)) {
	case SQLITE_NULL: (void)fputs(csv ? "" : "null", out); return;
	case SQLITE_INTEGER: (void)fputs(text, out); return;
	case SQLITE_FLOAT:
		(void)fprintf(out, "%.6f", sqlite3_column_double(statement, column));
		return;
	default: break;
	}
	if (csv) {
		print_csv_text(out, text);
		return;
	}
	string = sl_text_json(text);
	if (string)
		(void)json_dumpf(string, out, JSON_ENCODE_ANY);
	else
		(void)fputs("null", out);
	json_decref(string);
}

void sl_history_print_members(sqlite3_stmt *statement, int columns, FILE *out)
{
	for (int i = 0; i < columns; i++) {
		(void)fprintf(out, "%s\"%s\":", i ? "," : "",
			sqlite3_column_name(statement, i));
		print_value(statement, i, false, out);
	}
}

static void print_csv(sqlite3_stmt *statement, bool is_head, FILE *out)
{
	for (int i = 0; i < sqlite3_column_count(statement); i++) {
		(void)fputs(i ? "," : "", out);
		if (is_head)
			(void)fputs(sqlite3_column_name(statement, i), out);
		else
			print_value(statement, i, true, out);
	}
	(void)fputc('\n', out);
}

bool sl_history_print_rows(sqlite3_stmt *statement, bool csv, FILE *out)
{
	int r = SQLITE_ERROR;
	bool any = false;

	if (statement && csv)
		print_csv(statement, true, out);
	while (statement && (r = sqlite3_step(statement)) == SQLITE_ROW) {
		if (csv) {
			print_csv(statement, false, out);
			continue;
		}
		(void)fputs(any ? ",\n{" : "{", out);
		sl_history_print_members(statement, sqlite3_column_count(statement), out);
		(void)fputc('}', out);
		any = true;
	}
	(void)sqlite3_finalize(statement);
	return r == SQLITE_DONE;
}
