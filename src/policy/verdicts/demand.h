/*
 * demand - the waiting demands of one GPU: their order, and who may have memory now
 *
 * Pure but for the queue links: reads the ledger, changes nothing in it. Sizes are bytes.
 *
 * Order: entitled before burst, higher priority first, then what clients in their turn ask for,
 * then arrival. A demand is entitled while it keeps its workload within its request; that changes
 * when siblings take or free memory, so the queue is refreshed before it is scanned.
 *
 * A burst demand fits if it fits into what is free less the others' unclaimed requests (plus
 * what the pool lets us lend); an entitled one if it fits into what is free. The first demand
 * that cannot be granted is the head. Others that fit may pass it, until it has been the head
 * for head_pass, or processes are stopped for it: then the free bytes are kept for it.
 *
 * A demand for memory that will be held never stands on unclaimed requests of others, whatever is
 * lent: nobody could take it back from there. If requests alone leave no room for it, all bursts
 * that may come free help nothing, and it is denied at once. One for bytes that are `there` already
 * takes nothing of what is free; it is granted or denied at once, so it waits only while nobody is
 * looked at (recovery).
 */
#ifndef SL_POLICY_DEMAND_H
#define SL_POLICY_DEMAND_H

#include "base/clock.h"
#include "base/list.h"
#include "policy/books/ledger.h"

struct sl_demand {
	struct sl_link queue;     /* in its GPU's queue while it waits */
	struct sl_link of_client; /* among its client's demands, waiting or granted */
	struct sl_ledger_holding *holding;
	uint64_t ask;      /* the client's number for it */
	uint64_t sequence; /* arrival, node-wide */
	uint64_t bytes;
	uint64_t epoch;    /* of the grant; 0 while it waits */
	sl_ns arrived;     /* for the notes about waiting */
	sl_ns burst_since; /* when it (last) became a burst demand; runs out by wait_max */
	sl_ns head_since;  /* when it (last) became the head */
	sl_ns retry_at;    /* not before, after a driver refusal; 0 for now */
	sl_ns refused_since; /* first of the driver refusals without a break; 0 if none */
	uint32_t refusals;
	uint32_t gpu;
	int32_t priority;
	bool entitled; /* as of the last refresh; what the queue is sorted by */
	bool grows;   /* a burst of a client in its turn, as of the last look; likewise */
	bool held;    /* what is made of it must not be evicted */
	bool there;   /* its bytes exist and are in use already; held as well */
	bool is_void; /* granted on a GPU that was lost since: counts for nothing */
	bool noted_entitled, noted_burst, noted_refusal, noted_served;
	bool stops;  /* processes were told to end for it: nobody passes it as the head */
	bool helped; /* others are, or will be, moved to the host for it */
	bool moving; /* what it lacks is on its way */
	bool retried;  /* that was looked at once more when its longest wait was over */
	bool met;      /* it was looked at as a burst demand that waits */
	bool returned; /* its client came back to the GPU for it already */
};

enum sl_demand_fit {
	SL_DEMAND_FITS,
	SL_DEMAND_WAITS,
	SL_DEMAND_OVER_LIMIT, /* with it its workload would exceed its limit, free or not */
	SL_DEMAND_OVER_PROMISE /* held, and no room for it beside the others' requests */
};

/* use + bytes is above the workload's limit; never of what is there. */
bool sl_demand_is_over_limit(const struct sl_demand *demand);
/* use + bytes (of what is there: fixed + bytes) is within the workload's request. */
bool sl_demand_is_entitled(const struct sl_demand *demand);
/* Bytes that others' requests leave for more of the workload's held memory beyond its own. */
uint64_t sl_demand_holdable(
	const struct sl_demand *demand, const struct sl_ledger *ledger);
/* lend_bytes: how far this GPU may be lent beyond the unclaimed requests (pool). */
enum sl_demand_fit sl_demand_fits(const struct sl_demand *demand,
	const struct sl_ledger *ledger, uint64_t lend_bytes, bool degraded);

/* Its longest wait as a burst begins now, and its end is looked at as if it were the first. */
void sl_demand_restart(struct sl_demand *demand, sl_ns now);
/* True if a comes before b. Total: sequence numbers are unique. */
bool sl_demand_is_before(const struct sl_demand *a, const struct sl_demand *b);
/* Leaves to the head of its queue, which has waited for so long as that, what it would fit in.
 * stops_lower: `priority` is there to end who is in the head's way. */
bool sl_demand_yields(const struct sl_demand *demand, const struct sl_demand *head,
	sl_ns waited, sl_ns head_pass, bool stops_lower);
/* Puts the demand in its place, by its `entitled` as it is set. O(waiting). */
void sl_demand_enqueue(struct sl_link *queue, struct sl_demand *demand);
/* Re-decides who is entitled, and moves those that changed. Returns whether any did; *fell is
 * set (never cleared) if one is no longer entitled. O(waiting) when none moves. */
bool sl_demand_refresh(struct sl_link *queue, sl_ns now, bool *fell);

/* One look through a queue, from the head on. Fill in the first part; zero the rest. */
struct sl_demand_scan {
	struct sl_link *queue;
	const struct sl_ledger *ledger;
	/* How far its GPU may be lent to this demand beyond the unclaimed requests. */
	uint64_t (*lend)(const void *lender, const struct sl_demand *demand);
	/* Of what is free on its GPU, what it must leave; UINT64_MAX: it is not to be served, nor
	 * kept for. */
	uint64_t (*kept)(const void *lender, const struct sl_demand *demand);
	const void *lender;
	sl_ns now, head_pass;
	bool degraded;
	bool stops_lower; /* see sl_demand_yields() */
	/* state of the scan */
	struct sl_link *at;     /* last one looked at; NULL: from the start */
	struct sl_demand *head; /* first one that cannot be granted */
	sl_ns head_since;
};

enum sl_demand_step {
	SL_DEMAND_END,        /* nothing more can be granted */
	SL_DEMAND_GRANT,      /* *out fits and is free to take it */
	SL_DEMAND_KEPT,       /* *out fits, but the bytes are kept for scan->head */
	SL_DEMAND_DENY_LIMIT, /* *out is over its workload's limit */
	SL_DEMAND_DENY_PROMISE, /* *out is held, and would stand on what others were promised */
};

/*
 * Looks on. After GRANT and DENY_* the caller takes *out off the queue before the next
 * call; KEPT has been stepped over already (to grant it all the same: set scan->at to
 * out->queue.prev first). old_head is the head of the last scan if it still waits, else NULL.
 */
enum sl_demand_step sl_demand_scan_next(struct sl_demand_scan *scan,
	const struct sl_demand *old_head, struct sl_demand **out);
/* At the end of a scan: scan->head is the head now, and old_head (may be NULL) is not. */
void sl_demand_crown(const struct sl_demand_scan *scan, struct sl_demand *old_head);

#endif
