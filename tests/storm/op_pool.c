/*
 * op_pool - stream-ordered memory and pools
 */
#include "ops.h"

static struct storm_pool *pool_of(struct storm_lane *l, uint32_t slot)
{
	return slot < STORM_POOL_SLOTS && l->pool[slot].live ? &l->pool[slot] : NULL;
}

void storm_op_pool_alloc(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_free_buffer(l, a[0]);
	struct storm_pool *p = pool_of(l, a[3]);
	CUdeviceptr at = 0;
	CUresult r;
	CUstream s;

	/* The software GPU does otherwise with it when the stream's own context goes. */
	if (!b || !storm_stream(l, a[2], &s) || l->context || l->stream[a[2]].context ||
		storm_capturing(l, (uint32_t)storm_stream_slot(l, a[2])))
		return;
	if (p && a[4] & 1)
		r = CALL_S(l, cuMemAllocFromPoolAsync, &at, a[1], p->handle, s);
	else
		r = CALL_S(l, cuMemAllocAsync, &at, a[1], s);
	if (r != CUDA_SUCCESS || !at)
		return;
	/* At once it may be used in this stream, elsewhere after that. */
	if (a[4] & 2) {
		storm_obtained_in(l, b, at, a[1], a[2]);
		return;
	}
	CALL_S(l, cuStreamSynchronize, s);
	storm_obtained(l, b, FROM_POOL, at, a[1]);
}

/* cuMemFreeAsync also takes what cuMemAlloc made. */
void storm_op_pool_free(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	CUstream s;

	if (!b || b->shared || !storm_stream(l, a[1], &s) || l->context || b->context ||
		storm_capturing(l, (uint32_t)storm_stream_slot(l, a[1])))
		return;
	if (b->from > FROM_POOL && a[2] & 7)
		return; /* mostly something that can work */
	if (!storm_touch(l, b, storm_stream_slot(l, a[1])))
		return;
	if (CALL_S(l, cuMemFreeAsync, b->at, s) == CUDA_SUCCESS)
		storm_forget(l, b);
}

void storm_op_pool_create(struct storm_lane *l, const uint32_t *a)
{
	struct storm_pool *p = &l->pool[a[0] % STORM_POOL_SLOTS];
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->device}};

	if (a[1] % 8 == 0)
		props.location.id = 55;
	if (p->live || a[0] == 0)
		return;
	p->live = CALL(l, cuMemPoolCreate, &p->handle, &props) == CUDA_SUCCESS;
}

/* Memory allocated from it stays good until it is freed. */
void storm_op_pool_destroy(struct storm_lane *l, const uint32_t *a)
{
	struct storm_pool *p = pool_of(l, a[0]);

	if (p && a[0] && CALL(l, cuMemPoolDestroy, p->handle) == CUDA_SUCCESS)
		p->live = false;
}

/* Figures of the default pool are the process's, so a crew's threads see each other's. */
void storm_op_pool_attribute(struct storm_lane *l, const uint32_t *a)
{
	struct storm_pool *p = pool_of(l, a[0]);
	CUmemPool_attribute which = (CUmemPool_attribute)(1 + a[1] % 9);
	bool common = a[0] == 0 && l->shape == STORM_SHAPE_CREW;
	uint64_t value = 0;

	if (!p)
		return;
	if (a[2] & 1) {
		value = which <= 3 ? a[2] >> 4 & 1 : a[2] & 2 ? 0 : a[2];
		if (!common)
			CALL(l, cuMemPoolSetAttribute, p->handle, which, &value);
		return;
	}
	if (CALL(l, cuMemPoolGetAttribute, p->handle, which, &value) != CUDA_SUCCESS)
		return;
	/* What the pool has in reserve depends on when its streams were done. */
	if (!common && which <= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		storm_note(l, "value", value);
}

void storm_op_pool_trim(struct storm_lane *l, const uint32_t *a)
{
	struct storm_pool *p = pool_of(l, a[0]);

	CALL(l, cuMemPoolTrimTo, p ? p->handle : NULL, a[1]);
}

void storm_op_pool_default(struct storm_lane *l, const uint32_t *a)
{
	CUmemoryPool pool = NULL;
	CUresult r;

	r = a[1] & 1 ? CALL(l, cuDeviceGetDefaultMemPool, &pool, l->device)
		     : CALL(l, cuDeviceGetMemPool, &pool, a[1] & 0x700 ? l->device : 33);
	if (r == CUDA_SUCCESS)
		storm_note(l, "the default", pool == l->pool[0].handle);
	if (a[1] & 2)
		CALL(l, cuDeviceSetMemPool, l->device,
			a[1] & 4 ? l->pool[0].handle : NULL);
}

void storm_op_pool_access(struct storm_lane *l, const uint32_t *a)
{
	struct storm_pool *p = pool_of(l, a[0]);
	CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->device};
	CUmemAccessDesc desc = {
		.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemAccess_flags flags = 0;

	if (!p)
		return;
	if (a[1] & 1) {
		CALL(l, cuMemPoolSetAccess, p->handle, &desc, 1);
		return;
	}
	if (CALL(l, cuMemPoolGetAccess, &flags, p->handle, &here) == CUDA_SUCCESS)
		storm_note(l, "access", flags);
}

/* More than there is: refused, without harm to other requests. */
void storm_op_pool_wrong(struct storm_lane *l, const uint32_t *a)
{
	CUdeviceptr at = 0;

	/* Which of two errors comes first is not worth a question to the driver. */
	if (l->broken && a[0] % 5 == 0)
		return;
	switch (a[0] % 5) {
	case 0:
		CALL(l, cuMemAllocAsync, &at, (size_t)1 << 42, CU_STREAM_PER_THREAD);
		break;
	case 1: CALL(l, cuMemAllocAsync, NULL, 100, CU_STREAM_PER_THREAD); break;
	case 2:
		CALL(l, cuMemAllocFromPoolAsync, &at, 100, NULL, CU_STREAM_PER_THREAD);
		break;
	case 3: CALL(l, cuMemFreeAsync, 0x1000, CU_STREAM_PER_THREAD); break;
	case 4: CALL(l, cuMemFreeAsync, 0, CU_STREAM_PER_THREAD); break;
	}
}
