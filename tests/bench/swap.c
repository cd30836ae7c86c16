/*
 * swap - memory to the host and back, against plain copies of the same bytes in the same run
 *
 * Two workloads of the same size, A and B, share the memory of one and little more; a third
 * workload, whose memory may not be moved, takes the rest of the GPU. B has the higher priority, so
 * that neither waits for turns. A itself makes the plain copy, through pinned memory.
 *
 * A software GPU is slowed down, so that the processor can stand for a GPU: its link and the
 * driver's time per handle by the same factor (SL_BENCH_SLOW). Ratios need no correction. The only
 * time with a budget, that for clean memory, is reported without the factor and for 16 GB.
 */
#include "bench.h"

#include "ask.h"
#include "worker.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define A       "bench-swap-a"
#define B       "bench-swap-b"
#define LIMIT_S 60
#define ROUNDS  4
#define GRAIN   (32 * SL_MIB)
#define SIXTEEN 16e9
/* From a context to its hidden bytes being measured and the hash's code being there. */
#define SETTLE_NS (800 * SL_MS)
/* Longest first part of a turn, in which a burst stays where it is (decision 0027). */
#define FIRST_PART_NS (200 * SL_MS)

static const char *const urgent_options[] = {"--priority", "10", NULL};
static const char *const fixed_options[] = {"--swap", "off", NULL};

struct scene {
	struct bench_worker a, b, fixed;
	bool has_fixed;
	int control;
	uint64_t bytes;
	double slow;
	sl_ns out_ns, in_ns; /* plain copies of so many bytes */
};

static uint64_t number_of(const char *environment, uint64_t standard)
{
	const char *text = getenv(environment);

	return text ? strtoull(text, NULL, 10) : standard;
}

static sl_ns span(const struct bench_reply *reply)
{
	return reply->sample[1] - reply->sample[0];
}

static double ratio(sl_ns part, sl_ns whole)
{
	return (double)part / (double)whole;
}

static sl_ns do_timed(
	struct bench_worker *worker, enum bench_verb verb, uint32_t count, uint64_t bytes)
{
	struct bench_reply reply;

	bench_worker_do(worker, verb, count, bytes, &reply);
	return span(&reply);
}

static void start(
	struct bench_worker *worker, const char *name, const char *const options[])
{
	struct bench_reply reply;

	bench_worker_start_with(worker, name, options);
	bench_worker_do(worker, BENCH_DO_CONTEXT, 0, 0, &reply);
	sl_clock_sleep(SETTLE_NS);
}

/* Leaves space for one of them and a little: a chunk of the other would not fit. */
static void take_the_rest(struct scene *scene)
{
	struct sl_msg_gpu_row gpu;
	uint64_t keep = scene->bytes + scene->bytes / 8, rest;

	bench_gpu(scene->control, &gpu);
	bench_require(gpu.free_bytes >= scene->bytes + scene->bytes / 16,
		"%llu bytes are free, too few for %llu",
		(unsigned long long)gpu.free_bytes, (unsigned long long)scene->bytes);
	scene->has_fixed = gpu.free_bytes > keep + GRAIN;
	if (!scene->has_fixed)
		return;
	start(&scene->fixed, "bench-swap-fixed", fixed_options);
	bench_gpu(scene->control, &gpu);
	/* Its context may have taken what there was. */
	rest = sl_sub_sat(gpu.free_bytes, keep) & ~(GRAIN - 1);
	if (rest)
		(void)do_timed(&scene->fixed, BENCH_DO_HOLD, 1, rest);
}

/* --- one workload, told to go and to come ----------------------------------------------------- */

static void copy_plain(struct scene *scene)
{
	struct bench_reply reply;

	(void)do_timed(&scene->a, BENCH_DO_WRITE, 1, 0);
	bench_worker_do(&scene->a, BENCH_DO_COPY, 1, scene->bytes, &reply);
	scene->out_ns = reply.sample[0];
	scene->in_ns = reply.sample[1];
}

