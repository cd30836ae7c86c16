/*
 * shadow - the books; see the header
 *
 * Every number is kept where it arises (a client's bytes on a GPU, a demand's bytes) and summed
 * when it is asked for.
 */
#include "shadow.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void shadow_fail(struct shadow *s, const char *format, ...)
{
	va_list args;

	if (s->failed[0])
		return;
	va_start(args, format);
	(void)vsnprintf(s->failed, sizeof(s->failed), format, args);
	va_end(args);
}

void shadow_init(struct shadow *s)
{
	memset(s, 0, sizeof(*s));
	s->wake = SL_NS_NEVER;
	s->wait_max = 60 * SL_S;
	s->head_pass = s->idle_wait = 1 * SL_S;
	s->recover_wait = 2 * SL_S;
}

struct shadow_client *shadow_client(struct shadow *s, uint64_t id)
{
	for (uint32_t i = 0; i < s->clients_top; i++) {
		if (s->client[i].used && s->client[i].id == id)
			return &s->client[i];
	}
	return NULL;
}

struct shadow_workload *shadow_workload(struct shadow *s, uint64_t id)
{
	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		if (s->workload[i].used && s->workload[i].id == id)
			return &s->workload[i];
	}
	return NULL;
}

uint64_t shadow_shareable(const struct shadow *s, uint32_t gpu)
{
	const struct shadow_gpu *g = &s->gpu[gpu];
	uint64_t gone = g->reserve + g->unmanaged;

	return g->capacity > gone ? g->capacity - gone : 0;
}

/* An open grant that takes bytes of the GPU: not for bytes that are there already. */
bool shadow_is_charged(const struct shadow_demand *d)
{
	return d->used && d->granted && !d->is_void && !d->there;
}

static uint64_t granted(
	const struct shadow *s, const struct shadow_client *c, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *d = &s->demand[i];

		if (shadow_is_charged(d) && d->client == c && d->gpu == gpu)
			sum += d->bytes;
	}
	return sum;
}

uint64_t shadow_held(const struct shadow *s, const struct shadow_client *c, uint32_t gpu)
{
	return c->backing[gpu] + c->hidden[gpu] + granted(s, c, gpu);
}

uint64_t shadow_fixed(
	const struct shadow *s, const struct shadow_workload *w, uint32_t gpu)
{
	uint64_t hidden = 0, held = 0, there = 0;

	for (uint32_t i = 0; i < s->clients_top; i++) {
		const struct shadow_client *c = &s->client[i];

		if (!c->used || c->workload != w)
			continue;
		hidden += c->hidden[gpu];
		held += c->held[gpu];
		there += c->backing[gpu];
	}
	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *d = &s->demand[i];

		if (!d->used || !d->granted || d->is_void || d->gpu != gpu ||
			d->client->workload != w)
			continue;
		held += d->held ? sl_min_u64(d->bytes, 1ull << 48) : 0;
		there += d->there ? 0 : d->bytes;
	}
	return hidden + (held < there ? held : there);
}

uint64_t shadow_use(const struct shadow *s, const struct shadow_workload *w, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->clients_top; i++) {
		const struct shadow_client *c = &s->client[i];

		if (c->used && c->workload == w)
			sum += c->backing[gpu] + c->hidden[gpu];
	}
	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *d = &s->demand[i];

		if (shadow_is_charged(d) && d->gpu == gpu && d->client->workload == w)
			sum += d->bytes;
	}
	return sum;
}

static uint64_t resident(const struct shadow *s, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->clients_top; i++) {
		const struct shadow_client *c = &s->client[i];

		if (c->used)
			sum += c->backing[gpu] + c->hidden[gpu] + c->dying[gpu];
	}
	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *d = &s->demand[i];

		if (shadow_is_charged(d) && d->gpu == gpu)
			sum += d->bytes;
	}
	return sum;
}

uint64_t shadow_free(const struct shadow *s, uint32_t gpu)
{
	uint64_t shareable = shadow_shareable(s, gpu), taken = resident(s, gpu);

	return shareable > taken ? shareable - taken : 0;
}

bool shadow_is_recovering(const struct shadow *s)
{
	for (uint32_t i = 0; i < s->clients_top; i++) {
		if (s->client[i].used && s->client[i].expected)
			return s->now < s->recover_until;
	}
	return false;
}

