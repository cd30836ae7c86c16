/*
 * read - see the header
 *
 * Each second is read from one level only: from hours as far as they are rolled up (or minutes are
 * deleted), then from minutes, then from seconds. The store makes levels meet at whole hours and
 * minutes. A range read in hours may begin within an hour: then its ends are read from minutes, and
 * their ends from seconds, as far as those still exist.
 *
 * Rows are in the order of time, so other workloads' rows lie between those of one workload. One
 * workload is read by a lookup for each moment at which a row may begin: those are few (10,080
 * minutes a week) and known. An index would do it too, but would have to be written for each row.
 */
#include "daemon/history/read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BUSY_MS 2000
/* SQLite instructions between two checks of the clock: some hundred microseconds. */
#define LOOK_EVERY 20000

/* Seconds that values of a row are spread over. */
static const int64_t steps[SL_HISTORY_LEVELS] = {1, 60, 3600};

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

static bool find_levels(struct sl_history_reader *reader)
{
	sqlite3_stmt *statement = NULL;
	bool ok = sqlite3_prepare_v2(reader->db,
			  "SELECT level, done, dropped FROM meta ORDER BY level", -1,
			  &statement, NULL) == SQLITE_OK;
	int r = SQLITE_DONE;

	while (ok && (r = sqlite3_step(statement)) == SQLITE_ROW) {
		int64_t done = sqlite3_column_int64(statement, 1);
		int64_t dropped = sqlite3_column_int64(statement, 2);

		switch (sqlite3_column_int64(statement, 0)) {
		case SL_HISTORY_SECONDS: reader->seconds_from = dropped; break;
		case SL_HISTORY_MINUTES:
			reader->minutes_done = done;
			reader->minutes_from = dropped;
			break;
		case SL_HISTORY_HOURS: reader->hours_done = done; break;
		default: break;
		}
	}
	ok = ok && r == SQLITE_DONE;
	(void)sqlite3_finalize(statement);
	return ok;
}

