/*
 * moves - see the header
 */
#include "daemon/clients/moves.h"

#include "daemon/clients/views.h"
#include "daemon/state/client.h"
#include "daemon/state/commit.h"
#include "daemon/workloads/workload.h"

/* Nothing of it is there, so no sample of before counts. */
static void move_client(struct sl_client *client, uint32_t ordinal, uint32_t to)
{
	struct sl_client_gpu *gpu = &client->gpus[ordinal];

	client->gpu_numbers[ordinal] = (uint8_t)to;
	gpu->sampled = gpu->was_listed = false;
	gpu->listed_bytes = gpu->sampled_bytes = 0;
	gpu->busy_pct = 0;
	client->changed_at = sl_clock_now();
	sl_views_answer(client, ordinal);
}

void sl_moves(struct sl_daemon *daemon, const struct sl_action *action)
{
	struct sl_workload *workload =
		sl_map_get(&daemon->workloads, action->moves.workload);
	int ordinal = workload ? sl_workload_ordinal(workload, action->moves.from) : -1;

	if (ordinal < 0)
		return;
	workload->gpus[ordinal] = (uint8_t)action->moves.to;
	sl_list_foreach (link, &workload->clients)
		move_client(SL_LIST_ENTRY(link, struct sl_client, link),
			(uint32_t)ordinal, action->moves.to);
	sl_commit_soon(daemon);
}
