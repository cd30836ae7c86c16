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

/* A copy of all blocks, in the order of the list: the used size of each, and those bytes one after
 * the other. */
struct sl_arena_image {
	size_t used_bytes;
	struct {
		const struct block *block;
		size_t used;
	} * of;
	unsigned char *data;
};

struct sl_arena_image *sl_arena_save(struct sl_arena *arena)
{
	struct sl_arena_image *image;
	size_t blocks = 0, at = 0, i = 0;

	for (struct block *block = arena->blocks; block; block = block->next)
		blocks++;
	image = malloc(sizeof(*image) + blocks * sizeof(*image->of) + arena->used_bytes);
	if (!image)
		abort();
	image->used_bytes = arena->used_bytes;
	image->of = (void *)(image + 1);
	image->data = (unsigned char *)(image->of + blocks);
	for (struct block *block = arena->blocks; block; block = block->next, i++) {
		image->of[i].block = block;
		image->of[i].used = block->used;
		memcpy(image->data + at, block->data, block->used);
		at += block->used;
	}
	return image;
}

/* The image's blocks keep their order in the list; younger blocks stand before and between them. */
void sl_arena_put_back(struct sl_arena *arena, const struct sl_arena_image *image)
{
	struct block **link = &arena->blocks, *block;
	size_t at = 0, i = 0;

	while ((block = *link)) {
		size_t used;

		if (at == image->used_bytes || block != image->of[i].block) {
			*link = block->next;
			free(block);
			continue;
		}
		used = image->of[i].used;
		memcpy(block->data, image->data + at, used);
		memset(block->data + used, 0, block->used - used);
		at += block->used = used;
		i++;
		link = &block->next;
	}
	arena->used_bytes = image->used_bytes;
}

void sl_arena_restore(struct sl_arena *arena, struct sl_arena_image *image)
{
	sl_arena_put_back(arena, image);
	free(image);
}

size_t sl_arena_used_bytes(const struct sl_arena *arena)
{
	return arena->used_bytes;
}
