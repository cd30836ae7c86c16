/*
 * obey - turns orders in a pod's annotations into SET and PARK of its workload
 *
 * After each answer of sluiced the workload's state is compared with the orders, so a restart needs
 * nothing that was stored. A refusal is reported on the pod, and the order is tried again later.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/kubernetes/node/holders.h"
#include "cluster/kubernetes/claims/order.h"
#include "cluster/kubernetes/node/story_internal.h"
#include "policy/node.h"

#define AGAIN_AFTER (15 * SL_S)

/* --- pods --------------------------------------------------------------------------------- */

static struct sl_kube_pod *find(const struct sl_kube_story *story, const char *uid)
{
	sl_list_foreach (link, &story->pods) {
		struct sl_kube_pod *pod = SL_LIST_ENTRY(link, struct sl_kube_pod, link);

		if (strcmp(pod->uid, uid) == 0)
			return pod;
	}
	return NULL;
}

void sl_kube_obey_free_pod(struct sl_kube_pod *pod)
{
	sl_list_unlink(&pod->link);
	sl_kube_cancel(&pod->call);
	json_decref(pod->claims);
	free(pod);
}

static struct sl_kube_pod *add(struct sl_kube_story *story, const json_t *object)
{
	struct sl_kube_pod *pod = calloc(1, sizeof(*pod));

	if (!pod)
		return NULL;
	sl_wire_str(pod->uid, sizeof(pod->uid),
		sl_kube_text_at(object, "metadata", "uid", NULL));
	sl_wire_str(pod->name, sizeof(pod->name),
		sl_kube_text_at(object, "metadata", "name", NULL));
	sl_wire_str(pod->namespace, sizeof(pod->namespace),
		sl_kube_text_at(object, "metadata", "namespace", NULL));
	pod->story = story;
	sl_list_init(&pod->link);
	sl_list_push_tail(&story->pods, &pod->link);
	return pod;
}

/* Reports a refusal once per text. */
static void refuse(struct sl_kube_story *story, const struct sl_kube_pod *pod,
	const char *reason, struct sl_error *told, const struct sl_error *err)
{
	if (strcmp(told->text, err->text) == 0)
		return;
	*told = *err;
	if (err->text[0])
		sl_kube_story_tell(story, pod, reason, true, err->text);
}

static void take(struct sl_kube_story *story, const json_t *object)
{
	struct sl_kube_pod *pod =
		find(story, sl_kube_text_at(object, "metadata", "uid", NULL));
	const json_t *limit = sl_kube_at(
		object, "metadata", "annotations", SL_KUBE_LIMIT_ANNOTATION, NULL);
	json_t *claims = sl_kube_order_claims(object);
	struct sl_error err = {0};

	/* Most pods of a node use no claim and have no units. */
	if (!pod && (story->node->units ? sl_holders_asks(object)
					: json_array_size(claims) > 0))
		pod = add(story, object);
	if (!pod) {
		json_decref(claims);
		return;
	}
	json_decref(pod->claims);
	pod->claims = claims;
	pod->has_limit = json_is_string(limit);
	if (pod->has_limit && strcmp(pod->limit, json_string_value(limit)) != 0)
		pod->knows_bound = false;
	sl_wire_str(pod->limit, sizeof(pod->limit),
		pod->has_limit ? json_string_value(limit) : "");
	if (!pod->has_limit)
		pod->limit_told.text[0] = '\0';
	pod->is_parked = sl_kube_order_park(object, &err);
	refuse(story, pod, "ParkRefused", &pod->park_told, &err);
	sl_kube_story_hurry(story);
}

