/*
 * internal - what the daemon remembers of jobs; for jobs*.c only
 *
 *	jobs/queue.c         open, close, when a cycle is due, and what its actions lead to
 *	jobs/books.c   nodes, projects, jobs and workloads as the cluster machine knows them
 *	jobs/kinds.c   the GPUs of this machine as its nodes
 *	jobs/submit.c  SUBMIT
 *	jobs/left.c    what a killed supervisor leaves behind
 *	jobs/rights.c  limits and capabilities of who submits
 *	jobs/names.c   what jobs and tasks are called
 *	jobs/user.c    what one user may have in the queue
 *	jobs/start.c   BIND
 *	jobs/bounds.c  how many workloads a user may have
 *	jobs/rules.c   what rules (limits, quotas) leave to one in the foreground
 *	jobs/front.c   RUN: jobs in the foreground, which wait with whoever asked for them, or do
 *	               not wait at all
 *	jobs/end.c     STOP, park and resume; ends of tasks and jobs
 *	jobs/stop.c    from the wish that a task ends to the signal
 *	jobs/wire.c    rows, waits, stops and logs
 *	jobs/news.c    what the rest of the daemon tells and asks
 *	jobs/recover.c what the daemon before left
 *	jobs/alone.c   a task whose workload is not known any more, and whose supervisor lives
 *
 * A task is in one phase, on this side of the machine:
 *
 *	WAITING -> CHOSEN -> STARTING -> RUNS -> PARKING -> PARKED -> RESUMING -> RUNS
 *	any of them with a workload -> STOPPING -> WAITING or OVER
 *
 * The machine must not be stepped from within its own actions, so these are queued; nor from the
 * middle of other people's callbacks, so what they tell is noted in the task, and all of it is
 * carried out by sl_jobs_settle().
 */
#ifndef SL_DAEMON_JOBS_INTERNAL_H
#define SL_DAEMON_JOBS_INTERNAL_H

#include "daemon/core/user.h"
#include "daemon/jobs/jobs.h"
#include "daemon/jobs/shim.h"
#include "daemon/jobs/store.h"
#include "policy/cluster.h"
#include "policy/quota/queue.h"

/* Jobs that have not ended, and their tasks. */
#define SL_JOBS_MOST       10000
#define SL_JOBS_TASKS_MOST 100000
/* So long a task may take to leave its GPUs, or to come back to them. */
#define SL_JOBS_PARK_NS   (30 * SL_S)
#define SL_JOBS_RESUME_NS (30 * SL_S)
/* So long the signal waits for the disk. */
#define SL_JOBS_STORE_NS (5 * SL_S)
/* Cycles are so far apart at least. */
#define SL_JOBS_CYCLE_NS (50 * SL_MS)
/* Of every job, while no GPU can be used. */
#define SL_JOBS_NO_GPU                                                               \
	"there is no GPU here that works now; it runs when there is one again, and " \
	"sluice doctor says what is wrong"

enum sl_job_phase {
	SL_PHASE_WAITING = 0,
	SL_PHASE_CHOSEN,   /* a place was found, and its job is not stored yet */
	SL_PHASE_STARTING, /* its shim waits until it is written down who runs */
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
	uint64_t node; /* the machine's, and its mask there */
	uint32_t gpu_mask;
	struct sl_shim
		shim; /* STARTING; of later phases its pid alone, 0: it is not our child */
	/* The journal's writing that must be over before it goes, or is signalled; 0: not noted
	 * there yet */
	uint64_t commit;
	uint64_t ticket; /* of the state with it; 0: that is stored */
	/* Of PARKING and RESUMING; of STOPPING until it is told; when it is looked at, while alone
	 */
	sl_ns deadline;
	sl_ns grace;    /* of STOPPING: from SIGTERM to SIGKILL */
	sl_ns retry_at; /* of a job without request: not before */
	sl_ns kill_at;  /* alone and told to end: SIGKILL */
	bool alone; /* its supervisor lives, and its workload is not known: jobs/alone.c */
	bool went;  /* of this attempt: that it was told to go is known, and counted */
	bool stopped;   /* it is to end for others */
	bool bereft;    /* of this attempt: a GPU of it is lost */
	bool told;      /* of STOPPING: it was signalled, or was never to begin */
	bool asked;     /* somebody asked for its end */
	bool failed;    /* it ended, and its gang misses it */
	bool unwritten; /* it did not begin, for nobody could write down that it would */
	bool former;    /* this daemon has not seen anything of this attempt */
	/* Of PARKING: begun by the daemon before, so its end may have been told before there was
	 * anybody to hear it */
	bool unheard;
	bool is_over, is_parked, is_resumed; /* told, and not yet acted on */
	/* Of this attempt: the last demand that its limit denied. 0: none was */
	sl_ns denied_at;
	struct sl_node_because denied;
	sl_ns spared_until; /* as the machine before knew: no victim before */
};

