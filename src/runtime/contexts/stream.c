/*
 * stream - see stream.h
 *
 * Two threads may mark one stream at the same time. The order of their events in the list is then
 * not known to be the stream's. So a mark counts as reached when its event and all older ones are
 * over, and each event knows which marks were certainly made before it.
 */
#include "runtime/contexts/stream.h"
#include "runtime/contexts/books.h"
#include "runtime/contexts/capture.h"
#include "runtime/process/futex.h"
#include "runtime/real/real.h"

#include "base/clock.h"

#include <stdlib.h>

/* A stream with so many events under way is looked at before one more is made. */
#define EVENTS_MANY 64
/* Marks that threads make at the same time in one stream, at most, for others to wait for them. */
#define TOGETHER_MAX 8
#define BUCKETS      64
/* The driver answers at once; a thread that jumped out of a signal handler never leaves. */
#define ASKED_NS (1 * SL_S)

struct event {
	struct sl_link link; /* of a stream, or of spares */
	CUevent handle;
	CUcontext ctx;
	uint64_t mark;
	uint64_t after; /* marks up to this one were made before */
	bool dying;     /* its context is being destroyed */
};

static struct sl_link buckets[BUCKETS];
static struct sl_link gone = SL_LIST_INIT(gone); /* found by no handle */
static struct sl_link spares = SL_LIST_INIT(spares);
static bool ready;
static uint64_t rounds;
static uint32_t holds; /* calls under way that may end a context */

/* --- finding ---------------------------------------------------------------------------------- */

/* Threads are numbered, since the C library gives a new thread the handle of an ended one. */
static uint64_t thread_number(void)
{
	static __thread uint64_t own __attribute__((tls_model("initial-exec")));
	static uint64_t last;

	if (!own)
		own = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	return own;
}

static struct sl_link *bucket_of(CUstream handle)
{
	uint64_t key = (uint64_t)(uintptr_t)handle;

	return &buckets[(key >> 4 ^ key >> 10 ^ key) % BUCKETS];
}

static void make_ready(void)
{
	for (int i = 0; i < BUCKETS && !ready; i++)
		sl_list_init(&buckets[i]);
	ready = true;
}

/* Under the lock. ctx NULL: a stream that the program created. */
static struct sl_stream *find(CUstream handle, uint64_t thread, CUcontext ctx)
{
	make_ready();
	sl_list_foreach (link, bucket_of(handle)) {
		struct sl_stream *s = SL_LIST_ENTRY(link, struct sl_stream, link);

		if (s->handle == handle && s->thread == thread && (!ctx || s->ctx == ctx))
			return s;
	}
	return NULL;
}

static bool is_over(const struct sl_stream *stream)
{
	return stream->users == 0 && stream->inside == 0 && stream->event_count == 0 &&
	       !stream->dying;
}

static void free_if_over(struct sl_stream *stream)
{
	if (!stream->gone || !is_over(stream))
		return;
	sl_list_unlink(&stream->link);
	free(stream);
}

/* Own streams of threads end unseen, with their threads. */
static void drop_idle_threads(void)
{
	sl_list_foreach_safe (link, bucket_of(CU_STREAM_PER_THREAD)) {
		struct sl_stream *s = SL_LIST_ENTRY(link, struct sl_stream, link);

		if (!s->thread || !is_over(s))
			continue;
		sl_list_unlink(link);
		free(s);
	}
}

static CUresult make(
	CUstream handle, uint64_t thread, CUcontext ctx, struct sl_stream **out)
{
	struct sl_stream *made = calloc(1, sizeof(*made)), *other;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->handle = handle;
	made->thread = thread;
	made->ctx = ctx;
	sl_list_init(&made->events);
	sl_books_lock();
	other = find(handle, thread, ctx);
	if (other) {
		free(made);
		made = other;
	} else {
		if (thread)
			drop_idle_threads();
		sl_list_push_head(bucket_of(handle), &made->link);
	}
	made->users++;
	sl_books_unlock();
	*out = made;
	return CUDA_SUCCESS;
}

