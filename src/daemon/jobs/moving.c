/*
 * moving - workloads that go to other GPUs of the same kind
 *
 * A move is a park with another place to return to. The machine decides it, for others (STOP) or
 * for a user (TASK_MOVE), and keeps the place; what it does not count is moved here directly. Only
 * a workload of which nothing is left on a GPU can come back to others. So each waits here until it
 * is away, or until something refuses to leave: then it comes back to where it was.
 */
#include <stdlib.h>

#include "base/log.h"
#include "daemon/jobs/internal.h"
#include "daemon/report/events.h"
#include "daemon/state/client.h"
#include "daemon/workloads/park.h"
#include "daemon/workloads/refusal.h"
#include "daemon/workloads/workload.h"

/* Since this driver, a process may be restored on other GPUs. */
#define DRIVER_MOVES 580

/* After a user's move, how long no guest is spread (policy/cluster/moves.c). */
#define SPREAD_AFTER_USER (3600 * SL_S)
/* What a guest went home for takes a moment to come. */
#define SPREAD_AFTER_MOVE (30 * SL_S)
/* What the policy sees will not leave is told at once; this is for what it cannot see. */
#define GONE_WITHIN (120 * SL_S)
/* After a move that came to nothing. */
#define TRIED_AGAIN_AFTER (10 * SL_S)

static bool driver_moves(const struct sl_daemon *daemon)
{
	return strtol(daemon->driver, NULL, 10) >= DRIVER_MOVES;
}

bool sl_jobs_moves_any(const struct sl_daemon *daemon)
{
	return daemon->config.detach_contexts && driver_moves(daemon);
}

/* It has begun with CUDA and has no context yet: it stays where it began. */
static bool has_none(const struct sl_client *client)
{
	bool has = client->away_bytes != 0;

	for (uint32_t i = 0; i < client->gpu_count && !has; i++) {
		struct sl_node_use_view use = sl_node_client_use(
			client->daemon->node, client->id, client->gpu_numbers[i]);

		has = use.hidden_bytes || use.paid_bytes;
	}
	return !has;
}

static bool stays(const struct sl_workload *workload)
{
	sl_list_foreach (link, (struct sl_link *)&workload->clients) {
		if (has_none(SL_LIST_ENTRY(link, struct sl_client, link)))
			return true;
	}
	return false;
}

/* Memory that cannot leave keeps its process, and a process its workload. */
static bool holds(const struct sl_jobs *jobs, const struct sl_job *job)
{
	/* One that is only judged has no tasks. */
	for (uint32_t i = 0; job->tasks && i < job->row.task_count; i++) {
		const struct sl_workload *workload =
			sl_jobs_workload_of(jobs, &job->tasks[i]);

		/* A container of a run has its own GPUs' device nodes alone. */
		if (workload && (workload->is_contained || stays(workload) ||
					sl_jobs_held_by(jobs, workload)))
			return true;
	}
	return false;
}

bool sl_jobs_may_move(const struct sl_jobs *jobs, const struct sl_job *job)
{
	const struct sl_daemon *daemon = jobs->daemon;

	return sl_jobs_moves_any(daemon) && job->parks && !job->stays &&
	       sl_clock_now() >= job->moves_from && jobs->books.swaps &&
	       !(job->row.flags & SL_RUN_NO_SWAP) && !holds(jobs, job);
}

/* --- away, or not --- */

bool sl_jobs_is_moving(const struct sl_workload *workload)
{
	return workload->park == SL_PARK_MOVING ||
	       sl_list_is_linked(&workload->move_link);
}

void sl_jobs_when_away(struct sl_jobs *jobs, struct sl_workload *workload, uint32_t gpus)
{
	workload->move_to = gpus;
	workload->move_by = 0;
	if (!sl_list_is_linked(&workload->move_link))
		sl_list_push_tail(&jobs->moving, &workload->move_link);
	sl_jobs_awake(jobs);
}

/* Of a workload that the machine does not count. */
static void come_back(struct sl_workload *workload, bool away)
{
	struct sl_daemon *daemon = workload->daemon;
	struct sl_error text = {0};

	/* A user resumed it meanwhile. */
	if (workload->park != SL_PARK_MOVING)
		return;
	workload->went_at = sl_clock_now();
	daemon->jobs->guests.spread_from = sl_max_u64(
		daemon->jobs->guests.spread_from, sl_clock_now() + SPREAD_AFTER_MOVE);
	if (away && sl_park_resume_on(daemon, workload, workload->move_to, &text))
		return;
	workload->stays_until = sl_clock_now() + TRIED_AGAIN_AFTER;
	sl_events_add(daemon, &(struct sl_node_because){.reason = SL_REASON_MOVE_STAYS,
				      .workload = workload->id});
	if (!sl_park_workload(daemon, workload, SL_PARK_RESUMING, &text))
		sl_warning("%s cannot be resumed: %s", workload->name, text.text);
}

