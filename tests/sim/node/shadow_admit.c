/*
 * shadow_admit - admission and binding, judged by trying every GPU
 */
#include "shadow.h"

#define GRAIN (2 * SL_MIB)

/* What one GPU would mean for the workload of the running event. */
struct
try {
	bool allowed, sane, bounded, sized, healthy, roomy, timely;
	enum sl_reason bound;
	uint64_t request, limit, shareable, room, burstable;
	uint64_t free; /* now, less what others may still claim */
};

uint64_t shadow_bytes(struct sl_amount amount, uint64_t shareable)
{
	if (amount.kind == SL_AMOUNT_BYTES)
		return amount.value;
	if (amount.value == SL_AMOUNT_WHOLE)
		return shareable;
	/* Sizes stay far below 2^44 here, so the product fits. */
	return shareable * amount.value / SL_AMOUNT_WHOLE / GRAIN * GRAIN;
}

uint64_t shadow_claim(const struct shadow *s, const struct shadow_workload *w,
	uint32_t gpu, uint64_t *fixed)
{
	bool here = !w->leaving && (w->mask >> gpu & 1);

	*fixed = shadow_fixed(s, w, gpu);
	return here && w->request > *fixed ? w->request : *fixed;
}

static uint64_t claims(const struct shadow *s, uint32_t gpu, uint64_t *burstable)
{
	uint64_t sum = 0, fixed;

	*burstable = 0;
	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		const struct shadow_workload *w = &s->workload[i];

		if (!w->used)
			continue;
		*burstable +=
			!w->leaving && (w->mask >> gpu & 1) && w->limit > w->request;
		sum += shadow_claim(s, w, gpu, &fixed);
	}
	return sum;
}

/* The bound of its user that the workload exceeds there; NONE if it is within all. */
static enum sl_reason exceeded(const struct shadow *s, const struct try *t)
{
	const struct sl_event *e = &s->event;
	const struct sl_bounds *b = &e->workload_add.bounds;
	uint32_t count = e->workload_add.owned;

	if (b->request.kind != SL_AMOUNT_UNSET &&
		t->request > shadow_bytes(b->request, t->shareable))
		return SL_REASON_BOUND_REQUEST;
	if (b->limit.kind != SL_AMOUNT_UNSET &&
		t->limit > shadow_bytes(b->limit, t->shareable))
		return SL_REASON_BOUND_LIMIT;
	if (b->has_priority && e->workload_add.priority > b->priority)
		return SL_REASON_BOUND_PRIORITY;
	if (b->workloads && count > b->workloads)
		return SL_REASON_BOUND_WORKLOADS;
	return SL_REASON_NONE;
}

bool shadow_has_time(const struct shadow *s, const struct shadow_workload *but,
	uint32_t compute_pm, uint32_t gpu)
{
	uint32_t sum = compute_pm;

	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		const struct shadow_workload *w = &s->workload[i];

		if (w->used && !w->leaving && w != but && (w->mask >> gpu & 1))
			sum += w->compute_pm;
	}
	return !compute_pm || sum <= 1000;
}

static struct try try_gpu(const struct shadow *s, uint32_t gpu)
{
	const struct sl_event *e = &s->event;
	struct sl_amount request = e->workload_add.request, limit = e->workload_add.limit;
	struct try t = {.shareable = shadow_shareable(s, gpu)};
	uint64_t taken = claims(s, gpu, &t.burstable), wanted = 0;

