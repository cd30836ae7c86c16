/*
 * rows - the books, as of the moment each row is made
 */
#include "daemon/control/rows.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/control/entry.h"
#include "daemon/control/parts.h"
#include "daemon/gpu/groups.h"
#include "daemon/gpu/inventory.h"
#include "daemon/jobs/jobs.h"
#include "daemon/jobs/resources.h"
#include "daemon/projects/registry.h"
#include "daemon/state/client.h"
#include "daemon/swap/hostpool.h"
#include "daemon/workloads/workload.h"

static enum sl_state state_of(
	const struct sl_workload *workload, const struct sl_node_use_view *use)
{
	if (use->waiting)
		return SL_STATE_WAITING;
	if (!sl_list_is_empty(&workload->clients))
		return SL_STATE_BOUND;
	return workload->root || workload->is_claimed ? SL_STATE_RESERVED : SL_STATE_GONE;
}

static uint32_t use_flags(const struct sl_node_workload_view *view,
	const struct sl_node_use_view *use, bool lost)
{
	uint64_t held = use->backing_bytes + use->granted_bytes + use->hidden_bytes;

	return (view->flags & SL_RUN_CHAIN) |
	       (view->flags & SL_WORKLOAD_NO_SWAP ? SL_USE_NO_SWAP : 0) |
	       (view->flags & SL_WORKLOAD_OOM_FIRST ? SL_USE_OOM_FIRST : 0) |
	       (view->flags & SL_WORKLOAD_OBSERVED ? SL_USE_OBSERVED : 0) |
	       (held > view->limit_bytes ? SL_USE_OVER_LIMIT : 0) |
	       (view->stopping ? SL_USE_STOPPING : 0) |
	       (view->untakeable ? SL_USE_UNTAKEABLE : 0) | (lost ? SL_USE_LOST : 0);
}

static enum sl_wire_residency residency_of(enum sl_residency residency)
{
	static const enum sl_wire_residency residencies[SL_RESIDENCIES] = {
		[SL_RESIDENCY_RESERVED] = SL_WIRE_RESERVED,
		[SL_RESIDENCY_BOUND] = SL_WIRE_BOUND,
		[SL_RESIDENCY_LEAVING] = SL_WIRE_LEAVING,
		[SL_RESIDENCY_EVICTED] = SL_WIRE_EVICTED,
		[SL_RESIDENCY_WARM] = SL_WIRE_WARM,
		[SL_RESIDENCY_RETURNING] = SL_WIRE_RETURNING,
		[SL_RESIDENCY_PARKED] = SL_WIRE_PARKED,
		[SL_RESIDENCY_RESUMING] = SL_WIRE_RESUMING,
		[SL_RESIDENCY_PARTIAL] = SL_WIRE_PARTIAL,
		[SL_RESIDENCY_PARKING] = SL_WIRE_PARKING,
		[SL_RESIDENCY_DETACHED] = SL_WIRE_DETACHED,
	};

	return (uint32_t)residency < SL_RESIDENCIES ? residencies[residency]
						    : SL_WIRE_RESERVED;
}

static enum sl_wire_endless endless_of(enum sl_endless endless)
{
	static const enum sl_wire_endless causes[SL_ENDLESS_CAUSES] = {
		[SL_ENDLESS_STAYS] = SL_WIRE_ENDLESS_STAYS,
		[SL_ENDLESS_HOST] = SL_WIRE_ENDLESS_HOST,
		[SL_ENDLESS_POOL] = SL_WIRE_ENDLESS_POOL,
		[SL_ENDLESS_BOUND] = SL_WIRE_ENDLESS_BOUND,
		[SL_ENDLESS_WHOLE] = SL_WIRE_ENDLESS_WHOLE,
		[SL_ENDLESS_REQUESTS] = SL_WIRE_ENDLESS_REQUESTS,
	};

	return (uint32_t)endless < SL_ENDLESS_CAUSES ? causes[endless]
						     : SL_WIRE_ENDLESS_UNSAID;
}

static uint64_t host_bytes_of(const struct sl_workload *workload)
{
	uint64_t bytes = 0;

	for (const struct sl_link *link = workload->clients.next;
		link != &workload->clients; link = link->next)
		bytes += SL_CONTAINER_OF((struct sl_link *)link, struct sl_client, link)
				 ->host_bytes;
	return bytes;
}

