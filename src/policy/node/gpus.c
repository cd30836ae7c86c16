/*
 * gpus - GPUs are added, shrink by unmanaged processes, and are lost; and the settings
 */
#include "policy/node/internal.h"
#include "policy/verdicts/turns.h"

/* For a link that was not measured. */
#define LINK_DEFAULT (8 * SL_GIB)

__extension__ typedef unsigned __int128 wide;

static sl_ns span_of(uint64_t bytes, uint64_t bytes_s)
{
	return (sl_ns)((wide)bytes * SL_S / (bytes_s ? bytes_s : LINK_DEFAULT));
}

sl_ns sl_node_cost_out(const struct sl_node *node, uint32_t gpu, uint64_t bytes)
{
	return span_of(bytes, node->gpu[gpu].out_bytes_s);
}

sl_ns sl_node_cost_in(const struct sl_node *node, uint32_t gpu, uint64_t bytes)
{
	return span_of(bytes, node->gpu[gpu].in_bytes_s);
}

bool sl_node_has(const struct sl_node *node, enum sl_resolver resolver)
{
	return sl_chain_has(node->config.config.chain, resolver);
}

uint32_t sl_node_chain(
	const struct sl_node *node, const struct sl_node_workload *workload)
{
	uint32_t own = SL_MUTANT(
		OWN_CHAIN_IGNORED, workload->flags >> SL_WORKLOAD_CHAIN_SHIFT, 0);
	uint32_t all = node->config.config.chain;

	return own ? SL_MUTANT(CHAIN_BEYOND_NODE, sl_chain_within(own, all), own) : all;
}

bool sl_node_is_fixed(const struct sl_node *node, const struct sl_node_workload *workload)
{
	uint32_t fixed = SL_MUTANT(FIXED_GPU_SWAPS, node->ledger.fixed_gpus, 0);

	return workload->flags & SL_WORKLOAD_NO_SWAP ||
	       workload->account.gpu_mask & fixed ||
	       SL_MUTANT(TOUCHED_IS_FIXED, sl_ledger_holds(&workload->account, fixed),
		       workload->account.touched & fixed);
}

bool sl_node_swaps(const struct sl_node *node)
{
	return node->config.config.pool_bytes && sl_node_has(node, SL_RESOLVER_SWAP);
}

bool sl_node_keeps_for_good(const struct sl_node *node)
{
	return sl_node_swaps(node) &&
	       !SL_MUTANT(STOPPABLE_IS_PROMISED, sl_node_has(node, SL_RESOLVER_PRIORITY),
		       false);
}

bool sl_node_keeps_all(
	const struct sl_node *node, const struct sl_node_workload *workload)
{
	return sl_node_keeps_for_good(node) && sl_node_is_fixed(node, workload);
}

void sl_node_book_stays(struct sl_node *node, struct sl_node_workload *workload)
{
	sl_ledger_set_stays(&node->ledger, &workload->account,
		sl_node_keeps_all(node, workload) && !sl_node_is_parked(workload));
}

static void book_all_stays(struct sl_node *node)
{
	sl_node_each_workload (workload, node)
		sl_node_book_stays(node, workload);
}

uint32_t sl_node_degraded(const struct sl_node *node)
{
	uint32_t mask = 0;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		if (!node->gpu[gpu].lost && sl_ledger_is_degraded(&node->ledger, gpu))
			mask |= 1u << gpu;
	}
	return mask;
}

void sl_node_tell_degraded(struct sl_node_step *step)
{
	uint32_t is = sl_node_degraded(step->node);

	sl_each_gpu (gpu, is ^ step->degraded) {
		/* A lost GPU is not also reported as degraded. */
		if (step->node->gpu[gpu].lost)
			continue;
		step->plans = true;
		sl_node_note(step,
			is >> gpu & 1 ? SL_REASON_DEGRADED_BEGINS
				      : SL_REASON_DEGRADED_ENDS,
			gpu, 0, 0, sl_ledger_excess(&step->node->ledger, gpu));
	}
	step->degraded = is;
}

