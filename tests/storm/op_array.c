/*
 * op_array - arrays and copies between them and buffers
 */
#include "ops.h"

void storm_op_array_create(struct storm_lane *l, const uint32_t *a)
{
	static const CUarray_format formats[] = {CU_AD_FORMAT_UNSIGNED_INT8,
		CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32,
		CU_AD_FORMAT_FLOAT};
	static const unsigned element[] = {1, 2, 4, 4};
	struct storm_array *y = &l->array[a[0] % STORM_ARRAY_SLOTS];
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 1 + a[1] % 300,
		.Height = a[1] >> 10 & 1 ? 1 + (a[1] >> 11) % 60 : 0,
		.Format = formats[a[2] & 3],
		.NumChannels = a[2] >> 2 & 1 ? 4 : 1};
	CUDA_ARRAY_DESCRIPTOR flat = {
		desc.Width, desc.Height, desc.Format, desc.NumChannels};
	CUresult r;

	if (y->live)
		return;
	if (a[2] >> 8 % 16 == 0)
		desc.NumChannels = flat.NumChannels = 3;
	r = a[2] & 8 ? CALL(l, cuArrayCreate_v2, &y->handle, &flat)
		     : CALL(l, cuArray3DCreate_v2, &y->handle, &desc);
	if (r != CUDA_SUCCESS)
		return;
	y->live = true;
	y->tainted = false;
	y->element = element[a[2] & 3] * desc.NumChannels;
	y->width = desc.Width;
	y->height = desc.Height ? desc.Height : 1;
	/* Given contents, row by row: it begins with rubbish. */
	storm_fill_scratch(l, l->step->dice, y->width * y->element);
	for (size_t row = 0; row < y->height; row++) {
		CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			.srcHost = l->scratch,
			.dstMemoryType = CU_MEMORYTYPE_ARRAY,
			.dstArray = y->handle,
			.dstY = row,
			.WidthInBytes = y->width * y->element,
			.Height = 1};

		if (CALL(l, cuMemcpy2D_v2, &c) != CUDA_SUCCESS)
			y->tainted = true;
	}
}

static struct storm_array *array_of(struct storm_lane *l, uint32_t slot)
{
	return slot < STORM_ARRAY_SLOTS && l->array[slot].live ? &l->array[slot] : NULL;
}

void storm_op_array_destroy(struct storm_lane *l, const uint32_t *a)
{
	struct storm_array *y = array_of(l, a[0]);

	if (y && CALL(l, cuArrayDestroy, y->handle) == CUDA_SUCCESS)
		y->live = false;
}

void storm_op_array_ask(struct storm_lane *l, const uint32_t *a)
{
	struct storm_array *y = array_of(l, a[0]);
	CUDA_ARRAY_DESCRIPTOR flat = {0};
	CUDA_ARRAY3D_DESCRIPTOR desc = {0};

	if (!y)
		return;
	if (a[1] & 1) {
		if (CALL(l, cuArrayGetDescriptor_v2, &flat, y->handle) == CUDA_SUCCESS)
			storm_note(l, "width", flat.Width * 1000 + flat.Height);
	} else if (CALL(l, cuArray3DGetDescriptor_v2, &desc, y->handle) == CUDA_SUCCESS) {
		storm_note(l, "width", desc.Width * 1000 + desc.Height);
		storm_note(l, "channels", desc.NumChannels);
	}
}

/* One row, to or from a buffer or the lane's own memory. */
void storm_op_array_copy(struct storm_lane *l, const uint32_t *a)
{
	struct storm_array *y = array_of(l, a[0]);
	struct storm_buffer *b = storm_buffer(l, a[1]);
	CUDA_MEMCPY2D c = {0};
	size_t bytes;

	if (!y || !b || l->captures)
		return;
	b->tainted |= a[2] & 1 && y->tainted;
	bytes = y->width * y->element;
	if (bytes > b->bytes)
		bytes = b->bytes;
	c.Height = 1;
	c.WidthInBytes = bytes;
	storm_touch(l, b, storm_stream_slot(l, 0));
	if (a[2] & 1) {
		c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
		c.srcArray = y->handle;
		c.srcY = a[3] % y->height;
		c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
		c.dstDevice = b->at;
	} else {
		if (b->tainted)
			return;
		c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
		c.dstArray = y->handle;
		c.dstY = a[3] % y->height;
		c.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
		c.srcDevice = b->at;
	}
	CALL_D(l, cuMemcpy2D_v2, &c);
	if (CALL_D(l, cuMemcpyAtoH_v2, l->readback, y->handle, 0,
		    y->width * y->element) == CUDA_SUCCESS &&
		!y->tainted)
		storm_note_bytes(l, l->readback, y->width * y->element);
}

