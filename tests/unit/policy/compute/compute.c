/*
 * compute - shares of GPU time: scenes, and drawn worlds with judges
 *
 * A world has programs in virtual time. A program submits kernels of one length, perhaps with
 * pauses, as its orders allow, and does as the runtime does: it reports the end of a slice once its
 * last kernel has ended, and gives a slice back after 1 ms without work.
 */
#include "../../base/test.h"

#include "../../../sim/common/mutants.h"
#include <stdlib.h>

#include "base/draw.h"
#include "policy/compute/compute.h"

enum { PROGRAMS = 6 };

struct program {
	struct sl_compute_workload workload;
	struct sl_compute_client client;
	sl_ns kernel, pause; /* pause: after each burst of kernels */
	sl_ns burst;
	bool hangs; /* never answers again */
	/* What it does. */
	enum sl_compute_order order;
	sl_ns since, end_at, want_at, open_from;
	bool goes_on;
	/* What it got. */
	sl_ns used, waits_from, longest;
	bool waits;
};

static struct world {
	struct sl_compute_node node;
	struct program program[PROGRAMS];
	uint32_t count;
	sl_ns now, due;
	uint64_t draw;
} w;

static struct program *program_of(struct sl_compute_client *client)
{
	return SL_CONTAINER_OF(client, struct program, client);
}

static bool is_on(const struct program *p)
{
	return p->order == SL_COMPUTE_SLICE || p->order == SL_COMPUTE_OPEN;
}

static void do_slice(struct program *p, sl_ns span)
{
	sl_ns worked = 0;

	p->goes_on = true;
	while (worked < span) {
		worked += p->kernel;
		if (!p->pause || worked % (p->burst + p->kernel) < p->burst)
			continue;
		p->goes_on = p->pause < SL_MS;
		if (!p->goes_on)
			break;
		worked += p->pause;
	}
	p->used += worked;
	p->end_at = w.now + worked + (p->goes_on ? 0 : SL_MS);
	p->want_at = p->goes_on ? SL_NS_NEVER : w.now + worked + p->pause;
}

/* Two programs never have a GPU at once, but for one that hangs. */
static void judge_start(const struct program *p)
{
	for (uint32_t i = 0; i < w.count; i++) {
		const struct program *other = &w.program[i];

		if (other != p && !other->hangs && is_on(other) &&
			other->workload.gpu_mask & p->workload.gpu_mask)
			fail_msg("at %" PRIu64 " us program %u starts beside %u",
				(uint64_t)(w.now / SL_US), (unsigned int)(p - w.program),
				i);
	}
}

static void take_order(void *context, struct sl_compute_client *client,
	enum sl_compute_order order, sl_ns span)
{
	struct program *p = program_of(client);
	bool was_open = p->order == SL_COMPUTE_OPEN;

	(void)context;
	p->order = order;
	if (p->hangs)
		return;
	if (is_on(p)) {
		judge_start(p);
		if (p->waits)
			p->longest = sl_max_u64(p->longest, w.now - p->waits_from);
		p->waits = false;
	}
	if (order == SL_COMPUTE_SLICE) {
		do_slice(p, span);
	} else if (order == SL_COMPUTE_OPEN) {
		p->since = w.now;
		p->end_at = SL_NS_NEVER;
	} else if (order == SL_COMPUTE_SHUT) {
		p->end_at = w.now + sl_draw(&w.draw) % p->kernel;
		p->used += was_open ? p->end_at - p->since : 0;
		p->goes_on = true;
		p->order = SL_COMPUTE_SLICE; /* its last kernel still runs */
	} else {
		p->end_at = p->want_at = SL_NS_NEVER;
	}
}

static void begin(void)
{
	uint64_t draw = w.draw;

	w = (struct world){.draw = draw ? draw : 1};
	sl_compute_init(&w.node);
	w.node.send = take_order;
}

