/*
 * state - how a workload, a client and a GPU stand, in the words of the manual
 *
 * Where several are true, what somebody should do something about is shown first; --json has them
 * all.
 */
#ifndef SL_CLI_CONN_STATE_H
#define SL_CLI_CONN_STATE_H

#include "cli/conn/rows.h"
#include "cli/line/table.h"
#include "daemon/tell.h"

/* Of the rows of SL_LIST_SWAP (none of an older daemon), the workload's on that GPU, or NULL. */
const struct sl_msg_swap_row *sl_state_swap_of(
	const struct sl_rows *swap, uint64_t workload, uint32_t gpu);
/* What is guaranteed to it: "288Mi", or "-" while it has given that up. Returns buf; 16 bytes
 * suffice. */
const char *sl_state_request(const struct sl_msg_use_row *row,
	const struct sl_msg_swap_row *swap, char *buf, size_t size);
/* How long it may have to wait to be resident: "12s", "endless", "-" if nobody competes. Returns
 * buf; 16 bytes suffice. */
const char *sl_state_longest(const struct sl_msg_swap_row *swap, char *buf, size_t size);

const char *sl_state_condition(uint32_t condition); /* "running" */
/* "stopping", "untakeable (traced)", "waiting", "running"; returns buf, 32 bytes suffice. */
const char *sl_state_of_client(
	const struct sl_msg_client_row *row, char *buf, size_t size);

/* The name of a user, or the number of one without. Returns buf. */
const char *sl_state_user(uint32_t uid, char *buf, size_t size);

/* A name as its reader may type it: one's own as it is, another user's with the user before it. */
void sl_state_set_name(
	struct sl_table *table, size_t column, uint32_t uid, const char *name);

#endif
