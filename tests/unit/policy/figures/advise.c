/* advise - what is proposed from observed use, and how many GPUs that would save */
#include "../../base/test.h"

#include "policy/figures/advise.h"

#define G SL_GIB
#define M SL_MIB

#define RAN_AS(gpus_, at_once_, span, active, shareable)                     \
	.runs = 3, .gpus = (gpus_), .at_once = (at_once_), .span_s = (span), \
	.active_s = (active), .shareable_bytes = (shareable)
/* An hour on a GPU of 80 GiB. */
#define RAN           RAN_AS(1, 1, 3600, 1800, 80 * G)
#define MANY(at_once) RAN_AS(1, at_once, 3600, 1800, 80 * G)

static void each_program_is_told(void **state)
{
	static const struct {
		const char *name;
		struct sl_advise_program program;
		enum sl_advise_verdict verdict;
		uint64_t request, limit;
	} rows[] = {
		{"only watched",
			{RAN, .observed = 3, .peak_bytes = 16 * G, .p99_bytes = 10 * G,
				.mean_bytes = 8 * G, .limit_bytes = 80 * G},
			SL_ADVISE_CHANGE, 11 * G, 20 * G},
		{"far too much",
			{RAN, .peak_bytes = 16 * G, .p99_bytes = 10 * G,
				.request_bytes = 40 * G, .limit_bytes = 80 * G},
			SL_ADVISE_CHANGE, 11 * G, 20 * G},
		{"too little, and never stopped by its limit",
			{RAN, .peak_bytes = 16 * G, .p99_bytes = 10 * G,
				.request_bytes = 1 * G, .limit_bytes = 80 * G},
			SL_ADVISE_CHANGE, 11 * G, 20 * G},
		{"about right",
			{RAN, .peak_bytes = 16 * G, .p99_bytes = 10 * G,
				.request_bytes = 12 * G, .limit_bytes = 80 * G},
			SL_ADVISE_KEEP, 12 * G, 80 * G},
		{"as large as its limit",
			{RAN, .peak_bytes = 20 * G - 10 * M, .p99_bytes = 10 * G,
				.kept_peak_bytes = 20 * G - 10 * M,
				.request_bytes = 5 * G, .limit_bytes = 20 * G},
			SL_ADVISE_LIMITED, 0, 0},
		{"one of a larger limit that needed less hides nothing",
			{RAN, .peak_bytes = 20 * G, .p99_bytes = 10 * G,
				.kept_peak_bytes = 20 * G, .free_peak_bytes = 5 * G,
				.request_bytes = 5 * G, .limit_bytes = 40 * G},
			SL_ADVISE_LIMITED, 0, 0},
		{"one that was free and needed more says what all need",
			{RAN, .peak_bytes = 16 * G, .p99_bytes = 10 * G,
				.kept_peak_bytes = 8 * G, .free_peak_bytes = 16 * G,
				.request_bytes = 5 * G, .limit_bytes = 80 * G},
			SL_ADVISE_CHANGE, 11 * G, 20 * G},
		{"as large as the GPU",
			{RAN, .peak_bytes = 80 * G, .p99_bytes = 80 * G,
				.request_bytes = 10 * G, .limit_bytes = 80 * G},
			SL_ADVISE_CHANGE, 80 * G, 80 * G},
		{"next to nothing",
			{RAN, .observed = 3, .peak_bytes = 3 * M, .p99_bytes = 2 * M},
			SL_ADVISE_CHANGE, 64 * M, 64 * M},
		{"nine minutes",
			{RAN_AS(1, 1, 540, 1, 80 * G), .observed = 3, .peak_bytes = G,
				.p99_bytes = G},
			SL_ADVISE_TOO_SHORT, 0, 0},
		{"a part above the whole", {RAN, .peak_bytes = G, .p99_bytes = 2 * G},
			SL_ADVISE_BAD, 0, 0},
		{"a mean above the most",
			{RAN, .peak_bytes = G, .p99_bytes = G, .mean_bytes = 2 * G},
			SL_ADVISE_BAD, 0, 0},
		{"more work than time", {RAN_AS(1, 1, 3600, 4000, 80 * G)}, SL_ADVISE_BAD,
			0, 0},
		{"no GPU", {RAN_AS(0, 1, 3600, 1800, 80 * G)}, SL_ADVISE_BAD, 0, 0},
		{"many GPUs", {RAN_AS(1000000, 1, 3600, 1800, 80 * G)}, SL_ADVISE_BAD, 0,
			0},
		{"a GPU of nothing", {RAN_AS(1, 1, 3600, 1800, 0)}, SL_ADVISE_BAD, 0, 0},
		{"nothing at all", {0}, SL_ADVISE_BAD, 0, 0},
		{"huge",
			{RAN, .observed = 3, .peak_bytes = UINT64_MAX,
				.p99_bytes = UINT64_MAX},
			SL_ADVISE_CHANGE, 80 * G, 80 * G},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_advice advice = sl_advise(&rows[i].program);

		assert_row_u64(rows[i].name, advice.verdict, rows[i].verdict);
		assert_row_u64(rows[i].name, advice.request_bytes, rows[i].request);
		assert_row_u64(rows[i].name, advice.limit_bytes, rows[i].limit);
		assert_true(advice.limit_bytes >= advice.request_bytes);
	}
}

