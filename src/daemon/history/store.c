/*
 * store - see the header
 *
 * history/tables.c has the tables, history/tidy.c what happens to rows later.
 */
#include "daemon/history/store_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/paths.h"
#include "policy/words/reason.h"

/* How long to wait for another process' lock; only the scribe waits. */
#define BUSY_MS 1000
/* Number of damaged files that are kept. */
#define DAMAGED_KEPT 3
/* Longest check for damage. */
#define CHECK_S 20

/* --- SQLite ------------------------------------------------------------------------------- */

static int failed(struct sl_history_store *store, const char *what, struct sl_error *err)
{
	int code = store->db ? sqlite3_errcode(store->db) : SQLITE_NOMEM;
	const char *said = store->db ? sqlite3_errmsg(store->db) : "no memory";
	int outcome;
	const char *remedy;

	switch (code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		outcome = SL_HISTORY_STORE_BUSY;
		remedy = "another program has it open for writing; end that one";
		break;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		outcome = SL_HISTORY_STORE_DAMAGED;
		remedy = "it is damaged";
		break;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_CANTOPEN:
		outcome = SL_HISTORY_STORE_FULL;
		remedy = "let sluiced's user write there, choose another folder with "
			 "data_dir, "
			 "or switch the history off (history: no)";
		break;
	case SQLITE_FULL:
		outcome = SL_HISTORY_STORE_FULL;
		remedy = "make room on the disk, or lower history_size";
		break;
	default:
		outcome = SL_HISTORY_STORE_FULL;
		remedy = "look at the disk";
		break;
	}
	sl_error_set(err, "cannot %s the history in %.200s: %.120s; %s", what,
		store->path, said, remedy);
	return outcome;
}

bool sl_history_sql_take(struct sl_history_store *store, sqlite3_str *text)
{
	char *sql = sqlite3_str_finish(text);
	bool ok = sql && sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK;

	sqlite3_free(sql);
	return ok;
}

bool sl_history_sql(struct sl_history_store *store, const char *format, ...)
{
	sqlite3_str *text = sqlite3_str_new(store->db);
	va_list args;

	va_start(args, format);
	sqlite3_str_vappendf(text, format, args);
	va_end(args);
	return sl_history_sql_take(store, text);
}

/* A failed ROLLBACK shows when the next transaction cannot begin. */
static int undo(struct sl_history_store *store, const char *what, struct sl_error *err)
{
	int r = failed(store, what, err);

	(void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}

static void statement_end(sqlite3_stmt **statement)
{
	(void)sqlite3_finalize(*statement);
	*statement = NULL;
}

bool sl_history_sql_ask(
	struct sl_history_store *store, int64_t *out, const char *format, ...)
{
	sl_cleanup(statement_end) sqlite3_stmt *statement = NULL;
	va_list args;
	char *sql;
	bool ok;

	va_start(args, format);
	sql = sqlite3_vmprintf(format, args);
	va_end(args);
	ok = sql && sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) == SQLITE_OK;
	sqlite3_free(sql);
	if (!ok || sqlite3_step(statement) != SQLITE_ROW)
		return false;
	*out = sqlite3_column_int64(statement, 0);
	return true;
}

/* --- opening ---------------------------------------------------------------------------- */

static int look_at_tables(struct sl_history_store *store, struct sl_error *err)
{
	bool is_other = false;

	if (!sl_history_tables_look(store, &is_other))
		return undo(store, "open", err);
	if (!is_other)
		return SL_HISTORY_STORE_OK;
	sl_error_set(err, "the history in %.200s is of another version of sluiced",
		store->path);
	return SL_HISTORY_STORE_OTHER;
}

/* Prepares an INSERT into the table with count values. */
static bool prepare(struct sl_history_store *store, enum sl_history_statement which,
	const char *what, uint32_t count)
{
	sqlite3_str *text = sqlite3_str_new(store->db);
	bool ok;
	char *sql;

	sqlite3_str_appendf(text, "INSERT OR %s VALUES (?", what);
	for (uint32_t i = 1; i < count; i++)
		sqlite3_str_appendall(text, ", ?");
	sqlite3_str_appendall(text, ")");
	sql = sqlite3_str_finish(text);
	ok = sql && sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
			    &store->statements[which], NULL) == SQLITE_OK;
	sqlite3_free(sql);
	return ok;
}

