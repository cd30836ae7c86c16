/*
 * advise - see the header
 *
 * Packing counts in millionths of a GPU, so that GPUs of different sizes compare, and rounds up, so
 * that nothing is promised that would not fit.
 */
#include "policy/figures/advise.h"

#include <stdlib.h>

#define WHOLE 1000000u

/* --- one program -------------------------------------------------------------------------- */

static bool is_bad(const struct sl_advise_program *p)
{
	return p->runs == 0 || p->observed > p->runs || p->gpus == 0 || p->gpus > 64 ||
	       p->at_once == 0 || p->shareable_bytes == 0 ||
	       p->p99_bytes > p->peak_bytes || p->mean_bytes > p->peak_bytes ||
	       p->active_s > p->span_s || p->compute_ms > p->contested_ms;
}

bool sl_advise_is_kept(uint64_t peak_bytes, uint64_t limit_bytes,
	uint64_t shareable_bytes, uint64_t denials)
{
	return denials || (limit_bytes && limit_bytes < shareable_bytes &&
				  peak_bytes >= limit_bytes - limit_bytes / 64);
}

/* A run without a bound that needed as much shows what the bounded ones would have needed. */
static bool is_limited(const struct sl_advise_program *p)
{
	return p->kept_peak_bytes > p->free_peak_bytes;
}

static uint64_t proposal(
	uint64_t bytes, uint64_t margin, const struct sl_advise_program *p)
{
	uint64_t wanted = bytes > UINT64_MAX / 2 ? bytes : bytes + margin;

	wanted = sl_max_u64(wanted, SL_ADVISE_GRAIN);
	if (wanted > p->shareable_bytes - p->shareable_bytes % SL_ADVISE_GRAIN)
		return p->shareable_bytes;
	return sl_round_up(wanted, SL_ADVISE_GRAIN);
}

/* Within a tenth, or a grain. */
static bool is_about(uint64_t a, uint64_t b, uint64_t grain)
{
	uint64_t apart = a > b ? a - b : b - a;

	return apart <= sl_max_u64(b / 10, grain);
}

/* What it had while others competed says nothing of one that nothing competed with. */
static uint32_t compute_of(const struct sl_advise_program *p)
{
	uint64_t pm;

	if (!p->compute_request_pm || p->contested_ms < SL_ADVISE_SPAN_MIN_S * 1000)
		return 0;
	pm = p->compute_ms * 1000 / p->contested_ms;
	pm = (pm + pm / 10 + SL_ADVISE_COMPUTE_PM - 1) / SL_ADVISE_COMPUTE_PM *
	     SL_ADVISE_COMPUTE_PM;
	pm = sl_min_u64(sl_max_u64(pm, SL_ADVISE_COMPUTE_PM), 1000);
	return is_about(p->compute_request_pm, pm, SL_ADVISE_COMPUTE_PM) ? 0
									 : (uint32_t)pm;
}

struct sl_advice sl_advise(const struct sl_advise_program *p)
{
	struct sl_advice advice = {.verdict = SL_ADVISE_CHANGE};

	if (is_bad(p))
		return (struct sl_advice){.verdict = SL_ADVISE_BAD};
	if (p->span_s < SL_ADVISE_SPAN_MIN_S)
		return (struct sl_advice){.verdict = SL_ADVISE_TOO_SHORT};
	advice.compute_request_pm = compute_of(p);
	if (is_limited(p)) {
		advice.verdict = SL_ADVISE_LIMITED;
		return advice;
	}
	advice.request_bytes = proposal(p->p99_bytes, p->p99_bytes / 10, p);
	advice.limit_bytes = proposal(p->peak_bytes, p->peak_bytes / 4, p);
	advice.limit_bytes = sl_max_u64(advice.limit_bytes, advice.request_bytes);
	/* A limit that is too high costs nothing. */
	if (p->observed < p->runs &&
		is_about(p->request_bytes, advice.request_bytes, SL_ADVISE_GRAIN) &&
		p->limit_bytes >= advice.request_bytes) {
		advice.verdict = SL_ADVISE_KEEP;
		advice.request_bytes = p->request_bytes;
		advice.limit_bytes = p->limit_bytes;
	}
	return advice;
}

/* --- at the same time --------------------------------------------------------------------- */

struct moment {
	uint64_t ms;
	int change; /* +1: one begins */
};

static int by_time(const void *left, const void *right)
{
	const struct moment *a = left, *b = right;

	/* A run that ends when another begins does not overlap it. */
	return a->ms != b->ms ? (a->ms < b->ms ? -1 : 1) : a->change - b->change;
}

/* Ends early, so that runs that merely touch do not overlap; half of a short run remains. */
static uint64_t end_of(const struct sl_advise_run *run)
{
	uint64_t span = sl_sub_sat(run->ended_ms, run->begun_ms);

	if (!run->ended_ms)
		return UINT64_MAX;
	return run->begun_ms + span - sl_min_u64(SL_ADVISE_TOGETHER_MS, span / 2);
}

uint32_t sl_advise_at_once(
	struct sl_arena *arena, const struct sl_advise_run *runs, size_t count)
{
	struct moment *moments = sl_arena_take(arena, (count * 2 + 1) * sizeof(*moments));
	int now = 0, most = 0;

