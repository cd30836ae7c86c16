/*
 * answer - see the header
 *
 * Rows are divided into cells, one per key and time step with figures. A row that spans several
 * steps gives each its part, so the cells add up to exactly the rows. Without a step length in the
 * question, the shortest one is chosen that does not exceed the bounds; begin and end of the
 * workloads tell that beforehand.
 */
#include "daemon/history/query.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/history/advice.h"
#include "daemon/history/events.h"
#include "daemon/history/print.h"
#include "daemon/history/read.h"
#include "daemon/history/series.h"

/* --- the question ------------------------------------------------------------------------- */

/* As fine as the levels kept for so long a time. */
static int64_t shortest_step(uint64_t span_s)
{
	return span_s <= 3600 ? 1 : span_s <= 7 * 86400 ? 60 : 3600;
}

bool sl_history_ask_complete(
	struct sl_history_ask *ask, uint64_t now_ms, struct sl_error *err)
{
	uint64_t span_s;

	if (!ask->to_ms || ask->to_ms > now_ms)
		ask->to_ms = now_ms;
	if (ask->from_ms >= ask->to_ms) {
		sl_error_set(err, "the time that is asked for is empty or still to come; "
				  "let it begin "
				  "before it ends");
		return false;
	}
	span_s = (ask->to_ms - ask->from_ms + 999) / 1000;
	/* Of usage, the step is chosen later, when the number of keys is known. */
	if (!ask->step_s && ask->what != SL_HISTORY_USAGE)
		ask->step_s = (uint32_t)shortest_step(span_s);
	if (ask->step_s && span_s / ask->step_s >= SL_HISTORY_ROWS_MAX) {
		sl_error_set(err,
			"steps of %u s are too short for so long a time; ask for steps "
			"of %" PRIu64 " s or more",
			ask->step_s, span_s / SL_HISTORY_ROWS_MAX + 1);
		return false;
	}
	return true;
}

enum sl_history_level sl_history_level_of(uint32_t step_s)
{
	return step_s % 3600 == 0 ? SL_HISTORY_HOURS
	       : step_s % 60 == 0 ? SL_HISTORY_MINUTES
				  : SL_HISTORY_SECONDS;
}

/* --- keys --------------------------------------------------------------------------------- */

static struct sl_history_key *key_new(
	struct sl_history_table *table, const char *key, const char *name)
{
	struct sl_history_key **all, *fresh = NULL;

	for (size_t i = 0;
		table->ask->by != SL_HISTORY_BY_WORKLOAD && i < table->key_count; i++) {
		if (strcmp(table->keys[i]->key, key) == 0)
			return table->keys[i];
	}
	/* The array doubles at powers of two. */
	all = table->keys;
	if ((table->key_count & (table->key_count - 1)) == 0)
		all = realloc(table->keys, sl_max_u64(1, table->key_count * 2) *
						   sizeof(struct sl_history_key *));
	if (all) {
		table->keys = all;
		fresh = calloc(1, sizeof(*fresh));
	}
	if (!fresh) {
		table->failed = true;
		return NULL;
	}
	fresh->number = table->key_count;
	fresh->first = INT64_MAX;
	sl_wire_str(fresh->key, sizeof(fresh->key), key);
	sl_wire_str(fresh->name, sizeof(fresh->name), name);
	table->keys[table->key_count++] = fresh;
	return fresh;
}

static bool is_asked_for(
	const struct sl_history_table *table, const char *key, const char *name)
{
	const char *only = table->ask->name;

	return !only[0] || strcmp(only, key) == 0 || strcmp(only, name) == 0;
}

/* Widens the key's time. A row of a minute or hour may reach beyond it; cells_of() allows for
 * that. */
static void widen(struct sl_history_table *table, struct sl_history_key *key,
	int64_t begun, int64_t ended)
{
	begun = begun > table->from ? begun : table->from;
	ended = ended < table->to ? ended : table->to;
	if (begun < key->first)
		key->first = begun;
	if (ended > key->last)
		key->last = ended;
}

