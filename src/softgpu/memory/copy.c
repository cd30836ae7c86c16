/*
 * copy - copies and memsets
 *
 * A synchronous call waits, except between two places on the GPU. An asynchronous one returns at
 * once for pinned and device memory; pageable sources are staged first; for a pageable destination
 * it waits. Addresses are checked in the call (an address without memory is an invalid value) and
 * again when the copy runs (then it is an illegal address).
 */
#include "softgpu/memory/copy.h"

#include <stdlib.h>
#include <string.h>

#define STAGE_BYTES (64 * 1024) /* larger pageable sources make the call wait instead */

/* Finds whether an end is on the host or a device; false: there is no memory. */
static bool classify(uint64_t address, uint64_t bytes, bool must_be_gpu, bool *is_host,
	enum sl_place *place)
{
	if (*is_host) {
		/* A device address passed as a host address counts as a device address. */
		*place = sl_space_place(address, bytes, NULL);
		*is_host = *place == SL_PLACE_PAGEABLE || *place == SL_PLACE_PINNED;
		return *place != SL_PLACE_NOWHERE;
	}
	*place = sl_space_place(address, bytes, NULL);
	if (*place == SL_PLACE_NOWHERE)
		return false;
	*is_host = *place == SL_PLACE_PAGEABLE || *place == SL_PLACE_PINNED;
	return !must_be_gpu || *place != SL_PLACE_PAGEABLE;
}

static uint64_t span(const struct sl_copy *c, size_t pitch, size_t slice)
{
	return (c->slices - 1) * slice + (c->rows - 1) * pitch + c->width;
}

CUresult sl_copy_ends(
	struct sl_copy *c, bool unified, enum sl_place *dst, enum sl_place *src)
{
	bool dst_named_host = c->dst_host, src_named_host = c->src_host;
	enum sl_place ignored;

