/*
 * stops - see the header
 *
 * After sorting, stop[w].gone_bytes is the running total of workload w (its dense number is below
 * count). A stop for idleness needs proof. The choice is made a second time as if all were proven,
 * to find out whose proof would help.
 */
#include "policy/verdicts/stops.h"

#include <stdlib.h>

#include "base/amount.h"
#include "policy/mutant.h"

static bool is_over_limit(const struct sl_stop *s)
{
	return s->workload_bytes > s->limit_bytes;
}

/* Whole seconds: gaps below 1 s between kernels must not decide the order. */
static sl_ns idle_seconds(const struct sl_stop *s)
{
	return s->idle / SL_S;
}

static int compare(const void *left, const void *right)
{
	const struct sl_stop *a = left, *b = right;
	uint64_t burst_a = sl_sub_sat(a->workload_bytes, a->request_bytes);
	uint64_t burst_b = sl_sub_sat(b->workload_bytes, b->request_bytes);

	if (a->told != b->told)
		return a->told ? -1 : 1;
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

/* Why it may be stopped even below its limit; NONE: it may not. */
static enum sl_reason own_reason(
	const struct sl_stop *s, const struct sl_stops_ask *ask, bool as_if_proven)
{
	if (ask->any)
		return SL_REASON_STOP_LAST_RESORT;
	if (ask->stop_idle && s->idle >= ask->stop_idle &&
		SL_MUTANT(VICTIM_UNPROVEN, s->proven || as_if_proven, true))
		return SL_REASON_STOP_IDLE;
	if (SL_MUTANT(VICTIM_EQUAL_PRIORITY, s->priority < ask->priority,
		    s->priority <= ask->priority))
		return SL_REASON_STOP_PRIORITY;
	return SL_REASON_NONE;
}

static uint64_t left_of(const struct sl_stop stop[], const struct sl_stop *s)
{
	return sl_sub_sat(s->workload_bytes, stop[s->workload].gone_bytes);
}

static void take(struct sl_stop stop[], struct sl_stop *s, enum sl_reason reason,
	const struct sl_stops_ask *ask)
{
	stop[s->workload].gone_bytes += s->held_bytes;
	s->taken = true;
	s->reason = reason;
	ask->move(ask->context, s, true);
}

static void let_off(
	struct sl_stop stop[], struct sl_stop *s, const struct sl_stops_ask *ask)
{
	stop[s->workload].gone_bytes -= s->held_bytes;
	s->taken = false;
	s->reason = SL_REASON_NONE;
	ask->move(ask->context, s, false);
}

/* The smallest taken client of this workload, or only of those for this reason. */
static struct sl_stop *smallest(
	struct sl_stop stop[], uint32_t count, uint32_t workload, enum sl_reason reason)
{
	struct sl_stop *found = NULL;

	for (uint32_t i = 0; i < count; i++) {
		struct sl_stop *s = &stop[i];

		if (s->taken && s->workload == workload &&
			(reason == SL_REASON_NONE || s->reason == reason) &&
			(!found || s->held_bytes < found->held_bytes))
			found = s;
	}
	return found;
}

/* One more client of the workload was taken. Puts back, the smallest first, each one that would end
 * while its workload is already within its request (or limit), if all the others had ended before
 * it. */
static void let_off_the_safe(struct sl_stop stop[], uint32_t count, uint32_t workload,
	const struct sl_stops_ask *ask, bool as_if_proven)
{
	struct sl_stop *s;

	/* No longer above its limit; it may still go for another reason. Both loops end: each round
	 * changes a reason or puts one back. */
	while ((s = smallest(stop, count, workload, SL_REASON_STOP_OVER_LIMIT)) &&
		left_of(stop, s) + s->held_bytes <= s->limit_bytes) {
		s->reason = own_reason(s, ask, as_if_proven);
		if (s->reason == SL_REASON_NONE)
			let_off(stop, s, ask);
	}
	while ((s = smallest(stop, count, workload, SL_REASON_NONE)) &&
		left_of(stop, s) + s->held_bytes <= s->request_bytes)
		let_off(stop, s, ask);
}

static uint32_t prune(
	struct sl_stop stop[], uint32_t count, const struct sl_stops_ask *ask)
{
	uint32_t taken = 0;

	for (uint32_t i = count; i-- > 0;) {
		enum sl_reason reason = stop[i].reason;

		if (!stop[i].taken)
			continue;
		let_off(stop, &stop[i], ask);
		if (SL_MUTANT(VICTIMS_UNPRUNED, ask->fits(ask->context), false))
			continue;
		take(stop, &stop[i], reason, ask);
		taken++;
	}
	return taken;
}

static void take_all(struct sl_stop stop[], uint32_t count,
	const struct sl_stops_ask *ask, bool as_if_proven, bool until_it_fits)
{
	for (uint32_t i = 0; i < count; i++) {
		struct sl_stop *s = &stop[i];
		uint64_t left = left_of(stop, s);
		enum sl_reason reason = left > s->limit_bytes && !ask->any
						? SL_REASON_STOP_OVER_LIMIT
						: own_reason(s, ask, as_if_proven);

		if (reason == SL_REASON_NONE || !s->held_bytes ||
			SL_MUTANT(VICTIM_WITHIN_REQUEST, left <= s->request_bytes, false))
			continue;
		take(stop, s, reason, ask);
		if (SL_MUTANT(VICTIM_BY_OTHERS_BYTES, left < s->workload_bytes, false))
			let_off_the_safe(stop, count, s->workload, ask, as_if_proven);
		if (until_it_fits && ask->fits(ask->context))
			return;
	}
}

static void let_off_all(
	struct sl_stop stop[], uint32_t count, const struct sl_stops_ask *ask)
{
	for (uint32_t i = 0; i < count; i++) {
		if (stop[i].taken)
			let_off(stop, &stop[i], ask);
	}
}

static uint32_t choose(struct sl_stop stop[], uint32_t count,
	const struct sl_stops_ask *ask, bool as_if_proven)
{
	bool fits;

	/* Finds out at once if all are not enough. */
	take_all(stop, count, ask, as_if_proven, false);
	fits = ask->fits(ask->context);
	if (SL_MUTANT(VICTIMS_IN_VAIN, !fits, false)) {
		let_off_all(stop, count, ask);
		return 0;
	}
	let_off_all(stop, count, ask);
	take_all(stop, count, ask, as_if_proven, true);
	return prune(stop, count, ask);
}

static void put_back(
	const struct sl_stop stop[], uint32_t count, const struct sl_stops_ask *ask)
{
	for (uint32_t i = 0; i < count; i++) {
		if (stop[i].taken)
			ask->move(ask->context, &stop[i], false);
	}
}

uint32_t sl_stops_choose(
	struct sl_stop stop[], uint32_t count, const struct sl_stops_ask *ask)
{
	uint32_t taken;

	if (!count)
		return 0;
	qsort(stop, count, sizeof(stop[0]), compare);
	for (uint32_t i = 0; i < count; i++) {
		stop[i].gone_bytes = 0;
		stop[i].taken = stop[i].prove = false;
		stop[i].reason = SL_REASON_NONE;
	}
	taken = choose(stop, count, ask, false);
	put_back(stop, count, ask);
	if (taken || !ask->stop_idle || ask->any)
		return taken;
	taken = choose(stop, count, ask, true);
	put_back(stop, count, ask);
	for (uint32_t i = 0; i < count && taken; i++) {
		stop[i].prove = stop[i].taken && !stop[i].proven &&
				stop[i].reason == SL_REASON_STOP_IDLE;
		stop[i].taken = false;
		stop[i].reason = SL_REASON_NONE;
	}
	return 0;
}
