/*
 * rules - judges every action: answers, orders; see the header
 */
#include "rules.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

void swap_break(struct swap_rules *r, enum swap_promise promise, const char *format, ...)
{
	static const char *const names[] = {
#define SL_PROMISE(NAME, text) #NAME,
#include "../common/promises.def"
#undef SL_PROMISE
	};
	va_list args;
	int length;

	if (r->failed[0])
		return;
	length = snprintf(r->failed, sizeof(r->failed), "%s: ", names[promise]);
	va_start(args, format);
	(void)vsnprintf(
		r->failed + length, sizeof(r->failed) - (size_t)length, format, args);
	va_end(args);
}

void swap_rules_init(struct swap_rules *r)
{
	uint64_t moved = r->moved, needed = r->needed;

	memset(r, 0, sizeof(*r));
	r->moved = moved;
	r->needed = needed;
	r->wake = SL_NS_NEVER;
	r->turn_max = 10 * SL_S;
}

/* --- people's answers --- */

static void on_admit(struct swap_rules *r, const struct sl_action *a)
{
	const struct sl_event *e = &r->event;
	struct swap_member *m = swap_new_member(r);

	if (!m) {
		swap_break(r, SWAP_ANSWER, "no room for another workload");
		return;
	}
	*m = (struct swap_member){.used = true,
		.id = a->admit.workload,
		.request = a->admit.request_bytes,
		.limit = a->admit.limit_bytes,
		.mask = a->admit.gpu_mask,
		.flags = e->workload_add.flags,
		.priority = e->workload_add.priority,
		.warm_after = e->workload_add.warm_after,
		.idle_grace = e->workload_add.idle_grace};
}

static void on_set_done(struct swap_rules *r, const struct sl_action *a)
{
	const struct sl_event *e = &r->event;
	struct swap_member *m = swap_member_of(r, a->set_done.workload);

	if (!m)
		return;
	r->contest++;
	if (e->type == SL_EVENT_WORKLOAD_PARK && e->workload_park.workload == m->id) {
		m->parked = true;
		m->by_itself = e->workload_park.returns;
		m->resuming = false;
		for (uint32_t i = 0; i < r->parties; i++) {
			if (r->party[i].workload == m->id)
				r->party[i].stayed = 0;
		}
	} else if (e->type == SL_EVENT_WORKLOAD_SET &&
		   e->workload_set.workload == m->id) {
		m->request = a->set_done.request_bytes;
		m->limit = a->set_done.limit_bytes;
		m->priority = a->set_done.priority;
		if (e->workload_set.which & SL_SET_FLAGS)
			m->flags = (m->flags & 0xffff0000) |
				   (e->workload_set.flags & 0xffff);
		if (e->workload_set.which & SL_SET_CHAIN)
			m->flags = (m->flags & 0xffff) |
				   (e->workload_set.flags & 0xffff0000);
		if (e->workload_set.which & SL_SET_WARM)
			m->warm_after = e->workload_set.warm_after;
		if (e->workload_set.which & SL_SET_GRACE)
			m->idle_grace = e->workload_set.idle_grace;
	} else if (e->type == SL_EVENT_WORKLOAD_RESUME &&
		   e->workload_resume.workload == m->id) {
		swap_on_resume(r, m, a->set_done.limit_bytes);
	} else {
		swap_break(r, SWAP_ANSWER,
			"SET_DONE for workload %" PRIu64 " that has no change", m->id);
	}
}

static void on_note(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p;

	if (a->note.reason != SL_REASON_STOP_REVOKED)
		return;
	p = swap_party_of(r, a->note.client);
	if (p)
		p->termed = false;
}

/* PARKED: what the action says is true, and the workload moves no more. */
static void on_parked(struct swap_rules *r, const struct sl_action *a)
{
	const struct swap_member *m = swap_member_of(r, a->parked.workload);

	if (!m || !m->parked || m->resuming)
		swap_break(r, SWAP_PARKED,
			"workload %" PRIu64 " is told to be parked, without a PARK",
			a->parked.workload);
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->used && p->workload == a->parked.workload && p->order &&
			!p->travels)
			swap_break(r, SWAP_PARKED,
				"workload %" PRIu64
				" is told to be parked, and client %" PRIu64
				" still moves",
				p->workload, p->id);
	}
}

