/*
 * node_park - parked workloads: all of it to the host, its request given up, and back when asked
 *
 * A parked workload keeps its limit, its place and its clients; its request is nobody's promise
 * until it is resumed and I1 has room for it again. Those that wait for that are served in the
 * order in which they were resumed, where they share GPUs.
 */
#include "policy/mutant.h"
#include "policy/node_state.h"

/* The pool had no room for what is to be parked: looked at again. */
#define TRIED_AGAIN_AFTER (1 * SL_S)
/* Moving takes so long, or something is in the way. */
#define ANSWERS_BY (1 * SL_S)

static void refuse(struct sl_node *node, uint64_t workload, enum sl_reason reason,
	uint64_t wanted, uint64_t available)
{
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_REFUSE,
				   .refuse = {.workload = workload,
					   .reason = reason,
					   .wanted_bytes = wanted,
					   .available_bytes = available}});
}

/* The request is the one that it has, or will have again. */
static void tell_done(struct sl_node *node, const struct sl_node_member *member)
{
	sl_node_emit(node,
		(struct sl_action){.type = SL_ACTION_SET_DONE,
			.set_done = {.workload = member->index.id,
				.request_bytes = member->parked
							 ? member->parked_bytes
							 : member->account.request_bytes,
				.limit_bytes = member->account.limit_bytes,
				.priority = member->priority}});
}

/* --- parking --- */

static uint64_t evictable_of(const struct sl_node_member *member)
{
	return sl_ledger_evictable_on(member->account.cell, member->account.touched);
}

/* Somebody has something there and cannot move it. */
static bool cannot_move(const struct sl_node_member *member)
{
	if (member->flags & SL_WORKLOAD_NO_SWAP)
		return true;
	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		if (!client->alive || client->swaps)
			continue;
		for (uint32_t left = client->holding.touched; left; left &= left - 1) {
			if (client->holding.cell[__builtin_ctz(left)].backing_bytes)
				return true;
		}
	}
	return false;
}

static bool refuse_park(struct sl_node *node, const struct sl_node_member *member)
{
	const struct sl_node_all_out all = sl_node_all_out(node, member, true);
	uint64_t id = member->index.id, wanted = all.bytes, room = all.room_bytes;
	uint64_t share = sl_node_pool_share(node, member);

	if (member->parked && !member->resuming)
		refuse(node, id, SL_REASON_PARKED_ALREADY, 0, 0);
	else if (cannot_move(member))
		refuse(node, id, SL_REASON_PARK_NO_SWAP, 0, 0);
	else if (SL_MUTANT(PARKS_WITHOUT_POOL, wanted > room || !node->pool.pool_bytes,
			 false))
		refuse(node, id, SL_REASON_PARK_NO_POOL, wanted, room);
	else if (wanted > share)
		refuse(node, id, SL_REASON_PARK_BOUND,
			wanted + node->pool_member_bytes - share,
			node->pool_member_bytes);
	else
		return false;
	return true;
}

static void park(struct sl_node *node, struct sl_node_member *member, bool recovered)
{
	if (!member->parked) {
		member->parked_bytes = member->account.request_bytes;
		sl_ledger_change(&node->ledger, &member->account,
			SL_MUTANT(PARKED_KEEPS_REQUEST, 0, member->parked_bytes),
			member->account.limit_bytes);
		sl_list_push_tail(&node->parked, &member->of_parked);
	}
	member->parked = true;
	member->resuming = member->park_told = false;
	sl_list_foreach (link, &member->clients) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		sl_node_set_wants(node, client, client->wants, false);
	}
	sl_node_count_wait(node, member);
	sl_node_touch(node, member->account.gpu_mask | member->account.touched);
	node->deadlock_dirty = node->timers_dirty = node->probes_dirty = true;
	tell_done(node, member);
	if (!recovered)
		sl_node_note(node, SL_REASON_PARK_BEGINS, 0, member->index.id, 0,
			evictable_of(member));
}

void sl_node_on_workload_park(struct sl_node *node, const struct sl_event *event)
{
	uint64_t id = event->workload_park.workload;
	struct sl_node_member *member = sl_node_find_member(node, id);
	bool recovered = event->workload_park.recovered;

	if (!member || member->leaving || member->stopping) {
		refuse(node, id, SL_REASON_UNKNOWN_WORKLOAD, 0, 0);
		return;
	}
	if (recovered ? member->parked : refuse_park(node, member))
		return;
	park(node, member, recovered);
}

bool sl_node_send_away(struct sl_node *node, struct sl_node_client *client,
	const struct sl_node_going *how)
{
	bool more = client->order.id != 0;

	for (uint32_t left = client->holding.touched; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);
		uint64_t bytes = sl_node_to_leave(node, client, gpu);

		if (!bytes)
			continue;
		more = true;
		if (!sl_node_can_leave(node, client))
			continue;
		if (node->now < client->refused_until) {
			node->swap_due =
				sl_min_u64(node->swap_due, client->refused_until);
		} else if (bytes > sl_node_room_to_go(node, client->member, gpu)) {
			node->swap_due = sl_min_u64(node->swap_due,
				sl_node_later(node->now, how->again_after));
		} else if (sl_node_trim_for(node, client, bytes)) {
			sl_node_evict(node, client, gpu, bytes, how->reason, 0,
				how->reason == SL_REASON_EVICTED_IDLE
					? sl_node_settled_idle(node, client)
					: 0);
			return true;
		}
	}
	return more;
}