	t.allowed = s->gpu[gpu].present && !s->gpu[gpu].lost &&
		    (e->workload_add.gpu_mask >> gpu & 1);
	t.limit = t.shareable;
	if (limit.kind != SL_AMOUNT_UNSET) {
		wanted = shadow_bytes(limit, t.shareable);
		t.limit = wanted < t.shareable ? wanted : t.shareable;
		t.request = t.limit;
	}
	if (request.kind != SL_AMOUNT_UNSET) {
		t.request = shadow_bytes(request, t.shareable);
		if (limit.kind == SL_AMOUNT_UNSET)
			t.limit = t.request < t.shareable ? t.request : t.shareable;
	}
	t.sane = limit.kind == SL_AMOUNT_UNSET || request.kind == SL_AMOUNT_UNSET ||
		 wanted >= t.request;
	t.bound = exceeded(s, &t);
	t.bounded = t.bound == SL_REASON_NONE;
	t.sized = t.request <= t.shareable;
	t.timely = shadow_has_time(s, NULL, e->workload_add.compute_pm, gpu);
	t.healthy = !s->gpu[gpu].degraded;
	t.roomy = taken <= t.shareable && t.request <= t.shareable - taken;
	t.room = t.roomy ? t.shareable - taken - t.request : 0;
	t.free = shadow_free(s, gpu);
	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		const struct shadow_workload *w = &s->workload[i];
		uint64_t use, rest;

		if (!w->used || w->leaving || !(w->mask >> gpu & 1))
			continue;
		use = shadow_use(s, w, gpu);
		rest = use < w->request ? w->request - use : 0;
		t.free = t.free > rest ? t.free - rest : 0;
	}
	return t;
}

static bool is_possible(const struct try *t)
{
	return t->allowed && t->sane && t->bounded && t->sized && t->healthy &&
	       t->roomy && t->timely;
}

/* Its burst capacity there: its part of unrequested memory, if that is free. */
static uint64_t burst_room(const struct try *t)
{
	uint64_t part = t->room / (t->burstable + 1);
	uint64_t now = t->free > t->request ? t->free - t->request : 0;

	return part < now ? part : now;
}

/* GPU a is the better place for the workload than b. */
static bool is_better(const struct try *a, const struct try *b, bool spread)
{
	uint64_t mine = a->room / (a->burstable + 1),
		 theirs = b->room / (b->burstable + 1);

	if ((a->free >= a->request) != (b->free >= b->request))
		return a->free >= a->request;
	if (!spread)
		return a->room < b->room;
	if (burst_room(a) != burst_room(b))
		return burst_room(a) > burst_room(b);
	return mine > theirs || (mine == theirs && a->burstable < b->burstable);
}

static void check_recovered(struct shadow *s, const struct sl_action *a)
{
	if (a->admit.gpu_mask != s->event.workload_add.gpu_mask)
		shadow_fail(s, "a recovered workload was moved");
	if (a->admit.request_bytes != s->event.workload_add.request.value)
		shadow_fail(s, "a recovered workload got another request");
}

static void check_choice(struct shadow *s, const struct try t[SHADOW_GPUS], uint32_t mask)
{
	bool can_burst = false, spread;

	for (uint32_t i = 0; i < SHADOW_GPUS; i++)
		can_burst |= is_possible(&t[i]) && t[i].limit > t[i].request;
	spread = can_burst && s->placement != SL_PLACEMENT_PACK;
	for (uint32_t in = 0; in < SHADOW_GPUS; in++) {
		for (uint32_t out = 0; out < SHADOW_GPUS; out++) {
			if (!(mask >> in & 1) || (mask >> out & 1) ||
				!is_possible(&t[out]))
				continue;
			if (is_better(&t[out], &t[in], spread) ||
				(out < in && !is_better(&t[in], &t[out], spread)))
				shadow_fail(s, "bound to GPU %u, and GPU %u is better",
					in, out);
		}
	}
}

