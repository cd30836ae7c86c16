/*
 * copier - see copier.h
 *
 * Copies of one direction follow each other on one stream, as a copy engine does them one by one
 * anyway; an event behind each tells when it is complete. Waits for events sleep instead of
 * spinning: with several copies begun, waking late costs nothing.
 */
#include "runtime/swap/copier.h"
#include "runtime/contexts/sticky.h"
#include "runtime/real/real.h"
#include "runtime/store/store.h"

#include <string.h>
#include <sys/mman.h>

#define RING_BYTES (SL_COPIER_SLOTS * SL_COPIER_SLOT_BYTES)

/* --- opening and closing ---------------------------------------------------------------------- */

static CUresult make_events(CUevent *events, size_t count)
{
	CUresult r = CUDA_SUCCESS;

	for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
		r = sl_real.cuEventCreate(
			&events[i], CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);
	return r;
}

static void drop_events(CUevent *events, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (events[i])
			(void)sl_real.cuEventDestroy_v2(events[i]);
}

static bool is_settled(CUresult r)
{
	return r == CUDA_SUCCESS || sl_sticky_is(r);
}

CUresult sl_copier_open(struct sl_copier *copier, CUcontext ctx)
{
	CUresult r;

	memset(copier, 0, sizeof(*copier));
	r = sl_real.cuCtxPushCurrent_v2(ctx);
	if (r != CUDA_SUCCESS)
		return r;
	copier->ctx = ctx;
	r = sl_real.cuStreamCreate(&copier->stream, CU_STREAM_NON_BLOCKING);
	if (r == CUDA_SUCCESS)
		r = make_events(copier->done, SL_COPIER_DEPTH);
	if (r != CUDA_SUCCESS)
		sl_copier_close(copier);
	return r;
}

bool sl_copier_settle(struct sl_copier *copier)
{
	return is_settled(sl_real.cuStreamSynchronize(copier->stream)) ||
	       is_settled(sl_real.cuCtxSynchronize());
}

static void close_ring(struct sl_copier *copier)
{
	drop_events(copier->slot_done, SL_COPIER_SLOTS);
	if (!copier->ring)
		return;
	(void)sl_real.cuMemHostUnregister(copier->ring);
	(void)munmap(copier->ring, RING_BYTES);
}

void sl_copier_close(struct sl_copier *copier)
{
	CUcontext popped;
	bool settled = true;

	if (!copier->ctx)
		return;
	if (copier->stream) {
		settled = sl_copier_settle(copier);
		(void)sl_real.cuStreamDestroy_v2(copier->stream);
	}
	drop_events(copier->done, SL_COPIER_DEPTH);
	/* Unknown state: leak the ring, since a copy may still write to it. */
	if (settled)
		close_ring(copier);
	(void)sl_real.cuCtxPopCurrent_v2(&popped);
	memset(copier, 0, sizeof(*copier));
}

/* False: no ring is available, and copies go without it. */
static bool need_ring(struct sl_copier *copier)
{
	void *ring;

	if (copier->ring || copier->ringless)
		return copier->ring;
	copier->ringless = true;
	ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	if (ring == MAP_FAILED)
		return false;
	if (make_events(copier->slot_done, SL_COPIER_SLOTS) != CUDA_SUCCESS ||
		sl_real.cuMemHostRegister_v2(
			ring, RING_BYTES, CU_MEMHOSTREGISTER_PORTABLE) != CUDA_SUCCESS) {
		drop_events(copier->slot_done, SL_COPIER_SLOTS);
		memset(copier->slot_done, 0, sizeof(copier->slot_done));
		(void)munmap(ring, RING_BYTES);
		return false;
	}
	copier->ring = ring;
	return true;
}

/* --- through the ring ------------------------------------------------------------------------- */

static char *slot_at(const struct sl_copier *copier, uint64_t slot)
{
	return copier->ring + slot * SL_COPIER_SLOT_BYTES;
}

static CUresult wait_slot(struct sl_copier *copier, uint64_t slot)
{
	CUresult r = CUDA_SUCCESS;

	if (copier->slot_busy[slot])
		r = sl_real.cuEventSynchronize(copier->slot_done[slot]);
	copier->slot_busy[slot] = copier->slot_busy[slot] && r != CUDA_SUCCESS;
	return r;
}

static CUresult mark_slot(struct sl_copier *copier, uint64_t slot, CUresult r)
{
	if (r == CUDA_SUCCESS)
		r = sl_real.cuEventRecord(copier->slot_done[slot], copier->stream);
	copier->slot_busy[slot] = r == CUDA_SUCCESS;
	return r;
}

static uint64_t slice_bytes(uint64_t bytes, uint64_t slice)
{
	return sl_min_u64(SL_COPIER_SLOT_BYTES, bytes - slice * SL_COPIER_SLOT_BYTES);
}

