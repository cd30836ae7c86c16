/*
 * moves - a parked workload of which nothing is on a GPU comes back to other GPUs
 *
 * A (workload 1, client 1) has a context of 30, which the reserve of 40 pays, and 60 of memory, all
 * on GPU 0. B (workload 2) has a request there. GPUs 1 and 2 are as large, and empty.
 */
#include "play.h"

#define SETTING(leaves)                                                     \
	SETTINGS(.pool_bytes = 1000, .evict_drain = SL_S, .detach = leaves, \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0))
#define GPU_OF(gpu, capacity) EVENT(GPU_ADD, gpu_add, {gpu, capacity, 40})
#define WORKLOAD_ON(w, request, mask, count) \
	EVENT(WORKLOAD_ADD, workload_add, {w, BYTES(request), BYTES(100), count, mask, 0})
#define SWAPPER(c, w)      EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define PARK(w)            EVENT(WORKLOAD_PARK, workload_park, {w, 0})
#define RESUME(w, mask)    EVENT(WORKLOAD_RESUME, workload_resume, {w, mask})
#define DONE(c, o, g, n)   EVENT(DONE, done, {c, o, g, SL_SWAP_OK, 0, n})
#define PLACED(c, o)       EVENT(PLACED, placed, {c, o, SL_SWAP_OK, 0, SL_MS})
#define STAYED(c, o, why)  EVENT(PLACED, placed, {c, o, SL_SWAP_REFUSED, SL_SWAP_##why})
#define REFUSED(c, o, g)   EVENT(DONE, done, {c, o, g, SL_SWAP_REFUSED, SL_SWAP_BUSY, 0})
#define HELD(c, n)         EVENT(HELD, held, {c, 0, n})
#define CONDITION(c, what) EVENT(CONDITION, condition, {c, SL_CONDITION_##what})
#define EVICTED(c, g, n)   EVENT(CLIENT_EVICTED, client_evicted, {c, g, n})
#define OUT_OF_GPU(c, n)   EVENT(FREED, freed, {c, 0, n, 0})

static const char *at(struct play *p, uint64_t at_ms, struct sl_event event)
{
	return play(p, "story", at_ms, event);
}

static void says(struct play *p, const char *row, uint64_t at_ms, struct sl_event event,
	const char *expected)
{
	const char *got = play(p, row, at_ms, event);

	assert_row_text(row, got, expected);
}

/* The last action of this type answers. */
static uint64_t id(const struct play *p, enum sl_action_type type)
{
	return p->last[type].id;
}

static void is(const struct play *p, const char *row, enum sl_presence expected)
{
	assert_row_u64(row, sl_node_workload(p->node, 1).presence, expected);
}

static void begin(struct play *p, struct sl_event settings)
{
	play_open(p);
	(void)at(p, 0, settings);
	for (uint32_t gpu = 0; gpu < 3; gpu++)
		(void)at(p, 0, (struct sl_event)GPU_OF(gpu, 140));
	(void)at(p, 0, (struct sl_event)WORKLOAD_ON(1, 60, 1, 1));
	(void)at(p, 0, (struct sl_event)SWAPPER(1, 1));
	(void)at(p, 0, (struct sl_event)HIDDEN(1, 0, 30));
	play_has(p, 1, 1, 60);
	(void)at(p, 0, (struct sl_event)WORKLOAD_ON(2, 30, 1, 1));
	is(p, "runs", SL_PRESENCE_HERE);
}

static void memory_leaves(struct play *p)
{
	assert_non_null(
		strstr(at(p, 1, (struct sl_event)PARK(1)), "EVICT 1 g0 60 PARK_BEGINS"));
	is(p, "leaves", SL_PRESENCE_HERE);
	(void)at(p, 2, (struct sl_event)DONE(1, id(p, SL_ACTION_EVICT), 0, 60));
}

static void leaves(struct play *p)
{
	begin(p, (struct sl_event)SETTING(1));
	memory_leaves(p);
	is(p, "its process leaves", SL_PRESENCE_HERE);
	(void)at(p, 3, (struct sl_event)PLACED(1, id(p, SL_ACTION_DETACH)));
	is(p, "all is gone", SL_PRESENCE_AWAY);
}

