/*
 * op_late - rare calls: multicast objects, nodes by one call, batches, a context's reset
 *
 * Most make what they need, use it and give it back within one step.
 */
#include "ops.h"

#include <string.h>

#define GRAIN ((size_t)2 << 20)

/* Multicast ----------------------------------------------------------------------------------- */

/* A handle bound to an object, and the place where it is mapped. */
struct bound {
	CUmemGenericAllocationHandle object, memory;
	CUdeviceptr at, all; /* of the memory; of the object */
};

static CUdeviceptr map(
	struct storm_lane *l, CUmemGenericAllocationHandle handle, size_t bytes)
{
	CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, l->device},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr at = 0;

	if (CALL(l, cuMemAddressReserve, &at, bytes, 0, 0, 0) != CUDA_SUCCESS)
		return 0;
	CALL(l, cuMemMap, at, bytes, 0, handle, 0);
	CALL(l, cuMemSetAccess, at, bytes, &access, 1);
	return at;
}

static void unmap(struct storm_lane *l, CUdeviceptr at, size_t bytes)
{
	if (!at)
		return;
	CALL(l, cuMemUnmap, at, bytes);
	CALL(l, cuMemAddressFree, at, bytes);
}

static void bind(struct storm_lane *l, struct bound *b, uint32_t n)
{
	switch (n % 4) {
	case 0: CALL(l, cuMulticastBindMem, b->object, 0, b->memory, 0, GRAIN, 0); break;
	case 1:
		CALL(l, cuMulticastBindMem_v2, b->object, l->device, 0, b->memory, 0,
			GRAIN, 0);
		break;
	case 2: CALL(l, cuMulticastBindAddr, b->object, 0, b->at, GRAIN, 0); break;
	case 3:
		CALL(l, cuMulticastBindAddr_v2, b->object, l->device, 0, b->at, GRAIN, 0);
		break;
	}
	/* Over a bound part, and beyond its end. */
	CALL(l, cuMulticastBindMem, b->object, 0, b->memory, 0, GRAIN, 0);
	CALL(l, cuMulticastBindMem, b->object, 64 * GRAIN, b->memory, 0, GRAIN, 0);
}

/* Data written to the object is read where the memory itself is mapped. */
static void write_through(struct storm_lane *l, struct bound *b)
{
	if (CALL(l, cuMemsetD32_v2, b->all, l->step->dice, 1024) != CUDA_SUCCESS)
		return;
	CALL_0(l, cuCtxSynchronize);
	if (CALL(l, cuMemcpyDtoH_v2, l->readback, b->at, 4096) == CUDA_SUCCESS)
		storm_note_bytes(l, l->readback, 4096);
}

static void use_object(struct storm_lane *l, struct bound *b, uint32_t n)
{
	CALL(l, cuMulticastAddDevice, b->object, l->device);
	CALL(l, cuMulticastAddDevice, b->object, l->device); /* again: refused */
	b->at = map(l, b->memory, GRAIN);
	bind(l, b, n);
	b->all = n & 16 ? map(l, b->object, 2 * GRAIN) : 0;
	if (b->all && b->at)
		write_through(l, b);
	if (n & 32) /* bound memory outlives its handle */
		CALL(l, cuMemRelease, b->memory);
	unmap(l, b->all, 2 * GRAIN);
	if (n & 64)
		CALL(l, cuMulticastUnbind, b->object, l->device, 0, GRAIN);
	CALL(l, cuMulticastUnbind, b->object, l->device, GRAIN, GRAIN); /* nothing */
	unmap(l, b->at, GRAIN);
	if (!(n & 32))
		CALL(l, cuMemRelease, b->memory);
}

void storm_op_multicast(struct storm_lane *l, const uint32_t *a)
{
	CUmulticastObjectProp prop = {
		.numDevices = a[0] & 0x700 ? 1 : 99, /* more than there are */
		.size = 2 * GRAIN};
	CUmemAllocationProp one = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, l->device}};
	struct bound b = {0};
	size_t grain = 0;

	if (l->captures || l->context || l->broken)
		return;
	if (CALL(l, cuMulticastGetGranularity, &grain, &prop,
		    CU_MULTICAST_GRANULARITY_MINIMUM) == CUDA_SUCCESS)
		storm_note(l, "grain", grain);
	if (CALL(l, cuMulticastCreate, &b.object, &prop) != CUDA_SUCCESS)
		return;
	if (CALL(l, cuMemCreate, &b.memory, GRAIN, &one, 0) == CUDA_SUCCESS)
		use_object(l, &b, a[0]);
	CALL(l, cuMemRelease, b.object);
}

