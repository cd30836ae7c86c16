/*
 * story - see the header
 *
 * One round asks sluiced for four lists, in this order: workloads of claims, their uses, their
 * swap, and events since the last round. Each event then finds its workload, and all figures of a
 * status are from nearly the same moment.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/kubernetes/claims/report.h"
#include "cluster/kubernetes/node/story_internal.h"
#include "daemon/report/tell.h"

#define ASK_EVERY   (1 * SL_S)
#define TELL_EVERY  (10 * SL_S)
#define WRITE_LEAST (2 * SL_S)
#define WRITE_MOST  (32 * SL_S)

uint64_t sl_kube_story_now_ms(void)
{
	return sl_tell_now_ms();
}

static void set_timer(struct sl_kube_story *story, sl_ns from_now)
{
	(void)sd_event_source_set_time_relative(story->timer, from_now / SL_US);
	(void)sd_event_source_set_enabled(story->timer, SD_EVENT_ONESHOT);
}

void sl_kube_story_hurry(struct sl_kube_story *story)
{
	if (story->is_asking)
		story->again = true;
	else
		set_timer(story, 0);
}

bool sl_kube_story_uses(
	const struct sl_kube_pod *pod, const struct sl_kube_holder *holder)
{
	if (strcmp(pod->namespace, holder->share.namespace) != 0)
		return false;
	if (holder->is_units)
		return strcmp(pod->name, holder->share.pod) == 0;
	for (size_t i = 0; i < json_array_size(pod->claims); i++) {
		const char *name = json_string_value(json_array_get(pod->claims, i));

		if (name && strcmp(name, holder->share.name) == 0)
			return true;
	}
	return false;
}

const struct sl_kube_holder *sl_kube_story_holder(
	const struct sl_kube_story *story, uint64_t workload)
{
	sl_list_foreach (link, &story->holders) {
		const struct sl_kube_holder *holder =
			SL_LIST_ENTRY(link, struct sl_kube_holder, link);

		if (workload && holder->workload == workload)
			return holder;
	}
	return NULL;
}

/* --- status.devices ----------------------------------------------------------------------- */

/* The device of the slice that is sluiced's GPU of that number; "": it is gone. */
static const char *device_of(const struct sl_kube_node *node, uint32_t number)
{
	for (size_t i = 0; i < node->gpu_count; i++) {
		if (node->gpus[i].number == number)
			return node->gpus[i].device;
	}
	return "";
}

static void fill(const struct sl_kube_holder *holder, const struct sl_kube_use *use,
	struct sl_kube_figures *out)
{
	uint32_t residency = use->row.residency;
	uint64_t used = use->row.backing_bytes + use->row.hidden_bytes;
	uint64_t whole = holder->share.memory == UINT64_MAX ? 0 : holder->share.memory;

	*out = (struct sl_kube_figures){.state = "gone",
		.on = "",
		.request_bytes = whole,
		.limit_bytes = holder->share.limit ? holder->share.limit : whole,
		.is_ready = holder->workload != 0};
	if (!use->is_there)
		return;
	out->state = sl_tell_shown(&use->row);
	out->on = device_of(holder->story->node, use->row.gpu);
	out->request_bytes = use->row.request_bytes;
	out->limit_bytes = use->row.limit_bytes;
	out->evicted_bytes = use->row.evicted_bytes;
	out->resident_bytes = used - sl_min_u64(used, out->evicted_bytes);
	out->park = use->row.flags & SL_USE_MOVING  ? SL_KUBE_NOT_PARKED
		    : residency == SL_WIRE_PARKED   ? SL_KUBE_IS_PARKED
		    : residency == SL_WIRE_PARKING  ? SL_KUBE_PARKING
		    : residency == SL_WIRE_RESUMING ? SL_KUBE_RESUMING
						    : SL_KUBE_NOT_PARKED;
	if (out->park == SL_KUBE_NOT_PARKED && holder->park_refusal.text[0]) {
		out->park = SL_KUBE_PARK_REFUSED;
		out->refusal = holder->park_refusal.text;
	}
}

