/*
 * waste - see the header
 *
 * Filling costs most of the time. So a stream is a flat array without tasks that never run on that
 * hardware, and ends as soon as no task with GPUs can follow. A stream is a stratified sample: its
 * tasks are at equal distances in the distribution, in random order, so that 40 of them are nearly
 * as good as all.
 */
#include "policy/placement/waste.h"
#include "policy/placement/states.h"

#include <string.h>

#include "base/draw.h"

/* Tasks placed on a kind of hardware count as n / (n + PRIOR) of its tasks, at most PLACED_MOST. If
 * they alone counted, past placements would be the measure of what is right. */
#define PRIOR       100.0
#define PLACED_MOST 0.75
/* Streams are drawn anew after this many placements, and then whenever the number of placements has
 * grown by half. */
#define FIRST_DRAW 500
/* With fewer tasks, streams are no sample of the tasks to come, which may fill every hole. */
#define ENOUGH 200.0
#define MEMO   (1u << 17)

void sl_waste_init(
	struct sl_waste *waste, struct sl_arena *arena, struct sl_typical *typical)
{
	memset(waste, 0, sizeof(*waste));
	waste->arena = arena;
	waste->typical = typical;
	waste->drawn = 1;
	waste->draw_again = FIRST_DRAW;
	waste->memo = sl_arena_take(arena, MEMO * sizeof(*waste->memo));
}

void sl_waste_refresh(struct sl_waste *waste)
{
	waste->drawn++;
}

static bool same_hardware(const struct sl_fit_node *a, const struct sl_fit_node *b)
{
	return a->model == b->model && a->pool == b->pool && a->gpu_mib == b->gpu_mib &&
	       a->gpus == b->gpus && a->cpu_milli == b->cpu_milli &&
	       a->memory_mib == b->memory_mib;
}

static struct sl_waste_class *class_of(
	struct sl_waste *waste, const struct sl_fit_node *node)
{
	struct sl_arena *arena = waste->arena;
	struct sl_waste_class *class = NULL;

	for (uint32_t i = 0; i < waste->class_count; i++) {
		class = waste->classes[i];
		if (same_hardware(&class->empty, node))
			return class;
	}
	if (waste->class_count == SL_WASTE_CLASSES)
		return class;
	class = sl_arena_take(arena, sizeof(*class));
	sl_fit_node_init(&class->empty, node->cpu_milli, node->memory_mib, node->gpus,
		node->gpu_mib, node->model, node->pool);
	class->placed = sl_arena_take(arena, SL_TYPICAL_KINDS * sizeof(*class->placed));
	class->streams = sl_arena_take(arena, SL_WASTE_STREAMS * sizeof(*class->streams));
	waste->classes[waste->class_count++] = class;
	return class;
}

void sl_waste_placed(struct sl_waste *waste, const struct sl_fit_node *node,
	const struct sl_need *need)
{
	struct sl_waste_class *class = class_of(waste, node);
	uint32_t kind = sl_typical_find(waste->typical, need);

	if (kind == UINT32_MAX)
		return;
	class->placed[kind]++;
	class->placed_all++;
	if (++waste->placed < waste->draw_again)
		return;
	waste->draw_again += waste->draw_again / 2;
	sl_waste_refresh(waste);
}

/* --- Streams. --- */

/* The kinds that run there: of all known tasks, and of those placed here. */
struct spread {
	struct sl_waste_task tasks[SL_TYPICAL_KINDS];
	double sum[SL_TYPICAL_KINDS]; /* of p up to this one */
	uint32_t count;
};

static int32_t bounded(int64_t amount)
{
	return amount < INT32_MAX ? (int32_t)amount : INT32_MAX;
}

