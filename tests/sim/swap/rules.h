/*
 * rules - judges what a node that swaps does, from outside
 *
 * Fed with every event and every action, never with the node's own state. Two exceptions: the
 * longest wait, which is a promise, and what people are shown. Each judge names its promise
 * (promises.def), a sentence of design.md, section 4. Judges know only bytes, times, requests and
 * answers, and nothing of how a node decides. The first promise that breaks is told in `failed`.
 * Sizes are bytes. One thread.
 */
#ifndef SL_SIM_SWAP_RULES_H
#define SL_SIM_SWAP_RULES_H

#include <stdio.h>

#include "policy/node.h"

#define SWAP_GPUS      4
#define SWAP_WORKLOADS 24
#define SWAP_CLIENTS   56
#define SWAP_MEMBERS   64 /* with those that are removed and still hold something */
#define SWAP_PARTIES   128
#define SWAP_GRANTS    4

enum swap_promise {
#define SL_PROMISE(NAME, text) SWAP_##NAME,
#include "../common/promises.def"
#undef SL_PROMISE
	SWAP_PROMISES
};

struct swap_demand {
	bool used, held, there;
	uint64_t ask, bytes, epoch; /* epoch 0: waits */
	uint32_t gpu;
	sl_ns since, over_since; /* over_since: it would go beyond the limit */
};

/* Messages of one kind within a second. */
struct swap_rate {
	sl_ns since;
	uint32_t count;
};

/* A process, as events and actions have it. */
struct swap_party {
	bool used, alive, expected, swaps, wants;
	bool reports; /* its report has begun, and is not whole yet */
	sl_ns wants_at,
		owed_since; /* owed: only borrowers that may be stopped keep it from its memory */
	sl_ns fits_since; /* it waits on the host, though all that is wanted fits */
	uint64_t id, workload;
	uint64_t backing[SWAP_GPUS], evicted[SWAP_GPUS], hidden[SWAP_GPUS],
		held[SWAP_GPUS], dying[SWAP_GPUS];
	uint32_t
		doubted; /* GPUs where its reported held memory broke the promises: not all of it
			  * counts */
	/* measured when it left its GPUs; not there now */
	uint64_t away[SWAP_GPUS];
	sl_ns stayed_at;          /* when it refused to leave them */
	uint32_t stayed;          /* how often in a row, since its workload was parked */
	uint64_t paid[SWAP_GPUS]; /* measured beside hidden; the reserve pays them */
	struct swap_demand demand[SWAP_GRANTS];
	/* the open order */
	uint64_t order, order_bytes; /* order_bytes: that are still to move */
	uint32_t order_gpu;
	uint64_t returns[SWAP_GPUS]; /* bytes that a RESTORE has room for */
	bool is_restore, aborted;
	bool for_others;       /* an EVICT for what another workload lacks */
	uint64_t order_needed; /* of its order_bytes, what suffices for them */
	bool travels;          /* a DETACH (is_restore: an ATTACH) of the whole process */
	bool resumed;          /* comes back unasked */
	bool moved;            /* something has moved by the order */
	sl_ns order_at;
	sl_ns resident_at; /* when all of it was back */
	sl_ns refused_at; /* when it last refused an EVICT of itself; 0: it moved since */
	sl_ns failed_at;  /* when a RESTORE last failed; 0: one succeeded since */
	struct swap_rate vain, probes; /* vain: orders by which nothing moved */
	uint64_t store,
		trimmed; /* told to give back, not answered yet, and it needs all that it did */
	sl_ns trimmed_at;
	/* its stop: TERM since, or KILL; not once it was revoked, or the signal failed */
	bool termed, killed;
	sl_ns stop_at;
	/* what is known of its work */
	sl_ns pulse_at, pulse_idle, pulse_busy, worked_at;
	bool pulse_idles, proven;
	enum sl_client_condition condition;
	sl_ns condition_at; /* when it was first said not to run */
};

