/*
 * node_clients - what processes do: join, ask, create, free, die
 *
 * Every event may come from a client that lies, repeats itself or has just died; each handler
 * first finds out whether the books know what is named, and notes it as stray if not. Races
 * that honest clients cannot avoid (a CANCEL that crosses its answer) are silent.
 *
 * A demand lives from its ASK to its COMMIT, its DENY or its client's death. While granted it
 * is out of the queue but keeps its sequence number, so that after a driver refusal it goes
 * back to exactly its old place.
 */
#include "policy/mutant.h"
#include "policy/node_state.h"

struct sl_node_client *sl_node_find_living(struct sl_node *node, uint64_t id)
{
	struct sl_node_client *client = sl_node_find_client(node, id);

	if (client && client->alive)
		return client;
	sl_node_note(
		node, SL_REASON_STRAY, 0, client ? client->member->index.id : 0, 0, 0);
	return NULL;
}

static struct sl_node_client *find_living_on(
	struct sl_node *node, uint64_t id, uint32_t gpu)
{
	if (gpu < SL_NODE_GPUS_MAX && node->ledger.gpu[gpu].present)
		return sl_node_find_living(node, id);
	sl_node_note(node, SL_REASON_STRAY, gpu, 0, 0, 0);
	return NULL;
}

struct sl_node_client *sl_node_client_of(const struct sl_demand *demand)
{
	return SL_CONTAINER_OF(demand->holding, struct sl_node_client, holding);
}

/* It did something: it does not count as waiting for idle_wait from now. */
static void be_active(struct sl_node *node, struct sl_node_client *client)
{
	client->active_at = node->now;
	if (client->party.waits)
		node->timers_dirty = true;
	client->party.waits = false;
}

/* Its workload's processes see other numbers on this GPU. One process alone knows its own. */
void sl_node_tell_view(struct sl_node *node, struct sl_node_member *member, uint32_t gpu,
	uint32_t if_living)
{
	if (SL_MUTANT(VIEW_UNTOLD, member->living < if_living, true) || member->leaving)
		return;
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_VIEW,
				   .view = {.workload = member->index.id, .gpu = gpu}});
}

/* --- demands --- */

static struct sl_demand *new_demand(struct sl_node *node)
{
	struct sl_demand *demand;

	if (sl_list_is_empty(&node->spare_demands)) {
		demand = sl_arena_take(node->arena, sizeof(*demand));
	} else {
		demand = SL_LIST_ENTRY(node->spare_demands.next, struct sl_demand, queue);
		sl_list_unlink(&demand->queue);
	}
	*demand = (struct sl_demand){0};
	sl_list_init(&demand->queue);
	sl_list_init(&demand->of_client);
	return demand;
}

static void drop_demand(struct sl_node *node, struct sl_demand *demand)
{
	sl_list_unlink(&demand->of_client);
	if (SL_MUTANT(LEAKS_DEMANDS, true, false))
		sl_list_push_head(&node->spare_demands, &demand->queue);
}

static void enter_queue(struct sl_node *node, struct sl_demand *demand)
{
	struct sl_node_client *client = sl_node_client_of(demand);
	bool entitled = sl_demand_is_entitled(demand);

	if (!entitled && (demand->entitled || !demand->burst_since))
		sl_demand_restart(demand, node->now);
	node->queue[demand->gpu].fresh |= !entitled;
	demand->entitled = entitled;
	demand->epoch = 0;
	sl_demand_enqueue(&node->queue[demand->gpu].waiting, demand);
	node->queue[demand->gpu].count++;
	client->member->waiting++;
	sl_node_count_wait(node, client->member);
	if (!client->waiting++)
		sl_list_push_tail(&node->parties, &client->party.link);
	node->timers_dirty = true;
	if (client->party.waits)
		node->deadlock_dirty = true;
	sl_node_touch(node, 1u << demand->gpu);
}

