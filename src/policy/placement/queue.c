/*
 * queue - see the header
 *
 * The nodes of a tournament are numbered as in a heap: leaf i is node leaves + i, the parent of n
 * is n / 2. Ranks are compared as they are now, even those of slots whose change was not replayed
 * yet. That is safe: every match of a changed slot is played again, and its last replay sees all
 * current scores.
 */
#include "policy/placement/queue.h"

#include <string.h>

/* Memory for the queues of one placer, within bounds. */
#define BYTES_MOST   (24u * 1024 * 1024)
#define QUEUES_MOST  1024
#define QUEUES_LEAST 16

struct sl_queue {
	struct sl_need need;
	uint32_t hash, next;
	uint64_t asked; /* when last */
	uint64_t seen;  /* of the log */
	bool known;     /* scores are of this kind of task */
	int32_t *score; /* by slot */
	uint32_t *made; /* by slot: the state that the score is of */
	uint32_t *winner;
};

void sl_queues_init(struct sl_queues *queues, struct sl_arena *arena,
	struct sl_states *states, sl_score_fn score, void *context)
{
	uint32_t leaves = 2, most;

	while (leaves < states->most)
		leaves *= 2;
	most = BYTES_MOST / (leaves * 16);
	if (most > QUEUES_MOST)
		most = QUEUES_MOST;
	if (most < QUEUES_LEAST)
		most = QUEUES_LEAST;
	memset(queues, 0, sizeof(*queues));
	queues->arena = arena;
	queues->states = states;
	queues->score = score;
	queues->context = context;
	queues->most = most;
	queues->leaves = leaves;
	queues->bucket_mask = QUEUES_MOST - 1;
	queues->all = sl_arena_take(arena, most * sizeof(*queues->all));
	queues->buckets = sl_arena_take(arena, QUEUES_MOST * sizeof(*queues->buckets));
	memset(queues->buckets, 0xff, QUEUES_MOST * sizeof(*queues->buckets));
}

void sl_queues_forget(struct sl_queues *queues)
{
	for (uint32_t i = 0; i < queues->count; i++)
		queues->all[i]->known = false;
}

/* --- Which queue. --- */

static uint32_t hash_of(const struct sl_need *need)
{
	uint64_t hash = need->cpu_milli;

	hash = hash * UINT64_C(0x9e3779b97f4a7c15) + need->memory_mib;
	hash = hash * UINT64_C(0x9e3779b97f4a7c15) + ((uint64_t)need->gpu_mib << 32 |
							     (uint32_t)need->gpus << 16 |
							     need->gpu_milli);
	hash = hash * UINT64_C(0x9e3779b97f4a7c15) + need->models;
	hash = hash * UINT64_C(0x9e3779b97f4a7c15) + need->pools;
	return (uint32_t)(hash >> 32 ^ hash >> 12);
}

static struct sl_queue *queue_new(struct sl_queues *queues)
{
	struct sl_queue *queue = sl_arena_take(queues->arena, sizeof(*queue));
	uint32_t leaves = queues->leaves;

	queue->score = sl_arena_take(queues->arena, leaves * sizeof(*queue->score));
	queue->made = sl_arena_take(queues->arena, leaves * sizeof(*queue->made));
	queue->winner = sl_arena_take(queues->arena, 2 * leaves * sizeof(*queue->winner));
	return queue;
}

/* Removes the least recently used queue from its bucket and returns its number. */
static uint32_t take_oldest(struct sl_queues *queues)
{
	uint32_t oldest = 0, *link;

	for (uint32_t i = 1; i < queues->count; i++)
		if (queues->all[i]->asked < queues->all[oldest]->asked)
			oldest = i;
	link = &queues->buckets[queues->all[oldest]->hash & queues->bucket_mask];
	while (*link != oldest)
		link = &queues->all[*link]->next;
	*link = queues->all[oldest]->next;
	return oldest;
}

static struct sl_queue *queue_of(struct sl_queues *queues, const struct sl_need *need)
{
	uint32_t hash = hash_of(need), i;
	uint32_t *bucket = &queues->buckets[hash & queues->bucket_mask];
	struct sl_queue *queue;

	for (i = *bucket; i != UINT32_MAX; i = queues->all[i]->next)
		if (sl_need_is_same(&queues->all[i]->need, need))
			return queues->all[i];
	if (queues->count < queues->most) {
		i = queues->count++;
		queues->all[i] = queue_new(queues);
	} else {
		i = take_oldest(queues);
	}
	queue = queues->all[i];
	queue->need = *need;
	queue->hash = hash;
	queue->known = false;
	queue->next = *bucket;
	*bucket = i;
	return queue;
}

/* --- The tournament. --- */

/* A slot whose state is gone, and whose score was not updated yet, has none. */
static uint32_t rank_of(const struct sl_states *states, uint32_t slot)
{
	uint32_t first = states->all[slot].first;

	return first == SL_STATE_NONE ? UINT32_MAX : sl_states_rank(states, first);
}

