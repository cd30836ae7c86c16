/*
 * context - contexts, the stack of current ones, the primary one
 *
 * A primary context is one object per device for the process's life, usable while it is retained. A
 * reset empties it and keeps the count of retains; the next retain makes it usable again. A sticky
 * error (a bad access in a kernel) stays with the context until it is destroyed.
 */
#include "softgpu/memory/array.h"
#include "softgpu/driver/driver.h"
#include "softgpu/memory/pool.h"
#include "softgpu/memory/space.h"

#include <stdlib.h>

#define STACK_DEPTH 64

static __thread CUcontext stack[STACK_DEPTH];
static __thread unsigned depth;

#define CHECK_OUT(ptr)                                   \
	do {                                             \
		if (!(ptr))                              \
			return CUDA_ERROR_INVALID_VALUE; \
	} while (0)

CUcontext sl_ctx_current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

void sl_ctx_fail(CUcontext ctx, CUresult error)
{
	int none = CUDA_SUCCESS;

	atomic_compare_exchange_strong(&ctx->error, &none, (int)error);
}

CUresult sl_ctx_error(CUcontext ctx)
{
	if (sl_link_is_lost(ctx->device))
		sl_ctx_fail(ctx, SL_DRV_LOST);
	return (CUresult)atomic_load(&ctx->error);
}

/* Waits for all work submitted to any stream of the context so far. */
CUresult sl_ctx_sync(CUcontext ctx)
{
	struct sl_wait_for *list = NULL;
	unsigned count = 0, room = 0;

	pthread_mutex_lock(&ctx->lock);
	sl_list_foreach (link, &ctx->streams) {
		CUstream s = SL_LIST_ENTRY(link, struct CUstream_st, o.link);

		if (count == room) {
			room = room ? room * 2 : 16;
			void *more = realloc(list, room * sizeof(*list));
			if (!more)
				break;
			list = more;
		}
		pthread_mutex_lock(&s->lock);
		list[count] = (struct sl_wait_for){s, s->submitted};
		pthread_mutex_unlock(&s->lock);
		sl_object_ref(list[count++].stream);
	}
	pthread_mutex_unlock(&ctx->lock);
	for (unsigned i = 0; i < count; i++) {
		sl_stream_wait(list[i].stream, list[i].seq);
		sl_object_unref(list[i].stream);
	}
	free(list);
	sl_pool_synced();
	return sl_ctx_error(ctx);
}

CUresult sl_ctx_first_launch(CUcontext ctx)
{
	uint64_t bytes = sl_drv.hello.launch_bytes;
	CUresult r = CUDA_SUCCESS;

	if (atomic_load(&ctx->launched))
		return r;
	pthread_mutex_lock(&ctx->lock);
	if (!atomic_load(&ctx->launched)) {
		r = sl_link_hide(ctx->device, bytes);
		if (r == CUDA_SUCCESS) {
			ctx->launch_hidden_bytes = bytes;
			atomic_store(&ctx->launched, true);
		}
	}
	pthread_mutex_unlock(&ctx->lock);
	return r;
}

/* Making and unmaking ------------------------------------------------------------------------- */

static CUcontext ctx_new(CUdevice dev, unsigned flags)
{
	static const size_t limits[8] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0, 0};
	CUcontext ctx = sl_object_new(SL_MAGIC_CTX, sizeof(*ctx));

	if (!ctx)
		return NULL;
	pthread_mutex_init(&ctx->lock, NULL);
	sl_list_init(&ctx->streams);
	ctx->device = dev;
	ctx->flags = flags;
	ctx->id = sl_drv_next_id();
	for (unsigned i = 0; i < 8; i++)
		ctx->limit[i] = limits[i];
	return ctx;
}

/* A green context uses the primary one, which is charged already. */
static uint64_t context_bytes(const struct CUctx_st *ctx)
{
	return ctx->green ? 0 : sl_drv.hello.context_bytes;
}

