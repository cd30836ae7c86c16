/*
 * clients - processes join, report, free, are measured, and die
 */
#include "policy/node/plan.h"

struct sl_node_client *sl_node_living(struct sl_node_step *step, uint64_t id)
{
	struct sl_node_client *client = sl_node_find_client(step->node, id);

	if (client && client->stage != SL_NODE_DYING)
		return client;
	sl_node_note(
		step, SL_REASON_STRAY, 0, client ? client->workload->index.id : 0, 0, 0);
	return NULL;
}

bool sl_node_is_there(struct sl_node_step *step, uint32_t gpu, uint64_t bytes)
{
	if (gpu < SL_NODE_GPUS_MAX && step->node->ledger.gpu[gpu].present)
		return true;
	sl_node_note(step, SL_REASON_STRAY, gpu, 0, 0, bytes);
	return false;
}

static struct sl_node_client *living_on(
	struct sl_node_step *step, uint64_t id, uint32_t gpu)
{
	return sl_node_is_there(step, gpu, 0) ? sl_node_living(step, id) : NULL;
}

static uint32_t living_of(const struct sl_node_workload *workload)
{
	uint32_t count = 0;

	sl_node_each_client_of (client, workload)
		count += client->stage != SL_NODE_DYING;
	return count;
}

void sl_node_tell_view(struct sl_node_step *step, const struct sl_node_workload *workload,
	uint32_t gpu, uint32_t if_living)
{
	if (SL_MUTANT(VIEW_UNTOLD, living_of(workload) < if_living, true) ||
		sl_node_is_removed(workload))
		return;
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_VIEW,
				   .view = {.workload = workload->index.id, .gpu = gpu}});
}

bool sl_node_is_out(const struct sl_node_client *client)
{
	sl_each_gpu (gpu, client->holding.touched) {
		if (client->holding.cell[gpu].evicted_bytes ||
			client->holding.cell[gpu].away_bytes)
			return true;
	}
	return false;
}

/* Freeing what was on the host may have made it whole: handle that as the end of a RESTORE. */
static void whole_by_freeing(struct sl_node_step *step, struct sl_node_client *client)
{
	if (sl_node_is_out(client) || client->order.id)
		return;
	sl_node_is_back(step, client);
	client->seat = SL_NODE_COMING;
}

/* --- life --- */

void sl_node_on_client_join(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node *node = step->node;
	uint64_t id = event->client_join.client;
	struct sl_node_workload *workload =
		sl_node_find_workload(node, event->client_join.workload);
	struct sl_node_client *client = node->spare_clients;
	struct sl_node_look *look;

	if (!workload || sl_node_is_removed(workload) || sl_node_find_client(node, id)) {
		sl_node_note(step, SL_REASON_STRAY, 0, event->client_join.workload, 0, 0);
		return;
	}
	if (client) {
		node->spare_clients = client->next_spare;
	} else {
		client = sl_arena_take(node->arena, sizeof(*client));
		sl_node_make_room(node);
	}
	look = client->look ? client->look : sl_arena_take(node->arena, sizeof(*look));
	*client = (struct sl_node_client){.index.id = id,
		.look = look,
		.workload = workload,
		.stage = event->client_join.expected ? SL_NODE_EXPECTED : SL_NODE_LIVES,
		.swaps = event->client_join.swaps,
		.active_at = sl_node_stamp(step)};
	client->holding.account = &workload->account;
	sl_list_init(&client->demands);
	sl_list_push_tail(&workload->clients, &client->of_workload);
	sl_index_add(&node->clients, &client->index);
	if (event->client_join.expected && !node->recover_until)
		node->recover_until = sl_node_later(
			sl_node_stamp(step), node->config.config.recover_wait);
	step->plans = true;
}

/* How much counts as evicted for a client that reports `bytes` in all. It has no more on the GPU
 * than before, so the bytes that it lost must have been on the host. This holds until the client
 * reports its evicted bytes. */
static uint64_t still_out(const struct sl_ledger_cell *cell, uint64_t bytes)
{
	uint64_t was_here = cell->backing_bytes - cell->evicted_bytes;

	return sl_min_u64(cell->evicted_bytes, sl_sub_sat(bytes, was_here));
}

