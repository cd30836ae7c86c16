/*
 * reference - see the header
 */
#include "reference.h"

/* --- Fractions. --- */

__extension__ typedef __int128 whole;

struct fraction {
	whole over, under; /* under > 0 */
};

static whole divisor(whole a, whole b)
{
	return b ? divisor(b, a % b) : a;
}

static struct fraction fraction(whole over, whole under)
{
	whole by = divisor(over < 0 ? -over : over, under);

	return by > 1 ? (struct fraction){over / by, under / by}
		      : (struct fraction){over, under};
}

static struct fraction plus(struct fraction a, struct fraction b)
{
	return fraction(a.over * b.under + b.over * a.under, a.under * b.under);
}

static struct fraction minus(struct fraction a, struct fraction b)
{
	return plus(a, (struct fraction){-b.over, b.under});
}

static struct fraction times(struct fraction a, struct fraction b)
{
	return fraction(a.over * b.over, a.under * b.under);
}

static int compare(struct fraction a, struct fraction b)
{
	whole differ = a.over * b.under - b.over * a.under;

	return differ < 0 ? -1 : differ > 0;
}

/* --- Fair shares. --- */

static int64_t usable(const struct sl_fairshare_row *row)
{
	return row->limit >= 0 && row->limit < row->asks ? row->limit : row->asks;
}

static int64_t guaranteed(const struct sl_fairshare_row *row)
{
	return row->quota >= 0 && row->quota < usable(row) ? row->quota : usable(row);
}

static bool wants_more(const struct sl_fairshare_row *row, int32_t priority)
{
	return row->priority == priority && row->weight > 0 && row->share < usable(row);
}

/* n + (n - usage), or 0; plain: n alone. */
static struct fraction part(
	const struct sl_fairshare_row *row, int64_t weights, bool plain)
{
	struct fraction n = fraction(row->weight, weights), result;
	uint32_t ppm = row->usage_ppm > 1000000 ? 1000000 : row->usage_ppm;

	if (plain)
		return n;
	result = plus(n, minus(n, fraction(ppm, 1000000)));
	return result.over > 0 ? result : (struct fraction){0, 1};
}

static struct fraction sum_of_parts(const struct sl_fairshare_row *rows, size_t count,
	int32_t priority, int64_t weights, bool plain)
{
	struct fraction sum = {0, 1};

	for (size_t i = 0; i < count; i++) {
		if (wants_more(&rows[i], priority))
			sum = plus(sum, part(&rows[i], weights, plain));
	}
	return sum;
}

/* One round; the remainders are left in rest[]. True: a project was satisfied. */
static bool a_round(struct sl_fairshare_row *rows, size_t count, int32_t priority,
	int64_t unit, int64_t *left, struct fraction *rest)
{
	int64_t weights = 0, gives[REF_PROJECTS + 1] = {0};
	struct fraction sum;
	bool plain, satisfied = false;

	for (size_t i = 0; i < count; i++)
		weights += wants_more(&rows[i], priority) ? rows[i].weight : 0;
	if (!weights)
		return false;
	sum = sum_of_parts(rows, count, priority, weights, false);
	plain = sum.over == 0;
	if (plain)
		sum = (struct fraction){1, 1};
	for (size_t i = 0; i < count; i++) {
		struct fraction give, units;
		int64_t still = usable(&rows[i]) - rows[i].share;

		rest[i] = (struct fraction){0, 1};
		if (!wants_more(&rows[i], priority))
			continue;
		give = times(times((struct fraction){*left, 1},
				     part(&rows[i], weights, plain)),
			(struct fraction){sum.under, sum.over});
		if (compare((struct fraction){still, 1}, give) <= 0) {
			gives[i] = still;
			satisfied = true;
			continue;
		}
		units = times(give, (struct fraction){1, unit});
		gives[i] = (int64_t)(units.over / units.under) * unit;
		rest[i] = minus(give, (struct fraction){gives[i], 1});
	}
	for (size_t i = 0; i < count; i++) {
		rows[i].share += gives[i];
		*left -= gives[i];
	}
	return satisfied;
}

