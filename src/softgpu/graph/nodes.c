/*
 * nodes - a node's work, from and to the parameters of the interface
 *
 * Work is kept as a template of the operation that a launch submits; capture provides it in that
 * form, and the parameters of a captured node are read from it. All kinds of parameters are
 * CUgraphNodeParams here, so the calls for one kind and for any kind share their code.
 */
#include "softgpu/graph/internal.h"

#include "softgpu/memory/copy.h"
#include "softgpu/memory/external.h"

#include <stdlib.h>
#include <string.h>

/* Making -------------------------------------------------------------------------------------- */

static CUresult make_kernel(const CUDA_KERNEL_NODE_PARAMS *p, struct sl_payload *out)
{
	struct sl_shape shape = {{p->gridDimX, p->gridDimY, p->gridDimZ},
		{p->blockDimX, p->blockDimY, p->blockDimZ}, p->sharedMemBytes};

	/* Kernels of libraries are functions here. */
	return sl_launch_op(p->func ? p->func : (CUfunction)p->kern, &shape,
		p->kernelParams, p->extra, &out->op);
}

static CUresult make_copy(const CUDA_MEMCPY3D *p, struct sl_payload *out)
{
	struct sl_copy c;
	bool unified;
	CUresult r = sl_copy_plan(p, &c, &unified);

	if (r == CUDA_SUCCESS)
		r = sl_copy_ends(&c, unified, NULL, NULL);
	if (r != CUDA_SUCCESS)
		return r;
	out->op = sl_op_new(SL_OP_COPY);
	out->box = malloc(sizeof(*out->box));
	if (!out->op || !out->box)
		return CUDA_ERROR_OUT_OF_MEMORY;
	out->op->copy = c;
	*out->box = *p;
	return CUDA_SUCCESS;
}

