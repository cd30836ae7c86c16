/*
 * supply - see supply.h
 *
 * The only place that combines a demand, the driver's calls and the answer to the daemon.
 */
#include "runtime/memory/supply.h"
#include "runtime/gate/control.h"
#include "runtime/session/demand.h"
#include "runtime/session/session.h"

#include "base/log.h"
#include "base/step.h"

static CUresult create_granted(struct sl_demand *demand, struct sl_space *space,
	uint64_t bytes, struct sl_backing *out, int *outcome)
{
	uint64_t stuck_bytes;
	CUresult r;

	while (*outcome == SL_DEMAND_GRANTED) {
		sl_control_enter();
		r = sl_backing_create(out, space->dev, bytes, &stuck_bytes);
		if (r == CUDA_ERROR_OUT_OF_MEMORY && stuck_bytes == 0 &&
			!(demand->flags & SL_ASK_NOW)) {
			sl_control_leave();
			/* Our own hoarded memory may be the obstacle. */
			sl_supply_on_slow();
			*outcome = sl_demand_failed(demand, r);
			continue;
		}
		sl_step(C_BACKED);
		sl_demand_commit(demand, r == CUDA_SUCCESS ? bytes : stuck_bytes);
		sl_control_leave();
		sl_step(C_COMMITTED);
		return r;
	}
	return demand->denial;
}

CUresult sl_supply_obtain(struct sl_space *space, uint64_t bytes, struct sl_backing *out)
{
	struct sl_demand demand;
	CUresult r;

	sl_session_chunk(sl_backing_chunk_bytes(bytes));
	for (bool again = false;; again = true) {
		uint32_t frees = sl_session_frees();
		int outcome =
			sl_demand_ask(&demand, space->gpu, bytes, sl_supply_on_slow);

		r = create_granted(&demand, space, bytes, out, &outcome);
		if (outcome == SL_DEMAND_REFUSED)
			return sl_session_join();
		if (outcome == SL_DEMAND_GRANTED || again ||
			r != CUDA_ERROR_OUT_OF_MEMORY || !sl_supply_on_denial(frees))
			return r;
	}
}

CUresult sl_supply_obtain_now(
	struct sl_space *space, uint64_t bytes, struct sl_backing *out)
{
	struct sl_demand demand;
	CUresult r;
	int outcome;

	sl_session_chunk(sl_backing_chunk_bytes(bytes));
	outcome = sl_demand_ask_as(&demand, space->gpu, bytes, SL_ASK_NOW, NULL);
	r = create_granted(&demand, space, bytes, out, &outcome);
	return outcome == SL_DEMAND_REFUSED ? sl_session_join() : r;
}

CUresult sl_supply_release(struct sl_gpu *gpu, struct sl_backing *backing)
{
	struct sl_released released;
	CUresult r;

	sl_control_enter();
	r = sl_backing_destroy(backing, &released);
	if (released.bytes)
		sl_session_freed(gpu, released.bytes);
	if (released.evicted_bytes)
		sl_session_freed_evicted(gpu, released.evicted_bytes);
	sl_control_leave();
	return r;
}

void sl_supply_discard(struct sl_gpu *gpu, struct sl_backing *backing)
{
	CUresult r = sl_supply_release(gpu, backing);

	if (r != CUDA_SUCCESS)
		sl_error_log(
			"memory stays charged: the driver kept it with error %d", (int)r);
}
