/*
 * sweep - see sweep.h
 */
#include "runtime/sweep.h"
#include "runtime/capture.h"
#include "runtime/futex.h"
#include "runtime/hooks.h"
#include "runtime/libc.h"
#include "runtime/memory.h"
#include "runtime/opened.h"
#include "runtime/pool.h"

#include <limits.h>
#include <sys/prctl.h>

static uint32_t wanted; /* futex: counts requests */
static uint32_t
	served; /* futex: how many had been made when the last round that has ended began */
static int started;
static int everything_wanted, fully_wanted, owed;

static void *sweep_main(void *arg)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	bool everything, fully;
	uint32_t seen = 0;

	(void)prctl(PR_SET_NAME, "sluice-sweep", 0, 0, 0);
	/* Another thread's capture is not to be spoilt by our calls. */
	(void)sl_real.cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		uint32_t now = __atomic_load_n(&wanted, __ATOMIC_ACQUIRE);

		if (now == seen) {
			sl_futex_wait(&wanted, seen, SL_NS_NEVER);
			continue;
		}
		seen = now;
		everything = __atomic_exchange_n(&everything_wanted, 0, __ATOMIC_ACQ_REL);
		fully = __atomic_exchange_n(&fully_wanted, 0, __ATOMIC_ACQ_REL);
		sl_memory_flush_all(everything, fully);
		__atomic_store_n(&served, seen, __ATOMIC_RELEASE);
		sl_futex_wake(&served, INT_MAX);
		sl_opened_sweep();
		sl_pool_synced();
		if (everything)
			(void)sl_passed_trim();
	}
	return arg;
}

/* The number of this request; 0: there is no thread to serve it. */
static uint32_t request(void)
{
	int saved_errno = errno;
	uint32_t number = __atomic_add_fetch(&wanted, 1, __ATOMIC_RELEASE);

	if (__atomic_exchange_n(&started, 1, __ATOMIC_ACQ_REL)) {
		sl_futex_wake(&wanted, 1);
	} else if (sl_libc_start_thread(sweep_main, NULL) != 0) {
		__atomic_store_n(&started, 0, __ATOMIC_RELEASE);
		number = 0;
	}
	errno = saved_errno;
	return number;
}

void sl_sweep_soon(bool everything)
{
	if (everything)
		__atomic_store_n(&everything_wanted, 1, __ATOMIC_RELEASE);
	(void)request();
}

void sl_sweep_until(sl_ns end_ns)
{
	uint32_t number, now;
	sl_ns now_ns;

	__atomic_store_n(&everything_wanted, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&fully_wanted, 1, __ATOMIC_RELEASE);
	number = request();
	while (number &&
		(int32_t)((now = __atomic_load_n(&served, __ATOMIC_ACQUIRE)) - number) <
			0 &&
		(now_ns = sl_clock_now()) < end_ns)
		sl_futex_wait(&served, now, end_ns - now_ns);
}

void sl_sweep_owe(void)
{
	__atomic_store_n(&owed, 1, __ATOMIC_SEQ_CST);
	/* The capture that was in the way may have ended in between. */
	if (!sl_capture_is_open())
		sl_sweep_if_owed();
}

void sl_sweep_if_owed(void)
{
	if (__atomic_exchange_n(&owed, 0, __ATOMIC_SEQ_CST))
		sl_sweep_soon(false);
}

void sl_sweep_forget(void)
{
	wanted = served = 0;
	started = 0;
	everything_wanted = fully_wanted = owed = 0;
}
