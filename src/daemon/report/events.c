/*
 * events - a ring, and cursors that read it
 *
 * The event of serial s is in slot s % room. A follower is a cursor. Followers that have sent all
 * events are in one list, `waiting`; an event appends that list to `behind` in O(1). A source of
 * low priority then serves a few of them per turn of the loop.
 */
#include "daemon/report/events.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "daemon/link/peer.h"
#include "daemon/link/share.h"
#include "daemon/state/client.h"
#include "daemon/state/workload.h"

/* Followers served in one turn of the loop. */
#define FOLLOWERS_PER_TURN 8

struct sl_events {
	struct sl_daemon *daemon;
	struct sl_event_kept *ring;
	uint64_t began;             /* serial of this daemon's first one */
	uint64_t room, first, next; /* first: the oldest that a ring of any size had */
	uint64_t dropped;           /* since the last kept one */
	struct sl_link waiting, behind; /* peers: follow_link */
	sd_event_source *pump;
	bool pumping;
};

/* Log lines per reason and second; a queue of thousands must not become a log of thousands. */
#define LINES_PER_SECOND 5

static void log_line(struct sl_daemon *daemon, const struct sl_reason_facts *facts)
{
	int level = sl_reason_level(facts->reason);
	sl_ns second = sl_clock_now() / SL_S;
	char text[512];

	if (facts->reason >= SL_REASONS || !sl_log_on(level))
		return;
	if (daemon->notes[facts->reason].second != second) {
		if (daemon->notes[facts->reason].dropped)
			sl_log(level, "%s: %u more of these",
				sl_reason_name(facts->reason),
				daemon->notes[facts->reason].dropped);
		daemon->notes[facts->reason].second = second;
		daemon->notes[facts->reason].lines = 0;
		daemon->notes[facts->reason].dropped = 0;
	}
	if (daemon->notes[facts->reason].lines++ >= LINES_PER_SECOND) {
		daemon->notes[facts->reason].dropped++;
		return;
	}
	sl_log(level, "%s: %s", sl_reason_name(facts->reason),
		sl_reason_sentence(facts, text, sizeof(text)));
}

/* --- the ring ----------------------------------------------------------------------------- */

struct sl_events_span sl_events_span(const struct sl_daemon *daemon)
{
	const struct sl_events *events = daemon->events;
	struct sl_events_span span = {0};

	if (!events)
		return span;
	span.next = events->next;
	span.oldest =
		events->next - sl_min_u64(events->next - events->first, events->room);
	return span;
}

const struct sl_event_kept *sl_events_at(const struct sl_daemon *daemon, uint64_t serial)
{
	struct sl_events_span span = sl_events_span(daemon);

	if (serial < span.oldest || serial >= span.next)
		return NULL;
	return &daemon->events->ring[serial % daemon->events->room];
}

void sl_events_resize(struct sl_daemon *daemon)
{
	struct sl_events *events = daemon->events;
	struct sl_events_span span = sl_events_span(daemon);
	uint64_t room = daemon->config.events_kept;
	struct sl_event_kept *ring;

	if (!events || room == events->room)
		return;
	ring = calloc(room, sizeof(*ring));
	if (!ring) {
		sl_warning("no memory for %llu events; %llu are kept as before",
			(unsigned long long)room, (unsigned long long)events->room);
		return;
	}
	if (span.next - span.oldest > room)
		span.oldest = span.next - room;
	for (uint64_t serial = span.oldest; serial < span.next; serial++)
		ring[serial % room] = events->ring[serial % events->room];
	/* Events that the old ring had already lost must not look kept in a larger one. */
	events->first = sl_max_u64(events->first, span.oldest);
	free(events->ring);
	events->ring = ring;
	events->room = room;
}

static uint64_t realtime_ms(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / SL_MS;
}