static uint32_t better(const struct sl_queues *queues, const struct sl_queue *queue,
	uint32_t a, uint32_t b)
{
	if (queue->score[a] != queue->score[b])
		return queue->score[a] > queue->score[b] ? a : b;
	if (queue->score[a] == SL_SCORE_NEVER)
		return a;
	return rank_of(queues->states, a) < rank_of(queues->states, b) ? a : b;
}

static void score_slot(struct sl_queues *queues, struct sl_queue *queue, uint32_t slot)
{
	const struct sl_state *state = &queues->states->all[slot];

	if (slot >= queues->states->used || state->first == SL_STATE_NONE) {
		queue->score[slot] = SL_SCORE_NEVER;
		queue->made[slot] = 0;
		return;
	}
	if (queue->made[slot] == state->made)
		return;
	queue->made[slot] = state->made;
	queue->score[slot] =
		sl_fit_in(&state->node, &state->node.now, &queue->need)
			? queues->score(queues->context, &state->node, &queue->need)
			: SL_SCORE_NEVER;
}

static void play_all(struct sl_queues *queues, struct sl_queue *queue)
{
	uint32_t leaves = queues->leaves;

	if (!queue->known)
		memset(queue->made, 0, leaves * sizeof(*queue->made));
	for (uint32_t i = 0; i < leaves; i++) {
		score_slot(queues, queue, i);
		queue->winner[leaves + i] = i;
	}
	for (uint32_t n = leaves - 1; n; n--)
		queue->winner[n] = better(
			queues, queue, queue->winner[2 * n], queue->winner[2 * n + 1]);
	queue->known = true;
}

static void play_changed(struct sl_queues *queues, struct sl_queue *queue)
{
	const struct sl_states *states = queues->states;

	for (uint64_t at = queue->seen; at != states->logged; at++) {
		uint32_t slot = states->log[at & states->log_mask];

		score_slot(queues, queue, slot);
		for (uint32_t n = (queues->leaves + slot) / 2; n; n /= 2)
			queue->winner[n] = better(queues, queue, queue->winner[2 * n],
				queue->winner[2 * n + 1]);
	}
}

/* --- The best. --- */

/* Nodes of the tournament whose winners are not taken yet; a heap, the best on top. */
struct open {
	const struct sl_queues *queues;
	const struct sl_queue *queue;
	uint32_t count, node[SL_QUEUE_BEST_MOST * 32];
};

static bool comes_first(const struct open *open, uint32_t a, uint32_t b)
{
	uint32_t x = open->queue->winner[open->node[a]];
	uint32_t y = open->queue->winner[open->node[b]];

	return x != y && better(open->queues, open->queue, x, y) == x;
}

static void swap(struct open *open, uint32_t a, uint32_t b)
{
	uint32_t kept = open->node[a];

	open->node[a] = open->node[b];
	open->node[b] = kept;
}

static void push(struct open *open, uint32_t node)
{
	uint32_t at = open->count++;

	if (open->queue->score[open->queue->winner[node]] == SL_SCORE_NEVER) {
		open->count--;
		return;
	}
	open->node[at] = node;
	for (; at && comes_first(open, at, (at - 1) / 2); at = (at - 1) / 2)
		swap(open, at, (at - 1) / 2);
}

static uint32_t pop(struct open *open)
{
	uint32_t top = open->node[0], at = 0;

	open->node[0] = open->node[--open->count];
	for (;;) {
		uint32_t best = at;

		for (uint32_t child = 2 * at + 1;
			child < open->count && child <= 2 * at + 2; child++)
			if (comes_first(open, child, best))
				best = child;
		if (best == at)
			return top;
		swap(open, at, best);
		at = best;
	}
}

static uint32_t take_best(const struct sl_queues *queues, const struct sl_queue *queue,
	uint32_t most, uint32_t *slots, int32_t *scores)
{
	struct open open;
	uint32_t count = 0;

	open.queues = queues;
	open.queue = queue;
	open.count = 0;
	push(&open, 1);
	while (open.count && count < most) {
		uint32_t node = pop(&open), slot = queue->winner[node];

		if (scores)
			scores[count] = queue->score[slot];
		slots[count++] = slot;
		/* Follows the winner's way down: the losers against it become candidates. */
		while (node < queues->leaves) {
			uint32_t won =
				queue->winner[2 * node] == slot ? 2 * node : 2 * node + 1;

			push(&open, won ^ 1);
			node = won;
		}
	}
	return count;
}

uint32_t sl_queues_best(struct sl_queues *queues, const struct sl_need *need,
	uint32_t most, uint32_t *slots, int32_t *scores)
{
	struct sl_queue *queue = queue_of(queues, need);

	queue->asked = ++queues->asked;
	if (!queue->known || !sl_states_remembers(queues->states, queue->seen))
		play_all(queues, queue);
	else
		play_changed(queues, queue);
	queue->seen = queues->states->logged;
	if (most > SL_QUEUE_BEST_MOST)
		most = SL_QUEUE_BEST_MOST;
	return take_best(queues, queue, most, slots, scores);
}
