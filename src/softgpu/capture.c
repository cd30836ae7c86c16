/*
 * capture - streams whose calls become a graph
 *
 * Each stream that takes part has a list of nodes which its next node comes after: the last one it
 * made, and what it waited for. An event takes that list along to other streams. A stream was joined
 * if the stream that began the capture comes, by any way, after all that it did.
 *
 * A capture is spoiled by calls that could not be replayed; it must still be ended. All state here
 * is under one lock.
 */
#include "softgpu/graph_internal.h"

#include <stdlib.h>
#include <string.h>

struct member {
	struct sl_link link; /* in sl_capture.members; the first began it */
	CUstream stream;     /* a reference */
	size_t count;        /* of `after` */
	CUgraphNode *after;
	CUgraphEdgeData *edges; /* zeros, for those who ask; NULL: nobody did */
};

struct sl_capture {
	struct sl_link link;
	uint64_t id;
	CUstreamCaptureMode mode;
	pthread_t thread;
	bool spoiled;
	bool into; /* the graph is the program's */
	CUgraph graph;
	struct sl_link members;
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

static struct member *first_of(const struct sl_capture *c)
{
	return SL_LIST_ENTRY(c->members.next, struct member, link);
}

static struct member *member_of(const struct sl_capture *c, const struct CUstream_st *s)
{
	sl_list_foreach (link, &c->members) {
		struct member *m = SL_LIST_ENTRY(link, struct member, link);

		if (m->stream == s)
			return m;
	}
	return NULL;
}

static bool has_blocking(const struct sl_capture *c, const struct CUctx_st *ctx)
{
	sl_list_foreach (link, &c->members) {
		CUstream s = SL_LIST_ENTRY(link, struct member, link)->stream;

		if (s->ctx == ctx && !(s->flags & CU_STREAM_NON_BLOCKING))
			return true;
	}
	return false;
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

			if (has_blocking(c, s->ctx)) {
				c->spoiled = true;
				r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
			}
		}
	}
	pthread_mutex_unlock(&lock);
	return r;
}

/* Adds nodes to those that the member's next one comes after. */
static bool wait_for_nodes(struct member *m, const CUgraphNode *list, size_t count)
{
	CUgraphNode *more = realloc(m->after, (m->count + count + 1) * sizeof(*more));

	if (!more)
		return false;
	m->after = more;
	for (size_t i = 0; i < count; i++) {
		bool known = false;

		for (size_t k = 0; k < m->count && !known; k++)
			known = m->after[k] == list[i];
		if (!known)
			m->after[m->count++] = list[i];
	}
	return true;
}

/* The member's next node. Takes *does in every case. */
static CUresult take_node(struct sl_capture *c, struct member *m, CUgraphNodeType type,
	struct sl_payload *does)
{
	CUgraphNode n;
	bool ok = true;

