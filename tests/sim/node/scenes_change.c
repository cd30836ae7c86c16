/*
 * scenes_change - workloads changed and ended while they run, lost GPUs, strangers
 */
#include "scenes.h"

/* --- change --- */

/* A lower limit takes nothing away; it is felt by the next demand. */
static const struct scene_row lower_limit[] = {
	G100,
	{0, WORKLOAD(1, BYTES(20), BYTES(50), 1, 1, 0), "ADMIT 1 m1 r20 l50"},
	C(1, 1),
	{0, ASK(1, 1, 0, 50), "GRANT 1/1 g0 50 e1"},
	{0, COMMIT(1, 1, 50), ""},
	{1, SET(1, SL_SET_LIMIT, .limit = BYTES(30)),
		"SET 1 r20 l30 p0 over20; VIEW 1 g0"},
	{1, ASK(1, 2, 0, 1), "DENY 1/2 OVER_LIMIT 0"},
	{2, FREED(1, 0, 25), ""},
	{2, ASK(1, 3, 0, 6), "DENY 1/3 OVER_LIMIT 5"},
	{2, ASK(1, 4, 0, 5), "GRANT 1/4 g0 5 e2"},
	/* Higher again: at once. */
	{3, SET(1, SL_SET_LIMIT, .limit = PCT(100)),
		"SET 1 r20 l100 p0 over0; VIEW 1 g0"},
	{3, ASK(1, 5, 0, 70), "GRANT 1/5 g0 70 e3"},
};

/* A change happens as a whole or not at all; the reason is the first value that is wrong. */
static const struct scene_row all_or_nothing[] = {
	G100,
	{0, WORKLOAD(1, BYTES(20), BYTES(50), 1, 1, 0), "ADMIT 1 m1 r20 l50"},
	{0, WORKLOAD(2, BYTES(30), BYTES(30), 1, 1, 0), "ADMIT 2 m1 r30 l30"},
	{1,
		SET(1, SL_SET_REQUEST | SL_SET_LIMIT | SL_SET_PRIORITY,
			.request = BYTES(71), .limit = BYTES(90), .priority = 7),
		"REFUSE 1 REQUESTS_TAKEN 71 70"},
	{1, SET(1, SL_SET_REQUEST | SL_SET_PRIORITY, .request = BYTES(51), .priority = 7),
		"REFUSE 1 LIMIT_BELOW_REQUEST 51 50"},
	{1,
		SET(1, SL_SET_REQUEST | SL_SET_LIMIT, .request = BYTES(101),
			.limit = BYTES(200)),
		"REFUSE 1 REQUEST_TOO_LARGE 101 100"},
	{1, SET(9, SL_SET_PRIORITY, .priority = 7), "REFUSE 9 UNKNOWN_WORKLOAD 0 0"},
	{1, SET(1, 0, .priority = 7), "SET 1 r20 l50 p0 over0"},
	/* The last byte that is left may be promised. */
	{1,
		SET(1, SL_SET_REQUEST | SL_SET_LIMIT, .request = BYTES(70),
			.limit = BYTES(70)),
		"SET 1 r70 l70 p0 over0"},
	{1, WORKLOAD(3, BYTES(1), NONE, 1, 1, 0), "REFUSE 3 REQUESTS_TAKEN 1 0"},
	{2, SET(1, SL_SET_REQUEST, .request = BYTES(10)), "SET 1 r10 l70 p0 over0"},
	{2, WORKLOAD(3, BYTES(60), NONE, 1, 1, 0), "ADMIT 3 m1 r60 l60"},
};

/* The same for time. */
static const struct scene_row raise_compute[] = {
	G100,
	{0, WORKLOAD_WITH(1, .request = BYTES(20), .gpu_mask = 1, .compute_pm = 600),
		"ADMIT 1 m1 r20 l20"},
	{0, WORKLOAD_WITH(2, .request = BYTES(20), .gpu_mask = 1, .compute_pm = 300),
		"ADMIT 2 m1 r20 l20"},
	{1, SET(2, SL_SET_COMPUTE_REQUEST, .compute_pm = 401),
		"REFUSE 2 COMPUTE_TAKEN 401 400"},
	{1, SET(2, SL_SET_COMPUTE_REQUEST, .compute_pm = 400), "SET 2 r20 l20 p0 over0"},
	{1, SET(1, SL_SET_COMPUTE_REQUEST, .compute_pm = 700),
		"REFUSE 1 COMPUTE_TAKEN 700 600"},
	{2, WORKLOAD_WITH(3, .request = BYTES(20), .gpu_mask = 1, .compute_pm = 1),
		"REFUSE 3 COMPUTE_TAKEN 20 60"},
};

