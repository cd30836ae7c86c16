/*
 * check - recomputes what the books and the facts must be; for tests
 */
#include "policy/node/internal.h"

static int check_ledger(const struct sl_node *node, struct sl_error *err)
{
	struct sl_ledger_audit audit;

	sl_ledger_audit_begin(&audit, &node->ledger);
	sl_node_each_workload (workload, node) {
		sl_ledger_audit_open(&audit, &workload->account);
		sl_node_each_client_of (client, workload)
			sl_ledger_audit_holding(&audit, &client->holding);
		if (sl_ledger_audit_close(&audit, err)) {
			sl_error_wrap(err, "workload %llu",
				(unsigned long long)workload->index.id);
			return 1;
		}
	}
	return sl_ledger_audit_end(&audit, err);
}

/* The books' granted and holding bytes are those of open grants. */
static int check_grants(const struct sl_node_client *client, struct sl_error *err)
{
	uint64_t granted[SL_NODE_GPUS_MAX] = {0}, holding[SL_NODE_GPUS_MAX] = {0};

	sl_node_each_demand_of (demand, client) {
		if (!demand->epoch || demand->flags & SL_NODE_DEMAND_VOID)
			continue;
		granted[demand->gpu] +=
			demand->flags & SL_NODE_DEMAND_THERE ? 0 : demand->bytes;
		holding[demand->gpu] +=
			demand->flags & SL_NODE_DEMAND_HELD ? demand->bytes : 0;
	}
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];

		if (granted[gpu] == cell->granted_bytes &&
			holding[gpu] == cell->holding_bytes &&
			cell->held_bytes <= cell->backing_bytes)
			continue;
		sl_error_set(err,
			"client %llu, GPU %u: open grants of %llu, of these %llu to be "
			"held; booked %llu and %llu",
			(unsigned long long)client->index.id, gpu,
			(unsigned long long)granted[gpu],
			(unsigned long long)holding[gpu],
			(unsigned long long)cell->granted_bytes,
			(unsigned long long)cell->holding_bytes);
		return 1;
	}
	return 0;
}

/* Leaving and returning bytes are those of the one open order. */
static int check_order(const struct sl_node_client *client, struct sl_error *err)
{
	const struct sl_node_order *order = &client->order;
	bool comes = order->id && order->kind == SL_NODE_RESTORE, right = true;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];
		bool leaves = order->id && !comes && order->gpu == gpu;

		right &= !cell->away_bytes || !sl_ledger_measured(cell);
		right &= !sl_node_is_travelling(client) || !cell->leaving_bytes;
		right &= cell->evicted_bytes <= cell->backing_bytes;
		right &= cell->returning_bytes <= (comes ? cell->evicted_bytes : 0);
		right &= leaves || !cell->leaving_bytes;
		right &= !(order->id && cell->granted_bytes);
	}
	right &= client->stage != SL_NODE_DYING || !order->id;
	if (right)
		return 0;
	sl_error_set(err, "client %llu: its order %llu on GPU %u is not what is moving",
		(unsigned long long)client->index.id, (unsigned long long)order->id,
		order->gpu);
	return 1;
}

static int check_workload(const struct sl_node_workload *workload, struct sl_error *err)
{
	bool parked = sl_node_is_parked(workload);

	if ((parked && workload->account.request_bytes) ||
		(sl_node_is_removed(workload) && sl_list_is_empty(&workload->clients))) {
		sl_error_set(err, "workload %llu: stage %d, request %llu%s",
			(unsigned long long)workload->index.id, workload->stage,
			(unsigned long long)workload->account.request_bytes,
			sl_node_is_removed(workload) ? ", and it should be forgotten"
						     : "");
		return 1;
	}
	sl_node_each_client_of (client, workload) {
		if (check_grants(client, err) || check_order(client, err))
			return 1;
	}
	return 0;
}

int sl_node_check(const struct sl_node *node, struct sl_error *err)
{
	if (check_ledger(node, err))
		return 1;
	sl_node_each_workload (workload, node) {
		if (check_workload(workload, err))
			return 1;
	}
	return 0;
}
