/* history_series - see the header */
#include "daemon/history/series.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/history/events.h"
#include "daemon/report/tell.h"
#include "policy/figures/usage.h"
#include "policy/node.h"
#include "policy/words/reason.h"

/* Most marks of a series; the newest. */
#define MARKS_MOST 2000

/* --- one workload ------------------------------------------------------------------------- */

/* The workload on one GPU. */
struct line {
	int64_t gpu;
	char uuid[41];
	struct point {
		int64_t request, limit, resident, evicted, hidden, turn_ms, waiting_ms,
			span;
	} * points;
};

struct series {
	int64_t id, from, to, step, first;
	uint64_t number, begun_ms, ended_ms;
	int priority;
	char name[64], user[64], project[64], command[256];
	size_t steps;
	struct line lines[SL_NODE_GPUS_MAX];
	size_t line_count;
	bool failed;
};

/* The newest workload with this number or name. */
static int find_workload(struct sl_history_reader *reader,
	const struct sl_history_ask *ask, struct series *series, struct sl_error *err)
{
	static const char sql[] =
		"SELECT id, number, name, begun_ms, ended_ms, gpu_mask, "
		"priority, user, project, command FROM workloads WHERE (?1 > "
		"0 "
		"AND number = ?1) OR (?1 = 0 AND (name = ?2 OR number = ?3 OR "
		"number || '@' || begun_ms = ?2)) ORDER BY id "
		"DESC LIMIT 1";
	sqlite3_stmt *statement = NULL;
	int r = SQLITE_ERROR;

	if (sqlite3_prepare_v2(reader->db, sql, -1, &statement, NULL) != SQLITE_OK)
		return sl_history_reader_failed(reader, err);
	(void)sqlite3_bind_int64(
		statement, 1, (int64_t)sl_min_u64(ask->workload, INT64_MAX));
	(void)sqlite3_bind_text(statement, 2, ask->name, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(statement, 3, sl_history_number_of(ask->name));
	r = sqlite3_step(statement);
	if (r == SQLITE_ROW) {
		series->id = sqlite3_column_int64(statement, 0);
		series->number = (uint64_t)sqlite3_column_int64(statement, 1);
		sl_history_take_text(statement, 2, series->name, sizeof(series->name));
		series->begun_ms = (uint64_t)sqlite3_column_int64(statement, 3);
		series->ended_ms = (uint64_t)sqlite3_column_int64(statement, 4);
		reader->gpu_mask = sqlite3_column_int64(statement, 5);
		series->priority = sqlite3_column_int(statement, 6);
		sl_history_take_text(statement, 7, series->user, sizeof(series->user));
		sl_history_take_text(
			statement, 8, series->project, sizeof(series->project));
		sl_history_take_text(
			statement, 9, series->command, sizeof(series->command));
	}
	(void)sqlite3_finalize(statement);
	if (r == SQLITE_ROW)
		return SL_HISTORY_STORE_OK;
	if (r != SQLITE_DONE)
		return sl_history_reader_failed(reader, err);
	if (ask->fault)
		*ask->fault = SL_HISTORY_FAULT_UNKNOWN;
	sl_error_set(err,
		"the history knows no such workload; sluice history --by workload "
		"lists those that it knows");
	return SL_HISTORY_STORE_BAD;
}

static void name_gpu(struct sl_history_reader *reader, struct line *line)
{
	sqlite3_stmt *statement = NULL;

	(void)snprintf(line->uuid, sizeof(line->uuid), "?");
	if (sqlite3_prepare_v2(reader->db, "SELECT uuid FROM gpus WHERE id = ?", -1,
		    &statement, NULL) != SQLITE_OK)
		return;
	(void)sqlite3_bind_int64(statement, 1, line->gpu);
	if (sqlite3_step(statement) == SQLITE_ROW)
		sl_history_take_text(statement, 0, line->uuid, sizeof(line->uuid));
	(void)sqlite3_finalize(statement);
}

static struct line *line_of(struct series *series, int64_t gpu)
{
	struct line *line;

	for (size_t i = 0; i < series->line_count; i++) {
		if (series->lines[i].gpu == gpu)
			return &series->lines[i];
	}
	if (series->line_count == SL_ARRAY_LEN(series->lines))
		return NULL;
	line = &series->lines[series->line_count];
	line->points = calloc(series->steps, sizeof(*line->points));
	if (!line->points) {
		series->failed = true;
		return NULL;
	}
	line->gpu = gpu;
	series->line_count++;
	return line;
}

static bool take_row(void *context, const struct sl_history_row *row)
{
	struct series *series = context;
	struct line *line = line_of(series, row->gpu);
	int64_t at = row->t > series->from ? row->t : series->from;
	int64_t end = row->t + row->reach < series->to ? row->t + row->reach : series->to;

	while (line && at < end) {
		size_t i = (size_t)((at - series->first) / series->step);
		int64_t to = series->first + (int64_t)(i + 1) * series->step;
		struct point *point = &line->points[i];

		to = to < end ? to : end;
		point->request += sl_history_part(row, SL_HISTORY_USE_request, at, to);
		point->limit += sl_history_part(row, SL_HISTORY_USE_limit, at, to);
		point->resident += sl_history_part(row, SL_HISTORY_USE_resident, at, to);
		point->evicted += sl_history_part(row, SL_HISTORY_USE_evicted, at, to);
		point->hidden += sl_history_part(row, SL_HISTORY_USE_hidden, at, to);
		point->turn_ms += sl_history_part(row, SL_HISTORY_USE_turn_ms, at, to);
		point->waiting_ms +=
			sl_history_part(row, SL_HISTORY_USE_waiting_ms, at, to);
		point->span += to - at;
		at = to;
	}
	return !series->failed;
}

static void put_numbers(
	FILE *out, const struct series *series, const struct line *line, size_t offset)
{
	for (size_t i = 0; i < series->steps; i++) {
		const struct point *point = &line->points[i];
		int64_t sum = *(const int64_t *)((const char *)point + offset);

		if (point->span)
			(void)fprintf(out, "%s%" PRId64, i ? "," : "",
				sum / point->span * 1024);
		else
			(void)fprintf(out, "%snull", i ? "," : "");
	}
}

/* Writes a field in milliseconds as its share of each step. */
static void put_share(FILE *out, const struct series *series, const struct line *line,
	const char *name, size_t offset)
{
	(void)fprintf(out, "\"%s\":[", name);
	for (size_t i = 0; i < series->steps; i++) {
		const struct point *point = &line->points[i];
		int64_t ms = *(const int64_t *)((const char *)point + offset);
		double share = point->span ? (double)ms / 1000 / (double)point->span : 0;

		/* A counter's growth counts until its sample, which may be late: more than a step
		 * is cut. */
		if (point->span)
			(void)fprintf(out, "%s%.3g", i ? "," : "", share < 1 ? share : 1);
		else
			(void)fprintf(out, "%snull", i ? "," : "");
	}
	(void)fputs("]", out);
}

static void put_line(FILE *out, const struct series *series, const struct line *line)
{
	static const struct {
		const char *name;
		size_t offset;
	} numbers[] = {
		{"request", offsetof(struct point, request)},
		{"limit", offsetof(struct point, limit)},
		{"resident", offsetof(struct point, resident)},
		{"evicted", offsetof(struct point, evicted)},
		{"hidden", offsetof(struct point, hidden)},
	};

	(void)fprintf(out, "\"%s\":{", line->uuid);
	for (size_t i = 0; i < SL_ARRAY_LEN(numbers); i++) {
		(void)fprintf(out, "\"%s\":[", numbers[i].name);
		put_numbers(out, series, line, numbers[i].offset);
		(void)fputs("],", out);
	}
	put_share(out, series, line, "turn", offsetof(struct point, turn_ms));
	(void)fputs(",", out);
	put_share(out, series, line, "wait", offsetof(struct point, waiting_ms));
	(void)fputs("}", out);
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

/* Marks the steps in which a burst begins. */
static void put_bursts(struct marking *marking)
{
	const struct series *series = marking->series;

	for (size_t l = 0; l < series->line_count; l++) {
		const struct line *line = &series->lines[l];
		struct sl_usage_bursting so_far = {0};
		bool before = false;

		for (size_t i = 0; i < series->steps; i++) {
			const struct point *p = &line->points[i];
			bool bursts =
				p->span &&
				sl_usage_bursts(&so_far, (uint64_t)(p->request / p->span),
					(uint64_t)((p->resident + p->hidden) / p->span));

			if (bursts && !before)
				sl_history_list_put(&marking->list,
					json_pack("{s:I, s:s, s:n, s:s, s:s, s:s}", "ms",
						(json_int_t)(series->first +
							     (int64_t)i * series->step) *
							1000,
						"kind", "burst", "reason", "text",
						"it has more than its request",
						"other_name", "", "uuid", line->uuid));
			before = bursts || (!p->span && before);
		}
	}
}

static int put_marks(struct sl_history_reader *reader, const struct series *series,
	FILE *out, struct sl_error *err)
{
	struct marking marking = {.list = {.out = out}, .series = series};
	struct sl_history_ask ask = {
		.from_ms = sl_max_u64((uint64_t)series->from * 1000,
			sl_sub_sat(series->begun_ms, 1000)),
		.to_ms = (uint64_t)series->to * 1000,
	};

	/* The number may have been another workload's before or after. */
	if (series->ended_ms)
		ask.to_ms = sl_min_u64(ask.to_ms, series->ended_ms + 1000);
	(void)snprintf(ask.name, sizeof(ask.name), "%" PRIu64, series->number);
	put_bursts(&marking);
	return sl_history_events_each(
		reader, &ask, MARKS_MOST, put_mark, &marking, NULL, err);
}

/* Describes the workload; one that ended is in no list of the daemon. */
static void put_who(FILE *out, const struct series *series)
{
	const struct {
		const char *key, *text;
	} texts[] = {{"name", series->name}, {"user", series->user},
		{"project", series->project}, {"command", series->command}};

	for (size_t i = 0; i < SL_ARRAY_LEN(texts); i++) {
		json_t *text = sl_text_json(texts[i].text);

		(void)fprintf(out, ",\"%s\":", texts[i].key);
		if (text)
			(void)json_dumpf(text, out, JSON_ENCODE_ANY);
		else
			(void)fputs("null", out);
		json_decref(text);
	}
}

static int put_series(struct sl_history_reader *reader, struct series *series,
	const struct sl_history_ask *ask, FILE *out, struct sl_error *err)
{
	int r;

	(void)fprintf(out, "{\"id\":%" PRIu64 ",\"priority\":%d", series->number,
		series->priority);
	put_who(out, series);
	(void)fprintf(out,
		",\"begun_ms\":%" PRIu64 ",\"ended_ms\":%" PRIu64
		",\"step_s\":%u,\"t_ms\":[",
		series->begun_ms, series->ended_ms, ask->step_s);
	for (size_t i = 0; i < series->steps; i++)
		(void)fprintf(out, "%s%" PRId64, i ? "," : "",
			(series->first + (int64_t)i * series->step) * 1000);
	(void)fputs("],\"gpus\":{", out);
	for (size_t i = 0; i < series->line_count; i++) {
		name_gpu(reader, &series->lines[i]);
		(void)fputs(i ? "," : "", out);
		put_line(out, series, &series->lines[i]);
	}
	(void)fputs("},\"marks\":[", out);
	r = put_marks(reader, series, out, err);
	(void)fputs("]}\n", out);
	return r;
}

int sl_history_series(struct sl_history_reader *reader, const struct sl_history_ask *ask,
	FILE *out, struct sl_error *err)
{
	struct series series = {.from = (int64_t)(ask->from_ms / 1000),
		.to = (int64_t)((ask->to_ms + 999) / 1000),
		.step = ask->step_s};
	int64_t from, to;
	int r = find_workload(reader, ask, &series, err);

	if (r != SL_HISTORY_STORE_OK)
		return r;
	series.first = series.from / series.step * series.step;
	series.steps =
		(size_t)((series.to - series.first + series.step - 1) / series.step);
	/* Limits reading to its lifetime, because rows of all workloads lie mixed. */
	from = series.from > (int64_t)(series.begun_ms / 1000) - 1
		       ? series.from
		       : (int64_t)(series.begun_ms / 1000) - 1;
	to = series.ended_ms && series.to > (int64_t)(series.ended_ms / 1000) + 1
		     ? (int64_t)(series.ended_ms / 1000) + 1
		     : series.to;
	r = sl_history_read_rows(reader, SL_HISTORY_USES,
		sl_history_level_of(ask->step_s), from, to, series.id, take_row, &series,
		err);
	if (r == SL_HISTORY_STORE_OK && series.failed) {
		sl_error_set(err, "sluiced is out of memory; try again");
		r = SL_HISTORY_STORE_BAD;
	}
	if (r == SL_HISTORY_STORE_OK)
		r = put_series(reader, &series, ask, out, err);
	for (size_t i = 0; i < series.line_count; i++)
		free(series.lines[i].points);
	return r;
}
