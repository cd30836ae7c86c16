/*
 * table - see the header
 *
 * The world outside the machine is modelled in one struct: names, needs, where tasks stood at the
 * beginning. Judging looks at the machine through its views only, and keeps its own accounts of
 * what stands where.
 */
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST             64 /* nodes, queues, jobs, tasks of a job */
#define GIVEN_CPU        20000
#define GIVEN_GB         20000
#define GIVEN_GPU        100
#define BEGINNING        (3600 * SL_S)
#define DEFAULT_PRIORITY 50

struct task {
	const char *name_state, *sub_group, *node;
	char name[96];
	uint32_t number, part, priority;
	bool has_group, stood; /* stood: it held a place before the action */
	uint32_t group;
	struct sl_need need;
};

struct job {
	const char *name, *queue;
	uint32_t tasks, parts, queue_number;
	int32_t priority;
	bool refused, started; /* started: tasks of it ran before */
	struct task task[MOST];
	uint32_t least[MOST];
	sl_ns stale_grace, delay, waited;
};

struct table {
	const json_t *table;
	struct sl_arena *arena;
	struct sl_cluster *cluster;
	sl_ns now;
	uint32_t nodes, queues, jobs;
	const char *node[MOST], *queue[MOST];
	int32_t left[MOST][SL_FIT_GPUS_MAX]; /* of the nodes, while it is set up */
	uint32_t gpus[MOST];
	struct sl_fit_node fit[MOST];
	struct job job[MOST];
	double unit; /* bytes of memory that count as one */
	bool verbose, piped, stuck;
	sl_ns wait;       /* from the set-up to the cycle */
	uint32_t changes; /* actions of the last cycle */
};

static const json_t *get(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

static double number(const json_t *object, const char *key, double otherwise)
{
	const json_t *value = get(object, key);

	return json_is_number(value) ? json_number_value(value) : otherwise;
}

static const char *text(const json_t *object, const char *key)
{
	return json_string_value(get(object, key));
}

static void on_action(void *context, const struct sl_cluster_action *action)
{
	struct table *t = context;

	if (action->type == SL_CLUSTER_ACTION_REFUSE_JOB)
		t->job[action->refuse_job.job - 1].refused = true;
	if (action->type == SL_CLUSTER_ACTION_REFUSE_PROJECT) {
		fprintf(stderr, "conformance: queue %s is refused (%u)\n",
			t->queue[action->refuse_project.project - 1],
			action->refuse_project.outcome);
	}
	t->changes += action->type != SL_CLUSTER_ACTION_WAKE_AT;
	if (t->verbose)
		printf("    %s %llu\n", sl_cluster_action_name(action->type),
			(unsigned long long)action->id);
}

static void step(struct table *t, struct sl_cluster_event event)
{
	t->now++;
	sl_cluster_step(t->cluster, t->now, &event, on_action, t);
}

/* --- Setting up. --- */

static uint32_t find(const char *const *names, uint32_t count, const char *name)
{
	for (uint32_t i = 0; name && i < count; i++) {
		if (!strcmp(names[i], name))
			return i;
	}
	return UINT32_MAX;
}

static void add_nodes(struct table *t)
{
	const json_t *nodes = get(t->table, "Nodes");
	const char *name;
	json_t *node;

	json_object_foreach((json_t *)nodes, name, node)
	{
		double memory = number(node, "CPUMemory", 0);
		struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_PUT};
		uint32_t i = t->nodes++;

		if (memory > 0 && memory < 1e6)
			t->unit = 1;
		t->node[i] = name;
		t->gpus[i] = (uint32_t)number(node, "GPUs", 0);
		for (uint32_t g = 0; g < t->gpus[i]; g++)
			t->left[i][g] = SL_FIT_WHOLE;
		event.node_put.node = i + 1;
		event.node_put.cpu_milli = (uint32_t)number(node, "CPUMillis", GIVEN_CPU);
		event.node_put.memory_mib =
			memory > 0 ? (uint32_t)(memory / t->unit) : GIVEN_GB;
		event.node_put.gpus = (uint16_t)t->gpus[i];
		event.node_put.gpu_mib = (uint32_t)number(node, "GPUMemory", GIVEN_GPU);
		sl_fit_node_init(&t->fit[i], event.node_put.cpu_milli,
			event.node_put.memory_mib, event.node_put.gpus,
			event.node_put.gpu_mib, 0, 0);
		step(t, event);
	}
}

