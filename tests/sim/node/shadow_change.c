/*
 * shadow_change - changes of workloads, lost GPUs and strangers, judged from the shadow's books
 *
 * A change happens as a whole or not at all. The shadow works out its effect on the workload and
 * lists every rule that it breaks. A refusal must name one of them; a consent must find none.
 */
#include "shadow.h"

struct wish {
	uint64_t request, limit, uncut, least; /* least: shareable of its smallest GPU */
	int32_t priority;
	uint32_t compute_pm;
};

static uint64_t bytes_of(struct sl_amount amount, uint64_t shareable, uint64_t unset)
{
	return amount.kind == SL_AMOUNT_UNSET ? unset : shadow_bytes(amount, shareable);
}

static struct wish wish_of(const struct shadow *s, const struct shadow_workload *w)
{
	const struct sl_event *e = &s->event;
	struct wish to = {
		w->request, w->limit, w->limit, UINT64_MAX, w->priority, w->compute_pm};

	for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
		uint64_t shareable = shadow_shareable(s, gpu);

		if ((w->mask >> gpu & 1) && shareable < to.least)
			to.least = shareable;
	}
	if (e->workload_set.which & SL_SET_REQUEST)
		to.request = bytes_of(e->workload_set.request, to.least, 0);
	if (e->workload_set.which & SL_SET_LIMIT) {
		uint64_t most = to.least > to.request ? to.least : to.request;

		to.uncut = bytes_of(e->workload_set.limit, to.least, to.least);
		to.limit = to.uncut < most ? to.uncut : most;
	}
	if (e->workload_set.which & SL_SET_PRIORITY)
		to.priority = e->workload_set.priority;
	if (e->workload_set.which & SL_SET_COMPUTE_REQUEST)
		to.compute_pm = e->workload_set.compute_pm;
	return to;
}

/* On this GPU the others' claims leave less than the higher request. */
static bool breaks_promise(const struct shadow *s, const struct shadow_workload *w,
	uint64_t request, uint32_t gpu)
{
	uint64_t claims = 0, fixed = 0;

	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		if (s->workload[i].used && &s->workload[i] != w)
			claims += shadow_claim(s, &s->workload[i], gpu, &fixed);
	}
	return claims + request > shadow_shareable(s, gpu);
}

/* Requests of others that it could not stand on with this priority and these flags. */
static uint64_t out_of_reach(const struct shadow *s, const struct shadow_workload *w,
	uint32_t gpu, int32_t priority, uint32_t flags)
{
	struct shadow_workload as = *w;
	uint64_t sum = 0;

	as.priority = priority;
	as.flags = flags;
	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		const struct shadow_workload *other = &s->workload[i];
		uint64_t use;

		if (!other->used || other == w || !(other->mask >> gpu & 1) ||
			shadow_lends(s, &as, other))
			continue;
		use = shadow_use(s, other, gpu);
		sum += other->request > use ? other->request - use : 0;
	}
	return sum;
}

/* After the change more of its memory above its request cannot be taken back. */
static bool locks_in(const struct shadow *s, const struct shadow_workload *w,
	const struct wish *to, uint32_t gpu)
{
	const struct sl_event *e = &s->event;
	uint32_t flags =
		e->workload_set.which & SL_SET_FLAGS ? e->workload_set.flags : w->flags;
	uint64_t before = out_of_reach(s, w, gpu, w->priority, w->flags);
	uint64_t after = out_of_reach(s, w, gpu, to->priority, flags);

	return shadow_has_resolver(s, SL_RESOLVER_PRIORITY) && !s->gpu[gpu].lost &&
	       !(w->flags & SL_WORKLOAD_NO_SWAP) && shadow_use(s, w, gpu) > to->request &&
	       after > before && after > shadow_free(s, gpu);
}

