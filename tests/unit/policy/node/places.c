/*
 * places - processes of a parked workload leave their GPUs whole, and come back before their memory
 *
 * A (workload 1, client 1) has a context of 30, which the reserve of 40 pays, and 60 of memory. B
 * (workload 2) is the other one.
 */
#include "play.h"

#define SWAP                                                           \
	SETTINGS(.pool_bytes = 1000, .evict_drain = SL_S, .detach = 1, \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0))
#define STAYS                        \
	SETTINGS(.pool_bytes = 1000, \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0))
#define GPU_WITH_RESERVE(capacity, reserve) \
	EVENT(GPU_ADD, gpu_add, {0, capacity, reserve})
#define WORKLOAD(w, request) \
	EVENT(WORKLOAD_ADD, workload_add, {w, BYTES(request), BYTES(100), 1, 1, 0})
#define SWAPPER(c, w) EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define PARK(w)       EVENT(WORKLOAD_PARK, workload_park, {w, 0})
#define RESUME(w)     EVENT(WORKLOAD_RESUME, workload_resume, {w})
#define LEAVES(w)     EVENT(WORKLOAD_PARK, workload_park, {w, 0, 1})
#define LEFT_AFTER(w, span) \
	EVENT(WORKLOAD_SET, workload_set, {w, SL_SET_DETACH, .detach_after = span})
