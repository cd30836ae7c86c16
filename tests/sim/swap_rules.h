/*
 * swap_rules - what a node that swaps must never do, by accounts of its own
 *
 * Fed with every event and every action, never with what the node says of itself (but for the
 * longest wait, which is a promise it makes, and the numbers that are compared). Each rule is a
 * sentence of design.md, section 4; the first that breaks is told in `failed`. Sizes are bytes. One
 * thread.
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

struct swap_demand {
	bool used, held, there;
	uint64_t ask, bytes, epoch; /* epoch 0: waits */
	uint32_t gpu;
	sl_ns since;
};

/* A process, as events and actions have it. */
struct swap_party {
	bool used, alive, expected, swaps, wants;
	sl_ns wants_at,
		owed_since; /* owed: nothing but others' bursts keeps it from what is its */
	uint64_t id, workload;
	uint64_t backing[SWAP_GPUS], evicted[SWAP_GPUS], hidden[SWAP_GPUS],
		held[SWAP_GPUS], dying[SWAP_GPUS];
	uint64_t paid[SWAP_GPUS]; /* measured beside hidden; the reserve pays them */
	struct swap_demand demand[SWAP_GRANTS];
	/* the open order */
	uint64_t order, order_bytes; /* order_bytes: that are still to move */
	uint64_t order_for;          /* of an EVICT: the workload */
	uint32_t order_gpu;
	bool is_restore, aborted, comes,
		resumed; /* comes: from the first RESTORE until the last is
	                                        done; resumed: comes back unasked */
	bool part,
		gives; /* a RESTORE of less than there is; an EVICT of which some has left */
	/* Somebody left for it, or a part of it came back, and nobody gave up since: it had its
	 * place then */
	bool begun;
	uint64_t part_out,
		vain; /* on the host when it was given; a part of which nothing came */
	sl_ns order_at;
	/* When an EVICT was aborted at the instant it was given; let_go: how often then */
	sl_ns let_go_at;
	uint32_t let_go;
	sl_ns resident_at; /* when all of it was back */
	sl_ns refused_at; /* when it last refused an EVICT of itself; 0: it moved since */
	sl_ns failed_at;  /* when a RESTORE last failed; 0: one succeeded since */
	uint32_t refusals; /* EVICTs in a row that it refused of itself */
	uint64_t store,
		trimmed; /* told to give back, not answered yet, and it needs all that it did */
	sl_ns trimmed_at;
	/* its stop: TERM since, or KILL; not once it was revoked, or the signal failed */
	bool termed, killed;
	enum sl_reason stop_reason;
	sl_ns stop_at;
	/* what is known of its work */
	sl_ns pulse_at, pulse_idle, pulse_busy, worked_at;
	bool pulse_idles, proven;
	enum sl_client_condition condition;
	sl_ns condition_at; /* when it was first said not to run */
};

/* A workload. */
struct swap_member {
	bool used, removed, parked, resuming, stopping;
	uint64_t id, request, limit;
	uint32_t mask, flags;
	int32_t priority;
	sl_ns warm_after, idle_grace;
	/* When nobody of it waited any more to come back, or it got its first memory */
	sl_ns turn_began, whole_at; /* whole_at: it may have begun as late as that */
	sl_ns resuming_since;
	sl_ns active_at; /* last work or want of it */
	sl_ns wants_since,
		wait_bound; /* bound: when it must be whole; 0: does not want */
	uint64_t contest;   /* of which the bound takes account */
	enum sl_residency residency;
};

