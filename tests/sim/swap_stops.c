/*
 * swap_stops - whom `priority` may stop where memory is moved, too
 *
 * The rules of tests/sim/shadow_stop.c are those of a node that does not swap, and exact. Here is
 * what the host adds to them: nobody is stopped for what could be moved, nor for what is on its
 * way; what is on the host is nobody's burst on the GPU; who was told to end is counted on, and
 * moved no more.
 */
#include <inttypes.h>

#include "swap_rules.h"

/* Killed, and still there after this long: nobody counts on it any more. */
#define STUBBORN_AFTER (10 * SL_S)

bool swap_is_going(const struct swap_rules *r, const struct swap_party *p)
{
	return p->used && p->alive && p->termed &&
	       !(p->killed && r->now - p->stop_at >= STUBBORN_AFTER);
}

static uint64_t going_of(
	const struct swap_rules *r, const struct swap_party *p, uint32_t gpu)
{
	if (!swap_is_going(r, p))
		return 0;
	/* What leaves is counted as that. */
	return p->backing[gpu] - p->evicted[gpu] + p->hidden[gpu] +
	       swap_party_granted(p, gpu) + swap_party_returning(p, gpu) -
	       swap_party_leaving(p, gpu);
}

uint64_t swap_going(const struct swap_rules *r, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++)
		sum += going_of(r, &r->party[i], gpu);
	return sum;
}

/* Others wait on the GPU, too. */
static bool is_contended(
	const struct swap_rules *r, uint32_t gpu, const struct swap_demand *mine)
{
	return swap_needs(r, gpu) > mine->bytes;
}

/* At most: what the pool keeps for those who are half there, where there are several on a GPU: so
 * much must leave before one of them is whole. */
static uint64_t kept_for_halves(const struct swap_rules *r)
{
	uint64_t sum = 0;

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		uint64_t least = UINT64_MAX;
		uint32_t halves = 0;

		for (uint32_t i = 0; i < r->parties; i++) {
			const struct swap_party *p = &r->party[i];

			if (!p->used || !p->alive || !p->backing[gpu] ||
				!swap_party_evicted(p))
				continue;
			halves++;
			least = sl_min_u64(least, swap_party_evicted(p));
		}
		sum += halves > 1 ? least : 0;
	}
	return sum;
}

/* is_return: d stands for what p has on the host. */
static bool could_be_moved(struct swap_rules *r, const struct swap_party *p,
	const struct swap_demand *d, bool is_return)
{
	const struct swap_member *m = swap_member_of(r, p->workload);

	/* What a no-swap workload would have of a request must be left to its owner, moved or
	 * not. */
	return m && !(m->flags & SL_WORKLOAD_NO_SWAP) && r->quiet && r->swaps &&
	       p->swaps && !d->held && !r->pool_member &&
	       (is_return || (!swap_party_evicted(p) &&
				     swap_back_and_forth(r, 2) + 3 * d->bytes <=
					     sl_sub_sat(r->pool, r->slack))) &&
	       !is_contended(r, d->gpu, d) &&
	       !((r->forced_mask | r->lost_mask) >> d->gpu & 1) &&
	       swap_i2(r) + kept_for_halves(r) + 2 * d->bytes <=
		       sl_sub_sat(r->pool, r->slack) &&
	       swap_idle_bytes(r, p->workload, d->gpu) >= d->bytes;
}

bool swap_could_be_moved(
	struct swap_rules *r, const struct swap_party *p, const struct swap_demand *d)
{
	return could_be_moved(r, p, d, false);
}

/* Waits there for as much as somebody is stopped for, and is not served by coming back. */
static bool is_asked_by(const struct sl_action *a, const struct swap_party *p,
	const struct swap_demand *d)
{
	return p->used && p->alive && p->workload == a->stop.other && !p->order &&
	       !swap_party_evicted(p) && d->used && !d->epoch && d->gpu == a->stop.gpu &&
	       d->bytes == a->stop.bytes;
}

/* The one that it is stopped for: waits for longest of those. */
static const struct swap_demand *demand_for(const struct swap_rules *r,
	const struct sl_action *a, const struct swap_party **who)
{
	const struct swap_demand *found = NULL;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		for (uint32_t n = 0; n < SWAP_GRANTS; n++) {
			const struct swap_demand *d = &p->demand[n];

			if (!is_asked_by(a, p, d) || (found && d->since >= found->since))
				continue;
			found = d;
			*who = p;
		}
	}
	return found;
}

static sl_ns wants_since(const struct swap_party *p)
{
	sl_ns since = p->wants || p->resumed ? p->wants_at : SL_NS_NEVER;

	for (uint32_t n = 0; n < SWAP_GRANTS; n++) {
		if (p->demand[n].used && !p->demand[n].epoch)
			since = sl_min_u64(since, p->demand[n].since);
	}
	return since;
}

/* Or it is for one who wants back so much, all of which is within his request: waits for longest of
 * those. */
