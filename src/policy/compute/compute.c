/*
 * compute - see the header
 *
 * `passed` is a clock per workload that runs at 1/weight of the charged time, so shares are even
 * when all clocks are. A workload that was away starts not far behind those that were not: else it
 * would have the GPU alone until its clock has caught up. The little it may lag makes good for
 * pauses between two pieces of work.
 */
#include "policy/compute/compute.h"

#include <string.h>

#include "policy/mutant.h"

/* How far a clock may lag behind the others after a pause, and run ahead after a long kernel. */
#define LAG_MAX   (1 * SL_S)
#define AHEAD_MAX (100 * SL_S)
/* Weight of a workload without a request where requests leave nothing. */
#define WEIGHT_MIN 10u
/* What a limit lets a workload use at once, beyond which it has to wait. */
#define BURST (50 * SL_MS)
/* A workload has slices that end until it has been alone for so long: what it queues in an endless
 * one delays the next that comes. */
#define CALM SL_S
/* Figures for people are of periods of this length. */
#define PERIOD (2 * SL_S)

#define WORKLOAD(link_at) SL_LIST_ENTRY(link_at, struct sl_compute_workload, link)
#define CLIENT(link_at)   SL_LIST_ENTRY(link_at, struct sl_compute_client, link)

void sl_compute_init(struct sl_compute_node *compute)
{
	memset(compute, 0, sizeof(*compute));
	sl_list_init(&compute->workloads);
	compute->slice = 10 * SL_MS;
	compute->patience = SL_S;
}

void sl_compute_add(struct sl_compute_node *compute, struct sl_compute_workload *workload)
{
	sl_list_init(&workload->clients);
	sl_list_push_tail(&compute->workloads, &workload->link);
	workload->credit = BURST;
}

void sl_compute_remove(struct sl_compute_workload *workload)
{
	if (workload->link.next)
		sl_list_unlink(&workload->link);
}

void sl_compute_join(
	struct sl_compute_workload *workload, struct sl_compute_client *client)
{
	*client = (struct sl_compute_client){.workload = workload};
	sl_list_push_tail(&workload->clients, &client->link);
}

void sl_compute_leave(struct sl_compute_client *client)
{
	if (client->workload)
		sl_list_unlink(&client->link);
	client->workload = NULL;
}

static bool wants(const struct sl_compute_workload *workload)
{
	sl_list_foreach (at, &workload->clients)
		if (CLIENT(at)->wants)
			return true;
	return false;
}

static void set_wants(struct sl_compute_client *client, bool now)
{
	if (now && !client->workload->runs && !wants(client->workload))
		client->workload->fresh = true;
	client->wants = now;
}

void sl_compute_want(struct sl_compute_client *client)
{
	set_wants(client, true);
}

void sl_compute_end(struct sl_compute_client *client, uint64_t order, bool goes_on)
{
	if (order != client->order)
		return; /* it crossed a later order */
	client->open = false;
	client->wants = goes_on || SL_MUTANT(COMPUTE_WANTS_ALWAYS, false, true);
}

/* --- what is metered ---------------------------------------------------------------------- */

static bool meet(const struct sl_compute_workload *a, const struct sl_compute_workload *b)
{
	return (a->gpu_mask & b->gpu_mask) != 0;
}

static bool has_limit(
	const struct sl_compute_node *compute, const struct sl_compute_workload *workload)
{
	return compute->mode == SL_COMPUTE_STRICT && workload->limit_pm &&
	       workload->limit_pm < SL_COMPUTE_WHOLE;
}

static bool is_metered(
	struct sl_compute_node *compute, const struct sl_compute_workload *workload)
{
	bool shares = workload->request_pm || workload->limit_pm;

	if (sl_list_is_empty(&workload->clients))
		return false;
	if (has_limit(compute, workload))
		return true;
	sl_list_foreach (at, &compute->workloads) {
		const struct sl_compute_workload *other = WORKLOAD(at);

		if (other != workload && meet(workload, other) &&
			!sl_list_is_empty(&other->clients) &&
			(shares || other->request_pm || other->limit_pm))
			return true;
	}
	return false;
}

