/*
 * copy - what the files with copies share, and graphs need of them
 */
#ifndef SL_SOFTGPU_MEMORY_COPY_H
#define SL_SOFTGPU_MEMORY_COPY_H

#include "softgpu/memory/space.h"
#include "softgpu/driver/api.h"

/*
 * Submits a copy whose ends are set; *_host say what the caller named them. unified: an end may be
 * anything, as its address tells.
 */
SL_MUST_CHECK CUresult sl_copy_submit(
	CUstream stream, struct sl_copy *c, bool is_async, bool unified);

/*
 * Turns a description into addresses: the places in arrays become addresses of the GPU. *unified as
 * above. Fails as the driver's call would; an end's address is only checked by sl_copy_submit().
 */
SL_MUST_CHECK CUresult sl_copy_plan(
	const CUDA_MEMCPY3D *p, struct sl_copy *out, bool *unified);

/*
 * Sets *_host to what the ends are, by their addresses. Fails where one has nothing behind it, or
 * is no GPU's though named so. The places may be NULL.
 */
SL_MUST_CHECK CUresult sl_copy_ends(
	struct sl_copy *c, bool unified, enum sl_place *dst, enum sl_place *src);

/* copy_order.c: is it from one GPU to another, as far as a driver knows? Both ends are on GPUs. */
bool sl_copy_is_between(const struct sl_copy *c);
/* Submits such a copy to a legacy stream, in order with both GPUs; waits if told to. Takes the op
 * in every case. */
SL_MUST_CHECK CUresult sl_copy_between(CUstream legacy, struct sl_op *op, bool wait);

#endif
