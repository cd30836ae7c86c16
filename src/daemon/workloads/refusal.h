/*
 * refusal - why a workload was not admitted, in one sentence with the numbers
 */
#ifndef SL_DAEMON_WORKLOADS_REFUSAL_H
#define SL_DAEMON_WORKLOADS_REFUSAL_H

#include "daemon/state/daemon.h"

/* From daemon->admission: what was wanted, what there is, on which GPU, what to do. */
void sl_refusal_text(const struct sl_daemon *daemon, const struct sl_workload *workload,
	uint32_t gpu_count, uint32_t usable, bool masked, struct sl_error *text);
/* The same for a workload that was not changed. */
void sl_refusal_of_set(const struct sl_daemon *daemon, const struct sl_workload *workload,
	struct sl_error *text);

/* Adds to *text that the limit that was asked for is cut to what the GPUs can share, if it is. */
void sl_refusal_add_cut(const struct sl_workload *workload, struct sl_error *text);

/* The policy's own sentence for its last refusal, of a workload of that name; returns buf. */
const char *sl_refusal_sentence(
	const struct sl_daemon *daemon, const char *name, char *buf, size_t size);

#endif
