/*
 * facts-graph-memory - memory that graphs allocate
 *
 * Such memory cannot be moved or freed from outside. These facts tell how much of a GPU it takes,
 * and when.
 */
#include "contract.h"

#define MANUAL "driver API manual"
#define SUITE  "tests of cuda-core and cuda-bindings"
#define BYTES  (8u << 20)

static CUDA_MEM_ALLOC_NODE_PARAMS alloc_params(size_t bytes)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = bytes};

	params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return params;
}

static cuuint64_t figure(CUgraphMem_attribute which)
{
	cuuint64_t value = 0;

	OK(cuDeviceGetGraphMemAttribute, 0, which, &value);
	return value;
}

/* A graph that allocates, fills with a byte, and frees unless told not to. */
static CUgraph alloc_graph(CUdeviceptr *at, unsigned char byte, bool and_free)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params(BYTES);
	CUDA_MEMSET_NODE_PARAMS set = {0, 0, byte, 1, BYTES, 1};
	CUgraphNode alloc, fill, free_it;
	CUcontext context;
	CUgraph graph;

	OK(cuCtxGetCurrent, &context);
	OK(cuGraphCreate, &graph, 0);
	OK(cuGraphAddMemAllocNode, &alloc, graph, NULL, 0, &params);
	set.dst = *at = params.dptr;
	OK(cuGraphAddMemsetNode, &fill, graph, &alloc, 1, &set, context);
	if (and_free)
		OK(cuGraphAddMemFreeNode, &free_it, graph, &fill, 1, params.dptr);
	return graph;
}

static void run_once(CUgraphExec exec)
{
	OK(cuGraphLaunch, exec, NULL);
	OK(cuCtxSynchronize);
}

FACT(graph_memory_late, MANUAL, SAME,
	"a node has its address at once; the memory comes with the first launch")
{
	CUdeviceptr at = 0;
	CUgraphExec exec;
	CUgraph graph;

	contract_context();
	graph = alloc_graph(&at, 1, true);
	HOLDS(at, !=, 0);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), ==, 0);
	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), ==, 0);
	run_once(exec);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), >=, BYTES);
}

FACT(graph_memory_trim, MANUAL, SAME,
	"freed graph memory stays the driver's until a trim")
{
	CUgraphExec exec;
	CUdeviceptr at;
	size_t before;

	contract_context();
	OK(cuGraphInstantiateWithFlags, &exec, alloc_graph(&at, 1, true), 0);
	before = contract_free_bytes();
	run_once(exec);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), >=, BYTES);
	HOLDS(contract_free_bytes(), <=, before - BYTES);
	OK(cuDeviceGraphMemTrim, 0);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), ==, 0);
	HOLDS(contract_free_bytes(), >=, before);
	run_once(exec);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), >=, BYTES);
}

FACT(graph_memory_upload, MANUAL, SAME, "an upload brings the memory, too")
{
	CUgraphExec exec;
	CUdeviceptr at;

	contract_context();
	OK(cuGraphInstantiateWithFlags, &exec, alloc_graph(&at, 1, true), 0);
	OK(cuGraphUpload, exec, NULL);
	OK(cuCtxSynchronize);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), >=, BYTES);
}

FACT(graph_memory_kept, MANUAL, SAME,
	"what a graph allocates and does not free is the program's, and freed by it")
{
	CUdeviceptr at = 0;
	CUgraphExec exec;

	contract_context();
	OK(cuGraphInstantiateWithFlags, &exec, alloc_graph(&at, 7, false), 0);
	run_once(exec);
	HOLDS(contract_read(at + BYTES - 4), ==, 0x07070707);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), >=, BYTES);
	OK(cuDeviceGraphMemTrim, 0);
	HOLDS(contract_read(at), ==, 0x07070707);
	/* Not twice without a free between. */
	IS(ERROR_INVALID_VALUE, cuGraphLaunch, exec, NULL);
	OK(cuMemFreeAsync, at, NULL);
	OK(cuCtxSynchronize);
	run_once(exec);
	OK(cuMemFree_v2, at);
	OK(cuDeviceGraphMemTrim, 0);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), ==, 0);
}

FACT(graph_memory_used, SUITE, SAME,
	"what graphs are made of counts as used, and stays so when it is freed")
{
	cuuint64_t used;
	CUgraphExec exec;
	CUdeviceptr at;

	contract_context();
	OK(cuGraphInstantiateWithFlags, &exec, alloc_graph(&at, 1, true), 0);
	run_once(exec);
	used = figure(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
	HOLDS(used, >=, BYTES);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), ==, used);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), ==, used);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), ==, used);
}

FACT(graph_memory_outlives, SUITE, SAME,
	"it stays the driver's when the graphs are destroyed, until a trim, and serves "
	"again")
{
	size_t before;

	contract_context();
	before = contract_free_bytes();
	for (int i = 0; i < 3; i++) {
		CUgraphExec exec;
		CUdeviceptr at;
		CUgraph graph = alloc_graph(&at, 1, i != 1);

		OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
		run_once(exec);
		OK(cuGraphExecDestroy, exec);
		OK(cuGraphDestroy, graph);
		if (i == 1)
			OK(cuMemFreeAsync, at, NULL);
		OK(cuCtxSynchronize);
		HOLDS(figure(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), >, 0);
		HOLDS(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), >, 0);
	}
	HOLDS(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), <, 2 * BYTES);
	OK(cuDeviceGraphMemTrim, 0);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), >, 0);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), >, 0);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), ==, 0);
	HOLDS(contract_free_bytes(), >=, before);
}

