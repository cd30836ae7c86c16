/*
 * internal - what the files about graphs and capture share
 *
 * A graph is not locked: a program may use a graph from one thread at a time, and a graph being
 * captured belongs to its capture until that ends. Nodes stand in the order in which they were
 * made; edges have the dependencies (sl_graph_sort orders the nodes by them).
 *
 *  - graph.c: graphs, nodes, edges, copies of graphs
 *  - nodes.c: a node's work, from and to the parameters of the interface
 *  - params.c: entry points that make, read and change one node
 *  - edges.c: entry points about edges and whole graphs
 *  - exec.c: instantiated graphs and their launch
 *  - memory.c: memory nodes
 *  - user.c: user objects
 */
#ifndef SL_SOFTGPU_GRAPH_INTERNAL_H
#define SL_SOFTGPU_GRAPH_INTERNAL_H

#include "softgpu/driver/api.h"

/* Memory nodes --------------------------------------------------------------------------------- */

/*
 * Memory of a graph: its address is fixed when its node is made. It is backed at the first launch,
 * and stays backed until a trim finds it free. Nodes, their copies, queued work and the allocation
 * itself hold references, and its backing may outlive them.
 */
struct sl_graph_mem;

SL_MUST_CHECK CUresult sl_graph_mem_new(
	const CUDA_MEM_ALLOC_NODE_PARAMS *params, struct sl_graph_mem **out);
/* The memory that begins at an address, with a reference; or NULL. */
struct sl_graph_mem *sl_graph_mem_find(CUdeviceptr at);
void sl_graph_mem_ref(struct sl_graph_mem *m);
void sl_graph_mem_unref(struct sl_graph_mem *m);
/* Backs it. */
SL_MUST_CHECK CUresult sl_graph_mem_back(struct sl_graph_mem *m);
/* Is it allocated, by the order of calls? */
bool sl_graph_mem_is_held(const struct sl_graph_mem *m);
/* Allocates or frees it in the stream's order. */
SL_MUST_CHECK CUresult sl_graph_mem_submit(
	struct sl_graph_mem *m, CUstream stream, bool allocate);
void sl_graph_mem_params(const struct sl_graph_mem *m, CUDA_MEM_ALLOC_NODE_PARAMS *out);

/* Nodes ---------------------------------------------------------------------------------------- */

/* A node's work. Its type selects the valid member. */
struct sl_payload {
	struct sl_op *op;   /* a template, for work and semaphores */
	CUDA_MEMCPY3D *box; /* a copy as the program described it; NULL: captured */
	CUevent event;      /* a reference */
	CUgraph child;      /* owned */
	struct sl_graph_mem *memory; /* a reference */
};

struct sl_edge {
	CUgraphNode from;
	CUgraphEdgeData data;
};

struct CUgraphNode_st {
	struct sl_object o;
	CUgraph graph;
	CUgraphNodeType type;
	uint64_t id;     /* never used twice */
	uint64_t origin; /* id of the node it is a copy of; 0: none */
	size_t index;    /* in its graph */
	CUcontext ctx;
	struct sl_payload does;
	struct sl_edge *edge; /* its dependencies */
	size_t edge_count;
	bool disabled; /* in an instantiated graph */
	unsigned attribute_count;
	CUlaunchAttribute *attribute;         /* of a kernel */
	void *param[SL_HOSTMODULE_PARAMS];    /* for cuGraphKernelNodeGetParams */
	CUDA_EXT_SEM_SIGNAL_NODE_PARAMS sems; /* storage for a read */
};

struct sl_graph_list {
	CUgraphNode *node;
	size_t count, room;
};

struct sl_graph_user {
	CUuserObject object;
	unsigned count;
};

struct CUgraph_st {
	struct sl_object o;
	struct sl_graph_list list;
	uint64_t id, origin; /* origin: id of the graph it is a clone of */
	bool is_child;       /* belongs to a node */
	CUgraphExec exec;    /* with memory nodes: its only instance; not a reference */
	struct sl_graph_user *user;
	size_t user_count;
};

/* graph.c -------------------------------------------------------------------------------------- */

bool sl_graph_ok(CUgraph graph);
bool sl_node_ok(CUgraphNode node);
/* An empty graph, or NULL. */
CUgraph sl_graph_new(void);
/* Frees it with its nodes; ignores NULL and a graph that was dropped before. */
void sl_graph_drop(CUgraph graph);
/* A copy of everything but user objects; nodes keep their order and know their origin. NULL: out of
 * memory. */
CUgraph sl_graph_copy(const struct CUgraph_st *from);
/* Appends a node, which owns *does from then on. NULL: out of memory, and *does stays the
 * caller's. */
CUgraphNode sl_graph_add(
	CUgraph graph, CUgraphNodeType type, const struct sl_payload *does);
/* Frees one node and the edges to it. */
void sl_graph_remove(CUgraphNode node);
/* Adds an edge, unless it exists. False: out of memory. */
SL_MUST_CHECK bool sl_node_after(
	CUgraphNode node, CUgraphNode from, const CUgraphEdgeData *data);
struct sl_edge *sl_node_edge(CUgraphNode node, CUgraphNode from);
/* Orders nodes behind their dependencies; CUDA_ERROR_INVALID_VALUE: there is a cycle. */
SL_MUST_CHECK CUresult sl_graph_sort(CUgraph graph);
/* Has it, or a graph within it, a node of this type? */
bool sl_graph_has(const struct CUgraph_st *graph, CUgraphNodeType type);
/* A copy of a template, or NULL. */
struct sl_op *sl_op_copy(const struct sl_op *from);

/* nodes.c -------------------------------------------------------------------------------------- */

/* Makes a node's work from parameters. Returns alloc's address and an adopted child in *params. */
SL_MUST_CHECK CUresult sl_payload_make(CUgraphNodeParams *params, struct sl_payload *out);
void sl_payload_free(struct sl_payload *does);
SL_MUST_CHECK bool sl_payload_copy(struct sl_payload *to, const struct sl_payload *from);
/* The node's parameters; pointers in them are valid until the node changes. */
void sl_node_params(CUgraphNode node, CUgraphNodeParams *out);
/* New parameters for a node of the same type. */
SL_MUST_CHECK CUresult sl_node_set(CUgraphNode node, const CUgraphNodeParams *params);
/* The type of node an operation becomes when it is captured. */
CUgraphNodeType sl_node_type_of(const struct sl_op *op);

/* params.c: makes a node with dependencies. */
SL_MUST_CHECK CUresult sl_node_add(CUgraphNode *out, CUgraph graph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
	CUgraphNodeParams *params);

/* exec.c: changes the copy of a node in an instantiated graph. */
SL_MUST_CHECK CUresult sl_exec_set(
	CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *params);

/* user.c */
SL_MUST_CHECK bool sl_users_copy(CUgraph to, const struct CUgraph_st *from);
/* Gives the graph's references back once the stream has reached seq; stream NULL: at once. */
void sl_users_drop(CUgraph graph, CUstream after, uint64_t seq);

/* capture.c: an instantiated graph launched into a capture is a child graph there. */
bool sl_capture_child(CUstream stream, CUgraph child, CUresult *result);

#endif
