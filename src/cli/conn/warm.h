/*
 * warm - tells the daemon a workload's warm_after and idle_grace
 *
 * These settings are newer than RUN and SET, so a message of their own follows on the same
 * connection. No state.
 */
#ifndef SL_CLI_CONN_WARM_H
#define SL_CLI_CONN_WARM_H

#include "cli/conn/conn.h"

/* 30 days; for longer times there is "never". */
#define SL_WARM_AFTER_MS_MAX (30LL * 24 * 3600 * 1000)

/* The setting stays unchanged. */
#define SL_WARM_UNSET SL_NS_NEVER

/* warm_after 0: never; each may be SL_WARM_UNSET. Outcomes of sl_conn_open; a refusal is in *reply,
 * a SET_REPLY. */
SL_MUST_CHECK int sl_warm_tell(struct sl_conn *conn, uint64_t workload, const char *name,
	sl_ns warm_after, sl_ns idle_grace, union sl_msg *reply, struct sl_error *err);

#endif
