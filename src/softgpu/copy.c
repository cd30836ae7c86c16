/*
 * copy - copies and memsets
 *
 * Who waits: a synchronous call waits, except between two places on the GPU. An asynchronous one
 * returns at once for pinned and device memory; from pageable memory it takes the bytes along
 * first; to pageable memory it waits. Addresses are checked when the call is made (an address with
 * nothing behind it is an invalid value) and again when it runs (then it is an illegal address).
 */
#include "softgpu/api.h"

#include <stdlib.h>
#include <string.h>

#define STAGE_BYTES (64 * 1024) /* larger pageable sources make the call wait instead */

/* Gives a host or device end its true kind; false: nothing is there. */
static bool classify(uint64_t address, uint64_t bytes, bool must_be_gpu, bool *is_host,
	enum sl_place *place)
{
	if (*is_host) {
		/* A device address given as a host one is taken for what it is. */
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

/*
 * Submits a copy whose ends are set; *_host say what the caller named them. unified: an end may be
 * anything, as its address tells.
 */
static CUresult copy_submit(
	CUstream stream, struct sl_copy *c, bool is_async, bool unified)
{
	enum sl_place dst, src;
	bool dst_named_host = c->dst_host, src_named_host = c->src_host;
	CUstream s = sl_stream_of(stream, false);
	struct sl_op *op;

	if (!c->width || !c->rows || !c->slices)
		return CUDA_SUCCESS;
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!classify(c->dst, span(c, c->dst_pitch, c->dst_slice),
		    !dst_named_host && !unified, &c->dst_host, &dst) ||
		!classify(c->src, span(c, c->src_pitch, c->src_slice),
			!src_named_host && !unified, &c->src_host, &src))
		return CUDA_ERROR_INVALID_VALUE;
	if (!c->dst || !c->src)
		return CUDA_ERROR_INVALID_VALUE;
	op = sl_op_new(SL_OP_COPY);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->copy = *c;
	if (!is_async) {
		bool on_gpu = !c->dst_host && !c->src_host;

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

	return copy_submit(stream, &c, is_async, unified);
}

#define HOST(ptr) (uint64_t)(uintptr_t)(ptr), true
#define GPU(ptr)  (ptr), false

#define do_cuMemcpy             plain
#define do_cuMemcpyPeer         plain
#define do_cuMemcpyHtoD_v2      plain
#define do_cuMemcpyDtoH_v2      plain
#define do_cuMemcpyDtoD_v2      plain
#define do_cuMemcpyAsync        plain
#define do_cuMemcpyPeerAsync    plain
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

static bool contexts_ok(CUcontext a, CUcontext b)
{
	return sl_object_is(a, SL_MAGIC_CTX) && sl_object_is(b, SL_MAGIC_CTX);
}

#define PEER_PARAMS                                                             \
	CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, \
		size_t bytes
#define PEER(name, params, entry, stream_used, is_async)                          \
	CUresult entry params                                                     \
	{                                                                         \
		SL_ENTER(entry);                                                  \
		if (!contexts_ok(dst_ctx, src_ctx))                               \
			return CUDA_ERROR_INVALID_CONTEXT;                        \
		return do_##name(                                                 \
			stream_used, GPU(dst), GPU(src), bytes, is_async, false); \
	}
PEER(cuMemcpyPeer, (PEER_PARAMS), cuMemcpyPeer, CU_STREAM_LEGACY, false)
PEER(cuMemcpyPeer, (PEER_PARAMS), cuMemcpyPeer_ptds, CU_STREAM_PER_THREAD, false)
PEER(cuMemcpyPeerAsync, (PEER_PARAMS, CUstream stream), cuMemcpyPeerAsync,
	SL_PLAIN(stream), true)
PEER(cuMemcpyPeerAsync, (PEER_PARAMS, CUstream stream), cuMemcpyPeerAsync_ptsz,
	SL_PER_THREAD(stream), true)

/* Two and three dimensions -------------------------------------------------------------------- */

struct end {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	size_t x, y, z, pitch, height;
};

static bool place_end(const struct end *e, size_t width, uint64_t *address, bool *is_host,
	size_t *pitch, size_t *slice)
{
	size_t row = e->pitch ? e->pitch : width + e->x;

	if (e->type == CU_MEMORYTYPE_HOST)
		*address = (uint64_t)(uintptr_t)e->host;
	else if (e->type == CU_MEMORYTYPE_DEVICE || e->type == CU_MEMORYTYPE_UNIFIED)
		*address = e->device;
	else
		return false; /* arrays are not modelled */
	*is_host = e->type == CU_MEMORYTYPE_HOST;
	*pitch = row;
	*slice = row * e->height;
	*address += e->z * *slice + e->y * row + e->x;
	return row >= width;
}

static CUresult box(CUstream stream, const struct end *dst, const struct end *src,
	size_t width, size_t rows, size_t slices, bool is_async)
{
	struct sl_copy c = {.width = width, .rows = rows, .slices = slices};
	bool unified =
		dst->type == CU_MEMORYTYPE_UNIFIED || src->type == CU_MEMORYTYPE_UNIFIED;

	if (dst->type == CU_MEMORYTYPE_ARRAY || src->type == CU_MEMORYTYPE_ARRAY)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!place_end(dst, width, &c.dst, &c.dst_host, &c.dst_pitch, &c.dst_slice) ||
		!place_end(src, width, &c.src, &c.src_host, &c.src_pitch, &c.src_slice))
		return CUDA_ERROR_INVALID_VALUE;
	return copy_submit(stream, &c, is_async, unified);
}

