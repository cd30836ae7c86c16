/*
 * copy_box - copies of two and three dimensions, and those with arrays
 *
 * Each is turned into addresses, widths and pitches before it is submitted. A place in an array is
 * an address in its hidden block (array.h). The bounds are checked here, since the block may
 * continue behind the array's end.
 */
#include "softgpu/memory/array.h"
#include "softgpu/memory/copy.h"

#include <string.h>

struct end {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t x, y, z, pitch, height;
};

struct extent {
	size_t width, rows, slices; /* width in bytes */
};

static bool inside(size_t at, size_t count, size_t limit)
{
	return at <= limit && count <= limit - at;
}

static CUresult place_array(const struct end *e, struct extent x, uint64_t *address,
	size_t *pitch, size_t *slice)
{
	CUarray a = sl_array_of(e->array);

	if (!a)
		return CUDA_ERROR_INVALID_HANDLE;
	struct sl_array_shape s = sl_array_shape(a);
	if (!a->address || e->x % a->element_bytes || x.width % a->element_bytes ||
		!inside(e->x, x.width, s.row_bytes) || !inside(e->y, x.rows, s.rows) ||
		!inside(e->z, x.slices, s.slices))
		return CUDA_ERROR_INVALID_VALUE;
	*pitch = s.row_bytes;
	*slice = s.row_bytes * s.rows;
	*address = a->address + e->z * *slice + e->y * *pitch + e->x;
	return CUDA_SUCCESS;
}