static uint64_t request_on(const struct shadow_workload *w, uint32_t gpu)
{
	return !w->leaving && (w->mask >> gpu & 1) ? w->request : 0;
}

static uint64_t claims_on(const struct shadow *s, uint32_t gpu)
{
	uint64_t claims = 0;

	for (uint32_t w = 0; w < SHADOW_WORKLOADS; w++) {
		if (s->workload[w].used)
			claims += sl_max_u64(shadow_fixed(s, &s->workload[w], gpu),
				request_on(&s->workload[w], gpu));
	}
	return claims;
}

/* I1 as measured. */
static bool is_degraded(const struct shadow *s, uint32_t gpu)
{
	return claims_on(s, gpu) > shadow_shareable(s, gpu);
}

void shadow_refresh_degraded(struct shadow *s)
{
	for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++)
		s->gpu[gpu].degraded = !s->gpu[gpu].lost && is_degraded(s, gpu);
}

static void set_entitled(struct shadow *s, struct shadow_demand *d, bool entitled)
{
	if (d->entitled && !entitled)
		d->burst_since = s->now;
	d->entitled = entitled;
	s->outcomes.demands += entitled && !d->was_entitled;
	d->was_entitled |= entitled;
}

/* New bytes are checked with all that is used; bytes that are there already, with all
 * that is fixed. */
static bool is_within_request(const struct shadow *s, const struct shadow_demand *d)
{
	const struct shadow_workload *w = d->client->workload;
	uint64_t has = d->there ? shadow_fixed(s, w, d->gpu) : shadow_use(s, w, d->gpu);

	return has + d->bytes <= w->request;
}

/* Works out which demands are entitled now, whenever the node could have seen another state: after
 * each event and each grant. While the node waits for reports it considers no demand, so nothing
 * changes. */
static void refresh_classes(struct shadow *s)
{
	if (shadow_is_recovering(s))
		return;
	for (uint32_t i = 0; i < s->demands_top; i++) {
		struct shadow_demand *d = &s->demand[i];

		if (!d->used || d->granted || d->is_void)
			continue;
		set_entitled(s, d, is_within_request(s, d));
	}
}

void shadow_refresh(struct shadow *s)
{
	shadow_refresh_degraded(s);
	refresh_classes(s);
}

static bool has_waiting(const struct shadow *s, const struct shadow_client *c)
{
	for (uint32_t i = 0; i < s->demands_top; i++) {
		if (s->demand[i].used && !s->demand[i].granted &&
			s->demand[i].client == c)
			return true;
	}
	return false;
}

struct shadow_demand *shadow_find_ask(struct shadow *s, uint64_t client, uint64_t ask)
{
	for (uint32_t i = 0; i < s->demands_top; i++) {
		if (s->demand[i].used && s->demand[i].client->id == client &&
			s->demand[i].ask == ask)
			return &s->demand[i];
	}
	return NULL;
}

static struct shadow_demand *find_epoch(struct shadow *s, uint64_t client, uint64_t epoch)
{
	for (uint32_t i = 0; i < s->demands_top; i++) {
		struct shadow_demand *d = &s->demand[i];

		if (d->used && d->granted && d->client->id == client && d->epoch == epoch)
			return d;
	}
	return NULL;
}

void shadow_drop(struct shadow *s, struct shadow_demand *d)
{
	d->used = false;
	s->demands--;
}

/* Counts how a demand ended: by its final answer, or (reason NONE) with its client. A demand above
 * the limit does not count as denied within the request: it is above the request, too, whatever it
 * was before the reports. */
void shadow_count_end(
	struct shadow *s, const struct shadow_demand *d, enum sl_reason reason)
{
	if (!d->was_entitled)
		return;
	if (d->granted)
		s->outcomes.granted++;
	else if (reason == SL_REASON_NONE)
		s->outcomes.died++;
	else if (d->entitled && reason != SL_REASON_OVER_LIMIT)
		s->outcomes.denied[reason]++;
	else
		s->outcomes.fell++;
}

struct shadow_outcomes shadow_outcomes(const struct shadow *s)
{
	struct shadow_outcomes o = s->outcomes;

	for (uint32_t i = 0; i < s->demands_top; i++) {
		const struct shadow_demand *d = &s->demand[i];

		o.granted += d->used && d->was_entitled && d->granted;
		o.wait += d->used && d->was_entitled && !d->granted;
	}
	return o;
}

