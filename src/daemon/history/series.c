/*
 * series - see the header
 *
 * A series is figures by GPU and step of time (history/read.h) of a single workload, which SQLite
 * prints as arrays.
 */
#include "daemon/history/answers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/report/tell.h"
#include "policy/figures/usage.h"
#include "policy/node.h"
#include "policy/words/reason.h"

/* Most marks of a series; the newest. */
#define MARKS_MOST 2000
/* Columns of find_workload that describe it in the answer. */
#define DESCRIBED 9

struct series {
	struct sl_history_cut cut;
	int64_t ahead_s;
	uint64_t number, begun_ms, ended_ms; /* by the machine's clock */
};

/* Finds the newest workload with this number or name, and describes it, because the daemon's lists
 * lack one that has ended. */
static int find_workload(struct sl_history_reader *reader,
	const struct sl_history_ask *ask, struct series *series, FILE *out,
	struct sl_error *err)
{
	sl_cleanup(sl_history_statement_end) sqlite3_stmt *statement =
		sl_history_reader_ask(reader,
			"SELECT number AS id, priority, name, user, project, command, "
			"begun_ms - %" PRId64 " AS begun_ms, CASE ended_ms WHEN 0 THEN 0 "
			"ELSE ended_ms - %" PRId64
			" END AS ended_ms, %u AS step_s, id FROM "
			"workloads WHERE (?1 > 0 AND number = ?1) OR (?1 = 0 AND (name = "
			"?2 "
			"OR number = ?3 OR number || '@' || begun_ms = ?2)) ORDER BY id "
			"DESC "
			"LIMIT 1",
			ask->ahead_s * 1000, ask->ahead_s * 1000, ask->step_s);
	int r = SQLITE_ERROR;

	if (statement) {
		(void)sqlite3_bind_int64(
			statement, 1, (int64_t)sl_min_u64(ask->workload, INT64_MAX));
		(void)sqlite3_bind_text(statement, 2, ask->name, -1, SQLITE_STATIC);
		(void)sqlite3_bind_int64(statement, 3, sl_history_number_of(ask->name));
		r = sqlite3_step(statement);
	}
	if (r == SQLITE_ROW) {
		series->number = (uint64_t)sqlite3_column_int64(statement, 0);
		series->begun_ms = (uint64_t)sqlite3_column_int64(statement, 6);
		series->ended_ms = (uint64_t)sqlite3_column_int64(statement, 7);
		series->cut.only = sqlite3_column_int64(statement, DESCRIBED);
		sl_history_print_members(statement, DESCRIBED, out);
		return SL_HISTORY_STORE_OK;
	}
	if (r != SQLITE_DONE)
		return sl_history_reader_failed(reader, err);
	if (ask->fault)
		*ask->fault = SL_HISTORY_FAULT_UNKNOWN;
	sl_error_set(err,
		"the history knows no such workload; sluice history --by workload "
		"lists those that it knows");
	return SL_HISTORY_STORE_BAD;
}

/* Adds its rows up. Only its lifetime is read, because rows of all workloads lie mixed. */
static int fill(struct sl_history_reader *reader, const struct series *series,
	struct sl_error *err)
{
	struct sl_history_cut cut = series->cut;
	int64_t begun = (int64_t)(series->begun_ms / 1000) + series->ahead_s - 1;
	int64_t ended = (int64_t)(series->ended_ms / 1000) + series->ahead_s + 1;

	cut.from = cut.from > begun ? cut.from : begun;
	if (series->ended_ms && cut.to > ended)
		cut.to = ended;
	if (!sl_history_cells_make(reader, false) ||
		!sl_history_reader_run(
			reader, "INSERT INTO keys SELECT id, uuid, '', 0, 0 FROM gpus"))
		return sl_history_reader_failed(reader, err);
	return sl_history_cells_fill(reader, SL_HISTORY_USES, &cut, err);
}

/* Writes the times of the steps, and for each GPU an array per figure. A counter's growth belongs
 * to the step of its sample, which may be late, so a share of a step is cut at 1. */
