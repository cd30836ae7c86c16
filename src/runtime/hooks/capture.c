/*
 * capture - calls that begin and end a stream capture, or its stream
 */
#include "runtime/contexts/capture.h"
#include "runtime/contexts/stream.h"
#include "runtime/gate/door.h"
#include "runtime/gate/residency.h"
#include "runtime/memory/sweep.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"

/* No capture begins while the gate is closed. If the call began none, frees that waited for it are
 * due. */
#define BEGIN(symbol, per_thread, mode, params, args)                                    \
	SL_EXPORT CUresult symbol params                                                 \
	{                                                                                \
		SL_DOOR;                                                                 \
		CUresult result;                                                         \
                                                                                         \
		if (!sl_mode_is_active())                                                \
			return sl_real.symbol args;                                      \
		sl_residency_enter();                                                    \
		sl_capture_announce();                                                   \
		result =                                                                 \
			sl_capture_began(stream, per_thread, mode, sl_real.symbol args); \
		sl_residency_leave();                                                    \
		sl_sweep_if_owed();                                                      \
		return result;                                                           \
	}
#define BEGIN_TO_GRAPH_PARAMS                                             \
	(CUstream stream, CUgraph graph, const CUgraphNode *dependencies, \
		const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode)
#define RECAPTURE_PARAMS                                                           \
	(CUstream stream, CUstreamCaptureMode mode, CUgraph graph, void *callback, \
		void *user_data)
#define END(symbol, per_thread, params, args)                          \
	SL_EXPORT CUresult symbol params                               \
	{                                                              \
		SL_DOOR;                                               \
		CUresult result = sl_real.symbol args;                 \
                                                                       \
		if (!sl_capture_is_open())                             \
			return result;                                 \
		result = sl_capture_ended(stream, per_thread, result); \
		sl_sweep_if_owed();                                    \
		return result;                                         \
	}

BEGIN(cuStreamBeginCapture, false, CU_STREAM_CAPTURE_MODE_GLOBAL, (CUstream stream),
	(stream))
BEGIN(cuStreamBeginCapture_ptsz, true, CU_STREAM_CAPTURE_MODE_GLOBAL, (CUstream stream),
	(stream))
BEGIN(cuStreamBeginCapture_v2, false, mode, (CUstream stream, CUstreamCaptureMode mode),
	(stream, mode))
BEGIN(cuStreamBeginCapture_v2_ptsz, true, mode,
	(CUstream stream, CUstreamCaptureMode mode), (stream, mode))
BEGIN(cuStreamBeginCaptureToGraph, false, mode, BEGIN_TO_GRAPH_PARAMS,
	(stream, graph, dependencies, edges, count, mode))
BEGIN(cuStreamBeginCaptureToGraph_ptsz, true, mode, BEGIN_TO_GRAPH_PARAMS,
	(stream, graph, dependencies, edges, count, mode))
BEGIN(cuStreamBeginRecaptureToGraph, false, mode, RECAPTURE_PARAMS,
	(stream, mode, graph, callback, user_data))
BEGIN(cuStreamBeginRecaptureToGraph_ptsz, true, mode, RECAPTURE_PARAMS,
	(stream, mode, graph, callback, user_data))
/* A capture into a command list of a graphics API; the driver decides which calls it forbids. */
BEGIN(cuStreamBeginCaptureToCig, false, CU_STREAM_CAPTURE_MODE_RELAXED,
	(CUstream stream, struct CUstreamCigCaptureParams_st *params), (stream, params))
BEGIN(cuStreamBeginCaptureToCig_ptsz, true, CU_STREAM_CAPTURE_MODE_RELAXED,
	(CUstream stream, struct CUstreamCigCaptureParams_st *params), (stream, params))
END(cuStreamEndCaptureToCig, false, (CUstream stream), (stream))
END(cuStreamEndCaptureToCig_ptsz, true, (CUstream stream), (stream))
END(cuStreamEndCapture, false, (CUstream stream, CUgraph *graph), (stream, graph))
END(cuStreamEndCapture_ptsz, true, (CUstream stream, CUgraph *graph), (stream, graph))

static CUresult destroyed(CUstream stream, CUresult result)
{
	if (result == CUDA_SUCCESS && sl_capture_is_open()) {
		sl_capture_drop_stream(stream);
		sl_sweep_if_owed();
	}
	return result;
}

SL_EXPORT CUresult cuStreamDestroy(CUstream stream)
{
	SL_DOOR;
	sl_stream_drop(stream);
	return destroyed(stream, sl_real.cuStreamDestroy(stream));
}

SL_EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
	SL_DOOR;
	sl_stream_drop(stream);
	return destroyed(stream, sl_real.cuStreamDestroy_v2(stream));
}