#define IDLE(c, span, proven) EVENT(PULSE, pulse, {c, span, 0, proven})
#define WANTS(c)              EVENT(WANT, want, {c, 1})
#define DONE(c, o, n)         EVENT(DONE, done, {c, o, 0, SL_SWAP_OK, 0, n})
#define PLACED(c, o)          EVENT(PLACED, placed, {c, o, SL_SWAP_OK, 0, 5 * SL_MS})
#define STAYED(c, o, why) \
	EVENT(PLACED, placed, {c, o, SL_SWAP_REFUSED, SL_SWAP_##why, 5 * SL_MS})
#define AWAY(c, n)      EVENT(CLIENT_AWAY, client_away, {c, 0, n})
#define HELD(c, n)      EVENT(HELD, held, {c, 0, n})
#define CONDITION(c, x) EVENT(CONDITION, condition, {c, SL_CONDITION_##x})

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

static void begin(struct play *p, struct sl_event settings)
{
	play_open(p);
	(void)at(p, 0, settings);
	(void)at(p, 0, (struct sl_event)GPU_WITH_RESERVE(140, 40));
	(void)at(p, 0, (struct sl_event)WORKLOAD(1, 60));
	(void)at(p, 0, (struct sl_event)SWAPPER(1, 1));
	(void)at(p, 0, (struct sl_event)HIDDEN(1, 0, 30));
	play_has(p, 1, 1, 60);
	(void)at(p, 0, (struct sl_event)WORKLOAD(2, 30));
	(void)at(p, 0, (struct sl_event)SWAPPER(2, 2));
	assert_row_u64("paid", sl_node_gpu(p->node, 0).paid_bytes, 30);
}

/* A's memory is on the host. */
static const char *memory_leaves(struct play *p, uint64_t at_ms)
{
	assert_non_null(strstr(
		at(p, at_ms, (struct sl_event)PARK(1)), "EVICT 1 g0 60 PARK_BEGINS"));
	return at(p, at_ms, (struct sl_event)DONE(1, id(p, SL_ACTION_EVICT), 60));
}

static void leaves(struct play *p, uint64_t at_ms)
{
	(void)memory_leaves(p, at_ms);
	(void)at(p, at_ms, (struct sl_event)PLACED(1, id(p, SL_ACTION_DETACH)));
	assert_row_u64("nothing there", sl_node_gpu(p->node, 0).paid_bytes, 0);
	assert_row_u64("away", sl_node_client_use(p->node, 1, 0).away_bytes, 30);
}

/* Memory, contexts; contexts, memory. */
static void test_goes_and_returns(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP);
	assert_row_text(
		"follows its memory", memory_leaves(&p, 10), "DETACH 1 30; PARKED 1 60");
	assert_row_u64("drain", p.last[SL_ACTION_DETACH].detach.drain, SL_S);
	assert_row_u64(
		"parked", sl_node_workload(p.node, 1).residency, SL_RESIDENCY_PARKED);
	/* Samples from before do not count. */
	says(&p, "old sample", 11, (struct sl_event)HIDDEN(1, 0, 29), "");
	says(&p, "has left", 12, (struct sl_event)PLACED(1, id(&p, SL_ACTION_DETACH)),
		"VIEW 1 g0; NOTE DETACHED g0 1/0 30");
	assert_row_u64("reserve", sl_node_gpu(p.node, 0).paid_bytes, 0);
	says(&p, "late sample", 13, (struct sl_event)HIDDEN(1, 0, 30), "");
	assert_row_u64("stays free", sl_node_gpu(p.node, 0).paid_bytes, 0);
	says(&p, "resumes", 20, (struct sl_event)RESUME(1),
		"SET 1 r60 l100 p0 over0; RESUMED 1 60; VIEW 1 g0; ATTACH 1; PROBE 1 1");
	assert_row_u64("its room", sl_node_gpu(p.node, 0).paid_bytes, 30);
	says(&p, "sample of nothing", 21, (struct sl_event)HIDDEN(1, 0, 0), "");
	assert_row_u64("keeps it", sl_node_gpu(p.node, 0).paid_bytes, 30);
	assert_row_u64(
		"returns", sl_node_workload(p.node, 1).residency, SL_RESIDENCY_RETURNING);
	says(&p, "is back", 25, (struct sl_event)PLACED(1, id(&p, SL_ACTION_ATTACH)),
		"NOTE ATTACHED g0 1/0 30; RESTORE 1 g0 60");
	says(&p, "memory", 26, (struct sl_event)DONE(1, id(&p, SL_ACTION_RESTORE), 0),
		"NOTE RESTORED g0 1/0 60");
	says(&p, "answered twice", 27,
		(struct sl_event)PLACED(1, id(&p, SL_ACTION_ATTACH)),
		"NOTE STRAY g0 1/0 0");
	play_close(&p);
}

/* Without the setting, and where something stays. */
static void test_stays(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)STAYS);
	assert_row_text("switched off", memory_leaves(&p, 10), "PARKED 1 60");
	play_close(&p);
	begin(&p, (struct sl_event)SWAP);
	(void)at(&p, 1, (struct sl_event)HELD(1, 10));
	assert_non_null(strstr(at(&p, 2, (struct sl_event)PARK(1)), "EVICT 1 g0 50"));
	says(&p, "held memory", 3, (struct sl_event)DONE(1, id(&p, SL_ACTION_EVICT), 50),
		"PARKED 1 50");
	play_close(&p);
	begin(&p, (struct sl_event)SWAP);
	assert_non_null(strstr(at(&p, 1, (struct sl_event)PARK(1)), "EVICT 1 g0 60"));
	(void)at(&p, 1, (struct sl_event)CONDITION(1, STOPPED));
	says(&p, "stopped", 2, (struct sl_event)DONE(1, id(&p, SL_ACTION_EVICT), 60),
		"PARKED 1 60");
	says(&p, "runs again", 3, (struct sl_event)CONDITION(1, RUNNING), "DETACH 1 30");
	play_close(&p);
}

/* A process without memory goes, too. */
static void test_only_a_context(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP);
	(void)at(&p, 0, (struct sl_event)HIDDEN(2, 0, 8));
	assert_non_null(
		strstr(at(&p, 1, (struct sl_event)PARK(2)), "DETACH 2 8; PARKED 2 0"));
	(void)at(&p, 2, (struct sl_event)PLACED(2, id(&p, SL_ACTION_DETACH)));
	assert_non_null(strstr(at(&p, 3, (struct sl_event)RESUME(2)), "ATTACH 2"));
	says(&p, "whole", 4, (struct sl_event)PLACED(2, id(&p, SL_ACTION_ATTACH)),
		"NOTE ATTACHED g0 2/0 8");
	assert_row_u64("bound", sl_node_client(p.node, 2).order, 0);
	assert_false(sl_node_client(p.node, 2).wants);
	play_close(&p);
}

