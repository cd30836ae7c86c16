/*
 * deadlock - see the header
 *
 * Instead of adding up what all clients could give, the state counts what is kept: it starts with
 * all waiting clients in the kept set, and takes out one client after the other that fits. Two sums
 * per GPU suffice: kept bytes (in the way of an entitled demand) and kept claims (in the way of a
 * burst).
 */
#include "policy/verdicts/deadlock.h"

#include <string.h>

#include "policy/mutant.h"

/* How many priorities are told apart; workloads of further ones in one deadlock use no requests of
 * others. */
#define LEVELS_MOST 16
/* Clients tried as the victim: each costs a pass over all hopeless ones. */
#define TRIES_MOST 64

/* Unclaimed requests of workloads of one priority in the kept set. */
struct level {
	int32_t priority;
	uint64_t unclaimed_bytes[SL_LEDGER_GPUS_MAX];
};

struct state {
	const struct sl_deadlock_scene *scene;
	uint32_t levels;
	struct level level[LEVELS_MOST];
	uint64_t kept_bytes[SL_LEDGER_GPUS_MAX];
	uint64_t claimed_bytes[SL_LEDGER_GPUS_MAX];
};

#define party_at(at) SL_LIST_ENTRY(at, struct sl_deadlock_party, link)
#define each_party(party, scene)                                                 \
	for (struct sl_deadlock_party *party = party_at((scene)->parties->next); \
		&party->link != (scene)->parties; party = party_at(party->link.next))

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

/* Adds the unclaimed part of the claim, or takes it off. */
static void add_unclaimed(struct state *state, const struct sl_deadlock_party *party,
	uint32_t gpu, bool add)
{
	const struct sl_deadlock_claim *claim = party->claim;
	uint64_t bytes = claimed_by(party, gpu) - claim->kept_bytes[gpu];

	if (claim->level < LEVELS_MOST && claim->parties)
		state->level[claim->level].unclaimed_bytes[gpu] += add ? bytes : -bytes;
}

static uint32_t find_level(struct state *state, int32_t priority)
{
	for (uint32_t i = 0; i < state->levels; i++) {
		if (state->level[i].priority == priority)
			return i;
	}
	if (state->levels == LEVELS_MOST)
		return LEVELS_MOST;
	state->level[state->levels].priority = priority;
	return state->levels++;
}

/* How far this demand may use requests in the kept set. */
static uint64_t lent_to(const struct state *state, const struct sl_deadlock_party *party,
	const struct sl_deadlock_demand *demand)
{
	uint32_t gpu = demand->gpu;
	uint64_t bytes = state->scene->lend_bytes[gpu];

	if (SL_MUTANT(DEADLOCK_HELD_LENT, demand->held, false))
		return 0;
	if (!party->claim->stands)
		return bytes;
	for (uint32_t i = 0; i < state->levels; i++) {
		if (state->level[i].priority > party->claim->priority)
			bytes += state->level[i].unclaimed_bytes[gpu];
	}
	return bytes;
}

static uint32_t reach(const struct sl_deadlock_party *party)
{
	return party->holding->touched | party->holding->account->gpu_mask |
	       party->holding->account->touched;
}

/* Puts the party into the kept set, or takes it out. */
static void move(struct state *state, struct sl_deadlock_party *party, bool in)
{
	struct sl_deadlock_claim *claim = party->claim;

	sl_each_gpu (gpu, reach(party)) {
		state->claimed_bytes[gpu] -= claimed_by(party, gpu);
		add_unclaimed(state, party, gpu, false);
	}
	claim->parties += in ? 1 : -1;
	sl_each_gpu (gpu, reach(party)) {
		uint64_t bytes = sl_ledger_live(&party->holding->cell[gpu]);

		claim->kept_bytes[gpu] += in ? bytes : -bytes;
		state->kept_bytes[gpu] += in ? bytes : -bytes;
		state->claimed_bytes[gpu] += claimed_by(party, gpu);
		add_unclaimed(state, party, gpu, true);
	}
	party->stuck = in;
}

/* Whether the demand could be granted if only the kept set were in its way. */
static bool demand_fits(const struct state *state, const struct sl_deadlock_party *party,
	const struct sl_deadlock_demand *demand)
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
	return own + demand->bytes + others <= shareable + lent_to(state, party, demand);
}

static bool party_fits(const struct state *state, const struct sl_deadlock_party *party)
{
	uint32_t waits_on = 0, fits_on = 0;

	sl_list_foreach (link, &party->demands) {
		const struct sl_deadlock_demand *demand =
			SL_LIST_ENTRY(link, struct sl_deadlock_demand, of_client);

		waits_on |= 1u << demand->gpu;
		if (demand_fits(state, party, demand))
			fits_on |= 1u << demand->gpu;
	}
	return SL_MUTANT(DEADLOCK_ANY_GPU, fits_on == waits_on, fits_on != 0);
}