/* Charges the context and gives it its legacy stream. */
static CUresult ctx_open(CUcontext ctx, unsigned api_version)
{
	uint64_t bytes = context_bytes(ctx);
	CUresult r = sl_link_hide(ctx->device, bytes);

	if (r != CUDA_SUCCESS)
		return r;
	r = sl_stream_new(ctx, CU_STREAM_DEFAULT, 0, &ctx->legacy);
	if (r != CUDA_SUCCESS) {
		sl_link_unhide(ctx->device, bytes);
		return r;
	}
	ctx->legacy->is_legacy = true;
	ctx->api_version = api_version;
	sl_link_context(ctx->device, 1);
	pthread_mutex_lock(&sl_drv.lock);
	sl_list_push_tail(&sl_drv.contexts, &ctx->o.link);
	pthread_mutex_unlock(&sl_drv.lock);
	atomic_store(&ctx->error, CUDA_SUCCESS);
	atomic_store(&ctx->usable, true);
	return r;
}

/* Waits for all work, then frees all that belongs to the context. The object stays. */
static void ctx_close(CUcontext ctx)
{
	sl_ctx_sync(ctx);
	if (!atomic_exchange(&ctx->usable, false))
		return;
	sl_module_drop_context(ctx);
	for (;;) {
		CUstream s = NULL;

		pthread_mutex_lock(&ctx->lock);
		sl_list_foreach (link, &ctx->streams) {
			CUstream each = SL_LIST_ENTRY(link, struct CUstream_st, o.link);

			if (sl_object_is(each, SL_MAGIC_STREAM)) {
				s = each;
				break;
			}
		}
		pthread_mutex_unlock(&ctx->lock);
		if (!s)
			break;
		sl_capture_forget(s);
		sl_stream_close(s);
	}
	sl_array_drop_context(ctx);
	sl_space_drop_context(ctx);
	sl_graph_mem_drop_device(ctx->device);
	for (unsigned i = 0; i < sl_drv.hello.gpus; i++)
		if (ctx->peer[i])
			(void)sl_space_peer(
				ctx->device, (CUdevice)i, ctx->peer[i] = false);
	sl_link_unhide(ctx->device, context_bytes(ctx) + ctx->launch_hidden_bytes);
	ctx->launch_hidden_bytes = 0;
	atomic_store(&ctx->launched, false);
	sl_link_context(ctx->device, -1);
	pthread_mutex_lock(&sl_drv.lock);
	sl_list_unlink(&ctx->o.link);
	pthread_mutex_unlock(&sl_drv.lock);
}

static CUresult create(CUcontext *out, unsigned flags, CUdevice dev, unsigned api_version)
{
	CUcontext ctx;
	CUresult r;

	CHECK_OUT(out);
	if (!sl_drv_device_ok(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK || depth == STACK_DEPTH)
		return CUDA_ERROR_INVALID_VALUE;
	ctx = ctx_new(dev, flags);
	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = ctx_open(ctx, api_version);
	if (r != CUDA_SUCCESS) {
		sl_object_kill(ctx);
		sl_object_unref(ctx);
		return r;
	}
	stack[depth++] = ctx;
	*out = ctx;
	return r;
}

CUresult sl_ctx_create(CUcontext *out, unsigned flags, CUdevice dev)
{
	return create(out, flags, dev, 3020);
}

CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	SL_ENTER(cuCtxCreate_v2);
	return create(ctx, flags, dev, 3020);
}

