/*
 * evict - see the header
 *
 * The choice is made up to three times over the same order: of those that may be taken now; if they
 * do not suffice, of those that may be taken at some time; and if they would not either, as if the
 * pool and its bounds were not there, to tell what is the matter. For who asks within his request
 * all that is done without those that are within theirs and work, and with them only if the others
 * never suffice. candidate[w].gone_bytes is the running total of workload w.
 */
#include "policy/verdicts/evict.h"

#include <stdlib.h>

#include "policy/mutant.h"

static bool is_idle(const struct sl_evict_candidate *c)
{
	return c->idle && c->idle >= c->idle_enough &&
	       SL_MUTANT(EVICT_UNPROVEN, c->proven, true);
}

static int compare(const void *left, const void *right)
{
	const struct sl_evict_candidate *a = left, *b = right;

	if (a->suspended != b->suspended)
		return SL_MUTANT(SUSPENDED_LAST, a->suspended, b->suspended) ? -1 : 1;
	if (is_idle(a) != is_idle(b))
		return is_idle(a) ? -1 : 1;
	if (is_idle(a) && a->idle != b->idle)
		return SL_MUTANT(EVICT_BUSY_FIRST, a->idle > b->idle, a->idle < b->idle)
			       ? -1
			       : 1;
	if (a->priority != b->priority)
		return a->priority < b->priority ? -1 : 1;
	if (a->burst_bytes != b->burst_bytes)
		return a->burst_bytes > b->burst_bytes ? -1 : 1;
	return (a->id < b->id) - (a->id > b->id);
}

/* Its priority ends its turn. Whom a request is kept to has the time that goes with it, whatever
 * the priority of a burst: it would come back after each first part of the other's turn, and be
 * taken again at once. */
static bool is_above(const struct sl_evict_ask *ask, const struct sl_evict_candidate *c)
{
	return SL_MUTANT(EVICT_EQUAL_PRIORITY, c->priority < ask->priority,
		       c->priority <= ask->priority) &&
	       SL_MUTANT(MIN_SHARE_TAKEN, !c->promoted, true) &&
	       SL_MUTANT(
		       PRIORITY_OVER_REQUEST, ask->entitled || !c->within_request, true);
}

/* Who is promised what he has is not taken for who is promised as much, while bursts and the idle
 * can give that. */
static bool is_spared(const struct sl_evict_ask *ask, const struct sl_evict_candidate *c)
{
	return ask->spares && c->within_request;
}

/* No burst moves it yet. How long it goes on to be idle is no promise to whoever waits for that.
 * Who is suspended runs nothing that a proof could show. */
static bool is_kept(const struct sl_evict_ask *ask, const struct sl_evict_candidate *c)
{
	return SL_MUTANT(NO_GRACE, !ask->entitled, false) && c->has_grace &&
	       (c->grace_left || (!c->suspended && !is_idle(c)));
}

/* When more is known of one that is kept. */
static sl_ns look_again(const struct sl_evict_candidate *c)
{
	if (c->grace_left)
		return c->grace_left;
	if (c->proof_left)
		return c->proof_left;
	return c->idle < c->idle_enough ? c->idle_enough - c->idle : SL_NS_NEVER;
}

/* When all of it may be taken, by what is known. */
static sl_ns may_all_be_taken(
	const struct sl_evict_candidate *c, const struct sl_evict_ask *ask)
{
	sl_ns wait = SL_MUTANT(TURN_UNPROTECTED, c->turn_left, 0);

	if (is_kept(ask, c))
		return SL_NS_NEVER;
	/* Not for a lower priority, which has the time that min_share leaves it. */
	if (c->priority > ask->priority && !ask->promoted)
		wait = SL_MUTANT(LOWER_TAKES_TURNS, SL_NS_NEVER, wait);
	if (c->suspended || is_idle(c))
		wait = 0;
	else if (is_spared(ask, c))
		wait = SL_NS_NEVER;
	else if (c->idle && c->proven)
		wait = sl_min_u64(wait, c->idle_enough - c->idle);
	/* No turn of it ends for who asks, but whether it is idle is about to be known. */
	else if (wait == SL_NS_NEVER && c->proof_left)
		wait = SL_MUTANT(EVICT_PROOF_UNAWAITED, c->proof_left, wait);
	if (is_above(ask, c) && !is_spared(ask, c))
		wait = 0;
	return sl_max_u64(wait, c->refused_left);
}

