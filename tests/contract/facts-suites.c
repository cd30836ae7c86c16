/*
 * facts-suites - what test suites of others expect of a driver
 *
 * NVIDIA runs the tests of cuda-bindings and cuda-core (github.com/NVIDIA/cuda-python) on GPUs, so
 * their assertions are as good as observed. Where the manual says the same, it is named.
 */
#include "contract.h"
#include "prog.h"

#define SUITE "tests of cuda-core and cuda-bindings"
#define SYNC  "driver API manual, API synchronization behavior, memset"

static CUstream new_stream(void)
{
	CUstream stream;

	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	return stream;
}

/* Memsets ------------------------------------------------------------------------------------- */

static volatile uint32_t *pinned_word(CUdeviceptr *at)
{
	uint32_t *word = NULL;

	contract_context();
	OK(cuMemHostAlloc, (void **)&word, 4096, CU_MEMHOSTALLOC_DEVICEMAP);
	OK(cuMemHostGetDevicePointer_v2, at, word, 0);
	*word = 1;
	return word;
}

FACT(memset_pinned, SYNC, SAME, "setting pinned memory has set it when the call returns")
{
	CUdeviceptr at;
	volatile uint32_t *word = pinned_word(&at);

	contract_spin(NULL, 100);
	OK(cuMemsetD32_v2, at, 7, 1);
	HOLDS(*word, ==, 7);
	contract_spin(NULL, 100);
	OK(cuMemsetD2D8_v2, at, 64, 0x22, 4, 2);
	HOLDS(*word, ==, 0x22222222);
}

FACT(memset_managed, SYNC, SAME, "so it is with managed memory")
{
	volatile uint32_t *word;
	CUdeviceptr at;
	int can = 0;

	contract_context();
	OK(cuDeviceGetAttribute, &can, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0);
	if (!can)
		contract_skip("no concurrent managed access here");
	OK(cuMemAllocManaged, &at, 4096, CU_MEM_ATTACH_GLOBAL);
	word = (volatile uint32_t *)(uintptr_t)at;
	*word = 1;
	contract_spin(NULL, 100);
	OK(cuMemsetD32_v2, at, 7, 1);
	HOLDS(*word, ==, 7);
}

FACT(memset_pinned_async, SYNC, SAME,
	"the asynchronous calls wait for nothing there either")
{
	CUstream stream;
	CUdeviceptr at;
	volatile uint32_t *word = pinned_word(&at);

	stream = new_stream();
	contract_spin(stream, 200);
	OK(cuMemsetD32Async, at, 7, 1, stream);
	IS(ERROR_NOT_READY, cuStreamQuery, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(*word, ==, 7);
}

/* Pools and graphs ---------------------------------------------------------------------------- */

FACT(pool_small, SUITE, SAME, "a pool of less than a granule gives what fits")
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
		.maxSize = 2048};
	CUmemoryPool pool;
	CUdeviceptr at;

	contract_context();
	OK(cuMemPoolCreate, &pool, &props);
	OK(cuMemAllocFromPoolAsync, &at, 64, pool, NULL);
	OK(cuMemsetD8Async, at, 1, 64, NULL);
	OK(cuMemFreeAsync, at, NULL);
	OK(cuCtxSynchronize);
}

FACT(capture_alloc_zero, SUITE, SAME, "no bytes can be allocated in a capture")
{
	CUstream stream;
	CUdeviceptr at = 1;
	CUgraph graph;

	contract_context();
	stream = new_stream();
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	OK(cuMemAllocAsync, &at, 0, stream);
	OK(cuStreamEndCapture, stream, &graph);
}

FACT(node_beside_memory, "driver API manual of cuGraphDestroyNode", SAME,
	"in a graph with memory nodes no node is destroyed, and no edge taken away")
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = 4096};
	CUgraphNode alloc, empty, free_it;
	CUgraph graph;

	params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	contract_context();
	OK(cuGraphCreate, &graph, 0);
	OK(cuGraphAddMemAllocNode, &alloc, graph, NULL, 0, &params);
	OK(cuGraphAddEmptyNode, &empty, graph, &alloc, 1);
	OK(cuGraphAddMemFreeNode, &free_it, graph, &empty, 1, params.dptr);
	FAILS(cuGraphDestroyNode, empty);
	FAILS(cuGraphRemoveDependencies, graph, &alloc, &empty, 1);
}

