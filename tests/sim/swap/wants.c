/*
 * wants - which clients wait for memory, with what right, and what is on its way for them
 */
#include "rules.h"

/* Memory that was used so long ago is unused: longer than any bound of turns that is drawn. */
#define UNUSED_AFTER (10 * SL_S)

/* --- one client --- */

static bool waits(const struct swap_demand *d)
{
	return d->used && !d->epoch;
}

bool swap_party_asks(const struct swap_party *p)
{
	for (uint32_t i = 0; i < SWAP_GRANTS; i++) {
		if (waits(&p->demand[i]))
			return true;
	}
	return false;
}

bool swap_party_wants(const struct swap_party *p)
{
	return p->used && p->alive && (swap_party_is_out(p) || swap_is_attaching(p)) &&
	       (p->wants || p->resumed || swap_party_asks(p));
}

uint64_t swap_party_needs(
	const struct swap_rules *r, const struct swap_party *p, uint32_t gpu)
{
	uint64_t sum = 0;

	if (!p->used || !p->alive)
		return 0;
	/* What is still leaving comes back, too. */
	if (swap_party_wants(p))
		sum += p->evicted[gpu] + swap_party_leaving(p, gpu) -
		       swap_party_returning(p, gpu) + swap_entry(r, p, gpu);
	for (uint32_t n = 0; n < SWAP_GRANTS; n++) {
		if (waits(&p->demand[n]) && p->demand[n].gpu == gpu)
			sum += p->demand[n].bytes;
	}
	return sum;
}

sl_ns swap_quiet_of(const struct swap_rules *r, const struct swap_party *p)
{
	if (!p->pulse_idles || p->pulse_at < p->worked_at)
		return 0;
	return p->pulse_idle + (r->now - p->pulse_at);
}

/* --- one workload --- */

bool swap_member_waits(const struct swap_rules *r, const struct swap_member *m)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->used && p->alive && p->workload == m->id &&
			(swap_party_wants(p) || swap_party_asks(p)))
			return true;
	}
	return m->resuming;
}

bool swap_member_wants(const struct swap_rules *r, const struct swap_member *m)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		if (r->party[i].workload == m->id && swap_party_wants(&r->party[i]))
			return !m->parked;
	}
	return false;
}

bool swap_is_entitled(const struct swap_rules *r, const struct swap_member *m,
	const struct swap_demand *d)
{
	return !m->removed && m->mask >> d->gpu & 1 &&
	       swap_use(r, m->id, d->gpu) + (d->there ? 0 : d->bytes) <= m->request;
}

bool swap_is_within(const struct swap_rules *r, const struct swap_member *m)
{
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		if (swap_use(r, m->id, gpu) > swap_request(m, gpu))
			return false;
	}
	return true;
}

bool swap_is_owed(const struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *m)
{
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		if (p->evicted[gpu] && swap_use(r, m->id, gpu) > swap_request(m, gpu))
			return false;
	}
	return true;
}

sl_ns swap_quiet_member(
	const struct swap_rules *r, const struct swap_member *m, bool but_away)
{
	sl_ns quiet = SL_NS_NEVER;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];
		uint64_t has = 0;

		for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++)
			has += p->backing[gpu] - (but_away ? p->evicted[gpu] : 0);
		if (p->used && p->alive && p->swaps && p->workload == m->id && has)
			quiet = sl_min_u64(quiet,
				sl_min_u64(swap_quiet_of(r, p), r->now - p->resident_at));
	}
	return quiet;
}

/* --- one GPU --- */

uint64_t swap_needs(const struct swap_rules *r, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++)
		sum += swap_party_needs(r, &r->party[i], gpu);
	for (uint32_t i = 0; i < r->members; i++) {
		if (r->member[i].used && r->member[i].resuming)
			sum += r->member[i].request;
	}
	return sum;
}