static void on_written(void *context, const struct sl_kube_answer *answer)
{
	struct sl_kube_holder *holder = context;

	if (!answer->error[0]) {
		json_decref(holder->written);
		holder->written = holder->writing;
		holder->writing = NULL;
		holder->backoff.tries = 0;
		return;
	}
	json_decref(holder->writing);
	holder->writing = NULL;
	holder->is_gone = answer->status == 404;
	if (!holder->is_gone && !holder->backoff.tries)
		sl_warning("the status of claim %s/%s cannot be written: %s",
			holder->share.namespace, holder->share.name, answer->error);
	holder->retry_at = sl_clock_now() +
			   sl_kube_backoff_next(&holder->backoff, answer->retry_after_s);
}

static void write_status(struct sl_kube_holder *holder, json_t *devices)
{
	json_t *patch = sl_kube_report_patch(&holder->share, devices);
	char path[720];
	int r;

	(void)snprintf(path, sizeof(path),
		"/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims/%s/status"
		"?fieldManager=" SL_KUBE_FIELD_MANAGER "&force=true",
		holder->share.namespace, holder->share.name);
	r = sl_kube_call(holder->story->node->kube,
		&(struct sl_kube_request){.verb = SL_KUBE_APPLY,
			.path = path,
			.body = patch,
			.done = on_written,
			.context = holder},
		&holder->call);
	json_decref(patch);
	if (r == 0)
		holder->writing = json_incref(devices);
}

static void report(struct sl_kube_holder *holder, sl_ns now)
{
	struct sl_kube_figures figures[SL_SHARE_DEVICES];
	sl_ns since = now - holder->written_at;
	json_t *devices;
	bool is_urgent;
	char time[32];

	if (holder->is_units || holder->call || holder->is_gone || now < holder->retry_at)
		return;
	for (uint32_t i = 0; i < holder->share.count; i++)
		fill(holder, &holder->uses[i], &figures[i]);
	devices = sl_kube_report_devices(&holder->share,
		holder->story->node->options.name, figures, holder->written,
		sl_kube_time(sl_kube_story_now_ms(), time));
	if (!devices || json_equal(devices, holder->written)) {
		if (since > holder->span)
			holder->span = WRITE_LEAST;
		json_decref(devices);
		return;
	}
	is_urgent = sl_kube_report_is_urgent(holder->written, devices);
	if (since >= (is_urgent ? WRITE_LEAST : holder->span)) {
		holder->written_at = now;
		holder->span = is_urgent ? WRITE_LEAST
					 : sl_min_u64(WRITE_MOST, 2 * holder->span);
		write_status(holder, devices);
	}
	json_decref(devices);
}

/* --- answers of sluiced ------------------------------------------------------------------- */

/* gpu: the claim's, on which the workload began. */
static struct sl_kube_use *use_of(
	const struct sl_kube_story *story, uint64_t workload, uint32_t gpu)
{
	struct sl_kube_holder *holder =
		(struct sl_kube_holder *)sl_kube_story_holder(story, workload);
	const struct sl_kube_node *node = story->node;

	for (uint32_t i = 0; holder && i < holder->share.count; i++) {
		const struct sl_kube_node_gpu *of =
			sl_kube_node_gpu_of(node, holder->share.devices[i].device);

		if (of && of->number == gpu)
			return &holder->uses[i];
	}
	return NULL;
}

static struct sl_kube_holder *find(const struct sl_kube_story *story, const char *uid)
{
	sl_list_foreach (link, &story->holders) {
		struct sl_kube_holder *holder =
			SL_LIST_ENTRY(link, struct sl_kube_holder, link);

		if (strcmp(holder->share.uid, uid) == 0)
			return holder;
	}
	return NULL;
}

