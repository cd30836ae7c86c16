/*
 * node_facts - what is known of clients' work: idle, busy, proven, and whether they can be taken
 * from
 *
 * A pulse says how long something has lasted when it was sent; from then on it goes on by itself
 * until the next one, so pulses are needed only when something changes. Who is stopped, traced,
 * silent or busy is a suspect: after untakeable_after of it the client is untakeable, which is
 * found out by its deadline, not by looking again and again.
 */
#include "policy/mutant.h"
#include "policy/node_state.h"

/* Spans come from clients and may be anything: they end at "for ever", not at 0. */
sl_ns sl_node_idle(const struct sl_node *node, const struct sl_node_client *client)
{
	return client->idle ? sl_node_later(node->now - client->pulse_at, client->idle)
			    : 0;
}

sl_ns sl_node_busy(const struct sl_node *node, const struct sl_node_client *client)
{
	return client->busy ? sl_node_later(node->now - client->pulse_at, client->busy)
			    : 0;
}

bool sl_node_is_proven(const struct sl_node_client *client)
{
	return client->idle && client->proven && client->condition != SL_CONDITION_SILENT;
}

/* --- untakeable --- */

static bool is_suspect(const struct sl_node_client *client)
{
	return client->alive &&
	       (client->condition != SL_CONDITION_RUNNING || client->busy);
}

/* How long whatever makes it a suspect has lasted. */
static sl_ns trouble(const struct sl_node *node, const struct sl_node_client *client)
{
	sl_ns condition = client->condition != SL_CONDITION_RUNNING
				  ? node->now - client->condition_at
				  : 0;

	return sl_max_u64(condition, sl_node_busy(node, client));
}

static void set_untakeable(
	struct sl_node *node, struct sl_node_client *client, bool untakeable)
{
	struct sl_node_member *member = client->member;

	client->untakeable = untakeable;
	member->untakeable += untakeable ? 1 : -1;
	node->untakeable += untakeable ? 1 : -1;
	sl_node_touch(node, member->account.gpu_mask | member->account.touched);
	node->probes_dirty = true;
}

/* Decides about one client, now. Returns when time alone will decide otherwise. */
static sl_ns judge(struct sl_node *node, struct sl_node_client *client)
{
	sl_ns after = node->untakeable_after, lasted = trouble(node, client);
	bool untakeable = SL_MUTANT(
		UNTAKEABLE_UNSEEN, after && is_suspect(client) && lasted >= after, false);

	if (untakeable != client->untakeable) {
		struct sl_node_because note = {
			.reason = untakeable ? SL_REASON_UNTAKEABLE_BEGINS
					     : SL_REASON_UNTAKEABLE_ENDS,
			.workload = client->member->index.id,
			.client = client->index.id,
			.span = lasted};

		set_untakeable(node, client, untakeable);
		sl_node_note_because(node, &note);
	}
	if (!is_suspect(client)) {
		sl_list_unlink(&client->of_suspects);
		return SL_NS_NEVER;
	}
	return untakeable || !after ? SL_NS_NEVER
				    : sl_node_later(node->now, after - lasted);
}

sl_ns sl_node_time_suspects(struct sl_node *node)
{
	sl_ns next = SL_NS_NEVER;

	sl_list_foreach_safe (link, &node->suspects)
		next = sl_min_u64(next,
			judge(node,
				SL_LIST_ENTRY(link, struct sl_node_client, of_suspects)));
	return next;
}

/* Something was said of it. */
static void look_again(struct sl_node *node, struct sl_node_client *client)
{
	sl_ns next;

	if (is_suspect(client) && !sl_list_is_linked(&client->of_suspects))
		sl_list_push_tail(&node->suspects, &client->of_suspects);
	if (!sl_list_is_linked(&client->of_suspects))
		return;
	next = judge(node, client);
	node->stops_due = sl_min_u64(node->stops_due, next);
	node->due = sl_min_u64(node->due, next);
}

void sl_node_forget_facts(struct sl_node *node, struct sl_node_client *client)
{
	sl_list_unlink(&client->of_suspects);
	if (client->untakeable)
		set_untakeable(node, client, false);
	if (sl_list_is_linked(&client->of_stops))
		sl_node_stop_ended(node, client);
	client->stopping = SL_NODE_LIVES;
}

/* --- what is said of it --- */

/* A client that can be told something about, or NULL: pulses may cross its end. */
static struct sl_node_client *living(struct sl_node *node, uint64_t id)
{
	struct sl_node_client *client = sl_node_find_client(node, id);

	return client && client->alive ? client : NULL;
}

/* Idleness goes on by itself; a millisecond is for pulses that were under way for longer than
 * others. */
static bool is_news(sl_ns was_idle, sl_ns idle)
{
	return (was_idle > 0) != (idle > 0) || sl_sub_sat(was_idle, idle) > SL_MS ||
	       sl_sub_sat(idle, was_idle) > SL_MS;
}

void sl_node_on_pulse(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client = living(node, event->pulse.client);
	bool was_proven;
	sl_ns was_idle;

	if (!client)
		return;
	was_idle = sl_node_idle(node, client);
	was_proven = sl_node_is_proven(client);
	client->pulse_at = node->now;
	client->idle = event->pulse.idle;
	client->busy = event->pulse.busy;
	client->proven = event->pulse.proven;
	/* A look costs a walk over all clients: not for what was known already. */
	if (is_news(was_idle, client->idle) || was_proven != sl_node_is_proven(client))
		node->swap_dirty = true;
	if ((was_idle > 0) != (client->idle > 0) ||
		was_proven != sl_node_is_proven(client))
		sl_node_reconsider(node, client->holding.touched);
	look_again(node, client);
}

