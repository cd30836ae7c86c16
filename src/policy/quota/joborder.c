/*
 * joborder - see the header
 *
 * Within a project the order does not depend on books, so it is permanent: a treap finds the place
 * of a new job (its heights come from the ids, so they are the same everywhere), and a list through
 * it is walked. A cycle is a cursor on each list.
 *
 * Between siblings every booking changes the order, but only on the way from the booked project to
 * the top. So each project with children has a heap of those with jobs left, and each entry (slot)
 * holds the facts of its comparison. A booking sifts one slot per level.
 */
#include "policy/quota/joborder.h"

#include "policy/mutant.h"

__extension__ typedef unsigned __int128 wide;

/* has / share of the dominant resource. */
struct ratio {
	uint64_t has, share;
};

/* A branch with the job it would be served with: what decides its place among its siblings. */
struct slot {
	struct sl_joborder_job *job; /* NULL: it is in no heap */
	struct ratio with, without;
	struct sl_quantity below; /* how far below its quota; without bound: INT64_MAX */
	int32_t priority;
	bool under, within;
	sl_ns created;
	uint64_t id;
	uint32_t place; /* in the heap */
};

/* What is known of a project besides its slot. The last node is the top level: a heap without
 * jobs. */
struct node {
	struct sl_joborder_job *root, *first, *cursor;
	uint32_t count;
	uint32_t heap, in_heap,
		most; /* where its heap begins, entries, and room; 0: no children */
};

struct sl_joborder {
	const struct sl_tree *tree;
	struct node *node; /* by number; node[tree->most]: the top level */
	struct slot *slot; /* 2 x number: the branch; 2 x number + 1: its own jobs */
	uint32_t *heaps;   /* of slot numbers */
	uint32_t shown;    /* project of the job that was shown last */
	uint64_t changes;  /* of the tree, when the heaps were laid out */
	bool begun;
};

struct sl_joborder *sl_joborder_new(struct sl_arena *arena, const struct sl_tree *tree)
{
	struct sl_joborder *order = sl_arena_take(arena, sizeof(*order));
	size_t most = tree->most;

	order->tree = tree;
	order->node = sl_arena_take(arena, (most + 1) * sizeof(order->node[0]));
	order->slot = sl_arena_take(arena, 2 * most * sizeof(order->slot[0]));
	/* Each project is in the heap above it, and its own jobs may be in its own heap. */
	order->heaps = sl_arena_take(arena, 2 * most * sizeof(order->heaps[0]));
	order->shown = SL_PROJECT_NONE;
	return order;
}

/* --- Jobs of one project. --- */

static bool job_before(const struct sl_joborder_job *a, const struct sl_joborder_job *b)
{
	if (a->priority != b->priority)
		return SL_MUTANT(ORDER_JOB_PRIORITY, a->priority > b->priority,
			a->priority < b->priority);
	if (a->extra != b->extra)
		return SL_MUTANT(ORDER_EXTRA_FIRST, b->extra, a->extra);
	if (a->submitted != b->submitted)
		return SL_MUTANT(ORDER_JOB_YOUNGER,
			a->submitted<b->submitted, a->submitted> b->submitted);
	return a->id < b->id;
}

