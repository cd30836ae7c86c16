/*
 * aside - looks at processes that may take long, or for ever
 *
 * The kernel reads a process's memory and mappings under locks that the process can keep for as
 * long as it likes, and a user may have thousands of processes with megabytes each. So such a look
 * has a thread of its own, which nobody waits for, not even the daemon's end. A user whose
 * processes make looks hang keeps only his own from being looked at.
 */
#ifndef SL_DAEMON_CORE_ASIDE_H
#define SL_DAEMON_CORE_ASIDE_H

#include <sys/types.h>

#include "base/sl.h"

/* At once: altogether, and at processes of one user. */
#define SL_ASIDE_MOST 16
#define SL_ASIDE_EACH 2

/* Calls body(work) in a thread; work is the thread's. False: there are too many, or no memory;
 * nothing is called, and work stays the caller's. Any thread. */
SL_MUST_CHECK bool sl_aside(uid_t uid, void (*body)(void *work), void *work);

#endif
