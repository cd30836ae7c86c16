/*
 * jobs - the queue: what was submitted, and how its tasks stand
 *
 * The cluster machine (policy/cluster) decides; this folder turns what happens into its events, and
 * carries its actions out:
 *
 *	BIND        adds a workload on these GPUs (refused: BIND_REFUSED), starts a shim that
 *	            waits, and writes the journal and the job's state; then go, then TASK_RUNS.
 *	            A parked task's workload gets RESUME instead.
 *	STOP        park: parks the workload; once all of it is on the host, TASK_ENDED(again).
 *	            terminate: as `sluice stop`; once the shim is gone, TASK_ENDED(again).
 *	shim ends   its pidfd says so, and the exit record is read: 0, a failure that is tried again
 *	            (after a back-off that grows), or a final failure.
 *
 * A `sluice run` with a request is such a job, too, in the foreground (jobs/front.c): one task,
 * whose program is the process that asked. The node's ledger always has the last word.
 *
 * A task is a workload named JOB (one task) or JOB.T. All calls are the loop's.
 */
#ifndef SL_DAEMON_JOBS_JOBS_H
#define SL_DAEMON_JOBS_JOBS_H

#include "daemon/link/peer.h"
#include "daemon/state/part.h"

struct sl_jobs; /* sl_daemon.jobs, NULL until opened */

/* Reads what is stored and finds tasks that still run; after the journal was read, before peers are
 * let in. 0 or negative errno. */
SL_MUST_CHECK int sl_jobs_open(struct sl_daemon *daemon, struct sl_error *err);
void sl_jobs_close(struct sl_daemon *daemon);

/* RUN of a greeted control peer, with valid fields; takes over one reference to process, which is
 * the peer's. Answered now, or, with SL_RUN_WAIT, once it starts. */
struct sl_process;
void sl_jobs_run(
	struct sl_peer *peer, const struct sl_msg_run *run, struct sl_process *process);
/* Can a job of this size, priority and number of tasks ever start within its user's bounds? Judged
 * as the node would on the largest GPU. If not, text says why. */
struct sl_jobs_row;
SL_MUST_CHECK bool sl_jobs_within_bounds(
	struct sl_peer *peer, const struct sl_jobs_row *row, struct sl_error *text);
/* RUN_REPLY: what the workload got, or, if workload is NULL, why it was refused. */
void sl_jobs_answer_run(struct sl_peer *peer, const struct sl_workload *workload,
	uint32_t reason, const char *text);
/* This peer waits for an answer to RUN. */
SL_MUST_CHECK bool sl_jobs_run_waits(const struct sl_peer *peer);
/* Is the workload a `sluice run` that the queue parks, has parked, or resumes? The journal records
 * that. */
SL_MUST_CHECK bool sl_jobs_keeps_run(const struct sl_workload *workload);
/* Is it a `sluice run` that the queue is parking now? */
SL_MUST_CHECK bool sl_jobs_run_leaves(const struct sl_workload *workload);

/* Messages of greeted control peers. fds: the descriptors that came with SUBMIT. */
void sl_jobs_submit(struct sl_peer *peer, const struct sl_msg_submit *submit,
	struct sl_wire_fds *fds);
void sl_jobs_wait(struct sl_peer *peer, const struct sl_msg_job_wait *wait);
void sl_jobs_stop(struct sl_peer *peer, const struct sl_msg_job_stop *stop);
void sl_jobs_log(struct sl_peer *peer, const struct sl_msg_job_log *log);
/* The next row of the list of jobs; false at the end. */
bool sl_jobs_row_at(const struct sl_daemon *daemon, uint64_t *after, union sl_msg *msg);
/* The next QUEUE_ROW; false at the end. */
bool sl_jobs_queue_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg);
/* The state of the jobs folder: from reading it at the start, and from the last write. */
void sl_jobs_part(const struct sl_daemon *daemon, struct sl_part *part);
/* Has this project a job that has not ended? err names one, and the remedy. */
SL_MUST_CHECK bool sl_jobs_need_project(
	const struct sl_daemon *daemon, const char *project, struct sl_error *err);
/* A peer is gone that may wait for a job. */
void sl_jobs_peer_gone(struct sl_peer *peer);

/* Called by the rest of the daemon. Each is cheap when there are no jobs. */
void sl_jobs_workload_changed(struct sl_daemon *daemon,
	struct sl_workload *
		workload); /* a `sluice run` has another request, or a user has parked it */
/* What a `sluice run` counts by in its project. flags: SL_WORKLOAD_*. */
struct sl_wishes {
	struct sl_amount request, limit;
	uint32_t compute_request_pm, flags;
};
/* What it has. */
struct sl_wishes sl_jobs_wishes_of(const struct sl_workload *workload);
/* Do the rules of its project leave this much to this `sluice run`? If not, text says why. True for
 * workloads of other kinds. */
SL_MUST_CHECK bool sl_jobs_may_have(struct sl_daemon *daemon,
	const struct sl_workload *workload, const struct sl_wishes *wishes,
	struct sl_error *text);
void sl_jobs_workload_over(struct sl_daemon *daemon, uint64_t workload);
/* The workload's root has died. If it was a supervisor that was killed, kills the descendants of
 * its program. */
void sl_jobs_supervisor_gone(
	struct sl_daemon *daemon, const struct sl_workload *workload);
