/*
 * arena - blocks on a list, the newest first
 *
 * A request larger than a block gets a block of its own behind the current one, so that the
 * current block's rest is not lost.
 */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

/* 64 KiB: a thousand clients with their GPUs fit in a handful of blocks. */
#define BLOCK_BYTES (64u * 1024)

struct block {
	struct block *next;
	size_t used, size;
	size_t saved; /* of used, when the image was taken that is out; 0: the block is younger */
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

/* The bytes of all blocks, one after the other, in the order of the list. */
struct sl_arena_image {
	size_t used_bytes;
	unsigned char data[];
};

struct sl_arena_image *sl_arena_save(struct sl_arena *arena)
{
	struct sl_arena_image *image = malloc(sizeof(*image) + arena->used_bytes);
	size_t at = 0;

	if (!image)
		abort();
	image->used_bytes = arena->used_bytes;
	for (struct block *block = arena->blocks; block; block = block->next) {
		memcpy(image->data + at, block->data, block->used);
		at += block->saved = block->used;
	}
	return image;
}

/* Blocks of the image stand in the list as they did; younger ones stand before and between them. */
void sl_arena_put_back(struct sl_arena *arena, const struct sl_arena_image *image)
{
	struct block **link = &arena->blocks, *block;
	size_t at = 0;

	while ((block = *link)) {
		if (!block->saved) {
			*link = block->next;
			free(block);
			continue;
		}
		memcpy(block->data, image->data + at, block->saved);
		memset(block->data + block->saved, 0, block->used - block->saved);
		at += block->used = block->saved;
		link = &block->next;
	}
	arena->used_bytes = image->used_bytes;
}

void sl_arena_restore(struct sl_arena *arena, struct sl_arena_image *image)
{
	sl_arena_put_back(arena, image);
	for (struct block *block = arena->blocks; block; block = block->next)
		block->saved = 0;
	free(image);
}

size_t sl_arena_used_bytes(const struct sl_arena *arena)
{
	return arena->used_bytes;
}
