/*
 * vmm - virtual memory management, as programs call it
 *
 * The driver creates, maps and checks; we replace its handles by ids and keep records (handle.h).
 * Device memory is asked for before it is made, and charged until the last reference and the last
 * mapping are gone. Calls on our own ranges behind cuMemAlloc are refused, as the driver refuses
 * them for its own.
 *
 * Order: memory for a record is allocated before the driver's call, so nothing can fail after it.
 * The record of a new object is entered into the tables after the call. The record of an object
 * that ends is taken out before the call, and put back if the driver refuses: once the driver has
 * ended the object, another thread may get its address or handle.
 *
 * A handle may be on the host (handle->evicted); then the driver knows neither it nor its mappings.
 * A call that ends something works on the record alone; a call that needs the driver waits until
 * all memory is back. Both happen inside the control lock, so that nothing moves meanwhile.
 */
#include "runtime/contexts/space.h"
#include "runtime/driver/handle.h"
#include "runtime/driver/passed.h"
#include "runtime/driver/range.h"
#include "runtime/gate/control.h"
#include "runtime/gate/door.h"
#include "runtime/gate/residency.h"
#include "runtime/memory/pagemap.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"
#include "runtime/session/device.h"
#include "runtime/session/measure.h"
#include "runtime/session/session.h"
#include "runtime/share/import.h"

/* May be used by a sparse array. */
#define USAGE_TILE_POOL 1

/* Does any of the range belong to a region or a slab, or does it begin in opened memory of another
 * process? */
static bool is_ours(CUdeviceptr ptr, size_t bytes)
{
	struct sl_memory_info info;
	bool ours;

	sl_books_lock();
	ours = sl_pagemap_touches(ptr, bytes);
	sl_books_unlock();
	return ours || sl_import_find(ptr, &info) != SL_MEMORY_FOREIGN;
}

/* --- handles ---------------------------------------------------------------------------------- */

static uint32_t why_held(const CUmemAllocationProp *prop)
{
	return (prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC ? SL_WHY_FABRIC
								       : 0u) |
	       (prop->allocFlags.compressionType ? SL_WHY_COMPRESSED : 0u) |
	       (prop->allocFlags.gpuDirectRDMACapable ? SL_WHY_RDMA : 0u) |
	       (prop->allocFlags.usage & USAGE_TILE_POOL ? SL_WHY_TILES : 0u);
}

/* Bytes that the driver will refuse to make are not asked for. */
static bool is_possible(
	const CUmemAllocationProp *prop, CUdevice dev, size_t bytes, uint64_t flags)
{
	size_t grain = SL_DEVICE_GRAIN;

	if (dev < 0 || bytes == 0 || flags)
		return false;
	if (bytes % grain == 0)
		return true;
	return sl_real.cuMemGetAllocationGranularity(
		       &grain, prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS &&
	       grain && bytes % grain == 0;
}

static CUresult create_charged(struct sl_handle *handle, CUdevice dev,
	const CUmemAllocationProp *prop, CUmemGenericAllocationHandle *real)
{
	uint32_t charge = handle->why_held ? SL_PASSED_HELD : 0;
	struct sl_passed passed;
	CUresult r;

	if (!handle->why_held)
		sl_session_chunk(handle->bytes);
	if (!sl_passed_ask(&passed, dev, handle->bytes, charge | SL_PASSED_APART, &r))
		return r;
	do {
		sl_control_enter();
		r = sl_real.cuMemCreate(real, handle->bytes, prop, handle->flags);
		sl_control_leave();
	} while (sl_passed_again(&passed, &r));
	sl_passed_settle(&passed, r == CUDA_SUCCESS ? handle->bytes : 0);
	handle->gpu = passed.gpu;
	handle->charged_bytes = passed.bytes;
	handle->charge_flags = charge;
	return r;
}

SL_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	SL_DOOR;
	CUmemGenericAllocationHandle real = 0;
	struct sl_handle *handle;
	CUdevice dev = -1;
	CUresult r;

	if (!out || !prop || !sl_mode_is_active())
		return sl_real.cuMemCreate(out, bytes, prop, flags);
	handle =
		sl_handle_new(sl_device_of_place(&prop->location, &dev) ? SL_HANDLE_DEVICE
									: SL_HANDLE_HOST,
			bytes);
	if (!handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	handle->prop = *prop;
	handle->flags = flags;
	handle->why_held = why_held(prop);
	r = is_possible(prop, dev, bytes, flags)
		    ? create_charged(handle, dev, prop, &real)
		    : sl_measure_after(sl_real.cuMemCreate(&real, bytes, prop, flags));
	if (r == CUDA_SUCCESS)
		*out = sl_handle_add(handle, real);
	else
		sl_handle_discard(handle);
	return r;
}

SL_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle value)
{
	SL_DOOR;
	CUmemGenericAllocationHandle real;
	struct sl_handle *handle = sl_handle_use(value, &real);
	CUresult r = CUDA_SUCCESS;

	if (!handle)
		return sl_measure_after(sl_real.cuMemRelease(real));
	sl_control_enter();
	switch (sl_handle_unreference(handle, &real)) {
	case SL_HANDLE_LAST:
		r = handle->evicted ? CUDA_SUCCESS : sl_real.cuMemRelease(real);
		sl_handle_released(handle, r == CUDA_SUCCESS);
		break;
	case SL_HANDLE_NONE: r = CUDA_ERROR_INVALID_VALUE; break;
	default: break;
	}
	sl_handle_leave(handle);
	sl_control_leave();
	return r;
}

