/*
 * advice - see the header
 *
 * SQLite adds up what each run needed, and for how long each program needed each amount. A row
 * spans a minute at most, and its need is its maximum. What a program needs for 99 % of the time is
 * exact to 1 MiB.
 */
#include "daemon/history/answers.h"

#include <inttypes.h>

#include "base/text.h"
#include "daemon/history/sample.h"
#include "policy/figures/advise.h"

/* Most names in an answer. */
#define PROGRAMS_MOST 2000

/* --- functions for SQL -------------------------------------------------------------------- */

static const char *text_of(sqlite3_value *value)
{
	const char *text = (const char *)sqlite3_value_text(value);

	return text ? text : "";
}

/* grouped(name, command, program): the name of all its runs. */
static void grouped(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	sqlite3_result_text(context,
		sl_history_group(
			text_of(values[0]), text_of(values[1]), text_of(values[2])),
		-1, SQLITE_TRANSIENT);
}

/* is_kept(peak, limit, shareable in KiB, denials) */
static void is_kept(sqlite3_context *context, int count, sqlite3_value **values)
{
	uint64_t of[4];

	for (int i = 0; i < count; i++)
		of[i] = (uint64_t)sqlite3_value_int64(values[i]);
	sqlite3_result_int(context,
		sl_advise_is_kept(of[0] * 1024, of[1] * 1024, of[2] * 1024, of[3]));
}

/* --- reading ------------------------------------------------------------------------------ */

/* Makes the tables runs, shares (KiB of each GPU), took (sums of a run) and needs (seconds by
 * MiB). */
static bool make_tables(
	struct sl_history_reader *reader, const struct sl_history_ask *ask)
{
	int64_t ahead_ms = ask->ahead_s * 1000;

	return sqlite3_create_function(reader->db, "grouped", 3,
		       SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, grouped, NULL,
		       NULL) == SQLITE_OK &&
	       sqlite3_create_function(reader->db, "is_kept", 4,
		       SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, is_kept, NULL,
		       NULL) == SQLITE_OK &&
	       sl_history_reader_run(reader,
		       "CREATE TEMP TABLE shares (gpu INTEGER PRIMARY KEY, share "
		       "INTEGER); "
		       "CREATE TEMP TABLE took (run INTEGER PRIMARY KEY, row_s INTEGER, "
		       "active_ms INTEGER, kib INTEGER, request INTEGER, \"limit\" "
		       "INTEGER, "
		       "share INTEGER, peak INTEGER, kept INTEGER, compute INTEGER, "
		       "had_us INTEGER, contested_ms INTEGER); CREATE TEMP TABLE "
		       "needs "
		       "(program TEXT, mib INTEGER, s INTEGER, PRIMARY KEY (program, "
		       "mib)) "
		       "WITHOUT ROWID; CREATE TEMP TABLE runs (id INTEGER PRIMARY KEY, "
		       "program TEXT, gpus INTEGER, observed INTEGER, begun INTEGER, "
		       "ended "
		       "INTEGER); INSERT INTO runs SELECT * FROM (SELECT id, "
		       "grouped(name, "
		       "command, program) AS program, max(gpus, 1), observed, begun_ms, "
		       "ended_ms FROM workloads WHERE (ended_ms = 0 OR ended_ms >= "
		       "%" PRId64 ") AND begun_ms < %" PRId64
		       ") WHERE program <> '' AND (%Q = '' OR program = %Q)",
		       (int64_t)ask->from_ms + ahead_ms, (int64_t)ask->to_ms + ahead_ms,
		       ask->name, ask->name);
}

/* The largest of each GPU. */
static bool read_shares(
	struct sl_history_reader *reader, const struct sl_history_part *part)
{
	return sl_history_reader_run(reader,
		"INSERT INTO shares SELECT gpu, max(shareable / span) FROM %s WHERE t >= "
		"%" PRId64 " AND t < %" PRId64 " AND span > 0 AND shareable > 0 GROUP BY "
		"gpu ON CONFLICT (gpu) DO UPDATE SET share = max(share, excluded.share)",
		sl_history_tables[SL_HISTORY_GPUS][part->level], part->from, part->to);
}

static bool read_uses(
	struct sl_history_reader *reader, const struct sl_history_part *part)
{
	const char *table = sl_history_tables[SL_HISTORY_USES][part->level];

