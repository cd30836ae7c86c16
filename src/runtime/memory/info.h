/*
 * info - what is told about an allocation, and its number
 */
#ifndef SL_RUNTIME_MEMORY_INFO_H
#define SL_RUNTIME_MEMORY_INFO_H

#include "base/cuda_types.h"
#include "base/sl.h"

enum sl_memory_outcome {
	SL_MEMORY_OURS = 0,
	SL_MEMORY_FOREIGN, /* the driver's own affair */
	SL_MEMORY_DEAD,    /* ours, but not allocated (any more) */
};

struct sl_memory_info {
	CUdeviceptr base; /* of the allocation */
	uint64_t bytes;   /* as asked */
	uint64_t id;      /* never reused */
	CUcontext ctx;
	CUdevice dev;
	CUdeviceptr mapping_base; /* of the slab or region around it */
	uint64_t mapping_bytes;
	bool sync_memops;  /* of cuPointerSetAttribute */
	CUmemoryPool pool; /* stream-ordered memory of this pool; otherwise NULL */
	CUresult broken;   /* sticky error of its context, or CUDA_SUCCESS */
};

/* A number for an allocation, or for memory opened from another process: unique in this process. */
uint64_t sl_memory_new_id(void);

#endif
