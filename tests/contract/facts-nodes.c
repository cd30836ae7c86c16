/*
 * facts-nodes - graphs made by hand: nodes, edges, what instantiated ones let be changed
 */
#include "contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MANUAL "driver API manual"

/* A word of memory at 1, the kernels loaded and nothing running. */
static CUdeviceptr ready(void)
{
	CUdeviceptr word;

	contract_context();
	word = contract_alloc(4);
	contract_step(NULL, word, 0, 1);
	OK(cuCtxSynchronize);
	return word;
}

static CUgraph empty_graph(void)
{
	CUgraph graph;

	OK(cuGraphCreate, &graph, 0);
	return graph;
}

/* A node that sets *word to *word * factor + add, behind another one unless that is NULL. */
static CUgraphNode step_node(CUgraph graph, CUgraphNode behind, CUdeviceptr word,
	uint32_t factor, uint32_t add)
{
	void *args[] = {&word, &factor, &add};
	CUDA_KERNEL_NODE_PARAMS params = {.func = contract_kernel("prog_step"),
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = args};
	CUgraphNode node;

	OK(cuGraphAddKernelNode_v2, &node, graph, behind ? &behind : NULL, behind != NULL,
		&params);
	return node;
}

static CUgraphExec exec_of(CUgraph graph)
{
	CUgraphExec exec;

	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	return exec;
}

static void run_once(CUgraphExec exec)
{
	OK(cuGraphLaunch, exec, NULL);
	OK(cuCtxSynchronize);
}

FACT(node_order, MANUAL, SAME,
	"a node runs after those it depends on, whenever it was made")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	CUgraphNode late = step_node(graph, NULL, word, 10, 0);
	CUgraphNode early = step_node(graph, NULL, word, 1, 4);

	OK(cuGraphAddDependencies, graph, &early, &late, 1);
	run_once(exec_of(graph));
	HOLDS(contract_read(word), ==, 50);
}

FACT(node_circle, MANUAL, SAME, "a circle cannot be instantiated")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	CUgraphNode a = step_node(graph, NULL, word, 1, 1);
	CUgraphNode b = step_node(graph, a, word, 1, 1);
	CUgraphExec exec;

	if (CU(cuGraphAddDependencies)(graph, &b, &a, 1) != CUDA_SUCCESS)
		return; /* refused at once is as good */
	FAILS(cuGraphInstantiateWithFlags, &exec, graph, 0);
}

FACT(node_edge_twice, MANUAL, SAME, "an edge that is there, or is not, is an error")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	CUgraphNode a = step_node(graph, NULL, word, 1, 1);
	CUgraphNode b = step_node(graph, a, word, 1, 1);

	IS(ERROR_INVALID_VALUE, cuGraphAddDependencies, graph, &a, &b, 1);
	OK(cuGraphRemoveDependencies, graph, &a, &b, 1);
	IS(ERROR_INVALID_VALUE, cuGraphRemoveDependencies, graph, &a, &b, 1);
}

FACT(node_foreign, MANUAL, SAME, "a node of another graph is no dependency")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph(), other = empty_graph();
	CUgraphNode a = step_node(graph, NULL, word, 1, 1), b;

	IS(ERROR_INVALID_VALUE, cuGraphAddEmptyNode, &b, other, &a, 1);
}

