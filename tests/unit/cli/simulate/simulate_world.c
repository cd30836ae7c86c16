#include "../../base/test.h"

#include "cli/simulate/mix.h"
#include "cli/simulate/timers.h"
#include "cli/simulate/world.h"

#include <math.h>
#include <stdlib.h>

#define WHOLE SL_FIT_WHOLE
#define JOBS  200

/* --- Timers. --- */

static void timers_come_in_order(void **state)
{
	struct sl_timers timers = {0};
	uint64_t random = sl_simulate_seeded(1);
	struct sl_timer last = {0};

	for (uint32_t i = 0; i < 5000; i++)
		assert_true(sl_timers_add(
			&timers, (struct sl_timer){.at = sl_draw(&random) % 500,
					 .kind = i % 2 ? SL_TIMER_END : SL_TIMER_WAKE,
					 .of = i}));
	assert_int_equal(timers.kinds[SL_TIMER_END], 2500);
	for (uint32_t i = 0; i < 5000; i++) {
		struct sl_timer timer = *sl_timers_first(&timers);

		sl_timers_drop_first(&timers);
		assert_true(i == 0 || timer.at > last.at ||
			    (timer.at == last.at && timer.of > last.of));
		last = timer;
	}
	assert_null(sl_timers_first(&timers));
	assert_int_equal(timers.kinds[SL_TIMER_END], 0);
	sl_timers_fini(&timers);
}

/* --- Figures. --- */

/* 3 GPUs for 100 s, then 1 for 900 s, in stretches that had to be put together. */
static void stretches_keep_the_sums(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	uint32_t jobs[] = {4, 0};
	struct sl_figures f;
	double used = 0;

	sl_figures_init(&f, arena, 4 * WHOLE, 2, jobs);
	sl_figures_use(&f, 0, 3 * WHOLE);
	sl_figures_go(&f, 100 * SL_S);
	sl_figures_use(&f, 0, -2.0 * WHOLE);
	sl_figures_go(&f, 1000 * SL_S);
	assert_int_equal(f.width, 4 * SL_S);
	assert_int_equal(sl_figures_points(&f), 250);
	assert_true(f.of[0].sum.used == 1200.0 * WHOLE);
	assert_true(f.of[2].sum.used == 1200.0 * WHOLE);
	assert_true(sl_figures_at(&f, 0, 24).used == 3.0 * WHOLE);
	assert_true(sl_figures_at(&f, 0, 25).used == 1.0 * WHOLE);
	sl_figures_widen(&f, 16 * SL_S);
	assert_int_equal(sl_figures_points(&f), 63);
	/* 4 s of 3, 12 s of 1; and the last one, of which 8 s have been. */
	assert_true(sl_figures_at(&f, 0, 6).used == 1.5 * WHOLE);
	assert_true(sl_figures_at(&f, 0, 62).used == 1.0 * WHOLE);
	for (uint32_t i = 0; i < 63; i++)
		used += f.of[0].point[i].used;
	assert_true(used == 1200.0 * WHOLE);
	sl_arena_free(arena);
}

static void waits_by_rank(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	uint32_t jobs[] = {100, 1, 3};
	struct sl_figures f;

	sl_figures_init(&f, arena, WHOLE, 3, jobs);
	for (uint32_t i = 100; i > 0; i--)
		sl_figures_waited(&f, 0, i * SL_S);
	sl_figures_waited(&f, 1, 7 * SL_S);
	sl_figures_finish(&f);
	assert_int_equal(sl_figures_wait(&f, 0, 50), 50 * SL_S);
	assert_int_equal(sl_figures_wait(&f, 0, 95), 95 * SL_S);
	assert_int_equal(sl_figures_wait(&f, 1, 50), 7 * SL_S);
	assert_int_equal(sl_figures_wait(&f, 1, 95), 7 * SL_S);
	assert_int_equal(sl_figures_wait(&f, 2, 95), 0);
	/* With the 7: 101 waits. */
	assert_int_equal(sl_figures_wait(&f, 3, 50), 50 * SL_S);
	sl_arena_free(arena);
}

