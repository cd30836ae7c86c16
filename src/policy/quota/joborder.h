/*
 * joborder - which project is served next, and with which of its jobs
 *
 * Top down through the tree: of sibling projects that have jobs waiting, each with the job it would
 * be served with, first comes
 *   the one under its fair share (of every resource that the job wants it has less than its share),
 *   the one that stays within its quota with the job,
 *   the one of higher priority,
 *   the one whose dominant share is lower with the job, then: without it
 *     (dominant share: the largest of has / fair share over the GPUs and those resources whose
 *     guarantee is bounded; a share of 0 counts as a thousandth of what the books count in),
 *   the one that is further below its quota (in GPUs, then cores, then memory),
 *   the one whose job is smaller (in the same order),
 *   the one whose job is older, then the older project, then the smaller id.
 * Within a project: priority of the job, jobs that have not got their least before further tasks of
 * those that have, age, id. The jobs that stand in a project with children are one more child of it
 * (see tree.h).
 *
 * The owner asks for the next job, books what it gives it in the tree, and asks again:
 *
 *   sl_tree_share(tree, &total);
 *   sl_joborder_begin(order);
 *   while ((job = sl_joborder_next(order)))
 *       ... sl_tree_book(tree, job->project, 1, &gets, ...);
 *   for each that found its place: sl_joborder_remove(order, job)
 *
 * Each job is shown once after each begin, also if it got nothing; it stays in the order until it
 * is removed.
 *
 * Pure and exact: the answer depends on the tree and the jobs alone, not on the order in which they
 * came. Cost: begin O(projects), next O(levels x log siblings), add and remove O(log jobs of the
 * project). Not thread-safe.
 */
#ifndef SL_POLICY_QUOTA_JOBORDER_H
#define SL_POLICY_QUOTA_JOBORDER_H

#include "policy/quota/tree.h"

/* A job that waits; the owner's, who fills in the first part and does not change it while it is in
 * the order. */
struct sl_joborder_job {
	uint64_t id;
	uint32_t project; /* its number in the tree */
	int32_t priority;
	bool extra; /* runs already, and wants further tasks */
	sl_ns submitted;
	struct sl_quantity
		wants; /* what it would be given next: its least, or one further task */

	/* joborder's own; zero at first. */
	struct sl_joborder_job *up, *left, *right, *before, *after;
	bool in;
};

struct sl_joborder;

/* Of the projects of tree, which must outlive it. Memory from arena, for as many projects as the
 * tree may have. */
struct sl_joborder *sl_joborder_new(struct sl_arena *arena, const struct sl_tree *tree);

/* job must not be in; its project must exist. Between begin and the end of a cycle a new job may be
 * shown in this cycle or in the next one. */
void sl_joborder_add(struct sl_joborder *order, struct sl_joborder_job *job);
/* Nothing happens if it is not in. Also for a job that next has just returned. */
void sl_joborder_remove(struct sl_joborder *order, struct sl_joborder_job *job);

/* From the beginning, with the shares and books that the tree has now. Needed after sl_tree_share;
 * where projects were added, changed or removed, next does it by itself. */
void sl_joborder_begin(struct sl_joborder *order);

/* The best job that was not shown yet; NULL: none. Looks anew at the books of the project whose
 * job it returned last and of all above; bookings elsewhere must be told by sl_joborder_booked. */
struct sl_joborder_job *sl_joborder_next(struct sl_joborder *order);

/* The books of this project, and so of those above it, have changed. */
void sl_joborder_booked(struct sl_joborder *order, uint32_t project);

/* Jobs in the order of this project alone, not of those below it. */
uint32_t sl_joborder_count(const struct sl_joborder *order, uint32_t project);
/* The first of them, and from there by ->after: the order within the project. NULL: none. */
struct sl_joborder_job *sl_joborder_first(
	const struct sl_joborder *order, uint32_t project);

#endif
