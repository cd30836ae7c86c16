/*
 * edges - entry points about whole graphs and their edges
 *
 * Lists follow the interface: without an array the count is returned; with one the array is filled,
 * and entries beyond the count are set to NULL.
 */
#include "softgpu/graph/internal.h"

#include <stdio.h>
#include <stdlib.h>

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	SL_ENTER(cuGraphCreate);
	if (!graph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*graph = sl_graph_new();
	return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool has_memory(CUgraph g)
{
	return sl_graph_has(g, CU_GRAPH_NODE_TYPE_MEM_ALLOC) ||
	       sl_graph_has(g, CU_GRAPH_NODE_TYPE_MEM_FREE);
}

CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
	CUgraph g;

	SL_ENTER(cuGraphClone);
	if (!clone || !sl_graph_ok(graph))
		return CUDA_ERROR_INVALID_VALUE;
	/* Two graphs cannot have memory at one address. */
	if (has_memory(graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	g = sl_graph_copy(graph);
	if (g && !sl_users_copy(g, graph)) {
		sl_graph_drop(g);
		g = NULL;
	}
	*clone = g;
	return g ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph graph)
{
	SL_ENTER(cuGraphDestroy);
	if (!sl_graph_ok(graph) || graph->is_child)
		return CUDA_ERROR_INVALID_VALUE;
	sl_graph_drop(graph);
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	SL_ENTER(cuGraphNodeGetType);
	if (!sl_node_ok(node) || !type)
		return CUDA_ERROR_INVALID_VALUE;
	*type = node->type;
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *node, CUgraphNode original, CUgraph clone)
{
	SL_ENTER(cuGraphNodeFindInClone);
	if (!node || !sl_node_ok(original) || !sl_graph_ok(clone) ||
		clone->origin != original->graph->id)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < clone->list.count; i++)
		if (clone->list.node[i]->origin == original->id) {
			*node = clone->list.node[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphDestroyNode(CUgraphNode node)
{
	SL_ENTER(cuGraphDestroyNode);
	if (!sl_node_ok(node))
		return CUDA_ERROR_INVALID_VALUE;
	if (has_memory(node->graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	sl_graph_remove(node);
	return CUDA_SUCCESS;
}

/* Lists --------------------------------------------------------------------------------------- */

/* Collects the results of a query. */
struct answer {
	CUgraphNode *node, *second;
	CUgraphEdgeData *data;
	size_t room, found;
	bool lossy; /* an edge has data, and there is no array for it */
};

static void give(
	struct answer *a, CUgraphNode first, CUgraphNode second, const CUgraphEdgeData *d)
{
	if (d && !a->data && (d->from_port || d->to_port || d->type))
		a->lossy = true;
	if (a->node && a->found < a->room) {
		a->node[a->found] = first;
		if (a->second)
			a->second[a->found] = second;
		if (a->data)
			a->data[a->found] = d ? *d : (CUgraphEdgeData){0};
	}
	a->found++;
}

static CUresult end(struct answer *a, size_t *count)
{
	if (a->lossy)
		return CUDA_ERROR_LOSSY_QUERY;
	for (size_t i = a->found; a->node && i < a->room; i++) {
		a->node[i] = NULL;
		if (a->second)
			a->second[i] = NULL;
		if (a->data)
			a->data[i] = (CUgraphEdgeData){0};
	}
	*count = a->node && a->room < a->found ? a->room : a->found;
	return CUDA_SUCCESS;
}

static CUresult nodes_of(CUgraph g, CUgraphNode *nodes, size_t *count, bool roots)
{
	struct answer a = {.node = nodes};

	if (!sl_graph_ok(g) || !count)
		return CUDA_ERROR_INVALID_VALUE;
	a.room = *count;
	for (size_t i = 0; i < g->list.count; i++)
		if (!roots || !g->list.node[i]->edge_count)
			give(&a, g->list.node[i], NULL, NULL);
	return end(&a, count);
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	SL_ENTER(cuGraphGetNodes);
	return nodes_of(graph, nodes, count, false);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	SL_ENTER(cuGraphGetRootNodes);
	return nodes_of(graph, nodes, count, true);
}

static CUresult edges_of(CUgraph g, CUgraphNode *from, CUgraphNode *to,
	CUgraphEdgeData *data, size_t *count)
{
	struct answer a = {.node = from, .second = to, .data = data};

	if (!sl_graph_ok(g) || !count || !from != !to || (data && !from))
		return CUDA_ERROR_INVALID_VALUE;
	a.room = *count;
	for (size_t i = 0; i < g->list.count; i++) {
		CUgraphNode n = g->list.node[i];

		for (size_t k = 0; k < n->edge_count; k++)
			give(&a, n->edge[k].from, n, from ? &n->edge[k].data : NULL);
	}
	return end(&a, count);
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	SL_ENTER(cuGraphGetEdges);
	return edges_of(graph, from, to, NULL, count);
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
	CUgraphEdgeData *edges, size_t *count)
{
	SL_ENTER(cuGraphGetEdges_v2);
	return edges_of(graph, from, to, edges, count);
}

static CUresult dependencies_of(
	CUgraphNode n, CUgraphNode *list, CUgraphEdgeData *data, size_t *count)
{
	struct answer a = {.node = list, .data = data};

	if (!sl_node_ok(n) || !count)
		return CUDA_ERROR_INVALID_VALUE;
	a.room = *count;
	for (size_t k = 0; k < n->edge_count; k++)
		give(&a, n->edge[k].from, NULL, list ? &n->edge[k].data : NULL);
	return end(&a, count);
}

static CUresult dependents_of(
	CUgraphNode n, CUgraphNode *list, CUgraphEdgeData *data, size_t *count)
{
	struct answer a = {.node = list, .data = data};

	if (!sl_node_ok(n) || !count)
		return CUDA_ERROR_INVALID_VALUE;
	a.room = *count;
	for (size_t i = 0; i < n->graph->list.count; i++) {
		CUgraphNode other = n->graph->list.node[i];
		struct sl_edge *e = sl_node_edge(other, n);

		if (e)
			give(&a, other, NULL, list ? &e->data : NULL);
	}
	return end(&a, count);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *list, size_t *count)
{
	SL_ENTER(cuGraphNodeGetDependencies);
	return dependencies_of(node, list, NULL, count);
}

CUresult cuGraphNodeGetDependencies_v2(
	CUgraphNode node, CUgraphNode *list, CUgraphEdgeData *edges, size_t *count)
{
	SL_ENTER(cuGraphNodeGetDependencies_v2);
	return dependencies_of(node, list, edges, count);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *list, size_t *count)
{
	SL_ENTER(cuGraphNodeGetDependentNodes);
	return dependents_of(node, list, NULL, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(
	CUgraphNode node, CUgraphNode *list, CUgraphEdgeData *edges, size_t *count)
{
	SL_ENTER(cuGraphNodeGetDependentNodes_v2);
	return dependents_of(node, list, edges, count);
}

/* Changes ------------------------------------------------------------------------------------- */

static bool pair_ok(CUgraph g, CUgraphNode from, CUgraphNode to)
{
	return sl_node_ok(from) && sl_node_ok(to) && from->graph == g && to->graph == g &&
	       from != to;
}

/* All or nothing: all pairs are checked before the first is made. */
static CUresult add(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
	const CUgraphEdgeData *edges, size_t count)
{
	if (!sl_graph_ok(g) || (count && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (!pair_ok(g, from[i], to[i]) || sl_node_edge(to[i], from[i]))
			return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (!sl_node_after(to[i], from[i], edges ? &edges[i] : NULL))
			return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(
	CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	SL_ENTER(cuGraphAddDependencies);
	return add(graph, from, to, NULL, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edges, size_t count)
{
	SL_ENTER(cuGraphAddDependencies_v2);
	return add(graph, from, to, edges, count);
}

static CUresult take_away(
	CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	if (!sl_graph_ok(g) || (count && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	/* As with nodes: the placement of memory depends on the edges. */
	if (count && has_memory(g))
		return CUDA_ERROR_NOT_SUPPORTED;
	for (size_t i = 0; i < count; i++)
		if (!pair_ok(g, from[i], to[i]) || !sl_node_edge(to[i], from[i]))
			return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		struct sl_edge *e = sl_node_edge(to[i], from[i]);

		if (e)
			*e = to[i]->edge[--to[i]->edge_count];
	}
	return CUDA_SUCCESS;
}

CUresult cuGraphRemoveDependencies(
	CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	SL_ENTER(cuGraphRemoveDependencies);
	return take_away(graph, from, to, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edges, size_t count)
{
	SL_ENTER(cuGraphRemoveDependencies_v2);
	(void)edges; /* here no two edges join the same nodes */
	return take_away(graph, from, to, count);
}

/* A picture ----------------------------------------------------------------------------------- */

static const char *const type_names[] = {"kernel", "memcpy", "memset", "host", "graph",
	"empty", "wait event", "record event", "signal", "wait", "alloc", "free",
	"memory operation", "conditional"};

static void print_graph(FILE *out, const struct CUgraph_st *g)
{
	for (size_t i = 0; i < g->list.count; i++) {
		CUgraphNode n = g->list.node[i];

		fprintf(out, "\tn%llu [label=\"%s\"];\n", (unsigned long long)n->id,
			(size_t)n->type < SL_ARRAY_LEN(type_names) ? type_names[n->type]
								   : "?");
		for (size_t k = 0; k < n->edge_count; k++)
			fprintf(out, "\tn%llu -> n%llu;\n",
				(unsigned long long)n->edge[k].from->id,
				(unsigned long long)n->id);
		if (n->does.child)
			print_graph(out, n->does.child);
	}
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags)
{
	FILE *out;

	SL_ENTER(cuGraphDebugDotPrint);
	(void)flags; /* how much detail per node: always its kind */
	if (!sl_graph_ok(graph) || !path)
		return CUDA_ERROR_INVALID_VALUE;
	out = fopen(path, "we");
	if (!out)
		return CUDA_ERROR_OPERATING_SYSTEM;
	fprintf(out, "digraph graph_%llu {\n", (unsigned long long)graph->id);
	print_graph(out, graph);
	fprintf(out, "}\n");
	return fclose(out) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
