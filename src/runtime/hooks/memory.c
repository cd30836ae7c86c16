/*
 * memory - cuMemAlloc, cuMemFree and their kin, as programs call them
 *
 * This file applies the driver's rules for arguments; memory/memory.c does the work. In bypass, for
 * a foreign device or a pointer that is not ours, the call goes to the driver unchanged.
 */
#include "runtime/contexts/capture.h"
#include "runtime/driver/managed.h"
#include "runtime/gate/door.h"
#include "runtime/memory/memory.h"
#include "runtime/memory/stock.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"

/* The driver's pitch on every GPU so far; it aligns rows for any kind of access. */
#define PITCH_GRAIN 512u

SL_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
	SL_DOOR;
	CUresult result;

	if (!sl_mode_is_active() ||
		sl_memory_alloc(ptr, bytes, &result) == SL_MEMORY_FOREIGN)
		return sl_real.cuMemAlloc_v2(ptr, bytes);
	return result;
}

/* Calls with 32-bit sizes belong to contexts from before CUDA 3.2; in any other the driver refuses
 * them. */
static bool context_is_old(void)
{
	unsigned int version = 3020;

	return sl_real.cuCtxGetApiVersion(NULL, &version) == CUDA_SUCCESS &&
	       version < 3020;
}

/* Before CUDA 3.2 addresses had 32 bits. Ours never fit, so this fails, but the memory must be
 * counted. */
SL_EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *ptr, unsigned int bytes)
{
	SL_DOOR;
	CUdeviceptr wide = 0;
	CUresult result, ignored;

	if (!sl_mode_is_active() || !context_is_old() ||
		sl_memory_alloc(ptr ? &wide : NULL, bytes, &result) == SL_MEMORY_FOREIGN)
		return sl_real.cuMemAlloc(ptr, bytes);
	if (result == CUDA_SUCCESS && wide > UINT32_MAX) {
		(void)!sl_memory_free(wide, true, &ignored);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result == CUDA_SUCCESS)
		*ptr = (CUdeviceptr_v1)wide;
	return result;
}

static bool pitch_is_possible(size_t width_bytes, size_t height, unsigned int element)
{
	return (element == 4 || element == 8 || element == 16) && width_bytes && height &&
	       width_bytes <= SIZE_MAX - PITCH_GRAIN &&
	       sl_round_up(width_bytes, PITCH_GRAIN) <= SIZE_MAX / height;
}

SL_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width_bytes,
	size_t height, unsigned int element)
{
	SL_DOOR;
	bool possible = ptr && pitch && pitch_is_possible(width_bytes, height, element);
	size_t row_bytes = possible ? sl_round_up(width_bytes, PITCH_GRAIN) : 0;
	CUresult result;

	/* Zero bytes are refused, as the driver would refuse these arguments. */
	if (!sl_mode_is_active() ||
		sl_memory_alloc(ptr, row_bytes * height, &result) == SL_MEMORY_FOREIGN)
		return sl_real.cuMemAllocPitch_v2(
			ptr, pitch, width_bytes, height, element);
	if (result == CUDA_SUCCESS)
		*pitch = row_bytes;
	return result;
}

SL_EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1 *ptr, unsigned int *pitch,
	unsigned int width_bytes, unsigned int height, unsigned int element)
{
	SL_DOOR;
	bool possible = ptr && pitch && pitch_is_possible(width_bytes, height, element);

	if (!sl_mode_is_active() || !context_is_old())
		return sl_real.cuMemAllocPitch(ptr, pitch, width_bytes, height, element);
	return possible ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
}

SL_EXPORT CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	SL_DOOR;
	CUresult result;

	/* In a capture the driver refuses and invalidates the capture before it looks at the
	 * address. */
	if (!ptr || !sl_mode_is_active() || sl_capture_forbids())
		return sl_real.cuMemFree_v2(ptr);
	if (sl_memory_free(ptr, true, &result) == SL_MEMORY_FOREIGN)
		return sl_managed_free(ptr);
	return result;
}

SL_EXPORT CUresult cuMemFree(CUdeviceptr_v1 ptr)
{
	SL_DOOR;
	return sl_real.cuMemFree(ptr);
}

/* Memory of a pool is freed in the stream's order. The sweeper frees other memory once all work of
 * the context is done, which keeps that order; this call never waits. During a capture the call
 * goes to the driver, which refuses memory that is not its own. */
static bool free_later(CUdeviceptr ptr, CUstream stream, bool per_thread,
	CUstreamCaptureStatus status, CUresult *result)
{
	return ptr && sl_mode_is_active() && status == CU_STREAM_CAPTURE_STATUS_NONE &&
	       (sl_stock_free(ptr, stream, per_thread, result) != SL_MEMORY_FOREIGN ||
		       sl_memory_free(ptr, false, result) != SL_MEMORY_FOREIGN);
}

/* May the program free ptr? */
static bool is_ours(CUdeviceptr ptr)
{
	struct sl_memory_info info;

	return sl_memory_find(ptr, &info) == SL_MEMORY_OURS && info.base == ptr;
}

SL_EXPORT CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	SL_DOOR;
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult result;

	/* The stream is the legacy one, and another stream captures. The query is refused and
	 * invalidates the capture, just as the free would. */
	if (sl_capture_is_open() &&
		sl_real.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS &&
		is_ours(ptr))
		return sl_real.cuStreamQuery(stream);
	return free_later(ptr, stream, false, status, &result)
		       ? result
		       : sl_managed_free_async(sl_real.cuMemFreeAsync, ptr, stream);
}

SL_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr ptr, CUstream stream)
{
	SL_DOOR;
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult result;

	if (sl_capture_is_open() &&
		sl_real.cuStreamIsCapturing_ptsz(stream, &status) != CUDA_SUCCESS &&
		is_ours(ptr))
		return sl_real.cuStreamQuery_ptsz(stream);
	return free_later(ptr, stream, true, status, &result)
		       ? result
		       : sl_managed_free_async(sl_real.cuMemFreeAsync_ptsz, ptr, stream);
}