static void go_on(struct sl_jobs *jobs, struct sl_workload *workload, bool away)
{
	struct sl_job_task *task = workload->task;

	if (task && task->phase == SL_PHASE_PARKING)
		sl_jobs_task_left(jobs, task, away);
	else if (task && task->phase == SL_PHASE_RESUMING)
		sl_jobs_task_goes(jobs, task, workload, away);
	else
		come_back(workload, away);
}

sl_ns sl_jobs_moves_due(const struct sl_jobs *jobs)
{
	sl_ns at = SL_NS_NEVER;

	sl_list_foreach (link, (struct sl_link *)&jobs->moving) {
		const struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, move_link);

		if (workload->move_by)
			at = sl_min_u64(at, workload->move_by);
	}
	return at;
}

void sl_jobs_look_at_moves(struct sl_jobs *jobs)
{
	sl_ns now = sl_clock_now();

	sl_list_foreach_safe (link, &jobs->moving) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, move_link);
		struct sl_node_workload_view view =
			sl_node_workload_alone(jobs->daemon->node, workload->id);
		bool is_late = workload->move_by && now >= workload->move_by;

		if (view.presence == SL_PRESENCE_HERE && !is_late &&
			sl_park_is_put_away(workload))
			continue;
		sl_list_unlink(link);
		go_on(jobs, workload, view.presence == SL_PRESENCE_AWAY);
	}
}

/* --- a user's order --- */

/* True: the machine does it; false: text says why not. */
static bool ask_machine(struct sl_jobs *jobs, struct sl_job_task *task, uint32_t mask,
	struct sl_error *text)
{
	const struct sl_cluster_action *no = &jobs->move_refusal;
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_MOVE};

	/* A process may have made its context since the last look. */
	if (!task->job->moves && sl_jobs_may_move(jobs, task->job))
		sl_jobs_put_anew(jobs, task->job);
	event.task_move.job = task->job->row.id;
	event.task_move.task = task->number;
	event.task_move.gpu_mask = mask;
	jobs->move_refusal = (struct sl_cluster_action){0};
	sl_jobs_tell(jobs, &event);
	jobs->promises = true;
	if (no->type != SL_CLUSTER_ACTION_REFUSE_MOVE) {
		sl_jobs_carry_out(jobs);
		if (task->phase == SL_PHASE_PARKING)
			return true;
		sl_error_set(text, "%s stays where it is: %s", task->job->row.name,
			jobs->unmoved.text);
		return false;
	}
	if (no->refuse_move.wanted)
		sl_error_set(text,
			"%s does not fit there: it needs %.3g of the GPU, and %.3g is "
			"free beside the requests there; sluice ps shows them",
			task->job->row.name, no->refuse_move.wanted / 1000.0,
			no->refuse_move.available / 1000.0);
	else
		sl_error_set(text,
			"%s cannot be moved there now: it was moved a moment ago, may "
			"not use that GPU, or the host has no room for its memory "
			"(sluice doctor)",
			task->job->row.name);
	return false;
}

/* Its requests fit beside those of others on the GPUs that it does not have yet. */
static bool fits(const struct sl_workload *workload, uint32_t gpus, struct sl_error *text)
{
	uint32_t pm = workload->compute.request_pm,
		 others = gpus & ~sl_workload_gpus(workload);
	uint32_t full = others & sl_workload_compute_full(workload, pm);
	uint64_t request = workload->request_bytes;
	char wanted[32], left[32];

	for (uint32_t more = others; more; more &= more - 1) {
		uint32_t number = (uint32_t)__builtin_ctz(more);
		struct sl_node_gpu_view gpu = sl_node_gpu(workload->daemon->node, number);
		uint64_t room = sl_sub_sat(gpu.shareable_bytes, gpu.requests_bytes);

		if (request <= room)
			continue;
		sl_error_set(text,
			"%s does not fit on GPU %u: its request is %s, and %s is left "
			"for requests there",
			workload->name, number,
			sl_bytes_format(request, wanted, sizeof(wanted)),
			sl_bytes_format(room, left, sizeof(left)));
		return false;
	}
	if (full)
		sl_refusal_of_time(workload, pm, full, text);
	return !full;
}

/* Something of it would stay where it is. */
static bool is_held(const struct sl_jobs *jobs, const struct sl_workload *workload,
	struct sl_error *text)
{
	uint64_t held = sl_jobs_held_by(jobs, workload);
	char size[32];

