/*
 * events - see the header
 */
#include "daemon/events.h"

#include <string.h>

#include "base/log.h"

/* Lines per reason and second; a queue of thousands must not turn into a log of thousands. */
#define LINES_PER_SECOND 5

/* Waiting and limits are what the daemon is for; what breaks a promise should be rare. */
static int level_of(uint32_t reason)
{
	switch (sl_reason_kind(reason)) {
	case SL_REASON_KIND_WAIT: return SL_LOG_DEBUG;
	case SL_REASON_KIND_DENY: return SL_LOG_DEBUG;
	case SL_REASON_KIND_NOTE: break;
	default: return SL_LOG_WARNING;
	}
	switch (reason) {
	case SL_REASON_STRAY:
	case SL_REASON_JOINED:
	case SL_REASON_LEFT:
	case SL_REASON_SERVED_AFTER_WAIT: return SL_LOG_DEBUG;
	case SL_REASON_STARTED:
	case SL_REASON_ENDED:
	case SL_REASON_CHANGED:
	case SL_REASON_DAEMON_STARTED: return SL_LOG_INFO;
	default: return SL_LOG_WARNING;
	}
}

static void log_line(struct sl_daemon *daemon, const struct sl_reason_facts *facts)
{
	int level = level_of(facts->reason);
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

void sl_events_add_of(
	struct sl_daemon *daemon, const struct sl_node_because *because, pid_t pid)
{
	const struct sl_workload *subject =
		sl_map_get(&daemon->workloads, because->workload);
	const struct sl_workload *other = sl_map_get(&daemon->workloads, because->other);
	struct sl_reason_facts facts = {
		.reason = because->reason,
		.gpu = because->gpu,
		.name = subject ? subject->name : NULL,
		.other = other ? other->name : NULL,
		.bytes = because->bytes,
		.available_bytes = because->available_bytes,
		.other_bytes = because->other_bytes,
		.span = because->span,
		.pid = (uint32_t)pid,
	};

	if (because->reason < SL_REASONS)
		daemon->reasons[because->reason]++;
	log_line(daemon, &facts);
}

void sl_events_add(struct sl_daemon *daemon, const struct sl_node_because *because)
{
	const struct sl_client *client = sl_map_get(&daemon->clients, because->client);

	sl_events_add_of(daemon, because, client ? client->pid : 0);
}