static void jain_as_published(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	uint32_t jobs[4] = {0};
	struct sl_figures f;

	sl_figures_init(&f, arena, 4 * WHOLE, 4, jobs);
	assert_true(sl_figures_jain(&f) == 1);
	for (uint32_t i = 0; i < 4; i++)
		sl_figures_share(&f, i, WHOLE);
	sl_figures_use(&f, 0, 4 * WHOLE);
	sl_figures_go(&f, 10 * SL_S);
	assert_true(fabs(sl_figures_jain(&f) - 0.25) < 1e-12);
	for (uint32_t i = 1; i < 4; i++)
		sl_figures_use(&f, i, 4 * WHOLE);
	sl_figures_use(&f, 0, -4.0 * WHOLE);
	sl_figures_go(&f, 20 * SL_S);
	sl_figures_use(&f, 0, 4 * WHOLE);
	for (uint32_t i = 1; i < 4; i++)
		sl_figures_use(&f, i, -4.0 * WHOLE);
	sl_figures_go(&f, 20 * SL_S);
	assert_true(fabs(sl_figures_jain(&f) - 1) < 1e-12);
	sl_arena_free(arena);
}

/* --- Worlds. --- */

/* 4 nodes of 4 GPUs; three projects that are guaranteed 4, 4 and nothing of 16 GPUs. */
struct case_ {
	struct sl_work work;
	struct sl_trace trace;
};

static void add_project(struct case_ *c, const char *name, int64_t quota)
{
	struct sl_project_row row;

	sl_project_defaults(&row, name);
	row.quota.of[SL_RES_GPU] = quota;
	row.id = c->work.projects.count + 1;
	assert_int_equal(sl_projects_put(&c->work.projects, &row), 0);
}

static void make_job(struct case_ *c, uint32_t i, uint64_t *random, bool gangs)
{
	struct sl_work_job *job = &c->trace.work_jobs[i];
	struct sl_need *need = &c->trace.jobs[i].need;

	*need = (struct sl_need){1000, 1024, 1, WHOLE, 0, 0, 0};
	if (sl_draw(random) % 3 == 0)
		need->gpu_milli = 500;
	else if (sl_draw(random) % 4 == 0)
		need->gpus = 2;
	*job = (struct sl_work_job){.project = (uint32_t)(sl_draw(random) % 3),
		.priority = (int32_t)(sl_draw(random) % 5) * 25,
		.tasks = 1,
		.least = 1,
		.line = i + 2,
		.created = sl_draw(random) % 20000 * SL_S,
		.duration = sl_draw(random) % 2000 * SL_S};
	/* Others would never start: project default is guaranteed nothing. */
	if (job->priority < 100 || job->project == 2)
		job->flags |= SL_JOB_PREEMPTIBLE;
	if (gangs && job->flags && sl_draw(random) % 5 == 0)
		job->tasks = job->least = 1 + (uint32_t)(sl_draw(random) % 4);
	if (sl_draw(random) % 2)
		job->flags |= SL_JOB_PARKS;
	c->trace.jobs[i].created = (double)job->created / 1e9;
	c->work.tasks += job->tasks;
}

static void make_case(struct case_ *c, uint64_t seed, bool gangs)
{
	uint64_t random = sl_simulate_seeded(seed);

	memset(c, 0, sizeof(*c));
	add_project(c, "red", 4 * WHOLE);
	add_project(c, "blue", 4 * WHOLE);
	add_project(c, "default", 0);
	c->trace.work = &c->work;
	c->trace.node_count = 4;
	c->trace.nodes = calloc(4, sizeof(*c->trace.nodes));
	c->trace.work_nodes = calloc(4, sizeof(*c->trace.work_nodes));
	c->trace.job_count = JOBS;
	c->trace.jobs = calloc(JOBS, sizeof(*c->trace.jobs));
	c->trace.work_jobs = calloc(JOBS, sizeof(*c->trace.work_jobs));
	assert_non_null(c->trace.nodes);
	assert_non_null(c->trace.work_nodes);
	assert_non_null(c->trace.jobs);
	assert_non_null(c->trace.work_jobs);
	for (uint32_t i = 0; i < 4; i++) {
		sl_fit_node_init(&c->trace.nodes[i], 64000, 262144, 4, 0, 0, 0);
		c->trace.capacity_milli += 4 * WHOLE;
	}
	for (uint32_t i = 0; i < JOBS; i++)
		make_job(c, i, &random, gangs);
}