static int set_up(struct sl_history_store *store, struct sl_error *err)
{
	int r;

	(void)sqlite3_busy_timeout(store->db, BUSY_MS);
	r = look_at_tables(store, err);
	if (r != SL_HISTORY_STORE_OK)
		return r;
	/* NORMAL: a crash of the machine may cost the last seconds, never the database. */
	if (!sl_history_sql(store, "PRAGMA journal_mode = WAL; PRAGMA synchronous = "
				   "NORMAL; PRAGMA journal_size_limit = 16777216") ||
		!prepare(store, PUT_USE, "REPLACE INTO seconds",
			4 + SL_HISTORY_USE_COLUMNS) ||
		!prepare(store, PUT_GPU_ROW, "REPLACE INTO gpu_seconds",
			4 + SL_HISTORY_GPU_COLUMNS) ||
		!prepare(store, PUT_GPU, "REPLACE INTO gpus", 3) ||
		!prepare(store, PUT_WORKLOAD, "REPLACE INTO workloads", 14) ||
		!prepare(store, PUT_EVENT, "IGNORE INTO events", 15))
		return failed(store, "open", err);
	return SL_HISTORY_STORE_OK;
}

/* The file is for the daemon's user only: the daemon decides what other users may see. SQLite gives
 * its other files the same mode. An error here is not reported, because SQLite meets it, too, when
 * it opens the file. */
static void shut_to_others(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	sl_closep(&fd);
}

int sl_history_store_open(
	const char *path, struct sl_history_store **out, struct sl_error *err)
{
	struct sl_history_store *store = calloc(1, sizeof(*store));
	int r;

	if (!store) {
		sl_error_set(err, "no memory for the history");
		return SL_HISTORY_STORE_FULL;
	}
	store->victim = -1;
	(void)snprintf(store->path, sizeof(store->path), "%s", path);
	shut_to_others(path);
	if (sqlite3_open_v2(path, &store->db,
		    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
			    SQLITE_OPEN_EXRESCODE,
		    NULL) != SQLITE_OK)
		r = failed(store, "open", err);
	else
		r = set_up(store, err);
	if (r != SL_HISTORY_STORE_OK)
		store = sl_history_store_close(store);
	*out = store;
	return r;
}

struct sl_history_store *sl_history_store_close(struct sl_history_store *store)
{
	if (!store)
		return NULL;
	for (int i = 0; i < STATEMENTS; i++)
		statement_end(&store->statements[i]);
	(void)sqlite3_close(store->db);
	free(store);
	return NULL;
}

/* Damaged files are kept for repair, but only the newest few. Their names sort by date. */
static int is_damaged(const struct dirent *entry)
{
	const char *mark = ".damaged-";
	const char *at = strstr(entry->d_name, mark);
	size_t length = strlen(entry->d_name);

	return at == entry->d_name + strlen(SL_HISTORY_FILE) &&
	       strncmp(entry->d_name, SL_HISTORY_FILE, strlen(SL_HISTORY_FILE)) == 0 &&
	       entry->d_name[length - 1] == 'Z';
}

static void let_go_damaged(const char *path)
{
	static const char *const suffixes[] = {"-wal", "-shm", ""};
	char folder[SL_PATH_MAX], name[SL_PATH_MAX * 2];
	struct dirent **all = NULL;
	int count;

	(void)snprintf(folder, sizeof(folder), "%s", path);
	if (strrchr(folder, '/'))
		*strrchr(folder, '/') = '\0';
	count = scandir(folder, &all, is_damaged, alphasort);
	for (int i = 0; i < count; i++) {
		for (size_t s = 0; i + DAMAGED_KEPT < count && s < SL_ARRAY_LEN(suffixes);
			s++) {
			(void)snprintf(name, sizeof(name), "%s/%s%s", folder,
				all[i]->d_name, suffixes[s]);
			(void)unlink(name);
		}
		free(all[i]);
	}
	free(all);
}

