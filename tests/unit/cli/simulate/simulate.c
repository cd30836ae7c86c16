#include "../../base/test.h"

#include "cli/simulate/mix.h"
#include "cli/simulate/run.h"

#include <stdlib.h>

#define WHOLE SL_FIT_WHOLE

/* 40 nodes of 4 GPUs of two models, three quarters of model 0; 400 jobs of four sorts. */
static void make_trace(struct sl_trace *trace)
{
	static const struct sl_need sorts[] = {
		{4000, 8192, 1, 500, 0, 0, 0},
		{8000, 8192, 1, WHOLE, 0, 0, 0},
		{16000, 8192, 2, WHOLE, 0, 0, 0},
		{2000, 8192, 0, 0, 0, 0, 0},
	};

	memset(trace, 0, sizeof(*trace));
	trace->node_count = 40;
	trace->nodes = calloc(trace->node_count, sizeof(*trace->nodes));
	trace->job_count = 400;
	trace->jobs = calloc(trace->job_count, sizeof(*trace->jobs));
	assert_non_null(trace->nodes);
	assert_non_null(trace->jobs);
	for (uint32_t i = 0; i < trace->node_count; i++) {
		sl_fit_node_init(&trace->nodes[i], 64000, 262144, 4, 0, i % 4 == 3, 0);
		trace->capacity_milli += 4 * WHOLE;
	}
	for (uint32_t i = 0; i < trace->job_count; i++) {
		trace->jobs[i].need = sorts[i % 4];
		trace->jobs[i].created = (i * 7) % 400;
	}
}

static uint64_t demand(const struct sl_trace *trace, const struct sl_arrivals *order)
{
	uint64_t milli = 0;

	for (uint32_t i = 0; i < order->count; i++)
		milli += sl_trace_milli(&trace->jobs[order->jobs[i]].need);
	return milli;
}

/* Each job once, then others again until there would be too much. */
static void shuffles_as_published(void **state)
{
	struct sl_arrivals order = {0}, again = {0}, other = {0};
	struct sl_trace trace;
	uint32_t seen[400] = {0}, ranked[40] = {0};

	make_trace(&trace);
	assert_true(sl_simulate_shuffle(&trace, 3, 250, &order));
	assert_true(sl_simulate_shuffle(&trace, 3, 250, &again));
	assert_true(sl_simulate_shuffle(&trace, 4, 250, &other));
	assert_true(order.count > trace.job_count);
	for (uint32_t i = 0; i < trace.job_count; i++)
		seen[order.jobs[i]]++;
	for (uint32_t i = 0; i < trace.job_count; i++)
		assert_int_equal(seen[i], 1);
	for (uint32_t i = 0; i < trace.node_count; i++)
		ranked[order.ranks[i]]++;
	for (uint32_t i = 0; i < trace.node_count; i++)
		assert_int_equal(ranked[i], 1);
	assert_in_range(demand(&trace, &order), 398000, 400000);
	assert_int_equal(order.count, again.count);
	assert_memory_equal(order.jobs, again.jobs, order.count * sizeof(*order.jobs));
	assert_memory_not_equal(order.jobs, other.jobs, 400 * sizeof(*order.jobs));
	free(order.jobs);
	free(order.ranks);
	free(again.jobs);
	free(again.ranks);
	free(other.jobs);
	free(other.ranks);
	sl_trace_fini(&trace);
}

static void keeps_the_order_of_creation(void **state)
{
	struct sl_arrivals order = {0};
	struct sl_trace trace;

	make_trace(&trace);
	assert_true(sl_simulate_in_order(&trace, &order));
	assert_int_equal(order.count, trace.job_count);
	for (uint32_t i = 1; i < order.count; i++)
		assert_true(trace.jobs[order.jobs[i - 1]].created <=
			    trace.jobs[order.jobs[i]].created);
	free(order.jobs);
	sl_trace_fini(&trace);
}

