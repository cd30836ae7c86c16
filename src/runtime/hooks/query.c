/*
 * query - the answers to a program's queries about memory
 *
 * Figures are the workload's: total is its limit, free what it may still have. In pointer queries a
 * region or slot looks like memory of the driver's own cuMemAlloc. Where the driver can fail it is
 * asked first, so that the program gets the driver's own errors. The program may pass NULL for an
 * answer that it does not want. The driver does not know memory that is on the host: our records
 * then answer as if it were on the GPU.
 */
#include "runtime/contexts/capture.h"
#include "runtime/driver/handle.h"
#include "runtime/driver/passed.h"
#include "runtime/driver/pool.h"
#include "runtime/gate/door.h"
#include "runtime/gate/residency.h"
#include "runtime/memory/anchor.h"
#include "runtime/memory/backing.h"
#include "runtime/memory/memory.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"
#include "runtime/session/device.h"
#include "runtime/session/measure.h"
#include "runtime/session/session.h"
#include "runtime/share/import.h"

/* The daemon answers within 200 ms (messages.def). */
#define MEASURE_WAIT_NS (250 * SL_MS)

/* The workload's GPU behind dev, once joined; NULL in bypass. */
static struct sl_gpu *gpu_of(CUdevice dev)
{
	return sl_mode_is_active() && sl_session_is_joined() ? sl_device_gpu(dev) : NULL;
}

static struct sl_gpu *current_gpu(void)
{
	CUdevice dev;

	if (!sl_mode_is_active() || !sl_session_is_joined() ||
		sl_real.cuCtxGetDevice(&dev) != CUDA_SUCCESS)
		return NULL;
	return sl_device_gpu(dev);
}

/* If a measurement is due, gives back unused charged bytes and waits for it. */
static void settle(struct sl_gpu *gpu)
{
	if (!sl_measure_take(SL_MEASURE_FOR_VIEW))
		return;
	/* Bytes charged but not in use (spare grains, or pool memory that the driver has released
	 * by itself) lower the measured hidden bytes. Later use would then count them as free
	 * twice. */
	(void)sl_passed_trim();
	if (!sl_capture_is_open())
		sl_pool_synced();
	/* The daemon accepts a lower figure only after two measurements in a row. */
	sl_session_measure(gpu, MEASURE_WAIT_NS / 2);
	sl_session_measure(gpu, MEASURE_WAIT_NS / 2);
}

SL_EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	SL_DOOR;
	CUresult r = sl_real.cuMemGetInfo_v2(free_bytes, total_bytes);
	struct sl_gpu *gpu = r == CUDA_SUCCESS ? current_gpu() : NULL;
	uint64_t free_now, total_now;

	if (!gpu)
		return r;
	settle(gpu);
	sl_session_view(gpu, &free_now, &total_now);
	if (free_bytes)
		*free_bytes = free_now;
	if (total_bytes)
		*total_bytes = total_now;
	return r;
}

SL_EXPORT CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total_bytes)
{
	SL_DOOR;
	CUresult r = sl_real.cuMemGetInfo(free_bytes, total_bytes);
	struct sl_gpu *gpu = r == CUDA_SUCCESS ? current_gpu() : NULL;
	uint64_t free_now, total_now;

	if (!gpu)
		return r;
	settle(gpu);
	sl_session_view(gpu, &free_now, &total_now);
	if (free_bytes)
		*free_bytes = (unsigned int)sl_min_u64(free_now, UINT32_MAX);
	if (total_bytes)
		*total_bytes = (unsigned int)sl_min_u64(total_now, UINT32_MAX);
	return r;
}

SL_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	SL_DOOR;
	CUresult r = sl_real.cuDeviceTotalMem_v2(bytes, dev);
	struct sl_gpu *gpu = r == CUDA_SUCCESS ? gpu_of(dev) : NULL;
	uint64_t free_now, total_now;

	if (gpu && bytes) {
		sl_session_view(gpu, &free_now, &total_now);
		*bytes = total_now;
	}
	return r;
}

SL_EXPORT CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
	SL_DOOR;
	CUresult r = sl_real.cuDeviceTotalMem(bytes, dev);
	struct sl_gpu *gpu = r == CUDA_SUCCESS ? gpu_of(dev) : NULL;
	uint64_t free_now, total_now;

	if (gpu && bytes) {
		sl_session_view(gpu, &free_now, &total_now);
		*bytes = (unsigned int)sl_min_u64(total_now, UINT32_MAX);
	}
	return r;
}

/* The allocation around ptr: of this process, or of another process and opened here. Outcomes of
 * sl_memory_find. */
