#include "play.h"

/*
 * Resolving a collision: stories of one GPU of 100 bytes. Workload w has client 10 * w; second
 * clients end in 1. Epochs count through a story.
 */

#define PRIORITY     SL_CHAIN(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT, 0)
#define WAIT_FIRST   SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_PRIORITY, 0)
#define NO_WAIT      SL_CHAIN(SL_RESOLVER_PRIORITY, 0, 0)
#define SWAP_ONLY    SL_CHAIN(SL_RESOLVER_SWAP, 0, 0)
#define CHAIN(which) SETTINGS(.chain = (which), .stop_idle = 600 * SL_S)
#define WORKLOAD(w, request, limit, priority) \
	EVENT(WORKLOAD_ADD, workload_add,     \
		{w, BYTES(request), BYTES(limit), 1, 1, priority, 0, 0, 0, 0, {ANY}})
#define FLAGGED(w, request, limit, priority, flags)                               \
	EVENT(WORKLOAD_ADD, workload_add,                                         \
		{w, BYTES(request), BYTES(limit), 1, 1, priority, 0, 0, flags, 0, \
			{ANY}})
#define PULSE(c, idle_s, busy_s, proven) \
	EVENT(PULSE, pulse, {c, (idle_s)*SL_S, (busy_s)*SL_S, proven})
#define IS(c, condition_) EVENT(CONDITION, condition, {c, SL_CONDITION_##condition_})
#define CANCEL(c, a)      EVENT(CANCEL, cancel, {c, a})
#define WORK(c)           EVENT(WORK, work, {c})
#define ASK_NOW(c, a, n)  EVENT(ASK, ask, {c, a, 0, n, SL_NODE_ASK_NOW})
#define STOP(w)           EVENT(WORKLOAD_STOP, workload_stop, {w, 10 * SL_S})

#define STOP_FAILED(c) EVENT(STOP_FAILED, stop_failed, {c})

/* The lower holds all but 10; the higher asks for 40 within its request. */
#define LOW_HOLDS(chain_)                                                    \
	{"settings", 0, CHAIN(chain_), ""}, {"a GPU", 0, GPU(0, 100), ""},   \
		{"low", 0, WORKLOAD(1, 10, 100, 0), "ADMIT 1 m1 r10 l100"},  \
		{"its process", 0, JOIN(10, 1), "PROBE 10 1"},               \
		{"it takes much", 0, ASK(10, 1, 0, 90), "GRANT 10/1 g0 90"}, \
		{"and has it", 0, COMMIT(10, 1, 90), ""},                    \
		{"high", 0, WORKLOAD(2, 40, 100, 5), "ADMIT 2 m1 r40 l100"}, \
	{                                                                    \
		"its process", 0, JOIN(20, 2), "PROBE 20 1"                  \
	}

static void stops_lower_priority(void **state)
{
	static const struct play_row rows[] = {
		LOW_HOLDS(PRIORITY),
		{"a collision", 0, ASK(20, 1, 0, 40), "STOP 10 1 TERM STOP_PRIORITY"},
		{"not again", 5000, TIME, "NOTE STOPPING_WAITS g0 2/1 40"},
		{"not yet", 9999, TIME, ""},
		{"the grace is over", 10000, TIME, "STOP 10 1 KILL STOP_PRIORITY"},
		{"it dies", 10100, EXIT(10), ""},
		{"its memory is there", 10200, RELEASED(10, 0, 0),
			"GRANT 20/1 g0 40; NOTE SERVED_AFTER_WAIT g0 2/0 40"},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, 9);
	assert_row_u64("for", p.last[SL_ACTION_STOP].stop.other, 2);
	assert_row_u64("bytes", p.last[SL_ACTION_STOP].stop.bytes, 40);
	assert_row_u64("above", p.last[SL_ACTION_STOP].stop.other_bytes, 80);
	assert_true(sl_node_client(p.node, 10).stopping);
	assert_false(sl_node_client(p.node, 10).killed);
	assert_row_u64(
		"why", sl_node_client(p.node, 10).stop_reason, SL_REASON_STOP_PRIORITY);
	play_rows(&p, rows + 9, SL_ARRAY_LEN(rows) - 9);
	play_close(&p);
}