int sl_history_store_set_aside(
	const char *path, int outcome, time_t now, struct sl_error *err)
{
	static const char *const suffixes[] = {"-wal", "-shm", ""};
	bool is_other = outcome == SL_HISTORY_STORE_OTHER;
	const char *what = is_other ? "of another version of sluiced" : "damaged";
	char from[SL_PATH_MAX + 8], to[SL_PATH_MAX + 48], date[32] = "";
	struct tm tm;

	if (gmtime_r(&now, &tm))
		(void)strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", &tm);
	for (size_t i = 0; i < SL_ARRAY_LEN(suffixes); i++) {
		(void)snprintf(from, sizeof(from), "%s%s", path, suffixes[i]);
		(void)snprintf(to, sizeof(to), "%s.%s-%s%s", path,
			is_other ? "other" : "damaged", date, suffixes[i]);
		if (rename(from, to) < 0 && (errno != ENOENT || !suffixes[i][0])) {
			int r = -errno;

			sl_error_set(err,
				"the history in %.200s is %s and cannot be moved away "
				"(%s); move it away by hand and restart sluiced",
				path, what, strerror(errno));
			return sl_err_origin(r);
		}
	}
	let_go_damaged(path);
	sl_error_set(err,
		"the history in %.200s was %s; it was moved to %.250s, and a new one "
		"begun",
		path, what, strrchr(to, '/') ? strrchr(to, '/') + 1 : to);
	return 0;
}

/* --- what it has -------------------------------------------------------------------------- */

void *sl_history_grow(void *all, size_t count, size_t *room, size_t size)
{
	size_t more = count < *room ? *room : sl_max_u64(32, *room * 2);
	void *grown = count < *room ? all : realloc(all, more * size);

	if (grown)
		*room = more;
	return grown;
}

void sl_history_take_text(sqlite3_stmt *statement, int column, char *out, size_t size)
{
	const unsigned char *text = sqlite3_column_text(statement, column);

	sl_wire_str(out, size, text ? (const char *)text : "");
}

static bool read_gpus(struct sl_history_store *store, struct sl_history_known *out)
{
	sl_cleanup(statement_end) sqlite3_stmt *statement = NULL;
	size_t room = 0;
	int r;

	if (sqlite3_prepare_v2(store->db, "SELECT id, uuid, name FROM gpus ORDER BY id",
		    -1, &statement, NULL) != SQLITE_OK)
		return false;
	while ((r = sqlite3_step(statement)) == SQLITE_ROW) {
		struct sl_history_gpu *all =
			sl_history_grow(out->gpus, out->gpu_count, &room, sizeof(*all));

		if (!all)
			return false;
		out->gpus = all;
		all += out->gpu_count++;
		all->id = sqlite3_column_int64(statement, 0);
		sl_history_take_text(statement, 1, all->uuid, sizeof(all->uuid));
		sl_history_take_text(statement, 2, all->name, sizeof(all->name));
	}
	return r == SQLITE_DONE;
}

/* What tells a workload from another one. */
static bool read_living(struct sl_history_store *store, struct sl_history_known *out)
{
	sl_cleanup(statement_end) sqlite3_stmt *statement = NULL;
	size_t room = 0;
	int r;

	if (sqlite3_prepare_v2(store->db,
		    "SELECT id, number, uid, pid, gpus, begun_ms FROM workloads WHERE "
		    "ended_ms = 0",
		    -1, &statement, NULL) != SQLITE_OK)
		return false;
	while ((r = sqlite3_step(statement)) == SQLITE_ROW) {
		struct sl_history_workload *all = sl_history_grow(
			out->living, out->living_count, &room, sizeof(*all));

		if (!all)
			return false;
		out->living = all;
		all[out->living_count++] = (struct sl_history_workload){
			.id = sqlite3_column_int64(statement, 0),
			.number = (uint64_t)sqlite3_column_int64(statement, 1),
			.uid = (uint32_t)sqlite3_column_int64(statement, 2),
			.pid = (uint32_t)sqlite3_column_int64(statement, 3),
			.gpus = (uint32_t)sqlite3_column_int64(statement, 4),
			.begun_ms = (uint64_t)sqlite3_column_int64(statement, 5),
		};
	}
	return r == SQLITE_DONE;
}