struct sl_job {
	struct sl_link link; /* sl_jobs.all, by number */
	struct sl_jobs_row row;
	struct sl_need need;
	bool is_free; /* no request: the queue does not count it */
	bool counted; /* the machine has it */
	bool bound; /* its user may have no more now, so the machine is not told of it */
	uint32_t most; /* so many tasks of jobs its user may have, as the machine knows */
	bool stored;   /* its first state is on disk */
	bool over;     /* row.state is the last one */
	bool parks;    /* reclaim parks it */
	uint64_t ticket;           /* of its first state */
	struct sl_peer *submitter; /* waits for that */
	bool reply_due;
	uint64_t park_mib; /* as the machine knows */
	sl_ns swap_cost;   /* the same */
	/* As the machine before knew: not started before held_until, and nobody stopped for it
	 * before paused_until. */
	uint32_t failures;
	sl_ns held_until, paused_until;
	sl_ns waits_since; /* it wants something that it has not got; 0: it does not */
	struct sl_pending_because refused; /* why it is not counted */
	struct sl_cluster_forecast
		forecast;    /* before it was counted, for its submitter */
	char node_said[256]; /* why the node's ledger refused it, last */
	bool drops;          /* of its user's that have ended some go once it is stored */
	uint64_t used_bytes; /* of the disk */
	bool used_known;     /* that is so, and stays so until it starts */
	/* Of jobs in the foreground. Their numbers are those of their workloads, with
	 * SL_JOB_FOREGROUND. */
	bool foreground;
	bool patient; /* may wait for its start */
	bool waits;   /* for its start; submitter is told why */
	bool apart; /* the machine has no word for the GPUs it may use: it is tried beside it */
	bool hurries; /* something has come free since it was looked at */
	/* Waits, for those before it to have had their cycle: the machine is not told yet */
	bool early;
	struct sl_process *process; /* that is to become the program */
	uint32_t told;              /* what it waits for, as its submitter knows */
	sl_ns told_at;
	struct sl_job_task *tasks;
};

/* GPUs of one kind: one node of the machine. */
struct sl_jobs_kind {
	char name[64];
	uint64_t capacity_bytes;
	uint32_t count, mib;
	uint8_t gpus[SL_NODE_GPUS_MAX]; /* place in the machine's mask -> number */
};

/* The machine with what it was told; also made for a question alone. */
struct sl_jobs_books {
	struct sl_arena *arena;
	struct sl_cluster *cluster;
	struct sl_jobs_kind kind[SL_NODE_GPUS_MAX];
	uint32_t kinds;
	uint64_t pool_mib;
	bool swaps;
	bool refused_project; /* a change was out of order */
};

/* For the end of a job, or for the log of a task to be open. */
struct sl_jobs_wait {
	struct sl_link link;
	struct sl_peer *peer; /* of a log: NULL once it is gone */
	uint64_t job;
	uint32_t task;
	uint64_t ticket;
};

