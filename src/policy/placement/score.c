/*
 * score - see the header
 *
 * A board is one account of all nodes (now, or later) grouped by state, with a queue of the best
 * states per kind of task. The board of `later` is made when it is first asked for.
 */
#include "policy/placement/score.h"
#include "policy/placement/queue.h"
#include "policy/placement/rules.h"
#include "policy/placement/states.h"

#include <string.h>

/* How many of the short list get a close look. */
#define CLOSE_LOOKS 8
/* Prices are renewed after changes of one node in this many. */
#define PRICED_PART 16

static const struct sl_score_rule *const rules[SL_PLACE_POLICIES] = {
#define SL_PLACEMENT_POLICY(NAME, name) [SL_PLACE_##NAME] = &sl_score_##name,
#include "policy/placement/policies.def"
#undef SL_PLACEMENT_POLICY
};

struct board {
	struct sl_states states;
	struct sl_queues queues;
};

struct sl_placer {
	struct sl_arena *arena;
	enum sl_placement_policy policy;
	const struct sl_score_rule *rule;
	struct sl_score_context context;
	const struct sl_fit_node *nodes;
	const uint32_t *ranks;
	uint32_t most, count;    /* count: nodes that sl_placer_changed ever named */
	uint32_t unpriced;       /* changes of nodes since prices were set */
	struct board *boards[2]; /* now, later */
	/* The last place returned, until its node changes: what the node has left if it is
	 * taken. */
	struct {
		bool open;
		uint32_t node;
		struct sl_need need;
		int64_t cpu_milli, gpu_milli;
	} named;
};

static const struct sl_room *room_of(const struct sl_fit_node *node, bool later)
{
	return later ? &node->later : &node->now;
}

static struct board *board_of(struct sl_placer *placer, bool later)
{
	struct board *board = placer->boards[later];

	if (board)
		return board;
	board = sl_arena_take(placer->arena, sizeof(*board));
	sl_states_init(&board->states, placer->arena, placer->most, placer->rule->sorted);
	board->states.ranks = placer->ranks;
	sl_queues_init(&board->queues, placer->arena, &board->states, placer->rule->score,
		&placer->context);
	placer->boards[later] = board;
	for (uint32_t i = 0; i < placer->count; i++)
		sl_states_put(&board->states, i, &placer->nodes[i],
			room_of(&placer->nodes[i], later));
	return board;
}

struct sl_placer *sl_placer_new(struct sl_arena *arena, enum sl_placement_policy policy,
	const struct sl_fit_node *nodes, uint32_t most)
{
	struct sl_placer *placer = sl_arena_take(arena, sizeof(*placer));

	placer->arena = arena;
	placer->policy = policy;
	placer->rule = rules[policy];
	placer->nodes = nodes;
	placer->most = most;
	sl_typical_init(&placer->context.typical, arena);
	if (placer->rule->judge)
		sl_waste_init(&placer->context.waste, arena, &placer->context.typical);
	board_of(placer, false);
	return placer;
}

void sl_placer_ranks(struct sl_placer *placer, const uint32_t *ranks)
{
	placer->ranks = ranks;
	for (int later = 0; later < 2; later++)
		if (placer->boards[later])
			sl_states_rank_by(&placer->boards[later]->states, ranks);
}

void sl_placer_learn(struct sl_placer *placer, const struct sl_need *need, uint32_t times)
{
	sl_typical_learn(&placer->context.typical, need, times);
}

/* The node changed: was it because the returned place was taken? */
static void learn_placed(struct sl_placer *placer, uint32_t number)
{
	const struct sl_fit_node *node = &placer->nodes[number];

	if (!placer->named.open || placer->named.node != number)
		return;
	placer->named.open = false;
	if (node->now.cpu_milli == placer->named.cpu_milli &&
		node->now.gpu_milli == placer->named.gpu_milli)
		sl_waste_placed(&placer->context.waste, node, &placer->named.need);
}

void sl_placer_changed(struct sl_placer *placer, uint32_t node)
{
	if (node >= placer->count)
		placer->count = node + 1;
	placer->unpriced++;
	learn_placed(placer, node);
	for (int later = 0; later < 2; later++)
		if (placer->boards[later])
			sl_states_put(&placer->boards[later]->states, node,
				&placer->nodes[node],
				room_of(&placer->nodes[node], later));
}

/* The GPUs of the node that correspond to those of its state: by number, or of equal ones the
 * lowest. */
static uint32_t mask_on(const struct sl_fit_node *node, const struct sl_room *room,
	const struct sl_need *need, const struct sl_fit_node *state, uint16_t gpu)
{
	if (gpu == SL_SCORE_ANY_GPU)
		return sl_fit_gpus(node, room, need);
	for (uint16_t i = 0; i < node->gpus; i++)
		if (room->left[i] == state->now.left[gpu])
			return UINT32_C(1) << i;
	return 0;
}