void shadow_check_admit(struct shadow *s, const struct sl_action *a)
{
	const struct sl_event *e = &s->event;
	uint32_t wanted = e->workload_add.gpu_count ? e->workload_add.gpu_count : 1;
	uint64_t request = UINT64_MAX, limit = UINT64_MAX;
	struct try t[SHADOW_GPUS];

	if (e->type != SL_EVENT_WORKLOAD_ADD ||
		a->admit.workload != e->workload_add.workload ||
		shadow_workload(s, a->admit.workload)) {
		shadow_fail(s, "an admission out of nowhere");
		return;
	}
	if (e->workload_add.recovered) {
		check_recovered(s, a);
		return;
	}
	if ((uint32_t)__builtin_popcount(a->admit.gpu_mask) != wanted ||
		a->admit.gpu_mask >> SHADOW_GPUS)
		shadow_fail(
			s, "bound to %x, asked for %u GPUs", a->admit.gpu_mask, wanted);
	for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
		t[gpu] = try_gpu(s, gpu);
		if (!(a->admit.gpu_mask >> gpu & 1))
			continue;
		if (!is_possible(&t[gpu]))
			shadow_fail(
				s, "admitted to GPU %u, where it breaks a promise", gpu);
		request = t[gpu].request < request ? t[gpu].request : request;
		limit = t[gpu].limit < limit ? t[gpu].limit : limit;
	}
	if (a->admit.request_bytes != request || a->admit.limit_bytes != limit)
		shadow_fail(s,
			"admitted with request %llu and limit %llu, expected %llu and "
			"%llu",
			(unsigned long long)a->admit.request_bytes,
			(unsigned long long)a->admit.limit_bytes,
			(unsigned long long)request, (unsigned long long)limit);
	check_choice(s, t, a->admit.gpu_mask);
}

/* The reason of the first sieve that leaves too few GPUs. */
void shadow_check_refuse(struct shadow *s, const struct sl_action *a)
{
	const struct sl_event *e = &s->event;
	uint32_t wanted = e->workload_add.gpu_count ? e->workload_add.gpu_count : 1;
	uint32_t allowed = 0, sane = 0, bounded = 0, sized = 0, healthy = 0, roomy = 0,
		 timely = 0;
	enum sl_reason expected = SL_REASON_NONE;
	bool bound_named = false;

	if (e->type == SL_EVENT_WORKLOAD_SET) {
		shadow_check_set_refused(s, a);
		return;
	}
	for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
		struct try t = try_gpu(s, gpu);

		allowed += t.allowed;
		sane += t.allowed && t.sane;
		bounded += t.allowed && t.sane && t.bounded;
		bound_named |= t.allowed && t.bound == (enum sl_reason)a->refuse.reason;
		sized += t.allowed && t.sane && t.bounded && t.sized;
		healthy += t.allowed && t.sane && t.bounded && t.sized && t.healthy;
		roomy += t.allowed && t.sane && t.bounded && t.sized && t.healthy &&
			 t.roomy;
		timely += is_possible(&t);
	}
	if (e->type == SL_EVENT_WORKLOAD_ADD &&
		shadow_workload(s, e->workload_add.workload))
		expected = SL_REASON_DUPLICATE;
	else if (allowed < (e->workload_add.recovered ? 1 : wanted))
		expected = SL_REASON_TOO_FEW_GPUS;
	else if (e->workload_add.recovered)
		expected = SL_REASON_NONE;
	else if (sane < wanted)
		expected = SL_REASON_LIMIT_BELOW_REQUEST;
	else if (bounded < wanted &&
		 (bound_named || a->refuse.reason == SL_REASON_LIMIT_BELOW_REQUEST))
		expected = (enum sl_reason)a->refuse.reason; /* several may be true */
	else if (bounded < wanted)
		expected = SL_REASON_BOUND_REQUEST;
	else if (sized < wanted)
		expected = SL_REASON_REQUEST_TOO_LARGE;
	else if (healthy < wanted)
		expected = SL_REASON_DEGRADED;
	else if (roomy < wanted)
		expected = SL_REASON_REQUESTS_TAKEN;
	else if (timely < wanted)
		expected = SL_REASON_COMPUTE_TAKEN;
	if (a->refuse.reason != (uint32_t)expected)
		shadow_fail(s, "refused for %s, expected %s",
			sl_reason_name(a->refuse.reason), sl_reason_name(expected));
}
