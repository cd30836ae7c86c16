/*
 * graph - graphs and their launch
 *
 * A graph is the list of its operations in the order in which they were captured (capture.c); that
 * order is always a valid one, so a launch submits the list to one stream.
 */
#include "softgpu/graph_internal.h"

#include <stdlib.h>
#include <string.h>

struct CUgraphExec_st {
	struct sl_object o;
	struct sl_graph_list list;
	cuuint64_t flags;
};

/* Lists --------------------------------------------------------------------------------------- */

bool sl_graph_add(struct sl_graph_list *l, struct sl_op *op)
{
	CUgraphNode n;

	if (l->count == l->room) {
		size_t room = l->room ? l->room * 2 : 16;
		void *more = realloc(l->node, room * sizeof(*l->node));

		if (!more)
			return false;
		l->node = more;
		l->room = room;
	}
	n = sl_object_new(SL_MAGIC_NODE, sizeof(*n));
	if (!n)
		return false;
	n->op = op;
	l->node[l->count++] = n;
	return true;
}

static void list_free(struct sl_graph_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		sl_op_free(l->node[i]->op);
		l->node[i]->op = NULL;
		sl_object_kill(l->node[i]);
		sl_object_unref(l->node[i]);
	}
	free(l->node);
	*l = (struct sl_graph_list){0};
}

/* Templates have nothing to wait for and nothing staged. */
static struct sl_op *op_copy(const struct sl_op *from)
{
	struct sl_op *op = sl_op_new(from->kind);

	if (!op)
		return NULL;
	*op = *from;
	sl_list_init(&op->link);
	if (op->kind == SL_OP_KERNEL) {
		op->kernel.launch = malloc(sizeof(*op->kernel.launch));
		if (!op->kernel.launch) {
			op->kind = SL_OP_NOP;
			sl_op_free(op);
			return NULL;
		}
		*op->kernel.launch = *from->kernel.launch;
		sl_object_ref(op->kernel.module);
	}
	return op;
}

static bool list_copy(struct sl_graph_list *to, const struct sl_graph_list *from)
{
	for (size_t i = 0; i < from->count; i++) {
		struct sl_op *op = from->node[i]->op ? op_copy(from->node[i]->op) : NULL;

		if ((from->node[i]->op && !op) || !sl_graph_add(to, op)) {
			sl_op_free(op);
			list_free(to);
			return false;
		}
	}
	return true;
}

CUgraph sl_graph_new(void)
{
	CUgraph g = sl_object_new(SL_MAGIC_GRAPH, sizeof(*g));

	if (g)
		g->id = sl_drv_next_id();
	return g;
}

void sl_graph_drop(CUgraph g)
{
	if (g && sl_object_kill(g)) {
		list_free(&g->list);
		sl_object_unref(g);
	}
}

/* Entry points: graphs ------------------------------------------------------------------------ */

