/*
 * cluster - how long a scheduling cycle takes, and how much memory the cluster machine
 *
 * The machine runs in this process: 100, 1,000 and 10,000 nodes of 8 GPUs, ten times as many jobs,
 * in a tree of 10 departments of 10 projects. Jobs are of 12 kinds: shares, single GPUs, several,
 * gangs.
 *
 *   requeue: nothing runs, all jobs wait; the cycle that starts those that fit.
 *   steady:  the cluster is full, the rest waits; between two cycles one job in a thousand ends
 *            and as many come.
 *   idle:    nothing has happened since the last cycle.
 *   gang:    the same as steady, and a gang waits that needs one GPU more than there are.
 *   reclaim: one project has everything; all others ask for their quotas.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "policy/cluster.h"

#define DEPARTMENTS 10
#define PROJECTS    10 /* of a department */
#define GPUS        8
#define ROUNDS      40
#define KINDS       12

struct one {
	struct sl_arena *arena;
	struct sl_cluster *cluster;
	sl_ns now;
	uint64_t seed, next_job, bound, stopped, binds_kept;
	uint32_t nodes;
	/* Of the last cycle: actions to be answered. */
	struct answer {
		uint64_t job;
		uint32_t task;
		bool stop;
	} * answer;
	size_t answers, room;
	uint64_t *running; /* jobs with a task that was bound */
	size_t runs, runs_room;
};

static uint64_t draw(struct one *o, uint64_t bound)
{
	o->seed = o->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (o->seed >> 33) % bound;
}

static void on_action(void *context, const struct sl_cluster_action *action)
{
	struct one *o = context;
	bool bind = action->type == SL_CLUSTER_ACTION_BIND;

	bench_require(action->type != SL_CLUSTER_ACTION_REFUSE_JOB &&
			      action->type != SL_CLUSTER_ACTION_REFUSE_PROJECT,
		"the machine refuses what is measured");
	if (!bind && action->type != SL_CLUSTER_ACTION_STOP)
		return;
	if (o->answers == o->room) {
		o->room = o->room ? 2 * o->room : 1024;
		o->answer = realloc(o->answer, o->room * sizeof(o->answer[0]));
		bench_require(o->answer, "no memory");
	}
	o->answer[o->answers++] =
		(struct answer){bind ? action->bind.job : action->stop.job,
			bind ? action->bind.task : action->stop.task, !bind};
	o->bound += bind;
	o->stopped += !bind;
}

/* The time it took. */
static sl_ns step(struct one *o, const struct sl_cluster_event *event)
{
	sl_ns begin;

	o->now += SL_US;
	begin = sl_clock_now();
	sl_cluster_step(o->cluster, o->now, event, on_action, o);
	return sl_clock_now() - begin;
}

static sl_ns cycle(struct one *o)
{
	struct sl_cluster_event event = {
		.type = SL_CLUSTER_EVENT_CYCLE, .cycle = {.which = SL_CYCLE_ALL}};

	return step(o, &event);
}

/* Bound tasks run, stopped ones are gone and queued again. */
static void answer(struct one *o)
{
	for (size_t i = 0; i < o->answers; i++) {
		const struct answer *a = &o->answer[i];
		struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

		event.task_runs.job = a->job;
		event.task_runs.task = a->task;
		if (a->stop) {
			event.type = SL_CLUSTER_EVENT_TASK_ENDED;
			event.task_ended.job = a->job;
			event.task_ended.task = a->task;
			event.task_ended.again = 1;
		}
		(void)step(o, &event);
		if (a->stop || a->task)
			continue;
		if (o->runs == o->runs_room) {
			o->runs_room = o->runs_room ? 2 * o->runs_room : 1024;
			o->running =
				realloc(o->running, o->runs_room * sizeof(o->running[0]));
			bench_require(o->running, "no memory");
		}
		o->running[o->runs++] = a->job;
	}
	o->answers = 0;
}

