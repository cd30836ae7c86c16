/*
 * pool_trim - gives back the unused reserve of pools; see pool.h
 */
#include "runtime/contexts/capture.h"
#include "runtime/contexts/prove.h"
#include "runtime/contexts/settle.h"
#include "runtime/driver/graph.h"
#include "runtime/driver/internal.h"
#include "runtime/driver/pool.h"
#include "runtime/process/futex.h"
#include "runtime/real/real.h"

/* Pause before repeating a refused proof. */
#define ASK_AGAIN_NS (10 * SL_MS)

/* Waits for the context's work, at most until end_ns; work that lasts longer keeps the memory it
 * uses. A context that is being destroyed refuses the proof, which is then requested again; at
 * end_ns the context is skipped. False: nothing may be trimmed. */
static bool await_work(CUcontext ctx, sl_ns end_ns)
{
	static const uint32_t never;
	struct sl_proof proof;
	CUresult ignored;

	while (sl_prove_idle(end_ns, &never) == SL_PROVE_REFUSED) {
		sl_prove_look(&proof);
		if (proof.no_thread)
			return sl_settle_context(ctx, &ignored) == SL_SETTLED;
		if (proof.failed || sl_capture_is_open())
			return false;
		if (sl_clock_now() >= end_ns)
			return true;
		sl_futex_pause(ASK_AGAIN_NS);
	}
	return true;
}

bool sl_pool_give_back(sl_ns end_ns)
{
	uint64_t before = sl_pool_all_charged();
	CUcontext ctx = NULL;

	if (before == 0 || sl_real.cuCtxGetCurrent(&ctx) != CUDA_SUCCESS || !ctx ||
		!await_work(ctx, end_ns))
		return false;
	for (size_t n = sl_pool_count_charged(); n-- > 0;) {
		struct sl_pool *pool = sl_pool_nth_charged(n);

		if (!pool)
			continue;
		if (pool->of_graphs &&
			sl_real.cuDeviceGraphMemTrim(pool->dev) == CUDA_SUCCESS)
			sl_graph_trimmed();
		else if (!pool->of_graphs)
			(void)sl_real.cuMemPoolTrimTo(pool->handle, 0);
		sl_pool_look(pool);
		sl_pool_leave(pool);
	}
	return sl_pool_all_charged() < before;
}