static bool graph_ok(CUgraph g)
{
	return sl_object_is(g, SL_MAGIC_GRAPH);
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	SL_ENTER(cuGraphCreate);
	if (!graph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*graph = sl_graph_new();
	return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
	CUgraph g;

	SL_ENTER(cuGraphClone);
	if (!clone || !graph_ok(graph))
		return CUDA_ERROR_INVALID_VALUE;
	g = sl_graph_new();
	if (!g || !list_copy(&g->list, &graph->list)) {
		sl_graph_drop(g);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*clone = g;
	return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
	SL_ENTER(cuGraphDestroy);
	if (!graph_ok(graph))
		return CUDA_ERROR_INVALID_VALUE;
	sl_graph_drop(graph);
	return CUDA_SUCCESS;
}

CUresult cuGraphAddEmptyNode(
	CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
	SL_ENTER(cuGraphAddEmptyNode);
	if (!node || !graph_ok(graph) || (count && !dependencies))
		return CUDA_ERROR_INVALID_VALUE;
	if (!sl_graph_add(&graph->list, NULL))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*node = graph->list.node[graph->list.count - 1];
	return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	SL_ENTER(cuGraphGetNodes);
	if (!graph_ok(graph) || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; nodes && i < *count; i++)
		nodes[i] = i < graph->list.count ? graph->list.node[i] : NULL;
	*count = nodes ? sl_min_u64(*count, graph->list.count) : graph->list.count;
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	SL_ENTER(cuGraphNodeGetType);
	if (!sl_object_is(node, SL_MAGIC_NODE) || !type)
		return CUDA_ERROR_INVALID_VALUE;
	switch (node->op ? node->op->kind : SL_OP_NOP) {
	case SL_OP_KERNEL: *type = CU_GRAPH_NODE_TYPE_KERNEL; break;
	case SL_OP_COPY: *type = CU_GRAPH_NODE_TYPE_MEMCPY; break;
	case SL_OP_SET: *type = CU_GRAPH_NODE_TYPE_MEMSET; break;
	case SL_OP_HOST: *type = CU_GRAPH_NODE_TYPE_HOST; break;
	case SL_OP_VALUE: *type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; break;
	default: *type = CU_GRAPH_NODE_TYPE_EMPTY;
	}
	return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *out, CUgraph graph, cuuint64_t flags)
{
	CUgraphExec e;

	if (!out || !graph_ok(graph) || flags & ~(cuuint64_t)15)
		return CUDA_ERROR_INVALID_VALUE;
	e = sl_object_new(SL_MAGIC_EXEC, sizeof(*e));
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->flags = flags;
	if (!list_copy(&e->list, &graph->list)) {
		sl_object_kill(e);
		sl_object_unref(e);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = e;
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(
	CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	SL_ENTER(cuGraphInstantiateWithFlags);
	return instantiate(exec, graph, flags);
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
	char *log, size_t log_bytes)
{
	SL_ENTER(cuGraphInstantiate);
	if (error_node)
		*error_node = NULL;
	if (log && log_bytes)
		*log = '\0';
	return instantiate(exec, graph, 0);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
	char *log, size_t log_bytes)
{
	SL_ENTER(cuGraphInstantiate_v2);
	if (error_node)
		*error_node = NULL;
	if (log && log_bytes)
		*log = '\0';
	return instantiate(exec, graph, 0);
}

static CUresult with_params(
	CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	CUresult r;

	CHECK_OUT(params);
	params->hErrNode_out = NULL;
	r = instantiate(exec, graph, params->flags);
	params->result_out = r == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
					       : CUDA_GRAPH_INSTANTIATE_ERROR;
	return r;
}

#define do_cuGraphInstantiateWithParams with_params
SL_TWIN(cuGraphInstantiateWithParams,
	(CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	(exec, graph, params), (exec, graph, params))

static bool exec_ok(CUgraphExec e)
{
	return sl_object_is(e, SL_MAGIC_EXEC);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	SL_ENTER(cuGraphExecDestroy);
	if (!exec_ok(exec) || !sl_object_kill(exec))
		return CUDA_ERROR_INVALID_VALUE;
	list_free(&exec->list);
	sl_object_unref(exec);
	return CUDA_SUCCESS;
}

/* Same kinds in the same order: the parameters are taken over. */
CUresult cuGraphExecUpdate_v2(
	CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	struct sl_graph_list fresh = {0};

	SL_ENTER(cuGraphExecUpdate_v2);
	if (!exec_ok(exec) || !graph_ok(graph) || !info)
		return CUDA_ERROR_INVALID_VALUE;
	*info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};
	if (exec->list.count != graph->list.count)
		info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (size_t i = 0;
		i < exec->list.count && info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS;
		i++) {
		const struct sl_op *a = exec->list.node[i]->op,
				   *b = graph->list.node[i]->op;

		if (!a != !b || (a && a->kind != b->kind))
			info->result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
	}
	if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	if (!list_copy(&fresh, &graph->list))
		return CUDA_ERROR_OUT_OF_MEMORY;
	list_free(&exec->list);
	exec->list = fresh;
	return CUDA_SUCCESS;
}

static CUresult do_cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
	CUstream s = sl_stream_of(handle, false);
	CUresult r = CUDA_SUCCESS;

	if (!exec_ok(exec))
		return CUDA_ERROR_INVALID_VALUE;
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	for (size_t i = 0; i < exec->list.count && r == CUDA_SUCCESS; i++)
		if (exec->list.node[i]->op)
			r = sl_api_submit(handle, op_copy(exec->list.node[i]->op));
	return r;
}

static CUresult do_cuGraphUpload(CUgraphExec exec, CUstream handle)
{
	if (!exec_ok(exec))
		return CUDA_ERROR_INVALID_VALUE;
	return sl_stream_of(handle, false) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SL_TWIN(cuGraphLaunch, (CUgraphExec exec, CUstream stream), (exec, SL_PLAIN(stream)),
	(exec, SL_PER_THREAD(stream)))
SL_TWIN(cuGraphUpload, (CUgraphExec exec, CUstream stream), (exec, SL_PLAIN(stream)),
	(exec, SL_PER_THREAD(stream)))
