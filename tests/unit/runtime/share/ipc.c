/*
 * ipc - memory offered to and opened from other processes, against a stub driver and a fake daemon
 */
#include "../child.h"
#include "../fake.h"
#include "../stub.h"

#include "runtime/real/real.h"
#include "runtime/share/import.h"

#include <dirent.h>
#include <pthread.h>
#include <string.h>

#define OPEN_FLAGS CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
/* The place of the key in a handle of ours. */
#define KEY_AT 16

static CUcontext ctx;

static void start(void)
{
	stub_install();
	fake_start(false);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	ctx = stub_make_current(0);
}

static void finish(void)
{
	CHECK_EQ(cuCtxDestroy_v2(ctx), CUDA_SUCCESS);
	CHECK(fake_wait_u64(&fake.held_bytes, 0));
	CHECK_EQ(STUB(mapped_bytes), 0);
	CHECK_EQ(STUB(created_bytes), 0);
	CHECK_EQ(STUB(reserved_bytes), 0);
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

static unsigned int open_fds(void)
{
	unsigned int count = 0;
	DIR *dir = opendir("/proc/self/fd");

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* The fake daemon is of this process, too, and may be about to close one. */
static void check_fds(unsigned int wanted)
{
	for (int i = 0; i < 2000 && open_fds() != wanted; i++)
		usleep(1000);
	CHECK_EQ(open_fds(), wanted);
}

static void body_offer(void)
{
	CUipcMemHandle first, again, other;
	CUdeviceptr a, small1, small2, opened;
	unsigned int fds;

	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 100 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&small1, 4096), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&small2, 4096), CUDA_SUCCESS);
	fds = open_fds();
	CHECK_EQ(cuIpcGetMemHandle(&first, a), CUDA_SUCCESS);
	CHECK_EQ(FAKE(offers), 1);
	CHECK_EQ(FAKE(given), 2); /* 64 + 36 */
	CHECK_EQ(STUB(exports), 2);
	check_fds(fds);
	CHECK_EQ(memcmp((char *)&first + KEY_AT, fake.offered_key, 16), 0);
	/* Asked again, or of its middle: the same, and the daemon is not told. */
	CHECK_EQ(cuIpcGetMemHandle(&again, a + 5 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(memcmp(&first, &again, sizeof(first)), 0);
	CHECK_EQ(FAKE(offers), 1);
	/* Blocks of one slab share an offer. */
	CHECK_EQ(cuIpcGetMemHandle(&again, small1), CUDA_SUCCESS);
	CHECK_EQ(cuIpcGetMemHandle(&other, small2), CUDA_SUCCESS);
	CHECK_EQ(FAKE(offers), 2);
	CHECK_EQ(memcmp((char *)&again + KEY_AT, (char *)&other + KEY_AT, 16), 0);
	CHECK(memcmp(&again, &other, sizeof(other)) != 0);
	CHECK(fake_wait_u64(&fake.unevictable_bytes, 102 * SL_MIB));
	/* Not in the process that made it, not of foreign memory, not of freed memory. */
	CHECK_EQ(cuIpcOpenMemHandle_v2(&opened, first, OPEN_FLAGS),
		CUDA_ERROR_INVALID_CONTEXT);
	CHECK_EQ(cuIpcGetMemHandle(&other, 0x1234), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuIpcGetMemHandle(&other, small2 + 4096), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuIpcCloseMemHandle(a), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK(fake_wait(&fake.withdrawn, 1));
	CHECK(fake_wait_u64(&fake.unevictable_bytes, 2 * SL_MIB));
	CHECK_EQ(cuMemFree_v2(small1), CUDA_SUCCESS);
	finish();
	CHECK_EQ(FAKE(withdrawn), 2);
}

static void body_refused(void)
{
	CUipcMemHandle handle;
	CUdeviceptr a;

	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 64 * SL_MIB), CUDA_SUCCESS);
	fake_lock();
	fake.offer_reason = SL_IPC_FULL;
	fake_unlock();
	CHECK_EQ(cuIpcGetMemHandle(&handle, a), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(cuIpcGetMemHandle(&handle, a), CUDA_ERROR_OUT_OF_MEMORY);
	fake_lock();
	fake.offer_reason = SL_IPC_OK;
	fake_unlock();
	CHECK_EQ(cuIpcGetMemHandle(&handle, a), CUDA_SUCCESS);
	CHECK_EQ(FAKE(offers), 3);
	finish();
}

static void body_cannot_export(void)
{
	CUipcMemHandle handle;
	CUdeviceptr a;

	start();
	stub.no_exports = true;
	CHECK_EQ(cuMemAlloc_v2(&a, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuIpcGetMemHandle(&handle, a), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_EQ(FAKE(offers), 0);
	finish();
}

/* peer-failures row 35: the next daemon is offered everything again, under the same keys. */
static void body_next_daemon(void)
{
	CUipcMemHandle handle, again;
	CUdeviceptr a, b;

	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 100 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&b, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuIpcGetMemHandle(&handle, b), CUDA_SUCCESS);
	CHECK_EQ(cuIpcGetMemHandle(&handle, a), CUDA_SUCCESS);
	CHECK(fake_wait(&fake.settleds, 1));
	fake_die();
	CHECK_EQ(cuMemFree_v2(b), CUDA_SUCCESS); /* no maker that could withdraw it */
	fake_listen();
	CHECK(fake_wait(&fake.offers, 3));
	CHECK(fake_wait(&fake.settleds, 2));
	CHECK_EQ(FAKE(offers), 3);
	CHECK_EQ(memcmp((char *)&handle + KEY_AT, fake.offered_key, 16), 0);
	CHECK_EQ(cuIpcGetMemHandle(&again, a), CUDA_SUCCESS);
	CHECK_EQ(memcmp(&handle, &again, sizeof(handle)), 0);
	CHECK_EQ(FAKE(withdrawn), 0);
	finish();
}

/* A handle as another process would make it, of a block of bytes at offset 2 MiB. */
static CUipcMemHandle foreign_handle(unsigned char mark)
{
	CUipcMemHandle handle;
	CUdeviceptr a;

	CHECK_EQ(cuMemAlloc_v2(&a, 100 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuIpcGetMemHandle(&handle, a), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	((unsigned char *)&handle)[KEY_AT] ^= mark;
	fake_lock();
	fake.opened.bytes = 102 * SL_MIB;
	fake.opened.chunk_bytes = 64 * SL_MIB;
	fake.opened.count = 2;
	fake_unlock();
	return handle;
}

static unsigned long long id_of(CUdeviceptr at)
{
	unsigned long long id = 0;

	CHECK_EQ(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at),
		CUDA_SUCCESS);
	return id;
}

static unsigned int sync_memops_of(CUdeviceptr at)
{
	unsigned int on = 77;

	CHECK_EQ(cuPointerGetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at),
		CUDA_SUCCESS);
	return on;
}

static void body_open(void)
{
	CUipcMemHandle handle, other;
	CUdeviceptr a, again, b;
	unsigned int fds;

	start();
	handle = foreign_handle(1);
	other = foreign_handle(2);
	fds = open_fds();
	CHECK_EQ(cuIpcOpenMemHandle_v2(NULL, handle, OPEN_FLAGS),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&a, handle, 8), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(FAKE(opens), 0);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&a, handle, OPEN_FLAGS), CUDA_SUCCESS);
	CHECK_EQ(STUB(imports), 2);
	CHECK_EQ(STUB(mapped_bytes), 102 * SL_MIB);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&again, handle, OPEN_FLAGS), CUDA_SUCCESS);
	CHECK_EQ(again, a);
	CHECK_EQ(STUB(imports), 2);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&b, other, OPEN_FLAGS), CUDA_SUCCESS);
	CHECK(b != a);
	CHECK_EQ(id_of(again), id_of(a));
	CHECK(id_of(b) != id_of(a));
	check_fds(fds);
	CHECK_EQ(cuIpcCloseMemHandle(a + 512), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuIpcCloseMemHandle(a), CUDA_SUCCESS);
	CHECK_EQ(STUB(mapped_bytes), 204 * SL_MIB);
	CHECK_EQ(cuIpcCloseMemHandle(a), CUDA_SUCCESS);
	CHECK_EQ(STUB(mapped_bytes), 102 * SL_MIB);
	CHECK_EQ(cuIpcCloseMemHandle(a), CUDA_ERROR_INVALID_HANDLE);
	/* The rest goes with the context. */
	finish();
}

