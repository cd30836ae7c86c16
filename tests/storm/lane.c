/*
 * lane - notes, hazards and tables
 */
#include "lane.h"

#include "prog.h"

#include <stdlib.h>
#include <string.h>

struct storm_driver storm_cu;
const char *const storm_call_names[] = {
#define SL_STORM_CALL(name) #name,
#include "calls.def"
#undef SL_STORM_CALL
};

/* Notes --------------------------------------------------------------------------------------- */

static void fold(struct storm_lane *l, uint64_t value)
{
	uint64_t x = l->result->hash ^ value;

	x *= 0x9E3779B97F4A7C15u;
	x ^= x >> 29;
	l->result->hash = x * 0xBF58476D1CE4E5B9u + 1;
}

static void say(struct storm_lane *l, const char *format, const char *what,
	const char *text, uint64_t value)
{
	size_t used = strlen(l->text);

	snprintf(l->text + used, STORM_TEXT - used, format, what, text, value);
}

CUresult storm_note_call(struct storm_lane *l, unsigned id, CUresult r)
{
	CUresult noted = r;

	/* Whether work is done already is a matter of time, natively as well. */
	if (noted == CUDA_ERROR_NOT_READY)
		noted = CUDA_SUCCESS;
	if (r == CUDA_ERROR_ILLEGAL_ADDRESS && !l->broken) {
		l->broken = true; /* no step means to do that */
		l->answers->broken = (uint32_t)(l->result - l->answers->result) + 1;
	}
	l->result->calls++;
	l->result->code = (int32_t)r;
	l->calls[id]++;
	l->refused[id] += noted != CUDA_SUCCESS;
	fold(l, (uint64_t)id << 32 | (uint32_t)noted);
	say(l, "    %s: %s\n", storm_call_names[id], prog_error_name(noted), 0);
	return r;
}

void storm_note(struct storm_lane *l, const char *what, uint64_t value)
{
	fold(l, value);
	say(l, "    %s %s%#lx\n", what, "", value);
}

void storm_note_bytes(struct storm_lane *l, const void *data, size_t bytes)
{
	const unsigned char *p = data;
	uint64_t hash = bytes, word;

	for (; bytes >= 8; bytes -= 8, p += 8) {
		memcpy(&word, p, 8);
		hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
		hash ^= hash >> 31;
	}
	for (; bytes; bytes--)
		hash = (hash ^ *p++) * 0x9E3779B97F4A7C15u;
	storm_note(l, "contents", hash);
}

/* Streams and hazards ------------------------------------------------------------------------- */

int storm_stream_slot(struct storm_lane *l, uint32_t slot)
{
	return slot == 0 && l->twin ? 1 : (int)slot;
}

bool storm_stream(struct storm_lane *l, uint32_t slot, CUstream *out)
{
	*out = NULL;
	if (slot >= STORM_STREAM_SLOTS || (slot > 1 && !l->stream[slot].live))
		return false;
	if (slot == 1)
		*out = CU_STREAM_PER_THREAD;
	else if (slot)
		*out = l->stream[slot].handle;
	return true;
}

/* Slot 0 by its name here: the lane's own calls are plain ones. */
static CUstream named(struct storm_lane *l, int slot)
{
	return slot == 0   ? CU_STREAM_LEGACY
	       : slot == 1 ? CU_STREAM_PER_THREAD
			   : l->stream[slot].handle;
}

bool storm_capturing(struct storm_lane *l, uint32_t slot)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	if (!l->captures || slot == 0)
		return false;
	CALL(l, cuStreamIsCapturing, named(l, (int)slot), &status);
	return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void storm_settled(struct storm_lane *l, int slot)
{
	for (unsigned i = 0; i < STORM_BUFFER_SLOTS; i++)
		if (l->buffer[i].pending == slot)
			l->buffer[i].pending = PENDING_NONE;
}

