/*
 * facts-memory - cuMemAlloc and what can be asked about it, host memory, managed memory
 */
#include "contract.h"

#include <stdlib.h>

#define MANUAL "driver API manual"

FACT(alloc_zero, MANUAL, SAME, "an allocation of no bytes is refused")
{
	CUdeviceptr at;

	contract_context();
	IS(ERROR_INVALID_VALUE, cuMemAlloc_v2, &at, 0);
}

FACT(alloc_null, MANUAL, SAME, "the address needs a place")
{
	contract_context();
	IS(ERROR_INVALID_VALUE, cuMemAlloc_v2, NULL, 1024);
}

FACT(alloc_align, MANUAL, SAME, "addresses are multiples of 256")
{
	contract_context();
	for (size_t bytes = 1; bytes < 5 << 20; bytes = bytes * 3 + 1)
		HOLDS(contract_alloc(bytes) % 256, ==, 0);
}

FACT(alloc_apart, MANUAL, SAME, "allocations do not overlap, and keep what was written")
{
	CUdeviceptr at[16];

	contract_context();
	for (uint32_t i = 0; i < 16; i++) {
		at[i] = contract_alloc(100 + 5000 * i);
		OK(cuMemsetD8_v2, at[i], (unsigned char)i, 100 + 5000 * i);
	}
	for (uint32_t i = 0; i < 16; i++) {
		HOLDS(contract_read(at[i]), ==, i * 0x01010101u);
		HOLDS(contract_read(at[i] + 96 + 5000 * i), ==, i * 0x01010101u);
	}
}

FACT(alloc_too_big, MANUAL, SAME, "more than the GPU has gives OUT_OF_MEMORY")
{
	size_t free_bytes, total;
	CUdeviceptr at = 4711;

	contract_context();
	OK(cuMemGetInfo_v2, &free_bytes, &total);
	IS(ERROR_OUT_OF_MEMORY, cuMemAlloc_v2, &at, total + (64 << 20));
	IS(ERROR_OUT_OF_MEMORY, cuMemAlloc_v2, &at, 4 * total);
}

FACT(alloc_absurd, "assumed", SAME, "absurd sizes give OUT_OF_MEMORY as well")
{
	CUdeviceptr at;

	contract_context();
	IS(ERROR_OUT_OF_MEMORY, cuMemAlloc_v2, &at, 1ull << 50);
	IS(ERROR_OUT_OF_MEMORY, cuMemAlloc_v2, &at, SIZE_MAX);
}

FACT(alloc_after_oom, MANUAL, SAME, "out of memory is not sticky")
{
	CUdeviceptr at;

	contract_context();
	IS(ERROR_OUT_OF_MEMORY, cuMemAlloc_v2, &at, 1ull << 48);
	at = contract_alloc(1 << 20);
	OK(cuMemsetD8_v2, at, 1, 1 << 20);
	OK(cuCtxSynchronize);
	OK(cuMemFree_v2, at);
}

FACT(alloc_until_full, "assumed", SAME, "a full GPU gives all of it back after the frees")
{
	enum { PIECE = 64 << 20 };
	static CUdeviceptr at[1 << 14];
	CUdeviceptr one;
	size_t before, count = 0;

	contract_context();
	before = contract_free_bytes();
	while (count < 1 << 14 && CU(cuMemAlloc_v2)(&at[count], PIECE) == CUDA_SUCCESS)
		count++;
	HOLDS(count, >, 0);
	IS(ERROR_OUT_OF_MEMORY, cuMemAlloc_v2, &one, PIECE);
	HOLDS(contract_free_bytes(), <, 2ull * PIECE);
	for (size_t i = 0; i < count; i++)
		OK(cuMemFree_v2, at[i]);
	OK(cuCtxSynchronize);
	HOLDS(contract_free_bytes(), >=, before);
	one = contract_alloc(PIECE);
	OK(cuMemFree_v2, one);
}

FACT(alloc_many_small, "measured by others", SAME,
	"small allocations share pages: ten thousand of 1 KiB take less than 64 MiB")
{
	size_t before;

	contract_context();
	before = contract_free_bytes();
	for (int i = 0; i < 10000; i++)
		contract_alloc(1024);
	HOLDS(before - contract_free_bytes(), <, 64 << 20);
}

FACT(free_null, MANUAL, SAME, "freeing address 0 does nothing")
{
	contract_context();
	OK(cuMemFree_v2, (CUdeviceptr)0);
}

FACT(free_twice, MANUAL, SAME, "a second free gives INVALID_VALUE")
{
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(3 << 20);
	OK(cuMemFree_v2, at);
	IS(ERROR_INVALID_VALUE, cuMemFree_v2, at);
}

