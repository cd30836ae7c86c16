/*
 * store - see the header
 *
 * There are a few thousand rows at most, so a write empties the table and fills it again; SQLite's
 * rollback journal makes that one change. One list of columns serves creating, reading and writing.
 */
#include "daemon/projects/store.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/paths.h"
#include "daemon/core/worker.h"

/* Version of the tables (PRAGMA user_version). */
#define TABLES 1
/* Longest wait for another program's lock. */
#define BUSY_MS 2000

#define QUOTA(r, offset) offsetof(struct sl_project_row, offset.of[r])

static const struct column {
	const char *name;
	enum { TEXT, BIG, SMALL, YES } type; /* char[], int64_t, int32_t, bool */
	size_t offset, size;                 /* size: of TEXT */
} columns[] = {
#define COLUMN_TEXT(field)                                             \
	{                                                              \
#field, TEXT, offsetof(struct sl_project_row, field),  \
			sizeof(((struct sl_project_row *)NULL)->field) \
	}
	COLUMN_TEXT(name),
	COLUMN_TEXT(parent),
	{"id", BIG, offsetof(struct sl_project_row, id), 0},
	{"gpu_quota_milli", BIG, QUOTA(SL_RES_GPU, quota), 0},
	{"gpu_limit_milli", BIG, QUOTA(SL_RES_GPU, limit), 0},
	{"gpu_weight", SMALL, offsetof(struct sl_project_row, weight[SL_RES_GPU]), 0},
	{"cpu_quota_milli", BIG, QUOTA(SL_RES_CPU, quota), 0},
	{"cpu_limit_milli", BIG, QUOTA(SL_RES_CPU, limit), 0},
	{"cpu_weight", SMALL, offsetof(struct sl_project_row, weight[SL_RES_CPU]), 0},
	{"memory_quota_mib", BIG, QUOTA(SL_RES_MEMORY, quota), 0},
	{"memory_limit_mib", BIG, QUOTA(SL_RES_MEMORY, limit), 0},
	{"memory_weight", SMALL, offsetof(struct sl_project_row, weight[SL_RES_MEMORY]),
		0},
	{"priority", SMALL, offsetof(struct sl_project_row, priority), 0},
	{"preempt_min_runtime_ns", BIG,
		offsetof(struct sl_project_row, preempt_min_runtime), 0},
	{"reclaim_min_runtime_ns", BIG,
		offsetof(struct sl_project_row, reclaim_min_runtime), 0},
	{"no_swap", YES, offsetof(struct sl_project_row, no_swap), 0},
	COLUMN_TEXT(users),
	COLUMN_TEXT(groups),
	COLUMN_TEXT(pools),
};

/* --- The database. --- */

struct database {
	sqlite3 *db;
	char path[SL_PATH_MAX];
};

static void database_close(struct database *database)
{
	(void)sqlite3_close(database->db);
	database->db = NULL;
}

static void statement_end(sqlite3_stmt **statement)
{
	(void)sqlite3_finalize(*statement);
}

/* What SQLite says, and what to do about it. */
static int failed(struct database *database, const char *what, struct sl_error *err)
{
	int code = database->db ? sqlite3_errcode(database->db) : SQLITE_NOMEM;
	const char *said = database->db ? sqlite3_errmsg(database->db) : "no memory";
	const char *remedy;

	switch (code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		remedy = "another program has it open for writing; end it, and try again";
		break;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		remedy = "it is damaged; move it away, restart sluiced, and apply the "
			 "files "
			 "of projects again";
		break;
	case SQLITE_FULL: remedy = "the disk is full; make room, and try again"; break;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_CANTOPEN:
		remedy = "let sluiced's user write there, or choose another folder with "
			 "data_dir";
		break;
	default: remedy = "look at the disk, and try again"; break;
	}
	sl_error_set(err, "cannot %s the projects in %.200s: %.120s; %s", what,
		database->path, said, remedy);
	return SL_PROJECTS_STORE_BAD;
}

static int damaged(struct database *database, const char *what, struct sl_error *err)
{
	char why[SL_ERROR_TEXT_MAX];

	(void)snprintf(why, sizeof(why), "%.200s", what);
	sl_error_set(err,
		"the projects in %.200s are damaged: %s; move it away, restart sluiced, "
		"and apply "
		"the files of projects again",
		database->path, why);
	return SL_PROJECTS_STORE_BAD;
}

