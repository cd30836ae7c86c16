/*
 * check - recomputes every invariant of the cluster's books
 *
 * For tests and the simulation: O(everything). It reads the same state as the decisions, so it only
 * finds books that contradict each other. Whether the state itself is right is checked by the
 * simulation, with accounts of its own.
 */
#include "policy/cluster/internal.h"

#include <inttypes.h>
#include <string.h>

#define BROKEN(...) (sl_error_set(err, __VA_ARGS__), 1)

static void begin(struct sl_cluster *cl)
{
	if (!cl->audit_fit) {
		struct sl_arena *arena = cl->arena;
		size_t nodes = cl->nodes_most, projects = cl->tree.most;

		cl->audit_fit = sl_arena_take(arena, nodes * sizeof(cl->fit[0]));
		cl->audit_parked =
			sl_arena_take(arena, nodes * sizeof(cl->audit_parked[0]));
		cl->audit_promises =
			sl_arena_take(arena, nodes * sizeof(cl->audit_promises[0]));
		cl->audit_has = sl_arena_take(arena, projects * sizeof(cl->audit_has[0]));
		cl->audit_fixed =
			sl_arena_take(arena, projects * sizeof(cl->audit_fixed[0]));
		cl->audit_asks =
			sl_arena_take(arena, projects * sizeof(cl->audit_asks[0]));
		cl->audit_holds =
			sl_arena_take(arena, projects * sizeof(cl->audit_holds[0]));
	}
	for (uint32_t i = 0; i < cl->nodes_high; i++) {
		const struct sl_fit_node *fit = &cl->fit[i];

		sl_fit_node_init(&cl->audit_fit[i], fit->cpu_milli, fit->memory_mib,
			fit->gpus, fit->gpu_mib, fit->model, fit->pool);
		sl_fit_resize(&cl->audit_fit[i], fit->cpu_milli, fit->memory_mib,
			fit->gpus, fit->shut);
		cl->audit_parked[i] = cl->audit_promises[i] = 0;
	}
	memset(cl->audit_has, 0, cl->tree.high * sizeof(cl->audit_has[0]));
	memset(cl->audit_fixed, 0, cl->tree.high * sizeof(cl->audit_fixed[0]));
	memset(cl->audit_asks, 0, cl->tree.high * sizeof(cl->audit_asks[0]));
	memset(cl->audit_holds, 0, cl->tree.high * sizeof(cl->audit_holds[0]));
}

static void add(struct sl_cluster *cl, struct sl_quantity *sums, uint32_t project,
	const struct sl_quantity *amount)
{
	for (uint32_t i = project; i != SL_PROJECT_NONE; i = cl->tree.all[i].parent) {
		for (int r = 0; r < SL_RESOURCES; r++)
			sums[i].of[r] += amount->of[r];
	}
}

static void book(struct sl_cluster *cl, const struct sl_cl_task *task)
{
	const struct sl_cl_job *job = task->part->job;
	struct sl_place place = task->promised ? task->next : task->place;
	struct sl_quantity amount = sl_cl_quantity(&task->part->class->need, place);

	add(cl, cl->audit_has, job->project, &amount);
	if (!sl_cl_preemptible(job))
		add(cl, cl->audit_fixed, job->project, &amount);
}

/* Adds the task to the books of this check. */
static int audit_task(
	struct sl_cluster *cl, const struct sl_cl_task *task, struct sl_error *err)
{
	const struct sl_need *need = &task->part->class->need;
	const struct sl_need moves = sl_cl_moves(task, task->place.node);
	const struct sl_place host = {.node = task->place.node};
	bool runs = task->state == SL_TASK_BINDING || task->state == SL_TASK_RUNNING;
	bool leaves = task->state == SL_TASK_RELEASING;

