/*
 * grow - programs that load what they need piece by piece
 *
 * Each wants 608 MiB of a GPU of 1024, in pieces of 16, and has requested 256: a quarter, as is
 * the speed of the link, of a model of 2.4 GiB in pieces of 64 MiB on 4 GiB. One alone; two at
 * once; one beside another that has loaded and rests. The last is told against one alone and the
 * time that moving takes of what does not fit beside it, as `sluice park` moves all of it.
 */
#include "bench.h"

#include "ask.h"
#include "worker.h"

#include <unistd.h>

#define PIECES    38
#define PIECE     (16 * SL_MIB)
#define LIMIT_S   90
#define SETTLE_NS (800 * SL_MS)

static const char *const options[] = {"--request", "256MiB", "--limit", "750MiB", NULL};

struct scene {
	struct bench_worker a, b;
	int control;
};

static void start(struct bench_worker *worker, const char *name)
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

static void begin_to_grow(struct bench_worker *worker)
{
	bench_worker_send(worker, BENCH_DO_GROW, PIECES, PIECE);
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

	start(worker, name);
	begin = sl_clock_now();
	begin_to_grow(worker);
	return until_grown(worker) - begin;
}

/* Of what one has, that which does not fit beside another of the same size. */
static sl_ns cost_of_moving(struct scene *scene, sl_ns all)
{
	struct sl_msg_gpu_row gpu;
	uint64_t bytes = (uint64_t)PIECES * PIECE, free_bytes;

	bench_gpu(scene->control, &gpu);
	free_bytes = gpu.free_bytes;
	return (sl_ns)((double)all * (double)sl_sub_sat(bytes, free_bytes) /
		       (double)bytes);
}

static sl_ns grow_both(struct scene *scene)
{
	sl_ns begin, a, b;

	start(&scene->a, "bench-grow-a");
	start(&scene->b, "bench-grow-b");
	begin = sl_clock_now();
	begin_to_grow(&scene->a);
	begin_to_grow(&scene->b);
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
	/* It has the host's memory from then on, as the one that leaves for another would have
	 * to be given it first. */
	move = bench_park(scene.control, "bench-grow-alone", true);
	(void)bench_park(scene.control, "bench-grow-alone", false);
	move = cost_of_moving(&scene, move);
	idle = grow_alone(&scene.b, "bench-grow-idle");
	bench_emit(BENCH_GROW_IDLE, NULL, (double)idle / (double)(alone + move));
	stop(&scene.a);
	stop(&scene.b);
	both = grow_both(&scene);
	bench_emit(BENCH_GROW_BOTH, NULL, (double)both / (double)alone);
	(void)close(scene.control);
	return 0;
}
