/*
 * node_leave - who competes for which GPUs, how long turns are there, and who could leave one
 *
 * GPUs are joined where a workload has memory on several: it runs on all of them or not at all, so
 * they take turns together. What is found out about them is kept for the rest of the step (caches).
 */
#include <string.h>

#include "policy/mutant.h"
#include "policy/node_state.h"

/* Refusals without a break, the first three within a second: whoever waits for its memory is
 * refused, or helped by the next resolver, as if it had none. */
#define UNWILLING_AFTER 4
/* Whoever is asked to prove that he is idle answers within a second, or cannot: its work does not
 * end, or a capture is open. */
#define PROOF_WITHIN (2 * SL_S)
/* A client that was asked again would have been by then: what it said before is not known to be so
 * any more. */
#define HEARD_WITHIN (2 * SL_S)

/* --- sets --- */

/* Where it has something that could be moved, or asks for something. */
static uint32_t mask_of(const struct sl_node_member *member)
{
	uint32_t mask = 0;

	for (uint32_t left = member->account.touched; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);
		const struct sl_ledger_cell *cell = &member->account.cell[gpu];

		if (sl_ledger_evictable(cell) || cell->evicted_bytes)
			mask |= 1u << gpu;
	}
	return member->waiting ? mask | member->asks_mask : mask;
}

static sl_ns cost_of(const struct sl_node *node, uint32_t gpu, uint64_t bytes)
{
	return sl_node_cost_out(node, gpu, bytes) + sl_node_cost_in(node, gpu, bytes);
}

static void sum_up_asks(struct sl_node_member *member)
{
	member->asks_mask = 0;
	if (!member->waiting)
		return;
	memset(member->asks_bytes, 0, sizeof(member->asks_bytes));
	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		sl_list_foreach (at, &client->party.demands) {
			const struct sl_demand *demand =
				SL_LIST_ENTRY(at, struct sl_demand, of_client);

			if (demand->epoch)
				continue;
			member->asks_mask |= 1u << demand->gpu;
			member->asks_bytes[demand->gpu] +=
				sl_min_u64(demand->bytes, SL_LEDGER_BYTES_MAX);
		}
	}
}

static uint64_t asked_on(const struct sl_node_member *member, uint32_t gpu)
{
	return member->waiting && member->asks_mask >> gpu & 1 ? member->asks_bytes[gpu]
							       : 0;
}

/* All GPUs of the mask are one set from now on. */
static void join(struct sl_node_sets *sets, uint32_t mask)
{
	uint32_t roots = 0, least;

	for (uint32_t left = mask; left; left &= left - 1)
		roots |= 1u << sets->set_of[__builtin_ctz(left)];
	least = (uint32_t)__builtin_ctz(roots);
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		if (roots >> sets->set_of[gpu] & 1)
			sets->set_of[gpu] = least;
	}
}

/* It has something on a GPU, if only to work with later, or wants it: only what is on the host and
 * not asked for leaves the others their time. */
static bool is_competing(const struct sl_node_member *member)
{
	if (member->parked || member->leaving)
		return false;
	if (member->waiting)
		return true;
	for (uint32_t left = member->account.touched; left; left &= left - 1) {
		if (sl_ledger_evictable(&member->account.cell[__builtin_ctz(left)]))
			return true;
	}
	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		if (sl_node_wants_back(client) || client->returns)
			return true;
	}
	return false;
}

static uint64_t weight_of(const struct sl_node *node, const struct sl_node_member *member)
{
	uint64_t least = SL_LEDGER_BYTES_MAX;

	for (uint32_t left = member->account.gpu_mask; left; left &= left - 1)
		least = sl_min_u64(least, sl_ledger_shareable(&node->ledger,
						  (uint32_t)__builtin_ctz(left)));
	return sl_turns_weight(member->account.request_bytes, least);
}

/* It was moved before it was said that it is not to be, and waits for others' turns to come
 * back. */
static bool is_any_out(const struct sl_node_member *member)
{
	sl_list_foreach (link, &member->clients) {
		if (SL_LIST_ENTRY(link, struct sl_node_client, of_member)->is_out)
			return true;
	}
	return false;
}

