/*
 * haul - see haul.h
 *
 * Copies of one direction follow each other on one stream: a copy engine does them one after the
 * other anyway, and an event behind each tells when it is complete. Events sleep instead of
 * spinning: with several copies begun, waking late costs nothing.
 */
#include "runtime/swap/haul.h"
#include "runtime/real/hooks.h"
#include "runtime/contexts/sticky.h"

#include <string.h>
#include <sys/mman.h>

#define RING_BYTES (SL_HAUL_SLOTS * SL_HAUL_SLOT_BYTES)

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

CUresult sl_haul_open(struct sl_haul *haul, CUcontext ctx)
{
	CUresult r;

	memset(haul, 0, sizeof(*haul));
	r = sl_real.cuCtxPushCurrent_v2(ctx);
	if (r != CUDA_SUCCESS)
		return r;
	haul->ctx = ctx;
	r = sl_real.cuStreamCreate(&haul->stream, CU_STREAM_NON_BLOCKING);
	if (r == CUDA_SUCCESS)
		r = make_events(haul->done, SL_HAUL_DEPTH);
	if (r != CUDA_SUCCESS)
		sl_haul_close(haul);
	return r;
}

bool sl_haul_settle(struct sl_haul *haul)
{
	return is_settled(sl_real.cuStreamSynchronize(haul->stream)) ||
	       is_settled(sl_real.cuCtxSynchronize());
}

static void close_ring(struct sl_haul *haul)
{
	drop_events(haul->slot_done, SL_HAUL_SLOTS);
	if (!haul->ring)
		return;
	(void)sl_real.cuMemHostUnregister(haul->ring);
	(void)munmap(haul->ring, RING_BYTES);
}

void sl_haul_close(struct sl_haul *haul)
{
	CUcontext popped;
	bool settled = true;

	if (!haul->ctx)
		return;
	if (haul->stream) {
		settled = sl_haul_settle(haul);
		(void)sl_real.cuStreamDestroy_v2(haul->stream);
	}
	drop_events(haul->done, SL_HAUL_DEPTH);
	/* Better lost than written to by a copy that nobody knows the end of. */
	if (settled)
		close_ring(haul);
	(void)sl_real.cuCtxPopCurrent_v2(&popped);
	memset(haul, 0, sizeof(*haul));
}

/* False: there is none to have, and copies go without. */
static bool need_ring(struct sl_haul *haul)
{
	void *ring;

	if (haul->ring || haul->ringless)
		return haul->ring;
	haul->ringless = true;
	ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	if (ring == MAP_FAILED)
		return false;
	if (make_events(haul->slot_done, SL_HAUL_SLOTS) != CUDA_SUCCESS ||
		sl_real.cuMemHostRegister_v2(
			ring, RING_BYTES, CU_MEMHOSTREGISTER_PORTABLE) != CUDA_SUCCESS) {
		drop_events(haul->slot_done, SL_HAUL_SLOTS);
		memset(haul->slot_done, 0, sizeof(haul->slot_done));
		(void)munmap(ring, RING_BYTES);
		return false;
	}
	haul->ring = ring;
	return true;
}

/* --- through the ring ------------------------------------------------------------------------- */

static char *slot_at(const struct sl_haul *haul, uint64_t slot)
{
	return haul->ring + slot * SL_HAUL_SLOT_BYTES;
}

static CUresult wait_slot(struct sl_haul *haul, uint64_t slot)
{
	CUresult r = CUDA_SUCCESS;

	if (haul->slot_busy[slot])
		r = sl_real.cuEventSynchronize(haul->slot_done[slot]);
	haul->slot_busy[slot] = haul->slot_busy[slot] && r != CUDA_SUCCESS;
	return r;
}

static CUresult mark_slot(struct sl_haul *haul, uint64_t slot, CUresult r)
{
	if (r == CUDA_SUCCESS)
		r = sl_real.cuEventRecord(haul->slot_done[slot], haul->stream);
	haul->slot_busy[slot] = r == CUDA_SUCCESS;
	return r;
}

static uint64_t slice_bytes(uint64_t bytes, uint64_t slice)
{
	return sl_min_u64(SL_HAUL_SLOT_BYTES, bytes - slice * SL_HAUL_SLOT_BYTES);
}

/* Complete when it returns: the last slices are taken out of the ring by then. */
static CUresult ring_out(
	struct sl_haul *haul, CUdeviceptr address, char *at, uint64_t bytes)
{
	uint64_t slices = (bytes + SL_HAUL_SLOT_BYTES - 1) / SL_HAUL_SLOT_BYTES;
	CUresult r = CUDA_SUCCESS;

