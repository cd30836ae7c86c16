/*
 * swap_rules - what may not be, after every action and every step; see the header
 */
#include "swap_rules.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

void swap_rules_fail(struct swap_rules *r, const char *format, ...)
{
	va_list args;

	if (r->failed[0])
		return;
	va_start(args, format);
	(void)vsnprintf(r->failed, sizeof(r->failed), format, args);
	va_end(args);
}

void swap_rules_init(struct swap_rules *r)
{
	memset(r, 0, sizeof(*r));
	r->wake = SL_NS_NEVER;
	r->turn_max = 10 * SL_S;
	r->min_share_pm = 50;
}

/* --- who waits --- */

bool swap_party_wants(const struct swap_party *p)
{
	return p->used && p->alive && swap_party_evicted(p) &&
	       (p->wants || p->resumed || swap_party_asks(p));
}

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

/* A waiting demand within the request of its workload, also if that is parked. */
bool swap_is_entitled(const struct swap_rules *r, const struct swap_member *m,
	const struct swap_demand *d)
{
	return !m->removed && m->mask >> d->gpu & 1 &&
	       swap_use(r, m->id, d->gpu) + (d->there ? 0 : d->bytes) <= m->request;
}

static bool member_asks_entitled(const struct swap_rules *r, const struct swap_member *m)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (!p->used || !p->alive || p->workload != m->id)
			continue;
		for (uint32_t n = 0; n < SWAP_GRANTS; n++) {
			if (p->demand[n].used && !p->demand[n].epoch &&
				swap_is_entitled(r, m, &p->demand[n]))
				return true;
		}
	}
	return false;
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

/* Somebody of it wants to come back, and wherever he lacks something all of it is within its
 * request. */
static bool wants_entitled(const struct swap_rules *r, const struct swap_member *m)
{
	for (uint32_t i = 0; i < r->parties && !m->parked; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->workload == m->id && swap_party_wants(p) && swap_is_owed(r, p, m))
			return true;
	}
	return false;
}

/* All that is wanted on the GPU by those who wait. */
uint64_t swap_needs(const struct swap_rules *r, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (!p->used || !p->alive)
			continue;
		if (swap_party_wants(p))
			sum += p->evicted[gpu] - swap_party_returning(p, gpu);
		for (uint32_t n = 0; n < SWAP_GRANTS; n++) {
			if (p->demand[n].used && !p->demand[n].epoch &&
				p->demand[n].gpu == gpu)
				sum += p->demand[n].bytes;
		}
	}
	for (uint32_t i = 0; i < r->members; i++) {
		if (r->member[i].used && r->member[i].resuming)
			sum += r->member[i].request;
	}
	return sum;
}

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

/* How long it has done nothing, as far as the node was told; and since it is back. */
sl_ns swap_quiet_of(const struct swap_rules *r, const struct swap_party *p)
{
	if (!p->pulse_idles || p->pulse_at < p->worked_at)
		return 0;
	return p->pulse_idle + (r->now - p->pulse_at);
}

sl_ns swap_idle_of(const struct swap_rules *r, const struct swap_party *p)
{
	return sl_min_u64(swap_quiet_of(r, p), r->now - p->resident_at);
}

/* Since when nothing of it has worked, as far as the node was told. */
static sl_ns quiet_member(const struct swap_rules *r, const struct swap_member *m)
{
	sl_ns quiet = SL_NS_NEVER;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];
		uint64_t has = 0;

		for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++)
			has += p->backing[gpu];
		if (p->used && p->alive && p->swaps && p->workload == m->id && has)
			quiet = sl_min_u64(quiet, swap_idle_of(r, p));
	}
	return quiet;
}

/* --- actions --- */

static void on_admit(struct swap_rules *r, const struct sl_action *a)
{
	const struct sl_event *e = &r->event;
	struct swap_member *m = swap_new_member(r);

	if (!m) {
		swap_rules_fail(r, "the rules have no room for another workload");
		return;
	}
	*m = (struct swap_member){.used = true,
		.id = a->admit.workload,
		.request = a->admit.request_bytes,
		.limit = a->admit.limit_bytes,
		.mask = a->admit.gpu_mask,
		.flags = e->workload_add.flags,
		.priority = e->workload_add.priority,
		.warm_after = e->workload_add.warm_after,
		.idle_grace = e->workload_add.idle_grace};
}

