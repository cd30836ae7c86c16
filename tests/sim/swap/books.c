/*
 * books - accounts of what there is, kept from events and actions alone
 */
#include "rules.h"

#include <inttypes.h>
#include <string.h>

/* Some of its memory was on the host: is all of it back? */
static void look_if_whole(struct swap_rules *r, struct swap_party *p, bool was_out)
{
	if (!was_out || swap_party_is_out(p) || (p->order && !p->is_restore))
		return;
	p->resumed = false;
	p->resident_at = r->now;
}

/* --- events --- */

static void on_config(struct swap_rules *r, const struct sl_event *e)
{
	uint32_t chain = e->config.chain ? e->config.chain : SL_RESOLVER_WAIT;

	r->pool = e->config.pool_bytes;
	r->slack = e->config.slack_bytes;
	r->pool_member = e->config.pool_member_bytes;
	r->turn_max = e->config.turn_max ? e->config.turn_max : 10 * SL_S;
	r->recover_wait = e->config.recover_wait;
	r->chain = chain;
	r->wait_max = e->config.wait_max;
	r->stop_idle = e->config.stop_idle;
	r->stop_grace = e->config.stop_grace;
	r->untakeable_after = e->config.untakeable_after;
	r->last_resort = e->config.last_resort;
	r->detaches = e->config.detach;
	r->waits_first = (chain & 15) == SL_RESOLVER_WAIT;
	r->swaps = swap_chain_has(chain, SL_RESOLVER_SWAP);
	r->has_priority = swap_chain_has(chain, SL_RESOLVER_PRIORITY);
	r->contest++;
}

static struct swap_party *new_party(struct swap_rules *r)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		if (!r->party[i].used)
			return &r->party[i];
	}
	return r->parties < SWAP_PARTIES ? &r->party[r->parties++] : NULL;
}

struct swap_member *swap_new_member(struct swap_rules *r)
{
	for (uint32_t i = 0; i < r->members; i++) {
		if (!r->member[i].used)
			return &r->member[i];
	}
	return r->members < SWAP_MEMBERS ? &r->member[r->members++] : NULL;
}

static void forget_party(struct swap_rules *r, struct swap_party *p)
{
	p->used = false;
	while (r->parties && !r->party[r->parties - 1].used)
		r->parties--;
}

static void forget_member(struct swap_rules *r, struct swap_member *m)
{
	m->used = false;
	while (r->members && !r->member[r->members - 1].used)
		r->members--;
}

static void on_join(struct swap_rules *r, const struct sl_event *e)
{
	struct swap_member *m = swap_member_of(r, e->client_join.workload);
	struct swap_party *p;

	if (!m || m->removed || swap_party_of(r, e->client_join.client))
		return;
	p = new_party(r);
	if (!p) {
		swap_break(r, SWAP_ANSWER, "no room for another client");
		return;
	}
	*p = (struct swap_party){.used = true,
		.alive = true,
		.id = e->client_join.client,
		.workload = m->id,
		.expected = e->client_join.expected,
		.swaps = e->client_join.swaps,
		.worked_at = r->now};
	if (p->expected)
		r->recover_until = r->now + r->recover_wait;
}

static void forget_if_gone(struct swap_rules *r, struct swap_party *p)
{
	struct swap_member *m = swap_member_of(r, p->workload);

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		if (p->dying[gpu] || p->paid[gpu])
			return;
	}
	forget_party(r, p);
	if (!m || !m->removed)
		return;
	for (uint32_t i = 0; i < r->parties; i++) {
		if (r->party[i].used && r->party[i].workload == m->id)
			return;
	}
	forget_member(r, m);
}

/* --- the reserve --- */

/* Pays what the reserve could not pay before: the client that joined first comes first. */
static void repay(struct swap_rules *r, uint32_t gpu)
{
	uint64_t room = swap_reserve_room(r, gpu), bytes;

	while (room) {
		struct swap_party *first = NULL;

		for (uint32_t i = 0; i < r->parties; i++) {
			struct swap_party *p = &r->party[i];

			if (p->used && p->hidden[gpu] && (!first || p->id < first->id))
				first = p;
		}
		if (!first)
			return;
		bytes = sl_min_u64(room, first->hidden[gpu]);
		first->hidden[gpu] -= bytes;
		first->paid[gpu] += bytes;
		room -= bytes;
	}
}

