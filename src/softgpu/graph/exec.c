/*
 * exec - instantiated graphs and their launch
 *
 * An instantiated graph is a sorted copy of the graph. A launch submits its nodes one after the
 * other to the stream, one of the orders that the edges allow. Each node of the copy records its
 * original: calls that change the copy name the original.
 */
#include "softgpu/graph/internal.h"

#include <stdlib.h>

struct CUgraphExec_st {
	struct sl_object o;
	CUgraph graph;   /* a copy of its own */
	uint64_t origin; /* id of the graph it came from */
	CUgraph bound;   /* that graph, if it has memory nodes; may be gone */
	cuuint64_t flags;
	CUstream last; /* stream of the last launch, a reference; NULL: never launched */
	uint64_t last_seq;
};

static bool exec_ok(CUgraphExec e)
{
	return sl_object_is(e, SL_MAGIC_EXEC);
}

/* Memory nodes --------------------------------------------------------------------------------- */

/* Backs all memory before the first node is submitted, so a launch happens whole or not at all. */
static CUresult back(const struct CUgraph_st *g)
{
	CUresult r = CUDA_SUCCESS;

	for (size_t i = 0; i < g->list.count && r == CUDA_SUCCESS; i++) {
		CUgraphNode n = g->list.node[i];

		if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
			r = sl_graph_mem_back(n->does.memory);
		else if (n->does.child)
			r = back(n->does.child);
	}
	return r;
}

/* Memory that an earlier launch allocated and no call freed: freed now, or an error. */
static CUresult settle_old(const struct CUgraph_st *g, CUstream s, bool free_it)
{
	CUresult r = CUDA_SUCCESS;

	for (size_t i = 0; i < g->list.count && r == CUDA_SUCCESS; i++) {
		CUgraphNode n = g->list.node[i];

		if (n->does.child)
			r = settle_old(n->does.child, s, free_it);
		else if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
			 sl_graph_mem_is_held(n->does.memory))
			r = free_it ? sl_graph_mem_submit(n->does.memory, s, false)
				    : CUDA_ERROR_INVALID_VALUE;
	}
	return r;
}

/* Making --------------------------------------------------------------------------------------- */