/* PARKED: the request is claimed again exactly then, in order: the journal relies on it. */
static void on_resumed(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_member *m = swap_member_of(r, a->resumed.workload);

	if (!m || !m->resuming) {
		swap_break(r, SWAP_PARKED,
			"workload %" PRIu64 " is resumed, without a RESUME",
			a->resumed.workload);
		return;
	}
	m->parked = m->resuming = false;
	r->contest++;
	for (uint32_t i = 0; i < r->parties; i++) {
		struct swap_party *p = &r->party[i];

		if (!p->used || !p->alive || p->workload != m->id)
			continue;
		p->resumed = swap_party_is_out(p) || p->order;
		if (p->resumed && !p->wants)
			p->wants_at = r->now;
	}
	for (uint32_t i = 0; i < r->members; i++) {
		const struct swap_member *other = &r->member[i];

		if (other->used && other->resuming && other->mask & m->mask &&
			other->resuming_since < m->resuming_since)
			swap_break(r, SWAP_PARKED,
				"workload %" PRIu64 " is resumed, and %" PRIu64
				" waits for longer",
				m->id, other->id);
	}
}

/* PARKED: only of the client of this step's CLIENT_EXIT. */
static void on_left(struct swap_rules *r, const struct sl_action *a)
{
	if (r->event.type != SL_EVENT_CLIENT_EXIT ||
		r->event.client_exit.client != a->left.client)
		swap_break(r, SWAP_SHOWN, "client %" PRIu64 " left, which lives",
			a->left.client);
}

/* --- demands --- */

static struct swap_demand *demand_of(struct swap_party *p, uint64_t ask)
{
	for (uint32_t i = 0; p && i < SWAP_GRANTS; i++) {
		if (p->demand[i].used && p->demand[i].ask == ask)
			return &p->demand[i];
	}
	return NULL;
}

/* I2, for bursts: lent memory can be taken back, from the borrower. */
static void judge_lending(struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *m, const struct swap_demand *d, uint64_t before)
{
	uint64_t after = swap_i2(r) - swap_lent_above(r, m, d);

	if (after <= before)
		return;
	if (after > sl_sub_sat(r->pool, r->slack))
		swap_break(r, SWAP_I2,
			"a burst is granted on GPU %u; evicted + leaving + overlap "
			"are then %" PRIu64 " (%" PRIu64
			" of it on requests of higher priority), the pool less its slack "
			"%" PRIu64,
			d->gpu, swap_i2(r), swap_i2(r) - after,
			sl_sub_sat(r->pool, r->slack));
	if (!r->swaps || !p->swaps || swap_stays(r, m) || d->held)
		swap_break(r, SWAP_I2,
			"GRANT to client %" PRIu64
			" on others' requests, from which it cannot be moved again",
			p->id);
}

/* ONE_ORDER, WHOLE, PARKED, RECOVERY, LIMIT, I1, I2. */
static void on_grant(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = swap_party_of(r, a->grant.client);
	struct swap_demand *d = demand_of(p, a->grant.ask);
	struct swap_member *m = p ? swap_member_of(r, p->workload) : NULL;
	uint32_t gpu = a->grant.gpu;
	uint64_t before;
	bool entitled;

	if (!d || d->epoch || !m || !p->alive) {
		swap_break(r, SWAP_ANSWER,
			"GRANT %" PRIu64 "/%" PRIu64 " of no waiting demand",
			a->grant.client, a->grant.ask);
		return;
	}
	entitled = swap_is_entitled(r, m, d) && !m->parked;
	before = swap_i2(r) - swap_lent_above(r, m, d);
	if (p->order)
		swap_break(r, SWAP_ONE_ORDER,
			"GRANT to client %" PRIu64 ", whose order %" PRIu64 " is open",
			p->id, p->order);
	if (swap_party_evicted(p))
		swap_break(r, SWAP_WHOLE,
			"GRANT to client %" PRIu64 ", of which %" PRIu64
			" bytes are on the host",
			p->id, swap_party_evicted(p));
	if (swap_party_away(p))
		swap_break(r, SWAP_WHOLE,
			"GRANT to client %" PRIu64 ", which is off its GPUs", p->id);
	if (m->parked)
		swap_break(r, SWAP_PARKED,
			"GRANT to client %" PRIu64 " of a parked workload", p->id);
	if (swap_recovers(r))
		swap_break(r, SWAP_RECOVERY, "GRANT before all clients have reported");
	d->epoch = a->grant.epoch;
	if (swap_use(r, m->id, gpu) > m->limit)
		swap_break(r, SWAP_LIMIT,
			"GRANT takes workload %" PRIu64 " above its limit", m->id);
	if (swap_physical(r, gpu) > swap_shareable(r, gpu))
		swap_break(r, SWAP_I1,
			"GRANT on GPU %u: %" PRIu64 " on it of %" PRIu64
			" that can be shared",
			gpu, swap_physical(r, gpu), swap_shareable(r, gpu));
	if (!entitled)
		judge_lending(r, p, m, d, before);
}

