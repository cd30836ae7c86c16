/*
 * shadow_stop - which processes may be stopped, probed or called untakeable, by the shadow's books
 *
 * A demand's memory without certain processes is worked out by leaving them out of the sums. Where
 * the contract leaves the choice open (which of several sufficient sets, when within a step), only
 * bounds are checked: no protected process is stopped, none that could be left out, and never fewer
 * than suffice. Where the rule is certain, a process must be stopped.
 */
#include "shadow.h"

#include <string.h>

/* A process that lives so long after SIGKILL hangs, and is not counted on. */
#define STUBBORN_AFTER (10 * SL_S)

static bool waits(const struct shadow_demand *d)
{
	return d->used && !d->granted;
}

/* --- the chain --- */

static uint32_t link_of(const struct shadow *s, uint32_t place)
{
	uint32_t chain = s->chain ? s->chain : SL_RESOLVER_WAIT;

	return chain >> 4 * place & 15;
}

bool shadow_has_resolver(const struct shadow *s, enum sl_resolver resolver)
{
	for (uint32_t i = 0; i < 4; i++) {
		if (link_of(s, i) == (uint32_t)resolver)
			return true;
	}
	return false;
}

/* `priority` is tried at once; otherwise when the longest wait is over. */
static bool stops_at_once(const struct shadow *s)
{
	for (uint32_t i = 0; i < 4 && link_of(s, i) != SL_RESOLVER_WAIT; i++) {
		if (link_of(s, i) == SL_RESOLVER_PRIORITY)
			return true;
	}
	return false;
}

sl_ns shadow_wait_max(const struct shadow *s, const struct shadow_demand *d)
{
	sl_ns own = d->client->workload->wait_max;

	return own ? own : s->wait_max;
}

/* The resolver `priority` may act for this demand now. */
static bool may_resolve(const struct shadow *s, const struct shadow_demand *d)
{
	sl_ns since = d->entitled ? d->arrived : d->burst_since;

	if (!shadow_has_resolver(s, SL_RESOLVER_PRIORITY))
		return false;
	return stops_at_once(s) || s->now - since >= shadow_wait_max(s, d);
}

/* --- what would be there without some --- */

static uint64_t above(const struct shadow *s, const struct shadow_workload *w,
	uint32_t gpu, const bool gone[SHADOW_CLIENTS])
{
	uint64_t use = shadow_use(s, w, gpu);
	uint64_t request = w->mask >> gpu & 1 ? w->request : 0;

	for (uint32_t i = 0; gone && i < s->clients_top; i++) {
		if (gone[i] && s->client[i].workload == w)
			use -= shadow_held(s, &s->client[i], gpu);
	}
	return use > request ? use - request : 0;
}

bool shadow_lends(const struct shadow *s, const struct shadow_workload *borrower,
	const struct shadow_workload *owner)
{
	return shadow_has_resolver(s, SL_RESOLVER_PRIORITY) &&
	       !(borrower->flags & SL_WORKLOAD_NO_SWAP) &&
	       owner->priority > borrower->priority;
}

bool shadow_lends_to(const struct shadow *s, const struct shadow_demand *d,
	const struct shadow_workload *owner)
{
	return !d->held && shadow_lends(s, d->client->workload, owner);
}

/* Bytes for d once all dying and all marked clients are gone; below 0 if more is resident
 * than can be shared. */
static int64_t would_have(const struct shadow *s, const struct shadow_demand *d,
	const bool gone[SHADOW_CLIENTS])
{
	int64_t have = (int64_t)shadow_shareable(s, d->gpu);

	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		const struct shadow_workload *w = &s->workload[i];
		uint64_t use, request;

		if (!w->used)
			continue;
		use = shadow_use(s, w, d->gpu);
		request = w->mask >> d->gpu & 1 ? w->request : 0;
		for (uint32_t c = 0; c < s->clients_top; c++) {
			if (gone[c] && s->client[c].workload == w)
				use -= shadow_held(s, &s->client[c], d->gpu);
		}
		have -= (int64_t)use;
		if (w != d->client->workload && request > use && !d->entitled &&
			!shadow_lends_to(s, d, w))
			have -= (int64_t)(request - use);
	}
	return have;
}