static void on_set_done(struct swap_rules *r, const struct sl_action *a)
{
	const struct sl_event *e = &r->event;
	struct swap_member *m = swap_member_of(r, a->set_done.workload);

	if (!m)
		return;
	r->contest++;
	if (e->type == SL_EVENT_WORKLOAD_PARK && e->workload_park.workload == m->id) {
		m->parked = true;
		m->resuming = false;
	} else if (e->type == SL_EVENT_WORKLOAD_SET &&
		   e->workload_set.workload == m->id) {
		m->request = a->set_done.request_bytes;
		m->limit = a->set_done.limit_bytes;
		m->priority = a->set_done.priority;
		if (e->workload_set.which & SL_SET_FLAGS)
			m->flags = e->workload_set.flags;
		if (e->workload_set.which & SL_SET_WARM)
			m->warm_after = e->workload_set.warm_after;
		if (e->workload_set.which & SL_SET_GRACE)
			m->idle_grace = e->workload_set.idle_grace;
	} else if (e->type != SL_EVENT_WORKLOAD_RESUME ||
		   e->workload_resume.workload != m->id) {
		swap_rules_fail(r,
			"SET_DONE for workload %" PRIu64 " that nobody changes", m->id);
	}
}

static void on_note(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p;

	if (a->note.reason == SL_REASON_UNSETTLED)
		swap_rules_fail(r, "a step did not come to an end by itself");
	if (a->note.reason != SL_REASON_STOP_REVOKED)
		return;
	p = swap_party_of(r, a->note.client);
	if (p)
		p->termed = false;
}

static void on_parked(struct swap_rules *r, const struct sl_action *a)
{
	const struct swap_member *m = swap_member_of(r, a->parked.workload);

	if (!m || !m->parked || m->resuming)
		swap_rules_fail(r,
			"workload %" PRIu64
			" is told to be parked, which nobody asked for",
			a->parked.workload);
}

/* The request is claimed again exactly then: the journal relies on it. */
static void on_resumed(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_member *m = swap_member_of(r, a->resumed.workload);

	if (!m || !m->resuming)
		swap_rules_fail(r,
			"workload %" PRIu64 " is resumed, which nobody asked for",
			a->resumed.workload);
	else
		m->parked = m->resuming = false;
	r->contest++;
	for (uint32_t i = 0; m && i < r->parties; i++) {
		struct swap_party *p = &r->party[i];

		if (p->used && p->alive && p->workload == m->id)
			p->resumed = swap_party_evicted(p) > 0 || p->order;
		if (p->used && p->alive && p->workload == m->id && p->resumed &&
			!p->wants)
			p->wants_at = r->now;
	}
	for (uint32_t i = 0; m && i < r->members; i++) {
		const struct swap_member *other = &r->member[i];

		if (other->used && other->resuming && other->mask & m->mask &&
			other->resuming_since < m->resuming_since)
			swap_rules_fail(r,
				"workload %" PRIu64 " is resumed, and %" PRIu64
				" waits for longer",
				m->id, other->id);
	}
}

/* Only of the client of this step's CLIENT_EXIT. */
static void on_left(struct swap_rules *r, const struct sl_action *a)
{
	if (r->event.type != SL_EVENT_CLIENT_EXIT ||
		r->event.client_exit.client != a->left.client)
		swap_rules_fail(
			r, "client %" PRIu64 " left, which lives", a->left.client);
}

static struct swap_demand *demand_of(struct swap_party *p, uint64_t ask)
{
	for (uint32_t i = 0; p && i < SWAP_GRANTS; i++) {
		if (p->demand[i].used && p->demand[i].ask == ask)
			return &p->demand[i];
	}
	return NULL;
}

/* What is measured besides is nothing that it could have a turn with. */
static bool has_memory(const struct swap_rules *r, uint64_t workload)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		for (uint32_t gpu = 0;
			p->used && p->alive && p->workload == workload && gpu < SWAP_GPUS;
			gpu++) {
			if (p->backing[gpu] || swap_party_granted(p, gpu))
				return true;
		}
	}
	return false;
}

