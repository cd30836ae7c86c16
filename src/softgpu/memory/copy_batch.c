/*
 * copy_batch - many copies in one call, and copies with attributes
 *
 * A batch allows any order; it is submitted in the given one. All copies are checked before the
 * first is submitted, so a refused call copies nothing. If a source must be read during the call
 * and is not staged, the call waits for the copy.
 */
#include "softgpu/memory/array.h"
#include "softgpu/memory/copy.h"

#include <stdlib.h>

#define NO_INDEX SIZE_MAX

static bool attributes_ok(const CUmemcpyAttributes *a)
{
	return a->srcAccessOrder >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM &&
	       a->srcAccessOrder <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY && !(a->flags & ~1u);
}

static bool is_legacy(CUstream handle)
{
	CUstream s = sl_stream_of(handle, false);

	return s && s->is_legacy;
}

/* The address decides what each end is. */
static CUresult submit(CUstream stream, struct sl_copy *c, CUmemcpySrcAccessOrder order)
{
	enum sl_place place = sl_space_place(c->src, 1, NULL);
	CUresult r = sl_copy_submit(stream, c, true, true);

	/* Pageable sources are staged by the submission. */
	if (r == CUDA_SUCCESS && order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL &&
		place == SL_PLACE_PINNED) {
		struct sl_op *op = sl_op_new(SL_OP_NOP);

		r = op ? sl_api_run(stream, op) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	return r;
}

/* Rows -------------------------------------------------------------------------------------- */

struct rows {
	CUdeviceptr *dst, *src;
	size_t *bytes, count;
	CUmemcpyAttributes *attribute;
	size_t *first, attributes; /* attributes, and the first copy of each */
};

static bool rows_ok(const struct rows *b)
{
	if (!b->dst || !b->src || !b->bytes || !b->count || !b->attribute || !b->first ||
		!b->attributes || b->attributes > b->count || b->first[0])
		return false;
	for (size_t i = 0; i < b->attributes; i++)
		if (!attributes_ok(&b->attribute[i]) || b->first[i] >= b->count ||
			(i && b->first[i] <= b->first[i - 1]))
			return false;
	return true;
}

static bool row_ok(const struct rows *b, size_t i)
{
	return b->bytes[i] && b->dst[i] && b->src[i] &&
	       sl_space_place(b->dst[i], b->bytes[i], NULL) != SL_PLACE_NOWHERE &&
	       sl_space_place(b->src[i], b->bytes[i], NULL) != SL_PLACE_NOWHERE;
}

/* *failed: the first faulty copy, or NO_INDEX for the whole call. */
static CUresult run_rows(const struct rows *b, size_t *failed, CUstream stream)
{
	CUresult r = CUDA_SUCCESS;

	if (failed)
		*failed = NO_INDEX;
	if (!sl_stream_of(stream, false))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!rows_ok(b) || is_legacy(stream))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < b->count; i++)
		if (!row_ok(b, i)) {
			if (failed)
				*failed = i;
			return CUDA_ERROR_INVALID_VALUE;
		}
	for (size_t i = 0, a = 0; i < b->count && r == CUDA_SUCCESS; i++) {
		struct sl_copy c = {.dst = b->dst[i],
			.src = b->src[i],
			.width = b->bytes[i],
			.rows = 1,
			.slices = 1};

		if (a + 1 < b->attributes && b->first[a + 1] <= i)
			a++;
		r = submit(stream, &c, b->attribute[a].srcAccessOrder);
		if (r != CUDA_SUCCESS && failed)
			*failed = i;
	}
	return r;
}

#define ROWS                                                               \
	CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, \
		CUmemcpyAttributes *attrs, size_t *attr_indices, size_t attr_count
#define NAMES                    dsts, srcs, sizes, count, attrs, attr_indices, attr_count
#define GIVEN                    (&(struct rows){NAMES})
#define do_cuMemcpyBatchAsync    run_rows
#define do_cuMemcpyBatchAsync_v2 run_rows
SL_TWIN(cuMemcpyBatchAsync, (ROWS, size_t *failed, CUstream stream),
	(GIVEN, failed, SL_PLAIN(stream)), (GIVEN, failed, SL_PER_THREAD(stream)))
SL_TWIN(cuMemcpyBatchAsync_v2, (ROWS, CUstream stream), (GIVEN, NULL, SL_PLAIN(stream)),
	(GIVEN, NULL, SL_PER_THREAD(stream)))

static CUresult one(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
	const CUmemcpyAttributes *a, CUstream stream)
{
	struct sl_copy c = {
		.dst = dst, .src = src, .width = bytes, .rows = 1, .slices = 1};

	if (!a || !attributes_ok(a))
		return CUDA_ERROR_INVALID_VALUE;
	return submit(stream, &c, a->srcAccessOrder);
}

#define do_cuMemcpyWithAttributesAsync one
SL_TWIN(cuMemcpyWithAttributesAsync,
	(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUmemcpyAttributes *attrs,
		CUstream stream),
	(dst, src, bytes, attrs, SL_PLAIN(stream)),
	(dst, src, bytes, attrs, SL_PER_THREAD(stream)))

