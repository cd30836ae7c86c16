/*
 * sums - what there is: sums over the accounts that books.c keeps
 *
 * Nothing here is shared with the node: a simple array, walked from end to end.
 */
#include "rules.h"

struct swap_party *swap_party_of(struct swap_rules *r, uint64_t client)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		if (r->party[i].used && r->party[i].id == client)
			return &r->party[i];
	}
	return NULL;
}

struct swap_member *swap_member_of(struct swap_rules *r, uint64_t workload)
{
	for (uint32_t i = 0; i < r->members; i++) {
		if (r->member[i].used && r->member[i].id == workload)
			return &r->member[i];
	}
	return NULL;
}

/* --- sums --- */

uint64_t swap_shareable(const struct swap_rules *r, uint32_t gpu)
{
	return sl_sub_sat(r->capacity[gpu], r->reserve[gpu] + r->unmanaged[gpu]);
}

uint64_t swap_party_granted(const struct swap_party *p, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < SWAP_GRANTS; i++) {
		const struct swap_demand *d = &p->demand[i];

		if (d->used && d->epoch && d->gpu == gpu && !d->there)
			sum += d->bytes;
	}
	return sum;
}

/* The bytes that have room kept on the GPU while a RESTORE is open. A RESTORE of a part has room
 * for that part alone. Any other has room for all evicted bytes, on each GPU of the client. */
uint64_t swap_party_returning(const struct swap_party *p, uint32_t gpu)
{
	return p->order && p->is_restore ? p->returns[gpu] : 0;
}

uint64_t swap_party_leaving(const struct swap_party *p, uint32_t gpu)
{
	return p->order && !p->is_restore && p->order_gpu == gpu
		       ? sl_min_u64(p->order_bytes, p->backing[gpu] - p->evicted[gpu])
		       : 0;
}

uint64_t swap_party_evicted(const struct swap_party *p)
{
	uint64_t sum = 0;

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++)
		sum += p->evicted[gpu];
	return sum;
}

bool swap_party_is_out(const struct swap_party *p)
{
	return swap_party_evicted(p) || swap_party_away(p);
}

uint64_t swap_reserve_room(const struct swap_rules *r, uint32_t gpu)
{
	uint64_t paid = 0;

	for (uint32_t i = 0; i < r->parties; i++)
		paid += r->party[i].used ? r->party[i].paid[gpu] : 0;
	return sl_sub_sat(r->reserve[gpu], paid);
}

uint64_t swap_use(const struct swap_rules *r, uint64_t workload, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->used && p->alive && p->workload == workload)
			sum += p->backing[gpu] + p->hidden[gpu] +
			       swap_party_granted(p, gpu);
	}
	return sum;
}

uint64_t swap_party_resident(const struct swap_party *p, uint32_t gpu)
{
	return p->backing[gpu] - p->evicted[gpu] + p->hidden[gpu] +
	       swap_party_granted(p, gpu) + swap_party_returning(p, gpu);
}

uint64_t swap_resident(const struct swap_rules *r, uint64_t workload, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->used && p->alive && p->workload == workload)
			sum += swap_party_resident(p, gpu);
	}
	return sum;
}

uint64_t swap_fixed(const struct swap_rules *r, uint64_t workload, uint32_t gpu)
{
	uint64_t sum = 0;
	bool stays = false;

	for (uint32_t i = 0; i < r->members; i++) {
		const struct swap_member *m = &r->member[i];

		stays |= m->used && m->id == workload && swap_keeps(r, m);
	}
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->used && p->alive && p->workload == workload)
			sum += stays ? swap_party_resident(p, gpu)
				     : p->hidden[gpu] + p->held[gpu];
	}
	return sum;
}

uint64_t swap_physical(const struct swap_rules *r, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->used)
			sum += p->dying[gpu] +
			       (p->alive ? swap_party_resident(p, gpu) : 0);
	}
	return sum;
}

