/*
 * database - one SQLite database of the store: reading records, carrying out changes
 *
 * Used by one thread at a time. The database stays open, in SQLite's rollback mode: after a kill
 * the next opening takes back what was not committed. Private to store/.
 */
#ifndef SL_DAEMON_STORE_DATABASE_H
#define SL_DAEMON_STORE_DATABASE_H

#include <sqlite3.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/paths.h"
#include "daemon/store/kinds.h"

struct sl_store_item {
	enum sl_store_kind kind;
	enum { SL_ITEM_PUT, SL_ITEM_DROP, SL_ITEM_CLEAR } what;
	uint64_t number;
	/* Of PUT: the text, or an object that it is made of. */
	char *text;
	void *object;
	const struct sl_field *fields;
	size_t field_count;
};

struct sl_store_step;

struct sl_store_change {
	struct sl_link link;
	struct sl_store_item *items;
	size_t count, room;
	struct sl_store_step *step;
	bool failed; /* no memory for an item */
	void (*done)(void *context, int r, const struct sl_error *err);
	void *context;
	/* Once it is over. */
	int result;
	struct sl_error err;
};

struct sl_database {
	enum sl_store_database which;
	sqlite3 *db;           /* NULL: closed */
	ino_t inode;           /* of the file that was read or written; 0: none yet */
	bool checked, ready;   /* looked for damage; has all tables */
	struct sl_error doubt; /* what the check found */
	char folder[SL_PATH_MAX], path[SL_PATH_MAX + 16];
};

enum sl_store_database sl_store_database_of(enum sl_store_kind kind);
void sl_database_init(
	struct sl_database *database, enum sl_store_database which, const char *folder);
void sl_database_close(struct sl_database *database);
/* See sl_store_load(). */
SL_MUST_CHECK int sl_database_load(struct sl_database *database, enum sl_store_kind kind,
	bool (*take)(
		void *context, uint64_t number, const char *text, struct sl_error *why),
	void *context, struct sl_error *err);
/* 0, or negative errno: err says why, and the database is as before. */
SL_MUST_CHECK int sl_database_write(struct sl_database *database,
	const struct sl_store_change *change, struct sl_error *err);

#endif
