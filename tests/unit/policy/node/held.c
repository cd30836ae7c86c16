#include "play.h"

/*
 * Memory that must not be evicted: stories of one GPU of 100 bytes. Workload w has client 10 * w.
 * Epochs count through a story.
 */

#define PRIORITY          SL_CHAIN(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT, 0)
#define ASK_HELD(c, a, n) EVENT(ASK, ask, {c, a, 0, n, SL_NODE_ASK_HELD})
#define HOLD(c, a, n)     EVENT(ASK, ask, {c, a, 0, n, SL_NODE_ASK_HELD | SL_NODE_ASK_THERE})
#define HELD(c, n)        EVENT(HELD, held, {c, 0, n})
#define WORKLOAD(w, request, limit, priority) \
	EVENT(WORKLOAD_ADD, workload_add,     \
		{w, BYTES(request), BYTES(limit), 1, 1, priority, 0, 0, 0, 0, {ANY}})
#define SET_REQUEST(w, n) EVENT(WORKLOAD_SET, workload_set, {w, SL_SET_REQUEST, BYTES(n)})
#define EXPECT(c, w)      EVENT(CLIENT_JOIN, client_join, {c, w, 1})
#define REPORTED(c)       EVENT(CLIENT_REPORTED, client_reported, {c})
#define RECOVERED(w, request, limit)      \
	EVENT(WORKLOAD_ADD, workload_add, \
		{w, BYTES(request), BYTES(limit), 1, 1, 0, 1, 0, 0, 0, {ANY}})

/* Requests 30 and 40 of 100; each may have all. */
#define TWO                                                                 \
	{"a GPU", 0, GPU(0, 100), ""},                                      \
		{"one", 0, WORKLOAD(1, 30, 100, 0), "ADMIT 1 m1 r30 l100"}, \
		{"its process", 0, JOIN(10, 1), ""},                        \
		{"two", 0, WORKLOAD(2, 40, 100, 0), "ADMIT 2 m1 r40 l100"}, \
	{                                                                   \
		"its process", 0, JOIN(20, 2), ""                           \
	}

static struct sl_node_use_view use_of(const struct play *p, uint64_t client)
{
	return sl_node_client_use(p->node, client, 0);
}

static void new_memory(void **state)
{
	static const struct play_row rows[] = {
		TWO,
		{"within the request", 0, ASK_HELD(10, 1, 30), "GRANT 10/1 g0 30"},
		{"used", 0, COMMIT(10, 1, 30), ""},
		{"beside the other's request", 0, ASK_HELD(10, 2, 20),
			"GRANT 10/2 g0 20"},
		{"not all of it was needed", 0, COMMIT(10, 2, 15), ""},
		{"requests leave 15", 0, ASK_HELD(10, 3, 16),
			"DENY 10/3 HELD_ON_REQUESTS g0"},
		{"which are there", 0, ASK_HELD(10, 4, 15), "GRANT 10/4 g0 15"},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, 8);
	assert_row_u64("held with the commit", use_of(&p, 10).held_bytes, 30);
	play_rows(&p, rows + 8, 3);
	assert_row_u64("what was used", use_of(&p, 10).held_bytes, 45);
	assert_row_u64("available", p.last[SL_ACTION_DENY].deny.available_bytes, 15);
	play_close(&p);
}

/* Others' bursts may come back, so it is worth waiting for them; others' requests do not. */
static void waits_for_bursts(void **state)
{
	static const struct play_row rows[] = {
		TWO,
		{"the other bursts", 0, ASK(20, 1, 0, 70), "GRANT 20/1 g0 70"},
		{"used", 0, COMMIT(20, 1, 70), ""},
		{"a held burst", 0, ASK_HELD(10, 1, 50), ""},
		{"one that can never be", 0, ASK_HELD(10, 2, 61),
			"DENY 10/2 HELD_ON_REQUESTS g0"},
		{"some comes back", 1, FREED(20, 0, 19), ""},
		{"enough", 2, FREED(20, 0, 1), "GRANT 10/1 g0 50"},
	};

	PLAY(rows);
}

/* A promise made while it waits may take its last hope. */
static void a_raise_ends_the_wait(void **state)
{
	static const struct play_row rows[] = {
		TWO,
		{"the other bursts", 0, ASK(20, 1, 0, 70), "GRANT 20/1 g0 70"},
		{"used", 0, COMMIT(20, 1, 70), ""},
		{"a held burst", 0, ASK_HELD(10, 1, 50), ""},
		{"a higher request", 1, SET_REQUEST(2, 60),
			"SET 2 r60 l100 p0 over0; DENY 10/1 HELD_ON_REQUESTS g0"},
	};

	PLAY(rows);
}

