/*
 * facts-calls - contexts of parts of a GPU, events of whole contexts, attributes, old launches
 */
#include "contract.h"
#include "prog.h"

#define MANUAL "driver API manual"

/* --- parts of a GPU ---------------------------------------------------------------------- */

static CUdevResource whole(void)
{
	CUdevResource resource;

	OK(cuInit, 0);
	OK(cuDeviceGetDevResource, 0, &resource, CU_DEV_RESOURCE_TYPE_SM);
	return resource;
}

static CUgreenCtx half_context(void)
{
	CUdevResource all = whole(), part, rest;
	CUdevResourceDesc desc;
	CUgreenCtx green;
	unsigned int groups = 1;

	if (all.sm.smCount < 4)
		contract_skip("too few multiprocessors");
	OK(cuDevSmResourceSplitByCount, &part, &groups, &all, &rest, 0,
		all.sm.smCount / 2);
	OK(cuDevResourceGenerateDesc, &desc, &part, 1);
	OK(cuGreenCtxCreate, &green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM);
	return green;
}

FACT(part_whole, MANUAL, SAME, "a device says how many multiprocessors can be parted")
{
	CUdevResource resource = whole();
	int count = 0;

	OK(cuDeviceGetAttribute, &count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
	HOLDS(resource.type, ==, CU_DEV_RESOURCE_TYPE_SM);
	HOLDS(resource.sm.smCount, ==, count);
	FAILS(cuDeviceGetDevResource, 0, &resource, CU_DEV_RESOURCE_TYPE_INVALID);
}

FACT(part_split, MANUAL, SAME, "equal groups and a rest make the whole")
{
	CUdevResource all = whole(), parts[64], rest;
	unsigned int groups = 0, most;

	OK(cuDevSmResourceSplitByCount, NULL, &groups, &all, NULL, 0, 2);
	HOLDS(groups, >, 0);
	most = groups;
	groups = 64;
	OK(cuDevSmResourceSplitByCount, parts, &groups, &all, &rest, 0, 2);
	HOLDS(groups, ==, most < 64 ? most : 64);
	HOLDS(parts[0].sm.smCount, >=, 2);
	/* Drivers before CUDA 13 do not say. */
	if (all.sm.smCoscheduledAlignment)
		HOLDS(parts[0].sm.smCount % all.sm.smCoscheduledAlignment, ==, 0);
	HOLDS(groups * parts[0].sm.smCount +
			(rest.type == CU_DEV_RESOURCE_TYPE_SM ? rest.sm.smCount : 0),
		==, all.sm.smCount);
	FAILS(cuDevSmResourceSplitByCount, parts, &groups, &all, &rest, 0,
		all.sm.smCount + 1);
}

FACT(green_context, MANUAL, SAME, "a context of a part runs work and knows its part")
{
	CUgreenCtx green = half_context();
	CUdevResource all = whole(), part;
	CUdeviceptr word;
	CUstream stream;
	CUcontext context;

	OK(cuCtxFromGreenCtx, &context, green);
	OK(cuCtxSetCurrent, context);
	OK(cuCtxGetDevResource, context, &part, CU_DEV_RESOURCE_TYPE_SM);
	HOLDS(part.sm.smCount, <, all.sm.smCount);
	OK(cuGreenCtxStreamCreate, &stream, green, CU_STREAM_NON_BLOCKING, 0);
	word = contract_alloc(4);
	OK(cuMemsetD32Async, word, 1, 1, stream);
	contract_step(stream, word, 2, 3);
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(word), ==, 5);
}

FACT(green_stream, MANUAL, SAME,
	"its streams never follow the legacy one, and say whose they are")
{
	CUgreenCtx green = half_context(), of = NULL;
	CUcontext context, primary;
	CUstream stream;

	OK(cuCtxFromGreenCtx, &context, green);
	IS(ERROR_INVALID_VALUE, cuGreenCtxStreamCreate, &stream, green, CU_STREAM_DEFAULT,
		0);
	OK(cuGreenCtxStreamCreate, &stream, green, CU_STREAM_NON_BLOCKING, 0);
	primary = contract_context();
	OK(cuStreamGetGreenCtx, stream, &of);
	HOLDS((uintptr_t)of, ==, (uintptr_t)green);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuStreamGetGreenCtx, stream, &of);
	HOLDS((uintptr_t)of, ==, 0);
	OK(cuStreamGetCtx_v2, stream, &context, &of);
	HOLDS((uintptr_t)context, ==, (uintptr_t)primary);
}

