/*
 * node_back - what the pool keeps free for those to come back who are moved there for somebody's
 * burst
 *
 * I2 (design.md, section 4) keeps requests: what is lent can be taken back. This keeps turns: whose
 * memory is on the host comes back after as much of others' has gone there, so the pool must have
 * room while both are there. See docs/decisions/0025.
 */
#include "policy/mutant.h"
#include "policy/node_state.h"

/* Of a client, what may be on the host at once as those that take turns change places: all of it
 * that moves, but of no GPU more than is there of everybody. */
struct out {
	uint64_t here_bytes,
		elsewhere_bytes; /* of the GPU that is asked for; of the others */
};

/* Who is parked is there for as long as somebody says. */
static struct out most_out_of(
	const struct sl_node *node, const struct sl_node_client *client, uint32_t gpu)
{
	bool moves = client->swaps && !(client->member->flags & SL_WORKLOAD_NO_SWAP);
	struct out out = {0};

	if (!client->alive || client->member->parked)
		return out;
	for (uint32_t left = client->holding.touched; left; left &= left - 1) {
		uint32_t on = (uint32_t)__builtin_ctz(left);
		const struct sl_ledger_cell *cell = &client->holding.cell[on];
		const struct sl_ledger_cell *sum = &node->ledger.gpu[on].sum;
		uint64_t bytes = cell->evicted_bytes;

		bytes += moves ? sl_ledger_evictable(cell) : 0;
		if (on == gpu)
			out.here_bytes = bytes;
		else
			out.elsewhere_bytes += sl_min_u64(
				bytes, sum->evicted_bytes + sum->leaving_bytes);
	}
	return out;
}

/* Of the node, what is there for longer than it takes to come back. */
static uint64_t away_of(const struct sl_node *node)
{
	uint64_t away = node->ledger.evicted_bytes + node->ledger.leaving_bytes;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		away -= node->ledger.gpu[gpu].sum.returning_bytes;
	return away;
}

uint64_t sl_node_room_and_back(const struct sl_node *node,
	const struct sl_node_client *asker, uint32_t gpu, uint64_t bytes)
{
	const struct sl_ledger_cell *sum = &node->ledger.gpu[gpu].sum;
	uint64_t usable = sl_sub_sat(node->pool.pool_bytes, node->pool.slack_bytes);
	uint64_t room = sl_sub_sat(usable, away_of(node));
	uint64_t all = 0, elsewhere = 0;

	for (const struct sl_index_node *at = sl_index_next(&node->clients, NULL); at;
		at = sl_index_next(&node->clients, at)) {
		const struct sl_node_client *client =
			SL_CONTAINER_OF(at, const struct sl_node_client, index);
		struct out out = most_out_of(node, client, gpu);

		out.here_bytes += client == asker ? bytes : 0;
		all = sl_max_u64(all, out.here_bytes + out.elsewhere_bytes);
		elsewhere = sl_max_u64(elsewhere, out.elsewhere_bytes);
	}
	/* Beside what moves either the largest has room, or once more all that is away from
	 * here. */
	return SL_MUTANT(NO_WAY_BACK,
		sl_max_u64(sl_sub_sat(room, all),
			sl_sub_sat(room,
				elsewhere + sum->evicted_bytes + sum->leaving_bytes) /
				2),
		SL_LEDGER_BYTES_MAX);
}
