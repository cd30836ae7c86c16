/*
 * backing - a reserved range of addresses with driver handles behind it
 *
 * A range is backed by chunks of equal size (the last may be smaller), with one handle each. A
 * chunk is the unit of cost and of eviction. Handles are exportable where the device supports it;
 * this costs nothing until one is exported. Works on the caller's struct; no lock. Bytes; all sizes
 * are multiples of SL_DEVICE_GRAIN. No current context is needed.
 */
#ifndef SL_RUNTIME_MEMORY_BACKING_H
#define SL_RUNTIME_MEMORY_BACKING_H

#include "base/cuda_types.h"
#include "base/sl.h"

struct sl_host_copy;
struct sl_gpu;

struct sl_offer;

/* May be moved to another address, but never copied. */
struct sl_backing {
	CUdeviceptr base;
	uint64_t bytes, chunk_bytes;
	uint32_t count;
	CUdevice dev;
	bool exportable;
	struct sl_chunk *chunks;
	/* share/offer.h; NULL: no other process asked for it */
	struct sl_offer *offer;
	/* Called before any part is released; may be NULL. */
	void (*on_destroy)(struct sl_backing *backing);
	/* Under the books' lock (anchor.h, peer.h). */
	struct sl_gpu *held_on; /* reported as held there while anchors are above 0 */
	uint32_t anchors;
	uint64_t allowed; /* other devices with access, by ordinal */
};

/* size rounded up to whole grains; 0 if that overflows or is 0. */
uint64_t sl_backing_round(uint64_t bytes);
/* Is memory on dev made so that other devices may register it (GPUDirect RDMA)? Yes if the driver
 * can do so and the workload was started with --rdma; its memory is then never moved. To register
 * other memory fails visibly, instead of pinning memory that may move. */
bool sl_backing_is_registrable(CUdevice dev);
/* Size of the chunks of a range of so many bytes: fewer handles for larger ranges. */
uint64_t sl_backing_chunk_bytes(uint64_t bytes);

/* Makes bytes (a whole number of grains) of dev's memory at a new address, readable and writable by
 * dev. On failure nothing is left, except *stuck_bytes that the driver did not take back. */
SL_MUST_CHECK CUresult sl_backing_create(
	struct sl_backing *backing, CUdevice dev, uint64_t bytes, uint64_t *stuck_bytes);
/* Lets another device read and write the whole range; with NONE, withdraws that. */
SL_MUST_CHECK CUresult sl_backing_allow(
	CUdeviceptr base, uint64_t bytes, CUdevice dev, CUmemAccess_flags flags);
/* A descriptor of the chunk, for another process to import. The caller closes it. */
SL_MUST_CHECK CUresult sl_backing_export(
	const struct sl_backing *backing, uint32_t index, int *fd);

struct sl_released {
	uint64_t bytes;         /* that were on the GPU */
	uint64_t evicted_bytes; /* that were on the host */
};
/* Withdraws the offer to other processes, unmaps and releases everything on the GPU and on the
 * host, and no longer counts it as held. The bytes in *released are gone in any case. After a
 * failure a repeated call continues where this one stopped. No work may use the range. */
SL_MUST_CHECK CUresult sl_backing_destroy(
	struct sl_backing *backing, struct sl_released *released);

/* --- chunk by chunk, for the mover: inside the closed control lock ---------------------------- */

/* NULL: the chunk is gone, after a destroy that failed half-way. */
struct sl_host_copy *sl_backing_host_copy(
	const struct sl_backing *backing, uint32_t index);
CUdeviceptr sl_backing_chunk(
	const struct sl_backing *backing, uint32_t index, uint64_t *bytes);
/* Unmaps and releases the chunk. After a failure it is as before, unless *absent: then it is
 * unusable although the driver still has its memory, and sl_backing_attach continues from there. */
SL_MUST_CHECK CUresult sl_backing_detach(
	struct sl_backing *backing, uint32_t index, bool *absent);
/* Makes the chunk anew and maps it for all devices that had access; contents are undefined. After a
 * failure it is as before, or partly restored if the driver did not take that back. */
SL_MUST_CHECK CUresult sl_backing_attach(struct sl_backing *backing, uint32_t index);

#endif
