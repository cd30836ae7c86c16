/*
 * green - parts of a GPU, and contexts that use only a part
 *
 * A green context shares the memory of the primary context, which it retains; its own context has
 * its own streams and allocations. Kernels run on the host, so a part is only a number of
 * multiprocessors, and the rules by which parts can be made.
 */
#include "softgpu/driver/api.h"

#include <stdlib.h>
#include <string.h>

#define SMS       ((unsigned)SL_DRV_SMS)
#define SMS_LEAST 2u /* a part is a multiple of it */

struct CUdevResourceDesc_st {
	struct sl_object o;
	unsigned sms;
};

struct CUgreenCtx_st {
	struct sl_object o;
	CUcontext ctx;
	unsigned sms;
	uint64_t id;
};

static CUdevResource resource_of(unsigned sms)
{
	CUdevResource r = {.type = CU_DEV_RESOURCE_TYPE_SM};

	r.sm.smCount = sms;
	r.sm.minSmPartitionSize = SMS_LEAST;
	r.sm.smCoscheduledAlignment = SMS_LEAST;
	return r;
}

static CUresult tell(unsigned sms, CUdevResource *out, CUdevResourceType type)
{
	CHECK_OUT(out);
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	*out = resource_of(sms);
	return CUDA_SUCCESS;
}

static bool green_ok(CUgreenCtx g)
{
	return sl_object_is(g, SL_MAGIC_GREEN);
}

/* Resources ------------------------------------------------------------------------------------ */

CUresult cuDeviceGetDevResource(
	CUdevice dev, CUdevResource *resource, CUdevResourceType type)
{
	SL_ENTER(cuDeviceGetDevResource);
	CHECK_DEVICE(dev);
	return tell(SMS, resource, type);
}

/*
 * As many equal groups as asked for or possible, of at least min_count multiprocessors. Without an
 * array only their number is returned.
 */
CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *groups,
	const CUdevResource *input, CUdevResource *rest, unsigned int flags,
	unsigned int min_count)
{
	unsigned each, most;

	SL_ENTER(cuDevSmResourceSplitByCount);
	if (!groups || !input || flags & ~3u)
		return CUDA_ERROR_INVALID_VALUE;
	if (input->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	each = (unsigned)sl_round_up(sl_max_u64(min_count, SMS_LEAST), SMS_LEAST);
	most = input->sm.smCount / each;
	if (!most)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	if (!result || *groups > most)
		*groups = most;
	if (!*groups)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; result && i < *groups; i++)
		result[i] = resource_of(each);
	if (rest) {
		*rest = resource_of(input->sm.smCount - each * *groups);
		if (!rest->sm.smCount)
			rest->type = CU_DEV_RESOURCE_TYPE_INVALID;
	}
	return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(
	CUdevResourceDesc *desc, CUdevResource *resources, unsigned int count)
{
	CUdevResourceDesc d;
	unsigned sms = 0;

	SL_ENTER(cuDevResourceGenerateDesc);
	if (!desc || !resources || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM)
			return CUDA_ERROR_INVALID_RESOURCE_TYPE;
		sms += resources[i].sm.smCount;
	}
	if (!sms || sms > SMS)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	d = sl_object_new(SL_MAGIC_DESC, sizeof(*d));
	if (!d)
		return CUDA_ERROR_OUT_OF_MEMORY;
	d->sms = sms;
	*desc = d; /* no call of the interface frees it */
	return CUDA_SUCCESS;
}

/* Green contexts ------------------------------------------------------------------------------- */