static bool run(struct database *database, const char *sql)
{
	return sqlite3_exec(database->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static bool open_it(struct database *database, const char *folder, int flags)
{
	(void)snprintf(database->path, sizeof(database->path), "%s/%s", folder,
		SL_PROJECTS_STORE_FILE);
	if (sqlite3_open_v2(database->path, &database->db,
		    flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
		    NULL) != SQLITE_OK)
		return false;
	(void)sqlite3_busy_timeout(database->db, BUSY_MS);
	return run(database, "PRAGMA synchronous = FULL");
}

/* The first number that sql returns. */
static bool ask(struct database *database, const char *sql, int64_t *out)
{
	sl_cleanup(statement_end) sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(database->db, sql, -1, &statement, NULL) != SQLITE_OK ||
		sqlite3_step(statement) != SQLITE_ROW)
		return false;
	*out = sqlite3_column_int64(statement, 0);
	return true;
}

/* Version 0: made but never filled. A database of a newer sluiced is not touched. */
static int look_at_version(struct database *database, const char *what, int64_t *version,
	struct sl_error *err)
{
	if (!ask(database, "PRAGMA user_version", version))
		return failed(database, what, err);
	if (*version <= TABLES)
		return SL_PROJECTS_STORE_OK;
	sl_error_set(err,
		"%.200s was written by a newer sluiced; start that one, or move it away",
		database->path);
	return SL_PROJECTS_STORE_BAD;
}

static size_t list_columns(char *sql, size_t size, size_t used, const char *format)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(columns) && used < size; i++) {
		used += (size_t)snprintf(sql + used, size - used, "%s", i ? ", " : "");
		/* "groups" is a keyword of SQL. */
		used += (size_t)snprintf(sql + used, size - used, format, columns[i].name,
			columns[i].type == TEXT ? "TEXT" : "INTEGER");
	}
	return used;
}

/* --- Reading. --- */

static bool read_row(sqlite3_stmt *statement, struct sl_project_row *row)
{
	*row = (struct sl_project_row){0};
	for (size_t i = 0; i < SL_ARRAY_LEN(columns); i++) {
		const struct column *column = &columns[i];
		void *field = (char *)row + column->offset;
		int64_t number = sqlite3_column_int64(statement, (int)i);
		const unsigned char *text;

		switch (column->type) {
		case TEXT:
			text = sqlite3_column_text(statement, (int)i);
			if (!text || strlen((const char *)text) >= column->size)
				return false;
			(void)snprintf(field, column->size, "%s", text);
			break;
		case BIG: memcpy(field, &number, sizeof(number)); break;
		case SMALL:
			if (number != (int32_t)number)
				return false;
			*(int32_t *)field = (int32_t)number;
			break;
		case YES: *(bool *)field = number != 0; break;
		}
	}
	return row->id != 0;
}

static int read_rows(
	struct database *database, struct sl_projects *set, struct sl_error *err)
{
	sl_cleanup(statement_end) sqlite3_stmt *statement = NULL;
	struct sl_error said = {0};
	struct sl_project_row row;
	char sql[1024];
	size_t used = (size_t)snprintf(sql, sizeof(sql), "SELECT ");
	int r;

	used = list_columns(sql, sizeof(sql), used, "\"%s\"");
	(void)snprintf(sql + used, sizeof(sql) - used, " FROM project ORDER BY id");
	if (sqlite3_prepare_v2(database->db, sql, -1, &statement, NULL) != SQLITE_OK)
		return failed(database, "read", err);
	while ((r = sqlite3_step(statement)) == SQLITE_ROW) {
		if (!read_row(statement, &row))
			return damaged(database, "a row is not what it may be", err);
		if (sl_projects_find(set, row.name))
			return damaged(database, "a name comes twice", err);
		if (sl_projects_put(set, &row) < 0)
			return damaged(database, "there are too many rows", err);
	}
	if (r != SQLITE_DONE)
		return failed(database, "read", err);
	if (sl_projects_check(set, NULL, &said) != SL_PROJECTS_OK)
		return damaged(database, said.text, err);
	return SL_PROJECTS_STORE_OK;
}