static void put_project(
	struct one *o, uint64_t id, uint64_t parent, int64_t quota, uint32_t weight)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_PROJECT_PUT};
	struct sl_project_rules *rules = &event.project_put.rules;

	for (int r = 0; r < SL_RESOURCES; r++) {
		rules->quota.of[r] = rules->limit.of[r] = SL_QUOTA_ALL;
		rules->weight[r] = weight;
	}
	rules->quota.of[SL_RES_GPU] = quota;
	event.project_put.project = id;
	event.project_put.parent = parent;
	(void)step(o, &event);
}

static void begin(struct one *o, uint32_t nodes)
{
	int64_t each = (int64_t)nodes * GPUS * 1000 / (DEPARTMENTS * PROJECTS);

	*o = (struct one){.arena = sl_arena_new(), .nodes = nodes, .seed = 20251};
	o->cluster =
		sl_cluster_new(o->arena, nodes, DEPARTMENTS * PROJECTS + DEPARTMENTS);
	o->now = 1000 * SL_S;
	for (uint32_t i = 0; i < nodes; i++) {
		struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_PUT};

		event.node_put.node = i + 1;
		event.node_put.cpu_milli = 128000;
		event.node_put.memory_mib = 1024 * 1024;
		event.node_put.gpus = GPUS;
		event.node_put.gpu_mib = 80 * 1024;
		(void)step(o, &event);
	}
	for (uint32_t d = 0; d < DEPARTMENTS; d++) {
		put_project(o, d + 1, 0, each * PROJECTS, 1);
		for (uint32_t p = 0; p < PROJECTS; p++)
			put_project(
				o, DEPARTMENTS + d * PROJECTS + p + 1, d + 1, each, 1);
	}
}

static void end(struct one *o)
{
	free(o->answer);
	free(o->running);
	o->arena = sl_arena_free(o->arena);
}

static uint64_t some_project(struct one *o)
{
	return DEPARTMENTS + 1 + draw(o, DEPARTMENTS * PROJECTS);
}

/* Two thirds single GPUs and shares, some of several GPUs, gangs of up to 16. */
static void add_job(struct one *o, uint64_t project, uint32_t kind)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};
	struct sl_need *need = &event.job_add.need;

	need->cpu_milli = 4000;
	need->memory_mib = 32 * 1024;
	need->gpus = 1;
	need->gpu_milli = SL_FIT_WHOLE;
	event.job_add.tasks = event.job_add.least = 1;
	if (kind < 3)
		need->gpu_milli = (uint16_t)(250 * (kind + 1));
	else if (kind == 8)
		need->gpus = 2;
	else if (kind == 9)
		need->gpus = 4;
	else if (kind == 10)
		need->gpus = 8;
	else if (kind == 11)
		event.job_add.tasks = event.job_add.least = 1u << draw(o, 5);
	event.job_add.job = ++o->next_job;
	event.job_add.project = project;
	event.job_add.priority = SL_JOB_PRIORITY_TRAIN;
	event.job_add.flags = SL_JOB_PREEMPTIBLE;
	(void)step(o, &event);
}

static void remove_some(struct one *o, uint32_t count)
{
	for (uint32_t i = 0; i < count && o->runs; i++) {
		struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_REMOVE};
		size_t at = draw(o, o->runs);

		event.job_remove.job = o->running[at];
		o->running[at] = o->running[--o->runs];
		(void)step(o, &event);
	}
}

static void measure_steady(struct one *o, enum bench_row_id median,
	enum bench_row_id worst, const char *variant)
{
	struct bench_samples *samples = bench_samples_new();
	uint32_t few = o->nodes / 100 ? o->nodes / 100 : 1;

	for (int i = 0; i < ROUNDS; i++) {
		remove_some(o, few);
		for (uint32_t j = 0; j < few; j++)
			add_job(o, some_project(o), (uint32_t)draw(o, KINDS));
		bench_samples_add(samples, cycle(o));
		answer(o);
	}
	bench_emit(median, variant, (double)bench_quantile(samples, 500) / SL_MS);
	bench_emit(worst, variant, (double)bench_quantile(samples, 1000) / SL_MS);
	free(samples);
}

