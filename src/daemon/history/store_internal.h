/*
 * store_internal - shared by history/store.c, tables.c and tidy.c
 */
#ifndef SL_DAEMON_HISTORY_STORE_INTERNAL_H
#define SL_DAEMON_HISTORY_STORE_INTERNAL_H

#include "base/paths.h"
#include "daemon/history/store.h"

enum sl_history_statement {
	PUT_USE = 0,
	PUT_GPU_ROW,
	PUT_GPU,
	PUT_WORKLOAD,
	PUT_EVENT,
	STATEMENTS
};

struct sl_history_store {
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENTS];
	char path[SL_PATH_MAX];
	/* What to delete first while space is short, -1: not chosen; and when it was chosen
	 * (history/tidy.c). */
	int victim;
	int64_t chosen_at;
};

/* Runs SQL; takes a printf format of SQLite. */
SL_MUST_CHECK bool sl_history_sql(struct sl_history_store *store, const char *format, ...)
	SL_PRINTF(2, 3);
/* The first number that it returns; 0 if it is NULL. */
SL_MUST_CHECK bool sl_history_sql_ask(struct sl_history_store *store, int64_t *out,
	const char *format, ...) SL_PRINTF(3, 4);
/* Runs and frees sql. */
SL_MUST_CHECK bool sl_history_sql_take(struct sl_history_store *store, sqlite3_str *sql);
/* Creates the tables in a new file. False: SQLite says why, and a transaction may be open. */
SL_MUST_CHECK bool sl_history_tables_look(struct sl_history_store *store, bool *is_other);
/* Rolls up, deletes and bounds; a part of sl_history_store_write(), within its transaction. False:
 * SQLite says why. */
SL_MUST_CHECK bool sl_history_tidy(
	struct sl_history_store *store, int64_t now, const struct sl_history_keep *keep);

#endif
