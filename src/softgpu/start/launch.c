/*
 * launch - kernel launches and questions about functions
 *
 * Parameters are copied in the call, by the sizes in the module's table. The first launch of a
 * context charges hidden bytes (stacks, lazily loaded code) and may fail for lack of them.
 */
#include "softgpu/driver/api.h"

#include <stdlib.h>
#include <string.h>

#define SHARED_MAX        (48u * 1024)
#define SHARED_OPT_IN_MAX (160u * 1024)
#define THREADS_MAX       1024u

static bool shape_ok(const struct sl_shape *s)
{
	static const unsigned block_max[3] = {1024, 1024, 64};
	static const unsigned grid_max[3] = {0x7fffffff, 65535, 65535};

	for (unsigned i = 0; i < 3; i++)
		if (!s->grid[i] || !s->block[i] || s->grid[i] > grid_max[i] ||
			s->block[i] > block_max[i])
			return false;
	return (uint64_t)s->block[0] * s->block[1] * s->block[2] <= THREADS_MAX;
}

/* From an array of pointers, or from one packed buffer in the way of `extra`. */
static CUresult take_params(const struct sl_function_info *f, void **params, void **extra,
	struct sl_cp_launch *l)
{
	const char *packed = NULL;
	size_t packed_bytes = 0;

	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	for (; extra && extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			packed = extra[1];
		else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
			packed_bytes = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (f->param_count && !params && !packed)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < f->param_count; i++) {
		size_t n = f->param_bytes[i], at = f->param_at[i];

		if (packed && at + n > packed_bytes)
			return CUDA_ERROR_INVALID_VALUE;
		if (!packed && !params[i])
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(l->params + at, packed ? packed + at : params[i], n);
		l->param_bytes = (uint32_t)(at + n);
	}
	return CUDA_SUCCESS;
}

static CUresult make_op(CUfunction f, const struct sl_shape *shape, void **params,
	void **extra, struct sl_op **out)
{
	struct sl_op *op = sl_op_new(SL_OP_KERNEL);
	struct sl_cp_launch *l = op ? calloc(1, sizeof(*l)) : NULL;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (l) {
		op->kernel.launch = l;
		op->kernel.module = f->module;
		op->kernel.function = f;
		sl_object_ref(f->module);
		l->module = f->module->remote;
		l->kernel = f->info.index;
		memcpy(l->grid, shape->grid, sizeof(l->grid));
		memcpy(l->block, shape->block, sizeof(l->block));
		l->shared_bytes = shape->shared_bytes;
		r = take_params(&f->info, params, extra, l);
	}
	if (r != CUDA_SUCCESS)
		sl_op_free(op);
	else
		*out = op;
	return r;
}

CUresult sl_launch_op(CUfunction f, const struct sl_shape *shape, void **params,
	void **extra, struct sl_op **out)
{
	if (!sl_object_is(f, SL_MAGIC_FUNC))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!shape_ok(shape))
		return CUDA_ERROR_INVALID_VALUE;
	if ((uint64_t)shape->shared_bytes + f->info.shared_bytes > SHARED_MAX &&
		shape->shared_bytes > (unsigned)f->max_dynamic_shared_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (shape->block[0] * shape->block[1] * shape->block[2] > f->info.max_threads)
		return CUDA_ERROR_INVALID_VALUE;
	return make_op(f, shape, params, extra, out);
}

static CUresult launch(CUfunction f, const struct sl_shape *shape, CUstream handle,
	void **params, void **extra)
{
	CUstream s = sl_stream_of(handle, false);
	struct sl_op *op;
	CUresult r;

	if (!sl_object_is(f, SL_MAGIC_FUNC) || !s)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sl_launch_op(f, shape, params, extra, &op);
	if (r != CUDA_SUCCESS)
		return r;
	if (f->module->ctx->device != s->ctx->device)
		r = CUDA_ERROR_INVALID_HANDLE;
	else
		r = sl_ctx_first_launch(s->ctx);
	if (r == CUDA_SUCCESS)
		return sl_api_submit(handle, op);
	sl_op_free(op);
	return r;
}

#define LAUNCH_PARAMS                                                                  \
	CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
		unsigned bz, unsigned shared, CUstream stream, void **params
#define SHAPE (&(struct sl_shape){{gx, gy, gz}, {bx, by, bz}, shared})

#define do_cuLaunchKernel            launch
#define do_cuLaunchCooperativeKernel launch
SL_TWIN(cuLaunchKernel, (LAUNCH_PARAMS, void **extra),
	(f, SHAPE, SL_PLAIN(stream), params, extra),
	(f, SHAPE, SL_PER_THREAD(stream), params, extra))
SL_TWIN(cuLaunchCooperativeKernel, (LAUNCH_PARAMS),
	(f, SHAPE, SL_PLAIN(stream), params, NULL),
	(f, SHAPE, SL_PER_THREAD(stream), params, NULL))

