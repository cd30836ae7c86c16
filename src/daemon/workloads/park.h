/*
 * park - workloads that are moved to the host on demand
 */
#ifndef SL_DAEMON_WORKLOADS_PARK_H
#define SL_DAEMON_WORKLOADS_PARK_H

#include "daemon/state/daemon.h"

/* Proposes a change of the workload to the policy. False: refused, and text says why. */
SL_MUST_CHECK bool sl_park_propose(struct sl_daemon *daemon, struct sl_workload *workload,
	const struct sl_event *event, struct sl_error *text);
/* Parks, detaches (parks until its next call), parks for a move, or resumes a workload: `to` is
 * PARKED, DETACHED, MOVING or RESUMING. False: refused, and text says why. */
SL_MUST_CHECK bool sl_park_workload(struct sl_daemon *daemon,
	struct sl_workload *workload, enum sl_park_state to, struct sl_error *text);
/* Resumes it on these GPUs, as many as it has: all of it is away. */
SL_MUST_CHECK bool sl_park_resume_on(struct sl_daemon *daemon,
	struct sl_workload *workload, uint32_t gpus, struct sl_error *text);
/* It is parked, and not being resumed. */
SL_MUST_CHECK bool sl_park_is_put_away(const struct sl_workload *workload);
/* Is it parked, with all its movable memory on the host? */
SL_MUST_CHECK bool sl_park_is_done(
	const struct sl_daemon *daemon, const struct sl_workload *workload);
/* The policy has claimed its request again. Legal inside an action. */
void sl_park_resumed(struct sl_daemon *daemon, uint64_t workload);
/* Parks a workload that the journal names as parked. */
void sl_park_again(struct sl_daemon *daemon, struct sl_workload *workload);
/* Likewise, for one that was being resumed, or moved: it comes back to its GPUs. */
void sl_park_resume_again(struct sl_daemon *daemon, struct sl_workload *workload);

#endif
