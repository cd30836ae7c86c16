/*
 * sync - compares a newly connected sluiced with the claims of the API server
 *
 * sluiced's workloads survive its own restarts but not the machine's, and a claim may be deleted
 * while this driver does not run. First sluiced's list is read. Then the claims are read by name,
 * one after the other, since a list would have all claims of the cluster. The names are those of
 * claims prepared here, from the story, and of claims that a pod of this node uses. The watch of
 * pods may be behind the kubelet. But a claim prepared before this driver started belongs to a pod
 * in the watch's first list, and claims that the kubelet prepares or unprepares meanwhile are left
 * out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/kubernetes/api/api.h"
#include "cluster/kubernetes/node/cdi.h"
#include "cluster/kubernetes/node/internal.h"
#include "cluster/kubernetes/node/story.h"
#include "cluster/kubernetes/api/parse.h"

/* In questions for GPUs, one every 5 s. */
#define AGAIN      60
#define AGAIN_SOON 6

/* A claim's traces on this node. */
struct trace {
	char uid[SL_CDI_NAME_MAX + 1];
	bool entry, file; /* sluiced has it; it has a CDI file */
	bool claim;       /* the API server has it */
	bool is_left;     /* the kubelet has prepared or unprepared it since the list */
};

struct sl_kube_sync {
	struct sl_kube_node *node;
	struct sl_kube_call *call;
	json_t *names; /* set of NAMESPACE/NAME: claims still to be read */
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

/* NULL: out of memory, or not the key of a claim. */
static struct trace *trace_of(struct sl_kube_sync *sync, const char *uid)
{
	struct trace *trace = find(sync, uid);

	if (trace || !sl_cdi_is_name(uid))
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
	json_decref(sync->names);
	free(sync->traces);
	free(sync);
}

void sl_kube_node_sync_leave(struct sl_kube_node *node, const char *uid)
{
	struct trace *trace = node->sync ? trace_of(node->sync, uid) : NULL;

	if (trace)
		trace->is_left = true;
}

static bool is_the_kubelets(const struct sl_kube_sync *sync, const struct trace *trace)
{
	return trace->is_left || sl_kube_node_is_at_work(sync->node, trace->uid);
}

/* --- repairs ------------------------------------------------------------------------------ */

static void on_told(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	struct sl_kube_node *node = context;

	if (!msg || msg->entry_reply.ok)
		return;
	sl_warning("sluiced refused to update a claim: %s", msg->entry_reply.text);
	node->sync_in = AGAIN_SOON;
}

/* The answer is ignored: the next comparison repeats what failed. */
static void tell(struct sl_kube_node *node, const union sl_msg *msg)
{
	if (sl_line_call(node->line, msg, SL_MSG_ENTRY_REPLY, false, on_told, node) < 0)
		sl_debug("the connection to sluiced was lost while claims were updated");
}

static void add_again(struct sl_kube_node *node, const struct sl_share *share)
{
	struct sl_error err = {0};
	union sl_msg msg;

	if (sl_kube_node_entry(node, share, &msg, &err) < 0) {
		sl_warning("claim %s/%s: %s", share->namespace, share->name, err.text);
		return;
	}
	sl_info("claim %s/%s is added to sluiced again", share->namespace, share->name);
	tell(node, &msg);
}

static void end_those_without_claims(struct sl_kube_sync *sync)
{
	for (size_t i = 0; i < sync->count; i++) {
		const struct trace *trace = &sync->traces[i];
		struct sl_error err = {0};
		union sl_msg msg;

		if (trace->claim || is_the_kubelets(sync, trace))
			continue;
		sl_info("claim %s is gone; its workload and file are removed",
			trace->uid);
		sl_kube_story_forget(sync->node->story, trace->uid);
		if (trace->file &&
			sl_cdi_remove(sync->node->options.cdi, trace->uid, &err) < 0)
			sl_warning("%s", err.text);
		sl_wire_init(&msg, SL_MSG_ENTRY_END);
		sl_wire_str(msg.entry_end.key, sizeof(msg.entry_end.key), trace->uid);
		tell(sync->node, &msg);
	}
}

/* --- the present state ---------------------------------------------------------------------- */

static void take_claim(struct sl_kube_sync *sync, const json_t *claim)
{
	struct trace *trace = find(sync, sl_kube_text_at(claim, "metadata", "uid", NULL));
	struct sl_error ignored = {0};
	struct sl_share share;
	int r;

	if (!trace || is_the_kubelets(sync, trace))
		return;
	r = sl_kube_node_share(sync->node, claim, &share, &ignored);
	/* It may have been allocated elsewhere since. */
	trace->claim = r != SL_SHARE_NONE;
	/* A file without a workload: sluiced has lost it. */
	if (r == SL_SHARE_OK && trace->file && !trace->entry)
		add_again(sync->node, &share);
	if (r == SL_SHARE_OK && trace->file)
		sl_kube_story_claim(sync->node->story, claim, &share);
}

static void try_soon(struct sl_kube_sync *sync, const char *why)
{
	struct sl_kube_node *node = sync->node;

	sl_warning("claims will be compared later: %s", why);
	sl_kube_node_end_sync(node);
	node->sync_in = AGAIN_SOON;
}

static void ask_for_next(struct sl_kube_sync *sync);

static void on_claim(void *context, const struct sl_kube_answer *answer)
{
	struct sl_kube_sync *sync = context;

	/* A 404 with another reason is from a server without claims. */
	if (answer->error[0] && strcmp(answer->reason, "NotFound") != 0) {
		try_soon(sync, answer->error);
		return;
	}
	if (!answer->error[0])
		take_claim(sync, answer->body);
	(void)json_object_del(
		sync->names, json_object_iter_key(json_object_iter(sync->names)));
	ask_for_next(sync);
}

static void finish(struct sl_kube_sync *sync)
{
	end_those_without_claims(sync);
	sl_kube_story_is_whole(sync->node->story);
	sl_kube_node_end_sync(sync->node);
}

static void ask_for_next(struct sl_kube_sync *sync)
{
	const char *name = json_object_iter_key(json_object_iter(sync->names));
	char path[2 * SL_SHARE_NAME_BYTES + 80];
	int r;

	if (!name) {
		finish(sync);
		return;
	}
	(void)snprintf(path, sizeof(path),
		"/apis/resource.k8s.io/v1/namespaces/%.*s/resourceclaims/%s",
		(int)strcspn(name, "/"), name, strchr(name, '/') + 1);
	r = sl_kube_call(sync->node->kube,
		&(struct sl_kube_request){
			.path = path, .done = on_claim, .context = sync},
		&sync->call);
	if (r < 0)
		try_soon(sync, strerror(-r));
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
	/* The next sluiced is compared from the start. */
	if (err) {
		sl_kube_node_end_sync(sync->node);
		return;
	}
	if (sl_cdi_list(sync->node->options.cdi, on_file, sync, &text) < 0)
		sl_warning("%s", text.text);
	if (!sync->count) {
		finish(sync);
		return;
	}
	sync->names = sl_kube_story_claims(sync->node->story);
	/* Without the pods it starts again when they are known. */
	if (sync->names)
		ask_for_next(sync);
	else
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
