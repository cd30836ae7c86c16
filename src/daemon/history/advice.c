/*
 * advice - see the header
 *
 * The need of a program for 99 % of the time comes from a histogram of its maximum in each row,
 * weighted by time. A row is a minute at most. Each power of two has 32 buckets, and the upper end
 * of a bucket is taken: 3 % too much at most.
 */
#include "daemon/history/advice.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/core/map.h"
#include "daemon/history/sample.h"
#include "policy/figures/advise.h"

#define OCTAVES 42
#define PER     32
#define BUCKETS (OCTAVES * PER)
/* Most names in an answer. */
#define PROGRAMS_MOST 2000

struct run {
	int64_t id;
	uint32_t program, gpus;
	bool observed, seen, kept; /* kept: see sl_advise_is_kept */
	uint64_t begun_ms, ended_ms, peak_bytes;
};

/* All runs of one name (sl_history_group()). */
struct program {
	char name[128];
	struct sl_advise_program figures;
	size_t runs;                 /* also those without rows */
	uint64_t span_ms, active_ms; /* of runs */
	uint64_t row_s, sum_kib;     /* of rows: one per GPU of a run */
	uint64_t *histogram;         /* seconds by KiB */
};

struct advising {
	const struct sl_history_ask *ask;
	struct run *runs;
	size_t run_count, run_room;
	struct sl_map by_id; /* of runs: index + 1 */
	struct program *programs;
	size_t program_count, program_room;
	uint64_t shareable_kib[256]; /* by number of the GPU in the history; 0: unknown */
	bool failed;
};

/* --- runs --------------------------------------------------------------------------------- */

static uint32_t program_of(struct advising *advising, const char *name)
{
	struct program *program;

	for (size_t i = 0; i < advising->program_count; i++) {
		if (strcmp(advising->programs[i].name, name) == 0)
			return (uint32_t)i;
	}
	if (advising->program_count == PROGRAMS_MOST)
		return UINT32_MAX;
	if (advising->program_count == advising->program_room) {
		size_t room = sl_max_u64(16, advising->program_room * 2);
		struct program *all = realloc(advising->programs, room * sizeof(*all));

		if (!all)
			return UINT32_MAX;
		advising->programs = all;
		advising->program_room = room;
	}
	program = &advising->programs[advising->program_count];
	*program = (struct program){.histogram = calloc(BUCKETS, sizeof(uint64_t))};
	if (!program->histogram)
		return UINT32_MAX;
	sl_wire_str(program->name, sizeof(program->name), name);
	return (uint32_t)advising->program_count++;
}

static bool add_run(struct advising *advising, const struct run *run)
{
	if (advising->run_count == advising->run_room) {
		size_t room = sl_max_u64(64, advising->run_room * 2);
		struct run *all = realloc(advising->runs, room * sizeof(*all));

		if (!all)
			return false;
		advising->runs = all;
		advising->run_room = room;
	}
	if (sl_map_put(&advising->by_id, (uint64_t)run->id,
		    (void *)(uintptr_t)(advising->run_count + 1)) < 0)
		return false;
	advising->runs[advising->run_count++] = *run;
	return true;
}

static const char *text_of(sqlite3_stmt *statement, int column)
{
	const char *text = (const char *)sqlite3_column_text(statement, column);

	return text ? text : "";
}

