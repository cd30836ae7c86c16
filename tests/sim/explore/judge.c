/*
 * judge - judges the bytes that clients have, requests and answers
 *
 * It asks the machine only for two things: the longest wait, which is a promise, and residency as
 * shown to people.
 */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *text;
} promises[EXPLORE_PROMISES_END] = {
	[EXPLORE_KEPT] = {"KEPT", "all promises hold"},
#define SL_PROMISE(NAME, text) [EXPLORE_##NAME] = {#NAME, text},
#include "../common/promises.def"
#undef SL_PROMISE
};

const char *explore_promise_name(enum explore_promise promise)
{
	return promises[promise].name;
}

const char *explore_promise_text(enum explore_promise promise)
{
	return promises[promise].text;
}

enum explore_promise explore_promise_named(const char *name)
{
	for (uint32_t i = 1; i < EXPLORE_PROMISES_END; i++) {
		if (strcmp(promises[i].name, name) == 0)
			return (enum explore_promise)i;
	}
	return EXPLORE_KEPT;
}

void explore_break(
	struct explore *x, enum explore_promise promise, const char *format, ...)
{
	va_list args;

	if (x->broken)
		return;
	x->broken = promise;
	va_start(args, format);
	(void)vsnprintf(x->because, sizeof(x->because), format, args);
	va_end(args);
}

/* --- actions --- */

static char name_of(uint32_t client)
{
	return (char)('A' + client);
}

static void judge_grant(struct explore *x, const struct sl_action *a)
{
	uint32_t i = explore_index(x, a->grant.client), workload, before;
	struct explore_client *c = &x->s.client[i < EXPLORE_CLIENTS ? i : 0];
	bool entitled;

	if (i == EXPLORE_CLIENTS || !c->alive || !c->ask_units || c->granted ||
		c->ask != a->grant.ask) {
		explore_break(x, EXPLORE_LIMIT, "a GRANT of no waiting demand");
		return;
	}
	workload = x->world->of[i];
	entitled = explore_is_entitled(x, i);
	before = explore_lent(x);
	if (c->order)
		explore_break(x, EXPLORE_ONE_ORDER, "a GRANT to %c, whose order is open",
			name_of(i));
	if (explore_is_out(c))
		explore_break(x, EXPLORE_WHOLE,
			"a GRANT to %c, of which something is on the host", name_of(i));
	if (x->s.parked[workload])
		explore_break(
			x, EXPLORE_STAYS, "a GRANT to %c, which is parked", name_of(i));
	if (explore_recovers(x))
		explore_break(x, EXPLORE_RECOVERY,
			"a GRANT to %c before all have reported", name_of(i));
	c->granted = true;
	if (explore_use(x, workload, c->ask_gpu) > x->world->workload[workload].limit)
		explore_break(x, EXPLORE_LIMIT, "%c is granted more than its limit",
			name_of(i));
	if (!entitled && explore_lent(x) > x->world->pool && explore_lent(x) > before)
		explore_break(x, EXPLORE_I2,
			"after a GRANT to %c %u units are evicted or lent, and the pool "
			"has %u",
			name_of(i), explore_lent(x), x->world->pool);
	c->granted = false;
}

static void judge_deny(struct explore *x, const struct sl_action *a)
{
	uint32_t i = explore_index(x, a->deny.client);
	const struct explore_client *c = &x->s.client[i < EXPLORE_CLIENTS ? i : 0];
	uint32_t free_units, kept;

	if (i == EXPLORE_CLIENTS || !c->ask_units || c->ask != a->deny.ask)
		return;
	if (explore_is_entitled(x, i) && a->deny.reason != SL_REASON_CANCELLED &&
		sl_reason_kind(a->deny.reason) != SL_REASON_KIND_EXCEPT)
		explore_break(x, EXPLORE_OOM,
			"%c is denied %u units within its request: %s", name_of(i),
			c->ask_units, sl_reason_name(a->deny.reason));
	free_units =
		(uint32_t)sl_sub_sat(x->world->units, explore_physical(x, c->ask_gpu));
	kept = explore_unclaimed(x, c->ask_gpu, x->world->of[i]);
	for (uint32_t n = 0; n < x->world->clients; n++) {
		const struct explore_client *o = &x->s.client[n];

		/* Others may come before it. */
		if (n != i && (o->ask_units || explore_wants_back(o) || o->order))
			return;
	}
	if ((a->deny.reason == SL_REASON_WAITED_TOO_LONG ||
		    a->deny.reason == SL_REASON_NO_RESOLVER ||
		    a->deny.reason == SL_REASON_HOPELESS) &&
		!explore_is_out(c) && free_units >= kept + c->ask_units)
		explore_break(x, EXPLORE_FREE,
			"%c is denied %u units, and %u are free: %s", name_of(i),
			c->ask_units, free_units - kept, sl_reason_name(a->deny.reason));
}