static void on_grant(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = swap_party_of(r, a->grant.client);
	struct swap_demand *d = demand_of(p, a->grant.ask);
	struct swap_member *m = p ? swap_member_of(r, p->workload) : NULL;
	uint32_t gpu = a->grant.gpu;
	uint64_t before, after;
	bool entitled;

	if (!d || d->epoch || !m || !p->alive) {
		swap_rules_fail(r, "GRANT %" PRIu64 "/%" PRIu64 " of no waiting demand",
			a->grant.client, a->grant.ask);
		return;
	}
	entitled = swap_is_entitled(r, m, d) && !m->parked;
	before = swap_i2(r) - swap_lent_above(r, m, d);
	if (p->order)
		swap_rules_fail(r,
			"GRANT to client %" PRIu64 ", whose order %" PRIu64 " is open",
			p->id, p->order);
	if (swap_party_evicted(p))
		swap_rules_fail(r,
			"GRANT to client %" PRIu64 ", of which %" PRIu64
			" bytes are on the host",
			p->id, swap_party_evicted(p));
	if (m->parked)
		swap_rules_fail(
			r, "GRANT to client %" PRIu64 " of a parked workload", p->id);
	if (swap_recovers(r))
		swap_rules_fail(r, "GRANT before all clients have reported");
	if (!has_memory(r, m->id))
		m->turn_began = r->now;
	m->whole_at = r->now;
	d->epoch = a->grant.epoch;
	after = swap_i2(r) - swap_lent_above(r, m, d);
	if (swap_use(r, m->id, gpu) > m->limit)
		swap_rules_fail(
			r, "GRANT takes workload %" PRIu64 " above its limit", m->id);
	if (swap_physical(r, gpu) > swap_shareable(r, gpu))
		swap_rules_fail(r,
			"GRANT on GPU %u: %" PRIu64 " on it of %" PRIu64
			" that can be shared",
			gpu, swap_physical(r, gpu), swap_shareable(r, gpu));
	if (!entitled && after > sl_sub_sat(r->pool, r->slack) && after > before)
		swap_rules_fail(r,
			"I2: a burst is granted on GPU %u; evicted + leaving + overlap "
			"are then %" PRIu64 " (%" PRIu64
			" of it on requests of higher priority), the pool less its slack "
			"%" PRIu64,
			gpu, swap_i2(r), swap_i2(r) - after,
			sl_sub_sat(r->pool, r->slack));
	if (!entitled && after > before &&
		(!r->swaps || !p->swaps || m->flags & SL_WORKLOAD_NO_SWAP || d->held))
		swap_rules_fail(r,
			"GRANT to client %" PRIu64
			" on others' requests, from which it cannot be moved again",
			p->id);
}

/* Of others on the GPU, what nobody has used for long and nothing keeps from being moved. */
uint64_t swap_idle_bytes(struct swap_rules *r, uint64_t workload, uint32_t gpu)
{
	const struct swap_member *own = swap_member_of(r, workload);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];
		const struct swap_member *m = swap_member_of(r, p->workload);

		if (!p->used || !p->alive || !m || m->id == workload || !p->swaps ||
			/* For a lower priority only once it is proven, and with `swap` alone nobody
			 * knows of whom to ask that. */
			(!r->waits && !r->has_priority && !p->proven && own &&
				m->priority > own->priority) ||
			m->flags & SL_WORKLOAD_NO_SWAP || p->order || p->refused_at ||
			/* Whoever is stopped or does not answer cannot be told to. */
			p->condition != SL_CONDITION_RUNNING ||
			/* Who waits to come back uses what is still there of him. */
			swap_party_wants(p) ||
			/* Nor does what it did before it left say anything of now. */
			r->now < sl_max_u64(p->worked_at, p->resident_at) +
					 sl_max_u64(10 * SL_S, m->idle_grace) +
					 2 * swap_cost(r, m->id) ||
			(m->idle_grace && quiet_member(r, m) < m->idle_grace + SL_S))
			continue;
		for (uint32_t n = 0; n < SWAP_GRANTS; n++) {
			if (p->demand[n].used)
				return 0;
		}
		sum += sl_sub_sat(p->backing[gpu] - p->evicted[gpu], p->held[gpu]);
	}
	return sum;
}

/* It waited for the longest wait, or would not wait, while what others did not use could have gone
 * to the host. */
static void judge_denied(
	struct swap_rules *r, const struct swap_party *p, const struct swap_demand *d)
{
	if (swap_could_be_moved(r, p, d))
		swap_rules_fail(r,
			"%" PRIu64 "/%" PRIu64 " is denied %" PRIu64
			" bytes on GPU %u, where others have %" PRIu64
			" that they do not use and that could be moved",
			p->id, d->ask, d->bytes, d->gpu,
			swap_idle_bytes(r, p->workload, d->gpu));
}