	/* Programs that are given the whole GPU also try how much there is. */
	return sl_history_reader_run(reader,
		       "INSERT INTO took SELECT workload, span, active_ms, backing + "
		       "hidden, request / span, \"limit\" / span, share, max(most, "
		       "asked), "
		       "is_kept(max(most, asked), \"limit\" / span, share, denials * NOT "
		       "observed), compute_request / span, compute_us, contested_ms FROM "
		       "%s CROSS JOIN runs ON id = workload LEFT JOIN "
		       "shares "
		       "USING (gpu) WHERE t >= %" PRId64 " AND t < %" PRId64
		       " AND span > 0 ON CONFLICT (run) DO UPDATE SET row_s = row_s + "
		       "excluded.row_s, active_ms = active_ms + excluded.active_ms, kib "
		       "= "
		       "kib + excluded.kib, request = max(request, excluded.request), "
		       "\"limit\" = max(\"limit\", excluded.\"limit\"), share = "
		       "min(ifnull(share, excluded.share), ifnull(excluded.share, "
		       "share)), "
		       "peak = max(peak, excluded.peak), kept = max(kept, "
		       "excluded.kept), compute = max(compute, excluded.compute), had_us "
		       "= had_us + excluded.had_us, contested_ms = contested_ms + "
		       "excluded.contested_ms",
		       table, part->from, part->to) &&
	       sl_history_reader_run(reader,
		       "INSERT INTO needs SELECT program, (max(most, asked) + 1023) / "
		       "1024, "
		       "span FROM %s CROSS JOIN runs ON id = workload WHERE t >= %" PRId64
		       " AND t < %" PRId64
		       " ON CONFLICT (program, mib) DO UPDATE SET s = s "
		       "+ excluded.s",
		       table, part->from, part->to);
}

static bool read_all(struct sl_history_reader *reader, const struct sl_history_ask *ask)
{
	struct sl_history_part parts[SL_HISTORY_PARTS_MAX];
	struct sl_history_cut cut = sl_history_cut_of(ask);
	/* Minutes are exact enough; hours, where a week would be many rows. */
	enum sl_history_level level =
		cut.to - cut.from > 8 * 86400 ? SL_HISTORY_HOURS : SL_HISTORY_MINUTES;
	size_t count =
		sl_history_parts(reader, SL_HISTORY_HOURS, cut.from, cut.to, parts);
	bool ok = make_tables(reader, ask);

	for (size_t i = 0; ok && i < count; i++)
		ok = read_shares(reader, &parts[i]);
	count = sl_history_parts(reader, level, cut.from, cut.to, parts);
	for (size_t i = 0; ok && i < count; i++)
		ok = read_uses(reader, &parts[i]);
	return ok;
}

/* --- figures ------------------------------------------------------------------------------ */

struct program {
	char name[128];
	struct sl_advise_program figures;
};

static bool count_at_once(
	struct sl_history_reader *reader, struct program *program, struct sl_arena *arena)
{
	sl_cleanup(sl_history_statement_end) sqlite3_stmt *statement =
		sl_history_reader_ask(reader,
			"SELECT begun, ended FROM runs JOIN took ON run = id WHERE "
			"program = "
			"%Q",
			program->name);
	struct sl_advise_run *runs =
		sl_arena_take(arena, (program->figures.runs + 1) * sizeof(*runs));
	size_t count = 0;

	while (statement && count < program->figures.runs &&
		sqlite3_step(statement) == SQLITE_ROW)
		runs[count++] = (struct sl_advise_run){
			(uint64_t)sqlite3_column_int64(statement, 0),
			(uint64_t)sqlite3_column_int64(statement, 1)};
	program->figures.at_once = sl_advise_at_once(arena, runs, count);
	return count == program->figures.runs;
}

/* Programs by use, at most PROGRAMS_MOST. False: SQLite says why. */
static bool read_programs(struct sl_history_reader *reader, struct program *programs,
	size_t *count, struct sl_arena *arena)
{
	sl_cleanup(sl_history_statement_end) sqlite3_stmt *statement =
		sl_history_reader_ask(reader,
			"SELECT program, count(*), sum(observed), max(gpus), sum(row_s * "
			"1000 "
			"/ gpus) / 1000, sum(active_ms / gpus) / 1000, max(request), "
			"max(\"limit\"), min(share), max(peak), max(peak * kept), "
			"max(peak * "
			"NOT kept), sum(kib) / sum(row_s), (SELECT min(mib) FROM (SELECT "
			"mib, "
			"sum(s) OVER (ORDER BY mib) AS met, sum(s) OVER () AS of FROM "
			"needs n "
			"WHERE n.program = r.program) WHERE met >= of - of / 100), "
			"max(compute), sum(contested_ms / gpus), sum(had_us / gpus) / "
			"1000 FROM "
			"runs r "
			"JOIN took ON run = id GROUP BY program ORDER BY sum(row_s) "
			"DESC, "
			"program LIMIT %d",
			PROGRAMS_MOST);
	int r = SQLITE_ERROR;

	while (statement && (r = sqlite3_step(statement)) == SQLITE_ROW) {
		struct program *one = &programs[(*count)++];
		uint64_t of[17];

		for (int i = 1; i < 17; i++)
			of[i] = (uint64_t)sqlite3_column_int64(statement, i);
		sl_wire_str(one->name, sizeof(one->name),
			(const char *)sqlite3_column_text(statement, 0));
		one->figures = (struct sl_advise_program){
			.runs = (uint32_t)of[1],
			.observed = (uint32_t)of[2],
			.gpus = (uint32_t)of[3],
			.span_s = of[4],
			.active_s = sl_min_u64(of[5], of[4]),
			.request_bytes = of[6] * 1024,
			.limit_bytes = of[7] * 1024,
			.shareable_bytes = of[8] * 1024,
			.peak_bytes = of[9] * 1024,
			.kept_peak_bytes = of[10] * 1024,
			.free_peak_bytes = of[11] * 1024,
			.mean_bytes = sl_min_u64(of[12], of[9]) * 1024,
			.p99_bytes = sl_min_u64(of[13] * 1024, of[9]) * 1024,
			.compute_request_pm = (uint32_t)of[14],
			.contested_ms = of[15],
			.compute_ms = sl_min_u64(of[16], of[15]),
		};
		if (!count_at_once(reader, one, arena))
			return false;
	}
	return r == SQLITE_DONE;
}

