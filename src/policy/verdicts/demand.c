/*
 * demand - see the header
 *
 * Granting only ever takes room away from the others (an entitled grant takes as much from
 * free as from what is unclaimed, a burst at least as much), so one pass from the head is
 * enough: nobody before the place reached can fit because of a later grant. The exception, a
 * sibling that lost its entitlement and moved, is the caller's to notice (sl_demand_refresh).
 */
#include "policy/verdicts/demand.h"
#include "policy/mutant.h"

bool sl_demand_is_over_limit(const struct sl_demand *demand)
{
	const struct sl_ledger_account *account = demand->holding->account;
	uint64_t use = sl_ledger_use(account, demand->gpu);

	if (demand->there)
		return false;
	/* Written without the sum: bytes come from the client and may be anything. */
	return use > account->limit_bytes || demand->bytes > account->limit_bytes - use;
}

bool sl_demand_is_entitled(const struct sl_demand *demand)
{
	const struct sl_ledger_account *account = demand->holding->account;
	uint64_t request = sl_ledger_request(account, demand->gpu);
	uint64_t use = demand->there ? sl_ledger_fixed(&account->cell[demand->gpu])
				     : sl_ledger_use(account, demand->gpu);

	if (SL_MUTANT(ENTITLED_EXCLUSIVE, false, use + demand->bytes == request))
		return false;
	return use <= request && demand->bytes <= request - use;
}

/* What others keep from it: their requests; from bytes that are there also what they have fixed
 * beyond. */
uint64_t sl_demand_holdable(
	const struct sl_demand *demand, const struct sl_ledger *ledger)
{
	const struct sl_ledger_account *account = demand->holding->account;
	const struct sl_ledger_gpu *g = &ledger->gpu[demand->gpu];
	uint64_t request = sl_ledger_request(account, demand->gpu);
	uint64_t others = g->requests_bytes - request;
	uint64_t fixed = sl_ledger_fixed(&account->cell[demand->gpu]);

	if (SL_MUTANT(HELD_GIVES_UP, demand->there, true))
		others = g->claims_bytes - sl_ledger_claim(account, demand->gpu);
	return sl_sub_sat(sl_ledger_shareable(ledger, demand->gpu), others + fixed);
}

/* Its workload's fixed bytes would be above its request and in the way of what others were
 * promised. */
static bool is_over_promise(
	const struct sl_demand *demand, const struct sl_ledger *ledger, bool degraded)
{
	const struct sl_ledger_account *account = demand->holding->account;
	uint64_t fixed = sl_ledger_fixed(&account->cell[demand->gpu]);

	if (!demand->held ||
		demand->bytes <=
			sl_sub_sat(sl_ledger_request(account, demand->gpu), fixed))
		return false;
	if (demand->there)
		return SL_MUTANT(HOLDS_ANYTHING,
			degraded || demand->bytes > sl_demand_holdable(demand, ledger),
			false);
	return SL_MUTANT(HELD_WAITS_IN_VAIN,
		demand->bytes > sl_demand_holdable(demand, ledger), false);
}

enum sl_demand_fit sl_demand_fits(const struct sl_demand *demand,
	const struct sl_ledger *ledger, uint64_t lend_bytes, bool degraded)
{
	const struct sl_ledger_account *account = demand->holding->account;
	uint32_t gpu = demand->gpu;
	uint64_t shareable = sl_ledger_shareable(ledger, gpu);
	uint64_t resident = sl_ledger_resident(ledger, gpu);
	uint64_t others =
		ledger->gpu[gpu].unclaimed_bytes -
		SL_MUTANT(OWN_REQUEST_BLOCKS, sl_ledger_unclaimed(account, gpu), 0);

	/* First, also while nothing is free: who can never be granted must not keep anybody
	 * waiting behind him as the head. */
	if (SL_MUTANT(LIMIT_NOT_RECHECKED, sl_demand_is_over_limit(demand), false))
		return SL_DEMAND_OVER_LIMIT;
	if (is_over_promise(demand, ledger, degraded))
		return SL_DEMAND_OVER_PROMISE;
	if (demand->there)
		return SL_DEMAND_FITS;
	if (demand->bytes > sl_ledger_free_bytes(ledger, gpu))
		return SL_DEMAND_WAITS;
	if (demand->held)
		lend_bytes = SL_MUTANT(HELD_ON_LOAN, 0, lend_bytes);
	if (!sl_demand_is_entitled(demand)) {
		if (SL_MUTANT(BURST_WHILE_DEGRADED, degraded, false))
			return SL_DEMAND_WAITS;
		others = SL_MUTANT(BURST_TAKES_REQUESTS, others, 0);
		if (sl_sub_sat(resident + demand->bytes + others, shareable) > lend_bytes)
			return SL_DEMAND_WAITS;
	}
	return SL_DEMAND_FITS;
}

bool sl_demand_is_before(const struct sl_demand *a, const struct sl_demand *b)
{
	if (a->entitled != b->entitled)
		return SL_MUTANT(
			ENTITLED_NOT_FIRST, a->entitled, a->sequence < b->sequence);
	if (a->priority != b->priority)
		return SL_MUTANT(PRIORITY_UPSIDE_DOWN, a->priority > b->priority,
			a->priority < b->priority);
	if (a->grows != b->grows)
		return a->grows;
	return SL_MUTANT(
		LAST_COME_FIRST, a->sequence<b->sequence, a->sequence> b->sequence);
}

