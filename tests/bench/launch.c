/*
 * launch - what a hook adds to a submission
 *
 * `bench launch` starts itself under `sluice run` in front of the stub driver (stub_cuda.c), whose
 * submissions are empty. There each thread times batches of calls, alternately in two ways: through
 * the pointer that dlsym gives a program (the hook) and through the stub's second name for the same
 * function (no hook). So clock frequency and other programs affect both ways alike.
 *
 * A batch takes about a microsecond: long against the cost of reading the clock, which both ways
 * have, and short against the time between two interrupts. If interrupts hit one batch in a
 * hundred, the 99th percentile shows them. They hit the longer batch, the one with the hook, more
 * often.
 *
 * The 99th percentile is that of batches with the hook less that of batches without. Every figure
 * is the median of several passes, because machines are busy.
 */
#include "stub.h"

#include "ask.h"
#include "driver.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/compute/compute.h"
#include "policy/node.h"

#define NAME        "bench-launch"
#define CALLS       200  /* per batch */
#define BATCHES     6000 /* per thread and pass, with and without each */
#define PASSES      5
#define WARM_UP     50
#define THREADS_MAX 64

/* --- one kind of submission ---------------------------------------------------------------- */

typedef uint64_t time_batch_fn(void *function);

/* The function is reached through a pointer the compiler knows nothing about, as in a program. */
#define TIME_BATCH(name, ...)                                          \
	static uint64_t time_##name(void *function)                    \
	{                                                              \
		__typeof__(name) *call = (__typeof__(name) *)function; \
		sl_ns begin = sl_clock_now();                          \
		for (int i = 0; i < CALLS; i++)                        \
			(void)call(__VA_ARGS__);                       \
		return sl_clock_now() - begin;                         \
	}
TIME_BATCH(cuLaunchKernel, NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL)
TIME_BATCH(cuMemsetD8Async, 0x7000000000ull, 0, 64, NULL)
TIME_BATCH(cuMemcpyDtoDAsync_v2, 0x7000000000ull, 0x7000001000ull, 64, NULL)

struct kind {
	const char *symbol;
	time_batch_fn *time;
	enum bench_row_id bare, median, p99; /* bare: BENCH_ROWS for none */
	void *hook, *direct;
};

static struct kind kinds[] = {
	{"cuLaunchKernel", time_cuLaunchKernel, BENCH_LAUNCH_BARE, BENCH_LAUNCH_MEDIAN,
		BENCH_LAUNCH_P99, NULL, NULL},
	{"cuMemsetD8Async", time_cuMemsetD8Async, BENCH_ROWS, BENCH_MEMSET_MEDIAN,
		BENCH_MEMSET_P99, NULL, NULL},
	{"cuMemcpyDtoDAsync_v2", time_cuMemcpyDtoDAsync_v2, BENCH_ROWS,
		BENCH_MEMCPY_MEDIAN, BENCH_MEMCPY_P99, NULL, NULL},
};

/* --- threads -------------------------------------------------------------------------------- */

struct lane {
	pthread_t thread;
	pthread_barrier_t *start;
	const struct kind *kind;
	uint64_t hooked[BATCHES], bare[BATCHES];
};

static void *run_lane(void *argument)
{
	struct lane *lane = argument;
	const struct kind *kind = lane->kind;

	for (int i = 0; i < WARM_UP; i++)
		(void)(kind->time(kind->hook) + kind->time(kind->direct));
	(void)pthread_barrier_wait(lane->start);
	for (int i = 0; i < BATCHES; i++) {
		lane->hooked[i] = kind->time(kind->hook);
		lane->bare[i] = kind->time(kind->direct);
	}
	return NULL;
}

struct pass {
	struct bench_samples *hooked, *bare;
};

