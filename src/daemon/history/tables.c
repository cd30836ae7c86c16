/*
 * tables - the tables of the file, and the upgrade of an older one
 *
 * All tables are made from the list of columns. An older sluiced's file gets the new columns and
 * keeps its rows; a newer sluiced's is left alone.
 */
#include "daemon/history/store_internal.h"

#include <stdio.h>

/* Version of the tables (PRAGMA user_version). */
#define TABLES 6
const int64_t sl_history_grains[SL_HISTORY_LEVELS] = {60, 60, 3600};

const char *const sl_history_tables[SL_HISTORY_KINDS][SL_HISTORY_LEVELS] = {
	{"seconds", "minutes", "hours"},
	{"gpu_seconds", "gpu_minutes", "gpu_hours"},
};

static const char *const use_names[] = {
#define SL_HISTORY_USE(name, fold, what) #name,
#define SL_HISTORY_GPU(name, fold, what)
#include "daemon/history/columns.def"
#undef SL_HISTORY_USE
#undef SL_HISTORY_GPU
};
static const char *const gpu_names[] = {
#define SL_HISTORY_USE(name, fold, what)
#define SL_HISTORY_GPU(name, fold, what) #name,
#include "daemon/history/columns.def"
#undef SL_HISTORY_USE
#undef SL_HISTORY_GPU
};
static const uint8_t use_folds[] = {
#define SL_HISTORY_USE(name, fold, what) SL_HISTORY_##fold,
#define SL_HISTORY_GPU(name, fold, what)
#include "daemon/history/columns.def"
#undef SL_HISTORY_USE
#undef SL_HISTORY_GPU
};
static const uint8_t gpu_folds[] = {
#define SL_HISTORY_USE(name, fold, what)
#define SL_HISTORY_GPU(name, fold, what) SL_HISTORY_##fold,
#include "daemon/history/columns.def"
#undef SL_HISTORY_USE
#undef SL_HISTORY_GPU
};
const struct sl_history_columns sl_history_columns[SL_HISTORY_KINDS] = {
	{use_names, use_folds, SL_HISTORY_USE_COLUMNS},
	{gpu_names, gpu_folds, SL_HISTORY_GPU_COLUMNS},
};
_Static_assert(SL_HISTORY_USE_COLUMNS <= SL_HISTORY_COLUMNS_MAX &&
		       SL_HISTORY_GPU_COLUMNS <= SL_HISTORY_COLUMNS_MAX,
	"a row has room for every column");

void sl_history_sql_add_names(struct sl_history_sql *text, enum sl_history_kind kind)
{
	sl_history_sql_add(text, "t, gpu, workload, span");
	for (uint32_t i = 0; i < sl_history_columns[kind].count; i++)
		sl_history_sql_add(text, ", \"%s\"", sl_history_columns[kind].names[i]);
}

static bool make_table(struct sl_history_store *store, enum sl_history_kind kind,
	enum sl_history_level level)
{
	const struct sl_history_columns *columns = &sl_history_columns[kind];
	struct sl_history_sql text = {.used = 0};

	sl_history_sql_add(&text,
		"CREATE TABLE %s (t INTEGER, gpu INTEGER, workload INTEGER, span INTEGER",
		sl_history_tables[kind][level]);
	for (uint32_t i = 0; i < columns->count; i++)
		sl_history_sql_add(&text, ", \"%s\" INTEGER", columns->names[i]);
	sl_history_sql_add(&text, ", PRIMARY KEY (t, gpu, workload)) WITHOUT ROWID");
	return sl_history_sql_run(store, text.sql);
}