static void measure_plain(struct scene *scene)
{
	copy_plain(scene);
	bench_emit(BENCH_SWAP_PLAIN, "out", (double)scene->bytes / (double)scene->out_ns);
	bench_emit(BENCH_SWAP_PLAIN, "in", (double)scene->bytes / (double)scene->in_ns);
}

static sl_ns move(struct scene *scene, bool parked)
{
	return bench_park(scene->control, A, parked);
}

static void measure_dirty(struct scene *scene)
{
	struct bench_samples *out = bench_samples_new(), *in = bench_samples_new();

	bench_emit_against(BENCH_SWAP_OUT_FIRST, NULL,
		ratio(move(scene, true), scene->out_ns), BENCH_SWAP_PLAIN,
		BENCH_COMPUTED);
	bench_samples_add(in, move(scene, false));
	for (uint32_t i = 1; i < ROUNDS; i++) {
		(void)do_timed(&scene->a, BENCH_DO_WRITE, 100 + i, 0);
		bench_samples_add(out, move(scene, true));
		bench_samples_add(in, move(scene, false));
	}
	bench_emit_against(BENCH_SWAP_OUT, NULL,
		ratio(bench_quantile(out, 500), scene->out_ns), BENCH_SWAP_PLAIN,
		BENCH_COMPUTED);
	bench_emit_against(BENCH_SWAP_IN, NULL,
		ratio(bench_quantile(in, 500), scene->in_ns), BENCH_SWAP_PLAIN,
		BENCH_COMPUTED);
	free(out);
	free(in);
}

static void measure_clean(struct scene *scene)
{
	struct bench_samples *samples = bench_samples_new();
	struct sl_msg_use_row before, after;

	for (int i = 0; i < ROUNDS - 1; i++) {
		bench_require(bench_use(scene->control, A, &before), "no " A);
		bench_samples_add(samples, move(scene, true));
		bench_require(bench_use(scene->control, A, &after), "no " A);
		bench_require(after.out_bytes - before.out_bytes < scene->bytes / 8,
			"%llu bytes of clean memory were copied",
			(unsigned long long)(after.out_bytes - before.out_bytes));
		(void)move(scene, false);
	}
	bench_emit(BENCH_EVICT_CLEAN, NULL,
		(double)bench_quantile(samples, 500) / (double)SL_MS / scene->slow *
			SIXTEEN / (double)scene->bytes);
	free(samples);
}

/* --- two that do not fit ---------------------------------------------------------------------- */

/* B is parked and A comes back with unchanged memory; what B has changed is then on the host. A
 * counts as idle once the first part of its turn is over. */
static void back_to_a(struct scene *scene)
{
	(void)bench_park(scene->control, B, true);
	(void)do_timed(&scene->a, BENCH_DO_READ, 0, 0);
	bench_until_resident(scene->control, A);
	sl_clock_sleep(FIRST_PART_NS);
}

/* B, which is more urgent, is wanted again: from then until its first answer. */
static sl_ns back_to_b(struct scene *scene)
{
	sl_ns begin = sl_clock_now();

	bench_resume(scene->control, B);
	(void)do_timed(&scene->b, BENCH_DO_READ, 0, 0);
	return sl_clock_now() - begin;
}

static void let_b_in(struct scene *scene)
{
	(void)do_timed(&scene->b, BENCH_DO_HOLD, 1, scene->bytes);
	(void)do_timed(&scene->b, BENCH_DO_WRITE, 2, 0);
	back_to_a(scene);
}

static void measure_clean_exchange(struct scene *scene)
{
	sl_ns clean;

	let_b_in(scene);
	clean = back_to_b(scene);
	back_to_a(scene);
	bench_emit_against(BENCH_EXCHANGE_CLEAN, NULL, ratio(clean, scene->in_ns),
		BENCH_SWAP_PLAIN, BENCH_COMPUTED);
	bench_emit(BENCH_ANSWER, "swapped", (double)clean / (double)SL_MS);
}

