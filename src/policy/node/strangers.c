/*
 * strangers - processes that use a GPU and are not clients
 *
 * Their bytes are booked as a sum (UNMANAGED), on which shareable depends. Single processes only
 * matter if the administrator wants a warning, or wants them stopped: SIGTERM, the grace of
 * `priority`, SIGKILL. A process with nothing left on any GPU is forgotten.
 */
#include "policy/node/internal.h"

static struct sl_node_stranger *find_stranger(const struct sl_node *node, uint64_t id)
{
	struct sl_index_node *found = sl_index_find(&node->strangers, id);

	return found ? SL_NODE_ENTRY(found, sl_node_stranger) : NULL;
}

static struct sl_node_stranger *meet(struct sl_node *node, uint64_t id)
{
	struct sl_node_stranger *stranger = node->spare_strangers;

	if (stranger)
		node->spare_strangers = stranger->next_spare;
	else
		stranger = sl_arena_take(node->arena, sizeof(*stranger));
	*stranger = (struct sl_node_stranger){.index.id = id};
	sl_index_add(&node->strangers, &stranger->index);
	return stranger;
}

static void forget_stranger(struct sl_node *node, struct sl_node_stranger *stranger)
{
	sl_index_remove(&node->strangers, &stranger->index);
	stranger->next_spare = node->spare_strangers;
	node->spare_strangers = stranger;
}

/* The GPU with most of its bytes; 0 bytes there if it has none anywhere. */
static uint32_t most_of(const struct sl_node_stranger *stranger)
{
	uint32_t most = 0;

	for (uint32_t gpu = 1; gpu < SL_NODE_GPUS_MAX; gpu++) {
		if (stranger->bytes[gpu] > stranger->bytes[most])
			most = gpu;
	}
	return most;
}

static void tell_stop(struct sl_node_step *step, const struct sl_node_stranger *stranger,
	enum sl_stop_stage stage)
{
	uint32_t gpu = most_of(stranger);

	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_STOP_STRANGER,
				   .stop_stranger = {.stranger = stranger->index.id,
					   .stage = stage,
					   .gpu = gpu,
					   .bytes = stranger->bytes[gpu]}});
}

static void note(struct sl_node_step *step, struct sl_node_stranger *stranger)
{
	uint32_t gpu = most_of(stranger);

	if (SL_MUTANT(STRANGER_NOTED_AGAIN, stranger->stage != SL_NODE_KNOWN, false))
		return;
	stranger->stage = SL_NODE_SAID;
	sl_node_note_because(
		step, &(struct sl_node_because){.reason = SL_REASON_UNMANAGED_SEEN,
			      .gpu = gpu,
			      .bytes = stranger->bytes[gpu],
			      .client = stranger->index.id});
}

/* Applies the administrator's setting; a process told to end is spared if that is no longer
 * wanted. */
static void judge(struct sl_node_step *step, struct sl_node_stranger *stranger)
{
	enum sl_unmanaged wanted = step->node->config.config.unmanaged;

	if (wanted != SL_UNMANAGED_STOP && stranger->stage > SL_NODE_SAID)
		stranger->stage = SL_NODE_SAID;
	if (wanted == SL_UNMANAGED_WARN)
		note(step, stranger);
	if (wanted != SL_UNMANAGED_STOP || stranger->stage > SL_NODE_SAID)
		return;
	stranger->stage = SL_NODE_TOLD_TO_END;
	stranger->stage_at =
		sl_node_later(step->now, step->node->config.config.stop_grace);
	sl_node_wake(step, stranger->stage_at);
	tell_stop(step, stranger, SL_STOP_TERM);
}

void sl_node_on_stranger(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node *node = step->node;
	struct sl_node_stranger *stranger = find_stranger(node, event->stranger.stranger);
	uint32_t gpu = event->stranger.gpu;
	uint64_t bytes = event->stranger.bytes;

	if (!sl_node_is_there(step, gpu, bytes) || (!stranger && !bytes))
		return;
	if (!stranger)
		stranger = meet(node, event->stranger.stranger);
	stranger->bytes[gpu] = bytes;
	if (stranger->bytes[most_of(stranger)])
		judge(step, stranger);
	else
		forget_stranger(node, stranger);
}

void sl_node_time_strangers(struct sl_node_step *step)
{
	struct sl_node *node = step->node;

	for (struct sl_index_node *at = sl_index_next(&node->strangers, NULL); at;
		at = sl_index_next(&node->strangers, at)) {
		struct sl_node_stranger *stranger = SL_NODE_ENTRY(at, sl_node_stranger);

		judge(step, stranger);
		if (stranger->stage != SL_NODE_TOLD_TO_END ||
			!sl_node_has_come(step, stranger->stage_at))
			continue;
		stranger->stage = SL_NODE_SHOT;
		if (SL_MUTANT(STRANGER_SURVIVES, true, false))
			tell_stop(step, stranger, SL_STOP_KILL);
	}
}

void sl_node_lose_strangers(struct sl_node *node, uint32_t gpu)
{
	struct sl_index_node *at = sl_index_next(&node->strangers, NULL);

	while (at) {
		struct sl_node_stranger *stranger = SL_NODE_ENTRY(at, sl_node_stranger);

		stranger->bytes[gpu] = 0;
		if (stranger->bytes[most_of(stranger)]) {
			at = sl_index_next(&node->strangers, at);
			continue;
		}
		forget_stranger(node, stranger);
		at = sl_index_next(&node->strangers, NULL);
	}
}
