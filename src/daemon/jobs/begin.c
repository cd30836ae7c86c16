/*
 * begin - the GPU of a workload when its first process begins with CUDA
 *
 * Until then nothing of the workload is on a GPU, so the node chooses its GPU again (event
 * WORKLOAD_BEGINS), out of those that the queue leaves to it. The choice is told to the machine as
 * a fact, as that of a `sluice run` is (front.c).
 */
#include "daemon/gpu/inventory.h"
#include "daemon/jobs/internal.h"
#include "daemon/state/commit.h"
#include "daemon/workloads/park.h"
#include "daemon/workloads/workload.h"

/* GPUs of the kind of its own: its size, pool and rules hold there, too. */
static uint32_t alike(const struct sl_jobs *jobs, uint32_t own)
{
	uint64_t node, other;
	uint32_t mask, all = 0;

	if (!sl_jobs_place_of(&jobs->books, own, &node, &mask))
		return 0;
	for (uint32_t gpu = 0; gpu < jobs->daemon->gpu_count; gpu++) {
		if (sl_jobs_place_of(&jobs->books, 1u << gpu, &other, &mask) &&
			other == node)
			all |= 1u << gpu;
	}
	return all;
}

uint32_t sl_jobs_may_begin_on(
	const struct sl_daemon *daemon, const struct sl_workload *workload)
{
	struct sl_jobs *jobs = daemon->jobs;
	const struct sl_job_task *task = workload->task;
	uint32_t own = sl_workload_gpus(workload), gpus;

	if (!jobs || !(workload->flags & SL_WORKLOAD_LATE) ||
		workload->park != SL_PARK_NOT || (task && task->phase != SL_PHASE_RUNS))
		return 0;
	gpus = alike(jobs, own) & sl_inventory_usable(daemon, NULL) & ~own;
	/* What has no request takes no place from others. */
	return gpus && workload->request_bytes ? gpus & ~sl_jobs_kept_gpus(jobs) : gpus;
}

void sl_jobs_begins(struct sl_daemon *daemon, struct sl_workload *workload)
{
	struct sl_event event = {.type = SL_EVENT_WORKLOAD_BEGINS};
	uint32_t own = sl_workload_gpus(workload);
	struct sl_job_task *task = workload->task;

	event.workload_begins.workload = workload->id;
	event.workload_begins.gpu_mask = sl_jobs_may_begin_on(daemon, workload);
	/* From now on it is bound: a program may remember what its first process was told. */
	if (workload->flags & SL_WORKLOAD_LATE) {
		workload->flags &= ~SL_WORKLOAD_LATE;
		sl_commit_soon(daemon);
	}
	if (!event.workload_begins.gpu_mask)
		return;
	sl_drive(daemon, &event);
	if (sl_workload_gpus(workload) == own)
		return;
	if (task && task->job->counted)
		(void)sl_jobs_tell_place(
			daemon->jobs, SL_CLUSTER_EVENT_TASK_RUNS, task, workload);
	else /* its GPU was lost, and it counts again */
		sl_jobs_workload_changed(daemon, workload);
}
