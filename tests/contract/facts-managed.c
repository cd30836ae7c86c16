/*
 * facts-managed - advice, prefetches, and attributes of a range of managed memory
 */
#include "contract.h"

#define MANUAL "driver API manual"

enum { MIB = 1 << 20 };

static CUdeviceptr managed_of(size_t bytes)
{
	CUdeviceptr at = 0;
	int can = 0;

	contract_context();
	OK(cuDeviceGetAttribute, &can, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0);
	if (!can)
		contract_skip("no concurrent managed access here");
	OK(cuMemAllocManaged, &at, bytes, CU_MEM_ATTACH_GLOBAL);
	return at;
}

static int ask(CUmem_range_attribute attribute, CUdeviceptr at, size_t bytes)
{
	int value = -9;

	OK(cuMemRangeGetAttribute, &value, sizeof(value), attribute, at, bytes);
	return value;
}

FACT(managed_untold, MANUAL, SAME,
	"a fresh range prefers nothing and was prefetched nowhere")
{
	CUdeviceptr at = managed_of(4 * MIB);

	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, 4 * MIB), ==, 0);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, at, 4 * MIB), ==,
		CU_DEVICE_INVALID);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, at, 4 * MIB), ==,
		CU_DEVICE_INVALID);
}

FACT(managed_read_mostly, MANUAL, SAME,
	"advice holds for its range, and all must have it")
{
	CUdeviceptr at = managed_of(4 * MIB);

	OK(cuMemAdvise, at, 2 * MIB, CU_MEM_ADVISE_SET_READ_MOSTLY, 0);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, 2 * MIB), ==, 1);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, 4 * MIB), ==, 0);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at + 2 * MIB, 2 * MIB), ==, 0);
	OK(cuMemAdvise, at + 2 * MIB, 2 * MIB, CU_MEM_ADVISE_SET_READ_MOSTLY, 0);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, 4 * MIB), ==, 1);
	OK(cuMemAdvise, at + MIB, MIB, CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, 4 * MIB), ==, 0);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at, MIB), ==, 1);
}

FACT(managed_preferred, MANUAL, SAME, "a preferred place is told, and forgotten")
{
	CUdeviceptr at = managed_of(4 * MIB);

	OK(cuMemAdvise, at, 4 * MIB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, at, 4 * MIB), ==, 0);
	OK(cuMemAdvise, at, 2 * MIB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, at, 2 * MIB), ==,
		CU_DEVICE_CPU);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, at, 4 * MIB), ==,
		CU_DEVICE_INVALID);
	OK(cuMemAdvise, at, 4 * MIB, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, 0);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, at, 2 * MIB), ==,
		CU_DEVICE_INVALID);
}

FACT(managed_accessed_by, "driver API manual; the order: tests of cuda-bindings", SAME,
	"who accesses a range is a list: GPUs, the host, and filled up with nobody")
{
	CUdeviceptr at = managed_of(4 * MIB);
	int list[3] = {7, 7, 7};

	OK(cuMemAdvise, at, 4 * MIB, CU_MEM_ADVISE_SET_ACCESSED_BY, 0);
	OK(cuMemAdvise, at, 4 * MIB, CU_MEM_ADVISE_SET_ACCESSED_BY, CU_DEVICE_CPU);
	OK(cuMemRangeGetAttribute, list, sizeof(list), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
		at, 4 * MIB);
	HOLDS(list[0], ==, 0);
	HOLDS(list[1], ==, CU_DEVICE_CPU);
	HOLDS(list[2], ==, CU_DEVICE_INVALID);
	OK(cuMemAdvise, at, 4 * MIB, CU_MEM_ADVISE_UNSET_ACCESSED_BY, CU_DEVICE_CPU);
	OK(cuMemRangeGetAttribute, list, sizeof(list), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
		at, 4 * MIB);
	HOLDS(list[0], ==, 0);
	HOLDS(list[1], ==, CU_DEVICE_INVALID);
	OK(cuMemAdvise, at, 2 * MIB, CU_MEM_ADVISE_UNSET_ACCESSED_BY, 0);
	OK(cuMemRangeGetAttribute, list, sizeof(list), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
		at, 4 * MIB);
	HOLDS(list[0], ==, CU_DEVICE_INVALID);
}

FACT(managed_prefetch, MANUAL, SAME, "the last prefetch is told, and changes no contents")
{
	CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
	CUdeviceptr at = managed_of(4 * MIB);

	*(volatile uint32_t *)(uintptr_t)at = 21;
	OK(cuMemPrefetchAsync, at, 4 * MIB, 0, NULL);
	contract_step(NULL, at, 2, 0);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, at, 4 * MIB), ==, 0);
	OK(cuMemPrefetchAsync_v2, at, 4 * MIB, host, 0, NULL);
	OK(cuCtxSynchronize);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, at, 4 * MIB), ==,
		CU_DEVICE_CPU);
	HOLDS(*(volatile uint32_t *)(uintptr_t)at, ==, 42);
}

