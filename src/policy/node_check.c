/*
 * node_check - every invariant of the books and of the rules, recomputed from scratch
 *
 * For tests and the simulation, after every step: O(everything). It looks at the same state as
 * the decisions, so it finds books that were kept wrongly and decisions that were not taken;
 * rules that the state itself misunderstands are for the simulation's own books.
 */
#include "policy/node_outlook.h"
#include "policy/node_state.h"

static int check_ledger(const struct sl_node *node, struct sl_error *err)
{
	struct sl_ledger_audit audit;

	sl_ledger_audit_begin(&audit, &node->ledger);
	sl_list_foreach (link, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);

		sl_ledger_audit_open(&audit, &member->account);
		sl_list_foreach (at, &member->clients) {
			sl_ledger_audit_holding(&audit,
				&SL_LIST_ENTRY(at, struct sl_node_client, of_member)
					 ->holding);
		}
		if (sl_ledger_audit_close(&audit, err)) {
			sl_error_wrap(err, "workload %llu",
				(unsigned long long)member->index.id);
			return 1;
		}
	}
	return sl_ledger_audit_end(&audit, err);
}

/* What is held is there; what is about to be is an open grant. THERE may name bytes as large as one
 * likes. */
static int check_held(const struct sl_node_client *client, const uint64_t holding[],
	struct sl_error *err)
{
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];

		if (cell->held_bytes <= cell->backing_bytes &&
			cell->holding_bytes == holding[gpu])
			continue;
		sl_error_set(err,
			"client %llu: %llu of %llu held on GPU %u, %llu about to be, "
			"booked %llu",
			(unsigned long long)client->index.id,
			(unsigned long long)cell->held_bytes,
			(unsigned long long)cell->backing_bytes, gpu,
			(unsigned long long)holding[gpu],
			(unsigned long long)cell->holding_bytes);
		return 1;
	}
	return 0;
}

static int check_client(const struct sl_node_client *client, struct sl_error *err)
{
	uint64_t granted[SL_NODE_GPUS_MAX] = {0}, holding[SL_NODE_GPUS_MAX] = {0};
	uint32_t waiting = 0;

	sl_list_foreach (link, &client->party.demands) {
		const struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, of_client);

		if (!demand->epoch)
			waiting++;
		else if (!demand->is_void) {
			granted[demand->gpu] += demand->there ? 0 : demand->bytes;
			holding[demand->gpu] += demand->held ? demand->bytes : 0;
		}
		if (sl_list_is_linked(&demand->queue) == !demand->epoch)
			continue;
		sl_error_set(err,
			"client %llu: demand %llu is both or neither of granted and "
			"queued",
			(unsigned long long)client->index.id,
			(unsigned long long)demand->ask);
		return 1;
	}
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		if (granted[gpu] == client->holding.cell[gpu].granted_bytes)
			continue;
		sl_error_set(err,
			"client %llu: open grants of %llu on GPU %u, booked %llu",
			(unsigned long long)client->index.id,
			(unsigned long long)granted[gpu], gpu,
			(unsigned long long)client->holding.cell[gpu].granted_bytes);
		return 1;
	}
	if (check_held(client, holding, err))
		return 1;
	if (waiting != client->waiting ||
		sl_list_is_linked(&client->party.link) != (waiting > 0)) {
		sl_error_set(err, "client %llu: %u demands wait, counted %u",
			(unsigned long long)client->index.id, waiting, client->waiting);
		return 1;
	}
	return 0;
}

