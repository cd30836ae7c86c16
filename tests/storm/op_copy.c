/*
 * op_copy - writes, reads, copies and memsets
 */
#include "ops.h"

#include <string.h>

#define MOST (48u << 10)

void storm_fill_scratch(struct storm_lane *l, uint32_t seed, size_t bytes)
{
	uint64_t x = seed * 0x9E3779B97F4A7C15u + 1;

	for (size_t i = 0; i + 8 <= bytes + 7 && i + 8 <= SCRATCH_BYTES; i += 8) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		memcpy(l->scratch + i, &x, 8);
	}
}

/* The lane's own memory to a buffer. In the four forms different sides wait. */
void storm_op_write(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	unsigned form = l->step->dice >> 4 & 3;
	size_t offset, bytes;
	int slot;
	CUstream s;

	if (!b || !storm_stream(l, a[1], &s))
		return;
	slot = storm_stream_slot(l, form & 1 ? a[1] : 0);
	/* A capture is read at its launch: then the scratch is another. */
	if (storm_capturing(l, (uint32_t)slot))
		return;
	storm_window(b, a[2], a[3], MOST, &offset, &bytes);
	storm_fill_scratch(l, l->step->dice, bytes);
	storm_touch(l, b, slot);
	switch (form) {
	case 0: CALL_D(l, cuMemcpyHtoD_v2, b->at + offset, l->scratch, bytes); break;
	case 1:
		CALL_S(l, cuMemcpyHtoDAsync_v2, b->at + offset, l->scratch, bytes, s);
		break;
	case 2:
		CALL_D(l, cuMemcpy, b->at + offset, (CUdeviceptr)(uintptr_t)l->scratch,
			bytes);
		break;
	case 3:
		CALL_S(l, cuMemcpyAsync, b->at + offset,
			(CUdeviceptr)(uintptr_t)l->scratch, bytes, s);
		break;
	}
}

void storm_op_read(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	unsigned form = l->step->dice >> 4 & 3;
	size_t offset, bytes;
	CUresult r = CUDA_SUCCESS;
	CUstream s;
	int slot;

	if (!b || !storm_stream(l, a[1], &s))
		return;
	slot = storm_stream_slot(l, form & 1 ? a[1] : 0);
	if (storm_capturing(l, (uint32_t)slot))
		return;
	storm_window(b, a[2], a[3], MOST, &offset, &bytes);
	storm_touch(l, b, slot);
	switch (form) {
	case 0: r = CALL_D(l, cuMemcpyDtoH_v2, l->readback, b->at + offset, bytes); break;
	case 1:
		r = CALL_S(
			l, cuMemcpyDtoHAsync_v2, l->readback, b->at + offset, bytes, s);
		break;
	case 2:
		r = CALL_D(l, cuMemcpy, (CUdeviceptr)(uintptr_t)l->readback,
			b->at + offset, bytes);
		break;
	case 3:
		r = CALL_S(l, cuMemcpyAsync, (CUdeviceptr)(uintptr_t)l->readback,
			b->at + offset, bytes, s);
		break;
	}
	if (r == CUDA_SUCCESS)
		r = CALL_S(l, cuStreamSynchronize, s);
	if (r == CUDA_SUCCESS && !b->tainted)
		storm_note_bytes(l, l->readback, bytes);
}

struct pair {
	struct storm_buffer *dst, *src;
	CUdeviceptr to, from;
	size_t bytes;
	CUstream stream;
	int slot;
	bool async, both_gpu;
};