static CUresult wait_there(struct storm_lane *l, int slot)
{
	CUresult r;

	if (slot == PENDING_GONE)
		return CALL_0(l, cuCtxSynchronize);
	r = CALL(l, cuStreamSynchronize, named(l, slot));
	if (r == CUDA_SUCCESS)
		storm_settled(l, slot);
	return r;
}

/* Stream `on` waits for stream `before` by an event; both are real streams of one context. */
static CUresult wait_by_event(struct storm_lane *l, int before, int on)
{
	CUresult r = CALL(l, cuEventRecord, l->order, named(l, before));

	return r == CUDA_SUCCESS ? CALL(l, cuStreamWaitEvent, named(l, on), l->order, 0)
				 : r;
}

bool storm_touch(struct storm_lane *l, struct storm_buffer *b, int on)
{
	CUresult r = CUDA_SUCCESS;

	if (on >= 0 && storm_capturing(l, (uint32_t)on)) {
		storm_uses_add(l, &l->capture_uses, b);
		return true;
	}
	l->settle |= b->shared;
	if (b->pending != PENDING_NONE && b->pending != on) {
		r = CUDA_ERROR_UNKNOWN;
		if (on >= 0 && b->pending >= 0 && !l->captures && l->step->dice & 1)
			r = wait_by_event(l, b->pending, on);
		/* Streams of two contexts share no event. */
		if (r != CUDA_SUCCESS)
			r = wait_there(l, b->pending);
	}
	if (r != CUDA_SUCCESS)
		b->tainted = true;
	/* Work that could not be waited for (a capture forbids it) is still to be waited for. */
	b->pending = r != CUDA_SUCCESS ? PENDING_GONE : on >= 0 ? on : PENDING_NONE;
	return r == CUDA_SUCCESS;
}

void storm_quiesce(struct storm_lane *l)
{
	for (unsigned i = 0; i < STORM_BUFFER_SLOTS; i++) {
		struct storm_buffer *b = &l->buffer[i];

		if (!b->live || b->pending == PENDING_NONE)
			continue;
		if (wait_there(l, b->pending) == CUDA_SUCCESS) {
			b->pending = PENDING_NONE;
		} else {
			b->tainted = true;
			b->pending = PENDING_GONE;
		}
	}
}

/* Buffers ------------------------------------------------------------------------------------- */

struct storm_buffer *storm_buffer(struct storm_lane *l, uint32_t slot)
{
	return slot < STORM_BUFFER_SLOTS && l->buffer[slot].live ? &l->buffer[slot]
								 : NULL;
}

bool storm_on_host(const struct storm_buffer *b)
{
	return b->from == FROM_PINNED || b->from == FROM_REGISTERED;
}

void storm_forget(struct storm_lane *l, struct storm_buffer *b)
{
	b->live = false;
	b->gen++;
	b->pending = PENDING_NONE;
}

void storm_window(const struct storm_buffer *b, uint32_t n1, uint32_t n2, size_t most,
	size_t *offset, size_t *bytes)
{
	size_t rest;

	*offset = n1 % b->bytes;
	if (n2 & 0x80000000u) /* often the very start or end */
		*offset = n2 & 0x40000000u
				  ? 0
				  : b->bytes - 1 - n1 % (b->bytes < 64 ? b->bytes : 64);
	rest = b->bytes - *offset;
	if (rest > most)
		rest = most;
	*bytes = 1 + (n2 & 0xffffff) % rest;
}

/* No two live buffers of a thread may lie over each other. */
static void note_overlap(struct storm_lane *l, const struct storm_buffer *b)
{
	unsigned over = 0;

	for (unsigned i = 0; i < STORM_BUFFER_SLOTS; i++) {
		const struct storm_buffer *o = &l->buffer[i];

		if (o != b && o->live && o->at < b->at + b->bytes &&
			b->at < o->at + o->bytes)
			over++;
	}
	storm_note(l, "buffers that overlap it", over);
}

static void enter(struct storm_lane *l, struct storm_buffer *b, enum storm_from from,
	CUdeviceptr at, size_t bytes)
{
	b->live = true;
	b->tainted = b->shared = false;
	b->gen++;
	b->from = from;
	b->at = at;
	b->bytes = bytes;
	b->id = 0;
	b->place = -1;
	b->context = l->context;
	b->pending = PENDING_NONE;
	note_overlap(l, b);
}

