/*
 * usable - see usable.h
 */
#include "runtime/contexts/usable.h"
#include "runtime/contexts/prove.h"
#include "runtime/contexts/space.h"
#include "runtime/real/real.h"
#include "runtime/session/device.h"

size_t sl_usable_list(
	const struct sl_gpu *gpu, CUcontext out[SL_USABLE_MAX], bool *broken)
{
	size_t count = 0;
	bool any_broken = false;

	sl_books_lock();
	sl_list_foreach (link, &sl_spaces) {
		const struct sl_space *space = SL_LIST_ENTRY(link, struct sl_space, link);

		if ((gpu && space->gpu != gpu) || space->ending)
			continue;
		if (__atomic_load_n(&space->broken, __ATOMIC_RELAXED))
			any_broken = true;
		else if (count < SL_USABLE_MAX)
			out[count++] = space->ctx;
	}
	sl_books_unlock();
	if (broken)
		*broken = any_broken;
	return count + sl_prove_contexts(out + count, SL_USABLE_MAX - count);
}

bool sl_usable_is_on(CUcontext ctx, const struct sl_gpu *gpu)
{
	CUcontext popped;
	CUdevice dev = -1;
	bool found;

	if (sl_real.cuCtxPushCurrent_v2(ctx) != CUDA_SUCCESS)
		return false;
	found = sl_real.cuCtxGetDevice(&dev) == CUDA_SUCCESS && sl_device_gpu(dev) == gpu;
	(void)sl_real.cuCtxPopCurrent_v2(&popped);
	return found;
}
