/*
 * wait - sluice run --wait: in the queue with one's own process
 *
 * The place in the queue is this connection's: who goes away has left it, and a daemon that is
 * restarted has lost it and is asked again. What is waited for stands on standard error, once, and
 * again when it is something else.
 */
#ifndef SL_CLI_RUN_WAIT_H
#define SL_CLI_RUN_WAIT_H

#include "cli/conn/conn.h"

/*
 * Asks by *ask (a RUN), and waits for its RUN_REPLY. Outcomes as sl_conn_open. SIGINT and SIGTERM
 * end the process, and the wait with it, until there is an answer; then they are as before.
 */
SL_MUST_CHECK int sl_run_wait(struct sl_conn *conn, union sl_msg *ask, bool json,
	union sl_msg *reply, struct sl_error *err);

#endif
