/*
 * runs - merges equal seconds into one row
 *
 * An idle workload must cost nothing: a row stays open while each next stretch equals the one
 * before, at most until the end of the minute. Pure; memory from malloc. One thread.
 */
#ifndef SL_DAEMON_HISTORY_RUNS_H
#define SL_DAEMON_HISTORY_RUNS_H

#include "daemon/core/map.h"
#include "daemon/history/store.h"

/* Rows to be written. */
struct sl_history_rows {
	struct sl_history_row *all;
	size_t count, room;
};
/* 0 or -ENOMEM. */
SL_MUST_CHECK int sl_history_rows_add(
	struct sl_history_rows *rows, const struct sl_history_row *row);
void sl_history_rows_fini(struct sl_history_rows *rows);

struct sl_history_run {
	struct sl_history_row row;  /* as of now */
	struct sl_history_row last; /* the stretch that was added last */
	bool told;                  /* sl_history_runs_tell has given out all of it */
};

/* Zeroed is empty. */
struct sl_history_runs {
	enum sl_history_kind kind;
	struct sl_map by_key;
	struct sl_history_run **all;
	size_t count, room;
};

/* Adds one stretch: span seconds from t of one GPU and workload. row has its column values for the
 * whole stretch. The stretch lies within one minute, and after those added before for the same GPU
 * and workload. Rows that end now go to out. 0 or -ENOMEM. */
SL_MUST_CHECK int sl_history_runs_add(struct sl_history_runs *runs,
	const struct sl_history_row *row, struct sl_history_rows *out);
/* Ends the runs that nothing was added to up to `end`. */
SL_MUST_CHECK int sl_history_runs_sweep(
	struct sl_history_runs *runs, int64_t end, struct sl_history_rows *out);
/* Puts copies of open rows into out. They stay open: the same key comes again later with a longer
 * span. */
SL_MUST_CHECK int sl_history_runs_tell(
	struct sl_history_runs *runs, struct sl_history_rows *out);
void sl_history_runs_fini(struct sl_history_runs *runs);

#endif