	if (c->spoiled) {
		sl_payload_free(does);
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	n = sl_graph_add(c->graph, type, does);
	if (!n) {
		sl_payload_free(does);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (size_t i = 0; i < m->count && ok; i++)
		ok = sl_node_after(n, m->after[i], NULL);
	m->count = 0;
	return ok && wait_for_nodes(m, &n, 1) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* As take_node for a stream: false if it does not capture, *does is the caller's then. */
static bool take(
	CUstream s, CUgraphNodeType type, struct sl_payload *does, CUresult *result)
{
	struct sl_capture *c;

	if (!atomic_load(&s->capture))
		return false;
	pthread_mutex_lock(&lock);
	c = atomic_load(&s->capture);
	if (c)
		*result = take_node(c, member_of(c, s), type, does);
	pthread_mutex_unlock(&lock);
	return c;
}

bool sl_capture_take(CUstream s, struct sl_op *op, CUresult *result)
{
	struct sl_payload does = {.op = op};

	return take(s, sl_node_type_of(op), &does, result);
}

bool sl_capture_child(CUstream s, CUgraph child, CUresult *result)
{
	CUgraphNodeParams p = {
		.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = child}};
	struct sl_payload does;

	if (!atomic_load(&s->capture))
		return false;
	*result = sl_payload_make(&p, &does);
	if (*result == CUDA_SUCCESS && !take(s, p.type, &does, result)) {
		sl_payload_free(&does);
		return false;
	}
	return true;
}

/* The event then stands for what the stream's part of the capture has reached. Under e->lock. */
static CUresult cover(CUevent e, const struct sl_capture *c, const struct member *m)
{
	CUgraphNode *list = malloc((m->count + 1) * sizeof(*list));

	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (m->count)
		memcpy(list, m->after, m->count * sizeof(*list));
	free(e->covers);
	e->covers = list;
	e->cover_count = m->count;
	e->capture_id = c->id;
	return c->spoiled ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

static CUresult take_event(
	struct sl_capture *c, struct member *m, CUgraphNodeType type, CUevent e)
{
	struct sl_payload does = {.event = e};

	sl_object_ref(e);
	return take_node(c, m, type, &does);
}

bool sl_capture_event(CUstream s, CUevent e, bool external, CUresult *result)
{
	struct sl_capture *c;

	if (!atomic_load(&s->capture))
		return false;
	pthread_mutex_lock(&lock);
	c = atomic_load(&s->capture);
	if (c && external)
		*result = take_event(
			c, member_of(c, s), CU_GRAPH_NODE_TYPE_EVENT_RECORD, e);
	else if (c)
		*result = cover(e, c, member_of(c, s));
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
	struct member *m = calloc(1, sizeof(*m));

	if (!m)
		return false;
	m->stream = s;
	sl_object_ref(s);
	sl_list_push_tail(&c->members, &m->link);
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
	return wait_for_nodes(member_of(of_event, s), e->covers, e->cover_count)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

bool sl_capture_wait(CUstream s, CUevent e, bool external, CUresult *result)
{
	struct sl_capture *c;
	bool concerns;

	if (!atomic_load(&capture_count))
		return false;
	pthread_mutex_lock(&e->lock);
	pthread_mutex_lock(&lock);
	struct sl_capture *of_event = e->capture_id ? find(e->capture_id) : NULL;
	c = atomic_load(&s->capture);
	concerns = c || e->capture_id;
	if (c && external)
		*result =
			take_event(c, member_of(c, s), CU_GRAPH_NODE_TYPE_WAIT_EVENT, e);
	/* An event never recorded, or long complete, is no dependency. */
	else if (concerns && !e->capture_id && !e->last.stream)
		*result = CUDA_SUCCESS;
	else if (concerns && e->capture_id && !of_event && !c)
		*result = CUDA_ERROR_CAPTURED_EVENT;
	else if (concerns)
		*result = wait_locked(s, e, of_event);
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&e->lock);
	return concerns;
}

/* Memory ---------------------------------------------------------------------------------------- */

bool sl_capture_alloc(
	CUstream s, CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUresult *result)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	struct sl_payload does;

	(void)pool; /* a graph has a pool of its own; of the program's only the place counts */
	if (!atomic_load(&s->capture))
		return false;
	p.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	p.alloc.poolProps.location =
		(CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, s->ctx->device};
	p.alloc.bytesize = bytes;
	*result = sl_payload_make(&p, &does);
	if (*result != CUDA_SUCCESS)
		return true;
	if (!take(s, p.type, &does, result)) {
		sl_payload_free(&does);
		return false;
	}
	if (*result == CUDA_SUCCESS)
		*ptr = p.alloc.dptr;
	return true;
}

bool sl_capture_free(CUstream s, CUdeviceptr ptr, CUresult *result)
{
	struct sl_payload does = {.memory = sl_graph_mem_find(ptr)};

	if (atomic_load(&s->capture) && !does.memory) {
		/* What was allocated outside cannot be freed by a launch. */
		*result = CUDA_ERROR_INVALID_VALUE;
		return true;
	}
	if (!does.memory)
		return false;
	if (take(s, CU_GRAPH_NODE_TYPE_MEM_FREE, &does, result))
		return true;
	*result = sl_capture_check_stream(s);
	if (*result == CUDA_SUCCESS)
		*result = sl_graph_mem_submit(does.memory, s, false);
	sl_graph_mem_unref(does.memory);
	return true;
}

CUresult sl_capture_check_context(CUcontext ctx)
{
	CUresult r = CUDA_SUCCESS;

	if (!atomic_load(&capture_count))
		return r;
	pthread_mutex_lock(&lock);
	sl_list_foreach (link, &captures) {
		struct sl_capture *c = SL_LIST_ENTRY(link, struct sl_capture, link);

		sl_list_foreach (m, &c->members)
			if (SL_LIST_ENTRY(m, struct member, link)->stream->ctx == ctx) {
				c->spoiled = true;
				r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
			}
	}
	pthread_mutex_unlock(&lock);
	return r;
}

static void members_free(struct sl_capture *c)
{
	while (!sl_list_is_empty(&c->members)) {
		struct member *m = first_of(c);

		sl_list_unlink(&m->link);
		atomic_store(&m->stream->capture, NULL);
		sl_object_unref(m->stream);
		free(m->after);
		free(m->edges);
		free(m);
	}
}

/* Takes the capture apart; the graph is the caller's. Under the lock. */
static void take_apart(struct sl_capture *c)
{
	members_free(c);
	sl_list_unlink(&c->link);
	atomic_fetch_sub(&capture_count, 1);
	free(c);
}

/* With the stream that began it a capture is over; another one spoils it, as it cannot be joined. */
void sl_capture_forget(CUstream s)
{
	CUgraph dropped = NULL;

	pthread_mutex_lock(&lock);
	struct sl_capture *c = atomic_load(&s->capture);
	if (c && first_of(c)->stream == s) {
		dropped = c->into ? NULL : c->graph;
		take_apart(c);
	} else if (c) {
		c->spoiled = true;
	}
	pthread_mutex_unlock(&lock);
	sl_graph_drop(dropped);
}

/* Entry points: capture ----------------------------------------------------------------------- */

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
	if (!join(c, s))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!wait_for_nodes(first_of(c), after, count)) {
		members_free(c);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	sl_list_push_tail(&captures, &c->link);
	atomic_fetch_add(&capture_count, 1);
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
	pthread_mutex_lock(&lock);
	r = c->graph ? enter(c, s, after, count) : CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&lock);
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
	(void)edges; /* ports of kernels that launch the next one early: none here */
	if (!sl_graph_ok(graph) || (count && !after) || !nodes_ok(graph, after, count))
		return CUDA_ERROR_INVALID_VALUE;
	return begin(handle, graph, after, count, mode);
}