void sl_node_on_config(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node *node = step->node;

	node->config = *event;
	node->config.config.pool_bytes =
		sl_min_u64(event->config.pool_bytes, SL_LEDGER_BYTES_MAX);
	if (!event->config.chain)
		node->config.config.chain = SL_RESOLVER_WAIT;
	if (!event->config.turn_max)
		node->config.config.turn_max = SL_TURNS_DEFAULT;
	if (!event->config.min_share_pm)
		node->config.config.min_share_pm = SL_TURNS_MIN_SHARE;
	if (!event->config.evict_drain)
		node->config.config.evict_drain = 2 * SL_S;
	book_all_stays(node);
	step->plans = true;
}

void sl_node_on_pool_size(struct sl_node_step *step, const struct sl_event *event)
{
	step->node->config.config.pool_bytes =
		sl_min_u64(event->pool_size.pool_bytes, SL_LEDGER_BYTES_MAX);
	book_all_stays(step->node);
	step->plans = true;
}

void sl_node_on_link_cost(struct sl_node_step *step, const struct sl_event *event)
{
	uint32_t gpu = event->link_cost.gpu;

	if (gpu >= SL_NODE_GPUS_MAX)
		return;
	step->node->gpu[gpu].out_bytes_s = event->link_cost.out_bytes_s;
	step->node->gpu[gpu].in_bytes_s = event->link_cost.in_bytes_s;
	sl_node_wake(step, sl_node_later(step->now, SL_MS));
}

void sl_node_on_unmanaged(struct sl_node_step *step, const struct sl_event *event)
{
	uint32_t gpu = event->unmanaged.gpu;

	if (!sl_node_is_there(step, gpu, event->unmanaged.bytes))
		return;
	sl_ledger_set_unmanaged(&step->node->ledger, gpu, event->unmanaged.bytes);
	step->plans = true;
}

/*
 * The plan denies demands that wait there, even within a request: a named exception of promise 2.
 * Open grants are void: whatever the client commits, nothing it made there lasts. Requests stay
 * booked, so that the promise holds when the GPU is back. Memory of living clients also stays
 * booked, until they free it or exit.
 */
void sl_node_on_gpu_lost(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node *node = step->node;
	uint32_t gpu = event->gpu_lost.gpu;

	if (!sl_node_is_there(step, gpu, 0) || node->gpu[gpu].lost)
		return;
	node->gpu[gpu].lost = true;
	sl_node_note(step, SL_REASON_LOST_BEGINS, gpu, 0, 0, 0);
	sl_node_each_workload (workload, node) {
		if (workload->account.gpu_mask >> gpu & 1)
			sl_node_note(step, SL_REASON_LOST_FOR, gpu, workload->index.id, 0,
				sl_ledger_here(&workload->account, gpu));
	}
	sl_node_lose(step, gpu);
	sl_node_lose_strangers(node, gpu);
	step->plans = true;
}

void sl_node_on_gpu_add(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node *node = step->node;
	uint32_t gpu = event->gpu_add.gpu;

	if (gpu >= SL_NODE_GPUS_MAX) {
		sl_node_note(step, SL_REASON_STRAY, gpu, 0, 0, 0);
		return;
	}
	sl_ledger_set_gpu(&node->ledger, gpu, event->gpu_add.capacity_bytes,
		event->gpu_add.reserve_bytes, event->gpu_add.driver_bytes);
	node->ledger.fixed_gpus &= ~(1u << gpu);
	node->ledger.fixed_gpus |= (uint32_t)(event->gpu_add.fixed != 0) << gpu;
	book_all_stays(node);
	sl_node_repay(step, gpu);
	if (node->gpu[gpu].lost) {
		node->gpu[gpu].lost = SL_MUTANT(LOST_FOR_EVER, false, true);
		sl_node_note(step, SL_REASON_LOST_ENDS, gpu, 0, 0, 0);
	}
	step->plans = true;
}
