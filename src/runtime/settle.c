/*
 * settle - see settle.h
 */
#include "runtime/settle.h"
#include "runtime/capture.h"
#include "runtime/hooks.h"
#include "runtime/sticky.h"

static int classify(CUresult r)
{
	if (r == CUDA_SUCCESS || r == CUDA_ERROR_INVALID_CONTEXT ||
		r == CUDA_ERROR_CONTEXT_IS_DESTROYED)
		return SL_SETTLED;
	if (r >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
		r <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
		return SL_SETTLE_CAPTURING;
	return SL_SETTLE_BROKEN;
}

int sl_settle_context(CUcontext ctx, CUresult *result)
{
	CUcontext current = NULL;
	bool pushed = false;

	if (!sl_capture_sync_begin())
		return SL_SETTLE_CAPTURING;
	*result = sl_real.cuCtxGetCurrent(&current);
	if (*result == CUDA_SUCCESS && current != ctx) {
		*result = sl_real.cuCtxPushCurrent_v2(ctx);
		pushed = *result == CUDA_SUCCESS;
	}
	if (*result == CUDA_SUCCESS)
		*result = sl_sticky_note(sl_real.cuCtxSynchronize());
	if (pushed)
		(void)sl_real.cuCtxPopCurrent_v2(&current);
	sl_capture_sync_end();
	return classify(*result);
}

int sl_settle(const struct sl_space *space, CUresult *result)
{
	return sl_settle_context(space->ctx, result);
}
