/*
 * tree - projects, what they are guaranteed, and what they have
 *
 * A forest: a project without a parent is at the top. Amounts are thousandths of a GPU, thousandths
 * of a core, MiB, thousandths of a GPU's time. The books of a project are sums over its whole
 * branch. Pure; one array with children linked by number. Numbers are dense and reused after
 * removal.
 *
 * Jobs are usually in projects without children. A project with both shares what it has among its
 * children and its own jobs. These count as one more child, with the quota that the children leave,
 * weight 1 and priority 0.
 */
#ifndef SL_POLICY_QUOTA_TREE_H
#define SL_POLICY_QUOTA_TREE_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "policy/books/index.h"

/* COMPUTE: requests of GPUs' time. */
enum sl_resource {
	SL_RES_GPU = 0,
	SL_RES_CPU,
	SL_RES_MEMORY,
	SL_RES_COMPUTE,
	SL_RESOURCES
};

/* quota and limit of a resource without bound. */
#define SL_QUOTA_ALL (-1)
/* Largest quota, limit and book: whole numbers that a double holds. */
#define SL_QUOTA_MOST ((int64_t)1 << 53)

#define SL_PROJECT_NONE UINT32_MAX
#define SL_PROJECT_DEEP 16 /* levels at most */

struct sl_quantity {
	int64_t of[SL_RESOURCES];
};

/* Set by an administrator. */
struct sl_project_rules {
	struct sl_quantity quota;      /* guaranteed; SL_QUOTA_ALL: as much as there is */
	struct sl_quantity limit;      /* the most it may have; SL_QUOTA_ALL: no limit */
	uint32_t weight[SL_RESOURCES]; /* for what is over quota; 0: never borrows */
	int32_t priority;              /* higher ones get surplus first */
	sl_ns preempt_min_runtime, reclaim_min_runtime;
	uint64_t pools; /* bit i: may use pool i; 0: all */
	bool no_swap;   /* its tasks avoid GPUs that swap */
};

struct sl_project {
	bool used;
	uint64_t id;                        /* given by the caller */
	uint32_t parent, first_child, next; /* SL_PROJECT_NONE: none; next: sibling */
	uint32_t depth;                     /* 0: at the top */
	sl_ns created;
	struct sl_project_rules rules;
	/* The share of past time that it used, in millionths, for fairshare.h; set by the
	 * caller. */
	uint32_t usage_ppm[SL_RESOURCES];
	/* Books: what its running tasks have; of this, what cannot be preempted; and what all its
	 * tasks ask for, pending ones too. own_*: of jobs in this very project. */
	struct sl_quantity has, fixed, asks;
	/* What occupies nodes: stopping tasks included, promises not. */
	struct sl_quantity holds, holds_fixed;
	struct sl_quantity own_has, own_asks;
	/* Computed by sl_tree_share: what the branch could use, with each level within its limit;
	 * its fair share; and the part of quota and share for its own jobs (all of it without
	 * children). */
	struct sl_quantity usable, share, own_quota, own_share;
	struct sl_index_node by_id;
};

struct sl_fairshare_row;

struct sl_tree {
	struct sl_project *all;     /* `most` entries; those in use are below `high` */
	uint32_t most, high, roots; /* roots: first of the top level */
	/* Children may be guaranteed more than their parent (no SL_TREE_SUM). */
	bool sums_free;
	uint64_t changes; /* grows with each put and remove */
	uint32_t free;    /* removed projects, linked by next */
	struct sl_index by_id;
	struct sl_fairshare_row *rows; /* working space */
};

/* A tree of up to `most` projects; memory from arena. */
void sl_tree_init(struct sl_tree *tree, struct sl_arena *arena, uint32_t most);

enum sl_tree_outcome {
	SL_TREE_OK = 0,
	SL_TREE_FULL,
	SL_TREE_PARENT, /* unknown parent */
	SL_TREE_CYCLE,
	SL_TREE_DEEP,
	/* Children would be guaranteed more than their parent; SL_QUOTA_ALL does not count */
	SL_TREE_SUM,
	SL_TREE_VALUE, /* negative, above the limit, or beyond SL_QUOTA_MOST */
	SL_TREE_IN_USE /* not removed: it has children or jobs */
};

/*
 * Adds or changes the project with this id (parent: a number, or SL_PROJECT_NONE). All or nothing.
 * A branch that changes its parent takes its books along. now: creation time of a new project.
 * *number gets the project's number.
 */
SL_MUST_CHECK enum sl_tree_outcome sl_tree_put(struct sl_tree *tree, uint64_t id,
	uint32_t parent, const struct sl_project_rules *rules, sl_ns now,
	uint32_t *number);
/* False: it has children, or its books are not empty. */
SL_MUST_CHECK bool sl_tree_remove(struct sl_tree *tree, uint32_t number);
/* SL_PROJECT_NONE: unknown. O(1). */
uint32_t sl_tree_find(const struct sl_tree *tree, uint64_t id);

/* Adds to (sign 1) or subtracts from (-1) the books of the project and all above it. Fields may be
 * NULL. O(depth). */
void sl_tree_book(struct sl_tree *tree, uint32_t number, int sign,
	const struct sl_quantity *has, const struct sl_quantity *fixed,
	const struct sl_quantity *asks);

/* The same for what occupies nodes. */
void sl_tree_hold(struct sl_tree *tree, uint32_t number, int sign,
	const struct sl_quantity *holds, const struct sl_quantity *fixed);

/* Computes all fair shares of `total`, top down. O(projects x rounds of fairshare.h). */
void sl_tree_share(struct sl_tree *tree, const struct sl_quantity *total);

/*
 * With `more`, would the project and all above it stay within their limits? within_quota: instead,
 * would their non-preemptible work stay within their quotas? Only resources in `more` are checked.
 * False: *at gets the first project, from below, that would not, and *which the resource; both may
 * be NULL.
 */
bool sl_tree_allows(const struct sl_tree *tree, uint32_t number,
	const struct sl_quantity *more, bool within_quota, uint32_t *at,
	enum sl_resource *which);

/* The same by what occupies nodes: may it have that now, or only when something has gone? */
bool sl_tree_allows_now(const struct sl_tree *tree, uint32_t number,
	const struct sl_quantity *more, bool within_quota, uint32_t *at,
	enum sl_resource *which);

/* The children of the lowest common ancestor on the ways to a and b: the two branches that reclaim
 * compares. False: a == b, or one is above the other. */
bool sl_tree_branches(const struct sl_tree *tree, uint32_t a, uint32_t b,
	uint32_t *branch_a, uint32_t *branch_b);

/* 0, or 1 with the broken rule in err: links, depths, sums. For tests: O(everything). */
SL_MUST_CHECK int sl_tree_check(const struct sl_tree *tree, struct sl_error *err);

#endif
