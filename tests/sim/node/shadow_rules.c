/*
 * shadow_rules - the promises and rules, judged from the shadow's own books
 *
 * Each rule is written from its sentence in the design, in the plainest way. The deadlock rule
 * recomputes from scratch what is kept for which client, for every client and round; admission
 * tries every GPU; order looks at every waiting demand.
 */
#include "shadow.h"

#include <string.h>

/* Retry of a refused creation: not sooner, unless memory came back; not later, if it fits. */
#define RETRY_SOONEST (20 * SL_MS)
#define RETRY_LATEST  (500 * SL_MS)
#define NOTE_AFTER    (1 * SL_S)
/* The node may see the effect of a step in the next one, this much later. */
#define STEP_LATER SL_MS

bool shadow_is_before(const struct shadow_demand *a, const struct shadow_demand *b)
{
	int32_t ap = a->client->workload->priority, bp = b->client->workload->priority;

	if (a->entitled != b->entitled)
		return a->entitled;
	if (ap != bp)
		return ap > bp;
	return a->order < b->order;
}

static bool waits(const struct shadow_demand *d)
{
	return d->used && !d->granted;
}

/* Unclaimed requests of the other workloads that it may not stand on. */
static uint64_t others_unclaimed(const struct shadow *s, const struct shadow_demand *d)
{
	const struct shadow_workload *but = d->client->workload;
	uint32_t gpu = d->gpu;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		const struct shadow_workload *w = &s->workload[i];
		uint64_t use;

		if (!w->used || w == but || !(w->mask >> gpu & 1) ||
			shadow_lends_to(s, d, w))
			continue;
		use = shadow_use(s, w, gpu);
		sum += w->request > use ? w->request - use : 0;
	}
	return sum;
}

bool shadow_is_over_promise(const struct shadow *s, const struct shadow_demand *d)
{
	const struct shadow_workload *mine = d->client->workload;
	uint64_t fixed = shadow_fixed(s, mine, d->gpu), others = 0, ignored;

	if (!d->held || fixed + d->bytes <= mine->request)
		return false;
	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		const struct shadow_workload *w = &s->workload[i];

		if (!w->used || w == mine)
			continue;
		if (d->there)
			others += shadow_claim(s, w, d->gpu, &ignored);
		else if (!w->leaving && (w->mask >> d->gpu & 1))
			others += w->request;
	}
	return fixed + d->bytes + others > shadow_shareable(s, d->gpu);
}

bool shadow_fits(const struct shadow *s, const struct shadow_demand *d)
{
	uint64_t free_bytes = shadow_free(s, d->gpu);

	if (s->gpu[d->gpu].lost)
		return false;
	if (d->there)
		return !shadow_is_over_promise(s, d) &&
		       (d->entitled || !s->gpu[d->gpu].degraded);
	if (d->entitled)
		return d->bytes <= free_bytes;
	if (s->gpu[d->gpu].degraded)
		return false;
	return d->bytes + others_unclaimed(s, d) <= free_bytes;
}

struct shadow_demand shadow_behind(const struct shadow *s, const struct shadow_demand *d)
{
	struct shadow_demand all = *d;

	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *o = &s->demand[i];

		if (o == d || !waits(o) || o->gpu != d->gpu || !shadow_is_before(o, d))
			continue;
		all.bytes += o->bytes;
		/* With its siblings served it may be a burst. */
		all.entitled &= o->client->workload != d->client->workload;
	}
	return all;
}

bool shadow_fits_behind(const struct shadow *s, const struct shadow_demand *d)
{
	struct shadow_demand all = shadow_behind(s, d);

	return shadow_fits(s, &all);
}

bool shadow_counts_as_waiting(const struct shadow *s, const struct shadow_client *c)
{
	/* It is about to give all it has. */
	if (shadow_is_going(s, c))
		return false;
	/* Longer waits that are configured meanwhile do not take it back. */
	if (s->now - c->active < s->idle_wait)
		return false;
	for (uint32_t i = 0; i < s->demands_top; i++) {
		if (waits(&s->demand[i]) && s->demand[i].client == c)
			return true;
	}
	return false;
}

