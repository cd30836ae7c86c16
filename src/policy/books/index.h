/*
 * index - id to object, for workloads and clients
 *
 * A chained hash with links inside the objects. It takes arena memory only to double, so a steady
 * population costs nothing. The daemon chooses ids and never reuses them, so a multiplicative hash
 * is enough. O(1). Not thread-safe.
 */
#ifndef SL_POLICY_BOOKS_INDEX_H
#define SL_POLICY_BOOKS_INDEX_H

#include "base/arena.h"

struct sl_index_node {
	uint64_t id;
	struct sl_index_node *next;
};

struct sl_index {
	struct sl_arena *arena; /* not owned */
	struct sl_index_node **bucket;
	uint32_t bits, count;
};

/* Zeroes *index and takes a first table of 64 places. */
void sl_index_init(struct sl_index *index, struct sl_arena *arena);
/* node->id must be set and not be in the index. */
void sl_index_add(struct sl_index *index, struct sl_index_node *node);
/* NULL if unknown. */
struct sl_index_node *sl_index_find(const struct sl_index *index, uint64_t id);
/* node must be in the index. */
void sl_index_remove(struct sl_index *index, struct sl_index_node *node);
/* The node after `at`; NULL: the first one, or the end. In any order; the index must not change
 * meanwhile. */
struct sl_index_node *sl_index_next(
	const struct sl_index *index, const struct sl_index_node *at);

#endif