/* Nobody who could be served waits, except behind a head that free bytes are kept for. */
static int check_waiting(const struct sl_node *node, uint32_t gpu,
	const struct sl_demand *demand, struct sl_error *err)
{
	const struct sl_node_queue *queue = &node->queue[gpu];
	const struct sl_demand *head = queue->head;
	bool kept = head && head != demand &&
		    sl_demand_yields(demand, head, node->now - head->head_since,
			    node->head_pass, sl_node_has_priority(node));

	if (demand->entitled != sl_demand_is_entitled(demand)) {
		sl_error_set(err, "GPU %u: demand %llu is queued as %s, and is not", gpu,
			(unsigned long long)demand->sequence,
			demand->entitled ? "entitled" : "burst");
		return 1;
	}
	if (sl_demand_is_over_limit(demand)) {
		sl_error_set(err, "GPU %u: demand %llu is over its limit and waits", gpu,
			(unsigned long long)demand->sequence);
		return 1;
	}
	if (demand->there ||
		(!sl_node_is_away(sl_node_client_of(demand)) &&
			sl_demand_fits(demand, &node->ledger, 0, queue->degraded) ==
				SL_DEMAND_OVER_PROMISE)) {
		sl_error_set(err, "GPU %u: demand %llu could never be held and waits",
			gpu, (unsigned long long)demand->sequence);
		return 1;
	}
	if (kept || demand->retry_at > node->now ||
		sl_demand_fits(demand, &node->ledger, sl_node_lend_to(node, demand),
			queue->degraded) == SL_DEMAND_WAITS ||
		demand->bytes > sl_sub_sat(sl_ledger_free_bytes(&node->ledger, gpu),
					sl_node_kept_from(node, demand)))
		return 0;
	sl_error_set(err, "GPU %u: demand %llu of %llu bytes fits and waits", gpu,
		(unsigned long long)demand->sequence, (unsigned long long)demand->bytes);
	return 1;
}

static int check_queue(const struct sl_node *node, uint32_t gpu, struct sl_error *err)
{
	const struct sl_node_queue *queue = &node->queue[gpu];
	const struct sl_demand *before = NULL, *first = NULL;
	uint32_t count = 0;

	if (queue->degraded !=
			(sl_ledger_is_degraded(&node->ledger, gpu) && !queue->lost) &&
		!(sl_node_is_recovering(node) && node->pool.pool_bytes)) {
		sl_error_set(err, "GPU %u: degraded is kept as %d", gpu, queue->degraded);
		return 1;
	}
	sl_list_foreach (link, &queue->waiting) {
		const struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, queue);

		count++;
		if (before && !sl_demand_is_before(before, demand)) {
			sl_error_set(err, "GPU %u: demand %llu is queued before %llu",
				gpu, (unsigned long long)before->sequence,
				(unsigned long long)demand->sequence);
			return 1;
		}
		before = demand;
		if (!first && !sl_node_is_away(sl_node_client_of(demand)))
			first = demand;
		if (!sl_node_is_recovering(node) && check_waiting(node, gpu, demand, err))
			return 1;
	}
	if (count != queue->count) {
		sl_error_set(err, "GPU %u: %u demands wait, counted %u", gpu, count,
			queue->count);
		return 1;
	}
	if (count && !sl_node_is_recovering(node) && queue->head != first) {
		sl_error_set(err, "GPU %u: the head is not the first", gpu);
		return 1;
	}
	return 0;
}

/* A lost GPU serves nobody: nothing waits or is granted there, and the dead are let go. */
static int check_lost(const struct sl_node *node, uint32_t gpu, struct sl_error *err)
{
	const struct sl_node_queue *queue = &node->queue[gpu];
	const struct sl_ledger_cell *sum = &node->ledger.gpu[gpu].sum;

	if (!queue->lost || (node->ledger.gpu[gpu].present && !queue->count &&
				    !sum->granted_bytes && !sum->dying_bytes))
		return 0;
	sl_error_set(err,
		"GPU %u is lost: %u demands wait there, %llu bytes are granted, %llu "
		"dying",
		gpu, queue->count, (unsigned long long)sum->granted_bytes,
		(unsigned long long)sum->dying_bytes);
	return 1;
}