static int read_all(
	struct database *database, struct sl_projects_stored *out, struct sl_error *err)
{
	int64_t version = 0, next = 0;

	if (look_at_version(database, "read", &version, err) != SL_PROJECTS_STORE_OK)
		return SL_PROJECTS_STORE_BAD;
	if (version == 0)
		return SL_PROJECTS_STORE_OK;
	if (!ask(database, "SELECT next_id FROM meta", &next))
		return failed(database, "read", err);
	out->next_id = (uint64_t)next;
	if (read_rows(database, &out->set, err) != SL_PROJECTS_STORE_OK)
		return SL_PROJECTS_STORE_BAD;
	for (size_t i = 0; i < out->set.count; i++) {
		if (out->set.rows[i].id >= out->next_id)
			return damaged(database, "a number was not given yet", err);
	}
	return SL_PROJECTS_STORE_OK;
}

int sl_projects_store_load(
	const char *folder, struct sl_projects_stored *out, struct sl_error *err)
{
	sl_cleanup(database_close) struct database database = {0};
	struct stat there;
	int r;

	(void)snprintf(database.path, sizeof(database.path), "%s/%s", folder,
		SL_PROJECTS_STORE_FILE);
	if (stat(database.path, &there) < 0 && errno == ENOENT)
		return SL_PROJECTS_STORE_OK;
	/* Opened for writing: SQLite first rolls back what a crash left unfinished. */
	if (!open_it(&database, folder, SQLITE_OPEN_READWRITE))
		return failed(&database, "read", err);
	r = read_all(&database, out, err);
	if (r != SL_PROJECTS_STORE_OK) {
		sl_projects_fini(&out->set);
		out->next_id = 0;
	}
	return r;
}

/* --- Writing. --- */

static bool bind_row(sqlite3_stmt *statement, const struct sl_project_row *row)
{
	bool ok = true;

	for (size_t i = 0; i < SL_ARRAY_LEN(columns); i++) {
		const struct column *column = &columns[i];
		const void *field = (const char *)row + column->offset;
		int place = (int)i + 1;
		int64_t number = 0;

		switch (column->type) {
		case TEXT:
			ok &= sqlite3_bind_text(statement, place, field, -1,
				      SQLITE_STATIC) == SQLITE_OK;
			continue;
		case BIG: memcpy(&number, field, sizeof(number)); break;
		case SMALL: number = *(const int32_t *)field; break;
		case YES: number = *(const bool *)field; break;
		}
		ok &= sqlite3_bind_int64(statement, place, number) == SQLITE_OK;
	}
	return ok;
}

static bool write_rows(struct database *database, const struct sl_projects *set)
{
	sl_cleanup(statement_end) sqlite3_stmt *statement = NULL;
	char sql[1024];
	size_t used = (size_t)snprintf(sql, sizeof(sql), "INSERT INTO project (");

	used = list_columns(sql, sizeof(sql), used, "\"%s\"");
	used += (size_t)snprintf(sql + used, sizeof(sql) - used, ") VALUES (");
	used = list_columns(sql, sizeof(sql), used, "?");
	(void)snprintf(sql + used, sizeof(sql) - used, ")");
	if (sqlite3_prepare_v2(database->db, sql, -1, &statement, NULL) != SQLITE_OK)
		return false;
	for (size_t i = 0; i < set->count; i++) {
		if (!bind_row(statement, &set->rows[i]) ||
			sqlite3_step(statement) != SQLITE_DONE ||
			sqlite3_reset(statement) != SQLITE_OK)
			return false;
	}
	return true;
}

static bool make_tables(struct database *database)
{
	char sql[1024];
	size_t used = (size_t)snprintf(sql, sizeof(sql), "CREATE TABLE project (");

	used = list_columns(sql, sizeof(sql), used, "\"%s\" %s NOT NULL");
	(void)snprintf(
		sql + used, sizeof(sql) - used, ", PRIMARY KEY (name), UNIQUE (id))");
	return run(database, sql) &&
	       run(database, "CREATE TABLE meta (next_id INTEGER NOT NULL)") &&
	       run(database, "PRAGMA user_version = " SL_STRINGIFY(TABLES));
}