static int find(CUdeviceptr ptr, struct sl_memory_info *info, bool *opened)
{
	int found = sl_memory_find(ptr, info);

	*opened = false;
	if (found == SL_MEMORY_FOREIGN) {
		found = sl_import_find(ptr, info);
		*opened = found != SL_MEMORY_FOREIGN;
	}
	return found;
}

/* The driver answers for the program's own mapping, unless the mapping is, or was meanwhile, on the
 * host. */
static CUresult range_of_mapping(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
	uint32_t trips = sl_residency_trips();
	struct sl_mapping_info info;
	CUresult r = CUDA_ERROR_NOT_FOUND;

	if (!sl_residency_is_partial())
		r = sl_real.cuMemGetAddressRange_v2(base, bytes, ptr);
	if (r == CUDA_SUCCESS ||
		(!sl_residency_is_partial() && trips == sl_residency_trips()))
		return r;
	if (!sl_mapping_find(ptr, &info))
		return sl_real.cuMemGetAddressRange_v2(base, bytes, ptr);
	if (base)
		*base = info.address;
	if (bytes)
		*bytes = info.bytes;
	return CUDA_SUCCESS;
}

SL_EXPORT CUresult cuMemGetAddressRange_v2(
	CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
	SL_DOOR;
	struct sl_memory_info info;
	CUcontext ctx = NULL;
	CUresult r;
	bool opened;
	int found = find(ptr, &info, &opened);

	if (found == SL_MEMORY_FOREIGN)
		return range_of_mapping(base, bytes, ptr);
	r = sl_real.cuCtxGetCurrent(&ctx);
	if (r != CUDA_SUCCESS || !ctx)
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_CONTEXT;
	if (found == SL_MEMORY_DEAD)
		return CUDA_ERROR_NOT_FOUND;
	if (info.broken != CUDA_SUCCESS)
		return info.broken;
	if (base)
		*base = info.base;
	if (bytes)
		*bytes = info.bytes;
	return CUDA_SUCCESS;
}

/* Our addresses lie above 4 GiB. */
SL_EXPORT CUresult cuMemGetAddressRange(
	CUdeviceptr_v1 *base, unsigned int *bytes, CUdeviceptr_v1 ptr)
{
	SL_DOOR;
	return sl_real.cuMemGetAddressRange(base, bytes, ptr);
}

/* Writes the answer that native memory would give, where the driver's answer for mapped handles
 * differs. False: the driver's answer is right. */
static bool answer(const struct sl_memory_info *info, bool opened,
	CUpointer_attribute attribute, void *data)
{
	switch (attribute) {
	/* Memory of a pool belongs to no context. */
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = info->pool ? NULL : info->ctx;
		return true;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)data = info->id;
		return true;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(unsigned int *)data = !opened && !info->pool;
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned int *)data = 1; return true;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(unsigned int *)data = info->sync_memops;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = info->base;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)data = info->bytes; return true;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned int *)data = CU_MEM_HANDLE_TYPE_NONE;
		return true;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)data = info->pool;
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)data = info->mapping_base;
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)data = info->mapping_bytes;
		return true;
	default: return false;
	}
}

/* --- what is on the host ------------------------------------------------------------------- */

/* An allocation (memory), or one of the program's own mappings. */
struct about {
	CUdeviceptr ptr;
	bool is_memory, is_mapping, opened;
	struct sl_memory_info memory;
	struct sl_mapping_info mapping;
};

enum { KNOWN = 0, NONE, UNKNOWN };

static CUmemAccess_flags access_of_current(CUdeviceptr ptr)
{
	CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
	unsigned long long flags = 0;

	if (sl_real.cuCtxGetDevice(&here.id) == CUDA_SUCCESS)
		(void)sl_mappings_access(ptr, &here, &flags);
	return (CUmemAccess_flags)flags;
}

/* The driver's answer for a resident mapping of device memory. NONE: it refuses the query. */
static int record_of_mapping(
	const struct about *about, CUpointer_attribute attribute, void *data)
{
	const struct sl_mapping_info *info = &about->mapping;

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)data = NULL; return KNOWN;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)data = info->id;
		return KNOWN;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(unsigned int *)data = 0;
		return KNOWN;
	case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned int *)data = 1; return KNOWN;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)data = info->address;
		return KNOWN;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)data = info->bytes;
		return KNOWN;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned int *)data = (unsigned int)info->prop.requestedHandleTypes;
		return KNOWN;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)data = NULL;
		return KNOWN;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned int *)data = access_of_current(about->ptr);
		return KNOWN;
	default: return UNKNOWN;
	}
}

