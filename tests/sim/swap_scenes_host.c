/*
 * swap_scenes_host - plays of host memory that is short, and of processes that are stopped
 *
 * 15 GiB are to be shared on each GPU.
 */
#include "swap_stage.h"

/* A of 8 GiB is on the host, all of it in one file, and frees half of that: of 10 GiB set aside there are 2 left for C, who has 5 and
 * is parked. A is asked for its copies and needs the file. */
static uint32_t park_in_vain(struct swap_world *w, uint32_t *c)
{
	uint32_t a;

	stage(w, 1, 10 * GIB);
	a = enter_idle(w, 8 * GIB);
	client(w, a)->one_file = true;
	*c = enter_idle(w, 5 * GIB);
	until(w, 2);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 4);
	w->workload[client(w, a)->workload].size = 4 * GIB;
	swap_free(w, a, 0, 4 * GIB);
	until(w, 5);
	expect(client(w, a)->evicted[0] == 4 * GIB && client(w, a)->store == 8 * GIB,
		"A is not on the host");
	person(w, SL_EVENT_WORKLOAD_PARK, *c);
	until(w, 8);
	expect(w->stats.trims && client(w, *c)->resident[0] == 5 * GIB,
		"A gives what it needs");
	return a;
}

/* Once A has all of it back it can give the file, and is asked for it. */
static void copies_later(struct swap_world *w)
{
	uint32_t c, a = park_in_vain(w, &c);

	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 15);
	expect(client(w, a)->resident[0] == 4 * GIB, "A is not back");
	expect(!client(w, c)->resident[0], "C is not parked, for mere copies");
}

/* It frees the rest of it there instead. */
static void copies_freed(struct swap_world *w)
{
	uint32_t c, a = park_in_vain(w, &c);

	w->workload[client(w, a)->workload].size = 0;
	swap_free(w, a, 0, 4 * GIB);
	until(w, 15);
	expect(!client(w, c)->resident[0], "C is not parked, for mere copies");
}

const struct swap_play swap_plays_host[] = {
	{"copies that could not be given are asked for again", copies_later},
	{"copies of what was freed are asked for again", copies_freed},
	{0},
};
