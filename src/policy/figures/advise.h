/*
 * advise - which request and limit would suit programs, by what they needed so far, and how many
 * GPUs that would save
 *
 * Pure arithmetic on figures of the history; no clock, no I/O. Bytes are per GPU and include hidden
 * and evicted ones: what a program asked for counts, not what there was room for.
 *
 * The request is what it needed for 99 % of the time plus a tenth, so that it does not depend on
 * luck; the limit is its maximum plus a quarter. A compute request is the share of the GPU's time
 * that it had while others competed for it, plus a tenth. Savings are counted by
 * first-fit-decreasing packing of every program, as often as it ran at once, with present and
 * proposed requests. The figure is an estimate: programs that ran together may not do so again.
 */
#ifndef SL_POLICY_FIGURES_ADVISE_H
#define SL_POLICY_FIGURES_ADVISE_H

#include "base/arena.h"

/* A shorter running time says nothing about what it needs. */
#define SL_ADVISE_SPAN_MIN_S 600
/* Proposals are multiples of this. */
#define SL_ADVISE_GRAIN      (64 * SL_MIB)
#define SL_ADVISE_COMPUTE_PM 10 /* the same, of a compute request */
/* The most tasks that are packed; the total says if there were more. */
#define SL_ADVISE_TASKS_MAX 20000

struct sl_advise_program {
	uint32_t runs;     /* that the figures cover */
	uint32_t observed; /* of these, only watched: no limit kept them small */
	uint32_t gpus;     /* of each run */
	uint32_t at_once;  /* the most that ran at the same time */
	/* All runs together: time running, and with GPU work */
	uint64_t span_s, active_s;
	uint64_t peak_bytes, p99_bytes, mean_bytes; /* of what was asked for */
	/* The most asked for by a run that something kept small (sl_advise_is_kept), and by another
	 * one; 0: there was none. */
	uint64_t kept_peak_bytes, free_peak_bytes;
	uint64_t request_bytes, limit_bytes; /* the largest they had */
	uint64_t shareable_bytes;            /* the smallest GPU they ran on */
	uint32_t compute_request_pm;         /* the largest they had */
	/* On each GPU: time in which others competed for it, and what they had of that */
	uint64_t contested_ms, compute_ms;
};

/* Whether a run was kept smaller than its need: it came near its limit, or one of its demands was
 * denied. A limit of the whole GPU keeps nothing small. */
bool sl_advise_is_kept(uint64_t peak_bytes, uint64_t limit_bytes,
	uint64_t shareable_bytes, uint64_t denials);

/* One run, in milliseconds of any clock. ended_ms 0: it still runs. */
struct sl_advise_run {
	uint64_t begun_ms, ended_ms;
};
/* The most runs at the same time. Runs that overlap by less than SL_ADVISE_TOGETHER_MS count as one
 * after the other: in a loop, a run begins while the last one is being taken down, and the
 * history's times are no more exact. */
#define SL_ADVISE_TOGETHER_MS 1000
uint32_t sl_advise_at_once(
	struct sl_arena *arena, const struct sl_advise_run *runs, size_t count);

enum sl_advise_verdict {
	SL_ADVISE_CHANGE = 0, /* request and limit are proposed */
	SL_ADVISE_KEEP,       /* its request and limit are about right */
	SL_ADVISE_TOO_SHORT,  /* it has not run for long enough */
	/* The largest runs were kept small, so their need is unknown */
	SL_ADVISE_LIMITED,
	SL_ADVISE_BAD, /* figures that contradict each other */
	SL_ADVISE_VERDICTS
};

/* bytes: also set if unchanged (KEEP); 0 if unknown. */
struct sl_advice {
	enum sl_advise_verdict verdict;
	uint64_t request_bytes, limit_bytes;
	uint32_t compute_request_pm; /* another compute request; 0: none is proposed */
};

struct sl_advice sl_advise(const struct sl_advise_program *program);

struct sl_advise_total {
	uint32_t gpus_before, gpus_after; /* whole GPUs */
	uint32_t tasks;                   /* that were packed */
	bool cut;                         /* there were more */
};

/* For all programs together; advice[i] belongs to programs[i]. A program that was only watched
 * counts as having used a whole GPU before. A program without advice counts the same before and
 * after. */
struct sl_advise_total sl_advise_total(struct sl_arena *arena,
	const struct sl_advise_program *programs, const struct sl_advice *advice,
	size_t count);

/* "change", "keep", ... and one sentence for people, without final stop. */
const char *sl_advise_word(enum sl_advise_verdict verdict);
const char *sl_advise_text(enum sl_advise_verdict verdict);

#endif
