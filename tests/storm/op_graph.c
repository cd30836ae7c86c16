/*
 * op_graph - captures, graphs and their launches
 *
 * A graph remembers which buffers its nodes name. One whose buffers are gone is never launched:
 * that would be a bad access of ours, not a question to the driver.
 */
#include "ops.h"

#include <string.h>

void storm_op_capture_begin(struct storm_lane *l, const uint32_t *a)
{
	static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
		CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED,
		(CUstreamCaptureMode)9};
	CUstream s;

	if (!storm_stream(l, a[0], &s) || l->context)
		return;
	/* Nothing is pending when it begins: to wait during a capture may spoil it. */
	if (!l->captures) {
		storm_quiesce(l);
		l->capture_uses.count = 0;
	}
	if (CALL_S(l, cuStreamBeginCapture_v2, s, modes[a[1] % 16 == 3 ? 3 : a[1] % 3]) ==
		CUDA_SUCCESS)
		l->captures++;
}

static CUresult end_capture(struct storm_lane *l, CUstream s, struct storm_graph *g)
{
	CUgraph graph = NULL;
	CUresult r = CALL_S(l, cuStreamEndCapture, s, &graph);

	switch ((int)r) {
	case CUDA_ERROR_ILLEGAL_STATE: /* was not capturing */
	case CUDA_ERROR_INVALID_HANDLE:
	case CUDA_ERROR_INVALID_VALUE:
	case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED: /* another stream began it */
	case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
	case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: return r;
	default: break;
	}
	if (l->captures)
		l->captures--;
	if (r != CUDA_SUCCESS || !graph)
		return r;
	*g = (struct storm_graph){.live = true, .handle = graph, .uses = l->capture_uses};
	return r;
}

void storm_op_capture_end(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g = &l->graph[a[1] % STORM_GRAPH_SLOTS];
	size_t nodes = 0;
	CUstream s;

	if (g->live || !storm_stream(l, a[0], &s))
		return;
	if (a[2] % 64 == 0) {
		CALL_S(l, cuStreamEndCapture, s, NULL);
		return;
	}
	if (end_capture(l, s, g) == CUDA_SUCCESS && g->live &&
		CALL(l, cuGraphGetNodes, g->handle, NULL, &nodes) == CUDA_SUCCESS)
		storm_note(l, "nodes", nodes);
}

void storm_op_capture_ask(struct storm_lane *l, const uint32_t *a)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	cuuint64_t id = 0;
	CUgraph graph = NULL;
	CUresult r;
	CUstream s;

	if (!storm_stream(l, a[0], &s))
		return;
	switch (a[1] % 3) {
	case 0: r = CALL_S(l, cuStreamIsCapturing, s, &status); break;
	case 1: r = CALL_S(l, cuStreamGetCaptureInfo, s, &status, &id); break;
	default:
		r = CALL_S(l, cuStreamGetCaptureInfo_v2, s, &status, &id, &graph, NULL,
			NULL);
		break;
	}
	if (r == CUDA_SUCCESS) {
		storm_note(l, "status", status);
		storm_note(l, "has a graph", graph != NULL);
	}
}

void storm_op_capture_mode(struct storm_lane *l, const uint32_t *a)
{
	CUstreamCaptureMode mode = (CUstreamCaptureMode)(a[0] % 3), back;

	if (CALL(l, cuThreadExchangeStreamCaptureMode, &mode) != CUDA_SUCCESS)
		return;
	storm_note(l, "before", mode);
	back = mode;
	CALL(l, cuThreadExchangeStreamCaptureMode, &back);
}

static struct storm_graph *graph_of(struct storm_lane *l, uint32_t slot)
{
	return slot < STORM_GRAPH_SLOTS && l->graph[slot].live ? &l->graph[slot] : NULL;
}

static struct storm_exec *exec_of(struct storm_lane *l, uint32_t slot)
{
	return slot < STORM_EXEC_SLOTS && l->exec[slot].live ? &l->exec[slot] : NULL;
}

void storm_op_graph_create(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g = &l->graph[a[0] % STORM_GRAPH_SLOTS];

	if (g->live)
		return;
	memset(g, 0, sizeof(*g));
	g->is_chain = true;
	g->live = CALL(l, cuGraphCreate, &g->handle, a[1] % 16 == 0) == CUDA_SUCCESS;
}

