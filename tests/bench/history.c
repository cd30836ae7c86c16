/*
 * history - the cost of recording the history, and of asking it
 *
 * The daemon's own code runs in this process: for each second of a made-up time, as fast as
 * possible, it looks at 1,000 workloads on 8 GPUs and writes into a file of this run. CPU time per
 * such second is the share of a core. It leaves out what the loop spends on collecting the figures;
 * row history.daemon, which metrics.c measures, includes that.
 */
#include "bench.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/history/query.h"
#include "daemon/history/sample.h"

#define WORKLOADS 1000
#define GPUS      8
/* A multiple of a minute, so that as many are rolled up as there are. */
#define SECONDS 300
#define DAY     86400
#define T0      (100000ll * 3600)
#define ASKED   7

static const struct sl_history_keep keep = {
	.seconds = {3600, 7 * DAY, 730ll * DAY}, .bytes = 2ull << 30, .events = 1000};

static sl_ns cpu(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (sl_ns)now.tv_sec * SL_S + (sl_ns)now.tv_nsec;
}

/* What the lists would say. Of those that change each has other figures in each second. */
static void look(struct sl_history_sample *sample, int64_t t, uint32_t changing)
{
	union sl_msg msg;

	sl_history_sample_clear(sample);
	sample->t = t;
	for (uint32_t g = 0; g < GPUS; g++) {
		sl_wire_init(&msg, SL_MSG_GPU_ROW);
		msg.gpu_row.gpu = g;
		msg.gpu_row.shareable_bytes = 80ull << 30;
		msg.gpu_row.utilisation_pct = changing ? (uint32_t)(50 + t % 50) : 0;
		sl_history_sample_take(sample, &msg);
		sample->gpus[g].id = g + 1;
	}
	for (uint32_t w = 1; w <= WORKLOADS; w++) {
		bool changes = w % 1000 < changing;

		sl_wire_init(&msg, SL_MSG_USE_ROW);
		msg.use_row.workload = w;
		msg.use_row.gpu = w % GPUS;
		msg.use_row.backing_bytes = (w + (changes ? (uint64_t)(t - T0) : 0))
					    << 20;
		msg.use_row.request_bytes = 512ull << 20;
		msg.use_row.limit_bytes = 8ull << 30;
		msg.use_row.residency = SL_WIRE_BOUND;
		msg.use_row.out_bytes = changes ? (uint64_t)(t - T0) << 22 : 0;
		sl_history_sample_take(sample, &msg);
		sl_wire_init(&msg, SL_MSG_CLIENT_ROW);
		msg.client_row.workload = w;
		msg.client_row.gpu = w % GPUS;
		msg.client_row.flags = changes ? 0 : SL_CLIENT_IDLE;
		msg.client_row.idle_ms = 5000;
		sl_history_sample_take(sample, &msg);
		sl_history_sample_find(sample, w, w % GPUS)->id = w;
	}
}

static struct sl_history_store *make(const char *path)
{
	struct sl_history_store *store = NULL;
	struct sl_error err = {0};

	bench_require(sl_history_store_open(path, &store, &err) == SL_HISTORY_STORE_OK,
		"%s", err.text);
	return store;
}

static void write_rows(
	struct sl_history_store *store, const struct sl_history_batch *batch, int64_t now)
{
	struct sl_error err = {0};

	bench_require(sl_history_store_write(store, batch, now, &keep, &err) ==
			      SL_HISTORY_STORE_OK,
		"%s", err.text);
}

