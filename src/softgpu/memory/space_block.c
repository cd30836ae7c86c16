/*
 * space_block - cuMemAlloc's blocks, pinned and registered memory
 *
 * A block above SMALL_BYTES has its own handle and range. Smaller ones share slabs of one page of
 * the GPU, as with the real driver; a slab is freed with its last block.
 */
#include "softgpu/memory/managed.h"
#include "softgpu/memory/pool.h"
#include "softgpu/memory/internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SMALL_BYTES SL_MIB
#define GRAIN_BYTES 512u
#define HOST_PAGE   4096u

struct sl_block *sl_block_new(CUcontext ctx, enum sl_block_kind kind)
{
	struct sl_block *b = calloc(1, sizeof(*b));

	if (b) {
		b->ctx = ctx;
		b->device = ctx->device;
		b->kind = kind;
		b->buffer_id = sl_drv_next_id();
		b->fd = -1;
	}
	return b;
}

/* Opens native memory to its own device, and to devices with peer access to its context. */
static CUresult open_to_peers(struct sl_mapping *m, CUdevice owner)
{
	CUresult r = CUDA_SUCCESS;

	m->access[owner] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	for (unsigned i = 0; i < sl_drv.hello.gpus; i++)
		if (sl_peer[i][owner])
			m->access[i] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	for (unsigned i = 0; i < sl_drv.hello.gpus && r == CUDA_SUCCESS; i++)
		r = sl_mapping_tell(m, (CUdevice)i);
	return r;
}

bool sl_peer[SL_SOFTGPU_GPUS_MAX][SL_SOFTGPU_GPUS_MAX];

CUresult sl_space_peer(CUdevice from, CUdevice to, bool on)
{
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&sl_space_lock);
	sl_peer[from][to] = on;
	for (unsigned i = 0; i < sl_mappings.count && r == CUDA_SUCCESS; i++) {
		struct sl_mapping *m = sl_mappings.row[i];

		if (m->kind != SL_MAP_NATIVE || m->phys->device != to)
			continue;
		m->access[from] = on ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
				     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
		r = sl_mapping_tell(m, from);
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

CUresult sl_native_map(
	struct sl_phys *phys, enum sl_map_kind kind, struct sl_mapping **out)
{
	uint64_t at = sl_space_reserve_locked(phys->bytes, SL_SG_PAGE, 0, false);
	struct sl_mapping *m = at ? sl_mapping_new(at, phys->bytes, phys, kind) : NULL;

	sl_phys_unref(phys); /* the mapping has its own reference */
	if (!m && at)
		sl_space_unreserve_locked(sl_table_find(&sl_reservations, at));
	*out = m;
	return m ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Makes or opens the handle, as the request asks, with range and mapping. All or nothing. */
static CUresult native_get(
	const struct sl_sg_request *q, bool managed, struct sl_mapping **out)
{
	struct sl_mapping *m = NULL;
	struct sl_phys *phys = NULL;
	CUresult r = sl_phys_get(q, -1, &phys);

	if (r == CUDA_SUCCESS)
		r = sl_native_map(phys, SL_MAP_NATIVE, &m);
	if (r != CUDA_SUCCESS)
		return r;
	r = open_to_peers(m, m->device);
	if (r == CUDA_SUCCESS && managed &&
		!sl_phys_map_at(
			m->phys, (char *)(uintptr_t)m->address, PROT_READ | PROT_WRITE))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r == CUDA_SUCCESS)
		*out = m;
	else
		sl_native_drop(m);
	return r;
}

static CUresult native_new(
	CUdevice device, uint64_t bytes, bool managed, struct sl_mapping **out)
{
	struct sl_sg_request q = {
		.op = SL_SG_CREATE, .device = (uint32_t)device, .value = bytes};

	return native_get(&q, managed, out);
}

void sl_native_drop(struct sl_mapping *m)
{
	struct sl_reservation *r = sl_table_find(&sl_reservations, m->address);

	sl_mapping_drop(m);
	sl_space_unreserve_locked(r);
}

/* The first gap of `bytes` in a slab, or 0. */
static uint64_t gap_in(const struct sl_mapping *slab, uint64_t bytes)
{
	uint64_t at = slab->address, end = slab->address + slab->bytes;

	for (unsigned i = sl_table_lower(&sl_blocks, at); i < sl_blocks.count; i++) {
		const struct sl_block *b = sl_blocks.row[i];

		if (b->address >= at + bytes || b->address >= end)
			break;
		at = sl_round_up(b->address + b->bytes, GRAIN_BYTES);
	}
	return at + bytes <= end ? at : 0;
}

/* A slab is a native mapping with slab_of set; other contexts do not share it. */
static CUresult small_place(CUcontext ctx, uint64_t bytes, uint64_t *at)
{
	struct sl_mapping *m;
	CUresult r;

	for (unsigned i = 0; i < sl_mappings.count; i++) {
		m = sl_mappings.row[i];
		if (m->slab_of == ctx && m->used + bytes <= m->bytes &&
			(*at = gap_in(m, bytes)))
			return CUDA_SUCCESS;
	}
	r = native_new(ctx->device, SL_SG_PAGE, false, &m);
	if (r == CUDA_SUCCESS) {
		m->slab_of = ctx;
		*at = m->address;
	}
	return r;
}

CUresult sl_space_alloc(
	CUcontext ctx, uint64_t bytes, enum sl_block_kind kind, CUdeviceptr *out)
{
	struct sl_block *b = sl_block_new(ctx, kind);
	struct sl_mapping *m = NULL;
	uint64_t at = 0;
	CUresult r;

	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sl_space_lock);
	if (bytes <= SMALL_BYTES && kind != SL_BLOCK_MANAGED) {
		r = small_place(ctx, sl_round_up(bytes, GRAIN_BYTES), &at);
	} else {
		r = native_new(ctx->device, bytes, kind == SL_BLOCK_MANAGED, &m);
		at = m ? m->address : 0;
	}
	b->address = at;
	b->bytes = bytes;
	if (r == CUDA_SUCCESS && !sl_table_insert(&sl_blocks, b)) {
		if (m)
			sl_native_drop(m);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r == CUDA_SUCCESS && !m) {
		m = sl_table_find(&sl_mappings, at);
		m->used += sl_round_up(bytes, GRAIN_BYTES);
	}
	pthread_mutex_unlock(&sl_space_lock);
	if (r == CUDA_SUCCESS)
		*out = at;
	else
		free(b);
	return r;
}

