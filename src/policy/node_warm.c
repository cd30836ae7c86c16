/*
 * node_warm - workloads that had no work for long give their memory up
 *
 * A workload is warm when all of it is on the host and nobody asks for it: it keeps its request,
 * and its next call brings it back. It goes there once each of its processes has been idle, proven,
 * for warm_after. It is the least of what the pool is for: it goes only where that takes nothing
 * from what is lent.
 */
#include "policy/mutant.h"
#include "policy/node_state.h"

/* The pool had no room for it. */
#define TRIED_AGAIN_AFTER (5 * SL_S)

/* When it will have been idle for so long, if it stays so; 0: it has. Asks for a proof where one is
 * missing. */
static sl_ns idle_at(struct sl_node *node, struct sl_node_client *client, sl_ns span)
{
	sl_ns idle = sl_node_settled_idle(node, client);

	if (client->waiting || client->order.id || !idle)
		return SL_NS_NEVER;
	if (idle < span)
		return sl_node_later(node->now, span - idle);
	if (SL_MUTANT(WARM_UNPROVEN, sl_node_is_proven(client), true))
		return 0;
	client->asked_in = node->looks;
	node->asked++;
	return SL_NS_NEVER;
}

/* The last of its processes decides. */
static sl_ns warm_at(struct sl_node *node, struct sl_node_member *member)
{
	sl_ns latest = 0;

	sl_list_foreach (link, &member->clients) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		if (!client->alive || !sl_ledger_evictable_on(client->holding.cell,
					      client->holding.touched))
			continue;
		latest = sl_max_u64(latest,
			idle_at(node, client,
				SL_MUTANT(WARM_TOO_EARLY, member->warm_after, 1)));
	}
	return latest;
}

static bool may_be_warm(const struct sl_node_member *member)
{
	return member->warm_after && !member->parked && !member->leaving &&
	       !member->stopping && !(member->flags & SL_WORKLOAD_NO_SWAP);
}

/* A part of it on the host would come back with the next call, and give nobody the room that the
 * rest keeps. */
static struct sl_node_all_out look(
	const struct sl_node *node, const struct sl_node_member *member)
{
	struct sl_node_all_out all = sl_node_all_out(node, member, false);

	all.room_bytes = sl_min_u64(all.room_bytes, sl_node_pool_share(node, member));
	return all;
}

bool sl_node_warm_because(const struct sl_node *node, const struct sl_node_client *client,
	struct sl_node_because *because)
{
	const struct sl_node_member *member = client->member;
	sl_ns idle = sl_node_settled_idle(node, client);
	struct sl_node_all_out all;

	if (!client->holding.touched || !may_be_warm(member) ||
		idle < member->warm_after || client->order.id)
		return false;
	all = look(node, member);
	if (all.bytes <= all.room_bytes)
		return false;
	*because = (struct sl_node_because){
		.gpu = (uint32_t)__builtin_ctz(client->holding.touched),
		.reason = all.room_bytes == sl_node_pool_share(node, member)
				  ? SL_REASON_WARM_POOL_BOUND
				  : SL_REASON_WARM_POOL_FULL,
		.workload = member->index.id,
		.client = client->index.id,
		.bytes = all.bytes,
		.available_bytes = all.room_bytes,
		.span = idle};
	return true;
}

/* Said once, until there is room again. */
static void note_no_room(struct sl_node *node, struct sl_node_member *member)
{
	struct sl_node_because because;

	node->swap_due =
		sl_min_u64(node->swap_due, sl_node_later(node->now, TRIED_AGAIN_AFTER));
	if (member->warm_told)
		return;
	sl_list_foreach (link, &member->clients) {
		if (!sl_node_warm_because(node,
			    SL_LIST_ENTRY(link, struct sl_node_client, of_member),
			    &because))
			continue;
		sl_node_note_because(node, &because);
		member->warm_told = true;
		return;
	}
}

static void send(struct sl_node *node, struct sl_node_member *member)
{
	struct sl_node_all_out all = look(node, member);

	if (!SL_MUTANT(WARM_IN_PART, all.bytes <= all.room_bytes, true)) {
		note_no_room(node, member);
		return;
	}
	member->warm_told = false;
	if (!all.bytes)
		return;
	sl_list_foreach (link, &member->clients)
		(void)sl_node_send_away(node,
			SL_LIST_ENTRY(link, struct sl_node_client, of_member),
			&(struct sl_node_going){.reason = SL_REASON_EVICTED_IDLE,
				.again_after = TRIED_AGAIN_AFTER});
}

/* Others are moved for a demand: the host's room for them, and for what it borrows, comes before
 * room for who may as well leave later. */
static bool is_demand_moving(const struct sl_node *node)
{
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		sl_list_foreach (link, &node->queue[gpu].waiting) {
			if (SL_LIST_ENTRY(link, struct sl_demand, queue)->moving)
				return SL_MUTANT(WARM_BEFORE_DEMANDS, true, false);
		}
	}
	return false;
}

void sl_node_time_warm(struct sl_node *node)
{
	if (!node->warms || !node->pool.pool_bytes)
		return;
	sl_list_foreach (link, &node->all_members) {
		struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);
		sl_ns at;

		if (!may_be_warm(member))
			continue;
		at = warm_at(node, member);
		if (!at && is_demand_moving(node))
			at = sl_node_later(node->now, TRIED_AGAIN_AFTER);
		if (at) {
			node->swap_due = sl_min_u64(node->swap_due, at);
			continue;
		}
		send(node, member);
	}
}
