/*
 * sql - runs SQL on a database file by a connection of its own, for tests
 *
 * A failing call fails the test.
 */
#ifndef SL_TESTS_DAEMON_SQL_H
#define SL_TESTS_DAEMON_SQL_H

#include "../base/test.h"

#include <sqlite3.h>

static inline void sql_run(const char *path, const char *text)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	/* The daemon may be writing. */
	assert_int_equal(sqlite3_busy_timeout(db, 10000), SQLITE_OK);
	if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", text, sqlite3_errmsg(db));
	(void)sqlite3_close(db);
}

#endif