CUresult sl_stream_enter(CUstream stream, bool per_thread, struct sl_stream **out)
{
	CUstream handle = stream       ? stream
			  : per_thread ? CU_STREAM_PER_THREAD
				       : CU_STREAM_LEGACY;
	bool is_default = handle == CU_STREAM_PER_THREAD || handle == CU_STREAM_LEGACY;
	uint64_t thread = handle == CU_STREAM_PER_THREAD ? thread_number() : 0;
	CUcontext ctx = NULL;
	CUresult r = CUDA_SUCCESS;

	if (is_default)
		r = sl_real.cuCtxGetCurrent(&ctx);
	if (r == CUDA_SUCCESS && is_default && !ctx)
		r = CUDA_ERROR_INVALID_CONTEXT;
	if (r != CUDA_SUCCESS)
		return r;
	sl_books_lock();
	*out = find(handle, thread, ctx);
	if (*out)
		(*out)->users++;
	sl_books_unlock();
	if (*out)
		return CUDA_SUCCESS;
	if (!is_default)
		r = sl_real.cuStreamGetCtx(handle, &ctx);
	return r == CUDA_SUCCESS ? make(handle, thread, ctx, out) : r;
}

void sl_stream_let_go(struct sl_stream *stream)
{
	stream->users--;
	free_if_over(stream);
}

void sl_stream_leave(struct sl_stream *stream)
{
	sl_books_lock();
	sl_stream_let_go(stream);
	sl_books_unlock();
}

/* --- marking ---------------------------------------------------------------------------------- */

/* An event for a mark of the stream, in no list; or NULL. */
static struct event *take_spare(struct sl_stream *stream, bool *many)
{
	struct event *found = NULL;

	sl_books_lock();
	sl_list_foreach (link, &spares) {
		struct event *event = SL_LIST_ENTRY(link, struct event, link);

		if (event->ctx == stream->ctx && !event->dying) {
			found = event;
			break;
		}
	}
	if (found) {
		sl_list_unlink(&found->link);
		found->after = stream->given;
	}
	*many = stream->event_count >= EVENTS_MANY;
	sl_books_unlock();
	return found;
}

static CUresult create_in(CUcontext ctx, CUevent *event)
{
	CUcontext current = NULL;
	CUresult r = sl_real.cuCtxGetCurrent(&current);
	bool push = r == CUDA_SUCCESS && current != ctx;

	if (push)
		r = sl_real.cuCtxPushCurrent_v2(ctx);
	if (r != CUDA_SUCCESS)
		return r;
	r = sl_real.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
	if (push)
		(void)sl_real.cuCtxPopCurrent_v2(&current);
	return r;
}

static CUresult new_event(CUcontext ctx, struct event **out)
{
	struct event *event = calloc(1, sizeof(*event));
	CUstreamCaptureMode mode;
	CUresult r;

	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->ctx = ctx;
	sl_list_init(&event->link);
	mode = sl_capture_relax();
	r = create_in(ctx, &event->handle);
	sl_capture_unrelax(mode);
	if (r == CUDA_SUCCESS)
		*out = event;
	else
		free(event);
	return r;
}

static CUresult event_for(struct sl_stream *stream, struct event **out)
{
	bool many;
	CUresult r;

	*out = take_spare(stream, &many);
	if (!*out && many) {
		sl_stream_look();
		*out = take_spare(stream, &many);
	}
	if (*out)
		return CUDA_SUCCESS;
	r = new_event(stream->ctx, out);
	if (r == CUDA_SUCCESS) {
		sl_books_lock();
		(*out)->after = stream->given;
		sl_books_unlock();
	}
	return r;
}