void sl_kube_obey_pod(void *context, const struct sl_kube_event *event)
{
	struct sl_kube_story *story = context;
	struct sl_kube_pod *pod;

	switch (event->kind) {
	case SL_KUBE_ADDED:
	case SL_KUBE_MODIFIED: take(story, event->object); break;
	case SL_KUBE_DELETED:
		pod = find(
			story, sl_kube_text_at(event->object, "metadata", "uid", NULL));
		if (!pod)
			break;
		sl_kube_teller_forget(story->teller, pod->uid);
		sl_kube_obey_free_pod(pod);
		break;
	case SL_KUBE_TROUBLE:
		sl_warning("the node's pods cannot be watched: %s", event->error);
		break;
	case SL_KUBE_SYNCED:
		/* The first comparison waits for the pods. */
		if (!story->is_whole && !story->node->units)
			sl_kube_node_sync(story->node);
		sl_kube_story_hurry(story);
		break;
	}
}

/* The first pod by name that uses the claim and has `what`; NULL: none. */
static struct sl_kube_pod *first(
	const struct sl_kube_holder *holder, bool (*has)(const struct sl_kube_pod *pod))
{
	struct sl_kube_pod *found = NULL;

	sl_list_foreach (link, &holder->story->pods) {
		struct sl_kube_pod *pod = SL_LIST_ENTRY(link, struct sl_kube_pod, link);

		if (sl_kube_story_uses(pod, holder) && (!has || has(pod)) &&
			(!found || strcmp(pod->name, found->name) < 0))
			found = pod;
	}
	return found;
}

static bool has_limit(const struct sl_kube_pod *pod)
{
	return pod->has_limit;
}

static bool is_parked(const struct sl_kube_pod *pod)
{
	return pod->is_parked;
}

/* --- limit -------------------------------------------------------------------------------- */

static void on_namespace(void *context, const struct sl_kube_answer *answer)
{
	struct sl_kube_pod *pod = context;
	struct sl_error err = {0};

	if (answer->error[0])
		sl_error_set(&err, "the bounds of the namespace are not known: %s",
			answer->error);
	else
		pod->knows_bound =
			sl_kube_order_bound(answer->body, &pod->bound_bytes, &err);
	if (pod->knows_bound)
		sl_kube_story_hurry(pod->story);
	else
		refuse(pod->story, pod, "LimitRefused", &pod->limit_told, &err);
}

/* An order must not exceed the bounds of a claim. */
static bool knows_bound(struct sl_kube_pod *pod, sl_ns now)
{
	char path[SL_SHARE_NAME_BYTES + 32];

	if (pod->knows_bound || pod->call || now < pod->bound_again_at)
		return pod->knows_bound;
	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s", pod->namespace);
	pod->bound_again_at = now + AGAIN_AFTER;
	if (sl_kube_call(pod->story->node->kube,
		    &(struct sl_kube_request){
			    .path = path, .done = on_namespace, .context = pod},
		    &pod->call) < 0)
		sl_debug("the client has ended");
	return false;
}

static void on_limit(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	struct sl_kube_holder *holder = context;
	struct sl_kube_pod *pod = first(holder, has_limit);
	struct sl_error text = {0};

	if (!msg) {
		holder->limit.is_open = false;
		return;
	}
	if (msg->set_reply.ok) {
		holder->limit.found = msg->set_reply.limit_bytes;
		holder->limit.again_at = SL_NS_NEVER;
		sl_kube_story_hurry(holder->story);
		return;
	}
	sl_error_set(&text, SL_KUBE_LIMIT_ANNOTATION ": %s: %s", pod ? pod->limit : "",
		msg->set_reply.text);
	if (pod)
		refuse(holder->story, pod, "LimitRefused", &pod->limit_told, &text);
}

