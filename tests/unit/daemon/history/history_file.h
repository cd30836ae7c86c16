/*
 * history_file - a file of the history in a folder of its own, for tests
 *
 * A failing call fails the test.
 */
#ifndef SL_TESTS_DAEMON_HISTORY_FILE_H
#define SL_TESTS_DAEMON_HISTORY_FILE_H

#include "../../base/test.h"

#include "daemon/history/store.h"

extern char history_folder[64], history_path[128];
/* For ever, as far as tests go. */
extern const struct sl_history_keep history_everything;

/* Of cmocka. */
int history_open_folder(void **state);
int history_remove_folder(void **state);

struct sl_history_store *history_open_store(void);
void history_write(struct sl_history_store *store, const struct sl_history_batch *batch,
	int64_t now, const struct sl_history_keep *keep);
/* By a connection of its own: runs SQL; asks for a number. */
void history_run(const char *sql);
int64_t history_number(const char *sql);

#endif
