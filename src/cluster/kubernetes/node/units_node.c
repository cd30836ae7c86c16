/*
 * units_node - containers with units of GPU memory, and their workloads in sluiced
 *
 * The kubelet allocates units (Allocate) without naming the container, and calls again right before
 * each start of the container (PreStartContainer). At that time the kubelet's list tells which
 * container has which units. So the workload is made at the start, with the pod's name and the
 * owner's annotations. If that fails, the kubelet tries again; a failure of Allocate would fail the
 * pod for good.
 *
 * A round compares sluiced's list with the kubelet's, and if they differ also with the API server's
 * pods. A workload whose units no container has is ended. A kubelet that has just started does not
 * know its pods yet, so nothing is ended while its list lacks a pod of the API server. Rounds run
 * every 5 s, and for each start.
 *
 * A container that starts again keeps its workload, and the API server is not asked. A workload has
 * the name of its pod: one with another name belongs to an earlier container, which is gone.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/text.h"
#include "cluster/kubernetes/api/api.h"
#include "cluster/kubernetes/node/device_plugin.h"
#include "cluster/kubernetes/api/grpc_ask.h"
#include "cluster/kubernetes/node/holders.h"
#include "cluster/kubernetes/node/internal.h"
#include "cluster/kubernetes/claims/order.h"
#include "cluster/kubernetes/node/story.h"

#define PODS_BYTES (64u << 20)

/* A container that is about to start. */
struct start {
	struct sl_link link;
	struct sl_kube_units *units;
	struct sl_grpc_call *call;
	char key[SL_UNITS_KEY_MAX];
	/* It existed when the round began; its workload is being made. */
	bool is_in_round, is_being_made;
	struct sl_holder holder;         /* while that is so */
	struct sl_kube_call *call_bound; /* reads its namespace */
};

struct sl_kube_units {
	struct sl_kube_node *node;
	struct sl_device_plugin *plugin;
	struct sl_link starts;
	/* Set of keys allocated again or refused: sluiced's workload under such a key belongs to an
	 * earlier container, which is gone. */
	json_t *fresh;
	json_t *entries;        /* key to name of sluiced's workloads in this round */
	bool is_running, again; /* a round is running; another one follows */
	bool is_whole;          /* a round was completed since the start */
	struct sl_grpc_ask *ask;
	struct sl_kube_call *call;
	struct sl_holders holders;
};

/* --- starts ------------------------------------------------------------------------------- */

/* err NULL: the container may start. */
static void finish(struct start *start, const struct sl_error *err)
{
	if (err) {
		sl_warning("units %s: %s", start->key, err->text);
		/* No container runs with them; the next start makes its workload again. */
		if (start->is_being_made)
			(void)json_object_set_new(
				start->units->fresh, start->key, json_true());
		sl_grpc_refuse(start->call, SL_GRPC_UNAVAILABLE, err->text);
	} else {
		(void)json_object_del(start->units->fresh, start->key);
		sl_grpc_answer(start->call, NULL, 0);
	}
	sl_list_unlink(&start->link);
	sl_kube_cancel(&start->call_bound);
	if (start->units->node->line)
		sl_line_forget(start->units->node->line, start);
	free(start);
}

/* Fails the starts of the round, or all. */
static void fail_starts(struct sl_kube_units *units, bool all, const struct sl_error *err)
{
	sl_list_foreach_safe (link, &units->starts) {
		struct start *start = SL_LIST_ENTRY(link, struct start, link);

		if (all || start->is_in_round)
			finish(start, err);
	}
}

static void round_begin(struct sl_kube_units *units);

static void round_end(struct sl_kube_units *units, const struct sl_error *err)
{
	bool again = units->again;

	if (err) {
		sl_debug("units: %s", err->text);
		fail_starts(units, false, err);
	}
	sl_holders_fini(&units->holders);
	(void)json_object_clear(units->entries);
	units->is_running = units->again = false;
	if (again)
		round_begin(units);
}

/* --- orders for sluiced ------------------------------------------------------------------- */

