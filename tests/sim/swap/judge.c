/*
 * judge - judges the state after a step and at the end of an episode: numbers that are
 * shown, promises of time, clients that are stuck
 */
#include <inttypes.h>

#include "rules.h"

/* Longest back-off after an order that was refused, and a little. */
#define BACK_OFF (6 * SL_S)
/* Copies are waited for so long, and a little. */
#define TRIM_WAIT (1200 * SL_MS)
/* What changes is looked at within this, also after a piece of which nothing came back. */
#define SOON (30 * SL_MS)

/* --- what people are shown --- */

static uint64_t requests(const struct swap_rules *r, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->members; i++) {
		if (r->member[i].used)
			sum += swap_request(&r->member[i], gpu);
	}
	return sum;
}

/* A client may report only after recover_wait, when others have got grants that did not allow for
 * it. The node then believes only as much of its held memory as these grants leave. It orders the
 * rest to the host, and the client refuses. */
static bool may_be_doubted(const struct swap_rules *r, const struct swap_party *p)
{
	return r->event.type == SL_EVENT_HELD && r->event.held.client == p->id &&
	       p->expected && r->now >= r->recover_until;
}

/* SHOWN: one number everywhere: what the node shows is what there is. */
static void compare(struct swap_rules *r, const struct sl_node *node)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		struct swap_party *p = &r->party[i];

		for (uint32_t gpu = 0; p->used && p->alive && gpu < SWAP_GPUS; gpu++) {
			struct sl_node_use_view v = sl_node_client_use(node, p->id, gpu);

			if (may_be_doubted(r, p))
				p->held[gpu] = sl_min_u64(p->held[gpu], v.held_bytes);
			if (v.backing_bytes != p->backing[gpu] ||
				v.evicted_bytes != p->evicted[gpu] ||
				v.hidden_bytes != p->hidden[gpu] ||
				v.paid_bytes != p->paid[gpu] ||
				v.away_bytes != p->away[gpu])
				swap_break(r, SWAP_SHOWN,
					"client %" PRIu64 " on GPU %u: backing %" PRIu64
					", evicted %" PRIu64 ", hidden %" PRIu64
					", the node has %" PRIu64 ", %" PRIu64
					", %" PRIu64,
					p->id, gpu, p->backing[gpu], p->evicted[gpu],
					p->hidden[gpu], v.backing_bytes, v.evicted_bytes,
					v.hidden_bytes);
		}
		if (p->used && p->alive && sl_node_client(node, p->id).order != p->order)
			swap_break(r, SWAP_SHOWN,
				"client %" PRIu64 ": order %" PRIu64
				" is open, the node has %" PRIu64,
				p->id, p->order, sl_node_client(node, p->id).order);
	}
	if (sl_node_pool(node).leaving_bytes != swap_leaving(r))
		swap_break(r, SWAP_SHOWN,
			"%" PRIu64 " are leaving, the node has %" PRIu64, swap_leaving(r),
			sl_node_pool(node).leaving_bytes);
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		if (r->present_mask >> gpu & 1 &&
			sl_node_gpu(node, gpu).requests_bytes != requests(r, gpu))
			swap_break(r, SWAP_SHOWN,
				"GPU %u: requests of %" PRIu64 ", the node has %" PRIu64,
				gpu, requests(r, gpu),
				sl_node_gpu(node, gpu).requests_bytes);
	}
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		uint64_t free_bytes =
			sl_sub_sat(swap_shareable(r, gpu), swap_physical(r, gpu));

		if (r->present_mask >> gpu & 1 &&
			sl_node_gpu(node, gpu).paid_bytes + swap_reserve_room(r, gpu) !=
				r->reserve[gpu])
			swap_break(r, SWAP_SHOWN,
				"GPU %u: the reserve has room for %" PRIu64
				", and pays %" PRIu64 " for the node",
				gpu, swap_reserve_room(r, gpu),
				sl_node_gpu(node, gpu).paid_bytes);
		if (r->present_mask & ~r->lost_mask & 1u << gpu &&
			sl_node_gpu(node, gpu).free_bytes != free_bytes)
			swap_break(r, SWAP_SHOWN,
				"GPU %u: free %" PRIu64 ", the node has %" PRIu64, gpu,
				free_bytes, sl_node_gpu(node, gpu).free_bytes);
	}
}