/* What the workload asked for there before. */
static uint64_t older(const struct swap_rules *r, const struct swap_member *m,
	const struct swap_demand *d)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		for (uint32_t n = 0; p->used && p->workload == m->id && n < SWAP_GRANTS;
			n++) {
			const struct swap_demand *o = &p->demand[n];

			if (o != d && o->used && !o->epoch && o->gpu == d->gpu &&
				o->since <= d->since)
				sum += o->bytes;
		}
	}
	return sum;
}

/* OOM, FREE. */
static void on_deny(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = swap_party_of(r, a->deny.client);
	struct swap_demand *d = demand_of(p, a->deny.ask);
	struct swap_member *m = p ? swap_member_of(r, p->workload) : NULL;
	uint32_t reason = a->deny.reason, chain;

	if (!d || !m)
		return;
	if (reason != SL_REASON_CANCELLED &&
		sl_reason_kind(reason) != SL_REASON_KIND_EXCEPT &&
		swap_is_entitled(r, m, d) && !m->stopping &&
		swap_use(r, m->id, d->gpu) + older(r, m, d) + d->bytes <= m->request)
		swap_break(r, SWAP_OOM,
			"%s for %" PRIu64 "/%" PRIu64
			", which is within the request of workload %" PRIu64 "%s",
			sl_reason_name(reason), p->id, d->ask, m->id,
			m->parked ? " (parked)" : "");
	chain = swap_chain_of(r, m, !swap_is_entitled(r, m, d));
	if ((reason == SL_REASON_NO_RESOLVER &&
		    swap_chain_has(chain, SL_RESOLVER_WAIT)) ||
		(reason == SL_REASON_WAITED_TOO_LONG && r->now - d->since < r->wait_max))
		swap_break(r, SWAP_CHAIN,
			"%s for %" PRIu64 "/%" PRIu64 " after %" PRIu64
			" ms, with the resolvers %x",
			sl_reason_name(reason), p->id, d->ask, swap_ms(r->now - d->since),
			chain);
	if (swap_chain_has(chain, SL_RESOLVER_SWAP) &&
		(reason == SL_REASON_WAITED_TOO_LONG || reason == SL_REASON_HOPELESS ||
			reason == SL_REASON_NO_RESOLVER) &&
		!swap_party_evicted(p) && (!p->order || p->is_restore) && !d->held &&
		swap_could_be_had(r, p, m, d->gpu))
		swap_break(r, SWAP_FREE,
			"%" PRIu64 "/%" PRIu64 " is denied %" PRIu64
			" bytes on GPU %u, which others do not use and which could be "
			"moved: %s",
			p->id, d->ask, d->bytes, d->gpu, sl_reason_name(reason));
	d->used = false;
}

/* --- orders --- */

void swap_count(struct swap_rules *r, const struct swap_party *p, struct swap_rate *rate,
	const char *what)
{
	enum { MOST = 40 };

	if (r->now - rate->since >= SL_S)
		*rate = (struct swap_rate){.since = r->now};
	if (++rate->count > MOST)
		swap_break(r, SWAP_STORM,
			"client %" PRIu64 ": more than %d %s within a second", p->id,
			MOST, what);
}

