/*
 * tract - see tract.h
 *
 * Shelves have lists by size, four for each power of two, so finding a cut takes a look at a few
 * words. In the class of the wanted size the first cuts are compared; every cut of a higher class
 * fits.
 */
#include "runtime/memory/tract.h"

#include <stdlib.h>

/* Cuts of one class that are compared. */
#define COMPARED_MAX 16

static struct sl_cut *cut_of(struct sl_extent *extent)
{
	return SL_CONTAINER_OF(extent, struct sl_cut, extent);
}

/* --- records ---------------------------------------------------------------------------------- */

static struct sl_cut *new_cut(struct sl_tract *tract)
{
	struct sl_cut *cut = calloc(1, sizeof(*cut));

	if (!cut || !sl_extents_promise(&tract->cuts)) {
		free(cut);
		return NULL;
	}
	cut->tract = tract;
	sl_list_init(&cut->in_class);
	sl_list_init(&cut->in_order);
	return cut;
}

struct sl_tract *sl_tract_new(struct sl_stock *stock, struct sl_space *space)
{
	struct sl_tract *tract = calloc(1, sizeof(*tract));
	struct sl_cut *cut;

	if (!tract)
		return NULL;
	tract->block.kind = SL_BLOCK_TRACT;
	tract->block.space = space;
	tract->stock = stock;
	sl_list_init(&tract->block.in_hands);
	sl_list_init(&tract->in_space);
	sl_list_init(&tract->in_stock);
	cut = new_cut(tract);
	if (!cut) {
		sl_tract_free(tract);
		return NULL;
	}
	sl_extents_put(&tract->cuts, &cut->extent);
	return tract;
}

void sl_tract_free(struct sl_tract *tract)
{
	for (size_t i = 0; i < tract->cuts.count; i++)
		free(cut_of(tract->cuts.at[i]));
	free(tract->cuts.at);
	free(tract);
}

struct sl_cut *sl_tract_whole(struct sl_tract *tract)
{
	struct sl_cut *cut = cut_of(tract->cuts.at[0]);

	cut->extent.address = tract->block.backing.base;
	cut->extent.bytes = tract->block.backing.bytes;
	return cut;
}

bool sl_tract_is_empty(const struct sl_tract *tract)
{
	const struct sl_cut *cut = cut_of(tract->cuts.at[0]);

	return tract->cuts.count == 1 && cut->shelf && !cut->shelf->stream;
}

struct sl_cut *sl_tract_cut(const struct sl_tract *tract, CUdeviceptr address)
{
	struct sl_extent *extent = sl_extents_at(&tract->cuts, address);

	return extent ? cut_of(extent) : NULL;
}

/* --- shelves ---------------------------------------------------------------------------------- */

static unsigned int class_of(uint64_t bytes)
{
	uint64_t units = bytes / SL_CUT_GRAIN;
	unsigned int power;

	if (units < 4)
		return (unsigned int)units;
	power = 63 - (unsigned int)__builtin_clzll(units);
	return 4 * (power - 1) + (unsigned int)(units >> (power - 2) & 3);
}

struct sl_shelf *sl_shelf_find(struct sl_link *shelves, const struct sl_space *space,
	const struct sl_stream *stream)
{
	sl_list_foreach (link, shelves) {
		struct sl_shelf *shelf = SL_LIST_ENTRY(link, struct sl_shelf, link);

		if (shelf->space == space && shelf->stream == stream)
			return shelf;
	}
	return NULL;
}

struct sl_shelf *sl_shelf_of(
	struct sl_link *shelves, struct sl_space *space, struct sl_stream *stream)
{
	struct sl_shelf *shelf = sl_shelf_find(shelves, space, stream);

	if (shelf)
		return shelf;
	shelf = calloc(1, sizeof(*shelf));
	if (!shelf)
		return NULL;
	shelf->space = space;
	shelf->stream = stream;
	if (stream)
		stream->users++;
	sl_list_init(&shelf->order);
	for (int i = 0; i < SL_SHELF_CLASSES; i++)
		sl_list_init(&shelf->of_class[i]);
	sl_list_push_head(shelves, &shelf->link);
	return shelf;
}

void sl_shelf_free(struct sl_shelf *shelf)
{
	sl_list_unlink(&shelf->link);
	if (shelf->stream)
		sl_stream_let_go(shelf->stream);
	free(shelf);
}

static void enter_class(struct sl_cut *cut)
{
	unsigned int class = class_of(cut->extent.bytes);

	sl_list_push_head(&cut->shelf->of_class[class], &cut->in_class);
	cut->shelf->filled[class / 64] |= 1ull << class % 64;
}

/* Before the cut's size changes. */
static void leave_class(struct sl_cut *cut)
{
	unsigned int class = class_of(cut->extent.bytes);

	sl_list_unlink(&cut->in_class);
	if (sl_list_is_empty(&cut->shelf->of_class[class]))
		cut->shelf->filled[class / 64] &= ~(1ull << class % 64);
}