static void refresh(struct sl_placer *placer)
{
	if (placer->rule->judge && placer->unpriced > placer->count / PRICED_PART) {
		placer->unpriced = 0;
		sl_typical_set_prices(
			&placer->context.typical, placer->nodes, placer->count);
	}
	if (!placer->rule->learns || !sl_typical_refresh(&placer->context.typical))
		return;
	for (int later = 0; later < 2; later++)
		if (placer->boards[later])
			sl_queues_forget(&placer->boards[later]->queues);
	sl_waste_refresh(&placer->context.waste);
}

struct candidate {
	uint32_t slot, rank;
	uint16_t gpu;
	double harm;
};

/* Inserts it into the list of the `most` best, best first. */
static void keep(struct candidate *list, uint32_t *count, uint32_t most,
	const struct candidate *candidate)
{
	uint32_t at = *count;

	while (at && (candidate->harm < list[at - 1].harm ||
			     (candidate->harm == list[at - 1].harm &&
				     candidate->rank < list[at - 1].rank)))
		at--;
	if (at == most)
		return;
	if (*count < most)
		(*count)++;
	memmove(&list[at + 1], &list[at], (*count - at - 1) * sizeof(*list));
	list[at] = *candidate;
}

/* The best `most` of those slots, best first. Returns how many. */
static uint32_t judge(struct sl_placer *placer, const struct sl_states *states,
	const struct sl_need *need, const uint32_t *slots, uint32_t count, bool close,
	struct candidate *list, uint32_t most)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct sl_state *state = &states->all[slots[i]];
		struct candidate candidate = {
			slots[i], sl_states_rank(states, state->first), 0, 0};

		candidate.harm = placer->rule->judge(
			&placer->context, &state->node, need, close, &candidate.gpu);
		keep(list, &kept, most, &candidate);
	}
	return kept;
}

/* The slot and GPU of the best state. False: it fits nowhere. */
static bool choose(struct sl_placer *placer, struct board *board,
	const struct sl_need *need, uint32_t *slot, uint16_t *gpu)
{
	const struct sl_score_rule *rule = placer->rule;
	const struct sl_states *states = &board->states;
	uint32_t slots[SL_QUEUE_BEST_MOST], count;
	struct candidate list[CLOSE_LOOKS], best;

	count = sl_queues_best(
		&board->queues, need, rule->judge ? rule->shortlist : 1, slots, NULL);
	if (!count)
		return false;
	if (!rule->judge) {
		*slot = slots[0];
		*gpu = rule->gpu(&placer->context, &states->all[*slot].node, need);
		return true;
	}
	count = judge(placer, states, need, slots, count, false, list, CLOSE_LOOKS);
	for (uint32_t i = 0; i < count; i++)
		slots[i] = list[i].slot;
	(void)judge(placer, states, need, slots, count, true, &best, 1);
	*slot = best.slot;
	*gpu = best.gpu;
	return true;
}

bool sl_placer_place(struct sl_placer *placer, const struct sl_need *need, bool later,
	struct sl_place *place)
{
	struct board *board = board_of(placer, later);
	const struct sl_fit_node *state, *node;
	uint32_t slot;
	uint16_t gpu;

	refresh(placer);
	if (!choose(placer, board, need, &slot, &gpu))
		return false;
	state = &board->states.all[slot].node;
	place->node = board->states.all[slot].first;
	node = &placer->nodes[place->node];
	place->milli = (uint16_t)sl_fit_milli(node, need);
	place->gpu_mask =
		need->gpus ? mask_on(node, room_of(node, later), need, state, gpu) : 0;
	placer->named.open = placer->rule->judge && !later;
	placer->named.node = place->node;
	placer->named.need = *need;
	placer->named.cpu_milli = node->now.cpu_milli - need->cpu_milli;
	placer->named.gpu_milli = node->now.gpu_milli - need->gpus * place->milli;
	return true;
}

const char *sl_placement_policy_name(enum sl_placement_policy policy)
{
	static const char *const names[SL_PLACE_POLICIES] = {
#define SL_PLACEMENT_POLICY(NAME, name) #name,
#include "policy/placement/policies.def"
#undef SL_PLACEMENT_POLICY
	};

	return policy < SL_PLACE_POLICIES ? names[policy] : "?";
}

bool sl_placement_policy_find(const char *name, enum sl_placement_policy *policy)
{
	for (int i = 0; i < SL_PLACE_POLICIES; i++) {
		enum sl_placement_policy one = (enum sl_placement_policy)i;

		if (strcmp(name, sl_placement_policy_name(one)) != 0)
			continue;
		*policy = one;
		return true;
	}
	return false;
}
