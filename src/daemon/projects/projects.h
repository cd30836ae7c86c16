/*
 * projects - files and rows of projects, and checks that they fit together
 *
 * A set is an array of rows that belongs to its holder. A file (YAML, see sluice-project(1)) is
 * read into a set whole or not at all. A set is then laid over another one, and the outcome is
 * checked as a whole: parents exist, no project is its own ancestor, children are not guaranteed
 * more than their parent. Rows name users and pools; their numbers are looked up where they are
 * needed. No threads, no clock, no look-ups of users. Used by daemon and command line.
 *
 *	projects:
 *	  research:
 *	    gpu: {quota: 8, limit: 16, over_quota_weight: 2}
 *	    memory: {limit: 512GiB}
 *	    groups: [ml]
 *	  vision:
 *	    parent: research
 *	    gpu: {quota: 4}
 *	    reclaim_min_runtime: 10m
 */
#ifndef SL_DAEMON_PROJECTS_PROJECTS_H
#define SL_DAEMON_PROJECTS_PROJECTS_H

#include <stdio.h>

#include "base/error.h"
#include "policy/quota/tree.h"

#define SL_PROJECTS_MAX      4096
#define SL_PROJECTS_FILE_MAX (4u << 20)
#define SL_PROJECT_NAME_MAX  64 /* with its NUL */
#define SL_PROJECT_LIST_MAX  256
#define SL_PROJECT_WEIGHT    1000000
/* The project of work that was given none; it always exists. */
#define SL_PROJECT_DEFAULT "default"

struct sl_project_row {
	char name[SL_PROJECT_NAME_MAX],
		parent[SL_PROJECT_NAME_MAX]; /* parent "": at the top */
	struct sl_quantity quota, limit;
	uint32_t weight[SL_RESOURCES];
	int32_t priority;
	sl_ns preempt_min_runtime, reclaim_min_runtime;
	bool no_swap;
	/* Names separated by commas; "": all users, or all pools. */
	char users[SL_PROJECT_LIST_MAX], groups[SL_PROJECT_LIST_MAX],
		pools[SL_PROJECT_LIST_MAX];
	uint64_t id;        /* for the policy; 0: none yet */
	unsigned long line; /* in the file; 0: none */
};

struct sl_projects {
	struct sl_project_row *rows;
	size_t count, room;
};

enum { SL_PROJECTS_OK = 0, SL_PROJECTS_BAD /* err names the fault and the remedy */ };

void sl_projects_fini(struct sl_projects *set);

/* The settings of a project that has none: no guaranteed GPUs, all of the rest, no limit. */
void sl_project_defaults(struct sl_project_row *row, const char *name);

/*
 * Reads size bytes of YAML into *set, which was empty. Errors begin with "NAME, line N: ". *set
 * stays empty on SL_PROJECTS_BAD. Parents may be in another set: whether projects fit together is
 * not checked.
 */
SL_MUST_CHECK int sl_projects_parse(const char *text, size_t size, const char *name,
	struct sl_projects *set, struct sl_error *err);
/* The same from a file; "-": the standard input. */
SL_MUST_CHECK int sl_projects_load(
	const char *path, struct sl_projects *set, struct sl_error *err);

/* NULL: unknown. The row belongs to the set, and moves when the set grows. */
struct sl_project_row *sl_projects_find(const struct sl_projects *set, const char *name);
/* Adds a copy of row, or replaces the row of that name, whose id is kept. -ENOMEM, or -ENOSPC
 * beyond SL_PROJECTS_MAX. */
SL_MUST_CHECK int sl_projects_put(
	struct sl_projects *set, const struct sl_project_row *row);
/* Harmless if it is unknown. */
void sl_projects_drop(struct sl_projects *set, const char *name);
SL_MUST_CHECK int sl_projects_copy(
	struct sl_projects *to, const struct sl_projects *from);

/* Checks the values of one row that did not come from a file. */
SL_MUST_CHECK int sl_project_check(
	const struct sl_project_row *row, struct sl_error *err);
/* Do the rows fit together? *culprit (or NULL) is the row at fault. O(rows x (levels + log
 * rows)). */
SL_MUST_CHECK int sl_projects_check(const struct sl_projects *set,
	const struct sl_project_row **culprit, struct sl_error *err);
/* Sorts the rows of a checked set: each follows its parent, siblings by name. */
void sl_projects_sort(struct sl_projects *set);

/* Letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 63. */
bool sl_project_is_name(const char *text);
/* Is word one of the names of list? An empty list has none. */
bool sl_project_lists(const char *list, const char *word);

/* The row's rules for the policy. pool_bit returns the number of a pool, below 32, or -1 for a pool
 * that does not exist, which is left out of .pools. Bit 63 alone in .pools: none of the row's pools
 * exists, so the project may use none. */
struct sl_project_rules sl_project_rules_of(const struct sl_project_row *row,
	int (*pool_bit)(void *context, const char *name), void *context);

/* Writes the row below "projects:", as sl_projects_parse() reads it. */
void sl_project_write(FILE *out, const struct sl_project_row *row);

/* "4", "0.5", "512GiB", "unlimited": as in files; returns buf. 32 bytes suffice. */
const char *sl_project_amount(
	enum sl_resource resource, int64_t amount, char *buf, size_t size);

#endif
