/*
 * states - see the header
 *
 * A hash table of slots. The nodes of a slot form a pairing heap by rank, with links in one array
 * by node: entering is O(1), leaving O(log nodes) amortised, the lowest rank is the root.
 */
#include "policy/placement/states.h"

#include <string.h>

void sl_states_init(
	struct sl_states *states, struct sl_arena *arena, uint32_t most, bool sorted)
{
	uint32_t buckets = 16;

	while (buckets < most)
		buckets *= 2;
	memset(states, 0, sizeof(*states));
	states->most = most;
	states->free = SL_STATE_NONE;
	states->sorted = sorted;
	states->all = sl_arena_take(arena, most * sizeof(*states->all));
	states->of = sl_arena_take(arena, most * sizeof(*states->of));
	states->links = sl_arena_take(arena, most * sizeof(*states->links));
	states->buckets = sl_arena_take(arena, buckets * sizeof(*states->buckets));
	states->log = sl_arena_take(arena, buckets * sizeof(*states->log));
	states->bucket_mask = buckets - 1;
	states->log_mask = buckets - 1;
	memset(states->of, 0xff, most * sizeof(*states->of));
	memset(states->buckets, 0xff, buckets * sizeof(*states->buckets));
}

static void sort(int16_t *left, uint16_t count)
{
	for (uint16_t i = 1; i < count; i++) {
		int16_t value = left[i];
		uint16_t at = i;

		for (; at && left[at - 1] < value; at--)
			left[at] = left[at - 1];
		left[at] = value;
	}
}

