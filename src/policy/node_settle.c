/*
 * node_settle - what follows from the books
 *
 * Three questions are asked in turn until none has a new answer: is a GPU degraded and who on
 * it can be granted something (serve), which deadlines have come (run_timers), is anybody
 * hopeless (break_deadlock). Each answer either grants or ends a demand, so this ends. Nothing is
 * looked at whose books did not change and whose time has not come, which keeps the common step
 * (work, a full commit, a free with nobody waiting) free of any scan.
 *
 * The daemon must go on to answer. If two answers contradict each other, the rounds never end: the
 * step does, after ROUNDS_MOST of them without a decision. Decisions are bounded: in one step a
 * client gets at most one order and one abort of it, is stopped and let off once, and a demand is
 * granted or denied once. All other loops that a step can reach are bounded by the number of
 * clients, demands, workloads, GPUs or orders; a comment says why at those that do not just go
 * through a list.
 *
 * Why the deadlock question need not be asked more often: what the waiting ones could get only
 * shrinks when a client starts to count as waiting, asks for more while it does or loses one of
 * several demands, grows by measurement, or the GPU shrinks. Those places set deadlock_dirty.
 * Frees and exits only help.
 */
#include "policy/mutant.h"
#include "policy/node_state.h"

/* Demands that give way in one step, times clients: about a millisecond. At least one does. */
#define GIVE_WAY_MOST 128
/* Rounds without a decision; the simulations take up to 17. With 1,000 clients 64 cost 7 ms. */
#define ROUNDS_MOST 64
/* After that the rest waits so long, for other events to be taken. */
#define GOES_ON_AFTER (1 * SL_MS)

bool sl_node_is_recovering(const struct sl_node *node)
{
	return SL_MUTANT(GRANT_WHILE_RECOVERING, node->expected > 0, false);
}

/* Unclaimed requests of workloads of higher priority than this. */
static uint64_t unclaimed_above(
	const struct sl_node *node, uint32_t gpu, int32_t priority)
{
	struct sl_node_lent *lent = &node->caches->lent[gpu];

	if (lent->as_of == node->books && lent->priority == priority)
		return lent->bytes;
	*lent = (struct sl_node_lent){.as_of = node->books, .priority = priority};
	sl_list_foreach (link, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);

		if (SL_MUTANT(LENDS_EQUALS, member->priority > priority,
			    member->priority >= priority))
			lent->bytes += sl_ledger_unclaimed(&member->account, gpu);
	}
	return lent->bytes;
}

bool sl_node_may_stand(const struct sl_node *node, const struct sl_node_member *member)
{
	return sl_node_has_priority(node) &&
	       SL_MUTANT(LENDS_TO_NO_SWAP, !(member->flags & SL_WORKLOAD_NO_SWAP), true);
}

uint64_t sl_node_lend_to(const struct sl_node *node, const struct sl_demand *demand)
{
	const struct sl_node_client *client = sl_node_client_of(demand);
	uint64_t lend = 0;

	if (SL_MUTANT(HELD_ON_LOAN, demand->held, false))
		return 0;
	/* What cannot be moved cannot be taken back by moving it. */
	if (SL_MUTANT(LENDS_TO_THE_UNMOVABLE,
		    client->swaps && !(client->member->flags & SL_WORKLOAD_NO_SWAP),
		    true))
		lend = sl_min_u64(sl_node_lend(node, demand->gpu),
			sl_node_lend_share(node, client->member));
	if (!sl_node_may_stand(node, client->member))
		return lend;
	return sl_min_u64(lend, SL_LEDGER_BYTES_MAX) +
	       unclaimed_above(node, demand->gpu, demand->priority);
}

static uint64_t kept_of_scan(const void *context, const struct sl_demand *demand)
{
	return sl_node_kept_from(context, demand);
}

static uint64_t lend_of_scan(const void *context, const struct sl_demand *demand)
{
	return sl_node_lend_to(context, demand);
}

/* --- degraded --- */

