/*
 * alloc-churn - allocates and frees at random, and checks every byte page it still holds
 *
 * Sizes run from one byte to a few chunks. Each allocation is filled with a pattern of its own and
 * checked before it is freed. So two allocations that share a page, or memory handed out while
 * still in use, show as wrong words. Out of memory is expected and only ends the attempt.
 */
#include "prog.h"

#include <stdlib.h>

struct block {
	CUdeviceptr at;
	uint64_t bytes;
	uint32_t seed;
};

struct churn {
	struct block *blocks;
	uint64_t slots, max_bytes, random, oom, wrong, done;
	CUfunction fill, check;
	CUdeviceptr bad;
};

/* Half of the sizes are small: slabs and chunks are tried alike. */
static uint64_t pick_bytes(struct churn *c)
{
	uint64_t random = prog_random(&c->random);

	if (random & 1)
		return 1 + (random >> 8) % (256 << 10);
	return 1 + (random >> 8) % c->max_bytes;
}

static void release(struct churn *c, struct block *block)
{
	uint32_t wrong = 0;

	if (!block->at)
		return;
	if (block->bytes >= 4)
		PROG_MUST(prog_check(c->check, block->at, block->bytes & ~3ull,
			block->seed, c->bad, &wrong));
	c->wrong += wrong;
	PROG_MUST(cuMemFree_v2(block->at));
	block->at = 0;
}

static void obtain(struct churn *c, struct block *block)
{
	CUresult result;

	block->bytes = pick_bytes(c);
	block->seed = (uint32_t)prog_random(&c->random);
	result = cuMemAlloc_v2(&block->at, block->bytes);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		block->at = 0;
		c->oom++;
		return;
	}
	prog_must(result, "cuMemAlloc");
	if (block->bytes >= 4)
		PROG_MUST(
			prog_fill(c->fill, block->at, block->bytes & ~3ull, block->seed));
}

int main(int argc, char **argv)
{
	struct churn c = {.slots = 32, .max_bytes = 8 << 20, .random = 1};
	uint64_t operations = 500, ms = UINT64_MAX, stop_ms;
	const struct prog_option options[] = {
		{"slots", PROG_NUMBER, &c.slots, "allocations held at most"},
		{"max", PROG_SIZE, &c.max_bytes, "largest allocation"},
		{"operations", PROG_NUMBER, &operations, "allocations and frees"},
		{"ms", PROG_NUMBER, &ms, "stop after so long"},
		{"seed", PROG_NUMBER, &c.random, "seed"},
	};
	CUmodule module;

	prog_options(argc, argv, "Allocates and frees at random.", options,
		sizeof(options) / sizeof(options[0]));
	c.blocks = calloc(c.slots, sizeof(*c.blocks));
	if (!c.slots || !c.blocks)
		return PROG_USAGE;
	prog_context(0);
	module = prog_kernels();
	c.fill = prog_kernel(module, "prog_fill");
	c.check = prog_kernel(module, "prog_check");
	PROG_MUST(cuMemAlloc_v2(&c.bad, 4));
	stop_ms = ms == UINT64_MAX ? ms : prog_now_ms() + ms;
	prog_say("{\"event\":\"started\"}");
	for (; c.done < operations && prog_now_ms() < stop_ms; c.done++) {
		struct block *block = &c.blocks[prog_random(&c.random) % c.slots];

		if (block->at)
			release(&c, block);
		else
			obtain(&c, block);
	}
	for (uint64_t i = 0; i < c.slots; i++)
		release(&c, &c.blocks[i]);
	PROG_MUST(cuMemFree_v2(c.bad));
	free(c.blocks);
	prog_say("{\"event\":\"end\",\"operations\":%llu,\"wrong\":%llu,\"oom\":%llu}",
		(unsigned long long)c.done, (unsigned long long)c.wrong,
		(unsigned long long)c.oom);
	return c.wrong ? PROG_WRONG : PROG_OK;
}
