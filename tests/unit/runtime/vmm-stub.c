#include "vmm-stub.h"

#include "runtime/real/real.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define HANDLES_MAX  8192
#define MAPPINGS_MAX 8192
#define RANGES_MAX   512
#define DEVICES      2
#define GRAIN        (2 * SL_MIB)
/* Handles of this driver; 0 is none. */
#define HANDLE_BASE 0x100000
#define RANGE_BASE  0x10000000000ull

struct memory {
	bool used, imported;
	uint64_t bytes;
	CUmemAllocationProp prop;
	unsigned int references, mappings, bound;
	unsigned char *data; /* NULL: never looked at */
};

struct mapping {
	bool used;
	CUdeviceptr at;
	uint64_t bytes;
	size_t memory;
	CUmemAccess_flags access[DEVICES];
};

struct bound {
	bool used;
	size_t object, memory;
	CUdevice dev;
	uint64_t offset;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory memories[HANDLES_MAX];
static struct mapping mappings[MAPPINGS_MAX];
static size_t mapping_count;
static struct {
	CUdeviceptr at;
	uint64_t bytes;
} ranges[RANGES_MAX];
static struct bound bounds[64];
static CUdeviceptr next_range = RANGE_BASE;

struct vmm_stub vmm_stub;
bool (*vmm_stub_is_used)(CUdeviceptr at, uint64_t bytes);

void vmm_stub_lock(void)
{
	(void)pthread_mutex_lock(&lock);
}

void vmm_stub_unlock(void)
{
	(void)pthread_mutex_unlock(&lock);
}

unsigned int vmm_stub_twice, vmm_stub_row;

/* Under the lock. */
static bool is_faulty(void)
{
	unsigned int at = vmm_stub.fault_at, now = ++vmm_stub.calls;

	return at && ((now >= at && now <= at + vmm_stub_row) ||
			     (vmm_stub_twice && now == at + vmm_stub_twice));
}

#define ENTER()                                \
	CUresult r = CUDA_ERROR_INVALID_VALUE; \
	vmm_stub_lock();                       \
	if (is_faulty()) {                     \
		r = vmm_stub.fault;            \
		goto out;                      \
	}
#define LEAVE()            \
	out:               \
	vmm_stub_unlock(); \
	return r;

bool vmm_stub_fails(CUresult *r)
{
	bool fails;

	vmm_stub_lock();
	fails = is_faulty();
	vmm_stub_unlock();
	if (fails)
		*r = vmm_stub.fault;
	return fails;
}

static uint64_t *account_of(const struct memory *m)
{
	return m->prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE ||
			       m->prop.location.type ==
				       CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN
		       ? &vmm_stub.device_bytes
		       : &vmm_stub.host_bytes;
}

static struct memory *memory_of(CUmemGenericAllocationHandle handle)
{
	size_t i = handle - HANDLE_BASE;

