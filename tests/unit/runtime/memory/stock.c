/*
 * stock - stream-ordered memory against a driver of streams that get on when the test says so
 *
 * The order rules, as the freeing stream's work may still use the memory; and the books, which must
 * agree with the stub's handles as in memory.c. peer-failures row 8 (async pools).
 */
#include "../child.h"
#include "../fake.h"
#include "../stub.h"

#include "runtime/contexts/stream.h"
#include "runtime/memory/memory.h"
#include "runtime/memory/tract.h"
#include "runtime/real/real.h"
#include "runtime/session/session.h"

#include <pthread.h>

#define POOL    ((CUmemoryPool)0x5000) /* the device's */
#define MADE    ((CUmemoryPool)0x6000)
#define A       ((CUstream)0x100)
#define B       ((CUstream)0x200)
#define C       ((CUstream)0x300)
#define BAD     ((CUstream)0x400)
#define STREAMS 5
#define EVENTS  4096
#define STEP    (32 * SL_MIB)

static CUcontext ctx;
static int opportunistic = 1, internal = 1;

/* Work is a number that counts up; [0] the legacy stream, [4] any thread's own. */
static struct work {
	uint64_t submitted, done;
	uint64_t waits[STREAMS];  /* its later work waits for so much of another's */
	uint64_t before[STREAMS]; /* and this much was submitted before it had to wait */
} work[STREAMS];
static struct {
	unsigned int stream;
	uint64_t at;
} events[EVENTS];
static unsigned int event_count, records, record_fails;
static unsigned int ended_events,
	stale; /* events that went with their context; uses of them */
static void (*on_query)(void);

static unsigned int index_of(CUstream stream)
{
	if (!stream || stream == CU_STREAM_LEGACY)
		return 0;
	return stream == CU_STREAM_PER_THREAD ? 4
					      : (unsigned int)((uintptr_t)stream >> 8);
}