struct sl_jobs {
	struct sl_daemon *daemon;
	char folder[SL_CONFIG_TEXT_MAX + 8];
	struct sl_jobs_store *store;
	sd_event_source *io, *timer;
	struct sl_jobs_books books;
	struct sl_map by_id;
	struct sl_link all, active, waits;
	struct sl_link logs; /* sl_jobs_wait */
	struct sl_link held; /* peers whose answers wait for the store */
	uint64_t next_ticket;
	uint32_t living, tasks; /* jobs that have not ended, and their tasks */
	uint32_t bounded;       /* jobs whose user may have so many workloads at a time */
	/* Actions of the machine that are still to be carried out. */
	struct sl_cluster_action *todo;
	size_t todo_count, todo_room;
	struct sl_pending_because refusal; /* of the JOB_ADD that is being said */
	bool was_refused;
	bool awake;           /* something was noted */
	bool dirty;           /* a cycle may do something */
	bool rebuild;         /* other GPUs than before */
	bool forget;          /* there is one more that has ended */
	bool promises;        /* the machine may keep places for some */
	uint32_t front_waits; /* jobs in the foreground that wait */
	sl_ns tell_at;        /* when one of them is to be told something */
	sl_ns cycle_at;       /* not before */
	sl_ns wake_at;        /* the machine's wish */
	sl_ns free_at;        /* when a task without request is to be tried again */
	char preload
		[SL_CONFIG_TEXT_MAX];  /* what LD_PRELOAD gets; "": not looked for yet */
	struct sl_error unread;        /* what could not be read at the start */
	bool is_unread;                /* that is the folder as a whole */
	struct sl_error unstored;      /* why the last writing failed; "" if it did not */
	uint64_t ended[SL_JOB_STATES]; /* since the start, by how */
};

/* --- jobs/queue.c --- */
struct sl_job *sl_jobs_find(const struct sl_jobs *jobs, uint64_t id);
struct sl_job *sl_jobs_new_job(struct sl_jobs *jobs, struct sl_jobs_row *row);
void sl_jobs_drop_job(struct sl_jobs *jobs, struct sl_job *job);
/* "job 7", or "run 12" by its workload, for the log. Returns buf. */
#define SL_JOBS_LABEL_MAX 32
const char *sl_jobs_label(const struct sl_job *job, char buf[SL_JOBS_LABEL_MAX]);
/* sl_jobs_settle is to look. */
void sl_jobs_awake(struct sl_jobs *jobs);
void sl_jobs_phase(struct sl_job_task *task, enum sl_job_phase phase);
/* What was noted in tasks is acted on, and what is late by now. */
void sl_jobs_look(struct sl_jobs *jobs, sl_ns now);
/* How the job stands, by its tasks. */
enum sl_job_state sl_jobs_state_of(const struct sl_job *job);
/* It does not go: a daemon after this one would not know of it, and start it a second time. It is
 * tried again. */
void sl_jobs_unstart(struct sl_job_task *task, const char *why);
/* Writes it down; ticket 0: nobody waits for that. */
void sl_jobs_save(struct sl_jobs *jobs, struct sl_job *job, uint64_t ticket);
uint64_t sl_jobs_now_ms(void);
/* Of the attempt that is under way; NULL: none is, or it is over. */
struct sl_workload *sl_jobs_workload_of(
	const struct sl_jobs *jobs, const struct sl_job_task *task);
/* Places may be chosen: what stands on the GPUs is known. */
bool sl_jobs_may_choose(const struct sl_jobs *jobs);
/* A cycle of these parts (SL_CYCLE_*), and what it decides. */
void sl_jobs_cycle(struct sl_jobs *jobs, uint32_t which);

/* --- jobs/books.c --- */
/* One event to the machine in force; its actions are queued. */
void sl_jobs_tell(struct sl_jobs *jobs, const struct sl_cluster_event *event);
/* Everything anew: nodes, projects, jobs, who runs. */
void sl_jobs_rebuild(struct sl_jobs *jobs);
/* Into *books, which was empty, with no effect on what is in force. */
void sl_jobs_books_init(struct sl_jobs *jobs, struct sl_jobs_books *books,
	sl_cluster_action_fn emit, void *context);
