/*
 * day - 200 jobs of three projects over a day on 4 GPUs, in virtual time
 *
 *   cluster-day [--days N] [--seed N] [--trace]
 *
 * One node whose host memory holds some of the parked jobs. Most jobs come by day and run for
 * minutes to hours; some fail at first. A day is over when all jobs have ended. N days are played,
 * each from its own seed. The program's own accounts are checked after every instant:
 *   no GPU is idle while a job waits that fits on it;
 *   a project gets its quota: no job within it waits longer than stopping takes while another
 *   project holds enough GPUs above its own quota;
 *   every waiting job says why.
 * In the end every job has ended, and none was stopped more often than a bound. Exit status 1: a
 * rule broke.
 */
#include "../common/options.h"
#include "policy/cluster.h"
#include "../common/rng.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GPUS     4
#define JOBS     200
#define PROJECTS 3
#define GANG     2
#define DAY      (24 * 3600 * SL_S)
/* Bound on the time in which all jobs of one day end, whatever they wait for. */
#define DAYS_MOST 3
/* Stopping takes up to 10 s, starting up to 3; moving is both, twice. */
#define QUOTA_WAIT (60 * SL_S)
#define STOPS_MOST 60
#define MOVES_MOST 12 /* an hour */

struct task {
	enum sl_task_state state; /* PENDING also while PIPELINED */
	bool promised, parked, giving_up, fails;
	struct sl_place place, next;
	enum sl_stop_how how;
	sl_ns due, began, left; /* left: work */
};

struct job {
	uint32_t project, tasks, flags, failures, stops;
	int32_t priority;
	struct sl_need need;
	sl_ns comes, work, swap_cost, paused_until, failed_at, ended, in_quota_since;
	uint64_t park_mib;
	bool here, over;
	struct task task[GANG];
};

struct day {
	struct sl_arena *arena;
	struct sl_cluster *cluster;
	struct sl_rng rng;
	sl_ns now, wake, longest;
	struct job job[JOBS];
	uint32_t binds, parks, ends, moves, kept, given_up, failures, actions;
	bool trace,
		moving; /* moving: on every other day, parked jobs return to any GPU */
	char broken[256];
};

static const int64_t quota[PROJECTS] = {2000, 1000, 1000};

static void broken(struct day *d, const char *format, ...) SL_PRINTF(2, 3);
static void broken(struct day *d, const char *format, ...)
{
	va_list args;

	if (d->broken[0])
		return;
	va_start(args, format);
	(void)vsnprintf(d->broken, sizeof(d->broken), format, args);
	va_end(args);
}

static uint64_t below(struct day *d, uint64_t bound)
{
	return sl_rng_below(&d->rng, bound);
}

/* --- Events to the machine, and its actions. --- */

static void on_stop(struct day *d, struct job *job, struct task *task,
	const struct sl_cluster_action *action)
{
	uint32_t how = action->stop.how;

	d->parks += how == SL_STOP_PARK;
	d->ends += how == SL_STOP_TERMINATE;
	d->moves += how == SL_STOP_MOVE;
	d->kept += how == SL_STOP_MOVE && job->flags & SL_JOB_MOVES;
	d->given_up += how == SL_STOP_GIVE_UP;
	task->due = d->now + (1 + below(d, 10)) * SL_S;
	if (how == SL_STOP_GIVE_UP) {
		task->giving_up = true;
		return;
	}
	if (task->state == SL_TASK_RUNNING) {
		sl_ns ran = d->now - task->began;

		/* A job that moves or is parked goes on where it was. */
		task->left = how == SL_STOP_TERMINATE || how == SL_STOP_STALE
				     ? job->work
				     : sl_sub_sat(task->left, ran);
	}
	task->state = SL_TASK_RELEASING;
	task->how = (enum sl_stop_how)how;
	job->stops += task == job->task && how != SL_STOP_MOVE;
	if (how == SL_STOP_PARK || how == SL_STOP_TERMINATE)
		job->paused_until = d->now + 10 * job->swap_cost;
}

