/*
 * internal - what the daemon remembers of jobs; for this folder only
 *
 *	queue.c      open, close, when a cycle is due, and what its actions lead to.
 *	books.c      nodes, projects, jobs and workloads as the cluster machine knows them.
 *	kinds.c      the GPUs of this computer as nodes.
 *	save.c       hands jobs to the store.
 *	submit.c     SUBMIT.
 *	left.c       what a killed supervisor leaves behind.
 *	rights.c     limits and capabilities of the submitter.
 *	names.c      names of jobs and tasks.
 *	user.c       what one user may have in the queue.
 *	start.c      BIND.
 *	bounds.c     how many workloads a user may have.
 *	rules.c      what limits and quotas leave to a `sluice run`.
 *	front.c      RUN: foreground jobs, which start at once or wait with their client.
 *	begin.c      the GPU, when the first process begins with CUDA.
 *	end.c        STOP, park and resume; ends of tasks and jobs.
 *	stop.c       from the decision that a task ends to the signal.
 *	wire.c       rows, waits, stops and logs.
 *	news.c       calls from the rest of the daemon.
 *	recover.c    what the earlier daemon left.
 *	moving.c     workloads that go to other GPUs.
 *	guests.c     workloads of claims on GPUs of others.
 *	alone.c      a task whose supervisor lives, but whose workload is unknown.
 *
 * A task is in one phase, on this side of the cluster machine (below: the machine):
 *
 *	WAITING -> CHOSEN -> STARTING -> RUNS -> PARKING -> PARKED -> RESUMING -> RUNS
 *	any of them with a workload -> STOPPING -> WAITING or OVER
 *
 * The machine must not be stepped from within its own actions, so these are queued. Nor may it be
 * stepped from callbacks of other modules, so their news is noted in the task. sl_jobs_settle()
 * carries all of it out.
 */
#ifndef SL_DAEMON_JOBS_INTERNAL_H
#define SL_DAEMON_JOBS_INTERNAL_H

#include "daemon/core/user.h"
#include "daemon/jobs/files.h"
#include "daemon/jobs/jobs.h"
#include "daemon/jobs/shim.h"
#include "daemon/jobs/store.h"
#include "policy/cluster.h"
#include "policy/quota/queue.h"

/* Jobs that have not ended, and their tasks. */
#define SL_JOBS_MOST       10000
#define SL_JOBS_TASKS_MOST 100000
/* How long a task may take to leave its GPUs, or to come back to them. */
#define SL_JOBS_PARK_NS   (30 * SL_S)
#define SL_JOBS_RESUME_NS (30 * SL_S)
/* How long a signal waits for the disk. */
#define SL_JOBS_STORE_NS (5 * SL_S)
/* Least time between cycles. */
#define SL_JOBS_CYCLE_NS (50 * SL_MS)
/* Reason of every job, while no GPU can be used. */
#define SL_JOBS_NO_GPU                                                               \
	"there is no GPU here that works now; it runs when there is one again, and " \
	"sluice doctor says what is wrong"

enum sl_job_phase {
	SL_PHASE_WAITING = 0,
	SL_PHASE_CHOSEN,   /* a place was found; its job is not stored yet */
	SL_PHASE_STARTING, /* its shim waits until its process is recorded */
	SL_PHASE_RUNS,
	SL_PHASE_PARKING,
	SL_PHASE_PARKED,
	SL_PHASE_RESUMING,
	SL_PHASE_STOPPING,
	SL_PHASE_OVER
};

struct sl_job;