static void leave_queue(struct sl_node *node, struct sl_demand *demand)
{
	struct sl_node_client *client = sl_node_client_of(demand);
	struct sl_node_queue *queue = &node->queue[demand->gpu];

	sl_list_unlink(&demand->queue);
	queue->count--;
	if (node->pressed_mask >> demand->gpu & 1)
		node->timers_dirty = true;
	client->member->waiting--;
	sl_node_count_wait(node, client->member);
	if (queue->head == demand)
		queue->head = NULL;
	if (!--client->waiting) {
		sl_list_unlink(&client->party.link);
		client->party.waits = false;
		/* Its next wait is another one. */
		if (!sl_node_wants_back(client))
			client->pool_told = false;
	} else if (client->party.waits) {
		/* It may have been the only one of its demands that could be served. */
		node->deadlock_dirty = true;
	}
	sl_node_touch(node, 1u << demand->gpu);
}

static struct sl_demand *find_ask(struct sl_node_client *client, uint64_t ask)
{
	sl_list_foreach (link, &client->party.demands) {
		struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, of_client);

		if (demand->ask == ask)
			return demand;
	}
	return NULL;
}

static struct sl_demand *find_epoch(struct sl_node_client *client, uint64_t epoch)
{
	sl_list_foreach (link, &client->party.demands) {
		struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, of_client);

		if (demand->epoch &&
			SL_MUTANT(EPOCH_IGNORED, demand->epoch == epoch, true))
			return demand;
	}
	return NULL;
}

/* An answer to what the books cannot place. */
static void tell_deny(struct sl_node *node, uint64_t client, uint64_t ask,
	enum sl_reason reason, uint32_t gpu, uint64_t bytes)
{
	uint64_t available =
		gpu < SL_NODE_GPUS_MAX ? sl_ledger_free_bytes(&node->ledger, gpu) : 0;

	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_DENY,
				   .deny = {.client = client,
					   .ask = ask,
					   .reason = reason,
					   .gpu = gpu,
					   .bytes = bytes,
					   .available_bytes = available}});
}

bool sl_node_holds_something(const struct sl_node_member *member)
{
	for (uint32_t left = member->account.touched; left; left &= left - 1) {
		const struct sl_ledger_cell *cell =
			&member->account.cell[__builtin_ctz(left)];

		if (cell->backing_bytes || cell->granted_bytes)
			return true;
	}
	return false;
}

/* Others were moved for it, after its own turn: what it asks for next belongs to a new one. */
static bool begins_to_grow(const struct sl_node *node, const struct sl_demand *demand)
{
	return demand->moving &&
	       !sl_node_turn_left(node, sl_node_client_of(demand)->member);
}

void sl_node_grant(struct sl_node *node, struct sl_demand *demand)
{
	struct sl_node_client *client = sl_node_client_of(demand);
	struct sl_node_because served = sl_node_numbers(node, demand);

	served.reason = SL_REASON_SERVED_AFTER_WAIT;
	if (!demand->entitled && !demand->there)
		client->told_oom = false;
	if (!sl_node_holds_something(client->member) ||
		(client->member->promoted &&
			client->member->turn_began < client->member->promoted_at) ||
		begins_to_grow(node, demand))
		sl_node_begin_turn(node, client->member);
	leave_queue(node, demand);
	if (SL_MUTANT(THERE_CHARGED, !demand->there, true))
		sl_ledger_grant(
			&node->ledger, &client->holding, demand->gpu, demand->bytes);
	if (demand->held)
		sl_ledger_hold(
			&node->ledger, &client->holding, demand->gpu, demand->bytes);
	node->books++;
	demand->epoch = ++node->next_epoch;
	be_active(node, client);
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_GRANT,
				   .grant = {.client = client->index.id,
					   .ask = demand->ask,
					   .epoch = demand->epoch,
					   .gpu = demand->gpu,
					   .bytes = SL_MUTANT(GRANT_HALF, demand->bytes,
						   demand->bytes / 2)}});
	if (SL_MUTANT(SERVED_UNTOLD, served.span >= SL_NODE_NOTE_AFTER, false) &&
		!demand->noted_served && !demand->there) {
		demand->noted_served = true;
		sl_node_note_because(node, &served);
	}
}

/* What there was: under its limit or besides requests, if that was the matter, else what was free
 * for it. */
static uint64_t left_for(
	const struct sl_node *node, const struct sl_demand *demand, enum sl_reason reason)
{
	const struct sl_ledger_account *account = demand->holding->account;

	if (reason == SL_REASON_OVER_LIMIT)
		return sl_sub_sat(
			account->limit_bytes, sl_ledger_use(account, demand->gpu));
	if (reason == SL_REASON_HELD_ON_REQUESTS)
		return sl_demand_holdable(demand, &node->ledger);
	return sl_node_available(node, demand);
}