static bool comes_before(const struct sl_fairshare_row *a, struct fraction rest_a,
	const struct sl_fairshare_row *b, struct fraction rest_b)
{
	int differ = compare(rest_a, rest_b);

	if (differ)
		return differ > 0;
	if (a->created != b->created)
		return a->created < b->created;
	return a->id < b->id;
}

/* Each that wants more gets a unit at most, the one with the largest remainder first. */
static void leftovers(struct sl_fairshare_row *rows, size_t count, int32_t priority,
	int64_t unit, int64_t *left, const struct fraction *rest)
{
	bool served[REF_PROJECTS + 1] = {false};

	while (*left > 0) {
		size_t best = count;
		int64_t give;

		for (size_t i = 0; i < count; i++) {
			if (served[i] || !wants_more(&rows[i], priority))
				continue;
			if (best == count ||
				comes_before(&rows[i], rest[i], &rows[best], rest[best]))
				best = i;
		}
		if (best == count)
			return;
		served[best] = true;
		give = usable(&rows[best]) - rows[best].share;
		give = give < unit ? give : unit;
		give = give < *left ? give : *left;
		rows[best].share += give;
		*left -= give;
	}
}

static bool somebody_wants(
	const struct sl_fairshare_row *rows, size_t count, int32_t priority)
{
	for (size_t i = 0; i < count; i++) {
		if (wants_more(&rows[i], priority))
			return true;
	}
	return false;
}

void ref_fairshare(
	struct sl_fairshare_row *rows, size_t count, int64_t total, int64_t unit)
{
	struct fraction rest[REF_PROJECTS + 1];
	int64_t left = total;

	for (size_t i = 0; i < count; i++) {
		rows[i].share = guaranteed(&rows[i]);
		left -= rows[i].share;
	}
	/* Priorities are few here, and known. */
	for (int32_t priority = 100; priority >= -100; priority--) {
		while (left > 0 && somebody_wants(rows, count, priority)) {
			while (left > 0 &&
				a_round(rows, count, priority, unit, &left, rest))
				;
			leftovers(rows, count, priority, unit, &left, rest);
		}
	}
}

/* --- The tree. --- */

struct ref_project *ref_find(struct ref *ref, uint64_t id)
{
	for (size_t i = 0; i < ref->projects; i++) {
		if (ref->project[i].id == id)
			return &ref->project[i];
	}
	return NULL;
}

static bool stands_in(const struct ref *ref, uint64_t id, uint64_t branch)
{
	while (id && id != branch)
		id = ref_find((struct ref *)ref, id)->parent;
	return id == branch;
}

static uint32_t levels_above(const struct ref *ref, uint64_t id)
{
	uint32_t levels = 0;

	for (; id; id = ref_find((struct ref *)ref, id)->parent)
		levels++;
	return levels;
}

static bool good_amounts(const struct sl_project_rules *rules)
{
	for (int r = 0; r < SL_RESOURCES; r++) {
		int64_t quota = rules->quota.of[r], limit = rules->limit.of[r];

		if (quota < -1 || limit < -1 || quota > SL_QUOTA_MOST ||
			limit > SL_QUOTA_MOST || (limit >= 0 && quota > limit))
			return false;
	}
	return true;
}

/* Are the children of every project guaranteed no more than the project itself? */
static bool sums_hold(const struct ref *ref)
{
	for (size_t i = 0; i < ref->projects; i++) {
		for (int r = 0; r < SL_RESOURCES; r++) {
			int64_t quota = ref->project[i].rules.quota.of[r], sum = 0;

			for (size_t j = 0; j < ref->projects; j++) {
				int64_t child = ref->project[j].rules.quota.of[r];

				if (ref->project[j].parent == ref->project[i].id &&
					child > 0)
					sum += child;
			}
			if (quota >= 0 && sum > quota)
				return false;
		}
	}
	return true;
}