struct sl_job_task {
	struct sl_link active; /* sl_jobs.active while it has a workload, or is CHOSEN */
	struct sl_job *job;
	uint32_t number;
	enum sl_job_phase phase;
	uint64_t node; /* node in the machine, and mask there */
	uint32_t gpu_mask;
	struct sl_shim shim; /* while STARTING; later only its pid, 0: not our child */
	/* The commit of the journal that must be done before the go, or the signal; 0: not noted
	 * yet */
	uint64_t commit;
	uint64_t ticket; /* the write that stores it; 0: it is stored */
	/* Of PARKING and RESUMING; of STOPPING until the signal; of a task alone, its next check;
	 * of one that is over, until its GPUs are heard of */
	sl_ns deadline;
	sl_ns grace;    /* of STOPPING: time from SIGTERM to SIGKILL */
	sl_ns retry_at; /* of a job without request: next try */
	sl_ns kill_at;  /* alone and told to end: time of SIGKILL */
	bool alone; /* its supervisor lives, but its workload is unknown: jobs/alone.c */
	bool went;  /* of this attempt: known to have its go, and counted */
	bool stopped;   /* ends to make place for others */
	bool bereft;    /* of this attempt: a GPU of it was lost */
	bool told;      /* of STOPPING: it was signalled, or never began */
	bool asked;     /* its end for good was requested */
	bool failed;    /* it ended, and its gang misses it */
	bool unwritten; /* it did not begin: its start could not be recorded */
	bool unbounded; /* its log cannot be trimmed, which was said */
	bool former;    /* this attempt ended before this daemon started */
	/* Of PARKING: an earlier daemon began it, so its end may have been told before this one
	 * listened */
	bool unheard;
	/* Of PARKING: it goes to other GPUs, and so must leave its own whole */
	bool moves;
	sl_ns over_at; /* its end was told then, and is not handled yet; 0: it is not over */
	bool is_parked, is_resumed; /* told, not handled yet */
	/* Of this attempt: the last demand that its limit denied; 0: none */
	sl_ns denied_at;
	struct sl_node_because denied;
};

struct sl_job {
	struct sl_link link;  /* sl_jobs.all, by number */
	struct sl_link write; /* sl_jobs.unsaved or .saving */
	struct sl_jobs *jobs;
	struct sl_jobs_row row;
	struct sl_need need;
	bool is_free; /* without any request: the machine does not count it */
	bool counted; /* the machine has it */
	bool bound; /* its user may have no more workloads now, so the machine does not get it */
	uint32_t most;    /* its user's bound on tasks, as told to the machine */
	bool stored;      /* its first state is on the disk */
	bool over;        /* row.state is final */
	bool parks;       /* reclaim parks it */
	bool moves;       /* as told to the machine: it may come back to other GPUs */
	sl_ns moves_from; /* not before: the last move came to nothing */
	bool stays; /* parked, and something of it on its GPUs cannot leave: it returns there */
	struct sl_peer *submitter; /* waits for the first state */
	bool reply_due;
	uint64_t park_mib;                 /* as told to the machine */
	sl_ns swap_cost;                   /* likewise */
	struct sl_pending_because refused; /* why the machine does not count it */
	struct sl_cluster_forecast
		forecast;    /* from before it was counted, for its submitter */
	char node_said[256]; /* the last refusal of the node's ledger */
	bool drops; /* once it is stored, some ended jobs of its user are removed */
	uint64_t used_bytes; /* on the disk */
	bool used_known;     /* used_bytes is right until it starts */
	/* Of foreground jobs. Their numbers are those of their workloads, with
	 * SL_JOB_FOREGROUND. */
	bool foreground;
	bool patient; /* may wait for its start */
	bool waits;   /* waits for its start; submitter is told why */
	bool hurries; /* something was freed since it was last tried */
	/* Waits until earlier jobs have had their cycle: the machine does not have it yet */
	bool early;
	struct sl_process *process; /* the process that becomes the program */
	uint32_t told;              /* what it waits for, as told to its submitter */
	sl_ns told_at;
	struct sl_job_task *tasks;
};

/* GPUs of one kind: one node of the machine. */
struct sl_jobs_kind {
	char name[64];
	uint64_t capacity_bytes;
	uint32_t group;                 /* of gpu_groups, from 1; 0: of none */
	uint32_t count, lost;           /* lost: a bit per place */
	uint32_t first;                 /* the bit of place 0 in `only` of a need */
	uint8_t gpus[SL_NODE_GPUS_MAX]; /* place in the machine's mask -> number */
	struct sl_cluster_event told;   /* the last NODE_PUT */
};

/* The machine, and what its nodes are. */
struct sl_jobs_books {
	struct sl_arena *arena;
	struct sl_cluster *cluster;
	struct sl_jobs_kind kind[SL_NODE_GPUS_MAX];
	uint32_t kinds;
	uint32_t known; /* GPUs that have a place, a bit each */
	bool works;     /* a GPU can be used */
	bool swaps;
};