#define FLAGS_KNOWN                                         \
	(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |  \
		CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |        \
		CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | \
		CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

static CUresult copy_sorted(CUgraph from, CUgraph *out)
{
	CUgraph g = sl_graph_copy(from);
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (g && sl_users_copy(g, from))
		r = sl_graph_sort(g);
	for (size_t i = 0; g && i < g->list.count && r == CUDA_SUCCESS; i++)
		if (g->list.node[i]->does.child)
			r = sl_graph_sort(g->list.node[i]->does.child);
	if (r != CUDA_SUCCESS)
		sl_graph_drop(g);
	else
		*out = g;
	return r;
}

static CUresult instantiate(CUgraphExec *out, CUgraph graph, cuuint64_t flags)
{
	bool has_memory;
	CUgraphExec e;
	CUresult r;

	if (!out || !sl_graph_ok(graph) || flags & ~(cuuint64_t)FLAGS_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	/* No kernel here launches graphs; and memory can be at its address only once. */
	has_memory = sl_graph_has(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH ||
		(has_memory && exec_ok(graph->exec)))
		return CUDA_ERROR_NOT_SUPPORTED;
	e = sl_object_new(SL_MAGIC_EXEC, sizeof(*e));
	r = e ? copy_sorted(graph, &e->graph) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r != CUDA_SUCCESS) {
		if (e && sl_object_kill(e))
			sl_object_unref(e);
		return r;
	}
	e->flags = flags;
	e->origin = graph->id;
	if (has_memory) {
		graph->exec = e;
		e->bound = graph;
	}
	*out = e;
	return r;
}

CUresult cuGraphInstantiateWithFlags(
	CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	SL_ENTER(cuGraphInstantiateWithFlags);
	return instantiate(exec, graph, flags);
}

static CUresult with_log(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
	char *log, size_t log_bytes)
{
	if (error_node)
		*error_node = NULL;
	if (log && log_bytes)
		*log = '\0';
	return instantiate(exec, graph, 0);
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
	char *log, size_t log_bytes)
{
	SL_ENTER(cuGraphInstantiate);
	return with_log(exec, graph, error_node, log, log_bytes);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
	char *log, size_t log_bytes)
{
	SL_ENTER(cuGraphInstantiate_v2);
	return with_log(exec, graph, error_node, log, log_bytes);
}

static CUresult with_params(
	CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	CUresult r;

	CHECK_OUT(params);
	params->hErrNode_out = NULL;
	r = instantiate(exec, graph, params->flags);
	if (r == CUDA_SUCCESS && params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		r = back((*exec)->graph);
	params->result_out = r == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
			     : r == CUDA_ERROR_INVALID_VALUE
				     ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
				     : CUDA_GRAPH_INSTANTIATE_ERROR;
	return r;
}

#define do_cuGraphInstantiateWithParams with_params
SL_TWIN(cuGraphInstantiateWithParams,
	(CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	(exec, graph, params), (exec, graph, params))

/* Launched work goes on: it holds what it needs. */
CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	SL_ENTER(cuGraphExecDestroy);
	if (!exec_ok(exec) || !sl_object_kill(exec))
		return CUDA_ERROR_INVALID_VALUE;
	if (sl_graph_ok(exec->bound) && exec->bound->exec == exec)
		exec->bound->exec = NULL;
	sl_users_drop(exec->graph, exec->last, exec->last_seq);
	sl_object_unref(exec->last);
	sl_graph_drop(exec->graph);
	sl_object_unref(exec);
	return CUDA_SUCCESS;
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
	SL_ENTER(cuGraphExecGetFlags);
	if (!exec_ok(exec) || !flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = exec->flags;
	return CUDA_SUCCESS;
}

/* Changing ------------------------------------------------------------------------------------- */

static CUgraphNode find_copy(CUgraphExec e, CUgraphNode of)
{
	if (!exec_ok(e) || !sl_node_ok(of))
		return NULL;
	for (size_t i = 0; i < e->graph->list.count; i++)
		if (e->graph->list.node[i]->origin == of->id)
			return e->graph->list.node[i];
	return NULL;
}

/* A child graph may change its nodes' work, not its nodes. */
static bool same_shape(const struct CUgraph_st *a, const struct CUgraph_st *b);

CUresult sl_exec_set(CUgraphExec e, CUgraphNode node, const CUgraphNodeParams *params)
{
	CUgraphNode n = find_copy(e, node);

	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	if (n->does.child && params->type == CU_GRAPH_NODE_TYPE_GRAPH &&
		sl_graph_ok(params->graph.graph) &&
		!same_shape(n->does.child, params->graph.graph))
		return CUDA_ERROR_INVALID_VALUE;
	return sl_node_set(n, params);
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled)
{
	CUgraphNode n;

	SL_ENTER(cuGraphNodeSetEnabled);
	n = find_copy(exec, node);
	if (!n || (n->type != CU_GRAPH_NODE_TYPE_KERNEL &&
			  n->type != CU_GRAPH_NODE_TYPE_MEMCPY &&
			  n->type != CU_GRAPH_NODE_TYPE_MEMSET))
		return CUDA_ERROR_INVALID_VALUE;
	n->disabled = !enabled;
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled)
{
	CUgraphNode n;

	SL_ENTER(cuGraphNodeGetEnabled);
	n = find_copy(exec, node);
	if (!n || !enabled)
		return CUDA_ERROR_INVALID_VALUE;
	*enabled = !n->disabled;
	return CUDA_SUCCESS;
}

/* Does b's node at the same position have the same dependencies? */
static bool same_edges(CUgraphNode a, CUgraphNode b)
{
	if (a->edge_count != b->edge_count)
		return false;
	for (size_t i = 0; i < a->edge_count; i++) {
		bool found = false;

		for (size_t k = 0; k < b->edge_count && !found; k++)
			found = a->edge[i].from->index == b->edge[k].from->index;
		if (!found)
			return false;
	}
	return true;
}

/* The first node in which two sorted graphs differ; *error has the kind. NULL with success:
 * none. */
static CUgraphNode differ(const struct CUgraph_st *a, const struct CUgraph_st *b,
	CUgraphExecUpdateResult *error)
{
	*error = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	if (a->list.count != b->list.count)
		return NULL;
	for (size_t i = 0; i < a->list.count; i++) {
		CUgraphNode x = a->list.node[i], y = b->list.node[i];

		*error = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		if (x->type != y->type)
			return y;
		*error = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		if (!same_edges(x, y) ||
			(x->does.child && !same_shape(x->does.child, y->does.child)))
			return y;
		*error = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
		if (x->does.memory && x->does.memory != y->does.memory)
			return y;
	}
	*error = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	return NULL;
}

static bool same_shape(const struct CUgraph_st *a, const struct CUgraph_st *b)
{
	CUgraphExecUpdateResult error;

	return !differ(a, b, &error) && error == CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* Takes the nodes' work; they stay copies of the same original nodes. */
static void take_over(CUgraph to, CUgraph from)
{
	for (size_t i = 0; i < to->list.count; i++) {
		struct sl_payload old = to->list.node[i]->does;

		to->list.node[i]->does = from->list.node[i]->does;
		from->list.node[i]->does = old;
	}
}

static CUgraphNode original(CUgraph g, uint64_t id)
{
	for (size_t i = 0; i < g->list.count; i++)
		if (g->list.node[i]->id == id)
			return g->list.node[i];
	return NULL;
}

static CUresult update(CUgraphExec e, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	CUgraph fresh;
	CUgraphNode bad;
	CUresult r;

	if (!exec_ok(e) || !sl_graph_ok(graph))
		return CUDA_ERROR_INVALID_VALUE;
	r = copy_sorted(graph, &fresh);
	if (r != CUDA_SUCCESS)
		return r;
	*info = (CUgraphExecUpdateResultInfo){0};
	bad = differ(e->graph, fresh, &info->result);
	if (info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS)
		take_over(e->graph, fresh);
	else if (bad)
		info->errorNode = original(graph, bad->origin);
	sl_graph_drop(fresh);
	return info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUresult cuGraphExecUpdate_v2(
	CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	SL_ENTER(cuGraphExecUpdate_v2);
	CHECK_OUT(info);
	return update(exec, graph, info);
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node,
	CUgraphExecUpdateResult *result)
{
	CUgraphExecUpdateResultInfo info = {0};
	CUresult r;

	SL_ENTER(cuGraphExecUpdate);
	CHECK_OUT(error_node && result);
	r = update(exec, graph, &info);
	*error_node = info.errorNode;
	*result = info.result;
	return r;
}

/* Launching ------------------------------------------------------------------------------------ */

/* For all contexts of its kernels. */
static CUresult first_launches(const struct CUgraph_st *g)
{
	CUresult r = CUDA_SUCCESS;

	for (size_t i = 0; i < g->list.count && r == CUDA_SUCCESS; i++) {
		const struct sl_payload *does = &g->list.node[i]->does;

		if (does->child)
			r = first_launches(does->child);
		else if (does->op && does->op->kind == SL_OP_KERNEL)
			r = sl_ctx_first_launch(does->op->kernel.module->ctx);
	}
	return r;
}

static struct sl_op *op_of_launch(CUgraphNode n)
{
	struct sl_op *op = sl_op_copy(n->does.op);

	if (op && op->kind == SL_OP_SET && n->ctx)
		op->set.by = (uint8_t)(n->ctx->device + 1);
	return op;
}

static CUresult launch_nodes(const struct CUgraph_st *g, CUstream s)
{
	CUresult r = CUDA_SUCCESS;

	for (size_t i = 0; i < g->list.count && r == CUDA_SUCCESS; i++) {
		CUgraphNode n = g->list.node[i];
		struct sl_op *op;

		if (n->disabled)
			continue;
		if (n->does.op) {
			op = op_of_launch(n);
			r = op ? sl_stream_submit(s, op, NULL) : CUDA_ERROR_OUT_OF_MEMORY;
		} else if (n->does.child) {
			r = launch_nodes(n->does.child, s);
		} else if (n->does.memory) {
			r = sl_graph_mem_submit(n->does.memory, s,
				n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
		} else if (n->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
			r = sl_stream_wait_event(s, n->does.event);
		} else if (n->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
			r = sl_event_record(n->does.event, s);
		}
	}
	return r;
}

static CUresult launch_in_order(CUgraphExec e, CUstream s)
{
	struct sl_op *end = sl_op_new(SL_OP_NOP);
	CUresult r = end ? back(e->graph) : CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t seq = 0;

	if (r == CUDA_SUCCESS)
		r = settle_old(e->graph, s,
			e->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	if (r == CUDA_SUCCESS)
		r = first_launches(e->graph);
	if (r == CUDA_SUCCESS)
		r = launch_nodes(e->graph, s);
	if (r != CUDA_SUCCESS) {
		sl_op_free(end);
		return r;
	}
	r = sl_stream_submit(s, end, &seq);
	if (r == CUDA_SUCCESS) {
		sl_object_ref(s);
		sl_object_unref(e->last);
		e->last = s;
		e->last_seq = seq;
	}
	return r;
}

static CUresult do_cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
	CUstream s = sl_stream_of(handle, false);
	CUresult r;

	if (!exec_ok(exec))
		return CUDA_ERROR_INVALID_VALUE;
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (sl_capture_child(s, exec->graph, &r))
		return r;
	r = sl_capture_check_stream(s);
	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&s->launching);
	r = launch_in_order(exec, s);
	pthread_mutex_unlock(&s->launching);
	return r;
}

static CUresult do_cuGraphUpload(CUgraphExec exec, CUstream handle)
{
	if (!exec_ok(exec))
		return CUDA_ERROR_INVALID_VALUE;
	if (!sl_stream_of(handle, false))
		return CUDA_ERROR_INVALID_HANDLE;
	return back(exec->graph);
}

SL_TWIN(cuGraphLaunch, (CUgraphExec exec, CUstream stream), (exec, SL_PLAIN(stream)),
	(exec, SL_PER_THREAD(stream)))
SL_TWIN(cuGraphUpload, (CUgraphExec exec, CUstream stream), (exec, SL_PLAIN(stream)),
	(exec, SL_PER_THREAD(stream)))
