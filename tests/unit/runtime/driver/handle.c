/*
 * handle - the program's own handles: lives, places, refusals, faults, threads, children
 */
#include "../vmm-test.h"

#include <errno.h>
#include <pthread.h>

/* --- a handle's life -------------------------------------------------------------------------- */

/* peer-failures rows 7 and 31: references and mappings end in any order. Nothing is given back
 * twice; an unmatched end is refused and counts nowhere. */
static void body_life(void)
{
	CUmemGenericAllocationHandle a, b;
	CUdeviceptr at;

	start();
	at = reserve(8 * GRAIN);
	a = create(2 * GRAIN);
	b = create(GRAIN);
	CHECK(a != b);
	check_books(3 * GRAIN);
	CHECK_EQ(cuMemMap(at, 2 * GRAIN, 0, a, 0), CUDA_SUCCESS);
	allow(at, 2 * GRAIN);
	/* Released, but mapped: it lives, and is charged. */
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	check_books(3 * GRAIN);
	CHECK_EQ(cuMemRelease(a), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(VMM(last), 0);
	CHECK_EQ(cuMemMap(at + 4 * GRAIN, 2 * GRAIN, 0, a, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemUnmap(at, 2 * GRAIN), CUDA_SUCCESS);
	check_books(GRAIN);
	CHECK_EQ(cuMemUnmap(at, 2 * GRAIN), CUDA_ERROR_INVALID_VALUE);
	/* The other order. */
	CHECK_EQ(cuMemMap(at, GRAIN, 0, b, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemUnmap(at, GRAIN), CUDA_SUCCESS);
	check_books(GRAIN);
	CHECK_EQ(cuMemRelease(b), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(b), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemAddressFree(at, 8 * GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(at, 8 * GRAIN), CUDA_ERROR_INVALID_VALUE);
	finish();
}

static void body_retain(void)
{
	CUmemGenericAllocationHandle a, again = 0;
	CUdeviceptr at;

	start();
	at = reserve(2 * GRAIN);
	a = create(GRAIN);
	CHECK_EQ(cuMemMap(at, GRAIN, 0, a, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(at + 100)), 0);
	CHECK_EQ(again, a);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(a), CUDA_ERROR_INVALID_VALUE);
	/* Without a reference left the address still gives the handle that was mapped. */
	again = 0;
	CHECK_EQ(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at), 0);
	CHECK_EQ(again, a);
	CHECK_EQ(cuMemMap(at + GRAIN, GRAIN, 0, again, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemUnmap(at, 2 * GRAIN), CUDA_SUCCESS);
	check_books(GRAIN);
	CHECK_EQ(cuMemRelease(again), CUDA_SUCCESS);
	CHECK_EQ(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemAddressFree(at, 2 * GRAIN), CUDA_SUCCESS);
	finish();
}

/* PyTorch's way: a large range, pieces made, mapped and released at once, unmapped in runs. */
static void body_expandable(void)
{
	enum { COUNT = 512 };
	CUdeviceptr at;

	start();
	at = reserve(COUNT * GRAIN);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < COUNT; i++) {
			/* Not in order, so that the index is put together from all sides. */
			CUdeviceptr piece = at + (uint64_t)(i * 37 % COUNT) * GRAIN;
			CUmemGenericAllocationHandle handle = create(GRAIN);

			CHECK_EQ(cuMemMap(piece, GRAIN, 0, handle, 0), CUDA_SUCCESS);
			allow(piece, GRAIN);
			CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
		}
		CHECK_EQ(sl_handle_count().mappings, COUNT);
		CHECK_EQ(cuMemUnmap(at + 10 * GRAIN, 100 * GRAIN), CUDA_SUCCESS);
		CHECK_EQ(sl_handle_count().mappings, COUNT - 100);
		check_books((COUNT - 100) * GRAIN);
		CHECK_EQ(cuMemUnmap(at + 5 * GRAIN, 6 * GRAIN), CUDA_ERROR_INVALID_VALUE);
		CHECK_EQ(cuMemUnmap(at, 10 * GRAIN), CUDA_SUCCESS);
		CHECK_EQ(cuMemUnmap(at + 110 * GRAIN, (COUNT - 110) * GRAIN), 0);
		check_books(0);
	}
	CHECK_EQ(cuMemAddressFree(at, COUNT * GRAIN), CUDA_SUCCESS);
	finish();
}

/* --- where memory is -------------------------------------------------------------------------- */

/* peer-failures row 2: a location that is no device's has an id without a meaning, and costs no
 * GPU memory. */
static void body_locations(void)
{
	static const struct {
		CUmemLocationType type;
		int id;
		uint64_t charged_bytes;
	} rows[] = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 1, GRAIN},
		{CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN, 0x0101, GRAIN},
		{CU_MEM_LOCATION_TYPE_HOST, 0x7fffffff, 0},
		{CU_MEM_LOCATION_TYPE_HOST, -1, 0},
		{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, 0},
		{CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, -559038737, 0},
		{CU_MEM_LOCATION_TYPE_DEVICE, -1, 0}, /* this driver takes anything */
		{CU_MEM_LOCATION_TYPE_DEVICE, 1000, 0},
	};
	CUmemGenericAllocationHandle handle;

	start();
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		CUmemAllocationProp prop = prop_of(rows[i].type, rows[i].id), told;
		unsigned int asks = FAKE(asks);

		(void)sl_passed_trim();
		CHECK_EQ(cuMemCreate(&handle, GRAIN, &prop, 0), CUDA_SUCCESS);
		CHECK_EQ(handle >> 48, TAG);
		CHECK_EQ(FAKE(asks) - asks, rows[i].charged_bytes ? 1 : 0);
		CHECK(fake_wait_u64(&fake.held_bytes, rows[i].charged_bytes));
		CHECK_EQ(cuMemGetAllocationPropertiesFromHandle(&told, handle), 0);
		CHECK_EQ(told.location.type, rows[i].type);
		CHECK_EQ(told.location.id, rows[i].id);
		CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
	}
	finish();
}