void sl_node_on_condition(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client = living(node, event->condition.client);
	enum sl_client_condition to = SL_CONDITION_RUNNING;

	if (!client)
		return;
	/* What this version does not know is a state in which it does not answer. */
	to = event->condition.condition < SL_CONDITIONS
		     ? (enum sl_client_condition)event->condition.condition
		     : SL_CONDITION_SILENT;
	if (client->condition == SL_CONDITION_RUNNING && to != SL_CONDITION_RUNNING)
		client->condition_at = node->now;
	if (client->condition != to) {
		node->swap_dirty = node->probes_dirty = true;
		/* Who competes with whom: who is stopped wants nothing back. */
		node->books += client->is_out != 0;
		sl_node_reconsider(node, client->holding.touched);
	}
	client->condition = to;
	look_again(node, client);
}

void sl_node_is_busy(struct sl_node *node, struct sl_node_client *client)
{
	if (!client->idle)
		return;
	client->idle = 0;
	client->proven = false;
	/* No look for leavers: nobody who could not be taken before can be now, and whoever waits
	 * for somebody to be idle for long enough looks at the time that was counted on. */
	sl_node_reconsider(node, client->holding.touched);
}

/* --- probing --- */

/* Its workload holds others' memory where somebody has waited for long for what is within his
 * request. */
static bool is_in_the_way(const struct sl_node *node, const struct sl_node_client *client)
{
	uint32_t mask = client->holding.touched &
			(node->pressed_mask | SL_MUTANT(OWED_UNSEEN, node->owed_mask, 0));

	for (; mask && node->untakeable_after; mask &= mask - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(mask);
		const struct sl_ledger_account *account = &client->member->account;

		if (sl_ledger_live(&client->holding.cell[gpu]) &&
			sl_ledger_here(account, gpu) > sl_ledger_request(account, gpu))
			return true;
	}
	return false;
}

static enum sl_probe wanted_probe(
	const struct sl_node *node, const struct sl_node_client *client)
{
	if (SL_MUTANT(NEVER_PROVES, client->prove_mask || is_in_the_way(node, client),
		    false))
		return SL_PROBE_PROVE;
	/* Its trouble must be seen to end, also when nobody waits any more. */
	if (SL_MUTANT(UNTAKEABLE_UNWATCHED, client->untakeable, false))
		return SL_PROBE_PROVE;
	if (client->asked_in && client->asked_in == node->looks)
		return SL_PROBE_PROVE;
	/* Nor is one that is stopped forgotten: the next who lacks memory would count on it
	 * again. */
	if (client->condition != SL_CONDITION_RUNNING)
		return SL_PROBE_WATCH;
	/* Who waits for it to be parked, or back, is told what is in its way. */
	if (client->swaps &&
		(sl_node_parks_late(node, client) || sl_node_returns_late(node, client)))
		return SL_PROBE_WATCH;
	if (client->swaps && node->pool.pool_bytes &&
		(node->contended || client->member->warm_after))
		return SL_PROBE_WATCH;
	return sl_node_has_priority(node) ? SL_PROBE_WATCH : SL_PROBE_OFF;
}

/* Nobody tells any more what it does: what was told last must not go on by itself. But for who is
 * on the host, in part or as a whole: nothing of it runs before it wants to. */
static void forget_what_was_told(struct sl_node_client *client)
{
	if (client->is_out)
		return;
	client->idle = client->busy = 0;
	client->proven = false;
}

void sl_node_probe(struct sl_node *node)
{
	node->probes_dirty = false;
	for (struct sl_index_node *at = sl_index_next(&node->clients, NULL); at;
		at = sl_index_next(&node->clients, at)) {
		struct sl_node_client *client = SL_NODE_ENTRY(at, sl_node_client);
		enum sl_probe mode = wanted_probe(node, client);

		if (!client->alive || client->expected || mode == client->probe)
			continue;
		client->probe = mode;
		client->proves_since = node->now;
		if (mode == SL_PROBE_OFF)
			forget_what_was_told(client);
		sl_node_emit(node,
			(struct sl_action){.type = SL_ACTION_PROBE,
				.probe = {.client = client->index.id, .mode = mode}});
	}
}

/* --- to be looked at --- */

struct sl_node_client_view sl_node_client(const struct sl_node *node, uint64_t client)
{
	const struct sl_node_client *c = sl_node_find_client(node, client);
	bool is_told =
		c && c->stopping != SL_NODE_LIVES && c->stopping != SL_NODE_UNREACHED;

	if (!c)
		return (struct sl_node_client_view){0};
	return (struct sl_node_client_view){
		.known = true,
		.alive = c->alive,
		.expected = c->expected,
		.waits = c->party.waits,
		.workload = c->member->index.id,
		.condition = c->condition,
		.probe = c->probe,
		.stopping = is_told,
		.killed = is_told && c->stopping != SL_NODE_TERMED,
		.untakeable = c->untakeable,
		.proven = sl_node_is_proven(c),
		.stop_reason = is_told ? c->stop.reason : 0,
		.idle = sl_node_idle(node, c),
		.busy = sl_node_busy(node, c),
		.swaps = c->swaps,
		.wants = c->wants && c->is_out,
		.order = c->order.id,
		.store_bytes = c->store_bytes,
	};
}