static void open_order(struct swap_rules *r, struct swap_party *p, uint64_t id,
	bool is_restore, uint32_t gpu, uint64_t bytes)
{
	p->order = id;
	p->order_bytes = bytes;
	p->order_gpu = gpu;
	p->is_restore = is_restore;
	p->travels = false;
	p->aborted = p->moved = false;
	p->order_at = r->now;
}

/* Of both: ONE_ORDER, RECOVERY, and STAYS for dead clients and where there is nothing to move. */
static bool may_move(struct swap_rules *r, const char *what, uint64_t client,
	uint32_t gpu, uint64_t bytes)
{
	struct swap_party *p = swap_party_of(r, client);

	if (!p || !p->alive || gpu >= SWAP_GPUS || !swap_member_of(r, p->workload)) {
		swap_break(r, SWAP_STAYS, "%s of an unknown client (%" PRIu64 ")", what,
			client);
		return false;
	}
	if (p->order)
		swap_break(r, SWAP_ONE_ORDER,
			"%s of client %" PRIu64 ", whose order %" PRIu64 " is open", what,
			p->id, p->order);
	if (swap_party_away(p))
		swap_break(r, SWAP_PLACES,
			"%s of client %" PRIu64 ", which is off its GPUs", what, p->id);
	if (p->expected)
		swap_break(r, SWAP_RECOVERY,
			"%s of client %" PRIu64 ", which has not reported", what, p->id);
	if (!bytes || r->lost_mask >> gpu & 1)
		swap_break(r, SWAP_STAYS,
			"%s of client %" PRIu64 " of %" PRIu64 " bytes on%s GPU %u", what,
			p->id, bytes, r->lost_mask >> gpu & 1 ? " lost" : "", gpu);
	return true;
}

/* GRACE: guaranteed means resident. No client of a workload within its request moves for a burst if
 * it worked lately. A fully resident one must be proven to have no work left. */
static void judge_grace(struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *m, const struct swap_member *other)
{
	sl_ns grace = m->idle_grace;
	sl_ns quiet = grace ? swap_quiet_member(r, m, true) : swap_quiet_of(r, p);

	/* A client that is partly on the host does not run, and where requests do not fit any
	 * more they take turns. */
	if (swap_party_evicted(p) || r->forced_mask)
		return;
	/* A client that goes warm before its grace goes. */
	if (m->warm_after)
		grace = sl_min_u64(grace, m->warm_after);
	if (!p->proven)
		quiet = 0;
	/* Without a grace it takes no turns with bursts either: a client is moved once it is
	 * idle. */
	grace = sl_max_u64(grace, 20 * SL_MS);
	if (m != other && !m->parked && swap_is_within(r, m) && quiet + SL_US < grace)
		swap_break(r, SWAP_GRACE,
			"workload %" PRIu64
			", within its request, is moved for a burst of %" PRIu64
			" after %" PRIu64 " ms without work, of %" PRIu64,
			m->id, other->id, swap_ms(quiet), swap_ms(grace));
}

/* It names the first workload that it is for: it may be for any that lacks memory there. */
#define FOR_ANY 0

/* A body comes back at its turn; of a burst demand, its chain decides. at_once: although the node's
 * bursts wait first. */
static bool moves_for(struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *m, const struct swap_demand *d, bool at_once)
{
	bool burst = !swap_is_entitled(r, m, d);
	uint32_t chain = swap_chain_of(r, m, burst);

	if (!at_once)
		return swap_chain_has(chain, SL_RESOLVER_SWAP);
	return burst && chain != r->chain && swap_chain_has(chain, SL_RESOLVER_SWAP) &&
	       (swap_chain_begins(chain, SL_RESOLVER_SWAP, SL_RESOLVER_WAIT) ||
		       r->now - d->since >= r->wait_max);
}

static bool is_any(struct swap_rules *r, bool at_once)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];
		const struct swap_member *m = swap_member_of(r, p->workload);

		if (!p->used || !p->alive || !m)
			continue;
		if (swap_party_wants(p) && !at_once)
			return true;
		for (uint32_t n = 0; n < SWAP_GRANTS; n++) {
			const struct swap_demand *d = &p->demand[n];

			if (d->used && !d->epoch && moves_for(r, p, m, d, at_once))
				return true;
		}
	}
	return false;
}

