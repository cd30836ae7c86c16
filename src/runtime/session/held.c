/*
 * held - see held.h
 *
 * The count is a field of the GPU's figures, under the session's lock, so it changes together with
 * the messages that report it. Within the request bytes become held without a question: they are
 * promised to this workload alone. Beyond the request only the daemon knows what other workloads
 * were promised, so it is asked, by an ordinary demand for bytes that exist already.
 */
#include "runtime/session/held.h"
#include "runtime/process/wake.h"
#include "runtime/session/demand.h"
#include "runtime/session/state.h"

#include <errno.h>

static uint32_t due; /* atomic: a change may still have to be reported */

static void tell_soon(void)
{
	if (!__atomic_exchange_n(&due, 1, __ATOMIC_ACQ_REL))
		sl_wake_agent();
}

bool sl_held_is_due(void)
{
	return __atomic_load_n(&due, __ATOMIC_RELAXED) &&
	       __atomic_exchange_n(&due, 0, __ATOMIC_ACQ_REL);
}

/* Leaves room for the workload's other processes, as far as this process knows. */
static bool is_within_request(const struct sl_gpu *gpu, uint64_t bytes)
{
	uint64_t room = sl_sub_sat(gpu->request_bytes, gpu->others_bytes);

	return bytes <= sl_sub_sat(room, sl_session_held_bytes(gpu));
}

bool sl_held_take(struct sl_gpu *gpu, uint64_t bytes)
{
	int saved_errno = errno, outcome;
	struct sl_demand demand;
	bool taken;

	sl_session_lock();
	taken = is_within_request(gpu, bytes);
	if (taken)
		gpu->held_bytes += (int64_t)bytes;
	sl_session_unlock();
	if (taken) {
		tell_soon();
		return true;
	}
	/* If granted, the bytes are counted already: demand.c. */
	outcome = sl_demand_ask_as(&demand, gpu, bytes, SL_ASK_HELD | SL_ASK_THERE, NULL);
	errno = saved_errno;
	return outcome == SL_DEMAND_GRANTED;
}

void sl_held_drop(struct sl_gpu *gpu, uint64_t bytes)
{
	sl_session_lock();
	gpu->held_bytes -= (int64_t)bytes;
	sl_session_unlock();
	tell_soon();
}

uint64_t sl_held_bytes(const struct sl_gpu *gpu)
{
	uint64_t bytes;

	sl_session_lock();
	bytes = sl_session_held_bytes(gpu);
	sl_session_unlock();
	return bytes;
}

void sl_held_tell(bool everything)
{
	sl_session_lock();
	sl_session_say_held(everything);
	sl_session_unlock();
}

void sl_held_forget(void)
{
	due = 0;
}
