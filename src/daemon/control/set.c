/*
 * set - checks, one event to the policy, one reply
 */
#include "daemon/control/set.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/step.h"
#include "daemon/core/fields.h"
#include "daemon/jobs/jobs.h"
#include "daemon/link/bounds.h"
#include "daemon/report/events.h"
#include "daemon/state/client.h"
#include "daemon/state/commit.h"
#include "daemon/state/drive.h"
#include "daemon/workloads/meters.h"
#include "daemon/workloads/park.h"
#include "daemon/workloads/refusal.h"
#include "daemon/workloads/workload.h"

#define WHICH_ALL                                                                       \
	(SL_SET_REQUEST | SL_SET_LIMIT | SL_SET_PRIORITY | SL_SET_FLAGS | SL_SET_WAIT | \
		SL_SET_WARM | SL_SET_DETACH | SL_SET_GRACE | SL_SET_COMPUTE_REQUEST |   \
		SL_SET_COMPUTE_LIMIT | SL_SET_CHAIN)

struct sl_workload *sl_set_changeable(struct sl_peer *peer, uint64_t id, const char *name,
	const char *verb, struct sl_error *text)
{
	struct sl_workload *workload = NULL;

	if (sl_workload_pick(peer->daemon, peer->uid, id, name, &workload, text) !=
		SL_WORKLOAD_OK)
		return NULL;
	if (sl_bounds_may_change(peer, workload))
		return workload;
	sl_peer_reject(peer, SL_REJECT_DENIED,
		"%s belongs to user %u; only that user, root and sluiced's own user may "
		"%s it",
		workload->name, (unsigned int)workload->uid, verb);
	return NULL;
}

/* --- SET ---------------------------------------------------------------------------------- */

static void answer(struct sl_peer *peer, const struct sl_workload *workload, bool ok,
	uint32_t reason, const char *text)
{
	const struct sl_admission *said = &peer->daemon->admission;
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SET_REPLY);
	msg.set_reply.ok = ok;
	msg.set_reply.reason = reason;
	sl_wire_str(msg.set_reply.text, sizeof(msg.set_reply.text), text);
	if (workload) {
		msg.set_reply.workload = workload->id;
		msg.set_reply.request_bytes = workload->request_bytes;
		msg.set_reply.limit_bytes = workload->limit_bytes;
		msg.set_reply.priority_biased = (uint32_t)((int64_t)workload->priority +
							   (int64_t)SL_PRIORITY_BIAS);
		msg.set_reply.flags = workload->flags;
		memcpy(msg.set_reply.name, workload->name, sizeof(msg.set_reply.name));
		if (msg.set_reply.ok)
			msg.set_reply.over_bytes = said->over_bytes;
	}
	sl_peer_send(peer, &msg);
}

static const char *mistake_in(const struct sl_msg_set *set)
{
	if (!(set->which & WHICH_ALL) || set->which & ~WHICH_ALL)
		return "nothing that can be set was named; give --request, --limit, "
		       "--priority, --swap, --oom-first, --on-collision, --longest-wait, "
		       "--warm-after, --detach-after or --idle-grace";
	if (set->which & SL_SET_REQUEST &&
		!sl_field_is_amount(set->request_kind, set->request_value))
		return "--request is no amount; write a fraction up to 1, or bytes like "
		       "8GiB";
	if (set->which & SL_SET_LIMIT &&
		!sl_field_is_amount(set->limit_kind, set->limit_value))
		return "--limit is no amount; write a fraction up to 1, or bytes like "
		       "8GiB";
	if (set->which & SL_SET_PRIORITY && !sl_field_is_priority(set->priority_biased))
		return "--priority must be from -1000 to 1000";
	if (set->which & SL_SET_FLAGS &&
		set->flags &
			~(SL_WORKLOAD_NO_SWAP | SL_WORKLOAD_OOM_FIRST | SL_RUN_CHAIN))
		return "a flag that this sluiced does not know; install sluice and "
		       "sluiced of one version";
	if (set->which & SL_SET_CHAIN && set->flags & SL_RUN_CHAIN &&
		!sl_chain_is_valid(set->flags >> SL_RUN_CHAIN_SHIFT))
		return "--on-collision is no chain of resolvers; write swap, wait, "
		       "priority or fail, or several of them";
	if (set->which & SL_SET_WARM && set->warm_after_ms > SL_FIELD_TIME_MAX_MS)
		return "--warm-after is too long; write at most 30d, or 0 for never";
	if (set->which & SL_SET_DETACH && set->detach_after_ms > SL_FIELD_TIME_MAX_MS)
		return "--detach-after is too long; write at most 30d, or 0 for never";
	if (set->which & SL_SET_GRACE && set->idle_grace_ms > SL_FIELD_TIME_MAX_MS)
		return "--idle-grace is too long; write at most 30d, or --keep-resident";
	return NULL;
}

