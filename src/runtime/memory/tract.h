/*
 * tract - device memory of a pool, cut to size
 *
 * A tract is one backing that a pool (stock.h) took as a whole. Cuts lie in it side by side and
 * cover it. A cut is live, or on a shelf. Each space has one shelf of a stock for cuts that any
 * stream may use, and one per stream for cuts freed there: the stream itself may use these at once,
 * other streams when the stream has reached the cut's mark. Neighbours on the same shelf are one
 * cut.
 *
 * Everything here is called under the books' lock and calls no driver. Bytes; cuts are whole
 * multiples of SL_CUT_GRAIN.
 */
#ifndef SL_RUNTIME_MEMORY_TRACT_H
#define SL_RUNTIME_MEMORY_TRACT_H

#include "runtime/memory/block.h"
#include "runtime/memory/extents.h"

#define SL_CUT_GRAIN 512u
/* Four classes for each power of two. */
#define SL_SHELF_CLASSES 192

struct sl_stock;

struct sl_shelf {
	struct sl_link link; /* the stock's shelves */
	struct sl_space *space;
	struct sl_stream
		*stream;      /* NULL: any stream may use its cuts; otherwise in use */
	struct sl_link order; /* its cuts, the longest freed first */
	struct sl_link of_class[SL_SHELF_CLASSES];
	uint64_t filled[SL_SHELF_CLASSES / 64]; /* classes with cuts */
};

struct sl_tract {
	struct sl_block block;
	struct sl_link in_space, in_stock;
	struct sl_stock *stock;
	struct sl_extents cuts; /* struct sl_cut.extent */
	uint32_t live;          /* cuts that are on no shelf */
};

struct sl_cut {
	struct sl_extent extent;
	struct sl_tract *tract;
	struct sl_shelf *shelf; /* NULL: live, or being freed */
	struct sl_link in_class, in_order;
	uint64_t mark;  /* on a stream's shelf: of its free */
	uint64_t bytes; /* as asked */
	uint64_t id;    /* never reused */
	bool live, sync_memops;
};

static inline struct sl_tract *sl_tract_of(struct sl_block *block)
{
	return SL_CONTAINER_OF(block, struct sl_tract, block);
}

/* A tract without memory, with one cut that covers nothing yet. NULL: no host memory. Needs no
 * lock. */
struct sl_tract *sl_tract_new(struct sl_stock *stock, struct sl_space *space);
/* Frees the records; the backing is gone. Needs no lock. */
void sl_tract_free(struct sl_tract *tract);
/* Takes the tract's cuts off their shelves. */
void sl_tract_clear(struct sl_tract *tract);
/* The first cut, which now covers the whole backing, on no shelf. */
struct sl_cut *sl_tract_whole(struct sl_tract *tract);
/* Is all of it one cut that any stream may use? */
bool sl_tract_is_empty(const struct sl_tract *tract);
/* The cut around the address. */
struct sl_cut *sl_tract_cut(const struct sl_tract *tract, CUdeviceptr address);

/* The shelf of the stock for the space and stream, made if needed. NULL: no host memory. */
struct sl_shelf *sl_shelf_of(
	struct sl_link *shelves, struct sl_space *space, struct sl_stream *stream);
/* The same, or NULL if there is none. */
struct sl_shelf *sl_shelf_find(struct sl_link *shelves, const struct sl_space *space,
	const struct sl_stream *stream);
/* Lets an empty shelf go. */
void sl_shelf_free(struct sl_shelf *shelf);
/* A cut of at least so many bytes and little more, or NULL. Constant time. */
struct sl_cut *sl_shelf_best(struct sl_shelf *shelf, uint64_t bytes);
/* Puts a cut that is on no shelf onto this one, and joins it with its neighbours there. */
void sl_shelf_put(struct sl_shelf *shelf, struct sl_cut *cut, uint64_t mark);
/* Takes the first `bytes` of the cut off its shelf; the rest stays. Without host memory for a
 * second record the whole cut is taken. */
struct sl_cut *sl_shelf_take(struct sl_cut *cut, uint64_t bytes);
/* Joins neighbours of the two shelves of one space, anywhere in the tract, until one cut has the
 * bytes; it is then on `shelf`. NULL: not possible. Linear in the tract's cuts. */
struct sl_cut *sl_tract_gather(struct sl_tract *tract, struct sl_shelf *any,
	struct sl_shelf *shelf, uint64_t bytes);

#endif