/* What the driver refuses costs no wait; NULL is its affair, too. */
static void body_arguments(void)
{
	CUmemAllocationProp prop = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	CUmemGenericAllocationHandle handle = 7, real;
	unsigned int asks;

	start();
	asks = FAKE(asks);
	CHECK_EQ(cuMemCreate(&handle, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemCreate(&handle, 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemCreate(&handle, GRAIN, &prop, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(handle, 7);
	CHECK_EQ(FAKE(asks), asks);
	/* No ids of ours: the driver sees what the program passed. */
	CHECK_EQ(cuMemRelease(0x123456), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(VMM(last), 0x123456);
	CHECK_EQ(sl_real.cuMemCreate(&real, GRAIN, &prop, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemGetAllocationPropertiesFromHandle(&prop, real), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(real), CUDA_SUCCESS);
	/* An id that never was. */
	CHECK_EQ(cuMemRelease(0x5ac0000000ffffffull), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(VMM(last), 0);
	finish();
}

/* The program cannot use our ranges behind cuMemAlloc as its own, at either end. */
static void body_regions(void)
{
	CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle, again;
	unsigned long long flags;
	unsigned int calls;
	CUdeviceptr a, slot;

	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&slot, 100), CUDA_SUCCESS);
	handle = create(GRAIN);
	calls = VMM(calls);
	CHECK_EQ(cuMemUnmap(a, 64 * SL_MIB), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemUnmap(a - GRAIN, 2 * GRAIN), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemUnmap(slot, GRAIN), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemUnmap(0, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemAddressFree(a, 64 * SL_MIB), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemMap(a + GRAIN, GRAIN, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemSetAccess(a, 64 * SL_MIB, &access, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemGetAccess(&flags, &access.location, a), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)a),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(VMM(calls), calls);
	CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(slot), CUDA_SUCCESS);
	CHECK_EQ(cuCtxDestroy_v2(ctx), CUDA_SUCCESS);
	finish();
}

/* --- remembered facts ------------------------------------------------------------------------- */

static struct sl_mapping *first_mapping(CUmemGenericAllocationHandle id)
{
	CUmemGenericAllocationHandle real;
	struct sl_handle *handle = sl_handle_use(id, &real);
	struct sl_mapping *mapping;

	CHECK(handle);
	CHECK(!sl_list_is_empty(&handle->mappings));
	mapping = SL_LIST_ENTRY(handle->mappings.next, struct sl_mapping, link);
	sl_handle_leave(handle);
	return mapping;
}

static void body_accesses(void)
{
	CUmemAccessDesc both[2] = {
		{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
		{{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READ},
	};
	CUmemGenericAllocationHandle a, b;
	struct sl_mapping *m;
	CUdeviceptr at;

	start();
	at = reserve(2 * GRAIN);
	a = create(GRAIN);
	b = create(GRAIN);
	CHECK_EQ(cuMemMap(at, GRAIN, 0, a, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemMap(at + GRAIN, GRAIN, 0, b, 0), CUDA_SUCCESS);
	m = first_mapping(b);
	CHECK_EQ(m->extent.address, at + GRAIN);
	CHECK_EQ(m->extent.bytes, GRAIN);
	CHECK_EQ(m->access_count, 0);
	CHECK_EQ(cuMemSetAccess(at, 2 * GRAIN, both, 2), CUDA_SUCCESS);
	CHECK_EQ(m->access_count, 2);
	CHECK_EQ(m->accesses[1].where.id, 1);
	CHECK_EQ(m->accesses[1].flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
	both[0].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	CHECK_EQ(cuMemSetAccess(at + GRAIN, GRAIN, both, 1), CUDA_SUCCESS);
	CHECK_EQ(m->access_count, 1);
	CHECK_EQ(m->accesses[0].where.id, 1);
	CHECK_EQ(first_mapping(a)->access_count, 2);
	/* One that fails half-way: the books then match the driver. */
	both[0].flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	both[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	vmm_stub.access_result = CUDA_ERROR_UNKNOWN;
	CHECK_EQ(cuMemSetAccess(at + GRAIN, GRAIN, both, 2), CUDA_ERROR_UNKNOWN);
	CHECK_EQ(m->access_count, 2);
	for (uint32_t i = 0; i < m->access_count; i++) {
		CHECK_EQ(m->accesses[i].flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
		CHECK_EQ(m->accesses[i].flags,
			vmm_stub_access(at + GRAIN, m->accesses[i].where.id));
	}
	/* A list that is no memory is the driver's to refuse. */
	CHECK_EQ(cuMemSetAccess(at + 8 * GRAIN, GRAIN, both, SIZE_MAX),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemUnmap(at, 2 * GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(b), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(at, 2 * GRAIN), CUDA_SUCCESS);
	finish();
}

/* Threads raced: a mapping that the driver no longer has gives way to the one it has now. */
static void body_stale(void)
{
	CUmemGenericAllocationHandle a, b;
	CUdeviceptr at;

	start();
	at = reserve(GRAIN);
	a = create(GRAIN);
	b = create(GRAIN);
	CHECK_EQ(cuMemMap(at, GRAIN, 0, a, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(sl_real.cuMemUnmap(at, GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemMap(at, GRAIN, 0, b, 0), CUDA_SUCCESS);
	check_books(GRAIN);
	CHECK_EQ(cuMemUnmap(at, GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(b), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(at, GRAIN), CUDA_SUCCESS);
	finish();
}

/* --- out of memory ---------------------------------------------------------------------------- */

/* peer-failures row 9: exactly CUDA_ERROR_OUT_OF_MEMORY, and the next try is a try. */
static void body_out_of_memory(void)
{
	CUmemAllocationProp prop = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	CUmemGenericAllocationHandle handle = 7;

	start();
	CHECK_EQ(cuMemCreate(&handle, 9 * SL_GIB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(handle, 7);
	check_books(0);
	/* Granted, but the driver has it not yet: asked for again, and the program sees nothing. */
	vmm_stub.no_memory = 1;
	CHECK_EQ(cuMemCreate(&handle, GRAIN, &prop, 0), CUDA_SUCCESS);
	CHECK_EQ(FAKE(fails), 1);
	check_books(GRAIN);
	CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
	finish();
}

/* Whichever call of the driver fails, nothing is lost, and trying again works. */
static void scene(void)
{
	CUmemAllocationProp prop = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle a, b, c;
	CUdeviceptr at;

#define UNTIL(call)                                       \
	do {                                              \
		CUresult until_ = (call);                 \
                                                          \
		if (until_ != CUDA_SUCCESS) {             \
			CHECK_EQ(until_, vmm_stub.fault); \
			CHECK_EQ((call), CUDA_SUCCESS);   \
		}                                         \
	} while (0)
	UNTIL(cuMemAddressReserve(&at, 4 * GRAIN, 0, 0, 0));
	UNTIL(cuMemCreate(&a, GRAIN, &prop, 0));
	UNTIL(cuMemCreate(&b, GRAIN, &prop, 0));
	UNTIL(cuMemMap(at, GRAIN, 0, a, 0));
	UNTIL(cuMemMap(at + GRAIN, GRAIN, 0, b, 0));
	UNTIL(cuMemSetAccess(at, 2 * GRAIN, &access, 1));
	UNTIL(cuMemRelease(a));
	UNTIL(cuMemRetainAllocationHandle(&c, (void *)(uintptr_t)at));
	CHECK_EQ(c, a);
	UNTIL(cuMemRelease(c));
	UNTIL(cuMemUnmap(at, 2 * GRAIN));
	UNTIL(cuMemRelease(b));
	UNTIL(cuMemAddressFree(at, 4 * GRAIN));
}

static void body_faults(void)
{
	unsigned int count;

	start();
	scene();
	count = VMM(calls);
	CHECK(count >= 12);
	for (unsigned int i = 1; i <= count; i++) {
		vmm_stub.calls = 0;
		vmm_stub.fault_at = i;
		scene();
		vmm_stub.fault_at = 0;
		CHECK_EQ(VMM(live), 0);
		check_books(0);
	}
	finish();
}

/* --- threads and children --------------------------------------------------------------------- */

static CUdeviceptr shared_at;
static CUmemGenericAllocationHandle shared;

/* Handles of its own, and one that all threads retain and release. */
static void *churn(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	CUmemGenericAllocationHandle again;
	CUdeviceptr at = reserve(8 * GRAIN);

	for (int i = 0; i < 60; i++) {
		uint64_t bytes = (1 + (uint64_t)(rand_r(&seed) % 4)) * GRAIN;
		CUmemGenericAllocationHandle handle = create(bytes);

		CHECK_EQ(cuMemMap(at, bytes, 0, handle, 0), CUDA_SUCCESS);
		if (rand_r(&seed) % 2)
			CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
		else
			handle = 0;
		allow(at, bytes);
		CHECK_EQ(
			cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)shared_at),
			CUDA_SUCCESS);
		CHECK_EQ(again, shared);
		if (!handle) {
			CHECK_EQ(cuMemRetainAllocationHandle(
					 &handle, (void *)(uintptr_t)at),
				CUDA_SUCCESS);
			CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
			CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
		}
		CHECK_EQ(cuMemRelease(again), CUDA_SUCCESS);
		CHECK_EQ(cuMemUnmap(at, bytes), CUDA_SUCCESS);
	}
	CHECK_EQ(cuMemAddressFree(at, 8 * GRAIN), CUDA_SUCCESS);
	return NULL;
}

static void body_threads(void)
{
	pthread_t threads[64];

	start();
	shared_at = reserve(GRAIN);
	shared = create(GRAIN);
	CHECK_EQ(cuMemMap(shared_at, GRAIN, 0, shared, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(shared), CUDA_SUCCESS);
	for (uintptr_t i = 0; i < 64; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
	for (int i = 0; i < 64; i++)
		pthread_join(threads[i], NULL);
	check_books(GRAIN);
	CHECK_EQ(cuMemUnmap(shared_at, GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(shared_at, GRAIN), CUDA_SUCCESS);
	finish();
}

/* Many threads at one address and one handle: whichever wins, nothing is counted twice or lost. */
static void *fight(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	CUmemGenericAllocationHandle again;

	for (int i = 0; i < 300; i++) {
		switch (rand_r(&seed) % 4) {
		case 0: (void)cuMemMap(shared_at, GRAIN, 0, shared, 0); break;
		case 1: (void)cuMemUnmap(shared_at, GRAIN); break;
		case 2:
			if (cuMemRetainAllocationHandle(
				    &again, (void *)(uintptr_t)shared_at) == 0)
				CHECK_EQ(cuMemRelease(again), CUDA_SUCCESS);
			break;
		default: allow(shared_at + GRAIN, GRAIN); break;
		}
	}
	return NULL;
}

static void body_fight(void)
{
	CUmemGenericAllocationHandle other;
	pthread_t threads[8];

	start();
	shared_at = reserve(2 * GRAIN);
	shared = create(GRAIN);
	other = create(GRAIN);
	CHECK_EQ(cuMemMap(shared_at + GRAIN, GRAIN, 0, other, 0), CUDA_SUCCESS);
	for (uintptr_t i = 0; i < 8; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, fight, (void *)(i + 1)), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	(void)cuMemUnmap(shared_at, GRAIN);
	/* A leftover of the race goes when the address is used again. */
	CHECK_EQ(cuMemMap(shared_at, GRAIN, 0, shared, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemUnmap(shared_at, 2 * GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(shared), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(other), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(shared_at, 2 * GRAIN), CUDA_SUCCESS);
	finish();
}

/* The child of a fork knows nothing of the parent's, and takes nothing from it. */
static void body_fork(void)
{
	CUmemGenericAllocationHandle a;
	struct sl_handle_counts counts;
	CUdeviceptr at;
	int status;
	pid_t pid;

	start();
	at = reserve(GRAIN);
	a = create(GRAIN);
	CHECK_EQ(cuMemMap(at, GRAIN, 0, a, 0), CUDA_SUCCESS);
	pid = fork();
	if (pid == 0) {
		counts = sl_handle_count();
		CHECK_EQ(counts.handles + counts.mappings + sl_range_count().ranges, 0);
		CHECK_EQ(cuMemRelease(a), CUDA_ERROR_INVALID_VALUE);
		CHECK_EQ(vmm_stub.last, 0);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	check_books(GRAIN);
	CHECK_EQ(cuMemUnmap(at, GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(at, GRAIN), CUDA_SUCCESS);
	finish();
}

/* Calls that succeed leave errno alone. */
static void body_errno(void)
{
	CUmemGenericAllocationHandle a;

	start();
	errno = 77;
	a = create(GRAIN);
	CHECK_EQ(errno, 77);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(errno, 77);
	finish();
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
#define TESTS(X)         \
	X(life)          \
	X(retain)        \
	X(expandable)    \
	X(locations)     \
	X(arguments)     \
	X(regions)       \
	X(accesses)      \
	X(stale)         \
	X(out_of_memory) \
	X(faults)        \
	X(threads)       \
	X(fight)         \
	X(fork)          \
	X(errno)
TESTS(TEST)
#define ROW(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
