/*
 * moves - judges what is said of parked workloads that could go to other GPUs, and their moves
 *
 * A workload is away when nothing of its living processes is on a GPU, and no answer about them is
 * due. Then what it has on the host, and what it asks for, may be booked on other GPUs.
 */
#include <inttypes.h>

#include "rules.h"

/* Until a process that was busy once is asked again, and a little. */
#define ASKED_AGAIN (6 * SL_S)

static bool has_grant(const struct swap_party *p)
{
	for (uint32_t i = 0; i < SWAP_GRANTS; i++) {
		if (p->demand[i].used && p->demand[i].epoch)
			return true;
	}
	return false;
}

/* What of it is on the GPU. */
static uint64_t here(const struct swap_party *p, uint32_t gpu)
{
	return p->backing[gpu] - p->evicted[gpu] + p->hidden[gpu] + p->paid[gpu] +
	       p->held[gpu];
}

static bool is_gone(const struct swap_party *p)
{
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		if (here(p, gpu))
			return false;
	}
	/* One without a context would make it where it began. */
	return swap_party_away(p) && !p->expected && !p->order && !has_grant(p);
}

struct party_sums {
	bool gone;    /* all of them */
	bool reports; /* one of them is in the middle of a report */
	bool waits;   /* an answer, or an end, is to come */
};

static struct party_sums sums_of(const struct swap_rules *r, const struct swap_member *m)
{
	struct party_sums sums = {.gone = true, .waits = swap_recovers(r)};

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (!p->used || !p->alive || p->workload != m->id)
			continue;
		sums.gone &= is_gone(p);
		sums.reports |= p->reports;
		sums.waits |= p->order || p->expected || p->reports || has_grant(p) ||
			      p->termed || p->killed;
	}
	return sums;
}

/* SHOWN; PROGRESS: a parked workload is away or stays, before long. */
void swap_judge_presence(
	struct swap_rules *r, const struct sl_node *node, struct swap_member *m)
{
	enum sl_presence is = sl_node_workload_alone(node, m->id).presence;
	struct party_sums sums = sums_of(r, m);
	bool fits = is == SL_PRESENCE_AWAY    ? m->parked && sums.gone
		    : is == SL_PRESENCE_STAYS ? m->parked && !m->resuming && !sums.gone
					      : !m->parked || !sums.gone;

	if (!fits && !(sums.reports && is != SL_PRESENCE_AWAY))
		swap_break(r, SWAP_SHOWN,
			"workload %" PRIu64
			" is said to be in presence %u; parked %d, resuming %d, away %d",
			m->id, (unsigned)is, m->parked, m->resuming, sums.gone);
	if (is != SL_PRESENCE_HERE || !m->parked || m->resuming || sums.waits)
		m->leaves_since = 0;
	else if (!m->leaves_since)
		m->leaves_since = r->now;
	else if (r->now > m->leaves_since + ASKED_AGAIN)
		swap_break(r, SWAP_PROGRESS,
			"workload %" PRIu64 " is said to leave its GPUs since %" PRIu64
			" ms, and nothing is ordered",
			m->id, swap_ms(r->now - m->leaves_since));
}

static bool is_usable(const struct swap_rules *r, uint32_t mask)
{
	return !(mask & ~(r->present_mask & ~r->lost_mask));
}

/* MOVES: only for a reason. */
void swap_on_refuse(struct swap_rules *r, const struct sl_action *a)
{
	const struct swap_member *m = swap_member_of(r, a->refuse.workload);
	uint32_t mask = r->event.workload_resume.gpu_mask;
	struct party_sums sums;

	if (!m || m->removed || r->event.type != SL_EVENT_WORKLOAD_RESUME ||
		a->refuse.reason == SL_REASON_NOT_PARKED)
		return;
	sums = sums_of(r, m);
	if (a->refuse.reason == SL_REASON_MOVE_NOT_AWAY
			? sums.gone && !sums.reports
			: is_usable(r, mask) &&
				  __builtin_popcount(mask) == __builtin_popcount(m->mask))
		swap_break(r, SWAP_MOVES,
			"workload %" PRIu64 " may not go to GPUs %x: %s", m->id, mask,
			sl_reason_name(a->refuse.reason));
}