static int folder_of(const struct sl_kube_units *units, const char *key,
	char folder[SL_SOCKET_PATH_MAX], struct sl_error *err)
{
	const char *socket = units->node->options.socket;
	const char *slash = strrchr(socket, '/');
	int used = slash ? snprintf(folder, SL_SOCKET_PATH_MAX, "%.*s/entries/%s",
				   (int)(slash - socket), socket, key)
			 : SL_SOCKET_PATH_MAX;

	if (used < SL_SOCKET_PATH_MAX)
		return 0;
	sl_error_set(
		err, "the folder of %s beside %.100s has too long a path", key, socket);
	return sl_err_origin(-ENAMETOOLONG);
}

static void on_added(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	struct start *start = context;
	char folder[SL_SOCKET_PATH_MAX];
	struct sl_error text = {0};

	if (err) {
		finish(start, err);
		return;
	}
	if (!msg)
		return;
	if (!msg->entry_reply.ok)
		sl_error_set(&text, "sluiced: %s", msg->entry_reply.text);
	else if (folder_of(start->units, start->key, folder, &text) == 0 &&
		 strcmp(folder, msg->entry_reply.folder) != 0)
		sl_error_set(&text,
			"sluiced has its sockets in %.100s, not %.100s; start "
			"sluice-kube with the --socket that sluiced has",
			msg->entry_reply.folder, folder);
	finish(start, text.text[0] ? &text : NULL);
}

/* No container waits for the answer. */
static void on_told(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	if (msg && !msg->entry_reply.ok)
		sl_warning("units: sluiced: %s", msg->entry_reply.text);
}

static void end_entry(struct sl_kube_units *units, const char *key)
{
	union sl_msg msg;

	sl_info("units %s now belong to another container, or to none", key);
	sl_kube_story_forget(units->node->story, key);
	sl_wire_init(&msg, SL_MSG_ENTRY_END);
	sl_wire_str(msg.entry_end.key, sizeof(msg.entry_end.key), key);
	if (sl_line_call(units->node->line, &msg, SL_MSG_ENTRY_REPLY, false, on_told,
		    units) < 0)
		sl_debug("the connection to sluiced was lost while units were updated");
}

static struct sl_share share_of(const struct sl_holder *holder)
{
	struct sl_share share = {.memory = holder->memory, .count = 1};

	sl_wire_str(share.uid, sizeof(share.uid), holder->key);
	sl_wire_str(share.namespace, sizeof(share.namespace), holder->namespace);
	sl_wire_str(share.name, sizeof(share.name), holder->pod);
	sl_wire_str(share.pod, sizeof(share.pod), holder->pod);
	(void)sl_kube_device_name(holder->uuid, share.devices[0].device);
	return share;
}

/* start NULL: sluiced has lost the container's workload; its limit follows (story.h). */
static void add_entry(struct sl_kube_units *units, const struct sl_holder *holder,
	uint64_t limit, struct start *start)
{
	struct sl_share share = share_of(holder);
	struct sl_error err = {0};
	union sl_msg msg;
	int r = 0;

	share.limit = limit;
	if (sl_kube_node_entry(units->node, &share, &msg, &err) == 0)
		r = sl_line_call(units->node->line, &msg, SL_MSG_ENTRY_REPLY, false,
			start ? on_added : on_told,
			start ? (void *)start : (void *)units);
	if (r < 0)
		sl_error_set(&err, "sluiced at %s does not answer; is it running?",
			units->node->options.socket);
	if (start && err.text[0])
		finish(start, &err);
	else if (err.text[0])
		sl_debug("units %s: %s", holder->key, err.text);
}

static void on_namespace(void *context, const struct sl_kube_answer *answer)
{
	struct start *start = context;
	const struct sl_holder *holder = &start->holder;
	const struct sl_kube_node *node = start->units->node;
	const struct sl_kube_node_gpu *gpu;
	char device[SL_KUBE_DEVICE_NAME_MAX];
	struct sl_error err = {0};
	uint64_t bound, limit;

	gpu = sl_kube_node_gpu_of(node, sl_kube_device_name(holder->uuid, device));
	if (answer->error[0])
		sl_error_set(&err, "the bounds of the namespace are not known: %s",
			answer->error);
	else if (sl_kube_order_bound(answer->body, &bound, &err) &&
		 sl_kube_order_limit(holder->limit, holder->memory,
			 gpu ? gpu->shareable_bytes : 0, bound, &limit, &err))
		add_entry(start->units, holder, limit, start);
	if (err.text[0])
		finish(start, &err);
}

static void begin(struct start *start, const struct sl_holder *holder)
{
	start->is_in_round = false;
	start->is_being_made = true;
	start->holder = *holder;
}