	vmm_stub.last = handle;
	return handle >= HANDLE_BASE && i < HANDLES_MAX && memories[i].used &&
			       memories[i].references
		       ? &memories[i]
		       : NULL;
}

static struct memory *new_memory(const CUmemAllocationProp *prop, uint64_t bytes,
	bool imported, CUmemGenericAllocationHandle *out)
{
	size_t i = 0;

	while (memories[i].used)
		if (++i == HANDLES_MAX)
			abort();
	memories[i] = (struct memory){.used = true,
		.imported = imported,
		.bytes = bytes,
		.prop = *prop,
		.references = 1};
	if (!imported)
		*account_of(&memories[i]) += bytes;
	vmm_stub.live++;
	vmm_stub.references++;
	*out = HANDLE_BASE + i;
	return &memories[i];
}

static void end_if_over(struct memory *m)
{
	if (m->references || m->mappings || m->bound)
		return;
	if (!m->imported)
		*account_of(m) -= m->bytes;
	vmm_stub.live--;
	m->used = false;
	free(m->data);
	m->data = NULL;
	for (size_t i = 0; i < SL_ARRAY_LEN(bounds); i++) {
		if (bounds[i].used && &memories[bounds[i].object] == m) {
			bounds[i].used = false;
			memories[bounds[i].memory].bound--;
			end_if_over(&memories[bounds[i].memory]);
		}
	}
}

static CUresult create(CUmemGenericAllocationHandle *out, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	ENTER();
	if (bytes == 0 || bytes % GRAIN || flags)
		goto out;
	if (vmm_stub.no_memory) {
		vmm_stub.no_memory--;
		r = CUDA_ERROR_OUT_OF_MEMORY;
		goto out;
	}
	(void)new_memory(prop, bytes, false, out);
	r = CUDA_SUCCESS;
	LEAVE();
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
	struct memory *m;

	ENTER();
	m = memory_of(handle);
	if (m) {
		m->references--;
		vmm_stub.references--;
		end_if_over(m);
		r = CUDA_SUCCESS;
	}
	LEAVE();
}

static struct mapping *mapping_at(CUdeviceptr at)
{
	for (size_t i = 0; i < mapping_count; i++)
		if (mappings[i].used && at >= mappings[i].at &&
			at - mappings[i].at < mappings[i].bytes)
			return &mappings[i];
	return NULL;
}

unsigned char *vmm_stub_data(CUdeviceptr at, int dev, uint64_t *bytes)
{
	const struct mapping *g = mapping_at(at);
	struct memory *m;

	if (!g || g->access[dev] == CU_MEM_ACCESS_FLAGS_PROT_NONE)
		return NULL;
	m = &memories[g->memory];
	if (!m->data) {
		m->data = malloc(m->bytes);
		if (!m->data)
			abort();
		memset(m->data, 0xa5, m->bytes);
	}
	*bytes = sl_min_u64(*bytes, g->bytes - (at - g->at));
	return m->data + (at - g->at);
}

static CUresult map(CUdeviceptr at, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct memory *m;
	size_t i = 0;

	ENTER();
	m = memory_of(handle);
	if (!m || offset || flags || bytes == 0 || mapping_at(at) ||
		mapping_at(at + bytes - 1))
		goto out;
	while (mappings[i].used)
		if (++i == MAPPINGS_MAX)
			abort();
	mapping_count = sl_max_u64(mapping_count, i + 1);
	mappings[i] = (struct mapping){
		.used = true, .at = at, .bytes = bytes, .memory = (size_t)(m - memories)};
	m->mappings++;
	r = CUDA_SUCCESS;
	LEAVE();
}

static bool is_whole(CUdeviceptr at, size_t bytes)
{
	uint64_t seen = 0;

	for (size_t i = 0; i < mapping_count; i++) {
		const struct mapping *g = &mappings[i];

		if (!g->used || g->at + g->bytes <= at || g->at >= at + bytes)
			continue;
		if (g->at < at || g->at + g->bytes > at + bytes)
			return false;
		seen += g->bytes;
	}
	return seen && seen == bytes;
}

static CUresult unmap(CUdeviceptr at, size_t bytes)
{
	ENTER();
	if (!is_whole(at, bytes))
		goto out;
	if (vmm_stub_is_used && vmm_stub_is_used(at, bytes))
		abort(); /* unmapped under work */
	for (size_t i = 0; i < mapping_count; i++) {
		if (!mappings[i].used || mappings[i].at < at ||
			mappings[i].at >= at + bytes)
			continue;
		mappings[i].used = false;
		memories[mappings[i].memory].mappings--;
		end_if_over(&memories[mappings[i].memory]);
	}
	r = CUDA_SUCCESS;
	LEAVE();
}

static CUresult set_access(
	CUdeviceptr at, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
	ENTER();
	if (!is_whole(at, bytes))
		goto out;
	r = CUDA_SUCCESS;
	for (size_t n = 0; n < count && r == CUDA_SUCCESS; n++) {
		if (n == 1)
			r = vmm_stub.access_result;
		for (size_t i = 0; r == CUDA_SUCCESS && i < mapping_count; i++)
			if (mappings[i].used && mappings[i].at >= at &&
				mappings[i].at < at + bytes &&
				desc[n].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
				mappings[i].access[desc[n].location.id] = desc[n].flags;
	}
	LEAVE();
}

static CUresult get_access(
	unsigned long long *flags, const CUmemLocation *where, CUdeviceptr at)
{
	const struct mapping *g;

	ENTER();
	g = mapping_at(at);
	if (g && where->type == CU_MEM_LOCATION_TYPE_DEVICE && where->id < DEVICES) {
		*flags = g->access[where->id];
		r = CUDA_SUCCESS;
	}
	LEAVE();
}

CUmemAccess_flags vmm_stub_access(CUdeviceptr at, int dev)
{
	CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	const struct mapping *g;

	vmm_stub_lock();
	g = mapping_at(at);
	if (g)
		flags = g->access[dev];
	vmm_stub_unlock();
	return flags;
}

static CUresult retain(CUmemGenericAllocationHandle *out, void *addr)
{
	const struct mapping *g;

	ENTER();
	g = mapping_at((CUdeviceptr)(uintptr_t)addr);
	if (g) {
		memories[g->memory].references++;
		vmm_stub.references++;
		*out = HANDLE_BASE + g->memory;
		r = CUDA_SUCCESS;
	}
	LEAVE();
}

static CUresult properties(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	const struct memory *m;

	ENTER();
	m = memory_of(handle);
	if (m) {
		*prop = m->prop;
		r = CUDA_SUCCESS;
	}
	LEAVE();
}

static CUresult reserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr hint,
	unsigned long long flags)
{
	size_t i = 0;

	ENTER();
	while (ranges[i].bytes)
		if (++i == RANGES_MAX)
			abort();
	ranges[i].at = next_range;
	ranges[i].bytes = bytes;
	next_range += sl_round_up(bytes, GRAIN);
	vmm_stub.reserved++;
	*at = ranges[i].at;
	r = CUDA_SUCCESS;
	LEAVE();
}

static CUresult address_free(CUdeviceptr at, size_t bytes)
{
	ENTER();
	for (size_t i = 0; i < RANGES_MAX; i++) {
		if (ranges[i].bytes == bytes && ranges[i].at == at && bytes) {
			ranges[i].bytes = 0;
			vmm_stub.reserved--;
			r = CUDA_SUCCESS;
			break;
		}
	}
	LEAVE();
}

static CUresult export_handle(void *out, CUmemGenericAllocationHandle handle,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	ENTER();
	if (memory_of(handle)) {
		vmm_stub.last_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		*(int *)out = vmm_stub.last_fd;
		r = CUDA_SUCCESS;
	}
	LEAVE();
}

static CUresult range_handle(void *out, CUdeviceptr at, size_t bytes,
	CUmemRangeHandleType type, unsigned long long flags)
{
	ENTER();
	vmm_stub.last_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	*(int *)out = vmm_stub.last_fd;
	r = CUDA_SUCCESS;
	LEAVE();
}

static CUresult import_handle(CUmemGenericAllocationHandle *out, void *os_handle,
	CUmemAllocationHandleType type)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