	for (size_t i = 0; i < count; i++) {
		moments[2 * i] = (struct moment){runs[i].begun_ms, 1};
		moments[2 * i + 1] = (struct moment){end_of(&runs[i]), -1};
	}
	qsort(moments, count * 2, sizeof(*moments), by_time);
	for (size_t i = 0; i < count * 2; i++) {
		now += moments[i].change;
		most = now > most ? now : most;
	}
	return (uint32_t)most + (count && !most);
}

/* --- all of them -------------------------------------------------------------------------- */

/* One run, on each of its GPUs. */
struct task {
	uint32_t before, after; /* millionths */
	uint32_t gpus;
};

static uint32_t millionths(uint64_t bytes, uint64_t shareable)
{
	if (!shareable || bytes >= shareable)
		return WHOLE;
	return (uint32_t)(((unsigned __int128)bytes * WHOLE + shareable - 1) / shareable);
}

static int by_before(const void *left, const void *right)
{
	const struct task *a = left, *b = right;

	return a->before != b->before ? (a->before < b->before ? 1 : -1)
				      : (int)b->gpus - (int)a->gpus;
}

static int by_after(const void *left, const void *right)
{
	const struct task *a = left, *b = right;

	return a->after != b->after ? (a->after < b->after ? 1 : -1)
				    : (int)b->gpus - (int)a->gpus;
}

/* Puts a task on `gpus` different GPUs: the first ones with room, and new ones for the rest.
 * Returns how many GPUs are used then. The array used has room for all. */
static uint32_t place(
	uint32_t *used, uint32_t count, uint32_t *first, uint32_t size, uint32_t gpus)
{
	uint32_t left = gpus;

	/* Full ones stay full. */
	while (*first < count && used[*first] == WHOLE)
		++*first;
	for (uint32_t i = *first; i < count && left; i++) {
		if (used[i] + size <= WHOLE) {
			used[i] += size;
			left--;
		}
	}
	while (left--)
		used[count++] = size;
	return count;
}

static uint32_t pack(
	const struct task *tasks, size_t count, bool after, uint32_t *used, size_t room)
{
	uint32_t gpus = 0, first = 0;

	for (size_t i = 0; i < room; i++)
		used[i] = 0;
	for (size_t i = 0; i < count; i++) {
		uint32_t size = after ? tasks[i].after : tasks[i].before;

		if (size)
			gpus = place(used, gpus, &first, size, tasks[i].gpus);
	}
	return gpus;
}

/* What it took before: all that others could not have. */
static struct task task_of(
	const struct sl_advise_program *p, const struct sl_advice *advice)
{
	struct task task = {.gpus = p->gpus};

	task.before = p->observed == p->runs
			      ? WHOLE
			      : millionths(sl_max_u64(p->request_bytes, p->p99_bytes),
					p->shareable_bytes);
	task.after = advice->verdict == SL_ADVISE_CHANGE
			     ? millionths(advice->request_bytes, p->shareable_bytes)
			     : task.before;
	return task;
}

struct sl_advise_total sl_advise_total(struct sl_arena *arena,
	const struct sl_advise_program *programs, const struct sl_advice *advice,
	size_t count)
{
	struct sl_advise_total total = {0};
	struct task *tasks = sl_arena_take(arena, SL_ADVISE_TASKS_MAX * sizeof(*tasks));
	size_t room = 0;
	uint32_t *used;

	for (size_t i = 0; i < count; i++) {
		if (advice[i].verdict == SL_ADVISE_BAD)
			continue;
		for (uint32_t n = 0; n < programs[i].at_once; n++) {
			total.cut |= total.tasks == SL_ADVISE_TASKS_MAX;
			if (total.tasks == SL_ADVISE_TASKS_MAX)
				break;
			tasks[total.tasks] = task_of(&programs[i], &advice[i]);
			room += tasks[total.tasks++].gpus;
		}
	}
	used = sl_arena_take(arena, (room + 1) * sizeof(*used));
	qsort(tasks, total.tasks, sizeof(*tasks), by_before);
	total.gpus_before = pack(tasks, total.tasks, false, used, room);
	qsort(tasks, total.tasks, sizeof(*tasks), by_after);
	total.gpus_after = pack(tasks, total.tasks, true, used, room);
	return total;
}

/* --- words -------------------------------------------------------------------------------- */

static const struct {
	const char *word, *text;
} verdicts[SL_ADVISE_VERDICTS] = {
	[SL_ADVISE_CHANGE] = {"change", "a request and a limit are proposed"},
	[SL_ADVISE_KEEP] = {"keep", "its request and limit are about right"},
	[SL_ADVISE_TOO_SHORT] = {"too-short",
		"it has run for less than 10m; ask again later"},
	[SL_ADVISE_LIMITED] = {"limited",
		"it reached its limit or was denied memory, so its need is not known; "
		"run it once with --observe"},
	[SL_ADVISE_BAD] = {"bad", "its figures contradict each other"},
};

const char *sl_advise_word(enum sl_advise_verdict verdict)
{
	return (uint32_t)verdict < SL_ADVISE_VERDICTS ? verdicts[verdict].word : "?";
}

const char *sl_advise_text(enum sl_advise_verdict verdict)
{
	return (uint32_t)verdict < SL_ADVISE_VERDICTS ? verdicts[verdict].text : "?";
}