static uint32_t deepest(const struct ref *ref)
{
	uint32_t most = 0;

	for (size_t i = 0; i < ref->projects; i++) {
		uint32_t levels = levels_above(ref, ref->project[i].id);

		most = levels > most ? levels : most;
	}
	return most;
}

enum sl_tree_outcome ref_put(struct ref *ref, uint64_t id, uint64_t parent,
	const struct sl_project_rules *rules, sl_ns now)
{
	static struct ref before;
	struct ref_project *project = ref_find(ref, id);

	if (!good_amounts(rules))
		return SL_TREE_VALUE;
	if (parent && !ref_find(ref, parent))
		return SL_TREE_PARENT;
	if (project && parent && stands_in(ref, parent, id))
		return SL_TREE_CYCLE;
	/* Do it, look, and take it back if it does not hold. */
	before = *ref;
	if (!project) {
		project = &ref->project[ref->projects++];
		*project = (struct ref_project){.id = id, .created = now};
	}
	project->parent = parent;
	project->rules = *rules;
	if (deepest(ref) > SL_PROJECT_DEEP) {
		*ref = before;
		return SL_TREE_DEEP;
	}
	if (!ref->sums_free && !sums_hold(ref)) {
		*ref = before;
		return SL_TREE_SUM;
	}
	if (ref->projects > REF_PROJECTS) {
		*ref = before;
		return SL_TREE_FULL;
	}
	return SL_TREE_OK;
}

static bool nothing(const struct sl_quantity *q)
{
	return !q->of[0] && !q->of[1] && !q->of[2] && !q->of[3];
}

bool ref_remove(struct ref *ref, uint64_t id)
{
	struct ref_project *project = ref_find(ref, id);

	for (size_t i = 0; i < ref->projects; i++) {
		if (ref->project[i].parent == id)
			return false;
	}
	if (!nothing(&project->has) || !nothing(&project->fixed) ||
		!nothing(&project->asks))
		return false;
	*project = ref->project[--ref->projects];
	return true;
}

#define BRANCH_SUM(field)                                                         \
	struct sl_quantity ref_##field(const struct ref *ref, uint64_t id)        \
	{                                                                         \
		struct sl_quantity sum = {{0}};                                   \
                                                                                  \
		for (size_t i = 0; i < ref->projects; i++) {                      \
			for (int r = 0; r < SL_RESOURCES; r++) {                  \
				if (stands_in(ref, ref->project[i].id, id))       \
					sum.of[r] += ref->project[i].field.of[r]; \
			}                                                         \
		}                                                                 \
		return sum;                                                       \
	}
BRANCH_SUM(has)
BRANCH_SUM(fixed)
BRANCH_SUM(asks)

int64_t ref_own_quota(const struct ref *ref, const struct ref_project *project, int r)
{
	int64_t quota = project->rules.quota.of[r], given = 0;

	for (size_t i = 0; i < ref->projects; i++) {
		if (ref->project[i].parent == project->id &&
			ref->project[i].rules.quota.of[r] > 0)
			given += ref->project[i].rules.quota.of[r];
	}
	if (quota < 0)
		return quota;
	return quota > given ? quota - given : 0;
}

/* What the branch could use, every level within its limit. */
static int64_t branch_usable(
	const struct ref *ref, const struct ref_project *project, int r)
{
	int64_t sum = project->asks.of[r], limit = project->rules.limit.of[r];

	for (size_t i = 0; i < ref->projects; i++) {
		if (ref->project[i].parent == project->id)
			sum += branch_usable(ref, &ref->project[i], r);
	}
	return limit >= 0 && limit < sum ? limit : sum;
}