static void add_kind(struct spread *spread, struct sl_waste_class *class,
	const struct sl_need *need, double p)
{
	struct sl_waste_task *task = &spread->tasks[spread->count];
	double before = spread->count ? spread->sum[spread->count - 1] : 0;

	if (p <= 0 || !sl_fit_ever(&class->empty, need))
		return;
	*task = (struct sl_waste_task){bounded(need->cpu_milli),
		bounded(need->memory_mib), need->gpus,
		(uint16_t)sl_fit_milli(&class->empty, need)};
	spread->sum[spread->count++] = before + p;
	if (!need->gpus)
		return;
	if (task->milli < class->least_milli)
		class->least_milli = task->milli;
	if (task->cpu_milli < class->least_cpu)
		class->least_cpu = task->cpu_milli;
}

static void measure(const struct sl_typical *typical, struct sl_waste_class *class,
	struct spread *spread)
{
	double placed = (double)class->placed_all;
	double part = placed / (placed + PRIOR);

	if (part > PLACED_MOST)
		part = PLACED_MOST;
	spread->count = 0;
	class->least_cpu = INT32_MAX;
	class->least_milli = SL_FIT_WHOLE;
	for (uint32_t k = 0; k < typical->count; k++) {
		const struct sl_typical_kind *kind = &typical->kinds[k];
		double p = (double)kind->times / (double)typical->seen * (1 - part);

		if (class->placed[k])
			p += class->placed[k] / placed * part;
		add_kind(spread, class, &kind->need, p);
	}
}

static const struct sl_waste_task *pick(const struct spread *spread, double at)
{
	uint32_t low = 0, high = spread->count - 1;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (spread->sum[middle] > at)
			high = middle;
		else
			low = middle + 1;
	}
	return &spread->tasks[low];
}

static void draw_stream(
	const struct spread *spread, struct sl_waste_task *stream, uint64_t *random)
{
	double step = spread->sum[spread->count - 1] / SL_WASTE_LENGTH;

	for (uint32_t i = 0; i < SL_WASTE_LENGTH; i++) {
		double part =
			(double)(sl_draw(random) >> 11) / (double)(UINT64_C(1) << 53);

		stream[i] = *pick(spread, (i + part) * step);
	}
	for (uint32_t i = SL_WASTE_LENGTH; i > 1; i--) {
		uint32_t j = (uint32_t)(sl_draw(random) % i);
		struct sl_waste_task kept = stream[i - 1];

		stream[i - 1] = stream[j];
		stream[j] = kept;
	}
}

static SL_COLD void draw_class(struct sl_waste *waste, struct sl_waste_class *class)
{
	uint64_t random = UINT64_C(88172645463325252);
	struct spread spread;

	measure(waste->typical, class, &spread);
	class->length = spread.count ? SL_WASTE_LENGTH : 0;
	for (uint32_t i = 0; spread.count && i < SL_WASTE_STREAMS; i++)
		draw_stream(&spread, class->streams[i], &random);
	class->drawn = waste->drawn;
}

/* --- Filling. --- */

/* A node being filled. most: the most that is left on one GPU. */
struct filling {
	int32_t cpu_milli, memory_mib, idle, whole, most;
	uint16_t gpus;
	int16_t left[SL_FIT_GPUS_MAX];
};

static int32_t most_left(const struct filling *f)
{
	int32_t most = 0;

	for (uint16_t i = 0; i < f->gpus; i++)
		if (f->left[i] > most)
			most = f->left[i];
	return most;
}

static bool put_wholes(struct filling *f, uint16_t gpus)
{
	if (f->whole < gpus)
		return false;
	f->whole -= gpus;
	f->idle -= gpus * SL_FIT_WHOLE;
	for (uint16_t i = 0; gpus; i++)
		if (f->left[i] == SL_FIT_WHOLE) {
			f->left[i] = 0;
			gpus--;
		}
	if (!f->whole)
		f->most = most_left(f);
	return true;
}

/* Puts it on the fullest GPU that suffices; there is one. */
static void put_share(struct filling *f, int32_t milli)
{
	int32_t least = SL_FIT_WHOLE + 1;
	uint16_t best = 0;

	for (uint16_t i = 0; i < f->gpus; i++)
		if (f->left[i] >= milli && f->left[i] < least) {
			least = f->left[i];
			best = i;
		}
	f->whole -= least == SL_FIT_WHOLE;
	f->left[best] = (int16_t)(least - milli);
	f->idle -= milli;
	if (least == f->most)
		f->most = most_left(f);
}

