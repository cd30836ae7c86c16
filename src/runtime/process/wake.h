/*
 * wake - wakes the agent's thread, which polls one end of a pipe
 */
#ifndef SL_RUNTIME_PROCESS_WAKE_H
#define SL_RUNTIME_PROCESS_WAKE_H

#include "base/sl.h"

/* Negative errno or 0. */
SL_MUST_CHECK int sl_wake_open(void);
/* Also in the child of a fork. */
void sl_wake_close(void);
/* The agent looks at its duties again. Does nothing unless open. Async-signal-safe; keeps errno. */
void sl_wake_agent(void);

/* --- for the agent --- */

/* What it polls, or -1 (which poll ignores) once the program has closed it under us. */
int sl_wake_fd(void);
/* Takes what has woken it. */
void sl_wake_drain(void);

#endif
