/*
 * unsettled - a step whose decisions contradict each other, by a deliberate fault, ends all the
 * same, and what is left to decide follows
 */
#include "play.h"

#include "policy/mutant.h"

static void set_up(struct play *p)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"a workload", 0,
			EVENT(WORKLOAD_ADD, workload_add, {1, ANY, ANY, 1, 1, 0}),
			"ADMIT 1 m1 r0 l100"},
		{"a client", 0, JOIN(1, 1), ""},
	};

	sl_mutant_now = SL_MUTANT_OFF;
	play_open(p);
	play_rows(p, rows, SL_ARRAY_LEN(rows));
	p->shows_wakes = true;
}

static const char *at(struct play *p, uint64_t at_ms, struct sl_event event)
{
	return play(p, "unsettled", at_ms, event);
}

static void a_step_ends_whatever_is_left(void **state)
{
	struct play p;

	set_up(&p);
	sl_mutant_now = SL_MUTANT_IS_NEVER_SETTLES;
	assert_row_text("what could be decided was, and the rest has a time",
		at(&p, 10, (struct sl_event)ASK(1, 1, 0, 60)),
		"GRANT 1/1 g0 60; NOTE UNSETTLED g0 0/0 0; WAKE 11");
	assert_true(sl_node_left(p.node).goes_on_at == 11 * SL_MS);
	assert_row_text("said once", at(&p, 11, (struct sl_event)TIME), "WAKE 12");
	/* What comes meanwhile is in the books, and waits for no look. */
	assert_row_text("taken at once",
		at(&p, 11,
			(struct sl_event)COMMIT(
				1, p.last[SL_ACTION_GRANT].grant.epoch, 60)),
		"");
	assert_row_u64("in the books", sl_node_gpu(p.node, 0).backing_bytes, 60);
	assert_row_text(
		"decided later", at(&p, 11, (struct sl_event)ASK(1, 2, 0, 20)), "");
	sl_mutant_now = SL_MUTANT_OFF;
	assert_row_text("as it came", at(&p, 12, (struct sl_event)TIME),
		"GRANT 1/2 g0 20; WAKE never");
	assert_true(sl_node_left(p.node).goes_on_at == 0);
	play_close(&p);
}

static void each_time_is_said(void **state)
{
	struct play p;

	set_up(&p);
	for (uint64_t ms = 10; ms < 50; ms += 10) {
		sl_mutant_now = SL_MUTANT_IS_NEVER_SETTLES;
		assert_non_null(strstr(at(&p, ms, (struct sl_event)TIME), "UNSETTLED"));
		sl_mutant_now = SL_MUTANT_OFF;
		assert_row_text(
			"an end", at(&p, ms + 5, (struct sl_event)TIME), "WAKE never");
	}
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_ends_whatever_is_left),
		cmocka_unit_test(each_time_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
