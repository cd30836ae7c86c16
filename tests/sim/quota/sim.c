/*
 * quota-sim - fair shares, projects and the order of their jobs at random, against a slow reference
 *
 *   quota-sim [--rounds N] [--seed S] [--quiet] [--mutant NAME]
 *
 * A round: rows of siblings, whose shares must be the reference's and must have the properties that
 * fairshare.h states; then a tree that grows, moves, shrinks and is booked on, with every outcome
 * as the reference's; then cycles of the order of jobs, with bookings, jobs and projects that come
 * and go meanwhile. Exit status 0: all as it should be; 1: not (the seed of the round is printed,
 * and plays it again with --rounds 1); 2: bad usage. --mutant is for the build with faults in it
 * (quota-sim-mutant), to which the ordinary program hands over.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/mutants.h"
#include "../common/options.h"
#include "policy/quota/joborder.h"
#include "reference.h"
#include "../common/rng.h"

#define LEVELS 5 /* of a usual tree */

static struct {
	struct sl_rng rng;
	uint64_t seed;
	bool quiet;
	struct ref ref;
	struct sl_arena *arena;
	struct sl_tree tree;
	struct sl_joborder *order;
	struct sl_joborder_job job[REF_JOBS]; /* by place in ref.job */
	uint64_t last_id;
	sl_ns now;
	uint64_t rows, puts, refused, shown;
} sim;

static SL_PRINTF(1, 2) void wrong(const char *format, ...)
{
	va_list args;

	if (!sim.quiet) {
		printf("quota-sim: seed %" PRIu64 ": ", sim.seed);
		va_start(args, format);
		(void)vprintf(format, args);
		va_end(args);
		putchar('\n');
	}
	exit(1);
}

static uint64_t below(uint64_t bound)
{
	return sl_rng_below(&sim.rng, bound);
}

static bool one_in(uint64_t n)
{
	return sl_rng_one_in(&sim.rng, n);
}

/* --- Rows of siblings. --- */

static int64_t some_amount(int64_t unit, uint64_t most_units, bool wholes)
{
	int64_t amount = (int64_t)below(most_units + 1) * unit;

	return wholes ? amount : amount + (int64_t)below((uint64_t)unit);
}

static struct sl_fairshare_row some_row(uint64_t id, int64_t unit, bool wholes)
{
	return (struct sl_fairshare_row){
		.quota = one_in(8)   ? -1
			 : one_in(3) ? 0
				     : some_amount(unit, 6, wholes),
		.limit = one_in(3) ? some_amount(unit, 12, wholes) : -1,
		.asks = some_amount(unit, 16, wholes),
		.weight = (uint32_t)below(6),
		.priority = (int32_t)below(3) - 1,
		.usage_ppm = one_in(3) ? (uint32_t)below(1200000) : 0,
		.created = below(4),
		.id = id,
	};
}

static int64_t may_have(const struct sl_fairshare_row *row)
{
	return row->limit >= 0 && row->limit < row->asks ? row->limit : row->asks;
}

static int64_t sure_of(const struct sl_fairshare_row *row)
{
	return row->quota >= 0 && row->quota < may_have(row) ? row->quota : may_have(row);
}

static void check_row(const struct sl_fairshare_row *row)
{
	if (row->share > may_have(row))
		wrong("id %" PRIu64 " has more than it can use", row->id);
	if (row->share < sure_of(row))
		wrong("id %" PRIu64 " has less than it is guaranteed", row->id);
	if (row->weight == 0 && row->share != sure_of(row))
		wrong("id %" PRIu64 " borrows with weight 0", row->id);
}

/* Two that differ in weight alone, or of which one is of higher priority and wants more. */
static void check_pair(const struct sl_fairshare_row *a, const struct sl_fairshare_row *b)
{
	if (a->quota == b->quota && a->limit == b->limit && a->asks == b->asks &&
		a->priority == b->priority && a->usage_ppm == b->usage_ppm &&
		a->weight > b->weight && a->share < b->share)
		wrong("id %" PRIu64 " is heavier than %" PRIu64 " and has less", a->id,
			b->id);
	if (a->priority > b->priority && a->weight && a->share < may_have(a) &&
		b->share > sure_of(b))
		wrong("id %" PRIu64 " of lower priority borrows what %" PRIu64 " wants",
			b->id, a->id);
}

