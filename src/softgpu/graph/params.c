/*
 * params - entry points that make, read and change one node
 *
 * The calls for one kind of node convert their parameters to the form for any kind.
 */
#include "softgpu/graph/internal.h"

#include <stdlib.h>
#include <string.h>

/* Are these nodes of the graph, each named once? */
static bool dependencies_ok(CUgraph g, const CUgraphNode *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!sl_node_ok(list[i]) || list[i]->graph != g)
			return false;
		for (size_t k = 0; k < i && count <= 64; k++)
			if (list[k] == list[i])
				return false;
	}
	return true;
}

/* A second free in one graph. An allocation in one graph that another frees without order is not
 * noticed. */
static bool frees_again(CUgraph g, const struct sl_payload *does)
{
	for (size_t i = 0; i < g->list.count; i++)
		if (g->list.node[i]->type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
			g->list.node[i]->does.memory == does->memory)
			return true;
	return false;
}

/* The context that the parameters name, or NULL. */
static CUcontext context_of(const CUgraphNodeParams *p)
{
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: return p->kernel.ctx;
	case CU_GRAPH_NODE_TYPE_MEMCPY: return p->memcpy.copyCtx;
	case CU_GRAPH_NODE_TYPE_MEMSET: return p->memset.ctx;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return p->memOp.ctx;
	default: return NULL;
	}
}

