/*
 * query - figures of the past: by user, project, GPU, workload or program, over time and in
 * all
 *
 * Any thread; opens the file by itself (history/read.h), so nobody waits for it but who asks.
 * Memory is bounded: an answer has at most SL_HISTORY_ROWS_MAX rows, counted where there is
 * something to say, and more is refused with the remedy. Who asks for no length of steps gets steps
 * that are long enough.
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
	SL_HISTORY_FAULT_OURS = 0, /* it may be otherwise in a while */
	SL_HISTORY_FAULT_ASKED,    /* what is asked for is wrong, or too much */
	SL_HISTORY_FAULT_UNKNOWN   /* there is no such workload */
};

/* As the message HISTORY has it. */
struct sl_history_ask {
	enum sl_history_what what;
	enum sl_history_by by;
	enum sl_history_format format;
	uint32_t step_s;     /* 0: chosen, as short as rows_most and steps_most allow */
	uint32_t steps_most; /* 0: any number */
	uint32_t rows_most;  /* 0: SL_HISTORY_ROWS_MAX */
	bool only_totals;    /* no rows */
	uint64_t from_ms, to_ms; /* to_ms 0: now */
	uint64_t workload;       /* of a series, the daemon's number; 0: by name */
	char name[128];          /* "": all */
	/* Of events: between these serials, and the newest so many of them; 0: no bound, and
	 * 1,000. */
	uint64_t after, before, last;
	uint32_t kinds;  /* of events: a bit for each enum sl_reason_kind; 0: all */
	char reason[32]; /* of events; "": all */
	char words[256]; /* of events: each is in what happened, or in a name; "": all */
	const atomic_bool
		*cancel; /* ends the reading when it turns true; NULL: nothing does */
	enum sl_history_fault *fault; /* set where there is no answer; may be NULL */
};

/* Writes the answer to out. now_ms: of the real-time clock. SL_HISTORY_STORE_*; on all but OK err
 * says why not, and what is in out is of no use. That out takes everything is the caller's to
 * check. */
SL_MUST_CHECK int sl_history_query(const char *path, const struct sl_history_ask *ask,
	uint64_t now_ms, FILE *out, struct sl_error *err);

/* Checks what is asked, and puts in what was left to choose. False: err says what is wrong with
 * it. */
SL_MUST_CHECK bool sl_history_ask_complete(
	struct sl_history_ask *ask, uint64_t now_ms, struct sl_error *err);

/* The coarsest level whose rows are dealt out to steps of this length as exactly. */
enum sl_history_level sl_history_level_of(uint32_t step_s);

#endif
