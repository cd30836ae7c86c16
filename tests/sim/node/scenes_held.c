/*
 * scenes_held - memory that must not be evicted, and whose requests it may not use
 */
#include "scenes.h"

#define CHAIN      SL_CHAIN(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT, 0)
#define WAIT_FIRST SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_PRIORITY, 0)

#define ASK_HELD(c, a, n)                                                     \
	{                                                                     \
		.type = SL_EVENT_ASK, .ask = { c, a, 0, n, SL_NODE_ASK_HELD } \
	}
#define HOLD(c, a, n)                                          \
	{                                                      \
		.type = SL_EVENT_ASK,                          \
		.ask = { c,                                    \
			a,                                     \
			0,                                     \
			n,                                     \
			SL_NODE_ASK_HELD | SL_NODE_ASK_THERE } \
	}
#define HELD(c, n)                                         \
	{                                                  \
		.type = SL_EVENT_HELD, .held = { c, 0, n } \
	}
#define HAS(c, n, e)                                           \
	{0, ASK(c, 1, 0, n), "GRANT " #c "/1 g0 " #n " e" #e}, \
	{                                                      \
		0, COMMIT(c, e, n), ""                         \
	}
#define WATCHED(c, w)                               \
	{                                           \
		0, JOIN(c, w), "PROBE " #c " WATCH" \
	}
/* Workload 1 requests nothing, workload 2 of higher priority requests 60 and has nothing yet. */
#define A_LOAN                                                                        \
	G100, {0, WORKLOAD(1, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r0 l100"},  \
	{                                                                             \
		0, WORKLOAD(2, BYTES(60), BYTES(100), 1, 1, 1), "ADMIT 2 m1 r60 l100" \
	}

/* 30 are free, and a demand that is not held may have them. */
static const struct scene_row not_on_loan[] = {
	{0, SETTINGS(.chain = CHAIN, .stop_grace = 10 * SL_S), ""},
	A_LOAN,
	WATCHED(1, 1),
	HAS(1, 70, 1),
	{1, ASK_HELD(1, 2, 10), ""},
	{3, ASK(1, 4, 0, 10), "GRANT 1/4 g0 10 e2"},
	{4, COMMIT(1, 2, 10), ""},
	{5, HOLD(1, 5, 41), "DENY 1/5 HELD_ON_REQUESTS 40"},
	{6, HOLD(1, 6, 30), "GRANT 1/6 g0 30 e3"},
	{7, COMMIT(1, 3, 30), ""},
	{8, FREED(1, 0, 50), "GRANT 1/2 g0 10 e4"},
};

/* Bursts may be ended for it; requests may not. */
static const struct scene_row waits_for_bursts[] = {
	A_LOAN,
	{0, JOIN(1, 1), ""},
	{0, JOIN(2, 2), ""},
	HAS(2, 80, 1),
	{1, ASK_HELD(1, 1, 40), ""},
	/* Another workload's memory above its request is no promise either. */
	{2, HELD(2, 80), ""},
	{3, ASK_HELD(1, 2, 41), "DENY 1/2 HELD_ON_REQUESTS 40"},
	{4, EXIT(2), ""},
	{5, RELEASED(2, 0, 0), "GRANT 1/1 g0 40 e2"},
};

/* Memory held beyond a request breaks promises to others until it is let go. */
static const struct scene_row claims[] = {
	G100_BARE,
	{0, WORKLOAD(1, BYTES(20), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r20 l100"},
	{0, JOIN(1, 1), ""},
	{0, ASK_HELD(1, 1, 70), "GRANT 1/1 g0 70 e1"},
	/* Before it is committed, too. */
	{0, WORKLOAD(2, BYTES(31), BYTES(100), 1, 1, 0), "REFUSE 2 REQUESTS_TAKEN 31 30"},
	{1, COMMIT(1, 1, 70), ""},
	{1, WORKLOAD(2, BYTES(31), BYTES(100), 1, 1, 0), "REFUSE 2 REQUESTS_TAKEN 31 30"},
	{2, HELD(1, 69), ""},
	{2, WORKLOAD(2, BYTES(31), BYTES(100), 1, 1, 0), "ADMIT 2 m1 r31 l100"},
	/* A report of held memory must not break a promise; it is noted once. */
	{3, HELD(1, 71), "NOTE HELD_UNASKED g0 1/0 1"},
	{4, HELD(1, 70), ""},
	{5, HIDDEN(1, 0, 1), "VIEW 1 g0; NOTE DEGRADED_BEGINS g0 0/0 1"},
	{6, HELD(1, 68), "NOTE DEGRADED_ENDS g0 0/0 0"},
};

/* Stopping a process gives held memory only what was above its workload's request. */
static const struct scene_row stopped_in_vain[] = {
	{0, SETTINGS(.chain = CHAIN, .stop_idle = 5 * SL_S, .stop_grace = 10 * SL_S), ""},
	A_LOAN,
	WATCHED(1, 1),
	WATCHED(2, 2),
	HAS(2, 80, 1),
	HAS(1, 20, 2),
	{11000, PULSE(2, 6000, 0, 1), ""},
	{11001, ASK_HELD(1, 2, 40), ""},
	{11002, ASK_HELD(1, 3, 20), ""},
	{11003, CANCEL(1, 2), "DENY 1/2 CANCELLED 0; STOP 2/2 TERM STOP_IDLE"},
};

/* Bytes that a request keeps do not help a demand for held memory. */
static const struct scene_row deadlock_of_held[] = {
	{0, SETTINGS(.chain = WAIT_FIRST, .stop_grace = 10 * SL_S), ""},
	A_LOAN,
	WATCHED(1, 1),
	WATCHED(2, 2),
	HAS(2, 40, 1),
	HAS(1, 20, 2),
	{1, ASK_HELD(1, 2, 30), ""},
	{2, ASK(2, 2, 0, 60), ""},
	{1001, TIME, "NOTE REQUESTS_WAIT g0 1/0 30"},
	{1002, TIME, "DENY 2/2 HOPELESS 40"},
};

const struct scene held_scenes[] = {
	SCENE(not_on_loan),
	SCENE(waits_for_bursts),
	SCENE(claims),
	SCENE(stopped_in_vain),
	SCENE(deadlock_of_held),
};
const size_t held_scenes_count = SL_ARRAY_LEN(held_scenes);
