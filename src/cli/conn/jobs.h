/*
 * jobs - what the verbs about jobs share: a job's state in words, and the wait for its end
 *
 * One thread. The wait survives a restart of the daemon, as the job does.
 */
#ifndef SL_CLI_CONN_JOBS_H
#define SL_CLI_CONN_JOBS_H

#include "base/clock.h"
#include "cli/conn/rows.h"
#include "cli/line/cli.h"

#include <signal.h>

/* The exit status of `wait` and `submit --wait`. 0 only if all tasks are done. Otherwise that of
 * the program, or 128 plus the signal that ended it; 143 for a job that was stopped before it
 * ran. */
int sl_jobs_exit(uint32_t state, uint32_t exit_status);
#define SL_JOBS_END_MAX 640
/* Writes a line about the end: "made is done"; for a failed job also the daemon's reason, if any.
 * Replaces control characters in *end. Returns buf; SL_JOBS_END_MAX bytes suffice. */
const char *sl_jobs_end_text(struct sl_msg_job_reply *end, char *buf, size_t size);
/* "job 7"; "`sluice run`" for a foreground run. Returns buf; 32 bytes suffice. */
const char *sl_jobs_title(uint64_t job, char *buf, size_t size);
/* How long it has run so far; 0 if it never did. Milliseconds. */
uint64_t sl_jobs_span_ms(const struct sl_msg_job_row *row);
/* Milliseconds since it was submitted. */
uint64_t sl_jobs_age_ms(const struct sl_msg_job_row *row);

enum sl_jobs_watch_outcome {
	SL_JOBS_WATCH_ON = 0, /* it has not ended yet */
	SL_JOBS_WATCH_OVER,   /* watch->end says how */
	SL_JOBS_WATCH_FAILED, /* watch->status, and err */
};

/* A wait for the end of one job. */
struct sl_jobs_watch {
	struct sl_conn conn; /* open at first; the watch's own until fini */
	uint64_t job;
	const sigset_t
		*unblocked;   /* from sl_interrupt_catch; a signal ends a step early */
	enum sl_verb_id verb; /* its name stands in the message that the daemon is gone */
	bool asked;
	sl_ns lost_at; /* when the daemon ended, 0: it answers */
	int status;
	struct sl_msg_job_reply end;
};

/* Waits for at most ms. If the daemon ends meanwhile, waits for the next one. */
SL_MUST_CHECK int sl_jobs_watch_step(
	struct sl_jobs_watch *watch, unsigned int ms, struct sl_error *err);
void sl_jobs_watch_fini(struct sl_jobs_watch *watch);

#endif