int sl_history_reader_open(struct sl_history_reader *reader, const char *path,
	const atomic_bool *cancel, struct sl_error *err)
{
	*reader = (struct sl_history_reader){
		.cancel = cancel, .give_up = sl_clock_now() + SL_HISTORY_READ_MS * SL_MS};
	(void)snprintf(reader->path, sizeof(reader->path), "%s", path);
	if (sqlite3_open_v2(path, &reader->db,
		    SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
		    NULL) != SQLITE_OK)
		return sl_history_reader_failed(reader, err);
	(void)sqlite3_busy_timeout(reader->db, BUSY_MS);
	sqlite3_progress_handler(reader->db, LOOK_EVERY, look, reader);
	if (sqlite3_exec(reader->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK ||
		!find_levels(reader))
		return sl_history_reader_failed(reader, err);
	return SL_HISTORY_STORE_OK;
}

void sl_history_reader_close(struct sl_history_reader *reader)
{
	(void)sqlite3_close(reader->db);
	reader->db = NULL;
}

/* --- rows --------------------------------------------------------------------------------- */

/* A table of the moments at which the workload's rows may begin, and one of its GPUs. */
static size_t put_moments(const struct sl_history_reader *reader,
	enum sl_history_level level, char *sql, size_t size)
{
	size_t used = (size_t)snprintf(sql, size,
		"WITH RECURSIVE moments(t) AS (SELECT ?1 UNION ALL SELECT t + %" PRId64
		" FROM moments WHERE t + %" PRId64 " < ?2), places(gpu) AS (VALUES ",
		steps[level], steps[level]);
	bool first = true;

	for (int gpu = 1; gpu < 63; gpu++) {
		if (!(reader->gpu_mask & sl_history_gpu_bit(gpu)))
			continue;
		used += (size_t)snprintf(
			sql + used, size - used, "%s(%d)", first ? "" : ",", gpu);
		first = false;
	}
	return used + (size_t)snprintf(sql + used, size - used, ") ");
}

static bool prepare(struct sl_history_reader *reader, enum sl_history_kind kind,
	enum sl_history_level level, int64_t only, sqlite3_stmt **out)
{
	const struct sl_history_columns *columns = &sl_history_columns[kind];
	bool by_moments = only && reader->gpu_mask > 0;
	char sql[4096];
	size_t used = 0;

	if (by_moments)
		used = put_moments(reader, level, sql, sizeof(sql));
	used += (size_t)snprintf(
		sql + used, sizeof(sql) - used, "SELECT r.t, span, r.gpu, workload");
	for (uint32_t i = 0; i < columns->count; i++)
		used += (size_t)snprintf(
			sql + used, sizeof(sql) - used, ", \"%s\"", columns->names[i]);
	if (by_moments)
		(void)snprintf(sql + used, sizeof(sql) - used,
			" FROM moments m CROSS JOIN places p CROSS JOIN %s r ON r.t = "
			"m.t AND r.gpu = p.gpu AND r.workload = ?3",
			sl_history_tables[kind][level]);
	else
		(void)snprintf(sql + used, sizeof(sql) - used,
			" FROM %s r WHERE t >= ?1 AND t < ?2%s ORDER BY t",
			sl_history_tables[kind][level], only ? " AND workload = ?3" : "");
	return sqlite3_prepare_v2(reader->db, sql, -1, out, NULL) == SQLITE_OK;
}

/* Rows of one level that begin before `to` and overlap [from, to). */
static int read_level(struct sl_history_reader *reader, enum sl_history_kind kind,
	enum sl_history_level level, int64_t first, int64_t from, int64_t to,
	int64_t only, sl_history_row_fn fn, void *context, bool *ended,
	struct sl_error *err)
{
	sqlite3_stmt *statement = NULL;
	struct sl_history_row row;
	int r = SQLITE_DONE;

	if (from >= to || first >= to || *ended)
		return SL_HISTORY_STORE_OK;
	/* Rows start at or after a whole minute (hour) and end within it. */
	from = from / sl_history_grains[level] * sl_history_grains[level];
	if (!prepare(reader, kind, level, only, &statement))
		return sl_history_reader_failed(reader, err);
	(void)sqlite3_bind_int64(statement, 1, from > first ? from : first);
	(void)sqlite3_bind_int64(statement, 2, to);
	if (only)
		(void)sqlite3_bind_int64(statement, 3, only);
	while (!*ended && (r = sqlite3_step(statement)) == SQLITE_ROW) {
		row.t = sqlite3_column_int64(statement, 0);
		row.span = sqlite3_column_int64(statement, 1);
		row.gpu = sqlite3_column_int64(statement, 2);
		row.workload = sqlite3_column_int64(statement, 3);
		for (uint32_t i = 0; i < sl_history_columns[kind].count; i++)
			row.value[i] = sqlite3_column_int64(statement, 4 + (int)i);
		row.reach = level == SL_HISTORY_SECONDS ? row.span : steps[level];
		*ended = row.span > 0 && !fn(context, &row);
	}
	if (!*ended && r != SQLITE_DONE) {
		int outcome = sl_history_reader_failed(reader, err);

		(void)sqlite3_finalize(statement);
		return outcome;
	}
	(void)sqlite3_finalize(statement);
	return SL_HISTORY_STORE_OK;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Reads [from, to) at one level, and elsewhere where it has no rows. */
static int read_at(struct sl_history_reader *reader, enum sl_history_kind kind,
	enum sl_history_level finest, int64_t from, int64_t to, int64_t only,
	sl_history_row_fn fn, void *context, bool *ended, struct sl_error *err)
{
	/* Where hours end and seconds begin. */
	int64_t hours_end =
		finest == SL_HISTORY_HOURS ? reader->hours_done : reader->minutes_from;
	int64_t seconds_begin = finest == SL_HISTORY_SECONDS ? reader->seconds_from
							     : reader->minutes_done;
	int r;

	if (seconds_begin < hours_end)
		seconds_begin = hours_end;
	r = read_level(reader, kind, SL_HISTORY_HOURS, 0, from, least(to, hours_end),
		only, fn, context, ended, err);
	if (r == SL_HISTORY_STORE_OK)
		r = read_level(reader, kind, SL_HISTORY_MINUTES, hours_end, from,
			least(to, seconds_begin), only, fn, context, ended, err);
	if (r == SL_HISTORY_STORE_OK)
		r = read_level(reader, kind, SL_HISTORY_SECONDS, seconds_begin, from, to,
			only, fn, context, ended, err);
	return r;
}

static int read_from(struct sl_history_reader *reader, enum sl_history_kind kind,
	enum sl_history_level level, int64_t from, int64_t to, int64_t only,
	sl_history_row_fn fn, void *context, bool *ended, struct sl_error *err)
{
	int64_t unit = steps[level], begin = (from + unit - 1) / unit * unit;
	int64_t end = to / unit * unit;
	int r = SL_HISTORY_STORE_OK;

	if (level == SL_HISTORY_SECONDS)
		return read_at(
			reader, kind, level, from, to, only, fn, context, ended, err);
	if (begin >= end)
		return read_from(
			reader, kind, level - 1, from, to, only, fn, context, ended, err);
	if (from < begin)
		r = read_from(reader, kind, level - 1, from, begin, only, fn, context,
			ended, err);
	if (r == SL_HISTORY_STORE_OK)
		r = read_at(
			reader, kind, level, begin, end, only, fn, context, ended, err);
	if (r == SL_HISTORY_STORE_OK && end < to)
		r = read_from(
			reader, kind, level - 1, end, to, only, fn, context, ended, err);
	return r;
}

int sl_history_read_rows(struct sl_history_reader *reader, enum sl_history_kind kind,
	enum sl_history_level level, int64_t from, int64_t to, int64_t only,
	sl_history_row_fn fn, void *context, struct sl_error *err)
{
	bool ended = false;

	return from < to ? read_from(reader, kind, level, from, to, only, fn, context,
				   &ended, err)
			 : SL_HISTORY_STORE_OK;
}

int64_t sl_history_part(
	const struct sl_history_row *row, uint32_t column, int64_t from, int64_t to)
{
	int64_t begin = from > row->t ? from - row->t : 0;
	int64_t end = to < row->t + row->reach ? to - row->t : row->reach;
	int64_t value = row->value[column];

	if (begin >= end)
		return 0;
	/* KiB of a large machine for an hour, times an hour, exceed 64 bits. */
	return (int64_t)((__int128)value * end / row->reach -
			 (__int128)value * begin / row->reach);
}