static bool read_runs(struct advising *advising, struct sl_history_reader *reader)
{
	static const char sql[] =
		"SELECT id, gpus, observed, begun_ms, ended_ms, name, command, program "
		"FROM workloads WHERE (ended_ms = 0 OR ended_ms >= ?1) AND begun_ms < ?2 "
		"ORDER BY id";
	const struct sl_history_ask *ask = advising->ask;
	sqlite3_stmt *statement = NULL;
	int r = SQLITE_ERROR;

	if (sqlite3_prepare_v2(reader->db, sql, -1, &statement, NULL) != SQLITE_OK)
		return false;
	(void)sqlite3_bind_int64(statement, 1, (int64_t)ask->from_ms);
	(void)sqlite3_bind_int64(statement, 2, (int64_t)ask->to_ms);
	while (!advising->failed && (r = sqlite3_step(statement)) == SQLITE_ROW) {
		const char *group = sl_history_group(text_of(statement, 5),
			text_of(statement, 6), text_of(statement, 7));
		struct run run = {
			.id = sqlite3_column_int64(statement, 0),
			.gpus = (uint32_t)sqlite3_column_int64(statement, 1),
			.observed = sqlite3_column_int64(statement, 2) != 0,
			.begun_ms = (uint64_t)sqlite3_column_int64(statement, 3),
			.ended_ms = (uint64_t)sqlite3_column_int64(statement, 4),
		};

		if (!*group || (ask->name[0] && strcmp(group, ask->name) != 0))
			continue;
		run.program = program_of(advising, group);
		if (!run.gpus)
			run.gpus = 1;
		if (run.program == UINT32_MAX)
			continue;
		advising->programs[run.program].runs++;
		advising->failed = !add_run(advising, &run);
	}
	(void)sqlite3_finalize(statement);
	return advising->failed || r == SQLITE_DONE;
}

/* --- what they needed --------------------------------------------------------------------- */

/* The bucket whose upper end is not below kib. */
static size_t bucket_of(uint64_t kib)
{
	uint64_t octave, part;

	if (kib < PER)
		return (size_t)kib;
	octave = 63 - (uint64_t)__builtin_clzll(kib);
	part = (kib - (1ull << octave)) >> (octave - 5);
	return sl_min_u64((octave - 4) * PER + part, BUCKETS - 1);
}

static uint64_t upper_end(size_t bucket)
{
	uint64_t octave, part;

	if (bucket < PER)
		return bucket;
	octave = bucket / PER + 4;
	part = bucket % PER;
	return (1ull << octave) + ((part + 1) << (octave - 5)) - 1;
}

static bool take_use(void *context, const struct sl_history_row *row)
{
	struct advising *advising = context;
	uintptr_t at = (uintptr_t)sl_map_get(&advising->by_id, (uint64_t)row->workload);
	struct sl_advise_program *figures;
	struct program *program;
	uint64_t span, shareable, asked;
	struct run *run;

	if (!at)
		return true;
	run = &advising->runs[at - 1];
	program = &advising->programs[run->program];
	figures = &program->figures;
	span = (uint64_t)row->span;
	shareable = row->gpu < 256 ? advising->shareable_kib[row->gpu] * 1024 : 0;
	/* Older files have 0 in `asked`. */
	asked = 1024 * sl_max_u64((uint64_t)row->value[SL_HISTORY_USE_most],
			       (uint64_t)row->value[SL_HISTORY_USE_asked]);
	run->seen = true;
	program->row_s += span;
	program->span_ms += span * 1000 / run->gpus;
	program->active_ms += (uint64_t)row->value[SL_HISTORY_USE_active_ms] / run->gpus;
	program->sum_kib += (uint64_t)row->value[SL_HISTORY_USE_backing] +
			    (uint64_t)row->value[SL_HISTORY_USE_hidden];
	program->histogram[bucket_of(asked / 1024)] += span;
	figures->peak_bytes = sl_max_u64(figures->peak_bytes, asked);
	run->peak_bytes = sl_max_u64(run->peak_bytes, asked);
	run->kept |= sl_advise_is_kept(asked,
		(uint64_t)row->value[SL_HISTORY_USE_limit] / span * 1024, shareable,
		/* Programs that are given the whole GPU also try how much there is. */
		run->observed ? 0 : (uint64_t)row->value[SL_HISTORY_USE_denials]);
	figures->request_bytes = sl_max_u64(figures->request_bytes,
		(uint64_t)row->value[SL_HISTORY_USE_request] / span * 1024);
	figures->limit_bytes = sl_max_u64(figures->limit_bytes,
		(uint64_t)row->value[SL_HISTORY_USE_limit] / span * 1024);
	if (shareable &&
		(!figures->shareable_bytes || shareable < figures->shareable_bytes))
		figures->shareable_bytes = shareable;
	return true;
}

