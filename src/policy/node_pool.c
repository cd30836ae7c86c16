/*
 * node_pool - what host memory the node can still promise
 *
 * The only place that knows what stands in the pool: it fills in books/pool.h from the ledger, and
 * demands, looks, parking and going warm ask it.
 *
 * I2 keeps requests: what is lent can be taken back. Two more claims stand beside it: room for
 * clients that are half there, none of which can run before one of them leaves, and a way back for
 * those that are moved for a burst. A client's memory is on the host until as much of others' has
 * gone there, so the pool must have room while both are there (docs/decisions/0025).
 */
#include "policy/mutant.h"
#include "policy/node_state.h"

/* --- half there --- */

/* What of it is on the host and has no room yet, beyond what is free there or about to be. */
static uint64_t lacks_of(const struct sl_node *node, const struct sl_node_client *client)
{
	uint64_t bytes = 0;

	for (uint32_t left = client->is_out; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];
		const struct sl_ledger_cell *sum = &node->ledger.gpu[gpu].sum;

		bytes += sl_sub_sat(cell->evicted_bytes - cell->returning_bytes,
			sl_ledger_free_bytes(&node->ledger, gpu) + sum->leaving_bytes);
	}
	return bytes;
}

static uint64_t half_out(const struct sl_node *node, uint32_t but)
{
	uint64_t least[SL_NODE_GPUS_MAX], bytes = 0;
	uint32_t one = 0, two = 0;

	sl_list_foreach (link, &node->out) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_out);
		uint32_t touched = client->holding.touched & ~but;
		uint64_t lacks;

		if (!client->alive || !client->is_out || !touched ||
			!sl_ledger_evictable_on(
				client->holding.cell, client->holding.touched))
			continue;
		/* Who is parked gives all of it, and needs nothing. */
		lacks = client->member->parked ? UINT64_MAX : lacks_of(node, client);
		for (uint32_t left = touched; left; left &= left - 1) {
			uint32_t gpu = (uint32_t)__builtin_ctz(left);

			least[gpu] =
				one >> gpu & 1 ? sl_min_u64(least[gpu], lacks) : lacks;
		}
		two |= one & touched;
		one |= touched;
	}
	for (uint32_t left = two; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);

		bytes += least[gpu] == UINT64_MAX ? 0 : least[gpu];
	}
	return bytes;
}

/* --- I2 --- */

/* resident + unclaimed - shareable, once all that is told to leave has left. */
static int64_t lent_on(const struct sl_node *node, uint32_t gpu)
{
	const struct sl_ledger_gpu *g = &node->ledger.gpu[gpu];
	int64_t lent = (int64_t)sl_ledger_resident(&node->ledger, gpu) +
		       (int64_t)g->unclaimed_bytes -
		       (int64_t)sl_ledger_shareable(&node->ledger, gpu) -
		       (int64_t)SL_MUTANT(LEAVING_IS_LENT, g->sum.leaving_bytes, 0);

	if (!g->sum.leaving_bytes)
		return lent;
	sl_list_foreach (link, &node->all_members) {
		const struct sl_ledger_account *account =
			&SL_LIST_ENTRY(link, struct sl_node_member, of_node)->account;
		uint64_t request = sl_ledger_request(account, gpu);
		uint64_t here = sl_ledger_here(account, gpu);
		uint64_t left = here - account->cell[gpu].leaving_bytes;

		lent += (int64_t)(sl_sub_sat(request, left) - sl_sub_sat(request, here));
	}
	return lent;
}

/* Found out once as long as no bytes move; keeps nothing yet. */
static const struct sl_pool *pool_of(const struct sl_node *node)
{
	struct sl_pool *pool = &node->caches->pool;

	if (node->caches->pool_as_of == node->books)
		return pool;
	node->caches->pool_as_of = node->books;
	*pool = (struct sl_pool){.pool_bytes = node->pool.pool_bytes,
		.slack_bytes = node->pool.slack_bytes,
		.evicted_bytes = node->ledger.evicted_bytes,
		.leaving_bytes = node->ledger.leaving_bytes};
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		pool->returning_bytes += node->ledger.gpu[gpu].sum.returning_bytes;
		if (node->ledger.gpu[gpu].present)
			pool->lent_bytes[gpu] = lent_on(node, gpu);
	}
	return pool;
}

struct sl_pool sl_node_pool_for(const struct sl_node *node, uint32_t gpus)
{
	struct sl_pool pool = *pool_of(node);

	pool.kept_bytes = half_out(node, gpus);
	return pool;
}

uint64_t sl_node_pool_there(const struct sl_node *node)
{
	return sl_pool_there(pool_of(node));
}

uint64_t sl_node_lend(const struct sl_node *node, uint32_t gpu)
{
	struct sl_node_lend_cache *lend = &node->caches->lend[gpu];
	struct sl_pool pool;

	if (node->pool.pool_bytes <= node->pool.slack_bytes || !sl_node_swaps(node))
		return 0;
	if (lend->as_of == node->books)
		return lend->bytes;
	/* What is lent here cannot also make room for those who are half there elsewhere. */
	pool = sl_node_pool_for(node, 1u << gpu);
	*lend = (struct sl_node_lend_cache){
		.as_of = node->books, .bytes = sl_pool_lend(&pool, gpu)};
	return lend->bytes;
}