/* All of it, wherever it is; with_asks: and what it asks for. */
static bool is_within_request(const struct sl_node_member *member, bool with_asks)
{
	for (uint32_t left = member->account.touched; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);
		uint64_t asked = with_asks ? asked_on(member, gpu) : 0;

		if (sl_ledger_use(&member->account, gpu) + asked >
			sl_ledger_request(&member->account, gpu))
			return false;
	}
	return true;
}

bool sl_node_has_grace(const struct sl_node_member *member)
{
	return member->idle_grace && is_within_request(member, false);
}

/* What never leaves takes no turns. */
static bool is_movable(const struct sl_node_member *member)
{
	if (member->flags & SL_WORKLOAD_NO_SWAP)
		return false;
	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		if (client->alive && client->swaps)
			return true;
	}
	return false;
}

static void weigh(const struct sl_node *node, struct sl_node_sets *sets,
	struct sl_node_member *member)
{
	uint32_t mask;

	sum_up_asks(member);
	mask = mask_of(member);
	member->cost = 0;
	member->competes = false;
	if (!mask || !(is_movable(member) || is_any_out(member)))
		return;
	join(sets, mask);
	for (uint32_t left = mask; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);

		const struct sl_ledger_cell *cell = &member->account.cell[gpu];

		member->cost += cost_of(node, gpu,
			sl_ledger_evictable(cell) + cell->evicted_bytes +
				asked_on(member, gpu));
	}
	member->cost = sl_max_u64(member->cost, 1);
	member->competes = is_competing(member);
}

static uint32_t set_of(
	const struct sl_node_sets *sets, const struct sl_node_member *member)
{
	uint32_t mask = mask_of(member) ? mask_of(member) : member->account.gpu_mask;

	return mask ? sets->set_of[__builtin_ctz(mask)] : 0;
}

const struct sl_node_sets *sl_node_sets(const struct sl_node *node)
{
	struct sl_node_sets *sets = &node->caches->sets;

	if (sets->as_of == node->books && sets->at == node->now)
		return sets;
	*sets = (struct sl_node_sets){.as_of = node->books, .at = node->now};
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		sets->set_of[gpu] = gpu;
		sets->highest[gpu] = INT32_MIN;
	}
	sl_list_foreach (link, &node->all_members)
		weigh(node, sets, SL_LIST_ENTRY(link, struct sl_node_member, of_node));
	sl_list_foreach (at, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(at, struct sl_node_member, of_node);

		uint32_t set = set_of(sets, member);

		if (!member->competes)
			continue;
		if (member->priority > sets->highest[set])
			sets->highest[set] = member->priority;
		sl_turns_join(&sets->unit[set], member->cost, weight_of(node, member),
			node->turn_max);
	}
	return sets;
}

/* --- turns --- */

sl_ns sl_node_turn_of(const struct sl_node *node, const struct sl_node_member *member)
{
	const struct sl_node_sets *sets = sl_node_sets(node);

	return sl_turns_length(&sets->unit[set_of(sets, member)], weight_of(node, member),
		node->turn_max);
}

sl_ns sl_node_turn_left(const struct sl_node *node, const struct sl_node_member *member)
{
	return sl_sub_sat(
		sl_node_later(member->turn_began, sl_node_turn_of(node, member)),
		node->now);
}

/* On all its GPUs. */
static uint64_t use_of(const struct sl_node_member *member)
{
	uint64_t bytes = 0;

	for (uint32_t left = member->account.touched; left; left &= left - 1)
		bytes += sl_ledger_use(&member->account, (uint32_t)__builtin_ctz(left));
	return bytes;
}

void sl_node_begin_turn(const struct sl_node *node, struct sl_node_member *member)
{
	member->turn_began = node->now;
	member->turn_over = false;
	member->began_bytes = use_of(member);
}

uint64_t sl_node_grown(const struct sl_node_member *member)
{
	return sl_sub_sat(use_of(member), member->began_bytes);
}

bool sl_node_is_growing(const struct sl_node *node, const struct sl_node_client *client)
{
	return !sl_node_is_away(client) && !client->member->turn_over &&
	       sl_node_holds_something(client->member) &&
	       sl_node_turn_left(node, client->member);
}

