/*
 * handles - the program's own handles leave the GPU and come back
 *
 * The program's ids stay. To leave, the driver's handle behind an id is unmapped and released. To
 * come back, it is created again with the same properties, and every mapping is mapped at its
 * address, with its accesses. Contents are copied through any mapping of the whole handle that its
 * own device may write, or else through a mapping of ours made for the copy. If the program has
 * released a handle, only its mappings keep it alive; for the move we take a reference from the
 * driver.
 *
 * A failure is undone. If the driver refuses to undo it, the handle counts as evicted, and its
 * record says what the driver still has: `made` and `there` of the program's, `lent` and `own` of
 * ours. The next move continues from there; the end of the handle or of a mapping clears these.
 */
#include "runtime/driver/handle.h"
#include "runtime/driver/passed.h"
#include "runtime/real/real.h"
#include "runtime/session/device.h"
#include "runtime/store/store.h"
#include "runtime/swap/piece.h"

#include "base/log.h"
#include "base/step.h"

#include <stdlib.h>

static struct sl_mapping *mapping_of(struct sl_link *link)
{
	return SL_LIST_ENTRY(link, struct sl_mapping, link);
}

/* --- single calls ----------------------------------------------------------------------------- */

static CUresult allow(const struct sl_mapping *mapping)
{
	CUmemAccessDesc *access;
	CUresult r;

	if (!mapping->access_count)
		return CUDA_SUCCESS;
	access = calloc(mapping->access_count, sizeof(*access));
	if (!access)
		return CUDA_ERROR_OPERATING_SYSTEM;
	for (uint32_t i = 0; i < mapping->access_count; i++)
		access[i] = (CUmemAccessDesc){.location = mapping->accesses[i].where,
			.flags = mapping->accesses[i].flags};
	r = sl_real.cuMemSetAccess(mapping->extent.address, mapping->extent.bytes, access,
		mapping->access_count);
	free(access);
	return r;
}

/* Does the driver have a reference for `real`? */
static bool has_real(const struct sl_handle *handle)
{
	return handle->evicted ? handle->made : handle->references > 0;
}

static CUmemGenericAllocationHandle current(const struct sl_handle *handle)
{
	return handle->lent ? handle->lent : handle->real;
}

/* Maps all mappings that the driver does not have. */
static CUresult map_all(struct sl_handle *handle)
{
	sl_list_foreach (link, &handle->mappings) {
		struct sl_mapping *mapping = mapping_of(link);
		CUresult r = CUDA_SUCCESS;

		if (!mapping->there)
			r = sl_real.cuMemMap(mapping->extent.address,
				mapping->extent.bytes, mapping->offset, current(handle),
				mapping->flags);
		if (r == CUDA_SUCCESS) {
			mapping->there = true;
			r = allow(mapping);
		}
		if (r != CUDA_SUCCESS)
			return r;
	}
	return CUDA_SUCCESS;
}

/* Unmaps all mappings that the driver has. */
static CUresult unmap_all(struct sl_handle *handle)
{
	CUresult r, first = CUDA_SUCCESS;

	sl_list_foreach (link, &handle->mappings) {
		struct sl_mapping *mapping = mapping_of(link);

		if (!mapping->there)
			continue;
		r = sl_real.cuMemUnmap(mapping->extent.address, mapping->extent.bytes);
		if (r == CUDA_SUCCESS)
			mapping->there = false;
		else if (first == CUDA_SUCCESS)
			first = r;
	}
	return first;
}

static void mark_all(struct sl_handle *handle, bool there)
{
	sl_list_foreach (link, &handle->mappings)
		mapping_of(link)->there = there;
}

/* Takes a reference of ours if the program has none. */
static CUresult borrow(struct sl_handle *handle)
{
	if (handle->lent || has_real(handle))
		return CUDA_SUCCESS;
	if (sl_list_is_empty(&handle->mappings))
		return CUDA_ERROR_INVALID_HANDLE;
	return sl_real.cuMemRetainAllocationHandle(&handle->lent,
		(void *)(uintptr_t)mapping_of(handle->mappings.next)->extent.address);
}

/* --- an address for copies -------------------------------------------------------------------- */

