/*
 * capture - see capture.h
 *
 * Dekker's pattern: a capture announces itself, then looks for synchronisations; a synchronisation
 * announces itself, then looks for captures. A capture that begins during a synchronisation waits
 * until the synchronisation ends or is 1 s old. It waits no longer, since the synchronised work may
 * itself wait for the thread that begins the capture. No capture begins while the gate is closed,
 * so memory does not move during one. Open captures are listed by stream, so destroying a stream or
 * a context ends its captures here, too.
 */
#include "runtime/contexts/capture.h"
#include "runtime/process/futex.h"
#include "runtime/real/real.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#define BEGIN_WAIT_NS (1 * SL_S)

struct capture {
	struct capture *next;
	CUstream stream;
	CUcontext ctx;
	pthread_t owner; /* for the thread's own default stream; otherwise 0 */
	pthread_t beginner;
	CUstreamCaptureMode mode;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture *captures;
static uint32_t open_count;  /* listed captures, and those about to begin */
static uint32_t syncs;       /* futex */
static sl_ns syncs_since_ns; /* when the first of these synchronisations began */

bool sl_capture_is_open(void)
{
	return __atomic_load_n(&open_count, __ATOMIC_SEQ_CST) != 0;
}

bool sl_capture_sync_begin(void)
{
	sl_ns now = sl_clock_now();

	if (!__atomic_load_n(&syncs, __ATOMIC_RELAXED))
		__atomic_store_n(&syncs_since_ns, now, __ATOMIC_RELAXED);
	/* The last of the others may have ended since. */
	if (__atomic_fetch_add(&syncs, 1, __ATOMIC_SEQ_CST) == 0)
		__atomic_store_n(&syncs_since_ns, now, __ATOMIC_RELAXED);
	if (!sl_capture_is_open())
		return true;
	sl_capture_sync_end();
	return false;
}

void sl_capture_sync_end(void)
{
	if (__atomic_sub_fetch(&syncs, 1, __ATOMIC_SEQ_CST) == 0)
		sl_futex_wake(&syncs, INT_MAX);
}

/* per_thread: in this call stream 0 is the thread's own default stream. */
static pthread_t owner_of(CUstream stream, bool per_thread)
{
	bool own = stream == CU_STREAM_PER_THREAD || (per_thread && !stream);

	return own ? pthread_self() : 0;
}

/* The thread's default stream has two names: 0 and CU_STREAM_PER_THREAD. */
static CUstream named(CUstream stream, bool per_thread)
{
	return per_thread && !stream ? CU_STREAM_PER_THREAD : stream;
}

void sl_capture_announce(void)
{
	sl_ns deadline_ns, now_ns;
	uint32_t now;

	__atomic_fetch_add(&open_count, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&syncs, __ATOMIC_SEQ_CST))
		return;
	/* The wait is counted from the start of the synchronisation. So one that never ends delays
	 * only the captures that begin in its first second. */
	deadline_ns = __atomic_load_n(&syncs_since_ns, __ATOMIC_RELAXED) + BEGIN_WAIT_NS;
	while ((now = __atomic_load_n(&syncs, __ATOMIC_SEQ_CST)) != 0 &&
		(now_ns = sl_clock_now()) < deadline_ns)
		sl_futex_wait(&syncs, now, deadline_ns - now_ns);
}

static void retract(void)
{
	__atomic_fetch_sub(&open_count, 1, __ATOMIC_SEQ_CST);
}

CUresult sl_capture_began(
	CUstream stream, bool per_thread, CUstreamCaptureMode mode, CUresult result)
{
	struct capture *capture;

	if (result != CUDA_SUCCESS) {
		retract();
		return result;
	}
	capture = malloc(sizeof(*capture));
	/* Without a record the capture counts as open for ever, so none of our threads synchronises
	 * any more. To synchronise would invalidate the program's graph. */
	if (!capture)
		return result;
	*capture = (struct capture){
		.stream = named(stream, per_thread),
		.owner = owner_of(stream, per_thread),
		.beginner = pthread_self(),
		.mode = mode,
	};
	(void)sl_real.cuCtxGetCurrent(&capture->ctx);
	(void)pthread_mutex_lock(&list_lock);
	capture->next = captures;
	captures = capture;
	(void)pthread_mutex_unlock(&list_lock);
	return result;
}