static void look_after(struct sl_node *node, uint32_t gpu)
{
	struct sl_node_queue *queue = &node->queue[gpu];
	bool degraded = sl_ledger_is_degraded(&node->ledger, gpu);

	/* While reports come in, what is on the host may still count as on the GPU. */
	if (sl_node_is_recovering(node) && node->pool.pool_bytes)
		return;
	if (degraded == queue->degraded || queue->lost)
		return;
	queue->degraded = degraded;
	/* What was not hopeless because anything could change may be so now. */
	node->deadlock_dirty = true;
	sl_node_note(node, degraded ? SL_REASON_DEGRADED_BEGINS : SL_REASON_DEGRADED_ENDS,
		gpu, 0, 0, sl_ledger_excess(&node->ledger, gpu));
}

/* --- deadlock --- */

/* Its memory goes to the host if somebody needs it, as far as the pool has room, or is there
 * already. */
static bool gives(
	const struct sl_node *node, const struct sl_node_client *client, uint64_t *room)
{
	uint64_t bytes;

	if (sl_node_is_away(client))
		return true;
	if (!sl_node_swaps(node) || !sl_node_can_leave(node, client))
		return false;
	bytes = sl_ledger_evictable_on(client->holding.cell, client->holding.touched);
	if (SL_MUTANT(DEADLOCK_SWAP_UNSEEN, bytes > *room, true))
		return false;
	*room -= bytes;
	return true;
}

static struct sl_deadlock_scene deadlock_scene(struct sl_node *node, uint64_t *lend_bytes)
{
	struct sl_deadlock_scene scene = {.parties = &node->parties,
		.ledger = &node->ledger,
		.lend_bytes = lend_bytes};
	uint64_t room = sl_sub_sat(sl_node_pool_there(node), node->pool.slack_bytes);

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		lend_bytes[gpu] = sl_node_lend(node, gpu);
		scene.degraded_mask |= node->queue[gpu].degraded ? 1u << gpu : 0;
	}
	sl_list_foreach (link, &node->parties) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, party.link);
		struct sl_node_member *member = client->member;

		client->party.gives = gives(node, client, &room);

		member->claim.priority = member->priority;
		member->claim.stands = sl_node_may_stand(node, member);
	}
	return scene;
}

/*
 * Whether this demand must be let past the head it waits behind. Who helps is found out once
 * per state of the queue: *known says whether it has been since the last grant or denial.
 */
static bool helps_head(struct sl_node *node, const struct sl_demand *head,
	const struct sl_demand *demand, bool *known)
{
	const struct sl_node_client *client = sl_node_client_of(demand);
	uint64_t lend_bytes[SL_NODE_GPUS_MAX];
	struct sl_deadlock_scene scene;

	if (SL_MUTANT(KEPT_FROM_HELPERS, !client->party.waits, true))
		return false;
	if (!*known) {
		scene = deadlock_scene(node, lend_bytes);
		sl_deadlock_helpers(&scene, head, &sl_node_client_of(head)->party);
		*known = true;
	}
	return client->party.helps;
}

/* --- serve --- */

/* Who is entitled now; a burst that was entitled has a deadline, and may be hopeless. */
static bool refresh(struct sl_node *node, uint32_t gpu)
{
	bool moved = sl_demand_refresh(
		&node->queue[gpu].waiting, node->now, &node->deadlock_dirty);

	node->timers_dirty |= moved;
	return moved;
}

/* Its workload's limit is what it holds, as long as a client of it cannot be taken from. */
static bool is_dropped(const struct sl_demand *demand)
{
	return SL_MUTANT(LIMIT_STAYS, !demand->entitled, false) &&
	       sl_node_client_of(demand)->member->untakeable;
}

/* OOM_FIRST: the client's first burst demand that does not fit, and the first after one that
 * did. */
