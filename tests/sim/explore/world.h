/*
 * world - small worlds of modelled clients around the real node machine
 *
 * A world is a table row (worlds.c): GPUs of a few units, a host pool, workloads, clients, and a
 * setup. In each state a set of choices is possible: a client asks, frees, works, goes idle,
 * answers an order, dies; a person parks; time passes. explore.c tries all of them in all orders.
 * Messages take no time. A choice ends when machine and clients have no more messages. Everything
 * is judged from outside: by the bytes that the clients have, by requests, times and answers
 * (judge.c). Sizes are units of 64 MiB. One thread.
 */
#ifndef SL_SIM_EXPLORE_WORLD_H
#define SL_SIM_EXPLORE_WORLD_H

#include "policy/node.h"

#define EXPLORE_GPUS      2
#define EXPLORE_WORKLOADS 3
#define EXPLORE_CLIENTS   3
#define EXPLORE_UNIT      (64 * SL_MIB)
#define EXPLORE_ALL       255u       /* units of an EVICT of all that can leave */
#define EXPLORE_RECOVERS  (2 * SL_S) /* so long reports are waited for */
#define EXPLORE_CHOICES   64         /* the most in one state */
#define EXPLORE_BURST     64 /* more actions than this after one choice are a storm */

/* Of promises.def; only swap-sim judges some of them. */
enum explore_promise {
	EXPLORE_KEPT = 0, /* none is broken */
#define SL_PROMISE(NAME, text) EXPLORE_##NAME,
#include "../common/promises.def"
#undef SL_PROMISE
	EXPLORE_PROMISES_END
};

/* What can happen. X(NAME, text, args): args: c client, g GPU, u units, w workload. */
#define EXPLORE_KINDS(X)           \
	X(ASK, "ask", "cug")       \
	X(HOLD, "hold", "cug")     \
	X(COMMIT, "commit", "c")   \
	X(FAIL, "fail", "c")       \
	X(FREE, "free", "cg")      \
	X(DROP, "drop", "cg")      \
	X(WORK, "work", "c")       \
	X(IDLE, "idle", "c")       \
	X(DONE, "done", "c")       \
	X(MOVED, "moved", "c")     \
	X(PART, "part", "c")       \
	X(BUSY, "busy", "c")       \
	X(NO_HOST, "nohost", "c")  \
	X(DRIVER, "driver", "c")   \
	X(ABORT, "abort", "c")     \
	X(PLACED, "placed", "c")   \
	X(STAYED, "stayed", "c")   \
	X(CONTEXT, "context", "c") \
	X(DIE, "die", "c")         \
	X(GONE, "gone", "c")       \
	X(REPORT, "report", "c")   \
	X(BEGIN, "begin", "c")     \
	X(PARK, "park", "w")       \
	X(RESUME, "resume", "w")   \
	X(MOVE, "move", "wg")      \
	X(WAKE, "wake", "")        \
	X(SECOND, "1s", "")        \
	X(LONG, "6s", "")

enum explore_kind {
#define X(NAME, text, args) EXPLORE_DO_##NAME,
	EXPLORE_KINDS(X)
#undef X
		EXPLORE_DO_END
};

struct explore_choice {
	uint8_t kind, who, gpu, units; /* `who`: number of the client or workload */
};

struct explore_workload { /* units are per GPU */
	uint8_t request, limit, gpu_mask;
	int8_t priority;
	uint32_t flags; /* SL_WORKLOAD_* */
	sl_ns idle_grace;
	bool late; /* on one of these GPUs, chosen again when its client begins */
};

struct explore_world {
	const char *name, *text;
	const char *setup; /* choices, as they are printed, before the search begins */
	uint8_t gpus, units, pool, workloads, clients;
	uint8_t of[EXPLORE_CLIENTS]; /* workload of each client */
	struct explore_workload workload[EXPLORE_WORKLOADS];
	uint8_t ask_mask; /* bit u: asks of u units */
	uint8_t faults;   /* refusals, parts, failures and deaths in one history */
	uint32_t kinds;   /* bit of enum explore_kind: choices beside the usual ones */
	/* After a restart of the daemon: units of client c on the host and on GPU 0. */
	bool restarts;
	bool prompt; /* every PROBE is answered at once */
	uint8_t had[EXPLORE_CLIENTS], had_out[EXPLORE_CLIENTS];
	/* Processes of parked workloads leave their GPUs. Units of each GPU that are kept for
	 * contexts, and that the contexts of client c have on its GPU from the start. */
	bool detach;
	uint8_t reserve, context[EXPLORE_CLIENTS];
	uint32_t depth; /* of the run in `make test` */
};

