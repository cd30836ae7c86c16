/*
 * node_waits - why a demand waits, in numbers
 *
 * One function answers for everybody: the notes after a second, the numbers of a denial, and
 * whoever asks later (sl_node_why). It looks at the books as they are and remembers nothing, so an
 * answer can never be older than the state it explains.
 */
#include "policy/node_outlook.h"
#include "policy/node_state.h"

static void find_borrowers(
	const struct sl_node *node, uint32_t gpu, struct sl_node_borrowers *out)
{
	*out = (struct sl_node_borrowers){.as_of = node->books};
	sl_list_foreach (link, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);
		uint64_t burst = sl_sub_sat(sl_ledger_here(&member->account, gpu),
			sl_ledger_request(&member->account, gpu));
		uint32_t place = burst > out->burst_bytes[0] ? 0 : 1;

		if (burst <= out->burst_bytes[place])
			continue;
		if (place == 0) {
			out->id[1] = out->id[0];
			out->burst_bytes[1] = out->burst_bytes[0];
		}
		out->id[place] = member->index.id;
		out->burst_bytes[place] = burst;
	}
}

const struct sl_node_borrowers *sl_node_borrowers_of(
	const struct sl_node *node, uint32_t gpu)
{
	struct sl_node_borrowers *borrowers = &node->caches->borrowers[gpu];

	if (borrowers->as_of != node->books)
		find_borrowers(node, gpu, borrowers);
	return borrowers;
}

void sl_node_name_borrower(const struct sl_node *node, struct sl_node_because *because)
{
	const struct sl_node_borrowers *borrowers =
		sl_node_borrowers_of(node, because->gpu);
	uint32_t place = borrowers->id[0] == because->workload ? 1 : 0;

	because->other = borrowers->id[place];
	because->other_bytes = borrowers->burst_bytes[place];
}

/* What the demand could have, were `coming` bytes more free. */
static uint64_t available_with(
	const struct sl_node *node, const struct sl_demand *demand, uint64_t coming)
{
	uint32_t gpu = demand->gpu;
	uint64_t free_bytes = sl_sub_sat(sl_ledger_shareable(&node->ledger, gpu) + coming,
		sl_ledger_resident(&node->ledger, gpu));
	uint64_t others = node->ledger.gpu[gpu].unclaimed_bytes -
			  sl_ledger_unclaimed(demand->holding->account, gpu);

	if (sl_demand_is_entitled(demand))
		return free_bytes;
	if (node->queue[gpu].degraded)
		return 0;
	return sl_sub_sat(free_bytes, sl_sub_sat(others, sl_node_lend_to(node, demand)));
}

/* It would pass the head, which waits for what is free. */
static bool is_kept_for_head(const struct sl_node *node, const struct sl_demand *demand)
{
	const struct sl_demand *head = node->queue[demand->gpu].head;

	return head && head != demand &&
	       sl_demand_yields(demand, head, node->now - head->head_since,
		       node->head_pass, sl_node_has_priority(node));
}

uint64_t sl_node_available(const struct sl_node *node, const struct sl_demand *demand)
{
	uint64_t bytes = available_with(node, demand, 0);

	if (sl_demand_is_entitled(demand))
		return bytes;
	if (is_kept_for_head(node, demand))
		return 0;
	return sl_min_u64(
		bytes, sl_sub_sat(sl_ledger_free_bytes(&node->ledger, demand->gpu),
			       sl_node_kept_from(node, demand)));
}

/* Something would come by itself: memory of the dead. */
static bool waits_for_the_dead(const struct sl_node *node, const struct sl_demand *demand)
{
	uint64_t dying = node->ledger.gpu[demand->gpu].sum.dying_bytes;

	return dying && demand->bytes <= available_with(node, demand, dying);
}

/* What those of the workload who were told to end leave to others: a burst gets nothing of its
 * request. */
static uint64_t leaves(const struct sl_node *node, const struct sl_node_member *member,
	const struct sl_demand *demand)
{
	const struct sl_ledger_account *account = &member->account;
	uint64_t here = sl_ledger_here(account, demand->gpu), bytes = 0;

	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		if (sl_node_is_going(client))
			bytes += sl_ledger_live(&client->holding.cell[demand->gpu]);
	}
	if (sl_node_workload_is_going(member))
		bytes = here;
	if (demand->entitled)
		return bytes;
	return sl_min_u64(
		bytes, sl_sub_sat(here, sl_ledger_request(account, demand->gpu)));
}

