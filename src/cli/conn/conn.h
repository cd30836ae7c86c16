/*
 * conn - one conversation with the daemon
 *
 * Calls block, at most 10 s (or SLUICE_TIMEOUT) per message, so a daemon that hangs is reported.
 * One thread per connection.
 */
#ifndef SL_CLI_CONN_CONN_H
#define SL_CLI_CONN_CONN_H

#include "base/error.h"
#include "base/paths.h"
#include "wire/wire.h"

struct sl_conn {
	int fd;                          /* close-on-exec; -1 when not open */
	char socket[SL_SOCKET_PATH_MAX]; /* absolute */
	struct sl_msg_welcome welcome;   /* from the daemon, once open */
	uint64_t timeout_ms;
};

/* Outcomes: the exit statuses OK, NO_DAEMON, SYSTEM, PROTOCOL, DENIED, USAGE (the socket path is
 * invalid). Except on OK err names the socket and the remedy. *conn needs no initialisation and may
 * be closed after every outcome. socket is set as soon as it is known. */
SL_MUST_CHECK int sl_conn_open(struct sl_conn *conn, struct sl_error *err);
/* The same with at most timeout_ms per answer, regardless of SLUICE_TIMEOUT. */
SL_MUST_CHECK int sl_conn_open_within(
	struct sl_conn *conn, uint64_t timeout_ms, struct sl_error *err);
/* sl_conn_open() in two steps, for a caller with work to do until the daemon answers. begin
 * connects and sends HELLO; if it returned OK, await receives the answer. */
SL_MUST_CHECK int sl_conn_begin(struct sl_conn *conn, struct sl_error *err);
SL_MUST_CHECK int sl_conn_await(struct sl_conn *conn, struct sl_error *err);
/* Safe to call twice. */
void sl_conn_close(struct sl_conn *conn);

/* Sends *msg and waits for an answer of type `want`. Outcomes as
 * sl_conn_open. */
SL_MUST_CHECK int sl_conn_call(struct sl_conn *conn, const union sl_msg *ask,
	uint32_t want, union sl_msg *answer, struct sl_error *err);
/* The same, sending the descriptor `file` along; it stays the caller's. */
SL_MUST_CHECK int sl_conn_call_giving(struct sl_conn *conn, const union sl_msg *ask,
	int file, uint32_t want, union sl_msg *answer, struct sl_error *err);
/* The same. The answer is of type `want`, with a descriptor in *file that becomes the caller's; or
 * of type else_want, without one (*file is -1). */
SL_MUST_CHECK int sl_conn_call_taking(struct sl_conn *conn, const union sl_msg *ask,
	uint32_t want, uint32_t else_want, union sl_msg *answer, int *file,
	struct sl_error *err);
/* Receives the answer to sl_conn_send, for a caller that knows that one is due. Outcomes as
 * sl_conn_open. */
SL_MUST_CHECK int sl_conn_receive(
	struct sl_conn *conn, uint32_t want, union sl_msg *msg, struct sl_error *err);

/* The same for an answer of type `want` or else_want. */
SL_MUST_CHECK int sl_conn_receive_or(struct sl_conn *conn, uint32_t want,
	uint32_t else_want, union sl_msg *msg, struct sl_error *err);

/* Called for each row, which has the type asked for. */
typedef void (*sl_conn_row_fn)(void *context, const union sl_msg *row);
/* Sends *ask and passes each row of row_type to fn until LIST_END. Outcomes as sl_conn_open; fn may
 * have got some rows before a failure. */
SL_MUST_CHECK int sl_conn_rows(struct sl_conn *conn, const union sl_msg *ask,
	uint32_t row_type, sl_conn_row_fn fn, void *context, struct sl_error *err);
/* Sends *msg alone. Outcomes as sl_conn_open. */
SL_MUST_CHECK int sl_conn_send(
	struct sl_conn *conn, const union sl_msg *msg, struct sl_error *err);
/* Receives the next row of row_type, or LIST_END, after sl_conn_send. Outcomes as sl_conn_open. */
SL_MUST_CHECK int sl_conn_next(
	struct sl_conn *conn, uint32_t row_type, union sl_msg *row, struct sl_error *err);
/* The rows of a LIST. */
SL_MUST_CHECK int sl_conn_list(struct sl_conn *conn, enum sl_list_what what,
	sl_conn_row_fn fn, void *context, struct sl_error *err);

#endif
