/*
 * run - the first half of `sluice run`, for a process that holds the workload and is not CMD
 */
#ifndef SL_CLI_RUN_RUN_H
#define SL_CLI_RUN_RUN_H

#include "base/sl.h"

/* Does what `sluice run` does before it becomes CMD: makes the workload, with this process as its
 * root, and sets the environment that CMD needs. argv is that of the verb, CMD included. -1 to go
 * on, else the exit status, after a message. */
SL_MUST_CHECK int sl_run_begin(int argc, char **argv);

#endif
