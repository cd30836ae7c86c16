/*
 * tasks - the states of a task, and the books that go with each
 *
 *   PENDING -> PIPELINED -> BINDING -> RUNNING -> RELEASING -> PENDING or ENDED
 *
 * A project's books hold what is BINDING, RUNNING or promised (PIPELINED, or still RELEASING
 * elsewhere). Each function here leaves node, project and counts consistent; the caller calls
 * sl_cl_job_settle.
 */
#include "policy/cluster/internal.h"

#include <string.h>

#include "policy/mutant.h"

#define REFUSED_FOR (30 * SL_S)
/* How long a task that could not be stopped is no victim. */
#define SPARED_FOR (60 * SL_S)
/* Between two tries of a failing job; and how long a task must run before its failures are
 * forgotten. */
#define BACK_OFF_FIRST  SL_S
#define BACK_OFF_MOST   (300 * SL_S)
#define BACK_OFF_FORGET (600 * SL_S)

void sl_cl_task_state(
	struct sl_cluster *cl, struct sl_cl_task *task, enum sl_task_state state)
{
	struct sl_cl_part *part = task->part;
	uint32_t at = task->number - part->first;

	part->in[task->state]--;
	cl->in[task->state]--;
	task->state = (uint8_t)state;
	part->in[state]++;
	cl->in[state]++;
	if (state == SL_TASK_PENDING && at < part->pending_from)
		part->pending_from = at;
}

static void book(struct sl_cluster *cl, struct sl_cl_task *task, struct sl_place place)
{
	const struct sl_cl_job *job = task->part->job;

	task->booked = sl_cl_quantity(&task->part->class->need, place);
	sl_tree_book(&cl->tree, job->project, 1, &task->booked,
		sl_cl_preemptible(job) ? NULL : &task->booked, NULL);
}

static void unbook(struct sl_cluster *cl, struct sl_cl_task *task)
{
	const struct sl_cl_job *job = task->part->job;

	sl_tree_book(&cl->tree, job->project, -1, &task->booked,
		sl_cl_preemptible(job) ? NULL : &task->booked, NULL);
}

static void use(struct sl_cluster *cl, const struct sl_cl_task *task, int sign)
{
	struct sl_quantity amount = sl_cl_quantity(&task->part->class->need, task->place);

	const struct sl_cl_job *job = task->part->job;

	for (int r = 0; r < SL_RESOURCES; r++)
		cl->used.of[r] += sign * amount.of[r];
	sl_tree_hold(&cl->tree, job->project, sign, &amount,
		sl_cl_preemptible(job) ? NULL : &amount);
}

static void unpool(struct sl_cluster *cl, struct sl_cl_task *task)
{
	if (task->pooled)
		cl->node[task->place.node].parked_mib -= task->part->job->park_mib;
	task->pooled = false;
}

void sl_cl_task_unpark(struct sl_cluster *cl, struct sl_cl_task *task)
{
	if (!task->parked)
		return;
	/* Its promised place counts on the cores and memory that it keeps. */
	if (task->keeps && task->promised)
		sl_cl_task_unpromise(cl, task);
	sl_cl_node_unkeep(cl, task);
	unpool(cl, task);
	sl_list_unlink(&task->on_node);
	task->parked = false;
	task->part->job->giving_up -= task->giving_up;
	task->giving_up = false;
}

void sl_cl_task_drop(struct sl_cluster *cl, struct sl_cl_task *task)
{
	if (task->promised)
		sl_cl_job_unpromise(cl, task->part->job);
	task->part->job->giving_up += !task->giving_up;
	task->giving_up = true;
}

void sl_cl_task_take(struct sl_cluster *cl, struct sl_cl_task *task,
	struct sl_place place, enum sl_task_state state)
{
	task->was_parked = task->parked;
	task->home = task->place;
	if (task->parked) {
		/* Its pool memory stays booked until it runs. */
		sl_list_unlink(&task->on_node);
		task->parked = false;
	}
	task->place = place;
	task->since = cl->now;
	book(cl, task, place);
	use(cl, task, 1);
	sl_cl_node_keep(cl, task);
	sl_cl_node_take(cl, task);
	sl_cl_task_state(cl, task, state);
}

