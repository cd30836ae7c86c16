/*
 * op_managed - advice, prefetches, attributes and touches of managed memory
 */
#include "ops.h"

#include <string.h>

/* Mostly managed memory; advice on any other is refused. */
static struct storm_buffer *managed(struct storm_lane *l, uint32_t slot, uint32_t n)
{
	struct storm_buffer *b = storm_buffer(l, slot);

	if (b && b->from == FROM_MANAGED)
		return b;
	for (unsigned i = 0; n & 7 && i < STORM_BUFFER_SLOTS; i++)
		if (l->buffer[i].live && l->buffer[i].from == FROM_MANAGED)
			return &l->buffer[i];
	return b;
}

void storm_op_managed_advise(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = managed(l, a[0], a[1] >> 16);

	if (b && !storm_on_host(b))
		CALL(l, cuMemAdvise, b->at, b->bytes, (CUmem_advise)(a[1] % 8),
			a[1] & 0x100 ? CU_DEVICE_CPU : l->device);
}

void storm_op_managed_prefetch(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = managed(l, a[0], a[2] >> 16);
	CUstream s;

	if (!b || storm_on_host(b) || !storm_stream(l, a[1], &s))
		return;
	storm_touch(l, b, storm_stream_slot(l, a[1]));
	CALL_S(l, cuMemPrefetchAsync, b->at, b->bytes,
		a[2] & 1    ? CU_DEVICE_CPU
		: a[2] & 62 ? l->device
			    : 66,
		s);
}

void storm_op_managed_attribute(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = managed(l, a[0], a[1] >> 16);
	int value = 0;

	if (!b || storm_on_host(b))
		return;
	if (CALL(l, cuMemRangeGetAttribute, &value, sizeof(value),
		    (CUmem_range_attribute)(1 + a[1] % 5), b->at,
		    b->bytes) == CUDA_SUCCESS &&
		a[1] % 5 != 2)
		storm_note(l, "value", (uint64_t)value);
}

/* The program's own loads and stores, once the GPU is done with it. */
void storm_op_managed_touch(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = managed(l, a[0], 1);
	size_t offset, bytes;

	if (!b || b->from != FROM_MANAGED || l->captures)
		return;
	storm_quiesce(l);
	if (CALL_0(l, cuCtxSynchronize) != CUDA_SUCCESS || l->shape == STORM_SHAPE_CREW)
		return; /* another thread's work may be on the GPU */
	storm_window(b, a[1], a[2], 8192, &offset, &bytes);
	if (a[2] & 1)
		memset((char *)(uintptr_t)b->at + offset, (int)(l->step->dice & 0xff),
			bytes);
	if (!b->tainted)
		storm_note_bytes(l, (char *)(uintptr_t)b->at + offset, bytes);
}

void storm_op_managed_late(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = managed(l, a[0], a[2] >> 16);
	CUmemLocation where = {
		a[2] & 16 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
		a[2] & 96 ? l->device : 66};
	size_t first = 0;
	CUstream s;

	if (!b || storm_on_host(b) || b->context || l->context ||
		!storm_stream(l, a[1], &s))
		return;
	if (!storm_touch(l, b, storm_stream_slot(l, a[1])))
		return;
	switch (a[2] % 5) {
	case 0: CALL_S(l, cuMemPrefetchAsync_v2, b->at, b->bytes, where, 0, s); break;
	case 1:
		CALL_S(l, cuMemPrefetchBatchAsync, &b->at, &b->bytes, 1, &where, &first,
			1, 0, s);
		break;
	case 2: /* its contents are undefined from then on */
		if (CALL_S(l, cuMemDiscardBatchAsync, &b->at, &b->bytes, 1, 0, s) ==
			CUDA_SUCCESS)
			b->tainted = true;
		break;
	case 3:
		if (CALL_S(l, cuMemDiscardAndPrefetchBatchAsync, &b->at, &b->bytes, 1,
			    &where, &first, 1, 0, s) == CUDA_SUCCESS)
			b->tainted = true;
		break;
	case 4:
		CALL_S(l, cuStreamAttachMemAsync, s, b->at, 0,
			a[2] & 128 ? CU_MEM_ATTACH_GLOBAL : 77);
		break;
	}
}