extern const struct explore_world explore_worlds[];
extern const uint32_t explore_worlds_count;

enum explore_order {
	EXPLORE_NO_ORDER = 0,
	EXPLORE_EVICTS,
	EXPLORE_RESTORES,
	EXPLORE_DETACHES,
	EXPLORE_ATTACHES
};

struct explore_client {
	bool alive, unborn, expected, granted, ask_held, stands, told, busy, aborted,
		ends;
	uint8_t resident[EXPLORE_GPUS], evicted[EXPLORE_GPUS], held[EXPLORE_GPUS],
		dying[EXPLORE_GPUS];
	/* Its contexts, on one GPU: measured, of these paid by the reserve; off the GPU with it. */
	uint8_t context, paid, away, context_gpu;
	uint8_t ask_units, ask_gpu; /* 0 units: no demand */
	uint8_t probe;              /* enum sl_probe */
	uint8_t order, order_gpu, order_units, moved, tell_units;
	uint64_t ask, epoch, order_id;
	sl_ns since; /* busy, or idle, since then */
	sl_ns asked_at, wants_at;
	uint64_t asked_place, wants_place; /* order of arrival */
};

/* A world in some state: the clients, and beside them the machine. Plain values but for node. */
struct explore_state {
	sl_ns now, wake, began;
	uint8_t faults;                   /* left */
	uint8_t bound[EXPLORE_WORKLOADS]; /* GPUs, by the last ADMIT */
	bool parked[EXPLORE_WORKLOADS], resuming[EXPLORE_WORKLOADS];
	bool returns[EXPLORE_WORKLOADS]; /* was resumed, and comes back without a want */
	uint64_t next_ask, next_place;
	uint32_t orders;  /* EVICTs and RESTOREs so far */
	uint32_t contest; /* counts changes among the competing clients */
	struct explore_client client[EXPLORE_CLIENTS];
};

struct explore {
	const struct explore_world *world;
	struct sl_arena *arena;
	struct sl_node *node;
	struct explore_state s;
	struct sl_action action[EXPLORE_BURST];
	uint32_t actions, spoken; /* of the event; of the choice */
	uint64_t heard; /* stirred of all actions and their times since heard_from */
	sl_ns heard_from;
	bool prints; /* every event and action */
	bool closes; /* no more choices come */
	enum explore_promise broken;
	char because[300]; /* of the first that broke */
};

/* --- world.c --- */
/* The world after its setup. */
void explore_begin(struct explore *x, const struct explore_world *world);
void explore_end(struct explore *x);
/* Until then, with the wake-ups on the way. */
void explore_advance(struct explore *x, sl_ns at);
uint64_t explore_client_id(uint32_t client);
/* Its number; EXPLORE_CLIENTS: there is none. */
uint32_t explore_index(const struct explore *x, uint64_t client);
uint64_t explore_workload_id(uint32_t workload);

