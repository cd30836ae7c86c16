/*
 * driver - the calls of the CUDA driver that the bench makes, looked up at run time
 *
 * dlopen and dlsym find them, as in frameworks. So the same code runs with the library that Sluice
 * preloads and without it. One instance per process.
 */
#ifndef SL_TESTS_BENCH_DRIVER_H
#define SL_TESTS_BENCH_DRIVER_H

#include "base/cuda_abi.h"

#define BENCH_DRIVER_CALLS(X)       \
	X(cuInit)                   \
	X(cuDeviceGet)              \
	X(cuDevicePrimaryCtxRetain) \
	X(cuCtxSetCurrent)          \
	X(cuCtxSynchronize)         \
	X(cuMemGetInfo_v2)          \
	X(cuMemAlloc_v2)            \
	X(cuMemFree_v2)             \
	X(cuMemAddressReserve)      \
	X(cuMemsetD8Async)          \
	X(cuMemcpyDtoDAsync_v2)     \
	X(cuLaunchKernel)

/* What only a driver with memory has; NULL on the stub. */
#define BENCH_DRIVER_COPIES(X)  \
	X(cuMemsetD32_v2)       \
	X(cuMemcpyDtoH_v2)      \
	X(cuMemcpyHtoD_v2)      \
	X(cuMemcpyDtoHAsync_v2) \
	X(cuMemcpyHtoDAsync_v2) \
	X(cuMemHostAlloc)       \
	X(cuMemFreeHost)        \
	X(cuMemAllocAsync)      \
	X(cuMemFreeAsync)       \
	X(cuStreamCreate)       \
	X(cuStreamSynchronize)  \
	X(cuModuleLoadData)     \
	X(cuModuleGetFunction)  \
	X(cuModuleGetGlobal_v2)

struct bench_driver {
#define BENCH_CALL(name) __typeof__(name) *name;
	BENCH_DRIVER_CALLS(BENCH_CALL)
	BENCH_DRIVER_COPIES(BENCH_CALL)
#undef BENCH_CALL
	void *library;
};

extern struct bench_driver bench_cu;

/* Loads libcuda.so.1; NULL or the reason. */
const char *bench_driver_load(void);
/* Loads it, makes device 0's primary context and sets it current. 0 or a CUresult; -1 where the
 * library is missing. */
int bench_driver_context(void);

#endif
