/*
 * capture - streams whose calls become a graph
 *
 * Several streams may take part in a capture by events; each has a clock of how much of every other
 * it has waited for, which is how an end finds streams that were never joined.
 *
 * A capture is spoiled by calls that could not be replayed; it must still be ended. All state here
 * is under one lock.
 */
#include "softgpu/graph_internal.h"

#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX 16

struct sl_capture {
	struct sl_link link;
	uint64_t id;
	CUstreamCaptureMode mode;
	pthread_t thread;
	bool spoiled;
	CUgraph graph;
	unsigned member_count;
	struct {
		CUstream stream;
		uint32_t count, reach[MEMBERS_MAX];
	} member[MEMBERS_MAX]; /* the first began it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sl_link captures = SL_LIST_INIT(captures);
static _Atomic unsigned capture_count; /* so that nobody else pays for the lock */
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* Rules --------------------------------------------------------------------------------------- */

CUresult sl_capture_spoil_all(CUresult answer)
{
	pthread_mutex_lock(&lock);
	sl_list_foreach (link, &captures)
		SL_LIST_ENTRY(link, struct sl_capture, link)->spoiled = true;
	pthread_mutex_unlock(&lock);
	return answer;
}

CUresult sl_capture_check_unsafe(void)
{
	CUresult r = CUDA_SUCCESS;

	if (!atomic_load(&capture_count) || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return r;
	pthread_mutex_lock(&lock);
	sl_list_foreach (link, &captures) {
		struct sl_capture *c = SL_LIST_ENTRY(link, struct sl_capture, link);
		bool own = pthread_equal(c->thread, pthread_self());

		if (c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
			continue;
		if (own || (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
				   thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) {
			c->spoiled = true;
			r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult sl_capture_check_stream(CUstream s)
{
	CUresult r = CUDA_SUCCESS;

	if (!atomic_load(&capture_count))
		return r;
	pthread_mutex_lock(&lock);
	struct sl_capture *own = atomic_load(&s->capture);
	if (own) {
		r = own->spoiled ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
				 : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		own->spoiled = true;
	} else if (s->is_legacy) {
		/* It would wait for a blocking stream whose work only exists on paper. */
		sl_list_foreach (link, &captures) {
			struct sl_capture *c =
				SL_LIST_ENTRY(link, struct sl_capture, link);

			for (unsigned i = 0; i < c->member_count; i++)
				if (c->member[i].stream->ctx == s->ctx &&
					!(c->member[i].stream->flags &
						CU_STREAM_NON_BLOCKING)) {
					c->spoiled = true;
					r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
				}
		}
	}
	pthread_mutex_unlock(&lock);
	return r;
}

bool sl_capture_take(CUstream s, struct sl_op *op, CUresult *result)
{
	struct sl_capture *c;
	bool taken;

	if (!atomic_load(&s->capture))
		return false;
	pthread_mutex_lock(&lock);
	c = atomic_load(&s->capture);
	taken = c;
	if (c) {
		*result = CUDA_SUCCESS;
		if (c->spoiled)
			*result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		else if (!sl_graph_add(&c->graph->list, op))
			*result = CUDA_ERROR_OUT_OF_MEMORY;
		else
			c->member[s->capture_member].reach[s->capture_member] =
				++c->member[s->capture_member].count;
		if (*result != CUDA_SUCCESS)
			sl_op_free(op);
	}
	pthread_mutex_unlock(&lock);
	return taken;
}

/* The event then stands for what the stream's part of the capture has reached. */
bool sl_capture_event(CUstream s, CUevent e, CUresult *result)
{
	struct sl_capture *c;

	if (!atomic_load(&s->capture))
		return false;
	pthread_mutex_lock(&lock);
	c = atomic_load(&s->capture);
	if (c) {
		*result =
			c->spoiled ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
		e->capture_id = c->id;
		memcpy(e->reach, c->member[s->capture_member].reach, sizeof(e->reach));
	}
	pthread_mutex_unlock(&lock);
	return c;
}

static struct sl_capture *find(uint64_t id)
{
	sl_list_foreach (link, &captures) {
		struct sl_capture *c = SL_LIST_ENTRY(link, struct sl_capture, link);

		if (c->id == id)
			return c;
	}
	return NULL;
}

static bool join(struct sl_capture *c, CUstream s)
{
	if (c->member_count == MEMBERS_MAX)
		return false;
	s->capture_member = c->member_count;
	memset(&c->member[c->member_count], 0, sizeof(c->member[0]));
	c->member[c->member_count++].stream = s;
	sl_object_ref(s);
	atomic_store(&s->capture, c);
	return true;
}

/* Under the lock: a wait in which the event, the stream, or both belong to a capture. */
static CUresult wait_locked(CUstream s, CUevent e, struct sl_capture *of_event)
{
	struct sl_capture *c = atomic_load(&s->capture);

	if (!of_event) {
		if (!e->capture_id)
			c->spoiled = true; /* waits for real work from within a capture */
		return e->capture_id ? CUDA_ERROR_CAPTURED_EVENT
				     : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	if (of_event->spoiled)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (c && c != of_event) {
		c->spoiled = of_event->spoiled = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	if (!c && s->is_legacy) {
		of_event->spoiled = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	if (!c && !join(of_event, s))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < MEMBERS_MAX; i++) {
		uint32_t *reach = &of_event->member[s->capture_member].reach[i];

		if (e->reach[i] > *reach)
			*reach = e->reach[i];
	}
	return CUDA_SUCCESS;
}

bool sl_capture_wait(CUstream s, CUevent e, CUresult *result)
{
	bool concerns;

	if (!atomic_load(&capture_count))
		return false;
	pthread_mutex_lock(&e->lock);
	pthread_mutex_lock(&lock);
	struct sl_capture *of_event = e->capture_id ? find(e->capture_id) : NULL;
	concerns = atomic_load(&s->capture) || e->capture_id;
	/* An event never recorded, or long complete, is no dependency. */
	if (concerns && !e->capture_id && !e->last.stream)
		*result = CUDA_SUCCESS;
	else if (concerns && e->capture_id && !of_event && !atomic_load(&s->capture))
		*result = CUDA_ERROR_CAPTURED_EVENT;
	else if (concerns)
		*result = wait_locked(s, e, of_event);
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&e->lock);
	return concerns;
}

/* A destroyed stream spoils its capture, which cannot be ended any more by it. */
void sl_capture_forget(CUstream s)
{
	pthread_mutex_lock(&lock);
	struct sl_capture *c = atomic_load(&s->capture);
	if (c)
		c->spoiled = true;
	pthread_mutex_unlock(&lock);
}

/* Entry points: capture ----------------------------------------------------------------------- */

static CUresult do_cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
	CUstream s = sl_stream_of(handle, false);
	CUresult r = CUDA_SUCCESS;
	struct sl_capture *c;

	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->is_legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	c = calloc(1, sizeof(*c));
	CUgraph g = sl_graph_new();
	if (!c || !g) {
		free(c);
		sl_object_unref(g);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	c->id = sl_drv_next_id();
	c->mode = mode;
	c->thread = pthread_self();
	c->graph = g;
	pthread_mutex_lock(&lock);
	if (atomic_load(&s->capture))
		r = CUDA_ERROR_ILLEGAL_STATE;
	if (r == CUDA_SUCCESS) {
		join(c, s);
		sl_list_push_tail(&captures, &c->link);
		atomic_fetch_add(&capture_count, 1);
	}
	pthread_mutex_unlock(&lock);
	if (r != CUDA_SUCCESS) {
		sl_object_kill(g);
		sl_object_unref(g);
		free(c);
	}
	return r;
}

static bool all_joined(const struct sl_capture *c)
{
	for (unsigned i = 1; i < c->member_count; i++)
		if (c->member[0].reach[i] < c->member[i].count)
			return false;
	return true;
}

/* Takes the capture apart; the graph is the caller's. Under the lock. */
static void take_apart(struct sl_capture *c)
{
	for (unsigned i = 0; i < c->member_count; i++) {
		atomic_store(&c->member[i].stream->capture, NULL);
		sl_object_unref(c->member[i].stream);
	}
	sl_list_unlink(&c->link);
	atomic_fetch_sub(&capture_count, 1);
	free(c);
}

static CUresult do_cuStreamEndCapture(CUstream handle, CUgraph *out)
{
	CUstream s = sl_stream_of(handle, false);
	CUresult r = CUDA_SUCCESS;
	CUgraph g = NULL;

	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	CHECK_OUT(out);
	*out = NULL;
	pthread_mutex_lock(&lock);
	struct sl_capture *c = atomic_load(&s->capture);
	if (!c)
		r = CUDA_ERROR_ILLEGAL_STATE;
	else if (s->capture_member != 0)
		r = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	else if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
		 !pthread_equal(c->thread, pthread_self()))
		r = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	else {
		if (c->spoiled)
			r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		else if (!all_joined(c))
			r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
		g = c->graph;
		take_apart(c);
	}
	pthread_mutex_unlock(&lock);
	if (r == CUDA_SUCCESS)
		*out = g;
	else
		sl_graph_drop(g);
	return r;
}

struct info {
	CUstreamCaptureStatus status;
	cuuint64_t id;
	CUgraph graph;
};

static CUresult info_of(CUstream handle, struct info *out)
{
	CUstream s = sl_stream_of(handle, false);

	*out = (struct info){0};
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	struct sl_capture *c = atomic_load(&s->capture);
	if (c) {
		out->status = c->spoiled ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
		out->id = c->id;
		out->graph = c->graph;
	}
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
	struct info info;
	CUresult r;

	CHECK_OUT(status);
	r = info_of(handle, &info);
	/* The legacy stream cannot say while a blocking stream captures. */
	if (r == CUDA_SUCCESS && sl_stream_of(handle, false)->is_legacy)
		r = sl_capture_check_stream(sl_stream_of(handle, false));
	if (r == CUDA_SUCCESS)
		*status = info.status;
	return r;
}

static CUresult do_cuStreamGetCaptureInfo_v2(CUstream handle,
	CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
	const CUgraphNode **dependencies, size_t *count)
{
	struct info info;
	CUresult r;

	CHECK_OUT(status);
	r = info_of(handle, &info);
	if (r != CUDA_SUCCESS)
		return r;
	*status = info.status;
	if (id)
		*id = info.id;
	if (graph)
		*graph = info.graph;
	/* Dependencies are kept as clocks, not as nodes. */
	if (dependencies)
		*dependencies = NULL;
	if (count)
		*count = 0;
	return r;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode old = thread_mode;

	SL_ENTER(cuThreadExchangeStreamCaptureMode);
	if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}

#define CAPTURE_TWIN(name, params, ...)                          \
	SL_TWIN(name, params, (SL_PLAIN(stream), ##__VA_ARGS__), \
		(SL_PER_THREAD(stream), ##__VA_ARGS__))
CAPTURE_TWIN(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), mode)
CAPTURE_TWIN(cuStreamEndCapture, (CUstream stream, CUgraph *graph), graph)
CAPTURE_TWIN(
	cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status), status)
CAPTURE_TWIN(cuStreamGetCaptureInfo_v2,
	(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
		const CUgraphNode **dependencies, size_t *count),
	status, id, graph, dependencies, count)

#define do_cuStreamBeginCapture do_cuStreamBeginCapture_v2
CAPTURE_TWIN(cuStreamBeginCapture, (CUstream stream), CU_STREAM_CAPTURE_MODE_GLOBAL)
#define do_cuStreamGetCaptureInfo do_cuStreamGetCaptureInfo_v2
CAPTURE_TWIN(cuStreamGetCaptureInfo,
	(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id), status, id,
	NULL, NULL, NULL)