static void on_action(void *context, const struct sl_cluster_action *action)
{
	struct day *d = context;
	struct job *job;
	struct task *task;

	if (action->type == SL_CLUSTER_ACTION_WAKE_AT) { /* of no job */
		d->wake = sl_min_u64(d->wake, action->wake_at.at);
		return;
	}
	job = &d->job[action->bind.job - 1];
	task = &job->task[action->bind.task];
	if (d->trace)
		printf("%8.1f  %s job %lu task %u\n", (double)d->now / SL_S,
			sl_cluster_action_name(action->type),
			(unsigned long)action->bind.job, action->bind.task);
	d->actions++;
	if (action->type == SL_CLUSTER_ACTION_BIND) {
		d->binds++;
		task->state = SL_TASK_BINDING;
		task->parked = false;
		task->place =
			(struct sl_place){0, action->bind.gpu_mask, action->bind.milli};
		task->due = d->now + (1 + below(d, 3)) * SL_S;
	} else if (action->type == SL_CLUSTER_ACTION_STOP) {
		on_stop(d, job, task, action);
	} else if (action->type != SL_CLUSTER_ACTION_PIPELINE) {
		broken(d, "%s", sl_cluster_action_name(action->type));
	}
}

static void send(struct day *d, struct sl_cluster_event event)
{
	struct sl_error err = {{0}};

	sl_cluster_step(d->cluster, d->now, &event, on_action, d);
	if (sl_cluster_check(d->cluster, &err))
		broken(d, "%s", err.text);
}

static void refresh(struct day *d)
{
	for (uint32_t j = 0; j < JOBS; j++) {
		for (uint32_t i = 0; d->job[j].here && i < d->job[j].tasks; i++) {
			struct task *task = &d->job[j].task[i];
			struct sl_cluster_task_view view =
				sl_cluster_task(d->cluster, j + 1, i);

			task->promised = view.state == SL_TASK_PIPELINED || view.moves;
			task->next = view.moves ? view.next : view.place;
		}
	}
}

static void cycles(struct day *d)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CYCLE};

	event.cycle.which = SL_CYCLE_ALL;
	if (d->now >= d->wake)
		d->wake = SL_NS_NEVER;
	for (int i = 0; i < 100; i++) {
		d->actions = 0;
		send(d, event);
		if (!d->actions) {
			refresh(d);
			return;
		}
	}
	broken(d, "a hundred cycles at one instant, and still something changes");
}

/* --- The day. --- */

static void draw_need(struct day *d, struct job *job)
{
	uint64_t kind = below(d, 20);

	job->need = (struct sl_need){1000, 1024, 1, SL_FIT_WHOLE, 0, 0, 0};
	job->tasks = 1;
	if (kind < 4)
		job->need.gpu_milli = kind % 2 ? 250 : 500;
	else if (kind < 6)
		job->need.gpus = 2;
	else if (kind == 6)
		job->need.gpus = GPUS;
	else if (kind < 9)
		job->tasks = GANG;
}

static void draw_job(struct day *d, struct job *job)
{
	/* Many short ones, and some for hours. */
	uint64_t minutes = 2 + below(d, below(d, 5) ? 20 : 90);

	*job = (struct job){.project = (uint32_t)below(d, PROJECTS)};
	draw_need(d, job);
	job->work = minutes * 60 * SL_S;
	/* Most of them between 8 and 18 o'clock. */
	job->comes = below(d, 3) ? 8 * 3600 * SL_S + below(d, 10 * 3600) * SL_S
				 : below(d, DAY / SL_S) * SL_S;
	job->priority = SL_JOB_PRIORITY_TRAIN + (int32_t)below(d, 3) * 10;
	job->flags = SL_JOB_PREEMPTIBLE;
	job->flags |= below(d, 2) ? SL_JOB_PARKS : 0;
	job->flags |= below(d, 2) ? SL_JOB_GIVES_UP : 0;
	if (d->moving && job->flags & SL_JOB_PARKS)
		job->flags |= SL_JOB_MOVES | SL_JOB_BURSTS;
	/* Cannot be preempted: only what fits into every quota. */
	if (!below(d, 10) && job->tasks == 1 && job->need.gpus == 1) {
		job->priority = SL_JOB_PRIORITY_BUILD;
		job->flags = 0;
	}
	job->park_mib = (1 + below(d, 8)) * 2048;
	job->swap_cost = (1 + below(d, 5)) * SL_S;
	job->failures = below(d, 20) ? 0 : 1 + (uint32_t)below(d, 3);
	for (uint32_t i = 0; i < job->tasks; i++)
		job->task[i] = (struct task){.left = job->work, .due = SL_NS_NEVER};
}

