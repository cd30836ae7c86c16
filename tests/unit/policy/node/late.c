/*
 * late - a workload that is bound late: stories of two or three GPUs of 100 bytes
 *
 * Workload w has client 10 * w. Epochs count through a story.
 */
#include "play.h"

#define SWAP  SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0)
#define FIRST 1
#define BOTH  3
/* late: 1, or 0 */
#define ADD(w, mask, r, l, is_late)          \
	EVENT(WORKLOAD_ADD, workload_add,    \
		{.workload = (w),            \
			.gpu_mask = (mask),  \
			.gpu_count = 1,      \
			.request = BYTES(r), \
			.limit = BYTES(l),   \
			.late = (is_late)})
#define LATE(w, mask, r, l) ADD(w, mask, r, l, 1)
#define ON(w, mask, r, l)   ADD(w, mask, r, l, 0)
#define SWAPS(c, w)         EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define CONTEXT(c, a, g)    EVENT(ASK, ask, {c, a, g, 0, SL_NODE_ASK_CONTEXT})

/* 1 is bound late, and 2 has taken the memory that 1 would have had. */
#define TAKEN                                                                     \
	{"a GPU", 0, GPU(0, 100), ""},                                            \
		{"bound late", 0, LATE(1, BOTH, 20, 100), "ADMIT 1 m1 r20 l100"}, \
		{"another GPU", 0, GPU(1, 100), ""},                              \
		{"its process", 0, JOIN(10, 1), ""},                              \
		{"a neighbour", 0, ON(2, FIRST, 0, 100), "ADMIT 2 m1 r0 l100"},   \
		{"its process", 0, JOIN(20, 2), ""},                              \
		{"fills the GPU", 0, ASK(20, 1, 0, 80), "GRANT 20/1 g0 80"},      \
	{                                                                         \
		"has it", 0, COMMIT(20, 1, 80), ""                                \
	}

static void goes_where_there_is_room(void **state)
{
	static const struct play_row rows[] = {
		TAKEN,
		{"more than is left there", 1, ASK(10, 1, 0, 60),
			"ADMIT 1 m2 r20 l100; GRANT 10/1 g1 60"},
		{"has it", 1, COMMIT(10, 2, 60), ""},
		{"the other is empty again", 2, FREED(20, 0, 80), ""},
		{"now it stays, whichever it names", 2, ASK(10, 2, 0, 40),
			"GRANT 10/2 g1 40"},
	};

	PLAY(rows);
}

static void stays_where_there_is_room(void **state)
{
	static const struct play_row rows[] = {
		TAKEN,
		{"no more than is left", 1, ASK(10, 1, 0, 20), "GRANT 10/1 g0 20"},
		{"the other GPU is none of it", 1, ASK(10, 2, 1, 10), ""},
		{"also once it has it", 2, COMMIT(10, 2, 20), ""},
	};

	PLAY(rows);
}

/* The request goes along, so there has to be room for it. */
static void keeps_promises(void **state)
{
	static const struct play_row rows[] = {
		TAKEN,
		{"requests there leave 10", 0, ON(3, 2, 90, 90), "ADMIT 3 m2 r90 l90"},
		{"waits", 1, ASK(10, 1, 0, 60), ""},
		{"they go", 2, REMOVE(3), "ADMIT 1 m2 r20 l100; GRANT 10/1 g1 60"},
		{"what it left is nobody's", 3, ON(4, FIRST, 20, 20),
			"ADMIT 4 m1 r20 l20"},
		{"and what it took is its own", 3, ON(5, 2, 81, 81),
			"REFUSE 5 REQUESTS_TAKEN g1 81 80"},
	};

	PLAY(rows);
}

/* Rather than moving others, which is done only where nothing else helps. */
static void moves_nobody_in_vain(void **state)
{
	static const struct play_row rows[] = {
		{"swap", 0, SETTINGS(.chain = SWAP, .pool_bytes = 400), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"bound late", 0, LATE(1, BOTH, 20, 100), "ADMIT 1 m1 r20 l100"},
		{"another GPU", 0, GPU(1, 100), ""},
		{"its process", 0, SWAPS(10, 1), ""},
		{"a neighbour", 0, ON(2, FIRST, 0, 100), "ADMIT 2 m1 r0 l100"},
		{"its process", 0, SWAPS(20, 2), ""},
		{"fills the GPU", 0, ASK(20, 1, 0, 100), "GRANT 20/1 g0 100"},
		{"has it", 0, COMMIT(20, 1, 100), ""},
		{"within the request", 1, ASK(10, 1, 0, 20),
			"ADMIT 1 m2 r20 l100; GRANT 10/1 g1 20"},
	};

	PLAY(rows);
}

