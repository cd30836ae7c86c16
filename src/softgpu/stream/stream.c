/*
 * stream - queues with a thread each
 *
 * A stream's operations are numbered; `completed` follows `submitted`. A dependency is a stream and
 * a number, so events, the legacy stream's implicit order and synchronisation are the same kind of
 * wait. Dependencies only point to earlier submissions, so no cycle can arise.
 *
 * The worker starts with the first operation and ends when the stream is closed and empty. It
 * blocks all signals: a program's handlers run on the program's threads.
 */
#include "softgpu/driver/driver.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct sl_op *sl_op_new(enum sl_op_kind kind)
{
	struct sl_op *op = calloc(1, sizeof(*op));

	if (op) {
		op->kind = kind;
		sl_list_init(&op->link);
	}
	return op;
}

void sl_op_free(struct sl_op *op)
{
	if (!op)
		return;
	for (unsigned i = 0; i < op->wait_count; i++)
		sl_object_unref(op->wait[i].stream);
	free(op->wait);
	if (op->kind == SL_OP_COPY)
		free(op->copy.staged);
	if (op->kind == SL_OP_KERNEL) {
		sl_object_unref(op->kernel.module);
		free(op->kernel.launch);
	}
	if (op->kind == SL_OP_EVENT)
		sl_object_unref(op->event.event);
	if (op->kind == SL_OP_VALUE)
		free(op->value.list);
	if (op->kind == SL_OP_CALL && op->call &&
		atomic_fetch_sub(&op->call->refs, 1) == 1)
		op->call->drop(op->call);
	free(op);
}

CUresult sl_stream_new(CUcontext ctx, unsigned flags, int priority, CUstream *out)
{
	CUstream s = sl_object_new(SL_MAGIC_STREAM, sizeof(*s));

	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->launching, NULL);
	pthread_cond_init(&s->changed, NULL);
	sl_list_init(&s->queue);
	s->ctx = ctx;
	sl_object_ref(ctx);
	s->flags = flags;
	s->priority = priority;
	s->id = sl_drv_next_id();
	s->companion_fd = -1;
	pthread_mutex_lock(&ctx->lock);
	sl_list_push_tail(&ctx->streams, &s->o.link);
	pthread_mutex_unlock(&ctx->lock);
	*out = s;
	return CUDA_SUCCESS;
}

/* Waiting ------------------------------------------------------------------------------------- */

bool sl_stream_done(CUstream s, uint64_t seq)
{
	bool done;

	pthread_mutex_lock(&s->lock);
	done = s->completed >= seq;
	pthread_mutex_unlock(&s->lock);
	return done;
}

static void wait_for(CUstream s, uint64_t seq)
{
	pthread_mutex_lock(&s->lock);
	while (s->completed < seq)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

CUresult sl_stream_wait(CUstream s, uint64_t seq)
{
	wait_for(s, seq);
	return sl_ctx_error(s->ctx);
}

/* The worker ---------------------------------------------------------------------------------- */

static void run_one(CUstream s, struct sl_op *op)
{
	for (unsigned i = 0; i < op->wait_count; i++)
		wait_for(op->wait[i].stream, op->wait[i].seq);
	sl_op_execute(s, op);
	pthread_mutex_lock(&s->lock);
	s->completed = op->seq;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	sl_op_free(op);
}

/* A closed stream stays in its context's list until its work is done, since others must wait for
 * it. */
static void retire(CUstream s)
{
	CUcontext ctx = s->ctx;

	pthread_mutex_lock(&ctx->lock);
	sl_list_unlink(&s->o.link);
	pthread_mutex_unlock(&ctx->lock);
	sl_object_unref(s);
	sl_object_unref(ctx);
}

static void *worker(void *arg)
{
	CUstream s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (sl_list_is_empty(&s->queue) && !s->closing)
			pthread_cond_wait(&s->changed, &s->lock);
		if (sl_list_is_empty(&s->queue))
			break;
		struct sl_op *op = SL_LIST_ENTRY(s->queue.next, struct sl_op, link);
		sl_list_unlink(&op->link);
		pthread_mutex_unlock(&s->lock);
		run_one(s, op);
		pthread_mutex_lock(&s->lock);
	}
	s->has_worker = false;
	int fd = sl_steal_fd(&s->companion_fd);
	pthread_mutex_unlock(&s->lock);
	if (fd >= 0)
		close(fd);
	retire(s);
	sl_object_unref(s); /* the worker's own */
	return NULL;
}

static bool start_worker(CUstream s)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attr, worker, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return r == 0;
}

/* Submission ---------------------------------------------------------------------------------- */

bool sl_op_wait_add(struct sl_op *op, CUstream s)
{
	struct sl_wait_for *more;
	uint64_t seq;

	pthread_mutex_lock(&s->lock);
	seq = s->submitted > s->completed ? s->submitted : 0;
	pthread_mutex_unlock(&s->lock);
	if (!seq)
		return true;
	more = realloc(op->wait, (op->wait_count + 1) * sizeof(*more));
	if (!more)
		return false;
	op->wait = more;
	op->wait[op->wait_count++] = (struct sl_wait_for){s, seq};
	sl_object_ref(s);
	return true;
}

