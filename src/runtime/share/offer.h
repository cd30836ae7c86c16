/*
 * offer - memory of ours that other processes may open
 *
 * An offer belongs to a backing: a region's or a slab's, so small blocks beside each other share
 * one. Its key is 128 random bits; a process that knows it may open all of the backing (as with the
 * driver's own handles of small blocks). The daemon keeps a descriptor of each chunk until the
 * backing goes. A daemon that comes back, or a new one, is offered everything again by a thread of
 * its own, since exporting is the driver's and the agent never calls it. Offered memory is held.
 * Thread-safe; the session's lock guards offers, and nothing is waited for under it.
 */
#ifndef SL_RUNTIME_SHARE_OFFER_H
#define SL_RUNTIME_SHARE_OFFER_H

#include "base/cuda_types.h"
#include "wire/wire.h"

struct sl_offer;

#define SL_OFFER_KEY_BYTES 16

/* What others need to know about a block. */
struct sl_offered {
	uint8_t key[SL_OFFER_KEY_BYTES];
	uint64_t offset; /* of the block in what is offered */
	uint64_t bytes, id;
};

enum sl_offer_outcome {
	SL_OFFER_OURS = 0, /* *result tells; *out is set for CUDA_SUCCESS */
	SL_OFFER_FOREIGN,  /* nothing of ours lies there: the driver's affair */
};

/* Offers what is allocated around ptr, if that was not done before, and waits until the daemon
 * has it, as long as there is none. */
SL_MUST_CHECK int sl_offer_get(CUdeviceptr ptr, struct sl_offered *out, CUresult *result);
/* Was it made by this process? */
SL_MUST_CHECK bool sl_offer_is_ours(const uint8_t key[SL_OFFER_KEY_BYTES]);

/* In the child of a fork. */
void sl_offer_forget(void);

/* --- for the session, under its lock --------------------------------------------------------- */

void sl_offer_on_offered(const struct sl_msg_ipc_offered *msg);
/* On a new line: everything again. */
void sl_offer_again(void);
/* The daemon no longer wants us. */
void sl_offer_refuse_all(void);

#endif
