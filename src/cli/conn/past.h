/*
 * past - the common part of `history` and `advise`: the daemon answers with a file
 */
#ifndef SL_CLI_CONN_PAST_H
#define SL_CLI_CONN_PAST_H

#include <jansson.h>
#include <time.h>

#include "cli/line/cli.h"
#include "cli/conn/conn.h"
#include "cli/conn/rows.h"

/* Asks, and reads the answer into *text (free(3)), NUL-terminated. Returns -1 to go on, else the
 * exit status, after a message. */
SL_MUST_CHECK int sl_past_fetch(enum sl_verb_id verb, bool json,
	const struct sl_msg_history *ask, char **text, size_t *size);

/* Appends stored events (HISTORY_EVENTS), oldest first, to rows. Outcomes of sl_conn_open;
 * SL_EXIT_REFUSED if no history is written. gap: why some may be missing, "" if none are. */
SL_MUST_CHECK int sl_past_events(const struct sl_msg_history *ask, struct sl_rows *rows,
	struct sl_error *gap, struct sl_error *err);

/* Parses the answer into a JSON value that the caller owns. Returns as above. */
SL_MUST_CHECK int sl_past_parse(
	enum sl_verb_id verb, const char *text, size_t size, json_t **answer);

/* Parses a local time: "2026-11-22 10:00", "2026-11-22", "10:00" (today), "now", or seconds since
 * 1970 behind an @. Milliseconds since 1970 into *out. False: err says what to write. now:
 * seconds. */
SL_MUST_CHECK bool sl_past_time(
	const char *text, time_t now, uint64_t *out, struct sl_error *err);

#endif
