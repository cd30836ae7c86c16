/*
 * hostmodule - the dialect in which one kernel source serves real GPUs and the software GPU
 *
 * Built with NVRTC or nvcc the macros below become CUDA C. Built with a C compiler as a shared
 * object (`cc -O2 -shared -fPIC -I src k.c -o k.so`) they become a *host module*: ordinary
 * functions and one table, which the software GPU takes wherever the driver takes an image
 * (cuModuleLoad, cuModuleLoadData, cuLibraryLoadData). A program that carries both images tries the
 * host module first; a real driver refuses it (it is an ELF file of another machine).
 *
 *	#include "base/hostmodule.h"
 *
 *	SL_KERNEL(scale, float *, data, float, factor, uint64_t, count)
 *	{
 *		SL_FOR_EACH_THREAD {
 *			uint64_t i = SL_GLOBAL_X;
 *			if (i >= count)
 *				continue;
 *			data[i] *= factor;
 *		}
 *	}
 *
 * Rules. Up to eight parameters, each a type and a name; types are plain data of at most 64 bytes
 * or pointers. What the threads of a block do stands inside SL_FOR_EACH_THREAD; `continue` ends one
 * thread. On the CPU the body runs once per block, and its threads one after another. So a barrier
 * is the end of one SL_FOR_EACH_THREAD and the start of the next: write SL_BARRIER() between them,
 * never inside. Blocks run one after another; a kernel that waits for another block hangs, as it
 * may on a GPU. SL_SHARED and plain variables outside SL_FOR_EACH_THREAD belong to the block.
 *
 * A host module may use libc's memory and mathematics functions, never threads, locks or files: a
 * bad address leaves the kernel by a jump, and the companion process lives on.
 */
#ifndef SL_BASE_HOSTMODULE_H
#define SL_BASE_HOSTMODULE_H

/* Counts the macro's arguments, 0 to 8 pairs. */
#define SL_K_PICK(_0, _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, \
	_16, n, ...)                                                                    \
	n
