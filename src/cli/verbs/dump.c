/* sluice dump: the daemon's whole state as JSON, for a report or a test. Printed only if it is
 * complete and valid. */
#include "cli/line/cli.h"
#include "cli/conn/conn.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct sl_option sl_verb_dump_options[] = {
	SL_OPT_END,
};

struct text {
	char *all;
	size_t used, room;
	bool failed, bad;
};

static void keep(void *context, const union sl_msg *row)
{
	struct text *text = context;
	size_t size = row->dump_row.size;

	if (size > sizeof(row->dump_row.text)) {
		text->bad = true;
		return;
	}
	if (text->used + size > text->room) {
		size_t room = (text->used + size) * 2;
		char *all = realloc(text->all, room);

		if (!all) {
			text->failed = true;
			return;
		}
		text->all = all;
		text->room = room;
	}
	memcpy(text->all + text->used, row->dump_row.text, size);
	text->used += size;
}

static void fini(struct text *text)
{
	free(text->all);
}

static int print(const struct sl_conn *conn, const struct text *text)
{
	json_error_t why = {.line = 1};
	json_t *value = json_loadb(text->all ? text->all : "", text->used, 0, &why);

	json_decref(value);
	if (text->failed)
		return sl_cli_fail(SL_VERB_dump, false, SL_EXIT_SYSTEM, "out of memory");
	if (!value || text->bad)
		return sl_cli_fail(SL_VERB_dump, false, SL_EXIT_PROTOCOL,
			"what sluiced at %s sent is no JSON (line %d: %s); please report "
			"this",
			conn->socket, why.line, why.text);
	fwrite(text->all, 1, text->used, stdout);
	if (text->all[text->used - 1] != '\n')
		putchar('\n');
	return sl_cli_finish(SL_VERB_dump, SL_EXIT_OK);
}

int sl_verb_dump(int argc, char **argv)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	sl_cleanup(fini) struct text text = {0};
	struct sl_error err = {0};
	union sl_msg ask;
	int first, status;
	char nothing;

	status = sl_cli_parse(SL_VERB_dump, &nothing, argc, argv, &first);
	if (status >= 0)
		return status;
	status = sl_conn_open(&conn, &err);
	if (!status) {
		sl_wire_init(&ask, SL_MSG_DUMP);
		status = sl_conn_rows(&conn, &ask, SL_MSG_DUMP_ROW, keep, &text, &err);
	}
	if (status)
		return sl_cli_fail(
			SL_VERB_dump, false, (enum sl_exit)status, "%s", err.text);
	return print(&conn, &text);
}
