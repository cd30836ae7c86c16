/*
 * context - start and contexts
 *
 * cuInit joins the daemon: it is the first call of every CUDA program, and from then on totals must
 * be right. A context never leaves its GPU, so the daemon is asked before the first context on a
 * GPU. A context makes hidden bytes. Its creation waits until the daemon has measured them, so that
 * the program's first demands find correct books. Destroying a context ends its regions and slabs
 * with it.
 */
#include "runtime/contexts/capture.h"
#include "runtime/contexts/prove.h"
#include "runtime/contexts/settle.h"
#include "runtime/contexts/stream.h"
#include "runtime/driver/charge.h"
#include "runtime/driver/pool.h"
#include "runtime/gate/control.h"
#include "runtime/gate/door.h"
#include "runtime/hash/hash.h"
#include "runtime/memory/memory.h"
#include "runtime/memory/oom.h"
#include "runtime/memory/peer.h"
#include "runtime/memory/sweep.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"
#include "runtime/session/demand.h"
#include "runtime/session/device.h"
#include "runtime/session/measure.h"
#include "runtime/session/session.h"
#include "runtime/session/visible.h"
#include "runtime/share/import.h"
#include "runtime/store/store.h"

#include "base/log.h"

#include <errno.h>

/* The daemon answers within 200 ms (messages.def). */
#define MEASURE_WAIT_NS (250 * SL_MS)

/* Primary contexts as seen at their last retain, and their retain counts. */
static CUcontext primaries[SL_GPUS_MAX];
static int retained[SL_GPUS_MAX];

static bool have_say(void)
{
	return sl_mode_is_active() && sl_session_is_joined();
}

SL_EXPORT CUresult cuInit(unsigned int flags)
{
	SL_DOOR;
	char *before;
	CUresult r;

	if (!sl_mode_is_active())
		return sl_real.cuInit(flags);
	/* The daemon answers while the driver starts, if nothing depends on the answer. */
	sl_session_join_soon();
	before = sl_visible_begin();
	r = sl_real.cuInit(flags);
	sl_visible_end(before);
	return r == CUDA_SUCCESS ? sl_session_join() : r;
}

/* --- creating ------------------------------------------------------------------------------ */

/* The demand for this process's first context on a GPU. */
struct asked {
	bool granted;
	struct sl_demand demand;
};

static void answered(struct asked *asked)
{
	if (asked->granted)
		sl_demand_commit(&asked->demand, 0);
}

/* May wait as long as a demand does. */
static CUresult ask_daemon(struct asked *asked, struct sl_gpu *gpu)
{
	int outcome = sl_demand_ask_as(&asked->demand, gpu, 1, SL_ASK_CONTEXT, NULL);

	asked->granted = outcome == SL_DEMAND_GRANTED;
	if (outcome == SL_DEMAND_REFUSED)
		return sl_session_join();
	return asked->granted ? CUDA_SUCCESS : asked->demand.denial;
}

/* CUDA_SUCCESS: make the context, then call answered(). */
static CUresult ask(struct asked *asked, CUdevice dev)
{
	struct sl_gpu *gpu = have_say() ? sl_device_gpu(dev) : NULL;
	CUresult r = CUDA_SUCCESS;
	int saved_errno = errno;

	asked->granted = false;
	if (!have_say() || (gpu && __atomic_load_n(&gpu->has_context, __ATOMIC_RELAXED)))
		return r;
	if (gpu)
		r = ask_daemon(asked, gpu);
	if (r == CUDA_SUCCESS && sl_device_is_left(dev)) {
		answered(asked);
		sl_warning(
			"no context on device %d: the workload has moved away from that "
			"GPU, and this process had none yet; start the program anew",
			(int)dev);
		r = CUDA_ERROR_DEVICE_UNAVAILABLE;
	}
	errno = saved_errno;
	return r;
}

static CUresult created(CUcontext *ctx, CUdevice dev, CUresult result)
{
	struct sl_gpu *gpu;

	if (result != CUDA_SUCCESS || !have_say())
		return result;
	gpu = sl_device_gpu(dev);
	sl_prove_created(*ctx, gpu ? dev : -1);
	if (gpu)
		sl_session_measure(gpu, MEASURE_WAIT_NS);
	return result;
}

#define CREATE(symbol, params, args)                            \
	SL_EXPORT CUresult symbol params                        \
	{                                                       \
		SL_DOOR;                                        \
		struct asked asked;                             \
		CUresult result = ask(&asked, dev);             \
                                                                \
		if (result != CUDA_SUCCESS)                     \
			return result;                          \
		result = sl_real.symbol args;                   \
		SL_OOM_RETRY(result, dev, sl_real.symbol args); \
		result = created(ctx, dev, result);             \
		answered(&asked);                               \
		return result;                                  \
	}

