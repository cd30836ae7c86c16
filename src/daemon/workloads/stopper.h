/*
 * stopper - sends signals to the processes that the policy names, and to no others
 *
 * A signal goes through a pidfd that is known to be that very process (pid and start time). So
 * another process that got the number is never hit. A failure to signal becomes an event
 * (STOP_FAILED). Loop's thread.
 */
#ifndef SL_DAEMON_WORKLOADS_STOPPER_H
#define SL_DAEMON_WORKLOADS_STOPPER_H

#include "daemon/state/daemon.h"

/* Carries out an action STOP. A stopped process also gets SIGCONT, so that it can act on its
 * SIGTERM. Called within a step of the policy, so it must not step the policy. */
void sl_stopper_stop(struct sl_daemon *daemon, const struct sl_action *action);
/*
 * Carries out an action STOP_STRANGER, under the same rules and stricter ones, because NVML alone
 * is not trusted for this. The process's identity must be certain. It must show signs of using a
 * GPU: a device file of the driver, a CUDA or NVML library. It must not be a client, a root of a
 * workload, this process, process 1 or a kernel thread; nor another user's, unless we are root.
 */
void sl_stopper_stranger(struct sl_daemon *daemon, const struct sl_action *action);

#endif
