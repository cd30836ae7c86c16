/*
 * moves - a workload of which nothing is on a GPU goes to others
 *
 * A parked workload can, once its processes have left. In the books, what these have on the host
 * belongs to the GPU to which they will return, so a move changes only the books: what counted
 * there counts on the other GPU from now on. The processes go there with their ATTACH. A workload
 * whose first process begins (workloads.c) has nothing at all.
 */
#include "policy/node/internal.h"

/* --- whether it is away --- */

/* It does not leave until something about it changes. */
static bool stays(const struct sl_node *node, const struct sl_node_client *client)
{
	enum sl_reason cause = client->back_off.cause;

	if (!sl_node_answers(node, client, node->now))
		return true;
	if (client->order.id || sl_node_has_open_grant(client))
		return false;
	/* Its memory is asked for until it comes. A process that is busy is asked twice. */
	return !sl_node_must_stay(client, node->now) ||
	       cause == SL_REASON_DETACH_FAILED ||
	       (cause == SL_REASON_DETACH_BUSY &&
		       SL_MUTANT(BUSY_ONCE_STAYS, client->back_off.times > 1, true));
}

/* It left its GPUs whole, and nothing of it is on its way there. A process whose contexts were
 * never measured was not asked to leave: the driver may give it memory on its present GPU. */
static bool is_gone(const struct sl_node_client *client)
{
	if (!SL_MUTANT(MOVES_UNMEASURED, sl_node_is_detached(client), true) ||
		client->stage != SL_NODE_LIVES || client->told & SL_NODE_UNHEARD ||
		sl_node_has_open_grant(client))
		return false;
	sl_each_gpu (gpu, client->holding.touched) {
		if (!sl_ledger_is_gone(&client->holding.cell[gpu]))
			return false;
	}
	return true;
}

enum sl_presence sl_node_presence(
	const struct sl_node *node, const struct sl_node_workload *workload)
{
	bool has_stayed = false, is_leaving = false;

	if (!sl_node_is_parked(workload))
		return SL_PRESENCE_HERE;
	sl_node_each_client_of (client, workload) {
		bool is_here = client->stage != SL_NODE_DYING && !is_gone(client);

		if (!is_here)
			continue;
		if (stays(node, client))
			has_stayed = true;
		else
			is_leaving = true;
	}
	if (!has_stayed && !is_leaving)
		return SL_PRESENCE_AWAY;
	return !is_leaving && sl_node_is_put_away(workload) && !node->recover_until
		       ? SL_PRESENCE_STAYS
		       : SL_PRESENCE_HERE;
}

/* --- the move --- */

/* What its living clients have on the host, and what they ask for, goes along. */
static void rebook(struct sl_node *node, struct sl_node_workload *workload, uint32_t from,
	uint32_t to)
{
	struct sl_ledger_account *account = &workload->account;
	uint64_t request = account->request_bytes, limit = account->limit_bytes;
	uint32_t mask = (account->gpu_mask & ~(1u << from)) | 1u << to;

	sl_node_each_client_of (client, workload) {
		if (SL_MUTANT(MOVE_LEAVES_BYTES, client->stage != SL_NODE_DYING, false))
			sl_ledger_move(&node->ledger, &client->holding, from, to);
		sl_node_each_demand_of (demand, client) {
			if (demand->gpu ==
				SL_MUTANT(MOVE_LEAVES_DEMANDS, from, SL_NODE_GPUS_MAX))
				demand->gpu = to;
		}
	}
	sl_ledger_unbind(&node->ledger, account);
	sl_ledger_bind(&node->ledger, account, mask, request, limit);
	sl_node_book_stays(node, workload);
}

void sl_node_rebind(struct sl_node_step *step, struct sl_node_workload *workload,
	uint32_t from, uint32_t to, enum sl_reason reason)
{
	struct sl_ledger *ledger = &step->node->ledger;
	const struct sl_ledger_account *account = &workload->account;
	const struct sl_ledger_cell *cell = &account->cell[from];
	uint64_t bytes = cell->evicted_bytes + cell->away_bytes, id = workload->index.id;

	rebook(step->node, workload, from, to);
	/* As admission cuts it. */
	sl_ledger_change(ledger, &workload->account, account->request_bytes,
		sl_min_u64(account->limit_bytes,
			SL_MUTANT(MOVE_KEEPS_LIMIT, sl_ledger_shareable(ledger, to),
				UINT64_MAX)));
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_MOVES,
				   .moves = {.workload = id, .from = from, .to = to}});
	sl_node_note(step, reason, to, id, 0, bytes);
	sl_node_tell_view(step, workload, to, 1);
}

/* GPUs out of mask that are there. */
static uint32_t usable(const struct sl_node *node, uint32_t mask)
{
	uint32_t there = 0;

	sl_each_gpu (gpu, mask) {
		if (node->ledger.gpu[gpu].present &&
			!SL_MUTANT(MOVES_TO_LOST, node->gpu[gpu].lost, false))
			there |= 1u << gpu;
	}
	return there;
}

static void refuse_stay(
	struct sl_node_step *step, const struct sl_node_workload *workload)
{
	const struct sl_ledger_account *account = &workload->account;
	uint64_t most = 0;
	uint32_t on = (uint32_t)__builtin_ctz(account->gpu_mask);

	sl_each_gpu (gpu, account->touched) {
		const struct sl_ledger_cell *cell = &account->cell[gpu];
		uint64_t bytes = sl_ledger_live(cell) + cell->paid_bytes;

		if (bytes <= most)
			continue;
		most = bytes;
		on = gpu;
	}
	sl_node_refuse(step, workload->index.id, SL_REASON_MOVE_NOT_AWAY, on, most, 0);
}

bool sl_node_change_gpus(
	struct sl_node_step *step, struct sl_node_workload *workload, uint32_t mask)
{
	uint32_t own = workload->account.gpu_mask, from = own & ~mask, to = mask & ~own;
	uint32_t wanted = (uint32_t)__builtin_popcount(own);
	uint32_t there = (uint32_t)__builtin_popcount(usable(step->node, mask));

	if (!mask || mask == own)
		return true;
	if (wanted != there || mask != usable(step->node, mask)) {
		sl_node_refuse(step, workload->index.id, SL_REASON_TOO_FEW_GPUS, 0,
			wanted, there);
		return false;
	}
	if (SL_MUTANT(MOVES_WHAT_STAYS,
		    sl_node_presence(step->node, workload) != SL_PRESENCE_AWAY, false)) {
		refuse_stay(step, workload);
		return false;
	}
	for (; from; from &= from - 1, to &= to - 1)
		sl_node_rebind(step, workload, (uint32_t)__builtin_ctz(from),
			(uint32_t)__builtin_ctz(to), SL_REASON_MOVED);
	return true;
}
