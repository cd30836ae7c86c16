/*
 * fairshare - see the header
 *
 * Rows are sorted by priority once, through a permutation inside the rows (`order`). So sorting
 * needs no memory, and the caller's order stays. One priority after the other is served. Within it
 * all fractions have the denominator "sum of the parts" and are compared without dividing.
 */
#include "policy/quota/fairshare.h"

#include "policy/mutant.h"

typedef sl_fairshare_wide wide;

/* The rows of one priority: order[first .. end). */
struct bucket {
	struct sl_fairshare_row *rows;
	size_t first, end;
};

static struct sl_fairshare_row *at(const struct bucket *bucket, size_t place)
{
	return &bucket->rows[bucket->rows[place].order];
}

static bool older(const struct sl_fairshare_row *a, const struct sl_fairshare_row *b)
{
	if (a->created != b->created)
		return SL_MUTANT(SHARE_YOUNGER_FIRST,
			a->created<b->created, a->created> b->created);
	return a->id < b->id;
}

/* Before the rounds: by priority. */
static bool by_priority(
	const struct sl_fairshare_row *a, const struct sl_fairshare_row *b)
{
	if (a->priority != b->priority)
		return SL_MUTANT(SHARE_LOW_FIRST, a->priority > b->priority,
			a->priority < b->priority);
	return older(a, b);
}

/* For leftovers: by remainder. */
static bool by_remainder(
	const struct sl_fairshare_row *a, const struct sl_fairshare_row *b)
{
	if (a->remainder != b->remainder)
		return SL_MUTANT(SHARE_SMALL_REMAINDER, a->remainder > b->remainder,
			a->remainder < b->remainder);
	return older(a, b);
}

typedef bool (*before_fn)(
	const struct sl_fairshare_row *a, const struct sl_fairshare_row *b);

static void swap(const struct bucket *bucket, size_t a, size_t b)
{
	uint32_t order = bucket->rows[a].order;

	bucket->rows[a].order = bucket->rows[b].order;
	bucket->rows[b].order = order;
}

/* Sifts the last one to the top: part of a heap sort. */
static void sift(const struct bucket *bucket, size_t top, size_t count, before_fn before)
{
	for (;;) {
		size_t child = 2 * top + 1;

		if (child >= count)
			return;
		if (child + 1 < count && before(at(bucket, bucket->first + child),
						 at(bucket, bucket->first + child + 1)))
			child++;
		if (before(at(bucket, bucket->first + child),
			    at(bucket, bucket->first + top)))
			return;
		swap(bucket, bucket->first + top, bucket->first + child);
		top = child;
	}
}

/* Heap sort: no memory, and n log n for any rows. */
static void sort(const struct bucket *bucket, before_fn before)
{
	size_t count = bucket->end - bucket->first;

	for (size_t top = count / 2; top-- > 0;)
		sift(bucket, top, count, before);
	while (count > 1) {
		count--;
		swap(bucket, bucket->first, bucket->first + count);
		sift(bucket, 0, count, before);
	}
}

static bool borrows(const struct sl_fairshare_row *row)
{
	return row->wants > 0 && SL_MUTANT(SHARE_NONE_BORROWS, row->weight > 0, true);
}

static uint64_t weight_of(const struct sl_fairshare_row *row)
{
	return SL_MUTANT(SHARE_NONE_BORROWS, row->weight, row->weight ? row->weight : 1u);
}

/*
 * part(i) x sum of the weights x 10^6 = 2 weight x 10^6 - usage_ppm x sum, for rows that want more;
 * returns their sum. 0: no row wants more. If no row has a part left because of its usage, the
 * weights alone decide.
 */