/* Shares of several GPUs count as tasks of one each: they are rare, and any GPU does for a
 * share. */
static bool put(struct filling *f, const struct sl_waste_task *task)
{
	if (task->memory_mib > f->memory_mib)
		return false;
	if (task->gpus && task->milli == SL_FIT_WHOLE) {
		if (!put_wholes(f, task->gpus))
			return false;
	} else {
		for (uint16_t i = 0; i < task->gpus && f->most >= task->milli; i++)
			put_share(f, task->milli);
	}
	f->cpu_milli -= task->cpu_milli;
	f->memory_mib -= task->memory_mib;
	return true;
}

/* The first task that may fit, or end. Most do not; this loop takes most of the time. */
static const struct sl_waste_task *next_fit(const struct sl_waste_task *task,
	const struct sl_waste_task *end, int32_t most, int32_t cpu_milli)
{
	while (task < end && ((task->milli > most) | (task->cpu_milli > cpu_milli)))
		task++;
	return task;
}

static int32_t fill(const struct sl_waste_class *class, const struct filling *begin,
	const struct sl_waste_task *task)
{
	const struct sl_waste_task *end = task + class->length;
	struct filling f = *begin;

	for (;; task++) {
		task = next_fit(task, end, f.most, f.cpu_milli);
		if (task == end)
			break;
		if (put(&f, task) &&
			(f.most < class->least_milli || f.cpu_milli < class->least_cpu))
			break;
	}
	return f.idle;
}

/* The mean over the streams from..to. Most of the time of a decision is spent here. */
static float fill_all(struct sl_waste *waste, const struct sl_fit_node *state,
	uint32_t from, uint32_t to)
{
	struct sl_waste_class *class = class_of(waste, state);
	struct filling begin = {bounded(state->now.cpu_milli),
		bounded(state->now.memory_mib), state->now.gpu_milli, state->now.whole, 0,
		state->gpus, {0}};
	int64_t sum = 0;

	if (class->drawn != waste->drawn)
		draw_class(waste, class);
	memcpy(begin.left, state->now.left, state->gpus * sizeof(begin.left[0]));
	begin.most = most_left(&begin);
	if (begin.most < class->least_milli || begin.cpu_milli < class->least_cpu)
		return (float)begin.idle;
	for (uint32_t i = from; i < to; i++)
		sum += fill(class, &begin, class->streams[i]);
	return (float)sum / (float)(to - from);
}

/* By the streams, through the memo. */
static double waste_of(
	struct sl_waste *waste, const struct sl_fit_node *state, bool close)
{
	uint64_t hash = sl_state_hash(state);
	struct sl_waste_memo *memo = &waste->memo[hash >> 40 & (MEMO - 1)];

	if (!state->now.gpu_milli)
		return 0;
	if (memo->hash != hash || memo->drawn != waste->drawn) {
		memo->rough = fill_all(waste, state, 0, SL_WASTE_ROUGH);
		memo->close = -1;
		memo->hash = hash;
		memo->drawn = waste->drawn;
	}
	if (!close)
		return memo->rough;
	if (memo->close < 0)
		memo->close =
			(memo->rough * SL_WASTE_ROUGH +
				fill_all(waste, state, SL_WASTE_ROUGH, SL_WASTE_STREAMS) *
					(SL_WASTE_STREAMS - SL_WASTE_ROUGH)) /
			SL_WASTE_STREAMS;
	return memo->close;
}

double sl_waste_of(struct sl_waste *waste, const struct sl_fit_node *state, bool close)
{
	double seen = (double)waste->typical->seen;

	return waste_of(waste, state, close) * (seen < ENOUGH ? seen / ENOUGH : 1);
}
