/*
 * shrink - the smallest part of a failing sequence that still fails
 *
 * Delta debugging: it leaves out the steps after the difference and unrelated workers, then ever
 * smaller pieces, each time running both sides in new processes. A part counts as failing when
 * the same kind of step differs, so that one fault does not turn into another on the way.
 */
#include "compare.h"

#include "prog.h"

#include <string.h>

struct hunt {
	struct storm_sides *sides;
	struct storm_sequence *q;
	struct storm_difference *d;
	uint64_t until_ms;
	unsigned op, tries;
};

/* Keeps the steps for which keep[] says so, if that still fails. */
static bool try(struct hunt *h, const bool *keep)
{
	struct storm_sequence part = {.workers = h->q->workers};
	struct storm_difference d = {.at = 0};
	bool fails;

	memcpy(part.worker, h->q->worker, sizeof(part.worker));
	for (size_t i = 0; i < h->q->count; i++)
		if (keep[i])
			storm_add(&part, &h->q->step[i]);
	storm_number(&part);
	h->tries++;
	storm_compare(h->sides, &part, &d);
	fails = d.verdict == h->d->verdict && part.count && part.step[d.at].op == h->op;
	if (fails) {
		storm_free(h->q);
		*h->q = part;
		*h->d = d;
	} else {
		storm_free(&part);
	}
	return fails;
}

static bool time_left(const struct hunt *h)
{
	return prog_now_ms() < h->until_ms;
}

/* Nothing after the difference, and of other workers nothing, or only the linked ones. */
static void cut(struct hunt *h)
{
	static bool keep[1 << 20];
	unsigned worker = h->q->step[h->d->at].worker;
	bool linked = h->q->worker[worker].shape == STORM_SHAPE_LINKED;

	if (h->q->count > sizeof(keep))
		return;
	for (unsigned mild = 0; mild < 2; mild++) {
		for (size_t i = 0; i < h->q->count; i++) {
			unsigned of = h->q->step[i].worker;

			keep[i] = i <= h->d->at &&
				  (mild || of == worker ||
					  (linked && h->q->worker[of].shape ==
							     STORM_SHAPE_LINKED));
		}
		if (try(h, keep))
			return;
	}
}

/* Leaves out each piece of `size` steps in turn, last first; true if any could go. */
static bool sweep(struct hunt *h, size_t size)
{
	static bool keep[1 << 20];
	size_t end = h->q->count;
	bool any = false;

	while (end && time_left(h)) {
		size_t start = end > size ? end - size : 0;

		if (start == 0 && end >= h->q->count)
			break; /* the whole */
		for (size_t i = 0; i < h->q->count; i++)
			keep[i] = i < start || i >= end;
		if (try(h, keep))
			any = true;
		end = start;
		if (end > h->q->count)
			end = h->q->count;
	}
	return any;
}

void storm_shrink(struct storm_sides *sides, struct storm_sequence *q,
	struct storm_difference *d, unsigned seconds)
{
	struct hunt h = {.sides = sides,
		.q = q,
		.d = d,
		.until_ms = prog_now_ms() + seconds * 1000ull,
		.op = q->step[d->at].op};
	size_t size;

	cut(&h);
	for (size = (q->count + 1) / 2; size && time_left(&h);) {
		bool any = sweep(&h, size);

		printf("  %zu steps left after %u tries\n", q->count, h.tries);
		fflush(stdout);
		if (size == 1 && !any)
			break;
		size = size > q->count ? q->count : size;
		size = size > 1 ? size / 2 : 1;
	}
	storm_compare(sides, q, d);
}
