/*
 * node_waits - why a demand waits, in numbers
 *
 * One function answers for everybody: the notes after a second, the numbers of a denial, and
 * whoever asks later (sl_node_why). It looks at the books as they are and remembers nothing, so an
 * answer can never be older than the state it explains.
 */
#include "policy/node_state.h"

void sl_node_find_borrowers(
	const struct sl_node *node, uint32_t gpu, struct sl_node_borrowers *out)
{
	*out = (struct sl_node_borrowers){.as_of = node->books};
	sl_list_foreach (link, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);
		uint64_t burst = sl_sub_sat(sl_ledger_use(&member->account, gpu),
			sl_ledger_request(&member->account, gpu));
		uint32_t place = burst > out->burst_bytes[0] ? 0 : 1;

		if (burst <= out->burst_bytes[place])
			continue;
		if (place == 0) {
			out->id[1] = out->id[0];
			out->burst_bytes[1] = out->burst_bytes[0];
		}
		out->id[place] = member->index.id;
		out->burst_bytes[place] = burst;
	}
}

const struct sl_node_borrowers *sl_node_borrowers_of(struct sl_node *node, uint32_t gpu)
{
	struct sl_node_borrowers *borrowers = &node->borrowers[gpu];

	if (borrowers->as_of != node->books)
		sl_node_find_borrowers(node, gpu, borrowers);
	return borrowers;
}

/* Names the other workload that bursts most on the GPU. */
static void name_borrower(
	struct sl_node_because *because, const struct sl_node_borrowers *borrowers)
{
	uint32_t place = borrowers->id[0] == because->workload ? 1 : 0;

	because->other = borrowers->id[place];
	because->other_bytes = borrowers->burst_bytes[place];
}

uint64_t sl_node_available(const struct sl_node *node, const struct sl_demand *demand)
{
	const struct sl_ledger_account *account = demand->holding->account;
	uint64_t free_bytes = sl_ledger_free_bytes(&node->ledger, demand->gpu);
	uint64_t others = node->ledger.gpu[demand->gpu].unclaimed_bytes -
			  sl_ledger_unclaimed(account, demand->gpu);

	if (sl_demand_is_entitled(demand))
		return free_bytes;
	if (node->queue[demand->gpu].degraded)
		return 0;
	return sl_min_u64(free_bytes,
		sl_sub_sat(free_bytes + sl_node_lend_to(node, demand), others));
}

/* Something would come by itself: memory of the dead. */
static bool waits_for_the_dead(
	const struct sl_node *node, const struct sl_demand *demand, uint64_t available)
{
	uint64_t dying = node->ledger.gpu[demand->gpu].sum.dying_bytes;

	return dying && demand->bytes <= available + dying &&
	       (demand->entitled || !node->queue[demand->gpu].degraded);
}

static void explain(const struct sl_node *node, const struct sl_demand *demand,
	const struct sl_node_borrowers *borrowers, struct sl_node_because *because)
{
	const struct sl_node_queue *queue = &node->queue[demand->gpu];
	bool fits = demand->bytes <= because->available_bytes;

	if (sl_node_is_recovering(node)) {
		because->reason = SL_REASON_RECOVERY_WAITS;
		return;
	}
	if (fits && demand->refusals) {
		because->reason = SL_REASON_DRIVER_WAITS;
		return;
	}
	if (fits && queue->head && queue->head != demand) {
		because->reason = SL_REASON_KEPT_FOR_HEAD;
		because->other = sl_node_client_of(queue->head)->member->index.id;
		return;
	}
	if (waits_for_the_dead(node, demand, because->available_bytes)) {
		because->reason = SL_REASON_DYING_WAITS;
		because->other_bytes = node->ledger.gpu[demand->gpu].sum.dying_bytes;
		return;
	}
	because->reason =
		demand->entitled ? SL_REASON_ENTITLED_WAITS : SL_REASON_BURST_WAITS;
	name_borrower(because, borrowers);
}

struct sl_node_because sl_node_numbers(
	const struct sl_node *node, const struct sl_demand *demand)
{
	const struct sl_node_client *client = sl_node_client_of(demand);

	return (struct sl_node_because){.gpu = demand->gpu,
		.workload = client->member->index.id,
		.client = client->index.id,
		.bytes = demand->bytes,
		.available_bytes = sl_node_available(node, demand),
		.span = node->now - demand->arrived};
}

struct sl_node_because sl_node_waits_as(const struct sl_node *node,
	const struct sl_demand *demand, const struct sl_node_borrowers *borrowers)
{
	struct sl_node_because because = sl_node_numbers(node, demand);

	explain(node, demand, borrowers, &because);
	return because;
}

struct sl_node_because sl_node_waits_because(
	const struct sl_node *node, const struct sl_demand *demand)
{
	struct sl_node_borrowers borrowers;

	sl_node_find_borrowers(node, demand->gpu, &borrowers);
	return sl_node_waits_as(node, demand, &borrowers);
}
