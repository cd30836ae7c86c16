/*
 * hash - how fast the GPU hashes its memory
 *
 * The kernel of libsluice.so, loaded as the library does it, over one chunk, in a process
 * without Sluice. On a software GPU this is one core of the processor.
 */
#include "bench.h"

#include "driver.h"

#include "runtime/hash/math.h"

#include <math.h>
#include <stdlib.h>

#define ROUNDS 5

extern const unsigned char sl_hash_ptx_image[] __attribute__((visibility("hidden")));
extern const unsigned char sl_hash_host_image[] __attribute__((visibility("hidden")));

static void must(CUresult r, const char *what)
{
	bench_require(r == CUDA_SUCCESS, "%s: %d", what, (int)r);
}
#define MUST(name, ...) must(bench_cu.name(__VA_ARGS__), #name)

static sl_ns hash_once(
	CUfunction function, CUdeviceptr jobs, CUdeviceptr at, uint64_t bytes)
{
	struct sl_hash_job job = {.address = at};
	unsigned long long key[4] = {3, 5, 7, 11};
	unsigned int count = 1;
	void *params[] = {&key[0], &key[1], &key[2], &key[3], &count};
	sl_ns begin;

	MUST(cuMemcpyHtoD_v2, jobs, &job, sizeof(job));
	MUST(cuCtxSynchronize);
	begin = sl_clock_now();
	MUST(cuLaunchKernel, function, (unsigned int)(bytes / SL_HASH_TILE_BYTES), 1, 1,
		SL_HASH_THREADS, 1, 1, 0, NULL, params, NULL);
	MUST(cuCtxSynchronize);
	return sl_clock_now() - begin;
}

int bench_part_hash(int argc, char **argv)
{
	const char *text = getenv("SL_BENCH_SWAP_BYTES");
	uint64_t bytes = text ? strtoull(text, NULL, 10) : 256 * SL_MIB;
	CUfunction function;
	CUdeviceptr jobs, at;
	CUmodule module;
	size_t size;

	bench_require(bench_driver_context() == 0, "no GPU");
	/* A driver without its PTX compiler takes neither: then libsluice hashes nothing here. */
	if (bench_cu.cuModuleLoadData(&module, sl_hash_ptx_image) != CUDA_SUCCESS &&
		bench_cu.cuModuleLoadData(&module, sl_hash_host_image) != CUDA_SUCCESS) {
		bench_emit(BENCH_HASH_RATE, "data", NAN);
		return 0;
	}
	MUST(cuModuleGetFunction, &function, module, "sl_hash_tiles");
	MUST(cuModuleGetGlobal_v2, &jobs, &size, module, "sl_hash_jobs");
	MUST(cuMemAlloc_v2, &at, bytes);
	for (unsigned int word = 0; word < 2; word++) {
		struct bench_samples *samples = bench_samples_new();

		MUST(cuMemsetD32_v2, at, word, bytes / 4);
		(void)hash_once(function, jobs, at, bytes);
		for (int i = 0; i < ROUNDS; i++)
			bench_samples_add(samples, hash_once(function, jobs, at, bytes));
		bench_emit(BENCH_HASH_RATE, word ? "data" : "zeros",
			(double)bytes / (double)bench_quantile(samples, 500));
		free(samples);
	}
	return 0;
}
