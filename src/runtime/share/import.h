/*
 * import - memory of other processes, mapped here
 *
 * One mapping per key and context, for all its open blocks and all their openings. The bytes are
 * charged to the maker and held there; here nothing is charged and nothing can be evicted. Bytes
 * that the driver counts on this process once the maker is gone are measured as hidden.
 * Thread-safe; may wait, so no lock may be held.
 */
#ifndef SL_RUNTIME_SHARE_IMPORT_H
#define SL_RUNTIME_SHARE_IMPORT_H

#include "runtime/memory/memory.h"
#include "runtime/share/offer.h"

/* Maps the memory offered under the key for the current context ctx (of device dev), unless mapped
 * already, and counts one more opening of the block. peers: dev may differ from the memory's
 * device. */
SL_MUST_CHECK CUresult sl_import_open(CUcontext ctx, CUdevice dev, bool peers,
	const struct sl_offered *block, CUdeviceptr *out);
/* Takes one opening off the block that begins at ptr. If no block of the mapping is open any more,
 * the memory is unmapped, after the work of its context. SL_MEMORY_FOREIGN: not opened here. */
SL_MUST_CHECK int sl_import_close(CUdeviceptr ptr, CUresult *result);
/* The opened block around ptr: SL_MEMORY_OURS, SL_MEMORY_DEAD (mapped, but no block is open there)
 * or SL_MEMORY_FOREIGN. A load and no lock while nothing is open. */
SL_MUST_CHECK int sl_import_find(CUdeviceptr ptr, struct sl_memory_info *out);
/* Stores that attribute of the opened block around ptr. */
void sl_import_set_sync_memops(CUdeviceptr ptr, bool on);
/* Unmaps what was closed while a stream capture was open. */
void sl_import_sweep(void);
/* The context is gone with its openings. */
void sl_import_drop_context(CUcontext ctx);
/* In the child of a fork. */
void sl_import_forget(void);

#endif