static void expect_view(
	struct shadow *s, struct shadow_client *c, uint32_t gpu, uint32_t least)
{
	uint32_t living = 0;

	for (uint32_t i = 0; i < s->clients_top; i++)
		living += s->client[i].used && s->client[i].alive &&
			  s->client[i].workload == c->workload;
	if (living < least || c->workload->leaving)
		return;
	s->view_workload = c->workload->id;
	s->views_expected |= 1u << gpu;
}

/* --- the reserve --- */

static uint64_t reserve_room(const struct shadow *s, uint32_t gpu)
{
	uint64_t paid = 0;

	for (uint32_t i = 0; i < s->clients_top; i++)
		paid += s->client[i].used ? s->client[i].paid[gpu] : 0;
	return sl_sub_sat(s->gpu[gpu].reserve, paid);
}

/* First joined, first paid. */
static void repay(struct shadow *s, uint32_t gpu)
{
	uint64_t room = reserve_room(s, gpu), bytes;

	while (room) {
		struct shadow_client *first = NULL;

		for (uint32_t i = 0; i < s->clients_top; i++) {
			struct shadow_client *c = &s->client[i];

			if (c->used && c->hidden[gpu] && (!first || c->id < first->id))
				first = c;
		}
		if (!first)
			return;
		bytes = sl_min_u64(room, first->hidden[gpu]);
		first->hidden[gpu] -= bytes;
		first->paid[gpu] += bytes;
		room -= bytes;
		if (!first->workload->leaving)
			first->workload->repaid |= 1u << gpu;
	}
}

void shadow_release(
	struct shadow *s, struct shadow_client *c, uint32_t gpu, uint64_t remaining)
{
	c->paid[gpu] = sl_min_u64(c->paid[gpu], remaining);
	c->dying[gpu] = sl_min_u64(c->dying[gpu], remaining - c->paid[gpu]);
	repay(s, gpu);
}

/* --- events --- */

static void on_join(struct shadow *s, const struct sl_event *e)
{
	struct shadow_workload *w = shadow_workload(s, e->client_join.workload);
	uint32_t i = 0;
	bool first = true;

	if (!w || w->leaving || shadow_client(s, e->client_join.client)) {
		s->notes_expected[SL_REASON_STRAY]++;
		return;
	}
	for (uint32_t k = 0; k < s->clients_top; k++)
		first &= !(s->client[k].used && s->client[k].expected);
	while (i < SHADOW_CLIENTS && s->client[i].used)
		i++;
	if (i == SHADOW_CLIENTS) {
		shadow_fail(s, "the simulation has no room for another client");
		return;
	}
	s->client[i] = (struct shadow_client){.used = true,
		.alive = true,
		.expected = e->client_join.expected,
		.id = e->client_join.client,
		.workload = w,
		.active = s->now};
	if (i >= s->clients_top)
		s->clients_top = i + 1;
	s->clients++;
	if (e->client_join.expected && first)
		s->recover_until = s->now + s->recover_wait;
}

bool shadow_knows_ask(const struct shadow_client *c, const struct sl_event *e)
{
	return c && c->alive && e->ask.gpu < SHADOW_GPUS && e->ask.bytes > 0 &&
	       !c->workload->leaving && (c->workload->mask >> e->ask.gpu & 1);
}

static void on_ask(struct shadow *s, const struct sl_event *e)
{
	struct shadow_client *c = shadow_client(s, e->ask.client);
	struct shadow_demand *d = s->demand;
	bool there = e->ask.flags & SL_NODE_ASK_THERE;
	uint64_t use;

	if (!shadow_knows_ask(c, e) || shadow_find_ask(s, e->ask.client, e->ask.ask))
		return;
	while (d < s->demand + SHADOW_DEMANDS && d->used)
		d++;
	if (d == s->demand + SHADOW_DEMANDS) {
		shadow_fail(s, "the simulation has no room for another demand");
		return;
	}
	use = shadow_use(s, c->workload, e->ask.gpu);
	/* Neither a lost GPU nor a workload that is being stopped gets memory. */
	if (!s->gpu[e->ask.gpu].lost && !c->workload->stop_asked && !has_waiting(s, c) &&
		(there || use + e->ask.bytes <= c->workload->limit))
		c->active = s->now;
	*d = (struct shadow_demand){.used = true,
		.client = c,
		.ask = e->ask.ask,
		.bytes = e->ask.bytes,
		.gpu = e->ask.gpu,
		.order = ++s->next_order,
		.arrived = s->now,
		.burst_since = s->now,
		.cancelled = c->workload->stop_asked,
		.held = e->ask.flags != 0,
		.there = there,
		.over_limit = !there && (e->ask.bytes > c->workload->limit ||
						use + e->ask.bytes > c->workload->limit)};
	set_entitled(s, d, is_within_request(s, d));
	if (d - s->demand >= s->demands_top)
		s->demands_top = (uint32_t)(d - s->demand) + 1;
	s->demands++;
}