/* Waits for the end of a job, or for the log of a task to be opened. */
struct sl_jobs_wait {
	struct sl_link link;
	struct sl_jobs *jobs;
	struct sl_peer *peer; /* of a log: NULL once the peer is gone */
	uint64_t job;
	uint32_t task;
	int fd; /* of the log, or negative errno, once the store has opened it */
};

struct sl_jobs {
	struct sl_daemon *daemon;
	char folder[SL_CONFIG_TEXT_MAX + 8];
	sd_event_source *timer;
	struct sl_jobs_books books;
	struct sl_map by_id;
	struct sl_link all, active, waits;
	struct sl_link logs; /* sl_jobs_wait */
	struct sl_link
		moving; /* workloads that wait until they are off their GPUs: move_link */
	struct sl_jobs_guests {
		sl_ns look_at, spread_from;
		uint64_t hour;  /* of the clock */
		uint32_t count; /* of their moves in that hour */
	} guests;
	struct sl_link held; /* peers whose answers wait for the store */
	/* Jobs whose state is to be written, and those in the write in progress. */
	struct sl_link unsaved, saving;
	uint64_t ticket;        /* the next write */
	bool unwritten;         /* that write is wanted */
	bool writes;            /* one is in progress */
	bool trims;             /* likewise logs */
	bool closes;            /* what is done is not handled any more */
	sl_ns write_at;         /* not before */
	sl_ns trim_at;          /* next check of the logs */
	uint32_t living, tasks; /* jobs that have not ended, and their tasks */
	uint32_t bounded;       /* jobs whose user has a bound on workloads */
	/* Actions of the machine that are not carried out yet. */
	struct sl_cluster_action *todo;
	size_t todo_count, todo_room;
	struct sl_pending_because refusal; /* of the JOB_ADD in progress */
	bool was_refused;
	/* Of the TASK_MOVE in progress: why it is refused, or why the last task stayed */
	struct sl_cluster_action move_refusal;
	struct sl_error unmoved;
	uint64_t refused_project; /* in this telling of all projects */
	bool awake;               /* something was noted */
	bool dirty;               /* a cycle may have an effect */
	bool gpus_changed;        /* lost, back, found or resized */
	bool forget;              /* another job has ended */
	bool listens;             /* a task is over, and its GPUs are to be heard of */
	bool promises;            /* the machine may keep places for some jobs */
	uint32_t front_waits;     /* foreground jobs that wait */
	sl_ns tell_at;            /* when one of them is to be told something */
	sl_ns cycle_at;           /* not before */
	sl_ns wake_at;            /* when the machine wants a cycle */
	sl_ns look_at; /* when what cannot be moved now may have become movable */
	sl_ns free_at; /* next try of a task without request */
	char preload
		[SL_CONFIG_TEXT_MAX];  /* value of LD_PRELOAD; "": not looked for yet */
	struct sl_error unread;        /* what could not be read at the start */
	bool is_unread;                /* it is all of them */
	struct sl_error unstored;      /* why the last write failed; "" if it did not */
	uint64_t ended[SL_JOB_STATES]; /* since the start, by outcome */
};

/* --- jobs/queue.c --- */
struct sl_job *sl_jobs_find(const struct sl_jobs *jobs, uint64_t id);
struct sl_job *sl_jobs_new_job(struct sl_jobs *jobs, struct sl_jobs_row *row);
void sl_jobs_drop_job(struct sl_jobs *jobs, struct sl_job *job);
/* "job 7", or "run 12" by its workload, for the log. Returns buf. */
#define SL_JOBS_LABEL_MAX 32
const char *sl_jobs_label(const struct sl_job *job, char buf[SL_JOBS_LABEL_MAX]);
/* sl_jobs_settle has work. */
void sl_jobs_awake(struct sl_jobs *jobs);
void sl_jobs_phase(struct sl_job_task *task, enum sl_job_phase phase);
/* Handles what was noted in tasks, and deadlines that have passed. */
void sl_jobs_look(struct sl_jobs *jobs, sl_ns now);
/* The job's state, from its tasks. */
enum sl_job_state sl_jobs_state_of(const struct sl_job *job);
/* Calls the start off and tries again later: an unrecorded start would be unknown to the next
 * daemon, which would start the task a second time. */
