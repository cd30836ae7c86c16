/*
 * sums - what there is, and what clients have a right to: by the bytes that they have
 */
#include "world.h"

/* --- sums, in units --- */

bool explore_is_out(const struct explore_client *c)
{
	return c->evicted[0] + c->evicted[1] + c->away > 0 ||
	       c->order == EXPLORE_ATTACHES;
}

bool explore_is_still(const struct explore_client *c)
{
	return c->away || c->order >= EXPLORE_DETACHES;
}

bool explore_is_gone(const struct explore *x, uint32_t workload)
{
	bool gone = true;

	for (uint32_t i = 0; i < x->world->clients; i++) {
		const struct explore_client *c = &x->s.client[i];

		if (c->alive && x->world->of[i] == workload)
			gone &= !(c->order || c->granted || c->expected || c->context ||
					c->resident[0] + c->resident[1]) &&
				c->away;
	}
	return gone;
}

/* --- contexts --- */

static uint32_t reserve_room(const struct explore *x, uint32_t gpu)
{
	uint32_t paid = 0;

	for (uint32_t i = 0; i < x->world->clients; i++)
		paid += x->s.client[i].context_gpu == gpu ? x->s.client[i].paid : 0;
	return (uint32_t)sl_sub_sat(x->world->reserve, paid);
}

void explore_set_context(struct explore *x, struct explore_client *c, uint8_t units)
{
	c->context = units;
	c->paid = 0;
	c->paid = (uint8_t)sl_min_u64(units, reserve_room(x, c->context_gpu));
	for (uint32_t i = 0; i < x->world->clients; i++) {
		struct explore_client *o = &x->s.client[i];

		if (o->alive)
			o->paid += sl_min_u64(
				o->context - o->paid, reserve_room(x, o->context_gpu));
	}
}

uint32_t explore_unpaid(const struct explore_client *c, uint32_t gpu)
{
	return c->alive && gpu == c->context_gpu ? c->context - c->paid : 0;
}

uint32_t explore_entry(
	const struct explore *x, const struct explore_client *c, uint32_t gpu)
{
	return gpu == c->context_gpu ? (uint32_t)sl_sub_sat(c->away, reserve_room(x, gpu))
				     : 0;
}

bool explore_may_enter(const struct explore *x, uint32_t client)
{
	uint32_t gpu = x->s.client[client].context_gpu, claims = 0;
	uint32_t entry = explore_entry(x, &x->s.client[client], gpu);

	for (uint32_t i = 0; i < x->world->workloads; i++) {
		uint32_t held = i == x->world->of[client] ? entry : 0;

		(void)explore_will_be(x, i, gpu, &held);
		claims += sl_max_u64(held, explore_request_of(x, i, gpu));
	}
	return !entry || claims <= x->world->units;
}

bool explore_recovers(const struct explore *x)
{
	bool any = false;

	for (uint32_t i = 0; i < x->world->clients; i++)
		any |= x->s.client[i].alive && x->s.client[i].expected;
	return any && x->s.now < x->s.began + EXPLORE_RECOVERS;
}

bool explore_wants_back(const struct explore_client *c)
{
	return c->alive && !c->expected && explore_is_out(c) &&
	       (c->stands || c->ask_units);
}

static uint32_t granted(const struct explore_client *c, uint32_t gpu)
{
	return c->granted && c->ask_gpu == gpu ? c->ask_units : 0;
}

/* Room is kept for them from the RESTORE on. */
uint32_t explore_returning(const struct explore_client *c, uint32_t gpu)
{
	uint32_t out = c->evicted[gpu];

	if (c->order != EXPLORE_RESTORES || c->order_gpu != gpu)
		return 0;
	return sl_min_u64(c->order_units - c->moved, out);
}

uint32_t explore_leaving(const struct explore_client *c, uint32_t gpu)
{
	uint32_t can = c->resident[gpu] - c->held[gpu];

	if (c->order != EXPLORE_EVICTS || c->order_gpu != gpu)
		return 0;
	return c->order_units == EXPLORE_ALL
		       ? can
		       : sl_min_u64(sl_sub_sat(c->order_units, c->moved), can);
}

static uint32_t here(const struct explore_client *c, uint32_t gpu)
{
	return c->resident[gpu] + granted(c, gpu) + explore_returning(c, gpu) +
	       explore_unpaid(c, gpu);
}

uint32_t explore_use(const struct explore *x, uint32_t workload, uint32_t gpu)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < x->world->clients; i++) {
		const struct explore_client *c = &x->s.client[i];

		if (c->alive && x->world->of[i] == workload)
			sum += c->resident[gpu] + c->evicted[gpu] + granted(c, gpu) +
			       explore_unpaid(c, gpu);
	}
	return sum;
}

uint32_t explore_physical(const struct explore *x, uint32_t gpu)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < x->world->clients; i++)
		sum += here(&x->s.client[i], gpu) + x->s.client[i].dying[gpu];
	return sum;
}

uint32_t explore_request_of(const struct explore *x, uint32_t workload, uint32_t gpu)
{
	const struct explore_workload *wl = &x->world->workload[workload];

	return x->s.parked[workload] || !(x->s.bound[workload] >> gpu & 1) ? 0
									   : wl->request;
}

/* Of the workload, once all that was told to leave has left; held: its bytes that never leave. */
uint32_t explore_will_be(
	const struct explore *x, uint32_t workload, uint32_t gpu, uint32_t *held)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < x->world->clients; i++) {
		const struct explore_client *c = &x->s.client[i];

		if (x->world->of[i] != workload)
			continue;
		sum += here(c, gpu) - explore_leaving(c, gpu);
		*held += c->held[gpu] + explore_unpaid(c, gpu);
	}
	return sum;
}

