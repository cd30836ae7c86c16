/*
 * state - how a workload, a client and a GPU stand, in the words of the manual
 *
 * Where several are true, what somebody should do something about is shown first; --json has them all.
 */
#ifndef SL_CLI_STATE_H
#define SL_CLI_STATE_H

#include "wire/wire.h"

/* "bound"; "?" if a newer daemon has another. */
const char *sl_state_name(uint32_t state);
/* "stopping", "gpu lost", "untakeable", "over limit", or the state. */
const char *sl_state_shown(const struct sl_msg_use_row *row);

const char *sl_state_condition(uint32_t condition); /* "running" */
/* "stopping", "untakeable (traced)", "waiting", "running"; returns buf, 32 bytes suffice. */
const char *sl_state_of_client(
	const struct sl_msg_client_row *row, char *buf, size_t size);

/* "lost", "degraded", "stale" (not measured for 5 s), "ok". */
const char *sl_state_of_gpu(const struct sl_msg_gpu_row *row);

#endif