static void begin(struct state *state, const struct sl_deadlock_scene *scene,
	const struct sl_deadlock_party *owner)
{
	memset(state, 0, sizeof(*state));
	state->scene = scene;
	each_party (party, scene) {
		party->helps = party->stuck = false;
		*party->claim = (struct sl_deadlock_claim){.of = party->claim->of,
			.priority = party->claim->priority,
			.stands = party->claim->stands,
			.level = find_level(state, party->claim->priority)};
	}
	each_party (party, scene) {
		if ((SL_MUTANT(DEADLOCK_ACTIVE_WAITS, party->waits, true) &&
			    !party->gives) ||
			party == owner)
			move(state, party, true);
	}
}

static bool holds_something(const struct sl_deadlock_party *party)
{
	sl_each_gpu (gpu, party->holding->touched) {
		if (sl_ledger_live(&party->holding->cell[gpu]))
			return true;
	}
	return false;
}

/* If this party gave what it holds, could another hopeless client continue? */
static bool frees_another(struct state *state, struct sl_deadlock_party *party)
{
	bool does = false;

	move(state, party, false);
	each_party (other, state->scene) {
		if (other->stuck && party_fits(state, other)) {
			does = true;
			break;
		}
	}
	move(state, party, true);
	return does;
}

/* The burst demands of hopeless clients to consider. */
struct search {
	uint64_t before; /* younger ones were considered */
	bool blocked;    /* only demands that do not fit */
	bool holding;    /* only of clients that hold memory */
};

static bool is_in(const struct state *state, const struct sl_deadlock_party *party,
	const struct sl_deadlock_demand *demand, const struct search *search)
{
	if (SL_MUTANT(VICTIM_ENTITLED, demand->entitled, false) ||
		demand->sequence >= search->before)
		return false;
	return !search->blocked || !demand_fits(state, party, demand);
}

/* The youngest of them, and its party; NULL: none. */
static struct sl_deadlock_demand *youngest(const struct state *state,
	const struct search *search, struct sl_deadlock_party **owner)
{
	struct sl_deadlock_demand *found = NULL;

	each_party (party, state->scene) {
		if (!party->stuck || (search->holding && !holds_something(party)))
			continue;
		sl_list_foreach (at, &party->demands) {
			struct sl_deadlock_demand *d =
				SL_LIST_ENTRY(at, struct sl_deadlock_demand, of_client);

			if (!is_in(state, party, d, search) ||
				(found &&
					SL_MUTANT(VICTIM_OLDEST,
						d->sequence<found->sequence, d->sequence>
							found->sequence)))
				continue;
			found = d;
			*owner = party;
		}
	}
	return found;
}

/* Chooses the youngest demand whose client holds something and would help another client by giving
 * way; if there is none, the youngest. */
static struct sl_deadlock_demand *choose_victim(struct state *state, bool blocked)
{
	struct search search = {
		.before = UINT64_MAX, .blocked = blocked, .holding = true};
	struct sl_deadlock_party *owner = NULL;
	struct sl_deadlock_demand *demand;

	for (uint32_t i = 0; i < TRIES_MOST; i++) {
		demand = youngest(state, &search, &owner);
		if (!demand)
			break;
		if (SL_MUTANT(VICTIM_IN_VAIN, frees_another(state, owner), true))
			return demand;
		search.before = demand->sequence;
	}
	search.before = UINT64_MAX;
	search.holding = false;
	return youngest(state, &search, &owner);
}

struct sl_deadlock_plan sl_deadlock_find(const struct sl_deadlock_scene *scene)
{
	struct sl_deadlock_plan plan = {0};
	struct state state;
	bool again = true;

	begin(&state, scene, NULL);
	/* Ends: each round but the last takes a party out of the kept set. */
	while (again) {
		again = false;
		plan.hopeless = 0;
		each_party (party, scene) {
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
	/* If all demands that do not fit are entitled, one that would fit gives way. */
	if (plan.hopeless)
		plan.victim = choose_victim(&state, true);
	if (plan.hopeless && !plan.victim)
		plan.victim = choose_victim(&state, false);
	return plan;
}

void sl_deadlock_helpers(const struct sl_deadlock_scene *scene,
	const struct sl_deadlock_demand *head, const struct sl_deadlock_party *owner)
{
	struct state state;
	bool again = true;

	begin(&state, scene, owner);
	/* Ends: each round but the last takes a party out of the kept set. */
	while (again && !demand_fits(&state, owner, head)) {
		again = false;
		each_party (party, scene) {
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
