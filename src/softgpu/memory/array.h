/*
 * array - arrays and mipmapped arrays of the software GPU
 *
 * An array is a block of device memory with a hidden address, and a description of its content.
 * Texels are stored row after row without gaps, so a copy treats a place in an array as any other
 * address; a kernel cannot reach it.
 */
#ifndef SL_SOFTGPU_MEMORY_ARRAY_H
#define SL_SOFTGPU_MEMORY_ARRAY_H

#include "softgpu/driver/driver.h"

#define SL_MAGIC_ARRAY  0x41525230u
#define SL_MAGIC_MIPMAP 0x4d495030u

#define SL_ARRAY_TILE   (64 * SL_KIB) /* unit of mapping into an array */
#define SL_ARRAY_LEVELS 17u           /* of the widest possible array */

struct CUarray_st {
	struct sl_object o; /* o.link: in the list of all arrays */
	CUcontext ctx;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned int element_bytes;
	uint64_t address;    /* 0: no memory is mapped into it yet */
	CUmipmappedArray of; /* not NULL: a level of that, freed with it */
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

/* The array of a live handle, or NULL. */
CUarray sl_array_of(CUarray handle);
/* The device memory that it needs, as one block. */
uint64_t sl_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc);
uint64_t sl_mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels);
bool sl_mipmap_is(CUmipmappedArray array);
/* Places the levels one after the other from the address on; 0: no memory. */
void sl_mipmap_place(CUmipmappedArray array, uint64_t address);
struct sl_array_shape sl_array_shape(const struct CUarray_st *array);
/* 0: not a format of single texels. Planar and compressed ones are not modelled. */
unsigned int sl_array_format_bytes(CUarray_format format);
/* Frees the arrays of a context; the space frees their memory. */
void sl_array_drop_context(CUcontext ctx);
/* texture.c: frees the context's textures and surfaces. */
void sl_texture_drop_context(CUcontext ctx);

/* A mipmapped array in mapped external memory; freed with the mapping (sl_external_free). */
SL_MUST_CHECK CUresult sl_mipmap_over(const CUDA_ARRAY3D_DESCRIPTOR *desc,
	unsigned int levels, uint64_t address, uint64_t room, CUmipmappedArray *out);

#endif