static uint64_t claims(const struct swap_rules *r, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->members; i++) {
		const struct swap_member *m = &r->member[i];

		if (m->used)
			sum += sl_max_u64(
				swap_request(m, gpu), swap_fixed(r, m->id, gpu));
	}
	return sum;
}

/* Until the next report the node believes no more of it than the promises leave. */
static void doubt(struct swap_rules *r, uint64_t client, uint32_t gpu)
{
	struct swap_party *p = swap_party_of(r, client);

	if (p && r->event.held.gpu == gpu)
		p->doubted |= 1u << gpu;
}

/* What a client holds there is not all believed, so other workloads may be promised the rest. */
static bool is_doubted(const struct swap_rules *r, uint32_t gpu)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->used && p->alive && p->doubted >> gpu & 1)
			return true;
	}
	return false;
}

/* I1: only measured memory may break it, held memory that is not believed, and a person's change of
 * the machine. */
void swap_judge_i1(struct swap_rules *r)
{
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		bool broken = r->present_mask >> gpu & 1 &&
			      (claims(r, gpu) > swap_shareable(r, gpu) ||
				      swap_physical(r, gpu) > swap_shareable(r, gpu));

		if (!broken) {
			r->forced_mask &= ~(1u << gpu);
			continue;
		}
		if (is_doubted(r, gpu))
			r->forced_mask |= 1u << gpu;
		switch (r->event.type) {
		case SL_EVENT_HELD:
			doubt(r, r->event.held.client, gpu); /* fall through */
		case SL_EVENT_UNMANAGED:
		case SL_EVENT_HIDDEN:
		case SL_EVENT_GPU_ADD:
		case SL_EVENT_POOL_SIZE: /* from none on, what never moves counts */
		case SL_EVENT_CLIENT_REPORT:
		case SL_EVENT_CLIENT_EVICTED:
		case SL_EVENT_WORKLOAD_ADD: r->forced_mask |= 1u << gpu; break;
		default: break;
		}
		if (!(r->forced_mask >> gpu & 1))
			swap_break(r, SWAP_I1,
				"on GPU %u %" PRIu64 " are promised and %" PRIu64
				" there, of %" PRIu64 " that can be shared",
				gpu, claims(r, gpu), swap_physical(r, gpu),
				swap_shareable(r, gpu));
	}
}

/* SHOWN: where a workload is said to be. */
static void judge_residency(
	struct swap_rules *r, const struct sl_node *node, struct swap_member *m)
{
	enum sl_residency is = sl_node_workload(node, m->id).residency;
	bool leaves = false, returns = false, has = false;
	bool out = false, fits = false, stays = false, lost = false;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (!p->used || !p->alive || p->workload != m->id)
			continue;
		leaves |= p->order && !p->is_restore && !p->travels;
		returns |= p->order && p->is_restore;
		out |= swap_party_is_out(p);
		for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
			has |= p->backing[gpu] > 0;
			if (p->backing[gpu] <= p->evicted[gpu] + p->held[gpu])
				continue;
			lost |= r->lost_mask >> gpu & 1;
			stays |= !(r->lost_mask >> gpu & 1);
		}
	}
	switch (is) {
	case SL_RESIDENCY_RESERVED: fits = !has && !m->parked; break;
	case SL_RESIDENCY_BOUND: fits = !out && !leaves && !returns && !m->parked; break;
	case SL_RESIDENCY_LEAVING:
		fits = m->parked ? m->by_itself && !m->resuming : leaves;
		break;
	case SL_RESIDENCY_DETACHED:
		fits = m->parked && m->by_itself && !m->resuming && !leaves && !returns &&
		       !stays;
		break;
	case SL_RESIDENCY_EVICTED:
		fits = out && swap_member_waits(r, m) && !m->parked;
		break;
	case SL_RESIDENCY_WARM:
		fits = out && !swap_member_wants(r, m) && !m->parked && !stays;
		break;
	case SL_RESIDENCY_PARTIAL:
		fits = out && !swap_member_wants(r, m) && !m->parked && (stays || lost);
		break;
	case SL_RESIDENCY_RETURNING: fits = returns && !m->parked; break;
	case SL_RESIDENCY_PARKED:
		fits = m->parked && !m->by_itself && !m->resuming && !leaves &&
		       !returns && !stays;
		break;
	case SL_RESIDENCY_PARKING:
		fits = m->parked && !m->by_itself && !m->resuming;
		break;
	case SL_RESIDENCY_RESUMING: fits = m->parked && m->resuming; break;
	default: break;
	}
	if (!fits)
		swap_break(r, SWAP_SHOWN,
			"workload %" PRIu64
			" is said to be in state %u; parked %d, resuming %d, leaving %d, "
			"returning %d, away %d, wants %d",
			m->id, (unsigned)is, m->parked, m->resuming, leaves, returns, out,
			swap_member_wants(r, m));
	m->residency = is;
}

