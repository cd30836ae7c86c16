/*
 * usable - contexts of the program in which our threads may work for a while
 *
 * Contexts with a space come first: they belong to a known GPU and are in use. Then come all other
 * known contexts. A context that is about to be destroyed is left out. The list may have a
 * destroyed green context, so a caller that cannot push a context tries the next. Thread-safe.
 */
#ifndef SL_RUNTIME_CONTEXTS_USABLE_H
#define SL_RUNTIME_CONTEXTS_USABLE_H

#include "base/cuda_types.h"
#include "base/sl.h"

#define SL_USABLE_MAX 64

struct sl_gpu;

/* gpu NULL: contexts of any GPU. Otherwise spaces of other GPUs are left out, but contexts without
 * a space stay in, since their GPU is not known. *broken (may be NULL) is set if the context of a
 * space is broken. Returns the number of contexts. */
size_t sl_usable_list(
	const struct sl_gpu *gpu, CUcontext out[SL_USABLE_MAX], bool *broken);
/* Does the driver say that ctx is on that GPU? */
bool sl_usable_is_on(CUcontext ctx, const struct sl_gpu *gpu);

#endif