/* --- deadlock --- */

/* Whether d fits if every client outside the stuck set gives all it has. */
static bool could_get(
	const struct shadow *s, const bool stuck[], const struct shadow_demand *d)
{
	uint64_t pot = shadow_shareable(s, d->gpu), mine = 0, reserved = 0;

	if (s->gpu[d->gpu].degraded)
		return true;
	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		const struct shadow_workload *w = &s->workload[i];
		uint64_t kept = 0;
		bool any = false;

		if (!w->used)
			continue;
		for (uint32_t c = 0; c < s->clients_top; c++) {
			if (!stuck[c] || s->client[c].workload != w)
				continue;
			any = true;
			kept += shadow_held(s, &s->client[c], d->gpu);
		}
		pot = pot > kept ? pot - kept : 0;
		if (w == d->client->workload)
			mine = kept;
		else if (any && (w->mask >> d->gpu & 1) && w->request > kept &&
			 !shadow_lends_to(s, d, w))
			reserved += w->request - kept;
	}
	if (d->bytes > pot)
		return false;
	return mine + d->bytes <= d->client->workload->request ||
	       d->bytes + reserved <= pot;
}

/* On every GPU it waits on, one of its demands could be had. */
static bool could_finish(const struct shadow *s, const bool stuck[], uint32_t client)
{
	uint32_t on = 0, had = 0;

	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *d = &s->demand[i];

		if (!waits(d) || d->client != &s->client[client])
			continue;
		on |= 1u << d->gpu;
		if (could_get(s, stuck, d))
			had |= 1u << d->gpu;
	}
	return on == had;
}

static bool holds_nothing(const struct shadow *s, uint32_t client)
{
	for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
		if (shadow_held(s, &s->client[client], gpu))
			return false;
	}
	return true;
}

/* A demand that the driver refused is tried once more, so its client is not stuck until then. sure:
 * nor is a client that may have such a demand. */
static uint32_t begin_stuck(const struct shadow *s, bool stuck[SHADOW_CLIENTS], bool sure)
{
	uint32_t count = 0;

	memset(stuck, 0, SHADOW_CLIENTS * sizeof(stuck[0]));
	for (uint32_t i = 0; i < s->clients_top; i++)
		stuck[i] = s->client[i].used && s->client[i].alive &&
			   shadow_counts_as_waiting(s, &s->client[i]);
	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *d = &s->demand[i];

		if (waits(d) && shadow_backs_off(s, d, !sure))
			stuck[d->client - s->client] = false;
	}
	for (uint32_t i = 0; i < s->clients_top; i++)
		count += stuck[i];
	return count;
}

uint32_t shadow_hopeless(const struct shadow *s, bool stuck[SHADOW_CLIENTS], bool sure)
{
	uint32_t count = begin_stuck(s, stuck, sure);
	bool again = count > 0;

	while (again) {
		again = false;
		for (uint32_t i = 0; i < s->clients_top; i++) {
			if (!stuck[i] || !could_finish(s, stuck, i))
				continue;
			stuck[i] = false;
			again = true;
			count--;
		}
	}
	return count;
}

/* If this client gave what it holds, another hopeless one could finish. */
static bool frees_another(
	const struct shadow *s, const bool stuck[SHADOW_CLIENTS], uint32_t client)
{
	bool rest[SHADOW_CLIENTS];

	if (holds_nothing(s, client))
		return false;
	memcpy(rest, stuck, sizeof(rest));
	rest[client] = false;
	for (uint32_t i = 0; i < s->clients_top; i++) {
		if (rest[i] && could_finish(s, rest, i))
			return true;
	}
	return false;
}

/* Returns the youngest demand whose client helps another by giving way; if none helps, the
 * youngest. blocked: only among demands that do not fit; else among all. */