FACT(free_twice_small, MANUAL, SAME, "so it does for a small allocation")
{
	CUdeviceptr at, other;

	contract_context();
	other = contract_alloc(512);
	at = contract_alloc(512);
	OK(cuMemFree_v2, at);
	IS(ERROR_INVALID_VALUE, cuMemFree_v2, at);
	OK(cuMemFree_v2, other);
}

FACT(free_inside, MANUAL, SAME, "an address inside an allocation cannot be freed")
{
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(3 << 20);
	IS(ERROR_INVALID_VALUE, cuMemFree_v2, at + 512);
	OK(cuMemFree_v2, at);
}

FACT(free_junk, MANUAL, SAME, "an address nobody allocated cannot be freed")
{
	static int host;

	contract_context();
	IS(ERROR_INVALID_VALUE, cuMemFree_v2, (CUdeviceptr)(uintptr_t)&host);
	IS(ERROR_INVALID_VALUE, cuMemFree_v2, (CUdeviceptr)0x1234500);
}

FACT(free_waits, "measured by others", SAME, "cuMemFree waits for the work before it")
{
	CUdeviceptr at;
	CUstream stream;

	contract_context();
	at = contract_alloc(3 << 20);
	contract_kernel("prog_spin");
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	contract_spin(stream, 300);
	IS(ERROR_NOT_READY, cuStreamQuery, stream);
	OK(cuMemFree_v2, at);
	OK(cuStreamQuery, stream);
}

FACT(free_elsewhere, MANUAL, SAME, "memory may be freed while another context is current")
{
	CUcontext made;
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(1 << 20);
	OK(cuCtxCreate_v2, &made, 0, 0);
	OK(cuMemFree_v2, at);
}

FACT(info_moves, MANUAL, SAME,
	"free memory falls with an allocation and rises with the free")
{
	size_t before, held;
	CUdeviceptr at;

	contract_context();
	before = contract_free_bytes();
	at = contract_alloc(64 << 20);
	held = contract_free_bytes();
	HOLDS(held + (64 << 20), <=, before);
	OK(cuMemFree_v2, at);
	OK(cuCtxSynchronize);
	HOLDS(contract_free_bytes(), >=, before);
}

FACT(info_null, "frameworks rely on it (peer-failures row 1)", SAME,
	"cuMemGetInfo takes NULL for what nobody wants to know")
{
	size_t value = 0;

	contract_context();
	OK(cuMemGetInfo_v2, &value, NULL);
	HOLDS(value, >, 0);
	OK(cuMemGetInfo_v2, NULL, &value);
	OK(cuMemGetInfo_v2, NULL, NULL);
}

FACT(info_bounds, MANUAL, SAME, "free is never above total")
{
	size_t free_bytes = 0, total = 0;

	contract_context();
	OK(cuMemGetInfo_v2, &free_bytes, &total);
	HOLDS(free_bytes, <=, total);
	HOLDS(free_bytes, >, 0);
}

FACT(range_inside, MANUAL, SAME, "the range of any address inside is the allocation's")
{
	CUdeviceptr at, base = 0;
	size_t bytes = 0;

	contract_context();
	at = contract_alloc(40 << 20);
	OK(cuMemGetAddressRange_v2, &base, &bytes, at + (35 << 20) + 17);
	HOLDS(base, ==, at);
	HOLDS(bytes, ==, 40 << 20);
}

FACT(range_exact, "assumed", SAME,
	"the range has the size asked for, not the size behind it")
{
	CUdeviceptr at, base = 0;
	size_t bytes = 0;

	contract_context();
	at = contract_alloc(1000);
	OK(cuMemGetAddressRange_v2, &base, &bytes, at + 999);
	HOLDS(base, ==, at);
	HOLDS(bytes, ==, 1000);
}

FACT(range_null, MANUAL, SAME, "base and size may each be left out")
{
	CUdeviceptr at, base = 0;
	size_t bytes = 0;

	contract_context();
	at = contract_alloc(4096);
	OK(cuMemGetAddressRange_v2, NULL, &bytes, at);
	HOLDS(bytes, ==, 4096);
	OK(cuMemGetAddressRange_v2, &base, NULL, at);
	HOLDS(base, ==, at);
}

FACT(range_unknown, MANUAL, SAME, "an address nobody allocated has no range")
{
	CUdeviceptr at, base;
	size_t bytes;

	contract_context();
	IS(ERROR_NOT_FOUND, cuMemGetAddressRange_v2, &base, &bytes,
		(CUdeviceptr)0x1234500);
	at = contract_alloc(3 << 20);
	OK(cuMemFree_v2, at);
	IS(ERROR_NOT_FOUND, cuMemGetAddressRange_v2, &base, &bytes, at);
}