/* --- time --- */

/* It is waited for until its process goes on. */
static bool is_stopped(const struct swap_rules *r, const struct swap_member *m)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->workload == m->id && swap_party_wants(p) &&
			p->condition != SL_CONDITION_RUNNING)
			return true;
	}
	return false;
}

/* It has its grace, however long others wait. */
static bool is_any_going(const struct swap_rules *r)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		if (swap_is_going(r, &r->party[i]))
			return true;
	}
	return false;
}

static bool may_all_enter(const struct swap_rules *r, const struct swap_member *m)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->used && p->alive && p->workload == m->id &&
			!swap_may_enter(r, p, m))
			return false;
	}
	return true;
}

/* Nothing is moved for it, or for a burst that it waits for, before the longest wait is over. */
static bool waits_first(struct swap_rules *r, const struct swap_member *m)
{
	for (uint32_t i = 0; i < r->parties && !r->waits_first; i++) {
		const struct swap_party *p = &r->party[i];

		for (uint32_t n = 0; p->used && p->workload == m->id && n < SWAP_GRANTS;
			n++) {
			const struct swap_demand *d = &p->demand[n];
			bool burst = d->used && !d->epoch && !swap_is_entitled(r, m, d);

			if (burst && !swap_chain_begins(swap_chain_of(r, m, true),
					     SL_RESOLVER_SWAP, SL_RESOLVER_WAIT))
				return true;
		}
	}
	return r->waits_first;
}

/* MAX_WAIT: a workload is resident again within the longest wait that the node told. This is judged
 * as long as the competing clients stay the same and none of them ends by itself. */
static void judge_wait(
	struct swap_rules *r, const struct sl_node *node, struct swap_member *m)
{
	struct sl_node_workload_view v;

	if (!swap_member_wants(r, m) || is_stopped(r, m)) {
		m->wants_since = 0;
		return;
	}
	v = sl_node_workload(node, m->id);
	if (!m->wants_since) {
		m->wants_since = r->now;
		m->wait_bound = 0;
		m->contest = 0;
	}
	if (m->contest != r->contest || is_any_going(r)) {
		/* No client competes: it waits for its own way back. */
		sl_ns span = v.longest_wait
				     ? v.longest_wait
				     : swap_cost(r, m->id) + 2 * SL_S +
					       (waits_first(r, m) ? r->wait_max : 0);
		sl_ns bound = span == SL_NS_NEVER ? SL_NS_NEVER : r->now + span;

		m->contest = r->contest;
		m->wait_bound = sl_max_u64(m->wait_bound, bound);
	}
	/* With a full pool, or where no client is moved for others, nothing is promised; nor while
	 * requests have taken the room of its contexts. */
	if (swap_is_pool_in_the_way(r) || !r->swaps || !may_all_enter(r, m))
		m->wait_bound = SL_NS_NEVER;
	if (r->quiet && m->wait_bound != SL_NS_NEVER &&
		r->now > m->wait_bound + (m->wait_bound - m->wants_since) / 10 +
				 200 * SL_MS)
		swap_break(r, SWAP_MAX_WAIT,
			"workload %" PRIu64 " wants to run since %" PRIu64
			" ms, and was to be resident within %" PRIu64 " ms",
			m->id, swap_ms(r->now - m->wants_since),
			swap_ms(m->wait_bound - m->wants_since));
}

