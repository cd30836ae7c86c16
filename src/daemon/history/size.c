/*
 * size - the file is to have no more than history_size in use
 *
 * What goes is the oldest of what takes most room, so that what is small and wanted for long (the
 * hours of GPUs, events) stays. How much room a table takes is not told by SQLite without walking
 * it: it is estimated from how many rows there are at both its ends, once a minute while room is
 * short. What is not rolled up yet never goes.
 */
#include "daemon/history/store_internal.h"

#include <inttypes.h>
#include <stdio.h>

/* Of each end so many steps are counted. */
#define WINDOW_STEPS 32
/* In one call; a call comes once a second. */
#define ROUNDS   16
#define ROWS     20000
#define EVENTS   500
#define CHOOSE_S 60
/* Against a row's column: what an event is made of, in about the same unit. */
#define EVENT_WEIGHT 60

/* What can go by itself. Hours of workloads and of GPUs are read independently, what is finer is
 * not. */
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

/* How much of it could go, in columns of rows. */
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

/* Up to where it is rolled up, or where now is. */
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

/* The oldest few. */
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

/* What the clock has not come to yet (history/back.c) is the first to go, the last of it first. */
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
		/* Nothing of it is left that could go. */
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
	/* A little before it is full, so that the roll-up of an hour has room. */
	uint64_t bytes = keep->bytes - keep->bytes / 16;
	int64_t unused = 0;

	if (!keep->bytes)
		return true;
	if (used > bytes)
		return make_room(store, bytes, now);
	if (!sl_history_sql_ask(store, "PRAGMA freelist_count", &unused))
		return false;
	/* Pages that are free are filled again; so many are not needed any more, or too many for
	 * what it may have. */
	if (unused > 1024 && ((uint64_t)unused * 4096 > used ||
				     used + (uint64_t)unused * 4096 > keep->bytes))
		return sl_history_sql_run(store, "PRAGMA incremental_vacuum(64)");
	return true;
}
