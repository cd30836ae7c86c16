/*
 * cluster - the machine that proposes which job runs where
 *
 * Event in, actions out, time as an argument; pure, like node. It knows nodes with GPUs, projects
 * in a tree, and jobs of tasks. It proposes; the node's ledger commits: a BIND that it refuses
 * comes back as BIND_REFUSED.
 *
 * A cycle does, in this order: allocate, consolidate, reclaim, preempt, stale gangs.
 *   allocate     projects and jobs in the order of joborder.h; a job starts whole: its `least`
 *                tasks or none; further tasks of an elastic job one by one. What fits only once
 *                releasing tasks are gone is pipelined. Never above a limit; a job that cannot be
 *                preempted never above the quota.
 *   consolidate  moves running preemptible jobs if every one of them finds a new place and a
 *                pending job fits then
 *   reclaim      across projects: takes back for one under its fair share what another has above
 *                its own
 *   preempt      within a project: strictly lower priority, preemptible, running for its minimum
 *                runtime
 *   stale gangs  one that has fallen below its `least` is stopped after a grace
 * Victims are the fewest that suffice, found by a bounded search; of equally many those go first
 * that host memory has room for. They are stopped as their job says (park or terminate). In-quota
 * work is never taken. Work-conserving: what fits and is allowed is started in the same cycle.
 *
 * The work of a cycle is bounded: jobs of equal need that found no place are not tried again in it.
 */
#ifndef SL_POLICY_CLUSTER_H
#define SL_POLICY_CLUSTER_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "policy/placement/fit.h"
#include "policy/placement/score.h"
#include "policy/quota/tree.h"

/* A job that cannot be preempted has at least this priority, unless it says otherwise. */
#define SL_JOB_PRIORITY_TRAIN       50
#define SL_JOB_PRIORITY_BUILD       100
#define SL_JOB_PRIORITY_INFERENCE   125
#define SL_JOB_PRIORITY_PREEMPTIBLE 99 /* highest of those that can */

#define SL_JOB_PREEMPTIBLE 1u
#define SL_JOB_PARKS       2u /* reclaim parks it; else it is terminated and queued again */
/* With PARKS: it is terminated, and queued again for any node, where host memory has no room for
 * it, and once it was parked for its resume_wait. Without: it is not stopped where it cannot be
 * parked, and stays parked until its GPUs are free. */
#define SL_JOB_GIVES_UP 4u
/* With PARKS: while it is parked its cores and memory stay its own, for its processes run on. */
#define SL_JOB_KEEPS_HOST 8u

/* Of TASKS_ADD: none of these must run. */
#define SL_CLUSTER_LEAST_NONE UINT32_MAX

enum sl_task_state {
	SL_TASK_PENDING = 0,
	SL_TASK_PIPELINED, /* has a place once others are gone */
	SL_TASK_BINDING,   /* BIND is out */
	SL_TASK_RUNNING,
	SL_TASK_RELEASING, /* STOP is out */
	SL_TASK_ENDED,     /* for good */
	SL_TASK_STATES
};

enum sl_stop_how {
	SL_STOP_PARK = 0,
	SL_STOP_TERMINATE, /* and queue again */
	SL_STOP_MOVE,      /* consolidation: it has its new place already */
	SL_STOP_STALE,     /* a gang below its least */
	/* It is parked, and was for its resume_wait: what is in host memory is dropped */
	SL_STOP_GIVE_UP
};

#define SL_CYCLE_ALLOCATE    1u
#define SL_CYCLE_CONSOLIDATE 2u
#define SL_CYCLE_RECLAIM     4u
#define SL_CYCLE_PREEMPT     8u
#define SL_CYCLE_STALE       16u
#define SL_CYCLE_ALL         31u

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

/* Why a job is pending, or was refused: the first rule in its way. */
enum sl_pending_reason {
#define SL_PENDING(NAME, text) SL_PENDING_##NAME,
#include "policy/cluster/pending.def"
#undef SL_PENDING
	SL_PENDING_REASONS
};

/* The numbers of its sentence. Amounts in the units of tree.h. */
struct sl_pending_because {
	enum sl_pending_reason reason;
	uint64_t project, other; /* ids: whose quota or limit; whom it would take from */
	enum sl_resource resource;
	int64_t wanted, available; /* of that resource, or what pending.def says */
	/* Jobs of its own project that wait before it in the order (1000: or more); with PRIORITY:
	 * running jobs of higher priority that would have to go. */
	uint32_t ahead;
	/* It would run if what others (`other`; 0: several) have above their share were taken,
	 * which may not be now. */
	bool would_reclaim;
};

typedef void (*sl_cluster_action_fn)(
	void *context, const struct sl_cluster_action *action);

struct sl_cluster;

/* Sizes are bounds for good: what is beyond them is refused (FULL). Memory comes as it is
 * needed. */
struct sl_cluster *sl_cluster_new(
	struct sl_arena *arena, uint32_t nodes_most, uint32_t projects_most);

/* Takes one event. Every event is legal at every moment. A now before the last one counts as the
 * last one. */
