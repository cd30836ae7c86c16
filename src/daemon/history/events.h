/*
 * events - what happened, as far back as it is kept, and which of it is asked for
 *
 * As history/query.h, whose sl_history_query() calls sl_history_events(). Whoever has events of
 * another source (the daemon keeps the latest) judges them by the same rule.
 */
#ifndef SL_DAEMON_HISTORY_EVENTS_H
#define SL_DAEMON_HISTORY_EVENTS_H

#include <jansson.h>

#include "daemon/history/query.h"
#include "daemon/history/read.h"

/* Is it what is asked for, whomever it is about (ask->name)? to_ms 0 is no bound. */
bool sl_history_event_wanted(
	const struct sl_history_ask *ask, const struct sl_msg_event_row *row);
/* Must more be read than the newest `last`, since those that are wanted are known only when they
 * are seen? */
bool sl_history_events_sift(const struct sl_history_ask *ask);

/* Writes JSON to out; SL_HISTORY_STORE_*. What was found until the reader gave up is an answer,
 * too: it says that it is not complete, why, and how far back it has come. */
SL_MUST_CHECK int sl_history_events(struct sl_history_reader *reader,
	const struct sl_history_ask *ask, FILE *out, struct sl_error *err);

typedef void (*sl_history_event_fn)(void *context, const struct sl_msg_event_row *event);
/* The newest `last` of those that are asked for, oldest first; SL_HISTORY_STORE_*. On BUSY, which
 * ends the reading, fn had those that were found by then.
 * *reached: the serial of the last row that was looked at, 0: of none; may be NULL. */
SL_MUST_CHECK int sl_history_events_each(struct sl_history_reader *reader,
	const struct sl_history_ask *ask, uint64_t last, sl_history_event_fn fn,
	void *context, uint64_t *reached, struct sl_error *err);

/* --- for who writes answers about workloads --------------------------------------------------- */

/* Members of an array of JSON, a line each. */
struct sl_history_list {
	FILE *out;
	bool any;
};
/* Takes object; NULL is none. */
void sl_history_list_put(struct sl_history_list *list, json_t *object);
/* "7" is a workload's number, too; -1: this is none. */
int64_t sl_history_number_of(const char *name);
void sl_history_take_text(sqlite3_stmt *statement, int column, char *out, size_t size);

#endif
