/*
 * demands - what programs ask for, from the ASK to its COMMIT, its DENY or the end of its client
 *
 * Every event may come from a client that reports false numbers, repeats itself or has just died:
 * what the books cannot place is noted as stray. Races that honest clients cannot avoid (a CANCEL
 * that crosses its answer) are silent. A granted demand keeps its sequence number, so that it has
 * its old place after a refusal of the driver.
 */
#include "policy/node/plan.h"

/* The first retry is early: a dead process' memory usually comes back within tens of ms. */
#define AGAIN_FIRST (20 * SL_MS)
#define AGAIN_MOST  (500 * SL_MS)

static struct sl_node_demand *new_demand(struct sl_node *node)
{
	struct sl_node_demand *demand;

	if (sl_list_is_empty(&node->spare_demands)) {
		demand = sl_arena_take(node->arena, sizeof(*demand));
		sl_node_make_room(node);
	} else {
		demand = sl_node_demand_at(node->spare_demands.next);
		sl_list_unlink(&demand->of_client);
	}
	*demand = (struct sl_node_demand){.sequence = ++node->next_action};
	sl_list_init(&demand->of_client);
	return demand;
}

void sl_node_drop_demand(struct sl_node *node, struct sl_node_demand *demand)
{
	sl_list_unlink(&demand->of_client);
	if (SL_MUTANT(LEAKS_DEMANDS, true, false))
		sl_list_push_head(&node->spare_demands, &demand->of_client);
}

static struct sl_node_demand *find_ask(struct sl_node_client *client, uint64_t ask)
{
	sl_node_each_demand_of (demand, client) {
		if (demand->ask == ask)
			return demand;
	}
	return NULL;
}

static struct sl_node_demand *find_epoch(struct sl_node_client *client, uint64_t epoch)
{
	sl_node_each_demand_of (demand, client) {
		if (demand->epoch &&
			SL_MUTANT(EPOCH_IGNORED, demand->epoch == epoch, true))
			return demand;
	}
	return NULL;
}

struct sl_node_demand *sl_node_first_waiting(const struct sl_node_client *client)
{
	sl_node_each_demand_of (demand, client) {
		if (sl_node_is_waiting(demand))
			return demand;
	}
	return NULL;
}

bool sl_node_has_open_grant(const struct sl_node_client *client)
{
	sl_node_each_demand_of (demand, client) {
		if (demand->epoch && !(demand->flags & SL_NODE_DEMAND_VOID))
			return true;
	}
	return false;
}

/* --- answers --- */

/* Ends an open grant: `used` bytes were made, or became held; the rest goes back. */
static void end_grant(struct sl_node *node, struct sl_node_demand *demand, uint64_t used)
{
	struct sl_ledger_holding *holding = &demand->client->holding;

	if (SL_MUTANT(THERE_CHARGED, !(demand->flags & SL_NODE_DEMAND_THERE), true))
		sl_ledger_commit(
			&node->ledger, holding, demand->gpu, demand->bytes, used);
	if (demand->flags & SL_NODE_DEMAND_HELD)
		sl_ledger_held(&node->ledger, holding, demand->gpu, demand->bytes, used);
}

void sl_node_grant(struct sl_node_step *step, struct sl_node_demand *demand)
{
	struct sl_node *node = step->node;
	struct sl_node_client *client = demand->client;
	bool is_there = demand->flags & SL_NODE_DEMAND_THERE;
	sl_ns waited = step->now - demand->arrived;

	if (!sl_node_is_entitled(demand) && !is_there)
		client->told &= ~SL_NODE_TOLD_OOM;
	if (SL_MUTANT(THERE_CHARGED, !is_there, true))
		sl_ledger_grant(
			&node->ledger, &client->holding, demand->gpu, demand->bytes);
	if (demand->flags & SL_NODE_DEMAND_HELD)
		sl_ledger_hold(
			&node->ledger, &client->holding, demand->gpu, demand->bytes);
	demand->epoch = ++node->next_epoch;
	sl_node_be_active(step, client);
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_GRANT,
				   .grant = {.client = client->index.id,
					   .ask = demand->ask,
					   .epoch = demand->epoch,
					   .gpu = demand->gpu,
					   .bytes = SL_MUTANT(GRANT_HALF, demand->bytes,
						   demand->bytes / 2)}});
	if (SL_MUTANT(SERVED_UNTOLD, waited >= SL_S, false) && !is_there &&
		!(demand->told & SL_NODE_SAID_SERVED)) {
		demand->told |= SL_NODE_SAID_SERVED;
		sl_node_note_because(step,
			&(struct sl_node_because){.reason = SL_REASON_SERVED_AFTER_WAIT,
				.gpu = demand->gpu,
				.workload = client->workload->index.id,
				.client = client->index.id,
				.bytes = demand->bytes,
				.span = waited});
	}
}

