/*
 * sluice page: the address of the page, with a token that gives a browser the rights of the user
 * who asked.
 *
 * The token stands behind '#', which browsers do not send: it appears in no request, proxy log or
 * Referer.
 */
#include "cli/line/cli.h"
#include "cli/conn/conn.h"
#include "cli/conn/rows.h"
#include "cli/line/text.h"

#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

struct settings {
	bool json;
};

const struct sl_option sl_verb_page_options[] = {
	SL_OPT(struct settings, json, FLAG, NULL, 0, 0,
		"Print a JSON object, with the token by itself."),
	SL_OPT_END,
};

static int ask(union sl_msg *reply, struct sl_error *err)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	union sl_msg msg;
	int status = sl_conn_open(&conn, err);

	if (status)
		return status;
	sl_wire_init(&msg, SL_MSG_PAGE_TOKEN);
	return sl_conn_call(&conn, &msg, SL_MSG_PAGE_TOKEN_REPLY, reply, err);
}

static int print_json(const struct sl_msg_page_token_reply *reply, bool is_socket)
{
	char url[320];

	snprintf(url, sizeof(url), "%s#token=%s", reply->address, reply->token);
	return sl_rows_print_json(SL_VERB_page,
		json_pack("{s:o, s:o, s:s, s:I}", "address", sl_text_json(reply->address),
			"url", is_socket ? json_null() : sl_text_json(url), "token",
			reply->token, "life_ms", (json_int_t)reply->life_ms));
}

int sl_verb_page(int argc, char **argv)
{
	struct sl_msg_page_token_reply *reply;
	struct settings s = {0};
	struct sl_error err = {0};
	union sl_msg msg;
	int first, status;
	bool is_socket;

	status = sl_cli_parse(SL_VERB_page, &s, argc, argv, &first);
	if (status >= 0)
		return status;
	status = ask(&msg, &err);
	if (status)
		return sl_cli_fail(
			SL_VERB_page, s.json, (enum sl_exit)status, "%s", err.text);
	reply = &msg.page_token_reply;
	sl_text_tame(reply->address);
	sl_text_tame(reply->text);
	sl_text_tame(reply->token);
	if (!reply->ok)
		return sl_cli_fail(
			SL_VERB_page, s.json, SL_EXIT_REFUSED, "%s", reply->text);
	is_socket = reply->address[0] == '/';
	if (s.json)
		return print_json(reply, is_socket);
	if (is_socket)
		printf("%s\n", reply->address);
	else
		printf("%s#token=%s\n", reply->address, reply->token);
	/* Only for people, not for a program that reads the address. */
	if (isatty(STDOUT_FILENO))
		fprintf(stderr,
			is_socket
				? "sluice page: a socket, at which the kernel says who "
				  "you "
				  "are; sluice help page says how a browser gets there\n"
				: "sluice page: this address carries your rights for "
				  "%llu hours; keep it to yourself\n",
			(unsigned long long)(reply->life_ms / 3600000));
	return sl_cli_finish(SL_VERB_page, SL_EXIT_OK);
}