/* The share of the GPU's work done by the workload's processes, in thousandths. */
static uint32_t work_of(const struct sl_daemon *daemon,
	const struct sl_workload *workload, uint32_t ordinal)
{
	const struct sl_gpu *gpu = &daemon->gpus[workload->gpus[ordinal]];
	uint64_t sum = 0;

	if (!gpu->by_process)
		return UINT32_MAX;
	for (const struct sl_link *link = workload->clients.next;
		link != &workload->clients; link = link->next)
		sum += SL_CONTAINER_OF((struct sl_link *)link, struct sl_client, link)
			       ->gpus[ordinal]
			       .busy_pct;
	return gpu->busy_sum_pct
		       ? (uint32_t)sl_min_u64(1000, sum * 1000 / gpu->busy_sum_pct)
		       : 0;
}

static void use_row(const struct sl_daemon *daemon, const struct sl_workload *workload,
	uint32_t ordinal, union sl_msg *msg)
{
	uint32_t gpu = workload->gpus[ordinal];
	struct sl_node_use_view use = sl_node_use(daemon->node, workload->id, gpu);
	struct sl_node_workload_view view = sl_node_workload(daemon->node, workload->id);

	sl_wire_init(msg, SL_MSG_USE_ROW);
	msg->use_row.workload = workload->id;
	msg->use_row.gpu = gpu;
	msg->use_row.first_gpu = workload->first[ordinal];
	msg->use_row.clients = view.clients;
	msg->use_row.uid = workload->uid;
	msg->use_row.pid = (uint32_t)workload->root_pid;
	msg->use_row.priority_biased =
		(uint32_t)((int64_t)workload->priority + (int64_t)SL_PRIORITY_BIAS);
	msg->use_row.state = state_of(workload, &use);
	msg->use_row.waiting = use.waiting;
	msg->use_row.flags =
		use_flags(&view, &use, sl_node_gpu(daemon->node, gpu).lost) |
		(sl_groups_fixed(daemon, sl_workload_gpus(workload)) ? SL_USE_FIXED : 0) |
		(sl_jobs_is_moving(workload) ? SL_USE_MOVING : 0);
	msg->use_row.request_bytes = view.request_bytes;
	msg->use_row.limit_bytes = view.limit_bytes;
	msg->use_row.backing_bytes = use.backing_bytes;
	msg->use_row.hidden_bytes = use.hidden_bytes;
	msg->use_row.held_bytes = use.held_bytes;
	msg->use_row.dying_bytes = use.dying_bytes;
	msg->use_row.waiting_bytes = use.waiting_bytes;
	msg->use_row.age_ms = sl_sub_sat(sl_clock_now(), workload->born) / SL_MS;
	msg->use_row.residency = residency_of(view.residency);
	msg->use_row.evicted_bytes = use.evicted_bytes;
	msg->use_row.returning_bytes = use.returning_bytes;
	msg->use_row.host_bytes = ordinal ? 0 : host_bytes_of(workload);
	msg->use_row.turn_left_ms = view.turn_left / SL_MS;
	msg->use_row.waited_ms = view.wants_since / SL_MS;
	msg->use_row.longest_wait_ms =
		view.longest_wait == SL_NS_NEVER ? UINT64_MAX : view.longest_wait / SL_MS;
	msg->use_row.endless = endless_of(view.endless);
	msg->use_row.turns = view.turns;
	msg->use_row.waits = view.waits;
	msg->use_row.waits_ms = view.waited / SL_MS;
	msg->use_row.denials = workload->denials;
	msg->use_row.out_bytes = workload->moved[ordinal].out_bytes;
	msg->use_row.in_bytes = workload->moved[ordinal].in_bytes;
	msg->use_row.clean_bytes = workload->moved[ordinal].clean_bytes;
	msg->use_row.warm_after_ms = workload->warm_after / SL_MS;
	msg->use_row.detach_after_ms = workload->detach_after / SL_MS;
	msg->use_row.idle_grace_ms = workload->idle_grace / SL_MS;
	msg->use_row.work_pm = work_of(daemon, workload, ordinal);
	msg->use_row.compute_request_pm = workload->compute.request_pm;
	msg->use_row.compute_limit_pm = workload->compute.limit_pm;
	msg->use_row.compute_us =
		sl_compute_had(&workload->compute, false, sl_clock_now()) / SL_US;
	msg->use_row.compute_alone_us =
		sl_compute_had(&workload->compute, true, sl_clock_now()) / SL_US;
	msg->use_row.compute_used_pm =
		sl_compute_used_pm(&workload->compute, sl_clock_now());
	memcpy(msg->use_row.name, workload->name, sizeof(msg->use_row.name));
	memcpy(msg->use_row.project, workload->project, sizeof(msg->use_row.project));
	memcpy(msg->use_row.command, workload->command, sizeof(msg->use_row.command));
}

