/*
 * lends - a burst is granted only where I2 holds with it, by the books as they are
 *
 * A seat says that there will be room once all that is coming has come. Until then dying bytes, or
 * those of clients told to end, can stand where the requests of others would; and what cannot be
 * moved again takes nothing of others' requests at all.
 */
#include "policy/node/plan.h"

/* What stands on requests that nothing covers, with the claim's demand or without it, once all that
 * is told to leave has left: what stays for good waits for that. */
static uint64_t lent(
	const struct sl_node *node, const struct sl_node_claim *claim, bool with)
{
	uint64_t unclaimed[SL_NODE_GPUS_MAX] = {0}, bytes = 0;
	const struct sl_node_workload *own = claim->client->workload;
	const struct sl_node_demand *demand = claim->demand;
	bool above = sl_node_stands_above(node, claim);
	bool left_already = !sl_node_stays_for_good(demand);

	sl_node_each_workload (workload, node) {
		if (above && workload->priority > own->priority)
			continue;
		sl_each_gpu (gpu, workload->account.gpu_mask) {
			uint64_t here = sl_ledger_here(&workload->account, gpu);

			here -= left_already ? workload->account.cell[gpu].leaving_bytes
					     : 0;
			here += with && workload == own && gpu == demand->gpu
					? demand->bytes
					: 0;
			unclaimed[gpu] += sl_sub_sat(
				sl_ledger_request(&workload->account, gpu), here);
		}
	}
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		uint64_t stands = sl_ledger_resident(&node->ledger, gpu) + unclaimed[gpu];

		stands -= left_already ? node->ledger.gpu[gpu].sum.leaving_bytes : 0;
		stands += with && gpu == demand->gpu ? demand->bytes : 0;
		bytes += sl_sub_sat(stands, sl_ledger_shareable(&node->ledger, gpu));
	}
	return bytes;
}

bool sl_node_can_lend(const struct sl_node *node, const struct sl_node_claim *claim)
{
	bool stays = sl_node_stays_for_good(claim->demand);
	uint64_t pool = sl_node_swaps(node) ? node->config.config.pool_bytes : 0;
	uint64_t away = node->ledger.evicted_bytes + node->ledger.leaving_bytes;
	const struct sl_ledger_account *account = &claim->client->workload->account;
	uint32_t gpu = claim->demand->gpu;
	uint64_t with;

	/* What was granted before it in this plan may have used the request up. */
	if (claim->entitled && sl_ledger_use(account, gpu) + claim->demand->bytes <=
				       sl_ledger_request(account, gpu))
		return true;
	for (uint32_t i = 0; i < SL_NODE_GPUS_MAX; i++)
		away -= node->ledger.gpu[i].sum.returning_bytes;
	with = lent(node, claim, true);
	if (!stays && away + with <= sl_sub_sat(pool, node->config.config.slack_bytes))
		return true;
	return with <= lent(node, claim, false);
}
