/*
 * ipc - memory of one process used by another
 *
 * A handle names the server's handle and a place in it. While the maker holds the memory, any other
 * process with the handle's 64 bytes may open it, as with the real driver.
 */
#include "softgpu/driver/api.h"
#include "softgpu/memory/space.h"

#include <string.h>
#include <unistd.h>

#define IPC_MAGIC 0x736c697063313030u

struct ipc_handle {
	uint64_t magic, id, offset, bytes;
	int64_t pid;
};
_Static_assert(
	sizeof(struct ipc_handle) <= sizeof(CUipcMemHandle), "too large for a handle");

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	struct sl_mapping m;
	struct sl_block b;

	SL_ENTER(cuIpcGetMemHandle);
	if (!handle || !sl_space_block(ptr, &b) || b.kind != SL_BLOCK_DEVICE ||
		!sl_space_mapping(ptr, &m))
		return CUDA_ERROR_INVALID_VALUE;
	struct ipc_handle h = {
		IPC_MAGIC, m.phys_id, b.address - m.address, b.bytes, getpid()};
	memset(handle, 0, sizeof(*handle));
	memcpy(handle, &h, sizeof(h));
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(
	CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
	struct ipc_handle h;

	SL_ENTER(cuIpcOpenMemHandle_v2);
	memcpy(&h, &handle, sizeof(h));
	if (!ptr || flags & ~(unsigned)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
		h.magic != IPC_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	if (h.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	return sl_space_ipc_open(sl_ctx_current(), h.id, h.offset, h.bytes, ptr);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
	SL_ENTER(cuIpcOpenMemHandle);
	return cuIpcOpenMemHandle_v2(ptr, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	CUresult r;

	SL_ENTER(cuIpcCloseMemHandle);
	r = sl_ctx_sync(sl_ctx_current());
	return r == CUDA_SUCCESS ? sl_space_ipc_close(ptr) : r;
}
