/*
 * prepare - turns a claim into a workload with its own socket, and a CDI file
 *
 * Each request runs through its steps independently. Several may run at once, even for one claim: a
 * step that finds its work done already changes nothing.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/kubernetes/api/api.h"
#include "cluster/kubernetes/claims/order.h"
#include "cluster/kubernetes/node/cdi.h"
#include "cluster/kubernetes/node/internal.h"
#include "cluster/kubernetes/node/story.h"
#include "wire/wire.h"

/* The kubelet waits for 45 s. */
#define LEAVING_MOST  (40 * SL_S)
#define LEAVING_AGAIN (300 * SL_MS)

struct work {
	struct sl_link link;
	struct sl_kube_node *node;
	struct sl_kubelet_work *work;
	struct sl_kubelet_claim claim;
	bool unprepares;
	struct sl_kube_call *call;
	struct sl_share share;
	json_t *found; /* the claim */
	bool reaches;  /* its containers may have the device nodes of other GPUs */
	uint32_t
		reach; /* those that they get, by sluiced's numbers; 0: the claim's own */
	sd_event_source *timer; /* while another workload leaves its GPUs */
	sl_ns give_up_at;
};

static struct work *work_new(struct sl_kube_node *node,
	const struct sl_kubelet_claim *claim, struct sl_kubelet_work *work,
	bool unprepares)
{
	struct work *w = calloc(1, sizeof(*w));
	struct sl_error err = {0};

	if (!w) {
		sl_error_set(&err, "out of memory");
		sl_kubelet_done(work, NULL, 0, &err);
		return NULL;
	}
	w->node = node;
	w->work = work;
	w->claim = *claim;
	w->unprepares = unprepares;
	w->give_up_at = sl_clock_now() + LEAVING_MOST;
	sl_list_push_tail(&node->works, &w->link);
	return w;
}

static void finish(struct work *w, const struct sl_kubelet_device *devices, size_t count,
	const struct sl_error *err)
{
	if (err)
		sl_warning(
			"claim %s/%s: %s", w->claim.namespace, w->claim.name, err->text);
	sl_kube_node_sync_leave(w->node, w->claim.uid);
	sl_list_unlink(&w->link);
	sl_kube_cancel(&w->call);
	w->timer = sd_event_source_disable_unref(w->timer);
	if (w->node->line)
		sl_line_forget(w->node->line, w);
	sl_kubelet_done(w->work, devices, count, err);
	json_decref(w->found);
	free(w);
}

