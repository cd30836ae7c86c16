/*
 * op_node - graphs made node by node
 *
 * Nodes are added in a chain, each after the one before. So the result of a launch does not depend
 * on which of two nodes was faster. Graphs that come from a capture get no more nodes.
 */
#include "ops.h"

#include <string.h>

static struct storm_graph *chain_of(struct storm_lane *l, uint32_t slot)
{
	return slot < STORM_GRAPH_SLOTS && l->graph[slot].live && l->graph[slot].is_chain
		       ? &l->graph[slot]
		       : NULL;
}

/* The node to follow: the last one, if there is any. */
#define AFTER(g) ((g)->last ? &(g)->last : NULL), ((g)->last != NULL)

static void added(struct storm_graph *g, CUresult r, CUgraphNode node)
{
	if (r == CUDA_SUCCESS)
		g->last = node;
}

void storm_op_graph_add(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g = chain_of(l, a[0]);
	CUgraphNode node = NULL;

	if (g)
		added(g, CALL(l, cuGraphAddEmptyNode, &node, g->handle, AFTER(g)), node);
}

void storm_op_node_memset(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g = chain_of(l, a[0]);
	struct storm_buffer *b = storm_buffer(l, a[1]);
	CUDA_MEMSET_NODE_PARAMS p = {
		.value = l->step->dice & 0xff, .elementSize = 1, .height = 1};
	CUgraphNode node = NULL;
	size_t offset, bytes;
	CUresult r;

	if (!g || !b || storm_on_host(b))
		return;
	storm_window(b, a[2], a[3], 16384, &offset, &bytes);
	p.dst = b->at + offset;
	p.width = bytes;
	if (l->step->dice >> 8 % 32 == 0)
		p.elementSize = 3;
	r = CALL(l, cuGraphAddMemsetNode, &node, g->handle, AFTER(g), &p, l->primary);
	if (r == CUDA_SUCCESS)
		storm_uses_add(l, &g->uses, b);
	added(g, r, node);
}

void storm_op_node_memcpy(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g = chain_of(l, a[0]);
	struct storm_buffer *to = storm_buffer(l, a[1]), *from = storm_buffer(l, a[2]);
	CUDA_MEMCPY3D c = {.Height = 1, .Depth = 1};
	CUgraphNode node = NULL;
	size_t off_to, off_from, n_to, n_from;
	CUresult r;

	if (!g || !to || !from || to == from || from->tainted)
		return;
	storm_window(to, a[3], a[4], 16384, &off_to, &n_to);
	storm_window(from, a[4] >> 2, a[3] >> 1, 16384, &off_from, &n_from);
	c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	c.srcDevice = from->at + off_from;
	c.dstDevice = to->at + off_to;
	c.WidthInBytes = n_to < n_from ? n_to : n_from;
	r = CALL(l, cuGraphAddMemcpyNode, &node, g->handle, AFTER(g), &c, l->primary);
	if (r == CUDA_SUCCESS) {
		storm_uses_add(l, &g->uses, to);
		storm_uses_add(l, &g->uses, from);
	}
	added(g, r, node);
}

void storm_op_node_kernel(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g = chain_of(l, a[0]);
	struct storm_buffer *b = storm_buffer(l, a[1]);
	uint64_t count = 64, stride = 1;
	uint32_t seed = l->step->dice;
	CUgraphNode node = NULL;
	CUdeviceptr at;
	void *args[] = {&at, &count, &stride, &seed};
	CUDA_KERNEL_NODE_PARAMS p = {.func = l->fill,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = a[2] % 64 ? 64 : 0,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = args};
	CUresult r;

	if (!g || !b || storm_on_host(b) || b->bytes < 512)
		return;
	at = (b->at + a[2] % (b->bytes - 260)) & ~3ull;
	r = CALL(l, cuGraphAddKernelNode_v2, &node, g->handle, AFTER(g), &p);
	if (r == CUDA_SUCCESS)
		storm_uses_add(l, &g->uses, b);
	added(g, r, node);
}

static void nothing(void *data)
{
}

