/*
 * user - a program's resources that live as long as the graphs which use them
 *
 * The destructor of a user object runs on a thread of the driver and may call no function of the
 * driver. It runs only after the launches of the graphs that held the object are over.
 */
#include "softgpu/graph/internal.h"

#include <signal.h>
#include <stdlib.h>

struct CUuserObject_st {
	struct sl_object o;
	CUhostFn destroy;
	void *data;
	unsigned count; /* under lock */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct ending {
	CUhostFn destroy;
	void *data;
	CUstream after; /* a reference; NULL: at once */
	uint64_t seq;
};

static void *end_one(void *arg)
{
	struct ending *e = arg;

	if (e->after) {
		sl_stream_wait(e->after, e->seq);
		sl_object_unref(e->after);
	}
	sl_in_callback = true;
	e->destroy(e->data);
	free(e);
	return NULL;
}

/* On a new thread; directly if none can be made. */
static void end_object(CUuserObject u, CUstream after, uint64_t seq)
{
	struct ending *e = malloc(sizeof(*e));
	sigset_t all, before;
	pthread_t thread;

	if (e) {
		*e = (struct ending){u->destroy, u->data, after, seq};
		if (after)
			sl_object_ref(after);
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		if (pthread_create(&thread, NULL, end_one, e) == 0) {
			pthread_detach(thread);
		} else {
			sl_object_unref(after);
			free(e);
			e = NULL;
		}
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (!e)
		u->destroy(u->data);
	if (sl_object_kill(u))
		sl_object_unref(u);
}

static CUresult change(CUuserObject u, int64_t by, CUstream after, uint64_t seq)
{
	bool last = false;
	CUresult r = CUDA_SUCCESS;

	if (!sl_object_is(u, SL_MAGIC_USER) || !by)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (by < 0 && (int64_t)u->count < -by)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		last = (u->count = (unsigned)((int64_t)u->count + by)) == 0;
	pthread_mutex_unlock(&lock);
	if (last)
		end_object(u, after, seq);
	return r;
}

bool sl_users_copy(CUgraph to, const struct CUgraph_st *from)
{
	if (!from->user_count)
		return true;
	to->user = malloc(from->user_count * sizeof(*to->user));
	if (!to->user)
		return false;
	for (size_t i = 0; i < from->user_count; i++) {
		to->user[i] = (struct sl_graph_user){from->user[i].object, 1};
		(void)!change(from->user[i].object, 1, NULL, 0);
	}
	to->user_count = from->user_count;
	return true;
}

void sl_users_drop(CUgraph g, CUstream after, uint64_t seq)
{
	for (size_t i = 0; i < g->user_count; i++)
		(void)!change(g->user[i].object, -(int64_t)g->user[i].count, after, seq);
	free(g->user);
	g->user = NULL;
	g->user_count = 0;
}

/* Entry points --------------------------------------------------------------------------------- */

CUresult cuUserObjectCreate(CUuserObject *object, void *data, CUhostFn destroy,
	unsigned int references, unsigned int flags)
{
	CUuserObject u;

	SL_ENTER(cuUserObjectCreate);
	if (!object || !destroy || !references || references > INT32_MAX ||
		flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	u = sl_object_new(SL_MAGIC_USER, sizeof(*u));
	if (!u)
		return CUDA_ERROR_OUT_OF_MEMORY;
	u->destroy = destroy;
	u->data = data;
	u->count = references;
	*object = u;
	return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	SL_ENTER(cuUserObjectRetain);
	return change(object, count, NULL, 0);
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	SL_ENTER(cuUserObjectRelease);
	return change(object, -(int64_t)count, NULL, 0);
}

static struct sl_graph_user *find(CUgraph g, CUuserObject u)
{
	for (size_t i = 0; i < g->user_count; i++)
		if (g->user[i].object == u)
			return &g->user[i];
	return NULL;
}

CUresult cuGraphRetainUserObject(
	CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)
{
	struct sl_graph_user *u, *more;
	CUresult r = CUDA_SUCCESS;

	SL_ENTER(cuGraphRetainUserObject);
	if (!sl_graph_ok(graph) || !sl_object_is(object, SL_MAGIC_USER) || !count ||
		flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
		return CUDA_ERROR_INVALID_VALUE;
	u = find(graph, object);
	if (!u) {
		more = realloc(graph->user, (graph->user_count + 1) * sizeof(*more));
		if (!more)
			return CUDA_ERROR_OUT_OF_MEMORY;
		graph->user = more;
		u = &more[graph->user_count++];
		*u = (struct sl_graph_user){object, 0};
	}
	/* Moved: until now the caller holds the references. */
	if (!(flags & CU_GRAPH_USER_OBJECT_MOVE))
		r = change(object, count, NULL, 0);
	u->count += count;
	return r;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	struct sl_graph_user *u;

	SL_ENTER(cuGraphReleaseUserObject);
	u = sl_graph_ok(graph) ? find(graph, object) : NULL;
	if (!u || !count || count > u->count)
		return CUDA_ERROR_INVALID_VALUE;
	u->count -= count;
	if (!u->count)
		*u = graph->user[--graph->user_count];
	return change(object, -(int64_t)count, NULL, 0);
}
