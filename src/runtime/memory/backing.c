/*
 * backing - see backing.h
 *
 * Every chunk records which steps of its creation are done. So one function can undo a failed
 * creation, destroy a range, and continue a destruction that failed half-way.
 */
#include "runtime/memory/backing.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"
#include "runtime/session/device.h"
#include "runtime/session/held.h"
#include "runtime/session/session.h"
#include "runtime/store/host_copy.h"
#include "runtime/store/store.h"

#include "base/log.h"
#include "base/step.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_NONE = 0, CHUNK_CREATED, CHUNK_MAPPED };

struct sl_chunk {
	CUmemGenericAllocationHandle handle;
	uint32_t state; /* how far the driver got */
	struct sl_host_copy host;
};

/*
 * Ranges below `below` get chunks of `chunk`, so most have one to four handles and none has many.
 * Costs are per handle, not per byte: create, map, access, unmap and release sum to 100-300 us
 * each, published for the A100. Our budget: an allocation may take a quarter and 50 us longer than
 * the driver's own. But chunks must not be too large, since a chunk is also the unit of eviction
 * and of the pipeline of copies: 256 MiB cross a Gen5 link in 5 ms.
 */
static const struct {
	uint64_t below, chunk;
} chunk_sizes[] = {
	{256 * SL_MIB, 64 * SL_MIB},
	{1 * SL_GIB, 128 * SL_MIB},
	{UINT64_MAX, 256 * SL_MIB},
};

uint64_t sl_backing_round(uint64_t bytes)
{
	return bytes > UINT64_MAX - SL_DEVICE_GRAIN ? 0
						    : sl_round_up(bytes, SL_DEVICE_GRAIN);
}

uint64_t sl_backing_chunk_bytes(uint64_t bytes)
{
	size_t i = 0;

	while (bytes >= chunk_sizes[i].below && i + 1 < SL_ARRAY_LEN(chunk_sizes))
		i++;
	return sl_min_u64(sl_min_u64(chunk_sizes[i].chunk, bytes),
		sl_max_u64(
			sl_options.chunk_most & ~(SL_DEVICE_GRAIN - 1), SL_DEVICE_GRAIN));
}

static uint64_t bytes_of(const struct sl_backing *b, uint32_t index)
{
	return sl_min_u64(b->chunk_bytes, b->bytes - index * b->chunk_bytes);
}

static CUresult undo_chunk(struct sl_backing *b, uint32_t index)
{
	struct sl_chunk *chunk = &b->chunks[index];
	CUresult r = CUDA_SUCCESS;

	if (chunk->state == CHUNK_MAPPED) {
		r = sl_real.cuMemUnmap(
			b->base + index * b->chunk_bytes, bytes_of(b, index));
		if (r != CUDA_SUCCESS)
			return r;
		chunk->state = CHUNK_CREATED;
		sl_step(C_UNMAPPED);
	}
	if (chunk->state == CHUNK_CREATED) {
		r = sl_real.cuMemRelease(chunk->handle);
		if (r == CUDA_SUCCESS)
			chunk->state = CHUNK_NONE;
		sl_step(C_RELEASED);
	}
	return r;
}

/* Ends the chunk completely. An evicted chunk counts as evicted bytes, whatever the driver still
 * had of it. */
static CUresult end_chunk(
	struct sl_backing *b, uint32_t index, struct sl_released *released)
{
	struct sl_chunk *chunk = &b->chunks[index];
	bool held = chunk->state != CHUNK_NONE;
	CUresult r = undo_chunk(b, index);

	if (r != CUDA_SUCCESS)
		return r;
	if (chunk->host.where == SL_EVICTED)
		released->evicted_bytes += bytes_of(b, index);
	else if (held)
		released->bytes += bytes_of(b, index);
	sl_store_give(&chunk->host);
	chunk->host.where = SL_RESIDENT;
	return r;
}

CUresult sl_backing_destroy(struct sl_backing *b, struct sl_released *released)
{
	CUresult r, first = CUDA_SUCCESS;

	*released = (struct sl_released){0, 0};
	if (b->on_destroy)
		b->on_destroy(b);
	for (uint32_t i = 0; i < b->count; i++) {
		r = end_chunk(b, i, released);
		if (first == CUDA_SUCCESS)
			first = r;
	}
	if (first != CUDA_SUCCESS)
		return first;
	/* Addresses that the driver keeps cost no memory. */
	r = b->base ? sl_real.cuMemAddressFree(b->base, b->bytes) : CUDA_SUCCESS;
	if (r != CUDA_SUCCESS)
		sl_warning(
			"addresses at %#llx were not freed: error %d", b->base, (int)r);
	if (b->anchors)
		sl_held_drop(b->held_on, b->bytes);
	free(b->chunks);
	memset(b, 0, sizeof(*b));
	return CUDA_SUCCESS;
}

