/*
 * guarantee - promise 2 over many mixes: within its request a workload never sees out-of-memory
 *
 * A mix is one world with a seed of its own: another set of GPUs, settings and programs, faults
 * on, for some thousand events, judged by all rules. It counts the outcome of every demand that
 * was ever within its workload's request; a denial must name an exception (kind EXCEPT of
 * reason.def). Mixes are independent of each other and run in two processes.
 */
#ifndef SL_SIM_GUARANTEE_H
#define SL_SIM_GUARANTEE_H

#include "base/sl.h"

/* Mix i has seed + i, so that a bad one can be played alone. Prints the row, and the first bad
 * mixes with their seeds. True if all of them held every rule. */
SL_MUST_CHECK bool sl_guarantee_run(uint64_t mixes, uint64_t seed, bool quiet);

#endif