/* Two makers count alike, and so does this process: ids of different makers may neither meet here
 * nor come again. */
static void body_open_ids(void)
{
	enum { TIMES = 20 };
	unsigned long long seen[3 * TIMES];
	unsigned int count = 0;
	CUipcMemHandle handle[2];
	CUdeviceptr own[TIMES], a[2];

	start();
	for (unsigned int i = 0; i < 2; i++)
		handle[i] = foreign_handle((unsigned char)(i + 1));
	for (unsigned int n = 0; n < TIMES; n++) {
		CHECK_EQ(cuMemAlloc_v2(&own[n], 100), CUDA_SUCCESS);
		seen[count++] = id_of(own[n]);
		for (unsigned int i = 0; i < 2; i++) {
			CHECK_EQ(cuIpcOpenMemHandle_v2(&a[i], handle[i], OPEN_FLAGS),
				CUDA_SUCCESS);
			seen[count++] = id_of(a[i]);
		}
		for (unsigned int i = 0; i < 2; i++)
			CHECK_EQ(cuIpcCloseMemHandle(a[i]), CUDA_SUCCESS);
	}
	for (unsigned int i = 0; i < count; i++)
		for (unsigned int k = 0; k < i; k++)
			CHECK(seen[i] != seen[k]);
	finish();
}

