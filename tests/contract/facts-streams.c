/*
 * facts-streams - order, default streams, events, host functions
 *
 * A kernel that runs for 300 ms makes a stream busy. "Still running" is asked at once after the
 * launch, with the module loaded before, so that no slow call comes between.
 */
#include "contract.h"

#include <pthread.h>
#include <unistd.h>

#define MANUAL "driver API manual"

static CUstream new_stream(unsigned int flags)
{
	CUstream stream;

	OK(cuStreamCreate, &stream, flags);
	return stream;
}

static CUevent new_event(unsigned int flags)
{
	CUevent event;

	OK(cuEventCreate, &event, flags);
	return event;
}

/* Context with the kernels loaded: the first launch costs nothing afterwards. */
static void ready(void)
{
	contract_context();
	contract_spin(NULL, 1);
	OK(cuCtxSynchronize);
}

FACT(stream_idle, MANUAL, SAME, "an idle stream is done")
{
	CUstream stream;

	contract_context();
	stream = new_stream(CU_STREAM_NON_BLOCKING);
	OK(cuStreamQuery, stream);
	OK(cuStreamSynchronize, stream);
	OK(cuStreamQuery, NULL);
	OK(cuStreamDestroy_v2, stream);
}

FACT(stream_busy, MANUAL, SAME, "a launch returns before the kernel is done")
{
	CUstream stream;
	uint64_t start;

	ready();
	stream = new_stream(CU_STREAM_NON_BLOCKING);
	start = contract_now_ms();
	contract_spin(stream, 300);
	IS(ERROR_NOT_READY, cuStreamQuery, stream);
	OK(cuStreamSynchronize, stream);
	OK(cuStreamQuery, stream);
	HOLDS(contract_now_ms() - start, >=, 290);
}

