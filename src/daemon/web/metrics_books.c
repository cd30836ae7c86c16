/*
 * metrics_books - copies all numbers at one moment
 *
 * The copy makes sums of workloads match figures of GPUs even for a slow client. It costs a few
 * hundred bytes per workload while the answer is sent. The loop is held for one walk over the
 * workloads: for each workload, nothing here may look at all others.
 */
#include "daemon/web/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/history/history.h"
#include "daemon/jobs/jobs.h"
#include "daemon/projects/registry.h"
#include "daemon/state/daemon.h"
#include "daemon/state/workload.h"
#include "daemon/swap/hostpool.h"
#include "daemon/web/serving.h"

static void take_counters(struct sl_metrics_books *books, const struct sl_daemon *daemon)
{
	books->messages = daemon->messages;
	books->grants = daemon->grants;
	books->client_count = daemon->client_count;
	books->expected_count = daemon->expected_count;
	books->peer_count = daemon->peers->count;
	books->nvml_up = daemon->nvml_ok && daemon->inventory_seen;
	memcpy(books->events, daemon->reasons, sizeof(books->events));
	memcpy(books->refusals, daemon->refusals, sizeof(books->refusals));
	memcpy(books->evictions, daemon->swap_causes[0], sizeof(books->evictions));
	memcpy(books->restores, daemon->swap_causes[1], sizeof(books->restores));
	sl_jobs_numbers(daemon, books->jobs, books->job_ends);
	books->pool = sl_node_pool(daemon->node);
	books->host_made_bytes = daemon->hostpool->made_bytes;
	books->host_huge_bytes = daemon->hostpool->huge_bytes;
	books->host_available_bytes = daemon->hostpool->room.available_bytes;
	books->host_failures = daemon->hostpool->failures;
	sl_wire_str(books->version, sizeof(books->version), SL_VERSION);
	sl_wire_str(books->driver, sizeof(books->driver), daemon->driver);
}

/* places[number] becomes the GPU's index in the books. */
static void take_gpus(struct sl_metrics_books *books, const struct sl_daemon *daemon,
	uint32_t places[SL_NODE_GPUS_MAX])
{
	for (uint32_t i = 0; i < daemon->gpu_count; i++) {
		const struct sl_gpu *gpu = &daemon->gpus[i];
		struct sl_metrics_gpu *out = &books->gpus[books->gpu_count];

		if (!gpu->managed)
			continue;
		places[i] = books->gpu_count++;
		sl_wire_uuid_format(gpu->uuid, out->uuid);
		memcpy(out->name, gpu->name, sizeof(out->name));
		memcpy(out->pci, gpu->pci, sizeof(out->pci));
		out->view = sl_node_gpu(daemon->node, i);
		out->measured = gpu->measured_at != 0;
		out->out_bytes_s = gpu->link_out.measured;
		out->in_bytes_s = gpu->link_in.measured;
		out->out_bytes = gpu->moved.out_bytes;
		out->in_bytes = gpu->moved.in_bytes;
		out->clean_bytes = gpu->moved.clean_bytes;
		out->utilisation_pct = gpu->utilisation_pct;
		out->by_process = gpu->by_process;
		out->measured_age = sl_sub_sat(books->taken_at, gpu->measured_at);
		if (gpu->complained)
			books->nvml_up = false;
	}
}

static void take_workload(struct sl_metrics_books *books, const struct sl_daemon *daemon,
	const struct sl_workload *workload, const uint32_t places[SL_NODE_GPUS_MAX])
{
	struct sl_metrics_workload *out = &books->workloads[books->workload_count];

	out->id = workload->id;
	out->uid = workload->uid;
	memcpy(out->name, workload->name, sizeof(out->name));
	memcpy(out->project, workload->project, sizeof(out->project));
	out->compute_request_pm = workload->compute.request_pm;
	out->compute_limit_pm = workload->compute.limit_pm;
	out->compute_had = sl_compute_had(&workload->compute, false, books->taken_at);
	out->compute_alone = sl_compute_had(&workload->compute, true, books->taken_at);
	out->view = sl_node_workload_alone(daemon->node, workload->id);
	for (uint32_t i = 0; i < workload->gpu_count; i++) {
		uint32_t gpu = workload->gpus[i];

		if (places[gpu] == UINT32_MAX)
			continue;
		books->uses[books->use_count++] = (struct sl_metrics_use){
			.workload = books->workload_count,
			.gpu = places[gpu],
			.view = sl_node_use(daemon->node, workload->id, gpu),
			.out_bytes = workload->moved[i].out_bytes,
			.in_bytes = workload->moved[i].in_bytes,
			.clean_bytes = workload->moved[i].clean_bytes,
		};
	}
	books->workload_count++;
}

