/*
 * job_record - the stored state of the only job there is, read and changed by a test
 *
 * dir: the daemon's data_dir. A failing call fails the test.
 */
#ifndef SL_TESTS_DAEMON_JOB_RECORD_H
#define SL_TESTS_DAEMON_JOB_RECORD_H

#include "../../base/test.h"

#include <stdio.h>
#include <string.h>

#include "daemon/store/store.h"

struct job_record {
	uint64_t number;
	char text[4096];
};

static inline bool job_record_take(
	void *context, uint64_t number, const char *text, struct sl_error *why)
{
	struct job_record *record = context;

	record->number = number;
	(void)snprintf(record->text, sizeof(record->text), "%s", text);
	return true;
}

static inline struct sl_store *job_record_open(const char *dir, struct job_record *record)
{
	struct sl_store *store = NULL;
	struct sl_error err;

	*record = (struct job_record){0};
	assert_int_equal(sl_store_new("/nowhere", dir, &store), 0);
	if (sl_store_load(store, SL_KIND_JOB, job_record_take, record, &err) !=
		SL_STORE_OK)
		fail_msg("%s", err.text);
	return store;
}

/* While the daemon runs, too. */
static inline bool job_record_has(const char *dir, const char *words)
{
	struct job_record record;

	(void)sl_store_free(job_record_open(dir, &record));
	return strstr(record.text, words);
}

static inline void job_record_done(void *context, int r, const struct sl_error *err)
{
	assert_string_equal(err->text, "");
}

/* Without a daemon; the words to be replaced must be there. */
static inline void job_record_edit(const char *dir, const char *from, const char *to)
{
	struct sl_store_change *change = sl_store_change_new();
	struct job_record record;
	struct sl_store *store = job_record_open(dir, &record);
	char text[8192], *at;

	at = strstr(record.text, from);
	if (!at)
		fail_msg("no %s in %s", from, record.text);
	(void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - record.text),
		record.text, to, at + strlen(from));
	sl_store_put(change, SL_KIND_JOB, record.number, text);
	assert_int_equal(sl_store_commit(store, change, job_record_done, NULL), 0);
	sl_store_finish(store);
	store = sl_store_free(store);
}

#endif
