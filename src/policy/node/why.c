/*
 * why - why a workload is as it is now, for people
 *
 * One sentence for each thing that the workload waits for (because.c), and more where people can
 * act: make room on the host, end what stays. Waits that are over are in the events.
 */
#include "policy/node/plan.h"

struct why {
	const struct sl_node *node;
	sl_node_because_fn fn;
	void *context;
};

/* Others would leave for it if the host had memory for them. */
static void say_no_host(const struct why *why, const struct sl_node_because *waits)
{
	struct sl_node_because because = {.reason = SL_REASON_NO_HOST_WAITS,
		.gpu = waits->gpu,
		.workload = waits->workload,
		.client = waits->client};

	if ((waits->reason == SL_REASON_ENTITLED_WAITS ||
		    waits->reason == SL_REASON_BURST_WAITS ||
		    waits->reason == SL_REASON_TURN_WAITS ||
		    waits->reason == SL_REASON_LEAVING_WAITS) &&
		sl_node_name_most(why->node, &because, sl_node_hostless_on))
		why->fn(why->context, &because);
}

/* Memory that never leaves would make enough room. */
static void say_kept(const struct why *why, const struct sl_node_because *waits)
{
	struct sl_node_because because = {.reason = SL_REASON_BURST_STAYS,
		.gpu = waits->gpu,
		.workload = waits->workload,
		.client = waits->client};

	if ((waits->reason == SL_REASON_GRACE_WAITS ||
		    waits->reason == SL_REASON_BURST_WAITS ||
		    waits->reason == SL_REASON_TURN_WAITS) &&
		sl_node_swaps(why->node) &&
		sl_node_name_most(why->node, &because, sl_node_kept_on) &&
		because.other_bytes >= waits->bytes)
		why->fn(why->context, &because);
}

/* What it waits for, and what people can do about it. */
static void say_waits(const struct why *why, const struct sl_node_because *waits)
{
	why->fn(why->context, waits);
	say_no_host(why, waits);
	say_kept(why, waits);
}

static void say_demands(const struct why *why, const struct sl_node_client *client)
{
	sl_node_each_demand_of (demand, client) {
		struct sl_node_because because;

		if (demand->epoch)
			continue;
		if (demand->flags & SL_NODE_DEMAND_CONTEXT) {
			because = sl_node_context_because(why->node, demand);
			if (because.reason != SL_REASON_NONE)
				why->fn(why->context, &because);
			continue;
		}
		if (sl_node_is_away(client))
			continue; /* say_away covers it */
		because = sl_node_waits_because(why->node, demand);
		say_waits(why, &because);
		if ((because.reason == SL_REASON_ENTITLED_WAITS ||
			    because.reason == SL_REASON_BURST_WAITS) &&
			sl_node_waits_for_pool(why->node,
				sl_node_claim_of(why->node, client, demand), &because))
			why->fn(why->context, &because);
	}
}

static void say_away(const struct why *why, const struct sl_node_client *client)
{
	bool waits = sl_node_wanted_since(client) || sl_node_is_returning(client);
	struct sl_node_because because;

	if (!waits || !sl_node_is_away(client) ||
		client->workload->stage == SL_NODE_RESUMING)
		return;
	because = sl_node_away_because(why->node, client);
	say_waits(why, &because);
}

/* Until all clients have reported, some are unknown and nothing is granted. */
static void say_recovery(const struct why *why, const struct sl_node_workload *workload)
{
	bool waits = false;

	sl_node_each_client_of (client, workload)
		waits |= client->stage == SL_NODE_EXPECTED ||
			 client->stage == SL_NODE_REPORTING ||
			 sl_node_wanted_since(client);
	if (waits && workload->stage != SL_NODE_PARKED)
		why->fn(why->context,
			&(struct sl_node_because){.reason = SL_REASON_RECOVERY_WAITS,
				.workload = workload->index.id});
}

