/*
 * queue - entry points of streams
 */
#include "softgpu/driver/api.h"
#include "softgpu/memory/pool.h"

#include <stdlib.h>
#include <string.h>

CUresult sl_api_submit(CUstream handle, struct sl_op *op)
{
	CUstream s = sl_stream_of(handle, false);
	CUresult r = CUDA_ERROR_INVALID_HANDLE;

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (s && sl_capture_take(s, op, &r))
		return r;
	if (s)
		r = sl_capture_check_stream(s);
	if (r == CUDA_SUCCESS)
		return sl_stream_submit(s, op, NULL);
	sl_op_free(op);
	return r;
}

CUresult sl_api_run(CUstream handle, struct sl_op *op)
{
	CUstream s = sl_stream_of(handle, false);
	CUresult r = s ? sl_capture_check_stream(s) : CUDA_ERROR_INVALID_HANDLE;

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (r == CUDA_SUCCESS)
		return sl_stream_run(s, op);
	sl_op_free(op);
	return r;
}

static CUresult create(CUstream *out, unsigned flags, int priority)
{
	CHECK_OUT(out);
	if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	return sl_stream_new(sl_ctx_current(), flags, priority, out);
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	SL_ENTER(cuStreamCreate);
	return create(stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	SL_ENTER(cuStreamCreateWithPriority);
	return create(stream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	SL_ENTER(cuStreamDestroy_v2);
	if (!sl_object_is(stream, SL_MAGIC_STREAM) || stream->is_legacy ||
		stream->is_per_thread)
		return CUDA_ERROR_INVALID_HANDLE;
	sl_capture_forget(stream);
	sl_stream_close(stream);
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream)
{
	SL_ENTER(cuStreamDestroy);
	return cuStreamDestroy_v2(stream);
}

static CUresult synchronize(CUstream handle)
{
	CUstream s = sl_stream_of(handle, false);
	uint64_t seq;
	CUresult r;

	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sl_capture_check_stream(s);
	if (r != CUDA_SUCCESS)
		return r;
	/* The legacy stream's order includes the blocking streams: wait by an empty operation. */
	if (s->is_legacy)
		return sl_stream_run(s, sl_op_new(SL_OP_NOP));
	sl_object_ref(s);
	pthread_mutex_lock(&s->lock);
	seq = s->submitted;
	pthread_mutex_unlock(&s->lock);
	r = sl_stream_wait(s, seq);
	sl_object_unref(s);
	return r;
}

static CUresult do_cuStreamSynchronize(CUstream handle)
{
	CUresult r = synchronize(handle);

	sl_pool_synced();
	return r;
}

static CUresult do_cuStreamQuery(CUstream handle)
{
	CUstream s = sl_stream_of(handle, false);
	CUresult r;
	bool busy;

	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sl_capture_check_stream(s);
	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&s->lock);
	busy = s->completed < s->submitted;
	pthread_mutex_unlock(&s->lock);
	r = sl_ctx_error(s->ctx);
	return r == CUDA_SUCCESS && busy ? CUDA_ERROR_NOT_READY : r;
}

CUresult sl_stream_wait_event(CUstream s, CUevent event)
{
	struct sl_shared_point p;
	struct sl_wait_for w;
	struct sl_op *op;

	if (sl_shared_pending(event, &p))
		return sl_shared_submit(s, &p);
	if (!sl_event_target(event, &w))
		return CUDA_SUCCESS;
	op = sl_op_new(SL_OP_WAIT);
	if (op && (op->wait = malloc(sizeof(*op->wait)))) {
		op->wait[0] = w;
		op->wait_count = 1;
		return sl_stream_submit(s, op, NULL);
	}
	sl_op_free(op);
	sl_object_unref(w.stream);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult do_cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags)
{
	CUstream s = sl_stream_of(handle, false);
	CUresult r;

	if (!s || !sl_object_is(event, SL_MAGIC_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (sl_capture_wait(s, event, flags & CU_EVENT_WAIT_EXTERNAL, &r))
		return r;
	r = sl_capture_check_stream(s);
	return r == CUDA_SUCCESS ? sl_stream_wait_event(s, event) : r;
}

static CUresult do_cuStreamGetFlags(CUstream handle, unsigned *flags)
{
	CUstream s = sl_stream_of(handle, false);

	CHECK_OUT(flags);
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	*flags = s->flags;
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamGetPriority(CUstream handle, int *priority)
{
	CUstream s = sl_stream_of(handle, false);

	CHECK_OUT(priority);
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	*priority = s->priority;
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamGetId(CUstream handle, unsigned long long *id)
{
	CUstream s = sl_stream_of(handle, false);

	CHECK_OUT(id);
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	*id = s->id;
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamGetCtx(CUstream handle, CUcontext *ctx)
{
	CUstream s = sl_stream_of(handle, false);

	CHECK_OUT(ctx);
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	*ctx = s->ctx;
	return CUDA_SUCCESS;
}

static CUresult do_cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *data)
{
	struct sl_op *op;

	CHECK_OUT(fn);
	op = sl_op_new(SL_OP_HOST);
	if (op) {
		op->host.fn = fn;
		op->host.data = data;
	}
	return sl_api_submit(stream, op);
}

static CUresult do_cuStreamAddCallback(CUstream stream, CUstreamCallback callback,
	void *data, unsigned flags, CUstream as_given)
{
	struct sl_op *op;
	CUresult r;

	CHECK_OUT(callback);
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	op = sl_op_new(SL_OP_CALLBACK);
	if (op) {
		op->host.callback = callback;
		op->host.data = data;
		op->host.handle = as_given;
	}
	/* Unlike a host function it cannot be captured. */
	r = sl_stream_of(stream, false)
		    ? sl_capture_check_stream(sl_stream_of(stream, false))
		    : CUDA_ERROR_INVALID_HANDLE;
	if (r == CUDA_SUCCESS)
		return sl_api_submit(stream, op);
	sl_op_free(op);
	return r;
}

#define STREAM_TWIN(name, params, ...)                           \
	SL_TWIN(name, params, (SL_PLAIN(stream), ##__VA_ARGS__), \
		(SL_PER_THREAD(stream), ##__VA_ARGS__))

STREAM_TWIN(cuStreamSynchronize, (CUstream stream))
STREAM_TWIN(cuStreamQuery, (CUstream stream))
STREAM_TWIN(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags),
	event, flags)
STREAM_TWIN(cuStreamGetFlags, (CUstream stream, unsigned int *flags), flags)
STREAM_TWIN(cuStreamGetPriority, (CUstream stream, int *priority), priority)
STREAM_TWIN(cuStreamGetId, (CUstream stream, unsigned long long *id), id)
STREAM_TWIN(cuStreamGetCtx, (CUstream stream, CUcontext *ctx), ctx)
STREAM_TWIN(cuLaunchHostFunc, (CUstream stream, CUhostFn fn, void *data), fn, data)
STREAM_TWIN(cuStreamAddCallback,
	(CUstream stream, CUstreamCallback callback, void *data, unsigned int flags),
	callback, data, flags, stream)

/* Words --------------------------------------------------------------------------------------- */

/* Bytes of the word; 0: no word; -1: unknown operation. */
static int word_bytes(CUstreamBatchMemOpType operation)
{
	switch (operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_32: return 4;
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64: return 8;
	case CU_STREAM_MEM_OP_BARRIER:
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return 0;
	default: return -1;
	}
}

CUresult sl_values_op(const CUstreamBatchMemOpParams *list, unsigned count,
	unsigned flags, struct sl_op **out)
{
	struct sl_op *op;

	if (flags || !list || !count || count > 256)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		int n = word_bytes(list[i].operation);
		CUdeviceptr at = list[i].waitValue.address;

		if (n < 0 || (n && (!at || at % (unsigned)n)))
			return CUDA_ERROR_INVALID_VALUE;
	}
	op = sl_op_new(SL_OP_VALUE);
	if (op)
		op->value.list = malloc(count * sizeof(*list));
	if (!op || !op->value.list) {
		sl_op_free(op);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memcpy(op->value.list, list, count * sizeof(*list));
	op->value.count = count;
	*out = op;
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamBatchMemOp_v2(
	CUstream stream, unsigned count, CUstreamBatchMemOpParams *list, unsigned flags)
{
	struct sl_op *op;
	CUresult r = sl_values_op(list, count, flags, &op);

	return r == CUDA_SUCCESS ? sl_api_submit(stream, op) : r;
}

static CUresult value_op(CUstream stream, CUdeviceptr address, uint64_t value,
	uint32_t bytes, unsigned flags, bool is_wait)
{
	CUstreamBatchMemOpParams p = {.waitValue = {.address = address, .flags = flags}};

	if (bytes == 8)
		p.waitValue.value64 = value;
	else
		p.waitValue.value = (cuuint32_t)value;
	p.waitValue.operation = bytes == 8 ? (is_wait ? CU_STREAM_MEM_OP_WAIT_VALUE_64
						      : CU_STREAM_MEM_OP_WRITE_VALUE_64)
					   : (is_wait ? CU_STREAM_MEM_OP_WAIT_VALUE_32
						      : CU_STREAM_MEM_OP_WRITE_VALUE_32);
	return do_cuStreamBatchMemOp_v2(stream, 1, &p, 0);
}

static CUresult do_cuStreamWriteValue32_v2(
	CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	return value_op(stream, address, value, 4, flags, false);
}

static CUresult do_cuStreamWriteValue64_v2(
	CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	return value_op(stream, address, value, 8, flags, false);
}

static CUresult do_cuStreamWaitValue32_v2(
	CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	return value_op(stream, address, value, 4, flags, true);
}

static CUresult do_cuStreamWaitValue64_v2(
	CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	return value_op(stream, address, value, 8, flags, true);
}

/* The names from before CUDA 11.7; their switch in the kernel module is on here. */
#define do_cuStreamWriteValue32 do_cuStreamWriteValue32_v2
#define do_cuStreamWriteValue64 do_cuStreamWriteValue64_v2
#define do_cuStreamWaitValue32  do_cuStreamWaitValue32_v2
#define do_cuStreamWaitValue64  do_cuStreamWaitValue64_v2
#define do_cuStreamBatchMemOp   do_cuStreamBatchMemOp_v2
#define VALUE_TWIN(name, type)                                                       \
	STREAM_TWIN(name,                                                            \
		(CUstream stream, CUdeviceptr addr, type value, unsigned int flags), \
		addr, value, flags)
#define BATCH_TWIN(name)                                                              \
	STREAM_TWIN(name,                                                             \
		(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *list, \
			unsigned int flags),                                          \
		count, list, flags)
VALUE_TWIN(cuStreamWriteValue32, cuuint32_t)
VALUE_TWIN(cuStreamWriteValue32_v2, cuuint32_t)
VALUE_TWIN(cuStreamWriteValue64, cuuint64_t)
VALUE_TWIN(cuStreamWriteValue64_v2, cuuint64_t)
VALUE_TWIN(cuStreamWaitValue32, cuuint32_t)
VALUE_TWIN(cuStreamWaitValue32_v2, cuuint32_t)
VALUE_TWIN(cuStreamWaitValue64, cuuint64_t)
VALUE_TWIN(cuStreamWaitValue64_v2, cuuint64_t)
BATCH_TWIN(cuStreamBatchMemOp)
BATCH_TWIN(cuStreamBatchMemOp_v2)
