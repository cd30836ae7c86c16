/*
 * piece - one thing that the mover moves as a whole: a chunk of a region or slab, or a handle of
 * the program's
 *
 * What differs between them is behind a table of calls. Made anew for each order; inside the closed
 * control lock their owners neither go nor move.
 */
#ifndef SL_RUNTIME_SWAP_PIECE_H
#define SL_RUNTIME_SWAP_PIECE_H

#include "runtime/store/host_copy.h"

struct sl_gpu;
struct sl_piece;

struct sl_piece_kind {
	/* Gives it an address for copies to the host. NULL: it has one. */
	CUresult (*prepare)(struct sl_piece *piece);
	/* Off the GPU, and back, with an address for copies: as sl_backing_detach and
	 * sl_backing_attach. */
	CUresult (*detach)(struct sl_piece *piece, bool *absent);
	CUresult (*attach)(struct sl_piece *piece);
	/* It stays on the GPU, copies are over: what was there for them goes. Twice does no harm.
	 * NULL: nothing was. */
	void (*settle)(struct sl_piece *piece);
	/* The same for one that has come back: it is as it was before it left. NULL: as settle. */
	void (*arrive)(struct sl_piece *piece);
};

/* The order in which they leave: what need not cross the link goes first. */
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
	bool changed;        /* the host has a copy, of something else */
	struct sl_hash hash; /* of what is on the GPU now */
};

struct sl_pieces {
	struct sl_piece *at;
	size_t count, room;
	bool lacking; /* no host memory for all of them */
};

/* Leaves out what is not there for it, and notes that. */
void sl_pieces_add(struct sl_pieces *pieces, const struct sl_piece *piece);
/* Chunks of regions and slabs of the GPU, in that state and not held. */
void sl_pieces_of_blocks(
	struct sl_pieces *pieces, const struct sl_gpu *gpu, enum sl_where where);

/* The program's handles charged to the GPU that are in that state and may leave, or must come
 * back (handles.c). */
void sl_handles_to_pieces(
	struct sl_pieces *pieces, const struct sl_gpu *gpu, enum sl_where where);

/* Finds out what is zero, clean, dirty. The contexts are idle; leaves the current context as it
 * was. Whatever fails, a piece that nothing is known of is dirty. */
void sl_pieces_classify(struct sl_pieces *pieces, CUdevice dev);
/* Brings those to the front that are likely to have changed, at least one and at most so many,
 * together little more than a thirty-second of all bytes; returns how many. None of them needs room
 * on the host while another has a place there: it might take that from a copy which is still
 * good. */
size_t sl_pieces_likely(struct sl_pieces *pieces, size_t most);
/* Keeps those that together have at least bytes, in the order in which they are to leave; all if
 * they have less. Few of them, and little more than wanted. Of one class those come first whose
 * copy has begun, by ticket. The others are settled. */
void sl_pieces_choose(struct sl_pieces *pieces, uint64_t bytes);
/* It is about to be copied: counts how often in a row it had changed. */
void sl_piece_note_copy(struct sl_piece *piece);
uint64_t sl_pieces_bytes(const struct sl_pieces *pieces);

/* Where hashes come from; tests put something else there. */
struct sl_piece_hasher {
	bool (*ready)(CUdevice dev, CUcontext *ctx);
	CUresult (*run)(CUcontext ctx, struct sl_hash_item *items, uint32_t count);
};
extern struct sl_piece_hasher sl_piece_hasher;

#endif
