/*
 * store - projects in an SQLite database, written by a thread of its own
 *
 * The loop fills a set and hands it over; the thread waits for a slow or full disk, or for another
 * program's lock on the database. A set is written whole in one transaction: after a crash the
 * database holds the former set or the new one. One write at a time. All calls are the loop's. The
 * database is closed between writes, so a database that was moved away or put back is noticed.
 */
#ifndef SL_DAEMON_PROJECTS_STORE_H
#define SL_DAEMON_PROJECTS_STORE_H

#include "daemon/projects/projects.h"

#define SL_PROJECTS_STORE_FILE "projects.db"

/* The stored rows, and the next id; no id is given twice. */
struct sl_projects_stored {
	struct sl_projects set;
	uint64_t next_id;
};

enum {
	SL_PROJECTS_STORE_OK = 0,
	SL_PROJECTS_STORE_BAD /* err names the database, the fault and the remedy */
};

/* Reads the database in `folder`, if there is one, into *out, which was empty. Blocks up to 2 s. */
SL_MUST_CHECK int sl_projects_store_load(
	const char *folder, struct sl_projects_stored *out, struct sl_error *err);
/* Writes the database; makes folder and database if they do not exist. */
SL_MUST_CHECK int sl_projects_store_save(const char *folder,
	const struct sl_projects_stored *stored, struct sl_error *err);

struct sl_projects_store;

/* Starts the thread. 0 or negative errno. */
SL_MUST_CHECK int sl_projects_store_new(
	const char *folder, struct sl_projects_store **out);
/* Waits for the write in progress. Accepts NULL; returns NULL. */
struct sl_projects_store *sl_projects_store_free(struct sl_projects_store *store);
/* Readable when a write is over. */
int sl_projects_store_fd(const struct sl_projects_store *store);
/* Hands over *stored, which the thread reads until sl_projects_store_take() returns true. Start the
 * next write only then. */
void sl_projects_store_start(
	struct sl_projects_store *store, const struct sl_projects_stored *stored);
/* True once for each write that is over; *result is an outcome of sl_projects_store_save. */
SL_MUST_CHECK bool sl_projects_store_take(
	struct sl_projects_store *store, int *result, struct sl_error *err);

#endif