static void say_client(const struct why *why, const struct sl_node_client *client)
{
	const struct sl_node *node = why->node;
	struct sl_node_because because;

	if (client->stage == SL_NODE_DYING)
		return;
	if (client->workload->stage == SL_NODE_PARKED &&
		sl_node_parking_because(node, client, &because))
		why->fn(why->context, &because);
	if (!node->recover_until) {
		say_away(why, client);
		say_demands(why, client);
	}
	if (client->stop_stage >= SL_NODE_TERMED &&
		client->stop_stage <= SL_NODE_STUBBORN)
		why->fn(why->context, &client->stop);
	if (!sl_node_is_untakeable(node, client))
		return;
	because = (struct sl_node_because){.reason = SL_REASON_UNTAKEABLE_BEGINS,
		.workload = client->workload->index.id,
		.client = client->index.id,
		.available_bytes = client->condition,
		.span = node->now - sl_node_stuck_since(client)};
	why->fn(why->context, &because);
}

static void say_gpu(
	const struct why *why, const struct sl_node_workload *workload, uint32_t gpu)
{
	const struct sl_node *node = why->node;
	uint64_t over = sl_sub_sat(
		sl_ledger_use(&workload->account, gpu), workload->account.limit_bytes);
	struct sl_node_because because = {.gpu = gpu, .workload = workload->index.id};

	if (node->gpu[gpu].lost) {
		because.reason = SL_REASON_LOST_FOR;
		because.bytes = sl_ledger_here(&workload->account, gpu);
		why->fn(why->context, &because);
	} else if (sl_ledger_is_degraded(&node->ledger, gpu)) {
		because.reason = SL_REASON_DEGRADED_BEGINS;
		because.bytes = sl_ledger_excess(&node->ledger, gpu);
		why->fn(why->context, &because);
	}
	if (!over || sl_node_is_removed(workload))
		return;
	why->fn(why->context,
		&(struct sl_node_because){.reason = SL_REASON_OVER_ITS_LIMIT,
			.gpu = gpu,
			.workload = workload->index.id,
			.other_bytes = over});
}

/* There is no room for it, whatever comes and goes. */
static void say_endless(const struct why *why, const struct sl_node_workload *workload)
{
	const struct sl_node *node = why->node;
	enum sl_endless endless = workload->sums->endless;
	struct sl_node_because because = {.workload = workload->index.id};

	if (!sl_node_swaps(node) ||
		(endless != SL_ENDLESS_STAYS && endless != SL_ENDLESS_WHOLE))
		return;
	sl_each_gpu (gpu, workload->sums->gpus) {
		uint64_t shareable = sl_ledger_shareable(&node->ledger, gpu);
		uint64_t stays = node->plan->lasts.gpu[gpu].fixed_bytes -
				 workload->sums->lasts.on[gpu].fixed_bytes;

		because.gpu = gpu;
		because.bytes = sl_node_use(node, workload->index.id, gpu).waiting_bytes +
				sl_ledger_use(&workload->account, gpu);
		because.available_bytes = sl_sub_sat(shareable, stays);
		if (stays + because.bytes <= shareable)
			continue;
		because.reason = stays ? SL_REASON_STAYS_WAITS : SL_REASON_WHOLE_WAITS;
		(void)sl_node_name_most(node, &because, sl_node_lasting_on);
		why->fn(why->context, &because);
		return;
	}
}

void sl_node_why(
	const struct sl_node *node, uint64_t id, sl_node_because_fn fn, void *context)
{
	const struct sl_node_workload *workload = sl_node_find_workload(node, id);
	struct why why = {.node = node, .fn = fn, .context = context};
	struct sl_node_because because;

	if (!workload)
		return;
	if (sl_node_is_stopped(workload) && !sl_node_is_removed(workload))
		fn(context, &(struct sl_node_because){
				    .reason = SL_REASON_STOP_ASKED, .workload = id});
	if (workload->stage == SL_NODE_RESUMING) {
		because = sl_node_resume_because(node, workload);
		fn(context, &because);
	}
	if (node->recover_until)
		say_recovery(&why, workload);
	else
		say_endless(&why, workload);
	if (workload->told & SL_NODE_TOLD_WARM &&
		sl_node_warm_because(node, workload, &because))
		fn(context, &because);
	sl_node_each_client_of (client, workload)
		say_client(&why, client);
	sl_each_gpu (gpu, workload->account.gpu_mask | sl_node_actual_mask(workload))
		say_gpu(&why, workload, gpu);
}
