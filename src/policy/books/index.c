/*
 * index - see the header
 *
 * The table doubles when it has as many objects as buckets. The arena cannot free the old table;
 * all old tables together are smaller than the present one.
 */
#include "policy/books/index.h"

#define FIRST_BITS 6

static uint32_t place(const struct sl_index *index, uint64_t id)
{
	/* Fibonacci hashing: 2^64 over the golden ratio, then the top bits. */
	return (uint32_t)((id * 0x9e3779b97f4a7c15ull) >> (64 - index->bits));
}

static void link_in(struct sl_index *index, struct sl_index_node *node)
{
	uint32_t at = place(index, node->id);

	node->next = index->bucket[at];
	index->bucket[at] = node;
}

static void take_table(struct sl_index *index, uint32_t bits)
{
	index->bits = bits;
	index->bucket =
		sl_arena_take(index->arena, sizeof(index->bucket[0]) << index->bits);
}

static void grow(struct sl_index *index)
{
	struct sl_index_node **old = index->bucket;
	size_t old_places = (size_t)1 << index->bits;

	take_table(index, index->bits + 1);
	for (size_t i = 0; i < old_places; i++) {
		for (struct sl_index_node *node = old[i], *next; node; node = next) {
			next = node->next;
			link_in(index, node);
		}
	}
}

void sl_index_init(struct sl_index *index, struct sl_arena *arena)
{
	*index = (struct sl_index){.arena = arena};
	take_table(index, FIRST_BITS);
}

void sl_index_add(struct sl_index *index, struct sl_index_node *node)
{
	if (index->count >= (1u << index->bits) && index->bits < 30)
		grow(index);
	link_in(index, node);
	index->count++;
}

struct sl_index_node *sl_index_find(const struct sl_index *index, uint64_t id)
{
	struct sl_index_node *node = index->bucket[place(index, id)];

	while (node && node->id != id)
		node = node->next;
	return node;
}

void sl_index_remove(struct sl_index *index, struct sl_index_node *node)
{
	struct sl_index_node **at = &index->bucket[place(index, node->id)];

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	node->next = NULL;
	index->count--;
}

struct sl_index_node *sl_index_next(
	const struct sl_index *index, const struct sl_index_node *at)
{
	uint32_t i = 0;

	if (at) {
		if (at->next)
			return at->next;
		i = place(index, at->id) + 1;
	}
	for (; i < (1u << index->bits); i++) {
		if (index->bucket[i])
			return index->bucket[i];
	}
	return NULL;
}