/* Called when the program has released the handle but a mapping keeps its memory and our record.
 * The driver returns a handle for the mapping's address, perhaps with a new value; the program gets
 * the id it knows. */
static CUresult revive(struct sl_handle *handle, void *addr)
{
	CUmemGenericAllocationHandle real = 0;
	CUresult r = sl_real.cuMemRetainAllocationHandle(&real, addr);

	if (r == CUDA_SUCCESS && !sl_handle_revive(handle, real))
		(void)sl_real.cuMemRelease(real);
	return r;
}

static CUresult retain(CUmemGenericAllocationHandle *out, void *addr)
{
	struct sl_handle *handle = sl_handle_at((CUdeviceptr)(uintptr_t)addr);
	CUresult r = CUDA_SUCCESS;

	if (!handle)
		return sl_real.cuMemRetainAllocationHandle(out, addr);
	if (!sl_handle_reference(handle))
		r = revive(handle, addr);
	if (r == CUDA_SUCCESS)
		*out = handle->id;
	sl_handle_leave(handle);
	return r;
}

/* Memory of cuMemAlloc has no handle, as with the driver. A region may have several handles.
 * Returning one of them would be worse: programs would map it and treat it as the whole
 * allocation. */
SL_EXPORT CUresult cuMemRetainAllocationHandle(
	CUmemGenericAllocationHandle *out, void *addr)
{
	SL_DOOR;
	CUdeviceptr ptr = (CUdeviceptr)(uintptr_t)addr;
	CUresult r;

	if (!out || !sl_mode_is_active())
		return sl_real.cuMemRetainAllocationHandle(out, addr);
	if (is_ours(ptr, 1))
		return CUDA_ERROR_INVALID_VALUE;
	sl_residency_enter();
	sl_control_enter();
	r = retain(out, addr);
	sl_control_leave();
	sl_residency_leave();
	return r;
}

SL_EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle value)
{
	SL_DOOR;
	CUmemGenericAllocationHandle real;
	struct sl_handle *handle;
	CUresult r = CUDA_SUCCESS;

	sl_control_enter();
	handle = sl_handle_use(value, &real);
	if (handle && handle->evicted && prop)
		*prop = handle->prop;
	else
		r = sl_real.cuMemGetAllocationPropertiesFromHandle(prop, real);
	/* Inside the control lock: this may end a handle that a mover would otherwise be moving. */
	sl_handle_leave(handle);
	sl_control_leave();
	return r;
}

/* --- addresses -------------------------------------------------------------------------------- */

SL_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t bytes, size_t alignment,
	CUdeviceptr hint, unsigned long long flags)
{
	SL_DOOR;
	struct sl_range *range;
	CUresult r;

	if (!ptr || !sl_mode_is_active())
		return sl_real.cuMemAddressReserve(ptr, bytes, alignment, hint, flags);
	range = sl_range_new();
	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sl_real.cuMemAddressReserve(ptr, bytes, alignment, hint, flags);
	if (r == CUDA_SUCCESS)
		sl_range_add(range, *ptr, bytes);
	else
		sl_range_discard(range);
	return r;
}

/* Does the range have a mapping that the driver does not know now? Inside the control lock. */
static bool has_evicted(CUdeviceptr ptr, size_t bytes)
{
	uint64_t end = ptr + bytes, at = ptr, size = 0;
	bool found = false;

	if (sl_likely(!sl_residency_is_partial()))
		return false;
	for (; !found && sl_mappings_next(end, &at, &size); at += size) {
		struct sl_handle *handle = sl_handle_at(at);

		found = handle && handle->evicted;
		sl_handle_leave(handle);
	}
	return found;
}

