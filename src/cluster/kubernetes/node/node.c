/*
 * node - see the header
 */
#include "cluster/kubernetes/node/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/kubernetes/api/api.h"
#include "cluster/kubernetes/node/internal.h"
#include "cluster/kubernetes/node/story.h"

#define GPUS_EVERY (5 * SL_S)

/* --- GPUs --------------------------------------------------------------------------------- */

const char *sl_kube_node_trouble(const struct sl_kube_node_gpu *gpu)
{
	if (gpu->condition & SL_GPU_LOST)
		return "the GPU is lost; see the node's kernel log and sluice doctor";
	if (gpu->condition & SL_GPU_DEGRADED)
		return "the GPU reported errors, and nothing new starts on it; see "
		       "sluice "
		       "doctor";
	return NULL;
}

static void set_timer(struct sl_kube_node *node, sl_ns from_now)
{
	(void)sd_event_source_set_time_relative(node->timer, from_now / SL_US);
	(void)sd_event_source_set_enabled(node->timer, SD_EVENT_ONESHOT);
}

static void publish(struct sl_kube_node *node)
{
	struct sl_kube_gpu gpus[SL_KUBE_GPUS_MAX];
	int r;

	for (size_t i = 0; i < node->gpu_count; i++) {
		const struct sl_kube_node_gpu *gpu = &node->gpus[i];

		gpus[i] = (struct sl_kube_gpu){.uuid = gpu->uuid,
			.model = gpu->model,
			.driver_version = node->driver,
			.numa_node = -1,
			.can_swap = node->swaps,
			.state = gpu->condition & SL_GPU_LOST       ? SL_KUBE_GPU_LOST
				 : gpu->condition & SL_GPU_DEGRADED ? SL_KUBE_GPU_DEGRADED
								    : SL_KUBE_GPU_WELL,
			.shareable_bytes = gpu->shareable_bytes};
	}
	r = sl_kube_publisher_set(node->publisher,
		&(struct sl_kube_inventory){.gpus = gpus,
			.gpu_count = node->gpu_count,
			.memory_factor_pct = node->options.memory_factor_pct});
	if (r < 0)
		sl_warning("the node's GPUs cannot be published: %s", strerror(-r));
}

static void tell_health(struct sl_kube_node *node)
{
	struct sl_kubelet_health devices[SL_KUBE_GPUS_MAX];

	for (size_t i = 0; i < node->gpu_count; i++) {
		const struct sl_kube_node_gpu *gpu = &node->gpus[i];

		devices[i] = (struct sl_kubelet_health){.pool = node->options.name,
			.device = gpu->device,
			.trouble = sl_kube_node_trouble(gpu)};
	}
	sl_kubelet_tell_health(node->kubelet, devices, node->gpu_count);
}

const struct sl_kube_node_gpu *sl_kube_node_gpu_of(
	const struct sl_kube_node *node, const char *device)
{
	for (size_t i = 0; i < node->gpu_count; i++) {
		if (strcmp(node->gpus[i].device, device) == 0)
			return &node->gpus[i];
	}
	return NULL;
}

uint64_t sl_kube_node_own_bytes(
	const struct sl_kube_node *node, const struct sl_share *share)
{
	uint64_t own = UINT64_MAX;

	for (uint32_t i = 0; i < share->count; i++) {
		const struct sl_kube_node_gpu *gpu =
			sl_kube_node_gpu_of(node, share->devices[i].device);

		own = sl_min_u64(own, gpu ? gpu->shareable_bytes : 0);
	}
	return own == UINT64_MAX ? 0 : own;
}

static void take_gpu(struct sl_kube_node *node, const struct sl_msg_gpu_row *row)
{
	struct sl_kube_node_gpu *gpu = &node->found[node->found_count];

	if (node->found_count == SL_KUBE_GPUS_MAX)
		return;
	*gpu = (struct sl_kube_node_gpu){.number = row->gpu,
		.shareable_bytes = row->shareable_bytes,
		.condition = row->condition};
	sl_wire_uuid_format(row->uuid, gpu->uuid);
	sl_wire_str(gpu->model, sizeof(gpu->model), row->name);
	sl_wire_str(gpu->pci, sizeof(gpu->pci), row->pci);
	(void)sl_kube_device_name(gpu->uuid, gpu->device);
	node->found_count++;
}

static void on_gpus(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	struct sl_kube_node *node = context;

	if (msg) {
		if (msg->head.type == SL_MSG_GPU_ROW)
			take_gpu(node, &msg->gpu_row);
		return;
	}
	node->asking = false;
	if (err)
		return;
	node->knows_gpus = true;
	memcpy(node->gpus, node->found, sizeof(node->gpus));
	node->gpu_count = node->found_count;
	if (node->units) {
		sl_kube_units_tell(node->units);
	} else {
		publish(node);
		tell_health(node);
	}
}

static void on_status(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	struct sl_kube_node *node = context;

	if (msg && msg->head.type == SL_MSG_STATUS_ROW)
		sl_wire_str(node->driver, sizeof(node->driver), msg->status_row.driver);
}

