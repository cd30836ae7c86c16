/*
 * shim - starts the supervisor of a task, and reads what it left behind
 *
 * sluice-shim (src/shim) is a child of the daemon only until the daemon dies. It has its own
 * session, reaps its program's descendants, and writes the exit record itself, so the daemon may be
 * killed and restarted meanwhile. It gets:
 *
 *	fd 3     the spec (jobspec.h, with the daemon's entries), to be read to its end
 *	fd 4     a pipe: one byte means go. Without it (the daemon died before it had recorded the
 *	         process) the shim exits without starting anything, and without a record.
 *	fd 5     the exit record, empty, opened for writing
 *	fd 1, 2  the log of the task, opened for appending; fd 0 is /dev/null
 *
 * It becomes the user: root can become any user, others only themselves, with their own groups. The
 * log becomes the user's, too. It starts the program in its folder, with the submitter's resource
 * limits and a session and process group of its own, and waits. It passes SIGTERM, SIGINT and
 * SIGHUP on to the whole group; SIGUSR1 kills the program and all its descendants at once. When the
 * program has ended, its remaining descendants get SIGTERM, and SIGKILL after 2 s. The record has
 * two lines, each written by one write(2):
 *
 *	begun MS\n                             it got its go, and has started nothing yet; MS of the
 *	                                       real-time clock.
 * and then, fsynced, one of
 *	exit STATUS started MS ended MS\n      STATUS as of wait(2), decimal.
 *	error ERRNO WHAT\n                     the program could not be started (WHAT: chdir, exec,
 *	                                       setuid, ...)
 *
 * From start to end the shim holds a lock on the record (F_SETLK, the whole file): the kernel names
 * the process that holds it, or says that it is gone.
 *
 * While the shim lives, it holds the log open a second time. So the program cannot take a lease on
 * the log, which the daemon opens to bound its size.
 *
 * An empty record means that nothing was started, unless the computer went down: a shim that cannot
 * write the first line exits without starting anything.
 *
 * Processes that survive even SIGKILL are left behind after 10 s more, and named in the log.
 * Writing the record is retried for 10 s if the disk is full.
 *
 * A shim that is killed takes its program with it (PR_SET_PDEATHSIG) and leaves the first line
 * only; the daemon looks for other descendants (jobs/left.c).
 *
 * core/program.h says where sluice-shim lies; SLUICE_SHIM in the environment names another.
 */
#ifndef SL_DAEMON_JOBS_SHIM_H
#define SL_DAEMON_JOBS_SHIM_H

#include <sys/types.h>

#include "base/error.h"
#include "wire/jobspec.h"

struct sl_shim_start {
	const struct sl_jobspec *spec; /* with the daemon's entries */
	int log_fd, record_fd;         /* stay the caller's */
};

struct sl_shim {
	pid_t pid;
	int pidfd, go_fd; /* the caller's */
};

/* Finds the program. 0, or negative errno: none can be executed, and err names the remedy. */
SL_MUST_CHECK int sl_shim_find(char *path, size_t size, struct sl_error *err);

/* Starts a shim that waits for its go. Never blocks for long (posix_spawn or vfork). 0 or negative
 * errno; err says what failed, and the remedy. */
SL_MUST_CHECK int sl_shim_start(
	const struct sl_shim_start *start, struct sl_shim *out, struct sl_error *err);
/* Gives the go: the program starts. Closes go_fd. If the shim is dead already, its pidfd says
 * so. */
void sl_shim_go(struct sl_shim *shim);
/* Closes everything. A shim without its go is dead when this returns, and has started nothing; one
 * that had its go runs on. */
void sl_shim_forget(struct sl_shim *shim);
/* Reaps the zombie once the shim is dead. No effect if pid is not above 0 or not a child of
 * ours. */
void sl_shim_reap(pid_t pid);

enum sl_shim_ending {
	SL_SHIM_NONE = 0, /* empty: the program was not started */
	SL_SHIM_BEGUN,    /* the program runs, or was killed */
	SL_SHIM_EXITED,
	SL_SHIM_ERROR, /* not started; see error and what */
	SL_SHIM_BAD    /* anything else */
};

struct sl_shim_record {
	enum sl_shim_ending ending;
	uint32_t status;               /* of wait(2) */
	uint64_t started_ms, ended_ms; /* started: of BEGUN and EXITED */
	int error;
	char what[32];
};

/* Parses the text of a record, whatever it holds. */
struct sl_shim_record sl_shim_record_parse(const char *text, size_t size);

#endif