static CUresult place_end(const struct end *e, struct extent x, uint64_t *address,
	bool *is_host, size_t *pitch, size_t *slice)
{
	size_t row = e->pitch ? e->pitch : x.width + e->x;

	*is_host = e->type == CU_MEMORYTYPE_HOST;
	if (e->type == CU_MEMORYTYPE_ARRAY)
		return place_array(e, x, address, pitch, slice);
	if (e->type == CU_MEMORYTYPE_HOST)
		*address = (uint64_t)(uintptr_t)e->host;
	else if (e->type == CU_MEMORYTYPE_DEVICE || e->type == CU_MEMORYTYPE_UNIFIED)
		*address = e->device;
	else
		return CUDA_ERROR_INVALID_VALUE;
	*pitch = row;
	*slice = row * e->height;
	*address += e->z * *slice + e->y * row + e->x;
	return row >= x.width && (x.slices <= 1 || e->height >= x.rows)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

static CUresult plan(const struct end *dst, const struct end *src, struct extent x,
	struct sl_copy *c, bool *unified)
{
	CUresult r;

	*c = (struct sl_copy){.width = x.width, .rows = x.rows, .slices = x.slices};
	*unified =
		dst->type == CU_MEMORYTYPE_UNIFIED || src->type == CU_MEMORYTYPE_UNIFIED;
	r = place_end(dst, x, &c->dst, &c->dst_host, &c->dst_pitch, &c->dst_slice);
	return r != CUDA_SUCCESS ? r
				 : place_end(src, x, &c->src, &c->src_host, &c->src_pitch,
					   &c->src_slice);
}

static CUresult do_2d(CUstream stream, const CUDA_MEMCPY2D *p, bool is_async)
{
	struct sl_copy c;
	bool unified;
	CUresult r;

	CHECK_OUT(p);
	struct end dst = {.type = p->dstMemoryType,
		.host = p->dstHost,
		.device = p->dstDevice,
		.array = p->dstArray,
		.x = p->dstXInBytes,
		.y = p->dstY,
		.pitch = p->dstPitch,
		.height = p->Height};
	struct end src = {.type = p->srcMemoryType,
		.host = p->srcHost,
		.device = p->srcDevice,
		.array = p->srcArray,
		.x = p->srcXInBytes,
		.y = p->srcY,
		.pitch = p->srcPitch,
		.height = p->Height};
	r = plan(
		&dst, &src, (struct extent){p->WidthInBytes, p->Height, 1}, &c, &unified);
	return r == CUDA_SUCCESS ? sl_copy_submit(stream, &c, is_async, unified) : r;
}

CUresult sl_copy_plan(const CUDA_MEMCPY3D *p, struct sl_copy *c, bool *unified)
{
	CHECK_OUT(p);
	if (p->srcLOD || p->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	struct end dst = {.type = p->dstMemoryType,
		.host = p->dstHost,
		.device = p->dstDevice,
		.array = p->dstArray,
		.x = p->dstXInBytes,
		.y = p->dstY,
		.z = p->dstZ,
		.pitch = p->dstPitch,
		.height = p->dstHeight ? p->dstHeight : p->Height};
	struct end src = {.type = p->srcMemoryType,
		.host = p->srcHost,
		.device = p->srcDevice,
		.array = p->srcArray,
		.x = p->srcXInBytes,
		.y = p->srcY,
		.z = p->srcZ,
		.pitch = p->srcPitch,
		.height = p->srcHeight ? p->srcHeight : p->Height};
	return plan(&dst, &src, (struct extent){p->WidthInBytes, p->Height, p->Depth}, c,
		unified);
}

static CUresult do_3d(CUstream stream, const CUDA_MEMCPY3D *p, bool is_async)
{
	struct sl_copy c;
	bool unified;
	CUresult r = sl_copy_plan(p, &c, &unified);

	return r == CUDA_SUCCESS ? sl_copy_submit(stream, &c, is_async, unified) : r;
}

/* In the form of struct sl_copy; 0 for none. */
static uint8_t by_context(CUcontext ctx)
{
	return sl_object_is(ctx, SL_MAGIC_CTX) ? (uint8_t)(ctx->device + 1) : 0;
}

/* The peer form has the same layout, with contexts instead of two reserved words. */
static CUresult do_3d_peer(CUstream stream, const CUDA_MEMCPY3D_PEER *p, bool is_async)
{
	_Static_assert(
		sizeof(CUDA_MEMCPY3D) == sizeof(CUDA_MEMCPY3D_PEER), "layouts differ");
	CUDA_MEMCPY3D plain_form;

	struct sl_copy c;
	bool unified;
	CUresult r;

	CHECK_OUT(p);
	memcpy(&plain_form, p, sizeof(plain_form));
	r = sl_copy_plan(&plain_form, &c, &unified);
	if (r != CUDA_SUCCESS)
		return r;
	c.dst_by = by_context(p->dstContext);
	c.src_by = by_context(p->srcContext);
	return sl_copy_submit(stream, &c, is_async, unified);
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

/* Arrays as a row of bytes -------------------------------------------------------------------- */

struct linear {
	bool is_array;
	CUarray array;
	uint64_t at; /* an address, or an offset into the array */
	bool is_host;
};

static CUresult resolve(struct linear *l, size_t bytes)
{
	if (!l->is_array)
		return CUDA_SUCCESS;
	if (!sl_array_of(l->array))
		return CUDA_ERROR_INVALID_HANDLE;
	struct sl_array_shape s = sl_array_shape(l->array);
	if (!l->array->address || l->at % l->array->element_bytes ||
		bytes % l->array->element_bytes ||
		!inside(l->at, bytes, s.row_bytes * s.rows * s.slices))
		return CUDA_ERROR_INVALID_VALUE;
	l->at += l->array->address;
	return CUDA_SUCCESS;
}

static CUresult linear(CUstream stream, struct linear dst, struct linear src,
	size_t bytes, bool is_async)
{
	CUresult r;

	/* An invalid handle is an error even if an address could be meant. */
	r = resolve(&dst, bytes);
	if (r == CUDA_SUCCESS)
		r = resolve(&src, bytes);
	if (r != CUDA_SUCCESS)
		return r;
	struct sl_copy c = {.dst = dst.at,
		.src = src.at,
		.dst_host = dst.is_host,
		.src_host = src.is_host,
		.width = bytes,
		.rows = 1,
		.slices = 1};
	return sl_copy_submit(stream, &c, is_async, false);
}

#define IN(array, offset)                      \
	(struct linear)                        \
	{                                      \
		true, (array), (offset), false \
	}
#define GPU(ptr)                          \
	(struct linear)                   \
	{                                 \
		false, NULL, (ptr), false \
	}
#define HOST(ptr)                                             \
	(struct linear)                                       \
	{                                                     \
		false, NULL, (uint64_t)(uintptr_t)(ptr), true \
	}

#define do_cuMemcpyAtoA_v2      linear
#define do_cuMemcpyAtoD_v2      linear
#define do_cuMemcpyDtoA_v2      linear
#define do_cuMemcpyAtoH_v2      linear
#define do_cuMemcpyHtoA_v2      linear
#define do_cuMemcpyAtoHAsync_v2 linear
#define do_cuMemcpyHtoAAsync_v2 linear
#define LINEAR_SYNC(name, params, to, from)                                    \
	SL_TWIN_SYNC(name, params, (CU_STREAM_LEGACY, to, from, bytes, false), \
		(CU_STREAM_PER_THREAD, to, from, bytes, false))
#define LINEAR_ASYNC(name, params, to, from)                             \
	SL_TWIN(name, params, (SL_PLAIN(stream), to, from, bytes, true), \
		(SL_PER_THREAD(stream), to, from, bytes, true))
LINEAR_SYNC(cuMemcpyAtoA_v2,
	(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes),
	IN(dst, dst_offset), IN(src, src_offset))
LINEAR_SYNC(cuMemcpyAtoD_v2,
	(CUdeviceptr dst, CUarray src, size_t src_offset, size_t bytes), GPU(dst),
	IN(src, src_offset))
LINEAR_SYNC(cuMemcpyDtoA_v2,
	(CUarray dst, size_t dst_offset, CUdeviceptr src, size_t bytes),
	IN(dst, dst_offset), GPU(src))
LINEAR_SYNC(cuMemcpyAtoH_v2, (void *dst, CUarray src, size_t src_offset, size_t bytes),
	HOST(dst), IN(src, src_offset))
LINEAR_SYNC(cuMemcpyHtoA_v2,
	(CUarray dst, size_t dst_offset, const void *src, size_t bytes),
	IN(dst, dst_offset), HOST(src))
LINEAR_ASYNC(cuMemcpyAtoHAsync_v2,
	(void *dst, CUarray src, size_t src_offset, size_t bytes, CUstream stream),
	HOST(dst), IN(src, src_offset))
LINEAR_ASYNC(cuMemcpyHtoAAsync_v2,
	(CUarray dst, size_t dst_offset, const void *src, size_t bytes, CUstream stream),
	IN(dst, dst_offset), HOST(src))