#define SL_K_PAIRS(...) \
	SL_K_PICK(0, ##__VA_ARGS__, 8, x, 7, x, 6, x, 5, x, 4, x, 3, x, 2, x, 1, x, 0)
#define SL_K_CAT_(a, b) a##b
#define SL_K_CAT(a, b)  SL_K_CAT_(a, b)

#ifdef __CUDACC__ /* ------------------------------------------------ a real GPU */

#ifdef __CUDACC_RTC__
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int int32_t;
typedef long long int64_t;
#else
#include <stdint.h>
#endif

#define SL_K_DECL0()          void
#define SL_K_DECL1(t, a)      t a
#define SL_K_DECL2(t, a, ...) t a, SL_K_DECL1(__VA_ARGS__)
#define SL_K_DECL3(t, a, ...) t a, SL_K_DECL2(__VA_ARGS__)
#define SL_K_DECL4(t, a, ...) t a, SL_K_DECL3(__VA_ARGS__)
#define SL_K_DECL5(t, a, ...) t a, SL_K_DECL4(__VA_ARGS__)
#define SL_K_DECL6(t, a, ...) t a, SL_K_DECL5(__VA_ARGS__)
#define SL_K_DECL7(t, a, ...) t a, SL_K_DECL6(__VA_ARGS__)
#define SL_K_DECL8(t, a, ...) t a, SL_K_DECL7(__VA_ARGS__)

#define SL_KERNEL(name, ...)             \
	extern "C" __global__ void name( \
		SL_K_CAT(SL_K_DECL, SL_K_PAIRS(__VA_ARGS__))(__VA_ARGS__))
/* A helper that kernels call. */
#define SL_DEVICE static __device__
/* A variable of the module, zero at load, found by cuModuleGetGlobal; kernels write
 * SL_VAR(name). */
#define SL_GLOBAL(type, name) \
	extern "C" {          \
	__device__ type name; \
	}                     \
	static_assert(1, "")
#define SL_GLOBAL_ARRAY(type, name, length) \
	extern "C" {                        \
	__device__ type name[length];       \
	}                                   \
	static_assert(1, "")
#define SL_VAR(name)                  name
#define SL_SHARED(type, name, length) __shared__ type name[length]
#define SL_FOR_EACH_THREAD            for (int sl_once = 1; sl_once; sl_once = 0)
#define SL_BARRIER()                  __syncthreads()
#define SL_THREAD_X                   threadIdx.x
#define SL_THREAD_Y                   threadIdx.y
#define SL_THREAD_Z                   threadIdx.z
#define SL_BLOCK_X                    blockIdx.x
#define SL_BLOCK_Y                    blockIdx.y
#define SL_BLOCK_Z                    blockIdx.z
#define SL_BLOCK_DIM_X                blockDim.x
#define SL_BLOCK_DIM_Y                blockDim.y
#define SL_BLOCK_DIM_Z                blockDim.z
#define SL_GRID_DIM_X                 gridDim.x
#define SL_GRID_DIM_Y                 gridDim.y
#define SL_GRID_DIM_Z                 gridDim.z
/* Relaxed atomics; add gives the old value. Integers of 4 or 8 bytes without sign. */
#define SL_ATOMIC_ADD(ptr, value) atomicAdd(ptr, value)
/* A load or store that the compiler may not drop or merge, for words that other threads change. */
#define SL_VOLATILE(type, ptr) (*(volatile type *)(ptr))

#else /* -------------------------------------------------------------- the software GPU */

#include <stddef.h>
#include <stdint.h>

#define SL_HOSTMODULE_ABI    2u
#define SL_HOSTMODULE_PARAMS 64 /* for other compilers; SL_KERNEL takes 8 */
/* The symbol by which the companion finds the table. */
#define SL_HOSTMODULE_SYMBOL "sl_host_module"

/* One block of a launch. Indices and sizes are in the order x, y, z. */
struct sl_kernel_ctx {
	uint32_t block[3], block_dim[3], grid_dim[3];
	uint32_t shared_bytes; /* dynamic shared memory of the launch */
	void *shared; /* shared_bytes of it, behind the kernel's own; contents undefined */
	void *scratch; /* as much as the entry asks for; for one block at a time */
};

struct sl_kernel_entry {
	const char *name;
	void (*run)(const struct sl_kernel_ctx *ctx, void **params); /* runs one block */
	uint32_t param_count;
	uint32_t param_bytes[SL_HOSTMODULE_PARAMS];
	/* The fields below may be 0. Alignment 0: by the sizes of the parameters. */
	uint16_t param_align[SL_HOSTMODULE_PARAMS];
	uint32_t shared_bytes; /* in front of ctx->shared; a multiple of 16 */
	uint32_t local_bytes;  /* per thread; only reported, as are the next three */
	uint32_t max_threads, registers;
	uint32_t const_bytes;
	uint64_t block_bytes,
		thread_bytes; /* scratch memory: per block, and per thread */
};

struct sl_global_entry {
	const char *name;
	void **where; /* the companion stores the variable's device address there */
	uint64_t bytes;
	void (*fill)(void); /* NULL, or called once all variables have their addresses */
};

/* Entries are arrays of pointers, so padding by the linker between objects does not matter. */
struct sl_host_module {
	uint32_t abi;
	const struct sl_kernel_entry *const *kernels, *const *kernels_end;
	const struct sl_global_entry *const *globals, *const *globals_end;
};

extern const struct sl_kernel_entry *const __start_sl_kernels[]
	__attribute__((weak, visibility("hidden")));
extern const struct sl_kernel_entry *const __stop_sl_kernels[]
	__attribute__((weak, visibility("hidden")));
extern const struct sl_global_entry *const __start_sl_globals[]
	__attribute__((weak, visibility("hidden")));
extern const struct sl_global_entry *const __stop_sl_globals[]
	__attribute__((weak, visibility("hidden")));

__attribute__((
	weak, visibility("default"), used)) struct sl_host_module sl_host_module = {
	SL_HOSTMODULE_ABI,
	__start_sl_kernels,
	__stop_sl_kernels,
	__start_sl_globals,
	__stop_sl_globals,
};

struct sl_kernel_thread {
	uint32_t x, y, z;
};

/* Steps to the next thread of the block, x fastest. */
static inline void sl_kernel_next(
	struct sl_kernel_thread *t, const struct sl_kernel_ctx *c)
{
	if (++t->x < c->block_dim[0])
		return;
	t->x = 0;
	if (++t->y < c->block_dim[1])
		return;
	t->y = 0;
	t->z++;
}

#define SL_K_DECL0()
#define SL_K_DECL1(t, a)      , t a
#define SL_K_DECL2(t, a, ...) , t a SL_K_DECL1(__VA_ARGS__)
#define SL_K_DECL3(t, a, ...) , t a SL_K_DECL2(__VA_ARGS__)
#define SL_K_DECL4(t, a, ...) , t a SL_K_DECL3(__VA_ARGS__)
#define SL_K_DECL5(t, a, ...) , t a SL_K_DECL4(__VA_ARGS__)
#define SL_K_DECL6(t, a, ...) , t a SL_K_DECL5(__VA_ARGS__)
#define SL_K_DECL7(t, a, ...) , t a SL_K_DECL6(__VA_ARGS__)
#define SL_K_DECL8(t, a, ...) , t a SL_K_DECL7(__VA_ARGS__)

/* Parameters are read by position, so the order of evaluation does not matter. */
#define SL_K_PASS0()
#define SL_K_ARG(t, i)        , *(t *)sl_params[i]
#define SL_K_PASS1(t, a)      SL_K_ARG(t, sl_count - 1)
#define SL_K_PASS2(t, a, ...) SL_K_ARG(t, sl_count - 2) SL_K_PASS1(__VA_ARGS__)
#define SL_K_PASS3(t, a, ...) SL_K_ARG(t, sl_count - 3) SL_K_PASS2(__VA_ARGS__)
#define SL_K_PASS4(t, a, ...) SL_K_ARG(t, sl_count - 4) SL_K_PASS3(__VA_ARGS__)
#define SL_K_PASS5(t, a, ...) SL_K_ARG(t, sl_count - 5) SL_K_PASS4(__VA_ARGS__)
#define SL_K_PASS6(t, a, ...) SL_K_ARG(t, sl_count - 6) SL_K_PASS5(__VA_ARGS__)
#define SL_K_PASS7(t, a, ...) SL_K_ARG(t, sl_count - 7) SL_K_PASS6(__VA_ARGS__)
#define SL_K_PASS8(t, a, ...) SL_K_ARG(t, sl_count - 8) SL_K_PASS7(__VA_ARGS__)

#define SL_K_SIZE0()
#define SL_K_SIZE1(t, a)      sizeof(t)
#define SL_K_SIZE2(t, a, ...) sizeof(t), SL_K_SIZE1(__VA_ARGS__)
#define SL_K_SIZE3(t, a, ...) sizeof(t), SL_K_SIZE2(__VA_ARGS__)
#define SL_K_SIZE4(t, a, ...) sizeof(t), SL_K_SIZE3(__VA_ARGS__)
#define SL_K_SIZE5(t, a, ...) sizeof(t), SL_K_SIZE4(__VA_ARGS__)
#define SL_K_SIZE6(t, a, ...) sizeof(t), SL_K_SIZE5(__VA_ARGS__)
#define SL_K_SIZE7(t, a, ...) sizeof(t), SL_K_SIZE6(__VA_ARGS__)
#define SL_K_SIZE8(t, a, ...) sizeof(t), SL_K_SIZE7(__VA_ARGS__)

#define SL_KERNEL(name, ...) SL_K_DEFINE(name, SL_K_PAIRS(__VA_ARGS__), ##__VA_ARGS__)
#define SL_K_DEFINE(name, n, ...)                                                       \
	static void sl_body_##name(const struct sl_kernel_ctx *sl_ctx                   \
		__attribute__((unused)) SL_K_CAT(SL_K_DECL, n)(__VA_ARGS__));           \
	static void sl_run_##name(const struct sl_kernel_ctx *sl_ctx, void **sl_params) \
	{                                                                               \
		enum { sl_count = n };                                                  \
		(void)sl_params;                                                        \
		sl_body_##name(sl_ctx SL_K_CAT(SL_K_PASS, n)(__VA_ARGS__));             \
	}                                                                               \
	static const struct sl_kernel_entry sl_entry_##name = {                         \
		#name, sl_run_##name, n, {SL_K_CAT(SL_K_SIZE, n)(__VA_ARGS__)}};        \
	static const struct sl_kernel_entry *const sl_kernel_##name                     \
		__attribute__((section("sl_kernels"), used)) = &sl_entry_##name;        \
	static void sl_body_##name(const struct sl_kernel_ctx *sl_ctx                   \
		__attribute__((unused)) SL_K_CAT(SL_K_DECL, n)(__VA_ARGS__))

