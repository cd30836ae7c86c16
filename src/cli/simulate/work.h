/*
 * work - a job's owner, duration and way of being stopped; what a node can park
 *
 * The columns for projects only, all optional and found by name:
 *   nodes  pool (a name), host_mib (host memory for what is parked; half of memory_mib), swaps (yes
 *          or no)
 *   jobs   project (`default`), user, priority (50), gang (tasks, 1), min (of them that must run
 *          together; all), preemptible (yes below priority 100), on_reclaim (park or terminate),
 *          swap_cost (seconds to park a task or to bring it back), park_mib (host memory of a
 *          parked task; gpu_mib x num_gpu), duration (seconds that it takes with all its tasks;
 *          deletion_time - creation_time)
 * A file of projects is one for `sluice project apply`. Errors name file and line.
 */
#ifndef SL_CLI_SIMULATE_WORK_H
#define SL_CLI_SIMULATE_WORK_H

#include "cli/simulate/csv.h"
#include "daemon/projects/projects.h"
#include "policy/cluster.h"

#define SL_WORK_POOLS 30
/* Ten times the daemon's maximum. Each failure of a node examines all tasks; with a larger maximum
 * that would take minutes. */
#define SL_WORK_GANG_MOST  10000
#define SL_WORK_TASKS_MOST 10000000
/* A bit more than 31 years: the nanoseconds of all tasks of a gang still fit into a sum. */
#define SL_WORK_SECONDS_MOST 1e9

struct sl_work_node {
	uint64_t host_mib;
	bool swaps;
};

struct sl_work_job {
	uint32_t project; /* row */
	int32_t priority;
	uint32_t flags; /* SL_JOB_* */
	uint32_t tasks, least, line;
	uint64_t park_mib;
	sl_ns created, duration, swap_cost;
};

/* Fill in presets; sl_work_projects() sets the rest. fini in any case. */
struct sl_work {
	sl_ns swap_cost; /* if the file does not say */
	bool terminates;
	struct sl_projects
		projects; /* `default` is always among them; parents come first */
	char pools[SL_WORK_POOLS][SL_PROJECT_NAME_MAX];
	uint32_t pool_count;
	uint64_t tasks; /* of all jobs read so far */
};

struct sl_work_node_columns {
	int pool, host_mib, swaps, memory;
};

struct sl_work_job_columns {
	int project, user, priority, gang, min, preemptible, on_reclaim, swap_cost,
		park_mib, duration, created, ended;
};

/* False with err. */
SL_MUST_CHECK bool sl_work_projects(
	struct sl_work *work, const char *path, struct sl_error *err);
void sl_work_fini(struct sl_work *work);

/* The rules of this row for the policy. */
struct sl_project_rules sl_work_rules(struct sl_work *work, uint32_t row);

void sl_work_find_node_columns(const struct sl_csv *csv, struct sl_work_node_columns *at);
/* Reads the current line; *pool gets the number of its pool. */
SL_MUST_CHECK bool sl_work_read_node(struct sl_work *work, const struct sl_csv *csv,
	const struct sl_work_node_columns *at, struct sl_work_node *node, uint8_t *pool,
	struct sl_error *err);

void sl_work_find_job_columns(const struct sl_csv *csv, struct sl_work_job_columns *at);
SL_MUST_CHECK bool sl_work_read_job(struct sl_work *work, const struct sl_csv *csv,
	const struct sl_work_job_columns *at, const struct sl_need *need,
	struct sl_work_job *job, struct sl_error *err);

#endif
