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

#include "../common/later.h"
#include "../common/rng.h"
#include "shadow.h"
#include "../common/trace.h"

#define WORLD_CLIENTS   40
#define WORLD_WORKLOADS 16
#define WORLD_THREADS   3
#define WORLD_STRANGERS 4

/* What the node does not know yet: not tried. */
enum {
	NO_PRIORITY = 0,
	NO_UNTAKEABLE = 0,
	NO_LOST = 0,
	NO_STOP = 0,
	NO_STRANGERS = 0,
	NO_PACK = 0
};

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

/* Troubles beside the programs' own behaviour. X(NAME, weight, text) */
#define WORLD_TROUBLES(X)                                                   \
	X(CONDITION, 6, "a process is stopped, traced, silent, or goes on") \
	X(ENDLESS, 2, "a piece of GPU work that never ends")                \
	X(PULSE, 2, "a pulse without a probe, or one that lies")            \
	X(SET, 6, "a person changes a workload")                            \
	X(STOP, 1, "a person stops a workload")                             \
	X(LOST, 1, "a GPU falls off the bus, and comes back later")         \
	X(STRANGER, 3, "an unmanaged process takes or frees memory")        \
	X(CONFIG, 1, "the administrator changes the settings")

enum world_trouble {
#define X(NAME, weight, text) TROUBLE_##NAME,
	WORLD_TROUBLES(X)
#undef X
		TROUBLE_COUNT
};

struct world_thread {
	enum { THREAD_FREE, THREAD_WAITS, THREAD_CREATES } state;
	uint64_t ask, epoch, bytes;
	uint32_t gpu, flags;
	bool is_void; /* the GPU was lost since it asked */
};

struct world_workload {
	bool used;
	uint64_t id, request, limit;
	uint32_t mask, owner, flags;
	int32_t priority;
	sl_ns wait_max;
	enum world_shape shape;
};

struct world_client {
	bool used, connected, full; /* full: a hoarder that was denied */
	uint64_t id, next_ask;
	uint32_t workload, threads;
	enum world_shape shape;
	struct world_thread thread[WORLD_THREADS];
	uint64_t bytes[SHADOW_GPUS], held[SHADOW_GPUS];
	uint32_t gang; /* GPUs already served in this round */
	/* of its process and its GPU work, as they really are */
	enum sl_client_condition condition;
	enum sl_probe probe; /* what its agent was told to do */
	bool endless, deaf;  /* its work never ends; it does not heed SIGTERM */
	bool termed;         /* SIGTERM waits for it to be continued */
	sl_ns busy_since;    /* 0: no work */
	sl_ns idle_since;
};

struct world_stranger {
	uint64_t id, bytes; /* id 0: none */
	uint32_t gpu;
	bool deaf;
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
	LATER_JUNK,
	LATER_TROUBLE,
	LATER_IDLE,  /* client, number: since when it was busy */
	LATER_PULSE, /* client */
	LATER_BEAT,  /* client: and again */
	LATER_DIE,   /* client */
	LATER_BACK,  /* gpu */
	LATER_STRANGER_DIES
};

struct world_stats {
	uint64_t events, grants, denies[SL_REASONS], refusals[SL_REASONS],
		notes[SL_REASONS];
	uint64_t admitted, restarts, episodes, waited, set, probes;
	uint64_t terms[SL_REASONS], kills[SL_REASONS], strangers_stopped;
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
	uint32_t gpu_mask, lost_mask, workloads_most, clients_most;
	uint64_t capacity[SHADOW_GPUS];
	sl_ns refuses_until[SHADOW_GPUS], pace;
	bool faults, mix; /* mix: one episode, with faults */
	struct world_workload workload[WORLD_WORKLOADS];
	struct world_client client[WORLD_CLIENTS];
	struct world_stranger stranger[WORLD_STRANGERS];
	struct sl_event config, set_event; /* the last ones */
	uint64_t next_id;
	struct sim_queue later;
	uint64_t episode_ends;
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
void world_later(struct world *world, sl_ns after, struct sim_later later);
sl_ns world_span(
	struct world *world, sl_ns least, sl_ns most); /* small ones more often */
void world_arrive(struct world *world);
void world_join(struct world *world, uint32_t workload, bool expected, uint64_t id);
void world_think(struct world *world, uint32_t slot);
void world_created(struct world *world, const struct sim_later *later);
void world_report(struct world *world, uint32_t slot);
void world_exit(struct world *world, uint32_t slot);
void world_junk(struct world *world);
void world_react(struct world *world);
uint32_t world_gpu(struct world *world); /* one of those there are */
struct sl_amount world_amount(struct world *world);
/* --- world_trouble.c --- */
void world_trouble(struct world *world);
void world_configure(struct world *world); /* other settings */
void world_work(struct world *world, uint32_t slot);
void world_work_ends(struct world *world, const struct sim_later *later);
void world_pulse(struct world *world, uint32_t slot, bool again);
void world_back(struct world *world, uint32_t gpu);
void world_stranger_dies(struct world *world, uint32_t slot);
struct sl_bounds world_bounds(struct world *world);
/* Answers to STOP, STOP_STRANGER, PROBE. */
void world_on_stop(struct world *world, const struct sl_action *action);
void world_on_stop_stranger(struct world *world, const struct sl_action *action);
void world_on_probe(struct world *world, const struct sl_action *action);
struct world_client *world_find(struct world *world, uint64_t id);

#endif
