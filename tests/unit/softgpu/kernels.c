/* A kernel that never ends and never stops writing. */
#include "base/hostmodule.h"

SL_KERNEL(keep_writing, volatile uint32_t *, data, uint64_t, count)
{
	for (;;)
		for (uint64_t i = 0; i < count; i++)
			data[i] = 0xdeadbeef;
}
