/*
 * mover - see mover.h
 *
 * A pipeline on one stream. Leaving: while a copied chunk is unmapped and released, the copies of
 * the next ones are under way; if all chunks leave, the first copies run while the other chunks are
 * hashed. Returning: while one chunk is copied, the next is created and mapped. So the link is busy
 * as long as the calls per chunk take less time than its copy. Only this file changes a chunk's
 * state; after any failure the chunk is either resident or evicted, and the books agree.
 */
#include "runtime/swap/mover.h"
#include "runtime/contexts/sticky.h"
#include "runtime/contexts/usable.h"
#include "runtime/memory/memory.h"
#include "runtime/session/session.h"
#include "runtime/session/state.h"
#include "runtime/store/store.h"
#include "runtime/swap/copier.h"
#include "runtime/swap/piece.h"

#include "base/log.h"
#include "base/step.h"

#include <stdlib.h>
#include <string.h>

struct job {
	struct sl_gpu *gpu;
	struct sl_copier copier;
	const uint32_t *stop;
	struct sl_moved *out;
	bool failed; /* no further piece is begun */
};

void (*sl_mover_on_left)(const struct sl_gpu *gpu, const struct sl_moved *moved);

static void set_where(struct sl_host_copy *host, enum sl_where where)
{
	__atomic_store_n(&host->where, (uint8_t)where, __ATOMIC_RELEASE);
}

/* Only the first failure is reported. */
static void fail(struct job *job, enum sl_wire_swap_cause cause, CUresult r)
{
	job->failed = true;
	if (job->out->cause != SL_WIRE_SWAP_NO_CAUSE)
		return;
	job->out->cause = cause;
	job->out->driver_result = r;
}

static void fail_driver(struct job *job, CUresult r)
{
	fail(job, sl_sticky_is(r) ? SL_WIRE_SWAP_BROKEN : SL_WIRE_SWAP_DRIVER, r);
}

static bool is_stopped(const struct job *job)
{
	return job->stop && __atomic_load_n(job->stop, __ATOMIC_RELAXED);
}

/* --- where copies are made -------------------------------------------------------------------- */

/* In the first context that works. No context is destroyed now: that needs the control lock. */
static bool open_copier(struct job *job)
{
	CUcontext contexts[SL_USABLE_MAX];
	bool broken;
	size_t count = sl_usable_list(job->gpu, contexts, &broken);
	CUresult r = CUDA_SUCCESS;

	for (size_t i = 0; i < count; i++) {
		if (!sl_usable_is_on(contexts[i], job->gpu))
			continue;
		r = sl_copier_open(&job->copier, contexts[i]);
		if (r == CUDA_SUCCESS)
			return true;
	}
	if (r != CUDA_SUCCESS && !broken)
		fail_driver(job, r);
	else
		fail(job, broken ? SL_WIRE_SWAP_BROKEN : SL_WIRE_SWAP_NOTHING, r);
	return false;
}

/* --- evicting --------------------------------------------------------------------------------- */

static void stays(struct sl_piece *piece)
{
	set_where(piece->host, SL_RESIDENT);
	if (piece->kind->settle)
		piece->kind->settle(piece);
}

/* If the copy's end is unknown its places are abandoned, since the copy may still write to them. */
static void give_up_copy(struct job *job, struct sl_piece *piece)
{
	if (!sl_copier_settle(&job->copier))
		sl_store_lose(piece->host);
}

static CUresult begin_copy_out(struct job *job, struct sl_piece *piece)
{
	struct sl_host_copy *host = piece->host;
	CUresult r;

	/* From here on the copy on the host is neither the old nor the new contents. */
	host->valid = host->hashed = false;
	sl_piece_note_copy(piece);
	r = sl_copier_out(&job->copier, piece->address, host, &piece->ticket);
	sl_step(C_EVICT_COPYING);
	return r;
}

/* Must the piece be copied? A clean piece may have lost its copy to another that needed room. */
static bool needs_copy(struct sl_piece *piece)
{
	if (piece->class == SL_PIECE_CLEAN && !piece->host->valid)
		piece->class = SL_PIECE_DIRTY;
	return piece->class == SL_PIECE_DIRTY;
}

static bool has_place(const struct job *job, struct sl_piece *piece)
{
	return piece->host->places.count ||
	       sl_store_take(piece->bytes, job->gpu->ordinal, piece->host);
}

static void begin_out(struct job *job, struct sl_piece *piece)
{
	struct sl_host_copy *host = piece->host;
	CUresult r = CUDA_SUCCESS;

	if (piece->begun)
		return;
	piece->copying = needs_copy(piece);
	if (piece->copying && !has_place(job, piece)) {
		/* Smaller pieces may still find room. */
		fail(job, SL_WIRE_SWAP_NO_HOST, CUDA_SUCCESS);
		job->failed = false;
		stays(piece);
		return;
	}
	set_where(host, SL_LEAVING);
	piece->begun = true;
	host->zero = piece->class == SL_PIECE_ZERO;
	if (host->zero)
		sl_store_give(host);
	if (piece->copying)
		r = begin_copy_out(job, piece);
	if (r == CUDA_SUCCESS)
		return;
	fail_driver(job, r);
	piece->begun = false;
	give_up_copy(job, piece);
	stays(piece);
}