static wide parts(const struct bucket *bucket)
{
	wide weights = 0, sum = 0;

	for (size_t i = bucket->first; i < bucket->end; i++)
		weights += borrows(at(bucket, i)) ? weight_of(at(bucket, i)) : 0;
	for (size_t i = bucket->first; i < bucket->end; i++) {
		struct sl_fairshare_row *row = at(bucket, i);
		wide usage = sl_min_u64(row->usage_ppm, SL_FAIRSHARE_PPM) * weights;
		wide twice = (wide)2 * SL_FAIRSHARE_PPM * weight_of(row);

		usage = SL_MUTANT(SHARE_NO_HISTORY, usage, 0);
		row->part = borrows(row) && twice > usage ? (uint64_t)(twice - usage) : 0;
		sum += row->part;
	}
	if (sum || !weights)
		return sum;
	for (size_t i = bucket->first; i < bucket->end; i++)
		at(bucket, i)->part =
			borrows(at(bucket, i)) ? weight_of(at(bucket, i)) : 0;
	return weights;
}

static void give(struct sl_fairshare_row *row, int64_t amount, int64_t *rest)
{
	row->share += amount;
	row->wants -= amount;
	*rest -= amount;
}

/* One round. *again: a row was satisfied, so the others' parts grow. False: no row wants
 * anything. */
static bool give_round(
	const struct bucket *bucket, int64_t unit, int64_t *rest, bool *again)
{
	wide sum = parts(bucket);
	wide whole = (wide)*rest; /* of this round */

	*again = false;
	if (!sum)
		return false;
	for (size_t i = bucket->first; i < bucket->end; i++) {
		struct sl_fairshare_row *row = at(bucket, i);
		wide gives = whole * row->part;

		row->remainder = 0;
		if (!borrows(row))
			continue;
		if ((wide)row->wants * sum <= gives) {
			give(row, row->wants, rest);
			*again = true;
			continue;
		}
		gives /= sum;
		gives -= SL_MUTANT(SHARE_NO_FLOOR, gives % (wide)unit, 0);
		row->remainder = whole * row->part - gives * sum;
		give(row, (int64_t)gives, rest);
	}
	return true;
}

/* What rounding left over: less than a unit for each row. Rows satisfied since do not want it. */
static void give_leftovers(const struct bucket *bucket, int64_t unit, int64_t *rest)
{
	sort(bucket, by_remainder);
	for (size_t i = bucket->first; i<bucket->end && * rest> 0; i++) {
		struct sl_fairshare_row *row = at(bucket, i);
		int64_t piece = unit < *rest ? unit : *rest;

		if (borrows(row))
			give(row, piece < row->wants ? piece : row->wants, rest);
	}
}

static void serve(const struct bucket *bucket, int64_t unit, int64_t *rest)
{
	bool again = true;

	while (*rest > 0) {
		while (again && *rest > 0) {
			if (!give_round(bucket, unit, rest, &again))
				return;
			again = SL_MUTANT(SHARE_ONE_ROUND, again, false);
		}
		if (SL_MUTANT(SHARE_NO_LEFTOVERS, *rest > 0, false))
			give_leftovers(bucket, unit, rest);
		else
			return;
		again = true;
	}
}

/* Sets what it can use, and its share to the quota's part of that. */
static void guarantee(struct sl_fairshare_row *row)
{
	int64_t usable = row->asks > 0 ? row->asks : 0;

	if (SL_MUTANT(SHARE_UNLIMITED, row->limit >= 0 && row->limit < usable, false))
		usable = row->limit;
	row->share = row->quota >= 0 && row->quota < usable ? row->quota : usable;
	row->wants = usable - row->share;
}

void sl_fairshare(
	struct sl_fairshare_row *rows, size_t count, int64_t total, int64_t unit)
{
	struct bucket bucket = {.rows = rows, .end = count};
	int64_t rest = total;

	for (size_t i = 0; i < count; i++) {
		guarantee(&rows[i]);
		rows[i].order = (uint32_t)i;
		rest = rest > rows[i].share ? rest - rows[i].share : 0;
	}
	sort(&bucket, by_priority);
	for (size_t first = 0; first < count && rest > 0; first = bucket.end) {
		int32_t priority = rows[rows[first].order].priority;

		bucket.first = bucket.end = first;
		while (bucket.end < count &&
			rows[rows[bucket.end].order].priority == priority)
			bucket.end++;
		serve(&bucket, unit, &rest);
	}
}
