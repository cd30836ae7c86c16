/*
 * elsewhere - a claim may get its seat on another GPU
 *
 * A late-binding workload may use each allowed GPU until it has memory on one. If what it asks for
 * is not free on its present GPU, the seat pass tries the others in the order of placement. It
 * chooses one where the memory is free. If the claim has no seat and no turn to come, a GPU where
 * other memory must leave first will do, too. The workload's request moves along. All this is tried
 * on a copy; only the chosen GPU changes the facts.
 */
#include "policy/node/plan.h"

static bool has_anything(const struct sl_node_workload *workload)
{
	sl_each_gpu (gpu, workload->account.touched) {
		const struct sl_ledger_cell *cell = &workload->account.cell[gpu];

		if (sl_ledger_all(cell) || sl_ledger_measured(cell) || cell->dying_bytes)
			return true;
	}
	sl_node_each_client_of (client, workload) {
		if (sl_node_has_open_grant(client))
			return true;
	}
	return false;
}

/* Moves all that the copy has of it: its request and what it asks for. */
static void move_to(
	struct sl_room *room, struct sl_room_workload *of, uint32_t from, uint32_t to)
{
	struct sl_room_share all = of->on[from];

	sl_room_take(room, of, from, &all, true);
	sl_room_take(room, of, to, &all, false);
}

static bool is_free(
	const struct sl_node *node, const struct sl_node_claim *claim, uint32_t gpu)
{
	return claim->demand->bytes <= sl_ledger_free_bytes(&node->ledger, gpu);
}

/* Whether it fits beside what is kept there. */
static bool fits(const struct sl_node_plan *plan, const struct sl_room_claim *claim,
	uint32_t from, uint32_t to, bool may_move)
{
	struct sl_room room = plan->now;
	struct sl_room_workload workload = *claim->workload;
	struct sl_room_claim of = *claim;
	struct sl_room_verdict verdict;

	move_to(&room, &workload, from, to);
	of.workload = &workload;
	of.need[to] = of.need[from];
	of.need[from] = (struct sl_room_need){0};
	(void)sl_node_fix_kept(&room.gpu[to], plan->kept_bytes[to]);
	verdict = sl_room_for(&room, &of);
	return verdict.code == SL_ROOM_OK && (may_move || !verdict.moves);
}

/* Changes the facts, and what the plan made of them so far. */
static void bind_to(struct sl_node_step *step, struct sl_node_workload *workload,
	uint32_t from, uint32_t to)
{
	struct sl_node *node = step->node;
	struct sl_node_plan *plan = node->plan;
	const struct sl_ledger_account *account = &workload->account;

	workload->others ^= 1u << from | 1u << to;
	sl_node_rebind(node, workload, from, to);
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_ADMIT,
				   .admit = {.workload = workload->index.id,
					   .gpu_mask = account->gpu_mask,
					   .request_bytes = account->request_bytes,
					   .limit_bytes = account->limit_bytes}});
	move_to(&plan->now, &workload->sums->now, from, to);
	move_to(&plan->lasts, &workload->sums->lasts, from, to);
	move_to(&plan->lasts_bursts, &workload->sums->lasts_bursts, from, to);
	workload->sums->gpus = 1u << to;
	for (uint32_t room = 0; room < 3; room++)
		plan->above[room].known = false;
	for (uint32_t i = 0; i < plan->claims_count; i++) {
		struct sl_node_claim *claim = &plan->claims[i];

		if (claim->client->workload != workload)
			continue;
		claim->gpus = 1u << to;
		claim->has_endless = false;
	}
}

bool sl_node_seat_elsewhere(struct sl_node_step *step, struct sl_node_claim *claim)
{
	struct sl_node_plan *plan = step->node->plan;
	struct sl_node_workload *workload = claim->client->workload;
	/* A claim whose turn comes stays. */
	uint32_t passes = claim->verdict == SL_NODE_LACKS ? 2 : 1;
	struct sl_room_claim of;
	uint32_t from;

	if (!workload->others || !claim->demand)
		return false;
	from = claim->demand->gpu;
	if ((claim->verdict == SL_NODE_SEATED && is_free(step->node, claim, from)) ||
		workload->sums->now.on[from].seats_bytes ||
		SL_MUTANT(BOUND_AGAIN, has_anything(workload), false))
		return false;
	sl_node_room_claim(step->node, claim, false, &workload->sums->now, &of);
	for (uint32_t pass = 0; pass < passes; pass++) {
		uint32_t left = workload->others, chosen;

		while ((chosen = sl_node_place(step->node, workload, left))) {
			uint32_t to = (uint32_t)__builtin_ctz(chosen);

			if ((pass || is_free(step->node, claim, to)) &&
				fits(plan, &of, from, to, pass)) {
				bind_to(step, workload, from, to);
				return true;
			}
			left &= ~chosen;
		}
	}
	return false;
}
