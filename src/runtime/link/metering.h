/*
 * metering - carries out METER orders: slices of GPU time
 *
 * A thread of its own opens and shuts the gate. It tells the daemon of a slice's end once the GPU
 * has finished the work, and as soon as the program stops submitting. It learns that in prove.h, so
 * no call of the program waits for the GPU. The thread starts with the first order. The agent calls
 * the rest.
 */
#ifndef SL_RUNTIME_LINK_METERING_H
#define SL_RUNTIME_LINK_METERING_H

#include "wire/wire.h"

void sl_metering_order(const struct sl_msg_meter *msg);
/* Tells the daemon if threads wait at the metered gate. False: the line is lost. */
SL_MUST_CHECK bool sl_metering_look(void);
/* The line is lost: the gate opens. */
void sl_metering_lost(void);
/* In the child of a fork. */
void sl_metering_forget(void);

#endif