/* No client holds more than it has. */
static void set_held(struct shadow_client *c, uint32_t gpu, uint64_t bytes)
{
	c->held[gpu] = bytes < c->backing[gpu] ? bytes : c->backing[gpu];
}

/* Nor, unless it was granted, more than its request or others' promises leave. */
static uint64_t may_hold(
	const struct shadow *s, const struct shadow_client *c, uint32_t gpu)
{
	uint64_t own = shadow_fixed(s, c->workload, gpu);
	uint64_t request = request_on(c->workload, gpu), shareable;
	uint64_t others = claims_on(s, gpu) - (own > request ? own : request);
	uint64_t within = request > own ? request - own : 0;

	shareable = shadow_shareable(s, gpu);
	if (shareable > others + own && shareable - others - own > within)
		within = shareable - others - own;
	return c->held[gpu] + within;
}

static void on_held(struct shadow *s, const struct sl_event *e)
{
	struct shadow_client *c = shadow_client(s, e->held.client);

	if (!c || !c->alive || e->held.gpu >= SHADOW_GPUS || !s->gpu[e->held.gpu].present)
		s->notes_expected[SL_REASON_STRAY]++;
	else
		set_held(c, e->held.gpu,
			sl_min_u64(e->held.bytes, may_hold(s, c, e->held.gpu)));
}

static void on_commit(struct shadow *s, const struct sl_event *e)
{
	struct shadow_client *c = shadow_client(s, e->commit.client);
	struct shadow_demand *d = find_epoch(s, e->commit.client, e->commit.epoch);
	uint64_t used = e->commit.used_bytes;

	if (!c || !c->alive || !d) {
		s->notes_expected[SL_REASON_STRAY]++;
		return;
	}
	if (d->is_void) {
		shadow_count_end(s, d, SL_REASON_NONE);
		shadow_drop(s, d);
		return;
	}
	if (used > d->bytes) {
		s->notes_expected[SL_REASON_OVERCOMMIT]++;
		used = d->bytes;
	}
	if (!d->there) {
		c->backing[d->gpu] += used;
		expect_view(s, c, d->gpu, 2);
	}
	if (d->held)
		set_held(c, d->gpu, c->held[d->gpu] + sl_min_u64(used, 1ull << 48));
	c->active = s->now;
	shadow_count_end(s, d, SL_REASON_NONE);
	shadow_drop(s, d);
}

static void on_create_failed(struct shadow *s, const struct sl_event *e)
{
	struct shadow_client *c = shadow_client(s, e->create_failed.client);
	struct shadow_demand *d =
		find_epoch(s, e->create_failed.client, e->create_failed.epoch);

	if (!c || !c->alive || !d) {
		s->notes_expected[SL_REASON_STRAY]++;
		return;
	}
	if (d->is_void) {
		d->granted = false;
		d->entitled |= d->was_entitled;
		return;
	}
	if (d->there) {
		/* There was nothing to create. */
		d->granted = false;
		d->cancelled = true;
		return;
	}
	if (!d->refused_ever) {
		s->notes_expected[SL_REASON_CREATE_FAILED]++;
		d->refused_first = s->now;
	}
	d->granted = false;
	d->refused_ever = true;
	d->released_since = false;
	d->refused_at = s->now;
	d->cancelled |= c->workload->leaving || c->workload->stop_asked;
	set_entitled(s, d, is_within_request(s, d));
}

static void came_back(struct shadow *s, uint32_t gpu)
{
	for (uint32_t i = 0; i < s->demands_top; i++) {
		if (s->demand[i].used && s->demand[i].gpu == gpu)
			s->demand[i].released_since = true;
	}
}