/* `priority` lends requests of higher priority, but not to what only a kill brings back. */
static void never_on_loan(void **state)
{
	static const struct play_row rows[] = {
		{"settings", 0, SETTINGS(.chain = PRIORITY), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"low", 0, WORKLOAD(1, 0, 100, 0), "ADMIT 1 m1 r0 l100"},
		{"its process", 0, JOIN(10, 1), "PROBE 10 1"},
		{"high", 0, WORKLOAD(2, 60, 100, 5), "ADMIT 2 m1 r60 l100"},
		{"its process", 0, JOIN(20, 2), "PROBE 20 1"},
		{"held: what nobody requested", 0, ASK_HELD(10, 1, 41),
			"DENY 10/1 HELD_ON_REQUESTS g0"},
		{"any other", 0, ASK(10, 2, 0, 70), "GRANT 10/2 g0 70"},
		{"used", 0, COMMIT(10, 1, 70), ""},
		{"not even beside a loan", 0, ASK_HELD(10, 3, 10), ""},
		{"nor by becoming held", 0, HOLD(10, 4, 41),
			"DENY 10/4 HELD_ON_REQUESTS g0"},
		{"as far as nobody requested", 0, HOLD(10, 5, 40),
			"GRANT 10/5 g0 40; DENY 10/3 HELD_ON_REQUESTS g0"},
	};

	PLAY(rows);
}

static void what_is_there(void **state)
{
	static const struct play_row rows[] = {
		TWO,
		{"ordinary memory", 0, ASK(10, 1, 0, 60), "GRANT 10/1 g0 60"},
		{"used", 0, COMMIT(10, 1, 60), ""},
		{"within the request", 0, HOLD(10, 2, 30), "GRANT 10/2 g0 30"},
		{"said to be", 0, COMMIT(10, 2, 30), ""},
		{"beyond", 0, HOLD(10, 3, 20), "GRANT 10/3 g0 20"},
		{"not yet said to be, and counts", 0, HOLD(10, 4, 11),
			"DENY 10/4 HELD_ON_REQUESTS g0"},
		{"the other has its part", 0, HOLD(20, 1, 40), "GRANT 20/1 g0 40"},
		{"said to be", 0, COMMIT(10, 3, 20), ""},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	assert_row_u64("held", use_of(&p, 10).held_bytes, 50);
	assert_row_u64("charged once", use_of(&p, 10).backing_bytes, 60);
	assert_row_u64("charged once", sl_node_gpu(p.node, 0).free_bytes, 40);
	play_close(&p);
}

/* Told, it counts as told, as far as it would have been granted: a lie takes no promise from
 * others. */
static void told(void **state)
{
	static const struct play_row rows[] = {
		TWO,
		{"ordinary memory", 0, ASK(10, 1, 0, 60), "GRANT 10/1 g0 60"},
		{"used", 0, COMMIT(10, 1, 60), ""},
		{"some", 0, HELD(10, 20), ""},
		{"sets", 0, HELD(10, 50), ""},
		{"more than there is", 0, HELD(10, 99), ""},
		{"freed", 0, FREED(10, 0, 50), ""},
		{"all of it is held", 0, ASK(10, 2, 0, 50), "GRANT 10/2 g0 50"},
		{"used", 0, COMMIT(10, 2, 50), ""},
		{"hidden bytes count as well", 0, HIDDEN(10, 0, 10), "VIEW 1 g0"},
		{"too much", 0, HELD(10, 60), "NOTE HELD_UNASKED g0 1/0 10"},
		{"said once", 0, HELD(10, 59), ""},
		{"nobody suffers", 0, ASK(20, 1, 0, 10), "GRANT 20/1 g0 10"},
		{"used", 0, COMMIT(20, 3, 10), ""},
		{"what is measured does", 0, HIDDEN(10, 0, 20),
			"VIEW 1 g0; NOTE DEGRADED_BEGINS g0 0/0 10"},
		{"nobody is admitted", 0, WORKLOAD(3, 0, 100, 0),
			"REFUSE 3 DEGRADED g0 0 0"},
		{"nor may hold more", 0, HOLD(10, 3, 5), "DENY 10/3 GPU_DEGRADED g0"},
		{"let go", 0, HELD(10, 40), "NOTE DEGRADED_ENDS g0 0/0 0"},
		{"measured less", 0, HIDDEN(10, 0, 10), "VIEW 1 g0"},
		{"promises see it", 0, SET_REQUEST(2, 51),
			"REFUSE 2 REQUESTS_TAKEN g0 51 50"},
		{"and keep their own", 0, SET_REQUEST(2, 50), "SET 2 r50 l100 p0 over0"},
		{"as admission does", 0, WORKLOAD(3, 10, 100, 0),
			"REFUSE 3 REQUESTS_TAKEN g0 10 0"},
		{"the dead hold nothing", 0, EXIT(10), ""},
		{"so there is room", 0, WORKLOAD(3, 10, 100, 0), "ADMIT 3 m1 r10 l100"},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, 10);
	assert_row_u64("as much as there is", use_of(&p, 10).held_bytes, 60);
	play_rows(&p, rows + 10, SL_ARRAY_LEN(rows) - 10);
	assert_row_u64("the dead", use_of(&p, 10).held_bytes, 0);
	play_close(&p);
}

/* What may be held is unknown until all have reported; then it is answered at once. */
static void a_daemon_starts(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, RECOVERED(1, 30, 100), "ADMIT 1 m1 r30 l100"},
		{"two", 0, RECOVERED(2, 40, 100), "ADMIT 2 m1 r40 l100"},
		{"its process", 0, EXPECT(10, 1), ""},
		{"its process", 0, EXPECT(20, 2), ""},
		{"what it has", 1, REPORT(10, 0, 50), ""},
		{"what it holds", 1, HELD(10, 30), ""},
		{"all of it", 1, REPORTED(10), ""},
		{"it wants to hold more", 2, HOLD(10, 1, 20), ""},
		{"and too much", 2, HOLD(10, 2, 41), ""},
		{"the other", 3, REPORT(20, 0, 40), ""},
		{"all of it", 4, REPORTED(20),
			"GRANT 10/1 g0 20; DENY 10/2 HELD_ON_REQUESTS g0"},
	};

	PLAY(rows);
}

