/*
 * rank - see the header
 *
 * A fully resident client outside a slice has had its turn, or needed none. Its claim does not
 * wait, so the claim ranks after all that wait: its time counts down from the end of time. Among
 * such claims, the one whose slice ended last ranks first.
 */
#include "policy/verdicts/rank.h"

#include "policy/mutant.h"

/* The longest first part of a slice that guards a burst. */
#define FIRST_PART_MOST (200 * SL_MS)

struct look {
	sl_ns now, next;
};

/* The only comparison with the clock. */
static bool has_come(struct look *look, sl_ns at)
{
	if (at <= look->now)
		return true;
	look->next = SL_MUTANT(RANK_WAKES_NOBODY, sl_min_u64(look->next, at), look->next);
	return false;
}

static sl_ns after(sl_ns at, sl_ns span)
{
	return span > SL_NS_NEVER - at ? SL_NS_NEVER : at + span;
}

static bool is_in_slice(const struct sl_rank_facts *facts, struct look *look)
{
	return facts->served && !SL_MUTANT(RANK_STALLED_HOLDS, facts->stalls, false) &&
	       !has_come(look, facts->slice_ends);
}

static bool is_demand(const struct sl_rank_facts *facts)
{
	return facts->kind == SL_RANK_DEMAND;
}

static bool waits(const struct sl_rank_facts *facts)
{
	return is_demand(facts) || !facts->whole;
}

/* A demand left over from a slice waits since the slice's end: a rival passes once. */
static sl_ns waits_since(const struct sl_rank_facts *facts)
{
	if (!SL_MUTANT(RIVAL_TWICE, is_demand(facts), false))
		return facts->asked_at;
	return sl_max_u64(facts->asked_at, facts->slice_ends);
}

static bool is_guarded(
	const struct sl_rank_facts *facts, bool in_slice, struct look *look)
{
	sl_ns part = sl_min_u64(facts->cost, FIRST_PART_MOST);

	if (facts->coming && facts->covered &&
		!SL_MUTANT(GUARD_WHILE_BACKING_OFF, facts->backs_off, false))
		return true;
	if (SL_MUTANT(GROWTH_INHERITS, is_demand(facts), false) || !in_slice)
		return false;
	return !has_come(look, after(facts->served_at, part));
}

static bool is_overdue(
	const struct sl_rank_facts *facts, bool in_slice, struct look *look)
{
	if (in_slice && facts->overdue_seat)
		return true;
	return waits(facts) && facts->patience &&
	       has_come(look, after(waits_since(facts), facts->patience));
}

/* The class without a guard, which siblings share. */
static enum sl_rank_class own_class(
	const struct sl_rank_facts *facts, bool in_slice, struct look *look)
{
	bool there = !is_demand(facts) && facts->whole && !facts->evict_open;

	if (facts->entitled && there &&
		(SL_MUTANT(CROWDED_UNSEEN, !facts->crowded, true) || in_slice))
		return SL_RANK_THERE;
	if (facts->entitled)
		return SL_RANK_ENTITLED;
	return is_overdue(facts, in_slice, look) ? SL_RANK_OVERDUE : SL_RANK_BURST;
}

static uint64_t since(const struct sl_rank_facts *facts, bool in_slice)
{
	if (in_slice)
		return facts->served_at;
	if (waits(facts))
		return waits_since(facts);
	return SL_NS_NEVER - SL_MUTANT(RANK_OVER_COUNTS_UP, facts->slice_ends,
				     SL_NS_NEVER - facts->slice_ends);
}

/* A body that is there ranks with the sibling body that it waits for. During its slice it does so
 * only if that is before its own rank. */
static void join_sibling(struct sl_rank *rank, const struct sl_rank_facts *facts,
	bool in_slice, struct look *look)
{
	const struct sl_rank_facts *sibling = facts->sibling;
	enum sl_rank_class class;

	if (!sibling || waits(facts) || rank->class == SL_RANK_THERE)
		return;
	class = SL_MUTANT(RANK_GUARD_SHARED, own_class(sibling, false, look),
		sibling->coming ? SL_RANK_GUARDED : own_class(sibling, false, look));
	if (in_slice && class >= rank->class)
		return;
	rank->class = class;
	rank->since = in_slice ? rank->since : waits_since(sibling);
}

static uint32_t kind_slot(const struct sl_rank_facts *facts, bool there)
{
	if (!there)
		return 2;
	return is_demand(facts) ? 1 : 0;
}

static void place(struct sl_rank *rank, const struct sl_rank_facts *facts, bool in_slice)
{
	bool there = in_slice || rank->class <= SL_RANK_GUARDED;
	/* A claim that is coming is not overtaken. */
	int64_t priority = rank->class == SL_RANK_GUARDED ? 0 : -(int64_t)facts->priority;
	bool first =
		SL_MUTANT(RANK_SLICE_OVER_PRIORITY, rank->class != SL_RANK_BURST, true);

	rank->second = first ? !there : priority;
	rank->third = first ? priority : !there;
	rank->kind = kind_slot(facts, there);
}

struct sl_rank sl_rank_of(const struct sl_rank_facts *facts, sl_ns now, sl_ns *next)
{
	struct look look = {.now = now, .next = *next};
	bool in_slice = is_in_slice(facts, &look);
	struct sl_rank rank = {.class = own_class(facts, in_slice, &look),
		.since = since(facts, in_slice),
		.away = !facts->whole,
		.sequence = facts->sequence,
		.client = facts->client};

	join_sibling(&rank, facts, in_slice, &look);
	if (rank.class != SL_RANK_THERE && is_guarded(facts, in_slice, &look))
		rank.class = SL_RANK_GUARDED;
	place(&rank, facts, in_slice);
	*next = look.next;
	return rank;
}

static int order(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int order_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* A mutant exchanges classes 1 and 2. */
static int64_t class_slot(const struct sl_rank *rank)
{
	return SL_MUTANT(GUARD_FIRST, (int64_t)rank->class,
		rank->class <= SL_RANK_GUARDED ? -(int64_t)rank->class : rank->class);
}

static int order_ties(const struct sl_rank *a, const struct sl_rank *b)
{
	int by = order(a->away, b->away);

	by = by ? by : order_u64(a->sequence, b->sequence);
	return by ? by : order_u64(a->client, b->client);
}

int sl_rank_compare(const struct sl_rank *a, const struct sl_rank *b)
{
	int by = SL_MUTANT(KEY_1, order(class_slot(a), class_slot(b)), 0);

	by = by ? by : SL_MUTANT(KEY_2, order(a->second, b->second), 0);
	by = by ? by : SL_MUTANT(KEY_3, order(a->third, b->third), 0);
	by = by ? by : SL_MUTANT(KEY_4, order(a->kind, b->kind), 0);
	by = by ? by : SL_MUTANT(KEY_5, order_u64(a->since, b->since), 0);
	return by ? by : SL_MUTANT(KEY_6, order_ties(a, b), 0);
}
