/*
 * piece - one thing that the mover moves as a whole: a chunk of a region or slab, or a handle of
 * the program's
 *
 * Each kind has a table of calls, which hides the differences. The mover lists the pieces anew for
 * each order, with the control lock closed. Until the lock opens, no owner is freed or changes its
 * address.
 */
#ifndef SL_RUNTIME_SWAP_PIECE_H
#define SL_RUNTIME_SWAP_PIECE_H

#include "runtime/store/host_copy.h"

struct sl_gpu;
struct sl_piece;

struct sl_piece_kind {
	/* Gives the piece an address for copies to the host. NULL: it has one. */
	CUresult (*prepare)(struct sl_piece *piece);
	/* Takes it off the GPU, and back, with an address for copies: like sl_backing_detach and
	 * sl_backing_attach. */
	CUresult (*detach)(struct sl_piece *piece, bool *absent);
	CUresult (*attach)(struct sl_piece *piece);
	/* It stays on the GPU and copies are over: releases what prepare made. Twice does no harm.
	 * NULL: nothing to release. */
	void (*settle)(struct sl_piece *piece);
	/* It has come back: restores the state from before it left. NULL: as settle. */
	void (*arrive)(struct sl_piece *piece);
};

/* The order in which pieces leave: those that need no copy go first. */
enum sl_piece_class { SL_PIECE_ZERO = 0, SL_PIECE_CLEAN, SL_PIECE_DIRTY };

struct sl_piece {
	const struct sl_piece_kind *kind;
	void *owner;
	uint32_t index;
	CUdevice dev;
	CUdeviceptr address;
	uint64_t bytes;
	struct sl_host_copy *host;
	uint64_t ticket; /* of its copy */
	bool copying;
	bool begun;
	bool chosen;
	uint8_t class; /* enum sl_piece_class */
	bool hashed;
	bool changed;        /* the host has an outdated copy */
	struct sl_hash hash; /* of the contents on the GPU now */
};

struct sl_pieces {
	struct sl_piece *at;
	size_t count, room;
	bool lacking; /* a piece is missing: no host memory for its record */
};

/* Adds a copy of piece. Without host memory the piece is left out and `lacking` set. */
void sl_pieces_add(struct sl_pieces *pieces, const struct sl_piece *piece);
/* Adds the chunks of regions and slabs of the GPU that are in that state and not held. */
void sl_pieces_of_blocks(
	struct sl_pieces *pieces, const struct sl_gpu *gpu, enum sl_where where);

/* Adds the program's handles charged to the GPU that are in that state and may leave, or must come
 * back (handles.c). */
void sl_handles_to_pieces(
	struct sl_pieces *pieces, const struct sl_gpu *gpu, enum sl_where where);

/* Finds out which pieces are zero, clean, dirty. The contexts are idle; leaves the current context
 * as it was. A piece whose check fails counts as dirty. */
void sl_pieces_classify(struct sl_pieces *pieces, CUdevice dev);
/* Moves pieces that have probably changed to the front: at least one, at most `most`, together
 * little more than 1/32 of all bytes. Returns their number. While any piece has places on the host,
 * pieces that need new room there are left out: the room could come from a copy that is still
 * good. */
size_t sl_pieces_likely(struct sl_pieces *pieces, size_t most);
/* Reduces the list to few pieces that together have at least `bytes`, and little more, or to all if
 * they have less. They are in the order in which they must leave; within a class those whose copy
 * has begun come first, by ticket. Pieces that stay are settled. */
void sl_pieces_choose(struct sl_pieces *pieces, uint64_t bytes);
/* The piece is about to be copied: counts how often in a row it had changed. */
void sl_piece_note_copy(struct sl_piece *piece);
uint64_t sl_pieces_bytes(const struct sl_pieces *pieces);

/* The source of hashes; tests replace it. */
struct sl_piece_hasher {
	bool (*ready)(CUdevice dev, CUcontext *ctx);
	CUresult (*run)(CUcontext ctx, struct sl_hash_item *items, uint32_t count);
};
extern struct sl_piece_hasher sl_piece_hasher;

#endif
