/*
 * settle - see settle.h
 */
#include "runtime/contexts/settle.h"
#include "runtime/contexts/capture.h"
#include "runtime/contexts/sticky.h"
#include "runtime/real/real.h"

static bool is_gone(CUresult r)
{
	return r == CUDA_ERROR_INVALID_CONTEXT || r == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* The outcome of waiting in the current context. A broken context fails every call; an error of a
 * single call says nothing about the work. */
static int classify(CUresult r)
{
	if (r == CUDA_SUCCESS || is_gone(r))
		return SL_SETTLED;
	if (r >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
		r <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
		return SL_SETTLE_CAPTURING;
	if (sl_sticky_is(r) && sl_sticky_is(sl_real.cuStreamQuery(CU_STREAM_LEGACY)))
		return SL_SETTLE_BROKEN;
	return SL_SETTLE_FAILED;
}

int sl_settle_context(CUcontext ctx, CUresult *result)
{
	CUcontext current = NULL;
	bool pushed = false;
	int r = SL_SETTLE_FAILED;

	if (!sl_capture_sync_begin())
		return SL_SETTLE_CAPTURING;
	*result = sl_real.cuCtxGetCurrent(&current);
	if (*result == CUDA_SUCCESS && current != ctx) {
		*result = sl_real.cuCtxPushCurrent_v2(ctx);
		pushed = *result == CUDA_SUCCESS;
		r = is_gone(*result) ? SL_SETTLED : SL_SETTLE_FAILED;
	}
	if (*result == CUDA_SUCCESS) {
		*result = sl_sticky_note(sl_real.cuCtxSynchronize());
		r = classify(*result);
	}
	if (pushed)
		(void)sl_real.cuCtxPopCurrent_v2(&current);
	sl_capture_sync_end();
	return r;
}

int sl_settle(const struct sl_space *space, CUresult *result)
{
	return sl_settle_context(space->ctx, result);
}