static bool is_oom_first(const struct sl_node *node, const struct sl_demand *demand)
{
	struct sl_node_client *client = sl_node_client_of(demand);

	if (demand->entitled || demand->met || client->told_oom ||
		!(client->member->flags & SL_WORKLOAD_OOM_FIRST) ||
		sl_demand_fits(demand, &node->ledger, sl_node_lend_to(node, demand),
			node->queue[demand->gpu].degraded) != SL_DEMAND_WAITS)
		return false;
	client->told_oom = SL_MUTANT(OOM_ALWAYS, true, false);
	return true;
}

/* What is denied of those that now wait, whatever the resolvers could do. */
static void meet(struct sl_node *node, struct sl_node_queue *queue)
{
	if (!queue->fresh && !node->untakeable)
		return;
	queue->fresh = false;
	sl_list_foreach_safe (link, &queue->waiting) {
		struct sl_demand *demand = SL_LIST_ENTRY(link, struct sl_demand, queue);

		if (sl_node_is_away(sl_node_client_of(demand)))
			queue->fresh = true; /* met when it is back */
		else if (is_dropped(demand))
			sl_node_deny(node, demand, SL_REASON_LIMIT_DROPPED);
		else if (is_oom_first(node, demand))
			sl_node_deny(node, demand, SL_REASON_OOM_FIRST);
		else
			demand->met = !demand->entitled;
	}
}

/* Why it may not be held: the GPU's promises are broken already, or would be. */
static enum sl_reason denied_hold(
	const struct sl_node_queue *queue, const struct sl_demand *demand)
{
	return demand->there && queue->degraded ? SL_REASON_GPU_DEGRADED
						: SL_REASON_HELD_ON_REQUESTS;
}

static void scan_queue(struct sl_node *node, uint32_t gpu)
{
	struct sl_node_queue *queue = &node->queue[gpu];
	struct sl_demand_scan scan = {.queue = &queue->waiting,
		.ledger = &node->ledger,
		.lend = lend_of_scan,
		.kept = kept_of_scan,
		.lender = node,
		.now = node->now,
		.head_pass = node->head_pass,
		.degraded = queue->degraded,
		.stops_lower = sl_node_has_priority(node)};
	struct sl_demand *demand;
	enum sl_demand_step step;
	bool helpers_known = false;

	/* Ends: the scan goes on by one demand, or a demand leaves the queue. */
	while ((step = sl_demand_scan_next(&scan, queue->head, &demand)) !=
		SL_DEMAND_END) {
		if (step == SL_DEMAND_DENY_LIMIT) {
			sl_node_deny(node, demand, SL_REASON_OVER_LIMIT);
			helpers_known = false;
			continue;
		}
		if (step == SL_DEMAND_DENY_PROMISE) {
			sl_node_deny(node, demand, denied_hold(queue, demand));
			helpers_known = false;
			continue;
		}
		if (step == SL_DEMAND_KEPT) {
			if (!helps_head(node, scan.head, demand, &helpers_known))
				continue;
			scan.at = demand->queue.prev;
		}
		if (is_dropped(demand)) {
			sl_node_deny(node, demand, SL_REASON_LIMIT_DROPPED);
			helpers_known = false;
			continue;
		}
		sl_node_grant(node, demand);
		/* What was to become held was freed meanwhile: what is granted then counts
		 * as held in its place, and can break I1. */
		scan.degraded |= sl_ledger_is_degraded(&node->ledger, gpu);
		helpers_known = false;
		/* A grant takes entitlement from nobody but its own workload's demands. */
		if (SL_MUTANT(SIBLINGS_UNSEEN, sl_node_client_of(demand)->member->waiting,
			    0) &&
			refresh(node, gpu)) {
			scan.at = NULL;
			scan.head = NULL;
		}
	}
	sl_demand_crown(&scan, queue->head);
	queue->head = scan.head;
}