CUresult sl_backing_allow(
	CUdeviceptr base, uint64_t bytes, CUdevice dev, CUmemAccess_flags flags)
{
	CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev},
		.flags = flags,
	};

	return sl_real.cuMemSetAccess(base, bytes, &access, 1);
}

static CUresult make_chunk(
	struct sl_backing *b, uint32_t index, const CUmemAllocationProp *prop)
{
	struct sl_chunk *chunk = &b->chunks[index];
	CUresult r = sl_real.cuMemCreate(&chunk->handle, bytes_of(b, index), prop, 0);

	if (r != CUDA_SUCCESS)
		return r;
	chunk->state = CHUNK_CREATED;
	sl_step(C_CREATED);
	r = sl_real.cuMemMap(b->base + index * b->chunk_bytes, bytes_of(b, index), 0,
		chunk->handle, 0);
	if (r == CUDA_SUCCESS)
		chunk->state = CHUNK_MAPPED;
	sl_step(C_MAPPED);
	return r;
}

/* Can the device's handles be exported? Queried once; a device that says yes and then refuses to
 * make such handles counts as no. */
static int8_t exports[SL_GPUS_MAX]; /* 0: not queried; 1: yes; -1: no */

static bool is_exportable(CUdevice dev)
{
	int yes = 0;

	if (dev < 0 || dev >= SL_GPUS_MAX)
		return false;
	if (__atomic_load_n(&exports[dev], __ATOMIC_RELAXED) == 0) {
		CUresult r = sl_real.cuDeviceGetAttribute(&yes,
			CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
			dev);

		__atomic_store_n(&exports[dev], r == CUDA_SUCCESS && yes ? 1 : -1,
			__ATOMIC_RELAXED);
	}
	return __atomic_load_n(&exports[dev], __ATOMIC_RELAXED) > 0;
}

static CUresult make_chunks(struct sl_backing *b, const CUmemAllocationProp *prop)
{
	CUresult r = CUDA_SUCCESS;

	for (uint32_t i = 0; i < b->count && r == CUDA_SUCCESS; i++)
		r = make_chunk(b, i, prop);
	return r;
}

static bool is_about_the_type(const struct sl_backing *b, CUresult r)
{
	return b->exportable && b->chunks[0].state == CHUNK_NONE &&
	       (r == CUDA_ERROR_NOT_SUPPORTED || r == CUDA_ERROR_NOT_PERMITTED ||
		       r == CUDA_ERROR_INVALID_VALUE);
}

/* Rarely called, so the answer is not kept. */
bool sl_backing_is_registrable(CUdevice dev)
{
	int yes = 0;

	return sl_session_is_rdma() &&
	       sl_real.cuDeviceGetAttribute(&yes,
		       CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
		       dev) == CUDA_SUCCESS &&
	       yes;
}

static CUmemAllocationProp prop_of(const struct sl_backing *b)
{
	return (CUmemAllocationProp){
		.allocFlags.gpuDirectRDMACapable = sl_backing_is_registrable(b->dev),
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = b->dev},
		.requestedHandleTypes = b->exportable
						? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
						: CU_MEM_HANDLE_TYPE_NONE,
	};
}

static CUresult make_all(struct sl_backing *b, CUdevice dev)
{
	CUmemAllocationProp prop;
	CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUresult r =
		sl_real.cuMemAddressReserve(&b->base, b->bytes, SL_DEVICE_GRAIN, 0, 0);

	if (r != CUDA_SUCCESS) {
		b->base = 0;
		return r;
	}
	b->exportable = is_exportable(dev);
	prop = prop_of(b);
	r = make_chunks(b, &prop);
	if (r != CUDA_SUCCESS && is_about_the_type(b, r)) {
		b->exportable = false;
		prop = prop_of(b);
		r = make_chunks(b, &prop);
		if (r == CUDA_SUCCESS)
			__atomic_store_n(&exports[dev], -1, __ATOMIC_RELAXED);
	}
	if (r == CUDA_SUCCESS)
		r = sl_real.cuMemSetAccess(b->base, b->bytes, &access, 1);
	return r;
}