void sl_demand_restart(struct sl_demand *demand, sl_ns now)
{
	demand->burst_since = now;
	demand->retried = false;
}

void sl_demand_enqueue(struct sl_link *queue, struct sl_demand *demand)
{
	struct sl_link *at = queue->prev;

	/* From the tail: most arrivals are the last of their kind. */
	while (at != queue &&
		sl_demand_is_before(demand, SL_LIST_ENTRY(at, struct sl_demand, queue)))
		at = at->prev;
	sl_list_insert_before(at->next, &demand->queue);
}

bool sl_demand_refresh(struct sl_link *queue, sl_ns now, bool *fell)
{
	struct sl_link moved;
	bool any = false;

	sl_list_init(&moved);
	sl_list_foreach_safe (link, queue) {
		struct sl_demand *demand = SL_LIST_ENTRY(link, struct sl_demand, queue);
		bool entitled = sl_demand_is_entitled(demand);

		if (SL_MUTANT(STALE_ENTITLEMENT, entitled == demand->entitled, true))
			continue;
		demand->entitled = entitled;
		if (!entitled) {
			sl_demand_restart(demand, now);
			*fell = true;
		}
		sl_list_unlink(link);
		sl_list_push_tail(&moved, link);
		any = true;
	}
	sl_list_foreach_safe (link, &moved) {
		sl_list_unlink(link);
		sl_demand_enqueue(queue, SL_LIST_ENTRY(link, struct sl_demand, queue));
	}
	return any;
}

/* The first demand that cannot be granted is the head. One that comes back from a driver
 * refusal was not displaced: its time as the head goes on. */
static void meet_head(struct sl_demand_scan *scan, struct sl_demand *demand,
	const struct sl_demand *old_head)
{
	if (scan->head)
		return;
	scan->head = demand;
	scan->head_since = scan->now;
	if (demand == old_head || (demand->refusals && demand->head_since))
		scan->head_since = demand->head_since;
}

bool sl_demand_yields(const struct sl_demand *demand, const struct sl_demand *head,
	sl_ns waited, sl_ns head_pass, bool stops_lower)
{
	/* Who is stopped for it frees what it lacks beyond what is free: others may not take
	 * that. */
	if (head->stops || waited >= head_pass)
		return true;
	/* It would lack what this burst takes, and have it stopped for that: the burst is better
	 * off waiting. */
	return SL_MUTANT(MOVING_PASSED, stops_lower, false) && head->moving &&
	       !demand->entitled && demand->priority < head->priority;
}

static bool keeps(const struct sl_demand_scan *scan, const struct sl_demand *demand)
{
	return scan->head &&
	       sl_demand_yields(demand, scan->head, scan->now - scan->head_since,
		       scan->head_pass, scan->stops_lower);
}

void sl_demand_crown(const struct sl_demand_scan *scan, struct sl_demand *old_head)
{
	if (old_head && old_head != scan->head)
		old_head->head_since = 0;
	if (scan->head)
		scan->head->head_since = scan->head_since;
}

/* What it must leave to others; it is beside them, not in their way. */
static uint64_t kept_from(
	const struct sl_demand_scan *scan, const struct sl_demand *demand)
{
	return scan->kept ? scan->kept(scan->lender, demand) : 0;
}

/* Looked up only where it can matter: it may cost a walk over all workloads. */
static uint64_t lend_to(const struct sl_demand_scan *scan, const struct sl_demand *demand)
{
	if (!scan->lend ||
		demand->bytes > sl_ledger_free_bytes(scan->ledger, demand->gpu))
		return 0;
	return scan->lend(scan->lender, demand);
}

enum sl_demand_step sl_demand_scan_next(struct sl_demand_scan *scan,
	const struct sl_demand *old_head, struct sl_demand **out)
{
	struct sl_link *link = scan->at ? scan->at->next : scan->queue->next;

	for (; link != scan->queue; link = link->next) {
		struct sl_demand *demand = SL_LIST_ENTRY(link, struct sl_demand, queue);
		enum sl_demand_fit fit = sl_demand_fits(
			demand, scan->ledger, lend_to(scan, demand), scan->degraded);
		uint64_t kept = kept_from(scan, demand);

		if (fit == SL_DEMAND_FITS && kept && !demand->there &&
			demand->bytes > sl_sub_sat(sl_ledger_free_bytes(
							   scan->ledger, demand->gpu),
						kept))
			fit = SL_DEMAND_WAITS;
		if (fit == SL_DEMAND_WAITS)
			demand->refused_since = demand->refusals = 0;
		*out = demand;
		scan->at = link->prev;
		/* Also behind a head that keeps: being denied takes no bytes from it. */
		if (fit == SL_DEMAND_OVER_LIMIT)
			return SL_DEMAND_DENY_LIMIT;
		if (kept == UINT64_MAX && !demand->there)
			continue;
		if (fit == SL_DEMAND_OVER_PROMISE)
			return SL_DEMAND_DENY_PROMISE;
		if (fit == SL_DEMAND_WAITS || demand->retry_at > scan->now) {
			meet_head(scan, demand, old_head);
			continue;
		}
		/* What is there takes no bytes from the head either. */
		if (demand->there ||
			!SL_MUTANT(HEAD_NOT_KEPT, keeps(scan, demand), false))
			return SL_DEMAND_GRANT;
		scan->at = link;
		return SL_DEMAND_KEPT;
	}
	scan->at = link->prev;
	return SL_DEMAND_END;
}
