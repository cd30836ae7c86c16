/*
 * advise - from what programs needed so far: which request and limit would do, and how many GPUs
 * that would save
 *
 * Pure arithmetic on figures of the history; no clock, no I/O. Bytes are per GPU, hidden and
 * evicted ones included: what a program asked for counts, not what there was room for.
 *
 * The request is what it needed for 99 % of the time and a tenth more, so that it does not depend
 * on luck; the limit is the most that it ever needed and a quarter more. Savings are counted by
 * packing every program, as often as it ran at once, into as few GPUs as first-fit-decreasing
 * finds, with the requests there were and with those that are proposed. It is an estimate: nobody
 * says that they will run together again.
 */
#ifndef SL_POLICY_FIGURES_ADVISE_H
#define SL_POLICY_FIGURES_ADVISE_H

#include "base/arena.h"

/* Less of its running than this says nothing of what it needs. */
#define SL_ADVISE_SPAN_MIN_S 600
/* Proposals are whole multiples of it. */
#define SL_ADVISE_GRAIN (64 * SL_MIB)
/* Tasks that are packed, at most; more are not counted, and the total says so. */
#define SL_ADVISE_TASKS_MAX 20000

struct sl_advise_program {
	uint32_t runs; /* that the figures are of */
	uint32_t
		observed; /* of them, so many were only watched: no limit kept them small */
	uint32_t gpus;    /* of each run */
	uint32_t at_once;          /* so many of them ran at the same time, at most */
	uint64_t span_s, active_s; /* of all runs together: they ran, they had GPU work */
	uint64_t peak_bytes, p99_bytes, mean_bytes; /* of what was asked for */
	/* The most that a run asked for that something kept small (sl_advise_is_kept), and that
	 * another one did; 0: there was none. */
	uint64_t kept_peak_bytes, free_peak_bytes;
	uint64_t request_bytes, limit_bytes; /* the largest they had */
	uint64_t shareable_bytes;            /* of the smallest GPU they ran on */
};

/* Whether what a run asked for is less than it would have needed: it came near to its limit, or a
 * demand of it was denied. A limit that is the whole GPU is none of ours. */
bool sl_advise_is_kept(uint64_t peak_bytes, uint64_t limit_bytes,
	uint64_t shareable_bytes, uint64_t denials);

/* One run, in milliseconds of any clock. ended_ms 0: it goes on. */
struct sl_advise_run {
	uint64_t begun_ms, ended_ms;
};
/* How many of them there were at the same time, at most. Runs that overlap by less than
 * SL_ADVISE_TOGETHER_MS follow each other: one of a loop begins while the last one is taken down,
 * and nobody looks more often. */
#define SL_ADVISE_TOGETHER_MS 1000
uint32_t sl_advise_at_once(
	struct sl_arena *arena, const struct sl_advise_run *runs, size_t count);

enum sl_advise_verdict {
	SL_ADVISE_CHANGE = 0, /* request and limit are proposed */
	SL_ADVISE_KEEP,       /* what it has is about right */
	SL_ADVISE_TOO_SHORT,  /* it has not run for long enough */
	/* Those that needed most were kept small, so nobody knows what they would need */
	SL_ADVISE_LIMITED,
	SL_ADVISE_BAD, /* figures that contradict each other */
	SL_ADVISE_VERDICTS
};

/* bytes: also where they are as before (KEEP), 0 where nothing is known. */
struct sl_advice {
	enum sl_advise_verdict verdict;
	uint64_t request_bytes, limit_bytes;
};

struct sl_advice sl_advise(const struct sl_advise_program *program);

struct sl_advise_total {
	uint32_t gpus_before, gpus_after; /* whole GPUs */
	uint32_t tasks;                   /* that were packed */
	bool cut;                         /* there were more */
};

/* Of all programs together; advice[i] is that of programs[i]. A program that was only watched had a
 * whole GPU before; one without advice needs after what it needed before. */
struct sl_advise_total sl_advise_total(struct sl_arena *arena,
	const struct sl_advise_program *programs, const struct sl_advice *advice,
	size_t count);

/* "change", "keep", ... and one sentence for people, without final stop. */
const char *sl_advise_word(enum sl_advise_verdict verdict);
const char *sl_advise_text(enum sl_advise_verdict verdict);

#endif