/* By what it had of the time in which others competed. */
static void compute_requests_are_told(void **state)
{
	static const struct {
		const char *name;
		uint32_t request_pm;
		uint64_t contested_s, had_s;
		uint32_t advice_pm;
	} rows[] = {
		{"far too much", 500, 1000, 100, 110},
		{"far too little", 100, 1000, 400, 440},
		{"about right", 210, 1000, 200, 0},
		{"all of it", 500, 1000, 1000, 1000},
		{"next to nothing", 500, 1000, 0, 10},
		{"nothing competed for long enough", 500, 599, 10, 0},
		{"no request", 0, 1000, 100, 0},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_advise_program program = {RAN, .peak_bytes = 16 * G,
			.p99_bytes = 10 * G, .request_bytes = 12 * G,
			.limit_bytes = 80 * G, .compute_request_pm = rows[i].request_pm,
			.contested_ms = rows[i].contested_s * 1000,
			.compute_ms = rows[i].had_s * 1000};
		struct sl_advice advice = sl_advise(&program);

		assert_row_u64(rows[i].name, advice.verdict, SL_ADVISE_KEEP);
		assert_row_u64(
			rows[i].name, advice.compute_request_pm, rows[i].advice_pm);
		program.kept_peak_bytes = program.peak_bytes;
		assert_row_u64(rows[i].name, sl_advise(&program).compute_request_pm,
			rows[i].advice_pm);
		program.compute_ms = program.contested_ms + 1;
		assert_row_u64(rows[i].name, sl_advise(&program).verdict, SL_ADVISE_BAD);
	}
}

static struct sl_advise_total total_of(
	const struct sl_advise_program *programs, size_t count)
{
	struct sl_arena *arena = sl_arena_new();
	struct sl_advice advice[8];
	struct sl_advise_total total;

	for (size_t i = 0; i < count; i++)
		advice[i] = sl_advise(&programs[i]);
	total = sl_advise_total(arena, programs, advice, count);
	sl_arena_free(arena);
	return total;
}