static bool write_all(struct database *database, const struct sl_projects_stored *stored,
	int64_t version)
{
	char sql[64];

	(void)snprintf(sql, sizeof(sql), "INSERT INTO meta VALUES (%" PRIu64 ")",
		stored->next_id);
	return run(database, "BEGIN IMMEDIATE") &&
	       (version != 0 || make_tables(database)) &&
	       run(database, "DELETE FROM project") &&
	       run(database, "DELETE FROM meta") && run(database, sql) &&
	       write_rows(database, &stored->set) && run(database, "COMMIT");
}

int sl_projects_store_save(
	const char *folder, const struct sl_projects_stored *stored, struct sl_error *err)
{
	sl_cleanup(database_close) struct database database = {0};
	int64_t version = 0;
	int r = sl_file_make_dirs(folder, 0755);

	if (r < 0) {
		sl_error_set(err,
			"cannot make the folder %.200s for the projects: %s; choose "
			"another with "
			"data_dir",
			folder, strerror(-r));
		return SL_PROJECTS_STORE_BAD;
	}
	if (!open_it(&database, folder, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE))
		return failed(&database, "store", err);
	if (look_at_version(&database, "store", &version, err) != SL_PROJECTS_STORE_OK)
		return SL_PROJECTS_STORE_BAD;
	if (write_all(&database, stored, version))
		return SL_PROJECTS_STORE_OK;
	(void)failed(&database, "store", err);
	(void)run(&database, "ROLLBACK");
	return SL_PROJECTS_STORE_BAD;
}

/* --- The thread. --- */

enum turn { IDLE, WRITING, WRITTEN };

struct sl_projects_store {
	struct sl_worker worker;
	/* Under its mutex. */
	enum turn turn;
	const struct sl_projects_stored *stored;
	int result;
	struct sl_error err;
	/* Constant. */
	char folder[SL_PATH_MAX];
};

static void *thread_main(void *argument)
{
	struct sl_projects_store *store = argument;

	(void)pthread_mutex_lock(&store->worker.mutex);
	/* A set that was handed over is written before the end. */
	while (store->turn == WRITING || !store->worker.stop) {
		struct sl_error err = {0};
		int r;

		if (store->turn != WRITING) {
			(void)pthread_cond_wait(
				&store->worker.wake, &store->worker.mutex);
			continue;
		}
		(void)pthread_mutex_unlock(&store->worker.mutex);
		r = sl_projects_store_save(store->folder, store->stored, &err);
		(void)pthread_mutex_lock(&store->worker.mutex);
		store->result = r;
		store->err = err;
		store->turn = WRITTEN;
		sl_worker_tell(&store->worker);
	}
	(void)pthread_mutex_unlock(&store->worker.mutex);
	return NULL;
}

int sl_projects_store_new(const char *folder, struct sl_projects_store **out)
{
	sl_cleanup(sl_freep) struct sl_projects_store *store = calloc(1, sizeof(*store));
	int r;

	if (!store)
		return sl_err_origin(-ENOMEM);
	(void)snprintf(store->folder, sizeof(store->folder), "%s", folder);
	r = sl_worker_start(&store->worker, thread_main, store);
	if (r < 0)
		return r;
	*out = sl_steal(&store);
	return 0;
}

struct sl_projects_store *sl_projects_store_free(struct sl_projects_store *store)
{
	if (!store)
		return NULL;
	sl_worker_end(&store->worker);
	free(store);
	return NULL;
}

int sl_projects_store_fd(const struct sl_projects_store *store)
{
	return store->worker.event_fd;
}

void sl_projects_store_start(
	struct sl_projects_store *store, const struct sl_projects_stored *stored)
{
	(void)pthread_mutex_lock(&store->worker.mutex);
	store->stored = stored;
	store->turn = WRITING;
	(void)pthread_cond_signal(&store->worker.wake);
	(void)pthread_mutex_unlock(&store->worker.mutex);
}

bool sl_projects_store_take(
	struct sl_projects_store *store, int *result, struct sl_error *err)
{
	bool over;

	sl_worker_hear(&store->worker);
	(void)pthread_mutex_lock(&store->worker.mutex);
	over = store->turn == WRITTEN;
	if (over) {
		store->turn = IDLE;
		store->stored = NULL;
		*result = store->result;
		*err = store->err;
	}
	(void)pthread_mutex_unlock(&store->worker.mutex);
	return over;
}