/* No promise is raised while a GPU cannot keep those it made; lowering helps, so it may be. */
static const struct scene_row raise_degraded[] = {
	G100,
	{0, WORKLOAD(1, BYTES(40), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r40 l100"},
	{0, UNMANAGED(0, 61), "NOTE DEGRADED_BEGINS g0 0/0 1"},
	{1, SET(1, SL_SET_REQUEST, .request = BYTES(41)),
		"REFUSE 1 REQUEST_TOO_LARGE 41 39"},
	{1, WORKLOAD(2, NONE, NONE, 1, 1, 0), "REFUSE 2 DEGRADED 0 0"},
	{1, SET(1, SL_SET_REQUEST, .request = BYTES(39)),
		"SET 1 r39 l100 p0 over0; NOTE DEGRADED_ENDS g0 0/0 0"},
};

/* More is resident than can be shared, but it can be taken back: the requests still fit. */
static const struct scene_row raise_while_too_much_is_there[] = {
	G100_BARE,
	{0, WORKLOAD(1, BYTES(10), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r10 l100"},
	C(1, 1),
	{0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{0, UNMANAGED(0, 50), ""},
	{1, SET(1, SL_SET_REQUEST, .request = BYTES(20)), "SET 1 r20 l100 p0 over0"},
	/* Now it cannot. */
	{1, HIDDEN(1, 0, 51), "VIEW 1 g0; NOTE DEGRADED_BEGINS g0 0/0 1"},
	{1, SET(1, SL_SET_REQUEST, .request = BYTES(30)), "REFUSE 1 DEGRADED 30 50"},
};

/* With a higher request a waiting burst is entitled, and goes to the front. */
static const struct scene_row raised_waits_first[] = {
	G100,
	W(1),
	{0, WORKLOAD(2, BYTES(0), BYTES(60), 1, 1, 0), "ADMIT 2 m1 r0 l60"},
	{0, WORKLOAD(3, BYTES(0), BYTES(100), 1, 1, 9), "ADMIT 3 m1 r0 l100"},
	C(1, 1),
	C(2, 2),
	C(3, 3),
	{0, ASK(1, 1, 0, 90), "GRANT 1/1 g0 90 e1"},
	{0, COMMIT(1, 1, 90), ""},
	{1, ASK(2, 1, 0, 30), ""},
	{2, ASK(3, 1, 0, 30), ""},
	{3, SET(2, SL_SET_REQUEST, .request = BYTES(30)), "SET 2 r30 l60 p0 over0"},
	{4, FREED(1, 0, 20), "GRANT 2/1 g0 30 e2"},
};

/* A waiting demand that no longer fits under the limit is denied at once. */
static const struct scene_row lowered_waits_no_more[] = {
	G100,
	W(1),
	{0, WORKLOAD(2, BYTES(0), BYTES(60), 1, 1, 0), "ADMIT 2 m1 r0 l60"},
	C(1, 1),
	C(2, 2),
	{0, ASK(1, 1, 0, 90), "GRANT 1/1 g0 90 e1"},
	{0, COMMIT(1, 1, 90), ""},
	{1, ASK(2, 1, 0, 30), ""},
	{2, SET(2, SL_SET_LIMIT, .limit = BYTES(29)),
		"SET 2 r0 l29 p0 over0; VIEW 2 g0; DENY 2/1 OVER_LIMIT 29"},
};

static const struct scene_row new_priority[] = {
	G100,
	W(1),
	W(2),
	W(3),
	C(1, 1),
	C(2, 2),
	C(3, 3),
	{0, ASK(1, 1, 0, 100), "GRANT 1/1 g0 100 e1"},
	{0, COMMIT(1, 1, 100), ""},
	{1, ASK(2, 1, 0, 20), ""},
	{2, ASK(3, 1, 0, 20), ""},
	{3, SET(3, SL_SET_PRIORITY, .priority = 1), "SET 3 r0 l100 p1 over0"},
	{4, FREED(1, 0, 20), "GRANT 3/1 g0 20 e2"},
};

/* Bounds hold for the values of the change; those that stay are not judged. */
static const struct scene_row bounds[] = {
	G100,
	{0, WORKLOAD(1, BYTES(40), BYTES(90), 1, 1, 5), "ADMIT 1 m1 r40 l90"},
	{1,
		SET(1, SL_SET_LIMIT, .limit = BYTES(80),
			.bounds = {.request = BYTES(10), .limit = BYTES(60)}),
		"REFUSE 1 BOUND_LIMIT 80 60"},
	{1,
		SET(1, SL_SET_LIMIT, .limit = BYTES(60),
			.bounds = {.request = BYTES(10),
				.limit = BYTES(60),
				.has_priority = true,
				.priority = 0}),
		"SET 1 r40 l60 p5 over0"},
	{1,
		SET(1, SL_SET_REQUEST, .request = BYTES(30),
			.bounds = {.request = BYTES(29)}),
		"REFUSE 1 BOUND_REQUEST 30 29"},
	{1,
		SET(1, SL_SET_PRIORITY, .priority = 3,
			.bounds = {.has_priority = true, .priority = 2}),
		"REFUSE 1 BOUND_PRIORITY 3 2"},
	{2, BOUNDED(2, 1, .workloads = 1), "ADMIT 2 m1 r0 l100"},
	{2, BOUNDED(3, 2, .workloads = 1), "REFUSE 3 BOUND_WORKLOADS 2 1"},
	{2, BOUNDED(3, 1, .workloads = 1), "ADMIT 3 m1 r0 l100"},
	{3, BOUNDED(5, 1, .limit = BYTES(99)), "REFUSE 5 BOUND_LIMIT 100 99"},
};

/* --- end --- */

static const struct scene_row stopped[] = {
	G100,
	W(1),
	W(2),
	C(1, 1),
	C(2, 2),
	{0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{0, COMMIT(1, 1, 60), ""},
	{0, ASK(2, 1, 0, 50), ""},
	/* Waiting demands end with it: no thread sleeps through its grace period. */
	{1, STOP_WORKLOAD(2, 5000), "STOP 0/2 TERM STOP_ASKED; DENY 2/1 CANCELLED 40"},
	{1, ASK(2, 2, 0, 1), "DENY 2/2 CANCELLED 40"},
	{2, STOP_WORKLOAD(9, 5000), "NOTE STRAY g0 9/0 0"},
	/* The shorter grace counts, whichever came first. */
	{1000, STOP_WORKLOAD(2, 1000), ""},
	{1001, STOP_WORKLOAD(2, 60000), ""},
	{1999, TIME, ""},
	{2000, TIME, "STOP 0/2 KILL STOP_ASKED"},
	{2001, EXIT(2), ""},
	{9000, TIME, ""},
	/* One that ends in time is not killed. */
	{9000, STOP_WORKLOAD(1, 1000), "STOP 0/1 TERM STOP_ASKED"},
	{9500, EXIT(1), ""},
	{9600, REMOVE(1), ""},
	{10000, TIME, ""},
};

static const struct scene_row stopped_at_once[] = {
	G100,
	W(1),
	C(1, 1),
	{1, STOP_WORKLOAD(1, 0), "STOP 0/1 TERM STOP_ASKED; STOP 0/1 KILL STOP_ASKED"},
};

/* --- lost GPUs --- */

static const struct scene_row lost[] = {
	{0, GPU(0, 100, 0), ""},
	{0, GPU(1, 100, 0), ""},
	{0, WORKLOAD(1, BYTES(40), BYTES(100), 2, 3, 0), "ADMIT 1 m3 r40 l100"},
	{0, WORKLOAD(2, BYTES(50), BYTES(100), 1, 1, 0), "ADMIT 2 m1 r50 l100"},
	C(1, 1),
	C(2, 2),
	C(3, 1),
	{0, ASK(1, 1, 0, 20), "GRANT 1/1 g0 20 e1"},
	{0, COMMIT(1, 1, 20), "VIEW 1 g0"},
	{0, ASK(1, 2, 0, 10), "GRANT 1/2 g0 10 e2"},
	{0, ASK(3, 1, 0, 15), "GRANT 3/1 g0 15 e3"},
	{0, ASK(2, 1, 0, 90), ""},
	{0, EXIT(3), "VIEW 1 g0"},
	/* Waiting ends, open grants are void, the memory of dead clients is gone with the GPU. */
	{5, LOST(0),
		"NOTE LOST_BEGINS g0 0/0 0; NOTE LOST_FOR g0 1/0 30; NOTE LOST_FOR g0 "
		"2/0 0; "
		"DENY 2/1 GPU_LOST 60"},
	{5, LOST(0), ""},
	{5, LOST(7), "NOTE STRAY g7 0/0 0"},
	{6, COMMIT(1, 2, 10), ""},
	{6, RELEASED(3, 0, 0), "NOTE STRAY g0 0/0 0"},
	/* Also within a request; other GPUs serve on. */
	{6, ASK(2, 2, 0, 1), "DENY 2/2 GPU_LOST 80"},
	{6, ASK(1, 3, 1, 70), "GRANT 1/3 g1 70 e4"},
	{6, WORKLOAD(3, BYTES(1), NONE, 1, 1, 0), "REFUSE 3 TOO_FEW_GPUS 1 0"},
	{6, SET(2, SL_SET_REQUEST, .request = BYTES(51)), "REFUSE 2 GPU_LOST 51 60"},
	{7, GPU(0, 100, 0), "NOTE LOST_ENDS g0 0/0 0"},
	/* The 20 that client 1 made are booked until it frees them. */
	{7, ASK(2, 3, 0, 61), ""},
	{8, CANCEL(2, 3), "DENY 2/3 CANCELLED 60"},
	{8, ASK(2, 4, 0, 60), "GRANT 2/4 g0 60 e5"},
};

/* A creation that failed because the GPU is lost is not tried again. */
static const struct scene_row lost_while_creating[] = {
	G100,
	W(1),
	C(1, 1),
	{0, ASK(1, 1, 0, 20), "GRANT 1/1 g0 20 e1"},
	{1, LOST(0), "NOTE LOST_BEGINS g0 0/0 0; NOTE LOST_FOR g0 1/0 20"},
	{2, CREATE_FAILED(1, 1), "DENY 1/1 GPU_LOST 100"},
	{3, GPU(0, 110, 10), "NOTE LOST_ENDS g0 0/0 0"},
	{3, ASK(1, 2, 0, 100), "GRANT 1/2 g0 100 e2"},
};

/* --- strangers --- */

static const struct scene_row strangers[] = {
	G100,
	{0, STRANGER(5, 0, 30), "NOTE UNMANAGED_SEEN g0 0/0 30"},
	{1, STRANGER(5, 0, 40), ""},
	{2, SETTINGS(.unmanaged = SL_UNMANAGED_STOP, .stop_grace = 500 * SL_MS),
		"STRANGER 5 TERM g0 40"},
	{3, STRANGER(6, 0, 1), "STRANGER 6 TERM g0 1"},
	{4, STRANGER(6, 0, 0), ""},
	{501, TIME, ""},
	{502, TIME, "STRANGER 5 KILL g0 40"},
	{600, STRANGER(5, 0, 0), ""},
	{700, SETTINGS(.unmanaged = SL_UNMANAGED_IGNORE), ""},
	{700, STRANGER(7, 0, 30), ""},
};

/* --- where to --- */

/* Packed: the fullest that fits, also for one that can burst. */
static const struct scene_row pack[] = {
	{0, SETTINGS(.placement = SL_PLACEMENT_PACK), ""},
	{0, GPU(0, 100, 0), ""},
	{0, GPU(1, 100, 0), ""},
	{0, WORKLOAD(1, BYTES(20), BYTES(100), 1, 3, 0), "ADMIT 1 m1 r20 l100"},
	{0, WORKLOAD(2, BYTES(20), BYTES(100), 1, 3, 0), "ADMIT 2 m1 r20 l100"},
	{0, SETTINGS(.placement = SL_PLACEMENT_SPREAD), ""},
	{0, WORKLOAD(3, BYTES(20), BYTES(100), 1, 3, 0), "ADMIT 3 m2 r20 l100"},
};

/* The GPU is chosen again when the first process begins, and then for good. */
static const struct scene_row begins[] = {
	{0, GPU(0, 110, 10), ""},
	{0, GPU(1, 110, 10), ""},
	{0, WORKLOAD(1, BYTES(20), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r20 l100"},
	{0, WORKLOAD(2, BYTES(0), BYTES(100), 1, 1, 0), "ADMIT 2 m1 r0 l100"},
	C(2, 2),
	{0, ASK(2, 1, 0, 80), "GRANT 2/1 g0 80 e1"},
	{0, COMMIT(2, 1, 80), ""},
	/* Requests of others are in the way there. */
	{0, WORKLOAD(3, BYTES(90), BYTES(90), 1, 2, 0), "ADMIT 3 m2 r90 l90"},
	{1, FIRST_CALL(1, 3), ""},
	{2, REMOVE(3), ""},
	{2, FIRST_CALL(1, 3), "MOVES 1 g0 g1; NOTE BEGINS_ELSEWHERE g1 1/0 0"},
	C(1, 1),
	{2, ASK(1, 1, 1, 60), "GRANT 1/1 g1 60 e2"},
	{2, COMMIT(1, 2, 60), ""},
	{3, FREED(2, 0, 80), ""},
	/* It has a process. */
	{3, FIRST_CALL(1, 3), ""},
	/* All that it may use is free. */
	{4, WORKLOAD(4, BYTES(0), BYTES(30), 1, 2, 0), "ADMIT 4 m2 r0 l30"},
	{4, FIRST_CALL(4, 3), ""},
};

/* Its own GPU is lost, and requests of others have the rest. */
static const struct scene_row begins_nowhere[] = {
	{0, GPU(0, 110, 10), ""},
	{0, GPU(1, 110, 10), ""},
	{0, WORKLOAD(1, BYTES(20), BYTES(100), 1, 1, 0), "ADMIT 1 m1 r20 l100"},
	{0, WORKLOAD(2, BYTES(90), BYTES(90), 1, 2, 0), "ADMIT 2 m2 r90 l90"},
	{1, LOST(0), "NOTE LOST_BEGINS g0 0/0 0; NOTE LOST_FOR g0 1/0 0"},
	{1, FIRST_CALL(1, 3), ""},
};

/* Before all have reported, full GPUs look empty. */
static const struct scene_row begins_in_recovery[] = {
	{0, GPU(0, 110, 10), ""},
	{0, GPU(1, 110, 10), ""},
	{0, RECOVERED(1, BYTES(20), BYTES(100), 1), "ADMIT 1 m1 r20 l100"},
	{0, RECOVERED(2, BYTES(80), BYTES(80), 1), "ADMIT 2 m1 r80 l80"},
	{0, RECOVERED(3, BYTES(0), BYTES(100), 2), "ADMIT 3 m2 r0 l100"},
	{0, EXPECT(3, 3), ""},
	{1, FIRST_CALL(1, 3), ""},
};

const struct scene change_scenes[] = {
	SCENE(lower_limit),
	SCENE(all_or_nothing),
	SCENE(raise_compute),
	SCENE(raise_degraded),
	SCENE(raise_while_too_much_is_there),
	SCENE(raised_waits_first),
	SCENE(lowered_waits_no_more),
	SCENE(new_priority),
	SCENE(bounds),
	SCENE(stopped),
	SCENE(stopped_at_once),
	SCENE(lost),
	SCENE(lost_while_creating),
	SCENE(strangers),
	SCENE(pack),
	SCENE(begins),
	SCENE(begins_nowhere),
	SCENE(begins_in_recovery),
};
const size_t change_scenes_count = SL_ARRAY_LEN(change_scenes);