	if (stays(workload))
		sl_error_set(text,
			"%s cannot be moved yet: a process of it has begun with CUDA and "
			"has no context",
			workload->name);
	else if (workload->flags & SL_WORKLOAD_NO_SWAP)
		sl_error_set(text,
			"%s cannot be moved: its memory may not leave its GPUs "
			"(--swap=off or --rdma)",
			workload->name);
	else if (held)
		sl_error_set(text,
			"%s cannot be moved: %s of it are shared with others or known to "
			"the driver",
			workload->name, sl_bytes_format(held, size, sizeof(size)));
	return text->text[0];
}

static bool may_go(const struct sl_jobs *jobs, const struct sl_workload *workload,
	uint32_t gpus, struct sl_error *text)
{
	const struct sl_daemon *daemon = jobs->daemon;
	uint32_t own = sl_workload_gpus(workload), left, mask;
	uint64_t here, there;
	const char *no = NULL;

	if (!daemon->config.detach_contexts)
		no = "processes leave their GPUs only with 'detach_contexts: yes' in "
		     "sluiced.conf";
	else if (!driver_moves(daemon))
		no = "the driver brings processes back to other GPUs from version 580 on";
	else if (workload->is_contained && gpus & ~workload->reach)
		no = "its containers were started without the device nodes of those "
		     "GPUs; "
		     "a pod that starts while detach_contexts is on gets them, unless "
		     "sluice.dev/move is off for it";
	else if (__builtin_popcount(gpus) != __builtin_popcount(own))
		no = "name as many GPUs as it has";
	else if (workload->task && workload->park != SL_PARK_DETACHED &&
		 workload->task->phase != SL_PHASE_RUNS)
		no = "the queue parked it, or is moving it, and brings it back by itself";
	else if (!sl_jobs_place_of(&jobs->books, own, &here, &left) ||
		 !sl_jobs_place_of(&jobs->books, gpus, &there, &mask) || here != there)
		no = "a process can only go to GPUs of the same model and size that "
		     "sluiced manages";
	else if (sl_jobs_is_lost(&jobs->books, there, mask))
		no = "a GPU there is lost";
	else if (sl_jobs_is_lost(&jobs->books, here, left))
		no = "its GPU is lost, and the driver can bring nothing back from there";
	else if (sl_jobs_is_moving(workload))
		no = "it is being moved already";
	if (no)
		sl_error_set(text, "%s cannot be moved: %s", workload->name, no);
	return !no;
}

/* After a daemon's start, some may not have come back yet. */
static bool answers(const struct sl_workload *workload)
{
	sl_list_foreach (link, (struct sl_link *)&workload->clients) {
		const struct sl_client *client =
			SL_LIST_ENTRY(link, struct sl_client, link);

		if (!client->peer || client->state != SL_CLIENT_LIVE)
			return false;
	}
	return true;
}

bool sl_jobs_can_leave(const struct sl_jobs *jobs, const struct sl_workload *workload)
{
	struct sl_error text = {0};

	return sl_jobs_moves_any(jobs->daemon) && jobs->books.swaps && workload->reach &&
	       workload->park == SL_PARK_NOT && !sl_jobs_is_moving(workload) &&
	       sl_clock_now() >= workload->stays_until && answers(workload) &&
	       !is_held(jobs, workload, &text);
}

bool sl_jobs_send(struct sl_jobs *jobs, struct sl_workload *workload, uint32_t gpus,
	struct sl_error *text)
{
	/* It is away, or about to be: it comes back there. */
	if (sl_park_is_put_away(workload))
		workload->park = SL_PARK_MOVING;
	else if (!sl_park_workload(jobs->daemon, workload, SL_PARK_MOVING, text))
		return false;
	sl_jobs_when_away(jobs, workload, gpus);
	workload->move_by = sl_clock_now() + GONE_WITHIN;
	return true;
}

bool sl_jobs_move(struct sl_daemon *daemon, struct sl_workload *workload, uint32_t gpus,
	struct sl_error *text)
{
	struct sl_jobs *jobs = daemon->jobs;
	struct sl_job_task *task = workload->task;
	uint64_t node;
	uint32_t mask;

	if (!jobs) {
		sl_error_set(text, "sluiced is ending");
		return false;
	}
	if (!may_go(jobs, workload, gpus, text) || is_held(jobs, workload, text))
		return false;
	if (task && task->job->counted && task->phase == SL_PHASE_RUNS &&
		workload->park == SL_PARK_NOT)
		return sl_jobs_place_of(&jobs->books, gpus, &node, &mask) &&
		       ask_machine(jobs, task, mask, text);
	if (!fits(workload, gpus, text))
		return false;
	if (workload->park == SL_PARK_DETACHED && !sl_jobs_call_off(daemon, workload)) {
		sl_error_set(text, "%s is coming back already", workload->name);
		return false;
	}
	jobs->guests.spread_from = sl_clock_now() + SPREAD_AFTER_USER;
	return sl_jobs_send(jobs, workload, gpus, text);
}