void sl_node_deny(struct sl_node *node, struct sl_demand *demand, enum sl_reason reason)
{
	struct sl_node_because because = sl_node_numbers(node, demand);

	because.other = 0;
	sl_node_name_borrower(node, &because);
	sl_node_deny_for(node, demand, reason, because);
}

void sl_node_deny_for(struct sl_node *node, struct sl_demand *demand,
	enum sl_reason reason, struct sl_node_because other)
{
	struct sl_node_client *client = sl_node_client_of(demand);

	/* The first refusal of one that asked for that says nothing: it asks again, and waits. */
	client->member->denials +=
		reason != SL_REASON_CANCELLED && reason != SL_REASON_OOM_FIRST;
	sl_node_emit(
		node, (struct sl_action){.type = SL_ACTION_DENY,
			      .deny = {.client = client->index.id,
				      .ask = demand->ask,
				      .reason = reason,
				      .gpu = demand->gpu,
				      .bytes = demand->bytes,
				      .available_bytes = left_for(node, demand, reason),
				      .workload = client->member->index.id,
				      .other = other.other,
				      .other_bytes = other.other_bytes,
				      .span = node->now - demand->arrived,
				      .entitled = sl_demand_is_entitled(demand)}});
	leave_queue(node, demand);
	drop_demand(node, demand);
}

void sl_node_reprioritize(
	struct sl_node *node, struct sl_node_member *member, int32_t priority)
{
	member->priority = priority;
	sl_list_foreach (link, &member->clients) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		sl_list_foreach (at, &client->party.demands) {
			struct sl_demand *demand =
				SL_LIST_ENTRY(at, struct sl_demand, of_client);

			/* A granted one comes back to its place if the driver refuses. */
			demand->priority =
				SL_MUTANT(SET_KEEPS_RANK, priority, demand->priority);
			if (demand->epoch)
				continue;
			sl_list_unlink(&demand->queue);
			sl_demand_enqueue(&node->queue[demand->gpu].waiting, demand);
			sl_node_touch(node, 1u << demand->gpu);
		}
	}
}

void sl_node_cancel_all(struct sl_node *node, struct sl_node_member *member)
{
	sl_list_foreach (link, &member->clients) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		sl_list_foreach_safe (at, &client->party.demands) {
			struct sl_demand *demand =
				SL_LIST_ENTRY(at, struct sl_demand, of_client);

			if (!demand->epoch)
				sl_node_deny(node, demand, SL_REASON_CANCELLED);
		}
	}
}

/* Answers a demand that does not wait: a new one, or one that was granted in vain. */
static void deny_unqueued(
	struct sl_node *node, struct sl_demand *demand, enum sl_reason reason)
{
	enter_queue(node, demand);
	sl_node_deny(node, demand, reason);
}

/* Why this demand cannot be served, however long it waits. */
static enum sl_reason never(const struct sl_node *node,
	const struct sl_node_client *client, const struct sl_demand *demand)
{
	if (SL_MUTANT(LOST_IS_SERVED, node->queue[demand->gpu].lost, false))
		return SL_REASON_GPU_LOST;
	if (SL_MUTANT(STOPPING_IS_SERVED, client->member->stopping, false))
		return SL_REASON_CANCELLED;
	if (SL_MUTANT(LIMIT_WAITS, sl_demand_is_over_limit(demand), false))
		return SL_REASON_OVER_LIMIT;
	return SL_REASON_NONE;
}

