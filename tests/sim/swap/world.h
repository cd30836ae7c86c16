/*
 * world - programs whose memory moves between GPUs and the host, in virtual time
 *
 * The world of swap-sim has up to four GPUs, and workloads of one to three processes each. Links
 * take time, messages take time and so cross, people park and resume, and everything can fail. It
 * drives the machine of policy/node.h as the daemon does. Each process is modelled as the runtime
 * behaves: one order at a time, gate, drain, copy, answer; threads stand at the closed gate. Every
 * number is drawn from one seed. After every event the rules (rules.h) look at it. A world runs in
 * episodes of several kinds. Each ends by draining: programs go idle, faults stop, and no client
 * may be left waiting. Sizes are bytes. One thread.
 */
#ifndef SL_SIM_SWAP_WORLD_H
#define SL_SIM_SWAP_WORLD_H

#include "../common/later.h"
#include "../common/rng.h"
#include "rules.h"
#include "../common/trace.h"

#define SWAP_MESSAGES_MAX 16384
#define SWAP_CHUNK        (2 * SL_MIB) /* every size is a multiple of it */

/* What a program is like. X(NAME, weight, text) */
#define SWAP_SHAPES(X)                                                    \
	X(TRAINER, 5, "computes without a pause")                         \
	X(SERVER, 5, "short requests, with pauses between them")          \
	X(NOTEBOOK, 4, "computes for some seconds, then thinks for long") \
	X(CHURNER, 4, "allocates and frees all the time")                 \
	X(HOARDER, 2, "asks for more until it is denied, then drops it all")

enum swap_shape {
#define X(NAME, weight, text) SWAP_##NAME,
	SWAP_SHAPES(X)
#undef X
		SWAP_SHAPE_COUNT
};

/* Kinds of episodes. X(NAME, weight, text) */
#define SWAP_MOODS(X)                                                             \
	X(CHAOS, 6, "everything at once, with faults")                            \
	X(BUSY, 3, "the same without faults")                                     \
	X(TURNS, 3, "each is more than half of one GPU and always computes")      \
	X(ROOMY, 1, "all of it fits")                                             \
	X(SHARES, 0,                                                              \
		"one bursts beside those within their requests, and most always " \
		"compute")

enum swap_mood {
#define X(NAME, weight, text) SWAP_##NAME,
	SWAP_MOODS(X)
#undef X
		SWAP_MOOD_COUNT
};

/* The resolvers of an episode, in order. X(NAME, weight, weight where turns are judged, chain) */
#define SWAP_CHAINS(X)                                                              \
	X(SWAP_WAIT, 6, 2, SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0))         \
	X(WAIT_SWAP, 2, 0, SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_SWAP, 0))         \
	X(SWAP_PRIORITY_WAIT, 3, 1,                                                 \
		SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT)) \
	X(SWAP_PRIORITY, 2, 1, SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_PRIORITY, 0)) \
	X(WAIT_PRIORITY, 2, 0, SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_PRIORITY, 0))

enum swap_chain {
#define X(NAME, weight, turns, chain) SWAP_CHAIN_##NAME,
	SWAP_CHAINS(X)
#undef X
		SWAP_CHAIN_COUNT
};

struct swap_workload {
	bool used, parked; /* parked: as the journal has it */
	uint64_t id, request, limit;
	uint32_t mask, flags, clients_most, compute_pm;
	int32_t priority;
	sl_ns warm_after, idle_grace;
	enum swap_shape shape;
	uint64_t size;      /* what each of its clients wants on each of its GPUs */
	sl_ns piece, pause; /* of GPU work, and between two stretches of it */
	uint32_t pieces;    /* in a stretch */
	uint64_t step;      /* it asks for so much at a time; 0: for all that it lacks */
};

/* An order as the process carries it out. */
struct swap_order {
	enum { ORDER_NONE = 0, ORDER_DRAINS, ORDER_COPIES, ORDER_RETURNS } phase;
	bool is_restore;
	/* Bytes. moves: to be moved in all; moved: by now; due: that should have moved by now;
	 * tell: between two reports */
	uint64_t id, bytes, moves, moved, due, tell, serial;
	bool was_idle; /* it had nothing to do when it was told to leave */
	bool stopped;  /* not needed any more: it ends with the next piece */
	uint32_t gpu;
	sl_ns began, deadline, copied;
};