static const struct shadow_demand *youngest_victim(
	const struct shadow *s, const bool stuck[SHADOW_CLIENTS], bool blocked)
{
	const struct shadow_demand *useful = NULL, *any = NULL;

	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *d = &s->demand[i];
		uint32_t client = (uint32_t)(d->client - s->client);

		if (!waits(d) || d->entitled || !stuck[client] ||
			(blocked && could_get(s, stuck, d)))
			continue;
		if (!any || d->order > any->order)
			any = d;
		if ((!useful || d->order > useful->order) &&
			frees_another(s, stuck, client))
			useful = d;
	}
	return useful ? useful : any;
}

const struct shadow_demand *shadow_victim(
	const struct shadow *s, const bool stuck[SHADOW_CLIENTS])
{
	const struct shadow_demand *blocked = youngest_victim(s, stuck, true);

	return blocked ? blocked : youngest_victim(s, stuck, false);
}

/* --- what free bytes are kept for --- */

/* Could the demand be served by clients that do not wait, and by waiting ones that can finish
 * before it and then give what they have? `helps` marks the latter. Clients in `without` give
 * nothing. */
static bool could_be_served(const struct shadow *s, const struct shadow_demand *d,
	const bool without[SHADOW_CLIENTS], bool helps[SHADOW_CLIENTS])
{
	uint32_t owner = (uint32_t)(d->client - s->client);
	bool stuck[SHADOW_CLIENTS];
	bool again = true;

	memset(helps, 0, SHADOW_CLIENTS * sizeof(helps[0]));
	begin_stuck(s, stuck, true);
	stuck[owner] = true;
	while (again && !could_get(s, stuck, d)) {
		again = false;
		for (uint32_t i = 0; i < s->clients_top; i++) {
			if (!stuck[i] || i == owner || without[i] ||
				!could_finish(s, stuck, i))
				continue;
			stuck[i] = false;
			helps[i] = again = true;
		}
	}
	return could_get(s, stuck, d);
}

bool shadow_backs_off(const struct shadow *s, const struct shadow_demand *d, bool sure)
{
	if (!d->refused_ever || d->released_since)
		return false;
	return s->now < d->refused_at + (sure ? RETRY_SOONEST : RETRY_LATEST);
}

/* Free bytes may be set aside for the demand: it has waited for head_pass, or dying and stopping
 * processes will free all that it lacks. */
static bool may_set_aside(const struct shadow *s, const struct shadow_demand *d)
{
	return s->now - d->arrived >= s->head_pass ||
	       shadow_comes_back(s, d, SL_REASON_STOPPING_WAITS);
}

/* For another one, or an older one of its workload takes the request first. */
bool shadow_may_be_kept(const struct shadow *s, const struct shadow_demand *d)
{
	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *o = &s->demand[i];

		if (o != d && waits(o) && o->gpu == d->gpu &&
			(may_set_aside(s, o) ||
				o->client->workload == d->client->workload))
			return true;
	}
	return false;
}

/* The demand lacks only what is kept for others, and its client has something to give. If an older
 * demand of its workload may take the request first, it counts as a burst. */
static bool is_kept_out(const struct shadow *s, const struct shadow_demand *d)
{
	struct shadow_demand as = *d;

	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *o = &s->demand[i];

		as.entitled &= !waits(o) || o->gpu != d->gpu || o->order >= d->order ||
			       o->client->workload != d->client->workload;
	}
	return shadow_fits(s, &as) && !shadow_backs_off(s, d, false) &&
	       shadow_counts_as_waiting(s, d->client) &&
	       !holds_nothing(s, (uint32_t)(d->client - s->client));
}

/* Free bytes may be kept for the demand although they keep out the clients in `out`: it can be
 * served before any of these gives its memory, or their memory would not help. */
static bool may_keep(const struct shadow *s, const struct shadow_demand *d,
	const bool out[SHADOW_CLIENTS])
{
	const bool none[SHADOW_CLIENTS] = {false};
	bool helps[SHADOW_CLIENTS];

	if (could_be_served(s, d, out, helps))
		return true;
	(void)could_be_served(s, d, none, helps);
	for (uint32_t i = 0; i < s->clients_top; i++) {
		if (out[i] && helps[i])
			return false;
	}
	return true;
}