static void check_properties(
	const struct sl_fairshare_row *rows, size_t count, int64_t total)
{
	int64_t sum = 0, sure = 0;
	bool wanted = false;

	for (size_t i = 0; i < count; i++) {
		check_row(&rows[i]);
		sum += rows[i].share;
		sure += sure_of(&rows[i]);
		wanted |= rows[i].weight && rows[i].share < may_have(&rows[i]);
		for (size_t j = 0; j < count; j++)
			check_pair(&rows[i], &rows[j]);
	}
	if (sum > (total > sure ? total : sure))
		wrong("%" PRId64 " given of %" PRId64, sum, total);
	if (wanted && sum < total)
		wrong("%" PRId64 " of %" PRId64 " stay over that a project wants",
			total - sum, total);
}

/* A project that asks for a unit more gets no less, in whole units. */
static void check_monotone(
	const struct sl_fairshare_row *rows, size_t count, int64_t total, int64_t unit)
{
	struct sl_fairshare_row more[REF_PROJECTS];
	size_t who = below(count);

	memcpy(more, rows, count * sizeof(rows[0]));
	more[who].asks += unit * (int64_t)sl_rng_between(&sim.rng, 1, 3);
	sl_fairshare(more, count, total, unit);
	if (more[who].share < rows[who].share)
		wrong("id %" PRIu64 " asks for %" PRId64 " instead of %" PRId64
		      " and has %" PRId64 " instead of %" PRId64,
			rows[who].id, more[who].asks, rows[who].asks, more[who].share,
			rows[who].share);
}

static void check_order_does_not_matter(
	const struct sl_fairshare_row *rows, size_t count, int64_t total, int64_t unit)
{
	struct sl_fairshare_row turned[REF_PROJECTS];

	for (size_t i = 0; i < count; i++)
		turned[count - 1 - i] = rows[i];
	sl_fairshare(turned, count, total, unit);
	for (size_t i = 0; i < count; i++) {
		if (turned[count - 1 - i].share != rows[i].share)
			wrong("the order of the rows matters to id %" PRIu64, rows[i].id);
	}
}

static void try_rows(void)
{
	struct sl_fairshare_row rows[REF_PROJECTS], same[REF_PROJECTS];
	int64_t unit = one_in(3) ? 1 : 1000;
	bool wholes = one_in(2), alike = one_in(3);
	size_t count = sl_rng_between(&sim.rng, 1, 10);
	int64_t total = some_amount(unit, 40, wholes);

	for (size_t i = 0; i < count; i++) {
		rows[i] = some_row(count - i, unit, wholes);
		if (alike && i && one_in(2)) {
			uint32_t weight = rows[i].weight;

			rows[i] = rows[i - 1];
			rows[i].id = count - i;
			rows[i].weight = weight;
		}
	}
	memcpy(same, rows, sizeof(rows[0]) * count);
	sl_fairshare(rows, count, total, unit);
	ref_fairshare(same, count, total, unit);
	for (size_t i = 0; i < count; i++) {
		if (rows[i].share != same[i].share)
			wrong("of %" PRId64 " id %" PRIu64 " gets %" PRId64
			      ", by the reference %" PRId64,
				total, rows[i].id, rows[i].share, same[i].share);
	}
	check_properties(rows, count, total);
	check_order_does_not_matter(rows, count, total, unit);
	if (wholes)
		check_monotone(rows, count, total, unit);
	sim.rows += count;
}

/* --- The tree. --- */

static uint64_t some_project(void)
{
	return sim.ref.projects ? sim.ref.project[below(sim.ref.projects)].id : 0;
}

static uint32_t number_of(uint64_t id)
{
	return id ? sl_tree_find(&sim.tree, id) : SL_PROJECT_NONE;
}

static uint32_t depth_of(uint64_t id)
{
	uint32_t depth = 0;

	for (; id; id = ref_find(&sim.ref, id)->parent)
		depth++;
	return depth;
}

static struct sl_project_rules some_rules(void)
{
	struct sl_project_rules rules = {
		.priority = one_in(4) ? (int32_t)below(3) - 1 : 0};

	for (int r = 0; r < SL_RESOURCES; r++) {
		int64_t unit = r == SL_RES_GPU ? 1000 : 1;
		int64_t quota = one_in(6) ? -1 : (int64_t)below(8) * unit / 2;

		rules.quota.of[r] = quota;
		rules.limit.of[r] =
			one_in(3) ? (quota > 0 ? quota : 0) + (int64_t)below(6) * unit
				  : -1;
		rules.weight[r] = (uint32_t)below(5);
	}
	if (one_in(40))
		rules.quota.of[below(SL_RESOURCES)] = -2 - (int64_t)below(3);
	if (one_in(40))
		rules.limit.of[below(SL_RESOURCES)] = SL_QUOTA_MOST + 1;
	if (one_in(40))
		rules.limit.of[0] = rules.quota.of[0] - 1;
	return rules;
}

