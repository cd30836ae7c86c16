/*
 * sums - what the history counts, as sums since the start, for metrics
 *
 * Counting belongs to the scribe's thread. Who reads gets a copy that nobody changes any more,
 * handed over by one pointer: neither side ever waits for the other.
 *
 * Users and projects are as many as people bring: the first SL_HISTORY_SUMS_MAX of each since the
 * start have sums of their own, all others share one.
 */
#ifndef SL_DAEMON_HISTORY_SUMS_H
#define SL_DAEMON_HISTORY_SUMS_H

#include "daemon/history/store.h"

#define SL_HISTORY_SUMS_MAX 256
/* The key of all others; no user's number, and not the name of a project that anybody made. */
#define SL_HISTORY_SUMS_OTHERS "(others)"

enum sl_history_sum_of {
	SL_HISTORY_OF_GPU = 0,
	SL_HISTORY_OF_USER,
	SL_HISTORY_OF_PROJECT,
	SL_HISTORY_OFS
};

struct sl_history_sum {
	char key[64], name[64]; /* UUID, number of a user, project; a user's name */
	/* The columns of history/columns.def that these are sums of. Of GPUs allocated, idle, known
	 * and busy; of others all but the last two. */
	uint64_t allocated_us, used_us, idle_us, waiting_ms, waits, turns;
	uint64_t known_ms, busy_us;
};

/* The scribe's. Zeroed is empty. */
struct sl_history_summing {
	struct sl_history_sum all[SL_HISTORY_OFS][SL_HISTORY_SUMS_MAX + 1];
	uint32_t count[SL_HISTORY_OFS];
};

/* Where the thing's sums are; one that is new begins with 0. */
uint32_t sl_history_summing_find(struct sl_history_summing *summing,
	enum sl_history_sum_of of, const char *key, const char *name);
/* A row, which is in no other: of a workload's use of a GPU, and of a GPU. */
void sl_history_summing_use(struct sl_history_summing *summing, uint32_t user,
	uint32_t project, const int64_t value[SL_HISTORY_USE_COLUMNS]);
void sl_history_summing_gpu(struct sl_history_summing *summing, uint32_t gpu,
	const int64_t value[SL_HISTORY_GPU_COLUMNS]);

/* What is handed over. */
struct sl_history_sums {
	unsigned int users; /* the reader's, who counts them */
	bool well;          /* it is being written */
	uint64_t rows, dropped, bytes;
	uint64_t written_ms; /* since 1970; 0: not yet */
	uint32_t first[SL_HISTORY_OFS], count[SL_HISTORY_OFS]; /* places in all */
	struct sl_history_sum all[];
};

/* A copy, with one user and nothing of the history itself; summing may be NULL. NULL: no memory. */
struct sl_history_sums *sl_history_sums_of(const struct sl_history_summing *summing);
/* One user less; NULL is fine; returns NULL. */
struct sl_history_sums *sl_history_sums_put(struct sl_history_sums *sums);

#endif
