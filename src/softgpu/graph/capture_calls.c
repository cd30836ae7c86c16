/*
 * capture_calls - entry points of captures: begin, end, state, dependencies
 */
#include "softgpu/graph/capture.h"

#include <stdlib.h>

/* Does the graph have these nodes? */
static bool nodes_ok(CUgraph g, const CUgraphNode *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!sl_node_ok(list[i]) || list[i]->graph != g)
			return false;
	return true;
}

/* Enters the capture into the list with s as its first stream. Under the lock. */
static CUresult enter(
	struct sl_capture *c, CUstream s, const CUgraphNode *after, size_t count)
{
	if (atomic_load(&s->capture))
		return CUDA_ERROR_ILLEGAL_STATE;
	if (!sl_capture_join(c, s))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!sl_capture_after(sl_capture_first(c), after, count)) {
		sl_capture_members_free(c);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	sl_list_push_tail(&sl_captures, &c->link);
	atomic_fetch_add(&sl_capture_count, 1);
	return CUDA_SUCCESS;
}

static CUresult begin(CUstream handle, CUgraph into, const CUgraphNode *after,
	size_t count, CUstreamCaptureMode mode)
{
	CUstream s = sl_stream_of(handle, false);
	struct sl_capture *c;
	CUresult r;

	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->is_legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	c = calloc(1, sizeof(*c));
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	c->id = sl_drv_next_id();
	c->mode = mode;
	c->thread = pthread_self();
	c->into = into;
	c->graph = into ? into : sl_graph_new();
	sl_list_init(&c->members);
	pthread_mutex_lock(&sl_capture_lock);
	r = c->graph ? enter(c, s, after, count) : CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&sl_capture_lock);
	if (r != CUDA_SUCCESS) {
		if (!into)
			sl_graph_drop(c->graph);
		free(c);
	}
	return r;
}

static CUresult do_cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
	return begin(handle, NULL, NULL, 0, mode);
}

static CUresult do_cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph,
	const CUgraphNode *after, const CUgraphEdgeData *edges, size_t count,
	CUstreamCaptureMode mode)
{
	(void)edges; /* ports of kernels that launch the next kernel early: not modelled */
	if (!sl_graph_ok(graph) || (count && !after) || !nodes_ok(graph, after, count))
		return CUDA_ERROR_INVALID_VALUE;
	return begin(handle, graph, after, count, mode);
}

/* Marks in seen, by index, the node and all on which it depends. */
static void mark(CUgraphNode n, bool *seen)
{
	if (seen[n->index])
		return;
	seen[n->index] = true;
	for (size_t i = 0; i < n->edge_count; i++)
		if (!seen[n->edge[i].from->index])
			mark(n->edge[i].from, seen);
}

/* Nodes stand behind their dependencies, so one walk from the end marks all. */
static bool all_joined(const struct sl_capture *c)
{
	const struct sl_graph_list *l = &c->graph->list;
	bool *seen = calloc(l->count + 1, sizeof(*seen)), joined = true;
	const struct sl_capture_member *first = sl_capture_first(c);

	if (!seen)
		return false;
	for (size_t i = 0; i < first->count; i++)
		seen[first->after[i]->index] = true;
	for (size_t i = l->count; i-- > 0;)
		for (size_t k = 0; seen[i] && k < l->node[i]->edge_count; k++) {
			CUgraphNode from = l->node[i]->edge[k].from;

			if (from->index < i)
				seen[from->index] = true;
			else
				mark(from, seen);
		}
	sl_list_foreach (link, &c->members) {
		struct sl_capture_member *m =
			SL_LIST_ENTRY(link, struct sl_capture_member, link);

		for (size_t i = 0; i < m->count; i++)
			joined &= seen[m->after[i]->index];
	}
	free(seen);
	return joined;
}

static CUresult do_cuStreamEndCapture(CUstream handle, CUgraph *out)
{
	CUstream s = sl_stream_of(handle, false);
	CUresult r = CUDA_SUCCESS;
	CUgraph g = NULL;
	bool into = false;

	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	CHECK_OUT(out);
	*out = NULL;
	pthread_mutex_lock(&sl_capture_lock);
	struct sl_capture *c = atomic_load(&s->capture);
	if (!c)
		r = CUDA_ERROR_ILLEGAL_STATE;
	else if (sl_capture_first(c)->stream != s)
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
		into = c->into;
		sl_capture_take_apart(c);
	}
	pthread_mutex_unlock(&sl_capture_lock);
	if (r == CUDA_SUCCESS)
		*out = g;
	else if (!into)
		sl_graph_drop(g);
	return r;
}

struct info {
	CUstreamCaptureStatus status;
	cuuint64_t id;
	CUgraph graph;
	const CUgraphNode *after; /* valid until the stream's next call */
	const CUgraphEdgeData *edges;
	size_t count;
};

