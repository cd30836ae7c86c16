/*
 * deadlock - which waiting clients can still be served if all others give what they can; which
 * demand gives way if not
 *
 * Pure but for the scratch and answer fields of its parties and claims. Sizes are bytes.
 *
 * The rule is the banker's. Clients that do not wait could give everything they have. A waiting
 * client keeps what it has until it is served. It *fits* when, on every GPU it waits on, at least
 * one of its demands could be granted from what is not kept. Then it could finish, so it adds its
 * bytes; repeat. The clients that remain are hopeless: each waits for memory that only others of
 * them hold. One burst demand among them gets out-of-memory: the youngest whose client alone would
 * let another one continue by giving what it holds, or else the youngest.
 *
 * A workload with hopeless clients keeps the larger of their bytes and its request: bursts may not
 * use the rest of its request, unless they stand on requests of higher priority. A waiting client
 * whose memory can be moved to the host gives it, and is not hopeless: its turn comes. A workload
 * all of whose clients could finish could also end, and gives its request with its bytes. Dying
 * bytes will become free. On a degraded GPU the measurement may improve at any moment, so nothing
 * there is hopeless (the longest wait bounds it).
 */
#ifndef SL_POLICY_DEADLOCK_H
#define SL_POLICY_DEADLOCK_H

#include "base/list.h"
#include "policy/books/ledger.h"

/* A demand that waits. */
struct sl_deadlock_demand {
	struct sl_link of_client;
	uint64_t sequence; /* arrival, node-wide */
	uint64_t bytes;
	uint32_t gpu;
	bool entitled;
	bool held; /* memory made of it must not be evicted */
};

/* One per workload: the caller's facts, and scratch. */
struct sl_deadlock_claim {
	const void *of; /* the workload, for the caller */
	int32_t priority;
	bool stands; /* its bursts may stand on unclaimed requests of higher priority */
	/* scratch */
	uint32_t level;
	uint32_t parties; /* its clients in the kept set */
	uint64_t kept_bytes[SL_LEDGER_GPUS_MAX];
};

/* One client with waiting demands. */
struct sl_deadlock_party {
	struct sl_link link;    /* among the waiting parties of the node */
	struct sl_link demands; /* of sl_deadlock_demand.of_client */
	const struct sl_ledger_holding *holding;
	struct sl_deadlock_claim *claim;
	bool waits; /* in: it has been idle for idle_wait; otherwise it could still give */
	bool gives; /* in: its memory goes to the host if needed */
	bool stuck; /* out: hopeless */
	bool helps; /* out of sl_deadlock_helpers */
};

struct sl_deadlock_scene {
	const struct sl_link *parties; /* heads sl_deadlock_party.link */
	const struct sl_ledger *ledger;
	const uint64_t *lend_bytes; /* per GPU */
	uint32_t degraded_mask;
};

struct sl_deadlock_plan {
	uint32_t hopeless;                 /* clients; their parties are marked stuck */
	struct sl_deadlock_demand *victim; /* to be denied; NULL: none may be */
};

/* O(waiting clients x rounds), usually two rounds; with a victim, at most 64 times that. */
struct sl_deadlock_plan sl_deadlock_find(const struct sl_deadlock_scene *scene);

/*
 * Free bytes are kept for the demand `head` of the party `owner`; other demands that would fit wait
 * behind it. Marks with `helps` the parties that must pass it, because the head cannot be served
 * before they give what they hold. Marks none if non-waiting clients alone could serve it, and
 * never a party that holds nothing.
 */
void sl_deadlock_helpers(const struct sl_deadlock_scene *scene,
	const struct sl_deadlock_demand *head, const struct sl_deadlock_party *owner);

#endif