	ENTER();
	(void)new_memory(&prop, GRAIN, true, out);
	r = CUDA_SUCCESS;
	LEAVE();
}

static CUresult map_array(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
	ENTER();
	r = CUDA_SUCCESS;
	for (unsigned int i = 0; i < count; i++)
		if (!memory_of(list[i].memHandle.memHandle))
			r = CUDA_ERROR_INVALID_VALUE;
	vmm_stub.last_tile = list[count - 1].memHandle.memHandle;
	vmm_stub.tile_maps++;
	LEAVE();
}

static CUresult multicast_create(
	CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *prop)
{
	CUmemAllocationProp none = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};

	ENTER();
	(void)new_memory(&none, 0, true, out);
	r = CUDA_SUCCESS;
	LEAVE();
}

static CUresult add_device(CUmemGenericAllocationHandle handle, CUdevice dev)
{
	ENTER();
	if (memory_of(handle))
		r = CUDA_SUCCESS;
	LEAVE();
}

static void bind(size_t object, size_t memory, CUdevice dev, uint64_t offset)
{
	size_t i = 0;

	while (bounds[i].used)
		if (++i == SL_ARRAY_LEN(bounds))
			abort();
	bounds[i] = (struct bound){true, object, memory, dev, offset};
	memories[memory].bound++;
}

static CUresult bind_mem(CUmemGenericAllocationHandle handle, size_t offset,
	CUmemGenericAllocationHandle mem, size_t mem_offset, size_t bytes,
	unsigned long long flags)
{
	struct memory *object, *m;

	ENTER();
	object = memory_of(handle);
	m = memory_of(mem);
	if (object && m) {
		bind((size_t)(object - memories), (size_t)(m - memories),
			m->prop.location.id, offset);
		r = CUDA_SUCCESS;
	}
	LEAVE();
}

/* Memory of no handle that is known here: a region's. */
static CUresult bind_addr(CUmemGenericAllocationHandle handle, size_t offset,
	CUdeviceptr at, size_t bytes, unsigned long long flags)
{
	struct memory *object;
	const struct mapping *g;

	ENTER();
	object = memory_of(handle);
	g = mapping_at(at);
	if (object) {
		if (g)
			bind((size_t)(object - memories), g->memory,
				memories[g->memory].prop.location.id, offset);
		r = CUDA_SUCCESS;
	}
	LEAVE();
}

