/*
 * actions - the policy's decisions become messages, signals and events
 *
 * client.c remembers demands only as far as the wire needs it: which ask a grant's epoch belongs
 * to, and which grants a lost connection left open. The books are the node's alone.
 */
#include "daemon/loop/actions.h"

#include "daemon/clients/client.h"
#include "daemon/clients/moves.h"
#include "daemon/clients/views.h"
#include "daemon/control/parking.h"
#include "daemon/jobs/jobs.h"
#include "daemon/link/peer.h"
#include "daemon/report/events.h"
#include "daemon/state/workload.h"
#include "daemon/swap/place.h"
#include "daemon/swap/swap.h"
#include "daemon/workloads/park.h"
#include "daemon/workloads/meters.h"
#include "daemon/workloads/probing.h"
#include "daemon/workloads/stopper.h"

static void on_admit(struct sl_daemon *daemon, uint64_t workload, uint32_t gpu_mask,
	uint64_t request_bytes, uint64_t limit_bytes)
{
	if (daemon->admission.workload != workload)
		return;
	daemon->admission.admitted = true;
	daemon->admission.gpu_mask = gpu_mask;
	daemon->admission.request_bytes = request_bytes;
	daemon->admission.limit_bytes = limit_bytes;
}

static void on_refuse(struct sl_daemon *daemon, const struct sl_action *action)
{
	if (action->refuse.reason < SL_REASONS)
		daemon->refusals[action->refuse.reason]++;
	if (daemon->admission.workload != action->refuse.workload)
		return;
	daemon->admission.refused = true;
	daemon->admission.reason = action->refuse.reason;
	daemon->admission.gpu = action->refuse.gpu;
	daemon->admission.wanted_bytes = action->refuse.wanted_bytes;
	daemon->admission.available_bytes = action->refuse.available_bytes;
}

static void on_set_done(struct sl_daemon *daemon, const struct sl_action *action)
{
	if (daemon->admission.workload != action->set_done.workload)
		return;
	daemon->admission.admitted = true;
	daemon->admission.request_bytes = action->set_done.request_bytes;
	daemon->admission.limit_bytes = action->set_done.limit_bytes;
	daemon->admission.over_bytes = action->set_done.over_bytes;
}

static void tell(struct sl_daemon *daemon, const struct sl_action *action)
{
	struct sl_node_because because = sl_events_of_action(action);

	/* Told when it was first seen (strangers.c); `client` is a stranger's number here. */
	if (because.reason == SL_REASON_UNMANAGED_SEEN)
		return;
	because.reason = sl_jobs_reason(daemon, because.workload, because.reason);
	sl_events_add(daemon, &because);
}

static void on_resumed(struct sl_daemon *daemon, const struct sl_action *action)
{
	sl_park_resumed(daemon, action->resumed.workload);
	sl_jobs_resumed(daemon, action->resumed.workload);
	tell(daemon, action);
}

static void on_parked(struct sl_daemon *daemon, const struct sl_action *action)
{
	sl_jobs_parked(daemon, action->parked.workload);
	tell(daemon, action);
}

static void count_denial(struct sl_daemon *daemon, const struct sl_action *action)
{
	struct sl_workload *workload =
		sl_map_get(&daemon->workloads, action->deny.workload);
	struct sl_node_because because = {.reason = action->deny.reason,
		.gpu = action->deny.gpu,
		.workload = action->deny.workload,
		.other = action->deny.other,
		.client = action->deny.client,
		.bytes = action->deny.bytes,
		.available_bytes = action->deny.available_bytes,
		.other_bytes = action->deny.other_bytes,
		.span = action->deny.span};

	daemon->denials++;
	if (workload)
		workload->denials++;
	if (workload && because.reason == SL_REASON_OVER_LIMIT) {
		because.other_bytes = workload->limit_bytes;
		sl_jobs_over_limit(workload, &because);
	}
	sl_events_add(daemon, &because);
}

static void on_deny(struct sl_daemon *daemon, const struct sl_action *action)
{
	/* A cancelled demand lacked nothing that its program sees. */
	if (action->deny.reason != SL_REASON_CANCELLED)
		count_denial(daemon, action);
	sl_client_denied(daemon, action->deny.client, action->deny.ask,
		action->deny.reason, action->deny.available_bytes);
}

static void on_stop(struct sl_daemon *daemon, const struct sl_action *action)
{
	uint32_t reason = action->stop.reason;

	/* The node knows that a stop was requested, but not that the queue did. */
	if (reason == SL_REASON_STOP_ASKED &&
		sl_jobs_makes_room(daemon, action->stop.workload))
		reason = SL_REASON_STOP_FOR_JOB;
	reason = sl_jobs_reason(daemon, action->stop.workload, reason);
	if (action->stop.stage == SL_STOP_TERM)
		sl_events_add(daemon, &(struct sl_node_because){.reason = reason,
					      .gpu = action->stop.gpu,
					      .workload = action->stop.workload,
					      .other = action->stop.other,
					      .client = action->stop.client,
					      .bytes = action->stop.bytes,
					      .other_bytes = action->stop.other_bytes,
					      .span = action->stop.span});
	sl_stopper_stop(daemon, action);
}

void sl_actions_carry_out(void *context, const struct sl_action *action)
{
	struct sl_daemon *daemon = context;

	switch (action->type) {
	case SL_ACTION_ADMIT:
		on_admit(daemon, action->admit.workload, action->admit.gpu_mask,
			action->admit.request_bytes, action->admit.limit_bytes);
		break;
	case SL_ACTION_REFUSE: on_refuse(daemon, action); break;
	case SL_ACTION_GRANT:
		daemon->grants++;
		sl_client_granted(daemon, action->grant.client, action->grant.ask,
			action->grant.epoch, action->grant.bytes);
		break;
	case SL_ACTION_SET_DONE: on_set_done(daemon, action); break;
	case SL_ACTION_DENY: on_deny(daemon, action); break;
	case SL_ACTION_STOP: on_stop(daemon, action); break;
	case SL_ACTION_EVICT: sl_swap_evict(daemon, action); break;
	case SL_ACTION_RESTORE: sl_swap_restore(daemon, action); break;
	case SL_ACTION_ABORT: sl_swap_abort(daemon, action); break;
	case SL_ACTION_TRIM: sl_swap_trim(daemon, action); break;
	case SL_ACTION_DETACHES:
		sl_parking_idle(daemon, action->detaches.workload, false);
		break;
	case SL_ACTION_CALLS:
		sl_parking_idle(daemon, action->calls.workload, true);
		break;
	case SL_ACTION_DETACH: sl_place_detach(daemon, action); break;
	case SL_ACTION_ATTACH: sl_place_attach(daemon, action); break;
	case SL_ACTION_STOP_STRANGER: sl_stopper_stranger(daemon, action); break;
	case SL_ACTION_PROBE:
		sl_probing_set(
			daemon, action->probe.client, (enum sl_probe)action->probe.mode);
		break;
	case SL_ACTION_VIEW:
		sl_views_changed(daemon, action->view.workload, action->view.gpu);
		break;
	case SL_ACTION_MOVES:
		sl_moves(daemon, action);
		sl_meters_changed(daemon);
		break;
	case SL_ACTION_PARKED: on_parked(daemon, action); break;
	case SL_ACTION_RESUMED: on_resumed(daemon, action); break;
	case SL_ACTION_LEFT:
	case SL_ACTION_NOTE: tell(daemon, action); break;
	case SL_ACTION_WAKE_AT:
		daemon->wake_at = action->wake_at.at;
		daemon->wake_changed = true;
		break;
	case SL_ACTIONS: break;
	}
}
