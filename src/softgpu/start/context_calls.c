/*
 * context_calls - further calls on contexts, and events of a whole context
 *
 * An event of a whole context is recorded in a new stream that waits for every other stream of the
 * context. While one of these captures, that is not possible, and the call spoils the captures.
 */
#include "softgpu/driver/api.h"

#include <stdlib.h>

static bool context_ok(CUcontext ctx)
{
	return sl_object_is(ctx, SL_MAGIC_CTX) && atomic_load(&ctx->usable);
}

CUresult cuCtxCreate_v4(
	CUcontext *ctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	SL_ENTER(cuCtxCreate_v4);
	/* Neither MPS nor graphics contexts are modelled. */
	if (params && (params->numExecAffinityParams || params->cigParams))
		return CUDA_ERROR_NOT_SUPPORTED;
	return sl_ctx_create(ctx, flags, dev);
}

CUresult cuCtxAttach(CUcontext *ctx, unsigned int flags)
{
	SL_ENTER(cuCtxAttach);
	if (!ctx || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*ctx = sl_ctx_current();
	atomic_fetch_add(&(*ctx)->attached, 1);
	return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx)
{
	unsigned count;

	SL_ENTER(cuCtxDetach);
	if (!context_ok(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	count = atomic_load(&ctx->attached);
	while (count && !atomic_compare_exchange_weak(&ctx->attached, &count, count - 1))
		;
	return count ? CUDA_SUCCESS : cuCtxDestroy_v2(ctx);
}

CUresult cuCtxPushCurrent(CUcontext ctx)
{
	SL_ENTER(cuCtxPushCurrent);
	return cuCtxPushCurrent_v2(ctx);
}

CUresult cuCtxPopCurrent(CUcontext *ctx)
{
	SL_ENTER(cuCtxPopCurrent);
	return cuCtxPopCurrent_v2(ctx);
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	SL_ENTER(cuCtxSynchronize_v2);
	if (!ctx)
		ctx = sl_ctx_current();
	return context_ok(ctx) ? sl_ctx_sync(ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetDevice_v2(CUdevice *dev, CUcontext ctx)
{
	SL_ENTER(cuCtxGetDevice_v2);
	CHECK_OUT(dev);
	if (!ctx)
		ctx = sl_ctx_current();
	if (!context_ok(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	*dev = ctx->device;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam *param, CUexecAffinityType type)
{
	SL_ENTER(cuCtxGetExecAffinity);
	CHECK_OUT(param);
	(void)type; /* for clients of MPS */
	return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
	SL_ENTER(cuCtxGetSharedMemConfig);
	CHECK_OUT(config);
	*config =
		CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE; /* the only one since Maxwell */
	return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	SL_ENTER(cuCtxSetSharedMemConfig);
	return (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

/* Events of all work --------------------------------------------------------------------------- */

/* Makes s wait for all that was submitted to the context so far. */
static CUresult wait_for_all(CUcontext ctx, CUstream s)
{
	struct sl_op *op = sl_op_new(SL_OP_WAIT);
	bool ok = op;

	pthread_mutex_lock(&ctx->lock);
	sl_list_foreach (link, &ctx->streams) {
		CUstream other = SL_LIST_ENTRY(link, struct CUstream_st, o.link);

		ok = ok && (other == s || sl_op_wait_add(op, other));
	}
	pthread_mutex_unlock(&ctx->lock);
	if (ok)
		return sl_stream_submit(s, op, NULL);
	sl_op_free(op);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sl_ctx_record_event(CUcontext ctx, CUevent event)
{
	CUresult r = sl_capture_check_context(ctx);
	CUstream s;

	if (r == CUDA_SUCCESS && event->ctx->device != ctx->device)
		r = CUDA_ERROR_INVALID_HANDLE;
	if (r == CUDA_SUCCESS)
		r = sl_stream_new(ctx, CU_STREAM_NON_BLOCKING, 0, &s);
	if (r != CUDA_SUCCESS)
		return r;
	r = wait_for_all(ctx, s);
	if (r == CUDA_SUCCESS)
		r = sl_event_record(event, s);
	sl_stream_close(s);
	return r;
}

/* Streams made later are not told: the event holds back only earlier ones. */
CUresult sl_ctx_wait_event(CUcontext ctx, CUevent event)
{
	CUresult r = sl_capture_check_context(ctx);
	CUstream *list = NULL;
	size_t count = 0;

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&ctx->lock);
	sl_list_foreach (link, &ctx->streams)
		count++;
	list = malloc((count + 1) * sizeof(CUstream));
	count = 0;
	if (list)
		sl_list_foreach (link, &ctx->streams) {
			list[count] = SL_LIST_ENTRY(link, struct CUstream_st, o.link);
			sl_object_ref(list[count++]);
		}
	pthread_mutex_unlock(&ctx->lock);
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < count; i++) {
		if (r == CUDA_SUCCESS && sl_object_is(list[i], SL_MAGIC_STREAM))
			r = sl_stream_wait_event(list[i], event);
		sl_object_unref(list[i]);
	}
	free(list);
	return r;
}

CUresult cuCtxRecordEvent(CUcontext ctx, CUevent event)
{
	SL_ENTER(cuCtxRecordEvent);
	if (!context_ok(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	return sl_object_is(event, SL_MAGIC_EVENT) ? sl_ctx_record_event(ctx, event)
						   : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuCtxWaitEvent(CUcontext ctx, CUevent event)
{
	SL_ENTER(cuCtxWaitEvent);
	if (!context_ok(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	return sl_object_is(event, SL_MAGIC_EVENT) ? sl_ctx_wait_event(ctx, event)
						   : CUDA_ERROR_INVALID_HANDLE;
}

/* There is no profiler; programs that start one go on without it. */
CUresult cuProfilerStart(void)
{
	SL_ENTER(cuProfilerStart);
	return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void)
{
	SL_ENTER(cuProfilerStop);
	return CUDA_SUCCESS;
}
