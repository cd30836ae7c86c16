/*
 * array_map - maps memory of handles into arrays
 *
 * Only for arrays with deferred mapping. A map covers the whole array, with memory at an offset of
 * a handle made for that. A map takes effect with the call; an unmap waits for the earlier work of
 * its stream. The handle's memory follows the handle's own rules.
 */
#include "softgpu/driver/api.h"
#include "softgpu/memory/space.h"
#include "softgpu/memory/array.h"

#define USAGE_TILE_POOL 1

struct target {
	const CUDA_ARRAY3D_DESCRIPTOR *desc;
	uint64_t address, bytes;
};

static CUresult find(const CUarrayMapInfo *info, struct target *t)
{
	CUmipmappedArray m = info->resource.mipmap;
	CUarray a = info->resource.array;

	if (info->resourceType == CU_RESOURCE_TYPE_ARRAY) {
		if (!sl_array_of(a))
			return CUDA_ERROR_INVALID_HANDLE;
		if (a->of)
			return CUDA_ERROR_INVALID_VALUE; /* a single level */
		*t = (struct target){&a->desc, a->address, sl_array_bytes(&a->desc)};
	} else if (info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) {
		if (!sl_mipmap_is(m))
			return CUDA_ERROR_INVALID_HANDLE;
		*t = (struct target){
			&m->desc, m->address, sl_mipmap_bytes(&m->desc, m->count)};
	} else {
		return CUDA_ERROR_INVALID_VALUE;
	}
	return t->desc->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING ? CUDA_SUCCESS
							      : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check(const CUarrayMapInfo *info, CUdevice device)
{
	bool is_map = info->memOperationType == CU_MEM_OPERATION_TYPE_MAP;
	struct target t;
	CUresult r = find(info, &t);

	if (r != CUDA_SUCCESS)
		return r;
	if (info->flags || info->deviceBitMask != 1u << device ||
		info->memHandleType != CU_MEM_HANDLE_TYPE_GENERIC)
		return CUDA_ERROR_INVALID_VALUE;
	if (is_map)
		return info->offset % SL_ARRAY_TILE || !info->memHandle.memHandle ||
				       t.address
			       ? CUDA_ERROR_INVALID_VALUE
			       : CUDA_SUCCESS;
	return info->memOperationType != CU_MEM_OPERATION_TYPE_UNMAP ||
			       info->memHandle.memHandle || !t.address
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

static void place(const CUarrayMapInfo *info, uint64_t address)
{
	if (info->resourceType == CU_RESOURCE_TYPE_ARRAY)
		info->resource.array->address = address;
	else
		sl_mipmap_place(info->resource.mipmap, address);
}

static CUresult map(const CUarrayMapInfo *info, CUdevice device)
{
	CUmemAllocationProp prop;
	uint64_t at, bytes;
	struct target t;
	CUresult r = find(info, &t);

	if (r == CUDA_SUCCESS)
		r = sl_space_array_map(info->memHandle.memHandle, &at, &bytes, &prop);
	if (r != CUDA_SUCCESS)
		return r;
	if (!(prop.allocFlags.usage & USAGE_TILE_POOL) || prop.location.id != device ||
		info->offset > bytes || t.bytes > bytes - info->offset) {
		sl_space_array_unmap(at);
		return CUDA_ERROR_INVALID_VALUE;
	}
	place(info, at + info->offset);
	return CUDA_SUCCESS;
}

static CUresult unmap(const CUarrayMapInfo *info, CUstream handle)
{
	struct target t;
	CUresult r = find(info, &t);
	struct sl_op *op;

	if (r != CUDA_SUCCESS)
		return r;
	op = sl_op_new(SL_OP_NOP);
	r = op ? sl_api_run(handle, op) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r == CUDA_SUCCESS) {
		place(info, 0);
		sl_space_array_unmap(t.address);
	}
	return r;
}

static CUresult run(const CUarrayMapInfo *list, unsigned int count, CUstream handle)
{
	CUstream s = sl_stream_of(handle, false);
	CUresult r;

	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!list || !count)
		return CUDA_ERROR_INVALID_VALUE;
	r = sl_capture_check_stream(s);
	for (unsigned int i = 0; i < count && r == CUDA_SUCCESS; i++)
		r = check(&list[i], s->ctx->device);
	for (unsigned int i = 0; i < count && r == CUDA_SUCCESS; i++)
		r = list[i].memOperationType == CU_MEM_OPERATION_TYPE_MAP
			    ? map(&list[i], s->ctx->device)
			    : unmap(&list[i], handle);
	return r;
}

#define do_cuMemMapArrayAsync run
SL_TWIN(cuMemMapArrayAsync, (CUarrayMapInfo * list, unsigned int count, CUstream stream),
	(list, count, SL_PLAIN(stream)), (list, count, SL_PER_THREAD(stream)))