	if ((runs || leaves || task->parked) && !cl->node[task->place.node].used)
		return BROKEN("task %u stands on a lost node", task->number);
	if (runs || leaves) {
		struct sl_quantity amount = sl_cl_quantity(need, task->place);

		sl_fit_take(&cl->audit_fit[task->place.node], &moves, task->place);
		add(cl, cl->audit_holds, task->part->job->project, &amount);
	}
	if (task->keeps)
		sl_fit_take(&cl->audit_fit[task->place.node], need, host);
	if (leaves && !task->stuck)
		sl_fit_release(&cl->audit_fit[task->place.node], &moves, task->place);
	if (task->promised) {
		const struct sl_need comes = sl_cl_moves(task, task->next.node);

		if (cl->fit[task->next.node].shut & task->next.gpu_mask)
			return BROKEN(
				"task %u is promised a GPU that is shut", task->number);
		sl_fit_pipeline(&cl->audit_fit[task->next.node], &comes, task->next);
		cl->audit_promises[task->next.node]++;
	}
	if (runs || task->promised)
		book(cl, task);
	if (task->pooled)
		cl->audit_parked[task->place.node] += task->part->job->park_mib;
	if (task->promised != (task->state == SL_TASK_PIPELINED) && !leaves)
		return BROKEN("task %u is %s a promise", task->number,
			task->promised ? "given" : "without");
	if (task->parked && task->state != SL_TASK_PENDING &&
		task->state != SL_TASK_PIPELINED)
		return BROKEN("task %u is parked and runs", task->number);
	if (task->keeps != ((runs || task->parked || sl_cl_is_parking(task)) &&
				   task->part->job->flags & SL_JOB_KEEPS_HOST))
		return BROKEN("task %u keeps what is not its own, or not all of it",
			task->number);
	return 0;
}

static int audit_part(struct sl_cluster *cl, const struct sl_cl_part *part,
	uint32_t sums[], struct sl_error *err)
{
	uint32_t in[SL_TASK_STATES] = {0}, coming = 0, done = 0;
	struct sl_quantity asks;

	for (uint32_t i = 0; i < part->tasks; i++) {
		const struct sl_cl_task *task = &part->task[i];

		in[task->state]++;
		coming += task->state == SL_TASK_RELEASING && task->promised;
		done += task->state == SL_TASK_ENDED && !task->failed;
		if (task->state == SL_TASK_PENDING && i < part->pending_from)
			return BROKEN("pending task %u is overlooked", task->number);
		if (audit_task(cl, task, err))
			return 1;
	}
	for (uint32_t s = 0; s < SL_TASK_STATES; s++) {
		sums[s] += in[s];
		if (in[s] != part->in[s])
			return BROKEN(
				"%u tasks in state %u, booked %u", in[s], s, part->in[s]);
	}
	if (coming != part->coming || done != part->done)
		return BROKEN("%u tasks move and %u are done, booked %u and %u", coming,
			done, part->coming, part->done);
	for (int r = 0; r < SL_RESOURCES; r++)
		asks.of[r] = part->each.of[r] * (part->tasks - in[SL_TASK_ENDED]);
	add(cl, cl->audit_asks, part->job->project, &asks);
	return 0;
}

/* The job is in the lists that its tasks call for. */
static int audit_job(
	struct sl_cluster *cl, const struct sl_cl_job *job, struct sl_error *err)
{
	struct sl_cl_want want[SL_CL_PARTS];
	uint32_t extra, wants = sl_cl_job_wants(job, want, &extra);
	uint32_t running = 0, promised = 0;
	bool below = false, timed = sl_list_is_linked(&job->held);

	for (uint32_t p = 0; p < job->parts; p++) {
		const struct sl_cl_part *part = job->part[p];

		running += sl_cl_running(part);
		promised += part->in[SL_TASK_PIPELINED] + part->coming;
		below |= sl_cl_placed(part) + part->done < part->least;
	}
	if (timed && !wants)
		return BROKEN("it waits for a moment at which it may want nothing");
	if (job->group && (job->held_until > cl->now || job->giving_up))
		return BROKEN("it is held back and waits in the order");
	if ((wants > 0) != (job->group != NULL) && !(wants && timed))
		return BROKEN("it wants %u kinds of tasks and is %s the order", wants,
			job->group ? "in" : "not in");
	if (job->group &&
		(job->group->heap[job->in_group] != job || job->group->wants != wants ||
			job->group->order.project != job->project ||
			job->group->extra != extra))
		return BROKEN("its group is not the one it belongs to");
	if ((below && running) != sl_list_is_linked(&job->stale))
		return BROKEN("a gang %s its least is %swatched", below ? "below" : "at",
			below ? "not " : "");
	if ((promised > 0) != sl_list_is_linked(&job->promised))
		return BROKEN("%u promises, and it is %sin the list", promised,
			promised ? "not " : "");
	if ((running && sl_cl_preemptible(job)) != sl_list_is_linked(&job->running))
		return BROKEN("%u tasks run, and it is %s its rank", running,
			running ? "not in" : "in");
	return 0;
}

static bool same_room(const struct sl_room *a, const struct sl_room *b)
{
	return a->cpu_milli == b->cpu_milli && a->memory_mib == b->memory_mib &&
	       a->gpu_milli == b->gpu_milli && a->whole == b->whole &&
	       !memcmp(a->left, b->left, sizeof(a->left));
}

