/*
 * choose - which chunks leave, and in which order; see piece.h
 *
 * Hashing runs at the speed of the GPU's memory, some fifty times that of the link, so nearly every
 * chunk is hashed. A zero chunk needs no copy and no place; a chunk unchanged since its last copy
 * needs no copy. A chunk that changed many times in a row will probably change again and is not
 * hashed for a few evictions. They are few because a needless copy costs as much as fifty hashes.
 * If all chunks leave, a part that probably needs a copy is hashed first: 1/32 of the bytes, whose
 * copy takes longer than the hash of the rest. A larger part would delay clean chunks, since
 * reading a hash back from the GPU may have to wait for that copy.
 */
#include "runtime/real/real.h"
#include "runtime/swap/piece.h"

#include "base/log.h"

#include <stdlib.h>

/* After N changes in a row (counted up to DIRTY_MAX) a chunk is not hashed in the next N /
 * DIRTY_PER_REST evictions. If it then stops changing, it is copied needlessly at most N / 8 times,
 * plus once to learn its hash. */
#define DIRTY_PER_REST 8
#define DIRTY_MAX      64
/* A chunk's fixed cost (unmap, release, create, map, access: 0.2 to 0.3 ms), in bytes of the
 * link. */
#define CHUNK_COST_BYTES (8 * SL_MIB)
/* 1/LIKELY_SHARE of all bytes is hashed before the rest. */
#define LIKELY_SHARE 32

struct sl_piece_hasher sl_piece_hasher = {
	.ready = sl_hasher_ready,
	.run = sl_hasher_run,
};

/* --- zero, clean, dirty ----------------------------------------------------------------------- */

static bool is_worth_it(struct sl_host_copy *host)
{
	if (!host->rest)
		return true;
	host->rest--;
	return false;
}

static bool is_same(const struct sl_hash *a, const struct sl_hash *b)
{
	return a->low == b->low && a->high == b->high;
}

static void judge(struct sl_piece *piece, const struct sl_hash *hash)
{
	struct sl_host_copy *host = piece->host;
	bool known = host->valid && host->hashed;

	piece->hashed = true;
	piece->hash = *hash;
	if (hash->zero)
		piece->class = SL_PIECE_ZERO;
	else if (known && is_same(&host->hash, hash))
		piece->class = SL_PIECE_CLEAN;
	piece->changed = known && piece->class == SL_PIECE_DIRTY;
	if (piece->class != SL_PIECE_DIRTY)
		host->dirty = 0;
}

void sl_piece_note_copy(struct sl_piece *piece)
{
	struct sl_host_copy *host = piece->host;

	if (!piece->changed)
		return;
	if (host->dirty < DIRTY_MAX)
		host->dirty++;
	host->rest = host->dirty / DIRTY_PER_REST;
}

static void hash_all(struct sl_pieces *pieces, CUdevice dev, struct sl_hash_item *items,
	struct sl_piece **of)
{
	CUcontext ctx = NULL;
	uint32_t count = 0;
	CUresult r;

