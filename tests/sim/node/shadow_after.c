/*
 * shadow_after - the node after a step against the shadow's books
 *
 * The node's answers must match the books, its notes what happened, and its memory may grow only
 * when something was added.
 */
#include "shadow.h"

static void check_growth(struct shadow *s, size_t arena_bytes)
{
	/* An ASK that is denied at once was a demand for a moment: counted at the start. */
	uint32_t demands = s->demands_begun;
	uint32_t strangers = shadow_strangers(s);
	bool more = s->workloads > s->most_workloads || s->clients > s->most_clients ||
		    demands > s->most_demands || strangers > s->most_strangers;

	if (arena_bytes > s->arena_bytes && s->arena_bytes && !more)
		shadow_fail(s,
			"the arena grew from %zu to %zu bytes though nothing was added",
			s->arena_bytes, arena_bytes);
	s->arena_bytes = arena_bytes;
	s->most_workloads =
		s->workloads > s->most_workloads ? s->workloads : s->most_workloads;
	s->most_clients = s->clients > s->most_clients ? s->clients : s->most_clients;
	s->most_strangers = strangers > s->most_strangers ? strangers : s->most_strangers;
	s->most_demands = demands > s->most_demands ? demands : s->most_demands;
}

static void check_same(
	struct shadow *s, const char *what, uint32_t gpu, uint64_t mine, uint64_t theirs)
{
	if (mine != theirs)
		shadow_fail(s, "GPU %u: %s is %llu, the node says %llu", gpu, what,
			(unsigned long long)mine, (unsigned long long)theirs);
}

static void check_views_of_node(struct shadow *s, const struct sl_node *node)
{
	for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
		struct sl_node_gpu_view v = sl_node_gpu(node, gpu);
		uint64_t sums[6] = {0};
		uint32_t waiting = 0;

		if (!s->gpu[gpu].present)
			continue;
		for (uint32_t i = 0; i < s->clients_top; i++) {
			if (!s->client[i].used)
				continue;
			sums[0] += s->client[i].backing[gpu];
			sums[1] += s->client[i].hidden[gpu];
			sums[2] += s->client[i].dying[gpu];
			sums[4] += s->client[i].held[gpu];
			sums[5] += s->client[i].paid[gpu];
		}
		for (uint32_t i = 0; i < s->demands_top; i++) {
			const struct shadow_demand *d = &s->demand[i];

			if (!d->used || d->gpu != gpu)
				continue;
			sums[3] += shadow_is_charged(d) ? d->bytes : 0;
			waiting += !d->granted;
		}
		check_same(s, "backing", gpu, sums[0], v.backing_bytes);
		check_same(s, "hidden", gpu, sums[1], v.hidden_bytes);
		check_same(s, "paid", gpu, sums[5], v.paid_bytes);
		if (v.paid_bytes > v.reserve_bytes)
			shadow_fail(s, "GPU %u: the reserve pays more than it has", gpu);
		check_same(s, "dying", gpu, sums[2], v.dying_bytes);
		check_same(s, "held", gpu, sums[4], v.held_bytes);
		check_same(s, "granted", gpu, sums[3], v.granted_bytes);
		check_same(s, "free", gpu, shadow_free(s, gpu), v.free_bytes);
		check_same(
			s, "shareable", gpu, shadow_shareable(s, gpu), v.shareable_bytes);
		check_same(s, "waiting", gpu, waiting, v.waiting);
		check_same(s, "degraded", gpu, s->gpu[gpu].degraded, v.degraded);
	}
}

static void check_notes(struct shadow *s)
{
	static const enum sl_reason exact[] = {SL_REASON_STRAY, SL_REASON_UNDERFLOW,
		SL_REASON_OVERCOMMIT, SL_REASON_CREATE_FAILED, SL_REASON_REPORT_MISSING};

	for (size_t i = 0; i < SL_ARRAY_LEN(exact); i++) {
		if (s->notes[exact[i]] != s->notes_expected[exact[i]])
			shadow_fail(s, "%u notes %s, expected %u", s->notes[exact[i]],
				sl_reason_name(exact[i]), s->notes_expected[exact[i]]);
	}
	if (s->left_client)
		shadow_fail(s, "client %llu left, and no LEFT says so",
			(unsigned long long)s->left_client);
	for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
		if (s->gpu[gpu].noted_lost != s->gpu[gpu].lost)
			shadow_fail(s, "GPU %u is%s lost, and no note says so", gpu,
				s->gpu[gpu].lost ? "" : " not");
		if (s->gpu[gpu].noted_degraded != s->gpu[gpu].degraded)
			shadow_fail(s, "GPU %u is%s degraded, and no note says so", gpu,
				s->gpu[gpu].degraded ? "" : " not");
	}
	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		const struct shadow_workload *w = &s->workload[i];

		if (w->used && w->repaid_told != w->repaid)
			shadow_fail(s, "the reserve pays more on GPUs %x, told of %x",
				w->repaid, w->repaid_told);
		if (w->id == s->view_workload)
			s->views_expected |= s->views & w->repaid;
	}
	if (s->views != s->views_expected)
		shadow_fail(
			s, "views of GPUs %x, expected %x", s->views, s->views_expected);
}

void shadow_after(struct shadow *s, const struct sl_node *node, size_t arena_bytes)
{
	if ((s->event.type == SL_EVENT_WORKLOAD_ADD ||
		    s->event.type == SL_EVENT_WORKLOAD_SET) &&
		!s->answered)
		shadow_fail(s, "a workload got no answer");
	if (s->event.type == SL_EVENT_ASK && !s->answered &&
		!shadow_knows_ask(shadow_client(s, s->event.ask.client), &s->event))
		shadow_fail(s, "a bad ASK got no answer");
	check_views_of_node(s, node);
	check_notes(s);
	shadow_check_state(s);
	check_growth(s, arena_bytes);
}