/* Marks in seen, by index, all that one of the nodes comes after, itself included. */
static void mark(CUgraphNode n, bool *seen)
{
	if (seen[n->index])
		return;
	seen[n->index] = true;
	for (size_t i = 0; i < n->edge_count; i++)
		if (!seen[n->edge[i].from->index])
			mark(n->edge[i].from, seen);
}

/* Nodes stand behind those they come after, so one walk from the end marks all. */
static bool all_joined(const struct sl_capture *c)
{
	const struct sl_graph_list *l = &c->graph->list;
	bool *seen = calloc(l->count + 1, sizeof(*seen)), joined = true;
	const struct member *first = first_of(c);

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
		struct member *m = SL_LIST_ENTRY(link, struct member, link);

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
	pthread_mutex_lock(&lock);
	struct sl_capture *c = atomic_load(&s->capture);
	if (!c)
		r = CUDA_ERROR_ILLEGAL_STATE;
	else if (first_of(c)->stream != s)
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
		take_apart(c);
	}
	pthread_mutex_unlock(&lock);
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
	const CUgraphNode *after; /* good until the stream's next call */
	const CUgraphEdgeData *edges;
	size_t count;
};

/* Edges of a capture say nothing of their own. Under the lock. */
static const CUgraphEdgeData *plain_edges(struct member *m)
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
	pthread_mutex_lock(&lock);
	struct sl_capture *c = atomic_load(&s->capture);
	if (c) {
		struct member *m = member_of(c, s);

		out->status = c->spoiled ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
		out->id = c->id;
		out->graph = c->graph;
		out->after = m->after;
		out->count = m->count;
		out->edges = plain_edges(m);
	}
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* The legacy stream cannot say while a blocking stream captures. */
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
	pthread_mutex_lock(&lock);
	struct sl_capture *c = atomic_load(&s->capture);
	if (!c)
		r = CUDA_ERROR_ILLEGAL_STATE;
	else if (!nodes_ok(c->graph, after, count))
		r = CUDA_ERROR_INVALID_VALUE;
	else {
		struct member *m = member_of(c, s);

		if (flags & CU_STREAM_SET_CAPTURE_DEPENDENCIES)
			m->count = 0;
		if (!wait_for_nodes(m, after, count))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

static CUresult do_cuStreamUpdateCaptureDependencies(
	CUstream handle, CUgraphNode *after, size_t count, unsigned flags)
{
	return do_cuStreamUpdateCaptureDependencies_v2(handle, after, NULL, count, flags);
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
