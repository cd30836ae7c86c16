/*
 * node_outlook - what a GPU will have, and who could be told to end for it; see the header
 *
 * It is made anew for each look, since every event may change it, and a demand takes its bytes out
 * of it as soon as it is known to be served: those behind it see what is left. Sums are those of
 * the ledger, corrected by those that go; so a look costs a walk over the workloads and over those
 * that go or swap, not over all clients.
 */
#include "policy/node_outlook.h"

#include "policy/mutant.h"

bool sl_node_is_going(const struct sl_node_client *client)
{
	return client->alive &&
	       (client->stopping == SL_NODE_TERMED || client->stopping == SL_NODE_KILLED);
}

bool sl_node_workload_is_going(const struct sl_node_member *member)
{
	return sl_list_is_linked(&member->ending);
}

static bool is_seen(const struct sl_outlook *outlook, const struct sl_node_member *member)
{
	return member->seen_in == outlook->node->outlooks;
}

uint64_t sl_outlook_use(
	const struct sl_outlook *outlook, const struct sl_node_member *member)
{
	return sl_sub_sat(sl_ledger_here(&member->account, outlook->gpu),
		is_seen(outlook, member) ? member->going_bytes : 0);
}

/* What of its request it will not have claimed, with what its demands are to get. */
static uint64_t future_unclaimed(
	const struct sl_outlook *outlook, const struct sl_node_member *member)
{
	return sl_sub_sat(sl_ledger_request(&member->account, outlook->gpu),
		sl_outlook_use(outlook, member) +
			(is_seen(outlook, member) ? member->promised_bytes : 0));
}

/* The workload loses bytes, or is to get some. */
static void shift(struct sl_outlook *outlook, struct sl_node_member *member,
	uint64_t going_bytes, uint64_t promised_bytes)
{
	int64_t more = -(int64_t)future_unclaimed(outlook, member);

	if (!is_seen(outlook, member))
		member->going_bytes = member->promised_bytes = 0;
	member->seen_in = outlook->node->outlooks;
	member->going_bytes += going_bytes;
	member->promised_bytes += promised_bytes;
	more += (int64_t)future_unclaimed(outlook, member);
	outlook->unclaimed_bytes += more;
	if (outlook->lent_known && member->priority > outlook->lent_priority)
		outlook->lent_bytes += more;
	outlook->free_bytes += (int64_t)going_bytes - (int64_t)promised_bytes;
}

void sl_outlook_let_go(
	struct sl_outlook *outlook, struct sl_node_member *member, uint64_t bytes)
{
	shift(outlook, member, bytes, 0);
}

/* What it is moving to the host. Who does not answer may never do so, and who was told to give up
 * moves no more. */
static uint64_t moving_out(const struct sl_node_client *client, uint32_t gpu)
{
	if (!client->order.id || client->order.restores || client->order.aborted ||
		!sl_node_answers(client))
		return 0;
	return client->holding.cell[gpu].leaving_bytes;
}

/* What only its end would make it give: what it is moving out comes anyway. */
static uint64_t staying(const struct sl_node_client *client, uint32_t gpu)
{
	return sl_ledger_live(&client->holding.cell[gpu]) - moving_out(client, gpu);
}

/* What leaves is first of all for those that want to come back, who stand in no queue. */
static void let_leave(struct sl_outlook *outlook, bool is_return)
{
	struct sl_node *node = outlook->node;
	uint64_t leaving = 0, wanted = 0;

	sl_list_foreach (link, &node->out) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_out);
		const struct sl_ledger_cell *cell = &client->holding.cell[outlook->gpu];
		uint64_t bytes = moving_out(client, outlook->gpu);

		if (sl_node_workload_is_going(client->member) ||
			(sl_node_is_going(client) && client != outlook->without))
			continue;
		if (sl_node_wants_back(client))
			wanted += cell->evicted_bytes - cell->returning_bytes;
		if (!bytes)
			continue;
		sl_outlook_let_go(outlook, client->member, bytes);
		leaving += bytes;
	}
	if (!is_return)
		outlook->free_bytes -= (int64_t)sl_min_u64(leaving, wanted);
}