/* sql returns id, key, name, begun_ms, ended_ms (0: not yet). */
static bool read_keys(
	struct sl_history_table *table, struct sl_history_reader *reader, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int r = SQLITE_ERROR;

	if (sqlite3_prepare_v2(reader->db, sql, -1, &statement, NULL) != SQLITE_OK)
		return false;
	while (!table->failed && (r = sqlite3_step(statement)) == SQLITE_ROW) {
		uint64_t id = (uint64_t)sqlite3_column_int64(statement, 0);
		const char *key = (const char *)sqlite3_column_text(statement, 1);
		const char *name = (const char *)sqlite3_column_text(statement, 2);
		int64_t begun = sqlite3_column_int64(statement, 3) / 1000;
		int64_t ended = sqlite3_column_int64(statement, 4) / 1000;
		struct sl_history_key *at;

		if (!key || !name || !is_asked_for(table, key, name))
			continue;
		at = key_new(table, key, name);
		if (at && sl_map_put(&table->by_id, id, at) < 0)
			table->failed = true;
		if (at)
			widen(table, at, begun, ended ? ended + 1 : table->to);
	}
	(void)sqlite3_finalize(statement);
	return table->failed || r == SQLITE_DONE;
}

static bool find_keys(struct sl_history_table *table, struct sl_history_reader *reader)
{
	static const char *const sql[SL_HISTORY_BYS] = {
		[SL_HISTORY_BY_USER] =
			"SELECT id, uid, user, begun_ms, ended_ms FROM workloads",
		[SL_HISTORY_BY_PROJECT] =
			"SELECT id, project, project, begun_ms, ended_ms FROM workloads",
		[SL_HISTORY_BY_GPU] = "SELECT id, uuid, name, 0, 0 FROM gpus",
		[SL_HISTORY_BY_WORKLOAD] =
			/* Numbers start over with the machine: all but the newest get their begin
			 * time appended. */
		"SELECT id, CASE WHEN id IN (SELECT max(id) FROM workloads GROUP BY "
		"number) THEN number ELSE number || '@' || begun_ms END, name, "
		"begun_ms, ended_ms FROM workloads",
		[SL_HISTORY_BY_PROGRAM] =
			"SELECT id, program, program, begun_ms, ended_ms FROM workloads",
	};
	char text[320];

	if (table->ask->by == SL_HISTORY_BY_GPU)
		return read_keys(table, reader, sql[table->ask->by]);
	/* Leaves out workloads that ended before. */
	(void)snprintf(text, sizeof(text),
		"%s WHERE ended_ms = 0 OR ended_ms >= %" PRId64 " ORDER BY id",
		sql[table->ask->by], (table->from - 3600) * 1000);
	return read_keys(table, reader, text);
}

/* --- dividing ----------------------------------------------------------------------------- */

/* NULL: too many cells, or no memory. */
static struct sl_history_figures *cell_new(
	struct sl_history_table *table, struct sl_history_key *key, size_t step)
{
	struct sl_history_cell *cells = table->cells;

	if (table->cell_count == table->cells_most) {
		table->too_many = true;
		return NULL;
	}
	if (table->cell_count == table->cell_room) {
		size_t room = sl_max_u64(64, table->cell_room * 2);

		cells = realloc(table->cells, room * sizeof(*cells));
		if (cells) {
			table->cells = cells;
			table->cell_room = room;
		}
	}
	if (!cells || sl_map_put(&table->by_place, (uint64_t)key->number << 32 | step,
			      (void *)(uintptr_t)(table->cell_count + 1)) < 0) {
		table->failed = true;
		return NULL;
	}
	cells[table->cell_count++] = (struct sl_history_cell){.key = key, .step = step};
	key->cell = table->cell_count;
	return &cells[key->cell - 1].figures;
}