/* What was evicted on GPU 0 comes back on GPU 1; nothing of it stays booked on GPU 0. */
static void test_comes_back_elsewhere(void **state)
{
	struct sl_node_use_view was;
	struct play p;

	(void)state;
	leaves(&p);
	says(&p, "goes", 10, (struct sl_event)RESUME(1, 2),
		"MOVES 1 g0 g1; NOTE MOVED g1 1/0 90; VIEW 1 g1; "
		"SET 1 r60 l100 p0 over0; RESUMED 1 60; VIEW 1 g1; ATTACH 1; PROBE 1 1");
	was = sl_node_client_use(p.node, 1, 0);
	assert_row_u64("left behind", was.backing_bytes + was.away_bytes, 0);
	assert_row_u64("plan", sl_node_workload(p.node, 1).gpu_mask, 2);
	assert_row_u64("actual", sl_node_workload(p.node, 1).actual_mask, 2);
	assert_row_u64("request of B", sl_node_gpu(p.node, 0).requests_bytes, 30);
	assert_row_u64("request of A", sl_node_gpu(p.node, 1).requests_bytes, 60);
	assert_row_u64("its room", sl_node_gpu(p.node, 1).paid_bytes, 30);
	is(&p, "comes", SL_PRESENCE_HERE);
	says(&p, "is there", 11, (struct sl_event)PLACED(1, id(&p, SL_ACTION_ATTACH)),
		"NOTE ATTACHED g1 1/0 30; RESTORE 1 g1 60");
	says(&p, "whole", 12, (struct sl_event)DONE(1, id(&p, SL_ACTION_RESTORE), 1, 0),
		"NOTE RESTORED g1 1/0 60");
	assert_row_u64(
		"bound", sl_node_workload(p.node, 1).residency, SL_RESIDENCY_BOUND);
	play_close(&p);
}

/* Its own GPUs, named or not, are no move. */
static void test_stays_at_its_own(void **state)
{
	struct play p;

	(void)state;
	for (uint32_t mask = 0; mask < 2; mask++) {
		begin(&p, (struct sl_event)SETTING(1));
		memory_leaves(&p);
		says(&p, "while it leaves", 3, (struct sl_event)RESUME(1, mask),
			"SET 1 r60 l100 p0 over0; RESUMED 1 60; PROBE 1 1");
		play_close(&p);
	}
}

/* As many GPUs as it has, and all of them there. */
static void test_which_gpus(void **state)
{
	static const struct {
		const char *name;
		uint32_t mask;
		const char *expected;
	} rows[] = {
		{"two for one", 3, "REFUSE 1 TOO_FEW_GPUS g0 1 2"},
		{"unknown", 8, "REFUSE 1 TOO_FEW_GPUS g0 1 0"},
		{"one of two is unknown", 10, "REFUSE 1 TOO_FEW_GPUS g0 1 1"},
		{"lost", 4, "REFUSE 1 TOO_FEW_GPUS g0 1 0"},
	};
	struct play p;

	(void)state;
	leaves(&p);
	(void)at(&p, 9, (struct sl_event)LOST(2));
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		says(&p, rows[i].name, 10, (struct sl_event)RESUME(1, rows[i].mask),
			rows[i].expected);
	is(&p, "stays parked", SL_PRESENCE_AWAY);
	/* From a lost GPU it may leave. */
	(void)at(&p, 11, (struct sl_event)LOST(0));
	assert_non_null(strstr(
		at(&p, 12, (struct sl_event)RESUME(1, 2)), "RESUMED 1 60; VIEW 1 g1"));
	play_close(&p);
}

