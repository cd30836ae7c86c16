/*
 * internal - the memory of the cluster machine; for this folder only
 *
 * Nodes are two arrays that never move: the accounts of fit.h, and the rest. Jobs, classes and
 * groups are objects with free lists; the tasks of one part of a job are one array.
 *
 *   class   Tasks of equal need. It remembers since when no node had room for one of them, so only
 *           nodes that gained room since are tried again.
 *   group   Jobs of one project and priority that want exactly the same next. Only the first is
 *           tried; if it finds no place, all are left alone until something has changed. A group is
 *           one entry of the order in joborder.h.
 *
 * A task that is promised a place (`next`) counts in its project's books as if it ran there; a
 * stopping task no longer does.
 */
#ifndef SL_POLICY_CLUSTER_INTERNAL_H
#define SL_POLICY_CLUSTER_INTERNAL_H

#include "base/list.h"
#include "policy/books/index.h"
#include "policy/cluster.h"
#include "policy/mutant.h"
#include "policy/quota/joborder.h"

#define SL_CL_NO_NODE UINT32_MAX
/* Tasks and nodes that searches may visit in a cycle: about 40 ms of work. */
#define SL_CL_EFFORT 400000
/* The same for explaining, twice. */
#define SL_CL_WHY_EFFORT (SL_CL_EFFORT / 32)
/* Remembered nodes that gained room; a class that slept longer is tried everywhere. */
#define SL_CL_GAINS 4096
/* Parts of a job. */
#define SL_CL_PARTS 8
/* Node pools: 0 to 30. In the machine's own needs, bit 32 + i stands for those nodes of pool i that
 * swap. Bit 31, which no node has, stands for no node. */
#define SL_CL_POOLS 31
/* Minutes that the last hour can touch. */
#define SL_CL_MOVED 61

struct sl_cl_node {
	struct sl_index_node index;
	bool used, shut, swaps; /* shut: it was put so */
	uint64_t pool_mib, parked_mib;
	uint32_t promises;     /* tasks that count on its room */
	uint64_t mark;         /* of the last search that saw it */
	uint64_t changes;      /* of its accounts */
	struct sl_link tasks;  /* with a place here */
	struct sl_link parked; /* that will return here */
};

/* What a class of tasks lacks. Resources are checked one after the other: fits tells whether one
 * task fits on a node by this and all earlier resources; free is how much of this resource is free
 * on nodes that have enough of the earlier ones. */
struct sl_cl_lack {
	bool known, fits[SL_RESOURCES];
	int64_t free[SL_RESOURCES];
};

struct sl_cl_class {
	struct sl_cl_class *chain;
	struct sl_need need;
	uint32_t seen; /* tasks so far */
	/* Gains when there was no room for it; 0: unknown */
	uint64_t none_now, none_later;
	uint64_t counted_at; /* gains when fit was last counted in full; 0: unknown */
	uint32_t fit;        /* the most tasks that could be placed, later */
	uint64_t ever_at;    /* nodes_version of `ever`; 0: unknown */
	bool ever;
	uint64_t most_at;       /* nodes_version of `most`; 0: unknown */
	uint64_t most;          /* the number that all empty nodes have room for */
	struct sl_cl_lack lack; /* as last looked up */
};

struct sl_cl_task {
	struct sl_cl_part *part;
	struct sl_link on_node, leaving; /* leaving: told to stop, not given up */
	struct sl_place place; /* BINDING, RUNNING, RELEASING; or where it is parked */
	struct sl_place next;  /* if promised */
	struct sl_place home;  /* was_parked: where */
	struct sl_quantity booked; /* at place, or at next once that is promised */
	sl_ns since;               /* it runs, or was told to stop */
	sl_ns spared_until;        /* no victim before */
	sl_ns parked_at;
	uint32_t number;
	uint8_t state, was; /* was: before RELEASING */
	bool promised, parked, was_parked, stuck, failed;
	bool pooled;    /* host memory is reserved for it */
	bool giving_up; /* parked, and that is being dropped */
	/* KEEPS_HOST: its cores and memory at `place` are booked apart from its GPUs, also while it
	 * is parked. */
	bool keeps;
	uint8_t how; /* it is stopped, or was last */
};

