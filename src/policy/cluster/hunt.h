/*
 * hunt - what the three parts of a search for victims share
 *
 * search.c drives; candidates.c says who may go and in which order; cost.c
 * says what it costs to make room on one node. For these three only.
 */
#ifndef SL_POLICY_CLUSTER_HUNT_H
#define SL_POLICY_CLUSTER_HUNT_H

#include "policy/cluster/internal.h"

/* Tasks of a node that are looked at. */
#define HERE_MOST 96

/*
 * What is lost when tasks go, as one number that can be added up and compared. First what becomes
 * free, as all of it beyond what is needed is lost for nothing: GPUs in thousandths, and where no
 * GPU is needed cores, too; nothing where they only move. Then the number of tasks, and one more
 * for each gang that ends.
 */
typedef uint64_t sl_hunt_cost_t;
#define SL_HUNT_ONE_TASK  UINT64_C(1)
#define SL_HUNT_ONE_MILLI (UINT64_C(1) << 22)
#define SL_HUNT_NEVER     UINT64_MAX

/* Tasks of one node that would have to go, each with the rest of its job if it cannot spare it. */
struct sl_hunt_plan {
	struct sl_cl_task *task[HERE_MOST];
	uint32_t at[HERE_MOST]; /* while it is made */
	sl_hunt_cost_t cost[HERE_MOST], lost;
	uint32_t count;
	uint32_t per_gpu, per_cpu; /* weights of what becomes free */
	uint32_t tier;             /* the highest of theirs: see sl_cl_job */
	uint64_t rank;             /* of the most valuable of them */
};

struct sl_hunt {
	struct sl_cluster *cl;
	struct sl_cl_job *job;
	enum sl_cl_mode mode;
	struct sl_quantity rest; /* what it still wants */
	uint64_t mark;
	uint32_t nears, ranks, tasks;
	uint32_t first; /* node that was emptied first */
	bool pool_short, by_size;
	int64_t pool_wanted, pool_left;
	/* What is asked. dry: nothing is stopped, the answer is in `would`. relaxed: minimum
	 * runtimes, host memory and stops that failed keep nobody. above: of the same project those
	 * of higher priority, not of lower. */
	bool dry, relaxed, above;
	/* Somebody may not go before then who could be needed; SL_NS_NEVER: nobody. */
	sl_ns barred_until;
	struct sl_cl_would would;
};

/* The search itself, with what has been said so far. False: it leads nowhere, and everything is as
 * it was. */
bool sl_hunt_run(struct sl_hunt *h, struct sl_cl_group *group,
	const struct sl_cl_want *want, uint32_t wants);

/* --- why.c --- */
/* It led nowhere: the group's reason, as exactly as the mode can tell. back: it may not take back
 * what was taken from it. */
void sl_hunt_explain(struct sl_hunt *h, struct sl_cl_group *group,
	const struct sl_cl_want *want, uint32_t wants, bool back);

/* Candidates, and the nodes they stand on (cluster->near): for `wanted` tasks of that need. */
void sl_hunt_collect(struct sl_hunt *h, const struct sl_need *need, uint32_t wanted);

/* Fills plan with those who would have to go from that node for the task. False: nothing helps. */
bool sl_hunt_evaluate(struct sl_hunt *h, uint32_t number, const struct sl_cl_task *wanted,
	struct sl_hunt_plan *plan);
/* Tasks that a part can lose without falling below its least. */
uint32_t sl_hunt_spare(const struct sl_cl_part *part);
/* The weights for a task with that need. */
void sl_hunt_weigh(
	const struct sl_hunt *h, const struct sl_need *need, struct sl_hunt_plan *plan);
/* What is lost when this one goes, besides those of plan. */
sl_hunt_cost_t sl_hunt_cost(
	const struct sl_hunt_plan *plan, const struct sl_cl_task *task);
/* a is lost rather than b: of a lower tier; else cheaper; else first in rank. */
bool sl_hunt_before(const struct sl_cl_task *a, sl_hunt_cost_t cost_a,
	const struct sl_cl_task *b, sl_hunt_cost_t cost_b);
/* There is room in host memory for it, if that is where it goes. */
bool sl_hunt_has_pool(struct sl_hunt *h, const struct sl_cl_task *task);

#endif
