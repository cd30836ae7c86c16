/*
 * stops - which processes end for others' memory, judged from outside
 *
 * The rules of tests/sim/node/shadow_stop.c are those of a node that does not swap, and exact. The
 * host adds these: no process is stopped for memory that can be moved or is on its way, and memory
 * on the host is no burst on the GPU.
 */
#include <inttypes.h>

#include "rules.h"

/* Killed, and still there after this long: it is no longer counted on. */
#define STUBBORN_AFTER (10 * SL_S)

/* Once its grace is over it is killed or spared, and in that step nothing counts on it. */
bool swap_is_going(const struct swap_rules *r, const struct swap_party *p)
{
	return p->used && p->alive && p->termed &&
	       r->now - p->stop_at < (p->killed ? STUBBORN_AFTER : r->stop_grace);
}

uint64_t swap_party_going(
	const struct swap_rules *r, const struct swap_party *p, uint32_t gpu)
{
	/* What leaves is counted as that. */
	return swap_is_going(r, p)
		       ? swap_party_resident(p, gpu) - swap_party_leaving(p, gpu)
		       : 0;
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

/* STOPS: its workload has more than its request there, and the reason is true. */
static void judge_victim(struct swap_rules *r, const struct sl_action *a,
	const struct swap_party *p, const struct swap_member *m,
	const struct swap_member *other)
{
	uint32_t gpu = a->stop.gpu;
	uint64_t has = swap_resident(r, m->id, gpu);
	/* Parked: it lives on with all it had. */
	uint64_t kept = m->parked ? m->request : swap_request(m, gpu);
	bool fits = false;

	for (uint32_t i = 0; i < r->parties; i++) {
		if (r->party[i].workload == m->id)
			has -= swap_party_going(r, &r->party[i], gpu);
	}
	if (has <= kept)
		swap_break(r, SWAP_STOPS,
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
		swap_break(r, SWAP_STOPS,
			"STOP of client %" PRIu64 " (%s), idle for %" PRIu64
			" ms (proven: %d), priority %d, for %d",
			p->id, sl_reason_name(a->stop.reason),
			swap_ms(swap_quiet_of(r, p)), p->proven, (int)m->priority,
			(int)other->priority);
}

/* NEEDED, CHAIN: `swap` stands before `priority`: no process ends for memory that can be moved. */
static void judge_need(
	struct swap_rules *r, const struct sl_action *a, const struct swap_member *other)
{
	uint32_t gpu = a->stop.gpu;
	/* Of several GPUs one may lack nothing, where the pool is too small for all of them. */
	bool on_one = !(other->mask & (other->mask - 1));

	if (!(r->forced_mask >> gpu & 1) && !swap_lack(r, gpu) &&
		(on_one || swap_is_pool_ample(r)))
		swap_break(r, SWAP_NEEDED,
			"client %" PRIu64
			" is stopped on GPU %u though what is on its way suffices",
			a->stop.client, gpu);
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->workload == other->id && swap_could_be_had(r, p, other, gpu))
			swap_break(r, SWAP_CHAIN,
				"client %" PRIu64 " is stopped for %" PRIu64
				" bytes on GPU %u, which others do not use and which "
				"could be moved",
				a->stop.client, swap_party_needs(r, p, gpu), gpu);
	}
}

static bool stops_by_now(const struct swap_rules *r, uint32_t chain, sl_ns waited)
{
	return swap_chain_has(chain, SL_RESOLVER_PRIORITY) &&
	       (waited >= r->wait_max ||
		       !swap_chain_begins(chain, SL_RESOLVER_WAIT, SL_RESOLVER_PRIORITY));
}

static void judge_term(struct swap_rules *r, const struct sl_action *a,
	const struct swap_party *p, const struct swap_member *m)
{
	const struct swap_member *other = swap_member_of(r, a->stop.other);
	bool last = a->stop.reason == SL_REASON_STOP_LAST_RESORT;
	bool rightly;
	sl_ns waited;

	if (p->termed || (p->expected && swap_recovers(r)))
		swap_break(r, SWAP_STOPS, "STOP of client %" PRIu64 ", which %s", p->id,
			p->termed ? "was told before" : "has not reported");
	if (r->lost_mask >> a->stop.gpu & 1)
		swap_break(r, SWAP_NEEDED,
			"client %" PRIu64 " is stopped for GPU %u, which is lost", p->id,
			a->stop.gpu);
	waited = other ? swap_lacking_for(r, other->id, a->stop.gpu) : 0;
	if (other == m || !waited) {
		swap_break(r, SWAP_STOPS,
			"client %" PRIu64 " is stopped for workload %" PRIu64
			", which lacks nothing there",
			p->id, a->stop.other);
		return;
	}
	rightly = swap_lacks_rightly(r, other->id, a->stop.gpu);
	if (last && !rightly)
		swap_break(r, SWAP_STOPS,
			"client %" PRIu64
			" is stopped as the last resort for what is within no request",
			p->id);
	/* It may be for another demand of the workload than the one within its request. */
	if (!last && !stops_by_now(r, swap_chain_of(r, other, !rightly), waited) &&
		!(swap_asks_above(r, other, a->stop.gpu) &&
			stops_by_now(r, swap_chain_of(r, other, true), waited)))
		swap_break(r, SWAP_CHAIN,
			"client %" PRIu64
			" is stopped for one that has waited for %" PRIu64
			" ms of %" PRIu64,
			p->id, swap_ms(waited), swap_ms(r->wait_max));
	judge_victim(r, a, p, m, other);
	judge_need(r, a, other);
}

void swap_on_stop(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = a->stop.client ? swap_party_of(r, a->stop.client) : NULL;
	struct swap_member *m = p ? swap_member_of(r, p->workload) : NULL;

	if (!a->stop.client)
		return; /* all of a workload, since a person asked for it */
	if (!p || !p->alive || !m || a->stop.gpu >= SWAP_GPUS) {
		swap_break(r, SWAP_STOPS, "STOP of an unknown client (%" PRIu64 ")",
			a->stop.client);
		return;
	}
	r->contest++;
	if (a->stop.stage == SL_STOP_TERM) {
		judge_term(r, a, p, m);
		p->termed = true;
		p->killed = false;
	} else {
		if (!p->termed || p->killed || r->now < p->stop_at + r->stop_grace)
			swap_break(r, SWAP_STOPS,
				"client %" PRIu64 " is killed %" PRIu64
				" ms after it was told to end, of %" PRIu64,
				p->id, p->termed ? swap_ms(r->now - p->stop_at) : 0,
				swap_ms(r->stop_grace));
		p->killed = true;
	}
	p->stop_at = r->now;
}