void sl_cl_task_promise(
	struct sl_cluster *cl, struct sl_cl_task *task, struct sl_place next)
{
	task->next = next;
	task->promised = true;
	book(cl, task, next);
	sl_cl_node_promise(cl, task);
	if (task->state == SL_TASK_PENDING)
		sl_cl_task_state(cl, task, SL_TASK_PIPELINED);
	else
		task->part->coming++;
}

void sl_cl_task_unpromise(struct sl_cluster *cl, struct sl_cl_task *task)
{
	sl_cl_node_unpromise(cl, task);
	unbook(cl, task);
	task->promised = false;
	if (task->state == SL_TASK_PIPELINED)
		sl_cl_task_state(cl, task, SL_TASK_PENDING);
	else
		task->part->coming--;
}

void sl_cl_task_release(struct sl_cluster *cl, struct sl_cl_task *task)
{
	unbook(cl, task);
	sl_cl_node_release(cl, task);
	task->was = task->state;
	sl_cl_task_state(cl, task, SL_TASK_RELEASING);
}

void sl_cl_task_unrelease(struct sl_cluster *cl, struct sl_cl_task *task)
{
	sl_list_unlink(&task->leaving);
	book(cl, task, task->place);
	if (!task->stuck)
		sl_cl_node_unrelease(cl, task);
	task->stuck = false;
	task->keeps = task->part->job->flags & SL_JOB_KEEPS_HOST;
	sl_cl_task_state(cl, task, (enum sl_task_state)task->was);
}

void sl_cl_task_clear(
	struct sl_cluster *cl, struct sl_cl_task *task, enum sl_task_state state)
{
	bool releasing = task->state == SL_TASK_RELEASING;

	sl_list_unlink(&task->leaving);
	if (task->promised)
		sl_cl_task_unpromise(cl, task);
	if (releasing || task->state == SL_TASK_BINDING ||
		task->state == SL_TASK_RUNNING) {
		if (!releasing)
			unbook(cl, task);
		use(cl, task, -1);
		unpool(cl, task);
		sl_cl_node_give(cl, task, releasing && !task->stuck);
		sl_cl_node_unkeep(cl, task);
		task->stuck = false;
	}
	sl_cl_task_state(cl, task, state);
}

void sl_cl_task_untake(struct sl_cluster *cl, struct sl_cl_task *task)
{
	bool pooled = task->pooled;

	task->pooled = task->pooled && !task->was_parked;
	sl_cl_task_clear(cl, task, SL_TASK_PENDING);
	if (!task->was_parked)
		return;
	task->pooled = pooled;
	task->parked = true;
	task->place = task->home;
	sl_cl_node_keep(cl, task);
	sl_list_push_tail(&cl->node[task->place.node].parked, &task->on_node);
}

void sl_cl_task_bind(struct sl_cluster *cl, struct sl_cl_task *task)
{
	sl_cl_emit(cl, (struct sl_cluster_action){.type = SL_CLUSTER_ACTION_BIND,
			       .bind = {.job = task->part->job->index.id,
				       .task = task->number,
				       .node = cl->node[task->place.node].index.id,
				       .gpu_mask = task->place.gpu_mask,
				       .milli = task->place.milli}});
}

void sl_cl_tell_place(struct sl_cluster *cl, const struct sl_cl_task *task)
{
	sl_cl_emit(cl, (struct sl_cluster_action){.type = SL_CLUSTER_ACTION_PIPELINE,
			       .pipeline = {.job = task->part->job->index.id,
				       .task = task->number,
				       .node = cl->node[task->next.node].index.id,
				       .gpu_mask = task->next.gpu_mask}});
}

/* It is RELEASING, in this way. */
static void leave(
	struct sl_cluster *cl, struct sl_cl_task *task, enum sl_stop_how how, sl_ns since)
{
	struct sl_place next = task->next;
	struct sl_link *before;
	bool promised;