static void take_row(struct sl_kube_story *story, const union sl_msg *msg)
{
	struct sl_kube_holder *holder;
	struct sl_kube_use *use;

	switch (msg->head.type) {
	case SL_MSG_ENTRY_ROW:
		holder = find(story, msg->entry_row.key);
		if (holder)
			holder->workload = msg->entry_row.workload;
		break;
	case SL_MSG_USE_ROW:
		use = use_of(story, msg->use_row.workload, msg->use_row.first_gpu);
		if (use) {
			use->is_there = true;
			use->row = msg->use_row;
		}
		break;
	default: break;
	}
}

static void on_row(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	struct sl_kube_story *story = context;

	if (msg)
		take_row(story, msg);
	else if (err)
		story->has_failed = true;
}

static void settle(struct sl_kube_story *story)
{
	sl_ns now = sl_clock_now();

	sl_list_foreach (link, &story->holders) {
		struct sl_kube_holder *holder =
			SL_LIST_ENTRY(link, struct sl_kube_holder, link);

		sl_kube_obey(holder, now);
		report(holder, now);
		sl_kube_retell_wait(holder, now);
	}
}

static void on_event(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	struct sl_kube_story *story = context;
	const struct sl_kube_holder *holder;

	if (msg && msg->head.type == SL_MSG_EVENT_ROW) {
		story->serial = msg->event_row.serial;
		holder = sl_kube_story_holder(story, msg->event_row.workload);
		if (holder)
			sl_kube_retell(holder, &msg->event_row);
		return;
	}
	if (msg)
		return;
	story->is_asking = false;
	if (!err && !story->has_failed)
		settle(story);
	set_timer(story, story->again ? 0 : ASK_EVERY);
	story->again = false;
}

static int list(
	struct sl_kube_story *story, enum sl_list_what what, enum sl_msg_type rows)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = what;
	return sl_line_call(story->node->line, &msg, rows, true, on_row, story);
}

static int ask(struct sl_kube_story *story)
{
	union sl_msg msg;
	int r = list(story, SL_LIST_ENTRIES, SL_MSG_ENTRY_ROW);

	if (r == 0)
		r = list(story, SL_LIST_USES, SL_MSG_USE_ROW);
	sl_wire_init(&msg, SL_MSG_EVENTS);
	msg.events.after = story->serial;
	if (r == 0)
		r = sl_line_call(
			story->node->line, &msg, SL_MSG_EVENT_ROW, true, on_event, story);
	return r;
}

/* Events and orders need all claims and pods: those of an unknown one would be missed. */
static bool can_ask(const struct sl_kube_story *story)
{
	return story->is_whole && !sl_list_is_empty(&story->holders) &&
	       sl_kube_watch_is_synced(story->watch) && story->node->knows_gpus &&
	       sl_line_is_up(story->node->line);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_kube_story *story = context;

	set_timer(story, ASK_EVERY);
	if (story->is_asking || !can_ask(story))
		return 0;
	sl_list_foreach (link, &story->holders) {
		struct sl_kube_holder *holder =
			SL_LIST_ENTRY(link, struct sl_kube_holder, link);

		holder->workload = 0;
		for (uint32_t i = 0; i < holder->share.count; i++)
			holder->uses[i].is_there = false;
	}
	story->has_failed = false;
	story->is_asking = ask(story) == 0;
	return 0;
}

/* --- claims ------------------------------------------------------------------------------- */

static void free_holder(struct sl_kube_holder *holder)
{
	sl_list_unlink(&holder->link);
	sl_line_forget(holder->story->node->line, holder);
	sl_kube_cancel(&holder->call);
	json_decref(holder->written);
	json_decref(holder->writing);
	free(holder);
}

static struct sl_kube_holder *add(
	struct sl_kube_story *story, const struct sl_share *share)
{
	struct sl_kube_holder *holder = calloc(1, sizeof(*holder));

	if (!holder)
		return NULL;
	holder->story = story;
	holder->share = *share;
	holder->span = WRITE_LEAST;
	sl_list_init(&holder->link);
	sl_list_push_tail(&story->holders, &holder->link);
	sl_kube_story_hurry(story);
	return holder;
}

void sl_kube_story_claim(
	struct sl_kube_story *story, const json_t *claim, const struct sl_share *share)
{
	struct sl_kube_holder *holder = find(story, share->uid);

