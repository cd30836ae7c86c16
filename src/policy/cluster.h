/*
 * cluster - the machine that proposes which job runs where
 *
 * Event in, actions out, time as an argument; pure, like node. It knows nodes with GPUs, projects
 * in a tree, and jobs of tasks. It proposes; the node's ledger commits. A refused BIND comes back
 * as BIND_REFUSED.
 *
 * A cycle does, in this order:
 *   allocate     Projects and jobs in the order of joborder.h. A job starts whole (its `least`
 *                tasks or none); further tasks of an elastic job start one by one. A task that fits
 *                only once releasing tasks are gone is pipelined. No job goes above a limit; one
 *                that cannot be preempted does not go above the quota.
 *   consolidate  Moves running jobs if each finds a new place and a pending job then fits:
 *                preemptible ones, which begin again; and those of SL_JOB_MOVES, which lose nothing
 *                and stay on their nodes, if host memory has room and move_most allows it.
 *   reclaim      Across projects: takes back, for a project under its fair share, what another has
 *                above its own.
 *   preempt      Within a project: stops preemptible jobs of strictly lower priority that have run
 *                for their minimum runtime.
 *   stale gangs  Stops a gang that has been below its `least` for a grace period.
 *   spread       If spread is set and no job waits for room: moves a task of SL_JOB_MOVES and
 *                SL_JOB_BURSTS from a GPU that it shares to an unused one, within move_most.
 * Victims are the fewest that suffice, found by a bounded search; among equally many, those for
 * which host memory has room go first. They are stopped as their job says (parked or terminated).
 * In-quota work is never taken. Work-conserving: what fits and is allowed starts in the same cycle.
 *
 * The work of a cycle is bounded: jobs of equal need are not tried again after one found no place.
 */
#ifndef SL_POLICY_CLUSTER_H
#define SL_POLICY_CLUSTER_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "policy/placement/fit.h"
#include "policy/placement/score.h"
#include "policy/quota/tree.h"

/* A job with at least this priority cannot be preempted, unless it says otherwise. */
#define SL_JOB_PRIORITY_TRAIN       50
#define SL_JOB_PRIORITY_BUILD       100
#define SL_JOB_PRIORITY_INFERENCE   125
#define SL_JOB_PRIORITY_PREEMPTIBLE 99 /* highest preemptible */

#define SL_JOB_PREEMPTIBLE 1u
#define SL_JOB_PARKS \
	2u /* when reclaimed, it is parked; else terminated and queued again */
/* With PARKS: the job is terminated and queued again for any node if host memory has no room for
 * it, or after it was parked for its resume_wait. A job with PARKS alone is not stopped while it
 * cannot be parked, and stays parked until its GPUs are free. */
#define SL_JOB_GIVES_UP 4u
/* With PARKS: a parked task keeps its cores and memory, because its processes run on. */
#define SL_JOB_KEEPS_HOST 8u
/* With PARKS: a parked task may come back to any GPU of its node, so it loses nothing when it is
 * moved there. */
#define SL_JOB_MOVES 16u
/* A task may use more of its GPU than it asks for, so it gains by having it alone. */
#define SL_JOB_BURSTS 32u

/* For TASKS_ADD: none of these must run. */
#define SL_CLUSTER_LEAST_NONE UINT32_MAX

enum sl_task_state {
	SL_TASK_PENDING = 0,
	SL_TASK_PIPELINED, /* gets its place once others are gone */
	SL_TASK_BINDING,   /* BIND is out */
	SL_TASK_RUNNING,
	SL_TASK_RELEASING, /* STOP is out */
	SL_TASK_ENDED,     /* for good */
	SL_TASK_STATES
};

enum sl_stop_how {
	SL_STOP_PARK = 0,
	SL_STOP_TERMINATE, /* and queue again */
	SL_STOP_MOVE,      /* for consolidation; its new place is promised already */
	SL_STOP_STALE,     /* a gang below its least */
	/* It has been parked for its resume_wait: its host memory is dropped */
	SL_STOP_GIVE_UP
};