/* Some were told to end, and with what they hold here it would fit. Names the workload that holds
 * most of it. */
static bool waits_for_the_stopped(const struct sl_node *node,
	const struct sl_demand *demand, struct sl_node_because *because)
{
	uint64_t coming = node->ledger.gpu[demand->gpu].sum.dying_bytes, most = 0;
	uint64_t who = 0;

	sl_list_foreach (link, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);
		uint64_t bytes = leaves(node, member, demand);

		coming += bytes;
		if (bytes <= most || member->index.id == because->workload)
			continue;
		most = bytes;
		who = member->index.id;
	}
	if (!most || demand->bytes > available_with(node, demand, coming))
		return false;
	because->reason = SL_REASON_STOPPING_WAITS;
	because->other = who;
	because->other_bytes = most;
	return true;
}

/* --- who is not on the GPU --- */

/* Names the other workload that has most on the GPU, or most of what leaves it. */
static void name_other(
	const struct sl_node *node, struct sl_node_because *because, bool leaving)
{
	uint64_t most = 0;

	sl_list_foreach (link, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);
		uint64_t bytes =
			leaving ? member->account.cell[because->gpu].leaving_bytes
				: sl_ledger_here(&member->account, because->gpu);

		if (bytes <= most || member->index.id == because->workload)
			continue;
		most = bytes;
		because->other = member->index.id;
		because->other_bytes = bytes;
	}
}

struct sl_node_because sl_node_resume_because(
	const struct sl_node *node, const struct sl_node_member *member)
{
	struct sl_node_because because = {.reason = SL_REASON_RESUME_WAITS,
		.workload = member->index.id,
		.bytes = member->parked_bytes,
		.span = node->now - member->resumed_at};

	for (uint32_t left = member->account.gpu_mask; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);
		uint64_t others = node->ledger.gpu[gpu].claims_bytes -
				  sl_ledger_claim(&member->account, gpu);

		because.gpu = gpu;
		because.available_bytes =
			sl_sub_sat(sl_ledger_shareable(&node->ledger, gpu), others);
		if (because.available_bytes < because.bytes)
			break;
	}
	return because;
}

bool sl_node_waits_for_pool(const struct sl_node *node,
	const struct sl_node_client *client, struct sl_node_because *because)
{
	const struct sl_node_because *lacks = &client->pool_lacks;
	bool bound = lacks->reason == SL_REASON_POOL_BOUND;

	/* Without `swap` in the chain any more the last look is an old one, and nobody would be
	 * moved with a larger pool either. */
	if (!lacks->reason || !sl_node_swaps(node))
		return false;
	because->reason = bound ? SL_REASON_POOL_BOUND_WAITS : SL_REASON_POOL_WAITS;
	because->gpu = lacks->gpu;
	because->bytes = lacks->bytes;
	because->available_bytes = lacks->available_bytes;
	because->other = bound ? lacks->workload : 0;
	because->other_bytes = 0;
	return true;
}

/* Somebody was told to end for it. */
static bool returns_after_the_stopped(
	const struct sl_node *node, struct sl_node_because *because)
{
	sl_list_foreach (link, &node->stops) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_stops);

		if (client->stop.other != because->workload ||
			client->stop.gpu != because->gpu)
			continue;
		because->reason = SL_REASON_STOPPING_WAITS;
		because->other = client->member->index.id;
		because->other_bytes =
			sl_ledger_live(&client->holding.cell[because->gpu]);
		return true;
	}
	return false;
}

/* On this GPU it lacks what processes have that do not answer, or that is kept for them to come
 * back. Names the one with most of it. */