FACT(graph_lists, MANUAL, SAME, "roots, edges, dependencies and dependents are told")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	CUgraphNode a = step_node(graph, NULL, word, 1, 1), from[4], to[4], list[4];
	CUgraphNode b = step_node(graph, a, word, 1, 1);
	CUgraphNode c = step_node(graph, a, word, 1, 1);
	size_t count = 0;

	OK(cuGraphGetRootNodes, graph, NULL, &count);
	HOLDS(count, ==, 1);
	OK(cuGraphGetRootNodes, graph, list, &count);
	HOLDS((uintptr_t)list[0], ==, (uintptr_t)a);
	OK(cuGraphGetEdges, graph, NULL, NULL, &count);
	HOLDS(count, ==, 2);
	count = 4;
	OK(cuGraphGetEdges, graph, from, to, &count);
	HOLDS(count, ==, 2);
	HOLDS((uintptr_t)from[0], ==, (uintptr_t)a);
	HOLDS((uintptr_t)to[0] ^ (uintptr_t)to[1], ==, (uintptr_t)b ^ (uintptr_t)c);
	HOLDS((uintptr_t)from[2], ==, 0);
	OK(cuGraphNodeGetDependentNodes, a, NULL, &count);
	HOLDS(count, ==, 2);
	OK(cuGraphNodeGetDependencies, c, list, &count);
	HOLDS(count, ==, 1);
	HOLDS((uintptr_t)list[0], ==, (uintptr_t)a);
}

FACT(node_destroy, MANUAL, SAME, "a destroyed node takes its edges along")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	CUgraphNode a = step_node(graph, NULL, word, 1, 1);
	CUgraphNode b = step_node(graph, a, word, 1, 10);
	size_t count = 9;

	OK(cuGraphDestroyNode, a);
	OK(cuGraphNodeGetDependencies, b, NULL, &count);
	HOLDS(count, ==, 0);
	OK(cuGraphGetNodes, graph, NULL, &count);
	HOLDS(count, ==, 1);
	run_once(exec_of(graph));
	HOLDS(contract_read(word), ==, 11);
}

FACT(node_kernel_params, MANUAL, SAME, "a kernel node's parameters can be read and set")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	CUgraphNode node = step_node(graph, NULL, word, 3, 7);
	CUDA_KERNEL_NODE_PARAMS params;
	uint32_t factor = 2, add = 1;
	void *args[] = {&word, &factor, &add};

	OK(cuGraphKernelNodeGetParams_v2, node, &params);
	HOLDS(params.gridDimX, ==, 1);
	HOLDS(*(uint32_t *)params.kernelParams[1], ==, 3);
	HOLDS(*(uint32_t *)params.kernelParams[2], ==, 7);
	params.kernelParams = args;
	OK(cuGraphKernelNodeSetParams_v2, node, &params);
	run_once(exec_of(graph));
	HOLDS(contract_read(word), ==, 3);
}

FACT(node_kernel_v1, MANUAL, SAME, "also by the form without a context")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	CUgraphNode node = step_node(graph, NULL, word, 3, 7);
	CUDA_KERNEL_NODE_PARAMS_v1 params;

	OK(cuGraphKernelNodeGetParams, node, &params);
	OK(cuGraphAddKernelNode, &node, graph, &node, 1, &params);
	run_once(exec_of(graph));
	HOLDS(contract_read(word), ==, 37);
}

FACT(node_types, MANUAL, SAME, "nodes know their kind")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	CUgraphNode node = step_node(graph, NULL, word, 1, 1);
	CUDA_MEMSET_NODE_PARAMS set = {word, 0, 5, 4, 1, 1};
	CUcontext context;
	CUgraphNodeType type;

	OK(cuCtxGetCurrent, &context);
	OK(cuGraphNodeGetType, node, &type);
	HOLDS(type, ==, CU_GRAPH_NODE_TYPE_KERNEL);
	OK(cuGraphAddMemsetNode, &node, graph, NULL, 0, &set, context);
	OK(cuGraphNodeGetType, node, &type);
	HOLDS(type, ==, CU_GRAPH_NODE_TYPE_MEMSET);
	OK(cuGraphAddEmptyNode, &node, graph, NULL, 0);
	OK(cuGraphNodeGetType, node, &type);
	HOLDS(type, ==, CU_GRAPH_NODE_TYPE_EMPTY);
	IS(ERROR_INVALID_VALUE, cuGraphNodeGetType, node, NULL);
}

