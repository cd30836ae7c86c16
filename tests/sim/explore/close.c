/*
 * close - without further demands, does every client get what it waits for?
 *
 * Every order is carried out in the time that its bytes take, grants are committed, dead clients
 * are released, reports come. Clients that have their turn work for a moment and go idle, or work
 * on for ever, as the caller chooses. Time passes by the machine's own wake-ups and by heartbeats.
 * A client that waits must be served or denied within the longest wait that it was told. Orders
 * must end.
 */
#include "world.h"

/* What moving one unit takes, at 8 GiB a second. */
#define UNIT_SPAN (EXPLORE_UNIT * SL_S / (8 * SL_GIB))
#define WORK_SPAN (100 * SL_MS)
#define BEAT      (500 * SL_MS)
/* Longer than any wait in these worlds, which are denied after 4 s and have turns below 1 s. */
#define PATIENCE (60 * SL_S)
/* Orders while clients go idle: each of three clients on two GPUs leaves and comes, in parts. */
#define ORDERS_MOST 48
#define STEPS_MOST  2000

struct wait {
	bool is_open; /* it waited at the beginning, and was not served since */
	sl_ns bound;
	uint32_t contest;
};

struct closing {
	enum explore_closing how;
	sl_ns began;
	uint32_t orders;
	struct wait wait[EXPLORE_CLIENTS];
};

/* Once it is resumed a process comes back unasked. */
static bool waits(const struct explore *x, uint32_t i)
{
	const struct explore_client *c = &x->s.client[i];

	return c->alive &&
	       (c->expected || (c->away && !x->s.parked[x->world->of[i]]) ||
		       explore_wants_back(c) || (c->ask_units && !c->granted));
}

/* Answers what can be answered now; false: nothing was. */
static bool answer(struct explore *x)
{
	static const uint8_t order[] = {EXPLORE_DO_REPORT, EXPLORE_DO_COMMIT,
		EXPLORE_DO_GONE, EXPLORE_DO_PLACED, EXPLORE_DO_DONE};

	for (uint32_t n = 0; n < SL_ARRAY_LEN(order); n++) {
		for (uint8_t i = 0; i < x->world->clients; i++) {
			struct explore_choice o = {order[n], i, 0, 0};

			if (x->s.client[i].alive && x->s.client[i].ends)
				o.kind = EXPLORE_DO_DIE;
			if (!explore_can(x, o))
				continue;
			if (o.kind == EXPLORE_DO_DONE) {
				uint32_t units = x->s.client[i].order_units;

				explore_advance(
					x, x->s.now + UNIT_SPAN * sl_min_u64(units, 8));
			}
			if (!x->broken && explore_can(x, o))
				explore_do(x, o);
			return true;
		}
	}
	return false;
}

static bool goes_idle(struct explore *x)
{
	for (uint8_t i = 0; i < x->world->clients; i++) {
		struct explore_client *c = &x->s.client[i];
		struct explore_choice o = {EXPLORE_DO_IDLE, i, 0, 0};

		if (c->busy && x->s.now >= c->since + WORK_SPAN) {
			explore_do(x, o);
			return true;
		}
	}
	return false;
}

static void look_at_wait(struct explore *x, struct closing *k, uint32_t i)
{
	struct explore_client *c = &x->s.client[i];
	struct wait *w = &k->wait[i];
	uint64_t workload = explore_workload_id(x->world->of[i]);
	sl_ns span;

	w->is_open &= waits(x, i);
	/* The client is back: its next wait has a bound of its own. */
	if (!explore_wants_back(c) || explore_recovers(x)) {
		w->contest = 0;
		w->bound = 0;
		return;
	}
	if (w->contest != x->s.contest + 1) {
		span = sl_node_workload(x->node, workload).longest_wait;
		w->contest = x->s.contest + 1;
		/* 0: no bound was told, since no other client competes. */
		w->bound = !span || span == SL_NS_NEVER
				   ? SL_NS_NEVER
				   : sl_max_u64(w->bound,
					     x->s.now + span + span / 10 + 200 * SL_MS);
	}
	if (w->is_open && x->s.now > w->bound)
		explore_break(x, EXPLORE_MAX_WAIT,
			"%c is not whole %u ms after the longest wait that was told",
			'A' + (int)i, (unsigned)((x->s.now - w->bound) / SL_MS));
}