/* Edges of a capture are plain. Under the lock. */
static const CUgraphEdgeData *plain_edges(struct sl_capture_member *m)
{
	free(m->edges);
	m->edges = calloc(m->count + 1, sizeof(*m->edges));
	return m->edges;
}

static CUresult info_of(CUstream handle, struct info *out)
{
	CUstream s = sl_stream_of(handle, false);

	*out = (struct info){0};
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sl_capture_lock);
	struct sl_capture *c = atomic_load(&s->capture);
	if (c) {
		struct sl_capture_member *m = sl_capture_member_of(c, s);

		out->status = c->spoiled ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
		out->id = c->id;
		out->graph = c->graph;
		out->after = m->after;
		out->count = m->count;
		out->edges = plain_edges(m);
	}
	pthread_mutex_unlock(&sl_capture_lock);
	return CUDA_SUCCESS;
}

/* The legacy stream has no answer while a blocking stream captures. */
static CUresult info_or_implicit(CUstream handle, struct info *info)
{
	CUresult r = info_of(handle, info);

	if (r == CUDA_SUCCESS && sl_stream_of(handle, false)->is_legacy)
		r = sl_capture_check_stream(sl_stream_of(handle, false));
	return r;
}

static CUresult do_cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
	struct info info;
	CUresult r;

	CHECK_OUT(status);
	r = info_or_implicit(handle, &info);
	if (r == CUDA_SUCCESS)
		*status = info.status;
	return r;
}

static CUresult do_cuStreamGetCaptureInfo_v3(CUstream handle,
	CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
	const CUgraphNode **after, const CUgraphEdgeData **edges, size_t *count)
{
	struct info info;
	CUresult r;

	CHECK_OUT(status);
	r = info_or_implicit(handle, &info);
	if (r != CUDA_SUCCESS)
		return r;
	*status = info.status;
	if (info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return r;
	if (id)
		*id = info.id;
	if (graph)
		*graph = info.graph;
	if (after)
		*after = info.after;
	if (edges)
		*edges = info.edges;
	if (count)
		*count = info.count;
	return r;
}

static CUresult do_cuStreamGetCaptureInfo_v2(CUstream handle,
	CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
	const CUgraphNode **after, size_t *count)
{
	return do_cuStreamGetCaptureInfo_v3(
		handle, status, id, graph, after, NULL, count);
}

static CUresult do_cuStreamUpdateCaptureDependencies_v2(CUstream handle,
	CUgraphNode *after, const CUgraphEdgeData *edges, size_t count, unsigned flags)
{
	CUstream s = sl_stream_of(handle, false);
	CUresult r = CUDA_SUCCESS;

	(void)edges;
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & ~(unsigned)CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count && !after))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sl_capture_lock);
	struct sl_capture *c = atomic_load(&s->capture);
	if (!c)
		r = CUDA_ERROR_ILLEGAL_STATE;
	else if (!nodes_ok(c->graph, after, count))
		r = CUDA_ERROR_INVALID_VALUE;
	else {
		struct sl_capture_member *m = sl_capture_member_of(c, s);

		if (flags & CU_STREAM_SET_CAPTURE_DEPENDENCIES)
			m->count = 0;
		if (!sl_capture_after(m, after, count))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&sl_capture_lock);
	return r;
}

static CUresult do_cuStreamUpdateCaptureDependencies(
	CUstream handle, CUgraphNode *after, size_t count, unsigned flags)
{
	return do_cuStreamUpdateCaptureDependencies_v2(handle, after, NULL, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode old = sl_capture_thread_mode;

	SL_ENTER(cuThreadExchangeStreamCaptureMode);
	if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	sl_capture_thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}

#define CAPTURE_TWIN(name, params, ...)                          \
	SL_TWIN(name, params, (SL_PLAIN(stream), ##__VA_ARGS__), \
		(SL_PER_THREAD(stream), ##__VA_ARGS__))
CAPTURE_TWIN(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), mode)
CAPTURE_TWIN(cuStreamBeginCaptureToGraph,
	(CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
		const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode),
	graph, dependencies, edges, count, mode)
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
CAPTURE_TWIN(cuStreamGetCaptureInfo_v3,
	(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
		const CUgraphNode **dependencies, const CUgraphEdgeData **edges,
		size_t *count),
	status, id, graph, dependencies, edges, count)
CAPTURE_TWIN(cuStreamUpdateCaptureDependencies,
	(CUstream stream, CUgraphNode *dependencies, size_t count, unsigned int flags),
	dependencies, count, flags)
CAPTURE_TWIN(cuStreamUpdateCaptureDependencies_v2,
	(CUstream stream, CUgraphNode *dependencies, const CUgraphEdgeData *edges,
		size_t count, unsigned int flags),
	dependencies, edges, count, flags)
