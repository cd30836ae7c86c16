#include "play.h"

/* A GPU falls off the bus: the notes, the books, and what happens when it is back. GPUs of 100 (0)
 * and 60 (1) bytes. */

#define WORKLOAD(w, request, limit, count, mask) \
	EVENT(WORKLOAD_ADD, workload_add,        \
		{w, BYTES(request), BYTES(limit), count, mask, 0, 0, 0, 0, 0, {ANY}})
#define RECOVERED(w, request, limit, mask) \
	EVENT(WORKLOAD_ADD, workload_add,  \
		{w, BYTES(request), BYTES(limit), 1, mask, 0, 1, 0, 0, 0, {ANY}})
#define SET_REQUEST(w, request)           \
	EVENT(WORKLOAD_SET, workload_set, \
		{w, SL_SET_REQUEST, BYTES(request), ANY, 0, 0, 0, {ANY}})

static void everybody_is_told(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 60), ""},
		{"on both", 0, WORKLOAD(1, 10, 60, 2, 3), "ADMIT 1 m3 r10 l60"},
		{"on the first", 0, WORKLOAD(2, 20, 90, 1, 1), "ADMIT 2 m1 r20 l90"},
		{"on the second", 0, WORKLOAD(3, 20, 60, 1, 2), "ADMIT 3 m2 r20 l60"},
		{"processes", 0, JOIN(10, 1), ""},
		{"processes", 0, JOIN(20, 2), ""},
		{"processes", 0, JOIN(30, 3), ""},
		{"bursts on the first", 0, ASK(20, 1, 0, 60), "GRANT 20/1 g0 60"},
		{"holds it", 0, COMMIT(20, 1, 60), ""},
		{"fills the second", 0, ASK(30, 1, 1, 50), "GRANT 30/1 g1 50"},
		{"holds it", 0, COMMIT(30, 2, 50), ""},
		{"a grant that is open", 0, ASK(20, 2, 0, 30), "GRANT 20/2 g0 30"},
		{"waits there within its request", 0, ASK(10, 1, 0, 10),
			"GRANT 10/1 g0 10"},
		{"waits there above it", 0, ASK(20, 3, 0, 1), "DENY 20/3 OVER_LIMIT g0"},
		{"waits there above it", 0, ASK(10, 2, 0, 20), ""},
		{"waits on the second too", 0, ASK(10, 3, 1, 20), ""},
		{"lost", 100, LOST(0),
			"NOTE LOST_BEGINS g0 0/0 0; NOTE LOST_FOR g0 1/0 10; "
			"NOTE LOST_FOR g0 2/0 90; DENY 10/2 GPU_LOST g0"},
		{"told once", 100, LOST(0), ""},
		{"entitled or not", 200, ASK(10, 4, 0, 1), "DENY 10/4 GPU_LOST g0"},
		{"its other demand is served", 300, FREED(30, 1, 40), "GRANT 10/3 g1 20"},
		{"an unknown one", 300, LOST(7), "NOTE STRAY g7 0/0 0"},
		{"a number that cannot be", 300, LOST(4000000000u),
			"NOTE STRAY g4000000000 0/0 0"},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	assert_true(sl_node_gpu(p.node, 0).lost);
	assert_false(sl_node_gpu(p.node, 1).lost);
	play_close(&p);
}

/* Grants on it are void: the books count nothing, and every answer of the client is good. */
static void grants_are_void(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, WORKLOAD(1, 0, 100, 1, 1), "ADMIT 1 m1 r0 l100"},
		{"its process", 0, JOIN(10, 1), ""},
		{"granted", 0, ASK(10, 1, 0, 10), "GRANT 10/1 g0 10"},
		{"granted", 0, ASK(10, 2, 0, 10), "GRANT 10/2 g0 10"},
		{"granted", 0, ASK(10, 3, 0, 10), "GRANT 10/3 g0 10"},
		{"held", 0, COMMIT(10, 1, 10), ""},
		{"lost", 10, LOST(0),
			"NOTE LOST_BEGINS g0 0/0 0; NOTE LOST_FOR g0 1/0 30"},
		{"says that it was made", 20, COMMIT(10, 2, 10), ""},
		{"twice", 20, COMMIT(10, 2, 10), "NOTE STRAY g0 1/0 10"},
		{"could not", 20, FAILED(10, 3), "DENY 10/3 GPU_LOST g0"},
		{"frees what it held", 30, FREED(10, 0, 10), ""},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	assert_row_u64("nothing is held", sl_node_use(p.node, 1, 0).backing_bytes, 0);
	assert_row_u64("nor granted", sl_node_use(p.node, 1, 0).granted_bytes, 0);
	play_close(&p);
}