/* A refusal is told once, and asked again, later each time. */
static void test_refuses(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP);
	(void)memory_leaves(&p, 10);
	p.shows_wakes = true;
	says(&p, "refused", 10,
		(struct sl_event)STAYED(1, id(&p, SL_ACTION_DETACH), BUSY),
		"NOTE DETACH_BUSY g0 1/0 30; PROBE 1 1; WAKE 5010");
	p.shows_wakes = false;
	says(&p, "not yet", 5009, (struct sl_event)TIME, "");
	says(&p, "again", 5010, (struct sl_event)TIME, "DETACH 1 30");
	says(&p, "told once", 5010,
		(struct sl_event)STAYED(1, id(&p, SL_ACTION_DETACH), DRIVER), "");
	says(&p, "twice as long", 15009, (struct sl_event)TIME, "");
	says(&p, "then", 15010, (struct sl_event)TIME, "DETACH 1 30");
	/* A person resumes it meanwhile. */
	assert_non_null(
		strstr(at(&p, 15011, (struct sl_event)RESUME(1)), "RESUMED 1 60"));
	says(&p, "memory at once", 15012,
		(struct sl_event)STAYED(1, id(&p, SL_ACTION_DETACH), DRIVER),
		"RESTORE 1 g0 60; PROBE 1 0");
	play_close(&p);
}

/* It left although it was resumed meanwhile: it comes back. */
static void test_resumed_meanwhile(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP);
	(void)memory_leaves(&p, 10);
	assert_null(strstr(at(&p, 11, (struct sl_event)RESUME(1)), "RESTORE"));
	says(&p, "left", 12, (struct sl_event)PLACED(1, id(&p, SL_ACTION_DETACH)),
		"VIEW 1 g0; NOTE DETACHED g0 1/0 30; VIEW 1 g0; ATTACH 1");
	play_close(&p);
}

static void test_return_fails(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP);
	leaves(&p, 10);
	(void)at(&p, 20, (struct sl_event)RESUME(1));
	says(&p, "not yet", 21,
		(struct sl_event)STAYED(1, id(&p, SL_ACTION_ATTACH), DRIVER),
		"VIEW 1 g0; NOTE ATTACH_FAILED g0 1/0 30");
	assert_row_u64("gives its room back", sl_node_gpu(p.node, 0).paid_bytes, 0);
	says(&p, "again", 41, (struct sl_event)TIME, "VIEW 1 g0; ATTACH 1");
	says(&p, "lost", 42,
		(struct sl_event)EVENT(PLACED, placed,
			{1, id(&p, SL_ACTION_ATTACH), SL_SWAP_OK, SL_SWAP_BROKEN, 0}),
		"NOTE BROKEN_AWAY g0 1/0 30; RESTORE 1 g0 60");
	play_close(&p);
}

/* Another context took its place in the reserve, and B could never be whole beside both. */
static void test_reserve_is_taken(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP);
	leaves(&p, 10);
	(void)at(&p, 11, (struct sl_event)HIDDEN(2, 0, 35));
	(void)at(&p, 11, (struct sl_event)ASK(2, 1, 0, 90));
	(void)at(&p, 11,
		(struct sl_event)COMMIT(2, p.last[SL_ACTION_GRANT].grant.epoch, 90));
	assert_row_u64("paid", sl_node_gpu(p.node, 0).paid_bytes, 35);
	assert_null(strstr(at(&p, 20, (struct sl_event)RESUME(1)), "RESUMED"));
	assert_row_u64(
		"waits", sl_node_workload(p.node, 1).residency, SL_RESIDENCY_RESUMING);
	(void)at(&p, 30, (struct sl_event)EXIT(2));
	assert_non_null(
		strstr(at(&p, 31, (struct sl_event)RELEASED(2, 0, 0)), "ATTACH 1"));
	play_close(&p);
}