/* Where its processes have something, or want it, they are known to be. */
static int check_places(const struct sl_node_member *member, struct sl_error *err)
{
	uint32_t mask = 0;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		const struct sl_ledger_cell *cell = &member->account.cell[gpu];

		mask |= sl_ledger_all(cell) || cell->dying_bytes ? 1u << gpu : 0;
	}
	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		sl_list_foreach (at, &client->party.demands)
			mask |= 1u << SL_LIST_ENTRY(at, struct sl_demand, of_client)->gpu;
	}
	if (!(mask & ~member->actual_mask))
		return 0;
	sl_error_set(err, "workload %llu is on %x, known to be on %x",
		(unsigned long long)member->index.id, mask, member->actual_mask);
	return 1;
}

/* What a change must leave right: the numbers, and the copies of them. */
static int check_numbers(const struct sl_node_member *member, struct sl_error *err)
{
	const struct sl_ledger_account *account = &member->account;

	if (account->limit_bytes < account->request_bytes ||
		!account->gpu_mask != member->leaving) {
		sl_error_set(err, "workload %llu: request %llu, limit %llu on GPUs %x",
			(unsigned long long)member->index.id,
			(unsigned long long)account->request_bytes,
			(unsigned long long)account->limit_bytes, account->gpu_mask);
		return 1;
	}
	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		sl_list_foreach (at, &client->party.demands) {
			const struct sl_demand *demand =
				SL_LIST_ENTRY(at, struct sl_demand, of_client);

			if (demand->priority == member->priority)
				continue;
			sl_error_set(err, "workload %llu: a demand has priority %d",
				(unsigned long long)member->index.id,
				(int)demand->priority);
			return 1;
		}
	}
	return 0;
}

/* Who is to end gets nothing, and his time is known. */
static int check_end(const struct sl_node *node, const struct sl_node_member *member,
	struct sl_error *err)
{
	bool ending = sl_node_workload_is_going(member);
	sl_ns due = member->killed
			    ? sl_node_later(member->kill_at, SL_OUTLOOK_STUBBORN_AFTER)
			    : member->kill_at;

	if ((!member->stopping || !member->waiting) &&
		(!ending || (member->stopping && (member->killed || !member->leaving) &&
				    node->now < due && node->due <= due)))
		return 0;
	sl_error_set(err,
		"workload %llu: stopping %d, ending %d, to be killed (%d) at %llu ms, "
		"next "
		"look at %llu ms, %u demands wait",
		(unsigned long long)member->index.id, member->stopping, ending,
		member->killed, (unsigned long long)(member->kill_at / SL_MS),
		(unsigned long long)(node->due / SL_MS), member->waiting);
	return 1;
}

static int check_stranger(const struct sl_node *node,
	const struct sl_node_stranger *stranger, struct sl_error *err)
{
	bool waits = stranger->stopping && !stranger->killed, has = false;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		has |= stranger->bytes[gpu] != 0;
	if (has && (!waits || (node->now < stranger->kill_at &&
				      node->due <= stranger->kill_at)))
		return 0;
	sl_error_set(err, "stranger %llu: %s, to be killed at %llu ms",
		(unsigned long long)stranger->index.id,
		has ? "has something" : "has nothing",
		(unsigned long long)(stranger->kill_at / SL_MS));
	return 1;
}

static int check_strangers(const struct sl_node *node, struct sl_error *err)
{
	for (struct sl_index_node *at = sl_index_next(&node->strangers, NULL); at;
		at = sl_index_next(&node->strangers, at)) {
		if (check_stranger(node, SL_NODE_ENTRY(at, sl_node_stranger), err))
			return 1;
	}
	return 0;
}

/* An order is open where the books say so; who is out is listed as such; whom room is kept for
 * comes back. */
