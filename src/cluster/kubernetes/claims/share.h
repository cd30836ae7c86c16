/*
 * share - what a ResourceClaim has of a node's GPUs
 *
 * Reads status.allocation of a claim, as the scheduler wrote it: which devices of our driver on
 * this node, and how much of each. A claim is one workload, so all of its devices have the same
 * amounts. Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_CLAIMS_SHARE_H
#define SL_CLUSTER_KUBERNETES_CLAIMS_SHARE_H

#include <jansson.h>

#include "base/error.h"

#define SL_SHARE_DEVICES    8
#define SL_SHARE_NAME_BYTES 254 /* names have at most 253 */

enum {
	SL_SHARE_OK = 0,
	SL_SHARE_NONE, /* nothing of ours is allocated to it on this node */
	SL_SHARE_BAD   /* err says what is wrong and the remedy */
};

struct sl_share_device {
	char device[SL_SHARE_NAME_BYTES];
	char request[SL_SHARE_NAME_BYTES]; /* of the claim's spec */
	char id[64];                       /* shareID, "": the whole device */
};

struct sl_share {
	char uid[64];
	char namespace[SL_SHARE_NAME_BYTES], name[SL_SHARE_NAME_BYTES];
	char pod[SL_SHARE_NAME_BYTES]; /* the first that it is reserved for, or "" */
	/* Of each device, in bytes: the request and the limit of its workload. Limit 0: none was
	 * given. Memory UINT64_MAX: all of it. */
	uint64_t memory, limit;
	uint32_t count;
	struct sl_share_device devices[SL_SHARE_DEVICES];
};

/* Of a claim, as the API server has it, for the pool (node) of that name. */
SL_MUST_CHECK int sl_share_read(const json_t *claim, const char *pool,
	struct sl_share *out, struct sl_error *err);

/* On a node that publishes factor_pct percent of its memory (slice.h; 0 and 100: what it has), the
 * request is that part of what is claimed. The limit is what is claimed, or the claim's own, as
 * far as the smallest of its GPUs has so much; own_bytes 0: that is not known. */
void sl_share_divide(struct sl_share *share, unsigned int factor_pct, uint64_t own_bytes);

#endif