/* Bounds its limit by that of its namespace. */
static void make(struct start *start, const struct sl_holder *holder)
{
	char path[SL_SHARE_NAME_BYTES + 32];
	struct sl_error err = {0};
	int r = 0;

	begin(start, holder);
	if (!holder->has_pod) {
		sl_error_set(&err, "the API server does not list pod %s/%s",
			holder->namespace, holder->pod);
		finish(start, &err);
		return;
	}
	if (!holder->limit[0]) {
		add_entry(start->units, holder, 0, start);
		return;
	}
	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s", holder->namespace);
	r = sl_kube_call(start->units->node->kube,
		&(struct sl_kube_request){
			.path = path, .done = on_namespace, .context = start},
		&start->call_bound);
	if (r == 0)
		return;
	sl_error_set(&err, "the namespace cannot be asked for: %s", strerror(-r));
	finish(start, &err);
}

/* --- a round ------------------------------------------------------------------------------ */

/* Does sluiced have the holder's workload, under its own name? */
static bool has_own(const struct sl_kube_units *units, const struct sl_holder *holder)
{
	const struct sl_share share = share_of(holder);
	const char *has = json_string_value(json_object_get(units->entries, holder->key));
	char name[sizeof(((struct sl_msg_entry_row *)NULL)->name)];

	sl_kube_node_workload(&share, name, sizeof(name));
	return has && strcmp(has, name) == 0 &&
	       !json_object_get(units->fresh, holder->key);
}

/* Starts of containers that ran before. The workload's limit stays. */
static void begin_restarts(struct sl_kube_units *units)
{
	sl_list_foreach_safe (link, &units->starts) {
		struct start *start = SL_LIST_ENTRY(link, struct start, link);
		const struct sl_holder *holder =
			sl_holders_find(&units->holders, start->key);

		if (!start->is_in_round || !holder || !has_own(units, holder))
			continue;
		begin(start, holder);
		add_entry(units, holder, 0, start);
	}
}

static void begin_starts(struct sl_kube_units *units)
{
	struct sl_error unknown = {0}, away = {0};

	sl_error_set(&away, "the connection to sluiced was lost; retrying");
	sl_error_set(&unknown,
		"the kubelet names no container that has these units; an init container "
		"cannot have " SL_HOLDERS_RESOURCE
		" of its own: ask for as much in a container, or make it a sidecar");
	sl_list_foreach_safe (link, &units->starts) {
		struct start *start = SL_LIST_ENTRY(link, struct start, link);
		const struct sl_holder *holder =
			sl_holders_find(&units->holders, start->key);

		if (!start->is_in_round)
			continue;
		if (!holder || !sl_line_is_up(units->node->line)) {
			finish(start, holder ? &away : &unknown);
			continue;
		}
		if (json_object_get(units->entries, start->key))
			end_entry(units, start->key);
		make(start, holder);
	}
}

/* Its start makes the workload, with the pod's limit, or reports why not. */
static bool is_starting(const struct sl_kube_units *units, const char *key)
{
	sl_list_foreach (link, &units->starts) {
		if (strcmp(SL_LIST_ENTRY(link, struct start, link)->key, key) == 0)
			return true;
	}
	return false;
}

static void settle(struct sl_kube_units *units, bool complete)
{
	const char *key;
	json_t *value;

	json_object_foreach(units->entries, key, value)
	{
		if (complete && !sl_holders_find(&units->holders, key))
			end_entry(units, key);
	}
	begin_starts(units);
	for (size_t i = 0; i < units->holders.count; i++) {
		const struct sl_holder *holder = &units->holders.all[i];

		if (holder->has_pod && !json_object_get(units->entries, holder->key) &&
			!json_object_get(units->fresh, holder->key) &&
			!is_starting(units, holder->key))
			add_entry(units, holder, 0, NULL);
		if (holder->has_pod) {
			struct sl_share share = share_of(holder);

			sl_kube_story_units(units->node->story, &share);
		}
	}
	sl_kube_story_is_whole(units->node->story);
}

static void on_pods(void *context, const struct sl_kube_answer *answer)
{
	struct sl_kube_units *units = context;
	struct sl_error err = {0};

	if (answer->error[0]) {
		sl_error_set(&err, "the pods of this node: %s", answer->error);
		round_end(units, &err);
		return;
	}
	settle(units, sl_holders_meet(&units->holders, answer->body));
	units->is_whole = true;
	round_end(units, NULL);
}

