/* timers - see the header */
#include "cli/simulate/timers.h"

#include <stdlib.h>
#include <string.h>

static bool before(const struct sl_timer *a, const struct sl_timer *b)
{
	return a->at != b->at ? a->at < b->at : a->number < b->number;
}

void sl_timers_fini(struct sl_timers *timers)
{
	free(timers->heap);
	memset(timers, 0, sizeof(*timers));
}

bool sl_timers_add(struct sl_timers *timers, struct sl_timer timer)
{
	uint32_t at = timers->count;

	if (at == timers->room) {
		uint32_t room = at ? 2 * at : 256;
		struct sl_timer *heap = realloc(timers->heap, room * sizeof(*heap));

		if (!heap)
			return false;
		timers->heap = heap;
		timers->room = room;
	}
	timer.number = ++timers->added;
	timers->kinds[timer.kind]++;
	timers->count++;
	for (; at && before(&timer, &timers->heap[(at - 1) / 2]); at = (at - 1) / 2)
		timers->heap[at] = timers->heap[(at - 1) / 2];
	timers->heap[at] = timer;
	return true;
}

const struct sl_timer *sl_timers_first(const struct sl_timers *timers)
{
	return timers->count ? &timers->heap[0] : NULL;
}

void sl_timers_drop_first(struct sl_timers *timers)
{
	struct sl_timer last;
	uint32_t at = 0;

	timers->kinds[timers->heap[0].kind]--;
	last = timers->heap[--timers->count];
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= timers->count)
			break;
		if (child + 1 < timers->count &&
			before(&timers->heap[child + 1], &timers->heap[child]))
			child++;
		if (!before(&timers->heap[child], &last))
			break;
		timers->heap[at] = timers->heap[child];
		at = child;
	}
	if (timers->count)
		timers->heap[at] = last;
}