#define SL_CYCLE_ALLOCATE    1u
#define SL_CYCLE_CONSOLIDATE 2u
#define SL_CYCLE_RECLAIM     4u
#define SL_CYCLE_PREEMPT     8u
#define SL_CYCLE_STALE       16u
#define SL_CYCLE_SPREAD      32u
#define SL_CYCLE_ALL         63u

enum sl_cluster_event_type {
#define SL_CLUSTER_EVENT(NAME, name, fields) SL_CLUSTER_EVENT_##NAME,
#include "policy/cluster/event.def"
#undef SL_CLUSTER_EVENT
	SL_CLUSTER_EVENTS
};

struct sl_cluster_event {
	enum sl_cluster_event_type type;
	union {
#define SL_CLUSTER_EVENT(NAME, name, fields) \
	struct {                             \
		fields                       \
	} name;
#include "policy/cluster/event.def"
#undef SL_CLUSTER_EVENT
	};
};

enum sl_cluster_action_type {
#define SL_CLUSTER_ACTION(NAME, name, fields) SL_CLUSTER_ACTION_##NAME,
#include "policy/cluster/action.def"
#undef SL_CLUSTER_ACTION
	SL_CLUSTER_ACTIONS
};

struct sl_cluster_action {
	enum sl_cluster_action_type type;
	uint64_t id;
	union {
#define SL_CLUSTER_ACTION(NAME, name, fields) \
	struct {                              \
		fields                        \
	} name;
#include "policy/cluster/action.def"
#undef SL_CLUSTER_ACTION
	};
};

/* Why a job is pending or refused: the first rule in its way. */
enum sl_pending_reason {
#define SL_PENDING(NAME, text) SL_PENDING_##NAME,
#include "policy/cluster/pending.def"
#undef SL_PENDING
	SL_PENDING_REASONS
};

/* The numbers of its sentence. Amounts have the units of tree.h. */
struct sl_pending_because {
	enum sl_pending_reason reason;
	/* ids: whose quota or limit; the project it would take from */
	uint64_t project, other;
	enum sl_resource resource;
	int64_t wanted, available; /* of that resource, or what pending.def says */
	/* Jobs of its own project that come before it (1000: or more); with the reason PRIORITY,
	 * the running jobs of higher priority that would have to go. */
	uint32_t ahead;
	/* It would run if what others (`other`; 0: several) have above their share were taken,
	 * which may not be allowed now. */
	bool would_reclaim;
};

typedef void (*sl_cluster_action_fn)(
	void *context, const struct sl_cluster_action *action);

struct sl_cluster;

/* The sizes are fixed; more is refused (FULL). Memory is taken as needed. */
struct sl_cluster *sl_cluster_new(
	struct sl_arena *arena, uint32_t nodes_most, uint32_t projects_most);

/* Takes one event. Every event is legal at every moment. If now goes back, the last value is
 * used. */
void sl_cluster_step(struct sl_cluster *cluster, sl_ns now,
	const struct sl_cluster_event *event, sl_cluster_action_fn emit, void *context);

/* --- Views. --- */

struct sl_cluster_job_view {
	bool known;
	uint64_t project;
	int32_t priority;
	uint32_t flags, tasks, least;
	uint32_t in[SL_TASK_STATES];
	sl_ns submitted, started; /* started: its first task, last time; 0: not running */
	struct sl_pending_because because; /* while it is pending */
	uint32_t failures;
	sl_ns held_until;   /* of its back-off: it does not start before */
	sl_ns paused_until; /* after a stop: it does not displace others before */
	sl_ns waits_since;  /* it lacks something that it wants; 0: it does not */
};

struct sl_cluster_task_view {
	bool known;
	enum sl_task_state state;
	/* BINDING, RUNNING, RELEASING; PIPELINED: where it will go */
	struct sl_place place;
	uint64_t node;      /* id */
	bool parked;        /* PENDING: it returns to this place */
	sl_ns spared_until; /* no victim before */
	bool moves;         /* RELEASING, or parked since: it continues at `next` */
	struct sl_place next;
	uint64_t next_node;
};

struct sl_cluster_totals {
	uint32_t nodes, jobs, tasks, running, pending;
	struct sl_quantity capacity, used;
	uint64_t tried; /* placements tried so far */
};

