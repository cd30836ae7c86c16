/*
 * sweep - see sweep.h
 */
#include "runtime/memory/sweep.h"
#include "runtime/contexts/capture.h"
#include "runtime/process/futex.h"
#include "runtime/process/libc.h"
#include "runtime/real/real.h"

#include <sys/prctl.h>

static uint32_t wanted; /* futex: counts requests */
static int started;
static int everything_wanted, owed;

void sl_sweep_begin_thread(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	(void)prctl(PR_SET_NAME, "sluice-sweep", 0, 0, 0);
	/* Our calls must not invalidate another thread's capture. */
	(void)sl_real.cuThreadExchangeStreamCaptureMode(&mode);
}

static void *sweep_main(void *arg)
{
	bool everything;
	uint32_t seen = 0;

	sl_sweep_begin_thread();
	for (;;) {
		uint32_t now = __atomic_load_n(&wanted, __ATOMIC_ACQUIRE);

		if (now == seen) {
			sl_futex_wait(&wanted, seen, SL_NS_NEVER);
			continue;
		}
		seen = now;
		everything = __atomic_exchange_n(&everything_wanted, 0, __ATOMIC_ACQ_REL);
		sl_sweep_on_due(everything);
	}
	return arg;
}

void sl_sweep_soon(bool everything)
{
	int saved_errno = errno;

	if (everything)
		__atomic_store_n(&everything_wanted, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&wanted, 1, __ATOMIC_RELEASE);
	if (__atomic_exchange_n(&started, 1, __ATOMIC_ACQ_REL))
		sl_futex_wake(&wanted, 1);
	else if (sl_libc_start_thread(sweep_main, NULL) != 0)
		__atomic_store_n(&started, 0, __ATOMIC_RELEASE);
	errno = saved_errno;
}

void sl_sweep_owe(void)
{
	__atomic_store_n(&owed, 1, __ATOMIC_SEQ_CST);
	/* The capture that prevented the flush may have ended meanwhile. */
	sl_sweep_if_owed();
}

void sl_sweep_if_owed(void)
{
	if (!sl_capture_is_open() && __atomic_exchange_n(&owed, 0, __ATOMIC_SEQ_CST))
		sl_sweep_soon(false);
}

void sl_sweep_forget(void)
{
	wanted = 0;
	started = 0;
	everything_wanted = owed = 0;
}