static bool make_tables(struct sl_history_store *store)
{
	/* done: rows of the level end there. dropped: rows before it were deleted, perhaps not all
	 * yet. */
	static const char others[] =
		"CREATE TABLE meta (level INTEGER PRIMARY KEY, done INTEGER NOT NULL, "
		"dropped INTEGER NOT NULL);"
		"INSERT INTO meta VALUES (0, 0, 0), (1, 0, 0), (2, 0, 0);"
		"CREATE TABLE gpus (id INTEGER PRIMARY KEY, uuid TEXT UNIQUE, name "
		"TEXT);"
		"CREATE TABLE workloads (id INTEGER PRIMARY KEY, number INTEGER, name "
		"TEXT, uid INTEGER, user TEXT, project TEXT, program TEXT, command TEXT, "
		"pid INTEGER, gpus INTEGER, priority INTEGER, observed INTEGER, begun_ms "
		"INTEGER, ended_ms INTEGER, gpu_mask INTEGER);"
		"CREATE INDEX workloads_ended ON workloads (ended_ms);"
		"CREATE TABLE events (serial INTEGER PRIMARY KEY, ms INTEGER, reason "
		"TEXT, gpu INTEGER, workload INTEGER, other INTEGER, bytes INTEGER, "
		"available_bytes INTEGER, other_bytes INTEGER, span_ms INTEGER, pid "
		"INTEGER, uid INTEGER, lost INTEGER, name TEXT, other_name TEXT);";
	char version[40];

	(void)snprintf(version, sizeof(version), "PRAGMA user_version = %d", TABLES);
	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++) {
		for (int level = 0; level < SL_HISTORY_LEVELS; level++) {
			if (!make_table(store, kind, level))
				return false;
		}
	}
	return sl_history_sql_run(store, others) && sl_history_sql_run(store, version);
}

/* Adds a column that the file lacks. */
static bool add_column(struct sl_history_store *store, const char *table,
	const char *column, const char *preset)
{
	int64_t there = 0;
	char sql[192];

	(void)snprintf(sql, sizeof(sql),
		"SELECT count(*) FROM pragma_table_info('%s') WHERE name = '%s'", table,
		column);
	if (!sl_history_sql_ask(store, sql, &there))
		return false;
	(void)snprintf(sql, sizeof(sql),
		"ALTER TABLE %s ADD COLUMN \"%s\" INTEGER DEFAULT %s", table, column,
		preset);
	return there || sl_history_sql_run(store, sql);
}

/* Upgrades an older sluiced's file: new columns of old rows are 0, and which GPUs a workload had is
 * unknown. */
static bool change_tables(struct sl_history_store *store)
{
	/* An older name of a column. */
	static const char backing[] = "SELECT count(*) FROM pragma_table_info('seconds') "
				      "WHERE name = 'charged'";
	static const char rename[] =
		"ALTER TABLE seconds RENAME COLUMN charged TO backing;"
		"ALTER TABLE minutes RENAME COLUMN charged TO backing;"
		"ALTER TABLE hours RENAME COLUMN charged TO backing;";
	int64_t is_old = 0;
	char version[40];

	if (!sl_history_sql_ask(store, backing, &is_old) ||
		(is_old && !sl_history_sql_run(store, rename)))
		return false;
	(void)snprintf(version, sizeof(version), "PRAGMA user_version = %d", TABLES);
	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++) {
		for (int level = 0; level < SL_HISTORY_LEVELS; level++) {
			for (uint32_t i = 0; i < sl_history_columns[kind].count; i++) {
				if (!add_column(store, sl_history_tables[kind][level],
					    sl_history_columns[kind].names[i], "0"))
					return false;
			}
		}
	}
	return add_column(store, "workloads", "gpu_mask", "-1") &&
	       sl_history_sql_run(store, version);
}

bool sl_history_tables_look(struct sl_history_store *store, bool *is_newer)
{
	int64_t version = 0;

	*is_newer = false;
	if (!sl_history_sql_ask(store, "PRAGMA user_version", &version))
		return false;
	*is_newer = version > TABLES;
	if (version >= TABLES)
		return true;
	/* Lets deleted pages be given back to the disk; only works before the first table. */
	if (!sl_history_sql_run(store, "PRAGMA auto_vacuum = INCREMENTAL") ||
		!sl_history_sql_run(store, "BEGIN IMMEDIATE"))
		return false;
	return (version ? change_tables(store) : make_tables(store)) &&
	       sl_history_sql_run(store, "COMMIT");
}