static CUresult set_attribute(
	const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	return *(const unsigned int *)value == 1 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

/* A flag of the opener's: told as set, block by block, and gone with the opening. */
static void body_open_sync_memops(void)
{
	const unsigned int on = 1, off = 0;
	CUipcMemHandle handle[2];
	CUdeviceptr a[2];

	start();
	sl_real.cuPointerSetAttribute = set_attribute;
	for (unsigned int i = 0; i < 2; i++) {
		handle[i] = foreign_handle((unsigned char)(i + 1));
		CHECK_EQ(cuIpcOpenMemHandle_v2(&a[i], handle[i], OPEN_FLAGS),
			CUDA_SUCCESS);
		CHECK_EQ(sync_memops_of(a[i]), 0);
	}
	CHECK_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a[0] + 8),
		CUDA_SUCCESS);
	CHECK_EQ(sync_memops_of(a[0]), 1);
	CHECK_EQ(sync_memops_of(a[1]), 0);
	CHECK_EQ(cuPointerSetAttribute(&off, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a[0]),
		CUDA_SUCCESS);
	CHECK_EQ(sync_memops_of(a[0]), 0);
	CHECK_EQ(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a[0]),
		CUDA_SUCCESS);
	CHECK_EQ(cuIpcCloseMemHandle(a[0]), CUDA_SUCCESS);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&a[0], handle[0], OPEN_FLAGS), CUDA_SUCCESS);
	CHECK_EQ(sync_memops_of(a[0]), 0);
	finish();
}

static void body_open_refused(void)
{
	static const struct {
		uint32_t reason;
		CUresult result;
	} rows[] = {
		{SL_IPC_UNKNOWN, CUDA_ERROR_INVALID_VALUE},
		{SL_IPC_UNSEEN, CUDA_ERROR_INVALID_DEVICE},
		{SL_IPC_FULL, CUDA_ERROR_OUT_OF_MEMORY},
	};
	CUipcMemHandle handle;
	CUdeviceptr a;

	start();
	handle = foreign_handle(1);
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		fake_lock();
		fake.open_reason = rows[i].reason;
		fake_unlock();
		CHECK_EQ(cuIpcOpenMemHandle_v2(&a, handle, OPEN_FLAGS), rows[i].result);
	}
	/* Figures that do not fit together, a block outside, an unknown GPU. */
	fake_lock();
	fake.open_reason = SL_IPC_OK;
	fake.opened.count = 3;
	fake_unlock();
	CHECK_EQ(cuIpcOpenMemHandle_v2(&a, handle, OPEN_FLAGS),
		CUDA_ERROR_OPERATING_SYSTEM);
	fake_lock();
	fake.opened.count = 1;
	fake.opened.bytes = 64 * SL_MIB;
	fake_unlock();
	CHECK_EQ(cuIpcOpenMemHandle_v2(&a, handle, OPEN_FLAGS), CUDA_ERROR_INVALID_VALUE);
	fake_lock();
	fake.opened.ordinal = 9;
	fake_unlock();
	CHECK_EQ(
		cuIpcOpenMemHandle_v2(&a, handle, OPEN_FLAGS), CUDA_ERROR_INVALID_DEVICE);
	CHECK_EQ(STUB(mapped_bytes), 0);
	finish();
}