static bool lacks_what_is_stuck(const struct sl_node *node,
	const struct sl_node_client *own, uint32_t gpu, struct sl_node_because *because)
{
	uint64_t room = sl_ledger_free_bytes(&node->ledger, gpu), most = 0;
	const struct sl_ledger_cell *cell = &own->holding.cell[gpu];
	uint64_t need = cell->evicted_bytes - cell->returning_bytes;
	const struct sl_node_client *who = NULL;

	if (room >= need)
		return false;
	for (const struct sl_index_node *at = sl_index_next(&node->clients, NULL); at;
		at = sl_index_next(&node->clients, at)) {
		const struct sl_node_client *client =
			SL_CONTAINER_OF(at, const struct sl_node_client, index);
		uint64_t bytes = sl_ledger_live(&client->holding.cell[gpu]);

		if (client == own || !client->alive || sl_node_answers(client))
			continue;
		room += bytes;
		if (bytes <= most)
			continue;
		most = bytes;
		who = client;
	}
	/* Others have it, too, and the host has no room for them. */
	if (!who || (own->pool_lacks.reason && room < need))
		return false;
	because->reason = SL_REASON_STUCK_WAITS;
	because->gpu = gpu;
	because->bytes = cell->evicted_bytes;
	because->client = who->index.id;
	because->other = who->member->index.id;
	because->other_bytes = most;
	return true;
}

/* It is above its request. Names the workload within its own that has most there which can be
 * moved, and is not moved for that. */
static bool waits_for_the_graced(const struct sl_node *node,
	const struct sl_node_client *own, struct sl_node_because *because)
{
	enum sl_endless endless;
	uint64_t most = 0;

	/* Then no grace has an end that would help, nor would a request. */
	(void)sl_node_longest_wait(node, own->member, &endless);
	if (endless == SL_ENDLESS_STAYS)
		return false;
	sl_list_foreach (link, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);
		uint64_t bytes =
			sl_sub_sat(sl_ledger_here(&member->account, because->gpu),
				sl_node_stays_on(member, because->gpu));

		if (member == own->member || bytes <= most || !sl_node_has_grace(member))
			continue;
		most = bytes;
		because->other = member->index.id;
	}
	if (!most)
		return false;
	because->reason = SL_REASON_GRACE_WAITS;
	because->other_bytes = most;
	return true;
}

/* The last look could do nothing for it. */
static bool returns_after_the_stuck(const struct sl_node *node,
	const struct sl_node_client *client, struct sl_node_because *because)
{
	if (client->unhelped_in != node->looks)
		return false;
	for (uint32_t left = client->is_out; left; left &= left - 1) {
		if (lacks_what_is_stuck(
			    node, client, (uint32_t)__builtin_ctz(left), because))
			return true;
	}
	return false;
}

struct sl_node_because sl_node_away_because(
	const struct sl_node *node, const struct sl_node_client *client)
{
	const struct sl_node_member *member = client->member;
	struct sl_node_because because = {.workload = member->index.id,
		.client = client->index.id,
		.gpu = client->is_out ? (uint32_t)__builtin_ctz(client->is_out)
				      : client->order.gpu};
	sl_ns since = sl_node_wants_since(client);

	because.span = since == SL_NS_NEVER ? 0 : node->now - since;
	because.bytes = client->holding.cell[because.gpu].evicted_bytes;
	if (member->resuming)
		return sl_node_resume_because(node, member);
	if (member->parked) {
		because.reason = SL_REASON_PARKED_WAITS;
	} else if (client->condition != SL_CONDITION_RUNNING &&
		   !client->holding.cell[because.gpu].leaving_bytes) {
		because.reason = client->returns || client->order.id
					 ? SL_REASON_RETURN_STOPPED
					 : SL_REASON_AWAY_STOPPED;
		because.span = node->now - client->condition_at;
	} else if (client->returns) {
		because.reason = SL_REASON_RETURN_WAITS;
	} else if (returns_after_the_stopped(node, &because) ||
		   returns_after_the_stuck(node, client, &because)) {
		return because;
	} else if (node->ledger.gpu[because.gpu].sum.leaving_bytes &&
		   !client->holding.cell[because.gpu].leaving_bytes) {
		because.reason = SL_REASON_LEAVING_WAITS;
		name_other(node, &because, true);
	} else if (sl_node_waits_for_pool(node, client, &because)) {
		return because;
	} else if (client->unhelped_in != node->looks ||
		   !waits_for_the_graced(node, client, &because)) {
		because.reason = SL_REASON_TURN_WAITS;
		name_other(node, &because, false);
	}
	return because;
}

/* The GPU with the most of what has to leave. */
static uint32_t most_on(const struct sl_node *node, const struct sl_node_client *client)
{
	uint32_t most = client->order.gpu;

	for (uint32_t left = client->holding.touched; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);

		if (sl_node_to_leave(node, client, gpu) >
			sl_node_to_leave(node, client, most))
			most = gpu;
	}
	return most;
}

