/*
 * named - which workload a NAME on the command line means
 *
 * A name is one user's, so two users may have the same one; an id (the `workload` of `ps --json`) is
 * nobody else's. No state.
 */
#ifndef SL_CLI_NAMED_H
#define SL_CLI_NAMED_H

#include "cli/rows.h"

enum sl_named_outcome {
	SL_NAMED_OK = 0,  /* *row is one of its rows */
	SL_NAMED_NONE,    /* err says so, with the nearest name there is */
	SL_NAMED_SEVERAL, /* err names their ids */
};

/* Of the rows of SL_LIST_USES: the workload so called, one's own (uid) before others', else the one
 * with that id. *row points into uses, and is NULL unless OK. */
SL_MUST_CHECK int sl_named_find(const struct sl_rows *uses, const char *name,
	uint32_t uid, const struct sl_msg_use_row **row, struct sl_error *err);

/* Connects and finds it: the exit statuses of sl_conn_open, or REFUSED (err set as above), or USAGE if
 * name is NULL. The connection stays open, and uses hold the list, on OK and REFUSED. what: the
 * verb, for a daemon that is too old for it; since: the version that has it. */
SL_MUST_CHECK int sl_named_open(struct sl_conn *conn, struct sl_rows *uses,
	const char *name, uint32_t since, const char *what,
	const struct sl_msg_use_row **row, struct sl_error *err);

#endif
