/*
 * grow - programs that load their memory piece by piece
 *
 * Each program wants 608 MiB of a GPU of 1024, in pieces of 16, and has requested 256. That is a
 * quarter of a model of 2.4 GiB in pieces of 64 MiB on 4 GiB; the link is a quarter as fast, too.
 * The cases are one alone, two at once, and one beside another that has loaded and is idle. The
 * last case is compared with one alone plus the time of moving what does not fit beside the idle
 * one; the cost of moving is measured by `sluice park` of all its memory.
 *
 * Stall: two programs of 128 MiB on 240 change all their memory without pause. That is a quarter of
 * 512 MiB on 960 in pieces of four times the size, which the row names. The figure is the longest
 * time one of them stood still, over a slice and an exchange. The slice is turn_max here, which is
 * shorter than ten times the cost of moving. The exchange moves out what does not fit, and back.
 */
#include "bench.h"

#include "ask.h"
#include "worker.h"

#include <stdlib.h>
#include <unistd.h>

#define LOADING   (608 * SL_MIB)
#define PIECE     (16 * SL_MIB)
#define LIMIT_S   90
#define SETTLE_NS (800 * SL_MS)
#define WORKING   (128 * SL_MIB)
#define ALONE_MS  1000
#define SLICES    4 /* two of each */

static const char *const loading[] = {"--request", "256MiB", "--limit", "750MiB", NULL};

struct scene {
	struct bench_worker a, b;
	int control;
};

static void start(
	struct bench_worker *worker, const char *name, const char *const options[])
{
	struct bench_reply reply;

	bench_worker_start_with(worker, name, options);
	bench_worker_do(worker, BENCH_DO_CONTEXT, 0, 0, &reply);
	sl_clock_sleep(SETTLE_NS);
}

static void stop(struct bench_worker *worker)
{
	bench_worker_stop(worker);
	sl_clock_sleep(SETTLE_NS);
}

static void begin_to_grow(struct bench_worker *worker, uint64_t bytes, uint64_t piece)
{
	bench_worker_send(worker, BENCH_DO_GROW, (uint32_t)(bytes / piece), piece);
}

static sl_ns until_grown(struct bench_worker *worker)
{
	struct bench_reply reply;

	bench_worker_wait(worker, &reply, LIMIT_S);
	return reply.sample[1];
}

/* Returns how long it took, and leaves it there. */
static sl_ns grow_alone(struct bench_worker *worker, const char *name)
{
	sl_ns begin;

	start(worker, name, loading);
	begin = sl_clock_now();
	begin_to_grow(worker, LOADING, PIECE);
	return until_grown(worker) - begin;
}

/* Of what one has, that which does not fit beside another of the same size. */
static sl_ns cost_of_moving(struct scene *scene, uint64_t bytes, sl_ns all)
{
	struct sl_msg_gpu_row gpu;
	uint64_t free_bytes;

	bench_gpu(scene->control, &gpu);
	free_bytes = gpu.free_bytes;
	return (sl_ns)((double)all * (double)sl_sub_sat(bytes, free_bytes) /
		       (double)bytes);
}

static sl_ns grow_both(struct scene *scene)
{
	sl_ns begin, a, b;

	start(&scene->a, "bench-grow-a", loading);
	start(&scene->b, "bench-grow-b", loading);
	begin = sl_clock_now();
	begin_to_grow(&scene->a, LOADING, PIECE);
	begin_to_grow(&scene->b, LOADING, PIECE);
	a = until_grown(&scene->a);
	b = until_grown(&scene->b);
	stop(&scene->a);
	stop(&scene->b);
	return sl_max_u64(a, b) - begin;
}

int bench_part_grow(int argc, char **argv)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	struct scene scene = {.control = bench_dial(SL_ROLE_CONTROL, no_token, NULL)};
	sl_ns alone, both, idle, move;

	(void)argc;
	(void)argv;
	alone = grow_alone(&scene.a, "bench-grow-alone");
	bench_emit(BENCH_GROW_ALONE, NULL, (double)alone / 1e6);
	/* Parking once gives the workload host memory, as a workload that leaves for another must
	 * first be given it. */
	move = bench_park(scene.control, "bench-grow-alone", true);
	(void)bench_park(scene.control, "bench-grow-alone", false);
	move = cost_of_moving(&scene, LOADING, move);
	idle = grow_alone(&scene.b, "bench-grow-idle");
	bench_emit(BENCH_GROW_IDLE, NULL, (double)idle / (double)(alone + move));
	stop(&scene.a);
	stop(&scene.b);
	both = grow_both(&scene);
	bench_emit(BENCH_GROW_BOTH, NULL, (double)both / (double)alone);
	(void)close(scene.control);
	return 0;
}

/* --- two that work ---------------------------------------------------------------------------- */

#define A "bench-stall-a"

static void load(struct bench_worker *worker, const char *name, uint64_t piece)
{
	start(worker, name, NULL);
	begin_to_grow(worker, WORKING, piece);
	(void)until_grown(worker);
}

/* Out and back, once its host memory is made, and all of it has changed. */
static sl_ns move_all(struct scene *scene)
{
	struct bench_reply reply;
	sl_ns span = 0;

	for (int i = 0; i < 2; i++) {
		bench_worker_do(&scene->a, BENCH_DO_WORK, ALONE_MS, 0, &reply);
		bench_require(reply.sample[0] >= WORKING / SL_MIB,
			"not all of %s has changed: %llu rounds", A,
			(unsigned long long)reply.sample[0]);
		span = bench_park(scene->control, A, true) +
		       bench_park(scene->control, A, false);
	}
	return span;
}

static sl_ns work_both(struct scene *scene, uint32_t span_ms)
{
	struct bench_reply a, b;

	bench_worker_send(&scene->a, BENCH_DO_WORK, span_ms, 0);
	bench_worker_send(&scene->b, BENCH_DO_WORK, span_ms, 0);
	bench_worker_wait(&scene->a, &a, LIMIT_S);
	bench_worker_wait(&scene->b, &b, LIMIT_S);
	bench_require(a.sample[3] && b.sample[3], "not both stood still");
	return sl_max_u64(a.sample[3], b.sample[3]);
}

static void measure_stall(struct scene *scene, const char *variant, uint64_t piece)
{
	const char *slice = getenv("SL_BENCH_TURN_MS");
	sl_ns one, longest;

	bench_require(slice != NULL, "SL_BENCH_TURN_MS is not set");
	load(&scene->a, A, piece);
	one = cost_of_moving(scene, WORKING, move_all(scene));
	one += strtoull(slice, NULL, 10) * SL_MS;
	load(&scene->b, "bench-stall-b", piece);
	longest = work_both(scene, (uint32_t)(SLICES * one / SL_MS));
	bench_emit(BENCH_STALL, variant, (double)longest / (double)one);
	bench_emit(BENCH_STALL_ONE, variant, (double)one / 1e6);
	stop(&scene->a);
	stop(&scene->b);
}

int bench_part_stall(int argc, char **argv)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	struct scene scene = {.control = bench_dial(SL_ROLE_CONTROL, no_token, NULL)};

	(void)argc;
	(void)argv;
	measure_stall(&scene, "16MiB", 4 * SL_MIB);
	measure_stall(&scene, "64MiB", 16 * SL_MIB);
	measure_stall(&scene, "256MiB", 64 * SL_MIB);
	measure_stall(&scene, "one", WORKING);
	(void)close(scene.control);
	return 0;
}