static void on_deny(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = swap_party_of(r, a->deny.client);
	struct swap_demand *d = demand_of(p, a->deny.ask);
	struct swap_member *m = p ? swap_member_of(r, p->workload) : NULL;

	if (!d || !m)
		return;
	switch (a->deny.reason) {
	case SL_REASON_DRIVER_REFUSES:
	case SL_REASON_UNTAKEABLE:
	case SL_REASON_RETURN_UNTAKEABLE:
	case SL_REASON_GPU_LOST:
	case SL_REASON_UNKNOWN_CLIENT:
	case SL_REASON_CANCELLED: break;
	default:
		if (swap_is_entitled(r, m, d) && !m->stopping)
			swap_rules_fail(r,
				"%s for %" PRIu64 "/%" PRIu64
				", which is within the request of workload %" PRIu64 "%s",
				sl_reason_name(a->deny.reason), p->id, d->ask, m->id,
				m->parked ? " (parked)" : "");
	}
	if (a->deny.reason == SL_REASON_WAITED_TOO_LONG ||
		a->deny.reason == SL_REASON_HOPELESS ||
		a->deny.reason == SL_REASON_NO_RESOLVER)
		judge_denied(r, p, d);
	d->used = false;
}

/* Of all that may compete: the policy cuts turns so that the one of the largest weight is
 * turn_max. */
static uint64_t weight_of(const struct swap_rules *r, const struct swap_member *m)
{
	uint64_t shareable = UINT64_MAX;

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		if (m->mask >> gpu & 1)
			shareable = sl_min_u64(shareable, swap_shareable(r, gpu));
	}
	return sl_max_u64(sl_max_u64(m->request, shareable / 20), 1);
}

/* At least: ten times what moving it costs, or its part of turn_max if that is less. */
sl_ns swap_least_turn(const struct swap_rules *r, const struct swap_member *m)
{
	sl_ns base = sl_max_u64(10 * swap_cost(r, m->id), 200 * SL_MS), cut;
	uint64_t largest = weight_of(r, m);

	for (uint32_t i = 0; i < r->members; i++) {
		if (r->member[i].used && !r->member[i].parked)
			largest = sl_max_u64(largest, weight_of(r, &r->member[i]));
	}
	cut = (sl_ns)((double)r->turn_max / (double)largest * (double)weight_of(r, m));
	return sl_min_u64(base, sl_max_u64(cut, sl_min_u64(200 * SL_MS, r->turn_max)));
}

bool swap_is_within(const struct swap_rules *r, const struct swap_member *m)
{
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		if (swap_use(r, m->id, gpu) > swap_request(m, gpu))
			return false;
	}
	return true;
}

/* The rules of turns, for a busy victim that is taken for another workload. A microsecond is for
 * rounding. */
static void judge_turn(struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *m, const struct swap_member *other, uint32_t gpu)
{
	sl_ns part = sl_max_u64(20 * SL_MS, swap_party_cost(r, p, gpu));
	/* What waits for memory itself has nothing to do until it has it. */
	sl_ns enough = swap_party_asks(p) ? 20 * SL_MS : part;
	sl_ns first = sl_min_u64(part, 200 * SL_MS);
	sl_ns turn = swap_least_turn(r, m);
	/* Those of one workload take turns one by one. */
	sl_ns began =
		other == m ? sl_max_u64(m->turn_began, p->resident_at) : m->turn_began;
	sl_ns had = r->now - began + SL_US;
	bool entitled = member_asks_entitled(r, other) || wants_entitled(r, other);

	if ((p->proven && swap_idle_of(r, p) + SL_US >= enough) ||
		swap_party_evicted(p) ||
		(other->priority > m->priority && (entitled || !swap_is_within(r, m))) ||
		had >= turn)
		return;
	if (!entitled)
		swap_rules_fail(r,
			"busy workload %" PRIu64 " is taken %" PRIu64
			" us into a turn of %" PRIu64 " us at least",
			m->id, swap_us(had), swap_us(turn));
	else if (swap_resident(r, m->id, gpu) <= swap_request(m, gpu))
		swap_rules_fail(r,
			"workload %" PRIu64
			", busy and within its request, is taken before its turn is over",
			m->id);
	else if (r->now - sl_max_u64(m->turn_began, p->resident_at) + SL_US < first)
		swap_rules_fail(r,
			"workload %" PRIu64 " is taken %" PRIu64
			" us into its turn, whose first part are %" PRIu64 " us",
			m->id, swap_us(had), swap_us(first));
}

/* Guaranteed means there: for a burst nothing within a request moves that was at work lately. */
static void judge_grace(struct swap_rules *r, const struct swap_member *m,
	const struct swap_member *other)
{
	if (m->idle_grace && m != other && !m->parked && swap_is_within(r, m) &&
		quiet_member(r, m) + SL_US < m->idle_grace)
		swap_rules_fail(r,
			"workload %" PRIu64
			", within its request, is moved for a burst of %" PRIu64
			" after %" PRIu64 " ms without work, of %" PRIu64,
			m->id, other->id, swap_ms(quiet_member(r, m)),
			swap_ms(m->idle_grace));
}

