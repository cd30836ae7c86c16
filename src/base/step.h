/*
 * step - the places where a process may die, for the tests that kill it there
 *
 * steps.def lists them. In a normal build sl_step() is nothing. In the builds of tests/crash
 * (SL_STEPS) the process kills itself with SIGKILL at the step that its environment names.
 *	SLUICE_STEP=NAME       kill at this step; NAME:3 at its third passage.
 *	SLUICE_STEP_KILL=FILE  kill the process whose pid FILE has, instead of this one.
 *	SLUICE_STEP_LOG=FILE   write the name of each step there when it is first passed.
 * Callable from any thread and any place; uses libc's system calls only.
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
