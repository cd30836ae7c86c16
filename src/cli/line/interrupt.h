/*
 * interrupt - SIGINT and SIGTERM as something a waiting verb looks at
 *
 * The signals are blocked but in the waits below, so none is missed between a look and a wait. For
 * verbs that have to say something before they end, or end well. One thread.
 */
#ifndef SL_CLI_LINE_INTERRUPT_H
#define SL_CLI_LINE_INTERRUPT_H

#include "base/sl.h"

#include <signal.h>

/* From now on. *unblocked, for ppoll(2), lets them through. */
void sl_interrupt_catch(sigset_t *unblocked);
/* The signal that came, 0 if none did. */
int sl_interrupt_came(void);
/* False if one came, before or meanwhile. */
SL_MUST_CHECK bool sl_interrupt_sleep(const sigset_t *unblocked, unsigned int ms);
/* As before sl_interrupt_catch, for who becomes another program. */
void sl_interrupt_release(void);
/* Ends the process as the signal that came would have. Returns only if none did. */
void sl_interrupt_die(void);

#endif