void sl_node_on_client_report(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node *node = step->node;
	uint32_t gpu = event->client_report.gpu;
	struct sl_node_client *client = living_on(step, event->client_report.client, gpu);
	uint64_t out_bytes;

	if (!client)
		return;
	/* Only the earlier daemon knew when the client came back; its slice begins once all of it
	 * is reported. */
	if (SL_MUTANT(REPORT_BEGINS_TURN, client->stage == SL_NODE_EXPECTED, true))
		client->seat =
			SL_MUTANT(START_BEGINS_NO_TURN, SL_NODE_COMING, SL_NODE_UNSEATED);
	/* A client that reports again during a recovery does not prolong that. */
	if (client->stage != SL_NODE_LIVES || !node->recover_until)
		client->stage = SL_NODE_REPORTING;
	step->plans = true;
	if (!event->client_report.bytes && !(client->holding.touched >> gpu & 1)) {
		/* There was no such demand. */
		sl_node_tell_view(step, client->workload, gpu, 2);
		return;
	}
	out_bytes = still_out(&client->holding.cell[gpu], event->client_report.bytes);
	sl_ledger_set_backing(
		&node->ledger, &client->holding, gpu, event->client_report.bytes);
	if (SL_MUTANT(REPORT_FREES_GPU, true, false))
		sl_ledger_set_evicted(&node->ledger, &client->holding, gpu, out_bytes);
	sl_node_tell_view(step, client->workload, gpu, 2);
}

void sl_node_on_client_evicted(struct sl_node_step *step, const struct sl_event *event)
{
	uint32_t gpu = event->client_evicted.gpu;
	struct sl_node_client *client =
		living_on(step, event->client_evicted.client, gpu);

	if (!client)
		return;
	sl_ledger_set_evicted(
		&step->node->ledger, &client->holding, gpu, event->client_evicted.bytes);
	step->plans = true;
}

void sl_node_on_client_reported(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node_client *client =
		sl_node_living(step, event->client_reported.client);

	if (!client)
		return;
	if (client->seat == SL_NODE_COMING && sl_node_is_out(client))
		client->seat = SL_NODE_UNSEATED;
	client->stage = SL_NODE_LIVES;
	client->told &= ~SL_NODE_UNHEARD;
	step->plans = true;
}

/* --- death --- */

/* Includes what the reserve pays until it is gone. */
static uint64_t still_there(const struct sl_node_client *client)
{
	uint64_t bytes = 0;

	sl_each_gpu (gpu, client->holding.touched) {
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];

		bytes += cell->dying_bytes + cell->paid_bytes;
	}
	return bytes;
}

static void forget_client(struct sl_node *node, struct sl_node_client *client)
{
	struct sl_node_workload *workload = client->workload;

	sl_index_remove(&node->clients, &client->index);
	sl_list_unlink(&client->of_workload);
	client->next_spare = node->spare_clients;
	node->spare_clients = client;
	sl_node_forget_workload(node, workload);
}

static void release(struct sl_node_step *step, struct sl_node_client *client,
	uint32_t gpu, uint64_t remaining_bytes)
{
	sl_ledger_release(&step->node->ledger, &client->holding, gpu, remaining_bytes);
	sl_node_repay(step, gpu);
	step->plans = true;
}

static void release_lost(struct sl_node_step *step, struct sl_node_client *client)
{
	sl_each_gpu (gpu, client->holding.touched) {
		if (step->node->gpu[gpu].lost)
			release(step, client, gpu, 0);
	}
}

void sl_node_lose(struct sl_node_step *step, uint32_t gpu)
{
	struct sl_node *node = step->node;

	sl_list_foreach_safe (of_node, &node->all_workloads) {
		struct sl_node_workload *workload = sl_node_workload_at(of_node);

		sl_list_foreach_safe (link, &workload->clients) {
			struct sl_node_client *client = sl_node_client_at(link);

			if (client->stage != SL_NODE_DYING) {
				sl_node_void_grants(step, client, gpu);
				continue;
			}
			release_lost(step, client);
			if (!still_there(client))
				forget_client(node, client);
		}
	}
}

void sl_node_on_client_exit(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node *node = step->node;
	struct sl_node_client *client = sl_node_living(step, event->client_exit.client);

	if (!client)
		return;
	sl_list_foreach_safe (link, &client->demands)
		sl_node_drop_demand(node, sl_node_demand_at(link));
	client->stage = SL_NODE_DYING;
	client->order = (struct sl_node_order){0};
	client->wants_since = 0;
	client->seat = SL_NODE_UNSEATED;
	client->store_bytes = client->trim_bytes = 0;
	client->stop_stage = SL_NODE_UNTOLD;
	sl_node_count_unused(step, client->workload);
	sl_ledger_die(&node->ledger, &client->holding);
	release_lost(step, client);
	sl_each_gpu (gpu, client->holding.touched) {
		if (client->holding.cell[gpu].dying_bytes)
			sl_node_tell_view(step, client->workload, gpu, 1);
	}
	sl_node_tell_left(step); /* of an earlier one of the same moment */
	step->left = (struct sl_action){.type = SL_ACTION_LEFT,
		.left = {.workload = client->workload->index.id,
			.client = client->index.id,
			.bytes = still_there(client)}};
	if (!still_there(client))
		forget_client(node, client);
	step->plans = true;
}

