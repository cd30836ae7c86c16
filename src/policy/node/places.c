/*
 * places - processes that leave their GPUs whole, contexts included, and come back
 *
 * Once all memory of a parked workload is on the host, its processes follow: nothing of it is on a
 * GPU any more, and others may use its part of the reserve. Before any memory returns, the process
 * does, and that needs room for its contexts, as much as they had before. A process that refuses
 * stays on its GPUs, as if it could not leave, and is asked again later.
 */
#include "policy/node/plan.h"

/* It may be in the middle of something that a lock of the process would disturb. */
#define DETACH_AGAIN_FIRST (5 * SL_S)
#define DETACH_AGAIN_MOST  (600 * SL_S)
#define ATTACH_AGAIN_FIRST (20 * SL_MS)
#define ATTACH_AGAIN_MOST  (2 * SL_S)

bool sl_node_is_detached(const struct sl_node_client *client)
{
	sl_each_gpu (gpu, client->holding.touched) {
		if (client->holding.cell[gpu].away_bytes)
			return true;
	}
	return false;
}

static uint64_t measured(const struct sl_node_client *client, uint32_t *first)
{
	uint64_t bytes = 0;

	sl_each_gpu (gpu, client->holding.touched) {
		uint64_t here = sl_ledger_measured(&client->holding.cell[gpu]);

		if (here && !bytes)
			*first = gpu;
		bytes += here;
	}
	return bytes;
}

/* Memory that cannot leave keeps the process, too. */
static bool has_only_contexts(
	const struct sl_node *node, const struct sl_node_client *client)
{
	sl_each_gpu (gpu, client->holding.touched) {
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];

		if (node->gpu[gpu].lost ||
			sl_ledger_live(cell) - SL_MUTANT(DETACH_WITH_HELD, 0,
						       cell->held_bytes) !=
				cell->hidden_bytes)
			return false;
	}
	return true;
}

static void open_order(struct sl_node_step *step, struct sl_node_client *client,
	enum sl_node_order_kind kind, uint32_t gpu, struct sl_action action)
{
	client->order = (struct sl_node_order){.id = sl_node_emit(step, action),
		.kind = kind,
		.gpu = gpu,
		.out_bytes = client->holding.cell[gpu].evicted_bytes,
		.since = sl_node_stamp(step)};
}

void sl_node_detach(struct sl_node_step *step, struct sl_node_client *client)
{
	struct sl_node *node = step->node;
	uint32_t gpu = 0;
	uint64_t bytes = measured(client, &gpu);

	if (!node->config.config.detach || !bytes || client->order.id ||
		sl_node_has_open_grant(client) || client->told & SL_NODE_UNHEARD ||
		!sl_node_answers(node, client, step->now) ||
		sl_node_is_told_to_end(client) || !has_only_contexts(node, client) ||
		!sl_node_has_come(step, client->back_off.until))
		return;
	open_order(step, client, SL_NODE_DETACH, gpu,
		(struct sl_action){.type = SL_ACTION_DETACH,
			.detach = {.client = client->index.id,
				.workload = client->workload->index.id,
				.bytes = bytes,
				.drain = node->config.config.evict_drain}});
}

/* --- back --- */

void sl_node_call_back(struct sl_node_step *step, struct sl_node_client *client)
{
	if (client->stage == SL_NODE_DYING ||
		!(sl_node_is_detached(client) || sl_node_is_travelling(client)))
		return;
	client->told |= SL_NODE_COMES_BACK;
	if (!client->wants_since)
		client->wants_since = sl_node_stamp(step);
}

bool sl_node_lacks_reserve(const struct sl_node *node,
	const struct sl_node_client *client, struct sl_node_because *because)
{
	const struct sl_ledger_account *account = &client->workload->account;

	sl_each_gpu (gpu, client->holding.touched) {
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];
		uint64_t entry = sl_ledger_entry(&node->ledger, cell, gpu);
		uint64_t fixed = sl_ledger_staying(account, gpu) + entry;

		if (!entry || SL_MUTANT(ATTACH_OVERBOOKS,
				      fixed <= sl_node_request_room(
						       node, client->workload, gpu),
				      true))
			continue;
		because->gpu = gpu;
		because->bytes = cell->away_bytes;
		because->available_bytes = cell->away_bytes - entry;
		return true;
	}
	return false;
}

bool sl_node_may_attach(const struct sl_node *node, const struct sl_node_client *client)
{
	struct sl_node_because because = {0};

	sl_each_gpu (gpu, client->holding.touched) {
		if (client->holding.cell[gpu].away_bytes && node->gpu[gpu].lost)
			return false;
	}
	return !sl_node_lacks_reserve(node, client, &because);
}

