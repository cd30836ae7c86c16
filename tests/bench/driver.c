/*
 * driver - the table of calls, filled from the list
 */
#include "driver.h"

#include <dlfcn.h>
#include <stddef.h>

struct bench_driver bench_cu;

const char *bench_driver_load(void)
{
	bench_cu.library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!bench_cu.library)
		return dlerror();
#define BENCH_CALL(name)                                                           \
	bench_cu.name = (__typeof__(bench_cu.name))dlsym(bench_cu.library, #name); \
	if (!bench_cu.name)                                                        \
		return #name " is missing";
	BENCH_DRIVER_CALLS(BENCH_CALL)
#undef BENCH_CALL
#define BENCH_CALL(name) \
	bench_cu.name = (__typeof__(bench_cu.name))dlsym(bench_cu.library, #name);
	BENCH_DRIVER_COPIES(BENCH_CALL)
#undef BENCH_CALL
	return NULL;
}

int bench_driver_context(void)
{
	CUcontext ctx = NULL;
	CUdevice dev = 0;
	CUresult r;

	if (bench_driver_load())
		return -1;
	r = bench_cu.cuInit(0);
	if (!r)
		r = bench_cu.cuDeviceGet(&dev, 0);
	if (!r)
		r = bench_cu.cuDevicePrimaryCtxRetain(&ctx, dev);
	if (!r)
		r = bench_cu.cuCtxSetCurrent(ctx);
	return (int)r;
}