static CUresult do_cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params,
	void **extra, bool per_thread)
{
	struct sl_shape shape;

	CHECK_OUT(c);
	if (c->numAttrs && !c->attrs)
		return CUDA_ERROR_INVALID_VALUE;
	shape = (struct sl_shape){{c->gridDimX, c->gridDimY, c->gridDimZ},
		{c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes};
	return launch(f, &shape,
		per_thread ? SL_PER_THREAD(c->hStream) : SL_PLAIN(c->hStream), params,
		extra);
}

SL_TWIN(cuLaunchKernelEx,
	(const CUlaunchConfig *config, CUfunction f, void **params, void **extra),
	(config, f, params, extra, false), (config, f, params, extra, true))

/* One after the other: each has its own device and stream. */
CUresult cuLaunchCooperativeKernelMultiDevice(
	CUDA_LAUNCH_PARAMS *list, unsigned int devices, unsigned int flags)
{
	CUresult r = CUDA_SUCCESS;

	SL_ENTER(cuLaunchCooperativeKernelMultiDevice);
	if (!list || !devices || flags & ~3u)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < devices; i++)
		if (!sl_object_is(list[i].hStream, SL_MAGIC_STREAM))
			return CUDA_ERROR_INVALID_HANDLE; /* the default ones are refused */
	for (unsigned i = 0; i < devices && r == CUDA_SUCCESS; i++) {
		const CUDA_LAUNCH_PARAMS *p = &list[i];
		struct sl_shape shape = {{p->gridDimX, p->gridDimY, p->gridDimZ},
			{p->blockDimX, p->blockDimY, p->blockDimZ}, p->sharedMemBytes};

		r = launch(p->function, &shape, p->hStream, p->kernelParams, NULL);
	}
	return r;
}

/* Functions ----------------------------------------------------------------------------------- */

