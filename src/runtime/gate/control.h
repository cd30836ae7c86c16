/*
 * control - keeps changes of what is mapped apart from moves of memory
 *
 * Calls that create, map, unmap, export or destroy device memory are inside together; the thread
 * that moves memory is there alone. Inside, no thread waits for the daemon, for the gate or for GPU
 * work: a call that needs memory on the GPU enters the gate first, then this. A thread may enter
 * again while it is inside, from a function that the one which entered first has called. The closer
 * may enter, too. Keeps errno. In bypass and before the join it costs one load.
 */
#ifndef SL_RUNTIME_GATE_CONTROL_H
#define SL_RUNTIME_GATE_CONTROL_H

#include "base/clock.h"

/* From the join on. */
void sl_control_start(void);
void sl_control_enter(void);
void sl_control_leave(void);
/* Nobody comes in any more; true once the last one is out, false if that took longer than span_ns:
 * then it is as if it had not been called. One closer at a time. */
SL_MUST_CHECK bool sl_control_close(sl_ns span_ns);
void sl_control_open(void);
/* In the child of a fork. */
void sl_control_forget(void);

#endif
