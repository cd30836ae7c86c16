/*
 * graph - graphs, their nodes and edges, and copies of them
 *
 * A copy keeps the order of the nodes, so edges are copied by position. An instantiated graph is a
 * sorted copy (exec.c).
 */
#include "softgpu/graph/internal.h"

#include <stdlib.h>
#include <string.h>

bool sl_graph_ok(CUgraph g)
{
	return sl_object_is(g, SL_MAGIC_GRAPH);
}

bool sl_node_ok(CUgraphNode n)
{
	return sl_object_is(n, SL_MAGIC_NODE);
}

CUgraph sl_graph_new(void)
{
	CUgraph g = sl_object_new(SL_MAGIC_GRAPH, sizeof(*g));

	if (g)
		g->id = sl_drv_next_id();
	return g;
}

static void node_free(CUgraphNode n)
{
	sl_payload_free(&n->does);
	free(n->edge);
	free(n->attribute);
	n->edge = NULL;
	n->attribute = NULL;
	n->edge_count = n->attribute_count = 0;
	sl_object_kill(n);
	sl_object_unref(n);
}

void sl_graph_drop(CUgraph g)
{
	if (!g || !sl_object_kill(g))
		return;
	for (size_t i = 0; i < g->list.count; i++)
		node_free(g->list.node[i]);
	free(g->list.node);
	g->list = (struct sl_graph_list){0};
	sl_users_drop(g, NULL, 0);
	sl_object_unref(g);
}

static bool grow(struct sl_graph_list *l)
{
	size_t room = l->room ? l->room * 2 : 16;
	void *more;

	if (l->count < l->room)
		return true;
	more = realloc(l->node, room * sizeof(*l->node));
	if (!more)
		return false;
	l->node = more;
	l->room = room;
	return true;
}

CUgraphNode sl_graph_add(CUgraph g, CUgraphNodeType type, const struct sl_payload *does)
{
	CUgraphNode n = grow(&g->list) ? sl_object_new(SL_MAGIC_NODE, sizeof(*n)) : NULL;

	if (!n)
		return NULL;
	n->graph = g;
	n->type = type;
	n->id = sl_drv_next_id();
	n->does = *does;
	n->ctx = sl_ctx_current();
	n->index = g->list.count;
	g->list.node[g->list.count++] = n;
	return n;
}

void sl_graph_remove(CUgraphNode n)
{
	struct sl_graph_list *l = &n->graph->list;

	for (size_t i = 0; i < l->count; i++) {
		struct sl_edge *e = sl_node_edge(l->node[i], n);

		if (e)
			*e = l->node[i]->edge[--l->node[i]->edge_count];
	}
	l->count--;
	for (size_t i = n->index; i < l->count; i++) {
		l->node[i] = l->node[i + 1];
		l->node[i]->index = i;
	}
	node_free(n);
}

/* Edges --------------------------------------------------------------------------------------- */

struct sl_edge *sl_node_edge(CUgraphNode n, CUgraphNode from)
{
	for (size_t i = 0; i < n->edge_count; i++)
		if (n->edge[i].from == from)
			return &n->edge[i];
	return NULL;
}

bool sl_node_after(CUgraphNode n, CUgraphNode from, const CUgraphEdgeData *data)
{
	struct sl_edge *more;

	if (sl_node_edge(n, from))
		return true;
	more = realloc(n->edge, (n->edge_count + 1) * sizeof(*more));
	if (!more)
		return false;
	n->edge = more;
	n->edge[n->edge_count++] =
		(struct sl_edge){from, data ? *data : (CUgraphEdgeData){0}};
	return true;
}

static bool is_sorted(const struct CUgraph_st *g)
{
	for (size_t i = 0; i < g->list.count; i++)
		for (size_t k = 0; k < g->list.node[i]->edge_count; k++)
			if (g->list.node[i]->edge[k].from->index >= i)
				return false;
	return true;
}

