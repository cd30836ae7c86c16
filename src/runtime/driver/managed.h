/*
 * managed - memory that the driver moves between host and GPU by itself
 *
 * Charged and held in full from its making on, wherever its pages are: the program may have all of
 * it on the GPU at any time.
 */
#ifndef SL_RUNTIME_DRIVER_MANAGED_H
#define SL_RUNTIME_DRIVER_MANAGED_H

#include "base/cuda_types.h"
#include "base/sl.h"

/* Set at the first of it, so that programs without do not pay for it when they free. */
extern uint32_t sl_managed_is_used;

/* cuMemFreeAsync of what is no region of ours: the same. */
CUresult sl_managed_free_async(CUresult (*real)(CUdeviceptr ptr, CUstream stream),
	CUdeviceptr ptr, CUstream stream);
/* cuMemFree of what is no region of ours: the driver's call, and what was charged for it is given
 * back. */
CUresult sl_managed_free(CUdeviceptr ptr);

#endif