static bool is_broken_by(const struct shadow *s, const struct shadow_workload *w,
	const struct wish *to, enum sl_reason reason)
{
	const struct sl_bounds *b = &s->event.workload_set.bounds;
	bool raises = to->request > w->request;

	switch (reason) {
	case SL_REASON_LIMIT_BELOW_REQUEST: return to->uncut < to->request;
	case SL_REASON_REQUEST_TOO_LARGE: return raises && to->request > to->least;
	case SL_REASON_BOUND_REQUEST:
		return to->request != w->request &&
		       to->request > bytes_of(b->request, to->least, UINT64_MAX);
	case SL_REASON_BOUND_LIMIT:
		return to->limit != w->limit &&
		       to->limit > bytes_of(b->limit, to->least, UINT64_MAX);
	case SL_REASON_BOUND_PRIORITY:
		return to->priority != w->priority && b->has_priority &&
		       to->priority > b->priority;
	case SL_REASON_REQUESTS_TAKEN:
	case SL_REASON_DEGRADED:
	case SL_REASON_GPU_LOST:
		for (uint32_t gpu = 0; raises && gpu < SHADOW_GPUS; gpu++) {
			if (!(w->mask >> gpu & 1))
				continue;
			if (reason == SL_REASON_REQUESTS_TAKEN
					? breaks_promise(s, w, to->request, gpu)
				: reason == SL_REASON_DEGRADED ? s->gpu[gpu].degraded
							       : s->gpu[gpu].lost)
				return true;
		}
		return false;
	case SL_REASON_COMPUTE_TAKEN:
		for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
			if (to->compute_pm > w->compute_pm && w->mask >> gpu & 1 &&
				!shadow_has_time(s, w, to->compute_pm, gpu))
				return true;
		}
		return false;
	case SL_REASON_STANDS_ON_REQUESTS:
		for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
			if (locks_in(s, w, to, gpu))
				return true;
		}
		return false;
	default: return false;
	}
}

void shadow_check_set_refused(struct shadow *s, const struct sl_action *a)
{
	const struct shadow_workload *w =
		shadow_workload(s, s->event.workload_set.workload);
	bool unknown = !w || w->leaving;
	struct wish to;

	if (a->refuse.workload != s->event.workload_set.workload)
		shadow_fail(s, "a change of another workload was refused");
	if (unknown || a->refuse.reason == SL_REASON_UNKNOWN_WORKLOAD) {
		if (!unknown || a->refuse.reason != SL_REASON_UNKNOWN_WORKLOAD)
			shadow_fail(s, "a change was refused for %s",
				sl_reason_name(a->refuse.reason));
		return;
	}
	to = wish_of(s, w);
	if (!is_broken_by(s, w, &to, (enum sl_reason)a->refuse.reason))
		shadow_fail(s, "a change was refused for %s, and it is not so",
			sl_reason_name(a->refuse.reason));
}

static void check_set_views(struct shadow *s, const struct shadow_workload *w)
{
	for (uint32_t i = 0; i < s->clients_top; i++) {
		if (s->client[i].used && s->client[i].alive &&
			s->client[i].workload == w) {
			s->view_workload = w->id;
			s->views_expected |= w->mask;
		}
	}
}

void shadow_set_done(struct shadow *s, const struct sl_action *a)
{
	struct shadow_workload *w = shadow_workload(s, a->set_done.workload);
	uint32_t which = s->event.workload_set.which;
	uint64_t over = 0;
	struct wish to;

	if (s->event.type != SL_EVENT_WORKLOAD_SET || !w || w->leaving ||
		w->id != s->event.workload_set.workload) {
		shadow_fail(s, "a change out of nowhere");
		return;
	}
	to = wish_of(s, w);
	for (uint32_t reason = 0; reason < SL_REASONS; reason++) {
		if (is_broken_by(s, w, &to, (enum sl_reason)reason))
			shadow_fail(s, "a change was made against %s",
				sl_reason_name(reason));
	}
	if (a->set_done.request_bytes != to.request ||
		a->set_done.limit_bytes != to.limit ||
		a->set_done.priority != to.priority)
		shadow_fail(s, "changed to %llu, %llu, %d, expected %llu, %llu, %d",
			(unsigned long long)a->set_done.request_bytes,
			(unsigned long long)a->set_done.limit_bytes, a->set_done.priority,
			(unsigned long long)to.request, (unsigned long long)to.limit,
			to.priority);
	if (to.limit != w->limit)
		check_set_views(s, w);
	w->request = to.request;
	w->limit = to.limit;
	w->priority = to.priority;
	w->compute_pm = to.compute_pm;
	if (which & SL_SET_FLAGS)
		w->flags = s->event.workload_set.flags;
	if (which & SL_SET_WAIT)
		w->wait_max = s->event.workload_set.wait_max;
	for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
		uint64_t use = shadow_use(s, w, gpu);

		over = use > to.limit && use - to.limit > over ? use - to.limit : over;
	}
	if (a->set_done.over_bytes != over)
		shadow_fail(s, "%llu over the new limit, the node says %llu",
			(unsigned long long)over,
			(unsigned long long)a->set_done.over_bytes);
	shadow_refresh(s);
}

