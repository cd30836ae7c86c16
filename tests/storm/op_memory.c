/*
 * op_memory - allocate, free, and ask about pointers
 */
#include "ops.h"

#include <string.h>
#include <sys/mman.h>

#define ABSURD ((size_t)1 << 42)

/* Addresses at which there is never anything. */
static CUdeviceptr junk(uint32_t n)
{
	static const CUdeviceptr list[] = {1, 0x1000, 0xdead0000, 0x7fffffff0000,
		0x100000000000000, ~(CUdeviceptr)0};

	return list[n % 6];
}

void storm_op_alloc(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_free_buffer(l, a[0]);
	CUdeviceptr at = 0;

	if (!b || CALL(l, cuMemAlloc_v2, &at, a[1]) != CUDA_SUCCESS)
		return;
	storm_note(l, "aligned to 256", at % 256 == 0);
	storm_obtained(l, b, FROM_ALLOC, at, a[1]);
}

void storm_op_alloc_pitch(struct storm_lane *l, const uint32_t *a)
{
	static const unsigned elements[] = {4, 8, 16, 4, 8, 16, 4, 5};
	struct storm_buffer *b = storm_free_buffer(l, a[0]);
	size_t width = 1 + a[1] % 3000, height = 1 + (a[1] >> 16) % 40, pitch = 0;
	CUdeviceptr at = 0;

	if (!b || CALL(l, cuMemAllocPitch_v2, &at, &pitch, width, height,
			  elements[a[2] % 8]) != CUDA_SUCCESS)
		return;
	storm_note(l, "pitch", pitch);
	storm_obtained(l, b, FROM_PITCH, at, pitch * height);
	b->pitch = pitch;
}

void storm_op_alloc_wrong(struct storm_lane *l, const uint32_t *a)
{
	CUdeviceptr at = 0;
	size_t pitch;
	void *host;

	switch (a[0] % 11) {
	case 0: CALL(l, cuMemAlloc_v2, NULL, 100); break;
	case 1: CALL(l, cuMemAlloc_v2, &at, 0); break;
	case 2: CALL(l, cuMemAlloc_v2, &at, ABSURD); break;
	case 3: CALL(l, cuMemAlloc_v2, &at, SIZE_MAX - a[0] % 4096); break;
	case 4: CALL(l, cuMemAllocPitch_v2, &at, NULL, 10, 10, 4); break;
	case 5: CALL(l, cuMemAllocPitch_v2, &at, &pitch, SIZE_MAX / 2, 4, 4); break;
	case 6: CALL(l, cuMemAllocPitch_v2, &at, &pitch, 0, 4, 4); break;
	case 7: CALL(l, cuMemAllocManaged, &at, 0, CU_MEM_ATTACH_GLOBAL); break;
	case 8: CALL(l, cuMemAllocManaged, &at, 4096, 77); break;
	case 9: CALL(l, cuMemHostAlloc, &host, 0, 0); break;
	case 10: CALL(l, cuMemHostAlloc, &host, 100, 0x100); break;
	}
}

/* The free that goes with how it was obtained. */
static CUresult give_back(struct storm_lane *l, struct storm_buffer *b)
{
	CUresult r;

	switch (b->from) {
	case FROM_PINNED: return CALL(l, cuMemFreeHost, (void *)(uintptr_t)b->at);
	case FROM_REGISTERED:
		r = CALL(l, cuMemHostUnregister, (void *)(uintptr_t)b->at);
		if (r == CUDA_SUCCESS)
			munmap((void *)(uintptr_t)b->at, b->reserved);
		return r;
	case FROM_VMM:
	case FROM_IMPORT:
		storm_quiesce(l); /* nothing may run on it */
		r = CALL(l, cuMemUnmap, b->at, b->reserved);
		return r == CUDA_SUCCESS ? CALL(l, cuMemAddressFree, b->at, b->reserved)
					 : r;
	case FROM_IPC:
		r = CALL(l, cuIpcCloseMemHandle, b->at);
		if (r == CUDA_SUCCESS)
			l->answers->place[b->place].opened--;
		return r;
	default: return CALL(l, cuMemFree_v2, b->at);
	}
}

/* Memory that another process has open, or that an open capture names, stays. */
static bool may_go(struct storm_lane *l, const struct storm_buffer *b)
{
	if (!b->shared || b->from == FROM_IPC || b->place < 0)
		return true;
	return !l->answers->place[b->place].opened;
}

bool storm_give_back(struct storm_lane *l, struct storm_buffer *b)
{
	if (!may_go(l, b))
		return false;
	if (!storm_verify(l, b, 0, b->bytes < 4096 ? b->bytes : 4096))
		return false;
	if (give_back(l, b) != CUDA_SUCCESS)
		return false;
	if (b->shared && b->from != FROM_IPC && b->place >= 0)
		l->answers->place[b->place].valid = 0;
	storm_forget(l, b);
	return true;
}

void storm_op_free(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);

	if (b)
		storm_give_back(l, b);
}