static bool has_burst(struct swap_rules *r, uint32_t gpu)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];
		const struct swap_member *m = swap_member_of(r, p->workload);

		for (uint32_t n = 0; p->used && m && n < SWAP_GRANTS; n++) {
			if (p->demand[n].used && !p->demand[n].epoch &&
				p->demand[n].gpu == gpu &&
				!swap_is_entitled(r, m, &p->demand[n]))
				return true;
		}
	}
	return false;
}

/* Nobody leaves for another one of its workload while what is free, and what others do not use,
 * suffices for all who wait. */
static void judge_sibling(struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *m, uint32_t gpu)
{
	uint64_t room = sl_sub_sat(swap_shareable(r, gpu), swap_physical(r, gpu)) +
			swap_idle_bytes(r, m->id, gpu);
	bool is_wanted = false;

	for (uint32_t i = 0; i < r->parties; i++)
		is_wanted |= &r->party[i] != p && r->party[i].workload == m->id &&
			     swap_party_wants(&r->party[i]);
	if (!is_wanted)
		swap_rules_fail(r,
			"client %" PRIu64
			" is evicted for its own workload, of which nobody else waits",
			p->id);
	else if (swap_needs(r, gpu) <= room && !swap_is_spread(m) && !r->pool_member)
		swap_rules_fail(r,
			"client %" PRIu64
			" is evicted for another one of its workload, for whom others "
			"could be moved",
			p->id);
}

static void judge_reason(struct swap_rules *r, const struct sl_action *a,
	const struct swap_party *p, const struct swap_member *m)
{
	struct swap_member *other =
		a->evict.other ? swap_member_of(r, a->evict.other) : NULL;
	uint32_t gpu = a->evict.gpu;
	uint64_t leaving = 0;

	if (m->parked)
		return;
	if (!a->evict.other) {
		if (!m->warm_after || swap_quiet_of(r, p) + SL_US < m->warm_after)
			swap_rules_fail(r,
				"client %" PRIu64 " is evicted for nobody, neither "
				"parked nor idle for %" PRIu64 " ms",
				p->id, swap_ms(m->warm_after));
		return;
	}
	if (other == m)
		judge_sibling(r, p, m, gpu);
	if (!other || !swap_member_waits(r, other)) {
		swap_rules_fail(r,
			"client %" PRIu64 " is evicted for workload %" PRIu64
			", which does not wait",
			p->id, a->evict.other);
		return;
	}
	for (uint32_t i = 0; i < r->parties; i++) {
		/* Whoever is stopped or does not answer may never give it. */
		if (r->party[i].used && r->party[i].alive && &r->party[i] != p &&
			r->party[i].condition == SL_CONDITION_RUNNING &&
			!r->party[i].aborted)
			leaving += swap_party_leaving(&r->party[i], gpu);
	}
	leaving += swap_going(r, gpu);
	/* A burst may have to leave others what they have not claimed. */
	if (swap_physical(r, gpu) + swap_needs(r, gpu) +
				(has_burst(r, gpu) ? swap_unclaimed_then(r, gpu) : 0) <=
			swap_shareable(r, gpu) + leaving &&
		!(r->forced_mask >> gpu & 1) && !swap_is_spread(m))
		swap_rules_fail(r,
			"client %" PRIu64
			" is evicted from GPU %u though what leaves it already suffices",
			p->id, gpu);
	judge_turn(r, p, m, other, gpu);
}

/* Behind `wait` in the chain others are moved for nobody's burst before his longest wait is
 * over. */
static void judge_ripe(
	struct swap_rules *r, const struct swap_party *p, const struct swap_member *other)
{
	sl_ns since = r->now;

	if (!r->waits_first || wants_entitled(r, other))
		return;
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *o = &r->party[i];

		if (!o->used || !o->alive || o->workload != other->id)
			continue;
		if (swap_party_wants(o))
			since = sl_min_u64(since, o->wants_at);
		for (uint32_t n = 0; n < SWAP_GRANTS; n++) {
			if (o->demand[n].used && !o->demand[n].epoch)
				since = sl_min_u64(since, o->demand[n].since);
		}
	}
	if (r->now - since < r->wait_max)
		swap_rules_fail(r,
			"client %" PRIu64 " is evicted for workload %" PRIu64
			", which has waited for %" PRIu64 " ms of %" PRIu64,
			p->id, other->id, swap_ms(r->now - since), swap_ms(r->wait_max));
}

/* Somebody else has copies that nobody told it to give back: these go first. */
static bool has_copies(const struct swap_rules *r, const struct swap_party *but)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->used && p->alive && p != but && !p->order && !p->trimmed &&
			p->store > swap_party_evicted(p))
			return true;
	}
	return false;
}