void sl_jobs_unstart(struct sl_job_task *task, const char *why);
uint64_t sl_jobs_now_ms(void);
/* The current attempt's workload; NULL: none, or it is over. */
struct sl_workload *sl_jobs_workload_of(
	const struct sl_jobs *jobs, const struct sl_job_task *task);
/* May places be chosen? Only once the GPUs' use is known. */
bool sl_jobs_may_choose(const struct sl_jobs *jobs);
/* Carries out what the machine has decided. */
void sl_jobs_carry_out(struct sl_jobs *jobs);
/* Runs these parts of a cycle (SL_CYCLE_*), and carries out its decisions. */
void sl_jobs_cycle(struct sl_jobs *jobs, uint32_t which);

/* --- jobs/moving.c --- */
/* Can the processes of the job come back to other GPUs than they left? */
SL_MUST_CHECK bool sl_jobs_may_move(const struct sl_jobs *jobs, const struct sl_job *job);
/* Once the parked workload is off its GPUs, resumes it on these. gpus 0: only tells its task, which
 * is PARKING. */
void sl_jobs_when_away(struct sl_jobs *jobs, struct sl_workload *workload, uint32_t gpus);
/* When the first of them has waited long enough. */
sl_ns sl_jobs_moves_due(const struct sl_jobs *jobs);
/* Looks at all that wait for that. */
void sl_jobs_look_at_moves(struct sl_jobs *jobs);
/* Can a workload that the machine does not count leave its GPUs now? */
SL_MUST_CHECK bool sl_jobs_can_leave(
	const struct sl_jobs *jobs, const struct sl_workload *workload);
/* Sends such a workload to these GPUs. False: text says why it stays. */
SL_MUST_CHECK bool sl_jobs_send(struct sl_jobs *jobs, struct sl_workload *workload,
	uint32_t gpus, struct sl_error *text);

/* --- jobs/guests.c --- */
/* Sends guests home for which workloads there wait, or spreads one, if it is time to look. */
void sl_jobs_guests_look(struct sl_jobs *jobs);

/* --- jobs/save.c --- */
/* A write stores all jobs that wait for one; while it is in progress, the next one waits. So a slow
 * disk sees each job at most once more, however often it has changed. A failed write is repeated
 * every second. */
/* Notes how the job stands, for the next write, and returns its number. */
uint64_t sl_jobs_save(struct sl_jobs *jobs, struct sl_job *job);
/* Starts the next write, if it is wanted. */
void sl_jobs_write(struct sl_jobs *jobs);
/* Stores a new job. */
void sl_jobs_keep(
	struct sl_jobs *jobs, struct sl_job *job, const struct sl_jobspec *spec);
/* Removes an ended job, here and on the disk. False: no memory. */
SL_MUST_CHECK bool sl_jobs_remove(struct sl_jobs *jobs, struct sl_job *job);
/* When logs are to be checked again because of this task; SL_NS_NEVER: it writes none. */
sl_ns sl_jobs_trim_due(const struct sl_jobs *jobs, const struct sl_job_task *task);
/* Keeps logs within job_log_max: that of an ended task, or, once a second, of all that run. */
void sl_jobs_trim_last(struct sl_jobs *jobs, const struct sl_job_task *task);
void sl_jobs_trim(struct sl_jobs *jobs, sl_ns now);
/* At the end: writes what is unsaved, and waits for the disk. */
void sl_jobs_write_last(struct sl_jobs *jobs);

/* --- jobs/books.c --- */
/* Sends one event to the machine in force; its actions are queued. */
void sl_jobs_tell(struct sl_jobs *jobs, const struct sl_cluster_event *event);
/* Makes the machine, and tells it everything: nodes, projects, jobs, running tasks. */
void sl_jobs_books_open(struct sl_jobs *jobs);
/* GPUs were lost, came back, were found or changed: tells the machine, and acts on it. */
void sl_jobs_follow_gpus(struct sl_jobs *jobs);
/* Projects have changed. */
void sl_jobs_put_projects(struct sl_jobs *jobs);
/* Computes from its row what one of its tasks needs. */
void sl_jobs_set_need(const struct sl_jobs *jobs, struct sl_job *job);
struct sl_cluster_event sl_jobs_add_event(
	const struct sl_jobs *jobs, const struct sl_job *job);
/* Tells where the task is, as a fact of that type; false: the machine has no such place. */
bool sl_jobs_tell_place(struct sl_jobs *jobs, enum sl_cluster_event_type type,
	struct sl_job_task *task, const struct sl_workload *workload);