/* Is there nothing to do? True if workloads and containers match. */
static bool is_settled(const struct sl_kube_units *units)
{
	sl_list_foreach (link, &units->starts) {
		if (SL_LIST_ENTRY(link, struct start, link)->is_in_round)
			return false;
	}
	if (json_object_size(units->entries) != units->holders.count)
		return false;
	for (size_t i = 0; i < units->holders.count; i++) {
		if (!json_object_get(units->entries, units->holders.all[i].key))
			return false;
	}
	return true;
}

static void on_holders(
	void *context, const uint8_t *message, size_t size, const struct sl_error *err)
{
	struct sl_kube_units *units = context;
	struct sl_error text = {0};
	char path[512];
	int r;

	if (!err && !sl_holders_read(&units->holders, message, size))
		sl_error_set(&text, "the kubelet's list of pods is invalid");
	if (err || text.text[0]) {
		round_end(units, err ? err : &text);
		return;
	}
	begin_restarts(units);
	if (is_settled(units) && units->is_whole) {
		round_end(units, NULL);
		return;
	}
	(void)snprintf(path, sizeof(path),
		"/api/v1/pods?fieldSelector=spec.nodeName%%3D%s",
		units->node->options.name);
	r = sl_kube_call(units->node->kube,
		&(struct sl_kube_request){.path = path,
			.done = on_pods,
			.context = units,
			.max_bytes = PODS_BYTES},
		&units->call);
	if (r < 0) {
		sl_error_set(&text, "the pods of this node cannot be listed: %s",
			strerror(-r));
		round_end(units, &text);
	}
}

static void on_entries(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	struct sl_kube_units *units = context;
	struct sl_error text = {0};
	char path[SL_PATH_MAX];

	if (msg) {
		if (msg->head.type == SL_MSG_ENTRY_ROW &&
			sl_units_is_key(msg->entry_row.key))
			(void)json_object_set_new(units->entries, msg->entry_row.key,
				sl_text_json(msg->entry_row.name));
		return;
	}
	if (err) {
		round_end(units, err);
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/pod-resources/kubelet.sock",
		units->node->options.kubelet);
	if (sl_grpc_ask(units->node->loop, path, SL_HOLDERS_METHOD, NULL, 0, on_holders,
		    units, &units->ask, &text) < 0)
		round_end(units, &text);
}

static void round_begin(struct sl_kube_units *units)
{
	struct sl_error err = {0};
	union sl_msg msg;

	units->is_running = true;
	sl_list_foreach (link, &units->starts) {
		struct start *start = SL_LIST_ENTRY(link, struct start, link);

		start->is_in_round = !start->is_being_made;
	}
	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_ENTRIES;
	if (sl_line_call(units->node->line, &msg, SL_MSG_ENTRY_ROW, true, on_entries,
		    units) == 0)
		return;
	sl_error_set(&err, "sluiced at %s does not answer; is it running on this node?",
		units->node->options.socket);
	round_end(units, &err);
}

void sl_kube_units_round(struct sl_kube_units *units)
{
	if (units->is_running)
		units->again = true;
	else
		round_begin(units);
}

/* --- the kubelet's calls ------------------------------------------------------------------ */