static struct program *add(uint32_t request_pm, sl_ns kernel)
{
	struct program *p = &w.program[w.count++];

	*p = (struct program){.kernel = kernel,
		.burst = kernel,
		.end_at = SL_NS_NEVER,
		.want_at = SL_NS_NEVER};
	p->workload.gpu_mask = 1;
	p->workload.request_pm = request_pm;
	sl_compute_add(&w.node, &p->workload);
	sl_compute_join(&p->workload, &p->client);
	return p;
}

static void answer(struct program *p)
{
	p->end_at = SL_NS_NEVER;
	p->order = SL_COMPUTE_SHUT;
	sl_compute_end(&p->client, p->client.order, p->goes_on);
	if (!p->goes_on)
		return;
	p->waits = true;
	p->waits_from = w.now;
}

static sl_ns next_event(void)
{
	sl_ns at = w.due;

	for (uint32_t i = 0; i < w.count; i++) {
		const struct program *p = &w.program[i];

		if (p->client.workload && !p->hangs)
			at = sl_min_u64(at, sl_min_u64(p->end_at, p->want_at));
	}
	return at;
}

static void run(sl_ns until)
{
	w.due = sl_compute_step(&w.node, w.now);
	for (sl_ns at; (at = next_event()) <= until;) {
		w.now = sl_max_u64(at, w.now);
		for (uint32_t i = 0; i < w.count; i++) {
			struct program *p = &w.program[i];

			if (!p->client.workload || p->hangs)
				continue;
			if (p->end_at <= w.now)
				answer(p);
			if (p->want_at <= w.now && p->end_at == SL_NS_NEVER) {
				p->want_at = SL_NS_NEVER;
				if (!is_on(p) && !p->waits) {
					p->waits = true;
					p->waits_from = w.now;
					sl_compute_want(&p->client);
				}
			}
		}
		w.due = sl_compute_step(&w.node, w.now);
		if (w.due <= w.now)
			fail_msg("no progress at %" PRIu64 " us",
				(uint64_t)(w.now / SL_US));
	}
	w.now = until;
}

static uint32_t pm(sl_ns part, sl_ns whole)
{
	return (uint32_t)(part * 1000 / sl_max_u64(whole, 1));
}

static void near(const char *row, uint32_t got, uint32_t want, uint32_t within)
{
	if (got + within < want || got > want + within)
		fail_msg("%s: %u of 1000, wanted %u within %u", row, got, want, within);
}

/* --- scenes ------------------------------------------------------------------------------- */

static void shares_hold_for_all_kernels(void **state)
{
	static const sl_ns kernels[][3] = {
		{20 * SL_US, 20 * SL_US, 20 * SL_US},
		{100 * SL_MS, 100 * SL_MS, 100 * SL_MS},
		{20 * SL_US, 3 * SL_MS, 100 * SL_MS},
		{100 * SL_MS, 3 * SL_MS, 20 * SL_US},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(kernels); i++) {
		begin();
		add(200, kernels[i][0]);
		add(300, kernels[i][1]);
		add(500, kernels[i][2]);
		run(10 * SL_S);
		near("a fifth", pm(w.program[0].used, w.now), 200, 30);
		near("three tenths", pm(w.program[1].used, w.now), 300, 30);
		near("half", pm(w.program[2].used, w.now), 500, 30);
	}
}

static void without_a_request_is_the_rest(void **state)
{
	(void)state;
	begin();
	add(600, SL_MS);
	add(0, SL_MS);
	add(0, 5 * SL_MS);
	run(10 * SL_S);
	near("request", pm(w.program[0].used, w.now), 600, 30);
	near("rest", pm(w.program[1].used, w.now), 200, 30);
	near("rest", pm(w.program[2].used, w.now), 200, 30);
}

static void without_shares_nothing_is_ordered(void **state)
{
	(void)state;
	begin();
	add(0, SL_MS);
	add(0, SL_MS);
	run(SL_S);
	assert_true(w.node.orders == 0);
	/* Nor with one workload alone. */
	begin();
	add(300, SL_MS);
	run(SL_S);
	assert_true(w.node.orders == 0);
}

