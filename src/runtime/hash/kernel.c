/*
 * kernel - the hash of math.h, of many chunks in one launch
 *
 * One source, two builds, both embedded in libsluice.so (embed.S): kernel.ptx for real GPUs, and a
 * host module for the software GPU. clang makes the PTX (tools/hash-ptx); it is kept in the tree so
 * that a build needs no NVPTX back-end.
 *
 * A block takes one tile of 256 lines, a thread four columns of it. Neighbours read 16 bytes side
 * by side. From the last line to the first a thread multiplies only by the key. At the end of the
 * tile it multiplies its sum by two powers of the key, for the position of its columns and of the
 * tile.
 *
 * The list is a variable of the module, so no allocation is needed: the host copies jobs there,
 * launches a block per tile, and copies them back.
 */
#if defined(__clang__) && defined(__CUDA__) /* only clang, without a toolkit's headers */
#define __CUDACC__
#define __CUDACC_RTC__
#define __global__  __attribute__((global))
#define __device__  __attribute__((device))
#define __shared__  __attribute__((shared))
#define SL_TID      ((unsigned int)__nvvm_read_ptx_sreg_tid_x())
#define SL_BID      ((unsigned int)__nvvm_read_ptx_sreg_ctaid_x())
#define SL_HASH_FN  static inline __device__
#define SL_UNROLL_4 _Pragma("unroll 4")
#include "base/hostmodule.h"
#undef SL_THREAD_X
#undef SL_BLOCK_X
#undef SL_ATOMIC_ADD
#define SL_THREAD_X               SL_TID
#define SL_BLOCK_X                SL_BID
#define SL_ATOMIC_ADD(ptr, value) __atomic_fetch_add((ptr), (value), __ATOMIC_RELAXED)
#else
#define SL_UNROLL_4
#include "base/hostmodule.h"
#endif

#include "runtime/hash/math.h"

SL_GLOBAL_ARRAY(struct sl_hash_job, sl_hash_jobs, SL_HASH_JOBS);

/* The job that contains this tile: the last one that begins at or before it. */
SL_DEVICE struct sl_hash_job *find_job(
	struct sl_hash_job *jobs, uint32_t count, uint64_t tile)
{
	uint32_t low = 0, high = count;

	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (jobs[middle].tile <= tile)
			low = middle;
		else
			high = middle;
	}
	return &jobs[low];
}

SL_DEVICE void add_sum(struct sl_hash_job *job, uint32_t half, uint64_t sum)
{
	SL_ATOMIC_ADD(&job->bottom[half], sum & 0xffffffffu);
	SL_ATOMIC_ADD(&job->top[half], sum >> 32);
}

#if defined(__CUDACC__) || defined(SL_HASH_AS_ON_GPU)
/* Adds the thread's four columns of the tile to the sums. */
SL_DEVICE void sum_columns(const struct sl_hash_quad *at, uint32_t thread,
	const struct sl_hash_powers k[2], uint64_t *low, uint64_t *high, uint32_t *bits)
{
	uint64_t sum0 = 0, sum1 = 0;
	uint32_t seen = 0;

	at += thread;
	SL_UNROLL_4
	for (uint32_t line = SL_HASH_TILE_LINES; line-- > 0;) {
		struct sl_hash_quad q = at[line * SL_HASH_THREADS];

		seen |= q.word[0] | q.word[1] | q.word[2] | q.word[3];
		sum0 = sl_hash_step(sum0, k[0].b, &k[0], &q);
		sum1 = sl_hash_step(sum1, k[1].b, &k[1], &q);
	}
	*bits = seen;
	*low = sl_hash_times(sum0, sl_hash_power(k[0].a, 4 * thread));
	*high = sl_hash_times(sum1, sl_hash_power(k[1].a, 4 * thread));
}
#else
/* One core does the work of all threads: the first adds the tile line by line, the others add
 * nothing. The test builds this file both ways. */
SL_DEVICE void sum_columns(const struct sl_hash_quad *at, uint32_t thread,
	const struct sl_hash_powers k[2], uint64_t *low, uint64_t *high, uint32_t *bits)
{
	const unsigned int *words = (const unsigned int *)at;
	unsigned long long by[2] = {1, 1}, sum[2] = {0, 0}, line[2];
	struct sl_hash_columns columns;

	*bits = 0;
	if (!thread) {
		sl_hash_columns_init(&columns, k, SL_HASH_LINE_WORDS);
		for (uint32_t i = 0; i < SL_HASH_TILE_LINES; i++) {
			uint32_t seen =
				sl_hash_line(&columns, words, SL_HASH_LINE_WORDS, line);

			for (int half = 0; half < 2; half++) {
				if (seen)
					sum[half] = sl_hash_fold(
						(sl_hash_wide)line[half] * by[half] +
						sum[half]);
				by[half] = sl_hash_times(by[half], k[half].b);
			}
			*bits |= seen;
			words += SL_HASH_LINE_WORDS;
		}
	}
	*low = sum[0];
	*high = sum[1];
}
#endif

/* A launch with count 0 makes a driver load everything it needs. */
SL_KERNEL(sl_hash_tiles, uint64_t, a0, uint64_t, b0, uint64_t, a1, uint64_t, b1, uint32_t,
	count)
{
	SL_SHARED(uint64_t, low, SL_HASH_THREADS);
	SL_SHARED(uint64_t, high, SL_HASH_THREADS);
	SL_SHARED(uint32_t, bits, SL_HASH_THREADS);
	const struct sl_hash_powers k[2] = {
		sl_hash_powers_of(a0, b0), sl_hash_powers_of(a1, b1)};
	struct sl_hash_job *job = find_job(SL_VAR(sl_hash_jobs), count, SL_BLOCK_X);
	uint64_t tile = SL_BLOCK_X - job->tile;

	if (!count)
		return;
	SL_FOR_EACH_THREAD
	{
		uint32_t i = SL_THREAD_X;

		sum_columns((const struct sl_hash_quad *)(job->address +
							  tile * SL_HASH_TILE_BYTES),
			i, k, &low[i], &high[i], &bits[i]);
	}
	SL_BARRIER();
	for (uint32_t half = SL_HASH_THREADS / 2; half; half /= 2) {
		SL_FOR_EACH_THREAD
		{
			uint32_t i = SL_THREAD_X;

			if (i >= half)
				continue;
			bits[i] |= bits[i + half];
			low[i] = sl_hash_fold((sl_hash_wide)low[i] + low[i + half]);
			high[i] = sl_hash_fold((sl_hash_wide)high[i] + high[i + half]);
		}
		SL_BARRIER();
	}
	SL_FOR_EACH_THREAD
	{
		uint64_t lines = tile * SL_HASH_TILE_LINES;

		if (SL_THREAD_X)
			continue;
		add_sum(job, 0, sl_hash_times(low[0], sl_hash_power(k[0].b, lines)));
		add_sum(job, 1, sl_hash_times(high[0], sl_hash_power(k[1].b, lines)));
		if (bits[0])
			SL_ATOMIC_ADD(&job->bits, 1u);
	}
}
