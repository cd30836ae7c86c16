/*
 * block - the head of a region or a slab: what lies at an address
 */
#ifndef SL_RUNTIME_MEMORY_BLOCK_H
#define SL_RUNTIME_MEMORY_BLOCK_H

#include "runtime/contexts/space.h"
#include "runtime/memory/backing.h"

struct sl_block {
	enum { SL_BLOCK_REGION, SL_BLOCK_SLAB } kind;
	struct sl_space *space;
	struct sl_backing backing;
	/* In space->in_hands while a thread has it in its hands, to end it or to use it anew, and
	 * it is in none of the other lists: what of it is on the host comes back with the rest,
	 * however long that takes. */
	struct sl_link in_hands;
};

/* Both under the books' lock; twice is harmless. What may be evicted is let go of inside the
 * control lock, or when nothing is left of it. */
static inline void sl_block_take(struct sl_block *block)
{
	sl_list_unlink(&block->in_hands);
	sl_list_push_tail(&block->space->in_hands, &block->in_hands);
}

static inline void sl_block_let_go(struct sl_block *block)
{
	sl_list_unlink(&block->in_hands);
}

#endif
