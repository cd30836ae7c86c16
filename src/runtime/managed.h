/*
 * managed - memory that the driver moves between host and GPU by itself
 *
 * Charged and held in full from its making on, wherever its pages are: the program may have all of it on
 * the GPU at any time.
 */
#ifndef SL_RUNTIME_MANAGED_H
#define SL_RUNTIME_MANAGED_H

#include "base/cuda_types.h"

/* cuMemFree of what is no region of ours: the driver's call, and what was charged for it is given back. */
CUresult sl_managed_free(CUdeviceptr ptr);

#endif