void storm_op_graph_ask(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g = graph_of(l, a[0]);
	CUgraphNode node[32];
	CUgraphNodeType type;
	size_t count = 32;

	if (!g)
		return;
	if (CALL(l, cuGraphGetNodes, g->handle, a[1] & 3 ? node : NULL, &count) !=
		CUDA_SUCCESS)
		return;
	storm_note(l, "nodes", count);
	for (size_t i = 0; a[1] & 3 && i < count && i < 32; i++)
		if (CALL(l, cuGraphNodeGetType, node[i], &type) == CUDA_SUCCESS)
			storm_note(l, "type", type);
}

void storm_op_graph_clone(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g = graph_of(l, a[0]);
	struct storm_graph *to = &l->graph[a[1] % STORM_GRAPH_SLOTS];

	if (!g || to->live)
		return;
	memset(to, 0, sizeof(*to));
	to->uses = g->uses;
	to->weight = g->weight;
	to->live = CALL(l, cuGraphClone, &to->handle, g->handle) == CUDA_SUCCESS;
}

void storm_op_graph_destroy(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g = graph_of(l, a[0]);

	if (g && CALL(l, cuGraphDestroy, g->handle) == CUDA_SUCCESS)
		g->live = false;
}

void storm_op_graph_instantiate(struct storm_lane *l, const uint32_t *a)
{
	struct storm_graph *g = graph_of(l, a[0]);
	struct storm_exec *x = &l->exec[a[1] % STORM_EXEC_SLOTS];
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
	CUresult r;

	if (!g || x->live)
		return;
	switch (a[2] % 5) {
	case 3:
		r = CALL(l, cuGraphInstantiate, &x->handle, g->handle, NULL, NULL, 0);
		break;
	case 0:
		r = CALL(l, cuGraphInstantiate_v2, &x->handle, g->handle, NULL, NULL, 0);
		break;
	case 1:
		r = CALL_S(
			l, cuGraphInstantiateWithParams, &x->handle, g->handle, &params);
		break;
	default:
		r = CALL(l, cuGraphInstantiateWithFlags, &x->handle, g->handle, 0);
		break;
	}
	x->live = r == CUDA_SUCCESS;
	x->uses = g->uses;
}

void storm_op_graph_update(struct storm_lane *l, const uint32_t *a)
{
	struct storm_exec *x = exec_of(l, a[0]);
	struct storm_graph *g = graph_of(l, a[1]);
	CUgraphExecUpdateResultInfo info = {0};

	if (!x || !g)
		return;
	if (CALL(l, cuGraphExecUpdate_v2, x->handle, g->handle, &info) == CUDA_SUCCESS)
		x->uses = g->uses;
	storm_note(l, "result", info.result);
}

void storm_op_graph_launch(struct storm_lane *l, const uint32_t *a)
{
	struct storm_exec *x = exec_of(l, a[0]);
	CUstream s;

	if (!x || !storm_stream(l, a[1], &s) || l->context ||
		!storm_uses_live(l, &x->uses))
		return;
	storm_uses_touch(l, &x->uses, storm_stream_slot(l, a[1]));
	if (a[2] % 8 == 0)
		CALL_S(l, cuGraphUpload, x->handle, s);
	CALL_S(l, cuGraphLaunch, x->handle, s);
}

void storm_op_graph_exec_destroy(struct storm_lane *l, const uint32_t *a)
{
	struct storm_exec *x = exec_of(l, a[0]);

	if (!x)
		return;
	CALL(l, cuGraphExecDestroy, x->handle);
	x->live = false;
}

void storm_op_graph_wrong(struct storm_lane *l, const uint32_t *a)
{
	CUgraphExec exec;
	CUgraph graph;
	size_t count;

	switch (a[0] % 7) {
	case 0: CALL(l, cuGraphCreate, NULL, 0); break;
	case 1: CALL(l, cuGraphDestroy, NULL); break;
	case 2: CALL(l, cuGraphInstantiateWithFlags, &exec, NULL, 0); break;
	case 3: CALL(l, cuGraphLaunch, NULL, NULL); break;
	case 4: CALL(l, cuGraphExecDestroy, (CUgraphExec)(uintptr_t)0x60); break;
	case 5: CALL(l, cuGraphClone, &graph, NULL); break;
	case 6: CALL(l, cuGraphGetNodes, (CUgraph)(uintptr_t)0x60, NULL, &count); break;
	}
}
