/* past - see the header */
#include "cli/conn/past.h"

#include "base/file.h"
#include "cli/line/text.h"
#include "daemon/report/tell.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Largest answer that is accepted. */
#define ANSWER_MAX (1ull << 30)
/* Enough for a long period read from a slow disk; the daemon gives up before. */
#define TIMEOUT_MS 60000
/* Shorter, for events that only precede other output. */
#define EVENTS_TIMEOUT_MS 10000

static int read_all(int file, uint64_t bytes, char **text, size_t *size)
{
	char *all;
	size_t used = 0;
	struct stat stat = {0};

	if (fstat(file, &stat) < 0)
		return -errno;
	if (bytes > ANSWER_MAX || (uint64_t)stat.st_size < bytes)
		return -EPROTO;
	all = malloc(bytes + 1);
	if (!all)
		return -ENOMEM;
	while (used < bytes) {
		ssize_t n = pread(file, all + used, bytes - used, (off_t)used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int r = n < 0 ? -errno : -EPROTO;

			free(all);
			return r;
		}
		used += (size_t)n;
	}
	all[used] = '\0';
	*text = all;
	*size = used;
	return 0;
}

static int fetch(const struct sl_msg_history *ask, uint64_t timeout_ms, char **text,
	size_t *size, struct sl_error *err)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	sl_cleanup(sl_closep) int file = -1;
	union sl_msg msg, answer;
	struct sl_msg_head head;
	int status = getenv("SLUICE_TIMEOUT")
			     ? sl_conn_open(&conn, err)
			     : sl_conn_open_within(&conn, timeout_ms, err);

	if (!status) {
		sl_wire_init(&msg, SL_MSG_HISTORY);
		head = msg.head;
		msg.history = *ask;
		msg.head = head;
		status = sl_conn_call_taking(&conn, &msg, SL_MSG_HISTORY_FILE,
			SL_MSG_HISTORY_REPLY, &answer, &file, err);
	}
	if (status)
		return status;
	if (file < 0) {
		sl_text_tame(answer.history_reply.text);
		sl_error_set(err, "%s", answer.history_reply.text);
		return SL_EXIT_REFUSED;
	}
	status = read_all(file, answer.history_file.bytes, text, size);
	if (status == 0)
		return SL_EXIT_OK;
	sl_error_set(err, "reading the daemon's answer: %s", strerror(-status));
	return SL_EXIT_SYSTEM;
}

int sl_past_fetch(enum sl_verb_id verb, bool json, const struct sl_msg_history *ask,
	char **text, size_t *size)
{
	struct sl_error err = {0};
	int status = fetch(ask, TIMEOUT_MS, text, size, &err);

	return status ? sl_cli_fail(verb, json, (enum sl_exit)status, "%s", err.text)
		      : -1;
}

int sl_past_events(const struct sl_msg_history *ask, struct sl_rows *rows,
	struct sl_error *gap, struct sl_error *err)
{
	sl_cleanup(sl_freep) char *text = NULL;
	const char *why;
	json_t *answer, *event;
	size_t size = 0, i;
	int status = fetch(ask, EVENTS_TIMEOUT_MS, &text, &size, err);

	if (status)
		return status;
	answer = json_loadb(text, size, 0, NULL);
	if (!answer) {
		sl_error_set(err, "the daemon's answer about the history cannot be read");
		return SL_EXIT_PROTOCOL;
	}
	json_array_foreach(json_object_get(answer, "events"), i, event)
	{
		union sl_msg row;

		sl_wire_init(&row, SL_MSG_EVENT_ROW);
		row.event_row = sl_tell_event_row(event);
		row.event_row.head.type = SL_MSG_EVENT_ROW;
		sl_rows_add(rows, &row);
	}
	why = json_string_value(json_object_get(answer, "text"));
	if (json_is_false(json_object_get(answer, "complete")))
		sl_error_set(
			gap, "%s", why ? why : "the daemon did not search all of it");
	json_decref(answer);
	return SL_EXIT_OK;
}

int sl_past_parse(enum sl_verb_id verb, const char *text, size_t size, json_t **answer)
{
	json_error_t bad;

	*answer = json_loadb(text, size, 0, &bad);
	if (!*answer)
		return sl_cli_fail(verb, false, SL_EXIT_PROTOCOL,
			"the daemon's answer cannot be read: %s", bad.text);
	return -1;
}

bool sl_past_time(const char *text, time_t now, uint64_t *out, struct sl_error *err)
{
	static const char *const formats[] = {"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S",
		"%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%H:%M:%S", "%H:%M"};
	time_t at;

	if (strcmp(text, "now") == 0) {
		*out = (uint64_t)now * 1000;
		return true;
	}
	if (text[0] == '@') {
		char *end;
		unsigned long long seconds;

		errno = 0;
		seconds = strtoull(text + 1, &end, 10);
		if (end != text + 1 && !*end && !errno && seconds < 1ull << 40 &&
			text[1] != '-') {
			*out = seconds * 1000;
			return true;
		}
	}
	for (size_t i = 0; i < SL_ARRAY_LEN(formats); i++) {
		struct tm tm = {0};
		const char *end;

		if (!localtime_r(&now, &tm))
			break;
		tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
		end = strptime(text, formats[i], &tm);
		/* Let mktime find out whether summer time holds. */
		tm.tm_isdst = -1;
		if (!end || *end)
			continue;
		at = mktime(&tm);
		if (at < 0)
			break;
		*out = (uint64_t)at * 1000;
		return true;
	}
	sl_error_set(err,
		"not a valid time: '%.60s'; write \"2026-11-22 10:00\", 2026-11-22, "
		"10:00 (of "
		"today), or "
		"now",
		text);
	return false;
}