static void others_leave_where_it_goes(void **state)
{
	static const struct play_row rows[] = {
		{"swap", 0, SETTINGS(.chain = SWAP, .pool_bytes = 400), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"bound late", 0, LATE(1, BOTH, 20, 100), "ADMIT 1 m1 r20 l100"},
		{"another GPU", 0, GPU(1, 100), ""},
		{"its process", 0, SWAPS(10, 1), ""},
		{"nothing there can leave", 0, ON(2, FIRST, 0, 80), "ADMIT 2 m1 r0 l80"},
		{"its process", 0, JOIN(20, 2), ""},
		{"has it", 0, ASK(20, 1, 0, 80), "GRANT 20/1 g0 80"},
		{"", 0, COMMIT(20, 1, 80), ""},
		{"one that can", 0, ON(3, 2, 0, 100), "ADMIT 3 m2 r0 l100"},
		{"its process", 0, SWAPS(30, 3), ""},
		{"has it", 0, ASK(30, 1, 1, 100), "GRANT 30/1 g1 100"},
		{"", 0, COMMIT(30, 2, 100), ""},
		{"more than is left here, and full there", 9000, ASK(10, 1, 0, 60),
			"ADMIT 1 m2 r20 l100; EVICT 30 g1 60 EVICTED_FOR; "
			"PROBE 30 1"},
	};

	PLAY(rows);
}

/* A context, granted or measured, binds for good; also for its siblings. */
static void a_context_binds(void **state)
{
	static const struct play_row rows[] = {
		TAKEN,
		{"its context", 1, CONTEXT(10, 1, 0), "GRANT 10/1 g0 0"},
		{"granted", 1, ASK(10, 2, 0, 60), ""},
		{"made", 2, COMMIT(10, 2, 0), ""},
		{"measured", 2, HIDDEN(10, 0, 5), "VIEW 1 g0"},
		{"again", 3, ASK(10, 3, 0, 15), "GRANT 10/3 g0 15"},
	};

	PLAY(rows);
}

/* All that it asks for goes with the first. */
static void goes_together(void **state)
{
	static const struct play_row rows[] = {
		TAKEN,
		{"its other process", 0, JOIN(11, 1), ""},
		{"the other GPU is full", 0, ON(3, 2, 0, 100), "ADMIT 3 m2 r0 l100"},
		{"its process", 0, JOIN(30, 3), ""},
		{"fills it", 0, ASK(30, 1, 1, 100), "GRANT 30/1 g1 100"},
		{"has it", 0, COMMIT(30, 2, 100), ""},
		{"waits", 1, ASK(10, 1, 0, 50), ""},
		{"waits", 1, ASK(11, 1, 0, 40), ""},
		{"both fit there", 2, FREED(30, 1, 100),
			"ADMIT 1 m2 r20 l100; GRANT 10/1 g1 50; GRANT 11/1 g1 40"},
	};

	PLAY(rows);
}

static void only_if_it_is_said(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"bound at once", 0, ON(1, BOTH, 20, 100), "ADMIT 1 m1 r20 l100"},
		{"another GPU", 0, GPU(1, 100), ""},
		{"its process", 0, JOIN(10, 1), ""},
		{"a neighbour", 0, ON(2, FIRST, 0, 100), "ADMIT 2 m1 r0 l100"},
		{"its process", 0, JOIN(20, 2), ""},
		{"fills the GPU", 0, ASK(20, 1, 0, 80), "GRANT 20/1 g0 80"},
		{"waits", 1, ASK(10, 1, 0, 60), ""},
		{"has no other", 1, ASK(10, 2, 1, 20), "DENY 10/2 UNKNOWN_CLIENT g1"},
		{"a removed one has none at all", 2, REMOVE(1), "DENY 10/1 CANCELLED g0"},
	};

	PLAY(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_where_there_is_room),
		cmocka_unit_test(stays_where_there_is_room),
		cmocka_unit_test(keeps_promises),
		cmocka_unit_test(moves_nobody_in_vain),
		cmocka_unit_test(others_leave_where_it_goes),
		cmocka_unit_test(a_context_binds),
		cmocka_unit_test(goes_together),
		cmocka_unit_test(only_if_it_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
