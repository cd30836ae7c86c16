/*
 * jobs - the queue: what was submitted, and how its tasks stand
 *
 * The machine of policy/cluster decides; this turns what happens into its events and carries its
 * actions out:
 *
 *	BIND      a workload on these GPUs (WORKLOAD_ADD; refused: BIND_REFUSED), a shim that waits,
 *	          the journal and the job's state written, then go, then TASK_RUNS. Of a parked
 *	          task: RESUME of its workload instead.
 *	STOP      park: the workload is parked, and once all of it is on the host TASK_ENDED(again).
 *	          terminate: as `sluice stop`, and once the shim is gone TASK_ENDED(again).
 *	the end   of a shim, by its pidfd: the record is read; 0, a failure that is tried again
 *	          (after a pause that grows), or one for good.
 *
 * A `sluice run` with a request is such a job, too, in the foreground (jobs/front.c): of one task,
 * whose program is the process that asked. The node's own ledger has the last word in everything.
 *
 * A task is a workload named JOB (one task) or JOB.T. All calls are the loop's.
 */
#ifndef SL_DAEMON_JOBS_JOBS_H
#define SL_DAEMON_JOBS_JOBS_H

#include "daemon/link/peer.h"
#include "daemon/state/part.h"

struct sl_jobs; /* sl_daemon.jobs, NULL until opened */

/* Reads what is stored and finds again what runs; before peers are let in, after the journal was
 * read. 0 or negative errno. */
SL_MUST_CHECK int sl_jobs_open(struct sl_daemon *daemon, struct sl_error *err);
void sl_jobs_close(struct sl_daemon *daemon);

/* RUN of a greeted control peer, whose fields are in order; takes over one use of process, which is
 * the peer's. Answered now, or, with SL_RUN_WAIT, once it starts. */
struct sl_process;
void sl_jobs_run(
	struct sl_peer *peer, const struct sl_msg_run *run, struct sl_process *process);
/* Whether the bounds of its user let a job of this size, priority and number of tasks ever start,
 * as the node would judge it on the largest GPU; else text says why not. */
struct sl_jobs_row;
SL_MUST_CHECK bool sl_jobs_within_bounds(
	struct sl_peer *peer, const struct sl_jobs_row *row, struct sl_error *text);
/* RUN_REPLY: what it got, or, if workload is NULL, why nothing. */
void sl_jobs_answer_run(struct sl_peer *peer, const struct sl_workload *workload,
	uint32_t reason, const char *text);
/* This peer waits for an answer to RUN. */
SL_MUST_CHECK bool sl_jobs_run_waits(const struct sl_peer *peer);
/* Of `sluice run`, parked for others, or on its way there or back: the journal keeps that. */
SL_MUST_CHECK bool sl_jobs_keeps_run(const struct sl_workload *workload);
/* The same, and on its way there. */
SL_MUST_CHECK bool sl_jobs_run_leaves(const struct sl_workload *workload);

/* Messages of greeted control peers. fds: what came along with SUBMIT. */
void sl_jobs_submit(struct sl_peer *peer, const struct sl_msg_submit *submit,
	struct sl_wire_fds *fds);
void sl_jobs_wait(struct sl_peer *peer, const struct sl_msg_job_wait *wait);
void sl_jobs_stop(struct sl_peer *peer, const struct sl_msg_job_stop *stop);
void sl_jobs_log(struct sl_peer *peer, const struct sl_msg_job_log *log);
/* Row number `index` of the list of jobs, or false behind the last. */
bool sl_jobs_row_at(const struct sl_daemon *daemon, uint64_t *after, union sl_msg *msg);
/* The next QUEUE_ROW; false: there are no more. */
bool sl_jobs_queue_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg);
/* How the folder of jobs is: as it was read at the start, and as the last writing went. */
void sl_jobs_part(const struct sl_daemon *daemon, struct sl_part *part);
/* A job of this project has not ended: err says which, and the remedy. */
SL_MUST_CHECK bool sl_jobs_need_project(
	const struct sl_daemon *daemon, const char *project, struct sl_error *err);
/* A peer that waits for a job has gone. */
void sl_jobs_peer_gone(struct sl_peer *peer);

/* What the rest of the daemon tells it. Each is cheap when there are no jobs. */
void sl_jobs_workload_changed(struct sl_daemon *daemon,
	struct sl_workload *
		workload); /* what a `sluice run` requests, or that it is parked by hand */
/* Do the rules of its project leave that to this `sluice run`? Else text says why not. Of others:
 * yes. */
SL_MUST_CHECK bool sl_jobs_may_have(struct sl_daemon *daemon,
	const struct sl_workload *workload, const struct sl_amount *request,
	const struct sl_amount *limit, uint32_t flags, struct sl_error *text);
void sl_jobs_workload_over(struct sl_daemon *daemon, uint64_t workload);
/* The root of that workload has died; if it was a supervisor that was killed, so are the
 * descendants of its program. */
void sl_jobs_supervisor_gone(
	struct sl_daemon *daemon, const struct sl_workload *workload);
/* As `sluice stop`, by a person: for good. How many processes will be signalled, once that is
 * stored. */
uint32_t sl_jobs_workload_stopped(
	struct sl_daemon *daemon, uint64_t workload, sl_ns grace);
/* What is said to that peer from here on waits until how the job of that workload stands is stored,
 * and for the journal. */
void sl_jobs_hold(struct sl_peer *peer, uint64_t workload);
/* The queue parked it, and brings it back when its turn comes: text says so. */
SL_MUST_CHECK bool sl_jobs_keeps_parked(
	const struct sl_daemon *daemon, uint64_t workload, struct sl_error *text);
/* A user who may resume it wants it back. False: the queue has not parked it. True: its pause is
 * waived, and either it comes back now and text is empty, or text says what it still waits for. */
SL_MUST_CHECK bool sl_jobs_bring_back(
	struct sl_daemon *daemon, uint64_t workload, struct sl_error *text);
/* The reason as it is said of this workload: what the queue parked nobody needs to resume, and what
 * it stopped nobody asked for. */
uint32_t sl_jobs_reason(
	const struct sl_daemon *daemon, uint64_t workload, uint32_t reason);
/* It is being stopped by the queue, and starts again. */
SL_MUST_CHECK bool sl_jobs_makes_room(struct sl_daemon *daemon, uint64_t workload);
/* A demand of it was denied by its limit (other_bytes): what it may die of. */
void sl_jobs_over_limit(
	const struct sl_workload *workload, const struct sl_node_because *because);
void sl_jobs_parked(
	struct sl_daemon *daemon, uint64_t workload); /* all of it is on the host */
void sl_jobs_resumed(
	struct sl_daemon *daemon, uint64_t workload); /* its request is claimed again */
void sl_jobs_process_died(struct sl_daemon *daemon);  /* any; it is marked as dead */
void sl_jobs_written(struct sl_daemon *daemon);       /* the journal */
void sl_jobs_gpus_changed(struct sl_daemon *daemon);  /* found, lost, back, resized */
void sl_jobs_recovered(struct sl_daemon *daemon);     /* nobody's report is waited for */
void sl_jobs_projects_changed(struct sl_daemon *daemon);
/* Jobs by state, and those that ended since the start, by how. */
void sl_jobs_numbers(const struct sl_daemon *daemon, uint64_t in[SL_JOB_STATES],
	uint64_t ended[SL_JOB_STATES]);
/* What ended is counted no more from here on, and not from the next settling on. */
void sl_jobs_look_now(struct sl_daemon *daemon);
/* A cycle, if one is due; part of settling. */
void sl_jobs_settle(struct sl_daemon *daemon);

#endif