static void check_no_lockout(struct shadow *s, uint32_t gpu)
{
	bool out[SHADOW_CLIENTS] = {false}, any = false;

	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *d = &s->demand[i];

		if (waits(d) && d->gpu == gpu && is_kept_out(s, d))
			out[d->client - s->client] = true;
	}
	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *d = &s->demand[i];

		if (!waits(d) || d->gpu != gpu || is_kept_out(s, d) ||
			!may_set_aside(s, d))
			continue;
		if (may_keep(s, d, out))
			return;
		any = true;
	}
	if (any)
		shadow_fail(s,
			"GPU %u: bytes are kept for clients that need the one that wants "
			"them",
			gpu);
}

/* --- judging actions --- */

/* Held memory beyond the request: all claims still fit with it, and only its process can free
 * it. */
static void check_promise(struct shadow *s, const struct shadow_demand *d)
{
	const struct shadow_workload *mine = d->client->workload;
	uint64_t fixed = shadow_fixed(s, mine, d->gpu), claims = fixed + d->bytes,
		 ignored;

	if (!d->held || claims <= mine->request)
		return;
	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		if (s->workload[i].used && &s->workload[i] != mine)
			claims += shadow_claim(s, &s->workload[i], d->gpu, &ignored);
	}
	if (claims > shadow_shareable(s, d->gpu))
		shadow_fail(
			s, "GPU %u: held memory was granted against a promise", d->gpu);
}

void shadow_check_grant(struct shadow *s, const struct shadow_demand *d)
{
	const struct shadow_workload *w = d->client->workload;

	if (shadow_is_recovering(s))
		shadow_fail(s, "a grant while reports are missing");
	check_promise(s, d);
	if (d->there) {
		if (!shadow_fits(s, d))
			shadow_fail(s, "GPU %u: %llu bytes became held that may not",
				d->gpu, (unsigned long long)d->bytes);
		return;
	}
	if (shadow_use(s, w, d->gpu) + d->bytes > w->limit)
		shadow_fail(s, "a grant above the limit of workload %llu",
			(unsigned long long)w->id);
	if (!shadow_fits(s, d))
		shadow_fail(s, "GPU %u: a grant of %llu %s bytes that do not fit", d->gpu,
			(unsigned long long)d->bytes, d->entitled ? "entitled" : "burst");
	if (shadow_backs_off(s, d, true))
		shadow_fail(s, "a refused creation was retried at once");
}

static void check_hopeless(struct shadow *s, const struct shadow_demand *d)
{
	bool stuck[SHADOW_CLIENTS];

	if (shadow_hopeless(s, stuck, true) && shadow_victim(s, stuck) == d)
		return;
	if (!shadow_hopeless(s, stuck, false) || !stuck[d->client - s->client])
		shadow_fail(s, "a demand was called hopeless and is not");
	/* On a GPU that can share nothing, all of them give way, in any order. */
	else if (shadow_victim(s, stuck) != d && shadow_shareable(s, d->gpu))
		shadow_fail(s, "another burst demand had to give way");
}

static void check_too_long(
	struct shadow *s, const struct shadow_demand *d, enum sl_reason reason)
{
	/* A demand for bytes that are there is answered at once. */
	if (d->there) {
		if (reason != SL_REASON_GPU_DEGRADED || !s->gpu[d->gpu].degraded)
			shadow_fail(s, "what is there may not be held, and it is not so");
		return;
	}
	/* Without waiting, a degraded GPU ends it at once. */
	if (reason == SL_REASON_GPU_DEGRADED && !shadow_has_resolver(s, SL_RESOLVER_WAIT))
		return;
	if (s->now - d->burst_since < shadow_wait_max(s, d))
		shadow_fail(s, "a burst demand was ended after %llu ms",
			(unsigned long long)((s->now - d->burst_since) / SL_MS));
	if ((reason == SL_REASON_GPU_DEGRADED) != s->gpu[d->gpu].degraded)
		shadow_fail(s, "GPU %u: degraded is not what ended the demand, or is",
			d->gpu);
}

