/*
 * do - carries out a choice: what the client does, and its messages
 */
#include "world.h"

static void do_ask(struct explore *x, struct explore_choice o)
{
	struct explore_client *c = &x->s.client[o.who];

	/* The client's thread waits; its submitted work comes to an end. */
	if (c->busy) {
		c->busy = false;
		c->since = x->s.now;
	}
	c->ask = ++x->s.next_ask;
	c->ask_units = o.units;
	c->ask_gpu = o.gpu;
	c->ask_held = o.kind == EXPLORE_DO_HOLD;
	c->asked_at = x->s.now;
	c->asked_place = ++x->s.next_place;
	x->s.contest++;
	EXPLORE_STEP(x, ASK, ask, explore_client_id(o.who), c->ask, o.gpu,
		explore_bytes(o.units), c->ask_held ? SL_NODE_ASK_HELD : 0);
	if (c->ask_units && !c->granted &&
		explore_use(x, x->world->of[o.who], o.gpu) + o.units >
			x->world->workload[x->world->of[o.who]].limit)
		explore_break(x, EXPLORE_LIMIT,
			"%c asks for more than its limit and waits", 'A' + o.who);
}

static void do_commit(struct explore *x, struct explore_client *c)
{
	uint8_t units = c->ask_units;

	c->resident[c->ask_gpu] += units;
	if (c->ask_held)
		c->held[c->ask_gpu] += units;
	c->ask_units = 0;
	c->granted = false;
	x->s.contest++;
	EXPLORE_STEP(x, COMMIT, commit, explore_id(x, c), c->epoch, explore_bytes(units));
}

static void do_free(struct explore *x, struct explore_client *c, uint32_t gpu, bool out)
{
	*(out ? &c->evicted[gpu] : &c->resident[gpu]) -= 1;
	x->s.contest++;
	EXPLORE_STEP(x, FREED, freed, explore_id(x, c), gpu, EXPLORE_UNIT, out);
	explore_look_at_gate(x, c);
}

static void move(struct explore_client *c, uint8_t units)
{
	uint32_t gpu = c->order_gpu;
	bool leaves = c->order == EXPLORE_EVICTS;

	*(leaves ? &c->resident[gpu] : &c->evicted[gpu]) -= units;
	*(leaves ? &c->evicted[gpu] : &c->resident[gpu]) += units;
	c->moved += units;
}

static void answer(struct explore *x, struct explore_client *c,
	enum sl_swap_outcome outcome, enum sl_swap_cause cause)
{
	uint32_t gpu = c->order_gpu;
	uint64_t order = c->order_id;

	/* A client that was working goes on, and finds the gate shut. */
	if (c->busy && explore_is_out(c)) {
		c->busy = false;
		c->stands = true;
	}
	c->order = EXPLORE_NO_ORDER;
	x->s.contest += outcome != SL_SWAP_OK;
	EXPLORE_STEP(x, DONE, done, .client = explore_id(x, c), .order = order,
		.gpu = gpu, .outcome = outcome, .cause = cause,
		.evicted_bytes = explore_bytes(c->evicted[gpu]),
		.moved_bytes = explore_bytes(c->moved),
		.span = explore_bytes(c->moved) / 8);
	explore_look_at_gate(x, c);
}

static void do_place(
	struct explore *x, struct explore_client *c, enum sl_swap_outcome outcome)
{
	bool leaves = c->order == EXPLORE_DETACHES;
	uint64_t order = c->order_id;
	uint8_t units = c->context + c->away;

	if (leaves == (outcome == SL_SWAP_OK)) {
		c->away = units;
		explore_set_context(x, c, 0);
	}
	c->order = EXPLORE_NO_ORDER;
	if (c->busy && explore_is_out(c)) {
		c->busy = false;
		c->stands = true;
	}
	x->s.contest++;
	EXPLORE_STEP(x, PLACED, placed, .client = explore_id(x, c), .order = order,
		.outcome = outcome,
		.cause = outcome == SL_SWAP_OK ? SL_SWAP_NO_CAUSE : SL_SWAP_DRIVER,
		.span = SL_MS);
	explore_look_at_gate(x, c);
}

