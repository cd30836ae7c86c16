/*
 * sweep - the thread that waits for the GPU so that the program need not
 *
 * It frees what was freed during a stream capture, and hoarded memory while an allocation waits.
 * The sweeper starts when first needed, blocks all signals, and spends its time asleep or in
 * cuCtxSynchronize.
 */
#ifndef SL_RUNTIME_MEMORY_SWEEP_H
#define SL_RUNTIME_MEMORY_SWEEP_H

#include "base/sl.h"

/* Flushes all spaces soon; everything: hoarded memory, too. Never blocks. */
void sl_sweep_soon(bool everything);
/* A flush was impossible during a capture: flush when the last capture has ended. */
void sl_sweep_owe(void);
/* A capture has ended: flushes if it was the last one and a flush is owed. */
void sl_sweep_if_owed(void);
/* Called by the sweeper (link/reclaim.c). */
extern void (*const sl_sweep_on_due)(bool everything);
/* For helper threads like the sweeper: sets a name, and keeps captures of other threads valid. */
void sl_sweep_begin_thread(void);
/* In the child of a fork. */
void sl_sweep_forget(void);

#endif