/* A workload. */
struct swap_member {
	bool used, removed, parked, by_itself, resuming, stopping;
	uint64_t id, request, limit;
	uint32_t mask, flags;
	int32_t priority;
	sl_ns warm_after, idle_grace;
	sl_ns resuming_since;
	sl_ns leaves_since; /* parked, not away yet, and nothing is under way; 0: it is not so */
	sl_ns active_at; /* last work or want of it */
	sl_ns wants_since,
		wait_bound; /* bound: when it must be whole; 0: does not want */
	uint64_t contest;   /* of which the bound takes account */
	enum sl_residency residency;
};

struct swap_rules {
	sl_ns now, wake;
	uint32_t rounds;       /* in which it only asked to be woken at once */
	struct sl_event event; /* of the step */
	bool swaps;            /* swap is in the chain and there is a pool */
	uint32_t chain;
	bool detaches;
	bool waits_first; /* what stands behind `wait` is tried once wait_max is over */
	sl_ns wait_max, stop_idle, stop_grace, untakeable_after;
	enum sl_last_resort last_resort;
	bool has_priority, quiet; /* quiet: no faults: bounds of time are judged */
	uint64_t pool, slack, pool_member;
	sl_ns turn_max;
	uint64_t capacity[SWAP_GPUS], reserve[SWAP_GPUS], unmanaged[SWAP_GPUS],
		link_out[SWAP_GPUS], link_in[SWAP_GPUS];
	uint32_t present_mask, lost_mask, fixed_mask; /* fixed: nothing leaves them */
	uint32_t forced_mask; /* GPUs: measured bytes broke the promises there */
	sl_ns recover_wait, recover_until;
	uint32_t members, parties; /* all that are used are before these */
	struct swap_member member[SWAP_MEMBERS];
	struct swap_party party[SWAP_PARTIES];
	uint32_t wanting; /* workloads, after the last step */
	uint64_t contest; /* counts changes of the competing clients and their bytes */
	/* Of the whole run: bytes that left for others, and what would have sufficed. */
	uint64_t moved, needed;
	char failed[600];
};

/* For printing. */
static inline uint64_t swap_ms(sl_ns span)
{
	return span / SL_MS;
}

static inline uint64_t swap_us(sl_ns span)
{
	return span / SL_US;
}

/* For another episode of the run. */
void swap_rules_init(struct swap_rules *rules);
void swap_rules_before(struct swap_rules *rules, sl_ns now, const struct sl_event *event);
void swap_rules_action(struct swap_rules *rules, const struct sl_action *action);
void swap_rules_after(struct swap_rules *rules, const struct sl_node *node);
/* All programs have been idle, and all faults mended, for a long time: no client may still wait. */
void swap_rules_drained(struct swap_rules *rules, const struct sl_node *node);
/* The run is over. */
void swap_rules_ran(struct swap_rules *rules);
void swap_rules_print(const struct swap_rules *rules, FILE *out);
/* The promise is broken; it is the first that counts. */
void swap_break(struct swap_rules *rules, enum swap_promise promise, const char *format,
	...) SL_PRINTF(3, 4);

/* Another message to the client, or order; STORM: too many within a second. */
void swap_count(struct swap_rules *r, const struct swap_party *p, struct swap_rate *rate,
	const char *what);