struct sl_cl_part {
	struct sl_cl_job *job;
	struct sl_cl_class *class;
	struct sl_need asked;    /* by the job */
	struct sl_quantity each; /* of a task, before its node is known */
	uint32_t first, tasks, least;
	uint32_t in[SL_TASK_STATES], coming; /* coming: RELEASING and promised */
	uint32_t done;                       /* ENDED and not failed */
	uint32_t pending_from;               /* no pending task has a lower number */
	uint32_t bits;                       /* log2 of the room in task[] */
	struct sl_cl_task *task;
};

/* A node that a search visits: what would be lost there, and how valuable it is. */
struct sl_cl_near {
	uint32_t node, tier;
	uint64_t lost, rank; /* lost UINT64_MAX: nothing helps there */
	uint64_t changes;    /* of the node when computed, plus 1 */
	bool banned;
};

struct sl_cl_refusal {
	uint64_t node; /* id */
	sl_ns until;
};

/* A user with a bound on the tasks of all its jobs at a time. */
struct sl_cl_owner {
	struct sl_index_node index;
	uint32_t most, stands; /* stands: counted at the start of a cycle and during it */
};

struct sl_cl_job {
	struct sl_index_node index;
	struct sl_link all, running, promised, stale; /* running: in its rank */
	struct sl_link held;   /* waits for held_until, paused_until or giving_up */
	struct sl_link parked; /* has parked tasks that may be given up */
	uint32_t project, flags, parts, tasks;
	int32_t priority;
	uint64_t seq; /* in the order of submission */
	sl_ns submitted, started, stale_since, swap_cost, resume_wait;
	sl_ns held_until;   /* of its back-off: it does not start before */
	sl_ns paused_until; /* after a stop: it does not displace others before */
	sl_ns preempt_delay, stale_grace; /* stale_grace 0: that of CONFIG */
	sl_ns waits_since; /* it lacks something that it wants; 0: it does not */
	uint64_t park_mib;
	uint32_t failures;         /* in a row, for the back-off */
	uint32_t giving_up;        /* parked tasks told to give up */
	struct sl_cl_owner *owner; /* NULL: no bound */
	struct sl_cl_part *part[SL_CL_PARTS];
	struct sl_cl_refusal *refused; /* a block of 2^refused_bits bytes; 0 bits: none */
	uint32_t refusals, refused_bits;
	struct sl_cl_group *group;
	uint32_t in_group; /* its place in the heap of the group */
	uint64_t mark;     /* of the search that may take from it */
	uint64_t taken_at; /* cluster->outside when it was last reclaimed */
	uint64_t looked;   /* by the search that last asked whether it may be taken */
	uint32_t rank;     /* in that search: smaller goes first */
	/* In that search, before rank: lower priorities that its project runs */
	uint32_t tier;
	struct sl_pending_because because;
};

/* Running preemptible jobs of one project and priority, in the order in which they started. */
struct sl_cl_rank {
	struct sl_cl_rank *next;
	int32_t priority;
	struct sl_link jobs;
};

struct sl_cl_want {
	struct sl_cl_class *class;
	uint32_t part, count;
};

/* A project to take from, and its next job. */
struct sl_cl_from {
	uint32_t project;
	struct sl_cl_rank *rank;
	struct sl_link *link;
};

enum sl_cl_mode { SL_CL_CONSOLIDATE = 0, SL_CL_RECLAIM, SL_CL_PREEMPT, SL_CL_MODES };