static void check_links(void)
{
	struct sl_error err = {0};

	if (sl_tree_check(&sim.tree, &err))
		wrong("%s", err.text);
}

static uint64_t deepest_project(void)
{
	uint64_t best = 0;

	for (size_t i = 0; i < sim.ref.projects; i++) {
		if (!best || depth_of(sim.ref.project[i].id) > depth_of(best))
			best = sim.ref.project[i].id;
	}
	return best;
}

/* A new project, or another place or other rules for one; deep: as deep as it gets. */
static void put(bool deep)
{
	struct sl_project_rules rules = some_rules();
	uint64_t parent = one_in(5) ? 0 : some_project();
	uint64_t id = one_in(3) && sim.ref.projects ? some_project() : ++sim.last_id;
	enum sl_tree_outcome outcome, wanted;
	uint32_t number = SL_PROJECT_NONE, place;
	bool unknown = one_in(50);

	if (deep) {
		/* Only the depth may be in the way. */
		rules = (struct sl_project_rules){.limit = {{-1, -1, -1}}};
		if (one_in(2))
			parent = deepest_project();
	}
	while (!deep && parent && depth_of(parent) >= LEVELS)
		parent = ref_find(&sim.ref, parent)->parent;
	place = unknown ? SL_PROJECT_NONE - 1 : number_of(parent);
	outcome = sl_tree_put(&sim.tree, id, place, &rules, sim.now, &number);
	wanted = ref_put(&sim.ref, id, unknown ? UINT64_MAX : parent, &rules, sim.now);
	if (outcome != wanted)
		wrong("project %" PRIu64 " below %" PRIu64
		      ": outcome %d, by the reference %d",
			id, parent, outcome, wanted);
	if (outcome == SL_TREE_OK && number != number_of(id))
		wrong("project %" PRIu64 " got another number", id);
	sim.puts++;
	sim.refused += outcome != SL_TREE_OK;
}

static void drop(void)
{
	uint64_t id = some_project();

	if (!id)
		return;
	for (size_t i = 0; i < sim.ref.jobs; i++) {
		if (sim.ref.job[i].in && sim.ref.job[i].project == id)
			return; /* the owner's duty */
	}
	if (sl_tree_remove(&sim.tree, number_of(id)) != ref_remove(&sim.ref, id))
		wrong("project %" PRIu64 " removed, or not", id);
}

static void add_quantity(struct sl_quantity *to, int sign, const struct sl_quantity *what)
{
	for (int r = 0; r < SL_RESOURCES; r++)
		to->of[r] += sign * what->of[r];
}

static void book(uint64_t id, int sign, struct sl_quantity has, struct sl_quantity fixed,
	struct sl_quantity asks)
{
	struct ref_project *project = ref_find(&sim.ref, id);

	add_quantity(&project->has, sign, &has);
	add_quantity(&project->fixed, sign, &fixed);
	add_quantity(&project->asks, sign, &asks);
	sl_tree_book(&sim.tree, number_of(id), sign, &has, &fixed, &asks);
}

static void book_something(void)
{
	struct sl_quantity has = {{0}}, fixed = {{0}}, asks = {{0}};
	uint64_t id = some_project();

	if (!id)
		return;
	if (one_in(4)) {
		struct ref_project *project = ref_find(&sim.ref, id);

		book(id, -1, project->has, project->fixed, project->asks);
		return;
	}
	for (int r = 0; r < SL_RESOURCES; r++) {
		int64_t unit = r == SL_RES_GPU ? 500 : 1;

		asks.of[r] = (int64_t)below(9) * unit;
		has.of[r] = asks.of[r] / (int64_t)sl_rng_between(&sim.rng, 1, 4);
		fixed.of[r] = has.of[r] / (int64_t)sl_rng_between(&sim.rng, 1, 4);
	}
	book(id, 1, has, fixed, asks);
}

static void same(const char *what, uint64_t id, const struct sl_quantity *got,
	const struct sl_quantity *wanted)
{
	for (int r = 0; r < SL_RESOURCES; r++) {
		if (got->of[r] != wanted->of[r])
			wrong("%s of project %" PRIu64 ", resource %d: %" PRId64
			      ", by the reference %" PRId64,
				what, id, r, got->of[r], wanted->of[r]);
	}
}