/* The contents are on the host. */
static void leave(struct job *job, struct sl_piece *piece)
{
	bool absent;
	CUresult r = piece->kind->detach(piece, &absent);

	if (r == CUDA_SUCCESS || absent) {
		set_where(piece->host, SL_EVICTED);
		sl_session_evicted(job->gpu, (int64_t)piece->bytes);
	} else {
		stays(piece);
	}
	if (r != CUDA_SUCCESS) {
		fail_driver(job, r);
		return;
	}
	job->out->left_bytes += piece->bytes;
	switch ((enum sl_piece_class)piece->class) {
	case SL_PIECE_ZERO: job->out->zero_bytes += piece->bytes; break;
	case SL_PIECE_CLEAN: job->out->clean_bytes += piece->bytes; break;
	case SL_PIECE_DIRTY: job->out->moved_bytes += piece->bytes; break;
	}
}

static void finish_out(struct job *job, struct sl_piece *piece)
{
	CUresult r = CUDA_SUCCESS;

	if (!piece->begun) {
		stays(piece);
		return;
	}
	if (piece->copying) {
		if (job->out->left_bytes && sl_mover_on_left)
			sl_mover_on_left(job->gpu, job->out);
		r = sl_copier_wait(&job->copier, piece->ticket);
	}
	if (r != CUDA_SUCCESS) {
		fail_driver(job, r);
		give_up_copy(job, piece);
	}
	if (r == CUDA_SUCCESS && piece->copying) {
		piece->host->valid = true;
		piece->host->hashed = piece->hashed;
		piece->host->hash = piece->hash;
		sl_step(C_EVICT_COPIED);
	}
	if (is_stopped(job))
		fail(job, SL_WIRE_SWAP_ABORTED, CUDA_SUCCESS);
	if (job->failed)
		stays(piece);
	else
		leave(job, piece);
}

/* Begins pieces ahead of the one that is waited for. */
static void run(struct job *job, struct sl_pieces *pieces,
	void (*begin)(struct job *, struct sl_piece *),
	void (*finish)(struct job *, struct sl_piece *))
{
	size_t begun = 0;

	for (size_t i = 0; i < pieces->count; i++) {
		while (!job->failed && begun < pieces->count &&
			begun < i + SL_COPIER_DEPTH)
			begin(job, &pieces->at[begun++]);
		finish(job, &pieces->at[i]);
	}
}

static uint64_t resident_bytes(struct sl_gpu *gpu)
{
	uint64_t bytes;

	sl_session_lock();
	bytes = sl_sub_sat(gpu->backing_bytes, gpu->evicted_bytes);
	sl_session_unlock();
	return bytes;
}

static void list_pieces(
	struct sl_pieces *pieces, const struct sl_gpu *gpu, enum sl_where where)
{
	sl_pieces_of_blocks(pieces, gpu, where);
	sl_handles_to_pieces(pieces, gpu, where);
}

/* Called if all pieces leave: hashes a few that have probably changed and begins their copies.
 * Meanwhile the caller can hash the rest, returned in `others`. A piece for which the host has no
 * room is skipped here; zero pieces that leave may give up places for it. */
static void begin_likely(
	struct job *job, struct sl_pieces *pieces, struct sl_pieces *others)
{
	struct sl_pieces likely = {.at = pieces->at};

	likely.count = sl_pieces_likely(pieces, SL_COPIER_DEPTH);
	sl_pieces_classify(&likely, pieces->at[0].dev);
	for (size_t i = 0; i < likely.count && !job->failed; i++)
		if (needs_copy(&likely.at[i]) && has_place(job, &likely.at[i]))
			begin_out(job, &likely.at[i]);
	others->at += likely.count;
	others->count -= likely.count;
}

/* Decides which pieces leave, and in which order. If not all leave, that is known only after all
 * are classified. */
static void sort_out(struct job *job, struct sl_pieces *pieces, uint64_t bytes)
{
	struct sl_pieces others = *pieces;

	if (bytes >= sl_pieces_bytes(pieces))
		begin_likely(job, pieces, &others);
	sl_pieces_classify(&others, pieces->at[0].dev);
	sl_pieces_choose(pieces, bytes);
}

/* All pieces that could leave, with addresses, reduced to those that should, in order. */
static void pick(struct job *job, struct sl_pieces *pieces, uint64_t bytes)
{
	CUresult r = CUDA_SUCCESS;
	size_t i = 0;

	list_pieces(pieces, job->gpu, SL_RESIDENT);
	for (; i < pieces->count && r == CUDA_SUCCESS; i++)
		if (pieces->at[i].kind->prepare)
			r = pieces->at[i].kind->prepare(&pieces->at[i]);
	if (r != CUDA_SUCCESS) {
		fail_driver(job, r);
		while (i)
			stays(&pieces->at[--i]);
		pieces->count = 0;
	} else if (!pieces->count) {
		fail(job, SL_WIRE_SWAP_NOTHING, CUDA_SUCCESS);
	} else {
		sort_out(job, pieces, bytes);
	}
}

