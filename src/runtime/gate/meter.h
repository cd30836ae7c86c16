/*
 * meter - opens the gate for slices of time
 *
 * In a slice each entry is counted, and the entry that is one too many, or too late, shuts the gate
 * instead. So a slice ends in time although the thread that opened it may sleep, and a program
 * cannot queue much more work than fits into it. One thread at a time calls sl_meter_shut, _run and
 * _open. The meter is one closer of the gate among others.
 */
#ifndef SL_RUNTIME_GATE_METER_H
#define SL_RUNTIME_GATE_METER_H

#include "base/clock.h"

/* It holds submissions back, or did so a moment ago. */
bool sl_meter_is_on(void);
/* From any state; new submissions wait. */
void sl_meter_shut(void);
/* Lets that many entries in until until_ns. The gate is shut. */
void sl_meter_run(uint32_t entries, sl_ns until_ns);
/* From any state: nothing is counted or held back. */
void sl_meter_open(void);
bool sl_meter_is_shut(void);
/* How many entries the slice had left when it was shut. */
uint32_t sl_meter_left(void);
/* Futex: rung when an entry has shut the gate, and by sl_meter_ring. */
extern uint32_t sl_meter_bell;
void sl_meter_ring(void);
/* In the child of a fork; gate.h has forgotten already. */
void sl_meter_forget(void);

#endif
