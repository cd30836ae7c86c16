/*
 * conn - one conversation with the daemon
 *
 * Blocking, with a deadline per message (10 s; SLUICE_TIMEOUT overrides it), so that a daemon
 * that hangs is reported instead of joined. One thread per connection.
 */
#ifndef SL_CLI_CONN_H
#define SL_CLI_CONN_H

#include "base/error.h"
#include "base/paths.h"
#include "wire/wire.h"

struct sl_conn {
	int fd;                          /* close-on-exec; -1 when not open */
	char socket[SL_SOCKET_PATH_MAX]; /* absolute */
	struct sl_msg_welcome welcome;   /* of the daemon, once open */
	uint32_t daemon_protocol;        /* 0: not known */
	uint64_t timeout_ms;
};

/* Outcomes: the exit statuses OK, NO_DAEMON, SYSTEM, PROTOCOL, DENIED, USAGE (a socket path that
 * cannot be one); err names the socket and the remedy on all but OK. *conn needs no
 * initialisation and may be closed after every outcome. socket is set as soon as it is known. */
SL_MUST_CHECK int sl_conn_open(struct sl_conn *conn, struct sl_error *err);
/* Safe to call twice. */
void sl_conn_close(struct sl_conn *conn);

/* Sends *msg and waits for an answer of type `want`. Outcomes as sl_conn_open. */
SL_MUST_CHECK int sl_conn_call(struct sl_conn *conn, const union sl_msg *ask,
	uint32_t want, union sl_msg *answer, struct sl_error *err);

/* Called for each row; rows are of the type that `what` has. */
typedef void (*sl_conn_row_fn)(void *context, const union sl_msg *row);
/* Sends LIST and hands out its rows. Outcomes as sl_conn_open; rows may have been handed out
 * before a failure. */
SL_MUST_CHECK int sl_conn_list(struct sl_conn *conn, enum sl_list_what what,
	sl_conn_row_fn fn, void *context, struct sl_error *err);

#endif
