/*
 * sluice events: what happened, oldest first, and with --follow what happens.
 *
 * Following outlives the daemon: when it goes away, this waits for the next one, says on standard
 * error that events may be missing, and goes on. A new daemon has none of the events of the one
 * before, so it is asked for all it has.
 */
#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/interrupt.h"
#include "cli/rows.h"
#include "cli/told.h"

#include "base/clock.h"
#include "policy/reason.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RETRY_MS 250

struct settings {
	bool follow, json;
	int64_t last;
	const char *name;
};

const struct sl_option sl_verb_events_options[] = {
	SL_OPT_SHORT(struct settings, follow, 'f',
		"Go on with what happens, until interrupted."),
	SL_OPT(struct settings, last, INTEGER, "N", 1, 1000000,
		"Only the last N of those that are kept."),
	SL_OPT(struct settings, name, NAME, "NAME", 0, 0,
		"Only those about this workload, or with it on the other side."),
	SL_OPT(struct settings, json, FLAG, NULL, 0, 0,
		"Print a JSON object on each line."),
	SL_OPT_END,
};

struct stream {
	const struct settings *settings;
	struct sl_conn conn;
	uint64_t epoch,
		serial; /* of the daemon and the last event that were seen; 0: none */
	bool lists;     /* the kept events are still coming */
};

static void print_event(const struct stream *stream, const struct sl_msg_event_row *row)
{
	time_t seconds = (time_t)(row->realtime_ms / 1000);
	char when[32] = "?", text[SL_TELL_TEXT_MAX];
	struct tm local;

	if (stream->settings->json) {
		json_t *object = sl_tell_event(row);

		/* As in the dump; a number of 64 bits is not safe in JSON. */
		snprintf(when, sizeof(when), "%016" PRIx64, stream->epoch);
		if (object)
			json_object_set_new(object, "daemon_epoch", json_string(when));
		sl_rows_print_line(object);
		return;
	}
	if (row->lost)
		printf("(%u events before this one are not kept)\n", row->lost);
	if (localtime_r(&seconds, &local))
		strftime(when, sizeof(when), "%F %T", &local);
	printf("%s.%03u  %-6s  %s\n", when, (unsigned int)(row->realtime_ms % 1000),
		sl_reason_kind_name(sl_reason_kind(row->reason)),
		sl_tell_sentence(row, text, sizeof(text)));
}

/* Standard error, since it is no event. */
static void notice(const struct stream *stream, const char *text)
{
	json_t *object;

	fflush(stdout);
	if (!stream->settings->json) {
		fprintf(stderr, "sluice events: %s\n", text);
		return;
	}
	object = json_pack("{s:s}", "note", text);
	if (object)
		json_dumpf(object, stderr, 0);
	fputc('\n', stderr);
	json_decref(object);
}

/* Connects and asks for what was not seen yet. Outcomes of sl_conn_open. */
static int ask(struct stream *stream, struct sl_error *err)
{
	const struct settings *s = stream->settings;
	union sl_msg msg;
	int status = sl_conn_open(&stream->conn, err);

	if (!status)
		status = sl_conn_needs(&stream->conn, 2, "sluice events", err);
	if (status)
		return status;
	sl_wire_init(&msg, SL_MSG_EVENTS);
	msg.events.flags = s->follow ? SL_EVENTS_FOLLOW : 0;
	sl_wire_str(msg.events.name, sizeof(msg.events.name), s->name ? s->name : "");
	if (!stream->epoch)
		msg.events.last = (uint32_t)s->last;
	else if (stream->epoch == stream->conn.welcome.daemon_epoch)
		msg.events.after = stream->serial;
	stream->epoch = stream->conn.welcome.daemon_epoch;
	stream->lists = true;
	return sl_conn_send(&stream->conn, &msg, err);
}

/* Waits until the daemon says something, the reader goes away (true), or a signal comes (true). The
 * signals are blocked but in here. */
static bool wait_for_event(const struct stream *stream, const sigset_t *unblocked)
{
	struct pollfd fds[] = {
		{.fd = stream->conn.fd, .events = POLLIN},
		{.fd = STDOUT_FILENO, .events = 0},
	};

	fflush(stdout);
	for (;;) {
		if (sl_interrupt_came() || ferror(stdout))
			return true;
		if (ppoll(fds, SL_ARRAY_LEN(fds), NULL, unblocked) < 0 && errno != EINTR)
			return true;
		if (fds[1].revents & POLLERR)
			return true;
		if (fds[0].revents)
			return false;
	}
}

/* Prints events until the answer ends (OK), the daemon goes away (NO_DAEMON), or nobody listens any
 * more (OK). */
static int print_all(
	struct stream *stream, const sigset_t *unblocked, struct sl_error *err)
{
	union sl_msg msg;
	int status;

	for (;;) {
		if (!stream->lists && wait_for_event(stream, unblocked))
			return SL_EXIT_OK;
		status = sl_conn_next(&stream->conn, SL_MSG_EVENT_ROW, &msg, err);
		if (status || ferror(stdout))
			return status;
		if (msg.head.type == SL_MSG_LIST_END) {
			stream->lists = false;
			if (!stream->settings->follow)
				return SL_EXIT_OK;
			continue;
		}
		stream->serial = msg.event_row.serial;
		print_event(stream, &msg.event_row);
	}
}

static int follow(struct stream *stream, const sigset_t *unblocked, struct sl_error *err)
{
	bool is_first = true, told = false;

	for (;;) {
		int status = ask(stream, err);

		if (!status) {
			if (!is_first)
				notice(stream,
					"connected again; events in between may be "
					"missing");
			is_first = told = false;
			status = print_all(stream, unblocked, err);
		}
		sl_conn_close(&stream->conn);
		/* What was wrong from the start is an error; later, only what waiting does not
		 * mend. */
		if (status != SL_EXIT_NO_DAEMON || is_first)
			return status;
		if (!told)
			notice(stream, "the daemon went away; waiting for the next one");
		told = true;
		if (!sl_interrupt_sleep(unblocked, RETRY_MS))
			return SL_EXIT_OK;
	}
}

int sl_verb_events(int argc, char **argv)
{
	struct settings s = {0};
	struct stream stream = {.settings = &s, .conn = {.fd = -1}};
	struct sl_error err = {0};
	sigset_t unblocked;
	int first, status;

	status = sl_cli_parse(SL_VERB_events, &s, argc, argv, &first);
	if (status >= 0)
		return status;
	if (s.follow) {
		sl_interrupt_catch(&unblocked);
		/* A reader that goes away is no failure: fflush says EPIPE. */
		signal(SIGPIPE, SIG_IGN);
		status = follow(&stream, &unblocked, &err);
	} else {
		status = ask(&stream, &err);
		if (!status)
			status = print_all(&stream, NULL, &err);
		sl_conn_close(&stream.conn);
	}
	if (status && !ferror(stdout))
		return sl_cli_fail(
			SL_VERB_events, s.json, (enum sl_exit)status, "%s", err.text);
	return sl_cli_finish(SL_VERB_events, SL_EXIT_OK);
}