/* What the reserve cannot pay needs room of its own: a burst leaves for it. */
static void test_needs_room(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP);
	leaves(&p, 10);
	(void)at(&p, 11, (struct sl_event)HIDDEN(2, 0, 20));
	(void)at(&p, 11, (struct sl_event)ASK(2, 1, 0, 95));
	(void)at(&p, 11,
		(struct sl_event)COMMIT(2, p.last[SL_ACTION_GRANT].grant.epoch, 95));
	/* 20 of the reserve are left for 30, and 5 of the GPU are free for 10 and 60. */
	assert_non_null(strstr(at(&p, 20, (struct sl_event)RESUME(1)), "EVICT 2 g0 65"));
	assert_non_null(
		strstr(at(&p, 21, (struct sl_event)DONE(2, id(&p, SL_ACTION_EVICT), 65)),
			"ATTACH 1"));
	assert_row_u64("its own", sl_node_use(p.node, 1, 0).hidden_bytes, 10);
	play_close(&p);
}

/* A process that is told to end may need its GPUs for that. */
static void test_is_stopped(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP);
	leaves(&p, 10);
	says(&p, "while it is away", 11,
		(struct sl_event)EVENT(WORKLOAD_STOP, workload_stop, {1, 10 * SL_S}),
		"STOP 0 1 TERM STOP_ASKED; VIEW 1 g0; ATTACH 1; PROBE 1 1");
	play_close(&p);
	begin(&p, (struct sl_event)SWAP);
	(void)memory_leaves(&p, 10);
	(void)at(&p, 11,
		(struct sl_event)EVENT(WORKLOAD_STOP, workload_stop, {1, 10 * SL_S}));
	assert_non_null(
		strstr(at(&p, 12, (struct sl_event)PLACED(1, id(&p, SL_ACTION_DETACH))),
			"ATTACH 1"));
	play_close(&p);
}

/* Its end while it is away, and on its way. */
static void test_dies(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP);
	leaves(&p, 10);
	says(&p, "ends", 11, (struct sl_event)EXIT(1), "");
	assert_false(sl_node_client(p.node, 1).known);
	play_close(&p);
	begin(&p, (struct sl_event)SWAP);
	leaves(&p, 10);
	(void)at(&p, 11, (struct sl_event)RESUME(1));
	(void)at(&p, 12, (struct sl_event)EXIT(1));
	says(&p, "answer to the dead", 13,
		(struct sl_event)PLACED(1, id(&p, SL_ACTION_ATTACH)),
		"NOTE STRAY g0 1/0 0");
	(void)at(&p, 14, (struct sl_event)RELEASED(1, 0, 0));
	assert_row_u64("all free", sl_node_gpu(p.node, 0).free_bytes, 100);
	assert_row_u64("reserve", sl_node_gpu(p.node, 0).paid_bytes, 0);
	play_close(&p);
}

/* What a refusal to leave has put off ends with the park: it leaves for others at once. */
static void test_back_off_ends(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP);
	(void)at(&p, 0, (struct sl_event)HIDDEN(2, 0, 8));
	(void)at(&p, 1, (struct sl_event)PARK(2));
	(void)at(&p, 2, (struct sl_event)STAYED(2, id(&p, SL_ACTION_DETACH), DRIVER));
	(void)at(&p, 5002, (struct sl_event)TIME);
	assert_non_null(strstr(at(&p, 5003, (struct sl_event)RESUME(2)), "RESUMED 2"));
	(void)at(&p, 5004, (struct sl_event)STAYED(2, id(&p, SL_ACTION_DETACH), DRIVER));
	assert_false(sl_node_client(p.node, 2).wants);
	/* B bursts over the free 40; then A grows within its request. */
	(void)at(&p, 5005, (struct sl_event)ASK(2, 1, 0, 40));
	(void)at(&p, 5005,
		(struct sl_event)COMMIT(2, p.last[SL_ACTION_GRANT].grant.epoch, 40));
	(void)at(&p, 5006, (struct sl_event)FREED(1, 0, 60));
	(void)at(&p, 5006, (struct sl_event)ASK(2, 2, 0, 30));
	(void)at(&p, 5006,
		(struct sl_event)COMMIT(2, p.last[SL_ACTION_GRANT].grant.epoch, 30));
	assert_non_null(
		strstr(at(&p, 5007, (struct sl_event)ASK(1, 9, 0, 60)), "EVICT 2"));
	play_close(&p);
}