static void serve(struct sl_node *node, uint32_t gpu)
{
	struct sl_node_queue *queue = &node->queue[gpu];

	look_after(node, gpu);
	/* Nobody waits there any more: proofs that were asked for are not. */
	if (!queue->count && queue->proves)
		sl_node_reconsider(node, 1u << gpu);
	if (!queue->count || sl_node_is_recovering(node))
		return;
	queue->fresh |= refresh(node, gpu);
	scan_queue(node, gpu);
	meet(node, queue);
	sl_node_reconsider(node, 1u << gpu);
	if (node->pressed_mask >> gpu & 1)
		node->probes_dirty = true;
}

/* Each GPU may be served in each round. */
static bool is_out_of_rounds(const struct sl_node *node)
{
	return node->serves >= ROUNDS_MOST * SL_NODE_GPUS_MAX;
}

/* Grants and denials touch GPUs again, also this one; the rounds end when they stop. */
static void serve_dirty(struct sl_node *node)
{
	while (node->dirty_mask && !is_out_of_rounds(node)) {
		uint32_t gpu = (uint32_t)__builtin_ctz(node->dirty_mask);

		node->serves++;
		node->dirty_mask &= ~(1u << gpu);
		serve(node, gpu);
	}
}

/* One victim at a time: what it lets go may save the next. */
static void break_deadlock(struct sl_node *node)
{
	uint64_t lend_bytes[SL_NODE_GPUS_MAX];
	struct sl_deadlock_scene scene;
	struct sl_deadlock_plan plan;

	node->deadlock_dirty = false;
	if (sl_list_is_empty(&node->parties))
		return;
	/* First see whether somebody may now be let past a head. */
	sl_node_touch(node, UINT32_MAX);
	serve_dirty(node);
	node->deadlock_dirty |= is_out_of_rounds(node);
	if (node->deadlock_dirty)
		return;
	scene = deadlock_scene(node, lend_bytes);
	plan = sl_deadlock_find(&scene);
	if (!plan.victim)
		return;
	node->deadlock_dirty = true;
	node->gave_way++;
	sl_node_deny(node, plan.victim, SL_REASON_HOPELESS);
}

/* --- time --- */

static void by_then(struct sl_node *node, sl_ns at)
{
	node->due = sl_min_u64(node->due, at);
}

static void note_waiting(struct sl_node *node, struct sl_demand *demand)
{
	bool *noted = demand->entitled ? &demand->noted_entitled : &demand->noted_burst;
	struct sl_node_because because;

	if (SL_MUTANT(NO_NOTE, *noted, true))
		return;
	if (node->now < demand->arrived + SL_NODE_NOTE_AFTER) {
		by_then(node, demand->arrived + SL_NODE_NOTE_AFTER);
		return;
	}
	*noted = true;
	because = sl_node_waits_because(node, demand);
	sl_node_note_because(node, &because);
}

/* It had its turn, and its last look, for which its client was there, found nothing. The same look
 * may have told the client to leave for somebody else; it would come back for another last one, and
 * leave in that again, without end. */
static bool is_in_vain(const struct sl_demand *demand)
{
	return demand->returned && demand->retried && !demand->helped && !demand->stops;
}