CREATE(cuCtxCreate, (CUcontext * ctx, unsigned int flags, CUdevice dev),
	(ctx, flags, dev))
CREATE(cuCtxCreate_v2, (CUcontext * ctx, unsigned int flags, CUdevice dev),
	(ctx, flags, dev))
CREATE(cuCtxCreate_v3,
	(CUcontext * ctx, CUexecAffinityParam *params, int count, unsigned int flags,
		CUdevice dev),
	(ctx, params, count, flags, dev))
CREATE(cuCtxCreate_v4,
	(CUcontext * ctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev),
	(ctx, params, flags, dev))

/* A green context has an ordinary context, which holds its memory and work. */
static CUcontext context_of(CUgreenCtx green)
{
	CUcontext ctx = NULL;

	return green && have_say() &&
			       sl_real.cuCtxFromGreenCtx(&ctx, green) == CUDA_SUCCESS
		       ? ctx
		       : NULL;
}

SL_EXPORT CUresult cuGreenCtxCreate(
	CUgreenCtx *green, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	SL_DOOR;
	CUresult result = sl_real.cuGreenCtxCreate(green, desc, dev, flags);
	CUcontext ctx = NULL;

	SL_OOM_RETRY(result, dev, sl_real.cuGreenCtxCreate(green, desc, dev, flags));
	if (result == CUDA_SUCCESS)
		ctx = context_of(*green);
	return ctx ? created(&ctx, dev, result) : sl_measure_after(result);
}

SL_EXPORT CUresult cuCtxFromGreenCtx(CUcontext *ctx, CUgreenCtx green)
{
	SL_DOOR;
	CUresult result = sl_real.cuCtxFromGreenCtx(ctx, green);

	if (result == CUDA_SUCCESS && have_say())
		sl_prove_created(*ctx, -1);
	return result;
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
	SL_DOOR;
	bool active = !have_say() || primary_is_active(dev);
	struct asked asked = {.granted = false};
	CUresult r = active ? CUDA_SUCCESS : ask(&asked, dev);

	if (r != CUDA_SUCCESS)
		return r;
	r = sl_real.cuDevicePrimaryCtxRetain(ctx, dev);
	SL_OOM_RETRY(r, dev, sl_real.cuDevicePrimaryCtxRetain(ctx, dev));
	if (r == CUDA_SUCCESS && dev >= 0 && dev < SL_GPUS_MAX) {
		__atomic_store_n(&primaries[dev], *ctx, __ATOMIC_RELAXED);
		__atomic_fetch_add(&retained[dev], 1, __ATOMIC_RELAXED);
	}
	if (!active)
		r = created(ctx, dev, r);
	answered(&asked);
	return r;
}

/* --- destroying ---------------------------------------------------------------------------- */

static CUcontext primary_of(CUdevice dev)
{
	return dev >= 0 && dev < SL_GPUS_MAX
		       ? __atomic_load_n(&primaries[dev], __ATOMIC_RELAXED)
		       : NULL;
}

/* NULL if a release is not the last one: such a release does not wait, so neither may we. */
static CUcontext last_of(CUdevice dev)
{
	CUcontext ctx = primary_of(dev);

	return ctx && __atomic_load_n(&retained[dev], __ATOMIC_RELAXED) <= 1 ? ctx : NULL;
}

/* Called before a driver call that may end ctx. `dying` is ctx, or NULL if the call certainly does
 * not end it. From here on none of our threads uses `dying`. HOLD_STILL follows. */
static struct sl_space *hold(CUcontext dying, CUcontext ctx, bool hide)
{
	struct sl_space *space;

	sl_prove_hold(dying);
	sl_stream_hold_context(ctx ? ctx : dying);
	space = sl_memory_hold(ctx, hide);
	/* The hasher's thread may be about to enter the control lock. */
	if (dying)
		sl_hasher_drop_context(dying);
	return space;
}

/* From here on no memory moves until `destroyed`. An eviction proves beforehand that no context has
 * work left, so the driver does not wait in the destruction while the eviction waits for us. This
 * is a macro, in the frame of the program's call: `destroyed` calls functions that enter again, and
 * they must lie deeper in the stack (control.c). */
#define HOLD_STILL(dying)                             \
	do {                                          \
		sl_control_enter();                   \
		if (dying)                            \
			sl_store_drop_context(dying); \
	} while (0)

/* Drops the context's memory after the driver's call, never before: the driver may refuse (a
 * primary context cannot be destroyed, only released), and then all must be as before. In its call
 * the driver also waits for the context's work. That may depend on a thread of another context, so
 * no thread is blocked meanwhile. */
