/*
 * copy_order - copies between two GPUs in the legacy stream
 *
 * Such a copy starts after all earlier work of both GPUs, and ends before all later work of both.
 * The legacy stream keeps that order within its own context. In addition the copy waits for the
 * blocking streams of the GPUs' other contexts, and their legacy streams wait for the copy.
 * Non-blocking streams are not ordered, as on one GPU.
 *
 * A driver knows the GPU of its own allocations. No manual promises the same for memory that a
 * program creates and maps, so copies from or to such memory are not ordered here.
 */
#include "softgpu/memory/copy.h"

#include <stdlib.h>

struct contexts {
	CUcontext *list; /* a reference each */
	size_t count;
};

/* The GPU of an end, or -1. by: as in struct sl_copy. */
static CUdevice device_of(uint64_t address, uint8_t by)
{
	struct sl_mapping m;

	if (by)
		return (CUdevice)by - 1;
	return sl_space_mapping(address, &m) && m.kind != SL_MAP_VMM && !m.is_host
		       ? m.device
		       : -1;
}

bool sl_copy_is_between(const struct sl_copy *c)
{
	CUdevice dst = device_of(c->dst, c->dst_by), src = device_of(c->src, c->src_by);

	return dst >= 0 && src >= 0 && dst != src;
}

static bool add_context(struct contexts *found, CUcontext ctx)
{
	CUcontext *more = realloc(found->list, (found->count + 1) * sizeof(*more));

	if (!more)
		return false;
	found->list = more;
	found->list[found->count++] = ctx;
	sl_object_ref(ctx);
	return true;
}

/* The contexts of the copy's two GPUs, without the one that it is submitted in. */
static bool find_contexts(const struct sl_copy *c, CUcontext own, struct contexts *found)
{
	CUdevice dst = device_of(c->dst, c->dst_by), src = device_of(c->src, c->src_by);
	bool enough = true;

	pthread_mutex_lock(&sl_drv.lock);
	sl_list_foreach (link, &sl_drv.contexts) {
		CUcontext ctx = SL_LIST_ENTRY(link, struct CUctx_st, o.link);

		if (enough && ctx != own && (ctx->device == dst || ctx->device == src))
			enough = add_context(found, ctx);
	}
	pthread_mutex_unlock(&sl_drv.lock);
	return enough;
}

/* As with any use of the legacy stream, a capture of a blocking stream forbids it. */
static CUresult check_captures(CUstream legacy, const struct contexts *others)
{
	CUresult r = sl_capture_check_stream(legacy);

	for (size_t i = 0; i < others->count && r == CUDA_SUCCESS; i++)
		r = sl_capture_check_stream(others->list[i]->legacy);
	return r;
}

/* Later work of the context waits for the copy. A destroyed context gets no more work. */
static void hold_back(CUcontext ctx, CUstream stream, uint64_t seq)
{
	struct sl_op *op = sl_op_new(SL_OP_WAIT);

	if (op)
		op->wait = malloc(sizeof(*op->wait));
	if (!op || !op->wait) {
		sl_op_free(op);
		sl_stream_wait(stream, seq);
		return;
	}
	op->wait[0] = (struct sl_wait_for){stream, seq};
	op->wait_count = 1;
	sl_object_ref(stream);
	(void)!sl_stream_submit(ctx->legacy, op, NULL);
}

static CUresult submit(
	CUstream legacy, struct sl_op *op, const struct contexts *others, uint64_t *seq)
{
	CUresult r = check_captures(legacy, others);

	for (size_t i = 0; i < others->count && r == CUDA_SUCCESS; i++)
		if (!sl_op_wait_context(op, others->list[i]))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r != CUDA_SUCCESS) {
		sl_op_free(op);
		return r;
	}
	r = sl_stream_submit(legacy, op, seq);
	for (size_t i = 0; i < others->count && r == CUDA_SUCCESS; i++)
		hold_back(others->list[i], legacy, *seq);
	return r;
}

CUresult sl_copy_between(CUstream legacy, struct sl_op *op, bool wait)
{
	struct contexts others = {NULL, 0};
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t seq = 0;

	sl_object_ref(legacy);
	if (find_contexts(&op->copy, legacy->ctx, &others))
		r = submit(legacy, op, &others, &seq);
	else
		sl_op_free(op);
	for (size_t i = 0; i < others.count; i++)
		sl_object_unref(others.list[i]);
	free(others.list);
	if (r == CUDA_SUCCESS && wait)
		r = sl_stream_wait(legacy, seq);
	sl_object_unref(legacy);
	return r;
}