/* All threads at once; their batches go into one heap. */
static void run_pass(
	const struct kind *kind, struct lane *lanes, int threads, struct pass *pass)
{
	pthread_barrier_t start;

	pass->hooked->count = 0;
	pass->bare->count = 0;
	bench_require(pthread_barrier_init(&start, NULL, (unsigned int)threads) == 0,
		"no barrier");
	for (int t = 0; t < threads; t++) {
		lanes[t].start = &start;
		lanes[t].kind = kind;
		bench_require(
			pthread_create(&lanes[t].thread, NULL, run_lane, &lanes[t]) == 0,
			"no thread");
	}
	for (int t = 0; t < threads; t++) {
		(void)pthread_join(lanes[t].thread, NULL);
		for (int i = 0; i < BATCHES && i < BENCH_SAMPLES_MAX / threads; i++) {
			bench_samples_add(pass->hooked, lanes[t].hooked[i]);
			bench_samples_add(pass->bare, lanes[t].bare[i]);
		}
	}
	(void)pthread_barrier_destroy(&start);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double middle(double values[PASSES])
{
	qsort(values, PASSES, sizeof(values[0]), compare_doubles);
	return values[PASSES / 2];
}

static void measure_kind(
	const struct kind *kind, int threads, struct lane *lanes, struct pass *pass)
{
	double bare[PASSES], bare_p99[PASSES], median[PASSES], p99[PASSES];
	char variant[32];

	for (int p = 0; p < PASSES; p++) {
		run_pass(kind, lanes, threads, pass);
		bare[p] = (double)bench_quantile(pass->bare, 500) / CALLS;
		bare_p99[p] = (double)bench_quantile(pass->bare, 990) / CALLS;
		median[p] = (double)bench_quantile(pass->hooked, 500) / CALLS - bare[p];
		p99[p] = ((double)bench_quantile(pass->hooked, 990) -
				 (double)bench_quantile(pass->bare, 990)) /
			 CALLS;
	}
	(void)snprintf(variant, sizeof(variant), "threads-%d", threads);
	if (kind->bare != BENCH_ROWS) {
		bench_emit(kind->bare, variant, middle(bare));
		bench_emit(BENCH_LAUNCH_BARE_P99, variant, middle(bare_p99));
	}
	bench_emit(kind->median, variant, middle(median));
	bench_emit(kind->p99, variant, middle(p99));
}

/* With a strict limit (tests/bench/run) a workload is metered also when it is alone. The gate's
 * pauses hit a few batches only, so the median is that of a launch in a slice. */
static void measure_metered(struct lane *lanes, struct pass *pass)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	int fd = bench_dial(SL_ROLE_CONTROL, no_token, NULL);
	struct sl_msg_use_row use = {.compute_used_pm = UINT32_MAX};
	double added[PASSES];
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SET);
	msg.set.which = SL_SET_COMPUTE_LIMIT;
	msg.set.compute_limit_pm = SL_COMPUTE_WHOLE - 1;
	msg.set.priority_biased = SL_PRIORITY_BIAS;
	sl_wire_str(msg.set.name, sizeof(msg.set.name), NAME);
	bench_send(fd, &msg);
	bench_receive(fd, SL_MSG_SET_REPLY, &msg);
	bench_require(msg.set_reply.ok, "no limit: %s", msg.set_reply.text);
	bench_require(bench_use(fd, NAME, &use) && use.compute_used_pm != UINT32_MAX,
		"a strict limit does not meter");
	for (int p = 0; p < PASSES; p++) {
		run_pass(&kinds[0], lanes, 1, pass);
		added[p] = ((double)bench_quantile(pass->hooked, 500) -
				   (double)bench_quantile(pass->bare, 500)) /
			   CALLS;
	}
	bench_emit(BENCH_LAUNCH_METERED, NULL, middle(added));
	(void)close(fd);
}

/* --- inside `sluice run` ---------------------------------------------------------------- */

static void make_sure(void)
{
	bench_stub_join(NAME);
	for (size_t i = 0; i < SL_ARRAY_LEN(kinds); i++) {
		bench_stub_find(kinds[i].symbol, &kinds[i].hook, &kinds[i].direct);
		(void)kinds[i].time(kinds[i].hook);
	}
}

static int inside(void)
{
	struct pass pass = {bench_samples_new(), bench_samples_new()};
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct lane *lanes = calloc(THREADS_MAX, sizeof(*lanes));

	bench_require(lanes, "out of memory");
	if (cores > THREADS_MAX)
		cores = THREADS_MAX;
	make_sure();
	for (size_t i = 0; i < SL_ARRAY_LEN(kinds); i++) {
		for (int threads = 1; threads < 2 * cores; threads *= 2)
			measure_kind(&kinds[i], threads < cores ? threads : (int)cores,
				lanes, &pass);
	}
	measure_metered(lanes, &pass);
	free(lanes);
	free(pass.hooked);
	free(pass.bare);
	return 0;
}

int bench_part_launch(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "inside") == 0)
		return inside();
	bench_stub_start("launch", NAME);
}