	if (!sl_piece_hasher.ready(dev, &ctx))
		return;
	for (size_t i = 0; i < pieces->count; i++) {
		struct sl_piece *piece = &pieces->at[i];

		if (piece->bytes % SL_HASH_UNIT_BYTES || !is_worth_it(piece->host))
			continue;
		of[count] = piece;
		items[count++] = (struct sl_hash_item){
			.address = piece->address, .bytes = piece->bytes};
	}
	r = count ? sl_piece_hasher.run(ctx, items, count) : CUDA_SUCCESS;
	if (r != CUDA_SUCCESS) {
		sl_info("nothing is hashed: error %d", (int)r);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		judge(of[i], &items[i].out);
}

void sl_pieces_classify(struct sl_pieces *pieces, CUdevice dev)
{
	struct sl_hash_item *items = calloc(pieces->count + 1, sizeof(*items));
	struct sl_piece **of = calloc(pieces->count + 1, sizeof(struct sl_piece *));
	CUcontext before = NULL;

	for (size_t i = 0; i < pieces->count; i++)
		pieces->at[i].class = SL_PIECE_DIRTY;
	if (items && of && sl_real.cuCtxGetCurrent(&before) == CUDA_SUCCESS) {
		hash_all(pieces, dev, items, of);
		(void)sl_real.cuCtxSetCurrent(before);
	}
	free(items);
	free(of);
}

/* --- what is likely to be copied -------------------------------------------------------------- */

static bool has_place(const struct sl_piece *piece)
{
	return piece->host->places.count;
}

static int by_descent(uint64_t a, uint64_t b)
{
	return a == b ? 0 : a > b ? -1 : 1;
}

/* The order: first pieces that need no new room on the host. Among these, first the ones that
 * hashing skips now (rest), then those with the most changes in a row. */
static int likely_first(const void *a, const void *b)
{
	const struct sl_piece *x = a, *y = b;

	if (has_place(x) != has_place(y))
		return has_place(x) ? -1 : 1;
	if (!x->host->rest != !y->host->rest)
		return x->host->rest ? -1 : 1;
	if (x->host->dirty != y->host->dirty)
		return by_descent(x->host->dirty, y->host->dirty);
	return by_descent(x->bytes, y->bytes);
}

size_t sl_pieces_likely(struct sl_pieces *pieces, size_t most)
{
	uint64_t wanted_bytes = sl_pieces_bytes(pieces) / LIKELY_SHARE, sum = 0;
	size_t count = 0;

	if (pieces->count)
		qsort(pieces->at, pieces->count, sizeof(*pieces->at), likely_first);
	while (count < sl_min_u64(pieces->count, most) &&
		(!count || sum < wanted_bytes) &&
		has_place(&pieces->at[count]) == has_place(&pieces->at[0]))
		sum += pieces->at[count++].bytes;
	return count;
}

/* --- choosing --------------------------------------------------------------------------------- */

static int order_of(const void *a, const void *b)
{
	const struct sl_piece *x = a, *y = b;

	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	if (x->begun != y->begun)
		return x->begun ? -1 : 1;
	/* Tickets are waited for in the order they were given, since their events are reused
	 * (copier.h). */
	if (x->begun)
		return by_descent(y->ticket, x->ticket);
	return by_descent(x->bytes, y->bytes);
}

/* At most little more than wanted: better a slightly larger piece than many small ones. */
static bool is_fitting(uint64_t bytes, uint64_t wanted_bytes)
{
	return bytes <= wanted_bytes ||
	       bytes - wanted_bytes <= wanted_bytes / 4 + CHUNK_COST_BYTES;
}

/* Cost of the copies out and back. */
static uint64_t cost_of(const struct sl_piece *piece)
{
	return piece->bytes * piece->class;
}

/* Unmarks pieces that the last one made unnecessary, the most expensive first. */
static void unmark(struct sl_pieces *pieces, uint64_t surplus_bytes)
{
	for (size_t i = pieces->count; i--;) {
		struct sl_piece *piece = &pieces->at[i];

		if (!piece->chosen || piece->bytes > surplus_bytes)
			continue;
		piece->chosen = false;
		surplus_bytes -= piece->bytes;
	}
}

static void mark(struct sl_pieces *pieces, uint64_t bytes)
{
	struct sl_piece *best = NULL;
	uint64_t sum = 0;

	for (size_t i = 0; i < pieces->count && sum < bytes; i++) {
		struct sl_piece *piece = &pieces->at[i];

		piece->chosen = is_fitting(piece->bytes, bytes - sum);
		sum += piece->chosen ? piece->bytes : 0;
	}
	/* Each remaining piece is larger than what is missing. */
	for (size_t i = 0; i < pieces->count && sum < bytes; i++)
		if (!pieces->at[i].chosen &&
			(!best || cost_of(&pieces->at[i]) < cost_of(best)))
			best = &pieces->at[i];
	if (best) {
		best->chosen = true;
		sum += best->bytes;
	}
	unmark(pieces, sl_sub_sat(sum, bytes));
}

void sl_pieces_choose(struct sl_pieces *pieces, uint64_t bytes)
{
	size_t kept = 0;

	if (pieces->count)
		qsort(pieces->at, pieces->count, sizeof(*pieces->at), order_of);
	mark(pieces, bytes);
	for (size_t i = 0; i < pieces->count; i++) {
		struct sl_piece *piece = &pieces->at[i];

		if (piece->chosen) {
			pieces->at[kept++] = *piece;
		} else if (piece->kind->settle) {
			piece->kind->settle(piece);
		}
	}
	pieces->count = kept;
}

uint64_t sl_pieces_bytes(const struct sl_pieces *pieces)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < pieces->count; i++)
		bytes += pieces->at[i].bytes;
	return bytes;
}