static bool may_write(const struct sl_mapping *mapping, CUdevice dev)
{
	for (uint32_t i = 0; i < mapping->access_count; i++)
		if (mapping->accesses[i].where.type == CU_MEM_LOCATION_TYPE_DEVICE &&
			mapping->accesses[i].where.id == dev &&
			mapping->accesses[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return true;
	return false;
}

static CUdeviceptr address_of(const struct sl_handle *handle, CUdevice dev)
{
	sl_list_foreach (link, &handle->mappings) {
		const struct sl_mapping *mapping = mapping_of(link);

		if (mapping->offset == 0 && mapping->extent.bytes == handle->bytes &&
			may_write(mapping, dev))
			return mapping->extent.address;
	}
	return 0;
}

static CUresult map_own(struct sl_handle *handle, CUdevice dev)
{
	CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUdeviceptr at = 0;
	CUresult r = sl_real.cuMemAddressReserve(&at, handle->bytes, 0, 0, 0);

	if (r != CUDA_SUCCESS)
		return r;
	r = sl_real.cuMemMap(at, handle->bytes, 0, current(handle), 0);
	if (r != CUDA_SUCCESS) {
		(void)sl_real.cuMemAddressFree(at, handle->bytes);
		return r;
	}
	handle->own = at;
	r = sl_real.cuMemSetAccess(at, handle->bytes, &access, 1);
	if (r != CUDA_SUCCESS)
		(void)sl_handle_drop_own(handle);
	return r;
}

static CUresult find_address(struct sl_piece *piece)
{
	struct sl_handle *handle = piece->owner;
	CUresult r = CUDA_SUCCESS;

	piece->address = address_of(handle, piece->dev);
	if (!piece->address && handle->own && sl_handle_drop_own(handle) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_VALUE;
	if (!piece->address)
		r = map_own(handle, piece->dev);
	if (!piece->address)
		piece->address = handle->own;
	return r;
}

/* --- what the mover calls --------------------------------------------------------------------- */

static void settle(struct sl_piece *piece)
{
	struct sl_handle *handle = piece->owner;

	if (sl_handle_drop_own(handle) != CUDA_SUCCESS ||
		sl_handle_give_back(handle) != CUDA_SUCCESS)
		sl_warning("the driver keeps something of ours on a handle for now");
}

static CUresult prepare(struct sl_piece *piece)
{
	CUresult r = borrow(piece->owner);

	if (r == CUDA_SUCCESS)
		r = find_address(piece);
	if (r != CUDA_SUCCESS)
		settle(piece);
	return r;
}

/* Nothing is mapped any more: releases all references. *has: whether that of `real` is left. */
static CUresult release_all(struct sl_handle *handle, bool *has)
{
	CUresult r = sl_handle_give_back(handle);

	if (r == CUDA_SUCCESS && *has)
		r = sl_real.cuMemRelease(handle->real);
	*has = *has && r != CUDA_SUCCESS;
	return r;
}

static CUresult detach(struct sl_piece *piece, bool *absent)
{
	struct sl_handle *handle = piece->owner;
	bool was_evicted = handle->evicted, has = has_real(handle);
	CUresult r = sl_handle_drop_own(handle);

	*absent = false;
	if (r != CUDA_SUCCESS)
		return r;
	if (!was_evicted)
		mark_all(handle, true);
	r = unmap_all(handle);
	sl_step(C_EVICT_HANDLE_UNMAPPED);
	if (r == CUDA_SUCCESS)
		r = release_all(handle, &has);
	/* It could not leave: restores it, if the driver allows that. */
	if (r != CUDA_SUCCESS && !was_evicted && map_all(handle) == CUDA_SUCCESS) {
		mark_all(handle, false);
		return r;
	}
	handle->made = has;
	handle->evicted = *absent = true;
	return r;
}

static CUresult make(struct sl_handle *handle)
{
	CUmemGenericAllocationHandle made = 0;
	CUresult r =
		sl_real.cuMemCreate(&made, handle->bytes, &handle->prop, handle->flags);

	if (r != CUDA_SUCCESS)
		return r;
	handle->made = handle->references > 0;
	*(handle->made ? &handle->real : &handle->lent) = made;
	sl_step(C_RETURNING_HANDLE_CREATED);
	return r;
}

static CUresult attach(struct sl_piece *piece)
{
	struct sl_handle *handle = piece->owner;
	CUresult r = CUDA_SUCCESS;
	bool absent;

	if (!handle->lent && !handle->made)
		r = make(handle);
	if (r != CUDA_SUCCESS)
		return r;
	r = map_all(handle);
	if (r == CUDA_SUCCESS)
		r = find_address(piece);
	if (r != CUDA_SUCCESS && detach(piece, &absent) != CUDA_SUCCESS)
		sl_warning("a handle of the program's is kept by the driver half-way");
	return r;
}

/* While the handle was on the host, the program may have dropped its references or got one again.
 * Makes `real` (the program's) and `lent` (ours) match that. */
static void sort_references(struct sl_handle *handle)
{
	if (handle->references && !handle->made) {
		handle->real = handle->lent;
		handle->lent = 0;
	} else if (!handle->references && handle->made) {
		if (sl_handle_give_back(handle) != CUDA_SUCCESS)
			sl_warning("the driver keeps a reference of ours");
		handle->lent = handle->real;
	}
	handle->made = false;
}

/* The copy is complete. */
static void arrive(struct sl_piece *piece)
{
	struct sl_handle *handle = piece->owner;

	mark_all(handle, false);
	sort_references(handle);
	handle->evicted = false;
	settle(piece);
}

static const struct sl_piece_kind handle_kind = {
	.prepare = prepare,
	.detach = detach,
	.attach = attach,
	.settle = settle,
	.arrive = arrive,
};

/* --- choosing the handles
 * ---------------------------------------------------------------------- */

struct search {
	struct sl_pieces *pieces;
	const struct sl_gpu *gpu;
	enum sl_where where;
};

/* Not now while threads are in a call with it; never if it is charged for parts of grains. */
static bool may_leave(const struct sl_handle *handle)
{
	return !handle->why_held && !handle->held_bytes && !handle->users &&
	       !(handle->charge_flags & SL_PASSED_HELD) &&
	       handle->charged_bytes == handle->bytes &&
	       handle->bytes % SL_STORE_GRAIN == 0 && handle->bytes > 0;
}

static void look_at(struct sl_handle *handle, void *arg)
{
	struct search *search = arg;
	struct sl_piece piece = {
		.kind = &handle_kind,
		.owner = handle,
		.bytes = handle->bytes,
		.host = &handle->host,
	};

	if (handle->kind != SL_HANDLE_DEVICE || handle->gpu != search->gpu ||
		handle->host.where != search->where)
		return;
	if (search->where == SL_RESIDENT && !may_leave(handle))
		return;
	if (sl_device_of_place(&handle->prop.location, &piece.dev))
		sl_pieces_add(search->pieces, &piece);
}

void sl_handles_to_pieces(
	struct sl_pieces *pieces, const struct sl_gpu *gpu, enum sl_where where)
{
	struct search search = {pieces, gpu, where};

	sl_handle_each(look_at, &search);
}