	task->how = (uint8_t)how;
	task->since = since;
	sl_list_unlink(&task->leaving);
	before = cl->leaving.prev;
	while (before != &cl->leaving &&
		SL_CL_ENTRY(before, sl_cl_task, leaving)->since > since)
		before = before->prev;
	sl_list_push_head(before, &task->leaving);
	if (sl_cl_is_parking(task))
		return;
	/* Its promised place counts on the cores and memory that it keeps. */
	promised = task->promised && task->keeps;
	if (promised)
		sl_cl_task_unpromise(cl, task);
	sl_cl_node_leave(cl, task);
	if (promised)
		sl_cl_task_promise(cl, task, next);
}

void sl_cl_task_stop(struct sl_cluster *cl, struct sl_cl_task *task, enum sl_stop_how how,
	const struct sl_cl_job *other, bool preempted)
{
	struct sl_cl_job *job = task->part->job;

	leave(cl, task, how, cl->now);
	if (how == SL_STOP_PARK && !task->pooled) {
		task->pooled = true;
		cl->node[task->place.node].parked_mib += job->park_mib;
	}
	if (how == SL_STOP_PARK || how == SL_STOP_TERMINATE)
		job->paused_until = SL_MUTANT(CLUSTER_NO_PAUSE,
			sl_cl_later(cl, cl->resume_factor * job->swap_cost), 0);
	sl_cl_emit(cl, (struct sl_cluster_action){.type = SL_CLUSTER_ACTION_STOP,
			       .stop = {.job = job->index.id,
				       .task = task->number,
				       .how = how,
				       .other = other ? other->index.id : 0,
				       .preempted = preempted}});
}

/* --- Events. --- */

/* The place that the caller reports; false: there is none. */
static bool found_at(const struct sl_cluster *cl, const struct sl_cl_task *task,
	uint64_t node, uint32_t gpu_mask, struct sl_place *place)
{
	uint32_t number = sl_cl_find_node(cl, node);
	const struct sl_fit_node *fit;
	uint32_t milli;

	if (number == SL_CL_NO_NODE)
		return false;
	fit = &cl->fit[number];
	milli = sl_fit_milli(fit, &task->part->class->need);
	*place = (struct sl_place){.node = number,
		.gpu_mask = gpu_mask,
		.milli = (uint16_t)sl_min_u64(milli, SL_FIT_WHOLE)};
	if (fit->gpus < 32 && gpu_mask >> fit->gpus)
		return false;
	return (uint32_t)__builtin_popcount(place->gpu_mask) ==
	       task->part->class->need.gpus;
}

void sl_cl_on_task_runs(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	struct sl_cl_task *task =
		sl_cl_find_task(cl, event->task_runs.job, event->task_runs.task);
	struct sl_place place;

	if (!task)
		return;
	if (task->state == SL_TASK_BINDING) {
		sl_cl_task_state(cl, task, SL_TASK_RUNNING);
		unpool(cl, task);
	} else if (task->state != SL_TASK_RELEASING && task->state != SL_TASK_ENDED) {
		if (!found_at(cl, task, event->task_runs.node, event->task_runs.gpu_mask,
			    &place))
			return;
		if (task->state == SL_TASK_RUNNING)
			sl_cl_task_clear(cl, task, SL_TASK_PENDING);
		if (task->promised)
			sl_cl_task_unpromise(cl, task);
		sl_cl_task_unpark(cl, task);
		sl_cl_task_take(cl, task, place, SL_TASK_RUNNING);
		sl_cl_node_repair(cl, place.node);
	} else {
		return;
	}
	task->since = sl_sub_sat(cl->now, event->task_runs.ago);
	if (event->task_runs.spared_for)
		task->spared_until = sl_cl_later(cl, event->task_runs.spared_for);
	sl_cl_job_settle(cl, task->part->job);
	if (task->since < task->part->job->started)
		task->part->job->started = task->since ? task->since : 1;
}

