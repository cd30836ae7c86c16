/*
 * state - states of workloads, clients and GPUs, in the words of the manual
 *
 * If several states are true, the one that needs action is shown; --json has them all.
 */
#ifndef SL_CLI_CONN_STATE_H
#define SL_CLI_CONN_STATE_H

#include "cli/conn/rows.h"
#include "cli/line/table.h"
#include "daemon/report/tell.h"

/* The request: "288Mi", or "-" while it is given up. Returns buf; 16 bytes suffice. */
const char *sl_state_request(const struct sl_msg_use_row *row, char *buf, size_t size);
/* The workload's longest wait to be resident: "12s", "endless", "-" if it competes with no other.
 * Returns buf; 16 bytes suffice. */
const char *sl_state_longest(const struct sl_msg_use_row *row, char *buf, size_t size);

/* Its shares of the GPU's time, and what it used lately: "0.2-0.5 31%"; "-" if it has none and is
 * not metered. Returns buf; 32 bytes suffice. */
const char *sl_state_compute(const struct sl_msg_use_row *row, char *buf, size_t size);
/* It has such a share, or is metered. */
bool sl_state_has_compute(const struct sl_msg_use_row *row);

const char *sl_state_condition(uint32_t condition); /* "running" */
/* "stopping", "untakeable (traced)", "waiting", "running"; returns buf, 32 bytes suffice. */
const char *sl_state_of_client(
	const struct sl_msg_client_row *row, char *buf, size_t size);

/* The name of a user, or the number if the user has no name. Returns buf. */
const char *sl_state_user(uint32_t uid, char *buf, size_t size);

/* The name in the form that the reader may type: one's own as it is, another user's as
 * user/name. */
void sl_state_set_name(
	struct sl_table *table, size_t column, uint32_t uid, const char *name);

#endif
