/*
 * facts-context - primary and made contexts, the stack of each thread, reset
 */
#include "contract.h"

#include <pthread.h>

#define MANUAL "driver API manual"

FACT(context_none, MANUAL, SAME, "a fresh program has no current context")
{
	CUcontext context = (CUcontext)1;

	OK(cuInit, 0);
	OK(cuCtxGetCurrent, &context);
	HOLDS((uintptr_t)context, ==, 0);
}

FACT(context_needed, MANUAL, SAME,
	"calls that need a context give INVALID_CONTEXT without one")
{
	size_t free_bytes, total;
	CUdeviceptr at;
	CUstream stream;
	CUdevice device;

	OK(cuInit, 0);
	IS(ERROR_INVALID_CONTEXT, cuMemAlloc_v2, &at, 1024);
	IS(ERROR_INVALID_CONTEXT, cuMemGetInfo_v2, &free_bytes, &total);
	IS(ERROR_INVALID_CONTEXT, cuCtxSynchronize);
	IS(ERROR_INVALID_CONTEXT, cuStreamCreate, &stream, 0);
	IS(ERROR_INVALID_CONTEXT, cuCtxGetDevice, &device);
}

FACT(primary_not_current, MANUAL, SAME,
	"retaining the primary context does not make it current")
{
	CUcontext primary = NULL, current = (CUcontext)1;

	OK(cuInit, 0);
	OK(cuDevicePrimaryCtxRetain, &primary, 0);
	HOLDS((uintptr_t)primary, !=, 0);
	OK(cuCtxGetCurrent, &current);
	HOLDS((uintptr_t)current, ==, 0);
}