int sl_history_store_known(struct sl_history_store *store, struct sl_history_known *out,
	struct sl_error *err)
{
	/* The last row begins last, but one that began up to 60 s earlier may end later. */
	static const char end[] =
		"SELECT max((SELECT max(done) FROM meta), (SELECT ifnull(max(t + span), "
		"0) FROM seconds WHERE t >= (SELECT max(t) - 60 FROM seconds)), (SELECT "
		"ifnull(max(t + span), 0) FROM gpu_seconds WHERE t >= (SELECT max(t) - "
		"60 FROM gpu_seconds)))";
	int64_t serial = 0;

	*out = (struct sl_history_known){0};
	if (sl_history_sql_ask(store, &out->end, end) &&
		sl_history_sql_ask(store, &out->gpu_id, "SELECT max(id) FROM gpus") &&
		sl_history_sql_ask(
			store, &out->workload_id, "SELECT max(id) FROM workloads") &&
		sl_history_sql_ask(store, &serial, "SELECT max(serial) FROM events") &&
		read_gpus(store, out) && read_living(store, out)) {
		out->event_serial = (uint64_t)serial;
		return SL_HISTORY_STORE_OK;
	}
	free(out->gpus);
	free(out->living);
	*out = (struct sl_history_known){0};
	return failed(store, "read", err);
}

int sl_history_store_events_before(
	struct sl_history_store *store, uint64_t first, struct sl_error *err)
{
	/* Shifts them all by the same amount. The few without room below are deleted. */
	if (sl_history_sql(store,
		    "BEGIN IMMEDIATE; UPDATE OR IGNORE events SET serial = serial - "
		    "(SELECT max(serial) FROM events) + %" PRId64
		    " WHERE serial >= %" PRId64 "; DELETE FROM events WHERE serial >= "
		    "%" PRId64 "; COMMIT",
		    (int64_t)first - 1, (int64_t)first, (int64_t)first))
		return SL_HISTORY_STORE_OK;
	return undo(store, "write", err);
}

/* --- writing ------------------------------------------------------------------------------ */

static bool step(sqlite3_stmt *statement)
{
	int r = sqlite3_step(statement);

	/* reset only repeats the outcome of the step. */
	(void)sqlite3_reset(statement);
	return r == SQLITE_DONE;
}

static bool put_rows(struct sl_history_store *store, enum sl_history_kind kind,
	const struct sl_history_row *rows, size_t count)
{
	sqlite3_stmt *statement =
		store->statements[kind == SL_HISTORY_USES ? PUT_USE : PUT_GPU_ROW];

	for (size_t i = 0; i < count; i++) {
		int at = 1;

		(void)sqlite3_bind_int64(statement, at++, rows[i].t);
		(void)sqlite3_bind_int64(statement, at++, rows[i].gpu);
		(void)sqlite3_bind_int64(statement, at++, rows[i].workload);
		(void)sqlite3_bind_int64(statement, at++, rows[i].span);
		for (uint32_t c = 0; c < sl_history_columns[kind].count; c++)
			(void)sqlite3_bind_int64(statement, at++, rows[i].value[c]);
		if (!step(statement))
			return false;
	}
	return true;
}

/* Writes a row; types has a letter for each value: i for int64_t, t for a text. */
static bool put(sqlite3_stmt *statement, const char *types, ...)
{
	va_list args;

	va_start(args, types);
	for (int at = 1; types[at - 1]; at++) {
		if (types[at - 1] == 'i')
			(void)sqlite3_bind_int64(statement, at, va_arg(args, int64_t));
		else
			(void)sqlite3_bind_text(statement, at, va_arg(args, const char *),
				-1, SQLITE_STATIC);
	}
	va_end(args);
	return step(statement);
}

#define INT(value) ((int64_t)(value))

static bool put_workload(
	struct sl_history_store *store, const struct sl_history_workload *row)
{
	return put(store->statements[PUT_WORKLOAD],
		"iititttt"
		"iiiiii",
		row->id, INT(row->number), row->name, INT(row->uid), row->user,
		row->project, row->program, row->command, INT(row->pid), INT(row->gpus),
		INT(row->priority), INT(row->observed), INT(row->begun_ms),
		INT(row->ended_ms));
}

static bool put_event(struct sl_history_store *store, const struct sl_msg_event_row *row)
{
	return put(store->statements[PUT_EVENT],
		"iit"
		"iiiiiiiiii"
		"tt",
		INT(row->serial), INT(row->realtime_ms), sl_reason_name(row->reason),
		INT(row->gpu), INT(row->workload), INT(row->other), INT(row->bytes),
		INT(row->available_bytes), INT(row->other_bytes), INT(row->span_ms),
		INT(row->pid), INT(row->uid), INT(row->lost), row->name, row->other_name);
}

