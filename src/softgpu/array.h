/*
 * array - arrays and mipmapped arrays of the software GPU
 *
 * An array is a block of device memory whose address no program learns, and a description of what
 * lies in it. Texels are kept row after row without gaps, so that a place in an array is an address
 * like any other to a copy; a kernel has no way to reach it.
 */
#ifndef SL_SOFTGPU_ARRAY_H
#define SL_SOFTGPU_ARRAY_H

#include "softgpu/driver.h"

#define SL_MAGIC_ARRAY  0x41525230u
#define SL_MAGIC_MIPMAP 0x4d495030u

struct CUarray_st {
	struct sl_object o; /* o.link: in the list of all arrays */
	CUcontext ctx;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned int element_bytes;
	uint64_t address;    /* 0: nothing behind it yet (sparse, deferred) */
	CUmipmappedArray of; /* not NULL: a level of it, which goes with it */
};

struct sl_array_shape {
	size_t row_bytes, rows, slices; /* rows and slices are never 0 */
};

/* The array behind a handle of a living one, or NULL. */
CUarray sl_array_of(CUarray handle);
struct sl_array_shape sl_array_shape(const struct CUarray_st *array);
/* Everything a context allocated goes, its arrays among it. */
void sl_array_drop_context(CUcontext ctx);

/* A mipmapped array in mapped external memory; the mapping goes with it (sl_external_free). */
SL_MUST_CHECK CUresult sl_mipmap_over(const CUDA_ARRAY3D_DESCRIPTOR *desc,
	unsigned int levels, uint64_t address, uint64_t room, CUmipmappedArray *out);

#endif
