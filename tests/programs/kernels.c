/*
 * kernels - the device code of all test programs, in the dialect of base/hostmodule.h
 *
 * One text, two builds: a C compiler makes a host module of it for the software GPU, NVRTC reads it
 * as CUDA C. Real GPUs run kernels.ptx, the same kernels written out by hand, so that no program
 * needs a compiler of NVIDIA's; keep both in step. Every program compares what it gets with the
 * same arithmetic on the CPU (prog_mix), so on either kind of GPU a difference shows.
 *
 * Data is never random: word i under seed s is mix(s, i), so any answer can be worked out on the
 * CPU without keeping a copy. `stride` spaces the words that are touched; with 1,024 of them one
 * word per page is written, which is enough to know whose page it is.
 */
#include "base/hostmodule.h"

#ifndef __CUDACC__
#include <time.h>
#endif

SL_GLOBAL_ARRAY(uint32_t, prog_global, 4);

SL_DEVICE uint32_t mix(uint32_t seed, uint64_t i)
{
	uint32_t x = (uint32_t)i * 0x9E3779B1u + seed;

	x ^= x >> 16;
	x *= 0x85EBCA6Bu;
	return x ^ (x >> 13);
}

/* Nanoseconds of any clock that runs. */
SL_DEVICE uint64_t now_ns(void)
{
#ifdef __CUDACC__
	uint64_t now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
#else
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

SL_KERNEL(prog_fill, uint32_t *, out, uint64_t, count, uint64_t, stride, uint32_t, seed)
{
	SL_FOR_EACH_THREAD
	{
		uint64_t i = SL_GLOBAL_X;

		if (i >= count)
			continue;
		out[i * stride] = mix(seed, i);
	}
}

/* Adds to *bad the number of words that are not what prog_fill left there. */
SL_KERNEL(prog_check, const uint32_t *, in, uint64_t, count, uint64_t, stride, uint32_t,
	seed, uint32_t *, bad)
{
	SL_FOR_EACH_THREAD
	{
		uint64_t i = SL_GLOBAL_X;

		if (i >= count)
			continue;
		if (in[i * stride] != mix(seed, i))
			SL_ATOMIC_ADD(bad, 1u);
	}
}

/* First layer of the model: activation k is the input's word k against a weight. */
SL_KERNEL(prog_activate, uint32_t *, act, uint64_t, count, uint64_t, stride, uint32_t,
	seed, const uint32_t *, weights, uint64_t, weight_count, uint64_t, weight_stride)
{
	SL_FOR_EACH_THREAD
	{
		uint64_t k = SL_GLOBAL_X;

		if (k >= count)
			continue;
		act[k * stride] =
			mix(seed, k) ^ weights[(k % weight_count) * weight_stride];
	}
}

/* Second layer: one sum per item of the batch. */
SL_KERNEL(prog_reduce, const uint32_t *, act, uint64_t, per_item, uint64_t, stride,
	uint64_t, items, uint32_t *, out)
{
	SL_FOR_EACH_THREAD
	{
		uint64_t item = SL_GLOBAL_X;
		uint32_t sum = 0;

		if (item >= items)
			continue;
		for (uint64_t j = 0; j < per_item; j++)
			sum += act[(item * per_item + j) * stride];
		out[item] = sum;
	}
}

/* A software GPU is busy without a CPU, but for the last moment, which sleep would miss. */
SL_DEVICE void rest(uint64_t ns)
{
#ifndef __CUDACC__
	struct timespec span = {.tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u)};

	if (ns > 200000)
		nanosleep(&span, NULL);
#else
	(void)ns;
#endif
}

/* Keeps the GPU busy for about ns; launch with one thread. */
SL_KERNEL(prog_spin, uint64_t, ns)
{
	SL_FOR_EACH_THREAD
	{
		uint64_t start = now_ns();

		rest(ns > 100000 ? ns - 100000 : 0);
		while (now_ns() - start < ns)
			;
	}
}

/* One word to one address, good or bad. */
SL_KERNEL(prog_poke, uint32_t *, at, uint32_t, value)
{
	SL_FOR_EACH_THREAD
	{
		SL_VOLATILE(uint32_t, at) = value;
	}
}

/* Ends only when another process writes value there. */
SL_KERNEL(prog_wait, uint32_t *, flag, uint32_t, value)
{
	SL_FOR_EACH_THREAD
	{
		while (SL_VOLATILE(uint32_t, flag) != value)
			;
	}
}

/* Shows order: *word = *word * factor + add. */
SL_KERNEL(prog_step, uint32_t *, word, uint32_t, factor, uint32_t, add)
{
	SL_FOR_EACH_THREAD
	{
		*word = *word * factor + add;
	}
}

SL_KERNEL(prog_set_global, uint32_t, value)
{
	SL_FOR_EACH_THREAD
	{
		SL_VAR(prog_global)[0] = value;
	}
}

SL_KERNEL(prog_empty)
{
	SL_FOR_EACH_THREAD
	{
	}
}
