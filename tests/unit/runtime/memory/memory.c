/*
 * memory - allocations against a stub driver and a fake daemon
 *
 * After every scene three books must agree: the stub's handles, the daemon's, and none left over.
 */
#include "../child.h"
#include "../fake.h"
#include "../no-threads.h"
#include "../stub.h"

#include "runtime/memory/slab.h"
#include "runtime/memory/sweep.h"
#include "runtime/real/real.h"
#include "runtime/session/session.h"

#include <pthread.h>
#include <string.h>

/* Two of them are as much as may gather until a free waits for the GPU. */
#define SLOT_BYTES (512 * 1024)

static CUcontext ctx;

static void start(void)
{
	stub_install();
	fake_start(false);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	ctx = stub_make_current(0);
}

/* The daemon has read all; nothing is mapped or held but `bytes`. */
static void check_books(uint64_t bytes)
{
	CHECK(fake_wait_u64(&fake.uncommitted_bytes, 0));
	if (!fake_wait_u64(&fake.held_bytes, bytes))
		CHECK_EQ(FAKE(held_bytes), bytes);
	CHECK_EQ(STUB(created_bytes), bytes);
	CHECK_EQ(STUB(mapped_bytes), bytes);
	CHECK_EQ(STUB(reserved_bytes), bytes);
	CHECK(!FAKE(protocol_error));
}

static void finish(void)
{
	CHECK_EQ(cuCtxDestroy_v2(ctx), CUDA_SUCCESS);
	check_books(0);
	fake_stop();
}

static void body_region(void)
{
	CUdeviceptr a, b;
	unsigned int word;

	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 100 * SL_MIB + 1), CUDA_SUCCESS);
	CHECK_EQ(a % 512, 0);
	check_books(102 * SL_MIB);
	CHECK_EQ(STUB(creates), 2); /* 64 + 38 */
	CHECK_EQ(cuMemAlloc_v2(&b, 2 * SL_GIB), CUDA_SUCCESS);
	CHECK_EQ(STUB(creates), 2 + 8); /* of 256 MiB */
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(STUB(syncs), 1);
	check_books(2 * SL_GIB);
	/* The library has no trace of it left: the driver is asked. */
	CHECK_EQ(cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuPointerGetAttribute(&word, CU_POINTER_ATTRIBUTE_RANGE_SIZE, a + 9), 0);
	CHECK_EQ(word, 77);
	CHECK_EQ(STUB(frees), 1);
	CHECK_EQ(cuMemFree_v2(b), CUDA_SUCCESS);
	check_books(0);
	finish();
}

