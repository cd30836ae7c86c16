/*
 * claim - the bound is computed from the policy's views, because the policy takes a report as a
 * fact
 */
#include "daemon/clients/claim.h"

#include "base/log.h"
#include "daemon/gpu/asking.h"
#include "daemon/state/client.h"
#include "daemon/state/commit.h"
#include "daemon/state/drive.h"
#include "daemon/workloads/workload.h"

static uint64_t sum_of(const struct sl_node_use_view *use)
{
	return use->backing_bytes + use->granted_bytes + use->hidden_bytes;
}

/* What other workloads' requests still lack on this GPU. */
static uint64_t unclaimed_by_others(const struct sl_client *client, uint32_t gpu)
{
	struct sl_daemon *daemon = client->daemon;
	uint64_t bytes = 0;

	sl_list_foreach (link, &daemon->workload_list) {
		struct sl_workload *other = SL_LIST_ENTRY(link, struct sl_workload, link);
		struct sl_node_use_view use;

		if (other == client->workload || sl_workload_ordinal(other, gpu) < 0)
			continue;
		use = sl_node_use(daemon->node, other->id, gpu);
		bytes += sl_sub_sat(other->request_bytes, sum_of(&use));
	}
	return bytes;
}

/* The earlier, larger limit counts for clients of a former daemon only: a later client got nothing
 * under it. */
static uint64_t limit_of(const struct sl_client *client)
{
	const struct sl_workload *workload = client->workload;

	return client->outlived
		       ? sl_max_u64(workload->limit_bytes, workload->former_limit_bytes)
		       : workload->limit_bytes;
}

/* What a demand for everything could get if the client held nothing yet. The client's hidden bytes
 * count as its backing, because until a report its backing is measured as hidden. */
static uint64_t room_for(const struct sl_client *client, uint32_t gpu)
{
	const struct sl_node *node = client->daemon->node;
	struct sl_node_gpu_view all = sl_node_gpu(node, gpu);
	struct sl_node_use_view own = sl_node_client_use(node, client->id, gpu);
	struct sl_node_use_view of_workload =
		sl_node_use(node, client->workload->id, gpu);
	uint64_t away = sl_sub_sat(all.evicted_bytes, all.returning_bytes);
	uint64_t taken = sl_sub_sat(all.backing_bytes, away) + all.granted_bytes +
			 all.hidden_bytes + all.dying_bytes;
	uint64_t replaced =
		sl_sub_sat(own.backing_bytes, own.evicted_bytes) + own.hidden_bytes;
	uint64_t room = sl_sub_sat(all.shareable_bytes, sl_sub_sat(taken, replaced));

	room = sl_sub_sat(room, unclaimed_by_others(client, gpu));
	return sl_min_u64(room,
		sl_sub_sat(limit_of(client), sl_sub_sat(sum_of(&of_workload), replaced)));
}

/* Evicted bytes are on no GPU, so only the limit bounds them. */
static uint64_t most_evicted(const struct sl_client *client, uint32_t gpu)
{
	const struct sl_node *node = client->daemon->node;

	if (client->known)
		return sl_node_client_use(node, client->id, gpu).backing_bytes;
	return limit_of(client);
}

uint64_t sl_claim_believe(
	struct sl_client *client, uint32_t ordinal, uint64_t bytes, uint64_t *evicted)
{
	uint32_t gpu = client->gpu_numbers[ordinal];
	uint64_t most, said_bytes = bytes + *evicted;
	char said[32], taken[32];

	*evicted = sl_min_u64(*evicted, most_evicted(client, gpu));
	if (client->known)
		most = sl_node_client_use(client->daemon->node, client->id, gpu)
			       .backing_bytes -
		       *evicted;
	else
		most = sl_max_u64(
			room_for(client, gpu), client->gpus[ordinal].listed_bytes);
	bytes = sl_min_u64(bytes, most);
	if (bytes + *evicted == said_bytes)
		return bytes;
	if (!client->doubted)
		sl_warning("process %d reports %s on GPU %u, more than it can hold; "
			   "counting %s, and the driver's figure from now on",
			(int)client->pid, sl_bytes_format(said_bytes, said, sizeof(said)),
			gpu, sl_bytes_format(bytes + *evicted, taken, sizeof(taken)));
	client->doubted = true;
	return bytes;
}

void sl_claim_hidden(struct sl_client *client, uint32_t ordinal, uint64_t bytes)
{
	struct sl_event event = {.type = SL_EVENT_HIDDEN};

	if (client->gpus[ordinal].hidden_bytes == bytes)
		return;
	client->gpus[ordinal].hidden_bytes = bytes;
	event.hidden.client = client->id;
	event.hidden.gpu = client->gpu_numbers[ordinal];
	event.hidden.bytes = bytes;
	sl_drive(client->daemon, &event);
}

void sl_claim_reported(struct sl_daemon *daemon, struct sl_client *client,
	uint32_t ordinal, uint64_t bytes)
{
	struct sl_client_gpu *gpu = &client->gpus[ordinal];

	client->changed_at = sl_clock_now();
	gpu->sampled = false;
	/* Only the first report to this daemon: later ones repeat what the books know. */
	if (!client->known)
		sl_claim_hidden(client, ordinal, sl_sub_sat(gpu->hidden_bytes, bytes));
	sl_asking_now(daemon, client->gpu_numbers[ordinal]);
}

/* Demands above the limit are denied, so a workload once below the limit stays there. */
void sl_claim_forget_former(struct sl_daemon *daemon, struct sl_workload *workload)
{
	if (!workload->former_limit_bytes)
		return;
	sl_list_foreach (link, &workload->clients) {
		const struct sl_client *client =
			SL_LIST_ENTRY(link, struct sl_client, link);

		if (client->outlived && (!client->known || client->expected))
			return;
	}
	for (uint32_t i = 0; i < workload->gpu_count; i++) {
		struct sl_node_use_view use =
			sl_node_use(daemon->node, workload->id, workload->gpus[i]);

		if (sum_of(&use) > workload->limit_bytes)
			return;
	}
	workload->former_limit_bytes = 0;
	sl_commit_soon(daemon);
}
