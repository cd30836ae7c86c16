/*
 * why - copies the policy's reasons at once, and searches the events in turns of the loop
 *
 * The search goes back from the newest event, so its cost depends on how far it must look. It takes
 * a bounded number of steps per turn.
 */
#include "daemon/control/why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs/jobs.h"
#include "daemon/report/events.h"
#include "daemon/state/drive.h"
#include "daemon/workloads/workload.h"

struct why {
	struct sl_daemon *daemon;
	uint64_t workload; /* 0: ended, known by name */
	char name[64];
	uint64_t at;   /* the serial below which to search next */
	bool searched; /* the search is over */
	uint32_t current, current_told, count, told;
	uint64_t found[SL_WHY_EVENTS];            /* serials, newest first */
	struct sl_event_kept now[SL_WHY_CURRENT]; /* `current` of them are used */
};

static void note_current(void *context, const struct sl_node_because *because)
{
	struct why *why = context;
	struct sl_node_because said = *because;

	said.reason = sl_jobs_reason(why->daemon, because->workload, because->reason);
	if (why->current < SL_WHY_CURRENT)
		why->now[why->current++] = sl_events_fill(why->daemon, &said, 0);
}

void sl_why_begin(struct sl_peer *peer, const struct sl_msg_why *asked)
{
	struct sl_daemon *daemon = peer->daemon;
	struct why *why = calloc(1, sizeof(*why));
	struct sl_workload *workload = NULL;
	struct sl_error ignored = {0};

	if (!why) {
		sl_peer_reject(peer, SL_REJECT_FULL, "sluiced is out of memory");
		return;
	}
	peer->list = (struct sl_peer_list){
		.active = true, .kind = SL_STREAM_WHY, .state = why, .free_state = free};
	why->daemon = daemon;
	why->at = sl_events_span(daemon).next;
	memcpy(why->name, asked->name, sizeof(why->name));
	if (asked->workload)
		(void)snprintf(why->name, sizeof(why->name), "%llu",
			(unsigned long long)asked->workload);
	/* No single workload is meant (it has ended, or several users have one of that name, but
	 * not the caller): search by name. */
	if (sl_workload_pick(daemon, peer->uid, asked->workload, asked->name, &workload,
		    &ignored) != SL_WORKLOAD_OK)
		return;
	why->workload = workload->id;
	sl_drive_time(daemon);
	sl_node_why(daemon->node, workload->id, note_current, why);
	if (sl_jobs_may_begin_on(daemon, workload))
		note_current(
			why, &(struct sl_node_because){.reason = SL_REASON_BEGINS_LATE,
				     .gpu = workload->gpus[0],
				     .workload = workload->id});
}

/* Is the event about the workload, and not about another one that names it? */
static bool is_about(const struct why *why, const struct sl_event_kept *event)
{
	struct sl_event_kept subject;

	if (why->workload)
		return event->because.workload == why->workload;
	subject = *event;
	subject.other_name[0] = '\0';
	subject.because.other = 0;
	return why->name[0] && sl_events_concerns(&subject, why->name);
}

/* False: the next turn searches on. */
static bool search(struct why *why)
{
	uint64_t oldest = sl_events_span(why->daemon).oldest;

	for (int i = 0; i < SL_EVENTS_SCAN; i++) {
		const struct sl_event_kept *event;

		if (why->at <= oldest || why->count == SL_WHY_EVENTS)
			return true;
		event = sl_events_at(why->daemon, --why->at);
		if (event && sl_reason_explains(event->because.reason) &&
			is_about(why, event))
			why->found[why->count++] = event->serial;
	}
	return false;
}

enum sl_stream_outcome sl_why_next(struct sl_peer *peer, union sl_msg *msg)
{
	struct why *why = peer->list.state;

	if (why->current_told < why->current) {
		sl_events_row(&why->now[why->current_told++], true, msg);
		return SL_STREAM_ROW;
	}
	if (!why->searched) {
		why->searched = search(why);
		if (!why->searched)
			return SL_STREAM_AGAIN;
	}
	while (why->told < why->count) {
		const struct sl_event_kept *event =
			sl_events_at(why->daemon, why->found[why->count - ++why->told]);

		if (!event)
			continue; /* the ring has overwritten it meanwhile */
		sl_events_row(event, false, msg);
		return SL_STREAM_ROW;
	}
	return SL_STREAM_END;
}
