/*
 * capture_nodes - calls on capturing streams become nodes
 */
#include "softgpu/graph/capture.h"

#include <stdlib.h>
#include <string.h>

bool sl_capture_after(struct sl_capture_member *m, const CUgraphNode *list, size_t count)
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
static CUresult take_node(struct sl_capture *c, struct sl_capture_member *m,
	CUgraphNodeType type, struct sl_payload *does)
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
	n->ctx = m->stream->ctx;
	for (size_t i = 0; i < m->count && ok; i++)
		ok = sl_node_after(n, m->after[i], NULL);
	m->count = 0;
	return ok && sl_capture_after(m, &n, 1) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* As take_node for a stream: false if it does not capture, *does is the caller's then. */
static bool take(
	CUstream s, CUgraphNodeType type, struct sl_payload *does, CUresult *result)
{
	struct sl_capture *c;

	if (!atomic_load(&s->capture))
		return false;
	pthread_mutex_lock(&sl_capture_lock);
	c = atomic_load(&s->capture);
	if (c)
		*result = take_node(c, sl_capture_member_of(c, s), type, does);
	pthread_mutex_unlock(&sl_capture_lock);
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

/* The event then stands for the present point of the stream in the capture. Under e->lock. */
static CUresult cover(
	CUevent e, const struct sl_capture *c, const struct sl_capture_member *m)
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

static CUresult take_event(struct sl_capture *c, struct sl_capture_member *m,
	CUgraphNodeType type, CUevent e)
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
	pthread_mutex_lock(&sl_capture_lock);
	c = atomic_load(&s->capture);
	if (c && external)
		*result = take_event(c, sl_capture_member_of(c, s),
			CU_GRAPH_NODE_TYPE_EVENT_RECORD, e);
	else if (c)
		*result = cover(e, c, sl_capture_member_of(c, s));
	pthread_mutex_unlock(&sl_capture_lock);
	return c;
}

static struct sl_capture *find(uint64_t id)
{
	sl_list_foreach (link, &sl_captures) {
		struct sl_capture *c = SL_LIST_ENTRY(link, struct sl_capture, link);

		if (c->id == id)
			return c;
	}
	return NULL;
}

bool sl_capture_join(struct sl_capture *c, CUstream s)
{
	struct sl_capture_member *m = calloc(1, sizeof(*m));

	if (!m)
		return false;
	m->stream = s;
	sl_object_ref(s);
	sl_list_push_tail(&c->members, &m->link);
	atomic_store(&s->capture, c);
	return true;
}

/* Under the lock: a wait with an event or a stream of a capture, or both. */
static CUresult wait_locked(CUstream s, CUevent e, struct sl_capture *of_event)
{
	struct sl_capture *c = atomic_load(&s->capture);

	if (!of_event) {
		if (!e->capture_id)
			c->spoiled = true; /* it would wait for real work */
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
	if (!c && !sl_capture_join(of_event, s))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return sl_capture_after(
		       sl_capture_member_of(of_event, s), e->covers, e->cover_count)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

bool sl_capture_wait(CUstream s, CUevent e, bool external, CUresult *result)
{
	struct sl_capture *c;
	bool concerns;

	if (!atomic_load(&sl_capture_count))
		return false;
	pthread_mutex_lock(&e->lock);
	pthread_mutex_lock(&sl_capture_lock);
	struct sl_capture *of_event = e->capture_id ? find(e->capture_id) : NULL;
	c = atomic_load(&s->capture);
	concerns = c || e->capture_id;
	if (c && external)
		*result = take_event(
			c, sl_capture_member_of(c, s), CU_GRAPH_NODE_TYPE_WAIT_EVENT, e);
	/* An event that was never recorded, or is complete, is no dependency. */
	else if (concerns && !e->capture_id && !e->last.stream)
		*result = CUDA_SUCCESS;
	else if (concerns && e->capture_id && !of_event && !c)
		*result = CUDA_ERROR_CAPTURED_EVENT;
	else if (concerns)
		*result = wait_locked(s, e, of_event);
	pthread_mutex_unlock(&sl_capture_lock);
	pthread_mutex_unlock(&e->lock);
	return concerns;
}

/* Memory --------------------------------------------------------------------------------------- */

bool sl_capture_alloc(
	CUstream s, CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUresult *result)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	struct sl_payload does;

	(void)pool; /* a graph has its own pool; the program's only gives the location */
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
		/* A launch cannot free memory allocated outside. */
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