bool sl_node_is_entitled(const struct sl_node_demand *demand)
{
	const struct sl_ledger_account *account = &demand->client->workload->account;

	return !demand->burst_since &&
	       sl_ledger_use(account, demand->gpu) + demand->bytes <=
		       sl_ledger_request(account, demand->gpu);
}

/* What was left under the limit, or beside requests, if that is the reason; else what is free. */
static uint64_t left_for(const struct sl_node *node, const struct sl_node_demand *demand,
	enum sl_reason reason)
{
	const struct sl_ledger_account *account = &demand->client->workload->account;

	if (reason == SL_REASON_OVER_LIMIT)
		return sl_sub_sat(
			account->limit_bytes, sl_ledger_use(account, demand->gpu));
	if (reason == SL_REASON_HELD_ON_REQUESTS)
		return sl_node_holdable(node, demand->client->workload, demand->gpu,
			demand->flags & SL_NODE_DEMAND_THERE);
	return sl_node_available(node, demand);
}

void sl_node_deny(
	struct sl_node_step *step, struct sl_node_demand *demand, enum sl_reason reason)
{
	struct sl_node_client *client = demand->client;
	bool stuck =
		reason == SL_REASON_UNTAKEABLE || reason == SL_REASON_RETURN_UNTAKEABLE;
	struct sl_node_because because = {.gpu = demand->gpu,
		.workload = client->workload->index.id,
		.bytes = demand->bytes,
		.available_bytes = left_for(step->node, demand, reason)};

	if (reason == SL_REASON_CONTEXT_WAITED)
		because = sl_node_context_because(step->node, demand);
	else
		(void)sl_node_name_most(step->node, &because,
			stuck ? sl_node_stuck_on : sl_node_burst_on);
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_DENY,
				   .deny = {.client = client->index.id,
					   .ask = demand->ask,
					   .reason = reason,
					   .gpu = demand->gpu,
					   .bytes = because.bytes,
					   .available_bytes = because.available_bytes,
					   .workload = because.workload,
					   .other = because.other,
					   .other_bytes = because.other_bytes,
					   .span = step->now - demand->arrived,
					   .entitled = sl_node_is_entitled(demand)}});
	sl_node_drop_demand(step->node, demand);
	step->plans = true;
}

/* Answers an ASK that the books cannot place. */
static void deny_unknown(struct sl_node_step *step, const struct sl_event *event)
{
	uint32_t gpu = event->ask.gpu;

	sl_node_emit(
		step, (struct sl_action){.type = SL_ACTION_DENY,
			      .deny = {.client = event->ask.client,
				      .ask = event->ask.ask,
				      .reason = SL_REASON_UNKNOWN_CLIENT,
				      .gpu = gpu,
				      .bytes = event->ask.bytes,
				      .available_bytes =
					      gpu < SL_NODE_GPUS_MAX
						      ? sl_ledger_free_bytes(
								&step->node->ledger, gpu)
						      : 0}});
}

void sl_node_cancel_all(struct sl_node_step *step, struct sl_node_workload *workload)
{
	sl_node_each_client_of (client, workload) {
		sl_list_foreach_safe (link, &client->demands) {
			if (!sl_node_demand_at(link)->epoch)
				sl_node_deny(step, sl_node_demand_at(link),
					SL_REASON_CANCELLED);
		}
	}
}