/* The height of a job in the treap: pseudo-random, but reproducible. */
static uint64_t height(const struct sl_joborder_job *job)
{
	uint64_t x = job->id + 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* The link that points to job. */
static struct sl_joborder_job **link_to(struct node *node, struct sl_joborder_job *job)
{
	if (!job->up)
		return &node->root;
	return job->up->left == job ? &job->up->left : &job->up->right;
}

/* job changes places with its parent. */
static void rotate_up(struct node *node, struct sl_joborder_job *job)
{
	struct sl_joborder_job *up = job->up, **link = link_to(node, up);
	struct sl_joborder_job **inner = up->left == job ? &job->right : &job->left;

	if (up->left == job)
		up->left = *inner;
	else
		up->right = *inner;
	if (*inner)
		(*inner)->up = up;
	*inner = up;
	job->up = up->up;
	up->up = job;
	*link = job;
}

static void add_job(struct node *node, struct sl_joborder_job *job)
{
	struct sl_joborder_job **link = &node->root;

	job->up = job->left = job->right = job->before = job->after = NULL;
	while (*link) {
		job->up = *link;
		if (job_before(job, *link)) {
			job->after = *link;
			link = &(*link)->left;
		} else {
			job->before = *link;
			link = &(*link)->right;
		}
	}
	*link = job;
	if (job->before)
		job->before->after = job;
	else
		node->first = job;
	if (job->after)
		job->after->before = job;
	while (job->up && height(job) > height(job->up))
		rotate_up(node, job);
	node->count++;
}

static void remove_job(struct node *node, struct sl_joborder_job *job)
{
	while (job->left || job->right) {
		struct sl_joborder_job *up = job->left;

		if (!up || (job->right && height(job->right) > height(up)))
			up = job->right;
		rotate_up(node, up);
	}
	*link_to(node, job) = NULL;
	if (job->before)
		job->before->after = job->after;
	else
		node->first = job->after;
	if (job->after)
		job->after->before = job->before;
	if (node->cursor == job)
		node->cursor = job->after;
	node->count--;
}

/* --- The facts of a comparison. --- */

/* a below b: a.has / a.share < b.has / b.share. */
static int compare_ratio(const struct ratio *a, const struct ratio *b)
{
	wide left = (wide)a->has * b->share, right = (wide)b->has * a->share;

	return left < right ? -1 : left > right;
}

/*
 * A share of 0 counts as a thousandth of a unit of the books. A resource other than GPUs that is
 * guaranteed without bound is left out: its share is whatever the project asks for.
 */
static struct ratio dominant(const struct sl_quantity *has,
	const struct sl_quantity *wants, const struct sl_quantity *share,
	const struct sl_quantity *quota)
{
	struct ratio most = {0, 1};

	for (int r = 0; r < SL_RESOURCES; r++) {
		int64_t sum = has->of[r] + (wants ? wants->of[r] : 0);
		struct ratio ratio = {sum > 0 ? (uint64_t)sum : 0, 1};

		if (r != SL_RES_GPU && quota->of[r] == SL_QUOTA_ALL)
			continue;
		if (share->of[r] > 0)
			ratio.share = (uint64_t)share->of[r];
		else
			ratio.has *= 1000;
		if (compare_ratio(&ratio, &most) > 0)
			most = ratio;
	}
	return most;
}

static bool stays_below(const struct sl_quantity *has, const struct sl_quantity *wants,
	const struct sl_quantity *most, bool with)
{
	for (int r = 0; r < SL_RESOURCES; r++) {
		int64_t sum = has->of[r] + (with ? wants->of[r] : 1);

		if (wants->of[r] && most->of[r] != SL_QUOTA_ALL && sum > most->of[r])
			return false;
	}
	return true;
}

/* Fills slot for the branch of project (own: for the jobs in the project itself). */
static void look(struct sl_joborder *order, struct slot *slot, uint32_t number, bool own)
{
	const struct sl_project *project = &order->tree->all[number];
	const struct sl_quantity *has = own ? &project->own_has : &project->has;
	const struct sl_quantity *share = own ? &project->own_share : &project->share;
	const struct sl_quantity *quota =
		own ? &project->own_quota : &project->rules.quota;
	const struct sl_quantity *wants = &slot->job->wants;

	slot->under = stays_below(has, wants, share, false);
	slot->within = stays_below(has, wants, quota, true);
	slot->priority = own ? 0 : project->rules.priority;
	slot->with = dominant(has, wants, share, quota);
	slot->without = dominant(has, NULL, share, quota);
	for (int r = 0; r < SL_RESOURCES; r++)
		slot->below.of[r] = quota->of[r] == SL_QUOTA_ALL
					    ? INT64_MAX
					    : quota->of[r] - has->of[r];
	slot->created = project->created;
	slot->id = project->id;
}

/* GPUs, then cores, memory and time. */
static int compare(const struct sl_quantity *a, const struct sl_quantity *b)
{
	for (int r = 0; r < SL_RESOURCES; r++) {
		if (a->of[r] != b->of[r])
			return a->of[r] < b->of[r] ? -1 : 1;
	}
	return 0;
}

/* The older one, when all else is equal. */
static bool slot_older(const struct slot *a, const struct slot *b)
{
	if (a->job->submitted != b->job->submitted)
		return SL_MUTANT(ORDER_YOUNGER,
			a->job->submitted<b->job->submitted, a->job->submitted> b->job
				->submitted);
	if (a->created != b->created)
		return SL_MUTANT(ORDER_YOUNGER_PROJECT,
			a->created<b->created, a->created> b->created);
	return a->id < b->id;
}

static bool slot_before(const struct slot *a, const struct slot *b)
{
	int differ;

	if (SL_MUTANT(ORDER_NO_SHARE, a->under != b->under, false))
		return a->under;
	if (SL_MUTANT(ORDER_NO_QUOTA, a->within != b->within, false))
		return a->within;
	if (a->priority != b->priority)
		return SL_MUTANT(ORDER_LOW_FIRST, a->priority > b->priority,
			a->priority < b->priority);
	differ = SL_MUTANT(ORDER_NO_WITH, compare_ratio(&a->with, &b->with), 0);
	if (differ)
		return differ < 0;
	differ = SL_MUTANT(ORDER_NO_WITHOUT, compare_ratio(&a->without, &b->without), 0);
	if (differ)
		return differ < 0;
	differ = SL_MUTANT(ORDER_NO_DEFICIT, compare(&b->below, &a->below), 0);
	if (differ)
		return differ < 0;
	differ = SL_MUTANT(ORDER_NO_SIZE, compare(&a->job->wants, &b->job->wants), 0);
	if (differ)
		return differ < 0;
	return slot_older(a, b);
}

/* --- Heaps of siblings. --- */

static void place_at(
	struct sl_joborder *order, uint32_t *heap, uint32_t place, uint32_t slot)
{
	heap[place] = slot;
	order->slot[slot].place = place;
}

/* Moves the slot at place up or down to where it belongs. */
static void sift(struct sl_joborder *order, struct node *node, uint32_t place)
{
	uint32_t *heap = order->heaps + node->heap, moving = heap[place];
	const struct slot *slots = order->slot;

	while (place && slot_before(&slots[moving], &slots[heap[(place - 1) / 2]])) {
		place_at(order, heap, place, heap[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	for (;;) {
		uint32_t child = 2 * place + 1;

		if (child + 1 < node->in_heap &&
			slot_before(&slots[heap[child + 1]], &slots[heap[child]]))
			child++;
		if (child >= node->in_heap ||
			!slot_before(&slots[heap[child]], &slots[moving]))
			break;
		place_at(order, heap, place, heap[child]);
		place = child;
	}
	place_at(order, heap, place, moving);
}

/* Makes the slot stand for job; NULL: for none. */
static void set_slot(struct sl_joborder *order, struct node *node, uint32_t number,
	struct sl_joborder_job *job)
{
	struct slot *slot = &order->slot[number];
	bool stood = slot->job;

	slot->job = job;
	if (job) {
		look(order, slot, number / 2, number & 1);
		if (!stood)
			place_at(order, order->heaps + node->heap, node->in_heap++,
				number);
		sift(order, node, slot->place);
	} else if (stood) {
		uint32_t *heap = order->heaps + node->heap;
		uint32_t place = slot->place, last = heap[--node->in_heap];

		if (last == number)
			return;
		place_at(order, heap, place, last);
		sift(order, node, place);
	}
}

/* The job that the branch of the project would be served with. */
static struct sl_joborder_job *best_of(struct sl_joborder *order, const struct node *node)
{
	if (!node->most)
		return node->cursor;
	return node->in_heap ? order->slot[order->heaps[node->heap]].job : NULL;
}

/* The heaps fit the present tree. If not, begin rebuilds everything anyway. */
static bool is_current(const struct sl_joborder *order)
{
	return order->begun && order->changes == order->tree->changes;
}

/* Recomputes from this project up to the top. */
static void refresh(struct sl_joborder *order, uint32_t number)
{
	struct node *node = &order->node[number];

	if (!is_current(order))
		return;
	if (node->most)
		set_slot(order, node, 2 * number + 1, node->cursor);
	while (number != SL_PROJECT_NONE) {
		uint32_t parent = order->tree->all[number].parent;
		struct node *above =
			&order->node[parent == SL_PROJECT_NONE ? order->tree->most
							       : parent];

		set_slot(order, above, 2 * number, best_of(order, &order->node[number]));
		number = parent;
	}
}

/* --- Public functions. --- */

void sl_joborder_add(struct sl_joborder *order, struct sl_joborder_job *job)
{
	struct node *node = &order->node[job->project];

	add_job(node, job);
	job->in = true;
	if (job->after ? job->after == node->cursor : !node->cursor) {
		node->cursor = job;
		refresh(order, job->project);
	}
}

void sl_joborder_remove(struct sl_joborder *order, struct sl_joborder_job *job)
{
	struct node *node = &order->node[job->project];
	bool next = node->cursor == job;

	if (!job->in)
		return;
	remove_job(node, job);
	job->in = false;
	if (next)
		refresh(order, job->project);
}

/* Gives the children of one parent their heap, whose first place is *at, and fills it from
 * below. */
static void begin_level(
	struct sl_joborder *order, struct node *node, uint32_t first, uint32_t *at)
{
	const struct sl_tree *tree = order->tree;
	uint32_t most = node != &order->node[tree->most] ? 1 : 0;

	for (uint32_t i = first; i != SL_PROJECT_NONE; i = tree->all[i].next)
		most++;
	*node = (struct node){.root = node->root,
		.first = node->first,
		.cursor = node->first,
		.count = node->count,
		.heap = *at,
		.most = most};
	*at += most;
	for (uint32_t i = first; i != SL_PROJECT_NONE; i = tree->all[i].next) {
		struct node *child = &order->node[i];

		if (tree->all[i].first_child != SL_PROJECT_NONE) {
			begin_level(order, child, tree->all[i].first_child, at);
			set_slot(order, child, 2 * i + 1, child->cursor);
		} else {
			child->cursor = child->first;
			child->in_heap = child->most = 0;
		}
		set_slot(order, node, 2 * i, best_of(order, child));
	}
}

void sl_joborder_begin(struct sl_joborder *order)
{
	const struct sl_tree *tree = order->tree;
	uint32_t at = 0;

	for (uint32_t i = 0; i < 2 * tree->high; i++)
		order->slot[i].job = NULL;
	order->shown = SL_PROJECT_NONE;
	order->begun = true;
	order->changes = tree->changes;
	begin_level(order, &order->node[tree->most], tree->roots, &at);
}

void sl_joborder_booked(struct sl_joborder *order, uint32_t project)
{
	refresh(order, project);
}

struct sl_joborder_job *sl_joborder_next(struct sl_joborder *order)
{
	struct node *top = &order->node[order->tree->most], *node;
	struct sl_joborder_job *job;

	if (!is_current(order))
		sl_joborder_begin(order);
	if (order->shown != SL_PROJECT_NONE)
		refresh(order, order->shown);
	order->shown = SL_PROJECT_NONE;
	job = best_of(order, top);
	if (!job)
		return NULL;
	node = &order->node[job->project];
	node->cursor = job->after;
	/* The next call reads it after the caller's work; without this, each of 100,000 jobs costs
	 * a cache miss. */
	__builtin_prefetch(node->cursor);
	order->shown = job->project;
	return job;
}

uint32_t sl_joborder_count(const struct sl_joborder *order, uint32_t project)
{
	return order->node[project].count;
}

struct sl_joborder_job *sl_joborder_first(
	const struct sl_joborder *order, uint32_t project)
{
	return order->node[project].first;
}