static CUresult do_2d(CUstream stream, const CUDA_MEMCPY2D *p, bool is_async)
{
	CHECK_OUT(p);
	struct end dst = {.type = p->dstMemoryType,
		.host = p->dstHost,
		.device = p->dstDevice,
		.x = p->dstXInBytes,
		.y = p->dstY,
		.pitch = p->dstPitch,
		.height = p->Height};
	struct end src = {.type = p->srcMemoryType,
		.host = p->srcHost,
		.device = p->srcDevice,
		.x = p->srcXInBytes,
		.y = p->srcY,
		.pitch = p->srcPitch,
		.height = p->Height};

	return box(stream, &dst, &src, p->WidthInBytes, p->Height, 1, is_async);
}

static CUresult do_3d(CUstream stream, const CUDA_MEMCPY3D *p, bool is_async)
{
	CHECK_OUT(p);
	struct end dst = {p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes,
		p->dstY, p->dstZ, p->dstPitch, p->dstHeight ? p->dstHeight : p->Height};
	struct end src = {p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes,
		p->srcY, p->srcZ, p->srcPitch, p->srcHeight ? p->srcHeight : p->Height};

	return box(stream, &dst, &src, p->WidthInBytes, p->Height, p->Depth, is_async);
}

/* The peer form has the same layout with contexts in the place of two reserved words. */
static CUresult do_3d_peer(CUstream stream, const CUDA_MEMCPY3D_PEER *p, bool is_async)
{
	_Static_assert(
		sizeof(CUDA_MEMCPY3D) == sizeof(CUDA_MEMCPY3D_PEER), "layouts differ");
	CUDA_MEMCPY3D plain_form;

	CHECK_OUT(p);
	memcpy(&plain_form, p, sizeof(plain_form));
	return do_3d(stream, &plain_form, is_async);
}

#define do_cuMemcpy2D_v2          do_2d
#define do_cuMemcpy2DUnaligned_v2 do_2d
#define do_cuMemcpy2DAsync_v2     do_2d
#define do_cuMemcpy3D_v2          do_3d
#define do_cuMemcpy3DAsync_v2     do_3d
#define do_cuMemcpy3DPeer         do_3d_peer
#define do_cuMemcpy3DPeerAsync    do_3d_peer
#define BOX_SYNC(name, type)                                                    \
	SL_TWIN_SYNC(name, (const type *copy), (CU_STREAM_LEGACY, copy, false), \
		(CU_STREAM_PER_THREAD, copy, false))