/* Boxes --------------------------------------------------------------------------------------- */

/* Bytes of an element: an array's, or 1 between two pointers; 0: the two do not match. */
static size_t element_of(const CUDA_MEMCPY3D_BATCH_OP *op)
{
	CUarray dst = op->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY
			      ? sl_array_of(op->dst.op.array.array)
			      : NULL;
	CUarray src = op->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY
			      ? sl_array_of(op->src.op.array.array)
			      : NULL;

	if ((!dst && op->dst.type != CU_MEMCPY_OPERAND_TYPE_POINTER) ||
		(!src && op->src.type != CU_MEMCPY_OPERAND_TYPE_POINTER))
		return 0;
	if (dst && src)
		return dst->element_bytes == src->element_bytes ? dst->element_bytes : 0;
	return dst ? dst->element_bytes : src ? src->element_bytes : 1;
}

/* Row length and layer height in elements; 0: the copy's own. */
static bool lengths_ok(const CUmemcpy3DOperand *o, const CUextent3D *x)
{
	if (o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return true;
	return o->op.ptr.ptr &&
	       (!o->op.ptr.rowLength || o->op.ptr.rowLength >= x->width) &&
	       (!o->op.ptr.layerHeight || o->op.ptr.layerHeight >= x->height);
}

static CUresult box_plan(const CUDA_MEMCPY3D_BATCH_OP *op, struct sl_copy *c)
{
	const CUextent3D *x = &op->extent;
	size_t element = element_of(op);
	bool unified;

	if (!element || !x->width || !x->height || !x->depth ||
		!lengths_ok(&op->dst, x) || !lengths_ok(&op->src, x))
		return CUDA_ERROR_INVALID_VALUE;
	if (op->srcAccessOrder < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
		op->srcAccessOrder > CU_MEMCPY_SRC_ACCESS_ORDER_ANY || op->flags & ~1u)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D p = {.WidthInBytes = x->width * element,
		.Height = x->height,
		.Depth = x->depth,
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED};
	if (op->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		p.srcMemoryType = CU_MEMORYTYPE_ARRAY;
		p.srcArray = op->src.op.array.array;
		p.srcXInBytes = op->src.op.array.offset.x * element;
		p.srcY = op->src.op.array.offset.y;
		p.srcZ = op->src.op.array.offset.z;
	} else {
		p.srcDevice = op->src.op.ptr.ptr;
		p.srcPitch = op->src.op.ptr.rowLength * element;
		p.srcHeight = op->src.op.ptr.layerHeight;
	}
	if (op->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		p.dstMemoryType = CU_MEMORYTYPE_ARRAY;
		p.dstArray = op->dst.op.array.array;
		p.dstXInBytes = op->dst.op.array.offset.x * element;
		p.dstY = op->dst.op.array.offset.y;
		p.dstZ = op->dst.op.array.offset.z;
	} else {
		p.dstDevice = op->dst.op.ptr.ptr;
		p.dstPitch = op->dst.op.ptr.rowLength * element;
		p.dstHeight = op->dst.op.ptr.layerHeight;
	}
	return sl_copy_plan(&p, c, &unified);
}

static CUresult run_boxes(size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
	unsigned long long flags, CUstream stream)
{
	CUresult r = CUDA_SUCCESS;
	struct sl_copy c;

	if (failed)
		*failed = NO_INDEX;
	if (!sl_stream_of(stream, false))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!count || !ops || flags || is_legacy(stream))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < 2 * count && r == CUDA_SUCCESS; i++) {
		r = box_plan(&ops[i % count], &c);
		if (r == CUDA_SUCCESS && i >= count)
			r = submit(stream, &c, ops[i % count].srcAccessOrder);
		if (r != CUDA_SUCCESS && failed)
			*failed = i % count;
	}
	return r;
}

#define do_cuMemcpy3DBatchAsync    run_boxes
#define do_cuMemcpy3DBatchAsync_v2 run_boxes
SL_TWIN(cuMemcpy3DBatchAsync,
	(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
		unsigned long long flags, CUstream stream),
	(count, ops, failed, flags, SL_PLAIN(stream)),
	(count, ops, failed, flags, SL_PER_THREAD(stream)))
SL_TWIN(cuMemcpy3DBatchAsync_v2,
	(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags,
		CUstream stream),
	(count, ops, NULL, flags, SL_PLAIN(stream)),
	(count, ops, NULL, flags, SL_PER_THREAD(stream)))

static CUresult one_box(
	const CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags, CUstream stream)
{
	struct sl_copy c;
	CUresult r;

	if (!op || flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = box_plan(op, &c);
	return r == CUDA_SUCCESS ? submit(stream, &c, op->srcAccessOrder) : r;
}

#define do_cuMemcpy3DWithAttributesAsync one_box
SL_TWIN(cuMemcpy3DWithAttributesAsync,
	(CUDA_MEMCPY3D_BATCH_OP * op, unsigned long long flags, CUstream stream),
	(op, flags, SL_PLAIN(stream)), (op, flags, SL_PER_THREAD(stream)))