FACT(graph_memory_auto, MANUAL, SAME, "unless launches free what the last one left")
{
	CUgraphExec exec;
	CUdeviceptr at;

	contract_context();
	OK(cuGraphInstantiateWithFlags, &exec, alloc_graph(&at, 1, false),
		CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	run_once(exec);
	run_once(exec);
	OK(cuMemFree_v2, at);
}

FACT(graph_memory_once, MANUAL, SAME,
	"a graph with memory is instantiated once at a time, and not cloned")
{
	CUgraphExec exec, again;
	CUgraph graph, clone;
	CUdeviceptr at;

	contract_context();
	graph = alloc_graph(&at, 1, true);
	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	FAILS(cuGraphInstantiateWithFlags, &again, graph, 0);
	FAILS(cuGraphClone, &clone, graph);
	OK(cuGraphExecDestroy, exec);
	OK(cuGraphInstantiateWithFlags, &again, graph, 0);
}

FACT(graph_memory_nodes, MANUAL, SAME,
	"memory nodes tell their parameters, cannot be destroyed, nor free twice")
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params(4096), seen;
	CUgraphNode alloc, free_it, again;
	CUdeviceptr at = 0;
	CUgraph graph;

	contract_context();
	OK(cuGraphCreate, &graph, 0);
	OK(cuGraphAddMemAllocNode, &alloc, graph, NULL, 0, &params);
	OK(cuGraphMemAllocNodeGetParams, alloc, &seen);
	HOLDS(seen.dptr, ==, params.dptr);
	HOLDS(seen.bytesize, ==, 4096);
	OK(cuGraphAddMemFreeNode, &free_it, graph, &alloc, 1, params.dptr);
	OK(cuGraphMemFreeNodeGetParams, free_it, &at);
	HOLDS(at, ==, params.dptr);
	IS(ERROR_INVALID_VALUE, cuGraphAddMemFreeNode, &again, graph, &free_it, 1,
		params.dptr);
	FAILS(cuGraphDestroyNode, alloc);
}

FACT(graph_memory_captured, MANUAL, SAME,
	"cuMemAllocAsync becomes a node when it is captured")
{
	CUdeviceptr at = 0, out;
	CUgraphNodeType type;
	CUgraphNode nodes[8];
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;
	size_t count = 8;

	contract_context();
	out = contract_alloc(4);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(cuMemAllocAsync, &at, BYTES, stream);
	OK(cuMemsetD8Async, at, 9, BYTES, stream);
	OK(cuMemcpyDtoDAsync_v2, out, at + BYTES - 4, 4, stream);
	OK(cuMemFreeAsync, at, stream);
	OK(cuStreamEndCapture, stream, &graph);
	OK(cuGraphGetNodes, graph, nodes, &count);
	HOLDS(count, ==, 4);
	OK(cuGraphNodeGetType, nodes[0], &type);
	HOLDS(type, ==, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	OK(cuGraphNodeGetType, nodes[3], &type);
	HOLDS(type, ==, CU_GRAPH_NODE_TYPE_MEM_FREE);
	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	run_once(exec);
	HOLDS(contract_read(out), ==, 0x09090909);
}

FACT(graph_memory_oom, MANUAL, SAME,
	"a graph whose memory cannot be had fails, when instantiated or launched")
{
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;
	size_t free_bytes;

	contract_context();
	free_bytes = contract_free_bytes();
	params = alloc_params(free_bytes + (1u << 30));
	OK(cuGraphCreate, &graph, 0);
	OK(cuGraphAddMemAllocNode, &node, graph, NULL, 0, &params);
	if (CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) == CUDA_SUCCESS)
		IS(ERROR_OUT_OF_MEMORY, cuGraphLaunch, exec, NULL);
	else
		IS(ERROR_OUT_OF_MEMORY, cuGraphInstantiateWithFlags, &exec, graph, 0);
	OK(cuCtxSynchronize);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), ==, 0);
}

FACT(graph_memory_marks, MANUAL, SAME, "high-water marks can be reset to what is now")
{
	cuuint64_t zero = 0, one = 1;
	CUgraphExec exec;
	CUdeviceptr at;

	contract_context();
	OK(cuGraphInstantiateWithFlags, &exec, alloc_graph(&at, 1, true), 0);
	run_once(exec);
	OK(cuDeviceGraphMemTrim, 0);
	OK(cuDeviceSetGraphMemAttribute, 0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero);
	HOLDS(figure(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), ==, 0);
	FAILS(cuDeviceSetGraphMemAttribute, 0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &one);
	FAILS(cuDeviceSetGraphMemAttribute, 0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero);
}