static void do_context(struct explore *x, struct explore_client *c)
{
	explore_set_context(x, c, c->context + 1);
	x->s.contest++;
	EXPLORE_STEP(x, HIDDEN, hidden, explore_id(x, c), c->context_gpu,
		explore_bytes(c->context));
}

static void do_moved(struct explore *x, struct explore_client *c)
{
	move(c, c->tell_units);
	EXPLORE_STEP(x, MOVED, moved, explore_id(x, c), c->order_id, c->order_gpu,
		explore_bytes(c->evicted[c->order_gpu]));
}

static void do_part(struct explore *x, struct explore_client *c)
{
	if (!c->moved)
		move(c, (uint8_t)(explore_goal(c) / 2));
	answer(x, c, SL_SWAP_PART,
		c->order == EXPLORE_EVICTS ? SL_SWAP_DRIVER : SL_SWAP_NO_ROOM);
}

static void do_done(struct explore *x, struct explore_client *c)
{
	uint8_t goal = explore_goal(c);
	bool nothing = c->order == EXPLORE_EVICTS && !goal;

	move(c, (uint8_t)(goal - c->moved));
	if (nothing)
		answer(x, c, SL_SWAP_REFUSED, SL_SWAP_NOTHING);
	else
		answer(x, c, SL_SWAP_OK, SL_SWAP_NO_CAUSE);
}

static void do_die(struct explore *x, struct explore_client *c)
{
	struct explore_client dead = {
		.context = c->paid, .paid = c->paid, .context_gpu = c->context_gpu};

	for (uint32_t gpu = 0; gpu < x->world->gpus; gpu++) {
		dead.dying[gpu] = c->resident[gpu] + explore_unpaid(c, gpu);
		if (c->order == EXPLORE_RESTORES && c->order_gpu == gpu)
			dead.dying[gpu] += explore_goal(c);
		if (c->granted && c->ask_gpu == gpu)
			dead.dying[gpu] += c->ask_units;
	}
	*c = dead;
	x->s.contest++;
	EXPLORE_STEP(x, CLIENT_EXIT, client_exit, explore_id(x, c));
}

static void do_gone(struct explore *x, struct explore_client *c)
{
	for (uint32_t gpu = 0; gpu < x->world->gpus; gpu++) {
		c->dying[gpu] = 0;
		explore_set_context(x, c, 0);
		EXPLORE_STEP(x, RELEASED, released, explore_id(x, c), gpu, 0);
	}
}

static void do_report(struct explore *x, struct explore_client *c)
{
	for (uint32_t gpu = 0; gpu < x->world->gpus; gpu++) {
		EXPLORE_STEP(x, CLIENT_REPORT, client_report, explore_id(x, c), gpu,
			explore_bytes(c->resident[gpu] + c->evicted[gpu]));
		EXPLORE_STEP(x, CLIENT_EVICTED, client_evicted, explore_id(x, c), gpu,
			explore_bytes(c->evicted[gpu]));
		EXPLORE_STEP(x, HIDDEN, hidden, explore_id(x, c), gpu, 0);
	}
	c->expected = false;
	EXPLORE_STEP(x, CLIENT_REPORTED, client_reported, explore_id(x, c));
	explore_look_at_gate(x, c);
}

static void do_work(struct explore *x, struct explore_client *c)
{
	c->stands = true;
	if (!explore_is_out(c) && !c->order) {
		c->stands = false;
		explore_begin_work(x, c);
	}
	explore_look_at_gate(x, c);
}

static void do_idle(struct explore *x, struct explore_client *c)
{
	c->busy = false;
	c->since = x->s.now;
	explore_pulse(x, c);
}

