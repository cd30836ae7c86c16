/*
 * import - memory of other processes, mapped here
 *
 * One mapping per key and context, however many of its blocks are open and however often. The
 * maker is charged for the bytes, and they are held there; here nothing is charged, and nothing
 * can be evicted. What the driver counts on this process beside that, while the maker is gone, is
 * measured as hidden. Thread-safe; may wait, so no lock may be held.
 */
#ifndef SL_RUNTIME_SHARE_IMPORT_H
#define SL_RUNTIME_SHARE_IMPORT_H

#include "runtime/memory/memory.h"
#include "runtime/share/offer.h"

/* Maps what was offered under the key for the current context ctx (of device dev), unless that was
 * done before, and counts one more opening of the block. peers: dev may be another than the
 * memory's. */
SL_MUST_CHECK CUresult sl_import_open(CUcontext ctx, CUdevice dev, bool peers,
	const struct sl_offered *block, CUdeviceptr *out);
/* One opening less of the block that begins at ptr; the last one of all unmaps it, after the work
 * of its context. SL_MEMORY_FOREIGN: none of ours. */
SL_MUST_CHECK int sl_import_close(CUdeviceptr ptr, CUresult *result);
/* The opened block around ptr: SL_MEMORY_OURS, SL_MEMORY_DEAD (mapped, but no block is open there)
 * or SL_MEMORY_FOREIGN. A load and no lock while nothing is open. */
SL_MUST_CHECK int sl_import_find(CUdeviceptr ptr, struct sl_memory_info *out);
/* Remembers that attribute of the opened block around ptr. */
void sl_import_set_sync_memops(CUdeviceptr ptr, bool on);
/* Unmaps what was closed while a stream capture was open. */
void sl_import_sweep(void);
/* The context is gone: so are its openings. */
void sl_import_drop_context(CUcontext ctx);
/* In the child of a fork. */
void sl_import_forget(void);

#endif
