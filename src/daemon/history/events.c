/*
 * events - see the header
 *
 * SQLite selects by times, serials, names and reasons, which are columns. An event's sentence and
 * kind are only known after reading, so a question about these reads from the newest event
 * backwards until it has enough.
 */
#include "daemon/history/answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/report/tell.h"
#include "policy/words/reason.h"

#define EVENTS_DEFAULT 1000
#define EVENTS_MOST    20000

/* --- which -------------------------------------------------------------------------------- */

/* Whether each word occurs in the event; case is ignored within ASCII. */
static bool has_words(const struct sl_msg_event_row *row, const char *words)
{
	char text[SL_TELL_TEXT_MAX], all[SL_TELL_TEXT_MAX + 256], word[256];

	(void)snprintf(all, sizeof(all), "%s\n%s\n%s\n%s",
		sl_tell_sentence(row, text, sizeof(text)), sl_reason_name(row->reason),
		row->name, row->other_name);
	for (;;) {
		size_t length;

		words += strspn(words, " \t");
		length = strcspn(words, " \t");
		if (!length)
			return true;
		(void)snprintf(word, sizeof(word), "%.*s", (int)length, words);
		if (!strcasestr(all, word))
			return false;
		words += length;
	}
}

bool sl_history_events_sift(const struct sl_history_ask *ask)
{
	return ask->kinds || ask->words[0];
}

bool sl_history_event_wanted(
	const struct sl_history_ask *ask, const struct sl_msg_event_row *row)
{
	if (row->serial <= ask->after || (ask->before && row->serial >= ask->before) ||
		row->realtime_ms < ask->from_ms ||
		(ask->to_ms && row->realtime_ms > ask->to_ms))
		return false;
	if (ask->kinds && !(ask->kinds & (1u << sl_reason_kind(row->reason))))
		return false;
	if (ask->reason[0] && strcmp(ask->reason, sl_reason_name(row->reason)) != 0)
		return false;
	return !ask->words[0] || has_words(row, ask->words);
}

/* --- rows --------------------------------------------------------------------------------- */

static const char columns[] =
	"serial, ms, reason, gpu, workload, other, bytes, available_bytes, other_bytes, "
	"span_ms, pid, uid, lost, name, other_name";

static struct sl_msg_event_row read_event(sqlite3_stmt *statement)
{
	struct sl_msg_event_row row = {
		.serial = (uint64_t)sqlite3_column_int64(statement, 0),
		.realtime_ms = (uint64_t)sqlite3_column_int64(statement, 1),
		.gpu = (uint32_t)sqlite3_column_int64(statement, 3),
		.workload = (uint64_t)sqlite3_column_int64(statement, 4),
		.other = (uint64_t)sqlite3_column_int64(statement, 5),
		.bytes = (uint64_t)sqlite3_column_int64(statement, 6),
		.available_bytes = (uint64_t)sqlite3_column_int64(statement, 7),
		.other_bytes = (uint64_t)sqlite3_column_int64(statement, 8),
		.span_ms = (uint64_t)sqlite3_column_int64(statement, 9),
		.pid = (uint32_t)sqlite3_column_int64(statement, 10),
		.uid = (uint32_t)sqlite3_column_int64(statement, 11),
		.lost = (uint32_t)sqlite3_column_int64(statement, 12),
	};
	char reason[64];

	sl_history_take_text(statement, 2, reason, sizeof(reason));
	/* A newer daemon's reason is a number without a name. */
	row.reason = sl_reason_named(reason);
	sl_history_take_text(statement, 13, row.name, sizeof(row.name));
	sl_history_take_text(statement, 14, row.other_name, sizeof(row.other_name));
	return row;
}

int64_t sl_history_number_of(const char *name)
{
	char *end;
	unsigned long long number = strtoull(name, &end, 10);

	return name[0] >= '0' && name[0] <= '9' && !*end && number <= INT64_MAX
		       ? (int64_t)number
		       : -1;
}

/* --- reading ------------------------------------------------------------------------------ */

/* Events found, the newest first. */
struct found {
	struct sl_msg_event_row *rows;
	size_t count, room;
};

static bool keep(struct found *found, const struct sl_msg_event_row *row)
{
	struct sl_msg_event_row *rows =
		sl_history_grow(found->rows, found->count, &found->room, sizeof(*rows));

	if (!rows)
		return false;
	found->rows = rows;
	found->rows[found->count++] = *row;
	return true;
}

static int64_t bound(uint64_t number, uint64_t none)
{
	return (int64_t)sl_min_u64(number ? number : none, INT64_MAX);
}