static void do_person(struct explore *x, struct explore_choice o)
{
	bool parks = o.kind == EXPLORE_DO_PARK;

	x->s.contest++;
	if (parks) {
		x->s.parked[o.who] = true;
		x->s.resuming[o.who] = false;
		EXPLORE_STEP(
			x, WORKLOAD_PARK, workload_park, explore_workload_id(o.who), 0);
		return;
	}
	x->s.resuming[o.who] = true;
	EXPLORE_STEP(x, WORKLOAD_RESUME, workload_resume, explore_workload_id(o.who),
		o.kind == EXPLORE_DO_MOVE ? 1u << o.gpu : 0);
	if (o.kind == EXPLORE_DO_MOVE && x->s.bound[o.who] != 1u << o.gpu)
		explore_break(x, EXPLORE_MOVES, "workload %u was not moved", o.who);
}

/* All memory of the client is back. */
static void end_returns(struct explore *x)
{
	bool out[EXPLORE_WORKLOADS] = {0};

	for (uint32_t i = 0; i < x->world->clients; i++)
		out[x->world->of[i]] |=
			explore_is_out(&x->s.client[i]) || x->s.client[i].order;
	for (uint32_t i = 0; i < x->world->workloads; i++)
		x->s.returns[i] &= out[i];
}

void explore_do(struct explore *x, struct explore_choice o)
{
	struct explore_client *c = &x->s.client[o.who];

	x->spoken = 0;
	x->s.faults -= explore_is_fault(o.kind) && x->s.faults;
	switch (o.kind) {
	case EXPLORE_DO_ASK:
	case EXPLORE_DO_HOLD: do_ask(x, o); break;
	case EXPLORE_DO_COMMIT: do_commit(x, c); break;
	case EXPLORE_DO_FAIL:
		c->granted = false;
		EXPLORE_STEP(x, CREATE_FAILED, create_failed, explore_id(x, c), c->epoch);
		break;
	case EXPLORE_DO_FREE: do_free(x, c, o.gpu, false); break;
	case EXPLORE_DO_DROP: do_free(x, c, o.gpu, true); break;
	case EXPLORE_DO_WORK: do_work(x, c); break;
	case EXPLORE_DO_IDLE: do_idle(x, c); break;
	case EXPLORE_DO_DONE: do_done(x, c); break;
	case EXPLORE_DO_MOVED: do_moved(x, c); break;
	case EXPLORE_DO_PART: do_part(x, c); break;
	case EXPLORE_DO_BUSY: answer(x, c, SL_SWAP_REFUSED, SL_SWAP_BUSY); break;
	case EXPLORE_DO_NO_HOST: answer(x, c, SL_SWAP_REFUSED, SL_SWAP_NO_HOST); break;
	case EXPLORE_DO_DRIVER:
		answer(x, c, SL_SWAP_REFUSED,
			c->order == EXPLORE_EVICTS ? SL_SWAP_DRIVER : SL_SWAP_NO_ROOM);
		break;
	case EXPLORE_DO_ABORT:
		answer(x, c, c->moved ? SL_SWAP_PART : SL_SWAP_REFUSED, SL_SWAP_ABORTED);
		break;
	case EXPLORE_DO_PLACED: do_place(x, c, SL_SWAP_OK); break;
	case EXPLORE_DO_STAYED: do_place(x, c, SL_SWAP_REFUSED); break;
	case EXPLORE_DO_CONTEXT: do_context(x, c); break;
	case EXPLORE_DO_DIE: do_die(x, c); break;
	case EXPLORE_DO_GONE: do_gone(x, c); break;
	case EXPLORE_DO_REPORT: do_report(x, c); break;
	case EXPLORE_DO_BEGIN: explore_join(x, o.who); break;
	case EXPLORE_DO_PARK:
	case EXPLORE_DO_RESUME:
	case EXPLORE_DO_MOVE: do_person(x, o); break;
	case EXPLORE_DO_WAKE: explore_advance(x, x->s.wake); break;
	case EXPLORE_DO_SECOND: explore_advance(x, x->s.now + SL_S); break;
	case EXPLORE_DO_LONG: explore_advance(x, x->s.now + 6 * SL_S); break;
	default: break;
	}
	end_returns(x);
	explore_judge_state(x);
}