FACT(stream_order, MANUAL, SAME, "work of one stream runs in order")
{
	CUdeviceptr word;
	CUstream stream;
	uint32_t expected = 1, seen = 0;

	ready();
	word = contract_alloc(4);
	stream = new_stream(CU_STREAM_NON_BLOCKING);
	OK(cuMemsetD32Async, word, 1, 1, stream);
	for (uint32_t i = 0; i < 50; i++) {
		contract_step(stream, word, 3, i);
		expected = expected * 3 + i;
	}
	OK(cuMemcpyDtoHAsync_v2, &seen, word, 4, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(seen, ==, expected);
}

FACT(stream_overlap, MANUAL, SAME, "work of one stream does not hold another back")
{
	CUstream slow, quick;
	CUdeviceptr word;

	ready();
	word = contract_alloc(4);
	slow = new_stream(CU_STREAM_NON_BLOCKING);
	quick = new_stream(CU_STREAM_NON_BLOCKING);
	contract_spin(slow, 400);
	contract_step(quick, word, 1, 1);
	OK(cuStreamSynchronize, quick);
	IS(ERROR_NOT_READY, cuStreamQuery, slow);
}

FACT(stream_legacy_waits, MANUAL, SAME, "the legacy stream waits for blocking streams")
{
	CUstream blocking;
	CUdeviceptr word;

	ready();
	word = contract_alloc(4);
	blocking = new_stream(CU_STREAM_DEFAULT);
	contract_spin(blocking, 300);
	contract_step(NULL, word, 1, 1);
	OK(cuStreamSynchronize, NULL);
	OK(cuStreamQuery, blocking);
}

FACT(stream_legacy_holds, MANUAL, SAME, "blocking streams wait for the legacy stream")
{
	CUstream blocking;
	CUdeviceptr word;

	ready();
	word = contract_alloc(4);
	blocking = new_stream(CU_STREAM_DEFAULT);
	contract_spin(NULL, 300);
	contract_step(blocking, word, 1, 1);
	IS(ERROR_NOT_READY, cuStreamQuery, blocking);
	OK(cuStreamSynchronize, blocking);
	OK(cuStreamQuery, NULL);
}

FACT(stream_nonblocking, MANUAL, SAME,
	"non-blocking streams do not wait for the legacy stream")
{
	CUstream other;
	CUdeviceptr word;

	ready();
	word = contract_alloc(4);
	other = new_stream(CU_STREAM_NON_BLOCKING);
	contract_spin(NULL, 400);
	contract_step(other, word, 1, 1);
	OK(cuStreamSynchronize, other);
	IS(ERROR_NOT_READY, cuStreamQuery, NULL);
}

FACT(stream_handles, MANUAL, SAME,
	"handles 0 and 1 are the legacy stream, 2 the thread's own")
{
	ready();
	contract_spin(NULL, 300);
	IS(ERROR_NOT_READY, cuStreamQuery, CU_STREAM_LEGACY);
	OK(cuStreamSynchronize, CU_STREAM_LEGACY);
	OK(cuStreamQuery, NULL);
	OK(cuStreamQuery, CU_STREAM_PER_THREAD);
}

FACT(stream_per_thread, MANUAL, SAME,
	"the thread's own stream waits for the legacy stream")
{
	CUdeviceptr word;

	ready();
	word = contract_alloc(4);
	contract_spin(NULL, 300);
	contract_step(CU_STREAM_PER_THREAD, word, 1, 1);
	OK(cuStreamSynchronize, CU_STREAM_PER_THREAD);
	OK(cuStreamQuery, NULL);
}

static void *query_own(void *context)
{
	OK(cuCtxSetCurrent, (CUcontext)context);
	OK(cuStreamQuery, CU_STREAM_PER_THREAD);
	return NULL;
}

FACT(stream_threads_apart, MANUAL, SAME, "each thread has its own per-thread stream")
{
	CUcontext context;
	pthread_t thread;

	ready();
	OK(cuCtxGetCurrent, &context);
	contract_spin(CU_STREAM_PER_THREAD, 500);
	HOLDS(pthread_create(&thread, NULL, query_own, context), ==, 0);
	pthread_join(thread, NULL);
	IS(ERROR_NOT_READY, cuStreamQuery, CU_STREAM_PER_THREAD);
}

FACT(stream_flags, MANUAL, SAME, "a stream knows its flags, priority and context")
{
	CUcontext context = contract_context(), seen = NULL;
	unsigned int flags = 0;
	int priority = 99;
	CUstream stream;

	OK(cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
	OK(cuStreamGetFlags, stream, &flags);
	HOLDS(flags, ==, CU_STREAM_NON_BLOCKING);
	OK(cuStreamGetPriority, stream, &priority);
	HOLDS(priority, ==, 0);
	OK(cuStreamGetCtx, stream, &seen);
	HOLDS((uintptr_t)seen, ==, (uintptr_t)context);
}

FACT(stream_flags_bad, MANUAL, SAME, "unknown stream flags are refused")
{
	CUstream stream;

	contract_context();
	IS(ERROR_INVALID_VALUE, cuStreamCreate, &stream, 0x80);
	IS(ERROR_INVALID_VALUE, cuStreamCreate, NULL, 0);
}

FACT(stream_destroy_busy, MANUAL, SAME,
	"destroying a busy stream returns at once, the work ends")
{
	CUdeviceptr word;
	CUstream stream;
	uint64_t start;

	ready();
	word = contract_alloc(4);
	OK(cuMemsetD32_v2, word, 1, 1);
	OK(cuCtxSynchronize);
	stream = new_stream(CU_STREAM_NON_BLOCKING);
	contract_spin(stream, 400);
	contract_step(stream, word, 1, 41);
	start = contract_now_ms();
	OK(cuStreamDestroy_v2, stream);
	HOLDS(contract_now_ms() - start, <, 200);
	OK(cuCtxSynchronize);
	HOLDS(contract_read(word), ==, 42);
}

FACT(context_sync_all, MANUAL, SAME, "cuCtxSynchronize waits for every stream")
{
	CUstream first, second;

	ready();
	first = new_stream(CU_STREAM_NON_BLOCKING);
	second = new_stream(CU_STREAM_DEFAULT);
	contract_spin(first, 200);
	contract_spin(second, 300);
	OK(cuCtxSynchronize);
	OK(cuStreamQuery, first);
	OK(cuStreamQuery, second);
}

FACT(event_fresh, MANUAL, SAME, "an event never recorded is done")
{
	CUevent event;

	contract_context();
	event = new_event(CU_EVENT_DEFAULT);
	OK(cuEventQuery, event);
	OK(cuEventSynchronize, event);
	OK(cuEventDestroy_v2, event);
}

FACT(event_waits, MANUAL, SAME, "an event is done when the work before it is")
{
	CUstream stream;
	CUevent event;

	ready();
	stream = new_stream(CU_STREAM_NON_BLOCKING);
	event = new_event(CU_EVENT_DISABLE_TIMING);
	contract_spin(stream, 300);
	OK(cuEventRecord, event, stream);
	IS(ERROR_NOT_READY, cuEventQuery, event);
	OK(cuEventSynchronize, event);
	OK(cuEventQuery, event);
	OK(cuStreamQuery, stream);
}

FACT(event_only_before, MANUAL, SAME, "work after the event does not count")
{
	CUstream stream;
	CUevent event;

	ready();
	stream = new_stream(CU_STREAM_NON_BLOCKING);
	event = new_event(CU_EVENT_DISABLE_TIMING);
	OK(cuEventRecord, event, stream);
	contract_spin(stream, 400);
	OK(cuEventSynchronize, event);
	IS(ERROR_NOT_READY, cuStreamQuery, stream);
}

FACT(event_again, MANUAL, SAME, "recording again moves the event")
{
	CUstream stream;
	CUevent event;

	ready();
	stream = new_stream(CU_STREAM_NON_BLOCKING);
	event = new_event(CU_EVENT_DISABLE_TIMING);
	OK(cuEventRecord, event, stream);
	OK(cuEventSynchronize, event);
	contract_spin(stream, 300);
	OK(cuEventRecord, event, stream);
	IS(ERROR_NOT_READY, cuEventQuery, event);
}

FACT(event_other_stream, MANUAL, SAME, "a stream can be made to wait for another's event")
{
	CUstream slow, waiting;
	CUevent event;
	CUdeviceptr word;
	uint32_t seen = 0;

	ready();
	word = contract_alloc(4);
	slow = new_stream(CU_STREAM_NON_BLOCKING);
	waiting = new_stream(CU_STREAM_NON_BLOCKING);
	event = new_event(CU_EVENT_DISABLE_TIMING);
	OK(cuMemsetD32Async, word, 0, 1, slow);
	contract_spin(slow, 300);
	contract_step(slow, word, 0, 7);
	OK(cuEventRecord, event, slow);
	OK(cuStreamWaitEvent, waiting, event, 0);
	contract_step(waiting, word, 10, 1);
	OK(cuMemcpyDtoHAsync_v2, &seen, word, 4, waiting);
	OK(cuStreamSynchronize, waiting);
	HOLDS(seen, ==, 71);
}

FACT(event_time, MANUAL, SAME, "two events tell the time between them")
{
	CUevent start, end;
	float ms = 0;

	ready();
	start = new_event(CU_EVENT_DEFAULT);
	end = new_event(CU_EVENT_DEFAULT);
	OK(cuEventRecord, start, NULL);
	contract_spin(NULL, 200);
	OK(cuEventRecord, end, NULL);
	IS(ERROR_NOT_READY, cuEventElapsedTime, &ms, start, end);
	OK(cuEventSynchronize, end);
	OK(cuEventElapsedTime, &ms, start, end);
	HOLDS(ms, >=, 190);
	HOLDS(ms, <, 2000);
}

FACT(event_time_bad, MANUAL, SAME,
	"events without time, or never recorded, have none between them")
{
	CUevent start, end, fresh;
	float ms;

	contract_context();
	start = new_event(CU_EVENT_DISABLE_TIMING);
	end = new_event(CU_EVENT_DEFAULT);
	fresh = new_event(CU_EVENT_DEFAULT);
	OK(cuEventRecord, start, NULL);
	OK(cuEventRecord, end, NULL);
	OK(cuEventSynchronize, end);
	IS(ERROR_INVALID_HANDLE, cuEventElapsedTime, &ms, start, end);
	IS(ERROR_INVALID_HANDLE, cuEventElapsedTime, &ms, fresh, end);
}

FACT(event_destroy_busy, MANUAL, SAME, "a pending event may be destroyed")
{
	CUevent event;

	ready();
	event = new_event(CU_EVENT_DISABLE_TIMING);
	contract_spin(NULL, 100);
	OK(cuEventRecord, event, NULL);
	OK(cuEventDestroy_v2, event);
	OK(cuCtxSynchronize);
}

struct seen_by_host {
	pthread_t thread;
	uint32_t value, calls;
	CUresult result;
};

static uint32_t host_word;

static void note(void *data)
{
	struct seen_by_host *seen = data;

	seen->thread = pthread_self();
	seen->value = host_word;
	seen->calls++;
}

FACT(host_function, MANUAL, SAME,
	"a host function runs in its stream's order, on another thread")
{
	struct seen_by_host seen = {0};
	CUdeviceptr word;

	ready();
	word = contract_alloc(4);
	OK(cuMemsetD32_v2, word, 31, 1);
	contract_spin(NULL, 100);
	OK(cuMemcpyDtoHAsync_v2, &host_word, word, 4, NULL);
	OK(cuLaunchHostFunc, NULL, note, &seen);
	OK(cuCtxSynchronize);
	HOLDS(seen.calls, ==, 1);
	HOLDS(seen.value, ==, 31);
	HOLDS(pthread_equal(seen.thread, pthread_self()), ==, 0);
}

static void slow_host(void *data)
{
	contract_sleep_ms(200);
	*(uint32_t *)data = 8;
}

FACT(host_function_holds, MANUAL, SAME, "work after a host function waits for it")
{
	CUdeviceptr word;
	uint32_t value = 0;
	CUstream stream;

	ready();
	word = contract_alloc(4);
	stream = new_stream(CU_STREAM_NON_BLOCKING);
	OK(cuLaunchHostFunc, stream, slow_host, &value);
	contract_step(stream, word, 0, 1);
	IS(ERROR_NOT_READY, cuStreamQuery, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(value, ==, 8);
}

static void call_driver(void *data)
{
	struct seen_by_host *seen = data;
	CUdeviceptr at;

	seen->result = CU(cuMemAlloc_v2)(&at, 4096);
}

FACT(host_function_driver, MANUAL, SAME, "a host function must not call the driver")
{
	struct seen_by_host seen = {0};

	ready();
	OK(cuLaunchHostFunc, NULL, call_driver, &seen);
	OK(cuCtxSynchronize);
	HOLDS(seen.result, ==, CUDA_ERROR_NOT_PERMITTED);
}

static void note_status(CUstream stream, CUresult status, void *data)
{
	struct seen_by_host *seen = data;

	(void)stream;
	seen->result = status;
	seen->calls++;
}

FACT(stream_callback, MANUAL, SAME, "a stream callback is told how the work went")
{
	struct seen_by_host seen = {.result = CUDA_ERROR_UNKNOWN};

	ready();
	contract_spin(NULL, 50);
	OK(cuStreamAddCallback, NULL, note_status, &seen, 0);
	OK(cuCtxSynchronize);
	HOLDS(seen.calls, ==, 1);
	HOLDS(seen.result, ==, CUDA_SUCCESS);
	IS(ERROR_INVALID_VALUE, cuStreamAddCallback, NULL, NULL, NULL, 0);
}

FACT(stream_many, "the launch queue blocks when full", SAME,
	"thousands of launches wait in order, the call blocks if there is no room")
{
	CUdeviceptr word;
	CUstream stream;
	uint32_t seen = 0;

	ready();
	word = contract_alloc(4);
	stream = new_stream(CU_STREAM_NON_BLOCKING);
	OK(cuMemsetD32Async, word, 0, 1, stream);
	contract_spin(stream, 100);
	for (int i = 0; i < 5000; i++)
		contract_step(stream, word, 1, 1);
	OK(cuMemcpyDtoHAsync_v2, &seen, word, 4, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(seen, ==, 5000);
}
