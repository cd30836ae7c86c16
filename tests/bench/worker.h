/*
 * worker - a program with and one without Sluice, side by side
 *
 * The cost of Sluice is measured against the same run without it. A worker is a process, native or
 * under `sluice run`, that carries out one order at a time and answers with samples. Two workers
 * get orders in turn, so that other load affects both alike. Single-threaded.
 */
#ifndef SL_TESTS_BENCH_WORKER_H
#define SL_TESTS_BENCH_WORKER_H

#include "bench.h"

#include <sys/types.h>

enum bench_verb {
	BENCH_DO_CONTEXT = 1, /* load the driver, make a context; no samples */
	BENCH_DO_HOLD,        /* cuMemAlloc of bytes, kept; samples: begin, end (sl_ns) */
	BENCH_DO_LET_GO,      /* cuMemFree of it; samples: begin, end (sl_ns) */
	BENCH_DO_LARGE, /* count times alloc and free of bytes; samples: ns of each in turn */
	BENCH_DO_SMALL_PAIR, /* count pairs of alloc and free of bytes; sample: ns in all */
	BENCH_DO_ASYNC_PAIR,  /* the same with cuMemAllocAsync and cuMemFreeAsync */
	BENCH_DO_SMALL_BATCH, /* count allocs, then count frees; sample: ns in all */
	BENCH_DO_HEAVY, /* count mixed allocations, bytes alive at a time; sample: ns in all */
	BENCH_DO_START_NAMES, /* start a program: starter names; sample: ns */
	BENCH_DO_START_TRUE,  /* start /bin/true and wait for it; sample: ns */
	BENCH_DO_START_INIT,  /* the same: starter init */
	BENCH_DO_START_USE,   /* the same: starter context */
	BENCH_DO_START_RUN,   /* the same: sluice run -- starter context */
	BENCH_DO_WRITE,       /* every held word becomes count; samples: begin, end */
	BENCH_DO_READ, /* its last word is read, as an answer would be; samples: begin, end */
	BENCH_DO_GROW, /* count pieces of bytes, each allocated, then filled; samples: begin, end */
	BENCH_DO_LOAD, /* bytes of it from ordinary host memory; samples: begin, end */
	/* Count times bytes of it out to pinned memory, in again; samples: ns of each in turn */
	BENCH_DO_COPY,
	/* Rounds of small work for count ms, bytes ms between them (0: none). Samples: the number
	 * of rounds; ns in them; ns in rounds that waited for memory; the longest of those; ns from
	 * the beginning of the first turn to that of the last; ns in rounds within that time. */
	BENCH_DO_WORK,
};

#define BENCH_REPLY_MAX 64

struct bench_order {
	uint32_t verb;
	uint32_t count;
	uint64_t bytes;
};

struct bench_reply {
	int32_t result; /* 0, or what failed: a CUresult, or an exit status */
	uint32_t verb;  /* of the order that is answered */
	uint32_t count;
	uint64_t sample[BENCH_REPLY_MAX];
};

struct bench_worker {
	const char *name;
	pid_t pid;
	int fd;
};

/* Starts one; sluice_name is its workload's, or NULL for a native worker. Dies on failure. */
void bench_worker_start(struct bench_worker *worker, const char *sluice_name);
/* The same with options of `sluice run` before the command; NULL-terminated, six at most. */
void bench_worker_start_with(struct bench_worker *worker, const char *sluice_name,
	const char *const options[]);
/* Gives an order; waits for its answer for at most limit_s. Both die on failure, wait also on a
 * result that is not 0. */
void bench_worker_send(struct bench_worker *worker, enum bench_verb verb, uint32_t count,
	uint64_t bytes);
void bench_worker_wait(
	struct bench_worker *worker, struct bench_reply *reply, int limit_s);
/* Both, with a limit of 60 s. */
void bench_worker_do(struct bench_worker *worker, enum bench_verb verb, uint32_t count,
	uint64_t bytes, struct bench_reply *reply);
/* Kills and reaps it; safe on a killed one. */
void bench_worker_stop(struct bench_worker *worker);

#endif
