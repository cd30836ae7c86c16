/*
 * start - the daemon's start, its loop, and its end
 */
#ifndef SL_DAEMON_LOOP_START_H
#define SL_DAEMON_LOOP_START_H

#include "daemon/state/daemon.h"

/*
 * Makes a daemon of a configuration (copied): finds the GPUs, reads the journal, opens the socket.
 * Does not run the loop. 0 or negative errno; err says what failed, and the remedy.
 */
SL_MUST_CHECK int sl_daemon_init(struct sl_daemon *daemon, const struct sl_config *config,
	const char *config_path, const char *log_override, struct sl_error *err);
/* Runs until SIGTERM or SIGINT. 0 or negative errno. */
SL_MUST_CHECK int sl_daemon_run(struct sl_daemon *daemon);
/* Closes everything and unlinks the socket. Also valid after a failed init. */
void sl_daemon_fini(struct sl_daemon *daemon);

/* Passes the configured times to the policy. */
void sl_daemon_configure(struct sl_daemon *daemon);

#endif
