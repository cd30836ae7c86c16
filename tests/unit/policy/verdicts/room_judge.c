/*
 * room_judge - see the header
 *
 * Positions are small numbers packed into one; each is looked at once per play, since what can
 * follow does not depend on how it was reached.
 */
#include "room_judge.h"

#include <assert.h>
#include <string.h>

struct position {
	uint8_t there[ROOM_CLIENTS][ROOM_GPUS], out[ROOM_CLIENTS][ROOM_GPUS];
	bool granted[ROOM_CLIENTS], returned[ROOM_CLIENTS];
};

#define SEEN_BITS 14
#define SEEN      (1u << SEEN_BITS)

static uint64_t seen[SEEN]; /* number of the play << 32, packed position */
static uint64_t plays, positions;
static uint32_t positions_now;

static uint64_t pack(const struct position *at)
{
	uint64_t key = plays << 32;

	for (uint32_t c = 0; c < ROOM_CLIENTS; c++) {
		for (uint32_t g = 0; g < ROOM_GPUS; g++)
			key |= (uint64_t)at->there[c][g] << 3 * (ROOM_GPUS * c + g);
		key |= (uint64_t)at->granted[c] << (20 + c);
		key |= (uint64_t)at->returned[c] << (24 + c);
	}
	return key;
}

static bool is_new(const struct position *at)
{
	uint64_t key = pack(at);
	uint32_t place = (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> (64 - SEEN_BITS));

	for (; seen[place] >> 32 == plays; place = (place + 1) % SEEN) {
		if (seen[place] == key)
			return false;
	}
	seen[place] = key;
	positions++;
	positions_now++;
	assert(positions_now < SEEN / 2);
	return true;
}

