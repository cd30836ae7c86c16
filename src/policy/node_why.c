/*
 * node_why - why a workload is as it is now, and every demand of the node
 *
 * Made up from the books at the moment of the question, like the reasons of waiting demands
 * (node_waits.c): nothing is remembered for it, so no answer can be out of date. What has happened
 * and is over is in the events, not here.
 */
#include "policy/mutant.h"
#include "policy/node_state.h"

/* --- why --- */

/* What of it has no room on the host. */
static uint64_t hostless_of(
	const struct sl_node *node, const struct sl_node_member *member, uint32_t gpu)
{
	uint64_t bytes = 0;

	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		if (sl_node_is_hostless(node, client))
			bytes += sl_node_to_leave(node, client, gpu);
	}
	return bytes;
}

/* Who waits would have the memory of others, were there room on the host: the one with most to
 * move. */
static void why_nobody_leaves(const struct sl_node *node,
	const struct sl_node_because *waits, sl_node_because_fn fn, void *context)
{
	struct sl_node_because because = {.reason = SL_REASON_NO_HOST_WAITS,
		.gpu = waits->gpu,
		.workload = waits->workload,
		.client = waits->client};

	if (waits->reason != SL_REASON_ENTITLED_WAITS &&
		waits->reason != SL_REASON_BURST_WAITS &&
		waits->reason != SL_REASON_TURN_WAITS &&
		waits->reason != SL_REASON_LEAVING_WAITS)
		return;
	sl_list_foreach (link, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);
		uint64_t bytes = hostless_of(node, member, waits->gpu);

		if (bytes <= because.other_bytes || member->index.id == waits->workload)
			continue;
		because.other = member->index.id;
		because.other_bytes = bytes;
	}
	if (because.other)
		fn(context, &because);
}

/* Its demand waits for memory that others have, and nobody may go to the host for it. */
static void why_not_to_the_host(const struct sl_node *node,
	const struct sl_node_client *client, const struct sl_node_because *waits,
	sl_node_because_fn fn, void *context)
{
	struct sl_node_because because = *waits;

	if ((waits->reason == SL_REASON_ENTITLED_WAITS ||
		    waits->reason == SL_REASON_BURST_WAITS) &&
		sl_node_waits_for_pool(node, client, &because) &&
		because.gpu == waits->gpu && because.bytes == waits->bytes)
		fn(context, &because);
}

/* Not on the GPU, and wanted there: said once for all that it waits for. */
static bool why_it_is_away(const struct sl_node *node,
	const struct sl_node_client *client, sl_node_because_fn fn, void *context)
{
	struct sl_node_because because;

	if (!client->alive || !sl_node_is_away(client))
		return false;
	if (client->member->resuming)
		return true; /* said of all of it */
	if (!client->returns && !client->waiting &&
		!(client->is_out && (client->wants || client->comes_back)))
		return true;
	because = sl_node_away_because(node, client);
	fn(context, &because);
	why_nobody_leaves(node, &because, fn, context);
	return true;
}

static void why_it_waits(const struct sl_node *node, const struct sl_node_client *client,
	sl_node_because_fn fn, void *context)
{
	sl_list_foreach (link, &client->party.demands) {
		const struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, of_client);
		struct sl_node_because because;

		if (demand->epoch)
			continue;
		because = sl_node_waits_because(node, demand);
		fn(context, &because);
		why_nobody_leaves(node, &because, fn, context);
		why_not_to_the_host(node, client, &because, fn, context);
	}
}

static void why_it_is_untakeable(const struct sl_node *node,
	const struct sl_node_client *client, sl_node_because_fn fn, void *context)
{
	sl_ns condition = client->condition != SL_CONDITION_RUNNING
				  ? node->now - client->condition_at
				  : 0;
	struct sl_node_because because = {.reason = SL_REASON_UNTAKEABLE_BEGINS,
		.workload = client->member->index.id,
		.client = client->index.id,
		.span = sl_max_u64(condition, sl_node_busy(node, client))};

	fn(context, &because);
}

static void why_it_is_parking(const struct sl_node *node,
	const struct sl_node_client *client, sl_node_because_fn fn, void *context)
{
	struct sl_node_because because;

	if (!sl_node_is_parking(node, client))
		return;
	because = sl_node_parking_because(node, client);
	fn(context, &because);
}

/* Its workload is idle, and would be warm. */
static void why_it_is_not_warm(const struct sl_node *node,
	const struct sl_node_client *client, sl_node_because_fn fn, void *context)
{
	struct sl_node_because because;

	if (client->member->warm_told && sl_node_warm_because(node, client, &because))
		fn(context, &because);
}