static void body_arguments(void)
{
	CUdeviceptr a = 7;
	size_t pitch;
	CUcontext old;

	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemAlloc_v2(NULL, 4096), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(a, 7);
	CHECK_EQ(cuMemAlloc_v2(&a, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(cuMemAllocPitch_v2(&a, &pitch, 1000, 0, 4), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemAllocPitch_v2(&a, &pitch, 1000, 10, 5), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemAllocPitch_v2(&a, &pitch, SIZE_MAX / 2, 10, 4),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(a, 7);
	CHECK_EQ(cuMemAllocPitch_v2(&a, &pitch, 1000, 10, 4), CUDA_SUCCESS);
	CHECK_EQ(pitch, 1024);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemFree_v2(0), CUDA_SUCCESS);
	CHECK_EQ(STUB(frees), 1);
	CHECK_EQ(sl_real.cuCtxPopCurrent_v2(&old), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&a, 4096), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(old), CUDA_SUCCESS);
	finish();
}

/* Not ours: a device that is not the workload's. */
static void body_foreign_device(void)
{
	CUdeviceptr a;

	start();
	stub_make_current(1);
	CHECK_EQ(cuMemAlloc_v2(&a, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(a, 0x1234);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asks), 0);
	fake_stop();
}

/* peer-failures rows 1, 10, 11: NULL outs, free clamped at 0, total is the limit. */
static void body_figures(void)
{
	size_t free_bytes, total_bytes;
	CUdeviceptr a;

	start();
	CHECK_EQ(cuMemGetInfo_v2(NULL, NULL), CUDA_SUCCESS);
	CHECK_EQ(cuMemGetInfo_v2(&free_bytes, NULL), CUDA_SUCCESS);
	CHECK_EQ(free_bytes, 8 * SL_GIB);
	CHECK_EQ(cuMemAlloc_v2(&a, 3 * SL_GIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemGetInfo_v2(&free_bytes, &total_bytes), CUDA_SUCCESS);
	CHECK_EQ(free_bytes, 5 * SL_GIB);
	CHECK_EQ(total_bytes, 8 * SL_GIB);
	fake_lock();
	fake.others_bytes = 6 * SL_GIB;
	fake_unlock();
	fake_send_gpu();
	for (int i = 0; i < 10000 && free_bytes; i++) {
		usleep(100);
		CHECK_EQ(cuMemGetInfo_v2(&free_bytes, &total_bytes), CUDA_SUCCESS);
	}
	CHECK_EQ(free_bytes, 0);
	CHECK_EQ(cuDeviceTotalMem_v2(&total_bytes, 0), CUDA_SUCCESS);
	CHECK_EQ(total_bytes, 8 * SL_GIB);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	finish();
}

static void check_pointer(CUdeviceptr ptr, CUdeviceptr base, size_t bytes)
{
	CUdeviceptr got_base;
	CUcontext got_ctx;
	size_t got_bytes;
	unsigned int word;

	CHECK_EQ(cuMemGetAddressRange_v2(&got_base, &got_bytes, ptr), CUDA_SUCCESS);
	CHECK_EQ(got_base, base);
	CHECK_EQ(got_bytes, bytes);
	CHECK_EQ(cuMemGetAddressRange_v2(NULL, NULL, ptr), CUDA_SUCCESS);
	CHECK_EQ(cuPointerGetAttribute(&got_ctx, CU_POINTER_ATTRIBUTE_CONTEXT, ptr),
		CUDA_SUCCESS);
	CHECK(got_ctx == ctx);
	CHECK_EQ(cuPointerGetAttribute(
			 &got_base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, ptr),
		CUDA_SUCCESS);
	CHECK_EQ(got_base, base);
	CHECK_EQ(cuPointerGetAttribute(&got_bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, ptr),
		CUDA_SUCCESS);
	CHECK_EQ(got_bytes, bytes);
	CHECK_EQ(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_RANGE_SIZE, ptr),
		CUDA_ERROR_INVALID_VALUE);
	/* Not patched: the driver's own answer. */
	CHECK_EQ(cuPointerGetAttribute(&word, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr),
		CUDA_SUCCESS);
	CHECK_EQ(word, 77);
}

static uint64_t buffer_id(CUdeviceptr ptr)
{
	unsigned long long id = 0;

	CHECK_EQ(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr),
		CUDA_SUCCESS);
	return id;
}

static void body_pointers(void)
{
	CUpointer_attribute which[2] = {
		CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_BUFFER_ID};
	CUmemGenericAllocationHandle handle;
	unsigned long long id = 0;
	CUdeviceptr a, b, again;
	size_t bytes = 0;
	void *data[2] = {&bytes, &id};
	uint64_t old_id;

	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 5 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&b, 1000), CUDA_SUCCESS);
	check_pointer(a + 4 * SL_MIB, a, 5 * SL_MIB);
	check_pointer(b + 999, b, 1000);
	CHECK_EQ(cuMemGetAddressRange_v2(NULL, NULL, b + 1000), CUDA_ERROR_NOT_FOUND);
	CHECK_EQ(cuPointerGetAttributes(2, which, data, a + 1), CUDA_SUCCESS);
	CHECK_EQ(bytes, 5 * SL_MIB);
	CHECK_EQ(id, buffer_id(a));
	CHECK(buffer_id(a) != buffer_id(b));
	CHECK_EQ(cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)a),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemFree_v2(a + 512), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemFree_v2(b + 512), CUDA_ERROR_INVALID_VALUE);
	old_id = buffer_id(a);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&again, 5 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(again, a);
	CHECK(buffer_id(again) != old_id);
	CHECK_EQ(cuMemFree_v2(again), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(b), CUDA_SUCCESS);
	CHECK_EQ(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, b),
		CUDA_ERROR_INVALID_VALUE);
	/* Nor is the slab around it described. */
	CHECK_EQ(cuPointerGetAttributes(2, which, data, b), CUDA_SUCCESS);
	CHECK(stub.last_attributes != b);
	finish();
}