/* An event that could not be recorded: its context may have ended. */
static void discard(struct event *event)
{
	(void)sl_real.cuEventDestroy_v2(event->handle);
	free(event);
}

CUresult sl_stream_mark(struct sl_stream *stream, uint64_t *mark)
{
	struct event *event;
	CUresult r = event_for(stream, &event);

	if (r != CUDA_SUCCESS)
		return r;
	r = sl_real.cuEventRecord(event->handle, stream->handle);
	sl_books_lock();
	if (r == CUDA_SUCCESS) {
		*mark = event->mark = ++stream->given;
		sl_list_push_tail(&stream->events, &event->link);
		stream->event_count++;
	}
	sl_books_unlock();
	if (r != CUDA_SUCCESS)
		discard(event);
	return r;
}

/* Under the lock: the events that are over only after the mark is reached, one of them with it.
 * Returns their number; 0: the mark has no event any more, or too many. */
static int events_of(struct sl_stream *stream, uint64_t mark, CUevent out[TOGETHER_MAX])
{
	uint64_t after = UINT64_MAX;
	int count = 0;

	for (struct sl_link *link = stream->events.prev; link != &stream->events;
		link = link->prev) {
		struct event *event = SL_LIST_ENTRY(link, struct event, link);

		if (event->mark > mark)
			continue;
		if (event->mark == mark)
			after = event->after;
		if (after == UINT64_MAX || event->mark <= after)
			break;
		if (count == TOGETHER_MAX)
			return 0;
		out[count++] = event->handle;
	}
	return count;
}

bool sl_stream_wait(struct sl_stream *waiter, struct sl_stream *stream, uint64_t mark)
{
	CUevent events[TOGETHER_MAX];
	bool waits;
	int count;

	sl_books_lock();
	waits = sl_stream_has_reached(stream, mark);
	count = waits || stream->dying ? 0 : events_of(stream, mark, events);
	stream->inside++;
	sl_books_unlock();
	/* An event that was recorded again meanwhile only makes the wait longer. */
	for (int i = 0; i < count; i++) {
		waits = sl_real.cuStreamWaitEvent(waiter->handle, events[i], 0) ==
			CUDA_SUCCESS;
		if (!waits)
			break;
	}
	sl_books_lock();
	stream->inside--;
	sl_books_unlock();
	return waits;
}

/* --- looking ---------------------------------------------------------------------------------- */

/* Under the lock: the next stream with marks under way that this round has not seen. */
static struct sl_stream *next_in(struct sl_link *list, uint64_t round)
{
	sl_list_foreach (link, list) {
		struct sl_stream *s = SL_LIST_ENTRY(link, struct sl_stream, link);

		if (s->round < round && s->event_count && !s->dying)
			return s;
	}
	return NULL;
}

static struct sl_stream *next_of_round(uint64_t round)
{
	struct sl_stream *found = next_in(&gone, round);

	make_ready();
	for (int i = 0; i < BUCKETS && !found; i++)
		found = next_in(&buckets[i], round);
	if (found) {
		found->round = round;
		found->inside++;
	}
	return found;
}

/* Under the lock, which is released during the driver's answers. */
static void look_at(struct sl_stream *stream)
{
	while (stream->event_count && !stream->dying) {
		struct event *event =
			SL_LIST_ENTRY(stream->events.next, struct event, link);
		CUevent handle = event->handle;
		uint64_t mark = event->mark;
		bool over;

		sl_books_unlock();
		over = sl_real.cuEventQuery(handle) == CUDA_SUCCESS;
		sl_books_lock();
		/* Another thread may have taken it away, and recorded it anew. */
		if (!over || stream->events.next != &event->link || event->mark != mark)
			return;
		sl_list_unlink(&event->link);
		stream->event_count--;
		stream->reached = sl_max_u64(stream->reached, mark);
		sl_list_push_head(&spares, &event->link);
	}
}