static void on_freed(struct shadow *s, const struct sl_event *e)
{
	struct shadow_client *c = shadow_client(s, e->freed.client);
	uint64_t bytes = e->freed.bytes;

	if (!c || !c->alive || e->freed.gpu >= SHADOW_GPUS ||
		!s->gpu[e->freed.gpu].present) {
		s->notes_expected[SL_REASON_STRAY]++;
		return;
	}
	c->active = s->now;
	if (bytes > c->backing[e->freed.gpu]) {
		s->notes_expected[SL_REASON_UNDERFLOW]++;
		bytes = c->backing[e->freed.gpu];
	}
	if (!bytes)
		return;
	c->backing[e->freed.gpu] -= bytes;
	set_held(c, e->freed.gpu, c->held[e->freed.gpu]);
	expect_view(s, c, e->freed.gpu, 2);
	came_back(s, e->freed.gpu);
}

static void forget_if_gone(struct shadow *s, struct shadow_client *c)
{
	struct shadow_workload *w = c->workload;

	for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
		if (c->dying[gpu] || c->paid[gpu])
			return;
	}
	c->used = false;
	s->clients--;
	for (uint32_t i = 0; i < s->clients_top; i++) {
		if (s->client[i].used && s->client[i].workload == w)
			return;
	}
	if (w->leaving) {
		w->used = false;
		s->workloads--;
	}
}

static void on_exit_of(struct shadow *s, const struct sl_event *e)
{
	struct shadow_client *c = shadow_client(s, e->client_exit.client);

	if (!c || !c->alive) {
		s->notes_expected[SL_REASON_STRAY]++;
		return;
	}
	for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++)
		c->dying[gpu] = s->gpu[gpu].lost ? 0 : shadow_held(s, c, gpu);
	c->alive = c->expected = false;
	for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
		/* Of a lost GPU there is nothing to see. */
		if (c->dying[gpu])
			expect_view(s, c, gpu, 1);
		c->backing[gpu] = c->hidden[gpu] = c->held[gpu] = 0;
		if (s->gpu[gpu].lost)
			shadow_release(s, c, gpu, 0);
		s->left_bytes += c->dying[gpu] + c->paid[gpu];
	}
	s->left_client = c->id;
	for (uint32_t i = 0; i < s->demands_top; i++) {
		if (!s->demand[i].used || s->demand[i].client != c)
			continue;
		shadow_count_end(s, &s->demand[i], SL_REASON_NONE);
		shadow_drop(s, &s->demand[i]);
	}
	forget_if_gone(s, c);
}

static void on_released(struct shadow *s, const struct sl_event *e)
{
	struct shadow_client *c = shadow_client(s, e->released.client);
	uint32_t gpu = e->released.gpu;

	if (!c || c->alive || gpu >= SHADOW_GPUS) {
		s->notes_expected[SL_REASON_STRAY]++;
		return;
	}
	shadow_release(s, c, gpu, e->released.remaining_bytes);
	came_back(s, gpu);
	forget_if_gone(s, c);
}

static void on_remove(struct shadow *s, const struct sl_event *e)
{
	struct shadow_workload *w = shadow_workload(s, e->workload_remove.workload);
	bool any = false;

	if (!w || w->leaving) {
		s->notes_expected[SL_REASON_STRAY]++;
		return;
	}
	w->leaving = true;
	for (uint32_t i = 0; i < s->clients_top; i++)
		any |= s->client[i].used && s->client[i].workload == w;
	for (uint32_t i = 0; i < s->demands_top; i++) {
		if (s->demand[i].used && !s->demand[i].granted &&
			s->demand[i].client->workload == w)
			s->demand[i].cancelled = true;
	}
	if (!any) {
		w->used = false;
		s->workloads--;
	}
	w->request = w->limit = 0;
	w->mask = 0;
}