struct sl_cl_group {
	struct sl_cl_group *chain;
	uint64_t hash;
	struct sl_cl_job *only; /* a job unlike all others: parked, or refused */
	bool fixed;             /* not preemptible */
	const struct sl_cl_owner *owner;
	sl_ns preempt_delay;
	uint32_t wants, extra;
	struct sl_cl_want want[SL_CL_PARTS];
	struct sl_joborder_job order;
	struct sl_cl_job **heap; /* first submitted first */
	uint32_t count, bits;
	uint64_t tried[SL_CL_MODES]; /* cluster->version when a search failed */
	uint64_t round[SL_CL_MODES]; /* of searches in which it had its turn */
	uint64_t failed_at;          /* gains when a start failed */
	/* room: why the last start failed; because: what searches found out beyond that. */
	struct sl_pending_because room, because;
};

/* What a search has done so far, to be undone. */
struct sl_cl_trail {
	struct sl_cl_task **task;
	uint32_t count, room;
};

/* What a search would do: tasks that stop or move, and the number of their jobs. from: the id of
 * the project of all stopped tasks; 0: there are several. */
struct sl_cl_would {
	uint32_t stops, moves, jobs;
	uint64_t from;
};

/* Moves that count against move_most. */
struct sl_cl_moved {
	uint64_t minute;
	uint32_t count;
};

struct sl_cluster {
	struct sl_arena *arena;
	struct sl_tree tree;
	struct sl_joborder *order;
	struct sl_cl_rank **ranks; /* by project */
	struct sl_cl_from *from;   /* projects that may be taken from */
	struct sl_cl_near *near;   /* nodes that a search visits */
	struct sl_fit_node *fit;   /* nodes_most of each */
	struct sl_cl_node *node;
	uint32_t nodes_most, nodes_high, nodes, *node_free, node_frees;
	struct sl_index nodes_by_id, jobs_by_id, owners_by_id;
	struct sl_placer *placer[SL_PLACE_POLICIES];
	enum sl_placement_policy placement;

	/* CONFIG */
	sl_ns stale_grace, stop_within;
	uint32_t search_most, resume_factor, move_most;
	bool spreads;

	struct sl_link leaving; /* tasks, in the order of `since` */
	struct sl_link jobs, promised, stale,
		held;          /* promised: first come, first served */
	struct sl_link parked; /* jobs that may give up parked tasks */
	struct sl_cl_class **classes;
	struct sl_cl_group **groups;
	uint32_t class_bits, class_count, group_bits, group_count;
	void *spare_jobs, *spare_parts, *spare_groups, *spare_blocks[40];

	uint64_t gains, nodes_version; /* both start at 1 */
	uint32_t gained[SL_CL_GAINS];
	uint64_t version; /* changes with everything that a search depends on */
	uint64_t outside; /* events that answer no decision of this machine */
	uint64_t next_seq, next_action, next_mark, round[SL_CL_MODES];
	int64_t later_gpu_milli; /* sum over open nodes of what will be free */
	struct sl_quantity capacity;
	uint32_t least_gpu_mib; /* of nodes with GPUs, for needs in MiB */
	bool more;              /* a cycle left work for the next */
	uint32_t cycled;        /* SL_CYCLE_* done since the last event */
	sl_ns due, told_due;
	uint64_t tried, jobs_count, tasks_count;
	struct sl_cl_moved moved[SL_CL_MOVED]; /* by minute */
	sl_ns spread_from;                     /* not before: a user has moved a task */
	uint64_t effort;                       /* left for searches in this cycle */
	uint64_t why_effort;                   /* left for explaining */
	uint64_t lack_effort;                  /* left for counting what is short */
	bool dry; /* a trial: placement is bypassed, so that it learns nothing */
	uint32_t in[SL_TASK_STATES];
	struct sl_quantity used;

	/* For the check. */
	struct sl_fit_node *audit_fit;
	struct sl_quantity *audit_has, *audit_fixed, *audit_asks, *audit_holds;
	uint64_t *audit_parked;
	uint32_t *audit_promises;
	/* For the current search. */
	struct sl_cl_trail evicted, given, pretended;

