/*
 * ipc - memory of one process used by another, as programs call it
 *
 * The driver gives no IPC handle for mapped handles, and our memory is made of those. So the 64
 * bytes that a program passes on are ours: a key under which the daemon has descriptors of the
 * memory (offer.h), and the block's place in it. A process that opens them maps the same handles
 * (import.h). The driver's own handle (of a pool, or of a process without us) has other first bytes
 * and goes to the driver.
 *
 * Events are passed through: an IPC event belongs to the driver, involves no memory of ours, and
 * waiting for it is never gated. The work that it orders has passed the gate in its process.
 */
#include "runtime/contexts/capture.h"
#include "runtime/gate/door.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"
#include "runtime/session/session.h"
#include "runtime/share/import.h"

#include <string.h>

/* "sluice\x8f\x01": the driver's own handles begin with a small number or an address. */
#define HANDLE_MAGIC   0x018f656369756c73ull
#define HANDLE_VERSION 1u

/* The contents of our CUipcMemHandle. */
struct handle {
	uint64_t magic;
	uint32_t version, pad;
	struct sl_offered offered;
	uint8_t reserved[8];
};
_Static_assert(sizeof(struct handle) == sizeof(CUipcMemHandle), "64 bytes");

/* The current context and its device; the same errors as any call that needs a context. */
static CUresult current(CUcontext *ctx, CUdevice *dev)
{
	CUresult r = sl_real.cuCtxGetCurrent(ctx);

	if (r == CUDA_SUCCESS && !*ctx)
		r = CUDA_ERROR_INVALID_CONTEXT;
	return r == CUDA_SUCCESS ? sl_real.cuCtxGetDevice(dev) : r;
}

SL_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	SL_DOOR;
	struct handle made = {.magic = HANDLE_MAGIC, .version = HANDLE_VERSION};
	CUresult result;
	CUcontext ctx;
	CUdevice dev;

	if (!handle || !sl_mode_is_active() || !sl_session_is_joined() ||
		current(&ctx, &dev) != CUDA_SUCCESS ||
		sl_offer_get(ptr, &made.offered, &result) == SL_OFFER_FOREIGN)
		return sl_real.cuIpcGetMemHandle(handle, ptr);
	if (result == CUDA_SUCCESS)
		memcpy(handle, &made, sizeof(*handle));
	return result;
}

static bool is_ours(const CUipcMemHandle *handle, struct handle *out)
{
	memcpy(out, handle, sizeof(*out));
	return sl_mode_is_active() && out->magic == HANDLE_MAGIC;
}

static CUresult open_ours(
	CUdeviceptr *ptr, const struct handle *handle, unsigned int flags)
{
	CUcontext ctx;
	CUdevice dev;
	CUresult r = current(&ctx, &dev);

	if (r == CUDA_SUCCESS &&
		(!ptr || flags & ~(unsigned int)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
			handle->version != HANDLE_VERSION || !handle->offered.bytes))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS)
		r = sl_session_join();
	/* The driver's answer in the process that made the memory. */
	if (r == CUDA_SUCCESS && sl_offer_is_ours(handle->offered.key))
		r = CUDA_ERROR_INVALID_CONTEXT;
	if (r != CUDA_SUCCESS)
		return r;
	return sl_import_open(ctx, dev, flags & CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS,
		&handle->offered, ptr);
}

/* While a capture forbids the call, the driver refuses it and invalidates the capture before it
 * looks at the handle. */
#define OPEN(symbol)                                                         \
	SL_EXPORT CUresult symbol(                                           \
		CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags) \
	{                                                                    \
		SL_DOOR;                                                     \
		struct handle ours;                                          \
                                                                             \
		if (!is_ours(&handle, &ours) || sl_capture_forbids())        \
			return sl_real.symbol(ptr, handle, flags);           \
		return open_ours(ptr, &ours, flags);                         \
	}

OPEN(cuIpcOpenMemHandle)
OPEN(cuIpcOpenMemHandle_v2)

SL_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	SL_DOOR;
	struct sl_memory_info info;
	CUresult result;
	CUcontext ctx;
	CUdevice dev;

	if (!sl_mode_is_active() || sl_capture_forbids() ||
		sl_import_find(ptr, &info) == SL_MEMORY_FOREIGN)
		return sl_real.cuIpcCloseMemHandle(ptr);
	result = current(&ctx, &dev);
	/* The driver's close waits for the current context's work, even if the memory stays
	 * open. */
	if (result == CUDA_SUCCESS && sl_capture_sync_begin()) {
		result = sl_real.cuCtxSynchronize();
		sl_capture_sync_end();
	}
	if (result == CUDA_SUCCESS && sl_import_close(ptr, &result) == SL_MEMORY_FOREIGN)
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}