struct sl_outlook sl_outlook_look(struct sl_node *node, uint32_t gpu,
	const struct sl_node_client *without, bool is_return)
{
	const struct sl_ledger_gpu *g = &node->ledger.gpu[gpu];
	struct sl_outlook outlook = {.node = node,
		.without = without,
		.gpu = gpu,
		.free_bytes = (int64_t)sl_ledger_shareable(&node->ledger, gpu) -
			      (int64_t)sl_ledger_resident(&node->ledger, gpu) +
			      (int64_t)g->sum.dying_bytes,
		.unclaimed_bytes = (int64_t)g->unclaimed_bytes};

	node->outlooks++;
	sl_list_foreach (link, &node->all_members) {
		struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);

		if (sl_node_workload_is_going(member))
			sl_outlook_let_go(
				&outlook, member, sl_ledger_here(&member->account, gpu));
	}
	sl_list_foreach (link, &node->stops) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_stops);

		if (client == without || sl_node_workload_is_going(client->member))
			continue;
		if (SL_MUTANT(GOING_UNCOUNTED, true, false))
			sl_outlook_let_go(&outlook, client->member,
				sl_ledger_live(&client->holding.cell[gpu]));
	}
	let_leave(&outlook, is_return);
	return outlook;
}

bool sl_outlook_is_entitled(
	const struct sl_outlook *outlook, const struct sl_demand *demand)
{
	const struct sl_node_member *member = sl_node_client_of(demand)->member;
	uint64_t promised = is_seen(outlook, member) ? member->promised_bytes : 0;

	return demand->entitled &&
	       SL_MUTANT(SIBLINGS_ADDED_UP,
		       sl_outlook_use(outlook, member) + promised + demand->bytes <=
			       sl_ledger_request(&member->account, outlook->gpu),
		       true);
}

/* What workloads of higher priority will not have claimed. The queue is sorted by priority, so the
 * walk over all workloads is done once for each. */
static int64_t lent_above(struct sl_outlook *outlook, int32_t priority)
{
	if (outlook->lent_known && outlook->lent_priority == priority)
		return outlook->lent_bytes;
	outlook->lent_known = true;
	outlook->lent_priority = priority;
	outlook->lent_bytes = 0;
	sl_list_foreach (link, &outlook->node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);

		if (member->priority > priority)
			outlook->lent_bytes += (int64_t)future_unclaimed(outlook, member);
	}
	return outlook->lent_bytes;
}

int64_t sl_outlook_room(struct sl_outlook *outlook, const struct sl_demand *demand)
{
	const struct sl_node *node = outlook->node;
	const struct sl_node_member *member = sl_node_client_of(demand)->member;
	int64_t others =
		outlook->unclaimed_bytes - (int64_t)future_unclaimed(outlook, member);
	int64_t lent;

	if (sl_outlook_is_entitled(outlook, demand))
		return outlook->free_bytes;
	if (node->queue[outlook->gpu].degraded)
		return INT64_MIN;
	if (SL_MUTANT(HELD_VICTIM_LENDS, demand->held, false))
		return outlook->free_bytes - others;
	lent = (int64_t)sl_min_u64(sl_node_lend(node, outlook->gpu), SL_LEDGER_BYTES_MAX);
	if (sl_node_may_stand(node, member))
		lent += lent_above(outlook, demand->priority);
	return outlook->free_bytes - (others > lent ? others - lent : 0);
}

void sl_outlook_reserve(struct sl_outlook *outlook, const struct sl_demand *demand)
{
	shift(outlook, sl_node_client_of(demand)->member, 0, demand->bytes);
	outlook->reserved_bytes += (int64_t)demand->bytes;
}

/* --- what it is made of --- */

bool sl_outlook_is_coming(const struct sl_outlook *outlook)
{
	const struct sl_node *node = outlook->node;
	uint32_t gpu = outlook->gpu;

	if (node->ledger.gpu[gpu].sum.dying_bytes)
		return true;
	sl_list_foreach (link, &node->stops) {
		if (sl_ledger_live(&SL_LIST_ENTRY(link, struct sl_node_client, of_stops)
					    ->holding.cell[gpu]))
			return true;
	}
	sl_list_foreach (at, &node->out) {
		if (moving_out(SL_LIST_ENTRY(at, struct sl_node_client, of_out), gpu))
			return true;
	}
	return false;
}

static uint64_t stuck_bytes(
	const struct sl_outlook *outlook, const struct sl_node_member *member)
{
	uint64_t bytes = 0;

	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		if (client->untakeable &&
			(client == outlook->without || !sl_node_is_going(client)))
			bytes += sl_ledger_live(&client->holding.cell[outlook->gpu]);
	}
	return bytes;
}

struct sl_outlook_borrowed sl_outlook_borrowers(
	const struct sl_outlook *outlook, const struct sl_demand *demand)
{
	struct sl_outlook_borrowed all = {0};

	sl_list_foreach (link, &outlook->node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);
		uint64_t burst = sl_sub_sat(sl_outlook_use(outlook, member),
			sl_ledger_request(&member->account, outlook->gpu));
		uint64_t stuck = 0;

		if (member == sl_node_client_of(demand)->member)
			continue;
		if (member->untakeable)
			stuck = sl_min_u64(burst, stuck_bytes(outlook, member));
		all.takeable_bytes += burst - stuck;
		all.untakeable_bytes += stuck;
		if (stuck <= all.most_bytes)
			continue;
		all.most_bytes = stuck;
		all.most = member;
	}
	return all;
}