void sl_mover_evict(
	struct sl_gpu *gpu, uint64_t bytes, const uint32_t *stop, struct sl_moved *out)
{
	struct job job = {.gpu = gpu, .stop = stop, .out = out};
	struct sl_pieces pieces = {0};
	uint64_t before_bytes = resident_bytes(gpu), freed_bytes;

	memset(out, 0, sizeof(*out));
	sl_memory_flush_idle(gpu);
	freed_bytes = sl_sub_sat(before_bytes, resident_bytes(gpu));
	if (freed_bytes >= bytes)
		return;
	sl_store_begin();
	if (open_copier(&job)) {
		pick(&job, &pieces, bytes - freed_bytes);
		run(&job, &pieces, begin_out, finish_out);
		sl_copier_close(&job.copier);
	}
	sl_store_end();
	free(pieces.at);
}

/* --- restoring -------------------------------------------------------------------------------- */

/* Takes a piece off the GPU again after a failure; its contents are still on the host. If a copy
 * may still be running, the piece stays as it is, and the next restore continues with it. */
static void undo_in(struct job *job, struct sl_piece *piece)
{
	CUresult r = CUDA_ERROR_NOT_READY;
	bool absent;

	if (sl_copier_settle(&job->copier))
		r = piece->kind->detach(piece, &absent);
	if (r != CUDA_SUCCESS)
		sl_warning("memory at %#llx stays half-way: error %d", piece->address,
			(int)r);
	set_where(piece->host, SL_EVICTED);
}

static void begin_in(struct job *job, struct sl_piece *piece)
{
	struct sl_host_copy *host = piece->host;
	CUresult r = piece->kind->attach(piece);

	if (r != CUDA_SUCCESS) {
		if (r == CUDA_ERROR_OUT_OF_MEMORY)
			fail(job, SL_WIRE_SWAP_NO_ROOM, r);
		else
			fail_driver(job, r);
		return;
	}
	piece->begun = true;
	set_where(host, SL_RETURNING);
	/* New memory from the driver has undefined contents. */
	r = host->zero ? sl_copier_zero(&job->copier, piece->address, piece->bytes,
				 &piece->ticket)
		       : sl_copier_in(&job->copier, piece->address, host, &piece->ticket);
	sl_step(C_RETURNING_COPYING);
	if (r == CUDA_SUCCESS)
		return;
	fail_driver(job, r);
	piece->begun = false;
	undo_in(job, piece);
}

static void finish_in(struct job *job, struct sl_piece *piece)
{
	struct sl_host_copy *host = piece->host;
	CUresult r;

	if (!piece->begun)
		return;
	r = sl_copier_wait(&job->copier, piece->ticket);
	if (r != CUDA_SUCCESS) {
		fail_driver(job, r);
		undo_in(job, piece);
		return;
	}
	job->out->left_bytes += piece->bytes;
	if (host->zero)
		job->out->zero_bytes += piece->bytes;
	else
		job->out->moved_bytes += piece->bytes;
	if (piece->kind->arrive)
		piece->kind->arrive(piece);
	set_where(host, SL_RESIDENT);
	sl_session_evicted(job->gpu, -(int64_t)piece->bytes);
	sl_step(C_RETURNED);
}

/* Keeps as many evicted pieces as fit into `bytes`. The others stay unchanged. */
static void keep_what_fits(struct sl_pieces *pieces, uint64_t bytes)
{
	size_t kept = 0;

	for (size_t i = 0; i < pieces->count; i++) {
		if (pieces->at[i].bytes > bytes)
			continue;
		bytes -= pieces->at[i].bytes;
		pieces->at[kept++] = pieces->at[i];
	}
	pieces->count = kept;
}

void sl_mover_restore(struct sl_gpu *gpu, uint64_t bytes, struct sl_moved *out)
{
	struct job job = {.gpu = gpu, .out = out};
	struct sl_pieces pieces = {0};

	memset(out, 0, sizeof(*out));
	sl_store_begin();
	list_pieces(&pieces, gpu, SL_EVICTED);
	keep_what_fits(&pieces, bytes);
	if (pieces.count && open_copier(&job)) {
		run(&job, &pieces, begin_in, finish_in);
		sl_copier_close(&job.copier);
	}
	if (pieces.lacking)
		fail(&job, SL_WIRE_SWAP_NO_HOST, CUDA_ERROR_OUT_OF_MEMORY);
	sl_store_end();
	free(pieces.at);
}

uint64_t sl_mover_evictable(struct sl_gpu *gpu)
{
	struct sl_pieces pieces = {0};
	uint64_t bytes;

	list_pieces(&pieces, gpu, SL_RESIDENT);
	bytes = sl_pieces_bytes(&pieces);
	free(pieces.at);
	return bytes;
}
