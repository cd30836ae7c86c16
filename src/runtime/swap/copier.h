/*
 * copier - copies between chunks and their places on the host, several under way at once
 *
 * Each order opens a copier in one context, which is current from open to close. The copier has its
 * own non-blocking stream. Pinned memory is copied directly, other memory through a small ring that
 * is pinned for the order. If the ring cannot be pinned, the driver copies from and to pageable
 * memory. For one thread. Bytes.
 */
#ifndef SL_RUNTIME_SWAP_COPIER_H
#define SL_RUNTIME_SWAP_COPIER_H

#include "runtime/store/host_copy.h"

/* Most copies begun and not yet waited for. */
#define SL_COPIER_DEPTH 8
/* Slots of the ring: large enough to hide the start of a copy, small enough to be pinned
 * quickly. */
#define SL_COPIER_SLOTS      4
#define SL_COPIER_SLOT_BYTES (4 * SL_MIB)

struct sl_copier {
	CUcontext ctx;
	CUstream stream;
	CUevent done[SL_COPIER_DEPTH];      /* by ticket number, modulo the depth */
	CUevent slot_done[SL_COPIER_SLOTS]; /* the slot's copy has ended */
	bool slot_busy[SL_COPIER_SLOTS];
	char *ring; /* NULL: none yet */
	bool ringless;
	uint64_t tickets;
};

/* On failure nothing is left behind. */
SL_MUST_CHECK CUresult sl_copier_open(struct sl_copier *copier, CUcontext ctx);
/* Waits for copies under way. Harmless after a failed open. */
void sl_copier_close(struct sl_copier *copier);

/* Begin a copy of the memory at address to the places (out), from them (in), or of zeros to it. At
 * most SL_COPIER_DEPTH tickets may be open. After a failure earlier copies may be under way until
 * sl_copier_settle. */
SL_MUST_CHECK CUresult sl_copier_out(struct sl_copier *copier, CUdeviceptr address,
	const struct sl_host_copy *host, uint64_t *ticket);
SL_MUST_CHECK CUresult sl_copier_in(struct sl_copier *copier, CUdeviceptr address,
	const struct sl_host_copy *host, uint64_t *ticket);
SL_MUST_CHECK CUresult sl_copier_zero(
	struct sl_copier *copier, CUdeviceptr address, uint64_t bytes, uint64_t *ticket);
/* Waits until that copy is complete. */
SL_MUST_CHECK CUresult sl_copier_wait(struct sl_copier *copier, uint64_t ticket);
/* Waits until no copy is under way: all are done, or given up with a broken context. False:
 * unknown. */
bool sl_copier_settle(struct sl_copier *copier);

#endif