/* A user stopped the workload for good, as `sluice stop`. Returns how many processes will be
 * signalled, once that is stored. */
uint32_t sl_jobs_workload_stopped(
	struct sl_daemon *daemon, uint64_t workload, sl_ns grace);
/* Messages to this peer wait from now on until the state of that workload's job is stored, and for
 * the journal. */
void sl_jobs_hold(struct sl_peer *peer, uint64_t workload);
/* Has the queue parked this workload, to resume it when its turn comes? Then text says so. */
SL_MUST_CHECK bool sl_jobs_keeps_parked(
	const struct sl_daemon *daemon, uint64_t workload, struct sl_error *text);
/* A user wants the workload back. False: the queue has not parked it. True: its pause is waived,
 * and either it resumes now and text is empty, or text says what it still waits for. */
SL_MUST_CHECK bool sl_jobs_bring_back(
	struct sl_daemon *daemon, uint64_t workload, struct sl_error *text);
/* A detached foreground job wants to run: from now on it waits as if the queue had parked it, and
 * others may be parked for it. False: the queue does not count it. */
SL_MUST_CHECK bool sl_jobs_call_back(
	struct sl_daemon *daemon, struct sl_workload *workload);
/* It does not wait there any more. False: the queue is bringing it back. */
SL_MUST_CHECK bool sl_jobs_call_off(
	struct sl_daemon *daemon, struct sl_workload *workload);
/* A process of the workload is about to begin with CUDA: before it joins. If it is the first one,
 * the workload may now be bound to another GPU. */
void sl_jobs_begins(struct sl_daemon *daemon, struct sl_workload *workload);
/* The other GPUs that it may be bound to then; 0: its GPU is fixed. A bit each. */
uint32_t sl_jobs_may_begin_on(
	const struct sl_daemon *daemon, const struct sl_workload *workload);
/* A user moves the workload to these GPUs (numbers of the daemon, a bit each). False: text says why
 * not, and it stays where it is. */
SL_MUST_CHECK bool sl_jobs_move(struct sl_daemon *daemon, struct sl_workload *workload,
	uint32_t gpus, struct sl_error *text);
/* May processes come back to other GPUs than they left: by configuration and driver? */
SL_MUST_CHECK bool sl_jobs_moves_any(const struct sl_daemon *daemon);
/* The GPUs to which processes on these could go, these included; 0: none. */
SL_MUST_CHECK uint32_t sl_jobs_reach(const struct sl_daemon *daemon, uint32_t gpus);
/* Is a workload leaving one of these GPUs for others? */
SL_MUST_CHECK bool sl_jobs_leaves(const struct sl_daemon *daemon, uint32_t gpus);
/* Sends the guests (policy/placement/guests.h) on these GPUs home. False: there is none, or one
 * cannot go: then text says why. */
SL_MUST_CHECK bool sl_jobs_clear(
	struct sl_daemon *daemon, uint32_t gpus, struct sl_error *text);
/* A workload of a claim was added. */
void sl_jobs_claims_changed(struct sl_daemon *daemon);
/* It is on its way to other GPUs. */
SL_MUST_CHECK bool sl_jobs_is_moving(const struct sl_workload *workload);
/* A user resumes it, and its own GPUs have no room for its request: the queue brings it back where
 * there is room. False: it can only come back to its own. */
SL_MUST_CHECK bool sl_jobs_resume_anywhere(
	struct sl_daemon *daemon, struct sl_workload *workload);
/* The reason to tell for this workload. It differs from `reason` if the queue parked the workload,
 * so that no user has to resume it, or if its job's end stopped it, which no user asked for. */
uint32_t sl_jobs_reason(
	const struct sl_daemon *daemon, uint64_t workload, uint32_t reason);
/* Is the queue stopping this workload, to start it again later? */
SL_MUST_CHECK bool sl_jobs_makes_room(struct sl_daemon *daemon, uint64_t workload);
/* The workload's limit (other_bytes) denied a demand: it may die of that. */
void sl_jobs_over_limit(
	const struct sl_workload *workload, const struct sl_node_because *because);
void sl_jobs_parked(
	struct sl_daemon *daemon, uint64_t workload); /* all of it is on the host */
void sl_jobs_resumed(
	struct sl_daemon *daemon, uint64_t workload); /* its request is claimed again */
void sl_jobs_process_died(struct sl_daemon *daemon);  /* any; it is marked as dead */
void sl_jobs_written(struct sl_daemon *daemon);       /* the journal */
void sl_jobs_measured(struct sl_daemon *daemon);      /* a GPU */
void sl_jobs_gpus_changed(struct sl_daemon *daemon);  /* found, lost, back, resized */
void sl_jobs_recovered(struct sl_daemon *daemon); /* no report is waited for any more */
void sl_jobs_projects_changed(struct sl_daemon *daemon);
/* Counts jobs by state, and those that ended since the start by outcome. */
void sl_jobs_numbers(const struct sl_daemon *daemon, uint64_t in[SL_JOB_STATES],
	uint64_t ended[SL_JOB_STATES]);
/* Stops counting what has ended, now instead of at the next settling. */
void sl_jobs_look_now(struct sl_daemon *daemon);
/* A cycle, if one is due; part of settling. */
void sl_jobs_settle(struct sl_daemon *daemon);

#endif