uint64_t swap_leaving(const struct swap_rules *r)
{
	uint64_t sum = 0;

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		for (uint32_t i = 0; i < r->parties; i++) {
			if (r->party[i].used && r->party[i].alive)
				sum += swap_party_leaving(&r->party[i], gpu);
		}
	}
	return sum;
}

uint64_t swap_evicted(const struct swap_rules *r, uint64_t workload)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->used && p->alive && (!workload || p->workload == workload))
			sum += swap_party_evicted(p);
	}
	return sum;
}

uint64_t swap_request(const struct swap_member *m, uint32_t gpu)
{
	return m->removed || m->parked || !(m->mask >> gpu & 1) ? 0 : m->request;
}

/* The workload's bytes on the GPU once all that is under way has come; 0: of all. Ending processes
 * go by themselves. */
static uint64_t staying(const struct swap_rules *r, uint64_t workload, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (!p->used || (workload && p->workload != workload))
			continue;
		if (p->alive && !swap_is_going(r, p))
			sum += swap_party_resident(p, gpu) - swap_party_leaving(p, gpu);
	}
	return sum;
}

uint64_t swap_unclaimed(const struct swap_rules *r, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->members; i++) {
		const struct swap_member *m = &r->member[i];

		if (m->used && swap_request(m, gpu))
			sum += sl_sub_sat(swap_request(m, gpu), staying(r, m->id, gpu));
	}
	return sum;
}

/* Bytes on others' requests that must be possible to take back. */
static uint64_t overlap(const struct swap_rules *r, uint32_t gpu)
{
	return sl_sub_sat(
		staying(r, 0, gpu) + swap_unclaimed(r, gpu), swap_shareable(r, gpu));
}

uint64_t swap_lent_above(const struct swap_rules *r, const struct swap_member *of,
	const struct swap_demand *d)
{
	uint64_t lent = 0;

	if (!r->has_priority || swap_stays(r, of) || d->held)
		return 0;
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		uint64_t above = 0;

		for (uint32_t i = 0; i < r->members; i++) {
			const struct swap_member *m = &r->member[i];

			if (m->used && m->priority > of->priority)
				above += sl_sub_sat(
					swap_request(m, gpu), staying(r, m->id, gpu));
		}
		lent += above ? sl_min_u64(above, overlap(r, gpu)) : 0;
	}
	return lent;
}

uint64_t swap_i2(const struct swap_rules *r)
{
	uint64_t sum = swap_evicted(r, 0);

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		if (!(r->present_mask >> gpu & 1))
			continue;
		sum += overlap(r, gpu);
		for (uint32_t i = 0; i < r->parties; i++) {
			const struct swap_party *p = &r->party[i];

			if (p->used && p->alive)
				sum += swap_party_leaving(p, gpu) -
				       swap_party_returning(p, gpu);
		}
	}
	return sum;
}

uint64_t swap_made(const struct swap_rules *r)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];
		uint64_t needs = 0;

		if (!p->used || !p->alive)
			continue;
		for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++)
			needs += p->evicted[gpu] + swap_party_leaving(p, gpu);
		sum += sl_max_u64(needs, sl_sub_sat(p->store, p->trimmed));
	}
	return sum;
}

bool swap_is_spread(const struct swap_member *m)
{
	return m->mask & (m->mask - 1);
}

static sl_ns cost_of(const struct swap_rules *r, uint32_t gpu, uint64_t bytes)
{
	uint64_t out = r->link_out[gpu] ? r->link_out[gpu] : 8 * SL_GIB;
	uint64_t in = r->link_in[gpu] ? r->link_in[gpu] : 8 * SL_GIB;

	return (sl_ns)(1e9 * ((double)bytes / (double)out + (double)bytes / (double)in));
}

sl_ns swap_cost(const struct swap_rules *r, uint64_t workload)
{
	sl_ns sum = 0;

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		for (uint32_t i = 0; i < r->parties; i++) {
			const struct swap_party *p = &r->party[i];

			if (p->used && p->alive && p->workload == workload)
				sum += cost_of(r, gpu,
					sl_sub_sat(p->backing[gpu], p->held[gpu]));
		}
	}
	return sum;
}