/* The first burst of a process that finds no memory is denied; later ones wait. */
static void check_oom_first(struct shadow *s, const struct shadow_demand *d)
{
	if (!(d->client->workload->flags & SL_WORKLOAD_OOM_FIRST))
		shadow_fail(s, "out-of-memory first, and no workload has that option");
	if (d->client->oom_told)
		shadow_fail(s, "out-of-memory first, for the second time");
	if (shadow_fits(s, d) && !shadow_may_be_kept(s, d) &&
		!shadow_backs_off(s, d, false))
		shadow_fail(s, "out-of-memory first for a demand that fits");
	d->client->oom_told = d->client->oom_waits = true;
}

void shadow_check_deny(
	struct shadow *s, const struct shadow_demand *d, enum sl_reason reason)
{
	const struct shadow_workload *w = d->client->workload;

	if (d->entitled && reason != SL_REASON_OVER_LIMIT &&
		reason != SL_REASON_CANCELLED &&
		sl_reason_kind(reason) != SL_REASON_KIND_EXCEPT) {
		shadow_fail(
			s, "an entitled demand was denied: %s", sl_reason_name(reason));
		return;
	}
	switch (reason) {
	case SL_REASON_OVER_LIMIT:
		if (d->bytes <= w->limit &&
			shadow_use(s, w, d->gpu) + d->bytes <= w->limit)
			shadow_fail(s, "denied as over the limit, and is not");
		break;
	case SL_REASON_HELD_ON_REQUESTS:
		if (!shadow_is_over_promise(s, d))
			shadow_fail(s, "denied as held on requests, and is not");
		break;
	case SL_REASON_HOPELESS: check_hopeless(s, d); break;
	case SL_REASON_WAITED_TOO_LONG:
	case SL_REASON_GPU_DEGRADED: check_too_long(s, d, reason); break;
	case SL_REASON_CANCELLED:
		if (!d->cancelled)
			shadow_fail(s, "a demand was cancelled without a CANCEL");
		break;
	case SL_REASON_DRIVER_REFUSES:
		/* A burst that it refused is denied for that when its longest wait is over. */
		if (!d->entitled && d->refused_ever) {
			if (shadow_has_resolver(s, SL_RESOLVER_WAIT))
				check_too_long(s, d, reason);
			break;
		}
		if (!d->entitled || !d->refused_ever ||
			s->now - d->refused_first < s->wait_max)
			shadow_fail(s, "the driver was blamed too early");
		break;
	case SL_REASON_GPU_LOST:
		if (!s->gpu[d->gpu].lost && !d->is_void)
			shadow_fail(s, "GPU %u is not lost", d->gpu);
		break;
	case SL_REASON_UNTAKEABLE: shadow_check_untakeable(s, d); break;
	case SL_REASON_LIMIT_DROPPED:
		if (!shadow_has_untakeable(s, w, false))
			shadow_fail(
				s, "a limit was dropped, and no client is untakeable");
		break;
	case SL_REASON_OOM_FIRST: check_oom_first(s, d); break;
	case SL_REASON_NO_RESOLVER:
		if (shadow_has_resolver(s, SL_RESOLVER_WAIT))
			shadow_fail(
				s, "denied for want of a resolver, and there is `wait`");
		if (shadow_fits_behind(s, d))
			shadow_fail(s, "denied for want of a resolver, and it fits");
		break;
	default: shadow_fail(s, "a demand was denied for %s", sl_reason_name(reason));
	}
}

/* Another workload has something above its request there. */
static bool others_burst(const struct shadow *s, const struct shadow_demand *d)
{
	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		const struct shadow_workload *w = &s->workload[i];
		uint64_t request = w->mask >> d->gpu & 1 ? w->request : 0;

		if (w->used && w != d->client->workload &&
			shadow_use(s, w, d->gpu) > request)
			return true;
	}
	return false;
}