/* The driver's rule for calls that are unsafe during a capture. Such a call fails if this thread
 * has a capture that is not relaxed. In a thread of global mode it also fails if another thread has
 * a global capture. */
static bool is_forbidden(CUstreamCaptureMode mode)
{
	bool forbidden = false;

	(void)pthread_mutex_lock(&list_lock);
	for (struct capture *c = captures; c; c = c->next) {
		bool own = pthread_equal(c->beginner, pthread_self());

		if (own ? c->mode != CU_STREAM_CAPTURE_MODE_RELAXED
			: mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
					c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL)
			forbidden = true;
	}
	(void)pthread_mutex_unlock(&list_lock);
	return forbidden;
}

bool sl_capture_forbids(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	if (sl_likely(!sl_capture_is_open()))
		return false;
	/* The thread's mode can only be read by exchanging it, and then exchanging it back. */
	if (sl_real.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
		return false;
	{
		CUstreamCaptureMode own = mode;

		(void)sl_real.cuThreadExchangeStreamCaptureMode(&mode);
		return own != CU_STREAM_CAPTURE_MODE_RELAXED && is_forbidden(own);
	}
}

CUstreamCaptureMode sl_capture_relax(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	return sl_real.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS
		       ? mode
		       : CU_STREAM_CAPTURE_MODE_RELAXED;
}

void sl_capture_unrelax(CUstreamCaptureMode mode)
{
	if (mode != CU_STREAM_CAPTURE_MODE_RELAXED)
		(void)sl_real.cuThreadExchangeStreamCaptureMode(&mode);
}

/* Takes the captures of that stream or context off the list. */
static void end(CUstream stream, pthread_t owner, CUcontext ctx)
{
	struct capture **at = &captures, *ended = NULL, *next;

	(void)pthread_mutex_lock(&list_lock);
	while (*at) {
		struct capture *capture = *at;
		bool match = ctx ? capture->ctx == ctx
				 : capture->stream == stream && capture->owner == owner;

		if (!match) {
			at = &capture->next;
			continue;
		}
		*at = capture->next;
		capture->next = ended;
		ended = capture;
	}
	(void)pthread_mutex_unlock(&list_lock);
	for (; ended; ended = next) {
		next = ended->next;
		free(ended);
		retract();
	}
}

/* The legacy stream never captures, and a query of it would invalidate other captures. */
static bool may_capture(CUstream stream, bool per_thread)
{
	CUstream name = named(stream, per_thread);

	return name && name != CU_STREAM_LEGACY;
}

CUresult sl_capture_ended(CUstream stream, bool per_thread, CUresult result)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult r;

	if (!may_capture(stream, per_thread))
		return result;
	r = per_thread ? sl_real.cuStreamIsCapturing_ptsz(stream, &status)
		       : sl_real.cuStreamIsCapturing(stream, &status);

	if (r == CUDA_SUCCESS ? status == CU_STREAM_CAPTURE_STATUS_NONE
			      : result == CUDA_SUCCESS)
		end(named(stream, per_thread), owner_of(stream, per_thread), NULL);
	return result;
}

void sl_capture_drop_stream(CUstream stream)
{
	if (sl_capture_is_open())
		end(stream, 0, NULL);
}

void sl_capture_drop_context(CUcontext ctx)
{
	if (ctx && sl_capture_is_open())
		end(NULL, 0, ctx);
}

void sl_capture_forget(void)
{
	(void)pthread_mutex_init(&list_lock, NULL);
	captures = NULL;
	open_count = 0;
	syncs = 0;
}