static int64_t amount(
	const json_t *queue, const char *key, double otherwise, double scale)
{
	double value = number(queue, key, otherwise);

	return value < 0 ? SL_QUOTA_ALL : (int64_t)llround(value * scale);
}

static void put_queue(struct table *t, const json_t *queue, bool department)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_PROJECT_PUT};
	struct sl_project_rules *rules = &event.project_put.rules;
	uint32_t parent = find(t->queue, t->queues, text(queue, "ParentQueue"));
	double deserved = number(queue, "DeservedGPUs", department ? -1 : 0);

	rules->quota = (struct sl_quantity){
		{[SL_RES_GPU] = amount(queue, "DeservedGPUs", deserved, 1000),
			[SL_RES_CPU] = amount(queue, "DeservedCPUs", -1, 1),
			[SL_RES_MEMORY] = amount(queue, "DeservedMemory", -1, 1)}};
	rules->limit = (struct sl_quantity){
		{[SL_RES_GPU] = amount(queue, "MaxAllowedGPUs", -1, 1000),
			[SL_RES_CPU] = amount(queue, "MaxAllowedCPUs", -1, 1),
			[SL_RES_MEMORY] = amount(queue, "MaxAllowedMemory", -1, 1)}};
	rules->weight[SL_RES_GPU] =
		(uint32_t)(department ? (deserved > 0 ? deserved : 0)
				      : number(queue, "GPUOverQuotaWeight", 0));
	rules->weight[SL_RES_CPU] = rules->weight[SL_RES_MEMORY] = 1;
	rules->priority = (int32_t)number(queue, "Priority", 100);
	t->queue[t->queues++] = text(queue, "Name");
	event.project_put.project = t->queues;
	event.project_put.parent = parent == UINT32_MAX ? 0 : parent + 1;
	step(t, event);
}

static void add_queues(struct table *t)
{
	size_t i;
	json_t *queue;
	uint32_t before;

	json_array_foreach(get(t->table, "Departments"), i, queue)
		put_queue(t, queue, true);
	/* Parents first, whatever their order in the record. */
	do {
		before = t->queues;
		json_array_foreach(get(t->table, "Queues"), i, queue)
		{
			const char *parent = text(queue, "ParentQueue");

			if (find(t->queue, t->queues, text(queue, "Name")) ==
					UINT32_MAX &&
				(!parent ||
					find(t->queue, t->queues, parent) != UINT32_MAX))
				put_queue(t, queue, false);
		}
	} while (t->queues > before);
}

static struct sl_need need_of(struct table *t, const json_t *job, const json_t *task)
{
	double gpus = number(task, "RequiredGPUs", number(job, "RequiredGPUsPerTask", 0));
	double mib = number(job, "RequiredGpuMemory", 0);
	uint32_t devices =
		(uint32_t)number(job, "RequiredMultiFractionDevicesPerTask", 1);
	struct sl_need need = {
		.cpu_milli = (uint32_t)number(job, "RequiredCPUsPerTask", 1000)};

	need.memory_mib =
		(uint32_t)(number(job, "RequiredMemoryPerTask", t->unit > 1 ? 1e9 : 0) /
			   t->unit);
	if (json_is_true(get(job, "IsBestEffortJob")))
		need = (struct sl_need){.cpu_milli = 1};
	if (mib > 0) {
		need.gpus = (uint16_t)devices;
		need.gpu_mib = (uint32_t)mib;
	} else if (gpus >= 1) {
		need.gpus = (uint16_t)gpus;
		need.gpu_milli = SL_FIT_WHOLE;
	} else if (gpus > 0) {
		need.gpus = (uint16_t)devices;
		need.gpu_milli = (uint16_t)lround(gpus * SL_FIT_WHOLE);
	}
	return need;
}

static bool same_kind(const struct task *a, const struct task *b)
{
	return !memcmp(&a->need, &b->need, sizeof(a->need)) &&
	       !strcmp(a->sub_group, b->sub_group);
}