/* Something of it is on a GPU, or may be. */
static void test_not_away(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SETTING(1));
	says(&p, "runs", 0, (struct sl_event)RESUME(1, 2), "REFUSE 1 NOT_PARKED g0 0 0");
	assert_non_null(strstr(at(&p, 1, (struct sl_event)PARK(1)), "EVICT"));
	says(&p, "memory", 1, (struct sl_event)RESUME(1, 2),
		"REFUSE 1 MOVE_NOT_AWAY g0 90 0");
	(void)at(&p, 2, (struct sl_event)DONE(1, id(&p, SL_ACTION_EVICT), 0, 60));
	says(&p, "contexts", 2, (struct sl_event)RESUME(1, 2),
		"REFUSE 1 MOVE_NOT_AWAY g0 30 0");
	(void)at(&p, 3, (struct sl_event)PLACED(1, id(&p, SL_ACTION_DETACH)));
	/* A process that begins gets its context where it began. */
	(void)at(&p, 4, (struct sl_event)SWAPPER(3, 1));
	is(&p, "has nothing yet", SL_PRESENCE_STAYS);
	assert_non_null(strstr(at(&p, 5,
				       (struct sl_event)EVENT(ASK, ask,
					       {3, 1, 0, 0, SL_NODE_ASK_CONTEXT})),
		"GRANT 3/1"));
	is(&p, "may have a context", SL_PRESENCE_HERE);
	says(&p, "grant", 5, (struct sl_event)RESUME(1, 2),
		"REFUSE 1 MOVE_NOT_AWAY g0 0 0");
	(void)at(&p, 6, (struct sl_event)EXIT(3));
	(void)at(&p, 7, (struct sl_event)RESUME(1, 0));
	is(&p, "comes back", SL_PRESENCE_HERE);
	play_close(&p);
}

/* Freed while it leaves: the order is open until its answer, which names the old GPU. */
static void test_answer_is_due(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SETTING(1));
	(void)at(&p, 1, (struct sl_event)PARK(1));
	(void)at(&p, 2, (struct sl_event)OUT_OF_GPU(1, 60));
	is(&p, "not answered", SL_PRESENCE_HERE);
	says(&p, "refused", 2, (struct sl_event)RESUME(1, 2),
		"REFUSE 1 MOVE_NOT_AWAY g0 30 0");
	(void)at(&p, 3,
		(struct sl_event)EVENT(DONE, done,
			{1, id(&p, SL_ACTION_EVICT), 0, SL_SWAP_REFUSED,
				SL_SWAP_NOTHING}));
	is(&p, "answered", SL_PRESENCE_HERE);
	(void)at(&p, 200, (struct sl_event)TIME);
	(void)at(&p, 201, (struct sl_event)PLACED(1, id(&p, SL_ACTION_DETACH)));
	is(&p, "away", SL_PRESENCE_AWAY);
	play_close(&p);
}

/* What does not leave by itself. */
static void test_stays(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SETTING(0));
	memory_leaves(&p);
	is(&p, "contexts may not leave", SL_PRESENCE_STAYS);
	play_close(&p);
	begin(&p, (struct sl_event)SETTING(1));
	(void)at(&p, 0, (struct sl_event)HELD(1, 10));
	(void)at(&p, 1, (struct sl_event)PARK(1));
	(void)at(&p, 2, (struct sl_event)DONE(1, id(&p, SL_ACTION_EVICT), 0, 50));
	is(&p, "holds memory", SL_PRESENCE_STAYS);
	says(&p, "refused", 3, (struct sl_event)RESUME(1, 2),
		"REFUSE 1 MOVE_NOT_AWAY g0 40 0");
	(void)at(&p, 4, (struct sl_event)WORKLOAD_ON(3, 50, 1, 1));
	(void)at(&p, 5, (struct sl_event)RESUME(1, 0));
	assert_row_u64("waits for its request", sl_node_workload(p.node, 1).residency,
		SL_RESIDENCY_RESUMING);
	is(&p, "comes back", SL_PRESENCE_HERE);
	play_close(&p);
	begin(&p, (struct sl_event)SETTING(1));
	(void)at(&p, 1, (struct sl_event)PARK(1));
	(void)at(&p, 1, (struct sl_event)CONDITION(1, STOPPED));
	is(&p, "cannot answer", SL_PRESENCE_STAYS);
	(void)at(&p, 2, (struct sl_event)CONDITION(1, RUNNING));
	is(&p, "answers", SL_PRESENCE_HERE);
	play_close(&p);
	begin(&p, (struct sl_event)SETTING(1));
	(void)at(&p, 0, (struct sl_event)HIDDEN(1, 0, 0));
	memory_leaves(&p);
	is(&p, "contexts were not measured", SL_PRESENCE_STAYS);
	play_close(&p);
	begin(&p, (struct sl_event)SETTING(1));
	memory_leaves(&p);
	(void)at(&p, 3, (struct sl_event)STAYED(1, id(&p, SL_ACTION_DETACH), DRIVER));
	is(&p, "the driver refused", SL_PRESENCE_STAYS);
	(void)at(&p, 5003, (struct sl_event)TIME);
	is(&p, "asked again", SL_PRESENCE_HERE);
	(void)at(&p, 5004, (struct sl_event)PLACED(1, id(&p, SL_ACTION_DETACH)));
	is(&p, "left", SL_PRESENCE_AWAY);
	play_close(&p);
}