void sl_node_on_ask(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_find_client(node, event->ask.client);
	uint32_t gpu = event->ask.gpu;
	enum sl_reason refused;
	struct sl_demand *demand;

	if (client && client->alive && event->ask.flags & SL_NODE_ASK_CONTEXT) {
		sl_node_ask_context(node, client, event);
		return;
	}
	if (!client || !client->alive || gpu >= SL_NODE_GPUS_MAX ||
		event->ask.bytes == 0 || !(client->member->account.gpu_mask >> gpu & 1)) {
		tell_deny(node, event->ask.client, event->ask.ask,
			SL_REASON_UNKNOWN_CLIENT, gpu, event->ask.bytes);
		return;
	}
	if (SL_MUTANT(DUPLICATE_ASKS, find_ask(client, event->ask.ask) != NULL, false))
		return;
	sl_node_is_on(client->member, gpu);
	demand = new_demand(node);
	demand->holding = &client->holding;
	demand->ask = event->ask.ask;
	demand->gpu = gpu;
	demand->bytes = event->ask.bytes;
	demand->there = event->ask.flags & SL_NODE_ASK_THERE;
	demand->held = demand->there || event->ask.flags & SL_NODE_ASK_HELD;
	demand->priority = client->member->priority;
	demand->sequence = ++node->next_sequence;
	demand->arrived = node->now;
	sl_list_push_tail(&client->party.demands, &demand->of_client);
	refused = never(node, client, demand);
	if (refused != SL_REASON_NONE) {
		deny_unqueued(node, demand, refused);
		return;
	}
	if (!client->waiting)
		be_active(node, client);
	enter_queue(node, demand);
}

void sl_node_on_cancel(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_find_client(node, event->cancel.client);
	struct sl_demand *demand = client ? find_ask(client, event->cancel.ask) : NULL;

	if (client && sl_node_cancel_context(node, client, event->cancel.ask))
		return;
	/* A grant that crossed the CANCEL stands: the client may be creating already, and will
	 * COMMIT what it used, or 0. */
	if (demand && !demand->epoch)
		sl_node_deny(node, demand, SL_REASON_CANCELLED);
}

/* Of an open grant used bytes were made, or became held; the rest goes back. */
static void end_grant(struct sl_node *node, struct sl_node_client *client,
	const struct sl_demand *demand, uint64_t used)
{
	if (SL_MUTANT(THERE_CHARGED, !demand->there, true))
		sl_ledger_commit(&node->ledger, &client->holding, demand->gpu,
			demand->bytes, used);
	if (demand->held)
		sl_ledger_held(&node->ledger, &client->holding, demand->gpu,
			demand->bytes, used);
}

void sl_node_on_commit(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_find_living(node, event->commit.client);
	struct sl_demand *demand =
		client ? find_epoch(client, event->commit.epoch) : NULL;
	uint64_t used;

	if (!client || sl_node_made_context(node, client, event->commit.epoch))
		return;
	if (!demand) {
		sl_node_note(node, SL_REASON_STRAY, 0, client->member->index.id, 0,
			event->commit.used_bytes);
		return;
	}
	if (demand->is_void) {
		drop_demand(node, demand);
		return;
	}
	used = SL_MUTANT(COMMIT_UNCLAMPED,
		sl_min_u64(event->commit.used_bytes, demand->bytes),
		event->commit.used_bytes);
	if (used < event->commit.used_bytes)
		sl_node_note(node, SL_REASON_OVERCOMMIT, demand->gpu,
			client->member->index.id, 0, event->commit.used_bytes - used);
	end_grant(node, client, demand, used);
	node->swap_dirty = true; /* it may leave now */
	if (used < demand->bytes)
		sl_node_touch(node, 1u << demand->gpu);
	be_active(node, client);
	if (!demand->there)
		sl_node_tell_view(node, client->member, demand->gpu, 2);
	drop_demand(node, demand);
}

void sl_node_on_create_failed(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client =
		sl_node_find_living(node, event->create_failed.client);
	struct sl_demand *demand =
		client ? find_epoch(client, event->create_failed.epoch) : NULL;
	sl_ns backoff;

	if (!client)
		return;
	if (!demand) {
		sl_node_note(node, SL_REASON_STRAY, 0, client->member->index.id, 0, 0);
		return;
	}
	if (demand->is_void) {
		deny_unqueued(node, demand, SL_REASON_GPU_LOST);
		return;
	}
	/* Nothing was to be created. */
	if (demand->there) {
		end_grant(node, client, demand, 0);
		deny_unqueued(node, demand, SL_REASON_CANCELLED);
		return;
	}
	if (!demand->noted_refusal)
		sl_node_note(node, SL_REASON_CREATE_FAILED, demand->gpu,
			client->member->index.id, 0, demand->bytes);
	demand->noted_refusal = true;
	end_grant(node, client, demand, SL_MUTANT(FAILED_GRANT_KEPT, 0, demand->bytes));
	/* Doubling from the first to the most; the shift stays in range. */
	backoff = SL_NODE_RETRY_FIRST << (demand->refusals < 5 ? demand->refusals : 5);
	backoff = SL_MUTANT(RETRY_AT_ONCE, sl_min_u64(backoff, SL_NODE_RETRY_MOST), 0);
	demand->retry_at = node->now + backoff;
	demand->refusals++;
	if (!demand->refused_since)
		demand->refused_since = node->now;
	node->queue[demand->gpu].backing_off++;
	if (client->member->leaving || client->member->stopping) {
		deny_unqueued(node, demand, SL_REASON_CANCELLED);
		return;
	}
	if (SL_MUTANT(FAILED_LOSES_PLACE, false, true))
		demand->sequence = ++node->next_sequence;
	enter_queue(node, demand);
}

