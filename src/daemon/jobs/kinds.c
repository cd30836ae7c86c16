/*
 * kinds - the GPUs of this computer as nodes of the machine: kinds, pools, and what is measured
 */
#include <string.h>
#include <unistd.h>

#include "daemon/gpu/groups.h"
#include "daemon/gpu/inventory.h"
#include "daemon/jobs/internal.h"
#include "daemon/state/workload.h"
#include "daemon/swap/hostpool.h"

/* --- Kinds. --- */

static struct sl_jobs_kind *kind_of(struct sl_jobs_books *books, const struct sl_gpu *gpu)
{
	struct sl_jobs_kind *kind;

	for (uint32_t i = 0; i < books->kinds; i++) {
		kind = &books->kind[i];
		if (kind->capacity_bytes == gpu->capacity_bytes &&
			kind->group == gpu->group && strcmp(kind->name, gpu->name) == 0)
			return kind;
	}
	kind = &books->kind[books->kinds++];
	*kind = (struct sl_jobs_kind){
		.capacity_bytes = gpu->capacity_bytes, .group = gpu->group};
	memcpy(kind->name, gpu->name, sizeof(kind->name));
	return kind;
}

/* The smallest of those that work counts: a task may get any of them. */
static uint32_t shareable_mib(
	const struct sl_daemon *daemon, const struct sl_jobs_kind *kind)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < kind->count; i++) {
		if (!(kind->lost >> i & 1))
			least = sl_min_u64(least,
				sl_node_gpu(daemon->node, kind->gpus[i]).shareable_bytes);
	}
	return (uint32_t)sl_min_u64(least / SL_MIB, UINT32_MAX);
}

static uint64_t pool_mib(const struct sl_daemon *daemon)
{
	struct sl_node_pool_view view = sl_node_pool(daemon->node);

	return sl_sub_sat(view.pool_bytes, view.slack_bytes) / SL_MIB;
}

void sl_jobs_find_kinds(struct sl_jobs *jobs)
{
	const struct sl_daemon *daemon = jobs->daemon;
	struct sl_jobs_books *books = &jobs->books;

	books->works = false;
	for (uint32_t i = 0; i < daemon->gpu_count; i++) {
		struct sl_jobs_kind *kind;

		if (!daemon->gpus[i].managed || books->known >> i & 1)
			continue;
		books->known |= 1u << i;
		kind = kind_of(books, &daemon->gpus[i]);
		kind->gpus[kind->count++] = (uint8_t)i;
	}
	for (uint32_t k = 0; k < books->kinds; k++) {
		struct sl_jobs_kind *kind = &books->kind[k];

		kind->lost = 0;
		kind->first = k ? kind[-1].first + kind[-1].count : 0;
		for (uint32_t i = 0; i < kind->count; i++)
			kind->lost |= (uint32_t)daemon->gpus[kind->gpus[i]].lost << i;
		books->works |= (uint32_t)__builtin_popcount(kind->lost) < kind->count;
	}
	books->swaps = sl_hostpool_swap_is_on(daemon);
}

/* Its cores and memory do not change. */
static void first_put(struct sl_cluster_event *event, uint32_t k)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
	uint64_t memory_mib =
		pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) / SL_MIB
			  : 0;

	event->type = SL_CLUSTER_EVENT_NODE_PUT;
	event->node_put.node = k + 1;
	event->node_put.cpu_milli = cores > 0 ? (uint32_t)cores * 1000 : 0;
	event->node_put.memory_mib = (uint32_t)sl_min_u64(memory_mib, UINT32_MAX);
	event->node_put.model = event->node_put.pool = (uint8_t)sl_min_u64(k, 30);
}