static void order(struct sl_compute_node *compute, struct sl_compute_client *client,
	enum sl_compute_order what, sl_ns span)
{
	client->order = ++compute->orders;
	client->metered = client->open = what != SL_COMPUTE_OFF;
	compute->send(compute->context, client, what, span);
}

static void note_use(struct sl_compute_workload *workload, sl_ns now, sl_ns used)
{
	*(workload->endless ? &workload->had_alone : &workload->had) += used;
	if (now - workload->period_at >= PERIOD) {
		bool adjoins = now - workload->period_at < 2 * PERIOD;

		workload->used =
			adjoins ? workload->period_used * PERIOD /
					  sl_max_u64(now - workload->period_at, PERIOD)
				: 0;
		workload->period_at = now;
		workload->period_used = 0;
	}
	workload->period_used += sl_min_u64(used, 2 * PERIOD);
}

static void take_in(
	struct sl_compute_node *compute, struct sl_compute_workload *workload, sl_ns now)
{
	bool before = workload->metered;

	workload->metered = is_metered(compute, workload);
	if (!before)
		workload->passed = 0; /* an earlier contest is over */
	sl_list_foreach (at, &workload->clients) {
		struct sl_compute_client *client = CLIENT(at);

		if (client->metered == workload->metered)
			continue;
		client->wants = false;
		order(compute, client,
			workload->metered ? SL_COMPUTE_SHUT : SL_COMPUTE_OFF, 0);
		if (!workload->metered || workload->runs)
			continue;
		/* What it submitted so far ends like a slice. */
		workload->runs = workload->fresh = true;
		workload->since = now;
		workload->shut_by = now + compute->patience;
	}
	if (!workload->metered && workload->runs) {
		note_use(workload, now, sl_sub_sat(now, workload->since));
		workload->runs = false;
	}
}

/* --- charging ----------------------------------------------------------------------------- */

/* The part of a GPU's time that is not requested, in equal parts. */
static uint32_t weight_of(
	struct sl_compute_node *compute, const struct sl_compute_workload *workload)
{
	uint32_t requested = 0, without = 0;

	if (workload->request_pm)
		return SL_MUTANT(
			COMPUTE_WEIGHTS_EQUAL, workload->request_pm, SL_COMPUTE_WHOLE);
	sl_list_foreach (at, &compute->workloads) {
		const struct sl_compute_workload *other = WORKLOAD(at);

		if (!meet(workload, other) || !other->metered)
			continue;
		requested += other->request_pm;
		without += !other->request_pm;
	}
	if (requested >= SL_COMPUTE_WHOLE || !without)
		return WEIGHT_MIN;
	requested = (SL_COMPUTE_WHOLE - requested) / without;
	return requested > WEIGHT_MIN ? requested : WEIGHT_MIN;
}

/* The clock that is furthest behind among the other busy workloads on these GPUs; SL_NS_NEVER:
 * there are none. */
static sl_ns least_passed(
	struct sl_compute_node *compute, const struct sl_compute_workload *workload)
{
	sl_ns least = SL_NS_NEVER;

	sl_list_foreach (at, &compute->workloads) {
		const struct sl_compute_workload *other = WORKLOAD(at);

		if (other != workload && meet(workload, other) && !other->fresh &&
			other->metered && (other->runs || wants(other)))
			least = sl_min_u64(least, other->passed);
	}
	return least;
}

static void start_clock(
	struct sl_compute_node *compute, struct sl_compute_workload *workload)
{
	sl_ns least = least_passed(compute, workload);

	workload->fresh = false;
	if (least == SL_NS_NEVER || SL_MUTANT(COMPUTE_HOARDS, false, true))
		return;
	workload->passed = sl_max_u64(workload->passed, sl_sub_sat(least, LAG_MAX));
	workload->passed = sl_min_u64(workload->passed, least + AHEAD_MAX);
}