/* A void grant stays void when the GPU is back before the client has answered. */
static void comes_back(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, WORKLOAD(1, 40, 100, 1, 1), "ADMIT 1 m1 r40 l100"},
		{"its process", 0, JOIN(10, 1), ""},
		{"its process", 0, JOIN(11, 1), ""},
		{"held", 0, ASK(10, 1, 0, 30), "GRANT 10/1 g0 30"},
		{"held", 0, COMMIT(10, 1, 30), "VIEW 1 g0"},
		{"open", 0, ASK(10, 2, 0, 10), "GRANT 10/2 g0 10"},
		{"open", 0, ASK(10, 3, 0, 10), "GRANT 10/3 g0 10"},
		{"lost", 10, LOST(0),
			"NOTE LOST_BEGINS g0 0/0 0; NOTE LOST_FOR g0 1/0 50"},
		{"no raise of what cannot be promised", 10, SET_REQUEST(1, 50),
			"REFUSE 1 GPU_LOST g0 50 100"},
		{"back", 20, GPU(0, 100), "NOTE LOST_ENDS g0 0/0 0"},
		{"not made again", 20, FAILED(10, 2), "DENY 10/2 GPU_LOST g0"},
		{"nor counted", 20, COMMIT(10, 3, 10), ""},
		{"what it held is held", 20, ASK(11, 1, 0, 70), "GRANT 11/1 g0 70"},
		{"a raise", 20, SET_REQUEST(1, 50), "SET 1 r50 l100 p0 over0"},
		{"changed in size is no loss", 30, GPU(0, 120), ""},
	};

	PLAY(rows);
}

/* The one case in which a GPU's loss breaks a promise says so. */
static void within_a_request_it_is_an_exception(void **state)
{
	static const struct {
		const char *name;
		uint64_t bytes;
		bool entitled;
	} asks[] = {{"within", 40, true}, {"above", 41, false}};
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, WORKLOAD(1, 40, 100, 1, 1), "ADMIT 1 m1 r40 l100"},
		{"its process", 0, JOIN(10, 1), ""},
		{"lost", 10, LOST(0),
			"NOTE LOST_BEGINS g0 0/0 0; NOTE LOST_FOR g0 1/0 0"},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	for (size_t i = 0; i < SL_ARRAY_LEN(asks); i++) {
		struct sl_event ask = ASK(10, i + 1, 0, asks[i].bytes);

		(void)play(&p, asks[i].name, 20, ask);
		assert_row_u64(asks[i].name, p.last[SL_ACTION_DENY].deny.reason,
			SL_REASON_GPU_LOST);
		assert_row_u64(asks[i].name, p.last[SL_ACTION_DENY].deny.workload, 1);
		assert_row_u64(asks[i].name, p.last[SL_ACTION_DENY].deny.entitled,
			asks[i].entitled);
	}
	play_close(&p);
}

static void the_dead_are_let_go(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 60), ""},
		{"on both", 0, WORKLOAD(1, 10, 60, 2, 3), "ADMIT 1 m3 r10 l60"},
		{"dies on both", 0, JOIN(10, 1), ""},
		{"dies on the first", 0, JOIN(11, 1), ""},
		{"dies after it", 0, JOIN(12, 1), ""},
		{"holds", 0, REPORT(10, 0, 5), "VIEW 1 g0"},
		{"holds", 0, REPORT(10, 1, 5), "VIEW 1 g1"},
		{"holds", 0, REPORT(11, 0, 5), "VIEW 1 g0"},
		{"holds", 0, REPORT(12, 0, 5), "VIEW 1 g0"},
		{"dies", 0, EXIT(10), "VIEW 1 g0; VIEW 1 g1"},
		{"dies", 0, EXIT(11), "VIEW 1 g0"},
		{"lost", 10, LOST(0),
			"NOTE LOST_BEGINS g0 0/0 0; NOTE LOST_FOR g0 1/0 5"},
		{"dies with nothing to wait for", 20, EXIT(12), ""},
		{"gone already", 30, RELEASED(11, 0, 0), "NOTE STRAY g0 0/0 0"},
		{"dies on", 30, RELEASED(10, 1, 0), ""},
		{"removed, and so is the last of it", 40, REMOVE(1), ""},
		{"the name is free", 40, WORKLOAD(1, 10, 60, 1, 2), "ADMIT 1 m2 r10 l60"},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, 13);
	assert_row_u64("dying there", sl_node_gpu(p.node, 0).dying_bytes, 0);
	assert_row_u64("dying elsewhere", sl_node_gpu(p.node, 1).dying_bytes, 5);
	assert_row_u64("of the living", sl_node_use(p.node, 1, 0).backing_bytes, 5);
	play_rows(&p, rows + 13, SL_ARRAY_LEN(rows) - 13);
	play_close(&p);
}

