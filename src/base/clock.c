#include "base/clock.h"

#include <errno.h>
#include <time.h>

sl_ns sl_clock_now(void)
{
	struct timespec ts = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (sl_ns)ts.tv_sec * SL_S + (sl_ns)ts.tv_nsec;
}

void sl_clock_sleep(sl_ns span_ns)
{
	struct timespec left = {
		.tv_sec = (time_t)(span_ns / SL_S),
		.tv_nsec = (long)(span_ns % SL_S),
	};

	while (nanosleep(&left, &left) < 0 && errno == EINTR) {
	}
}