static void on_start(void *context, const char *key, struct sl_grpc_call *call)
{
	struct sl_kube_units *units = context;
	struct start *start = calloc(1, sizeof(*start));

	if (!start) {
		sl_grpc_refuse(call, SL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	start->units = units;
	start->call = call;
	sl_wire_str(start->key, sizeof(start->key), key);
	sl_list_push_tail(&units->starts, &start->link);
	sl_kube_units_round(units);
}

static void put_env(struct sl_proto_out *out, const char *variable)
{
	const char *equals = strchr(variable, '=');
	struct sl_proto_out entry = {0};

	sl_proto_put_bytes(&entry, 1, variable, (size_t)(equals - variable));
	sl_proto_put_text(&entry, 2, equals + 1);
	sl_proto_put_message(out, 1, &entry);
}

static void put_edits(struct sl_proto_out *out, const struct sl_cdi_device *edits)
{
	for (size_t i = 0; i < edits->env_count; i++)
		put_env(out, edits->env[i]);
	for (size_t i = 0; i < edits->mount_count; i++) {
		struct sl_proto_out mount = {0};

		sl_proto_put_text(&mount, 1, edits->mounts[i].container_path);
		sl_proto_put_text(&mount, 2, edits->mounts[i].host_path);
		sl_proto_put_number(&mount, 3, !edits->mounts[i].is_writable);
		sl_proto_put_message(out, 2, &mount);
	}
	for (size_t i = 0; i < edits->node_count; i++) {
		const struct sl_cdi_node *node = &edits->nodes[i];
		struct sl_proto_out device = {0};

		sl_proto_put_text(&device, 1, node->path);
		sl_proto_put_text(
			&device, 2, node->host_path ? node->host_path : node->path);
		sl_proto_put_text(&device, 3, "rw");
		sl_proto_put_message(out, 3, &device);
	}
}

static bool on_allocate(void *context, const struct sl_units_gpu *gpu,
	struct sl_proto_out *out, struct sl_error *err)
{
	struct sl_kube_units *units = context;
	const struct sl_kube_node_options *options = &units->node->options;
	struct sl_kube_edits edits = {0};
	char key[SL_UNITS_KEY_MAX], folder[SL_SOCKET_PATH_MAX], vendor[160];

	if (folder_of(units, sl_units_key(gpu, key), folder, err) < 0)
		return false;
	sl_kube_node_edits(options, folder, gpu->uuid, &edits);
	put_edits(out, &edits.device);
	if (options->vendor) {
		struct sl_proto_out device = {0};

		(void)snprintf(
			vendor, sizeof(vendor), "%s=%s", options->vendor, gpu->uuid);
		sl_proto_put_text(&device, 1, vendor);
		sl_proto_put_message(out, 5, &device);
	}
	sl_info("units %s are allocated", key);
	return json_object_set_new(units->fresh, key, json_true()) == 0;
}

static void on_registered(void *context, const struct sl_error *err)
{
	if (err)
		sl_warning("%s", err->text);
	else
		sl_info("the kubelet knows " SL_UNITS_RESOURCE);
}

/* --- new and free ------------------------------------------------------------------------- */

void sl_kube_units_tell(struct sl_kube_units *units)
{
	struct sl_device_plugin_gpu gpus[SL_KUBE_GPUS_MAX];
	const struct sl_kube_node *node = units->node;

	for (size_t i = 0; i < node->gpu_count; i++) {
		uint64_t count = node->gpus[i].shareable_bytes / SL_UNIT_BYTES;

		gpus[i] = (struct sl_device_plugin_gpu){.uuid = node->gpus[i].uuid,
			.units = (uint32_t)sl_min_u64(count, SL_UNITS_MAX),
			.is_well = !sl_kube_node_trouble(&node->gpus[i])};
	}
	sl_device_plugin_tell(units->plugin, gpus, node->gpu_count);
}

int sl_kube_units_new(
	struct sl_kube_node *node, struct sl_kube_units **out, struct sl_error *err)
{
	struct sl_kube_units *units = calloc(1, sizeof(*units));
	const struct sl_device_plugin_handler handler = {.context = units,
		.allocate = on_allocate,
		.start = on_start,
		.registered = on_registered};
	int r = -ENOMEM;

	*out = NULL;
	if (!units) {
		sl_error_set(err, "out of memory");
		return sl_err_origin(-ENOMEM);
	}
	units->node = node;
	sl_list_init(&units->starts);
	units->fresh = json_object();
	units->entries = json_object();
	if (units->fresh && units->entries)
		r = sl_device_plugin_new(
			node->loop, node->options.kubelet, &handler, &units->plugin, err);
	if (r < 0)
		units = sl_kube_units_free(units);
	*out = units;
	return r;
}

struct sl_kube_units *sl_kube_units_free(struct sl_kube_units *units)
{
	struct sl_error err = {0};

	if (!units)
		return NULL;
	sl_error_set(&err, "sluice-kube ends; another one follows");
	fail_starts(units, true, &err);
	if (units->node->line)
		sl_line_forget(units->node->line, units);
	sl_grpc_ask_cancel(&units->ask);
	sl_kube_cancel(&units->call);
	sl_holders_fini(&units->holders);
	units->plugin = sl_device_plugin_free(units->plugin);
	json_decref(units->fresh);
	json_decref(units->entries);
	free(units);
	return NULL;
}