static void slab_leave(struct sl_mapping *m, const struct sl_block *b)
{
	m->used -= sl_round_up(b->bytes, GRAIN_BYTES);
	if (!m->used)
		sl_native_drop(m);
}

static void host_drop(struct sl_block *b)
{
	if (b->kind == SL_BLOCK_PINNED) {
		(void)!sl_block_tell(b, false);
		sl_space_unreserve_locked(sl_table_find(&sl_reservations, b->address));
		close(b->fd);
	}
}

void sl_block_drop(struct sl_block *b)
{
	struct sl_mapping *m = sl_table_find(&sl_mappings, b->address);

	sl_table_remove(&sl_blocks, b);
	sl_managed_free(b);
	if (m && m->kind == SL_MAP_POOL) {
		sl_pool_block_gone(m, b);
		free(b);
		return;
	}
	if (b->kind == SL_BLOCK_PINNED || b->kind == SL_BLOCK_REGISTERED)
		host_drop(b);
	else if (m && m->slab_of)
		slab_leave(m, b);
	else if (m)
		sl_native_drop(m);
	free(b);
}

static CUresult free_kinds(
	CUdeviceptr address, enum sl_block_kind lowest, enum sl_block_kind highest)
{
	struct sl_block *b;

	pthread_mutex_lock(&sl_space_lock);
	b = sl_table_find(&sl_blocks, address);
	if (b && b->address == address && b->kind >= lowest && b->kind <= highest)
		sl_block_drop(b);
	else
		b = NULL;
	pthread_mutex_unlock(&sl_space_lock);
	return b ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sl_space_free(CUdeviceptr address)
{
	return free_kinds(address, SL_BLOCK_DEVICE, SL_BLOCK_POOL);
}

CUresult sl_space_free_array(CUdeviceptr address)
{
	return free_kinds(address, SL_BLOCK_ARRAY, SL_BLOCK_ARRAY);
}

void sl_space_drop_context(CUcontext ctx)
{
	pthread_mutex_lock(&sl_space_lock);
	for (unsigned i = sl_blocks.count; i-- > 0;) {
		struct sl_block *b = sl_blocks.row[i];

		/* Pinned memory outlives its context: it belongs to the process. */
		if (b->ctx == ctx && b->kind <= SL_BLOCK_ARRAY)
			sl_block_drop(b);
	}
	sl_pool_drop_device(ctx->device);
	pthread_mutex_unlock(&sl_space_lock);
}

/* Between processes ---------------------------------------------------------------------------- */

static struct sl_block *find_opened(uint64_t id, uint64_t offset)
{
	for (unsigned i = 0; i < sl_blocks.count; i++) {
		struct sl_block *b = sl_blocks.row[i];
		struct sl_mapping *m = sl_table_find(&sl_mappings, b->address);

		if (b->kind == SL_BLOCK_IPC && m && m->phys_id == id &&
			b->address - m->address == offset)
			return b;
	}
	return NULL;
}

static CUresult ipc_open_new(CUcontext ctx, const struct sl_sg_request *q,
	uint64_t offset, uint64_t bytes, struct sl_block **out)
{
	struct sl_block *b = sl_block_new(ctx, SL_BLOCK_IPC);
	struct sl_mapping *m = NULL;
	CUresult r;

	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = native_get(q, false, &m);
	if (r == CUDA_SUCCESS) {
		b->address = m->address + offset;
		b->bytes = bytes;
		b->device = m->device;
		if (offset + bytes > m->bytes)
			r = CUDA_ERROR_INVALID_VALUE;
		else if (!sl_table_insert(&sl_blocks, b))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r == CUDA_SUCCESS) {
		*out = b;
		return r;
	}
	if (m)
		sl_native_drop(m);
	free(b);
	return r;
}

CUresult sl_space_ipc_open(
	CUcontext ctx, uint64_t id, uint64_t offset, uint64_t bytes, CUdeviceptr *out)
{
	struct sl_sg_request q = {.op = SL_SG_OPEN, .id = id};
	CUresult r = CUDA_SUCCESS;
	struct sl_block *b;

	pthread_mutex_lock(&sl_space_lock);
	b = find_opened(id, offset);
	if (!b)
		r = ipc_open_new(ctx, &q, offset, bytes, &b);
	if (r == CUDA_SUCCESS) {
		b->opened++;
		*out = b->address;
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

CUresult sl_space_ipc_close(CUdeviceptr address)
{
	struct sl_block *b;

	pthread_mutex_lock(&sl_space_lock);
	b = sl_table_find(&sl_blocks, address);
	if (b && (b->address != address || b->kind != SL_BLOCK_IPC))
		b = NULL;
	if (b && --b->opened == 0)
		sl_block_drop(b);
	pthread_mutex_unlock(&sl_space_lock);
	return b ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Host memory --------------------------------------------------------------------------------- */

/* A memfd of its own, mapped here and in companions at the same address. */
static CUresult pinned_new(struct sl_block *b, uint64_t bytes, char **out)
{
	uint64_t whole = sl_round_up(bytes, HOST_PAGE);
	int fd = memfd_create("sluice-softgpu-pinned", MFD_CLOEXEC), high;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (fd < 0)
		return r;
	high = fcntl(fd, F_DUPFD_CLOEXEC, 200);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	b->address = ftruncate(fd, (off_t)whole) < 0
			     ? 0
			     : sl_space_reserve_locked(whole, HOST_PAGE, 0, false);
	b->bytes = bytes;
	b->fd = fd;
	*out = (char *)(uintptr_t)b->address;
	if (b->address && mmap(*out, whole, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED)
		r = sl_block_tell(b, true);
	if (r == CUDA_SUCCESS && sl_table_insert(&sl_blocks, b))
		return CUDA_SUCCESS;
	if (b->address)
		sl_space_unreserve_locked(sl_table_find(&sl_reservations, b->address));
	close(fd);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sl_space_host_alloc(CUcontext ctx, uint64_t bytes, unsigned flags, void **out)
{
	struct sl_block *b = sl_block_new(ctx, SL_BLOCK_PINNED);
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	char *at;

	if (!b)
		return r;
	b->flags = flags;
	pthread_mutex_lock(&sl_space_lock);
	r = pinned_new(b, bytes, &at);
	pthread_mutex_unlock(&sl_space_lock);
	if (r == CUDA_SUCCESS)
		*out = at;
	else
		free(b);
	return r;
}

CUresult sl_space_host_register(
	CUcontext ctx, void *address, uint64_t bytes, unsigned flags)
{
	struct sl_block *b;
	CUresult r = CUDA_SUCCESS;

	if ((uint64_t)(uintptr_t)address + bytes < bytes)
		return CUDA_ERROR_INVALID_VALUE;
	b = sl_block_new(ctx, SL_BLOCK_REGISTERED);
	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	b->address = (uint64_t)(uintptr_t)address;
	b->bytes = bytes;
	b->flags = flags;
	pthread_mutex_lock(&sl_space_lock);
	if (sl_table_overlaps(&sl_blocks, b->address, bytes))
		r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	else if (!sl_table_insert(&sl_blocks, b))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&sl_space_lock);
	if (r != CUDA_SUCCESS)
		free(b);
	return r;
}

CUresult sl_space_host_free(void *address, enum sl_block_kind kind)
{
	uint64_t at = (uint64_t)(uintptr_t)address;
	CUresult r = CUDA_SUCCESS;
	struct sl_block *b;

	pthread_mutex_lock(&sl_space_lock);
	b = sl_table_find(&sl_blocks, at);
	if (b && b->address == at && b->kind == kind)
		sl_block_drop(b);
	else
		r = kind == SL_BLOCK_PINNED || (b && b->kind == kind)
			    ? CUDA_ERROR_INVALID_VALUE
			    : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}
