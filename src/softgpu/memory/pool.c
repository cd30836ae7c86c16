/*
 * pool - entry points of pools and stream-ordered allocation
 *
 * Memory is valid when the allocating call returns; freed memory is reused in stream order
 * (pool.h). Pools may be on a GPU or the host; pools of managed memory are not supported.
 */
#include "softgpu/memory/pool.h"
#include "softgpu/driver/api.h"
#include "softgpu/memory/space.h"

#include <unistd.h>

#define HOST_POOLS 2 /* plain, and of a NUMA node: there is one node */

/* The default and current pools; under sl_space_lock. The last two are the host's. */
static struct {
	CUmemoryPool of_default, current;
} places[SL_SOFTGPU_GPUS_MAX + HOST_POOLS];

/* The index of a location in `places`, or -1. */
static int place_of(const CUmemLocation *where)
{
	switch (where->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return sl_drv_device_ok(where->id) ? where->id : -1;
	case CU_MEM_LOCATION_TYPE_HOST: return SL_SOFTGPU_GPUS_MAX;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return where->id == 0 ? SL_SOFTGPU_GPUS_MAX + 1 : -1;
	default: return -1;
	}
}

static bool pool_ok(CUmemoryPool pool)
{
	return sl_object_is(pool, SL_MAGIC_POOL);
}

CUmemoryPool sl_pool_new(const CUmemPoolProps *props)
{
	CUmemoryPool p = sl_object_new(SL_MAGIC_POOL, sizeof(*p));

	if (!p)
		return NULL;
	p->props = *props;
	p->is_host = props->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
	p->device = p->is_host ? 0 : props->location.id;
	p->uid = sl_drv_next_id();
	p->pid = getpid();
	sl_list_init(&p->chunks);
	for (unsigned i = 0; i < SL_POOL_REUSES; i++)
		p->reuse[i] = 1;
	if (!p->is_host)
		p->access[p->device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	pthread_mutex_lock(&sl_space_lock);
	sl_list_push_tail(&sl_pools, &p->o.link);
	pthread_mutex_unlock(&sl_space_lock);
	return p;
}

static CUmemoryPool default_of(int place)
{
	static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};

	props.location.type = place == SL_SOFTGPU_GPUS_MAX ? CU_MEM_LOCATION_TYPE_HOST
			      : place > SL_SOFTGPU_GPUS_MAX
				      ? CU_MEM_LOCATION_TYPE_HOST_NUMA
				      : CU_MEM_LOCATION_TYPE_DEVICE;
	props.location.id = place < SL_SOFTGPU_GPUS_MAX ? place : 0;
	pthread_mutex_lock(&making);
	if (!places[place].of_default) {
		CUmemoryPool p = sl_pool_new(&props);

		if (p)
			p->is_default = true;
		places[place].of_default = p;
	}
	pthread_mutex_unlock(&making);
	return places[place].of_default;
}

static CUmemoryPool current_of(int place)
{
	CUmemoryPool p;

	pthread_mutex_lock(&sl_space_lock);
	p = places[place].current;
	pthread_mutex_unlock(&sl_space_lock);
	return p ? p : default_of(place);
}

/* Choosing a pool */

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev)
{
	SL_ENTER(cuDeviceGetDefaultMemPool);
	CHECK_OUT(pool);
	CHECK_DEVICE(dev);
	*pool = default_of(dev);
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	SL_ENTER(cuDeviceGetMemPool);
	CHECK_OUT(pool);
	CHECK_DEVICE(dev);
	*pool = current_of(dev);
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult set_current(int place, CUmemoryPool pool)
{
	if (!pool_ok(pool) || pool->is_imported ||
		place_of(&pool->props.location) != place)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sl_space_lock);
	places[place].current = pool;
	pthread_mutex_unlock(&sl_space_lock);
	return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	SL_ENTER(cuDeviceSetMemPool);
	CHECK_DEVICE(dev);
	return set_current(dev, pool);
}

