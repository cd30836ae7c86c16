/*
 * copy - what the files with copies share, also with graphs
 */
#ifndef SL_SOFTGPU_MEMORY_COPY_H
#define SL_SOFTGPU_MEMORY_COPY_H

#include "softgpu/memory/space.h"
#include "softgpu/driver/api.h"

/*
 * Submits a copy whose ends are set; *_host are as the caller named them. unified: the address
 * decides what an end is.
 */
SL_MUST_CHECK CUresult sl_copy_submit(
	CUstream stream, struct sl_copy *c, bool is_async, bool unified);

/*
 * Turns a description into addresses; places in arrays become addresses of the GPU. *unified as
 * above. Fails as the driver's call would; sl_copy_submit() checks the addresses.
 */
SL_MUST_CHECK CUresult sl_copy_plan(
	const CUDA_MEMCPY3D *p, struct sl_copy *out, bool *unified);

/*
 * Sets *_host of both ends by their addresses. Fails if an end has no memory, or if the caller
 * named it as a GPU's and it is not. dst and src may be NULL.
 */
SL_MUST_CHECK CUresult sl_copy_ends(
	struct sl_copy *c, bool unified, enum sl_place *dst, enum sl_place *src);

/* copy_order.c: would the driver know that it is between two GPUs? Both ends are on GPUs. */
bool sl_copy_is_between(const struct sl_copy *c);
/* Submits such a copy to a legacy stream, in order with both GPUs; waits if `wait`. Takes the op in
 * every case. */
SL_MUST_CHECK CUresult sl_copy_between(CUstream legacy, struct sl_op *op, bool wait);

#endif