void sl_node_released(struct sl_node *node, uint32_t gpu)
{
	struct sl_node_queue *queue = &node->queue[gpu];

	sl_node_touch(node, 1u << gpu);
	if (SL_MUTANT(RELEASE_WAKES_NOBODY, !queue->backing_off, true))
		return;
	sl_list_foreach (link, &queue->waiting)
		SL_LIST_ENTRY(link, struct sl_demand, queue)->retry_at = 0;
	queue->backing_off = 0;
}

void sl_node_on_freed(struct sl_node *node, const struct sl_event *event)
{
	uint32_t gpu = event->freed.gpu;
	struct sl_node_client *client = find_living_on(node, event->freed.client, gpu);
	uint64_t freed;

	if (!client)
		return;
	freed = event->freed.evicted ? sl_ledger_free_evicted(&node->ledger,
					       &client->holding, gpu, event->freed.bytes)
				     : sl_ledger_free(&node->ledger, &client->holding,
					       gpu, event->freed.bytes);
	if (freed < event->freed.bytes)
		sl_node_note(node, SL_REASON_UNDERFLOW, gpu, client->member->index.id, 0,
			event->freed.bytes - freed);
	be_active(node, client);
	if (!freed)
		return;
	/* What an order moves is counted from there on. */
	if (event->freed.evicted && client->order.gpu == gpu)
		client->order.out_bytes = sl_sub_sat(client->order.out_bytes, freed);
	if (event->freed.evicted)
		sl_node_has_less_out(node, client);
	sl_node_sort_out(node, client);
	sl_node_released(node, gpu);
	sl_node_tell_view(node, client->member, gpu, 2);
}

/* --- life and death --- */

void sl_node_on_client_join(struct sl_node *node, const struct sl_event *event)
{
	uint64_t id = event->client_join.client;
	struct sl_node_member *member =
		sl_node_find_member(node, event->client_join.workload);
	struct sl_node_client *client = node->spare_clients;

	if (!member || member->leaving || sl_node_find_client(node, id)) {
		sl_node_note(node, SL_REASON_STRAY, 0, event->client_join.workload, 0, 0);
		return;
	}
	if (client)
		node->spare_clients = client->next_spare;
	else
		client = sl_arena_take(node->arena, sizeof(*client));
	*client = (struct sl_node_client){.index.id = id,
		.member = member,
		.alive = true,
		.expected = event->client_join.expected,
		.swaps = event->client_join.swaps,
		.active_at = node->now};
	client->holding.account = &member->account;
	client->party.holding = &client->holding;
	client->party.claim = &member->claim;
	sl_list_init(&client->of_suspects);
	sl_list_init(&client->of_stops);
	sl_list_init(&client->of_out);
	sl_list_init(&client->party.link);
	sl_list_init(&client->party.demands);
	sl_list_push_tail(&member->clients, &client->of_member);
	sl_index_add(&node->clients, &client->index);
	sl_node_make_room(node);
	node->probes_dirty = true;
	member->living++;
	if (client->expected && !node->expected++) {
		node->recover_until = sl_node_later(node->now, node->recover_wait);
		node->timers_dirty = true;
	}
}

static void heard_of(struct sl_node *node, struct sl_node_client *client)
{
	if (!client->expected)
		return;
	client->expected = false;
	node->probes_dirty = true;
	if (--node->expected)
		return;
	node->dirty_mask = UINT32_MAX;
	node->timers_dirty = node->deadlock_dirty = true;
}