/* cuEventRecord's manual wants event and stream to be of one context. But the runtime's green
 * contexts have no events of their own, so cuda-core records events of the current primary context
 * in their streams. */
FACT(green_event, "tests of cuda-core", SAME,
	"its streams record events of the primary context, and of itself")
{
	CUcontext primary = contract_context(), context;
	CUgreenCtx green = half_context();
	CUevent event, own;
	CUstream stream;

	OK(cuCtxFromGreenCtx, &context, green);
	OK(cuGreenCtxStreamCreate, &stream, green, CU_STREAM_NON_BLOCKING, 0);
	OK(cuCtxSetCurrent, primary);
	OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
	OK(cuEventRecord, event, stream);
	OK(cuEventSynchronize, event);
	OK(cuCtxSetCurrent, context);
	OK(cuEventCreate, &own, CU_EVENT_DISABLE_TIMING);
	OK(cuEventRecord, own, stream);
	OK(cuEventSynchronize, own);
}

FACT(green_shares, MANUAL, SAME,
	"it retains the primary context and takes no second one's memory")
{
	CUcontext primary = contract_context();
	size_t before = contract_free_bytes(), after;
	CUgreenCtx green = half_context();
	unsigned int flags;
	int active = 0;

	(void)primary;
	after = contract_free_bytes();
	HOLDS(before - after, <, 8u << 20);
	OK(cuDevicePrimaryCtxRelease_v2, 0);
	OK(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	HOLDS(active, ==, 1);
	OK(cuGreenCtxDestroy, green);
	OK(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	HOLDS(active, ==, 0);
}

FACT(green_flags, MANUAL, SAME, "a green context wants its one flag")
{
	CUdevResource all = whole();
	CUdevResourceDesc desc;
	CUgreenCtx green;

	OK(cuDevResourceGenerateDesc, &desc, &all, 1);
	IS(ERROR_INVALID_VALUE, cuGreenCtxCreate, &green, desc, 0, 0);
}

/* --- whole contexts ------------------------------------------------------------------------ */

FACT(context_event, MANUAL, SAME, "an event of a context is behind all its streams")
{
	CUcontext context = contract_context();
	CUstream first, second;
	CUevent event;

	OK(cuStreamCreate, &first, CU_STREAM_NON_BLOCKING);
	OK(cuStreamCreate, &second, CU_STREAM_NON_BLOCKING);
	OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
	contract_spin(first, 50);
	contract_spin(second, 300);
	OK(cuCtxRecordEvent, context, event);
	IS(ERROR_NOT_READY, cuEventQuery, event);
	OK(cuEventSynchronize, event);
	OK(cuStreamQuery, first);
	OK(cuStreamQuery, second);
}

FACT(context_event_wait, MANUAL, SAME, "and a context can wait as a whole")
{
	CUcontext context = contract_context();
	CUstream first, second;
	CUevent event;

	OK(cuStreamCreate, &first, CU_STREAM_NON_BLOCKING);
	OK(cuStreamCreate, &second, CU_STREAM_NON_BLOCKING);
	OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
	contract_spin(first, 300);
	OK(cuEventRecord, event, first);
	OK(cuStreamQuery, second);
	OK(cuCtxWaitEvent, context, event);
	IS(ERROR_NOT_READY, cuStreamQuery, second);
	OK(cuStreamSynchronize, second);
	OK(cuEventQuery, event);
}

FACT(context_event_capture, "Sluice must not use it so", SAME,
	"asked of a context with a capturing stream it spoils the capture, relaxed or "
	"not")
{
	CUcontext context = contract_context();
	CUstreamCaptureStatus status;
	CUstream stream;
	CUevent event;

	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	IS(ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxRecordEvent, context, event);
	OK(cuStreamIsCapturing, stream, &status);
	HOLDS(status, ==, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
}

FACT(context_attach, MANUAL, SAME, "an attached context is detached as often as attached")
{
	CUcontext made, same = NULL;
	CUdevice device;

	OK(cuInit, 0);
	OK(cuCtxCreate_v2, &made, 0, 0);
	OK(cuCtxAttach, &same, 0);
	HOLDS((uintptr_t)same, ==, (uintptr_t)made);
	OK(cuCtxDetach, made);
	OK(cuCtxGetDevice, &device);
	OK(cuCtxDetach, made);
	FAILS(cuCtxGetDevice, &device);
}

FACT(context_create_13, MANUAL, SAME,
	"the form of CUDA 13 without extras makes a plain context")
{
	CUcontext made, seen = NULL;

	OK(cuInit, 0);
	OK(cuCtxCreate_v4, &made, NULL, 0, 0);
	OK(cuCtxGetCurrent, &seen);
	HOLDS((uintptr_t)seen, ==, (uintptr_t)made);
	OK(cuCtxDestroy_v2, made);
}

FACT(context_other, MANUAL, SAME,
	"a context that is not current can be waited for and asked")
{
	CUcontext context = contract_context();
	CUdevice device = -1;
	CUstream stream;

	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	contract_spin(stream, 100);
	OK(cuCtxSetCurrent, NULL);
	OK(cuCtxGetDevice_v2, &device, context);
	HOLDS(device, ==, 0);
	OK(cuCtxSynchronize_v2, context);
	OK(cuCtxSetCurrent, context);
	OK(cuStreamQuery, stream);
}

FACT(capture_destroyed, MANUAL, SAME, "a capture ends with the stream that began it")
{
	CUstream stream;

	contract_context();
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(cuStreamDestroy_v2, stream);
	contract_alloc(1 << 20);
}

/* --- streams and functions ------------------------------------------------------------------ */

FACT(stream_attributes, MANUAL, SAME,
	"a stream keeps its attributes, and another can copy them")
{
	CUstreamAttrValue value = {.pad = {0}}, seen;
	CUstream stream, other;

	contract_context();
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
	value.accessPolicyWindow.hitRatio = 0.5f;
	OK(cuStreamSetAttribute, stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
		&value);
	OK(cuStreamCopyAttributes, other, stream);
	OK(cuStreamGetAttribute, other, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &seen);
	HOLDS(seen.accessPolicyWindow.hitRatio == 0.5f, ==, 1);
	IS(ERROR_INVALID_VALUE, cuStreamSetAttribute, stream,
		CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value);
}

FACT(stream_device, MANUAL, SAME, "a stream knows its device")
{
	CUdevice device = -1;
	CUstream stream;

	contract_context();
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuStreamGetDevice, stream, &device);
	HOLDS(device, ==, 0);
}

FACT(stream_words, MANUAL, SAME,
	"streams write words and wait for them, alone and in batches")
{
	CUstreamBatchMemOpParams batch[2] = {
		{.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .value = 5}},
		{.writeValue = {
			 .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .value = 6}}};
	CUstream waiting, writing;
	CUdeviceptr word;

	contract_context();
	word = contract_alloc(8);
	OK(cuMemsetD32_v2, word, 0, 2);
	OK(cuCtxSynchronize);
	OK(cuStreamCreate, &waiting, CU_STREAM_NON_BLOCKING);
	OK(cuStreamCreate, &writing, CU_STREAM_NON_BLOCKING);
	batch[0].waitValue.address = word;
	batch[1].writeValue.address = word + 4;
	OK(cuStreamBatchMemOp_v2, waiting, 2, batch, 0);
	IS(ERROR_NOT_READY, cuStreamQuery, waiting);
	OK(cuStreamWriteValue32_v2, writing, word, 5, 0);
	OK(cuStreamSynchronize, waiting);
	HOLDS(contract_read(word + 4), ==, 6);
	IS(ERROR_INVALID_VALUE, cuStreamWriteValue32_v2, writing, word + 1, 5, 0);
}

FACT(launch_old, MANUAL, SAME, "the way of launching of before CUDA 4 still works")
{
	CUfunction step;
	CUdeviceptr word;
	uint32_t factor = 0;

	contract_context();
	word = contract_alloc(4);
	step = contract_kernel("prog_step");
	OK(cuFuncSetBlockShape, step, 1, 1, 1);
	OK(cuParamSetv, step, 0, &word, sizeof(word));
	OK(cuParamSetv, step, 8, &factor, sizeof(factor));
	OK(cuParamSeti, step, 12, 8);
	OK(cuParamSetSize, step, 16);
	OK(cuLaunchGrid, step, 1, 1);
	OK(cuCtxSynchronize);
	HOLDS(contract_read(word), ==, 8);
}

FACT(function_params, MANUAL, SAME, "a function tells how many parameters it has")
{
	size_t count = 0;

	contract_context();
	OK(cuFuncGetParamCount, contract_kernel("prog_step"), &count);
	HOLDS(count, ==, 3);
}

FACT(occupancy, MANUAL, SAME, "occupancy comes from the function and the block")
{
	int blocks = 0, grid = 0, block = 0;
	CUfunction step;
	size_t bytes = 0;

	contract_context();
	step = contract_kernel("prog_step");
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, step, 32, 0);
	HOLDS(blocks, >=, 1);
	OK(cuOccupancyMaxPotentialBlockSizeWithFlags, &grid, &block, step, NULL, 0, 0, 0);
	HOLDS(block, >=, 32);
	HOLDS(grid, >=, 1);
	OK(cuOccupancyAvailableDynamicSMemPerBlock, &bytes, step, 1, 32);
	HOLDS(bytes, >, 0);
}