uint32_t explore_unclaimed(const struct explore *x, uint32_t gpu, uint32_t but)
{
	uint32_t sum = 0, held = 0;

	for (uint32_t i = 0; i < x->world->workloads; i++)
		sum += i == but ? 0
				: sl_sub_sat(explore_request_of(x, i, gpu),
					  explore_will_be(x, i, gpu, &held));
	return sum;
}

/* Evicted and leaving. */
uint32_t explore_on_host(const struct explore *x)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < x->world->clients; i++) {
		const struct explore_client *c = &x->s.client[i];

		for (uint32_t gpu = 0; gpu < x->world->gpus; gpu++)
			sum += c->evicted[gpu] + explore_leaving(c, gpu);
	}
	return sum;
}

/* What I2 bounds: evicted, leaving, and what stands on unclaimed requests. */
uint32_t explore_lent(const struct explore *x)
{
	uint32_t sum = explore_on_host(x);

	for (uint32_t gpu = 0; gpu < x->world->gpus; gpu++) {
		uint32_t stands = explore_unclaimed(x, gpu, EXPLORE_WORKLOADS);

		for (uint32_t i = 0; i < x->world->clients; i++) {
			const struct explore_client *c = &x->s.client[i];

			stands += here(c, gpu) - explore_leaving(c, gpu) + c->dying[gpu];
			sum -= explore_returning(c, gpu);
		}
		sum += sl_sub_sat(stands, x->world->units);
	}
	return sum;
}

/* --- rights --- */

bool explore_is_entitled(const struct explore *x, uint32_t client)
{
	const struct explore_client *c = &x->s.client[client];
	uint32_t workload = x->world->of[client], gpu = c->ask_gpu;

	return c->ask_units &&
	       explore_use(x, workload, gpu) + (c->granted ? 0 : c->ask_units) <=
		       explore_request_of(x, workload, gpu);
}

bool explore_is_owed(const struct explore *x, uint32_t client)
{
	const struct explore_client *c = &x->s.client[client];
	uint32_t workload = x->world->of[client];

	for (uint32_t gpu = 0; gpu < x->world->gpus; gpu++) {
		if (c->evicted[gpu] && explore_use(x, workload, gpu) >
					       explore_request_of(x, workload, gpu))
			return false;
	}
	return true;
}

bool explore_is_within(const struct explore *x, uint32_t workload)
{
	for (uint32_t gpu = 0; gpu < x->world->gpus; gpu++) {
		if (explore_use(x, workload, gpu) > explore_request_of(x, workload, gpu))
			return false;
	}
	return true;
}

/* A client of the workload lacks memory; *rightly: within its request. */
bool explore_lacks(const struct explore *x, uint32_t workload, bool *rightly)
{
	bool any = false;

	for (uint32_t i = 0; i < x->world->clients; i++) {
		const struct explore_client *c = &x->s.client[i];
		bool asks = c->alive && c->ask_units && !c->granted;
		bool back = explore_wants_back(c) ||
			    (explore_is_out(c) && x->s.returns[workload]);

		if (x->world->of[i] != workload)
			continue;
		any |= asks || back;
		*rightly |= (asks && explore_is_entitled(x, i)) ||
			    (back && explore_is_owed(x, i));
	}
	return any;
}

/* As far as the machine was told: a thread at a gate that is shut for an order says so later. */
sl_ns explore_quiet_of(const struct explore *x, uint32_t workload)
{
	sl_ns least = SL_NS_NEVER;

	for (uint32_t i = 0; i < x->world->clients; i++) {
		const struct explore_client *c = &x->s.client[i];

		if (!c->alive || x->world->of[i] != workload)
			continue;
		least = sl_min_u64(
			least, c->busy || c->told ? 0 : x->s.now - c->since + 1);
	}
	return least;
}

/* --- excuses --- */

uint32_t explore_fixed(const struct explore *x, uint32_t client, uint32_t gpu)
{
	const struct explore_client *c = &x->s.client[client];

	return explore_workload_of(x, client)->flags & SL_WORKLOAD_NO_SWAP
		       ? c->resident[gpu] + explore_unpaid(c, gpu)
		       : c->held[gpu] + explore_unpaid(c, gpu);
}

static uint32_t fixed_beside(const struct explore *x, uint32_t client, uint32_t gpu)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < x->world->clients; i++)
		sum += i == client ? 0 : explore_fixed(x, i, gpu);
	return sum;
}

bool explore_is_excused(const struct explore *x, uint32_t client)
{
	const struct explore_client *c = &x->s.client[client];
	uint32_t missing = 0;

	/* Parked; or requests took the room of its contexts. */
	if (x->s.parked[x->world->of[client]] || !explore_may_enter(x, client))
		return true;
	if (explore_is_owed(x, client) &&
		(!c->ask_units || explore_is_entitled(x, client)))
		return false;
	for (uint32_t gpu = 0; gpu < x->world->gpus; gpu++) {
		uint32_t own = c->resident[gpu] + c->evicted[gpu] +
			       explore_unpaid(c, gpu) + explore_entry(x, c, gpu);

		if ((c->evicted[gpu] || explore_entry(x, c, gpu)) &&
			own + fixed_beside(x, client, gpu) > x->world->units)
			return true;
		missing += sl_sub_sat(explore_physical(x, gpu) + c->evicted[gpu] +
					      explore_entry(x, c, gpu),
			x->world->units);
	}
	/* Others leave before the memory is used, and lent memory must be taken back. */
	return explore_lent(x) + missing > x->world->pool;
}