/* What it has less than before was on the host, until it says how much is there: what is on the GPU
 * is only known to be no more than before, and who is granted what is not free cannot have it. */
static uint64_t still_out(const struct sl_ledger_cell *cell, uint64_t bytes)
{
	uint64_t was_here = cell->backing_bytes - cell->evicted_bytes;

	return sl_min_u64(cell->evicted_bytes, sl_sub_sat(bytes, was_here));
}

void sl_node_on_client_report(struct sl_node *node, const struct sl_event *event)
{
	uint64_t out_bytes;
	uint32_t gpu = event->client_report.gpu;
	struct sl_node_client *client =
		find_living_on(node, event->client_report.client, gpu);

	if (!client)
		return;
	client->reports = true;
	out_bytes = still_out(&client->holding.cell[gpu], event->client_report.bytes);
	sl_ledger_set_backing(
		&node->ledger, &client->holding, gpu, event->client_report.bytes);
	if (SL_MUTANT(REPORT_FREES_GPU, true, false))
		sl_ledger_set_evicted(&node->ledger, &client->holding, gpu, out_bytes);
	sl_node_sort_out(node, client);
	if (event->client_report.bytes)
		sl_node_is_on(client->member, gpu);
	sl_node_touch(node, 1u << gpu);
	node->deadlock_dirty = true;
	sl_node_tell_view(node, client->member, gpu, 2);
}

void sl_node_on_client_reported(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client =
		sl_node_find_living(node, event->client_reported.client);

	if (!client)
		return;
	sl_node_reports_out(node, client);
	heard_of(node, client);
}

/* Of a dead one, with what the reserve pays until it is gone. */
static uint64_t dying_bytes(const struct sl_node_client *client)
{
	uint64_t bytes = 0;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		bytes += client->holding.cell[gpu].dying_bytes +
			 client->holding.cell[gpu].paid_bytes;
	return bytes;
}

static bool is_dying(const struct sl_node_client *client)
{
	return dying_bytes(client) > 0;
}

static void forget_client(struct sl_node *node, struct sl_node_client *client)
{
	struct sl_node_member *member = client->member;

	node->clients_count--;
	sl_index_remove(&node->clients, &client->index);
	sl_list_unlink(&client->of_member);
	client->next_spare = node->spare_clients;
	node->spare_clients = client;
	sl_node_forget_member(node, member);
}

static void release(struct sl_node *node, struct sl_node_client *client, uint32_t gpu,
	uint64_t remaining_bytes)
{
	sl_ledger_release(&node->ledger, &client->holding, gpu, remaining_bytes);
	sl_node_repay(node, gpu);
}

/* What a lost GPU holds of the dead is gone with it. */
static void release_lost(struct sl_node *node, struct sl_node_client *client)
{
	for (uint32_t left = client->holding.touched; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);

		if (node->queue[gpu].lost)
			release(node, client, gpu, 0);
	}
}

/* Its open grants on this GPU count for nothing any more; the client still says what became of
 * them. */
static void void_grants(struct sl_node *node, struct sl_node_client *client, uint32_t gpu)
{
	sl_list_foreach (link, &client->party.demands) {
		struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, of_client);

		if (!demand->epoch || demand->gpu != gpu || demand->is_void)
			continue;
		end_grant(node, client, demand, 0);
		demand->is_void = SL_MUTANT(LOST_GRANT_STANDS, true, false);
	}
}

void sl_node_lose(struct sl_node *node, struct sl_node_member *member, uint32_t gpu)
{
	sl_list_foreach_safe (link, &member->clients) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		if (client->alive) {
			void_grants(node, client, gpu);
			continue;
		}
		release_lost(node, client);
		if (!is_dying(client))
			forget_client(node, client);
	}
}

