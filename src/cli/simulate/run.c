/* run - see the header */
#include "cli/simulate/run.h"

#include "cli/simulate/gauge.h"
#include "cli/simulate/mix.h"

#include "base/clock.h"
#include "policy/cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Arrivals between two reports of progress. */
#define PROGRESS_EVERY 256
/* Between two arrivals, for what may be moved per hour. */
#define ARRIVE_EVERY (60 * SL_S)

void sl_simulate_permute(uint32_t *numbers, uint32_t count, uint64_t *random)
{
	for (uint32_t i = 0; i < count; i++)
		numbers[i] = i;
	for (uint32_t i = count; i > 1; i--) {
		uint32_t j = (uint32_t)(sl_draw(random) % i), kept = numbers[i - 1];

		numbers[i - 1] = numbers[j];
		numbers[j] = kept;
	}
}

/* Adds jobs until the demand is reached: those of the trace first, in the order of
 * jobs[0..job_count). */
static uint32_t fill_up(const struct sl_trace *trace, uint64_t until_milli,
	uint64_t *random, uint32_t *jobs, uint32_t most)
{
	uint64_t milli = 0;
	uint32_t count = 0;

	while (count < most) {
		uint32_t job = count < trace->job_count
				       ? jobs[count]
				       : (uint32_t)(sl_draw(random) % trace->job_count);

		milli += sl_trace_milli(&trace->jobs[job].need);
		if (milli > until_milli)
			break;
		jobs[count++] = job;
	}
	return count;
}

bool sl_simulate_shuffle(const struct sl_trace *trace, uint64_t seed, uint32_t until_pct,
	struct sl_arrivals *arrivals)
{
	uint64_t random = sl_simulate_seeded(seed),
		 until = trace->capacity_milli / 100 * until_pct;
	uint64_t milli = 0, most;

	for (uint32_t i = 0; i < trace->job_count; i++)
		milli += sl_trace_milli(&trace->jobs[i].need);
	/* Jobs without a GPU request would never reach it. */
	most = trace->job_count +
	       (uint64_t)trace->job_count * (milli ? until / milli + 2 : 0);
	if (most > SL_TRACE_JOBS * 4u)
		most = SL_TRACE_JOBS * 4u;
	arrivals->seed = seed;
	arrivals->jobs = malloc(most * sizeof(*arrivals->jobs));
	arrivals->ranks = malloc(trace->node_count * sizeof(*arrivals->ranks));
	if (!arrivals->jobs || !arrivals->ranks)
		return false;
	sl_simulate_permute(arrivals->jobs, trace->job_count, &random);
	sl_simulate_permute(arrivals->ranks, trace->node_count, &random);
	arrivals->count = fill_up(trace, until, &random, arrivals->jobs, (uint32_t)most);
	return true;
}

static int by_created(const void *a, const void *b, void *jobs)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct sl_trace_job *all = jobs;

	if (all[x].created != all[y].created)
		return all[x].created < all[y].created ? -1 : 1;
	return x < y ? -1 : 1;
}

bool sl_simulate_in_order(const struct sl_trace *trace, struct sl_arrivals *arrivals)
{
	arrivals->count = trace->job_count;
	arrivals->jobs = malloc(trace->job_count * sizeof(*arrivals->jobs));
	if (!arrivals->jobs)
		return false;
	for (uint32_t i = 0; i < trace->job_count; i++)
		arrivals->jobs[i] = i;
	qsort_r(arrivals->jobs, arrivals->count, sizeof(*arrivals->jobs), by_created,
		trace->jobs);
	return true;
}

/* --- A run. --- */

struct run {
	const struct sl_trace *trace;
	struct sl_arena *arena;
	struct sl_fit_node *nodes;
	struct sl_placer *placer;
	struct sl_gauge gauge; /* of the whole trace, for the curve only */
	uint64_t arrived_milli, used_milli;
	uint32_t events[SL_SIMULATE_PCT_MOST + 1];
	/* With moves, else NULL. */
	struct sl_cluster *cluster;
	struct sl_cluster_action *open; /* of the last cycle: BIND and STOP */
	struct sl_place *place;         /* by arrival */
	uint32_t opens;
	uint64_t moved;
	sl_ns now;
};

