/*
 * parking - checks, one event to the policy, one reply
 */
#include "daemon/control/parking.h"

#include <string.h>

#include "base/log.h"
#include "base/step.h"
#include "daemon/control/set.h"
#include "daemon/jobs/jobs.h"
#include "daemon/report/events.h"
#include "daemon/state/commit.h"
#include "daemon/state/workload.h"
#include "daemon/workloads/park.h"

/* 50 days less some hours, more than any user needs; more does not fit a timer in milliseconds. */
#define WARM_MAX_MS UINT32_MAX

/* --- PARK --------------------------------------------------------------------------------- */

static void reply_park(struct sl_peer *peer, const struct sl_workload *workload,
	uint32_t reason, const char *text)
{
	const struct sl_daemon *daemon = peer->daemon;
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_PARK_REPLY);
	msg.park_reply.ok = reason == SL_REASON_PARKED_FOR_JOB ||
			    (reason == SL_REASON_NONE && !text[0]);
	msg.park_reply.reason = reason;
	sl_wire_str(msg.park_reply.text, sizeof(msg.park_reply.text), text);
	if (workload) {
		msg.park_reply.workload = workload->id;
		memcpy(msg.park_reply.name, workload->name, sizeof(msg.park_reply.name));
		for (uint32_t i = 0; i < workload->gpu_count; i++)
			msg.park_reply.held_bytes +=
				sl_node_use(daemon->node, workload->id, workload->gpus[i])
					.held_bytes;
	}
	sl_peer_send(peer, &msg);
}

void sl_parking_park(struct sl_peer *peer, const struct sl_msg_park *park)
{
	struct sl_daemon *daemon = peer->daemon;
	const char *verb = park->parked ? "park" : "resume";
	struct sl_error text = {0}, queue = {0};
	struct sl_workload *workload =
		sl_set_changeable(peer, park->workload, park->name, verb, &text);

	if (peer->doomed)
		return;
	if (!workload) {
		reply_park(peer, NULL, SL_REASON_UNKNOWN_WORKLOAD, text.text);
		return;
	}
	if (!park->parked && sl_jobs_bring_back(daemon, workload->id, &text)) {
		reply_park(peer, workload,
			text.text[0] ? SL_REASON_PARKED_FOR_JOB : SL_REASON_NONE,
			text.text);
		return;
	}
	if (!park->parked && workload->park == SL_PARK_PARKED &&
		!sl_jobs_may_have(daemon, workload, &workload->request, &workload->limit,
			workload->flags, &text)) {
		reply_park(peer, workload, SL_REASON_NONE, text.text);
		return;
	}
	if (!sl_park_workload(daemon, workload, park->parked != 0, &text)) {
		if (sl_peer_may_log(daemon, SL_LOG_INFO))
			sl_info("did not %s %s for user %u: %s", verb, workload->name,
				(unsigned int)peer->uid, text.text);
		/* The queue parked it, so it resumes by itself: say that instead. */
		if (daemon->admission.reason == SL_REASON_PARKED_ALREADY &&
			sl_jobs_keeps_parked(daemon, workload->id, &queue))
			text = queue;
		reply_park(peer, workload, daemon->admission.reason, text.text);
		return;
	}
	if (park->parked)
		sl_step(D_PARK_BOOKED);
	else
		sl_step(D_RESUME_BOOKED);
	if (sl_peer_may_log(daemon, SL_LOG_INFO))
		sl_info("%s of %s for process %d of user %u", verb, workload->name,
			(int)peer->pid, (unsigned int)peer->uid);
	sl_jobs_workload_changed(daemon, workload);
	sl_peer_hold(peer);
	reply_park(peer, workload, SL_REASON_NONE, "");
}

/* --- SET_WARM ------------------------------------------------------------------------------- */

static bool too_long(const struct sl_msg_set_warm *set, struct sl_error *text)
{
	if (set->warm_after_ms != SL_WARM_AS_IT_IS && set->warm_after_ms > WARM_MAX_MS)
		sl_error_set(text,
			"--warm-after is too long; write at most 30d, or 0 for never");
	else if (set->idle_grace_ms != SL_WARM_AS_IT_IS &&
		 set->idle_grace_ms > WARM_MAX_MS)
		sl_error_set(text, "--idle-grace is too long; write at most 30d, or "
				   "--keep-resident");
	return text->text[0];
}

static struct sl_event times_of(
	const struct sl_workload *workload, const struct sl_msg_set_warm *set)
{
	struct sl_event event = {.type = SL_EVENT_WORKLOAD_SET};

	event.workload_set.workload = workload->id;
	if (set->warm_after_ms != SL_WARM_AS_IT_IS) {
		event.workload_set.which |= SL_SET_WARM;
		event.workload_set.warm_after = set->warm_after_ms * SL_MS;
	}
	if (set->idle_grace_ms != SL_WARM_AS_IT_IS) {
		event.workload_set.which |= SL_SET_GRACE;
		event.workload_set.idle_grace = set->idle_grace_ms * SL_MS;
	}
	return event;
}

static void say_changed(const struct sl_peer *peer, const struct sl_workload *workload,
	enum sl_reason reason, sl_ns span)
{
	sl_events_add_of(peer->daemon,
		&(struct sl_node_because){.reason = reason,
			.workload = workload->id,
			.other_bytes = (uint64_t)peer->uid + 1,
			.span = span},
		peer->pid);
}

static void keep_times(const struct sl_peer *peer, struct sl_workload *workload,
	const struct sl_event *event)
{
	if (event->workload_set.which & SL_SET_WARM) {
		workload->warm_after = event->workload_set.warm_after;
		say_changed(peer, workload,
			workload->warm_after ? SL_REASON_CHANGED_WARM
					     : SL_REASON_CHANGED_WARM_OFF,
			workload->warm_after);
	}
	if (event->workload_set.which & SL_SET_GRACE) {
		workload->idle_grace = event->workload_set.idle_grace;
		say_changed(
			peer, workload, SL_REASON_CHANGED_GRACE, workload->idle_grace);
	}
}

void sl_parking_set_warm(struct sl_peer *peer, const struct sl_msg_set_warm *set)
{
	struct sl_daemon *daemon = peer->daemon;
	struct sl_event event;
	struct sl_error text = {0};
	struct sl_workload *workload =
		sl_set_changeable(peer, set->workload, set->name, "change", &text);

	if (peer->doomed)
		return;
	if (!workload) {
		sl_set_reply(peer, NULL, SL_REASON_UNKNOWN_WORKLOAD, text.text);
		return;
	}
	if (too_long(set, &text)) {
		sl_set_reply(peer, workload, SL_REASON_NONE, text.text);
		return;
	}
	event = times_of(workload, set);
	if (!sl_park_propose(daemon, workload, &event, &text)) {
		sl_set_reply(peer, workload, daemon->admission.reason, text.text);
		return;
	}
	keep_times(peer, workload, &event);
	sl_peer_hold(peer);
	sl_commit_soon(daemon);
	if (workload->warm_after && workload->flags & SL_WORKLOAD_NO_SWAP)
		sl_error_set(&text,
			"the memory of %s is not to be moved, so it never goes to the "
			"host; %s",
			workload->name,
			workload->flags & SL_WORKLOAD_RDMA
				? "other devices may have registered it (--rdma)"
				: "--swap on of 'sluice set' changes that");
	sl_set_reply_done(peer, workload, text.text);
}
