/*
 * tidy - rolls rows up into the next level, and deletes old ones
 *
 * Tables are WITHOUT ROWID: rows lie in the order of their key, which begins with time. Old rows
 * are therefore adjacent, and deleting them touches few pages. Each call deletes a span of time (a
 * few times what arrives meanwhile), not a number of rows.
 */
#include "daemon/history/store_internal.h"

#include <inttypes.h>
#include <stdio.h>

/* Seconds deleted per call once too old, likewise minutes and hours. A call comes once a second. */
#define OLD_STEPS 4

/* Seconds that rows of a level are aligned to. */
static const int64_t steps[SL_HISTORY_LEVELS] = {1, 60, 3600};

/* --- rolling up --------------------------------------------------------------------------- */

/* Rolls up rows of the level below that begin in [from, to). */
static bool roll_up_kind(struct sl_history_store *store, enum sl_history_kind kind,
	enum sl_history_level level, int64_t from, int64_t to)
{
	const struct sl_history_columns *columns = &sl_history_columns[kind];
	int64_t grain = sl_history_grains[level];
	struct sl_history_sql text = {.used = 0};

	/* Replaces rows that were ahead (history/back.c), or were rolled up before. */
	sl_history_sql_add(&text,
		"DELETE FROM %s WHERE t >= %" PRId64 " AND t < %" PRId64 ";",
		sl_history_tables[kind][level], from, to);
	sl_history_sql_add(
		&text, "INSERT OR REPLACE INTO %s (", sl_history_tables[kind][level]);
	sl_history_sql_add_names(&text, kind);
	sl_history_sql_add(&text,
		") SELECT t / %" PRId64 " * %" PRId64
		" AS begins, gpu, workload, sum(span)",
		grain, grain);
	for (uint32_t i = 0; i < columns->count; i++)
		sl_history_sql_add(&text, ", %s(\"%s\")",
			columns->folds[i] == SL_HISTORY_MAX ? "max" : "sum",
			columns->names[i]);
	sl_history_sql_add(&text,
		" FROM %s WHERE t >= %" PRId64 " AND t < %" PRId64
		" GROUP BY begins, gpu, workload",
		sl_history_tables[kind][level - 1], from, to);
	return sl_history_sql_run(store, text.sql);
}

bool sl_history_done_of(
	struct sl_history_store *store, enum sl_history_level level, int64_t *out)
{
	char sql[96];

	(void)snprintf(
		sql, sizeof(sql), "SELECT done FROM meta WHERE level = %d", (int)level);
	return sl_history_sql_ask(store, sql, out);
}

/* Rolls up to the last whole minute (hour) that is complete. One call covers at most an hour of
 * minutes or 60 hours: rows stop with the daemon, but the file may be of any age. */
static bool roll_up(
	struct sl_history_store *store, enum sl_history_level level, int64_t now)
{
	int64_t grain = sl_history_grains[level], done = 0, first = 0, until = 0;
	const char *below = sl_history_tables[SL_HISTORY_USES][level - 1];
	const char *gpus = sl_history_tables[SL_HISTORY_GPUS][level - 1];
	char sql[512];

	if (!sl_history_done_of(store, level, &done))
		return false;
	if (level == SL_HISTORY_MINUTES)
		until = now;
	else if (!sl_history_done_of(store, level - 1, &until))
		return false;
	until = until / grain * grain;
	if (until <= done)
		return true;
	(void)snprintf(sql, sizeof(sql),
		"SELECT ifnull(min((SELECT ifnull(min(t), %" PRId64
		") FROM %s WHERE t >= %" PRId64 "), (SELECT ifnull(min(t), %" PRId64
		") FROM %s WHERE t >= %" PRId64 ")), %" PRId64 ")",
		until, below, done, until, gpus, done, until);
	if (!sl_history_sql_ask(store, sql, &first))
		return false;
	/* Nothing lies in between. */
	first = first / grain * grain;
	if (first < until) {
		if (until > first + 60 * grain)
			until = first + 60 * grain;
		if (!roll_up_kind(store, SL_HISTORY_USES, level, first, until) ||
			!roll_up_kind(store, SL_HISTORY_GPUS, level, first, until))
			return false;
	}
	(void)snprintf(sql, sizeof(sql),
		"UPDATE meta SET done = %" PRId64 " WHERE level = %d", until, (int)level);
	return sl_history_sql_run(store, sql);
}

bool sl_history_roll_up(struct sl_history_store *store, int64_t now)
{
	return roll_up(store, SL_HISTORY_MINUTES, now) &&
	       roll_up(store, SL_HISTORY_HOURS, now);
}

