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
/* Makes the agent look at its duties again. Does nothing unless open. Async-signal-safe; keeps
 * errno. */
void sl_wake_agent(void);

/* --- for the agent --- */

/* The descriptor to poll, or -1 (which poll ignores) if the program has closed it. */
int sl_wake_fd(void);
/* Empties the pipe. */
void sl_wake_drain(void);

#endif