bool shadow_is_going(const struct shadow *s, const struct shadow_client *c)
{
	return c->used && c->alive && c->stop_reason &&
	       (!c->killed || s->now - c->kill_at < STUBBORN_AFTER);
}

/* Told to end by the resolvers, not killed, and the shortest grace it could have is over. */
static bool is_due(const struct shadow *s, const struct shadow_client *c)
{
	sl_ns grace = c->grace < s->stop_grace ? c->grace : s->stop_grace;

	return c->used && c->stop_reason && !c->killed && s->now - c->term_at >= grace;
}

/* The same of a workload that a person wants ended. */
static bool is_ending(const struct shadow *s, const struct shadow_workload *w)
{
	/* Removing it ends that, too: its processes are not killed, nor counted on. */
	return w->stop_asked && !w->leaving &&
	       (!w->stop_killed || s->now < w->kill_at + STUBBORN_AFTER);
}

static void mark_stopping(const struct shadow *s, bool gone[SHADOW_CLIENTS])
{
	for (uint32_t i = 0; i < SHADOW_CLIENTS; i++) {
		const struct shadow_client *c = &s->client[i];

		gone[i] = i < s->clients_top && c->used && c->alive &&
			  (shadow_is_going(s, c) || is_ending(s, c->workload));
	}
}

bool shadow_is_stopping(const struct shadow *s, uint32_t gpu)
{
	bool gone[SHADOW_CLIENTS] = {false}, any = false;

	mark_stopping(s, gone);
	for (uint32_t i = 0; i < s->clients_top; i++)
		any |= gone[i] && shadow_held(s, &s->client[i], gpu);
	return any;
}

/* Processes that are being stopped (by a person or for a demand) or that are dying have bytes of
 * the demand's GPU, and will free enough. */
bool shadow_stops_for(const struct shadow *s, const struct shadow_demand *d)
{
	bool any = shadow_is_stopping(s, d->gpu);

	for (uint32_t i = 0; i < s->clients_top; i++)
		any |= s->client[i].used && s->client[i].dying[d->gpu];
	return any && shadow_has_resolver(s, SL_RESOLVER_PRIORITY) &&
	       shadow_comes_back(s, d, SL_REASON_STOPPING_WAITS);
}

bool shadow_comes_back(
	const struct shadow *s, const struct shadow_demand *d, enum sl_reason reason)
{
	bool gone[SHADOW_CLIENTS] = {false};

	if (reason == SL_REASON_STOPPING_WAITS)
		mark_stopping(s, gone);
	return would_have(s, d, gone) >= (int64_t)d->bytes;
}

/* --- eligible victims --- */

/* How long the idleness had lasted at the last pulse, if it went on; liars know no end. */
static sl_ns lasts(const struct shadow *s, const struct shadow_client *c, sl_ns span)
{
	sl_ns since = s->now - c->pulse_at;

	return span > SL_NS_NEVER - since ? SL_NS_NEVER : span + since;
}

static bool is_idle(const struct shadow *s, const struct shadow_client *c)
{
	return s->stop_idle && c->idle_proven && lasts(s, c, c->idle_for) >= s->stop_idle;
}

static bool is_eligible(const struct shadow *s, const struct shadow_client *c,
	const struct shadow_demand *d, enum sl_reason reason)
{
	const struct shadow_workload *w = c->workload;

	switch (reason) {
	case SL_REASON_STOP_IDLE: return is_idle(s, c);
	case SL_REASON_STOP_PRIORITY: return w->priority < d->client->workload->priority;
	case SL_REASON_STOP_OVER_LIMIT: return shadow_use(s, w, d->gpu) > w->limit;
	case SL_REASON_STOP_LAST_RESORT:
		return d->entitled && s->last_resort == SL_LAST_RESORT_STOP &&
		       shadow_may_be_untakeable(s, c);
	default: return false;
	}
}

static bool could_be(
	const struct shadow_demand *d, uint32_t gpu, uint64_t workload, uint64_t bytes)
{
	return waits(d) && d->gpu == gpu && d->bytes == bytes &&
	       d->client->workload->id == workload;
}

