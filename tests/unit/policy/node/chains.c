/*
 * chains - workloads with resolvers of their own, and GPUs that are free of swapping
 *
 * Of a GPU of 100, V has 80, all of it a burst, and has been idle for long. D then asks for 40.
 */
#include "play.h"

#include "../../../sim/common/mutants.h"

enum { V = 1, D, E };
enum { SWAP = SL_RESOLVER_SWAP, WAIT, PRIORITY, FAIL };

#define CHAIN(...) \
	SETTINGS(.pool_bytes = 1000, .chain = SL_CHAIN(__VA_ARGS__), .stop_idle = SL_S)
#define ADD(w, bytes, own, rank)                 \
	EVENT(WORKLOAD_ADD, workload_add,        \
		{.workload = (w),                \
			.request = BYTES(bytes), \
			.limit = BYTES(100),     \
			.gpu_count = 1,          \
			.gpu_mask = 1,           \
			.priority = (rank),      \
			.flags = (uint32_t)(own) << SL_WORKLOAD_CHAIN_SHIFT})
#define SWAPPER(c) EVENT(CLIENT_JOIN, client_join, {c, c, 0, 1})

static void begin(
	struct play *p, struct sl_event settings, uint32_t own, uint64_t request)
{
	const struct sl_event before[] = {settings, GPU(0, 100), ADD(V, 0, 0, 0),
		ADD(D, request, own, 1), ADD(E, 0, 0, 0), SWAPPER(V), SWAPPER(D),
		SWAPPER(E)};

	play_open(p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)play(p, "before", 0, before[i]);
	play_has(p, V, 1, 80 - request / 2);
	(void)play(p, "idles", 2000,
		(struct sl_event)EVENT(PULSE, pulse, {V, 1900 * SL_MS, 0, 1}));
}

static const char *asks(struct play *p, uint64_t client, uint64_t at_ms, uint64_t bytes)
{
	return play(p, "asks", at_ms, (struct sl_event)ASK(client, 1, 0, bytes));
}

/* One collision of a burst, by the chain of D. */
static void test_a_burst(void **state)
{
	static const struct {
		const char *name;
		uint32_t node, own;
		const char *at_once, *late;
	} rows[] = {
		{"the node's", SL_CHAIN(SWAP, WAIT, 0), 0, "EVICT 1 g0", NULL},
		{"it waits", SL_CHAIN(SWAP, WAIT, 0), SL_CHAIN(WAIT, 0, 0), NULL,
			"DENY 2/1 WAITED_TOO_LONG"},
		{"it waits first", SL_CHAIN(SWAP, WAIT, 0), SL_CHAIN(WAIT, SWAP, 0), NULL,
			"EVICT 1 g0"},
		{"it swaps only", SL_CHAIN(SWAP, WAIT, 0), SL_CHAIN(SWAP, FAIL, 0),
			"EVICT 1 g0", NULL},
		{"it fails", SL_CHAIN(SWAP, WAIT, 0), SL_CHAIN(FAIL, 0, 0),
			"DENY 2/1 NO_RESOLVER", NULL},
		{"the node swaps first", SL_CHAIN(WAIT, SWAP, 0), SL_CHAIN(SWAP, WAIT, 0),
			"EVICT 1 g0", NULL},
		{"it stops", SL_CHAIN(PRIORITY, WAIT, 0), 0, "STOP 1 1", NULL},
		{"it stops later", SL_CHAIN(PRIORITY, WAIT, 0),
			SL_CHAIN(WAIT, PRIORITY, 0), NULL, "STOP 1 1"},
		{"no more than the node's", SL_CHAIN(WAIT, 0, 0),
			SL_CHAIN(SWAP, PRIORITY, 0), "DENY 2/1 NO_RESOLVER", NULL},
		{"what can be moved is not stopped", SL_CHAIN(SWAP, PRIORITY, WAIT),
			SL_CHAIN(PRIORITY, FAIL, 0), "DENY 2/1 NO_RESOLVER", NULL},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct play p;
		const char *got;

		begin(&p, (struct sl_event)CHAIN(rows[i].node, 0, 0), rows[i].own, 0);
		got = asks(&p, D, 2000, 40);
		if (rows[i].at_once && !strstr(got, rows[i].at_once))
			fail_msg("%s: at once: %s", rows[i].name, got);
		if (!rows[i].at_once && (strstr(got, "EVICT") || strstr(got, "STOP") ||
						strstr(got, "DENY")))
			fail_msg("%s: it does not wait: %s", rows[i].name, got);
		if (rows[i].late) {
			(void)play(&p, "waits", 61900, (struct sl_event)TIME);
			got = play(&p, "late", 62000, (struct sl_event)TIME);
			if (!strstr(got, rows[i].late))
				fail_msg("%s: late: %s", rows[i].name, got);
		}
		play_close(&p);
	}
}

/* Within its request D is served as all others are: V, which borrows its request, gives it back. */
static void test_within_the_request(void **state)
{
	static const struct {
		uint32_t node;
		const char *what;
	} rows[] = {
		{SL_CHAIN(SWAP, WAIT, 0), "EVICT 1 g0 10"},
		{SL_CHAIN(PRIORITY, WAIT, 0), "STOP 1 1 TERM"},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct play p;

		begin(&p, (struct sl_event)CHAIN(rows[i].node, 0, 0),
			SL_CHAIN(FAIL, 0, 0), 60);
		assert_non_null(strstr(asks(&p, D, 2000, 60), rows[i].what));
		play_close(&p);
	}
}

