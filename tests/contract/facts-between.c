/*
 * facts-between - two GPUs of one process
 *
 * With one GPU all of them are skipped.
 */
#include "contract.h"

#define GUIDE   "CUDA Programming Guide 3.4.2.1, peer-to-peer memory copy"
#define BYTES   4096u
#define SPIN_MS 150u /* longer than it takes to submit a few copies */

/* The first two GPUs, their primary contexts, and a word on each that a copy goes between. */
static CUcontext context[2];
static CUdeviceptr from, to, seen;

static void use(int gpu)
{
	OK(cuCtxSetCurrent, context[gpu]);
}

/* Ends with GPU 0 current. */
static void two_contexts(void)
{
	int count = 0;

	context[0] = contract_context();
	OK(cuDeviceGetCount, &count);
	if (count < 2)
		contract_skip("no second GPU");
	OK(cuDevicePrimaryCtxRetain, &context[1], 1);
}

static CUfunction step_of_current(void)
{
	CUfunction function;

	OK(cuModuleGetFunction, &function, contract_module(), "prog_step");
	return function;
}

static void sync_both(void)
{
	for (int gpu = 1; gpu >= 0; gpu--) {
		use(gpu);
		OK(cuCtxSynchronize);
	}
}

/* Copies in the legacy stream ------------------------------------------------------------------ */

static void spin(int gpu)
{
	static CUfunction function[2];
	uint64_t ns = SPIN_MS * 1000000ull;
	void *args[] = {&ns};

	use(gpu);
	if (!function[gpu])
		OK(cuModuleGetFunction, &function[gpu], contract_module(), "prog_spin");
	contract_is(CUDA_SUCCESS, contract_launch(function[gpu], NULL, args), "spin",
		__FILE__, __LINE__);
}

static void fill_all(void)
{
	use(0);
	OK(cuMemsetD32_v2, from, 7, BYTES / 4);
	use(1);
	OK(cuMemsetD32_v2, to, 1, BYTES / 4);
	OK(cuMemsetD32_v2, seen, 0, BYTES / 4);
	sync_both();
}

static void prepare(void)
{
	int can = 0;

	two_contexts();
	OK(cuDeviceCanAccessPeer, &can, 0, 1);
	for (int gpu = 0; gpu < 2 && can; gpu++) {
		use(gpu);
		OK(cuCtxEnablePeerAccess, context[1 - gpu], 0);
	}
	use(0);
	from = contract_alloc(BYTES);
	use(1);
	to = contract_alloc(BYTES);
	seen = contract_alloc(BYTES);
	/* The first of each kind may be slow. */
	spin(0);
	spin(1);
	sync_both();
}

static uint32_t read_seen(void)
{
	sync_both();
	use(1);
	return contract_read(seen);
}

/* GPU 0's legacy stream writes what GPU 1 is yet to read, and then what GPU 1 reads after. */
static void check_order(void (*copy)(void), CUstream reader)
{
	fill_all();
	spin(1);
	OK(cuMemcpyDtoDAsync_v2, seen, to, BYTES, NULL);
	use(0);
	copy();
	HOLDS(read_seen(), ==, 1);
	fill_all();
	spin(0);
	copy();
	use(1);
	OK(cuMemcpyDtoDAsync_v2, seen, to, BYTES, reader);
	HOLDS(read_seen(), ==, 7);
}

