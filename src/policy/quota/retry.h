/*
 * retry - what follows when the program of a task has ended, for the task and its job
 *
 * Pure: facts in, verdict out. A task that was stopped to make room starts again, and nothing
 * counts against it, even if its program returned 0: many save their state on SIGTERM and exit in
 * order. A failed task starts again as often as its job allows, after a pause that doubles.
 */
#ifndef SL_POLICY_RETRY_H
#define SL_POLICY_RETRY_H

#include "base/clock.h"
#include "base/sl.h"

#define SL_RETRY_PAUSE_FIRST (1 * SL_S)
#define SL_RETRY_PAUSE_MOST  (300 * SL_S)

enum sl_retry_ending {
	SL_RETRY_EXITED = 0,
	SL_RETRY_NOT_STARTED, /* the program could not be started */
	SL_RETRY_NEVER_WENT,  /* it was never told to go */
	SL_RETRY_LOST,        /* its ending was not seen */
	SL_RETRY_REBOOT       /* the machine was restarted */
};

struct sl_retry_facts {
	enum sl_retry_ending ending;
	bool ok;          /* EXITED: with 0 */
	bool asked;       /* a person asked for its end */
	bool stopped;     /* stopped for others */
	bool preemptible; /* may be stopped for others */
	uint32_t failures, retries;
};

enum sl_retry_outcome {
	SL_RETRY_DONE = 0,
	SL_RETRY_AGAIN,
	SL_RETRY_FAILED,
	SL_RETRY_STOPPED
};

struct sl_retry_verdict {
	enum sl_retry_outcome outcome;
	bool counts; /* against its retries */
	sl_ns pause; /* of AGAIN */
};

struct sl_retry_verdict sl_retry_judge(const struct sl_retry_facts *facts);

/* With `failed` tasks failed or stopped for good, can the rest of the job no longer succeed? */
bool sl_retry_is_hopeless(uint32_t tasks, uint32_t least, uint32_t failed);

#endif
