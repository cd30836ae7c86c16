/*
 * supply - see supply.h
 *
 * The one place where a demand, the driver's calls and the answer to the daemon come together.
 */
#include "runtime/memory/supply.h"
#include "runtime/session/demand.h"
#include "runtime/gate/control.h"
#include "runtime/memory/memory.h"
#include "runtime/driver/pool.h"
#include "runtime/memory/sweep.h"

#include "base/log.h"
#include "base/step.h"

/* What was freed is back when the work that may use it has ended. A driver would not have had it
 * either way: so work that lasts longer, or waits for what the caller is to do next, makes
 * out-of-memory final. */
#define GIVE_BACK_NS (10 * SL_S)

static bool is_hoarded(void)
{
	bool found = false;

	sl_books_lock();
	sl_list_foreach (link, &sl_spaces)
		found = found ||
			sl_space_hoards(SL_LIST_ENTRY(link, struct sl_space, link));
	sl_books_unlock();
	return found;
}

void sl_supply_give_back_soon(void)
{
	if (is_hoarded() || sl_passed_has_spare())
		sl_sweep_soon(true);
}

bool sl_supply_give_back_now(uint32_t frees)
{
	sl_ns end_ns = sl_clock_now() + GIVE_BACK_NS;
	bool hoarded = is_hoarded();

	if (hoarded)
		sl_sweep_until(end_ns);
	hoarded |= sl_pool_give_back(end_ns);
	hoarded |= sl_passed_trim();
	/* What another thread has in its hands is no longer hoarded, and not yet free. */
	sl_memory_await_flushes();
	return hoarded || sl_session_frees() != frees;
}

static CUresult create_granted(struct sl_demand *demand, struct sl_space *space,
	uint64_t bytes, struct sl_backing *out, int *outcome)
{
	uint64_t stuck_bytes;
	CUresult r;

	while (*outcome == SL_DEMAND_GRANTED) {
		sl_control_enter();
		r = sl_backing_create(out, space->dev, bytes, &stuck_bytes);
		if (r == CUDA_ERROR_OUT_OF_MEMORY && stuck_bytes == 0) {
			sl_control_leave();
			/* What is in its way may be our own. */
			sl_supply_give_back_soon();
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
		int outcome = sl_demand_ask(
			&demand, space->gpu, bytes, sl_supply_give_back_soon);

		r = create_granted(&demand, space, bytes, out, &outcome);
		if (outcome == SL_DEMAND_REFUSED)
			return sl_session_join();
		if (outcome == SL_DEMAND_GRANTED || again ||
			r != CUDA_ERROR_OUT_OF_MEMORY || !sl_supply_give_back_now(frees))
			return r;
	}
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
