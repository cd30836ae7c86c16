/*
 * told - an event or a reason of the daemon (EVENT_ROW) as a sentence and as JSON
 *
 * The words are those of reason.def, through sl_reason_sentence. Pure.
 */
#ifndef SL_CLI_CONN_TOLD_H
#define SL_CLI_CONN_TOLD_H

#include "cli/line/cli.h"
#include "daemon/report/tell.h"

/* Reports a refusal with the daemon's text and a hint, NULL for none. Returns status. */
int sl_told_refusal(enum sl_verb_id verb, bool json, uint32_t reason, const char *text,
	const char *hint);

/* Prints the daemon's remark on a success on standard error; nothing for "". Tames text. */
void sl_told_warning(enum sl_verb_id verb, char *text);

#endif