/* --- writing ------------------------------------------------------------------------------ */

/* null: it never had a compute request. */
static json_t *describe_compute(
	const struct sl_advise_program *figures, const struct sl_advice *advice)
{
	if (!figures->compute_request_pm)
		return json_null();
	return json_pack("{s:f, s:f, s:o, s:o}", "request",
		figures->compute_request_pm / 1000.0, "contested_s",
		(double)figures->contested_ms / 1000, "used",
		figures->contested_ms ? json_real((double)figures->compute_ms /
						  (double)figures->contested_ms)
				      : json_null(),
		"advice",
		advice->compute_request_pm
			? json_real(advice->compute_request_pm / 1000.0)
			: json_null());
}

static json_t *describe(const struct program *program, const struct sl_advice *advice)
{
	const struct sl_advise_program *figures = &program->figures;
	bool has_advice =
		advice->verdict == SL_ADVISE_CHANGE || advice->verdict == SL_ADVISE_KEEP;

#define NUMBER(name) #name, (json_int_t)figures->name
	return json_pack(
		"{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, "
		"s:s, s:o, s:o}",
		"name", sl_text_json(program->name), NUMBER(runs), NUMBER(observed),
		NUMBER(gpus), NUMBER(at_once), NUMBER(span_s), NUMBER(active_s),
		NUMBER(peak_bytes), NUMBER(p99_bytes), NUMBER(mean_bytes),
		NUMBER(request_bytes), NUMBER(limit_bytes), NUMBER(shareable_bytes),
		"verdict", sl_advise_word(advice->verdict), "text",
		sl_advise_text(advice->verdict), "advice",
		has_advice ? json_pack("{s:I, s:I}", "request_bytes",
				     (json_int_t)advice->request_bytes, "limit_bytes",
				     (json_int_t)advice->limit_bytes)
			   : json_null(),
		"compute", describe_compute(figures, advice));
#undef NUMBER
}

/* Bounds the total by the number of GPUs that the node has. The total adds up the most simultaneous
 * runs of each program, but the programs did not all have them at the same time. */
static uint32_t gpus_there(struct sl_history_reader *reader)
{
	sl_cleanup(sl_history_statement_end) sqlite3_stmt *statement =
		sl_history_reader_ask(
			reader, "SELECT count(*) FROM shares HAVING count(*) > 0");

	return statement && sqlite3_step(statement) == SQLITE_ROW
		       ? (uint32_t)sqlite3_column_int64(statement, 0)
		       : UINT32_MAX;
}

static bool advise(struct sl_history_reader *reader, const struct sl_history_ask *ask,
	struct sl_arena *arena, FILE *out)
{
	struct program *programs =
		sl_arena_take(arena, PROGRAMS_MOST * sizeof(*programs));
	struct sl_advise_program *figures =
		sl_arena_take(arena, PROGRAMS_MOST * sizeof(*figures));
	struct sl_advice *advice = sl_arena_take(arena, PROGRAMS_MOST * sizeof(*advice));
	struct sl_history_list list = {.out = out};
	uint32_t most = gpus_there(reader);
	struct sl_advise_total total;
	size_t count = 0;

	if (!read_programs(reader, programs, &count, arena))
		return false;
	for (size_t i = 0; i < count; i++) {
		figures[i] = programs[i].figures;
		advice[i] = sl_advise(&figures[i]);
	}
	total = sl_advise_total(arena, figures, advice, count);
	(void)fprintf(out,
		"{\"from_ms\":%" PRIu64 ",\"to_ms\":%" PRIu64
		",\"gpus_before\":%u,\"gpus_after\":%u,\"tasks\":%u,\"cut\":%s,"
		"\"names\":[",
		ask->from_ms, ask->to_ms, (uint32_t)sl_min_u64(total.gpus_before, most),
		(uint32_t)sl_min_u64(total.gpus_after, most), total.tasks,
		total.cut ? "true" : "false");
	for (size_t i = 0; i < count; i++)
		sl_history_list_put(&list, describe(&programs[i], &advice[i]));
	(void)fputs("]}\n", out);
	return true;
}

int sl_history_advice(struct sl_history_reader *reader, const struct sl_history_ask *ask,
	FILE *out, struct sl_error *err)
{
	struct sl_arena *arena = sl_arena_new();
	bool ok = read_all(reader, ask) && advise(reader, ask, arena, out);

	(void)sl_arena_free(arena);
	return ok ? SL_HISTORY_STORE_OK : sl_history_reader_failed(reader, err);
}