/* D waits for memory that becomes free by itself; E, which came later, does not wait behind it. */
static void test_others_move_on(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)CHAIN(SWAP, WAIT, 0), SL_CHAIN(WAIT, 0, 0), 0);
	(void)asks(&p, D, 2000, 40);
	assert_non_null(strstr(asks(&p, E, 2500, 30), "EVICT 1 g0"));
	/* The demand may have what others give back. */
	assert_non_null(strstr(play(&p, "gives", 2600, (struct sl_event)FREED(V, 0, 80)),
		"GRANT 2/1 g0 40"));
	play_close(&p);
}

/* Beside V, which works, D may have to wait for its longest wait, too. */
static void test_longest_wait(void **state)
{
	static const uint32_t chains[] = {SL_CHAIN(SWAP, WAIT, 0), SL_CHAIN(WAIT, 0, 0)};
	sl_ns waits[2];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct play p;

		begin(&p, (struct sl_event)CHAIN(SWAP, WAIT, 0), chains[i], 0);
		(void)play(&p, "works", 2000,
			(struct sl_event)EVENT(PULSE, pulse, {V, 0, SL_MS, 0}));
		(void)asks(&p, D, 2000, 40);
		waits[i] = sl_node_workload(p.node, D).longest_wait;
		assert_true(waits[i] > 0);
		play_close(&p);
	}
	assert_row_u64("longest wait", waits[1], waits[0] + 60 * SL_S);
}

/* A change holds for demands that wait already, and leaves the other flags. */
static void test_is_changed(void **state)
{
	struct play p;
	struct sl_event set = EVENT(WORKLOAD_SET, workload_set,
		{.workload = D,
			.which = SL_SET_FLAGS,
			.flags = SL_WORKLOAD_OOM_FIRST | SL_RESOLVER_SWAP << 16});

	(void)state;
	begin(&p, (struct sl_event)CHAIN(SWAP, WAIT, 0), SL_CHAIN(WAIT, 0, 0), 0);
	(void)play(&p, "flags", 2000, set);
	assert_row_u64("flags", sl_node_workload(p.node, D).flags,
		SL_WORKLOAD_OOM_FIRST | SL_RESOLVER_WAIT << 16);
	set.workload_set.flags = 0;
	(void)play(&p, "flags", 2000, set);
	(void)asks(&p, D, 2000, 40);
	set.workload_set.which = SL_SET_CHAIN;
	assert_non_null(strstr(play(&p, "chain", 3000, set), "EVICT 1 g0"));
	assert_row_u64("flags", sl_node_workload(p.node, D).flags, 0);
	play_close(&p);
}

/* On a GPU that is free of swapping nothing leaves for others or is parked, and no request is
 * lent. */
static void test_fixed_gpu(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)CHAIN(SWAP, WAIT, 0), 0, 60);
	play_close(&p);
	play_open(&p);
	(void)play(&p, "settings", 0, (struct sl_event)CHAIN(SWAP, WAIT, 0));
	(void)play(&p, "GPU", 0,
		(struct sl_event)EVENT(
			GPU_ADD, gpu_add, {.gpu = 0, .capacity_bytes = 100, .fixed = 1}));
	(void)play(&p, "V", 0, (struct sl_event)ADD(V, 0, 0, 0));
	(void)play(&p, "D", 0, (struct sl_event)ADD(D, 60, 0, 0));
	(void)play(&p, "joins", 0, (struct sl_event)SWAPPER(V));
	(void)play(&p, "joins", 0, (struct sl_event)SWAPPER(D));
	assert_row_text("beyond", asks(&p, V, 0, 41), "");
	(void)play(&p, "cancels", 0, (struct sl_event)EVENT(CANCEL, cancel, {V, 1}));
	play_has(&p, V, 2, 40);
	play_has(&p, D, 2, 50);
	(void)play(&p, "idles", 40000,
		(struct sl_event)EVENT(PULSE, pulse, {V, 39000 * SL_MS, 0, 1}));
	assert_row_text("parks",
		play(&p, "parks", 40000,
			(struct sl_event)EVENT(WORKLOAD_PARK, workload_park, {V})),
		"REFUSE 1 PARK_NO_SWAP g0 0 0");
	assert_row_text("within", asks(&p, D, 40000, 10), "GRANT 2/1 g0 10");
	(void)play(&p, "is", 40000, (struct sl_event)COMMIT(D, 3, 10));
	/* A burst waits in vain; once the GPU may swap again, V leaves for it. */
	assert_null(strstr(
		play(&p, "burst", 41000, (struct sl_event)ASK(D, 3, 0, 20)), "EVICT"));
	assert_non_null(strstr(
		play(&p, "swaps", 42000, (struct sl_event)GPU(0, 100)), "EVICT 1 g0 20"));
	play_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_burst),
		cmocka_unit_test(test_within_the_request),
		cmocka_unit_test(test_others_move_on),
		cmocka_unit_test(test_longest_wait),
		cmocka_unit_test(test_is_changed),
		cmocka_unit_test(test_fixed_gpu),
	};

	/* Nothing is drawn here: --seed is as good as no argument. */
	if (argc == 2 && !sl_mutant_switch(argv[1]))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
