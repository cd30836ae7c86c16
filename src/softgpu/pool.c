/*
 * pool - stream-ordered allocation from the default pool
 *
 * The least that is true to the interface: memory is there when the call returns, and goes when the
 * stream reaches the free. The pool keeps nothing back, as a release threshold of zero would at the
 * next synchronisation. Attributes are kept and returned; further pools are not made.
 */
#include "softgpu/api.h"

struct CUmemPoolHandle_st {
	struct sl_object o;
	CUdevice device;
	uint64_t release_threshold;
	uint64_t used, used_high;
	int reuse[3];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUmemoryPool pools[SL_SOFTGPU_GPUS_MAX];

CUmemoryPool sl_pool_default(CUdevice device)
{
	CUmemoryPool p;

	pthread_mutex_lock(&lock);
	p = pools[device];
	if (!p) {
		p = sl_object_new(SL_MAGIC_POOL, sizeof(*p));
		if (p) {
			p->device = device;
			p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
		}
		pools[device] = p;
	}
	pthread_mutex_unlock(&lock);
	return p;
}

static void account(CUdevice device, int64_t bytes)
{
	CUmemoryPool p = sl_pool_default(device);

	pthread_mutex_lock(&lock);
	if (p) {
		p->used += (uint64_t)bytes;
		p->used_high = sl_max_u64(p->used_high, p->used);
	}
	pthread_mutex_unlock(&lock);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev)
{
	SL_ENTER(cuDeviceGetDefaultMemPool);
	CHECK_OUT(pool);
	CHECK_DEVICE(dev);
	*pool = sl_pool_default(dev);
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	SL_ENTER(cuDeviceGetMemPool);
	CHECK_OUT(pool);
	CHECK_DEVICE(dev);
	*pool = sl_pool_default(dev);
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	SL_ENTER(cuDeviceSetMemPool);
	CHECK_DEVICE(dev);
	return pool == sl_pool_default(dev) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
	SL_ENTER(cuMemPoolTrimTo);
	(void)keep_bytes;
	return sl_object_is(pool, SL_MAGIC_POOL) ? CUDA_SUCCESS
						 : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	CUresult r = CUDA_SUCCESS;

	SL_ENTER(cuMemPoolSetAttribute);
	if (!sl_object_is(pool, SL_MAGIC_POOL) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		pool->release_threshold = *(const cuuint64_t *)value;
	else if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH && *(const cuuint64_t *)value == 0)
		pool->used_high = pool->used;
	else if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH &&
		 *(const cuuint64_t *)value == 0)
		pool->used_high = pool->used;
	else if (attr >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
		 attr <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
		pool->reuse[attr - 1] = *(const int *)value;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	CUresult r = CUDA_SUCCESS;

	SL_ENTER(cuMemPoolGetAttribute);
	if (!sl_object_is(pool, SL_MAGIC_POOL) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = pool->reuse[attr - 1];
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(cuuint64_t *)value = pool->release_threshold;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)value = pool->used; break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = pool->used_high; break;
	default: r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

static CUresult alloc(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
	CUstream s = sl_stream_of(stream, false);
	CUresult r;

	if (!ptr)
		return CUDA_ERROR_INVALID_VALUE;
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!bytes) {
		*ptr = 0;
		return CUDA_SUCCESS;
	}
	r = sl_capture_check_stream(s); /* memory nodes of graphs are not modelled */
	if (r == CUDA_SUCCESS)
		r = sl_space_alloc(s->ctx, bytes, SL_BLOCK_POOL, ptr);
	if (r == CUDA_SUCCESS)
		account(s->ctx->device, (int64_t)bytes);
	return r;
}

#define do_cuMemAllocAsync alloc
SL_TWIN(cuMemAllocAsync, (CUdeviceptr * ptr, size_t bytes, CUstream stream),
	(ptr, bytes, SL_PLAIN(stream)), (ptr, bytes, SL_PER_THREAD(stream)))

static CUresult do_cuMemAllocFromPoolAsync(
	CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	return sl_object_is(pool, SL_MAGIC_POOL) ? alloc(ptr, bytes, stream)
						 : CUDA_ERROR_INVALID_VALUE;
}

SL_TWIN(cuMemAllocFromPoolAsync,
	(CUdeviceptr * ptr, size_t bytes, CUmemoryPool pool, CUstream stream),
	(ptr, bytes, pool, SL_PLAIN(stream)), (ptr, bytes, pool, SL_PER_THREAD(stream)))

static CUresult do_cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	CUstream s = sl_stream_of(stream, false);
	struct sl_block b;
	struct sl_op *op;
	CUresult r;

	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ptr)
		return CUDA_SUCCESS;
	if (!sl_space_block(ptr, &b) || b.address != ptr || b.kind > SL_BLOCK_POOL)
		return CUDA_ERROR_INVALID_VALUE;
	r = sl_capture_check_stream(s);
	if (r != CUDA_SUCCESS)
		return r;
	op = sl_op_new(SL_OP_FREE);
	if (op)
		op->free_address = ptr;
	r = sl_api_submit(stream, op);
	if (r == CUDA_SUCCESS && b.kind == SL_BLOCK_POOL)
		account(b.device, -(int64_t)b.bytes);
	return r;
}

SL_TWIN(cuMemFreeAsync, (CUdeviceptr ptr, CUstream stream), (ptr, SL_PLAIN(stream)),
	(ptr, SL_PER_THREAD(stream)))
