/*
 * control - keeps changes of mappings apart from moves of memory
 *
 * Calls that create, map, unmap, export or destroy device memory are inside together; the thread
 * that moves memory is inside alone. A thread inside never waits for the daemon, the gate or GPU
 * work. So a call that needs memory on the GPU enters the gate first, then this lock. Entering
 * nests. The closer may enter, too. Keeps errno. In bypass and before the join it costs one load.
 */
#ifndef SL_RUNTIME_GATE_CONTROL_H
#define SL_RUNTIME_GATE_CONTROL_H

#include "base/clock.h"

/* Takes effect from the join on. */
void sl_control_start(void);
void sl_control_enter(void);
void sl_control_leave(void);
/* Blocks new entries. True once the last thread is out; false if that took longer than span_ns: the
 * lock is open again. One closer at a time. */
SL_MUST_CHECK bool sl_control_close(sl_ns span_ns);
void sl_control_open(void);
/* In the child of a fork. */
void sl_control_forget(void);

#endif
