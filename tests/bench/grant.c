/*
 * grant - from memory released to memory granted
 *
 * A holder has all but GAP of the free memory; a waiter asks for more than GAP and waits. Then the
 * holder is killed, or frees.
 *
 * Killed: the driver takes its time to tear the process down, and that time is not Sluice's. So
 * NVML is asked without pause, and the clock runs from its last answer that still showed the memory
 * until the waiter's cuMemAlloc returned. (A clock that started later would make the figure too
 * good.) Freed: the clock runs from the start of cuMemFree.
 *
 * The waiter's time includes the creation of its memory; large.alloc says how much that is.
 */
#include "bench.h"

#include "ask.h"
#include "nvml.h"
#include "worker.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS_MIN  4
#define ROUNDS      12
#define SPAN_NS     (20 * SL_S)
#define GAP_BYTES   (64 * SL_MIB)
#define ASK_BYTES   (128 * SL_MIB)
#define GRAIN_BYTES (32 * SL_MIB)
#define LIMIT_S     30
#define WAITER      "bench-waiter"
/* A new context's hidden bytes are measured by then, so that free memory stays free. */
#define SETTLE_NS (400 * SL_MS)

struct scene {
	struct bench_worker holder, waiter;
	int control; /* connection to the daemon */
	struct bench_samples *teardown, *kill, *free;
};

static void start_holder(struct scene *scene)
{
	struct bench_reply reply;

	bench_worker_start(&scene->holder, "bench-holder");
	bench_worker_do(&scene->holder, BENCH_DO_CONTEXT, 0, 0, &reply);
	sl_clock_sleep(SETTLE_NS);
}

/* The holder takes all but the gap, and the waiter waits; returns what the holder has. */
static uint64_t set_up(struct scene *scene)
{
	sl_ns give_up = sl_clock_now() + LIMIT_S * SL_S;
	struct sl_msg_use_row use;
	struct sl_msg_gpu_row gpu;
	struct bench_reply reply;
	uint64_t bytes;

	bench_gpu(scene->control, &gpu);
	bytes = sl_sub_sat(gpu.free_bytes, GAP_BYTES) & ~(GRAIN_BYTES - 1);
	bench_require(bytes > ASK_BYTES, "only %llu bytes are free",
		(unsigned long long)gpu.free_bytes);
	bench_worker_do(&scene->holder, BENCH_DO_HOLD, 1, bytes, &reply);
	bench_worker_send(&scene->waiter, BENCH_DO_HOLD, 1, ASK_BYTES);
	while (!bench_use(scene->control, WAITER, &use) || !use.waiting) {
		bench_require(sl_clock_now() < give_up, "nobody waits");
		sl_clock_sleep(SL_MS);
	}
	return bytes;
}

/* When the waiter had its memory; it gives it back. */
static sl_ns collect(struct scene *scene)
{
	struct bench_reply reply;
	sl_ns granted;

	bench_worker_wait(&scene->waiter, &reply, LIMIT_S);
	granted = reply.sample[1];
	bench_worker_do(&scene->waiter, BENCH_DO_LET_GO, 1, 0, &reply);
	return granted;
}

/* Time of the last answer that showed more than below_bytes. */
static sl_ns watch_release(uint64_t below_bytes)
{
	sl_ns begin = sl_clock_now(), seen = begin, now = begin;

	while (bench_nvml_used_bytes() > below_bytes) {
		now = sl_clock_now();
		bench_require(now - begin < LIMIT_S * SL_S, "memory of the dead stays");
		seen = now;
	}
	return seen;
}

static void kill_round(struct scene *scene)
{
	uint64_t used, held;
	sl_ns killed, released, granted;

	start_holder(scene);
	held = set_up(scene);
	used = bench_nvml_used_bytes();
	killed = sl_clock_now();
	(void)kill(scene->holder.pid, SIGKILL);
	released = watch_release(used - held / 2);
	granted = collect(scene);
	bench_worker_stop(&scene->holder);
	bench_samples_add(scene->teardown, released - killed);
	bench_samples_add(scene->kill, sl_sub_sat(granted, released));
}

static void free_round(struct scene *scene)
{
	struct bench_reply reply;

	(void)set_up(scene);
	bench_worker_do(&scene->holder, BENCH_DO_LET_GO, 1, 0, &reply);
	bench_samples_add(scene->free, sl_sub_sat(collect(scene), reply.sample[0]));
	sl_clock_sleep(20 * SL_MS);
}

static double ms(struct bench_samples *samples, unsigned int per_mille)
{
	return (double)bench_quantile(samples, per_mille) / (double)SL_MS;
}

int bench_part_grant(int argc, char **argv)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	struct scene scene = {
		.teardown = bench_samples_new(),
		.kill = bench_samples_new(),
		.free = bench_samples_new(),
		.control = bench_dial(SL_ROLE_CONTROL, no_token, NULL),
	};
	struct sl_msg_gpu_row gpu;
	struct bench_reply reply;
	sl_ns begin;

	bench_gpu(scene.control, &gpu);
	bench_nvml_open(gpu.uuid);
	bench_worker_start(&scene.waiter, WAITER);
	bench_worker_do(&scene.waiter, BENCH_DO_CONTEXT, 0, 0, &reply);
	begin = sl_clock_now();
	for (int i = 0; bench_more(i, ROUNDS_MIN, ROUNDS, begin, SPAN_NS); i++)
		kill_round(&scene);
	start_holder(&scene);
	begin = sl_clock_now();
	for (int i = 0; bench_more(i, ROUNDS_MIN, ROUNDS, begin, SPAN_NS); i++)
		free_round(&scene);
	bench_worker_stop(&scene.holder);
	bench_worker_stop(&scene.waiter);
	bench_emit(BENCH_GRANT_KILL_MEDIAN, NULL, ms(scene.kill, 500));
	bench_emit(BENCH_GRANT_KILL_WORST, NULL, ms(scene.kill, 1000));
	bench_emit(BENCH_TEARDOWN, NULL, ms(scene.teardown, 500));
	bench_emit(BENCH_GRANT_FREE_MEDIAN, NULL, ms(scene.free, 500));
	bench_emit(BENCH_GRANT_FREE_WORST, NULL, ms(scene.free, 1000));
	free(scene.teardown);
	free(scene.kill);
	free(scene.free);
	(void)close(scene.control);
	return 0;
}