/* Every call of the driver fails once: nothing is left behind. */
static void body_open_faults(void)
{
	CUipcMemHandle handle;
	unsigned int fds, failed = 0;
	CUdeviceptr a;

	start();
	handle = foreign_handle(1);
	fds = open_fds();
	for (unsigned int at = 1; at <= 8; at++) {
		CUresult r;

		stub_lock();
		stub.fault_at = stub.calls + at;
		stub.fault = CUDA_ERROR_UNKNOWN;
		stub_unlock();
		r = cuIpcOpenMemHandle_v2(&a, handle, OPEN_FLAGS);
		stub_lock();
		stub.fault_at = 0;
		stub_unlock();
		failed += r != CUDA_SUCCESS;
		if (r == CUDA_SUCCESS)
			CHECK_EQ(cuIpcCloseMemHandle(a), CUDA_SUCCESS);
		CHECK_EQ(STUB(mapped_bytes), 0);
		CHECK_EQ(STUB(reserved_bytes), 0);
		check_fds(fds);
	}
	CHECK(failed >=
		5); /* reserve, two imports, two maps, and access; releasing may fail */
	finish();
}

static void *open_in_thread(void *arg)
{
	CUdeviceptr a = 0;

	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&a, *(CUipcMemHandle *)arg, OPEN_FLAGS),
		CUDA_SUCCESS);
	return (void *)(uintptr_t)a;
}

/* Many threads want the same; there is no daemon at first. */
static void body_open_waits(void)
{
	CUipcMemHandle handle;
	pthread_t threads[8];
	void *at[8];

	start();
	handle = foreign_handle(1);
	fake_die();
	for (size_t i = 0; i < SL_ARRAY_LEN(threads); i++)
		pthread_create(&threads[i], NULL, open_in_thread, &handle);
	usleep(100000);
	fake_listen();
	for (size_t i = 0; i < SL_ARRAY_LEN(threads); i++) {
		pthread_join(threads[i], &at[i]);
		CHECK_EQ((uintptr_t)at[i], (uintptr_t)at[0]);
	}
	CHECK_EQ(STUB(imports), 2);
	for (size_t i = 0; i < SL_ARRAY_LEN(threads); i++) {
		CHECK_EQ(STUB(mapped_bytes), 102 * SL_MIB);
		CHECK_EQ(
			cuIpcCloseMemHandle((CUdeviceptr)(uintptr_t)at[0]), CUDA_SUCCESS);
	}
	CHECK_EQ(STUB(mapped_bytes), 0);
	finish();
}

/* Of another context, whose work has ended. */
static void *close_in_thread(void *arg)
{
	CUcontext other;

	CHECK_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
	CHECK_EQ(cuIpcCloseMemHandle(*(CUdeviceptr *)arg), CUDA_SUCCESS);
	return NULL;
}

/* Until one more waits for the work of the closed memory's context. */
/* Opens memory of another process in a context that is busy until stub_busy is taken back. */
static CUdeviceptr open_beside_work(CUipcMemHandle *handle)
{
	CUdeviceptr at;

	start();
	*handle = foreign_handle(1);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&at, *handle, OPEN_FLAGS), CUDA_SUCCESS);
	__atomic_store_n(&stub_busy, ctx, __ATOMIC_RELEASE);
	return at;
}

static void start_closing(pthread_t *thread, CUdeviceptr *at)
{
	unsigned int waits = STUB(sync_waits);

	pthread_create(thread, NULL, close_in_thread, at);
	while (STUB(sync_waits) == waits)
		usleep(100);
}

/* While a thread that closes memory waits for work, another that opens the memory does not wait and
 * gets the present mapping. The last close unmaps it, in whatever order the closing threads
 * finish. */