CUresult cuCtxCreate_v3(CUcontext *ctx, CUexecAffinityParam *params, int count,
	unsigned int flags, CUdevice dev)
{
	SL_ENTER(cuCtxCreate_v3);
	(void)params;
	return count ? CUDA_ERROR_NOT_SUPPORTED : create(ctx, flags, dev, 3020);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	SL_ENTER(cuCtxDestroy_v2);
	if (!sl_object_is(ctx, SL_MAGIC_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (ctx->is_primary || ctx->green)
		return CUDA_ERROR_INVALID_VALUE;
	if (depth && stack[depth - 1] == ctx)
		depth--;
	ctx_close(ctx);
	if (sl_object_kill(ctx))
		sl_object_unref(ctx);
	return CUDA_SUCCESS;
}

/* The primary context ------------------------------------------------------------------------- */

static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;

/* Under primary_lock. */
static CUresult primary_open(CUdevice dev, CUcontext *out)
{
	CUcontext ctx = sl_drv.primary[dev];
	CUresult r;

	if (!ctx) {
		ctx = ctx_new(dev, sl_drv.primary_flags[dev]);
		if (!ctx)
			return CUDA_ERROR_OUT_OF_MEMORY;
		ctx->is_primary = true;
		sl_drv.primary[dev] = ctx;
	}
	*out = ctx;
	if (atomic_load(&ctx->usable))
		return CUDA_SUCCESS;
	ctx->flags = sl_drv.primary_flags[dev];
	r = ctx_open(ctx, 3020);
	return r;
}

static CUresult primary_retain(CUdevice dev, CUcontext *out)
{
	CUcontext ctx;
	CUresult r;

	pthread_mutex_lock(&primary_lock);
	r = primary_open(dev, &ctx);
	if (r == CUDA_SUCCESS) {
		sl_drv.primary_count[dev]++;
		*out = ctx;
	}
	pthread_mutex_unlock(&primary_lock);
	return r;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice dev)
{
	SL_ENTER(cuDevicePrimaryCtxRetain);
	CHECK_OUT(out);
	return sl_drv_device_ok(dev) ? primary_retain(dev, out)
				     : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult primary_release(CUdevice dev)
{
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&primary_lock);
	if (!sl_drv.primary_count[dev])
		r = CUDA_ERROR_INVALID_CONTEXT;
	else if (--sl_drv.primary_count[dev] == 0)
		ctx_close(sl_drv.primary[dev]);
	pthread_mutex_unlock(&primary_lock);
	return r;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	SL_ENTER(cuDevicePrimaryCtxRelease_v2);
	return sl_drv_device_ok(dev) ? primary_release(dev) : CUDA_ERROR_INVALID_DEVICE;
}

/* The context for a part of a GPU: it needs the primary one and charges nothing more. */
CUresult sl_ctx_new_green(CUgreenCtx green, CUdevice dev, CUcontext *out)
{
	CUcontext primary, ctx;
	CUresult r = primary_retain(dev, &primary);

	if (r != CUDA_SUCCESS)
		return r;
	ctx = ctx_new(dev, 0);
	r = CUDA_ERROR_OUT_OF_MEMORY;
	if (ctx) {
		ctx->green = green;
		r = ctx_open(ctx, 3020);
	}
	if (r == CUDA_SUCCESS) {
		*out = ctx;
		return r;
	}
	if (ctx && sl_object_kill(ctx))
		sl_object_unref(ctx);
	(void)!primary_release(dev);
	return r;
}

void sl_ctx_free_green(CUcontext ctx)
{
	CUdevice dev = ctx->device;

	ctx_close(ctx);
	if (sl_object_kill(ctx))
		sl_object_unref(ctx);
	(void)!primary_release(dev);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	SL_ENTER(cuDevicePrimaryCtxReset_v2);
	if (!sl_drv_device_ok(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&primary_lock);
	if (sl_drv.primary[dev])
		ctx_close(sl_drv.primary[dev]);
	pthread_mutex_unlock(&primary_lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	SL_ENTER(cuDevicePrimaryCtxGetState);
	if (!sl_drv_device_ok(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	CHECK_OUT(flags && active);
	pthread_mutex_lock(&primary_lock);
	*flags = sl_drv.primary_flags[dev];
	*active = sl_drv.primary[dev] && atomic_load(&sl_drv.primary[dev]->usable);
	pthread_mutex_unlock(&primary_lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	SL_ENTER(cuDevicePrimaryCtxSetFlags_v2);
	if (!sl_drv_device_ok(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&primary_lock);
	sl_drv.primary_flags[dev] = flags;
	if (sl_drv.primary[dev])
		sl_drv.primary[dev]->flags = flags;
	pthread_mutex_unlock(&primary_lock);
	return CUDA_SUCCESS;
}

/* Old names of the same calls. */
CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	SL_ENTER(cuDevicePrimaryCtxRelease);
	return cuDevicePrimaryCtxRelease_v2(dev);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	SL_ENTER(cuDevicePrimaryCtxReset);
	return cuDevicePrimaryCtxReset_v2(dev);
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	SL_ENTER(cuDevicePrimaryCtxSetFlags);
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuCtxDestroy(CUcontext ctx)
{
	SL_ENTER(cuCtxDestroy);
	return cuCtxDestroy_v2(ctx);
}

/* The stack ----------------------------------------------------------------------------------- */

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	SL_ENTER(cuCtxPushCurrent_v2);
	if (!sl_object_is(ctx, SL_MAGIC_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth == STACK_DEPTH)
		return CUDA_ERROR_INVALID_VALUE;
	stack[depth++] = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
	SL_ENTER(cuCtxPopCurrent_v2);
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (ctx)
		*ctx = stack[depth];
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	SL_ENTER(cuCtxSetCurrent);
	if (ctx && !sl_object_is(ctx, SL_MAGIC_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth)
		depth--;
	if (ctx)
		stack[depth++] = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	SL_ENTER(cuCtxGetCurrent);
	CHECK_OUT(ctx);
	*ctx = sl_ctx_current();
	return CUDA_SUCCESS;
}

/* Questions and settings ---------------------------------------------------------------------- */

CUresult cuCtxGetDevice(CUdevice *dev)
{
	CUcontext ctx = sl_ctx_current();

	SL_ENTER(cuCtxGetDevice);
	CHECK_OUT(dev);
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*dev = ctx->device;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	SL_ENTER(cuCtxGetFlags);
	CHECK_OUT(flags);
	*flags = sl_ctx_current()->flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	SL_ENTER(cuCtxSetFlags);
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	sl_ctx_current()->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	SL_ENTER(cuCtxGetId);
	CHECK_OUT(id);
	if (!ctx)
		ctx = sl_ctx_current();
	if (!sl_object_is(ctx, SL_MAGIC_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	*id = ctx->id;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	SL_ENTER(cuCtxGetApiVersion);
	CHECK_OUT(version);
	if (!ctx)
		ctx = sl_ctx_current();
	if (!sl_object_is(ctx, SL_MAGIC_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	*version = ctx->api_version;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	SL_ENTER(cuCtxSynchronize);
	return sl_ctx_sync(sl_ctx_current());
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	SL_ENTER(cuCtxSetLimit);
	if ((unsigned)limit > CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	sl_ctx_current()->limit[limit] = value;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	SL_ENTER(cuCtxGetLimit);
	CHECK_OUT(value);
	if ((unsigned)limit > CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*value = sl_ctx_current()->limit[limit];
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
	SL_ENTER(cuCtxGetCacheConfig);
	CHECK_OUT(config);
	*config = sl_ctx_current()->cache;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	SL_ENTER(cuCtxSetCacheConfig);
	sl_ctx_current()->cache = config;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	SL_ENTER(cuCtxGetStreamPriorityRange);
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
	SL_ENTER(cuCtxResetPersistingL2Cache);
	return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	CUcontext ctx = sl_ctx_current();

	SL_ENTER(cuCtxEnablePeerAccess);
	if (!sl_object_is(peer, SL_MAGIC_CTX) || peer == ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (peer->device == ctx->device)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (ctx->peer[peer->device])
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	ctx->peer[peer->device] = true;
	return sl_space_peer(ctx->device, peer->device, true);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	CUcontext ctx = sl_ctx_current();

	SL_ENTER(cuCtxDisablePeerAccess);
	if (!sl_object_is(peer, SL_MAGIC_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx->peer[peer->device])
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	ctx->peer[peer->device] = false;
	return sl_space_peer(ctx->device, peer->device, false);
}
