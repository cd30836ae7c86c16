/*
 * late - the GPU is chosen when the first process begins: stories of two or three GPUs of 100 bytes
 *
 * Workload w has client 10 * w. Epochs count through a story.
 */
#include "play.h"

#define PACK(...) SETTINGS(.placement = SL_PLACEMENT_PACK, __VA_ARGS__)
#define FIRST     1
#define SECOND    2
#define BOTH      3
#define ON(w, mask, r, l)                    \
	EVENT(WORKLOAD_ADD, workload_add,    \
		{.workload = (w),            \
			.gpu_mask = (mask),  \
			.gpu_count = 1,      \
			.request = BYTES(r), \
			.limit = BYTES(l)})
#define RECOVERED(w, mask, r, l)             \
	EVENT(WORKLOAD_ADD, workload_add,    \
		{.workload = (w),            \
			.gpu_mask = (mask),  \
			.gpu_count = 1,      \
			.request = BYTES(r), \
			.limit = BYTES(l),   \
			.recovered = 1})
#define BEGINS(w, mask)  EVENT(WORKLOAD_BEGINS, workload_begins, {w, mask})
#define PARK(w)          EVENT(WORKLOAD_PARK, workload_park, {w, 0})
#define EXPECTED(c, w)   EVENT(CLIENT_JOIN, client_join, {c, w, 1, 1})
#define REPORTED(c)      EVENT(CLIENT_REPORTED, client_reported, {c})
#define ELSEWHERE(w, to) "NOTE BEGINS_ELSEWHERE g" #to " " #w "/0 0"

/* 1 is promised on GPU 0, where 2 has taken memory since. */
#define TAKEN                                                                   \
	{"a GPU", 0, GPU(0, 100), ""}, {"another", 0, GPU(1, 100), ""},         \
		{"promised", 0, ON(1, FIRST, 20, 100), "ADMIT 1 m1 r20 l100"},  \
		{"a neighbour", 0, ON(2, FIRST, 0, 100), "ADMIT 2 m1 r0 l100"}, \
		{"its process", 0, JOIN(20, 2), ""},                            \
		{"has it", 0, ASK(20, 1, 0, 80), "GRANT 20/1 g0 80"},           \
	{                                                                       \
		"", 0, COMMIT(20, 1, 80), ""                                    \
	}

static void goes_where_there_is_room(void **state)
{
	static const struct play_row rows[] = {
		TAKEN,
		{"begins", 1, BEGINS(1, BOTH), "MOVES 1 g0 g1; " ELSEWHERE(1, 1)},
		{"its process", 1, JOIN(10, 1), ""},
		{"has the room", 1, ASK(10, 1, 1, 60), "GRANT 10/1 g1 60"},
		{"is no more there", 1, ASK(10, 2, 0, 10), "DENY 10/2 UNKNOWN_CLIENT g0"},
		{"what it left is free", 1, ON(3, FIRST, 100, 100),
			"ADMIT 3 m1 r100 l100"},
		{"what it took is its own", 1, ON(4, SECOND, 81, 81),
			"REFUSE 4 REQUESTS_TAKEN g1 81 80"},
	};

	PLAY(rows);
}

/* All that its limit allows is free, so no other GPU can be better. */
static void stays_where_there_is_room(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"a larger one", 0, GPU(1, 200), ""},
		{"promised", 0, ON(1, FIRST, 20, 60), "ADMIT 1 m1 r20 l60"},
		{"a neighbour", 0, ON(2, FIRST, 0, 100), "ADMIT 2 m1 r0 l100"},
		{"its process", 0, JOIN(20, 2), ""},
		{"has some", 0, ASK(20, 1, 0, 40), "GRANT 20/1 g0 40"},
		{"", 0, COMMIT(20, 1, 40), ""},
		{"begins", 1, BEGINS(1, BOTH), ""},
	};

	PLAY(rows);
}

static void equal_gpus_are_no_reason(void **state)
{
	static const struct play_row rows[] = {
		TAKEN,
		{"as full", 0, ON(3, SECOND, 0, 100), "ADMIT 3 m2 r0 l100"},
		{"its process", 0, JOIN(30, 3), ""},
		{"has it", 0, ASK(30, 1, 1, 80), "GRANT 30/1 g1 80"},
		{"", 0, COMMIT(30, 2, 80), ""},
		{"begins", 1, BEGINS(1, BOTH), ""},
	};

	PLAY(rows);
}

/* The request goes along, so there has to be room for it. */
static void keeps_promises(void **state)
{
	static const struct play_row rows[] = {
		TAKEN,
		{"requests there leave 10", 0, ON(3, SECOND, 90, 90),
			"ADMIT 3 m2 r90 l90"},
		{"begins", 1, BEGINS(1, BOTH), ""},
	};

	PLAY(rows);
}

