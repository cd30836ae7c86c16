/*
 * facts-handles - properties of handles, host memory behind them, and attributes of pointers to it
 */
#include "contract.h"

#include <fcntl.h>
#include <unistd.h>

#define MANUAL "driver API manual"

static CUmemAllocationProp host_prop(CUmemLocationType type)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};

	prop.location.type = type;
	return prop;
}

static size_t grain_of(const CUmemAllocationProp *prop)
{
	size_t grain = 0;

	OK(cuMemGetAllocationGranularity, &grain, prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	return grain;
}

/* A mapping of a new handle, released, with access of device 0; and of the host with `both`. */
static CUdeviceptr mapped(const CUmemAllocationProp *prop, size_t bytes, bool both)
{
	CUmemAccessDesc access[2] = {
		{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
		{{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0},
			CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at = contract_reserve(bytes);

	OK(cuMemCreate, &handle, bytes, prop, 0);
	OK(cuMemMap, at, bytes, 0, handle, 0);
	OK(cuMemRelease, handle);
	OK(cuMemSetAccess, at, bytes, access, both ? 2 : 1);
	return at;
}

FACT(handle_host, MANUAL, SAME,
	"a handle on the host takes none of the GPU's, and works there")
{
	CUmemAllocationProp prop = host_prop(CU_MEM_LOCATION_TYPE_HOST_NUMA);
	size_t grain, before;
	CUdeviceptr at;

	contract_context();
	contract_step(NULL, contract_alloc(4096), 1, 1);
	OK(cuCtxSynchronize);
	grain = grain_of(&prop);
	before = contract_free_bytes();
	at = mapped(&prop, 32 * grain, true);
	HOLDS(contract_free_bytes() + (8 << 20), >=, before);
	*(volatile uint32_t *)(uintptr_t)at = 3;
	contract_step(NULL, at, 5, 0);
	OK(cuCtxSynchronize);
	HOLDS(*(volatile uint32_t *)(uintptr_t)at, ==, 15);
	OK(cuMemsetD32_v2, at + 31 * grain, 8, 1);
	HOLDS(contract_read(at + 31 * grain), ==, 8);
	OK(cuMemUnmap, at, 32 * grain);
	OK(cuMemAddressFree, at, 32 * grain);
}

FACT(handle_host_plain, "driver API manual of CUDA 13", SAME,
	"plain host memory can have a handle, which stays in its process")
{
	CUmemAllocationProp prop = host_prop(CU_MEM_LOCATION_TYPE_HOST);
	CUmemGenericAllocationHandle handle;
	size_t grain;

	contract_context();
	grain = grain_of(&prop);
	OK(cuMemCreate, &handle, grain, &prop, 0);
	OK(cuMemRelease, handle);
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	IS(ERROR_INVALID_VALUE, cuMemCreate, &handle, grain, &prop, 0);
}

FACT(handle_host_current, MANUAL, SAME,
	"a handle is not made on whatever node it is called from")
{
	CUmemAllocationProp prop = host_prop(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
	CUmemGenericAllocationHandle handle;

	contract_context();
	IS(ERROR_INVALID_VALUE, cuMemCreate, &handle, 2 << 20, &prop, 0);
}

FACT(handle_host_access, MANUAL, SAME,
	"access of the host is told, and a GPU's memory has none")
{
	CUmemAllocationProp prop = host_prop(CU_MEM_LOCATION_TYPE_HOST_NUMA);
	CUmemAllocationProp device = contract_prop();
	CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	unsigned long long flags = 9;
	CUdeviceptr at;
	size_t grain;

	contract_context();
	grain = grain_of(&prop);
	at = mapped(&prop, grain, false);
	OK(cuMemGetAccess, &flags, &host, at);
	HOLDS(flags, ==, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	OK(cuMemSetAccess, at, grain, &access, 1);
	OK(cuMemGetAccess, &flags, &host, at);
	HOLDS(flags, ==, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	at = mapped(&device, contract_grain(), false);
	FAILS(cuMemSetAccess, at, contract_grain(), &access, 1);
}

FACT(handle_host_pointer, "assumed", SAME, "its pointers are the host's")
{
	CUmemAllocationProp prop = host_prop(CU_MEM_LOCATION_TYPE_HOST_NUMA);
	unsigned int type = 0;
	CUdeviceptr at;

	contract_context();
	at = mapped(&prop, grain_of(&prop), true);
	OK(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
	HOLDS(type, ==, CU_MEMORYTYPE_HOST);
}

FACT(handle_host_export, MANUAL, SAME, "a handle on a node can be exported and imported")
{
	CUmemAllocationProp prop = host_prop(CU_MEM_LOCATION_TYPE_HOST_NUMA), seen;
	CUmemGenericAllocationHandle handle, again;
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr at, other;
	size_t grain;
	int fd = -1;

	contract_context();
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	grain = grain_of(&prop);
	OK(cuMemCreate, &handle, grain, &prop, 0);
	OK(cuMemExportToShareableHandle, &fd, handle,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	OK(cuMemImportFromShareableHandle, &again, (void *)(uintptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	close(fd);
	OK(cuMemGetAllocationPropertiesFromHandle, &seen, again);
	HOLDS(seen.location.type, ==, CU_MEM_LOCATION_TYPE_HOST_NUMA);
	at = contract_reserve(grain);
	other = contract_reserve(grain);
	OK(cuMemMap, at, grain, 0, handle, 0);
	OK(cuMemMap, other, grain, 0, again, 0);
	OK(cuMemSetAccess, at, grain, &access, 1);
	OK(cuMemSetAccess, other, grain, &access, 1);
	OK(cuMemsetD32_v2, at, 456, 1);
	HOLDS(contract_read(other), ==, 456);
}

FACT(handle_compressed, MANUAL, SAME, "compression may be asked for, and is told")
{
	CUmemAllocationProp prop = contract_prop(), seen;
	CUmemGenericAllocationHandle handle;
	int can = 0;

	contract_context();
	OK(cuDeviceGetAttribute, &can, CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED,
		0);
	prop.allocFlags.compressionType = 1;
	OK(cuMemCreate, &handle, contract_grain(), &prop, 0);
	OK(cuMemGetAllocationPropertiesFromHandle, &seen, handle);
	HOLDS(seen.allocFlags.compressionType, <=, can);
}

FACT(handle_rdma, "drivers answer so to gdrcopy and UCX", SAME,
	"only handles made for it say they can be registered")
{
	CUmemAllocationProp prop = contract_prop();
	unsigned int capable = 9;
	int can = 0;
	CUdeviceptr at;

	contract_context();
	OK(cuDeviceGetAttribute, &can,
		CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0);
	at = mapped(&prop, contract_grain(), false);
	OK(cuPointerGetAttribute, &capable,
		CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, at);
	HOLDS(capable, ==, 0);
	if (!can)
		contract_skip("no registration of handles here");
	prop.allocFlags.gpuDirectRDMACapable = 1;
	at = mapped(&prop, contract_grain(), false);
	OK(cuPointerGetAttribute, &capable,
		CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, at);
	HOLDS(capable, ==, 1);
}

FACT(handle_import_bad, MANUAL, SAME, "a descriptor of something else is no handle")
{
	CUmemGenericAllocationHandle handle;
	CUmemoryPool pool;
	int fd = open("/dev/null", O_RDONLY);

	contract_context();
	FAILS(cuMemImportFromShareableHandle, &handle, (void *)(uintptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	FAILS(cuMemPoolImportFromShareableHandle, &pool, (void *)(uintptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

FACT(handle_partial_unmap, MANUAL, SAME,
	"a part of a mapping cannot be unmapped or opened alone")
{
	CUmemAllocationProp prop = contract_prop();
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READ};
	size_t grain;
	CUdeviceptr at;

	contract_context();
	grain = contract_grain();
	at = mapped(&prop, 4 * grain, false);
	FAILS(cuMemUnmap, at, grain);
	FAILS(cuMemUnmap, at + grain, 3 * grain);
	FAILS(cuMemSetAccess, at, grain, &access, 1);
	OK(cuMemUnmap, at, 4 * grain);
}

FACT(pointer_pool_context, "UCX tells pools' memory by it", SAME,
	"memory of a pool belongs to no context")
{
	CUcontext context = (CUcontext)(uintptr_t)9;
	CUdeviceptr at;

	contract_context();
	OK(cuMemAllocAsync, &at, 4096, NULL);
	OK(cuPointerGetAttribute, &context, CU_POINTER_ATTRIBUTE_CONTEXT, at);
	HOLDS((uintptr_t)context, ==, 0);
}

FACT(pointer_managed, MANUAL, SAME, "managed memory has a pointer for each side")
{
	CUdeviceptr at, device = 0;
	void *host = NULL;

	contract_context();
	OK(cuMemAllocManaged, &at, 4096, CU_MEM_ATTACH_GLOBAL);
	OK(cuPointerGetAttribute, &host, CU_POINTER_ATTRIBUTE_HOST_POINTER, at + 8);
	HOLDS((uintptr_t)host, ==, at + 8);
	OK(cuPointerGetAttribute, &device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at + 8);
	HOLDS(device, ==, at + 8);
}
