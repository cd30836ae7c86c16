/*
 * later - see the header
 */
#include "later.h"

static bool sooner(const struct sim_later *a, const struct sim_later *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void exchange(struct sim_later *a, struct sim_later *b)
{
	struct sim_later t = *a;

	*a = *b;
	*b = t;
}

bool sim_later_put(struct sim_queue *queue, struct sim_later later)
{
	struct sim_later *room = queue->room;
	uint32_t at = queue->count;

	if (at == SIM_LATER_MAX)
		return false;
	later.order = ++queue->order;
	room[queue->count++] = later;
	for (; at && sooner(&room[at], &room[(at - 1) / 2]); at = (at - 1) / 2)
		exchange(&room[at], &room[(at - 1) / 2]);
	return true;
}

struct sim_later sim_later_take(struct sim_queue *queue)
{
	struct sim_later *room = queue->room;
	struct sim_later first = room[0];
	uint32_t at = 0;

	room[0] = room[--queue->count];
	for (;;) {
		uint32_t least = at;

		for (uint32_t child = 2 * at + 1; child <= 2 * at + 2; child++) {
			if (child < queue->count && sooner(&room[child], &room[least]))
				least = child;
		}
		if (least == at)
			return first;
		exchange(&room[at], &room[least]);
		at = least;
	}
}

sl_ns sim_later_next(const struct sim_queue *queue)
{
	return queue->count ? queue->room[0].at : SL_NS_NEVER;
}
