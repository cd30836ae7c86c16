/*
 * info - see info.h
 */
#include "runtime/memory/info.h"

/* Different from the driver's own ids, which count up from 1. */
#define FIRST_ID (1ull << 48)

uint64_t sl_memory_new_id(void)
{
	static uint64_t last_id = FIRST_ID;

	return __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
}