static uint32_t seed_of(struct storm_lane *l, const struct storm_buffer *b)
{
	return (uint32_t)(b - l->buffer) * 977 + l->step->dice;
}

void storm_obtained_in(struct storm_lane *l, struct storm_buffer *b, CUdeviceptr at,
	size_t bytes, uint32_t slot)
{
	uint32_t seed = seed_of(l, b);
	CUresult r = CUDA_SUCCESS;
	CUstream s;

	enter(l, b, FROM_POOL, at, bytes);
	if (!storm_stream(l, slot, &s))
		return;
	if (bytes >= 4)
		r = CALL_S(l, cuMemsetD32Async, at, seed, bytes / 4, s);
	if (r == CUDA_SUCCESS && bytes % 4)
		r = CALL_S(l, cuMemsetD8Async, at + (bytes & ~(size_t)3),
			(unsigned char)seed, bytes % 4, s);
	if (r != CUDA_SUCCESS)
		b->tainted = true;
	b->pending = storm_stream_slot(l, slot);
}

void storm_obtained(struct storm_lane *l, struct storm_buffer *b, enum storm_from from,
	CUdeviceptr at, size_t bytes)
{
	uint32_t seed = seed_of(l, b);
	CUresult r;

	enter(l, b, from, at, bytes);
	if (storm_on_host(b)) {
		memset((void *)(uintptr_t)at, (int)(seed & 0xff), bytes);
		return;
	}
	/* Short ones get bytes, longer ones words; then the rest of the last word. */
	r = CALL(l, cuMemsetD32_v2, at, seed, bytes / 4);
	if (r == CUDA_SUCCESS && bytes % 4)
		r = CALL(l, cuMemsetD8_v2, at + (bytes & ~(size_t)3), (unsigned char)seed,
			bytes % 4);
	if (r != CUDA_SUCCESS)
		b->tainted = true;
	/* Sets may still be under way; the legacy stream does them. */
	b->pending = 0;
}

/* Reads through the scratch memory, by a synchronous copy. */
bool storm_verify(
	struct storm_lane *l, struct storm_buffer *b, size_t offset, size_t bytes)
{
	CUresult r;

	if (!storm_touch(l, b, ON_HOST))
		return false;
	if (storm_on_host(b)) {
		if (!b->tainted)
			storm_note_bytes(l, (char *)(uintptr_t)b->at + offset, bytes);
		return true;
	}
	r = CALL_D(l, cuMemcpyDtoH_v2, l->readback, b->at + offset, bytes);
	if (r == CUDA_SUCCESS && !b->tainted)
		storm_note_bytes(l, l->readback, bytes);
	return true;
}

/* Graphs' buffers ----------------------------------------------------------------------------- */

void storm_uses_add(struct storm_lane *l, struct storm_uses *u, struct storm_buffer *b)
{
	uint32_t slot = (uint32_t)(b - l->buffer);

	for (unsigned i = 0; i < u->count && i < USES_MAX; i++)
		if (u->use[i].buffer == slot && u->use[i].gen == b->gen)
			return;
	if (u->count < USES_MAX) {
		u->use[u->count].buffer = slot;
		u->use[u->count].gen = b->gen;
	}
	u->count++; /* more than USES_MAX: never launched */
}

bool storm_uses_live(struct storm_lane *l, const struct storm_uses *u)
{
	if (u->count > USES_MAX)
		return false;
	for (unsigned i = 0; i < u->count; i++) {
		const struct storm_buffer *b = &l->buffer[u->use[i].buffer];

		if (!b->live || b->gen != u->use[i].gen)
			return false;
	}
	return true;
}

void storm_uses_touch(struct storm_lane *l, const struct storm_uses *u, int on)
{
	for (unsigned i = 0; i < u->count; i++)
		storm_touch(l, &l->buffer[u->use[i].buffer], on);
}