/* The index, or an error for an invalid location or type. */
static CUresult look_up(const CUmemLocation *where, CUmemAllocationType type, int *place)
{
	CHECK_OUT(where);
	if (type == 2) /* managed pools, of CUDA 13 */
		return CUDA_ERROR_NOT_SUPPORTED;
	*place = place_of(where);
	return type == CU_MEM_ALLOCATION_TYPE_PINNED && *place >= 0
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetDefaultMemPool(
	CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type)
{
	CUresult r;
	int place;

	SL_ENTER(cuMemGetDefaultMemPool);
	CHECK_OUT(pool);
	r = look_up(where, type, &place);
	if (r != CUDA_SUCCESS)
		return r;
	*pool = default_of(place);
	return *pool ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemGetMemPool(
	CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type)
{
	CUresult r;
	int place;

	SL_ENTER(cuMemGetMemPool);
	CHECK_OUT(pool);
	r = look_up(where, type, &place);
	if (r != CUDA_SUCCESS)
		return r;
	*pool = current_of(place);
	return *pool ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemSetMemPool(
	CUmemLocation *where, CUmemAllocationType type, CUmemoryPool pool)
{
	CUresult r;
	int place;

	SL_ENTER(cuMemSetMemPool);
	r = look_up(where, type, &place);
	return r == CUDA_SUCCESS ? set_current(place, pool) : r;
}

/* Life ---------------------------------------------------------------------------------------- */

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	SL_ENTER(cuMemPoolCreate);
	CHECK_OUT(pool && props);
	if (props->allocType == 2)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
		!sl_drv_device_ok(props->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if (place_of(&props->location) < 0)
		return CUDA_ERROR_INVALID_VALUE;
	/* Plain host memory belongs to its process. */
	if (props->location.type == CU_MEM_LOCATION_TYPE_HOST && props->handleTypes)
		return CUDA_ERROR_INVALID_VALUE;
	/* Only the GPU's memory can be shared between processes. */
	if (props->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
		(props->handleTypes &&
			props->location.type != CU_MEM_LOCATION_TYPE_DEVICE))
		return CUDA_ERROR_NOT_SUPPORTED;
	*pool = sl_pool_new(props);
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	SL_ENTER(cuMemPoolDestroy);
	if (!pool_ok(pool) || pool->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sl_object_kill(pool))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sl_space_lock);
	for (unsigned i = 0; i < SL_ARRAY_LEN(places); i++)
		if (places[i].current == pool)
			places[i].current = NULL;
	pthread_mutex_unlock(&sl_space_lock);
	sl_pool_destroy(pool);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
	SL_ENTER(cuMemPoolTrimTo);
	if (!pool_ok(pool))
		return CUDA_ERROR_INVALID_VALUE;
	sl_pool_release(pool, keep_bytes);
	return CUDA_SUCCESS;
}

/* Attributes ---------------------------------------------------------------------------------- */

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	CUresult r = CUDA_SUCCESS;
	bool is_zero;

	SL_ENTER(cuMemPoolSetAttribute);
	if (!pool_ok(pool) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sl_space_lock);
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse[attr - 1] = *(const int *)value;
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->release_threshold = *(const cuuint64_t *)value;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH: /* can only be reset */
		is_zero = *(const cuuint64_t *)value == 0;
		if (!is_zero)
			r = CUDA_ERROR_INVALID_VALUE;
		else if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
			pool->used_high = pool->used;
		else
			pool->reserved_high = pool->reserved;
		break;
	default: r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

static CUresult get_attribute(CUmemoryPool p, CUmemPool_attribute attr, void *value)
{
	cuuint64_t *wide = value;
	int *narrow = value;

	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*narrow = p->reuse[attr - 1];
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *wide = p->release_threshold; break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *wide = p->reserved; break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *wide = p->reserved_high; break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *wide = p->used; break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *wide = p->used_high; break;
	case CU_MEMPOOL_ATTR_ALLOCATION_TYPE: *narrow = (int)p->props.allocType; break;
	case CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES:
		*narrow = p->is_imported ? 0 : (int)p->props.handleTypes;
		break;
	case CU_MEMPOOL_ATTR_LOCATION_ID: *narrow = p->props.location.id; break;
	case CU_MEMPOOL_ATTR_LOCATION_TYPE: *narrow = (int)p->props.location.type; break;
	case CU_MEMPOOL_ATTR_MAX_POOL_SIZE: *wide = p->props.maxSize; break;
	case CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED: *narrow = 0; break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	CUresult r;

	SL_ENTER(cuMemPoolGetAttribute);
	if (!pool_ok(pool) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sl_space_lock);
	r = get_attribute(pool, attr, value);
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

static bool access_ok(CUmemoryPool pool, const CUmemAccessDesc *desc)
{
	if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		!sl_drv_device_ok(desc->location.id) || desc->flags == 2 ||
		(unsigned)desc->flags > CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return false;
	/* The pool's own location always has access. */
	return pool->is_host || desc->location.id != pool->device ||
	       desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	CUresult r = CUDA_SUCCESS;

	SL_ENTER(cuMemPoolSetAccess);
	if (!pool_ok(pool) || (count && !map))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
			CHECK_DEVICE(map[i].location.id);
		if (!access_ok(pool, &map[i]))
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
		r = sl_pool_open(pool, map[i].location.id, map[i].flags);
	return r;
}

CUresult cuMemPoolGetAccess(
	CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *where)
{
	SL_ENTER(cuMemPoolGetAccess);
	if (!pool_ok(pool) || !flags || !where)
		return CUDA_ERROR_INVALID_VALUE;
	switch (where->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		CHECK_DEVICE(where->id);
		*flags = (CUmemAccess_flags)pool->access[where->id];
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		*flags = pool->is_host ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
				       : CU_MEM_ACCESS_FLAGS_PROT_NONE;
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Allocation ---------------------------------------------------------------------------------- */

/* pool NULL: the current pool of the stream's device. */
static CUresult alloc(CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream handle)
{
	CUstream s = sl_stream_of(handle, false);
	struct sl_op *wait;
	CUresult r;

	if (!ptr)
		return CUDA_ERROR_INVALID_VALUE;
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	/* Nothing happens in the stream, so this is allowed in a capture. */
	if (!bytes) {
		*ptr = 0;
		return CUDA_SUCCESS;
	}
	if (sl_capture_alloc(s, ptr, bytes, pool, &r))
		return r;
	r = sl_capture_check_stream(s);
	if (r != CUDA_SUCCESS)
		return r;
	if (!pool)
		pool = current_of(s->ctx->device);
	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sl_pool_take(pool, s, bytes, &wait, ptr);
	if (r == CUDA_SUCCESS && wait)
		r = sl_stream_submit(s, wait, NULL);
	return r;
}

static CUresult do_cuMemAllocAsync(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
	return alloc(ptr, bytes, NULL, stream);
}

SL_TWIN(cuMemAllocAsync, (CUdeviceptr * ptr, size_t bytes, CUstream stream),
	(ptr, bytes, SL_PLAIN(stream)), (ptr, bytes, SL_PER_THREAD(stream)))

static CUresult do_cuMemAllocFromPoolAsync(
	CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	return pool_ok(pool) && !pool->is_imported ? alloc(ptr, bytes, pool, stream)
						   : CUDA_ERROR_INVALID_VALUE;
}

SL_TWIN(cuMemAllocFromPoolAsync,
	(CUdeviceptr * ptr, size_t bytes, CUmemoryPool pool, CUstream stream),
	(ptr, bytes, pool, SL_PLAIN(stream)), (ptr, bytes, pool, SL_PER_THREAD(stream)))

/* Marks the point in the stream after which the block's place is free. */
static CUresult give(CUdeviceptr ptr, CUstream s)
{
	uint64_t seq = 0;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	struct sl_op *op = sl_op_new(SL_OP_NOP);

	sl_object_ref(s);
	if (op)
		r = sl_stream_submit(s, op, &seq);
	if (r == CUDA_SUCCESS)
		r = sl_pool_give(ptr, s, seq);
	sl_object_unref(s);
	return r;
}

/* Memory of cuMemAlloc may be freed this way, too, in stream order. */
static CUresult do_cuMemFreeAsync(CUdeviceptr ptr, CUstream handle)
{
	CUstream s = sl_stream_of(handle, false);
	struct sl_mapping m;
	struct sl_block b;
	struct sl_op *op;
	CUresult r;

	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ptr)
		return CUDA_SUCCESS;
	if (sl_capture_free(s, ptr, &r))
		return r;
	if (!sl_space_block(ptr, &b) || b.address != ptr || b.kind > SL_BLOCK_POOL)
		return CUDA_ERROR_INVALID_VALUE;
	r = sl_capture_check_stream(s);
	if (r != CUDA_SUCCESS)
		return r;
	if (sl_space_mapping(ptr, &m) && m.kind == SL_MAP_POOL)
		return give(ptr, s);
	op = sl_op_new(SL_OP_FREE);
	if (op)
		op->free_address = ptr;
	return sl_api_submit(handle, op);
}

SL_TWIN(cuMemFreeAsync, (CUdeviceptr ptr, CUstream stream), (ptr, SL_PLAIN(stream)),
	(ptr, SL_PER_THREAD(stream)))
