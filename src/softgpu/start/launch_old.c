/*
 * launch_old - launches in the form before CUDA 4: shape and parameters are set on the function
 * first
 *
 * Drivers of CUDA 12 and 13 still export them. The shape belongs to the function, for all threads.
 */
#include "softgpu/driver/api.h"

#include <string.h>

static bool function_ok(CUfunction f)
{
	return sl_object_is(f, SL_MAGIC_FUNC);
}

CUresult cuFuncSetBlockShape(CUfunction f, int x, int y, int z)
{
	SL_ENTER(cuFuncSetBlockShape);
	if (!function_ok(f))
		return CUDA_ERROR_INVALID_HANDLE;
	if (x <= 0 || y <= 0 || z <= 0 || x > 1024 || y > 1024 || z > 64)
		return CUDA_ERROR_INVALID_VALUE;
	f->old.block[0] = (unsigned)x;
	f->old.block[1] = (unsigned)y;
	f->old.block[2] = (unsigned)z;
	return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedSize(CUfunction f, unsigned int bytes)
{
	SL_ENTER(cuFuncSetSharedSize);
	if (!function_ok(f))
		return CUDA_ERROR_INVALID_HANDLE;
	f->old.shared_bytes = bytes;
	return CUDA_SUCCESS;
}

CUresult cuParamSetSize(CUfunction f, unsigned int bytes)
{
	SL_ENTER(cuParamSetSize);
	if (!function_ok(f))
		return CUDA_ERROR_INVALID_HANDLE;
	if (bytes > sizeof(f->old.params))
		return CUDA_ERROR_INVALID_VALUE;
	f->old.param_bytes = bytes;
	return CUDA_SUCCESS;
}

static CUresult set(CUfunction f, int offset, const void *data, size_t bytes)
{
	if (!function_ok(f))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data || offset < 0 || bytes > sizeof(f->old.params) ||
		(size_t)offset > sizeof(f->old.params) - bytes)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(f->old.params + offset, data, bytes);
	return CUDA_SUCCESS;
}

CUresult cuParamSeti(CUfunction f, int offset, unsigned int value)
{
	SL_ENTER(cuParamSeti);
	return set(f, offset, &value, sizeof(value));
}

CUresult cuParamSetf(CUfunction f, int offset, float value)
{
	SL_ENTER(cuParamSetf);
	return set(f, offset, &value, sizeof(value));
}

CUresult cuParamSetv(CUfunction f, int offset, void *data, unsigned int bytes)
{
	SL_ENTER(cuParamSetv);
	return set(f, offset, data, bytes);
}

static CUresult launch(CUfunction f, int width, int height, CUstream stream)
{
	struct sl_shape shape;
	size_t bytes;
	void *extra[5];
	struct sl_op *op;
	CUstream s = sl_stream_of(stream, false);
	CUresult r;

	if (!function_ok(f) || !s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (width <= 0 || height <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	bytes = f->old.param_bytes;
	shape = (struct sl_shape){{(unsigned)width, (unsigned)height, 1},
		{f->old.block[0], f->old.block[1], f->old.block[2]}, f->old.shared_bytes};
	extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
	extra[1] = f->old.params;
	extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
	extra[3] = &bytes;
	extra[4] = CU_LAUNCH_PARAM_END;
	r = sl_launch_op(f, &shape, NULL, extra, &op);
	if (r != CUDA_SUCCESS)
		return r;
	r = sl_ctx_first_launch(s->ctx);
	if (r == CUDA_SUCCESS)
		return sl_api_submit(stream, op);
	sl_op_free(op);
	return r;
}

CUresult cuLaunch(CUfunction f)
{
	SL_ENTER(cuLaunch);
	return launch(f, 1, 1, CU_STREAM_LEGACY);
}

CUresult cuLaunchGrid(CUfunction f, int width, int height)
{
	SL_ENTER(cuLaunchGrid);
	return launch(f, width, height, CU_STREAM_LEGACY);
}

CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream)
{
	SL_ENTER(cuLaunchGridAsync);
	return launch(f, width, height, SL_PLAIN(stream));
}