static void begin(struct day *d, uint64_t seed)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_PUT};

	d->rng.state = seed;
	d->arena = sl_arena_new();
	d->cluster = sl_cluster_new(d->arena, 1, PROJECTS);
	d->wake = SL_NS_NEVER;
	d->moving = seed & 1;
	if (d->moving) {
		struct sl_cluster_event config = {.type = SL_CLUSTER_EVENT_CONFIG};

		config.config.move_most = MOVES_MOST;
		config.config.spread = 1;
		send(d, config);
	}
	event.node_put.node = 1;
	event.node_put.cpu_milli = 64000;
	event.node_put.memory_mib = 262144;
	event.node_put.gpus = GPUS;
	event.node_put.gpu_mib = 40960;
	event.node_put.pool_mib = 32768;
	send(d, event);
	for (uint32_t p = 0; p < PROJECTS; p++) {
		struct sl_project_rules *rules = &event.project_put.rules;

		event = (struct sl_cluster_event){.type = SL_CLUSTER_EVENT_PROJECT_PUT};
		for (int r = 0; r < SL_RESOURCES; r++) {
			rules->quota.of[r] = rules->limit.of[r] = SL_QUOTA_ALL;
			rules->weight[r] = 1;
		}
		rules->quota.of[SL_RES_GPU] = quota[p];
		event.project_put.project = p + 1;
		send(d, event);
	}
	for (uint32_t j = 0; j < JOBS; j++)
		draw_job(d, &d->job[j]);
}

static void comes(struct day *d, uint32_t j)
{
	struct job *job = &d->job[j];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};

	job->here = true;
	event.job_add.job = j + 1;
	event.job_add.project = job->project + 1;
	event.job_add.priority = job->priority;
	event.job_add.flags = job->flags;
	event.job_add.tasks = job->tasks;
	event.job_add.need = job->need;
	event.job_add.park_mib = job->park_mib;
	event.job_add.swap_cost = job->swap_cost;
	event.job_add.resume_wait = 600 * SL_S;
	send(d, event);
}

static void leaves(struct day *d, uint32_t j)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_REMOVE};
	struct job *job = &d->job[j];

	for (uint32_t i = 0; i < job->tasks; i++) {
		if (job->task[i].state != SL_TASK_ENDED)
			return;
	}
	job->here = false;
	job->over = true;
	job->ended = d->now;
	event.job_remove.job = j + 1;
	send(d, event);
}

/* Its moment has come: it runs, is done, has failed, or is gone. */
static void goes_on(struct day *d, uint32_t j, uint32_t i)
{
	struct job *job = &d->job[j];
	struct task *task = &job->task[i];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_ENDED};

	event.task_ended.job = j + 1;
	event.task_ended.task = i;
	event.task_ended.again = 1;
	task->due = SL_NS_NEVER;
	if (task->giving_up) {
		task->giving_up = task->parked = false;
		task->left = job->work;
	} else if (task->state == SL_TASK_BINDING) {
		event.type = SL_CLUSTER_EVENT_TASK_RUNS;
		event.task_runs.node = 1;
		event.task_runs.gpu_mask = task->place.gpu_mask;
		event.task_runs.ago = 0;
		task->state = SL_TASK_RUNNING;
		task->began = d->now;
		task->fails = job->failures > 0;
		task->due = d->now + (task->fails ? SL_S : task->left);
	} else if (task->state == SL_TASK_RUNNING) {
		event.task_ended.again = event.task_ended.failed = task->fails;
		task->state = task->fails ? SL_TASK_PENDING : SL_TASK_ENDED;
		if (task->fails) {
			job->failures -= i + 1 == job->tasks;
			job->failed_at = d->now;
			d->failures++;
		}
	} else {
		task->parked = task->how == SL_STOP_PARK ||
			       (task->how == SL_STOP_MOVE && job->flags & SL_JOB_MOVES);
		task->state = SL_TASK_PENDING;
	}
	send(d, event);
	if (task->state == SL_TASK_ENDED)
		leaves(d, j);
}

/* --- Judging. --- */

static bool stands(const struct task *task)
{
	return task->state == SL_TASK_BINDING || task->state == SL_TASK_RUNNING;
}

static void take(int32_t left[GPUS], struct sl_place place, int sign)
{
	for (uint32_t g = 0; g < GPUS; g++) {
		if (place.gpu_mask >> g & 1)
			left[g] -= sign * place.milli;
	}
}