/* Every driver call of an allocation and its free is made to fail once. */
static void body_faults(void)
{
	static const size_t sizes[] = {70 * SL_MIB, 4096};
	unsigned int failed = 0;

	start();
	for (size_t s = 0; s < SL_ARRAY_LEN(sizes); s++) {
		for (unsigned int at = 1; at <= 20; at++) {
			CUdeviceptr a = 0;
			CUresult r;

			stub.calls = 0;
			stub.fault_at = at;
			stub.fault = CUDA_ERROR_UNKNOWN;
			r = cuMemAlloc_v2(&a, sizes[s]);
			if (r != CUDA_SUCCESS) {
				CHECK_EQ(r, CUDA_ERROR_UNKNOWN);
				failed++;
			} else {
				/* A second free gives back what the first could not. */
				r = cuMemFree_v2(a);
				failed += r != CUDA_SUCCESS;
				stub.fault_at = 0;
				if (r != CUDA_SUCCESS)
					CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
			}
			stub.fault_at = 0;
			if (s == 0) {
				/* Addresses that could not be freed stay, and nothing else. */
				CHECK_EQ(STUB(created_bytes), 0);
				CHECK_EQ(STUB(mapped_bytes), 0);
				CHECK(fake_wait_u64(&fake.held_bytes, 0));
				stub.reserved_bytes = 0;
			}
		}
	}
	CHECK(failed >= 14);
	CHECK_EQ(cuCtxDestroy_v2(ctx), CUDA_SUCCESS);
	CHECK(fake_wait_u64(&fake.held_bytes, 0));
	CHECK_EQ(STUB(created_bytes), 0);
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

static void *grow_capacity(void *arg)
{
	CHECK(fake_wait(&fake.fails, 3));
	stub_lock();
	stub.capacity_bytes = SL_GIB;
	stub_unlock();
	return NULL;
}

/* Out of memory in spite of a grant: queued again, never shown. */
static void body_create_failed(void)
{
	pthread_t thread;
	CUdeviceptr a;

	start();
	stub.capacity_bytes = 96 * SL_MIB;
	CHECK_EQ(pthread_create(&thread, NULL, grow_capacity, NULL), 0);
	CHECK_EQ(cuMemAlloc_v2(&a, 128 * SL_MIB), CUDA_SUCCESS);
	pthread_join(thread, NULL);
	CHECK(FAKE(fails) >= 3);
	check_books(128 * SL_MIB);
	finish();
}

/* peer-failures row 9: exactly CUDA_ERROR_OUT_OF_MEMORY. */
static void body_denied(void)
{
	CUdeviceptr a, b;

	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 6 * SL_GIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&b, 3 * SL_GIB), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(cuMemAlloc_v2(&b, 9 * SL_GIB), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(FAKE(asks), 3); /* above the limit too, so that the daemon can say why */
	check_books(6 * SL_GIB);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&b, 3 * SL_GIB), CUDA_SUCCESS);
	finish();
}

/* Before out-of-memory is final, hoarded slabs go. */
static void body_hoard_goes(void)
{
	CUdeviceptr small, large;

	start();
	CHECK_EQ(cuMemAlloc_v2(&small, 4096), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(small), CUDA_SUCCESS);
	check_books(2 * SL_MIB);
	CHECK_EQ(cuMemAlloc_v2(&large, 8 * SL_GIB), CUDA_SUCCESS);
	check_books(8 * SL_GIB);
	CHECK_EQ(cuMemFree_v2(large), CUDA_SUCCESS);
	finish();
}

static void *alloc_all(void *arg)
{
	CUdeviceptr *at = arg;

	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(at, 8 * SL_GIB), CUDA_SUCCESS);
	return NULL;
}