SL_EXPORT CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes)
{
	SL_DOOR;
	struct sl_range *range;
	CUresult r;

	if (!sl_mode_is_active())
		return sl_real.cuMemAddressFree(ptr, bytes);
	if (is_ours(ptr, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	sl_control_enter();
	range = sl_range_take(ptr);
	/* The driver refuses to free a range with mappings. */
	r = has_evicted(ptr, bytes) ? CUDA_ERROR_INVALID_VALUE
				    : sl_real.cuMemAddressFree(ptr, bytes);
	if (range && r == CUDA_SUCCESS)
		sl_range_drop(range);
	else if (range)
		sl_range_put_back(range);
	sl_control_leave();
	return r;
}

static CUresult map(CUdeviceptr ptr, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle value, unsigned long long flags)
{
	CUmemGenericAllocationHandle real;
	struct sl_mapping *mapping;
	struct sl_handle *handle = sl_handle_use(value, &real);
	CUresult r;

	if (!handle)
		return sl_real.cuMemMap(ptr, bytes, offset, real, flags);
	mapping = sl_mapping_new(ptr, bytes);
	r = mapping ? sl_real.cuMemMap(ptr, bytes, offset, real, flags)
		    : CUDA_ERROR_OUT_OF_MEMORY;
	if (r == CUDA_SUCCESS) {
		mapping->offset = offset;
		mapping->flags = flags;
		sl_mapping_add(mapping, handle);
	} else if (mapping) {
		sl_mapping_discard(mapping);
	}
	sl_handle_leave(handle);
	return r;
}

/* Mappings at these addresses may be on the host: they must not be mapped over, either. */
SL_EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle value, unsigned long long flags)
{
	SL_DOOR;
	CUresult r;

	if (!sl_mode_is_active())
		return sl_real.cuMemMap(ptr, bytes, offset, value, flags);
	if (is_ours(ptr, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	sl_residency_enter();
	sl_control_enter();
	r = map(ptr, bytes, offset, value, flags);
	sl_control_leave();
	sl_residency_leave();
	return r;
}

/* One by one, since some of them are on the host. The mappings taken must fill the range. */
static CUresult unmap_each(size_t bytes, struct sl_link *taken)
{
	struct sl_link gone = SL_LIST_INIT(gone);
	uint64_t sum = 0;
	CUresult r;

	sl_list_foreach (link, taken)
		sum += SL_LIST_ENTRY(link, struct sl_mapping, taken)->extent.bytes;
	r = sum == bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	sl_list_foreach_safe (link, taken) {
		struct sl_mapping *mapping =
			SL_LIST_ENTRY(link, struct sl_mapping, taken);

		if (r == CUDA_SUCCESS && !mapping->handle->evicted)
			r = sl_real.cuMemUnmap(
				mapping->extent.address, mapping->extent.bytes);
		if (r != CUDA_SUCCESS)
			break;
		sl_list_unlink(link);
		sl_list_push_tail(&gone, link);
	}
	sl_mappings_drop(&gone);
	return r;
}

SL_EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
	SL_DOOR;
	struct sl_link taken;
	CUresult r;

	if (!sl_mode_is_active())
		return sl_real.cuMemUnmap(ptr, bytes);
	if (is_ours(ptr, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	sl_control_enter();
	r = has_evicted(ptr, bytes);
	sl_mappings_take(ptr, bytes, &taken);
	r = r ? unmap_each(bytes, &taken) : sl_real.cuMemUnmap(ptr, bytes);
	if (r == CUDA_SUCCESS)
		sl_mappings_drop(&taken);
	else
		sl_mappings_put_back(&taken);
	sl_control_leave();
	return sl_measure_after(r);
}

/* --- access ----------------------------------------------------------------------------------- */

static void ask_access(CUdeviceptr at, const CUmemLocation *where)
{
	CUmemAccessDesc now = {.location = *where};
	unsigned long long flags = 0;

	if (sl_real.cuMemGetAccess(&flags, where, at) != CUDA_SUCCESS)
		return;
	now.flags = (CUmemAccess_flags)flags;
	sl_mappings_allow(at, 1, &now);
}

/* The call failed, perhaps half-way: the driver says which access each mapping has now. The
 * program's list is not used, since the list itself may be what was wrong. */
static SL_COLD void ask_accesses(CUdeviceptr ptr, size_t bytes)
{
	CUmemLocation where = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
	const CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};
	uint64_t end = ptr + bytes, at = ptr, size = 0;
	int devices = 0;

	(void)sl_real.cuDeviceGetCount(&devices);
	for (; sl_mappings_next(end, &at, &size); at += size) {
		for (where.id = 0; where.id < devices; where.id++)
			ask_access(at, &where);
		ask_access(at, &host);
	}
}

SL_EXPORT CUresult cuMemSetAccess(
	CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
	SL_DOOR;
	CUresult r;

	if (!desc || !sl_mode_is_active())
		return sl_real.cuMemSetAccess(ptr, bytes, desc, count);
	if (is_ours(ptr, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	sl_residency_enter();
	sl_control_enter();
	r = sl_real.cuMemSetAccess(ptr, bytes, desc, count);
	for (size_t i = 0; r == CUDA_SUCCESS && i < count; i++)
		sl_mappings_allow(ptr, bytes, &desc[i]);
	if (r != CUDA_SUCCESS)
		ask_accesses(ptr, bytes);
	sl_control_leave();
	sl_residency_leave();
	return r;
}

SL_EXPORT CUresult cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *where, CUdeviceptr ptr)
{
	SL_DOOR;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (!sl_mode_is_active())
		return sl_real.cuMemGetAccess(flags, where, ptr);
	if (is_ours(ptr, 1))
		return r;
	sl_control_enter();
	if (!has_evicted(ptr, 1))
		r = sl_real.cuMemGetAccess(flags, where, ptr);
	else if (flags && where)
		r = sl_mappings_access(ptr, where, flags) ? CUDA_SUCCESS : r;
	sl_control_leave();
	return r;
}