static enum sl_reason parking_for(enum sl_reason refused_for)
{
	switch (refused_for) {
	case SL_REASON_EVICT_BUSY: return SL_REASON_PARKING_BUSY;
	case SL_REASON_EVICT_CAPTURE: return SL_REASON_PARKING_CAPTURE;
	case SL_REASON_EVICT_NO_HOST: return SL_REASON_PARKING_NO_HOST;
	case SL_REASON_EVICT_FAILED: return SL_REASON_PARKING_FAILED;
	default: return SL_REASON_PARKING;
	}
}

struct sl_node_because sl_node_parking_because(
	const struct sl_node *node, const struct sl_node_client *client)
{
	uint32_t gpu = most_on(node, client);
	struct sl_node_because because = {.reason = SL_REASON_PARKING,
		.workload = client->member->index.id,
		.client = client->index.id,
		.gpu = gpu,
		.bytes = sl_node_to_leave(node, client, gpu),
		.available_bytes = sl_node_room_to_go(node, client->member, gpu)};

	if (client->condition != SL_CONDITION_RUNNING) {
		because.reason = SL_REASON_PARKING_STOPPED;
		because.span = node->now - client->condition_at;
	} else if (client->refusals) {
		because.reason = parking_for(client->refused_for);
		because.span = node->now - client->refused_since;
	}
	if (because.reason == SL_REASON_PARKING && !client->order.id &&
		because.bytes > because.available_bytes)
		because.reason = SL_REASON_PARKING_NO_HOST;
	return because;
}

static void explain(const struct sl_node *node, const struct sl_demand *demand,
	struct sl_node_because *because)
{
	const struct sl_node_queue *queue = &node->queue[demand->gpu];
	/* Also of what is kept for others. */
	bool fits = demand->bytes <= available_with(node, demand, 0);
	uint64_t kept;

	if (sl_node_is_recovering(node)) {
		because->reason = SL_REASON_RECOVERY_WAITS;
		return;
	}
	if (sl_node_is_away(sl_node_client_of(demand))) {
		*because = sl_node_away_because(node, sl_node_client_of(demand));
		because->span = node->now - demand->arrived;
		return;
	}
	if (demand->moving && node->ledger.gpu[demand->gpu].sum.leaving_bytes) {
		because->reason = SL_REASON_LEAVING_WAITS;
		name_other(node, because, true);
		return;
	}
	if (fits && demand->refusals) {
		because->reason = SL_REASON_DRIVER_WAITS;
		return;
	}
	if (fits && queue->head && queue->head != demand) {
		because->reason = SL_REASON_KEPT_FOR_HEAD;
		because->other = sl_node_client_of(queue->head)->member->index.id;
		return;
	}
	if (waits_for_the_stopped(node, demand, because))
		return;
	if (waits_for_the_dead(node, demand)) {
		because->reason = SL_REASON_DYING_WAITS;
		because->other_bytes = node->ledger.gpu[demand->gpu].sum.dying_bytes;
		return;
	}
	because->reason =
		demand->entitled ? SL_REASON_ENTITLED_WAITS : SL_REASON_BURST_WAITS;
	sl_node_name_borrower(node, because);
	kept = node->ledger.gpu[demand->gpu].unclaimed_bytes -
	       sl_ledger_unclaimed(demand->holding->account, demand->gpu);
	if (because->other_bytes || demand->entitled || queue->degraded)
		return;
	if (!kept && sl_node_swaps(node))
		(void)waits_for_the_graced(node, sl_node_client_of(demand), because);
	if (!kept)
		return;
	/* Nobody has what it lacks: it is promised, and not used yet. */
	because->reason = SL_REASON_REQUESTS_WAIT;
	because->other = 0;
	because->other_bytes = kept;
}

struct sl_node_because sl_node_numbers(
	const struct sl_node *node, const struct sl_demand *demand)
{
	const struct sl_node_client *client = sl_node_client_of(demand);

	return (struct sl_node_because){.gpu = demand->gpu,
		.workload = client->member->index.id,
		.client = client->index.id,
		.bytes = demand->bytes,
		.available_bytes = sl_node_available(node, demand),
		.span = node->now - demand->arrived};
}

struct sl_node_because sl_node_waits_because(
	const struct sl_node *node, const struct sl_demand *demand)
{
	struct sl_node_because because = sl_node_numbers(node, demand);

	explain(node, demand, &because);
	return because;
}