FACT(kernel_library, MANUAL, SAME, "a kernel knows its library")
{
	CUlibrary library, seen = NULL;
	CUkernel kernel;

	contract_context();
	OK(cuLibraryLoadData, &library,
		contract_software() ? prog_host_image : prog_ptx_image, NULL, NULL, 0,
		NULL, NULL, 0);
	OK(cuLibraryGetKernel, &kernel, library, "prog_step");
	OK(cuKernelGetLibrary, &seen, kernel);
	HOLDS((uintptr_t)seen, ==, (uintptr_t)library);
}

FACT(elapsed_13, MANUAL, SAME, "the time between events by the form of CUDA 13")
{
	CUevent first, second;
	float ms = -1;

	contract_context();
	OK(cuEventCreate, &first, 0);
	OK(cuEventCreate, &second, 0);
	OK(cuEventRecord, first, NULL);
	contract_spin(NULL, 20);
	OK(cuEventRecord, second, NULL);
	OK(cuEventSynchronize, second);
	OK(cuEventElapsedTime_v2, &ms, first, second);
	HOLDS(ms >= 10.0f, ==, 1);
}

/* --- memory that goes under work ------------------------------------------------------------ */

static void wait_for_flag(void *data)
{
	while (!__atomic_load_n((int *)data, __ATOMIC_ACQUIRE))
		contract_sleep_ms(1);
}