void sl_node_on_released(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node *node = step->node;
	struct sl_node_client *client = sl_node_find_client(node, event->released.client);
	uint32_t gpu = event->released.gpu;

	if (!client || client->stage != SL_NODE_DYING || gpu >= SL_NODE_GPUS_MAX) {
		sl_node_note(step, SL_REASON_STRAY, gpu,
			client ? client->workload->index.id : 0, 0,
			event->released.remaining_bytes);
		return;
	}
	/* No VIEW: dying bytes belong to no workload's use. */
	release(step, client, gpu, event->released.remaining_bytes);
	sl_node_released(node, gpu);
	if (!still_there(client))
		forget_client(node, client);
}

/* --- bytes --- */

void sl_node_on_freed(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node *node = step->node;
	uint32_t gpu = event->freed.gpu;
	struct sl_node_client *client = living_on(step, event->freed.client, gpu);
	uint64_t freed;
	bool was_out;

	if (!client)
		return;
	was_out = sl_node_is_out(client);
	freed = event->freed.evicted ? sl_ledger_free_evicted(&node->ledger,
					       &client->holding, gpu, event->freed.bytes)
				     : sl_ledger_free(&node->ledger, &client->holding,
					       gpu, event->freed.bytes);
	if (freed < event->freed.bytes)
		sl_node_note(step, SL_REASON_UNDERFLOW, gpu, client->workload->index.id,
			0, event->freed.bytes - freed);
	sl_node_be_active(step, client);
	if (!freed)
		return;
	if (event->freed.evicted) {
		/* Counts what an order moves from here on. */
		if (client->order.id && client->order.gpu == gpu)
			client->order.out_bytes =
				sl_sub_sat(client->order.out_bytes, freed);
		sl_node_trim_anew(step, client);
	}
	if (was_out)
		whole_by_freeing(step, client);
	sl_node_released(node, gpu);
	sl_node_tell_view(step, client->workload, gpu, 2);
	step->plans |= node->lacks || node->awaits || was_out;
}

void sl_node_on_hidden(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node *node = step->node;
	uint32_t gpu = event->hidden.gpu;
	struct sl_node_client *client = living_on(step, event->hidden.client, gpu);

	/* Samples of a process that is away, or on its way, may be older than that. */
	if (!client ||
		SL_MUTANT(OLD_SAMPLE_COUNTS,
			sl_node_is_detached(client) || sl_node_is_travelling(client),
			false) ||
		event->hidden.bytes == sl_ledger_measured(&client->holding.cell[gpu]))
		return;
	sl_ledger_set_hidden(&node->ledger, &client->holding, gpu, event->hidden.bytes);
	sl_node_tell_view(step, client->workload, gpu, 1);
	sl_node_repay(step, gpu);
	step->plans = true;
}

/* How much of a report of held bytes is believed: as much as an honest demand would get. So a false
 * report never takes a promise from other workloads, and after a restart grants of the earlier
 * daemon fit. */
static uint64_t believed(struct sl_node_step *step, struct sl_node_client *client,
	uint32_t gpu, uint64_t bytes)
{
	const struct sl_ledger_account *account = &client->workload->account;
	uint64_t fixed = sl_ledger_fixed(&account->cell[gpu]);
	uint64_t within = sl_sub_sat(sl_ledger_request(account, gpu), fixed);
	uint64_t most = client->holding.cell[gpu].held_bytes +
			sl_max_u64(within, sl_node_holdable(step->node, client->workload,
						   gpu, true));

	bytes = sl_min_u64(bytes, client->holding.cell[gpu].backing_bytes);
	if (bytes <= most || SL_MUTANT(HELD_BELIEVED, false, true))
		return bytes;
	if (!(client->told & SL_NODE_TOLD_HELD))
		sl_node_note(step, SL_REASON_HELD_UNASKED, gpu,
			client->workload->index.id, 0, bytes - most);
	client->told |= SL_NODE_TOLD_HELD;
	return most;
}

void sl_node_on_held(struct sl_node_step *step, const struct sl_event *event)
{
	uint32_t gpu = event->held.gpu;
	struct sl_node_client *client = living_on(step, event->held.client, gpu);
	uint64_t before;

	if (!client)
		return;
	before = client->holding.cell[gpu].held_bytes;
	sl_ledger_set_held(&step->node->ledger, &client->holding, gpu,
		believed(step, client, gpu, event->held.bytes));
	step->plans |= client->holding.cell[gpu].held_bytes != before;
}