static void set_limit(struct sl_kube_holder *holder, uint64_t limit, sl_ns now)
{
	uint64_t found = holder->uses[0].row.limit_bytes;
	struct sl_kube_asked *asked = &holder->limit;
	union sl_msg msg;

	if (asked->is_open || limit == found)
		return;
	if (asked->value == limit && asked->found == found && now < asked->again_at)
		return;
	sl_wire_init(&msg, SL_MSG_SET);
	msg.set.workload = holder->workload;
	msg.set.which = SL_SET_LIMIT;
	msg.set.limit_kind = SL_AMOUNT_BYTES;
	msg.set.limit_value = limit;
	msg.set.priority_biased = SL_PRIORITY_BIAS;
	*asked = (struct sl_kube_asked){
		.value = limit, .found = found, .again_at = now + AGAIN_AFTER};
	asked->is_open = sl_line_call(holder->story->node->line, &msg, SL_MSG_SET_REPLY,
				 false, on_limit, holder) == 0;
}

static void obey_limit(struct sl_kube_holder *holder, sl_ns now)
{
	const struct sl_share *share = &holder->share;
	struct sl_kube_pod *pod = first(holder, has_limit);
	/* Without an annotation the claim's own limit; a whole GPU has no other. */
	uint64_t limit = share->limit                  ? share->limit
			 : share->memory != UINT64_MAX ? share->memory
						       : 0;
	struct sl_error err = {0};

	if (!holder->uses[0].is_there)
		return;
	if (pod && !knows_bound(pod, now))
		return;
	if (pod && !sl_kube_order_limit(pod->limit, holder->uses[0].row.request_bytes,
			   sl_kube_node_own_bytes(holder->story->node, share),
			   pod->bound_bytes, &limit, &err)) {
		refuse(holder->story, pod, "LimitRefused", &pod->limit_told, &err);
		return;
	}
	if (limit)
		set_limit(holder, limit, now);
	if (pod && limit == holder->uses[0].row.limit_bytes)
		pod->limit_told.text[0] = '\0';
}

/* --- park --------------------------------------------------------------------------------- */

static bool is_away(const struct sl_kube_holder *holder)
{
	for (uint32_t i = 0; i < holder->share.count; i++) {
		if (holder->uses[i].is_there &&
			sl_wire_is_parked(holder->uses[i].row.residency))
			return true;
	}
	return false;
}

static void on_park(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	struct sl_kube_holder *holder = context;
	struct sl_kube_pod *pod = first(holder, is_parked);
	struct sl_error text = {0};

	if (!msg) {
		holder->park.is_open = false;
		return;
	}
	if (msg->park_reply.ok) {
		holder->park_refusal.text[0] = '\0';
		sl_kube_story_hurry(holder->story);
		return;
	}
	pod = pod ? pod : first(holder, NULL);
	sl_error_set(&text, "%s", msg->park_reply.text);
	if (holder->park.value)
		holder->park_refusal = text;
	if (pod)
		refuse(holder->story, pod, "ParkRefused", &pod->park_told, &text);
}

static void obey_park(struct sl_kube_holder *holder, sl_ns now)
{
	bool wanted = first(holder, is_parked) != NULL;
	struct sl_kube_asked *asked = &holder->park;
	union sl_msg msg;

	if (!wanted)
		holder->park_refusal.text[0] = '\0';
	/* What the node moves by itself it brings back, too. */
	if (wanted == is_away(holder) || asked->is_open ||
		holder->uses[0].row.flags & SL_USE_MOVING)
		return;
	/* Repeat a refused order later, a new one at once. */
	if (asked->value == wanted && now < asked->again_at)
		return;
	sl_wire_init(&msg, SL_MSG_PARK);
	msg.park.workload = holder->workload;
	msg.park.parked = wanted;
	*asked = (struct sl_kube_asked){.value = wanted, .again_at = now + AGAIN_AFTER};
	asked->is_open = sl_line_call(holder->story->node->line, &msg, SL_MSG_PARK_REPLY,
				 false, on_park, holder) == 0;
}

void sl_kube_obey(struct sl_kube_holder *holder, sl_ns now)
{
	if (!holder->workload || !first(holder, NULL))
		return;
	obey_limit(holder, now);
	obey_park(holder, now);
}