/* --- going to the host for nobody --- */

/* Of the workload on the GPU, above its request, once what is told to leave has left. */
static uint64_t burst_of(const struct sl_node_member *member, uint32_t gpu)
{
	return sl_sub_sat(sl_ledger_here(&member->account, gpu) -
				  member->account.cell[gpu].leaving_bytes,
		sl_ledger_request(&member->account, gpu));
}

uint64_t sl_node_room_to_go(
	const struct sl_node *node, const struct sl_node_member *member, uint32_t gpu)
{
	struct sl_pool pool = sl_node_pool_for(node, member->account.touched);

	return sl_min_u64(sl_pool_room(&pool, gpu, burst_of(member, gpu)),
		sl_node_pool_share(node, member));
}

struct sl_node_all_out sl_node_all_out(const struct sl_node *node,
	const struct sl_node_member *member, bool gives_up_request)
{
	struct sl_pool pool = sl_node_pool_for(node, member->account.touched);
	struct sl_node_all_out all = {0};
	uint64_t taken_back = 0;

	for (uint32_t left = member->account.touched; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);
		const struct sl_ledger_cell *cell = &member->account.cell[gpu];
		uint64_t stays =
			sl_ledger_here(&member->account, gpu) - cell->leaving_bytes;
		uint64_t request = sl_ledger_request(&member->account, gpu);
		uint64_t bytes = node->queue[gpu].lost
					 ? 0
					 : sl_sub_sat(sl_ledger_evictable(cell),
						   cell->leaving_bytes);
		uint64_t burst = sl_sub_sat(stays, gives_up_request ? 0 : request);

		if (gives_up_request)
			pool.lent_bytes[gpu] -= (int64_t)sl_sub_sat(request, stays);
		all.bytes += bytes;
		taken_back += sl_pool_taken_back(&pool, gpu, sl_min_u64(bytes, burst));
	}
	all.room_bytes =
		sl_min_u64(sl_pool_there(&pool), sl_pool_left(&pool) + taken_back);
	return all;
}

/* --- bounds of a workload --- */

uint64_t sl_node_pool_share(
	const struct sl_node *node, const struct sl_node_member *member)
{
	uint64_t has = 0;

	if (SL_MUTANT(POOL_UNBOUND, !node->pool_member_bytes, true))
		return SL_LEDGER_BYTES_MAX;
	for (uint32_t left = member->account.touched; left; left &= left - 1) {
		const struct sl_ledger_cell *cell =
			&member->account.cell[__builtin_ctz(left)];

		has += cell->evicted_bytes + cell->leaving_bytes;
	}
	return sl_sub_sat(node->pool_member_bytes, has);
}

uint64_t sl_node_lend_share(
	const struct sl_node *node, const struct sl_node_member *member)
{
	uint64_t burst = 0;

	if (!node->pool_member_bytes)
		return SL_LEDGER_BYTES_MAX;
	for (uint32_t left = member->account.touched; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);

		burst += sl_sub_sat(sl_ledger_use(&member->account, gpu),
			sl_ledger_request(&member->account, gpu));
	}
	return sl_sub_sat(node->pool_member_bytes, burst);
}

/* --- the way back --- */

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

/* What it is told to move leaves in whole chunks. */
static uint64_t more_of(const struct sl_node_client *client)
{
	const struct sl_ledger_cell *cell = &client->holding.cell[client->order.gpu];

	if (!client->order.id || client->order.restores)
		return 0;
	return sl_min_u64(client->chunk_bytes,
		sl_sub_sat(sl_ledger_evictable(cell), cell->leaving_bytes));
}

uint64_t sl_node_room_and_back(const struct sl_node *node,
	const struct sl_node_client *asker, uint32_t gpu, uint64_t bytes)
{
	const struct sl_ledger_cell *sum = &node->ledger.gpu[gpu].sum;
	uint64_t usable = sl_sub_sat(node->pool.pool_bytes, node->pool.slack_bytes);
	uint64_t room = sl_sub_sat(usable, sl_pool_away(pool_of(node)));
	uint64_t all = 0, elsewhere = 0, more = 0, chunk = 0;

	for (const struct sl_index_node *at = sl_index_next(&node->clients, NULL); at;
		at = sl_index_next(&node->clients, at)) {
		const struct sl_node_client *client =
			SL_CONTAINER_OF(at, const struct sl_node_client, index);
		struct out out = most_out_of(node, client, gpu);

		out.here_bytes += client == asker ? bytes : 0;
		all = sl_max_u64(all, out.here_bytes + out.elsewhere_bytes);
		elsewhere = sl_max_u64(elsewhere, out.elsewhere_bytes);
		more += more_of(client);
		chunk = sl_max_u64(chunk, out.here_bytes ? client->chunk_bytes : 0);
	}
	room = sl_sub_sat(room, more);
	/* Beside what moves either the largest has room, or once more all that is away from
	 * here, in whole chunks. */
	return SL_MUTANT(NO_WAY_BACK,
		sl_max_u64(sl_sub_sat(room, all),
			sl_sub_sat(room, elsewhere + chunk + sum->evicted_bytes +
						 sum->leaving_bytes) /
				2),
		SL_LEDGER_BYTES_MAX);
}
