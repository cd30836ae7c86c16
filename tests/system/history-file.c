/*
 * history-file FILE check | number SQL | run SQL | lock SECONDS | fill HOURS WORKLOADS
 *
 * A test's access to the daemon's history without the daemon: checks it, asks it, changes it,
 * holds it locked, or fills it with made-up hours up to now.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int fail(sqlite3 *db, const char *what)
{
	(void)fprintf(stderr, "history-file: %s: %s\n", what, sqlite3_errmsg(db));
	return 1;
}

/* Prints the first value; the text of a check is "ok". */
static int ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK ||
		sqlite3_step(statement) != SQLITE_ROW)
		return fail(db, sql);
	(void)printf("%s\n", (const char *)sqlite3_column_text(statement, 0));
	(void)sqlite3_finalize(statement);
	return 0;
}

static int run(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(db, sql);
}

static int fill(sqlite3 *db, long hours, long workloads)
{
	char sql[1024];

	(void)snprintf(sql, sizeof(sql),
		"BEGIN; WITH RECURSIVE h(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM h "
		"WHERE i < %ld), w(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM w WHERE n "
		"< "
		"%ld) INSERT OR REPLACE INTO hours (t, gpu, workload, span, resident, "
		"request, allocated_us) SELECT %lld / 3600 * 3600 - i * 3600, 1, 1000000 "
		"+ "
		"n, 3600, i * n, 1000, 1000000 FROM h, w; INSERT OR REPLACE INTO "
		"workloads "
		"(id, number, name, uid, user, project, program, gpus, begun_ms, "
		"ended_ms) "
		"WITH RECURSIVE w(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM w WHERE n "
		"< "
		"%ld) SELECT 1000000 + n, n, 'old' || n, n %% 7, 'u' || (n %% 7), 'p', "
		"'prog' "
		"|| (n %% 5), 1, 1, 9e12 FROM w; COMMIT",
		hours, workloads, (long long)time(NULL), workloads);
	return run(db, sql);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";
	sqlite3 *db = NULL;
	int r = 2;

	if (argc < 3 ||
		sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		return argc < 3 ? 2 : fail(db, argv[1]);
	(void)sqlite3_busy_timeout(db, 5000);
	if (strcmp(what, "check") == 0)
		r = ask(db, "PRAGMA integrity_check");
	else if (strcmp(what, "number") == 0 && argc > 3)
		r = ask(db, argv[3]);
	else if (strcmp(what, "run") == 0 && argc > 3)
		r = run(db, argv[3]);
	else if (strcmp(what, "fill") == 0 && argc > 4)
		r = fill(db, atol(argv[3]), atol(argv[4]));
	else if (strcmp(what, "lock") == 0 && argc > 3 &&
		 run(db, "BEGIN IMMEDIATE") == 0) {
		(void)printf("locked\n");
		(void)fflush(stdout);
		(void)sleep((unsigned int)atoi(argv[3]));
		r = run(db, "COMMIT");
	}
	(void)sqlite3_close(db);
	return r;
}
