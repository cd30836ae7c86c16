/*
 * order - see order.h
 *
 * Events live for one wait: the driver keeps a destroyed event until it is reached. If a wait
 * cannot be made, the driver alone orders the copy. Copies from or to arrays or other processes'
 * memory are not recognised: another process's GPU may have no context here to wait for.
 */
#include "runtime/hooks/order.h"
#include "runtime/contexts/capture.h"
#include "runtime/memory/block.h"
#include "runtime/real/real.h"

#include "base/log.h"

/* One end of a copy. */
struct end {
	CUdevice dev;    /* -1: host memory */
	CUcontext owner; /* NULL: the driver's own memory, whose GPU it knows */
};

static struct end end_of(CUdeviceptr address)
{
	struct end end = {-1, NULL};
	CUmemorytype type = CU_MEMORYTYPE_HOST;
	struct sl_block *block;

	sl_books_lock();
	block = sl_pagemap_get(address);
	if (block)
		end = (struct end){block->space->dev, block->space->ctx};
	sl_books_unlock();
	if (!block &&
		sl_real.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
			address) == CUDA_SUCCESS &&
		type == CU_MEMORYTYPE_DEVICE)
		(void)sl_real.cuPointerGetAttribute(
			&end.dev, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
	return end;
}

static void add(struct sl_order *order, CUcontext owner, CUcontext current)
{
	if (owner && owner != current)
		order->other[order->count++] = owner;
}

/* Later work of `waiter` starts after earlier work of `first`. */
static void wait_for(CUcontext waiter, CUcontext first)
{
	CUevent event = NULL;
	CUresult r = sl_real.cuCtxPushCurrent_v2(first);

	if (r == CUDA_SUCCESS) {
		r = sl_real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
		if (r == CUDA_SUCCESS)
			r = sl_real.cuEventRecord(event, CU_STREAM_LEGACY);
		(void)sl_real.cuCtxPopCurrent_v2(NULL);
	}
	if (r == CUDA_SUCCESS)
		r = sl_real.cuCtxPushCurrent_v2(waiter);
	if (r == CUDA_SUCCESS) {
		r = sl_real.cuStreamWaitEvent(CU_STREAM_LEGACY, event, 0);
		(void)sl_real.cuCtxPopCurrent_v2(NULL);
	}
	if (event)
		(void)sl_real.cuEventDestroy_v2(event);
	if (r != CUDA_SUCCESS)
		sl_debug("a copy between GPUs is not in order: error %d", (int)r);
}

void sl_order_begin(struct sl_order *order, struct sl_order_ends ends)
{
	struct end dst = end_of(ends.dst), src = end_of(ends.src);
	CUcontext current = NULL;

	order->count = 0;
	if (dst.dev < 0 || src.dev < 0 || dst.dev == src.dev ||
		sl_real.cuCtxGetCurrent(&current) != CUDA_SUCCESS || !current ||
		!sl_capture_sync_begin())
		return;
	add(order, dst.owner, current);
	add(order, src.owner, current);
	for (unsigned int i = 0; i < order->count; i++)
		wait_for(current, order->other[i]);
	if (!order->count)
		sl_capture_sync_end();
}

void sl_order_end(struct sl_order *order, CUresult result)
{
	CUcontext current = NULL;

	if (!order->count)
		return;
	if (result == CUDA_SUCCESS && sl_real.cuCtxGetCurrent(&current) == CUDA_SUCCESS) {
		for (unsigned int i = 0; i < order->count; i++)
			wait_for(order->other[i], current);
	}
	sl_capture_sync_end();
}