FACT(managed_places, MANUAL, SAME, "places are told by kind and number as well")
{
	CUmemLocation node = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
	CUdeviceptr at = managed_of(4 * MIB);

	OK(cuMemAdvise_v2, at, 4 * MIB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, node);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, at, 4 * MIB), ==,
		CU_MEM_LOCATION_TYPE_HOST_NUMA);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, at, 4 * MIB), ==, 0);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, at, 4 * MIB), ==,
		CU_MEM_LOCATION_TYPE_INVALID);
}

FACT(managed_many, MANUAL, SAME, "several attributes of a range come by one call")
{
	CUmem_range_attribute which[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
		CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
	size_t sizes[] = {sizeof(int), sizeof(int)};
	CUdeviceptr at = managed_of(4 * MIB);
	int mostly = 9, place = 9;
	void *data[] = {&mostly, &place};

	OK(cuMemAdvise, at, 4 * MIB, CU_MEM_ADVISE_SET_READ_MOSTLY, 0);
	OK(cuMemAdvise, at, 4 * MIB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0);
	OK(cuMemRangeGetAttributes, data, sizes, which, 2, at, 4 * MIB);
	HOLDS(mostly, ==, 1);
	HOLDS(place, ==, 0);
}

FACT(managed_refused, MANUAL, SAME,
	"other memory, other devices and wrong sizes are refused")
{
	CUdeviceptr at = managed_of(4 * MIB), plain = contract_alloc(4096);
	int value;

	FAILS(cuMemAdvise, plain, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0);
	FAILS(cuMemPrefetchAsync, plain, 4096, 0, NULL);
	FAILS(cuMemAdvise, at, 8 * MIB, CU_MEM_ADVISE_SET_READ_MOSTLY, 0);
	FAILS(cuMemAdvise, at, 4 * MIB, (CUmem_advise)77, 0);
	IS(ERROR_INVALID_DEVICE, cuMemAdvise, at, 4 * MIB,
		CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 1000);
	IS(ERROR_INVALID_DEVICE, cuMemPrefetchAsync, at, 4 * MIB, 1000, NULL);
	FAILS(cuMemRangeGetAttribute, &value, 2, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at,
		4 * MIB);
	FAILS(cuMemRangeGetAttribute, &value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
		plain, 4096);
}

FACT(managed_batch, "driver API manual of CUDA 13", SAME,
	"prefetches go in batches, each to its place")
{
	CUmemLocation where[] = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, {CU_MEM_LOCATION_TYPE_HOST, 0}};
	CUdeviceptr at = managed_of(6 * MIB);
	CUdeviceptr ptrs[] = {at, at + 2 * MIB, at + 4 * MIB};
	size_t sizes[] = {2 * MIB, 2 * MIB, 2 * MIB}, first[] = {0, 2}, wrong[] = {1, 2};
	CUstream stream;

	OK(cuStreamCreate, &stream, 0);
	OK(cuMemPrefetchBatchAsync, ptrs, sizes, 3, where, first, 2, 0, stream);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, at, 4 * MIB), ==, 0);
	HOLDS(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, at + 4 * MIB, 2 * MIB),
		==, CU_DEVICE_CPU);
	FAILS(cuMemPrefetchBatchAsync, ptrs, sizes, 3, where, wrong, 2, 0, stream);
	FAILS(cuMemPrefetchBatchAsync, ptrs, sizes, 3, where, first, 2, 0, NULL);
	OK(cuMemDiscardBatchAsync, ptrs, sizes, 1, 0, stream);
	OK(cuMemDiscardAndPrefetchBatchAsync, ptrs, sizes, 3, where, first, 2, 0, stream);
	FAILS(cuMemDiscardBatchAsync, ptrs, sizes, 1, 1, stream);
	OK(cuStreamSynchronize, stream);
}

FACT(managed_attach, MANUAL, SAME,
	"managed memory is attached whole, to all or to a stream")
{
	CUdeviceptr at = managed_of(4 * MIB), plain = contract_alloc(4096);
	CUstream stream;

	OK(cuStreamCreate, &stream, 0);
	OK(cuStreamAttachMemAsync, stream, at, 0, CU_MEM_ATTACH_SINGLE);
	OK(cuStreamAttachMemAsync, stream, at, 4 * MIB, CU_MEM_ATTACH_GLOBAL);
	FAILS(cuStreamAttachMemAsync, stream, at, MIB, CU_MEM_ATTACH_GLOBAL);
	FAILS(cuStreamAttachMemAsync, stream, at, 0, 0);
	FAILS(cuStreamAttachMemAsync, NULL, at, 0, CU_MEM_ATTACH_SINGLE);
	FAILS(cuStreamAttachMemAsync, stream, plain, 0, CU_MEM_ATTACH_GLOBAL);
	OK(cuStreamSynchronize, stream);
}