	sl_ns now;
	sl_cluster_action_fn emit;
	void *context;
};

#define SL_CL_ENTRY(link, type, member) SL_LIST_ENTRY(link, struct type, member)

/* --- cluster.c --- */
/* A zeroed block of 2^bits bytes, and its return. */
void *sl_cl_block_take(struct sl_cluster *cl, uint32_t bits);
void sl_cl_block_give(struct sl_cluster *cl, void *block, uint32_t bits);
/* The same for objects of one size each. */
void *sl_cl_spare_take(struct sl_cluster *cl, void **spare, size_t size);
void sl_cl_spare_give(void **spare, void *object);
void sl_cl_emit(struct sl_cluster *cl, struct sl_cluster_action action);
void sl_cl_refuse_job(
	struct sl_cluster *cl, uint64_t id, const struct sl_pending_because *because);
static inline sl_ns sl_cl_later(const struct sl_cluster *cl, sl_ns span)
{
	return span > SL_NS_NEVER - cl->now ? SL_NS_NEVER : cl->now + span;
}
/* Makes a cycle due, because it may do what it could not do now. */
void sl_cl_wake(struct sl_cluster *cl, sl_ns at);
struct sl_cl_job *sl_cl_find_job(const struct sl_cluster *cl, uint64_t id);
struct sl_cl_task *sl_cl_find_task(
	const struct sl_cluster *cl, uint64_t job, uint32_t task);

/* --- nodes.c --- */
void sl_cl_on_node_put(struct sl_cluster *cl, const struct sl_cluster_event *event);
void sl_cl_on_node_lost(struct sl_cluster *cl, const struct sl_cluster_event *event);
uint32_t sl_cl_find_node(const struct sl_cluster *cl, uint64_t id);
/* Withdraws promises that can no longer be kept, the latest first. */
void sl_cl_node_repair(struct sl_cluster *cl, uint32_t number);
/* Book a task on a node; all changes of sl_fit_node go through these. */
void sl_cl_node_take(struct sl_cluster *cl, struct sl_cl_task *task);
void sl_cl_node_give(struct sl_cluster *cl, struct sl_cl_task *task, bool released);
void sl_cl_node_release(struct sl_cluster *cl, struct sl_cl_task *task);
void sl_cl_node_unrelease(struct sl_cluster *cl, struct sl_cl_task *task);
void sl_cl_node_promise(struct sl_cluster *cl, struct sl_cl_task *task);
void sl_cl_node_unpromise(struct sl_cluster *cl, struct sl_cl_task *task);
/* Books the cores and memory of a task that keeps them, once. */
void sl_cl_node_keep(struct sl_cluster *cl, struct sl_cl_task *task);
void sl_cl_node_unkeep(struct sl_cluster *cl, struct sl_cl_task *task);
/* They leave with the task: it is RELEASING and will not be parked. */
void sl_cl_node_leave(struct sl_cluster *cl, struct sl_cl_task *task);
/* What the accounts of that node change by when the task comes or goes: its need, less what it
 * keeps there. */
struct sl_need sl_cl_moves(const struct sl_cl_task *task, uint32_t number);
void sl_cl_node_shut(struct sl_cluster *cl, uint32_t number, bool shut);
/* A need for a little of any GPU that this one may use. */
struct sl_need sl_cl_any_gpu(const struct sl_need *need);
/* Is there room for need at this very place? */
bool sl_cl_room_at(const struct sl_fit_node *node, const struct sl_room *room,
	const struct sl_need *need, struct sl_place place);
/*
 * A place for a task of this class: free now and unpromised, or (later) free once stopping tasks
 * are gone. A parked task can only use the place where it is parked, or (SL_JOB_MOVES) any on that
 * node; so can a task that the search moves, if host memory is reserved for it.
 */
