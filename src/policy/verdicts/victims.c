/*
 * victims - see the header
 *
 * After sorting, victim[w].gone_bytes is the running total of workload w (its dense number is below
 * count), so that every step is O(1). Whoever is stopped for idleness must be proven idle; the
 * same choice is made a second time as if everybody were, to find out whose proof would help.
 */
#include "policy/verdicts/victims.h"

#include <stdlib.h>

#include "policy/mutant.h"

static bool is_over_limit(const struct sl_victim *v)
{
	return v->workload_bytes > v->limit_bytes;
}

/* Less than a second without work is what every program has between two kernels. */
static sl_ns idle_seconds(const struct sl_victim *v)
{
	return v->idle / SL_S;
}

static int compare(const void *left, const void *right)
{
	const struct sl_victim *a = left, *b = right;
	uint64_t burst_a = sl_sub_sat(a->workload_bytes, a->request_bytes);
	uint64_t burst_b = sl_sub_sat(b->workload_bytes, b->request_bytes);

	if (is_over_limit(a) != is_over_limit(b))
		return is_over_limit(a) ? -1 : 1;
	if (idle_seconds(a) != idle_seconds(b))
		return SL_MUTANT(VICTIM_BUSY_FIRST, idle_seconds(a) > idle_seconds(b),
			       idle_seconds(a) < idle_seconds(b))
			       ? -1
			       : 1;
	if (a->priority != b->priority)
		return a->priority < b->priority ? -1 : 1;
	if (burst_a != burst_b)
		return burst_a > burst_b ? -1 : 1;
	return (a->client < b->client) - (a->client > b->client);
}

/* Why it may be stopped whatever its workload's limit is; NONE if it may not. */
static enum sl_reason own_reason(
	const struct sl_victim *v, const struct sl_victims_ask *ask, bool as_if_proven)
{
	if (ask->stop_idle && v->idle >= ask->stop_idle &&
		SL_MUTANT(VICTIM_UNPROVEN, v->proven || as_if_proven, true))
		return SL_REASON_STOP_IDLE;
	if (SL_MUTANT(VICTIM_EQUAL_PRIORITY, v->priority < ask->priority,
		    v->priority <= ask->priority))
		return SL_REASON_STOP_PRIORITY;
	return SL_REASON_NONE;
}

/* What of gone bytes the demand may have. */
static uint64_t counts(
	const struct sl_victim *v, uint64_t gone, const struct sl_victims_ask *ask)
{
	uint64_t burst = sl_sub_sat(v->workload_bytes, v->request_bytes);

	return ask->entitled || v->lends ? gone : sl_min_u64(gone, burst);
}

/* Adds (or takes back) one; returns how the gain changes by it, which is never negative. */
static uint64_t move(
	struct sl_victim victim[], uint32_t i, bool in, const struct sl_victims_ask *ask)
{
	struct sl_victim *v = &victim[i];
	uint64_t *gone = &victim[v->workload].gone_bytes;
	uint64_t before = counts(v, *gone, ask), after;

	*gone += in ? v->held_bytes : -v->held_bytes;
	after = counts(v, *gone, ask);
	return in ? after - before : before - after;
}

static uint64_t left_of(const struct sl_victim victim[], const struct sl_victim *v)
{
	return sl_sub_sat(v->workload_bytes, victim[v->workload].gone_bytes);
}

/* The smallest that was taken of this workload, or only of those for this reason. */
static struct sl_victim *smallest(struct sl_victim victim[], uint32_t count,
	uint32_t workload, enum sl_reason reason)
{
	struct sl_victim *found = NULL;

	for (uint32_t i = 0; i < count; i++) {
		struct sl_victim *v = &victim[i];

		if (v->taken && v->workload == workload &&
			(reason == SL_REASON_NONE || v->reason == reason) &&
			(!found || v->held_bytes < found->held_bytes))
			found = v;
	}
	return found;
}

/*
 * One more of its workload was taken. Those that the others' going makes safe are let off, the
 * smallest first, so that what is taken still reaches down to the request. Returns the loss.
 */