/* The caller knows what the queue keeps, and what the user named. */
static void goes_only_where_it_may(void **state)
{
	static const struct play_row rows[] = {
		TAKEN,
		{"a third", 0, GPU(2, 100), ""},
		{"begins", 1, BEGINS(1, FIRST), ""},
		{"begins", 1, BEGINS(1, 4), "MOVES 1 g0 g2; " ELSEWHERE(1, 2)},
	};

	PLAY(rows);
}

/* A process has its GPU for life; after the last one, the next chooses again. */
static void a_process_binds(void **state)
{
	static const struct play_row rows[] = {
		TAKEN,
		{"its process", 1, JOIN(10, 1), ""},
		{"the next one", 1, BEGINS(1, BOTH), ""},
		{"has some", 1, ASK(10, 1, 0, 10), "GRANT 10/1 g0 10"},
		{"", 1, COMMIT(10, 2, 10), ""},
		{"ends", 2, EXIT(10), ""},
		{"another program", 2, BEGINS(1, BOTH),
			"MOVES 1 g0 g1; " ELSEWHERE(1, 1)},
		{"what is left there goes", 3, RELEASED(10, 0, 0), ""},
		{"and is free", 3, ON(3, FIRST, 100, 100), "ADMIT 3 m1 r100 l100"},
	};

	PLAY(rows);
}

static void leaves_a_lost_gpu(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 100), ""},
		{"promised", 0, ON(1, FIRST, 20, 60), "ADMIT 1 m1 r20 l60"},
		{"falls off the bus", 1, LOST(0),
			"NOTE LOST_BEGINS g0 0/0 0; NOTE LOST_FOR g0 1/0 0"},
		{"begins", 1, BEGINS(1, BOTH), "MOVES 1 g0 g1; " ELSEWHERE(1, 1)},
		{"is lost, too", 2, LOST(1),
			"NOTE LOST_BEGINS g1 0/0 0; NOTE LOST_FOR g1 1/0 0"},
		{"nowhere to go", 2, BEGINS(1, BOTH), ""},
	};

	PLAY(rows);
}

/* As admission would: where least is left over, so that whole GPUs stay free. */
static void packs(void **state)
{
	static const struct play_row rows[] = {
		{"pack", 0, PACK(), ""},
		TAKEN,
		{"has less left", 0, ON(3, SECOND, 40, 40), "ADMIT 3 m2 r40 l40"},
		{"a whole one", 0, GPU(2, 100), ""},
		{"begins", 1, BEGINS(1, 7), "MOVES 1 g0 g1; " ELSEWHERE(1, 1)},
	};

	PLAY(rows);
}

/* Before all have reported, GPU 1 looks empty. */
static void waits_for_reports(void **state)
{
	static const struct play_row rows[] = {
		{"settings", 0, SETTINGS(), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 100), ""},
		{"promised", 0, RECOVERED(1, FIRST, 20, 100), "ADMIT 1 m1 r20 l100"},
		{"used", 0, RECOVERED(2, FIRST, 0, 100), "ADMIT 2 m1 r0 l100"},
		{"its process", 0, EXPECTED(20, 2), ""},
		{"reports", 0, REPORT(20, 0, 80), ""},
		{"used", 0, RECOVERED(3, SECOND, 0, 100), "ADMIT 3 m2 r0 l100"},
		{"its process", 0, EXPECTED(30, 3), ""},
		{"begins", 1, BEGINS(1, BOTH), ""},
	};

	PLAY(rows);
}

static void parked_has_no_place(void **state)
{
	static const struct play_row rows[] = {
		{"swap", 0,
			SETTINGS(.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0),
				.pool_bytes = 400),
			""},
		TAKEN,
		{"parked", 1, PARK(1),
			"SET 1 r20 l100 p0 over0; NOTE PARK_BEGINS g0 1/0 0; PARKED 1 0"},
		{"begins", 1, BEGINS(1, BOTH), ""},
		{"is unknown", 1, BEGINS(7, BOTH), "NOTE STRAY g0 7/0 0"},
		{"is removed", 2, REMOVE(1), ""},
		{"too", 2, BEGINS(1, BOTH), "NOTE STRAY g0 1/0 0"},
	};

	PLAY(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_where_there_is_room),
		cmocka_unit_test(stays_where_there_is_room),
		cmocka_unit_test(equal_gpus_are_no_reason),
		cmocka_unit_test(keeps_promises),
		cmocka_unit_test(goes_only_where_it_may),
		cmocka_unit_test(a_process_binds),
		cmocka_unit_test(leaves_a_lost_gpu),
		cmocka_unit_test(packs),
		cmocka_unit_test(waits_for_reports),
		cmocka_unit_test(parked_has_no_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
