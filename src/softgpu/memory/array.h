/*
 * array - arrays and mipmapped arrays of the software GPU
 *
 * An array is a block of device memory whose address no program learns, and a description of what
 * lies in it. Texels are kept row after row without gaps, so that a place in an array is an address
 * like any other to a copy; a kernel has no way to reach it.
 */
#ifndef SL_SOFTGPU_MEMORY_ARRAY_H
#define SL_SOFTGPU_MEMORY_ARRAY_H

#include "softgpu/driver/driver.h"

#define SL_MAGIC_ARRAY  0x41525230u
#define SL_MAGIC_MIPMAP 0x4d495030u

#define SL_ARRAY_TILE   (64 * SL_KIB) /* in which memory is mapped into an array */
#define SL_ARRAY_LEVELS 17u           /* of the widest array there is */

struct CUarray_st {
	struct sl_object o; /* o.link: in the list of all arrays */
	CUcontext ctx;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned int element_bytes;
	uint64_t address;    /* 0: nothing is mapped into it yet */
	CUmipmappedArray of; /* not NULL: a level of it, which goes with it */
};

struct sl_array_shape {
	size_t row_bytes, rows, slices; /* rows and slices are never 0 */
};

struct CUmipmappedArray_st {
	struct sl_object o; /* o.link: in the list of all mipmapped arrays */
	CUcontext ctx;
	uint64_t address;
	unsigned int count;
	bool is_external; /* in mapped external memory */
	CUDA_ARRAY3D_DESCRIPTOR desc;
	CUarray level[SL_ARRAY_LEVELS];
};

/* The array behind a handle of a living one, or NULL. */
CUarray sl_array_of(CUarray handle);
/* What the GPU gives up for it, as one block. */
uint64_t sl_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc);
uint64_t sl_mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels);
bool sl_mipmap_is(CUmipmappedArray array);
/* Places the levels behind one another from the address on; 0: nowhere. */
void sl_mipmap_place(CUmipmappedArray array, uint64_t address);
struct sl_array_shape sl_array_shape(const struct CUarray_st *array);
/* 0: not a format of single texels. Planar and compressed ones are not modelled. */
unsigned int sl_array_format_bytes(CUarray_format format);
/* The arrays of a context go; its memory is the space's to drop. */
void sl_array_drop_context(CUcontext ctx);
/* texture.c: so do its textures and surfaces. */
void sl_texture_drop_context(CUcontext ctx);

/* A mipmapped array in mapped external memory; the mapping goes with it (sl_external_free). */
SL_MUST_CHECK CUresult sl_mipmap_over(const CUDA_ARRAY3D_DESCRIPTOR *desc,
	unsigned int levels, uint64_t address, uint64_t room, CUmipmappedArray *out);

#endif
