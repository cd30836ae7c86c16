/*
 * generate - a sequence from a seed
 *
 * The generator keeps a simple model of what every lane holds. The model is mostly right, so most
 * steps find what they name. Where it is wrong, because an allocation was refused, the step does
 * nothing or provokes an error.
 */
#include "storm.h"

#include "prog.h"

#include <stdlib.h>
#include <string.h>

struct model {
	bool live[STORM_KINDS][64];
	unsigned capture; /* stream that captures, as far as we know; 0: none */
	unsigned left;    /* steps until a linked worker hands on */
};

struct maker {
	uint64_t random;
	struct model (*model)[STORM_LANES_MAX];
	bool place[STORM_PLACE_SLOTS]; /* shared by the linked */
	unsigned weight;
};

static uint32_t number(struct maker *m)
{
	return (uint32_t)(prog_random(&m->random) >> 16);
}

static unsigned below(struct maker *m, unsigned n)
{
	return number(m) % n;
}

/* Bytes: many small ones, some that fill slabs, few that take chunks of their own. */
static uint32_t bytes(struct maker *m)
{
	unsigned kind = below(m, 1000);

	if (kind < 550)
		return 1 + below(m, 4096);
	if (kind < 850)
		return 1 + below(m, 64 << 10);
	if (kind < 985)
		return 1 + below(m, 1 << 20);
	if (kind < 999)
		return 1 + below(m, 6 << 20);
	return (32u << 20) + below(m, 8 << 20);
}

static bool *table(struct maker *m, struct model *l, enum storm_kind kind)
{
	return kind == STORM_PLACE ? m->place : l->live[kind];
}

/* A slot that is free or taken, as wanted; a few in a hundred are any slot. -1: none is. */
static int slot(struct maker *m, struct model *l, const struct storm_arg *arg)
{
	unsigned slots = storm_kind_slots[arg->kind], from = below(m, slots);
	const bool *live = table(m, l, arg->kind);

	if (below(m, 64) == 0)
		return (int)from;
	for (unsigned i = 0; i < slots; i++) {
		unsigned at = (from + i) % slots;

		/* The legacy stream and the default pool are taken in any case. */
		bool taken = live[at] || (arg->kind == STORM_STREAM && at < 2) ||
			     (arg->kind == STORM_POOL && at == 0);

		if (taken != arg->is_new)
			return (int)at;
	}
	return -1;
}

static bool fits(const struct model *l, enum storm_shape shape, unsigned op)
{
	unsigned flags = storm_op_rows[op].flags;

	if (flags & STORM_SOLO && shape != STORM_SHAPE_SOLO)
		return false;
	if (flags & STORM_LINKED && shape != STORM_SHAPE_LINKED)
		return false;
	if (l->capture && flags & (STORM_OPENS | STORM_UNCAPTURED))
		return false;
	return true;
}

static unsigned pick(struct maker *m, const struct model *l, enum storm_shape shape)
{
	for (;;) {
		unsigned at = below(m, m->weight), op = 0;

		while (at >= storm_op_rows[op].weight)
			at -= storm_op_rows[op++].weight;
		if (!fits(l, shape, op))
			continue;
		if (l->capture &&
			!(storm_op_rows[op].flags & (STORM_CAPTURE | STORM_ENDS)) &&
			below(m, 4))
			continue; /* most of a capture is what can be captured */
		return op;
	}
}

static bool fill(struct maker *m, struct model *l, struct storm_step *s)
{
	const struct storm_op_row *row = &storm_op_rows[s->op];

	for (unsigned i = 0; i < row->args; i++) {
		const struct storm_arg *arg = &row->arg[i];
		int at;

		if (arg->what == '%') {
			s->arg[i] = bytes(m);
		} else if (arg->what == '#') {
			s->arg[i] = number(m);
		} else {
			at = slot(m, l, arg);
			if (at < 0)
				return false;
			s->arg[i] = (uint32_t)at;
			if (arg->kind == STORM_STREAM && l->capture && below(m, 8))
				s->arg[i] = l->capture;
		}
	}
	return true;
}

static void learn(struct maker *m, struct model *l, const struct storm_step *s)
{
	const struct storm_op_row *row = &storm_op_rows[s->op];

	for (unsigned i = 0; i < row->args; i++) {
		const struct storm_arg *arg = &row->arg[i];

		if (arg->what == 's' && (arg->is_new || arg->dies))
			table(m, l, arg->kind)[s->arg[i]] = arg->is_new;
	}
	if (row->flags & STORM_OPENS && s->arg[0] > 0)
		l->capture = s->arg[0];
	if (row->flags & STORM_ENDS && s->arg[0] == l->capture)
		l->capture = 0;
	if (s->op == STORM_OP_tidy)
		memset(l->live[STORM_BUFFER], 0, sizeof(l->live[0]));
}

/* In every fourth sequence one process breaks its context near the end, and goes on. */
static void maybe_break(struct storm_sequence *q, uint64_t seed, size_t steps)
{
	struct storm_step s = {
		.id = (uint32_t)q->count, .op = STORM_OP_break_context, .worker = 1};

	if (seed % 4 == 3 && q->count == steps - steps / 10)
		storm_add(q, &s);
}

static void one(struct maker *m, struct storm_sequence *q, struct model *l,
	unsigned worker, unsigned lane)
{
	struct storm_step s = {.id = (uint32_t)q->count,
		.worker = (uint8_t)worker,
		.lane = (uint8_t)lane};

	do
		s.op = (uint16_t)pick(m, l, q->worker[worker].shape);
	while (!fill(m, l, &s));
	s.dice = number(m);
	learn(m, l, &s);
	storm_add(q, &s);
}

static void shape(struct storm_sequence *q, struct maker *m)
{
	static const struct storm_worker workers[] = {{STORM_SHAPE_SOLO, 1},
		{STORM_SHAPE_SOLO, 1}, {STORM_SHAPE_CREW, 3}, {STORM_SHAPE_LINKED, 1},
		{STORM_SHAPE_LINKED, 1}};

	q->workers = sizeof(workers) / sizeof(workers[0]);
	memcpy(q->worker, workers, sizeof(workers));
}

void storm_generate(struct storm_sequence *q, uint64_t seed, size_t steps)
{
	struct maker m = {.random = seed * 2 + 1,
		.model = calloc(STORM_WORKERS_MAX, sizeof(*m.model))};
	unsigned turn = 3, left = 0;

	if (!m.model)
		exit(2);
	memset(q, 0, sizeof(*q));
	for (unsigned i = 0; i < STORM_OPS; i++)
		m.weight += storm_op_rows[i].weight;
	shape(q, &m);
	while (q->count < steps) {
		unsigned worker = below(&m, q->workers), lane;

		if (q->worker[worker].shape == STORM_SHAPE_LINKED) {
			/* Some steps on end, so that a turn is worth its switch. */
			if (!left--) {
				turn = 3 + below(&m, q->workers - 3);
				left = below(&m, 12);
			}
			worker = turn;
		}
		lane = below(&m, q->worker[worker].lanes);
		maybe_break(q, seed, steps);
		one(&m, q, &m.model[worker][lane], worker, lane);
	}
	for (unsigned w = 0; w < q->workers; w++)
		for (unsigned lane = 0; lane < q->worker[w].lanes; lane++) {
			struct storm_step s = {.id = (uint32_t)q->count,
				.op = STORM_OP_tidy,
				.worker = (uint8_t)w,
				.lane = (uint8_t)lane};

			storm_add(q, &s);
		}
	free(m.model);
	storm_number(q);
}
