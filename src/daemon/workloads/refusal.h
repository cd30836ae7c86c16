/*
 * refusal - why a workload was not admitted, in one sentence with the numbers
 */
#ifndef SL_DAEMON_WORKLOADS_REFUSAL_H
#define SL_DAEMON_WORKLOADS_REFUSAL_H

#include "daemon/state/daemon.h"

/* From daemon->admission: what was wanted, what is available, on which GPU, and the remedy. */
void sl_refusal_text(const struct sl_daemon *daemon, const struct sl_workload *workload,
	uint32_t gpu_count, uint32_t usable, bool masked, struct sl_error *text);
/* Likewise, for a change that was refused. */
void sl_refusal_of_set(const struct sl_daemon *daemon, const struct sl_workload *workload,
	struct sl_error *text);

/* Its compute request of request_pm does not fit on these GPUs: names the one with most left, and
 * the remedy. */
void sl_refusal_of_time(const struct sl_workload *workload, uint32_t request_pm,
	uint32_t gpus, struct sl_error *text);
/* If the GPUs can share less than the requested limit, adds to *text that the limit is cut. */
void sl_refusal_add_cut(const struct sl_workload *workload, struct sl_error *text);

/* The policy's own sentence for its last refusal, about a workload of that name; returns buf. */
const char *sl_refusal_sentence(
	const struct sl_daemon *daemon, const char *name, char *buf, size_t size);

#endif