static void release(
	struct swap_rules *r, struct swap_party *p, uint32_t gpu, uint64_t remaining)
{
	p->paid[gpu] = sl_min_u64(p->paid[gpu], remaining);
	p->dying[gpu] = sl_min_u64(p->dying[gpu], remaining - p->paid[gpu]);
	repay(r, gpu);
}

void swap_set_measured(
	struct swap_rules *r, struct swap_party *p, uint32_t gpu, uint64_t bytes)
{
	p->paid[gpu] = 0;
	p->paid[gpu] = sl_min_u64(bytes, swap_reserve_room(r, gpu));
	p->hidden[gpu] = bytes - p->paid[gpu];
	repay(r, gpu);
}

static void on_exit(struct swap_rules *r, struct swap_party *p)
{
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		p->dying[gpu] = r->lost_mask >> gpu & 1 ? 0 : swap_party_resident(p, gpu);
		p->evicted[gpu] = p->backing[gpu] = p->hidden[gpu] = p->held[gpu] = 0;
		p->away[gpu] = 0;
		if (r->lost_mask >> gpu & 1)
			release(r, p, gpu, 0);
	}
	memset(p->demand, 0, sizeof(p->demand));
	p->order = 0;
	p->travels = p->termed = false;
	p->alive = p->wants = p->expected = p->resumed = false;
	p->store = 0;
	forget_if_gone(r, p);
	r->contest++;
}

static void on_ask(struct swap_rules *r, struct swap_party *p, const struct sl_event *e)
{
	uint32_t free_at = SWAP_GRANTS;

	for (uint32_t i = 0; i < SWAP_GRANTS; i++) {
		if (p->demand[i].used && p->demand[i].ask == e->ask.ask)
			return;
		if (!p->demand[i].used)
			free_at = i;
	}
	if (free_at == SWAP_GRANTS) {
		swap_break(r, SWAP_ANSWER, "no room for another demand");
		return;
	}
	p->demand[free_at] = (struct swap_demand){.used = true,
		.held = e->ask.flags & SL_NODE_ASK_HELD,
		.there = e->ask.flags & SL_NODE_ASK_THERE,
		.ask = e->ask.ask,
		.bytes = e->ask.bytes,
		.gpu = e->ask.gpu,
		.since = r->now};
	r->contest++;
}

static void on_commit(
	struct swap_rules *r, struct swap_party *p, const struct sl_event *e)
{
	for (uint32_t i = 0; i < SWAP_GRANTS; i++) {
		struct swap_demand *d = &p->demand[i];
		uint64_t used = sl_min_u64(e->commit.used_bytes, d->bytes);

		if (!d->used || !d->epoch || d->epoch != e->commit.epoch)
			continue;
		if (!d->there)
			p->backing[d->gpu] += used;
		if (d->held)
			p->held[d->gpu] =
				sl_min_u64(p->backing[d->gpu], p->held[d->gpu] + used);
		d->used = false;
		r->contest++;
	}
}

static void on_create_failed(struct swap_party *p, const struct sl_event *e)
{
	for (uint32_t i = 0; i < SWAP_GRANTS; i++) {
		struct swap_demand *d = &p->demand[i];

		if (d->used && d->epoch && d->epoch == e->create_failed.epoch)
			d->epoch = 0;
	}
}

static void on_freed(struct swap_rules *r, struct swap_party *p, const struct sl_event *e)
{
	uint32_t gpu = e->freed.gpu;
	uint64_t bytes = sl_min_u64(e->freed.bytes,
		e->freed.evicted ? p->evicted[gpu] : p->backing[gpu] - p->evicted[gpu]);

	bool was_out = swap_party_is_out(p);

	p->backing[gpu] -= bytes;
	if (e->freed.evicted) {
		p->evicted[gpu] -= bytes;
		p->trimmed = bytes ? 0 : p->trimmed;
	}
	look_if_whole(r, p, was_out);
	p->held[gpu] = sl_min_u64(p->held[gpu], p->backing[gpu]);
	r->contest++;
}

