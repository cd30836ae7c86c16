/*
 * scenes_stop - which processes are stopped for a demand, when, and which never are
 */
#include "scenes.h"

#define CHAIN SL_CHAIN(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT, 0)
#define MIN   (60 * 1000)

/* A joining client is watched as soon as `priority` is in the chain. */
#define WATCHED(c, w)                               \
	{                                           \
		0, JOIN(c, w), "PROBE " #c " WATCH" \
	}
#define HAS(c, n, e)                                           \
	{0, ASK(c, 1, 0, n), "GRANT " #c "/1 g0 " #n " e" #e}, \
	{                                                      \
		0, COMMIT(c, e, n), ""                         \
	}

#define CONFIG_NO_PASS                                \
	{                                             \
		.type = SL_EVENT_CONFIG, .config = {  \
			.wait_max = 60 * SL_S,        \
			.idle_wait = SL_S,            \
			.recover_wait = 2 * SL_S,     \
			.untakeable_after = 10 * SL_S \
		}                                     \
	}

/* Of one workload no more processes end than leave each above its request without the others. */
static const struct scene_row siblings_make_safe[] = {
	{0, SETTINGS(.chain = CHAIN, .stop_grace = 10 * SL_S), ""},
	G100,
	{0, WORKLOAD(1, BYTES(30), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r30 l100"},
	{0, WORKLOAD(3, BYTES(0), BYTES(100), 1, 1, 5), "ADMIT 3 m1 r0 l100"},
	WATCHED(1, 1),
	WATCHED(3, 3),
	HAS(1, 40, 1),
	HAS(3, 40, 2),
	WATCHED(2, 1),
	{0, ASK(2, 1, 0, 20), "GRANT 2/1 g0 20 e3"},
	{0, COMMIT(2, 3, 20), "VIEW 1 g0"},
	{0, WORKLOAD(2, BYTES(60), BYTES(100), 1, 1, 1), "ADMIT 2 m1 r60 l100"},
	WATCHED(4, 2),
	/* Both would do; but with one gone the other is within the request. */
	{1, ASK(4, 1, 0, 60), ""},
	{2, FREED(3, 0, 20), "STOP 1/1 TERM STOP_PRIORITY"},
	{3, EXIT(1), "VIEW 1 g0"},
	{4, RELEASED(1, 0, 0), "GRANT 4/1 g0 60 e4"},
};

static const struct scene_row never_within_its_request[] = {
	{0, SETTINGS(.chain = CHAIN, .stop_grace = 10 * SL_S), ""},
	G100,
	{0, WORKLOAD(1, BYTES(50), BYTES(100), 1, 1, -1), "ADMIT 1 m1 r50 l100"},
	{0, WORKLOAD(2, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 2 m1 r0 l100"},
	{0, WORKLOAD(3, BYTES(50), BYTES(100), 1, 1, 1), "ADMIT 3 m1 r50 l100"},
	WATCHED(2, 2),
	WATCHED(1, 1),
	WATCHED(3, 3),
	HAS(1, 50, 1),
	/* It stands on a request of higher priority, and can be taken back from. */
	{0, ASK(2, 2, 0, 50), "GRANT 2/2 g0 50 e2"},
	{0, COMMIT(2, 2, 50), ""},
	{1, ASK(3, 1, 0, 30), "STOP 2/2 TERM STOP_PRIORITY"},
};

static const struct scene_row needed_no_more[] = {
	{0, SETTINGS(.chain = CHAIN, .stop_grace = 10 * SL_S), ""},
	G100,
	{0, WORKLOAD(1, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r0 l100"},
	{0, WORKLOAD(2, BYTES(50), BYTES(100), 1, 1, 1), "ADMIT 2 m1 r50 l100"},
	WATCHED(1, 1),
	WATCHED(2, 2),
	HAS(1, 80, 1),
	{0, ASK(2, 1, 0, 30), "STOP 1/1 TERM STOP_PRIORITY"},
	{5000, CANCEL(2, 1), "DENY 2/1 CANCELLED 20"},
	{9999, TIME, ""},
	{10000, TIME, "NOTE STOP_REVOKED g0 1/2 30"},
	/* For the next one it is stopped anew, and killed. */
	{10000, ASK(2, 2, 0, 30), ""},
	{11000, TIME, "STOP 1/1 TERM STOP_PRIORITY; NOTE STOPPING_WAITS g0 2/1 30"},
	{21000, TIME, "STOP 1/1 KILL STOP_PRIORITY"},
};

/* Free memory is part of what the demand gets: no other demand passes it meanwhile. */
static const struct scene_row kept_for_whom_they_stop[] = {
	{0, SETTINGS(.chain = CHAIN, .stop_grace = 10 * SL_S), ""},
	G100,
	{0, WORKLOAD(1, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r0 l100"},
	{0, WORKLOAD(2, BYTES(0), BYTES(100), 1, 1, 1), "ADMIT 2 m1 r0 l100"},
	{0, WORKLOAD(3, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 3 m1 r0 l100"},
	WATCHED(1, 1),
	WATCHED(2, 2),
	WATCHED(3, 3),
	HAS(1, 60, 1),
	{1, ASK(2, 1, 0, 80), "STOP 1/1 TERM STOP_PRIORITY"},
	{2, ASK(3, 1, 0, 10), ""},
	{3, EXIT(1), ""},
	{4, RELEASED(1, 0, 0), "GRANT 2/1 g0 80 e2; GRANT 3/1 g0 10 e3"},
};

/* A kill did nothing, so the node no longer counts on that process, nor names it. The demand waits
 * for the memory of another process, which is dead. */
static const struct scene_row killed_in_vain[] = {
	{0, SETTINGS(.chain = CHAIN), ""},
	G100,
	{0, WORKLOAD(1, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r0 l100"},
	{0, WORKLOAD(2, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 2 m1 r0 l100"},
	{0, WORKLOAD(3, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 3 m1 r0 l100"},
	WATCHED(1, 1),
	WATCHED(2, 2),
	WATCHED(3, 3),
	HAS(1, 30, 1),
	HAS(3, 40, 2),
	{1, STOP_WORKLOAD(1, 0), "STOP 0/1 TERM STOP_ASKED; STOP 0/1 KILL STOP_ASKED"},
	{60000, TIME, ""},
	{60000, EXIT(3), ""},
	{60000, ASK(2, 1, 0, 60), ""},
	{61000, TIME, "NOTE DYING_WAITS g0 2/0 60"},
	{62000, RELEASED(3, 0, 0),
		"GRANT 2/1 g0 60 e3; NOTE SERVED_AFTER_WAIT g0 2/0 60"},
};

/* A person stopped both; the first was removed, so it is not killed, and is not counted on. */
static const struct scene_row removed_is_not_counted_on[] = {
	{0, CONFIG_NO_PASS, ""},
	G100,
	{0, WORKLOAD(1, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r0 l100"},
	C(1, 1),
	HAS(1, 80, 1),
	{0, WORKLOAD(2, BYTES(60), BYTES(100), 1, 1, 0), "ADMIT 2 m1 r60 l100"},
	C(2, 2),
	{1, CONDITION(1, SL_CONDITION_STOPPED), "PROBE 1 WATCH"},
	{2, STOP_WORKLOAD(1, 30000), "STOP 0/1 TERM STOP_ASKED"},
	{11000, TIME, "NOTE UNTAKEABLE_BEGINS g0 1/0 0; PROBE 1 PROVE"},
	{11001, ASK(2, 1, 0, 60), ""},
	{13000, TIME, "NOTE ENTITLED_WAITS g0 2/1 60"},
	{13001, REMOVE(1), "DENY 2/1 UNTAKEABLE 20"},
	{31000, TIME, ""},
};

/* A process cannot be signalled, so the node does not count on it. Another one is told to end, and
 * this one is not tried for a minute. */
static const struct scene_row cannot_be_signalled[] = {
	{0, SETTINGS(.chain = CHAIN, .stop_grace = 10 * SL_S), ""},
	G100,
	{0, WORKLOAD(1, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r0 l100"},
	{0, WORKLOAD(2, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 2 m1 r0 l100"},
	{0, WORKLOAD(3, BYTES(50), BYTES(100), 1, 1, 1), "ADMIT 3 m1 r50 l100"},
	WATCHED(1, 1),
	WATCHED(2, 2),
	WATCHED(3, 3),
	HAS(1, 50, 1),
	HAS(2, 50, 2),
	{1, ASK(3, 1, 0, 50), "STOP 2/2 TERM STOP_PRIORITY"},
	{1, STOP_FAILED(9), ""},
	{1, STOP_FAILED(1), ""},
	{2, STOP_FAILED(2), "STOP 1/1 TERM STOP_PRIORITY"},
	{3, STOP_FAILED(1), ""},
	{900, CANCEL(3, 1), "DENY 3/1 CANCELLED 0"},
	{60001, ASK(3, 2, 0, 50), ""},
	{60002, TIME, "STOP 2/2 TERM STOP_PRIORITY"},
};

/* Each of the two demands is within the request, but both together are not. For the second, a burst
 * on others' requests, no process is told to end. */
static const struct scene_row entitled_one_by_one[] = {
	{0, SETTINGS(.chain = CHAIN, .stop_grace = 10 * SL_S), ""},
	G100,
	{0, WORKLOAD(1, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r0 l100"},
	{0, WORKLOAD(2, BYTES(50), BYTES(100), 1, 1, 1), "ADMIT 2 m1 r50 l100"},
	{0, WORKLOAD(3, BYTES(30), BYTES(30), 1, 1, 1), "ADMIT 3 m1 r30 l30"},
	WATCHED(4, 1),
	WATCHED(1, 1),
	WATCHED(2, 2),
	{0, ASK(1, 1, 0, 30), "GRANT 1/1 g0 30 e1"},
	{0, COMMIT(1, 1, 30), "VIEW 1 g0"},
	{0, ASK(4, 1, 0, 30), "GRANT 4/1 g0 30 e2"},
	{0, COMMIT(4, 2, 30), "VIEW 1 g0"},
	{1, ASK(2, 1, 0, 45), "STOP 4/1 TERM STOP_PRIORITY"},
	{2, ASK(2, 2, 0, 45), ""},
};

static const struct scene_row idle_longest_first[] = {
	{0, SETTINGS(.chain = CHAIN, .stop_idle = 600 * SL_S, .stop_grace = 10 * SL_S),
		""},
	G100,
	{0, WORKLOAD(1, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r0 l100"},
	{0, WORKLOAD(2, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 2 m1 r0 l100"},
	{0, WORKLOAD(3, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 3 m1 r0 l100"},
	WATCHED(1, 1),
	WATCHED(2, 2),
	WATCHED(3, 3),
	HAS(1, 50, 1),
	HAS(2, 50, 2),
	{30 * MIN, PULSE(1, 20 * MIN, 0, 1), ""},
	{30 * MIN, PULSE(2, 10 * MIN, 0, 1), ""},
	{30 * MIN, ASK(3, 1, 0, 50), "STOP 1/1 TERM STOP_IDLE"},
};

/* Free bytes that others wait for do not make an untakeable borrower the one to blame. */
static const struct scene_row last_resort_comes_last[] = {
	{0, CONFIG_NO_PASS, ""},
	G100,
	{0, WORKLOAD(1, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r0 l100"},
	C(1, 1),
	{0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{0, COMMIT(1, 1, 60), ""},
	{0, WORKLOAD(2, BYTES(60), BYTES(100), 1, 1, 0), "ADMIT 2 m1 r60 l100"},
	C(2, 2),
	{1, CONDITION(1, SL_CONDITION_STOPPED), "PROBE 1 WATCH"},
	{10001, TIME, "NOTE UNTAKEABLE_BEGINS g0 1/0 0; PROBE 1 PROVE"},
	{10001, ASK(2, 1, 0, 30), "GRANT 2/1 g0 30 e2"},
	{10002, CREATE_FAILED(2, 2), "NOTE CREATE_FAILED g0 2/0 30"},
	/* Until the first is tried again, the other may have the free memory. */
	{10003, ASK(2, 2, 0, 25), "GRANT 2/2 g0 25 e3"},
	{10022, TIME, "DENY 2/1 UNTAKEABLE 15"},
};

/* An ended process has what the second demand lacks; once released, the first demand gets it. Until
 * then no demand fails. */
static const struct scene_row last_resort_behind_others[] = {
	{0, CONFIG_NO_PASS, ""},
	G100,
	{0, WORKLOAD(1, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r0 l100"},
	{0, WORKLOAD(3, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 3 m1 r0 l100"},
	C(1, 1),
	C(3, 3),
	HAS(1, 40, 1),
	HAS(3, 60, 2),
	{0, WORKLOAD(2, BYTES(90), BYTES(100), 1, 1, 0), "ADMIT 2 m1 r90 l100"},
	C(2, 2),
	{1, CONDITION(1, SL_CONDITION_STOPPED), "PROBE 1 WATCH"},
	{10001, TIME, "NOTE UNTAKEABLE_BEGINS g0 1/0 0; PROBE 1 PROVE"},
	{10002, EXIT(3), ""},
	{10003, ASK(2, 1, 0, 50), ""},
	{10004, ASK(2, 2, 0, 30), ""},
	{10005, RELEASED(3, 0, 0), "GRANT 2/1 g0 50 e3"},
	{10006, TIME, "DENY 2/2 UNTAKEABLE 10"},
};

/* A burst gives way, however young an entitled demand is. */
static const struct scene_row entitled_does_not_give_way[] = {
	G100,
	{0, WORKLOAD(2, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 2 m1 r0 l100"},
	C(2, 2),
	{0, ASK(2, 1, 0, 60), "GRANT 2/1 g0 60 e1"},
	{0, COMMIT(2, 1, 60), ""},
	{0, WORKLOAD(1, BYTES(60), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r60 l100"},
	C(1, 1),
	{0, ASK(1, 1, 0, 30), "GRANT 1/1 g0 30 e2"},
	{0, COMMIT(1, 2, 30), ""},
	{1, ASK(2, 2, 0, 30), ""},
	{2, ASK(1, 2, 0, 30), ""},
	{1001, TIME, "NOTE REQUESTS_WAIT g0 2/0 30"},
	{1002, TIME, "DENY 2/2 HOPELESS 0; PROBE 2 PROVE"},
	{1002, TIME, "NOTE ENTITLED_WAITS g0 1/2 30"},
};

/* The youngest holds next to nothing: its end would free no other. */
static const struct scene_row gives_way_to_some_use[] = {
	G100,
	W(1),
	W(2),
	W(3),
	C(1, 1),
	C(2, 2),
	C(3, 3),
	{0, ASK(1, 1, 0, 50), "GRANT 1/1 g0 50 e1"},
	{0, COMMIT(1, 1, 50), ""},
	{0, ASK(2, 1, 0, 45), "GRANT 2/1 g0 45 e2"},
	{0, COMMIT(2, 2, 45), ""},
	{0, ASK(3, 1, 0, 5), "GRANT 3/1 g0 5 e3"},
	{0, COMMIT(3, 3, 5), ""},
	{1, ASK(1, 2, 0, 40), ""},
	{2, ASK(2, 2, 0, 40), ""},
	{3, ASK(3, 2, 0, 30), ""},
	{1003, TIME, "DENY 2/2 HOPELESS 0"},
	{1003, TIME, "NOTE BURST_WAITS g0 1/2 40; NOTE BURST_WAITS g0 3/1 30"},
};

/* One of two borrowers cannot be taken from; the other has enough, so no demand has to fail. */
static const struct scene_row no_resort_while_others_can_give[] = {
	{0, CONFIG_NO_PASS, ""},
	G100,
	{0, WORKLOAD(1, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r0 l100"},
	{0, WORKLOAD(2, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 2 m1 r0 l100"},
	C(1, 1),
	C(2, 2),
	HAS(1, 50, 1),
	HAS(2, 50, 2),
	{0, WORKLOAD(3, BYTES(50), BYTES(100), 1, 1, 0), "ADMIT 3 m1 r50 l100"},
	C(3, 3),
	{0, ASK(3, 1, 0, 50), ""},
	{1000, TIME, "NOTE ENTITLED_WAITS g0 3/1 50; PROBE 2 PROVE; PROBE 1 PROVE"},
	{1000, CONDITION(1, SL_CONDITION_STOPPED), ""},
	{11000, TIME, "NOTE UNTAKEABLE_BEGINS g0 1/0 0"},
	{12000, FREED(2, 0, 50),
		"GRANT 3/1 g0 50 e3; NOTE SERVED_AFTER_WAIT g0 3/0 50; PROBE 2 OFF"},
};

const struct scene stop_scenes[] = {
	SCENE(no_resort_while_others_can_give),
	SCENE(siblings_make_safe),
	SCENE(never_within_its_request),
	SCENE(needed_no_more),
	SCENE(kept_for_whom_they_stop),
	SCENE(killed_in_vain),
	SCENE(removed_is_not_counted_on),
	SCENE(cannot_be_signalled),
	SCENE(entitled_one_by_one),
	SCENE(idle_longest_first),
	SCENE(last_resort_comes_last),
	SCENE(last_resort_behind_others),
	SCENE(entitled_does_not_give_way),
	SCENE(gives_way_to_some_use),
};
const size_t stop_scenes_count = SL_ARRAY_LEN(stop_scenes);