static struct sl_history_figures *cell_of(
	struct sl_history_table *table, struct sl_history_key *key, size_t step)
{
	/* Rows come by time, so it is mostly the last row's cell. */
	if (!key->cell || table->cells[key->cell - 1].step != step)
		key->cell = (uintptr_t)sl_map_get(
			&table->by_place, (uint64_t)key->number << 32 | step);
	return key->cell ? &table->cells[key->cell - 1].figures
			 : cell_new(table, key, step);
}

static void fold(int64_t *into, enum sl_history_kind kind, uint32_t column, int64_t value)
{
	if (sl_history_columns[kind].folds[column] == SL_HISTORY_SUM)
		*into += value;
	else if (value > *into)
		*into = value;
}

/* Adds the part of a row within [from, to). */
static void add_part(struct sl_history_figures *figures, enum sl_history_kind kind,
	const struct sl_history_row *row, int64_t from, int64_t to)
{
	int64_t *into = kind == SL_HISTORY_USES ? figures->use : figures->gpu;

	for (uint32_t c = 0; c < sl_history_columns[kind].count; c++) {
		bool sums = sl_history_columns[kind].folds[c] == SL_HISTORY_SUM;

		fold(&into[c], kind, c,
			sums ? sl_history_part(row, c, from, to) : row->value[c]);
	}
}

static void deal(struct sl_history_table *table, struct sl_history_key *key,
	enum sl_history_kind kind, const struct sl_history_row *row)
{
	int64_t from = row->t > table->from ? row->t : table->from;
	int64_t end = row->t + row->reach < table->to ? row->t + row->reach : table->to;

	if (from >= end)
		return;
	key->any = true;
	add_part(&key->total, kind, row, from, end);
	while (!table->ask->only_totals && from < end) {
		size_t step = (size_t)((from - table->first) / table->step);
		int64_t to = table->first + (int64_t)(step + 1) * table->step;
		struct sl_history_figures *figures = cell_of(table, key, step);

		if (!figures)
			return;
		to = to < end ? to : end;
		add_part(figures, kind, row, from, to);
		from = to;
	}
}

static bool take_row(struct sl_history_table *table, enum sl_history_kind kind,
	const struct sl_history_row *row)
{
	bool by_gpu = table->ask->by == SL_HISTORY_BY_GPU;
	struct sl_history_key *key =
		sl_map_get(&table->by_id, (uint64_t)(by_gpu ? row->gpu : row->workload));

	if (key)
		deal(table, key, kind, row);
	return !table->failed && !table->too_many;
}

static bool take_use(void *context, const struct sl_history_row *row)
{
	return take_row(context, SL_HISTORY_USES, row);
}

static bool take_gpu(void *context, const struct sl_history_row *row)
{
	return take_row(context, SL_HISTORY_GPUS, row);
}

/* --- all of it ---------------------------------------------------------------------------- */

/* The most cells there may be. */
static uint64_t cells_of(const struct sl_history_table *table, int64_t step)
{
	/* A row may be about all of its minute or hour. */
	int64_t reach = step > 60 ? 3600 : 60;
	uint64_t cells = 0;

	for (size_t k = 0; k < table->key_count; k++) {
		const struct sl_history_key *key = table->keys[k];

		if (key->last > key->first)
			cells += (uint64_t)((key->last - key->first + reach) / step + 2);
	}
	return cells;
}

static int64_t choose_step(const struct sl_history_table *table)
{
	static const int64_t steps[] = {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
		3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600};
	int64_t span = table->to - table->from, step = 0;
	uint64_t most = table->ask->steps_most ? table->ask->steps_most : UINT32_MAX;

	for (size_t i = 0; step <= span; i++) {
		step = i < SL_ARRAY_LEN(steps) ? steps[i]
					       : 86400ll << (i - SL_ARRAY_LEN(steps));
		if (step >= shortest_step((uint64_t)span) &&
			(uint64_t)((span + step - 1) / step) <= most &&
			cells_of(table, step) <= table->cells_most)
			break;
	}
	return step;
}

