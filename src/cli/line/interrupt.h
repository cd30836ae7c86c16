/*
 * interrupt - lets a waiting verb notice SIGINT and SIGTERM
 *
 * The signals are blocked except during the waits below, so none is missed between a check and a
 * wait. For verbs that must print or clean up before they end. One thread.
 */
#ifndef SL_CLI_LINE_INTERRUPT_H
#define SL_CLI_LINE_INTERRUPT_H

#include "base/sl.h"

#include <signal.h>

/* Starts catching. *unblocked, for ppoll(2), lets the signals through. */
void sl_interrupt_catch(sigset_t *unblocked);
/* The caught signal, 0 if there is none. */
int sl_interrupt_came(void);
/* False if a signal came, before or meanwhile. */
SL_MUST_CHECK bool sl_interrupt_sleep(const sigset_t *unblocked, unsigned int ms);
/* Restores the state before sl_interrupt_catch, for a process that is about to exec. */
void sl_interrupt_release(void);
/* Ends the process as the caught signal would have. Returns only if there is none. */
void sl_interrupt_die(void);

#endif
