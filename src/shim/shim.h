/*
 * shim - the parts of sluice-shim; daemon/jobs/shim.h says what it does for the daemon
 *
 * One thread. Memory is never freed: the process has one task and ends with it. Signals are blocked
 * from the first line on and received in one place, through a signalfd.
 */
#ifndef SL_SHIM_SHIM_H
#define SL_SHIM_SHIM_H

#include <stdint.h>
#include <sys/types.h>

#include "base/sl.h"
#include "wire/jobspec.h"

/* Descriptors from the daemon. */
enum { SL_SHIM_SPEC_FD = 3, SL_SHIM_GO_FD = 4, SL_SHIM_RECORD_FD = 5 };

/* Why a program could not be started: `what` is a word of the record, error a positive errno. */
struct sl_shim_failure {
	int error;
	char what[24];
};

enum { SL_SHIM_OK = 0, SL_SHIM_FAILED /* *failure says why */ };

/* Sets *failure and returns SL_SHIM_FAILED. */
int sl_shim_fail(struct sl_shim_failure *failure, int error, const char *what);

/* Becomes the user of the spec, for good; that user's programs then have no more rights than this
 * process may give. */
SL_MUST_CHECK int sl_shim_become(
	const struct sl_jobspec *spec, struct sl_shim_failure *failure);

/* Starts the program of the spec in a session of its own. *exec_fd (non-blocking, the caller's)
 * delivers a struct sl_shim_failure and then end of file if the program could not be executed. It
 * delivers only end of file once the program was executed or has ended. */
SL_MUST_CHECK int sl_shim_program(const struct sl_jobspec *spec, pid_t *out, int *exec_fd,
	struct sl_shim_failure *failure);

/* Sends the signal to every descendant of this process; SIGCONT only to stopped ones. Returns how
 * many there are, 0 also if /proc cannot be read. */
unsigned int sl_shim_family_signal(int number);
/* Names the remaining descendants on standard error. */
void sl_shim_family_tell(void);

#endif