/* For which client, and at whose cost. */
static void judge_reason(struct explore *x, uint32_t i, uint64_t other, uint32_t before)
{
	const struct explore_workload *wl = explore_workload_of(x, i);
	uint32_t workload = x->world->of[i], lacker;
	bool rightly = false;

	if (x->s.parked[workload])
		return;
	lacker = (uint32_t)(other - explore_workload_id(0));
	if (!other || lacker >= x->world->workloads ||
		!explore_lacks(x, lacker, &rightly)) {
		explore_break(x, EXPLORE_STAYS,
			"%c is evicted, and workload %u lacks nothing", name_of(i),
			lacker);
		return;
	}
	if (rightly)
		return;
	if (explore_lent(x) > x->world->pool && explore_lent(x) > before)
		explore_break(x, EXPLORE_I2,
			"after an EVICT of %c for a burst %u units are evicted or lent, "
			"and the pool has %u",
			name_of(i), explore_lent(x), x->world->pool);
	/* A client that is partly on the host does not run. */
	if (lacker != workload && explore_is_within(x, workload) &&
		!explore_is_out(&x->s.client[i]) &&
		explore_quiet_of(x, workload) < wl->idle_grace)
		explore_break(x, EXPLORE_GRACE,
			"%c, within its request, is evicted for a burst of workload %u, "
			"after %u ms without work",
			name_of(i), lacker,
			(unsigned)(explore_quiet_of(x, workload) / SL_MS));
}

static void judge_evict(struct explore *x, const struct sl_action *a)
{
	uint32_t i = explore_index(x, a->evict.client), gpu = a->evict.gpu,
		 before = explore_lent(x);
	struct explore_client *c = &x->s.client[i < EXPLORE_CLIENTS ? i : 0], was = *c;

	if (i == EXPLORE_CLIENTS || !c->alive || gpu >= x->world->gpus ||
		c->resident[gpu] <= c->held[gpu] ||
		explore_workload_of(x, i)->flags & SL_WORKLOAD_NO_SWAP) {
		explore_break(x, EXPLORE_STAYS, "an EVICT of %c of what may not move",
			name_of(i));
		return;
	}
	if (c->order)
		explore_break(x, EXPLORE_ONE_ORDER, "an EVICT of %c, whose order is open",
			name_of(i));
	if (c->granted)
		explore_break(x, EXPLORE_NO_GRANT,
			"an EVICT of %c, which has not committed its grant", name_of(i));
	if (c->expected)
		explore_break(x, EXPLORE_RECOVERY,
			"an EVICT of %c, which has not reported", name_of(i));
	c->order = EXPLORE_EVICTS;
	c->order_gpu = (uint8_t)gpu;
	c->moved = 0;
	c->order_units =
		(uint8_t)sl_min_u64(EXPLORE_ALL, (a->evict.bytes - 1) / EXPLORE_UNIT + 1);
	if (explore_on_host(x) > x->world->pool)
		explore_break(x, EXPLORE_POOL,
			"after an EVICT of %c %u units are on the host, of %u",
			name_of(i), explore_on_host(x), x->world->pool);
	judge_reason(x, i, a->evict.other, before);
	*c = was;
}