static bool may_any_move(struct swap_rules *r)
{
	return is_any(r, false);
}

static bool moves_any_by_own(struct swap_rules *r)
{
	return is_any(r, true);
}

/* NEEDED, CHAIN: memory moves for another workload, which lacks it. */
static void judge_need(struct swap_rules *r, const struct sl_action *a,
	const struct swap_party *p, const struct swap_member *m, bool rightly)
{
	const struct swap_member *other = swap_member_of(r, a->evict.other);
	uint32_t gpu = a->evict.gpu;
	sl_ns waited = 0;

	if (!other || !swap_member_waits(r, other)) {
		swap_break(r, SWAP_STAYS,
			"client %" PRIu64 " is evicted for workload %" PRIu64
			", which does not wait",
			p->id, a->evict.other);
		return;
	}
	if (p->for_others && !p->order_needed)
		swap_break(r, SWAP_NEEDED,
			"client %" PRIu64
			" is evicted from GPU %u though what leaves it already suffices",
			p->id, gpu);
	if (!rightly)
		judge_grace(r, p, m, other);
	for (uint32_t i = 0; r->waits_first && i < SWAP_GPUS; i++)
		waited = sl_max_u64(waited, swap_lacking_for(r, FOR_ANY, i));
	/* Behind `wait` in the chain others are moved for a burst only after its wait. */
	if (!rightly && !may_any_move(r))
		swap_break(r, SWAP_CHAIN,
			"client %" PRIu64 " is evicted for workload %" PRIu64
			", and no waiting burst has `swap` among its resolvers",
			p->id, other->id);
	if (r->waits_first && !rightly && waited < r->wait_max && !moves_any_by_own(r))
		swap_break(r, SWAP_CHAIN,
			"client %" PRIu64 " is evicted for workload %" PRIu64
			", which has waited for %" PRIu64 " ms of %" PRIu64,
			p->id, other->id, swap_ms(waited), swap_ms(r->wait_max));
}

/* Another client has copies that it was not told to give back: these go first. */
static bool has_copies(const struct swap_rules *r, const struct swap_party *but)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->used && p->alive && p != but && !p->order && !p->trimmed &&
			p->store > swap_party_evicted(p))
			return true;
	}
	return false;
}

/* The bound of I2, less what `priority` takes back from the workloads that lack memory there. The
 * EVICT may be for any of them, although it names only the first. */
static uint64_t i2_for_any(struct swap_rules *r, uint32_t gpu)
{
	const struct swap_demand any = {0};
	uint64_t above = 0;

	for (uint32_t i = 0; i < r->members; i++) {
		const struct swap_member *m = &r->member[i];

		if (m->used && swap_lacking_for(r, m->id, gpu))
			above = sl_max_u64(above, swap_lent_above(r, m, &any));
	}
	return swap_i2(r) - above;
}

/* POOL, I2: with the order open. */
static void judge_pool(struct swap_rules *r, const struct sl_action *a,
	const struct swap_party *p, const struct swap_member *m, bool rightly,
	uint64_t before)
{
	uint64_t room = sl_sub_sat(r->pool, r->slack),
		 needs = i2_for_any(r, a->evict.gpu);
	uint64_t out = swap_evicted(r, 0) + swap_leaving(r);

	/* The slack, and lent memory, exist so that an entitled client can always make an
	 * exchange. */
	if (out > r->pool)
		swap_break(r, SWAP_POOL,
			"EVICT of client %" PRIu64 ": %" PRIu64
			" bytes are then on the host, of %" PRIu64,
			p->id, out, r->pool);
	if (!rightly && needs > room && swap_i2(r) > before)
		swap_break(r, SWAP_I2,
			"EVICT of client %" PRIu64
			": evicted + leaving + overlap are then %" PRIu64
			", before %" PRIu64 ", of %" PRIu64,
			p->id, needs, before, room);
	if (r->pool_member && swap_evicted(r, m->id) + p->order_bytes > r->pool_member)
		swap_break(r, SWAP_POOL,
			"EVICT takes workload %" PRIu64 " above its bound on the host",
			m->id);
	if (r->quiet && swap_made(r) > r->pool && has_copies(r, p))
		swap_break(r, SWAP_POOL,
			"EVICT of client %" PRIu64 " takes %" PRIu64
			" of host memory with all copies, of %" PRIu64,
			p->id, swap_made(r), r->pool);
}

