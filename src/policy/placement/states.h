/*
 * states - nodes grouped by what is left on them
 *
 * A placer judges states, not nodes: most nodes of a cluster look alike, and a verdict on one holds
 * for all. Each group knows its node of the lowest rank. Every change of a group is logged, so that
 * a keeper of scores only rereads what changed.
 */
#ifndef SL_POLICY_PLACEMENT_STATES_H
#define SL_POLICY_PLACEMENT_STATES_H

#include "base/arena.h"
#include "policy/placement/fit.h"

#define SL_STATE_NONE UINT32_MAX

struct sl_state {
	struct sl_fit_node node; /* now: the room; later: zero */
	uint32_t hash;
	uint32_t next; /* in its bucket, or among the free ones */
	/* Its node of the lowest rank; SL_STATE_NONE: the state is unused */
	uint32_t first;
	uint32_t made; /* differs from that of every earlier state in this slot */
	bool reranked;
};

/* A node in the heap of its group: first child, next sibling, and the previous sibling or the
 * parent. */
struct sl_state_link {
	uint32_t child, next, before;
};

struct sl_states {
	struct sl_state *all;
	uint32_t used; /* slots ever used: [0..used) may hold states */
	uint32_t free, most;
	uint32_t *buckets, bucket_mask;
	uint32_t *of; /* by node: its slot, or SL_STATE_NONE */
	struct sl_state_link *links;
	const uint32_t *ranks; /* by node; NULL: its number */
	bool sorted;
	uint32_t *log, log_mask;
	uint64_t logged;
};

/* For up to `most` nodes. sorted: the order of a node's GPUs does not matter, and states have them
 * sorted by what is left, most first. */
void sl_states_init(
	struct sl_states *states, struct sl_arena *arena, uint32_t most, bool sorted);

/* The node has this room now. A closed one belongs to no group. */
void sl_states_put(struct sl_states *states, uint32_t number,
	const struct sl_fit_node *node, const struct sl_room *room);

/* Sets the ranks that break ties. O(nodes). */
void sl_states_rank_by(struct sl_states *states, const uint32_t *ranks);

/* A state as it is kept here: node with that room. */
void sl_state_make(struct sl_fit_node *state, const struct sl_fit_node *node,
	const struct sl_room *room, bool sorted);
/* Hashes all that makes a state; room in `now`. */
uint64_t sl_state_hash(const struct sl_fit_node *state);
bool sl_state_equal(const struct sl_fit_node *a, const struct sl_fit_node *b);

static inline uint32_t sl_states_rank(const struct sl_states *states, uint32_t node)
{
	return states->ranks ? states->ranks[node] : node;
}

/* The slots that changed are log[from & log_mask] and on, up to logged. False: the log does not
 * reach back to `from`; look at everything. */
static inline bool sl_states_remembers(const struct sl_states *states, uint64_t from)
{
	return states->logged - from <= states->log_mask;
}

#endif
