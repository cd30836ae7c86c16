/*
 * capture - spoiling and ending captures
 *
 * Each stream in a capture has a list of nodes on which its next node depends: its last one, and
 * those it waited for. An event carries that list to other streams. A stream has joined if the
 * stream that began the capture depends, by any path, on all of its nodes.
 *
 * A call that could not be replayed spoils the capture, which must still be ended. capture_nodes.c
 * makes its nodes; capture_calls.c has the entry points.
 */
#include "softgpu/graph/capture.h"

#include <stdlib.h>

pthread_mutex_t sl_capture_lock = PTHREAD_MUTEX_INITIALIZER;
struct sl_link sl_captures = SL_LIST_INIT(sl_captures);
_Atomic unsigned sl_capture_count;
__thread CUstreamCaptureMode sl_capture_thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* Rules --------------------------------------------------------------------------------------- */

CUresult sl_capture_spoil_all(CUresult answer)
{
	pthread_mutex_lock(&sl_capture_lock);
	sl_list_foreach (link, &sl_captures)
		SL_LIST_ENTRY(link, struct sl_capture, link)->spoiled = true;
	pthread_mutex_unlock(&sl_capture_lock);
	return answer;
}

CUresult sl_capture_check_unsafe(void)
{
	CUresult r = CUDA_SUCCESS;

	if (!atomic_load(&sl_capture_count) ||
		sl_capture_thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return r;
	pthread_mutex_lock(&sl_capture_lock);
	sl_list_foreach (link, &sl_captures) {
		struct sl_capture *c = SL_LIST_ENTRY(link, struct sl_capture, link);
		bool own = pthread_equal(c->thread, pthread_self());

		if (c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
			continue;
		if (own || (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
				   sl_capture_thread_mode ==
					   CU_STREAM_CAPTURE_MODE_GLOBAL)) {
			c->spoiled = true;
			r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	pthread_mutex_unlock(&sl_capture_lock);
	return r;
}

struct sl_capture_member *sl_capture_first(const struct sl_capture *c)
{
	return SL_LIST_ENTRY(c->members.next, struct sl_capture_member, link);
}

struct sl_capture_member *sl_capture_member_of(
	const struct sl_capture *c, const struct CUstream_st *s)
{
	sl_list_foreach (link, &c->members) {
		struct sl_capture_member *m =
			SL_LIST_ENTRY(link, struct sl_capture_member, link);

		if (m->stream == s)
			return m;
	}
	return NULL;
}

static bool has_blocking(const struct sl_capture *c, const struct CUctx_st *ctx)
{
	sl_list_foreach (link, &c->members) {
		CUstream s = SL_LIST_ENTRY(link, struct sl_capture_member, link)->stream;

		if (s->ctx == ctx && !(s->flags & CU_STREAM_NON_BLOCKING))
			return true;
	}
	return false;
}

CUresult sl_capture_check_stream(CUstream s)
{
	CUresult r = CUDA_SUCCESS;

	if (!atomic_load(&sl_capture_count))
		return r;
	pthread_mutex_lock(&sl_capture_lock);
	struct sl_capture *own = atomic_load(&s->capture);
	if (own) {
		r = own->spoiled ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
				 : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		own->spoiled = true;
	} else if (s->is_legacy) {
		/* It would wait for a blocking stream whose work is only recorded. */
		sl_list_foreach (link, &sl_captures) {
			struct sl_capture *c =
				SL_LIST_ENTRY(link, struct sl_capture, link);

			if (has_blocking(c, s->ctx)) {
				c->spoiled = true;
				r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
			}
		}
	}
	pthread_mutex_unlock(&sl_capture_lock);
	return r;
}

CUresult sl_capture_check_context(CUcontext ctx)
{
	CUresult r = CUDA_SUCCESS;

	if (!atomic_load(&sl_capture_count))
		return r;
	pthread_mutex_lock(&sl_capture_lock);
	sl_list_foreach (link, &sl_captures) {
		struct sl_capture *c = SL_LIST_ENTRY(link, struct sl_capture, link);

		sl_list_foreach (m, &c->members)
			if (SL_LIST_ENTRY(m, struct sl_capture_member, link)
					->stream->ctx == ctx) {
				c->spoiled = true;
				r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
			}
	}
	pthread_mutex_unlock(&sl_capture_lock);
	return r;
}

void sl_capture_members_free(struct sl_capture *c)
{
	while (!sl_list_is_empty(&c->members)) {
		struct sl_capture_member *m = sl_capture_first(c);

		sl_list_unlink(&m->link);
		atomic_store(&m->stream->capture, NULL);
		sl_object_unref(m->stream);
		free(m->after);
		free(m->edges);
		free(m);
	}
}

void sl_capture_take_apart(struct sl_capture *c)
{
	sl_capture_members_free(c);
	sl_list_unlink(&c->link);
	atomic_fetch_sub(&sl_capture_count, 1);
	free(c);
}

/* If the stream that began a capture is destroyed the capture is over. Another stream spoils it,
 * since it can no longer join. */
void sl_capture_forget(CUstream s)
{
	CUgraph dropped = NULL;

	pthread_mutex_lock(&sl_capture_lock);
	struct sl_capture *c = atomic_load(&s->capture);
	if (c && sl_capture_first(c)->stream == s) {
		dropped = c->into ? NULL : c->graph;
		sl_capture_take_apart(c);
	} else if (c) {
		c->spoiled = true;
	}
	pthread_mutex_unlock(&sl_capture_lock);
	sl_graph_drop(dropped);
}
