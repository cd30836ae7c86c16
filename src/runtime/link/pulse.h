/*
 * pulse - tells the daemon on request how this process's GPU work stands
 *
 * Only the agent's thread calls it. Without a PROBE it does nothing. When watching, it compares the
 * number of submissions with the one a span ago. When asked to prove, it also lets prove.h find out
 * whether all of them are finished. messages.def has the messages.
 */
#ifndef SL_RUNTIME_LINK_PULSE_H
#define SL_RUNTIME_LINK_PULSE_H

#include "base/clock.h"
#include "wire/wire.h"

/* Follows the message from now on; the next look sends the first answer. */
void sl_pulse_probe(const struct sl_msg_probe *msg);
/* Sends what is due. False: the line is lost. */
SL_MUST_CHECK bool sl_pulse_look(void);
/* When to look next; SL_NS_NEVER without a PROBE. */
sl_ns sl_pulse_due(void);
/* The line is lost: the next daemon sends a PROBE of its own. */
void sl_pulse_stop(void);
/* In the child of a fork. */
void sl_pulse_forget(void);

#endif