/* --- letting go --------------------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Start of the oldest row of a level, of either kind; INT64_MAX: no rows. */
static bool oldest_of(
	struct sl_history_store *store, enum sl_history_level level, int64_t *out)
{
	*out = INT64_MAX;
	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++) {
		int64_t t = 0;
		char sql[128];

		(void)snprintf(sql, sizeof(sql),
			"SELECT ifnull(min(t), %" PRId64 ") FROM %s", INT64_MAX,
			sl_history_tables[kind][level]);
		if (!sl_history_sql_ask(store, sql, &t))
			return false;
		*out = t < *out ? t : *out;
	}
	return true;
}

/* Deletes a few of the oldest rows of a level before `before`. `dropped` in meta advances first, by
 * whole units of the level above. Readers use that level there, so they never see half a unit. */
bool sl_history_drop_oldest(
	struct sl_history_store *store, enum sl_history_level level, int64_t before)
{
	int64_t oldest = 0, edge = before;
	char sql[192];

	if (!oldest_of(store, level, &oldest))
		return false;
	if (oldest >= before)
		return true;
	if (level + 1 < SL_HISTORY_LEVELS) {
		int64_t unit = sl_history_grains[level + 1];

		edge = least(oldest / unit * unit + unit, before / unit * unit);
		(void)snprintf(sql, sizeof(sql),
			"UPDATE meta SET dropped = %" PRId64
			" WHERE level = %d AND dropped < %" PRId64,
			edge, (int)level, edge);
		if (!sl_history_sql_run(store, sql))
			return false;
	}
	edge = least(edge, oldest + OLD_STEPS * steps[level]);
	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++) {
		(void)snprintf(sql, sizeof(sql), "DELETE FROM %s WHERE t < %" PRId64,
			sl_history_tables[kind][level], edge);
		if (!sl_history_sql_run(store, sql))
			return false;
	}
	return true;
}

static bool let_go_level(struct sl_history_store *store, enum sl_history_level level,
	int64_t now, const struct sl_history_keep *keep)
{
	int64_t before = now - keep->seconds[level], done = INT64_MAX;

	if (level + 1 < SL_HISTORY_LEVELS && !sl_history_done_of(store, level + 1, &done))
		return false;
	return sl_history_drop_oldest(store, level, before < done ? before : done);
}

uint64_t sl_history_store_bytes(struct sl_history_store *store)
{
	int64_t pages = 0, unused = 0, size = 0;

	if (!sl_history_sql_ask(store, "PRAGMA page_count", &pages) ||
		!sl_history_sql_ask(store, "PRAGMA freelist_count", &unused) ||
		!sl_history_sql_ask(store, "PRAGMA page_size", &size))
		return 0;
	return (uint64_t)((pages - unused) * size);
}

static bool let_go_events(struct sl_history_store *store, uint64_t most)
{
	int64_t count = 0;
	char sql[256];

	/* Counting walks the table, so it is done only once a minute. */
	if (!sl_history_sql_ask(store, "SELECT count(*) FROM events", &count))
		return false;
	if (count <= (int64_t)most)
		return true;
	(void)snprintf(sql, sizeof(sql),
		"DELETE FROM events WHERE serial IN (SELECT serial FROM events ORDER BY "
		"serial LIMIT %" PRId64 ")",
		count - (int64_t)most);
	return sl_history_sql_run(store, sql);
}

/* Deletes workloads without rows. */
static bool let_go_workloads(struct sl_history_store *store, int64_t now)
{
	int64_t oldest = now;
	char sql[160];

	for (int level = 0; level < SL_HISTORY_LEVELS; level++) {
		int64_t t = 0;

		(void)snprintf(sql, sizeof(sql),
			"SELECT ifnull(min(t), %" PRId64 ") FROM %s", INT64_MAX,
			sl_history_tables[SL_HISTORY_USES][level]);
		if (!sl_history_sql_ask(store, sql, &t))
			return false;
		oldest = least(oldest, t);
	}
	(void)snprintf(sql, sizeof(sql),
		"DELETE FROM workloads WHERE ended_ms > 0 AND ended_ms < %" PRId64,
		oldest * 1000);
	return sl_history_sql_run(store, sql);
}

bool sl_history_tidy(
	struct sl_history_store *store, int64_t now, const struct sl_history_keep *keep)
{
	for (int level = 0; level < SL_HISTORY_LEVELS; level++) {
		if (!let_go_level(store, level, now, keep))
			return false;
	}
	if (now % 60 == 0 && !let_go_events(store, keep->events))
		return false;
	if (now % 3600 == 0 && !let_go_workloads(store, now))
		return false;
	return sl_history_hold_size(store, keep, now);
}