void sl_jobs_books_fini(struct sl_jobs_books *books);
void sl_jobs_put_projects(struct sl_jobs *jobs);
/* What one of its tasks needs, by its row. */
void sl_jobs_set_need(const struct sl_jobs *jobs, struct sl_job *job);
struct sl_cluster_event sl_jobs_add_event(
	const struct sl_jobs *jobs, const struct sl_job *job);
/* Tells the machine of it, as it stands. */
void sl_jobs_put_job(struct sl_jobs *jobs, struct sl_job *job);
/* The machine is to forget it; what only it knows of it is kept for when it is told again. */
void sl_jobs_take_job(struct sl_jobs *jobs, struct sl_job *job);
/* The same job in the foreground as its row has it now; before: as it was added. Where nothing has
 * changed for the machine, it is told nothing. */
void sl_jobs_put_again(
	struct sl_jobs *jobs, struct sl_job *job, const struct sl_cluster_event *before);
/* True: the machine took it; else job->refused. */
bool sl_jobs_count(struct sl_jobs *jobs, struct sl_job *job);
uint64_t sl_jobs_project_id(const struct sl_daemon *daemon, const char *name);
/* For sl_pending_text(). context: the daemon. */
const char *sl_jobs_project_name(void *context, uint64_t id);

/* --- jobs/kinds.c --- */
/* The GPUs that can be used, by kind, with their sizes and that of the pool. */
void sl_jobs_find_kinds(const struct sl_daemon *daemon, struct sl_jobs_books *books);
/* The machine's mask on that node -> numbers of GPUs, 0: there is no such place; and back, false
 * likewise. */
uint32_t sl_jobs_gpus_at(const struct sl_jobs_books *books, uint64_t node, uint32_t mask);
bool sl_jobs_place_of(
	const struct sl_jobs_books *books, uint32_t gpus, uint64_t *node, uint32_t *mask);
/* The bits of the pools that this list of names stands for; bit 63: of none that is there. */
uint64_t sl_jobs_pools_named(const struct sl_jobs_books *books, const char *list);
/* The GPUs that its CUDA_VISIBLE_DEVICES leaves are these pools of the machine; false: not whole
 * ones. */
bool sl_jobs_pools_of(
	const struct sl_jobs *jobs, const struct sl_jobs_row *row, uint64_t *pools);
/* Sizes of GPUs and pool, and of what jobs have on them, if they have changed. */
void sl_jobs_measure(struct sl_jobs *jobs);

/* --- jobs/start.c --- */
/* The library that programs are started with is there; else err says the remedy. */
bool sl_jobs_find_library(struct sl_jobs *jobs, struct sl_error *err);
void sl_jobs_on_bind(struct sl_jobs *jobs, const struct sl_cluster_action *action);
/* A task whose place is known, and whose job is stored. */
void sl_jobs_start(struct sl_jobs *jobs, struct sl_job_task *task);
/* A new workload of the task, in the lists; it is the ledger's, with its GPUs, if *took. NULL: no
 * memory. */
struct sl_workload *sl_jobs_propose(
	struct sl_jobs *jobs, struct sl_job_task *task, uint32_t gpus, bool *took);
/* What STARTING waited for may be there. */
void sl_jobs_try_go(struct sl_jobs *jobs, struct sl_job_task *task);
/* Tasks of jobs without request that do not run, and whose time has come. */
void sl_jobs_start_free(struct sl_jobs *jobs);
/* A task was told to go, then: it is counted. */
void sl_jobs_note_begun(struct sl_job_task *task, uint64_t when_ms);
/* A task of such a job is to be started then. */
void sl_jobs_free_at(struct sl_jobs *jobs, struct sl_job_task *task, sl_ns at);

