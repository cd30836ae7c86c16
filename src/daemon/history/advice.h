/*
 * advice - what programs needed, as policy/figures/advise.h wants it, and what it makes of
 * it
 *
 * As history/query.h, whose sl_history_query() calls it. Writes JSON to out; SL_HISTORY_STORE_*.
 */
#ifndef SL_DAEMON_HISTORY_ADVICE_H
#define SL_DAEMON_HISTORY_ADVICE_H

#include "daemon/history/query.h"
#include "daemon/history/read.h"

SL_MUST_CHECK int sl_history_advice(struct sl_history_reader *reader,
	const struct sl_history_ask *ask, FILE *out, struct sl_error *err);

#endif