bool swap_lacks_rightly(struct swap_rules *r, uint64_t workload, uint32_t gpu)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];
		const struct swap_member *m;

		if (!swap_party_needs(r, p, gpu) || (workload && p->workload != workload))
			continue;
		m = swap_member_of(r, p->workload);
		if (!m)
			continue;
		if (swap_party_wants(p) && !m->parked && swap_is_owed(r, p, m))
			return true;
		for (uint32_t n = 0; n < SWAP_GRANTS; n++) {
			const struct swap_demand *d = &p->demand[n];

			if (waits(d) && d->gpu == gpu && swap_is_entitled(r, m, d))
				return true;
		}
	}
	return false;
}

/* All demands of a workload together: behind older ones a demand may be a burst. */
static uint64_t asked_by(
	const struct swap_rules *r, const struct swap_member *m, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		for (uint32_t n = 0; p->used && p->workload == m->id && n < SWAP_GRANTS;
			n++) {
			const struct swap_demand *d = &p->demand[n];

			sum += waits(d) && d->gpu == gpu && !d->there ? d->bytes : 0;
		}
	}
	return sum;
}

bool swap_asks_above(
	const struct swap_rules *r, const struct swap_member *m, uint32_t gpu)
{
	uint64_t asks = asked_by(r, m, gpu);

	return asks && swap_use(r, m->id, gpu) + asks > swap_request(m, gpu);
}

/* And it will not leave again. */
static bool is_one_coming_for_good(struct swap_rules *r, uint32_t gpu)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];
		const struct swap_member *m = swap_member_of(r, p->workload);

		if (m && swap_party_wants(p) && p->evicted[gpu] && swap_keeps(r, m))
			return true;
	}
	return false;
}

bool swap_lacks_burst(struct swap_rules *r, uint32_t gpu)
{
	for (uint32_t i = 0; i < r->members; i++) {
		if (r->member[i].used && swap_asks_above(r, &r->member[i], gpu))
			return true;
	}
	return is_one_coming_for_good(r, gpu);
}

sl_ns swap_lacking_for(struct swap_rules *r, uint64_t workload, uint32_t gpu)
{
	sl_ns since = SL_NS_NEVER;
	const struct swap_member *m;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if ((workload && p->workload != workload) || !swap_party_needs(r, p, gpu))
			continue;
		m = swap_member_of(r, p->workload);
		if (swap_party_wants(p))
			since = sl_min_u64(since, p->wants_at);
		if (swap_party_wants(p) && m && m->wants_since)
			since = sl_min_u64(since, m->wants_since);
		for (uint32_t n = 0; n < SWAP_GRANTS; n++) {
			if (waits(&p->demand[n]))
				since = sl_min_u64(since, p->demand[n].since);
		}
	}
	return since == SL_NS_NEVER ? 0 : r->now - since + 1;
}

/* Room is made ahead for what grows: as much again as it has. */
static uint64_t growth(struct swap_rules *r, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->members; i++) {
		const struct swap_member *m = &r->member[i];
		uint64_t use = swap_use(r, m->id, gpu);

		if (m->used && use && swap_lacking_for(r, m->id, gpu))
			sum += sl_min_u64(use, sl_sub_sat(m->limit, use));
	}
	return sum;
}

uint64_t swap_lack(struct swap_rules *r, uint32_t gpu)
{
	uint64_t wanted = swap_physical(r, gpu) + swap_needs(r, gpu) + growth(r, gpu);
	uint64_t coming = 0;

	/* A burst may have to leave others their unclaimed requests. */
	if (swap_lacks_burst(r, gpu))
		wanted += swap_unclaimed(r, gpu);
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (!p->used)
			continue;
		coming += p->dying[gpu] + swap_party_going(r, p, gpu);
		/* A client that does not answer may never give it, and one that was told to stop
		 * gives no more. */
		if (p->alive && p->condition == SL_CONDITION_RUNNING && !p->aborted)
			coming += swap_party_leaving(p, gpu);
	}
	return sl_sub_sat(wanted, swap_shareable(r, gpu) + coming);
}

/* --- unused memory --- */

uint32_t swap_chain_of(
	const struct swap_rules *r, const struct swap_member *m, bool burst)
{
	uint32_t own = m->flags >> 16, chain = 0, shift = 0;

	if (!burst || !own)
		return r->chain;
	for (; own; own >>= 4) {
		if (swap_chain_has(r->chain, own & 15)) {
			chain |= (own & 15) << shift;
			shift += 4;
		}
	}
	return chain;
}