/* Free bytes or none: nothing is stopped, and nothing waits, for what must be free now. */
static void only_what_is_free_now(void **state)
{
	static const struct play_row rows[] = {
		LOW_HOLDS(PRIORITY),
		{"more than is free", 0, ASK_NOW(20, 1, 40), "DENY 20/1 CANCELLED g0"},
		{"what is free", 0, ASK_NOW(20, 2, 10), "GRANT 20/2 g0 10"},
		{"used", 0, COMMIT(20, 2, 10), ""},
		{"a collision", 0, ASK(20, 3, 0, 5), "STOP 10 1 TERM STOP_PRIORITY"},
		{"behind a head", 0, ASK_NOW(20, 4, 1), "DENY 20/4 CANCELLED g0"},
	};

	PLAY(rows);
}

static void spares_who_is_not_needed(void **state)
{
	static const struct play_row rows[] = {
		LOW_HOLDS(PRIORITY),
		{"a collision", 0, ASK(20, 1, 0, 40), "STOP 10 1 TERM STOP_PRIORITY"},
		{"gives by itself", 100, FREED(10, 0, 30), "GRANT 20/1 g0 40"},
		{"is left alone", 10000, TIME, "NOTE STOP_REVOKED g0 1/2 40"},
		{"for good", 30000, TIME, ""},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	assert_row_u64("who", p.last[SL_ACTION_NOTE].note.client, 10);
	assert_false(sl_node_client(p.node, 10).stopping);
	play_close(&p);
}

/* Memory on its way is enough for the second demand; for a third it is not. */
static void counts_what_is_coming(void **state)
{
	static const struct play_row rows[] = {
		{"settings", 0, CHAIN(PRIORITY), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"low", 0, WORKLOAD(1, 0, 100, 0), "ADMIT 1 m1 r0 l100"},
		{"one process", 0, JOIN(10, 1), "PROBE 10 1"},
		{"another", 0, JOIN(11, 1), "PROBE 11 1"},
		{"60", 0, ASK(10, 1, 0, 60), "GRANT 10/1 g0 60"},
		{"40", 0, ASK(11, 1, 0, 40), "GRANT 11/1 g0 40"},
		{"high", 0, WORKLOAD(2, 0, 100, 5), "ADMIT 2 m1 r0 l100"},
		{"its process", 0, JOIN(20, 2), "PROBE 20 1"},
		{"the younger suffices", 0, ASK(20, 1, 0, 30),
			"STOP 11 1 TERM STOP_PRIORITY"},
		{"what it leaves over, too", 0, ASK(20, 2, 0, 10), ""},
		{"now another", 0, ASK(20, 3, 0, 5), "STOP 10 1 TERM STOP_PRIORITY"},
		{"the first dies", 100, EXIT(11), "VIEW 1 g0"},
		{"dying counts", 100, TIME, ""},
		{"what was released is shared out", 200, RELEASED(11, 0, 0),
			"GRANT 20/1 g0 30; GRANT 20/2 g0 10"},
	};

	PLAY(rows);
}

static void stops_nobody_in_vain(void **state)
{
	static const struct play_row rows[] = {
		LOW_HOLDS(PRIORITY),
		{"equals", 0, WORKLOAD(3, 0, 100, 0), "ADMIT 3 m1 r0 l100"},
		{"its process", 0, JOIN(30, 3), "PROBE 30 1"},
		{"equal priority is no reason", 0, ASK(30, 1, 0, 50), ""},
		{"too much for the higher: requests stay", 0, ASK(20, 1, 0, 95), ""},
		/* 10 free and 80 of the lower's burst, of which its own 10 stay requested. */
		{"within what can be had", 0, ASK(20, 2, 0, 85), ""},
	};

	PLAY(rows);
}

/* The head that nothing can help is not overtaken by stopping for those behind it. */
static void works_for_the_head_alone(void **state)
{
	static const struct play_row rows[] = {
		LOW_HOLDS(PRIORITY),
		{"too much", 0, ASK(20, 1, 0, 95), ""},
		{"less, behind it", 0, ASK(20, 2, 0, 50), ""},
		{"the head gives up", 10, CANCEL(20, 1),
			"DENY 20/1 CANCELLED g0; STOP 10 1 TERM STOP_PRIORITY"},
	};

	PLAY(rows);
}

static void waits_first_where_told_so(void **state)
{
	static const struct play_row rows[] = {
		LOW_HOLDS(WAIT_FIRST),
		{"it waits", 0, ASK(20, 1, 0, 40), ""},
		{"is noted", 1000, TIME, "NOTE ENTITLED_WAITS g0 2/1 40"},
		{"waits on", 59999, TIME, ""},
		{"as long as a burst at most", 60000, TIME,
			"STOP 10 1 TERM STOP_PRIORITY"},
		{"and then the grace", 70000, TIME, "STOP 10 1 KILL STOP_PRIORITY"},
	};
	static const struct play_row burst[] = {
		LOW_HOLDS(WAIT_FIRST),
		{"above its request", 0, ASK(20, 1, 0, 80), ""},
		{"is noted", 1000, TIME, "NOTE BURST_WAITS g0 2/1 80"},
		{"its wait is over", 60001, TIME, "STOP 10 1 TERM STOP_PRIORITY"},
		{"it is waited for", 69999, TIME, ""},
		{"it is gone", 69999, EXIT(10), ""},
	};
	static const struct play_row vain[] = {
		LOW_HOLDS(WAIT_FIRST),
		{"above its request", 0, ASK(20, 1, 0, 95), ""},
		{"is noted", 1000, TIME, "NOTE BURST_WAITS g0 2/1 95"},
		{"nothing helps", 60001, TIME, "DENY 20/1 WAITED_TOO_LONG g0"},
	};

	PLAY(rows);
	PLAY(burst);
	PLAY(vain);
}

static void denies_at_once_without_wait(void **state)
{
	static const struct play_row rows[] = {
		LOW_HOLDS(NO_WAIT),
		{"nothing helps", 0, ASK(20, 1, 0, 95), "DENY 20/1 NO_RESOLVER g0"},
		{"this can be helped", 0, ASK(20, 2, 0, 80),
			"STOP 10 1 TERM STOP_PRIORITY"},
		{"within the request of now, and in front: too little is left", 0,
			ASK(20, 3, 0, 15), "DENY 20/2 NO_RESOLVER g0"},
		{"another of its own", 0, WORKLOAD(3, 0, 100, 5), "ADMIT 3 m1 r0 l100"},
		{"its process", 0, JOIN(30, 3), "PROBE 30 1"},
		{"this is on its way", 0, ASK(30, 1, 0, 50), ""},
		{"this is not", 0, ASK(30, 2, 0, 1), "DENY 30/2 NO_RESOLVER g0"},
	};
	static const struct play_row swap[] = {
		{"settings", 0, CHAIN(SWAP_ONLY), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, WORKLOAD(1, 0, 100, 0), "ADMIT 1 m1 r0 l100"},
		{"its process", 0, JOIN(10, 1), ""},
		{"90", 0, ASK(10, 1, 0, 90), "GRANT 10/1 g0 90"},
		{"swap is passed over", 0, ASK(10, 2, 0, 11), "DENY 10/2 OVER_LIMIT g0"},
		{"two", 0, WORKLOAD(2, 0, 100, 9), "ADMIT 2 m1 r0 l100"},
		{"its process", 0, JOIN(20, 2), ""},
		{"nobody is stopped", 0, ASK(20, 1, 0, 11), "DENY 20/1 NO_RESOLVER g0"},
		{"what fits is granted", 0, ASK(20, 2, 0, 10), "GRANT 20/2 g0 10"},
	};

	PLAY(rows);
	PLAY(swap);
}

static void stops_the_proven_idle(void **state)
{
	static const struct play_row rows[] = {
		{"settings", 0, CHAIN(PRIORITY), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, WORKLOAD(1, 0, 100, 0), "ADMIT 1 m1 r0 l100"},
		{"its process", 0, JOIN(10, 1), "PROBE 10 1"},
		{"all", 0, ASK(10, 1, 0, 100), "GRANT 10/1 g0 100"},
		{"has it", 0, COMMIT(10, 1, 100), ""},
		{"idle", 1000, PULSE(10, 1, 0, 0), ""},
		{"two, its equal", 1000, WORKLOAD(2, 0, 100, 0), "ADMIT 2 m1 r0 l100"},
		{"its process", 1000, JOIN(20, 2), "PROBE 20 1"},
		{"waits", 590000, ASK(20, 1, 0, 50), ""},
		{"it is still", 591000, TIME, "NOTE BURST_WAITS g0 2/1 50"},
		{"long enough, if it is true", 600001, TIME, "PROBE 10 2"},
		{"it is", 600100, PULSE(10, 600, 0, 1), "STOP 10 1 TERM STOP_IDLE"},
		{"saving its work makes it busy", 600200, WORK(10), ""},
		{"no more proofs", 601001, TIME, "PROBE 10 1"},
		{"and saves it not", 610100, TIME, "STOP 10 1 KILL STOP_IDLE"},
	};
	static const struct play_row busy[] = {
		{"settings", 0, CHAIN(PRIORITY), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, WORKLOAD(1, 0, 100, 0), "ADMIT 1 m1 r0 l100"},
		{"its process", 0, JOIN(10, 1), "PROBE 10 1"},
		{"all", 0, ASK(10, 1, 0, 100), "GRANT 10/1 g0 100"},
		{"idle, proven", 1000, PULSE(10, 1, 0, 1), ""},
		{"two", 1000, WORKLOAD(2, 0, 100, 0), "ADMIT 2 m1 r0 l100"},
		{"its process", 1000, JOIN(20, 2), "PROBE 20 1"},
		{"waits", 590000, ASK(20, 1, 0, 50), ""},
		{"it works again", 590500, WORK(10), ""},
		{"so it stays", 600000, TIME, "NOTE BURST_WAITS g0 2/1 50"},
		{"what worked since is not idle, whatever it says", 600100,
			PULSE(10, 700, 0, 1), ""},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, 13);
	assert_row_u64("idle for", p.last[SL_ACTION_STOP].stop.span / SL_MS, 600000);
	play_rows(&p, rows + 13, SL_ARRAY_LEN(rows) - 13);
	play_close(&p);
	PLAY(busy);
}

/* A lower limit is taken back from workloads above it, whatever the priorities. */
static void takes_back_above_the_limit(void **state)
{
	static const struct play_row rows[] = {
		LOW_HOLDS(PRIORITY),
		{"lowest", 0, WORKLOAD(3, 0, 100, -5), "ADMIT 3 m1 r0 l100"},
		{"its process", 0, JOIN(30, 3), "PROBE 30 1"},
		{"waits for one that is above it", 0, ASK(30, 1, 0, 15), ""},
		{"its limit goes down", 0,
			EVENT(WORKLOAD_SET, workload_set,
				{1, SL_SET_LIMIT, ANY, BYTES(50), 0, 0, 0, {ANY}}),
			"SET 1 r10 l50 p0 over40; VIEW 1 g0; STOP 10 1 TERM "
			"STOP_OVER_LIMIT"},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	assert_row_u64("above it", p.last[SL_ACTION_STOP].stop.other_bytes, 40);
	play_close(&p);
}

static void counts_on_who_was_asked_to_end(void **state)
{
	static const struct play_row rows[] = {
		LOW_HOLDS(PRIORITY),
		{"ends by wish", 0, STOP(1), "STOP 0 1 TERM STOP_ASKED"},
		{"so nobody else is stopped", 0, ASK(20, 1, 0, 40), ""},
		{"but waited for", 1000, TIME, "NOTE ENTITLED_WAITS g0 2/1 40"},
		{"it is killed as asked", 10000, TIME, "STOP 0 1 KILL STOP_ASKED"},
		{"there all the same", 19999, TIME, ""},
		{"counted on no more", 20000, TIME, "STOP 10 1 TERM STOP_PRIORITY"},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows) - 1);
	assert_row_u64("of a workload", p.last[SL_ACTION_STOP].stop.client, 0);
	play_rows(&p, rows + SL_ARRAY_LEN(rows) - 1, 1);
	play_close(&p);
}

/* Killed, and still there: others are stopped in its place. */
static void gives_up_on_the_stubborn(void **state)
{
	static const struct play_row rows[] = {
		LOW_HOLDS(PRIORITY),
		{"a collision", 0, ASK(20, 1, 0, 40), "STOP 10 1 TERM STOP_PRIORITY"},
		{"noted", 1000, TIME, "NOTE STOPPING_WAITS g0 2/1 40"},
		{"killed", 10000, TIME, "STOP 10 1 KILL STOP_PRIORITY"},
		{"given up on, told nothing more", 20000, TIME, ""},
		{"for ever", 90000, TIME, ""},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	assert_true(sl_node_client(p.node, 10).killed);
	play_close(&p);
}

/* --- lending --- */

static void lends_what_can_be_taken_back(void **state)
{
	static const struct play_row rows[] = {
		{"settings", 0, CHAIN(PRIORITY), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"high, with a request", 0, WORKLOAD(1, 50, 100, 5),
			"ADMIT 1 m1 r50 l100"},
		{"equal, with a request", 0, WORKLOAD(2, 20, 100, 0),
			"ADMIT 2 m1 r20 l100"},
		{"low", 0, WORKLOAD(3, 0, 100, 0), "ADMIT 3 m1 r0 l100"},
		{"no swap", 0, FLAGGED(4, 0, 100, 0, SL_WORKLOAD_NO_SWAP),
			"ADMIT 4 m1 r0 l100"},
		{"processes", 0, JOIN(10, 1), "PROBE 10 1"},
		{"processes", 0, JOIN(30, 3), "PROBE 30 1"},
		{"processes", 0, JOIN(40, 4), "PROBE 40 1"},
		{"no swap stands on nothing", 0, ASK(40, 1, 0, 31), ""},
		{"gives up", 0, CANCEL(40, 1), "DENY 40/1 CANCELLED g0"},
		{"not on its equal's request", 0, ASK(30, 1, 0, 81), ""},
		{"gives up", 0, CANCEL(30, 1), "DENY 30/1 CANCELLED g0"},
		{"on that of the higher", 0, ASK(30, 2, 0, 80), "GRANT 30/2 g0 80"},
		{"has it", 0, COMMIT(30, 1, 80), ""},
		{"which takes it back", 0, ASK(10, 1, 0, 50),
			"STOP 30 3 TERM STOP_PRIORITY"},
	};
	static const struct play_row wait[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"high, with a request", 0, WORKLOAD(1, 50, 100, 5),
			"ADMIT 1 m1 r50 l100"},
		{"low", 0, WORKLOAD(3, 0, 100, 0), "ADMIT 3 m1 r0 l100"},
		{"its process", 0, JOIN(30, 3), ""},
		{"without `priority` nothing is lent", 0, ASK(30, 1, 0, 51), ""},
		{"gives up", 0, CANCEL(30, 1), "DENY 30/1 CANCELLED g0"},
		{"but what is nobody's", 0, ASK(30, 2, 0, 50), "GRANT 30/2 g0 50"},
	};

	PLAY(rows);
	PLAY(wait);
}

/* --- untakeable --- */

#define STUCK(resort)                                                                  \
	{"settings", 0,                                                                \
		SETTINGS(.untakeable_after = 30 * SL_S, .last_resort = (resort)), ""}, \
		{"a GPU", 0, GPU(0, 100), ""},                                         \
		{"one", 0, WORKLOAD(1, 10, 100, 0), "ADMIT 1 m1 r10 l100"},            \
		{"its process", 0, JOIN(10, 1), ""},                                   \
		{"all", 0, ASK(10, 1, 0, 80), "GRANT 10/1 g0 80"},                     \
		{"has it", 0, COMMIT(10, 1, 80), ""},                                  \
		{"two", 0, WORKLOAD(2, 50, 100, 0), "ADMIT 2 m1 r50 l100"},            \
		{"its process", 0, JOIN(20, 2), ""},                                   \
		{"waits", 0, ASK(20, 1, 0, 50), ""},                                   \
		{"is noted, and the other looked at", 1000, TIME,                      \
			"NOTE ENTITLED_WAITS g0 2/1 50; PROBE 10 2"},                  \
		{"it is stopped", 2000, IS(10, STOPPED), ""},                          \
	{                                                                              \
		"then traced: it goes on", 20000, IS(10, TRACED), ""                   \
	}

static void fails_what_the_untakeable_has(void **state)
{
	static const struct play_row rows[] = {
		STUCK(SL_LAST_RESORT_FAIL),
		{"not yet", 31999, TIME, ""},
		{"it cannot be taken from", 32000, TIME,
			"NOTE UNTAKEABLE_BEGINS g0 1/0 0; DENY 20/1 UNTAKEABLE g0"},
		{"the next one too", 33000, ASK(20, 2, 0, 50), "DENY 20/2 UNTAKEABLE g0"},
		{"not what is free", 33000, ASK(20, 3, 0, 20), "GRANT 20/3 g0 20"},
		{"its own bursts end", 33000, ASK(10, 2, 0, 1),
			"DENY 10/2 LIMIT_DROPPED g0"},
		{"it is still looked at, and runs again", 34000, IS(10, RUNNING),
			"NOTE UNTAKEABLE_ENDS g0 1/0 0; PROBE 10 0"},
		{"and may burst, if it can", 34000, ASK(10, 3, 0, 1), ""},
		{"as others may wait", 34000, ASK(20, 4, 0, 30), ""},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, 14);
	assert_row_u64("who", p.last[SL_ACTION_DENY].deny.other, 1);
	assert_row_u64("has", p.last[SL_ACTION_DENY].deny.other_bytes, 70);
	assert_row_u64("entitled", p.last[SL_ACTION_DENY].deny.entitled, 1);
	assert_row_u64("waited", p.last[SL_ACTION_DENY].deny.span / SL_MS, 32000);
	assert_row_u64("workload", p.last[SL_ACTION_DENY].deny.workload, 2);
	assert_row_u64("free", p.last[SL_ACTION_DENY].deny.available_bytes, 20);
	assert_row_u64("counted", sl_node_client(p.node, 10).untakeable, 1);
	play_rows(&p, rows + 14, SL_ARRAY_LEN(rows) - 14);
	play_close(&p);
}

static void stops_the_untakeable(void **state)
{
	static const struct play_row rows[] = {
		STUCK(SL_LAST_RESORT_STOP),
		{"it cannot be taken from", 32000, TIME,
			"NOTE UNTAKEABLE_BEGINS g0 1/0 0; STOP 10 1 TERM "
			"STOP_LAST_RESORT"},
		{"killed", 42000, TIME, "STOP 10 1 KILL STOP_LAST_RESORT"},
		{"dead", 42001, EXIT(10), ""},
		{"released", 42002, RELEASED(10, 0, 0),
			"GRANT 20/1 g0 50; NOTE SERVED_AFTER_WAIT g0 2/0 50"},
	};
	static const struct play_row again[] = {
		STUCK(SL_LAST_RESORT_STOP),
		{"it cannot be taken from", 32000, TIME,
			"NOTE UNTAKEABLE_BEGINS g0 1/0 0; STOP 10 1 TERM "
			"STOP_LAST_RESORT"},
		{"it runs again", 33000, IS(10, RUNNING),
			"NOTE UNTAKEABLE_ENDS g0 1/0 0"},
		{"and is spared", 42000, TIME, "NOTE STOP_REVOKED g0 1/2 50"},
	};

	PLAY(rows);
	PLAY(again);
}

static void leaves_to_others_what_they_can_give(void **state)
{
	static const struct play_row rows[] = {
		{"settings", 0, SETTINGS(.untakeable_after = 30 * SL_S), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, WORKLOAD(1, 0, 100, 0), "ADMIT 1 m1 r0 l100"},
		{"its process", 0, JOIN(10, 1), ""},
		{"half", 0, ASK(10, 1, 0, 50), "GRANT 10/1 g0 50"},
		{"has it", 0, COMMIT(10, 1, 50), ""},
		{"three", 0, WORKLOAD(3, 0, 100, 0), "ADMIT 3 m1 r0 l100"},
		{"its process", 0, JOIN(30, 3), ""},
		{"the other half", 0, ASK(30, 1, 0, 50), "GRANT 30/1 g0 50"},
		{"has it", 0, COMMIT(30, 2, 50), ""},
		{"busy with one thing", 21000, PULSE(10, 0, 20, 0), ""},
		{"for too long", 31000, TIME,
			"NOTE UNTAKEABLE_BEGINS g0 1/0 0; PROBE 10 2"},
		{"two", 31000, WORKLOAD(2, 60, 100, 0), "ADMIT 2 m1 r60 l100"},
		{"its process", 31000, JOIN(20, 2), ""},
		{"the third can give this", 31000, ASK(20, 1, 0, 50), ""},
		{"or this", 31000, ASK(20, 2, 0, 10), ""},
		{"but not both", 31500, FREED(30, 0, 50), "GRANT 20/1 g0 50"},
		{"once the first has it", 31501, TIME, "DENY 20/2 UNTAKEABLE g0"},
		{"done with it", 31502, PULSE(10, 0, 1, 0),
			"NOTE UNTAKEABLE_ENDS g0 1/0 0"},
	};

	PLAY(rows);
}

/* --- per workload --- */

static void oom_first_then_waits(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, WORKLOAD(1, 0, 100, 0), "ADMIT 1 m1 r0 l100"},
		{"its process", 0, JOIN(10, 1), ""},
		{"most", 0, ASK(10, 1, 0, 90), "GRANT 10/1 g0 90"},
		{"has it", 0, COMMIT(10, 1, 90), ""},
		{"two", 0, FLAGGED(2, 0, 100, 0, SL_WORKLOAD_OOM_FIRST),
			"ADMIT 2 m1 r0 l100"},
		{"a process", 0, JOIN(20, 2), ""},
		{"another", 0, JOIN(21, 2), ""},
		{"first refused", 0, ASK(20, 1, 0, 20), "DENY 20/1 OOM_FIRST g0"},
		{"then waits", 0, ASK(20, 2, 0, 20), ""},
		{"each process for itself", 0, ASK(21, 1, 0, 20),
			"DENY 21/1 OOM_FIRST g0"},
		{"served", 100, FREED(10, 0, 10), "GRANT 20/2 g0 20"},
		{"the first of the next ones", 100, ASK(20, 3, 0, 20),
			"DENY 20/3 OOM_FIRST g0"},
		{"what fits is no matter", 100, FREED(10, 0, 20), ""},
		{"what fits is no matter", 100, ASK(21, 2, 0, 20), "GRANT 21/2 g0 20"},
	};

	PLAY(rows);
}