/* --- lost GPUs --- */

static bool has_bytes(const struct shadow_stranger *x)
{
	for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
		if (x->bytes[gpu])
			return true;
	}
	return false;
}

void shadow_lose(struct shadow *s, uint32_t gpu)
{
	s->gpu[gpu].lost = true;
	s->gpu[gpu].noted_degraded =
		false; /* a lost GPU is not degraded; no note says so */
	for (uint32_t i = 0; i < s->clients_top; i++) {
		if (s->client[i].used && !s->client[i].alive)
			shadow_release(s, &s->client[i], gpu, 0);
	}
	/* A lost GPU is not measured any more. */
	for (uint32_t i = 0; i < SHADOW_STRANGERS; i++) {
		s->stranger[i].bytes[gpu] = 0;
		if (!has_bytes(&s->stranger[i]))
			s->stranger[i] = (struct shadow_stranger){0};
	}
}

/* --- strangers --- */

static struct shadow_stranger *stranger_of(struct shadow *s, uint64_t id, bool add)
{
	struct shadow_stranger *spare = NULL;

	for (uint32_t i = 0; i < SHADOW_STRANGERS; i++) {
		if (s->stranger[i].id == id)
			return &s->stranger[i];
		if (!s->stranger[i].id)
			spare = &s->stranger[i];
	}
	if (!add || !spare)
		return NULL;
	*spare = (struct shadow_stranger){.id = id};
	return spare;
}

uint32_t shadow_strangers(const struct shadow *s)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < SHADOW_STRANGERS; i++)
		count += s->stranger[i].id != 0;
	return count;
}

void shadow_on_stranger(struct shadow *s, const struct sl_event *e)
{
	struct shadow_stranger *x =
		stranger_of(s, e->stranger.stranger, e->stranger.bytes > 0);

	if (!x)
		return;
	x->bytes[e->stranger.gpu] = e->stranger.bytes;
	if (!has_bytes(x))
		*x = (struct shadow_stranger){0};
}

void shadow_let_off(struct shadow *s)
{
	for (uint32_t i = 0; s->unmanaged != SL_UNMANAGED_STOP && i < SHADOW_STRANGERS;
		i++)
		s->stranger[i].told = s->stranger[i].killed = false;
}

void shadow_check_stop_stranger(struct shadow *s, const struct sl_action *a)
{
	struct shadow_stranger *x = stranger_of(s, a->stop_stranger.stranger, false);
	bool kill = a->stop_stranger.stage == SL_STOP_KILL;

	if (s->unmanaged != SL_UNMANAGED_STOP)
		shadow_fail(s, "a stranger is stopped, and the settings do not say so");
	if (!x || !has_bytes(x)) {
		shadow_fail(s, "a stranger is stopped that holds nothing");
		return;
	}
	if (kill ? !x->told || x->killed : x->told)
		shadow_fail(s, "a stranger is stopped twice, or killed without a word");
	if (kill && s->now - x->term_at <
			    (x->grace < s->stop_grace ? x->grace : s->stop_grace))
		shadow_fail(s, "a stranger was killed before its grace was over");
	x->killed |= kill;
	if (kill)
		return;
	x->told = true;
	x->term_at = s->now;
	x->grace = s->stop_grace;
}

void shadow_check_strangers(struct shadow *s)
{
	for (uint32_t i = 0; i < SHADOW_STRANGERS; i++) {
		const struct shadow_stranger *x = &s->stranger[i];
		sl_ns grace = x->grace > s->stop_grace ? x->grace : s->stop_grace;

		if (!x->id || s->unmanaged != SL_UNMANAGED_STOP)
			continue;
		if (!x->told)
			shadow_fail(s, "a stranger holds memory, and is not stopped");
		else if (!x->killed && s->now - x->term_at >= grace)
			shadow_fail(
				s, "a stranger was not killed when its grace was over");
		else if (!x->killed)
			shadow_check_wake(s, x->term_at + grace, "SIGKILL of a stranger");
	}
}