	if (!holder)
		holder = add(story, share);
	if (!holder)
		return;
	holder->share = *share;
	holder->is_gone = false;
	if (holder->call)
		return;
	json_decref(holder->written);
	holder->written = sl_kube_report_read(claim, story->node->options.name);
}

void sl_kube_story_units(struct sl_kube_story *story, const struct sl_share *share)
{
	struct sl_kube_holder *holder =
		find(story, share->uid) ? NULL : add(story, share);

	if (holder)
		holder->is_units = true;
}

void sl_kube_story_forget(struct sl_kube_story *story, const char *uid)
{
	struct sl_kube_holder *holder = find(story, uid);

	if (holder)
		free_holder(holder);
}

static void add_name(json_t *names, const char *namespace, const char *name)
{
	char key[2 * SL_SHARE_NAME_BYTES];

	if (!name || !sl_kube_is_name(namespace) || !sl_kube_is_name(name))
		return;
	(void)snprintf(key, sizeof(key), "%s/%s", namespace, name);
	(void)json_object_set_new(names, key, json_true());
}

json_t *sl_kube_story_claims(const struct sl_kube_story *story)
{
	json_t *names = sl_kube_watch_is_synced(story->watch) ? json_object() : NULL;

	if (!names)
		return NULL;
	sl_list_foreach (link, &story->holders) {
		const struct sl_kube_holder *holder =
			SL_LIST_ENTRY(link, struct sl_kube_holder, link);

		add_name(names, holder->share.namespace, holder->share.name);
	}
	sl_list_foreach (link, &story->pods) {
		const struct sl_kube_pod *pod =
			SL_LIST_ENTRY(link, struct sl_kube_pod, link);

		for (size_t i = 0; i < json_array_size(pod->claims); i++)
			add_name(names, pod->namespace,
				json_string_value(json_array_get(pod->claims, i)));
	}
	return names;
}

void sl_kube_story_is_whole(struct sl_kube_story *story)
{
	story->is_whole = true;
	sl_kube_story_hurry(story);
}

/* --- new and free ------------------------------------------------------------------------- */

int sl_kube_story_new(struct sl_kube_node *node, struct sl_kube_story **out)
{
	struct sl_kube_story *story = calloc(1, sizeof(*story));
	char query[SL_SHARE_NAME_BYTES + 64];
	int r;

	if (!story)
		return sl_err_origin(-ENOMEM);
	story->node = node;
	story->started_ms = sl_kube_story_now_ms();
	sl_list_init(&story->holders);
	sl_list_init(&story->pods);
	(void)snprintf(query, sizeof(query), "fieldSelector=spec.nodeName%%3D%s",
		node->options.name);
	r = sl_kube_teller_new(
		&story->teller, node->loop, node->kube, node->options.name, TELL_EVERY);
	if (r == 0)
		r = sd_event_add_time_relative(node->loop, &story->timer, CLOCK_MONOTONIC,
			ASK_EVERY / SL_US, 0, on_timer, story);
	if (r >= 0)
		r = sl_kube_watch_new(&story->watch, node->kube, "/api/v1/pods", query,
			sl_kube_obey_pod, story);
	if (r < 0) {
		(void)sl_kube_story_free(story);
		return sl_err_origin(r);
	}
	*out = story;
	return 0;
}

struct sl_kube_story *sl_kube_story_free(struct sl_kube_story *story)
{
	if (!story)
		return NULL;
	sl_line_forget(story->node->line, story);
	while (!sl_list_is_empty(&story->holders))
		free_holder(
			SL_LIST_ENTRY(story->holders.next, struct sl_kube_holder, link));
	while (!sl_list_is_empty(&story->pods))
		sl_kube_obey_free_pod(
			SL_LIST_ENTRY(story->pods.next, struct sl_kube_pod, link));
	story->watch = sl_kube_watch_free(story->watch);
	story->teller = sl_kube_teller_free(story->teller);
	story->timer = sd_event_source_disable_unref(story->timer);
	free(story);
	return NULL;
}
