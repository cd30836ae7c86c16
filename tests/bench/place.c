/*
 * place - GPUs allocated by placement, and the time of a decision
 *
 * The code of `sluice simulate` runs in this process. If SLUICE_TRACES names the folder of
 * Alibaba's public trace, that trace is used, and the figures are those of
 * docs/decisions/0015-placement.md. Otherwise a similar trace is made here: two kinds of node, most
 * jobs shares or one GPU. `large`: 10,000 nodes of 8 GPUs, half full, on which jobs come and go.
 */
#include "bench.h"

#include "cli/simulate/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNTIL_PCT   130
#define SEEDS       2
#define LARGE_NODES 10000
#define LARGE_TASKS 40000
#define LARGE_ROUND 4000

/* --- The trace. --- */

static const struct {
	struct sl_need need;
	uint32_t jobs;
} made_jobs[] = {
	{{4000, 8192, 1, 250, 0, 0, 0}, 60},
	{{6000, 12288, 1, 460, 0, 0, 0}, 90},
	{{8000, 16384, 1, 500, 0, 0, 0}, 90},
	{{3000, 8192, 1, 810, 0, 0, 0}, 60},
	{{8000, 30720, 1, SL_FIT_WHOLE, 0, 0, 0}, 280},
	{{12000, 49152, 1, SL_FIT_WHOLE, 0, 0, 0}, 120},
	{{24000, 98304, 2, SL_FIT_WHOLE, 0, 0, 0}, 4},
	{{88000, 327680, 8, SL_FIT_WHOLE, 0, 0, 0}, 6},
	{{11400, 49152, 0, 0, 0, 0, 0}, 100},
};

static void make_trace(struct sl_trace *trace)
{
	uint32_t jobs = 0;

	for (size_t i = 0; i < SL_ARRAY_LEN(made_jobs); i++)
		jobs += made_jobs[i].jobs;
	trace->node_count = 150;
	trace->nodes = calloc(trace->node_count, sizeof(*trace->nodes));
	trace->jobs = calloc(jobs, sizeof(*trace->jobs));
	bench_require(trace->nodes && trace->jobs, "out of memory");
	for (uint32_t i = 0; i < trace->node_count; i++) {
		uint16_t gpus = i % 3 ? 8 : 2;

		sl_fit_node_init(&trace->nodes[i], 96000, 393216, gpus, 0, gpus == 2, 0);
		trace->capacity_milli += gpus * SL_FIT_WHOLE;
	}
	for (size_t i = 0; i < SL_ARRAY_LEN(made_jobs); i++)
		for (uint32_t n = 0; n < made_jobs[i].jobs; n++)
			trace->jobs[trace->job_count++].need = made_jobs[i].need;
}

/* False: no trace was there, and one was made. */
static bool read_trace(struct sl_trace *trace, struct sl_arrivals_list *orders)
{
	const char *folder = getenv("SLUICE_TRACES");
	struct sl_error err = {{0}};
	char path[3][512];
	FILE *file;

	snprintf(path[0], sizeof(path[0]), "%s/openb_node_list_gpu_node.csv",
		folder ? folder : "");
	snprintf(path[1], sizeof(path[1]), "%s/openb_pod_list_default.csv",
		folder ? folder : "");
	snprintf(path[2], sizeof(path[2]), "%s/openb_arrivals_default.csv",
		folder ? folder : "");
	file = folder ? fopen(path[0], "re") : NULL;
	if (!file) {
		make_trace(trace);
		return false;
	}
	(void)fclose(file);
	bench_require(!sl_trace_nodes(trace, path[0], &err) &&
			      !sl_trace_jobs(trace, path[1], &err) &&
			      !sl_arrivals_read(orders, trace, path[2], &err),
		"%s", err.text);
	return true;
}

static void run_trace(const struct sl_trace *trace, const struct sl_arrivals_list *orders,
	enum sl_placement_policy policy, const char *where)
{
	static struct sl_simulate_curve curve;
	struct sl_simulate_ask ask = {.policy = policy, .until_pct = UNTIL_PCT};
	double used = 0, seconds = 0, decisions = 0;
	char variant[64];

