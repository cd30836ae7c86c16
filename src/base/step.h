/*
 * step - the places where a process may die, for the tests that kill it there
 *
 * steps.def lists them. In what people install sl_step() is nothing. In the builds of tests/crash
 * (SL_STEPS) the process kills itself with SIGKILL when it passes the step that its environment
 * names: SLUICE_STEP=NAME, or NAME:3 for the third time; SLUICE_STEP_KILL=FILE: not itself, but
 * whose pid the file has; SLUICE_STEP_LOG=FILE gets the name of
 * each step when it is first passed. Any thread, any place; libc's system calls only.
 */
#ifndef SL_BASE_STEP_H
#define SL_BASE_STEP_H

#include "base/sl.h"

enum sl_step {
#define SL_STEP(NAME, SIDE, PHASE, text) SL_STEP_##NAME,
#include "base/steps.def"
#undef SL_STEP
	SL_STEPS_COUNT
};

#ifdef SL_STEPS
void sl_step_at(enum sl_step step);
#define sl_step(NAME) sl_step_at(SL_STEP_##NAME)
#else
#define sl_step(NAME) ((void)SL_STEP_##NAME)
#endif

#endif