void sl_cl_on_task_parked(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	struct sl_cl_task *task =
		sl_cl_find_task(cl, event->task_parked.job, event->task_parked.task);
	struct sl_place place;

	if (!task || task->parked ||
		(task->state != SL_TASK_PENDING && task->state != SL_TASK_PIPELINED) ||
		!found_at(cl, task, event->task_parked.node, event->task_parked.gpu_mask,
			&place))
		return;
	if (task->promised)
		sl_cl_task_unpromise(cl, task);
	task->place = place;
	task->parked = task->pooled = true;
	sl_cl_node_keep(cl, task);
	cl->node[place.node].parked_mib += task->part->job->park_mib;
	sl_list_push_tail(&cl->node[place.node].parked, &task->on_node);
	sl_cl_job_settle(cl, task->part->job);
}

/* The entry of that node; else an expired one; else a new one. */
static struct sl_cl_refusal *refusal_of(
	struct sl_cluster *cl, struct sl_cl_job *job, uint64_t node)
{
	struct sl_cl_refusal *free = NULL, *old = job->refused;
	uint32_t bits = job->refused_bits;

	for (uint32_t i = 0; i < job->refusals; i++) {
		if (old[i].node == node)
			return &old[i];
		if (old[i].until <= cl->now)
			free = &old[i];
	}
	if (free)
		return free;
	if (!bits || (job->refusals + 1) * sizeof(*old) > (size_t)1 << bits) {
		job->refused_bits = bits ? bits + 1 : 6;
		job->refused = sl_cl_block_take(cl, job->refused_bits);
		if (bits) {
			memcpy(job->refused, old, job->refusals * sizeof(*old));
			sl_cl_block_give(cl, old, bits);
		}
	}
	return &job->refused[job->refusals++];
}

static void remember_refusal(struct sl_cluster *cl, struct sl_cl_job *job, uint64_t node)
{
	struct sl_cl_refusal refusal = {node, cl->now + REFUSED_FOR};

	*refusal_of(cl, job, node) = refusal;
	sl_cl_wake(cl, refusal.until);
}

void sl_cl_on_bind_refused(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	struct sl_cl_task *task =
		sl_cl_find_task(cl, event->bind_refused.job, event->bind_refused.task);
	bool stopping;
	uint32_t node;

	if (!task)
		return;
	node = task->place.node;
	stopping = task->state == SL_TASK_RELEASING && task->was == SL_TASK_BINDING;
	if (task->state != SL_TASK_BINDING && !stopping)
		return;
	remember_refusal(cl, task->part->job, cl->node[node].index.id);
	if (task->pooled && !stopping)
		sl_cl_task_untake(cl, task);
	else
		sl_cl_task_clear(cl, task, SL_TASK_PENDING);
	if (sl_cl_job_is_promised(task->part->job, node))
		sl_cl_job_unpromise(cl, task->part->job);
	sl_cl_job_settle(cl, task->part->job);
	task->part->job->because =
		(struct sl_pending_because){.reason = SL_PENDING_BIND_REFUSED};
}

void sl_cl_on_bind_again(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	struct sl_cl_job *job = sl_cl_find_job(cl, event->bind_again.job);

	if (!job || !sl_cl_is_refused(cl, job, SL_CL_NO_NODE))
		return;
	for (uint32_t i = 0; i < job->refusals; i++)
		job->refused[i].until = 0;
	sl_cl_job_settle(cl, job);
}

/* It gave up its place: parked, promised another, or simply pending. */
static void again(struct sl_cluster *cl, struct sl_cl_task *task)
{
	bool parks = SL_MUTANT(CLUSTER_MOVES_LOST, sl_cl_is_parking(task) && task->pooled,
		task->how == SL_STOP_PARK && task->pooled &&
			task->state == SL_TASK_RELEASING);
	bool moves = task->promised;
	struct sl_place next = task->next;

	if (parks)
		task->pooled = false;
	sl_cl_task_clear(cl, task, SL_TASK_PENDING);
	if (parks) {
		task->pooled = task->parked = true;
		sl_cl_node_keep(cl, task);
		task->parked_at = cl->now;
		sl_list_push_tail(&cl->node[task->place.node].parked, &task->on_node);
	}
	if (moves)
		sl_cl_task_promise(cl, task, next);
}

/*
 * The task failed and is retried, each time after a longer pause. Otherwise a job that always
 * fails, because of its node or itself, would be bound again in every cycle.
 */
