/*
 * space_vmm - the program's own reservations, handles and mappings
 *
 * Rules modelled: a map takes a whole number of grains from the handle's start, never an offset;
 * unmapping and access changes take whole mappings; nothing is reachable before access is set; a
 * reservation with something mapped in it cannot be freed; a released handle lives on while mapped.
 */
#include "softgpu/memory/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A handle's name is its slot's number and the slot's count of uses, so stale names are
 * recognised. */
static struct slot {
	struct sl_phys *phys;
	uint32_t uses;
} * slots;
static uint32_t slot_count;

struct sl_phys *sl_handle_phys(CUmemGenericAllocationHandle handle)
{
	uint32_t i = (uint32_t)handle - 1;

	if (i >= slot_count || !slots[i].phys || slots[i].uses != handle >> 32)
		return NULL;
	return slots[i].phys->handles ? slots[i].phys : NULL;
}

static bool name_phys(struct sl_phys *phys)
{
	uint32_t i = 0;

	while (i < slot_count && slots[i].phys)
		i++;
	if (i == slot_count) {
		uint32_t count = slot_count ? slot_count * 2 : 64;
		struct slot *more = realloc(slots, count * sizeof(*more));

		if (!more)
			return false;
		for (uint32_t n = slot_count; n < count; n++)
			more[n] = (struct slot){0};
		slots = more;
		slot_count = count;
	}
	slots[i].phys = phys;
	slots[i].uses++;
	phys->handle = (uint64_t)slots[i].uses << 32 | (i + 1);
	phys->handles = 1;
	return true;
}

CUresult sl_space_reserve(
	uint64_t bytes, uint64_t alignment, uint64_t hint, CUdeviceptr *out)
{
	uint64_t at;

	pthread_mutex_lock(&sl_space_lock);
	at = sl_space_reserve_locked(
		bytes, sl_max_u64(alignment, SL_SG_PAGE), hint, true);
	pthread_mutex_unlock(&sl_space_lock);
	if (!at)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = at;
	return CUDA_SUCCESS;
}