static void judge_restore(struct explore *x, const struct sl_action *a)
{
	uint32_t i = explore_index(x, a->restore.client), gpu = a->restore.gpu;
	const struct explore_client *c = &x->s.client[i < EXPLORE_CLIENTS ? i : 0];

	if (i == EXPLORE_CLIENTS || !c->alive || gpu >= x->world->gpus ||
		!c->evicted[gpu]) {
		explore_break(x, EXPLORE_WHOLE,
			"a RESTORE of %c, of which nothing is on the host", name_of(i));
		return;
	}
	if (c->order)
		explore_break(x, EXPLORE_ONE_ORDER,
			"a RESTORE of %c, whose order is open", name_of(i));
	if (c->expected)
		explore_break(x, EXPLORE_RECOVERY,
			"a RESTORE of %c, which has not reported", name_of(i));
	if (c->away)
		explore_break(x, EXPLORE_PLACES, "a RESTORE of %c, which is off its GPUs",
			name_of(i));
	if (x->s.parked[x->world->of[i]])
		explore_break(
			x, EXPLORE_STAYS, "a RESTORE of %c, which is parked", name_of(i));
}

static struct explore_client *may_go(struct explore *x, const char *what, uint64_t client)
{
	uint32_t i = explore_index(x, client);
	struct explore_client *c = &x->s.client[i < EXPLORE_CLIENTS ? i : 0];

	if (i == EXPLORE_CLIENTS || !c->alive) {
		explore_break(x, EXPLORE_PLACES, "%s of no client", what);
		return NULL;
	}
	if (c->order)
		explore_break(x, EXPLORE_ONE_ORDER, "%s of %c, whose order is open", what,
			name_of(i));
	if (c->expected)
		explore_break(x, EXPLORE_RECOVERY, "%s of %c, which has not reported",
			what, name_of(i));
	if (c->granted)
		explore_break(x, EXPLORE_NO_GRANT,
			"%s of %c, which has not committed its grant", what, name_of(i));
	return c;
}

static void judge_detach(struct explore *x, const struct sl_action *a)
{
	const struct explore_client *c = may_go(x, "a DETACH", a->detach.client);
	uint32_t i = explore_index(x, a->detach.client);

	if (!c)
		return;
	if (!x->world->detach || !x->s.parked[x->world->of[i]] ||
		x->s.resuming[x->world->of[i]] || !c->context ||
		a->detach.bytes != explore_bytes(c->context) ||
		c->resident[0] + c->resident[1])
		explore_break(x, EXPLORE_PLACES,
			"a DETACH of %c with %u units of contexts, %u of memory",
			name_of(i), c->context, c->resident[0] + c->resident[1]);
}

static void judge_attach(struct explore *x, const struct sl_action *a)
{
	const struct explore_client *c = may_go(x, "an ATTACH", a->attach.client);
	uint32_t i = explore_index(x, a->attach.client), gpu;

	if (!c)
		return;
	gpu = c->context_gpu;
	if (!c->away || x->s.parked[x->world->of[i]])
		explore_break(x, EXPLORE_PLACES, "an ATTACH of %c, which is %s",
			name_of(i), c->away ? "parked" : "there");
	if (!explore_may_enter(x, i) ||
		(explore_entry(x, c, gpu) &&
			explore_physical(x, gpu) + explore_entry(x, c, gpu) >
				x->world->units))
		explore_break(
			x, EXPLORE_I1, "an ATTACH of %c, which has no room", name_of(i));
}

/* A workload with a request, of which all can be on the GPU, could never be so again. */
static void judge_resumed(struct explore *x, const struct sl_action *a)
{
	uint32_t own = (uint32_t)(a->resumed.workload - explore_workload_id(0));
	uint32_t gpu = (uint32_t)__builtin_ctz(x->s.bound[own]);
	uint32_t fixed[EXPLORE_WORKLOADS] = {0}, all = 0, entry = 0;

	for (uint32_t i = 0; i < x->world->clients; i++) {
		uint32_t workload = x->world->of[i];

		fixed[workload] += explore_fixed(x, i, gpu);
		all += explore_fixed(x, i, gpu);
		if (workload == own)
			entry += explore_entry(x, &x->s.client[i], gpu);
	}
	for (uint32_t i = 0; i < x->world->workloads; i++) {
		uint32_t use = explore_use(x, i, gpu), need = all - fixed[i] + use;

		if (entry && use && explore_request_of(x, i, gpu) && i != own &&
			need <= x->world->units && need + entry > x->world->units)
			explore_break(x, EXPLORE_PROGRESS,
				"beside the contexts of workload %u, which is resumed, "
				"workload %u is never whole again",
				own, i);
	}
}