/* Memory that other devices may have registered must stay in place: swapping cannot be turned on.
 * A new share must go with the one that stays. */
static const char *mistake_for(
	const struct sl_workload *workload, const struct sl_msg_set *set)
{
	if (workload->flags & SL_WORKLOAD_RDMA && set->which & SL_SET_FLAGS &&
		!(set->flags & SL_WORKLOAD_NO_SWAP))
		return "its memory may be registered with other devices and cannot be "
		       "moved; start it without --rdma";
	return sl_field_compute_mistake(set->which & SL_SET_COMPUTE_REQUEST
						? set->compute_request_pm
						: workload->compute.request_pm,
		set->which & SL_SET_COMPUTE_LIMIT ? set->compute_limit_pm
						  : workload->compute.limit_pm);
}

static struct sl_event event_of(const struct sl_peer *peer,
	const struct sl_workload *workload, const struct sl_msg_set *set)
{
	struct sl_event event = {.type = SL_EVENT_WORKLOAD_SET};

	event.workload_set.workload = workload->id;
	event.workload_set.which = set->which;
	event.workload_set.request = (struct sl_amount){
		.kind = set->request_kind, .value = set->request_value};
	event.workload_set.limit =
		(struct sl_amount){.kind = set->limit_kind, .value = set->limit_value};
	event.workload_set.priority =
		(int32_t)((int64_t)set->priority_biased - (int64_t)SL_PRIORITY_BIAS);
	event.workload_set.flags =
		set->flags | (workload->flags & (SL_WORKLOAD_RDMA | SL_WORKLOAD_OBSERVED |
							SL_WORKLOAD_LATE));
	event.workload_set.wait_max = (sl_ns)set->longest_wait_ms * SL_MS;
	event.workload_set.warm_after = set->warm_after_ms * SL_MS;
	event.workload_set.detach_after = set->detach_after_ms * SL_MS;
	event.workload_set.idle_grace = set->idle_grace_ms * SL_MS;
	event.workload_set.compute_pm = set->compute_request_pm;
	event.workload_set.bounds = sl_bounds_of_peer(peer);
	return event;
}

/*
 * The limit up to which reports are believed if it is above the new one, else 0. A lower limit
 * takes no memory away, so some reports may exceed it: those to a later daemon, and the first ones
 * of clients that outlived an earlier daemon.
 */
static uint64_t former_limit(
	const struct sl_workload *workload, const struct sl_admission *said)
{
	uint64_t bytes = said->over_bytes ? said->limit_bytes + said->over_bytes : 0;

	sl_list_foreach (link, &workload->clients) {
		const struct sl_client *client =
			SL_LIST_ENTRY(link, struct sl_client, link);

		if (client->outlived && !client->known)
			bytes = sl_max_u64(bytes, sl_max_u64(workload->limit_bytes,
							  workload->former_limit_bytes));
	}
	return bytes > said->limit_bytes ? bytes : 0;
}

/* Copies what the policy accepted into the workload, and so into the journal. */
static void take_over(struct sl_workload *workload, const struct sl_msg_set *set,
	const struct sl_event *event, const struct sl_admission *said)
{
	uint32_t which = event->workload_set.which;

	if (which & SL_SET_REQUEST)
		workload->request = event->workload_set.request;
	if (which & SL_SET_LIMIT)
		workload->limit = event->workload_set.limit;
	if (which & SL_SET_PRIORITY)
		workload->priority = event->workload_set.priority;
	workload->flags = sl_flags_set(workload->flags, which, event->workload_set.flags);
	if (which & SL_SET_WAIT)
		workload->wait_max = event->workload_set.wait_max;
	if (which & SL_SET_WARM)
		workload->warm_after = event->workload_set.warm_after;
	if (which & SL_SET_DETACH)
		workload->detach_after = event->workload_set.detach_after;
	if (which & SL_SET_GRACE)
		workload->idle_grace = event->workload_set.idle_grace;
	if (which & SL_SET_COMPUTE_REQUEST)
		workload->compute.request_pm = set->compute_request_pm;
	if (which & SL_SET_COMPUTE_LIMIT)
		workload->compute.limit_pm = set->compute_limit_pm;
	workload->former_limit_bytes = former_limit(workload, said);
	workload->request_bytes = said->request_bytes;
	workload->limit_bytes = said->limit_bytes;
}

