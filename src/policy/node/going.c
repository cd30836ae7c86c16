/*
 * going - what moves to the host without a need for its room: parked and warm workloads
 *
 * Beside what moves, the host keeps room to take back everything lent (books/pool.h).
 *
 * A workload is warm when all of it is on the host and it does not want to run. It keeps its
 * request, and its next call brings it back. It becomes warm once each of its processes has been
 * idle (proven) for warm_after: all of it or nothing, and only if that takes no room from what is
 * lent.
 */
#include "policy/books/pool.h"
#include "policy/node/plan.h"

/* When the pool had no room for it. */
#define TRIED_AGAIN_AFTER (5 * SL_S)

static uint64_t to_leave(
	const struct sl_node *node, const struct sl_node_client *client, uint32_t gpu)
{
	return client->stage == SL_NODE_DYING || node->gpu[gpu].lost
		       ? 0
		       : sl_ledger_evictable(&client->holding.cell[gpu]);
}

/* What of it is on the GPU once everything leaving or ending is gone. */
static uint64_t stays_of(const struct sl_node_workload *workload, uint32_t gpu)
{
	const struct sl_ledger_account *account = &workload->account;
	uint64_t bytes = sl_ledger_here(account, gpu) -
			 SL_MUTANT(LEAVING_IS_LENT, account->cell[gpu].leaving_bytes, 0);

	sl_node_each_client_of (client, workload) {
		if (client->stage != SL_NODE_DYING && client->look->coming)
			bytes -= sl_ledger_live(&client->holding.cell[gpu]) -
				 client->holding.cell[gpu].leaving_bytes;
	}
	return bytes;
}

/* The pool at that moment; dying bytes need not be taken back. */
static struct sl_pool pool_of(const struct sl_node *node)
{
	struct sl_pool pool = {.pool_bytes = node->config.config.pool_bytes,
		.slack_bytes = node->config.config.slack_bytes,
		.evicted_bytes = node->ledger.evicted_bytes,
		.leaving_bytes = node->ledger.leaving_bytes};

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		pool.returning_bytes += node->ledger.gpu[gpu].sum.returning_bytes;
		pool.lent_bytes[gpu] = -(int64_t)sl_ledger_shareable(&node->ledger, gpu);
	}
	sl_node_each_workload (workload, node) {
		const struct sl_ledger_account *account = &workload->account;

		sl_each_gpu (gpu, account->touched | account->gpu_mask) {
			pool.lent_bytes[gpu] += (int64_t)sl_max_u64(
				stays_of(workload, gpu), sl_ledger_request(account, gpu));
		}
	}
	return pool;
}

struct sl_node_all_out sl_node_all_out(const struct sl_node *node,
	const struct sl_node_workload *workload, bool gives_up_request)
{
	const struct sl_ledger_account *account = &workload->account;
	struct sl_pool pool = pool_of(node);
	struct sl_node_all_out all = {0};
	uint64_t taken_back = 0;

	sl_each_gpu (gpu, account->touched) {
		const struct sl_ledger_cell *cell = &account->cell[gpu];
		uint64_t stays = sl_ledger_here(account, gpu) - cell->leaving_bytes;
		uint64_t request = sl_ledger_request(account, gpu);
		uint64_t bytes = node->gpu[gpu].lost
					 ? 0
					 : sl_sub_sat(sl_ledger_evictable(cell),
						   cell->leaving_bytes);

		if (gives_up_request)
			pool.lent_bytes[gpu] -= (int64_t)sl_sub_sat(request, stays);
		all.bytes += bytes;
		taken_back += sl_pool_taken_back(&pool, gpu,
			sl_min_u64(bytes,
				sl_sub_sat(stays, gives_up_request ? 0 : request)));
	}
	all.room_bytes =
		sl_min_u64(sl_pool_there(&pool), sl_pool_left(&pool) + taken_back);
	return all;
}

/* How much of its memory on this GPU the host can take. */
static uint64_t room_to_go(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	struct sl_pool pool = pool_of(node);
	const struct sl_ledger_account *account = &workload->account;
	uint64_t stays = sl_ledger_here(account, gpu) - account->cell[gpu].leaving_bytes;

	return sl_min_u64(sl_node_part_left(node, workload, true),
		sl_pool_room(
			&pool, gpu, sl_sub_sat(stays, sl_ledger_request(account, gpu))));
}

/* Evicts what the client still has to send to the host; what the pool has no room for waits. A
 * client told to end is not moved: its memory goes with it. True: something must still leave. */
static bool send(struct sl_node_step *step, struct sl_node_client *client, uint64_t other)
{
	struct sl_node *node = step->node;
	bool more = client->order.id && !sl_node_is_travelling(client);
	bool goes = client->look->goes && !sl_node_is_told_to_end(client);

	sl_each_gpu (gpu, client->holding.touched) {
		uint64_t bytes = to_leave(node, client, gpu);

		if (!bytes)
			continue;
		more = true;
		if (goes && !client->order.id &&
			bytes <= room_to_go(node, client->workload, gpu) &&
			sl_node_trim_for(step, client, bytes))
			sl_node_evict(step, client, gpu, bytes, other);
	}
	return more;
}

static void park(struct sl_node_step *step, struct sl_node_workload *workload)
{
	uint64_t out = 0;
	bool more = false;

	sl_node_each_client_of (client, workload) {
		if (client->stage != SL_NODE_DYING)
			more |= send(step, client, workload->index.id);
	}
	if (more)
		step->node->awaits = true;
	if (more)
		return;
	sl_node_each_client_of (client, workload)
		sl_node_detach(step, client);
	if (workload->told & SL_NODE_TOLD_PARKED)
		return;
	sl_each_gpu (gpu, workload->account.touched)
		out += workload->account.cell[gpu].evicted_bytes;
	workload->told |= SL_NODE_TOLD_PARKED;
	sl_node_emit(
		step, (struct sl_action){.type = SL_ACTION_PARKED,
			      .parked = {.workload = workload->index.id,
				      .bytes = out,
				      .returns = workload->stage == SL_NODE_DETACHED}});
}