/* The demand a STOP names: by GPU, workload and size, since the action carries no number. */
static struct shadow_demand *stop_for(struct shadow *s, uint32_t gpu, uint64_t workload,
	uint64_t bytes, const struct shadow_client *victim, enum sl_reason reason)
{
	struct shadow_demand *found = NULL;

	for (uint32_t i = 0; i < s->demands_top; i++) {
		struct shadow_demand *d = &s->demand[i];

		if (!could_be(d, gpu, workload, bytes))
			continue;
		if (!found || (is_eligible(s, victim, d, reason) &&
				      (reason == SL_REASON_STOP_LAST_RESORT ||
					      may_resolve(s, d))))
			found = d;
	}
	return found;
}

/* Its workload stays within its request with all that it asks for on this GPU. */
static bool is_surely_entitled(const struct shadow *s, const struct shadow_demand *d)
{
	const struct shadow_workload *w = d->client->workload;
	uint64_t bytes = shadow_use(s, w, d->gpu);

	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *o = &s->demand[i];

		if (waits(o) && o->client->workload == w && o->gpu == d->gpu)
			bytes += o->bytes;
	}
	return d->entitled && bytes <= w->request;
}

/* The demand with the bytes of all that may be served before it. The order within a priority is
 * more than this knows. */
static struct shadow_demand behind_any(
	const struct shadow *s, const struct shadow_demand *d)
{
	struct shadow_demand all = *d;

	all.entitled = is_surely_entitled(s, d);
	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *o = &s->demand[i];

		if (o != d && waits(o) && o->gpu == d->gpu &&
			(o->entitled ||
				(!all.entitled && o->client->workload->priority >=
							  d->client->workload->priority)))
			all.bytes += o->bytes;
	}
	return all;
}

static void check_term(
	struct shadow *s, const struct sl_action *a, struct shadow_client *c)
{
	enum sl_reason reason = (enum sl_reason)a->stop.reason;
	struct shadow_demand *d =
		stop_for(s, a->stop.gpu, a->stop.other, a->stop.bytes, c, reason);
	struct shadow_demand all;

	if (s->now < c->spared_until)
		shadow_fail(s, "client %llu was let off, and is told to end again",
			(unsigned long long)c->id);
	if (s->now < c->unreached_until)
		shadow_fail(s, "client %llu cannot be signalled, and is told to end",
			(unsigned long long)c->id);
	if (c->stop_reason)
		shadow_fail(s, "client %llu was told to end twice",
			(unsigned long long)c->id);
	if (!d) {
		shadow_fail(s, "client %llu is stopped for a demand that is none",
			(unsigned long long)c->id);
		return;
	}
	if (d->client->workload == c->workload)
		shadow_fail(s, "a workload is stopped for itself");
	if (!above(s, c->workload, d->gpu, NULL))
		shadow_fail(s, "GPU %u: workload %llu is stopped within its request",
			d->gpu, (unsigned long long)c->workload->id);
	if (!shadow_held(s, c, d->gpu))
		shadow_fail(s, "a client is stopped that holds nothing there");
	if (!is_eligible(s, c, d, reason))
		shadow_fail(s, "client %llu was stopped for %s, and it is not so",
			(unsigned long long)c->id, sl_reason_name(reason));
	if (reason != SL_REASON_STOP_LAST_RESORT && !may_resolve(s, d))
		shadow_fail(s, "stopped before `priority` had its turn in the chain");
	all = behind_any(s, d);
	if (shadow_fits(s, &all))
		shadow_fail(s, "a client is stopped for a demand that fits");
	if (shadow_is_recovering(s))
		shadow_fail(s, "a client is stopped while reports are missing");
	c->stop_reason = reason;
	c->stop_gpu = d->gpu;
	c->stop_order = d->order;
	c->term_at = s->now;
	c->term_step = s->steps;
	c->grace = s->stop_grace;
}

/* A demand still lacks what this process would free. */
static bool is_needed(const struct shadow *s, const struct shadow_client *c)
{
	bool gone[SHADOW_CLIENTS];

	mark_stopping(s, gone);
	gone[c - s->client] = false;
	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *d = &s->demand[i];

		if (waits(d) && d->client->workload != c->workload &&
			shadow_held(s, c, d->gpu) &&
			(int64_t)d->bytes > would_have(s, d, gone))
			return true;
	}
	return false;
}

