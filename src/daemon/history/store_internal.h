/*
 * store_internal - what history/database.c, history/tables.c and history/tidy.c share; nobody
 * else includes it
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
	/* What goes first while room is short, -1: not chosen; and when that was chosen
	 * (history/size.c). */
	int victim;
	int64_t chosen_at;
};

/* SQL that is put together; what does not fit is cut, and SQLite then refuses it. */
struct sl_history_sql {
	char sql[4096];
	size_t used;
};
void sl_history_sql_add(struct sl_history_sql *text, const char *format, ...)
	SL_PRINTF(2, 3);
/* All columns of a table of the kind by name: in a file that was changed they stand in another
 * order. */
void sl_history_sql_add_names(struct sl_history_sql *text, enum sl_history_kind kind);
SL_MUST_CHECK bool sl_history_sql_run(struct sl_history_store *store, const char *sql);
/* The first number that sql gives; 0 where it is NULL. */
SL_MUST_CHECK bool sl_history_sql_ask(
	struct sl_history_store *store, const char *sql, int64_t *out);

/* Makes the tables, or what is new in those of an older sluiced. False: SQLite says why, and a
 * transaction may be open. */
SL_MUST_CHECK bool sl_history_tables_look(struct sl_history_store *store, bool *is_newer);
/* What SQLite says, as one of the outcomes and its sentence. undo: the same, and the transaction is
 * rolled back. */
SL_MUST_CHECK int sl_history_store_failed(
	struct sl_history_store *store, const char *what, struct sl_error *err);
SL_MUST_CHECK int sl_history_store_undo(
	struct sl_history_store *store, const char *what, struct sl_error *err);

/* Where what is not ahead of `now` ends, and where the last of what is begins; 0: there is none, or
 * it is known (history/back.c). */
SL_MUST_CHECK bool sl_history_read_end(
	struct sl_history_store *store, int64_t now, int64_t *end, int64_t *ahead);

/* Parts of sl_history_store_write(), within its transaction. False: SQLite says why. */
SL_MUST_CHECK bool sl_history_clear_ahead(struct sl_history_store *store, int64_t now);
SL_MUST_CHECK bool sl_history_come_again(struct sl_history_store *store, int64_t now);
SL_MUST_CHECK bool sl_history_roll_up(struct sl_history_store *store, int64_t now);
SL_MUST_CHECK bool sl_history_tidy(
	struct sl_history_store *store, int64_t now, const struct sl_history_keep *keep);

/* A level is rolled up to where. */
SL_MUST_CHECK bool sl_history_done_of(
	struct sl_history_store *store, enum sl_history_level level, int64_t *out);
/* The oldest rows of a level before `before`, a few. */
SL_MUST_CHECK bool sl_history_drop_oldest(
	struct sl_history_store *store, enum sl_history_level level, int64_t before);
SL_MUST_CHECK bool sl_history_hold_size(
	struct sl_history_store *store, const struct sl_history_keep *keep, int64_t now);

#endif