void storm_op_node_host(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g = chain_of(l, a[0]);
	CUDA_HOST_NODE_PARAMS p = {.fn = a[1] % 16 ? nothing : NULL};
	CUgraphNode node = NULL;

	if (g)
		added(g, CALL(l, cuGraphAddHostNode, &node, g->handle, AFTER(g), &p),
			node);
}

void storm_op_node_child(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g = chain_of(l, a[0]);
	struct storm_graph *child =
		a[1] < STORM_GRAPH_SLOTS && l->graph[a[1]].live ? &l->graph[a[1]] : NULL;
	CUgraphNode node = NULL;
	CUresult r;

	/* Twice the size each time: a chain of such steps would never end. */
	if (!g || !child || child == g || child->weight + g->weight > 200)
		return;
	r = CALL(l, cuGraphAddChildGraphNode, &node, g->handle, AFTER(g), child->handle);
	if (r != CUDA_SUCCESS)
		return;
	g->last = node;
	g->weight += child->weight + 1;
	for (unsigned i = 0; i < child->uses.count && i < USES_MAX; i++)
		storm_uses_add(l, &g->uses, &l->buffer[child->uses.use[i].buffer]);
	if (child->uses.count > USES_MAX || !storm_uses_live(l, &child->uses))
		g->uses.count = USES_MAX + 1; /* never launched */
}

/* Memory of the graph's own: obtained, set, copied out, given back. */
void storm_op_node_memory(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g = chain_of(l, a[0]);
	struct storm_buffer *b = storm_buffer(l, a[1]);
	CUDA_MEM_ALLOC_NODE_PARAMS p = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
				.id = a[3] % 32 ? l->device : 44}},
		.bytesize = a[2] % (256 << 10)};
	CUDA_MEMSET_NODE_PARAMS set = {
		.value = l->step->dice & 0xff, .elementSize = 1, .height = 1};
	CUDA_MEMCPY3D c = {.Height = 1, .Depth = 1};
	CUgraphNode node = NULL;

	if (!g || !b || storm_on_host(b))
		return;
	if (CALL(l, cuGraphAddMemAllocNode, &node, g->handle, AFTER(g), &p) !=
		CUDA_SUCCESS)
		return;
	g->last = node;
	set.dst = p.dptr;
	set.width = p.bytesize < b->bytes ? p.bytesize : b->bytes;
	added(g,
		CALL(l, cuGraphAddMemsetNode, &node, g->handle, AFTER(g), &set,
			l->primary),
		node);
	c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	c.srcDevice = p.dptr;
	c.dstDevice = b->at;
	c.WidthInBytes = set.width;
	if (CALL(l, cuGraphAddMemcpyNode, &node, g->handle, AFTER(g), &c, l->primary) ==
		CUDA_SUCCESS) {
		storm_uses_add(l, &g->uses, b);
		g->last = node;
	}
	added(g, CALL(l, cuGraphAddMemFreeNode, &node, g->handle, AFTER(g), p.dptr),
		node);
}

void storm_op_node_ask(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g =
		a[0] < STORM_GRAPH_SLOTS && l->graph[a[0]].live ? &l->graph[a[0]] : NULL;
	cuuint64_t value = 0;
	size_t count = 0;

	if (!g)
		return;
	switch (a[1] % 4) {
	case 0:
		if (CALL(l, cuGraphGetRootNodes, g->handle, NULL, &count) == CUDA_SUCCESS)
			storm_note(l, "roots", count);
		break;
	case 1:
		if (CALL(l, cuGraphGetEdges, g->handle, NULL, NULL, &count) ==
			CUDA_SUCCESS)
			storm_note(l, "edges", count);
		break;
	case 2:
		if (CALL(l, cuDeviceGetGraphMemAttribute, l->device,
			    (CUgraphMem_attribute)(a[1] >> 8 & 7),
			    &value) == CUDA_SUCCESS &&
			l->shape == STORM_SHAPE_SOLO)
			storm_note(l, "answered", 1);
		break;
	case 3: CALL(l, cuDeviceGraphMemTrim, a[1] & 256 ? l->device : 40); break;
	}
}