static void refill(struct sl_compute_workload *workload, sl_ns now)
{
	sl_ns span = sl_min_u64(sl_sub_sat(now, workload->credit_at), 1000 * SL_S);

	workload->credit += (int64_t)(span * workload->limit_pm / SL_COMPUTE_WHOLE);
	if (workload->credit > (int64_t)BURST)
		workload->credit = BURST;
	workload->credit_at = now;
}

uint32_t sl_compute_used_pm(const struct sl_compute_workload *workload, sl_ns now)
{
	if (!workload->metered)
		return UINT32_MAX;
	if (now - workload->period_at >= 2 * PERIOD)
		return workload->runs ? SL_COMPUTE_WHOLE : 0;
	return (uint32_t)sl_min_u64(
		workload->used * SL_COMPUTE_WHOLE / PERIOD, SL_COMPUTE_WHOLE);
}

sl_ns sl_compute_had(const struct sl_compute_workload *workload, bool alone, sl_ns now)
{
	bool counts = workload->runs && workload->endless == alone;

	return (alone ? workload->had_alone : workload->had) +
	       (counts ? sl_sub_sat(now, workload->since) : 0);
}

static bool is_wanted_by_another(
	struct sl_compute_node *compute, const struct sl_compute_workload *workload)
{
	sl_list_foreach (at, &compute->workloads) {
		const struct sl_compute_workload *other = WORKLOAD(at);

		if (other != workload && other->metered && meet(workload, other) &&
			(other->runs || wants(other)))
			return true;
	}
	return false;
}

static void note_rivals(
	struct sl_compute_node *compute, struct sl_compute_workload *workload, sl_ns now)
{
	if (has_limit(compute, workload) || is_wanted_by_another(compute, workload))
		workload->rivals_at = now;
}

static void charge(
	struct sl_compute_node *compute, struct sl_compute_workload *workload, sl_ns now)
{
	sl_ns used = sl_sub_sat(now, workload->since);

	workload->runs = false;
	note_use(workload, now, used);
	note_rivals(compute, workload, now);
	if (workload->rivals_at < workload->since)
		return; /* it took nothing from others */
	used = SL_MUTANT(COMPUTE_CHARGES_SLICES, used, compute->slice);
	workload->passed += used * SL_COMPUTE_WHOLE / weight_of(compute, workload);
	if (workload->limit_pm)
		workload->credit -= (int64_t)used;
}

static bool is_open(const struct sl_compute_workload *workload)
{
	sl_list_foreach (at, &workload->clients)
		if (CLIENT(at)->open)
			return true;
	return false;
}

/* Ends the slice that is over, or whose end is late. A process that does not report, for example
 * because it is stopped, gets no more until it reports again. */
static void finish(
	struct sl_compute_node *compute, struct sl_compute_workload *workload, sl_ns now)
{
	if (!workload->runs)
		return;
	if (is_open(workload) &&
		now < SL_MUTANT(COMPUTE_WAITS_FOREVER, workload->shut_by, SL_NS_NEVER))
		return;
	charge(compute, workload, now);
	sl_list_foreach (at, &workload->clients) {
		CLIENT(at)->wants &= !CLIENT(at)->open;
		CLIENT(at)->open = false;
	}
}

/* --- slices ------------------------------------------------------------------------------- */

/* An endless slice ends once another workload wants a GPU of it. What it used until then took
 * nothing from others and is not charged. */
static void revoke(
	struct sl_compute_node *compute, struct sl_compute_workload *workload, sl_ns now)
{
	if (!workload->runs || !workload->endless ||
		(!has_limit(compute, workload) &&
			!is_wanted_by_another(compute, workload)))
		return;
	note_use(workload, now, now - workload->since);
	workload->endless = false;
	workload->since = now;
	workload->shut_by = now + compute->patience;
	sl_list_foreach (at, &workload->clients)
		order(compute, CLIENT(at), SL_COMPUTE_SHUT, 0);
}