/* --- what there is (sums.c) --- */
struct swap_party *swap_party_of(struct swap_rules *rules, uint64_t client);
struct swap_member *swap_member_of(struct swap_rules *rules, uint64_t workload);
uint64_t swap_shareable(const struct swap_rules *rules, uint32_t gpu);
/* Of the workload: all that counts against its limit; its bytes on the GPU. */
uint64_t swap_use(const struct swap_rules *rules, uint64_t workload, uint32_t gpu);
uint64_t swap_resident(const struct swap_rules *rules, uint64_t workload, uint32_t gpu);
uint64_t swap_fixed(const struct swap_rules *rules, uint64_t workload, uint32_t gpu);
/* On the GPU, or with memory kept for it there, of all clients, dying ones too. */
uint64_t swap_physical(const struct swap_rules *rules, uint32_t gpu);
uint64_t swap_party_resident(const struct swap_party *p, uint32_t gpu);
uint64_t swap_party_granted(const struct swap_party *p, uint32_t gpu);
uint64_t swap_party_returning(const struct swap_party *p, uint32_t gpu);
uint64_t swap_party_leaving(const struct swap_party *p, uint32_t gpu);
uint64_t swap_party_evicted(const struct swap_party *p);
/* Memory of it is on the host, or all of it is off its GPUs. */
bool swap_party_is_out(const struct swap_party *p);
/* What the reserve can still pay. */
uint64_t swap_reserve_room(const struct swap_rules *r, uint32_t gpu);
uint64_t swap_evicted(const struct swap_rules *rules, uint64_t workload); /* 0: all */
uint64_t swap_leaving(const struct swap_rules *rules);                    /* of all */
/* The request that counts now: none while it is parked. */
uint64_t swap_request(const struct swap_member *m, uint32_t gpu);
/* Requests that stay unused once all that is under way has come. */
uint64_t swap_unclaimed(const struct swap_rules *r, uint32_t gpu);
/* What I2 bounds: evicted + leaving + overlap over all GPUs. */
uint64_t swap_i2(const struct swap_rules *rules);
/* How much of the overlap I2 allows in addition for a demand of the workload: bytes on requests of
 * higher priority, which the resolver `priority` takes back. 0 without that resolver, and for
 * no-swap and held memory. */
uint64_t swap_lent_above(const struct swap_rules *rules, const struct swap_member *m,
	const struct swap_demand *d);
/* Host memory for all clients, with what open orders need. */
uint64_t swap_made(const struct swap_rules *rules);
/* Moving all that the workload has out and back. */
sl_ns swap_cost(const struct swap_rules *rules, uint64_t workload);
/* It may hold memory on several GPUs, and is evicted from all of them. */
bool swap_is_spread(const struct swap_member *m);

/* --- which clients wait, and with what right (wants.c) --- */
bool swap_party_wants(const struct swap_party *p); /* to come back */
bool swap_party_asks(const struct swap_party *p);
bool swap_member_waits(const struct swap_rules *r, const struct swap_member *m);
bool swap_member_wants(const struct swap_rules *r, const struct swap_member *m);
/* What clients lack on the GPU; of one. */
uint64_t swap_needs(const struct swap_rules *r, uint32_t gpu);
uint64_t swap_party_needs(
	const struct swap_rules *r, const struct swap_party *p, uint32_t gpu);
/* A waiting demand within the request of its workload, also if that is parked. */
bool swap_is_entitled(const struct swap_rules *r, const struct swap_member *m,
	const struct swap_demand *d);
/* Of no GPU it has more than its request. */
bool swap_is_within(const struct swap_rules *r, const struct swap_member *m);
/* A request is one per GPU: a client with nothing on the host there takes nothing from others. */
bool swap_is_owed(const struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *m);
/* A client lacks memory on the GPU within its request, or above it; workload 0: of any. */
bool swap_lacks_rightly(struct swap_rules *r, uint64_t workload, uint32_t gpu);
/* The workload's demands there exceed its request, all together. */
bool swap_asks_above(
	const struct swap_rules *r, const struct swap_member *m, uint32_t gpu);
bool swap_lacks_burst(struct swap_rules *r, uint32_t gpu);
/* How long a client of the workload has lacked memory on the GPU; 0: none lacks any. workload 0: of
 * any. */