static void tell_change(const struct sl_peer *peer, const struct sl_workload *workload,
	struct sl_node_because because)
{
	because.workload = workload->id;
	because.other_bytes = (uint64_t)peer->uid + 1;
	sl_events_add_of(peer->daemon, &because, peer->pid);
}

/* One event for each kind of change; of the flags, for those that changed. */
static void tell_changes(const struct sl_peer *peer, const struct sl_workload *workload,
	uint32_t which, uint32_t flags_before)
{
	uint32_t turned = workload->flags ^ flags_before;
	bool no_swap = workload->flags & SL_WORKLOAD_NO_SWAP;
	bool oom_first = workload->flags & SL_WORKLOAD_OOM_FIRST;

#define TELL(NAME, ...)             \
	tell_change(peer, workload, \
		(struct sl_node_because){.reason = SL_REASON_##NAME, __VA_ARGS__})
	if (which & (SL_SET_REQUEST | SL_SET_LIMIT))
		TELL(CHANGED, .bytes = workload->request_bytes,
			.available_bytes = workload->limit_bytes);
	if (which & SL_SET_PRIORITY)
		TELL(CHANGED_PRIORITY, .bytes = (uint64_t)(int64_t)workload->priority);
	if (which & SL_SET_WAIT)
		TELL(CHANGED_WAIT, .span = workload->wait_max
						   ? workload->wait_max
						   : peer->daemon->config.longest_wait);
	if (turned & SL_WORKLOAD_NO_SWAP && no_swap)
		TELL(CHANGED_SWAP_OFF);
	else if (turned & SL_WORKLOAD_NO_SWAP)
		TELL(CHANGED_SWAP_ON);
	if (turned & SL_WORKLOAD_OOM_FIRST && oom_first)
		TELL(CHANGED_OOM_FIRST);
	else if (turned & SL_WORKLOAD_OOM_FIRST)
		TELL(CHANGED_OOM_WAIT);
	if (which & SL_SET_CHAIN)
		TELL(CHANGED_CHAIN);
	if (which & SL_SET_WARM && workload->warm_after)
		TELL(CHANGED_WARM, .span = workload->warm_after);
	else if (which & SL_SET_WARM)
		TELL(CHANGED_WARM_OFF);
	if (which & SL_SET_DETACH && workload->detach_after)
		TELL(CHANGED_DETACH, .span = workload->detach_after);
	else if (which & SL_SET_DETACH)
		TELL(CHANGED_DETACH_OFF);
	if (which & SL_SET_GRACE)
		TELL(CHANGED_GRACE, .span = workload->idle_grace);
#undef TELL
}

/* A workload that a user parked has given up its part; rules are checked when it resumes. */
static bool rules_allow(struct sl_daemon *daemon, const struct sl_workload *workload,
	const struct sl_msg_set *set, const struct sl_event *event, struct sl_error *text)
{
	uint32_t which = event->workload_set.which;
	struct sl_wishes wishes = sl_jobs_wishes_of(workload);

	if (which & SL_SET_CHAIN && !sl_field_chain_fits(event->workload_set.flags,
					    daemon->config.resolvers, text))
		return false;
	if (!(which & (SL_SET_REQUEST | SL_SET_LIMIT | SL_SET_FLAGS |
			      SL_SET_COMPUTE_REQUEST)) ||
		(sl_park_is_put_away(workload) && !sl_jobs_keeps_run(workload)))
		return true;
	if (which & SL_SET_REQUEST)
		wishes.request = event->workload_set.request;
	if (which & SL_SET_LIMIT)
		wishes.limit = event->workload_set.limit;
	if (which & SL_SET_FLAGS)
		wishes.flags = event->workload_set.flags;
	if (which & SL_SET_COMPUTE_REQUEST)
		wishes.compute_request_pm = set->compute_request_pm;
	return sl_jobs_may_have(daemon, workload, &wishes, text);
}

/* A parked workload's requests are not guaranteed, so they were not checked against the others'. */
static void remark_on_parked(
	const struct sl_workload *workload, uint32_t which, struct sl_error *text)
{
	if (which & (SL_SET_REQUEST | SL_SET_COMPUTE_REQUEST) &&
		workload->park != SL_PARK_NOT)
		sl_error_set(text,
			"%s is parked: whether its requests fit beside those of the "
			"others is seen when it is resumed, and it waits until they do",
			workload->name);
}

static void remark_on_warm(
	const struct sl_workload *workload, uint32_t which, struct sl_error *text)
{
	const struct sl_error before = *text;

	if (which & (SL_SET_WARM | SL_SET_GRACE) && workload->warm_after &&
		workload->flags & SL_WORKLOAD_NO_SWAP)
		sl_error_set(text,
			"%s%sthe memory of %s is not to be moved, so it never goes to "
			"the host; %s",
			before.text, before.text[0] ? "; " : "", workload->name,
			workload->flags & SL_WORKLOAD_RDMA
				? "other devices may have registered it (--rdma)"
				: "--swap on of 'sluice set' changes that");
}

void sl_set_set(struct sl_peer *peer, const struct sl_msg_set *set)
{
	struct sl_daemon *daemon = peer->daemon;
	const char *mistake = mistake_in(set);
	struct sl_error text = {0};
	struct sl_workload *workload;
	uint32_t flags_before;
	struct sl_event event;

	workload = sl_set_changeable(peer, set->workload, set->name, "change", &text);
	if (peer->doomed)
		return;
	if (workload && !mistake)
		mistake = mistake_for(workload, set);
	if (!workload || mistake) {
		answer(peer, workload, false,
			workload ? SL_REASON_NONE : SL_REASON_UNKNOWN_WORKLOAD,
			workload ? mistake : text.text);
		return;
	}
	event = event_of(peer, workload, set);
	if (!rules_allow(daemon, workload, set, &event, &text)) {
		answer(peer, workload, false, SL_REASON_NONE, text.text);
		return;
	}
	daemon->admission = (struct sl_admission){.workload = workload->id};
	sl_drive(daemon, &event);
	if (!daemon->admission.admitted) {
		sl_refusal_of_set(daemon, workload, &text);
		if (sl_peer_may_log(daemon, SL_LOG_INFO))
			sl_info("left %s as it is, against user %u: %s", workload->name,
				(unsigned int)peer->uid, text.text);
		answer(peer, workload, false, daemon->admission.reason, text.text);
		return;
	}
	flags_before = workload->flags;
	take_over(workload, set, &event, &daemon->admission);
	sl_meters_changed(daemon);
	sl_jobs_workload_changed(daemon, workload);
	sl_step(D_SET);
	tell_changes(peer, workload, set->which, flags_before);
	sl_peer_hold(peer);
	sl_commit_soon(daemon);
	remark_on_parked(workload, set->which, &text);
	if (set->which & SL_SET_LIMIT)
		sl_refusal_add_cut(workload, &text);
	remark_on_warm(workload, set->which, &text);
	answer(peer, workload, true, SL_REASON_NONE, text.text);
}

/* --- STOP --------------------------------------------------------------------------------- */

void sl_set_stop(struct sl_peer *peer, const struct sl_msg_stop *stop)
{
	struct sl_daemon *daemon = peer->daemon;
	struct sl_error text = {0};
	struct sl_workload *workload;
	union sl_msg msg;
	sl_ns grace;

	workload = sl_set_changeable(peer, stop->workload, stop->name, "stop", &text);
	if (peer->doomed)
		return;
	sl_wire_init(&msg, SL_MSG_STOP_REPLY);
	if (workload && workload->is_claimed) {
		sl_error_set(&text,
			"%s runs in a container (%.120s); stop it where that was started",
			workload->name, workload->command);
		workload = NULL;
	}
	if (!workload) {
		msg.stop_reply.reason = SL_REASON_UNKNOWN_WORKLOAD;
		sl_wire_str(msg.stop_reply.text, sizeof(msg.stop_reply.text), text.text);
		sl_peer_send(peer, &msg);
		return;
	}
	msg.stop_reply.ok = 1;
	msg.stop_reply.workload = workload->id;
	memcpy(msg.stop_reply.name, workload->name, sizeof(msg.stop_reply.name));
	if (sl_peer_may_log(peer->daemon, SL_LOG_INFO))
		sl_info("stopping %s for process %d of user %u", workload->name,
			(int)peer->pid, (unsigned int)peer->uid);
	workload->stop_asker = (uint64_t)peer->uid + 1;
	grace = stop->grace_ms == UINT32_MAX ? daemon->config.stop_grace
					     : (sl_ns)stop->grace_ms * SL_MS;
	/* A job's task ends for good, as if the job had ended it. */
	if (workload->task)
		msg.stop_reply.processes =
			sl_jobs_workload_stopped(daemon, workload->id, grace);
	else
		msg.stop_reply.processes = sl_workload_stop(daemon, workload, grace);
	/* A later daemon must go on with the stop, so the answer waits for the journal. */
	sl_peer_hold(peer);
	sl_commit_soon(daemon);
	sl_jobs_hold(peer, workload->id);
	sl_peer_send(peer, &msg);
}