/* Returns rows that were written. */
static uint64_t follow(struct sl_history_store *store, uint32_t changing, sl_ns *took)
{
	static struct sl_history_sample samples[2];
	struct sl_history_tables tables = {
		.runs = {{.kind = SL_HISTORY_USES}, {.kind = SL_HISTORY_GPUS}}};
	uint64_t rows = 0;
	sl_ns begin = cpu();

	for (int64_t s = 0; s <= SECONDS; s++) {
		struct sl_history_sample *now = &samples[s % 2];
		struct sl_history_batch batch = {0};

		look(now, T0 + s, changing);
		bench_require(!s || sl_history_sample_rows(
					    &samples[(s + 1) % 2], now, &tables) == 0,
			"out of memory");
		for (int kind = 0; kind < SL_HISTORY_KINDS; kind++) {
			/* As the scribe does, so that a crash costs little. */
			if (s % 15 == 0)
				bench_require(sl_history_runs_tell(&tables.runs[kind],
						      &tables.out[kind]) == 0,
					"out of memory");
			batch.rows[kind] = tables.out[kind].all;
			batch.row_count[kind] = tables.out[kind].count;
			rows += tables.out[kind].count;
		}
		write_rows(store, &batch, T0 + s);
		for (int kind = 0; kind < SL_HISTORY_KINDS; kind++)
			tables.out[kind].count = 0;
	}
	*took = cpu() - begin;
	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++) {
		sl_history_runs_fini(&tables.runs[kind]);
		sl_history_rows_fini(&tables.out[kind]);
	}
	return rows;
}

static void measure_writing(const char *folder)
{
	static const struct {
		const char *name;
		uint32_t changing;
	} kinds[] = {{"idle", 0}, {"half", WORKLOADS / 2}};
	char path[512];
	uint64_t rows = 0, bytes = 0;

	for (size_t i = 0; i < SL_ARRAY_LEN(kinds); i++) {
		struct sl_history_store *store;
		sl_ns took = 0;

		(void)snprintf(path, sizeof(path), "%s/%s.db", folder, kinds[i].name);
		store = make(path);
		rows = follow(store, kinds[i].changing, &took);
		bytes = sl_history_store_bytes(store);
		bench_emit(BENCH_HISTORY_CPU, kinds[i].name,
			100.0 * (double)took / SECONDS / (double)SL_S);
		bench_emit(BENCH_HISTORY_ROWS, kinds[i].name, (double)rows / SECONDS);
		(void)sl_history_store_close(store);
	}
	/* Minutes and hours have as many columns. */
	bench_emit(BENCH_HISTORY_DAY, "seconds", (double)bytes / SECONDS * DAY / SL_MIB);
	bench_emit(BENCH_HISTORY_DAY, "minutes",
		(double)bytes / (double)rows * WORKLOADS * 1440 / SL_MIB);
	bench_emit(BENCH_HISTORY_DAY, "hours",
		(double)bytes / (double)rows * WORKLOADS * 24 / SL_MIB);
}

/* A row for each workload and hour of it. */
static void fill_week(struct sl_history_store *store)
{
	static struct sl_history_workload workloads[WORKLOADS];
	static struct sl_history_row rows[WORKLOADS];
	struct sl_history_batch batch = {
		.workloads = workloads, .workload_count = WORKLOADS, .rows = {rows}};

	for (int w = 0; w < WORKLOADS; w++) {
		workloads[w] = (struct sl_history_workload){.id = w + 1,
			.number = (uint64_t)w + 1,
			.uid = (uint32_t)(w % 40)};
		(void)snprintf(
			workloads[w].user, sizeof(workloads[w].user), "user%d", w % 40);
		rows[w] = (struct sl_history_row){
			.span = 60, .gpu = w % GPUS + 1, .workload = w + 1};
		for (int c = 0; c < SL_HISTORY_USE_COLUMNS; c++)
			rows[w].value[c] = 1000000 + w * c;
	}
	batch.row_count[0] = WORKLOADS;
	for (int h = 0; h < 7 * 24; h++) {
		for (int w = 0; w < WORKLOADS; w++)
			rows[w].t = T0 + h * 3600ll;
		write_rows(store, &batch, T0 + h * 3600ll + 60);
		batch.workload_count = 0;
	}
	batch.row_count[0] = 0;
	for (int s = 0; s < 5; s++)
		write_rows(store, &batch, T0 + 7 * DAY + s);
}