/* Tells the machine of the job, as it stands; it must not have it. */
void sl_jobs_put_job(struct sl_jobs *jobs, struct sl_job *job);
/* Makes the machine forget the job. */
void sl_jobs_take_job(struct sl_jobs *jobs, struct sl_job *job);
/* Tells the machine of the job as it is now, or makes it forget the job. before: the job as the
 * machine was told of it. Without a change that matters to the machine, tells nothing. */
void sl_jobs_put_again(
	struct sl_jobs *jobs, struct sl_job *job, const struct sl_cluster_event *before);
/* Tells the machine anew where its tasks are. */
void sl_jobs_put_anew(struct sl_jobs *jobs, struct sl_job *job);
/* True: the machine took it; else see job->refused. */
bool sl_jobs_count(struct sl_jobs *jobs, struct sl_job *job);
uint64_t sl_jobs_project_id(const struct sl_daemon *daemon, const char *name);
/* For sl_pending_text(). context: the daemon. */
const char *sl_jobs_project_name(void *context, uint64_t id);

/* --- jobs/kinds.c --- */
/* Finds the GPUs by kind, and which of them are lost. */
void sl_jobs_find_kinds(struct sl_jobs *jobs);
/* Tells the machine the kinds whose GPUs or sizes have changed. */
void sl_jobs_put_nodes(struct sl_jobs *jobs);
/* Is one of these GPUs of that node lost? */
bool sl_jobs_is_lost(const struct sl_jobs_books *books, uint64_t node, uint32_t mask);
/* From the machine's mask on a node to GPU numbers (0: no such place), and back (false: none). */
uint32_t sl_jobs_gpus_at(const struct sl_jobs_books *books, uint64_t node, uint32_t mask);
bool sl_jobs_place_of(
	const struct sl_jobs_books *books, uint32_t gpus, uint64_t *node, uint32_t *mask);
/* The bits of the pools that this list names. */
#define SL_JOBS_NO_POOL (1ull << 63) /* none of them exists */
uint64_t sl_jobs_pools_named(const struct sl_jobs *jobs, const char *list);
/* GPUs that pools and swapping leave to the job's project. */
uint32_t sl_jobs_project_gpus(const struct sl_jobs *jobs, const struct sl_job *job);
/* The GPUs that the job's CUDA_VISIBLE_DEVICES names, as `only` of its need. If none of them is
 * there, those that may come back; 0: there are none. */
uint32_t sl_jobs_named_gpus(const struct sl_jobs *jobs, const struct sl_jobs_row *row);
/* Tells the machine sizes of GPUs, pool and jobs that have changed. */
void sl_jobs_measure(struct sl_jobs *jobs);

/* --- jobs/start.c --- */
/* Finds the library that programs are started with; if there is none, err names the remedy. */
bool sl_jobs_find_library(struct sl_jobs *jobs, struct sl_error *err);
void sl_jobs_on_bind(struct sl_jobs *jobs, const struct sl_cluster_action *action);
/* Of a task that is to come back to these other GPUs: it is off its own, or something of it
 * stays there. */
void sl_jobs_task_goes(struct sl_jobs *jobs, struct sl_job_task *task,
	struct sl_workload *workload, bool away);
/* Starts a task whose place is known and whose job is stored. */
void sl_jobs_start(struct sl_jobs *jobs, struct sl_job_task *task);
/* Makes a workload for the task, in the lists; *took: the ledger admitted it, with its GPUs. NULL:
 * no memory. */
struct sl_workload *sl_jobs_propose(
	struct sl_jobs *jobs, struct sl_job_task *task, uint32_t gpus, bool *took);
/* What STARTING waits for may be done. */
void sl_jobs_try_go(struct sl_jobs *jobs, struct sl_job_task *task);
/* Starts tasks of jobs without request whose time has come. */
void sl_jobs_start_free(struct sl_jobs *jobs);
/* Counts a task that got its go at that time. */
void sl_jobs_note_begun(struct sl_job_task *task, uint64_t when_ms);
/* Sets the next try of such a task. */
void sl_jobs_free_at(struct sl_jobs *jobs, struct sl_job_task *task, sl_ns at);