/* What the sentence says is so. */
static bool is_true_of(
	const struct shadow *s, const struct shadow_demand *d, enum sl_reason reason)
{
	bool kept = shadow_may_be_kept(s, d);

	switch (reason) {
	case SL_REASON_ENTITLED_WAITS: return d->entitled;
	case SL_REASON_BURST_WAITS: return !d->entitled;
	case SL_REASON_REQUESTS_WAIT: return !d->entitled && !others_burst(s, d);
	case SL_REASON_KEPT_FOR_HEAD: return kept || shadow_backs_off(s, d, false);
	case SL_REASON_RECOVERY_WAITS: return shadow_is_recovering(s);
	case SL_REASON_DRIVER_WAITS: return d->refused_ever && shadow_fits(s, d);
	/* Processes of its own workload that are being stopped may count as well. */
	case SL_REASON_DYING_WAITS:
		return shadow_comes_back(s, d, SL_REASON_STOPPING_WAITS);
	case SL_REASON_STOPPING_WAITS: return shadow_is_stopping(s, d->gpu);
	default: return false;
	}
}

/* More than any GPU has is noted as a number that sums can take. */
static uint64_t noted_bytes(const struct shadow_demand *d)
{
	return d->bytes < 1ull << 48 ? d->bytes : 1ull << 48;
}

/* A note about waiting must be about a demand that has waited long enough, once. */
void shadow_check_waits(struct shadow *s, const struct sl_action *a)
{
	for (uint32_t i = 0; i < s->demands_top; i++) {
		struct shadow_demand *d = &s->demand[i];
		bool *noted = d->entitled ? &d->noted_entitled : &d->noted_burst;

		if (!waits(d) || *noted || d->gpu != a->note.gpu ||
			noted_bytes(d) != a->note.bytes ||
			d->client->workload->id != a->note.workload ||
			d->client->id != a->note.client ||
			s->now - d->arrived < NOTE_AFTER ||
			s->now - d->arrived != a->note.span ||
			!is_true_of(s, d, (enum sl_reason)a->note.reason))
			continue;
		*noted = true;
		return;
	}
	shadow_fail(s,
		"a note about waiting (%s), and no demand waits so, or for so long",
		sl_reason_name(a->note.reason));
}

/* --- judging the state after an event --- */

void shadow_check_wake(struct shadow *s, sl_ns at, const char *what)
{
	if (s->wake > at && at > s->now)
		shadow_fail(s, "no WAKE_AT wakes the node for %s", what);
}

static void check_notes_of(struct shadow *s, const struct shadow_demand *d)
{
	if (s->now - d->arrived < NOTE_AFTER)
		shadow_check_wake(s, d->arrived + NOTE_AFTER, "a note about waiting");
	else if (!d->noted_entitled && !d->noted_burst)
		shadow_fail(s, "demand %llu waits, and no note says so",
			(unsigned long long)d->order);
}

/* Nothing is tried but waiting. */
static bool waits_only(const struct shadow *s)
{
	return !shadow_has_resolver(s, SL_RESOLVER_PRIORITY);
}

/* A burst is denied after its longest wait, unless processes are being stopped for it. Without
 * `wait` it waits only for memory that comes by itself. */
static void check_patience(struct shadow *s, const struct shadow_demand *d)
{
	if (d->entitled || shadow_is_going(s, d->client))
		return;
	if (s->now - d->burst_since >= shadow_wait_max(s, d) + STEP_LATER &&
		!shadow_stops_for(s, d))
		shadow_fail(s, "a burst demand waits for ever");
	if (!shadow_has_resolver(s, SL_RESOLVER_WAIT) && !shadow_backs_off(s, d, false) &&
		!shadow_fits(s, d) && !shadow_comes_back(s, d, SL_REASON_STOPPING_WAITS))
		shadow_fail(s, "a burst waits, and `wait` is not in the chain");
	if (s->event.type == SL_EVENT_ASK && d->client->id == s->event.ask.client &&
		d->ask == s->event.ask.ask && d->arrived == s->now && waits_only(s) &&
		!d->client->oom_waits && !d->refused_ever && !shadow_fits(s, d) &&
		(d->client->workload->flags & SL_WORKLOAD_OOM_FIRST))
		shadow_fail(s, "the first burst should have been told out-of-memory");
}

