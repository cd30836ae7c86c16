/*
 * sweep - the thread that waits for the GPU so that the program need not
 *
 * It frees what was freed during a stream capture, and what is hoarded while an allocation waits.
 * The sweeper starts at the first need, blocks all signals, and spends its time asleep or in
 * cuCtxSynchronize.
 */
#ifndef SL_RUNTIME_MEMORY_SWEEP_H
#define SL_RUNTIME_MEMORY_SWEEP_H

#include "base/sl.h"

/* Flushes all spaces soon; everything: what is hoarded, too. Never blocks. */
void sl_sweep_soon(bool everything);
/* Something could not be flushed while a capture is open: do it when the last one has ended. */
void sl_sweep_owe(void);
/* A capture has ended: does it if that was the last one. */
void sl_sweep_if_owed(void);
/* Called by the sweeper (link/reclaim.c). */
extern void (*const sl_sweep_on_due)(bool everything);
/* For helper threads like it: a name, and captures of other threads are not spoilt. */
void sl_sweep_begin_thread(void);
/* In the child of a fork. */
void sl_sweep_forget(void);

#endif