sl_ns swap_lacking_for(struct swap_rules *r, uint64_t workload, uint32_t gpu);
bool swap_recovers(const struct swap_rules *r);
/* How long the client has done nothing, as far as the node was told; and how long all of a workload
 * has, since it is back; but_away: its clients on the host do not run, and do not count. */
sl_ns swap_quiet_of(const struct swap_rules *r, const struct swap_party *p);
sl_ns swap_quiet_member(
	const struct swap_rules *r, const struct swap_member *m, bool but_away);
/* Bytes wanted on the GPU beyond what is free and on its way. */
uint64_t swap_lack(struct swap_rules *r, uint32_t gpu);
/* What the client lacks there could be had by moving memory that is not in use. */
bool swap_is_pool_ample(const struct swap_rules *r);
/* Its memory is never moved. */
static inline bool swap_stays(const struct swap_rules *r, const struct swap_member *m)
{
	return m->flags & SL_WORKLOAD_NO_SWAP || m->mask & r->fixed_mask;
}
/* And nothing else takes it back, so that all it has on a GPU is promised to it. */
static inline bool swap_keeps(const struct swap_rules *r, const struct swap_member *m)
{
	return !m->parked && swap_stays(r, m) && r->swaps && !r->has_priority;
}
/* The resolvers of the demand, in order: its workload's own, as far as the node has them, for a
 * burst. */
uint32_t swap_chain_of(
	const struct swap_rules *r, const struct swap_member *m, bool burst);
bool swap_chain_has(uint32_t chain, enum sl_resolver resolver);
/* Is the second one not before the first? */
bool swap_chain_begins(uint32_t chain, enum sl_resolver first, enum sl_resolver second);
bool swap_could_be_had(struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *m, uint32_t gpu);
/* The pool cannot take what would have to leave for those that wait. The node says so, and the next
 * resolver decides. */
bool swap_is_pool_in_the_way(const struct swap_rules *r);

/* --- books.c --- */
struct swap_member *swap_new_member(struct swap_rules *rules); /* NULL: no room */
void swap_books_event(struct swap_rules *rules, const struct sl_event *event);

/* Measured bytes there; the reserve pays what it has room for, and then for others. */
void swap_set_measured(
	struct swap_rules *r, struct swap_party *p, uint32_t gpu, uint64_t bytes);

/* --- away.c --- */
uint64_t swap_party_away(const struct swap_party *p);
bool swap_is_attaching(const struct swap_party *p);
/* What it would take there, beyond the reserve, if it came back now. */
uint64_t swap_entry(const struct swap_rules *r, const struct swap_party *p, uint32_t gpu);
/* I1 has room for that. */
bool swap_may_enter(const struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *m);
void swap_on_placed(struct swap_rules *r, struct swap_party *p, const struct sl_event *e);
void swap_on_away(struct swap_rules *r, struct swap_party *p, const struct sl_event *e);
void swap_on_detach(struct swap_rules *r, const struct sl_action *a);
void swap_on_attach(struct swap_rules *r, const struct sl_action *a);

/* --- moves.c --- */
void swap_judge_presence(
	struct swap_rules *r, const struct sl_node *node, struct swap_member *m);
void swap_on_moves(struct swap_rules *r, const struct sl_action *a);
void swap_on_refuse(struct swap_rules *r, const struct sl_action *a);
/* A RESUME was taken, with this limit. */
void swap_on_resume(struct swap_rules *r, struct swap_member *m, uint64_t limit);

/* --- judge.c --- */
/* I1 may be broken by measured memory only; after the event, and after the step. */
void swap_judge_i1(struct swap_rules *r);

/* --- stops.c --- */
/* It was told to end, and it is counted on that it will. */
bool swap_is_going(const struct swap_rules *r, const struct swap_party *p);
/* On the GPU: of one, or of all that were. */
uint64_t swap_party_going(
	const struct swap_rules *r, const struct swap_party *p, uint32_t gpu);
void swap_on_stop(struct swap_rules *r, const struct sl_action *a);

#endif
