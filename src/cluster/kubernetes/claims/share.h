/*
 * share - the devices of one node that a ResourceClaim was given, and its amounts
 *
 * Reads status.allocation of a claim, which the scheduler wrote: devices of this driver on this
 * node, and the amounts. A claim is one workload, so all of its devices have the same amounts.
 * Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_CLAIMS_SHARE_H
#define SL_CLUSTER_KUBERNETES_CLAIMS_SHARE_H

#include <jansson.h>

#include "base/error.h"

#define SL_SHARE_DEVICES    8
#define SL_SHARE_NAME_BYTES 254 /* names have at most 253 */

enum {
	SL_SHARE_OK = 0,
	SL_SHARE_NONE, /* it has no device of this driver on this node */
	SL_SHARE_BAD   /* err has the fault and the remedy */
};

struct sl_share_device {
	char device[SL_SHARE_NAME_BYTES];
	char request[SL_SHARE_NAME_BYTES]; /* name in the claim's spec */
	char id[64];                       /* shareID, "": the whole device */
};

struct sl_share {
	char uid[64];
	char namespace[SL_SHARE_NAME_BYTES], name[SL_SHARE_NAME_BYTES];
	char pod[SL_SHARE_NAME_BYTES]; /* the first that it is reserved for, or "" */
	/* Per device, in bytes: request and limit of the workload. Limit 0: none given. Memory
	 * UINT64_MAX: all of it. */
	uint64_t memory, limit;
	uint64_t compute_pct, compute_limit_pct; /* of each GPU's time; 0: none given */
	uint32_t count;
	struct sl_share_device devices[SL_SHARE_DEVICES];
};

/* Are these percents of a GPU's time a request and its limit (0: none)? */
bool sl_share_compute_fits(uint64_t compute, uint64_t limit);

/* Reads a claim of the API server, for the pool (node) of that name. */
SL_MUST_CHECK int sl_share_read(const json_t *claim, const char *pool,
	struct sl_share *out, struct sl_error *err);

/* Converts amounts on a node that publishes factor_pct percent of its memory (slice.h; 0 and 100:
 * the actual size). The request shrinks by that factor. The limit is the claim's own limit, or else
 * the claimed memory; it is at most own_bytes, what the smallest GPU of the claim has (0:
 * unknown). */
void sl_share_divide(struct sl_share *share, unsigned int factor_pct, uint64_t own_bytes);

#endif