static CUresult bind_mem_v2(CUmemGenericAllocationHandle handle, CUdevice dev,
	size_t offset, CUmemGenericAllocationHandle mem, size_t mem_offset, size_t bytes,
	unsigned long long flags)
{
	return bind_mem(handle, offset, mem, mem_offset, bytes, flags);
}

static CUresult bind_addr_v2(CUmemGenericAllocationHandle handle, CUdevice dev,
	size_t offset, CUdeviceptr at, size_t bytes, unsigned long long flags)
{
	return bind_addr(handle, offset, at, bytes, flags);
}

static CUresult bind_endpoint(CUlogicalEndpointId endpoint, CUdevice dev,
	cuuint64_t offset, CUmemGenericAllocationHandle mem, cuuint64_t mem_offset,
	cuuint64_t bytes, unsigned long long flags)
{
	ENTER();
	if (memory_of(mem))
		r = CUDA_SUCCESS;
	LEAVE();
}

static CUresult bind_endpoint_addr(CUlogicalEndpointId endpoint, CUdevice dev,
	cuuint64_t offset, void *at, cuuint64_t bytes, unsigned long long flags)
{
	ENTER();
	r = CUDA_SUCCESS;
	LEAVE();
}

static CUresult unbind(
	CUmemGenericAllocationHandle handle, CUdevice dev, size_t offset, size_t bytes)
{
	struct memory *object;

	ENTER();
	object = memory_of(handle);
	for (size_t i = 0; object && i < SL_ARRAY_LEN(bounds); i++) {
		if (!bounds[i].used || &memories[bounds[i].object] != object ||
			bounds[i].dev != dev || bounds[i].offset < offset ||
			bounds[i].offset >= offset + bytes)
			continue;
		bounds[i].used = false;
		memories[bounds[i].memory].bound--;
		end_if_over(&memories[bounds[i].memory]);
	}
	r = object ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	LEAVE();
}

static CUresult device_count(int *count)
{
	*count = DEVICES;
	return CUDA_SUCCESS;
}

static CUresult peer_enable(CUcontext peer, unsigned int flags)
{
	ENTER();
	r = CUDA_SUCCESS;
	LEAVE();
}

static CUresult peer_disable(CUcontext peer)
{
	ENTER();
	r = CUDA_SUCCESS;
	LEAVE();
}

static CUresult set_attribute(
	const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	ENTER();
	r = CUDA_SUCCESS;
	LEAVE();
}

void vmm_stub_install(void)
{
	memset(&vmm_stub, 0, sizeof(vmm_stub));
	vmm_stub.fault = CUDA_ERROR_UNKNOWN;
	sl_real.cuMemCreate = create;
	sl_real.cuMemRelease = release;
	sl_real.cuMemMap = map;
	sl_real.cuMemUnmap = unmap;
	sl_real.cuMemSetAccess = set_access;
	sl_real.cuMemGetAccess = get_access;
	sl_real.cuMemRetainAllocationHandle = retain;
	sl_real.cuMemGetAllocationPropertiesFromHandle = properties;
	sl_real.cuMemAddressReserve = reserve;
	sl_real.cuMemAddressFree = address_free;
	sl_real.cuMemExportToShareableHandle = export_handle;
	sl_real.cuMemImportFromShareableHandle = import_handle;
	sl_real.cuMemMapArrayAsync = map_array;
	sl_real.cuMulticastCreate = multicast_create;
	sl_real.cuMulticastAddDevice = add_device;
	sl_real.cuMulticastBindMem = bind_mem;
	sl_real.cuMulticastBindAddr = bind_addr;
	sl_real.cuMulticastBindMem_v2 = bind_mem_v2;
	sl_real.cuMulticastBindAddr_v2 = bind_addr_v2;
	sl_real.cuMulticastUnbind = unbind;
	sl_real.cuLogicalEndpointBindMem = bind_endpoint;
	sl_real.cuLogicalEndpointBindAddr = bind_endpoint_addr;
	sl_real.cuMemGetHandleForAddressRange = range_handle;
	sl_real.cuDeviceGetCount = device_count;
	sl_real.cuCtxEnablePeerAccess = peer_enable;
	sl_real.cuCtxDisablePeerAccess = peer_disable;
	sl_real.cuPointerSetAttribute = set_attribute;
}