#define BETWEEN(id, ...)                                                                \
	static void by_##id(void)                                                       \
	{                                                                               \
		__VA_ARGS__;                                                            \
	}                                                                               \
	FACT(between_##id, GUIDE, SAME,                                                 \
		"a copy to another GPU in the legacy stream is in order with the work " \
		"of both: " #id)                                                        \
	{                                                                               \
		prepare();                                                              \
		check_order(by_##id, NULL);                                             \
	}

#define BOX                                                                             \
	{                                                                               \
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from,               \
		.srcPitch = 64, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to, \
		.dstPitch = 64, .WidthInBytes = 64, .Height = BYTES / 64                \
	}

BETWEEN(memcpy, OK(cuMemcpy, to, from, BYTES))
BETWEEN(memcpy_async, OK(cuMemcpyAsync, to, from, BYTES, NULL))
BETWEEN(dtod, OK(cuMemcpyDtoD_v2, to, from, BYTES))
BETWEEN(dtod_async, OK(cuMemcpyDtoDAsync_v2, to, from, BYTES, CU_STREAM_LEGACY))
BETWEEN(peer, OK(cuMemcpyPeer, to, context[1], from, context[0], BYTES))
BETWEEN(peer_async, OK(cuMemcpyPeerAsync, to, context[1], from, context[0], BYTES, NULL))
BETWEEN(rows, CUDA_MEMCPY2D box = BOX; OK(cuMemcpy2D_v2, &box))
BETWEEN(rows_unaligned, CUDA_MEMCPY2D box = BOX; OK(cuMemcpy2DUnaligned_v2, &box))
BETWEEN(rows_async, CUDA_MEMCPY2D box = BOX; OK(cuMemcpy2DAsync_v2, &box, NULL))
BETWEEN(boxes, CUDA_MEMCPY3D box = BOX; box.Depth = 1; OK(cuMemcpy3D_v2, &box))
BETWEEN(boxes_async, CUDA_MEMCPY3D box = BOX; box.Depth = 1;
	OK(cuMemcpy3DAsync_v2, &box, NULL))

FACT(between_blocking, GUIDE, SAME,
	"so are streams that the other GPU's legacy stream is in order with")
{
	CUstream stream;

	prepare();
	use(1);
	OK(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
	check_order(by_dtod_async, stream);
}

FACT(between_back, GUIDE, SAME,
	"and a copy from the other GPU, issued to the one that reads")
{
	prepare();
	fill_all();
	/* GPU 1 overwrites memory that it has yet to send: only the order keeps the old value. */
	spin(1);
	OK(cuMemsetD32Async, to, 5, BYTES / 4, NULL);
	use(0);
	OK(cuMemcpyDtoDAsync_v2, from, to, BYTES, NULL);
	use(1);
	OK(cuMemsetD32Async, to, 6, BYTES / 4, NULL);
	sync_both();
	use(0);
	HOLDS(contract_read(from), ==, 5);
}

/* In legacy order the copy would have to wait for captured work, which never runs by itself. A
 * driver that keeps that order between GPUs refuses the copy, as on one GPU; a driver that does not
 * must leave the capture intact. */
FACT(between_capture, "driver API manual, stream capture", SAME,
	"beside a capture on the other GPU such a copy is refused, or leaves it whole")
{
	CUstream stream;
	CUgraph graph;
	CUresult r;

	prepare();
	use(1);
	OK(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	OK(cuMemsetD32Async, seen, 3, BYTES / 4, stream);
	use(0);
	r = CU(cuMemcpyDtoDAsync_v2)(to, from, BYTES, NULL);
	use(1);
	if (r == CUDA_SUCCESS) {
		OK(cuStreamEndCapture, stream, &graph);
	} else {
		contract_is(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, r, "copy", __FILE__,
			__LINE__);
		IS(ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture, stream, &graph);
	}
	sync_both();
}

/* Graphs -------------------------------------------------------------------------------------- */

FACT(between_graph, "driver API manual of cuGraphAddKernelNode; frameworks rely on it",
	SAME,
	"a graph's kernel runs on the GPU of its function, whatever context is current")
{
	CUDA_KERNEL_NODE_PARAMS params = {.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1};
	uint32_t factor = 3, add = 1;
	CUdeviceptr word;
	void *args[] = {&word, &factor, &add};
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	two_contexts();
	word = contract_alloc(4);
	OK(cuMemsetD32_v2, word, 2, 1);
	params.func = step_of_current();
	params.kernelParams = args;
	OK(cuGraphCreate, &graph, 0);
	OK(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &params);
	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	for (int gpu = 0; gpu < 2; gpu++) {
		use(gpu);
		OK(cuGraphLaunch, exec, NULL);
		OK(cuCtxSynchronize);
	}
	sync_both();
	HOLDS(contract_read(word), ==, (2 * 3 + 1) * 3 + 1);
}

FACT(between_graph_set, "driver API manual of cuGraphAddMemsetNode", SAME,
	"and its memset in the context that the node names")
{
	CUDA_MEMSET_NODE_PARAMS set = {
		.value = 5, .elementSize = 4, .width = 1, .height = 1};
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	two_contexts();
	set.dst = contract_alloc(4);
	OK(cuMemsetD32_v2, set.dst, 0, 1);
	OK(cuCtxSynchronize);
	use(1);
	OK(cuGraphCreate, &graph, 0);
	OK(cuGraphAddMemsetNode, &node, graph, NULL, 0, &set, context[0]);
	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	OK(cuGraphLaunch, exec, NULL);
	sync_both();
	HOLDS(contract_read(set.dst), ==, 5);
}

/* Pools --------------------------------------------------------------------------------------- */

/* A pool of GPU 1 with an allocation of nines; GPU 0 is current. */
static CUmemoryPool pool_of_peer(CUdeviceptr *there)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
	CUmemoryPool pool;
	int can = 0;

	two_contexts();
	OK(cuDeviceCanAccessPeer, &can, 0, 1);
	if (!can)
		contract_skip("the GPUs are no peers");
	use(1);
	OK(cuMemPoolCreate, &pool, &props);
	OK(cuMemAllocFromPoolAsync, there, BYTES, pool, NULL);
	OK(cuMemsetD32_v2, *there, 9, BYTES / 4);
	OK(cuCtxSynchronize);
	use(0);
	return pool;
}

FACT(between_pool, "tests of cuda-core", SAME,
	"with the access that a pool gives, copies between its GPU and another work")
{
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr here, there;
	CUmemoryPool pool;
	CUstream stream;

	pool = pool_of_peer(&there);
	here = contract_alloc(BYTES);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuMemPoolSetAccess, pool, &access, 1);
	OK(cuMemcpyDtoDAsync_v2, here, there, BYTES, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(here), ==, 9);
}

/* Under Sluice the memory of pools is mapped like that of cuMemAlloc, and such a copy works. */
FACT(pool_between_closed, "tests of cuda-core", NATIVE_ONLY,
	"a copy from or to a pool of another GPU needs the access that the pool gives")
{
	CUdeviceptr here, there;
	CUstream stream;

	(void)pool_of_peer(&there);
	here = contract_alloc(BYTES);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	IS(ERROR_INVALID_VALUE, cuMemcpyAsync, there, here, BYTES, stream);
	IS(ERROR_INVALID_VALUE, cuMemcpyDtoDAsync_v2, here, there, BYTES, stream);
}