/* Busy once is no refusal. */
static void test_busy_once(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SETTING(1));
	(void)at(&p, 1, (struct sl_event)PARK(1));
	(void)at(&p, 2, (struct sl_event)REFUSED(1, id(&p, SL_ACTION_EVICT), 0));
	is(&p, "memory was busy", SL_PRESENCE_HERE);
	assert_non_null(strstr(at(&p, 102, (struct sl_event)TIME), "EVICT 1 g0 60"));
	(void)at(&p, 103, (struct sl_event)DONE(1, id(&p, SL_ACTION_EVICT), 0, 60));
	(void)at(&p, 104, (struct sl_event)STAYED(1, id(&p, SL_ACTION_DETACH), BUSY));
	is(&p, "process was busy", SL_PRESENCE_HERE);
	assert_non_null(strstr(at(&p, 5104, (struct sl_event)TIME), "DETACH 1 30"));
	(void)at(&p, 5105, (struct sl_event)STAYED(1, id(&p, SL_ACTION_DETACH), BUSY));
	is(&p, "busy again", SL_PRESENCE_STAYS);
	play_close(&p);
}

/* Without processes, or with one that has nothing, it is away as soon as it is parked. */
static void test_has_nothing(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SETTING(1));
	(void)at(&p, 1, (struct sl_event)PARK(2));
	assert_row_u64("without a process", sl_node_workload(p.node, 2).presence,
		SL_PRESENCE_AWAY);
	assert_non_null(strstr(at(&p, 2, (struct sl_event)RESUME(2, 4)),
		"MOVES 2 g0 g2; NOTE MOVED g2 2/0 0; SET 2 r30"));
	assert_row_u64("its request", sl_node_gpu(p.node, 2).requests_bytes, 30);
	(void)at(&p, 3, (struct sl_event)SWAPPER(2, 2));
	(void)at(&p, 4, (struct sl_event)PARK(2));
	assert_row_u64("without a context", sl_node_workload(p.node, 2).presence,
		SL_PRESENCE_STAYS);
	play_close(&p);
}

/* {0, 1} -> {1, 2}: GPU 1 stays, and GPU 0 leads to GPU 2. */
static void test_two_gpus(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	(void)at(&p, 0, (struct sl_event)SETTING(1));
	for (uint32_t gpu = 0; gpu < 3; gpu++)
		(void)at(&p, 0, (struct sl_event)GPU_OF(gpu, 140));
	(void)at(&p, 0, (struct sl_event)WORKLOAD_ON(1, 60, 3, 2));
	(void)at(&p, 0, (struct sl_event)SWAPPER(1, 1));
	(void)at(&p, 0, (struct sl_event)HIDDEN(1, 0, 30));
	(void)at(&p, 0, (struct sl_event)HIDDEN(1, 1, 20));
	play_has(&p, 1, 1, 60);
	(void)at(&p, 1, (struct sl_event)PARK(1));
	(void)at(&p, 2, (struct sl_event)DONE(1, id(&p, SL_ACTION_EVICT), 0, 60));
	(void)at(&p, 3, (struct sl_event)PLACED(1, id(&p, SL_ACTION_DETACH)));
	assert_non_null(strstr(at(&p, 4, (struct sl_event)RESUME(1, 6)),
		"MOVES 1 g0 g2; NOTE MOVED g2 1/0 90; VIEW 1 g2; SET"));
	assert_row_u64("to where", sl_node_workload(p.node, 1).gpu_mask, 6);
	assert_row_u64("stayed", sl_node_gpu(p.node, 1).paid_bytes, 20);
	assert_row_u64("went", sl_node_gpu(p.node, 2).paid_bytes, 30);
	assert_row_u64("request", sl_node_gpu(p.node, 2).requests_bytes, 60);
	assert_row_u64("gave up", sl_node_gpu(p.node, 0).requests_bytes, 0);
	assert_non_null(
		strstr(at(&p, 5, (struct sl_event)PLACED(1, id(&p, SL_ACTION_ATTACH))),
			"RESTORE 1 g2 60"));
	play_close(&p);
}