FACT(vmm_unmap_busy, "published: Xid 31", SAME,
	"memory unmapped under work that was submitted is a fault, and ends the context")
{
	CUmemGenericAllocationHandle handle;
	CUstream stream;
	CUdeviceptr at;
	size_t bytes;
	int flag = 0;

	contract_context();
	bytes = contract_grain();
	handle = contract_handle(bytes);
	at = contract_reserve(bytes);
	OK(cuMemMap, at, bytes, 0, handle, 0);
	contract_allow(at, bytes);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	contract_kernel("prog_step");
	OK(cuLaunchHostFunc, stream, wait_for_flag, &flag);
	contract_step(stream, at, 1, 1);
	OK(cuMemUnmap, at, bytes);
	__atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
	IS(ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize, stream);
	IS(ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize);
}

FACT(profiler, MANUAL, SAME, "a program may start and stop a profiler that is not there")
{
	contract_context();
	OK(cuProfilerStart);
	OK(cuProfilerStop);
}

/* --- peers ------------------------------------------------------------------------------------ */

FACT(peer_access, MANUAL, SAME,
	"a kernel reaches another device's memory once its context was told, and only "
	"once")
{
	CUcontext here, there;
	CUdeviceptr word;
	int count = 0, can = 0;

	here = contract_context();
	OK(cuDeviceGetCount, &count);
	if (count > 1)
		OK(cuDeviceCanAccessPeer, &can, 0, 1);
	if (!can)
		contract_skip("no second GPU that could");
	OK(cuDevicePrimaryCtxRetain, &there, 1);
	OK(cuCtxSetCurrent, there);
	word = contract_alloc(4);
	OK(cuMemsetD32_v2, word, 4, 1);
	OK(cuCtxSynchronize);
	OK(cuCtxSetCurrent, here);
	IS(ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess, there);
	OK(cuCtxEnablePeerAccess, there, 0);
	IS(ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess, there, 0);
	contract_step(NULL, word, 10, 2);
	OK(cuCtxSynchronize);
	HOLDS(contract_read(word), ==, 42);
	OK(cuCtxDisablePeerAccess, there);
	contract_step(NULL, word, 1, 1);
	FAILS(cuCtxSynchronize);
}