static void read_tasks(struct table *t, const json_t *record, struct job *job)
{
	size_t i;
	json_t *value;

	json_array_foreach(get(record, "Tasks"), i, value)
	{
		struct task *task = &job->task[job->tasks++];
		const char *group =
			json_string_value(json_array_get(get(value, "GPUGroups"), 0));

		snprintf(task->name, sizeof(task->name), "%s-%zu", job->name, i);
		task->name_state = text(value, "State");
		task->node = text(value, "NodeName");
		task->sub_group = text(value, "SubGroupName");
		task->sub_group = task->sub_group ? task->sub_group : "";
		task->priority = (uint32_t)number(value, "Priority", 0);
		task->has_group = group;
		task->group = group ? (uint32_t)atoi(group) : 0;
		task->need = need_of(t, record, value);
		t->piped |= !strcmp(task->name_state, "Pipelined");
	}
}

/* Equal tasks form a part; within it those of higher priority come first. */
static void make_parts(struct job *job, double least)
{
	uint32_t next = 0, left;
	bool groups = false;

	for (uint32_t i = 0; i < job->tasks; i++) {
		struct task *first = &job->task[i];
		uint32_t tasks = 0;
		bool seen = false;

		groups |= first->sub_group[0] != 0;
		for (uint32_t k = 0; k < i; k++)
			seen |= same_kind(&job->task[k], first);
		if (seen)
			continue;
		for (uint32_t k = i; k < job->tasks; k++) {
			struct task *task = &job->task[k];

			if (!same_kind(task, first))
				continue;
			task->part = job->parts;
			task->number = next;
			tasks++;
			for (uint32_t m = i; m < job->tasks; m++) {
				const struct task *other = &job->task[m];

				task->number +=
					m != k && same_kind(other, task) &&
					(other->priority > task->priority ||
						(other->priority == task->priority &&
							m < k));
			}
		}
		job->least[job->parts++] = tasks;
		next += tasks;
	}
	left = least > 0 ? (uint32_t)least : job->tasks;
	for (uint32_t p = 0; p < job->parts; p++) {
		if (groups && job->parts > 1)
			job->least[p] = 1;
		else if (job->least[p] > left)
			job->least[p] = left;
		left -= job->least[p] < left ? job->least[p] : left;
	}
}

static void add_job(struct table *t, struct job *job)
{
	for (uint32_t p = 0; p < job->parts; p++) {
		struct sl_cluster_event event = {.type = p ? SL_CLUSTER_EVENT_TASKS_ADD
							   : SL_CLUSTER_EVENT_JOB_ADD};
		uint32_t tasks = 0;
		struct sl_need need = {0};

		for (uint32_t i = 0; i < job->tasks; i++) {
			if (job->task[i].part == p) {
				tasks++;
				need = job->task[i].need;
			}
		}
		if (p) {
			event.tasks_add.job = (uint64_t)(job - t->job) + 1;
			event.tasks_add.tasks = tasks;
			event.tasks_add.least = job->least[p];
			event.tasks_add.need = need;
		} else {
			event.job_add.job = (uint64_t)(job - t->job) + 1;
			event.job_add.project = job->queue_number + 1;
			event.job_add.priority = job->priority;
			event.job_add.flags =
				job->priority < 100 ? SL_JOB_PREEMPTIBLE : 0;
			event.job_add.tasks = tasks;
			event.job_add.least = job->least[p];
			event.job_add.need = need;
			event.job_add.preempt_delay = job->delay;
			event.job_add.waited = job->waited;
			event.job_add.stale_grace = job->stale_grace;
		}
		step(t, event);
	}
}

/* How long it may be stale, waits before it takes from others, and has waited. */
static void read_times(const json_t *record, struct job *job)
{
	double grace = number(get(record, "PerJobStalenessGracePeriod"), "Duration", 0);

	job->stale_grace = grace < 0 ? SL_NS_NEVER : (sl_ns)grace * SL_S;
	job->delay = (sl_ns)number(get(record, "PreemptionDelay"), "Duration", 0) * SL_S;
	job->waited = (sl_ns)number(record, "JobAgeInMinutes", 0) * 60 * SL_S;
}