FACT(primary_state, MANUAL, SAME, "the primary context is active while it is retained")
{
	unsigned int flags;
	CUcontext context;
	int active = -1;

	OK(cuInit, 0);
	OK(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	HOLDS(active, ==, 0);
	OK(cuDevicePrimaryCtxRetain, &context, 0);
	OK(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	HOLDS(active, ==, 1);
	OK(cuDevicePrimaryCtxRelease_v2, 0);
	OK(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	HOLDS(active, ==, 0);
}

FACT(primary_count, MANUAL, SAME,
	"each retain needs a release, and gives the same context")
{
	CUcontext first, second;
	unsigned int flags;
	int active = -1;

	OK(cuInit, 0);
	OK(cuDevicePrimaryCtxRetain, &first, 0);
	OK(cuDevicePrimaryCtxRetain, &second, 0);
	HOLDS((uintptr_t)first, ==, (uintptr_t)second);
	OK(cuDevicePrimaryCtxRelease_v2, 0);
	OK(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	HOLDS(active, ==, 1);
	OK(cuDevicePrimaryCtxRelease_v2, 0);
	OK(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	HOLDS(active, ==, 0);
}

FACT(primary_release_unheld, MANUAL, SAME,
	"releasing what nobody retained gives INVALID_CONTEXT")
{
	OK(cuInit, 0);
	IS(ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2, 0);
}

FACT(primary_reset, MANUAL, SAME, "a reset frees the primary context's memory")
{
	CUcontext context = contract_context();
	size_t before, after;

	(void)context;
	before = contract_free_bytes();
	contract_alloc(64 << 20);
	HOLDS(contract_free_bytes(), <, before);
	OK(cuDevicePrimaryCtxReset_v2, 0);
	contract_context();
	after = contract_free_bytes();
	HOLDS(after + (8 << 20), >=, before);
}

FACT(primary_release_frees, MANUAL, SAME, "the last release frees the context's memory")
{
	CUcontext made;
	size_t before, after;

	OK(cuInit, 0);
	/* Another context looks on: free memory does not depend on the one that goes. */
	OK(cuCtxCreate_v2, &made, 0, 0);
	contract_context();
	before = contract_free_bytes();
	contract_alloc(64 << 20);
	OK(cuDevicePrimaryCtxRelease_v2, 0);
	OK(cuCtxSetCurrent, made);
	after = contract_free_bytes();
	HOLDS(after, >=, before);
}

FACT(primary_flags, MANUAL, SAME, "flags set before the first retain are the context's")
{
	unsigned int flags = 0;
	CUcontext context;
	int active;

	OK(cuInit, 0);
	OK(cuDevicePrimaryCtxSetFlags_v2, 0, CU_CTX_SCHED_BLOCKING_SYNC);
	OK(cuDevicePrimaryCtxRetain, &context, 0);
	OK(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	HOLDS(flags & CU_CTX_SCHED_MASK, ==, CU_CTX_SCHED_BLOCKING_SYNC);
	OK(cuCtxSetCurrent, context);
	OK(cuCtxGetFlags, &flags);
	HOLDS(flags & CU_CTX_SCHED_MASK, ==, CU_CTX_SCHED_BLOCKING_SYNC);
}

FACT(context_create, MANUAL, SAME,
	"a made context is current, and a destroyed one is not")
{
	CUcontext made, current = NULL;

	OK(cuInit, 0);
	OK(cuCtxCreate_v2, &made, 0, 0);
	OK(cuCtxGetCurrent, &current);
	HOLDS((uintptr_t)current, ==, (uintptr_t)made);
	OK(cuCtxDestroy_v2, made);
	OK(cuCtxGetCurrent, &current);
	HOLDS((uintptr_t)current, ==, 0);
}

FACT(context_destroy_frees, MANUAL, SAME, "destroying a context frees its memory")
{
	CUcontext made;
	size_t before, after;

	contract_context();
	before = contract_free_bytes();
	OK(cuCtxCreate_v2, &made, 0, 0);
	contract_alloc(64 << 20);
	OK(cuCtxDestroy_v2, made);
	after = contract_free_bytes();
	HOLDS(after + (2 << 20), >=, before);
}

FACT(context_stack, MANUAL, SAME, "push and pop work as a stack")
{
	CUcontext primary = contract_context(), made, popped = NULL, current = NULL;

	OK(cuCtxCreate_v2, &made, 0, 0);
	OK(cuCtxPushCurrent_v2, primary);
	OK(cuCtxPopCurrent_v2, &popped);
	HOLDS((uintptr_t)popped, ==, (uintptr_t)primary);
	OK(cuCtxGetCurrent, &current);
	HOLDS((uintptr_t)current, ==, (uintptr_t)made);
	OK(cuCtxPopCurrent_v2, &popped);
	HOLDS((uintptr_t)popped, ==, (uintptr_t)made);
	OK(cuCtxGetCurrent, &current);
	HOLDS((uintptr_t)current, ==, (uintptr_t)primary);
}

FACT(context_pop_null, MANUAL, SAME, "pop may be told not to say what it popped")
{
	CUcontext current = (CUcontext)1;

	contract_context();
	OK(cuCtxPopCurrent_v2, NULL);
	OK(cuCtxGetCurrent, &current);
	HOLDS((uintptr_t)current, ==, 0);
}

FACT(context_pop_empty, MANUAL, SAME, "pop of an empty stack gives INVALID_CONTEXT")
{
	CUcontext popped;

	OK(cuInit, 0);
	IS(ERROR_INVALID_CONTEXT, cuCtxPopCurrent_v2, &popped);
}

FACT(context_set_null, MANUAL, SAME, "setting no context takes the current one off")
{
	CUcontext current = (CUcontext)1;

	contract_context();
	OK(cuCtxSetCurrent, NULL);
	OK(cuCtxGetCurrent, &current);
	HOLDS((uintptr_t)current, ==, 0);
}

static void *look_from_thread(void *found)
{
	OK(cuCtxGetCurrent, (CUcontext *)found);
	return NULL;
}

FACT(context_threads, MANUAL, SAME, "a new thread has no current context")
{
	CUcontext found = (CUcontext)1;
	pthread_t thread;

	contract_context();
	HOLDS(pthread_create(&thread, NULL, look_from_thread, &found), ==, 0);
	pthread_join(thread, NULL);
	HOLDS((uintptr_t)found, ==, 0);
}

FACT(context_device, MANUAL, SAME, "a context knows its device and its version")
{
	CUcontext context = contract_context();
	unsigned int version = 0;
	CUdevice device = -1;

	OK(cuCtxGetDevice, &device);
	HOLDS(device, ==, 0);
	OK(cuCtxGetApiVersion, context, &version);
	HOLDS(version, >=, 3010);
}

FACT(context_limit, MANUAL, SAME, "the stack limit can be raised")
{
	size_t value = 0;

	contract_context();
	OK(cuCtxSetLimit, CU_LIMIT_STACK_SIZE, 4096);
	OK(cuCtxGetLimit, &value, CU_LIMIT_STACK_SIZE);
	HOLDS(value, >=, 4096);
}

FACT(context_limit_unknown, MANUAL, SAME, "an unknown limit is refused")
{
	size_t value;

	contract_context();
	FAILS(cuCtxGetLimit, &value, (CUlimit)1000);
}

FACT(context_shared_space, MANUAL, SAME,
	"contexts of one process and device share addresses")
{
	CUcontext made;
	CUdeviceptr at;

	contract_context();
	at = contract_alloc(4096);
	OK(cuMemsetD32_v2, at, 77, 1);
	OK(cuCtxSynchronize);
	OK(cuCtxCreate_v2, &made, 0, 0);
	HOLDS(contract_read(at), ==, 77);
}

FACT(context_priorities, MANUAL, SAME, "lower numbers are higher priorities")
{
	int least = -100, greatest = 100;

	contract_context();
	OK(cuCtxGetStreamPriorityRange, &least, &greatest);
	HOLDS(least, ==, 0);
	HOLDS(-greatest, >=, 0);
	OK(cuCtxGetStreamPriorityRange, NULL, NULL);
}

/* Under Sluice the reserve pays it, and a workload sees nothing of that. */
FACT(context_hidden, "driver-facts, measured by others", NATIVE_ONLY,
	"a context takes memory of its own that nobody asked for")
{
	size_t before, after;
	CUcontext made;

	contract_context();
	before = contract_free_bytes();
	OK(cuCtxCreate_v2, &made, 0, 0);
	after = contract_free_bytes();
	HOLDS(after, <, before);
}

FACT(calls_of_32_bits, MANUAL, SAME,
	"calls with 32-bit sizes do not go with a context of today")
{
	unsigned int bytes, total, pitch;
	CUdeviceptr_v1 at;

	contract_context();
	IS(ERROR_INVALID_CONTEXT, cuMemAlloc, &at, 4096);
	IS(ERROR_INVALID_CONTEXT, cuMemAllocPitch, &at, &pitch, 64, 64, 4);
	IS(ERROR_INVALID_CONTEXT, cuMemGetInfo, &bytes, &total);
	IS(ERROR_INVALID_CONTEXT, cuMemsetD8, 0, 0, 1);
}