/* When it may be taken from at all; *burst_only: not more than its workload's burst. */
static sl_ns may_be_taken(const struct sl_evict_candidate *c,
	const struct sl_evict_ask *ask, bool *burst_only)
{
	sl_ns wait = may_all_be_taken(c, ask);
	sl_ns burst = sl_max_u64(SL_MUTANT(FIRST_PART_UNPROTECTED, c->first_part_left, 0),
		c->refused_left);

	*burst_only = ask->entitled && c->burst_bytes && burst < wait;
	return *burst_only ? burst : wait;
}

/* Of a burst demand: how much of what is not claimed stands in its way when `out` more is on the
 * host. */
static uint64_t kept_by_others(
	const struct sl_evict_ask *ask, uint64_t out, uint64_t unclaimed)
{
	if (!ask->leaves_requests)
		return 0;
	return sl_sub_sat(
		ask->unclaimed_bytes + unclaimed, sl_sub_sat(ask->lend_bytes, out));
}

struct state {
	struct sl_evict_candidate *candidate;
	const struct sl_evict_ask *ask;
	struct sl_pool pool; /* with what is taken so far */
	uint64_t out,
		unclaimed; /* taken so far, and what is not claimed any more for it */
	uint64_t out_most; /* what may go for that in whole chunks */
	uint64_t gain;
	bool unbound; /* as if pool and bounds were not there */
};

/* Bytes of a request that are claimed no longer when its workload gave so many. */
static uint64_t unclaimed_by(const struct sl_evict_candidate *c, uint64_t gone)
{
	return sl_min_u64(sl_sub_sat(gone, c->burst_bytes), c->within_bytes);
}

/* What the candidate may move beyond what it is told, where that counts. */
static uint64_t chunk_of(const struct state *state, const struct sl_evict_candidate *c)
{
	return SL_MUTANT(CHUNKS_UNSEEN, state->ask->leaves_requests, false)
		       ? c->chunk_bytes
		       : 0;
}

/* What it can be told so that no more leaves than the pool has for who asks. */
static uint64_t pool_has(const struct state *state, const struct sl_evict_candidate *c)
{
	uint64_t left = sl_sub_sat(state->ask->pool_bytes, state->out_most);

	return c->bytes <= left ? left : sl_sub_sat(left, chunk_of(state, c));
}

/* How much of the candidate, whose workload gave `gone` already, may go. */
static uint64_t of_use(
	const struct state *state, const struct sl_evict_candidate *c, bool burst_only)
{
	uint64_t gone = state->candidate[c->workload].gone_bytes;
	uint64_t burst = sl_sub_sat(c->burst_bytes, gone);
	uint64_t bytes = sl_min_u64(c->bytes,
		state->ask->missing_bytes + state->ask->ahead_bytes - state->gain);

	if (SL_MUTANT(EVICTS_WITHIN_REQUEST, burst_only, false))
		bytes = sl_min_u64(bytes, burst);
	if (state->unbound)
		return bytes;
	bytes = sl_min_u64(bytes, sl_sub_sat(c->share_bytes, gone));
	bytes = sl_min_u64(bytes, pool_has(state, c));
	return state->ask->entitled ? bytes
				    : sl_min_u64(bytes, sl_pool_room(&state->pool,
								state->ask->gpu, burst));
}

