/*
 * sync - a sluiced that has come is compared with the claims that the API server has
 *
 * sluiced keeps its workloads over its own restarts, not over the machine's, and a claim may have
 * gone while nobody was there to hear of it. First sluiced's list is taken, then the claims are
 * listed: so whatever is in the first and not in the second has no claim. What the kubelet prepares
 * meanwhile is not in the first.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/kubernetes/api.h"
#include "cluster/kubernetes/cdi.h"
#include "cluster/kubernetes/node_internal.h"
#include "cluster/kubernetes/story.h"
#include "cluster/kubernetes/parse.h"

#define CLAIMS_PATH "/apis/resource.k8s.io/v1/resourceclaims?limit=250"
#define PAGE_BYTES  (16u << 20)
/* In questions for GPUs, of 5 s. */
#define AGAIN      60
#define AGAIN_SOON 6

/* A claim's traces on this node. */
struct trace {
	char uid[SL_CDI_UID_MAX + 1];
	bool entry, file,
		claim; /* sluiced has it; it has a CDI file; the API server has it */
};

struct sl_kube_sync {
	struct sl_kube_node *node;
	struct sl_kube_call *call;

	struct trace *traces;
	size_t count, room;
};

static struct trace *find(const struct sl_kube_sync *sync, const char *uid)
{
	for (size_t i = 0; i < sync->count; i++) {
		if (strcmp(sync->traces[i].uid, uid) == 0)
			return &sync->traces[i];
	}
	return NULL;
}

/* NULL: no memory, or a key of somebody else's. */
static struct trace *trace_of(struct sl_kube_sync *sync, const char *uid)
{
	struct trace *trace = find(sync, uid);

	if (trace || !sl_cdi_is_uid(uid))
		return trace;
	if (sync->count == sync->room) {
		size_t room = 2 * sync->room + 16;
		struct trace *grown = realloc(sync->traces, room * sizeof(*grown));

		if (!grown)
			return NULL;
		sync->traces = grown;
		sync->room = room;
	}
	trace = &sync->traces[sync->count++];
	*trace = (struct trace){0};
	(void)snprintf(trace->uid, sizeof(trace->uid), "%s", uid);
	return trace;
}

void sl_kube_node_end_sync(struct sl_kube_node *node)
{
	struct sl_kube_sync *sync = node->sync;

	if (!sync)
		return;
	node->sync = NULL;
	sl_kube_cancel(&sync->call);
	if (node->line)
		sl_line_forget(node->line, sync);
	free(sync->traces);
	free(sync);
}

void sl_kube_node_sync_forget(struct sl_kube_node *node, const char *uid)
{
	struct trace *trace = node->sync ? find(node->sync, uid) : NULL;

	if (trace)
		trace->file = trace->entry = false;
}

/* --- what is to be done ------------------------------------------------------------------- */

static void on_told(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	struct sl_kube_node *node = context;

	if (!msg || msg->entry_reply.ok)
		return;
	sl_warning("a claim is not what it was: sluiced: %s", msg->entry_reply.text);
	node->sync_in = AGAIN_SOON;
}

/* Nobody waits for the answer: what fails is tried again. */
static void tell(struct sl_kube_node *node, const union sl_msg *msg)
{
	if (sl_line_call(node->line, msg, SL_MSG_ENTRY_REPLY, false, on_told, node) < 0)
		sl_debug("sluiced went away while it was told of claims");
}

static void add_again(struct sl_kube_node *node, const struct sl_share *share)
{
	struct sl_error err = {0};
	union sl_msg msg;

	if (sl_kube_node_entry(node, share, &msg, &err) < 0) {
		sl_warning("claim %s/%s: %s", share->namespace, share->name, err.text);
		return;
	}
	sl_info("claim %s/%s: sluiced is told of it again", share->namespace,
		share->name);
	tell(node, &msg);
}

static void end_those_without_claims(struct sl_kube_sync *sync)
{
	for (size_t i = 0; i < sync->count; i++) {
		const struct trace *trace = &sync->traces[i];
		struct sl_error err = {0};
		union sl_msg msg;

		if (trace->claim || !(trace->file || trace->entry))
			continue;
		sl_info("claim %s is gone, and so is what it had here", trace->uid);
		sl_kube_story_forget(sync->node->story, trace->uid);
		if (trace->file &&
			sl_cdi_remove(sync->node->options.cdi, trace->uid, &err) < 0)
			sl_warning("%s", err.text);
		sl_wire_init(&msg, SL_MSG_ENTRY_END);
		sl_wire_str(msg.entry_end.key, sizeof(msg.entry_end.key), trace->uid);
		tell(sync->node, &msg);
	}
}

