/*
 * usable - contexts of the program's in which a thread of ours may work for a while
 *
 * Contexts with a space come first: they belong to a known GPU and are in use. Then come all others
 * that are known. A context that is about to be destroyed is left out; one that is gone may be
 * listed (a green context's), so a caller that cannot push one tries the next. Thread-safe.
 */
#ifndef SL_RUNTIME_CONTEXTS_USABLE_H
#define SL_RUNTIME_CONTEXTS_USABLE_H

#include "base/cuda_types.h"
#include "base/sl.h"

#define SL_USABLE_MAX 64

struct sl_gpu;

/* gpu NULL: of any; else those of other spaces are left out, but for what has no space it is not
 * known. *broken (may be NULL): there is one of a space that is broken. Returns how many. */
size_t sl_usable_list(
	const struct sl_gpu *gpu, CUcontext out[SL_USABLE_MAX], bool *broken);
/* Is it a context of that GPU, as the driver says? */
bool sl_usable_is_on(CUcontext ctx, const struct sl_gpu *gpu);

#endif
