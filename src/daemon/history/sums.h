/*
 * sums - what the history counts, as sums since the start, for metrics
 *
 * The scribe's thread counts. A reader gets a constant copy, handed over by one pointer, so neither
 * side waits for the other.
 *
 * The number of users and projects is unbounded: the first SL_HISTORY_SUMS_MAX of each since the
 * start have sums of their own, all others share one.
 */
#ifndef SL_DAEMON_HISTORY_SUMS_H
#define SL_DAEMON_HISTORY_SUMS_H

#include <stdatomic.h>

#include "daemon/history/store.h"

#define SL_HISTORY_SUMS_MAX 256
/* The key of all others; neither a user's number nor a valid name of a project. */
#define SL_HISTORY_SUMS_OTHERS "(others)"

enum sl_history_sum_of {
	SL_HISTORY_OF_GPU = 0,
	SL_HISTORY_OF_USER,
	SL_HISTORY_OF_PROJECT,
	SL_HISTORY_OFS
};

struct sl_history_sum {
	char key[64], name[64]; /* UUID, user number or project; name of a user */
	/* Sums of these columns of history/columns.def. Of GPUs: allocated, idle, known and busy;
	 * of users and projects: all but the last two. */
	uint64_t allocated_us, used_us, idle_us, waiting_ms, waits, turns;
	uint64_t known_ms, busy_us;
};

/* The scribe's. Zeroed is empty. */
struct sl_history_summing {
	struct sl_history_sum all[SL_HISTORY_OFS][SL_HISTORY_SUMS_MAX + 1];
	uint32_t count[SL_HISTORY_OFS];
};

/* Index of the sums of this key; a new one begins at 0. */
uint32_t sl_history_summing_find(struct sl_history_summing *summing,
	enum sl_history_sum_of of, const char *key, const char *name);
/* Adds a row: of a workload's use of a GPU, or of a GPU. Each row is added once. */
void sl_history_summing_use(struct sl_history_summing *summing, uint32_t user,
	uint32_t project, const int64_t value[SL_HISTORY_USE_COLUMNS]);
void sl_history_summing_gpu(struct sl_history_summing *summing, uint32_t gpu,
	const int64_t value[SL_HISTORY_GPU_COLUMNS]);

/* The copy that is handed over. */
struct sl_history_sums {
	atomic_uint users; /* references */
	bool well;         /* the file is being written without errors */
	uint64_t rows, dropped, bytes;
	uint64_t written_ms; /* milliseconds since 1970; 0: not yet */
	uint32_t first[SL_HISTORY_OFS], count[SL_HISTORY_OFS]; /* ranges in all */
	struct sl_history_sum all[];
};

/* A copy with one reference, without figures of the history itself; summing may be NULL. NULL: no
 * memory. */
struct sl_history_sums *sl_history_sums_of(const struct sl_history_summing *summing);
/* Drops one reference; NULL is fine; returns NULL. */
struct sl_history_sums *sl_history_sums_put(struct sl_history_sums *sums);

#endif
