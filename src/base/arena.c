/*
 * arena - blocks on a list, the newest first
 *
 * A request larger than a block gets a block of its own behind the current one, so that the
 * current block's rest is not lost.
 */
#include "base/arena.h"

#include <stdlib.h>

/* 64 KiB: a thousand clients with their GPUs fit in a handful of blocks. */
#define BLOCK_BYTES (64u * 1024)

struct block {
	struct block *next;
	size_t used, size;
	_Alignas(16) unsigned char data[];
};

struct sl_arena {
	struct block *blocks;
	size_t used_bytes;
};

struct sl_arena *sl_arena_new(void)
{
	struct sl_arena *arena = calloc(1, sizeof(*arena));

	if (!arena)
		abort();
	return arena;
}

struct sl_arena *sl_arena_free(struct sl_arena *arena)
{
	if (!arena)
		return NULL;
	while (arena->blocks) {
		struct block *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
	free(arena);
	return NULL;
}

static struct block *block_new(size_t size)
{
	struct block *block;

	if (size > SIZE_MAX - sizeof(*block))
		abort();
	block = calloc(1, sizeof(*block) + size);
	if (!block)
		abort();
	block->size = size;
	return block;
}

void *sl_arena_take(struct sl_arena *arena, size_t size)
{
	struct block *block = arena->blocks;
	void *data;

	if (size > SIZE_MAX - 15)
		abort();
	size = sl_round_up(size ? size : 1, 16);
	if (!block || block->size - block->used < size) {
		block = block_new(size > BLOCK_BYTES ? size : BLOCK_BYTES);
		if (size > BLOCK_BYTES && arena->blocks) {
			block->next = arena->blocks->next;
			arena->blocks->next = block;
		} else {
			block->next = arena->blocks;
			arena->blocks = block;
		}
	}
	data = block->data + block->used;
	block->used += size;
	arena->used_bytes += size;
	return data;
}

size_t sl_arena_used_bytes(const struct sl_arena *arena)
{
	return arena->used_bytes;
}