CUresult cuGreenCtxCreate(
	CUgreenCtx *ctx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	CUgreenCtx g;
	CUresult r;

	SL_ENTER(cuGreenCtxCreate);
	if (!ctx || !sl_object_is(desc, SL_MAGIC_DESC) ||
		flags != CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	CHECK_DEVICE(dev);
	g = sl_object_new(SL_MAGIC_GREEN, sizeof(*g));
	if (!g)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sl_ctx_new_green(g, dev, &g->ctx);
	if (r != CUDA_SUCCESS) {
		sl_object_kill(g);
		sl_object_unref(g);
		return r;
	}
	g->sms = desc->sms;
	g->id = sl_drv_next_id();
	*ctx = g;
	return r;
}

CUresult cuGreenCtxDestroy(CUgreenCtx ctx)
{
	SL_ENTER(cuGreenCtxDestroy);
	if (!green_ok(ctx) || !sl_object_kill(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	sl_ctx_free_green(ctx->ctx);
	sl_object_unref(ctx);
	return CUDA_SUCCESS;
}

CUresult cuCtxFromGreenCtx(CUcontext *ctx, CUgreenCtx green)
{
	SL_ENTER(cuCtxFromGreenCtx);
	CHECK_OUT(ctx);
	if (!green_ok(green))
		return CUDA_ERROR_INVALID_CONTEXT;
	*ctx = green->ctx;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetDevResource(
	CUgreenCtx ctx, CUdevResource *resource, CUdevResourceType type)
{
	SL_ENTER(cuGreenCtxGetDevResource);
	return green_ok(ctx) ? tell(ctx->sms, resource, type)
			     : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuGreenCtxGetId(CUgreenCtx ctx, unsigned long long *id)
{
	SL_ENTER(cuGreenCtxGetId);
	CHECK_OUT(id);
	if (!green_ok(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	*id = ctx->id;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(
	CUstream *stream, CUgreenCtx ctx, unsigned int flags, int priority)
{
	SL_ENTER(cuGreenCtxStreamCreate);
	if (!green_ok(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	/* Its streams never synchronise with the legacy one. */
	if (!stream || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	return sl_stream_new(ctx->ctx, flags, priority, stream);
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx ctx, CUevent event)
{
	SL_ENTER(cuGreenCtxRecordEvent);
	if (!green_ok(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	return sl_object_is(event, SL_MAGIC_EVENT) ? sl_ctx_record_event(ctx->ctx, event)
						   : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx ctx, CUevent event)
{
	SL_ENTER(cuGreenCtxWaitEvent);
	if (!green_ok(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	return sl_object_is(event, SL_MAGIC_EVENT) ? sl_ctx_wait_event(ctx->ctx, event)
						   : CUDA_ERROR_INVALID_HANDLE;
}

/* The part of the GPU that a context or stream has */

static unsigned sms_of(const struct CUctx_st *ctx)
{
	return ctx->green ? ctx->green->sms : SMS;
}

CUresult cuCtxGetDevResource(
	CUcontext ctx, CUdevResource *resource, CUdevResourceType type)
{
	SL_ENTER(cuCtxGetDevResource);
	if (!ctx)
		ctx = sl_ctx_current();
	return sl_object_is(ctx, SL_MAGIC_CTX) ? tell(sms_of(ctx), resource, type)
					       : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx *ctx)
{
	CUstream s;

	SL_ENTER(cuStreamGetGreenCtx);
	CHECK_OUT(ctx);
	s = sl_stream_of(stream, false);
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	*ctx = s->ctx->green;
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamGetCtx_v2(CUstream handle, CUcontext *ctx, CUgreenCtx *green)
{
	CUstream s = sl_stream_of(handle, false);

	CHECK_OUT(ctx && green);
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	/* One of the two. */
	*green = s->ctx->green;
	*ctx = s->ctx->green ? NULL : s->ctx;
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamGetDevResource(
	CUstream handle, CUdevResource *resource, CUdevResourceType type)
{
	CUstream s = sl_stream_of(handle, false);

	return s ? tell(sms_of(s->ctx), resource, type) : CUDA_ERROR_INVALID_HANDLE;
}

SL_TWIN(cuStreamGetCtx_v2, (CUstream stream, CUcontext *ctx, CUgreenCtx *green),
	(SL_PLAIN(stream), ctx, green), (SL_PER_THREAD(stream), ctx, green))
SL_TWIN(cuStreamGetDevResource,
	(CUstream stream, CUdevResource *resource, CUdevResourceType type),
	(SL_PLAIN(stream), resource, type), (SL_PER_THREAD(stream), resource, type))
