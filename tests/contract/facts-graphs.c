/*
 * facts-graphs - capture, what spoils it, and launching what was captured
 *
 * Sluice must neither wait nor allocate while a capture is open; these facts say what that would
 * break (peer-failures row 15).
 */
#include "contract.h"

#define MANUAL "driver API manual"

static CUstream begin(CUstreamCaptureMode mode)
{
	CUstream stream;

	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuStreamBeginCapture_v2, stream, mode);
	return stream;
}

/* A word of memory at 1, with the kernels loaded and nothing running. */
static CUdeviceptr ready(void)
{
	CUdeviceptr word;

	contract_context();
	word = contract_alloc(4);
	contract_step(NULL, word, 0, 1);
	OK(cuCtxSynchronize);
	return word;
}

FACT(capture_records, MANUAL, SAME,
	"captured work does not run until its graph is launched")
{
	CUdeviceptr word = ready();
	CUstream stream = begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	CUgraphExec exec;
	CUgraph graph;

	contract_step(stream, word, 10, 2);
	OK(cuStreamEndCapture, stream, &graph);
	HOLDS(contract_read(word), ==, 1);
	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	OK(cuGraphLaunch, exec, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(word), ==, 12);
	OK(cuGraphLaunch, exec, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(word), ==, 122);
	OK(cuGraphExecDestroy, exec);
	OK(cuGraphDestroy, graph);
}

FACT(capture_status, MANUAL, SAME, "a stream knows whether it captures")
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	CUstream stream;
	CUgraph graph;

	ready();
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuStreamIsCapturing, stream, &status);
	HOLDS(status, ==, CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	OK(cuStreamIsCapturing, stream, &status);
	HOLDS(status, ==, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cuStreamEndCapture, stream, &graph);
	OK(cuStreamIsCapturing, stream, &status);
	HOLDS(status, ==, CU_STREAM_CAPTURE_STATUS_NONE);
}

FACT(capture_twice, MANUAL, SAME, "a stream captures one thing at a time")
{
	CUstream stream;

	ready();
	stream = begin(CU_STREAM_CAPTURE_MODE_RELAXED);
	IS(ERROR_ILLEGAL_STATE, cuStreamBeginCapture_v2, stream,
		CU_STREAM_CAPTURE_MODE_RELAXED);
}

FACT(capture_end_unbegun, MANUAL, SAME, "what was not begun cannot be ended")
{
	CUstream stream;
	CUgraph graph;

	ready();
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	IS(ERROR_ILLEGAL_STATE, cuStreamEndCapture, stream, &graph);
}

FACT(capture_legacy, MANUAL, SAME, "the legacy stream cannot capture")
{
	ready();
	IS(ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2, NULL,
		CU_STREAM_CAPTURE_MODE_RELAXED);
}

FACT(capture_sync, MANUAL, SAME, "waiting for a capturing stream spoils the capture")
{
	CUdeviceptr word = ready();
	CUstream stream = begin(CU_STREAM_CAPTURE_MODE_RELAXED);
	CUstreamCaptureStatus status;
	CUgraph graph;

	contract_step(stream, word, 1, 1);
	IS(ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize, stream);
	OK(cuStreamIsCapturing, stream, &status);
	HOLDS(status, ==, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	IS(ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture, stream, &graph);
	/* And after that the stream works again. */
	contract_step(stream, word, 1, 1);
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(word), ==, 2);
}

FACT(capture_query, MANUAL, SAME, "so does asking whether it is done")
{
	CUstream stream;
	CUgraph graph;

	ready();
	stream = begin(CU_STREAM_CAPTURE_MODE_RELAXED);
	IS(ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery, stream);
	IS(ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture, stream, &graph);
}

FACT(capture_alloc, MANUAL, SAME, "cuMemAlloc spoils a capture in global mode")
{
	CUstream stream;
	CUdeviceptr at;
	CUgraph graph;

	ready();
	stream = begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	IS(ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2, &at, 4 << 20);
	IS(ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture, stream, &graph);
}

FACT(capture_alloc_relaxed, MANUAL, SAME, "and does not in relaxed mode")
{
	CUstream stream;
	CUgraph graph;

	ready();
	stream = begin(CU_STREAM_CAPTURE_MODE_RELAXED);
	contract_alloc(64 << 20);
	contract_alloc(512);
	OK(cuStreamEndCapture, stream, &graph);
}