/* --- what there is ------------------------------------------------------------------------ */

static void ask_for_claims(struct sl_kube_sync *sync, const char *from);

static void take_claim(struct sl_kube_sync *sync, const json_t *claim)
{
	struct trace *trace = find(sync, sl_kube_text_at(claim, "metadata", "uid", NULL));
	struct sl_error ignored = {0};
	struct sl_share share;
	int r;

	if (!trace)
		return;
	r = sl_share_read(claim, sync->node->options.name, &share, &ignored);
	/* It may have been placed elsewhere since. */
	trace->claim = r != SL_SHARE_NONE;
	/* A file without a workload: sluiced has forgotten it. */
	if (r == SL_SHARE_OK && trace->file && !trace->entry)
		add_again(sync->node, &share);
	if (r == SL_SHARE_OK && trace->file)
		sl_kube_story_claim(sync->node->story, claim, &share);
}

static void on_claims(void *context, const struct sl_kube_answer *answer)
{
	struct sl_kube_sync *sync = context;
	struct sl_kube_node *node = sync->node;
	const json_t *items = sl_kube_at(answer->body, "items", NULL);
	const char *from = sl_kube_text_at(answer->body, "metadata", "continue", NULL);

	if (answer->error[0] || !json_is_array(items)) {
		sl_warning("claims cannot be listed: %s",
			answer->error[0] ? answer->error : "the answer is no list");
		sl_kube_node_end_sync(node);
		node->sync_in = AGAIN_SOON;
		return;
	}
	for (size_t i = 0; i < json_array_size(items); i++)
		take_claim(sync, json_array_get(items, i));
	if (from[0]) {
		ask_for_claims(sync, from);
		return;
	}
	end_those_without_claims(sync);
	sl_kube_story_is_whole(sync->node->story);
	sl_kube_node_end_sync(sync->node);
}

/* from: where the page before ended, "" at first. */
static void ask_for_claims(struct sl_kube_sync *sync, const char *from)
{
	char path[2048];
	int r;

	(void)snprintf(path, sizeof(path), CLAIMS_PATH "%s%s",
		from[0] ? "&continue=" : "", from);
	r = sl_kube_call(sync->node->kube,
		&(struct sl_kube_request){.path = path,
			.done = on_claims,
			.context = sync,

			.max_bytes = PAGE_BYTES},
		&sync->call);
	if (r < 0) {
		sl_warning("claims cannot be listed: %s", strerror(-r));
		sl_kube_node_end_sync(sync->node);
	}
}

static void on_file(void *context, const char *uid)
{
	struct trace *trace = trace_of(context, uid);

	if (trace)
		trace->file = true;
}

static void on_entries(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	struct sl_kube_sync *sync = context;
	struct sl_error text = {0};

	if (msg) {
		struct trace *trace = msg->head.type == SL_MSG_ENTRY_ROW
					      ? trace_of(sync, msg->entry_row.key)
					      : NULL;

		if (trace)
			trace->entry = true;
		return;
	}
	/* The next sluiced is asked anew. */
	if (err) {
		sl_kube_node_end_sync(sync->node);
		return;
	}
	if (sl_cdi_list(sync->node->options.cdi, on_file, sync, &text) < 0)
		sl_warning("%s", text.text);
	if (sync->count) {
		ask_for_claims(sync, "");
		return;
	}
	sl_kube_story_is_whole(sync->node->story);
	sl_kube_node_end_sync(sync->node);
}

void sl_kube_node_sync(struct sl_kube_node *node)
{
	struct sl_kube_sync *sync;
	union sl_msg msg;

	sl_kube_node_end_sync(node);
	sync = calloc(1, sizeof(*sync));
	if (!sync)
		return;
	sync->node = node;
	node->sync = sync;
	node->sync_in = AGAIN;
	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_ENTRIES;
	if (sl_line_call(node->line, &msg, SL_MSG_ENTRY_ROW, true, on_entries, sync) < 0)
		sl_kube_node_end_sync(node);
}
