/*
 * managed - memory that the driver moves between host and GPU by itself
 *
 * It is charged and held in full from its creation, wherever its pages are: the program may move
 * all of it to the GPU at any time.
 */
#ifndef SL_RUNTIME_DRIVER_MANAGED_H
#define SL_RUNTIME_DRIVER_MANAGED_H

#include "base/cuda_types.h"
#include "base/sl.h"

/* Set at the first managed allocation, so that programs without any do not pay for it when they
 * free. */
extern uint32_t sl_managed_is_used;

/* The same for cuMemFreeAsync. */
CUresult sl_managed_free_async(CUresult (*real)(CUdeviceptr ptr, CUstream stream),
	CUdeviceptr ptr, CUstream stream);
/* cuMemFree of an address that is no region of ours: calls the driver and gives back the charge. */
CUresult sl_managed_free(CUdeviceptr ptr);

#endif