static void add_jobs(struct table *t)
{
	size_t i;
	json_t *record;

	json_array_foreach(get(t->table, "Jobs"), i, record)
	{
		struct job *job = &t->job[t->jobs++];

		job->name = text(record, "Name");
		job->queue = text(record, "QueueName");
		job->queue_number = find(t->queue, t->queues, job->queue);
		job->priority = (int32_t)number(record, "Priority", DEFAULT_PRIORITY);
		if (number(record, "StaleDuration", -1) >= 0)
			t->wait = (sl_ns)number(record, "StaleDuration", 0) * SL_S;
		read_times(record, job);
		read_tasks(t, record, job);
		make_parts(job, number(record, "MinAvailable", 0));
		add_job(t, job);
	}
}

/* The GPUs that a task held from the beginning. */
static uint32_t gpus_of(struct table *t, const struct task *task, uint32_t node)
{
	uint32_t milli = sl_fit_milli(&t->fit[node], &task->need), mask = 0;

	for (uint32_t n = 0; n < task->need.gpus; n++) {
		uint32_t best = UINT32_MAX;

		for (uint32_t g = 0; g < t->gpus[node]; g++) {
			if (mask >> g & 1 || t->left[node][g] < (int32_t)milli)
				continue;
			if (best == UINT32_MAX || t->left[node][g] < t->left[node][best])
				best = g;
		}
		if (task->has_group && !n)
			best = task->group;
		if (best == UINT32_MAX)
			return mask;
		t->left[node][best] -= (int32_t)milli;
		mask |= 1u << best;
	}
	return mask;
}

static bool stands(const struct task *task)
{
	return !strcmp(task->name_state, "Running") ||
	       !strcmp(task->name_state, "Releasing") ||
	       !strcmp(task->name_state, "StuckInReleasing") ||
	       !strcmp(task->name_state, "Failed");
}

static void put_task(struct table *t, struct job *job, struct task *task)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_RUNS};
	uint32_t node = find(t->node, t->nodes, task->node);

	event.task_runs.job = (uint64_t)(job - t->job) + 1;
	event.task_runs.task = task->number;
	event.task_runs.node = node + 1;
	event.task_runs.gpu_mask = gpus_of(t, task, node);
	step(t, event);
	job->started = task->stood = true;
}

static void put_tasks(struct table *t, bool groups)
{
	for (uint32_t j = 0; j < t->jobs; j++) {
		for (uint32_t i = 0; i < t->job[j].tasks; i++) {
			struct task *task = &t->job[j].task[i];

			if (stands(task) && task->has_group == groups)
				put_task(t, &t->job[j], task);
		}
	}
}

static void end_tasks(struct table *t)
{
	for (uint32_t j = 0; j < t->jobs; j++) {
		for (uint32_t i = 0; i < t->job[j].tasks; i++) {
			const struct task *task = &t->job[j].task[i];
			struct sl_cluster_event event = {0};

			if (!strcmp(task->name_state, "Failed")) {
				event.type = SL_CLUSTER_EVENT_TASK_ENDED;
				event.task_ended.job = j + 1;
				event.task_ended.task = task->number;
				event.task_ended.failed = 1;
				step(t, event);
			} else if (strstr(task->name_state, "Releasing")) {
				event.type = SL_CLUSTER_EVENT_TASK_STOPS;
				event.task_stops.job = j + 1;
				event.task_stops.task = task->number;
				step(t, event);
				t->stuck |= !strcmp(task->name_state, "StuckInReleasing");
			}
		}
	}
}

static void set_up(struct table *t)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CONFIG};

	t->unit = 1e6;
	t->now = BEGINNING;
	t->arena = sl_arena_new();
	t->cluster = sl_cluster_new(t->arena, MOST, MOST);
	event.config.placement = SL_PLACE_BESTFIT;
	event.config.sums_free = 1;
	step(t, event);
	add_nodes(t);
	add_queues(t);
	add_jobs(t);
	put_tasks(t, true);
	put_tasks(t, false);
	end_tasks(t);
	if (t->stuck)
		t->wait = 600 * SL_S;
	t->now += t->wait;
}