static void compare_books(void)
{
	for (size_t i = 0; i < sim.ref.projects; i++) {
		const struct ref_project *project = &sim.ref.project[i];
		const struct sl_project *ours = &sim.tree.all[number_of(project->id)];
		struct sl_quantity has = ref_has(&sim.ref, project->id);
		struct sl_quantity fixed = ref_fixed(&sim.ref, project->id);
		struct sl_quantity asks = ref_asks(&sim.ref, project->id);

		if (ours->id != project->id || ours->created != project->created)
			wrong("project %" PRIu64 " is another one", project->id);
		same("has", project->id, &ours->has, &has);
		same("fixed", project->id, &ours->fixed, &fixed);
		same("asks", project->id, &ours->asks, &asks);
	}
}

static void share(void)
{
	struct sl_quantity total = {
		{(int64_t)below(40) * 500, (int64_t)below(60), (int64_t)below(60)}};

	sl_tree_share(&sim.tree, &total);
	ref_share(&sim.ref, &total);
	for (size_t i = 0; i < sim.ref.projects; i++) {
		const struct ref_project *project = &sim.ref.project[i];
		const struct sl_project *ours = &sim.tree.all[number_of(project->id)];

		same("share", project->id, &ours->share, &project->share);
		same("own share", project->id, &ours->own_share, &project->own_share);
	}
}

static void ask_the_tree(void)
{
	uint64_t a = some_project(), b = some_project(), x = 0, y = 0, level = 0;
	struct sl_quantity more = {
		{(int64_t)below(6) * 500, (int64_t)below(5), (int64_t)below(5)}};
	uint32_t at = SL_PROJECT_NONE, p, q;
	bool within = one_in(2), allowed;

	if (!a)
		return;
	allowed = sl_tree_allows(&sim.tree, number_of(a), &more, within, &at, NULL);
	if (allowed != ref_allows(&sim.ref, a, &more, within, &level) ||
		(!allowed && sim.tree.all[at].id != level))
		wrong("project %" PRIu64 " may have more, or not", a);
	allowed = sl_tree_branches(&sim.tree, number_of(a), number_of(b), &p, &q);
	if (allowed != ref_branches(&sim.ref, a, b, &x, &y) ||
		(allowed && (sim.tree.all[p].id != x || sim.tree.all[q].id != y)))
		wrong("projects %" PRIu64 " and %" PRIu64 " part elsewhere", a, b);
}

static void grow_a_tree(void)
{
	bool deep = one_in(6);
	uint64_t steps = deep ? 120 : 10 + below(50);

	for (uint64_t i = 0; i < steps; i++) {
		uint64_t what = below(10);

		sim.now += below(3);
		if (what < (deep ? 9 : 6))
			put(deep);
		else if (what < 7)
			drop();
		else
			book_something();
	}
	for (size_t i = 0; i < sim.ref.projects; i++) {
		struct ref_project *project = &sim.ref.project[i];

		for (int r = 0; r < SL_RESOURCES; r++) {
			project->usage_ppm[r] = one_in(5) ? (uint32_t)below(1000000) : 0;
			sim.tree.all[number_of(project->id)].usage_ppm[r] =
				project->usage_ppm[r];
		}
	}
	check_links();
	compare_books();
	share();
	for (int i = 0; i < 10; i++)
		ask_the_tree();
}

/* --- The order. --- */

/* Does one that was shown stand behind it? Then it has missed its turn. */
static bool missed(const struct ref_job *job)
{
	for (const struct sl_joborder_job *at = sim.job[job - sim.ref.job].after; at;
		at = at->after) {
		for (size_t i = 0; i < sim.ref.jobs; i++) {
			if (&sim.job[i] == at && sim.ref.job[i].shown)
				return true;
		}
	}
	return false;
}

static void add_job(void)
{
	struct sl_joborder_job *job;
	struct ref_job *ref;

	if (sim.ref.jobs == REF_JOBS || !sim.ref.projects)
		return;
	job = &sim.job[sim.ref.jobs];
	ref = &sim.ref.job[sim.ref.jobs++];
	*ref = (struct ref_job){.in = true,
		.id = ++sim.last_id,
		.project = some_project(),
		.priority = (int32_t)below(3) * 25,
		.extra = one_in(6),
		.submitted = below(6),
		.wants = {
			{(int64_t)below(4) * 500, (int64_t)below(3), (int64_t)below(3)}}};
	*job = (struct sl_joborder_job){.id = ref->id,
		.project = number_of(ref->project),
		.priority = ref->priority,
		.extra = ref->extra,
		.submitted = ref->submitted,
		.wants = ref->wants};
	sl_joborder_add(sim.order, job);
	ref->shown = missed(ref);
}