static bool put_lines(
	struct sl_history_reader *reader, const struct series *series, FILE *out)
{
	static const char *const means[] = {
		"request", "limit", "resident", "evicted", "hidden"};
	static const char *const shares[][2] = {
		{"turn", "turn_ms"}, {"wait", "waiting_ms"}};
	sqlite3_str *sql = sqlite3_str_new(reader->db);
	sl_cleanup(sl_history_statement_end) sqlite3_stmt *lines = NULL;
	sl_cleanup(sl_history_statement_end) sqlite3_stmt *times = NULL;
	bool any = false;
	char *text;

	sqlite3_str_appendall(sql, "SELECT uuid");
	for (size_t i = 0; i < SL_ARRAY_LEN(means); i++)
		sqlite3_str_appendf(sql,
			", (SELECT json_group_array(\"%s\" / covered * 1024) FROM n LEFT "
			"JOIN cells ON s = i AND key = uuid WHERE i < ?1) AS \"%s\"",
			means[i], means[i]);
	for (size_t i = 0; i < SL_ARRAY_LEN(shares); i++)
		sqlite3_str_appendf(sql,
			", (SELECT json_group_array(min(1, round(%s / 1e3 / covered, "
			"4))) "
			"FROM n LEFT JOIN cells ON s = i AND key = uuid WHERE i < ?1) AS "
			"%s",
			shares[i][1], shares[i][0]);
	sqlite3_str_appendall(
		sql, " FROM gpus WHERE uuid IN (SELECT key FROM cells) ORDER BY id");
	text = sqlite3_str_finish(sql);
	if (text)
		(void)sqlite3_prepare_v2(reader->db, text, -1, &lines, NULL);
	sqlite3_free(text);
	times = sl_history_reader_ask(reader,
		"SELECT json_group_array((%" PRId64 " + i * %" PRId64
		") * 1000) FROM n WHERE i < %" PRIu64,
		series->cut.first - series->ahead_s, series->cut.step, series->cut.steps);
	if (!lines || !times || sqlite3_step(times) != SQLITE_ROW)
		return false;
	(void)sqlite3_bind_int64(lines, 1, (int64_t)series->cut.steps);
	(void)fprintf(out, ",\"t_ms\":%s,\"gpus\":{",
		(const char *)sqlite3_column_text(times, 0));
	while (sqlite3_step(lines) == SQLITE_ROW) {
		(void)fprintf(out, "%s\"%s\":{", any ? "," : "",
			(const char *)sqlite3_column_text(lines, 0));
		for (int i = 1; i < sqlite3_column_count(lines); i++)
			(void)fprintf(out, "%s\"%s\":%s", i > 1 ? "," : "",
				sqlite3_column_name(lines, i),
				(const char *)sqlite3_column_text(lines, i));
		(void)fputc('}', out);
		any = true;
	}
	(void)fputs("}", out);
	return sqlite3_reset(lines) == SQLITE_OK;
}

/* --- what happened to it ------------------------------------------------------------------ */

/* NULL: nothing to mark. */
static const char *mark_of(uint32_t reason)
{
	switch (sl_reason_kind(reason)) {
	case SL_REASON_KIND_DENY:
	case SL_REASON_KIND_EXCEPT: return "denied";
	case SL_REASON_KIND_WAIT: return "wait";
	case SL_REASON_KIND_STOP: return "stopped";
	default: break;
	}
	switch (reason) {
	case SL_REASON_EVICTED_FOR:
	case SL_REASON_EVICTED_IDLE: return "evicted";
	case SL_REASON_RESTORED: return "restored";
	case SL_REASON_PARK_BEGINS:
	case SL_REASON_PARKED: return "parked";
	case SL_REASON_DETACH_BEGINS:
	case SL_REASON_DETACHED_IDLE: return "detached";
	case SL_REASON_RESUMED: return "resumed";
	default: return NULL;
	}
}

struct marking {
	struct sl_history_list list;
	const struct series *series;
};

