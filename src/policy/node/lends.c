/*
 * lends - a burst is granted, and others leave for it, only while I2 holds by the books as they are
 *
 * A seat only says that there will be room once all bytes that are about to become free are free.
 * Until then, dying bytes and those of clients told to end may stand on requests of others. A
 * demand for memory that cannot be moved again takes nothing of others' requests at all.
 */
#include <string.h>

#include "policy/node/plan.h"

/* What stands on uncovered requests, per GPU and in all, with or without the claim's demand. after:
 * once all leaving bytes have left. */
static uint64_t lent(const struct sl_node *node, const struct sl_node_claim *claim,
	bool with, bool after, uint64_t on[SL_NODE_GPUS_MAX])
{
	const struct sl_node_workload *own = claim->client->workload;
	const struct sl_node_demand *demand = with ? claim->demand : NULL;
	bool above = sl_node_stands_above(node, claim);
	uint64_t bytes = 0;

	memset(on, 0, SL_NODE_GPUS_MAX * sizeof(*on));
	sl_node_each_workload (workload, node) {
		if (above && workload->priority > own->priority)
			continue;
		sl_each_gpu (gpu, workload->account.gpu_mask) {
			uint64_t here = sl_ledger_here(&workload->account, gpu);

			here -= after ? workload->account.cell[gpu].leaving_bytes : 0;
			here += demand && workload == own && gpu == demand->gpu
					? demand->bytes
					: 0;
			on[gpu] += sl_sub_sat(
				sl_ledger_request(&workload->account, gpu), here);
		}
	}
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		uint64_t stands = sl_ledger_resident(&node->ledger, gpu) + on[gpu];

		stands -= after ? node->ledger.gpu[gpu].sum.leaving_bytes : 0;
		stands += demand && gpu == demand->gpu ? demand->bytes : 0;
		on[gpu] = sl_sub_sat(stands, sl_ledger_shareable(&node->ledger, gpu));
		bytes += on[gpu];
	}
	return bytes;
}

/* On the host or leaving, and without room on a GPU. */
static uint64_t away(const struct sl_node *node)
{
	uint64_t bytes = node->ledger.evicted_bytes + node->ledger.leaving_bytes;

	for (uint32_t i = 0; i < SL_NODE_GPUS_MAX; i++)
		bytes -= node->ledger.gpu[i].sum.returning_bytes;
	return bytes;
}

static uint64_t usable(const struct sl_node *node)
{
	return sl_sub_sat(sl_node_swaps(node) ? node->config.config.pool_bytes : 0,
		node->config.config.slack_bytes);
}

bool sl_node_can_lend(const struct sl_node *node, const struct sl_node_claim *claim)
{
	/* A demand that stays for good waits until leaving bytes have left. */
	bool stays = sl_node_stays_for_good(node, claim->demand);
	const struct sl_ledger_account *account = &claim->client->workload->account;
	uint32_t gpu = claim->demand->gpu;
	uint64_t on[SL_NODE_GPUS_MAX], with;

	/* Earlier grants of this plan may have used up the request. */
	if (claim->entitled && sl_ledger_use(account, gpu) + claim->demand->bytes <=
				       sl_ledger_request(account, gpu))
		return true;
	with = lent(node, claim, true, !stays, on);
	if (!stays && away(node) + with <= usable(node))
		return true;
	return with <= lent(node, claim, false, !stays, on);
}

/* Bytes of processes told to end: like dying ones, they need not be taken back. */
static uint64_t ending(const struct sl_node *node, uint32_t gpu)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < node->plan->all_count; i++) {
		const struct sl_node_client *client = node->plan->all[i];
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];

		if (client->stage != SL_NODE_DYING && client->look->coming)
			bytes += sl_ledger_live(cell) - cell->leaving_bytes;
	}
	return bytes;
}

bool sl_node_can_leave_for(const struct sl_node *node, const struct sl_node_claim *claim,
	const struct sl_node_workload *workload, uint32_t gpu, uint64_t bytes)
{
	const struct sl_ledger_account *account = &workload->account;
	uint64_t stays = sl_ledger_here(account, gpu) - account->cell[gpu].leaving_bytes;
	uint64_t burst = sl_sub_sat(stays, sl_ledger_request(account, gpu));
	uint64_t on[SL_NODE_GPUS_MAX], all = away(node), back;

	(void)lent(node, claim, false, true, on);
	for (uint32_t i = 0; i < SL_NODE_GPUS_MAX; i++) {
		on[i] = sl_sub_sat(on[i], node->ledger.gpu[i].sum.dying_bytes);
		all += on[i];
	}
	back = sl_min_u64(
		sl_sub_sat(on[gpu], ending(node, gpu)), sl_min_u64(bytes, burst));
	return bytes <= back || all - back + bytes <= usable(node);
}
