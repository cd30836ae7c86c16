/*
 * op_vmm - the program's own handles, ranges and mappings
 *
 * Two ways: vmm_buffer makes a buffer like any other out of one range and some handles; the rest
 * pokes at ranges and handles one call at a time, right and wrong.
 */
#include "ops.h"

#include <string.h>
#include <unistd.h>

#define GRAIN ((size_t)2 << 20)

static CUmemAllocationProp props(struct storm_lane *l, bool shareable)
{
	return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->device},
		.requestedHandleTypes =
			shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0};
}

static CUmemAccessDesc access_of(struct storm_lane *l, CUmemAccess_flags flags)
{
	return (CUmemAccessDesc){
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->device},
		.flags = flags};
}

void storm_op_vmm_buffer(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_free_buffer(l, a[0]);
	CUmemAccessDesc rw = access_of(l, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUmemAllocationProp prop = props(l, a[1] & 1);
	size_t pieces = 1 + a[2] % 3, done = 0;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at = 0;

	if (!b || CALL(l, cuMemAddressReserve, &at, pieces * GRAIN, 0, 0, 0) !=
			  CUDA_SUCCESS)
		return;
	for (; done < pieces; done++) {
		if (CALL(l, cuMemCreate, &handle, GRAIN, &prop, 0) != CUDA_SUCCESS)
			break;
		CUresult r = CALL(l, cuMemMap, at + done * GRAIN, GRAIN, 0, handle, 0);
		CALL(l, cuMemRelease, handle); /* the mapping keeps it */
		if (r != CUDA_SUCCESS)
			break;
	}
	if (done == pieces &&
		CALL(l, cuMemSetAccess, at, pieces * GRAIN, &rw, 1) == CUDA_SUCCESS) {
		storm_obtained(l, b, FROM_VMM, at, pieces * GRAIN - a[2] % 5000);
		b->reserved = pieces * GRAIN;
		return;
	}
	for (size_t i = 0; i < done; i++)
		CALL(l, cuMemUnmap, at + i * GRAIN, GRAIN);
	CALL(l, cuMemAddressFree, at, pieces * GRAIN);
}

void storm_op_vmm_create(struct storm_lane *l, const uint32_t *a)
{
	CUmemAllocationProp prop = props(l, a[1] & 1);
	struct storm_handle *h = &l->handle[a[0] % STORM_HANDLE_SLOTS];
	size_t bytes = GRAIN * (1 + a[2] % 3);

	if (h->live || CALL(l, cuMemCreate, &h->handle, bytes, &prop, 0) != CUDA_SUCCESS)
		return;
	h->live = true;
	h->bytes = bytes;
	h->refs = 1;
}

void storm_op_vmm_create_wrong(struct storm_lane *l, const uint32_t *a)
{
	CUmemAllocationProp prop = props(l, false);
	CUmemGenericAllocationHandle handle;

	switch (a[0] % 9) {
	case 0: CALL(l, cuMemCreate, NULL, GRAIN, &prop, 0); break;
	case 1: CALL(l, cuMemCreate, &handle, GRAIN, NULL, 0); break;
	case 2: CALL(l, cuMemCreate, &handle, 0, &prop, 0); break;
	case 3: CALL(l, cuMemCreate, &handle, 4096, &prop, 0); break;
	case 4: CALL(l, cuMemCreate, &handle, GRAIN, &prop, 3); break;
	case 5: CALL(l, cuMemCreate, &handle, GRAIN << 22, &prop, 0); break;
	case 6:
		prop.location.id = 99;
		CALL(l, cuMemCreate, &handle, GRAIN, &prop, 0);
		break;
	case 7:
		prop.location.type = CU_MEM_LOCATION_TYPE_INVALID;
		CALL(l, cuMemCreate, &handle, GRAIN, &prop, 0);
		break;
	case 8:
		prop.type = (CUmemAllocationType)0;
		CALL(l, cuMemCreate, &handle, GRAIN, &prop, 0);
		break;
	}
}

static struct storm_handle *handle_of(struct storm_lane *l, uint32_t slot)
{
	return slot < STORM_HANDLE_SLOTS && l->handle[slot].live ? &l->handle[slot]
								 : NULL;
}

/* With some luck the wrong one: a handle that never was. */
void storm_op_vmm_release(struct storm_lane *l, const uint32_t *a)
{
	struct storm_handle *h = handle_of(l, a[0]);

	if (a[1] % 8 == 0) {
		CALL(l, cuMemRelease, a[1] & 256 ? 0 : 0x123456789ull);
		return;
	}
	if (h && CALL(l, cuMemRelease, h->handle) == CUDA_SUCCESS)
		h->live = --h->refs > 0;
}

void storm_op_vmm_reserve(struct storm_lane *l, const uint32_t *a)
{
	struct storm_range *r = &l->range[a[0] % STORM_RANGE_SLOTS];
	size_t bytes = GRAIN * (1 + a[1] % RANGE_GRAINS);
	size_t align = a[2] & 1 ? GRAIN << (a[2] >> 1 & 3) : 0;

	if (r->live ||
		CALL(l, cuMemAddressReserve, &r->at, bytes, align, 0, 0) != CUDA_SUCCESS)
		return;
	storm_note(l, "aligned", r->at % (align ? align : GRAIN) == 0);
	r->live = true;
	r->bytes = bytes;
	memset(r->mapped, 0, sizeof(r->mapped));
}

void storm_op_vmm_reserve_wrong(struct storm_lane *l, const uint32_t *a)
{
	CUdeviceptr at;

	switch (a[0] % 8) {
	case 0: CALL(l, cuMemAddressReserve, NULL, GRAIN, 0, 0, 0); break;
	case 1: CALL(l, cuMemAddressReserve, &at, 0, 0, 0, 0); break;
	case 2: CALL(l, cuMemAddressReserve, &at, 4096, 0, 0, 0); break;
	case 3: CALL(l, cuMemAddressReserve, &at, GRAIN, 3, 0, 0); break;
	case 4: CALL(l, cuMemAddressReserve, &at, GRAIN, 0, 0, 9); break;
	case 5: CALL(l, cuMemAddressFree, 0x12340000000, GRAIN); break;
	case 6: CALL(l, cuMemUnmap, 0x12340000000, GRAIN); break;
	case 7: CALL(l, cuMemMap, 0x12340000000, GRAIN, 0, 0x4321, 0); break;
	}
}

static struct storm_range *range_of(struct storm_lane *l, uint32_t slot)
{
	return slot < STORM_RANGE_SLOTS && l->range[slot].live ? &l->range[slot] : NULL;
}

static size_t mapped_bytes(const struct storm_range *r)
{
	size_t sum = 0;

	for (unsigned i = 0; i < RANGE_GRAINS; i++)
		sum += r->mapped[i];
	return sum;
}

/* One in four while something is mapped, or with a size that is not its. */
void storm_op_vmm_address_free(struct storm_lane *l, const uint32_t *a)
{
	struct storm_range *r = range_of(l, a[0]);

	if (!r)
		return;
	if (a[1] % 4 == 0 && r->bytes > GRAIN) {
		CALL(l, cuMemAddressFree, r->at + GRAIN, r->bytes - GRAIN);
		return;
	}
	if (mapped_bytes(r) && a[1] % 4 != 1) {
		CALL(l, cuMemUnmap, r->at, r->bytes);
		for (unsigned i = 0; i < RANGE_GRAINS; i++)
			if (r->mapped[i] && CALL(l, cuMemUnmap, r->at + i * GRAIN,
						    r->mapped[i]) == CUDA_SUCCESS)
				r->mapped[i] = 0;
	}
	if (CALL(l, cuMemAddressFree, r->at, r->bytes) == CUDA_SUCCESS)
		r->live = false;
}

/* What the range and the new mapping look like decides whether it works; both sides agree. */
void storm_op_vmm_map(struct storm_lane *l, const uint32_t *a)
{
	struct storm_range *r = range_of(l, a[0]);
	struct storm_handle *h = handle_of(l, a[1]);
	size_t bytes, offset = 0;
	unsigned i;

	if (!r || !h)
		return;
	i = a[2] % RANGE_GRAINS;
	bytes = h->bytes;
	if (a[2] >> 16 & 15)
		i %= (unsigned)(r->bytes / GRAIN);
	else if (a[2] >> 20 & 1)
		bytes -= GRAIN / 2;
	else
		offset = GRAIN;
	/* Past the end there may be another range of ours, here but not there. */
	if ((i + 1) * GRAIN > r->bytes || i * GRAIN + bytes > r->bytes)
		return;
	if (CALL(l, cuMemMap, r->at + i * GRAIN, bytes, offset, h->handle, 0) ==
		CUDA_SUCCESS)
		r->mapped[i] = bytes;
}

void storm_op_vmm_unmap(struct storm_lane *l, const uint32_t *a)
{
	struct storm_range *r = range_of(l, a[0]);
	unsigned i = a[1] % RANGE_GRAINS;
	size_t bytes;

	if (!r || i * GRAIN >= r->bytes)
		return;
	bytes = a[1] >> 16 & 7 ? r->mapped[i] : GRAIN;
	if (!bytes)
		bytes = GRAIN;
	if (CALL(l, cuMemUnmap, r->at + i * GRAIN, bytes) == CUDA_SUCCESS)
		for (unsigned k = i; k < RANGE_GRAINS && k * GRAIN < i * GRAIN + bytes;
			k++)
			r->mapped[k] = 0;
}

void storm_op_vmm_access(struct storm_lane *l, const uint32_t *a)
{
	static const CUmemAccess_flags flags[] = {CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
		CU_MEM_ACCESS_FLAGS_PROT_READ, CU_MEM_ACCESS_FLAGS_PROT_NONE,
		(CUmemAccess_flags)2, (CUmemAccess_flags)7,
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	struct storm_range *r = range_of(l, a[0]);
	CUmemAccessDesc desc = access_of(l, flags[a[2] & 7]);
	unsigned i = a[1] % RANGE_GRAINS;
	size_t bytes;

	if (!r || i * GRAIN >= r->bytes)
		return;
	bytes = a[2] & 8 ? r->bytes - i * GRAIN : r->mapped[i] ? r->mapped[i] : GRAIN;
	if (a[2] >> 8 % 16 == 1)
		desc.location.id = 77;
	CALL(l, cuMemSetAccess, r->at + i * GRAIN, bytes,
		a[2] >> 16 % 32 == 1 ? NULL : &desc, a[2] >> 20 % 32 == 1 ? 0 : 1);
}

void storm_op_vmm_get_access(struct storm_lane *l, const uint32_t *a)
{
	struct storm_range *r = range_of(l, a[0]);
	CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->device};
	unsigned long long flags = 0;

	if (!r)
		return;
	if (CALL(l, cuMemGetAccess, a[1] & 0x100000 ? &flags : &flags, &here,
		    r->at + a[1] % r->bytes) == CUDA_SUCCESS)
		storm_note(l, "access", flags);
}

/* Writes and reads one mapping as far as its access allows; more would break the context. */
void storm_op_vmm_touch(struct storm_lane *l, const uint32_t *a)
{
	struct storm_range *r = range_of(l, a[0]);
	CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->device};
	unsigned i = a[1] % RANGE_GRAINS;
	unsigned long long access = 0;
	CUdeviceptr at;

	if (!r || i * GRAIN >= r->bytes || l->captures)
		return;
	at = r->at + i * GRAIN + a[2] % (GRAIN - 4096);
	if (CALL(l, cuMemGetAccess, &access, &here, at) != CUDA_SUCCESS ||
		access != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return;
	storm_fill_scratch(l, l->step->dice, 4096);
	if (CALL(l, cuMemcpyHtoD_v2, at, l->scratch, 4096) == CUDA_SUCCESS &&
		CALL(l, cuMemcpyDtoH_v2, l->readback, at, 4096) == CUDA_SUCCESS)
		storm_note_bytes(l, l->readback, 4096);
}

void storm_op_vmm_retain(struct storm_lane *l, const uint32_t *a)
{
	struct storm_range *r = range_of(l, a[0]);
	CUmemGenericAllocationHandle handle = 0;
	unsigned same = 99;

	if (!r)
		return;
	if (CALL(l, cuMemRetainAllocationHandle, &handle,
		    (void *)(uintptr_t)(r->at + a[1] % r->bytes)) != CUDA_SUCCESS)
		return;
	for (unsigned i = 0; i < STORM_HANDLE_SLOTS; i++)
		if (l->handle[i].live && l->handle[i].handle == handle)
			same = i;
	storm_note(l, "which handle", same);
	CALL(l, cuMemRelease, handle);
}

void storm_op_vmm_properties(struct storm_lane *l, const uint32_t *a)
{
	struct storm_handle *h = handle_of(l, a[0]);
	CUmemAllocationProp prop;

	if (!h)
		return;
	memset(&prop, 0, sizeof(prop));
	if (CALL(l, cuMemGetAllocationPropertiesFromHandle, a[1] % 16 ? &prop : NULL,
		    a[1] % 16 == 1 ? 0x777 : h->handle) != CUDA_SUCCESS)
		return;
	storm_note(l, "type", prop.type);
	storm_note(l, "handle types", (uint64_t)prop.requestedHandleTypes);
	storm_note(l, "location",
		(uint64_t)prop.location.type << 32 | (uint32_t)prop.location.id);
}

/* Pointer queries on mappings, and on reserved addresses with nothing there. */
void storm_op_vmm_range_query(struct storm_lane *l, const uint32_t *a)
{
	struct storm_range *r = range_of(l, a[0]);
	CUdeviceptr base = 0, at;
	unsigned type = 0;
	int ordinal = 0;
	size_t bytes = 0;

	if (!r)
		return;
	at = r->at + a[1] % r->bytes;
	switch (a[2] % 4) {
	case 0:
		if (CALL(l, cuMemGetAddressRange_v2, &base, &bytes, at) == CUDA_SUCCESS) {
			storm_note(l, "offset in it", at - base);
			storm_note(l, "bytes", bytes);
		}
		break;
	case 1:
		if (CALL(l, cuPointerGetAttribute, &type,
			    CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) == CUDA_SUCCESS)
			storm_note(l, "type", type);
		break;
	case 2:
		if (CALL(l, cuPointerGetAttribute, &ordinal,
			    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at) == CUDA_SUCCESS)
			storm_note(l, "device", (uint64_t)ordinal);
		break;
	case 3:
		if (CALL(l, cuPointerGetAttribute, &base,
			    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at) == CUDA_SUCCESS)
			storm_note(l, "offset in it", at - base);
		break;
	}
}

/* Out and in again within one process: one more reference to the same memory. */
void storm_op_vmm_export(struct storm_lane *l, const uint32_t *a)
{
	struct storm_handle *h = handle_of(l, a[0]);
	CUmemGenericAllocationHandle again;
	int fd = -1;

	if (!h)
		return;
	if (CALL(l, cuMemExportToShareableHandle, &fd, h->handle,
		    a[1] % 16 ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
			      : (CUmemAllocationHandleType)64,
		    a[1] % 16 == 1) != CUDA_SUCCESS)
		return;
	if (CALL(l, cuMemImportFromShareableHandle, &again, (void *)(intptr_t)fd,
		    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == CUDA_SUCCESS)
		CALL(l, cuMemRelease, again);
	close(fd);
}

void storm_op_vmm_granularity(struct storm_lane *l, const uint32_t *a)
{
	CUmemAllocationProp prop = props(l, a[0] & 1);
	size_t bytes = 0;

	if (a[0] & 64)
		prop.location.id = 12;
	if (CALL(l, cuMemGetAllocationGranularity, &bytes, &prop,
		    (CUmemAllocationGranularity_flags)(a[0] >> 8 & 3)) == CUDA_SUCCESS)
		storm_note(l, "grain", bytes);
}

/* Host memory by the same calls: charged to no GPU. */
void storm_op_vmm_on_host(struct storm_lane *l, const uint32_t *a)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = a[0] & 1 ? CU_MEM_LOCATION_TYPE_HOST_NUMA
					      : CU_MEM_LOCATION_TYPE_HOST}};
	CUmemAccessDesc rw = access_of(l, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at = 0;

	if (l->captures || CALL(l, cuMemCreate, &handle, GRAIN, &prop, 0) != CUDA_SUCCESS)
		return;
	if (CALL(l, cuMemAddressReserve, &at, GRAIN, 0, 0, 0) == CUDA_SUCCESS) {
		CUresult r = CALL(l, cuMemMap, at, GRAIN, 0, handle, 0);

		if (r == CUDA_SUCCESS &&
			CALL(l, cuMemSetAccess, at, GRAIN, &rw, 1) == CUDA_SUCCESS) {
			CALL(l, cuMemsetD8_v2, at, (unsigned char)a[0], 4096);
			if (CALL(l, cuMemcpyDtoH_v2, l->readback, at, 4096) ==
				CUDA_SUCCESS)
				storm_note_bytes(l, l->readback, 4096);
		}
		if (r == CUDA_SUCCESS)
			CALL(l, cuMemUnmap, at, GRAIN);
		CALL(l, cuMemAddressFree, at, GRAIN);
	}
	CALL(l, cuMemRelease, handle);
}