static void on_evict(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = swap_party_of(r, a->evict.client);
	struct swap_member *m = p ? swap_member_of(r, p->workload) : NULL;
	uint32_t gpu = a->evict.gpu;
	uint64_t before = swap_i2(r), there, room = sl_sub_sat(r->pool, r->slack);
	struct swap_member *other =
		a->evict.other ? swap_member_of(r, a->evict.other) : NULL;
	bool entitled;

	r->evicts++;
	if (!p || !p->alive || !m || gpu >= SWAP_GPUS) {
		swap_rules_fail(
			r, "EVICT of nobody (client %" PRIu64 ")", a->evict.client);
		return;
	}
	entitled = other && (member_asks_entitled(r, other) || wants_entitled(r, other));
	/* Where promises are broken already, the node believes less of what it is said to hold than
	 * it says, and counts on more. */
	there = sl_sub_sat(p->backing[gpu] - p->evicted[gpu],
		r->forced_mask >> gpu & 1 ? 0 : p->held[gpu]);
	if (p->order)
		swap_rules_fail(r,
			"EVICT of client %" PRIu64 ", whose order %" PRIu64 " is open",
			p->id, p->order);
	for (uint32_t i = 0; i < SWAP_GRANTS; i++) {
		if (p->demand[i].used && p->demand[i].epoch)
			swap_rules_fail(r,
				"EVICT of client %" PRIu64 " with grant %" PRIu64
				" not committed",
				p->id, p->demand[i].epoch);
	}
	if (!p->swaps || m->flags & SL_WORKLOAD_NO_SWAP)
		swap_rules_fail(r,
			"EVICT of client %" PRIu64 ", which is not to be swapped", p->id);
	if (swap_is_going(r, p))
		swap_rules_fail(
			r, "EVICT of client %" PRIu64 ", which was told to end", p->id);
	if (other)
		judge_ripe(r, p, other);
	if (p->expected)
		swap_rules_fail(
			r, "EVICT of client %" PRIu64 ", which has not reported", p->id);
	/* Who is parked, or warm, goes there for nobody. */
	if (!r->pool || (!r->swaps && other))
		swap_rules_fail(
			r, "EVICT of client %" PRIu64 " with swapping off", p->id);
	if (!there || !a->evict.bytes)
		swap_rules_fail(r,
			"EVICT of client %" PRIu64 ", which has nothing to move", p->id);
	if (r->lost_mask >> gpu & 1)
		swap_rules_fail(r, "EVICT on lost GPU %u", gpu);
	p->order = a->id;
	p->order_bytes = sl_min_u64(a->evict.bytes, there);
	p->order_gpu = gpu;
	p->is_restore = p->aborted = p->gives = false;
	p->order_for = a->evict.other;
	p->order_at = r->now;
	/* The slack, and what is lent, are there so that who is entitled is never kept from an
	 * exchange. */
	if (swap_evicted(r, 0) + swap_leaving(r) > r->pool)
		swap_rules_fail(r,
			"EVICT of client %" PRIu64 ": %" PRIu64
			" bytes are then on the host, of %" PRIu64,
			p->id, swap_evicted(r, 0) + swap_leaving(r), r->pool);
	if (!entitled && swap_i2(r) > room && swap_i2(r) > before)
		swap_rules_fail(r,
			"I2: EVICT of client %" PRIu64
			": evicted + leaving + overlap are then %" PRIu64
			", before %" PRIu64 ", of %" PRIu64,
			p->id, swap_i2(r), before, room);
	if (other && !entitled)
		swap_judge_way_back(r, p, other);
	if (other && !entitled)
		judge_grace(r, m, other);
	if (r->pool_member && swap_evicted(r, m->id) + p->order_bytes > r->pool_member)
		swap_rules_fail(r,
			"EVICT takes workload %" PRIu64 " above its bound on the host",
			m->id);
	if (r->quiet && swap_made(r) > r->pool && has_copies(r, p))
		swap_rules_fail(r,
			"EVICT of client %" PRIu64 " takes %" PRIu64
			" of host memory with all copies, of %" PRIu64,
			p->id, swap_made(r), r->pool);
	if (p->refusals && r->now - p->refused_at + SL_US <
				   sl_min_u64(5 * SL_S, (100 * SL_MS) << sl_min_u64(
								p->refusals - 1, 10)))
		swap_rules_fail(r,
			"client %" PRIu64 " is asked again %" PRIu64
			" ms after it refused for the %uth time",
			p->id, swap_ms(r->now - p->refused_at), p->refusals);
	p->resumed &= swap_party_evicted(p) > 0;
	p->order = 0; /* not yet, for those who look at what was before */
	judge_reason(r, a, p, m);
	p->order = a->id;
}