/* The workload with this id or the next larger one, or NULL. Usually the map has it. */
static struct sl_workload *from_id(const struct sl_daemon *daemon, uint64_t id)
{
	struct sl_workload *exact = sl_map_get(&daemon->workloads, id);

	if (exact)
		return exact;
	for (const struct sl_link *link = daemon->workload_list.next;
		link != &daemon->workload_list; link = link->next) {
		struct sl_workload *workload =
			SL_CONTAINER_OF((struct sl_link *)link, struct sl_workload, link);

		if (workload->id >= id)
			return workload;
	}
	return NULL;
}

/* The next workload, on the next of its GPUs; NULL at the end. */
static struct sl_workload *step_workload(
	const struct sl_daemon *daemon, struct sl_peer_list *list, uint32_t *ordinal)
{
	struct sl_workload *workload = from_id(daemon, list->workload);

	if (workload && workload->id != list->workload) {
		list->workload = workload->id;
		list->place = 0;
	}
	if (!workload)
		return NULL;
	if (list->place >= workload->gpu_count) {
		struct sl_link *next = workload->link.next;

		if (next == &daemon->workload_list)
			return NULL;
		workload = SL_LIST_ENTRY(next, struct sl_workload, link);
		list->workload = workload->id;
		list->place = 0;
	}
	*ordinal = list->place++;
	return workload;
}

static bool next_use(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg)
{
	uint32_t ordinal;
	const struct sl_workload *workload = step_workload(daemon, list, &ordinal);

	if (workload)
		use_row(daemon, workload, ordinal, msg);
	return workload != NULL;
}

static bool next_pool(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg)
{
	const struct sl_hostpool *pool = daemon->hostpool;
	struct sl_node_pool_view view;

	if (list->place++ > 0)
		return false;
	view = sl_node_pool(daemon->node);
	sl_wire_init(msg, SL_MSG_POOL_ROW);
	msg->pool_row.pool_bytes = view.pool_bytes;
	msg->pool_row.slack_bytes = view.slack_bytes;
	msg->pool_row.evicted_bytes = view.evicted_bytes;
	msg->pool_row.copies_bytes = view.copies_bytes;
	msg->pool_row.lent_bytes = view.overlap_bytes;
	msg->pool_row.made_bytes = pool->made_bytes;
	msg->pool_row.huge_bytes = pool->huge_bytes;
	msg->pool_row.available_bytes = pool->room.available_bytes;
	msg->pool_row.member_bytes = sl_hostpool_bound(daemon);
	msg->pool_row.swap_on = sl_hostpool_swap_is_on(daemon);
	msg->pool_row.moves = sl_jobs_moves_any(daemon);
	return true;
}

static enum sl_wire_condition condition_of(const struct sl_node_client_view *view)
{
	static const enum sl_wire_condition conditions[SL_CONDITIONS] = {
		[SL_CONDITION_RUNNING] = SL_WIRE_RUNNING,
		[SL_CONDITION_STOPPED] = SL_WIRE_STOPPED,
		[SL_CONDITION_TRACED] = SL_WIRE_TRACED,
		[SL_CONDITION_SILENT] = SL_WIRE_SILENT,
	};

	return (uint32_t)view->condition < SL_CONDITIONS ? conditions[view->condition]
							 : SL_WIRE_RUNNING;
}

