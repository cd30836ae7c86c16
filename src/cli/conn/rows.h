/*
 * rows - all rows of the answer to one LIST
 *
 * A list is printed only once it is complete, so a daemon that stops half-way gives an error, not a
 * short list. Memory is the struct's own.
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
	char socket[108];              /* the socket of the daemon */
	struct sl_msg_welcome welcome; /* from the daemon */
};

/* Connects, asks, disconnects. *rows must be zeroed; fini it after every outcome. Outcomes of
 * sl_conn_open. socket is set also on failure, if known. */
SL_MUST_CHECK int sl_rows_fetch(
	struct sl_rows *rows, enum sl_list_what what, struct sl_error *err);
/* Two lists over one connection, read a moment apart: `what` into *rows, then what2 into *rows2,
 * which must be zeroed too. rows2 NULL: only the first list. */
SL_MUST_CHECK int sl_rows_fetch_two(struct sl_rows *rows, enum sl_list_what what,
	struct sl_rows *rows2, enum sl_list_what what2, struct sl_error *err);
/* Reads one list over an open connection; outcomes of sl_conn_open. */
SL_MUST_CHECK int sl_rows_list(struct sl_rows *rows, struct sl_conn *conn,
	enum sl_list_what what, struct sl_error *err);
/* The same for another message than LIST, with rows of row_type. */
SL_MUST_CHECK int sl_rows_ask(struct sl_rows *rows, struct sl_conn *conn,
	const union sl_msg *ask, uint32_t row_type, struct sl_error *err);
/* Adds a row of another source; sets failed when out of memory. */
void sl_rows_add(struct sl_rows *rows, const union sl_msg *row);
void sl_rows_fini(struct sl_rows *rows);

/* Prints value on one line of standard output. Takes value; NULL: out of memory. */
void sl_rows_print_line(json_t *value);
/* Prints value on standard output. Takes value; NULL: out of memory. Returns the exit status. */
int sl_rows_print_json(enum sl_verb_id verb, json_t *value);

#endif