/* Memory is being moved for a demand, which comes first; this move can wait. */
static bool is_demand_moving(const struct sl_node_plan *plan)
{
	for (uint32_t i = 0; i < plan->claims_count; i++) {
		const struct sl_node_claim *claim = &plan->claims[i];

		if (!claim->is_over && claim->demand && !claim->demand->epoch &&
			claim->has_seat &&
			(claim->room.moves || plan->leaving_bytes[claim->demand->gpu]))
			return SL_MUTANT(WARM_BEFORE_DEMANDS, true, false);
	}
	return false;
}

uint64_t sl_node_lend(const struct sl_node *node, uint32_t gpu)
{
	struct sl_pool pool = pool_of(node);

	return sl_node_swaps(node) ? sl_pool_lend(&pool, gpu) : 0;
}

/* The GPU with most of what must leave. */
static uint32_t most_on(const struct sl_node *node, const struct sl_node_client *client)
{
	uint32_t most = client->order.gpu;

	sl_each_gpu (gpu, client->holding.touched) {
		if (to_leave(node, client, gpu) > to_leave(node, client, most))
			most = gpu;
	}
	return most;
}

static enum sl_reason parking_for(enum sl_reason cause)
{
	switch (cause) {
	case SL_REASON_EVICT_BUSY: return SL_REASON_PARKING_BUSY;
	case SL_REASON_EVICT_CAPTURE: return SL_REASON_PARKING_CAPTURE;
	case SL_REASON_EVICT_NO_HOST: return SL_REASON_PARKING_NO_HOST;
	case SL_REASON_EVICT_FAILED: return SL_REASON_PARKING_FAILED;
	default: return SL_REASON_PARKING;
	}
}

bool sl_node_parking_because(const struct sl_node *node,
	const struct sl_node_client *client, struct sl_node_because *because)
{
	const struct sl_node_back_off *off = &client->back_off;
	uint32_t gpu = most_on(node, client);

	*because = (struct sl_node_because){.reason = SL_REASON_PARKING,
		.workload = client->workload->index.id,
		.client = client->index.id,
		.gpu = gpu,
		.bytes = to_leave(node, client, gpu),
		.available_bytes = room_to_go(node, client->workload, gpu)};
	if (client->condition != SL_CONDITION_RUNNING) {
		because->reason = SL_REASON_PARKING_STOPPED;
		because->available_bytes = client->condition;
		because->span = node->now - sl_node_stuck_since(client);
	} else if (off->times) {
		because->reason = parking_for(off->cause);
		because->span = node->now - off->since;
	}
	if (because->reason == SL_REASON_PARKING && !client->order.id &&
		because->bytes > because->available_bytes)
		because->reason = SL_REASON_PARKING_NO_HOST;
	return because->bytes || (client->order.id && !sl_node_is_travelling(client));
}

/* --- warm --- */

static sl_ns idle_of(const struct sl_node *node, const struct sl_node_workload *workload)
{
	sl_ns least = SL_NS_NEVER;

	sl_node_each_client_of (client, workload) {
		if (client->stage != SL_NODE_DYING &&
			sl_ledger_evictable_on(
				client->holding.cell, client->holding.touched))
			least = sl_min_u64(least, sl_node_idle(client, node->now));
	}
	return least;
}

bool sl_node_warm_because(const struct sl_node *node,
	const struct sl_node_workload *workload, struct sl_node_because *because)
{
	uint64_t part = sl_node_part_left(node, workload, true);
	struct sl_node_all_out all = sl_node_all_out(node, workload, false);

	*because = (struct sl_node_because){.reason = part <= all.room_bytes
							      ? SL_REASON_WARM_POOL_BOUND
							      : SL_REASON_WARM_POOL_FULL,
		.gpu = workload->account.touched
			       ? (uint32_t)__builtin_ctz(workload->account.touched)
			       : 0,
		.workload = workload->index.id,
		.bytes = all.bytes,
		.available_bytes = sl_min_u64(part, all.room_bytes),
		.span = idle_of(node, workload)};
	return because->span >= workload->warm_after &&
	       SL_MUTANT(WARM_IN_PART, all.bytes > because->available_bytes, false);
}

static void warm(struct sl_node_step *step, struct sl_node_workload *workload)
{
	struct sl_node_because because;
	bool full = sl_node_warm_because(step->node, workload, &because);

	if (!because.bytes)
		return;
	if (full || is_demand_moving(step->node->plan))
		sl_node_wake(step, sl_node_later(step->now, TRIED_AGAIN_AFTER));
	if (full) {
		if (!(workload->told & SL_NODE_TOLD_WARM))
			sl_node_note_because(step, &because);
		workload->told |= SL_NODE_TOLD_WARM;
		return;
	}
	workload->told &= ~SL_NODE_TOLD_WARM;
	if (is_demand_moving(step->node->plan))
		return;
	sl_node_each_client_of (client, workload) {
		if (client->stage != SL_NODE_DYING)
			send(step, client, 0);
	}
}

void sl_node_send_away(struct sl_node_step *step)
{
	sl_node_each_workload (workload, step->node) {
		if (sl_node_is_put_away(workload))
			park(step, workload);
		else if (workload->sums->is_left)
			sl_node_leave_idle(step, workload);
		else if (workload->sums->is_warm)
			warm(step, workload);
	}
}