/* Of the open order so much more has left. */
static void has_left(struct swap_rules *r, struct swap_party *p, uint64_t more)
{
	/* Its chunks may be larger than what it was told to move. */
	uint64_t moved = sl_min_u64(more, p->order_bytes);
	uint64_t needed = sl_min_u64(moved, p->order_needed);

	p->moved |= more > 0;
	p->order_bytes -= moved;
	p->order_needed -= needed;
	if (p->is_restore || !p->for_others)
		return;
	r->moved += moved;
	r->needed += needed;
	if (r->moved > r->needed + r->needed / 100 + SL_GIB)
		swap_break(r, SWAP_NEEDED,
			"%" PRIu64 " bytes were moved for others so far, and %" PRIu64
			" had sufficed",
			r->moved, r->needed);
}

static void on_done(struct swap_rules *r, struct swap_party *p, const struct sl_event *e)
{
	uint32_t gpu = e->done.gpu;
	uint64_t before;
	bool was_out;

	if (gpu >= SWAP_GPUS || !(r->present_mask >> gpu & 1))
		return;
	was_out = swap_party_is_out(p);
	before = p->evicted[gpu];
	p->evicted[gpu] = sl_min_u64(e->done.evicted_bytes, p->backing[gpu]);
	/* It may be able now to give what it was asked for before. */
	if (p->evicted[gpu] < before)
		p->trimmed = 0;
	if (p->order != e->done.order)
		return;
	p->order = 0;
	p->moved |= p->evicted[gpu] != before;
	has_left(r, p, sl_sub_sat(p->evicted[gpu], before));
	if (!p->moved)
		swap_count(r, p, &p->vain, "orders by which nothing moved");
	/* A client that was resumed while it left comes back for what has left. */
	p->resumed &= p->is_restore || swap_party_evicted(p) > 0;
	/* A lost line says nothing of where memory is; the next report does. */
	if (e->done.cause != SL_SWAP_LOST)
		look_if_whole(r, p, was_out);
	r->contest += e->done.outcome != SL_SWAP_OK;
	if (p->is_restore) {
		p->failed_at = e->done.outcome == SL_SWAP_OK ? 0 : r->now;
	} else if (e->done.outcome == SL_SWAP_OK) {
		p->refused_at = 0;
	} else if (e->done.cause != SL_SWAP_ABORTED && e->done.cause != SL_SWAP_LOST) {
		p->refused_at = r->now;
	}
}

static void on_moved(struct swap_rules *r, struct swap_party *p, const struct sl_event *e)
{
	uint32_t gpu = e->moved.gpu;
	uint64_t more;

	if (gpu >= SWAP_GPUS || p->order != e->moved.order || p->is_restore ||
		p->order_gpu != gpu)
		return;
	more = sl_sub_sat(
		sl_min_u64(e->moved.evicted_bytes, p->backing[gpu]), p->evicted[gpu]);
	p->evicted[gpu] += more;
	has_left(r, p, more);
}

static void on_gpu_lost(struct swap_rules *r, uint32_t gpu)
{
	r->lost_mask |= 1u << gpu;
	for (uint32_t i = 0; i < r->parties; i++) {
		struct swap_party *p = &r->party[i];

		if (!p->used)
			continue;
		if (!p->alive)
			release(r, p, gpu, 0);
		for (uint32_t n = 0; n < SWAP_GRANTS; n++) {
			if (p->demand[n].epoch && p->demand[n].gpu == gpu)
				p->demand[n].used = false;
		}
		if (!p->alive)
			forget_if_gone(r, p);
	}
}

/* A client that was quiet for long begins to compete. */
static void is_active(struct swap_rules *r, uint64_t workload)
{
	struct swap_member *m = swap_member_of(r, workload);

	if (!m)
		return;
	if (r->now - m->active_at > SL_S)
		r->contest++;
	m->active_at = r->now;
}

