/*
 * wait - sluice run --wait: waits in the queue with this process
 *
 * The place in the queue belongs to the connection: closing it leaves the queue, and after a
 * restart of the daemon the request is sent again. The reason of the wait goes to standard error
 * whenever it changes.
 */
#ifndef SL_CLI_RUN_WAIT_H
#define SL_CLI_RUN_WAIT_H

#include "cli/conn/conn.h"

/*
 * Sends *ask (a RUN) and waits for its RUN_REPLY. Outcomes as sl_conn_open. During the wait SIGINT
 * and SIGTERM end this process; afterwards they act as before.
 */
SL_MUST_CHECK int sl_run_wait(struct sl_conn *conn, union sl_msg *ask, bool json,
	union sl_msg *reply, struct sl_error *err);

#endif