struct swap_client {
	bool used, connected, swaps;
	uint64_t id, line; /* line: which of its connections */
	uint32_t workload; /* slot */
	uint64_t resident[SWAP_GPUS], evicted[SWAP_GPUS], held[SWAP_GPUS],
		hidden[SWAP_GPUS];
	/* GPUs that were lost: its memory there is gone, though it reports it until it ends */
	uint32_t gone;
	uint64_t store;
	uint64_t grain; /* of an EVICT, if it is not SWAP_CHUNK: multiples of it leave */
	bool one_file;  /* all of it is one file, and stays while any of that is needed */
	/* its only thread */
	enum { THREAD_RUNS = 0, THREAD_ASKS, THREAD_CREATES, THREAD_STANDS } thread;
	uint64_t ask, epoch, ask_bytes, next_ask, serial;
	uint32_t ask_gpu, ask_flags, left; /* left: pieces of this stretch */
	bool want_told, denied, hasty;     /* hasty: think at once when it may */
	/* its GPU work */
	bool busy, endless, capturing;
	sl_ns busy_since, busy_until, idle_since, told_work;
	enum sl_probe probe;
	enum sl_client_condition condition;
	struct swap_order order;
	/* whether it is on its GPUs, contexts included; the daemon's order that it is moved by */
	enum { PLACE_THERE = 0, PLACE_LEAVES, PLACE_AWAY, PLACE_RETURNS } place;
	uint64_t place_order;
	sl_ns place_since;
	bool is_open;
	sl_ns opened_at, open_ns; /* how long its gate was open, in all */
	sl_ns open_then;          /* of it, when the judging of turns began */
};

enum swap_kind {
	LATER_THINK, /* client, number: serial of its thread */
	LATER_CREATED,
	LATER_ORDER, /* client, number: serial of its order */
	LATER_UP,    /* number: a message to the node */
	LATER_DOWN,
	LATER_QUIET,  /* client: a piece of work has ended */
	LATER_PROMPT, /* client, number: since when it was idle */
	LATER_BEAT,
	LATER_RELEASED,
	LATER_REPORT,
	LATER_REFUSE, /* client, gpu, number: an order that its process never heard of */
	LATER_GO_ON, /* client: its process is continued, its kernel ends, its capture ends */
	LATER_PEOPLE,
	LATER_TROUBLE,
	LATER_BACK,      /* gpu */
	LATER_PLACED,    /* client, number: a DETACH or ATTACH */
	LATER_NO_SIGNAL, /* client: it could not be signalled */
	LATER_DIE
};

struct swap_message {
	uint32_t next_free, slot;
	uint64_t line, client; /* line: of which connection */
	union {
		struct sl_event event;
		struct sl_action action;
	};
};

struct swap_stats {
	uint64_t events, episodes, restarts, grants, evicts, restores, aborts, trims,
		parks, resumes, turns, told, parts, stops, kills;
	uint64_t moved_bytes, denies[SL_REASONS], notes[SL_REASONS],
		done[SL_SWAP_OUTCOMES], causes[SL_SWAP_CAUSES], wants, served;
	uint64_t moves;     /* of a workload to another GPU */
	uint64_t placed[3]; /* processes that left, came back, or refused one of these */
	uint64_t windows;   /* of time in which a share was due */
	uint64_t waited_after; /* events after which a client wanted */
};

/* Of one workload, for share.c: the part of this window's time in which it held the GPU. */
struct swap_share {
	uint32_t hold, wait;            /* processes of it, while time counts */
	sl_ns at, counted, held, bound; /* bound: the window's length; 0: none */
};

struct swap_world {
	struct sl_rng rng;
	sl_ns now;
	struct sl_arena *arena;
	struct sl_node *node;
	struct swap_rules rules;
	struct sl_trace trace;
	struct swap_stats stats;
	/* of the episode */
	enum swap_mood mood;
	bool faults, drains, scripted;
	uint32_t fixed; /* GPUs that nothing leaves */
	bool detaches;  /* of the whole run */
	bool chains;    /* likewise: workloads have resolvers of their own */
	enum sl_swap_cause refuses_places; /* in plays */
	bool stops;                        /* `priority` is among the resolvers */
	uint32_t gpus, workloads_most, clients_most;
	uint64_t capacity[SWAP_GPUS], link_out[SWAP_GPUS], link_in[SWAP_GPUS];
	uint32_t lost_mask;
	uint64_t pool, slack;
	sl_ns up, down, episode_began, drain_from, beat, give_up_at;
	uint64_t episode_ends;
	struct sl_event config;
	struct swap_workload workload[SWAP_WORKLOADS];
	struct swap_share share[SWAP_WORKLOADS];
	struct swap_client client[SWAP_CLIENTS];
	uint64_t next_id, next_line, next_serial;
	struct sim_queue later;
	struct swap_message message[SWAP_MESSAGES_MAX];
	uint32_t message_free, messages;
	struct sl_action reaction[1024];
	uint32_t reactions;
	sl_ns judged_from,
		copied_ns; /* turns: since when, and spent with copying since then */
	uint64_t forced_mood,
		forced_chain; /* 0: as the seed says; else mood, or chain, + 1 */
	/* 0, or the event from which on all are printed, with the accounts before it. */
	uint64_t print_from;
	/* Called for each action, in scenes. */
	void (*watch)(struct swap_world *world, const struct sl_action *action);
	char failed[700];
};

void swap_world_init(struct swap_world *world, uint64_t seed);
void swap_world_fini(struct swap_world *world);
/* Runs until `events` events were taken or something broke; false then, and failed says what. */
bool swap_world_run(struct swap_world *world, uint64_t events);

