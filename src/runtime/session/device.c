/*
 * device - see device.h
 *
 * A record never leaves the session's table, and a device stays the same GPU of the workload when
 * that moves to another. So a kept pointer stays valid. The answer that a device is not the
 * workload's is not kept: the daemon may add it.
 */
#include "runtime/session/device.h"
#include "runtime/real/real.h"
#include "runtime/session/session.h"

#include <string.h>

static struct sl_gpu *known[SL_GPUS_MAX];

struct sl_gpu *sl_device_gpu(CUdevice dev)
{
	struct sl_gpu *gpu;
	CUuuid uuid;

	if (dev < 0 || dev >= SL_GPUS_MAX)
		return NULL;
	gpu = __atomic_load_n(&known[dev], __ATOMIC_ACQUIRE);
	if (gpu || sl_real.cuDeviceGetUuid(&uuid, dev) != CUDA_SUCCESS)
		return gpu;
	gpu = sl_session_gpu((const uint8_t *)uuid.bytes);
	__atomic_store_n(&known[dev], gpu, __ATOMIC_RELEASE);
	return gpu;
}

bool sl_device_is_left(CUdevice dev)
{
	const struct sl_gpu *gpu = sl_device_gpu(dev);
	uint8_t now[SL_WIRE_UUID_BYTES];
	const uint8_t *there;
	CUuuid uuid;

	if (sl_real.cuDeviceGetUuid(&uuid, dev) != CUDA_SUCCESS)
		return false;
	there = (const uint8_t *)uuid.bytes;
	if (!gpu)
		return sl_session_gpu_named(SL_GPU_JOINED, there) ||
		       sl_session_gpu_named(SL_GPU_FIRST, there);
	sl_session_uuid(gpu, SL_GPU_NOW, now);
	return memcmp(now, there, sizeof(now)) != 0;
}

bool sl_device_of_place(const CUmemLocation *where, CUdevice *dev)
{
	switch (where->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE: *dev = where->id; return true;
	case CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN:
		*dev = where->id & 0xff; /* the domain is the next byte */
		return true;
	default: return false;
	}
}

static CUresult device_of_context(CUcontext ctx, CUdevice *dev)
{
	CUcontext current = NULL;
	CUresult r;

	if (sl_real.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == ctx)
		return sl_real.cuCtxGetDevice(dev);
	r = sl_real.cuCtxPushCurrent_v2(ctx);
	if (r != CUDA_SUCCESS)
		return r;
	r = sl_real.cuCtxGetDevice(dev);
	(void)sl_real.cuCtxPopCurrent_v2(&ctx);
	return r;
}

/* A driver before 12.8 knows only the stream's context. A missing function is remembered, since
 * each search for it takes longer than the call. */
CUresult sl_device_of_stream(CUstream stream, CUdevice *dev)
{
	static int missing;
	CUcontext ctx = NULL;
	CUresult r;

	if (!__atomic_load_n(&missing, __ATOMIC_RELAXED)) {
		r = sl_real.cuStreamGetDevice(stream, dev);
		if (r == CUDA_SUCCESS)
			return r;
		/* The result of a function that the driver lacks (real.c). */
		if (r == CUDA_ERROR_NOT_SUPPORTED)
			__atomic_store_n(&missing, 1, __ATOMIC_RELAXED);
	}
	r = sl_real.cuStreamGetCtx(stream, &ctx);
	if (r != CUDA_SUCCESS || !ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	return device_of_context(ctx, dev);
}

void sl_device_forget(void)
{
	memset(known, 0, sizeof(known));
}