/* --- victims --- */

void sl_node_make_room(struct sl_node *node)
{
	uint32_t room = node->victims_room ? node->victims_room * 2 : 16;

	if (node->clients_count++ < node->victims_room)
		return;
	node->victims = sl_arena_take(node->arena, room * sizeof(*node->victims));
	node->victims_room = room;
	node->candidates = sl_arena_take(node->arena, room * sizeof(*node->candidates));
}

/* What is not taken from it by stopping it. Who is parked gave its request up so that others can be
 * promised it, and lives on with all it had: what its context holds is not in their way, since
 * nobody is promised that. */
static uint64_t kept_bytes(const struct sl_node_member *member, uint32_t gpu)
{
	uint64_t request = sl_ledger_request(&member->account, gpu);

	return SL_MUTANT(PARKED_VICTIM, member->parked, false)
		       ? sl_max_u64(request, member->parked_bytes)
		       : request;
}

/* What is judged when the grace is over: it may have become busy by saving its work, as it was
 * asked to, and goes on being the idle one. */
static void add_victim(const struct sl_outlook *outlook, struct sl_node_client *client,
	uint64_t held_bytes, uint32_t workload, uint32_t *count)
{
	struct sl_node *node = outlook->node;
	const struct sl_node_member *member = client->member;
	bool was_idle = client->stopping == SL_NODE_TERMED &&
			client->stop.reason == SL_REASON_STOP_IDLE;
	sl_ns idle = sl_node_idle(node, client);

	node->victims[(*count)++] = (struct sl_victim){.client = client->index.id,
		.workload = workload,
		.priority = member->priority,
		.held_bytes = held_bytes,
		.workload_bytes = sl_outlook_use(outlook, member),
		.request_bytes = kept_bytes(member, outlook->gpu),
		.limit_bytes = member->account.limit_bytes,
		.idle = was_idle ? sl_max_u64(idle, node->stop_idle) : idle,
		.proven = was_idle || sl_node_is_proven(client)};
	/* Time alone will make it one that may be stopped. */
	if (!was_idle && idle && node->stop_idle && idle < node->stop_idle)
		node->queue[outlook->gpu].resolve_at =
			sl_min_u64(node->queue[outlook->gpu].resolve_at,
				sl_node_later(node->now, node->stop_idle - idle));
}

static bool may_be_stopped(
	const struct sl_node_client *client, const struct sl_node_client *without)
{
	return client->alive && !client->expected &&
	       (client->stopping == SL_NODE_LIVES || client == without);
}

uint32_t sl_outlook_list_victims(const struct sl_outlook *outlook,
	const struct sl_demand *demand, const struct sl_node_client *only)
{
	const struct sl_node_member *own = sl_node_client_of(demand)->member;
	struct sl_node *node = outlook->node;
	uint32_t count = 0, workloads = 0;

	sl_list_foreach (link, &node->all_members) {
		struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);
		uint32_t before = count;

		if (member == own || sl_node_workload_is_going(member) ||
			SL_MUTANT(VICTIM_WITHIN_REQUEST,
				sl_outlook_use(outlook, member) <=
					kept_bytes(member, outlook->gpu),
				false))
			continue;
		sl_list_foreach (at, &member->clients) {
			struct sl_node_client *client =
				SL_LIST_ENTRY(at, struct sl_node_client, of_member);
			uint64_t held = staying(client, outlook->gpu);

			if (!held || !may_be_stopped(client, outlook->without) ||
				(only && client != only))
				continue;
			if (node->now < client->spared_until)
				node->queue[outlook->gpu].resolve_at =
					sl_min_u64(node->queue[outlook->gpu].resolve_at,
						client->spared_until);
			else
				add_victim(outlook, client, held, workloads, &count);
		}
		for (uint32_t i = before; i < count; i++)
			node->victims[i].lends =
				SL_MUTANT(HELD_VICTIM_LENDS, !demand->held, true) &&
				sl_node_may_stand(node, own) &&
				member->priority > demand->priority;
		workloads += count > before;
	}
	return count;
}

uint32_t sl_outlook_choose(const struct sl_outlook *outlook,
	const struct sl_demand *demand, uint64_t missing, uint32_t count)
{
	const struct sl_victims_ask ask = {.missing_bytes = missing,
		.entitled = sl_outlook_is_entitled(outlook, demand),
		.priority = demand->priority,
		.stop_idle = outlook->node->stop_idle};

	return sl_victims_choose(outlook->node->victims, count, &ask);
}