/* Ends the demand if its time has come; true if so. */
static bool expire(struct sl_node *node, struct sl_demand *demand)
{
	struct sl_node_queue *queue = &node->queue[demand->gpu];
	enum sl_reason reason = SL_MUTANT(DEGRADED_UNNAMED, queue->degraded, false)
					? SL_REASON_GPU_DEGRADED
					: SL_REASON_WAITED_TOO_LONG;
	sl_ns end = sl_node_wait_end(node, demand);
	bool is_away = !demand->entitled && sl_node_is_away(sl_node_client_of(demand));

	if (demand->entitled) {
		/* Only a driver that keeps refusing what is free ends an entitled demand. */
		if (SL_MUTANT(BURST_ONLY_BLAME, !demand->refused_since, true))
			return false;
		end = sl_node_later(demand->refused_since, node->wait_max);
		reason = SL_REASON_DRIVER_REFUSES;
	}
	/* Its time runs while it could be served. */
	if (is_away && !is_in_vain(demand))
		return false;
	/* First the resolver has its say: others may be moved for it now. */
	if (!demand->entitled && node->now >= end && sl_node_swaps(node)) {
		/* It is not refused what is on its way, nor while its turn comes. */
		if (demand->helped)
			return false;
		if (!demand->retried) {
			demand->retried = node->swap_dirty = node->retimes = true;
			return false;
		}
	}
	if (node->now < end) {
		by_then(node, end);
		return false;
	}
	if (demand->entitled && sl_demand_fits(demand, &node->ledger, 0,
					queue->degraded) == SL_DEMAND_WAITS) {
		demand->refused_since = demand->refusals = 0;
		return false;
	}
	if (SL_MUTANT(WAIT_FOR_EVER, false, true))
		return false;
	/* Somebody may be stopped, or be ending, for it: the resolver says whether it ends. Without
	 * `priority` in the chain any more it is first to be seen whether others can be moved. */
	if (!demand->entitled && !is_away &&
		(sl_node_has_priority(node) || (demand->stops && sl_node_swaps(node)))) {
		sl_node_reconsider(node, 1u << demand->gpu);
		return false;
	}
	sl_node_deny(node, demand, reason);
	return true;
}

static void time_demand(struct sl_node *node, struct sl_demand *demand)
{
	note_waiting(node, demand);
	if (SL_MUTANT(PRESSED_UNSEEN, demand->entitled, false) &&
		node->now - demand->arrived >= SL_NODE_NOTE_AFTER)
		node->pressed_mask |= 1u << demand->gpu;
	if (expire(node, demand))
		return;
	if (demand->retry_at > node->now)
		by_then(node, demand->retry_at);
	else if (demand->retry_at) {
		demand->retry_at = 0;
		sl_node_touch(node, 1u << demand->gpu);
	}
}

static void time_party(struct sl_node *node, struct sl_node_client *client)
{
	sl_ns idle_at = sl_node_later(client->active_at, node->idle_wait);

	if (sl_node_is_going(client)) {
		/* It will give all it has, whatever it waits for. */
	} else if (!client->party.waits && node->now < idle_at) {
		by_then(node, idle_at);
	} else if (!client->party.waits) {
		client->party.waits = SL_MUTANT(DEADLOCK_UNSEEN, true, false);
		node->deadlock_dirty = true;
	}
	sl_list_foreach_safe (link, &client->party.demands) {
		struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, of_client);

		if (!demand->epoch)
			time_demand(node, demand);
	}
}

/* Names the GPU on which most was measured of it. */
static void note_missing(struct sl_node *node, const struct sl_node_client *client)
{
	const struct sl_ledger_cell *cell = client->holding.cell;
	uint32_t mask = client->member->account.gpu_mask;
	uint32_t most = mask ? (uint32_t)__builtin_ctz(mask) : 0;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		if (sl_ledger_live(&cell[gpu]) > sl_ledger_live(&cell[most]))
			most = gpu;
	}
	sl_node_note(node, SL_REASON_REPORT_MISSING, most, client->member->index.id, 0,
		sl_ledger_live(&cell[most]));
}

static void give_up_expected(struct sl_node *node)
{
	for (struct sl_index_node *at = sl_index_next(&node->clients, NULL); at;
		at = sl_index_next(&node->clients, at)) {
		struct sl_node_client *client = SL_NODE_ENTRY(at, sl_node_client);

		if (!client->expected)
			continue;
		client->expected = false;
		note_missing(node, client);
	}
	node->expected = 0;
	node->dirty_mask = UINT32_MAX;
	node->probes_dirty = true; /* nobody was asked while it was not heard of */
}

/* What ends by itself, whoever waits: graces of those that were told to stop. */
static sl_ns time_stops(struct sl_node *node)
{
	sl_ns asked = sl_min_u64(sl_node_time_stops(node), sl_node_time_strangers(node));

	return sl_min_u64(asked, sl_node_time_suspects(node));
}

