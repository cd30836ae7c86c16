/*
 * queue - the states that suit one kind of task, best first
 *
 * A tournament over the slots of sl_states: the winner is at the root, and a changed state replays
 * its matches. A queue that is asked again only looks at what has changed since; the least recently
 * used queue makes room for a new kind of task.
 */
#ifndef SL_POLICY_PLACEMENT_QUEUE_H
#define SL_POLICY_PLACEMENT_QUEUE_H

#include "policy/placement/states.h"

/* The score of a state that does not fit. */
#define SL_SCORE_NEVER INT32_MIN

/* Score of a task of this kind on a node in this state: higher is better; only asked where it
 * fits. */
typedef int32_t (*sl_score_fn)(
	void *context, const struct sl_fit_node *state, const struct sl_need *need);

/* The most states that can be asked for at once. */
#define SL_QUEUE_BEST_MOST 128

struct sl_queue;

struct sl_queues {
	struct sl_arena *arena;
	struct sl_states *states;
	sl_score_fn score;
	void *context;
	struct sl_queue **all;
	uint32_t count, most, leaves;
	uint32_t *buckets, bucket_mask;
	uint64_t asked;
};

void sl_queues_init(struct sl_queues *queues, struct sl_arena *arena,
	struct sl_states *states, sl_score_fn score, void *context);
/* All scores may have changed. */
void sl_queues_forget(struct sl_queues *queues);

/*
 * The best states for need, best first; of equal ones the lowest rank. Returns how many, at most
 * `most`; 0: it fits nowhere. scores: one for each; may be NULL.
 */
uint32_t sl_queues_best(struct sl_queues *queues, const struct sl_need *need,
	uint32_t most, uint32_t *slots, int32_t *scores);

#endif