/* And while an allocation waits, so that the daemon can grant it. */
static void body_hoard_goes_while_waiting(void)
{
	CUdeviceptr small, large;
	pthread_t thread;

	start();
	CHECK_EQ(cuMemAlloc_v2(&small, 4096), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(small), CUDA_SUCCESS);
	check_books(2 * SL_MIB);
	fake_lock();
	fake.silent = true;
	fake_unlock();
	CHECK_EQ(pthread_create(&thread, NULL, alloc_all, &large), 0);
	CHECK(fake_wait_u64(&fake.held_bytes, 0));
	fake_answer_waiting();
	pthread_join(thread, NULL);
	check_books(8 * SL_GIB);
	CHECK_EQ(cuMemFree_v2(large), CUDA_SUCCESS);
	finish();
}

/* If the denial is older than that, it is asked once more. */
static void body_hoard_goes_before_denial(void)
{
	CUdeviceptr small, large;
	pthread_t thread;

	start();
	CHECK_EQ(cuMemAlloc_v2(&small, 4096), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(small), CUDA_SUCCESS);
	fake_lock();
	fake.silent = true;
	fake_unlock();
	CHECK_EQ(pthread_create(&thread, NULL, alloc_all, &large), 0);
	CHECK(fake_wait_u64(&fake.held_bytes, 0));
	fake_deny_waiting();
	pthread_join(thread, NULL);
	CHECK_EQ(FAKE(asks), 3);
	check_books(8 * SL_GIB);
	/* Nothing has gone since, and nothing is left to go. */
	CHECK_EQ(cuMemAlloc_v2(&small, 4096), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(FAKE(asks), 4);
	finish();
}

static void *free_two(void *arg)
{
	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(cuMemFree_v2(((CUdeviceptr *)arg)[i]), CUDA_SUCCESS);
	return NULL;
}

static void *run_ahead(void *arg)
{
	CUdeviceptr at;

	(void)arg;
	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(cuMemAlloc_v2(&at, SLOT_BYTES), CUDA_SUCCESS);
		CHECK_EQ(cuMemFree_v2(at), CUDA_SUCCESS);
	}
	return NULL;
}

/* The context has work that does not end yet, and a thread that frees waits for it. */
static void begin_long_flush(pthread_t *thread, CUdeviceptr at[2])
{
	start();
	for (int i = 0; i < 2; i++)
		CHECK_EQ(cuMemAlloc_v2(&at[i], SLOT_BYTES), CUDA_SUCCESS);
	__atomic_store_n(&stub_busy, ctx, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_create(thread, NULL, free_two, at), 0);
	usleep(50000);
}

/* Other threads that free wait as well, as they would in the driver, and hoard no more than
 * that. */
static void body_nobody_runs_ahead(void)
{
	pthread_t one, other;
	CUdeviceptr at[2];

	begin_long_flush(&one, at);
	CHECK_EQ(pthread_create(&other, NULL, run_ahead, NULL), 0);
	usleep(200000);
	CHECK(FAKE(held_bytes) <= 4 * SL_MIB);
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	pthread_join(one, NULL);
	pthread_join(other, NULL);
	finish();
}

/* Nor does a thread get out-of-memory while another is about to give memory back. */
static void body_hoard_of_another_flush(void)
{
	pthread_t one, other;
	CUdeviceptr at[2], large;

	begin_long_flush(&one, at);
	CHECK_EQ(pthread_create(&other, NULL, alloc_all, &large), 0);
	usleep(100000);
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	pthread_join(one, NULL);
	pthread_join(other, NULL);
	check_books(8 * SL_GIB);
	CHECK_EQ(cuMemFree_v2(large), CUDA_SUCCESS);
	finish();
}

/* Work may wait for the next action of the very thread that allocates. Then the allocation is
 * refused. Memory that the thread freed before is neither lost nor handed out again while the work
 * may use it. */