/* For either kind: also the attributes that `answer` and the above do not know. */
static int record(const struct about *about, CUpointer_attribute attribute, void *data)
{
	if (about->is_memory && answer(&about->memory, about->opened, attribute, data))
		return KNOWN;
	if (!about->is_memory && record_of_mapping(about, attribute, data) == KNOWN)
		return KNOWN;
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)data = CU_MEMORYTYPE_DEVICE;
		return KNOWN;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = about->ptr;
		return KNOWN;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER: return NONE;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = about->is_memory ? about->memory.dev
						: about->mapping.prop.location.id;
		return KNOWN;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned int *)data = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		return KNOWN;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*(unsigned int *)data =
			about->is_memory && sl_backing_is_registrable(about->memory.dev);
		return KNOWN;
	/* Such memory cannot be evicted. */
	case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned int *)data = 0; return KNOWN;
	default: return UNKNOWN;
	}
}

/* False: no memory that can be on the host. */
static bool look_up(CUdeviceptr ptr, struct about *about)
{
	about->ptr = ptr;
	about->is_memory = find(ptr, &about->memory, &about->opened) == SL_MEMORY_OURS &&
			   !about->opened;
	about->is_mapping = !about->is_memory && sl_mapping_find(ptr, &about->mapping) &&
			    about->mapping.kind == SL_HANDLE_DEVICE;
	return about->is_memory ? about->memory.broken == CUDA_SUCCESS
				: about->is_mapping;
}

/* The driver's value would change when the memory comes back from the host. */
static bool is_number(CUpointer_attribute attribute)
{
	return attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID ||
	       attribute == CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID;
}

/* An attribute that no record has: the driver's answer, once the memory is on the GPU. */
static CUresult ask_there(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	CUresult r;

	sl_residency_enter();
	r = sl_real.cuPointerGetAttribute(data, attribute, ptr);
	sl_residency_leave();
	return r;
}

static SL_COLD CUresult ask_record(
	void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct about about;

	if (!look_up(ptr, &about))
		return sl_real.cuPointerGetAttribute(data, attribute, ptr);
	switch (record(&about, attribute, data)) {
	case KNOWN: return CUDA_SUCCESS;
	case NONE: return CUDA_ERROR_INVALID_VALUE;
	default: return ask_there(data, attribute, ptr);
	}
}

SL_EXPORT CUresult cuPointerGetAttribute(
	void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	SL_DOOR;
	uint32_t trips = sl_residency_trips();
	struct sl_memory_info info;
	CUresult r;
	bool opened;

	switch (find(ptr, &info, &opened)) {
	case SL_MEMORY_DEAD: return CUDA_ERROR_INVALID_VALUE;
	case SL_MEMORY_OURS:
		/* In a broken context the driver answers everything with the sticky error. */
		if (data && info.broken == CUDA_SUCCESS &&
			answer(&info, opened, attribute, data))
			return CUDA_SUCCESS;
		break;
	default: break;
	}
	if (data && sl_residency_is_partial())
		return ask_record(data, attribute, ptr);
	r = sl_real.cuPointerGetAttribute(data, attribute, ptr);
	/* Ids come from the record, if the driver has one; in a broken context it has none. */
	if (!data || (r == CUDA_SUCCESS ? !is_number(attribute)
					: trips == sl_residency_trips()))
		return r;
	return ask_record(data, attribute, ptr);
}

/* In the first page, which is never mapped. */
#define NOWHERE ((CUdeviceptr)1)

/* Answers all attributes from the records. False: nothing is written, or an attribute is unknown to
 * them. */
static SL_COLD bool record_all(const struct about *about, unsigned int count,
	const CUpointer_attribute *attributes, void **data)
{
	for (unsigned int i = 0; i < count; i++) {
		int known = data[i] ? record(about, attributes[i], data[i]) : UNKNOWN;

		if (known == UNKNOWN)
			return false;
		if (known == NONE)
			*(void **)data[i] = NULL;
	}
	return true;
}

/* While memory is on the host, or came back just now. */
static SL_COLD CUresult ask_records(
	unsigned int count, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
	struct about about;
	CUresult r;

	if (!attributes || !data || !count || !look_up(ptr, &about))
		return sl_real.cuPointerGetAttributes(count, attributes, data, ptr);
	if (record_all(&about, count, attributes, data))
		return CUDA_SUCCESS;
	sl_residency_enter();
	r = sl_real.cuPointerGetAttributes(count, attributes, data, ptr);
	sl_residency_leave();
	return r;
}