bool sl_cl_find_place(struct sl_cluster *cl, const struct sl_cl_task *task, bool later,
	struct sl_place *place);
/* The same, later, on this node. */
bool sl_cl_place_on(struct sl_cluster *cl, const struct sl_cl_task *task, uint32_t number,
	struct sl_place *place);
/* Did that node refuse the job recently? SL_CL_NO_NODE: did any? */
bool sl_cl_is_refused(
	const struct sl_cluster *cl, const struct sl_cl_job *job, uint32_t node);
/* Could a node run it if it were empty? */
bool sl_cl_ever(struct sl_cluster *cl, struct sl_cl_class *class);
/* If sl_cl_ever says no: checks GPUs, cores and memory in this order, and names the first one that
 * no node has enough of together with the earlier ones. */
struct sl_pending_because sl_cl_never_because(
	const struct sl_cluster *cl, const struct sl_need *need);
struct sl_cl_class *sl_cl_class(struct sl_cluster *cl, const struct sl_need *need);
/* Teaches placement that this many tasks of this kind came. */
void sl_cl_learn(struct sl_cluster *cl, struct sl_cl_class *class, uint32_t tasks);

/* --- jobs.c --- */
void sl_cl_on_job_add(struct sl_cluster *cl, const struct sl_cluster_event *event);
void sl_cl_on_tasks_add(struct sl_cluster *cl, const struct sl_cluster_event *event);
void sl_cl_on_job_remove(struct sl_cluster *cl, const struct sl_cluster_event *event);
void sl_cl_on_job_cost(struct sl_cluster *cl, const struct sl_cluster_event *event);
void sl_cl_on_owner_most(struct sl_cluster *cl, const struct sl_cluster_event *event);
void sl_cl_on_job_resume(struct sl_cluster *cl, const struct sl_cluster_event *event);
void sl_cl_on_job_unpark(struct sl_cluster *cl, const struct sl_cluster_event *event);
/* The pools that projects may use changed. */
void sl_cl_reclass(struct sl_cluster *cl);
/* The smallest GPUs changed, and with them what needs in MiB count for. */
void sl_cl_requote(struct sl_cluster *cl);
static inline bool sl_cl_preemptible(const struct sl_cl_job *job)
{
	return job->flags & SL_JOB_PREEMPTIBLE;
}
/* Its tasks lose nothing when they go to other GPUs of their node. */
static inline bool sl_cl_movable(const struct sl_cl_job *job)
{
	return job->flags & SL_JOB_PARKS && job->flags & SL_JOB_MOVES;
}
/* It can only return to the GPUs where it is parked. */
static inline bool sl_cl_is_pinned(const struct sl_cl_task *task)
{
	return task->parked &&
	       SL_MUTANT(CLUSTER_MOVES_PINNED, !sl_cl_movable(task->part->job), true);
}
/* It is being stopped and will be parked, perhaps to move. */
static inline bool sl_cl_is_parking(const struct sl_cl_task *task)
{
	return task->state == SL_TASK_RELEASING &&
	       (task->how == SL_STOP_PARK || (task->how == SL_STOP_MOVE && task->pooled));
}
/* When it may displace others. */
static inline sl_ns sl_cl_takes_at(const struct sl_cl_job *job)
{
	sl_ns at = job->preempt_delay > SL_NS_NEVER - job->waits_since
			   ? SL_NS_NEVER
			   : job->waits_since + job->preempt_delay;

	return sl_max_u64(at, job->paused_until);
}
/* Tasks with a place, or with a promised one. */
static inline uint32_t sl_cl_placed(const struct sl_cl_part *part)
{
	return part->in[SL_TASK_BINDING] + part->in[SL_TASK_RUNNING] +
	       part->in[SL_TASK_PIPELINED] + part->coming;
}
/* Tasks that a stop would hit. */
static inline uint32_t sl_cl_running(const struct sl_cl_part *part)
{
	return part->in[SL_TASK_BINDING] + part->in[SL_TASK_RUNNING];
}
/* Works out what the job wants next and files it accordingly. Call it when a change to the job is
 * complete. */
