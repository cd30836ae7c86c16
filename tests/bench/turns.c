/*
 * turns - several programs whose memory does not fit together
 *
 * Dense: three programs that never stop, with weights of 1, 2 and 2, on a GPU for one and a half.
 * The figures are the share of the time that each could run, against its weight, and the share in
 * which none ran. Sparse: the same three with long pauses. Rotation: 2, 8 and 32 models, asked one
 * after the other, on a GPU for a third of them, at least one.
 *
 * The programs themselves report when they run: a round of work takes a fraction of a millisecond,
 * so a round that takes a hundred times that has waited for memory.
 */
#include "bench.h"

#include "ask.h"
#include "worker.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define MEMBERS    3
#define BYTES      (32 * SL_MIB)
#define SETTLE_MS  2000
#define DENSE_MS   14000
#define SPARSE_MS  5000
#define PAUSE_MS   2000
#define LIMIT_S    90
#define MODELS_MAX 32

struct scene {
	struct bench_worker worker[MODELS_MAX];
	uint32_t count;
	int control;
};

static uint64_t free_bytes(const struct scene *scene)
{
	struct sl_msg_gpu_row gpu;

	bench_gpu(scene->control, &gpu);
	return gpu.free_bytes;
}

static void stop_all(struct scene *scene)
{
	for (uint32_t i = 0; i < scene->count; i++)
		bench_worker_stop(&scene->worker[i]);
	scene->count = 0;
	sl_clock_sleep(300 * SL_MS);
}

static void start_one(struct scene *scene, const char *const options[])
{
	struct bench_reply reply;
	char name[32];

	(void)snprintf(name, sizeof(name), "bench-turn-%u", scene->count);
	bench_worker_start_with(&scene->worker[scene->count], name, options);
	bench_worker_do(&scene->worker[scene->count], BENCH_DO_CONTEXT, 0, 0, &reply);
	scene->count++;
}

/* Each takes its memory, all of it written, and leaves when the next one wants its own. */
static void fill_all(struct scene *scene, uint64_t bytes)
{
	struct bench_reply reply;

	for (uint32_t i = 0; i < scene->count; i++) {
		bench_worker_do(&scene->worker[i], BENCH_DO_HOLD, 1, bytes, &reply);
		bench_worker_do(&scene->worker[i], BENCH_DO_WRITE, 50 + i, 0, &reply);
	}
}

/* --- turns ------------------------------------------------------------------------------------ */

struct share {
	double running, waiting, longest; /* ns */
	double part;                      /* of the time of its whole turns */
};

static void work_all(
	struct scene *scene, uint32_t span_ms, uint32_t pause_ms, struct share shares[])
{
	struct bench_reply reply;

	for (uint32_t i = 0; i < scene->count; i++)
		bench_worker_send(&scene->worker[i], BENCH_DO_WORK, span_ms, pause_ms);
	for (uint32_t i = 0; i < scene->count; i++) {
		bench_worker_wait(&scene->worker[i], &reply, LIMIT_S);
		shares[i] = (struct share){(double)reply.sample[1],
			(double)reply.sample[2], (double)reply.sample[3],
			(double)reply.sample[5] / fmax(1, (double)reply.sample[4])};
	}
}

/*
 * Each program's share is measured from the beginning of its first turn to that of its last, so
 * that only complete turns count. 14 seconds have about six turns of each program; a turn cut off
 * at either end would be a sixth of a share.
 */
static void measure_dense(struct scene *scene, const double weights[])
{
	double running = 0, weight = 0, worst = 0, longest = 0, parts = 0;
	struct share shares[MEMBERS];

	work_all(scene, DENSE_MS, 0, shares);
	for (uint32_t i = 0; i < scene->count; i++) {
		running += shares[i].running;
		weight += weights[i];
		longest = fmax(longest, shares[i].longest);
		parts += shares[i].part;
	}
	for (uint32_t i = 0; i < scene->count; i++)
		/* A program that never had two turns has no share that could be called fair. */
		worst = fmax(worst,
			shares[i].part > 0
				? fabs(shares[i].part / parts * weight / weights[i] - 1)
				: 1);
	bench_emit(BENCH_TURN_UNFAIR, NULL, 100 * worst);
	bench_emit(BENCH_TURN_LOST, NULL, 100 * (1 - running / (DENSE_MS * 1e6)));
	bench_emit(BENCH_TURN_WAIT, NULL, longest / 1e6);
}