/* What memory it has is not known: it might leave with the process. */
static void test_unheard(void **state)
{
	static const struct sl_event before[] = {SWAP, GPU_WITH_RESERVE(140, 40),
		EVENT(WORKLOAD_ADD, workload_add, {1, BYTES(60), BYTES(100), 1, 1, 0, 1}),
		EVENT(WORKLOAD_PARK, workload_park, {1, 1}),
		EVENT(CLIENT_JOIN, client_join, {1, 1, 1, 1}), HIDDEN(1, 0, 90)};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)at(&p, 0, before[i]);
	assert_null(strstr(at(&p, 60000, (struct sl_event)TIME), "DETACH"));
	(void)at(&p, 60001, (struct sl_event)REPORT(1, 0, 60));
	(void)at(&p, 60001,
		(struct sl_event)EVENT(CLIENT_EVICTED, client_evicted, {1, 0, 60}));
	(void)at(&p, 60001, (struct sl_event)HIDDEN(1, 0, 30));
	says(&p, "heard", 60002,
		(struct sl_event)EVENT(CLIENT_REPORTED, client_reported, {1}),
		"DETACH 1 30");
	play_close(&p);
}

/* It cannot return to a GPU that is lost. */
static void test_lost(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP);
	(void)at(&p, 0, (struct sl_event)GPU(1, 100));
	(void)at(&p, 0, (struct sl_event)HIDDEN(1, 1, 5));
	leaves(&p, 10);
	(void)at(&p, 11, (struct sl_event)LOST(1));
	assert_null(strstr(at(&p, 12, (struct sl_event)RESUME(1)), "ATTACH"));
	assert_non_null(strstr(at(&p, 13, (struct sl_event)GPU(1, 100)), "ATTACH 1"));
	play_close(&p);
}

/* After a restart of the daemon: parked, it stays away; else it comes back at once. */
static void test_recovers(void **state)
{
	static const struct sl_event before[] = {SWAP, GPU_WITH_RESERVE(140, 40),
		EVENT(WORKLOAD_ADD, workload_add,
			{1, BYTES(60), BYTES(100), 1, 1, 0, 1})};

	(void)state;
	for (int parked = 0; parked < 2; parked++) {
		struct play p;

		play_open(&p);
		for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
			(void)at(&p, 0, before[i]);
		if (parked)
			(void)at(&p, 0,
				(struct sl_event)EVENT(
					WORKLOAD_PARK, workload_park, {1, 1}));
		(void)at(&p, 0,
			(struct sl_event)EVENT(CLIENT_JOIN, client_join, {1, 1, 1, 1}));
		(void)at(&p, 0, (struct sl_event)AWAY(1, 30));
		(void)at(&p, 1, (struct sl_event)REPORT(1, 0, 60));
		(void)at(&p, 1,
			(struct sl_event)EVENT(
				CLIENT_EVICTED, client_evicted, {1, 0, 60}));
		(void)at(&p, 1, (struct sl_event)HIDDEN(1, 0, 0));
		if (parked) {
			assert_null(strstr(at(&p, 2,
						   (struct sl_event)EVENT(CLIENT_REPORTED,
							   client_reported, {1})),
				"ATTACH"));
			assert_non_null(strstr(
				at(&p, 3, (struct sl_event)RESUME(1)), "ATTACH 1"));
		} else {
			assert_non_null(
				strstr(at(&p, 2,
					       (struct sl_event)EVENT(CLIENT_REPORTED,
						       client_reported, {1})),
					"ATTACH 1"));
		}
		play_close(&p);
	}
}

/* --- detached for lack of work --- */