	for (uint32_t i = 0; i < SEEDS; i++) {
		struct sl_arrivals made = {0};
		const struct sl_arrivals *order = &made;

		if (i < orders->count)
			order = &orders->all[i];
		else
			bench_require(sl_simulate_shuffle(trace, i, UNTIL_PCT, &made),
				"out of memory");
		sl_simulate_run(trace, order, &ask, &curve);
		bench_require(
			!isnan(curve.used_pct[UNTIL_PCT]), "no arrival is at the end");
		used += curve.used_pct[UNTIL_PCT];
		seconds += curve.seconds;
		decisions += (double)curve.arrived;
		free(made.jobs);
		free(made.ranks);
	}
	snprintf(variant, sizeof(variant), "%s-%s", where,
		sl_placement_policy_name(policy));
	bench_emit(BENCH_PLACE_IDLE, variant, 100 - used / SEEDS);
	bench_emit(BENCH_PLACE_DECISION, variant, 1e6 * seconds / decisions);
}

/* --- A large cluster. --- */

struct large {
	struct sl_arena *arena;
	struct sl_fit_node *nodes;
	struct sl_placer *placer;
	struct {
		const struct sl_need *need;
		struct sl_place place;
	} tasks[LARGE_TASKS];
	uint32_t count;
	uint64_t random;
};

static uint32_t draw(struct large *l, uint32_t most)
{
	l->random = l->random * UINT64_C(6364136223846793005) + 1;
	return (uint32_t)(l->random >> 33) % most;
}

static void come(struct large *l)
{
	const struct sl_need *need =
		&made_jobs[draw(l, SL_ARRAY_LEN(made_jobs) - 2)].need;
	struct sl_place place;

	bench_require(sl_placer_place(l->placer, need, false, &place),
		"a task fits nowhere in half a cluster");
	sl_fit_take(&l->nodes[place.node], need, place);
	sl_placer_changed(l->placer, place.node);
	l->tasks[l->count].need = need;
	l->tasks[l->count++].place = place;
}

static void go(struct large *l)
{
	uint32_t i = draw(l, l->count);
	uint32_t node = l->tasks[i].place.node;

	sl_fit_give(&l->nodes[node], l->tasks[i].need, l->tasks[i].place, false);
	sl_placer_changed(l->placer, node);
	l->tasks[i] = l->tasks[--l->count];
}

static void run_large(enum sl_placement_policy policy)
{
	static struct large l;
	char variant[64];
	sl_ns begin;

	memset(&l, 0, sizeof(l));
	l.random = 1;
	l.arena = sl_arena_new();
	l.nodes = sl_arena_take(l.arena, LARGE_NODES * sizeof(*l.nodes));
	l.placer = sl_placer_new(l.arena, policy, l.nodes, LARGE_NODES);
	for (size_t i = 0; i < SL_ARRAY_LEN(made_jobs); i++)
		sl_placer_learn(l.placer, &made_jobs[i].need, made_jobs[i].jobs);
	for (uint32_t i = 0; i < LARGE_NODES; i++) {
		sl_fit_node_init(&l.nodes[i], 128000, 524288, 8, 0, 0, 0);
		sl_placer_changed(l.placer, i);
	}
	while (l.count < LARGE_TASKS)
		come(&l);
	begin = sl_clock_now();
	for (int i = 0; i < LARGE_ROUND; i++) {
		go(&l);
		come(&l);
	}
	snprintf(variant, sizeof(variant), "large-%s", sl_placement_policy_name(policy));
	bench_emit(BENCH_PLACE_DECISION, variant,
		(double)(sl_clock_now() - begin) / (double)SL_US / LARGE_ROUND);
	l.arena = sl_arena_free(l.arena);
}

int bench_part_place(int argc, char **argv)
{
	static const enum sl_placement_policy policies[] = {
		SL_PLACE_PACK, SL_PLACE_FGD, SL_PLACE_BESTFIT};
	struct sl_arrivals_list orders = {0};
	struct sl_trace trace = {0};
	const char *where = read_trace(&trace, &orders) ? "alibaba" : "made";

	for (size_t i = 0; i < SL_ARRAY_LEN(policies); i++) {
		run_trace(&trace, &orders, policies[i], where);
		run_large(policies[i]);
	}
	sl_arrivals_fini(&orders);
	sl_trace_fini(&trace);
	return 0;
}