/* One more process of its workload waits: the wait told before was for the others. */
static void is_joined(struct swap_rules *r, const struct swap_party *p)
{
	struct swap_member *m = swap_member_of(r, p->workload);

	if (m && !p->wants)
		m->contest = 0;
}

static void on_remove(struct swap_rules *r, struct swap_member *m)
{
	m->removed = true;
	m->parked = m->resuming = false;
	r->contest++;
	for (uint32_t i = 0; i < r->parties; i++) {
		if (r->party[i].used && r->party[i].workload == m->id)
			return;
	}
	forget_member(r, m);
}

static void member_event(struct swap_rules *r, const struct sl_event *e)
{
	struct swap_member *m;

	switch (e->type) {
	case SL_EVENT_WORKLOAD_REMOVE:
		m = swap_member_of(r, e->workload_remove.workload);
		if (m)
			on_remove(r, m);
		break;
	case SL_EVENT_WORKLOAD_PARK:
		m = swap_member_of(r, e->workload_park.workload);
		if (m && !m->removed && e->workload_park.recovered)
			m->parked = true;
		break;
	case SL_EVENT_WORKLOAD_RESUME: break;
	case SL_EVENT_WORKLOAD_STOP:
		m = swap_member_of(r, e->workload_stop.workload);
		if (m) {
			m->stopping = true;
			/* What it gave up it does not get back. */
			if (m->parked)
				m->request = 0;
			m->parked = m->resuming = false;
		}
		break;
	default: return;
	}
	r->contest++;
}

static void gpu_event(struct swap_rules *r, const struct sl_event *e)
{
	uint32_t gpu = e->gpu_add.gpu; /* the first field of each of these */

	if (gpu >= SWAP_GPUS)
		return;
	switch (e->type) {
	case SL_EVENT_GPU_ADD:
		r->capacity[gpu] = e->gpu_add.capacity_bytes;
		r->reserve[gpu] = e->gpu_add.reserve_bytes;
		r->present_mask |= 1u << gpu;
		r->fixed_mask &= ~(1u << gpu);
		r->fixed_mask |= (uint32_t)e->gpu_add.fixed << gpu;
		r->lost_mask &= ~(1u << gpu);
		repay(r, gpu);
		break;
	case SL_EVENT_GPU_LOST: on_gpu_lost(r, gpu); break;
	case SL_EVENT_UNMANAGED: r->unmanaged[gpu] = e->unmanaged.bytes; break;
	case SL_EVENT_LINK_COST:
		r->link_out[gpu] = e->link_cost.out_bytes_s;
		r->link_in[gpu] = e->link_cost.in_bytes_s;
		break;
	default: return;
	}
	r->contest++;
}

/* Until it says how much of its memory is on the host, no less is on the GPU than before. */
static void on_report(struct swap_party *p, const struct sl_event *e)
{
	uint32_t gpu = e->client_report.gpu;
	uint64_t here = p->backing[gpu] - p->evicted[gpu];

	p->reports = true;
	p->backing[gpu] = e->client_report.bytes;
	p->evicted[gpu] =
		sl_min_u64(p->evicted[gpu], sl_sub_sat(e->client_report.bytes, here));
}

/* A proof of this idleness stays valid. */
static void on_pulse(struct swap_rules *r, struct swap_party *p, const struct sl_event *e)
{
	bool goes_on = p->pulse_idles &&
		       e->pulse.idle + SL_MS >= p->pulse_idle + (r->now - p->pulse_at);

	p->proven = e->pulse.idle && (e->pulse.proven || (p->proven && goes_on));
	p->pulse_at = r->now;
	p->pulse_idles = e->pulse.idle > 0;
	p->pulse_idle = e->pulse.idle;
	p->pulse_busy = e->pulse.busy;
	if (e->pulse.busy)
		is_active(r, p->workload);
}

