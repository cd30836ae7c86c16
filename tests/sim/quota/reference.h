/*
 * reference - fair shares, the tree of projects and the order of jobs, slow and plain
 *
 * What policy/quota does, written once more from its rules and differently: by ids and scans over
 * everything, with fractions instead of common denominators, without sorting, heaps, links or
 * anything kept. For small numbers only.
 */
#ifndef SL_SIM_QUOTA_REFERENCE_H
#define SL_SIM_QUOTA_REFERENCE_H

#include "policy/quota/fairshare.h"
#include "policy/quota/tree.h"

#define REF_PROJECTS 40
#define REF_JOBS     120

struct ref_project {
	uint64_t id, parent; /* ids; parent 0: the top */
	sl_ns created;
	struct sl_project_rules rules;
	uint32_t usage_ppm[SL_RESOURCES];
	struct sl_quantity has, fixed, asks; /* its own */
	struct sl_quantity share, own_share; /* computed */
};

struct ref_job {
	bool in, shown;
	uint64_t id, project; /* ids */
	int32_t priority;
	bool extra;
	sl_ns submitted;
	struct sl_quantity wants;
};

struct ref {
	struct ref_project project[REF_PROJECTS + 1]; /* one to try */
	size_t projects;
	struct ref_job job[REF_JOBS];
	size_t jobs;
	bool sums_free;
};

/* The rule of fairshare.h; only quota to id of the rows are read, and share is written. */
void ref_fairshare(
	struct sl_fairshare_row *rows, size_t count, int64_t total, int64_t unit);

struct ref_project *ref_find(struct ref *ref, uint64_t id);
enum sl_tree_outcome ref_put(struct ref *ref, uint64_t id, uint64_t parent,
	const struct sl_project_rules *rules, sl_ns now);
bool ref_remove(struct ref *ref, uint64_t id);
/* The sum over the branch of one of the three books. */
struct sl_quantity ref_has(const struct ref *ref, uint64_t id);
struct sl_quantity ref_fixed(const struct ref *ref, uint64_t id);
struct sl_quantity ref_asks(const struct ref *ref, uint64_t id);
/* What the children leave of its quota. */
int64_t ref_own_quota(const struct ref *ref, const struct ref_project *project, int r);
void ref_share(struct ref *ref, const struct sl_quantity *total);
bool ref_allows(struct ref *ref, uint64_t id, const struct sl_quantity *more,
	bool within_quota, uint64_t *at);
bool ref_branches(struct ref *ref, uint64_t a, uint64_t b, uint64_t *x, uint64_t *y);

/* The job that comes next of those in and not shown; NULL: none. Marks nothing. */
struct ref_job *ref_next(struct ref *ref);

#endif
