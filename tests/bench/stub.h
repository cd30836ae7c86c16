/*
 * stub - measuring inside `sluice run` in front of the stub driver
 *
 * The stub's calls do nothing, so the time that remains is that of Sluice. A part of the bench
 * starts itself inside `sluice run` and looks each function up twice: as a program does (the hook)
 * and by the stub's second name (no hook). It times both in turn.
 */
#ifndef SL_TESTS_BENCH_STUB_H
#define SL_TESTS_BENCH_STUB_H

#include "bench.h"

/* Runs this part again as `PART inside` under `sluice run`, named name. Does not return. */
void bench_stub_start(const char *part, const char *name) __attribute__((noreturn));
/* Inside: joins the daemon; dies if the library or the daemon is not the one to be timed. */
void bench_stub_join(const char *name);
/* The function as a program gets it, and without a hook; dies if either is missing or they are the
 * same. */
void bench_stub_find(const char *symbol, void **hook, void **bare);

#endif
