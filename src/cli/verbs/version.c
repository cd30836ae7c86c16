/* sluice version: the versions of this installation and of the daemon at the socket. */
#include "cli/line/cli.h"
#include "base/library.h"
#include "cli/conn/rows.h"

#include <jansson.h>
#include <stdio.h>

struct settings {
	bool json;
};

const struct sl_option sl_verb_version_options[] = {
	SL_OPT(struct settings, json, FLAG, NULL, 0, 0, "Print a JSON object."),
	SL_OPT_END,
};

static json_t *to_json(
	const struct sl_rows *rows, const char *library, const char *trouble)
{
	const struct sl_msg_status_row *row =
		rows->count ? &rows->all[0].status_row : NULL;
	json_t *daemon = NULL;

	if (row)
		daemon = json_pack("{s:s, s:i, s:i, s:s}", "version", row->version,
			"protocol", SL_PROTOCOL_VERSION, "pid", (int)row->pid, "driver",
			row->driver);
	return json_pack("{s:s, s:i, s:s?, s:s?, s:o?, s:s?}", "version", SL_VERSION,
		"protocol", SL_PROTOCOL_VERSION, "library", library[0] ? library : NULL,
		"socket", rows->socket[0] ? rows->socket : NULL, "daemon", daemon,
		"daemon_error", row ? NULL : trouble);
}

int sl_verb_version(int argc, char **argv)
{
	sl_cleanup(sl_rows_fini) struct sl_rows rows = {0};
	struct sl_error no_library = {0}, no_daemon = {0};
	char library[SL_PATH_MAX] = "";
	struct settings s = {0};
	int first, status;

	status = sl_cli_parse(SL_VERB_version, &s, argc, argv, &first);
	if (status >= 0)
		return status;
	if (sl_library_find(library, sizeof(library), &no_library))
		library[0] = '\0';
	/* A missing daemon is an answer here, not a failure. */
	if (sl_rows_fetch(&rows, SL_LIST_STATUS, &no_daemon))
		rows.count = 0;
	if (s.json)
		return sl_rows_print_json(
			SL_VERB_version, to_json(&rows, library, no_daemon.text));
	printf("sluice   %s, protocol %d\n", SL_VERSION, SL_PROTOCOL_VERSION);
	printf("library  %s\n", library[0] ? library : no_library.text);
	if (rows.count)
		printf("daemon   %s, protocol %d, at %s\n",
			rows.all[0].status_row.version, SL_PROTOCOL_VERSION, rows.socket);
	else
		printf("daemon   %s\n", no_daemon.text);
	return sl_cli_finish(SL_VERB_version, SL_EXIT_OK);
}