uint64_t sl_node_to_leave(
	const struct sl_node *node, const struct sl_node_client *client, uint32_t gpu)
{
	return client->alive && !node->queue[gpu].lost
		       ? sl_ledger_evictable(&client->holding.cell[gpu])
		       : 0;
}

bool sl_node_is_leaving(const struct sl_node *node, const struct sl_node_client *client)
{
	for (uint32_t left = client->holding.touched; left; left &= left - 1) {
		if (sl_node_to_leave(node, client, (uint32_t)__builtin_ctz(left)))
			return true;
	}
	return client->order.id != 0;
}

bool sl_node_is_parking(const struct sl_node *node, const struct sl_node_client *client)
{
	return client->member->parked && !client->member->resuming &&
	       sl_node_is_leaving(node, client);
}

bool sl_node_parks_late(const struct sl_node *node, const struct sl_node_client *client)
{
	bool is_late = client->order.id && node->now - client->order.since >= ANSWERS_BY;

	return (client->refusals || is_late) && sl_node_is_parking(node, client);
}

/* Who does not answer is looked at. */
static void expect_answer(struct sl_node *node, const struct sl_node_client *client)
{
	sl_node_expect(node, client, sl_node_parks_late(node, client), ANSWERS_BY);
}

static uint64_t evicted_of(const struct sl_node_member *member)
{
	uint64_t bytes = 0;

	for (uint32_t left = member->account.touched; left; left &= left - 1)
		bytes += member->account.cell[__builtin_ctz(left)].evicted_bytes;
	return bytes;
}

static void go_on_parking(struct sl_node *node, struct sl_node_member *member)
{
	bool more = false;

	sl_list_foreach (link, &member->clients) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		more |= sl_node_send_away(node, client,
			&(struct sl_node_going){.reason = SL_REASON_PARK_BEGINS,
				.again_after = TRIED_AGAIN_AFTER});
		expect_answer(node, client);
	}
	if (more || member->park_told)
		return;
	member->park_told = true;
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_PARKED,
				   .parked = {.workload = member->index.id,
					   .bytes = evicted_of(member)}});
}

/* --- resuming --- */

/* I1 has room for its request on each of its GPUs. */
static bool fits_again(const struct sl_node *node, const struct sl_node_member *member)
{
	for (uint32_t left = member->account.gpu_mask; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);
		uint64_t fixed = sl_ledger_claim(&member->account, gpu);
		uint64_t others = node->ledger.gpu[gpu].claims_bytes - fixed;

		if (node->queue[gpu].lost || node->queue[gpu].degraded ||
			SL_MUTANT(RESUME_OVERBOOKS,
				sl_max_u64(member->parked_bytes, fixed) + others >
					sl_ledger_shareable(&node->ledger, gpu),
				false))
			return false;
	}
	return true;
}

static void claim_again(struct sl_node *node, struct sl_node_member *member)
{
	sl_list_unlink(&member->of_parked);
	member->parked = member->resuming = false;
	sl_ledger_change(&node->ledger, &member->account, member->parked_bytes,
		sl_max_u64(member->account.limit_bytes, member->parked_bytes));
	sl_list_foreach (link, &member->clients) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		sl_node_set_wants(node, client, client->wants,
			client->alive && (client->is_out || client->order.id));
		sl_node_abort(node, client);
		if (client->comes_back && !client->wants)
			client->wants_since = node->now;
		sl_list_foreach (at, &client->party.demands)
			sl_demand_restart(SL_LIST_ENTRY(at, struct sl_demand, of_client),
				node->now);
	}
	sl_node_count_wait(node, member);
	sl_node_touch(node, member->account.gpu_mask | member->account.touched);
	node->deadlock_dirty = node->timers_dirty = node->probes_dirty = true;
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_RESUMED,
				   .resumed = {.workload = member->index.id,
					   .request_bytes = member->parked_bytes}});
}

void sl_node_on_workload_resume(struct sl_node *node, const struct sl_event *event)
{
	uint64_t id = event->workload_resume.workload;
	struct sl_node_member *member = sl_node_find_member(node, id);

	if (!member || member->leaving) {
		refuse(node, id, SL_REASON_UNKNOWN_WORKLOAD, 0, 0);
		return;
	}
	if (!member->parked) {
		refuse(node, id, SL_REASON_NOT_PARKED, 0, 0);
		return;
	}
	if (!member->resuming) {
		member->resuming = true;
		member->resumed_at = node->now;
		sl_list_unlink(&member->of_parked);
		sl_list_push_tail(&node->parked, &member->of_parked);
		sl_node_count_wait(node, member);
	}
	node->swap_dirty = true;
	tell_done(node, member);
}

void sl_node_unpark(struct sl_node *node, struct sl_node_member *member)
{
	sl_list_unlink(&member->of_parked);
	member->parked = member->resuming = false;
	sl_node_count_wait(node, member);
	node->swap_dirty = true;
}

bool sl_node_time_parked(struct sl_node *node)
{
	uint32_t taken = 0;
	bool claimed = false;

	sl_list_foreach_safe (link, &node->parked) {
		struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_parked);

		if (!member->resuming) {
			go_on_parking(node, member);
			continue;
		}
		if (!(SL_MUTANT(RESUME_PASSES, taken, 0) & member->account.gpu_mask) &&
			fits_again(node, member)) {
			claim_again(node, member);
			claimed = true;
		} else {
			taken |= member->account.gpu_mask;
		}
	}
	return claimed;
}
