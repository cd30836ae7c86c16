/*
 * answers - a function per kind of question about the past (history/usage.c has the most frequent
 * kind)
 *
 * sl_history_query() calls them (history/query.h). The page adds the latest events, which the
 * daemon keeps itself, and filters them by the same rule: sl_history_event_wanted().
 */
#ifndef SL_DAEMON_HISTORY_ANSWERS_H
#define SL_DAEMON_HISTORY_ANSWERS_H

#include <jansson.h>

#include "daemon/history/query.h"
#include "daemon/history/read.h"

/* Whether the question asks for this event, apart from ask->name. to_ms 0: no bound. */
bool sl_history_event_wanted(
	const struct sl_history_ask *ask, const struct sl_msg_event_row *row);
/* Whether rows must be filtered after reading, so that reading the newest `last` is not enough. */
bool sl_history_events_sift(const struct sl_history_ask *ask);

/* Writes JSON to out; SL_HISTORY_STORE_*. If the reader gives up, what it found by then is still an
 * answer, which says that it is incomplete, why, and how far back it reaches. */
SL_MUST_CHECK int sl_history_events(struct sl_history_reader *reader,
	const struct sl_history_ask *ask, FILE *out, struct sl_error *err);

typedef void (*sl_history_event_fn)(void *context, const struct sl_msg_event_row *event);
/* Calls fn with the newest `last` wanted events, oldest first; SL_HISTORY_STORE_*. BUSY ends the
 * reading, and fn has got the events found by then. *reached: the serial of the last row read, 0:
 * none; may be NULL. */
SL_MUST_CHECK int sl_history_events_each(struct sl_history_reader *reader,
	const struct sl_history_ask *ask, uint64_t last, sl_history_event_fn fn,
	void *context, uint64_t *reached, struct sl_error *err);

/* One workload over time, with its events; likewise. */
SL_MUST_CHECK int sl_history_series(struct sl_history_reader *reader,
	const struct sl_history_ask *ask, FILE *out, struct sl_error *err);
/* The history of programs, as policy/figures/advise.h sees it; likewise. */
SL_MUST_CHECK int sl_history_advice(struct sl_history_reader *reader,
	const struct sl_history_ask *ask, FILE *out, struct sl_error *err);

/* --- shared by the writers of JSON answers ---------------------------------------------------- */

/* A JSON array that is being written, one member a line. */
struct sl_history_list {
	FILE *out;
	bool any;
};
/* Takes object; NULL is none. */
void sl_history_list_put(struct sl_history_list *list, json_t *object);
/* The workload number that name is ("7"); -1: it is not a number. */
int64_t sl_history_number_of(const char *name);

#endif