static void alone_has_all(void **state)
{
	(void)state;
	begin();
	add(200, SL_MS);
	add(800, SL_MS)->pause = 10 * SL_S;
	run(2 * SL_S);
	assert_true(w.program[0].order == SL_COMPUTE_OPEN);
	near("alone", pm(w.program[0].used + (w.now - w.program[0].since), w.now), 1000,
		50);
	/* The other ends: the gate is free. */
	sl_compute_leave(&w.program[1].client);
	run(3 * SL_S);
	assert_true(w.program[0].order == SL_COMPUTE_OFF);
}

/* Each workload's time counts once: beside others, or alone. */
static void time_is_counted(void **state)
{
	struct sl_compute_workload *one, *two;

	(void)state;
	begin();
	one = &add(300, SL_MS)->workload;
	two = &add(700, SL_MS)->workload;
	run(10 * SL_S);
	near("beside", pm(sl_compute_had(one, false, w.now), w.now), 300, 30);
	near("the other", pm(sl_compute_had(two, false, w.now), w.now), 700, 30);
	near("alone", pm(sl_compute_had(one, true, w.now), w.now), 0, 0);
	begin();
	one = &add(200, SL_MS)->workload;
	add(800, SL_MS)->pause = 10 * SL_S;
	run(2 * SL_S);
	near("beside, then alone", pm(sl_compute_had(one, false, w.now), w.now), 500, 50);
	near("alone since", pm(sl_compute_had(one, true, w.now), w.now), 500, 50);
	/* What it had alone stays counted when it is alone no more. */
	sl_compute_want(&w.program[1].client);
	run(2100 * SL_MS);
	near("of both", pm(sl_compute_had(one, true, w.now), w.now), 480, 50);
	sl_compute_leave(&w.program[1].client);
	run(2200 * SL_MS);
	near("unmetered", pm(sl_compute_had(one, true, w.now), w.now), 460, 50);
}

static void requests_fill_a_gpu(void **state)
{
	(void)state;
	assert_false(sl_compute_is_full(400, 600));
	assert_true(sl_compute_is_full(401, 600));
	assert_false(sl_compute_is_full(1000, 0));
}

/* What one used alone is no debt, and what it did not use no credit beyond a moment. */
static void a_pause_is_not_hoarded(void **state)
{
	(void)state;
	begin();
	add(300, SL_MS);
	add(300, SL_MS);
	add(400, SL_MS)->pause = 20 * SL_S;
	run(20 * SL_S);
	w.program[2].pause = 0;
	w.program[2].used = 0;
	run(30 * SL_S);
	near("after a pause", pm(w.program[2].used, 10 * SL_S), 400, 60);
}

static void limits_hold(void **state)
{
	(void)state;
	begin();
	w.node.mode = SL_COMPUTE_STRICT;
	add(0, 4 * SL_MS)->workload.limit_pm = 250;
	run(10 * SL_S);
	near("strict, alone", pm(w.program[0].used, w.now), 250, 20);
	begin();
	add(200, 4 * SL_MS)->workload.limit_pm = 300;
	add(300, 4 * SL_MS);
	run(10 * SL_S);
	near("fair, contended", pm(w.program[0].used, w.now), 300, 30);
	near("fair, the other", pm(w.program[1].used, w.now), 700, 30);
}

static void a_hung_program_is_passed_over(void **state)
{
	(void)state;
	begin();
	add(500, SL_MS);
	add(500, SL_MS);
	run(SL_S);
	w.program[1].hangs = true;
	w.program[0].used = 0;
	run(21 * SL_S);
	assert_true(
		pm(w.program[0].used + (w.now - w.program[0].since), 20 * SL_S) > 900);
}

