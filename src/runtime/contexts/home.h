/*
 * home - contexts of the program's in which a thread of ours may work for a while
 *
 * Those of spaces first: they are of a GPU and in use. Then all others that are known. One that is
 * about to be destroyed is not among them; one that is gone may be (a green context's), so whoever
 * cannot push one tries the next. Thread-safe.
 */
#ifndef SL_RUNTIME_CONTEXTS_HOME_H
#define SL_RUNTIME_CONTEXTS_HOME_H

#include "base/cuda_types.h"
#include "base/sl.h"

#define SL_HOMES_MAX 64

struct sl_gpu;

/* gpu NULL: of any; else those of other spaces are left out, but for what has no space it is not
 * known. *broken (may be NULL): there is one of a space that is broken. Returns how many. */
size_t sl_home_list(const struct sl_gpu *gpu, CUcontext out[SL_HOMES_MAX], bool *broken);
/* Is it a context of that GPU, as the driver says? */
bool sl_home_is_on(CUcontext ctx, const struct sl_gpu *gpu);

#endif