static void has_its_own_longest_wait(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, WORKLOAD(1, 0, 100, 0), "ADMIT 1 m1 r0 l100"},
		{"its process", 0, JOIN(10, 1), ""},
		{"all", 0, ASK(10, 1, 0, 100), "GRANT 10/1 g0 100"},
		{"two", 0,
			EVENT(WORKLOAD_ADD, workload_add,
				{2, BYTES(0), BYTES(100), 1, 1, 0, 0, 0, 0, 500 * SL_MS,
					{ANY}}),
			"ADMIT 2 m1 r0 l100"},
		{"its process", 0, JOIN(20, 2), ""},
		{"waits", 0, ASK(20, 1, 0, 20), ""},
		{"not so long", 499, TIME, ""},
		{"its own time", 501, TIME, "DENY 20/1 WAITED_TOO_LONG g0"},
	};

	PLAY(rows);
}

/* --- why a client waits --- */

static void says_why(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, WORKLOAD(1, 20, 100, 0), "ADMIT 1 m1 r20 l100"},
		{"its process", 0, JOIN(10, 1), ""},
		{"all", 0, ASK(10, 1, 0, 90), "GRANT 10/1 g0 90"},
		{"has it", 0, COMMIT(10, 1, 90), ""},
		{"two", 0, WORKLOAD(2, 0, 100, 0), "ADMIT 2 m1 r0 l100"},
		{"its process", 0, JOIN(20, 2), ""},
		{"waits", 0, ASK(20, 1, 0, 30), ""},
		{"for a borrower", 1000, TIME, "NOTE BURST_WAITS g0 2/1 30"},
		{"which dies", 1500, EXIT(10), ""},
		{"three", 1500, WORKLOAD(3, 0, 100, 0), "ADMIT 3 m1 r0 l100"},
		{"its process", 1500, JOIN(30, 3), ""},
		{"waits too", 1500, ASK(30, 1, 0, 15), ""},
		{"for the dead", 2500, TIME, "NOTE DYING_WAITS g0 3/0 15"},
		{"the request of the dead stays", 2600, RELEASED(10, 0, 0),
			"GRANT 20/1 g0 30; NOTE SERVED_AFTER_WAIT g0 2/0 30; "
			"GRANT 30/1 g0 15; NOTE SERVED_AFTER_WAIT g0 3/0 15"},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, 9);
	assert_row_u64("free for it", p.last[SL_ACTION_NOTE].note.available_bytes, 10);
	assert_row_u64("the other has", p.last[SL_ACTION_NOTE].note.other_bytes, 70);
	assert_row_u64("for", p.last[SL_ACTION_NOTE].note.span / SL_MS, 1000);
	assert_row_u64("client", p.last[SL_ACTION_NOTE].note.client, 20);
	play_rows(&p, rows + 9, SL_ARRAY_LEN(rows) - 9);
	assert_row_u64("waited", p.last[SL_ACTION_NOTE].note.span / SL_MS, 1100);
	play_close(&p);
}