/* A copy of four bytes out to the host. */
static CUDA_MEMCPY3D out_to(uint32_t *host, CUdeviceptr word)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = word,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = host,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1};
}

FACT(node_copy_set, MANUAL, SAME, "memset and copy nodes do their work")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	CUDA_MEMSET_NODE_PARAMS set = {word, 0, 5, 4, 1, 1}, seen;
	uint32_t host = 0;
	CUDA_MEMCPY3D copy = out_to(&host, word), copy_seen;
	CUgraphNode first, second;
	CUcontext context;

	OK(cuCtxGetCurrent, &context);
	OK(cuGraphAddMemsetNode, &first, graph, NULL, 0, &set, context);
	OK(cuGraphAddMemcpyNode, &second, graph, &first, 1, &copy, context);
	OK(cuGraphMemsetNodeGetParams, first, &seen);
	HOLDS(seen.value, ==, 5);
	OK(cuGraphMemcpyNodeGetParams, second, &copy_seen);
	HOLDS(copy_seen.WidthInBytes, ==, 4);
	HOLDS((uintptr_t)copy_seen.dstHost, ==, (uintptr_t)&host);
	run_once(exec_of(graph));
	HOLDS(host, ==, 5);
}

static void count_up(void *data)
{
	__atomic_fetch_add((unsigned int *)data, 1, __ATOMIC_RELEASE);
}

FACT(node_host, MANUAL, SAME, "a host node calls its function at each launch")
{
	CUDA_HOST_NODE_PARAMS params, seen;
	unsigned int calls = 0;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;

	contract_context();
	graph = empty_graph();
	params = (CUDA_HOST_NODE_PARAMS){count_up, &calls};
	OK(cuGraphAddHostNode, &node, graph, NULL, 0, &params);
	OK(cuGraphHostNodeGetParams, node, &seen);
	HOLDS((uintptr_t)seen.userData, ==, (uintptr_t)&calls);
	exec = exec_of(graph);
	HOLDS(calls, ==, 0);
	run_once(exec);
	run_once(exec);
	HOLDS(calls, ==, 2);
}

FACT(node_child, MANUAL, SAME, "a child graph is a copy and runs as one node")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph(), child = empty_graph(), inside;
	CUgraphNode node = step_node(graph, NULL, word, 10, 0);
	size_t count = 0;

	step_node(child, NULL, word, 1, 5);
	OK(cuGraphAddChildGraphNode, &node, graph, &node, 1, child);
	step_node(graph, node, word, 2, 0);
	step_node(child, NULL, word, 0, 0); /* too late to matter */
	OK(cuGraphDestroy, child);
	OK(cuGraphChildGraphNodeGetGraph, node, &inside);
	OK(cuGraphGetNodes, inside, NULL, &count);
	HOLDS(count, ==, 1);
	run_once(exec_of(graph));
	HOLDS(contract_read(word), ==, 30);
}

FACT(node_events, MANUAL, SAME, "event nodes record and wait at each launch")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	CUgraphNode spin = step_node(graph, NULL, word, 1, 1), node;
	CUstream stream, other;
	CUgraphExec exec;
	CUevent event, seen;

	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
	OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
	OK(cuGraphAddEventRecordNode, &node, graph, &spin, 1, event);
	OK(cuGraphEventRecordNodeGetEvent, node, &seen);
	HOLDS((uintptr_t)seen, ==, (uintptr_t)event);
	exec = exec_of(graph);
	contract_spin(stream, 100);
	OK(cuGraphLaunch, exec, stream);
	IS(ERROR_NOT_READY, cuEventQuery, event);
	OK(cuStreamWaitEvent, other, event, 0);
	contract_step(other, word, 10, 0);
	OK(cuStreamSynchronize, other);
	HOLDS(contract_read(word), ==, 20);
}