static void back_off(struct sl_cluster *cl, struct sl_cl_job *job, sl_ns ran)
{
	sl_ns wait = BACK_OFF_FIRST;

	/* Tasks of a gang that fail together count as one failure. */
	if (job->held_until > cl->now)
		return;
	if (ran >= BACK_OFF_FORGET)
		job->failures = 0;
	for (uint32_t i = 0; i < job->failures && wait < BACK_OFF_MOST; i++)
		wait *= 2;
	job->failures++;
	job->held_until = cl->now + sl_min_u64(wait, BACK_OFF_MOST);
	sl_cl_wake(cl, job->held_until);
	/* A promised place would start it sooner. */
	sl_cl_job_unpromise(cl, job);
}

static void for_good(struct sl_cluster *cl, struct sl_cl_task *task, bool failed)
{
	struct sl_cl_part *part = task->part;

	sl_cl_task_unpark(cl, task);
	sl_cl_task_clear(cl, task, SL_TASK_ENDED);
	task->failed = failed;
	part->done += !failed;
	sl_tree_book(&cl->tree, part->job->project, -1, NULL, NULL, &part->each);
}

void sl_cl_on_task_ended(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	struct sl_cl_task *task =
		sl_cl_find_task(cl, event->task_ended.job, event->task_ended.task);
	bool waits;

	if (!task || task->state == SL_TASK_ENDED)
		return;
	waits = task->state == SL_TASK_PENDING || task->state == SL_TASK_PIPELINED;
	if (event->task_ended.again && event->task_ended.failed &&
		(task->state == SL_TASK_RUNNING || task->state == SL_TASK_BINDING))
		back_off(cl, task->part->job, sl_sub_sat(cl->now, task->since));
	if (!event->task_ended.again)
		for_good(cl, task, event->task_ended.failed);
	else if (!waits)
		again(cl, task);
	else if (task->giving_up)
		sl_cl_task_unpark(cl, task);
	sl_cl_job_settle(cl, task->part->job);
}

void sl_cl_on_task_stops(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	struct sl_cl_task *task =
		sl_cl_find_task(cl, event->task_stops.job, event->task_stops.task);

	sl_ns since = sl_sub_sat(cl->now, event->task_stops.ago);

	if (!task)
		return;
	if (task->parked) {
		sl_cl_task_drop(cl, task);
	} else if (task->state == SL_TASK_BINDING || task->state == SL_TASK_RUNNING) {
		sl_cl_task_release(cl, task);
		leave(cl, task, SL_STOP_TERMINATE, since);
	} else if (task->state == SL_TASK_RELEASING &&
		   SL_MUTANT(CLUSTER_PARKS_DEAD, sl_cl_is_parking(task), false)) {
		/* It will not be parked when it has ended. */
		if (task->stuck)
			sl_cl_node_release(cl, task);
		task->stuck = false;
		leave(cl, task, SL_STOP_TERMINATE, since);
	}
	sl_cl_job_settle(cl, task->part->job);
}

void sl_cl_on_stop_failed(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	struct sl_cl_task *task =
		sl_cl_find_task(cl, event->stop_failed.job, event->stop_failed.task);
	uint32_t node;

	if (task && task->giving_up) {
		/* It stays parked for another resume_wait. */
		task->giving_up = false;
		task->parked_at = cl->now;
		task->part->job->giving_up--;
		sl_cl_job_settle(cl, task->part->job);
		return;
	}
	if (!task || task->state != SL_TASK_RELEASING)
		return;
	node = task->place.node;
	if (task->promised)
		sl_cl_task_unpromise(cl, task);
	/* A returning task is in host memory until it runs. */
	if (task->was == SL_TASK_RUNNING)
		unpool(cl, task);
	sl_cl_task_unrelease(cl, task);
	task->spared_until = sl_cl_later(cl, event->stop_failed.spared_for
						     ? event->stop_failed.spared_for
						     : SPARED_FOR);
	sl_cl_wake(cl, task->spared_until);
	/* First: the job is not whole for a moment by a promise that ends here. */
	sl_cl_node_repair(cl, node);
	sl_cl_job_settle(cl, task->part->job);
}