struct sl_cluster_job_view sl_cluster_job(const struct sl_cluster *cluster, uint64_t job);
struct sl_cluster_task_view sl_cluster_task(
	const struct sl_cluster *cluster, uint64_t job, uint32_t task);
struct sl_cluster_totals sl_cluster_totals(const struct sl_cluster *cluster);
const struct sl_tree *sl_cluster_tree(const struct sl_cluster *cluster);

/* --- What if. --- */

enum sl_forecast {
	SL_FORECAST_RUNS = 0, /* the next cycle starts it */
	/* The next cycle reserves a place for it where something is being stopped already */
	SL_FORECAST_FOLLOWS,
	SL_FORECAST_TAKES, /* the next cycle stops or moves others for it */
	SL_FORECAST_WAITS, /* because */
	SL_FORECAST_NEVER, /* refused, or impossible with these nodes and projects */
};

/* What would become of a job. */
struct sl_cluster_forecast {
	enum sl_forecast fate;
	struct sl_pending_because because; /* WAITS, NEVER */
	uint32_t stops, moves;             /* TAKES: tasks of others */
	uint64_t from; /* TAKES: the project of all stopped tasks; 0: several, or none */
	/* Once the job runs, other projects could reclaim `above` of `resource` from it, because it
	 * has that much above the quota of project `quota_of`; 0: nothing. */
	uint64_t quota_of;
	enum sl_resource resource;
	int64_t above;
	/* The project that has quota left to reclaim it; 0: several, or none */
	uint64_t by;
	bool preemptible, parks, gives_up; /* as its flags say */
	bool alone;                        /* no other project could reclaim from it */
};

/*
 * What would happen to this job (a JOB_ADD event with any number) if it came now, followed by an
 * ordinary cycle? The forecast is exact unless another event comes first. It emits nothing, and
 * leaves the machine byte for byte as it was. Costs a cycle and two copies of the machine's memory.
 */
struct sl_cluster_forecast sl_cluster_forecast(
	struct sl_cluster *cluster, sl_ns now, const struct sl_cluster_event *job_add);

/*
 * Checks only rules, for work that the node places by itself. The limits must leave room for this
 * job (a JOB_ADD event). So must the quotas, if it cannot be preempted and another project could
 * use the quota. False: *because says which limit or quota has no room. If a job of that number
 * exists, its present resources count as free.
 */
bool sl_cluster_allows(struct sl_cluster *cluster, const struct sl_cluster_event *job_add,
	struct sl_pending_because *because);
/* May work of that project run on that node, by pools and swapping? Unknown ones: no. */
bool sl_cluster_may_stand(
	const struct sl_cluster *cluster, uint64_t project, uint64_t node);

/* Two sentences: whether the job starts, and what could then be reclaimed from it. The second is
 * omitted if the job never runs or no other project could reclaim. Returns buf. name(context, id)
 * gives a project's name. SL_FORECAST_MAX bytes suffice. */
#define SL_FORECAST_MAX 2048
const char *sl_forecast_text(const struct sl_cluster_forecast *forecast,
	const char *(*name)(void *context, uint64_t id), void *context, char *buf,
	size_t size);
/*
 * One sentence: what could be reclaimed from a job that wants this much, if it were submitted to
 * this project now. Returns buf. name(context, id) gives a project's name.
 */
const char *sl_reclaim_text(const struct sl_tree *tree, uint32_t project,
	const struct sl_quantity *wants, bool preemptible, bool parks,
	const char *(*name)(void *context, uint64_t id), void *context, char *buf,
	size_t size);

/* One sentence; returns buf. name(context, id) gives a project's name. */
const char *sl_pending_text(const struct sl_pending_because *because,
	const char *(*name)(void *context, uint64_t id), void *context, char *buf,
	size_t size);

const char *sl_cluster_event_name(uint32_t type);
const char *sl_cluster_action_name(uint32_t type);

/* Checks every invariant; 0, or 1 with the broken one in err. For tests: O(everything). */
SL_MUST_CHECK int sl_cluster_check(
	const struct sl_cluster *cluster, struct sl_error *err);

#endif
