/*
 * scenes - exact plays of every rule of the node, each small enough to check by head
 *
 *   scenes [--quiet] [--mutant NAME] [--list]
 *
 * Scenes about changes and about stopping have files of their own. Exit status 0: all as expected.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../common/mutants.h"
#include "scenes.h"

#define MIB (1024 * 1024)

/* --- admission --- */

static const struct scene_row amounts[] = {
	{0, GPU(0, 1010 * MIB, 10 * MIB), ""},
	{0, WORKLOAD(1, PCT(25), NONE, 1, 1, 0), "ADMIT 1 m1 r262144000 l262144000"},
	{0, WORKLOAD(2, NONE, PCT(25), 1, 1, 0), "ADMIT 2 m1 r262144000 l262144000"},
	{0, WORKLOAD(3, NONE, NONE, 1, 1, 0), "ADMIT 3 m1 r0 l1048576000"},
	{0, WORKLOAD(4, BYTES(100), BYTES(5000), 1, 1, 0), "ADMIT 4 m1 r100 l5000"},
	/* A limit above the GPU is cut to it. */
	{0, WORKLOAD(5, BYTES(100), BYTES(9000000000), 1, 1, 0),
		"ADMIT 5 m1 r100 l1048576000"},
	{0, WORKLOAD(6, PCT(50), BYTES(5000), 1, 1, 0),
		"REFUSE 6 LIMIT_BELOW_REQUEST 524288000 5000"},
	{0, WORKLOAD(7, BYTES(9000000000), NONE, 1, 1, 0),
		"REFUSE 7 REQUEST_TOO_LARGE 9000000000 1048576000"},
	{0, WORKLOAD(8, PCT(60), NONE, 1, 1, 0),
		"REFUSE 8 REQUESTS_TAKEN 629145600 524287800"},
	{0, WORKLOAD(9, NONE, NONE, 2, 3, 0), "REFUSE 9 TOO_FEW_GPUS 2 1"},
	{0, WORKLOAD(1, NONE, NONE, 1, 1, 0), "REFUSE 1 DUPLICATE 0 0"},
	/* Exactly what is left fits; a byte more does not. */
	{0, WORKLOAD(10, BYTES(524287801), NONE, 1, 1, 0),
		"REFUSE 10 REQUESTS_TAKEN 524287801 524287800"},
	{0, WORKLOAD(10, BYTES(524287800), NONE, 1, 1, 0),
		"ADMIT 10 m1 r524287800 l524287800"},
};

static const struct scene_row binding[] = {
	{0, GPU(0, 100, 0), ""},
	{0, GPU(3, 200, 0), ""},
	{0, GPU(5, 300, 0), ""},
	/* Rigid: the tightest that fits. */
	{0, WORKLOAD(1, BYTES(90), NONE, 1, 0xff, 0), "ADMIT 1 m1 r90 l90"},
	{0, WORKLOAD(2, BYTES(20), NONE, 1, 0xff, 0), "ADMIT 2 m8 r20 l20"},
	/* Burstable: most to burst into, shared with those there: 300; then 300/2 against 180. */
	{0, WORKLOAD(3, BYTES(0), BYTES(300), 1, 0xff, 0), "ADMIT 3 m20 r0 l300"},
	{0, WORKLOAD(4, BYTES(0), BYTES(300), 1, 0xff, 0), "ADMIT 4 m8 r0 l200"},
	/* Two GPUs: numbers by the smaller one. */
	{0, WORKLOAD(5, NONE, NONE, 2, 0x28, 0), "ADMIT 5 m28 r0 l200"},
	{0, WORKLOAD(6, BYTES(190), NONE, 2, 0x28, 0), "REFUSE 6 REQUESTS_TAKEN 190 180"},
	{0, WORKLOAD(7, BYTES(180), NONE, 2, 0x28, 0), "ADMIT 7 m28 r180 l180"},
	{0, WORKLOAD(8, BYTES(1), NONE, 1, 0x40, 0), "REFUSE 8 TOO_FEW_GPUS 1 0"},
};

/* Half of 200 is more than 90, but only 50 are left for a burst. */
static const struct scene_row binding_beside_a_burst[] = {
	{0, GPU(0, 200, 0), ""},
	{0, GPU(1, 90, 0), ""},
	{0, WORKLOAD(1, BYTES(0), BYTES(200), 1, 1, 0), "ADMIT 1 m1 r0 l200"},
	C(1, 1),
	{0, ASK(1, 1, 0, 150), "GRANT 1/1 g0 150 e1"},
	{0, WORKLOAD(2, BYTES(0), BYTES(200), 1, 3, 0), "ADMIT 2 m2 r0 l90"},
};

/* The ledger decides, so two halves and a third half end with a refusal: peer-failures row 38. */
static const struct scene_row third_half[] = {
	G100,
	{0, WORKLOAD(1, BYTES(50), NONE, 1, 1, 0), "ADMIT 1 m1 r50 l50"},
	{0, WORKLOAD(2, BYTES(50), NONE, 1, 1, 0), "ADMIT 2 m1 r50 l50"},
	{0, WORKLOAD(3, BYTES(50), NONE, 1, 1, 0), "REFUSE 3 REQUESTS_TAKEN 50 0"},
	{0, REMOVE(1), ""},
	{0, WORKLOAD(3, BYTES(50), NONE, 1, 1, 0), "ADMIT 3 m1 r50 l50"},
};

/* --- grants and limits --- */

static const struct scene_row limit[] = {
	G100,
	{0, WORKLOAD(1, BYTES(20), BYTES(50), 1, 1, 0), "ADMIT 1 m1 r20 l50"},
	C(1, 1),
	{0, ASK(1, 1, 0, 51), "DENY 1/1 OVER_LIMIT 50"},
	{0, ASK(1, 2, 0, 50), "GRANT 1/2 g0 50 e1"},
	{0, ASK(1, 3, 0, 1), "DENY 1/3 OVER_LIMIT 0"},
	{0, COMMIT(1, 1, 40), ""},
	{0, ASK(1, 4, 0, 10), "GRANT 1/4 g0 10 e2"},
	{0, ASK(1, 5, 0, UINT64_MAX), "DENY 1/5 OVER_LIMIT 0"},
	{0, ASK(1, 6, 1, 5), "DENY 1/6 UNKNOWN_CLIENT 0"},
	{0, ASK(1, 7, 99, 5), "DENY 1/7 UNKNOWN_CLIENT 0"},
	{0, ASK(9, 1, 0, 5), "DENY 9/1 UNKNOWN_CLIENT 50"},
	{0, ASK(1, 8, 0, 0), "DENY 1/8 UNKNOWN_CLIENT 50"},
};

