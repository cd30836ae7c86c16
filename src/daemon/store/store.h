/*
 * store - the records that outlive the daemon: two SQLite databases and the thread that writes them
 *
 * A record is a kind (store/kinds.def), a number and a text, with a checksum over all three. A
 * change is a list of records to put and to drop. It is carried out completely or not at all,
 * whenever the daemon dies. A change of state.db is reported as done after its fsync; run.db ends
 * with the boot, so it is never fsynced. Changes of a database are carried out in their order,
 * those of run.db first.
 *
 * All calls are the loop's, and none but sl_store_load() and sl_store_finish() waits for the disk.
 */
#ifndef SL_DAEMON_STORE_STORE_H
#define SL_DAEMON_STORE_STORE_H

#include "daemon/store/kinds.h"

struct sl_field;
struct sl_store;
struct sl_store_change;

/* What the thread does beside the records of a change; the caller's struct begins with it. */
struct sl_store_step {
	/* Called before the records are written. 0, or negative errno, and err says why: then they
	 * are not written. */
	int (*before)(struct sl_store_step *step, struct sl_error *err);
	/* Called afterwards, unless before failed. r: what done is told. May be NULL. */
	void (*after)(struct sl_store_step *step, int r);
};

/* Starts the thread. The folders are made when something is written. 0 or negative errno. */
SL_MUST_CHECK int sl_store_new(
	const char *run_folder, const char *state_folder, struct sl_store **out);
/* Writes what waits, and reports nothing. Accepts NULL; returns NULL. */
struct sl_store *sl_store_free(struct sl_store *store);
/* The path of the database with records of this kind. */
const char *sl_store_path(const struct sl_store *store, enum sl_store_kind kind);

/* Calls take for each undamaged record, by ascending number; text ends with NUL. take returns false
 * if the record is not valid, and sets why. SL_STORE_*. Waits up to 2 s for another program's
 * lock. */
SL_MUST_CHECK int sl_store_load(struct sl_store *store, enum sl_store_kind kind,
	bool (*take)(
		void *context, uint64_t number, const char *text, struct sl_error *why),
	void *context, struct sl_error *err);

/* A new change, or NULL without memory; the calls below accept NULL. */
struct sl_store_change *sl_store_change_new(void);
struct sl_store_change *sl_store_change_free(struct sl_store_change *change);
/* Copies text; NULL: there was no memory for it. Replaces the record of that number. */
void sl_store_put(struct sl_store_change *change, enum sl_store_kind kind,
	uint64_t number, const char *text);
/* The same with an object of `size` bytes, which is copied; the thread makes the text of it
 * (store/record.h). fields are constant. */
void sl_store_put_object(struct sl_store_change *change, enum sl_store_kind kind,
	uint64_t number, const struct sl_field *fields, size_t field_count,
	const void *object, size_t size);
void sl_store_drop(
	struct sl_store_change *change, enum sl_store_kind kind, uint64_t number);
/* Drops all records of a kind, damaged ones, too. A change that begins with this has all that is to
 * be stored. So it may begin a new database, if the old one was moved away or replaced; other
 * changes then fail. */
void sl_store_clear(struct sl_store_change *change, enum sl_store_kind kind);
/* The next number of that kind, as a record of state.db. */
void sl_store_put_number(
	struct sl_store_change *change, enum sl_store_kind kind, uint64_t next);
/* As sl_store_load(); *next stays as it was without such a record. */
SL_MUST_CHECK int sl_store_load_number(struct sl_store *store, enum sl_store_kind kind,
	uint64_t *next, struct sl_error *err);
/* The change frees the step after done; it may have no records then. NULL: there was no memory for
 * it. */
void sl_store_add_step(struct sl_store_change *change, struct sl_store_step *step);
/* Takes the change over in every case, and hands it to the thread. done: see sl_store_take(). All
 * records belong to one database. 0, or -ENOMEM: nothing will change, and done is not called. */
SL_MUST_CHECK int sl_store_commit(struct sl_store *store, struct sl_store_change *change,
	void (*done)(void *context, int r, const struct sl_error *err), void *context);

/* Readable when changes are over. */
int sl_store_fd(const struct sl_store *store);
/* Calls done for each change that is over. r: 0, or negative errno, and err says what failed and
 * the remedy; then the database is as before. (If the last fsync failed, the change may be
 * there.) */
void sl_store_take(struct sl_store *store);
/* The same until no change is under way. */
void sl_store_finish(struct sl_store *store);

#endif