void sl_node_note_long(struct sl_node *node)
{
	(void)sl_node_sets(node);
	sl_list_foreach (link, &node->all_members) {
		struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);
		uint32_t mask = mask_of(member);

		if (!member->competes || member->long_told || !mask ||
			member->cost <= sl_node_turn_of(node, member) / 10)
			continue;
		member->long_told = true;
		sl_node_note_because(
			node, &(struct sl_node_because){.reason = SL_REASON_TURN_LONG,
				      .gpu = (uint32_t)__builtin_ctz(mask),
				      .workload = member->index.id,
				      .span = member->cost});
	}
}

bool sl_node_is_below_others(const struct sl_node *node, const struct sl_node_member *own)
{
	const struct sl_node_sets *sets = sl_node_sets(node);

	return sets->highest[set_of(sets, own)] > own->priority;
}

/* Its turn of min_share is over, or it was moved out in it, having nothing to do: one turn is not
 * two. Or it does not want any more, before it had one: what it wants later is nothing that it
 * waited for. */
static bool is_promotion_over(
	const struct sl_node *node, const struct sl_node_member *member)
{
	bool wants = member->waiting, was_moved = false;

	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		if (!sl_node_wants_back(client))
			continue;
		wants = true;
		was_moved |= sl_node_wants_since(client) >= member->turn_began;
	}
	if (member->turn_began < member->promoted_at)
		return SL_MUTANT(MIN_SHARE_KEPT, !wants, false);
	return !sl_node_turn_left(node, member) ||
	       SL_MUTANT(MIN_SHARE_LASTS, was_moved, false);
}

/* Also of those that are not looked at just now, since they want nothing: they may want something
 * by the next look. */
void sl_node_end_promotions(struct sl_node *node)
{
	if (!node->promotions)
		return;
	sl_list_foreach (link, &node->all_members) {
		struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);

		if (!member->promoted || !is_promotion_over(node, member))
			continue;
		member->promoted = false;
		member->share_ended = sl_min_u64(node->now,
			sl_node_later(member->turn_began, sl_node_turn_of(node, member)));
		node->promotions--;
	}
}

sl_ns sl_node_settled_idle(
	const struct sl_node *node, const struct sl_node_client *client)
{
	sl_ns idle = sl_node_idle(node, client);

	/* Not 0, which is busy: time alone makes it idle for long enough. */
	return client->resident_at
		       ? sl_min_u64(idle, sl_max_u64(node->now - client->resident_at, 1))
		       : idle;
}

/* All of it is there, and can be moved for those that wait for the end of its workload's turn. */
static bool is_in_turn(const struct sl_node *node, const struct sl_node_client *client)
{
	if (!sl_node_may_leave(node, client) || sl_node_is_away(client))
		return false;
	for (uint32_t left = client->holding.touched; left; left &= left - 1) {
		if (sl_ledger_evictable(&client->holding.cell[__builtin_ctz(left)]))
			return true;
	}
	return false;
}

/* Whoever comes back in his place begins a turn that the longest wait of those behind him counts.
 * Two come out of their place: who is within his request, before all bursts, and who waited for
 * nothing, since he freed what was on the host. */
static bool comes_in_its_place(const struct sl_node *node,
	const struct sl_node_client *client, sl_ns wants_since)
{
	const struct sl_node_member *member = client->member;

	return wants_since != SL_NS_NEVER &&
	       (!is_within_request(member, false) ||
		       wants_since >= sl_node_later(member->turn_began,
					      sl_node_turn_of(node, member)));
}

bool sl_node_joins_turn(const struct sl_node *node, const struct sl_node_client *client,
	sl_ns wants_since)
{
	const struct sl_node_member *member = client->member;

	if (member->living < 2 || member->turn_over ||
		(member->promoted && member->turn_began < member->promoted_at) ||
		comes_in_its_place(node, client, wants_since))
		return false;
	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *other =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		if (other != client && is_in_turn(node, other))
			return true;
	}
	return false;
}

/* --- the longest wait --- */