/*
 * Sorts in rounds: each round takes the nodes without pending dependencies, oldest first. This is
 * quadratic, but rarely needed: programs and captures mostly make nodes in a valid order, which is
 * checked first.
 */
CUresult sl_graph_sort(CUgraph g)
{
	size_t done = 0, before;

	if (is_sorted(g))
		return CUDA_SUCCESS;
	do {
		before = done;
		for (size_t i = done; i < g->list.count; i++) {
			CUgraphNode n = g->list.node[i];
			bool ready = true;

			for (size_t k = 0; k < n->edge_count && ready; k++)
				ready = n->edge[k].from->index < done;
			if (!ready)
				continue;
			memmove(&g->list.node[done + 1], &g->list.node[done],
				(i - done) * sizeof(CUgraphNode));
			g->list.node[done] = n;
			for (size_t k = done; k <= i; k++)
				g->list.node[k]->index = k;
			done++;
		}
	} while (done > before);
	return done == g->list.count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool sl_graph_has(const struct CUgraph_st *g, CUgraphNodeType type)
{
	for (size_t i = 0; i < g->list.count; i++) {
		CUgraphNode n = g->list.node[i];

		if (n->type == type ||
			(n->does.child && sl_graph_has(n->does.child, type)))
			return true;
	}
	return false;
}

/* Copies -------------------------------------------------------------------------------------- */

/* Templates have no dependencies and no staged bytes. */
struct sl_op *sl_op_copy(const struct sl_op *from)
{
	struct sl_op *op = sl_op_new(from->kind);

	if (!op)
		return NULL;
	*op = *from;
	sl_list_init(&op->link);
	if (op->kind == SL_OP_KERNEL) {
		op->kernel.launch = malloc(sizeof(*op->kernel.launch));
		if (op->kernel.launch) {
			*op->kernel.launch = *from->kernel.launch;
			sl_object_ref(op->kernel.module);
			return op;
		}
	} else if (op->kind == SL_OP_VALUE) {
		op->value.list = malloc(op->value.count * sizeof(*op->value.list));
		if (op->value.list) {
			memcpy(op->value.list, from->value.list,
				op->value.count * sizeof(*op->value.list));
			return op;
		}
	} else {
		if (op->kind == SL_OP_CALL)
			atomic_fetch_add(&op->call->refs, 1);
		return op;
	}
	op->kind = SL_OP_NOP;
	sl_op_free(op);
	return NULL;
}

static bool node_copy(CUgraph to, CUgraphNode from)
{
	struct sl_payload does;
	CUgraphNode n;

	if (!sl_payload_copy(&does, &from->does))
		return false;
	n = sl_graph_add(to, from->type, &does);
	if (!n) {
		sl_payload_free(&does);
		return false;
	}
	n->origin = from->id;
	n->ctx = from->ctx;
	n->disabled = from->disabled;
	if (!from->attribute_count)
		return true;
	n->attribute = malloc(from->attribute_count * sizeof(*n->attribute));
	if (!n->attribute)
		return false;
	memcpy(n->attribute, from->attribute,
		from->attribute_count * sizeof(*n->attribute));
	n->attribute_count = from->attribute_count;
	return true;
}

static bool edges_copy(CUgraph to, const struct CUgraph_st *from)
{
	for (size_t i = 0; i < from->list.count; i++) {
		CUgraphNode n = from->list.node[i];

		for (size_t k = 0; k < n->edge_count; k++)
			if (!sl_node_after(to->list.node[i],
				    to->list.node[n->edge[k].from->index],
				    &n->edge[k].data))
				return false;
	}
	return true;
}

CUgraph sl_graph_copy(const struct CUgraph_st *from)
{
	CUgraph to = sl_graph_new();

	if (!to)
		return NULL;
	to->origin = from->id;
	for (size_t i = 0; i < from->list.count; i++)
		if (!node_copy(to, from->list.node[i])) {
			sl_graph_drop(to);
			return NULL;
		}
	if (!edges_copy(to, from)) {
		sl_graph_drop(to);
		return NULL;
	}
	return to;
}