static bool take_gpu(void *context, const struct sl_history_row *row)
{
	struct advising *advising = context;
	int64_t kib = row->value[SL_HISTORY_GPU_shareable] / row->span;

	if (row->gpu < 256 && kib > 0 &&
		(uint64_t)kib > advising->shareable_kib[row->gpu])
		advising->shareable_kib[row->gpu] = (uint64_t)kib;
	return true;
}

/* --- figures ------------------------------------------------------------------------------ */

static uint64_t p99_of(const struct program *program)
{
	uint64_t wanted = program->row_s - program->row_s / 100, met = 0;

	for (size_t i = 0; i < BUCKETS; i++) {
		met += program->histogram[i];
		if (met >= wanted)
			return sl_min_u64(
				upper_end(i) * 1024, program->figures.peak_bytes);
	}
	return program->figures.peak_bytes;
}

static void complete(struct advising *advising, uint32_t number, struct sl_arena *arena)
{
	struct program *program = &advising->programs[number];
	struct sl_advise_program *figures = &program->figures;
	struct sl_advise_run *runs =
		sl_arena_take(arena, (program->runs + 1) * sizeof(*runs));

	for (size_t i = 0; i < advising->run_count; i++) {
		const struct run *run = &advising->runs[i];

		if (run->program != number || !run->seen)
			continue;
		runs[figures->runs++] =
			(struct sl_advise_run){run->begun_ms, run->ended_ms};
		figures->observed += run->observed;
		figures->gpus = (uint32_t)sl_max_u64(figures->gpus, run->gpus);
		if (run->kept)
			figures->kept_peak_bytes =
				sl_max_u64(figures->kept_peak_bytes, run->peak_bytes);
		else
			figures->free_peak_bytes =
				sl_max_u64(figures->free_peak_bytes, run->peak_bytes);
	}
	figures->at_once = sl_advise_at_once(arena, runs, figures->runs);
	figures->span_s = program->span_ms / 1000;
	figures->active_s = sl_min_u64(program->active_ms / 1000, figures->span_s);
	figures->p99_bytes = program->row_s ? p99_of(program) : 0;
	figures->mean_bytes =
		program->row_s ? sl_min_u64(program->sum_kib / program->row_s * 1024,
					 figures->peak_bytes)
			       : 0;
}

/* --- writing ------------------------------------------------------------------------------ */

static void put_program(FILE *out, const struct program *program,
	const struct sl_advice *advice, bool first)
{
	const struct sl_advise_program *figures = &program->figures;
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{"runs", figures->runs},
		{"observed", figures->observed},
		{"gpus", figures->gpus},
		{"at_once", figures->at_once},
		{"span_s", figures->span_s},
		{"active_s", figures->active_s},
		{"peak_bytes", figures->peak_bytes},
		{"p99_bytes", figures->p99_bytes},
		{"mean_bytes", figures->mean_bytes},
		{"request_bytes", figures->request_bytes},
		{"limit_bytes", figures->limit_bytes},
		{"shareable_bytes", figures->shareable_bytes},
	};
	json_t *name = sl_text_json(program->name);

	(void)fputs(first ? "{\"name\":" : ",\n{\"name\":", out);
	if (name)
		(void)json_dumpf(name, out, JSON_ENCODE_ANY);
	else
		(void)fputs("\"?\"", out);
	json_decref(name);
	for (size_t i = 0; i < SL_ARRAY_LEN(numbers); i++)
		(void)fprintf(out, ",\"%s\":%" PRIu64, numbers[i].name, numbers[i].value);
	(void)fprintf(out, ",\"verdict\":\"%s\",\"text\":\"%s\",\"advice\":",
		sl_advise_word(advice->verdict), sl_advise_text(advice->verdict));
	if (advice->verdict == SL_ADVISE_CHANGE || advice->verdict == SL_ADVISE_KEEP)
		(void)fprintf(out,
			"{\"request_bytes\":%" PRIu64 ",\"limit_bytes\":%" PRIu64 "}}",
			advice->request_bytes, advice->limit_bytes);
	else
		(void)fputs("null}", out);
}