/* The op waits for all blocking streams of the context but one. Under ctx->lock. */
static bool wait_for_blocking(struct sl_op *op, CUcontext ctx, CUstream but)
{
	sl_list_foreach (link, &ctx->streams) {
		CUstream other = SL_LIST_ENTRY(link, struct CUstream_st, o.link);

		if (other != but && !(other->flags & CU_STREAM_NON_BLOCKING) &&
			!sl_op_wait_add(op, other))
			return false;
	}
	return true;
}

bool sl_op_wait_context(struct sl_op *op, CUcontext ctx)
{
	bool added;

	pthread_mutex_lock(&ctx->lock);
	added = wait_for_blocking(op, ctx, NULL);
	pthread_mutex_unlock(&ctx->lock);
	return added;
}

/* The legacy stream's order: it waits for all blocking streams, and they wait for it. Under
 * ctx->lock. */
static bool add_implicit(CUstream s, struct sl_op *op)
{
	if (s->flags & CU_STREAM_NON_BLOCKING)
		return true;
	return s->is_legacy ? wait_for_blocking(op, s->ctx, s)
			    : sl_op_wait_add(op, s->ctx->legacy);
}

/* Puts the op into the queue and wakes the worker. Under ctx->lock. */
static CUresult enqueue(CUstream s, struct sl_op *op, uint64_t *seq)
{
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&s->lock);
	if (!s->has_worker) {
		sl_object_ref(s);
		s->has_worker = start_worker(s);
		if (!s->has_worker) {
			sl_object_unref(s);
			r = CUDA_ERROR_OPERATING_SYSTEM;
		}
	}
	if (r == CUDA_SUCCESS) {
		op->seq = ++s->submitted;
		if (seq)
			*seq = op->seq;
		sl_list_push_tail(&s->queue, &op->link);
		pthread_cond_broadcast(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

static void wait_for_room(CUstream s)
{
	uint64_t room = sl_drv.hello.queue_ops;

	pthread_mutex_lock(&s->lock);
	while (s->submitted - s->completed >= room)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

CUresult sl_stream_submit(CUstream s, struct sl_op *op, uint64_t *seq)
{
	CUcontext ctx = s->ctx;
	CUresult r = sl_ctx_error(ctx);

	if (r == CUDA_SUCCESS && !atomic_load(&ctx->usable))
		r = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (r == CUDA_SUCCESS) {
		wait_for_room(s);
		pthread_mutex_lock(&ctx->lock);
		r = add_implicit(s, op) ? enqueue(s, op, seq) : CUDA_ERROR_OUT_OF_MEMORY;
		pthread_mutex_unlock(&ctx->lock);
	}
	if (r != CUDA_SUCCESS)
		sl_op_free(op);
	return r;
}

CUresult sl_stream_run(CUstream s, struct sl_op *op)
{
	uint64_t seq = 0;
	CUresult r;

	sl_object_ref(s);
	r = sl_stream_submit(s, op, &seq);
	if (r == CUDA_SUCCESS)
		r = sl_stream_wait(s, seq);
	sl_object_unref(s);
	return r;
}

void sl_stream_close(CUstream s)
{
	bool has_worker;

	if (!sl_object_kill(s))
		return;
	pthread_mutex_lock(&s->lock);
	s->closing = true; /* work goes on; the worker leaves after the last of it */
	has_worker = s->has_worker;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (!has_worker)
		retire(s);
}

/* Per-thread default streams ------------------------------------------------------------------ */

/* Holds a reference each, so a dead stream's memory cannot become a stream of another thread. */
struct own_streams {
	unsigned count;
	CUstream stream[];
};

static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

/* At the end of a thread its streams close after their work is finished. */
static void own_free(void *arg)
{
	struct own_streams *own = arg;

	for (unsigned i = 0; i < own->count; i++) {
		sl_stream_close(own->stream[i]); /* does nothing if its context is gone */
		sl_object_unref(own->stream[i]);
	}
	free(own);
}

static void own_make_key(void)
{
	pthread_key_create(&own_key, own_free);
}

static CUstream own_stream(CUcontext ctx)
{
	struct own_streams *own, *more;
	unsigned count;
	CUstream s;

	pthread_once(&own_once, own_make_key);
	own = pthread_getspecific(own_key);
	count = own ? own->count : 0;
	for (unsigned i = count; i-- > 0;) {
		s = own->stream[i];
		if (!sl_object_is(s, SL_MAGIC_STREAM)) { /* freed with its context */
			own->stream[i] = own->stream[--count];
			own->count = count;
			sl_object_unref(s);
		} else if (s->ctx == ctx) {
			return s;
		}
	}
	more = realloc(own, sizeof(*own) + (count + 1) * sizeof(CUstream));
	if (!more)
		return NULL;
	more->count = count;
	pthread_setspecific(own_key, more);
	if (sl_stream_new(ctx, CU_STREAM_DEFAULT, 0, &s) != CUDA_SUCCESS)
		return NULL;
	s->is_per_thread = true;
	sl_object_ref(s);
	more->stream[more->count++] = s;
	return s;
}

CUstream sl_stream_of(CUstream handle, bool per_thread)
{
	CUcontext ctx = sl_ctx_current();

	if (!handle)
		handle = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
	if (handle == CU_STREAM_LEGACY)
		return ctx ? ctx->legacy : NULL;
	if (handle == CU_STREAM_PER_THREAD)
		return ctx ? own_stream(ctx) : NULL;
	return sl_object_is(handle, SL_MAGIC_STREAM) ? handle : NULL;
}
