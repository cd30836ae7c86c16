/*
 * space_pool - chunks of pools, blocks in them, and pieces freed in stream order
 *
 * A chunk is a mapping like a slab. The gaps between its blocks are free, except for pieces whose
 * stream has not reached the free. The freeing stream itself may reuse such a piece at once, since
 * its later work runs after the free. Other streams may reuse it when the free is over
 * (opportunistic reuse), or if they wait for the free (internal dependencies); otherwise they get
 * other memory.
 */
#include "softgpu/memory/pool.h"
#include "softgpu/memory/internal.h"

#include <stdlib.h>

#define GRAIN_BYTES 512u

struct sl_link sl_pools = SL_LIST_INIT(sl_pools);
/* So that a synchronisation costs nothing without chunks. */
static _Atomic uint64_t chunk_count;

enum { REUSE_EVENTS, REUSE_OPPORTUNISTIC, REUSE_INTERNAL };

/* Places of freed blocks: rows of a table, sorted by address. Neighbours of one stream are
 * merged. */
struct piece {
	uint64_t address, bytes;
	CUstream stream; /* a reference */
	uint64_t seq;    /* free once the stream has reached it */
};
static struct sl_table pieces;

static void piece_free(struct piece *p)
{
	sl_table_remove(&pieces, p);
	sl_object_unref(p->stream);
	free(p);
}

static bool piece_is_over(const struct piece *p)
{
	return sl_stream_done(p->stream, p->seq);
}

/* The first piece that ends above the address, if it starts below `end`. */
static struct piece *piece_in(uint64_t address, uint64_t end)
{
	unsigned i = sl_table_lower(&pieces, address);
	struct piece *p = i < pieces.count ? pieces.row[i] : NULL;

	return p && p->address < end ? p : NULL;
}

/* Merges p if it is of the same stream and touches [address, ...) on either side. */
static bool piece_grows(
	struct piece *p, uint64_t address, uint64_t bytes, CUstream stream, uint64_t seq)
{
	if (!p || p->stream != stream)
		return false;
	if (p->address + p->bytes == address)
		p->bytes += bytes;
	else
		return false;
	p->seq = sl_max_u64(p->seq, seq);
	return true;
}

/* False: no memory, and nothing done. The piece lies within the chunk. */
static bool piece_add(const struct sl_mapping *chunk, uint64_t address, uint64_t bytes,
	CUstream stream, uint64_t seq)
{
	struct piece *before =
		address > chunk->address ? piece_in(address - 1, address) : NULL;
	struct piece *p;

	if (piece_grows(before, address, bytes, stream, seq))
		return true;
	p = malloc(sizeof(*p));
	if (!p)
		return false;
	*p = (struct piece){address, bytes, stream, seq};
	if (!sl_table_insert(&pieces, p)) {
		free(p);
		return false;
	}
	sl_object_ref(stream);
	return true;
}

static bool piece_blocks(
	CUmemoryPool pool, const struct piece *p, CUstream stream, bool may_wait)
{
	if (p->stream == stream || may_wait)
		return false;
	return !pool->reuse[REUSE_OPPORTUNISTIC] || !piece_is_over(p);
}

/* The end of an obstacle in [at, at + bytes), or 0. */
static uint64_t obstacle(
	CUmemoryPool pool, CUstream stream, bool may_wait, uint64_t at, uint64_t bytes)
{
	unsigned i = sl_table_lower(&sl_blocks, at);
	const struct sl_block *b = i < sl_blocks.count ? sl_blocks.row[i] : NULL;
	const struct piece *p;

	if (b && b->address < at + bytes)
		return sl_round_up(b->address + b->bytes, GRAIN_BYTES);
	for (uint64_t from = at; (p = piece_in(from, at + bytes));
		from = p->address + p->bytes)
		if (piece_blocks(pool, p, stream, may_wait))
			return sl_round_up(p->address + p->bytes, GRAIN_BYTES);
	return 0;
}

/* From the chunk's last cut to its end, then from its start. */
static uint64_t gap_in(CUmemoryPool pool, struct sl_mapping *chunk, CUstream stream,
	bool may_wait, uint64_t bytes)
{
	uint64_t end = chunk->address + chunk->bytes, next;

	if (chunk->used + bytes > chunk->bytes)
		return 0;
	for (int turn = 0; turn < 2; turn++)
		for (uint64_t at = turn ? chunk->address : chunk->cursor;
			at + bytes <= end; at = next) {
			if (turn && at >= chunk->cursor)
				return 0;
			next = obstacle(pool, stream, may_wait, at, bytes);
			if (!next)
				return at;
		}
	return 0;
}

