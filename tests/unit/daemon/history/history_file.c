/* history_file - see the header */
#include "history_file.h"
#include "../sql.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char history_folder[64], history_path[128];

int history_open_folder(void **state)
{
	/* Thousands of small transactions; a disk would only be slow. */
	(void)snprintf(history_folder, sizeof(history_folder), "%s/sl-history-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(history_folder));
	(void)snprintf(history_path, sizeof(history_path), "%s/%s", history_folder,
		SL_HISTORY_FILE);
	return 0;
}

int history_remove_folder(void **state)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", history_folder);
	return system(command);
}

struct sl_history_store *history_open_store(void)
{
	struct sl_history_store *store = NULL;
	struct sl_error err = {0};

	if (sl_history_store_open(history_path, &store, &err) != SL_HISTORY_STORE_OK)
		fail_msg("%s", err.text);
	return store;
}

/* For ever, as far as tests go. */
const struct sl_history_keep history_everything = {
	.seconds = {1 << 30, 1 << 30, 1 << 30}, .events = 1000};

void history_write(struct sl_history_store *store, const struct sl_history_batch *batch,
	int64_t now, const struct sl_history_keep *keep)
{
	struct sl_error err = {0};

	if (sl_history_store_write(store, batch, now, keep, &err) != SL_HISTORY_STORE_OK)
		fail_msg("%s", err.text);
}

void history_run(const char *sql)
{
	sql_run(history_path, sql);
}

int64_t history_number(const char *sql)
{
	sqlite3_stmt *statement = NULL;
	sqlite3 *db = NULL;
	int64_t value;

	assert_int_equal(sqlite3_open(history_path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	value = sqlite3_column_int64(statement, 0);
	(void)sqlite3_finalize(statement);
	(void)sqlite3_close(db);
	return value;
}
