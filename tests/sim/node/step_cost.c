/*
 * step-cost - what a step costs with many clients
 *
 *   step-cost [CLIENTS [GPUS]]
 *
 * Each client has a workload of its own and fills its part of a GPU; then each asks for more, so
 * that a body and a demand of each wait. Prints microseconds: of an ASK, and of a step that
 * plans for all.
 */
#include <stdio.h>
#include <stdlib.h>

#include "policy/node.h"

#define PLANS 200

struct cost {
	sl_ns sum, most;
	uint32_t count;
};

static struct sl_node *node;
static sl_ns now = SL_S;
static uint64_t epoch;

static void on_action(void *context, const struct sl_action *action)
{
	(void)context;
	if (action->type == SL_ACTION_GRANT)
		epoch = action->grant.epoch;
}

static void step(struct cost *cost, struct sl_event event)
{
	sl_ns began = sl_clock_now(), span;

	sl_node_step(node, now, &event, on_action, NULL);
	span = sl_clock_now() - began;
	if (!cost)
		return;
	cost->sum += span;
	cost->most = sl_max_u64(cost->most, span);
	cost->count++;
}

static void tell(const char *what, const struct cost *cost)
{
	printf("%-20s mean %8.1f us, most %8.1f us\n", what,
		(double)cost->sum / 1e3 / cost->count, (double)cost->most / 1e3);
}

static void ask(struct cost *cost, uint32_t i, uint32_t gpu, uint64_t bytes)
{
	epoch = 0;
	step(cost, (struct sl_event){.type = SL_EVENT_ASK,
			   .ask = {.client = 1000000 + i,
				   .ask = bytes,
				   .gpu = gpu,
				   .bytes = bytes}});
	if (epoch)
		step(NULL, (struct sl_event){.type = SL_EVENT_COMMIT,
				   .commit = {.client = 1000000 + i,
					   .epoch = epoch,
					   .used_bytes = bytes}});
}

static void enter(uint32_t i, uint32_t gpu, uint64_t bytes)
{
	step(NULL, (struct sl_event){.type = SL_EVENT_WORKLOAD_ADD,
			   .workload_add = {.workload = i + 1,
				   .gpu_count = 1,
				   .gpu_mask = 1u << gpu,
				   .idle_grace = 30 * SL_S}});
	step(NULL,
		(struct sl_event){.type = SL_EVENT_CLIENT_JOIN,
			.client_join = {
				.client = 1000000 + i, .workload = i + 1, .swaps = 1}});
	ask(NULL, i, gpu, bytes);
}

int main(int argc, char **argv)
{
	uint32_t clients = argc > 1 ? (uint32_t)atoi(argv[1]) : 1000;
	uint32_t gpus = argc > 2 ? (uint32_t)atoi(argv[2]) : 8;
	uint64_t pool = 2048 * SL_GIB;
	struct sl_arena *arena = sl_arena_new();
	struct cost asks = {0}, plans = {0};

	if (!clients || !gpus || gpus > SL_NODE_GPUS_MAX) {
		fprintf(stderr, "usage: step-cost [CLIENTS [GPUS]]\n");
		return 2;
	}
	node = sl_node_new(arena);
	step(NULL, (struct sl_event){.type = SL_EVENT_CONFIG,
			   .config = {.wait_max = 60 * SL_S,
				   .pool_bytes = pool,
				   .chain = SL_CHAIN(
					   SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0)}});
	for (uint32_t gpu = 0; gpu < gpus; gpu++)
		step(NULL,
			(struct sl_event){.type = SL_EVENT_GPU_ADD,
				.gpu_add = {.gpu = gpu, .capacity_bytes = 80 * SL_GIB}});
	for (uint32_t i = 0; i < clients; i++)
		enter(i, i % gpus, 80 * SL_GIB / (clients / gpus + 1));
	for (uint32_t i = 0; i < clients; i++, now += SL_US)
		ask(&asks, i, i % gpus, SL_GIB);
	for (uint32_t i = 0; i < PLANS; i++, now += SL_MS)
		step(&plans, (struct sl_event){.type = SL_EVENT_POOL_SIZE,
				     .pool_size = {.pool_bytes = pool}});
	tell("an ASK that waits", &asks);
	tell("a plan for all", &plans);
	sl_arena_free(arena);
	return 0;
}