/* Two clients each within the limit, together above: the first that is served ends the other. */
static const struct scene_row siblings[] = {
	G100,
	W(1),
	{0, WORKLOAD(2, BYTES(0), BYTES(60), 1, 1, 0), "ADMIT 2 m1 r0 l60"},
	C(1, 1),
	C(2, 2),
	C(3, 2),
	{0, ASK(1, 1, 0, 90), "GRANT 1/1 g0 90 e1"},
	{0, COMMIT(1, 1, 90), ""},
	{1, ASK(2, 1, 0, 40), ""},
	{2, ASK(3, 1, 0, 40), ""},
	{3, FREED(1, 0, 90), "GRANT 2/1 g0 40 e2"},
	{3, TIME, "DENY 3/1 OVER_LIMIT 20"},
};

/* Also when nothing is free for it: the head could never be served, and 4 would wait behind it
 * until it ran out. */
static const struct scene_row head_over_limit[] = {
	G100_BARE,
	W(1),
	{0, WORKLOAD(2, BYTES(0), BYTES(60), 1, 1, 0), "ADMIT 2 m1 r0 l60"},
	W(3),
	C(1, 1),
	C(2, 2),
	C(3, 2),
	C(4, 3),
	{0, ASK(1, 1, 0, 50), "GRANT 1/1 g0 50 e1"},
	{0, COMMIT(1, 1, 50), ""},
	{1, ASK(2, 1, 0, 55), ""},
	{2, ASK(3, 1, 0, 40), "GRANT 3/1 g0 40 e2"},
	{2, TIME, "DENY 2/1 OVER_LIMIT 20"},
	{2, COMMIT(3, 2, 40), "VIEW 2 g0"},
	{1500, WORK(1), ""},
	{1500, ASK(4, 1, 0, 5), "GRANT 4/1 g0 5 e3"},
	{1500, COMMIT(4, 3, 5), ""},
	/* Measured bytes count as well. */
	{1600, ASK(3, 2, 0, 20), ""},
	{1700, HIDDEN(3, 0, 1), "VIEW 2 g0; DENY 3/2 OVER_LIMIT 19"},
};