/* It has no process yet, or all of it is gone. */
static void judge_moves(struct explore *x, const struct sl_action *a)
{
	uint32_t workload = (uint32_t)(a->moves.workload - explore_workload_id(0));
	bool has_begun = false;

	for (uint32_t i = 0; i < x->world->clients; i++)
		has_begun |= x->world->of[i] == workload && x->s.client[i].alive;
	if ((has_begun && !x->s.parked[workload]) || !explore_is_gone(x, workload) ||
		x->s.bound[workload] != 1u << a->moves.from)
		explore_break(x, EXPLORE_MOVES, "workload %u goes from GPU %u to %u",
			workload, a->moves.from, a->moves.to);
}

void explore_judge_action(struct explore *x, const struct sl_action *a)
{
	switch (a->type) {
	case SL_ACTION_GRANT: judge_grant(x, a); break;
	case SL_ACTION_DENY: judge_deny(x, a); break;
	case SL_ACTION_EVICT: judge_evict(x, a); break;
	case SL_ACTION_RESTORE: judge_restore(x, a); break;
	case SL_ACTION_DETACH: judge_detach(x, a); break;
	case SL_ACTION_RESUMED: judge_resumed(x, a); break;
	case SL_ACTION_ATTACH: judge_attach(x, a); break;
	case SL_ACTION_MOVES: judge_moves(x, a); break;
	default: break;
	}
}

/* --- states --- */

static void judge_gpu(struct explore *x, uint32_t gpu)
{
	uint32_t claims = 0;

	for (uint32_t i = 0; i < x->world->workloads; i++) {
		uint32_t held = 0;

		(void)explore_will_be(x, i, gpu, &held);
		claims += sl_max_u64(held, explore_request_of(x, i, gpu));
	}
	if (claims > x->world->units)
		explore_break(x, EXPLORE_I1, "on GPU %u %u units are promised, of %u",
			gpu, claims, x->world->units);
	if (explore_physical(x, gpu) > x->world->units)
		explore_break(x, EXPLORE_I1, "on GPU %u there are %u units, of %u", gpu,
			explore_physical(x, gpu), x->world->units);
}

/* The GPU has the workload's request free, beside the requests of others. */
static bool is_free_for(const struct explore *x, uint32_t workload, uint32_t gpu)
{
	uint32_t request = x->world->workload[workload].request, requests = request;

	for (uint32_t i = 0; i < x->world->workloads; i++)
		requests += i == workload ? 0 : explore_request_of(x, i, gpu);
	return requests <= x->world->units &&
	       explore_physical(x, gpu) + explore_unclaimed(x, gpu, workload) + request <=
		       x->world->units;
}

void explore_judge_begin(struct explore *x, uint32_t workload)
{
	uint32_t own = (uint32_t)__builtin_ctz(x->s.bound[workload]);
	uint32_t mask = x->world->workload[workload].gpu_mask;

	for (uint32_t gpu = 0; gpu < x->world->gpus; gpu++) {
		if (mask >> gpu & 1 && !x->s.parked[workload] &&
			!is_free_for(x, workload, own) && is_free_for(x, workload, gpu))
			explore_break(x, EXPLORE_FIT,
				"workload %u begins on GPU %u, and its request is free "
				"on GPU %u",
				workload, own, gpu);
	}
}

void explore_judge_state(struct explore *x)
{
	for (uint32_t gpu = 0; gpu < x->world->gpus; gpu++)
		judge_gpu(x, gpu);
	if (explore_on_host(x) > x->world->pool)
		explore_break(x, EXPLORE_POOL, "%u units are on the host, of %u",
			explore_on_host(x), x->world->pool);
	/* What people are shown: bound is all there. */
	for (uint32_t i = 0; i < x->world->clients; i++) {
		const struct explore_client *c = &x->s.client[i];

		if (c->alive && !c->expected && explore_is_out(c) &&
			sl_node_workload_alone(
				x->node, explore_workload_id(x->world->of[i]))
					.residency == SL_RESIDENCY_BOUND)
			explore_break(x, EXPLORE_WHOLE,
				"%c is said to be all there, and is not", name_of(i));
	}
}