static void share_below(struct ref *ref, struct ref_project *parent, int r, int64_t total)
{
	struct sl_fairshare_row rows[REF_PROJECTS + 1] = {0};
	struct ref_project *of[REF_PROJECTS + 1];
	size_t count = 0;

	for (size_t i = 0; i < ref->projects; i++) {
		struct ref_project *project = &ref->project[i];

		if (project->parent != (parent ? parent->id : 0))
			continue;
		of[count] = project;
		rows[count++] =
			(struct sl_fairshare_row){.quota = project->rules.quota.of[r],
				.limit = project->rules.limit.of[r],
				.asks = branch_usable(ref, project, r),
				.weight = project->rules.weight[r],
				.priority = project->rules.priority,
				.usage_ppm = project->usage_ppm[r],
				.created = project->created,
				.id = project->id};
	}
	if (parent)
		rows[count] =
			(struct sl_fairshare_row){.quota = ref_own_quota(ref, parent, r),
				.limit = -1,
				.asks = parent->asks.of[r],
				.weight = 1,
				.created = parent->created,
				.id = parent->id};
	ref_fairshare(rows, count + (parent ? 1 : 0), total, r == SL_RES_GPU ? 1000 : 1);
	if (parent && count)
		parent->own_share.of[r] = rows[count].share;
	else if (parent)
		parent->own_share.of[r] = total;
	for (size_t i = 0; i < count; i++) {
		of[i]->share.of[r] = rows[i].share;
		share_below(ref, of[i], r, rows[i].share);
	}
}

void ref_share(struct ref *ref, const struct sl_quantity *total)
{
	for (int r = 0; r < SL_RESOURCES; r++)
		share_below(ref, NULL, r, total->of[r]);
}

bool ref_allows(struct ref *ref, uint64_t id, const struct sl_quantity *more,
	bool within_quota, uint64_t *at)
{
	for (; id; id = ref_find(ref, id)->parent) {
		const struct sl_project_rules *rules = &ref_find(ref, id)->rules;
		struct sl_quantity has =
			within_quota ? ref_fixed(ref, id) : ref_has(ref, id);

		*at = id;
		for (int r = 0; r < SL_RESOURCES; r++) {
			int64_t most =
				within_quota ? rules->quota.of[r] : rules->limit.of[r];

			if (more->of[r] > 0 && most >= 0 &&
				has.of[r] + more->of[r] > most)
				return false;
		}
	}
	return true;
}

bool ref_branches(struct ref *ref, uint64_t a, uint64_t b, uint64_t *x, uint64_t *y)
{
	if (stands_in(ref, a, b) || stands_in(ref, b, a))
		return false;
	/* The highest of each way that the other is not in. */
	for (*x = a; ref_find(ref, *x)->parent &&
		     !stands_in(ref, b, ref_find(ref, *x)->parent);
		*x = ref_find(ref, *x)->parent)
		;
	for (*y = b; ref_find(ref, *y)->parent &&
		     !stands_in(ref, a, ref_find(ref, *y)->parent);
		*y = ref_find(ref, *y)->parent)
		;
	return true;
}

/* --- The order. --- */

/* One of the siblings that compete: a branch, or the own jobs of the parent. */
struct rival {
	struct ref_job *job;
	struct sl_quantity has, share, quota;
	int32_t priority;
	sl_ns created;
	uint64_t id;
};

static struct fraction dominant(const struct rival *rival, bool with)
{
	struct fraction most = {0, 1};

	for (int r = 0; r < SL_RESOURCES; r++) {
		whole has = rival->has.of[r] + (with ? rival->job->wants.of[r] : 0);
		struct fraction share;

		if (r != SL_RES_GPU && rival->quota.of[r] < 0)
			continue;
		share = rival->share.of[r] > 0 ? fraction(has, rival->share.of[r])
					       : fraction(1000 * has, 1);
		most = compare(share, most) > 0 ? share : most;
	}
	return most;
}

static bool is_under(const struct rival *rival)
{
	for (int r = 0; r < SL_RESOURCES; r++) {
		if (rival->job->wants.of[r] && rival->has.of[r] >= rival->share.of[r])
			return false;
	}
	return true;
}

static bool is_within(const struct rival *rival)
{
	for (int r = 0; r < SL_RESOURCES; r++) {
		if (rival->job->wants.of[r] && rival->quota.of[r] >= 0 &&
			rival->has.of[r] + rival->job->wants.of[r] > rival->quota.of[r])
			return false;
	}
	return true;
}

