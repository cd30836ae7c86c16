/*
 * retell - turns events of a workload into Events on its pods
 *
 * The sentences are those of sluice why, with names and remedies of Kubernetes.
 */
#include <stdio.h>
#include <string.h>

#include "cluster/kubernetes/node/story_internal.h"
#include "policy/words/reason.h"

#define WHY_EVERY (10 * SL_S)
/* Questions in a row that must find it waiting before the wait is reported. */
#define WAITS_LEAST 2

void sl_kube_story_tell(struct sl_kube_story *story, const struct sl_kube_pod *pod,
	const char *reason, bool is_warning, const char *message)
{
	sl_kube_teller_tell(story->teller, &(struct sl_kube_told){
						   .namespace = pod->namespace,
						   .pod = pod->name,
						   .uid = pod->uid,
						   .reason = reason,
						   .message = message,
						   .is_warning = is_warning,
						   .realtime_ms = sl_kube_story_now_ms(),
					   });
}

/* The Event's reason for each kind of event; NULL: it is not reported. */
static const char *word_of(uint32_t reason)
{
	static const struct {
		uint32_t reason;
		const char *word;
	} words[] = {
		{SL_REASON_OVER_LIMIT, "LimitExceeded"},
		{SL_REASON_EVICTED_FOR, "SwappedOut"},
		{SL_REASON_EVICTED_IDLE, "Warm"},
		{SL_REASON_RESTORED, "SwappedIn"},
		{SL_REASON_PARK_BEGINS, "Parking"},
		{SL_REASON_PARKED, "Parked"},
		{SL_REASON_RESUMED, "Resumed"},
		{SL_REASON_MOVED, "Moved"},
		{SL_REASON_MOVE_STAYS, "MoveFailed"},
		{SL_REASON_CHANGED, "Changed"},
		{SL_REASON_SERVED_AFTER_WAIT, "GotMemory"},
		{SL_REASON_LOST_FOR, "GpuLost"},
		{SL_REASON_EVICT_BUSY, "SwapDelayed"},
		{SL_REASON_EVICT_CAPTURE, "SwapDelayed"},
		{SL_REASON_EVICT_NO_HOST, "SwapDelayed"},
		{SL_REASON_EVICT_FAILED, "SwapDelayed"},
		{SL_REASON_RESTORE_FAILED, "SwapDelayed"},
		{SL_REASON_ENDED, NULL},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(words); i++) {
		if (words[i].reason == reason)
			return words[i].word;
	}
	switch (sl_reason_kind(reason)) {
	case SL_REASON_KIND_DENY:
	case SL_REASON_KIND_EXCEPT: return "OutOfMemory";
	case SL_REASON_KIND_STOP: return "Stopped";
	case SL_REASON_KIND_WAIT: return "Waiting";
	default: return sl_reason_explains(reason) ? "GpuMemory" : NULL;
	}
}

static bool is_warning(uint32_t reason)
{
	enum sl_reason_kind kind = sl_reason_kind(reason);

	return kind == SL_REASON_KIND_DENY || kind == SL_REASON_KIND_EXCEPT ||
	       kind == SL_REASON_KIND_STOP;
}

/* The other side, as the pod's owner may name it. */
static void name_other(const struct sl_kube_holder *holder,
	const struct sl_msg_event_row *row, char *name, size_t size)
{
	const struct sl_kube_holder *other =
		sl_kube_story_holder(holder->story, row->other);
	const struct sl_share *share = other ? &other->share : NULL;

	if (!share)
		(void)snprintf(name, size, "%s", row->other_name);
	else if (strcmp(share->namespace, holder->share.namespace) == 0)
		(void)snprintf(
			name, size, "%s", share->pod[0] ? share->pod : share->name);
	else
		(void)snprintf(name, size, "%s/%s", share->namespace,
			share->pod[0] ? share->pod : share->name);
}

/* Replaces the remedies in the sentences by those of Kubernetes. */
static void translate(const char *sentence, const char *pod, char *buf, size_t size)
{
	static const char resume[] = "`sluice resume`", why[] = "`sluice why ";
	const char *at = strstr(sentence, resume);

	if (at) {
		(void)snprintf(buf, size, "%.*s`kubectl sluice resume %s`%s",
			(int)(at - sentence), sentence, pod, at + sizeof(resume) - 1);
		return;
	}
	at = strstr(sentence, why);
	if (at)
		(void)snprintf(buf, size, "%.*s`kubectl sluice why %s",
			(int)(at - sentence), sentence, at + sizeof(why) - 1);
	else
		(void)snprintf(buf, size, "%s", sentence);
}

void sl_kube_retell(
	const struct sl_kube_holder *holder, const struct sl_msg_event_row *row)
{
	struct sl_kube_story *story = holder->story;
	const char *word = row->reason < SL_REASONS ? word_of(row->reason) : NULL;
	char other[2 * SL_SHARE_NAME_BYTES], sentence[1536], message[2048];

	if (!word)
		return;
	name_other(holder, row, other, sizeof(other));
	sl_list_foreach (link, &story->pods) {
		const struct sl_kube_pod *pod =
			SL_LIST_ENTRY(link, struct sl_kube_pod, link);
		struct sl_reason_facts facts = {.reason = row->reason,
			.gpu = row->gpu,
			.name = pod->name,
			.other = other,
			.bytes = row->bytes,
			.available_bytes = row->available_bytes,
			.other_bytes = row->other_bytes,
			.span = row->span_ms * SL_MS,
			.pid = row->pid};

		if (!sl_kube_story_uses(pod, holder))
			continue;
		translate(sl_reason_sentence(&facts, sentence, sizeof(sentence)),
			pod->name, message, sizeof(message));
		sl_kube_teller_tell(story->teller,
			&(struct sl_kube_told){
				.namespace = pod->namespace,
				.pod = pod->name,
				.uid = pod->uid,
				.reason = word,
				.message = message,
				.is_warning = is_warning(row->reason),
				.is_earlier = row->realtime_ms < story->started_ms,
				.serial = row->current ? 0 : row->serial,
				.realtime_ms = row->current ? sl_kube_story_now_ms()
							    : row->realtime_ms,
			});
	}
}

/* Takes the first reason of its wait; the others follow from it. */
static void on_why(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	struct sl_kube_holder *holder = context;

	if (!msg) {
		holder->asks_why = false;
		return;
	}
	if (msg->head.type != SL_MSG_EVENT_ROW || !msg->event_row.current ||
		!holder->asks_why ||
		sl_reason_kind(msg->event_row.reason) != SL_REASON_KIND_WAIT)
		return;
	holder->asks_why = false;
	sl_kube_retell(holder, &msg->event_row);
}

static bool waits(const struct sl_kube_holder *holder)
{
	for (uint32_t i = 0; i < holder->share.count; i++) {
		const struct sl_kube_use *use = &holder->uses[i];

		if (use->is_there && (use->row.waiting || use->row.waited_ms))
			return true;
	}
	return false;
}

void sl_kube_retell_wait(struct sl_kube_holder *holder, sl_ns now)
{
	union sl_msg msg;

	holder->waits = waits(holder) ? holder->waits + 1 : 0;
	if (holder->waits < WAITS_LEAST || holder->asks_why || now < holder->why_at)
		return;
	sl_wire_init(&msg, SL_MSG_WHY);
	msg.why.workload = holder->workload;
	holder->why_at = now + WHY_EVERY;
	holder->asks_why = sl_line_call(holder->story->node->line, &msg, SL_MSG_EVENT_ROW,
				   true, on_why, holder) == 0;
}