static bool is_moved(const struct swap_rules *r, const struct swap_member *m)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->used && p->alive && p->workload == m->id && p->order)
			return true;
	}
	return false;
}

/* It waits on the host, and nothing of its own keeps it there. */
static bool could_come(
	struct swap_rules *r, const struct swap_party *p, const struct swap_member *m)
{
	return swap_party_wants(p) && m && !m->parked && !m->removed && !m->stopping &&
	       !is_moved(r, m) && !p->expected && !swap_recovers(r) &&
	       !swap_is_going(r, p) && p->condition == SL_CONDITION_RUNNING &&
	       (!p->failed_at || r->now >= p->failed_at + BACK_OFF) &&
	       swap_may_enter(r, p, m);
}

/* For all that wait; a burst may have to leave others their unclaimed requests. */
static bool is_there_room(struct swap_rules *r, uint32_t mask)
{
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		uint64_t wanted = swap_physical(r, gpu) + swap_needs(r, gpu);

		if (!(mask >> gpu & 1))
			continue;
		if (r->lost_mask >> gpu & 1 || wanted > swap_shareable(r, gpu))
			return false;
		if (swap_lacks_burst(r, gpu) &&
			wanted + swap_unclaimed(r, gpu) > swap_shareable(r, gpu))
			return false;
	}
	return true;
}

/* Its GPUs, with those where it comes back to a context. */
static uint32_t gpus_of(const struct swap_party *p, const struct swap_member *m)
{
	uint32_t mask = m->mask;

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++)
		mask |= p->away[gpu] ? 1u << gpu : 0;
	return mask;
}

/* FIT: what fits together runs together. No client stays on the host when there is memory for all
 * that wait. */
static void judge_fit(
	struct swap_rules *r, struct swap_party *p, const struct swap_member *m)
{
	if (!could_come(r, p, m) || !is_there_room(r, gpus_of(p, m)))
		p->fits_since = 0;
	else if (!p->fits_since)
		p->fits_since = r->now;
	else if (r->now - p->fits_since > SOON)
		swap_break(r, SWAP_FIT,
			"client %" PRIu64
			" waits on the host, though all that is wanted fits",
			p->id);
}

/* Of others of lower priority, what stands above their requests: `priority` takes it back. */
static uint64_t takeable(
	const struct swap_rules *r, const struct swap_member *own, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->members; i++) {
		const struct swap_member *m = &r->member[i];

		if (m->used && !m->removed && !m->stopping && m->priority < own->priority)
			sum += sl_sub_sat(
				swap_resident(r, m->id, gpu), swap_request(m, gpu));
	}
	return sum;
}

/* A client leaves, ends, or is told to give copies back first. */
static bool is_any_coming(struct swap_rules *r, uint32_t gpu)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];
		const struct swap_member *m = swap_member_of(r, p->workload);

		if (p->used &&
			(p->dying[gpu] || (m && m->stopping) ||
				swap_party_going(r, p, gpu) ||
				(p->trimmed && r->now < p->trimmed_at + TRIM_WAIT) ||
				(p->alive && p->order && !p->is_restore &&
					p->order_gpu == gpu)))
			return true;
	}
	return false;
}

/* Borrowers of lower priority have the memory it lacks, and none of that is on its way. */
static bool is_kept_out(
	struct swap_rules *r, const struct swap_party *p, const struct swap_member *m)
{
	bool lacks = false;

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		uint64_t there = swap_physical(r, gpu) + p->evicted[gpu];
		uint64_t lack = sl_sub_sat(there, swap_shareable(r, gpu));