CUresult sl_node_add(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
	const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
{
	CUcontext ctx = context_of(params);
	struct sl_payload does;
	CUgraphNode n;
	CUresult r;

	if (!out || !sl_graph_ok(graph) || (count && !dependencies) ||
		!dependencies_ok(graph, dependencies, count))
		return CUDA_ERROR_INVALID_VALUE;
	r = sl_payload_make(params, &does);
	if (r != CUDA_SUCCESS)
		return r;
	if (params->type == CU_GRAPH_NODE_TYPE_MEM_FREE && frees_again(graph, &does)) {
		sl_payload_free(&does);
		return CUDA_ERROR_INVALID_VALUE;
	}
	n = sl_graph_add(graph, params->type, &does);
	if (!n) {
		sl_payload_free(&does);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (sl_object_is(ctx, SL_MAGIC_CTX))
		n->ctx = ctx;
	for (size_t i = 0; i < count; i++)
		if (!sl_node_after(n, dependencies[i], edges ? &edges[i] : NULL)) {
			sl_graph_remove(n);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	*out = n;
	return CUDA_SUCCESS;
}

/* Any kind ------------------------------------------------------------------------------------ */

/* Unused fields must be zero: a later version of CUDA may give them a meaning. */
static bool rest_is_zero(const CUgraphNodeParams *p)
{
	return !p->reserved0[0] && !p->reserved0[1] && !p->reserved0[2] && !p->reserved2;
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
	size_t count, CUgraphNodeParams *params)
{
	SL_ENTER(cuGraphAddNode);
	if (!params || !rest_is_zero(params))
		return CUDA_ERROR_INVALID_VALUE;
	return sl_node_add(node, graph, dependencies, NULL, count, params);
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
	CUgraphNodeParams *params)
{
	SL_ENTER(cuGraphAddNode_v2);
	if (!params || !rest_is_zero(params))
		return CUDA_ERROR_INVALID_VALUE;
	return sl_node_add(node, graph, dependencies, edges, count, params);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
	SL_ENTER(cuGraphNodeSetParams);
	if (!sl_node_ok(node) || !params || !rest_is_zero(params))
		return CUDA_ERROR_INVALID_VALUE;
	return sl_node_set(node, params);
}

CUresult cuGraphExecNodeSetParams(
	CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
	SL_ENTER(cuGraphExecNodeSetParams);
	if (!params || !rest_is_zero(params))
		return CUDA_ERROR_INVALID_VALUE;
	return sl_exec_set(exec, node, params);
}

/* One kind ------------------------------------------------------------------------------------ */

#define NODE(type_name)                                \
	(CUgraphNodeParams)                            \
	{                                              \
		.type = CU_GRAPH_NODE_TYPE_##type_name \
	}

/*
 * ADD, SET, EXEC and GET define a call each. `parameter` is the one that the call has beyond the
 * common ones. The statements store it in `p`, or for GET read it from `p`.
 */
#define ADD(name, kind, parameter, ...)                                                  \
	CUresult name(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, \
		size_t count, parameter)                                                 \
	{                                                                                \
		CUgraphNodeParams p = NODE(kind);                                        \
		SL_ENTER(name);                                                          \
		__VA_ARGS__;                                                             \
		return sl_node_add(node, graph, dependencies, NULL, count, &p);          \
	}
#define SET(name, kind, parameter, ...)                             \
	CUresult name(CUgraphNode node, parameter)                  \
	{                                                           \
		CUgraphNodeParams p = NODE(kind);                   \
		SL_ENTER(name);                                     \
		__VA_ARGS__;                                        \
		return sl_node_ok(node) ? sl_node_set(node, &p)     \
					: CUDA_ERROR_INVALID_VALUE; \
	}
#define EXEC(name, kind, parameter, ...)                             \
	CUresult name(CUgraphExec exec, CUgraphNode node, parameter) \
	{                                                            \
		CUgraphNodeParams p = NODE(kind);                    \
		SL_ENTER(name);                                      \
		__VA_ARGS__;                                         \
		return sl_exec_set(exec, node, &p);                  \
	}
#define GET(name, kind, parameter, out, ...)                     \
	CUresult name(CUgraphNode node, parameter)               \
	{                                                        \
		CUgraphNodeParams p;                             \
		SL_ENTER(name);                                  \
		if (!out || !sl_node_ok(node) ||                 \
			node->type != CU_GRAPH_NODE_TYPE_##kind) \
			return CUDA_ERROR_INVALID_VALUE;         \
		sl_node_params(node, &p);                        \
		__VA_ARGS__;                                     \
		return CUDA_SUCCESS;                             \
	}
#define COMMA ,

/* The first form of a kernel's parameters is the beginning of the second. */
#define TAKE_V1            \
	CHECK_OUT(params); \
	memcpy(&p.kernel, params, sizeof(*params))
ADD(cuGraphAddKernelNode, KERNEL, const CUDA_KERNEL_NODE_PARAMS_v1 *params, TAKE_V1)
SET(cuGraphKernelNodeSetParams, KERNEL, const CUDA_KERNEL_NODE_PARAMS_v1 *params, TAKE_V1)
EXEC(cuGraphExecKernelNodeSetParams, KERNEL, const CUDA_KERNEL_NODE_PARAMS_v1 *params,
	TAKE_V1)
GET(cuGraphKernelNodeGetParams, KERNEL, CUDA_KERNEL_NODE_PARAMS_v1 *params, params,
	memcpy(params, &p.kernel, sizeof(*params)))
#define TAKE(member)       \
	CHECK_OUT(params); \
	p.member = *params
ADD(cuGraphAddKernelNode_v2, KERNEL, const CUDA_KERNEL_NODE_PARAMS *params, TAKE(kernel))
SET(cuGraphKernelNodeSetParams_v2, KERNEL, const CUDA_KERNEL_NODE_PARAMS *params,
	TAKE(kernel))
EXEC(cuGraphExecKernelNodeSetParams_v2, KERNEL, const CUDA_KERNEL_NODE_PARAMS *params,
	TAKE(kernel))
GET(cuGraphKernelNodeGetParams_v2, KERNEL, CUDA_KERNEL_NODE_PARAMS *params, params,
	*params = p.kernel)

#define TAKE_COPY        \
	CHECK_OUT(copy); \
	p.memcpy.copyParams = *copy
ADD(cuGraphAddMemcpyNode, MEMCPY, const CUDA_MEMCPY3D *copy COMMA CUcontext ctx,
	TAKE_COPY;
	p.memcpy.copyCtx = ctx)
SET(cuGraphMemcpyNodeSetParams, MEMCPY, const CUDA_MEMCPY3D *copy, TAKE_COPY)
EXEC(cuGraphExecMemcpyNodeSetParams, MEMCPY,
	const CUDA_MEMCPY3D *copy COMMA CUcontext ctx, TAKE_COPY;
	p.memcpy.copyCtx = ctx)
GET(cuGraphMemcpyNodeGetParams, MEMCPY, CUDA_MEMCPY3D *copy, copy,
	*copy = p.memcpy.copyParams)

#define TAKE_SET           \
	CHECK_OUT(params); \
	memcpy(&p.memset, params, sizeof(*params))
ADD(cuGraphAddMemsetNode, MEMSET,
	const CUDA_MEMSET_NODE_PARAMS *params COMMA CUcontext ctx, TAKE_SET;
	p.memset.ctx = ctx)
SET(cuGraphMemsetNodeSetParams, MEMSET, const CUDA_MEMSET_NODE_PARAMS *params, TAKE_SET)
EXEC(cuGraphExecMemsetNodeSetParams, MEMSET,
	const CUDA_MEMSET_NODE_PARAMS *params COMMA CUcontext ctx, TAKE_SET;
	p.memset.ctx = ctx)
GET(cuGraphMemsetNodeGetParams, MEMSET, CUDA_MEMSET_NODE_PARAMS *params, params,
	memcpy(params, &p.memset, sizeof(*params)))

ADD(cuGraphAddHostNode, HOST, const CUDA_HOST_NODE_PARAMS *params, TAKE(host))
SET(cuGraphHostNodeSetParams, HOST, const CUDA_HOST_NODE_PARAMS *params, TAKE(host))
EXEC(cuGraphExecHostNodeSetParams, HOST, const CUDA_HOST_NODE_PARAMS *params, TAKE(host))
GET(cuGraphHostNodeGetParams, HOST, CUDA_HOST_NODE_PARAMS *params, params,
	*params = p.host)

ADD(cuGraphAddBatchMemOpNode, BATCH_MEM_OP, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params,
	TAKE(memOp))
SET(cuGraphBatchMemOpNodeSetParams, BATCH_MEM_OP,
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *params, TAKE(memOp))
EXEC(cuGraphExecBatchMemOpNodeSetParams, BATCH_MEM_OP,
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *params, TAKE(memOp))
GET(cuGraphBatchMemOpNodeGetParams, BATCH_MEM_OP, CUDA_BATCH_MEM_OP_NODE_PARAMS *params,
	params, *params = p.memOp)

ADD(cuGraphAddExternalSemaphoresSignalNode, EXT_SEMAS_SIGNAL,
	const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params, TAKE(extSemSignal))
SET(cuGraphExternalSemaphoresSignalNodeSetParams, EXT_SEMAS_SIGNAL,
	const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params, TAKE(extSemSignal))
EXEC(cuGraphExecExternalSemaphoresSignalNodeSetParams, EXT_SEMAS_SIGNAL,
	const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params, TAKE(extSemSignal))
GET(cuGraphExternalSemaphoresSignalNodeGetParams, EXT_SEMAS_SIGNAL,
	CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params, params, *params = p.extSemSignal)
ADD(cuGraphAddExternalSemaphoresWaitNode, EXT_SEMAS_WAIT,
	const CUDA_EXT_SEM_WAIT_NODE_PARAMS *params, TAKE(extSemWait))
SET(cuGraphExternalSemaphoresWaitNodeSetParams, EXT_SEMAS_WAIT,
	const CUDA_EXT_SEM_WAIT_NODE_PARAMS *params, TAKE(extSemWait))
EXEC(cuGraphExecExternalSemaphoresWaitNodeSetParams, EXT_SEMAS_WAIT,
	const CUDA_EXT_SEM_WAIT_NODE_PARAMS *params, TAKE(extSemWait))
GET(cuGraphExternalSemaphoresWaitNodeGetParams, EXT_SEMAS_WAIT,
	CUDA_EXT_SEM_WAIT_NODE_PARAMS *params, params, *params = p.extSemWait)

ADD(cuGraphAddEventRecordNode, EVENT_RECORD, CUevent event, p.eventRecord.event = event)
SET(cuGraphEventRecordNodeSetEvent, EVENT_RECORD, CUevent event,
	p.eventRecord.event = event)
EXEC(cuGraphExecEventRecordNodeSetEvent, EVENT_RECORD, CUevent event,
	p.eventRecord.event = event)
GET(cuGraphEventRecordNodeGetEvent, EVENT_RECORD, CUevent *event, event,
	*event = p.eventRecord.event)
ADD(cuGraphAddEventWaitNode, WAIT_EVENT, CUevent event, p.eventWait.event = event)
SET(cuGraphEventWaitNodeSetEvent, WAIT_EVENT, CUevent event, p.eventWait.event = event)
EXEC(cuGraphExecEventWaitNodeSetEvent, WAIT_EVENT, CUevent event,
	p.eventWait.event = event)
GET(cuGraphEventWaitNodeGetEvent, WAIT_EVENT, CUevent *event, event,
	*event = p.eventWait.event)

ADD(cuGraphAddChildGraphNode, GRAPH, CUgraph child, p.graph.graph = child)
EXEC(cuGraphExecChildGraphNodeSetParams, GRAPH, CUgraph child, p.graph.graph = child)
GET(cuGraphChildGraphNodeGetGraph, GRAPH, CUgraph *graph, graph, *graph = p.graph.graph)

ADD(cuGraphAddMemFreeNode, MEM_FREE, CUdeviceptr ptr, p.free.dptr = ptr)
GET(cuGraphMemFreeNodeGetParams, MEM_FREE, CUdeviceptr *ptr, ptr, *ptr = p.free.dptr)
GET(cuGraphMemAllocNodeGetParams, MEM_ALLOC, CUDA_MEM_ALLOC_NODE_PARAMS *params, params,
	*params = p.alloc)

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph,
	const CUgraphNode *dependencies, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	CUgraphNodeParams p = NODE(MEM_ALLOC);
	CUresult r;

	SL_ENTER(cuGraphAddMemAllocNode);
	CHECK_OUT(params);
	p.alloc = *params;
	r = sl_node_add(node, graph, dependencies, NULL, count, &p);
	if (r == CUDA_SUCCESS)
		params->dptr = p.alloc.dptr;
	return r;
}

CUresult cuGraphAddEmptyNode(
	CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
	CUgraphNodeParams p = NODE(EMPTY);

	SL_ENTER(cuGraphAddEmptyNode);
	return sl_node_add(node, graph, dependencies, NULL, count, &p);
}

/* Attributes of kernels: stored and returned --------------------------------------------------- */

static bool attribute_ok(CUkernelNodeAttrID id)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return true;
	default: return false;
	}
}

static bool is_kernel(CUgraphNode n)
{
	return sl_node_ok(n) && n->type == CU_GRAPH_NODE_TYPE_KERNEL;
}

CUresult cuGraphKernelNodeGetAttribute(
	CUgraphNode node, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *value)
{
	SL_ENTER(cuGraphKernelNodeGetAttribute);
	if (!is_kernel(node) || !attribute_ok(attr) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	memset(value, 0, sizeof(*value));
	for (unsigned i = 0; i < node->attribute_count; i++)
		if (node->attribute[i].id == attr)
			*value = node->attribute[i].value;
	return CUDA_SUCCESS;
}

static CUresult set_attribute(
	CUgraphNode n, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value)
{
	CUlaunchAttribute *more;

	for (unsigned i = 0; i < n->attribute_count; i++)
		if (n->attribute[i].id == attr) {
			n->attribute[i].value = *value;
			return CUDA_SUCCESS;
		}
	more = realloc(n->attribute, (n->attribute_count + 1) * sizeof(*more));
	if (!more)
		return CUDA_ERROR_OUT_OF_MEMORY;
	n->attribute = more;
	n->attribute[n->attribute_count++] =
		(CUlaunchAttribute){.id = attr, .value = *value};
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(
	CUgraphNode node, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value)
{
	SL_ENTER(cuGraphKernelNodeSetAttribute);
	if (!is_kernel(node) || !attribute_ok(attr) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	return set_attribute(node, attr, value);
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
	CUresult r = CUDA_SUCCESS;

	SL_ENTER(cuGraphKernelNodeCopyAttributes);
	if (!is_kernel(dst) || !is_kernel(src))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < src->attribute_count && r == CUDA_SUCCESS; i++)
		r = set_attribute(dst, src->attribute[i].id, &src->attribute[i].value);
	return r;
}