static struct sl_mapping *find_gap(
	CUmemoryPool pool, CUstream stream, bool may_wait, uint64_t bytes, uint64_t *at)
{
	sl_list_foreach (link, &pool->chunks) {
		struct sl_mapping *m = SL_LIST_ENTRY(link, struct sl_mapping, link);

		*at = gap_in(pool, m, stream, may_wait, bytes);
		if (*at)
			return m;
	}
	return NULL;
}

static bool op_waits(struct sl_op **op, const struct piece *p)
{
	struct sl_wait_for *more;

	if (!*op)
		*op = sl_op_new(SL_OP_NOP);
	if (!*op)
		return false;
	more = realloc((*op)->wait, ((*op)->wait_count + 1) * sizeof(*more));
	if (!more)
		return false;
	(*op)->wait = more;
	(*op)->wait[(*op)->wait_count++] = (struct sl_wait_for){p->stream, p->seq};
	sl_object_ref(p->stream);
	return true;
}

/* Removes [at, end) from the piece and keeps the rest on either side. False: out of memory. */
static bool piece_cut(
	const struct sl_mapping *chunk, struct piece *p, uint64_t at, uint64_t end)
{
	uint64_t p_end = p->address + p->bytes;

	if (p->address < at) {
		p->bytes = at - p->address;
		return p_end <= end ||
		       piece_add(chunk, end, p_end - end, p->stream, p->seq);
	}
	if (p_end > end) {
		p->address = end;
		p->bytes = p_end - end;
	} else {
		piece_free(p);
	}
	return true;
}

/* Removes the place from the pieces that it touches. */
static bool claim(struct sl_mapping *chunk, CUstream stream, uint64_t at, uint64_t bytes,
	struct sl_op **wait)
{
	struct piece *p;

	while ((p = piece_in(at, at + bytes))) {
		if (p->stream != stream && !piece_is_over(p) && !op_waits(wait, p))
			return false;
		if (!piece_cut(chunk, p, at, at + bytes))
			return false;
	}
	chunk->cursor = at + bytes;
	return true;
}

/* Chunks -------------------------------------------------------------------------------------- */

static CUresult chunk_tell(CUmemoryPool pool, struct sl_mapping *m)
{
	CUresult r = CUDA_SUCCESS;

	for (unsigned i = 0; i < sl_drv.hello.gpus && r == CUDA_SUCCESS; i++)
		if (m->access[i] != pool->access[i]) {
			m->access[i] = pool->access[i];
			r = sl_mapping_tell(m, (CUdevice)i);
		}
	return r;
}

static void chunk_drop(CUmemoryPool pool, struct sl_mapping *m)
{
	struct piece *p;

	while ((p = piece_in(m->address, m->address + m->bytes)))
		piece_free(p);
	sl_list_unlink(&m->link);
	pool->reserved -= m->bytes;
	atomic_fetch_sub(&chunk_count, 1);
	sl_native_drop(m);
}

