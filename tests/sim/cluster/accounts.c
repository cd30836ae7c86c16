/*
 * accounts - what projects have and what is left of nodes, summed over the world's tasks
 */
#include "world.h"

bool cw_stands(const struct cw_task *task)
{
	return task->state == SL_TASK_BINDING || task->state == SL_TASK_RUNNING;
}

bool cw_is_done(const struct cw_task *task)
{
	return task->state == SL_TASK_ENDED && !task->failed;
}

bool cw_is_below(const struct cw *w, uint32_t project, uint32_t above)
{
	while (project != UINT32_MAX && project != above)
		project = w->project[project].parent;
	return project == above;
}

struct sl_quantity cw_amount(const struct sl_need *need, struct sl_place place)
{
	return (struct sl_quantity){
		{[SL_RES_GPU] = (int64_t)__builtin_popcount(place.gpu_mask) * place.milli,
			[SL_RES_CPU] = need->cpu_milli,
			[SL_RES_MEMORY] = need->memory_mib,
			[SL_RES_COMPUTE] = (int64_t)need->gpus * need->compute_milli}};
}

/* Whether it counts: as what is on nodes, including tasks that are being stopped; or as what
 * is there or promised. */
static bool counts(const struct cw_task *task, bool holds, struct sl_place *place)
{
	*place = cw_stands(task) || holds ? task->place : task->next;
	if (holds)
		return cw_stands(task) || task->state == SL_TASK_RELEASING;
	return cw_stands(task) || task->promised;
}

struct sl_quantity cw_sum(const struct cw *w, uint32_t project, bool fixed, bool holds)
{
	struct sl_quantity sum = {{0}};

	for (uint32_t j = 0; j < CW_JOBS; j++) {
		const struct cw_job *job = &w->job[j];

		if (!job->used || !cw_is_below(w, job->project, project) ||
			(fixed && job->flags & SL_JOB_PREEMPTIBLE))
			continue;
		for (uint32_t p = 0; p < job->parts; p++) {
			for (uint32_t i = 0; i < job->tasks[p]; i++) {
				const struct cw_task *task = &job->task[p][i];
				struct sl_quantity amount;
				struct sl_place place;

				if (!counts(task, holds, &place))
					continue;
				amount = cw_amount(&job->need[p], place);
				for (int r = 0; r < SL_RESOURCES; r++)
					sum.of[r] += amount.of[r];
			}
		}
	}
	return sum;
}

struct sl_quantity cw_has(const struct cw *w, uint32_t project, bool fixed)
{
	return cw_sum(w, project, fixed, false);
}

void cw_take(struct sl_room *room, const struct sl_need *need, struct sl_place place)
{
	room->cpu_milli -= need->cpu_milli;
	room->memory_mib -= need->memory_mib;
	for (uint32_t g = 0; g < SL_FIT_GPUS_MAX; g++) {
		if (place.gpu_mask >> g & 1)
			room->left[g] = (int16_t)(room->left[g] - place.milli);
	}
}

bool cw_movable(const struct cw_job *job)
{
	return job->flags & SL_JOB_PARKS && job->flags & SL_JOB_MOVES;
}

bool cw_parks(const struct cw_job *job, enum sl_stop_how how)
{
	return how == SL_STOP_PARK || (how == SL_STOP_MOVE && cw_movable(job));
}

/* While it is parked, or being parked, its cores and memory stay its own. */
static bool keeps_host(const struct cw_job *job, const struct cw_task *task)
{
	return job->flags & SL_JOB_KEEPS_HOST &&
	       (task->parked ||
		       (task->state == SL_TASK_RELEASING && cw_parks(job, task->how)));
}

/* What changes on that node when it comes there or leaves it. */
struct sl_need cw_comes(const struct cw_job *job, const struct cw_task *task,
	uint32_t part, uint32_t node)
{
	struct sl_need need = job->need[part];

	if (keeps_host(job, task) && task->place.node == node)
		need.cpu_milli = need.memory_mib = 0;
	return need;
}

static void take_task(struct sl_room *room, const struct cw_job *job,
	const struct cw_task *task, uint32_t part, uint32_t node, bool later)
{
	static const struct sl_place host = {0};
	struct sl_need rest = cw_comes(job, task, part, node);
	bool here = task->place.node == node;

	if (here && (cw_stands(task) ||
			    (task->state == SL_TASK_RELEASING && (!later || task->late))))
		cw_take(room, &job->need[part], task->place);
	else if (here && keeps_host(job, task))
		cw_take(room, &job->need[part], host);
	if (later && task->promised && task->next.node == node)
		cw_take(room, &rest, task->next);
}

struct sl_room cw_room(const struct cw *w, uint32_t node, bool later)
{
	struct sl_room room = w->node[node].fit.now;

	for (uint32_t j = 0; j < CW_JOBS; j++) {
		const struct cw_job *job = &w->job[j];

		for (uint32_t p = 0; job->used && p < job->parts; p++) {
			for (uint32_t i = 0; i < job->tasks[p]; i++)
				take_task(&room, job, &job->task[p][i], p, node, later);
		}
	}
	room.whole = 0;
	for (uint32_t g = 0; g < w->node[node].fit.gpus; g++) {
		if (w->node[node].shut >> g & 1)
			room.left[g] = 0;
		room.whole = (int16_t)(room.whole + (room.left[g] == SL_FIT_WHOLE));
	}
	return room;
}
