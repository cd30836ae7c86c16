/*
 * pagemap - see pagemap.h
 *
 * The root costs 128 KiB of untouched zero pages; a leaf covers 32 GiB of addresses. Leaves are
 * never freed: the driver reuses addresses. A page's GPU is stored beside its block: blocks come
 * and go, but the GPU can be read without the lock.
 */
#include "runtime/memory/pagemap.h"
#include "runtime/memory/block.h"
#include "runtime/session/device.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_SHIFT 21
#define LEAF_BITS  14
#define ROOT_BITS  14
#define LEAF_SIZE  (1u << LEAF_BITS)

_Static_assert(SL_DEVICE_GRAIN == 1ull << PAGE_SHIFT, "one page per grain");

struct leaf {
	struct sl_block *block[LEAF_SIZE];
	uint8_t gpu[LEAF_SIZE]; /* ordinal plus 1, or 0; atomic */
};

static struct leaf *root[1u << ROOT_BITS]; /* atomic */

static struct leaf *leaf_of(uint64_t page)
{
	uint64_t index = page >> LEAF_BITS;

	return index < SL_ARRAY_LEN(root)
		       ? __atomic_load_n(&root[index], __ATOMIC_ACQUIRE)
		       : NULL;
}

static void set(uint64_t page, struct sl_block *block, uint8_t gpu)
{
	struct leaf *leaf = leaf_of(page);

	leaf->block[page & (LEAF_SIZE - 1)] = block;
	__atomic_store_n(&leaf->gpu[page & (LEAF_SIZE - 1)], gpu, __ATOMIC_RELAXED);
}

static bool make_leaf(uint64_t page)
{
	uint64_t index = page >> LEAF_BITS;

	if (index >= SL_ARRAY_LEN(root))
		return false;
	if (!root[index])
		__atomic_store_n(
			&root[index], calloc(1, sizeof(*root[index])), __ATOMIC_RELEASE);
	return root[index] != NULL;
}

bool sl_pagemap_set(CUdeviceptr base, uint64_t bytes, struct sl_block *block)
{
	uint64_t first = base >> PAGE_SHIFT, end = (base + bytes) >> PAGE_SHIFT;

	for (uint64_t page = first; page < end; page = (page | (LEAF_SIZE - 1)) + 1) {
		if (!make_leaf(page))
			return false;
	}
	for (uint64_t page = first; page < end; page++)
		set(page, block, (uint8_t)(block->space->dev + 1));
	return true;
}

void sl_pagemap_clear(CUdeviceptr base, uint64_t bytes)
{
	uint64_t end = (base + bytes) >> PAGE_SHIFT;

	for (uint64_t page = base >> PAGE_SHIFT; page < end; page++)
		set(page, NULL, 0);
}

struct sl_block *sl_pagemap_get(CUdeviceptr address)
{
	uint64_t page = address >> PAGE_SHIFT;
	struct leaf *leaf = leaf_of(page);

	return leaf ? leaf->block[page & (LEAF_SIZE - 1)] : NULL;
}

uint8_t sl_pagemap_gpu(CUdeviceptr address)
{
	uint64_t page = address >> PAGE_SHIFT;
	struct leaf *leaf = leaf_of(page);

	return leaf ? __atomic_load_n(
			      &leaf->gpu[page & (LEAF_SIZE - 1)], __ATOMIC_RELAXED)
		    : 0;
}

bool sl_pagemap_touches(CUdeviceptr base, uint64_t bytes)
{
	uint64_t past = bytes > UINT64_MAX - base ? UINT64_MAX : base + bytes;
	uint64_t page = base >> PAGE_SHIFT, end = sl_round_up(past, SL_DEVICE_GRAIN);

	/* Rounded up beyond the last address, or beyond the covered addresses. */
	end = end && past < (uint64_t)SL_ARRAY_LEN(root) << (PAGE_SHIFT + LEAF_BITS)
		      ? end >> PAGE_SHIFT
		      : (uint64_t)SL_ARRAY_LEN(root) << LEAF_BITS;
	while (page < end) {
		struct leaf *leaf = leaf_of(page);

		if (leaf && leaf->block[page & (LEAF_SIZE - 1)])
			return true;
		page = leaf ? page + 1 : (page | (LEAF_SIZE - 1)) + 1;
	}
	return false;
}

void sl_pagemap_forget(void)
{
	memset(root, 0, sizeof(root));
}