void sl_cluster_step(struct sl_cluster *cluster, sl_ns now,
	const struct sl_cluster_event *event, sl_cluster_action_fn emit, void *context);

/* --- What can be looked at. --- */

struct sl_cluster_job_view {
	bool known;
	uint64_t project;
	int32_t priority;
	uint32_t flags, tasks, least;
	uint32_t in[SL_TASK_STATES];
	sl_ns submitted, started; /* started: last, of its first task; 0: not running */
	struct sl_pending_because because; /* while it is pending */
	uint32_t failures;
	sl_ns held_until; /* of its back-off: it is not started before */
	sl_ns paused_until; /* it was stopped: others are not stopped or moved for it before */
	sl_ns waits_since; /* it wants something that it has not got; 0: it does not */
};

struct sl_cluster_task_view {
	bool known;
	enum sl_task_state state;
	struct sl_place
		place; /* BINDING, RUNNING, RELEASING; and where a PIPELINED one goes */
	uint64_t node; /* id */
	bool parked;   /* PENDING: it comes back to this place */
	sl_ns spared_until; /* no victim before */
	bool moves;         /* RELEASING: it goes on at `next` */
	struct sl_place next;
	uint64_t next_node;
};

struct sl_cluster_totals {
	uint32_t nodes, jobs, tasks, running, pending;
	struct sl_quantity capacity, used;
	uint64_t tried; /* placements looked for, so far */
};

struct sl_cluster_job_view sl_cluster_job(const struct sl_cluster *cluster, uint64_t job);
struct sl_cluster_task_view sl_cluster_task(
	const struct sl_cluster *cluster, uint64_t job, uint32_t task);
struct sl_cluster_totals sl_cluster_totals(const struct sl_cluster *cluster);
const struct sl_tree *sl_cluster_tree(const struct sl_cluster *cluster);

/* --- What if. --- */

enum sl_forecast {
	SL_FORECAST_RUNS = 0, /* the next cycle starts it */
	/* The next cycle keeps a place for it where something stops by itself already */
	SL_FORECAST_FOLLOWS,
	SL_FORECAST_TAKES, /* the next cycle stops or moves others for it; then it starts */
	SL_FORECAST_WAITS, /* because */
	SL_FORECAST_NEVER, /* it is refused, or could not run as nodes and projects are; because */
};

/* What would become of a job. */
struct sl_cluster_forecast {
	enum sl_forecast fate;
	struct sl_pending_because because; /* WAITS, NEVER */
	uint32_t stops, moves;             /* TAKES: tasks of others */
	uint64_t
		from; /* TAKES: the project of all that are stopped; 0: of several, or none is */
	/* What could be done to it once it runs. above: so much of `resource` would lie above the
	 * quota of project `quota_of`; 0: none, and reclaim never takes from it. */
	uint64_t quota_of;
	enum sl_resource resource;
	int64_t above;
	/* The project that has quota left to take it back by; 0: several have, or none */
	uint64_t by;
	bool preemptible, parks, gives_up; /* as its flags say */
	bool alone; /* there is no other project that could take from it */
};

/*
 * What would become of this job (a JOB_ADD event; its number does not matter) if it came now, and
 * an ordinary cycle after it? Exact, as long as nothing else happens before. Nothing is decided and
 * nothing is emitted; the machine is afterwards what it was, byte for byte. Costs a cycle, and two
 * copies of the machine's memory.
 */
struct sl_cluster_forecast sl_cluster_forecast(
	struct sl_cluster *cluster, sl_ns now, const struct sl_cluster_event *job_add);

/*
 * Rules alone, whatever room there is: do limits leave what this job (a JOB_ADD event) asks for,
 * now, and quotas, if it cannot be preempted and there is another project that they are kept for?
 * Else *because says which does not. For what the node places by itself. A job of that number that
 * is there already is asked about as if it became this one: what it has does not stand in its own
 * way.
 */
bool sl_cluster_allows(struct sl_cluster *cluster, const struct sl_cluster_event *job_add,
	struct sl_pending_because *because);
/* May work of that project stand on that node, as pools and swapping go? Unknown ones: no. */
bool sl_cluster_may_stand(
	const struct sl_cluster *cluster, uint64_t project, uint64_t node);

/* Two sentences: whether it starts, and what could be done to it then; the first alone if it never
 * runs, or no other project is there that could do anything. Returns buf.
 * name(context, id) gives a project's name. SL_FORECAST_MAX bytes suffice. */
#define SL_FORECAST_MAX 2048
const char *sl_forecast_text(const struct sl_cluster_forecast *forecast,
	const char *(*name)(void *context, uint64_t id), void *context, char *buf,
	size_t size);
/*
 * What reclaim could do to a job that wants so much and is submitted to this project now, by the
 * books as they are; one sentence; returns buf. name(context, id) gives a project's name.
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

/* Checks every invariant; 0, or 1 with the broken one in err. O(everything), for tests. */
SL_MUST_CHECK int sl_cluster_check(
	const struct sl_cluster *cluster, struct sl_error *err);

#endif
