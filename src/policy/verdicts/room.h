/*
 * room - whether a claim fits, on the GPUs and in the pool (decision 0037, section 3.3)
 *
 * Pure: sums in, a verdict out; it knows no clock, no order of claims and no list of leavers. Sizes
 * are bytes. The copy is one node: the sums per GPU that a plan works on, and what the pool holds.
 * The caller adds each workload once (sl_room_load), then each claim that gets a seat
 * (sl_room_add), which moves the claim's bytes from `rest` to `seats`.
 *
 *   fixed     on the GPU and cannot leave now; with open grants and the room of open RESTOREs
 *   seats     needs of seated claims: resident, evicted and asked for
 *   away      of seats: evicted
 *   rest      on the GPU, movable, not leaving, without a seat
 *   there     fixed + seats - away + rest: what is on the GPU when leaving bytes have left, demands
 *             are granted and no body is back
 *   out       max(0, fixed + seats + rest - shareable): what must leave for the seats; beside a
 *             burst that stays, also the requests that no seat, fixed or other byte there covers
 *   unclaimed part of requests that no byte of there covers
 *   within    of rest: what becomes unclaimed if it leaves
 *
 * None of these includes bytes that are about to become free (dying, leaving).
 */
#ifndef SL_POLICY_ROOM_H
#define SL_POLICY_ROOM_H

#include "policy/books/ledger.h"

/* One workload on one GPU. */
struct sl_room_share {
	uint64_t request_bytes;
	uint64_t fixed_bytes, seats_bytes, away_bytes, rest_bytes;
	uint64_t lasts_bytes; /* of fixed: no pending answer ends it */
};

struct sl_room_workload {
	/* What the pool may still take of it, beyond its evicted and leaving bytes;
	 * SL_LEDGER_BYTES_MAX: no bound. */
	uint64_t part_bytes;
	struct sl_room_share on[SL_LEDGER_GPUS_MAX];
};

struct sl_room_gpu {
	uint64_t shareable_bytes;
	uint64_t host_bytes;  /* evicted and leaving of this GPU */
	uint64_t chunk_bytes; /* a leaver may give this much more than told */
	bool lost, degraded;  /* degraded: I1 is broken */
	/* A burst that stays has a seat here: beside it, requests that no byte covers must stay
	 * free, except above_bytes (the least of such seats). */
	bool holds;
	uint64_t above_bytes;
	/* Sums over workloads, kept by sl_room_load() and sl_room_add(). */
	uint64_t fixed_bytes, seats_bytes, away_bytes, rest_bytes;
	uint64_t unclaimed_bytes, within_bytes;
	uint64_t uncovered_bytes; /* of requests, what neither seats nor fixed cover */
	uint64_t wanting_bytes;   /* of these, what rest does not cover either */
	/* Of rest: what its workloads' parts of the pool let leave */
	uint64_t lets_bytes;
	uint64_t gives_bytes; /* the same for movable bytes above requests */
};

/* What one client could have to bring back: its movable bytes, evicted ones too, per GPU. */
struct sl_room_client {
	uint64_t bytes[SL_LEDGER_GPUS_MAX];
};

/* Zero-initialise; set pool, gpus and the first fields of each GPU, then load the workloads. */
struct sl_room {
	uint64_t pool_bytes, slack_bytes;
	uint64_t returning_bytes; /* of what the pool holds: the room of open RESTOREs */
	/* Kept up to date: of rest on all GPUs, what parts let leave */
	uint64_t lets_bytes;
	uint32_t gpus;
	/* The clients that are not parked; one that another client exceeds on each GPU may be
	 * omitted. Not owned. */
	const struct sl_room_client *client;
	uint32_t clients;
	struct sl_room_gpu gpu[SL_LEDGER_GPUS_MAX];
};

/* A claim on one GPU: movable bytes of the body, and what its demand asks for. */
struct sl_room_need {
	/* Both 0 where the body has a seat, or none is claimed */
	uint64_t there_bytes, away_bytes;
	uint64_t asks_bytes;
};

struct sl_room_claim {
	struct sl_room_workload *workload; /* not owned; sl_room_add() changes it */
	bool burst;                        /* some of it is above a request */
	bool demand; /* of a burst: its demand is one, not only its body */
	bool stays;  /* what it asks for cannot be moved once granted: held, no-swap */
	bool keeps;  /* nor can its body, once it is back */
	/* It asks for more within its request where requests take turns. Memory within other
	 * requests that leaves for it needs room in the pool for its way back. */
	bool turns;
	struct sl_room_need need[SL_LEDGER_GPUS_MAX];
	/* Unclaimed requests per GPU that need no way back: those of workloads of a higher
	 * priority, with `priority` in the chain. 0 for a claim that is held or never moved. */
	uint64_t above_bytes[SL_LEDGER_GPUS_MAX];
	/* Of a demand: its client's, without what it asks for */
	struct sl_room_client own;
};

enum sl_room_code {
	SL_ROOM_OK,
	SL_ROOM_LOST,
	SL_ROOM_DEGRADED,
	SL_ROOM_GPU,   /* fixed bytes and seats leave too little */
	SL_ROOM_BOUND, /* parts of workloads in the pool are too small */
	SL_ROOM_POOL
};

struct sl_room_verdict {
	enum sl_room_code code;
	uint32_t gpu; /* of LOST, DEGRADED and GPU; of BOUND the first one */
	uint64_t lacks_bytes;
	bool moves; /* OK: the claim makes more memory leave */
};

/* Adds a workload with nothing seated. */
void sl_room_load(struct sl_room *room, const struct sl_room_workload *workload);
/* Removes (gone) or restores bytes of the workload there: of fixed, seats (away_bytes of them
 * evicted), rest, and its request. */
void sl_room_take(struct sl_room *room, struct sl_room_workload *workload, uint32_t gpu,
	const struct sl_room_share *bytes, bool gone);
/* Gives the claim a seat. */
void sl_room_add(struct sl_room *room, const struct sl_room_claim *claim);
/* What of it is there, and how much of that is above its request. */
uint64_t sl_room_here(const struct sl_room_share *share);
uint64_t sl_room_burst(const struct sl_room_share *share);
/* What must leave the GPU for the seats; and if that is 0, how much more fits. */
uint64_t sl_room_out(const struct sl_room_gpu *gpu);
uint64_t sl_room_spare(const struct sl_room_gpu *gpu);
/* Would it fit? A sum that the claim does not increase is never too large. O(GPUs + clients). */
SL_MUST_CHECK struct sl_room_verdict sl_room_for(
	const struct sl_room *room, const struct sl_room_claim *claim);

#endif