FACT(node_words, MANUAL, SAME, "a node may write words of memory")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	CUstreamBatchMemOpParams op = {
		.waitValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
			.address = word,
			.value = 77}};
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.count = 1, .paramArray = &op}, seen;
	CUgraphNode node;

	OK(cuCtxGetCurrent, &params.ctx);
	OK(cuGraphAddBatchMemOpNode, &node, graph, NULL, 0, &params);
	OK(cuGraphBatchMemOpNodeGetParams, node, &seen);
	HOLDS(seen.count, ==, 1);
	HOLDS(seen.paramArray[0].writeValue.value, ==, 77);
	run_once(exec_of(graph));
	HOLDS(contract_read(word), ==, 77);
}

FACT(node_any, MANUAL, SAME, "nodes of any kind can be added and changed by one call")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
	CUgraphNode node;
	CUgraphExec exec;

	OK(cuCtxGetCurrent, &p.memset.ctx);
	p.memset.dst = word;
	p.memset.value = 3;
	p.memset.elementSize = 4;
	p.memset.width = p.memset.height = 1;
	OK(cuGraphAddNode, &node, graph, NULL, 0, &p);
	exec = exec_of(graph);
	run_once(exec);
	HOLDS(contract_read(word), ==, 3);
	p.memset.value = 4;
	OK(cuGraphExecNodeSetParams, exec, node, &p);
	run_once(exec);
	HOLDS(contract_read(word), ==, 4);
	p.reserved2 = 1;
	IS(ERROR_INVALID_VALUE, cuGraphAddNode, &node, graph, NULL, 0, &p);
}

FACT(exec_independent, MANUAL, SAME,
	"what was instantiated does not follow the graph, but can be set node by node")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	CUgraphNode node = step_node(graph, NULL, word, 0, 5);
	CUgraphExec exec = exec_of(graph);
	CUDA_KERNEL_NODE_PARAMS params;
	uint32_t factor = 0, add = 6;
	void *args[] = {&word, &factor, &add};

	OK(cuGraphKernelNodeGetParams_v2, node, &params);
	params.kernelParams = args;
	OK(cuGraphKernelNodeSetParams_v2, node, &params);
	run_once(exec);
	HOLDS(contract_read(word), ==, 5);
	add = 7;
	OK(cuGraphExecKernelNodeSetParams_v2, exec, node, &params);
	run_once(exec);
	HOLDS(contract_read(word), ==, 7);
	OK(cuGraphDestroy, graph);
	run_once(exec);
	HOLDS(contract_read(word), ==, 7);
}

FACT(exec_disable, MANUAL, SAME, "a disabled node is left out of launches")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	CUgraphNode first = step_node(graph, NULL, word, 1, 1), host;
	CUgraphExec exec;
	CUDA_HOST_NODE_PARAMS params;
	unsigned int enabled = 7, calls = 0;

	step_node(graph, first, word, 10, 0);
	params = (CUDA_HOST_NODE_PARAMS){count_up, &calls};
	OK(cuGraphAddHostNode, &host, graph, NULL, 0, &params);
	exec = exec_of(graph);
	OK(cuGraphNodeSetEnabled, exec, first, 0);
	OK(cuGraphNodeGetEnabled, exec, first, &enabled);
	HOLDS(enabled, ==, 0);
	run_once(exec);
	HOLDS(contract_read(word), ==, 10);
	OK(cuGraphNodeSetEnabled, exec, first, 1);
	run_once(exec);
	HOLDS(contract_read(word), ==, 110);
	IS(ERROR_INVALID_VALUE, cuGraphNodeSetEnabled, exec, host, 0);
}

