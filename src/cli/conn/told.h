/*
 * told - an event or a reason as the daemon tells it (EVENT_ROW), as a sentence and as JSON
 *
 * The words are those of reason.def and come through sl_reason_sentence; there are none here. Pure.
 */
#ifndef SL_CLI_CONN_TOLD_H
#define SL_CLI_CONN_TOLD_H

#include "cli/line/cli.h"
#include "daemon/tell.h"

/* Says that the daemon refused, with its own text and, where there is one, a hint; NULL for none.
 * Returns status. */
int sl_told_refusal(enum sl_verb_id verb, bool json, uint32_t reason, const char *text,
	const char *hint);

/* What the daemon adds to a yes: on standard error; nothing for "". Tames text. */
void sl_told_warning(enum sl_verb_id verb, char *text);

#endif