void sl_cl_job_settle(struct sl_cluster *cl, struct sl_cl_job *job);
/* Fills want[SL_CL_PARTS]; returns how many, 0: nothing. */
uint32_t sl_cl_job_wants(
	const struct sl_cl_job *job, struct sl_cl_want *want, uint32_t *extra);
/* Withdraws all promises of the job; says whether one of them is for that node. */
void sl_cl_job_unpromise(struct sl_cluster *cl, struct sl_cl_job *job);
bool sl_cl_job_is_promised(const struct sl_cl_job *job, uint32_t node);
/* The next pending task of the part, from number `from` on; NULL: none. */
struct sl_cl_task *sl_cl_next_pending(struct sl_cl_part *part, uint32_t from);

/* The need as the placer sees it: limited to pools of the projects above, and to nodes that swap or
 * do not. */
struct sl_need sl_cl_effective(
	const struct sl_cluster *cl, uint32_t project, const struct sl_need *asked);
/* What a task counts for before its node is known: GPU memory by the smallest GPUs. */
struct sl_quantity sl_cl_guess(const struct sl_cluster *cl, const struct sl_need *need);

/* --- tasks.c: the states of a task, each with all books --- */
void sl_cl_on_task_runs(struct sl_cluster *cl, const struct sl_cluster_event *event);
void sl_cl_on_task_parked(struct sl_cluster *cl, const struct sl_cluster_event *event);
void sl_cl_on_bind_refused(struct sl_cluster *cl, const struct sl_cluster_event *event);
void sl_cl_on_bind_again(struct sl_cluster *cl, const struct sl_cluster_event *event);
void sl_cl_on_task_ended(struct sl_cluster *cl, const struct sl_cluster_event *event);
void sl_cl_on_task_stops(struct sl_cluster *cl, const struct sl_cluster_event *event);
void sl_cl_on_stop_failed(struct sl_cluster *cl, const struct sl_cluster_event *event);
void sl_cl_task_state(
	struct sl_cluster *cl, struct sl_cl_task *task, enum sl_task_state state);
/* PENDING -> BINDING or RUNNING at place. */
void sl_cl_task_take(struct sl_cluster *cl, struct sl_cl_task *task,
	struct sl_place place, enum sl_task_state state);
/* Undoes that: PENDING, or parked as before. */
void sl_cl_task_untake(struct sl_cluster *cl, struct sl_cl_task *task);
/* Gives back all its places and promises: PENDING or ENDED. */
void sl_cl_task_clear(
	struct sl_cluster *cl, struct sl_cl_task *task, enum sl_task_state state);
/* A parked task's memory is being dropped; sl_cl_task_unpark follows. */
void sl_cl_task_drop(struct sl_cluster *cl, struct sl_cl_task *task);
/* Makes a parked task an ordinary pending one. */
void sl_cl_task_unpark(struct sl_cluster *cl, struct sl_cl_task *task);
/* PENDING -> PIPELINED, or RELEASING -> RELEASING with a new place; and back. */
void sl_cl_task_promise(
	struct sl_cluster *cl, struct sl_cl_task *task, struct sl_place next);
void sl_cl_task_unpromise(struct sl_cluster *cl, struct sl_cl_task *task);
/* BINDING, RUNNING -> RELEASING; and back. */
void sl_cl_task_release(struct sl_cluster *cl, struct sl_cl_task *task);
void sl_cl_task_unrelease(struct sl_cluster *cl, struct sl_cl_task *task);
/* Emits BIND for a taken task. */
void sl_cl_task_bind(struct sl_cluster *cl, struct sl_cl_task *task);
/* Emits STOP for a released task, and books the host pool. */
void sl_cl_task_stop(struct sl_cluster *cl, struct sl_cl_task *task, enum sl_stop_how how,
	const struct sl_cl_job *other, bool preempted);