/* Parts of two buffers (or the halves of one) of one length, ordered for the call to come. */
static bool pair_of(struct storm_lane *l, const uint32_t *a, size_t most, struct pair *p)
{
	size_t off_dst, off_src, n_dst, n_src;

	p->dst = storm_buffer(l, a[0]);
	p->src = storm_buffer(l, a[1]);
	if (!p->dst || !p->src || !storm_stream(l, a[2], &p->stream))
		return false;
	storm_window(p->dst, a[3], a[4], most, &off_dst, &n_dst);
	storm_window(p->src, a[4] >> 3, a[3] >> 5 | (a[4] & 0x80000000u), most, &off_src,
		&n_src);
	p->bytes = n_dst < n_src ? n_dst : n_src;
	if (p->dst == p->src) {
		off_src = 0;
		off_dst = p->dst->bytes / 2;
		if (p->bytes > p->dst->bytes / 2)
			p->bytes = p->dst->bytes / 2;
		if (!p->bytes)
			return false;
	}
	p->to = p->dst->at + off_dst;
	p->from = p->src->at + off_src;
	p->async = l->step->dice >> 8 & 1;
	p->both_gpu = !storm_on_host(p->dst) && !storm_on_host(p->src);
	p->slot = storm_stream_slot(l, p->async ? a[2] : 0);
	if (p->dst->tainted || p->src->tainted)
		p->dst->tainted = true;
	storm_touch(l, p->dst, p->slot);
	storm_touch(l, p->src, p->slot);
	return true;
}

void storm_op_copy(struct storm_lane *l, const uint32_t *a)
{
	unsigned form = l->step->dice >> 4 & 1;
	struct pair p;

	if (!pair_of(l, a, MOST, &p))
		return;
	if (form && p.both_gpu) {
		if (p.async)
			CALL_S(l, cuMemcpyDtoDAsync_v2, p.to, p.from, p.bytes, p.stream);
		else
			CALL_D(l, cuMemcpyDtoD_v2, p.to, p.from, p.bytes);
	} else if (form && !storm_on_host(p.dst)) {
		void *from = (void *)(uintptr_t)p.from;

		if (p.async)
			CALL_S(l, cuMemcpyHtoDAsync_v2, p.to, from, p.bytes, p.stream);
		else
			CALL_D(l, cuMemcpyHtoD_v2, p.to, from, p.bytes);
	} else if (form && !storm_on_host(p.src)) {
		void *to = (void *)(uintptr_t)p.to;

		if (p.async)
			CALL_S(l, cuMemcpyDtoHAsync_v2, to, p.from, p.bytes, p.stream);
		else
			CALL_D(l, cuMemcpyDtoH_v2, to, p.from, p.bytes);
	} else if (p.async) {
		CALL_S(l, cuMemcpyAsync, p.to, p.from, p.bytes, p.stream);
	} else {
		CALL_D(l, cuMemcpy, p.to, p.from, p.bytes);
	}
}

/* A rectangle inside `bytes` bytes: rows at a pitch, both from the numbers. */
static void rectangle(
	uint32_t n, size_t bytes, size_t *width, size_t *rows, size_t *pitch)
{
	*width = 1 + n % 700;
	if (*width > bytes)
		*width = bytes;
	*pitch = *width + (n >> 10) % 64;
	*rows = 1 + (bytes - *width) / *pitch;
	if (*rows > 1 + (n >> 16) % 30)
		*rows = 1 + (n >> 16) % 30;
}

void storm_op_copy_2d(struct storm_lane *l, const uint32_t *a)
{
	CUDA_MEMCPY2D c = {0};
	struct pair p;
	size_t pitch;

	if (!pair_of(l, a, MOST, &p))
		return;
	rectangle(l->step->dice >> 3, p.bytes, &c.WidthInBytes, &c.Height, &pitch);
	c.srcMemoryType =
		storm_on_host(p.src) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	c.dstMemoryType =
		storm_on_host(p.dst) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	if (l->step->dice & 2)
		c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	c.srcDevice = p.from;
	c.srcHost = (void *)(uintptr_t)p.from;
	c.dstDevice = p.to;
	c.dstHost = (void *)(uintptr_t)p.to;
	c.srcPitch = c.dstPitch = pitch;
	if (l->step->dice >> 20 % 16 == 0)
		c.srcPitch = c.WidthInBytes - 1; /* too narrow */
	if (p.async)
		CALL_S(l, cuMemcpy2DAsync_v2, &c, p.stream);
	else if (l->step->dice & 4)
		CALL_D(l, cuMemcpy2DUnaligned_v2, &c);
	else
		CALL_D(l, cuMemcpy2D_v2, &c);
}