static int by_use(const void *left, const void *right)
{
	const struct program *a = left, *b = right;

	if (a->row_s != b->row_s)
		return a->row_s < b->row_s ? 1 : -1;
	return strcmp(a->name, b->name);
}

/* The total adds up each program's most simultaneous runs, which were not all at the same time.
 * Together they never had more GPUs than the node has. UINT32_MAX: not known. */
static uint32_t gpus_there(const struct advising *advising)
{
	uint32_t count = 0;

	for (size_t i = 0; i < SL_ARRAY_LEN(advising->shareable_kib); i++)
		count += advising->shareable_kib[i] != 0;
	return count ? count : UINT32_MAX;
}

static int advise(struct advising *advising, FILE *out, struct sl_error *err)
{
	struct sl_arena *arena = sl_arena_new();
	struct sl_advise_program *figures =
		sl_arena_take(arena, (advising->program_count + 1) * sizeof(*figures));
	struct sl_advice *advice =
		sl_arena_take(arena, (advising->program_count + 1) * sizeof(*advice));
	struct sl_advise_total total;
	size_t count = 0;

	for (uint32_t i = 0; i < advising->program_count; i++)
		complete(advising, i, arena);
	if (advising->program_count)
		qsort(advising->programs, advising->program_count,
			sizeof(*advising->programs), by_use);
	/* Programs without rows in this time come last. */
	while (count < advising->program_count && advising->programs[count].row_s) {
		figures[count] = advising->programs[count].figures;
		advice[count] = sl_advise(&figures[count]);
		count++;
	}
	total = sl_advise_total(arena, figures, advice, count);
	(void)fprintf(out,
		"{\"from_ms\":%" PRIu64 ",\"to_ms\":%" PRIu64
		",\"gpus_before\":%u,\"gpus_after\":%u,\"tasks\":%u,\"cut\":%s,"
		"\"names\":[",
		advising->ask->from_ms, advising->ask->to_ms,
		(uint32_t)sl_min_u64(total.gpus_before, gpus_there(advising)),
		(uint32_t)sl_min_u64(total.gpus_after, gpus_there(advising)), total.tasks,
		total.cut ? "true" : "false");
	for (size_t i = 0; i < count; i++)
		put_program(out, &advising->programs[i], &advice[i], i == 0);
	(void)fputs("]}\n", out);
	(void)sl_arena_free(arena);
	return SL_HISTORY_STORE_OK;
}

static int read_all(
	struct advising *advising, struct sl_history_reader *reader, struct sl_error *err)
{
	int64_t from = (int64_t)(advising->ask->from_ms / 1000);
	int64_t to = (int64_t)((advising->ask->to_ms + 999) / 1000);
	/* Minutes are exact enough; hours, where a week would be many rows. */
	enum sl_history_level level =
		to - from > 8 * 86400 ? SL_HISTORY_HOURS : SL_HISTORY_MINUTES;
	int r;

	if (!read_runs(advising, reader))
		return sl_history_reader_failed(reader, err);
	if (advising->failed) {
		sl_error_set(err, "sluiced is out of memory; try again");
		return SL_HISTORY_STORE_BAD;
	}
	r = sl_history_read_rows(reader, SL_HISTORY_GPUS, SL_HISTORY_HOURS, from, to, 0,
		take_gpu, advising, err);
	if (r == SL_HISTORY_STORE_OK)
		r = sl_history_read_rows(reader, SL_HISTORY_USES, level, from, to, 0,
			take_use, advising, err);
	return r;
}

int sl_history_advice(struct sl_history_reader *reader, const struct sl_history_ask *ask,
	FILE *out, struct sl_error *err)
{
	struct advising advising = {.ask = ask};
	int r = read_all(&advising, reader, err);

	if (r == SL_HISTORY_STORE_OK)
		r = advise(&advising, out, err);
	for (size_t i = 0; i < advising.program_count; i++)
		free(advising.programs[i].histogram);
	free(advising.programs);
	free(advising.runs);
	sl_map_fini(&advising.by_id);
	return r;
}