void sl_stream_look(void)
{
	CUstreamCaptureMode mode = sl_capture_relax();
	struct sl_stream *stream;
	uint64_t round;

	sl_books_lock();
	round = ++rounds;
	while ((stream = next_of_round(round))) {
		look_at(stream);
		stream->inside--;
		free_if_over(stream);
	}
	sl_books_unlock();
	sl_capture_unrelax(mode);
}

/* --- ending ----------------------------------------------------------------------------------- */

/* Under the lock. */
static void hide(struct sl_stream *stream)
{
	stream->gone = true;
	sl_list_unlink(&stream->link);
	sl_list_push_tail(&gone, &stream->link);
}

void sl_stream_drop(CUstream handle)
{
	struct sl_stream *stream;

	if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
		return;
	sl_books_lock();
	stream = find(handle, 0, NULL);
	if (stream) {
		hide(stream);
		free_if_over(stream);
	}
	sl_books_unlock();
}

/* Under the lock. */
static bool is_asked(CUcontext ctx)
{
	sl_list_foreach (link, &gone) {
		struct sl_stream *s = SL_LIST_ENTRY(link, struct sl_stream, link);

		if (s->ctx == ctx && s->inside)
			return true;
	}
	return false;
}

static void set_dying(struct sl_link *events, CUcontext ctx)
{
	sl_list_foreach (link, events) {
		struct event *event = SL_LIST_ENTRY(link, struct event, link);

		if (event->ctx == ctx)
			event->dying = true;
	}
}

void sl_stream_hold_context(CUcontext ctx)
{
	sl_ns end_ns = sl_clock_now() + ASKED_NS;

	sl_books_lock();
	make_ready();
	holds++;
	for (int i = 0; i < BUCKETS; i++)
		sl_list_foreach_safe (link, &buckets[i]) {
			struct sl_stream *s = SL_LIST_ENTRY(link, struct sl_stream, link);

			if (s->ctx == ctx)
				hide(s);
		}
	sl_list_foreach (link, &gone) {
		struct sl_stream *s = SL_LIST_ENTRY(link, struct sl_stream, link);

		if (s->ctx == ctx)
			s->dying = true;
	}
	set_dying(&spares, ctx);
	while (is_asked(ctx) && sl_clock_now() < end_ns) {
		sl_books_unlock();
		sl_futex_pause(100 * SL_US);
		sl_books_lock();
	}
	sl_books_unlock();
}

/* The events have gone with their context. */
static void free_events(struct sl_link *events, CUcontext ctx, bool all)
{
	sl_list_foreach_safe (link, events) {
		struct event *event = SL_LIST_ENTRY(link, struct event, link);

		if (event->ctx != ctx || !(all || event->dying))
			continue;
		sl_list_unlink(link);
		free(event);
	}
}

/* No call is under way that may end a context. */
static void revive(void)
{
	sl_list_foreach_safe (link, &gone) {
		struct sl_stream *s = SL_LIST_ENTRY(link, struct sl_stream, link);

		s->dying = false;
		free_if_over(s);
	}
	sl_list_foreach (link, &spares)
		SL_LIST_ENTRY(link, struct event, link)->dying = false;
}

void sl_stream_end_context(CUcontext ctx, bool gone_now)
{
	sl_books_lock();
	sl_list_foreach_safe (link, &gone) {
		struct sl_stream *s = SL_LIST_ENTRY(link, struct sl_stream, link);

		if (!gone_now || s->ctx != ctx || !s->dying)
			continue;
		s->dying = false;
		free_events(&s->events, ctx, true);
		s->event_count = 0;
		s->reached = UINT64_MAX;
		free_if_over(s);
	}
	if (gone_now)
		free_events(&spares, ctx, false);
	if (holds)
		holds--;
	if (!holds)
		revive();
	sl_books_unlock();
}

void sl_stream_forget(void)
{
	ready = false;
	holds = 0;
	sl_list_init(&gone);
	sl_list_init(&spares);
}