static const struct scene_row requests_are_kept[] = {
	G100,
	{0, WORKLOAD(1, BYTES(40), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r40 l100"},
	{0, WORKLOAD(2, BYTES(30), BYTES(100), 1, 1, 0), "ADMIT 2 m1 r30 l100"},
	C(1, 1),
	C(2, 2),
	/* 100 less the other's 30 unclaimed: 70, its own 40 among them. */
	{0, ASK(1, 1, 0, 71), ""},
	{1, CANCEL(1, 1), "DENY 1/1 CANCELLED 70"},
	{1, ASK(1, 2, 0, 70), "GRANT 1/2 g0 70 e1"},
	{1, COMMIT(1, 1, 70), ""},
	{1, ASK(2, 1, 0, 30), "GRANT 2/1 g0 30 e2"},
	{1, COMMIT(2, 2, 30), ""},
	{1, ASK(2, 2, 0, 1), ""},
	/* Freed bytes within the request of 1 stay its own. */
	{2, FREED(1, 0, 40), "GRANT 2/2 g0 1 e3"},
	{2, COMMIT(2, 3, 1), ""},
	{2, ASK(2, 3, 0, 30), ""},
	{2, ASK(1, 3, 0, 10), "GRANT 1/3 g0 10 e4"},
};

/* The last byte of a request is still within it. */
static const struct scene_row last_byte[] = {
	G100,
	W(1),
	{0, WORKLOAD(2, BYTES(40), BYTES(40), 1, 1, 0), "ADMIT 2 m1 r40 l40"},
	{0, WORKLOAD(3, BYTES(60), BYTES(60), 1, 1, 0), "ADMIT 3 m1 r60 l60"},
	C(2, 2),
	{0, ASK(2, 1, 0, 40), "GRANT 2/1 g0 40 e1"},
};

static const struct scene_row commits[] = {
	G100,
	W(1),
	C(1, 1),
	{0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{0, ASK(1, 1, 0, 60), ""}, /* the same again: no second grant */
	{0, ASK(1, 2, 0, 30), "GRANT 1/2 g0 30 e2"},
	{0, COMMIT(1, 2, 30), ""},
	{0, COMMIT(1, 2, 30), "NOTE STRAY g0 1/0 30"},
	{0, COMMIT(1, 77, 1), "NOTE STRAY g0 1/0 1"},
	{0, COMMIT(1, 1, 61), "NOTE OVERCOMMIT g0 1/0 1"},
	{0, ASK(1, 3, 0, 11), "DENY 1/3 OVER_LIMIT 10"},
	{0, ASK(1, 4, 0, 10), "GRANT 1/4 g0 10 e3"},
	{0, COMMIT(1, 3, 0), ""},
	{0, ASK(1, 5, 0, 10), "GRANT 1/5 g0 10 e4"},
};

/* Freeing more than is accounted: the account stays at 0. peer-failures row 7. */
static const struct scene_row underflow[] = {
	G100,
	W(1),
	C(1, 1),
	{0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{0, FREED(1, 0, 10), "NOTE UNDERFLOW g0 1/0 10"},
	{0, COMMIT(1, 1, 60), ""},
	{0, FREED(1, 0, 70), "NOTE UNDERFLOW g0 1/0 10"},
	{0, ASK(1, 2, 0, 100), "GRANT 1/2 g0 100 e2"},
};

/* --- order --- */

static const struct scene_row order[] = {
	G100,
	W(1),
	{0, WORKLOAD(2, BYTES(0), BYTES(100), 1, 1, 5), "ADMIT 2 m1 r0 l100"},
	{0, WORKLOAD(3, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 3 m1 r0 l100"},
	C(1, 1),
	C(2, 2),
	C(3, 3),
	C(4, 3),
	{0, ASK(1, 1, 0, 100), "GRANT 1/1 g0 100 e1"},
	{0, COMMIT(1, 1, 100), ""},
	{0, WORKLOAD(5, BYTES(20), BYTES(20), 1, 1, -9), "ADMIT 5 m1 r20 l20"},
	C(5, 5),
	{1, ASK(3, 1, 0, 20), ""},
	{2, ASK(4, 1, 0, 20), ""},
	{3, ASK(2, 1, 0, 20), ""},
	{4, ASK(5, 1, 0, 20), ""},
	/* Entitled, then priority, then arrival; room for one after the other. */
	{5, FREED(1, 0, 20), "GRANT 5/1 g0 20 e2"},
	{6, FREED(1, 0, 20), "GRANT 2/1 g0 20 e3"},
	{7, FREED(1, 0, 20), "GRANT 3/1 g0 20 e4"},
	{8, FREED(1, 0, 20), "GRANT 4/1 g0 20 e5"},
};

/* A sibling's free makes a waiting burst demand entitled: it goes to the front. */
static const struct scene_row becomes_entitled[] = {
	G100,
	W(1),
	C(1, 1),
	{0, ASK(1, 1, 0, 70), "GRANT 1/1 g0 70 e1"},
	{0, COMMIT(1, 1, 70), ""},
	{0, WORKLOAD(2, BYTES(30), BYTES(60), 1, 1, 0), "ADMIT 2 m1 r30 l60"},
	{0, WORKLOAD(3, BYTES(0), BYTES(100), 1, 1, 9), "ADMIT 3 m1 r0 l100"},
	C(2, 2),
	C(3, 2),
	C(4, 3),
	{0, ASK(2, 1, 0, 30), "GRANT 2/1 g0 30 e2"},
	{0, COMMIT(2, 2, 30), "VIEW 2 g0"},
	{1, ASK(3, 1, 0, 30), ""},
	{2, ASK(4, 1, 0, 30), ""},
	{3, FREED(2, 0, 30), "VIEW 2 g0; GRANT 3/1 g0 30 e3"},
};

/* A grant takes the entitlement of a sibling, which then waits among the bursts. */
static const struct scene_row falls_back[] = {
	G100,
	W(1),
	C(1, 1),
	{0, ASK(1, 1, 0, 100), "GRANT 1/1 g0 100 e1"},
	{0, COMMIT(1, 1, 100), ""},
	{0, WORKLOAD(2, BYTES(30), BYTES(60), 1, 1, 0), "ADMIT 2 m1 r30 l60"},
	{0, WORKLOAD(3, BYTES(0), BYTES(100), 1, 1, 9), "ADMIT 3 m1 r0 l100"},
	C(2, 2),
	C(3, 2),
	C(4, 3),
	{1, ASK(2, 1, 0, 20), ""},
	{2, ASK(3, 1, 0, 20), ""},
	{3, ASK(4, 1, 0, 20), ""},
	{4, FREED(1, 0, 50), "GRANT 2/1 g0 20 e2; GRANT 4/1 g0 20 e3"},
	{5, FREED(1, 0, 10), "GRANT 3/1 g0 20 e4"},
};

static const struct scene_row head[] = {
	G100,
	W(1),
	W(2),
	W(3),
	C(1, 1),
	C(2, 2),
	C(3, 3),
	{0, ASK(1, 1, 0, 70), "GRANT 1/1 g0 70 e1"},
	{0, COMMIT(1, 1, 70), ""},
	{0, ASK(2, 1, 0, 50), ""}, /* the head */
	{500, WORK(1), ""},
	{999, ASK(3, 1, 0, 10), "GRANT 3/1 g0 10 e2"}, /* may pass */
	{999, COMMIT(3, 2, 10), ""},
	{999, WORK(1), ""},
	{1000, TIME, "NOTE BURST_WAITS g0 2/1 50"},
	/* The turn that began with its first memory is over: no more. */
	{1300, ASK(3, 2, 0, 10), ""},
	{1500, WORK(1), ""},
	{1600, FREED(1, 0, 20), ""}, /* 40 free, kept */
	{1700, FREED(1, 0, 10), "GRANT 2/1 g0 50 e3; NOTE SERVED_AFTER_WAIT g0 2/0 50"},
	{1700, COMMIT(2, 3, 50), ""},
	{1800, FREED(1, 0, 10), "GRANT 3/2 g0 10 e4"},
};

/* The head's time starts when it becomes the head, not when it arrived. */
static const struct scene_row new_head[] = {
	G100,
	W(1),
	W(2),
	W(3),
	W(4),
	C(1, 1),
	C(2, 2),
	C(3, 3),
	C(4, 4),
	{0, ASK(1, 1, 0, 80), "GRANT 1/1 g0 80 e1"},
	{0, COMMIT(1, 1, 80), ""},
	{0, ASK(2, 1, 0, 40), ""},
	{1, ASK(3, 1, 0, 90), ""},
	{900, WORK(1), ""},
	{1100, TIME, "NOTE BURST_WAITS g0 2/1 40; NOTE BURST_WAITS g0 3/1 90"},
	{1800, FREED(1, 0, 20), "GRANT 2/1 g0 40 e2; NOTE SERVED_AFTER_WAIT g0 2/0 40"},
	{1800, COMMIT(2, 2, 20), ""},
	{2700, WORK(1), ""},
	{2700, WORK(2), ""},
	/* The time in which others may pass counts from when it asked. */
	{2799, ASK(4, 1, 0, 5), ""},
};

/* --- deadlock --- */

static const struct scene_row deadlock[] = {
	G100,
	W(1),
	W(2),
	C(1, 1),
	C(2, 2),
	{0, ASK(1, 1, 0, 50), "GRANT 1/1 g0 50 e1"},
	{0, COMMIT(1, 1, 50), ""},
	{0, ASK(2, 1, 0, 40), "GRANT 2/1 g0 40 e2"},
	{0, COMMIT(2, 2, 40), ""},
	{100, ASK(2, 2, 0, 30), ""},
	{200, ASK(1, 2, 0, 30), ""},
	{1100, TIME, "NOTE BURST_WAITS g0 2/1 30"}, /* 1 does not count as waiting yet */
	/* Both wait, each for what the other has: the youngest gives way. */
	{1200, TIME, "DENY 1/2 HOPELESS 0"},
	{1300, FREED(1, 0, 50), "GRANT 2/2 g0 30 e3; NOTE SERVED_AFTER_WAIT g0 2/0 30"},
};

/* A client that submits work does not count as waiting, though one of its threads waits. */
static const struct scene_row busy_holder[] = {
	G100,
	W(1),
	W(2),
	C(1, 1),
	C(2, 2),
	{0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{0, COMMIT(1, 1, 60), ""},
	{0, ASK(2, 1, 0, 40), "GRANT 2/1 g0 40 e2"},
	{0, COMMIT(2, 2, 40), ""},
	{0, ASK(1, 2, 0, 30), ""},
	{0, ASK(2, 2, 0, 30), ""},
	{600, WORK(1), ""},
	{1000, TIME, "NOTE BURST_WAITS g0 1/2 30; NOTE BURST_WAITS g0 2/1 30"},
	{1400, WORK(1), ""},
	{2399, TIME, ""},
	{2400, TIME, "DENY 2/2 HOPELESS 0"},
};

/* Three in a ring over two GPUs; the one that can be served saves the rest. */
static const struct scene_row rounds[] = {
	G100,
	W(1),
	W(2),
	W(3),
	C(1, 1),
	C(2, 2),
	C(3, 3),
	{0, ASK(1, 1, 0, 30), "GRANT 1/1 g0 30 e1"},
	{0, COMMIT(1, 1, 30), ""},
	{0, ASK(2, 1, 0, 30), "GRANT 2/1 g0 30 e2"},
	{0, COMMIT(2, 2, 30), ""},
	{0, ASK(3, 1, 0, 40), "GRANT 3/1 g0 40 e3"},
	{0, COMMIT(3, 3, 40), ""},
	{0, ASK(1, 2, 0, 50), ""}, /* needs both others' bytes */
	{0, ASK(2, 2, 0, 35), ""},
	{900, WORK(3), ""},
	/* 3 works: it could give 40, then 2 could give 30 more, then 1 is served. */
	{1000, TIME, "NOTE BURST_WAITS g0 1/3 50; NOTE BURST_WAITS g0 2/3 35"},
	{5000, TIME, ""},
	{5000, ASK(3, 2, 0, 10), ""},
	/* All wait, nothing is free: 3 is the youngest; without it 40 can be given again. */
	{6000, TIME, "DENY 3/2 HOPELESS 0"},
	{7000, TIME, ""},
};

/* A client that waits on two GPUs is served only by both. */
static const struct scene_row two_gpus[] = {
	{0, GPU(0, 100, 0), ""},
	{0, GPU(1, 100, 0), ""},
	{0, WORKLOAD(1, NONE, NONE, 2, 3, 0), "ADMIT 1 m3 r0 l100"},
	{0, WORKLOAD(2, NONE, NONE, 2, 3, 0), "ADMIT 2 m3 r0 l100"},
	{0, WORKLOAD(3, NONE, NONE, 1, 1, 0), "ADMIT 3 m1 r0 l100"},
	C(1, 1),
	C(2, 2),
	C(3, 3),
	{0, ASK(1, 1, 0, 50), "GRANT 1/1 g0 50 e1"},
	{0, COMMIT(1, 1, 50), ""},
	{0, ASK(2, 1, 1, 80), "GRANT 2/1 g1 80 e2"},
	{0, COMMIT(2, 2, 80), ""},
	{0, ASK(3, 1, 0, 40), "GRANT 3/1 g0 40 e3"},
	{0, COMMIT(3, 3, 40), ""},
	{1, ASK(1, 2, 0, 30), ""}, /* could be had: 3 works */
	{1, ASK(1, 3, 1, 30), ""}, /* held by 2 */
	{1, ASK(2, 2, 0, 60), ""}, /* more than 3 has: held by 1 */
	{1001, TIME, "DENY 2/2 HOPELESS 0"},
	{1001, TIME, "NOTE BURST_WAITS g0 1/3 30; NOTE BURST_WAITS g1 1/2 30"},
	/* 2 could give now. */
	{3000, TIME, ""},
};

/* The unclaimed request of a waiting workload cannot be given to a burst. */
static const struct scene_row request_of_a_waiter[] = {
	G100,
	{0, WORKLOAD(1, BYTES(50), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r50 l100"},
	W(2),
	C(1, 1),
	C(2, 2),
	{0, ASK(2, 1, 0, 30), "GRANT 2/1 g0 30 e1"},
	{0, COMMIT(2, 1, 30), ""},
	{0, ASK(1, 1, 0, 80), ""},
	{0, ASK(2, 2, 0, 30), ""},
	/* 2 cannot have 30 more while 1 keeps its 50, nor 1 its 80 while 2 keeps 30. */
	{1000, TIME, "DENY 2/2 HOPELESS 0"},
	{1000, TIME, "NOTE BURST_WAITS g0 1/2 80"},
	{1001, FREED(2, 0, 30), "GRANT 1/1 g0 80 e2; NOTE SERVED_AFTER_WAIT g0 1/0 80"},
};

/* Entitled demands are never the victim: the older burst gives way instead. */
static const struct scene_row victim_is_a_burst[] = {
	G100,
	W(1),
	C(1, 1),
	{0, ASK(1, 1, 0, 80), "GRANT 1/1 g0 80 e1"},
	{0, COMMIT(1, 1, 80), ""},
	{0, WORKLOAD(2, BYTES(50), BYTES(50), 1, 1, 0), "ADMIT 2 m1 r50 l50"},
	C(2, 2),
	{0, ASK(1, 2, 0, 20), ""},
	{1, ASK(2, 1, 0, 50), ""},
	{1001, TIME, "DENY 1/2 HOPELESS 0; PROBE 1 PROVE"},
	{1001, TIME, "NOTE ENTITLED_WAITS g0 2/1 50"},
	{1500, FREED(1, 0, 30), "GRANT 2/1 g0 50 e2; NOTE SERVED_AFTER_WAIT g0 2/0 50"},
	{2001, TIME, "PROBE 1 OFF"},
};

/* Bytes are kept for the head, which waits for one that needs just those bytes. */
static const struct scene_row helper[] = {
	G100,
	W(1),
	W(2),
	C(1, 1),
	C(2, 2),
	{0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{0, COMMIT(1, 1, 60), ""},
	{0, ASK(2, 1, 0, 80), ""},
	{500, WORK(1), ""},
	{1000, TIME, "NOTE BURST_WAITS g0 2/1 80"},
	{1500, ASK(1, 2, 0, 40), ""}, /* fits, but is kept for 2 */
	{2499, TIME, ""},
	{2500, TIME, "GRANT 1/2 g0 40 e2; NOTE SERVED_AFTER_WAIT g0 1/0 40"},
	{2500, COMMIT(1, 2, 40), ""},
	{2600, FREED(1, 0, 100), "GRANT 2/1 g0 80 e3; NOTE SERVED_AFTER_WAIT g0 2/0 80"},
};

/* One that holds nothing can give nothing: it waits behind the head. */
static const struct scene_row no_helper[] = {
	G100,
	W(1),
	W(2),
	W(3),
	C(1, 1),
	C(2, 2),
	C(3, 3),
	{0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{0, COMMIT(1, 1, 60), ""},
	{0, ASK(2, 1, 0, 80), ""},
	{1000, TIME, "NOTE BURST_WAITS g0 2/1 80"},
	{1500, ASK(3, 1, 0, 10), ""},
	{2500, TIME, "NOTE KEPT_FOR_HEAD g0 3/2 10"},
	{9000, TIME, ""},
};

/* --- time --- */

static const struct scene_row longest_wait[] = {
	{0, CONFIG(5000, 1000, 1000, 2000), ""},
	G100,
	W(1),
	W(2),
	C(1, 1),
	C(2, 2),
	{0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{0, COMMIT(1, 1, 60), ""},
	{10, ASK(2, 1, 0, 50), ""},
	{1010, TIME, "NOTE BURST_WAITS g0 2/1 50"},
	{5009, TIME, ""},
	{5010, TIME, "DENY 2/1 WAITED_TOO_LONG 40"},
};

/* The free memory is a request that is not used yet: none of it was there for the demand. */
static const struct scene_row longest_wait_beside_requests[] = {
	{0, CONFIG(5000, 1000, 1000, 2000), ""},
	G100,
	{0, WORKLOAD(1, BYTES(60), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r60 l100"},
	W(2),
	C(2, 2),
	{10, ASK(2, 1, 0, 50), ""},
	{1010, TIME, "NOTE REQUESTS_WAIT g0 2/0 50"},
	{5010, TIME, "DENY 2/1 WAITED_TOO_LONG 40"},
};

static const struct scene_row entitled_waits[] = {
	{0, CONFIG(5000, 1000, 1000, 2000), ""},
	G100,
	W(1),
	C(1, 1),
	{0, ASK(1, 1, 0, 90), "GRANT 1/1 g0 90 e1"},
	{0, COMMIT(1, 1, 90), ""},
	{0, WORKLOAD(2, BYTES(50), BYTES(50), 1, 1, 0), "ADMIT 2 m1 r50 l50"},
	C(2, 2),
	{0, ASK(2, 1, 0, 50), ""},
	{1000, TIME, "NOTE ENTITLED_WAITS g0 2/1 50"},
	{900000, TIME, ""},
	{900001, FREED(1, 0, 40), "GRANT 2/1 g0 50 e2; NOTE SERVED_AFTER_WAIT g0 2/0 50"},
};

/* --- death --- */

static const struct scene_row dying[] = {
	G100_BARE,
	W(1),
	W(2),
	C(1, 1),
	C(2, 2),
	{0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{0, COMMIT(1, 1, 60), ""},
	{0, ASK(1, 2, 0, 20), "GRANT 1/2 g0 20 e2"}, /* never committed */
	{0, HIDDEN(1, 0, 5), "VIEW 1 g0"},
	{1, ASK(2, 1, 0, 50), ""},
	{2, EXIT(1), ""},
	{2, EXIT(1), "NOTE STRAY g0 1/0 0"},
	{2, COMMIT(1, 2, 20), "NOTE STRAY g0 1/0 0"},
	{3, RELEASED(1, 0, 60), ""},
	{4, RELEASED(1, 0, 70), ""}, /* never becomes more */
	{5, RELEASED(1, 0, 50), "GRANT 2/1 g0 50 e3"},
	{6, RELEASED(1, 0, 0), ""},
	{7, RELEASED(1, 0, 0), "NOTE STRAY g0 0/0 0"},
	{8, ASK(2, 2, 0, 50), "GRANT 2/2 g0 50 e4"},
	{9, RELEASED(2, 0, 0), "NOTE STRAY g0 2/0 0"},
};

/* A waiting client that dies is forgotten; a sibling goes on. */
static const struct scene_row death_of_a_waiter[] = {
	G100,
	W(1),
	W(2),
	C(1, 1),
	C(2, 2),
	C(3, 2),
	{0, ASK(1, 1, 0, 80), "GRANT 1/1 g0 80 e1"},
	{0, COMMIT(1, 1, 80), ""},
	{0, ASK(2, 1, 0, 50), ""},
	{0, ASK(3, 1, 0, 30), ""},
	{2, EXIT(2), ""},
	{3, FREED(1, 0, 10), "GRANT 3/1 g0 30 e2"},
};

static const struct scene_row removed[] = {
	G100,
	{0, WORKLOAD(1, BYTES(50), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r50 l100"},
	W(2),
	C(1, 1),
	C(2, 2),
	{0, ASK(2, 1, 0, 50), "GRANT 2/1 g0 50 e1"},
	{0, COMMIT(2, 1, 50), ""},
	{0, ASK(1, 1, 0, 30), "GRANT 1/1 g0 30 e2"},
	{0, ASK(1, 2, 0, 40), ""},
	{0, ASK(2, 2, 0, 20), ""},
	{1, REMOVE(1), "DENY 1/2 CANCELLED 20; GRANT 2/2 g0 20 e3"},
	{1, REMOVE(1), "NOTE STRAY g0 1/0 0"},
	{1, ASK(1, 3, 0, 5), "DENY 1/3 UNKNOWN_CLIENT 0"},
	{1, COMMIT(1, 2, 30), ""},
	{1, WORKLOAD(1, NONE, NONE, 1, 1, 0), "REFUSE 1 DUPLICATE 0 0"},
	{1, JOIN(5, 1), "NOTE STRAY g0 1/0 0"},
	{2, EXIT(1), ""},
	{3, RELEASED(1, 0, 0), ""},
	{3, WORKLOAD(1, NONE, NONE, 1, 1, 0), "ADMIT 1 m1 r0 l100"},
};

/* --- a driver that refuses --- */

static const struct scene_row refused[] = {
	{0, CONFIG(60000, 1000, 1000, 2000), ""},
	G100,
	W(1),
	W(2),
	C(1, 1),
	C(2, 2),
	{0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{0, ASK(2, 1, 0, 50), ""},
	/* Back to its place; until it is tried again, 2 may have its memory. */
	{10, CREATE_FAILED(1, 1), "NOTE CREATE_FAILED g0 1/0 60; GRANT 2/1 g0 50 e2"},
	{10, COMMIT(2, 2, 30), ""},
	{29, TIME, ""},
	{30, TIME, "GRANT 1/1 g0 60 e3"},
	{30, CREATE_FAILED(1, 3), ""},
	{69, TIME, ""},
	{70, TIME, "GRANT 1/1 g0 60 e4"},
	{70, CREATE_FAILED(1, 3), "NOTE STRAY g0 1/0 0"},
	{70, CREATE_FAILED(1, 4), ""},
	/* Memory comes back: at once. */
	{71, FREED(2, 0, 1), "GRANT 1/1 g0 60 e5"},
	{72, COMMIT(1, 5, 60), ""},
};

/* It waits since it came, not since it was refused. */
static const struct scene_row refused_in_its_place[] = {
	G100,
	W(1),
	W(2),
	W(3),
	C(1, 1),
	C(2, 2),
	C(3, 3),
	{0, ASK(3, 1, 0, 30), "GRANT 3/1 g0 30 e1"},
	{0, COMMIT(3, 1, 30), ""},
	{1, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e2"},
	{5, ASK(2, 1, 0, 80), ""},
	{6, CREATE_FAILED(1, 2), "NOTE CREATE_FAILED g0 1/0 60"},
	{7, FREED(3, 0, 30), "GRANT 1/1 g0 60 e3"},
};

/* A burst is ended by the longest wait as always, whatever the driver says. */
static const struct scene_row refused_burst[] = {
	{0, CONFIG(50, 1000, 1000, 2000), ""},
	G100,
	W(1),
	C(1, 1),
	{0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{10, CREATE_FAILED(1, 1), "NOTE CREATE_FAILED g0 1/0 60"},
	{30, TIME, "GRANT 1/1 g0 60 e2"},
	{60, CREATE_FAILED(1, 2), "DENY 1/1 DRIVER_REFUSES 100"},
};

static const struct scene_row broken_driver[] = {
	{0, CONFIG(100, 1000, 1000, 2000), ""},
	G100,
	{0, WORKLOAD(1, BYTES(60), BYTES(60), 1, 1, 0), "ADMIT 1 m1 r60 l60"},
	C(1, 1),
	{0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{10, CREATE_FAILED(1, 1), "NOTE CREATE_FAILED g0 1/0 60"},
	{30, TIME, "GRANT 1/1 g0 60 e2"},
	{35, CREATE_FAILED(1, 2), ""},
	{75, TIME, "GRANT 1/1 g0 60 e3"},
	{80, CREATE_FAILED(1, 3), ""},
	{109, TIME, ""},
	{110, TIME, "DENY 1/1 DRIVER_REFUSES 100"},
};

/* --- recovery --- */

static const struct scene_row recovery[] = {
	G100,
	{0, RECOVERED(1, BYTES(80), BYTES(100), 1), "ADMIT 1 m1 r80 l100"},
	/* Taken in though they no longer fit together: degraded, not refused. */
	{0, RECOVERED(2, BYTES(10), BYTES(100), 1), "ADMIT 2 m1 r10 l100"},
	{0, RECOVERED(3, BYTES(10), BYTES(100), 2), "REFUSE 3 TOO_FEW_GPUS 1 0"},
	{0, EXPECT(1, 1), ""},
	{0, EXPECT(2, 2), ""},
	{0, JOIN(3, 2), ""},
	{1, ASK(3, 1, 0, 5), ""},
	{1, ASK(3, 2, 0, 101), "DENY 3/2 OVER_LIMIT 100"},
	{2, REPORT(1, 0, 70), ""},
	{2, REPORT(1, 0, 60), ""}, /* sets, does not add */
	{2, REPORTED(1), ""},
	{3, EXIT(2), "GRANT 3/1 g0 5 e1"},
	{3, COMMIT(3, 1, 5), ""},
	{4, ASK(1, 1, 0, 20), "GRANT 1/1 g0 20 e2"},
};

/* The note names the GPU that the missing one is known to hold memory of. */
static const struct scene_row missing_elsewhere[] = {
	{0, GPU(2, 110, 10), ""},
	{0, GPU(5, 100, 0), ""},
	{0, RECOVERED(1, BYTES(10), BYTES(50), 0x24), "ADMIT 1 m24 r10 l50"},
	{0, EXPECT(1, 1), ""},
	{1, HIDDEN(1, 5, 30), "VIEW 1 g5"},
	{2000, TIME, "NOTE REPORT_MISSING g5 1/0 30"},
};

static const struct scene_row missing_report[] = {
	G100,
	W(1),
	{10, EXPECT(1, 1), ""},
	{20, JOIN(2, 1), ""},
	{20, ASK(2, 1, 0, 5), ""},
	{500, EXPECT(3, 1), ""},
	{600, REPORTED(3), ""},
	{2009, TIME, "NOTE RECOVERY_WAITS g0 1/0 5"},
	{2010, TIME,
		"NOTE REPORT_MISSING g0 1/0 0; GRANT 2/1 g0 5 e1; NOTE SERVED_AFTER_WAIT "
		"g0 1/0 5"},
	{2011, REPORT(1, 0, 50), "VIEW 1 g0"}, /* late, and still true */
	{2011, ASK(2, 2, 0, 46), "DENY 2/2 OVER_LIMIT 45"},
};

/* --- degraded --- */

static const struct scene_row degraded_by_others[] = {
	{0, CONFIG(5000, 1000, 1000, 2000), ""},
	G100,
	{0, WORKLOAD(1, BYTES(40), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r40 l100"},
	W(2),
	C(1, 1),
	C(2, 2),
	{0, UNMANAGED(0, 61), "NOTE DEGRADED_BEGINS g0 0/0 1"},
	{0, WORKLOAD(3, BYTES(0), BYTES(10), 1, 1, 0), "REFUSE 3 DEGRADED 0 0"},
	{0, ASK(2, 1, 0, 1), ""}, /* a burst waits */
	{0, ASK(1, 1, 0, 30), "GRANT 1/1 g0 30 e1"},
	{0, COMMIT(1, 1, 30), ""},
	{1000, TIME, "NOTE BURST_WAITS g0 2/0 1"},
	{4999, TIME, ""},
	{5000, TIME, "DENY 2/1 GPU_DEGRADED 0"},
	{5000, ASK(2, 2, 0, 1), ""},
	{5001, UNMANAGED(0, 0), "NOTE DEGRADED_ENDS g0 0/0 0; GRANT 2/2 g0 1 e2"},
	{5001, UNMANAGED(7, 5), "NOTE STRAY g7 0/0 5"},
};

/* No demand is hopeless on a degraded GPU: the measurement may improve. */
static const struct scene_row degraded_by_hidden[] = {
	G100_BARE,
	W(1),
	W(2),
	C(1, 1),
	C(2, 2),
	{0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{0, COMMIT(1, 1, 60), ""},
	{0, HIDDEN(1, 0, 10), "VIEW 1 g0"},
	{0, HIDDEN(1, 0, 15), "VIEW 1 g0"}, /* sets, does not add */
	{0, HIDDEN(1, 0, 15), ""},
	{0, ASK(1, 2, 0, 26), "DENY 1/2 OVER_LIMIT 25"},
	{0, WORKLOAD(3, BYTES(60), BYTES(60), 1, 1, 0), "ADMIT 3 m1 r60 l60"},
	{0, HIDDEN(2, 0, 26), "VIEW 2 g0; NOTE DEGRADED_BEGINS g0 0/0 1"},
	{0, ASK(2, 1, 0, 10), ""},
	{0, ASK(1, 3, 0, 10), ""},
	{1000, TIME, "NOTE BURST_WAITS g0 2/1 10; NOTE BURST_WAITS g0 1/2 10"},
	/* Right again: now the deadlock shows. */
	{3000, HIDDEN(2, 0, 25),
		"VIEW 2 g0; NOTE DEGRADED_ENDS g0 0/0 0; DENY 1/3 HOPELESS 0"},
};

/* Hidden memory grew while the workload held all there is. Its burst can be moved and covers all
 * requests, so the GPU is not degraded. Others may be admitted, and get their requests once the
 * burst has given way. */
static const struct scene_row full_and_more[] = {
	G100_BARE,
	W(1),
	C(1, 1),
	{0, ASK(1, 1, 0, 90), "GRANT 1/1 g0 90 e1"},
	{0, COMMIT(1, 1, 90), ""},
	{0, HIDDEN(1, 0, 13), "VIEW 1 g0"},
	{0, WORKLOAD(2, BYTES(20), BYTES(50), 1, 1, 0), "ADMIT 2 m1 r20 l50"},
	C(2, 2),
	{0, ASK(2, 1, 0, 20), ""},
	{0, FREED(1, 0, 22), ""},
	{0, FREED(1, 0, 1), "GRANT 2/1 g0 20 e2"},
	/* So much memory that cannot be moved stands on requests. */
	{0, HIDDEN(1, 0, 81), "VIEW 1 g0; NOTE DEGRADED_BEGINS g0 0/0 1"},
};

/* Hidden bytes use up the workload's own request, and no other's. peer-failures rows 13 and 37. */
static const struct scene_row hidden[] = {
	G100_BARE,
	{0, WORKLOAD(1, BYTES(50), BYTES(50), 1, 1, 0), "ADMIT 1 m1 r50 l50"},
	{0, WORKLOAD(2, BYTES(50), BYTES(50), 1, 1, 0), "ADMIT 2 m1 r50 l50"},
	C(1, 1),
	C(2, 2),
	{0, HIDDEN(1, 0, 10), "VIEW 1 g0"},
	{0, ASK(1, 1, 0, 41), "DENY 1/1 OVER_LIMIT 40"},
	{0, ASK(1, 2, 0, 40), "GRANT 1/2 g0 40 e1"},
	{0, ASK(2, 1, 0, 50), "GRANT 2/1 g0 50 e2"},
	/* Fixed bytes above the request count as a claim. */
	{0, HIDDEN(2, 0, 55), "VIEW 2 g0; NOTE DEGRADED_BEGINS g0 0/0 5"},
};

/* The reserve pays hidden bytes first, and they take nothing from a limit. A dead client's part
 * stays paid until it is released. Then the reserve pays the client that joined first of those that
 * it could not pay. */
static const struct scene_row reserve[] = {
	G100,
	{0, WORKLOAD(1, BYTES(50), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r50 l100"},
	{0, WORKLOAD(2, BYTES(50), BYTES(100), 1, 1, 0), "ADMIT 2 m1 r50 l100"},
	C(1, 1),
	C(2, 2),
	C(3, 2),
	{0, HIDDEN(1, 0, 6), "VIEW 1 g0"},
	{0, ASK(1, 1, 0, 50), "GRANT 1/1 g0 50 e1"},
	{0, COMMIT(1, 1, 50), ""},
	{1, HIDDEN(2, 0, 9), "VIEW 2 g0"},
	{1, HIDDEN(3, 0, 7), "VIEW 2 g0"},
	/* 4 of 2's are paid: 4 + 5 + 7 of 50 are left. */
	{1, ASK(2, 1, 0, 89), "DENY 2/1 OVER_LIMIT 88"},
	{2, HIDDEN(1, 0, 5), "VIEW 1 g0; VIEW 2 g0"},
	{2, ASK(2, 2, 0, 90), "DENY 2/2 OVER_LIMIT 89"},
	{3, EXIT(1), ""},
	{3, ASK(2, 3, 0, 90), "DENY 2/3 OVER_LIMIT 89"},
	/* Paid ones are the last to be released. */
	{4, RELEASED(1, 0, 5), ""},
	{4, ASK(2, 4, 0, 90), "DENY 2/4 OVER_LIMIT 89"},
	{5, RELEASED(1, 0, 0), "VIEW 2 g0; VIEW 2 g0"},
	{5, ASK(2, 5, 0, 95), "DENY 2/5 OVER_LIMIT 94"},
	{5, ASK(2, 6, 0, 44), "GRANT 2/6 g0 44 e2"},
};

/* --- the rest --- */

static const struct scene_row views[] = {
	G100,
	W(1),
	C(1, 1),
	{0, ASK(1, 1, 0, 10), "GRANT 1/1 g0 10 e1"},
	{0, COMMIT(1, 1, 10), ""}, /* alone: it knows */
	C(2, 1),
	{0, ASK(1, 2, 0, 10), "GRANT 1/2 g0 10 e2"},
	{0, COMMIT(1, 2, 10), "VIEW 1 g0"},
	{0, FREED(1, 0, 10), "VIEW 1 g0"},
	{0, EXIT(1), "VIEW 1 g0"},
	{0, RELEASED(1, 0, 0), ""},
};

static const struct scene_row cancel[] = {
	G100,
	W(1),
	C(1, 1),
	{0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{0, CANCEL(1, 1), ""}, /* crossed the grant: the client commits what it made */
	{0, COMMIT(1, 1, 0), ""},
	{0, CANCEL(1, 1), ""},
	{0, CANCEL(9, 1), ""},
	{0, ASK(1, 2, 0, 100), "GRANT 1/2 g0 100 e2"},
};

/* The pool would let 30 of an unclaimed request be lent, less its slack of 10. */
static const struct scene_row pool[] = {
	{0, POOL(30, 10), ""},
	G100,
	{0, WORKLOAD(1, BYTES(50), BYTES(50), 1, 1, 0), "ADMIT 1 m1 r50 l50"},
	W(2),
	{0, SWAPPER(2, 2), ""},
	{0, ASK(2, 1, 0, 71), "NOTE POOL_FULL g0 2/0 71"},
	{0, CANCEL(2, 1), "DENY 2/1 CANCELLED 70"},
	{0, ASK(2, 2, 0, 70), "GRANT 2/2 g0 70 e1"},
	{0, ASK(2, 3, 0, 1), "NOTE POOL_FULL g0 2/0 1; PROBE 2 WATCH"},
};

/* No bursts on a degraded GPU, even where the pool would lend. */
static const struct scene_row pool_degraded[] = {
	{0, POOL(50, 0), ""},
	G100,
	{0, WORKLOAD(1, BYTES(50), BYTES(50), 1, 1, 0), "ADMIT 1 m1 r50 l50"},
	W(2),
	{0, SWAPPER(2, 2), ""},
	{0, UNMANAGED(0, 51), "NOTE DEGRADED_BEGINS g0 0/0 1"},
	{0, ASK(2, 1, 0, 10), ""},
	{0, UNMANAGED(0, 50), "NOTE DEGRADED_ENDS g0 0/0 0; GRANT 2/1 g0 10 e1"},
};

static const struct scene scenes[] = {
	SCENE(amounts),
	SCENE(binding),
	SCENE(binding_beside_a_burst),
	SCENE(third_half),
	SCENE(limit),
	SCENE(siblings),
	SCENE(head_over_limit),
	SCENE(requests_are_kept),
	SCENE(last_byte),
	SCENE(commits),
	SCENE(underflow),
	SCENE(order),
	SCENE(becomes_entitled),
	SCENE(falls_back),
	SCENE(head),
	SCENE(new_head),
	SCENE(deadlock),
	SCENE(busy_holder),
	SCENE(rounds),
	SCENE(two_gpus),
	SCENE(request_of_a_waiter),
	SCENE(victim_is_a_burst),
	SCENE(helper),
	SCENE(no_helper),
	SCENE(longest_wait),
	SCENE(longest_wait_beside_requests),
	SCENE(entitled_waits),
	SCENE(dying),
	SCENE(death_of_a_waiter),
	SCENE(removed),
	SCENE(refused),
	SCENE(refused_in_its_place),
	SCENE(refused_burst),
	SCENE(broken_driver),
	SCENE(recovery),
	SCENE(missing_elsewhere),
	SCENE(missing_report),
	SCENE(degraded_by_others),
	SCENE(degraded_by_hidden),
	SCENE(full_and_more),
	SCENE(hidden),
	SCENE(reserve),
	SCENE(views),
	SCENE(cancel),
	SCENE(pool),
	SCENE(pool_degraded),
};

static size_t play(const struct scene list[], size_t count, bool quiet)
{
	size_t failed = 0;

	for (size_t i = 0; i < count; i++)
		failed += !scene_play(&list[i], quiet);
	return failed;
}

int main(int argc, char **argv)
{
	bool quiet = false;
	size_t failed, count;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--quiet") == 0) {
			quiet = true;
		} else if (strcmp(argv[i], "--mutant") == 0 && i + 1 < argc) {
			if (!sl_mutant_switch(argv[++i])) {
				fprintf(stderr, "scenes: no mutant is called %s here\n",
					argv[i]);
				return 2;
			}
		} else {
			fputs("usage: scenes [--quiet] [--mutant NAME]\n", stderr);
			return 2;
		}
	}
	failed = play(scenes, SL_ARRAY_LEN(scenes), quiet) +
		 play(change_scenes, change_scenes_count, quiet) +
		 play(held_scenes, held_scenes_count, quiet) +
		 play(stop_scenes, stop_scenes_count, quiet);
	count = SL_ARRAY_LEN(scenes) + change_scenes_count + held_scenes_count +
		stop_scenes_count;
	if (!quiet)
		printf("scenes: %zu of %zu as expected\n", count - failed, count);
	return failed ? 1 : 0;
}
