/*
 * stopper - signals, to whom the policy says, and to nobody else
 *
 * A signal goes through a pidfd that is known to be the very process (pid and start time), so that
 * a number that was given to another process meanwhile is never hit. What cannot be signalled
 * is an event (STOP_FAILED). Loop's thread.
 */
#ifndef SL_DAEMON_WORKLOADS_STOPPER_H
#define SL_DAEMON_WORKLOADS_STOPPER_H

#include "daemon/state/daemon.h"

/* Carries out an action STOP. A stopped or frozen process also gets SIGCONT with its SIGTERM, so
 * that it can act on it. Called from within a step of the policy: must not step it. */
void sl_stopper_stop(struct sl_daemon *daemon, const struct sl_action *action);
/*
 * Carries out an action STOP_STRANGER. The same rules, and more, because what NVML says is not
 * believed for this: nobody is signalled whose identity is not certain, who shows no sign of using
 * a GPU (no device file of the driver, no CUDA or NVML library), who is a client, a root of a
 * workload, this process, process 1 or a kernel thread, nor another user's unless we are root.
 */
void sl_stopper_stranger(struct sl_daemon *daemon, const struct sl_action *action);
/* Tells as events what could not be signalled, and the policy; part of settling. */
void sl_stopper_settle(struct sl_daemon *daemon);
void sl_stopper_fini(struct sl_daemon *daemon);

#endif
