/*
 * errands - what the agent tells the daemon a moment later, not at once
 *
 * A burst of changes becomes one message: how much is held, and that hidden bytes want measuring.
 * The driver loads code when a function is first launched, and no hook sees that: for a while after
 * contexts and modules changed, work that was submitted since the last measurement asks for
 * another. None is lost: what could not be said on one line is said on the next. For the agent's
 * thread alone; no driver calls.
 */
#ifndef SL_RUNTIME_LINK_ERRANDS_H
#define SL_RUNTIME_LINK_ERRANDS_H

#include "base/clock.h"

/* When to look again at the latest; SL_NS_NEVER: when woken. */
sl_ns sl_errands_due(void);
/* Does what is due. */
void sl_errands_look(void);
/* In the child of a fork. */
void sl_errands_forget(void);

#endif