void storm_op_free_twice(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	enum storm_from from;

	if (!b || b->from > FROM_PINNED || b->from == FROM_POOL)
		return;
	from = b->from;
	if (!storm_give_back(l, b))
		return;
	if (from == FROM_PINNED)
		CALL(l, cuMemFreeHost, (void *)(uintptr_t)b->at);
	else
		CALL(l, cuMemFree_v2, b->at);
}

/* A wrong free must change nothing: the memory is verified after it. */
void storm_op_free_wrong(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	bool is_plain;

	if (!b)
		return;
	is_plain = b->from <= FROM_MANAGED;
	switch (a[1] % 7) {
	case 0: CALL(l, cuMemFree_v2, junk(a[1] >> 8)); break;
	case 1: CALL(l, cuMemFree_v2, 0); break;
	case 2:
		if (b->bytes > 1)
			CALL(l, cuMemFree_v2, b->at + 1 + (a[1] >> 8) % (b->bytes - 1));
		break;
	case 3:
		if (!is_plain)
			CALL(l, cuMemFree_v2, b->at);
		break;
	case 4:
		if (b->from != FROM_PINNED)
			CALL(l, cuMemFreeHost, (void *)(uintptr_t)b->at);
		break;
	case 5:
		if (b->from != FROM_REGISTERED)
			CALL(l, cuMemHostUnregister, (void *)(uintptr_t)b->at);
		break;
	case 6:
		if (b->from != FROM_IPC)
			CALL(l, cuIpcCloseMemHandle, b->at);
		break;
	}
	storm_verify(l, b, 0, b->bytes < 256 ? b->bytes : 256);
}

void storm_op_alloc_managed(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_free_buffer(l, a[0]);
	CUdeviceptr at = 0;

	if (!b || CALL(l, cuMemAllocManaged, &at, a[1], CU_MEM_ATTACH_GLOBAL) !=
			  CUDA_SUCCESS)
		return;
	storm_obtained(l, b, FROM_MANAGED, at, a[1]);
}

void storm_op_alloc_pinned(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_free_buffer(l, a[0]);
	size_t bytes = a[1] % (1 << 20) + 1;
	void *at = NULL;
	CUresult r;

	if (!b)
		return;
	r = a[2] & 8 ? CALL(l, cuMemAllocHost_v2, &at, bytes)
		     : CALL(l, cuMemHostAlloc, &at, bytes, a[2] & 7);
	if (r == CUDA_SUCCESS)
		storm_obtained(l, b, FROM_PINNED, (CUdeviceptr)(uintptr_t)at, bytes);
}

void storm_op_register(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_free_buffer(l, a[0]);
	size_t bytes = (a[1] % (256 << 10) | 4095) + 1;
	void *at;

	if (!b)
		return;
	at = mmap(
		NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return;
	if (CALL(l, cuMemHostRegister_v2, at, bytes, a[2] & 3) != CUDA_SUCCESS) {
		munmap(at, bytes);
		return;
	}
	b->reserved = bytes;
	storm_obtained(l, b, FROM_REGISTERED, (CUdeviceptr)(uintptr_t)at, bytes);
	if (a[2] & 16) /* a second time: refused */
		CALL(l, cuMemHostRegister_v2, at, bytes, 0);
}

void storm_op_pinned_query(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	CUdeviceptr at = 0;
	unsigned flags = 0;
	void *host;

	if (!b)
		return;
	host = (void *)(uintptr_t)b->at;
	if (a[1] & 1) {
		if (CALL(l, cuMemHostGetDevicePointer_v2, &at, host, a[1] & 64) ==
			CUDA_SUCCESS)
			storm_note(l, "same address", at == b->at);
	} else if (CALL(l, cuMemHostGetFlags, a[1] & 128 ? NULL : &flags, host) ==
		   CUDA_SUCCESS) {
		storm_note(l, "flags", flags);
	}
}

void storm_op_address_range(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	CUdeviceptr base = 0, at;
	size_t bytes = 0;
	CUresult r;

	if (!b)
		return;
	at = b->at + a[1] % b->bytes;
	r = CALL(l, cuMemGetAddressRange_v2, a[1] & 0x1000000 ? NULL : &base,
		a[1] & 0x2000000 ? NULL : &bytes, at);
	if (r != CUDA_SUCCESS)
		return;
	if (base)
		storm_note(l, "offset in it", at - base);
	if (bytes)
		storm_note(l, "bytes", bytes);
}

/* Attributes whose values mean the same in both runs, with what they are relative to. */
static bool is_loose(CUpointer_attribute which)
{
	switch (which) {
#define SL_STORM_LOOSE_ATTRIBUTE(attribute, why) \
	case attribute:                          \
		return true;
#include "differences.def"
#undef SL_STORM_LOOSE_ATTRIBUTE
	default: return false;
	}
}

static void note_attribute(struct storm_lane *l, struct storm_buffer *b, CUdeviceptr at,
	CUpointer_attribute which, uint64_t value)
{
	switch (which) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		value = !value ? 0 : value == (uintptr_t)l->primary ? 1 : 2;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER: value = value ? value - at : 1; break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: value = value ? at - value : 1; break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		if (!b->id)
			b->id = value;
		value = value == b->id;
		break;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: value = value != 0; break;
	default: value = is_loose(which) ? 0 : value; break;
	}
	storm_note(l, "attribute", (uint64_t)which << 56 | value);
}