/* --- for plays: a world without chance, set by the caller --- */
void swap_world_script(struct swap_world *world);
uint32_t swap_world_workload(
	struct swap_world *world, struct swap_workload workload); /* its slot */
uint32_t swap_world_client(struct swap_world *world, uint32_t workload);
/* Until this moment; false when a rule broke. */
bool swap_world_until(struct swap_world *world, sl_ns at);

/* --- between the files of the world --- */
void swap_step(struct swap_world *w, struct sl_event event);
/* Several of one moment. */
void swap_steps(struct swap_world *w, const struct sl_event events[], uint32_t count);
sl_ns swap_draw_grace(const struct swap_world *w);
void swap_fail(struct swap_world *w, const char *format, ...) SL_PRINTF(2, 3);
void swap_later(struct swap_world *w, sl_ns after, struct sim_later later);
sl_ns swap_span(struct swap_world *w, sl_ns least, sl_ns most);
uint32_t swap_gpu_of(struct swap_world *w, uint32_t mask); /* one of them */
struct swap_client *swap_find(struct swap_world *w, uint64_t id);
/* --- programs.c --- */
void swap_send(struct swap_world *w, uint32_t slot, struct sl_event event);
void swap_join(struct swap_world *w, uint32_t workload);
void swap_think(struct swap_world *w, uint32_t slot);
void swap_think_after(struct swap_world *w, uint32_t slot, sl_ns after);
void swap_created(struct swap_world *w, uint32_t slot);
void swap_quiet(struct swap_world *w, uint32_t slot);
void swap_prompt(struct swap_world *w, uint32_t slot, sl_ns idle_since);
void swap_beat(struct swap_world *w, uint32_t slot);
void swap_report(struct swap_world *w, uint32_t slot);
void swap_exit(struct swap_world *w, uint32_t slot);
void swap_free(struct swap_world *w, uint32_t slot, uint32_t gpu, uint64_t bytes);
/* Something about its gate may have changed. */
void swap_gate(struct swap_world *w, uint32_t slot);
bool swap_is_out(const struct swap_client *c);
/* How long its gate was open, in all, as of now. */
sl_ns swap_open(const struct swap_world *w, const struct swap_client *c);
/* --- fair.c --- */
/* Where only turns are going on: begin to judge them once all have what they want. */
void swap_fair_look(struct swap_world *w);
/* Shares against weights, and time lost to copying. */
void swap_fair_judge(struct swap_world *w);
/* --- share.c --- */
/* After each event: judges the windows that end with it. O(clients). */
void swap_share_look(struct swap_world *w);
/* --- orders.c --- */
void swap_receive(struct swap_world *w, uint32_t slot, const struct sl_action *action);
void swap_order_goes_on(struct swap_world *w, uint32_t slot);
/* --- places.c --- */
/* Whether processes of parked workloads leave their GPUs in this seed's world. */
bool swap_draw_detach(uint64_t seed);
/* Likewise, whether workloads have resolvers of their own; and one chain, in the bits of flags. */
bool swap_draw_chains(uint64_t seed);
uint32_t swap_draw_chain(struct swap_world *w);
void swap_make_contexts(struct swap_world *w, uint32_t slot);
/* The daemon carries out a DETACH or ATTACH, and is done with it. */
void swap_place(struct swap_world *w, uint64_t client, const struct sl_action *a);
void swap_placed(struct swap_world *w, uint32_t slot, uint64_t order);
void swap_find_place(struct swap_world *w, uint32_t slot);
/* GPUs to which the workload may be told to come back; 0: to its own. */
uint32_t swap_draw_place(const struct swap_world *w, const struct swap_workload *wl);
/* The workload is bound to another GPU from now on. */
void swap_go_elsewhere(struct swap_world *w, const struct sl_action *moves);
void swap_measure_away(struct swap_world *w, uint32_t slot, uint32_t gpu);
void swap_judge_places(struct swap_world *w);
/* --- trouble.c --- */
void swap_people(struct swap_world *w);
void swap_trouble(struct swap_world *w);
/* The connection of a living process breaks; it comes again. */
void swap_lose_line(struct swap_world *w, uint32_t slot);
void swap_refuse(struct swap_world *w, uint32_t slot, uint64_t order, bool sent);
void swap_go_on(struct swap_world *w, uint32_t slot);
/* The daemon signals processes. */
void swap_signal(struct swap_world *w, const struct sl_action *stop);
void swap_restart(struct swap_world *w);
void swap_back(struct swap_world *w, uint32_t gpu);
void swap_introduce(struct swap_world *w);
void swap_calm(struct swap_world *w); /* everything that was broken is mended */
void swap_arrive(struct swap_world *w, struct swap_workload workload);
void swap_arrive_drawn(struct swap_world *w);
/* A workload, and all of an episode except its workloads, as drawn from the seed (draw.c). */
struct swap_workload swap_draw_workload(struct swap_world *w);
void swap_draw_episode(struct swap_world *w);
void swap_remove(struct swap_world *w, uint32_t slot);

#endif