/* What it asked for while it was parked it gets on its new GPU. */
static void test_demands_go_along(void **state)
{
	struct play p;

	(void)state;
	leaves(&p);
	says(&p, "asks", 4, (struct sl_event)ASK(1, 2, 0, 10), "");
	(void)at(&p, 5, (struct sl_event)RESUME(1, 2));
	(void)at(&p, 6, (struct sl_event)PLACED(1, id(&p, SL_ACTION_ATTACH)));
	assert_non_null(strstr(
		at(&p, 7, (struct sl_event)DONE(1, id(&p, SL_ACTION_RESTORE), 1, 0)),
		"GRANT 1/2 g1 10"));
	play_close(&p);
}

/* While its request has no room there, it may go elsewhere. */
static void test_goes_on_to_another(void **state)
{
	struct play p;

	(void)state;
	leaves(&p);
	(void)at(&p, 4, (struct sl_event)WORKLOAD_ON(3, 50, 2, 1));
	assert_null(strstr(at(&p, 5, (struct sl_event)RESUME(1, 2)), "RESUMED"));
	assert_row_u64(
		"waits", sl_node_workload(p.node, 1).residency, SL_RESIDENCY_RESUMING);
	is(&p, "is still away", SL_PRESENCE_AWAY);
	assert_non_null(strstr(at(&p, 6, (struct sl_event)RESUME(1, 4)),
		"MOVES 1 g1 g2; NOTE MOVED g2 1/0 90; VIEW 1 g2; SET 1 r60 l100 p0 "
		"over0; "
		"RESUMED 1 60"));
	play_close(&p);
}

/* The limit is cut to what the GPU can share. */
static void test_smaller_gpu(void **state)
{
	struct play p;

	(void)state;
	leaves(&p);
	(void)at(&p, 4, (struct sl_event)GPU_OF(3, 120));
	assert_non_null(strstr(
		at(&p, 5, (struct sl_event)RESUME(1, 8)), "SET 1 r60 l80 p0 over0"));
	play_close(&p);
}

/* What the driver still has of a dead process stays where it is. */
static void test_dying_stays(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SETTING(1));
	(void)at(&p, 1, (struct sl_event)EXIT(1));
	assert_row_u64("ends", sl_node_gpu(p.node, 0).dying_bytes, 60);
	(void)at(&p, 2, (struct sl_event)PARK(1));
	is(&p, "no process lives", SL_PRESENCE_AWAY);
	assert_non_null(
		strstr(at(&p, 3, (struct sl_event)RESUME(1, 2)), "NOTE MOVED g1 1/0 0"));
	assert_row_u64("dies there", sl_node_gpu(p.node, 0).dying_bytes, 60);
	(void)at(&p, 4, (struct sl_event)RELEASED(1, 0, 0));
	assert_row_u64("all free", sl_node_gpu(p.node, 0).free_bytes, 100);
	play_close(&p);
}