/* --- Playing. --- */

static void cycle(struct table *t, uint32_t which)
{
	struct sl_cluster_event event = {
		.type = SL_CLUSTER_EVENT_CYCLE, .cycle = {.which = which}};

	t->changes = 0;
	step(t, event);
}

static struct sl_cluster_task_view look(
	const struct table *t, const struct job *job, const struct task *task)
{
	return sl_cluster_task(t->cluster, (uint64_t)(job - t->job) + 1, task->number);
}

/* Between rounds: stopped tasks are gone, bound ones run. */
static void pass(struct table *t)
{
	for (uint32_t j = 0; j < t->jobs; j++) {
		for (uint32_t i = 0; i < t->job[j].tasks; i++) {
			const struct task *task = &t->job[j].task[i];
			struct sl_cluster_task_view view = look(t, &t->job[j], task);
			struct sl_cluster_event event = {0};

			if (view.state == SL_TASK_RELEASING) {
				event.type = SL_CLUSTER_EVENT_TASK_ENDED;
				event.task_ended.job = j + 1;
				event.task_ended.task = task->number;
				event.task_ended.again = 1;
				step(t, event);
			} else if (view.state == SL_TASK_BINDING) {
				event.type = SL_CLUSTER_EVENT_TASK_RUNS;
				event.task_runs.job = j + 1;
				event.task_runs.task = task->number;
				step(t, event);
			}
		}
	}
}

static uint32_t which_of(const char *action)
{
	static const struct {
		const char *name;
		uint32_t which;
	} names[] = {{"allocate", SL_CYCLE_ALLOCATE},
		{"consolidation", SL_CYCLE_CONSOLIDATE}, {"reclaim", SL_CYCLE_RECLAIM},
		{"preempt", SL_CYCLE_PREEMPT}, {"stalegangeviction", SL_CYCLE_STALE}};

	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++) {
		if (!strcmp(names[i].name, action))
			return names[i].which;
	}
	return SL_CYCLE_ALL;
}

/* --- Judging. --- */

static const char *state_name(
	const struct job *job, const struct task *task, struct sl_cluster_task_view view)
{
	if (job->refused)
		return "Pending";
	switch (view.state) {
	case SL_TASK_PIPELINED: return "Pipelined";
	case SL_TASK_BINDING: return "Binding";
	case SL_TASK_RUNNING: return "Running";
	case SL_TASK_RELEASING: return view.moves ? "Pipelined" : "Releasing";
	case SL_TASK_ENDED: return "Failed";
	default: return "Pending";
	}
}

/* Binding and Running are both: placed now. */
static const char *kind_of(const char *state)
{
	if (!strcmp(state, "Binding"))
		return "Running";
	return !strcmp(state, "StuckInReleasing") ? "Releasing" : state;
}

static const json_t *expected(
	const struct table *t, const struct job *job, const struct task *task)
{
	const json_t *of_task = get(get(t->table, "TaskExpectedResults"), task->name);

	return of_task ? of_task : get(get(t->table, "JobExpectedResults"), job->name);
}

static void judge_task(const struct table *t, const struct job *job,
	const struct task *task, struct verdict *verdict)
{
	const json_t *wanted = expected(t, job, task);
	const char *state = text(wanted, "Status"), *node = text(wanted, "NodeName");
	struct sl_cluster_task_view view = look(t, job, task);
	const char *is = state_name(job, task, view);
	uint64_t at = view.moves ? view.next_node : view.node;

	if (!state)
		return;
	if (strcmp(kind_of(state), kind_of(is)) && !verdict->differs[0])
		snprintf(verdict->differs, sizeof(verdict->differs), "%s is %s, not %s",
			task->name, is, state);
	if (node && strcmp(state, "Pending") && strcmp(state, "Failed") &&
		(!at || strcmp(t->node[at - 1], node)))
		verdict->placed = false;
}

static void violate(struct verdict *verdict, const char *what, const char *name)
{
	if (!verdict->violation[0])
		snprintf(verdict->violation, sizeof(verdict->violation), "%s: %s", name,
			what);
}