/* Until nothing changes any more, even after every job had its turn to look for victims. */
static void settle(struct one *o)
{
	for (int i = 0, still = 0; i < 1000 && still < 50; i++) {
		o->now += SL_S;
		(void)cycle(o);
		still = o->answers ? 0 : still + 1;
		answer(o);
	}
}

static void measure(uint32_t nodes)
{
	struct one o;
	char variant[32];
	struct sl_cluster_event gang = {.type = SL_CLUSTER_EVENT_JOB_ADD};
	sl_ns span;

	(void)snprintf(variant, sizeof(variant), "nodes-%u", nodes);
	begin(&o, nodes);
	for (uint32_t i = 0; i < 10 * nodes; i++)
		add_job(&o, some_project(&o), (uint32_t)draw(&o, KINDS));
	span = cycle(&o);
	bench_emit(BENCH_CYCLE_REQUEUE, variant, (double)span / SL_MS);
	bench_emit(BENCH_CYCLE_DECISIONS, variant, (double)o.bound * SL_S / (double)span);
	answer(&o);
	settle(&o);
	measure_steady(&o, BENCH_CYCLE_STEADY, BENCH_CYCLE_STEADY_WORST, variant);
	settle(&o);
	bench_emit(BENCH_CYCLE_IDLE, variant, (double)cycle(&o) / SL_MS);
	gang.job_add.job = ++o.next_job;
	gang.job_add.project = DEPARTMENTS + 1;
	gang.job_add.priority = SL_JOB_PRIORITY_TRAIN;
	gang.job_add.flags = SL_JOB_PREEMPTIBLE;
	gang.job_add.tasks = gang.job_add.least = nodes * GPUS + 1;
	gang.job_add.need =
		(struct sl_need){.cpu_milli = 1000, .gpus = 1, .gpu_milli = SL_FIT_WHOLE};
	(void)step(&o, &gang);
	measure_steady(&o, BENCH_CYCLE_GANG, BENCH_CYCLE_GANG_WORST, variant);
	bench_emit(BENCH_CYCLE_MEMORY, variant,
		(double)sl_arena_used_bytes(o.arena) / (double)SL_MIB);
	end(&o);
}

static void measure_reclaim(uint32_t nodes)
{
	struct bench_samples *samples = bench_samples_new();
	struct one o;
	char variant[32];
	uint32_t cycles = 0, jobs;

	(void)snprintf(variant, sizeof(variant), "nodes-%u", nodes);
	begin(&o, nodes);
	for (uint32_t i = 0; i < nodes * GPUS; i++)
		add_job(&o, DEPARTMENTS + 1, 5);
	(void)cycle(&o);
	answer(&o);
	o.now += 3600 * SL_S;
	jobs = nodes * GPUS / (DEPARTMENTS * PROJECTS);
	for (uint32_t p = 1; p < DEPARTMENTS * PROJECTS; p++) {
		for (uint32_t i = 0; i < jobs; i++)
			add_job(&o, DEPARTMENTS + 1 + p, 5);
	}
	o.stopped = 0;
	do {
		o.now += SL_S;
		bench_samples_add(samples, cycle(&o));
		cycles++;
		if (!o.answers)
			break;
		answer(&o);
	} while (cycles < 400);
	bench_emit(BENCH_CYCLE_RECLAIM, variant,
		(double)bench_quantile(samples, 500) / SL_MS);
	bench_emit(BENCH_CYCLE_RECLAIM_WORST, variant,
		(double)bench_quantile(samples, 1000) / SL_MS);
	bench_emit(BENCH_CYCLE_RECLAIM_STOPPED, variant, (double)o.stopped / cycles);
	free(samples);
	end(&o);
}

int bench_part_cluster(int argc, char **argv)
{
	static const uint32_t sizes[] = {100, 1000, 10000};
	uint32_t most = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : UINT32_MAX;

	for (size_t i = 0; i < SL_ARRAY_LEN(sizes) && sizes[i] <= most; i++) {
		measure(sizes[i]);
		measure_reclaim(sizes[i]);
	}
	return 0;
}
