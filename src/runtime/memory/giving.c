/*
 * giving - see giving.h
 */
#include "runtime/memory/giving.h"
#include "runtime/process/futex.h"

#include "base/clock.h"

#include <limits.h>

/* Work that lasts longer only delays its thread. */
#define WAIT_NS (10 * SL_S)

static uint32_t giving; /* futex: threads that give back */

void sl_memory_await_giving(void)
{
	sl_ns end_ns = sl_clock_now() + WAIT_NS, now_ns;
	uint32_t seen;

	while ((seen = __atomic_load_n(&giving, __ATOMIC_ACQUIRE)) &&
		(now_ns = sl_clock_now()) < end_ns)
		sl_futex_wait(&giving, seen, end_ns - now_ns);
}

void sl_memory_gives(bool begin)
{
	if (__atomic_add_fetch(&giving, begin ? 1 : -1, __ATOMIC_ACQ_REL) == 0)
		sl_futex_wake(&giving, INT_MAX);
}

void sl_memory_forget_giving(void)
{
	giving = 0;
}