struct sl_event_kept sl_events_fill(
	const struct sl_daemon *daemon, const struct sl_node_because *because, pid_t pid)
{
	const struct sl_workload *subject =
		sl_map_get(&daemon->workloads, because->workload);
	const struct sl_workload *other = sl_map_get(&daemon->workloads, because->other);
	const struct sl_client *client = sl_map_get(&daemon->clients, because->client);
	struct sl_event_kept event = {
		.realtime_ms = realtime_ms(),
		.because = *because,
		.pid = (uint32_t)(pid > 0  ? pid
				  : client ? client->pid
					   : 0),
		.uid = subject ? subject->uid : UINT32_MAX,
	};

	if (subject)
		memcpy(event.name, subject->name, sizeof(event.name));
	/* The policy does not know users. */
	if (subject && because->reason == SL_REASON_STOP_ASKED)
		event.because.other_bytes = subject->stop_asker;
	if (other)
		memcpy(event.other_name, other->name, sizeof(event.other_name));
	return event;
}

/* Events of damage or of an end are always kept. */
static bool is_ordinary(uint32_t reason)
{
	switch (sl_reason_kind(reason)) {
	case SL_REASON_KIND_STOP:
	case SL_REASON_KIND_EXCEPT: return false;
	default:
		return reason != SL_REASON_STARTED && reason != SL_REASON_ENDED &&
		       !sl_reason_is_change(reason);
	}
}

static bool is_too_many(struct sl_daemon *daemon, const struct sl_node_because *because)
{
	struct sl_workload *workload = sl_map_get(&daemon->workloads, because->workload);
	sl_ns second = sl_clock_now() / SL_S;

	if (!workload || !is_ordinary(because->reason))
		return false;
	if (workload->events_second != second) {
		workload->events_second = second;
		workload->events_count = 0;
	}
	return workload->events_count++ >= SL_EVENTS_PER_SECOND;
}

static void wake_followers(struct sl_events *events)
{
	struct sl_link *first = events->waiting.next, *last = events->waiting.prev;

	if (!sl_list_is_empty(&events->waiting)) {
		/* Append all of `waiting` to `behind`. */
		sl_list_init(&events->waiting);
		first->prev = events->behind.prev;
		events->behind.prev->next = first;
		last->next = &events->behind;
		events->behind.prev = last;
	}
	if (events->pumping || sl_list_is_empty(&events->behind))
		return;
	events->pumping = true;
	(void)sd_event_source_set_enabled(events->pump, SD_EVENT_ON);
}

void sl_events_add_of(
	struct sl_daemon *daemon, const struct sl_node_because *because, pid_t pid)
{
	struct sl_event_kept event = sl_events_fill(daemon, because, pid);
	struct sl_events *events = daemon->events;
	struct sl_reason_facts facts = {
		.reason = event.because.reason,
		.gpu = because->gpu,
		.name = event.name,
		.other = event.other_name,
		.bytes = because->bytes,
		.available_bytes = because->available_bytes,
		.other_bytes = event.because.other_bytes,
		.span = because->span,
		.pid = event.pid,
	};

	/* For the metrics: counts all events, also those too many to keep. */
	if (facts.reason < SL_REASONS)
		daemon->reasons[facts.reason]++;
	log_line(daemon, &facts);
	if (!events || because->reason >= SL_REASONS)
		return;
	if (is_too_many(daemon, because)) {
		events->dropped++;
		return;
	}
	event.serial = events->next++;
	event.lost = events->dropped;
	events->dropped = 0;
	events->ring[event.serial % events->room] = event;
	wake_followers(events);
}

void sl_events_add(struct sl_daemon *daemon, const struct sl_node_because *because)
{
	sl_events_add_of(daemon, because, 0);
}

struct sl_node_because sl_events_of_action(const struct sl_action *action)
{
	switch (action->type) {
	case SL_ACTION_PARKED:
		return (struct sl_node_because){
			.reason = action->parked.returns ? SL_REASON_DETACHED_IDLE
							 : SL_REASON_PARKED,
			.workload = action->parked.workload,
			.bytes = action->parked.bytes};
	case SL_ACTION_RESUMED:
		return (struct sl_node_because){.reason = SL_REASON_RESUMED,
			.workload = action->resumed.workload,
			.bytes = action->resumed.request_bytes};
	case SL_ACTION_LEFT:
		return (struct sl_node_because){.reason = SL_REASON_LEFT,
			.workload = action->left.workload,
			.client = action->left.client,
			.bytes = action->left.bytes};
	default:
		return (struct sl_node_because){.reason = action->note.reason,
			.gpu = action->note.gpu,
			.workload = action->note.workload,
			.other = action->note.other,
			.client = action->note.client,
			.bytes = action->note.bytes,
			.available_bytes = action->note.available_bytes,
			.other_bytes = action->note.other_bytes,
			.span = action->note.span};
	}
}

