/*
 * key - which states are merged
 *
 * The machine's own state has many fields with pointers, ids, stamps and caches. A canonical form
 * of it would be a second list of these fields for each machine. So a state is what is visible from
 * outside: the clients (bytes, demands, orders, threads), and what the machine answers (node.h).
 * That is the order of its queues, which clients wait and since when, residency, the rest of each
 * turn, longest waits, reasons with their numbers, idleness, and the next wake-up. Times are
 * relative to now; ids are replaced by positions in the world.
 *
 * This is unsound: two states may look alike and differ in a hidden fact, such as a back-off. Then
 * only the first of them is continued. `--merge close` looks deeper: the machine must also take the
 * same actions at the same times in the closing run.
 *
 * Symmetry: equal GPUs, and clients of equal workloads, may be exchanged. The key is the least over
 * all such exchanges. Because the machine breaks ties by ids, some histories are missed;
 * `--no-symmetry` explores them, too.
 */
#include "world.h"

#include <string.h>

/* Ages beyond that are all the same. */
#define AGE_MOST   (64 * SL_S)
#define SWAPS_MOST 12
#define WORDS_MOST 400

struct order { /* the place that each client, workload and GPU takes */
	uint8_t client[EXPLORE_CLIENTS], workload[EXPLORE_WORKLOADS], gpu[EXPLORE_GPUS];
};

static struct order orders[SWAPS_MOST];
static uint32_t orders_count;

/* --- symmetry --- */

static uint32_t map_mask(uint32_t mask, const uint8_t *gpu)
{
	return (mask & 1) << gpu[0] | (mask >> 1 & 1) << gpu[1];
}

static bool is_alike(
	const struct explore_world *w, const struct order *o, uint32_t client)
{
	const struct explore_workload *a = &w->workload[w->of[client]];
	const struct explore_workload *b = &w->workload[w->of[o->client[client]]];

	return a->request == b->request && a->limit == b->limit &&
	       a->priority == b->priority && a->flags == b->flags &&
	       a->idle_grace == b->idle_grace && a->late == b->late &&
	       w->context[client] == w->context[o->client[client]] &&
	       map_mask(a->gpu_mask, o->gpu) == b->gpu_mask;
}

/* Clients of one workload go to one workload. */
static bool is_symmetry(const struct explore_world *w, struct order *o)
{
	bool is_set[EXPLORE_WORKLOADS] = {0};

	for (uint32_t i = 0; i < w->clients; i++) {
		uint32_t from = w->of[i], to = w->of[o->client[i]];

		if (!is_alike(w, o, i) || (is_set[from] && o->workload[from] != to))
			return false;
		o->workload[from] = (uint8_t)to;
		is_set[from] = true;
	}
	for (uint32_t i = 0; i < w->clients; i++) {
		for (uint32_t n = 0; n < w->clients; n++) {
			if (w->of[i] != w->of[n] &&
				o->workload[w->of[i]] == o->workload[w->of[n]])
				return false;
		}
	}
	return true;
}