#define SL_DEVICE                           static inline
#define SL_GLOBAL(type, name)               SL_K_GLOBAL(type, name, )
#define SL_GLOBAL_ARRAY(type, name, length) SL_K_GLOBAL(type, name, [length])
#define SL_K_GLOBAL(type, name, dim)                                     \
	static type(*sl_var_##name) dim;                                 \
	static const struct sl_global_entry sl_global_entry_##name = {   \
		#name, (void **)&sl_var_##name, sizeof(*sl_var_##name)}; \
	static const struct sl_global_entry *const sl_global_##name      \
		__attribute__((section("sl_globals"), used)) = &sl_global_entry_##name
#define SL_VAR(name)                  (*sl_var_##name)
#define SL_SHARED(type, name, length) type name[length]
#define SL_FOR_EACH_THREAD                                                            \
	for (struct sl_kernel_thread sl_t = {0, 0, 0}; sl_t.z < sl_ctx->block_dim[2]; \
		sl_kernel_next(&sl_t, sl_ctx))
#define SL_BARRIER()              __asm__ volatile("" ::: "memory")
#define SL_THREAD_X               sl_t.x
#define SL_THREAD_Y               sl_t.y
#define SL_THREAD_Z               sl_t.z
#define SL_BLOCK_X                sl_ctx->block[0]
#define SL_BLOCK_Y                sl_ctx->block[1]
#define SL_BLOCK_Z                sl_ctx->block[2]
#define SL_BLOCK_DIM_X            sl_ctx->block_dim[0]
#define SL_BLOCK_DIM_Y            sl_ctx->block_dim[1]
#define SL_BLOCK_DIM_Z            sl_ctx->block_dim[2]
#define SL_GRID_DIM_X             sl_ctx->grid_dim[0]
#define SL_GRID_DIM_Y             sl_ctx->grid_dim[1]
#define SL_GRID_DIM_Z             sl_ctx->grid_dim[2]
#define SL_ATOMIC_ADD(ptr, value) __atomic_fetch_add((ptr), (value), __ATOMIC_RELAXED)
#define SL_VOLATILE(type, ptr)    (*(volatile type *)(ptr))

#endif

/* Number of this thread in x over the whole grid, 64 bits wide. */
#define SL_GLOBAL_X ((uint64_t)SL_BLOCK_X * SL_BLOCK_DIM_X + SL_THREAD_X)
#define SL_GLOBAL_Y ((uint64_t)SL_BLOCK_Y * SL_BLOCK_DIM_Y + SL_THREAD_Y)

#endif
