/*
 * tables - the tables of the file, made from history/columns.def
 *
 * A change of the columns raises TABLES: sluiced moves a file with another number aside.
 */
#include "daemon/history/store_internal.h"

/* Version of the tables (PRAGMA user_version). */
#define TABLES 8

const int64_t sl_history_grains[SL_HISTORY_LEVELS] = {60, 60, 3600};

const char *const sl_history_tables[SL_HISTORY_KINDS][SL_HISTORY_LEVELS] = {
	{"seconds", "minutes", "hours"},
	{"gpu_seconds", "gpu_minutes", "gpu_hours"},
};

#define SUM false
#define MAX true
static const struct sl_history_column use_columns[] = {
#define SL_HISTORY_USE(name, fold, what) {#name, fold},
#define SL_HISTORY_GPU(name, fold, what)
#include "daemon/history/columns.def"
#undef SL_HISTORY_USE
#undef SL_HISTORY_GPU
};
static const struct sl_history_column gpu_columns[] = {
#define SL_HISTORY_USE(name, fold, what)
#define SL_HISTORY_GPU(name, fold, what) {#name, fold},
#include "daemon/history/columns.def"
#undef SL_HISTORY_USE
#undef SL_HISTORY_GPU
};
const struct sl_history_columns sl_history_columns[SL_HISTORY_KINDS] = {
	{use_columns, SL_HISTORY_USE_COLUMNS},
	{gpu_columns, SL_HISTORY_GPU_COLUMNS},
};
_Static_assert(SL_HISTORY_USE_COLUMNS <= SL_HISTORY_COLUMNS_MAX &&
		       SL_HISTORY_GPU_COLUMNS <= SL_HISTORY_COLUMNS_MAX,
	"a row has room for every column");

void sl_history_sql_columns(
	sqlite3_str *sql, enum sl_history_kind kind, const char *sum, const char *max)
{
	const struct sl_history_columns *columns = &sl_history_columns[kind];

	for (uint32_t i = 0; i < columns->count; i++) {
		const char *name = columns->all[i].name;

		sqlite3_str_appendf(
			sql, columns->all[i].is_max ? max : sum, name, name, name, name);
	}
}

static bool make_table(struct sl_history_store *store, enum sl_history_kind kind,
	enum sl_history_level level)
{
	sqlite3_str *sql = sqlite3_str_new(store->db);

	sqlite3_str_appendf(sql,
		"CREATE TABLE %s (t INTEGER, gpu INTEGER, workload INTEGER, span INTEGER",
		sl_history_tables[kind][level]);
	sl_history_sql_columns(
		sql, kind, ", \"%s\" INTEGER DEFAULT 0", ", \"%s\" INTEGER DEFAULT 0");
	sqlite3_str_appendall(sql, ", PRIMARY KEY (t, gpu, workload)) WITHOUT ROWID");
	return sl_history_sql_take(store, sql);
}

static bool make_tables(struct sl_history_store *store)
{
	/* done: rows of the level end there. */
	static const char others[] =
		"CREATE TABLE meta (level INTEGER PRIMARY KEY, done INTEGER NOT NULL);"
		"INSERT INTO meta VALUES (1, 0), (2, 0);"
		"CREATE TABLE gpus (id INTEGER PRIMARY KEY, uuid TEXT UNIQUE, name "
		"TEXT);"
		"CREATE TABLE workloads (id INTEGER PRIMARY KEY, number INTEGER, name "
		"TEXT, uid INTEGER, user TEXT, project TEXT, program TEXT, command TEXT, "
		"pid INTEGER, gpus INTEGER, priority INTEGER, observed INTEGER, begun_ms "
		"INTEGER, ended_ms INTEGER);"
		"CREATE INDEX workloads_ended ON workloads (ended_ms);"
		"CREATE TABLE events (serial INTEGER PRIMARY KEY, ms INTEGER, reason "
		"TEXT, gpu INTEGER, workload INTEGER, other INTEGER, bytes INTEGER, "
		"available_bytes INTEGER, other_bytes INTEGER, span_ms INTEGER, pid "
		"INTEGER, uid INTEGER, lost INTEGER, name TEXT, other_name TEXT);";

	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++) {
		for (int level = 0; level < SL_HISTORY_LEVELS; level++) {
			if (!make_table(store, kind, level))
				return false;
		}
	}
	return sl_history_sql(store, "%s PRAGMA user_version = %d", others, TABLES);
}

bool sl_history_tables_look(struct sl_history_store *store, bool *is_other)
{
	int64_t version = 0;

	*is_other = false;
	if (!sl_history_sql_ask(store, &version, "PRAGMA user_version"))
		return false;
	*is_other = version && version != TABLES;
	/* Lets deleted pages be given back to the disk; only works before the first table. */
	return version || (sl_history_sql(store, "PRAGMA auto_vacuum = INCREMENTAL") &&
				  sl_history_sql(store, "BEGIN IMMEDIATE") &&
				  make_tables(store) && sl_history_sql(store, "COMMIT"));
}