static void left(struct play *p)
{
	begin(p, (struct sl_event)SWAP);
	(void)at(p, 1, (struct sl_event)LEFT_AFTER(1, 10 * SL_S));
	(void)at(p, 1000, (struct sl_event)IDLE(1, SL_MS, 0));
}

/* All of it idle, and proven; then asked again only after a while. */
static void test_has_no_work(void **state)
{
	struct play p;

	(void)state;
	left(&p);
	assert_row_u64("is watched", sl_node_client(p.node, 1).probe, SL_PROBE_WATCH);
	says(&p, "not yet", 10900, (struct sl_event)TIME, "");
	says(&p, "is to be proven", 10999, (struct sl_event)TIME, "PROBE 1 2");
	says(&p, "proven", 11100, (struct sl_event)IDLE(1, 10100 * SL_MS, 1),
		"DETACHES 1");
	says(&p, "asked once", 11200, (struct sl_event)TIME, "");
	says(&p, "and again", 16100, (struct sl_event)TIME, "DETACHES 1; PROBE 1 1");
	(void)at(&p, 16200, (struct sl_event)IDLE(1, 0, 0));
	says(&p, "works", 30000, (struct sl_event)TIME, "");
	play_close(&p);
}

/* Without a process on the GPU there is no memory to move: the request goes. The first process
 * brings it back by its first demand. */
static void test_has_no_process(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP);
	(void)at(&p, 1, (struct sl_event)WORKLOAD(3, 10));
	(void)at(&p, 2, (struct sl_event)LEFT_AFTER(3, 10 * SL_S));
	says(&p, "not yet", 10001, (struct sl_event)TIME, "");
	says(&p, "is left", 10002, (struct sl_event)TIME, "DETACHES 3");
	(void)at(&p, 10003, (struct sl_event)LEAVES(3));
	assert_row_u64("its request is free", sl_node_gpu(p.node, 0).requests_bytes, 90);
	says(&p, "asked once", 30000, (struct sl_event)TIME, "");
	(void)at(&p, 30001, (struct sl_event)SWAPPER(3, 3));
	says(&p, "a process alone changes nothing", 60000, (struct sl_event)TIME, "");
	assert_non_null(
		strstr(at(&p, 60001, (struct sl_event)ASK(3, 1, 0, 5)), "CALLS 3"));
	assert_non_null(strstr(at(&p, 60002, (struct sl_event)RESUME(3)), "GRANT"));
	assert_row_u64("its request is back", sl_node_gpu(p.node, 0).requests_bytes, 100);
	play_close(&p);
}

/* From the end of its last process, from its resume and from the change the time counts again. */
static void test_last_process_ends(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP);
	(void)at(&p, 1, (struct sl_event)LEFT_AFTER(2, 10 * SL_S));
	says(&p, "a process is there", 15000, (struct sl_event)TIME, "");
	(void)at(&p, 20000, (struct sl_event)EXIT(2));
	says(&p, "its end", 29999, (struct sl_event)TIME, "");
	says(&p, "is long ago", 30000, (struct sl_event)TIME, "DETACHES 2");
	(void)at(&p, 30001, (struct sl_event)LEAVES(2));
	(void)at(&p, 40000, (struct sl_event)RESUME(2));
	says(&p, "resumed", 49999, (struct sl_event)TIME, "");
	says(&p, "for as long", 50000, (struct sl_event)TIME, "DETACHES 2");
	(void)at(&p, 50001, (struct sl_event)LEFT_AFTER(2, 0));
	says(&p, "never", 90000, (struct sl_event)TIME, "");
	play_close(&p);
}

static void test_second_works(void **state)
{
	struct play p;

	(void)state;
	left(&p);
	(void)at(&p, 1000, (struct sl_event)SWAPPER(3, 1));
	(void)at(&p, 1000, (struct sl_event)HIDDEN(3, 0, 5));
	(void)at(&p, 2000, (struct sl_event)IDLE(3, 0, 0));
	(void)at(&p, 11100, (struct sl_event)IDLE(1, 10100 * SL_MS, 1));
	assert_row_u64("one of two", p.last[SL_ACTION_DETACHES].detaches.workload, 0);
	assert_non_null(strstr(at(&p, 11200, (struct sl_event)EXIT(3)), "DETACHES 1"));
	play_close(&p);
}

