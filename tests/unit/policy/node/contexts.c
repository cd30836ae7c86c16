/*
 * contexts - a process asks for its first context, and waits while a workload on the GPU could
 * never be fully resident beside it, played by hand
 */
#include "play.h"

#define GPU_WITH_RESERVE(capacity, reserve) \
	EVENT(GPU_ADD, gpu_add, {0, capacity, reserve})
#define SWAP                         \
	SETTINGS(.pool_bytes = 1000, \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0))
#define WORKLOAD(w, request) \
	EVENT(WORKLOAD_ADD, workload_add, {w, BYTES(request), BYTES(100), 1, 1, 0})
#define SWAPPER(c, w) EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define CONTEXT(c, a) EVENT(ASK, ask, {c, a, 0, 1, SL_NODE_ASK_CONTEXT})

/* A has a context of 60 and fills the GPU. One more counts as 70, and of the reserve of 80, 20 are
 * left. */
static const struct sl_event full[] = {SWAP, GPU_WITH_RESERVE(180, 80), WORKLOAD(1, 50),
	SWAPPER(1, 1), CONTEXT(1, 1), HIDDEN(1, 0, 60), COMMIT(1, 1, 0), WORKLOAD(2, 10),
	ASK(1, 2, 0, 96), COMMIT(1, 2, 96)};

static void begin(struct play *p)
{
	play_open(p);
	for (size_t i = 0; i < SL_ARRAY_LEN(full); i++)
		(void)play(p, "before", 0, full[i]);
	assert_row_u64("full", sl_node_gpu(p->node, 0).free_bytes, 4);
}

static void says(struct play *p, const char *row, uint64_t at_ms, struct sl_event event,
	const char *expected)
{
	const char *got = play(p, row, at_ms, event);

	assert_row_text(row, got, expected);
}

static void keep(void *context, const struct sl_node_because *because)
{
	*(struct sl_node_because *)context = *because;
}

/* B was admitted while A had nothing. Now B's first process waits. So does a second one of A: with
 * its context, A's own memory could never be fully resident. Each goes on as soon as there is
 * room. */
static void test_waits(void **state)
{
	struct sl_node_because why = {0};
	struct play p;

	(void)state;
	begin(&p);
	(void)play(&p, "B joins", 0, (struct sl_event)SWAPPER(2, 2));
	says(&p, "B asks", 0, (struct sl_event)CONTEXT(2, 7), "");
	says(&p, "again", 1, (struct sl_event)CONTEXT(2, 7), "");
	(void)play(&p, "a second of A", 1, (struct sl_event)SWAPPER(3, 1));
	says(&p, "asks as well", 1, (struct sl_event)CONTEXT(3, 1), "");
	says(&p, "is told", 1001, (struct sl_event)TIME,
		"NOTE CONTEXT_WAITS g0 2/1 70; NOTE CONTEXT_WAITS g0 1/1 70");
	sl_node_why(p.node, 2, keep, &why);
	assert_row_text("why", sl_reason_name(why.reason), "CONTEXT_WAITS");
	assert_row_u64("needs", why.bytes, 70);
	assert_row_u64("left", why.available_bytes, 20);
	assert_row_u64("for whom", why.other, 1);
	says(&p, "room for one", 1002, (struct sl_event)FREED(1, 0, 50),
		"VIEW 1 g0; GRANT 2/7 g0 0");
	(void)play(&p, "its context", 1003, (struct sl_event)HIDDEN(2, 0, 10));
	says(&p, "made", 1003, (struct sl_event)COMMIT(2, 3, 0), "");
	assert_non_null(
		strstr(play(&p, "more room", 1004, (struct sl_event)FREED(1, 0, 46)),
			"GRANT 3/1 g0 0"));
	play_close(&p);
}

/* As long as a demand above its request. */
static void test_is_refused(void **state)
{
	struct play p;

	(void)state;
	begin(&p);
	(void)play(&p, "joins", 0, (struct sl_event)SWAPPER(2, 2));
	says(&p, "asks", 0, (struct sl_event)CONTEXT(2, 7), "");
	(void)play(&p, "is told", 1000, (struct sl_event)TIME);
	says(&p, "before", 59999, (struct sl_event)TIME, "");
	says(&p, "too long", 60000, (struct sl_event)TIME, "DENY 2/7 CONTEXT_WAITED g0");
	assert_row_u64("needed", p.last[SL_ACTION_DENY].deny.bytes, 70);
	assert_row_u64("other", p.last[SL_ACTION_DENY].deny.other, 1);
	play_close(&p);
}

/* What ends a question. */
static void test_ends(void **state)
{
	static const struct {
		const char *name;
		struct sl_event event;
		const char *gets;
	} rows[] = {
		{"is cancelled", EVENT(CANCEL, cancel, {2, 7}), "DENY 2/7 CANCELLED g0"},
		{"its process ends", EXIT(2), ""},
		{"its workload is removed", REMOVE(2), "DENY 2/7 CANCELLED g0"},
		{"another's question", EVENT(CANCEL, cancel, {1, 7}), ""},
	};

	(void)state;
	for (size_t row = 0; row < SL_ARRAY_LEN(rows); row++) {
		struct play p;

		begin(&p);
		(void)play(&p, "joins", 0, (struct sl_event)SWAPPER(2, 2));
		says(&p, "asks", 0, (struct sl_event)CONTEXT(2, 7), "");
		says(&p, rows[row].name, 1, rows[row].event, rows[row].gets);
		play_close(&p);
	}
}

/* A granted context that was not made yet is counted on: the next one has less. */
static void test_to_come(void **state)
{
	const struct sl_event before[] = {SWAP, GPU_WITH_RESERVE(180, 80),
		WORKLOAD(1, 50), SWAPPER(1, 1), CONTEXT(1, 1), HIDDEN(1, 0, 20),
		COMMIT(1, 1, 0), ASK(1, 2, 0, 96), COMMIT(1, 2, 96), SWAPPER(2, 1),
		SWAPPER(3, 1), SWAPPER(4, 1)};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)play(&p, "before", 0, before[i]);
	says(&p, "the first", 0, (struct sl_event)CONTEXT(2, 1), "GRANT 2/1 g0 0");
	says(&p, "the second", 0, (struct sl_event)CONTEXT(3, 1), "GRANT 3/1 g0 0");
	says(&p, "one too many", 0, (struct sl_event)CONTEXT(4, 1), "");
	says(&p, "the second ends", 1, (struct sl_event)EXIT(3), "GRANT 4/1 g0 0");
	play_close(&p);
}

/* A GPU that is lost, or not the workload's. */
static void test_no_gpu(void **state)
{
	struct play p;

	(void)state;
	begin(&p);
	(void)play(&p, "joins", 0, (struct sl_event)SWAPPER(2, 2));
	says(&p, "not its own", 0,
		(struct sl_event)EVENT(ASK, ask, {2, 1, 3, 1, SL_NODE_ASK_CONTEXT}),
		"DENY 2/1 UNKNOWN_CLIENT g3");
	says(&p, "asks", 0, (struct sl_event)CONTEXT(2, 7), "");
	assert_non_null(strstr(
		play(&p, "lost", 1, (struct sl_event)EVENT(GPU_LOST, gpu_lost, {0})),
		"DENY 2/7 GPU_LOST g0"));
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_is_refused),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_to_come),
		cmocka_unit_test(test_no_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