/* Thousandths of the demand of GPUs, and of GPU tasks, and how many have none. rare: tasks that
 * do not run on the commoner model. */
struct mixture {
	uint64_t shares, several, limited, rare, cpu_milli, without;
};

static struct mixture measure(const struct sl_trace *trace)
{
	struct mixture m = {0};
	uint64_t milli = 0, tasks = 0;

	for (uint32_t i = 0; i < trace->job_count; i++) {
		const struct sl_need *need = &trace->jobs[i].need;

		if (!need->gpus) {
			m.without++;
			continue;
		}
		milli += sl_trace_milli(need);
		tasks++;
		m.shares += need->gpu_milli < WHOLE ? need->gpu_milli : 0;
		m.several += need->gpus > 1 ? sl_trace_milli(need) : 0;
		m.limited += need->models != 0;
		m.rare += need->models == 2;
		m.cpu_milli += need->cpu_milli;
	}
	m.shares = m.shares * 1000 / milli;
	m.several = m.several * 1000 / milli;
	m.limited = m.limited * 1000 / tasks;
	m.rare = m.rare * 1000 / tasks;
	m.cpu_milli /= tasks;
	return m;
}

/* As it is: 500, 1,000 and 2,000 thousandths: shares are 143, several GPUs 571; 9,333 of CPU. */
static const struct {
	const char *name;
	struct mixture least, most;
} rows[] = {
	{"share40", {390, 390, 0, 0, 6400, 100}, {410, 410, 0, 0, 6900, 100}},
	{"multi20", {255, 190, 0, 0, 6600, 100}, {280, 210, 0, 0, 7100, 100}},
	{"spec33", {100, 530, 260, 20, 8800, 100}, {190, 620, 400, 100, 9900, 100}},
	{"rare33", {100, 530, 260, 160, 8800, 100}, {190, 620, 400, 320, 9900, 100}},
	{"cpu250", {100, 530, 0, 0, 8800, 250}, {190, 620, 0, 0, 9900, 250}},
	{"heavy", {100, 530, 0, 0, 11500, 100}, {190, 620, 0, 0, 12800, 100}},
};

static void assert_within(
	const char *row, const char *what, uint64_t got, uint64_t least, uint64_t most)
{
	if (got < least || got > most)
		fail_msg("row '%s': %s is %" PRIu64 ", wanted %" PRIu64 " to %" PRIu64,
			row, what, got, least, most);
}

static void make_mix(struct sl_trace *trace, const char *name, uint64_t seed)
{
	struct sl_error err = {{0}};

	make_trace(trace);
	assert_int_equal(sl_simulate_mix(trace, name, seed, &err), SL_TRACE_OK);
}

static void mixes_as_named(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_trace trace;
		struct mixture got;

		make_mix(&trace, rows[i].name, i);
		got = measure(&trace);
#define WITHIN(member)                                                         \
	assert_within(rows[i].name, #member, got.member, rows[i].least.member, \
		rows[i].most.member)
		WITHIN(shares);
		WITHIN(several);
		WITHIN(limited);
		WITHIN(rare);
		WITHIN(cpu_milli);
		WITHIN(without);
#undef WITHIN
		sl_trace_fini(&trace);
	}
}

static void draws_mixes_by_the_seed(void **state)
{
	struct sl_trace first, again, other;

	make_mix(&first, "rare20", 1);
	make_mix(&again, "rare20", 1);
	make_mix(&other, "rare20", 2);
	assert_int_equal(first.job_count, again.job_count);
	assert_memory_equal(
		first.jobs, again.jobs, first.job_count * sizeof(*first.jobs));
	assert_memory_not_equal(first.jobs, other.jobs, 300 * sizeof(*first.jobs));
	sl_trace_fini(&first);
	sl_trace_fini(&again);
	sl_trace_fini(&other);
}