static void body_hoard_of_endless_work(void)
{
	CUdeviceptr small, other, large;

	start();
	CHECK_EQ(cuMemAlloc_v2(&small, 4096), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(small), CUDA_SUCCESS);
	__atomic_store_n(&stub_busy, ctx, __ATOMIC_RELEASE);
	CHECK_EQ(cuMemAlloc_v2(&large, 8 * SL_GIB), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(cuMemAlloc_v2(&other, 4096), CUDA_SUCCESS);
	CHECK(other != small);
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	CHECK_EQ(cuMemFree_v2(other), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&large, 8 * SL_GIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(large), CUDA_SUCCESS);
	finish();
}

/* It keeps memory that was freed in its own context, not in another. */
static void hoard_beside_endless_work(bool swept)
{
	CUdeviceptr small, large;
	CUcontext busy;

	start();
	busy = ctx;
	CHECK_EQ(cuMemAlloc_v2(&small, 4096), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(small), CUDA_SUCCESS);
	ctx = stub_make_current(0);
	CHECK_EQ(cuMemAlloc_v2(&small, 4096), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(small), CUDA_SUCCESS);
	__atomic_store_n(&stub_busy, busy, __ATOMIC_RELEASE);
	/* The sweeper may be in there as well, since a thread waited for memory. */
	if (swept) {
		sl_sweep_soon(true);
		usleep(200000);
	}
	CHECK_EQ(cuMemAlloc_v2(&large, 8 * SL_GIB - SL_SLAB_BYTES), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(large), CUDA_SUCCESS);
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	CHECK_EQ(cuCtxDestroy_v2(busy), CUDA_SUCCESS);
	finish();
}

static void body_hoard_beside_endless_work(void)
{
	hoard_beside_endless_work(false);
}

static void body_hoard_beside_the_sweeper(void)
{
	hoard_beside_endless_work(true);
}

/* A process that can have no thread waits for the work itself. */
static void body_hoard_without_threads(void)
{
	CUdeviceptr small, large;

	start();
	CHECK_EQ(cuMemAlloc_v2(&small, 4096), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(small), CUDA_SUCCESS);
	__atomic_store_n(&no_threads, 1, __ATOMIC_RELEASE);
	CHECK_EQ(cuMemAlloc_v2(&large, 8 * SL_GIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(large), CUDA_SUCCESS);
	finish();
}

/* A thread that is cancelled while it waits for the work keeps nothing to itself. */
static void body_cancelled_in_a_flush(void)
{
	pthread_t one;
	CUdeviceptr at[2], large;

	begin_long_flush(&one, at);
	CHECK_EQ(pthread_cancel(one), 0);
	usleep(50000);
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	pthread_join(one, NULL);
	CHECK_EQ(cuMemAlloc_v2(&large, 8 * SL_GIB - SL_SLAB_BYTES), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(large), CUDA_SUCCESS);
	finish();
}

/* Never waits itself, whatever its argument; foreign memory is the driver's. */
static void body_free_async(void)
{
	CUdeviceptr a, slot;

	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&slot, 100), CUDA_SUCCESS);
	CHECK_EQ(cuMemFreeAsync(a, NULL), CUDA_SUCCESS);
	CHECK_EQ(cuMemFreeAsync(a, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemFreeAsync(slot, NULL), CUDA_SUCCESS);
	check_books(2 * SL_MIB);
	CHECK_EQ(STUB(capture_questions), 0);
	CHECK_EQ(cuMemFreeAsync(0x1234, NULL), CUDA_ERROR_NOT_PERMITTED);
	finish();
}

static void body_classes(void)
{
	uint32_t last = 0;

	for (uint64_t bytes = 1; bytes <= SL_SLAB_BYTES;
		bytes += bytes < 8192 ? 1 : 511) {
		unsigned int class = sl_slab_class(bytes);
		uint32_t slot_bytes = sl_slab_class_bytes(class);

		CHECK(class < SL_SLAB_CLASSES);
		CHECK(slot_bytes >= bytes);
		CHECK(slot_bytes % SL_SLAB_ALIGN == 0);
		CHECK(slot_bytes >= last);
		CHECK(bytes <= 2048 || slot_bytes <= bytes + bytes / 4 + SL_SLAB_ALIGN);
		CHECK(class == 0 || sl_slab_class_bytes(class - 1) < bytes);
		last = slot_bytes;
	}
}

/* Alternating allocate and free costs the daemon and the driver nothing. */
static void body_small_pairs(void)
{
	CUdeviceptr keep, a;
	unsigned int creates;

	start();
	CHECK_EQ(cuMemAlloc_v2(&keep, 4096), CUDA_SUCCESS);
	creates = STUB(creates);
	for (int i = 0; i < 100000; i++) {
		CHECK_EQ(cuMemAlloc_v2(&a, 4096), CUDA_SUCCESS);
		CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	}
	CHECK_EQ(STUB(creates), creates);
	CHECK_EQ(FAKE(asks), 1);
	CHECK_EQ(STUB(syncs), 100000 / 256);
	CHECK_EQ(cuMemFree_v2(keep), CUDA_SUCCESS);
	finish();
}

#define LIVE_MAX 200

/* Random sizes: no two live allocations overlap, and none is where one was freed after the last
 * synchronisation. */
static void body_random(void)
{
	static struct {
		CUdeviceptr at;
		size_t bytes;
		unsigned int freed_at_sync;
		bool live;
	} all[20000];
	unsigned int seed = 12345, count = 0, live = 0;

	start();
	printf("seed %u\n", seed);
	while (count < SL_ARRAY_LEN(all)) {
		unsigned int pick = (unsigned int)rand_r(&seed);

		if (live < LIVE_MAX && (pick & 1)) {
			size_t bytes =
				1 + (size_t)(rand_r(&seed) % (1 << (rand_r(&seed) % 23)));
			CUdeviceptr at;

			CHECK_EQ(cuMemAlloc_v2(&at, bytes), CUDA_SUCCESS);
			for (unsigned int i = 0; i < count; i++) {
				bool overlap = all[i].at < at + bytes &&
					       at < all[i].at + all[i].bytes;

				CHECK(!(overlap && all[i].live));
				CHECK(!(overlap && all[i].freed_at_sync == STUB(syncs) &&
					STUB(syncs)));
			}
			all[count].at = at;
			all[count].bytes = bytes;
			all[count].live = true;
			all[count++].freed_at_sync = UINT32_MAX;
			live++;
		} else if (live > 0) {
			unsigned int i = (unsigned int)rand_r(&seed) % count;

			if (!all[i].live)
				continue;
			/* A free that waits counts as one before the wait. */
			all[i].freed_at_sync = STUB(syncs);
			all[i].live = false;
			live--;
			CHECK_EQ(cuMemFree_v2(all[i].at), CUDA_SUCCESS);
		}
	}
	for (unsigned int i = 0; i < count; i++) {
		if (all[i].live)
			CHECK_EQ(cuMemFree_v2(all[i].at), CUDA_SUCCESS);
	}
	CHECK(STUB(created_bytes) <= 32 * SL_MIB);
	finish();
}

/* peer-failures row 15: never synchronise during a capture; the memory goes afterwards. */
static void body_capture(void)
{
	CUdeviceptr a, slots[300];
	size_t free_bytes;
	CUgraph graph;

	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 64 * SL_MIB), CUDA_SUCCESS);
	for (size_t i = 0; i < SL_ARRAY_LEN(slots); i++)
		CHECK_EQ(cuMemAlloc_v2(&slots[i], 8192), CUDA_SUCCESS);
	/* Where the driver allows no free, nothing is freed: it is asked, and knows no such
	 * address. */
	CHECK_EQ(cuStreamBeginCapture_v2((CUstream)8, CU_STREAM_CAPTURE_MODE_GLOBAL),
		CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuStreamEndCapture((CUstream)8, &graph), CUDA_SUCCESS);
	CHECK_EQ(cuStreamBeginCapture_v2((CUstream)8, CU_STREAM_CAPTURE_MODE_RELAXED),
		CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < SL_ARRAY_LEN(slots); i++)
		CHECK_EQ(cuMemFree_v2(slots[i]), CUDA_SUCCESS);
	CHECK_EQ(STUB(syncs), 0);
	CHECK_EQ(STUB(created_bytes), 64 * SL_MIB + 4 * SL_MIB);
	/* To the program it is free already. */
	CHECK_EQ(cuMemGetInfo_v2(&free_bytes, NULL), CUDA_SUCCESS);
	CHECK_EQ(free_bytes, 8 * SL_GIB);
	CHECK_EQ(cuStreamEndCapture((CUstream)8, &graph), CUDA_SUCCESS);
	if (!fake_wait_u64(&fake.held_bytes, 4 * SL_MIB))
		CHECK_EQ(FAKE(held_bytes), 4 * SL_MIB);
	CHECK(STUB(syncs) > 0);
	CHECK_EQ(STUB(syncs_while_capturing), 0);
	finish();
}

