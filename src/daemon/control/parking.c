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
#include "daemon/state/drive.h"
#include "daemon/state/workload.h"
#include "daemon/workloads/park.h"
#include "daemon/workloads/workload.h"

static void reply_park(struct sl_peer *peer, const struct sl_workload *workload,
	uint32_t reason, const char *text)
{
	const struct sl_daemon *daemon = peer->daemon;
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_PARK_REPLY);
	msg.park_reply.ok = reason == SL_REASON_PARKED_FOR_JOB ||
			    reason == SL_REASON_RESUME_WAITS_TIME ||
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

/* The requests of others leave room for its own. */
static bool has_room(const struct sl_workload *workload)
{
	for (uint32_t i = 0; i < workload->gpu_count; i++) {
		struct sl_node_gpu_view gpu =
			sl_node_gpu(workload->daemon->node, workload->gpus[i]);

		if (gpu.requests_bytes + workload->request_bytes > gpu.shareable_bytes)
			return false;
	}
	return !(sl_workload_gpus(workload) &
		 sl_workload_compute_full(workload, workload->compute.request_pm));
}

static void keep_time(void *context, const struct sl_node_because *because)
{
	struct sl_node_because *time = context;

	if (because->reason == SL_REASON_RESUME_WAITS_TIME)
		*time = *because;
}

/* If others' compute requests keep it from coming back, the answer says so. */
static void reply_resumed(struct sl_peer *peer, const struct sl_workload *workload)
{
	struct sl_node_because time = {.reason = SL_REASON_NONE};
	char text[512] = "";

	sl_node_why(peer->daemon->node, workload->id, keep_time, &time);
	if (time.reason != SL_REASON_NONE)
		(void)sl_reason_sentence(&(struct sl_reason_facts){.reason = time.reason,
						 .gpu = time.gpu,
						 .name = workload->name,
						 .bytes = time.bytes,
						 .available_bytes = time.available_bytes},
			text, sizeof(text));
	reply_park(peer, workload, time.reason, text);
}

void sl_parking_park(struct sl_peer *peer, const struct sl_msg_park *park)
{
	struct sl_daemon *daemon = peer->daemon;
	const char *verb = park->parked ? "park" : "resume";
	struct sl_error text = {0}, queue = {0};
	struct sl_wishes has;
	struct sl_workload *workload =
		sl_set_changeable(peer, park->workload, park->name, verb, &text);

	if (peer->doomed)
		return;
	if (!workload) {
		reply_park(peer, NULL, SL_REASON_UNKNOWN_WORKLOAD, text.text);
		return;
	}
	has = sl_jobs_wishes_of(workload);
	/* A user decides: it waits in the queue no more. */
	if (workload->park == SL_PARK_DETACHED && !sl_jobs_call_off(daemon, workload))
		sl_debug("%s is coming back already", workload->name);
	if (sl_jobs_is_moving(workload)) {
		sl_error_set(&text, "%s is being moved; try again once it is there",
			workload->name);
		reply_park(peer, workload, SL_REASON_MOVING, text.text);
		return;
	}
	if (!park->parked && workload->park == SL_PARK_PARKED && !has_room(workload) &&
		sl_jobs_resume_anywhere(daemon, workload))
		sl_debug("the queue brings %s back", workload->name);
	if (!park->parked && sl_jobs_bring_back(daemon, workload->id, &text)) {
		if (!text.text[0] && sl_park_is_put_away(workload))
			sl_error_set(
				&text, "%s comes back to another GPU", workload->name);
		reply_park(peer, workload,
			text.text[0] ? SL_REASON_PARKED_FOR_JOB : SL_REASON_NONE,
			text.text);
		return;
	}
	if (!park->parked && sl_park_is_put_away(workload) &&
		!sl_jobs_may_have(daemon, workload, &has, &text)) {
		reply_park(peer, workload, SL_REASON_NONE, text.text);
		return;
	}
	if (!sl_park_workload(daemon, workload,
		    park->parked ? SL_PARK_PARKED : SL_PARK_RESUMING, &text)) {
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
	reply_resumed(peer, workload);
}

void sl_parking_move(struct sl_peer *peer, const struct sl_msg_move *move)
{
	struct sl_daemon *daemon = peer->daemon;
	struct sl_error text = {0};
	struct sl_workload *workload =
		sl_set_changeable(peer, move->workload, move->name, "move", &text);
	bool ok;

	if (peer->doomed)
		return;
	if (!workload) {
		reply_park(peer, NULL, SL_REASON_UNKNOWN_WORKLOAD, text.text);
		return;
	}
	if (sl_workload_gpus(workload) == move->gpus) {
		sl_error_set(&text, "%s is there already", workload->name);
		reply_park(peer, workload, SL_REASON_MOVED_ALREADY, text.text);
		return;
	}
	ok = sl_jobs_move(daemon, workload, move->gpus, &text);
	if (sl_peer_may_log(daemon, SL_LOG_INFO))
		sl_info("%smove of %s for process %d of user %u%s%s", ok ? "" : "no ",
			workload->name, (int)peer->pid, (unsigned int)peer->uid,
			ok ? "" : ": ", text.text);
	if (ok)
		sl_peer_hold(peer);
	reply_park(peer, workload, SL_REASON_NONE, text.text);
}

/* --- for lack of work ------------------------------------------------------------------------ */

static void detach(struct sl_workload *workload)
{
	struct sl_daemon *daemon = workload->daemon;
	struct sl_error text = {0};

	if (workload->park != SL_PARK_NOT)
		return;
	if (sl_park_workload(daemon, workload, SL_PARK_DETACHED, &text)) {
		workload->stays = false;
		sl_jobs_workload_changed(daemon, workload);
		return;
	}
	/* The policy asks again every few seconds. */
	if (!workload->stays)
		sl_events_add(daemon,
			&(struct sl_node_because){.reason = daemon->admission.reason,
				.workload = workload->id,
				.gpu = daemon->admission.gpu,
				.bytes = daemon->admission.wanted_bytes,
				.available_bytes = daemon->admission.available_bytes});
	workload->stays = true;
}

/* Where there is room it comes back at once. Otherwise the queue knows what others may lose for it;
 * where the queue does not count it, it comes back once there is room. */
static void call_back(struct sl_workload *workload)
{
	struct sl_daemon *daemon = workload->daemon;
	struct sl_wishes has = sl_jobs_wishes_of(workload);
	struct sl_error text = {0};
	bool may;

	if (workload->park != SL_PARK_DETACHED)
		return;
	may = sl_jobs_may_have(daemon, workload, &has, &text);
	if (may && has_room(workload)) {
		if (!sl_jobs_call_off(daemon, workload))
			return;
	} else if (sl_jobs_call_back(daemon, workload)) {
		return;
	}
	if (!may || !sl_park_workload(daemon, workload, SL_PARK_RESUMING, &text))
		sl_debug("%s does not come back yet: %s", workload->name, text.text);
}

static void open_idle(struct sl_letter *letter)
{
	struct sl_workload *workload = SL_CONTAINER_OF(letter, struct sl_workload, idle);

	if (workload->over)
		return;
	if (workload->calls)
		call_back(workload);
	else
		detach(workload);
}

void sl_parking_idle(struct sl_daemon *daemon, uint64_t id, bool calls)
{
	struct sl_workload *workload = sl_map_get(&daemon->workloads, id);

	if (!workload)
		return;
	workload->calls = calls;
	sl_drive_post(daemon, &workload->idle, open_idle);
}
