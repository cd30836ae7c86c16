/*
 * futex - sleep on a word until another thread changes it
 *
 * Raw system calls have no cancellation point, so a cancelled thread of the program never leaves
 * our code half-way. errno is preserved. Spans are nanoseconds; SL_NS_NEVER waits without end.
 */
#ifndef SL_RUNTIME_PROCESS_FUTEX_H
#define SL_RUNTIME_PROCESS_FUTEX_H

#include "base/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while *word == seen, for at most span_ns. May return early for any reason: loop. */
static inline void sl_futex_wait(uint32_t *word, uint32_t seen, sl_ns span_ns)
{
	struct timespec span = {
		.tv_sec = (time_t)(span_ns / SL_S), .tv_nsec = (long)(span_ns % SL_S)};
	int saved_errno = errno;

	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen,
		span_ns == SL_NS_NEVER ? NULL : &span, NULL, 0);
	errno = saved_errno;
}

/* Yields the core while *word == seen, for at most span_ns: for changes that come sooner than an
 * idle core wakes up. */
static inline void sl_futex_yield(const uint32_t *word, uint32_t seen, sl_ns span_ns)
{
	sl_ns end_ns = sl_clock_now() + span_ns;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == seen && sl_clock_now() < end_ns)
		(void)syscall(SYS_sched_yield);
}

/* Sleeps for span_ns without a cancellation point. */
static inline void sl_futex_pause(sl_ns span_ns)
{
	uint32_t nobody_wakes = 0;

	sl_futex_wait(&nobody_wakes, 0, span_ns);
}

/* Wakes at most count sleepers. The word's memory may be gone already: only its address is used. */
static inline void sl_futex_wake(uint32_t *word, int count)
{
	int saved_errno = errno;

	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
	errno = saved_errno;
}

#endif
