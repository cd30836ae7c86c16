/* Each list has its own connection. It costs less than a millisecond, whereas a lasting connection
 * would have to survive restarts of the daemon during `--watch`. */
#include "cli/conn/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sl_rows_add(struct sl_rows *rows, const union sl_msg *row)
{
	if (rows->count == rows->room) {
		size_t room = rows->room ? rows->room * 2 : 16;
		union sl_msg *all = reallocarray(rows->all, room, sizeof(*all));

		if (!all) {
			rows->failed = true;
			return;
		}
		rows->all = all;
		rows->room = room;
	}
	rows->all[rows->count++] = *row;
}

static void keep(void *context, const union sl_msg *row)
{
	sl_rows_add(context, row);
}

static int complete(const struct sl_rows *rows, int status, struct sl_error *err)
{
	if (status || !rows->failed)
		return status;
	sl_error_set(err, "out of memory");
	return SL_EXIT_SYSTEM;
}

int sl_rows_ask(struct sl_rows *rows, struct sl_conn *conn, const union sl_msg *ask,
	uint32_t row_type, struct sl_error *err)
{
	return complete(rows, sl_conn_rows(conn, ask, row_type, keep, rows, err), err);
}

int sl_rows_list(struct sl_rows *rows, struct sl_conn *conn, enum sl_list_what what,
	struct sl_error *err)
{
	return complete(rows, sl_conn_list(conn, what, keep, rows, err), err);
}

int sl_rows_fetch(struct sl_rows *rows, enum sl_list_what what, struct sl_error *err)
{
	return sl_rows_fetch_two(rows, what, NULL, what, err);
}

int sl_rows_fetch_two(struct sl_rows *rows, enum sl_list_what what, struct sl_rows *rows2,
	enum sl_list_what what2, struct sl_error *err)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	int status = sl_conn_open(&conn, err);

	if (!status)
		status = sl_rows_list(rows, &conn, what, err);
	if (!status && rows2)
		status = sl_rows_list(rows2, &conn, what2, err);
	strcpy(rows->socket, conn.socket);
	rows->welcome = conn.welcome;
	return status;
}

void sl_rows_fini(struct sl_rows *rows)
{
	free(rows->all);
	*rows = (struct sl_rows){0};
}

void sl_rows_print_line(json_t *value)
{
	if (value)
		json_dumpf(value, stdout, 0);
	putchar('\n');
	json_decref(value);
}

int sl_rows_print_json(enum sl_verb_id verb, json_t *value)
{
	bool ok = value && !json_dumpf(value, stdout, JSON_INDENT(2));

	json_decref(value);
	if (!ok && !ferror(stdout))
		return sl_cli_fail(verb, true, SL_EXIT_SYSTEM, "out of memory");
	putchar('\n');
	return sl_cli_finish(verb, SL_EXIT_OK);
}