/* --- sending ------------------------------------------------------------------------------ */

void sl_events_row(const struct sl_event_kept *event, bool current, union sl_msg *msg)
{
	const struct sl_node_because *because = &event->because;

	sl_wire_init(msg, SL_MSG_EVENT_ROW);
	msg->event_row.serial = event->serial;
	msg->event_row.realtime_ms = event->realtime_ms;
	msg->event_row.reason = because->reason;
	msg->event_row.gpu = because->gpu;
	msg->event_row.workload = because->workload;
	msg->event_row.other = because->other;
	msg->event_row.bytes = because->bytes;
	msg->event_row.available_bytes = because->available_bytes;
	msg->event_row.other_bytes = because->other_bytes;
	msg->event_row.span_ms = because->span / SL_MS;
	msg->event_row.pid = event->pid;
	msg->event_row.uid = event->uid;
	msg->event_row.current = current;
	msg->event_row.lost = (uint32_t)sl_min_u64(UINT32_MAX, event->lost);
	memcpy(msg->event_row.name, event->name, sizeof(msg->event_row.name));
	memcpy(msg->event_row.other_name, event->other_name,
		sizeof(msg->event_row.other_name));
}

/* "17" is also the workload of this number. */
static bool is_number(const char *name, uint64_t id)
{
	char digits[24];

	if (!isdigit((unsigned char)name[0]) || !id)
		return false;
	(void)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)id);
	return strcmp(digits, name) == 0;
}

bool sl_events_concerns(const struct sl_event_kept *event, const char *name)
{
	return !name[0] || strcmp(event->name, name) == 0 ||
	       strcmp(event->other_name, name) == 0 ||
	       is_number(name, event->because.workload) ||
	       is_number(name, event->because.other);
}

void sl_events_begin(struct sl_peer *peer, const struct sl_msg_events *asked)
{
	struct sl_events_span span = sl_events_span(peer->daemon);
	struct sl_peer_list *list = &peer->list;

	*list = (struct sl_peer_list){.active = true,
		.kind = SL_STREAM_EVENTS,
		.serial = sl_max_u64(span.oldest, asked->after + 1),
		.until = span.next,
		.last = asked->last,
		.follows = asked->flags & SL_EVENTS_FOLLOW};
	memcpy(list->name, asked->name, sizeof(list->name));
	/* An `after` of an earlier daemon does not count as a loss. */
	if (asked->after && peer->daemon->events &&
		asked->after >= peer->daemon->events->began &&
		asked->after + 1 < span.oldest)
		list->lost = span.oldest - asked->after - 1;
	list->serial = sl_min_u64(list->serial, span.next);
	if (asked->last) {
		/* Go back from the newest until `last` matches are found, then forward. */
		list->workload = list->serial;
		list->serial = span.next;
		list->rewinds = true;
	}
}

/* Goes back for one turn; true when it is done. */
static bool rewind_some(const struct sl_daemon *daemon, struct sl_peer_list *list)
{
	uint64_t lowest = sl_max_u64(list->workload, sl_events_span(daemon).oldest);

	for (int i = 0; i < SL_EVENTS_SCAN; i++) {
		if (list->serial <= lowest || list->last == 0)
			return true;
		list->serial--;
		if (sl_events_concerns(sl_events_at(daemon, list->serial), list->name))
			list->last--;
	}
	return false;
}

/* The next kept event that the peer wants, or NULL: *outcome says why. */
static const struct sl_event_kept *next_kept(const struct sl_daemon *daemon,
	struct sl_peer_list *list, enum sl_stream_outcome *outcome)
{
	struct sl_events_span span = sl_events_span(daemon);