/* Of a living client that is known. */
static void party_event(
	struct swap_rules *r, struct swap_party *p, const struct sl_event *e)
{
	switch (e->type) {
	case SL_EVENT_CLIENT_REPORT: on_report(p, e); break;
	case SL_EVENT_CLIENT_EVICTED:
		p->evicted[e->client_evicted.gpu] = sl_min_u64(
			e->client_evicted.bytes, p->backing[e->client_evicted.gpu]);
		break;
	case SL_EVENT_CLIENT_REPORTED: p->expected = p->reports = false; break;
	case SL_EVENT_CLIENT_EXIT: on_exit(r, p); break;
	case SL_EVENT_ASK: on_ask(r, p, e); break;
	case SL_EVENT_COMMIT: on_commit(r, p, e); break;
	case SL_EVENT_CREATE_FAILED: on_create_failed(p, e); break;
	case SL_EVENT_FREED: on_freed(r, p, e); break;
	case SL_EVENT_WANT:
		if (e->want.wants && !p->wants && !p->resumed)
			p->wants_at = r->now;
		if (e->want.wants) {
			is_joined(r, p);
			is_active(r, p->workload);
		}
		p->wants = e->want.wants;
		break;
	case SL_EVENT_DONE: on_done(r, p, e); break;
	case SL_EVENT_MOVED: on_moved(r, p, e); break;
	case SL_EVENT_STORE:
		p->store = e->store.bytes;
		p->trimmed = 0;
		break;
	case SL_EVENT_HIDDEN:
		/* A sample of a process that is away, or on its way, may be older than that. */
		if (!swap_party_away(p) && !p->travels)
			swap_set_measured(r, p, e->hidden.gpu, e->hidden.bytes);
		break;
	case SL_EVENT_CLIENT_AWAY: swap_on_away(r, p, e); break;
	case SL_EVENT_PLACED: swap_on_placed(r, p, e); break;
	case SL_EVENT_HELD:
		p->held[e->held.gpu] = sl_min_u64(e->held.bytes, p->backing[e->held.gpu]);
		p->doubted &= ~(1u << e->held.gpu);
		break;
	case SL_EVENT_WORK:
		p->worked_at = r->now;
		p->pulse_idles = p->proven = false;
		is_active(r, p->workload);
		break;
	case SL_EVENT_PULSE: on_pulse(r, p, e); break;
	case SL_EVENT_CONDITION:
		if (p->condition == SL_CONDITION_RUNNING)
			p->condition_at = r->now;
		p->condition = e->condition.condition;
		break;
	case SL_EVENT_STOP_FAILED:
		p->termed = false;
		r->contest++;
		break;
	default: break;
	}
}

void swap_books_event(struct swap_rules *r, const struct sl_event *e)
{
	/* The first field of every event about one client is the client. */
	uint64_t id = e->client_exit.client;
	struct swap_party *p;

	switch (e->type) {
	case SL_EVENT_CONFIG: on_config(r, e); return;
	case SL_EVENT_POOL_SIZE:
		r->pool = e->pool_size.pool_bytes;
		r->contest++;
		return;
	case SL_EVENT_GPU_ADD:
	case SL_EVENT_GPU_LOST:
	case SL_EVENT_UNMANAGED:
	case SL_EVENT_LINK_COST: gpu_event(r, e); return;
	case SL_EVENT_WORKLOAD_ADD:
	case SL_EVENT_WORKLOAD_SET:
	case SL_EVENT_WORKLOAD_PARK:
	case SL_EVENT_WORKLOAD_RESUME:
	case SL_EVENT_WORKLOAD_STOP:
	case SL_EVENT_WORKLOAD_REMOVE: member_event(r, e); return;
	case SL_EVENT_CLIENT_JOIN: on_join(r, e); return;
	case SL_EVENT_STRANGER:
	case SL_EVENT_TIME: return;
	case SL_EVENT_RELEASED:
		p = swap_party_of(r, id);
		if (p && !p->alive) {
			release(r, p, e->released.gpu, e->released.remaining_bytes);
			forget_if_gone(r, p);
		}
		return;
	default: break;
	}
	p = swap_party_of(r, id);
	if (!p || !p->alive)
		return;
	party_event(r, p, e);
	/* What a report puts on the host in addition has no room until another RESTORE. */
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++)
		p->returns[gpu] = sl_min_u64(p->returns[gpu], p->evicted[gpu]);
}