/* --- jobs/end.c --- */
void sl_jobs_on_stop(struct sl_jobs *jobs, const struct sl_cluster_action *action);
void sl_jobs_task_over(struct sl_jobs *jobs, struct sl_job_task *task);
/* The same for a foreground job. */
void sl_jobs_front_over(struct sl_jobs *jobs, struct sl_job_task *task);
void sl_jobs_task_parked(struct sl_jobs *jobs, struct sl_job_task *task);
/* Goes on with PARKING that the earlier daemon began. */
void sl_jobs_goes_on_parking(struct sl_job_task *task);
/* Of a task that goes to other GPUs: it has left its own, or it cannot. */
void sl_jobs_task_left(struct sl_jobs *jobs, struct sl_job_task *task, bool away);
/* Bytes that parking would leave on its GPUs, besides its contexts. */
SL_MUST_CHECK uint64_t sl_jobs_held_by(
	const struct sl_jobs *jobs, const struct sl_workload *workload);
/* Is all of that task on the host now? */
SL_MUST_CHECK bool sl_jobs_has_left(
	const struct sl_jobs *jobs, const struct sl_job_task *task);
void sl_jobs_task_resumed(struct sl_jobs *jobs, struct sl_job_task *task);
void sl_jobs_task_late(struct sl_jobs *jobs, struct sl_job_task *task);
/* A task of the earlier daemon: counts it as begun if its record says so and the job's state does
 * not. */
void sl_jobs_find_begun(struct sl_jobs *jobs, struct sl_job_task *task);
/* Was its supervisor killed? It is gone, and its record does not say how the program ended. */
SL_MUST_CHECK bool sl_jobs_was_killed(
	const struct sl_jobs *jobs, const struct sl_job_task *task);
/* Ends the job once all its tasks are over. */
void sl_jobs_check_end(struct sl_jobs *jobs, struct sl_job *job);
/* Ends a waiting task for good. */
void sl_jobs_cancel(struct sl_jobs *jobs, struct sl_job_task *task);
/* Removes jobs that ended long ago, or are too many. */
void sl_jobs_forget_old(struct sl_jobs *jobs);

/* --- jobs/stop.c --- */
/* Stops the task as `sluice stop` does, once that is stored. asked: for good. Returns how many
 * processes will be signalled. */
uint32_t sl_jobs_end_task(
	struct sl_jobs *jobs, struct sl_job_task *task, sl_ns grace, bool asked);
/* What STOPPING waits for may be stored. */
void sl_jobs_try_stop(struct sl_jobs *jobs, struct sl_job_task *task);
void sl_jobs_stop_now(struct sl_jobs *jobs, struct sl_job_task *task);
/* Stops it although that cannot be stored; why: the reason. */
void sl_jobs_stop_unwritten(
	struct sl_jobs *jobs, struct sl_job_task *task, const char *why);
/* Stores the job's state; messages to that peer wait from now on for that, and then for the
 * journal. */
void sl_jobs_hold_for(struct sl_jobs *jobs, struct sl_job *job, struct sl_peer *peer);
/* That write is done: its peers wait for the journal only. */
void sl_jobs_release(struct sl_jobs *jobs, uint64_t ticket);
/* At the end: takes the peers out of the lists. */
void sl_jobs_let_go(struct sl_jobs *jobs);

/* --- jobs/user.c --- */
/* May this user have another job, with so many tasks and bytes? If not, err says which bound is
 * hit, and the remedy. */
SL_MUST_CHECK bool sl_jobs_user_may(struct sl_jobs *jobs, uid_t uid, uint32_t tasks,
	uint64_t bytes, struct sl_queue_verdict *verdict, struct sl_error *err);
/* The new job is stored: removes ended jobs as far as its space needs. */
void sl_jobs_user_make_room(struct sl_jobs *jobs, struct sl_job *new);

/* --- jobs/rights.c --- */
/* The rights of that peer's process. False: a job cannot have them; err says why, and the
 * remedy. */
SL_MUST_CHECK bool sl_jobs_ask_rights(
	const struct sl_peer *peer, struct sl_user_rights *out, struct sl_error *err);
/* 0 or negative errno. */
SL_MUST_CHECK int sl_jobs_add_rights(
	const struct sl_user_rights *rights, struct sl_jobspec *spec);