/* Own accounts: the tasks on each node, now and once all stopped ones are gone. */
static void judge_nodes(const struct table *t, struct verdict *verdict)
{
	for (uint32_t n = 0; n < t->nodes; n++) {
		int64_t now[SL_FIT_GPUS_MAX] = {0}, later[SL_FIT_GPUS_MAX] = {0};
		int64_t cpu[2] = {0}, memory[2] = {0};

		for (uint32_t j = 0; j < t->jobs; j++) {
			for (uint32_t i = 0; i < t->job[j].tasks; i++) {
				const struct task *task = &t->job[j].task[i];
				struct sl_cluster_task_view v = look(t, &t->job[j], task);
				struct sl_place next = v.moves ? v.next : v.place;
				bool here = v.node == n + 1 &&
					    (v.state == SL_TASK_BINDING ||
						    v.state == SL_TASK_RUNNING ||
						    v.state == SL_TASK_RELEASING);
				bool goes = v.state == SL_TASK_RELEASING;
				bool comes =
					v.moves ? v.next_node == n + 1
						: v.node == n + 1 &&
							  (here ||
								  v.state ==
									  SL_TASK_PIPELINED) &&
							  !goes;

				for (uint32_t g = 0; g < SL_FIT_GPUS_MAX; g++) {
					now[g] += here && v.place.gpu_mask >> g & 1
							  ? v.place.milli
							  : 0;
					later[g] += comes && next.gpu_mask >> g & 1
							    ? next.milli
							    : 0;
				}
				cpu[0] += here ? task->need.cpu_milli : 0;
				cpu[1] += comes ? task->need.cpu_milli : 0;
				memory[0] += here ? task->need.memory_mib : 0;
				memory[1] += comes ? task->need.memory_mib : 0;
			}
		}
		for (uint32_t g = 0; g < SL_FIT_GPUS_MAX; g++) {
			if (now[g] > SL_FIT_WHOLE || later[g] > SL_FIT_WHOLE)
				violate(verdict, "a GPU is over-allocated", t->node[n]);
		}
		if (cpu[0] > t->fit[n].cpu_milli || cpu[1] > t->fit[n].cpu_milli ||
			memory[0] > t->fit[n].memory_mib ||
			memory[1] > t->fit[n].memory_mib)
			violate(verdict, "cores or memory are over-allocated",
				t->node[n]);
	}
}

/* A gang runs whole or not at all; one that ran keeps its minimum or loses all. */
static void judge_gangs(
	const struct table *t, const char *action, struct verdict *verdict)
{
	for (uint32_t j = 0; j < t->jobs; j++) {
		const struct job *job = &t->job[j];
		uint32_t placed[MOST] = {0}, all = 0;
		bool failed = false;

		for (uint32_t i = 0; i < job->tasks; i++) {
			struct sl_cluster_task_view view = look(t, job, &job->task[i]);
			bool has = view.state == SL_TASK_BINDING ||
				   view.state == SL_TASK_RUNNING ||
				   view.state == SL_TASK_PIPELINED || view.moves;

			placed[job->task[i].part] += has;
			all += has;
			failed |= !strcmp(job->task[i].name_state, "Failed") ||
				  strstr(job->task[i].name_state, "Releasing");
		}
		for (uint32_t p = 0; p < job->parts && all && !failed; p++) {
			if (placed[p] < job->least[p])
				violate(verdict, "a part of the gang alone", job->name);
		}
	}
}

static void judge_quotas(const struct table *t, struct verdict *verdict)
{
	const struct sl_tree *tree = sl_cluster_tree(t->cluster);

	for (uint32_t j = 0; j < t->jobs; j++) {
		const struct job *job = &t->job[j];
		bool comes = false;

		for (uint32_t i = 0; i < job->tasks; i++) {
			struct sl_cluster_task_view view = look(t, job, &job->task[i]);

			comes |= !job->task[i].stood &&
				 (view.state == SL_TASK_BINDING ||
					 view.state == SL_TASK_PIPELINED);
		}
		for (uint32_t q = sl_tree_find(tree, job->queue_number + 1);
			comes && q != SL_PROJECT_NONE; q = tree->all[q].parent) {
			const struct sl_project *project = &tree->all[q];
			const struct sl_quantity *most = &project->rules.limit;

			for (int r = 0; r < SL_RESOURCES; r++) {
				if (most->of[r] >= 0 && project->has.of[r] > most->of[r])
					violate(verdict, "above a limit", job->name);
				if (job->priority >= 100 &&
					project->rules.quota.of[r] >= 0 &&
					project->fixed.of[r] > project->rules.quota.of[r])
					violate(verdict, "not preemptible, above a quota",
						job->name);
			}
		}
	}
}