/* Graphs -------------------------------------------------------------------------------------- */

static CUresult add_node(
	struct storm_lane *l, struct storm_graph *g, CUgraphNodeParams *p)
{
	CUgraphNode *after = g->last ? &g->last : NULL, node = NULL;
	size_t count = g->last != NULL;
	CUresult r;

	r = l->step->dice & 1
		    ? CALL(l, cuGraphAddNode, &node, g->handle, after, count, p)
		    : CALL(l, cuGraphAddNode_v2, &node, g->handle, after, NULL, count, p);
	if (r == CUDA_SUCCESS)
		g->last = node;
	return r;
}

/* Memory of the graph's own, set and given back; or a set of a buffer; or nothing. */
void storm_op_node_any(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g =
		a[0] < STORM_GRAPH_SLOTS && l->graph[a[0]].live && l->graph[a[0]].is_chain
			? &l->graph[a[0]]
			: NULL;
	struct storm_buffer *b = storm_buffer(l, a[1]);
	CUgraphNodeParams alloc = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC},
			  give = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE},
			  set = {.type = CU_GRAPH_NODE_TYPE_MEMSET},
			  none = {.type = CU_GRAPH_NODE_TYPE_EMPTY};

	if (!g || !b || storm_on_host(b))
		return;
	alloc.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	alloc.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	alloc.alloc.poolProps.location.id = a[2] % 32 == 1 ? 44 : l->device;
	alloc.alloc.bytesize = a[2] >> 8 & 0x3ffff;
	set.memset = (CUDA_MEMSET_NODE_PARAMS_v2){.value = l->step->dice & 0xff,
		.elementSize = 1,
		.height = 1,
		.ctx = l->primary};
	switch (a[2] % 3) {
	case 0: add_node(l, g, &none); break;
	case 1:
		if (add_node(l, g, &alloc) != CUDA_SUCCESS)
			break;
		set.memset.dst = give.free.dptr = alloc.alloc.dptr;
		set.memset.width = alloc.alloc.bytesize;
		add_node(l, g, &set);
		add_node(l, g, &give);
		break;
	case 2:
		set.memset.dst = b->at;
		set.memset.width = b->bytes < 4096 ? b->bytes : 4096;
		if (add_node(l, g, &set) == CUDA_SUCCESS)
			storm_uses_add(l, &g->uses, b);
		break;
	}
}

