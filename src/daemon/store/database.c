/*
 * database - see the header
 *
 * One table per kind: number, text, checksum. The checksum finds damage within a record; SQLite's
 * own check finds damage between records, which could hide a record.
 */
#include "daemon/store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/step.h"
#include "daemon/store/record.h"

/* Version of the tables (PRAGMA user_version). */
#define TABLES 3
/* Most damaged databases that are kept. */
#define ASIDE_MAX 1000
/* Longest wait for another program's lock. */
#define BUSY_MS 2000

static const struct kind {
	enum sl_store_database database;
	const char *table, *one, *many;
} kinds[] = {
#define SL_KIND(name, database, table, one, many) \
	{SL_STORE_##database, #table, one, many},
#include "daemon/store/kinds.def"
#undef SL_KIND
};

enum sl_store_database sl_store_database_of(enum sl_store_kind kind)
{
	return kinds[kind].database;
}

void sl_database_init(
	struct sl_database *database, enum sl_store_database which, const char *folder)
{
	*database = (struct sl_database){.which = which};
	(void)snprintf(database->folder, sizeof(database->folder), "%s", folder);
	(void)snprintf(database->path, sizeof(database->path), "%s/%s", database->folder,
		which == SL_STORE_RUN ? SL_STORE_RUN_FILE : SL_STORE_STATE_FILE);
}

void sl_database_close(struct sl_database *database)
{
	(void)sqlite3_close(database->db);
	database->db = NULL;
	database->ready = false;
}

static void statement_end(sqlite3_stmt **statement)
{
	(void)sqlite3_finalize(*statement);
}

/* What SQLite says, as an errno and as a remedy. */
static int errno_of(const struct sl_database *database, const char **remedy)
{
	int code = database->db ? sqlite3_errcode(database->db) & 0xff : SQLITE_OK;
	int number = 0;

	*remedy = "look at the disk, and try again";
	/* Of a quota, for one, SQLite says no more than that. */
	if (code == SQLITE_IOERR &&
		sqlite3_file_control(database->db, NULL, SQLITE_FCNTL_LAST_ERRNO,
			&number) == SQLITE_OK &&
		(number == EDQUOT || number == EFBIG))
		code = SQLITE_FULL;
	switch (code) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		*remedy =
			"another program has it open for writing; end it, and try again";
		return -EBUSY;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		*remedy = "it is damaged; put back a copy, save what `sqlite3 FILE "
			  ".recover` still finds, or move it away; then restart sluiced";
		return -EUCLEAN;
	case SQLITE_FULL:
		*remedy = "the disk is full; make room, and try again";
		return -ENOSPC;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_CANTOPEN:
		*remedy = "let sluiced's user write there, or choose another folder with "
			  "data_dir";
		return -EACCES;
	case SQLITE_OK: /* without memory SQLite was not even asked */
	case SQLITE_NOMEM: return -ENOMEM;
	default: return -EIO;
	}
}

static int failed(const struct sl_database *database, const char *what,
	enum sl_store_kind kind, struct sl_error *err)
{
	const char *remedy;
	int r = errno_of(database, &remedy);

	sl_error_set(err, "cannot %s the %s in %.180s: %.100s; %s", what,
		kinds[kind].many, database->path,
		r == -ENOMEM ? "no memory" : sqlite3_errmsg(database->db), remedy);
	return r;
}