static void take(struct state *state, struct sl_evict_candidate *c, bool burst_only)
{
	uint64_t *gone = &state->candidate[c->workload].gone_bytes;
	uint64_t bytes = of_use(state, c, burst_only);
	uint64_t unclaimed = unclaimed_by(c, *gone + bytes) - unclaimed_by(c, *gone);
	uint64_t before = kept_by_others(state->ask, state->out, state->unclaimed);
	uint64_t after = kept_by_others(
		state->ask, state->out + bytes, state->unclaimed + unclaimed);

	/* What is taken would all be kept for others. */
	if (!bytes || after - before >= bytes)
		return;
	c->take_bytes = bytes;
	sl_pool_move(
		&state->pool, state->ask->gpu, bytes, sl_sub_sat(c->burst_bytes, *gone));
	*gone += bytes;
	state->out += bytes;
	state->out_most += sl_min_u64(c->bytes, bytes + chunk_of(state, c));
	state->unclaimed += unclaimed;
	state->gain += bytes - (after - before);
}

/* Returns what those that are chosen give. */
static uint64_t choose(struct sl_evict_candidate candidate[], uint32_t count,
	const struct sl_evict_ask *ask, sl_ns until, bool unbound)
{
	struct state state = {.candidate = candidate,
		.ask = ask,
		.pool = ask->pool,
		.unbound = unbound};

	for (uint32_t i = 0; i < count; i++)
		candidate[i].gone_bytes = candidate[i].take_bytes = 0;
	for (uint32_t i = 0; i < count && state.gain < ask->missing_bytes; i++) {
		bool burst_only;

		if (may_be_taken(&candidate[i], ask, &burst_only) > until)
			continue;
		if (until && candidate[i].unwilling)
			continue;
		burst_only &= may_all_be_taken(&candidate[i], ask) > until;
		take(&state, &candidate[i], burst_only);
	}
	return state.gain;
}

static void forget(struct sl_evict_candidate candidate[], uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		candidate[i].take_bytes = 0;
}

static struct sl_evict_plan plan_for(struct sl_evict_candidate candidate[],
	uint32_t count, const struct sl_evict_ask *ask)
{
	struct sl_evict_plan plan = {.next = SL_NS_NEVER};
	bool burst_only;

	plan.gives_bytes = choose(candidate, count, ask, 0, false);
	plan.enough = plan.ever = plan.gives_bytes >= ask->missing_bytes;
	if (plan.enough)
		return plan;
	for (uint32_t i = 0; i < count; i++) {
		struct sl_evict_candidate *c = &candidate[i];
		sl_ns some = may_be_taken(c, ask, &burst_only);
		sl_ns all = may_all_be_taken(c, ask);

		if (all && all < plan.next)
			plan.next = all;
		if (some && some < plan.next)
			plan.next = some;
		/* A kept one may be taken once its grace is over and it is proven idle: neither
		 * is promised, so it is looked at again. */
		if (is_kept(ask, c))
			plan.next = sl_min_u64(plan.next, look_again(c));
		if (is_kept(ask, c) && c->grace_left)
			continue;
		/* Also of whom only what is above the request may be taken: that does not
		 * suffice. */
		c->prove = all && !c->suspended;
	}
	/* Spans that never end are no promise. */
	plan.gives_bytes = choose(candidate, count, ask, SL_NS_NEVER - 1, false);
	plan.ever = plan.gives_bytes >= ask->missing_bytes;
	if (!plan.ever && choose(candidate, count, ask, SL_NS_NEVER - 1, true) >=
				  ask->missing_bytes) {
		plan.bound = ask->pool_bytes >= ask->missing_bytes;
		plan.pool_full = !plan.bound;
	}
	forget(candidate, count);
	return plan;
}

struct sl_evict_plan sl_evict_choose(struct sl_evict_candidate candidate[],
	uint32_t count, const struct sl_evict_ask *ask)
{
	struct sl_evict_ask sparing = *ask;
	struct sl_evict_plan plan;

	if (!count)
		return (struct sl_evict_plan){.next = SL_NS_NEVER};
	qsort(candidate, count, sizeof(candidate[0]), compare);
	sparing.spares = SL_MUTANT(REQUEST_BEFORE_BURST, ask->entitled, false);
	plan = plan_for(candidate, count, &sparing);
	/* What a burst that comes could take instead is not taken from a request. */
	if (plan.ever || !sparing.spares ||
		SL_MUTANT(REQUEST_BEFORE_EXCHANGE, ask->burst_comes, false))
		return plan;
	return plan_for(candidate, count, ask);
}
