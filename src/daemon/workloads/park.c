/*
 * park - see the header
 */
#include "daemon/workloads/park.h"

#include "daemon/state/commit.h"
#include "daemon/state/drive.h"
#include "daemon/workloads/refusal.h"
#include "daemon/workloads/workload.h"

bool sl_park_propose(struct sl_daemon *daemon, struct sl_workload *workload,
	const struct sl_event *event, struct sl_error *text)
{
	char sentence[512];

	daemon->admission = (struct sl_admission){.workload = workload->id};
	sl_drive(daemon, event);
	if (daemon->admission.admitted)
		return true;
	/* Every other reason has a sentence of its own, which names the remedy. */
	if (daemon->admission.reason != SL_REASON_UNKNOWN_WORKLOAD)
		sl_error_set(text, "%s",
			sl_refusal_sentence(
				daemon, workload->name, sentence, sizeof(sentence)));
	else
		sl_refusal_of_set(daemon, workload, text);
	return false;
}

static struct sl_event event_of(
	const struct sl_workload *workload, enum sl_park_state to, uint32_t gpus)
{
	struct sl_event event = {0};

	if (to == SL_PARK_RESUMING) {
		event.type = SL_EVENT_WORKLOAD_RESUME;
		event.workload_resume.workload = workload->id;
		event.workload_resume.gpu_mask = gpus;
	} else {
		event.type = SL_EVENT_WORKLOAD_PARK;
		event.workload_park.workload = workload->id;
		event.workload_park.returns = to == SL_PARK_DETACHED;
	}
	return event;
}

bool sl_park_is_put_away(const struct sl_workload *workload)
{
	return workload->park != SL_PARK_NOT && workload->park != SL_PARK_RESUMING;
}

static bool change(struct sl_daemon *daemon, struct sl_workload *workload,
	enum sl_park_state to, uint32_t gpus, struct sl_error *text)
{
	struct sl_event event = event_of(workload, to, gpus);
	enum sl_park_state before = workload->park;

	/* Set before the proposal, because RESUMED may come within it. */
	workload->park = to;
	if (sl_park_propose(daemon, workload, &event, text)) {
		sl_commit_soon(daemon);
		return true;
	}
	workload->park = before;
	return false;
}

bool sl_park_workload(struct sl_daemon *daemon, struct sl_workload *workload,
	enum sl_park_state to, struct sl_error *text)
{
	return change(daemon, workload, to, 0, text);
}

bool sl_park_resume_on(struct sl_daemon *daemon, struct sl_workload *workload,
	uint32_t gpus, struct sl_error *text)
{
	return change(daemon, workload, SL_PARK_RESUMING, gpus, text);
}

bool sl_park_is_done(const struct sl_daemon *daemon, const struct sl_workload *workload)
{
	for (uint32_t i = 0; i < workload->gpu_count; i++) {
		struct sl_node_use_view use =
			sl_node_use(daemon->node, workload->id, workload->gpus[i]);

		if (use.backing_bytes - use.held_bytes > use.evicted_bytes)
			return false;
	}
	return workload->park == SL_PARK_PARKED;
}

void sl_park_resumed(struct sl_daemon *daemon, uint64_t id)
{
	struct sl_workload *workload = sl_map_get(&daemon->workloads, id);

	if (!workload || workload->park == SL_PARK_NOT)
		return;
	workload->park = SL_PARK_NOT;
	sl_commit_soon(daemon);
}

void sl_park_again(struct sl_daemon *daemon, struct sl_workload *workload)
{
	struct sl_event park = event_of(workload,
		workload->park == SL_PARK_DETACHED ? SL_PARK_DETACHED : SL_PARK_PARKED,
		0);

	if (workload->park == SL_PARK_NOT)
		return;
	park.workload_park.recovered = 1;
	sl_drive(daemon, &park);
}

void sl_park_resume_again(struct sl_daemon *daemon, struct sl_workload *workload)
{
	struct sl_event resume = event_of(workload, SL_PARK_RESUMING, 0);

	if (workload->park != SL_PARK_RESUMING && workload->park != SL_PARK_MOVING)
		return;
	workload->park = SL_PARK_RESUMING;
	sl_drive(daemon, &resume);
}