static void *alloc_elsewhere(void *arg)
{
	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(arg, 64 * SL_MIB), CUDA_SUCCESS);
	return NULL;
}

/* If the driver allows an allocation during a capture, we make and count it. Otherwise the call
 * goes to the driver, which refuses it. here, elsewhere: allowed in this thread, in another. */
static void check_capture(CUstreamCaptureMode mode, bool here, bool elsewhere)
{
	CUdeviceptr a = 0, b = 0;
	pthread_t thread;
	CUgraph graph;

	CHECK_EQ(cuStreamBeginCapture_v2((CUstream)8, mode), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&a, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(a != 0x1234, here);
	CHECK_EQ(pthread_create(&thread, NULL, alloc_elsewhere, &b), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(b != 0x1234, elsewhere);
	CHECK_EQ(cuStreamEndCapture((CUstream)8, &graph), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(b), CUDA_SUCCESS);
	check_books(0);
}

static void body_capture_modes(void)
{
	CUdeviceptr a;
	CUgraph graph;

	start();
	check_capture(CU_STREAM_CAPTURE_MODE_GLOBAL, false, false);
	check_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, false, true);
	check_capture(CU_STREAM_CAPTURE_MODE_RELAXED, true, true);
	/* The thread's own default stream has two names: frees synchronise again afterwards. */
	CHECK_EQ(cuMemAlloc_v2(&a, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuStreamBeginCapture_v2_ptsz(NULL, 0), CUDA_SUCCESS);
	CHECK_EQ(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(STUB(created_bytes), 0);
	finish();
}

/* A context with a sticky error keeps its bytes; the error is the program's. */
static void body_broken_context(void)
{
	CUdeviceptr a, slot;

	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&slot, 4096), CUDA_SUCCESS);
	stub.sync_result = CUDA_ERROR_ILLEGAL_ADDRESS;
	CHECK_EQ(cuMemFree_v2(a), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_EQ(cuMemFree_v2(a), CUDA_ERROR_ILLEGAL_ADDRESS);
	/* These would not have come by the driver. */
	CHECK_EQ(cuMemFree_v2(slot), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_EQ(cuMemAlloc_v2(&slot, 4096), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_books(66 * SL_MIB);
	finish();
}

/* Destroying a context ends its memory, also that of another thread's making. */
static void body_contexts(void)
{
	CUdeviceptr a, b, c;
	CUcontext second, primary;

	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuCtxCreate_v2(&second, 0, 0), CUDA_SUCCESS);
	CHECK_EQ(FAKE(measures), 1);
	CHECK_EQ(cuMemAlloc_v2(&b, 32 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&c, 100), CUDA_SUCCESS);
	check_books(98 * SL_MIB);
	CHECK_EQ(cuCtxDestroy_v2(second), CUDA_SUCCESS);
	check_books(64 * SL_MIB);
	CHECK_EQ(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
	CHECK_EQ(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(primary), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&b, 32 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
	check_books(96 * SL_MIB);
	CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
	check_books(64 * SL_MIB);
	CHECK_EQ(sl_real.cuCtxPopCurrent_v2(&primary), CUDA_SUCCESS);
	finish();
}

/* What the driver refuses to destroy keeps its memory. */
static void body_destroy_refused(void)
{
	CUdeviceptr a, slot;
	CUcontext primary;

	start();
	CHECK_EQ(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(primary), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&a, 32 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&slot, 100), CUDA_SUCCESS);
	CHECK_EQ(cuCtxDestroy_v2(primary), CUDA_ERROR_INVALID_VALUE);
	check_books(34 * SL_MIB);
	CHECK_EQ(cuMemFree_v2(slot), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&slot, 100), CUDA_SUCCESS);
	check_books(2 * SL_MIB);
	CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
	check_books(0);
	CHECK_EQ(sl_real.cuCtxPopCurrent_v2(&primary), CUDA_SUCCESS);
	finish();
}

static void *launch_once(void *arg)
{
	CHECK_EQ(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 0);
	return arg;
}

static void launch_elsewhere(void)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, launch_once, NULL), 0);
	pthread_join(thread, NULL);
}