static void take_along(struct swap_party *p, uint32_t from, uint32_t to)
{
	p->backing[to] += p->backing[from];
	p->evicted[to] += p->evicted[from];
	p->away[to] += p->away[from];
	p->backing[from] = p->evicted[from] = p->away[from] = 0;
	for (uint32_t i = 0; i < SWAP_GRANTS; i++) {
		if (p->demand[i].used && p->demand[i].gpu == from)
			p->demand[i].gpu = to;
	}
}

/* It was told to come back there. */
static bool is_sent(const struct swap_rules *r, const struct swap_member *m,
	uint32_t from, uint32_t to)
{
	uint32_t mask = r->event.workload_resume.gpu_mask;

	return m->parked && r->event.type == SL_EVENT_WORKLOAD_RESUME &&
	       r->event.workload_resume.workload == m->id &&
	       m->mask & ~mask & 1u << from && mask & ~m->mask & 1u << to;
}

/* Its first process begins: it has one GPU, and nothing on it. */
static bool begins(const struct swap_rules *r, const struct swap_member *m, uint32_t from,
	uint32_t to)
{
	bool has_begun = false;

	for (uint32_t i = 0; i < r->parties; i++)
		has_begun |= r->party[i].used && r->party[i].alive &&
			     r->party[i].workload == m->id;
	return !m->parked && !has_begun && r->event.type == SL_EVENT_WORKLOAD_BEGINS &&
	       r->event.workload_begins.workload == m->id && m->mask == 1u << from &&
	       r->event.workload_begins.gpu_mask >> to & 1 && to != from &&
	       !swap_recovers(r);
}

/* MOVES. */
void swap_on_moves(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_member *m = swap_member_of(r, a->moves.workload);
	uint32_t from = a->moves.from, to = a->moves.to;

	if (!m || from >= SWAP_GPUS || to >= SWAP_GPUS || !is_usable(r, 1u << to) ||
		!(is_sent(r, m, from, to) || begins(r, m, from, to))) {
		swap_break(r, SWAP_MOVES,
			"workload %" PRIu64 " goes from GPU %u to %u, without reason",
			a->moves.workload, from, to);
		return;
	}
	for (uint32_t i = 0; i < r->parties; i++) {
		struct swap_party *p = &r->party[i];

		if (!p->used || !p->alive || p->workload != m->id)
			continue;
		if (!is_gone(p))
			swap_break(r, SWAP_MOVES,
				"workload %" PRIu64 " goes from GPU %u, where %" PRIu64
				" of client %" PRIu64 " are",
				m->id, from, here(p, from), p->id);
		take_along(p, from, to);
	}
	m->mask ^= 1u << from | 1u << to;
	m->limit = sl_min_u64(m->limit, swap_shareable(r, to));
	r->contest++;
}

/* MOVES: a RESUME was taken; SHOWN: the limit. */
void swap_on_resume(struct swap_rules *r, struct swap_member *m, uint64_t limit)
{
	uint32_t mask = r->event.workload_resume.gpu_mask;

	if (mask && mask != m->mask)
		swap_break(r, SWAP_MOVES,
			"workload %" PRIu64 " was told to go to GPUs %x, and has %x",
			m->id, mask, m->mask);
	if (limit != m->limit)
		swap_break(r, SWAP_SHOWN,
			"workload %" PRIu64 " has a limit of %" PRIu64
			", and is told %" PRIu64,
			m->id, m->limit, limit);
	if (m->resuming)
		return;
	m->resuming = true;
	m->resuming_since = r->now;
}
