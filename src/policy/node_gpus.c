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
	node->dirty_mask = UINT32_MAX;
	node->deadlock_dirty = node->timers_dirty = true;
}

void sl_node_on_gpu_add(struct sl_node *node, const struct sl_event *event)
{
	uint32_t gpu = event->gpu_add.gpu;

	if (gpu >= SL_NODE_GPUS_MAX) {
		sl_node_note(node, SL_REASON_STRAY, gpu, 0, 0, 0);
		return;
	}
	sl_ledger_set_gpu(&node->ledger, gpu, event->gpu_add.capacity_bytes,
		event->gpu_add.reserve_bytes);
	sl_node_touch(node, 1u << gpu);
	node->deadlock_dirty = true;
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

/* TO DO: not there yet. */
void sl_node_on_gpu_lost(struct sl_node *node, const struct sl_event *event)
{
	sl_node_note(node, SL_REASON_STRAY, event->gpu_lost.gpu, 0, 0, 0);
}

void sl_node_on_stranger(struct sl_node *node, const struct sl_event *event)
{
}
