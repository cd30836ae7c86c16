/*
 * sticky - errors that break a context for good
 *
 * After one the driver answers every call of that context with it, cuMemAlloc and cuMemFree
 * included; so must we, although ours may not come by the driver. Thread-safe.
 */
#ifndef SL_RUNTIME_CONTEXTS_STICKY_H
#define SL_RUNTIME_CONTEXTS_STICKY_H

#include "base/cuda_types.h"
#include "base/sl.h"

/* One of those errors. */
bool sl_sticky_is(CUresult result);
CUresult sl_sticky_look(CUresult result) SL_COLD;

/* Looks at what a call returned and hands it on; one compare unless it is an error. */
static inline CUresult sl_sticky_note(CUresult result)
{
	return sl_likely(result < CUDA_ERROR_ECC_UNCORRECTABLE) ? result
								: sl_sticky_look(result);
}

#endif
