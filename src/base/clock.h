/*
 * clock - monotonic time in nanoseconds
 *
 * sl_ns is a point in time or a span, always nanoseconds on CLOCK_MONOTONIC. Decisions never
 * read the clock; they take it as an argument.
 */
#ifndef SL_BASE_CLOCK_H
#define SL_BASE_CLOCK_H

#include "base/sl.h"

typedef uint64_t sl_ns;

#define SL_US       (1000ull)
#define SL_MS       (1000ull * 1000)
#define SL_S        (1000ull * 1000 * 1000)
#define SL_NS_NEVER UINT64_MAX

sl_ns sl_clock_now(void);
/* Sleeps at least span_ns, even if signals arrive. */
void sl_clock_sleep(sl_ns span_ns);

#endif