static void drop_job(void)
{
	size_t i;

	if (!sim.ref.jobs)
		return;
	i = below(sim.ref.jobs);
	sl_joborder_remove(sim.order, &sim.job[i]);
	sim.ref.job[i].in = false;
}

static void nothing_shown(void)
{
	for (size_t i = 0; i < sim.ref.jobs; i++)
		sim.ref.job[i].shown = false;
}

/* What may happen between one job and the next. */
static void meddle(struct ref_job *job)
{
	uint64_t what = below(24);
	struct sl_quantity none = {{0}};

	if (job && job->in && one_in(2))
		book(job->project, 1, job->wants, none, none);
	if (what == 0) {
		drop_job();
	} else if (what == 1) {
		add_job();
	} else if (what == 2 && sim.ref.projects) {
		uint64_t id = some_project();
		struct sl_quantity more = {{500, 1, 1}};

		book(id, 1, more, none, more);
		sl_joborder_booked(sim.order, number_of(id));
	} else if (what == 3 && one_in(4)) {
		uint64_t changes = sim.tree.changes;

		put(false);
		share();
		if (sim.tree.changes == changes)
			sl_joborder_begin(sim.order);
		nothing_shown();
	}
}

static void a_cycle(void)
{
	struct sl_joborder_job *job;
	struct ref_job *ref = NULL;
	unsigned int most = 10 * REF_JOBS;

	share();
	sl_joborder_begin(sim.order);
	nothing_shown();
	do {
		meddle(ref);
		job = sl_joborder_next(sim.order);
		ref = ref_next(&sim.ref);
		if (!job != !ref || (job && job->id != ref->id))
			wrong("next is job %" PRIu64 ", by the reference %" PRIu64,
				job ? job->id : 0, ref ? ref->id : 0);
		if (ref)
			ref->shown = true;
		sim.shown++;
	} while (ref && --most);
}

static void a_round(void)
{
	for (int i = 0; i < 30; i++)
		try_rows();
	sim.ref = (struct ref){.sums_free = one_in(3)};
	sim.arena = sl_arena_new();
	sl_tree_init(&sim.tree, sim.arena, REF_PROJECTS);
	sim.tree.sums_free = sim.ref.sums_free;
	sim.order = sl_joborder_new(sim.arena, &sim.tree);
	grow_a_tree();
	for (uint64_t jobs = below(REF_JOBS / 2); jobs; jobs--)
		add_job();
	a_cycle();
	for (int i = 0; i < 5; i++)
		drop_job();
	a_cycle();
	check_links();
	sim.arena = sl_arena_free(sim.arena);
}

/* --- The program. --- */

static int usage(void)
{
	fputs("usage: quota-sim [--rounds N] [--seed S] [--quiet] [--mutant NAME]\n",
		stderr);
	return 2;
}

int main(int argc, char **argv)
{
	uint64_t rounds = 1000, seed = 1;

	for (int i = 1; i < argc; i++) {
		const char *value = argv[i + 1];

		if (strcmp(argv[i], "--quiet") == 0) {
			sim.quiet = true;
		} else if (strcmp(argv[i], "--rounds") == 0 && value &&
			   sim_read_number(value, &rounds)) {
			i++;
		} else if (strcmp(argv[i], "--seed") == 0 && value &&
			   sim_read_number(value, &seed)) {
			i++;
		} else if (strcmp(argv[i], "--mutant") == 0 && value) {
			if (!sl_mutant_can_switch())
				return sim_hand_over("quota-sim", argv);
			if (!sl_mutant_switch(value))
				return usage();
			i++;
		} else {
			return usage();
		}
	}
	for (uint64_t i = 0; i < rounds; i++) {
		sim.seed = seed + i;
		sim.rng.state = sim.seed;
		a_round();
	}
	if (!sim.quiet)
		printf("quota-sim: %" PRIu64 " rounds from seed %" PRIu64 ": %" PRIu64
		       " rows shared, %" PRIu64 " projects put (%" PRIu64
		       " refused), %" PRIu64 " jobs in order: all as the reference\n",
			rounds, seed, sim.rows, sim.puts, sim.refused, sim.shown);
	return 0;
}