/* --- jobs/bounds.c --- */
/* The job's user and bound, as one number for the machine; 0 without a bound. */
uint64_t sl_jobs_owner_of(const struct sl_job *job);
/* Counts of one user, shared by consecutive jobs. Begins with {0}. */
struct sl_jobs_counted {
	uint64_t owner;
	uint32_t living,
		standing; /* workloads; and of these, tasks of jobs with that owner */
};
/* Tells how many tasks of jobs the owner may have now; for a job with a bound. */
struct sl_cluster_event sl_jobs_most_event(const struct sl_jobs *jobs,
	const struct sl_job *job, struct sl_jobs_counted *counted);
/* Would starting its next tasks exceed its user's bound? Then *because says so. */
SL_MUST_CHECK bool sl_jobs_bound_holds(const struct sl_jobs *jobs,
	const struct sl_job *job, struct sl_pending_because *because);
/* Holds waiting jobs, or releases them, by their users' current workloads. */
void sl_jobs_look_at_bounds(struct sl_jobs *jobs);

/* --- jobs/rules.c --- */
/* Do limits and quotas leave what the job asks for now? If not, *because and text say why, and what
 * would help. */
SL_MUST_CHECK bool sl_jobs_rules_allow(struct sl_jobs *jobs, const struct sl_job *job,
	struct sl_pending_because *because, struct sl_error *text);

/* --- jobs/front.c --- */
/* GPUs where the machine keeps places, and where starting or resuming tasks have not claimed theirs
 * in the ledger yet. */
uint32_t sl_jobs_kept_gpus(struct sl_jobs *jobs);
/* A place was found; false: the job did not start there. */
bool sl_jobs_front_start(struct sl_jobs *jobs, struct sl_job_task *task, uint32_t gpus);
/* Sets whether the job can be preempted, by its flags and whether swapping is on. */
void sl_jobs_front_set_flags(const struct sl_jobs *jobs, struct sl_job *job);
/* Tries foreground jobs that let earlier ones have their cycle first. */
void sl_jobs_front_after_cycle(struct sl_jobs *jobs);
/* Tells waiting jobs' peers why they wait, and drops those that are gone. */
void sl_jobs_front_settle(struct sl_jobs *jobs);
/* The job is over; if it waited, its submitter is told. */
void sl_jobs_front_ended(struct sl_jobs *jobs, struct sl_job *job);
/* Something was freed. */
void sl_jobs_front_hurry(struct sl_jobs *jobs);
/* The cause of the node's refusal may be gone: the machine may choose that place again. */
void sl_jobs_front_again(struct sl_jobs *jobs, struct sl_job *job);
/* Is it held by the queue, and so listed as a job, not as a workload? */
bool sl_jobs_front_is_listed(const struct sl_job *job);
/* Finds foreground jobs of the earlier daemon. */
void sl_jobs_front_recover(struct sl_jobs *jobs);

/* --- jobs/alone.c --- */
/* Does the last attempt's supervisor live, though its workload is unknown? Then the task is alone
 * from now on. */
SL_MUST_CHECK bool sl_jobs_alone_find(struct sl_jobs *jobs, struct sl_job_task *task);
/* SIGTERM now, and after its grace SIGKILL to all descendants of the supervisor. */
void sl_jobs_alone_stop(const struct sl_jobs *jobs, struct sl_job_task *task);
/* Checks it again: its supervisor's end is the task's. */
void sl_jobs_alone_look(struct sl_jobs *jobs, struct sl_job_task *task);
bool sl_jobs_alone_any(const struct sl_job *job);

/* --- jobs/submit.c, jobs/wire.c, jobs/recover.c --- */
/* Answers SUBMIT: the job is stored. */
void sl_jobs_reply_submit(struct sl_jobs *jobs, struct sl_job *job);
void sl_jobs_store_failed(
	struct sl_jobs *jobs, struct sl_job *job, const struct sl_error *err);
/* Why the job waits, which part of it waits, or how it failed; "" if there is nothing to tell.
 * Returns buf. */
const char *sl_jobs_why(
	const struct sl_jobs *jobs, const struct sl_job *job, char *buf, size_t size);
/* Tells the peers that wait for the job's end. */
void sl_jobs_tell_waits(struct sl_jobs *jobs, const struct sl_job *job);
void sl_jobs_recover(struct sl_jobs *jobs);

#endif