/* --- jobs/end.c --- */
void sl_jobs_on_stop(struct sl_jobs *jobs, const struct sl_cluster_action *action);
void sl_jobs_task_over(struct sl_jobs *jobs, struct sl_job_task *task);
/* The same in the foreground. */
void sl_jobs_front_over(struct sl_jobs *jobs, struct sl_job_task *task);
void sl_jobs_task_parked(struct sl_jobs *jobs, struct sl_job_task *task);
/* PARKING, as the daemon before left it. */
void sl_jobs_goes_on_parking(struct sl_job_task *task);
/* Has such a one all on the host by now? */
SL_MUST_CHECK bool sl_jobs_has_left(
	const struct sl_jobs *jobs, const struct sl_job_task *task);
void sl_jobs_task_resumed(struct sl_jobs *jobs, struct sl_job_task *task);
void sl_jobs_task_late(struct sl_jobs *jobs, struct sl_job_task *task);
/* A task of the daemon before: counts it as begun if its record says so, and nobody had written
 * that down. */
void sl_jobs_find_begun(struct sl_jobs *jobs, struct sl_job_task *task);
/* Its supervisor has gone without saying how its program ended, so it was killed. */
SL_MUST_CHECK bool sl_jobs_was_killed(
	const struct sl_jobs *jobs, const struct sl_job_task *task);
/* Is everything of it over? Then so is it. */
void sl_jobs_check_end(struct sl_jobs *jobs, struct sl_job *job);
/* A task that waits is over for good. */
void sl_jobs_cancel(struct sl_jobs *jobs, struct sl_job_task *task);
/* Removes jobs that ended long ago, or are too many. */
void sl_jobs_forget_old(struct sl_jobs *jobs);

/* --- jobs/stop.c --- */
/* As `sluice stop`, once that is written down. asked: for good. Returns how many processes will be
 * signalled. */
uint32_t sl_jobs_end_task(
	struct sl_jobs *jobs, struct sl_job_task *task, sl_ns grace, bool asked);
/* What STOPPING waited for may be written. */
void sl_jobs_try_stop(struct sl_jobs *jobs, struct sl_job_task *task);
void sl_jobs_stop_now(struct sl_jobs *jobs, struct sl_job_task *task);
/* It cannot be written, for that reason: all the same. */
void sl_jobs_stop_unwritten(
	struct sl_jobs *jobs, struct sl_job_task *task, const char *why);
/* Stores how the job stands; what is said to that peer from here on waits for it, and then for the
 * journal. */
void sl_jobs_hold_for(struct sl_jobs *jobs, struct sl_job *job, struct sl_peer *peer);
/* Of those: what that ticket was for is over. */
void sl_jobs_release(struct sl_jobs *jobs, uint64_t ticket);
/* At the end: none of them is in a list of jobs any more. */
void sl_jobs_let_go(struct sl_jobs *jobs);

/* --- jobs/user.c --- */
/* May this user have another job, with so many tasks and bytes? Else err says of what there are too
 * many, and the remedy. */
SL_MUST_CHECK bool sl_jobs_user_may(struct sl_jobs *jobs, uid_t uid, uint32_t tasks,
	uint64_t bytes, struct sl_queue_verdict *verdict, struct sl_error *err);
/* A new one is stored, and not before: removes what has ended and has to go for it. */
void sl_jobs_user_make_room(struct sl_jobs *jobs, struct sl_job *new);

/* --- jobs/rights.c --- */
/* Of that peer's process. False: no job may be started with them; err says why, and the remedy. */
SL_MUST_CHECK bool sl_jobs_ask_rights(
	const struct sl_peer *peer, struct sl_user_rights *out, struct sl_error *err);
/* 0 or negative errno. */
SL_MUST_CHECK int sl_jobs_add_rights(
	const struct sl_user_rights *rights, struct sl_jobspec *spec);

/* --- jobs/bounds.c --- */
/* Its user and the bound that it came with, to the machine; 0 without a bound. */
uint64_t sl_jobs_owner_of(const struct sl_job *job);
/* What the user has is counted once for all jobs of a row. Begins with {0}. */
struct sl_jobs_counted {
	uint64_t owner;
	uint32_t living,
		standing; /* workloads; of these, tasks of jobs with that owner */
};
/* How many tasks of jobs its owner may have now, for one that has a bound. */
struct sl_cluster_event sl_jobs_most_event(const struct sl_jobs *jobs,
	const struct sl_job *job, struct sl_jobs_counted *counted);