/* After a restart of the daemon it is where the journal says. */
static void test_recovers(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	(void)at(&p, 0, (struct sl_event)SETTING(1));
	for (uint32_t gpu = 0; gpu < 2; gpu++)
		(void)at(&p, 0, (struct sl_event)GPU_OF(gpu, 140));
	(void)at(&p, 0,
		(struct sl_event)EVENT(WORKLOAD_ADD, workload_add,
			{1, BYTES(60), BYTES(100), 1, 2, 0, 1}));
	(void)at(&p, 0, (struct sl_event)EVENT(WORKLOAD_PARK, workload_park, {1, 1}));
	(void)at(&p, 0, (struct sl_event)EVENT(CLIENT_JOIN, client_join, {1, 1, 1, 1}));
	(void)at(&p, 0, (struct sl_event)EVENT(CLIENT_AWAY, client_away, {1, 1, 30}));
	is(&p, "reports", SL_PRESENCE_HERE);
	(void)at(&p, 1, (struct sl_event)REPORT(1, 1, 60));
	(void)at(&p, 1, (struct sl_event)EVICTED(1, 1, 60));
	(void)at(&p, 1, (struct sl_event)EVENT(CLIENT_REPORTED, client_reported, {1}));
	is(&p, "is away", SL_PRESENCE_AWAY);
	assert_non_null(
		strstr(at(&p, 2, (struct sl_event)RESUME(1, 1)), "MOVES 1 g1 g0"));
	play_close(&p);
}

/* Nothing is ordered before all have reported, and what one that never reports has is unknown. */
static void test_waits_for_reports(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	(void)at(&p, 0, (struct sl_event)SETTING(1));
	(void)at(&p, 0, (struct sl_event)GPU_OF(0, 140));
	(void)at(&p, 0,
		(struct sl_event)EVENT(WORKLOAD_ADD, workload_add,
			{1, BYTES(60), BYTES(100), 1, 1, 0, 1}));
	(void)at(&p, 0, (struct sl_event)EVENT(WORKLOAD_PARK, workload_park, {1, 1}));
	(void)at(&p, 0, (struct sl_event)EVENT(CLIENT_JOIN, client_join, {1, 1, 1, 1}));
	(void)at(&p, 0,
		(struct sl_event)EVENT(WORKLOAD_ADD, workload_add,
			{2, BYTES(30), BYTES(100), 1, 1, 0, 1}));
	(void)at(&p, 0, (struct sl_event)EVENT(CLIENT_JOIN, client_join, {2, 2, 1, 1}));
	(void)at(&p, 1, (struct sl_event)REPORT(1, 0, 60));
	(void)at(&p, 1, (struct sl_event)HIDDEN(1, 0, 30));
	(void)at(&p, 1, (struct sl_event)EVENT(CLIENT_REPORTED, client_reported, {1}));
	is(&p, "another workload is silent", SL_PRESENCE_HERE);
	(void)at(&p, 10, (struct sl_event)EVENT(CLIENT_JOIN, client_join, {3, 1, 1, 1}));
	(void)at(&p, 2010, (struct sl_event)TIME);
	is(&p, "leaves", SL_PRESENCE_HERE);
	(void)at(&p, 2011, (struct sl_event)DONE(1, id(&p, SL_ACTION_EVICT), 0, 60));
	(void)at(&p, 2012, (struct sl_event)PLACED(1, id(&p, SL_ACTION_DETACH)));
	is(&p, "one of its own is silent", SL_PRESENCE_STAYS);
	(void)at(&p, 2013, (struct sl_event)EVENT(CLIENT_REPORTED, client_reported, {3}));
	is(&p, "it has no context", SL_PRESENCE_STAYS);
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comes_back_elsewhere),
		cmocka_unit_test(test_stays_at_its_own),
		cmocka_unit_test(test_which_gpus),
		cmocka_unit_test(test_not_away),
		cmocka_unit_test(test_answer_is_due),
		cmocka_unit_test(test_stays),
		cmocka_unit_test(test_busy_once),
		cmocka_unit_test(test_has_nothing),
		cmocka_unit_test(test_two_gpus),
		cmocka_unit_test(test_demands_go_along),
		cmocka_unit_test(test_goes_on_to_another),
		cmocka_unit_test(test_smaller_gpu),
		cmocka_unit_test(test_dying_stays),
		cmocka_unit_test(test_recovers),
		cmocka_unit_test(test_waits_for_reports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