/* No demand waits for memory that will not come. */
static void goes_on_without_the_unreached(void **state)
{
	static const struct play_row rows[] = {
		LOW_HOLDS(PRIORITY),
		{"a collision", 0, ASK(20, 1, 0, 40), "STOP 10 1 TERM STOP_PRIORITY"},
		{"it cannot be signalled", 1, STOP_FAILED(10), ""},
		{"nor can who is not known", 1, STOP_FAILED(99), ""},
		{"it waits for nobody's end", 1001, TIME,
			"NOTE ENTITLED_WAITS g0 2/1 40"},
		{"nor is it killed", 10000, TIME, ""},
		{"not tried yet", 60000, TIME, ""},
		{"tried again", 60001, TIME, "STOP 10 1 TERM STOP_PRIORITY"},
		{"and killed", 70001, TIME, "STOP 10 1 KILL STOP_PRIORITY"},
		{"the kill fails", 70002, STOP_FAILED(10), ""},
		{"it ends by itself", 70003, EXIT(10), ""},
		{"and is late", 70003, STOP_FAILED(10), ""},
		{"its memory is there", 70004, RELEASED(10, 0, 0),
			"GRANT 20/1 g0 40; NOTE SERVED_AFTER_WAIT g0 2/0 40"},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, 10);
	assert_false(sl_node_client(p.node, 10).stopping);
	assert_false(sl_node_client(p.node, 10).killed);
	play_rows(&p, rows + 10, SL_ARRAY_LEN(rows) - 10);
	play_close(&p);
}

