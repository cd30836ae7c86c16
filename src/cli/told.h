/*
 * told - an event or a reason as the daemon tells it (EVENT_ROW), as a sentence and as JSON
 *
 * The words are those of reason.def and come through sl_reason_sentence; there are none here. Pure.
 */
#ifndef SL_CLI_TOLD_H
#define SL_CLI_TOLD_H

#include "cli/cli.h"
#include "wire/wire.h"

#include <jansson.h>

#define SL_TOLD_TEXT_MAX 640

/* The sentence without final stop, harmless to show. Of a reason that a newer daemon has, its number.
 * Returns buf. */
const char *sl_told_sentence(const struct sl_msg_event_row *row, char *buf, size_t size);

/* All of it: reason, kind, sentence and every number. NULL when out of memory. */
json_t *sl_told_json(const struct sl_msg_event_row *row);

/* Says that the daemon refused, with its own text and, where there is one, a hint; NULL for none.
 * Returns status. */
int sl_told_refusal(enum sl_verb_id verb, bool json, uint32_t reason, const char *text,
	const char *hint);

/* What the daemon adds to a yes: on standard error; nothing for "". Tames text. */
void sl_told_warning(enum sl_verb_id verb, char *text);

#endif