FACT(capture_info, "frameworks rely on it", SAME,
	"cuMemGetInfo is allowed during a capture")
{
	CUstream stream;
	CUgraph graph;

	ready();
	stream = begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	HOLDS(contract_free_bytes(), >, 0);
	OK(cuStreamEndCapture, stream, &graph);
}

FACT(capture_context_sync, MANUAL, SAME, "cuCtxSynchronize fails during a capture")
{
	CUstream stream;

	ready();
	stream = begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	(void)stream;
	IS(ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize);
}

FACT(capture_implicit, MANUAL, SAME,
	"the legacy stream cannot be used while a blocking one captures")
{
	CUdeviceptr word = ready();
	uint32_t factor = 1, add = 1;
	void *args[] = {&word, &factor, &add};
	CUfunction step = contract_kernel("prog_step");
	CUstream stream;

	OK(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
	OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	HOLDS(contract_launch(step, NULL, args), ==, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

FACT(capture_other_stream, MANUAL, SAME, "other streams go on while one captures")
{
	CUdeviceptr word = ready();
	CUstream stream, other;
	CUgraph graph;

	OK(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
	stream = begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	contract_step(other, word, 1, 4);
	OK(cuStreamEndCapture, stream, &graph);
	OK(cuStreamSynchronize, other);
	HOLDS(contract_read(word), ==, 5);
}

FACT(capture_event, MANUAL, SAME, "an event joins a second stream to the capture")
{
	CUdeviceptr word = ready();
	CUstream stream, joined;
	CUevent fork, join;
	CUgraphExec exec;
	CUgraph graph;

	OK(cuStreamCreate, &joined, CU_STREAM_NON_BLOCKING);
	OK(cuEventCreate, &fork, CU_EVENT_DISABLE_TIMING);
	OK(cuEventCreate, &join, CU_EVENT_DISABLE_TIMING);
	stream = begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(cuEventRecord, fork, stream);
	OK(cuStreamWaitEvent, joined, fork, 0);
	contract_step(joined, word, 1, 6);
	OK(cuEventRecord, join, joined);
	OK(cuStreamWaitEvent, stream, join, 0);
	contract_step(stream, word, 2, 0);
	OK(cuStreamEndCapture, stream, &graph);
	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	OK(cuGraphLaunch, exec, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(word), ==, 14);
}

FACT(capture_unjoined, MANUAL, SAME, "a second stream must be joined again")
{
	CUdeviceptr word = ready();
	CUstream stream, joined;
	CUevent fork;
	CUgraph graph;

	OK(cuStreamCreate, &joined, CU_STREAM_NON_BLOCKING);
	OK(cuEventCreate, &fork, CU_EVENT_DISABLE_TIMING);
	stream = begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(cuEventRecord, fork, stream);
	OK(cuStreamWaitEvent, joined, fork, 0);
	contract_step(joined, word, 1, 6);
	IS(ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture, stream, &graph);
}

FACT(graph_memory_work, MANUAL, SAME, "copies and memsets are captured too")
{
	CUdeviceptr word = ready(), two = contract_alloc(8);
	CUstream stream = begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	CUgraphExec exec;
	CUgraph graph;
	size_t nodes = 0;

	OK(cuMemsetD32Async, two, 9, 2, stream);
	OK(cuMemcpyDtoDAsync_v2, word, two + 4, 4, stream);
	OK(cuStreamEndCapture, stream, &graph);
	OK(cuGraphGetNodes, graph, NULL, &nodes);
	HOLDS(nodes, ==, 2);
	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	OK(cuGraphLaunch, exec, stream);
	OK(cuStreamSynchronize, stream);
	HOLDS(contract_read(word), ==, 9);
}

FACT(graph_empty, MANUAL, SAME, "an empty graph can be made, launched and destroyed")
{
	CUgraphExec exec;
	CUgraph graph;

	ready();
	OK(cuGraphCreate, &graph, 0);
	OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
	OK(cuGraphLaunch, exec, NULL);
	OK(cuCtxSynchronize);
	OK(cuGraphExecDestroy, exec);
	OK(cuGraphDestroy, graph);
}