static void book(struct sl_node_step *step, struct sl_node_client *client, bool here)
{
	struct sl_ledger *ledger = &step->node->ledger;

	sl_each_gpu (gpu, client->holding.touched) {
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];
		uint64_t bytes = cell->away_bytes + sl_ledger_measured(cell);

		sl_ledger_set_away(ledger, &client->holding, gpu, here ? 0 : bytes);
		sl_ledger_set_hidden(ledger, &client->holding, gpu,
			here ? SL_MUTANT(ATTACH_TAKES_NO_ROOM, bytes, 0) : 0);
		if (!bytes)
			continue;
		sl_node_tell_view(step, client->workload, gpu, 1);
		sl_node_repay(step, gpu);
		sl_node_released(step->node, gpu);
	}
}

void sl_node_attach(struct sl_node_step *step, struct sl_node_client *client)
{
	uint32_t gpu = 0;

	book(step, client, true);
	/* The plan counted on the reserve for each of them: nothing leaves by it. */
	step->node->plan->is_stale = SL_MUTANT(RESERVE_PAYS_TWICE, true, false);
	sl_node_wake(step, step->now);
	(void)measured(client, &gpu);
	open_order(step, client, SL_NODE_ATTACH, gpu,
		(struct sl_action){.type = SL_ACTION_ATTACH,
			.attach = {.client = client->index.id,
				.workload = client->workload->index.id}});
}

/* --- answers --- */

static void note(struct sl_node_step *step, const struct sl_node_client *client,
	enum sl_reason reason, uint32_t gpu, uint64_t bytes, sl_ns span)
{
	sl_node_note_because(step, &(struct sl_node_because){.reason = reason,
					   .gpu = gpu,
					   .workload = client->workload->index.id,
					   .client = client->index.id,
					   .bytes = bytes,
					   .span = span});
}

static void detach_done(struct sl_node_step *step, struct sl_node_client *client,
	const struct sl_event *event)
{
	uint32_t gpu = 0;
	uint64_t bytes = measured(client, &gpu);
	enum sl_reason refused = event->placed.cause == SL_SWAP_BUSY
					 ? SL_REASON_DETACH_BUSY
					 : SL_REASON_DETACH_FAILED;

	if (event->placed.outcome == SL_SWAP_OK) {
		book(step, client, false);
		client->back_off = (struct sl_node_back_off){0};
		note(step, client, SL_REASON_DETACHED, gpu, bytes, event->placed.span);
		return;
	}
	if (!sl_node_is_parked(client->workload)) { /* it was resumed meanwhile */
		if (!sl_node_is_out(client))
			sl_node_is_back(step, client);
		return;
	}
	if (!client->back_off.times)
		note(step, client, refused, gpu, bytes, event->placed.span);
	sl_node_back_off(step, &client->back_off, step->now, DETACH_AGAIN_FIRST,
		SL_MUTANT(DETACH_AT_ONCE, DETACH_AGAIN_MOST, 0), refused);
}

static void attach_done(struct sl_node_step *step, struct sl_node_client *client,
	const struct sl_event *event)
{
	uint32_t gpu = 0;
	uint64_t bytes = measured(client, &gpu);

	if (event->placed.outcome == SL_SWAP_OK) {
		client->back_off = (struct sl_node_back_off){0};
		note(step, client,
			event->placed.cause == SL_SWAP_BROKEN ? SL_REASON_BROKEN_AWAY
							      : SL_REASON_ATTACHED,
			gpu, bytes, event->placed.span);
		if (!sl_node_is_out(client))
			sl_node_is_back(step, client);
		return;
	}
	book(step, client, false);
	if (!client->back_off.times)
		note(step, client, SL_REASON_ATTACH_FAILED, gpu, bytes,
			event->placed.span);
	sl_node_back_off(step, &client->back_off, step->now, ATTACH_AGAIN_FIRST,
		ATTACH_AGAIN_MOST, SL_REASON_RESTORE_FAILED);
}

void sl_node_on_placed(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_living(step, event->placed.client);
	struct sl_node_order order;

	if (!client)
		return;
	order = client->order;
	if (!sl_node_is_travelling(client) || order.id != event->placed.order) {
		sl_node_note(step, SL_REASON_STRAY, 0, client->workload->index.id, 0, 0);
		return;
	}
	client->order = (struct sl_node_order){0};
	if (order.kind == SL_NODE_DETACH)
		detach_done(step, client, event);
	else
		attach_done(step, client, event);
	step->plans = true;
}

/* Only a parked workload's processes may stay away. */
void sl_node_on_client_away(struct sl_node_step *step, const struct sl_event *event)
{
	uint32_t gpu = event->client_away.gpu;
	struct sl_node_client *client =
		sl_node_is_there(step, gpu, event->client_away.bytes)
			? sl_node_living(step, event->client_away.client)
			: NULL;

	if (!client || sl_node_is_travelling(client))
		return;
	sl_ledger_set_hidden(&step->node->ledger, &client->holding, gpu, 0);
	sl_ledger_set_away(
		&step->node->ledger, &client->holding, gpu, event->client_away.bytes);
	if (!sl_node_is_parked(client->workload))
		sl_node_call_back(step, client);
	step->plans = true;
}