static CUresult stream_ctx(CUstream stream, CUcontext *out)
{
	*out = ctx;
	return stream == BAD ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

static CUresult event_create(CUevent *event, unsigned int flags)
{
	CHECK(event_count + 1 < EVENTS);
	*event = (CUevent)(uintptr_t)++event_count;
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream stream)
{
	unsigned int s = index_of(stream);

	if (record_fails) {
		record_fails--;
		return CUDA_ERROR_UNKNOWN - 1;
	}
	if ((uintptr_t)event <= ended_events) {
		stale++;
		return CUDA_ERROR_INVALID_HANDLE;
	}
	records++;
	events[(uintptr_t)event].stream = s;
	events[(uintptr_t)event].at = work[s].submitted;
	return CUDA_SUCCESS;
}

static bool is_done(CUevent event)
{
	return work[events[(uintptr_t)event].stream].done >= events[(uintptr_t)event].at;
}

static CUresult event_query(CUevent event)
{
	stale += (uintptr_t)event <= ended_events;
	if (on_query)
		on_query();
	return is_done(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult event_destroy(CUevent event)
{
	return CUDA_SUCCESS;
}

static CUresult wait_event(CUstream stream, CUevent event, unsigned int flags)
{
	struct work *waiter = &work[index_of(stream)];
	unsigned int of = events[(uintptr_t)event].stream;

	if (waiter->waits[of] <= work[of].done)
		waiter->before[of] = waiter->submitted;
	waiter->waits[of] = sl_max_u64(waiter->waits[of], events[(uintptr_t)event].at);
	return CUDA_SUCCESS;
}

/* How far the stream's work can get now. */
static uint64_t possible(const struct work *stream)
{
	uint64_t most = stream->submitted;

	for (int i = 0; i < STREAMS; i++)
		if (stream->waits[i] > work[i].done)
			most = sl_min_u64(most, stream->before[i]);
	return sl_max_u64(most, stream->done);
}

static pthread_t tester;
static uint32_t others_wait; /* atomic: the library's own threads see the work end, too */

static CUresult synchronize(void)
{
	if (!pthread_equal(pthread_self(), tester) &&
		!__atomic_load_n(&others_wait, __ATOMIC_ACQUIRE))
		return CUDA_ERROR_NOT_READY;
	for (int i = 0; i < STREAMS; i++)
		work[i].done = work[i].submitted;
	return CUDA_SUCCESS;
}

static CUresult stream_synchronize(CUstream stream)
{
	work[index_of(stream)].done = work[index_of(stream)].submitted;
	return CUDA_SUCCESS;
}

static CUresult destroy_stream(CUstream stream)
{
	return CUDA_SUCCESS;
}

static CUresult own_pool(CUmemoryPool *pool, CUdevice dev)
{
	*pool = POOL;
	return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult get_attribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	if (attr == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC)
		*(int *)value = opportunistic;
	else if (attr == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
		*(int *)value = internal;
	else
		*(cuuint64_t *)value = 0;
	return CUDA_SUCCESS;
}

static CUresult set_attribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	return CUDA_SUCCESS;
}

static CUresult trim(CUmemoryPool pool, size_t keep_bytes)
{
	return CUDA_SUCCESS;
}

static CUresult make_pool(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	*pool = MADE;
	return CUDA_SUCCESS;
}

static CUresult end_pool(CUmemoryPool pool)
{
	return CUDA_SUCCESS;
}

static CUresult count_devices(int *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

static CUresult no_driver_alloc(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
	CHECK(!"the driver's own pool is asked");
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static void start(void)
{
	tester = pthread_self();
	stub_install();
	sl_real.cuStreamGetCtx = stream_ctx;
	sl_real.cuEventCreate = event_create;
	sl_real.cuEventRecord = event_record;
	sl_real.cuEventQuery = event_query;
	sl_real.cuEventDestroy_v2 = event_destroy;
	sl_real.cuStreamWaitEvent = wait_event;
	sl_real.cuCtxSynchronize = synchronize;
	sl_real.cuStreamSynchronize = stream_synchronize;
	sl_real.cuStreamDestroy_v2 = destroy_stream;
	sl_real.cuDeviceGetDefaultMemPool = own_pool;
	sl_real.cuDeviceGetMemPool = own_pool;
	sl_real.cuDeviceGetCount = count_devices;
	sl_real.cuMemPoolGetAttribute = get_attribute;
	sl_real.cuMemPoolSetAttribute = set_attribute;
	sl_real.cuMemPoolTrimTo = trim;
	sl_real.cuMemPoolCreate = make_pool;
	sl_real.cuMemPoolDestroy = end_pool;
	sl_real.cuMemAllocAsync = no_driver_alloc;
	sl_real.cuMemAllocAsync_ptsz = no_driver_alloc;
	fake_start(false);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	ctx = stub_make_current(0);
}

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

static CUdeviceptr take(uint64_t bytes, CUstream stream)
{
	CUdeviceptr at = 0;

	CHECK_EQ(cuMemAllocAsync(&at, bytes, stream), CUDA_SUCCESS);
	CHECK_EQ(at % 512, 0);
	return at;
}

static void give(CUdeviceptr at, CUstream stream)
{
	CHECK_EQ(cuMemFreeAsync(at, stream), CUDA_SUCCESS);
}

static void submit(CUstream stream)
{
	work[index_of(stream)].submitted++;
}

static void get_on(CUstream stream)
{
	work[index_of(stream)].done = work[index_of(stream)].submitted;
}

static uint64_t figure(CUmemPool_attribute attribute)
{
	cuuint64_t value = 0;

	CHECK_EQ(cuMemPoolGetAttribute(POOL, attribute, &value), CUDA_SUCCESS);
	return value;
}

static void keep(cuuint64_t bytes)
{
	CHECK_EQ(cuMemPoolSetAttribute(POOL, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes),
		CUDA_SUCCESS);
}

/* --- order ------------------------------------------------------------------------------------ */

static void body_same_stream(void)
{
	CUdeviceptr first;

	start();
	first = take(STEP, A);
	submit(A);
	give(first, A);
	CHECK_EQ(take(STEP, A), first);
	CHECK_EQ(work[1].done, 0);
	check_books(STEP);
	finish();
}

static void body_other_stream(void)
{
	CUdeviceptr first;

	start();
	internal = 0;
	first = take(STEP, A);
	submit(A);
	give(first, A);
	CHECK(take(STEP, B) != first);
	get_on(A);
	opportunistic = 0;
	CHECK(take(STEP, B) != first);
	opportunistic = 1;
	CHECK_EQ(take(STEP, B), first);
	check_books(3 * STEP);
	finish();
}

static void body_waits(void)
{
	CUdeviceptr first;

	start();
	first = take(STEP, A);
	submit(A);
	give(first, A);
	submit(A);
	CHECK_EQ(take(STEP, B), first);
	CHECK_EQ(work[2].waits[1], 1);
	check_books(STEP);
	finish();
}

static void body_neighbours(void)
{
	CUdeviceptr first, second;

	start();
	internal = 0;
	first = take(STEP / 2, A);
	second = take(STEP / 2, A);
	submit(A);
	give(first, A);
	get_on(A);
	submit(A);
	give(second, A);
	CHECK(take(STEP, B) != sl_min_u64(first, second));
	/* The stream itself has both at once. */
	CHECK_EQ(take(STEP, A), sl_min_u64(first, second));
	finish();
}

/* Of what lies free beside it, and what it freed itself, a stream gets one piece. */
static void body_gathered(void)
{
	CUdeviceptr first;

	start();
	internal = 0;
	first = take(STEP / 2, A);
	submit(A);
	give(first, A);
	CHECK_EQ(take(STEP, A), first);
	check_books(STEP);
	finish();
}

/* A stream goes, and a new one gets its handle at once: it has nothing to do with what the old one
 * still does. */
static void body_new_stream(void)
{
	CUdeviceptr first;

	start();
	internal = 0;
	first = take(STEP, A);
	submit(A);
	give(first, A);
	CHECK_EQ(cuStreamDestroy_v2(A), CUDA_SUCCESS);
	CHECK(take(STEP, A) != first);
	get_on(A);
	CHECK_EQ(take(STEP, A), first);
	finish();
}

static CUdeviceptr of_thread;

static void *take_in_thread(void *arg)
{
	(void)sl_real.cuCtxPushCurrent_v2(ctx);
	CHECK_EQ(cuMemAllocAsync_ptsz(&of_thread, STEP, NULL), CUDA_SUCCESS);
	return arg;
}

/* Each thread's own stream is another, under the same name. */
static void body_own_streams(void)
{
	CUdeviceptr first;
	pthread_t thread;

	start();
	internal = 0;
	CHECK_EQ(cuMemAllocAsync_ptsz(&first, STEP, NULL), CUDA_SUCCESS);
	submit(CU_STREAM_PER_THREAD);
	CHECK_EQ(cuMemFreeAsync_ptsz(first, NULL), CUDA_SUCCESS);
	CHECK_EQ(pthread_create(&thread, NULL, take_in_thread, NULL), 0);
	pthread_join(thread, NULL);
	CHECK(of_thread != first);
	CHECK_EQ(take(STEP, CU_STREAM_PER_THREAD), first);
	finish();
}

/* --- all orders at random --------------------------------------------------------------------- */

enum { LIVE_MAX = 64, FREED_MAX = 20000, ROUNDS = 20000 };

static struct freed {
	CUdeviceptr at;
	uint64_t bytes, point;
	unsigned int stream;
} freed[FREED_MAX];
static struct {
	CUdeviceptr at;
	uint64_t bytes;
} live[LIVE_MAX];
static uint64_t dice;

static uint64_t roll(uint64_t sides)
{
	dice = dice * 6364136223846793005u + 1442695040888963407u;
	return (dice >> 33) % sides;
}

static bool overlaps(CUdeviceptr a, uint64_t a_bytes, CUdeviceptr b, uint64_t b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes;
}

/* The part of f from `from` to `to`, if any, stays. */
static void keep_part(
	struct freed f, CUdeviceptr from, CUdeviceptr to, unsigned int *count)
{
	if (from >= to)
		return;
	f.at = from;
	f.bytes = to - from;
	CHECK(*count < FREED_MAX);
	freed[(*count)++] = f;
}

/* May work of stream s use the memory now? What was freed there is history then: the new owner
 * comes after it. */
static void check_order(
	CUdeviceptr at, uint64_t bytes, unsigned int s, unsigned int *count)
{
	unsigned int n = *count;

	for (unsigned int i = 0; i < LIVE_MAX; i++)
		CHECK(!live[i].at || !overlaps(at, bytes, live[i].at, live[i].bytes));
	for (unsigned int i = 0; i < n; i++) {
		struct freed f = freed[i];

		if (!f.bytes || !overlaps(at, bytes, f.at, f.bytes))
			continue;
		CHECK(f.stream == s || work[f.stream].done >= f.point ||
			work[s].waits[f.stream] >= f.point);
		freed[i].bytes = 0;
		keep_part(f, f.at, at, count);
		keep_part(f, at + bytes, f.at + f.bytes, count);
	}
}

/* Points that are reached need not be remembered. */
static void forget_reached(unsigned int *count)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < *count; i++)
		if (freed[i].bytes && work[freed[i].stream].done < freed[i].point)
			freed[kept++] = freed[i];
	*count = kept;
}

static void body_random(void)
{
	static const CUstream streams[] = {NULL, A, B, C};
	unsigned int count = 0;

	start();
	dice = sl_clock_now();
	fprintf(stderr, "seed %llu\n", (unsigned long long)dice);
	keep(UINT64_MAX);
	for (int round = 0; round < ROUNDS; round++) {
		unsigned int i = (unsigned int)roll(LIVE_MAX), s = (unsigned int)roll(4);

		opportunistic = roll(4) > 0;
		internal = roll(3) == 0;
		submit(streams[s]);
		if (live[i].at) {
			give(live[i].at, streams[s]);
			freed[count++] = (struct freed){
				live[i].at, live[i].bytes, work[s].submitted, s};
			live[i].at = 0;
		} else {
			live[i].bytes = 512 * (1 + roll(1ull << roll(16)));
			CUdeviceptr at = take(live[i].bytes, streams[s]);

			check_order(at, live[i].bytes, s, &count);
			live[i].at = at;
		}
		s = (unsigned int)roll(4);
		work[s].done += roll(possible(&work[s]) - work[s].done + 1);
		forget_reached(&count);
	}
	/* Events are used again. */
	CHECK(event_count < records / 4);
	for (int i = 0; i < LIVE_MAX; i++)
		if (live[i].at)
			give(live[i].at, A);
	CHECK_EQ(figure(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
	CHECK_EQ(cuMemPoolTrimTo(POOL, 0), CUDA_SUCCESS);
	check_books(0);
	finish();
}

/* --- what stays, and what goes back ----------------------------------------------------------- */

static void body_threshold(void)
{
	CUdeviceptr first;

	start();
	first = take(1000, A);
	check_books(STEP);
	CHECK_EQ(figure(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1024);
	CHECK_EQ(figure(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), STEP);
	submit(A);
	give(first, A);
	/* Its stream has not got there: nothing goes. */
	CHECK_EQ(cuStreamSynchronize(B), CUDA_SUCCESS);
	check_books(STEP);
	CHECK_EQ(cuStreamSynchronize(A), CUDA_SUCCESS);
	check_books(0);
	/* A tract of three steps would leave less than this. */
	keep(5 * STEP);
	give(take(3 * STEP, A), A);
	give(take(STEP, A), A);
	take(4 * STEP, A);
	CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
	check_books(7 * STEP);
	CHECK_EQ(figure(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 4 * STEP);
	CHECK_EQ(cuMemPoolTrimTo(POOL, 0), CUDA_SUCCESS);
	check_books(4 * STEP);
	finish();
}

/* No message and no handle while the reserve serves. */
static void body_reserve(void)
{
	unsigned int asks, calls;

	start();
	keep(UINT64_MAX);
	give(take(1000, A), A);
	asks = FAKE(asks);
	calls = STUB(calls);
	for (int i = 0; i < 1000; i++) {
		give(take(1000 + (uint64_t)i, A), A);
		submit(A);
		get_on(A);
	}
	CHECK_EQ(FAKE(asks), asks);
	CHECK_EQ(STUB(calls), calls);
	CHECK_EQ(records, 1001);
	CHECK(event_count <= 65);
	finish();
}

static void check_last_ask(uint64_t bytes, uint32_t flags)
{
	CHECK_EQ(FAKE(asked_bytes), bytes);
	CHECK_EQ(FAKE(ask_flags), flags);
}

/* More than is needed is only taken while it is free. */
static void body_step(void)
{
	start();
	take(4096, A);
	check_last_ask(STEP, SL_ASK_NOW);
	take(STEP, A);
	check_last_ask(STEP, 0);
	fake_lock();
	fake.limit_bytes = fake.held_bytes + 16 * SL_MIB;
	fake_unlock();
	take(10 * SL_MIB, A);
	take(10 * SL_MIB, A);
	take(10 * SL_MIB, A);
	check_books(2 * STEP);
	take(12 * SL_MIB, A);
	check_last_ask(12 * SL_MIB, 0);
	CHECK_EQ(FAKE(fails), 0);
	check_books(2 * STEP + 12 * SL_MIB);
	finish();
}

/* Before memory is denied, the reserve goes back. */
static void body_pressure(void)
{
	CUdeviceptr first;

	start();
	keep(UINT64_MAX);
	first = take(512 * SL_MIB, A);
	submit(A);
	give(first, A);
	fake_lock();
	fake.limit_bytes = 600 * SL_MIB;
	fake_unlock();
	__atomic_store_n(&others_wait, 1, __ATOMIC_RELEASE);
	CHECK_EQ(cuMemAlloc_v2(&first, 256 * SL_MIB), CUDA_SUCCESS);
	check_books(256 * SL_MIB);
	finish();
}

/* An eviction gives back what is unused, and what still may be used stays. */
static void body_idle(void)
{
	CUdeviceptr first, second;
	uint8_t uuid[16];

	start();
	keep(UINT64_MAX);
	first = take(STEP, A);
	second = take(STEP, B);
	submit(A);
	give(first, A);
	give(second, B);
	stub_uuid(0, uuid);
	sl_memory_flush_idle(sl_session_gpu(uuid));
	check_books(STEP);
	get_on(A);
	sl_memory_flush_idle(sl_session_gpu(uuid));
	check_books(0);
	finish();
}

/* --- errors ----------------------------------------------------------------------------------- */

static void body_wrong(void)
{
	unsigned int value;
	CUdeviceptr first;

	start();
	first = take(4096, A);
	CHECK_EQ(cuMemAllocAsync(&first, 4096, BAD), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuMemFreeAsync(first, BAD), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuMemFreeAsync(first + 512, A), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemFree_v2(first + 512), CUDA_ERROR_INVALID_VALUE);
	record_fails = 1;
	CHECK_EQ(cuMemFreeAsync(first, A), CUDA_ERROR_UNKNOWN - 1);
	CHECK_EQ(figure(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 4096);
	give(first, A);
	CHECK_EQ(cuMemFreeAsync(first, A), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemFree_v2(first), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, first),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemAllocAsync(&first, SIZE_MAX, A), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(cuMemAllocAsync(&first, 1ull << 60, A), CUDA_ERROR_OUT_OF_MEMORY);
	finish();
}

static void body_freed_now(void)
{
	CUdeviceptr first;

	start();
	first = take(STEP, A);
	submit(A);
	CHECK_EQ(cuMemFree_v2(first), CUDA_SUCCESS);
	CHECK_EQ(work[1].done, 1);
	check_books(0);
	finish();
}

/* Each call that makes the memory fails once: nothing is left, and the next one works. */
static void body_faults(void)
{
	CUdeviceptr at;
	CUresult r;

	start();
	for (unsigned int n = 1;; n++) {
		stub_lock();
		stub.fault_at = stub.calls + n;
		stub.fault = CUDA_ERROR_UNKNOWN - 1;
		stub_unlock();
		r = cuMemAllocAsync(&at, 100, A);
		stub_lock();
		stub.fault_at = 0;
		stub_unlock();
		if (r == CUDA_SUCCESS)
			break;
		CHECK_EQ(figure(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
		check_books(0);
		CHECK(n < 20);
	}
	check_books(STEP);
	finish();
}

static unsigned int shelves_fail;

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

void *__wrap_calloc(size_t count, size_t bytes)
{
	if (bytes != sizeof(struct sl_shelf) || !shelves_fail)
		return __real_calloc(count, bytes);
	shelves_fail--;
	return NULL;
}

static void body_no_host_memory(void)
{
	CUdeviceptr at;

	start();
	shelves_fail = 2; /* for the step, and for what is needed */
	CHECK_EQ(cuMemAllocAsync(&at, 4096, A), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(shelves_fail, 0);
	at = take(4096, A);
	shelves_fail = 1;
	CHECK_EQ(cuMemFree_v2(at), CUDA_ERROR_OUT_OF_MEMORY);
	shelves_fail = 1;
	CHECK_EQ(cuMemFreeAsync(at, A), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(cuMemFree_v2(at), CUDA_SUCCESS);
	check_books(0);
	finish();
}

/* --- capture ---------------------------------------------------------------------------------- */

static CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static CUresult (*unmap_now)(CUdeviceptr at, size_t bytes);

static CUresult exchange_mode(CUstreamCaptureMode *to)
{
	CUstreamCaptureMode was = mode;

	mode = *to;
	*to = was;
	return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr at, size_t bytes)
{
	CHECK_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
	return unmap_now(at, bytes);
}

/* A driver refuses to unmap while another thread captures, unless the thread is relaxed. */
static void body_capture(void)
{
	start();
	give(take(4096, A), A);
	unmap_now = sl_real.cuMemUnmap;
	sl_real.cuMemUnmap = unmap;
	sl_real.cuThreadExchangeStreamCaptureMode = exchange_mode;
	CHECK_EQ(cuMemPoolTrimTo(POOL, 0), CUDA_SUCCESS);
	CHECK_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
	check_books(0);
	sl_real.cuMemUnmap = unmap_now;
	finish();
}

/* --- pools ------------------------------------------------------------------------------------ */

static void body_pools(void)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
		.maxSize = 2 * STEP};
	CUdeviceptr first, second;
	CUmemoryPool pool;

	start();
	CHECK_EQ(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
	CHECK_EQ(cuMemAllocFromPoolAsync(&first, STEP, pool, A), CUDA_SUCCESS);
	CHECK_EQ(cuMemAllocFromPoolAsync(&second, 2 * STEP, pool, A),
		CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(cuMemAllocFromPoolAsync(&second, STEP, pool, A), CUDA_SUCCESS);
	give(second, A);
	check_books(2 * STEP);
	/* What is in use outlives the pool, and ends with its free. */
	CHECK_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
	check_books(STEP);
	give(first, A);
	CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
	check_books(0);
	finish();
}

static void body_context(void)
{
	CUcontext other;

	start();
	keep(UINT64_MAX);
	take(5000, A);
	submit(B);
	give(take(5000, B), B);
	CHECK_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
	take(STEP, NULL);
	CHECK_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
	check_books(STEP);
	CHECK_EQ(figure(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), STEP);
	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	finish();
}

/* Two threads release a context at once; only the second release ends it. */
static void body_two_releases(void)
{
	CUdeviceptr at[3];

	start();
	for (int i = 0; i < 3; i++)
		at[i] = take(4096, A);
	give(at[0], A);
	sl_stream_look();
	submit(B);
	give(at[1], B);
	sl_stream_hold_context(ctx);
	sl_stream_hold_context(ctx);
	sl_stream_end_context(ctx, false);
	sl_stream_look();
	ended_events = event_count;
	sl_stream_end_context(ctx, true);
	sl_stream_look();
	give(at[2], C);
	CHECK_EQ(stale, 0);
	finish();
}

static CUresult of_green(CUcontext *out, CUgreenCtx green)
{
	*out = ctx;
	return CUDA_SUCCESS;
}

static CUresult destroy_green(CUgreenCtx green)
{
	return CUDA_SUCCESS;
}

/* The work of a green context's streams goes on behind its destruction. */
static void body_green(void)
{
	CUdeviceptr at;

	start();
	sl_real.cuCtxFromGreenCtx = of_green;
	sl_real.cuGreenCtxDestroy = destroy_green;
	internal = 0;
	at = take(STEP, A);
	submit(A);
	give(at, A);
	CHECK_EQ(cuGreenCtxDestroy((CUgreenCtx)0x100), CUDA_SUCCESS);
	CHECK_EQ(take(STEP, B), at);
	CHECK_EQ(work[1].done, 1);
	finish();
}

/* An event that cannot be recorded is not tried again. */
static void body_stale_event(void)
{
	CUdeviceptr at;

	start();
	give(take(4096, A), A);
	sl_stream_look();
	ended_events = event_count;
	at = take(4096, A);
	CHECK_EQ(cuMemFreeAsync(at, A), CUDA_ERROR_INVALID_HANDLE);
	give(at, A);
	CHECK_EQ(stale, 1);
	finish();
}

static unsigned int looks;

static void look_inside(void)
{
	static bool inside;

	CHECK(++looks < 100);
	if (inside)
		return;
	inside = true;
	sl_stream_look();
	inside = false;
}

/* Other threads that look do not make a look longer. */
static void body_two_looks(void)
{
	start();
	submit(A);
	give(take(4096, A), A);
	submit(B);
	give(take(4096, B), B);
	on_query = look_inside;
	sl_stream_look();
	on_query = NULL;
	finish();
}

#define TESTS(T)          \
	T(same_stream)    \
	T(other_stream)   \
	T(waits)          \
	T(neighbours)     \
	T(gathered)       \
	T(new_stream)     \
	T(own_streams)    \
	T(random)         \
	T(threshold)      \
	T(reserve)        \
	T(step)           \
	T(pressure)       \
	T(idle)           \
	T(wrong)          \
	T(freed_now)      \
	T(faults)         \
	T(pools)          \
	T(context)        \
	T(two_releases)   \
	T(green)          \
	T(stale_event)    \
	T(no_host_memory) \
	T(capture)        \
	T(two_looks)
#define SCENE(name)                           \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
TESTS(SCENE)
#define ROW(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests_name("runtime-stock", tests, NULL, NULL);
}