/* Bytes in a row, by the calls that take offsets. */
void storm_op_array_line(struct storm_lane *l, const uint32_t *a)
{
	struct storm_array *y = array_of(l, a[0]);
	struct storm_buffer *b = storm_buffer(l, a[1]);
	size_t row, offset, bytes;

	if (!y || !b || l->captures || storm_on_host(b) || y->height > 1)
		return;
	row = y->width * y->element;
	offset = a[2] % row / y->element * y->element;
	bytes = row - offset < b->bytes ? row - offset : b->bytes;
	storm_touch(l, b, storm_stream_slot(l, 0));
	switch (a[3] % 4) {
	case 0:
		b->tainted |= y->tainted;
		CALL_D(l, cuMemcpyAtoD_v2, b->at, y->handle, offset, bytes);
		break;
	case 1:
		if (!b->tainted)
			CALL_D(l, cuMemcpyDtoA_v2, y->handle, offset, b->at, bytes);
		break;
	case 2:
		storm_fill_scratch(l, l->step->dice, bytes);
		CALL_D(l, cuMemcpyHtoA_v2, y->handle, offset, l->scratch, bytes);
		break;
	case 3: CALL_D(l, cuMemcpyHtoA_v2, y->handle, row + 4096, l->scratch, 16); break;
	}
	if (CALL_D(l, cuMemcpyAtoH_v2, l->readback, y->handle, 0, row) == CUDA_SUCCESS &&
		!y->tainted)
		storm_note_bytes(l, l->readback, row);
}

void storm_op_array_to_array(struct storm_lane *l, const uint32_t *a)
{
	struct storm_array *to = array_of(l, a[0]), *from = array_of(l, a[1]);
	size_t bytes;

	if (!to || !from || to == from || to->height > 1 || from->height > 1 ||
		l->captures)
		return;
	bytes = to->width * to->element;
	if (bytes > from->width * from->element)
		bytes = from->width * from->element;
	to->tainted |= from->tainted;
	CALL_D(l, cuMemcpyAtoA_v2, to->handle, 0, from->handle, 0, bytes);
}

/* Made, looked at and given back at once. */
void storm_op_mipmap(struct storm_lane *l, const uint32_t *a)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 1 + a[0] % 200,
		.Height = 1 + (a[0] >> 8) % 100,
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = a[1] & 3 ? 4 : 3};
	CUDA_ARRAY_DESCRIPTOR level_desc = {0};
	CUmipmappedArray mipmap;
	CUarray level;

	if (CALL(l, cuMipmappedArrayCreate, &mipmap, &desc, 1 + (a[1] >> 4) % 9) !=
		CUDA_SUCCESS)
		return;
	if (CALL(l, cuMipmappedArrayGetLevel, &level, mipmap, (a[1] >> 8) % 5) ==
			CUDA_SUCCESS &&
		CALL(l, cuArrayGetDescriptor_v2, &level_desc, level) == CUDA_SUCCESS)
		storm_note(l, "width", level_desc.Width * 1000 + level_desc.Height);
	CALL(l, cuMipmappedArrayDestroy, mipmap);
}

/* Arrays that no GPU can make: the driver says what is wrong with them. */
void storm_op_array_wrong(struct storm_lane *l, const uint32_t *a)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 16,
		.Height = 16,
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 1};
	CUarray array;

	switch (a[0] % 5) {
	case 0: desc.Width = (size_t)1 << 30; break;
	case 1: desc.NumChannels = 3; break;
	case 2: desc.Width = 0; break;
	case 3: desc.Format = (CUarray_format)0x7f; break;
	case 4: CALL(l, cuArray3DCreate_v2, NULL, &desc); return;
	}
	if (CALL(l, cuArray3DCreate_v2, &array, &desc) == CUDA_SUCCESS)
		CALL(l, cuArrayDestroy, array);
}