	if (!c->width || !c->rows || !c->slices)
		return CUDA_SUCCESS;
	if (!c->dst || !c->src ||
		!classify(c->dst, span(c, c->dst_pitch, c->dst_slice),
			!dst_named_host && !unified, &c->dst_host,
			dst ? dst : &ignored) ||
		!classify(c->src, span(c, c->src_pitch, c->src_slice),
			!src_named_host && !unified, &c->src_host, src ? src : &ignored))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* Is the address in memory of a pool to which the stream's GPU has no access? Never true for an end
 * with a named context, which is accessed through that context. */
static bool is_shut(CUstream s, uint64_t address, uint8_t by)
{
	struct sl_mapping m;

	return !by && sl_space_mapping(address, &m) && m.kind == SL_MAP_POOL &&
	       !m.is_host && m.access[s->ctx->device] == CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

CUresult sl_copy_submit(CUstream stream, struct sl_copy *c, bool is_async, bool unified)
{
	enum sl_place dst, src;
	CUstream s = sl_stream_of(stream, false);
	struct sl_op *op;

	if (!c->width || !c->rows || !c->slices)
		return CUDA_SUCCESS;
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (sl_copy_ends(c, unified, &dst, &src) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_VALUE;
	if (dst == SL_PLACE_DEVICE && src == SL_PLACE_DEVICE &&
		(is_shut(s, c->dst, c->dst_by) || is_shut(s, c->src, c->src_by)))
		return CUDA_ERROR_INVALID_VALUE;
	c->pageable = dst == SL_PLACE_PAGEABLE || src == SL_PLACE_PAGEABLE;
	op = sl_op_new(SL_OP_COPY);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->copy = *c;
	if (s->is_legacy && dst == SL_PLACE_DEVICE && src == SL_PLACE_DEVICE &&
		sl_copy_is_between(c))
		return sl_copy_between(s, op, !is_async && (c->dst_by || c->src_by));
	if (!is_async) {
		/* A copy between contexts is ordered with both, so the host waits. */
		bool on_gpu = !c->dst_host && !c->src_host && !c->dst_by && !c->src_by;

		return on_gpu ? sl_api_submit(stream, op) : sl_api_run(stream, op);
	}
	if (atomic_load(&s->capture))
		return sl_api_submit(stream, op);
	if (dst == SL_PLACE_PAGEABLE)
		return sl_api_run(stream, op);
	if (src == SL_PLACE_PAGEABLE) {
		if (c->rows > 1 || c->slices > 1 || c->width > STAGE_BYTES)
			return sl_api_run(stream, op);
		op->copy.staged = malloc(c->width);
		if (!op->copy.staged) {
			sl_op_free(op);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		memcpy(op->copy.staged, (const void *)(uintptr_t)c->src, c->width);
		op->copy.src = (uint64_t)(uintptr_t)op->copy.staged;
	}
	return sl_api_submit(stream, op);
}

static CUresult plain(CUstream stream, uint64_t dst, bool dst_host, uint64_t src,
	bool src_host, size_t bytes, bool is_async, bool unified)
{
	struct sl_copy c = {.dst = dst,
		.src = src,
		.dst_host = dst_host,
		.src_host = src_host,
		.width = bytes,
		.rows = 1,
		.slices = 1};

	return sl_copy_submit(stream, &c, is_async, unified);
}

#define HOST(ptr) (uint64_t)(uintptr_t)(ptr), true
#define GPU(ptr)  (ptr), false

#define do_cuMemcpy             plain
#define do_cuMemcpyPeer         between
#define do_cuMemcpyHtoD_v2      plain
#define do_cuMemcpyDtoH_v2      plain
#define do_cuMemcpyDtoD_v2      plain
#define do_cuMemcpyAsync        plain
#define do_cuMemcpyPeerAsync    between
#define do_cuMemcpyHtoDAsync_v2 plain
#define do_cuMemcpyDtoHAsync_v2 plain
#define do_cuMemcpyDtoDAsync_v2 plain

SL_TWIN_SYNC(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t bytes),
	(CU_STREAM_LEGACY, GPU(dst), GPU(src), bytes, false, true),
	(CU_STREAM_PER_THREAD, GPU(dst), GPU(src), bytes, false, true))
SL_TWIN_SYNC(cuMemcpyHtoD_v2, (CUdeviceptr dst, const void *src, size_t bytes),
	(CU_STREAM_LEGACY, GPU(dst), HOST(src), bytes, false, false),
	(CU_STREAM_PER_THREAD, GPU(dst), HOST(src), bytes, false, false))
SL_TWIN_SYNC(cuMemcpyDtoH_v2, (void *dst, CUdeviceptr src, size_t bytes),
	(CU_STREAM_LEGACY, HOST(dst), GPU(src), bytes, false, false),
	(CU_STREAM_PER_THREAD, HOST(dst), GPU(src), bytes, false, false))
SL_TWIN_SYNC(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes),
	(CU_STREAM_LEGACY, GPU(dst), GPU(src), bytes, false, false),
	(CU_STREAM_PER_THREAD, GPU(dst), GPU(src), bytes, false, false))
SL_TWIN(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
	(SL_PLAIN(stream), GPU(dst), GPU(src), bytes, true, true),
	(SL_PER_THREAD(stream), GPU(dst), GPU(src), bytes, true, true))
SL_TWIN(cuMemcpyHtoDAsync_v2,
	(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream),
	(SL_PLAIN(stream), GPU(dst), HOST(src), bytes, true, false),
	(SL_PER_THREAD(stream), GPU(dst), HOST(src), bytes, true, false))
SL_TWIN(cuMemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t bytes, CUstream stream),
	(SL_PLAIN(stream), HOST(dst), GPU(src), bytes, true, false),
	(SL_PER_THREAD(stream), HOST(dst), GPU(src), bytes, true, false))
SL_TWIN(cuMemcpyDtoDAsync_v2,
	(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
	(SL_PLAIN(stream), GPU(dst), GPU(src), bytes, true, false),
	(SL_PER_THREAD(stream), GPU(dst), GPU(src), bytes, true, false))

/* Each context reaches its own memory, with or without access to the other. */
static CUresult between(CUstream stream, CUdeviceptr dst, CUcontext dst_ctx,
	CUdeviceptr src, CUcontext src_ctx, size_t bytes, bool is_async)
{
	struct sl_copy c = {.dst = dst,
		.src = src,
		.width = bytes,
		.rows = 1,
		.slices = 1,
		.dst_by = (uint8_t)(dst_ctx->device + 1),
		.src_by = (uint8_t)(src_ctx->device + 1)};

	if (!is_async) {
		CUresult r = sl_ctx_sync(src_ctx);

		if (r == CUDA_SUCCESS)
			r = sl_ctx_sync(dst_ctx);
		if (r != CUDA_SUCCESS)
			return r;
	}
	return sl_copy_submit(stream, &c, is_async, false);
}

static bool contexts_ok(CUcontext a, CUcontext b)
{
	return sl_object_is(a, SL_MAGIC_CTX) && sl_object_is(b, SL_MAGIC_CTX);
}

#define PEER_PARAMS                                                             \
	CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, \
		size_t bytes
#define PEER(name, params, entry, stream_used, is_async)                           \
	CUresult entry params                                                      \
	{                                                                          \
		SL_ENTER(entry);                                                   \
		if (!contexts_ok(dst_ctx, src_ctx))                                \
			return CUDA_ERROR_INVALID_CONTEXT;                         \
		return do_##name(                                                  \
			stream_used, dst, dst_ctx, src, src_ctx, bytes, is_async); \
	}
PEER(cuMemcpyPeer, (PEER_PARAMS), cuMemcpyPeer, CU_STREAM_LEGACY, false)
PEER(cuMemcpyPeer, (PEER_PARAMS), cuMemcpyPeer_ptds, CU_STREAM_PER_THREAD, false)
PEER(cuMemcpyPeerAsync, (PEER_PARAMS, CUstream stream), cuMemcpyPeerAsync,
	SL_PLAIN(stream), true)
PEER(cuMemcpyPeerAsync, (PEER_PARAMS, CUstream stream), cuMemcpyPeerAsync_ptsz,
	SL_PER_THREAD(stream), true)

/* Memsets ------------------------------------------------------------------------------------- */

static bool is_readable(CUdeviceptr at, enum sl_place place)
{
	struct sl_mapping m;

	return place != SL_PLACE_DEVICE || (sl_space_mapping(at, &m) && m.is_host);
}

static CUresult set(CUstream stream, CUdeviceptr dst, uint32_t value, uint32_t size,
	size_t pitch, size_t width, size_t rows, bool is_async)
{
	uint64_t bytes, rest;
	enum sl_place place;
	struct sl_op *op;

	if (__builtin_mul_overflow(width, size, &bytes) ||
		__builtin_mul_overflow(rows ? rows - 1 : 0, pitch, &rest) ||
		__builtin_add_overflow(bytes, rest, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	bytes = rows ? bytes : 0;
	place = sl_space_place(dst, bytes, NULL);
	if (dst % size || (rows > 1 && pitch < width * size) ||
		place == SL_PLACE_NOWHERE || place == SL_PLACE_PAGEABLE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!bytes)
		return CUDA_SUCCESS;
	op = sl_op_new(SL_OP_SET);
	if (op)
		op->set = (struct sl_set){dst, value, size, width, rows, pitch};
	/* Memory that the program can read is set when a synchronous call returns. The GPU's own
	 * memory is set in stream order, so later work sees it. */
	return !is_async && is_readable(dst, place) ? sl_api_run(stream, op)
						    : sl_api_submit(stream, op);
}

#define SET_1D(bits, type, size)                                                        \
	CUresult cuMemsetD##bits##_v2(CUdeviceptr dst, type value, size_t count)        \
	{                                                                               \
		SL_ENTER(cuMemsetD##bits##_v2);                                         \
		return set(CU_STREAM_LEGACY, dst, value, size, 0, count, 1, false);     \
	}                                                                               \
	CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr dst, type value, size_t count)   \
	{                                                                               \
		SL_ENTER(cuMemsetD##bits##_v2_ptds);                                    \
		return set(CU_STREAM_PER_THREAD, dst, value, size, 0, count, 1, false); \
	}                                                                               \
	CUresult cuMemsetD##bits##Async(                                                \
		CUdeviceptr dst, type value, size_t count, CUstream stream)             \
	{                                                                               \
		SL_ENTER(cuMemsetD##bits##Async);                                       \
		return set(SL_PLAIN(stream), dst, value, size, 0, count, 1, true);      \
	}                                                                               \
	CUresult cuMemsetD##bits##Async_ptsz(                                           \
		CUdeviceptr dst, type value, size_t count, CUstream stream)             \
	{                                                                               \
		SL_ENTER(cuMemsetD##bits##Async_ptsz);                                  \
		return set(SL_PER_THREAD(stream), dst, value, size, 0, count, 1, true); \
	}
SET_1D(8, unsigned char, 1)
SET_1D(16, unsigned short, 2)
SET_1D(32, unsigned int, 4)

#define SET_2D_PARAMS(type) \
	CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height
#define SET_2D(bits, type, size)                                                         \
	CUresult cuMemsetD2D##bits##_v2(SET_2D_PARAMS(type))                             \
	{                                                                                \
		SL_ENTER(cuMemsetD2D##bits##_v2);                                        \
		return set(CU_STREAM_LEGACY, dst, value, size, pitch, width, height,     \
			false);                                                          \
	}                                                                                \
	CUresult cuMemsetD2D##bits##_v2_ptds(SET_2D_PARAMS(type))                        \
	{                                                                                \
		SL_ENTER(cuMemsetD2D##bits##_v2_ptds);                                   \
		return set(CU_STREAM_PER_THREAD, dst, value, size, pitch, width, height, \
			false);                                                          \
	}                                                                                \
	CUresult cuMemsetD2D##bits##Async(SET_2D_PARAMS(type), CUstream stream)          \
	{                                                                                \
		SL_ENTER(cuMemsetD2D##bits##Async);                                      \
		return set(                                                              \
			SL_PLAIN(stream), dst, value, size, pitch, width, height, true); \
	}                                                                                \
	CUresult cuMemsetD2D##bits##Async_ptsz(SET_2D_PARAMS(type), CUstream stream)     \
	{                                                                                \
		SL_ENTER(cuMemsetD2D##bits##Async_ptsz);                                 \
		return set(SL_PER_THREAD(stream), dst, value, size, pitch, width,        \
			height, true);                                                   \
	}
SET_2D(8, unsigned char, 1)
SET_2D(16, unsigned short, 2)
SET_2D(32, unsigned int, 4)