static void client_row(const struct sl_daemon *daemon, const struct sl_client *client,
	uint32_t ordinal, union sl_msg *msg)
{
	uint32_t gpu = client->gpu_numbers[ordinal];
	struct sl_node_use_view use = sl_node_client_use(daemon->node, client->id, gpu);
	struct sl_node_client_view view = sl_node_client(daemon->node, client->id);

	sl_wire_init(msg, SL_MSG_CLIENT_ROW);
	msg->client_row.client = client->id;
	msg->client_row.workload = client->workload->id;
	msg->client_row.gpu = gpu;
	msg->client_row.pid = (uint32_t)client->pid;
	msg->client_row.condition = condition_of(&view);
	msg->client_row.flags = (view.stopping ? SL_CLIENT_STOPPING : 0) |
				(view.untakeable ? SL_CLIENT_UNTAKEABLE : 0) |
				(use.waiting ? SL_CLIENT_WAITS : 0) |
				(view.idle ? SL_CLIENT_IDLE : 0);
	msg->client_row.backing_bytes = use.backing_bytes;
	msg->client_row.hidden_bytes = use.hidden_bytes + use.paid_bytes;
	msg->client_row.held_bytes = use.held_bytes;
	msg->client_row.granted_bytes = use.granted_bytes;
	msg->client_row.waiting_bytes = use.waiting_bytes;
	msg->client_row.idle_ms = view.idle / SL_MS;
	msg->client_row.busy_ms = view.busy / SL_MS;
	memcpy(msg->client_row.name, client->workload->name,
		sizeof(msg->client_row.name));
}

/* The client with this id, or the next larger one, in the workload; NULL at the end. */
static const struct sl_client *client_from(
	const struct sl_daemon *daemon, const struct sl_workload *workload, uint64_t id)
{
	const struct sl_client *exact = sl_map_get(&daemon->clients, id);
	const struct sl_client *best = NULL;

	if (exact && exact->workload == workload && exact->state != SL_CLIENT_DYING)
		return exact;
	for (const struct sl_link *link = workload->clients.next;
		link != &workload->clients; link = link->next) {
		const struct sl_client *client =
			SL_CONTAINER_OF((struct sl_link *)link, struct sl_client, link);

		if (client->id >= id && (!best || client->id < best->id))
			best = client;
	}
	return best;
}

/* The next client, on the next of its GPUs; NULL at the end. */
static const struct sl_client *step_client(
	const struct sl_daemon *daemon, struct sl_peer_list *list, uint32_t *ordinal)
{
	struct sl_workload *workload;

	while ((workload = from_id(daemon, list->workload))) {
		const struct sl_client *client;

		if (workload->id != list->workload) {
			list->workload = workload->id;
			list->client = list->place = 0;
		}
		client = client_from(daemon, workload, list->client);
		if (client && client->id != list->client) {
			list->client = client->id;
			list->place = 0;
		}
		if (client && list->place < client->gpu_count) {
			*ordinal = list->place++;
			return client;
		}
		if (client) {
			list->client++;
		} else {
			list->workload++;
			list->client = 0;
		}
		list->place = 0;
	}
	return NULL;
}

static bool next_client(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg)
{
	uint32_t ordinal;
	const struct sl_client *client = step_client(daemon, list, &ordinal);

	if (client)
		client_row(daemon, client, ordinal, msg);
	return client != NULL;
}

static void gpu_row(const struct sl_daemon *daemon, uint32_t number, union sl_msg *msg)
{
	const struct sl_gpu *gpu = &daemon->gpus[number];
	struct sl_node_gpu_view view = sl_node_gpu(daemon->node, number);

	sl_wire_init(msg, SL_MSG_GPU_ROW);
	msg->gpu_row.gpu = number;
	msg->gpu_row.condition =
		(view.degraded ? SL_GPU_DEGRADED : 0) | (view.lost ? SL_GPU_LOST : 0) |
		(gpu->reserve_is_ours ? SL_GPU_RESERVE : 0) |
		(sl_groups_fixed(daemon, 1u << number) ? SL_GPU_FIXED : 0);
	msg->gpu_row.workloads = view.workloads;
	msg->gpu_row.waiting = view.waiting;
	memcpy(msg->gpu_row.uuid, gpu->uuid, sizeof(msg->gpu_row.uuid));
	msg->gpu_row.capacity_bytes = view.capacity_bytes;
	msg->gpu_row.reserve_bytes = view.reserve_bytes;
	msg->gpu_row.unmanaged_bytes = view.unmanaged_bytes;
	msg->gpu_row.shareable_bytes = view.shareable_bytes;
	msg->gpu_row.requests_bytes = view.requests_bytes;
	msg->gpu_row.backing_bytes = view.backing_bytes;
	msg->gpu_row.evicted_bytes = view.evicted_bytes;
	msg->gpu_row.granted_bytes = view.granted_bytes;
	msg->gpu_row.hidden_bytes = view.hidden_bytes;
	msg->gpu_row.paid_bytes = view.paid_bytes;
	msg->gpu_row.dying_bytes = view.dying_bytes;
	/* A lost GPU's free memory cannot be used, and its last utilisation is out of date. */
	msg->gpu_row.free_bytes = view.lost ? 0 : view.free_bytes;
	msg->gpu_row.utilisation_pct = view.lost ? 0 : gpu->utilisation_pct;
	msg->gpu_row.measured_age_ms = UINT32_MAX; /* never */
	if (gpu->measured_at)
		msg->gpu_row.measured_age_ms = (uint32_t)sl_min_u64(
			UINT32_MAX, sl_sub_sat(sl_clock_now(), gpu->measured_at) / SL_MS);
	memcpy(msg->gpu_row.name, gpu->name, sizeof(msg->gpu_row.name));
	memcpy(msg->gpu_row.pci, gpu->pci, sizeof(msg->gpu_row.pci));
}

