/*
 * jobs - what the verbs about jobs share: how one stands in words, and the wait for its end
 *
 * One thread. The wait outlives the daemon, as the job does.
 */
#ifndef SL_CLI_CONN_JOBS_H
#define SL_CLI_CONN_JOBS_H

#include "base/clock.h"
#include "cli/conn/rows.h"
#include "cli/line/cli.h"

#include <signal.h>

/* The exit status for `wait` and `submit --wait`: the program's, 128 and the signal that ended it,
 * 0 if all is done; never 0 of one that failed, and 143 of one that was stopped before it ran. */
int sl_jobs_exit(uint32_t state, uint32_t exit_status);
#define SL_JOBS_END_MAX 640
/* A line about it: "made is done"; of one that failed what the daemon says of that, if it says
 * anything. Tames *end. Returns buf; SL_JOBS_END_MAX bytes suffice. */
const char *sl_jobs_end_text(struct sl_msg_job_reply *end, char *buf, size_t size);
/* "job 7"; of what is none, "`sluice run`". Returns buf; 32 bytes suffice. */
const char *sl_jobs_title(uint64_t job, char *buf, size_t size);
/* How long it ran, or runs; 0 if it did not. Milliseconds. */
uint64_t sl_jobs_span_ms(const struct sl_msg_job_row *row);
/* Since it was submitted. */
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
		*unblocked;   /* of sl_interrupt_catch; what comes ends a step early */
	enum sl_verb_id verb; /* that says on standard error if the daemon went */
	bool asked;
	sl_ns lost_at; /* when the daemon went, 0: it is there */
	int status;
	struct sl_msg_job_reply end;
};

/* Waits for at most ms. A daemon that ends meanwhile is waited for. */
SL_MUST_CHECK int sl_jobs_watch_step(
	struct sl_jobs_watch *watch, unsigned int ms, struct sl_error *err);
void sl_jobs_watch_fini(struct sl_jobs_watch *watch);

#endif