/* The queues that lose must be the table's, as far as it names them. */
static void judge_losers(const struct table *t, struct verdict *verdict)
{
	uint64_t lose = 0, should = 0;
	bool open = false;

	for (uint32_t j = 0; j < t->jobs; j++) {
		const struct job *job = &t->job[j];

		for (uint32_t i = 0; i < job->tasks; i++) {
			const struct task *task = &job->task[i];
			const char *state = text(expected(t, job, task), "Status");
			const char *is = state_name(job, task, look(t, job, task));

			if (!task->stood || strcmp(task->name_state, "Running"))
				continue;
			open |= !state;
			if (!strcmp(is, "Releasing"))
				lose |= 1ull << job->queue_number;
			if (state && !strcmp(state, "Releasing"))
				should |= 1ull << job->queue_number;
		}
	}
	if (open ? (should & ~lose) != 0 : lose != should)
		violate(verdict, "other queues lose than in the table",
			text(t->table, "Name") ? text(t->table, "Name") : "table");
}

static const char *reason_of(
	const struct table *t, const json_t *record, const char *differs)
{
	size_t i;
	json_t *tag;

	if (t->piped)
		return "it begins with a promise, which the machine makes only itself";
	if (strstr(differs, "is Binding, not Pipelined"))
		return "what is free now is used now";
	if (strstr(differs, "is Pipelined, not Running"))
		return "another one moves: the search for who has to is greedy";
	json_array_foreach(get(record, "tags"), i, tag)
	{
		if (!strcmp(json_string_value(tag), "conf"))
			return "it depends on a setting that the record does not have";
	}
	for (uint32_t j = 0; j < t->jobs; j++) {
		if (t->job[j].parts > 1 && t->job[j].task[0].sub_group[0])
			return "the least of its sub groups is not in the record";
	}
	return NULL;
}

static void judge(struct table *t, const json_t *record, const char *action,
	struct verdict *verdict)
{
	struct sl_error err = {{0}};

	for (uint32_t j = 0; j < t->jobs; j++) {
		for (uint32_t i = 0; i < t->job[j].tasks; i++)
			judge_task(t, &t->job[j], &t->job[j].task[i], verdict);
	}
	judge_nodes(t, verdict);
	judge_gangs(t, action, verdict);
	judge_quotas(t, verdict);
	judge_losers(t, verdict);
	if (sl_cluster_check(t->cluster, &err))
		violate(verdict, err.text, "books");
	if (verdict->differs[0])
		verdict->reason = reason_of(t, record, verdict->differs);
}

void table_play(
	const json_t *record, const char *action, bool verbose, struct verdict *verdict)
{
	struct table *t = calloc(1, sizeof(*t));
	const json_t *rounds = get(record, "rounds");
	uint32_t until = (uint32_t)number(rounds, "RoundsUntilMatch", 2);
	uint32_t after = (uint32_t)number(rounds, "RoundsAfterMatch", 5);

	if (!t)
		abort();
	t->table = get(record, "case");
	t->verbose = verbose;
	set_up(t);
	if (!rounds) {
		cycle(t, which_of(action));
		judge(t, record, action, verdict);
	}
	for (uint32_t i = 0; rounds && i < until; i++) {
		t->now += SL_S;
		cycle(t, SL_CYCLE_ALL);
		pass(t);
	}
	if (rounds)
		judge(t, record, action, verdict);
	for (uint32_t i = 0; rounds && i < after; i++) {
		t->now += SL_S;
		cycle(t, SL_CYCLE_ALL);
		if (t->changes)
			violate(verdict, "something changes after the outcome was there",
				"rounds");
		pass(t);
	}
	sl_arena_free(t->arena);
	free(t);
}
