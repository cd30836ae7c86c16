/*
 * search - what the parts of a search for victims share
 *
 * search.c drives the search; candidates.c says which tasks may go, in which order; cost.c says
 * what room on one node costs. Only these and why.c include this header.
 */
#ifndef SL_POLICY_CLUSTER_SEARCH_H
#define SL_POLICY_CLUSTER_SEARCH_H

#include "policy/cluster/internal.h"

/* Tasks of a node that a search visits. */
#define HERE_MOST 96

/*
 * What is lost when tasks go, as one number to add and compare. First counts what becomes free,
 * because all of it beyond the need is wasted: GPUs in thousandths, or cores if no GPU is needed;
 * nothing if tasks only move. Then counts the number of tasks, plus one for each gang that ends.
 */
typedef uint64_t sl_search_cost_t;
#define SL_SEARCH_ONE_TASK  UINT64_C(1)
#define SL_SEARCH_ONE_MILLI (UINT64_C(1) << 22)
#define SL_SEARCH_NEVER     UINT64_MAX

/* Tasks of one node that would have to go, each with the rest of its job if that cannot spare
 * it. */
struct sl_search_plan {
	struct sl_cl_task *task[HERE_MOST];
	uint32_t at[HERE_MOST]; /* during construction */
	sl_search_cost_t cost[HERE_MOST], lost;
	uint32_t count;
	uint32_t per_gpu, per_cpu; /* weights of what becomes free */
	bool moves;                /* none of them is lost */
	uint32_t tier;             /* the highest of its tasks: see sl_cl_job */
	uint64_t rank;             /* of the most valuable of them */
};

struct sl_search {
	struct sl_cluster *cl;
	struct sl_cl_job *job;
	enum sl_cl_mode mode;
	struct sl_quantity rest; /* what the job still wants */
	uint64_t mark;
	uint32_t nears, ranks, tasks;
	uint32_t first;  /* node that was emptied first */
	uint32_t moving; /* tasks for which host memory is reserved */
	bool pool_short, moves_short, by_size;
	int64_t pool_wanted, pool_left;
	/* What is asked. dry: stop nothing, only fill `would`. relaxed: tasks may go even before
	 * their minimum runtime, without host memory for them, after failed stops, and beyond
	 * move_most. above:
	 * victims are jobs of higher priority of the same project instead of lower. */
	bool dry, relaxed, above;
	/* A task that could be needed may not go before then; SL_NS_NEVER: there is none. */
	sl_ns barred_until;
	struct sl_cl_would would;
};

/* Runs the search from its present state. False: it found nothing, and everything is as before. */
bool sl_search_run(struct sl_search *h, struct sl_cl_group *group,
	const struct sl_cl_want *want, uint32_t wants);

/* --- why.c --- */
/* After a search that found nothing, sets the group's reason as exactly as the mode can tell. back:
 * the job was not allowed to take back what was taken from it. */
void sl_search_explain(struct sl_search *h, struct sl_cl_group *group,
	const struct sl_cl_want *want, uint32_t wants, bool back);

/* Collects candidates and their nodes (cluster->near) for `wanted` tasks of that need. */
void sl_search_collect(struct sl_search *h, const struct sl_need *need, uint32_t wanted);

/* Fills plan with the tasks that would have to leave that node. False: nothing helps. */
bool sl_search_evaluate(struct sl_search *h, uint32_t number,
	const struct sl_cl_task *wanted, struct sl_search_plan *plan);
/* Tasks that a part can lose without falling below its least. */
uint32_t sl_search_spare(const struct sl_cl_part *part);
/* Sets the weights for a task with that need. */
void sl_search_weigh(const struct sl_search *h, const struct sl_need *need,
	struct sl_search_plan *plan);
/* What is lost when this task goes, besides those of plan. */
sl_search_cost_t sl_search_cost(
	const struct sl_search_plan *plan, const struct sl_cl_task *task);
/* a is lost rather than b: lower tier; else cheaper; else first in rank. */
bool sl_search_before(const struct sl_cl_task *a, sl_search_cost_t cost_a,
	const struct sl_cl_task *b, sl_search_cost_t cost_b);
/* Host memory has room for the task, if that is where it goes. */
bool sl_search_has_pool(struct sl_search *h, const struct sl_cl_task *task);
/* Its tasks go through host memory to other GPUs of their node. */
static inline bool sl_search_moves(const struct sl_search *h, const struct sl_cl_job *job)
{
	return h->mode == SL_CL_CONSOLIDATE && sl_cl_movable(job);
}
/* move_most leaves one more of these. */
bool sl_search_has_move(struct sl_search *h);
/* Until when the task does not go. */
sl_ns sl_search_spared(const struct sl_search *h, const struct sl_cl_task *task);

#endif