FACT(pointer_basics, MANUAL, SAME, "device memory says type, device, context and address")
{
	CUcontext context = contract_context(), seen = NULL;
	CUdeviceptr at = contract_alloc(1 << 20), own = 0;
	unsigned int type = 0, managed = 9;
	int ordinal = -1;

	OK(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
	HOLDS(type, ==, CU_MEMORYTYPE_DEVICE);
	OK(cuPointerGetAttribute, &seen, CU_POINTER_ATTRIBUTE_CONTEXT, at + 5);
	HOLDS((uintptr_t)seen, ==, (uintptr_t)context);
	OK(cuPointerGetAttribute, &ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at);
	HOLDS(ordinal, ==, 0);
	OK(cuPointerGetAttribute, &own, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at + 5);
	HOLDS(own, ==, at + 5);
	OK(cuPointerGetAttribute, &managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at);
	HOLDS(managed, ==, 0);
}

FACT(pointer_range, MANUAL, SAME, "the range is also an attribute")
{
	CUdeviceptr at, start = 0;
	size_t bytes = 0;

	contract_context();
	at = contract_alloc(33 << 20);
	OK(cuPointerGetAttribute, &start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
		at + (33 << 20) - 1);
	HOLDS(start, ==, at);
	OK(cuPointerGetAttribute, &bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at);
	HOLDS(bytes, ==, 33 << 20);
}

FACT(pointer_buffer_id, MANUAL, SAME, "a buffer id is never given twice")
{
	unsigned long long first = 0, inside = 0, second = 0;
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(1 << 20);
	OK(cuPointerGetAttribute, &first, CU_POINTER_ATTRIBUTE_BUFFER_ID, at);
	OK(cuPointerGetAttribute, &inside, CU_POINTER_ATTRIBUTE_BUFFER_ID, at + 4096);
	HOLDS(first, ==, inside);
	OK(cuMemFree_v2, at);
	at = contract_alloc(1 << 20);
	OK(cuPointerGetAttribute, &second, CU_POINTER_ATTRIBUTE_BUFFER_ID, at);
	HOLDS(first, !=, second);
}

#define ID_HANDLES 32
#define ID_BLOCKS  128

static unsigned long long id_at(CUdeviceptr at)
{
	unsigned long long id = 0;

	OK(cuPointerGetAttribute, &id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at);
	HOLDS(id, !=, 0);
	return id;
}

FACT(pointer_buffer_id_apart, MANUAL, SAME,
	"no two pieces of memory have one buffer id, whatever they were made by")
{
	unsigned long long ids[ID_HANDLES + ID_BLOCKS];
	unsigned int count = 0, alike = 0;
	size_t grain;
	CUdeviceptr at;

	contract_context();
	grain = contract_grain();
	at = contract_reserve(ID_HANDLES * grain);
	for (; count < ID_HANDLES; count++) {
		OK(cuMemMap, at + count * grain, grain, 0, contract_handle(grain), 0);
		ids[count] = id_at(at + count * grain);
	}
	for (; count < ID_HANDLES + ID_BLOCKS; count++)
		ids[count] = id_at(contract_alloc(4096));
	for (unsigned int i = 0; i < count; i++)
		for (unsigned int k = 0; k < i; k++)
			alike += ids[i] == ids[k];
	HOLDS(alike, ==, 0);
}

FACT(pointer_foreign, MANUAL, SAME, "memory the driver does not know has no attributes")
{
	static int host;
	unsigned int type;

	contract_context();
	IS(ERROR_INVALID_VALUE, cuPointerGetAttribute, &type,
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&host);
}

FACT(pointer_foreign_many, MANUAL, SAME, "asked for several, it says zeros and no error")
{
	CUpointer_attribute which[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
	unsigned int type = 9;
	CUdeviceptr at = 9;
	void *data[] = {&type, &at};
	static int host;

	contract_context();
	OK(cuPointerGetAttributes, 2, which, data, (CUdeviceptr)(uintptr_t)&host);
	HOLDS(type, ==, 0);
	HOLDS(at, ==, 0);
}

FACT(pointer_many, MANUAL, SAME, "several attributes come by one call")
{
	CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	unsigned int type = 0;
	CUdeviceptr at, start = 0;
	size_t bytes = 0;
	void *data[] = {&type, &start, &bytes};

	contract_context();
	at = contract_alloc(5000);
	OK(cuPointerGetAttributes, 3, which, data, at + 100);
	HOLDS(type, ==, CU_MEMORYTYPE_DEVICE);
	HOLDS(start, ==, at);
	HOLDS(bytes, ==, 5000);
}

FACT(pitch, MANUAL, SAME,
	"rows of a pitched allocation are at least as wide, and aligned")
{
	CUdeviceptr at = 0;
	size_t pitch = 0;

	contract_context();
	OK(cuMemAllocPitch_v2, &at, &pitch, 1000, 20, 4);
	HOLDS(pitch, >=, 1000);
	HOLDS(pitch % 32, ==, 0);
	OK(cuMemsetD2D8_v2, at, pitch, 3, 1000, 20);
	HOLDS(contract_read(at + 19 * pitch + 996), ==, 0x03030303);
	OK(cuMemFree_v2, at);
}

FACT(pitch_element, MANUAL, SAME,
	"elements of a pitched allocation have 4, 8 or 16 bytes")
{
	CUdeviceptr at;
	size_t pitch;

	contract_context();
	IS(ERROR_INVALID_VALUE, cuMemAllocPitch_v2, &at, &pitch, 1000, 20, 3);
}

FACT(host_alloc, MANUAL, SAME, "pinned host memory has its own address on the device")
{
	unsigned int type = 0;
	CUdeviceptr device = 0;
	uint32_t *host = NULL;

	contract_context();
	OK(cuMemAllocHost_v2, (void **)&host, 1 << 20);
	OK(cuMemHostGetDevicePointer_v2, &device, host, 0);
	HOLDS(device, ==, (uintptr_t)host);
	OK(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device);
	HOLDS(type, ==, CU_MEMORYTYPE_HOST);
	host[0] = 5;
	contract_step(NULL, device, 10, 1);
	OK(cuCtxSynchronize);
	HOLDS(host[0], ==, 51);
	OK(cuMemFreeHost, host);
}

FACT(host_no_charge, MANUAL, SAME, "host memory takes none of the GPU's")
{
	size_t before;
	void *host;

	contract_context();
	/* The first one may bring something of the driver's own with it. */
	OK(cuMemHostAlloc, &host, 1 << 20, 0);
	before = contract_free_bytes();
	OK(cuMemHostAlloc, &host, 64 << 20, CU_MEMHOSTALLOC_PORTABLE);
	HOLDS(contract_free_bytes() + (8 << 20), >=, before);
}

FACT(host_free_bad, MANUAL, SAME, "only pinned memory can be freed as such")
{
	static int host;

	contract_context();
	IS(ERROR_INVALID_VALUE, cuMemFreeHost, &host);
}

FACT(host_register, MANUAL, SAME, "ordinary memory can be registered once at a time")
{
	size_t bytes = 1 << 20;
	void *host = aligned_alloc(4096, bytes);

	contract_context();
	OK(cuMemHostRegister_v2, host, bytes, 0);
	IS(ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2, host, bytes, 0);
	/* Only by the address it was registered by (seen by the tests of cuda-python 12.3.0). */
	IS(ERROR_INVALID_VALUE, cuMemHostUnregister, (char *)host + 80);
	OK(cuMemHostUnregister, host);
	IS(ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister, host);
	OK(cuMemHostRegister_v2, host, bytes, 0);
}

FACT(managed, MANUAL, SAME, "managed memory says so, and both sides see it")
{
	unsigned int managed = 0;
	CUdeviceptr at = 0;

	contract_context();
	IS(ERROR_INVALID_VALUE, cuMemAllocManaged, &at, 4096, 0);
	OK(cuMemAllocManaged, &at, 4096, CU_MEM_ATTACH_GLOBAL);
	OK(cuPointerGetAttribute, &managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at);
	HOLDS(managed, ==, 1);
	*(volatile uint32_t *)(uintptr_t)at = 4;
	contract_step(NULL, at, 2, 1);
	OK(cuCtxSynchronize);
	HOLDS(*(volatile uint32_t *)(uintptr_t)at, ==, 9);
	OK(cuMemFree_v2, at);
}

FACT(pool_async, MANUAL, SAME, "stream-ordered memory works in the order of its stream")
{
	CUdeviceptr at = 0;
	CUstream stream;
	uint32_t seen = 0;

	contract_context();
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuMemAllocAsync, &at, 1 << 20, stream);
	OK(cuMemsetD32Async, at, 123, 1, stream);
	OK(cuMemcpyDtoHAsync_v2, &seen, at, 4, stream);
	OK(cuMemFreeAsync, at, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(seen, ==, 123);
}

FACT(pool_free_sync, MANUAL, SAME, "cuMemFree frees stream-ordered memory too")
{
	CUdeviceptr at = 0;

	contract_context();
	OK(cuMemAllocAsync, &at, 1 << 20, NULL);
	OK(cuStreamSynchronize, NULL);
	OK(cuMemFree_v2, at);
	IS(ERROR_INVALID_VALUE, cuMemFree_v2, at);
}
