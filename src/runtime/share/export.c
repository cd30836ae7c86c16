/*
 * export - handles and addresses given to other processes, NICs and sparse arrays
 *
 * The receiver keeps the pages that are behind the memory at that time, so the memory must stay in
 * place. The driver exports a handle first; its descriptor is closed again if the memory may not
 * become held. Calls whose result cannot be taken back make the memory held first.
 */
#include "runtime/driver/handle.h"
#include "runtime/gate/control.h"
#include "runtime/gate/door.h"
#include "runtime/gate/gate.h"
#include "runtime/gate/residency.h"
#include "runtime/memory/anchor.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"
#include "runtime/session/measure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void close_quietly(int fd)
{
	int saved_errno = errno;

	(void)close(fd);
	errno = saved_errno;
}

/* Other nodes may import a fabric handle at once, so its memory is held from its creation. */
SL_EXPORT CUresult cuMemExportToShareableHandle(void *out,
	CUmemGenericAllocationHandle value, CUmemAllocationHandleType type,
	unsigned long long flags)
{
	SL_DOOR;
	CUmemGenericAllocationHandle real;
	struct sl_handle *handle;
	CUresult r;

	sl_residency_keep();
	handle = sl_handle_use(value, &real);
	sl_control_enter();
	r = sl_real.cuMemExportToShareableHandle(out, real, type, flags);
	sl_control_leave();
	if (handle && r == CUDA_SUCCESS && !sl_handle_hold(handle, SL_WHY_EXPORTED)) {
		if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
			close_quietly(*(int *)out);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	sl_handle_leave(handle);
	sl_residency_keep_end();
	return r;
}

/* The exporter is charged. What the driver counts on this process beside that is measured. */
SL_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out,
	void *os_handle, CUmemAllocationHandleType type)
{
	SL_DOOR;
	CUmemGenericAllocationHandle real = 0;
	struct sl_handle *handle;
	CUresult r;

	if (!out || !sl_mode_is_active())
		return sl_real.cuMemImportFromShareableHandle(out, os_handle, type);
	handle = sl_handle_new(SL_HANDLE_IMPORTED, 0);
	if (!handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sl_control_enter();
	r = sl_real.cuMemImportFromShareableHandle(&real, os_handle, type);
	sl_control_leave();
	if (r != CUDA_SUCCESS) {
		sl_handle_discard(handle);
		return r;
	}
	if (sl_real.cuMemGetAllocationPropertiesFromHandle(&handle->prop, real) !=
		CUDA_SUCCESS)
		memset(&handle->prop, 0, sizeof(handle->prop));
	*out = sl_handle_add(handle, real);
	return sl_measure_after(r);
}

SL_EXPORT CUresult cuMemGetHandleForAddressRange(void *out, CUdeviceptr ptr, size_t bytes,
	CUmemRangeHandleType type, unsigned long long flags)
{
	SL_DOOR;
	bool held = true;
	CUresult r;

	sl_residency_keep();
	r = sl_real.cuMemGetHandleForAddressRange(out, ptr, bytes, type, flags);
	if (r == CUDA_SUCCESS && sl_mode_is_active())
		held = sl_anchor_range(ptr, bytes) &&
		       sl_handle_hold_range(ptr, bytes, SL_WHY_ADDRESS);
	sl_residency_keep_end();
	if (held)
		return r;
	if (type == CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
		close_quietly(*(int *)out);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* --- sparse arrays ---------------------------------------------------------------------------- */

/* Lists up to this length need no allocation. */
#define TILES_SHORT 16

/* A copy of the program's list with the driver's handles, and the records in use for them. */
struct tiles {
	CUarrayMapInfo short_list[TILES_SHORT], *list;
	struct sl_handle *short_used[TILES_SHORT], **used;
};

static void tiles_fini(struct tiles *tiles, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		sl_handle_leave(tiles->used[i]);
	if (tiles->list != tiles->short_list)
		free(tiles->list);
	if (tiles->used != tiles->short_used)
		free(tiles->used);
}

/* False: no host memory, or a handle may not be held; no record stays in use. */
static bool tiles_init(
	struct tiles *tiles, const CUarrayMapInfo *list, unsigned int count)
{
	bool fits = count <= TILES_SHORT, held = true;
	unsigned int i = 0;

	tiles->list = fits ? tiles->short_list : malloc(count * sizeof(*list));
	tiles->used =
		fits ? tiles->short_used : malloc(count * sizeof(struct sl_handle *));
	for (; tiles->list && tiles->used && held && i < count; i++) {
		CUmemGenericAllocationHandle *value = &tiles->list[i].memHandle.memHandle;

		tiles->list[i] = list[i];
		tiles->used[i] = sl_handle_use(*value, value);
		held = !tiles->used[i] || sl_handle_hold(tiles->used[i], SL_WHY_TILES);
	}
	if (i == count && held)
		return true;
	tiles_fini(tiles, i);
	return false;
}

#define GATED(call)                                          \
	({                                                   \
		struct sl_gate_thread *self_ = sl_gate_self; \
		CUresult gated_;                             \
                                                             \
		if (!self_)                                  \
			self_ = sl_gate_attach();            \
		if (self_)                                   \
			sl_gate_enter(self_);                \
		gated_ = (call);                             \
		if (self_)                                   \
			sl_gate_leave(self_);                \
		gated_;                                      \
	})

/* Until all handles are held, no memory moves. Held handles then stay on the GPU, even if other
 * memory leaves while the call waits at the gate. If the program releases a handle meanwhile, the
 * memory that the array keeps of it is measured as hidden. */
#define MAP_ARRAY(symbol)                                                  \
	SL_EXPORT CUresult symbol(                                         \
		CUarrayMapInfo *list, unsigned int count, CUstream stream) \
	{                                                                  \
		SL_DOOR;                                                   \
		struct tiles tiles;                                        \
		bool held;                                                 \
		CUresult r;                                                \
                                                                           \
		if (!list || !count || !sl_mode_is_active())               \
			return GATED(sl_real.symbol(list, count, stream)); \
		sl_residency_keep();                                       \
		held = tiles_init(&tiles, list, count);                    \
		sl_residency_keep_end();                                   \
		if (!held)                                                 \
			return CUDA_ERROR_OUT_OF_MEMORY;                   \
		r = GATED(sl_real.symbol(tiles.list, count, stream));      \
		tiles_fini(&tiles, count);                                 \
		if (r == CUDA_ERROR_OUT_OF_MEMORY)                         \
			return r;                                          \
		return sl_measure_after(r);                                \
	}

MAP_ARRAY(cuMemMapArrayAsync)
MAP_ARRAY(cuMemMapArrayAsync_ptsz)