/* Makes room for another workload's uses; false: no memory. */
static bool make_room(
	struct sl_metrics_books *books, const struct sl_workload *workload, size_t *room)
{
	size_t more = *room * 2 + workload->gpu_count;
	struct sl_metrics_use *uses;

	if (books->use_count + workload->gpu_count <= *room)
		return true;
	uses = realloc(books->uses, more * sizeof(*uses));
	if (!uses)
		return false;
	books->uses = uses;
	*room = more;
	return true;
}

/* One walk: most of its cost is to fetch workloads that are not in the cache. */
static bool take_workloads(struct sl_metrics_books *books, const struct sl_daemon *daemon)
{
	uint32_t places[SL_NODE_GPUS_MAX];
	size_t room = 0;

	memset(places, 0xff, sizeof(places)); /* UINT32_MAX: not managed */
	take_gpus(books, daemon, places);
	for (const struct sl_link *link = daemon->workload_list.next;
		link != &daemon->workload_list; link = link->next) {
		const struct sl_workload *workload =
			SL_CONTAINER_OF(link, const struct sl_workload, link);

		if (!make_room(books, workload, &room))
			return false;
		take_workload(books, daemon, workload, places);
	}
	return true;
}

static uint64_t quota_of(int64_t amount)
{
	return amount == SL_QUOTA_ALL ? SL_METRICS_ALL : (uint64_t)amount;
}

static bool take_quotas(struct sl_metrics_books *books, const struct sl_daemon *daemon)
{
	const struct sl_projects *set = sl_registry_set(daemon);
	size_t count = sl_min_u64(set->count, SL_METRICS_QUOTAS_MAX);

	books->quotas = malloc((count + 1) * sizeof(*books->quotas));
	if (!books->quotas)
		return false;
	for (size_t i = 0; i < count; i++) {
		struct sl_metrics_quota *quota = &books->quotas[books->quota_count++];

		memcpy(quota->project, set->rows[i].name, sizeof(quota->project));
		quota->quota = quota_of(set->rows[i].quota.of[SL_RES_GPU]);
		quota->limit = quota_of(set->rows[i].limit.of[SL_RES_GPU]);
		quota->compute_quota = quota_of(set->rows[i].quota.of[SL_RES_COMPUTE]);
		quota->compute_limit = quota_of(set->rows[i].limit.of[SL_RES_COMPUTE]);
	}
	return true;
}

/* The history's state comes from its sums, so the loop does not wait for the scribe. */
static void take_parts(struct sl_metrics_books *books, const struct sl_daemon *daemon)
{
	static void (*const parts[SL_WIRE_PARTS])(
		const struct sl_daemon *daemon, struct sl_part *part) = {
		[SL_PART_PROJECTS] = sl_registry_part,
		[SL_PART_JOBS] = sl_jobs_part,
		[SL_PART_PAGE] = sl_serving_page_part,
	};

	for (int i = 0; i < SL_WIRE_PARTS; i++) {
		struct sl_part part = {0};

		if (parts[i])
			parts[i](daemon, &part);
		books->well[i] = part.health == SL_HEALTH_GOOD;
	}
	books->well[SL_PART_HISTORY] = books->sums && books->sums->well;
}

struct sl_metrics_books *sl_metrics_take(const struct sl_daemon *daemon)
{
	struct sl_metrics_books *books = calloc(1, sizeof(*books));

	if (!books)
		return NULL;
	books->users = 1;
	books->taken_at = sl_clock_now();
	take_counters(books, daemon);
	books->sums = sl_history_latest(daemon);
	take_parts(books, daemon);
	if (!take_quotas(books, daemon))
		return sl_metrics_put(books);
	books->workloads =
		malloc((daemon->workload_count + 1) * sizeof(*books->workloads));
	if (!books->workloads || !take_workloads(books, daemon))
		return sl_metrics_put(books);
	return books;
}

struct sl_metrics_books *sl_metrics_ref(struct sl_metrics_books *books)
{
	if (books)
		books->users++;
	return books;
}

struct sl_metrics_books *sl_metrics_put(struct sl_metrics_books *books)
{
	if (!books || --books->users)
		return NULL;
	free(books->workloads);
	free(books->uses);
	free(books->quotas);
	(void)sl_history_sums_put(books->sums);
	free(books);
	return NULL;
}
