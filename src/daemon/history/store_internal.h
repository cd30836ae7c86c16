/*
 * store_internal - shared by history/database.c, size.c, back.c, tables.c and tidy.c
 */
#ifndef SL_DAEMON_HISTORY_STORE_INTERNAL_H
#define SL_DAEMON_HISTORY_STORE_INTERNAL_H

#include <sqlite3.h>

#include "base/paths.h"
#include "daemon/history/store.h"

enum sl_history_statement {
	INSERT_USE = 0,
	INSERT_GPU,
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
	 * (history/size.c). */
	int victim;
	int64_t chosen_at;
};

/* SQL that is being built; it is cut if it does not fit, and SQLite then refuses it. */
struct sl_history_sql {
	char sql[4096];
	size_t used;
};
void sl_history_sql_add(struct sl_history_sql *text, const char *format, ...)
	SL_PRINTF(2, 3);
/* Adds all column names of the kind; their order differs in a file that was upgraded. */
void sl_history_sql_add_names(struct sl_history_sql *text, enum sl_history_kind kind);
SL_MUST_CHECK bool sl_history_sql_run(struct sl_history_store *store, const char *sql);
/* The first number that sql returns; 0 if it is NULL. */
SL_MUST_CHECK bool sl_history_sql_ask(
	struct sl_history_store *store, const char *sql, int64_t *out);

/* Creates the tables, or adds what an older sluiced's lack. False: SQLite says why, and a
 * transaction may be open. */
SL_MUST_CHECK bool sl_history_tables_look(struct sl_history_store *store, bool *is_newer);
/* SQLite's last error as an outcome, with a sentence in err. undo also rolls the transaction
 * back. */
SL_MUST_CHECK int sl_history_store_failed(
	struct sl_history_store *store, const char *what, struct sl_error *err);
SL_MUST_CHECK int sl_history_store_undo(
	struct sl_history_store *store, const char *what, struct sl_error *err);

/* *end: where rows not ahead of `now` end; *ahead: where the last row ahead begins, 0: none, or
 * already handled (history/back.c). */
SL_MUST_CHECK bool sl_history_read_end(
	struct sl_history_store *store, int64_t now, int64_t *end, int64_t *ahead);

/* Parts of sl_history_store_write(), within its transaction. False: SQLite says why. */
SL_MUST_CHECK bool sl_history_clear_ahead(struct sl_history_store *store, int64_t now);
SL_MUST_CHECK bool sl_history_come_again(struct sl_history_store *store, int64_t now);
SL_MUST_CHECK bool sl_history_roll_up(struct sl_history_store *store, int64_t now);
SL_MUST_CHECK bool sl_history_tidy(
	struct sl_history_store *store, int64_t now, const struct sl_history_keep *keep);

/* Up to where a level is rolled up. */
SL_MUST_CHECK bool sl_history_done_of(
	struct sl_history_store *store, enum sl_history_level level, int64_t *out);
/* Deletes a few of the oldest rows of a level before `before`. */
SL_MUST_CHECK bool sl_history_drop_oldest(
	struct sl_history_store *store, enum sl_history_level level, int64_t before);
SL_MUST_CHECK bool sl_history_hold_size(
	struct sl_history_store *store, const struct sl_history_keep *keep, int64_t now);

#endif