static void why_client(const struct sl_node *node, const struct sl_node_client *client,
	sl_node_because_fn fn, void *context)
{
	why_it_is_parking(node, client, fn, context);
	why_it_is_not_warm(node, client, fn, context);
	sl_node_why_contexts(node, client, fn, context);
	if (!why_it_is_away(node, client, fn, context))
		why_it_waits(node, client, fn, context);
	if (client->stopping != SL_NODE_LIVES && client->stopping != SL_NODE_UNREACHED)
		fn(context, &client->stop);
	if (client->untakeable)
		why_it_is_untakeable(node, client, fn, context);
}

static void why_gpu(const struct sl_node *node, const struct sl_node_member *member,
	uint32_t gpu, sl_node_because_fn fn, void *context)
{
	struct sl_node_because because = {.gpu = gpu, .workload = member->index.id};

	if (node->queue[gpu].lost) {
		because.reason = SL_REASON_LOST_FOR;
		because.bytes = sl_ledger_here(&member->account, gpu);
	} else if (node->queue[gpu].degraded) {
		because.reason = SL_REASON_DEGRADED_BEGINS;
		because.bytes = sl_ledger_excess(&node->ledger, gpu);
	} else {
		return;
	}
	fn(context, &because);
}

/* Its limit was lowered below what it holds. */
static void why_over_limit(const struct sl_node_member *member, uint32_t gpu,
	sl_node_because_fn fn, void *context)
{
	uint64_t over = sl_sub_sat(
		sl_ledger_use(&member->account, gpu), member->account.limit_bytes);

	if (over && !member->leaving)
		fn(context, &(struct sl_node_because){.reason = SL_REASON_OVER_ITS_LIMIT,
				    .gpu = gpu,
				    .workload = member->index.id,
				    .other_bytes = over});
}

void sl_node_why(const struct sl_node *node, uint64_t workload, sl_node_because_fn fn,
	void *context)
{
	const struct sl_node_member *member = sl_node_find_member(node, workload);
	struct sl_node_because endless;
	uint32_t mask;

	if (!member)
		return;
	if (member->stopping && !member->leaving)
		fn(context, &(struct sl_node_because){.reason = SL_REASON_STOP_ASKED,
				    .workload = workload});
	if (member->resuming) {
		struct sl_node_because because = sl_node_resume_because(node, member);

		fn(context, &because);
	}
	if (sl_node_endless_because(node, member, &endless))
		fn(context, &endless);
	sl_list_foreach (link, &member->clients)
		why_client(node, SL_LIST_ENTRY(link, struct sl_node_client, of_member),
			fn, context);
	mask = member->account.gpu_mask | member->actual_mask;
	for (; mask; mask &= mask - 1) {
		why_gpu(node, member, (uint32_t)__builtin_ctz(mask), fn, context);
		why_over_limit(member, (uint32_t)__builtin_ctz(mask), fn, context);
	}
}

/* --- demands --- */

static void show_demand(const struct sl_node *node, const struct sl_demand *demand,
	sl_node_demand_fn fn, void *context)
{
	const struct sl_node_client *client = sl_node_client_of(demand);
	struct sl_node_demand_view view = {.client = client->index.id,
		.workload = client->member->index.id,
		.ask = demand->ask,
		.bytes = demand->bytes,
		.epoch = demand->epoch,
		.gpu = demand->gpu,
		.priority = demand->priority,
		.entitled = demand->entitled,
		.head = node->queue[demand->gpu].head == demand,
		.waited = node->now - demand->arrived};

	fn(context, &view);
}

static void show_granted(const struct sl_node *node, const struct sl_node_client *client,
	sl_node_demand_fn fn, void *context)
{
	sl_list_foreach (link, &client->party.demands) {
		const struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, of_client);

		if (demand->epoch && !demand->is_void)
			show_demand(node, demand, fn, context);
	}
}

void sl_node_each_demand(const struct sl_node *node, sl_node_demand_fn fn, void *context)
{
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		sl_list_foreach (link, &node->queue[gpu].waiting)
			show_demand(node, SL_LIST_ENTRY(link, struct sl_demand, queue),
				fn, context);
	}
	sl_list_foreach (at, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(at, struct sl_node_member, of_node);

		sl_list_foreach (link, &member->clients)
			show_granted(node,
				SL_LIST_ENTRY(link, struct sl_node_client, of_member), fn,
				context);
	}
}