struct swap_rules {
	sl_ns now, wake;
	struct sl_event event; /* of the step */
	bool swaps;            /* swap is in the chain and there is a pool */
	bool waits;            /* a burst that nothing can help is not denied at once */
	bool waits_first; /* what stands behind `wait` is tried once wait_max is over */
	sl_ns wait_max, stop_idle, stop_grace, untakeable_after;
	enum sl_last_resort last_resort;
	bool has_priority, quiet; /* quiet: no faults: bounds of time are judged */
	uint64_t pool, slack, pool_member;
	sl_ns turn_max;
	uint32_t min_share_pm;
	uint64_t capacity[SWAP_GPUS], reserve[SWAP_GPUS], unmanaged[SWAP_GPUS],
		link_out[SWAP_GPUS], link_in[SWAP_GPUS];
	uint32_t present_mask, lost_mask;
	uint32_t forced_mask; /* GPUs: measured bytes broke the promises there */
	sl_ns recover_wait, recover_until;
	uint32_t members, parties; /* all that are used are before these */
	struct swap_member member[SWAP_MEMBERS];
	struct swap_party party[SWAP_PARTIES];
	uint32_t wanting; /* workloads, after the last step */
	uint64_t contest; /* counts changes of who competes with how much */
	uint64_t evicts, restores, parts;
	sl_ns longest_seen;
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

void swap_rules_init(struct swap_rules *rules);
void swap_rules_before(struct swap_rules *rules, sl_ns now, const struct sl_event *event);
void swap_rules_action(struct swap_rules *rules, const struct sl_action *action);
void swap_rules_after(struct swap_rules *rules, const struct sl_node *node);
/* Everybody has gone idle and all that was broken is mended since a long time: nobody may still
 * wait. */
void swap_rules_drained(struct swap_rules *rules, const struct sl_node *node);
void swap_rules_print(const struct swap_rules *rules, FILE *out);
void swap_rules_fail(struct swap_rules *rules, const char *format, ...) SL_PRINTF(2, 3);

/* --- between swap_books.c (what there is), swap_rules.c (what may not be done) and swap_judge.c
 * (what may not be so) --- */
struct swap_party *swap_party_of(struct swap_rules *rules, uint64_t client);
struct swap_member *swap_member_of(struct swap_rules *rules, uint64_t workload);
struct swap_member *swap_new_member(struct swap_rules *rules); /* NULL: no room */
uint64_t swap_shareable(const struct swap_rules *rules, uint32_t gpu);
/* Of the workload: all that counts against its limit; what of it is on the GPU. */
uint64_t swap_use(const struct swap_rules *rules, uint64_t workload, uint32_t gpu);
uint64_t swap_resident(const struct swap_rules *rules, uint64_t workload, uint32_t gpu);
uint64_t swap_fixed(const struct swap_rules *rules, uint64_t workload, uint32_t gpu);
/* On the GPU, or with room kept for it, of everybody, dying ones too. */
uint64_t swap_physical(const struct swap_rules *rules, uint32_t gpu);
uint64_t swap_party_granted(const struct swap_party *p, uint32_t gpu);
uint64_t swap_party_returning(const struct swap_party *p, uint32_t gpu);
uint64_t swap_party_leaving(const struct swap_party *p, uint32_t gpu);
uint64_t swap_party_evicted(const struct swap_party *p);
bool swap_party_asks(const struct swap_party *p);
/* Of the overlap on its GPU, what a demand of the workload may cause all the same: on requests of
 * higher priority that `priority` takes back. */
uint64_t swap_lent_above(const struct swap_rules *rules, const struct swap_member *m,
	const struct swap_demand *d);
/* evicted + leaving + overlap over all GPUs, of the node. */
uint64_t swap_i2(const struct swap_rules *rules);
/* Host memory there is for everybody, with what open orders need. */
uint64_t swap_made(const struct swap_rules *rules);
uint64_t swap_evicted(const struct swap_rules *rules, uint64_t workload); /* 0: all */
uint64_t swap_leaving(const struct swap_rules *rules); /* of everybody */
/* The request that counts now: none while it is parked. */
uint64_t swap_request(const struct swap_member *m, uint32_t gpu);
/* Moving what the client has on the GPU out and back; all of the workload. */
sl_ns swap_party_cost(
	const struct swap_rules *rules, const struct swap_party *p, uint32_t gpu);
sl_ns swap_cost(const struct swap_rules *rules, uint64_t workload);
/* It may hold memory on several GPUs, and is evicted from all of them. */
bool swap_is_spread(const struct swap_member *m);
/* --- swap_stops.c --- */
/* It was told to end, and it is counted on that it will. */
bool swap_is_going(const struct swap_rules *r, const struct swap_party *p);
/* On the GPU: of all that are being stopped. */
uint64_t swap_going(const struct swap_rules *r, uint32_t gpu);
/* Requests that nobody will use once all that is under way has come: also of whom a process
 * ends. */
uint64_t swap_unclaimed_then(const struct swap_rules *r, uint32_t gpu);
void swap_on_stop(struct swap_rules *r, const struct sl_action *a);
/* Others have as much that they do not use, and nothing keeps it from being moved. */
bool swap_could_be_moved(
	struct swap_rules *r, const struct swap_party *p, const struct swap_demand *d);
/* --- swap_back.c --- */
/* What the host needs at most while one after the other comes back for whom others leave; as if he
 * had so many times as much there, where more is asked for than the least. */
uint64_t swap_back_and_forth(struct swap_rules *r, uint32_t times);
/* Of an EVICT for the other workload's burst, which is open. */
void swap_judge_way_back(struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *other);
/* --- swap_rules.c, for swap_judge.c --- */
bool swap_party_wants(const struct swap_party *p);
/* Of no GPU it has more than its request. */
bool swap_is_within(const struct swap_rules *r, const struct swap_member *m);
/* A request is one per GPU: where nothing of the client is on the host, it takes nothing from
 * anybody. */
bool swap_is_owed(const struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *m);
bool swap_member_waits(const struct swap_rules *r, const struct swap_member *m);
bool swap_member_wants(const struct swap_rules *r, const struct swap_member *m);
bool swap_is_entitled(const struct swap_rules *r, const struct swap_member *m,
	const struct swap_demand *d);
/* How long a turn of it is at least. */
sl_ns swap_least_turn(const struct swap_rules *r, const struct swap_member *m);
uint64_t swap_needs(const struct swap_rules *r, uint32_t gpu);
uint64_t swap_idle_bytes(struct swap_rules *r, uint64_t workload, uint32_t gpu);
bool swap_recovers(const struct swap_rules *r);
sl_ns swap_quiet_of(const struct swap_rules *r, const struct swap_party *p);
sl_ns swap_idle_of(const struct swap_rules *r, const struct swap_party *p);

/* --- swap_judge.c --- */
/* The pool cannot take what would have to go for those that want something: that is said, and the
 * next resolver's. */
bool swap_is_pool_in_the_way(const struct swap_rules *r);

void swap_books_event(struct swap_rules *rules, const struct sl_event *event);

#endif
