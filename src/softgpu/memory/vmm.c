/*
 * vmm - entry points of virtual memory management
 */
#include "softgpu/driver/api.h"
#include "softgpu/memory/space.h"

#define GRAIN SL_SG_PAGE

static bool grains(uint64_t v)
{
	return v && v % GRAIN == 0;
}

static CUresult check_prop(const CUmemAllocationProp *p)
{
	CHECK_OUT(p);
	if (p->type == 2) /* managed, of CUDA 13 */
		return CUDA_ERROR_NOT_SUPPORTED;
	if (p->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
		p->allocFlags.compressionType > 1 ||
		p->allocFlags.gpuDirectRDMACapable > 1 || p->allocFlags.usage > 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	switch (p->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		CHECK_DEVICE(p->location.id);
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST:
		/* It belongs to its process. */
		return p->requestedHandleTypes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA: /* there is one node */
		return p->location.id ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static bool on_host(const CUmemLocation *where)
{
	return where->type == CU_MEM_LOCATION_TYPE_HOST ||
	       where->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t bytes, size_t alignment,
	CUdeviceptr hint, unsigned long long flags)
{
	SL_ENTER(cuMemAddressReserve);
	if (!ptr || !grains(bytes) || flags || alignment & (alignment - 1))
		return CUDA_ERROR_INVALID_VALUE;
	return sl_space_reserve(bytes, alignment, hint, ptr);
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes)
{
	SL_ENTER(cuMemAddressFree);
	return sl_space_unreserve(ptr, bytes);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUresult r;

	SL_ENTER(cuMemCreate);
	r = check_prop(prop);
	if (r != CUDA_SUCCESS)
		return r;
	if (!handle || !grains(bytes) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	sl_drv_cost(sl_drv.hello.create_us);
	return sl_space_create(bytes, prop, handle);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	SL_ENTER(cuMemRelease);
	sl_drv_cost(sl_drv.hello.release_us);
	return sl_space_release(handle);
}

CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	SL_ENTER(cuMemMap);
	if (offset || flags || !grains(ptr) || !grains(bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return sl_space_map(ptr, bytes, handle);
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
	SL_ENTER(cuMemUnmap);
	if (!grains(ptr) || !grains(bytes))
		return CUDA_ERROR_INVALID_VALUE;
	sl_drv_cost(sl_drv.hello.map_us);
	return sl_space_unmap(ptr, bytes);
}

static bool access_ok(const CUmemAccessDesc *desc)
{
	if (desc->flags == 2 ||
		(unsigned)desc->flags > CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return false;
	return on_host(&desc->location) ||
	       (desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
		       sl_drv_device_ok(desc->location.id));
}

CUresult cuMemSetAccess(
	CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
	CUresult r = CUDA_SUCCESS;

	SL_ENTER(cuMemSetAccess);
	if (!desc || !count || !grains(ptr) || !grains(bytes))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (!access_ok(&desc[i]))
			return CUDA_ERROR_INVALID_VALUE;
	sl_drv_cost(sl_drv.hello.map_us);
	for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
		r = on_host(&desc[i].location)
			    ? sl_space_host_access(ptr, bytes, desc[i].flags)
			    : sl_space_access(
				      ptr, bytes, desc[i].location.id, desc[i].flags);
	return r;
}

CUresult cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *where, CUdeviceptr ptr)
{
	struct sl_mapping m;

	SL_ENTER(cuMemGetAccess);
	CHECK_OUT(flags && where);
	if (!on_host(where) && (where->type != CU_MEM_LOCATION_TYPE_DEVICE ||
				       !sl_drv_device_ok(where->id)))
		return CUDA_ERROR_INVALID_VALUE;
	if (!sl_space_mapping(ptr, &m) || m.kind != SL_MAP_VMM)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = on_host(where) ? m.host_access : m.access[where->id];
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags option)
{
	CUresult r;

	SL_ENTER(cuMemGetAllocationGranularity);
	r = check_prop(prop);
	if (r != CUDA_SUCCESS)
		return r;
	if (!bytes || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = GRAIN;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	SL_ENTER(cuMemGetAllocationPropertiesFromHandle);
	CHECK_OUT(prop);
	return sl_space_props(handle, prop);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	SL_ENTER(cuMemRetainAllocationHandle);
	CHECK_OUT(handle);
	return sl_space_retain((uint64_t)(uintptr_t)addr, handle);
}

CUresult cuMemExportToShareableHandle(void *os_handle,
	CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
	unsigned long long flags)
{
	SL_ENTER(cuMemExportToShareableHandle);
	if (!os_handle || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	return sl_space_export(handle, os_handle);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
	void *os_handle, CUmemAllocationHandleType type)
{
	SL_ENTER(cuMemImportFromShareableHandle);
	CHECK_OUT(handle);
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	return sl_space_import((int)(intptr_t)os_handle, handle);
}