static void check_kill(struct shadow *s, struct shadow_client *c)
{
	sl_ns grace = c->grace < s->stop_grace ? c->grace : s->stop_grace;

	if (!c->stop_reason || c->killed)
		shadow_fail(s, "client %llu was killed without a word, or twice",
			(unsigned long long)c->id);
	else if (s->now - c->term_at < grace)
		shadow_fail(s, "client %llu was killed %llu ms after SIGTERM",
			(unsigned long long)c->id,
			(unsigned long long)((s->now - c->term_at) / SL_MS));
	else if (!above(s, c->workload, c->stop_gpu, NULL))
		shadow_fail(s, "client %llu was killed within its request",
			(unsigned long long)c->id);
	c->killed = true;
	c->kill_at = s->now;
}

/* A person asked: the whole workload, TERM at once, KILL when the shortest grace is over. */
static void check_asked(struct shadow *s, const struct sl_action *a)
{
	struct shadow_workload *w = shadow_workload(s, a->stop.workload);

	if (!w || w->leaving || !w->stop_asked ||
		a->stop.reason != SL_REASON_STOP_ASKED) {
		shadow_fail(s, "a workload was stopped without a request");
		return;
	}
	if (a->stop.stage == SL_STOP_TERM) {
		if (s->event.type != SL_EVENT_WORKLOAD_STOP)
			shadow_fail(s, "SIGTERM later than asked for");
		w->stop_told = true;
		return;
	}
	if (s->now < w->kill_at)
		shadow_fail(s, "a workload was killed before its grace was over");
	w->stop_killed = true;
}

void shadow_check_stop(struct shadow *s, const struct sl_action *a)
{
	struct shadow_client *c = shadow_client(s, a->stop.client);

	if (!a->stop.client) {
		check_asked(s, a);
		return;
	}
	if (!c || !c->alive || c->workload->id != a->stop.workload) {
		shadow_fail(s, "a STOP of an unknown client");
		return;
	}
	if (a->stop.stage == SL_STOP_TERM)
		check_term(s, a, c);
	else
		check_kill(s, c);
}

void shadow_check_revoked(struct shadow *s, const struct sl_action *a)
{
	struct shadow_client *c = shadow_client(s, a->note.client);

	if (!c || !c->alive || !c->stop_reason || c->killed) {
		shadow_fail(s, "a STOP was revoked that was none");
		return;
	}
	if (!is_due(s, c) && is_needed(s, c) && above(s, c->workload, c->stop_gpu, NULL))
		shadow_fail(s, "a STOP was revoked that is still needed");
	c->stop_reason = 0;
	c->spared_until = s->now + SL_S;
}

/* What other workloads have above their requests once the marked clients are gone. all: the bytes
 * of every client count; else only those of clients that are certainly not untakeable. */
static uint64_t could_give(const struct shadow *s, const struct shadow_demand *d,
	const bool gone[SHADOW_CLIENTS], bool all)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		const struct shadow_workload *w = &s->workload[i];
		uint64_t burst, stuck = 0;

		if (!w->used || w == d->client->workload)
			continue;
		burst = above(s, w, d->gpu, gone);
		for (uint32_t c = 0; c < s->clients_top && !all; c++) {
			const struct shadow_client *v = &s->client[c];

			if (v->used && v->alive && v->workload == w && !gone[c] &&
				shadow_may_be_untakeable(s, v))
				stuck += shadow_held(s, v, d->gpu);
		}
		sum += burst > stuck ? burst - stuck : 0;
	}
	return sum;
}

/* Checks that the stopped processes suffice together, and that this one could not be left out. For
 * a last resort, what others can give by themselves counts, too. Returns what is wrong; NULL:
 * nothing. */
