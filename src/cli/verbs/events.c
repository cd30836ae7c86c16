/*
 * sluice events: past events, oldest first, and with --follow new ones.
 *
 * The daemon keeps the latest events. Older ones, also from before its start, are in its history,
 * with serial numbers that continue.
 *
 * --follow survives a restart of the daemon: it waits for the next daemon, reports on standard
 * error that events may be missing, and goes on. The new daemon has only its own events, so
 * --follow asks for all of them.
 */
#include "cli/line/cli.h"
#include "cli/conn/conn.h"
#include "cli/line/interrupt.h"
#include "cli/conn/named.h"
#include "cli/conn/past.h"
#include "cli/conn/rows.h"
#include "cli/conn/told.h"

#include "base/clock.h"
#include "policy/words/reason.h"

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

/* Most events from the history, if neither --last nor --since bounds them. */
#define OLDER_DEFAULT 1000
#define OLDER_MOST    20000

struct settings {
	bool follow, json;
	int64_t last;
	const char *name, *since, *kind;
	bool owned;        /* --name USER/NAME: name is the NAME */
	uint32_t owner;    /* and this is the USER */
	uint64_t since_ms; /* 0: the default */
	uint32_t kinds;    /* a bit for each; 0: all */
};

const struct sl_option sl_verb_events_options[] = {
	SL_OPT_SHORT(
		struct settings, follow, 'f', "Follow new events until interrupted."),
	SL_OPT(struct settings, last, INTEGER, "N", 1, 1000000,
		"Only the last N. Default: all that the daemon holds, and 1000 before."),
	SL_OPT(struct settings, since, STRING, "WHEN", 0, 0,
		"Only those since a time: 2h, \"2026-11-22 10:00\", 2026-11-22, or "
		"10:00."),
	SL_OPT(struct settings, kind, STRING, "KIND[,KIND...]", 0, 0,
		"Only deny, except, refuse, wait, stop or note."),
	SL_OPT(struct settings, name, NAME, "NAME", 0, 0,
		"Only those about this workload (or USER/NAME), or with it on the other "
		"side."),
	SL_OPT(struct settings, json, FLAG, NULL, 0, 0,
		"Print a JSON object on each line."),
	SL_OPT_END,
};

struct stream {
	const struct settings *settings;
	struct sl_conn conn;
	uint64_t epoch, serial; /* of the daemon and the last event seen; 0: none */
	bool lists;             /* the stored events are still coming */
	bool is_later;          /* not the first connection */
	struct sl_rows kept;
};

static void print_event(const struct stream *stream, const struct sl_msg_event_row *row)
{
	time_t seconds = (time_t)(row->realtime_ms / 1000);
	char when[32] = "?", text[SL_TELL_TEXT_MAX];
	struct tm local;

	if (stream->settings->json) {
		json_t *object = sl_tell_event(row);

		/* As in the dump: JSON cannot hold all numbers of 64 bits. */
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

/* On standard error, since it is not an event. */
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

/* True if the verb drops some of the daemon's events; then the daemon must not apply --last. */
static bool is_choosy(const struct settings *s)
{
	return s->kinds || s->owned;
}

/* Connects and asks for the events not seen yet. Outcomes of sl_conn_open. */
static int ask(struct stream *stream, struct sl_error *err)
{
	const struct settings *s = stream->settings;
	union sl_msg msg;
	int status = sl_conn_open(&stream->conn, err);

	if (status)
		return status;
	sl_wire_init(&msg, SL_MSG_EVENTS);
	msg.events.flags = s->follow ? SL_EVENTS_FOLLOW : 0;
	sl_wire_str(msg.events.name, sizeof(msg.events.name), s->name ? s->name : "");
	if (!stream->epoch)
		msg.events.last = is_choosy(s) ? 0 : (uint32_t)s->last;
	else if (stream->epoch == stream->conn.welcome.daemon_epoch)
		msg.events.after = stream->serial;
	stream->epoch = stream->conn.welcome.daemon_epoch;
	stream->lists = true;
	return sl_conn_send(&stream->conn, &msg, err);
}

/* Waits until the daemon sends something. True if the reader closed the output or a signal came;
 * signals are unblocked only here. */
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

static bool is_wanted(const struct settings *s, const struct sl_msg_event_row *row)
{
	return row->realtime_ms >= s->since_ms &&
	       (!s->kinds || s->kinds & 1u << sl_reason_kind(row->reason)) &&
	       /* An event lacks the user of its other side. */
	       (!s->owned || row->uid == s->owner || strcmp(row->name, s->name) != 0);
}

/* The question to the history: events older than the daemon's oldest. */
static struct sl_msg_history older_than(const struct stream *stream)
{
	const struct settings *s = stream->settings;
	struct sl_msg_history ask = {.what = SL_HISTORY_EVENTS,
		.from_ms = s->since_ms,
		.kinds = s->kinds,
		.last = s->since || s->owned ? OLDER_MOST : OLDER_DEFAULT};

	if (s->last && !s->owned)
		ask.last = (uint32_t)sl_min_u64(
			(uint64_t)s->last - stream->kept.count, OLDER_MOST);
	if (stream->kept.count)
		ask.before = stream->kept.all[0].event_row.serial;
	sl_wire_str(ask.name, sizeof(ask.name), s->name ? s->name : "");
	return ask;
}

/* The history ignores users. most: keep the newest. */
static void keep_wanted(const struct settings *s, struct sl_rows *rows, uint64_t most)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->count; i++)
		if (is_wanted(s, &rows->all[i].event_row))
			rows->all[kept++] = rows->all[i];
	rows->count = sl_min_u64(kept, most);
	memmove(rows->all, rows->all + kept - rows->count,
		rows->count * sizeof(*rows->all));
}

