/*
 * pool_stock - what programs ask of pools whose memory is ours; see pool.h
 */
#include "runtime/driver/internal.h"
#include "runtime/driver/pool.h"
#include "runtime/real/real.h"

bool sl_pool_serve(struct sl_pool *pool, CUdeviceptr *out, size_t bytes, CUstream stream,
	bool per_thread, CUresult *result)
{
	if (!pool || !pool->stock ||
		sl_stock_alloc(pool->stock, out, bytes, stream, per_thread, result) ==
			SL_MEMORY_FOREIGN)
		return false;
	sl_pool_leave(pool);
	return true;
}

void sl_pool_trim(struct sl_pool *pool, uint64_t keep_bytes)
{
	sl_pool_look(pool);
	if (pool->stock)
		sl_stock_trim(pool->stock, keep_bytes);
}

/* The driver answers for what it has itself: as a rule nothing. */
void sl_pool_add_figure(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
	bool is_figure = attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ||
			 attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ||
			 attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ||
			 attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
	struct sl_pool *pool = is_figure ? sl_pool_of_handle(handle) : NULL;
	struct sl_stock_figures figures = {0};
	cuuint64_t *sum = value;

	if (!pool)
		return;
	if (pool->stock)
		sl_stock_figures(pool->stock, &figures);
	sl_pool_leave(pool);
	switch (attribute) {
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *sum += figures.used; break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *sum += figures.used_high; break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *sum += figures.reserved; break;
	default: *sum += figures.reserved_high;
	}
}

void sl_pool_reset_figure(CUmemoryPool handle, CUmemPool_attribute attribute)
{
	struct sl_pool *pool = sl_pool_of_handle(handle);

	if (!pool)
		return;
	if (pool->stock && attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
		sl_stock_reset_used(pool->stock);
	else if (pool->stock && attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
		sl_stock_reset_reserved(pool->stock);
	sl_pool_leave(pool);
}

static CUresult open_to(
	CUmemoryPool handle, struct sl_pool *pool, const CUmemAccessDesc *access)
{
	CUmemAccessDesc none = *access;
	CUresult r;

	if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_SUCCESS;
	r = sl_stock_open(pool->stock, access->location.id,
		access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
	none.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	if (r != CUDA_SUCCESS)
		(void)sl_real.cuMemPoolSetAccess(handle, &none, 1);
	return r;
}

CUresult sl_pool_open(CUmemoryPool handle, const CUmemAccessDesc *access, size_t count)
{
	struct sl_pool *pool = sl_pool_of_handle(handle);
	CUresult r = CUDA_SUCCESS;

	if (!pool)
		return r;
	for (size_t i = 0; pool->stock && i < count && r == CUDA_SUCCESS; i++)
		r = open_to(handle, pool, &access[i]);
	sl_pool_leave(pool);
	return r;
}