static bool is_return_for(struct swap_rules *r, const struct sl_action *a,
	const struct swap_party **who, struct swap_demand *d)
{
	const struct swap_member *m = swap_member_of(r, a->stop.other);
	bool found = false;

	for (uint32_t i = 0; m && !m->parked && i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->workload != m->id || p->order || !swap_party_wants(p) ||
			!swap_is_owed(r, p, m) || !p->evicted[a->stop.gpu] ||
			p->evicted[a->stop.gpu] != a->stop.bytes ||
			(found && wants_since(p) >= d->since))
			continue;
		found = true;
		*who = p;
		*d = (struct swap_demand){.used = true,
			.bytes = a->stop.bytes,
			.gpu = a->stop.gpu,
			.since = wants_since(p)};
	}
	return found;
}

uint64_t swap_unclaimed_then(const struct swap_rules *r, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->members; i++) {
		const struct swap_member *m = &r->member[i];
		uint64_t has;

		if (!m->used)
			continue;
		has = swap_resident(r, m->id, gpu);
		for (uint32_t n = 0; n < r->parties; n++) {
			const struct swap_party *p = &r->party[n];

			if (p->used && p->alive && p->workload == m->id)
				has -= swap_party_leaving(p, gpu) + going_of(r, p, gpu);
		}
		sum += sl_sub_sat(swap_request(m, gpu), has);
	}
	return sum;
}

/* Also once what its workload asked for before has been granted: together they may be more than the
 * request. */
static bool is_entitled_then(const struct swap_rules *r, const struct swap_member *m,
	const struct swap_demand *d)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		for (uint32_t n = 0;
			p->used && p->alive && p->workload == m->id && n < SWAP_GRANTS;
			n++) {
			const struct swap_demand *o = &p->demand[n];

			if (o != d && o->used && !o->epoch && !o->there &&
				o->gpu == d->gpu && o->since <= d->since)
				sum += o->bytes;
		}
	}
	return swap_is_entitled(r, m, d) &&
	       swap_use(r, m->id, d->gpu) + sum + d->bytes <= m->request;
}

/* Of several that ask for as much it is not known which one it is stopped for: a burst leaves
 * others their requests. */
static bool may_be_burst(const struct swap_rules *r, const struct sl_action *a,
	const struct swap_member *other)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		for (uint32_t n = 0; n < SWAP_GRANTS; n++) {
			if (is_asked_by(a, p, &p->demand[n]) &&
				!is_entitled_then(r, other, &p->demand[n]))
				return true;
		}
	}
	return false;
}

/* One of those that ask for as much is within its request. */
static bool may_be_entitled(const struct swap_rules *r, const struct sl_action *a,
	const struct swap_member *other)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		for (uint32_t n = 0; n < SWAP_GRANTS; n++) {
			if (is_asked_by(a, p, &p->demand[n]) &&
				swap_is_entitled(r, other, &p->demand[n]))
				return true;
		}
	}
	return false;
}

/* For so long it has been stopped, traced, silent or in one piece of work that it cannot be taken
 * from. */
static bool may_be_untakeable(const struct swap_rules *r, const struct swap_party *p)
{
	sl_ns busy = p->pulse_busy ? p->pulse_busy + (r->now - p->pulse_at) : 0;

	if (p->condition != SL_CONDITION_RUNNING)
		busy = sl_max_u64(busy, r->now - p->condition_at);
	return r->untakeable_after && busy >= r->untakeable_after;
}

/* Once all that is under way has come, everybody has what he wants. */
static bool is_enough_coming(const struct swap_rules *r, uint32_t gpu, bool is_burst)
{
	uint64_t coming = swap_going(r, gpu);

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->used)
			coming += p->dying[gpu];
		/* Who does not answer may never give it, and who was told to stop gives no more. */
		if (p->used && p->alive && p->condition == SL_CONDITION_RUNNING &&
			!p->aborted)
			coming += swap_party_leaving(p, gpu);
	}
	return swap_physical(r, gpu) + swap_needs(r, gpu) +
		       (is_burst ? swap_unclaimed_then(r, gpu) : 0) <=
	       swap_shareable(r, gpu) + coming;
}

static void judge_victim(struct swap_rules *r, const struct sl_action *a,
	const struct swap_party *p, const struct swap_member *m,
	const struct swap_member *other)
{
	uint32_t gpu = a->stop.gpu;
	uint64_t has = swap_resident(r, m->id, gpu);
	/* Parked: it lives on with all it had, and what is with parked programs was promised to
	 * nobody. */
	uint64_t kept = m->parked ? sl_max_u64(swap_request(m, gpu), m->request)
				  : swap_request(m, gpu);
	bool fits = false;

	for (uint32_t i = 0; i < r->parties; i++) {
		if (r->party[i].workload == m->id)
			has -= going_of(r, &r->party[i], gpu);
	}
	if (has <= kept)
		swap_rules_fail(r,
			"STOP of client %" PRIu64 ", whose%s workload has %" PRIu64
			" on GPU %u and a request of %" PRIu64,
			p->id, m->parked ? " parked" : "", has, gpu, kept);
	switch (a->stop.reason) {
	case SL_REASON_STOP_IDLE:
		fits = r->stop_idle && p->proven &&
		       swap_quiet_of(r, p) + SL_US >= r->stop_idle;
		break;
	case SL_REASON_STOP_PRIORITY: fits = m->priority < other->priority; break;
	case SL_REASON_STOP_OVER_LIMIT: fits = has > m->limit; break;
	case SL_REASON_STOP_LAST_RESORT:
		fits = r->last_resort == SL_LAST_RESORT_STOP && may_be_untakeable(r, p);
		break;
	default: break;
	}
	if (!fits)
		swap_rules_fail(r,
			"STOP of client %" PRIu64 " (%s), idle for %" PRIu64
			" ms (proven: %d), priority %d, for %d",
			p->id, sl_reason_name(a->stop.reason),
			swap_ms(swap_quiet_of(r, p)), p->proven, (int)m->priority,
			(int)other->priority);
}