void explore_key_begin(const struct explore_world *w, bool symmetry)
{
	static const uint8_t clients[6][EXPLORE_CLIENTS] = {
		{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	orders_count = 0;
	for (uint32_t n = 0; n < SWAPS_MOST; n++) {
		struct order o = {.gpu = {n >= 6, n < 6}};
		bool fits = w->gpus > 1 || n < 6;

		memcpy(o.client, clients[n % 6], sizeof(o.client));
		for (uint32_t i = 0; i < w->workloads; i++)
			o.workload[i] = (uint8_t)i;
		for (uint32_t i = 0; i < EXPLORE_CLIENTS; i++)
			fits &= o.client[i] < w->clients || i >= w->clients;
		if (fits && (symmetry || n == 0) && is_symmetry(w, &o))
			orders[orders_count++] = o;
	}
}

/* --- what can be seen --- */

/* One number after the other, per client, workload and GPU, for each order to be read again. */
struct seen {
	uint64_t client[EXPLORE_CLIENTS][40], gpu_part[EXPLORE_CLIENTS][EXPLORE_GPUS];
	uint64_t workload[EXPLORE_WORKLOADS][24];
	struct sl_node_because why[24];
	uint32_t whys;
	uint64_t rest[8];
};

static uint64_t age(const struct explore *x, sl_ns since)
{
	return sl_min_u64(AGE_MOST, x->s.now - sl_min_u64(since, x->s.now));
}

/* How many others came before it. */
static uint64_t rank(const struct explore *x, uint32_t client, bool asks)
{
	const struct explore_client *c = &x->s.client[client];
	uint64_t place = asks ? c->asked_place : c->wants_place, before = 0;

	for (uint32_t i = 0; i < x->world->clients; i++) {
		const struct explore_client *o = &x->s.client[i];

		if (asks ? o->ask_units && o->asked_place < place
			 : o->told && o->wants_place < place)
			before++;
	}
	return before;
}

static void see_client(const struct explore *x, struct seen *s, uint32_t i)
{
	const struct explore_client *c = &x->s.client[i];
	struct sl_node_client_view v = sl_node_client(x->node, explore_client_id(i));
	uint64_t *to = s->client[i];
	uint32_t n = 0;

	to[n++] = (uint64_t)c->alive | (uint64_t)c->expected << 1 |
		  (uint64_t)c->granted << 2 | (uint64_t)c->ask_held << 3 |
		  (uint64_t)c->stands << 4 | (uint64_t)c->told << 5 |
		  (uint64_t)c->busy << 6 | (uint64_t)c->aborted << 7 |
		  (uint64_t)c->ends << 8 | (uint64_t)v.waits << 9 |
		  (uint64_t)v.proven << 10 | (uint64_t)v.untakeable << 11 |
		  (uint64_t)v.stopping << 12 | (uint64_t)v.wants << 13 |
		  (uint64_t)(v.order != 0) << 14 | (uint64_t)c->unborn << 15;
	to[n++] = (uint64_t)c->ask_units | (uint64_t)c->probe << 8 |
		  (uint64_t)c->order << 16 | (uint64_t)c->order_units << 24 |
		  (uint64_t)c->moved << 32 | (uint64_t)c->tell_units << 40;
	to[n++] = c->alive ? age(x, c->since) : 0;
	to[n++] = c->ask_units ? age(x, c->asked_at) : 0;
	to[n++] = c->ask_units ? rank(x, i, true) : 0;
	to[n++] = c->told ? age(x, c->wants_at) : 0;
	to[n++] = c->told ? rank(x, i, false) : 0;
	to[n++] = sl_min_u64(v.idle, AGE_MOST);
	to[n++] = v.busy;
	to[n++] = (uint64_t)c->context | (uint64_t)c->paid << 8 | (uint64_t)c->away << 16;
	for (uint32_t gpu = 0; gpu < x->world->gpus; gpu++)
		s->gpu_part[i][gpu] =
			(uint64_t)c->resident[gpu] | (uint64_t)c->evicted[gpu] << 8 |
			(uint64_t)c->held[gpu] << 16 | (uint64_t)c->dying[gpu] << 24 |
			(uint64_t)(c->ask_units && c->ask_gpu == gpu) << 32 |
			(uint64_t)(c->order && c->order_gpu == gpu) << 33 |
			(uint64_t)(x->s.bound[x->world->of[i]] >> gpu & 1) << 34 |
			(uint64_t)(c->context_gpu == gpu) << 35;
}

static void see_because(void *context, const struct sl_node_because *because)
{
	struct seen *s = context;

	if (s->whys < SL_ARRAY_LEN(s->why))
		s->why[s->whys++] = *because;
}

static void see_workload(const struct explore *x, struct seen *s, uint32_t i)
{
	uint64_t id = explore_workload_id(i), *to = s->workload[i];
	struct sl_node_workload_view v = sl_node_workload(x->node, id);
	uint32_t n = 0;

	to[n++] = (uint64_t)x->s.parked[i] | (uint64_t)x->s.resuming[i] << 1 |
		  (uint64_t)x->s.returns[i] << 2 | (uint64_t)v.residency << 8 |
		  (uint64_t)v.endless << 16;
	to[n++] = v.turn_left;
	to[n++] = sl_min_u64(v.wants_since, AGE_MOST);
	to[n++] = v.longest_wait;
	sl_node_why(x->node, id, see_because, s);
}

static void see_demand(void *context, const struct sl_node_demand_view *d)
{
	struct seen *s = context;
	uint64_t *to = &s->client[d->client - explore_client_id(0)][12];

	to[0] = (uint64_t)d->entitled | (uint64_t)d->head << 1 |
		(uint64_t)(d->epoch != 0) << 2;
	to[1] = sl_min_u64(d->waited, AGE_MOST);
}

/* --- hashes --- */

static uint64_t stir(uint64_t hash, uint64_t word, uint64_t by)
{
	hash = (hash ^ word) * by;
	return hash ^ hash >> 29 ^ hash << 17;
}

struct mix {
	uint64_t a, b;
};

static void mix(struct mix *m, uint64_t word)
{
	m->a = stir(m->a, word, 0x9e3779b97f4a7c15u);
	m->b = stir(m->b, word, 0xc2b2ae3d27d4eb4fu);
}

static void mix_why(struct mix *m, const struct order *o, const struct sl_node_because *y)
{
	uint64_t workload = y->workload - explore_workload_id(0),
		 other = y->other - explore_workload_id(0),
		 client = y->client - explore_client_id(0);

	mix(m, y->reason);
	mix(m, y->gpu < EXPLORE_GPUS ? o->gpu[y->gpu] : 9);
	mix(m, workload < EXPLORE_WORKLOADS ? o->workload[workload] : 9);
	mix(m, other < EXPLORE_WORKLOADS ? o->workload[other] : 9);
	mix(m, client < EXPLORE_CLIENTS ? o->client[client] : 9);
	mix(m, y->bytes);
	mix(m, y->available_bytes);
	mix(m, y->other_bytes);
}

/* Notes about several workloads come in any order: a sum of their hashes. */
static struct mix whys_of(const struct seen *s, const struct order *o)
{
	struct mix sum = {0, 0};

	for (uint32_t i = 0; i < s->whys; i++) {
		struct mix one = {1, 2};

		mix_why(&one, o, &s->why[i]);
		sum.a += one.a;
		sum.b += one.b;
	}
	return sum;
}

static struct explore_key hash(
	const struct explore *x, const struct seen *s, const struct order *o)
{
	struct mix m = whys_of(s, o);
	uint8_t back[EXPLORE_CLIENTS] = {0}, of[EXPLORE_WORKLOADS] = {0},
		gpus[EXPLORE_GPUS] = {0};

	for (uint8_t i = 0; i < x->world->clients; i++)
		back[o->client[i]] = i;
	for (uint8_t i = 0; i < x->world->workloads; i++)
		of[o->workload[i]] = i;
	for (uint8_t i = 0; i < EXPLORE_GPUS; i++)
		gpus[o->gpu[i]] = i;
	for (uint32_t i = 0; i < x->world->clients; i++) {
		for (uint32_t n = 0; n < 16; n++)
			mix(&m, s->client[back[i]][n]);
		for (uint32_t gpu = 0; gpu < x->world->gpus; gpu++)
			mix(&m, s->gpu_part[back[i]][gpus[gpu]]);
	}
	for (uint32_t i = 0; i < x->world->workloads; i++) {
		for (uint32_t n = 0; n < 4; n++)
			mix(&m, s->workload[of[i]][n]);
	}
	for (uint32_t n = 0; n < SL_ARRAY_LEN(s->rest); n++)
		mix(&m, s->rest[n]);
	return (struct explore_key){{m.a, m.b}};
}

static bool is_less(struct explore_key a, struct explore_key b)
{
	return a.word[0] < b.word[0] || (a.word[0] == b.word[0] && a.word[1] < b.word[1]);
}

struct explore_key explore_key_of(const struct explore *x)
{
	struct explore_key least = {{UINT64_MAX, UINT64_MAX}};
	struct seen s = {0};

	for (uint32_t i = 0; i < x->world->clients; i++)
		see_client(x, &s, i);
	for (uint32_t i = 0; i < x->world->workloads; i++)
		see_workload(x, &s, i);
	sl_node_each_demand(x->node, see_demand, &s);
	s.rest[0] = x->s.faults;
	s.rest[1] = x->s.wake == SL_NS_NEVER
			    ? 1
			    : 2 + sl_min_u64(AGE_MOST, sl_sub_sat(x->s.wake, x->s.now));
	for (uint32_t i = 0; i < orders_count; i++) {
		struct explore_key key = hash(x, &s, &orders[i]);

		if (is_less(key, least))
			least = key;
	}
	return least;
}