/* All but the tokens for peers; some that do not exist. */
static CUpointer_attribute attribute(uint32_t n)
{
	static const uint8_t list[] = {1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
		17, 18, 19, 20, 0, 21, 99};

	return (CUpointer_attribute)list[n % sizeof(list)];
}

void storm_op_pointer_attribute(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	CUpointer_attribute which = attribute(a[2]);
	uint64_t value[4] = {0};
	CUdeviceptr at;

	if (!b)
		return;
	at = b->at + a[1] % b->bytes;
	if (CALL(l, cuPointerGetAttribute, value, which, at) == CUDA_SUCCESS)
		note_attribute(l, b, at, which, value[0]);
}

void storm_op_pointer_attributes(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	CUpointer_attribute which[5];
	uint64_t value[5][4] = {{0}};
	void *out[5];
	unsigned count = 1 + a[1] % 5;

	if (!b)
		return;
	for (unsigned i = 0; i < count; i++) {
		which[i] = attribute((a[1] >> 4) + i * 5);
		out[i] = value[i];
	}
	if (CALL(l, cuPointerGetAttributes, count, which, out, b->at) == CUDA_SUCCESS)
		for (unsigned i = 0; i < count; i++)
			note_attribute(l, b, b->at, which[i], value[i][0]);
}

void storm_op_pointer_set(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	unsigned value = a[1] & 1;

	if (!b)
		return;
	CALL(l, cuPointerSetAttribute, a[1] & 64 ? NULL : &value,
		a[1] & 128 ? CU_POINTER_ATTRIBUTE_MEMORY_TYPE
			   : CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
		b->at);
}

void storm_op_pointer_wrong(struct storm_lane *l, const uint32_t *a)
{
	CUpointer_attribute which[2] = {attribute(a[0] >> 8), attribute(a[0] >> 16)};
	CUdeviceptr at = junk(a[0] >> 4), base;
	uint64_t value[2][4] = {{7}, {7}};
	void *out[2] = {value[0], value[1]};
	size_t bytes;

	switch (a[0] % 6) {
	case 0: CALL(l, cuPointerGetAttribute, value, which[0], at); break;
	case 1:
		CALL(l, cuPointerGetAttributes, 2, which, out, at);
		storm_note(l, "first", (uint32_t)value[0][0]);
		break;
	case 2: CALL(l, cuMemGetAddressRange_v2, &base, &bytes, at); break;
	case 3: CALL(l, cuPointerGetAttribute, NULL, which[0], at); break;
	case 4: CALL(l, cuPointerGetAttributes, 0, NULL, NULL, at); break;
	case 5: CALL(l, cuMemHostGetFlags, NULL, (void *)(uintptr_t)at); break;
	}
}

/* The figures differ by what others hold; that they make sense does not. */
void storm_op_memory_info(struct storm_lane *l, const uint32_t *a)
{
	size_t free_bytes = 0, total = 0, device_total = 0;

	if (a[0] & 1) {
		CALL(l, cuMemGetInfo_v2, NULL, NULL);
		return;
	}
	if (CALL(l, cuMemGetInfo_v2, &free_bytes, &total) == CUDA_SUCCESS)
		storm_note(l, "free <= total", free_bytes <= total);
	if (CALL(l, cuDeviceTotalMem_v2, &device_total, l->device) == CUDA_SUCCESS &&
		total)
		storm_note(l, "one total", total == device_total);
}

void storm_op_retain(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	CUmemGenericAllocationHandle handle;

	if (!b)
		return;
	if (CALL(l, cuMemRetainAllocationHandle, &handle,
		    (void *)(uintptr_t)(b->at + a[1] % b->bytes)) == CUDA_SUCCESS)
		CALL(l, cuMemRelease, handle);
}

void storm_op_verify(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	size_t offset, bytes;

	if (!b)
		return;
	storm_window(b, a[1], a[2], SCRATCH_BYTES, &offset, &bytes);
	storm_verify(l, b, offset, bytes);
}

/* Everything is looked at and given back. */
void storm_op_tidy(struct storm_lane *l, const uint32_t *a)
{
	if (l->captures)
		return;
	for (unsigned i = 0; i < STORM_BUFFER_SLOTS; i++) {
		struct storm_buffer *b = &l->buffer[i];

		if (!b->live)
			continue;
		storm_verify(
			l, b, 0, b->bytes < SCRATCH_BYTES ? b->bytes : SCRATCH_BYTES);
		storm_give_back(l, b);
	}
}