static void free_case(struct case_ *c)
{
	sl_trace_fini(&c->trace);
	sl_work_fini(&c->work);
}

static double asked_for(const struct case_ *c)
{
	double milli_s = 0;

	for (uint32_t i = 0; i < JOBS; i++)
		milli_s += (double)sl_trace_milli(&c->trace.jobs[i].need) *
			   c->trace.work_jobs[i].tasks *
			   (double)c->trace.work_jobs[i].duration / 1e9;
	return milli_s;
}

/* The GPU time used is what the jobs asked for, plus lost work that was done again: nothing is
 * counted twice or forgotten, however often jobs were stopped. At no time is more used than the
 * cluster has. */
static void assert_books(
	const char *row, const struct case_ *c, const struct sl_figures *f)
{
	const struct sl_figures_project *all = &f->of[f->projects];
	double used = 0, want = asked_for(c) + all->redone;

	assert_row_u64(row, all->count[SL_FIGURE_JOBS], JOBS);
	assert_row_u64(row, all->count[SL_FIGURE_STARTED], JOBS);
	assert_row_u64(row, all->count[SL_FIGURE_ENDED], JOBS);
	assert_row_u64(row, f->gave_up, 0);
	if (fabs(all->sum.used - want) > 1e-6 * want)
		fail_msg("row '%s': %.3f GPU-seconds, wanted %.3f", row,
			all->sum.used / WHOLE, want / WHOLE);
	for (uint32_t i = 0; i < sl_figures_points(f); i++)
		if (sl_figures_at(f, f->projects, i).used > f->capacity * (1 + 1e-9))
			fail_msg("row '%s': more than there is in stretch %u", row, i);
	for (uint32_t i = 0; i < f->projects; i++)
		used += f->of[i].sum.used;
	if (fabs(used - all->sum.used) > 1e-6 * used)
		fail_msg("row '%s': projects had %.3f in all", row, used / WHOLE);
	assert_true(fabs(all->waiting) < 1e-6 && fabs(all->used) < 1e-6);
}

static const struct {
	const char *name;
	bool gangs;
	struct sl_world_ask ask;
} rows[] = {
	{"gangs", true, {.policy = SL_PLACE_BESTFIT}},
	{"spread", true, {.policy = SL_PLACE_SPREAD, .shuffled = true}},
	{"gives up", true, {.policy = SL_PLACE_FGD, .resume_wait = 60 * SL_S}},
	{"failures", false,
		{.policy = SL_PLACE_BESTFIT,
			.failures = 5000 * SL_S,
			.repair = 300 * SL_S}},
	{"moves", true, {.policy = SL_PLACE_SPREAD, .moves = 20}},
	{"all of it", false,
		{.policy = SL_PLACE_PACK,
			.shuffled = true,
			.moves = 20,
			.resume_wait = 60 * SL_S,
			.failures = 3000 * SL_S,
			.repair = 600 * SL_S}},
};

static void nothing_is_lost(void **state)
{
	uint64_t seen[SL_FIGURES] = {0};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		for (uint64_t seed = 1; seed <= 3; seed++) {
			struct sl_world_ask ask = rows[i].ask;
			struct sl_arena *arena = sl_arena_new();
			struct sl_world_refusal refusal;
			struct sl_figures f, again;
			struct case_ c;

			ask.seed = seed;
			make_case(&c, seed, rows[i].gangs);
			assert_true(sl_world_run(&c.trace, &ask, arena, &f, &refusal));
			assert_books(rows[i].name, &c, &f);
			assert_true(
				sl_world_run(&c.trace, &ask, arena, &again, &refusal));
			assert_row_u64(rows[i].name, again.now, f.now);
			for (uint32_t p = 0; p <= f.projects; p++)
				assert_memory_equal(f.of[p].point, again.of[p].point,
					sizeof(f.of[p].point));
			for (int what = 0; what < SL_FIGURES; what++)
				seen[what] += f.of[f.projects].count[what];
			free_case(&c);
			sl_arena_free(arena);
		}
	}
	/* All that can happen has. */
	for (int what = 0; what < SL_FIGURES; what++)
		assert_true(what == SL_FIGURE_REFUSED || seen[what] > 0);
}