/* Corrects the driver's answers. */
static void correct(unsigned int count, const CUpointer_attribute *attributes,
	void **data, CUdeviceptr ptr)
{
	struct about about;

	if (!look_up(ptr, &about) && !about.opened)
		return;
	for (unsigned int i = 0; i < count; i++) {
		if (!data[i])
			continue;
		if (about.is_mapping && is_number(attributes[i]))
			(void)record_of_mapping(&about, attributes[i], data[i]);
		else if (!about.is_mapping)
			(void)answer(&about.memory, about.opened, attributes[i], data[i]);
	}
}

SL_EXPORT CUresult cuPointerGetAttributes(
	unsigned int count, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
	SL_DOOR;
	uint32_t trips = sl_residency_trips();
	struct sl_memory_info info;
	bool opened;
	int found = find(ptr, &info, &opened);
	/* For a freed slot the driver would describe the slab around it. So it is asked about
	 * NOWHERE, an address without any allocation: it then answers as for its own freed
	 * memory. */
	CUdeviceptr at = found == SL_MEMORY_DEAD ? NOWHERE : ptr;
	CUresult r;

	if (sl_residency_is_partial())
		r = ask_records(count, attributes, data, at);
	else
		r = sl_real.cuPointerGetAttributes(count, attributes, data, at);
	if (r == CUDA_SUCCESS && sl_residency_trips() != trips)
		r = ask_records(count, attributes, data, at);
	if (r == CUDA_SUCCESS && found != SL_MEMORY_DEAD && sl_mode_is_active())
		correct(count, attributes, data, ptr);
	return r;
}

/* --- registrations ---------------------------------------------------------------------------- */

/* Some drivers know the attribute only for their own allocations; then it is set for the whole
 * context. */
static CUresult promise_for_context(CUcontext ctx)
{
	unsigned int flags = 0;
	CUcontext popped;
	CUresult r = sl_real.cuCtxPushCurrent_v2(ctx);

	if (r != CUDA_SUCCESS)
		return r;
	r = sl_real.cuCtxGetFlags(&flags);
	if (r == CUDA_SUCCESS)
		r = sl_real.cuCtxSetFlags(flags | CU_CTX_SYNC_MEMOPS);
	(void)sl_real.cuCtxPopCurrent_v2(&popped);
	return r;
}

/* The driver may not know the attribute for mapped memory: then the context has it. */
static CUresult ask_for_sync(const struct sl_memory_info *info)
{
	const unsigned int yes = 1;
	CUresult r = sl_real.cuPointerSetAttribute(
		&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, info->base);

	return r != CUDA_SUCCESS && promise_for_context(info->ctx) == CUDA_SUCCESS
		       ? CUDA_SUCCESS
		       : r;
}

/* A library sets this attribute before it registers memory with a NIC. We do not see the
 * registration itself, which keeps the current pages. So the memory becomes held here. The driver
 * knows only the slab around a small allocation, so in a slab the attribute is never cleared. */
static CUresult set_sync_memops(const struct sl_memory_info *info, bool on)
{
	CUresult r = CUDA_SUCCESS;

	if (on && !info->sync_memops) {
		if (!sl_anchor_range(info->base, 1))
			return CUDA_ERROR_OUT_OF_MEMORY;
		sl_residency_enter();
		r = ask_for_sync(info);
		sl_residency_leave();
		if (r != CUDA_SUCCESS)
			sl_anchor_drop(info->base, 1);
	}
	if (r == CUDA_SUCCESS)
		sl_memory_set_sync_memops(info->base, on);
	return r;
}

/* For another process's memory, which is held there. A mapped handle may not have the attribute. */
static CUresult set_sync_opened(const struct sl_memory_info *info, bool on)
{
	CUresult r = on && !info->sync_memops ? ask_for_sync(info) : CUDA_SUCCESS;

	if (r == CUDA_SUCCESS)
		sl_import_set_sync_memops(info->base, on);
	return r;
}

SL_EXPORT CUresult cuPointerSetAttribute(
	const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	SL_DOOR;
	bool is_sync = value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, opened;
	struct sl_memory_info info;
	CUresult r;

	switch (find(ptr, &info, &opened)) {
	case SL_MEMORY_DEAD: return CUDA_ERROR_INVALID_VALUE;
	case SL_MEMORY_OURS:
		if (is_sync)
			return opened ? set_sync_opened(
						&info, *(const unsigned int *)value != 0)
				      : set_sync_memops(
						&info, *(const unsigned int *)value != 0);
		break;
	default: break;
	}
	sl_residency_keep();
	r = sl_real.cuPointerSetAttribute(value, attribute, ptr);
	if (r == CUDA_SUCCESS && is_sync && sl_mode_is_active() &&
		*(const unsigned int *)value &&
		!sl_handle_hold_range(ptr, 1, SL_WHY_ADDRESS))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	sl_residency_keep_end();
	return r;
}