#define BOX_ASYNC(name, type)                              \
	SL_TWIN(name, (const type *copy, CUstream stream), \
		(SL_PLAIN(stream), copy, true), (SL_PER_THREAD(stream), copy, true))
BOX_SYNC(cuMemcpy2D_v2, CUDA_MEMCPY2D)
BOX_SYNC(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D)
BOX_SYNC(cuMemcpy3D_v2, CUDA_MEMCPY3D)
BOX_SYNC(cuMemcpy3DPeer, CUDA_MEMCPY3D_PEER)
BOX_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D)
BOX_ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D)
BOX_ASYNC(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER)

/* Memsets ------------------------------------------------------------------------------------- */

static CUresult set(CUstream stream, CUdeviceptr dst, uint32_t value, uint32_t size,
	size_t pitch, size_t width, size_t rows)
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
	/* Also the synchronous calls do not wait: what comes later in order sees the result. */
	return sl_api_submit(stream, op);
}

#define SET_1D(bits, type, size)                                                      \
	CUresult cuMemsetD##bits##_v2(CUdeviceptr dst, type value, size_t count)      \
	{                                                                             \
		SL_ENTER(cuMemsetD##bits##_v2);                                       \
		return set(CU_STREAM_LEGACY, dst, value, size, 0, count, 1);          \
	}                                                                             \
	CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr dst, type value, size_t count) \
	{                                                                             \
		SL_ENTER(cuMemsetD##bits##_v2_ptds);                                  \
		return set(CU_STREAM_PER_THREAD, dst, value, size, 0, count, 1);      \
	}                                                                             \
	CUresult cuMemsetD##bits##Async(                                              \
		CUdeviceptr dst, type value, size_t count, CUstream stream)           \
	{                                                                             \
		SL_ENTER(cuMemsetD##bits##Async);                                     \
		return set(SL_PLAIN(stream), dst, value, size, 0, count, 1);          \
	}                                                                             \
	CUresult cuMemsetD##bits##Async_ptsz(                                         \
		CUdeviceptr dst, type value, size_t count, CUstream stream)           \
	{                                                                             \
		SL_ENTER(cuMemsetD##bits##Async_ptsz);                                \
		return set(SL_PER_THREAD(stream), dst, value, size, 0, count, 1);     \
	}
SET_1D(8, unsigned char, 1)
SET_1D(16, unsigned short, 2)
SET_1D(32, unsigned int, 4)

#define SET_2D_PARAMS(type) \
	CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height
#define SET_2D(bits, type, size)                                                        \
	CUresult cuMemsetD2D##bits##_v2(SET_2D_PARAMS(type))                            \
	{                                                                               \
		SL_ENTER(cuMemsetD2D##bits##_v2);                                       \
		return set(CU_STREAM_LEGACY, dst, value, size, pitch, width, height);   \
	}                                                                               \
	CUresult cuMemsetD2D##bits##_v2_ptds(SET_2D_PARAMS(type))                       \
	{                                                                               \
		SL_ENTER(cuMemsetD2D##bits##_v2_ptds);                                  \
		return set(                                                             \
			CU_STREAM_PER_THREAD, dst, value, size, pitch, width, height);  \
	}                                                                               \
	CUresult cuMemsetD2D##bits##Async(SET_2D_PARAMS(type), CUstream stream)         \
	{                                                                               \
		SL_ENTER(cuMemsetD2D##bits##Async);                                     \
		return set(SL_PLAIN(stream), dst, value, size, pitch, width, height);   \
	}                                                                               \
	CUresult cuMemsetD2D##bits##Async_ptsz(SET_2D_PARAMS(type), CUstream stream)    \
	{                                                                               \
		SL_ENTER(cuMemsetD2D##bits##Async_ptsz);                                \
		return set(                                                             \
			SL_PER_THREAD(stream), dst, value, size, pitch, width, height); \
	}
SET_2D(8, unsigned char, 1)
SET_2D(16, unsigned short, 2)
SET_2D(32, unsigned int, 4)
