/*
 * op_work - kernels, streams, events and waiting
 */
#include "ops.h"

#include "prog.h"

void storm_op_launch_fill(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	uint64_t count, stride = 1;
	uint32_t seed = l->step->dice;
	size_t offset, bytes;
	CUdeviceptr at;
	CUstream s;
	void *args[] = {&at, &count, &stride, &seed};

	if (!b || b->bytes < 8 || l->context || storm_on_host(b) ||
		!storm_stream(l, a[1], &s))
		return;
	storm_window(b, a[2], a[3], 8192, &offset, &bytes);
	at = (b->at + offset) & ~3ull;
	count = bytes / 4;
	if (!count)
		return;
	storm_touch(l, b, storm_stream_slot(l, a[1]));
	if (l->step->dice >> 9 & 1) {
		CALL_S(l, cuLaunchCooperativeKernel, l->fill,
			(unsigned)(count + 255) / 256, 1, 1, 256, 1, 1, 0, s, args);
	} else if (l->step->dice >> 9 & 2) {
		CUlaunchConfig config = {.gridDimX = (unsigned)(count + 127) / 128,
			.gridDimY = 1,
			.gridDimZ = 1,
			.blockDimX = 128,
			.blockDimY = 1,
			.blockDimZ = 1,
			.hStream = s};

		CALL_S(l, cuLaunchKernelEx, &config, l->fill, args, NULL);
	} else {
		CALL_S(l, cuLaunchKernel, l->fill, (unsigned)(count + 255) / 256, 1, 1,
			256, 1, 1, 0, s, args, NULL);
	}
}

/* Shows order: the word becomes word * factor + add. */
void storm_op_launch_step(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	uint32_t factor = l->step->dice | 1, add = l->step->dice >> 7;
	CUdeviceptr at;
	CUstream s;
	void *args[] = {&at, &factor, &add};

	if (!b || b->bytes < 8 || l->context || storm_on_host(b) ||
		!storm_stream(l, a[1], &s))
		return;
	at = b->at + ((a[2] % (b->bytes - 4)) & ~3ull);
	storm_touch(l, b, storm_stream_slot(l, a[1]));
	CALL_S(l, cuLaunchKernel, l->step_kernel, 1, 1, 1, 1, 1, 1, 0, s, args, NULL);
}