/* Behind `wait` in the chain nobody is ended for it yet. */
static bool waits_too_short(const struct swap_rules *r, const struct swap_demand *d)
{
	return r->waits_first && r->now - d->since < r->wait_max;
}

static void judge_term(struct swap_rules *r, const struct sl_action *a,
	const struct swap_party *p, const struct swap_member *m)
{
	const struct swap_member *other = swap_member_of(r, a->stop.other);
	const struct swap_party *who = NULL;
	const struct swap_demand *d = demand_for(r, a, &who);
	struct swap_demand wanted;
	bool last = a->stop.reason == SL_REASON_STOP_LAST_RESORT;
	bool is_entitled = d && other && may_be_entitled(r, a, other);
	/* Who comes back may lack as many bytes as another process of the workload asks for, which
	 * is not due yet. */
	bool is_return = (last ? !is_entitled : !d || waits_too_short(r, d)) &&
			 is_return_for(r, a, &who, &wanted);

	if (last && !is_entitled && !is_return)
		swap_rules_fail(r,
			"client %" PRIu64
			" is stopped as the last resort for what is within no request",
			p->id);
	if (is_return)
		d = &wanted;
	if (!r->has_priority && !last)
		swap_rules_fail(
			r, "STOP of client %" PRIu64 " without `priority`", p->id);
	if (p->termed || (p->expected && swap_recovers(r)))
		swap_rules_fail(r, "STOP of client %" PRIu64 ", which %s", p->id,
			p->termed ? "was told before" : "has not reported");
	if (r->lost_mask >> a->stop.gpu & 1)
		swap_rules_fail(r,
			"client %" PRIu64 " is stopped for GPU %u, which is lost", p->id,
			a->stop.gpu);
	if (!other || other == m || !d) {
		swap_rules_fail(r,
			"client %" PRIu64 " is stopped for %" PRIu64
			" bytes of workload %" PRIu64 ", which nobody asks for",
			p->id, a->stop.bytes, a->stop.other);
		return;
	}
	judge_victim(r, a, p, m, other);
	if (waits_too_short(r, d) && !last)
		swap_rules_fail(r,
			"client %" PRIu64
			" is stopped for one that has waited for %" PRIu64
			" ms of %" PRIu64,
			p->id, swap_ms(r->now - d->since), swap_ms(r->wait_max));
	if (!(r->forced_mask >> a->stop.gpu & 1) &&
		is_enough_coming(r, a->stop.gpu, !is_return && may_be_burst(r, a, other)))
		swap_rules_fail(r,
			"client %" PRIu64
			" is stopped on GPU %u though what is on its way suffices",
			p->id, a->stop.gpu);
	if (could_be_moved(r, who, d, is_return))
		swap_rules_fail(r,
			"client %" PRIu64 " is stopped for %" PRIu64
			" bytes on GPU %u, where others have %" PRIu64
			" that they do not use and that could be moved",
			p->id, d->bytes, d->gpu,
			swap_idle_bytes(r, who->workload, d->gpu));
}

void swap_on_stop(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = a->stop.client ? swap_party_of(r, a->stop.client) : NULL;
	struct swap_member *m = p ? swap_member_of(r, p->workload) : NULL;

	if (!a->stop.client)
		return; /* all of a workload, since a person asked for it */
	if (!p || !p->alive || !m || a->stop.gpu >= SWAP_GPUS) {
		swap_rules_fail(r, "STOP of nobody (client %" PRIu64 ")", a->stop.client);
		return;
	}
	r->contest++;
	if (a->stop.stage == SL_STOP_TERM) {
		judge_term(r, a, p, m);
		p->termed = true;
		p->killed = false;
		p->stop_reason = a->stop.reason;
	} else {
		if (!p->termed || p->killed || r->now < p->stop_at + r->stop_grace)
			swap_rules_fail(r,
				"client %" PRIu64 " is killed %" PRIu64
				" ms after it was told to end, of %" PRIu64,
				p->id, p->termed ? swap_ms(r->now - p->stop_at) : 0,
				swap_ms(r->stop_grace));
		p->killed = true;
	}
	p->stop_at = r->now;
}
