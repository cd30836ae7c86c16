/*
 * tidy - rolls rows up into the next level, deletes old ones, and holds the file's size
 *
 * Tables are WITHOUT ROWID: rows lie in the order of their key, which begins with time. Old rows
 * are therefore adjacent, and deleting them touches few pages. Each call, once a second, deletes at
 * most one minute of seconds and one hour of each coarser level, so that its transaction stays
 * short. If space is short, it deletes up to ROUNDS more units.
 */
#include "daemon/history/store_internal.h"

#include <inttypes.h>

/* What can be deleted separately. Hours of workloads and of GPUs are read independently; finer
 * levels are not. */
enum victim { OF_SECONDS = 0, OF_MINUTES, OF_HOURS, OF_GPU_HOURS, OF_EVENTS, VICTIMS };

/* A table per kind, and the seconds that go at once. */
static const struct {
	const char *tables[SL_HISTORY_KINDS];
	int64_t unit;
} victims[OF_EVENTS] = {
	[OF_SECONDS] = {{"seconds", "gpu_seconds"}, 60},
	[OF_MINUTES] = {{"minutes", "gpu_minutes"}, 3600},
	[OF_HOURS] = {{"hours", "hours"}, 3600},
	[OF_GPU_HOURS] = {{"gpu_hours", "gpu_hours"}, 3600},
};
/* How often the largest table is looked for while space is short: SQLite counts rows by walking
 * the table. */
#define CHOOSE_S 600
/* Deletions in one call while space is short. */
#define ROUNDS 16
#define EVENTS 500
/* Values in a row of any table but events, about as many bytes each. */
#define EVENT_WEIGHT 60

/* --- rolling up --------------------------------------------------------------------------- */

/* Rolls rows of the level below up to `until`, from where that ended last. */
static bool roll_up_kind(struct sl_history_store *store, enum sl_history_kind kind,
	enum sl_history_level level, int64_t until)
{
	int64_t grain = sl_history_grains[level];
	sqlite3_str *sql = sqlite3_str_new(store->db);

	sqlite3_str_appendf(sql,
		"INSERT OR REPLACE INTO %s SELECT t / %lld * %lld, gpu, workload, "
		"sum(span)",
		sl_history_tables[kind][level], (long long)grain, (long long)grain);
	sl_history_sql_columns(sql, kind, ", sum(\"%s\")", ", max(\"%s\")");
	sqlite3_str_appendf(sql,
		" FROM %s WHERE t >= (SELECT done FROM meta WHERE level = %d) AND t < "
		"%lld GROUP BY 1, 2, 3",
		sl_history_tables[kind][level - 1], (int)level, (long long)until);
	return sl_history_sql_take(store, sql);
}

/* Rolls up to the last whole minute (hour) before `end`. */
static bool roll_up(
	struct sl_history_store *store, enum sl_history_level level, int64_t end)
{
	int64_t until = end / sl_history_grains[level] * sl_history_grains[level];
	int64_t done = 0;

	if (!sl_history_sql_ask(
		    store, &done, "SELECT done FROM meta WHERE level = %d", (int)level))
		return false;
	return until <= done ||
	       (roll_up_kind(store, SL_HISTORY_USES, level, until) &&
		       roll_up_kind(store, SL_HISTORY_GPUS, level, until) &&
		       sl_history_sql(store,
			       "UPDATE meta SET done = %" PRId64 " WHERE level = %d",
			       until, (int)level));
}

/* --- deleting ----------------------------------------------------------------------------- */

/* Deletes the oldest unit of rows, if it is before `before`. Whole units before now are rolled
 * up. */
static bool drop_oldest(
	struct sl_history_store *store, enum victim victim, int64_t before)
{
	const char *const *tables = victims[victim].tables;
	int64_t unit = victims[victim].unit, edge = 0;

	/* min of several is NULL, hence 0, if one of them is. */
	return sl_history_sql_ask(store, &edge,
		       "SELECT min((SELECT min(m) FROM (SELECT min(t) AS m FROM %s UNION "
		       "SELECT min(t) FROM %s)) / %" PRId64 " + 1, %" PRId64
		       ") * %" PRId64,
		       tables[0], tables[1], unit, before / unit, unit) &&
	       sl_history_sql(store,
		       "DELETE FROM %s WHERE t < %" PRId64
		       "; DELETE FROM %s WHERE t < %" PRId64,
		       tables[0], edge, tables[1], edge);
}

