/*
 * deadlock - see the header
 *
 * Instead of adding up what everybody could give, the state counts what is kept: it starts
 * with all waiting clients in the kept set and takes out one client after the other that fits.
 * Per GPU two sums are enough: kept bytes (what stands in the way of an entitled demand) and
 * kept claims (what stands in the way of a burst).
 */
#include "policy/verdicts/deadlock.h"
#include "policy/mutant.h"

struct state {
	const struct sl_deadlock_scene *scene;
	uint64_t kept_bytes[SL_LEDGER_GPUS_MAX];
	uint64_t claimed_bytes[SL_LEDGER_GPUS_MAX];
};

#define for_each_bit(i, mask)                                                  \
	for (uint32_t i##_left_ = (mask), i;                                   \
		i##_left_ && ((i = (uint32_t)__builtin_ctz(i##_left_)), true); \
		i##_left_ &= i##_left_ - 1)

/* What the workload keeps from other workloads' bursts on this GPU. */
static uint64_t claimed_by(const struct sl_deadlock_party *party, uint32_t gpu)
{
	const struct sl_deadlock_claim *claim = party->claim;

	if (!claim->parties)
		return 0;
	return sl_max_u64(claim->kept_bytes[gpu],
		SL_MUTANT(DEADLOCK_REQUESTS_GIVEN,
			sl_ledger_request(party->holding->account, gpu), 0));
}

static uint32_t reach(const struct sl_deadlock_party *party)
{
	return party->holding->touched | party->holding->account->gpu_mask |
	       party->holding->account->touched;
}

/* Puts the party into the kept set (sign > 0) or takes it out. */
static void move(struct state *state, struct sl_deadlock_party *party, bool in)
{
	struct sl_deadlock_claim *claim = party->claim;

	for_each_bit(gpu, reach(party)) state->claimed_bytes[gpu] -=
		claimed_by(party, gpu);
	claim->parties += in ? 1 : -1;
	for_each_bit(gpu, reach(party))
	{
		uint64_t bytes = sl_ledger_live(&party->holding->cell[gpu]);

		claim->kept_bytes[gpu] += in ? bytes : -bytes;
		state->kept_bytes[gpu] += in ? bytes : -bytes;
		state->claimed_bytes[gpu] += claimed_by(party, gpu);
	}
	party->stuck = in;
}

/* Whether the demand could be granted if nothing but the kept set were in its way. */
static bool demand_fits(const struct state *state, const struct sl_deadlock_party *party,
	const struct sl_demand *demand)
{
	uint32_t gpu = demand->gpu;
	uint64_t shareable = sl_ledger_shareable(state->scene->ledger, gpu);
	uint64_t own = party->claim->kept_bytes[gpu];
	uint64_t others;

	if (SL_MUTANT(DEADLOCK_WHILE_DEGRADED, state->scene->degraded_mask >> gpu & 1,
		    false))
		return true;
	if (demand->bytes > sl_sub_sat(shareable, state->kept_bytes[gpu]))
		return false;
	if (own + demand->bytes <= sl_ledger_request(party->holding->account, gpu))
		return true;
	others = state->claimed_bytes[gpu] - claimed_by(party, gpu);
	return own + demand->bytes + others <= shareable + state->scene->lend_bytes[gpu];
}

static bool party_fits(const struct state *state, const struct sl_deadlock_party *party)
{
	uint32_t waits_on = 0, fits_on = 0;

	sl_list_foreach (link, &party->demands) {
		const struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, of_client);

		if (demand->epoch)
			continue;
		waits_on |= 1u << demand->gpu;
		if (demand_fits(state, party, demand))
			fits_on |= 1u << demand->gpu;
	}
	return SL_MUTANT(DEADLOCK_ANY_GPU, fits_on == waits_on, fits_on != 0);
}

static void begin(struct state *state, const struct sl_deadlock_scene *scene,
	const struct sl_deadlock_party *owner)
{
	*state = (struct state){.scene = scene};
	sl_list_foreach (link, scene->parties) {
		struct sl_deadlock_party *party =
			SL_LIST_ENTRY(link, struct sl_deadlock_party, link);

		party->helps = party->stuck = false;
		*party->claim = (struct sl_deadlock_claim){0};
	}
	sl_list_foreach (link, scene->parties) {
		struct sl_deadlock_party *party =
			SL_LIST_ENTRY(link, struct sl_deadlock_party, link);

		if (SL_MUTANT(DEADLOCK_ACTIVE_WAITS, party->waits, true) ||
			party == owner)
			move(state, party, true);
	}
}

static bool holds_something(const struct sl_deadlock_party *party)
{
	for_each_bit(gpu, party->holding->touched)
	{
		if (sl_ledger_live(&party->holding->cell[gpu]))
			return true;
	}
	return false;
}

/* Among the hopeless, the youngest burst demand that does not fit; if all those that do not
 * fit are entitled, the youngest burst demand at all. */
static struct sl_demand *choose_victim(const struct state *state)
{
	struct sl_demand *blocked = NULL, *any = NULL;

	sl_list_foreach (link, state->scene->parties) {
		struct sl_deadlock_party *party =
			SL_LIST_ENTRY(link, struct sl_deadlock_party, link);

		if (!party->stuck)
			continue;
		sl_list_foreach (at, &party->demands) {
			struct sl_demand *d =
				SL_LIST_ENTRY(at, struct sl_demand, of_client);

			if (d->epoch || SL_MUTANT(VICTIM_ENTITLED, d->entitled, false))
				continue;
			if (!any || SL_MUTANT(VICTIM_OLDEST, d->sequence > any->sequence,
					    d->sequence < any->sequence))
				any = d;
			if (demand_fits(state, party, d))
				continue;
			if (!blocked ||
				SL_MUTANT(VICTIM_OLDEST, d->sequence > blocked->sequence,
					d->sequence < blocked->sequence))
				blocked = d;
		}
	}
	return blocked ? blocked : any;
}

struct sl_deadlock_plan sl_deadlock_find(const struct sl_deadlock_scene *scene)
{
	struct sl_deadlock_plan plan = {0};
	struct state state;
	bool again = true;

	begin(&state, scene, NULL);
	while (again) {
		again = false;
		plan.hopeless = 0;
		sl_list_foreach (link, scene->parties) {
			struct sl_deadlock_party *party =
				SL_LIST_ENTRY(link, struct sl_deadlock_party, link);

			if (!party->stuck)
				continue;
			if (!party_fits(&state, party)) {
				plan.hopeless++;
				continue;
			}
			move(&state, party, false);
			again = SL_MUTANT(DEADLOCK_ONE_ROUND, true, false);
		}
	}
	if (plan.hopeless)
		plan.victim = choose_victim(&state);
	return plan;
}

void sl_deadlock_helpers(const struct sl_deadlock_scene *scene,
	const struct sl_demand *head, const struct sl_deadlock_party *owner)
{
	struct state state;
	bool again = true;

	begin(&state, scene, owner);
	while (again && !demand_fits(&state, owner, head)) {
		again = false;
		sl_list_foreach (link, scene->parties) {
			struct sl_deadlock_party *party =
				SL_LIST_ENTRY(link, struct sl_deadlock_party, link);

			if (!party->stuck || party == owner || !holds_something(party) ||
				!party_fits(&state, party))
				continue;
			move(&state, party, false);
			party->helps = true;
			again = true;
			if (demand_fits(&state, owner, head))
				break;
		}
	}
}