static CUresult get_attribute(int *value, CUfunction_attribute attrib, CUfunction f)
{
	CHECK_OUT(value);
	if (!sl_object_is(f, SL_MAGIC_FUNC))
		return CUDA_ERROR_INVALID_HANDLE;
	switch (attrib) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = (int)f->info.max_threads;
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = (int)f->info.registers; break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 80; break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*value = f->max_dynamic_shared_bytes
				 ? f->max_dynamic_shared_bytes
				 : (int)(SHARED_MAX - f->info.shared_bytes);
		break;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*value = f->carveout;
		break;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*value = (int)f->info.shared_bytes;
		break;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = (int)f->info.const_bytes; break;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = (int)f->info.local_bytes; break;
	case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = 0; break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static CUresult set_attribute(CUfunction f, CUfunction_attribute attrib, int value)
{
	if (!sl_object_is(f, SL_MAGIC_FUNC))
		return CUDA_ERROR_INVALID_HANDLE;
	if (attrib == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
		if (value < 0 || value > (int)(SHARED_OPT_IN_MAX - f->info.shared_bytes))
			return CUDA_ERROR_INVALID_VALUE;
		f->max_dynamic_shared_bytes = value;
		return CUDA_SUCCESS;
	}
	if (attrib != CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT || value < -1 ||
		value > 100)
		return CUDA_ERROR_INVALID_VALUE;
	f->carveout = value;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attrib, CUfunction f)
{
	SL_ENTER(cuFuncGetAttribute);
	return get_attribute(value, attrib, f);
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attrib, int value)
{
	SL_ENTER(cuFuncSetAttribute);
	return set_attribute(f, attrib, value);
}

CUresult cuKernelGetAttribute(
	int *value, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
	SL_ENTER(cuKernelGetAttribute);
	CHECK_DEVICE(dev);
	return get_attribute(value, attrib, (CUfunction)kernel);
}

CUresult cuKernelSetAttribute(
	CUfunction_attribute attrib, int value, CUkernel kernel, CUdevice dev)
{
	SL_ENTER(cuKernelSetAttribute);
	CHECK_DEVICE(dev);
	return set_attribute((CUfunction)kernel, attrib, value);
}

CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache config)
{
	SL_ENTER(cuFuncSetCacheConfig);
	(void)config; /* a preference; there is no cache to prefer */
	return sl_object_is(f, SL_MAGIC_FUNC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
	SL_ENTER(cuKernelSetCacheConfig);
	CHECK_DEVICE(dev);
	(void)config;
	return sl_object_is(kernel, SL_MAGIC_FUNC) ? CUDA_SUCCESS
						   : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncSetSharedMemConfig(CUfunction f, CUsharedconfig config)
{
	SL_ENTER(cuFuncSetSharedMemConfig);
	if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	return sl_object_is(f, SL_MAGIC_FUNC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult param_count(CUfunction f, size_t *count)
{
	CHECK_OUT(count);
	if (!sl_object_is(f, SL_MAGIC_FUNC))
		return CUDA_ERROR_INVALID_HANDLE;
	*count = f->info.param_count;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetParamCount(CUfunction f, size_t *count)
{
	SL_ENTER(cuFuncGetParamCount);
	return param_count(f, count);
}

CUresult cuKernelGetParamCount(CUkernel kernel, size_t *count)
{
	SL_ENTER(cuKernelGetParamCount);
	return param_count((CUfunction)kernel, count);
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction f)
{
	SL_ENTER(cuFuncGetModule);
	CHECK_OUT(module);
	if (!sl_object_is(f, SL_MAGIC_FUNC))
		return CUDA_ERROR_INVALID_HANDLE;
	*module = f->module;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction f)
{
	SL_ENTER(cuFuncGetName);
	CHECK_OUT(name && f);
	if (!sl_object_is(f, SL_MAGIC_FUNC))
		return CUDA_ERROR_INVALID_HANDLE;
	*name = f->info.name;
	return CUDA_SUCCESS;
}

static CUresult param_info(CUfunction f, size_t index, size_t *offset, size_t *bytes)
{
	if (!sl_object_is(f, SL_MAGIC_FUNC))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!offset || index >= f->info.param_count)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = f->info.param_at[index];
	if (bytes)
		*bytes = f->info.param_bytes[index];
	return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *bytes)
{
	SL_ENTER(cuFuncGetParamInfo);
	return param_info(f, index, offset, bytes);
}

CUresult cuKernelGetParamInfo(
	CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
	SL_ENTER(cuKernelGetParamInfo);
	return param_info((CUfunction)kernel, index, offset, bytes);
}

CUresult cuFuncLoad(CUfunction f)
{
	SL_ENTER(cuFuncLoad);
	return sl_object_is(f, SL_MAGIC_FUNC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction f)
{
	SL_ENTER(cuFuncIsLoaded);
	CHECK_OUT(state);
	*state = CU_FUNCTION_LOADING_STATE_LOADED;
	return sl_object_is(f, SL_MAGIC_FUNC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Occupancy of one multiprocessor by threads alone --------------------------------------------- */

static CUresult blocks_of(int *blocks, CUfunction f, int block_size, size_t shared_bytes)
{
	CHECK_OUT(blocks);
	if (!sl_object_is(f, SL_MAGIC_FUNC))
		return CUDA_ERROR_INVALID_HANDLE;
	if (block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	*blocks = block_size > (int)THREADS_MAX || shared_bytes > SHARED_OPT_IN_MAX
			  ? 0
			  : (int)sl_min_u64(2048 / (unsigned)block_size, 32);
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
	int *blocks, CUfunction f, int block_size, size_t shared_bytes)
{
	SL_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
	return blocks_of(blocks, f, block_size, shared_bytes);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction f,
	int block_size, size_t shared_bytes, unsigned int flags)
{
	SL_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
	return flags > 1 ? CUDA_ERROR_INVALID_VALUE
			 : blocks_of(blocks, f, block_size, shared_bytes);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *min_grid, int *block_size, CUfunction f,
	CUoccupancyB2DSize shared_of_block, size_t shared_bytes, int limit)
{
	SL_ENTER(cuOccupancyMaxPotentialBlockSize);
	(void)shared_of_block;
	(void)shared_bytes;
	CHECK_OUT(min_grid && block_size);
	if (!sl_object_is(f, SL_MAGIC_FUNC))
		return CUDA_ERROR_INVALID_HANDLE;
	*block_size = limit > 0 && limit < (int)THREADS_MAX ? limit : (int)THREADS_MAX;
	*min_grid = 2048 / *block_size * SL_DRV_SMS;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *min_grid, int *block_size,
	CUfunction f, CUoccupancyB2DSize shared_of_block, size_t shared_bytes, int limit,
	unsigned int flags)
{
	SL_ENTER(cuOccupancyMaxPotentialBlockSizeWithFlags);
	return flags > 1 ? CUDA_ERROR_INVALID_VALUE
			 : cuOccupancyMaxPotentialBlockSize(min_grid, block_size, f,
				   shared_of_block, shared_bytes, limit);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(
	size_t *bytes, CUfunction f, int blocks, int block_size)
{
	SL_ENTER(cuOccupancyAvailableDynamicSMemPerBlock);
	CHECK_OUT(bytes);
	if (!sl_object_is(f, SL_MAGIC_FUNC))
		return CUDA_ERROR_INVALID_HANDLE;
	if (blocks <= 0 || block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = sl_min_u64(SHARED_OPT_IN_MAX / (unsigned)blocks, SHARED_OPT_IN_MAX);
	return CUDA_SUCCESS;
}

/* Clusters came with later GPUs than the modelled one. */
static CUresult no_clusters(int *out, CUfunction f, const CUlaunchConfig *config)
{
	CHECK_OUT(out && config);
	if (!sl_object_is(f, SL_MAGIC_FUNC))
		return CUDA_ERROR_INVALID_HANDLE;
	*out = 0;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuOccupancyMaxActiveClusters(
	int *clusters, CUfunction f, const CUlaunchConfig *config)
{
	SL_ENTER(cuOccupancyMaxActiveClusters);
	return no_clusters(clusters, f, config);
}

CUresult cuOccupancyMaxPotentialClusterSize(
	int *size, CUfunction f, const CUlaunchConfig *config)
{
	SL_ENTER(cuOccupancyMaxPotentialClusterSize);
	return no_clusters(size, f, config);
}