static int check_swap(const struct sl_node *node, const struct sl_node_client *client,
	struct sl_error *err)
{
	uint32_t is_out = 0;
	bool right = true;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];
		bool leaves = client->order.id && !client->order.restores &&
			      client->order.gpu == gpu;
		bool comes = client->order.id && client->order.restores &&
			     client->order.part && client->order.gpu == gpu;

		is_out |= cell->evicted_bytes ? 1u << gpu : 0;
		right &= cell->evicted_bytes <= cell->backing_bytes;
		right &= client->returns ? cell->returning_bytes == cell->evicted_bytes
					 : cell->returning_bytes <=
						   (comes ? client->order.bytes : 0);
		right &= cell->leaving_bytes <= (leaves ? client->order.bytes : 0);
		right &= !(client->order.id && cell->granted_bytes);
	}
	right &= is_out == client->is_out;
	right &= sl_list_is_linked(&client->of_out) == (is_out || client->order.id);
	right &= !client->returns || (client->order.id && client->order.restores);
	right &= client->alive || (!is_out && !client->order.id);
	if (right)
		return 0;
	sl_error_set(err,
		"client %llu: out on %x, known on %x, %s, order %llu to %s on GPU %u",
		(unsigned long long)client->index.id, is_out, client->is_out,
		client->returns ? "comes back" : "stays",
		(unsigned long long)client->order.id,
		client->order.restores ? "restore" : "evict", client->order.gpu);
	return 1;
}

static int check_parked(const struct sl_node_member *member, struct sl_error *err)
{
	if (sl_list_is_linked(&member->of_parked) == member->parked &&
		(!member->parked || !member->account.request_bytes) &&
		(member->parked || !member->resuming))
		return 0;
	sl_error_set(err, "workload %llu: parked %d, resuming %d, request %llu",
		(unsigned long long)member->index.id, member->parked, member->resuming,
		(unsigned long long)member->account.request_bytes);
	return 1;
}

static int check_member(const struct sl_node *node, const struct sl_node_member *member,
	struct sl_error *err)
{
	uint32_t living = 0, waiting = 0, wanting = 0;

	if (check_places(member, err) || check_numbers(member, err) ||
		check_parked(member, err) || check_end(node, member, err))
		return 1;

	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		living += client->alive;
		waiting += client->waiting;
		wanting += client->wants || client->comes_back;
		if (check_client(client, err) || check_swap(node, client, err))
			return 1;
	}
	if (waiting != member->waiting) {
		sl_error_set(err, "workload %llu: %u demands wait, counted %u",
			(unsigned long long)member->index.id, waiting, member->waiting);
		return 1;
	}
	if (wanting != member->wanting) {
		sl_error_set(err, "workload %llu: %u clients want back, counted %u",
			(unsigned long long)member->index.id, wanting, member->wanting);
		return 1;
	}
	if (living == member->living &&
		!(member->leaving && sl_list_is_empty(&member->clients)))
		return 0;
	sl_error_set(err, "workload %llu: %u clients live, counted %u%s",
		(unsigned long long)member->index.id, living, member->living,
		member->leaving ? ", and it should be forgotten" : "");
	return 1;
}

/* Who could come back at once is not left waiting, and time is told for what time changes. */
static int check_due(const struct sl_node *node, struct sl_error *err)
{
	if (sl_node_is_recovering(node) ||
		(!node->swap_dirty && node->due <= node->swap_due &&
			node->now < node->swap_due))
		return 0;
	sl_error_set(err, "swap: now %llu ms, next look at %llu ms, told %llu ms%s",
		(unsigned long long)(node->now / SL_MS),
		(unsigned long long)(node->swap_due / SL_MS),
		(unsigned long long)(node->due / SL_MS),
		node->swap_dirty ? ", not looked at" : "");
	return 1;
}

int sl_node_check(const struct sl_node *node, struct sl_error *err)
{
	if (check_ledger(node, err))
		return 1;
	/* The last step was cut short: what follows from the books is still to be decided. */
	if (node->goes_on_at && node->due == node->goes_on_at)
		return 0;
	if (check_due(node, err))
		return 1;
	sl_list_foreach (link, &node->all_members) {
		if (check_member(node,
			    SL_LIST_ENTRY(link, struct sl_node_member, of_node), err))
			return 1;
	}
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		if (check_queue(node, gpu, err) || check_lost(node, gpu, err))
			return 1;
	}
	return check_strangers(node, err) || sl_node_check_contexts(node, err);
}