/* A demand that still waits when the node is done. */
static void check_waiting(struct shadow *s, struct shadow_demand *d)
{
	if (d->is_void)
		shadow_fail(s, "a demand waits whose grant was void");
	if (d->over_limit && !d->refused_ever)
		shadow_fail(s, "a demand above the limit waits");
	if (d->cancelled)
		shadow_fail(s, "a cancelled demand waits");
	if (shadow_is_recovering(s)) {
		shadow_check_wake(s, s->recover_until, "the end of the recovery");
		return;
	}
	/* A step that changed something may leave the rest to the next one. */
	if (s->wake <= s->now + SL_MS)
		return;
	/* A process that was told to end for others is granted nothing more. */
	if (shadow_is_going(s, d->client)) {
		if (!d->noted_entitled && !d->noted_burst)
			check_notes_of(s, d);
		return;
	}
	if (!d->there && shadow_use(s, d->client->workload, d->gpu) + d->bytes >
				 d->client->workload->limit)
		shadow_fail(s, "a demand waits that its siblings drove above the limit");
	if (d->there || shadow_is_over_promise(s, d))
		shadow_fail(s, "a demand waits that can never be held");
	if (shadow_fits(s, d) && !shadow_backs_off(s, d, false) &&
		!shadow_may_be_kept(s, d))
		shadow_fail(s, "GPU %u: demand %llu fits and waits", d->gpu,
			(unsigned long long)d->order);
	if (shadow_backs_off(s, d, false) && shadow_fits(s, d) &&
		!shadow_may_be_kept(s, d))
		shadow_check_wake(s, d->refused_at + RETRY_LATEST, "a retry");
	if (s->gpu[d->gpu].lost)
		shadow_fail(s, "GPU %u: a demand waits for a lost GPU", d->gpu);
	if (!d->entitled && shadow_has_untakeable(s, d->client->workload, true))
		shadow_fail(s, "a burst waits, and its limit is what it holds");
	check_patience(s, d);
	/* Dying memory counts as there: a demand that lacks only that is not denied by time. */
	if (!d->entitled && waits_only(s) &&
		!shadow_comes_back(s, d, SL_REASON_DYING_WAITS))
		shadow_check_wake(s, d->burst_since + shadow_wait_max(s, d) + STEP_LATER,
			"the end of a burst demand");
	if (!shadow_counts_as_waiting(s, d->client) && !shadow_is_going(s, d->client) &&
		!shadow_backs_off(s, d, false))
		shadow_check_wake(s, d->client->active + s->idle_wait,
			"a client that may be waiting");
	check_notes_of(s, d);
}

void shadow_check_state(struct shadow *s)
{
	bool stuck[SHADOW_CLIENTS];
	const struct shadow_demand *victim = NULL;

	for (uint32_t gpu = 0; gpu < SHADOW_GPUS && !shadow_is_recovering(s); gpu++) {
		/* A step that changed something may leave the rest to the next one. */
		if (s->wake > s->now + SL_MS)
			check_no_lockout(s, gpu);
	}
	for (uint32_t i = 0; i < s->demands_top; i++) {
		if (waits(&s->demand[i]))
			check_waiting(s, &s->demand[i]);
	}
	/* If many give way, the next one does so in a step of its own, at once. */
	if (!shadow_is_recovering(s) && s->wake > s->now + 1 &&
		shadow_hopeless(s, stuck, true))
		victim = shadow_victim(s, stuck);
	if (victim)
		shadow_fail(s, "a deadlock was not seen: demand %llu should give way",
			(unsigned long long)victim->order);
	shadow_check_stopping(s);
	shadow_check_strangers(s);
	if (s->wake < s->now)
		shadow_fail(s, "the node wants to be woken in the past");
}