static void several_gpus_are_had_together(void **state)
{
	struct program *both;

	(void)state;
	begin();
	both = add(300, SL_MS);
	both->workload.gpu_mask = 3;
	/* Their slices end at different times. */
	add(300, 3 * SL_MS);
	add(300, 7 * SL_MS)->workload.gpu_mask = 2;
	run(10 * SL_S);
	assert_true(pm(both->used, w.now) > 400);
	assert_true(both->longest < 100 * SL_MS);
	assert_true(pm(w.program[1].used, w.now) > 400);
}

/* --- drawn worlds ------------------------------------------------------------------------- */

static uint64_t seed = 1;

static uint64_t below(uint64_t bound)
{
	return sl_draw(&w.draw) % bound;
}

static sl_ns some_kernel(void)
{
	static const sl_ns kernels[] = {
		10 * SL_US, 200 * SL_US, SL_MS, 5 * SL_MS, 20 * SL_MS, 60 * SL_MS};

	return kernels[below(SL_ARRAY_LEN(kernels))];
}

static uint32_t build(void)
{
	uint32_t left = 1000, count = 2 + (uint32_t)below(PROGRAMS - 1);

	begin();
	for (uint32_t i = 0; i < count; i++) {
		uint32_t request = below(4) ? 20 + (uint32_t)below(left / 2) : 0;
		struct program *p = add(request, some_kernel());

		left -= request;
		if (below(3) == 0) {
			p->burst = p->kernel * (1 + below(20));
			p->pause = 1 + below(100 * SL_MS);
		}
	}
	return left;
}

/* Those that always have work and a request get at least that; all get something in time. */
static void judge(uint32_t round, sl_ns span)
{
	sl_ns longest = 0;
	bool shares = false;

	for (uint32_t i = 0; i < w.count; i++) {
		longest = sl_max_u64(longest, w.program[i].kernel);
		shares |= w.program[i].workload.request_pm != 0;
	}
	for (uint32_t i = 0; i < w.count && shares; i++) {
		struct program *p = &w.program[i];
		uint32_t weight = p->workload.request_pm ? p->workload.request_pm : 10;
		sl_ns bound = (longest + 20 * SL_MS) * 1000 / weight + w.count * longest +
			      2 * SL_S;

		if (p->order == SL_COMPUTE_OPEN)
			p->used += w.now - sl_max_u64(p->since, w.now - span);
		if (!p->pause && pm(p->used, span) + 30 < p->workload.request_pm)
			fail_msg("round %u, program %u: %u of 1000, requested %u", round,
				i, pm(p->used, span), p->workload.request_pm);
		if (p->longest > bound)
			fail_msg("round %u, program %u waited %" PRIu64 " us", round, i,
				(uint64_t)(p->longest / SL_US));
	}
}

static void drawn_worlds_keep_shares(void **state)
{
	(void)state;
	w.draw = seed * 2654435761u | 1;
	for (uint32_t round = 0; round < 150; round++) {
		(void)build();
		run(SL_S);
		for (uint32_t i = 0; i < w.count; i++)
			w.program[i].used = w.program[i].longest = 0;
		run(11 * SL_S);
		judge(round, 10 * SL_S);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_hold_for_all_kernels),
		cmocka_unit_test(without_a_request_is_the_rest),
		cmocka_unit_test(without_shares_nothing_is_ordered),
		cmocka_unit_test(alone_has_all),
		cmocka_unit_test(time_is_counted),
		cmocka_unit_test(requests_fill_a_gpu),
		cmocka_unit_test(a_pause_is_not_hoarded),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(a_hung_program_is_passed_over),
		cmocka_unit_test(several_gpus_are_had_together),
		cmocka_unit_test(drawn_worlds_keep_shares),
	};

	if (argc > 2 && strcmp(argv[1], "--seed") == 0)
		seed = strtoull(argv[2], NULL, 10);
	else if (argc > 1 && !sl_mutant_switch(argv[1]))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