static void on_pool(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	struct sl_kube_node *node = context;

	if (!msg || msg->head.type != SL_MSG_POOL_ROW)
		return;
	node->swaps = msg->pool_row.swap_on;
	node->moves = msg->pool_row.moves;
}

static void list(struct sl_kube_node *node, enum sl_list_what what, enum sl_msg_type rows,
	sl_line_fn fn)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = what;
	if (sl_line_call(node->line, &msg, rows, true, fn, node) < 0)
		sl_debug("sluiced does not answer");
	else if (what == SL_LIST_GPUS)
		node->asking = true;
}

static void ask_for_gpus(struct sl_kube_node *node)
{
	if (node->asking)
		return;
	node->found_count = 0;
	/* Its answer comes before that of the GPUs, and is published with them. */
	list(node, SL_LIST_POOL, SL_MSG_POOL_ROW, on_pool);
	list(node, SL_LIST_GPUS, SL_MSG_GPU_ROW, on_gpus);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_kube_node *node = context;

	ask_for_gpus(node);
	if (sl_line_is_up(node->line) && node->units)
		sl_kube_units_round(node->units);
	else if (sl_line_is_up(node->line) && (!node->sync_in || !--node->sync_in))
		sl_kube_node_sync(node);
	set_timer(node, GPUS_EVERY);
	return 0;
}

/* --- sluiced and kubelet ------------------------------------------------------------------ */

static void on_up(void *context)
{
	struct sl_kube_node *node = context;

	sl_info("sluiced answers");
	list(node, SL_LIST_STATUS, SL_MSG_STATUS_ROW, on_status);
	ask_for_gpus(node);
	if (node->units)
		sl_kube_units_round(node->units);
	else
		sl_kube_node_sync(node);
}

static void on_down(void *context, const struct sl_error *err)
{
	sl_warning("%s", err->text);
}

static void on_registered(void *context, const struct sl_error *err)
{
	struct sl_kube_node *node = context;

	if (err)
		sl_warning("%s", err->text);
	else
		sl_info("the kubelet has accepted this driver");
	/* A starting kubelet deletes the slices of its node. The publisher sees a deletion that
	 * happened, but not one that is about to. */
	if (node->gpu_count)
		publish(node);
}

/* --- new and free ------------------------------------------------------------------------- */

static int open_all(struct sl_kube_node *node, struct sl_error *err)
{
	const struct sl_kubelet_handler kubelet = {.context = node,
		.prepare = sl_kube_node_prepare,
		.unprepare = sl_kube_node_unprepare,
		.registered = on_registered};
	const struct sl_line_handler line = {
		.context = node, .up = on_up, .down = on_down};
	struct sl_kube_config config = {0};
	int r = sl_kube_config_find(&config, node->options.kubeconfig, err);

	if (r < 0)
		return r;
	r = sl_kube_new(&node->kube, node->loop, &config);
	if (r == 0 && !node->options.device_plugin)
		r = sl_kube_publisher_new(
			&node->publisher, node->kube, node->options.name);
	if (r == 0)
		r = sl_line_new(node->loop, node->options.socket, &line, &node->line);
	if (r == 0)
		r = sd_event_add_time_relative(node->loop, &node->timer, CLOCK_MONOTONIC,
			GPUS_EVERY / SL_US, 0, on_timer, node);
	if (r >= 0)
		r = sl_kube_story_new(node, &node->story);
	if (r < 0) {
		sl_error_set(err, "cannot start the driver of node %.100s: %s",
			node->options.name, strerror(-r));
		return r;
	}
	if (node->options.device_plugin)
		return sl_kube_units_new(node, &node->units, err);
	return sl_kubelet_new(node->loop, node->options.kubelet, SL_KUBE_DRIVER, &kubelet,
		&node->kubelet, err);
}

int sl_kube_node_new(sd_event *loop, const struct sl_kube_node_options *options,
	struct sl_kube_node **out, struct sl_error *err)
{
	struct sl_kube_node *node = calloc(1, sizeof(*node));
	int r;

	if (!node) {
		sl_error_set(err, "out of memory");
		return sl_err_origin(-ENOMEM);
	}
	node->loop = sd_event_ref(loop);
	node->options = *options;
	sl_list_init(&node->works);
	r = open_all(node, err);
	if (r < 0)
		node = sl_kube_node_free(node);
	*out = node;
	return r;
}

struct sl_kube_node *sl_kube_node_free(struct sl_kube_node *node)
{
	if (!node)
		return NULL;
	sl_kube_node_end_works(node);
	sl_kube_node_end_sync(node);
	node->kubelet = sl_kubelet_free(node->kubelet);
	node->units = sl_kube_units_free(node->units);
	node->publisher = sl_kube_publisher_free(node->publisher);
	node->story = sl_kube_story_free(node->story);
	node->line = sl_line_free(node->line);
	node->kube = sl_kube_free(node->kube);
	node->timer = sd_event_source_disable_unref(node->timer);
	node->loop = sd_event_unref(node->loop);
	free(node);
	return NULL;
}
