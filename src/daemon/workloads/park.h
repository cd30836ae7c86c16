/*
 * park - workloads that are moved to the host on demand
 */
#ifndef SL_DAEMON_WORKLOADS_PARK_H
#define SL_DAEMON_WORKLOADS_PARK_H

#include "daemon/state/daemon.h"

/* A change of the workload, that the policy takes; false: not, and text says why. */
SL_MUST_CHECK bool sl_park_propose(struct sl_daemon *daemon, struct sl_workload *workload,
	const struct sl_event *event, struct sl_error *text);
/* As PARK and its opposite. False: not, and text says why. */
SL_MUST_CHECK bool sl_park_workload(struct sl_daemon *daemon,
	struct sl_workload *workload, bool parked, struct sl_error *text);
/* It is parked, and all of it that can be moved is on the host. */
SL_MUST_CHECK bool sl_park_is_done(
	const struct sl_daemon *daemon, const struct sl_workload *workload);
/* The policy has claimed its request again. Legal inside an action. */
void sl_park_resumed(struct sl_daemon *daemon, uint64_t workload);
/* It was parked under the daemon before, as the journal says. */
void sl_park_again(struct sl_daemon *daemon, struct sl_workload *workload);
/* The same, and was to come back. */
void sl_park_resume_again(struct sl_daemon *daemon, struct sl_workload *workload);

#endif