/* Each parking takes its time twice, and the task holds the GPUs meanwhile. So the jobs had that
 * much more GPU time, and nothing was done again. */
static void parking_costs(void **state)
{
	struct sl_world_ask ask = {.policy = SL_PLACE_PACK};
	struct sl_arena *arena = sl_arena_new();
	struct sl_world_refusal refusal;
	const struct sl_figures_project *all;
	struct sl_figures f;
	struct case_ c;
	double over;

	make_case(&c, 3, false);
	for (uint32_t i = 0; i < JOBS; i++) {
		c.trace.work_jobs[i].flags |= SL_JOB_PARKS;
		c.trace.work_jobs[i].swap_cost = 7 * SL_S;
		c.trace.jobs[i].need = (struct sl_need){1000, 1024, 1, WHOLE, 0, 0, 0};
	}
	assert_true(sl_world_run(&c.trace, &ask, arena, &f, &refusal));
	all = &f.of[f.projects];
	over = all->sum.used - asked_for(&c) - all->redone;
	assert_true(all->count[SL_FIGURE_PARKED] > 0);
	assert_int_equal(all->count[SL_FIGURE_TERMINATED], 0);
	if (fabs(over - 14.0 * WHOLE * (double)all->count[SL_FIGURE_PARKED]) >
		1e-3 * over)
		fail_msg("%.3f GPU-seconds for %" PRIu64 " times of parking",
			over / WHOLE, all->count[SL_FIGURE_PARKED]);
	free_case(&c);
	sl_arena_free(arena);
}

/* So does each move. No job gives way, because all are guaranteed their GPUs. */
static void moves_cost(void **state)
{
	struct sl_world_ask ask = {.policy = SL_PLACE_SPREAD, .moves = 1000};
	struct sl_arena *arena = sl_arena_new();
	struct sl_world_refusal refusal;
	const struct sl_figures_project *all;
	struct sl_figures f;
	struct case_ c;
	double over;

	make_case(&c, 3, false);
	c.work.projects.rows[2].quota.of[SL_RES_GPU] = 16 * WHOLE;
	for (uint32_t i = 0; i < JOBS; i++) {
		c.trace.work_jobs[i].flags = 0;
		c.trace.work_jobs[i].project = 2;
		c.trace.work_jobs[i].swap_cost = 7 * SL_S;
	}
	assert_true(sl_world_run(&c.trace, &ask, arena, &f, &refusal));
	all = &f.of[f.projects];
	over = all->sum.used - asked_for(&c);
	assert_true(all->count[SL_FIGURE_MOVED] > 0);
	assert_int_equal(all->count[SL_FIGURE_PARKED], 0);
	assert_int_equal(all->count[SL_FIGURE_ENDED], JOBS);
	assert_true(all->redone == 0);
	/* Tasks that move have half of a GPU, for 14 s. */
	if (fabs(over - 7.0 * WHOLE * (double)all->count[SL_FIGURE_MOVED]) > 1e-3 * over)
		fail_msg("%.3f GPU-seconds for %" PRIu64 " moves", over / WHOLE,
			all->count[SL_FIGURE_MOVED]);
	free_case(&c);
	sl_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_come_in_order),
		cmocka_unit_test(stretches_keep_the_sums),
		cmocka_unit_test(waits_by_rank),
		cmocka_unit_test(jain_as_published),
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(parking_costs),
		cmocka_unit_test(moves_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