	if (list->serial < span.oldest) {
		list->lost += span.oldest - list->serial;
		list->serial = span.oldest;
	}
	for (int i = 0; i < SL_EVENTS_SCAN; i++) {
		const struct sl_event_kept *event;

		if (list->serial >= (list->ended ? span.next : list->until)) {
			*outcome = list->ended ? SL_STREAM_WAIT : SL_STREAM_END;
			return NULL;
		}
		event = sl_events_at(daemon, list->serial++);
		if (sl_events_concerns(event, list->name))
			return event;
	}
	*outcome = SL_STREAM_AGAIN;
	return NULL;
}

enum sl_stream_outcome sl_events_next(struct sl_peer *peer, union sl_msg *msg)
{
	enum sl_stream_outcome outcome = SL_STREAM_ROW;
	struct sl_peer_list *list = &peer->list;
	const struct sl_event_kept *event;

	if (list->rewinds) {
		list->rewinds = !rewind_some(peer->daemon, list);
		if (list->rewinds)
			return SL_STREAM_AGAIN;
	}
	event = next_kept(peer->daemon, list, &outcome);
	if (event) {
		sl_events_row(event, false, msg);
		msg->event_row.lost = (uint32_t)sl_min_u64(
			UINT32_MAX, msg->event_row.lost + list->lost);
		list->lost = 0;
		return SL_STREAM_ROW;
	}
	/* A follower is told where the kept ones end. */
	if (outcome == SL_STREAM_END && list->follows) {
		list->ended = true;
		sl_wire_init(msg, SL_MSG_LIST_END);
		msg->list_end.rows = list->rows;
		return SL_STREAM_ROW;
	}
	if (outcome == SL_STREAM_WAIT && !sl_list_is_linked(&peer->follow_link))
		sl_list_push_tail(&peer->daemon->events->waiting, &peer->follow_link);
	return outcome;
}

/* --- followers ---------------------------------------------------------------------------- */

static int on_pump(sd_event_source *source, void *context)
{
	struct sl_events *events = context;
	struct sl_daemon *daemon = events->daemon;
	struct sl_share_turn turn = sl_share_begin();

	for (int i = 0; i < FOLLOWERS_PER_TURN && !sl_list_is_empty(&events->behind);
		i++) {
		struct sl_peer *peer =
			SL_LIST_ENTRY(events->behind.next, struct sl_peer, follow_link);

		sl_list_unlink(&peer->follow_link);
		sl_peer_list_wake(peer);
		if (sl_share_turn_is_over(turn.begin))
			break;
	}
	if (sl_list_is_empty(&events->behind)) {
		events->pumping = false;
		(void)sd_event_source_set_enabled(events->pump, SD_EVENT_OFF);
	}
	daemon->up->settle(daemon);
	sl_share_note(daemon, SL_SHARE_FOLLOW, &turn);
	return 0;
}

int sl_events_init(struct sl_daemon *daemon)
{
	struct sl_events *events = calloc(1, sizeof(*events));
	int r;

	if (!events)
		return sl_err_origin(-ENOMEM);
	daemon->events = events;
	events->daemon = daemon;
	events->room = daemon->config.events_kept;
	events->began = events->first = events->next = realtime_ms() * 1000;
	sl_list_init(&events->waiting);
	sl_list_init(&events->behind);
	events->ring = calloc(events->room, sizeof(*events->ring));
	if (!events->ring)
		return sl_err_origin(-ENOMEM);
	r = sd_event_add_defer(daemon->loop, &events->pump, on_pump, events);
	if (r >= 0)
		r = sd_event_source_set_priority(events->pump, SL_PRIORITY_FOLLOW);
	if (r >= 0)
		r = sd_event_source_set_enabled(events->pump, SD_EVENT_OFF);
	return r < 0 ? sl_err_origin(r) : 0;
}

void sl_events_fini(struct sl_daemon *daemon)
{
	struct sl_events *events = daemon->events;

	if (!events)
		return;
	daemon->events = NULL;
	events->pump = sd_event_source_disable_unref(events->pump);
	free(events->ring);
	free(events);
}
