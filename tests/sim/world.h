/*
 * world - modelled programs, drivers and measurements around one node, in virtual time
 *
 * Everything random comes from one seed; the same seed gives the same events. A world runs in
 * episodes: each sets up GPUs, waits and programs of another mix, so that one run sees many
 * machines. After every event the node's own check and the shadow's rules are applied.
 * Sizes are bytes. One thread.
 */
#ifndef SL_SIM_WORLD_H
#define SL_SIM_WORLD_H

#include "rng.h"
#include "shadow.h"
#include "trace.h"

#define WORLD_CLIENTS   40
#define WORLD_WORKLOADS 16
#define WORLD_THREADS   3
#define WORLD_LATER_MAX 1024

/* What a program is like. X(NAME, weight, text) */
#define WORLD_SHAPES(X)                                                  \
	X(HOLDER, 4, "allocates its weights once, computes, stays")      \
	X(SERVER, 4, "small batches come and go all the time")           \
	X(BURSTY, 6, "takes much, works, frees all, again")              \
	X(HOARDER, 3, "keeps whatever it gets and asks for more")        \
	X(GANG, 3, "takes the same on each of its GPUs before it works") \
	X(FORKER, 2, "a server whose children join its workload")        \
	X(LIAR, 2, "wrong epochs, frees too much, commits too much or never")

enum world_shape {
#define X(NAME, weight, text) WORLD_##NAME,
	WORLD_SHAPES(X)
#undef X
		WORLD_SHAPE_COUNT
};

struct world_thread {
	enum { THREAD_FREE, THREAD_WAITS, THREAD_CREATES } state;
	uint64_t ask, epoch, bytes;
	uint32_t gpu;
};

struct world_workload {
	bool used, recovered_only;
	uint64_t id, request, limit;
	uint32_t mask;
	int32_t priority;
	enum world_shape shape;
};

struct world_client {
	bool used, connected, full; /* full: a hoarder that was denied */
	uint64_t id, next_ask;
	uint32_t workload, threads;
	enum world_shape shape;
	struct world_thread thread[WORLD_THREADS];
	uint64_t bytes[SHADOW_GPUS];
	uint32_t gang; /* GPUs already served in this round */
};

enum world_kind {
	LATER_THINK, /* client */
	LATER_CREATED,
	LATER_CANCEL,
	LATER_RELEASE, /* client id, gpu, remaining */
	LATER_REPORT,
	LATER_ARRIVE, /* the next workload */
	LATER_MEASURE,
	LATER_FAULT, /* the driver starts or stops to refuse; a daemon dies */
	LATER_JUNK
};

struct world_later {
	sl_ns at;
	uint64_t order; /* ties: first come */
	enum world_kind kind;
	uint32_t slot, gpu;
	uint64_t id, number;
};

struct world_stats {
	uint64_t events, grants, denies[SL_REASONS], refusals[SL_REASONS],
		notes[SL_REASONS];
	uint64_t admitted, restarts, episodes, waited;
	uint32_t most_waiting;
	size_t most_arena_bytes;
};

struct world {
	struct sl_rng rng;
	sl_ns now;
	struct sl_arena *arena;
	struct sl_node *node;
	struct shadow shadow;
	struct sl_trace trace;
	struct world_stats stats;
	struct shadow_outcomes outcomes; /* of nodes that are gone: before a restart */
	/* of the episode */
	uint32_t gpus_wanted; /* 0: as the seed says */
	uint32_t gpu_mask, workloads_most, clients_most;
	uint64_t capacity[SHADOW_GPUS];
	sl_ns refuses_until[SHADOW_GPUS], pace;
	bool faults, mix; /* mix: one episode, with faults */
	struct world_workload workload[WORLD_WORKLOADS];
	struct world_client client[WORLD_CLIENTS];
	uint64_t next_id, config_wait_max;
	struct world_later later[WORLD_LATER_MAX];
	uint32_t later_count;
	uint64_t later_order, episode_ends;
	/* actions of the last step that programs react to */
	struct sl_action reaction[512];
	uint32_t reactions;
	char failed[600];
};

void world_init(struct world *world, uint64_t seed, uint32_t gpus);
void world_fini(struct world *world);
/* Runs until `events` events were taken or something broke; false then, and failed says what. */
bool world_run(struct world *world, uint64_t events);
/* One episode of some thousand events with faults, drawn from the seed. */
bool world_run_mix(struct world *world);

/* --- between world.c and world_programs.c --- */
void world_step(struct world *world, struct sl_event event);
void world_later(struct world *world, sl_ns after, struct world_later later);
sl_ns world_span(
	struct world *world, sl_ns least, sl_ns most); /* small ones more often */
void world_arrive(struct world *world);
void world_join(struct world *world, uint32_t workload, bool expected, uint64_t id);
void world_think(struct world *world, uint32_t slot);
void world_created(struct world *world, const struct world_later *later);
void world_report(struct world *world, uint32_t slot);
void world_exit(struct world *world, uint32_t slot);
void world_junk(struct world *world);
void world_react(struct world *world);
struct world_client *world_find(struct world *world, uint64_t id);

#endif