/* Half of the cluster's GPUs are asked for by whole ones: every policy places all of them. */
static void counts_what_is_placed(void **state)
{
	static struct sl_simulate_curve curve;
	struct sl_arrivals order = {0};
	struct sl_trace trace;

	make_trace(&trace);
	for (uint32_t i = 0; i < trace.job_count; i++)
		trace.jobs[i].need = (struct sl_need){1000, 1024, 1, WHOLE, 0, 0, 0};
	for (int policy = 0; policy < SL_PLACE_POLICIES; policy++) {
		struct sl_simulate_ask ask = {
			.policy = (enum sl_placement_policy)policy, .until_pct = 200};

		assert_true(sl_simulate_shuffle(&trace, 1, 200, &order));
		sl_simulate_run(&trace, &order, &ask, &curve);
		assert_int_equal(curve.arrived, 320);
		assert_int_equal(curve.placed, 160);
		assert_true(curve.used_pct[50] > 49.6 && curve.used_pct[50] < 50.4);
		assert_true(curve.used_pct[150] == 100.0);
		assert_true(curve.fragments_pct[150] == 0);
		free(order.jobs);
		free(order.ranks);
	}
	sl_trace_fini(&trace);
}

/* Two nodes of 2 GPUs, and half of each GPU in use. Each of two whole GPUs needs a move. */
static void tasks_move_together(void **state)
{
	static const struct {
		const char *name;
		uint32_t moves;
		uint64_t placed, moved;
		double used;
	} cases[] = {
		{"none may move", 0, 4, 0, 50},
		{"one may move", 1, 5, 1, 75},
		{"as many as are needed", 10, 6, 2, 100},
	};
	static struct sl_simulate_curve curve;
	struct sl_arrivals order = {0};
	struct sl_trace trace = {.node_count = 2, .job_count = 6};

	trace.nodes = calloc(2, sizeof(*trace.nodes));
	trace.jobs = calloc(6, sizeof(*trace.jobs));
	assert_non_null(trace.nodes);
	assert_non_null(trace.jobs);
	trace.capacity_milli = 4 * WHOLE;
	for (uint32_t i = 0; i < 2; i++)
		sl_fit_node_init(&trace.nodes[i], 64000, 65536, 2, 0, 0, 0);
	for (uint32_t i = 0; i < 6; i++) {
		trace.jobs[i].need = (struct sl_need){1000, 1024, 1, 500, 0, 0, 0};
		trace.jobs[i].created = i;
		if (i >= 4)
			trace.jobs[i].need.gpu_milli = WHOLE;
	}
	assert_true(sl_simulate_in_order(&trace, &order));
	for (size_t i = 0; i < SL_ARRAY_LEN(cases); i++) {
		struct sl_simulate_ask ask = {.policy = SL_PLACE_SPREAD,
			.until_pct = 100,
			.moves = cases[i].moves};

		sl_simulate_run(&trace, &order, &ask, &curve);
		assert_row_u64(cases[i].name, curve.arrived, 6);
		assert_row_u64(cases[i].name, curve.placed, cases[i].placed);
		assert_row_u64(cases[i].name, curve.moved, cases[i].moved);
		assert_true(curve.used_pct[100] == cases[i].used);
	}
	free(order.jobs);
	sl_trace_fini(&trace);
}

