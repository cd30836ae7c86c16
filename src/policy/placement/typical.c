/*
 * typical - see the header
 *
 * Unusable GPUs are summed by GPU instead of by task. For a task of one share, GPUs with less left
 * than the share are unusable; so each GPU contributes what is left on it times the p of all larger
 * shares. For a task of whole GPUs everything but whole ones is unusable, if there are enough of
 * these. For any other task, everything is unusable.
 */
#include "policy/placement/typical.h"

#include <string.h>

#define TYPICAL_PCT 95
#define WHOLES      (SL_FIT_GPUS_MAX + 1)
/* Tables are rebuilt when a tenth more has been seen. */
#define GROWTH_PART 10

void sl_typical_init(struct sl_typical *typical, struct sl_arena *arena)
{
	memset(typical, 0, sizeof(*typical));
	typical->arena = arena;
	typical->kinds = sl_arena_take(arena, SL_TYPICAL_KINDS * sizeof(*typical->kinds));
	typical->order = sl_arena_take(arena, SL_TYPICAL_KINDS * sizeof(*typical->order));
	typical->buckets =
		sl_arena_take(arena, SL_TYPICAL_KINDS * sizeof(*typical->buckets));
	memset(typical->buckets, 0xff, SL_TYPICAL_KINDS * sizeof(*typical->buckets));
}

/* --- Learning. --- */

/* Without GPUs, only the CPU tells tasks apart. */
static bool same(const struct sl_need *a, const struct sl_need *b)
{
	if (a->cpu_milli != b->cpu_milli || a->gpus != b->gpus || a->pools != b->pools)
		return false;
	return !a->gpus || (a->gpu_milli == b->gpu_milli && a->gpu_mib == b->gpu_mib &&
				   a->models == b->models);
}

static uint32_t *bucket_of(const struct sl_typical *typical, const struct sl_need *need)
{
	uint64_t hash = need->cpu_milli * UINT64_C(0x9e3779b97f4a7c15) + need->gpus;

	if (need->gpus)
		hash = hash * UINT64_C(0x9e3779b97f4a7c15) + need->gpu_milli +
		       need->gpu_mib * UINT64_C(2000003) + need->models;
	return &typical->buckets[(hash >> 20 ^ hash) & (SL_TYPICAL_KINDS - 1)];
}

uint32_t sl_typical_find(const struct sl_typical *typical, const struct sl_need *need)
{
	uint32_t i = *bucket_of(typical, need);

	while (i != UINT32_MAX && !same(&typical->kinds[i].need, need))
		i = typical->kinds[i].next;
	return i;
}

void sl_typical_learn(
	struct sl_typical *typical, const struct sl_need *need, uint32_t times)
{
	uint32_t *bucket = bucket_of(typical, need);
	uint32_t i = sl_typical_find(typical, need);

	if (i == UINT32_MAX) {
		/* A kind beyond the maximum is left out: it is not typical. */
		if (typical->count == SL_TYPICAL_KINDS)
			return;
		i = typical->count++;
		typical->kinds[i].need = *need;
		typical->kinds[i].next = *bucket;
		typical->order[i] = i;
		*bucket = i;
	}
	typical->kinds[i].times += times;
	typical->seen += times;
}

/* Most frequent first; of equal ones, the first seen. The last order is nearly right already. */
static void sort_kinds(struct sl_typical *typical)
{
	for (uint32_t i = 1; i < typical->count; i++) {
		uint32_t kind = typical->order[i], at = i;

		for (; at; at--) {
			uint32_t before = typical->order[at - 1];
			uint64_t times = typical->kinds[before].times;

			if (times > typical->kinds[kind].times ||
				(times == typical->kinds[kind].times && before < kind))
				break;
			typical->order[at] = before;
		}
		typical->order[at] = kind;
	}
}

bool sl_typical_refresh(struct sl_typical *typical)
{
	if (typical->refreshed == typical->seen ||
		typical->seen < typical->refreshed + typical->refreshed / GROWTH_PART)
		return false;
	typical->refreshed = typical->seen;
	sort_kinds(typical);
	typical->typical = 0;
	typical->weight = 0;
	while (typical->typical < typical->count && typical->typical < SL_TYPICAL_MOST &&
		typical->weight * 100 < typical->seen * TYPICAL_PCT)
		typical->weight +=
			typical->kinds[typical->order[typical->typical++]].times;
	typical->built++;
	return true;
}

/* --- Tables. --- */

/* The thousandths that a typical task takes of each GPU of this class; 0: it never runs there. */
static uint32_t share_of(const struct sl_typical_class *class, const struct sl_need *need)
{
	uint32_t milli;

	if (!need->gpus || !sl_fit_ever(&class->any, need))
		return 0;
	milli = sl_fit_milli(&class->any, need);
	return milli ? milli : 1;
}