FACT(exec_update, MANUAL, SAME, "a graph of the same shape updates what was instantiated")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph(), same = empty_graph(), longer = empty_graph();
	CUgraphExec exec;
	CUgraphExecUpdateResultInfo info;
	CUgraphNode node;

	step_node(graph, NULL, word, 0, 5);
	exec = exec_of(graph);
	step_node(same, NULL, word, 0, 6);
	OK(cuGraphExecUpdate_v2, exec, same, &info);
	HOLDS(info.result, ==, CU_GRAPH_EXEC_UPDATE_SUCCESS);
	run_once(exec);
	HOLDS(contract_read(word), ==, 6);
	node = step_node(longer, NULL, word, 0, 7);
	step_node(longer, node, word, 0, 8);
	IS(ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2, exec, longer, &info);
	HOLDS(info.result, ==, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	run_once(exec);
	HOLDS(contract_read(word), ==, 6);
}

FACT(exec_update_kind, MANUAL, SAME, "a node of another kind does not, and is named")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph(), other = empty_graph();
	CUDA_MEMSET_NODE_PARAMS set = {word, 0, 5, 4, 1, 1};
	CUgraphExecUpdateResultInfo info;
	CUgraphNode node;
	CUcontext context;
	CUgraphExec exec;

	OK(cuCtxGetCurrent, &context);
	step_node(graph, NULL, word, 0, 5);
	exec = exec_of(graph);
	OK(cuGraphAddMemsetNode, &node, other, NULL, 0, &set, context);
	IS(ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2, exec, other, &info);
	HOLDS(info.result, ==, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
	HOLDS((uintptr_t)info.errorNode, ==, (uintptr_t)node);
}

FACT(graph_clone, MANUAL, SAME, "a clone has its own nodes, which can be found")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph(), clone;
	CUgraphNode node = step_node(graph, NULL, word, 0, 5), found;

	OK(cuGraphClone, &clone, graph);
	OK(cuGraphNodeFindInClone, &found, node, clone);
	HOLDS((uintptr_t)found, !=, (uintptr_t)node);
	IS(ERROR_INVALID_VALUE, cuGraphNodeFindInClone, &found, node, graph);
	OK(cuGraphDestroyNode, node);
	OK(cuGraphDestroy, graph);
	run_once(exec_of(clone));
	HOLDS(contract_read(word), ==, 5);
}

FACT(graph_user_object, MANUAL, SAME,
	"a user object ends when the last graph with it is gone")
{
	unsigned int calls = 0;
	CUuserObject object;
	CUgraphExec exec;
	CUgraph graph;

	contract_context();
	graph = empty_graph();
	IS(ERROR_INVALID_VALUE, cuUserObjectCreate, &object, &calls, count_up, 1, 0);
	OK(cuUserObjectCreate, &object, &calls, count_up, 1,
		CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
	OK(cuGraphRetainUserObject, graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	OK(cuGraphDestroy, graph);
	contract_sleep_ms(50);
	HOLDS(__atomic_load_n(&calls, __ATOMIC_ACQUIRE), ==, 0);
	OK(cuGraphExecDestroy, exec);
	for (unsigned int i = 0; i < 200 && !__atomic_load_n(&calls, __ATOMIC_ACQUIRE);
		i++)
		contract_sleep_ms(10);
	HOLDS(__atomic_load_n(&calls, __ATOMIC_ACQUIRE), ==, 1);
}

FACT(graph_launch_captured, MANUAL, SAME,
	"a launch into a capture becomes a child graph there")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph(), captured;
	CUgraphNodeType type;
	CUgraphNode node;
	CUgraphExec exec;
	CUstream stream;
	size_t count = 1;

	step_node(graph, NULL, word, 1, 4);
	exec = exec_of(graph);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	OK(cuGraphLaunch, exec, stream);
	OK(cuStreamEndCapture, stream, &captured);
	OK(cuGraphGetNodes, captured, &node, &count);
	HOLDS(count, ==, 1);
	OK(cuGraphNodeGetType, node, &type);
	HOLDS(type, ==, CU_GRAPH_NODE_TYPE_GRAPH);
	HOLDS(contract_read(word), ==, 1);
	run_once(exec_of(captured));
	HOLDS(contract_read(word), ==, 5);
}

FACT(capture_into_graph, MANUAL, SAME, "a capture can go on in a graph behind its nodes")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph(), ended;
	CUgraphNode node = step_node(graph, NULL, word, 0, 3);
	CUstream stream;

	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuStreamBeginCaptureToGraph, stream, graph, &node, NULL, 1,
		CU_STREAM_CAPTURE_MODE_RELAXED);
	contract_step(stream, word, 10, 1);
	OK(cuStreamEndCapture, stream, &ended);
	HOLDS((uintptr_t)ended, ==, (uintptr_t)graph);
	run_once(exec_of(graph));
	HOLDS(contract_read(word), ==, 31);
}