static bool put_batch(
	struct sl_history_store *store, const struct sl_history_batch *batch)
{
	if (batch->living_end && !sl_history_sql(store,
					 "UPDATE workloads SET ended_ms = max(%" PRId64
					 ", begun_ms + 1) WHERE ended_ms = 0",
					 batch->living_end * 1000))
		return false;
	for (size_t i = 0; i < batch->gpu_count; i++) {
		if (!put(store->statements[PUT_GPU], "itt", batch->gpus[i].id,
			    batch->gpus[i].uuid, batch->gpus[i].name))
			return false;
	}
	for (size_t i = 0; i < batch->workload_count; i++) {
		if (!put_workload(store, &batch->workloads[i]))
			return false;
	}
	for (size_t i = 0; i < batch->event_count; i++) {
		if (!put_event(store, &batch->events[i]))
			return false;
	}
	return put_rows(store, SL_HISTORY_USES, batch->rows[SL_HISTORY_USES],
		       batch->row_count[SL_HISTORY_USES]) &&
	       put_rows(store, SL_HISTORY_GPUS, batch->rows[SL_HISTORY_GPUS],
		       batch->row_count[SL_HISTORY_GPUS]);
}

/* --- all of it ---------------------------------------------------------------------------- */

int sl_history_store_write(struct sl_history_store *store,
	const struct sl_history_batch *batch, int64_t now,
	const struct sl_history_keep *keep, struct sl_error *err)
{
	if (!sl_history_sql(store, "BEGIN IMMEDIATE"))
		return failed(store, "write", err);
	if (put_batch(store, batch) && sl_history_tidy(store, now, keep) &&
		sl_history_sql(store, "COMMIT"))
		return SL_HISTORY_STORE_OK;
	return undo(store, "write", err);
}

/* --- care --------------------------------------------------------------------------------- */

static int look_at_time(void *context)
{
	return sl_clock_now() >= *(const sl_ns *)context;
}

int sl_history_store_check(struct sl_history_store *store, struct sl_error *err)
{
	sl_cleanup(statement_end) sqlite3_stmt *statement = NULL;
	sl_ns end = sl_clock_now() + CHECK_S * SL_S;
	const char *said = NULL;
	bool ok;

	sqlite3_progress_handler(store->db, 20000, look_at_time, &end);
	if (sqlite3_prepare_v2(store->db, "PRAGMA quick_check(1)", -1, &statement,
		    NULL) == SQLITE_OK &&
		sqlite3_step(statement) == SQLITE_ROW)
		said = (const char *)sqlite3_column_text(statement, 0);
	sqlite3_progress_handler(store->db, 0, NULL, NULL);
	ok = said && strcmp(said, "ok") == 0;
	if (!ok)
		sl_error_set(err, "the history in %.200s is damaged: %.120s", store->path,
			said ? said : sqlite3_errmsg(store->db));
	return ok ? SL_HISTORY_STORE_OK : SL_HISTORY_STORE_DAMAGED;
}

uint64_t sl_history_store_wal_bytes(const struct sl_history_store *store)
{
	char path[SL_PATH_MAX + 8];
	struct stat stat_buf;

	(void)snprintf(path, sizeof(path), "%s-wal", store->path);
	return stat(path, &stat_buf) == 0 ? (uint64_t)stat_buf.st_size : 0;
}

bool sl_history_store_checkpoint(struct sl_history_store *store, int patience_ms)
{
	bool ok;

	(void)sqlite3_busy_timeout(store->db, patience_ms);
	ok = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
		     NULL) == SQLITE_OK;
	(void)sqlite3_busy_timeout(store->db, BUSY_MS);
	return ok;
}

uint64_t sl_history_store_bytes(struct sl_history_store *store)
{
	int64_t bytes = 0;

	if (!sl_history_sql_ask(store, &bytes,
		    "SELECT (page_count - freelist_count) * page_size FROM "
		    "pragma_page_count, pragma_freelist_count, pragma_page_size"))
		return 0;
	return (uint64_t)bytes;
}
