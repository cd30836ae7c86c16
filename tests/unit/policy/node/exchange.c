/*
 * exchange - one client comes back while another still leaves, played by hand
 *
 * A of 512 MiB is on a GPU of 600, and B of 512 MiB on the host. B is the more urgent one, so A is
 * told to leave as soon as B wants. A piece is 64 MiB, which the link moves in 2 ms; a sixteenth of
 * what leaves would be less.
 */
#include "play.h"

#define MIB ((uint64_t)SL_MIB)
#define SWAP(pool, ...)                \
	SETTINGS(.pool_bytes = (pool), \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0), __VA_ARGS__)
#define WORKLOAD(w, gpus, n, priority) \
	EVENT(WORKLOAD_ADD, workload_add, {w, ANY, ANY, gpus, n, priority})
#define SWAPPER(c, w)      EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define OUT(c, g, n)       EVENT(CLIENT_EVICTED, client_evicted, {c, g, n})
#define REPORTED(c)        EVENT(CLIENT_REPORTED, client_reported, {c})
#define WANT(c, n)         EVENT(WANT, want, {c, n})
#define FREED_OUT(c, g, n) EVENT(FREED, freed, {c, g, n, 1})
#define MOVED(c, o, g, n)  EVENT(MOVED, moved, {c, o, g, n})
#define DONE(c, o, g, n)   EVENT(DONE, done, {c, o, g, SL_SWAP_OK, 0, n})
#define ENDED(c, o, g, n, what, why) \
	EVENT(DONE, done, {c, o, g, SL_SWAP_##what, SL_SWAP_##why, n})

static void says(struct play *p, const char *row, uint64_t at_ms, struct sl_event event,
	const char *expected)
{
	const char *got = play(p, row, at_ms, event);

	assert_row_text(row, got, expected);
}

static void does(struct play *p, uint64_t at_ms, struct sl_event event)
{
	(void)play(p, "before", at_ms, event);
}

static uint64_t evict(const struct play *p)
{
	return p->last[SL_ACTION_EVICT].id;
}

static uint64_t restore(const struct play *p)
{
	return p->last[SL_ACTION_RESTORE].id;
}

static uint64_t free_mib(const struct play *p)
{
	return sl_node_gpu(p->node, 0).free_bytes / MIB;
}

/* B got its memory first, and was moved for A, which was then the more urgent one. */
static void begin_parked(struct play *p, uint64_t mib)
{
	play_open(p);
	does(p, 0, (struct sl_event)SWAP(4096 * MIB));
	does(p, 0, (struct sl_event)GPU(0, 600 * MIB));
	does(p, 0,
		(struct sl_event)EVENT(
			LINK_COST, link_cost, {0, 32000 * MIB, 32000 * MIB}));
	does(p, 0, (struct sl_event)WORKLOAD(1, 1, 1, 0));
	does(p, 0, (struct sl_event)WORKLOAD(2, 1, 1, 5));
	does(p, 0, (struct sl_event)SWAPPER(1, 1));
	does(p, 0, (struct sl_event)SWAPPER(2, 2));
	does(p, 0, (struct sl_event)ASK(2, 1, 0, mib * MIB));
	does(p, 0,
		(struct sl_event)COMMIT(
			2, p->last[SL_ACTION_GRANT].grant.epoch, mib * MIB));
	does(p, 1, (struct sl_event)EVENT(WORKLOAD_PARK, workload_park, {2, 0}));
	does(p, 2, (struct sl_event)DONE(2, evict(p), 0, mib * MIB));
}

/* C is small, parked as well, and within its request. */
static void park_c(struct play *p)
{
	does(p, 2,
		(struct sl_event)EVENT(WORKLOAD_ADD, workload_add,
			{3, BYTES(64 * MIB), BYTES(64 * MIB), 1, 1, 9}));
	does(p, 2, (struct sl_event)SWAPPER(3, 3));
	does(p, 2, (struct sl_event)ASK(3, 1, 0, 64 * MIB));
	does(p, 2,
		(struct sl_event)COMMIT(
			3, p->last[SL_ACTION_GRANT].grant.epoch, 64 * MIB));
	does(p, 2, (struct sl_event)EVENT(WORKLOAD_PARK, workload_park, {3, 0}));
	does(p, 2, (struct sl_event)DONE(3, evict(p), 0, 64 * MIB));
}

static void begin_leaving(struct play *p, uint64_t mib)
{
	does(p, 3, (struct sl_event)ASK(1, 1, 0, mib * MIB));
	does(p, 3,
		(struct sl_event)COMMIT(
			1, p->last[SL_ACTION_GRANT].grant.epoch, mib * MIB));
	does(p, 5000, (struct sl_event)EVENT(WORKLOAD_RESUME, workload_resume, {2}));
	assert_row_u64("A leaves", p->last[SL_ACTION_EVICT].evict.client, 1);
}

static void begin(struct play *p, uint64_t mib)
{
	begin_parked(p, mib);
	begin_leaving(p, mib);
}

static void test_there_and_back(void **state)
{
	struct play p;
	uint64_t out;

	(void)state;
	begin(&p, 512);
	out = evict(&p);
	assert_row_u64("lacking", p.last[SL_ACTION_EVICT].evict.bytes, 424 * MIB);
	assert_row_u64("piece", p.last[SL_ACTION_EVICT].evict.tell_bytes, 64 * MIB);
	/* 88 MiB are free, and A may refuse yet. */
	assert_row_u64("before", free_mib(&p), 88);
	says(&p, "a piece", 5010, (struct sl_event)MOVED(1, out, 0, 64 * MIB),
		"RESTORE 2 g0 159383552");
	assert_row_u64("lent once", free_mib(&p), 0);
	assert_row_u64("on its way", sl_node_pool(p.node).leaving_bytes, 360 * MIB);
	assert_row_u64("B returns", sl_node_workload(p.node, 2).residency,
		SL_RESIDENCY_RETURNING);
	says(&p, "the same again", 5010, (struct sl_event)MOVED(1, out, 0, 64 * MIB), "");
	says(&p, "less", 5010, (struct sl_event)MOVED(1, out, 0, 2 * MIB), "");
	says(&p, "more", 5020, (struct sl_event)MOVED(1, out, 0, 128 * MIB), "");
	/* Its chunks are of 64 MiB. */
	says(&p, "part", 5021, (struct sl_event)DONE(2, restore(&p), 0, 384 * MIB),
		"RESTORE 2 g0 92274688");
	assert_row_u64("lent once", free_mib(&p), 0);
	says(&p, "all of A", 5030, (struct sl_event)DONE(1, out, 0, 424 * MIB),
		"NOTE EVICTED_FOR g0 1/2 444596224");
	says(&p, "rest", 5031, (struct sl_event)DONE(2, restore(&p), 0, 320 * MIB),
		"RESTORE 2 g0 335544320");
	says(&p, "back", 5040, (struct sl_event)DONE(2, restore(&p), 0, 0),
		"NOTE RESTORED g0 2/0 536870912");
	assert_row_u64("out", sl_node_pool(p.node).evicted_bytes, 424 * MIB);
	/* A first grant begins one, too. */
	assert_row_u64("turns of B", sl_node_workload(p.node, 2).turns, 2);
	play_close(&p);
}

/* Less than two pieces leave as one. */
static void test_small(void **state)
{
	struct play p;

	(void)state;
	begin(&p, 360);
	assert_row_u64("lacking", p.last[SL_ACTION_EVICT].evict.bytes, 120 * MIB);
	assert_row_u64("pieces", p.last[SL_ACTION_EVICT].evict.tell_bytes, 0);
	play_close(&p);
}

/* None of the chunks was small enough for the first part. So the next part comes back only after 20
 * ms. */
static void test_large_chunks(void **state)
{
	struct play p;
	uint64_t out;

	(void)state;
	begin(&p, 512);
	out = evict(&p);
	says(&p, "152", 5010, (struct sl_event)MOVED(1, out, 0, 64 * MIB),
		"RESTORE 2 g0 159383552");
	says(&p, "nothing", 5011, (struct sl_event)DONE(2, restore(&p), 0, 512 * MIB),
		"");
	says(&p, "216", 5020, (struct sl_event)MOVED(1, out, 0, 128 * MIB), "");
	says(&p, "312", 5031, (struct sl_event)MOVED(1, out, 0, 224 * MIB),
		"RESTORE 2 g0 327155712");
	says(&p, "256 of them", 5031, (struct sl_event)DONE(2, restore(&p), 0, 256 * MIB),
		"");
	says(&p, "all of A", 5040, (struct sl_event)DONE(1, out, 0, 424 * MIB),
		"NOTE EVICTED_FOR g0 1/2 444596224; RESTORE 2 g0 268435456");
	play_close(&p);
}

/* A fails half-way and for good: it takes back B's part, so that one of them runs. */
static void test_left_half_way(void **state)
{
	struct play p;
	uint64_t out, at = 5100;

	(void)state;
	begin(&p, 512);
	out = evict(&p);
	does(&p, 5010, (struct sl_event)MOVED(1, out, 0, 128 * MIB));
	does(&p, 5020, (struct sl_event)DONE(2, restore(&p), 0, 320 * MIB));
	says(&p, "A fails", 5030,
		(struct sl_event)ENDED(1, out, 0, 128 * MIB, PART, DRIVER),
		"NOTE EVICTED_FOR g0 1/2 134217728; NOTE EVICT_FAILED g0 1/2 310378496");
	does(&p, 5031, (struct sl_event)WANT(1, 1));
	/* It is asked again a few times first. */
	for (int i = 0; i < 5 && p.last[SL_ACTION_EVICT].evict.client == 1;
		i++, at += 5000) {
		does(&p, at, (struct sl_event)TIME);
		does(&p, at + 1,
			(struct sl_event)ENDED(
				1, evict(&p), 0, 128 * MIB, REFUSED, DRIVER));
	}
	assert_row_u64("of B", p.last[SL_ACTION_EVICT].evict.client, 2);
	says(&p, "B is out", at - 4990, (struct sl_event)DONE(2, evict(&p), 0, 512 * MIB),
		"NOTE EVICTED_FOR g0 2/1 201326592; RESTORE 1 g0 134217728");
	play_close(&p);
}

/* A client more urgent than B comes while B returns: B is whole before it leaves again. */
static void test_finished(void **state)
{
	struct play p;
	uint64_t out;

	(void)state;
	begin(&p, 512);
	out = evict(&p);
	does(&p, 5010, (struct sl_event)MOVED(1, out, 0, 128 * MIB));
	does(&p, 5011, (struct sl_event)WORKLOAD(3, 1, 1, 9));
	does(&p, 5011, (struct sl_event)SWAPPER(3, 3));
	says(&p, "asks", 5012, (struct sl_event)ASK(3, 1, 0, 64 * MIB), "");
	says(&p, "part", 5020, (struct sl_event)DONE(2, restore(&p), 0, 320 * MIB), "");
	says(&p, "more", 5030, (struct sl_event)MOVED(1, out, 0, 256 * MIB),
		"RESTORE 2 g0 159383552");
	/* Not for B: the memory it lacks is coming. */
	assert_row_u64("nobody else", evict(&p), out);
	play_close(&p);
}

/* B dies, or is parked: A goes on all the same, since it has begun. */
static void test_not_needed(void **state)
{
	struct play p;
	uint64_t out;

	(void)state;
	for (int i = 0; i < 2; i++) {
		begin(&p, 512);
		out = evict(&p);
		does(&p, 5010, (struct sl_event)MOVED(1, out, 0, 128 * MIB));
		if (i == 0)
			does(&p, 5015, (struct sl_event)EXIT(2));
		else
			does(&p, 5015,
				(struct sl_event)EVENT(
					WORKLOAD_PARK, workload_park, {2, 0}));
		assert_row_u64("A", p.last[SL_ACTION_ABORT].abort.order, 0);
		says(&p, "again", 5016, (struct sl_event)MOVED(1, out, 0, 192 * MIB), "");
		does(&p, 5017, (struct sl_event)DONE(1, out, 0, 424 * MIB));
		/* What of B is here leaves, or is dying. */
		if (i == 1) {
			says(&p, "part", 5018,
				(struct sl_event)DONE(2, restore(&p), 0, 320 * MIB),
				"EVICT 2 g0 201326592 PARK_BEGINS");
		}
		play_close(&p);
	}
}

/* MOVED that names no open EVICT changes nothing. */
static void test_stray(void **state)
{
	struct play p;
	uint64_t out;

	(void)state;
	begin(&p, 512);
	out = evict(&p);
	says(&p, "another", 5010, (struct sl_event)MOVED(1, out + 1, 0, 64 * MIB),
		"NOTE STRAY g0 1/0 67108864");
	says(&p, "nobody's", 5010, (struct sl_event)MOVED(7, out, 0, 64 * MIB),
		"NOTE STRAY g0 0/0 67108864");
	says(&p, "GPU", 5010, (struct sl_event)MOVED(1, out, 40, 64 * MIB),
		"NOTE STRAY g0 1/0 67108864");
	assert_row_u64("out", sl_node_pool(p.node).evicted_bytes, 512 * MIB);
	does(&p, 5020, (struct sl_event)DONE(1, out, 0, 424 * MIB));
	says(&p, "late", 5030, (struct sl_event)MOVED(1, out, 0, 64 * MIB),
		"NOTE STRAY g0 1/0 67108864");
	says(&p, "a restore", 5030, (struct sl_event)MOVED(2, restore(&p), 0, 64 * MIB),
		"NOTE STRAY g0 2/0 67108864");
	play_close(&p);
}

/* The line of the returning client is lost: as much as was ordered may be resident. */
static void test_lost(void **state)
{
	struct play p;
	uint64_t out;

	(void)state;
	begin(&p, 512);
	out = evict(&p);
	does(&p, 5010, (struct sl_event)MOVED(1, out, 0, 64 * MIB));
	says(&p, "lost", 5020,
		(struct sl_event)ENDED(2, restore(&p), 0, 360 * MIB, REFUSED, LOST), "");
	assert_row_u64("free", free_mib(&p), 0);
	says(&p, "reports", 5030, (struct sl_event)MOVED(1, out, 0, 128 * MIB), "");
	play_close(&p);
}

/* A client that began to come back and cannot go on keeps no other waiting. */
static void test_failed_part(void **state)
{
	struct play p;
	uint64_t out;

	(void)state;
	begin_parked(&p, 512);
	park_c(&p);
	begin_leaving(&p, 512);
	out = evict(&p);
	does(&p, 5010, (struct sl_event)MOVED(1, out, 0, 128 * MIB));
	assert_row_u64("B begins", p.last[SL_ACTION_RESTORE].restore.client, 2);
	does(&p, 5012, (struct sl_event)DONE(1, out, 0, 424 * MIB));
	does(&p, 5020,
		(struct sl_event)ENDED(2, restore(&p), 0, 512 * MIB, REFUSED, NO_ROOM));
	does(&p, 5021, (struct sl_event)EVENT(WORKLOAD_RESUME, workload_resume, {3}));
	assert_row_u64("C comes", p.last[SL_ACTION_RESTORE].restore.client, 3);
	play_close(&p);
}

/* Memory freed on the host while more leaves is not taken for memory that has left. */
static void test_freed_half_way(void **state)
{
	struct play p;
	uint64_t out, leaving;

	(void)state;
	begin(&p, 512);
	out = evict(&p);
	does(&p, 5010, (struct sl_event)ENDED(1, out, 0, 200 * MIB, PART, DRIVER));
	for (uint64_t at = 5100; at < 6000 && evict(&p) == out; at += 50)
		does(&p, at, (struct sl_event)TIME);
	out = evict(&p);
	does(&p, 6010, (struct sl_event)FREED_OUT(1, 0, 150 * MIB));
	leaving = sl_node_pool(p.node).leaving_bytes;
	does(&p, 6011, (struct sl_event)MOVED(1, out, 0, 114 * MIB));
	assert_row_u64(
		"less leaves", sl_node_pool(p.node).leaving_bytes, leaving - 64 * MIB);
	play_close(&p);
}

/* A fails half-way: B needs what A kept, and A what B got, so one of them must be able to go. The
 * pool of 960 MiB keeps space for the one that lacks less, whatever else is moved or lent. mib:
 * what D has, on another GPU. */
static void fails_beside(struct play *p, uint64_t mib)
{
	uint64_t out;

	begin(p, 512);
	does(p, 5000, (struct sl_event)GPU(1, 1024 * MIB));
	does(p, 5000, (struct sl_event)WORKLOAD(4, 1, 2, 0));
	does(p, 5000, (struct sl_event)SWAPPER(4, 4));
	if (mib) {
		does(p, 5000, (struct sl_event)ASK(4, 1, 1, mib * MIB));
		does(p, 5000,
			(struct sl_event)COMMIT(
				4, p->last[SL_ACTION_GRANT].grant.epoch, mib * MIB));
	}
	does(p, 5000, (struct sl_event)SWAP(960 * MIB));
	out = evict(p);
	does(p, 5010, (struct sl_event)MOVED(1, out, 0, 128 * MIB));
	does(p, 5020, (struct sl_event)DONE(2, restore(p), 0, 320 * MIB));
	does(p, 5030, (struct sl_event)ENDED(1, out, 0, 128 * MIB, PART, DRIVER));
	does(p, 5031, (struct sl_event)WANT(1, 1));
	assert_row_u64("out", sl_node_pool(p->node).evicted_bytes, 448 * MIB);
	assert_row_u64("free", free_mib(p), 24);
}

static const char *parks_d(struct play *p)
{
	return play(p, "park", 5032,
		(struct sl_event)EVENT(WORKLOAD_PARK, workload_park, {4, 0}));
}

static void test_room_for_one(void **state)
{
	struct play p;
	const char *said;

	(void)state;
	/* 512 MiB are left, of which A needs 104: it lacks 128, and 24 are free. */
	fails_beside(&p, 409);
	said = parks_d(&p);
	assert_non_null(strstr(said, "EVICT 4 g1 428867584 PARK_BEGINS"));
	play_close(&p);
	fails_beside(&p, 408);
	said = parks_d(&p);
	assert_non_null(strstr(said, "EVICT 4 g1 427819008 PARK_BEGINS"));
	play_close(&p);
}

/* B and C are one workload, for which A leaves. D is of A's workload and waits for memory. B must
 * not be moved for D before C is back, too: the turn of B and C would never begin. */
static void test_siblings(void **state)
{
	const struct sl_event before[] = {SWAP(4096 * MIB), GPU(0, 600 * MIB),
		EVENT(LINK_COST, link_cost, {0, 32000 * MIB, 32000 * MIB}),
		WORKLOAD(1, 1, 1, 0), WORKLOAD(2, 1, 1, 0),
		EVENT(CLIENT_JOIN, client_join, {2, 2, 1, 1}),
		EVENT(CLIENT_JOIN, client_join, {3, 2, 1, 1}), REPORT(2, 0, 250 * MIB),
		OUT(2, 0, 250 * MIB), REPORTED(2), REPORT(3, 0, 250 * MIB),
		OUT(3, 0, 250 * MIB), REPORTED(3), SWAPPER(1, 1), SWAPPER(4, 1)};
	struct play p;
	uint64_t of_b;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		does(&p, 0, before[i]);
	does(&p, 3, (struct sl_event)ASK(1, 1, 0, 512 * MIB));
	does(&p, 3,
		(struct sl_event)COMMIT(
			1, p.last[SL_ACTION_GRANT].grant.epoch, 512 * MIB));
	does(&p, 5000, (struct sl_event)WANT(2, 1));
	does(&p, 5000, (struct sl_event)WANT(3, 1));
	says(&p, "room for B", 5010, (struct sl_event)DONE(1, evict(&p), 0, 162 * MIB),
		"NOTE EVICTED_FOR g0 1/2 169869312; RESTORE 2 g0 262144000; "
		"EVICT 1 g0 262144000 EVICTED_FOR");
	of_b = restore(&p);
	says(&p, "D asks", 5011, (struct sl_event)ASK(4, 1, 0, 80 * MIB), "");
	says(&p, "a piece for C", 5013,
		(struct sl_event)MOVED(1, evict(&p), 0, 300 * MIB),
		"RESTORE 3 g0 144703488");
	says(&p, "B is back", 5014, (struct sl_event)DONE(2, of_b, 0, 0),
		"NOTE RESTORED g0 2/0 262144000");
	assert_row_u64("C is not", sl_node_workload(p.node, 2).turns, 0);
	play_close(&p);
}

/* What D is lent of a request could only be taken back by moving it: the same room is not there for
 * A, too. */
static void test_room_not_lent(void **state)
{
	const char *said;
	struct play p;

	(void)state;
	fails_beside(&p, 0);
	does(&p, 5031,
		(struct sl_event)EVENT(WORKLOAD_ADD, workload_add,
			{5, BYTES(1024 * MIB), BYTES(1024 * MIB), 1, 2, 0}));
	said = play(&p, "one too many", 5031, (struct sl_event)ASK(4, 1, 1, 409 * MIB));
	assert_non_null(strstr(said, "GRANT"));
	play_close(&p);
	fails_beside(&p, 0);
	does(&p, 5031,
		(struct sl_event)EVENT(WORKLOAD_ADD, workload_add,
			{5, BYTES(1024 * MIB), BYTES(1024 * MIB), 1, 2, 0}));
	assert_non_null(strstr(
		play(&p, "as many", 5031, (struct sl_event)ASK(4, 1, 1, 408 * MIB)),
		"GRANT 4/1 g1 427819008"));
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_siblings),
		cmocka_unit_test(test_large_chunks),
		cmocka_unit_test(test_left_half_way),
		cmocka_unit_test(test_finished),
		cmocka_unit_test(test_not_needed),
		cmocka_unit_test(test_stray),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_room_for_one),
		cmocka_unit_test(test_room_not_lent),
		cmocka_unit_test(test_failed_part),
		cmocka_unit_test(test_freed_half_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