/* 120 nodes with 708 GPUs of three models, and as much demand in 1200 jobs. */
static void make_models(struct sl_trace *trace)
{
	static const struct sl_need sorts[] = {
		{4000, 8192, 1, 460, 0, 0, 0},
		{3000, 8192, 1, 250, 0, 0, 0},
		{8000, 8192, 1, WHOLE, 0, 0, 0},
		{11000, 16384, 1, WHOLE, 0, 0, 0},
		{4000, 8192, 1, 810, 0, 0, 0},
		{48000, 65536, 4, WHOLE, 0, 0, 0},
	};
	static const uint32_t of_ten[] = {2, 0, 2, 1, 3, 2, 4, 0, 2, 3};

	memset(trace, 0, sizeof(*trace));
	trace->node_count = 120;
	trace->nodes = calloc(trace->node_count, sizeof(*trace->nodes));
	trace->job_count = 1200;
	trace->jobs = calloc(trace->job_count, sizeof(*trace->jobs));
	assert_non_null(trace->nodes);
	assert_non_null(trace->jobs);
	for (uint32_t i = 0; i < trace->node_count; i++) {
		uint8_t model = i < 72 ? 0 : i < 102 ? 1 : 2;
		uint16_t gpus = (uint16_t[]){8, 2, 4}[model];

		sl_fit_node_init(
			&trace->nodes[i], 12000u * gpus, 262144, gpus, 0, model, 0);
		trace->capacity_milli += gpus * WHOLE;
	}
	for (uint32_t i = 0; i < trace->job_count; i++)
		trace->jobs[i].need = sorts[i % 100 == 99 ? 5 : of_ten[i % 10]];
}

/* Adds the GPUs allocated once 100 % and 130 % have been asked for, as means of three orders. */
static void play(const struct sl_trace *trace, enum sl_placement_policy policy,
	uint64_t seed, double *used)
{
	static struct sl_simulate_curve curve;
	struct sl_simulate_ask ask = {.policy = policy, .until_pct = 130};

	for (uint64_t i = 0; i < 3; i++) {
		struct sl_arrivals order = {0};

		assert_true(sl_simulate_shuffle(trace, seed + i, 130, &order));
		sl_simulate_run(trace, &order, &ask, &curve);
		used[0] += curve.used_pct[100] / 3;
		used[1] += curve.used_pct[130] / 3;
		free(order.jobs);
		free(order.ranks);
	}
}

static void says_which_jobs_a_trace_lacks(void **state)
{
	struct sl_trace trace;
	struct sl_error err = {{0}};

	make_trace(&trace);
	for (uint32_t i = 0; i < trace.job_count; i++)
		trace.jobs[i].need.gpus = trace.jobs[i].need.gpus ? 1 : 0;
	assert_int_equal(sl_simulate_mix(&trace, "multi30", 1, &err), SL_TRACE_BAD);
	assert_non_null(strstr(err.text, "'multi30' needs jobs with several GPUs"));
	sl_trace_fini(&trace);
}

/* PACK keeps rare models for jobs that can use no other. In the end both policies leave nearly the
 * least idle that is possible. */
static void constrained_jobs_find_their_models(void **state)
{
	static const char *const names[] = {"rare10", "rare20", "rare25", "rare33"};
	double pack[2] = {0}, fgd[2] = {0};
	const uint64_t draws = 3 * SL_ARRAY_LEN(names);

	for (uint64_t i = 0; i < draws; i++) {
		struct sl_trace trace;
		struct sl_error err = {{0}};

		make_models(&trace);
		assert_int_equal(
			sl_simulate_mix(&trace, names[i % SL_ARRAY_LEN(names)], i, &err),
			SL_TRACE_OK);
		play(&trace, SL_PLACE_PACK, 100 * i, pack);
		play(&trace, SL_PLACE_FGD, 100 * i, fgd);
		sl_trace_fini(&trace);
	}
	for (int at = 0; at < 2; at++) {
		double more = (pack[at] - fgd[at]) / (double)draws;

		if (more < (at ? -0.1 : 0.5))
			fail_msg("at %d %%, PACK allocates %.2f %%, FGD %.2f",
				at ? 130 : 100, pack[at] / (double)draws,
				fgd[at] / (double)draws);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shuffles_as_published),
		cmocka_unit_test(keeps_the_order_of_creation),
		cmocka_unit_test(mixes_as_named),
		cmocka_unit_test(says_which_jobs_a_trace_lacks),
		cmocka_unit_test(draws_mixes_by_the_seed),
		cmocka_unit_test(constrained_jobs_find_their_models),
		cmocka_unit_test(counts_what_is_placed),
		cmocka_unit_test(tasks_move_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
