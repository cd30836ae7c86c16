/*
 * aside - looks at processes, each in a thread because it may take long or never end
 *
 * The kernel reads a process's memory and mappings under locks that the process can hold as long as
 * it likes. Looks also take long if a user has thousands of processes with megabytes each. So each
 * look has a thread of its own, and nothing waits for that thread, not even the daemon's end. If a
 * user's processes make looks hang, only that user's processes are no longer looked at.
 */
#ifndef SL_DAEMON_CORE_ASIDE_H
#define SL_DAEMON_CORE_ASIDE_H

#include <sys/types.h>

#include "base/sl.h"

/* Looks in progress at once: in all, and at processes of one user. */
#define SL_ASIDE_MOST 16
#define SL_ASIDE_EACH 2

/* Calls body(work) in a new thread, which then owns work. False: too many looks in progress, or no
 * memory; body is not called, and work stays the caller's. Any thread. */
SL_MUST_CHECK bool sl_aside(uid_t uid, void (*body)(void *work), void *work);

#endif
