/*
 * haul - copies between chunks and their places on the host, several under way at once
 *
 * One per order, in one context, which is current from open to close; a stream of its own that
 * waits for nobody. What is pinned is copied as it is; the rest goes through a small ring that is
 * pinned for the order, or if that fails, as the driver copies pageable memory. For one thread.
 * Bytes.
 */
#ifndef SL_RUNTIME_SWAP_HAUL_H
#define SL_RUNTIME_SWAP_HAUL_H

#include "runtime/store/cargo.h"

/* So many copies may be begun and not waited for. */
#define SL_HAUL_DEPTH 8
/* Slots of the ring: large enough that a copy's start does not show, small enough to be pinned in
 * passing. */
#define SL_HAUL_SLOTS      4
#define SL_HAUL_SLOT_BYTES (4 * SL_MIB)

struct sl_haul {
	CUcontext ctx;
	CUstream stream;
	CUevent done[SL_HAUL_DEPTH];      /* of tickets, by number */
	CUevent slot_done[SL_HAUL_SLOTS]; /* copies of slots */
	bool slot_busy[SL_HAUL_SLOTS];
	char *ring; /* NULL: none yet */
	bool ringless;
	uint64_t tickets;
};

/* On failure nothing is left. */
SL_MUST_CHECK CUresult sl_haul_open(struct sl_haul *haul, CUcontext ctx);
/* Waits for what is under way. Harmless after a failed open. */
void sl_haul_close(struct sl_haul *haul);

/* Begin a copy of `bytes` at address to the places, from them, or of zeros. No more than
 * SL_HAUL_DEPTH tickets may be open. After a failure what had been begun may still be under way
 * until sl_haul_settle. */
SL_MUST_CHECK CUresult sl_haul_out(struct sl_haul *haul, CUdeviceptr address,
	const struct sl_cargo *cargo, uint64_t *ticket);
SL_MUST_CHECK CUresult sl_haul_in(struct sl_haul *haul, CUdeviceptr address,
	const struct sl_cargo *cargo, uint64_t *ticket);
SL_MUST_CHECK CUresult sl_haul_zero(
	struct sl_haul *haul, CUdeviceptr address, uint64_t bytes, uint64_t *ticket);
/* Until that one is complete. */
SL_MUST_CHECK CUresult sl_haul_wait(struct sl_haul *haul, uint64_t ticket);
/* Until nothing is under way: all of it is done, or given up with a context that is broken. False:
 * nobody knows. */
bool sl_haul_settle(struct sl_haul *haul);

#endif
