/*
 * facts - what is known of clients' work: idle, busy, proven, stuck
 *
 * A state that a pulse reports continues until the next pulse. So the moment at which it began is
 * kept, not how long it has lasted.
 */
#include "policy/node/internal.h"

void sl_node_be_active(struct sl_node_step *step, struct sl_node_client *client)
{
	client->active_at = sl_node_stamp(step);
	/* From then on it counts as standing still. */
	if (sl_node_first_waiting(client))
		sl_node_wake(step,
			sl_node_later(step->now, step->node->config.config.idle_wait));
}

bool sl_node_has_memory(const struct sl_node_client *client)
{
	sl_each_gpu (gpu, client->holding.touched) {
		if (sl_ledger_live(&client->holding.cell[gpu]))
			return true;
	}
	return false;
}

sl_ns sl_node_idle(const struct sl_node_client *client, sl_ns now)
{
	return client->idle_since ? sl_sub_sat(now, sl_node_quiet_since(client)) : 0;
}

/* An evicted client runs no work, whatever its last pulse said. */
sl_ns sl_node_stuck_since(const struct sl_node_client *client)
{
	sl_ns busy = sl_node_is_out(client) ? 0 : client->busy_since;

	if (!busy || !client->halted_since)
		return busy + client->halted_since;
	return sl_min_u64(busy, client->halted_since);
}

sl_ns sl_node_untakeable_at(
	const struct sl_node *node, const struct sl_node_client *client)
{
	sl_ns after = node->config.config.untakeable_after;
	sl_ns since = sl_node_stuck_since(client);

	if (!after || !since || client->stage == SL_NODE_DYING)
		return SL_NS_NEVER;
	return SL_MUTANT(UNTAKEABLE_UNSEEN, sl_node_later(since, after), SL_NS_NEVER);
}

bool sl_node_is_untakeable(
	const struct sl_node *node, const struct sl_node_client *client)
{
	return node->now >= sl_node_untakeable_at(node, client);
}

bool sl_node_answers(
	const struct sl_node *node, const struct sl_node_client *client, sl_ns now)
{
	return client->stage == SL_NODE_LIVES &&
	       client->condition == SL_CONDITION_RUNNING &&
	       now < sl_node_untakeable_at(node, client);
}

/* The client, or NULL if it is unknown or dying: a report may cross its end. */
static struct sl_node_client *told_of(struct sl_node_step *step, uint64_t id)
{
	struct sl_node_client *client = sl_node_find_client(step->node, id);

	return client && client->stage != SL_NODE_DYING ? client : NULL;
}

void sl_node_on_work(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node_client *client = told_of(step, event->work.client);

	if (!client)
		return;
	sl_node_be_active(step, client);
	if (!client->idle_since)
		return;
	client->idle_since = 0;
	client->proven = false;
	sl_node_wake(step, sl_node_later(step->now, SL_MS));
}

static sl_ns before(sl_ns now, sl_ns span)
{
	return sl_max_u64(sl_sub_sat(now, span), 1);
}

void sl_node_on_pulse(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node_client *client = told_of(step, event->pulse.client);
	sl_ns idle = event->pulse.idle, busy = event->pulse.busy, was_since;
	bool was_proven;

	if (!client)
		return;
	was_since = client->idle_since;
	was_proven = client->proven;
	client->idle_since = idle ? before(step->now, idle) : 0;
	/* A proof holds for as long as the idleness continues; 1 ms allows for pulses that took
	 * longer. */
	client->proven = idle && client->condition != SL_CONDITION_SILENT &&
			 (event->pulse.proven ||
				 (was_proven && client->idle_since <= was_since + SL_MS));
	client->busy_since = busy ? before(step->now, busy) : 0;
	/* Idleness that merely continues changes nothing. */
	if (was_proven != client->proven || !was_since != !client->idle_since ||
		sl_max_u64(was_since, client->idle_since) -
				sl_min_u64(was_since, client->idle_since) >
			SL_MS)
		sl_node_wake(step, sl_node_later(step->now, client->proven ? 0 : SL_MS));
	step->plans |= client->busy_since != 0;
}

void sl_node_on_condition(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node_client *client = told_of(step, event->condition.client);
	enum sl_client_condition to;

	if (!client)
		return;
	/* A condition unknown to this version counts as silent. */
	to = event->condition.condition < SL_CONDITIONS
		     ? (enum sl_client_condition)event->condition.condition
		     : SL_CONDITION_SILENT;
	if (client->condition == to)
		return;
	if (to == SL_CONDITION_RUNNING)
		client->halted_since = 0;
	else if (client->condition == SL_CONDITION_RUNNING)
		client->halted_since = sl_node_stamp(step);
	client->condition = to;
	if (to == SL_CONDITION_SILENT)
		client->proven = false;
	step->plans = true;
}

void sl_node_on_stop_failed(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node_client *client = told_of(step, event->stop_failed.client);

	/* It may have been spared, or have ended, meanwhile. */
	if (!client ||
		SL_MUTANT(FAILED_STOP_COUNTS, !sl_node_is_told_to_end(client), true))
		return;
	client->stop_stage = SL_NODE_UNREACHED;
	client->stop_at = sl_node_later(step->now, 60 * SL_S);
	step->plans = true;
}