/* How long its answer takes. */
static sl_ns question(const char *path, const struct sl_history_ask *ask, uint64_t now_ms)
{
	struct sl_error err = {0};
	sl_ns begin = sl_clock_now();
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	bench_require(out && sl_history_query(path, ask, now_ms, out, &err) ==
				      SL_HISTORY_STORE_OK,
		"%s", err.text);
	(void)fclose(out);
	bench_require(size > 10000, "the answer has %zu bytes only", size);
	free(text);
	return sl_clock_now() - begin;
}

static void measure_asking(const char *folder)
{
	struct bench_samples *took = bench_samples_new();
	struct sl_history_ask ask = {.by = SL_HISTORY_BY_USER,
		.step_s = 7 * 3600,
		.from_ms = T0 * 1000,
		.to_ms = (T0 + 7 * DAY) * 1000};
	struct sl_history_store *store;
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/week.db", folder);
	store = make(path);
	fill_week(store);
	(void)sl_history_store_close(store);
	for (int i = 0; i < ASKED; i++)
		bench_samples_add(took, question(path, &ask, ask.to_ms));
	bench_emit(BENCH_HISTORY_WEEK, NULL,
		(double)bench_quantile(took, 500) / (double)SL_MS);
	free(took);
}

/* A day of minutes of all, as they lie in the file when they were rolled up. */
static void fill_day(const char *path)
{
	const int64_t end = T0 + DAY;
	sqlite3 *db = NULL;
	char sql[1024], *said = NULL;

	(void)snprintf(sql, sizeof(sql),
		"PRAGMA synchronous = OFF; BEGIN; WITH RECURSIVE m(t) AS (SELECT %lld "
		"UNION ALL SELECT t + 60 FROM m WHERE t + 60 < %lld), w(n) AS (SELECT 1 "
		"UNION ALL SELECT n + 1 FROM w WHERE n < %d) INSERT INTO minutes (t, "
		"gpu, workload, span, request, resident, most, allocated_us) SELECT t, 1 "
		"+ n %% %d, n, 60, n * 60, n * 600, n * 10, 15000000 FROM m CROSS JOIN "
		"w; "
		"WITH RECURSIVE w(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM w WHERE n "
		"< %d) INSERT INTO workloads (id, number, name, begun_ms, ended_ms) "
		"SELECT n, n, 'w' || n, %lld, 0 FROM w; INSERT INTO gpus WITH RECURSIVE "
		"g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < %d) SELECT n, "
		"'GPU-' || n, '' FROM g; UPDATE meta SET done = %lld; COMMIT",
		(long long)T0, (long long)end, WORKLOADS, GPUS, WORKLOADS, T0 * 1000,
		GPUS, (long long)end);
	bench_require(sqlite3_open(path, &db) == SQLITE_OK &&
			      sqlite3_exec(db, sql, NULL, NULL, &said) == SQLITE_OK,
		"%s: %s", path, said);
	(void)sqlite3_close(db);
}

static void measure_series(const char *folder)
{
	struct bench_samples *took = bench_samples_new();
	struct sl_history_ask ask = {.what = SL_HISTORY_SERIES,
		.workload = WORKLOADS / 2,
		.step_s = 60,
		.from_ms = T0 * 1000,
		.to_ms = (T0 + DAY) * 1000};
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/day.db", folder);
	(void)sl_history_store_close(make(path));
	fill_day(path);
	for (int i = 0; i < ASKED; i++)
		bench_samples_add(took, question(path, &ask, ask.to_ms));
	bench_emit(BENCH_HISTORY_SERIES, NULL,
		(double)bench_quantile(took, 500) / (double)SL_MS);
	free(took);
}

int bench_part_history(int argc, char **argv)
{
	char folder[] = "/tmp/sluice-bench-history.XXXXXX", command[128];
	int r;

	bench_require(mkdtemp(folder), "no folder in /tmp");
	measure_writing(folder);
	measure_asking(folder);
	measure_series(folder);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	r = system(command);
	return r == 0 ? 0 : 1;
}