CUresult sl_backing_export(const struct sl_backing *b, uint32_t index, int *fd)
{
	return sl_real.cuMemExportToShareableHandle(
		fd, b->chunks[index].handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

CUresult sl_backing_create(
	struct sl_backing *b, CUdevice dev, uint64_t bytes, uint64_t *stuck_bytes)
{
	struct sl_released released;
	CUresult r;

	memset(b, 0, sizeof(*b));
	*stuck_bytes = 0;
	b->dev = dev;
	b->bytes = bytes;
	b->chunk_bytes = sl_backing_chunk_bytes(bytes);
	b->count = (uint32_t)((bytes + b->chunk_bytes - 1) / b->chunk_bytes);
	b->chunks = calloc(b->count, sizeof(*b->chunks));
	if (!b->chunks)
		return CUDA_ERROR_OPERATING_SYSTEM;
	r = make_all(b, dev);
	if (r == CUDA_SUCCESS)
		return r;
	if (sl_backing_destroy(b, &released) != CUDA_SUCCESS) {
		for (uint32_t i = 0; i < b->count; i++)
			*stuck_bytes += b->chunks[i].state ? bytes_of(b, i) : 0;
		sl_error_log("%llu bytes are stuck in the driver after error %d",
			(unsigned long long)*stuck_bytes, (int)r);
		free(b->chunks);
		memset(b, 0, sizeof(*b));
	}
	return r;
}

/* --- chunk by chunk --------------------------------------------------------------------------- */

struct sl_host_copy *sl_backing_host_copy(const struct sl_backing *b, uint32_t index)
{
	struct sl_chunk *chunk = &b->chunks[index];

	return chunk->state == CHUNK_MAPPED || chunk->host.where != SL_RESIDENT
		       ? &chunk->host
		       : NULL;
}

CUdeviceptr sl_backing_chunk(const struct sl_backing *b, uint32_t index, uint64_t *bytes)
{
	*bytes = bytes_of(b, index);
	return b->base + index * b->chunk_bytes;
}

/* Gives access to its own device and to all allowed ones. */
static CUresult allow_chunk(const struct sl_backing *b, uint32_t index)
{
	CUmemAccessDesc access[1 + 64];
	size_t count = 0;
	uint64_t bytes;
	CUdeviceptr at = sl_backing_chunk(b, index, &bytes);

	for (int dev = 0; dev < 64; dev++)
		if (dev == b->dev || b->allowed >> dev & 1)
			access[count++] = (CUmemAccessDesc){
				.location = {CU_MEM_LOCATION_TYPE_DEVICE, dev},
				.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
			};
	return sl_real.cuMemSetAccess(at, bytes, access, count);
}

static CUresult map_chunk(struct sl_backing *b, uint32_t index)
{
	struct sl_chunk *chunk = &b->chunks[index];
	uint64_t bytes;
	CUdeviceptr at = sl_backing_chunk(b, index, &bytes);
	CUresult r = CUDA_SUCCESS;

	if (chunk->state == CHUNK_CREATED) {
		r = sl_real.cuMemMap(at, bytes, 0, chunk->handle, 0);
		if (r != CUDA_SUCCESS)
			return r;
		chunk->state = CHUNK_MAPPED;
		sl_step(C_RETURNING_MAPPED);
	}
	return allow_chunk(b, index);
}

CUresult sl_backing_detach(struct sl_backing *b, uint32_t index, bool *absent)
{
	struct sl_chunk *chunk = &b->chunks[index];
	uint64_t bytes;
	CUdeviceptr at = sl_backing_chunk(b, index, &bytes);
	CUresult r;

	*absent = false;
	r = sl_real.cuMemUnmap(at, bytes);
	if (r != CUDA_SUCCESS)
		return r;
	chunk->state = CHUNK_CREATED;
	sl_step(C_EVICT_UNMAPPED);
	r = sl_real.cuMemRelease(chunk->handle);
	*absent = true;
	if (r == CUDA_SUCCESS)
		chunk->state = CHUNK_NONE;
	else
		*absent = map_chunk(b, index) != CUDA_SUCCESS;
	sl_step(C_EVICT_RELEASED);
	return r;
}

CUresult sl_backing_attach(struct sl_backing *b, uint32_t index)
{
	struct sl_chunk *chunk = &b->chunks[index];
	CUmemAllocationProp prop = prop_of(b);
	CUresult r = CUDA_SUCCESS;

	if (chunk->state == CHUNK_NONE) {
		r = sl_real.cuMemCreate(&chunk->handle, bytes_of(b, index), &prop, 0);
		if (r != CUDA_SUCCESS)
			return r;
		chunk->state = CHUNK_CREATED;
		sl_step(C_RETURNING_CREATED);
	}
	r = map_chunk(b, index);
	if (r != CUDA_SUCCESS && undo_chunk(b, index) != CUDA_SUCCESS)
		sl_warning("a chunk at %#llx is kept by the driver half-way",
			b->base + index * b->chunk_bytes);
	return r;
}