static void put_mark(void *context, const struct sl_msg_event_row *row)
{
	struct marking *marking = context;
	const char *kind = mark_of(row->reason);
	char text[SL_TELL_TEXT_MAX];

	/* Events that it caused to others belong to those. */
	if (!kind || row->workload != marking->series->number)
		return;
	sl_history_list_put(&marking->list,
		json_pack("{s:I, s:s, s:s, s:o, s:o, s:I, s:i, s:I}", "ms",
			(json_int_t)row->realtime_ms, "kind", kind, "reason",
			sl_reason_name(row->reason), "text",
			sl_text_json(sl_tell_sentence(row, text, sizeof(text))),
			"other_name", sl_text_json(row->other_name), "other",
			(json_int_t)row->other, "gpu", (int)row->gpu, "bytes",
			(json_int_t)row->bytes));
}

/* Marks the steps in which a burst begins; steps without figures do not end one. */
static bool put_bursts(struct sl_history_reader *reader, struct marking *marking)
{
	const struct series *series = marking->series;
	sl_cleanup(sl_history_statement_end) sqlite3_stmt *statement =
		sl_history_reader_ask(reader, "SELECT key, s, request / covered, "
					      "(resident + hidden) / covered FROM "
					      "cells ORDER BY key, s");
	struct sl_usage_bursting so_far = {0};
	char uuid[41] = "";
	bool before = false;
	int r = SQLITE_ERROR;

	while (statement && (r = sqlite3_step(statement)) == SQLITE_ROW) {
		const char *key = (const char *)sqlite3_column_text(statement, 0);
		bool bursts;

		if (strcmp(key, uuid) != 0) {
			so_far = (struct sl_usage_bursting){0};
			before = false;
			sl_wire_str(uuid, sizeof(uuid), key);
		}
		bursts = sl_usage_bursts(&so_far,
			(uint64_t)sqlite3_column_int64(statement, 2),
			(uint64_t)sqlite3_column_int64(statement, 3));
		if (bursts && !before)
			sl_history_list_put(&marking->list,
				json_pack("{s:I, s:s, s:n, s:s, s:s, s:s}", "ms",
					(json_int_t)(series->cut.first - series->ahead_s +
						     sqlite3_column_int64(statement, 1) *
							     series->cut.step) *
						1000,
					"kind", "burst", "reason", "text",
					"it has more than its request", "other_name", "",
					"uuid", uuid));
		before = bursts;
	}
	return r == SQLITE_DONE;
}

static int put_marks(struct sl_history_reader *reader, const struct series *series,
	const struct sl_history_ask *asked, FILE *out, struct sl_error *err)
{
	struct marking marking = {.list = {.out = out}, .series = series};
	struct sl_history_ask ask = {
		.from_ms = sl_max_u64(asked->from_ms, sl_sub_sat(series->begun_ms, 1000)),
		.to_ms = asked->to_ms,
	};

	/* The number may have been another workload's before or after. */
	if (series->ended_ms)
		ask.to_ms = sl_min_u64(ask.to_ms, series->ended_ms + 1000);
	(void)snprintf(ask.name, sizeof(ask.name), "%" PRIu64, series->number);
	if (!put_bursts(reader, &marking))
		return sl_history_reader_failed(reader, err);
	return sl_history_events_each(
		reader, &ask, MARKS_MOST, put_mark, &marking, NULL, err);
}

int sl_history_series(struct sl_history_reader *reader, const struct sl_history_ask *ask,
	FILE *out, struct sl_error *err)
{
	struct series series = {.cut = sl_history_cut_of(ask), .ahead_s = ask->ahead_s};
	int r;

	series.cut.steps =
		(uint64_t)((series.cut.to - series.cut.first + series.cut.step - 1) /
			   series.cut.step);
	/* One for each step and GPU. */
	series.cut.most *= SL_NODE_GPUS_MAX;
	(void)fputc('{', out);
	r = find_workload(reader, ask, &series, out, err);
	if (r == SL_HISTORY_STORE_OK)
		r = fill(reader, &series, err);
	if (r == SL_HISTORY_STORE_OK && !put_lines(reader, &series, out))
		r = sl_history_reader_failed(reader, err);
	(void)fputs(",\"marks\":[", out);
	if (r == SL_HISTORY_STORE_OK)
		r = put_marks(reader, &series, ask, out, err);
	(void)fputs("]}\n", out);
	return r;
}