/* The last bytes of a workload that was removed already. */
static void the_removed_are_let_go(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 60), ""},
		{"one", 0, WORKLOAD(1, 10, 60, 1, 1), "ADMIT 1 m1 r10 l60"},
		{"its process", 0, JOIN(10, 1), ""},
		{"holds", 0, REPORT(10, 0, 5), ""},
		{"dies", 0, EXIT(10), ""},
		{"removed", 0, REMOVE(1), ""},
		{"still there", 0, WORKLOAD(1, 10, 60, 1, 2),
			"REFUSE 1 DUPLICATE g0 0 0"},
		{"lost", 10, LOST(0), "NOTE LOST_BEGINS g0 0/0 0"},
		{"the name is free", 20, WORKLOAD(1, 10, 60, 1, 2), "ADMIT 1 m2 r10 l60"},
	};

	PLAY(rows);
}

static void nobody_is_sent_there(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 60), ""},
		{"lost", 0, LOST(0), "NOTE LOST_BEGINS g0 0/0 0"},
		{"goes to the other", 0, WORKLOAD(1, 10, 60, 1, 3), "ADMIT 1 m2 r10 l60"},
		{"two are not to be had", 0, WORKLOAD(2, 10, 60, 2, 3),
			"REFUSE 2 TOO_FEW_GPUS g0 2 1"},
		{"what ran there runs there", 0, RECOVERED(3, 10, 60, 1),
			"ADMIT 3 m1 r10 l60"},
		{"its process", 0, JOIN(30, 3), ""},
		{"gets nothing", 0, ASK(30, 1, 0, 5), "DENY 30/1 GPU_LOST g0"},
		{"more than it has: nobody speaks of a lost one", 0, HIDDEN(30, 0, 200),
			"VIEW 3 g0"},
		{"back, and too full", 10, GPU(0, 100),
			"NOTE LOST_ENDS g0 0/0 0; NOTE DEGRADED_BEGINS g0 0/0 100"},
		{"lost again: no word of a guarantee", 20, LOST(0),
			"NOTE LOST_BEGINS g0 0/0 0; NOTE LOST_FOR g0 3/0 200"},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	assert_false(sl_node_gpu(p.node, 0).degraded);
	play_close(&p);
}

/* Where a workload is planned to be, and where its processes were seen. */
static void knows_where_it_is(void **state)
{
	static const struct {
		const char *name;
		struct sl_event event;
		uint32_t mask;
	} rows[] = {
		{"joined", JOIN(10, 1), 0},
		{"a report of nothing", REPORT(10, 0, 0), 0},
		{"measured nothing", HIDDEN(10, 0, 0), 0},
		{"asked", ASK(10, 1, 1, 5), 2},
		{"reported", REPORT(10, 0, 5), 3},
		{"measured where it has no business", HIDDEN(10, 2, 5), 7},
		{"what it no longer has", HIDDEN(10, 2, 0), 3},
	};
	static const struct play_row begin[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 60), ""},
		{"a third", 0, GPU(2, 60), ""},
		{"on two", 0, WORKLOAD(1, 10, 60, 2, 3), "ADMIT 1 m3 r10 l60"},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, begin, SL_ARRAY_LEN(begin));
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		(void)play(&p, rows[i].name, 0, rows[i].event);
		assert_row_u64(rows[i].name, sl_node_workload(p.node, 1).actual_mask,
			rows[i].mask);
		assert_row_u64(rows[i].name, sl_node_workload(p.node, 1).gpu_mask, 3);
	}
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everybody_is_told),
		cmocka_unit_test(grants_are_void),
		cmocka_unit_test(comes_back),
		cmocka_unit_test(within_a_request_it_is_an_exception),
		cmocka_unit_test(the_dead_are_let_go),
		cmocka_unit_test(the_removed_are_let_go),
		cmocka_unit_test(nobody_is_sent_there),
		cmocka_unit_test(knows_where_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