/* The destruction waits in the driver for the context's work. That work, perhaps a host callback,
 * may wait for another thread's launch in another context. */
static void body_destroy_holds_nobody(void)
{
	CUcontext second;
	CUdeviceptr a;

	start();
	CHECK_EQ(cuCtxCreate_v2(&second, 0, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&a, 32 * SL_MIB), CUDA_SUCCESS);
	stub_on_destroy = launch_elsewhere;
	CHECK_EQ(cuCtxDestroy_v2(second), CUDA_SUCCESS);
	stub_on_destroy = NULL;
	CHECK_EQ(STUB(launches), 1);
	finish();
}

/* The sweeper waits for a context whose work takes long: others can be destroyed. */
static void body_destroy_past_sweeper(void)
{
	CUcontext second;
	CUdeviceptr a, b;

	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 32 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuCtxCreate_v2(&second, 0, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&b, 64 * SL_MIB), CUDA_SUCCESS);
	__atomic_store_n(&stub_busy, ctx, __ATOMIC_RELEASE);
	CHECK_EQ(cuMemFreeAsync(a, NULL), CUDA_SUCCESS);
	usleep(50000);
	CHECK_EQ(cuCtxDestroy_v2(second), CUDA_SUCCESS);
	check_books(32 * SL_MIB);
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	check_books(0);
	finish();
}