/* Modules and launches ------------------------------------------------------------------------ */

FACT(function_name_null, SUITE, SAME, "no function has no name")
{
	const char *name = NULL;

	contract_context();
	IS(ERROR_INVALID_VALUE, cuFuncGetName, &name, NULL);
	IS(ERROR_INVALID_VALUE, cuKernelGetName, &name, NULL);
}

enum { LOG_BYTES = 512 };

/* Loads with logs; tells their lengths in place of the sizes. */
static CUresult load_with_logs(
	const void *image, char *info, char *error, size_t length[2])
{
	CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER,
		CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
		CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {
		info, (void *)(uintptr_t)LOG_BYTES, error, (void *)(uintptr_t)LOG_BYTES};
	CUmodule module;
	CUresult r;

	memset(info, 0xd0, LOG_BYTES);
	memset(error, 0xd0, LOG_BYTES);
	r = CU(cuModuleLoadDataEx)(&module, image, 4, options, values);
	length[0] = (uint32_t)(uintptr_t)values[1];
	length[1] = (uint32_t)(uintptr_t)values[3];
	return r;
}

FACT(module_logs, "driver API manual of CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES", SAME,
	"the sizes of a load's logs become their lengths")
{
	char info[LOG_BYTES], error[LOG_BYTES];
	size_t length[2];

	contract_context();
	contract_is(CUDA_SUCCESS,
		load_with_logs(contract_software() ? prog_host_image : prog_ptx_image,
			info, error, length),
		"load", __FILE__, __LINE__);
	HOLDS(length[0], <, LOG_BYTES);
	HOLDS(length[1], <, LOG_BYTES);
	contract_fails(load_with_logs(".version 99.0\nnonsense\n", info, error, length),
		"load", __FILE__, __LINE__);
	HOLDS(length[1], >, 0);
	HOLDS(length[1], <, LOG_BYTES);
	HOLDS(memchr(error, 0, LOG_BYTES) != NULL, ==, 1);
}

FACT(module_ptx_space, "Numba's and Triton's PTX begins so", SAME,
	"white space may come before the text of PTX")
{
	CUmodule module;
	CUresult r;

	contract_context();
	r = CU(cuModuleLoadData)(&module,
		" \r\n\t\n.version 6.0\n.target sm_50\n.address_size 64\n"
		".visible .entry nothing()\n{\n\tret;\n}\n");
	if (r == CUDA_ERROR_JIT_COMPILER_NOT_FOUND)
		contract_skip("no compiler for PTX");
	contract_is(CUDA_SUCCESS, r, "load", __FILE__, __LINE__);
}

FACT(launch_empty,
	"the manual has no empty grid; cuCollections, TileLang and alpaka met the error",
	SAME, "a grid without blocks is refused, and the context lives on")
{
	uint64_t ns = 1;
	void *args[] = {&ns};
	CUfunction function;

	contract_context();
	function = contract_kernel("prog_spin");
	IS(ERROR_INVALID_VALUE, cuLaunchKernel, function, 0, 1, 1, 32, 1, 1, 0, NULL,
		args, NULL);
	IS(ERROR_INVALID_VALUE, cuLaunchKernel, function, 1, 1, 0, 32, 1, 1, 0, NULL,
		args, NULL);
	OK(cuCtxSynchronize);
	contract_spin(NULL, 1);
}

/* NVML ---------------------------------------------------------------------------------------- */

FACT(nvml_branch, "NVML manual", SAME, "NVML tells the driver's branch")
{
	nvmlSystemDriverBranchInfo_t info = {.version = nvmlSystemDriverBranchInfo_v1};

	NVML_IS(ERROR_UNINITIALIZED, nvmlSystemGetDriverBranch, &info,
		sizeof(info.branch));
	NVML_IS(SUCCESS, nvmlInit_v2);
	NVML_IS(ERROR_INVALID_ARGUMENT, nvmlSystemGetDriverBranch, NULL, 80);
	NVML_IS(ERROR_INSUFFICIENT_SIZE, nvmlSystemGetDriverBranch, &info, 1);
	NVML_IS(SUCCESS, nvmlSystemGetDriverBranch, &info, sizeof(info.branch));
	HOLDS(strlen(info.branch), >, 0);
}
