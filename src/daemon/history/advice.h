/*
 * advice - feeds the history of programs to policy/figures/advise.h, and writes what it advises
 *
 * Called by sl_history_query() (history/query.h). Writes JSON to out; returns SL_HISTORY_STORE_*.
 */
#ifndef SL_DAEMON_HISTORY_ADVICE_H
#define SL_DAEMON_HISTORY_ADVICE_H

#include "daemon/history/query.h"
#include "daemon/history/read.h"

SL_MUST_CHECK int sl_history_advice(struct sl_history_reader *reader,
	const struct sl_history_ask *ask, FILE *out, struct sl_error *err);

#endif
