/*
 * multicast - entry points of multicast objects
 *
 * space_multicast.c implements them. They stay within their process: an exportable one cannot be
 * made.
 */
#include "softgpu/driver/api.h"
#include "softgpu/memory/space.h"

#define GRAIN SL_SG_PAGE

static bool grains(uint64_t v)
{
	return v % GRAIN == 0;
}

static CUresult check_prop(const CUmulticastObjectProp *p)
{
	CHECK_OUT(p);
	if (!p->numDevices || p->numDevices > sl_drv.hello.gpus || !p->size || p->flags)
		return CUDA_ERROR_INVALID_VALUE;
	return p->handleTypes ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult cuMulticastCreate(
	CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *prop)
{
	CUresult r;

	SL_ENTER(cuMulticastCreate);
	CHECK_OUT(handle);
	r = check_prop(prop);
	if (r != CUDA_SUCCESS)
		return r;
	return grains(prop->size) ? sl_space_multicast(prop, handle)
				  : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice dev)
{
	SL_ENTER(cuMulticastAddDevice);
	CHECK_DEVICE(dev);
	return sl_space_multicast_add(handle, dev);
}

static CUresult bind(CUmemGenericAllocationHandle handle, const struct sl_space_bind *b,
	unsigned long long flags)
{
	if (flags || !b->bytes || !grains(b->bytes) || !grains(b->offset) ||
		!grains(b->mem_offset) || !grains(b->ptr))
		return CUDA_ERROR_INVALID_VALUE;
	return sl_space_multicast_bind(handle, b);
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
	CUmemGenericAllocationHandle mem, size_t mem_offset, size_t bytes,
	unsigned long long flags)
{
	struct sl_space_bind b = {-1, offset, bytes, mem, mem_offset, 0};

	SL_ENTER(cuMulticastBindMem);
	return mem ? bind(handle, &b, flags) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle handle, CUdevice dev,
	size_t offset, CUmemGenericAllocationHandle mem, size_t mem_offset, size_t bytes,
	unsigned long long flags)
{
	struct sl_space_bind b = {dev, offset, bytes, mem, mem_offset, 0};

	SL_ENTER(cuMulticastBindMem_v2);
	CHECK_DEVICE(dev);
	return mem ? bind(handle, &b, flags) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset,
	CUdeviceptr ptr, size_t bytes, unsigned long long flags)
{
	struct sl_space_bind b = {-1, offset, bytes, 0, 0, ptr};

	SL_ENTER(cuMulticastBindAddr);
	return bind(handle, &b, flags);
}

CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle handle, CUdevice dev,
	size_t offset, CUdeviceptr ptr, size_t bytes, unsigned long long flags)
{
	struct sl_space_bind b = {dev, offset, bytes, 0, 0, ptr};

	SL_ENTER(cuMulticastBindAddr_v2);
	CHECK_DEVICE(dev);
	return bind(handle, &b, flags);
}

CUresult cuMulticastUnbind(
	CUmemGenericAllocationHandle handle, CUdevice dev, size_t offset, size_t bytes)
{
	SL_ENTER(cuMulticastUnbind);
	CHECK_DEVICE(dev);
	return sl_space_multicast_unbind(handle, dev, offset, bytes);
}

CUresult cuMulticastGetGranularity(size_t *bytes, const CUmulticastObjectProp *prop,
	CUmulticastGranularity_flags option)
{
	CUresult r;

	SL_ENTER(cuMulticastGetGranularity);
	CHECK_OUT(bytes);
	r = check_prop(prop);
	if (r != CUDA_SUCCESS)
		return r;
	if ((unsigned)option > CU_MULTICAST_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = GRAIN;
	return CUDA_SUCCESS;
}
