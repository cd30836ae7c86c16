/*
 * gating - closes and opens gate and door as the daemon orders
 *
 * Only the agent's thread calls it. messages.def has the rules (GATE).
 */
#ifndef SL_RUNTIME_LINK_GATING_H
#define SL_RUNTIME_LINK_GATING_H

#include "wire/wire.h"

/* Carries the order out. These two return false if the line is lost. */
SL_MUST_CHECK bool sl_gating_order(const struct sl_msg_gate *msg);
/* Answers an order to close once no thread is inside of the driver. */
SL_MUST_CHECK bool sl_gating_look(void);
/* An order to close is not answered yet: look again soon. */
bool sl_gating_is_pending(void);
/* Tells a new daemon that they are still closed. Under the session's lock. */
void sl_gating_say_again(void);
/* The line is lost. Opens them, unless the process may be off its GPUs and a daemon may come:
 * for_good is false. */
void sl_gating_lost(bool for_good);
/* In the child of a fork; gate.h has forgotten already. */
void sl_gating_forget(void);

#endif