static void table_fini(struct sl_history_table *table)
{
	for (size_t k = 0; k < table->key_count; k++)
		free(table->keys[k]);
	free(table->keys);
	free(table->cells);
	sl_map_fini(&table->by_id);
	sl_map_fini(&table->by_place);
}

static int read_all(struct sl_history_table *table, struct sl_history_reader *reader)
{
	/* Totals are exact with whole hours, too. */
	enum sl_history_level level =
		table->ask->only_totals ? SL_HISTORY_HOURS
					: sl_history_level_of((uint32_t)table->step);
	int r = sl_history_read_rows(reader, SL_HISTORY_USES, level, table->from,
		table->to, 0, take_use, table, table->err);

	if (r == SL_HISTORY_STORE_OK && !table->failed && !table->too_many &&
		table->ask->by == SL_HISTORY_BY_GPU)
		r = sl_history_read_rows(reader, SL_HISTORY_GPUS, level, table->from,
			table->to, 0, take_gpu, table, table->err);
	if (r != SL_HISTORY_STORE_OK)
		return r;
	if (table->too_many && table->ask->fault)
		*table->ask->fault = SL_HISTORY_FAULT_ASKED;
	if (table->too_many)
		sl_error_set(table->err,
			"that would be more than %zu rows; ask for longer steps, a "
			"shorter time, or one name",
			table->cells_most);
	else if (table->failed)
		sl_error_set(table->err, "sluiced is out of memory; try again");
	return table->too_many || table->failed ? SL_HISTORY_STORE_BAD
						: SL_HISTORY_STORE_OK;
}

static int usage(struct sl_history_reader *reader, const struct sl_history_ask *ask,
	FILE *out, struct sl_error *err)
{
	struct sl_history_table table = {.ask = ask,
		.err = err,
		.from = (int64_t)(ask->from_ms / 1000),
		.to = (int64_t)((ask->to_ms + 999) / 1000),
		.step = ask->step_s,
		.cells_most = ask->rows_most ? ask->rows_most : SL_HISTORY_ROWS_MAX};
	int r;

	if (!find_keys(&table, reader)) {
		r = sl_history_reader_failed(reader, err);
	} else {
		if (!table.step)
			table.step = ask->only_totals ? table.to - table.from
						      : choose_step(&table);
		table.first = table.from / table.step * table.step;
		r = read_all(&table, reader);
	}
	if (r == SL_HISTORY_STORE_OK)
		sl_history_print(&table, out);
	table_fini(&table);
	return r;
}

int sl_history_query(const char *path, const struct sl_history_ask *asked,
	uint64_t now_ms, FILE *out, struct sl_error *err)
{
	sl_cleanup(sl_history_reader_close) struct sl_history_reader reader = {0};
	struct sl_history_ask ask = *asked;
	int r;

	if (ask.what != SL_HISTORY_EVENTS &&
		!sl_history_ask_complete(&ask, now_ms, err)) {
		if (ask.fault)
			*ask.fault = SL_HISTORY_FAULT_ASKED;
		return SL_HISTORY_STORE_BAD;
	}
	r = sl_history_reader_open(&reader, path, ask.cancel, err);
	if (r != SL_HISTORY_STORE_OK)
		return r;
	switch (ask.what) {
	case SL_HISTORY_USAGE: return usage(&reader, &ask, out, err);
	case SL_HISTORY_SERIES: return sl_history_series(&reader, &ask, out, err);
	case SL_HISTORY_EVENTS: return sl_history_events(&reader, &ask, out, err);
	case SL_HISTORY_ADVICE: return sl_history_advice(&reader, &ask, out, err);
	case SL_HISTORY_WHATS: break;
	}
	sl_error_set(err, "there is no such question about the history");
	return SL_HISTORY_STORE_BAD;
}
