/*
 * shim - the parts of sluice-shim; what it does for the daemon is said in daemon/shim.h
 *
 * One thread. No allocation that is given back: the process has one task and ends with it. Signals
 * are blocked from the first line on and taken by sigtimedwait(2) in one place.
 */
#ifndef SL_SHIM_SHIM_H
#define SL_SHIM_SHIM_H

#include <stdint.h>
#include <sys/types.h>

#include "base/sl.h"
#include "wire/jobspec.h"

/* What the daemon gives. */
enum { SL_SHIM_SPEC_FD = 3, SL_SHIM_GO_FD = 4, SL_SHIM_RECORD_FD = 5 };

/* Why a program could not be started: `what` is a word of the record, error a positive errno. */
struct sl_shim_failure {
	int error;
	char what[24];
};

enum { SL_SHIM_OK = 0, SL_SHIM_FAILED /* *failure says why */ };

/* SL_SHIM_FAILED, with that reason. */
int sl_shim_fail(struct sl_shim_failure *failure, int error, const char *what);

/* Becomes the user of the spec, for good; what that user's programs may have, this process may give
 * them. */
SL_MUST_CHECK int sl_shim_become(
	const struct sl_jobspec *spec, struct sl_shim_failure *failure);

/* Begins to start the program of the spec, in a session of its own. From *exec_fd (non-blocking,
 * the caller's) a struct sl_shim_failure can be read if it could not be executed, and it ends then;
 * else nothing, once it was executed or has ended. */
SL_MUST_CHECK int sl_shim_program(const struct sl_jobspec *spec, pid_t *out, int *exec_fd,
	struct sl_shim_failure *failure);

/* Sends the signal to every descendant of this process, SIGCONT to those that are stopped. How many
 * there are, 0 also where /proc cannot be read. */
unsigned int sl_shim_family_signal(int number);
/* Says on standard error who is left. */
void sl_shim_family_tell(void);

#endif