static CUresult chunk_map(
	CUmemoryPool pool, struct sl_phys *phys, struct sl_mapping **out)
{
	struct sl_mapping *m;
	CUresult r = sl_native_map(phys, SL_MAP_POOL, &m);

	if (r != CUDA_SUCCESS)
		return r;
	m->pool = pool;
	m->cursor = m->address;
	m->handle_types = (unsigned int)pool->props.handleTypes;
	sl_list_push_tail(&pool->chunks, &m->link);
	atomic_fetch_add(&chunk_count, 1);
	pool->reserved += m->bytes;
	r = chunk_tell(pool, m);
	if (r == CUDA_SUCCESS && m->is_host)
		r = sl_mapping_open(m, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	if (r != CUDA_SUCCESS) {
		chunk_drop(pool, m);
		return r;
	}
	pool->reserved_high = sl_max_u64(pool->reserved_high, pool->reserved);
	*out = m;
	return r;
}

static CUresult chunk_new(CUmemoryPool pool, uint64_t bytes, struct sl_mapping **out)
{
	struct sl_sg_request q = {
		.op = SL_SG_CREATE, .device = (uint32_t)pool->device, .value = bytes};
	struct sl_phys *phys = NULL;
	CUresult r;

	/* A pool has whole granules, however small its maximum. */
	if (pool->props.maxSize &&
		pool->reserved + bytes > sl_round_up(pool->props.maxSize, SL_SG_PAGE))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = pool->is_host ? sl_phys_host_new(bytes, &phys) : sl_phys_get(&q, -1, &phys);
	return r == CUDA_SUCCESS ? chunk_map(pool, phys, out) : r;
}

static bool chunk_is_empty(const struct sl_mapping *m)
{
	return !m->used && !piece_in(m->address, m->address + m->bytes);
}

/* Finished pieces become free places. */
static void forget(const struct sl_mapping *chunk)
{
	uint64_t end = chunk->address + chunk->bytes;
	struct piece *p;

	for (uint64_t at = chunk->address; (p = piece_in(at, end));) {
		at = p->address + p->bytes;
		if (piece_is_over(p))
			piece_free(p);
	}
}

/* Under the lock. */
static void release(CUmemoryPool pool, uint64_t keep_bytes)
{
	for (struct sl_link *link = pool->chunks.prev, *before; link != &pool->chunks;
		link = before) {
		struct sl_mapping *m = SL_LIST_ENTRY(link, struct sl_mapping, link);

		before = link->prev;
		forget(m);
		/* The last chunks first; at least `keep_bytes` stay. */
		if (pool->reserved > keep_bytes &&
			pool->reserved - keep_bytes >= m->bytes && chunk_is_empty(m))
			chunk_drop(pool, m);
	}
	if (pool->destroyed && sl_list_is_empty(&pool->chunks)) {
		sl_list_unlink(&pool->o.link);
		sl_object_unref(pool);
	}
}

void sl_pool_release(CUmemoryPool pool, uint64_t keep_bytes)
{
	pthread_mutex_lock(&sl_space_lock);
	release(pool, keep_bytes);
	pthread_mutex_unlock(&sl_space_lock);
}

void sl_pool_destroy(CUmemoryPool pool)
{
	pthread_mutex_lock(&sl_space_lock);
	pool->destroyed = true;
	release(pool, 0);
	pthread_mutex_unlock(&sl_space_lock);
}

void sl_pool_synced(void)
{
	if (!atomic_load(&chunk_count))
		return;
	pthread_mutex_lock(&sl_space_lock);
	for (struct sl_link *link = sl_pools.next, *after; link != &sl_pools;
		link = after) {
		CUmemoryPool pool =
			SL_LIST_ENTRY(link, struct CUmemPoolHandle_st, o.link);

		after = link->next;
		release(pool, pool->destroyed ? 0 : pool->release_threshold);
	}
	pthread_mutex_unlock(&sl_space_lock);
}

/* A context is destroyed: keeps no memory for later allocations, since the program may be about to
 * end. */
void sl_pool_drop_device(CUdevice device)
{
	for (struct sl_link *link = sl_pools.next, *after; link != &sl_pools;
		link = after) {
		CUmemoryPool pool =
			SL_LIST_ENTRY(link, struct CUmemPoolHandle_st, o.link);

		after = link->next;
		if (!pool->is_host && pool->device == device)
			release(pool, 0);
	}
}

/* Blocks -------------------------------------------------------------------------------------- */

/* A chunk of the usual size, or of the needed size if that does not fit. */
static CUresult grow(CUmemoryPool pool, uint64_t bytes, struct sl_mapping **out)
{
	uint64_t usual = sl_round_up(bytes, SL_POOL_CHUNK);
	uint64_t least = sl_round_up(bytes, SL_SG_PAGE);
	CUresult r = chunk_new(pool, usual, out);

	if (r == CUDA_ERROR_OUT_OF_MEMORY && least < usual)
		r = chunk_new(pool, least, out);
	if (r == CUDA_ERROR_OUT_OF_MEMORY) {
		release(pool, 0); /* frees chunks that are too small */
		r = chunk_new(pool, least, out);
	}
	return r;
}

static CUresult take_locked(
	CUmemoryPool pool, CUstream stream, struct sl_block *b, struct sl_op **wait)
{
	uint64_t bytes = sl_round_up(b->bytes, GRAIN_BYTES), at = 0;
	struct sl_mapping *m = find_gap(pool, stream, false, bytes, &at);
	CUresult r = CUDA_SUCCESS;

	if (!m && pool->reuse[REUSE_INTERNAL])
		m = find_gap(pool, stream, true, bytes, &at);
	if (!m) {
		r = grow(pool, bytes, &m);
		at = m ? m->address : 0;
	}
	if (r != CUDA_SUCCESS)
		return r;
	if (!claim(m, stream, at, bytes, wait))
		return CUDA_ERROR_OUT_OF_MEMORY;
	b->address = at;
	b->device = pool->device;
	if (!sl_table_insert(&sl_blocks, b))
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->used += bytes;
	pool->used += bytes;
	pool->used_high = sl_max_u64(pool->used_high, pool->used);
	return r;
}

CUresult sl_pool_take(CUmemoryPool pool, CUstream stream, uint64_t bytes,
	struct sl_op **wait, CUdeviceptr *out)
{
	struct sl_block *b = sl_block_new(stream->ctx, SL_BLOCK_POOL);
	CUresult r;

	*wait = NULL;
	if (!b || bytes > SIZE_MAX / 2) {
		free(b);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	b->bytes = bytes;
	pthread_mutex_lock(&sl_space_lock);
	r = take_locked(pool, stream, b, wait);
	pthread_mutex_unlock(&sl_space_lock);
	if (r == CUDA_SUCCESS) {
		*out = b->address;
	} else {
		sl_op_free(*wait);
		*wait = NULL;
		free(b);
	}
	return r;
}

void sl_pool_block_gone(struct sl_mapping *chunk, const struct sl_block *b)
{
	CUmemoryPool pool = chunk->pool;
	uint64_t bytes = sl_round_up(b->bytes, GRAIN_BYTES);

	chunk->used -= bytes;
	pool->used -= bytes;
	/* The caller has waited for the work, which counts as a synchronisation. */
	release(pool, pool->destroyed ? 0 : pool->release_threshold);
}

CUresult sl_pool_give(CUdeviceptr address, CUstream stream, uint64_t seq)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sl_mapping *m;
	struct sl_block *b;

	pthread_mutex_lock(&sl_space_lock);
	b = sl_table_find(&sl_blocks, address);
	m = sl_table_find(&sl_mappings, address);
	if (b && b->address == address && m && m->kind == SL_MAP_POOL) {
		uint64_t bytes = sl_round_up(b->bytes, GRAIN_BYTES);

		r = piece_add(m, address, bytes, stream, seq) ? CUDA_SUCCESS
							      : CUDA_ERROR_OUT_OF_MEMORY;
		if (r == CUDA_SUCCESS) {
			m->used -= bytes;
			m->pool->used -= bytes;
			sl_table_remove(&sl_blocks, b);
			free(b);
		}
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

CUresult sl_pool_open(CUmemoryPool pool, CUdevice device, CUmemAccess_flags flags)
{
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&sl_space_lock);
	pool->access[device] = (uint8_t)flags;
	sl_list_foreach (link, &pool->chunks)
		if (r == CUDA_SUCCESS)
			r = chunk_tell(
				pool, SL_LIST_ENTRY(link, struct sl_mapping, link));
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

/* Between processes --------------------------------------------------------------------------- */

static struct sl_mapping *chunk_of_id(CUmemoryPool pool, uint64_t id)
{
	sl_list_foreach (link, &pool->chunks) {
		struct sl_mapping *m = SL_LIST_ENTRY(link, struct sl_mapping, link);

		if (m->phys_id == id)
			return m;
	}
	return NULL;
}

static CUresult import_locked(
	CUmemoryPool pool, uint64_t id, uint64_t offset, struct sl_block *b)
{
	struct sl_sg_request q = {
		.op = SL_SG_OPEN, .device = (uint32_t)pool->device, .id = id};
	struct sl_mapping *m = chunk_of_id(pool, id);
	CUresult r = CUDA_SUCCESS;
	struct sl_phys *phys;

	if (!m) {
		r = sl_phys_get(&q, -1, &phys);
		if (r == CUDA_SUCCESS)
			r = chunk_map(pool, phys, &m);
	}
	if (r != CUDA_SUCCESS)
		return r;
	b->address = m->address + offset;
	b->device = pool->device;
	if (b->bytes > m->bytes || offset > m->bytes - b->bytes ||
		sl_table_overlaps(&sl_blocks, b->address, b->bytes))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (!sl_table_insert(&sl_blocks, b))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r == CUDA_SUCCESS) {
		m->used += sl_round_up(b->bytes, GRAIN_BYTES);
		pool->used += sl_round_up(b->bytes, GRAIN_BYTES);
	}
	if (r != CUDA_SUCCESS && chunk_is_empty(m))
		chunk_drop(pool, m);
	return r;
}

CUresult sl_pool_import_block(
	CUmemoryPool pool, uint64_t id, uint64_t offset, uint64_t bytes, CUdeviceptr *out)
{
	struct sl_block *b = sl_block_new(sl_ctx_current(), SL_BLOCK_POOL);
	CUresult r;

	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	b->bytes = bytes;
	pthread_mutex_lock(&sl_space_lock);
	r = import_locked(pool, id, offset, b);
	pthread_mutex_unlock(&sl_space_lock);
	if (r == CUDA_SUCCESS)
		*out = b->address;
	else
		free(b);
	return r;
}