void sl_jobs_put_nodes(struct sl_jobs *jobs)
{
	struct sl_jobs_books *books = &jobs->books;

	for (uint32_t k = 0; k < books->kinds; k++) {
		struct sl_jobs_kind *kind = &books->kind[k];
		struct sl_cluster_event event = kind->told;
		bool swaps = books->swaps &&
			     !sl_groups_fixed(jobs->daemon, 1u << kind->gpus[0]);

		if (!event.node_put.node)
			first_put(&event, k);
		event.node_put.gpus = (uint16_t)kind->count;
		event.node_put.first = (uint8_t)kind->first;
		event.node_put.shut = kind->lost;
		event.node_put.gpu_mib = shareable_mib(jobs->daemon, kind);
		event.node_put.swaps = swaps;
		event.node_put.pool_mib = swaps ? pool_mib(jobs->daemon) : 0;
		if (memcmp(&event, &kind->told, sizeof(event)) == 0)
			continue;
		kind->told = event;
		sl_jobs_tell(jobs, &event);
	}
}

bool sl_jobs_is_lost(const struct sl_jobs_books *books, uint64_t node, uint32_t mask)
{
	return node && node <= books->kinds && books->kind[node - 1].lost & mask;
}

uint32_t sl_jobs_gpus_at(const struct sl_jobs_books *books, uint64_t node, uint32_t mask)
{
	const struct sl_jobs_kind *kind;
	uint32_t gpus = 0;

	if (!node || node > books->kinds)
		return 0;
	kind = &books->kind[node - 1];
	for (uint32_t i = 0; i < kind->count; i++) {
		if (mask & 1u << i)
			gpus |= 1u << kind->gpus[i];
	}
	return __builtin_popcount(gpus) == __builtin_popcount(mask) ? gpus : 0;
}

bool sl_jobs_place_of(
	const struct sl_jobs_books *books, uint32_t gpus, uint64_t *node, uint32_t *mask)
{
	for (uint32_t k = 0; k < books->kinds; k++) {
		const struct sl_jobs_kind *kind = &books->kind[k];
		uint32_t here = 0;

		for (uint32_t i = 0; i < kind->count; i++) {
			if (gpus & 1u << kind->gpus[i])
				here |= 1u << i;
		}
		if (!here || __builtin_popcount(here) != __builtin_popcount(gpus))
			continue;
		*node = k + 1;
		*mask = here;
		return true;
	}
	return false;
}

/* --- Pools. --- */

/* A pool is a group of GPUs, or words of a model's name. */
static bool is_of_pool(const struct sl_jobs *jobs, const struct sl_jobs_kind *kind,
	const char *pool, size_t length)
{
	const char *group =
		sl_groups_name(jobs->daemon, &jobs->daemon->gpus[kind->gpus[0]]);

	return (strlen(group) == length && memcmp(group, pool, length) == 0) ||
	       sl_groups_is_model(kind->name, pool, length);
}

uint64_t sl_jobs_pools_named(const struct sl_jobs *jobs, const char *list)
{
	const struct sl_jobs_books *books = &jobs->books;
	uint64_t pools = 0;

	for (const char *at = list; *at;) {
		size_t length = strcspn(at, ",");

		for (uint32_t k = 0; k < books->kinds && k < 31; k++) {
			if (is_of_pool(jobs, &books->kind[k], at, length))
				pools |= 1ull << k;
		}
		at += length + (at[length] == ',');
	}
	/* No such GPU here: the project may use none. */
	return list[0] && !pools ? SL_JOBS_NO_POOL : pools;
}

uint32_t sl_jobs_project_gpus(const struct sl_jobs *jobs, const struct sl_job *job)
{
	uint64_t project = sl_jobs_add_event(jobs, job).job_add.project;
	/* The machine need not know where a job without request goes. */
	uint32_t gpus = job->is_free ? ~jobs->books.known : 0;

	for (uint32_t k = 0; k < jobs->books.kinds; k++) {
		const struct sl_jobs_kind *kind = &jobs->books.kind[k];

		if (!sl_cluster_may_stand(jobs->books.cluster, project, k + 1))
			continue;
		for (uint32_t i = 0; i < kind->count; i++)
			gpus |= 1u << kind->gpus[i];
	}
	return gpus;
}