static void unshelve(struct sl_cut *cut)
{
	leave_class(cut);
	sl_list_unlink(&cut->in_order);
	cut->shelf = NULL;
}

/* The smallest of the first cuts of the class that has the bytes. */
static struct sl_cut *best_of_class(
	struct sl_shelf *shelf, unsigned int class, uint64_t bytes)
{
	struct sl_cut *best = NULL;
	int compared = 0;

	sl_list_foreach (link, &shelf->of_class[class]) {
		struct sl_cut *cut = SL_LIST_ENTRY(link, struct sl_cut, in_class);

		if (compared++ == COMPARED_MAX)
			break;
		if (cut->extent.bytes >= bytes &&
			(!best || cut->extent.bytes < best->extent.bytes))
			best = cut;
	}
	return best;
}

/* The lowest filled class from `from` on, or SL_SHELF_CLASSES. */
static unsigned int filled_from(const struct sl_shelf *shelf, unsigned int from)
{
	uint64_t word;

	while (from < SL_SHELF_CLASSES) {
		word = shelf->filled[from / 64] >> from % 64;
		if (word)
			return from + (unsigned int)__builtin_ctzll(word);
		from = (from / 64 + 1) * 64;
	}
	return SL_SHELF_CLASSES;
}

struct sl_cut *sl_shelf_best(struct sl_shelf *shelf, uint64_t bytes)
{
	unsigned int class = class_of(bytes);
	struct sl_cut *cut = best_of_class(shelf, class, bytes);

	if (cut)
		return cut;
	class = filled_from(shelf, class + 1);
	return class < SL_SHELF_CLASSES ? best_of_class(shelf, class, bytes) : NULL;
}

/* --- cutting and joining ---------------------------------------------------------------------- */

static struct sl_cut *before(const struct sl_cut *cut)
{
	const struct sl_tract *tract = cut->tract;

	return cut->extent.address == tract->block.backing.base
		       ? NULL
		       : sl_tract_cut(tract, cut->extent.address - 1);
}

static struct sl_cut *behind(const struct sl_cut *cut)
{
	return sl_tract_cut(cut->tract, sl_extent_end(&cut->extent));
}

/* Adds the cut's right neighbour to it; neither is on a shelf. */
static void join(struct sl_cut *cut, struct sl_cut *right)
{
	sl_extents_take(&cut->tract->cuts, &right->extent);
	cut->extent.bytes += right->extent.bytes;
	cut->mark = sl_max_u64(cut->mark, right->mark);
	free(right);
}

void sl_shelf_put(struct sl_shelf *shelf, struct sl_cut *cut, uint64_t mark)
{
	struct sl_cut *left = before(cut), *right = behind(cut);

	cut->mark = mark;
	if (right && right->shelf == shelf) {
		unshelve(right);
		join(cut, right);
	}
	if (left && left->shelf == shelf) {
		unshelve(left);
		join(left, cut);
		cut = left;
	}
	cut->shelf = shelf;
	enter_class(cut);
	sl_list_push_tail(&shelf->order, &cut->in_order);
}

struct sl_cut *sl_shelf_take(struct sl_cut *cut, uint64_t bytes)
{
	struct sl_cut *taken = cut->extent.bytes > bytes ? new_cut(cut->tract) : NULL;

	if (!taken) {
		unshelve(cut);
		return cut;
	}
	/* The rest keeps its record, and its place in the order. */
	leave_class(cut);
	taken->extent = (struct sl_extent){cut->extent.address, bytes};
	taken->mark = cut->mark;
	cut->extent.address += bytes;
	cut->extent.bytes -= bytes;
	enter_class(cut);
	sl_extents_put(&cut->tract->cuts, &taken->extent);
	return taken;
}

void sl_tract_clear(struct sl_tract *tract)
{
	for (size_t i = 0; i < tract->cuts.count; i++) {
		struct sl_cut *cut = cut_of(tract->cuts.at[i]);

		if (cut->shelf)
			unshelve(cut);
	}
}

struct sl_cut *sl_tract_gather(struct sl_tract *tract, struct sl_shelf *any,
	struct sl_shelf *shelf, uint64_t bytes)
{
	struct sl_cut *first = NULL, *right;
	uint64_t sum = 0;

	for (size_t i = 0; i < tract->cuts.count && sum < bytes; i++) {
		struct sl_cut *cut = cut_of(tract->cuts.at[i]);

		if (!cut->shelf || (cut->shelf != any && cut->shelf != shelf)) {
			first = NULL;
			sum = 0;
			continue;
		}
		first = first ? first : cut;
		sum += cut->extent.bytes;
	}
	if (!first || sum < bytes)
		return NULL;
	unshelve(first);
	while (first->extent.bytes < bytes) {
		right = behind(first);
		unshelve(right);
		join(first, right);
	}
	first->shelf = shelf;
	enter_class(first);
	sl_list_push_tail(&shelf->order, &first->in_order);
	return first;
}
