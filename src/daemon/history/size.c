/*
 * size - holds the used part of the file below history_size
 *
 * It deletes the oldest rows of what takes most space, so that small tables meant for long keeping
 * (hours of GPUs, events) stay. SQLite can only tell a table's size by walking it. So the size is
 * estimated from the number of rows at both ends, once a minute while space is short. Rows not
 * rolled up yet are never deleted.
 */
#include "daemon/history/store_internal.h"

#include <inttypes.h>
#include <stdio.h>

/* Steps counted at each end. */
#define WINDOW_STEPS 32
/* Rounds in one call; a call comes once a second. */
#define ROUNDS   16
#define ROWS     20000
#define EVENTS   500
#define CHOOSE_S 60
/* Size of an event in the unit of a row's column. */
#define EVENT_WEIGHT 60

/* What can be deleted separately. Hours of workloads and of GPUs are read independently; finer
 * levels are not. */
enum victim { OF_SECONDS = 0, OF_MINUTES, OF_HOURS, OF_GPU_HOURS, OF_EVENTS, VICTIMS };

static const struct {
	enum sl_history_kind kind;
	enum sl_history_level level;
} tables[OF_EVENTS] = {
	[OF_SECONDS] = {SL_HISTORY_USES, SL_HISTORY_SECONDS},
	[OF_MINUTES] = {SL_HISTORY_USES, SL_HISTORY_MINUTES},
	[OF_HOURS] = {SL_HISTORY_USES, SL_HISTORY_HOURS},
	[OF_GPU_HOURS] = {SL_HISTORY_GPUS, SL_HISTORY_HOURS},
};

static bool ask_of(struct sl_history_store *store, const char *what, const char *table,
	int64_t from, int64_t to, int64_t *out)
{
	char sql[192];

	(void)snprintf(sql, sizeof(sql),
		"SELECT ifnull(%s, 0) FROM %s WHERE t >= %" PRId64 " AND t < %" PRId64,
		what, table, from, to);
	return sl_history_sql_ask(store, sql, out);
}

/* Estimates how much of the table could be deleted, in columns of rows. */
static bool weigh_table(
	struct sl_history_store *store, enum victim victim, int64_t before, uint64_t *out)
{
	enum sl_history_kind kind = tables[victim].kind;
	const char *table = sl_history_tables[kind][tables[victim].level];
	int64_t window = WINDOW_STEPS * sl_history_grains[tables[victim].level];
	int64_t first = 0, last = 0, old = 0, new = 0, span;

	*out = 0;
	if (!ask_of(store, "min(t)", table, 0, before, &first) ||
		!ask_of(store, "max(t)", table, 0, before, &last))
		return false;
	if (!first)
		return true;
	span = last - first + 1;
	window = span < window ? span : window;
	if (!ask_of(store, "count(*)", table, first, first + window, &old) ||
		!ask_of(store, "count(*)", table, last + 1 - window, last + 1, &new))
		return false;
	*out = (uint64_t)((old + new) / 2 * (span / window)) *
	       (sl_history_columns[kind].count + 4);
	return true;
}

/* Up to where rows may go: where the level is rolled up to, or now. */
static bool end_of(
	struct sl_history_store *store, enum victim victim, int64_t now, int64_t *out)
{
	enum sl_history_level level = tables[victim].level;

	*out = now;
	return level + 1 == SL_HISTORY_LEVELS ||
	       sl_history_done_of(store, level + 1, out);
}

static bool choose(struct sl_history_store *store, int64_t now)
{
	uint64_t weight = 0, most = 0;
	int64_t count = 0, end = 0;

	store->victim = -1;
	for (int v = 0; v < OF_EVENTS; v++) {
		if (!end_of(store, (enum victim)v, now, &end) ||
			!weigh_table(store, (enum victim)v, end, &weight))
			return false;
		if (weight > most) {
			store->victim = v;
			most = weight;
		}
	}
	if (!sl_history_sql_ask(store, "SELECT count(*) FROM events", &count))
		return false;
	if ((uint64_t)count * EVENT_WEIGHT > most)
		store->victim = OF_EVENTS;
	store->chosen_at = now;
	return true;
}