void sl_state_make(struct sl_fit_node *state, const struct sl_fit_node *node,
	const struct sl_room *room, bool sorted)
{
	struct sl_room now = *room;

	*state = *node;
	state->now = now;
	memset(&state->later, 0, sizeof(state->later));
	/* Where promises overlap, or a shut GPU has tasks, nothing is left. */
	for (uint16_t i = 0; i < state->gpus; i++)
		if (now.left[i] < 0)
			state->now.left[i] = 0;
	if (sorted)
		sort(state->now.left, state->gpus);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

uint64_t sl_state_hash(const struct sl_fit_node *state)
{
	uint64_t hash = mix(state->cpu_milli, state->memory_mib);

	hash = mix(hash, (uint64_t)state->gpu_mib << 32 | (uint32_t)state->gpus << 16 |
				 (uint32_t)state->model << 8 | state->pool);
	hash = mix(hash, (uint64_t)state->now.cpu_milli);
	hash = mix(hash, (uint64_t)state->now.memory_mib);
	for (uint16_t i = 0; i < state->gpus; i += 4) {
		uint64_t four;

		memcpy(&four, &state->now.left[i], sizeof(four));
		hash = mix(hash, four);
	}
	return hash;
}

/* The sums of a room follow from the rest. */
bool sl_state_equal(const struct sl_fit_node *a, const struct sl_fit_node *b)
{
	return a->cpu_milli == b->cpu_milli && a->memory_mib == b->memory_mib &&
	       a->gpu_mib == b->gpu_mib && a->gpus == b->gpus && a->model == b->model &&
	       a->pool == b->pool && a->now.cpu_milli == b->now.cpu_milli &&
	       a->now.memory_mib == b->now.memory_mib &&
	       !memcmp(a->now.left, b->now.left, a->gpus * sizeof(a->now.left[0]));
}

/* --- The heap of a group. --- */

static const struct sl_state_link alone = {SL_STATE_NONE, SL_STATE_NONE, SL_STATE_NONE};

/* Joins two heaps; either may be empty. Returns the root. */
static uint32_t join(struct sl_states *states, uint32_t a, uint32_t b)
{
	struct sl_state_link *links = states->links;

	if (a == SL_STATE_NONE)
		return b;
	if (b == SL_STATE_NONE)
		return a;
	if (sl_states_rank(states, b) < sl_states_rank(states, a)) {
		uint32_t other = a;

		a = b;
		b = other;
	}
	links[b].before = a;
	links[b].next = links[a].child;
	if (links[a].child != SL_STATE_NONE)
		links[links[a].child].before = b;
	links[a].child = b;
	return a;
}

/* Joins a list of siblings into one heap: in pairs from the left, then the pairs from the right. */
static uint32_t join_all(struct sl_states *states, uint32_t list)
{
	struct sl_state_link *links = states->links;
	uint32_t pairs = SL_STATE_NONE, root = SL_STATE_NONE;

	while (list != SL_STATE_NONE) {
		uint32_t a = list, b = links[a].next, pair;

		list = b == SL_STATE_NONE ? b : links[b].next;
		pair = join(states, a, b);
		links[pair].next = pairs;
		pairs = pair;
	}
	while (pairs != SL_STATE_NONE) {
		uint32_t next = links[pairs].next;

		root = join(states, root, pairs);
		pairs = next;
	}
	if (root != SL_STATE_NONE) {
		links[root].next = SL_STATE_NONE;
		links[root].before = SL_STATE_NONE;
	}
	return root;
}

static uint32_t heap_remove(struct sl_states *states, uint32_t root, uint32_t node)
{
	struct sl_state_link *links = states->links, *link = &links[node];

	if (node == root)
		return join_all(states, link->child);
	if (links[link->before].child == node)
		links[link->before].child = link->next;
	else
		links[link->before].next = link->next;
	if (link->next != SL_STATE_NONE)
		links[link->next].before = link->before;
	return join(states, root, join_all(states, link->child));
}

/* --- Groups. --- */

static void note(struct sl_states *states, uint32_t slot)
{
	states->log[states->logged++ & states->log_mask] = slot;
}

static void leave(struct sl_states *states, uint32_t number)
{
	uint32_t slot = states->of[number], *link;
	struct sl_state *state;

	if (slot == SL_STATE_NONE)
		return;
	states->of[number] = SL_STATE_NONE;
	state = &states->all[slot];
	state->first = heap_remove(states, state->first, number);
	note(states, slot);
	if (state->first != SL_STATE_NONE)
		return;
	link = &states->buckets[state->hash & states->bucket_mask];
	while (*link != slot)
		link = &states->all[*link].next;
	*link = state->next;
	state->next = states->free;
	states->free = slot;
}

static uint32_t find_or_make(struct sl_states *states, const struct sl_fit_node *node)
{
	uint32_t hash = (uint32_t)sl_state_hash(node);
	uint32_t *bucket = &states->buckets[hash & states->bucket_mask], slot;
	struct sl_state *state;

	for (slot = *bucket; slot != SL_STATE_NONE; slot = states->all[slot].next)
		if (states->all[slot].hash == hash &&
			sl_state_equal(&states->all[slot].node, node))
			return slot;
	slot = states->free;
	if (slot == SL_STATE_NONE)
		slot = states->used++;
	else
		states->free = states->all[slot].next;
	state = &states->all[slot];
	state->node = *node;
	state->hash = hash;
	state->first = SL_STATE_NONE;
	state->made++;
	state->next = *bucket;
	*bucket = slot;
	return slot;
}

void sl_states_put(struct sl_states *states, uint32_t number,
	const struct sl_fit_node *node, const struct sl_room *room)
{
	struct sl_fit_node made;
	struct sl_state *state;
	uint32_t slot;

	leave(states, number);
	if (node->closed)
		return;
	sl_state_make(&made, node, room, states->sorted);
	slot = find_or_make(states, &made);
	state = &states->all[slot];
	states->links[number] = alone;
	states->of[number] = slot;
	state->first = join(states, state->first, number);
	note(states, slot);
}

void sl_states_rank_by(struct sl_states *states, const uint32_t *ranks)
{
	states->ranks = ranks;
	for (uint32_t i = 0; i < states->most; i++) {
		uint32_t slot = states->of[i];
		struct sl_state *state;

		if (slot == SL_STATE_NONE)
			continue;
		state = &states->all[slot];
		if (!state->reranked)
			state->first = SL_STATE_NONE;
		state->reranked = true;
		states->links[i] = alone;
		state->first = join(states, state->first, i);
	}
	for (uint32_t i = 0; i < states->used; i++)
		states->all[i].reranked = false;
	/* Makes the log too short for every reader. */
	states->logged += 2 * (uint64_t)states->log_mask;
}