/* A demand within the request is never denied, but it waits for its client's memory. That may
 * exceed the request on another GPU, and so wait on the host. */
static bool waits_for_its_body(const struct explore *x, uint32_t i)
{
	const struct explore_client *c = &x->s.client[i];
	uint32_t workload = x->world->of[i];
	const struct explore_workload *wl = explore_workload_of(x, i);

	return explore_is_out(c) && !explore_is_within(x, workload) &&
	       explore_use(x, workload, c->ask_gpu) + c->ask_units <= wl->request;
}

/* What waits on the host may have to wait, but no call of a program does without end. */
static bool is_to_be_answered(const struct explore *x, uint32_t i)
{
	return x->s.client[i].ask_units && !x->s.parked[x->world->of[i]] &&
	       !waits_for_its_body(x, i);
}

static bool is_over(struct explore *x, struct closing *k)
{
	bool over = true;

	for (uint32_t i = 0; i < x->world->clients; i++) {
		look_at_wait(x, k, i);
		if (k->wait[i].is_open &&
			(!explore_is_excused(x, i) || is_to_be_answered(x, i)))
			over = false;
		if (x->s.client[i].order && k->how == EXPLORE_GO_IDLE)
			over = false;
	}
	return over;
}

/* The span of a bound that has no end is named by the machine, and is nothing to be judged. */
static bool is_endless(struct explore *x, uint32_t i)
{
	struct sl_node_workload_view v =
		sl_node_workload(x->node, explore_workload_id(x->world->of[i]));

	return explore_wants_back(&x->s.client[i]) && v.longest_wait == SL_NS_NEVER &&
	       v.endless != SL_ENDLESS_NOT;
}

static void judge_patience(struct explore *x, struct closing *k)
{
	if (k->how == EXPLORE_GO_IDLE && x->s.orders - k->orders > ORDERS_MOST)
		explore_break(x, EXPLORE_STORM, "%u orders, and no end", ORDERS_MOST);
	if (x->s.now < k->began + PATIENCE)
		return;
	for (uint32_t i = 0; i < x->world->clients; i++) {
		bool excused = explore_is_excused(x, i) ||
			       (k->how == EXPLORE_WORK_ON && is_endless(x, i));

		if (!k->wait[i].is_open || (excused && !is_to_be_answered(x, i)))
			continue;
		explore_break(x, excused ? EXPLORE_ANSWER : EXPLORE_PROGRESS,
			"%c still waits after %u s%s", 'A' + (int)i,
			(unsigned)(PATIENCE / SL_S),
			k->how == EXPLORE_WORK_ON ? ", while others work on" : "");
	}
}

static sl_ns next_moment(const struct explore *x, const struct closing *k)
{
	sl_ns at = sl_min_u64(x->s.now + BEAT, x->s.wake);

	for (uint32_t i = 0; i < x->world->clients; i++) {
		const struct explore_client *c = &x->s.client[i];

		if (c->busy && k->how == EXPLORE_GO_IDLE)
			at = sl_min_u64(at, c->since + WORK_SPAN);
	}
	return sl_max_u64(at, x->s.now);
}

void explore_close(struct explore *x, enum explore_closing how)
{
	struct closing k = {.how = how, .began = x->s.now, .orders = x->s.orders};

	x->closes = true;
	for (uint32_t i = 0; i < x->world->clients; i++)
		k.wait[i].is_open = waits(x, i);
	for (uint32_t steps = 0; !x->broken && !is_over(x, &k); steps++) {
		judge_patience(x, &k);
		if (x->s.now >= k.began + PATIENCE)
			return;
		if (steps > STEPS_MOST) {
			explore_break(x, EXPLORE_STORM, "%u steps in %u ms, and no end",
				STEPS_MOST, (unsigned)((x->s.now - k.began) / SL_MS));
			return;
		}
		if (answer(x) || (how == EXPLORE_GO_IDLE && goes_idle(x)))
			continue;
		explore_advance(x, next_moment(x, &k));
	}
}