/* Of the time with something to do, the part spent waiting for memory. */
static void measure_sparse(struct scene *scene)
{
	struct share shares[MEMBERS];
	double waiting = 0;

	work_all(scene, SPARSE_MS, PAUSE_MS, shares);
	for (uint32_t i = 0; i < scene->count; i++)
		waiting += shares[i].waiting;
	bench_emit(BENCH_SPARSE_WAIT, NULL,
		100 * waiting / (scene->count * SPARSE_MS * 1e6));
}

static void measure_turns(struct scene *scene)
{
	static const char *const options[MEMBERS][5] = {
		{"--request", "6MiB", "--limit", "1.0", NULL},
		{"--request", "12MiB", "--limit", "1.0", NULL},
		{"--request", "12MiB", "--limit", "1.0", NULL}};
	static const double weights[MEMBERS] = {1, 2, 2};
	struct share shares[MEMBERS];
	struct sl_msg_gpu_row gpu;

	bench_gpu(scene->control, &gpu);
	bench_require(gpu.free_bytes < 2 * BYTES && gpu.free_bytes > BYTES + SL_MIB * 16,
		"%llu bytes are free: room for one of %llu is meant",
		(unsigned long long)gpu.free_bytes, (unsigned long long)BYTES);
	for (int i = 0; i < MEMBERS; i++)
		start_one(scene, options[i]);
	sl_clock_sleep(SL_S);
	fill_all(scene, BYTES);
	/* What moving costs is known by then. */
	work_all(scene, SETTLE_MS, 0, shares);
	measure_dense(scene, weights);
	measure_sparse(scene);
	stop_all(scene);
}

/* --- rotation --------------------------------------------------------------------------------- */

/* Measures the last of the rounds: before the second round not every model has a copy on the
 * host. */
static void measure_rotation(struct scene *scene, uint32_t models, uint32_t rounds)
{
	struct bench_samples *samples = bench_samples_new();
	struct bench_reply reply;
	char variant[32];
	uint64_t bytes;

	for (uint32_t i = 0; i < models; i++)
		start_one(scene, NULL);
	sl_clock_sleep(SL_S);
	bytes = sl_max_u64(3 * free_bytes(scene) / models, 4 * SL_MIB);
	bytes = sl_min_u64(bytes, free_bytes(scene) / 4 * 3) & ~(2 * SL_MIB - 1);
	fill_all(scene, bytes);
	for (uint32_t i = 0; i < rounds * models; i++) {
		bench_worker_do(&scene->worker[i % models], BENCH_DO_READ, 0, 0, &reply);
		if (i >= (rounds - 1) * models)
			bench_samples_add(samples, reply.sample[1] - reply.sample[0]);
	}
	(void)snprintf(variant, sizeof(variant), "models-%u", models);
	bench_emit(BENCH_ROTATION, variant,
		(double)bench_quantile(samples, 500) / (double)SL_MS);
	bench_emit(BENCH_ROTATION_WORST, variant,
		(double)bench_quantile(samples, 1000) / (double)SL_MS);
	bench_emit(BENCH_ROTATION_SIZE, variant, (double)bytes / (double)SL_MIB);
	stop_all(scene);
	free(samples);
}

int bench_part_turns(int argc, char **argv)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	struct scene scene = {.control = bench_dial(SL_ROLE_CONTROL, no_token, NULL)};

	measure_turns(&scene);
	(void)close(scene.control);
	return 0;
}

int bench_part_rotation(int argc, char **argv)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	struct scene scene = {.control = bench_dial(SL_ROLE_CONTROL, no_token, NULL)};

	measure_rotation(&scene, 2, 2);
	measure_rotation(&scene, 8, 2);
	measure_rotation(&scene, MODELS_MAX, 2);
	(void)close(scene.control);
	return 0;
}
