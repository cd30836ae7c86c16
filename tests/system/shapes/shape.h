/*
 * shape - one use of the GPU, the same for every road to the driver
 *
 * A road is a way to find functions. The reported memory must be that of the limit, an allocation
 * above the limit must fail, and memory may be held for a while, for the daemon to see. This file
 * is a header without a .c, since plugins include it, too, and may live in a namespace of their
 * own. So it uses only the C library, and write(2) for output.
 */
#ifndef SL_TESTS_SHAPE_H
#define SL_TESTS_SHAPE_H

#include "base/cuda_abi.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef void *(*shape_finder)(const char *symbol);

/* What to do. total_bytes is what must be told; 0: it is not looked at. */
struct shape_order {
	const char *name;
	uint64_t total_bytes, hold_bytes, hold_ms;
};

/* A plugin exports this as "plugin_use". */
typedef int (*shape_plugin)(const struct shape_order *order);

/* clang-format off */
#define SHAPE_FUNCTIONS(F) \
	F(cuInit) \
	F(cuDeviceGet) \
	F(cuDevicePrimaryCtxRetain) \
	F(cuCtxSetCurrent) \
	F(cuMemGetInfo_v2) \
	F(cuMemAlloc_v2) \
	F(cuMemFree_v2) \
	F(cuMemsetD8_v2) \
	F(cuMemcpyDtoH_v2) \
	F(cuDevicePrimaryCtxRelease_v2)
/* clang-format on */

struct shape_functions {
#define F(symbol) __typeof__(&symbol) symbol;
	SHAPE_FUNCTIONS(F)
#undef F
};

static inline int shape_find(
	const char *name, shape_finder find, struct shape_functions *out)
{
	int missing = 0;

#define F(symbol)                                                                     \
	*(void **)&out->symbol = find(#symbol);                                       \
	if (!out->symbol) {                                                           \
		dprintf(1, "{\"shape\":\"%s\",\"missing\":\"%s\"}\n", name, #symbol); \
		missing = 1;                                                          \
	}
	SHAPE_FUNCTIONS(F)
#undef F
	return !missing;
}

#define SHAPE_MUST(call)                                                                \
	do {                                                                            \
		CUresult shape_result_ = call;                                          \
		if (shape_result_ != CUDA_SUCCESS) {                                    \
			dprintf(1, "{\"shape\":\"%s\",\"call\":\"%s\",\"error\":%d}\n", \
				o->name, #call, (int)shape_result_);                    \
			return 0;                                                       \
		}                                                                       \
	} while (0)

static inline void shape_sleep(uint64_t ms)
{
	struct timespec left = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

	while (nanosleep(&left, &left) != 0)
		;
}

/* Memory that the driver gave answers: a byte is set and read back. */
static inline int shape_touch(
	const struct shape_functions *f, const struct shape_order *o, uint64_t bytes)
{
	unsigned char seen = 0;
	CUdeviceptr at = 0;

	SHAPE_MUST(f->cuMemAlloc_v2(&at, bytes));
	SHAPE_MUST(f->cuMemsetD8_v2(at, 0x5a, bytes));
	SHAPE_MUST(f->cuMemcpyDtoH_v2(&seen, at + bytes - 1, 1));
	if (o->hold_ms) {
		dprintf(1, "{\"shape\":\"%s\",\"event\":\"held\"}\n", o->name);
		shape_sleep(o->hold_ms);
	}
	SHAPE_MUST(f->cuMemFree_v2(at));
	return seen == 0x5a;
}

/* 1 if all is as ordered. Prints one line either way. */
static inline int shape_use(shape_finder find, const struct shape_order *o)
{
	struct shape_functions f = {0};
	size_t free_bytes = 0, total = 0;
	CUcontext context = NULL;
	CUdeviceptr over_at = 0;
	CUresult over;
	CUdevice device = 0;
	int good;

	if (!shape_find(o->name, find, &f))
		return 0;
	SHAPE_MUST(f.cuInit(0));
	SHAPE_MUST(f.cuDeviceGet(&device, 0));
	SHAPE_MUST(f.cuDevicePrimaryCtxRetain(&context, device));
	SHAPE_MUST(f.cuCtxSetCurrent(context));
	SHAPE_MUST(f.cuMemGetInfo_v2(&free_bytes, &total));
	over = o->total_bytes ? f.cuMemAlloc_v2(&over_at, o->total_bytes + (16 << 20))
			      : CUDA_ERROR_OUT_OF_MEMORY;
	good = over == CUDA_ERROR_OUT_OF_MEMORY && free_bytes <= total &&
	       (!o->total_bytes || total == o->total_bytes);
	good &= shape_touch(&f, o, o->hold_bytes ? o->hold_bytes : 1 << 20);
	SHAPE_MUST(f.cuCtxSetCurrent(NULL));
	SHAPE_MUST(f.cuDevicePrimaryCtxRelease_v2(device));
	dprintf(1, "{\"shape\":\"%s\",\"total_bytes\":%zu,\"over\":%d,\"good\":%d}\n",
		o->name, total, (int)over, good);
	return good;
}

#endif