/* Bytes of the workload that are, or want to be, on the GPU. */
static uint64_t wanted_on(const struct sl_node_member *member, uint32_t gpu)
{
	const struct sl_ledger_cell *cell = &member->account.cell[gpu];

	return cell->backing_bytes + cell->granted_bytes + cell->hidden_bytes +
	       asked_on(member, gpu);
}

uint64_t sl_node_stays_on(const struct sl_node_member *member, uint32_t gpu)
{
	uint64_t bytes = sl_ledger_fixed(&member->account.cell[gpu]);

	if (member->untakeable || !is_movable(member))
		return sl_ledger_here(&member->account, gpu);
	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];

		/* With the room that is kept for it to come back. */
		if (!client->swaps || !sl_node_answers(client))
			bytes += sl_ledger_evictable(cell) +
				 SL_MUTANT(
					 KEPT_FOR_STUCK_UNSEEN, cell->returning_bytes, 0);
	}
	return bytes;
}

bool sl_node_is_hostless(const struct sl_node *node, const struct sl_node_client *client)
{
	return client->refusals && !client->order.id &&
	       client->refused_for == SL_REASON_EVICT_NO_HOST &&
	       node->now < sl_node_later(client->refused_until, HEARD_WITHIN);
}

/* Beside what stays there, what could be moved if the host had memory for it. */
static uint64_t hostless_on(
	const struct sl_node *node, const struct sl_node_member *member, uint32_t gpu)
{
	uint64_t bytes = 0;

	if (member->untakeable || !is_movable(member))
		return 0;
	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		if (client->swaps && sl_node_answers(client) &&
			sl_node_is_hostless(node, client))
			bytes += sl_ledger_evictable(&client->holding.cell[gpu]);
	}
	return bytes;
}

/* Beside what stays there, what no burst gets while it works. */
static uint64_t graced_on(const struct sl_node_member *member, uint32_t gpu)
{
	return member->competes && sl_node_has_grace(member)
		       ? sl_sub_sat(wanted_on(member, gpu), sl_node_stays_on(member, gpu))
		       : 0;
}

/* Adds what is, or wants to be, on the GPUs, and what stays there. */
static void add_bytes(const struct sl_node *node, const struct sl_node_member *member,
	struct sl_node_longest *longest, uint64_t wanted_bytes[SL_NODE_GPUS_MAX])
{
	bool wants = member->competes || !is_movable(member);
	uint32_t touched = member->account.touched;

	for (uint32_t left = touched | (member->waiting ? member->asks_mask : 0); left;
		left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);

		wanted_bytes[gpu] += wants ? wanted_on(member, gpu)
					   : sl_ledger_fixed(&member->account.cell[gpu]);
		if (!(touched >> gpu & 1))
			continue;
		longest->stays_bytes[gpu] += sl_node_stays_on(member, gpu);
		longest->graced_bytes[gpu] += graced_on(member, gpu);
		longest->hostless_bytes[gpu] += hostless_on(node, member, gpu);
	}
}

/* What it has there and on the host does not fit on the GPU, whoever else leaves it: there was more
 * to share before, or somebody came since who cannot be moved. */
static bool is_never_whole_on(const struct sl_node *node,
	const struct sl_node_longest *longest, const struct sl_node_member *own,
	uint32_t gpu)
{
	return longest->stays_bytes[gpu] - sl_node_stays_on(own, gpu) +
		       sl_ledger_use(&own->account, gpu) >
	       sl_ledger_shareable(&node->ledger, gpu);
}

/* Its part of what stays on the GPU, as add_bytes() counts it. */
static uint64_t own_stays(const struct sl_node_member *own, uint32_t gpu)
{
	return own->account.touched >> gpu & 1 ? sl_node_stays_on(own, gpu) : 0;
}

/* Of the others the one that has most there that nobody can move. */
static void name_who_stays(const struct sl_node *node, const struct sl_node_member *own,
	struct sl_node_because *because)
{
	sl_list_foreach (link, &node->all_members) {
		const struct sl_node_member *other =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);
		uint64_t bytes = own_stays(other, because->gpu);

		if (other == own || bytes <= because->other_bytes)
			continue;
		because->other = other->index.id;
		because->other_bytes = bytes;
	}
}

