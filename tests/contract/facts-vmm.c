/*
 * facts-vmm - handles, reservations, mappings, access: what Sluice builds cuMemAlloc from
 */
#include "contract.h"

#include <stdio.h>
#include <unistd.h>

#define MANUAL "driver API manual"

FACT(vmm_grain, MANUAL, SAME, "the grain is a power of two, and 2 MiB on GPUs we know")
{
	CUmemAllocationProp prop = contract_prop();
	size_t least, wise = 0;

	contract_context();
	least = contract_grain();
	HOLDS(least & (least - 1), ==, 0);
	HOLDS(least, ==, 2 << 20);
	OK(cuMemGetAllocationGranularity, &wise, &prop,
		CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
	HOLDS(wise, >=, least);
}

FACT(vmm_create_size, MANUAL, SAME, "a handle's size is a multiple of the grain, not 0")
{
	CUmemAllocationProp prop = contract_prop();
	CUmemGenericAllocationHandle handle;

	contract_context();
	IS(ERROR_INVALID_VALUE, cuMemCreate, &handle, contract_grain() + 4096, &prop, 0);
	IS(ERROR_INVALID_VALUE, cuMemCreate, &handle, 0, &prop, 0);
}

FACT(vmm_create_bad, MANUAL, SAME, "an unknown device or flag is refused")
{
	CUmemAllocationProp prop = contract_prop();
	CUmemGenericAllocationHandle handle;

	contract_context();
	FAILS(cuMemCreate, &handle, contract_grain(), &prop, 1);
	prop.location.id = 1000;
	FAILS(cuMemCreate, &handle, contract_grain(), &prop, 0);
}

FACT(vmm_create_takes, MANUAL, SAME,
	"creating a handle takes the memory, before it is mapped")
{
	CUmemGenericAllocationHandle handle;
	size_t before;

	contract_context();
	before = contract_free_bytes();
	handle = contract_handle(64 << 20);
	HOLDS(contract_free_bytes() + (64 << 20), <=, before);
	OK(cuMemRelease, handle);
	HOLDS(contract_free_bytes(), >=, before);
}

FACT(vmm_create_oom, MANUAL, SAME, "a handle larger than the GPU gives OUT_OF_MEMORY")
{
	CUmemAllocationProp prop = contract_prop();
	CUmemGenericAllocationHandle handle;

	contract_context();
	IS(ERROR_OUT_OF_MEMORY, cuMemCreate, &handle, 1ull << 46, &prop, 0);
	OK(cuMemRelease, contract_handle(contract_grain()));
}

FACT(vmm_reserve_free, MANUAL, SAME, "a reservation takes no memory")
{
	CUdeviceptr at;
	size_t before;

	contract_context();
	before = contract_free_bytes();
	at = contract_reserve(1ull << 36);
	HOLDS(contract_free_bytes() + (2 << 20), >=, before);
	OK(cuMemAddressFree, at, 1ull << 36);
}

FACT(vmm_reserve_align, MANUAL, SAME,
	"a reservation can be aligned, and its size must be whole")
{
	CUdeviceptr at = 1;

	contract_context();
	OK(cuMemAddressReserve, &at, 64 << 20, 64 << 20, 0, 0);
	HOLDS(at % (64 << 20), ==, 0);
	IS(ERROR_INVALID_VALUE, cuMemAddressReserve, &at, 0, 0, 0, 0);
	FAILS(cuMemAddressReserve, &at, 1000, 0, 0, 0);
}

FACT(vmm_round_trip, MANUAL, SAME, "created, mapped and allowed memory works")
{
	size_t grain;
	CUdeviceptr at;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(grain);
	OK(cuMemMap, at, grain, 0, contract_handle(grain), 0);
	contract_allow(at, grain);
	OK(cuMemsetD32_v2, at, 11, grain / 4);
	contract_step(NULL, at + grain - 4, 3, 1);
	HOLDS(contract_read(at + grain - 4), ==, 34);
}

FACT(vmm_no_offset, MANUAL, SAME, "a mapping starts at the handle's start")
{
	size_t grain;
	CUdeviceptr at;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(2 * grain);
	IS(ERROR_INVALID_VALUE, cuMemMap, at, grain, grain, contract_handle(2 * grain),
		0);
}

FACT(vmm_whole_handle, MANUAL, SAME, "a mapping has the handle's size")
{
	size_t grain;
	CUdeviceptr at;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(4 * grain);
	IS(ERROR_INVALID_VALUE, cuMemMap, at, 2 * grain, 0, contract_handle(grain), 0);
}

FACT(vmm_map_reserved, MANUAL, SAME, "only reserved addresses can be mapped")
{
	size_t grain;
	CUdeviceptr at;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(grain);
	FAILS(cuMemMap, at, 2 * grain, 0, contract_handle(2 * grain), 0);
	OK(cuMemAddressFree, at, grain);
	FAILS(cuMemMap, at, grain, 0, contract_handle(grain), 0);
}

FACT(vmm_map_twice, MANUAL, SAME, "an address is mapped once")
{
	size_t grain;
	CUdeviceptr at;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(grain);
	OK(cuMemMap, at, grain, 0, contract_handle(grain), 0);
	FAILS(cuMemMap, at, grain, 0, contract_handle(grain), 0);
}

FACT(vmm_access_needed, MANUAL, SAME, "a mapping without access cannot be used")
{
	size_t grain;
	CUdeviceptr at;
	uint32_t seen;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(grain);
	OK(cuMemMap, at, grain, 0, contract_handle(grain), 0);
	FAILS(cuMemcpyDtoH_v2, &seen, at, 4);
}

FACT(vmm_access_query, MANUAL, SAME,
	"access is none after a map, and read-write once set")
{
	CUmemLocation where = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
	unsigned long long flags = 99;
	size_t grain;
	CUdeviceptr at;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(grain);
	OK(cuMemMap, at, grain, 0, contract_handle(grain), 0);
	OK(cuMemGetAccess, &flags, &where, at);
	HOLDS(flags, ==, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	contract_allow(at, grain);
	OK(cuMemGetAccess, &flags, &where, at);
	HOLDS(flags, ==, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

FACT(vmm_access_unmapped, MANUAL, SAME, "access cannot be set where nothing is mapped")
{
	CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	size_t grain;
	CUdeviceptr at;

	contract_context();
	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	grain = contract_grain();
	at = contract_reserve(grain);
	FAILS(cuMemSetAccess, at, grain, &access, 1);
}

FACT(vmm_unmap_part, MANUAL, SAME, "part of a mapping cannot be unmapped")
{
	size_t grain;
	CUdeviceptr at;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(2 * grain);
	OK(cuMemMap, at, 2 * grain, 0, contract_handle(2 * grain), 0);
	IS(ERROR_INVALID_VALUE, cuMemUnmap, at, grain);
	OK(cuMemUnmap, at, 2 * grain);
}

FACT(vmm_unmap_several, MANUAL, SAME, "several whole mappings go by one call")
{
	size_t grain;
	CUdeviceptr at;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(3 * grain);
	for (int i = 0; i < 3; i++)
		OK(cuMemMap, at + i * grain, grain, 0, contract_handle(grain), 0);
	contract_allow(at, 3 * grain);
	OK(cuMemsetD8_v2, at, 1, 3 * grain);
	OK(cuMemUnmap, at, 3 * grain);
	OK(cuMemAddressFree, at, 3 * grain);
}

FACT(vmm_release_early, MANUAL, SAME, "a released handle lives on while it is mapped")
{
	CUmemGenericAllocationHandle handle;
	size_t before, bytes = 64 << 20;
	CUdeviceptr at;

	contract_context();
	before = contract_free_bytes();
	at = contract_reserve(bytes);
	handle = contract_handle(bytes);
	OK(cuMemMap, at, bytes, 0, handle, 0);
	OK(cuMemRelease, handle);
	contract_allow(at, bytes);
	OK(cuMemsetD32_v2, at, 5, 1);
	HOLDS(contract_read(at), ==, 5);
	HOLDS(contract_free_bytes() + bytes, <=, before);
	OK(cuMemUnmap, at, bytes);
	HOLDS(contract_free_bytes() + (2 << 20), >=, before);
}

FACT(vmm_release_twice, MANUAL, SAME, "a handle is released once")
{
	CUmemGenericAllocationHandle handle;

	contract_context();
	handle = contract_handle(contract_grain());
	OK(cuMemRelease, handle);
	IS(ERROR_INVALID_VALUE, cuMemRelease, handle);
}

FACT(vmm_free_mapped, MANUAL, SAME, "a reservation with a mapping cannot be given back")
{
	size_t grain;
	CUdeviceptr at;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(grain);
	OK(cuMemMap, at, grain, 0, contract_handle(grain), 0);
	FAILS(cuMemAddressFree, at, grain);
	OK(cuMemUnmap, at, grain);
	OK(cuMemAddressFree, at, grain);
}

FACT(vmm_moves, "Sluice rests on it", SAME,
	"contents go with the handle, not with the address")
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr first, second;
	size_t grain;

	contract_context();
	grain = contract_grain();
	first = contract_reserve(grain);
	second = contract_reserve(grain);
	handle = contract_handle(grain);
	OK(cuMemMap, first, grain, 0, handle, 0);
	contract_allow(first, grain);
	OK(cuMemsetD32_v2, first, 99, grain / 4);
	OK(cuCtxSynchronize);
	OK(cuMemUnmap, first, grain);
	OK(cuMemMap, second, grain, 0, handle, 0);
	contract_allow(second, grain);
	HOLDS(contract_read(second + grain - 4), ==, 99);
}

FACT(vmm_alias, MANUAL, SAME, "two mappings of one handle are the same memory")
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	size_t grain;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(2 * grain);
	handle = contract_handle(grain);
	OK(cuMemMap, at, grain, 0, handle, 0);
	OK(cuMemMap, at + grain, grain, 0, handle, 0);
	contract_allow(at, 2 * grain);
	OK(cuMemsetD32_v2, at, 17, 1);
	OK(cuCtxSynchronize);
	HOLDS(contract_read(at + grain), ==, 17);
}

FACT(vmm_properties, MANUAL, SAME, "a handle tells how it was made")
{
	CUmemAllocationProp prop = {0};

	contract_context();
	OK(cuMemGetAllocationPropertiesFromHandle, &prop,
		contract_handle(contract_grain()));
	HOLDS(prop.type, ==, CU_MEM_ALLOCATION_TYPE_PINNED);
	HOLDS(prop.location.type, ==, CU_MEM_LOCATION_TYPE_DEVICE);
	HOLDS(prop.location.id, ==, 0);
}

FACT(vmm_retain, MANUAL, SAME,
	"an address gives its handle, which then needs a release more")
{
	CUmemGenericAllocationHandle handle, again = 0;
	CUmemAllocationProp prop = {0};
	CUdeviceptr at;
	size_t grain;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(grain);
	handle = contract_handle(grain);
	OK(cuMemMap, at, grain, 0, handle, 0);
	OK(cuMemRetainAllocationHandle, &again, (void *)(uintptr_t)(at + 100));
	OK(cuMemGetAllocationPropertiesFromHandle, &prop, again);
	OK(cuMemRelease, handle);
	OK(cuMemRelease, again);
}

FACT(vmm_retain_alloc, "measured by others", SAME,
	"memory from cuMemAlloc has no such handle")
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(8 << 20);
	IS(ERROR_INVALID_VALUE, cuMemRetainAllocationHandle, &handle,
		(void *)(uintptr_t)at);
}

FACT(vmm_free_alloc, MANUAL, SAME, "cuMemFree does not free a mapping")
{
	CUdeviceptr at;
	size_t grain;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(grain);
	OK(cuMemMap, at, grain, 0, contract_handle(grain), 0);
	IS(ERROR_INVALID_VALUE, cuMemFree_v2, at);
}

FACT(vmm_type, MANUAL, SAME, "a mapping says it is device memory")
{
	unsigned int type = 0;
	CUdeviceptr at;
	size_t grain;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(grain);
	OK(cuMemMap, at, grain, 0, contract_handle(grain), 0);
	contract_allow(at, grain);
	OK(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
	HOLDS(type, ==, CU_MEMORYTYPE_DEVICE);
}

FACT(vmm_export_unasked, MANUAL, SAME, "a handle made without a type cannot be exported")
{
	int fd = -1;

	contract_context();
	FAILS(cuMemExportToShareableHandle, &fd, contract_handle(contract_grain()),
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

/* Second process: memory behind descriptor 3 must hold 4242, and then holds 4343. */
int contract_vmm_import(void)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	size_t grain;

	contract_context();
	grain = contract_grain();
	OK(cuMemImportFromShareableHandle, &handle, (void *)(uintptr_t)3,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	at = contract_reserve(grain);
	OK(cuMemMap, at, grain, 0, handle, 0);
	contract_allow(at, grain);
	HOLDS(contract_read(at), ==, 4242);
	OK(cuMemsetD32_v2, at, 4343, 1);
	OK(cuCtxSynchronize);
	return 0;
}

FACT(vmm_export, MANUAL, SAME, "a descriptor carries a handle to another process")
{
	CUmemAllocationProp prop = contract_prop();
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	size_t grain;
	int fd = -1;

	contract_context();
	grain = contract_grain();
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	OK(cuMemCreate, &handle, grain, &prop, 0);
	at = contract_reserve(grain);
	OK(cuMemMap, at, grain, 0, handle, 0);
	contract_allow(at, grain);
	OK(cuMemsetD32_v2, at, 4242, 1);
	OK(cuCtxSynchronize);
	OK(cuMemExportToShareableHandle, &fd, handle,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	HOLDS(contract_again("vmm_import", fd, NULL, 0), ==, 0);
	HOLDS(contract_read(at), ==, 4343);
	close(fd);
}

FACT(vmm_many, "Sluice rests on it", SAME,
	"hundreds of handles side by side are one range to use")
{
	enum { COUNT = 200 };
	size_t grain;
	CUdeviceptr at;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(COUNT * grain);
	for (int i = 0; i < COUNT; i++) {
		CUmemGenericAllocationHandle handle = contract_handle(grain);

		OK(cuMemMap, at + i * grain, grain, 0, handle, 0);
		OK(cuMemRelease, handle);
	}
	contract_allow(at, COUNT * grain);
	OK(cuMemsetD32_v2, at, 6, COUNT * grain / 4);
	HOLDS(contract_read(at + COUNT * grain / 2 - 4), ==, 6);
	/* A copy over the seam of two handles. */
	OK(cuMemcpyDtoD_v2, at + grain - 4096, at + 5 * grain - 4096, 8192);
	OK(cuMemUnmap, at, COUNT * grain);
	OK(cuMemAddressFree, at, COUNT * grain);
}

FACT(vmm_copy_across, "Sluice rests on it", SAME,
	"a copy between devices needs no more than each one's access to its own memory")
{
	CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemAllocationProp prop = contract_prop();
	CUmemGenericAllocationHandle handle;
	CUcontext first, second;
	CUdeviceptr at[2];
	size_t grain;
	int count = 0;

	first = contract_context();
	OK(cuDeviceGetCount, &count);
	if (count < 2)
		contract_skip("needs two GPUs");
	OK(cuDevicePrimaryCtxRetain, &second, 1);
	grain = contract_grain();
	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	for (int dev = 0; dev < 2; dev++) {
		prop.location.id = access.location.id = dev;
		OK(cuMemCreate, &handle, grain, &prop, 0);
		at[dev] = contract_reserve(grain);
		OK(cuMemMap, at[dev], grain, 0, handle, 0);
		OK(cuMemSetAccess, at[dev], grain, &access, 1);
	}
	OK(cuMemsetD32_v2, at[0], 4711, grain / 4);
	OK(cuMemcpyPeer, at[1], second, at[0], first, grain);
	OK(cuCtxSynchronize);
	OK(cuCtxSetCurrent, second);
	HOLDS(contract_read(at[1] + grain - 4), ==, 4711);
	OK(cuMemsetD32_v2, at[1], 42, grain / 4);
	OK(cuMemcpyDtoD_v2, at[0], at[1], grain);
	OK(cuCtxSynchronize);
	OK(cuCtxSetCurrent, first);
	HOLDS(contract_read(at[0] + grain - 4), ==, 42);
}
