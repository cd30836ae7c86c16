/*
 * offer - memory of ours that other processes may open
 *
 * An offer belongs to a backing, of a region or a slab, so small blocks beside each other share
 * one. Its key is 128 random bits; a process that knows it may open the whole backing (as with the
 * driver's own handles of small blocks). The daemon keeps a descriptor of each chunk until the
 * backing goes. When a daemon comes back, a helper thread offers everything again, since exporting
 * calls the driver and the agent must not. Offered memory is held. Thread-safe; the session's lock
 * guards offers, and nothing waits under it.
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
	uint64_t offset; /* of the block in the offered memory */
	uint64_t bytes, id;
};

enum sl_offer_outcome {
	SL_OFFER_OURS = 0, /* *result has the outcome; CUDA_SUCCESS: *out is set */
	SL_OFFER_FOREIGN,  /* no memory of ours: leave it to the driver */
};

/* Offers the allocation around ptr, unless it is offered already, and waits until a daemon has the
 * offer, even if no daemon runs now. */
SL_MUST_CHECK int sl_offer_get(CUdeviceptr ptr, struct sl_offered *out, CUresult *result);
/* Did this process make the offer? */
SL_MUST_CHECK bool sl_offer_is_ours(const uint8_t key[SL_OFFER_KEY_BYTES]);

/* In the child of a fork. */
void sl_offer_forget(void);

/* --- for the session, under its lock --------------------------------------------------------- */

void sl_offer_on_offered(const struct sl_msg_ipc_offered *msg);
/* On a new line: offers everything again. */
void sl_offer_again(void);
/* The daemon no longer wants us. */
void sl_offer_refuse_all(void);

#endif