/* Inserts value into the sorted list of distinct ones. */
static void insert(uint32_t *list, uint32_t *count, uint32_t value)
{
	uint32_t at = *count;

	while (at && list[at - 1] > value)
		at--;
	if (at && list[at - 1] == value)
		return;
	memmove(&list[at + 1], &list[at], (*count - at) * sizeof(*list));
	list[at] = value;
	(*count)++;
}

/* Columns and rows: the distinct shares and CPUs of the tasks that run there. */
static void measure(const struct sl_typical *typical, struct sl_typical_class *class)
{
	uint32_t shares[SL_FIT_WHOLE + 1], count = 0, column = 0;

	class->rows = 0;
	for (uint32_t i = 0; i < typical->typical; i++) {
		const struct sl_need *need = &typical->kinds[typical->order[i]].need;
		uint32_t milli = share_of(class, need);

		if (!milli)
			continue;
		insert(class->cpu, &class->rows, need->cpu_milli);
		if (milli < SL_FIT_WHOLE && need->gpus == 1)
			insert(shares, &count, milli);
	}
	/* Column c: at most c of the shares fit into what is left. */
	for (uint32_t left = 0; left <= SL_FIT_WHOLE; left++) {
		while (column < count && shares[column] <= left)
			column++;
		class->column[left] = (uint16_t)column;
	}
	class->columns = count + 1;
}

static void add(struct sl_typical_class *class, const struct sl_need *need,
	uint32_t milli, double p)
{
	if (milli < SL_FIT_WHOLE && need->gpus > 1) {
		class->odd[class->odds++] =
			(struct sl_typical_odd){need->cpu_milli, milli, need->gpus, p};
		return;
	}
	for (uint32_t row = 0; row < class->rows; row++) {
		if (class->cpu[row] < need->cpu_milli)
			continue;
		if (milli == SL_FIT_WHOLE)
			for (uint32_t n = need->gpus; n <= SL_FIT_GPUS_MAX; n++)
				class->wholes[row * WHOLES + n] += p;
		else
			for (uint32_t c = 0; c < class->column[milli]; c++)
				class->shares[row * class->columns + c] += p;
	}
}

static void add_large(const struct sl_typical *typical, struct sl_typical_class *class,
	const struct sl_typical_kind *kind)
{
	const struct sl_need *need = &kind->need;

	if (need->gpus < 2 || class->larges == SL_TYPICAL_LARGE ||
		share_of(class, need) != SL_FIT_WHOLE)
		return;
	class->large[class->larges++] = (struct sl_typical_odd){need->cpu_milli,
		SL_FIT_WHOLE, need->gpus, (double)kind->times / (double)typical->seen};
}

static void build(struct sl_typical *typical, struct sl_typical_class *class)
{
	measure(typical, class);
	class->odds = 0;
	class->larges = 0;
	memset(class->shares, 0, class->rows * class->columns * sizeof(*class->shares));
	memset(class->wholes, 0, class->rows * WHOLES * sizeof(*class->wholes));
	for (uint32_t i = 0; i < typical->typical; i++) {
		const struct sl_typical_kind *kind = &typical->kinds[typical->order[i]];
		uint32_t milli = share_of(class, &kind->need);

		if (milli)
			add(class, &kind->need, milli,
				(double)kind->times / (double)typical->weight);
	}
	for (uint32_t i = 0; i < typical->count; i++)
		add_large(typical, class, &typical->kinds[typical->order[i]]);
	class->built = typical->built;
}

static struct sl_typical_class *class_of(
	struct sl_typical *typical, const struct sl_fit_node *node)
{
	struct sl_typical_class *class = NULL;

	for (uint32_t i = 0; i < typical->class_count; i++) {
		class = typical->classes[i];
		if (class->any.model == node->model && class->any.pool == node->pool &&
			class->any.gpu_mib == node->gpu_mib)
			return class;
	}
	if (typical->class_count == SL_TYPICAL_CLASSES)
		return class;
	class = sl_arena_take(typical->arena, sizeof(*class));
	sl_fit_node_init(&class->any, UINT32_MAX, UINT32_MAX, SL_FIT_GPUS_MAX,
		node->gpu_mib, node->model, node->pool);
	class->price = 1;
	class->cpu = sl_arena_take(
		typical->arena, (SL_TYPICAL_MOST + 1) * sizeof(*class->cpu));
	class->shares = sl_arena_take(typical->arena,
		SL_TYPICAL_MOST * (SL_TYPICAL_MOST + 1) * sizeof(*class->shares));
	class->wholes = sl_arena_take(
		typical->arena, SL_TYPICAL_MOST * WHOLES * sizeof(*class->wholes));
	class->odd = sl_arena_take(typical->arena, SL_TYPICAL_MOST * sizeof(*class->odd));
	typical->classes[typical->class_count++] = class;
	return class;
}