static void savings_are_counted_by_packing(void **state)
{
	static const struct {
		const char *name;
		struct sl_advise_program programs[3];
		uint32_t before, after;
	} rows[] = {
		{"four that were watched: a GPU each before",
			{{MANY(4), .observed = 3, .peak_bytes = 16 * G,
				.p99_bytes = 18 * G - 2 * G}},
			4, 1},
		{"halves that need a quarter",
			{{MANY(8), .request_bytes = 40 * G, .limit_bytes = 80 * G,
				.peak_bytes = 18 * G, .p99_bytes = 18 * G}},
			4, 2},
		{"who is told nothing counts as it was",
			{{MANY(2), .request_bytes = 40 * G, .limit_bytes = 50 * G,
				 .peak_bytes = 50 * G, .p99_bytes = 40 * G},
				{MANY(1), .observed = 3, .peak_bytes = G,
					.p99_bytes = G}},
			2, 2},
		{"both GPUs of one are two",
			{{RAN_AS(2, 1, 3600, 1800, 80 * G), .observed = 3,
				.peak_bytes = G, .p99_bytes = G}},
			2, 2},
		{"what is less than it needs saves less than nothing",
			{{MANY(2), .request_bytes = G, .limit_bytes = 80 * G,
				.peak_bytes = 39 * G, .p99_bytes = 39 * G}},
			1, 2},
		{"nothing", {{0}}, 0, 0},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_advise_total total = total_of(rows[i].programs, 3);

		assert_row_u64(rows[i].name, total.gpus_before, rows[i].before);
		assert_row_u64(rows[i].name, total.gpus_after, rows[i].after);
		assert_false(total.cut);
	}
}

static void who_is_kept_small_is_told(void **state)
{
	assert_false(sl_advise_is_kept(10 * G, 20 * G, 80 * G, 0));
	assert_true(sl_advise_is_kept(20 * G - 100 * M, 20 * G, 80 * G, 0));
	assert_true(sl_advise_is_kept(10 * G, 20 * G, 80 * G, 1));
	assert_false(sl_advise_is_kept(80 * G, 80 * G, 80 * G, 0));
	assert_false(sl_advise_is_kept(10 * G, 0, 80 * G, 0));
}

static void runs_at_the_same_time_are_counted(void **state)
{
	static const struct {
		const char *name;
		struct sl_advise_run runs[4];
		uint32_t count, at_once;
	} rows[] = {
		{"one after the other, each begun as the last one went",
			{{10000, 20950}, {20000, 30950}, {30000, 40950}, {40000, 0}}, 4,
			1},
		{"together", {{10000, 20000}, {10500, 0}, {12000, 19000}, {30000, 0}}, 4,
			3},
		{"for a little more than a second", {{10000, 20000}, {18900, 30000}}, 2,
			2},
		{"short ones together", {{10000, 10400}, {10050, 10450}, {10100, 10500}},
			3, 3},
		{"short ones in turn", {{10000, 10400}, {10400, 10800}, {10800, 11200}},
			3, 1},
		{"one", {{10000, 10000}}, 1, 1},
		{"one that ends before it begins", {{10000, 9000}}, 1, 1},
		{"none", {{0, 0}}, 0, 0},
	};
	struct sl_arena *arena = sl_arena_new();

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		assert_row_u64(rows[i].name,
			sl_advise_at_once(arena, rows[i].runs, rows[i].count),
			rows[i].at_once);
	sl_arena_free(arena);
}

static void many_are_cut_and_said(void **state)
{
	struct sl_advise_program programs[] = {{MANY(SL_ADVISE_TASKS_MAX + 5),
		.observed = 3, .peak_bytes = 40 * G, .p99_bytes = 35 * G}};
	struct sl_advise_total total = total_of(programs, 1);

	assert_true(total.cut);
	assert_int_equal(total.tasks, SL_ADVISE_TASKS_MAX);
	assert_int_equal(total.gpus_after, SL_ADVISE_TASKS_MAX / 2);
}

static void each_verdict_has_words(void **state)
{
	for (uint32_t i = 0; i < SL_ADVISE_VERDICTS; i++) {
		assert_true(strlen(sl_advise_word(i)) > 2);
		assert_true(strlen(sl_advise_text(i)) > 10);
	}
	assert_string_equal(sl_advise_word(SL_ADVISE_VERDICTS), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compute_requests_are_told),
		cmocka_unit_test(each_program_is_told),
		cmocka_unit_test(savings_are_counted_by_packing),
		cmocka_unit_test(who_is_kept_small_is_told),
		cmocka_unit_test(runs_at_the_same_time_are_counted),
		cmocka_unit_test(many_are_cut_and_said),
		cmocka_unit_test(each_verdict_has_words),
	};

	return cmocka_run_group_tests_name("advise", tests, NULL, NULL);
}
