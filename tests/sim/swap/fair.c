/*
 * fair - do shares of time follow the weights, and what do turns cost?
 *
 * Judged where nothing else is going on: workloads of one process each on one GPU. All of them
 * always compute, and no two fit together. The share of a process is then the time during which its
 * gate is open.
 */
#include <inttypes.h>

#include "world.h"

#define ROUNDS_LEAST 6 /* fewer turns than that say nothing */

static bool is_full(const struct swap_world *w, const struct swap_client *c)
{
	return c->resident[0] + c->evicted[0] >= w->workload[c->workload].size;
}

void swap_fair_look(struct swap_world *w)
{
	uint32_t full = 0;

	/* Where a client is moved only after others have waited, shares are different. */
	if (w->mood != SWAP_TURNS || w->judged_from || w->drains || w->scripted ||
		w->rules.waits_first)
		return;
	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		if (!w->client[i].used)
			continue;
		if (!is_full(w, &w->client[i]))
			return;
		full++;
	}
	if (full < 2)
		return;
	w->judged_from = w->now;
	w->copied_ns = 0;
	for (uint32_t i = 0; i < SWAP_CLIENTS; i++)
		w->client[i].open_then = swap_open(w, &w->client[i]);
}

struct fair { /* of all that take turns */
	double weights, opened, largest, least, unit, longest_ms, shareable, turn_max;
	uint32_t count;
};

static double weight_of(const struct swap_world *w, const struct swap_client *c)
{
	double shareable = (double)(w->capacity[0] - w->capacity[0] / 16);
	double request = (double)w->workload[c->workload].request;

	return request > shareable / 20 ? request : shareable / 20;
}

/* Ten times what moving it costs, at least 200 ms, at most turn_max; in ns. */
static double least_turn(const struct swap_world *w, const struct swap_client *c,
	double turn_max, double *ten_costs)
{
	double bytes = (double)w->workload[c->workload].size;
	double cost = bytes / (double)w->link_out[0] + bytes / (double)w->link_in[0];

	*ten_costs = 10e9 * cost;
	return *ten_costs < 2e8 ? 2e8 : *ten_costs > turn_max ? turn_max : *ten_costs;
}

static struct fair sum_up(const struct swap_world *w, bool *long_enough)
{
	struct fair f = {.turn_max = (double)w->rules.turn_max};

	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		const struct swap_client *c = &w->client[i];
		double ten_costs, turn;

		if (!c->used)
			continue;
		turn = least_turn(w, c, f.turn_max, &ten_costs);
		*long_enough &= ten_costs <= f.turn_max;
		f.count++;
		f.weights += weight_of(w, c);
		f.opened += (double)(swap_open(w, c) - c->open_then);
		if (weight_of(w, c) > f.largest)
			f.largest = weight_of(w, c);
		if (!f.least || weight_of(w, c) < f.least)
			f.least = weight_of(w, c);
		if (turn / weight_of(w, c) > f.unit)
			f.unit = turn / weight_of(w, c);
	}
	return f;
}

/* The turn of the largest weight is turn_max at most, and the others keep their ratio to it. */
static struct fair cut(struct fair f, bool *long_enough)
{
	if (f.unit * f.largest > f.turn_max) {
		f.unit = f.turn_max / f.largest;
		*long_enough = false;
	}
	return f;
}

void swap_fair_judge(struct swap_world *w)
{
	bool long_enough = true;
	struct fair f = cut(sum_up(w, &long_enough), &long_enough);
	double span = (double)(w->now - w->judged_from);

	/* Rounds of turns: moving between them is no part of any turn, and may take as long. */
	if (!w->judged_from || f.count < 2 ||
		f.opened < ROUNDS_LEAST * f.unit * f.weights)
		return;
	w->stats.turns++;
	if (long_enough && (double)w->copied_ns > 0.1 * span)
		swap_fail(w, "COST: %.1f %% of the time went into copying",
			100 * (double)w->copied_ns / span);
	/* Turns are not cut below the least one: then shares do not follow the weights. */
	if (f.unit * f.least < 2e8)
		return;
	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		const struct swap_client *c = &w->client[i];
		double part = (double)(swap_open(w, c) - c->open_then) / f.opened;
		double due = weight_of(w, c) / f.weights;

		/* One turn more or less at either end, and what drains take. */
		if (c->used && (part < 0.75 * due || part > 1.25 * due + 0.05))
			swap_fail(w,
				"SHARE: client %" PRIu64
				" had %.1f %% of the time, %.1f %% are due",
				c->id, 100 * part, 100 * due);
	}
}