static uint64_t let_off(struct sl_victim victim[], uint32_t count, uint32_t workload,
	const struct sl_victims_ask *ask, bool as_if_proven)
{
	struct sl_victim *v;
	uint64_t loss = 0;

	/* Above its limit no more; it may have to go for another reason. Both loops end: each round
	 * gives one another reason, or lets it off. */
	while ((v = smallest(victim, count, workload, SL_REASON_STOP_OVER_LIMIT)) &&
		left_of(victim, v) + v->held_bytes <= v->limit_bytes) {
		v->reason = own_reason(v, ask, as_if_proven);
		if (v->reason != SL_REASON_NONE)
			continue;
		loss += move(victim, (uint32_t)(v - victim), false, ask);
		v->taken = false;
	}
	while ((v = smallest(victim, count, workload, SL_REASON_NONE)) &&
		left_of(victim, v) + v->held_bytes <= v->request_bytes) {
		loss += move(victim, (uint32_t)(v - victim), false, ask);
		v->taken = false;
		v->reason = SL_REASON_NONE;
	}
	return loss;
}

static uint32_t prune(struct sl_victim victim[], uint32_t count, uint64_t gain,
	const struct sl_victims_ask *ask)
{
	uint32_t taken = 0;

	for (uint32_t i = count; i-- > 0;) {
		uint64_t less;

		if (!victim[i].taken)
			continue;
		taken++;
		less = move(victim, i, false, ask);
		if (SL_MUTANT(
			    VICTIMS_UNPRUNED, gain - less >= ask->missing_bytes, false)) {
			gain -= less;
			victim[i].taken = false;
			victim[i].reason = SL_REASON_NONE;
			taken--;
		} else {
			(void)move(victim, i, true, ask);
		}
	}
	return taken;
}

static uint32_t choose(struct sl_victim victim[], uint32_t count,
	const struct sl_victims_ask *ask, bool as_if_proven)
{
	uint64_t gain = 0;

	for (uint32_t i = 0; i < count; i++) {
		victim[i].gone_bytes = 0;
		victim[i].taken = false;
		victim[i].reason = SL_REASON_NONE;
	}
	for (uint32_t i = 0; i < count && gain < ask->missing_bytes; i++) {
		struct sl_victim *v = &victim[i];
		uint64_t left = left_of(victim, v);
		enum sl_reason reason = left > v->limit_bytes
						? SL_REASON_STOP_OVER_LIMIT
						: own_reason(v, ask, as_if_proven);

		if (reason == SL_REASON_NONE || !v->held_bytes ||
			SL_MUTANT(VICTIM_WITHIN_REQUEST, left <= v->request_bytes, false))
			continue;
		gain += move(victim, i, true, ask);
		v->taken = true;
		v->reason = reason;
		if (SL_MUTANT(VICTIM_BY_OTHERS_BYTES, left < v->workload_bytes, false))
			gain -= let_off(victim, count, v->workload, ask, as_if_proven);
	}
	if (SL_MUTANT(VICTIMS_IN_VAIN, gain < ask->missing_bytes, false)) {
		for (uint32_t i = 0; i < count; i++) {
			victim[i].taken = false;
			victim[i].reason = SL_REASON_NONE;
		}
		return 0;
	}
	return prune(victim, count, gain, ask);
}

uint32_t sl_victims_choose(
	struct sl_victim victim[], uint32_t count, const struct sl_victims_ask *ask)
{
	uint32_t taken;

	for (uint32_t i = 0; i < count; i++)
		victim[i].prove = false;
	if (!count || !ask->missing_bytes)
		return 0;
	qsort(victim, count, sizeof(victim[0]), compare);
	taken = choose(victim, count, ask, false);
	if (taken || !ask->stop_idle || !choose(victim, count, ask, true))
		return taken;
	for (uint32_t i = 0; i < count; i++) {
		victim[i].prove = victim[i].taken && !victim[i].proven &&
				  victim[i].reason == SL_REASON_STOP_IDLE;
		victim[i].taken = false;
		victim[i].reason = SL_REASON_NONE;
	}
	return 0;
}
