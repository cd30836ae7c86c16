/*
 * memory - entry points of plain, pinned and managed memory, and queries about pointers
 */
#include "softgpu/driver/api.h"
#include "softgpu/memory/space.h"
#include "softgpu/memory/external.h"

#include <string.h>

static CUresult figures(CUdevice device, size_t *free_bytes, size_t *total_bytes)
{
	struct sl_sg_request q = {.op = SL_SG_INFO, .device = (uint32_t)device};
	struct sl_sg_reply reply;
	CUresult r = sl_link_call(&q, -1, &reply, NULL, 0, NULL);

	if (r != CUDA_SUCCESS)
		return r;
	if (free_bytes)
		*free_bytes = reply.free_bytes;
	if (total_bytes)
		*total_bytes = reply.total_bytes;
	return r;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	SL_ENTER(cuMemGetInfo_v2);
	return figures(sl_ctx_current()->device, free_bytes, total_bytes);
}

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
	SL_ENTER(cuMemAlloc_v2);
	if (!ptr || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	return sl_space_alloc(sl_ctx_current(), bytes, SL_BLOCK_DEVICE, ptr);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width_bytes,
	size_t height, unsigned int element)
{
	size_t row = sl_round_up(width_bytes, 512);
	CUresult r;

	SL_ENTER(cuMemAllocPitch_v2);
	CHECK_OUT(ptr && pitch);
	if (!width_bytes || !height || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	if (row < width_bytes || row > SIZE_MAX / height)
		return CUDA_ERROR_INVALID_VALUE;
	r = sl_space_alloc(sl_ctx_current(), row * height, SL_BLOCK_DEVICE, ptr);
	if (r == CUDA_SUCCESS)
		*pitch = row;
	return r;
}

CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t bytes, unsigned int flags)
{
	SL_ENTER(cuMemAllocManaged);
	if (!ptr || !bytes ||
		(flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	return sl_space_alloc(sl_ctx_current(), bytes, SL_BLOCK_MANAGED, ptr);
}

/* Waits for the context's work first, which may still use the memory. */
CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	struct sl_block b;
	CUresult r;

	SL_ENTER(cuMemFree_v2);
	if (!ptr)
		return CUDA_SUCCESS;
	if (sl_graph_mem_free_now(ptr, &r))
		return r;
	if (sl_external_free(sl_ctx_current(), ptr))
		return CUDA_SUCCESS;
	if (!sl_space_block(ptr, &b) || b.address != ptr || b.kind > SL_BLOCK_POOL)
		return CUDA_ERROR_INVALID_VALUE;
	r = sl_ctx_sync(b.ctx);
	return r == CUDA_SUCCESS ? sl_space_free(ptr) : r;
}

/* The bounds of cuMemAlloc's block, or of one mapping of the program. */
static bool range_of(uint64_t ptr, uint64_t *base, uint64_t *bytes)
{
	struct sl_mapping m;
	struct sl_block b;

	if (sl_space_block(ptr, &b)) {
		*base = b.address;
		*bytes = b.bytes;
		return b.kind != SL_BLOCK_REGISTERED && b.kind != SL_BLOCK_ARRAY;
	}
	if (!sl_space_mapping(ptr, &m) || m.kind != SL_MAP_VMM || m.for_array)
		return false;
	*base = m.address;
	*bytes = m.bytes;
	return true;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
	uint64_t at, size;

	SL_ENTER(cuMemGetAddressRange_v2);
	if (!range_of(ptr, &at, &size))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = at;
	if (bytes)
		*bytes = size;
	return CUDA_SUCCESS;
}

/* Host memory --------------------------------------------------------------------------------- */

static CUresult pinned(CUresult r, uint64_t bytes)
{
	if (r == CUDA_SUCCESS)
		sl_drv_cost(sl_round_up(bytes, SL_MIB) / SL_MIB * sl_drv.hello.pin_us);
	return r;
}

CUresult cuMemHostAlloc(void **ptr, size_t bytes, unsigned int flags)
{
	SL_ENTER(cuMemHostAlloc);
	if (!ptr || !bytes || flags & ~7u)
		return CUDA_ERROR_INVALID_VALUE;
	return pinned(sl_space_host_alloc(sl_ctx_current(), bytes, flags, ptr), bytes);
}

CUresult cuMemAllocHost_v2(void **ptr, size_t bytes)
{
	SL_ENTER(cuMemAllocHost_v2);
	if (!ptr || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	return pinned(sl_space_host_alloc(sl_ctx_current(), bytes, 0, ptr), bytes);
}

CUresult cuMemFreeHost(void *ptr)
{
	CUresult r;

	SL_ENTER(cuMemFreeHost);
	if (!ptr)
		return CUDA_SUCCESS;
	r = sl_ctx_sync(sl_ctx_current());
	return r == CUDA_SUCCESS ? sl_space_host_free(ptr, SL_BLOCK_PINNED) : r;
}

CUresult cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned int flags)
{
	SL_ENTER(cuMemHostRegister_v2);
	if (!ptr || !bytes || flags & ~0xfu)
		return CUDA_ERROR_INVALID_VALUE;
	return pinned(sl_space_host_register(sl_ctx_current(), ptr, bytes, flags), bytes);
}

CUresult cuMemHostUnregister(void *ptr)
{
	CUresult r;

	SL_ENTER(cuMemHostUnregister);
	CHECK_OUT(ptr);
	r = sl_ctx_sync(sl_ctx_current());
	return r == CUDA_SUCCESS ? sl_space_host_free(ptr, SL_BLOCK_REGISTERED) : r;
}

static bool host_block(const void *ptr, struct sl_block *b)
{
	return sl_space_block((uint64_t)(uintptr_t)ptr, b) &&
	       (b->kind == SL_BLOCK_PINNED || b->kind == SL_BLOCK_REGISTERED);
}

/* Addresses are unified: the device's pointer is the host's. */
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *dev_ptr, void *ptr, unsigned int flags)
{
	struct sl_block b;

	SL_ENTER(cuMemHostGetDevicePointer_v2);
	if (!dev_ptr || flags || !host_block(ptr, &b))
		return CUDA_ERROR_INVALID_VALUE;
	*dev_ptr = (CUdeviceptr)(uintptr_t)ptr;
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *ptr)
{
	struct sl_block b;

	SL_ENTER(cuMemHostGetFlags);
	if (!flags || !host_block(ptr, &b))
		return CUDA_ERROR_INVALID_VALUE;
	/* With unified addresses all pinned memory is portable and mapped. */
	*flags = b.flags | CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
	return CUDA_SUCCESS;
}