static void destroyed(CUcontext ctx, struct sl_space *space, bool gone)
{
	sl_stream_end_context(ctx, gone);
	if (!gone) {
		sl_prove_hash(ctx);
		sl_memory_unhold(space);
		sl_control_leave();
		return;
	}
	sl_capture_drop_context(ctx);
	sl_sweep_if_owed();
	sl_peer_drop_context(ctx);
	sl_memory_drop(space);
	sl_import_drop_context(ctx);
	sl_charge_drop_context(ctx);
	sl_control_leave();
	sl_pool_look_at_all();
	(void)sl_passed_trim();
	sl_measure_soon();
}

/* dev_of: the device whose primary context it is, or -1. */
#define DESTROY(symbol, params, args, ctx_of, dev_of)            \
	SL_EXPORT CUresult symbol params                         \
	{                                                        \
		SL_DOOR;                                         \
		CUcontext dying = ctx_of;                        \
		struct sl_objects_taken *kept;                   \
		struct sl_space *space;                          \
		CUresult result;                                 \
                                                                 \
		if (!sl_mode_is_active() || !dying)              \
			return sl_real.symbol args;              \
		space = hold(dying, dying, true);                \
		HOLD_STILL(dying);                               \
		kept = sl_charge_hold(dying);                    \
		result = sl_real.symbol args;                    \
		sl_charge_unhold(kept, result == CUDA_SUCCESS);  \
		sl_prove_unhold(dying, result == CUDA_SUCCESS);  \
		if (result == CUDA_SUCCESS)                      \
			sl_pool_drop_device(dev_of);             \
		destroyed(dying, space, result == CUDA_SUCCESS); \
		return result;                                   \
	}
/* Only the driver knows whether the last reference to the context was given up. */
#define RELEASE(symbol)                                                          \
	SL_EXPORT CUresult symbol(CUdevice dev)                                  \
	{                                                                        \
		SL_DOOR;                                                         \
		CUcontext ctx = primary_of(dev), last = last_of(dev);            \
		struct sl_space *space;                                          \
		bool gone;                                                       \
		CUresult result;                                                 \
                                                                                 \
		if (!sl_mode_is_active())                                        \
			return sl_real.symbol(dev);                              \
		space = hold(last, ctx, false);                                  \
		HOLD_STILL(last);                                                \
		result = sl_real.symbol(dev);                                    \
		gone = result == CUDA_SUCCESS && !primary_is_active(dev);        \
		if (result == CUDA_SUCCESS && ctx)                               \
			__atomic_fetch_sub(&retained[dev], 1, __ATOMIC_RELAXED); \
		sl_prove_unhold(last, gone);                                     \
		if (gone)                                                        \
			sl_pool_drop_device(dev);                                \
		destroyed(ctx, space, gone);                                     \
		return result;                                                   \
	}

DESTROY(cuCtxDestroy, (CUcontext ctx), (ctx), ctx, -1)
DESTROY(cuCtxDestroy_v2, (CUcontext ctx), (ctx), ctx, -1)
DESTROY(cuDevicePrimaryCtxReset, (CUdevice dev), (dev), primary_of(dev), dev)
DESTROY(cuDevicePrimaryCtxReset_v2, (CUdevice dev), (dev), primary_of(dev), dev)
RELEASE(cuDevicePrimaryCtxRelease)
RELEASE(cuDevicePrimaryCtxRelease_v2)

SL_EXPORT CUresult cuCtxDetach(CUcontext ctx)
{
	SL_DOOR;
	struct sl_space *space;
	unsigned int version;
	bool gone;
	CUresult r;

	if (!sl_mode_is_active())
		return sl_real.cuCtxDetach(ctx);
	space = hold(ctx, ctx, false);
	HOLD_STILL(ctx);
	r = sl_real.cuCtxDetach(ctx);
	gone = r == CUDA_SUCCESS &&
	       sl_real.cuCtxGetApiVersion(ctx, &version) != CUDA_SUCCESS;
	sl_prove_unhold(ctx, gone);
	destroyed(ctx, space, gone);
	return r;
}

/* No manual says whether memory allocated in a green context ends with it, and its primary context
 * lives on. So regions stay until they are freed. Objects of the driver that remain are measured as
 * hidden. */
SL_EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
	SL_DOOR;
	CUcontext ctx = context_of(green);
	struct sl_objects_taken *kept;
	CUresult result;
	bool settled;

	if (!ctx)
		return sl_real.cuGreenCtxDestroy(green);
	/* The driver does not wait for the work of its streams, and detaches them. */
	settled = sl_settle_context(ctx, &result) == SL_SETTLED;
	(void)hold(ctx, NULL, false);
	HOLD_STILL(ctx);
	kept = sl_charge_hold(ctx);
	result = sl_real.cuGreenCtxDestroy(green);
	sl_charge_unhold(kept, result == CUDA_SUCCESS);
	sl_stream_end_context(ctx, settled && result == CUDA_SUCCESS);
	sl_prove_unhold(ctx, result == CUDA_SUCCESS);
	sl_control_leave();
	if (result == CUDA_SUCCESS)
		sl_measure_soon();
	return result;
}