CUresult sl_space_unreserve(uint64_t address, uint64_t bytes)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sl_reservation *v;

	pthread_mutex_lock(&sl_space_lock);
	v = sl_table_find(&sl_reservations, address);
	if (v && v->by_program && v->address == address && v->bytes == bytes &&
		!sl_table_overlaps(&sl_mappings, address, bytes)) {
		sl_space_unreserve_locked(v);
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

/* Names a new handle; on failure drops it. */
CUresult sl_handle_new(struct sl_phys *phys, CUmemGenericAllocationHandle *out)
{
	if (!name_phys(phys)) {
		sl_phys_unref(phys);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = phys->handle;
	return CUDA_SUCCESS;
}

CUresult sl_space_create(uint64_t bytes, const CUmemAllocationProp *prop,
	CUmemGenericAllocationHandle *out)
{
	struct sl_sg_request q = {.op = SL_SG_CREATE,
		.device = (uint32_t)(prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE
					     ? prop->location.id
					     : 0),
		.value = bytes};
	struct sl_phys *phys = NULL;
	CUresult r;

	pthread_mutex_lock(&sl_space_lock);
	r = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE
		    ? sl_phys_get(&q, -1, &phys)
		    : sl_phys_host_new(bytes, &phys);
	if (r == CUDA_SUCCESS) {
		phys->prop = *prop;
		r = sl_handle_new(phys, out);
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

CUresult sl_space_release(CUmemGenericAllocationHandle handle)
{
	struct sl_phys *phys;

	pthread_mutex_lock(&sl_space_lock);
	phys = sl_handle_phys(handle);
	if (phys && --phys->handles == 0) {
		slots[(uint32_t)handle - 1].phys = NULL;
		sl_phys_unref(phys);
	}
	pthread_mutex_unlock(&sl_space_lock);
	return phys ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sl_space_map(
	uint64_t address, uint64_t bytes, CUmemGenericAllocationHandle handle)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sl_reservation *v;
	struct sl_phys *phys;

	pthread_mutex_lock(&sl_space_lock);
	phys = sl_multicast_wait(handle);
	v = sl_table_find(&sl_reservations, address);
	if (phys && v && v->by_program && bytes <= v->address + v->bytes - address &&
		bytes <= phys->bytes && !sl_table_overlaps(&sl_mappings, address, bytes))
		r = sl_mapping_new(address, bytes, phys, SL_MAP_VMM)
			    ? CUDA_SUCCESS
			    : CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

/* Is the range exactly a row of the program's mappings? */
static bool whole_mappings(uint64_t address, uint64_t bytes)
{
	uint64_t end = address + bytes;

	while (address < end) {
		struct sl_mapping *m = sl_table_find(&sl_mappings, address);

		if (!m || m->kind != SL_MAP_VMM || m->for_array ||
			m->address != address || m->address + m->bytes > end)
			return false;
		address += m->bytes;
	}
	return true;
}

CUresult sl_space_unmap(uint64_t address, uint64_t bytes)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&sl_space_lock);
	if (whole_mappings(address, bytes)) {
		for (uint64_t at = address; at < address + bytes;) {
			struct sl_mapping *m = sl_table_find(&sl_mappings, at);

			at += m->bytes;
			sl_mapping_drop(m);
		}
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

CUresult sl_space_access(
	uint64_t address, uint64_t bytes, CUdevice device, CUmemAccess_flags flags)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&sl_space_lock);
	if (whole_mappings(address, bytes)) {
		r = CUDA_SUCCESS;
		for (uint64_t at = address; at < address + bytes && r == CUDA_SUCCESS;) {
			struct sl_mapping *m = sl_table_find(&sl_mappings, at);

			m->access[device] = (uint8_t)flags;
			r = sl_mapping_tell(m, device);
			at += m->bytes;
		}
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

CUresult sl_space_host_access(uint64_t address, uint64_t bytes, CUmemAccess_flags flags)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&sl_space_lock);
	if (whole_mappings(address, bytes)) {
		r = CUDA_SUCCESS;
		for (uint64_t at = address; at < address + bytes && r == CUDA_SUCCESS;) {
			struct sl_mapping *m = sl_table_find(&sl_mappings, at);

			/* The program cannot access a GPU's memory. */
			r = m->is_host ? sl_mapping_open(m, flags)
				       : CUDA_ERROR_INVALID_VALUE;
			at += m->bytes;
		}
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

CUresult sl_space_retain(uint64_t address, CUmemGenericAllocationHandle *out)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sl_mapping *m;

	pthread_mutex_lock(&sl_space_lock);
	m = sl_table_find(&sl_mappings, address);
	/* Fails on cuMemAlloc's memory, as it does with the real driver. */
	if (m && m->kind == SL_MAP_VMM && !m->for_array) {
		r = CUDA_SUCCESS;
		if (m->phys->handles)
			m->phys->handles++;
		else if (name_phys(m->phys)) /* released before, but still mapped */
			m->phys->refs++;
		else
			r = CUDA_ERROR_OUT_OF_MEMORY;
		*out = m->phys->handle;
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

CUresult sl_space_props(CUmemGenericAllocationHandle handle, CUmemAllocationProp *out)
{
	struct sl_phys *phys;

	pthread_mutex_lock(&sl_space_lock);
	phys = sl_handle_phys(handle);
	if (phys)
		*out = phys->prop;
	pthread_mutex_unlock(&sl_space_lock);
	return phys ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sl_space_array_map(CUmemGenericAllocationHandle handle, uint64_t *address,
	uint64_t *bytes, CUmemAllocationProp *prop)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sl_mapping *m = NULL;
	struct sl_phys *phys;

	pthread_mutex_lock(&sl_space_lock);
	phys = sl_handle_phys(handle);
	if (phys && !phys->multicast && phys->fd < 0) {
		phys->refs++;
		*bytes = phys->bytes;
		*prop = phys->prop;
		r = sl_native_map(phys, SL_MAP_VMM, &m);
	}
	if (r == CUDA_SUCCESS) {
		/* For copies of any GPU; companions are not told. */
		memset(m->access, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, sizeof(m->access));
		m->for_array = true;
		*address = m->address;
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

void sl_space_array_unmap(uint64_t address)
{
	struct sl_mapping *m;

	pthread_mutex_lock(&sl_space_lock);
	m = sl_table_find(&sl_mappings, address);
	if (m && m->for_array)
		sl_native_drop(m);
	pthread_mutex_unlock(&sl_space_lock);
}

/* Host memory's own descriptor is the export. */
static CUresult export_host(const struct sl_phys *phys, int *fd)
{
	*fd = fcntl(phys->fd, F_DUPFD_CLOEXEC, 0);
	return *fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

static bool is_host_export(int fd)
{
	static const char name[] = "/memfd:sluice-softgpu-host";
	char path[64], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target));
	return n >= (ssize_t)sizeof(name) && !memcmp(target, name, sizeof(name) - 1);
}

CUresult sl_space_export(CUmemGenericAllocationHandle handle, int *fd)
{
	struct sl_sg_request q = {.op = SL_SG_EXPORT};
	struct sl_sg_reply reply;
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct sl_phys *phys;

	pthread_mutex_lock(&sl_space_lock);
	phys = sl_handle_phys(handle);
	if (phys && phys->prop.requestedHandleTypes &
			    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
		q.id = phys->id;
		r = phys->fd < 0 ? sl_link_call(&q, -1, &reply, NULL, 0, fd)
				 : export_host(phys, fd);
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

CUresult sl_space_import(int fd, CUmemGenericAllocationHandle *out)
{
	struct sl_sg_request q = {.op = SL_SG_IMPORT};
	struct sl_phys *phys = NULL;
	CUresult r;

	pthread_mutex_lock(&sl_space_lock);
	r = is_host_export(fd) ? sl_phys_host_get(fd, &phys) : sl_phys_get(&q, fd, &phys);
	if (r == CUDA_SUCCESS) {
		phys->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
		phys->prop.requestedHandleTypes =
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
		phys->prop.location =
			phys->fd < 0 ? (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE,
					       phys->device}
				     : (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
		r = sl_handle_new(phys, out);
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}