static const char *wrong_for(const struct shadow *s, const struct shadow_client *c,
	const struct shadow_demand *d)
{
	bool gone[SHADOW_CLIENTS], same[SHADOW_CLIENTS];
	bool last = c->stop_reason == SL_REASON_STOP_LAST_RESORT;
	struct shadow_demand all;
	int64_t others = 0;

	mark_stopping(s, gone);
	if (last)
		others = (int64_t)could_give(s, d, gone, true);
	if (would_have(s, d, gone) + others < (int64_t)d->bytes)
		return "is stopped, and it does not suffice";
	gone[c - s->client] = false;
	/* Of those stopped for one demand each must be above its request without the others. */
	memcpy(same, gone, sizeof(same));
	for (uint32_t i = 0; i < s->clients_top; i++)
		same[i] &= s->client[i].term_step < s->steps ||
			   s->client[i].stop_order == c->stop_order;
	if (!above(s, c->workload, d->gpu, same))
		return "is stopped, and its workload will be within its request";
	/* Judged with the bytes of all demands that may be served before d, because the processes
	 * may have to end for those. A process that a person stopped works on until it is proven
	 * idle, and does not count as gone. */
	for (uint32_t i = 0; i < s->clients_top; i++)
		same[i] &= shadow_is_going(s, &s->client[i]) || s->client[i].idle_proven;
	all = behind_any(s, d);
	if (last)
		others = (int64_t)could_give(s, d, same, false);
	return would_have(s, &all, same) + others >= (int64_t)all.bytes
		       ? "is stopped in vain"
		       : NULL;
}

/* Two demands of a workload may ask for as much: the STOP is for either. */
static void check_victim(struct shadow *s, struct shadow_client *c)
{
	const struct shadow_demand *found = NULL;
	const char *wrong = NULL;

	for (uint32_t i = 0; i < s->demands_top && !found; i++) {
		const struct shadow_demand *d = &s->demand[i];

		if (waits(d) && d->order == c->stop_order)
			found = d;
	}
	for (uint32_t i = 0; found && i < s->demands_top; i++) {
		const struct shadow_demand *d = &s->demand[i];

		if (!could_be(d, found->gpu, found->client->workload->id, found->bytes))
			continue;
		wrong = wrong_for(s, c, d);
		if (!wrong)
			return;
	}
	if (wrong)
		shadow_fail(s, "GPU %u: client %llu %s", found->gpu,
			(unsigned long long)c->id, wrong);
}

/* Memory that stopping could certainly free for d: by priority or above the limit, down
 * to the requests of the others. */
static uint64_t could_free(const struct shadow *s, const struct shadow_demand *d,
	const bool gone[SHADOW_CLIENTS])
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		const struct shadow_workload *w = &s->workload[i];
		bool lower = w->priority < d->client->workload->priority;
		uint64_t held = 0, burst, request;

		if (!w->used || w == d->client->workload || is_ending(s, w))
			continue;
		for (uint32_t c = 0; c < s->clients_top; c++) {
			const struct shadow_client *v = &s->client[c];

			if (v->used && v->alive && v->workload == w && !gone[c] &&
				s->now >= v->unreached_until && s->now >= v->spared_until)
				held += shadow_held(s, v, d->gpu);
		}
		burst = above(s, w, d->gpu, gone);
		request = w->mask >> d->gpu & 1 ? w->request : 0;
		/* Above its limit it is only as long as it is. */
		if (!lower && burst + request > w->limit)
			burst = burst + request - w->limit;
		else if (!lower)
			continue;
		sum += held < burst ? held : burst;
	}
	return sum;
}

/* It lacks bytes that `priority` could take, and no process is stopped for it. */
static void check_resolved(struct shadow *s, const struct shadow_demand *d)
{
	bool gone[SHADOW_CLIENTS];
	int64_t have, bytes = (int64_t)d->bytes;

	if (!may_resolve(s, d) || shadow_fits(s, d) || shadow_is_going(s, d->client) ||
		shadow_backs_off(s, d, false) ||
		(!d->entitled && s->gpu[d->gpu].degraded))
		return;
	/* The shadow does not know which demand is the first. */
	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *o = &s->demand[i];

		if (o != d && waits(o) && o->gpu == d->gpu)
			return;
	}
	mark_stopping(s, gone);
	if (would_have(s, d, gone) >= bytes)
		return;
	/* A process that a person stops and that works on is not counted on. */
	for (uint32_t i = 0; i < s->clients_top; i++)
		gone[i] &= shadow_is_going(s, &s->client[i]);
	have = would_have(s, d, gone);
	if (have + (int64_t)could_free(s, d, gone) >= bytes)
		shadow_fail(s, "GPU %u: demand %llu lacks what `priority` could take",
			d->gpu, (unsigned long long)d->order);
}

