/*
 * keep - threads that need all of their memory to stay on the GPU for a moment
 *
 * They are counted; who evicts looks at the count while the gate is closed. As in control.h a
 * thread that ends in between is counted out, and so is one that left by a jump out of a signal
 * handler, once it keeps again or comes to the closed gate: in between nobody goes there on his own
 * account. Keeps errno. Async-signal-safe but for the first entry of a thread.
 */
#ifndef SL_RUNTIME_GATE_KEEP_H
#define SL_RUNTIME_GATE_KEEP_H

#include "base/sl.h"

/* stack: sl_gate_stack() of the caller. */
void sl_keep_enter(uintptr_t stack);
void sl_keep_leave(void);
/* The calling thread comes to the closed gate with that stack. */
void sl_keep_look(uintptr_t stack);
/* Is there any such thread? */
SL_MUST_CHECK bool sl_keep_is_any(void);
/* In the child of a fork. */
void sl_keep_forget(void);

#endif