SL_PRINTF(2, 3) static void fail(struct work *w, const char *format, ...)
{
	struct sl_error err = {0};
	char words[SL_ERROR_TEXT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	sl_error_set(&err, "%s", words);
	finish(w, NULL, 0, &err);
}

bool sl_kube_node_is_at_work(const struct sl_kube_node *node, const char *uid)
{
	sl_list_foreach (link, &node->works) {
		if (strcmp(SL_LIST_ENTRY(link, struct work, link)->claim.uid, uid) == 0)
			return true;
	}
	return false;
}

void sl_kube_node_end_works(struct sl_kube_node *node)
{
	while (!sl_list_is_empty(&node->works))
		fail(SL_LIST_ENTRY(node->works.next, struct work, link),
			"the driver is restarting");
}

/* --- the claim's workload ----------------------------------------------------------------- */

/* UUIDs of its GPUs, in the order of CUDA_DEVICE_ORDER=PCI_BUS_ID, with commas. */
static int visible_of(const struct sl_kube_node *node, const struct sl_share *share,
	char *buf, size_t size, struct sl_error *err)
{
	const struct sl_kube_node_gpu *gpus[SL_SHARE_DEVICES];
	size_t used = 0;

	if (!node->knows_gpus) {
		sl_error_set(err,
			"sluiced at %s has not listed its GPUs yet; is it running on "
			"this node?",
			node->options.socket);
		return sl_err_origin(-EAGAIN);
	}
	for (uint32_t i = 0; i < share->count; i++) {
		const struct sl_kube_node_gpu *gpu =
			sl_kube_node_gpu_of(node, share->devices[i].device);
		uint32_t place = i;

		if (!gpu) {
			sl_error_set(err,
				"the claim has device %.63s, which this node does not "
				"have "
				"(any more); delete the pod, so that it is placed anew",
				share->devices[i].device);
			return sl_err_origin(-ENODEV);
		}
		for (; place > 0 && strcmp(gpus[place - 1]->pci, gpu->pci) > 0; place--)
			gpus[place] = gpus[place - 1];
		gpus[place] = gpu;
	}
	buf[0] = '\0';
	for (uint32_t i = 0; i < share->count && used < size; i++)
		used += (size_t)snprintf(
			buf + used, size - used, "%s%s", i ? "," : "", gpus[i]->uuid);
	if (used < size)
		return 0;
	sl_error_set(err, "the claim has more GPUs than sluiced accepts; ask for fewer");
	return sl_err_origin(-E2BIG);
}

int sl_kube_node_share(const struct sl_kube_node *node, const json_t *claim,
	struct sl_share *out, struct sl_error *err)
{
	int r = sl_share_read(claim, node->options.name, out, err);

	if (r == SL_SHARE_OK)
		sl_share_divide(out, node->options.memory_factor_pct,
			sl_kube_node_own_bytes(node, out));
	return r;
}

void sl_kube_node_workload(const struct sl_share *share, char *name, size_t size)
{
	char text[SL_SHARE_NAME_BYTES * 2];

	(void)snprintf(text, sizeof(text), "%s.%s", share->namespace,
		share->pod[0] ? share->pod : share->name);
	sl_wire_str(name, size, text);
}

int sl_kube_node_entry(const struct sl_kube_node *node, const struct sl_share *share,
	union sl_msg *msg, struct sl_error *err)
{
	struct sl_msg_entry_add *add = &msg->entry_add;
	char text[SL_SHARE_NAME_BYTES * 2 + 8];

	sl_wire_init(msg, SL_MSG_ENTRY_ADD);
	add->request_kind = add->limit_kind = SL_AMOUNT_BYTES;
	add->request_value = share->memory;
	if (share->memory == UINT64_MAX) {
		add->request_kind = SL_AMOUNT_FRACTION;
		add->request_value = SL_AMOUNT_WHOLE;
	}
	add->limit_value = share->limit;
	if (!share->limit)
		add->limit_kind = SL_AMOUNT_UNSET;
	add->compute_request_pm = (uint32_t)share->compute_pct * 10;
	add->compute_limit_pm = (uint32_t)share->compute_limit_pct * 10;
	add->gpu_count = share->count;
	add->priority_biased = SL_PRIORITY_BIAS;
	add->flags = SL_RUN_VISIBLE_SET;
	sl_wire_str(add->key, sizeof(add->key), share->uid);
	sl_kube_node_workload(share, add->name, sizeof(add->name));
	sl_wire_str(add->project, sizeof(add->project), share->namespace);
	(void)snprintf(text, sizeof(text), "%s %s/%s", share->pod[0] ? "pod" : "claim",
		share->namespace, share->pod[0] ? share->pod : share->name);
	sl_wire_str(add->command, sizeof(add->command), text);
	return visible_of(node, share, add->visible, sizeof(add->visible), err);
}

/* --- the CDI file ------------------------------------------------------------------------- */

/* "/on/node:/in/container"; the form was checked with the options. */
static void split_mount(
	const char *text, char *host_path, size_t size, struct sl_cdi_mount *mount)
{
	const char *colon = strchr(text, ':');

	(void)snprintf(host_path, size, "%.*s", (int)(colon - text), text);
	mount->host_path = host_path;
	mount->container_path = colon + 1;
}

void sl_kube_node_edits(const struct sl_kube_node_options *o, const char *folder,
	const char *visible, struct sl_kube_edits *e)
{
	size_t env = 0, mounts = 0;

	(void)snprintf(e->socket, sizeof(e->socket),
		"SLUICE_SOCKET=" SL_KUBE_IN_SOCKET_DIR "/sluiced.sock");
	(void)snprintf(
		e->visible, sizeof(e->visible), "CUDA_VISIBLE_DEVICES=%s", visible);
	e->env[env++] = e->socket;
	e->env[env++] = e->visible;
	e->env[env++] = "CUDA_DEVICE_ORDER=PCI_BUS_ID";
	if (!o->preload_file)
		e->env[env++] = "LD_PRELOAD=" SL_KUBE_IN_LIBRARY;
	for (size_t i = 0; i < o->env_count; i++)
		e->env[env++] = o->env[i];
	e->mounts[mounts++] = (struct sl_cdi_mount){
		.host_path = folder, .container_path = SL_KUBE_IN_SOCKET_DIR};
	e->mounts[mounts++] = (struct sl_cdi_mount){
		.host_path = o->library, .container_path = SL_KUBE_IN_LIBRARY};
	if (o->preload_file)
		e->mounts[mounts++] = (struct sl_cdi_mount){.host_path = o->preload_file,
			.container_path = SL_CDI_PRELOAD_PATH};
	for (size_t i = 0; i < o->mount_count; i++)
		split_mount(o->mounts[i], e->host_paths[i], sizeof(e->host_paths[i]),
			&e->mounts[mounts++]);
	for (size_t i = 0; i < o->node_count; i++)
		e->nodes[i].path = o->nodes[i];
	e->device = (struct sl_cdi_device){.env = e->env,
		.env_count = env,
		.mounts = e->mounts,
		.mount_count = mounts,
		.nodes = e->nodes,
		.node_count = o->node_count};
}

static int write_cdi(const struct work *w, const char *folder, const char *visible,
	struct sl_error *err)
{
	struct sl_cdi_device devices[SL_SHARE_DEVICES];
	struct sl_kube_edits edits = {0};

	sl_kube_node_edits(&w->node->options, folder, visible, &edits);
	/* A container may use a single request of the claim. */
	for (uint32_t i = 0; i < w->share.count; i++)
		devices[i] = edits.device;
	return sl_cdi_write(
		w->node->options.cdi, w->share.uid, devices, w->share.count, err);
}

/* --- prepare ------------------------------------------------------------------------------ */

/* sluiced has no more GPUs. */
#define VENDOR_MAX (SL_KUBELET_CDI_MAX - 1)

/* Of the GPUs whose device nodes a container with that device gets. names: by GPU of the node. */
static void name_nodes(const struct work *w, const struct sl_share_device *device,
	char names[VENDOR_MAX][128], struct sl_kubelet_device *out)
{
	const struct sl_kube_node *node = w->node;
	size_t count = 0;

	for (size_t i = 0; node->options.vendor && i < node->gpu_count && i < VENDOR_MAX;
		i++) {
		const struct sl_kube_node_gpu *gpu = &node->gpus[i];
		bool reaches = gpu->number < VENDOR_MAX && w->reach >> gpu->number & 1;

		if (!reaches && strcmp(gpu->device, device->device) != 0)
			continue;
		(void)snprintf(names[i], sizeof(names[i]), "%s=%s", node->options.vendor,
			gpu->uuid);
		out->cdi[1 + count++] = names[i];
	}
}

static void done(struct work *w)
{
	struct sl_kubelet_device devices[SL_SHARE_DEVICES] = {0};
	char ids[SL_SHARE_DEVICES][SL_CDI_ID_MAX], vendor[VENDOR_MAX][128];

	for (uint32_t i = 0; i < w->share.count; i++) {
		const struct sl_share_device *share = &w->share.devices[i];

		devices[i] = (struct sl_kubelet_device){.request = share->request,
			.pool = w->node->options.name,
			.device = share->device,
			.cdi = {sl_cdi_id(w->share.uid, i, ids[i])},
			.share = share->id};
		name_nodes(w, share, vendor, &devices[i]);
	}
	sl_info("claim %s/%s is prepared", w->claim.namespace, w->claim.name);
	sl_kube_story_claim(w->node->story, w->found, &w->share);
	finish(w, devices, w->share.count, NULL);
}

static void add_entry(struct work *w);

static int on_again(sd_event_source *source, uint64_t usec, void *context)
{
	add_entry(context);
	return 0;
}

/* Another workload is leaving its GPUs. */
static void try_again(struct work *w)
{
	w->timer = sd_event_source_disable_unref(w->timer);
	if (sd_event_add_time_relative(w->node->loop, &w->timer, CLOCK_MONOTONIC,
		    LEAVING_AGAIN / SL_US, 0, on_again, w) < 0)
		fail(w, "out of memory");
}

static void on_entry(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	struct work *w = context;
	struct sl_error text = {0};
	char visible[SL_KUBE_VISIBLE_MAX];

	if (err) {
		fail(w, "%s", err->text);
		return;
	}
	if (!msg)
		return;
	if (msg->entry_reply.leaving && sl_clock_now() < w->give_up_at) {
		try_again(w);
		return;
	}
	if (!msg->entry_reply.ok) {
		fail(w, "sluiced: %s", msg->entry_reply.text);
		return;
	}
	w->reach = msg->entry_reply.reach;
	if (visible_of(w->node, &w->share, visible, sizeof(visible), &text) < 0 ||
		write_cdi(w, msg->entry_reply.folder, visible, &text) < 0) {
		fail(w, "%s", text.text);
		return;
	}
	done(w);
}

static void add_entry(struct work *w)
{
	struct sl_error err = {0};
	union sl_msg msg;

	if (sl_kube_node_entry(w->node, &w->share, &msg, &err) < 0) {
		fail(w, "%s", err.text);
		return;
	}
	if (w->reaches)
		msg.entry_add.flags |= SL_ENTRY_REACHES;
	if (sl_line_call(w->node->line, &msg, SL_MSG_ENTRY_REPLY, false, on_entry, w) < 0)
		fail(w, "sluiced at %s does not answer; is it running on this node?",
			w->node->options.socket);
}

static void on_namespace(void *context, const struct sl_kube_answer *answer)
{
	struct work *w = context;
	struct sl_error err = {0};

	if (answer->error[0]) {
		fail(w, "namespace %s: %s", w->claim.namespace, answer->error);
		return;
	}
	w->reaches = sl_kube_order_moves(answer->body, &err);
	if (err.text[0])
		fail(w, "%s", err.text);
	else
		add_entry(w);
}

/* The claim permits it; the namespace may forbid it. */
static void ask_namespace(struct work *w)
{
	char path[SL_SHARE_NAME_BYTES + 32];
	int r;

	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s", w->claim.namespace);
	r = sl_kube_call(w->node->kube,
		&(struct sl_kube_request){
			.path = path, .done = on_namespace, .context = w},
		&w->call);
	if (r < 0)
		fail(w, "the namespace cannot be read: %s", strerror(-r));
}

static void on_claim(void *context, const struct sl_kube_answer *answer)
{
	struct work *w = context;
	struct sl_error err = {0};
	bool moves;
	int r;

	if (answer->error[0]) {
		fail(w, "%s", answer->error);
		return;
	}
	w->found = json_incref(answer->body);
	r = sl_kube_node_share(w->node, answer->body, &w->share, &err);
	if (r == SL_SHARE_NONE)
		sl_error_set(&err, "no GPU of this node is allocated to the claim");
	else if (r == SL_SHARE_OK && strcmp(w->share.uid, w->claim.uid) != 0)
		sl_error_set(&err, "the claim was deleted, and another one has its name");
	moves = w->node->moves && sl_kube_order_moves(answer->body, &err);
	if (err.text[0])
		fail(w, "%s", err.text);
	else if (moves)
		ask_namespace(w);
	else
		add_entry(w);
}

void sl_kube_node_prepare(
	void *context, const struct sl_kubelet_claim *claim, struct sl_kubelet_work *work)
{
	struct sl_kube_node *node = context;
	struct work *w = work_new(node, claim, work, false);
	char path[640];
	int r = -EINVAL;

	if (!w)
		return;
	if (sl_cdi_is_name(claim->uid) && sl_kube_is_name(claim->namespace) &&
		sl_kube_is_name(claim->name)) {
		(void)snprintf(path, sizeof(path),
			"/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims/%s",
			claim->namespace, claim->name);
		r = sl_kube_call(node->kube,
			&(struct sl_kube_request){
				.path = path, .done = on_claim, .context = w},
			&w->call);
	}
	if (r < 0)
		fail(w, "the claim cannot be read: %s", strerror(-r));
}

/* --- unprepare ---------------------------------------------------------------------------- */

static void on_end(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	struct work *w = context;
	struct sl_error text = {0};

	if (err) {
		fail(w, "%s", err->text);
		return;
	}
	if (!msg)
		return;
	if (sl_cdi_remove(w->node->options.cdi, w->claim.uid, &text) < 0) {
		fail(w, "%s", text.text);
		return;
	}
	sl_info("claim %s/%s is unprepared", w->claim.namespace, w->claim.name);
	finish(w, NULL, 0, NULL);
}

/* Ends requests to prepare the same claim: the kubelet no longer waits for them. */
static void end_prepares(const struct work *by)
{
	sl_list_foreach_safe (link, &by->node->works) {
		struct work *w = SL_LIST_ENTRY(link, struct work, link);

		if (w != by && !w->unprepares && strcmp(w->claim.uid, by->claim.uid) == 0)
			fail(w, "the claim is unprepared meanwhile");
	}
}

void sl_kube_node_unprepare(
	void *context, const struct sl_kubelet_claim *claim, struct sl_kubelet_work *work)
{
	struct sl_kube_node *node = context;
	struct work *w = work_new(node, claim, work, true);
	union sl_msg msg;

	if (!w)
		return;
	/* Requests in flight would recreate the workload afterwards. */
	end_prepares(w);
	sl_kube_story_forget(node->story, claim->uid);
	if (!sl_cdi_is_name(claim->uid)) {
		fail(w, "'%.63s' is no uid", claim->uid);
		return;
	}
	sl_wire_init(&msg, SL_MSG_ENTRY_END);
	sl_wire_str(msg.entry_end.key, sizeof(msg.entry_end.key), claim->uid);
	if (sl_line_call(node->line, &msg, SL_MSG_ENTRY_REPLY, false, on_end, w) < 0)
		fail(w, "sluiced at %s does not answer; is it running on this node?",
			node->options.socket);
}