/* --- untakeable --- */

/* Certainly: so long in one such state, by the last report. */
bool shadow_is_untakeable(const struct shadow *s, const struct shadow_client *c)
{
	if (!s->untakeable_after || !c->alive)
		return false;
	return (c->condition != SL_CONDITION_RUNNING &&
		       s->now - c->condition_since >= s->untakeable_after) ||
	       (c->busy && c->busy_for >= s->untakeable_after);
}

/* Possibly: the state may have begun with any of several, and may last. */
bool shadow_may_be_untakeable(const struct shadow *s, const struct shadow_client *c)
{
	if (!s->untakeable_after || !c->alive)
		return false;
	return (c->condition != SL_CONDITION_RUNNING &&
		       s->now - c->troubled_since >= s->untakeable_after) ||
	       (c->busy && lasts(s, c, c->busy_for) >= s->untakeable_after);
}

bool shadow_has_untakeable(
	const struct shadow *s, const struct shadow_workload *w, bool sure)
{
	for (uint32_t i = 0; i < s->clients_top; i++) {
		const struct shadow_client *c = &s->client[i];

		if (c->used && c->workload == w &&
			(sure ? shadow_is_untakeable(s, c)
			      : shadow_may_be_untakeable(s, c)))
			return true;
	}
	return false;
}

/* An entitled demand is denied because of an untakeable client. There must be one whose workload
 * has a burst, and no other client may be able to give the bytes. */
void shadow_check_untakeable(struct shadow *s, const struct shadow_demand *d)
{
	int64_t could;
	bool gone[SHADOW_CLIENTS], any = false;

	mark_stopping(s, gone);
	/* A process whose grace period is over may be spared now. */
	for (uint32_t i = 0; i < s->clients_top; i++)
		gone[i] &= !is_due(s, &s->client[i]);
	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		const struct shadow_workload *w = &s->workload[i];
		uint64_t held = 0, burst;

		if (!w->used || w == d->client->workload)
			continue;
		for (uint32_t c = 0; c < s->clients_top; c++) {
			if (s->client[c].used && s->client[c].workload == w && !gone[c] &&
				shadow_may_be_untakeable(s, &s->client[c]))
				held += shadow_held(s, &s->client[c], d->gpu);
		}
		burst = above(s, w, d->gpu, gone);
		any |= held && burst;
	}
	if (!d->entitled)
		shadow_fail(s, "a burst demand was denied for an untakeable client");
	if (s->last_resort != SL_LAST_RESORT_FAIL)
		shadow_fail(s, "a demand failed, and the last resort is to stop");
	could = would_have(s, d, gone);
	if (!any)
		shadow_fail(s, "denied for an untakeable client, and there is none");
	else if (could >= (int64_t)d->bytes)
		shadow_fail(
			s, "denied for an untakeable client, and the bytes will be free");
}

void shadow_check_untakeable_note(struct shadow *s, const struct sl_action *a)
{
	struct shadow_client *c = shadow_client(s, a->note.client);
	bool begins = a->note.reason == SL_REASON_UNTAKEABLE_BEGINS;

	if (!c || !c->alive) {
		shadow_fail(s, "no client is untakeable");
		return;
	}
	if (c->noted_untakeable == begins)
		shadow_fail(s, "client %llu was noted twice", (unsigned long long)c->id);
	if (begins && !shadow_may_be_untakeable(s, c))
		shadow_fail(
			s, "client %llu is not untakeable", (unsigned long long)c->id);
	if (!begins && shadow_is_untakeable(s, c))
		shadow_fail(
			s, "client %llu is untakeable still", (unsigned long long)c->id);
	c->noted_untakeable = begins;
}