static void on_measured(struct shadow *s, const struct sl_event *e)
{
	uint32_t gpu = e->hidden.gpu;
	struct shadow_client *c;

	if (e->type == SL_EVENT_UNMANAGED) {
		s->gpu[e->unmanaged.gpu].unmanaged = e->unmanaged.bytes;
		return;
	}
	c = shadow_client(s, e->hidden.client);
	if (!c || !c->alive) {
		s->notes_expected[SL_REASON_STRAY]++;
		return;
	}
	if (c->hidden[gpu] + c->paid[gpu] == e->hidden.bytes)
		return;
	expect_view(s, c, gpu, 1);
	c->paid[gpu] = 0;
	c->paid[gpu] = sl_min_u64(e->hidden.bytes, reserve_room(s, gpu));
	c->hidden[gpu] = e->hidden.bytes - c->paid[gpu];
	repay(s, gpu);
}

static void on_report(struct shadow *s, const struct sl_event *e)
{
	struct shadow_client *c = shadow_client(s, e->client_report.client);

	if (!c || !c->alive ||
		(e->type == SL_EVENT_CLIENT_REPORT &&
			(e->client_report.gpu >= SHADOW_GPUS ||
				!s->gpu[e->client_report.gpu].present))) {
		s->notes_expected[SL_REASON_STRAY]++;
		return;
	}
	if (e->type == SL_EVENT_CLIENT_REPORTED) {
		c->expected = false;
		return;
	}
	c->backing[e->client_report.gpu] = e->client_report.bytes;
	set_held(c, e->client_report.gpu, c->held[e->client_report.gpu]);
	expect_view(s, c, e->client_report.gpu, 2);
}

/* The end of the wait for reports: clients that did not report are noted. */
static void end_recovery(struct shadow *s)
{
	if (s->now < s->recover_until)
		return;
	for (uint32_t i = 0; i < s->clients_top; i++) {
		if (!s->client[i].used || !s->client[i].expected)
			continue;
		s->client[i].expected = false;
		s->notes_expected[SL_REASON_REPORT_MISSING]++;
	}
}

static void on_cancel(struct shadow *s, const struct sl_event *e)
{
	struct shadow_demand *d = shadow_find_ask(s, e->cancel.client, e->cancel.ask);

	if (d && !d->granted)
		d->cancelled = true;
}

static sl_ns since(sl_ns at, sl_ns span)
{
	return at > span ? at - span : 0;
}

static void on_pulse(struct shadow *s, const struct sl_event *e)
{
	struct shadow_client *c = shadow_client(s, e->pulse.client);

	if (!c || !c->alive)
		return;
	c->busy = e->pulse.busy > 0;
	/* A proof holds as long as the idleness goes on; no idleness is longer than the clock. */
	c->idle_proven =
		e->pulse.idle > 0 &&
		(e->pulse.proven ||
			(c->idle_proven &&
				since(s->now, e->pulse.idle) <=
					since(c->pulse_at, c->idle_for) + SL_MS));
	c->busy_for = e->pulse.busy < s->now ? e->pulse.busy : s->now;
	c->pulse_at = s->now;
	c->idle_for = e->pulse.idle;
}

static void on_condition(struct shadow *s, const struct sl_event *e)
{
	struct shadow_client *c = shadow_client(s, e->condition.client);
	enum sl_client_condition to = (enum sl_client_condition)e->condition.condition;

	if (!c || !c->alive)
		return;
	if (to >= SL_CONDITIONS)
		to = SL_CONDITION_SILENT; /* not known here: it does not answer */
	if (c->condition == SL_CONDITION_RUNNING)
		c->troubled_since = s->now;
	if (c->condition != to)
		c->condition_since = s->now;
	c->condition = to;
}

static void on_stop_failed(struct shadow *s, const struct sl_event *e)
{
	struct shadow_client *c = shadow_client(s, e->stop_failed.client);

	if (!c || !shadow_is_going(s, c))
		return;
	c->stop_reason = 0;
	c->killed = false;
	c->unreached_until = s->now + 60 * SL_S;
}

static void on_stop(struct shadow *s, const struct sl_event *e)
{
	struct shadow_workload *w = shadow_workload(s, e->workload_stop.workload);
	sl_ns at = s->now + e->workload_stop.grace;

	if (!w || w->leaving) {
		s->notes_expected[SL_REASON_STRAY]++;
		return;
	}
	/* A process that is still there after the kill is killed once more. */
	if (!w->stop_asked || w->stop_killed || at < w->kill_at)
		w->kill_at = at;
	w->stop_killed = false;
	w->stop_asked = true;
	for (uint32_t i = 0; i < s->demands_top; i++) {
		if (s->demand[i].used && !s->demand[i].granted &&
			s->demand[i].client->workload == w)
			s->demand[i].cancelled = true;
	}
}