/* The driver refuses a demand for the longest wait. When that wait ends, others use the memory, so
 * the refusals do not count and the demand is not denied. It is tried again when its back-off
 * ends. */
static void pauses_after_a_refusal(void **state)
{
	static const struct play_row rows[] = {
		{"settings", 0, CHAIN(PRIORITY), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"a workload", 0, WORKLOAD(1, 60, 100, 0), "ADMIT 1 m1 r60 l100"},
		{"its process", 0, JOIN(10, 1), "PROBE 10 1"},
		{"asks", 0, ASK(10, 1, 0, 60), "GRANT 10/1 g0 60"},
		{"the driver refuses", 0, FAILED(10, 1), "NOTE CREATE_FAILED g0 1/0 60"},
		{"once more", 20, TIME, "GRANT 10/1 g0 60"},
		{"it refuses again", 59990, FAILED(10, 2), "NOTE DRIVER_WAITS g0 1/0 60"},
		{"others use half", 59995, UNMANAGED(0, 50),
			"NOTE DEGRADED_BEGINS g0 0/0 10"},
		{"it refused for long", 60000, TIME, ""},
		{"there is room", 60005, UNMANAGED(0, 0), "NOTE DEGRADED_ENDS g0 0/0 0"},
		{"after its pause", 60030, TIME,
			"GRANT 10/1 g0 60; NOTE SERVED_AFTER_WAIT g0 1/0 60"},
	};

	(void)state;
	PLAY(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_on_without_the_unreached),
		cmocka_unit_test(stops_lower_priority),
		cmocka_unit_test(only_what_is_free_now),
		cmocka_unit_test(spares_who_is_not_needed),
		cmocka_unit_test(counts_what_is_coming),
		cmocka_unit_test(stops_nobody_in_vain),
		cmocka_unit_test(works_for_the_head_alone),
		cmocka_unit_test(waits_first_where_told_so),
		cmocka_unit_test(denies_at_once_without_wait),
		cmocka_unit_test(stops_the_proven_idle),
		cmocka_unit_test(takes_back_above_the_limit),
		cmocka_unit_test(counts_on_who_was_asked_to_end),
		cmocka_unit_test(gives_up_on_the_stubborn),
		cmocka_unit_test(lends_what_can_be_taken_back),
		cmocka_unit_test(fails_what_the_untakeable_has),
		cmocka_unit_test(stops_the_untakeable),
		cmocka_unit_test(leaves_to_others_what_they_can_give),
		cmocka_unit_test(oom_first_then_waits),
		cmocka_unit_test(has_its_own_longest_wait),
		cmocka_unit_test(says_why),
		cmocka_unit_test(pauses_after_a_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