static sqlite3_stmt *prepare(
	struct sl_history_reader *reader, const struct sl_history_ask *ask, uint64_t last)
{
	sqlite3_stmt *statement = NULL;
	char sql[768];

	(void)snprintf(sql, sizeof(sql),
		"SELECT %s FROM events WHERE serial > ?1 AND serial < ?2 AND ms >= ?3 "
		"AND ms <= ?4 AND (?5 = '' OR name = ?5 OR other_name = ?5 OR workload = "
		"?6 OR other = ?6) AND (?7 = '' OR reason = ?7) ORDER BY serial DESC "
		"LIMIT ?8",
		columns);
	if (sqlite3_prepare_v2(reader->db, sql, -1, &statement, NULL) != SQLITE_OK)
		return NULL;
	(void)sqlite3_bind_int64(statement, 1, bound(ask->after, 0));
	(void)sqlite3_bind_int64(statement, 2, bound(ask->before, INT64_MAX));
	(void)sqlite3_bind_int64(statement, 3, bound(ask->from_ms, 0));
	(void)sqlite3_bind_int64(statement, 4, bound(ask->to_ms, INT64_MAX));
	(void)sqlite3_bind_text(statement, 5, ask->name, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(statement, 6, sl_history_number_of(ask->name));
	(void)sqlite3_bind_text(statement, 7, ask->reason, -1, SQLITE_STATIC);
	/* -1: all. */
	(void)sqlite3_bind_int64(
		statement, 8, sl_history_events_sift(ask) ? -1 : (int64_t)last);
	return statement;
}

int sl_history_events_each(struct sl_history_reader *reader,
	const struct sl_history_ask *ask, uint64_t last, sl_history_event_fn fn,
	void *context, uint64_t *reached, struct sl_error *err)
{
	sqlite3_stmt *statement = prepare(reader, ask, last);
	struct found found = {0};
	bool failed = false;
	uint64_t serial = 0;
	int r = statement ? SQLITE_ROW : SQLITE_ERROR;

	while (r == SQLITE_ROW && !failed && found.count < last) {
		struct sl_msg_event_row row;

		r = sqlite3_step(statement);
		if (r != SQLITE_ROW)
			break;
		row = read_event(statement);
		serial = row.serial;
		failed = sl_history_event_wanted(ask, &row) && !keep(&found, &row);
	}
	if (failed)
		sl_error_set(err, "sluiced is out of memory; try again");
	if (r == SQLITE_ROW || r == SQLITE_DONE)
		r = failed ? SL_HISTORY_STORE_BAD : SL_HISTORY_STORE_OK;
	else
		r = sl_history_reader_failed(reader, err);
	(void)sqlite3_finalize(statement);
	for (size_t i = r == SL_HISTORY_STORE_OK || r == SL_HISTORY_STORE_BUSY
				? found.count
				: 0;
		i-- > 0;)
		fn(context, &found.rows[i]);
	if (reached)
		*reached = serial;
	free(found.rows);
	return r;
}

/* --- answers ------------------------------------------------------------------------------ */

void sl_history_list_put(struct sl_history_list *list, json_t *object)
{
	if (!object)
		return;
	(void)fputs(list->any ? ",\n" : "", list->out);
	(void)json_dumpf(object, list->out, JSON_COMPACT);
	list->any = true;
	json_decref(object);
}

static void put_event(void *context, const struct sl_msg_event_row *event)
{
	sl_history_list_put(context, sl_tell_event(event));
}

/* Says that the answer is incomplete, and how far back it reaches. */
static void put_gap(FILE *out, uint64_t reached, const char *why)
{
	json_t *gap = json_pack("{s:b, s:I, s:o}", "complete", 0, "reached",
		(json_int_t)reached, "text", sl_text_json(why));

	(void)fputs(",", out);
	(void)json_dumpf(gap, out, JSON_COMPACT | JSON_EMBED);
	json_decref(gap);
}

int sl_history_events(struct sl_history_reader *reader, const struct sl_history_ask *ask,
	FILE *out, struct sl_error *err)
{
	struct sl_history_list list = {.out = out};
	uint64_t reached = 0;
	int r;

	(void)fputs("{\"events\":[", out);
	r = sl_history_events_each(reader, ask,
		sl_min_u64(ask->last ? ask->last : EVENTS_DEFAULT, EVENTS_MOST),
		put_event, &list, &reached, err);
	(void)fputs("]", out);
	if (r == SL_HISTORY_STORE_BUSY) {
		put_gap(out, reached ? reached : ask->before, err->text);
		r = SL_HISTORY_STORE_OK;
	}
	(void)fputs("}\n", out);
	return r;
}