/* What the client has to bring back: what must be free for it. */
static uint64_t out_of(
	const struct swap_rules *r, const struct swap_member *m, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		if (r->party[i].used && r->party[i].alive &&
			r->party[i].workload == m->id)
			sum += r->party[i].evicted[gpu];
	}
	return sum;
}

/* Could this one have come back instead? One client, nothing else of it under way or refused. */
static bool is_ready(const struct swap_rules *r, const struct swap_member *m)
{
	uint32_t clients = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (!p->used || !p->alive || p->workload != m->id)
			continue;
		clients++;
		if (p->order || p->refused_at || p->failed_at || swap_party_asks(p) ||
			p->expected || p->comes || p->condition != SL_CONDITION_RUNNING)
			return false;
	}
	return clients == 1 && !m->removed && !m->stopping;
}

/* It has waited for its least share beside a higher priority: it comes before all others, for one
 * turn. */
static bool may_be_promoted(const struct swap_rules *r, const struct swap_member *m)
{
	bool is_below = false;

	for (uint32_t i = 0; i < r->members; i++)
		is_below |= r->member[i].used && r->member[i].mask & m->mask &&
			    r->member[i].priority > m->priority;
	return is_below &&
	       r->now - m->wants_since >= 200 * SL_MS * 1000 / r->min_share_pm;
}

/* Higher priority first, then who has waited longer, as far as what fits for the one fits for the
 * other. */
static void judge_order(struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *m, uint32_t gpu)
{
	if (swap_recovers(r) || swap_is_spread(m) || !is_ready(r, m) || !m->wants_since)
		return;
	for (uint32_t i = 0; i < r->members; i++) {
		const struct swap_member *o = &r->member[i];

		if (wants_entitled(r, m) && !wants_entitled(r, o))
			continue;
		if (!o->used || o == m || o->mask != m->mask || !o->wants_since ||
			!swap_member_wants(r, o) || !is_ready(r, o) ||
			out_of(r, o, gpu) > p->evicted[gpu])
			continue;
		if (o->priority == m->priority && o->wants_since < m->wants_since &&
			!may_be_promoted(r, m))
			swap_rules_fail(r,
				"client %" PRIu64 " comes back before workload %" PRIu64
				", which waits for longer for no more",
				p->id, o->id);
		/* A lower one may be promoted, once it has waited for turn / min_share. */
		if (o->priority > m->priority &&
			r->now - m->wants_since < 200 * SL_MS * 1000 / r->min_share_pm)
			swap_rules_fail(r,
				"client %" PRIu64 " comes back before workload %" PRIu64
				" of higher priority",
				p->id, o->id);
	}
}

/* A part comes back only while what it lacks leaves, and some of that has; never of what is on
 * several GPUs; and not one of which nothing can come, again. */
static void judge_part(
	struct swap_rules *r, const struct sl_action *a, const struct swap_party *p)
{
	uint32_t gpu = a->restore.gpu, out = 0;
	bool flows = false;

	r->parts++;
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *o = &r->party[i];

		flows |= o->used && o->alive && o->order && !o->is_restore &&
			 o->order_gpu == gpu && o->gives && !o->aborted;
	}
	for (uint32_t i = 0; i < SWAP_GPUS; i++)
		out += p->evicted[i] > 0;
	if (a->restore.bytes > p->evicted[gpu] || out > 1)
		swap_rules_fail(r,
			"RESTORE of %" PRIu64 " bytes of client %" PRIu64
			", which has %" PRIu64 " there on the host, and some on %u GPUs",
			a->restore.bytes, p->id, p->evicted[gpu], out);
	else if (!flows)
		swap_rules_fail(r,
			"RESTORE of %" PRIu64 " of %" PRIu64 " bytes of client %" PRIu64
			", and nothing has left for it",
			a->restore.bytes, p->evicted[gpu], p->id);
	else if (a->restore.bytes <= p->vain)
		swap_rules_fail(r,
			"RESTORE of %" PRIu64 " bytes of client %" PRIu64
			", of which nothing came back the last time",
			a->restore.bytes, p->id);
}

