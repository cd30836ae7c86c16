/*
 * context - start and contexts
 *
 * cuInit joins the daemon: it is the first call every CUDA program makes, and from then on totals
 * must be right. A context makes hidden bytes, which the daemon is asked to measure; its creation
 * waits for that, so that the program's first demands meet right books. Destroying a context
 * ends its regions and slabs with it.
 */
#include "runtime/capture.h"
#include "runtime/device.h"
#include "runtime/hidden.h"
#include "runtime/hooks.h"
#include "runtime/memory.h"
#include "runtime/mode.h"

/* The daemon answers within 200 ms (messages.def). */
#define MEASURE_WAIT_NS (250 * SL_MS)

/* Primary contexts as seen at their last retain. */
static CUcontext primaries[SL_GPUS_MAX];

static bool have_say(void)
{
	return sl_mode_is_active() && sl_session_is_joined();
}

SL_EXPORT CUresult cuInit(unsigned int flags)
{
	CUresult r = sl_real.cuInit(flags);

	return r == CUDA_SUCCESS && sl_mode_is_active() ? sl_session_join() : r;
}

/* --- creating ------------------------------------------------------------------------------ */

static CUresult created(CUdevice dev, CUresult result)
{
	struct sl_gpu *gpu;

	if (result != CUDA_SUCCESS || !have_say())
		return result;
	gpu = sl_device_gpu(dev);
	if (gpu)
		sl_session_measure(gpu, MEASURE_WAIT_NS);
	return result;
}

SL_EXPORT CUresult cuCtxCreate(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	return created(dev, sl_real.cuCtxCreate(ctx, flags, dev));
}

SL_EXPORT CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	return created(dev, sl_real.cuCtxCreate_v2(ctx, flags, dev));
}

SL_EXPORT CUresult cuCtxCreate_v3(CUcontext *ctx, CUexecAffinityParam *params, int count,
	unsigned int flags, CUdevice dev)
{
	return created(dev, sl_real.cuCtxCreate_v3(ctx, params, count, flags, dev));
}

SL_EXPORT CUresult cuCtxCreate_v4(
	CUcontext *ctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	return created(dev, sl_real.cuCtxCreate_v4(ctx, params, flags, dev));
}

static bool primary_is_active(CUdevice dev)
{
	unsigned int flags;
	int active = 0;

	return sl_real.cuDevicePrimaryCtxGetState(dev, &flags, &active) == CUDA_SUCCESS &&
	       active;
}

SL_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
	bool active = !have_say() || primary_is_active(dev);
	CUresult r = sl_real.cuDevicePrimaryCtxRetain(ctx, dev);

	if (r == CUDA_SUCCESS && dev >= 0 && dev < SL_GPUS_MAX)
		__atomic_store_n(&primaries[dev], *ctx, __ATOMIC_RELAXED);
	return active ? r : created(dev, r);
}

/* --- destroying ---------------------------------------------------------------------------- */

static CUcontext primary_of(CUdevice dev)
{
	return dev >= 0 && dev < SL_GPUS_MAX
		       ? __atomic_load_n(&primaries[dev], __ATOMIC_RELAXED)
		       : NULL;
}

/* Memory goes after its context, never before: the driver may refuse (a primary context cannot be
 * destroyed, only released), and then all must be as it was; and it waits for the context's
 * work, which may wait for something that another context's thread has yet to do, so nobody
 * may be held back meanwhile. */
static void destroyed(CUcontext ctx, struct sl_space *space, bool gone)
{
	if (!gone) {
		sl_memory_unhold(space);
		return;
	}
	sl_capture_drop_context(ctx);
	sl_memory_drop(space);
	sl_hidden_touch();
}

#define DESTROY(symbol, params, args, ctx_of)                    \
	SL_EXPORT CUresult symbol params                         \
	{                                                        \
		CUcontext dying = ctx_of;                        \
		struct sl_space *space;                          \
		CUresult result;                                 \
                                                                 \
		if (!sl_mode_is_active() || !dying)              \
			return sl_real.symbol args;              \
		space = sl_memory_hold(dying, true);             \
		result = sl_real.symbol args;                    \
		destroyed(dying, space, result == CUDA_SUCCESS); \
		return result;                                   \
	}
/* The last reference to a context may or may not have been given up: the driver knows. */
#define RELEASE(symbol)                                                                 \
	SL_EXPORT CUresult symbol(CUdevice dev)                                         \
	{                                                                               \
		CUcontext ctx = primary_of(dev);                                        \
		struct sl_space *space;                                                 \
		CUresult result;                                                        \
                                                                                        \
		if (!sl_mode_is_active())                                               \
			return sl_real.symbol(dev);                                     \
		space = sl_memory_hold(ctx, false);                                     \
		result = sl_real.symbol(dev);                                           \
		destroyed(                                                              \
			ctx, space, result == CUDA_SUCCESS && !primary_is_active(dev)); \
		return result;                                                          \
	}

DESTROY(cuCtxDestroy, (CUcontext ctx), (ctx), ctx)
DESTROY(cuCtxDestroy_v2, (CUcontext ctx), (ctx), ctx)
DESTROY(cuDevicePrimaryCtxReset, (CUdevice dev), (dev), primary_of(dev))
DESTROY(cuDevicePrimaryCtxReset_v2, (CUdevice dev), (dev), primary_of(dev))
RELEASE(cuDevicePrimaryCtxRelease)
RELEASE(cuDevicePrimaryCtxRelease_v2)

SL_EXPORT CUresult cuCtxDetach(CUcontext ctx)
{
	struct sl_space *space;
	unsigned int version;
	CUresult r;

	if (!sl_mode_is_active())
		return sl_real.cuCtxDetach(ctx);
	space = sl_memory_hold(ctx, false);
	r = sl_real.cuCtxDetach(ctx);
	destroyed(ctx, space,
		r == CUDA_SUCCESS &&
			sl_real.cuCtxGetApiVersion(ctx, &version) != CUDA_SUCCESS);
	return r;
}