/* Deletes a few of the oldest. */
static bool drop_some(struct sl_history_store *store, int64_t now)
{
	int64_t end = now, first = 0;
	const char *table;
	char sql[192];

	if (store->victim == OF_EVENTS) {
		(void)snprintf(sql, sizeof(sql),
			"DELETE FROM events WHERE serial IN (SELECT serial FROM events "
			"ORDER BY serial LIMIT %d)",
			EVENTS);
		return sl_history_sql_run(store, sql);
	}
	if (!end_of(store, (enum victim)store->victim, now, &end))
		return false;
	if (store->victim == OF_SECONDS || store->victim == OF_MINUTES)
		return sl_history_drop_oldest(store, tables[store->victim].level, end);
	table = sl_history_tables[tables[store->victim].kind][SL_HISTORY_HOURS];
	if (!ask_of(store, "min(t)", table, 0, end, &first))
		return false;
	(void)snprintf(sql, sizeof(sql),
		"DELETE FROM %s WHERE t <= %" PRId64 " AND t < %" PRId64, table, first,
		end);
	return sl_history_sql_run(store, sql);
}

/* Rows ahead of the clock (history/back.c) go first, the latest of them first. */
static bool drop_ahead(struct sl_history_store *store, int64_t now, bool *any)
{
	int64_t limit = now + SL_HISTORY_BEHIND_S;

	*any = false;
	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++) {
		for (int level = 0; level < SL_HISTORY_LEVELS; level++) {
			const char *table = sl_history_tables[kind][level];
			int64_t last = 0;
			char sql[128];

			if (!ask_of(store, "max(t)", table, limit, INT64_MAX, &last))
				return false;
			if (!last)
				continue;
			*any = true;
			(void)snprintf(sql, sizeof(sql),
				"DELETE FROM %s WHERE t >= %" PRId64, table, last);
			if (!sl_history_sql_run(store, sql))
				return false;
		}
	}
	return true;
}

static bool make_room(struct sl_history_store *store, uint64_t bytes, int64_t now)
{
	int64_t before = sqlite3_total_changes(store->db);
	bool ahead = true;

	for (int i = 0; i < ROUNDS; i++) {
		int64_t changes = sqlite3_total_changes(store->db);

		if (ahead && !drop_ahead(store, now, &ahead))
			return false;
		if (!ahead &&
			(store->victim < 0 || now < store->chosen_at ||
				now >= store->chosen_at + CHOOSE_S) &&
			!choose(store, now))
			return false;
		if (!ahead && store->victim < 0)
			return true;
		if (!ahead && !drop_some(store, now))
			return false;
		/* Nothing of it is left to delete: choose again. */
		if (sqlite3_total_changes(store->db) == changes && !ahead)
			store->victim = -1;
		if (sl_history_store_bytes(store) <= bytes ||
			sqlite3_total_changes(store->db) - before >= ROWS)
			return true;
	}
	return true;
}

bool sl_history_hold_size(
	struct sl_history_store *store, const struct sl_history_keep *keep, int64_t now)
{
	uint64_t used = sl_history_store_bytes(store);
	/* Starts before the bound, so that rolling up an hour has room. */
	uint64_t bytes = keep->bytes - keep->bytes / 16;
	int64_t unused = 0;

	if (!keep->bytes)
		return true;
	if (used > bytes)
		return make_room(store, bytes, now);
	if (!sl_history_sql_ask(store, "PRAGMA freelist_count", &unused))
		return false;
	/* Free pages are reused. Gives some back if they outnumber the used ones, or exceed the
	 * bound with them. */
	if (unused > 1024 && ((uint64_t)unused * 4096 > used ||
				     used + (uint64_t)unused * 4096 > keep->bytes))
		return sl_history_sql_run(store, "PRAGMA incremental_vacuum(64)");
	return true;
}