/* GPUs that are free: neither in use nor promised. */
static void free_for_all(const struct day *d, int32_t left[GPUS])
{
	int32_t later[GPUS];

	for (uint32_t g = 0; g < GPUS; g++)
		left[g] = later[g] = SL_FIT_WHOLE;
	for (uint32_t j = 0; j < JOBS; j++) {
		for (uint32_t i = 0; d->job[j].here && i < d->job[j].tasks; i++) {
			const struct task *task = &d->job[j].task[i];

			if (stands(task) || task->state == SL_TASK_RELEASING)
				take(left, task->place, 1);
			if (stands(task))
				take(later, task->place, 1);
			if (task->promised)
				take(later, task->next, 1);
		}
	}
	for (uint32_t g = 0; g < GPUS; g++)
		left[g] = left[g] < later[g] ? left[g] : later[g];
}

/* A parked job that does not move can use its own GPUs, others any. */
static bool fits(const struct job *job, const int32_t free[GPUS])
{
	int32_t milli = job->need.gpu_milli, places = 0, wanted = 0, left[GPUS];

	memcpy(left, free, sizeof(left));
	for (uint32_t i = 0; i < job->tasks; i++) {
		if (job->task[i].parked && !(job->flags & SL_JOB_MOVES))
			take(left, job->task[i].place, 1);
		else
			wanted += job->need.gpus;
	}
	for (uint32_t g = 0; g < GPUS; g++) {
		if (left[g] < 0)
			return false;
		places += left[g] / milli;
	}
	return places >= wanted;
}

static int64_t has(const struct day *d, uint32_t project, bool for_good)
{
	int64_t sum = 0;

	for (uint32_t j = 0; j < JOBS; j++) {
		const struct job *job = &d->job[j];

		if (!job->here || job->project != project ||
			(for_good && job->flags & SL_JOB_PREEMPTIBLE))
			continue;
		for (uint32_t i = 0; i < job->tasks; i++)
			sum += stands(&job->task[i]) || job->task[i].promised
				       ? job->need.gpus * job->need.gpu_milli
				       : 0;
	}
	return sum;
}

static int64_t wants(const struct job *job)
{
	return (int64_t)job->tasks * job->need.gpus * job->need.gpu_milli;
}

/* All of the job is pending, and it lacks nothing but GPUs. */
static bool is_runnable(const struct day *d, const struct job *job)
{
	if (!job->here || (job->failed_at && d->now < job->failed_at + 300 * SL_S))
		return false;
	for (uint32_t i = 0; i < job->tasks; i++) {
		const struct task *task = &job->task[i];

		if (task->state != SL_TASK_PENDING || task->promised || task->giving_up)
			return false;
	}
	return job->flags & SL_JOB_PREEMPTIBLE ||
	       has(d, job->project, true) + wants(job) <= quota[job->project];
}

/* There would be room if another project lost all that it may lose: what it has above its quota, of
 * jobs that may be stopped. */
static bool is_kept_from(const struct day *d, const struct job *job)
{
	int32_t left[GPUS];

	free_for_all(d, left);
	for (uint32_t j = 0; j < JOBS; j++) {
		const struct job *other = &d->job[j];
		bool whole = true;

		if (!other->here || other->project == job->project ||
			!(other->flags & SL_JOB_PREEMPTIBLE) ||
			(other->flags & SL_JOB_PARKS &&
				!(other->flags & SL_JOB_GIVES_UP)) ||
			has(d, other->project, false) - wants(other) <
				quota[other->project])
			continue;
		for (uint32_t i = 0; i < other->tasks; i++)
			whole &= other->task[i].state == SL_TASK_RUNNING;
		for (uint32_t i = 0; whole && i < other->tasks; i++)
			take(left, other->task[i].place, -1);
		if (fits(job, left))
			return true;
		for (uint32_t i = 0; whole && i < other->tasks; i++)
			take(left, other->task[i].place, 1);
	}
	return false;
}

static void judge_quota(struct day *d, uint32_t j)
{
	struct job *job = &d->job[j];
	sl_ns waited;

	if (d->now < job->paused_until ||
		has(d, job->project, false) + wants(job) > quota[job->project] ||
		!is_kept_from(d, job)) {
		job->in_quota_since = 0;
		return;
	}
	if (!job->in_quota_since)
		job->in_quota_since = d->now;
	waited = d->now - job->in_quota_since;
	d->longest = sl_max_u64(d->longest, waited);
	if (waited > QUOTA_WAIT)
		broken(d,
			"job %u waits within the quota of project %u, which others have",
			j + 1, job->project + 1);
}