static bool is_never_whole(const struct sl_node *node,
	const struct sl_node_longest *longest, const struct sl_node_member *own)
{
	for (uint32_t left = own->account.touched; left; left &= left - 1) {
		if (is_never_whole_on(node, longest, own, (uint32_t)__builtin_ctz(left)))
			return true;
	}
	return false;
}

/* Of a workload that is never whole each process has its own. */
static uint32_t turns_in_a_row(const struct sl_node *node,
	const struct sl_node_longest *longest, const struct sl_node_member *member)
{
	return is_never_whole(node, longest, member) ? member->living : 1;
}

static const struct sl_node_longest *longest_of(const struct sl_node *node)
{
	const struct sl_node_sets *sets = sl_node_sets(node);
	struct sl_node_longest *longest = &node->caches->longest;
	uint64_t wanted_bytes[SL_NODE_GPUS_MAX] = {0};

	if (longest->as_of == node->books)
		return longest;
	*longest = (struct sl_node_longest){.as_of = node->books};
	sl_list_foreach (link, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);

		add_bytes(node, member, longest, wanted_bytes);
	}
	sl_list_foreach (at, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(at, struct sl_node_member, of_node);
		uint32_t set = set_of(sets, member);

		if (!member->competes)
			continue;
		longest->competing[set]++;
		longest->turns[set] += (sl_node_wide)sl_node_turn_of(node, member) *
				       turns_in_a_row(node, longest, member);
		longest->costs[set] += member->cost;
		if (!is_within_request(member, true)) {
			longest->bursting[set]++;
			continue;
		}
		longest->within_turns[set] += sl_node_turn_of(node, member);
		longest->within_costs[set] += member->cost;
	}
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		if (node->ledger.gpu[gpu].present &&
			wanted_bytes[gpu] > sl_ledger_shareable(&node->ledger, gpu))
			longest->crowded |= 1u << sets->set_of[gpu];
	}
	return longest;
}

/* Something of the set cannot be moved, for now at least, and with it there is no room. */
static enum sl_endless stuck_by(
	const struct sl_node *node, const struct sl_node_member *own)
{
	const struct sl_node_longest *longest = longest_of(node);
	enum sl_endless endless = SL_ENDLESS_NOT;

	for (uint32_t mask = mask_of(own); mask; mask &= mask - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(mask);
		uint64_t shareable = sl_ledger_shareable(&node->ledger, gpu);
		uint64_t stays = longest->stays_bytes[gpu];
		uint64_t hostless = longest->hostless_bytes[gpu];
		uint64_t graced =
			is_within_request(own, true) ? 0 : longest->graced_bytes[gpu];

		if (own->account.touched >> gpu & 1) {
			stays -= sl_node_stays_on(own, gpu);
			hostless -= hostless_on(node, own, gpu);
			graced = sl_sub_sat(graced, graced_on(own, gpu));
		}
		if (stays && stays + wanted_on(own, gpu) > shareable)
			return SL_ENDLESS_STAYS;
		/* More of it could be moved, and then there were room. */
		if (hostless && stays + hostless + wanted_on(own, gpu) > shareable)
			endless = SL_ENDLESS_HOST;
		if (graced && stays + graced + wanted_on(own, gpu) > shareable)
			endless = SL_ENDLESS_REQUESTS;
	}
	return endless;
}

/* The pool has no room for those that would have to leave for it. */
static enum sl_endless lacks_pool(const struct sl_node_member *member)
{
	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		if (client->pool_lacks.reason && sl_node_wants_back(client))
			return client->pool_lacks.reason == SL_REASON_POOL_BOUND
				       ? SL_ENDLESS_BOUND
				       : SL_ENDLESS_POOL;
	}
	return SL_ENDLESS_NOT;
}

static enum sl_endless endless_by(
	const struct sl_node *node, const struct sl_node_member *member)
{
	enum sl_endless endless = stuck_by(node, member);

	if (!endless)
		endless = lacks_pool(member);
	if (!endless && is_never_whole(node, longest_of(node), member))
		endless = SL_ENDLESS_WHOLE;
	return endless;
}

