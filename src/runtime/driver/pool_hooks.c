/*
 * pool_hooks - stream-ordered allocation and the pools behind it, as programs call them
 *
 * An allocation in a capturing stream asks for nothing: it becomes a node of the graph, and its
 * memory is asked for when the graph is launched (graph.h).
 */
#include "runtime/contexts/capture.h"
#include "runtime/contexts/sticky.h"
#include "runtime/driver/graph.h"
#include "runtime/driver/pool.h"
#include "runtime/gate/door.h"
#include "runtime/real/real.h"
#include "runtime/session/measure.h"

/* False only if the stream itself does not capture; captures of other streams do not matter. */
static bool is_captured(CUstream stream, bool per_thread)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult r;

	if (sl_likely(!sl_capture_is_open()))
		return false;
	r = per_thread ? sl_real.cuStreamIsCapturing_ptsz(stream, &status)
		       : sl_real.cuStreamIsCapturing(stream, &status);
	if (r == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE)
		return false;
	sl_graph_has_memory();
	return true;
}

/* The driver checks the arguments; a call that it would refuse asks for nothing. */
#define TAKE(symbol, per_thread, pool_of, params, args)                            \
	SL_EXPORT CUresult symbol params                                           \
	{                                                                          \
		SL_DOOR;                                                           \
		struct sl_pool_growth growth;                                      \
		struct sl_pool *pool_;                                             \
		CUresult result = CUDA_SUCCESS;                                    \
                                                                                   \
		if (!ptr || !bytes || is_captured(stream, per_thread))             \
			return sl_real.symbol args;                                \
		pool_ = pool_of;                                                   \
		if (sl_pool_serve(pool_, ptr, bytes, stream, per_thread, &result)) \
			return sl_sticky_note(result);                             \
		if (!sl_pool_ask(&growth, pool_, bytes, &result))                  \
			return result;                                             \
		do                                                                 \
			result = sl_real.symbol args;                              \
		while (sl_pool_again(&growth, &result));                           \
		sl_pool_done(&growth);                                             \
		return sl_sticky_note(sl_measure_after(result));                   \
	}

TAKE(cuMemAllocAsync, false, sl_pool_of_stream(stream),
	(CUdeviceptr * ptr, size_t bytes, CUstream stream), (ptr, bytes, stream))
TAKE(cuMemAllocAsync_ptsz, true, sl_pool_of_stream(stream),
	(CUdeviceptr * ptr, size_t bytes, CUstream stream), (ptr, bytes, stream))
TAKE(cuMemAllocFromPoolAsync, false, sl_pool_of_handle(pool),
	(CUdeviceptr * ptr, size_t bytes, CUmemoryPool pool, CUstream stream),
	(ptr, bytes, pool, stream))
TAKE(cuMemAllocFromPoolAsync_ptsz, true, sl_pool_of_handle(pool),
	(CUdeviceptr * ptr, size_t bytes, CUmemoryPool pool, CUstream stream),
	(ptr, bytes, pool, stream))

SL_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	SL_DOOR;
	CUresult result = sl_real.cuMemPoolCreate(pool, props);

	SL_OOM_RETRY(result, SL_OOM_CURRENT, sl_real.cuMemPoolCreate(pool, props));
	if (result == CUDA_SUCCESS)
		sl_pool_made(*pool, props);
	return sl_measure_after(result);
}

SL_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	SL_DOOR;
	struct sl_pool *held = sl_pool_hold(pool);
	CUresult result = sl_real.cuMemPoolDestroy(pool);

	sl_pool_unhold(held, result == CUDA_SUCCESS);
	return sl_measure_after(result);
}

SL_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
	SL_DOOR;
	CUresult result = sl_real.cuMemPoolTrimTo(pool, keep_bytes);
	struct sl_pool *known = result == CUDA_SUCCESS ? sl_pool_of_handle(pool) : NULL;

	if (known) {
		sl_pool_trim(known, keep_bytes);
		sl_pool_leave(known);
	}
	return sl_measure_after(result);
}

/* The driver answers for what it has itself: nothing, or memory of streams of other devices. */
SL_EXPORT CUresult cuMemPoolGetAttribute(
	CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	SL_DOOR;
	CUresult result = sl_real.cuMemPoolGetAttribute(pool, attr, value);

	if (result == CUDA_SUCCESS)
		sl_pool_add_figure(pool, attr, value);
	return result;
}

SL_EXPORT CUresult cuMemPoolSetAccess(
	CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
	SL_DOOR;
	CUresult result = sl_real.cuMemPoolSetAccess(pool, access, count);

	return result == CUDA_SUCCESS ? sl_pool_open(pool, access, count) : result;
}

SL_EXPORT CUresult cuMemPoolSetAttribute(
	CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	SL_DOOR;
	CUresult result = sl_real.cuMemPoolSetAttribute(pool, attr, value);

	if (result == CUDA_SUCCESS && attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		sl_pool_keeps(pool, *(const cuuint64_t *)value);
	else if (result == CUDA_SUCCESS)
		sl_pool_reset_figure(pool, attr);
	return result;
}

SL_EXPORT CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	SL_DOOR;
	CUresult result = sl_real.cuDeviceSetMemPool(dev, pool);

	sl_pool_current_changed();
	return result;
}

/* Only here does the driver report a default pool's place and type. */
SL_EXPORT CUresult cuMemGetDefaultMemPool(
	CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type)
{
	SL_DOOR;
	CUresult result = sl_real.cuMemGetDefaultMemPool(pool, where, type);

	if (result == CUDA_SUCCESS)
		sl_pool_seen(*pool, where, type);
	return result;
}

SL_EXPORT CUresult cuMemGetMemPool(
	CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type)
{
	SL_DOOR;
	CUresult result = sl_real.cuMemGetMemPool(pool, where, type);

	if (result == CUDA_SUCCESS)
		sl_pool_seen(*pool, where, type);
	return result;
}

SL_EXPORT CUresult cuMemSetMemPool(
	CUmemLocation *where, CUmemAllocationType type, CUmemoryPool pool)
{
	SL_DOOR;
	CUresult result = sl_real.cuMemSetMemPool(where, type, pool);

	sl_pool_current_changed();
	return result;
}