/* Complete on return: the last slices are taken out of the ring by then. */
static CUresult ring_out(
	struct sl_copier *copier, CUdeviceptr address, char *at, uint64_t bytes)
{
	uint64_t slices = (bytes + SL_COPIER_SLOT_BYTES - 1) / SL_COPIER_SLOT_BYTES;
	CUresult r = CUDA_SUCCESS;

	for (uint64_t i = 0; i < slices + SL_COPIER_SLOTS && r == CUDA_SUCCESS; i++) {
		uint64_t slot = i % SL_COPIER_SLOTS, from = i * SL_COPIER_SLOT_BYTES;

		r = wait_slot(copier, slot);
		if (r == CUDA_SUCCESS && i >= SL_COPIER_SLOTS &&
			i - SL_COPIER_SLOTS < slices)
			memcpy(at + from - RING_BYTES, slot_at(copier, slot),
				slice_bytes(bytes, i - SL_COPIER_SLOTS));
		if (r == CUDA_SUCCESS && i < slices)
			r = mark_slot(copier, slot,
				sl_real.cuMemcpyDtoHAsync_v2(slot_at(copier, slot),
					address + from, slice_bytes(bytes, i),
					copier->stream));
	}
	return r;
}

static CUresult ring_in(
	struct sl_copier *copier, CUdeviceptr address, const char *at, uint64_t bytes)
{
	uint64_t slices = (bytes + SL_COPIER_SLOT_BYTES - 1) / SL_COPIER_SLOT_BYTES;
	CUresult r = CUDA_SUCCESS;

	for (uint64_t i = 0; i < slices && r == CUDA_SUCCESS; i++) {
		uint64_t slot = i % SL_COPIER_SLOTS, from = i * SL_COPIER_SLOT_BYTES;

		r = wait_slot(copier, slot);
		if (r != CUDA_SUCCESS)
			break;
		memcpy(slot_at(copier, slot), at + from, slice_bytes(bytes, i));
		r = mark_slot(copier, slot,
			sl_real.cuMemcpyHtoDAsync_v2(address + from,
				slot_at(copier, slot), slice_bytes(bytes, i),
				copier->stream));
	}
	return r;
}

/* --- copies ----------------------------------------------------------------------------------- */

static CUresult run_out(
	struct sl_copier *copier, CUdeviceptr address, const struct sl_run *run)
{
	if (!run->pinned && need_ring(copier))
		return ring_out(copier, address, run->at, run->bytes);
	return sl_real.cuMemcpyDtoHAsync_v2(run->at, address, run->bytes, copier->stream);
}

static CUresult run_in(
	struct sl_copier *copier, CUdeviceptr address, const struct sl_run *run)
{
	if (!run->pinned && need_ring(copier))
		return ring_in(copier, address, run->at, run->bytes);
	return sl_real.cuMemcpyHtoDAsync_v2(address, run->at, run->bytes, copier->stream);
}

static CUresult ticket_for(struct sl_copier *copier, CUresult r, uint64_t *ticket)
{
	if (r == CUDA_SUCCESS)
		r = sl_real.cuEventRecord(
			copier->done[copier->tickets % SL_COPIER_DEPTH], copier->stream);
	if (r == CUDA_SUCCESS)
		*ticket = copier->tickets++;
	return r;
}

static CUresult each_run(struct sl_copier *copier, CUdeviceptr address,
	const struct sl_host_copy *host,
	CUresult (*copy)(struct sl_copier *, CUdeviceptr, const struct sl_run *))
{
	CUresult r = CUDA_SUCCESS;

	for (uint32_t i = 0; i < host->places.count; i++) {
		const struct sl_place *place = &host->places.at[i];
		struct sl_run run;

		for (uint64_t done = 0; done < place->bytes && r == CUDA_SUCCESS;
			done += run.bytes) {
			run = sl_store_run(place, done);
			r = copy(copier, address, &run);
			address += run.bytes;
		}
	}
	return r;
}

CUresult sl_copier_out(struct sl_copier *copier, CUdeviceptr address,
	const struct sl_host_copy *host, uint64_t *ticket)
{
	return ticket_for(copier, each_run(copier, address, host, run_out), ticket);
}

CUresult sl_copier_in(struct sl_copier *copier, CUdeviceptr address,
	const struct sl_host_copy *host, uint64_t *ticket)
{
	return ticket_for(copier, each_run(copier, address, host, run_in), ticket);
}

CUresult sl_copier_zero(
	struct sl_copier *copier, CUdeviceptr address, uint64_t bytes, uint64_t *ticket)
{
	return ticket_for(copier,
		sl_real.cuMemsetD32Async(address, 0, bytes / 4, copier->stream), ticket);
}

CUresult sl_copier_wait(struct sl_copier *copier, uint64_t ticket)
{
	return sl_real.cuEventSynchronize(copier->done[ticket % SL_COPIER_DEPTH]);
}