bool sl_node_endless_because(const struct sl_node *node, const struct sl_node_member *own,
	struct sl_node_because *because)
{
	enum sl_endless endless;

	(void)sl_node_longest_wait(node, own, &endless);
	if (endless != SL_ENDLESS_STAYS && endless != SL_ENDLESS_WHOLE)
		return false;
	for (uint32_t mask = mask_of(own) | own->account.touched; mask;
		mask &= mask - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(mask);
		uint64_t shareable = sl_ledger_shareable(&node->ledger, gpu);
		uint64_t stays = longest_of(node)->stays_bytes[gpu] - own_stays(own, gpu);

		if (stays + wanted_on(own, gpu) <= shareable)
			continue;
		*because = (struct sl_node_because){
			.reason = stays ? SL_REASON_STAYS_WAITS : SL_REASON_WHOLE_WAITS,
			.gpu = gpu,
			.workload = own->index.id,
			.bytes = wanted_on(own, gpu),
			.available_bytes = sl_sub_sat(shareable, stays)};
		name_who_stays(node, own, because);
		return true;
	}
	return false;
}

const struct sl_node_member *sl_node_not_whole_beside(
	const struct sl_node *node, uint32_t gpu, uint64_t more_bytes, bool but_bursts)
{
	uint64_t shareable = sl_ledger_shareable(&node->ledger, gpu);

	sl_list_foreach (link, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);
		uint64_t bytes = longest_of(node)->stays_bytes[gpu] -
				 own_stays(member, gpu) +
				 sl_ledger_use(&member->account, gpu);

		if (but_bursts && !sl_ledger_request(&member->account, gpu))
			continue;
		/* One that is not whole already loses nothing more. */
		if (!member->parked && sl_ledger_use(&member->account, gpu) &&
			bytes <= shareable && bytes + more_bytes > shareable)
			return member;
	}
	return NULL;
}

static sl_ns span_of(sl_node_wide sum)
{
	return sum > SL_NS_NEVER ? SL_NS_NEVER : (sl_ns)sum;
}

/* Those within their requests come back after the first part of any burst's turn, and have theirs
 * again before the next. */
sl_ns sl_node_longest_wait(const struct sl_node *node,
	const struct sl_node_member *member, enum sl_endless *endless)
{
	const struct sl_node_longest *longest = longest_of(node);
	uint32_t set = set_of(sl_node_sets(node), member), others;
	sl_node_wide turns = longest->turns[set], costs = longest->costs[set];
	sl_ns turn, patience = 0, before = 0;

	*endless = SL_ENDLESS_NOT;
	if (!member->cost || member->parked || !sl_node_swaps(node) ||
		!(longest->crowded >> set & 1))
		return 0;
	*endless = endless_by(node, member);
	if (*endless)
		return SL_NS_NEVER;
	others = longest->competing[set] - member->competes;
	if (!others)
		return 0;
	turn = sl_node_turn_of(node, member);
	if (member->competes) {
		turns -= (sl_node_wide)turn * turns_in_a_row(node, longest, member);
		costs -= member->cost;
	}
	if (!is_within_request(member, true)) {
		uint32_t bursting = longest->bursting[set] - member->competes;

		turns += longest->within_turns[set] * bursting;
		costs += longest->within_costs[set] * bursting;
	}
	if (sl_node_is_below_others(node, member))
		patience = sl_turns_patience(turn, node->min_share_pm);
	/* Behind `wait` in the chain nobody is moved for its burst before. */
	if (!sl_node_swaps_at_once(node) && !is_within_request(member, true))
		before = member->wait_max ? member->wait_max : node->wait_max;
	return sl_node_later(
		before, sl_turns_longest_wait(span_of(turns), span_of(costs), others,
				member->cost, patience, node->evict_drain));
}

/* --- who could leave --- */

/* It was told to leave another GPU for somebody who lacks memory: it cannot run, and goes from here
 * as soon as it is gone from there. */