static void *churn(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	CUdeviceptr mine[16] = {0};

	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	for (int i = 0; i < 3000; i++) {
		CUdeviceptr *slot = &mine[rand_r(&seed) % 16];

		if (*slot)
			CHECK_EQ(cuMemFree_v2(*slot), CUDA_SUCCESS);
		CHECK_EQ(cuMemAlloc_v2(slot, 1 + (size_t)(rand_r(&seed) %
							  (1 << (rand_r(&seed) % 23)))),
			CUDA_SUCCESS);
	}
	for (int i = 0; i < 16; i++) {
		if (mine[i])
			CHECK_EQ(cuMemFree_v2(mine[i]), CUDA_SUCCESS);
	}
	return NULL;
}

static void body_threads(void)
{
	pthread_t threads[4];

	start();
	for (uintptr_t i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	finish();
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
#define TESTS(X)                     \
	X(region)                    \
	X(arguments)                 \
	X(foreign_device)            \
	X(figures)                   \
	X(pointers)                  \
	X(faults)                    \
	X(create_failed)             \
	X(denied)                    \
	X(hoard_goes)                \
	X(hoard_goes_while_waiting)  \
	X(hoard_goes_before_denial)  \
	X(nobody_runs_ahead)         \
	X(hoard_of_another_flush)    \
	X(hoard_of_endless_work)     \
	X(hoard_beside_endless_work) \
	X(hoard_beside_the_sweeper)  \
	X(hoard_without_threads)     \
	X(cancelled_in_a_flush)      \
	X(free_async)                \
	X(classes)                   \
	X(small_pairs)               \
	X(random)                    \
	X(capture)                   \
	X(capture_modes)             \
	X(broken_context)            \
	X(contexts)                  \
	X(destroy_refused)           \
	X(destroy_holds_nobody)      \
	X(destroy_past_sweeper)      \
	X(threads)
TESTS(TEST)
#define ROW(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