void sl_node_released(struct sl_node *node, uint32_t gpu)
{
	if (!(SL_MUTANT(RELEASE_WAKES_NOBODY, node->lacks, 0) >> gpu & 1))
		return;
	sl_node_each_client (client, node) {
		sl_node_each_demand_of (demand, client) {
			if (demand->gpu == gpu)
				demand->back_off.until = 0;
		}
	}
}

/* --- events --- */

/* No other demand of its workload waits that could need the rest of the limit. */
static bool asks_alone(const struct sl_node_demand *demand)
{
	sl_node_each_client_of (client, demand->client->workload) {
		const struct sl_node_demand *first = sl_node_first_waiting(client);

		if (first && first != demand)
			return false;
	}
	return true;
}

/* It takes free memory while nothing else waits for it: the plan would grant it, too. */
static bool is_plain(const struct sl_node_step *step, struct sl_node_demand *demand)
{
	const struct sl_node *node = step->node;
	const struct sl_node_client *client = demand->client;
	const struct sl_node_workload *workload = client->workload;
	const struct sl_ledger_account *account = &workload->account;
	uint64_t free_bytes = sl_ledger_free_bytes(&node->ledger, demand->gpu);
	uint64_t use = sl_ledger_use(account, demand->gpu) + demand->bytes;

	if (step->plans || node->recover_until || node->lacks || demand->flags ||
		workload->stage != SL_NODE_RUNS || sl_node_is_removed(workload) ||
		client->stage != SL_NODE_LIVES || client->stop_stage != SL_NODE_UNTOLD ||
		client->order.id || client->back_off.until > step->now ||
		demand->of_client.prev != &client->demands || sl_node_is_out(client) ||
		node->gpu[demand->gpu].lost || use > account->limit_bytes ||
		!asks_alone(demand))
		return false;
	if (!demand->burst_since)
		return demand->bytes <= free_bytes;
	return !sl_ledger_is_degraded(&node->ledger, demand->gpu) &&
	       demand->bytes + node->ledger.gpu[demand->gpu].unclaimed_bytes -
			       sl_ledger_unclaimed(account, demand->gpu) <=
		       free_bytes;
}

void sl_node_on_ask(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node_client *client =
		sl_node_find_client(step->node, event->ask.client);
	uint32_t gpu = event->ask.gpu, flags = event->ask.flags;
	struct sl_node_demand *demand;

	if (!client || client->stage == SL_NODE_DYING || gpu >= SL_NODE_GPUS_MAX ||
		(!event->ask.bytes && !(flags & SL_NODE_ASK_CONTEXT)) ||
		sl_node_is_removed(client->workload) ||
		!(client->workload->account.gpu_mask >> gpu & 1)) {
		deny_unknown(step, event);
		return;
	}
	if (SL_MUTANT(DUPLICATE_ASKS, find_ask(client, event->ask.ask) != NULL, false))
		return;
	demand = new_demand(step->node);
	demand->client = client;
	demand->ask = event->ask.ask;
	demand->gpu = gpu;
	demand->bytes = flags & SL_NODE_ASK_CONTEXT
				? 0
				: sl_min_u64(event->ask.bytes, SL_LEDGER_BYTES_MAX);
	demand->flags =
		(flags & SL_NODE_ASK_HELD ? SL_NODE_DEMAND_HELD : 0) |
		(flags & SL_NODE_ASK_THERE ? SL_NODE_DEMAND_THERE | SL_NODE_DEMAND_HELD
					   : 0) |
		(flags & SL_NODE_ASK_CONTEXT ? SL_NODE_DEMAND_CONTEXT : 0);
	demand->arrived = step->now;
	if (!(flags & SL_NODE_ASK_CONTEXT) && sl_node_is_burst(demand))
		demand->burst_since = sl_node_stamp(step);
	if (!sl_node_first_waiting(client))
		sl_node_be_active(step, client);
	sl_list_push_tail(&client->demands, &demand->of_client);
	if (is_plain(step, demand)) {
		sl_node_lengthen_slice(step->node, demand);
		sl_node_grant_in_slice(step, demand, false, false);
	} else if (flags & SL_NODE_ASK_NOW) {
		sl_node_deny(step, demand, SL_REASON_CANCELLED);
	} else {
		step->plans = true;
	}
}