static bool leaves_elsewhere(const struct sl_node_client *client, uint32_t gpu)
{
	const struct sl_node_order *order = &client->order;
	uint32_t others = client->holding.touched & ~(1u << gpu);

	if (order->id && (order->restores || order->aborted || order->gpu == gpu ||
				 order->reason != SL_REASON_EVICTED_FOR))
		return false;
	for (; others; others &= others - 1) {
		if (client->holding.cell[__builtin_ctz(others)].leaving_bytes)
			return SL_MUTANT(LEAVES_ONE_GPU, true, false);
	}
	return false;
}

/* The turn of a workload begins when all of it is there. Clients that cannot be there together have
 * turns of the same length, each from when it came back. */
static sl_ns turn_left_of(const struct sl_node *node, const struct sl_node_client *client)
{
	const struct sl_node_member *member = client->member;
	sl_ns since = sl_max_u64(member->turn_began, client->resident_at);

	if (SL_MUTANT(SIBLINGS_AT_ONCE,
		    member->living < 2 || !is_never_whole(node, longest_of(node), member),
		    true))
		return sl_node_turn_left(node, member);
	return sl_sub_sat(sl_node_later(since, sl_node_turn_of(node, member)), node->now);
}

/* How long the proof that it is idle is waited for. It was asked for it, or is as soon as it stands
 * in somebody's way. */
static sl_ns proof_left_of(
	const struct sl_node *node, const struct sl_node_client *client)
{
	if (!client->idle || sl_node_is_proven(client))
		return 0;
	return client->probe == SL_PROBE_PROVE
		       ? sl_sub_sat(sl_node_later(client->proves_since, PROOF_WITHIN),
				 node->now)
		       : PROOF_WITHIN;
}

/* Of the workload on the GPU, once what was told to leave has left, and who was told to end has
 * ended: room that comes is counted so, and who would be taken by another count would be let go
 * again in the next look. */
static uint64_t staying_of(
	const struct sl_node *node, const struct sl_node_member *member, uint32_t gpu)
{
	uint64_t bytes = sl_ledger_here(&member->account, gpu) -
			 member->account.cell[gpu].leaving_bytes;

	if (SL_MUTANT(GOING_STAYS, sl_list_is_empty(&node->stops), true))
		return bytes;
	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];

		if (sl_node_is_going(client))
			bytes -= sl_ledger_live(cell) - cell->leaving_bytes;
	}
	return bytes;
}

/* Of its idle_grace, what is left before a burst may move it: all of it was without work for as
 * long as the one that worked last. */
static sl_ns grace_left_of(
	const struct sl_node *node, const struct sl_node_member *member)
{
	sl_ns idle = member->idle_grace;

	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		/* Of one that cannot move its memory nobody asks what it does. */
		if (client->alive && client->swaps && client->holding.touched)
			idle = sl_min_u64(
				idle, sl_min_u64(sl_node_settled_idle(node, client),
					      node->now - client->active_at));
	}
	return member->idle_grace - idle;
}

static struct sl_evict_candidate candidate_of(const struct sl_node *node,
	struct sl_node_client *client, uint32_t gpu, uint32_t workload)
{
	const struct sl_node_member *member = client->member;
	const struct sl_ledger_cell *cell = &client->holding.cell[gpu];
	uint64_t request = sl_ledger_request(&member->account, gpu);
	uint64_t here = staying_of(node, member, gpu);
	sl_ns part = sl_turns_first_part(cost_of(node, gpu, sl_ledger_evictable(cell)));
	sl_ns since = sl_max_u64(member->turn_began, client->resident_at);
	bool leaves = leaves_elsewhere(client, gpu), graced = sl_node_has_grace(member);