static void judge(struct day *d)
{
	int32_t left[GPUS];

	free_for_all(d, left);
	for (uint32_t g = 0; g < GPUS; g++) {
		if (left[g] < 0)
			broken(d, "GPU %u is promised or taken twice", g);
	}
	for (uint32_t j = 0; j < JOBS && !d->broken[0]; j++) {
		struct job *job = &d->job[j];
		struct sl_cluster_job_view view = sl_cluster_job(d->cluster, j + 1);

		if (!job->here)
			continue;
		if (job->stops > STOPS_MOST)
			broken(d, "job %u was stopped %u times", j + 1, job->stops);
		if (view.in[SL_TASK_PENDING] && !view.because.reason)
			broken(d, "job %u waits, and does not say why", j + 1);
		if (!is_runnable(d, job)) {
			job->in_quota_since = 0;
			continue;
		}
		if (fits(job, left))
			broken(d, "job %u waits (%d), and there is room for it", j + 1,
				view.because.reason);
		judge_quota(d, j);
	}
}

/* --- Time. --- */

/* The next moment at which something happens; SL_NS_NEVER: all is over. */
static sl_ns next(const struct day *d)
{
	sl_ns at = SL_NS_NEVER;
	bool open = false;

	for (uint32_t j = 0; j < JOBS; j++) {
		const struct job *job = &d->job[j];

		open |= !job->over;
		if (!job->here && !job->over)
			at = sl_min_u64(at, job->comes);
		for (uint32_t i = 0; job->here && i < job->tasks; i++)
			at = sl_min_u64(at, job->task[i].due);
	}
	return open ? sl_min_u64(at, d->wake) : SL_NS_NEVER;
}

static bool play(uint64_t seed, bool trace)
{
	static struct day d;
	uint64_t waits = 0;

	d = (struct day){.trace = trace};
	begin(&d, seed);
	while (!d.broken[0] && (d.now = next(&d)) != SL_NS_NEVER) {
		for (uint32_t j = 0; j < JOBS; j++) {
			if (!d.job[j].here && !d.job[j].over && d.job[j].comes <= d.now)
				comes(&d, j);
			for (uint32_t i = 0; d.job[j].here && i < d.job[j].tasks; i++) {
				if (d.job[j].task[i].due <= d.now)
					goes_on(&d, j, i);
			}
		}
		cycles(&d);
		judge(&d);
		if (d.now > DAYS_MOST * DAY)
			broken(&d, "not all jobs have ended after %d days", DAYS_MOST);
	}
	d.now = 0;
	for (uint32_t j = 0; j < JOBS; j++) {
		if (!d.job[j].over)
			broken(&d, "job %u never ends", j + 1);
		d.now = sl_max_u64(d.now, d.job[j].ended);
		waits += (d.job[j].ended - d.job[j].comes - d.job[j].work) / SL_S;
	}
	if (d.broken[0])
		printf("cluster-day: seed %lu: %s\n", (unsigned long)seed, d.broken);
	else
		printf("cluster-day: seed %lu: %d jobs over in %.1f h, %.0f min longer "
		       "than they ran each; %u bound, %u failed, %u parked, %u "
		       "terminated, "
		       "%u moved (%u lost nothing), %u given up; a quota was waited for "
		       "%.0f s at most\n",
			(unsigned long)seed, JOBS, (double)d.now / (3600.0 * SL_S),
			(double)waits / 60 / JOBS, d.binds, d.failures, d.parks, d.ends,
			d.moves, d.kept, d.given_up, (double)d.longest / SL_S);
	d.arena = sl_arena_free(d.arena);
	return !d.broken[0];
}

int main(int argc, char **argv)
{
	uint64_t days = 1, seed = sim_some_seed();
	bool trace = false;

	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc, known = true;

		if (!strcmp(argv[i], "--trace"))
			trace = true;
		else if (!strcmp(argv[i], "--days") && more)
			known = sim_read_number(argv[++i], &days);
		else if (!strcmp(argv[i], "--seed") && more)
			known = sim_read_number(argv[++i], &seed);
		else
			known = false;
		if (!known) {
			fprintf(stderr, "usage: cluster-day [--days N] [--seed N] "
					"[--trace]\n");
			return 2;
		}
	}
	for (uint64_t day = 0; day < days; day++) {
		if (!play(seed + day, trace))
			return 1;
	}
	return 0;
}