/* Emits PIPELINE for a promised task. */
void sl_cl_tell_place(struct sl_cluster *cl, const struct sl_cl_task *task);
struct sl_quantity sl_cl_quantity(const struct sl_need *need, struct sl_place place);

/* --- moves.c --- */
void sl_cl_on_task_move(struct sl_cluster *cl, const struct sl_cluster_event *event);
/* How many tasks may be moved now (move_most), and when the number grows. */
uint32_t sl_cl_moves_left(const struct sl_cluster *cl);
sl_ns sl_cl_moves_again(const struct sl_cluster *cl);
/* One was moved. */
void sl_cl_moves_count(struct sl_cluster *cl);
/* Until when it is not moved: it could not be stopped, or was moved a moment ago. */
sl_ns sl_cl_stays_until(const struct sl_cluster *cl, const struct sl_cl_task *task);
/* Moves a bursting task from a GPU that it shares to an unused one that no job waits for. */
void sl_cl_spread(struct sl_cluster *cl);

/* --- groups.c --- */
void sl_cl_group_join(struct sl_cluster *cl, struct sl_cl_job *job,
	const struct sl_cl_want *want, uint32_t wants, uint32_t extra);
void sl_cl_group_leave(struct sl_cluster *cl, struct sl_cl_job *job);
static inline struct sl_cl_group *sl_cl_group_of(struct sl_joborder_job *order)
{
	return SL_CONTAINER_OF(order, struct sl_cl_group, order);
}

/* --- cycle.c --- */
void sl_cl_on_cycle(struct sl_cluster *cl, const struct sl_cluster_event *event);
/* --- limits.c --- */
/* Does the job stay within limits, and within quotas where required? If not, *because says what is
 * in its way. */
bool sl_cl_allowed(struct sl_cluster *cl, const struct sl_cl_job *job,
	const struct sl_quantity *more, struct sl_pending_because *because);
/* The same by what occupies nodes: a stopping task still has its part of a limit. */
bool sl_cl_allowed_now(struct sl_cluster *cl, const struct sl_cl_job *job,
	const struct sl_quantity *more, struct sl_pending_because *because);
/* Made at the first call; NULL for 0. */
struct sl_cl_owner *sl_cl_owner(struct sl_cluster *cl, uint64_t id);
/* Within what its owner may have; if not, *because says so. */
bool sl_cl_owner_allows(const struct sl_cl_job *job, const struct sl_cl_want *want,
	uint32_t wants, struct sl_pending_because *because);
/* Counts what owners have at the start of a cycle. */
void sl_cl_count_owners(struct sl_cluster *cl);
/* Its tasks that count for its owner: placed and parked ones. 0 without an owner. */
uint32_t sl_cl_stands(const struct sl_cl_job *job);
/* A limit above it, or a quota it must keep, is exceeded already in something that it needs. */
bool sl_cl_is_over(const struct sl_cluster *cl, const struct sl_cl_job *job);
bool sl_cl_is_over_now(const struct sl_cluster *cl, const struct sl_cl_job *job);
/* --- forecast.c --- */
/* Is it the only project that may have jobs? */
bool sl_cl_is_alone(const struct sl_tree *tree, uint32_t project);
/* --- search.c --- */
/* Makes room for what the job wants, by mode. True: its places are promised, and the victims are
 * told. */
bool sl_cl_search(struct sl_cluster *cl, struct sl_cl_group *group, enum sl_cl_mode mode);

/* --- why.c --- */
/* There was no room: what is short, and how much of it there is. most: how many of the wanted tasks
 * would have fitted. */
struct sl_pending_because sl_cl_why_no_room(
	struct sl_cluster *cl, const struct sl_cl_want *want, uint32_t most);
void sl_cl_trail_add(
	struct sl_cluster *cl, struct sl_cl_trail *trail, struct sl_cl_task *task);

#endif