/* All stored events of the daemon have arrived. Prints the history's events before them, or only
 * them without a history. */
static int print_kept(struct stream *stream, struct sl_error *err)
{
	const struct settings *s = stream->settings;
	sl_cleanup(sl_rows_fini) struct sl_rows older = {0};
	struct sl_msg_history ask;
	struct sl_error gap = {0};
	uint64_t last = s->last ? (uint64_t)s->last : UINT64_MAX;
	size_t skip = stream->kept.count > last ? stream->kept.count - (size_t)last : 0;
	bool wants_older = stream->kept.count < last;

	if (stream->kept.failed) {
		sl_error_set(err, "out of memory; ask for fewer with --last");
		return SL_EXIT_SYSTEM;
	}
	ask = older_than(stream);
	if (wants_older && sl_past_events(&ask, &older, &gap, &gap) != SL_EXIT_OK &&
		!s->since)
		gap.text[0] = '\0'; /* the history was not asked */
	if (s->owned && older.count)
		keep_wanted(s, &older, last - stream->kept.count);
	if (gap.text[0])
		notice(stream, gap.text);
	for (size_t i = 0; i < older.count; i++)
		print_event(stream, &older.all[i].event_row);
	for (size_t i = skip; i < stream->kept.count; i++) {
		/* Events lost before the oldest are in the history. */
		if (older.count)
			stream->kept.all[i].event_row.lost = 0;
		print_event(stream, &stream->kept.all[i].event_row);
	}
	return SL_EXIT_OK;
}

/* Prints events until the answer ends (OK), the daemon ends (NO_DAEMON), or the reader closes the
 * output (OK). */
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
			status = stream->is_later ? SL_EXIT_OK : print_kept(stream, err);
			stream->is_later = true;
			if (status || !stream->settings->follow)
				return status;
			continue;
		}
		stream->serial = msg.event_row.serial;
		if (!is_wanted(stream->settings, &msg.event_row))
			continue;
		if (stream->lists && !stream->is_later)
			sl_rows_add(&stream->kept, &msg);
		else
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
		/* At the start every fault is an error; later, only one that waiting cannot
		 * cure. */
		if (status != SL_EXIT_NO_DAEMON || is_first)
			return status;
		if (!told)
			notice(stream, "the daemon went away; waiting for the next one");
		told = true;
		if (!sl_interrupt_sleep(unblocked, RETRY_MS))
			return SL_EXIT_OK;
	}
}

/* "2h" ago, or a time. */
static bool read_since(const char *text, uint64_t *out, struct sl_error *err)
{
	time_t now = time(NULL);
	struct sl_error ignored = {0};
	sl_ns span;

	if (sl_duration_parse(text, &span, &ignored) == 0) {
		*out = sl_sub_sat((uint64_t)now * 1000, span / SL_MS);
		return true;
	}
	return sl_past_time(text, now, out, err);
}

/* -1: go on; else the exit status, after a message. */
static int choose(struct settings *s)
{
	struct sl_error err = {0};
	const char *owned = s->name ? sl_named_owned(s->name, &s->owner) : NULL;

	s->owned = owned && owned[0];
	if (s->owned)
		s->name = owned;
	if (s->kind && (!s->kind[0] || !sl_reason_kinds_read(s->kind, &s->kinds)))
		return sl_cli_fail(SL_VERB_events, s->json, SL_EXIT_USAGE,
			"--kind %.60s: write some of %s, with commas between them",
			s->kind, sl_reason_kinds_known);
	if (s->since && !read_since(s->since, &s->since_ms, &err))
		return sl_cli_fail(SL_VERB_events, s->json, SL_EXIT_USAGE,
			"--since: %s, or a span such as 2h", err.text);
	return -1;
}

int sl_verb_events(int argc, char **argv)
{
	struct settings s = {0};
	struct stream stream = {.settings = &s, .conn = {.fd = -1}};
	struct sl_error err = {0};
	sigset_t unblocked;
	int first, status;

	status = sl_cli_parse(SL_VERB_events, &s, argc, argv, &first);
	if (status < 0)
		status = choose(&s);
	if (status >= 0)
		return status;
	if (s.follow) {
		sl_interrupt_catch(&unblocked);
		/* A reader that closes the pipe is no failure: fflush then returns EPIPE. */
		signal(SIGPIPE, SIG_IGN);
		status = follow(&stream, &unblocked, &err);
	} else {
		status = ask(&stream, &err);
		if (!status)
			status = print_all(&stream, NULL, &err);
		sl_conn_close(&stream.conn);
	}
	sl_rows_fini(&stream.kept);
	if (status && !ferror(stdout))
		return sl_cli_fail(
			SL_VERB_events, s.json, (enum sl_exit)status, "%s", err.text);
	return sl_cli_finish(SL_VERB_events, SL_EXIT_OK);
}