void storm_op_copy_3d(struct storm_lane *l, const uint32_t *a)
{
	CUDA_MEMCPY3D c = {0};
	struct pair p;
	size_t pitch, rows;

	if (!pair_of(l, a, MOST, &p))
		return;
	rectangle(l->step->dice >> 3, p.bytes, &c.WidthInBytes, &rows, &pitch);
	c.Depth = rows > 2 ? 2 : 1;
	c.Height = rows / c.Depth;
	c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	c.srcDevice = p.from;
	c.dstDevice = p.to;
	c.srcPitch = c.dstPitch = pitch;
	c.srcHeight = c.dstHeight = c.Height;
	if (p.async)
		CALL_S(l, cuMemcpy3DAsync_v2, &c, p.stream);
	else
		CALL_D(l, cuMemcpy3D_v2, &c);
}

void storm_op_copy_peer(struct storm_lane *l, const uint32_t *a)
{
	struct pair p;

	if (!pair_of(l, a, MOST, &p))
		return;
	if (p.async)
		CALL_S(l, cuMemcpyPeerAsync, p.to, l->primary, p.from, l->primary,
			p.bytes, p.stream);
	else
		CALL_D(l, cuMemcpyPeer, p.to, l->primary, p.from, l->primary, p.bytes);
}

/* Several at once, on a stream that exists. */
void storm_op_copy_batch(struct storm_lane *l, const uint32_t *a)
{
	CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	size_t first = 0, failed = 0, sizes[2];
	CUdeviceptr to[2], from[2];
	struct pair p;

	if (!pair_of(l, a, MOST, &p) || p.bytes < 2)
		return;
	/* pair_of chose a slot for a call that may be synchronous; this one never is. */
	if (!storm_touch(l, p.dst, storm_stream_slot(l, a[2])) ||
		!storm_touch(l, p.src, storm_stream_slot(l, a[2])))
		return;
	sizes[0] = p.bytes / 2;
	sizes[1] = p.bytes - sizes[0];
	to[0] = p.to;
	to[1] = p.to + sizes[0];
	from[0] = p.from;
	from[1] = p.from + sizes[0];
	CALL_S(l, cuMemcpyBatchAsync, to, from, sizes, 2, &how, &first, 1, &failed,
		p.stream);
}

/* Nothing may be written by these. */
void storm_op_copy_wrong(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	CUstream s;

	if (!b || !storm_stream(l, a[1], &s))
		return;
	storm_touch(l, b, ON_HOST);
	switch (a[2] % 9) {
	case 0: CALL(l, cuMemcpyHtoD_v2, b->at, l->scratch, 0); break;
	case 1: CALL(l, cuMemcpyHtoD_v2, 0, l->scratch, 16); break;
	case 2: CALL(l, cuMemcpyDtoH_v2, NULL, b->at, 1); break;
	case 3: CALL(l, cuMemcpyHtoD_v2, 0x1000, l->scratch, 16); break;
	case 4: CALL(l, cuMemcpyDtoD_v2, b->at, 0xdead0000, 16); break;
	case 5: CALL(l, cuMemcpy2D_v2, NULL); break;
	case 6:
		CALL(l, cuMemcpyHtoDAsync_v2, b->at, l->scratch, 1, (CUstream)0x30);
		break;
	case 7: CALL(l, cuMemcpyPeer, b->at, NULL, b->at, NULL, 0); break;
	case 8: CALL(l, cuMemcpyAsync, b->at, b->at, 0, s); break;
	}
	storm_verify(l, b, 0, b->bytes < 64 ? b->bytes : 64);
}