		if (!p->evicted[gpu] || !lack)
			continue;
		if (r->forced_mask >> gpu & 1 || is_any_coming(r, gpu) ||
			lack > takeable(r, m, gpu))
			return false;
		lacks = true;
	}
	return lacks;
}

/* PROGRESS: a client of a workload that is within its request on each of its GPUs gets memory back
 * from borrowers that may be stopped, whether they can be moved or not. */
static void judge_owed(
	struct swap_rules *r, struct swap_party *p, const struct swap_member *m)
{
	if (!r->has_priority || !r->quiet || !could_come(r, p, m) ||
		!swap_is_within(r, m) || !is_kept_out(r, p, m))
		p->owed_since = 0;
	else if (!p->owed_since)
		p->owed_since = r->now;
	else if (r->now - p->owed_since > 10 * SL_S + r->wait_max)
		swap_break(r, SWAP_PROGRESS,
			"client %" PRIu64
			" wants back what is within its request since %" PRIu64
			" ms, and those of lower priority keep it from that",
			p->id, swap_ms(r->now - p->owed_since));
}

/* LIMIT: what can never be is denied at once. */
static void judge_limit(
	struct swap_rules *r, struct swap_party *p, const struct swap_member *m)
{
	for (uint32_t n = 0; n < SWAP_GRANTS; n++) {
		struct swap_demand *d = &p->demand[n];

		if (!d->used || d->epoch || swap_recovers(r) ||
			swap_use(r, m->id, d->gpu) + (d->there ? 0 : d->bytes) <=
				m->limit)
			d->over_since = 0;
		else if (!d->over_since)
			d->over_since = r->now;
		else if (r->now - d->over_since > SOON)
			swap_break(r, SWAP_LIMIT,
				"%" PRIu64 "/%" PRIu64
				" waits, though it would take workload %" PRIu64
				" above its limit",
				p->id, d->ask, m->id);
	}
}

void swap_rules_after(struct swap_rules *r, const struct sl_node *node)
{
	r->wanting = 0;
	compare(r, node);
	swap_judge_i1(r);
	for (uint32_t i = 0; i < r->members; i++) {
		struct swap_member *m = &r->member[i];

		if (!m->used)
			continue;
		r->wanting += swap_member_wants(r, m);
		if (m->removed)
			continue;
		judge_residency(r, node, m);
		swap_judge_presence(r, node, m);
		judge_wait(r, node, m);
	}
	for (uint32_t i = 0; i < r->parties; i++) {
		struct swap_party *p = &r->party[i];
		const struct swap_member *m =
			p->used ? swap_member_of(r, p->workload) : NULL;

		if (!m)
			continue;
		judge_limit(r, p, m);
		judge_fit(r, p, m);
		judge_owed(r, p, m);
	}
}

/* --- the end of an episode --- */

/* Memory that no EVICT moves leaves too little on some GPU: held and hidden memory, and all memory
 * of clients that cannot swap. This is no excuse towards a client within its request, which has a
 * right to the memory. */
static bool is_unmovable_in_the_way(
	struct swap_rules *r, const struct swap_party *p, const struct swap_member *m)
{
	for (uint32_t gpu = 0; gpu < SWAP_GPUS && !swap_is_owed(r, p, m); gpu++) {
		uint64_t stays = p->backing[gpu] + p->hidden[gpu];

		stays += swap_keeps(r, m) ? swap_unclaimed(r, gpu) : 0;
		for (uint32_t i = 0; i < r->parties && p->evicted[gpu]; i++) {
			const struct swap_party *o = &r->party[i];
			const struct swap_member *of = swap_member_of(r, o->workload);

			if (!o->used || o == p)
				continue;
			stays += o->dying[gpu] + o->hidden[gpu];
			stays += !o->swaps || (of && swap_stays(r, of))
					 ? o->backing[gpu] - o->evicted[gpu]
					 : o->held[gpu];
		}
		if (p->evicted[gpu] && stays > swap_shareable(r, gpu))
			return true;
	}
	return false;
}

