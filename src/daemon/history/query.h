/*
 * query - figures of the past: by user, project, GPU, workload or program, over time and in all
 *
 * Any thread: each query opens the file itself (history/read.h), so only its caller waits. Memory
 * is bounded: an answer has at most SL_HISTORY_ROWS_MAX rows, empty steps not counted; a larger
 * answer is refused, and err has the remedy. Without a step length in the question, one is chosen
 * that is long enough.
 */
#ifndef SL_DAEMON_HISTORY_QUERY_H
#define SL_DAEMON_HISTORY_QUERY_H

#include <stdatomic.h>
#include <stdio.h>

#include "base/error.h"
#include "daemon/history/store.h"
#include "wire/wire.h"

#define SL_HISTORY_ROWS_MAX 100000

/* Why there is no answer. */
enum sl_history_fault {
	SL_HISTORY_FAULT_OURS = 0, /* the daemon's state; trying later may help */
	SL_HISTORY_FAULT_ASKED,    /* the question is wrong, or asks for too much */
	SL_HISTORY_FAULT_UNKNOWN   /* there is no such workload */
};

/* A question, as the message HISTORY has it. */
struct sl_history_ask {
	enum sl_history_what what;
	enum sl_history_by by;
	enum sl_history_format format;
	uint32_t step_s;     /* 0: chosen, as short as rows_most and steps_most allow */
	uint32_t steps_most; /* 0: any number */
	uint32_t rows_most;  /* 0: SL_HISTORY_ROWS_MAX */
	bool only_totals;    /* no rows */
	uint64_t from_ms, to_ms; /* to_ms 0: now */
	/* The history's time less the machine's clock, which the question and the answer use. */
	int64_t ahead_s;
	uint64_t workload; /* of a series, the daemon's number; 0: by name */
	char name[128];    /* "": all */
	/* Of events: between these serials (0: no bound), and at most the newest `last` (0:
	 * 1,000). */
	uint64_t after, before, last;
	uint32_t kinds;  /* of events: bit set of enum sl_reason_kind; 0: all */
	char reason[32]; /* of events; "": all */
	char words[256]; /* of events: each is in the sentence or a name; "": all */
	const atomic_bool *cancel; /* ends the reading when it turns true; may be NULL */
	enum sl_history_fault *fault; /* set where there is no answer; may be NULL */
};

/* Writes the answer to out. now_ms: the history's time. SL_HISTORY_STORE_*; on all but OK err says
 * why, and out is useless. The caller checks out for write errors. */
SL_MUST_CHECK int sl_history_query(const char *path, const struct sl_history_ask *ask,
	uint64_t now_ms, FILE *out, struct sl_error *err);

/* Checks the question and fills in its defaults. False: err says what is wrong. */
SL_MUST_CHECK bool sl_history_ask_complete(
	struct sl_history_ask *ask, uint64_t now_ms, struct sl_error *err);

struct sl_history_cut;
/* What to cut rows into for this question, in the history's time; step 0: the length is yet to be
 * chosen. */
struct sl_history_cut sl_history_cut_of(const struct sl_history_ask *ask);
/* The coarsest level whose rows give exact figures for steps of this length. */
enum sl_history_level sl_history_level_of(uint32_t step_s);

#endif