/* A capture whose nodes go into an existing graph. */
void storm_op_capture_to_graph(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g = &l->graph[a[0] % STORM_GRAPH_SLOTS];
	struct storm_buffer *b = storm_buffer(l, a[1]);
	CUgraph ended = NULL;
	size_t nodes = 0;
	CUstream s;

	if (g->live || !b || storm_on_host(b) || b->bytes < 64 || l->captures ||
		l->context || l->broken || a[2] == 0 || !storm_stream(l, a[2], &s) ||
		l->stream[a[2]].context)
		return;
	memset(g, 0, sizeof(*g));
	g->live = CALL(l, cuGraphCreate, &g->handle, 0) == CUDA_SUCCESS;
	if (!g->live || CALL_S(l, cuStreamBeginCaptureToGraph, s, g->handle, NULL, NULL,
				0, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS)
		return;
	if (CALL(l, cuMemsetD8Async, b->at, (unsigned char)a[3], 64, s) == CUDA_SUCCESS)
		storm_uses_add(l, &g->uses, b);
	if (CALL_S(l, cuStreamEndCapture, s, &ended) == CUDA_SUCCESS)
		storm_note(l, "the same graph", ended == g->handle);
	if (CALL(l, cuGraphGetNodes, g->handle, NULL, &nodes) == CUDA_SUCCESS)
		storm_note(l, "nodes", nodes);
}

/* Copies -------------------------------------------------------------------------------------- */

static CUmemcpy3DOperand operand(CUdeviceptr at, size_t bytes)
{
	return (CUmemcpy3DOperand){.type = CU_MEMCPY_OPERAND_TYPE_POINTER,
		.op = {.ptr = {.ptr = at, .rowLength = bytes, .layerHeight = 1}}};
}

static void copy_as(struct storm_lane *l, CUdeviceptr to, CUdeviceptr from, size_t bytes,
	CUstream s, uint32_t n)
{
	CUDA_MEMCPY3D_BATCH_OP op = {.src = operand(from, bytes),
		.dst = operand(to, bytes),
		.extent = {bytes, 1, 1},
		.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	CUDA_MEMCPY3D_PEER box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = from,
		.srcContext = l->primary,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to,
		.dstContext = l->primary,
		.srcPitch = bytes,
		.dstPitch = bytes,
		.srcHeight = 1,
		.dstHeight = 1,
		.WidthInBytes = bytes,
		.Height = 1,
		.Depth = 1};
	size_t first = 0, failed = 0;

	switch (n % 5) {
	case 0: CALL_S(l, cuMemcpy3DBatchAsync, 1, &op, &failed, 0, s); break;
	case 1: CALL_S(l, cuMemcpy3DBatchAsync_v2, 1, &op, 0, s); break;
	case 2:
		CALL_S(l, cuMemcpyBatchAsync_v2, &to, &from, &bytes, 1, &how, &first, 1,
			s);
		break;
	case 3: CALL_S(l, cuMemcpy3DPeerAsync, &box, s); break;
	case 4: CALL_D(l, cuMemcpy3DPeer, &box); break;
	}
}

void storm_op_copy_late(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *to = storm_buffer(l, a[0]), *from = storm_buffer(l, a[1]);
	size_t off_to, off_from, n_to, n_from;
	bool sync = a[4] % 5 == 4;
	CUstream s;
	int slot;

	if (!to || !from || to == from || storm_on_host(to) || storm_on_host(from) ||
		to->context || from->context || l->context || l->captures ||
		!storm_stream(l, a[2], &s) || l->stream[a[2]].context)
		return;
	slot = storm_stream_slot(l, sync ? 0 : a[2]);
	storm_window(to, a[3], a[4], 16384, &off_to, &n_to);
	storm_window(from, a[4] >> 2, a[3] >> 1, 16384, &off_from, &n_from);
	if (!storm_touch(l, to, slot) || !storm_touch(l, from, slot))
		return;
	to->tainted |= from->tainted;
	copy_as(l, to->at + off_to, from->at + off_from, n_to < n_from ? n_to : n_from, s,
		a[4]);
}

/* Pools and contexts -------------------------------------------------------------------------- */

void storm_op_pool_location(struct storm_lane *l, const uint32_t *a)
{
	CUmemLocation where = {
		CU_MEM_LOCATION_TYPE_DEVICE, a[0] % 8 == 0 ? 77 : l->device};
	CUmemAllocationType type =
		a[0] % 16 == 1 ? (CUmemAllocationType)9 : CU_MEM_ALLOCATION_TYPE_PINNED;

	CUmemoryPool pool = NULL;
	CUresult r;

	if (a[0] & 0x100) {
		CALL(l, cuMemSetMemPool, &where, type, l->pool[0].handle);
		return;
	}
	r = a[0] & 0x200 ? CALL(l, cuMemGetDefaultMemPool, &pool, &where, type)
			 : CALL(l, cuMemGetMemPool, &pool, &where, type);
	if (r == CUDA_SUCCESS)
		storm_note(l, "the default", pool == l->pool[0].handle);
}

/* The other GPU's primary context, with memory in it, let go in one way or another. */
void storm_op_primary_end(struct storm_lane *l, const uint32_t *a)
{
	CUdevice other = l->device ? 0 : 1;
	CUcontext there = NULL;
	CUdeviceptr at = 0, base = 0;
	size_t bytes = 0;

	if (l->devices < 2 || l->captures || l->context || l->broken)
		return;
	storm_quiesce(l);
	if (CALL(l, cuDevicePrimaryCtxRetain, &there, other) != CUDA_SUCCESS ||
		CALL(l, cuCtxPushCurrent_v2, there) != CUDA_SUCCESS)
		return;
	if (CALL(l, cuMemAlloc_v2, &at, 1 + a[0] % (4 << 20)) == CUDA_SUCCESS)
		CALL(l, cuMemsetD8_v2, at, 1, 1);
	CALL(l, cuCtxPopCurrent_v2, &there);
	switch (a[1] % 4) {
	case 0: CALL(l, cuDevicePrimaryCtxReset, other); break;
	case 1: CALL(l, cuDevicePrimaryCtxReset_v2, other); break;
	default: CALL(l, cuMemFree_v2, at); break;
	}
	if (a[1] % 4 < 2)
		CALL(l, cuMemGetAddressRange_v2, &base, &bytes, at);
	if (a[1] & 8)
		CALL(l, cuDevicePrimaryCtxRelease, other);
	else
		CALL(l, cuDevicePrimaryCtxRelease_v2, other);
}