static void on_restore(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = swap_party_of(r, a->restore.client);
	struct swap_member *m = p ? swap_member_of(r, p->workload) : NULL;
	uint32_t gpu = a->restore.gpu;

	r->restores++;
	if (!p || !p->alive || !m || gpu >= SWAP_GPUS || !p->evicted[gpu]) {
		swap_rules_fail(r,
			"RESTORE of client %" PRIu64 ", which has nothing on the host",
			a->restore.client);
		return;
	}
	if (p->order)
		swap_rules_fail(r,
			"RESTORE of client %" PRIu64 ", whose order %" PRIu64 " is open",
			p->id, p->order);
	if (m->parked)
		swap_rules_fail(
			r, "RESTORE of client %" PRIu64 ", which is parked", p->id);
	if (p->expected)
		swap_rules_fail(r,
			"RESTORE of client %" PRIu64 ", which has not reported", p->id);
	if (p->condition != SL_CONDITION_RUNNING)
		swap_rules_fail(
			r, "RESTORE of client %" PRIu64 ", which is stopped", p->id);
	if (r->lost_mask >> gpu & 1)
		swap_rules_fail(r, "RESTORE on lost GPU %u", gpu);
	if (a->restore.bytes != p->evicted[gpu])
		judge_part(r, a, p);
	if (!p->begun)
		judge_order(r, p, m, gpu);
	p->order = a->id;
	p->order_bytes = a->restore.bytes;
	p->order_gpu = gpu;
	p->is_restore = true;
	p->comes = a->restore.bytes == p->evicted[gpu];
	p->part = !p->comes;
	p->part_out = p->evicted[gpu];
	p->aborted = false;
	p->order_at = r->now;
	if (swap_physical(r, gpu) > swap_shareable(r, gpu))
		swap_rules_fail(r,
			"RESTORE on GPU %u: %" PRIu64 " are then on it of %" PRIu64
			" that can be shared",
			gpu, swap_physical(r, gpu), swap_shareable(r, gpu));
}

/* Told to leave, and not to, at one instant: two looks that do not agree, of which each takes back
 * what the other did as fast as the answers come. */
static void judge_let_go(struct swap_rules *r, struct swap_party *p)
{
	enum { MOST = 8 };

	if (p->order_at != r->now)
		return;
	p->let_go = p->let_go_at == r->now ? p->let_go + 1 : 1;
	p->let_go_at = r->now;
	if (p->let_go > MOST)
		swap_rules_fail(r,
			"client %" PRIu64
			" is told to leave and not to leave %u times at once",
			p->id, p->let_go);
}

static void on_abort(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = swap_party_of(r, a->abort.client);

	if (!p || !p->order || p->order != a->abort.order || p->is_restore)
		swap_rules_fail(
			r, "ABORT of no open EVICT (%" PRIu64 ")", a->abort.order);
	else if (p->aborted)
		swap_rules_fail(
			r, "ABORT of order %" PRIu64 " for the second time", p->order);
	else
		p->aborted = true;
	if (p)
		judge_let_go(r, p);
}

static void on_trim(struct swap_rules *r, const struct sl_action *a)
{
	struct swap_party *p = swap_party_of(r, a->trim.client);

	if (p) {
		p->trimmed = a->trim.bytes;
		p->trimmed_at = r->now;
	}
	if (!p || !p->alive || p->store <= swap_party_evicted(p))
		swap_rules_fail(r, "TRIM of client %" PRIu64 ", which has no copies",
			a->trim.client);
}

void swap_rules_action(struct swap_rules *r, const struct sl_action *a)
{
	switch (a->type) {
	case SL_ACTION_ADMIT: on_admit(r, a); break;
	case SL_ACTION_SET_DONE: on_set_done(r, a); break;
	case SL_ACTION_GRANT: on_grant(r, a); break;
	case SL_ACTION_DENY: on_deny(r, a); break;
	case SL_ACTION_EVICT: on_evict(r, a); break;
	case SL_ACTION_RESTORE: on_restore(r, a); break;
	case SL_ACTION_ABORT: on_abort(r, a); break;
	case SL_ACTION_STOP: swap_on_stop(r, a); break;
	case SL_ACTION_TRIM: on_trim(r, a); break;
	case SL_ACTION_PARKED: on_parked(r, a); break;
	case SL_ACTION_RESUMED: on_resumed(r, a); break;
	case SL_ACTION_LEFT: on_left(r, a); break;
	case SL_ACTION_NOTE: on_note(r, a); break;
	case SL_ACTION_WAKE_AT: r->wake = a->wake_at.at; break;
	default: break;
	}
}

/* --- steps --- */

void swap_rules_before(struct swap_rules *r, sl_ns now, const struct sl_event *event)
{
	r->now = now;
	r->event = *event;
	if (now >= r->wake)
		r->wake = SL_NS_NEVER;
	swap_books_event(r, event);
}