static void time_resolvers(struct sl_node *node)
{
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		struct sl_node_queue *queue = &node->queue[gpu];

		if (!queue->count)
			continue;
		if (node->now >= queue->resolve_at) {
			queue->resolve_at = SL_NS_NEVER;
			sl_node_reconsider(node, 1u << gpu);
		}
		by_then(node, queue->resolve_at);
	}
}

/* Does what is due and finds the next deadline. O(waiting). */
static void run_timers(struct sl_node *node)
{
	uint32_t pressed;

	node->timers_dirty = false;
	node->due = node->stops_due = time_stops(node);
	pressed = node->pressed_mask;
	node->pressed_mask = 0;
	if (sl_node_is_recovering(node)) {
		if (node->now < node->recover_until) {
			by_then(node, node->recover_until);
			return;
		}
		give_up_expected(node);
		/* First decide who is entitled now: nobody looked while reports were missing. */
		node->timers_dirty = true;
		return;
	}
	sl_list_foreach_safe (link, &node->parties)
		time_party(node, SL_LIST_ENTRY(link, struct sl_node_client, party.link));
	node->probes_dirty |= pressed != node->pressed_mask;
	time_resolvers(node);
	/* Last: whose need has just ended is not killed for it. */
	node->stops_due = sl_min_u64(node->stops_due, sl_node_time_victims(node));
	by_then(node, node->stops_due);
}

static void resolve(struct sl_node *node)
{
	uint32_t gpu = (uint32_t)__builtin_ctz(node->resolve_mask);

	sl_node_resolve(node, gpu);
	by_then(node, node->queue[gpu].resolve_at);
}

/* Each victim costs up to 64 looks at all that wait, so a thousand hopeless clients must not
 * hold up everybody else: the next victim then has a step of its own, which is due at once. */
static bool may_give_way(struct sl_node *node)
{
	if ((uint64_t)node->gave_way * node->clients_count < GIVE_WAY_MOST)
		return true;
	by_then(node, node->now + 1);
	return false;
}

/* Answers the first question that has a new answer; false: none has. */
static bool decide(struct sl_node *node)
{
	serve_dirty(node);
	if (node->timers_dirty || node->now >= node->due)
		run_timers(node);
	else if (sl_node_is_recovering(node))
		return false;
	else if (SL_MUTANT(NEVER_SETTLES, node->swap_dirty, true) ||
		 node->now >= node->swap_due)
		sl_node_take_turns(node);
	else if (node->resolve_mask)
		resolve(node);
	else if (node->deadlock_dirty && may_give_way(node))
		break_deadlock(node);
	else
		return false;
	return true;
}

/* What is left to decide stays marked; deadlines are found out then. */
static void go_on_later(struct sl_node *node)
{
	node->due = node->goes_on_at;
	node->timers_dirty = true;
}

/* Said once, until it has come to an end again. */
static void give_up_for_now(struct sl_node *node)
{
	if (!node->goes_on_at)
		sl_node_note(node, SL_REASON_UNSETTLED, 0, 0, 0, 0);
	node->goes_on_at = sl_node_later(node->now, GOES_ON_AFTER);
	go_on_later(node);
}

void sl_node_settle(struct sl_node *node)
{
	if (node->now < node->goes_on_at) {
		go_on_later(node);
		return;
	}
	node->gave_way = node->serves = 0;
	while (decide(node)) {
		node->serves += SL_NODE_GPUS_MAX;
		if (is_out_of_rounds(node)) {
			give_up_for_now(node);
			return;
		}
	}
	node->goes_on_at = 0;
	if (node->probes_dirty)
		sl_node_probe(node);
	/* Whoever had the deadline was served meanwhile: spare the caller a wake-up. */
	if (sl_list_is_empty(&node->parties) && !sl_node_is_recovering(node))
		node->due = node->stops_due;
	if (sl_node_is_recovering(node))
		return;
	by_then(node, node->swap_due);
	by_then(node, sl_node_time_contexts(node));
}