/* Deletes events but the newest, and workloads without rows. */
static bool drop_others(struct sl_history_store *store, int64_t now, uint64_t events)
{
	if (now % 60 == 0 &&
		!sl_history_sql(store,
			"DELETE FROM events WHERE serial <= (SELECT serial FROM events "
			"ORDER BY serial DESC LIMIT 1 OFFSET %" PRIu64 ")",
			events))
		return false;
	return now % 3600 != 0 ||
	       sl_history_sql(store,
		       "DELETE FROM workloads WHERE ended_ms BETWEEN 1 AND 1000 * "
		       "(SELECT "
		       "min(t) FROM (SELECT min(t) AS t FROM seconds UNION SELECT min(t) "
		       "FROM minutes UNION SELECT min(t) FROM hours UNION SELECT %" PRId64
		       ")) - 1",
		       now);
}

/* --- size --------------------------------------------------------------------------------- */

/* Chooses the largest table. */
static bool choose(struct sl_history_store *store, int64_t now)
{
	int64_t most = 0, count = 0;

	store->victim = -1;
	store->chosen_at = now;
	for (int v = 0; v < VICTIMS; v++) {
		int64_t width = EVENT_WEIGHT;

		if (v != OF_EVENTS)
			width = 4 + (v == OF_GPU_HOURS ? SL_HISTORY_GPU_COLUMNS
						       : SL_HISTORY_USE_COLUMNS);
		if (!sl_history_sql_ask(store, &count, "SELECT count(*) FROM %s",
			    v == OF_EVENTS ? "events" : victims[v].tables[0]))
			return false;
		if (count * width > most) {
			store->victim = v;
			most = count * width;
		}
	}
	return true;
}

static bool make_room(struct sl_history_store *store, uint64_t bytes, int64_t now)
{
	for (int i = 0; i < ROUNDS && sl_history_store_bytes(store) > bytes; i++) {
		int64_t changes = sqlite3_total_changes(store->db);

		if ((store->victim < 0 || now >= store->chosen_at + CHOOSE_S) &&
			!choose(store, now))
			return false;
		if (store->victim < 0)
			return true;
		if (store->victim == OF_EVENTS
				? !sl_history_sql(store,
					  "DELETE FROM events WHERE serial IN (SELECT "
					  "serial FROM events ORDER BY serial LIMIT %d)",
					  EVENTS)
				: !drop_oldest(store, (enum victim)store->victim, now))
			return false;
		/* That table has no row left: choose again in the next second. */
		if (sqlite3_total_changes(store->db) == changes) {
			store->victim = -1;
			return true;
		}
	}
	return true;
}

static bool hold_size(struct sl_history_store *store, uint64_t most, int64_t now)
{
	int64_t pages = 0, unused = 0;

	/* Starts before the bound, so that rolling up an hour has room. */
	if (most && !make_room(store, most - most / 16, now))
		return false;
	if (!sl_history_sql_ask(store, &pages, "PRAGMA page_count") ||
		!sl_history_sql_ask(store, &unused, "PRAGMA freelist_count"))
		return false;
	/* Free pages are reused; many go back to the disk, a few at a time. */
	return unused < 1024 || unused < pages / 16 ||
	       sl_history_sql(store, "PRAGMA incremental_vacuum(64)");
}

bool sl_history_tidy(
	struct sl_history_store *store, int64_t now, const struct sl_history_keep *keep)
{
	return roll_up(store, SL_HISTORY_MINUTES, now) &&
	       roll_up(store, SL_HISTORY_HOURS, now) &&
	       drop_oldest(store, OF_SECONDS, now - keep->seconds[SL_HISTORY_SECONDS]) &&
	       drop_oldest(store, OF_MINUTES, now - keep->seconds[SL_HISTORY_MINUTES]) &&
	       drop_oldest(store, OF_HOURS, now - keep->seconds[SL_HISTORY_HOURS]) &&
	       drop_oldest(store, OF_GPU_HOURS, now - keep->seconds[SL_HISTORY_HOURS]) &&
	       drop_others(store, now, keep->events) &&
	       hold_size(store, keep->bytes, now);
}
