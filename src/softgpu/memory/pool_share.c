/*
 * pool_share - pools of one process used by another
 *
 * An exported pool is a sealed file with its name. An exported pointer names the server's handle of
 * its chunk. Any process that has the name may open that handle, as with cuIpc.
 */
#include "softgpu/driver/api.h"
#include "softgpu/memory/space.h"
#include "softgpu/memory/pool.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT_MAGIC 0x736c706f6f6c3031u

struct pool_export {
	uint64_t magic, uid;
	int64_t pid;
	unsigned char uuid[16]; /* the GPU's */
};
struct pointer_export {
	uint64_t magic, uid;
	int64_t pid;
	uint64_t id, offset, bytes;
};
_Static_assert(
	sizeof(struct pointer_export) <= sizeof(CUmemPoolPtrExportData), "too large");

static bool is_pool(CUmemoryPool pool)
{
	return sl_object_is(pool, SL_MAGIC_POOL);
}

static CUresult export_fd(CUmemoryPool pool, int *out)
{
	struct pool_export e = {EXPORT_MAGIC, pool->uid, pool->pid, {0}};
	int fd = memfd_create("sluice-softgpu-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	memcpy(e.uuid, sl_drv.hello.device[pool->device].uuid, sizeof(e.uuid));
	if (write(fd, &e, sizeof(e)) != (ssize_t)sizeof(e) ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) < 0) {
		close(fd);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	*out = fd;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	SL_ENTER(cuMemPoolExportToShareableHandle);
	if (!handle || !is_pool(pool) || flags || pool->is_imported || pool->is_host)
		return CUDA_ERROR_INVALID_VALUE;
	if (!type || type & (type - 1) || !(pool->props.handleTypes & type))
		return CUDA_ERROR_INVALID_VALUE;
	return export_fd(pool, handle);
}

/* This process's number of the GPU of an export, or -1 if the GPU is not visible here. */
static CUdevice device_of(const unsigned char *uuid)
{
	for (unsigned i = 0; i < sl_drv.hello.gpus; i++)
		if (!memcmp(sl_drv.hello.device[i].uuid, uuid, 16))
			return (CUdevice)i;
	return -1;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *handle,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, -1}};
	struct pool_export e;
	CUmemoryPool pool;

	SL_ENTER(cuMemPoolImportFromShareableHandle);
	if (!out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (pread((int)(intptr_t)handle, &e, sizeof(e), 0) != (ssize_t)sizeof(e) ||
		e.magic != EXPORT_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	props.location.id = device_of(e.uuid);
	if (props.location.id < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	pool = sl_pool_new(&props);
	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pool->is_imported = true;
	pool->uid = e.uid;
	pool->pid = e.pid;
	*out = pool;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr ptr)
{
	struct sl_mapping m;
	struct sl_block b;

	SL_ENTER(cuMemPoolExportPointer);
	CHECK_OUT(data);
	if (!sl_space_block(ptr, &b) || !sl_space_mapping(ptr, &m) ||
		m.kind != SL_MAP_POOL || !m.handle_types)
		return CUDA_ERROR_INVALID_VALUE;
	struct pointer_export e = {EXPORT_MAGIC, m.pool->uid, m.pool->pid, m.phys_id,
		b.address - m.address, b.bytes};
	memset(data, 0, sizeof(*data));
	memcpy(data, &e, sizeof(e));
	return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(
	CUdeviceptr *ptr, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	struct pointer_export e;

	SL_ENTER(cuMemPoolImportPointer);
	if (!ptr || !data || !is_pool(pool) || !pool->is_imported)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&e, data, sizeof(e));
	if (e.magic != EXPORT_MAGIC || e.uid != pool->uid || e.pid != pool->pid)
		return CUDA_ERROR_INVALID_VALUE;
	return sl_pool_import_block(pool, e.id, e.offset, e.bytes, ptr);
}
