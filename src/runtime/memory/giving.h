/*
 * giving - memory that is on its way back to the driver
 *
 * It is in no list any more, so a search for hoarded memory does not find it, and it is not free
 * yet. Thread-safe.
 */
#ifndef SL_RUNTIME_MEMORY_GIVING_H
#define SL_RUNTIME_MEMORY_GIVING_H

#include "base/sl.h"

/* Around giving back. */
void sl_memory_gives(bool begin);
/* Waits until other threads have given back what they took; a few seconds at most. No lock may be
 * held. */
void sl_memory_await_giving(void);
/* In the child of a fork. */
void sl_memory_forget_giving(void);

#endif