/* PROGRESS. */
void swap_rules_drained(struct swap_rules *r, const struct sl_node *node)
{
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];
		const struct swap_member *m = swap_member_of(r, p->workload);

		if (!p->used || !p->alive || !m)
			continue;
		/* A client that refuses on and on is asked every few seconds. */
		if (p->order && r->now - p->order_at > 60 * SL_S)
			swap_break(r, SWAP_PROGRESS,
				"order %" PRIu64 " of client %" PRIu64 " is still open",
				p->order, p->id);
		/* Parked, or its request does not fit yet, or its contexts have no room. */
		if (m->parked || (swap_party_away(p) && !swap_may_enter(r, p, m)))
			continue;
		if (swap_party_wants(p) && r->swaps && !swap_is_pool_in_the_way(r) &&
			!is_unmovable_in_the_way(r, p, m))
			swap_break(r, SWAP_PROGRESS,
				"client %" PRIu64
				" still waits on the host, since %" PRIu64 " s",
				p->id, swap_ms(r->now - m->wants_since) / 1000);
		if (swap_party_asks(p) && r->swaps && !swap_is_pool_in_the_way(r))
			swap_break(r, SWAP_PROGRESS,
				"a demand of client %" PRIu64 " still waits", p->id);
	}
	(void)node;
}

void swap_rules_print(const struct swap_rules *r, FILE *out)
{
	fprintf(out,
		"pool %" PRIu64 ", slack %" PRIu64
		", evicted + leaving + overlap %" PRIu64 ", turn_max %" PRIu64 " ms\n",
		r->pool, r->slack, swap_i2(r), swap_ms(r->turn_max));
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		if (r->present_mask >> gpu & 1)
			fprintf(out,
				"GPU %u: shareable %" PRIu64 ", there %" PRIu64
				", promised %" PRIu64 ", wanted %" PRIu64 "%s%s\n",
				gpu, swap_shareable(r, gpu), swap_physical(r, gpu),
				claims(r, gpu), swap_needs(r, gpu),
				r->lost_mask >> gpu & 1 ? ", lost" : "",
				r->forced_mask >> gpu & 1 ? ", by force" : "");
	}
	for (uint32_t i = 0; i < r->members; i++) {
		const struct swap_member *m = &r->member[i];

		if (!m->used)
			continue;
		fprintf(out,
			"workload %" PRIu64 ": mask %x, request %" PRIu64
			", limit %" PRIu64 ", priority %d, flags %u, state %u%s%s%s, "
			"wants since %.3f\n",
			m->id, m->mask, m->request, m->limit, (int)m->priority, m->flags,
			(unsigned)m->residency, m->parked ? ", parked" : "",
			m->resuming ? ", resuming" : "", m->removed ? ", removed" : "",
			(double)m->wants_since / 1e9);
		for (uint32_t n = 0; n < r->parties; n++) {
			const struct swap_party *p = &r->party[n];

			if (!p->used || p->workload != m->id)
				continue;
			fprintf(out,
				"  client %" PRIu64 "%s%s%s%s, idle %" PRIu64
				" ms, order %" PRIu64 "%s:",
				p->id, p->alive ? "" : ", dead",
				p->expected ? ", expected" : "",
				p->swaps ? "" : ", cannot swap",
				p->wants ? ", wants" : "", swap_ms(swap_quiet_of(r, p)),
				p->order,
				!p->order       ? ""
				: p->is_restore ? " (back)"
						: " (out)");
			for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
				if (p->backing[gpu] || p->dying[gpu] || p->hidden[gpu])
					fprintf(out,
						" g%u %" PRIu64 " (out %" PRIu64
						", held %" PRIu64 ", hidden %" PRIu64
						", dying %" PRIu64 ")",
						gpu, p->backing[gpu], p->evicted[gpu],
						p->held[gpu], p->hidden[gpu],
						p->dying[gpu]);
			}
			for (uint32_t d = 0; d < SWAP_GRANTS; d++) {
				if (p->demand[d].used)
					fprintf(out, " %s %" PRIu64 " g%u",
						p->demand[d].epoch ? "granted" : "asks",
						p->demand[d].bytes, p->demand[d].gpu);
			}
			fputc('\n', out);
		}
	}
}