static void start(struct run *run, const struct sl_trace *trace,
	const struct sl_arrivals *arrivals, const struct sl_simulate_ask *ask)
{
	size_t bytes = trace->node_count * sizeof(*run->nodes);

	memset(run, 0, sizeof(*run));
	run->trace = trace;
	run->arena = sl_arena_new();
	run->nodes = sl_arena_take(run->arena, bytes);
	memcpy(run->nodes, trace->nodes, bytes);
	run->placer =
		sl_placer_new(run->arena, ask->policy, run->nodes, trace->node_count);
	sl_gauge_init(&run->gauge, run->arena, trace->node_count);
	for (uint32_t i = 0; i < trace->job_count; i++) {
		sl_typical_learn(&run->gauge.typical, &trace->jobs[i].need, 1);
		if (!ask->learn_only)
			sl_placer_learn(run->placer, &trace->jobs[i].need, 1);
	}
	(void)sl_typical_refresh(&run->gauge.typical);
	if (arrivals->ranks)
		sl_placer_ranks(run->placer, arrivals->ranks);
	for (uint32_t i = 0; i < trace->node_count; i++) {
		sl_placer_changed(run->placer, i);
		sl_gauge_node(&run->gauge, i, &run->nodes[i]);
	}
}

/* True if it was placed. */
static bool arrive(struct run *run, const struct sl_need *need, bool learn)
{
	struct sl_place place;

	if (learn)
		sl_placer_learn(run->placer, need, 1);
	if (!sl_placer_place(run->placer, need, false, &place))
		return false;
	sl_fit_take(&run->nodes[place.node], need, place);
	sl_placer_changed(run->placer, place.node);
	run->used_milli +=
		(uint64_t)place.milli * (unsigned int)__builtin_popcount(place.gpu_mask);
	sl_gauge_node(&run->gauge, place.node, &run->nodes[place.node]);
	return true;
}

/* --- With moves. --- */

static void keep_action(void *context, const struct sl_cluster_action *action)
{
	struct run *run = context;

	if (action->type == SL_CLUSTER_ACTION_BIND ||
		action->type == SL_CLUSTER_ACTION_STOP)
		run->open[run->opens++] = *action;
}

static void send(struct run *run, struct sl_cluster_event event)
{
	sl_cluster_step(run->cluster, run->now, &event, keep_action, run);
}

static void start_machine(struct run *run, uint32_t arrivals, uint32_t moves,
	enum sl_placement_policy policy)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CONFIG};

	run->cluster = sl_cluster_new(run->arena, run->trace->node_count, 1);
	/* A task has one action in a cycle. */
	run->open = sl_arena_take(run->arena, arrivals * sizeof(run->open[0]));
	run->place = sl_arena_take(run->arena, arrivals * sizeof(run->place[0]));
	event.config.placement = policy;
	event.config.move_most = moves;
	send(run, event);
	event = (struct sl_cluster_event){.type = SL_CLUSTER_EVENT_PROJECT_PUT};
	event.project_put.project = 1;
	for (int r = 0; r < SL_RESOURCES; r++)
		event.project_put.rules.quota.of[r] =
			event.project_put.rules.limit.of[r] = SL_QUOTA_ALL;
	send(run, event);
	for (uint32_t i = 0; i < run->trace->node_count; i++) {
		const struct sl_fit_node *node = &run->nodes[i];

		event = (struct sl_cluster_event){.type = SL_CLUSTER_EVENT_NODE_PUT};
		event.node_put.node = i + 1;
		event.node_put.cpu_milli = node->cpu_milli;
		event.node_put.memory_mib = node->memory_mib;
		event.node_put.gpus = node->gpus;
		event.node_put.gpu_mib = node->gpu_mib;
		event.node_put.model = node->model;
		send(run, event);
	}
}

/* A task takes its place (1) or leaves it (-1). */
static void change_place(
	struct run *run, const struct sl_need *need, uint32_t i, int sign)
{
	struct sl_place place = run->place[i];
	int64_t milli = (int64_t)place.milli * __builtin_popcount(place.gpu_mask);

	if (sign > 0)
		sl_fit_take(&run->nodes[place.node], need, place);
	else
		sl_fit_give(&run->nodes[place.node], need, place, false);
	run->used_milli = (uint64_t)((int64_t)run->used_milli + sign * milli);
	sl_gauge_node(&run->gauge, place.node, &run->nodes[place.node]);
}