/* One event, and what it makes the clients do. */
void explore_step(struct explore *x, struct sl_event event);
#define EXPLORE_STEP(x, TYPE, name, ...) \
	explore_step(x, (struct sl_event){.type = SL_EVENT_##TYPE, .name = {__VA_ARGS__}})
/* The client joins; the GPU of a late workload is chosen before. */
void explore_join(struct explore *x, uint32_t client);
/* A client says how its work stands; begins to work; looks whether its gate is open. */
void explore_pulse(struct explore *x, struct explore_client *c);
void explore_begin_work(struct explore *x, struct explore_client *c);
void explore_look_at_gate(struct explore *x, struct explore_client *c);

static inline uint64_t explore_bytes(uint32_t units)
{
	return units * EXPLORE_UNIT;
}

static inline uint64_t explore_id(const struct explore *x, const struct explore_client *c)
{
	return explore_client_id((uint32_t)(c - x->s.client));
}

/* --- do.c --- */
void explore_do(struct explore *x, struct explore_choice choice);

/* --- choices.c --- */
uint32_t explore_choices(const struct explore *x, struct explore_choice *out);
/* May be done now, whether the world tries it or not. */
bool explore_can(const struct explore *x, struct explore_choice choice);
const char *explore_choice_text(struct explore_choice choice, char *buf, size_t size);
/* Reads one choice and the space behind it; NULL: not a choice. */
const char *explore_choice_read(const char *text, struct explore_choice *out);
/* Refusals, parts, failures, deaths: a history has few of them. */
bool explore_is_fault(uint8_t kind);
/* Bytes that the client's open order moves in all. */
uint8_t explore_goal(const struct explore_client *c);

/* --- judge.c --- */
void explore_break(struct explore *x, enum explore_promise promise, const char *format,
	...) SL_PRINTF(3, 4);
const char *explore_promise_name(enum explore_promise promise);
const char *explore_promise_text(enum explore_promise promise);
enum explore_promise explore_promise_named(const char *name);
/* The action arrives; the accounts are those before it. */
void explore_judge_action(struct explore *x, const struct sl_action *action);
/* After a choice. */
void explore_judge_state(struct explore *x);
/* Its GPU has just been chosen. */
void explore_judge_begin(struct explore *x, uint32_t workload);

/* --- least.c --- */
/* The actions of a step have arrived. */
void explore_judge_least(
	struct explore *x, const struct sl_action *actions, uint32_t count);

/* --- quiet.c --- */
/* After the step of an event: the machine plans once more, and finds nothing to do. */
void explore_judge_quiet(struct explore *x);

/* --- sums.c: units --- */
static inline const struct explore_workload *explore_workload_of(
	const struct explore *x, uint32_t client)
{
	return &x->world->workload[x->world->of[client]];
}

uint32_t explore_request_of(const struct explore *x, uint32_t workload, uint32_t gpu);
uint32_t explore_will_be(
	const struct explore *x, uint32_t workload, uint32_t gpu, uint32_t *held);
uint32_t explore_unclaimed(const struct explore *x, uint32_t gpu, uint32_t but);
uint32_t explore_on_host(const struct explore *x);
uint32_t explore_lent(const struct explore *x);
bool explore_is_entitled(const struct explore *x, uint32_t client);
bool explore_is_within(const struct explore *x, uint32_t workload);
bool explore_lacks(const struct explore *x, uint32_t workload, bool *rightly);
sl_ns explore_quiet_of(const struct explore *x, uint32_t workload);
bool explore_is_out(const struct explore_client *c);
/* The process is off its GPUs, or on its way: it stands still. */
bool explore_is_still(const struct explore_client *c);
/* Nothing of its living clients is on a GPU, and no answer of them is due. */
bool explore_is_gone(const struct explore *x, uint32_t workload);
/* So many units of contexts are measured now; the reserve pays, in the order of clients. */
void explore_set_context(struct explore *x, struct explore_client *c, uint8_t units);
/* Of its contexts, what the reserve does not pay, or would not if it came back now. */
uint32_t explore_unpaid(const struct explore_client *c, uint32_t gpu);
uint32_t explore_entry(
	const struct explore *x, const struct explore_client *c, uint32_t gpu);
/* I1 has room for its entry. */
bool explore_may_enter(const struct explore *x, uint32_t client);
/* Reports are waited for. */
bool explore_recovers(const struct explore *x);
/* Some of its memory is on the host, and a thread of it stands at the gate or asks for more. */
bool explore_wants_back(const struct explore_client *c);
uint32_t explore_use(const struct explore *x, uint32_t workload, uint32_t gpu);
uint32_t explore_physical(const struct explore *x, uint32_t gpu);
/* Of the open order: bytes still to come back, or to leave. */
uint32_t explore_returning(const struct explore_client *c, uint32_t gpu);
uint32_t explore_leaving(const struct explore_client *c, uint32_t gpu);
/* Of the client, what no order can move. */
uint32_t explore_fixed(const struct explore *x, uint32_t client, uint32_t gpu);
/* Nothing could ever serve its wait, and a reason names that. */
bool explore_is_excused(const struct explore *x, uint32_t client);
bool explore_is_owed(const struct explore *x, uint32_t client);

/* --- close.c --- */
/* What clients do that have their turn, once no new demands come. */
enum explore_closing {
	EXPLORE_GO_IDLE, /* they work for a moment and go idle */
	EXPLORE_WORK_ON /* they work for ever: the others have their turns all the same */
};
/* Runs on without new demands; the state is lost. */
void explore_close(struct explore *x, enum explore_closing closing);

/* --- key.c --- */
struct explore_key {
	uint64_t word[2];
};
/* Finds the symmetries of the world; without them where symmetry is false. */
void explore_key_begin(const struct explore_world *world, bool symmetry);
struct explore_key explore_key_of(const struct explore *x);
#endif