void storm_op_set(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	uint32_t value = l->step->dice * 2654435761u;
	size_t offset, bytes;
	CUdeviceptr at;
	CUstream s;
	bool async = l->step->dice >> 8 & 1;
	int slot;

	if (!b || !storm_stream(l, a[1], &s))
		return;
	slot = storm_stream_slot(l, async ? a[1] : 0);
	storm_window(b, a[2], a[3], MOST, &offset, &bytes);
	storm_touch(l, b, slot);
	at = b->at + offset;
	switch ((l->step->dice >> 4) % 3 * 2 + async) {
	case 0: CALL_D(l, cuMemsetD8_v2, at, (unsigned char)value, bytes); break;
	case 1: CALL_S(l, cuMemsetD8Async, at, (unsigned char)value, bytes, s); break;
	case 2:
		CALL_D(l, cuMemsetD16_v2, at & ~1ull, (unsigned short)value, bytes / 2);
		break;
	case 3:
		CALL_S(l, cuMemsetD16Async, at & ~1ull, (unsigned short)value, bytes / 2,
			s);
		break;
	case 4: CALL_D(l, cuMemsetD32_v2, at & ~3ull, value, bytes / 4); break;
	case 5: CALL_S(l, cuMemsetD32Async, at & ~3ull, value, bytes / 4, s); break;
	}
}

void storm_op_set_2d(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	uint32_t value = l->step->dice * 2654435761u;
	size_t offset, bytes, width, rows, pitch;
	bool async = l->step->dice >> 8 & 1;
	CUdeviceptr at;
	CUstream s;
	int slot;

	if (!b || !storm_stream(l, a[1], &s) || b->bytes < 64)
		return;
	slot = storm_stream_slot(l, async ? a[1] : 0);
	storm_window(b, a[2], a[3], MOST, &offset, &bytes);
	rectangle(l->step->dice >> 2, bytes, &width, &rows, &pitch);
	at = (b->at + offset) & ~3ull;
	pitch &= ~3ull;
	width = width > pitch ? pitch : width;
	storm_touch(l, b, slot);
	switch ((l->step->dice >> 4) % 3 * 2 + async) {
	case 0:
		CALL_D(l, cuMemsetD2D8_v2, at, pitch, (unsigned char)value, width, rows);
		break;
	case 1:
		CALL_S(l, cuMemsetD2D8Async, at, pitch, (unsigned char)value, width, rows,
			s);
		break;
	case 2:
		CALL_D(l, cuMemsetD2D16_v2, at, pitch, (unsigned short)value, width / 2,
			rows);
		break;
	case 3:
		CALL_S(l, cuMemsetD2D16Async, at, pitch, (unsigned short)value, width / 2,
			rows, s);
		break;
	case 4: CALL_D(l, cuMemsetD2D32_v2, at, pitch, value, width / 4, rows); break;
	case 5:
		CALL_S(l, cuMemsetD2D32Async, at, pitch, value, width / 4, rows, s);
		break;
	}
}

void storm_op_set_wrong(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	CUstream s;

	if (!b || !storm_stream(l, a[1], &s))
		return;
	storm_touch(l, b, ON_HOST);
	switch (a[2] % 7) {
	case 0: CALL(l, cuMemsetD8_v2, 0, 1, 16); break;
	case 1: CALL(l, cuMemsetD8_v2, b->at, 1, 0); break;
	case 2: CALL(l, cuMemsetD32_v2, b->at | 1, 1, 1); break;
	case 3: CALL(l, cuMemsetD16_v2, b->at | 1, 1, 1); break;
	case 4: CALL(l, cuMemsetD8_v2, 0x2000, 1, 16); break;
	case 5: CALL(l, cuMemsetD2D8_v2, b->at, 4, 1, 8, 2); break;
	case 6: CALL(l, cuMemsetD8Async, b->at, 1, 1, (CUstream)0x30); break;
	}
	storm_verify(l, b, 0, b->bytes < 64 ? b->bytes : 64);
}