/* Bound tasks run, moved ones are away. */
static void carry_out(struct run *run, const struct sl_arrivals *arrivals)
{
	uint32_t opens = run->opens;

	for (uint32_t k = 0; k < opens; k++) {
		const struct sl_cluster_action *open = &run->open[k];
		struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_RUNS};
		uint32_t i = (uint32_t)open->bind.job - 1;
		const struct sl_need *need = &run->trace->jobs[arrivals->jobs[i]].need;

		event.task_runs.job = open->bind.job;
		if (open->type == SL_CLUSTER_ACTION_STOP) {
			change_place(run, need, i, -1);
			run->moved++;
			event = (struct sl_cluster_event){
				.type = SL_CLUSTER_EVENT_TASK_ENDED};
			event.task_ended.job = open->stop.job;
			event.task_ended.again = 1;
		} else {
			run->place[i] = (struct sl_place){(uint32_t)open->bind.node - 1,
				open->bind.gpu_mask, open->bind.milli};
			change_place(run, need, i, 1);
		}
		send(run, event);
	}
	run->opens = 0;
}

/* True if arrival i was placed. */
static bool arrive_moving(struct run *run, const struct sl_arrivals *arrivals, uint32_t i)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};

	run->now += ARRIVE_EVERY;
	event.job_add.job = i + 1;
	event.job_add.project = 1;
	event.job_add.flags = SL_JOB_PARKS | SL_JOB_MOVES;
	event.job_add.tasks = event.job_add.least = 1;
	event.job_add.need = run->trace->jobs[arrivals->jobs[i]].need;
	send(run, event);
	event = (struct sl_cluster_event){.type = SL_CLUSTER_EVENT_CYCLE};
	event.cycle.which = SL_CYCLE_ALLOCATE | SL_CYCLE_CONSOLIDATE;
	do {
		carry_out(run, arrivals);
		send(run, event);
	} while (run->opens);
	if (sl_cluster_job(run->cluster, i + 1).in[SL_TASK_RUNNING])
		return true;
	event = (struct sl_cluster_event){.type = SL_CLUSTER_EVENT_JOB_REMOVE};
	event.job_remove.job = i + 1;
	send(run, event);
	return false;
}

/* --- The curve. --- */

static void note(struct run *run, uint32_t until_pct, struct sl_simulate_curve *curve)
{
	double all = (double)run->trace->capacity_milli;
	double at = rint(100.0 * (double)run->arrived_milli / all);
	uint32_t pct;

	if (at > until_pct)
		return;
	pct = (uint32_t)at;
	curve->used_pct[pct] += 100.0 * (double)run->used_milli / all;
	curve->fragments_pct[pct] += 100.0 * run->gauge.fragments / all;
	run->events[pct]++;
}

/* Of this process only, so other load does not count. */
static sl_ns cpu_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (sl_ns)now.tv_sec * SL_S + (sl_ns)now.tv_nsec;
}

void sl_simulate_run(const struct sl_trace *trace, const struct sl_arrivals *arrivals,
	const struct sl_simulate_ask *ask, struct sl_simulate_curve *curve)
{
	struct run run;
	sl_ns begun;

	memset(curve, 0, sizeof(*curve));
	start(&run, trace, arrivals, ask);
	if (ask->moves)
		start_machine(&run, arrivals->count, ask->moves, ask->policy);
	begun = cpu_now();
	for (uint32_t i = 0; i < arrivals->count; i++) {
		const struct sl_need *need = &trace->jobs[arrivals->jobs[i]].need;

		curve->placed += run.cluster ? arrive_moving(&run, arrivals, i)
					     : arrive(&run, need, ask->learn_only);
		curve->arrived++;
		run.arrived_milli += sl_trace_milli(need);
		note(&run, ask->until_pct, curve);
		if (ask->progress && i % PROGRESS_EVERY == 0)
			ask->progress(ask->context, i, arrivals->count);
	}
	curve->moved = run.moved;
	curve->seconds = (double)(cpu_now() - begun) / 1e9;
	for (uint32_t pct = 0; pct <= SL_SIMULATE_PCT_MOST; pct++) {
		curve->used_pct[pct] /= run.events[pct];
		curve->fragments_pct[pct] /= run.events[pct];
	}
	sl_arena_free(run.arena);
}
