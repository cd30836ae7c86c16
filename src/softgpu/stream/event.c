/*
 * event - points in streams
 *
 * A record is a stream and a number (stream.c); waiting for an event is waiting for that number.
 * Only to record the time, an operation is put into the stream. `lock` is held over a whole record,
 * so that two threads that record one event cannot mix; the worker never takes it.
 */
#include "softgpu/driver/api.h"
#include "softgpu/memory/pool.h"

#include <stdlib.h>

CUevent sl_event_new(unsigned flags)
{
	CUevent e = sl_object_new(SL_MAGIC_EVENT, sizeof(*e));

	if (!e)
		return NULL;
	pthread_mutex_init(&e->lock, NULL);
	e->ctx = sl_ctx_current();
	e->flags = flags;
	return e;
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
	CUresult r = CUDA_SUCCESS;
	CUevent e;

	SL_ENTER(cuEventCreate);
	CHECK_OUT(out);
	if (flags & ~7u ||
		((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	e = sl_event_new(flags);
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (flags & CU_EVENT_INTERPROCESS)
		r = sl_shared_new(e);
	if (r == CUDA_SUCCESS) {
		*out = e;
	} else {
		sl_object_kill(e);
		sl_object_unref(e);
	}
	return r;
}

void sl_event_reached(CUevent e, uint64_t record)
{
	uint64_t now = sl_drv_now_ns();

	pthread_mutex_lock(&sl_drv.lock);
	if (e->record == record)
		e->time_ns = now;
	pthread_mutex_unlock(&sl_drv.lock);
}

/* Under e->lock. */
static CUresult record_locked(CUevent e, CUstream s)
{
	struct sl_op *op = sl_op_new(SL_OP_EVENT);
	struct sl_shared_point point;
	uint64_t seq = 0;
	CUresult r;

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sl_drv.lock);
	op->event.record = ++e->record;
	e->time_ns = 0;
	pthread_mutex_unlock(&sl_drv.lock);
	op->event.event = e;
	op->event.shared = sl_shared_record(e);
	sl_object_ref(e);
	e->capture_id = 0;
	e->cover_count = 0;
	sl_object_ref(s);
	point = op->event.shared;
	r = sl_stream_submit(s, op, &seq);
	if (r != CUDA_SUCCESS) {
		sl_shared_reached(&point);
		sl_object_unref(s);
		return r;
	}
	sl_object_unref(e->last.stream);
	e->last = (struct sl_wait_for){s, seq};
	return r;
}

CUresult sl_event_record(CUevent e, CUstream s)
{
	CUresult r;

	if (!sl_object_is(e, SL_MAGIC_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&e->lock);
	r = record_locked(e, s);
	pthread_mutex_unlock(&e->lock);
	return r;
}

/* A green context's streams also accept events of its primary context. */
static bool may_record(const struct CUctx_st *event, const struct CUctx_st *stream)
{
	return event == stream ||
	       (stream->green && event->is_primary && event->device == stream->device);
}

static CUresult do_record(CUevent e, CUstream handle, unsigned flags)
{
	CUstream s = sl_stream_of(handle, false);
	CUresult r;

	if (!s || !sl_object_is(e, SL_MAGIC_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!may_record(e->ctx, s->ctx))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&e->lock);
	if (!sl_capture_event(s, e, flags & CU_EVENT_RECORD_EXTERNAL, &r)) {
		r = sl_capture_check_stream(s);
		if (r == CUDA_SUCCESS)
			r = record_locked(e, s);
	}
	pthread_mutex_unlock(&e->lock);
	return r;
}

#define do_cuEventRecord          do_record
#define do_cuEventRecordWithFlags do_record
SL_TWIN(cuEventRecord, (CUevent event, CUstream stream), (event, SL_PLAIN(stream), 0),
	(event, SL_PER_THREAD(stream), 0))
SL_TWIN(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags),
	(event, SL_PLAIN(stream), flags), (event, SL_PER_THREAD(stream), flags))

bool sl_event_target(CUevent e, struct sl_wait_for *out)
{
	bool pending;

	pthread_mutex_lock(&e->lock);
	*out = e->last;
	pending = out->stream && !sl_stream_done(out->stream, out->seq);
	if (pending)
		sl_object_ref(out->stream);
	pthread_mutex_unlock(&e->lock);
	return pending;
}

static bool is_captured(CUevent e)
{
	bool captured;

	pthread_mutex_lock(&e->lock);
	captured = e->capture_id != 0;
	pthread_mutex_unlock(&e->lock);
	return captured;
}

CUresult cuEventQuery(CUevent e)
{
	struct sl_shared_point p;
	struct sl_wait_for w;

	SL_ENTER(cuEventQuery);
	if (!sl_object_is(e, SL_MAGIC_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (is_captured(e))
		return sl_capture_spoil_all(CUDA_ERROR_CAPTURED_EVENT);
	if (sl_shared_pending(e, &p))
		return CUDA_ERROR_NOT_READY;
	if (p.words || !sl_event_target(e, &w))
		return sl_ctx_error(e->ctx);
	sl_object_unref(w.stream);
	return CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent e)
{
	struct sl_shared_point p;
	struct sl_wait_for w;

	SL_ENTER(cuEventSynchronize);
	if (!sl_object_is(e, SL_MAGIC_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (is_captured(e))
		return sl_capture_spoil_all(CUDA_ERROR_CAPTURED_EVENT);
	if (sl_shared_pending(e, &p)) {
		sl_shared_wait(&p, e->ctx);
	} else if (sl_event_target(e, &w)) {
		sl_stream_wait(w.stream, w.seq);
		sl_object_unref(w.stream);
	}
	sl_pool_synced();
	return sl_ctx_error(e->ctx);
}

/* The time at which it was reached: a CUresult as from cuEventElapsedTime. */
static CUresult time_of(CUevent e, uint64_t *ns)
{
	struct sl_wait_for w;

	if (!sl_object_is(e, SL_MAGIC_EVENT) || e->flags & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	if (is_captured(e))
		return CUDA_ERROR_INVALID_HANDLE;
	if (sl_event_target(e, &w)) {
		sl_object_unref(w.stream);
		return CUDA_ERROR_NOT_READY;
	}
	if (!w.stream)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sl_drv.lock);
	*ns = e->time_ns;
	pthread_mutex_unlock(&sl_drv.lock);
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	uint64_t from = 0, to = 0;
	CUresult r, r2;

	SL_ENTER(cuEventElapsedTime);
	CHECK_OUT(ms);
	r = time_of(start, &from);
	r2 = time_of(end, &to);
	if (r != CUDA_SUCCESS && r != CUDA_ERROR_NOT_READY)
		return r;
	if (r2 != CUDA_SUCCESS)
		return r2;
	if (r != CUDA_SUCCESS)
		return r;
	*ms = (float)((double)(int64_t)(to - from) / 1e6);
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	SL_ENTER(cuEventElapsedTime_v2);
	return cuEventElapsedTime(ms, start, end);
}

CUresult cuEventDestroy_v2(CUevent e)
{
	SL_ENTER(cuEventDestroy_v2);
	if (!sl_object_is(e, SL_MAGIC_EVENT) || !sl_object_kill(e))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&e->lock);
	sl_object_unref(e->last.stream);
	e->last.stream = NULL;
	sl_shared_close(e);
	free(e->covers);
	e->covers = NULL;
	e->cover_count = 0;
	pthread_mutex_unlock(&e->lock);
	sl_object_unref(e); /* a queued record keeps it until it is reached */
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent e)
{
	SL_ENTER(cuEventDestroy);
	return cuEventDestroy_v2(e);
}
