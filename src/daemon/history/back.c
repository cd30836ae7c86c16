/*
 * back - the machine's clock went back: the file has rows of the future
 *
 * Which clock was wrong is unknown: the earlier one may have been ahead for a moment, or this
 * machine's battery may be empty. So nothing is thrown away. Levels are rolled up from now on
 * again, and meta remembers how far they had come (level + SAVED). If the clock then jumps beyond
 * that, the present one was wrong, and the saved state returns. Questions that end at now do not
 * see rows ahead. Those rows are replaced as time reaches them, by roll-ups and by every write.
 * They go first when space is short.
 */
#include "daemon/history/store_internal.h"

#include <inttypes.h>
#include <stdio.h>

#define SAVED 10
/* Each write deletes this many of the seconds that lie ahead: more than passes between two
 * writes. */
#define CLEAR_S 60

/* Deletes the seconds in [from, to), which are written anew. */
static bool clear_seconds(struct sl_history_store *store, int64_t from, int64_t to)
{
	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++) {
		char sql[160];

		(void)snprintf(sql, sizeof(sql),
			"DELETE FROM %s WHERE t >= %" PRId64 " AND t < %" PRId64,
			sl_history_tables[kind][SL_HISTORY_SECONDS], from, to);
		if (!sl_history_sql_run(store, sql))
			return false;
	}
	return true;
}

bool sl_history_clear_ahead(struct sl_history_store *store, int64_t now)
{
	return clear_seconds(store, now + 1, now + CLEAR_S);
}

/* Where minutes had been rolled up to before the clock went back; 0: it did not. */
static bool saved_until(struct sl_history_store *store, int64_t *out)
{
	char sql[128];

	(void)snprintf(sql, sizeof(sql),
		"SELECT ifnull((SELECT done FROM meta WHERE level = %d), 0)",
		SAVED + SL_HISTORY_MINUTES);
	return sl_history_sql_ask(store, sql, out);
}

/* Restores the saved state once time has reached it. If time got there second by second, all is
 * rolled up already and nothing changes. */
bool sl_history_come_again(struct sl_history_store *store, int64_t now)
{
	int64_t until = 0;
	char sql[512];

	if (!saved_until(store, &until))
		return false;
	/* Waits until the minute before is rolled up. */
	if (!until || now < until + 120)
		return true;
	(void)snprintf(sql, sizeof(sql),
		"UPDATE meta SET "
		"done = max(done, (SELECT s.done FROM meta s WHERE s.level = meta.level "
		"+ "
		"%d)), "
		"dropped = max(dropped, (SELECT s.dropped FROM meta s WHERE s.level = "
		"meta.level + %d)) WHERE level < %d; "
		"DELETE FROM meta WHERE level >= %d",
		SAVED, SAVED, SAVED, SAVED);
	return sl_history_sql_run(store, sql);
}

/* Sets levels back to whole units of the next level, so that readers see each unit whole. */
static bool set_back(struct sl_history_store *store, int64_t now)
{
	int64_t minute = now / 60 * 60, hour = now / 3600 * 3600;
	struct sl_history_sql text = {.used = 0};

	sl_history_sql_add(&text,
		"INSERT INTO meta SELECT level + %d, done, dropped FROM meta WHERE level "
		"< %d ON CONFLICT (level) DO UPDATE SET done = max(done, excluded.done), "
		"dropped = max(dropped, excluded.dropped);",
		SAVED, SAVED);
	sl_history_sql_add(&text,
		"UPDATE meta SET dropped = min(dropped, %" PRId64 ") WHERE level = %d;",
		minute, SL_HISTORY_SECONDS);
	sl_history_sql_add(&text,
		"UPDATE meta SET done = min(done, %" PRId64
		"), dropped = min(dropped, %" PRId64 ") WHERE level = %d;",
		minute, hour, SL_HISTORY_MINUTES);
	sl_history_sql_add(&text,
		"UPDATE meta SET done = min(done, %" PRId64 ") WHERE level = %d", hour,
		SL_HISTORY_HOURS);
	return sl_history_sql_run(store, text.sql);
}

int sl_history_store_go_back(
	struct sl_history_store *store, int64_t now, struct sl_error *err)
{
	if (!sl_history_sql_run(store, "BEGIN IMMEDIATE"))
		return sl_history_store_failed(store, "set back", err);
	if (set_back(store, now) && clear_seconds(store, now, now + 3600) &&
		sl_history_sql_run(store, "COMMIT"))
		return SL_HISTORY_STORE_OK;
	return sl_history_store_undo(store, "set back", err);
}

int sl_history_store_events_before(
	struct sl_history_store *store, uint64_t first, struct sl_error *err)
{
	int64_t last = 0;
	char sql[512];

	if (!sl_history_sql_ask(store, "SELECT max(serial) FROM events", &last))
		return sl_history_store_failed(store, "read", err);
	if ((uint64_t)last < first)
		return SL_HISTORY_STORE_OK;
	/* Shifts them all by the same amount. The few without room below are deleted. */
	(void)snprintf(sql, sizeof(sql),
		"BEGIN IMMEDIATE; UPDATE OR IGNORE events SET serial = serial - %" PRId64
		" WHERE serial >= %" PRId64
		"; DELETE FROM events WHERE serial >= %" PRId64 "; COMMIT",
		last - (int64_t)first + 1, (int64_t)first, (int64_t)first);
	if (sl_history_sql_run(store, sql))
		return SL_HISTORY_STORE_OK;
	return sl_history_store_undo(store, "write", err);
}

/* --- what lies ahead ---------------------------------------------------------------------- */

/* End of the rows that begin before `before`: the last row begins last, but one that began up to 60
 * s earlier may end later. */
static bool end_before(
	struct sl_history_store *store, const char *table, int64_t before, int64_t *out)
{
	char sql[256];

	(void)snprintf(sql, sizeof(sql),
		"SELECT ifnull(max(t + span), 0) FROM %s WHERE t < %" PRId64
		" AND t >= (SELECT max(t) FROM %s WHERE t < %" PRId64 ") - 60",
		table, before, table, before);
	return sl_history_sql_ask(store, sql, out);
}

static bool last_of(struct sl_history_store *store, const char *table, int64_t *out)
{
	char sql[128];

	(void)snprintf(sql, sizeof(sql), "SELECT ifnull(max(t), 0) FROM %s", table);
	return sl_history_sql_ask(store, sql, out);
}

bool sl_history_read_end(
	struct sl_history_store *store, int64_t now, int64_t *end, int64_t *ahead)
{
	int64_t limit = now + SL_HISTORY_BEHIND_S + 1, saved = 0, done = 0;

	*end = *ahead = 0;
	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++) {
		for (int level = 0; level < SL_HISTORY_LEVELS; level++) {
			const char *table = sl_history_tables[kind][level];
			int64_t at = 0, last = 0;

			if (!end_before(store, table, limit, &at) ||
				!last_of(store, table, &last))
				return false;
			*end = at > *end ? at : *end;
			*ahead = last >= limit && last > *ahead ? last : *ahead;
		}
	}
	if (!saved_until(store, &saved) ||
		!sl_history_sql_ask(store,
			"SELECT ifnull(max(done), 0) FROM meta WHERE level < 3", &done))
		return false;
	if (done >= limit && done > *ahead)
		*ahead = done;
	/* The clock was already set back, and nothing came since. */
	if (saved && done < limit)
		*ahead = 0;
	return true;
}
