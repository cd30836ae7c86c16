/*
 * errands - what the agent tells the daemon a moment later, not at once
 *
 * A burst of changes becomes one message: how much is held, and that hidden bytes need measuring.
 * The driver loads code when a function is first launched, and no hook sees that. So for a while
 * after contexts or modules changed, a measurement is asked for whenever work was submitted since
 * the last one. What could not be sent on one connection is sent on the next. For the agent's
 * thread alone; no driver calls.
 */
#ifndef SL_RUNTIME_LINK_ERRANDS_H
#define SL_RUNTIME_LINK_ERRANDS_H

#include "base/clock.h"

/* When to look again; SL_NS_NEVER: when woken. */
sl_ns sl_errands_due(void);
/* Does what is due. */
void sl_errands_look(void);
/* In the child of a fork. */
void sl_errands_forget(void);

#endif
