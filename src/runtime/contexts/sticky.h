/*
 * sticky - errors that break a context for good
 *
 * After a sticky error the driver answers every call of that context with it, cuMemAlloc and
 * cuMemFree included. Our own answers must do the same although they may not call the driver.
 * Thread-safe.
 */
#ifndef SL_RUNTIME_CONTEXTS_STICKY_H
#define SL_RUNTIME_CONTEXTS_STICKY_H

#include "base/cuda_types.h"
#include "base/sl.h"

/* Is result a sticky error? */
bool sl_sticky_is(CUresult result);
CUresult sl_sticky_look(CUresult result) SL_COLD;

/* Looks at what a call returned and passes it on; one compare unless it is an error. */
static inline CUresult sl_sticky_note(CUresult result)
{
	return sl_likely(result < CUDA_ERROR_ECC_UNCORRECTABLE) ? result
								: sl_sticky_look(result);
}

#endif