/* What tasks of several shares can use, times p. */
static double odd_use(
	const struct sl_typical_class *class, const struct sl_fit_node *state)
{
	double use = 0;

	for (uint32_t i = 0; i < class->odds; i++) {
		const struct sl_typical_odd *odd = &class->odd[i];
		uint32_t enough = 0, milli = 0;

		if (odd->cpu_milli > state->now.cpu_milli)
			continue;
		for (uint16_t g = 0; g < state->gpus; g++)
			if (state->now.left[g] >= (int32_t)odd->milli) {
				enough++;
				milli += (uint32_t)state->now.left[g];
			}
		if (enough >= odd->gpus)
			use += odd->p * milli;
	}
	return use;
}

/* The row of its CPU; UINT32_MAX: too little for any typical task. */
static uint32_t row_of(const struct sl_typical_class *class, int64_t cpu_milli)
{
	uint32_t row = 0;

	while (row < class->rows && class->cpu[row] <= cpu_milli)
		row++;
	return row - 1;
}

static const struct sl_typical_class *built_class(
	struct sl_typical *typical, const struct sl_fit_node *state)
{
	struct sl_typical_class *class = class_of(typical, state);

	if (class->built != typical->built)
		build(typical, class);
	return class;
}

double sl_typical_fragments(struct sl_typical *typical, const struct sl_fit_node *state)
{
	const struct sl_typical_class *class = built_class(typical, state);
	const struct sl_room *room = &state->now;
	uint32_t row = row_of(class, room->cpu_milli);
	double sum = room->gpu_milli;
	const double *shares;

	if (row == UINT32_MAX)
		return sum;
	shares = &class->shares[row * class->columns];
	/* All that is left, less the tasks that it suffices for. */
	for (uint16_t i = 0; i < state->gpus; i++)
		sum -= room->left[i] * (shares[0] - shares[class->column[room->left[i]]]);
	sum -= room->whole * SL_FIT_WHOLE *
	       class->wholes[row * WHOLES + (uint32_t)room->whole];
	return class->odds ? sum - odd_use(class, state) : sum;
}

/* --- Prices. --- */

/* What is idle on hardware that allows need. */
static double idle_for(const struct sl_typical *typical, const struct sl_need *need)
{
	double idle = 0;

	for (uint32_t i = 0; i < typical->class_count; i++)
		if (share_of(typical->classes[i], need))
			idle += typical->classes[i]->idle;
	return idle;
}

static void add_demand(struct sl_typical *typical, const struct sl_typical_kind *kind)
{
	double idle = idle_for(typical, &kind->need);

	if (!(idle > 0))
		return;
	for (uint32_t i = 0; i < typical->class_count; i++)
		typical->classes[i]->price += (double)kind->times * kind->need.gpus *
					      share_of(typical->classes[i], &kind->need) /
					      idle;
}

void sl_typical_set_prices(
	struct sl_typical *typical, const struct sl_fit_node *nodes, uint32_t count)
{
	double idle = 0, demand = 0;

	for (uint32_t i = 0; i < typical->class_count; i++)
		typical->classes[i]->idle = typical->classes[i]->price = 0;
	for (uint32_t i = 0; i < count; i++)
		if (!nodes[i].closed && nodes[i].later.gpu_milli > 0)
			class_of(typical, &nodes[i])->idle += nodes[i].later.gpu_milli;
	for (uint32_t i = 0; i < typical->count; i++)
		add_demand(typical, &typical->kinds[i]);
	for (uint32_t i = 0; i < typical->class_count; i++) {
		idle += typical->classes[i]->idle;
		demand += typical->classes[i]->idle * typical->classes[i]->price;
	}
	for (uint32_t i = 0; i < typical->class_count; i++)
		typical->classes[i]->price =
			demand > 0 ? typical->classes[i]->price * idle / demand : 1;
}

double sl_typical_price(struct sl_typical *typical, const struct sl_fit_node *node)
{
	return class_of(typical, node)->price;
}

double sl_typical_large(struct sl_typical *typical, const struct sl_fit_node *state)
{
	const struct sl_typical_class *class;
	double p = 0;

	if (state->now.whole < 2)
		return 0;
	class = built_class(typical, state);
	for (uint32_t i = 0; i < class->larges; i++)
		if (class->large[i].gpus <= (uint32_t)state->now.whole &&
			class->large[i].cpu_milli <= state->now.cpu_milli)
			p += class->large[i].p;
	return p * state->now.whole * SL_FIT_WHOLE;
}