/* Managed GPUs that are not there now. */
static uint32_t absent(const struct sl_daemon *daemon)
{
	uint32_t gpus = 0;

	for (uint32_t i = 0; i < daemon->gpu_count; i++)
		gpus |= (uint32_t)(daemon->gpus[i].managed &&
				   (daemon->gpus[i].lost || !daemon->gpus[i].present))
			<< i;
	return gpus;
}

uint32_t sl_jobs_named_gpus(const struct sl_jobs *jobs, const struct sl_jobs_row *row)
{
	uint32_t gpus = sl_inventory_usable(jobs->daemon, row->visible), only = 0;

	gpus = gpus ? gpus : absent(jobs->daemon);
	for (uint32_t k = 0; k < jobs->books.kinds; k++) {
		const struct sl_jobs_kind *kind = &jobs->books.kind[k];

		for (uint32_t i = 0; i < kind->count; i++)
			only |= (gpus >> kind->gpus[i] & 1) << (kind->first + i);
	}
	return only;
}

/* --- Measuring. --- */

/* Bytes per second leaving a GPU, until a move was measured. */
#define LINK_RATE (8ull << 30)

/* What cannot be moved now may be movable later, and nothing tells when. */
#define LOOKED_AT_AFTER (5 * SL_S)

/* Measures how much of the task would go to the host, and how long moving it out and back takes. */
static void measure_task(struct sl_jobs *jobs, const struct sl_job_task *task)
{
	const struct sl_daemon *daemon = jobs->daemon;
	const struct sl_workload *workload = sl_map_get(
		&daemon->workloads, task->job->row.tasks[task->number].workload);
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_COST};
	struct sl_job *job = task->job;
	uint64_t bytes = 0, rate = 0, mib;

	if (workload && job->counted && task->phase == SL_PHASE_RUNS &&
		job->moves != sl_jobs_may_move(jobs, job))
		sl_jobs_put_anew(jobs, job);
	if (daemon->config.detach_contexts && workload && job->counted && !job->moves)
		jobs->look_at = sl_clock_now() + LOOKED_AT_AFTER;
	if (!workload || !job->counted ||
		!(job->row.flags & SL_SUBMIT_PREEMPTIBLE || sl_jobs_may_move(jobs, job)))
		return;
	for (uint32_t i = 0; i < workload->gpu_count; i++) {
		const struct sl_gpu *gpu = &daemon->gpus[workload->gpus[i]];

		bytes += sl_node_use(daemon->node, workload->id, workload->gpus[i])
				 .backing_bytes;
		rate += gpu->link_out.measured ? gpu->link_out.measured : LINK_RATE;
	}
	/* Even an empty task needs a pool that exists. */
	mib = bytes / SL_MIB + 1;
	/* The largest of several tasks counts, since they are much alike. Small changes are not
	 * told. */
	if (mib <= job->park_mib &&
		(job->row.task_count > 1 || mib * 8 >= job->park_mib * 7))
		return;
	job->park_mib = mib;
	event.job_cost.job = job->row.id;
	event.job_cost.park_mib = mib;
	job->swap_cost = (sl_ns)(2.0 * (double)bytes / (double)rate * (double)SL_S);
	event.job_cost.swap_cost = job->swap_cost;
	sl_jobs_tell(jobs, &event);
}

void sl_jobs_measure(struct sl_jobs *jobs)
{
	/* Without swapping, foreground jobs cannot be preempted. */
	if (jobs->books.swaps != sl_hostpool_swap_is_on(jobs->daemon))
		sl_jobs_follow_gpus(jobs);
	else
		sl_jobs_put_nodes(jobs);
	sl_list_foreach (link, &jobs->active)
		measure_task(jobs, SL_LIST_ENTRY(link, struct sl_job_task, active));
}