static bool next_gpu(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg)
{
	while (list->place < daemon->gpu_count && !daemon->gpus[list->place].managed)
		list->place++;
	if (list->place >= daemon->gpu_count)
		return false;
	gpu_row(daemon, list->place++, msg);
	return true;
}

/* NVML may be silent without having failed. */
static bool is_silent(const struct sl_daemon *daemon)
{
	for (uint32_t i = 0; i < daemon->gpu_count; i++) {
		if (daemon->gpus[i].managed && daemon->gpus[i].complained)
			return true;
	}
	return !daemon->inventory_seen;
}

static bool next_status(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg)
{
	if (list->place++ > 0)
		return false;
	sl_wire_init(msg, SL_MSG_STATUS_ROW);
	msg->status_row.daemon_epoch = daemon->epoch;
	msg->status_row.uptime_ms = (sl_clock_now() - daemon->started) / SL_MS;
	msg->status_row.messages = daemon->messages;
	msg->status_row.grants = daemon->grants;
	msg->status_row.denials = daemon->denials;
	msg->status_row.pid = (uint32_t)getpid();
	msg->status_row.gpus = sl_inventory_managed(daemon);
	msg->status_row.workloads = daemon->workload_count;
	msg->status_row.clients = daemon->client_count;
	msg->status_row.recovering = daemon->expected_count;
	msg->status_row.nvml_ok = daemon->nvml_ok && !is_silent(daemon);
	msg->status_row.journal_error = (uint32_t)daemon->commit.error;
	sl_wire_str(msg->status_row.journal, sizeof(msg->status_row.journal),
		daemon->state_dir);
	sl_wire_str(msg->status_row.version, sizeof(msg->status_row.version), SL_VERSION);
	sl_wire_str(
		msg->status_row.driver, sizeof(msg->status_row.driver), daemon->driver);
	sl_wire_str(msg->status_row.config, sizeof(msg->status_row.config),
		daemon->config_path);
	sl_wire_str(msg->status_row.nvml_text, sizeof(msg->status_row.nvml_text),
		daemon->nvml_ok && is_silent(daemon)
			? "NVML has not answered for 5 s; is the "
			  "driver stuck? (dmesg)"
			: daemon->nvml_text);
	return true;
}

bool sl_rows_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg)
{
	switch (list->what) {
	case SL_LIST_USES: return next_use(daemon, list, msg);
	case SL_LIST_GPUS: return next_gpu(daemon, list, msg);
	case SL_LIST_STATUS: return next_status(daemon, list, msg);
	case SL_LIST_CLIENTS: return next_client(daemon, list, msg);
	case SL_LIST_POOL: return next_pool(daemon, list, msg);
	case SL_LIST_JOBS: return sl_jobs_row_at(daemon, &list->workload, msg);
	case SL_LIST_QUEUE: return sl_jobs_queue_next(daemon, list, msg);
	case SL_LIST_PARTS: return sl_parts_next(daemon, list, msg);
	case SL_LIST_PROJECTS: return sl_registry_next(daemon, list, msg);
	case SL_LIST_ENTRIES: return sl_entry_next(daemon, list, msg);
	case SL_LIST_RESOURCES: return sl_resources_next(daemon, list, msg);
	}
	return false;
}
