/*
 * retry - what becomes of a task whose program has ended, and of its job
 *
 * Pure: facts in, verdict out. Who was stopped to make room starts again and nothing is counted
 * against it, also where its program said 0: many save what they have on SIGTERM and leave in
 * order. Who failed starts again as often as its job allows, after a pause that doubles.
 */
#ifndef SL_POLICY_RETRY_H
#define SL_POLICY_RETRY_H

#include "base/clock.h"
#include "base/sl.h"

#define SL_RETRY_PAUSE_FIRST (1 * SL_S)
#define SL_RETRY_PAUSE_MOST  (300 * SL_S)

enum sl_retry_ending {
	SL_RETRY_EXITED = 0,
	SL_RETRY_NOT_STARTED, /* its program could not be started */
	SL_RETRY_NEVER_WENT,  /* nobody told it to go */
	SL_RETRY_LOST,        /* nobody saw how it ended */
	SL_RETRY_REBOOT       /* the machine was started anew */
};

struct sl_retry_facts {
	enum sl_retry_ending ending;
	bool ok;          /* EXITED: with 0 */
	bool asked;       /* somebody asked for its end */
	bool stopped;     /* it was stopped for others */
	bool preemptible; /* it may be stopped for others */
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

/* Of its tasks, `failed` have failed or were stopped for good: can what is left of the job not do
 * without them? */
bool sl_retry_is_hopeless(uint32_t tasks, uint32_t least, uint32_t failed);

#endif