void sl_node_on_cancel(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node_client *client =
		sl_node_find_client(step->node, event->cancel.client);
	struct sl_node_demand *demand =
		client ? find_ask(client, event->cancel.ask) : NULL;

	/* A grant that crossed the CANCEL stands: the client may be creating already, and will
	 * COMMIT what it used, or 0. */
	if (demand && !demand->epoch)
		sl_node_deny(step, demand, SL_REASON_CANCELLED);
}

void sl_node_on_commit(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_living(step, event->commit.client);
	struct sl_node_demand *demand =
		client ? find_epoch(client, event->commit.epoch) : NULL;
	uint64_t used, told = event->commit.used_bytes;

	if (!client)
		return;
	if (!demand) {
		sl_node_note(
			step, SL_REASON_STRAY, 0, client->workload->index.id, 0, told);
		return;
	}
	if (demand->flags & (SL_NODE_DEMAND_VOID | SL_NODE_DEMAND_CONTEXT)) {
		sl_node_drop_demand(step->node, demand);
		return;
	}
	used = SL_MUTANT(COMMIT_UNCLAMPED, sl_min_u64(told, demand->bytes), told);
	if (used < told)
		sl_node_note(step, SL_REASON_OVERCOMMIT, demand->gpu,
			client->workload->index.id, 0, told - used);
	end_grant(step->node, demand, used);
	sl_node_be_active(step, client);
	if (!(demand->flags & SL_NODE_DEMAND_THERE))
		sl_node_tell_view(step, client->workload, demand->gpu, 2);
	/* The client may leave now, and unused bytes are free. */
	step->plans |= step->node->lacks || step->node->awaits;
	sl_node_drop_demand(step->node, demand);
}

/* The driver refused: the demand keeps its place and is retried later. */
static void try_later(struct sl_node_step *step, struct sl_node_demand *demand)
{
	if (!(demand->told & SL_NODE_SAID_REFUSED))
		sl_node_note(step, SL_REASON_CREATE_FAILED, demand->gpu,
			demand->client->workload->index.id, 0, demand->bytes);
	demand->told |= SL_NODE_SAID_REFUSED;
	end_grant(step->node, demand, SL_MUTANT(FAILED_GRANT_KEPT, 0, demand->bytes));
	demand->epoch = 0;
	sl_node_back_off(step, &demand->back_off, sl_node_stamp(step), AGAIN_FIRST,
		SL_MUTANT(RETRY_AT_ONCE, AGAIN_MOST, 0), SL_REASON_CREATE_FAILED);
	if (SL_MUTANT(FAILED_LOSES_PLACE, false, true))
		demand->arrived = step->now;
}

void sl_node_on_create_failed(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_living(step, event->create_failed.client);
	struct sl_node_demand *demand =
		client ? find_epoch(client, event->create_failed.epoch) : NULL;

	if (!client)
		return;
	step->plans = true;
	if (!demand) {
		sl_node_note(step, SL_REASON_STRAY, 0, client->workload->index.id, 0, 0);
	} else if (demand->flags & SL_NODE_DEMAND_VOID) {
		sl_node_deny(step, demand, SL_REASON_GPU_LOST);
	} else if (demand->flags & SL_NODE_DEMAND_THERE) {
		end_grant(step->node, demand, 0); /* nothing was to be created */
		sl_node_deny(step, demand, SL_REASON_CANCELLED);
	} else {
		try_later(step, demand);
	}
}

void sl_node_void_grants(
	struct sl_node_step *step, struct sl_node_client *client, uint32_t gpu)
{
	sl_node_each_demand_of (demand, client) {
		if (!demand->epoch || demand->gpu != gpu ||
			demand->flags & SL_NODE_DEMAND_VOID)
			continue;
		end_grant(step->node, demand, 0);
		demand->flags |= SL_MUTANT(LOST_GRANT_STANDS, SL_NODE_DEMAND_VOID, 0);
	}
}