	return (struct sl_evict_candidate){.who = client,
		.id = client->index.id,
		.workload = workload,
		.bytes = sl_sub_sat(sl_ledger_evictable(cell), cell->leaving_bytes) +
			 cell->returning_bytes,
		.burst_bytes = sl_sub_sat(here, request),
		.within_bytes = sl_min_u64(here, request),
		.share_bytes = sl_node_pool_share(node, member),
		.chunk_bytes = client->chunk_bytes,
		.priority = member->priority,
		.suspended = leaves || (client->is_out && !client->returns),
		.proven = sl_node_is_proven(client),
		.promoted = member->promoted,
		.within_request = is_within_request(member, false),
		.has_grace = graced,
		.grace_left = graced ? grace_left_of(node, member) : 0,
		.unwilling = client->refusals >= UNWILLING_AFTER,
		.idle = sl_node_settled_idle(node, client),
		/* What waits for memory itself has nothing to do until it has it. */
		.idle_enough = SL_MUTANT(LOADERS_BLOCK, client->waiting, 0)
				       ? sl_turns_first_part(0)
				       : part,
		/* It is only looked at for requests, and these are not kept waiting for what
		 * moving a burst costs. */
		.first_part_left =
			sl_sub_sat(sl_node_later(since, sl_min_u64(part, SL_TURNS_LEAST)),
				node->now),
		.turn_left = turn_left_of(node, client),
		.proof_left = proof_left_of(node, client),
		.refused_left =
			leaves || sl_node_can_leave(node, client)
				? sl_sub_sat(client->refused_until, node->now)
				: SL_NS_NEVER -
					  1 /* when its order or grant has ended */};
}

/* One of the workload comes back that is before whoever asks, within its request or since others
 * left for it: all of it has its turn then, and is not taken one by one. */
static bool is_awaited(
	const struct sl_node *node, const struct sl_node_member *member, uint32_t place)
{
	bool within;

	if (member->living < 2)
		return false;
	within = is_within_request(member, false);
	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		if (client->seen_in == node->looks && client->place < place &&
			client->helpless_in != node->looks &&
			sl_node_wants_back(client) && (within || client->is_exchanged))
			return true;
	}
	return false;
}

/* Whoever comes before in the order is to be served himself, unless nothing can help him: a part of
 * him that has come back is of no use then, and what he asks for in vain, all of him being there,
 * keeps nobody from his turn. */
static bool may_leave(const struct sl_node *node, const struct sl_node_client *client,
	uint32_t place, uint32_t gpu)
{
	const struct sl_ledger_cell *cell = &client->holding.cell[gpu];

	return (sl_ledger_evictable(cell) || cell->returning_bytes) &&
	       sl_node_may_leave(node, client) &&
	       (!client->order.id || client->order.restores ||
		       leaves_elsewhere(client, gpu)) &&
	       (client->seen_in != node->looks ||
		       (SL_MUTANT(HELPLESS_KEEPS, client->helpless_in == node->looks,
				false) &&
			       (client->is_part_in || SL_MUTANT(HELPLESS_STAYS,
							      !client->is_out, false))) ||
		       SL_MUTANT(TAKES_FROM_THOSE_BEFORE, client->place > place, true));
}

static uint32_t list_candidates(struct sl_node *node, const struct sl_node_asker *asker,
	uint32_t gpu, bool own_too)
{
	const struct sl_node_client *own = asker->client;
	uint32_t count = 0, workloads = 0;

	sl_list_foreach (link, &node->all_members) {
		struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);
		uint32_t before = count;

		if ((member == own->member && !own_too) ||
			!member->account.cell[gpu].backing_bytes)
			continue;
		if (member != own->member && is_awaited(node, member, asker->place))
			continue;
		sl_list_foreach (at, &member->clients) {
			struct sl_node_client *client =
				SL_LIST_ENTRY(at, struct sl_node_client, of_member);

			if (client != own && may_leave(node, client, asker->place, gpu))
				node->candidates[count++] =
					candidate_of(node, client, gpu, workloads);
		}
		workloads += count > before;
	}
	return count;
}

struct sl_evict_plan sl_node_choose_leavers(struct sl_node *node,
	const struct sl_node_asker *asker, uint32_t gpu, const struct sl_evict_ask *ask,
	uint32_t *count)
{
	const struct sl_node_member *own = asker->client->member;
	struct sl_evict_plan plan;

	*count = list_candidates(node, asker, gpu, false);
	plan = sl_evict_choose(node->candidates, *count, ask);
	/* Beside the others of its own workload there is no room, whoever else leaves. */
	if (plan.ever || !asker->own_too || own->living < 2 ||
		!is_never_whole_on(node, longest_of(node), own, gpu))
		return plan;
	*count = list_candidates(node, asker, gpu, true);
	return sl_evict_choose(node->candidates, *count, ask);
}