static CUresult make_set(const CUDA_MEMSET_NODE_PARAMS_v2 *p, struct sl_payload *out)
{
	enum sl_place place = sl_space_place(p->dst, 1, NULL);

	if ((p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4) ||
		p->dst % p->elementSize || !p->width || !p->height ||
		(p->height > 1 && p->pitch < p->width * p->elementSize) ||
		place == SL_PLACE_NOWHERE || place == SL_PLACE_PAGEABLE)
		return CUDA_ERROR_INVALID_VALUE;
	out->op = sl_op_new(SL_OP_SET);
	if (!out->op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	out->op->set = (struct sl_set){
		p->dst, p->value, p->elementSize, p->width, p->height, p->pitch};
	return CUDA_SUCCESS;
}

static CUresult make_host(const CUDA_HOST_NODE_PARAMS *p, struct sl_payload *out)
{
	CHECK_OUT(p->fn);
	out->op = sl_op_new(SL_OP_HOST);
	if (!out->op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	out->op->host.fn = p->fn;
	out->op->host.data = p->userData;
	return CUDA_SUCCESS;
}

static CUresult make_child(CUgraph child, bool take_over, struct sl_payload *out)
{
	if (!sl_graph_ok(child) || child->is_child)
		return CUDA_ERROR_INVALID_VALUE;
	/* A graph with memory can be in one place only. */
	if (!take_over && (sl_graph_has(child, CU_GRAPH_NODE_TYPE_MEM_ALLOC) ||
				  sl_graph_has(child, CU_GRAPH_NODE_TYPE_MEM_FREE)))
		return CUDA_ERROR_NOT_SUPPORTED;
	out->child = take_over ? child : sl_graph_copy(child);
	if (!out->child)
		return CUDA_ERROR_OUT_OF_MEMORY;
	out->child->is_child = true;
	return CUDA_SUCCESS;
}

static CUresult make_event(CUevent e, struct sl_payload *out)
{
	if (!sl_object_is(e, SL_MAGIC_EVENT))
		return CUDA_ERROR_INVALID_VALUE;
	sl_object_ref(e);
	out->event = e;
	return CUDA_SUCCESS;
}

static CUresult make_free(CUdeviceptr at, struct sl_payload *out)
{
	out->memory = sl_graph_mem_find(at);
	return out->memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult make_alloc(CUDA_MEM_ALLOC_NODE_PARAMS *p, struct sl_payload *out)
{
	CUDA_MEM_ALLOC_NODE_PARAMS made;
	CUresult r = sl_graph_mem_new(p, &out->memory);

	if (r == CUDA_SUCCESS) {
		sl_graph_mem_params(out->memory, &made);
		p->dptr = made.dptr;
	}
	return r;
}

static CUresult make_any(CUgraphNodeParams *p, struct sl_payload *out)
{
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: return make_kernel(&p->kernel, out);
	case CU_GRAPH_NODE_TYPE_MEMCPY: return make_copy(&p->memcpy.copyParams, out);
	case CU_GRAPH_NODE_TYPE_MEMSET: return make_set(&p->memset, out);
	case CU_GRAPH_NODE_TYPE_HOST: return make_host(&p->host, out);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return make_child(p->graph.graph, p->graph.ownership == 1, out);
	case CU_GRAPH_NODE_TYPE_EMPTY: return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return make_event(p->eventWait.event, out);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return make_event(p->eventRecord.event, out);
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
		return sl_semaphores_op(p->extSemSignal.extSemArray,
			p->extSemSignal.paramsArray, p->extSemSignal.numExtSems, false,
			&out->op);
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
		return sl_semaphores_op(p->extSemWait.extSemArray,
			p->extSemWait.paramsArray, p->extSemWait.numExtSems, true,
			&out->op);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return make_alloc(&p->alloc, out);
	case CU_GRAPH_NODE_TYPE_MEM_FREE: return make_free(p->free.dptr, out);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return sl_values_op(
			p->memOp.paramArray, p->memOp.count, p->memOp.flags, &out->op);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL: return CUDA_ERROR_NOT_SUPPORTED;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult sl_payload_make(CUgraphNodeParams *params, struct sl_payload *out)
{
	CUresult r;

	*out = (struct sl_payload){0};
	r = make_any(params, out);
	if (r != CUDA_SUCCESS)
		sl_payload_free(out);
	return r;
}

void sl_payload_free(struct sl_payload *does)
{
	sl_op_free(does->op);
	free(does->box);
	sl_object_unref(does->event);
	sl_graph_drop(does->child);
	sl_graph_mem_unref(does->memory);
	*does = (struct sl_payload){0};
}

bool sl_payload_copy(struct sl_payload *to, const struct sl_payload *from)
{
	*to = (struct sl_payload){.event = from->event, .memory = from->memory};
	if (to->event)
		sl_object_ref(to->event);
	sl_graph_mem_ref(to->memory);
	if (from->op)
		to->op = sl_op_copy(from->op);
	if (from->box && (to->box = malloc(sizeof(*to->box))))
		*to->box = *from->box;
	if (from->child && (to->child = sl_graph_copy(from->child)))
		to->child->is_child = true;
	if (!from->op == !to->op && !from->box == !to->box && !from->child == !to->child)
		return true;
	sl_payload_free(to);
	return false;
}

CUgraphNodeType sl_node_type_of(const struct sl_op *op)
{
	switch (op->kind) {
	case SL_OP_KERNEL: return CU_GRAPH_NODE_TYPE_KERNEL;
	case SL_OP_COPY: return CU_GRAPH_NODE_TYPE_MEMCPY;
	case SL_OP_SET: return CU_GRAPH_NODE_TYPE_MEMSET;
	case SL_OP_HOST: return CU_GRAPH_NODE_TYPE_HOST;
	case SL_OP_VALUE: return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
	case SL_OP_CALL: return sl_semaphores_type(op->call);
	default: return CU_GRAPH_NODE_TYPE_EMPTY;
	}
}

/* Reading ------------------------------------------------------------------------------------- */

static void read_kernel(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *out)
{
	CUfunction f = n->does.op->kernel.function;
	struct sl_cp_launch *l = n->does.op->kernel.launch;

	for (unsigned i = 0; i < f->info.param_count; i++)
		n->param[i] = l->params + f->info.param_at[i];
	*out = (CUDA_KERNEL_NODE_PARAMS){.func = f,
		.gridDimX = l->grid[0],
		.gridDimY = l->grid[1],
		.gridDimZ = l->grid[2],
		.blockDimX = l->block[0],
		.blockDimY = l->block[1],
		.blockDimZ = l->block[2],
		.sharedMemBytes = l->shared_bytes,
		.kernelParams = n->param,
		.ctx = n->ctx};
}

/* A captured copy, described by addresses. */
static void read_copy(const struct sl_copy *c, CUDA_MEMCPY3D *out)
{
	*out = (CUDA_MEMCPY3D){
		.srcMemoryType = c->src_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
		.srcHost = c->src_host ? (const void *)(uintptr_t)c->src : NULL,
		.srcDevice = c->src_host ? 0 : c->src,
		.srcPitch = c->src_pitch ? c->src_pitch : c->width,
		.srcHeight = c->src_pitch ? c->src_slice / c->src_pitch : c->rows,
		.dstMemoryType = c->dst_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
		.dstHost = c->dst_host ? (void *)(uintptr_t)c->dst : NULL,
		.dstDevice = c->dst_host ? 0 : c->dst,
		.dstPitch = c->dst_pitch ? c->dst_pitch : c->width,
		.dstHeight = c->dst_pitch ? c->dst_slice / c->dst_pitch : c->rows,
		.WidthInBytes = c->width,
		.Height = c->rows,
		.Depth = c->slices,
	};
}

static void read_work(CUgraphNode n, CUgraphNodeParams *out)
{
	const struct sl_op *op = n->does.op;

	switch (op->kind) {
	case SL_OP_KERNEL: read_kernel(n, &out->kernel); break;
	case SL_OP_COPY:
		out->memcpy.copyCtx = n->ctx;
		if (n->does.box)
			out->memcpy.copyParams = *n->does.box;
		else
			read_copy(&op->copy, &out->memcpy.copyParams);
		break;
	case SL_OP_SET:
		out->memset = (CUDA_MEMSET_NODE_PARAMS_v2){op->set.dst, op->set.pitch,
			op->set.value, op->set.size, op->set.width, op->set.rows, n->ctx};
		break;
	case SL_OP_HOST:
		out->host.fn = op->host.fn;
		out->host.userData = op->host.data;
		break;
	case SL_OP_VALUE:
		out->memOp = (CUDA_BATCH_MEM_OP_NODE_PARAMS){
			n->ctx, op->value.count, op->value.list, 0};
		break;
	case SL_OP_CALL: sl_semaphores_params(op->call, &out->extSemSignal); break;
	default: break;
	}
}

void sl_node_params(CUgraphNode n, CUgraphNodeParams *out)
{
	*out = (CUgraphNodeParams){.type = n->type};
	if (n->does.op)
		read_work(n, out);
	else if (n->does.child)
		out->graph.graph = n->does.child;
	else if (n->does.event)
		out->eventWait.event = n->does.event;
	else if (n->does.memory)
		sl_graph_mem_params(n->does.memory, &out->alloc);
	if (n->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
		CUdeviceptr at = out->alloc.dptr;

		*out = (CUgraphNodeParams){.type = n->type, .free = {at}};
	}
}

CUresult sl_node_set(CUgraphNode n, const CUgraphNodeParams *params)
{
	CUgraphNodeParams p = *params;
	struct sl_payload fresh;
	CUresult r;

	if (p.type != n->type)
		return CUDA_ERROR_INVALID_VALUE;
	if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
		n->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		return CUDA_ERROR_INVALID_VALUE;
	r = sl_payload_make(&p, &fresh);
	if (r != CUDA_SUCCESS)
		return r;
	sl_payload_free(&n->does);
	n->does = fresh;
	return CUDA_SUCCESS;
}
