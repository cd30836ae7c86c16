#include "../base/test.h"

#include "cli/simulate_mix.h"
#include "cli/simulate_run.h"

#include <stdlib.h>

#define WHOLE SL_FIT_WHOLE

/* 40 nodes of 4 GPUs of two models; 400 jobs of four sorts. */
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
		sl_fit_node_init(&trace->nodes[i], 64000, 262144, 4, 0, i % 2, 0);
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

/* Thousandths of the demand of GPUs, and of GPU tasks, and how many have none. */
struct mixture {
	uint64_t shares, several, limited, cpu_milli, without;
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
		m.cpu_milli += need->cpu_milli;
	}
	m.shares = m.shares * 1000 / milli;
	m.several = m.several * 1000 / milli;
	m.limited = m.limited * 1000 / tasks;
	m.cpu_milli /= tasks;
	return m;
}

/* As it is: 500, 1,000 and 2,000 thousandths: shares are 143, several GPUs 571; 9,333 of CPU. */
static const struct {
	const char *name;
	struct mixture least, most;
} rows[] = {
	{"share40", {390, 390, 0, 6400, 100}, {410, 410, 0, 6900, 100}},
	{"multi20", {255, 190, 0, 6600, 100}, {280, 210, 0, 7100, 100}},
	{"spec33", {100, 530, 260, 8800, 100}, {190, 620, 400, 9900, 100}},
	{"cpu250", {100, 530, 0, 8800, 250}, {190, 620, 0, 9900, 250}},
	{"heavy", {100, 530, 0, 11500, 100}, {190, 620, 0, 12800, 100}},
};

static void assert_within(
	const char *row, const char *what, uint64_t got, uint64_t least, uint64_t most)
{
	if (got < least || got > most)
		fail_msg("row '%s': %s is %" PRIu64 ", wanted %" PRIu64 " to %" PRIu64,
			row, what, got, least, most);
}

static void mixes_as_named(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_trace trace;
		struct sl_error err = {{0}};
		struct mixture got;

		make_trace(&trace);
		assert_int_equal(
			sl_simulate_mix(&trace, rows[i].name, &err), SL_TRACE_OK);
		got = measure(&trace);
#define WITHIN(member)                                                         \
	assert_within(rows[i].name, #member, got.member, rows[i].least.member, \
		rows[i].most.member)
		WITHIN(shares);
		WITHIN(several);
		WITHIN(limited);
		WITHIN(cpu_milli);
		WITHIN(without);
#undef WITHIN
		sl_trace_fini(&trace);
	}
}

/* Half of the cluster's GPUs are asked for by whole ones: all of them are placed, by every
 * policy. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shuffles_as_published),
		cmocka_unit_test(keeps_the_order_of_creation),
		cmocka_unit_test(mixes_as_named),
		cmocka_unit_test(counts_what_is_placed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
