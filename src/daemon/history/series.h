/*
 * series - one workload over time, with what happened to it
 *
 * As history/query.h, whose sl_history_query() calls it. Writes JSON to out; SL_HISTORY_STORE_*.
 */
#ifndef SL_DAEMON_HISTORY_SERIES_H
#define SL_DAEMON_HISTORY_SERIES_H

#include "daemon/history/query.h"
#include "daemon/history/read.h"

SL_MUST_CHECK int sl_history_series(struct sl_history_reader *reader,
	const struct sl_history_ask *ask, FILE *out, struct sl_error *err);

#endif