static int audit_node(struct sl_cluster *cl, uint32_t number, struct sl_error *err)
{
	const struct sl_fit_node *fit = &cl->fit[number], *audit = &cl->audit_fit[number];
	const struct sl_cl_node *node = &cl->node[number];

	if (!same_room(&fit->now, &audit->now))
		return BROKEN("%d thousandths of GPUs are free, booked %d",
			audit->now.gpu_milli, fit->now.gpu_milli);
	if (!same_room(&fit->later, &audit->later))
		return BROKEN("%d thousandths of GPUs will be free, booked %d",
			audit->later.gpu_milli, fit->later.gpu_milli);
	if (node->parked_mib != cl->audit_parked[number])
		return BROKEN("%" PRIu64 " MiB are parked, booked %" PRIu64,
			cl->audit_parked[number], node->parked_mib);
	if (node->promises != cl->audit_promises[number])
		return BROKEN("%u promises, booked %u", cl->audit_promises[number],
			node->promises);
	for (uint32_t i = 0; node->promises && i < fit->gpus; i++) {
		if (fit->later.left[i] < 0 && !(fit->shut >> i & 1))
			return BROKEN("GPU %u is promised twice", i);
	}
	if (node->promises && (fit->later.cpu_milli < 0 || fit->later.memory_mib < 0))
		return BROKEN("cores or memory are promised twice");
	return 0;
}

static bool same_amounts(const struct sl_quantity *a, const struct sl_quantity *b)
{
	return !memcmp(a->of, b->of, sizeof(a->of));
}

static int audit_projects(const struct sl_cluster *cl, struct sl_error *err)
{
	for (uint32_t i = 0; i < cl->tree.high; i++) {
		const struct sl_project *project = &cl->tree.all[i];

		if (!project->used)
			continue;
		if (!same_amounts(&project->has, &cl->audit_has[i]) ||
			!same_amounts(&project->fixed, &cl->audit_fixed[i]) ||
			!same_amounts(&project->asks, &cl->audit_asks[i]))
			return BROKEN("project %" PRIu64 " has %" PRId64
				      " thousandths of GPUs, %" PRId64
				      " of them for good, and asks for %" PRId64
				      "; booked %" PRId64 ", %" PRId64 " and %" PRId64,
				project->id, cl->audit_has[i].of[SL_RES_GPU],
				cl->audit_fixed[i].of[SL_RES_GPU],
				cl->audit_asks[i].of[SL_RES_GPU],
				project->has.of[SL_RES_GPU],
				project->fixed.of[SL_RES_GPU],
				project->asks.of[SL_RES_GPU]);
		if (!same_amounts(&project->holds, &cl->audit_holds[i]))
			return BROKEN("project %" PRIu64 " holds %" PRId64
				      " thousandths of GPUs, booked %" PRId64,
				project->id, cl->audit_holds[i].of[SL_RES_GPU],
				project->holds.of[SL_RES_GPU]);
	}
	return sl_tree_check(&cl->tree, err);
}

int sl_cluster_check(const struct sl_cluster *cluster, struct sl_error *err)
{
	/* Changes only the audit fields. */
	struct sl_cluster *cl = (struct sl_cluster *)cluster;
	uint32_t sums[SL_TASK_STATES] = {0};
	int64_t later = 0;

	begin(cl);
	if (cl->evicted.count || cl->given.count)
		return BROKEN("a search has not ended");
	sl_list_foreach (link, &cl->jobs) {
		struct sl_cl_job *job = SL_CL_ENTRY(link, sl_cl_job, all);

		for (uint32_t p = 0; p < job->parts; p++) {
			if (audit_part(cl, job->part[p], sums, err)) {
				sl_error_wrap(err, "job %" PRIu64, job->index.id);
				return 1;
			}
		}
		if (audit_job(cl, job, err)) {
			sl_error_wrap(err, "job %" PRIu64, job->index.id);
			return 1;
		}
	}
	for (uint32_t s = 0; s < SL_TASK_STATES; s++) {
		if (sums[s] != cl->in[s])
			return BROKEN(
				"%u tasks in state %u, booked %u", sums[s], s, cl->in[s]);
	}
	for (uint32_t i = 0; i < cl->nodes_high; i++) {
		if (!cl->node[i].used)
			continue;
		if (audit_node(cl, i, err)) {
			sl_error_wrap(err, "node %" PRIu64, cl->node[i].index.id);
			return 1;
		}
		if (!cl->fit[i].closed)
			later += cl->fit[i].later.gpu_milli;
	}
	if (later != cl->later_gpu_milli)
		return BROKEN("%" PRId64
			      " thousandths of GPUs will be free, summed %" PRId64,
			later, cl->later_gpu_milli);
	return audit_projects(cl, err);
}
