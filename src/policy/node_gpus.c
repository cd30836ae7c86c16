/*
 * node_gpus - GPUs come, shrink by what we do not manage, and are lost; and the settings
 */
#include "policy/mutant.h"
#include "policy/node_state.h"

void sl_node_on_config(struct sl_node *node, const struct sl_event *event)
{
	node->wait_max = event->config.wait_max;
	node->head_pass = event->config.head_pass;
	node->idle_wait = event->config.idle_wait;
	node->recover_wait = event->config.recover_wait;
	node->chain = event->config.chain;
	node->stop_idle = event->config.stop_idle;
	node->stop_grace = event->config.stop_grace;
	node->untakeable_after = event->config.untakeable_after;
	node->last_resort = event->config.last_resort;
	node->placement = event->config.placement;
	node->unmanaged = event->config.unmanaged;
	node->pool.pool_bytes = sl_min_u64(event->config.pool_bytes, SL_LEDGER_BYTES_MAX);
	node->pool.slack_bytes = event->config.slack_bytes;
	node->pool_member_bytes = event->config.pool_member_bytes;
	node->turn_max =
		event->config.turn_max ? event->config.turn_max : SL_TURNS_DEFAULT;
	node->min_share_pm = event->config.min_share_pm;
	node->evict_drain =
		event->config.evict_drain ? event->config.evict_drain : SL_NODE_DRAIN;
	node->swap_dirty = true;
	node->dirty_mask = UINT32_MAX;
	node->deadlock_dirty = node->timers_dirty = node->probes_dirty = true;
	sl_node_judge_strangers(node);
}

void sl_node_on_unmanaged(struct sl_node *node, const struct sl_event *event)
{
	uint32_t gpu = event->unmanaged.gpu;

	if (gpu >= SL_NODE_GPUS_MAX || !node->ledger.gpu[gpu].present) {
		sl_node_note(node, SL_REASON_STRAY, gpu, 0, 0, event->unmanaged.bytes);
		return;
	}
	sl_ledger_set_unmanaged(&node->ledger, gpu, event->unmanaged.bytes);
	sl_node_touch(node, 1u << gpu);
	node->deadlock_dirty = true;
}

/* --- lost --- */

static bool has_to_do_with(const struct sl_node_member *member, uint32_t gpu)
{
	return !member->leaving && (member->account.gpu_mask >> gpu & 1);
}

/*
 * What waits there is denied, also within a request: that is an exception of promise 2, named. A
 * client that waits on other GPUs too goes on waiting there. Open grants are void: the books count
 * nothing for them, whatever the client commits (it can have made nothing that lasts), and one
 * whose creation failed is denied. Requests stay booked, so that the promise holds when the GPU is
 * back; what living clients held stays too, until they free it or exit.
 */
void sl_node_on_gpu_lost(struct sl_node *node, const struct sl_event *event)
{
	uint32_t gpu = event->gpu_lost.gpu;
	struct sl_node_queue *queue;

	if (gpu >= SL_NODE_GPUS_MAX || !node->ledger.gpu[gpu].present) {
		sl_node_note(node, SL_REASON_STRAY, gpu, 0, 0, 0);
		return;
	}
	queue = &node->queue[gpu];
	if (queue->lost)
		return;
	queue->lost = true;
	queue->degraded = false;
	sl_node_note(node, SL_REASON_LOST_BEGINS, gpu, 0, 0, 0);
	sl_list_foreach (link, &node->all_members) {
		struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);

		if (has_to_do_with(member, gpu))
			sl_node_note(node, SL_REASON_LOST_FOR, gpu, member->index.id, 0,
				sl_ledger_here(&member->account, gpu));
	}
	/* Ends: each denial takes one off the queue. */
	while (SL_MUTANT(LOST_GOES_ON, !sl_list_is_empty(&queue->waiting), false))
		sl_node_deny(node,
			SL_LIST_ENTRY(queue->waiting.next, struct sl_demand, queue),
			SL_REASON_GPU_LOST);
	sl_list_foreach_safe (at, &node->all_members)
		sl_node_lose(
			node, SL_LIST_ENTRY(at, struct sl_node_member, of_node), gpu);
	sl_node_lose_strangers(node, gpu);
	sl_node_touch(node, 1u << gpu);
	node->deadlock_dirty = node->timers_dirty = true;
}

static void find_again(struct sl_node *node, uint32_t gpu)
{
	if (!node->queue[gpu].lost)
		return;
	node->queue[gpu].lost = SL_MUTANT(LOST_FOR_EVER, false, true);
	sl_node_note(node, SL_REASON_LOST_ENDS, gpu, 0, 0, 0);
}

void sl_node_on_gpu_add(struct sl_node *node, const struct sl_event *event)
{
	uint32_t gpu = event->gpu_add.gpu;

	if (gpu >= SL_NODE_GPUS_MAX) {
		sl_node_note(node, SL_REASON_STRAY, gpu, 0, 0, 0);
		return;
	}
	sl_ledger_set_gpu(&node->ledger, gpu, event->gpu_add.capacity_bytes,
		event->gpu_add.reserve_bytes, event->gpu_add.driver_bytes);
	sl_node_repay(node, gpu);
	find_again(node, gpu);
	sl_node_touch(node, 1u << gpu);
	node->deadlock_dirty = true;
}
