/*
 * graph_internal - what capture.c and graph.c share
 *
 * A graph is not locked: a program may use one graph from one thread at a time, and a graph being
 * captured belongs to its capture until that is ended.
 */
#ifndef SL_SOFTGPU_GRAPH_INTERNAL_H
#define SL_SOFTGPU_GRAPH_INTERNAL_H

#include "softgpu/api.h"

struct CUgraphNode_st {
	struct sl_object o;
	struct sl_op *op; /* a template, never submitted itself; NULL: empty node */
};

struct sl_graph_list {
	CUgraphNode *node;
	size_t count, room;
};

struct CUgraph_st {
	struct sl_object o;
	struct sl_graph_list list;
	uint64_t id;
};

/* An empty graph, or NULL. */
CUgraph sl_graph_new(void);
/* Frees it with its nodes; NULL and a graph that was dropped before are left alone. */
void sl_graph_drop(CUgraph graph);
/* Appends a node, which owns op from then on; op NULL: an empty node. False: no memory, nothing done. */
SL_MUST_CHECK bool sl_graph_add(struct sl_graph_list *list, struct sl_op *op);

#endif