static void body_open_while_closing(void)
{
	CUipcMemHandle handle;
	CUdeviceptr first, a;
	pthread_t closers[3];

	first = open_beside_work(&handle);
	for (size_t i = 0; i < SL_ARRAY_LEN(closers); i++) {
		start_closing(&closers[i], &first);
		CHECK_EQ(cuIpcOpenMemHandle_v2(&a, handle, OPEN_FLAGS), CUDA_SUCCESS);
		CHECK_EQ(a, first);
	}
	CHECK_EQ(STUB(imports), 2);
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	for (size_t i = 0; i < SL_ARRAY_LEN(closers); i++)
		pthread_join(closers[i], NULL);
	CHECK_EQ(STUB(mapped_bytes), 102 * SL_MIB);
	CHECK_EQ(cuIpcCloseMemHandle(a), CUDA_SUCCESS);
	CHECK_EQ(STUB(mapped_bytes), 0);
	finish();
}

/* The context goes with memory that was opened again, while a thread that had closed it still
 * waits. */
static void body_dropped_while_closing(void)
{
	CUipcMemHandle handle;
	CUdeviceptr first, a;
	pthread_t closer;

	first = open_beside_work(&handle);
	start_closing(&closer, &first);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&a, handle, OPEN_FLAGS), CUDA_SUCCESS);
	sl_import_drop_context(ctx);
	CHECK_EQ(STUB(mapped_bytes), 0);
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	pthread_join(closer, NULL);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&a, handle, OPEN_FLAGS), CUDA_SUCCESS);
	CHECK_EQ(cuIpcCloseMemHandle(a), CUDA_SUCCESS);
	CHECK_EQ(STUB(mapped_bytes), 0);
	finish();
}

/* The context goes while a closing thread still waits: another context at the same address is not
 * affected. */
static void body_dropped_while_leaving(void)
{
	CUipcMemHandle handle;
	CUdeviceptr first, a;
	pthread_t closer;

	first = open_beside_work(&handle);
	start_closing(&closer, &first);
	sl_import_drop_context(ctx);
	CHECK_EQ(STUB(mapped_bytes), 0);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&a, handle, OPEN_FLAGS), CUDA_SUCCESS);
	CHECK_EQ(STUB(imports), 4);
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	pthread_join(closer, NULL);
	CHECK_EQ(STUB(mapped_bytes), 102 * SL_MIB);
	CHECK_EQ(cuIpcCloseMemHandle(a), CUDA_SUCCESS);
	CHECK_EQ(STUB(mapped_bytes), 0);
	finish();
}

static void *opens_and_closes(void *arg)
{
	CUdeviceptr a;

	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	for (int i = 0; i < 200; i++) {
		CHECK_EQ(cuIpcOpenMemHandle_v2(&a, *(CUipcMemHandle *)arg, OPEN_FLAGS),
			CUDA_SUCCESS);
		CHECK_EQ(cuIpcCloseMemHandle(a), CUDA_SUCCESS);
	}
	return NULL;
}

/* Many at once: no thread has closed memory, and nothing is left. */
static void body_open_storm(void)
{
	CUipcMemHandle handle;
	pthread_t threads[4];

	start();
	handle = foreign_handle(1);
	for (size_t i = 0; i < SL_ARRAY_LEN(threads); i++)
		pthread_create(&threads[i], NULL, opens_and_closes, &handle);
	for (size_t i = 0; i < SL_ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(STUB(mapped_bytes), 0);
	finish();
}

#define TESTS                    \
	X(offer)                 \
	X(refused)               \
	X(cannot_export)         \
	X(next_daemon)           \
	X(open)                  \
	X(open_ids)              \
	X(open_sync_memops)      \
	X(open_refused)          \
	X(open_faults)           \
	X(open_waits)            \
	X(open_while_closing)    \
	X(dropped_while_closing) \
	X(dropped_while_leaving) \
	X(open_storm)

#define X(name)                               \
	static void test_##name(void **state) \
	{                                     \
		(void)state;                  \
		in_child(body_##name, 60);    \
	}
TESTS
#undef X

int main(void)
{
#define X(name) cmocka_unit_test(test_##name),
	const struct CMUnitTest tests[] = {TESTS};
#undef X

	return cmocka_run_group_tests(tests, NULL, NULL);
}
