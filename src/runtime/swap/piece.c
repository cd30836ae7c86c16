/*
 * piece - see piece.h
 */
#include "runtime/swap/piece.h"
#include "runtime/memory/region.h"
#include "runtime/memory/slab.h"
#include "runtime/memory/tract.h"

#include <stdlib.h>

void sl_pieces_add(struct sl_pieces *pieces, const struct sl_piece *piece)
{
	if (pieces->count == pieces->room) {
		size_t room = pieces->room ? 2 * pieces->room : 64;
		struct sl_piece *more = realloc(pieces->at, room * sizeof(*more));

		if (!more) {
			pieces->lacking = true;
			return;
		}
		pieces->at = more;
		pieces->room = room;
	}
	pieces->at[pieces->count++] = *piece;
}

static CUresult detach(struct sl_piece *piece, bool *absent)
{
	return sl_backing_detach(piece->owner, piece->index, absent);
}

static CUresult attach(struct sl_piece *piece)
{
	return sl_backing_attach(piece->owner, piece->index);
}

static const struct sl_piece_kind chunk_kind = {.detach = detach, .attach = attach};

/* Under the books' lock. Held blocks do not leave, but evicted chunks of theirs come back. */
static void add_block(
	struct sl_pieces *pieces, struct sl_block *block, enum sl_where where)
{
	struct sl_backing *backing = &block->backing;

	if (where == SL_RESIDENT && backing->anchors)
		return;
	for (uint32_t i = 0; i < backing->count; i++) {
		struct sl_piece piece = {
			.kind = &chunk_kind,
			.owner = backing,
			.index = i,
			.dev = backing->dev,
			.host = sl_backing_host_copy(backing, i),
		};

		if (!piece.host || piece.host->where != where)
			continue;
		piece.address = sl_backing_chunk(backing, i, &piece.bytes);
		sl_pieces_add(pieces, &piece);
	}
}

void sl_pieces_of_blocks(
	struct sl_pieces *pieces, const struct sl_gpu *gpu, enum sl_where where)
{
	sl_books_lock();
	sl_list_foreach (link, &sl_spaces) {
		struct sl_space *space = SL_LIST_ENTRY(link, struct sl_space, link);

		if (space->gpu != gpu)
			continue;
		/* Memory of a broken context stays until the process ends. */
		if (where == SL_RESIDENT &&
			(space->ending ||
				__atomic_load_n(&space->broken, __ATOMIC_RELAXED)))
			continue;
		sl_list_foreach (at, &space->regions)
			add_block(pieces,
				&SL_LIST_ENTRY(at, struct sl_region, link)->block, where);
		sl_list_foreach (at, &space->leaving)
			add_block(pieces,
				&SL_LIST_ENTRY(at, struct sl_region, link)->block, where);
		sl_list_foreach (at, &space->slabs)
			add_block(pieces, &SL_LIST_ENTRY(at, struct sl_slab, all)->block,
				where);
		sl_list_foreach (at, &space->tracts)
			add_block(pieces,
				&SL_LIST_ENTRY(at, struct sl_tract, in_space)->block,
				where);
		/* These blocks only come back. */
		if (where != SL_EVICTED)
			continue;
		sl_list_foreach (at, &space->in_hands)
			add_block(pieces, SL_LIST_ENTRY(at, struct sl_block, in_hands),
				where);
	}
	sl_books_unlock();
}