FACT(capture_dependencies, MANUAL, SAME,
	"a capturing stream tells what its next node comes after, and lets it be changed")
{
	CUstreamCaptureStatus status;
	const CUgraphNode *after = NULL;
	CUdeviceptr word = ready();
	CUgraphNode node;
	CUstream stream;
	CUgraph graph, ended;
	size_t count = 9;

	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	OK(cuStreamGetCaptureInfo_v2, stream, &status, NULL, &graph, &after, &count);
	HOLDS(count, ==, 0);
	contract_step(stream, word, 1, 2);
	OK(cuStreamGetCaptureInfo_v2, stream, &status, NULL, &graph, &after, &count);
	HOLDS(status, ==, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	HOLDS(count, ==, 1);
	node = step_node(graph, after[0], word, 10, 0);
	OK(cuStreamUpdateCaptureDependencies, stream, &node, 1,
		CU_STREAM_SET_CAPTURE_DEPENDENCIES);
	contract_step(stream, word, 1, 1);
	OK(cuStreamEndCapture, stream, &ended);
	run_once(exec_of(ended));
	HOLDS(contract_read(word), ==, 31);
}

FACT(capture_event_node, MANUAL, SAME,
	"an event recorded as external becomes a node and is real after a launch")
{
	CUdeviceptr word = ready();
	CUgraphNodeType type;
	CUgraphNode nodes[2];
	CUstream stream;
	CUevent event;
	CUgraph graph;
	size_t count = 2;

	OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	contract_step(stream, word, 1, 1);
	OK(cuEventRecordWithFlags, event, stream, CU_EVENT_RECORD_EXTERNAL);
	OK(cuStreamEndCapture, stream, &graph);
	OK(cuGraphGetNodes, graph, nodes, &count);
	HOLDS(count, ==, 2);
	OK(cuGraphNodeGetType, nodes[1], &type);
	HOLDS(type, ==, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
	OK(cuEventQuery, event);
	run_once(exec_of(graph));
	OK(cuEventSynchronize, event);
}

FACT(graph_dot, MANUAL, SAME, "a graph can be drawn")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	char path[] = "/tmp/contract-dot-XXXXXX", text[9] = "";
	int fd = mkstemp(path);

	if (fd < 0)
		contract_skip("no file");
	step_node(graph, NULL, word, 1, 1);
	OK(cuGraphDebugDotPrint, graph, path, 0);
	HOLDS(read(fd, text, 7), ==, 7);
	unlink(path);
	HOLDS(strcmp(text, "digraph"), ==, 0);
}

FACT(node_attribute, MANUAL, SAME, "attributes of a kernel node are kept")
{
	CUdeviceptr word = ready();
	CUgraph graph = empty_graph();
	CUgraphNode a = step_node(graph, NULL, word, 1, 1);
	CUgraphNode b = step_node(graph, NULL, word, 1, 1);
	CUkernelNodeAttrValue value = {.priority = -1}, seen = {{0}};

	OK(cuGraphKernelNodeSetAttribute, a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
	OK(cuGraphKernelNodeCopyAttributes, b, a);
	OK(cuGraphKernelNodeGetAttribute, b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &seen);
	HOLDS(seen.priority, ==, -1);
}