/* Free bytes are kept for a head; a demand for existing bytes takes none. */
static void a_head_does_not_keep_it(void **state)
{
	static const struct play_row rows[] = {
		TWO,
		{"ordinary memory", 0, ASK(10, 1, 0, 50), "GRANT 10/1 g0 50"},
		{"used", 0, COMMIT(10, 1, 50), ""},
		{"a head", 0, ASK(20, 1, 0, 60), ""},
		{"for long", 2000, TIME, "NOTE BURST_WAITS g0 2/1 60"},
		{"answered all the same", 2000, HOLD(10, 2, 45), "GRANT 10/2 g0 45"},
	};

	PLAY(rows);
}

/* A client that reports a failed creation has nothing created and nothing held. */
static void a_creation_of_nothing(void **state)
{
	static const struct play_row rows[] = {
		TWO,
		{"ordinary memory", 0, ASK(10, 1, 0, 50), "GRANT 10/1 g0 50"},
		{"used", 0, COMMIT(10, 1, 50), ""},
		{"to be held", 0, HOLD(10, 2, 50), "GRANT 10/2 g0 50"},
		{"failed", 0, FAILED(10, 2), "DENY 10/2 CANCELLED g0"},
		{"granted as held", 0, ASK_HELD(10, 3, 10), "GRANT 10/3 g0 10"},
		{"the driver refuses", 0, FAILED(10, 3), "NOTE CREATE_FAILED g0 1/0 10"},
		{"again", 20, TIME, "GRANT 10/3 g0 10"},
		{"lost meanwhile", 20, LOST(0),
			"NOTE LOST_BEGINS g0 0/0 0; NOTE LOST_FOR g0 1/0 60; "
			"NOTE LOST_FOR g0 2/0 0"},
		{"void", 20, COMMIT(10, 4, 10), ""},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	assert_row_u64("held", use_of(&p, 10).held_bytes, 0);
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_memory),
		cmocka_unit_test(waits_for_bursts),
		cmocka_unit_test(a_raise_ends_the_wait),
		cmocka_unit_test(never_on_loan),
		cmocka_unit_test(what_is_there),
		cmocka_unit_test(told),
		cmocka_unit_test(a_daemon_starts),
		cmocka_unit_test(a_head_does_not_keep_it),
		cmocka_unit_test(a_creation_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