/* May it start, as far as its limit goes? */
static bool is_within_limit(
	struct sl_compute_node *compute, struct sl_compute_workload *workload, sl_ns now)
{
	if (!workload->limit_pm)
		return true;
	refill(workload, now);
	if (SL_MUTANT(COMPUTE_NO_LIMIT, workload->credit > 0, true))
		return true;
	return !has_limit(compute, workload) && !is_wanted_by_another(compute, workload);
}

static void start(
	struct sl_compute_node *compute, struct sl_compute_workload *workload, sl_ns now)
{
	bool alone;

	note_rivals(compute, workload, now);
	alone = now - workload->rivals_at >= CALM;
	workload->runs = true;
	workload->endless = alone;
	workload->since = now;
	workload->shut_by =
		alone ? SL_NS_NEVER : now + compute->slice + compute->patience;
	sl_list_foreach (at, &workload->clients)
		order(compute, CLIENT(at), alone ? SL_COMPUTE_OPEN : SL_COMPUTE_SLICE,
			alone ? 0 : compute->slice);
}

/* The waiting workload whose clock is furthest behind, of those after *after (NULL: of all). */
static struct sl_compute_workload *next_of(
	struct sl_compute_node *compute, const struct sl_compute_workload *after)
{
	struct sl_compute_workload *best = NULL;
	bool passed_after = !after;

	/* Equal clocks go by the order of the list. */
	sl_list_foreach (at, &compute->workloads) {
		struct sl_compute_workload *workload = WORKLOAD(at);
		bool later = !after || workload->passed > after->passed ||
			     (workload->passed == after->passed && passed_after);

		passed_after |= workload == after;
		if (workload != after && later && workload->metered && !workload->runs &&
			wants(workload) && (!best || workload->passed < best->passed))
			best = workload;
	}
	return best;
}

/* When the limit lets it start. */
static sl_ns credit_due(const struct sl_compute_workload *workload, sl_ns now)
{
	if (workload->credit > 0)
		return SL_NS_NEVER;
	return now +
	       (sl_ns)(1 - workload->credit) * SL_COMPUTE_WHOLE / workload->limit_pm + 1;
}

static sl_ns start_all(struct sl_compute_node *compute, sl_ns now)
{
	struct sl_compute_workload *workload = NULL;
	sl_ns due = SL_NS_NEVER;
	uint32_t taken = 0;

	sl_list_foreach (at, &compute->workloads)
		taken |= WORKLOAD(at)->runs ? WORKLOAD(at)->gpu_mask : 0;
	while ((workload = next_of(compute, workload))) {
		if (!is_within_limit(compute, workload, now)) {
			due = sl_min_u64(due, credit_due(workload, now));
			continue;
		}
		if (!(workload->gpu_mask & taken))
			start(compute, workload, now);
		taken |= SL_MUTANT(COMPUTE_NO_RESERVATION, workload->gpu_mask,
			workload->runs ? workload->gpu_mask : 0);
	}
	return due;
}

sl_ns sl_compute_step(struct sl_compute_node *compute, sl_ns now)
{
	sl_ns due;

	sl_list_foreach (at, &compute->workloads)
		finish(compute, WORKLOAD(at), now);
	sl_list_foreach (at, &compute->workloads)
		take_in(compute, WORKLOAD(at), now);
	sl_list_foreach (at, &compute->workloads)
		if (WORKLOAD(at)->fresh)
			start_clock(compute, WORKLOAD(at));
	sl_list_foreach (at, &compute->workloads)
		revoke(compute, WORKLOAD(at), now);
	due = start_all(compute, now);
	sl_list_foreach (at, &compute->workloads)
		if (WORKLOAD(at)->runs)
			due = sl_min_u64(due, WORKLOAD(at)->shut_by);
	return due;
}
