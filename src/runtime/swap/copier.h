/*
 * copier - copies between chunks and their places on the host, several under way at once
 *
 * One per order, in one context, which is current from open to close, with a non-blocking stream of
 * its own. Pinned memory is copied as it is; the rest goes through a small ring that is pinned for
 * the order or, if that fails, as the driver copies pageable memory. For one thread. Bytes.
 */
#ifndef SL_RUNTIME_SWAP_COPIER_H
#define SL_RUNTIME_SWAP_COPIER_H

#include "runtime/store/host_copy.h"

/* So many copies may be begun and not waited for. */
#define SL_COPIER_DEPTH 8
/* Slots of the ring: large enough that a copy's start does not show, small enough to be pinned in
 * passing. */
#define SL_COPIER_SLOTS      4
#define SL_COPIER_SLOT_BYTES (4 * SL_MIB)

struct sl_copier {
	CUcontext ctx;
	CUstream stream;
	CUevent done[SL_COPIER_DEPTH];      /* of tickets, by number */
	CUevent slot_done[SL_COPIER_SLOTS]; /* copies of slots */
	bool slot_busy[SL_COPIER_SLOTS];
	char *ring; /* NULL: none yet */
	bool ringless;
	uint64_t tickets;
};

/* On failure nothing is left. */
SL_MUST_CHECK CUresult sl_copier_open(struct sl_copier *copier, CUcontext ctx);
/* Waits for what is under way. Harmless after a failed open. */
void sl_copier_close(struct sl_copier *copier);

/* Begin a copy of `bytes` at address to the places, from them, or of zeros. No more than
 * SL_COPIER_DEPTH tickets may be open. After a failure what had been begun may still be under way
 * until sl_copier_settle. */
SL_MUST_CHECK CUresult sl_copier_out(struct sl_copier *copier, CUdeviceptr address,
	const struct sl_host_copy *host, uint64_t *ticket);
SL_MUST_CHECK CUresult sl_copier_in(struct sl_copier *copier, CUdeviceptr address,
	const struct sl_host_copy *host, uint64_t *ticket);
SL_MUST_CHECK CUresult sl_copier_zero(
	struct sl_copier *copier, CUdeviceptr address, uint64_t bytes, uint64_t *ticket);
/* Until that one is complete. */
SL_MUST_CHECK CUresult sl_copier_wait(struct sl_copier *copier, uint64_t ticket);
/* Until nothing is under way: all of it is done, or given up with a context that is broken. False:
 * nobody knows. */
bool sl_copier_settle(struct sl_copier *copier);

#endif