static void on_lost(struct shadow *s, const struct sl_event *e)
{
	uint32_t gpu = e->gpu_lost.gpu;

	if (gpu >= SHADOW_GPUS || !s->gpu[gpu].present) {
		s->notes_expected[SL_REASON_STRAY]++;
		return;
	}
	for (uint32_t i = 0; i < s->demands_top; i++) {
		struct shadow_demand *d = &s->demand[i];

		if (d->used && d->granted && d->gpu == gpu)
			d->is_void = true;
	}
	shadow_lose(s, gpu);
	for (uint32_t i = 0; i < s->clients_top; i++) {
		if (s->client[i].used && !s->client[i].alive)
			forget_if_gone(s, &s->client[i]);
	}
}

void shadow_before(struct shadow *s, sl_ns now, const struct sl_event *e)
{
	struct shadow_client *c;

	s->now = now;
	s->steps++;
	s->event = *e;
	s->answered = false;
	s->views = s->views_expected = 0;
	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++)
		s->workload[i].repaid = s->workload[i].repaid_told = 0;
	memset(s->notes, 0, sizeof(s->notes));
	memset(s->notes_expected, 0, sizeof(s->notes_expected));
	switch (e->type) {
	case SL_EVENT_CONFIG:
		s->chain = e->config.chain;
		s->stop_idle = e->config.stop_idle;
		s->stop_grace = e->config.stop_grace;
		s->untakeable_after = e->config.untakeable_after;
		s->last_resort = (enum sl_last_resort)e->config.last_resort;
		s->placement = (enum sl_placement)e->config.placement;
		s->unmanaged = (enum sl_unmanaged)e->config.unmanaged;
		shadow_let_off(s);
		s->wait_max = e->config.wait_max;
		s->head_pass = e->config.head_pass;
		s->idle_wait = e->config.idle_wait;
		s->recover_wait = e->config.recover_wait;
		break;
	case SL_EVENT_GPU_ADD:
		s->gpu[e->gpu_add.gpu].present = true;
		s->gpu[e->gpu_add.gpu].lost = false;
		s->gpu[e->gpu_add.gpu].capacity = e->gpu_add.capacity_bytes;
		s->gpu[e->gpu_add.gpu].reserve = e->gpu_add.reserve_bytes;
		repay(s, e->gpu_add.gpu);
		break;
	case SL_EVENT_WORKLOAD_REMOVE: on_remove(s, e); break;
	case SL_EVENT_CLIENT_JOIN: on_join(s, e); break;
	case SL_EVENT_CLIENT_REPORT:
	case SL_EVENT_CLIENT_REPORTED: on_report(s, e); break;
	case SL_EVENT_CLIENT_EXIT: on_exit_of(s, e); break;
	case SL_EVENT_RELEASED: on_released(s, e); break;
	case SL_EVENT_ASK: on_ask(s, e); break;
	case SL_EVENT_CANCEL: on_cancel(s, e); break;
	case SL_EVENT_COMMIT: on_commit(s, e); break;
	case SL_EVENT_CREATE_FAILED: on_create_failed(s, e); break;
	case SL_EVENT_FREED: on_freed(s, e); break;
	case SL_EVENT_WORK:
		c = shadow_client(s, e->work.client);
		if (c && c->alive) {
			c->active = s->now;
			c->idle_proven = false;
		}
		break;
	case SL_EVENT_GPU_LOST: on_lost(s, e); break;
	case SL_EVENT_STRANGER: shadow_on_stranger(s, e); break;
	case SL_EVENT_WORKLOAD_STOP: on_stop(s, e); break;
	case SL_EVENT_STOP_FAILED: on_stop_failed(s, e); break;
	case SL_EVENT_PULSE: on_pulse(s, e); break;
	case SL_EVENT_CONDITION: on_condition(s, e); break;
	case SL_EVENT_HELD: on_held(s, e); break;
	case SL_EVENT_HIDDEN:
	case SL_EVENT_UNMANAGED: on_measured(s, e); break;
	default: break;
	}
	s->demands_begun = s->demands;
	end_recovery(s);
	shadow_refresh_degraded(s);
	refresh_classes(s);
}

/* --- actions --- */