bool swap_chain_has(uint32_t chain, enum sl_resolver resolver)
{
	for (; chain; chain >>= 4) {
		if ((chain & 15) == resolver)
			return true;
	}
	return false;
}

bool swap_chain_begins(uint32_t chain, enum sl_resolver first, enum sl_resolver second)
{
	for (; chain; chain >>= 4) {
		if ((chain & 15) == first || (chain & 15) == second)
			return (chain & 15) == first;
	}
	return false;
}

/* None of its clients waits, and it can be moved. */
static bool is_movable(struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *m, uint32_t chain)
{
	/* Only once it is proven, which is not asked for in a chain without `wait`. */
	if (!swap_chain_has(chain, SL_RESOLVER_WAIT) && !p->proven)
		return false;
	for (uint32_t n = 0; n < SWAP_GRANTS; n++) {
		if (p->demand[n].used)
			return false;
	}
	return p->swaps && !swap_stays(r, m) && !p->order && !p->refused_at &&
	       p->condition == SL_CONDITION_RUNNING && !swap_party_wants(p) &&
	       r->now >= sl_max_u64(p->worked_at, p->resident_at) + UNUSED_AFTER +
				 m->idle_grace + 2 * swap_cost(r, m->id) &&
	       swap_quiet_member(r, m, false) >= m->idle_grace + SL_S;
}

static uint64_t unused_by_others(
	struct swap_rules *r, const struct swap_member *own, uint32_t gpu)
{
	uint32_t chain = swap_chain_of(r, own, true);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];
		const struct swap_member *m = swap_member_of(r, p->workload);

		if (p->used && p->alive && m && m != own && is_movable(r, p, m, chain))
			sum += sl_sub_sat(
				p->backing[gpu] - p->evicted[gpu], p->held[gpu]);
	}
	return sum;
}

/* It takes all there is, twice. */
bool swap_is_pool_ample(const struct swap_rules *r)
{
	uint64_t sum = 0;

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		sum += swap_needs(r, gpu);
		for (uint32_t i = 0; i < r->parties; i++)
			sum += r->party[i].used
				       ? r->party[i].backing[gpu] +
						 swap_party_granted(&r->party[i], gpu)
				       : 0;
	}
	return 2 * sum <= sl_sub_sat(r->pool, r->slack) && !r->pool_member;
}

bool swap_could_be_had(struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *m, uint32_t gpu)
{
	uint64_t needs = swap_party_needs(r, p, gpu), free_bytes;

	/* A no-swap workload must leave its owner the request that it would use, moved or not. */
	if (!r->quiet || !r->swaps || !p->swaps || swap_stays(r, m) ||
		(r->forced_mask | r->lost_mask) >> gpu & 1 || !swap_is_pool_ample(r) ||
		swap_needs(r, gpu) > needs)
		return false;
	free_bytes = sl_sub_sat(swap_shareable(r, gpu), swap_physical(r, gpu));
	return needs && free_bytes + unused_by_others(r, m, gpu) >= needs;
}

/* --- the node --- */

bool swap_recovers(const struct swap_rules *r)
{
	if (r->now >= r->recover_until)
		return false;
	for (uint32_t i = 0; i < r->parties; i++) {
		if (r->party[i].used && r->party[i].expected)
			return true;
	}
	return false;
}

/* Copies that a client was asked for and did not give, while it needs as much as it did then. They
 * do not count. */
static uint64_t kept_copies(const struct swap_rules *r)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->used && p->alive && p->trimmed)
			sum += sl_sub_sat(p->store, swap_party_evicted(p));
	}
	return sum;
}

bool swap_is_pool_in_the_way(const struct swap_rules *r)
{
	uint64_t lacks = kept_copies(r);

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++)
		lacks += sl_sub_sat(swap_needs(r, gpu) + swap_physical(r, gpu),
			swap_shareable(r, gpu));
	return swap_i2(r) + 2 * lacks > sl_sub_sat(r->pool, r->slack) || r->pool_member;
}