/* NO_GRANT, STAYS: which of its memory may move, and for which other. */
static void judge_leaving(struct swap_rules *r, const struct sl_action *a,
	const struct swap_party *p, const struct swap_member *m, bool rightly)
{
	for (uint32_t i = 0; i < SWAP_GRANTS; i++) {
		if (p->demand[i].used && p->demand[i].epoch)
			swap_break(r, SWAP_NO_GRANT,
				"EVICT of client %" PRIu64 " with grant %" PRIu64
				" not committed",
				p->id, p->demand[i].epoch);
	}
	/* A parked or warm workload leaves for no other. */
	if (!p->swaps || (swap_stays(r, m) && !m->parked) || !r->pool ||
		(!r->swaps && a->evict.other))
		swap_break(r, SWAP_STAYS,
			"EVICT of client %" PRIu64 ", which is not to be swapped", p->id);
	if (m->parked)
		return;
	if (a->evict.other)
		judge_need(r, a, p, m, rightly);
	else if (!m->warm_after || swap_quiet_of(r, p) + SL_US < m->warm_after)
		swap_break(r, SWAP_STAYS,
			"client %" PRIu64
			" is evicted for no other, neither parked nor idle for %" PRIu64
			" ms",
			p->id, swap_ms(m->warm_after));
}

static void on_evict(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = swap_party_of(r, a->evict.client);
	struct swap_member *m = p ? swap_member_of(r, p->workload) : NULL;
	uint32_t gpu = a->evict.gpu;
	uint64_t before = swap_i2(r), there = 0;
	bool rightly;

	/* Where promises are broken already, the node believes less held memory than the client
	 * reports, so it takes more of the client's memory as movable. */
	if (p && gpu < SWAP_GPUS)
		there = sl_sub_sat(p->backing[gpu] - p->evicted[gpu],
			(r->forced_mask | p->doubted) >> gpu & 1 ? 0 : p->held[gpu]);
	there = sl_min_u64(there, a->evict.bytes);
	if (!may_move(r, "EVICT", a->evict.client, gpu, there))
		return;
	rightly = (a->evict.other || m->parked) && swap_lacks_rightly(r, FOR_ANY, gpu);
	p->for_others = a->evict.other && !m->parked && !swap_is_spread(m) &&
			!(r->forced_mask >> gpu & 1);
	p->order_needed = sl_min_u64(there, swap_lack(r, gpu));
	judge_leaving(r, a, p, m, rightly);
	open_order(r, p, a->id, false, gpu, there);
	judge_pool(r, a, p, m, rightly, before);
	p->resumed &= swap_party_evicted(p) > 0;
}

/* WHOLE, I1: a client that returns fits on all of its GPUs. A workload on several GPUs is resident
 * on all of them or on none. */
static void judge_return(struct swap_rules *r, const struct swap_party *p, uint32_t gpu)
{
	for (uint32_t i = 0; i < SWAP_GPUS; i++) {
		if (!p->evicted[i])
			continue;
		if (p->returns[i] < p->evicted[i] && i != gpu)
			swap_break(r, SWAP_WHOLE,
				"RESTORE of a part of client %" PRIu64
				", of which more is on the host from GPU %u",
				p->id, i);
		if (swap_physical(r, i) > swap_shareable(r, i))
			swap_break(r, SWAP_I1,
				"RESTORE of client %" PRIu64 ": on GPU %u %" PRIu64
				" are then of %" PRIu64 " that can be shared",
				p->id, i, swap_physical(r, i), swap_shareable(r, i));
	}
}