/* It gives its request up, goes, and comes back with its next call. */
static void test_next_call(void **state)
{
	struct play p;

	(void)state;
	left(&p);
	(void)at(&p, 11100, (struct sl_event)IDLE(1, 10100 * SL_MS, 1));
	assert_non_null(strstr(at(&p, 11101, (struct sl_event)LEAVES(1)),
		"SET 1 r60 l100 p0 over0; NOTE DETACH_BEGINS g0 1/0 60; EVICT 1 g0 60"));
	assert_row_u64("request", sl_node_gpu(p.node, 0).requests_bytes, 30);
	assert_row_u64("on its way", sl_node_workload(p.node, 1).residency,
		SL_RESIDENCY_LEAVING);
	assert_non_null(strstr(
		at(&p, 11102, (struct sl_event)DONE(1, id(&p, SL_ACTION_EVICT), 60)),
		"DETACH 1 30; PARKED 1 60"));
	assert_true(p.last[SL_ACTION_PARKED].parked.returns);
	(void)at(&p, 11103, (struct sl_event)PLACED(1, id(&p, SL_ACTION_DETACH)));
	assert_row_u64(
		"gone", sl_node_workload(p.node, 1).residency, SL_RESIDENCY_DETACHED);
	assert_null(strstr(at(&p, 60000, (struct sl_event)TIME), "CALLS"));
	assert_non_null(strstr(at(&p, 60001, (struct sl_event)WANTS(1)), "CALLS 1"));
	assert_null(strstr(at(&p, 60500, (struct sl_event)TIME), "CALLS"));
	assert_non_null(strstr(at(&p, 61001, (struct sl_event)TIME), "CALLS 1"));
	assert_non_null(strstr(at(&p, 61002, (struct sl_event)RESUME(1)), "ATTACH 1"));
	(void)at(&p, 61003, (struct sl_event)PLACED(1, id(&p, SL_ACTION_ATTACH)));
	(void)at(&p, 61004, (struct sl_event)DONE(1, id(&p, SL_ACTION_RESTORE), 0));
	assert_row_u64(
		"bound", sl_node_workload(p.node, 1).residency, SL_RESIDENCY_BOUND);
	assert_null(strstr(at(&p, 62000, (struct sl_event)TIME), "DETACHES"));
	play_close(&p);
}

/* A person's park of a detached workload keeps it away. */
static void test_parked_by_hand(void **state)
{
	struct play p;

	(void)state;
	left(&p);
	(void)at(&p, 11101, (struct sl_event)LEAVES(1));
	(void)at(&p, 11102, (struct sl_event)DONE(1, id(&p, SL_ACTION_EVICT), 60));
	assert_non_null(strstr(at(&p, 11103, (struct sl_event)PARK(1)), "SET 1 r60"));
	assert_null(strstr(at(&p, 11104, (struct sl_event)WANTS(1)), "CALLS"));
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goes_and_returns),
		cmocka_unit_test(test_stays),
		cmocka_unit_test(test_only_a_context),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_resumed_meanwhile),
		cmocka_unit_test(test_return_fails),
		cmocka_unit_test(test_reserve_is_taken),
		cmocka_unit_test(test_needs_room),
		cmocka_unit_test(test_is_stopped),
		cmocka_unit_test(test_dies),
		cmocka_unit_test(test_recovers),
		cmocka_unit_test(test_has_no_work),
		cmocka_unit_test(test_has_no_process),
		cmocka_unit_test(test_last_process_ends),
		cmocka_unit_test(test_second_works),
		cmocka_unit_test(test_next_call),
		cmocka_unit_test(test_parked_by_hand),
		cmocka_unit_test(test_back_off_ends),
		cmocka_unit_test(test_unheard),
		cmocka_unit_test(test_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