static int most(int a, int b)
{
	return a > b ? a : b;
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

static int beyond(int units, int bound)
{
	return most(units - bound, 0);
}

/* Evicted units for which memory is kept on the GPU. */
static int coming(
	const struct room_world *world, const struct position *at, uint32_t c, uint32_t g)
{
	bool comes = world->client[c].mode == ROOM_RETURNS && !at->returned[c];

	return comes ? at->out[c][g] : 0;
}

static int here(
	const struct room_world *world, const struct position *at, uint32_t w, uint32_t g)
{
	int units = 0;

	for (uint32_t c = 0; c < world->clients; c++) {
		if (world->client[c].workload == w)
			units += at->there[c][g] + coming(world, at, c, g);
	}
	return units;
}

static int occupied(const struct room_world *world, const struct position *at, uint32_t g)
{
	int units = 0;

	for (uint32_t w = 0; w < world->workloads; w++)
		units += here(world, at, w, g);
	return units;
}

/* What stands on requests that are not claimed. */
static int overlap(const struct room_world *world, const struct position *at, uint32_t g)
{
	int units = occupied(world, at, g);

	for (uint32_t w = 0; w < world->workloads; w++)
		units += beyond((int)world->request[w], here(world, at, w, g));
	return beyond(units, ROOM_SHAREABLE);
}

/* How much of its part of the pool the workload may still use. settled: counted once units with
 * kept room are back. */
static int part_left(const struct room_world *world, const struct position *at,
	uint32_t w, bool settled)
{
	int units = (int)world->part[w];

	if (!units)
		return 99;
	for (uint32_t c = 0; c < world->clients; c++) {
		for (uint32_t g = 0; g < world->gpus; g++) {
			int back = settled ? coming(world, at, c, g) : 0;

			if (world->client[c].workload == w)
				units -= at->out[c][g] - back;
		}
	}
	return most(units, 0);
}

/* Resident units of a client that can never leave. */
static int unmovable(
	const struct room_world *world, const struct position *at, uint32_t c, uint32_t g)
{
	const struct room_client *client = &world->client[c];

	if (client->mode == ROOM_STAYS)
		return at->there[c][g];
	return at->granted[c] && client->asks_stays && client->asks_gpu == g
		       ? (int)client->asks
		       : 0;
}

static int fixed(
	const struct room_world *world, const struct position *at, uint32_t w, uint32_t g)
{
	int units = 0;

	for (uint32_t c = 0; c < world->clients; c++) {
		if (world->client[c].workload == w)
			units += unmovable(world, at, c, g);
	}
	return units;
}

/* Of a workload, what could leave for the requests of others. */
static int gives(
	const struct room_world *world, const struct position *at, uint32_t w, uint32_t g)
{
	return beyond(here(world, at, w, g),
		most((int)world->request[w], fixed(world, at, w, g)));
}

/* By how much I1 is broken. */
static int promised(const struct room_world *world, const struct position *at, uint32_t g)
{
	int units = 0;

	for (uint32_t w = 0; w < world->workloads; w++)
		units += most((int)world->request[w], fixed(world, at, w, g));
	return beyond(units, ROOM_SHAREABLE);
}

/* If all requests were claimed now, what the parts of workloads would keep from one set of GPUs. */
static int owed(const struct room_world *world, const struct position *at, uint32_t set)
{
	int units = 0;

	for (uint32_t g = 0; g < world->gpus; g++)
		units += set >> g & 1 ? overlap(world, at, g) : 0;
	for (uint32_t w = 0; w < world->workloads; w++) {
		int has = 0;

		for (uint32_t g = 0; g < world->gpus; g++)
			has += set >> g & 1 ? gives(world, at, w, g) : 0;
		units -= least(has, part_left(world, at, w, true));
	}
	return units;
}

static int host(const struct room_world *world, const struct position *at, uint32_t g)
{
	int units = 0;

	for (uint32_t c = 0; c < world->clients; c++)
		units += at->out[c][g];
	return units;
}

/* What one client would have to bring back if it had left, given what is on the host now. */
static int brings_back(
	const struct room_play *play, const struct position *at, uint32_t c)
{
	const struct room_client *client = &play->world->client[c];
	int units = 0;

	for (uint32_t g = 0; g < play->world->gpus; g++) {
		int has = at->out[c][g];

		has += client->mode == ROOM_STAYS ? 0 : at->there[c][g];
		if (play->demand[c] && client->asks_gpu == g &&
			(client->mode == ROOM_STAYS || !at->granted[c]))
			has += (int)client->asks;
		units += least(has, host(play->world, at, g));
	}
	return units;
}

static void measure(struct room_play *play, const struct position *at, int out_first)
{
	const struct room_world *world = play->world;
	int out = 0, back = 0, lent = 0, broken = 0;

	for (uint32_t g = 0; g < world->gpus; g++) {
		out += host(world, at, g);
		lent += overlap(world, at, g);
		play->overlap[g] = most(play->overlap[g], overlap(world, at, g));
		broken += promised(world, at, g);
		for (uint32_t c = 0; c < world->clients; c++)
			back += coming(world, at, c, g);
	}
	play->held = most(play->held, out);
	play->lent = most(play->lent, out - back + lent);
	play->moved = most(play->moved, out - out_first);
	play->fixed = most(play->fixed, broken);
	for (uint32_t c = 0; c < world->clients; c++)
		play->back = most(play->back, out - back + brings_back(play, at, c));
	for (uint32_t set = 1; set < 1u << world->gpus; set++)
		play->owed = most(play->owed, owed(world, at, set));
}

static bool is_whole(
	const struct room_world *world, const struct position *at, uint32_t c)
{
	for (uint32_t g = 0; g < world->gpus; g++) {
		if (at->out[c][g])
			return false;
	}
	return true;
}

/* What seats will still add to a workload. */
static int pending(
	const struct room_play *play, const struct position *at, uint32_t w, uint32_t g)
{
	int units = 0;

	for (uint32_t c = 0; c < play->world->clients; c++) {
		const struct room_client *client = &play->world->client[c];

		if (client->workload != w)
			continue;
		if (play->body[c])
			units += at->out[c][g] - coming(play->world, at, c, g);
		if (client->asks_gpu == g && play->demand[c] && !at->granted[c])
			units += (int)client->asks;
	}
	return units;
}

/* Unclaimed requests of others, if the demand is granted beside them. Those with a seat may claim
 * theirs themselves. */
static int unclaimed(const struct room_play *play, const struct position *at, uint32_t c,
	bool seats_claim)
{
	const struct room_world *world = play->world;
	uint32_t g = world->client[c].asks_gpu;
	int units = 0;

	for (uint32_t w = 0; w < world->workloads && play->beside_requests[c]; w++) {
		int has = here(world, at, w, g);

		has += seats_claim ? pending(play, at, w, g) : 0;
		if (w != world->client[c].workload)
			units += beyond((int)world->request[w], has);
	}
	return units;
}

/* Units that must leave before the seats have all they lack. */
static int lack(const struct room_play *play, const struct position *at, uint32_t g)
{
	int units = occupied(play->world, at, g), kept = 0;

	for (uint32_t w = 0; w < play->world->workloads; w++)
		units += pending(play, at, w, g);
	for (uint32_t c = 0; c < play->world->clients; c++) {
		if (play->demand[c] && !at->granted[c] &&
			play->world->client[c].asks_gpu == g)
			kept = most(kept, unclaimed(play, at, c, true));
	}
	return beyond(units + kept, ROOM_SHAREABLE);
}

static void go_on(struct room_play *play, const struct position *at, int out_first);

static void leave(struct room_play *play, const struct position *at, uint32_t c,
	uint32_t g, int out_first)
{
	const struct room_client *client = &play->world->client[c];
	struct position next = *at;

	if (play->body[c] || client->mode != ROOM_MOVES || !at->there[c][g] ||
		!lack(play, at, g) ||
		!part_left(play->world, at, client->workload, false))
		return;
	next.there[c][g]--;
	next.out[c][g]++;
	go_on(play, &next, out_first);
}

static void come(struct room_play *play, const struct position *at, uint32_t c,
	uint32_t g, int out_first)
{
	struct position next = *at;

	if (!play->body[c] || !at->out[c][g] || coming(play->world, at, c, g) ||
		occupied(play->world, at, g) >= ROOM_SHAREABLE)
		return;
	next.out[c][g]--;
	next.there[c][g]++;
	go_on(play, &next, out_first);
}

static void finish_restore(
	struct room_play *play, const struct position *at, uint32_t c, int out_first)
{
	struct position next = *at;

	if (play->world->client[c].mode != ROOM_RETURNS || at->returned[c])
		return;
	for (uint32_t g = 0; g < play->world->gpus; g++) {
		next.there[c][g] = (uint8_t)(at->there[c][g] + at->out[c][g]);
		next.out[c][g] = 0;
	}
	next.returned[c] = true;
	go_on(play, &next, out_first);
}

static void grant(
	struct room_play *play, const struct position *at, uint32_t c, int out_first)
{
	const struct room_client *client = &play->world->client[c];
	uint32_t g = client->asks_gpu;
	struct position next = *at;

	if (!play->demand[c] || at->granted[c] || !is_whole(play->world, at, c) ||
		occupied(play->world, at, g) + (int)client->asks +
				unclaimed(play, at, c, false) >
			ROOM_SHAREABLE)
		return;
	next.granted[c] = true;
	next.there[c][g] = (uint8_t)(at->there[c][g] + client->asks);
	go_on(play, &next, out_first);
}

/* Looks at a position, and at every one that an answer makes of it. */
static void go_on(struct room_play *play, const struct position *at, int out_first)
{
	bool lacks = false;

	if (!is_new(at))
		return;
	measure(play, at, out_first);
	for (uint32_t g = 0; g < play->world->gpus; g++)
		lacks |= lack(play, at, g) > 0;
	play->stuck &= lacks;
	for (uint32_t c = 0; c < play->world->clients; c++) {
		for (uint32_t g = 0; g < play->world->gpus; g++) {
			leave(play, at, c, g, out_first);
			come(play, at, c, g, out_first);
		}
		finish_restore(play, at, c, out_first);
		grant(play, at, c, out_first);
	}
}

void room_judge(struct room_play *play)
{
	const struct room_world *world = play->world;
	struct position at = {0};
	int out = 0;

	play->held = play->lent = play->back = 0;
	memset(play->overlap, 0, sizeof(play->overlap));
	play->moved = play->owed = play->fixed = 0;
	play->stuck = true;
	for (uint32_t c = 0; c < world->clients; c++) {
		const struct room_client *client = &world->client[c];
		bool leaves = client->mode == ROOM_LEAVES;

		for (uint32_t g = 0; g < world->gpus; g++) {
			uint32_t told = leaves ? client->there[g] : 0;

			at.there[c][g] = (uint8_t)(client->there[g] - told);
			at.out[c][g] = (uint8_t)(client->out[g] + told);
			out += at.out[c][g];
		}
	}
	plays++;
	positions_now = 0;
	go_on(play, &at, out);
}

uint64_t room_judge_positions(void)
{
	return positions;
}

uint32_t room_use(const struct room_world *world, uint32_t workload, uint32_t gpu)
{
	uint32_t units = 0;

	for (uint32_t c = 0; c < world->clients; c++) {
		const struct room_client *client = &world->client[c];

		if (client->workload == workload)
			units += client->there[gpu] + client->out[gpu];
	}
	return units;
}

static bool is_on(const struct room_world *world, uint32_t w, uint32_t g)
{
	bool asks = false;

	for (uint32_t c = 0; c < world->clients; c++) {
		const struct room_client *client = &world->client[c];

		asks |= client->workload == w && client->asks && client->asks_gpu == g;
	}
	return asks || room_use(world, w, g);
}

bool room_parts_span(const struct room_world *world)
{
	bool spans = false;

	for (uint32_t w = 0; w < world->workloads && world->gpus > 1; w++)
		spans |= world->part[w] && is_on(world, w, 0) && is_on(world, w, 1);
	return spans;
}