static bool run(struct sl_database *database, const char *sql)
{
	return sqlite3_exec(database->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* The first column of the first row, as a number and as text. */
static bool ask(struct sl_database *database, const char *sql, int64_t *number,
	char *text, size_t size)
{
	sl_cleanup(statement_end) sqlite3_stmt *statement = NULL;
	const unsigned char *said;

	if (sqlite3_prepare_v2(database->db, sql, -1, &statement, NULL) != SQLITE_OK ||
		sqlite3_step(statement) != SQLITE_ROW)
		return false;
	*number = sqlite3_column_int64(statement, 0);
	said = sqlite3_column_text(statement, 0);
	(void)snprintf(text, size, "%s", said ? (const char *)said : "");
	return true;
}

static uint32_t checksum(
	enum sl_store_kind kind, int64_t number, const void *text, size_t size)
{
	char whole[96];
	int used = snprintf(whole, sizeof(whole), "%s %" PRId64 " %08" PRIx32,
		kinds[kind].table, number, sl_crc32(text, size));

	return sl_crc32(whole, (size_t)used);
}

/* --- Opening. --- */

static bool is_replaced(const struct sl_database *database)
{
	struct stat there;

	return database->inode &&
	       (stat(database->path, &there) < 0 || there.st_ino != database->inode);
}

/* Tables of another sluiced are not touched. */
static int look_at_version(struct sl_database *database, const char *what,
	enum sl_store_kind kind, int64_t *version, struct sl_error *err)
{
	char text[32];

	if (!ask(database, "PRAGMA user_version", version, text, sizeof(text)))
		return failed(database, what, kind, err);
	if (*version == 0 || *version == TABLES)
		return 0;
	sl_error_set(err,
		"%.200s was written by another version of sluiced; start that one, or "
		"move "
		"it away",
		database->path);
	return sl_err_origin(-EUCLEAN);
}

/* Opens the file that is there. */
static int open_it(struct sl_database *database, const char *what,
	enum sl_store_kind kind, struct sl_error *err)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	struct stat there;
	int r;

	if (database->db)
		return 0;
	if (stat(database->path, &there) == 0 &&
		sqlite3_open_v2(database->path, &database->db, flags, NULL) ==
			SQLITE_OK &&
		sqlite3_busy_timeout(database->db, BUSY_MS) == SQLITE_OK &&
		run(database, "PRAGMA journal_mode = TRUNCATE") &&
		run(database, database->which == SL_STORE_RUN
				      ? "PRAGMA synchronous = OFF"
				      : "PRAGMA synchronous = FULL")) {
		database->inode = there.st_ino;
		return 0;
	}
	r = failed(database, what, kind, err);
	sl_database_close(database);
	return r;
}

/* --- Reading. --- */

/* One reading of a table. */
struct reading {
	struct sl_database *database;
	enum sl_store_kind kind;
	bool (*take)(
		void *context, uint64_t number, const char *text, struct sl_error *why);
	void *context;
	struct sl_error *err;
	unsigned int damaged;
	int64_t last; /* highest number read upwards */
};

static void damaged(struct reading *reading, int64_t number, const char *why)
{
	const struct kind *kind = &kinds[reading->kind];

	if (reading->damaged++)
		return;
	sl_error_set(reading->err,
		"%s %" PRId64
		" in %.180s is damaged: %.160s; put back a copy, or remove it "
		"with `DELETE FROM %s WHERE number = %" PRId64
		"` in sqlite3, and restart "
		"sluiced",
		kind->one, number, reading->database->path, why, kind->table, number);
}

static void read_record(struct reading *reading, sqlite3_stmt *statement)
{
	int64_t number = sqlite3_column_int64(statement, 0);
	const char *text = (const char *)sqlite3_column_text(statement, 1);
	size_t size = (size_t)sqlite3_column_bytes(statement, 1);
	struct sl_error why = {0};

	if (number < 0 || !text || strlen(text) != size ||
		sqlite3_column_int64(statement, 2) !=
			checksum(reading->kind, number, text, size))
		damaged(reading, number, "its checksum is wrong");
	else if (!reading->take(reading->context, (uint64_t)number, text, &why))
		damaged(reading, number, why.text);
}

/* Returns SQLite's code: SQLITE_DONE after the last record. */
static int read_records(struct reading *reading, bool upwards)
{
	sl_cleanup(statement_end) sqlite3_stmt *statement = NULL;
	char sql[96];
	int r;

	(void)snprintf(sql, sizeof(sql),
		"SELECT number, text, checksum FROM %s ORDER BY number%s",
		kinds[reading->kind].table, upwards ? "" : " DESC");
	r = sqlite3_prepare_v2(reading->database->db, sql, -1, &statement, NULL);
	while (r == SQLITE_OK && (r = sqlite3_step(statement)) == SQLITE_ROW) {
		int64_t number = sqlite3_column_int64(statement, 0);

		r = SQLITE_OK;
		if (!upwards && number <= reading->last)
			return SQLITE_DONE;
		if (upwards)
			reading->last = number;
		read_record(reading, statement);
	}
	return r;
}

/* Once per opening. */
static void check(struct sl_database *database)
{
	char said[160] = "";
	int64_t number;

	if (database->checked)
		return;
	database->checked = true;
	if (ask(database, "PRAGMA quick_check(1)", &number, said, sizeof(said)) &&
		strcmp(said, "ok") == 0)
		return;
	sl_error_set(&database->doubt,
		"%.180s is damaged: %.100s; put back a copy, save what `sqlite3 FILE "
		".recover` still finds, or move it away; then restart sluiced",
		database->path, said[0] ? said : sqlite3_errmsg(database->db));
}

static int read_table(struct reading *reading)
{
	struct sl_database *database = reading->database;
	int r = read_records(reading, true);

	if (r == SQLITE_DONE) {
		check(database);
		if (!database->doubt.text[0])
			return reading->damaged ? SL_STORE_PARTLY : SL_STORE_OK;
		if (!reading->damaged)
			*reading->err = database->doubt;
		return SL_STORE_PARTLY;
	}
	(void)failed(database, "read all of", reading->kind, reading->err);
	if ((r & 0xff) != SQLITE_CORRUPT || reading->last == INT64_MIN)
		return SL_STORE_BAD;
	/* A page is damaged: what lies behind it is found from the other end. */
	reading->damaged++;
	(void)read_records(reading, false);
	return SL_STORE_PARTLY;
}

int sl_database_load(struct sl_database *database, enum sl_store_kind kind,
	bool (*take)(
		void *context, uint64_t number, const char *text, struct sl_error *why),
	void *context, struct sl_error *err)
{
	struct reading reading = {.database = database,
		.kind = kind,
		.take = take,
		.context = context,
		.err = err,
		.last = INT64_MIN};
	int64_t version = 0;

	if (access(database->path, F_OK) < 0 && errno == ENOENT)
		return SL_STORE_OK;
	if (open_it(database, "read", kind, err) < 0 ||
		look_at_version(database, "read", kind, &version, err) < 0)
		return SL_STORE_BAD;
	/* 0: the daemon was killed between making the file and filling it. */
	return version ? read_table(&reading) : SL_STORE_OK;
}

/* --- Writing. --- */

static int make_file(struct sl_database *database, bool whole, enum sl_store_kind kind,
	struct sl_error *err)
{
	sl_cleanup(sl_closep) int fd = -1;
	int r = sl_file_make_dirs(database->folder, 0755);

	if (r == 0) {
		/* What jobs run is their users' business. */
		fd = open(database->path,
			O_RDWR | O_CREAT | O_CLOEXEC | (whole ? 0 : O_EXCL), 0600);
		r = fd < 0 ? -errno : 0;
	}
	if (r == -EEXIST)
		sl_error_set(err,
			"%.200s was put there while sluiced ran; restart sluiced, which "
			"reads it",
			database->path);
	else if (r < 0)
		sl_error_set(err,
			"cannot store the %s: cannot make %.200s: %s; make room or let "
			"sluiced's user write there, or choose another folder with "
			"data_dir",
			kinds[kind].many, database->path, strerror(-r));
	return r;
}

static int have_file(struct sl_database *database, bool whole, enum sl_store_kind kind,
	struct sl_error *err)
{
	int64_t version;
	int r = 0;

	if (is_replaced(database)) {
		sl_database_close(database);
		if (!whole) {
			sl_error_set(err,
				"%.200s was moved away or replaced while sluiced ran; "
				"put "
				"it back, or restart sluiced",
				database->path);
			return sl_err_origin(-ESTALE);
		}
		database->inode = 0;
	}
	if (!database->inode)
		r = make_file(database, whole, kind, err);
	if (r == 0)
		r = open_it(database, "store", kind, err);
	return r < 0 ? r : look_at_version(database, "store", kind, &version, err);
}

static bool make_tables(struct sl_database *database)
{
	bool ok = database->ready ||
		  run(database, "PRAGMA user_version = " SL_STRINGIFY(TABLES));

	for (size_t i = 0; i < SL_KINDS && ok && !database->ready; i++) {
		char sql[160];

		(void)snprintf(sql, sizeof(sql),
			"CREATE TABLE IF NOT EXISTS %s (number INTEGER PRIMARY KEY, text "
			"TEXT NOT NULL, checksum INTEGER NOT NULL) STRICT",
			kinds[i].table);
		ok = kinds[i].database != database->which || run(database, sql);
	}
	return ok;
}

/* Runs sql with the number and, unless it is NULL, the text. */
static bool write_record(struct sl_database *database, const struct sl_store_item *item,
	const char *sql, const char *text)
{
	sl_cleanup(statement_end) sqlite3_stmt *statement = NULL;
	int64_t number = (int64_t)item->number;
	bool ok =
		sqlite3_prepare_v2(database->db, sql, -1, &statement, NULL) == SQLITE_OK;

	if (ok && item->what != SL_ITEM_CLEAR)
		ok = sqlite3_bind_int64(statement, 1, number) == SQLITE_OK;
	if (ok && text)
		ok = sqlite3_bind_text(statement, 2, text, -1, SQLITE_STATIC) ==
			     SQLITE_OK &&
		     sqlite3_bind_int64(statement, 3,
			     checksum(item->kind, number, text, strlen(text))) ==
			     SQLITE_OK;
	return ok && sqlite3_step(statement) == SQLITE_DONE;
}

static bool write_item(struct sl_database *database, const struct sl_store_item *item)
{
	static const char *const format[] = {
		[SL_ITEM_PUT] = "INSERT OR REPLACE INTO %s VALUES (?, ?, ?)",
		[SL_ITEM_DROP] = "DELETE FROM %s WHERE number = ?",
		[SL_ITEM_CLEAR] = "DELETE FROM %s",
	};
	sl_cleanup(sl_freep) char *made = NULL;
	char sql[96];

	if (item->object)
		made = sl_record_write(item->fields, item->field_count, item->object);
	if (item->object && !made)
		return false;
	(void)snprintf(sql, sizeof(sql), format[item->what], kinds[item->kind].table);
	return write_record(database, item, sql, made ? made : item->text);
}

static int write_all(struct sl_database *database, const struct sl_store_change *change,
	bool whole, struct sl_error *err)
{
	int r = have_file(database, whole, change->items[0].kind, err);
	bool ok;

	if (r < 0)
		return r;
	ok = run(database, "BEGIN IMMEDIATE") && make_tables(database);
	for (size_t i = 0; i < change->count && ok; i++)
		ok = write_item(database, &change->items[i]);
	sl_step(D_STORE_FILLED);
	if (ok && run(database, "COMMIT")) {
		database->ready = true;
		return 0;
	}
	r = failed(database, "store", change->items[0].kind, err);
	(void)run(database, "ROLLBACK");
	return r;
}

static bool put_aside(struct sl_database *database)
{
	char aside[SL_PATH_MAX + 32];

	sl_database_close(database);
	database->inode = 0;
	for (int i = 1; i <= ASIDE_MAX; i++) {
		(void)snprintf(aside, sizeof(aside), "%s.bad-%d", database->path, i);
		if (access(aside, F_OK) == 0)
			continue;
		if (rename(database->path, aside) < 0)
			return false;
		sl_warning("%s is damaged (kept as %s)", database->path, aside);
		return true;
	}
	return false;
}

int sl_database_write(struct sl_database *database, const struct sl_store_change *change,
	struct sl_error *err)
{
	bool whole = change->items[0].what == SL_ITEM_CLEAR;
	int r = write_all(database, change, whole, err);

	/* A damaged file stays until all records are written anew. */
	if (r == -EUCLEAN && whole && put_aside(database))
		r = write_all(database, change, whole, err);
	return r;
}
