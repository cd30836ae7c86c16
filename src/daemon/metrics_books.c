/*
 * metrics_books - all numbers, copied at one moment
 *
 * A copy rather than a walk while the reader reads: sums of workloads and numbers of GPUs then go together, and a
 * reader who takes his time sees no mixture. It costs a few hundred bytes per workload, for as long as the answer
 * takes.
 */
#include "daemon/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/hostpool.h"
#include "daemon/jobs.h"

static void take_counters(struct sl_metrics_books *books, const struct sl_daemon *daemon)
{
	books->messages = daemon->messages;
	books->grants = daemon->grants;
	books->client_count = daemon->client_count;
	books->expected_count = daemon->expected_count;
	books->peer_count = daemon->peer_count;
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

/* places[number] becomes the GPU's place in the books. */
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
		out->utilisation_pct = gpu->utilisation_pct;
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
	out->view = sl_node_workload(daemon->node, workload->id);
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

struct sl_metrics_books *sl_metrics_take(const struct sl_daemon *daemon)
{
	struct sl_metrics_books *books = calloc(1, sizeof(*books));
	uint32_t places[SL_NODE_GPUS_MAX];
	size_t workloads = 0, uses = 0;

	for (const struct sl_link *link = daemon->workload_list.next;
		link != &daemon->workload_list; link = link->next) {
		workloads++;
		uses += SL_CONTAINER_OF(link, const struct sl_workload, link)->gpu_count;
	}
	if (books && workloads) {
		books->workloads = calloc(workloads, sizeof(*books->workloads));
		books->uses = calloc(uses + 1, sizeof(*books->uses));
	}
	if (!books || (workloads && (!books->workloads || !books->uses))) {
		if (books)
			books->users = 1;
		return sl_metrics_put(books);
	}
	memset(places, 0xff, sizeof(places)); /* UINT32_MAX: none of ours */
	books->users = 1;
	books->taken_at = sl_clock_now();
	take_counters(books, daemon);
	take_gpus(books, daemon, places);
	for (const struct sl_link *link = daemon->workload_list.next;
		link != &daemon->workload_list; link = link->next)
		take_workload(books, daemon,
			SL_CONTAINER_OF(link, const struct sl_workload, link), places);
	return books;
}

struct sl_metrics_books *sl_metrics_put(struct sl_metrics_books *books)
{
	if (!books || --books->users)
		return NULL;
	free(books->workloads);
	free(books->uses);
	free(books);
	return NULL;
}
