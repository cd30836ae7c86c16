/*
 * away - judges the orders by which a process leaves its GPUs whole and comes back, and keeps
 * their accounts
 *
 * A process that left has nothing on any GPU. What was measured of it before it left comes back
 * with it, so its ATTACH books that again. First come, first paid: the reserve may have gone to
 * others meanwhile.
 */
#include <inttypes.h>

#include "rules.h"

uint64_t swap_party_away(const struct swap_party *p)
{
	uint64_t sum = 0;

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++)
		sum += p->away[gpu];
	return sum;
}

bool swap_is_attaching(const struct swap_party *p)
{
	return p->order && p->travels && p->is_restore;
}

uint64_t swap_entry(const struct swap_rules *r, const struct swap_party *p, uint32_t gpu)
{
	return sl_sub_sat(p->away[gpu], swap_reserve_room(r, gpu));
}

/* --- accounts --- */

static void go(struct swap_rules *r, struct swap_party *p)
{
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		p->away[gpu] += p->hidden[gpu] + p->paid[gpu];
		swap_set_measured(r, p, gpu, 0);
	}
}

static void come(struct swap_rules *r, struct swap_party *p)
{
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		uint64_t bytes = p->away[gpu];

		p->away[gpu] = 0;
		if (bytes)
			swap_set_measured(r, p, gpu, bytes);
	}
}

void swap_on_placed(struct swap_rules *r, struct swap_party *p, const struct sl_event *e)
{
	bool leaves = !p->is_restore, fine = e->placed.outcome == SL_SWAP_OK;

	if (!p->order || !p->travels || p->order != e->placed.order)
		return;
	p->order = 0;
	p->travels = false;
	r->contest++;
	if (leaves == fine)
		go(r, p);
	if (leaves) {
		p->stayed_at = fine ? 0 : r->now;
		p->stayed = fine ? 0 : p->stayed + 1;
		p->resumed &= swap_party_is_out(p);
		return;
	}
	p->failed_at = fine ? 0 : r->now;
	if (swap_party_is_out(p))
		return;
	p->resumed = false;
	p->resident_at = r->now;
}

void swap_on_away(struct swap_rules *r, struct swap_party *p, const struct sl_event *e)
{
	const struct swap_member *m = swap_member_of(r, p->workload);
	uint32_t gpu = e->client_away.gpu;

	if (p->travels && p->order)
		return;
	swap_set_measured(r, p, gpu, 0);
	p->away[gpu] = e->client_away.bytes;
	/* It was not asked to stay away. */
	if (m && !m->parked && !p->resumed) {
		p->resumed = true;
		p->wants_at = p->wants ? p->wants_at : r->now;
	}
}

/* --- orders --- */

/* PLACES, ONE_ORDER, RECOVERY: of both. */
static struct swap_party *may_go(struct swap_rules *r, const char *what, uint64_t client)
{
	struct swap_party *p = swap_party_of(r, client);

	if (!p || !p->alive || !swap_member_of(r, p->workload)) {
		swap_break(r, SWAP_PLACES, "%s of an unknown client (%" PRIu64 ")", what,
			client);
		return NULL;
	}
	if (p->order)
		swap_break(r, SWAP_ONE_ORDER,
			"%s of client %" PRIu64 ", whose order %" PRIu64 " is open", what,
			p->id, p->order);
	/* Nothing but its place is known of a client that does not report in time. */
	if (p->expected && (swap_recovers(r) || !swap_party_away(p)))
		swap_break(r, SWAP_RECOVERY,
			"%s of client %" PRIu64 ", which has not reported", what, p->id);
	if (p->condition != SL_CONDITION_RUNNING)
		swap_break(r, SWAP_PLACES, "%s of client %" PRIu64 ", which is stopped",
			what, p->id);
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		if (p->hidden[gpu] + p->paid[gpu] + p->away[gpu] &&
			r->lost_mask >> gpu & 1)
			swap_break(r, SWAP_PLACES,
				"%s of client %" PRIu64 ", whose GPU %u is lost", what,
				p->id, gpu);
	}
	return p;
}

static void open_order(
	struct swap_rules *r, struct swap_party *p, uint64_t id, bool comes)
{
	p->order = id;
	p->order_bytes = p->order_needed = 0;
	p->order_gpu = SWAP_GPUS;
	p->is_restore = comes;
	p->travels = true;
	p->for_others = p->aborted = p->moved = false;
	p->order_at = r->now;
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++)
		p->returns[gpu] = 0;
}

