/*
 * external_memory - memory of other interfaces
 *
 * A descriptor stands for an allocation of another interface (Vulkan, say): one exported from a
 * handle of the software GPU, or a memfd, which is host memory that a GPU can reach. Each mapped
 * buffer maps the whole allocation in a range of its own, freed by cuMemFree. The memory stays
 * while the import or one of its buffers exists. A successful import takes the descriptor.
 */
#include "softgpu/memory/external.h"

#include "softgpu/memory/array.h"
#include "softgpu/memory/internal.h"

#include <stdlib.h>
#include <unistd.h>

struct CUextMemory_st {
	struct sl_object o;
	CUmemGenericAllocationHandle handle;
	CUdevice device;
	uint64_t size, room; /* room: of the handle, whole pages */
};

/* A mapped buffer. */
struct view {
	struct sl_link link;
	uint64_t base, room, pointer;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sl_link views = SL_LIST_INIT(views);

/* Memory that another process allocated on this GPU, or any memory with a descriptor. */
static CUresult import_fd(int fd, CUmemGenericAllocationHandle *out)
{
	struct sl_phys *phys;
	CUresult r = sl_space_import(fd, out);

	if (r == CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&sl_space_lock);
	r = sl_phys_host_get(fd, &phys);
	if (r == CUDA_SUCCESS) {
		phys->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
		phys->prop.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
		r = sl_handle_new(phys, out);
	}
	pthread_mutex_unlock(&sl_space_lock);
	return r;
}

static uint64_t bytes_of(CUmemGenericAllocationHandle handle)
{
	const struct sl_phys *phys;
	uint64_t bytes;

	pthread_mutex_lock(&sl_space_lock);
	phys = sl_handle_phys(handle);
	bytes = phys ? phys->bytes : 0;
	pthread_mutex_unlock(&sl_space_lock);
	return bytes;
}

CUresult cuImportExternalMemory(
	CUexternalMemory *mem, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
	CUmemGenericAllocationHandle handle;
	CUexternalMemory x;
	CUresult r;

	SL_ENTER(cuImportExternalMemory);
	if (!mem || !desc || desc->flags & ~(unsigned)CUDA_EXTERNAL_MEMORY_DEDICATED ||
		!desc->size)
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (desc->handle.fd < 0 || import_fd(desc->handle.fd, &handle) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_VALUE;
	x = sl_object_new(SL_MAGIC_XMEM, sizeof(*x));
	r = x ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (r == CUDA_SUCCESS && desc->size > bytes_of(handle))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r != CUDA_SUCCESS) {
		if (x && sl_object_kill(x))
			sl_object_unref(x);
		(void)!sl_space_release(handle);
		return r;
	}
	x->handle = handle;
	x->device = sl_ctx_current()->device;
	x->size = desc->size;
	x->room = bytes_of(handle);
	close(desc->handle.fd);
	*mem = x;
	return r;
}

CUresult cuDestroyExternalMemory(CUexternalMemory mem)
{
	SL_ENTER(cuDestroyExternalMemory);
	if (!sl_object_is(mem, SL_MAGIC_XMEM) || !sl_object_kill(mem))
		return CUDA_ERROR_INVALID_HANDLE;
	(void)!sl_space_release(mem->handle); /* mappings keep it */
	sl_object_unref(mem);
	return CUDA_SUCCESS;
}

static void unmap(uint64_t base, uint64_t room)
{
	(void)!sl_space_unmap(base, room);
	(void)!sl_space_unreserve(base, sl_round_up(room, SL_SG_PAGE));
}

/* Maps the whole allocation at a free address. */
static CUresult map(CUexternalMemory x, uint64_t *base)
{
	CUdeviceptr at = 0;
	CUresult r = sl_space_reserve(sl_round_up(x->room, SL_SG_PAGE), 0, 0, &at);

	if (r != CUDA_SUCCESS)
		return r;
	r = sl_space_map(at, x->room, x->handle);
	if (r == CUDA_SUCCESS)
		r = sl_space_access(
			at, x->room, x->device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	if (r != CUDA_SUCCESS)
		unmap(at, x->room);
	*base = at;
	return r;
}

static CUresult view_new(CUexternalMemory x, uint64_t offset, CUdeviceptr *out)
{
	struct view *v = calloc(1, sizeof(*v));
	CUresult r = v ? map(x, &v->base) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r != CUDA_SUCCESS) {
		free(v);
		return r;
	}
	v->room = x->room;
	v->pointer = *out = v->base + offset;
	pthread_mutex_lock(&lock);
	sl_list_push_tail(&views, &v->link);
	pthread_mutex_unlock(&lock);
	return r;
}

/* Is this range within the imported memory? */
static bool range_ok(CUexternalMemory x, uint64_t offset, uint64_t size)
{
	return size && offset <= x->size && size <= x->size - offset;
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *ptr, CUexternalMemory mem,
	const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	SL_ENTER(cuExternalMemoryGetMappedBuffer);
	CHECK_OUT(ptr && desc);
	if (!sl_object_is(mem, SL_MAGIC_XMEM))
		return CUDA_ERROR_INVALID_HANDLE;
	if (desc->flags || !range_ok(mem, desc->offset, desc->size))
		return CUDA_ERROR_INVALID_VALUE;
	return view_new(mem, desc->offset, ptr);
}

CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *array,
	CUexternalMemory mem, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc)
{
	CUdeviceptr at = 0;
	CUresult r;

	SL_ENTER(cuExternalMemoryGetMappedMipmappedArray);
	CHECK_OUT(array && desc);
	if (!sl_object_is(mem, SL_MAGIC_XMEM))
		return CUDA_ERROR_INVALID_HANDLE;
	if (desc->offset >= mem->size)
		return CUDA_ERROR_INVALID_VALUE;
	r = view_new(mem, desc->offset, &at);
	if (r != CUDA_SUCCESS)
		return r;
	r = sl_mipmap_over(
		&desc->arrayDesc, desc->numLevels, at, mem->size - desc->offset, array);
	if (r != CUDA_SUCCESS)
		(void)!sl_external_free(sl_ctx_current(), at);
	return r;
}

bool sl_external_free(CUcontext ctx, CUdeviceptr at)
{
	struct view *found = NULL;

	pthread_mutex_lock(&lock);
	sl_list_foreach (link, &views) {
		struct view *v = SL_LIST_ENTRY(link, struct view, link);

		if (v->pointer == at) {
			found = v;
			break;
		}
	}
	if (found)
		sl_list_unlink(&found->link);
	pthread_mutex_unlock(&lock);
	if (!found)
		return false;
	sl_ctx_sync(ctx);
	unmap(found->base, found->room);
	free(found);
	return true;
}