void storm_op_launch_wrong(struct storm_lane *l, const uint32_t *a)
{
	CUstream s;

	if (!storm_stream(l, a[0], &s) || l->context)
		return;
	switch (a[1] % 5) {
	case 0: CALL(l, cuLaunchKernel, NULL, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL); break;
	case 1:
		CALL(l, cuLaunchKernel, l->empty, 0, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
		break;
	case 2:
		CALL(l, cuLaunchKernel, l->empty, 1, 1, 1, 4096, 1, 1, 0, s, NULL, NULL);
		break;
	case 3:
		CALL(l, cuLaunchKernel, l->empty, 1, 1, 1, 1, 1, 1, 1u << 30, s, NULL,
			NULL);
		break;
	case 4:
		CALL_S(l, cuLaunchKernel, l->empty, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
		break;
	}
}

static void count_up(void *data)
{
	__atomic_fetch_add((uint32_t *)data, 1, __ATOMIC_SEQ_CST);
}

static void count_up_status(CUstream stream, CUresult status, void *data)
{
	count_up(data);
}

/* A function of the program, run in the stream's order; then it has run. */
void storm_op_host_function(struct storm_lane *l, const uint32_t *a)
{
	static uint32_t never_waited_for;
	uint32_t ran = 0, *counter = &ran;
	CUresult r;
	CUstream s;

	if (!storm_stream(l, a[0], &s))
		return;
	if (storm_capturing(l, (uint32_t)storm_stream_slot(l, a[0])))
		counter = &never_waited_for; /* runs when the graph is launched */
	if (a[1] & 1)
		r = CALL_S(l, cuLaunchHostFunc, s, a[1] & 14 ? count_up : NULL, counter);
	else
		r = CALL_S(l, cuStreamAddCallback, s, count_up_status, counter, 0);
	if (r != CUDA_SUCCESS || counter != &ran)
		return;
	CALL_S(l, cuStreamSynchronize, s);
	storm_settled(l, storm_stream_slot(l, a[0]));
	for (unsigned i = 0; i < 2000 && !__atomic_load_n(&ran, __ATOMIC_SEQ_CST); i++)
		prog_sleep_ms(1);
	storm_note(l, "ran", ran);
}

void storm_op_stream_create(struct storm_lane *l, const uint32_t *a)
{
	struct storm_stream *s;
	int priority = -(int)(a[1] >> 8 & 3);
	unsigned flags = a[1] & 0x70 ? a[1] & 1 : 0x80;
	CUresult r;

	if (a[0] < 2 || a[0] >= STORM_STREAM_SLOTS || l->stream[a[0]].live)
		return;
	/* Threads of one process leave each other's legacy streams alone. */
	if (l->shape == STORM_SHAPE_CREW)
		flags |= CU_STREAM_NON_BLOCKING;
	s = &l->stream[a[0]];
	r = a[1] & 2 ? CALL(l, cuStreamCreateWithPriority, &s->handle, flags, priority)
		     : CALL(l, cuStreamCreate, &s->handle, flags);
	s->live = r == CUDA_SUCCESS;
	s->flags = flags;
	s->priority = a[1] & 2 ? priority : 0;
	s->context = l->context;
}

void storm_op_stream_destroy(struct storm_lane *l, const uint32_t *a)
{
	struct storm_stream *s = &l->stream[a[0] % STORM_STREAM_SLOTS];
	CUresult r;

	/* The fate of a capture whose stream is destroyed is undefined. */
	if (a[0] < 2 || !s->live || storm_capturing(l, a[0]))
		return;
	/* Its work under way goes on; afterwards only its own context can wait for that. */
	if (s->context != l->context)
		storm_quiesce(l);
	r = l->step->dice & 1 ? CALL(l, cuStreamDestroy, s->handle)
			      : CALL(l, cuStreamDestroy_v2, s->handle);
	if (r != CUDA_SUCCESS)
		return;
	s->live = false;
	for (unsigned i = 0; i < STORM_BUFFER_SLOTS; i++)
		if (l->buffer[i].pending == (int)a[0])
			l->buffer[i].pending = PENDING_GONE;
}

void storm_op_stream_sync(struct storm_lane *l, const uint32_t *a)
{
	CUstream s;

	if (storm_stream(l, a[0], &s) &&
		CALL_S(l, cuStreamSynchronize, s) == CUDA_SUCCESS)
		storm_settled(l, storm_stream_slot(l, a[0]));
}

void storm_op_stream_query(struct storm_lane *l, const uint32_t *a)
{
	CUstream s;

	if (storm_stream(l, a[0], &s))
		CALL_S(l, cuStreamQuery, s);
}

void storm_op_stream_ask(struct storm_lane *l, const uint32_t *a)
{
	unsigned long long id = 0;
	unsigned flags = 0;
	int priority = 0;
	CUcontext ctx = NULL;
	CUstream s;

	if (!storm_stream(l, a[0], &s))
		return;
	switch (a[1] % 4) {
	case 0:
		if (CALL_S(l, cuStreamGetFlags, s, &flags) == CUDA_SUCCESS)
			storm_note(l, "flags", flags);
		break;
	case 1:
		if (CALL_S(l, cuStreamGetPriority, s, &priority) == CUDA_SUCCESS)
			storm_note(l, "priority", (uint64_t)priority);
		break;
	case 2:
		if (CALL_S(l, cuStreamGetCtx, s, &ctx) == CUDA_SUCCESS)
			storm_note(l, "primary", ctx == l->primary);
		break;
	case 3: CALL_S(l, cuStreamGetId, s, &id); break;
	}
}

void storm_op_stream_wrong(struct storm_lane *l, const uint32_t *a)
{
	CUstream bad = (CUstream)(uintptr_t)(a[0] & 0x100 ? 0x40 : 0x999);
	CUstreamCaptureStatus status;
	unsigned flags;

	switch (a[0] % 8) {
	case 0: CALL(l, cuStreamCreate, NULL, 0); break;
	case 1: CALL(l, cuStreamSynchronize, bad); break;
	case 2: CALL(l, cuStreamQuery, bad); break;
	case 3: CALL(l, cuStreamDestroy_v2, bad); break;
	case 4: CALL(l, cuStreamGetFlags, bad, &flags); break;
	case 5: CALL(l, cuStreamIsCapturing, bad, &status); break;
	case 6: CALL(l, cuStreamDestroy_v2, NULL); break;
	case 7: CALL(l, cuStreamGetFlags, NULL, NULL); break;
	}
}

void storm_op_stream_value(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	uint32_t value = l->step->dice;
	CUdeviceptr at;
	CUstream s;

	if (!b || b->bytes < 16 || storm_on_host(b) || !storm_stream(l, a[1], &s))
		return;
	at = (b->at + a[2] % (b->bytes - 15) + 7) & ~7ull;
	storm_touch(l, b, storm_stream_slot(l, a[1]));
	/* The waits end: the awaited values were written before in the same stream. */
	if (a[2] & 0x1000000) {
		if (CALL_S(l, cuStreamWriteValue32_v2, s, at, value, 0) == CUDA_SUCCESS)
			CALL_S(l, cuStreamWaitValue32_v2, s, at, value,
				CU_STREAM_WAIT_VALUE_EQ);
	} else if (a[2] & 0x2000000) {
		if (CALL_S(l, cuStreamWriteValue64_v2, s, at, value, 0) == CUDA_SUCCESS)
			CALL_S(l, cuStreamWaitValue64_v2, s, at, value,
				CU_STREAM_WAIT_VALUE_GEQ);
	} else if (a[2] & 0x4000000) {
		CALL_S(l, cuStreamWriteValue32_v2, s, at | 1, value, 0);
	} else {
		CALL_S(l, cuStreamWriteValue32_v2, s, at, value, 0);
	}
}

void storm_op_stream_batch(struct storm_lane *l, const uint32_t *a)
{
	struct storm_buffer *b = storm_buffer(l, a[0]);
	CUstreamBatchMemOpParams op[3] = {0};
	CUdeviceptr at;
	CUstream s;

	if (!b || b->bytes < 32 || storm_on_host(b) || !storm_stream(l, a[1], &s))
		return;
	at = (b->at + a[2] % (b->bytes - 31) + 7) & ~7ull;
	for (unsigned i = 0; i < 3; i++) {
		op[i].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
		op[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
		op[i].writeValue.address = at + 4ull * i;
		op[i].writeValue.value = l->step->dice + i;
	}
	storm_touch(l, b, storm_stream_slot(l, a[1]));
	CALL_S(l, cuStreamBatchMemOp_v2, s, 1 + a[2] % 3, op, a[2] >> 20 == 1);
}

void storm_op_event_create(struct storm_lane *l, const uint32_t *a)
{
	static const unsigned kinds[] = {0, 1, 2, 3, 6, 4, 0, 2, 0x40};
	struct storm_event *e;

	if (a[0] >= STORM_EVENT_SLOTS || l->event[a[0]].live)
		return;
	e = &l->event[a[0]];
	e->flags = kinds[a[1] % 9];
	e->recorded = e->foreign = false;
	e->live = CALL(l, cuEventCreate, &e->handle, e->flags) == CUDA_SUCCESS;
}

static struct storm_event *event_of(struct storm_lane *l, uint32_t slot)
{
	return slot < STORM_EVENT_SLOTS && l->event[slot].live ? &l->event[slot] : NULL;
}

void storm_op_event_destroy(struct storm_lane *l, const uint32_t *a)
{
	struct storm_event *e = event_of(l, a[0]);

	if (!e)
		return;
	if (l->step->dice & 1)
		CALL(l, cuEventDestroy, e->handle);
	else
		CALL(l, cuEventDestroy_v2, e->handle);
	e->live = false;
}

void storm_op_event_record(struct storm_lane *l, const uint32_t *a)
{
	struct storm_event *e = event_of(l, a[0]);
	CUstream s;

	if (!e || !storm_stream(l, a[1], &s))
		return;
	if (a[2] & 3)
		CALL_S(l, cuEventRecord, e->handle, s);
	else
		CALL_S(l, cuEventRecordWithFlags, e->handle, s, a[2] & 12 ? 0 : 8);
}

/* While a capture is open this is how a second stream comes into it: not with work pending. */
void storm_op_event_wait(struct storm_lane *l, const uint32_t *a)
{
	struct storm_event *e = event_of(l, a[0]);
	int slot = storm_stream_slot(l, a[1]);
	CUstream s;

	if (!e || !storm_stream(l, a[1], &s))
		return;
	if (l->captures && !storm_capturing(l, (uint32_t)slot))
		storm_quiesce(l);
	CALL_S(l, cuStreamWaitEvent, s, e->handle, a[2] & 63 ? 0 : 4);
}

void storm_op_event_query(struct storm_lane *l, const uint32_t *a)
{
	struct storm_event *e = event_of(l, a[0]);

	if (!e)
		return;
	if (a[1] & 1)
		CALL(l, cuEventQuery, e->handle);
	else
		CALL(l, cuEventSynchronize, e->handle);
}

void storm_op_event_elapsed(struct storm_lane *l, const uint32_t *a)
{
	struct storm_event *from = event_of(l, a[0]), *to = event_of(l, a[1]);
	float ms;

	if (from && to)
		CALL(l, cuEventElapsedTime, &ms, from->handle, to->handle);
}

void storm_op_event_wrong(struct storm_lane *l, const uint32_t *a)
{
	CUevent bad = (CUevent)(uintptr_t)0x50;
	float ms;

	switch (a[0] % 6) {
	case 0: CALL(l, cuEventCreate, NULL, 0); break;
	case 1: CALL(l, cuEventQuery, bad); break;
	case 2: CALL(l, cuEventSynchronize, NULL); break;
	case 3: CALL(l, cuEventDestroy_v2, bad); break;
	case 4: CALL(l, cuEventRecord, bad, NULL); break;
	case 5: CALL(l, cuEventElapsedTime, &ms, bad, bad); break;
	}
}

/* Of another context's stream it says nothing. */
void storm_op_context_sync(struct storm_lane *l, const uint32_t *a)
{
	if (CALL_0(l, cuCtxSynchronize) != CUDA_SUCCESS || l->context)
		return;
	for (unsigned i = 0; i < STORM_BUFFER_SLOTS; i++) {
		struct storm_buffer *b = &l->buffer[i];

		if (b->pending < 2 || !l->stream[b->pending].context)
			b->pending = PENDING_NONE;
	}
}

/* A bad access: from now on every call of this process is refused, and by the same code. */
void storm_op_break_context(struct storm_lane *l, const uint32_t *a)
{
	CUdeviceptr nowhere = 0xdead0000;
	uint32_t value = a[0];
	void *args[] = {&nowhere, &value};

	if (l->captures || l->context)
		return;
	/* Whether other contexts of the process are broken with it differs from GPU to GPU. */
	for (unsigned i = 0; i < STORM_CONTEXT_SLOTS; i++)
		if (l->ctx[i].live)
			return;
	l->broken = true;
	CALL(l, cuLaunchKernel, l->poke, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_LEGACY, args,
		NULL);
	CALL_0(l, cuCtxSynchronize);
}
