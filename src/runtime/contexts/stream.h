/*
 * stream - how far streams have got
 *
 * Memory that was freed in a stream may be used by others once the stream has reached that free. A
 * *mark* is such a point: an event of ours behind all work submitted so far, and a number that
 * counts up per stream. Events are kept and recorded again. Marks are conservative: a mark may
 * count as reached later than it is, never earlier. Dependencies that the program made with its own
 * events are not followed.
 *
 * Records are found by handle; default streams by their context, a thread's own also by the thread.
 * A record goes with its stream, as soon as no memory refers to it. The books' lock guards all
 * fields; it is never held during a driver call.
 */
#ifndef SL_RUNTIME_CONTEXTS_STREAM_H
#define SL_RUNTIME_CONTEXTS_STREAM_H

#include "base/cuda_types.h"
#include "base/list.h"

struct sl_stream {
	struct sl_link link;
	CUstream handle; /* never NULL: CU_STREAM_LEGACY or CU_STREAM_PER_THREAD */
	uint64_t thread; /* of a thread's own stream, otherwise 0 */
	CUcontext ctx;
	uint32_t users;  /* shelves and threads that hold the pointer */
	uint32_t inside; /* threads that ask the driver about its events */
	uint64_t round;  /* the last sl_stream_look that visited it */
	bool gone;       /* no longer found by its handle */
	bool dying;      /* its context may be being destroyed */
	uint64_t given,
		reached; /* the newest mark, and the newest that is known to be reached */
	struct sl_link events; /* marks that are not known to be reached, oldest first */
	uint32_t event_count;
};

/* The record of the stream as the program names it in a call (per_thread: a _ptsz call), made if
 * needed. On success in use until sl_stream_leave. Otherwise the driver's error. No lock. */
SL_MUST_CHECK CUresult sl_stream_enter(
	CUstream stream, bool per_thread, struct sl_stream **out);
void sl_stream_leave(struct sl_stream *stream);
/* The same under the books' lock. */
void sl_stream_let_go(struct sl_stream *stream);

/* Makes a mark behind all work of the stream. The calling thread uses the stream. One driver call.
 * No lock. */
SL_MUST_CHECK CUresult sl_stream_mark(struct sl_stream *stream, uint64_t *mark);
/* Under the lock. */
static inline bool sl_stream_has_reached(const struct sl_stream *stream, uint64_t mark)
{
	return mark <= stream->reached;
}
/* Makes later work of `waiter` wait for the mark of the stream. The caller uses both. False: not
 * possible now. No lock. */
SL_MUST_CHECK bool sl_stream_wait(
	struct sl_stream *waiter, struct sl_stream *stream, uint64_t mark);
/* Asks the driver which marks have been reached since. Waits for none. No lock. */
void sl_stream_look(void);

/* The handle is about to be destroyed: a new stream may get it at once. No lock. */
void sl_stream_drop(CUstream handle);
/* Around a call that may end the context; several threads may be in such calls. After hold none of
 * its events is used. */
void sl_stream_hold_context(CUcontext ctx);
void sl_stream_end_context(CUcontext ctx, bool gone);
/* In the child of a fork. */
void sl_stream_forget(void);

#endif
