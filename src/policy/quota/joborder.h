/*
 * joborder - which project is served next, and with which of its jobs
 *
 * Goes top down through the tree. Sibling projects with waiting jobs are compared with the job that
 * each would be served with. First comes, in this order:
 *   the one under its fair share (it has less than its share of every resource that the job wants);
 *   the one that stays within its quota with the job;
 *   the one of higher priority;
 *   the one whose dominant share is lower with the job, then without it;
 *   the one that is further below its quota (in GPUs, then cores, then memory);
 *   the one whose job is smaller (in the same order);
 *   the one whose job is older, then the older project, then the smaller id.
 * Dominant share: the largest of has / fair share over the GPUs and those resources whose guarantee
 * is bounded. A share of 0 counts as a thousandth of a unit of the books.
 * Within a project: job priority, then jobs without their least before further tasks of others,
 * age, id. The jobs of a project with children are one more child of it (see tree.h).
 *
 * The owner asks for the next job, books in the tree what the job gets, and asks again:
 *
 *   sl_tree_share(tree, &total);
 *   sl_joborder_begin(order);
 *   while ((job = sl_joborder_next(order)))
 *       ... sl_tree_book(tree, job->project, 1, &gets, ...);
 *   for each that found its place: sl_joborder_remove(order, job)
 *
 * Each job is shown once after each begin, even if it got nothing, and stays in the order until it
 * is removed.
 *
 * Pure and exact: the answer depends on the tree and the jobs alone, not on the order of adding.
 * Cost: begin O(projects), next O(levels x log siblings), add and remove O(log jobs of the
 * project). Not thread-safe.
 */
#ifndef SL_POLICY_QUOTA_JOBORDER_H
#define SL_POLICY_QUOTA_JOBORDER_H

#include "policy/quota/tree.h"

/* A waiting job. It belongs to the owner, which fills in the first part and does not change it
 * while the job is in the order. */
struct sl_joborder_job {
	uint64_t id;
	uint32_t project; /* its number in the tree */
	int32_t priority;
	bool extra; /* runs already and wants further tasks */
	sl_ns submitted;
	/* What it would get next: its least, or one further task */
	struct sl_quantity wants;

	/* joborder's own; initially zero. */
	struct sl_joborder_job *up, *left, *right, *before, *after;
	bool in;
};

struct sl_joborder;

/* For the projects of tree, which must outlive it. Memory comes from arena, for as many projects as
 * the tree may have. */
struct sl_joborder *sl_joborder_new(struct sl_arena *arena, const struct sl_tree *tree);

/* job must not be in the order; its project must exist. During a cycle, a new job may be shown in
 * this cycle or in the next. */
void sl_joborder_add(struct sl_joborder *order, struct sl_joborder_job *job);
/* Does nothing if it is not in the order. Allowed for a job that next has just returned. */
void sl_joborder_remove(struct sl_joborder *order, struct sl_joborder_job *job);

/* Starts over with the tree's present shares and books. Needed after sl_tree_share. After projects
 * were added, changed or removed, sl_joborder_next does it by itself. */
void sl_joborder_begin(struct sl_joborder *order);

/* The best job not shown yet; NULL: none. Rereads the books of the project whose job it last
 * returned and of all above; report other bookings by sl_joborder_booked. */
struct sl_joborder_job *sl_joborder_next(struct sl_joborder *order);

/* The books of this project, and so of those above it, changed. */
void sl_joborder_booked(struct sl_joborder *order, uint32_t project);

/* Jobs of this project alone, not of those below it. */
uint32_t sl_joborder_count(const struct sl_joborder *order, uint32_t project);
/* The first of them; ->after follows the order within the project. NULL: none. */
struct sl_joborder_job *sl_joborder_first(
	const struct sl_joborder *order, uint32_t project);

#endif
