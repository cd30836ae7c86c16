/*
 * sweep - helper threads for what must wait for the GPU but may not make the program wait
 *
 * Frees during a stream capture, and hoarded memory while an allocation waits. The sweeper starts
 * at the first need, blocks all signals, and spends its time asleep or in cuCtxSynchronize. Before
 * an allocation fails for good each context has a thread for the occasion, as the work of one may
 * last for ever.
 */
#ifndef SL_RUNTIME_MEMORY_SWEEP_H
#define SL_RUNTIME_MEMORY_SWEEP_H

#include "base/clock.h"

/* Flushes all spaces soon; everything: hoarded empty slabs too. Never blocks. */
void sl_sweep_soon(bool everything);
/* Flushes everything now, and returns when what was freed before is back, or at end_ns: work that
 * lasts longer may be waiting for the caller itself. Where no thread can be had the caller waits
 * for the work, however long that takes. No lock may be held. */
void sl_sweep_until(sl_ns end_ns);
/* Something could not be flushed while a capture is open: do it when the last one has ended. */
void sl_sweep_owe(void);
/* A capture has ended: does it if that was the last one. */
void sl_sweep_if_owed(void);
/* In the child of a fork. */
void sl_sweep_forget(void);

#endif
