/*
 * pulse - tells the daemon how this process's GPU work stands, when it asks
 *
 * Only the agent's thread calls it. Not probed, it does nothing at all; watched, it compares the
 * number of submissions with what it was a span ago; asked to prove, it also has prove.h find out
 * whether all of them are finished. The messages are those of messages.def.
 */
#ifndef SL_RUNTIME_LINK_PULSE_H
#define SL_RUNTIME_LINK_PULSE_H

#include "base/clock.h"
#include "wire/wire.h"

/* From now on as the message says; the first answer is sent by the next look. */
void sl_pulse_probe(const struct sl_msg_probe *msg);
/* Sends what is due. False: the line is lost. */
SL_MUST_CHECK bool sl_pulse_look(void);
/* When to look next; SL_NS_NEVER if nobody asked. */
sl_ns sl_pulse_due(void);
/* The line is lost: the next daemon will ask by itself. */
void sl_pulse_stop(void);
/* In the child of a fork. */
void sl_pulse_forget(void);

#endif