/* B, which is parked, frees all its memory and resumes without any. It then asks for a quarter more
 * than is free beside A. */
static void measure_part(struct scene *scene)
{
	struct sl_msg_use_row row;
	struct sl_msg_gpu_row gpu;
	uint64_t want;

	(void)do_timed(&scene->b, BENCH_DO_LET_GO, 0, 0);
	bench_resume(scene->control, B);
	(void)do_timed(&scene->a, BENCH_DO_WRITE, 3, 0);
	bench_until_resident(scene->control, A);
	bench_gpu(scene->control, &gpu);
	want = scene->bytes / 4;
	(void)do_timed(
		&scene->b, BENCH_DO_HOLD, 1, (gpu.free_bytes + want) & ~(2 * SL_MIB - 1));
	bench_require(bench_use(scene->control, A, &row), "no " A);
	bench_emit(BENCH_EVICT_PART, NULL, (double)row.evicted_bytes / (double)want);
	(void)do_timed(&scene->b, BENCH_DO_LET_GO, 0, 0);
	(void)do_timed(&scene->a, BENCH_DO_READ, 0, 0);
}

/* A process that has to load everything: from its start to its first answer. */
static void measure_cold(struct scene *scene)
{
	struct bench_reply reply;
	sl_ns begin;

	bench_worker_stop(&scene->b);
	(void)do_timed(&scene->a, BENCH_DO_LET_GO, 0, 0);
	sl_clock_sleep(SETTLE_NS);
	begin = sl_clock_now();
	bench_worker_start_with(&scene->b, B, urgent_options);
	bench_worker_do(&scene->b, BENCH_DO_CONTEXT, 0, 0, &reply);
	(void)do_timed(&scene->b, BENCH_DO_HOLD, 1, scene->bytes);
	(void)do_timed(&scene->b, BENCH_DO_LOAD, 1, scene->bytes);
	(void)do_timed(&scene->b, BENCH_DO_READ, 0, 0);
	bench_emit(
		BENCH_ANSWER, "cold", (double)(sl_clock_now() - begin) / (double)SL_MS);
	bench_emit(BENCH_ANSWER, "warm",
		(double)do_timed(&scene->b, BENCH_DO_READ, 0, 0) / (double)SL_MS);
}

static struct scene begin(void)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	struct scene scene = {
		.control = bench_dial(SL_ROLE_CONTROL, no_token, NULL),
		.bytes = number_of("SL_BENCH_SWAP_BYTES", 256 * SL_MIB),
		.slow = (double)number_of("SL_BENCH_SLOW", 1),
	};

	start(&scene.a, A, NULL);
	start(&scene.b, B, urgent_options);
	take_the_rest(&scene);
	(void)do_timed(&scene.a, BENCH_DO_HOLD, 1, scene.bytes);
	return scene;
}

static void end(struct scene *scene)
{
	bench_worker_stop(&scene->a);
	bench_worker_stop(&scene->b);
	if (scene->has_fixed)
		bench_worker_stop(&scene->fixed);
	(void)close(scene->control);
}

int bench_part_swap(int argc, char **argv)
{
	struct scene scene = begin();

	measure_plain(&scene);
	measure_dirty(&scene);
	measure_clean(&scene);
	measure_clean_exchange(&scene);
	measure_part(&scene);
	measure_cold(&scene);
	end(&scene);
	return 0;
}

/* All memory of the idle workload has changed. It leaves in pieces, and the other one comes back
 * meanwhile. One exchange before is not timed: it makes and pins the host's memory. */
int bench_part_exchange(int argc, char **argv)
{
	struct scene scene = begin();

	copy_plain(&scene);
	let_b_in(&scene);
	(void)back_to_b(&scene);
	back_to_a(&scene);
	(void)do_timed(&scene.a, BENCH_DO_WRITE, 4, 0);
	bench_emit_against(BENCH_EXCHANGE_DIRTY, NULL,
		ratio(back_to_b(&scene), scene.in_ns), BENCH_SWAP_PLAIN, BENCH_COMPUTED);
	end(&scene);
	return 0;
}

