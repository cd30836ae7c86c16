/*
 * series - one workload over time, with its events
 *
 * Called by sl_history_query() (history/query.h). Writes JSON to out; returns SL_HISTORY_STORE_*.
 */
#ifndef SL_DAEMON_HISTORY_SERIES_H
#define SL_DAEMON_HISTORY_SERIES_H

#include "daemon/history/query.h"
#include "daemon/history/read.h"

SL_MUST_CHECK int sl_history_series(struct sl_history_reader *reader,
	const struct sl_history_ask *ask, FILE *out, struct sl_error *err);

#endif
