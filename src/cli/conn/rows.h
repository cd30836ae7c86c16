/*
 * rows - the whole answer to one LIST, gathered
 *
 * A list is printed only when it has come whole, so that a daemon that stops half-way gives an
 * error and not a short list. Memory is the struct's own.
 */
#ifndef SL_CLI_CONN_ROWS_H
#define SL_CLI_CONN_ROWS_H

#include "cli/line/cli.h"
#include "cli/conn/conn.h"
#include "wire/wire.h"

#include <jansson.h>

struct sl_rows {
	union sl_msg *all;
	size_t count, room;
	bool failed;                   /* out of memory */
	char socket[108];              /* that was asked */
	struct sl_msg_welcome welcome; /* of who answered */
	uint32_t daemon_protocol;      /* 0: not known */
};

/* Connects, asks, disconnects. *rows must be zeroed; fini it after every outcome. The outcomes are
 * those of sl_conn_open. socket and daemon_protocol are set also on failure, where known. */
SL_MUST_CHECK int sl_rows_fetch(
	struct sl_rows *rows, enum sl_list_what what, struct sl_error *err);
/* Two lists over one connection: what belongs to `rows`, then what2 into *rows2, which must be
 * zeroed too. They are moments apart. rows2 may be NULL; then only the first is asked. */
SL_MUST_CHECK int sl_rows_fetch_two(struct sl_rows *rows, enum sl_list_what what,
	struct sl_rows *rows2, enum sl_list_what what2, struct sl_error *err);
/* The rows of one list over a connection that is open already; outcomes of sl_conn_open. */
SL_MUST_CHECK int sl_rows_list(struct sl_rows *rows, struct sl_conn *conn,
	enum sl_list_what what, struct sl_error *err);
/* The same for another message than LIST, whose rows are of row_type. */
SL_MUST_CHECK int sl_rows_ask(struct sl_rows *rows, struct sl_conn *conn,
	const union sl_msg *ask, uint32_t row_type, struct sl_error *err);
/* Adds a row of another source; sets failed where there is no memory for it. */
void sl_rows_add(struct sl_rows *rows, const union sl_msg *row);
void sl_rows_fini(struct sl_rows *rows);

/* Prints value (which it takes; NULL: out of memory) on one line of standard output. */
void sl_rows_print_line(json_t *value);
/* Prints value (which it takes; NULL: out of memory) on standard output. Returns the status. */
int sl_rows_print_json(enum sl_verb_id verb, json_t *value);

#endif