	for (uint64_t i = 0; i < slices + SL_HAUL_SLOTS && r == CUDA_SUCCESS; i++) {
		uint64_t slot = i % SL_HAUL_SLOTS, from = i * SL_HAUL_SLOT_BYTES;

		r = wait_slot(haul, slot);
		if (r == CUDA_SUCCESS && i >= SL_HAUL_SLOTS && i - SL_HAUL_SLOTS < slices)
			memcpy(at + from - RING_BYTES, slot_at(haul, slot),
				slice_bytes(bytes, i - SL_HAUL_SLOTS));
		if (r == CUDA_SUCCESS && i < slices)
			r = mark_slot(haul, slot,
				sl_real.cuMemcpyDtoHAsync_v2(slot_at(haul, slot),
					address + from, slice_bytes(bytes, i),
					haul->stream));
	}
	return r;
}

static CUresult ring_in(
	struct sl_haul *haul, CUdeviceptr address, const char *at, uint64_t bytes)
{
	uint64_t slices = (bytes + SL_HAUL_SLOT_BYTES - 1) / SL_HAUL_SLOT_BYTES;
	CUresult r = CUDA_SUCCESS;

	for (uint64_t i = 0; i < slices && r == CUDA_SUCCESS; i++) {
		uint64_t slot = i % SL_HAUL_SLOTS, from = i * SL_HAUL_SLOT_BYTES;

		r = wait_slot(haul, slot);
		if (r != CUDA_SUCCESS)
			break;
		memcpy(slot_at(haul, slot), at + from, slice_bytes(bytes, i));
		r = mark_slot(haul, slot,
			sl_real.cuMemcpyHtoDAsync_v2(address + from, slot_at(haul, slot),
				slice_bytes(bytes, i), haul->stream));
	}
	return r;
}

/* --- copies ----------------------------------------------------------------------------------- */

static CUresult run_out(
	struct sl_haul *haul, CUdeviceptr address, const struct sl_run *run)
{
	if (!run->pinned && need_ring(haul))
		return ring_out(haul, address, run->at, run->bytes);
	return sl_real.cuMemcpyDtoHAsync_v2(run->at, address, run->bytes, haul->stream);
}

static CUresult run_in(
	struct sl_haul *haul, CUdeviceptr address, const struct sl_run *run)
{
	if (!run->pinned && need_ring(haul))
		return ring_in(haul, address, run->at, run->bytes);
	return sl_real.cuMemcpyHtoDAsync_v2(address, run->at, run->bytes, haul->stream);
}

static CUresult ticket_for(struct sl_haul *haul, CUresult r, uint64_t *ticket)
{
	if (r == CUDA_SUCCESS)
		r = sl_real.cuEventRecord(
			haul->done[haul->tickets % SL_HAUL_DEPTH], haul->stream);
	if (r == CUDA_SUCCESS)
		*ticket = haul->tickets++;
	return r;
}

static CUresult each_run(struct sl_haul *haul, CUdeviceptr address,
	const struct sl_cargo *cargo,
	CUresult (*copy)(struct sl_haul *, CUdeviceptr, const struct sl_run *))
{
	CUresult r = CUDA_SUCCESS;

	for (uint32_t i = 0; i < cargo->places.count; i++) {
		const struct sl_place *place = &cargo->places.at[i];
		struct sl_run run;

		for (uint64_t done = 0; done < place->bytes && r == CUDA_SUCCESS;
			done += run.bytes) {
			run = sl_store_run(place, done);
			r = copy(haul, address, &run);
			address += run.bytes;
		}
	}
	return r;
}

CUresult sl_haul_out(struct sl_haul *haul, CUdeviceptr address,
	const struct sl_cargo *cargo, uint64_t *ticket)
{
	return ticket_for(haul, each_run(haul, address, cargo, run_out), ticket);
}

CUresult sl_haul_in(struct sl_haul *haul, CUdeviceptr address,
	const struct sl_cargo *cargo, uint64_t *ticket)
{
	return ticket_for(haul, each_run(haul, address, cargo, run_in), ticket);
}

CUresult sl_haul_zero(
	struct sl_haul *haul, CUdeviceptr address, uint64_t bytes, uint64_t *ticket)
{
	return ticket_for(haul,
		sl_real.cuMemsetD32Async(address, 0, bytes / 4, haul->stream), ticket);
}

CUresult sl_haul_wait(struct sl_haul *haul, uint64_t ticket)
{
	return sl_real.cuEventSynchronize(haul->done[ticket % SL_HAUL_DEPTH]);
}
