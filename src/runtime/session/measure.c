/*
 * measure - see measure.h
 */
#include "runtime/session/measure.h"
#include "runtime/process/mode.h"
#include "runtime/process/wake.h"
#include "runtime/real/real.h"
#include "runtime/session/device.h"
#include "runtime/session/session.h"

#include <errno.h>

uint32_t sl_measure_due;

/* Notes that the current context's GPU must be measured. */
static void note_context(void)
{
	struct sl_gpu *gpu;
	CUdevice dev;

	if (!sl_real.cuCtxGetDevice || sl_real.cuCtxGetDevice(&dev) != CUDA_SUCCESS)
		return;
	gpu = sl_device_gpu(dev);
	if (gpu)
		__atomic_store_n(&gpu->has_context, true, __ATOMIC_RELAXED);
}

void sl_measure_soon(void)
{
	int saved_errno = errno;

	if (!sl_mode_is_active() || !sl_session_is_joined())
		return;
	note_context();
	/* If it is due already the agent has been woken. */
	if (!(__atomic_fetch_or(&sl_measure_due, SL_MEASURE_ALL, __ATOMIC_ACQ_REL) &
		    SL_MEASURE_FOR_AGENT))
		sl_wake_agent();
	errno = saved_errno;
}

void sl_measure_due_for_view(void)
{
	__atomic_fetch_or(&sl_measure_due, SL_MEASURE_FOR_VIEW, __ATOMIC_RELAXED);
}

bool sl_measure_take(uint32_t use)
{
	return (__atomic_load_n(&sl_measure_due, __ATOMIC_RELAXED) & use) &&
	       (__atomic_fetch_and(&sl_measure_due, ~use, __ATOMIC_RELAXED) & use);
}

void sl_measure_forget(void)
{
	sl_measure_due = 0;
}