/* After the nth refusal in a row it is left alone for twice as long as before. */
static sl_ns left_alone(const struct swap_party *p)
{
	enum { FIRST_S = 4, MOST_S = 500 };

	return sl_min_u64((uint64_t)FIRST_S << sl_min_u64(p->stayed - 1, 10), MOST_S) *
	       SL_S;
}

void swap_on_detach(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = may_go(r, "DETACH", a->detach.client);
	struct swap_member *m = p ? swap_member_of(r, p->workload) : NULL;
	uint64_t bytes = 0;

	if (!p)
		return;
	if (!r->detaches || !m->parked || m->resuming || m->removed)
		swap_break(r, SWAP_PLACES,
			"DETACH of client %" PRIu64 ", which is not parked", p->id);
	for (uint32_t i = 0; i < SWAP_GRANTS; i++) {
		if (p->demand[i].used && p->demand[i].epoch)
			swap_break(r, SWAP_NO_GRANT,
				"DETACH of client %" PRIu64 " with grant %" PRIu64
				" not committed",
				p->id, p->demand[i].epoch);
	}
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		bytes += p->hidden[gpu] + p->paid[gpu];
		if (p->backing[gpu] > p->evicted[gpu])
			swap_break(r, SWAP_PLACES,
				"DETACH of client %" PRIu64 ", which has %" PRIu64
				" of memory on GPU %u",
				p->id, p->backing[gpu] - p->evicted[gpu], gpu);
	}
	if (!bytes || bytes != a->detach.bytes)
		swap_break(r, SWAP_PLACES,
			"DETACH of client %" PRIu64 " with %" PRIu64
			" of contexts, and %" PRIu64 " are measured",
			p->id, a->detach.bytes, bytes);
	if (p->stayed && r->now < p->stayed_at + left_alone(p))
		swap_break(r, SWAP_STORM,
			"DETACH of client %" PRIu64 " %" PRIu64
			" ms after it refused for the time number %u",
			p->id, swap_ms(r->now - p->stayed_at), p->stayed);
	open_order(r, p, a->id, false);
}

static uint64_t claims_of_others(
	const struct swap_rules *r, const struct swap_member *own, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->members; i++) {
		const struct swap_member *m = &r->member[i];

		if (m->used && m != own)
			sum += sl_max_u64(
				swap_request(m, gpu), swap_fixed(r, m->id, gpu));
	}
	return sum;
}

bool swap_may_enter(const struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *m)
{
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		uint64_t entry = swap_entry(r, p, gpu);

		if (entry && claims_of_others(r, m, gpu) +
					     sl_max_u64(swap_request(m, gpu),
						     swap_fixed(r, m->id, gpu) + entry) >
				     swap_shareable(r, gpu))
			return false;
	}
	return true;
}

void swap_on_attach(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = may_go(r, "ATTACH", a->attach.client);
	struct swap_member *m = p ? swap_member_of(r, p->workload) : NULL;

	if (!p)
		return;
	if (m->parked)
		swap_break(r, SWAP_PARKED,
			"ATTACH of client %" PRIu64 ", which is parked", p->id);
	if (!swap_party_away(p))
		swap_break(r, SWAP_PLACES,
			"ATTACH of client %" PRIu64 ", which is on its GPUs", p->id);
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		uint64_t entry = swap_entry(r, p, gpu);
		uint64_t fixed = swap_fixed(r, m->id, gpu) + entry;

		if (!entry)
			continue;
		if (swap_physical(r, gpu) + entry > swap_shareable(r, gpu))
			swap_break(r, SWAP_I1,
				"ATTACH of client %" PRIu64 ": on GPU %u %" PRIu64
				" are then of %" PRIu64 " that can be shared",
				p->id, gpu, swap_physical(r, gpu) + entry,
				swap_shareable(r, gpu));
		if (fixed > swap_request(m, gpu) &&
			claims_of_others(r, m, gpu) + fixed > swap_shareable(r, gpu))
			swap_break(r, SWAP_I1,
				"ATTACH of client %" PRIu64 ": on GPU %u %" PRIu64
				" are then promised of %" PRIu64,
				p->id, gpu, claims_of_others(r, m, gpu) + fixed,
				swap_shareable(r, gpu));
	}
	open_order(r, p, a->id, true);
	come(r, p);
}