/* Would its user have too many with what of it starts next? Then *because says so. */
SL_MUST_CHECK bool sl_jobs_bound_holds(const struct sl_jobs *jobs,
	const struct sl_job *job, struct sl_pending_because *because);
/* Jobs that wait are held, or not any more, as their users have workloads now. */
void sl_jobs_look_at_bounds(struct sl_jobs *jobs);

/* --- jobs/rules.c --- */
/* Do limits and quotas leave what it asks for now? Else *because and text say why not, and what
 * would help. */
SL_MUST_CHECK bool sl_jobs_rules_allow(struct sl_jobs *jobs, const struct sl_job *job,
	struct sl_pending_because *because, struct sl_error *text);

/* --- jobs/front.c --- */
/* A place was found; false: it did not start there. */
bool sl_jobs_front_start(struct sl_jobs *jobs, struct sl_job_task *task, uint32_t gpus);
/* One that waits beside the machine is tried again. */
void sl_jobs_front_try(struct sl_jobs *jobs, struct sl_job *job);
/* May it be taken from? As flags and swapping are. */
void sl_jobs_front_set_flags(const struct sl_jobs *jobs, struct sl_job *job);
/* Those that came before have had their turn. */
void sl_jobs_front_after_cycle(struct sl_jobs *jobs);
/* Those who wait are told why, or have gone. */
void sl_jobs_front_settle(struct sl_jobs *jobs);
/* It is over; if it waited, its submitter is told. */
void sl_jobs_front_ended(struct sl_jobs *jobs, struct sl_job *job);
/* Something has come free. */
void sl_jobs_front_hurry(struct sl_jobs *jobs);
/* What the node refused it for may be there: the machine may choose that place again. */
void sl_jobs_front_again(struct sl_jobs *jobs, struct sl_job *job);
/* Is it among what the queue holds: not a workload like others? */
bool sl_jobs_front_is_listed(const struct sl_job *job);
/* Of the daemon before. */
void sl_jobs_front_recover(struct sl_jobs *jobs);

/* --- jobs/alone.c --- */
/* Does the supervisor of its last attempt live, though there is no workload of it? Then the task is
 * alone from now on. */
SL_MUST_CHECK bool sl_jobs_alone_find(struct sl_jobs *jobs, struct sl_job_task *task);
/* SIGTERM now, and after its grace SIGKILL to all that descends from the supervisor. */
void sl_jobs_alone_stop(const struct sl_jobs *jobs, struct sl_job_task *task);
/* It is looked at again: the end of its supervisor is that of the task. */
void sl_jobs_alone_look(struct sl_jobs *jobs, struct sl_job_task *task);
bool sl_jobs_alone_any(const struct sl_job *job);

/* --- jobs/submit.c, jobs/wire.c, jobs/recover.c --- */
/* The answer to SUBMIT: it is stored. */
void sl_jobs_reply_submit(struct sl_jobs *jobs, struct sl_job *job);
void sl_jobs_store_failed(
	struct sl_jobs *jobs, struct sl_job *job, const struct sl_error *err);
/* Why it waits, or what of it does; or how it ended badly; "" if there is nothing to say. Returns
 * buf. */
const char *sl_jobs_why(
	const struct sl_jobs *jobs, const struct sl_job *job, char *buf, size_t size);
/* The store has opened a log, or says why not; fd is taken. False: it was something else. */
SL_MUST_CHECK bool sl_jobs_log_is_open(struct sl_jobs *jobs, uint64_t ticket, int fd);
/* Those who wait for it are told. */
void sl_jobs_tell_waits(struct sl_jobs *jobs, const struct sl_job *job);
SL_MUST_CHECK int sl_jobs_recover(struct sl_jobs *jobs, struct sl_error *err);

#endif
