/*
 * capture - which streams are recording a graph
 *
 * While a stream records, our code must not synchronise: that would invalidate the capture. The
 * hooks report the begin and end of each capture here, and a thread asks here before it
 * synchronises. A capture that begins during a synchronisation waits until the synchronisation
 * ends, at most 1 s. Thread-safe.
 */
#ifndef SL_RUNTIME_CONTEXTS_CAPTURE_H
#define SL_RUNTIME_CONTEXTS_CAPTURE_H

#include "base/cuda_types.h"
#include "base/sl.h"

bool sl_capture_is_open(void);
/* True if the driver would refuse an allocation of this thread because of an open capture. */
bool sl_capture_forbids(void);
/* False: a capture is open, do not synchronise. True: synchronise, then call
 * sl_capture_sync_end. */
SL_MUST_CHECK bool sl_capture_sync_begin(void);
void sl_capture_sync_end(void);
/* Around calls that the driver may forbid while another thread captures, although the program's own
 * call is allowed: relax returns what unrelax takes. */
SL_MUST_CHECK CUstreamCaptureMode sl_capture_relax(void);
void sl_capture_unrelax(CUstreamCaptureMode mode);
/* The stream was destroyed, or the context with all its streams. */
void sl_capture_drop_stream(CUstream stream);
void sl_capture_drop_context(CUcontext ctx);

/* --- for the hooks (hooks/capture.c); per_thread: stream 0 is the thread's own --- */

/* Before the driver's call that begins a capture. */
void sl_capture_announce(void);
/* After that call; returns result. */
CUresult sl_capture_began(
	CUstream stream, bool per_thread, CUstreamCaptureMode mode, CUresult result);
/* Called after the driver's call that ends a capture, if a capture is open; returns result. If the
 * wrong thread tries, the driver refuses, as result shows, and the capture stays open. */
CUresult sl_capture_ended(CUstream stream, bool per_thread, CUresult result);

/* In the child of a fork. */
void sl_capture_forget(void);

#endif
