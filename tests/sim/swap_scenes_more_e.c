/*
 * swap_scenes_more_e - plays of `priority` where memory is moved, too, and of whose turn begins
 *
 * 15 GiB are to be shared on each GPU.
 */
#include "swap_stage.h"

/* A of 10 GiB has its turn. B of 9 waits with 4 of them on the host, and then C of 5. B frees the 4, and all of it is there: that
 * it did nothing while it could not run does not make it give way to C in the turn that it begins. */
static void whole_by_freeing(struct swap_world *w)
{
	uint32_t b, c;

	stage(w, 1, 64 * GIB);
	b = enter(w, (struct swap_workload){.size = 9 * GIB});
	until(w, 3);
	(void)enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 3.2);
	expect(client(w, b)->evicted[0] == 4 * GIB, "B has not left for A");
	c = enter(w, (struct swap_workload){.size = 5 * GIB});
	until(w, 3.5);
	expect(client(w, b)->evicted[0] == 4 * GIB && !client(w, c)->resident[0],
		"B and C do not wait");
	swap_send(w, b,
		(struct sl_event){.type = SL_EVENT_PULSE,
			.pulse = {client(w, b)->id, 300 * SL_MS, 0, 1}});
	w->workload[client(w, b)->workload].size = 5 * GIB;
	swap_free(w, b, 0, 4 * GIB);
	until(w, 3.6);
	expect(client(w, b)->resident[0] == 5 * GIB, "B was moved in its turn");
}

const struct swap_play swap_plays_more_e[] = {
	{"whole by freeing the rest", whole_by_freeing},
	{0},
};