/* Pointers ------------------------------------------------------------------------------------ */

struct pointer {
	struct sl_block block;
	struct sl_mapping mapping;
	bool has_block, has_mapping, is_host;
	uint64_t address, base, bytes;
};

static bool look(CUdeviceptr ptr, struct pointer *p)
{
	memset(p, 0, sizeof(*p));
	p->address = ptr;
	p->has_block = sl_space_block(ptr, &p->block);
	p->has_mapping = sl_space_mapping(ptr, &p->mapping);
	if (!p->has_block && p->has_mapping && p->mapping.kind != SL_MAP_VMM)
		return false; /* a free place in a slab or a pool */
	if ((p->has_block && p->block.kind == SL_BLOCK_ARRAY) || p->mapping.for_array)
		return false; /* its address is hidden */
	p->is_host = (p->has_block && p->block.kind >= SL_BLOCK_PINNED) ||
		     (p->has_mapping && p->mapping.is_host);
	p->base = p->has_block ? p->block.address : p->mapping.address;
	p->bytes = p->has_block ? p->block.bytes : p->mapping.bytes;
	return p->has_block || p->has_mapping;
}

/* Marks ids of the program's own handles: the server counts those of all processes, this process
 * counts its blocks. */
#define MAPPED_ID (1ull << 61)

/* Writes the answer in the type the attribute has. */
static CUresult answer(const struct pointer *p, CUpointer_attribute attribute, void *out)
{
	bool managed = p->has_block && p->block.kind == SL_BLOCK_MANAGED;
	bool is_vmm = !p->has_block;
	unsigned flag = 0;

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		/* Memory of a pool belongs to no context. */
		*(CUcontext *)out =
			p->has_block && !p->mapping.pool ? p->block.ctx : NULL;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)out = p->address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!p->is_host && !managed)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)out = (void *)(uintptr_t)p->address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)out =
			is_vmm ? MAPPED_ID | p->mapping.phys_id : p->block.buffer_id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)out = p->has_block ? p->block.device : p->mapping.device;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)out = p->base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)out = p->bytes;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)out = p->has_mapping ? p->mapping.pool : NULL;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		flag = p->is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: flag = p->block.sync_memops; break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED: flag = managed; break;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		flag = p->has_block && p->block.kind == SL_BLOCK_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPED: flag = 1; break;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		flag = p->mapping.handle_types;
		break;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		flag = p->has_mapping && p->mapping.rdma;
		break;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		flag = is_vmm || p->mapping.pool
			       ? p->mapping.access[sl_ctx_current()->device]
			       : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	*(unsigned *)out = flag;
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct pointer p;

	SL_ENTER(cuPointerGetAttribute);
	CHECK_OUT(data);
	return look(ptr, &p) ? answer(&p, attribute, data) : CUDA_ERROR_INVALID_VALUE;
}

static size_t answer_bytes(CUpointer_attribute attribute)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return 4;
	default: return 8;
	}
}

/* Unlike the single form it never fails on an unknown pointer: the answers are zeros. */
CUresult cuPointerGetAttributes(
	unsigned int count, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
	struct pointer p;
	bool known;

	SL_ENTER(cuPointerGetAttributes);
	CHECK_OUT(count && attributes && data);
	known = look(ptr, &p);
	for (unsigned i = 0; i < count; i++) {
		if (!data[i])
			return CUDA_ERROR_INVALID_VALUE;
		if (known && answer(&p, attributes[i], data[i]) == CUDA_SUCCESS)
			continue;
		memset(data[i], 0, answer_bytes(attributes[i]));
		if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			*(int *)data[i] = CU_DEVICE_INVALID;
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(
	const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct pointer p;

	SL_ENTER(cuPointerSetAttribute);
	CHECK_OUT(value);
	if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !look(ptr, &p))
		return CUDA_ERROR_INVALID_VALUE;
	sl_space_set_sync_memops(ptr, *(const unsigned *)value != 0);
	return CUDA_SUCCESS;
}