/* How far below its quota it is, as a number larger than any book if that has no bound. */
static int64_t deficit(const struct rival *rival, int r)
{
	return rival->quota.of[r] < 0 ? INT64_MAX : rival->quota.of[r] - rival->has.of[r];
}

/* Negative: a first. */
static int rivals(const struct rival *a, const struct rival *b)
{
	int by[] = {
		(int)is_under(b) - (int)is_under(a),
		(int)is_within(b) - (int)is_within(a),
		(a->priority < b->priority) - (a->priority > b->priority),
		compare(dominant(a, true), dominant(b, true)),
		compare(dominant(a, false), dominant(b, false)),
		(deficit(a, 0) < deficit(b, 0)) - (deficit(a, 0) > deficit(b, 0)),
		(deficit(a, 1) < deficit(b, 1)) - (deficit(a, 1) > deficit(b, 1)),
		(deficit(a, 2) < deficit(b, 2)) - (deficit(a, 2) > deficit(b, 2)),
		(deficit(a, 3) < deficit(b, 3)) - (deficit(a, 3) > deficit(b, 3)),
		(a->job->wants.of[0] > b->job->wants.of[0]) -
			(a->job->wants.of[0] < b->job->wants.of[0]),
		(a->job->wants.of[1] > b->job->wants.of[1]) -
			(a->job->wants.of[1] < b->job->wants.of[1]),
		(a->job->wants.of[2] > b->job->wants.of[2]) -
			(a->job->wants.of[2] < b->job->wants.of[2]),
		(a->job->wants.of[3] > b->job->wants.of[3]) -
			(a->job->wants.of[3] < b->job->wants.of[3]),
		(a->job->submitted > b->job->submitted) -
			(a->job->submitted < b->job->submitted),
		(a->created > b->created) - (a->created < b->created),
		(a->id > b->id) - (a->id < b->id),
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(by); i++) {
		if (by[i])
			return by[i];
	}
	return 0;
}

static bool job_first(const struct ref_job *a, const struct ref_job *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority;
	if (a->extra != b->extra)
		return !a->extra;
	if (a->submitted != b->submitted)
		return a->submitted < b->submitted;
	return a->id < b->id;
}

static struct ref_job *own_best(struct ref *ref, uint64_t project)
{
	struct ref_job *best = NULL;

	for (size_t i = 0; i < ref->jobs; i++) {
		struct ref_job *job = &ref->job[i];

		if (job->in && !job->shown && job->project == project &&
			(!best || job_first(job, best)))
			best = job;
	}
	return best;
}

/* The best of the branch below parent (0: of all). */
static struct ref_job *best_below(struct ref *ref, uint64_t parent)
{
	struct rival best = {0};
	bool children = false;

	for (size_t i = 0; i < ref->projects; i++) {
		struct ref_project *project = &ref->project[i];
		struct rival rival = {.job = NULL};

		if (project->parent != parent)
			continue;
		children = true;
		rival = (struct rival){.job = best_below(ref, project->id),
			.has = ref_has(ref, project->id),
			.share = project->share,
			.quota = project->rules.quota,
			.priority = project->rules.priority,
			.created = project->created,
			.id = project->id};
		if (rival.job && (!best.job || rivals(&rival, &best) < 0))
			best = rival;
	}
	if (parent && own_best(ref, parent)) {
		struct ref_project *project = ref_find(ref, parent);
		struct rival rival = {.job = own_best(ref, parent),
			.has = project->has,
			.share = project->own_share,
			.created = project->created,
			.id = project->id};

		if (!children)
			return rival.job;
		for (int r = 0; r < SL_RESOURCES; r++)
			rival.quota.of[r] = ref_own_quota(ref, project, r);
		if (!best.job || rivals(&rival, &best) < 0)
			best = rival;
	}
	return best.job;
}

struct ref_job *ref_next(struct ref *ref)
{
	return best_below(ref, 0);
}