static void check_client(struct shadow *s, struct shadow_client *c)
{
	sl_ns grace = c->grace > s->stop_grace ? c->grace : s->stop_grace;

	if (shadow_is_untakeable(s, c) && !c->noted_untakeable)
		shadow_fail(s, "client %llu is untakeable, and no note says so",
			(unsigned long long)c->id);
	if (!shadow_may_be_untakeable(s, c) && c->noted_untakeable &&
		s->wake > s->now + SL_MS)
		shadow_fail(s,
			"client %llu is not untakeable any more, and no note says so",
			(unsigned long long)c->id);
	if (!c->stop_reason || c->killed)
		return;
	if (s->now - c->term_at >= grace && s->wake > s->now)
		shadow_fail(s, "client %llu was not killed when its grace was over",
			(unsigned long long)c->id);
	shadow_check_wake(s, c->term_at + grace, "SIGKILL");
	if (c->term_step == s->steps)
		check_victim(s, c);
}

/* --- probes --- */

/* An entitled demand has waited long enough on this GPU that its borrowers are looked at. */
static bool is_probed_gpu(const struct shadow *s, uint32_t gpu, sl_ns after)
{
	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *d = &s->demand[i];

		if (waits(d) && d->gpu == gpu && d->entitled &&
			s->now - d->arrived >= after)
			return true;
	}
	return false;
}

/* Without `priority`, only two kinds of clients are watched: those with a burst where an entitled
 * demand waits, and those that are untakeable or stopped, until that ends. */
static bool may_be_probed(const struct shadow *s, const struct shadow_client *c)
{
	if (shadow_has_resolver(s, SL_RESOLVER_PRIORITY) ||
		shadow_may_be_untakeable(s, c) || c->condition != SL_CONDITION_RUNNING)
		return true;
	for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
		if (is_probed_gpu(s, gpu, SL_S) && above(s, c->workload, gpu, NULL))
			return true;
	}
	return false;
}

void shadow_check_probe(struct shadow *s, const struct sl_action *a)
{
	struct shadow_client *c = shadow_client(s, a->probe.client);

	if (!c || !c->alive) {
		shadow_fail(s, "no client is probed");
		return;
	}
	if (a->probe.mode >= SL_PROBES || a->probe.mode == (uint32_t)c->probe)
		shadow_fail(s, "client %llu is probed as it is already",
			(unsigned long long)c->id);
	c->probe = (enum sl_probe)a->probe.mode;
	c->probed_at = s->now;
	if (c->probe != SL_PROBE_OFF)
		return;
	if (c->condition != SL_CONDITION_RUNNING)
		shadow_fail(s, "client %llu is looked at no more while it is stopped",
			(unsigned long long)c->id);
	/* Earlier reports of its work no longer count. */
	c->busy = c->idle_proven = false;
	c->idle_for = 0;
}

static void check_probe(struct shadow *s, const struct shadow_client *c)
{
	/* A step that changed something may leave the rest to the next one. A mode that was told
	 * lasts for 1 s, so that no client is told too often. */
	if (c->probe != SL_PROBE_OFF && s->wake > s->now + SL_MS &&
		s->now >= c->probed_at + SL_S && !may_be_probed(s, c))
		shadow_fail(s, "client %llu is probed for nothing",
			(unsigned long long)c->id);
	/* One that has not been heard of yet cannot be asked. */
	if (c->probe == SL_PROBE_OFF && !c->expected &&
		shadow_has_resolver(s, SL_RESOLVER_PRIORITY))
		shadow_fail(s, "client %llu is not watched, and `priority` needs it",
			(unsigned long long)c->id);
}

void shadow_check_stopping(struct shadow *s)
{
	for (uint32_t i = 0; i < s->clients_top; i++) {
		if (!s->client[i].used || !s->client[i].alive)
			continue;
		check_client(s, &s->client[i]);
		check_probe(s, &s->client[i]);
	}
	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		const struct shadow_workload *w = &s->workload[i];

		if (!w->used || w->leaving || !w->stop_asked)
			continue;
		if (!w->stop_told)
			shadow_fail(s, "a workload was to be stopped, and is not");
		if (!w->stop_killed && s->now >= w->kill_at)
			shadow_fail(
				s, "a workload was not killed when its grace was over");
		if (!w->stop_killed)
			shadow_check_wake(s, w->kill_at, "SIGKILL of a workload");
	}
	/* A step that changed something may leave the rest to the next one. */
	for (uint32_t i = 0; i < s->demands_top && !shadow_is_recovering(s) &&
			     s->wake > s->now + SL_MS;
		i++) {
		if (waits(&s->demand[i]))
			check_resolved(s, &s->demand[i]);
	}
}