/* PARKED, STAYS. */
static void on_restore(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = swap_party_of(r, a->restore.client);
	uint32_t gpu = a->restore.gpu;
	uint64_t out = p && gpu < SWAP_GPUS ? p->evicted[gpu] : 0;

	if (!may_move(r, "RESTORE", a->restore.client, gpu,
		    sl_min_u64(out, a->restore.bytes)))
		return;
	if (swap_member_of(r, p->workload)->parked)
		swap_break(r, SWAP_PARKED,
			"RESTORE of client %" PRIu64 ", which is parked", p->id);
	if (p->condition != SL_CONDITION_RUNNING || a->restore.bytes > out)
		swap_break(r, SWAP_STAYS,
			"RESTORE of %" PRIu64 " bytes of client %" PRIu64
			", which has %" PRIu64 " on the host%s",
			a->restore.bytes, p->id, out,
			p->condition != SL_CONDITION_RUNNING ? " and is stopped" : "");
	open_order(r, p, a->id, true, gpu, a->restore.bytes);
	for (uint32_t i = 0; i < SWAP_GPUS; i++)
		p->returns[i] = a->restore.bytes == out ? p->evicted[i] : 0;
	p->returns[gpu] = sl_min_u64(a->restore.bytes, out);
	judge_return(r, p, gpu);
}

/* ONE_ORDER. */
static void on_abort(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = swap_party_of(r, a->abort.client);

	if (!p || !p->order || p->order != a->abort.order || p->is_restore ||
		p->travels || p->aborted) {
		swap_break(r, SWAP_ONE_ORDER, "ABORT of no open EVICT (%" PRIu64 ")",
			a->abort.order);
		return;
	}
	p->aborted = true;
}

static void on_trim(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = swap_party_of(r, a->trim.client);

	if (!p || !p->alive || p->store <= swap_party_evicted(p)) {
		swap_break(r, SWAP_NEEDED,
			"TRIM of client %" PRIu64 ", which has no copies",
			a->trim.client);
		return;
	}
	p->trimmed = a->trim.bytes;
	p->trimmed_at = r->now;
}

static void on_probe(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = swap_party_of(r, a->probe.client);

	if (p)
		swap_count(r, p, &p->probes, "PROBEs");
}

/* What asks for another look at once has something to do then, soon. */
static void on_wake(struct swap_rules *r, const struct sl_action *a)
{
	enum { MOST = 20 };

	r->wake = a->wake_at.at;
	r->rounds = r->wake <= r->now ? r->rounds + 1 : 0;
	if (r->rounds > MOST)
		swap_break(r, SWAP_STORM, "woken at once %d times, and nothing is done",
			MOST);
}

void swap_rules_action(struct swap_rules *r, const struct sl_action *a)
{
	if (a->type == SL_ACTION_WAKE_AT) {
		on_wake(r, a);
		return;
	}
	r->rounds = 0;
	switch (a->type) {
	case SL_ACTION_ADMIT: on_admit(r, a); break;
	case SL_ACTION_SET_DONE: on_set_done(r, a); break;
	case SL_ACTION_GRANT: on_grant(r, a); break;
	case SL_ACTION_DENY: on_deny(r, a); break;
	case SL_ACTION_EVICT: on_evict(r, a); break;
	case SL_ACTION_RESTORE: on_restore(r, a); break;
	case SL_ACTION_ABORT: on_abort(r, a); break;
	case SL_ACTION_DETACH: swap_on_detach(r, a); break;
	case SL_ACTION_ATTACH: swap_on_attach(r, a); break;
	case SL_ACTION_STOP: swap_on_stop(r, a); break;
	case SL_ACTION_TRIM: on_trim(r, a); break;
	case SL_ACTION_PROBE: on_probe(r, a); break;
	case SL_ACTION_PARKED: on_parked(r, a); break;
	case SL_ACTION_RESUMED: on_resumed(r, a); break;
	case SL_ACTION_MOVES: swap_on_moves(r, a); break;
	case SL_ACTION_REFUSE: swap_on_refuse(r, a); break;
	case SL_ACTION_LEFT: on_left(r, a); break;
	case SL_ACTION_NOTE: on_note(r, a); break;
	default: break;
	}
}

/* --- steps --- */

void swap_rules_before(struct swap_rules *r, sl_ns now, const struct sl_event *event)
{
	r->now = now;
	r->event = *event;
	if (now >= r->wake)
		r->wake = SL_NS_NEVER;
	if (event->type != SL_EVENT_TIME)
		r->rounds = 0;
	swap_books_event(r, event);
	swap_judge_i1(r);
}