/* --- whole processes -------------------------------------------------------------------------- */

/* Nothing of it is measured on the GPU any more. */
static bool is_away(int control)
{
	struct sl_msg_gpu_row gpu;

	bench_gpu(control, &gpu);
	return !gpu.paid_bytes && !gpu.hidden_bytes;
}

/* The daemon of this part has detach_contexts. Until the process is off the GPU, and from then
 * until all of it is back. */
int bench_part_detach(int argc, char **argv)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	struct bench_samples *out = bench_samples_new(), *in = bench_samples_new();
	struct scene scene = {
		.control = bench_dial(SL_ROLE_CONTROL, no_token, NULL),
		.bytes = number_of("SL_BENCH_SWAP_BYTES", 256 * SL_MIB),
	};

	start(&scene.a, A, NULL);
	(void)do_timed(&scene.a, BENCH_DO_HOLD, 1, scene.bytes);
	copy_plain(&scene);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		sl_ns begin;

		(void)do_timed(&scene.a, BENCH_DO_WRITE, 100 + i, 0);
		begin = sl_clock_now();
		(void)move(&scene, true);
		while (!is_away(scene.control)) {
			bench_require(sl_clock_now() - begin < LIMIT_S * SL_S,
				"the process stays on its GPU");
			sl_clock_sleep(SL_MS);
		}
		/* The first makes the host's memory, and starts the helper. */
		if (i)
			bench_samples_add(out, sl_clock_now() - begin);
		bench_samples_add(in, move(&scene, false));
	}
	bench_emit_against(BENCH_DETACH_OUT, NULL,
		ratio(bench_quantile(out, 500), scene.out_ns), BENCH_SWAP_PLAIN,
		BENCH_COMPUTED);
	bench_emit_against(BENCH_DETACH_IN, NULL,
		ratio(bench_quantile(in, 500), scene.in_ns), BENCH_SWAP_PLAIN,
		BENCH_COMPUTED);
	free(out);
	free(in);
	bench_worker_stop(&scene.a);
	(void)close(scene.control);
	return 0;
}

/* Likewise. To the other GPU and back, until all of it is there. */
int bench_part_moves(int argc, char **argv)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	static const uint64_t sizes[] = {16 * SL_MIB, 64 * SL_MIB, 256 * SL_MIB};

	for (size_t size = 0; size < SL_ARRAY_LEN(sizes); size++) {
		struct bench_samples *times = bench_samples_new();
		struct scene scene = {
			.control = bench_dial(SL_ROLE_CONTROL, no_token, NULL),
			.bytes = sizes[size],
		};
		struct sl_msg_use_row row;
		char variant[32];

		start(&scene.a, A, NULL);
		(void)do_timed(&scene.a, BENCH_DO_HOLD, 1, scene.bytes);
		copy_plain(&scene);
		bench_require(bench_use(scene.control, A, &row), "no " A);
		for (uint32_t i = 0; i <= ROUNDS; i++) {
			sl_ns span;

			(void)do_timed(&scene.a, BENCH_DO_WRITE, 100 + i, 0);
			span = bench_move(scene.control, A, (row.gpu + i + 1) % 2);
			/* The first makes the host's memory, and starts the helper. */
			if (i)
				bench_samples_add(times, span);
		}
		(void)snprintf(variant, sizeof(variant), "%u MiB",
			(unsigned)(scene.bytes / SL_MIB));
		bench_emit_against(BENCH_MOVE_OVER, variant,
			ratio(bench_quantile(times, 500), scene.out_ns + scene.in_ns),
			BENCH_SWAP_PLAIN, BENCH_COMPUTED);
		free(times);
		bench_worker_stop(&scene.a);
		(void)close(scene.control);
	}
	return 0;
}
