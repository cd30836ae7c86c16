/*
 * block - the head of a region, a slab or a tract, as found by address
 */
#ifndef SL_RUNTIME_MEMORY_BLOCK_H
#define SL_RUNTIME_MEMORY_BLOCK_H

#include "runtime/contexts/space.h"
#include "runtime/memory/backing.h"

struct sl_block {
	enum { SL_BLOCK_REGION, SL_BLOCK_SLAB, SL_BLOCK_TRACT } kind;
	struct sl_space *space;
	struct sl_backing backing;
	/* While a thread ends the block or puts it to new use, the block is in space->in_hands and
	 * in no other list. Chunks of it that are on the host are still restored with the rest,
	 * however long the thread takes. */
	struct sl_link in_hands;
};

/* Put a block into in_hands, and out of it. Under the books' lock; a repeated call is harmless. A
 * block that may be evicted is let go inside the control lock, or when it is empty. */
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
