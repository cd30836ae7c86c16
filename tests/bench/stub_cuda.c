/*
 * stub_cuda - a libcuda.so.1 whose submissions do nothing
 *
 * A hook that adds 5 ns cannot be seen beside a real launch of microseconds. So here the called
 * function is one return instruction, and only Sluice's time remains. Otherwise the stub is as much
 * of a driver as a client needs to join. It has one device with the identity that BENCH_GPU_UUID
 * names (so that the daemon finds its own GPU), one context, and memory that is only addresses and
 * a count.
 *
 * Each submission has a second name, "bench_bare_...", which is no name of CUDA: the same function
 * without a hook, in the same process, for the comparison.
 */
#include "base/cuda_abi.h"
#include "base/sl.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

#define STUB_VERSION     12040
#define STUB_TOTAL_BYTES (16 * SL_GIB)
#define STUB_GRAIN_BYTES (2 * SL_MIB)
#define STUB_CONTEXT     ((CUcontext)(uintptr_t)0x1000)
/* The exports are all this library has; the attribute keeps them through -fvisibility. */
#pragma GCC visibility push(default)

static uint64_t next_address = 0x7000000000ull;
static uint64_t next_handle = 1;

/* --- timed functions ---------------------------------------------------------------------- */

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y,
	unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params,
	void **extra)
{
	return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(
	CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
	return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoDAsync_v2(
	CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return CUDA_SUCCESS;
}

/* --- the driver and its device ----------------------------------------------------------- */

CUresult cuInit(unsigned int flags)
{
	return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = STUB_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *dev, int ordinal)
{
	*dev = 0;
	return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	(void)strncpy(name, "Stub", (size_t)len);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	const char *text = getenv("BENCH_GPU_UUID");

	memset(uuid, 0, sizeof(*uuid));
	if (text && !sl_wire_uuid_parse(text, (uint8_t *)uuid->bytes))
		return CUDA_ERROR_INVALID_DEVICE;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	return cuDeviceGetUuid(uuid, dev);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	*bytes = STUB_TOTAL_BYTES;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attrib, CUdevice dev)
{
	*value = 1;
	return CUDA_SUCCESS;
}

/* --- one context, always current ---------------------------------------------------------- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
	*ctx = STUB_CONTEXT;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	*flags = 0;
	*active = 1;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	*ctx = STUB_CONTEXT;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	*id = 1;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
	if (ctx)
		*ctx = STUB_CONTEXT;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *dev)
{
	*dev = 0;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	*flags = 0;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	*version = 3020;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	return CUDA_SUCCESS;
}

/* --- memory that is only addresses ------------------------------------------------------- */

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	*free_bytes = STUB_TOTAL_BYTES;
	*total_bytes = STUB_TOTAL_BYTES;
	return CUDA_SUCCESS;
}

static CUdeviceptr take_addresses(size_t bytes)
{
	return __atomic_fetch_add(
		&next_address, sl_round_up(bytes, STUB_GRAIN_BYTES), __ATOMIC_RELAXED);
}

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
	*ptr = take_addresses(bytes);
	return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t bytes, size_t alignment,
	CUdeviceptr hint, unsigned long long flags)
{
	*ptr = take_addresses(bytes);
	return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes)
{
	return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	*handle = __atomic_fetch_add(&next_handle, 1, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
	return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(
	CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags option)
{
	*bytes = STUB_GRAIN_BYTES;
	return CUDA_SUCCESS;
}

/* --- streams and events that are always done ---------------------------------------------- */

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	*stream = (CUstream)(uintptr_t)0x2000;
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream)
{
	return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	*status = (CUstreamCaptureStatus)0;
	return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	*event = (CUevent)(uintptr_t)0x3000;
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
	return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event)
{
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	*graph = (CUgraph)(uintptr_t)0x4000;
	return CUDA_SUCCESS;
}

/* --- one call of each further class ----------------------------------------------------------- */

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	*(CUcontext *)data = STUB_CONTEXT;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int cuda_version,
	cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	*fn = (void *)cuLaunchKernel;
	return CUDA_SUCCESS;
}

/* A pool at its largest size. */
#define STUB_POOL       ((CUmemoryPool)(uintptr_t)0x5000)
#define STUB_POOL_BYTES (32 * SL_MIB)

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	*pool = STUB_POOL;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev)
{
	*pool = STUB_POOL;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	*(cuuint64_t *)value =
		attr == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? STUB_POOL_BYTES : 4096;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
	*ptr = 0x6000000000ull;
	return CUDA_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	*array =
		(CUarray)(uintptr_t)__atomic_add_fetch(&next_handle, 1, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray array)
{
	return CUDA_SUCCESS;
}

CUresult cuArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray array, CUdevice dev)
{
	*out = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = 16384, .alignment = 512};
	return CUDA_SUCCESS;
}

/* --- second names, for the comparison --------------------------------------------------------- */

#define BARE(name) \
	extern __typeof__(name) bench_bare_##name __attribute__((alias(#name)));
BARE(cuLaunchKernel)
BARE(cuMemsetD8Async)
BARE(cuMemcpyDtoDAsync_v2)
BARE(cuDriverGetVersion)
BARE(cuStreamQuery)
BARE(cuMemGetInfo_v2)
BARE(cuPointerGetAttribute)
BARE(cuCtxSetLimit)
BARE(cuStreamBeginCapture_v2)
BARE(cuStreamEndCapture)
BARE(cuGetProcAddress_v2)
BARE(cuMemAlloc_v2)
BARE(cuMemFree_v2)
BARE(cuMemAllocAsync)
BARE(cuMemFreeAsync)
BARE(cuArrayCreate_v2)
BARE(cuArrayDestroy)
BARE(cuMemCreate)
BARE(cuMemRelease)
BARE(cuMemMap)
BARE(cuMemUnmap)

#pragma GCC visibility pop
