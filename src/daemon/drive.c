/*
 * drive - between the loop and the machine that decides
 *
 * Demands are remembered by client.c only as far as the wire needs it: which ask a grant's epoch
 * belongs to, and which grants a lost connection left open. The books are the node's alone.
 */
#include "daemon/drive.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "daemon/client.h"
#include "daemon/peer.h"
#include "daemon/views.h"

/* Lines per reason and second; a queue of thousands must not turn into a log of thousands. */
#define NOTES_PER_SECOND 5

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

static void on_refuse(struct sl_daemon *daemon, uint64_t workload, uint32_t reason,
	uint64_t wanted_bytes, uint64_t available_bytes)
{
	if (daemon->admission.workload != workload)
		return;
	daemon->admission.refused = true;
	daemon->admission.reason = reason;
	daemon->admission.wanted_bytes = wanted_bytes;
	daemon->admission.available_bytes = available_bytes;
}

static void on_note(struct sl_daemon *daemon, enum sl_reason reason, uint32_t gpu,
	uint64_t workload, uint64_t other, uint64_t bytes)
{
	/* Waiting is what the daemon is for; the rest should be rare. */
	int level = reason == SL_REASON_BURST_WAITS || reason == SL_REASON_STRAY
			    ? SL_LOG_DEBUG
			    : SL_LOG_WARNING;
	struct sl_workload *subject = sl_map_get(&daemon->workloads, workload);
	sl_ns second = sl_clock_now() / SL_S;
	char text[32];

	if (reason >= SL_REASONS || !sl_log_on(level))
		return;
	if (daemon->notes[reason].second != second) {
		if (daemon->notes[reason].dropped)
			sl_log(level, "%s: %u more of these", sl_reason_name(reason),
				daemon->notes[reason].dropped);
		daemon->notes[reason].second = second;
		daemon->notes[reason].lines = daemon->notes[reason].dropped = 0;
	}
	if (daemon->notes[reason].lines++ >= NOTES_PER_SECOND) {
		daemon->notes[reason].dropped++;
		return;
	}
	sl_log(level, "%s: GPU %u, workload %" PRIu64 " (%s), other %" PRIu64 ", %s: %s",
		sl_reason_name(reason), gpu, workload, subject ? subject->name : "-",
		other, sl_bytes_format(bytes, text, sizeof(text)),
		sl_reason_text(reason));
}

static void emit(void *context, const struct sl_action *action)
{
	struct sl_daemon *daemon = context;

	switch (action->type) {
	case SL_ACTION_ADMIT:
		on_admit(daemon, action->admit.workload, action->admit.gpu_mask,
			action->admit.request_bytes, action->admit.limit_bytes);
		break;
	case SL_ACTION_REFUSE:
		on_refuse(daemon, action->refuse.workload, action->refuse.reason,
			action->refuse.wanted_bytes, action->refuse.available_bytes);
		break;
	case SL_ACTION_GRANT:
		daemon->grants++;
		sl_client_granted(daemon, action->grant.client, action->grant.ask,
			action->grant.epoch, action->grant.bytes);
		break;
	case SL_ACTION_DENY:
		daemon->denials++;
		sl_client_denied(daemon, action->deny.client, action->deny.ask,
			action->deny.reason, action->deny.available_bytes);
		break;
	case SL_ACTION_VIEW:
		sl_views_changed(daemon, action->view.workload, action->view.gpu);
		break;
	case SL_ACTION_NOTE:
		on_note(daemon, (enum sl_reason)action->note.reason, action->note.gpu,
			action->note.workload, action->note.other, action->note.bytes);
		break;
	case SL_ACTION_WAKE_AT:
		daemon->wake_at = action->wake_at.at;
		daemon->wake_changed = true;
		break;
	case SL_ACTIONS: break;
	}
}

void sl_drive(struct sl_daemon *daemon, const struct sl_event *event)
{
	sl_node_step(daemon->node, sl_clock_now(), event, emit, daemon);
}

void sl_drive_arm(struct sl_daemon *daemon)
{
	if (!daemon->wake_changed)
		return;
	daemon->wake_changed = false;
	sl_timer_set(daemon->wake_timer, daemon->wake_at);
}