void sl_node_on_client_exit(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client =
		sl_node_find_living(node, event->client_exit.client);

	if (!client)
		return;
	sl_list_foreach_safe (link, &client->party.demands) {
		struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, of_client);

		if (!demand->epoch)
			leave_queue(node, demand);
		drop_demand(node, demand);
	}
	sl_node_drop_contexts(node, client);
	heard_of(node, client);
	sl_node_forget_facts(node, client);
	sl_node_forget_swap(node, client);
	client->alive = false;
	client->member->living--;
	sl_ledger_die(&node->ledger, &client->holding);
	release_lost(node, client);
	sl_node_touch(node, client->holding.touched);
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		if (client->holding.cell[gpu].dying_bytes)
			sl_node_tell_view(node, client->member, gpu, 1);
	}
	node->left = (struct sl_action){.type = SL_ACTION_LEFT,
		.left = {.workload = client->member->index.id,
			.client = client->index.id,
			.bytes = dying_bytes(client)}};
	if (!is_dying(client))
		forget_client(node, client);
}

void sl_node_on_released(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_find_client(node, event->released.client);
	uint32_t gpu = event->released.gpu;

	if (!client || client->alive || gpu >= SL_NODE_GPUS_MAX) {
		sl_node_note(node, SL_REASON_STRAY, gpu,
			client ? client->member->index.id : 0, 0,
			event->released.remaining_bytes);
		return;
	}
	/* No VIEW: dying bytes are nobody's use, so what others of the workload see is as it
	 * was since the exit. */
	release(node, client, gpu, event->released.remaining_bytes);
	sl_node_released(node, gpu);
	if (!is_dying(client))
		forget_client(node, client);
}

void sl_node_on_work(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_find_client(node, event->work.client);

	if (!client || !client->alive)
		return;
	be_active(node, client);
	sl_node_is_busy(node, client);
}

void sl_node_on_hidden(struct sl_node *node, const struct sl_event *event)
{
	uint32_t gpu = event->hidden.gpu;
	struct sl_node_client *client = find_living_on(node, event->hidden.client, gpu);
	uint64_t before;

	if (!client)
		return;
	before = sl_ledger_measured(&client->holding.cell[gpu]);
	sl_ledger_set_hidden(&node->ledger, &client->holding, gpu, event->hidden.bytes);
	if (sl_ledger_measured(&client->holding.cell[gpu]) == before)
		return;
	sl_node_is_on(client->member, gpu);
	sl_node_touch(node, 1u << gpu);
	node->deadlock_dirty = true;
	sl_node_tell_view(node, client->member, gpu, 1);
	sl_node_repay(node, gpu);
}

/* How much a client may say that it holds: what it was granted as held, and as much more as would
 * be granted now, within its workload's request or where others' promises leave room. So a lie gets
 * what an honest demand gets, and never takes a promise from others. After a daemon's start nothing
 * is known to be granted; what was granted by the one before fits for the same reason. */
static uint64_t may_hold(
	const struct sl_node *node, const struct sl_node_client *client, uint32_t gpu)
{
	const struct sl_ledger_account *account = &client->member->account;
	struct sl_demand demand = {
		.holding = (struct sl_ledger_holding *)(uintptr_t)&client->holding,
		.gpu = gpu,
		.there = true};
	uint64_t within = sl_sub_sat(
		sl_ledger_request(account, gpu), sl_ledger_fixed(&account->cell[gpu]));

	return client->holding.cell[gpu].held_bytes +
	       sl_max_u64(within, sl_demand_holdable(&demand, &node->ledger));
}

static uint64_t believed(
	struct sl_node *node, struct sl_node_client *client, uint32_t gpu, uint64_t bytes)
{
	uint64_t most = may_hold(node, client, gpu);

	bytes = sl_min_u64(bytes, client->holding.cell[gpu].backing_bytes);
	if (bytes <= most || SL_MUTANT(HELD_BELIEVED, false, true))
		return bytes;
	if (!client->told_held)
		sl_node_note(node, SL_REASON_HELD_UNASKED, gpu, client->member->index.id,
			0, bytes - most);
	client->told_held = true;
	return most;
}

void sl_node_on_held(struct sl_node *node, const struct sl_event *event)
{
	uint32_t gpu = event->held.gpu;
	struct sl_node_client *client = find_living_on(node, event->held.client, gpu);
	uint64_t before;

	if (!client)
		return;
	before = client->holding.cell[gpu].held_bytes;
	sl_ledger_set_held(&node->ledger, &client->holding, gpu,
		believed(node, client, gpu, event->held.bytes));
	if (client->holding.cell[gpu].held_bytes != before)
		sl_node_touch(node, 1u << gpu);
}
